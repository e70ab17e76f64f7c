#!/usr/bin/env python3
"""The approval page in a real browser: alone with hostile tickets, and as part of the whole gateway.

usage: test_page.py [NAME...]      PREFIX/bin first in PATH; SHOTS=DIR keeps the screenshots
"""
import os
import pathlib
import secrets
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e/lab")]
from gateway import Gateway, program, simple_policy  # noqa: E402
from harness import main, test  # noqa: E402
from servers import npm_modules  # noqa: E402

MODULES = npm_modules(HERE.parent / "e2e/npm") / "node_modules"


def shots(lab, name):
    return os.path.join(os.environ["SHOTS"], name) if os.environ.get("SHOTS") else lab.dir / "shots"


@test("E14 page", "E16 page", "E17 page")
def the_page_alone_with_hostile_tickets(lab):
    desk = pathlib.Path(program()).resolve().parent.parent / "libexec/countersign/countersign-desk"
    done = lab.run([sys.executable, HERE / "run.py", "--desk", desk, "--modules", MODULES, "--shots", shots(lab, "sample")],
                   env={"PATH": os.environ["PATH"]}, timeout=240)
    assert done.rc == 0 and b"browser: all well" in done.out, done.text()


@test("E12 page", "E15 page", "E27 page", "E34 page")
def the_desks_server_alone(lab):
    desk = pathlib.Path(program()).resolve().parent.parent / "libexec/countersign/countersign-desk"
    done = lab.run([sys.executable, HERE / "server.py", "--desk", desk], env={"PATH": os.environ["PATH"]}, timeout=120)
    assert done.rc == 0, done.text()


@test("E1 page", "D21 page")
def a_person_approves_on_the_page_and_the_write_passes(lab):
    up = lab.upstream()
    secret = lab.canary(secrets.token_urlsafe(40))
    gw = Gateway(lab, simple_policy(up), {"api": secret.encode()}, hold="inline_wait: 120s, expires: 10m")
    client = lab.start(["curl", "-sS", "--max-time", "200", "--suppress-connect-headers", "-D", "-", "--data-binary",
                        '{"amount": 5}', "-H", "Content-Type: application/json", f"https://{up.name}:{up.port}/pay"],
                       env=gw.client_env())
    ticket = gw.pending()["id"]
    lab.run(["node", HERE / "page.mjs", "--link", gw.page, "--modules", MODULES, "--shots", shots(lab, "gateway"),
             "--approve", ticket], env={"PATH": os.environ["PATH"]}, rc=0, timeout=180)
    client.wait_line(r"HTTP/1.1 200", 60)
    assert up.effects() == {"POST /pay": 1}
    assert any(r.get("channel") == "page" for r in gw.audit())


main()
