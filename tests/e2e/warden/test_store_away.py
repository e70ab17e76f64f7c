#!/usr/bin/env python3
"""Checkpoints that are in a store of S3's API as well: asked through the gateway, as any sandbox is, with a lease; by root's gateway
and by an ordinary user's. The server takes nothing that is not signed with its own keys (lab/signed.py). What was changed or
exchanged there: tests/unit/checkpoint/test_away.c."""
import re
import shutil
import sys

from boxes import Nobodys, execute, shell, start
import harness
from harness import main, test

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
    for folder in (gw.state / "checkpoints").iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)


def what_is_lost_here_comes_back(lab, ordinary):
    s = away(lab, ordinary)
    gw = s.gw
    start(gw, "box")
    shell(gw, "box", "head -c 9000000 /dev/urandom > big; sha256sum big > sum; mkdir d; echo small > d/small; ln -s d l")
    made = gw.cli_json("sandbox", "snapshot", "box", "built")
    seen = s.all_were_right(5)
    puts = [r["path"] for r in seen if r["method"] == "PUT"]
    assert len(puts) >= 5 and all(path.startswith("/bucket/of/one/") for path in puts), seen
    assert not any(word in path for path in puts for word in ("box", "built", "default", "root")), puts
    shell(gw, "box", "echo more > d/more")
    gw.cli("sandbox", "snapshot", "box", "more", rc=0)
    records = gw.recorded(len(puts), sandbox=AS, kind="intent")
    assert records, "each is in the audit as any other write"
    gw.cli("sandbox", "destroy", "box", rc=0)
    lost(gw)
    rows = gw.cli_json("checkpoint", "list")["checkpoints"]
    assert sorted(row["name"] for row in rows) == ["built", "more"], rows
    lost(gw)
    gw.cli("sandbox", "restore", made["id"], "box", rc=0)
    assert shell(gw, "box", "sha256sum -c sum; cat l/small; ls d").out == b"big: OK\nsmall\nsmall\n"
    gw.cli("checkpoint", "rm", "built", rc=0)
    gw.cli("checkpoint", "rm", "more", rc=0)
    lost(gw)
    assert gw.cli_json("checkpoint", "list")["checkpoints"] == []
    # No other sandbox has a lease of it, nor is one of use to it.
    words = ["curl", "-sS", "-X", "PUT", "-H", "X-aws-ec2-metadata-token-ttl-seconds: 60", "http://169.254.169.254/latest/api/token"]
    assert b"AccessKeyId" not in lab.run(words, env=gw.client_env("agent")).out
    assert s.curl(f"{s.url}/bucket/of/one/").rpartition("\n")[2] == "403"
    # Without it nothing is answered that is not there as well.
    s.process.stop()
    done = gw.cli("sandbox", "snapshot", "box", "never")
    assert done.rc != 0 and b"checkpoint store" in done.err, done.text()
    assert execute(gw, "box", "cat", "l/small").out == b"small\n"
    gw.cli("sandbox", "destroy", "box", rc=0)
    lab.expects(r"carrier: .*|front: .*|judge: .*")


for ordinary in (False, True):
    def case(lab, ordinary=ordinary):
        what_is_lost_here_comes_back(lab, ordinary)
    case.__name__ = "what_is_lost_here_comes_back" + ("_by_an_ordinary_user" if ordinary else "")
    test()(case)


if __name__ == "__main__":
    main()
