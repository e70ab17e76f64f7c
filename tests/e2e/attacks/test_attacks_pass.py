#!/usr/bin/env python3
"""Hostile requests that are well-formed: what leaves is what was decided (attacks.tsv A, B)."""
import room  # noqa: F401
from attack import everywhere, fields_of
from harness import main
from ways import TUNNELLED


@everywhere("A14")
def trailers_never_leave(rig, transport):
    names = ("Content-Length: 9", "Transfer-Encoding: chunked", "Host: evil.test", "Authorization: mine", "Content-Type: a/b",
             "X-HTTP-Method-Override: DELETE", "Cookie: a=b", "X-Secret: 1")
    wire = rig.open(transport)
    for line in names:
        got = wire.talk(wire.head("POST", "/w/1", "Transfer-Encoding: chunked") + f"5\r\nhello\r\n0\r\n{line}\r\n\r\n".encode(), 1)
        new = rig.passed(f"A14 {line}", got, [("POST", "/w/1", b"hello")])
        name, _, value = line.partition(": ")
        assert [name, value] not in new[0]["fields"] or name == "Transfer-Encoding", new


@everywhere("A4 A11 A22 A27")
def what_real_clients_send_is_passed_on_in_one_form(rig, transport):
    """A coding in any case, extensions of chunks, a name in another language, what URL libraries leave as it is."""
    wire, name, raw = rig.open(transport), "caf\u00e9".encode(), "/w/a|b^c?q=|{}^`\\"
    for spelled in ("chunked", "Chunked", "CHUNKED", "cHuNkEd"):
        head = wire.head("POST", raw, f"Transfer-Encoding: {spelled}", f"X-Name: {name.decode('latin-1')}")
        got = wire.talk(head + b'5;a;b=c\r\nhello\r\n1;d="e, f"\r\n!\r\n0;x\r\n\r\n', 1)
        new = rig.passed(f"A4,A11,A22,A27 {spelled}", got, [("POST", "/w/a%7Cb%5Ec?q=%7C%7B%7D%5E%60%5C", b"hello!")])[0]
        sent = rig.up.raw(new["conn"])[new["offset"]:]
        assert fields_of(new)["x-name"].encode("latin-1") == name, new
        assert b";" not in sent and sent.lower().count(b"transfer-encoding: chunked\r\n") == sent.count(b"Transfer-Encoding: chunked\r\n"), sent


@everywhere(["A37", "A38", "A51", "B3", "D33"])
def what_is_between_client_and_gateway_stays_there(rig, transport, case):
    wire = rig.open(transport)
    ours = {"host", "connection", "accept-encoding", "authorization", "content-length", "x-kept"}
    rows = (("A37", "Connection: Authorization, Host, Content-Length, Transfer-Encoding, Cookie, X-Api-Key, Accept-Encoding"),
            ("A37", "Connection: close-not, X-Injected\r\nX-Injected: 1"), ("A37", "Connection: X-Injected\r\nX-Injected: 1\r\nConnection: close-not"),
            ("A37,D33", "Connection: keep-alive\r\nKeep-Alive: timeout=9\r\nProxy-Connection: x"),
            ("A38", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
            ("A38", "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), ("A38", "Connection: notupgrade\r\nUpgrade: foo"),
            ("A38", "Connection: Upgrade\r\nUpgrade: foo"), ("A51", "Via: 1.1 x"),
            ("A51", "X-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\nX-Forwarded-Host: evil.test"),
            ("A51,B3", "X-Original-URL: /guard\r\nX-Rewrite-URL: /guard\r\nX-Forwarded-Path: /guard\r\nX-Envoy-Original-Path: /guard"),
            ("A51", "X-Forwarded-Method: DELETE\r\nX-Forwarded-Proto: http"), ("A51,B3", "X_Original_URL: /guard\r\nx_forwarded_for: 1"),
            ("A37", "TE: trailers\r\nTrailer: X-A"), ("D33", "Proxy-Foo: 1\r\nProxy: http://evil.test"),
            ("A51", "Countersign-Reason: please\r\nCountersign-Decision: allow"))
    for ids, line in rows:
        if case not in ids.split(","):
            continue
        got = wire.talk(wire.head("GET", "/ok", "X-Kept: 1", *line.split("\r\n")), 1)
        if got.status != [200]:
            rig.refused(f"{ids} {line}", got, closed=False)
            wire = rig.open(transport) if got.closed else wire
            continue
        sent = fields_of(rig.passed(f"{ids} {line}", got, [("GET", "/ok", b"")])[0])
        extra = set(sent) - ours - {"sec-websocket-key"}
        assert not extra, f"{line!r}: {extra} left"
        assert sent["x-kept"] == "1" and sent["connection"] == "keep-alive"
        assert transport == "absolute" or sent["authorization"] == f"Bearer {rig.secret}"
    if case != "A38":
        return
    # An upgrade, and at once bytes that would be the tunnel's: they are a request, and get a decision of their own.
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/ok", "Connection: Upgrade", "Upgrade: foo") + wire.head("POST", "/guard", "Content-Length: 0"), 2)
    rig.holds("A38 pipelined behind an upgrade", got.status in ([200, 403], [403, 403], [400]), got)
    assert [r["target"] for r in rig.arrived()] == ["/ok"] * (got.status[0] == 200), got
    for method, more in (("POST", "Content-Length: 0"), ("DELETE", "X: y")):
        wire = rig.open(transport)
        rig.stopped(f"A38 upgrade on {method}", wire.talk(wire.head(method, "/h/1", "Connection: Upgrade", "Upgrade: h2c", more), 1))


@everywhere("A31 A32 A33", TUNNELLED)
def every_request_of_a_connection_is_decided_by_itself(rig, transport):
    wire = rig.open(transport)
    read, body = wire.head("GET", "/ok"), b"n=1"
    write, free = wire.head("POST", "/h/1", "Content-Length: 3") + body, wire.head("POST", "/w/1", "Content-Length: 3") + body
    got = wire.talk(read + free + wire.head("HEAD", "/ok?2") + read, 4, heads=(2,))
    rig.holds("A31 four at once", got.status == [200] * 4, got)
    assert [(r["method"], r["target"]) for r in rig.arrived()] == [("GET", "/ok"), ("POST", "/w/1"), ("HEAD", "/ok?2"), ("GET", "/ok")]
    wire = rig.open(transport)
    got = wire.talk(read + write + wire.head("GET", "/after"), 3)
    assert got.status[:2] == [200, 403] and [r["target"] for r in rig.arrived()][:1] == ["/ok"], got
    wire = rig.open(transport)
    got = wire.talk(read * 100, 100)
    rig.passed("A31 a hundred at once", got, [("GET", "/ok", b"")] * 100)
    the_next_waits(rig, transport)
    wire = rig.open(transport)
    got = wire.talk(read + b"\x00garbage\r\n\r\n" + read)
    assert got.status == [200, 400] and got.closed and len(rig.arrived()) == 1, got
    inner = b"POST {T}/w/inner HTTP/1.1\r\nHost: {H}\r\n{A}Content-Length: 0\r\n\r\n"
    wire = rig.open(transport)
    inner = wire.fill(inner)
    got = wire.talk(wire.head("POST", "/w/outer", f"Content-Length: {len(inner)}") + inner, 1)
    rig.passed("A32 a request in the body", got, [("POST", "/w/outer", inner)])
    got = wire.talk(wire.head("POST", "/h/outer", "Content-Length: 0") + inner.replace(b"/w/", b"/guard/"), 2)
    rig.held("A32 more than was declared", held_first(got))
    wire = rig.open(transport)
    wire.talk(read, 1)
    rig.arrived()
    got = wire.talk(wire.head("GET", "/guard/x"), 1)
    rig.refused("A33 another path", got, closed=False, status=403)
    other = b"GET {T}/ok HTTP/1.1\r\nHost: other.test\r\n{A}\r\n"
    rig.refused("A33 another host", rig.open(transport).talk(read.replace(read, other)), status=400 if transport == "absolute" else 421)


def the_next_waits(rig, transport):
    """What comes while an answer is awaited is looked at when that has come."""
    wire, other = rig.open(transport), rig.open(transport)
    wire.sock.sendall(wire.fill(wire.head("GET", "/slow?gate=a")))
    rig.lab.wait_for("the first", lambda: len(rig.requests()) > rig.seen)
    new = rig.arrived()
    wire.sock.sendall(wire.fill(wire.head("POST", "/w/next", "Content-Length: 1") + b"x" + wire.head("GET", "/guard")))
    other.good(2)
    rig.holds("A31 the next waits", [r["target"] for r in new] == ["/slow?gate=a"] and not rig.arrived())
    rig.up.release("a")
    got = wire.talk(b"", 3)
    rig.holds("A31 the next in its turn", got.status == [200, 200, 403] and [r["target"] for r in rig.arrived()] == ["/w/next"], got)
    wire.close()


def held_first(got):
    """The second answer must be a refusal of its own; the first is looked at further."""
    assert got.status == [403, 403], got
    got.status = got.status[:1]
    return got


@everywhere("A36 B1 B2 A30 A35")
def what_could_be_a_write_is_held(rig, transport):
    overrides = [f"{n}: {v}" for n in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "x-http-METHOD-override",
                                       "X_HTTP_Method_Override") for v in ("DELETE", "GET")]
    wire = rig.open(transport)
    for line in overrides:  # the field goes, so what leaves is the GET that was decided
        sent = fields_of(rig.passed(f"B1 {line}", wire.talk(wire.head("GET", "/ok", line), 1), [("GET", "/ok", b"")])[0])
        assert not [n for n in sent if "method" in n], sent
    rig.held("B1 POST as GET", wire.talk(wire.head("POST", "/h/1", "Content-Length: 1", "X-HTTP-Method-Override: GET") + b"x", 1))
    rows = [("B2", "GET", f"/ok?{q}", "", b"") for q in
             ("_method=DELETE", "a=b&_method=PUT", "x-http-method-override=PUT", "$method=DELETE", "%5Fmethod=DELETE", "a;_method=PUT",
              "_METHOD=DELETE", "X-HTTP-Method-Override=PUT", "%24method=PUT", "_%6dethod=PUT")]
    rows += [("A36", m, "/ok", "Content-Length: 3", b"a=b") for m in ("GET", "HEAD", "OPTIONS", "DELETE")]
    rows += [("A36", m, "/ok", "Transfer-Encoding: chunked", b"3\r\na=b\r\n0\r\n\r\n") for m in ("GET", "HEAD", "OPTIONS", "DELETE")]
    rows += [("A30", m, "/ok", "", b"") for m in ("get", "GETX", "Get", "PURGE", "PROPFIND", "QUERY", "MOVE", "LINK", "M-SEARCH", "DELETE", "PUT")]
    rows += [("A35", "POST", "/h/1", "Content-Length: 3\r\nExpect: 100-continue", b"a=b")]
    for i, method, path, line, body in rows:
        wire = rig.open(transport)
        got = wire.talk(wire.head(method, path, *line.split("\r\n") if line else []) + body, 1, heads=(0,) if method == "HEAD" else ())
        rig.stopped(f"{i} {method} {path} {line} {transport}", got)
        wire.close()
    wire = rig.open(transport)
    for i, method, path, line, body in [("A35", "POST", "/w/1", "Content-Length: 3\r\nExpect: 100-continue", b"a=b"),
                                        ("A35", "GET", "/ok", "Expect: 100-continue", b"")]:
        got = wire.talk(wire.head(method, path, *line.split("\r\n")) + body, 1)
        sent = fields_of(rig.passed(f"{i} {method}", got, [(method, path, body)])[0])
        assert "expect" not in sent and got.data.count(b"100 Continue") <= 1, sent
    got = rig.open(transport).talk(wire.head("POST", "/guard", "Content-Length: 3", "Expect: 100-continue"))
    rig.refused("A35 denied", got, status=403)
    assert b"100 Continue" not in got.data


@everywhere("B5 B6 B8 B9 INV10", TUNNELLED)
def no_spelling_of_a_denied_path_gets_through(rig, transport):
    wire = rig.open(transport)
    for path in ("/guard", "/guard/", "/guard/x", "/%67uard", "/g%75ard/x", "/GUARD", "/Guard/x", "/%47uard", "/guard//x", "/guard;a=b",
                 "/guard;a/x", "/guard%2fx", "/guard%2Fx", "/guard/..%2fguard", "/guard?x", "/guard/%2e%2e%2fok", "/;a/guard", "/%252e%252e/guard",
                 "/ok%2f..%2fguard", "/ok/%252e%252e/guard", "/%25%36%37uard", "/%2567uard", "/guard%3bx", "/guard%3Bx", "/guard%00"):
        got = wire.talk(wire.head("GET", path), 1)
        rig.refused(f"B5,B6,B8,B9,INV10 {path}", got, closed=False)
        wire = rig.open(transport) if got.closed or b"Connection: close" in got.data else wire
    rows = (("/a%41", "/aA"), ("/%7euser", "/~user"), ("/a%c3%a4", "/a%C3%A4"), ("/a%2fb", "/a%2Fb"), ("/a;b=c", "/a;b=c"), ("/a//b", "/a//b"))
    for path, canonical in rows:
        got = wire.talk(wire.head("GET", path), 1)
        if got.status == [200]:
            rig.passed(f"B8 {path}", got, [("GET", canonical, b"")])
        else:
            rig.refused(f"B8 {path}", got, closed=False)
            wire = rig.open(transport)


@everywhere("A4 A11 A27")
def what_is_written_otherwise_leaves_in_its_one_form(rig, transport):
    wire = rig.open(transport)
    for path, canonical in (("/a|b^c", "/a%7Cb%5Ec"), ("/ok?q={a|b}^`\\", "/ok?q=%7Ba%7Cb%7D%5E%60%5C"), ("/ok?|=%7c", "/ok?%7C=%7C")):
        rig.passed(f"A27 {path}", wire.talk(wire.head("GET", path), 1), [("GET", canonical, b"")])
    rig.stopped("A27 a denied path behind it", rig.open(transport).talk(wire.head("GET", "/guard/a|b"), 1))
    wire = rig.open(transport)
    for name in ("chunked", "Chunked", "CHUNKED"):
        for body in ("5\r\nhello\r\n0\r\n\r\n", '5;a;b=c\r\nhello\r\n0;d="e, f"\r\n\r\n'):
            got = wire.talk(wire.head("POST", "/w/1", f"Transfer-Encoding: {name}") + body.encode(), 1)
            sent = rig.passed(f"A4,A11 {name} {body!r}", got, [("POST", "/w/1", b"hello")])[0]
            assert fields_of(sent).get("transfer-encoding", "chunked") == "chunked", sent


@everywhere("B39 B44")
def what_only_looks_like_a_git_read_is_held(rig, transport):
    push = b"0094" + b"0" * 40 + b" " + b"1" * 40 + b" refs/heads/main\0 report-status"
    rows = [("GET", f"/r.git/info/refs?{q}", "", b"") for q in
            ("service=git-upload-pack&service=git-receive-pack", "service=GIT-RECEIVE-PACK", "", "service=", "x",
             "service=git-upload-pack&", "service=git%2Dreceive-pack&x=1", "service=git-upload-archive")]
    rows += [("GET", "/r.git/info/refs", "", b""), ("GET", "/r.git/info/refs/?service=git-upload-pack", "", b""),
             ("GET", "/r.git/INFO/REFS?service=git-receive-pack", "", b""), ("PROPFIND", "/r.git/", "", b""), ("PUT", "/r.git/x", "", b""),
             ("POST", "/r.git/git-upload-pack", "application/json", b"0000"), ("POST", "/r.git/git-upload-pack?a=b", "application/x-git-upload-pack-request", b"0000"),
             ("POST", "/r.git/git-upload-pack/", "application/x-git-upload-pack-request", b"0000"),
             ("POST", "/r.git/git-upload-archive", "application/x-git-upload-archive-request", b"0000"),
             ("POST", "/r.git/info/lfs/objects/batch", "application/vnd.git-lfs+json", b'{"operation":"upload"}'),
             ("POST", "/r.git/info/lfs/locks", "application/json", b"{}")]
    wire = rig.open(transport)
    for method, path, kind, body in rows:
        extra = [f"Content-Type: {kind}", f"Content-Length: {len(body)}"] if kind else []
        got = wire.talk(wire.head(method, path, *extra) + body, 1)
        rig.stopped(f"B39,B44 {method} {path}", got)
        wire = rig.open(transport)
    kind = "application/x-git-receive-pack-request"
    for method, path, kind, body in (
            ("POST", "/r.git/git-receive-pack", kind, push), ("POST", "/r.git//git-receive-pack", "text/plain", b"0000"),
            ("POST", "/r.git/GIT-receive-pack", kind, b"0000"), ("POST", "/r.git/git-receive-pack/", kind, b"0000"),
            ("POST", "/r.git/git-receive-pack", kind + "\r\nContent-Encoding: gzip", b"0000"),
            ("POST", "/r.git/git-receive-pack?a=b", kind, b"0000"), ("GET", "/r.git/git-receive-pack", kind, b"0000"),
            *[(m, "/r.git/git-receive-pack", kind, b"0000") for m in ("DELETE", "PUT", "PATCH", "MOVE")]):
        got = rig.open(transport).talk(wire.head(method, path, f"Content-Type: {kind}", f"Content-Length: {len(body)}") + body, 1)
        rig.stopped(f"B39 {method} {path} {body}", got)


if __name__ == "__main__":
    main()
