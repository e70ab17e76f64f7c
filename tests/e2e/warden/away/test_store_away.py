#!/usr/bin/env python3
"""Checkpoints that are in a store of S3's API as well: asked through the gateway, as any sandbox is, with a lease; by root's gateway
and by an ordinary user's. The server takes nothing that is not signed with its own keys (lab/signed.py). What was changed or
exchanged there: tests/unit/checkpoint/test_away.c; what is to go from there: test_away_gone.c. D25: what it says is in no answer;
D31: no other sandbox has its lease, nor its name; F36: who needs it not does not wait while it is slow or away."""
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from boxes import Nobodys, execute, shell, start  # noqa: E402
import harness  # noqa: E402
from harness import main, test  # noqa: E402

sys.path.insert(0, str(harness.HERE / "lab"))
from signing import Signed  # noqa: E402

LEASED = "\n    lease: aws\n    require_lease: true\n    stub: aws"
AS = "checkpoint-store"


def away(lab, ordinary):
    s = Signed(Nobodys(lab) if ordinary else lab, lease=LEASED, token=False)
    gw, policy = s.gw, s.gw.policy.read_text()
    gw.policy.write_text(re.sub(r"(  - id: \w+\n)", r"\1    scope: store\n",
                                policy.replace("rules:\n", f"scopes:\n  store: {{ sandboxes: [{AS}] }}\nrules:\n")))
    gw.config.write_text(gw.config.read_text() + "checkpoints:\n  s3: { endpoint: " + f'"{s.url}"' + ", bucket: bucket, prefix: of/one, credential: keys }\n")
    gw.stop()
    gw.up()
    s.env = {**s.env, **gw.client_env()}
    return s


def lost(gw):
    """All that lies here but the key that opens what lies there."""
    def gone():  # who takes from there what was removed may be at it
        folders = [folder for folder in (gw.state / "checkpoints").iterdir() if folder.is_dir()]
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        return not folders
    gw.lab.wait_for("that all is lost", gone)


def what_is_lost_here_comes_back(lab, ordinary):
    s = away(lab, ordinary)
    (s.dir / "objects").mkdir()
    (s.dir / "objects").chmod(0o777)  # the server may be another user's
    gw = s.gw
    start(gw, "box")
    shell(gw, "box", "head -c 9000000 /dev/urandom > big; sha256sum big > sum; mkdir d; echo a small one > d/small; ln -s d l")
    made = gw.cli_json("sandbox", "snapshot", "box", "built")
    seen = s.all_were_right(5)
    puts = [r["path"] for r in seen if r["method"] == "PUT"]
    assert len(puts) >= 5 and all(path.startswith("/bucket/of/one/") for path in puts), seen
    assert not any(word in path for path in puts for word in ("box", "built", "default", "root")), puts
    seen = b"".join(p.read_bytes() for p in (s.dir / "objects").iterdir())
    assert len(seen) > 9000000 and b"a small one" not in seen and b"built" not in seen, "what lies there is sealed"
    lab.capture("objects", seen)
    shell(gw, "box", "echo more > d/more")
    gw.cli("sandbox", "snapshot", "box", "more", rc=0)
    records = gw.recorded(len(puts), sandbox=AS, kind="intent")
    assert records, "each is in the audit as any other write"
    gw.cli("sandbox", "destroy", "box", rc=0)
    lost(gw)
    rows = gw.cli_json("checkpoint", "list")["checkpoints"]
    assert sorted(row["name"] for row in rows) == ["built", "more"], rows
    lost(gw)
    gw.cli("sandbox", "restore", made["id"], "box", "--idle", "1s", rc=0)
    assert shell(gw, "box", "sha256sum -c sum; cat l/small; ls d").out == b"big: OK\na small one\nsmall\n"
    gw.cli("checkpoint", "rm", "built", rc=0)
    gw.cli("checkpoint", "rm", "more", rc=0)
    assert gw.cli_json("checkpoint", "list")["checkpoints"] == []
    lab.wait_for("that nothing but a key is there", lambda: all(".key.0-1" in p.name.replace("+", ".") for p in (s.dir / "objects").iterdir()))
    lost(gw)
    assert gw.cli_json("checkpoint", "list")["checkpoints"] == []
    # No other sandbox has a lease of it, nor is one of use to it.
    at = "http://169.254.169.254/latest/"
    for words in (["-X", "PUT", "-H", "X-aws-ec2-metadata-token-ttl-seconds: 60", at + "api/token"],
                  ["-H", "X-aws-ec2-metadata-token: any", at + "meta-data/iam/security-credentials/"],
                  ["-H", "X-aws-ec2-metadata-token: any", at + "meta-data/iam/security-credentials/keys"]):
        done = lab.run(["curl", "-sS", "-w", "\n%{http_code}", *words], env=gw.client_env("agent")).out
        assert done.endswith(b"\n403") and b'"code":"denied"' in done, done
    assert s.curl(f"{s.url}/bucket/of/one/").rpartition("\n")[2] == "403"
    if not ordinary:
        a_hostile_one(lab, s)
    # Without it nothing is answered that is not there as well; a sandbox idles and comes back, and a step is undone, nevertheless.
    s.process.stop()
    done = gw.cli("sandbox", "snapshot", "box", "never")
    assert done.rc != 0 and b"checkpoint store" in done.err, done.text()
    if not ordinary:
        gw.cli("checkpoint", "rm", "kept", rc=0)
    assert execute(gw, "box", "cat", "l/small").out == b"a small one\n"
    gw.cli("sandbox", "fork", "box", "again", rc=0)
    assert execute(gw, "again", "cat", "l/small").out == b"a small one\n"
    execute(gw, "box", "rm", "l/small", options=["--undo"])
    gw.cli("sandbox", "undo", "box", rc=0)
    gw.cli("sandbox", "pause", "box", rc=0)
    lab.wait_for("that it is idle", lambda: any(r["name"] == "box" and r["state"] == "idle" for r in gw.cli_json("sandbox", "started")["started"]))
    assert execute(gw, "box", "cat", "l/small").out == b"a small one\n"
    gw.cli("sandbox", "destroy", "box", rc=0)
    gw.cli("sandbox", "destroy", "again", rc=0)
    lab.expects(r"carrier: .*|front: .*|judge: .*|checkpoint: .*")


def a_hostile_one(lab, s):
    """Whatever it answers, what comes back is what was kept, or nothing and why."""
    gw, mode = s.gw, s.dir / "hostile"
    kept = gw.cli_json("sandbox", "snapshot", "box", "kept")["id"]
    for what, says in (("cut", b"damaged"), ("changed", b"damaged"), ("others", b"damaged"), ("long", b"more than was asked for"),
                       ("moved", b"307"), ("unreadable", b"cannot be read"), ("endless", b"more than can be looked at")):
        mode.write_text(what)
        lost(gw)
        done = gw.cli("sandbox", "restore", kept, "back")
        assert done.rc != 0 and says in done.err and b"rules" not in done.err, (what, done.text())
        assert execute(gw, "box", "cat", "l/small").out == b"a small one\n", what
    mode.write_text("busy")
    done = gw.cli("sandbox", "snapshot", "box", "busy")
    assert done.rc != 0 and b"503 SlowDown" in done.err and b"rules" not in done.err, done.text()
    mode.write_text("stale")  # a lease that is not good any more: there is another one, once
    gw.cli("sandbox", "snapshot", "box", "stale", rc=0)
    # While one waits for it, nobody else does.
    mode.write_text("silent")
    start(gw, "other")
    with ThreadPoolExecutor() as pool:
        before = len(s.requests())
        waits = pool.submit(gw.cli, "checkpoint", "list")
        lab.wait_for("that it is asked", lambda: len(s.requests()) > before)
        assert execute(gw, "other", "echo", "here").out == b"here\n"
        gw.cli("sandbox", "fork", "other", "forked", rc=0)
        gw.cli("sandbox", "destroy", "forked", rc=0)
        gw.cli("sandbox", "destroy", "other", rc=0)
        assert not waits.done()
        mode.unlink()
        waits.result()
    lost(gw)
    gw.cli("sandbox", "restore", kept, "back", rc=0)
    assert execute(gw, "back", "cat", "l/small").out == b"a small one\n"


for ordinary in (False, True):
    def case(lab, ordinary=ordinary):
        what_is_lost_here_comes_back(lab, ordinary)
    case.__name__ = "what_is_lost_here_comes_back" + ("_by_an_ordinary_user" if ordinary else "")
    test(*([] if ordinary else ["D25 store", "D31 store", "F36 store"]))(case)


if __name__ == "__main__":
    main()
