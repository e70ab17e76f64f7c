#!/usr/bin/env python3
"""Snapshots and forks by the sandbox API: files that outlive their sandbox, and sandboxes that begin with another one's. They
are their tenant's, and nobody else learns that there are any."""
import json
import os
import pathlib
import socket
import struct

import room  # noqa: F401
from docks import both, refusal, write
from harness import main


def snapshot(caller, box, **members):
    status, made = caller.ask("POST", f"/sandboxes/{box.id}/snapshots", members)
    assert status == 201 and made["snapshotID"].startswith("ck-"), (status, made)
    return made["snapshotID"]


def snapshots(caller, query=""):
    status, rows = caller.ask("GET", "/snapshots" + query)
    assert status == 200, rows
    return [row["snapshotID"] for row in rows]


def read(box, path):
    return box.caller.ask("GET", "/files?path=" + path, None, box.headers())


@both
def another_tenants_snapshots_are_as_if_they_were_not_there(lab, dock):
    one, same, other = dock.key("one", "acme"), dock.key("same", "acme"), dock.key("two", "globex")
    box, foreign = one.create(), other.create()
    assert write(box, "mine", b"acme's")[0] == 200
    made = snapshot(one, box, name="built")
    never = "ck-" + "0" * 26
    absent = {name: refusal(other.ask("POST", "/v2/sandboxes", {"templateID": name})) for name in (made, never, "built", "none")}
    assert absent[made] == absent[never] == absent["built"] == absent["none"] and absent[made][0] == 404, absent
    for name, like in ((made, never), ("built", "none")):
        assert refusal(other.ask("DELETE", f"/templates/{name}")) == refusal(other.ask("DELETE", f"/templates/{like}"))
    for query in ("", "?name=built", f"?name={made}", f"?sandboxID={box.id}", f"?nextToken={made}"):
        assert snapshots(other, query) == [], query
    for path in ("snapshots", "fork"):
        got = refusal(other.ask("POST", f"/sandboxes/{box.id}/{path}", {}))
        assert got[0] == 404 and got == refusal(other.ask("POST", f"/sandboxes/sb-none/{path}", {})), got
    # The same name is free for another tenant, and a tenant's keys share what is theirs.
    theirs = snapshot(other, foreign, name="built")
    assert snapshots(other) == [theirs] and snapshots(one) == snapshots(same) == [made]
    status, begun = same.ask("POST", "/v2/sandboxes", {"templateID": "built"})
    assert status == 201, begun
    assert read(type(box)(same, begun["sandboxID"], lab.canary(begun["envdAccessToken"])), "mine") == (200, b"acme's")
    assert other.ask("DELETE", "/templates/built")[0] == 204 and snapshots(other) == [] and snapshots(one) == [made]
    # What an operator forks stays its tenant's.
    dock.gw.cli("sandbox", "fork", box.id, "copy", rc=0)
    assert "copy" in one.ids() and "copy" not in other.ids() and snapshots(one) == [made]
    rows = dock.gw.cli_json("checkpoint", "list", "--tenant", "acme")["checkpoints"]
    assert [row["id"] for row in rows] == [made] and dock.gw.cli_json("checkpoint", "list")["checkpoints"] == []
    assert dock.gw.cli("checkpoint", "rm", "built", rc=1) and dock.gw.cli("checkpoint", "list", "--tenant", "a b", rc=2)
    dock.gw.cli("checkpoint", "rm", "built", "--tenant", "acme", rc=0)
    assert snapshots(one) == []


@both
def a_checkpoint_tells_nothing_of_another_tenants(lab, dock):
    """The same file costs and says the same, whether another tenant has it or not."""
    one, other, alone = dock.key("one", "acme"), dock.key("two", "globex"), dock.key("three", "initech")
    rows, data = {}, os.urandom(300_000)
    kept = dock.gw.state / "checkpoints"

    def size():
        return {path.parent.name: path.stat().st_size for path in kept.rglob("*.pack")}
    for tenant, caller, content in (("acme", one, data), ("globex", other, data), ("initech", alone, os.urandom(300_000))):
        box, before = caller.create(), size()
        assert write(box, "same", content)[0] == 200
        status, made = caller.ask("POST", f"/sandboxes/{box.id}/snapshots", {})
        assert status == 201, made
        told, = dock.gw.cli_json("checkpoint", "list", "--tenant", tenant)["checkpoints"]
        rows[tenant] = (sorted(made), {k: v for k, v in told.items() if isinstance(v, int) and k not in ("created_ms", "created")},
                        sum(size().values()) - sum(before.values()), len(size()) - len(before))
        assert box.kill() == 204
    assert rows["globex"] == rows["initech"] == rows["acme"], rows
    names = [set(path.name for path in folder.iterdir()) for folder in kept.iterdir() if folder.is_dir()]
    assert len(names) == 3 and len({(folder / "key").read_bytes() for folder in kept.iterdir() if folder.is_dir()}) == 3, names


@both
def a_snapshot_is_its_files_alone_and_ends_when_it_is_deleted(lab, dock):
    one = dock.key("one", "acme")
    box = one.create(metadata={"a": "b"}, envVars={"COLOR": "blue"})
    assert write(box, "kept", b"x" * 3_000_000)[0] == 200
    box.run("sleep 600 & echo $! > pid; mkdir deep; ln -s ../kept deep/link")
    made = snapshot(one, box)
    assert box.says("kill -0 $(cat pid) && echo lives") == b"lives\n"  # it goes on
    assert box.kill() == 204
    again = one.create(templateID=made)
    assert read(again, "deep/link") == (200, b"x" * 3_000_000)
    assert again.says("kill -0 $(cat pid) 2>/dev/null || echo ended; echo $COLOR") == b"ended\n\n"
    assert one.ask("GET", f"/sandboxes/{again.id}")[1]["templateID"] == made
    assert one.ask("DELETE", f"/templates/{made}")[0] == 204 and snapshots(one) == []
    assert read(again, "kept")[0] == 200  # what began with it has its own
    assert refusal(one.ask("POST", "/v2/sandboxes", {"templateID": made}))[0] == 404


@both
def what_makes_no_sense_is_refused_in_words(lab, dock):
    one = dock.key("one", "acme")
    box = one.create()
    snapshot(one, box, name="built")
    for name, status in (("base", 400), ("", 400), ("a b", 400), ("A", 400), ("ck-x", 400), ("x" * 64, 400), (1, 400), (None, 400),
                         ("built", 409)):
        assert refusal(one.ask("POST", f"/sandboxes/{box.id}/snapshots", {"name": name}))[0] == status, name
    for body in ({"count": 0}, {"count": 17}, {"count": -1}, {"count": "2"}, {"timeout": -1}, {"timeout": "1"}):
        assert refusal(one.ask("POST", f"/sandboxes/{box.id}/fork", body))[0] == 400, body
    for query in ("?limit=0", "?limit=1001", "?limit=x", "?nextToken=%00", "?nextToken=../x", "?name=a&name=b"):
        assert refusal(one.ask("GET", "/snapshots" + query))[0] == 400, query
    for name in ("A", "..", "%2e%2e", "x" * 64):
        assert refusal(one.ask("DELETE", f"/templates/{name}"))[0] == 404, name
    assert len(snapshots(one)) == 1 and one.ids() == {box.id}


@both
def as_many_forks_as_may_be_begin_with_the_same_files(lab, dock):
    one = dock.key("one", "acme")
    box = one.create(metadata={"a": "b"})
    assert write(box, "kept", b"as it was")[0] == 200
    status, forks = one.ask("POST", f"/sandboxes/{box.id}/fork", {"count": 16, "timeout": 60})
    assert status == 201 and len(forks) == 16, forks
    boxes = [type(box)(one, row["sandbox"]["sandboxID"], lab.canary(row["sandbox"]["envdAccessToken"])) for row in forks]
    assert len({fork.id for fork in boxes}) == 16 and one.ids() == {box.id, *(fork.id for fork in boxes)}
    for fork in boxes[::5]:
        assert read(fork, "kept") == (200, b"as it was")
        assert one.ask("GET", f"/sandboxes/{fork.id}")[1]["metadata"] == {"a": "b"}
    assert snapshots(one) == []
    shelves = pathlib.Path(dock.gw.state) / "checkpoints"
    lab.wait_for("that nothing is kept of it", lambda: not any(shelves.rglob("ck-*")))


@both
def who_leaves_before_forks_are_made_leaves_no_snapshot_behind(lab, dock):
    one = dock.key("one", "acme")
    box = one.create()
    assert box.run("head -c 60000000 /dev/urandom > much")[0][-1]["end"]["exitCode"] == 0
    body = json.dumps({"count": 2}).encode()
    sock = dock.raw(f"POST /sandboxes/{box.id}/fork HTTP/1.1\r\nHost: dock\r\nX-API-KEY: {one.secret}\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    shelves = pathlib.Path(dock.gw.state) / "checkpoints"
    lab.wait_for("the snapshot", lambda: any(p.is_file() for p in shelves.rglob("*-*")))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()  # with a reset

    def swept():
        return any(row["kind"] == "note" and row["about"] == "checkpoint-rm" for row in dock.gw.audit())
    lab.wait_for("its end", swept)
    lab.wait_for("that nothing is kept of it", lambda: not any(shelves.rglob("ck-*")))
    assert snapshots(one) == []
    assert box.says("echo on") == b"on\n"


main()
