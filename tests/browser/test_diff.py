#!/usr/bin/env python3
"""The diff of a held push, and of a held package, in a real browser: with every kind of change, where it could not be made, and one that is cut.

usage: test_diff.py [NAME...]      PREFIX/bin first in PATH; SHOTS=DIR keeps the screenshots
"""
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / part) for part in ("e2e", "e2e/lab", "e2e/approvals", "e2e/warden")]
from harness import PATIENCE, main, test  # noqa: E402
import publishes  # noqa: E402
from pushes import all_kinds, commit, first_of_kinds, over, push, setup  # noqa: E402
from servers import npm_modules  # noqa: E402


def looks(lab, gw, pages):
    """Each with axe, in light and dark, on a narrow and on a wide screen."""
    (lab.dir / "pages.json").write_text(json.dumps(pages))
    shots = os.environ.get("SHOTS") or "-"
    done = lab.run(["node", HERE / "page.mjs", "--link", gw.page, "--modules", npm_modules(HERE.parent / "e2e/npm") / "node_modules",
                    "--shots", shots, "--pages", lab.dir / "pages.json", "--widths", "360,1440"], env={"PATH": os.environ["PATH"]},
                   timeout=6 * PATIENCE)  # many steps, each of which has its own
    assert done.rc == 0, done.text()


@test()
def every_kind_of_change_is_on_the_page(lab):
    _, gw, env, work = setup(lab)
    first_of_kinds(lab, work, env)
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    over(lab, gw, ticket)
    gw.approve(ticket)
    assert client.wait() == 0
    all_kinds(lab, work, env)
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    over(lab, gw, ticket)
    many = work / "many"
    many.mkdir()
    for n in range(400):
        (many / str(n)).write_text("x\n")
    (work / "big.txt").write_text("".join(f"another {i}\n" for i in range(20000)))
    commit(lab, work, env, "more than is shown")
    other, cut = push(lab, gw, work, env, "origin", "HEAD:topic")
    said, _ = over(lab, gw, cut)
    assert said["complete"] is False, said
    looks(lab, gw, [["diff", f"/tickets/{ticket}", "main", ["all kinds of changes", "becomes executable", "runs in CI"]],
                    ["diff-cut", f"/tickets/{cut}", "main", ["Not all of it is here", "Not yet"]]])
    for waiting, id in ((client, ticket), (other, cut)):
        gw.deny(id, "no")
        waiting.wait()


@test()
def that_there_is_none_is_on_the_page(lab):
    _, gw, env, work = setup(lab, may_read=False)
    (work / "a").write_text("a\n")
    commit(lab, work, env)
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    over(lab, gw, ticket)
    looks(lab, gw, [["diff-none", f"/tickets/{ticket}", "main", ["the policy has to allow the fetch", "Not yet"]]])
    gw.deny(ticket, "no")
    client.wait()


@test()
def a_package_is_on_the_page(lab):
    _, gw, env, work = publishes.setup(lab)
    publishes.first(work)
    client, new = publishes.publish(lab, gw, work, env)
    over(lab, gw, new)
    gw.approve(new)
    assert client.wait() == 0, client.seen
    publishes.second(work)
    client, ticket = publishes.publish(lab, gw, work, env)
    over(lab, gw, ticket)
    looks(lab, gw, [["diff-package", f"/tickets/{ticket}", "main", ["runs when it is installed", "compared with", "left-pad-demo", "minified"]]])
    gw.deny(ticket, "no")
    client.wait()


main()
