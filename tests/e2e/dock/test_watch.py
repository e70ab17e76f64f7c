#!/usr/bin/env python3
"""Folders that are watched by the sandbox API: what changes is told, of the sandbox's own workspace alone, and what could not be
told is said to be missing."""
import json
import struct

import room  # noqa: F401
from boxes import nothing_is_left
from docks import GONE, both, refusal, write
from harness import main

SERVICE = "filesystem.Filesystem/"


def watcher(box, path=".", **more):
    status, made = box.rpc(SERVICE + "CreateWatcher", {"path": path, **more})
    assert status == 200, made
    return made["watcherId"]


def events(box, which):
    return box.rpc(SERVICE + "GetWatcherEvents", {"watcherId": which})


def until(lab, box, which, name, kind):
    """All that is told until this is."""
    told = []

    def is_told():
        status, said = events(box, which)
        assert status == 200, said
        told.extend((e["name"], e["type"].removeprefix("EVENT_TYPE_")) for e in said["events"])
        return (name, kind) in told
    lab.wait_for(f"{kind} of {name}", is_told)
    return told


def commands(dock, box):
    return next(row["commands"] for row in dock.gw.cli_json("sandbox", "started")["started"] if row["name"] == box.id)


@both
def watchers_are_asked_for_what_changed(lab, dock):
    one = dock.key("one", "acme")
    box, neighbour = one.create(), one.create()
    assert write(box, "d/old", b"x")[0] == 200
    flat, deep = watcher(box), watcher(box, "/workspace/d", recursive=True)
    assert write(box, "new", b"x")[0] == 200 and write(box, "new", b"y")[0] == 200 and write(box, "d/e/f", b"z")[0] == 200
    assert until(lab, box, flat, "new", "WRITE") == [("new", "CREATE"), ("new", "WRITE")]
    told = until(lab, box, deep, "e/f", "CREATE")
    assert told[0] == ("e", "CREATE") and set(told) == {("e", "CREATE"), ("e/f", "CREATE")}, told
    assert events(box, flat) == (200, {"events": []})
    # It is this sandbox's: with what opens another one, and with nothing, it is not there.
    assert refusal(events(neighbour, flat))[0] == 404
    assert refusal(neighbour.rpc(SERVICE + "RemoveWatcher", {"watcherId": flat}))[0] == 404
    token, box.token = box.token, neighbour.token
    for method, message in (("CreateWatcher", {"path": "."}), ("GetWatcherEvents", {"watcherId": flat}), ("RemoveWatcher", {"watcherId": flat})):
        assert refusal(box.rpc(SERVICE + method, message)) == GONE, method
    box.token = token
    assert box.rpc(SERVICE + "RemoveWatcher", {"watcherId": flat}) == (200, {})
    assert refusal(events(box, flat))[0] == 404
    # With the folder the watch ends, and says so when all was told.
    assert box.run("rm -r d")[1] == {}
    assert ("e/f", "REMOVE") in until(lab, box, deep, ".", "REMOVE")
    lab.wait_for("its end", lambda: events(box, deep)[0] == 404)
    lab.wait_for("nothing that runs", lambda: commands(dock, box) == 0)


@both
def no_folder_outside_of_the_workspace_is_watched(lab, dock):
    box = dock.key("one", "acme").create()
    assert box.run("ln -s /etc out; ln -s .. up; mkdir d; ln -s d in; touch file; echo done")[1] == {}
    for path, status in (("/etc", 403), ("out", 403), ("up", 403), ("..", 400), ("d/../..", 400), ("/", 403), ("none", 404), ("file", 409),
                         ("", 400), ("a\0b", 400)):
        for method in ("CreateWatcher", "WatchDir"):
            got = stream(box, path) if method == "WatchDir" else box.rpc(SERVICE + method, {"path": path})
            assert method == "WatchDir" and "message" in got["error"] or refusal(got)[0] == status, (path, got)
    which = watcher(box, "in")
    assert write(box, "d/x", b"x")[0] == 200
    until(lab, box, which, "x", "CREATE")


def stream(box, path):
    """How a stream of WatchDir ended that does not begin."""
    body = json.dumps({"path": path}).encode()
    status, said = box.caller.ask("POST", "/" + SERVICE + "WatchDir", struct.pack(">BI", 0, len(body)) + body,
                                  box.headers(**{"Content-Type": "application/connect+json"}))
    assert status == 200 and said[0] == 2, said
    return json.loads(said[5:])


@both
def what_nobody_reads_is_said_to_be_missing_and_holds_up_nobody(lab, dock):
    one = dock.key("one", "acme")
    box = one.create()
    which = watcher(box)
    script = "import os\nopen('a' * 200, 'w')\nfor i in range(30000):\n os.rename('a' * 200, 'b' * 200); os.rename('b' * 200, 'a' * 200)"
    assert box.run(f"python3 -c \"{script}\"")[0][-1]["end"]["exitCode"] == 0
    ends = []

    def ended():
        status, said = events(box, which)
        if status != 200:
            ends.append((status, said))
        return status != 200
    lab.wait_for("its end", ended)
    assert ends[0][0] == 507 and ends[0][1]["code"] == "resource_exhausted" and "list the folder again" in ends[0][1]["message"], ends
    assert refusal(events(box, which))[0] == 404
    again = watcher(box)
    assert write(box, "x", b"x")[0] == 200
    until(lab, box, again, "x", "CREATE")


@both
def of_a_sandbox_so_many_folders_are_watched(lab, dock):
    one = dock.key("one", "acme")
    box, neighbour = one.create(), one.create()
    all_of_them = [watcher(box) for _ in range(16)]
    assert refusal(box.rpc(SERVICE + "CreateWatcher", {"path": "."}))[0] == 429
    assert watcher(neighbour)
    assert box.rpc(SERVICE + "RemoveWatcher", {"watcherId": all_of_them[3]})[0] == 200
    assert watcher(box)


@both
def a_tenant_leaves_room_to_watch_for_others(lab, dock):
    one, other = dock.key("one", "acme"), dock.key("two", "globex")
    boxes, foreign = [one.create() for _ in range(4)], other.create()
    for i in range(48):
        assert watcher(boxes[i % 4])
    assert refusal(boxes[0].rpc(SERVICE + "CreateWatcher", {"path": "."}))[0] == 429
    which = watcher(foreign)
    assert write(foreign, "x", b"x")[0] == 200
    until(lab, foreign, which, "x", "CREATE")


@both
def a_watch_ends_with_its_sandbox_and_with_its_caller(lab, dock):
    one = dock.key("one", "acme")
    box = one.create()
    body = json.dumps({"path": "."}).encode()
    head = "".join(f"{k}: {v}\r\n" for k, v in box.headers().items() if v)
    request = (f"POST /{SERVICE}WatchDir HTTP/1.1\r\nHost: dock\r\n{head}Content-Type: application/connect+json\r\n"
               f"Content-Length: {len(body) + 5}\r\n\r\n").encode() + struct.pack(">BI", 0, len(body)) + body

    def begun():
        sock, said = dock.raw(request), b""
        while b'{"start":{}}' not in said:
            more = sock.recv(4096)
            assert more, said
            said += more
        return sock
    left, stays = begun(), begun()
    watcher(box)
    assert commands(dock, box) == 3
    left.close()
    lab.wait_for("the end of the one that was left", lambda: commands(dock, box) == 2)
    assert box.kill() == 204
    said = b""
    while more := stays.recv(4096):
        said += more
    assert b'"code":"unavailable"' in said, said
    nothing_is_left(dock.gw)


main()
