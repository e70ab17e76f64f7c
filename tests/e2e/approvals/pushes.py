"""Pushes that are held, for the tests of their diffs: a git server, a gateway that asks for diffs, and a clone."""
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in (".", "warden")]

from boxes import Nobodys  # noqa: E402
from gateway import Gateway, git_policy  # noqa: E402


def setup(lab, wish="required", may_read=True, ordinary=False, config="diff: { lane: diffs }\n", **more):
    """A git server, a gateway that holds pushes and asks for their diffs, the environment of a sandbox and its clone."""
    git = lab.git_server()
    policy = git_policy(git).replace("    use: demo\n", f"    use: demo\n    approve: {{ diff: {wish} }}\n") \
        if wish else git_policy(git)
    policy = policy.replace(f"    use: demo\n    approve: {{ diff: {wish} }}\n", "    use: demo\n", 1)  # of the fetch
    if not may_read:
        policy = policy.replace("rules:\n", "scopes:\n  agents: { labels: { lane: [none] } }\nrules:\n  - id: closed\n    match: "
                                f"{{ host: {git.host}, port: {git.port}, op: [git.fetch, git.fetch.refs] }}\n    scope: diffs\n"
                                "    decide: deny\n", 1).replace("agents: { labels: { lane: [none] } }",
                                                                 "diffs: { labels: { lane: [diffs] } }")
    gw = Gateway(Nobodys(lab) if ordinary else lab, policy, {"demo": f"{git.user}:{git.password}".encode()}, config=config, **more)
    env = gw.client_env()
    lab.run(["git", "clone", "-q", git.url, "work"], env=env, rc=0)
    return git, gw, env, lab.dir / "work"


def run(lab, work, env, *command):
    return lab.run(["git", "-C", work, *command], env=env, rc=0).out.decode().strip()


def commit(lab, work, env, message="by an agent", module=None):
    run(lab, work, env, "add", "-A")
    if module:
        run(lab, work, env, "update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},{module}")
    run(lab, work, env, "commit", "-qm", message)
    return run(lab, work, env, "rev-parse", "HEAD")


def push(lab, gw, work, env, *refs):
    """The ticket of a push that waits."""
    known = {t["id"] for t in gw.tickets()}
    client = lab.start(["git", "-C", work, "push", *refs], env=env)
    return client, lab.wait_for("the push is held", lambda: next((t["id"] for t in gw.tickets() if t["id"] not in known), None))


def over(lab, gw, ticket):
    """What is said of its diff, when it is over; and the diff."""
    said = lab.wait_for("its diff", lambda: next((d for d in [gw.show(ticket)["diff"]] if d["state"] in ("made", "failed")), None))
    return said, gw.control("GET", f"/api/v1/tickets/{ticket}/diff")[1]


def by_path(ref):
    return {f["path"]: f for f in ref["files"]}


def all_kinds(lab, work, env):
    """A commit with each kind of change, of what first_of_kinds has pushed; its id."""
    big = (work / "big.txt").read_text()
    (work / "big.txt").write_text(big.replace("line 1500\n", "another line\n"))  # a thin delta of what is there
    (work / "tool").chmod(0o755)
    (work / "moves.txt").rename(work / "moved.txt")
    (work / "picture.bin").write_bytes(bytes(range(256)) * 8)
    (work / ".github/workflows").mkdir(parents=True)
    (work / ".github/workflows/ci.yml").write_text("on: push\n")
    (work / "package-lock.json").write_text("{}\n")
    (work / "link").symlink_to("/etc/passwd")
    (work / "evil\n\u202ename").write_text("x\n")
    (work / "README.md").unlink()
    return commit(lab, work, env, "all kinds of changes", "vendored")


def first_of_kinds(lab, work, env):
    (work / "big.txt").write_text("".join(f"line {i}\n" for i in range(3000)))
    (work / "tool").write_text("#!/bin/sh\necho\n")
    (work / "moves.txt").write_text("".join(f"{i} of what moves\n" for i in range(40)))
    return commit(lab, work, env, "something to change")
