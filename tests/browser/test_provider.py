#!/usr/bin/env python3
"""People sign in through a real OpenID Connect provider in a real browser, with and without JavaScript.

usage: test_provider.py [NAME...]      PREFIX/bin first in PATH; SHOTS=DIR keeps the screenshots
"""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e/lab"), str(HERE.parent / "e2e/approvals")]
from harness import PATIENCE, main, test  # noqa: E402
from ports import free_port  # noqa: E402
from provider import Real, setup  # noqa: E402
from servers import npm_modules  # noqa: E402


@test("E26 browser")
def the_button_leads_there_and_back(lab):
    port, real = free_port(), Real(lab, {"a1": {"preferred_username": "alice"}, "m1": {"preferred_username": "mallory"}})
    up, gw = setup(lab, real, port)
    real.start(f"https://approve.test:{port}")
    gw.cli("operator", "add", "alice", "--group", "leads", rc=0)
    done = lab.run(["node", HERE / "provider.mjs", "--link", f"https://approve.test:{port}/", "--modules", npm_modules(HERE.parent / "e2e/npm") / "node_modules",
                    "--shots", os.environ.get("SHOTS") or "-"], env={"PATH": os.environ["PATH"]}, timeout=2 * PATIENCE)
    assert done.rc == 0, done.text()
    assert up.effects() == {}


main()
