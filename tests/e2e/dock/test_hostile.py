#!/usr/bin/env python3
"""What callers of the sandbox API may not: see or touch another tenant's, speak without a token or with a dead one, send
what is too large, lead out of a workspace, hold the dock up. Each is refused in words, and others do not notice."""
import base64
import hashlib
import json
import os
import pathlib
import re
import signal
import struct
import time
import urllib.parse

import room  # noqa: F401
from docks import GONE, Dock, answer, both, refusal, write
from harness import main, test

ABSENT = 404


def stat(box, path="."):
    return box.rpc("filesystem.Filesystem/Stat", {"path": path})


def read(box, path):
    return box.caller.ask("GET", "/files?path=" + path, None, box.headers())


@both
def another_tenants_key_sees_and_touches_nothing(lab, dock):
    one, other = dock.key("one", "acme"), dock.key("two", "globex")
    box, foreign = one.create(metadata={"of": "acme"}), other.create()
    assert one.ids() == {box.id} and other.ids() == {foreign.id}
    for method, path, body in (("GET", "", None), ("GET", "/metrics", None), ("POST", "/pause", {}), ("DELETE", "", None),
                               ("POST", "/timeout", {"timeout": 1}), ("POST", "/connect", {})):
        assert refusal(other.ask(method, f"/sandboxes/{box.id}{path}", body))[0] == ABSENT, (method, path)
    # What opens one sandbox opens no other, and does nothing that a key does.
    token, box.token = box.token, foreign.token
    assert refusal(stat(box)) == GONE and refusal(read(box, "x")) == GONE and refusal(write(box, "x", b"x")) == GONE
    assert box.run("true")[1]["error"]["code"] == "unavailable"
    for method in ("List", "SendSignal", "SendInput", "CloseStdin", "Update"):
        assert refusal(box.rpc("process.Process/" + method, {"process": {"pid": 1}})) == GONE, method
    for value in (one.secret, token[:-1], token + "0", "at_" + "0" * 64, "x" * 300):
        box.token = value
        assert refusal(stat(box))[0] in (401, 502), value
    box.token = token
    one.secret, key = token, one.secret
    assert refusal(one.ask("GET", "/v2/sandboxes"))[0] == 401
    one.secret = key
    assert one.ids() == {box.id} and stat(box)[0] == 200


@both
def a_tenants_keys_share_its_sandboxes_and_a_key_that_is_taken_back_opens_none(lab, dock):
    one, other = dock.key("one", "acme"), dock.key("two", "acme")
    box = one.create(metadata={"a": "b"})
    status, opened = other.ask("POST", f"/v2/sandboxes/{box.id}/connect", {})
    assert status == 200 and opened["envdAccessToken"] != box.token
    second = type(box)(other, box.id, opened["envdAccessToken"])
    assert second.says("echo hello") == b"hello\n"
    follows = dock.raw(start_bytes(box, "echo on; sleep 600"))
    first = follows.recv(4096)
    assert first.startswith(b"HTTP/1.1 200"), first
    dock.gw.cli("key", "rm", "one", rc=0)
    assert refusal(one.ask("GET", "/v2/sandboxes"))[0] == 401
    assert refusal(stat(box)) == GONE
    while more := follows.recv(4096):
        first += more
    assert b'"error"' in first  # and what it followed is over
    assert stat(second)[0] == 200 and other.ask("GET", f"/sandboxes/{box.id}")[1]["metadata"] == {"a": "b"}
    assert dock.gw.cli("key", "rm", "one", rc=1)
    keys = [row["name"] for row in dock.gw.cli_json("key", "list")["keys"]]
    assert keys == ["two"], keys


def start_bytes(box, command):
    body = json.dumps({"process": {"cmd": "/bin/sh", "args": ["-c", command]}}).encode()
    head = "".join(f"{k}: {v}\r\n" for k, v in box.headers().items() if v)
    return (f"POST /process.Process/Start HTTP/1.1\r\nHost: dock\r\nConnection: close\r\n{head}Content-Type: application/connect+json\r\n"
            f"Content-Length: {len(body) + 5}\r\n\r\n").encode() + struct.pack(">BI", 0, len(body)) + body


@both
def who_shows_no_key_or_no_known_one_is_refused(lab, dock):
    one = dock.key("one", "acme")
    for key in ("", "e2b_" + "0" * 40, one.secret[:-1], one.secret.upper(), "x" * 257, "e2b_%00"):
        caller = type(one)(dock, key)
        assert refusal(caller.ask("GET", "/v2/sandboxes"))[0] == 401, key
        assert refusal(caller.ask("POST", "/v2/sandboxes", {"templateID": "base"}))[0] == 401, key
    box = one.create()
    for name in ("", "../sandboxes", "a/b", box.id.upper(), "x" * 64, "sb-%2e%2e"):
        status, words = refusal(one.ask("POST", "/filesystem.Filesystem/Stat", {"path": "."},
                                        box.headers(**{"E2b-Sandbox-Id": name})))
        assert status in (400, 502), (name, words)
    # Nothing but hashes is kept, and of what opens a sandbox nothing is left with it.
    assert box.kill() == 204 and refusal(stat(box)) == GONE
    kept = b"".join(p.read_bytes() for p in pathlib.Path(dock.gw.state).rglob("*") if p.is_file())
    assert one.secret.encode() not in kept and box.token.encode() not in kept


@both
def what_is_not_here_is_said_in_words(lab, dock):
    one = dock.key("one", "acme")
    box = one.create()
    assert refusal(one.ask("GET", "/nodes"))[0] == 404
    assert refusal(one.ask("PATCH", f"/sandboxes/{box.id}"))[0] == 405
    assert one.ask("POST", "/process.Process/StreamInput", {}, box.headers())[1]["code"] == "not_found"
    assert refusal(one.ask("PUT", f"/sandboxes/{box.id}/network", {}))[0] == 501
    assert refusal(one.ask("GET", "/secrets"))[0] == 501
    for members, status in (({"templateID": "mine"}, 404), ({"autoPause": True}, 501), ({"network": {"allowOut": ["*"]}}, 501),
                            ({"network": {"denyOut": ["0.0.0.0/0"]}}, 201), ({"volumeMounts": [{"name": "v"}]}, 501),
                            ({"envVars": {"A=B": "c"}}, 400), ({"metadata": {"a": 1}}, 400), ({"timeout": -1}, 400),
                            ({"timeout": 10 ** 12}, 400), ({"surprise": 1}, 400), ({"secure": False}, 201)):
        got = one.ask("POST", "/v2/sandboxes", {"templateID": "base", **members})
        assert got[0] == status, (members, got)
    assert refusal(one.ask("POST", "/v2/sandboxes", b"{}x"))[0] == 400
    assert refusal(one.ask("POST", f"/sandboxes/{box.id}/pause", {"memory": False}))[0] == 501
    assert refusal(box.rpc("filesystem.Filesystem/CreateWatcher", {"path": ".", "includeEntry": True}))[0] == 501
    root = {"Authorization": "Basic cm9vdDo="}
    assert refusal(box.rpc("filesystem.Filesystem/Stat", {"path": "."}, **root))[0] == 400


def signed(box, path, operation="read", until=None, token=None, **more):
    """A URL as the SDK makes it."""
    text = f"{path}:{operation}::{token or box.token}" + (f":{until}" if until is not None else "")
    query = {"path": path, "signature": "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("="), **more}
    return "/files?" + urllib.parse.urlencode(query if until is None else {**query, "signature_expiration": until})


def show(box, url, method="GET", data=None, **headers):
    """By somebody who has nothing but the URL."""
    return box.caller.ask(method, url, data, {"X-API-KEY": "", "Content-Type": "application/octet-stream", **headers})


@both
def a_signed_url_opens_one_file_one_way_and_ends_with_what_signed_it(lab, dock):
    one, other = dock.key("one", "acme"), dock.key("two", "globex")
    box, second, foreign = one.create(), one.create(), other.create()
    for each, text in ((box, b"first"), (second, b"second"), (foreign, b"foreign")):
        assert write(each, "f", text)[0] == 200 and write(each, "g", b"g")[0] == 200
        assert show(each, signed(each, "f")) == (200, text)
    later = int(time.time()) + 3600
    assert show(box, signed(box, "f", until=later)) == (200, b"first")
    assert show(box, signed(box, "f", "write"), "POST", b"new")[0] == 200 and show(box, signed(box, "f"))[1] == b"new"
    # Another file, way, time or user; another sandbox's; nobody's; none at all.
    url = signed(box, "f", until=later)
    for bad in (url.replace("path=f", "path=g"), url.replace(str(later), str(later + 1)), url.split("&signature_exp")[0],
                url + "&username=user", signed(box, "f", "write"), signed(box, "f", token="at_" + "0" * 64), signed(box, "f", token="x"),
                "/files?path=f&signature=v1_x", "/files?path=f&signature=v1_" + "A" * 43, signed(box, "f", until=int(time.time()) - 1)):
        assert refusal(show(box, bad))[0] == 401, bad
    for bad in (signed(box, "f") + "&path=g", signed(box, "f") + "&signature=v1_x", signed(box, ""), "/files?path=f&signature=x",
                signed(box, "f", signature_expiration="x"), signed(box, "f", username="root"), signed(box, "../f")):
        assert refusal(show(box, bad))[0] == 400, bad
    assert refusal(show(box, signed(box, "f"), "POST", b"x"))[0] == 401 and show(box, signed(box, "f"))[1] == b"new"
    assert refusal(show(box, signed(box, "f"), **{"E2b-Sandbox-Id": second.id}))[0] == 401
    assert refusal(show(box, signed(box, "f"), **{"X-Access-Token": box.token}))[0] == 400
    for path in ("filesystem.Filesystem/Stat", "process.Process/List"):
        assert show(box, f"/{path}?" + signed(box, "f").split("?")[1], "POST", {"path": "."})[0] == 400, path
    form = b'--B\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n1\r\n'
    got = show(box, signed(box, "h", "write"), "POST", form + form + b"--B--\r\n", **{"Content-Type": "multipart/form-data; boundary=B"})
    assert refusal(got)[0] == 400 and stat(box, "x")[0] == 404, got
    # It ends with its sandbox, with its key, and with what the dock remembers.
    assert second.kill() == 204 and refusal(show(second, signed(second, "f")))[0] in (401, 502)
    dock.gw.kill("dock")
    lab.expects(r"parent: the dock \(pid \d+\) ended by signal 9")
    lab.wait_for("another dock", lambda: reaches(box, signed(box, "f")))
    assert refusal(show(box, signed(box, "f")))[0] == 401
    assert one.ask("POST", f"/v2/sandboxes/{box.id}/connect", {})[0] == 200 and show(box, signed(box, "f")) == (200, b"new")
    assert stat(foreign)[0] == 200 and show(foreign, signed(foreign, "f")) == (200, b"foreign")
    dock.gw.cli("key", "rm", "one", rc=0)
    assert refusal(show(box, signed(box, "f"))) == GONE and show(foreign, signed(foreign, "f")) == (200, b"foreign")


def reaches(box, url):
    try:
        return show(box, url)
    except OSError:
        return None


@both
def a_refresh_makes_a_life_longer_and_never_shorter(lab, dock):
    one, other = dock.key("one", "acme"), dock.key("two", "globex")
    box = one.create(timeout=600)
    ends = lambda: one.ask("GET", f"/sandboxes/{box.id}")[1]["endAt"]  # noqa: E731
    before = ends()
    assert one.ask("POST", f"/sandboxes/{box.id}/refreshes", {"duration": 60})[0] == 204
    assert ends()[:15] == before[:15]
    assert one.ask("POST", f"/sandboxes/{box.id}/refreshes", {"duration": 36000})[0] == 204 and ends() > before
    assert refusal(one.ask("POST", f"/sandboxes/{box.id}/refreshes", {"duration": -1}))[0] == 400
    assert refusal(other.ask("POST", f"/sandboxes/{box.id}/refreshes", {"duration": 60}))[0] == 404


@both
def what_is_too_large_or_malformed_is_refused_and_pieces_of_one_byte_are_read(lab, dock):
    one = dock.key("one", "acme")
    box = one.create()
    assert refusal(one.ask("POST", "/v2/sandboxes", b" " * (1 << 20) + b"{}"))[0] == 413
    head = "".join(f"{k}: {v}\r\n" for k, v in box.headers().items() if v)
    for frame in (b"\0\xff\xff\xff\xff{}", b"\1\0\0\0\2{}", b"\2\0\0\0\2{}", b"\0\0\0\0\2{}x", b"\0\0\0", b"\x80\0\0\0\2{}"):
        got = answer(dock.raw((f"POST /process.Process/Start HTTP/1.1\r\nHost: dock\r\n{head}Content-Length: {len(frame)}\r\n\r\n")
                              .encode() + frame))
        assert b"invalid_argument" in got[1], (frame, got)
    assert answer(dock.raw(b"GET /v2/sandboxes HTTP/1.1\r\nHost: dock\r\nX: " + b"x" * 40000))[0] in (400, 431)
    assert answer(dock.raw(b"GET /health HTTP/1.1\r\nHost: dock\r\nHost: dock\r\n\r\n"))[0] == 400
    assert answer(dock.raw(b"POST /v2/sandboxes HTTP/1.1\r\nHost: d\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"))[0] == 400
    assert box.run("x" * 100_000)[1]["error"]["message"]
    whole = (f"POST /v2/sandboxes HTTP/1.1\r\nHost: dock\r\nX-API-KEY: {one.secret}\r\nConnection: close\r\n"
             "Content-Length: 21\r\n\r\n{\"templateID\":\"base\"}").encode()
    assert answer(dock.raw(whole, pieces=1))[0] == 201
    form = b'--B\r\nContent-Disposition: form-data; name="file"; filename="p"\r\n\r\nby\r\n--b\r\n--ytes\r\n--B--\r\n'
    chunks = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in form) + b"0\r\n\r\n"
    got = answer(dock.raw((f"POST /files HTTP/1.1\r\nHost: dock\r\n{head}Content-Type: multipart/form-data; boundary=B\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n").encode() + chunks, pieces=1))
    assert got[0] == 200 and read(box, "p") == (200, b"by\r\n--b\r\n--ytes"), got
    for body in (b"", b"--C\r\n", form[:-10], form.replace(b'name="file"', b'name="other"'), form.replace(b"--B\r\n", b"--B \r\n", 1)):
        got = one.ask("POST", "/files", body, box.headers(**{"Content-Type": "multipart/form-data; boundary=B"}))
        assert refusal(got)[0] == 400, (body, got)
    assert read(box, "q")[0] == 404


@both
def no_path_leads_out_of_the_workspace(lab, dock):
    one = dock.key("one", "acme")
    box = one.create()
    events, end = box.run("ln -s /etc/passwd link; ln -s / root; ln -s .. up; echo done")
    assert end == {} and events[-1]["end"]["exitCode"] == 0
    for path in ("../x", "a/../../x", "/workspace/../etc/passwd", "%00", "a%00b", "x" * 5000):
        assert refusal(read(box, path))[0] == 400, path
        assert refusal(write(box, path, b"x"))[0] == 400, path
    for path in ("/etc/passwd", "link", "root/etc/passwd", "up/etc/passwd", "/proc/self/environ", "/workspacex/y"):
        assert read(box, path)[0] in (403, 404), path
        assert write(box, path, b"x")[0] in (200, 403, 404, 409), path
        assert not box.run("grep -q '^x$' /etc/passwd && echo written")[0][1:-1], path
    for name in ("../x", "/etc/passwd", "a/../../b"):
        assert write(box, name, b"x", query=False)[0] in (400, 403), name
    assert write(box, 'a%22b', b"x", query=False)[0] == 400
    for source, destination in (("link", "/etc/x"), ("/etc/passwd", "x"), ("link", "../x")):
        assert refusal(box.rpc("filesystem.Filesystem/Move", {"source": source, "destination": destination}))[0] in (400, 403, 404)
    assert refusal(box.rpc("filesystem.Filesystem/ListDir", {"path": "/etc"}))[0] == 403
    assert refusal(box.rpc("filesystem.Filesystem/Remove", {"path": "/etc"}))[0] == 403


def memory(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def role(dock, name):
    """The process of a role of this gateway."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text().startswith(f"countersign-{name}"[:15]) \
                    and dock.gw.process.pid in ancestors(entry.name):
                return int(entry.name)
        except OSError:
            pass
    raise AssertionError(f"no {name} runs")


def ancestors(pid):
    found = []
    while int(pid) > 1:
        pid = (pathlib.Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1]
        found.append(int(pid))
    return found


@both
def who_does_not_read_holds_up_nobody_and_costs_little(lab, dock):
    one, other = dock.key("one", "acme"), dock.key("two", "globex")
    box, neighbour = one.create(), other.create()
    pid = role(dock, "dock")
    before = memory(pid)
    slow = [dock.raw(start_bytes(box, "head -c 60000000 /dev/zero | tr '\\0' x")) for _ in range(4)]
    for sock in slow:
        assert sock.recv(100).startswith(b"HTTP/1.1 200")
    for _ in range(20):
        assert neighbour.says("echo hello") == b"hello\n"
    if b"libasan" not in pathlib.Path(f"/proc/{pid}/maps").read_bytes():  # which keeps what was freed
        assert memory(pid) - before < 40_000, (before, memory(pid))
    said, count = b"", 0
    while b'"exitCode"' not in said[-4096:]:
        more = slow[0].recv(1 << 20)
        assert more, "cut off"
        count += len(more)
        said = (said + more)[-8192:]
    assert count > 60_000_000  # all of it, in base64
    for sock in slow:
        sock.close()


@test()
def who_does_not_read_a_list_keeps_the_list_and_not_what_it_was_made_of(lab):
    dock = Dock(lab)
    box = dock.key("one", "acme").create()
    box.run("seq -f %0200.0f 9000 | xargs touch")
    body = json.dumps({"path": "."}).encode()
    head = "".join(f"{k}: {v}\r\n" for k, v in box.headers().items() if v)
    ask = (f"POST /filesystem.Filesystem/ListDir HTTP/1.1\r\nHost: dock\r\n{head}Content-Type: application/json\r\n"
           f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
    status, told = answer(dock.raw(ask))
    assert status == 200 and len(told["entries"]) == 9000, status
    size = len(json.dumps(told, separators=(",", ":"))) // 1024
    pid = role(dock, "dock")
    before = memory(pid)
    slow = []
    for _ in range(12):  # one behind the other: how much is asked of a sandbox at once has an end of its own
        slow.append(dock.raw(ask))
        head = slow[-1].recv(100)
        assert head.startswith(b"HTTP/1.1 200"), head
    if b"libasan" not in pathlib.Path(f"/proc/{pid}/maps").read_bytes():  # which keeps what was freed
        assert memory(pid) - before < 2 * len(slow) * size, (before, memory(pid), size)
    count = 0
    while more := slow[0].recv(1 << 20):
        count += len(more)
    assert count > size * 1024  # all of it
    for sock in slow:
        sock.close()


WINDOW = 32 * 1024  # bytes of a command's input that may wait (sandbox-shim/inside/shim_talk.h)


@both
def who_shows_no_good_token_changes_nothing_of_a_command_or_of_what_is_watched(lab, dock):
    """A sandbox's name and a command's number are no secrets: what the dock itself keeps of them is touched by nobody whom the
    desk has not let in. F36."""
    one, other = dock.key("one", "acme"), dock.key("two", "globex")
    box, stranger = one.create(), other.create()
    follows = dock.raw(start_bytes(box, "head -c 5 >got; echo done"))
    said = b""
    while b'"pid"' not in said:
        said += follows.recv(4096)
    pid = int(re.search(rb'"pid":(\d+)', said)[1])
    lose = [dock.raw(start_bytes(box, "sleep 600")) for _ in range(2)]
    ended = box.rpc("filesystem.Filesystem/CreateWatcher", {"path": "."})[1]["watcherId"]
    named = {"process": {"pid": pid}}
    token = box.token
    for bad in ("at_" + "0" * 64, stranger.token):
        box.token = bad
        for _ in range(2 * WINDOW // 16384):
            got = box.rpc("process.Process/SendInput", {**named, "input": {"stdin": base64.b64encode(b"x" * 16384).decode()}})
            assert refusal(got) == GONE, got
        for method, message in (("CloseStdin", named), ("Update", named), ("SendSignal", {**named, "signal": "SIGNAL_SIGKILL"}),
                                ("Update", {**named, "pty": {"size": {"rows": 0, "cols": "x"}}}), ("SendSignal", {**named, "signal": 65})):
            assert refusal(box.rpc("process.Process/" + method, message)) == GONE, method
        for _ in range(WATCHES + 1):
            assert refusal(box.rpc("filesystem.Filesystem/CreateWatcher", {"path": "."})) == GONE
    box.token = token
    assert box.rpc("process.Process/SendInput", {**named, "input": {"stdin": base64.b64encode(b"hello").decode()}}) == (200, {})
    while b'"exitCode"' not in said and b'"exited"' not in said:
        more = follows.recv(4096)
        assert more, said
        said += more
    assert read(box, "got") == (200, b"hello")
    assert box.rpc("filesystem.Filesystem/GetWatcherEvents", {"watcherId": ended})[0] == 200
    for sock in lose:
        sock.close()


WATCHES = 16  # folders of one sandbox that are watched (proxy/dock/dock.h)
PLACES = 512  # connections that the dock has at once (proxy/dock/dock.h)


@both
def who_takes_every_connection_keeps_nobody_out(lab, dock):
    """Of whoever holds most of them one ends for each that comes, first of those that are asked nothing: a tenant's, or those that
    have shown no key yet."""
    one, other = dock.key("one", "acme"), dock.key("two", "globex")
    neighbour = other.create()
    for greedy in (f"GET /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-KEY: {one.secret}\r\n\r\n".encode(), b"GET /v2/sa"):
        held = []
        for _ in range(PLACES + 8):
            held.append(dock.raw(greedy))
            if greedy.endswith(b"\r\n\r\n"):
                assert answer(held[-1])[0] == 200
        assert other.ids() == {neighbour.id}
        assert neighbour.says("echo hello") == b"hello\n"
        assert held[0].recv(1) == b""
        for sock in held:
            sock.close()


@both
def a_dock_that_is_killed_is_started_anew_and_knows_its_callers(lab, dock):
    one = dock.key("one", "acme")
    box = one.create(metadata={"a": "b"}, envVars={"COLOR": "blue"})
    assert write(box, "kept", b"over a death")[0] == 200
    old = role(dock, "dock")
    lab.expects(r"parent: the dock \(pid \d+\) ended by signal 9; restarting it")
    os.kill(old, signal.SIGKILL)

    def again():
        try:
            return one.ids() == {box.id}
        except OSError:
            return False
    lab.wait_for("the next dock", again)
    assert read(box, "kept") == (200, b"over a death")
    assert one.ask("GET", f"/sandboxes/{box.id}")[1]["metadata"] == {"a": "b"}
    assert box.says("echo $COLOR") == b"blue\n"
    assert box.rpc("process.Process/List", {})[1] == {"processes": []}


@test()
def a_tenants_directories_are_in_what_it_starts_and_in_nobody_elses(lab):
    """Given by the configuration, never asked for by a caller; a fork has those of its sandbox's tenant, whoever makes it."""
    folder = lab.dir / "rules"
    folder.mkdir(mode=0o755)
    (folder / "one").write_text("of acme")
    lab.dir.chmod(0o755)
    dock = Dock(lab, more=f"mounts:\n  - {{ name: rules, path: {folder}, tenants: [acme], dock: /mnt/rules }}\n"
                          "  - { name: ours, size: 16MiB, tenants: [default] }\n"
                          "  - { name: work, size: 16MiB, share: tenant, tenants: [default, acme] }\n")
    ours, others = dock.key("one", "acme").create(), dock.key("two", "globex").create()
    gw = dock.gw
    gw.cli("sandbox", "exec", ours.id, "--", "grep", "-q", "of acme", "/mnt/rules/one", rc=0)
    gw.cli("sandbox", "exec", others.id, "--", "test", "!", "-e", "/mnt/rules", rc=0)
    done = gw.cli("sandbox", "fork", ours.id, "bad", "--mount", "ours:/mnt/x")
    assert done.rc != 0 and b"no mount ours for this tenant" in done.err, done.both
    gw.cli("sandbox", "start", "mine", "--mount", "work:/mnt/w", rc=0)
    gw.cli("sandbox", "exec", "mine", "--", "touch", "/mnt/w/operators", rc=0)
    gw.cli("sandbox", "fork", ours.id, "copy", "--mount", "work:/mnt/w", "--mount", "rules:/mnt/r", rc=0)
    gw.cli("sandbox", "exec", "copy", "--", "sh", "-c", "test -e /mnt/r/one && test ! -e /mnt/w/operators", rc=0)


main()
