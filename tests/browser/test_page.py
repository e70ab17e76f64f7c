#!/usr/bin/env python3
"""The approval page in a real browser: alone with hostile tickets, and as part of the whole gateway.

usage: test_page.py [NAME...]      PREFIX/bin first in PATH; SHOTS=DIR keeps the screenshots
"""
import gzip
import json
import os
import pathlib
import re
import secrets
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e/lab")]
from gateway import Gateway, Page, program, simple_policy  # noqa: E402
from harness import main, test  # noqa: E402
from patience import PATIENCE  # noqa: E402
from servers import npm_modules  # noqa: E402

WHOLE = 6 * PATIENCE  # for a program with many steps, each of which has its own patience
MODULES = npm_modules(HERE.parent / "e2e/npm") / "node_modules"


def shots(lab, name):
    return os.path.join(os.environ["SHOTS"], name) if os.environ.get("SHOTS") else "-"


@test("E14 browser", "E15 browser", "E16 browser", "E17 browser")
def the_page_alone_with_hostile_tickets(lab):
    desk = pathlib.Path(program()).resolve().parent.parent / "libexec/countersign/countersign-desk"
    done = lab.run([sys.executable, HERE / "run.py", "--desk", desk, "--modules", MODULES, "--shots", shots(lab, "sample")],
                   env={"PATH": os.environ["PATH"]}, timeout=WHOLE)
    assert done.rc == 0 and b"browser: all well" in done.out, done.text()


@test("E12 server", "E15 server", "E27 server", "E34 server")
def the_desks_server_alone(lab):
    desk = pathlib.Path(program()).resolve().parent.parent / "libexec/countersign/countersign-desk"
    done = lab.run([sys.executable, HERE / "server.py", "--desk", desk], env={"PATH": os.environ["PATH"]}, timeout=WHOLE)
    assert done.rc == 0, done.text()


@test("E1 browser", "D21 browser")
def a_person_approves_on_the_page_and_the_write_passes(lab):
    up = lab.upstream()
    secret = lab.canary(secrets.token_urlsafe(40))
    gw = Gateway(lab, simple_policy(up), {"api": secret.encode()}, hold="inline_wait: 10m, expires: 2h")
    client = lab.start(["curl", "-sS", "--max-time", "200", "--suppress-connect-headers", "-D", "-", "--data-binary",
                        '{"amount": 5}', "-H", "Content-Type: application/json", f"https://{up.name}:{up.port}/pay"],
                       env=gw.client_env())
    ticket = gw.pending()["id"]
    lab.run(["node", HERE / "page.mjs", "--link", gw.page, "--modules", MODULES, "--shots", shots(lab, "gateway"),
             "--approve", ticket], env={"PATH": os.environ["PATH"]}, rc=0)
    client.wait_line(r"HTTP/1.1 200", 60)
    assert up.effects() == {"POST /pay": 1}
    assert any(r.get("channel") == "page" for r in gw.audit())


@test()
def the_page_weighs_little_and_asks_nobody_else(lab):
    up = lab.upstream()
    gw = Gateway(lab, simple_policy(up), {"api": lab.canary(secrets.token_urlsafe(40)).encode()}, hold="inline_wait: 0s, expires: 2h")
    lab.run(["curl", "-sS", "--data-binary", '{"amount": 5}', "-H", "Content-Type: application/json",
             f"https://{up.name}:{up.port}/pay"], env=gw.client_env(), rc=0)
    ticket, page = gw.pending()["id"], Page(gw)
    for path in ("/", f"/tickets/{ticket}"):
        seen = page.ask("GET", path)[1]
        assert not re.search(rb'(?:href|src|action)="(?![/#])', seen), seen
        files = sorted(set(re.findall(rb'(?:href|src)="(/assets/[^"]+)"', seen)))
        assert len(files) == (3 if path == "/" else 4), files
        weight = sum(len(gzip.compress(data)) for data in [seen, *(page.ask("GET", f.decode())[1] for f in files)])
        assert weight <= 60 * 1024, weight
        print(f"# {path[:8]}: {weight} bytes, compressed")
    gw.deny(ticket, "seen")


@test()
def what_a_person_is_told_of_the_policy(lab):
    """Learning, past a limit, a reload that was refused, a ticket that the next policy would not hold."""
    up = lab.upstream()
    place = f"host: {up.name}, port: {up.port}"
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 5 * 3600 + 600))
    small = f"""  - id: small
    match: {{ {place}, method: POST, path: /pay }}
    decide: allow
    use: api
    limits: {{ requests: 1/1d }}
    over: writes
"""
    # a hold of /large, and of /pay past its limit; other writes are what no rule fits
    policy = simple_policy(up, extra=small).replace("effect: [write, delete]", "effect: [write, delete], path: /large").replace(
        "name: test\n", f"name: test\nlearning: until {until}\n")
    gw = Gateway(lab, policy, {"api": lab.canary(secrets.token_urlsafe(40)).encode()}, hold="inline_wait: 0s, expires: 2h")

    def post(path):
        lab.run(["curl", "-sS", "--max-time", "60", "--data-binary", '{"amount": 5}', "-H", "Content-Type: application/json",
                 f"https://{up.name}:{up.port}{path}"], env=gw.client_env(), rc=0)
        return up.effects().get(f"POST {path}", 0)
    assert post("/pay") == 1 and post("/pay") == 1
    past = gw.pending()["id"]
    assert post("/other") == 0
    new = next(t["id"] for t in gw.pending(2) if t["id"] != past)
    gw.policy.write_text("version: 1\n- broken")
    gw.cli("reload", rc=3)
    pages = lab.dir / "pages.json"

    def look(name, wanted):
        pages.write_text(json.dumps(wanted))
        link = gw.cli_json("signin")["url"]
        lab.run(["node", HERE / "page.mjs", "--link", link, "--modules", MODULES, "--shots", shots(lab, name), "--pages", pages],
                env={"PATH": os.environ["PATH"]}, rc=0)
    here = "The policy is learning, for 5 h more"
    look("policy", [
        ["list", "/", ".alert", [here, "A change of the policy was refused: a reload by uid ", "The policy in force did not change."]],
        ["list", "/", ".card", ["past a limit", "no rule fits it"]],
        ["past", f"/tickets/{past}", ".alert", [here]],
        ["past", f"/tickets/{past}", ".title", ["held by writes, past a limit"]],
        ["past", f"/tickets/{past}", "aside", ["is past its limit. Rule small: the limit of 1 request in 1 day is used up.", "names this place"]],
        ["past", f"/tickets/{past}", ".decide", ["with the credential api: when the agent asks again"]],
        ["new", f"/tickets/{new}", ".title", ["held: no rule fits it"]],
        ["new", f"/tickets/{new}", "aside", ["No rule: what no rule fits waits while the policy is learning"]],
        ["new", f"/tickets/{new}", ".decide", ["exactly as shown, without a credential"]],
        ["room-sandboxes", "/sandboxes", "main", ["Waiting", "2"]],
        ["room-credentials", "/credentials", "main", ["api", "set", f"https://{up.name}:{up.port}/**"]],
        ["room-policy", "/policy", "main", ["What would it say?", "In force", "test"]],
        ["room-decisions", "/decisions", "main", ["Nobody has decided anything yet."]],
        ["room-audit", "/audit", "main", ["unbroken", "records 1 to "]],
        ["room-health", "/health", "main", ["ledger", "ready", "2 requests"]]])
    gw.policy.write_text(simple_policy(up, write="deny"))
    gw.cli("reload", rc=0)
    lab.wait_for("their end", lambda: not gw.tickets())
    look("withdrawn", [
        ["list", "/", "main", ["Nothing waits.", "by the policy"]],
        ["past", f"/tickets/{past}", ".outcome", ["withdrawn and never leaves: by the policy as it was then", "Decided by the policy, "]]])
    assert up.effects() == {"POST /pay": 1}


main()
