#!/usr/bin/env python3
"""The last part of the tutorial (conf/cookbook/TUTORIAL.md) against a running gateway: a reload that its own tests
refuse, a refusal in the sandbox, what `learn` makes of it, versions and a rollback. tests/policy/tutorial.py is the
rest; `test_tutorial.py --write` puts the present answers into the text."""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "policy"))
import tutorial  # noqa: E402
import room  # noqa: F401
from gateway import REFUSED, Gateway  # noqa: E402
from harness import main, test  # noqa: E402

WRITE = "--write" in sys.argv
sys.argv = [a for a in sys.argv if a != "--write"]


ROLLBACK = re.compile(r"^\$ countersign policy rollback ([0-9a-f]{6})$", re.M)


def previous(gw, body):
    """The digests that the text names are those of another day: a rollback goes to the version before this one."""
    named = ROLLBACK.search(body)
    return body.replace(named[1], gw.cli_json("policy", "history")["versions"][1]["digest"][:6]) if named else body


@test("tutorial, with a gateway")
def the_tutorial_in_force(lab):
    lab.expects(REFUSED)  # the tutorial shows one
    text, gw, out, last, wrong = tutorial.TEXT.read_text(), None, "", 0, ""
    files = {"policy.yaml": "", "policy_test.yaml": ""}
    for kind, words, body, (start, end) in tutorial.blocks(text):
        now = body
        if "add" in words:
            files[words["add"]] = tutorial.added(files[words["add"]], words, body)
            if gw:
                (lab.dir / words["add"]).write_text(files[words["add"]])
        elif kind == "console" and words:
            if gw is None:
                (lab.dir / "policy_test.yaml").write_text(files["policy_test.yaml"])
                gw = Gateway(lab, files["policy.yaml"], {"github": b"ghp_tutorial", "pay": b"pk_tutorial"})
                agent = {k: str(v) for k, v in gw.client_env().items()}
            env = agent if "sandbox" in words else {"COUNTERSIGN_STATE": str(gw.state)}
            now = tutorial.answers(previous(gw, body), lab.dir, os.environ["PATH"], env)
            if "sandbox" in words:
                lab.wait_for("its record", lambda: any("rate_limit" in str(r) for r in gw.audit()))
            if named := ROLLBACK.search(body):
                now = ROLLBACK.sub(f"$ countersign policy rollback {named[1]}", now)
            now = now.replace(f"{lab.dir}/", "")
        if tutorial.alike(now) == tutorial.alike(body):
            now = body
        else:
            wrong += f"TUTORIAL.md:{text.count(chr(10), 0, start) + 1}: the program says\n{now}--- the text says\n{body}"
        out += text[last:start] + now
        last = end
    if WRITE:
        tutorial.TEXT.write_text(out + text[last:])
    assert gw and (WRITE or not wrong), wrong


main()
