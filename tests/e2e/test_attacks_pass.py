#!/usr/bin/env python3
"""Hostile requests that are well-formed: what leaves is what was decided (attacks.md A, B), and that the decided
destination is the one that is reached (C)."""
import json
import socket
import ssl

from attack import Rig, raw_answer
from harness import main, test
from ways import WAYS


def everywhere(ids, ways=WAYS):
    """The test once a way in; rig and transport are its arguments."""
    def add(function):
        for transport in ways:
            def run(lab, transport=transport):
                rig = Rig(lab)
                with rig.case(ids, transport):
                    function(rig, transport)
                rig.settle()
            run.__name__ = f"{function.__name__}_over_{transport}"
            test()(run)
        return function
    return add


def fields_of(request):
    return {n.lower(): v for n, v in request["fields"]}


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


@everywhere("A37 A38 A51 B3 D33")
def what_is_between_client_and_gateway_stays_there(rig, transport):
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
        got = wire.talk(wire.head("GET", "/ok", "X-Kept: 1", *line.split("\r\n")), 1)
        if got.status != [200]:
            rig.refused(f"{ids} {line}", got, closed=False)
            wire = rig.open(transport) if got.closed else wire
            continue
        sent = fields_of(rig.passed(f"{ids} {line}", got, [("GET", "/ok", b"")])[0])
        extra = set(sent) - ours
        assert not extra, f"{line!r}: {extra} left"
        assert sent["x-kept"] == "1" and sent["connection"] == "keep-alive"
        assert transport == "absolute" or sent["authorization"] == f"Bearer {rig.secret}"
    # An upgrade, and at once bytes that would be the tunnel's: they are a request, and get a decision of their own.
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/ok", "Connection: Upgrade", "Upgrade: foo") + wire.head("POST", "/guard", "Content-Length: 0"), 2)
    rig.holds("A38 pipelined behind an upgrade", got.status in ([200, 403], [403, 403], [400]), got)
    assert [r["target"] for r in rig.arrived()] == ["/ok"] * (got.status[0] == 200), got
    for method, more in (("POST", "Content-Length: 0"), ("DELETE", "X: y")):
        wire = rig.open(transport)
        rig.stopped(f"A38 upgrade on {method}", wire.talk(wire.head(method, "/h/1", "Connection: Upgrade", "Upgrade: h2c", more), 1))


@everywhere("A31 A32 A33")
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


@everywhere("B5 B6 B8 B9 INV10")
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


# ---- destinations ----

@test("C1 connect", "C2 connect", "C3 connect", "C4 connect", "C35 connect", "A24 connect", "D32 connect")
def the_tunnel_the_sni_and_the_host_are_one(lab):
    rig = Rig(lab)
    pairs = [("upstream.test", sni) for sni in ("other.test", "upstream.test.evil.test", "evil.test", "127.0.0.1", "xupstream.test", None)]
    for host, sni in [*pairs, ("other.test", "upstream.test")]:
        rig.tls = rig.loose
        try:
            wire = rig.open("connect", host=host, sni=sni)
        except (ssl.SSLError, ConnectionError):
            continue
        got = wire.talk(b"GET /ok HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % ((sni or host).encode(), rig.up.port))
        rig.refused(f"CONNECT {host}, SNI {sni}", got)
    for host, named in (("other.test", "upstream.test"), ("upstream.test", "other.test"), ("other.test", "evil.test")):
        got = rig.open("connect", host=host).talk(b"GET /ok HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (named.encode(), rig.up.port))
        rig.refused(f"CONNECT and SNI {host}, Host {named}", got, status=421)
    wire = rig.open("connect", host="other.test")
    new = rig.passed("the other host", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
    assert "authorization" not in fields_of(new[0]), "another host got the credential"
    rig.settle()


def connect(rig, target, host=None, transport="connect", more="", auth="{A}", eof=False):
    return rig.plain(f"CONNECT {target} HTTP/1.1\r\nHost: {host or target}\r\n{auth}{more}\r\n".encode("latin-1"), transport, eof=eof)


@test("C8 connect", "C9 connect", "C10 connect", "C11 connect", "C13 connect", "C17 connect", "C18 connect", "C20 connect", "C19 connect")
def no_other_spelling_of_a_destination_is_connected(lab):
    rig = Rig(lab)
    port = rig.up.port
    bad = [f"{h}:{port}" for h in
           ("127.1", "127.0.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "017700000001", "127.000.000.001", "0", "①②⑦.⓪.⓪.①".encode().decode("latin-1"),
            "[::1", "[[::1]]", "[fe80::1%25eth0]", "[::1%lo]", "[allowed.example]", "[]", "[127.0.0.1]", "upstream..test", ".upstream.test",
            "a" * 64 + ".test", ("a." * 127) + "test", "evil#upstream.test", "upstream.test@evil.test", "evil\\@upstream.test", "evil%2eupstream.test",
            "upstream.test%00.evil.test", "upstream.test;evil.test", "upstream.test,evil.test", "upstream.test evil.test", "upstream.test\tx", "upstream.test/x",
            "u:p@upstream.test", "-upstream.test", "\xd0\xb0.test", "upstream\x00.test", "up_stream.test", "upstream.test..", "", "http://upstream.test")]
    bad += [f"upstream.test:{p}" for p in ("0", "65536", "080", "99999", "", "-1", "+443", "4 43", "443x", "0x1bb", str(2 ** 32 + 443))] + ["upstream.test"]
    for target in bad:
        got = connect(rig, target)
        rig.refused(f"CONNECT {target}", got)
        assert b" 200 " not in got.data and got.status[:1] == [400], (target, got)
    for target in ("[::ffff:127.0.0.1]", "[::1]", "[::]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[0:0:0:0:0:0:0:1]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]",
                   "[fd00:ec2::254]", "[ff02::1]", "127.0.0.1", "0.0.0.0", "169.254.169.254", "metadata.google.internal", "100.100.100.200", "168.63.129.16",
                   "169.254.170.2", "127.0.0.1.", "localhost", "foo.localhost", "upstream.test.evil.test", "evilupstream.test", "upstream.tes"):
        got = rig.plain(f"GET http://{target}:{rig.up.plain_port}/ok HTTP/1.1\r\nHost: {target}:{rig.up.plain_port}\r\n{{A}}\r\n".encode(), expect=1)
        rig.refused(f"GET {target}", got, closed=False)
        deny_in_tls(rig, target.rstrip("."), port)
    for other in (22, 25, 6379, 8443, 443, 80, port + 1):
        deny_in_tls(rig, "upstream.test", other)
    wire = rig.open("connect", host="UPSTREAM.test.", sni="upstream.test")
    rig.passed("C17 one trailing dot, another case", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
    rig.settle()


def deny_in_tls(rig, host, port):
    """CONNECT to a denied place is refused, or accepted so that the denial can be shown inside; nothing is dialled."""
    sock = rig.knock("connect")
    sock.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\nProxy-Authorization: {rig.gw.basic()}\r\n\r\n".encode())
    first = sock.recv(4096)
    if b" 200 " in first.split(b"\r\n")[0]:
        try:
            sock = rig.loose.wrap_socket(sock, server_hostname=host.strip("[]") if ":" not in host else None)
            sock.sendall(f"GET /ok HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
            first = sock.recv(4096)
        except (ssl.SSLError, ConnectionError):
            first = b"HTTP/1.1 400 (TLS)\r\n"
    sock.close()
    assert first[9:10] in (b"4", b"5"), (host, port, first)
    assert not rig.arrived(), (host, port)


@test("A42 connect", "B43 connect", "C37 connect", "A39 connect", "A42 unix", "B43 unix", "C37 unix")
def a_connection_has_one_connect_and_then_tls(lab):
    rig = Rig(lab)
    up = rig.up
    for transport in ("connect", "unix"):
        at = f"{up.name}:{up.port}"
        rig.refused("A42 CL on CONNECT", connect(rig, at, transport=transport, more="Content-Length: 3\r\n"))
        rig.refused("A42 TE on CONNECT", connect(rig, at, transport=transport, more="Transfer-Encoding: chunked\r\n"))
        rig.refused("C1 Host of CONNECT", connect(rig, at, "other.test", transport))
        ok = f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n{{A}}\r\n"
        for behind in ("GET /ok HTTP/1.1\r\nHost: {H}\r\n\r\n", "SSH-2.0-x\r\n", ok, "\x05\x01\x00\x03\x01", "\x16\x03\x01\xff\xff" + "x" * 70000, "\x80\x2e\x01\x00\x02" + "\0" * 60):
            got = rig.plain((ok + behind).encode("latin-1"), transport)
            assert got.closed and not rig.arrived() and got.data.count(b"HTTP/1.1") <= 1, (behind, got)
        wire = rig.open(transport)
        rig.refused("B43 CONNECT in a tunnel", wire.talk(f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n"), status=400)
        plain = "GET http://{H}/ok HTTP/1.1\r\nHost: {H}\r\n{A}\r\n".replace("{H}", f"{up.name}:{up.plain_port}")
        got = rig.plain(plain.encode() + ok.encode(), transport)
        assert got.status == [200, 400] and got.closed and len(rig.arrived()) == 1, got
        # The hello in one segment with the head.
        bio_in, bio_out = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = rig.tls.wrap_bio(bio_in, bio_out, server_hostname=up.name)
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        sock = rig.knock(transport)
        auth = "" if transport == "unix" else f"Proxy-Authorization: {rig.gw.basic()}\r\n"
        sock.sendall(ok.replace("{A}", auth).encode() + bio_out.read())
        data = b""
        while b"\r\n\r\n" not in data:
            data += sock.recv(65536)
        bio_in.write(data.partition(b"\r\n\r\n")[2])
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(bio_out.read())
                bio_in.write(sock.recv(65536))
        tls.write(f"GET /ok HTTP/1.1\r\nHost: {at}\r\n\r\n".encode())
        sock.sendall(bio_out.read())
        bio_in.write(sock.recv(65536))
        assert tls.selected_alpn_protocol() == "http/1.1" and len(rig.arrived()) == 1
        sock.close()
        h2 = ssl.create_default_context(cafile=str(rig.gw.state / "bundle.crt"))
        h2.set_alpn_protocols(["h2"])
        rig.tls, ours = h2, rig.tls
        try:
            wire = rig.open(transport)
            assert wire.sock.selected_alpn_protocol() is None
        except (ssl.SSLError, ConnectionError):
            pass
        rig.tls = ours
    rig.settle()


@test("C21 connect", "C21 absolute")
def the_gateways_own_doors_are_never_dialled(lab):
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        desk, proxy = one.getsockname()[1], two.getsockname()[1]
    hosts = {"door.test": "127.0.0.1", "six.test": '"::1"', "mapped.test": '"::ffff:127.0.0.1"', "any.test": "0.0.0.0"}
    cidrs = '["127.0.0.1/32", "::1/128", "0.0.0.0/8", "::/0"]'
    entries = "".join(f"  - {{ host: {h}, port: {p}, address: {a}, allow_private: {cidrs} }}\n" for h, a in hosts.items() for p in (desk, proxy))
    rules = "".join(f"  - {{ id: {h[0]}{p}{s}, match: {{ host: {h}, port: {p}, scheme: {s} }}, decide: allow }}\n"
                    for h in hosts for p in (desk, proxy) for s in ("http", "https"))
    rig = Rig(lab)
    rig.gw.stop()
    text = rig.gw.config.read_text().replace('"localhost:0"', f'"localhost:{desk}"').replace('"127.0.0.1:0"', f'"127.0.0.1:{proxy}"')
    rig.gw.config.write_text(text)
    rig.gw.policy.write_text(rig.gw.policy.read_text().replace("credentials:\n", entries + "credentials:\n") + rules)
    rig.gw.up()
    for host in hosts:
        for port in (desk, proxy):
            got = rig.plain(f"GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n{{A}}\r\n".encode(), expect=1)
            assert got.status and got.status[0] in (403, 502), (host, port, got)
            assert b"Sign in" not in got.data and b"407" not in got.data, (host, port, got)
            deny_in_tls(rig, host, port)
    # (Nobody listens on [::1] here: that is simply refused by the kernel, as 0.0.0.0 is by its class.)
    lab.wait_for("the reasons", lambda: rig.gw.process.seen.count(b"address is the gateway's own") >= 8, 5)
    rig.settle()


if __name__ == "__main__":
    main()
