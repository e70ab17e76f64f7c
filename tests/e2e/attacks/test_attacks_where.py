#!/usr/bin/env python3
"""Where a request goes: the destination that was decided is the one that is reached (attacks.tsv C, A24, A42)."""
import socket
import ssl

import room  # noqa: F401
from attack import everywhere, fields_of
from harness import main
from ports import free_port
from ways import LISTENER, TUNNELS, Got, Refused, proxy2, socks5

ENTRIES = tuple(way for way in TUNNELS if way != "later")  # those that name a destination outside TLS and an SNI inside


def attempt(rig, transport, named, **more):
    """What one gets who asks for /ok of the Host `named` in a tunnel, or instead of a tunnel."""
    got, rig.tls, ours = Got(), rig.loose, rig.tls
    try:
        wire = rig.open(transport, **more)
        got = wire.talk(f"GET /ok HTTP/1.1\r\nHost: {named}\r\nConnection: close\r\n\r\n")
        wire.close()
    except (ssl.SSLError, ConnectionError, Refused) as why:
        got.closed, got.why = True, str(why)
    finally:
        rig.tls = ours
    return got


@everywhere("C1 C2 C3 C7 C30 C35 A24", TUNNELS)
def the_tunnel_the_sni_and_the_host_are_one(rig, transport):
    port, good, other = rig.up.port, "upstream.test", "other.test"
    if transport != "later":
        rows = [("C1", good, sni, sni) for sni in (other, "upstream.test.evil.test", "evil.test", "xupstream.test")]
        rows += [("C2,C30", other, good, good), ("C2,C30", good, other, other), ("C2", "evil.test", good, good), ("C2", good, "evil.test", good)]
        for ids, host, sni, named in rows:
            if transport == "captured" and sni == named and sni in (good, other):
                continue  # an SNI is all that is said there: no name comes before it
            rig.refused(f"{ids} to {host}, SNI {sni}, Host {named}", attempt(rig, transport, f"{named}:{port}", host=host, sni=sni), closed=False)
    for ids, host, named in (("C1,C2,C3,C30", other, good), ("C1,C2,C3,C30", good, other), ("C1,C3", other, "evil.test"), ("C7,C35", good, "")):
        if host == other and transport == "later":
            continue
        more = {} if transport == "later" else {"host": host}
        for spelling in (f"{named}:{port}",) if named else (good, f"{good}:80", f"{good}:443", f"{good}:{port + 1}", f"{good}:{rig.up.plain_port}"):
            rig.refused(f"{ids} SNI {host}, Host {spelling}", attempt(rig, transport, spelling, **more), status=421)
    for scheme in ("http", "https"):
        wire = rig.open(transport)
        got = wire.talk(f"GET {scheme}://evil.test/ok HTTP/1.1\r\nHost: {good}:{port}\r\n\r\n")
        rig.refused(f"A24,C35 {scheme} absolute-form inside", got)
    if transport != "later":
        new = rig.passed("C2 the other host", attempt(rig, transport, f"{other}:{port}", host=other), [("GET", "/ok", b"")])
        assert "authorization" not in fields_of(new[0]), "another host got the credential"
    wire = rig.open(transport)
    rig.passed("C7 upper case", wire.talk(f"GET /ok HTTP/1.1\r\nHost: UPSTREAM.Test:{port}\r\n\r\n", 1), [("GET", "/ok", b"")])


@everywhere("C2 C3 C7 C30 C35 A24", ("tunnel",))
def the_host_of_plain_http_is_where_the_tunnel_goes(rig, transport):
    up = rig.up
    for ids, named in (("C2,C3,C30", "other.test"), ("C2,C3,C30", f"other.test:{up.plain_port}"), ("C3", "evil.test"), ("C7,C35", up.name),
                       ("C7,C35", f"{up.name}:80"), ("C7,C35", f"{up.name}:{up.port}")):
        wire = rig.open(transport)
        rig.refused(f"{ids} Host {named}", wire.talk(f"GET /ok HTTP/1.1\r\nHost: {named}\r\n\r\n"), status=421)
    for scheme in ("http", "https"):
        got = rig.open(transport).talk(f"GET {scheme}://{up.name}:{up.plain_port}/ok HTTP/1.1\r\nHost: {{H}}\r\n\r\n")
        rig.refused(f"A24,C35 {scheme} absolute-form inside", got)
    got = rig.open(transport).talk(f"GET /ok HTTP/1.1\r\nHost: {{H}}\r\nProxy-Authorization: {rig.gw.basic('b')}\r\n\r\n")
    rig.refused("C3 another identity inside", got, status=407)
    at = f"{up.name}:{up.port}"  # the port where TLS is spoken is not that of a rule for http
    sock = rig.knock(transport)
    sock.sendall(f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\nProxy-Authorization: {rig.gw.basic()}\r\n\r\n".encode())
    assert b" 200 " in sock.recv(65536)
    sock.sendall(f"POST /w/1 HTTP/1.1\r\nHost: {at}\r\nContent-Length: 0\r\n\r\n".encode())
    got = Got()
    got.data = sock.recv(65536)
    got.status = [int(got.data[9:12])]
    sock.close()
    rig.refused("C7 without TLS to the port of TLS", got, closed=False, status=403)
    wire = rig.open(transport)
    rig.passed("C7 upper case", wire.talk(f"GET /ok HTTP/1.1\r\nHost: UPSTREAM.Test:{up.plain_port}\r\n\r\n", 1), [("GET", "/ok", b"")])


def connect(rig, target, host=None, transport="connect", more="", auth="{A}", eof=False):
    return rig.plain(f"CONNECT {target} HTTP/1.1\r\nHost: {host or target}\r\n{auth}{more}\r\n".encode("latin-1"), transport, eof=eof)


def ask(rig, transport, host, port, path="/ok", plain=False):
    """What one gets who wants `path` of host:port, whatever these are, on this way in."""
    got, at, sni = Got(), f"{host}:{port}", host.strip("[]").rstrip(".")
    request = f"GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n"
    if transport == "absolute":
        return rig.plain(f"GET http://{at}{path} HTTP/1.1\r\nHost: {at}\r\n{{A}}Connection: close\r\n\r\n".encode("latin-1"))
    if transport == "later":
        return rig.open(transport).talk((request + "\r\n").encode("latin-1"))
    sock = rig.knock(LISTENER.get(transport, transport))
    try:
        if transport == "captured":
            sock.sendall(proxy2(int(port) & 0xffff if str(port).lstrip("-").isdigit() else 0))
        elif transport == "socks":
            if not 0 < int(port) < 65536 if str(port).isdigit() else True:
                raise Refused("no such port in SOCKS")
            code = socks5(sock, "agent", rig.gw.token("agent"), host.encode("latin-1", "replace").decode("latin-1"), int(port))
            if code != 0:
                raise Refused(f"SOCKS reply {code}")
        else:
            auth = "" if transport == "unix" else f"Proxy-Authorization: {rig.gw.basic()}\r\n"
            sock.sendall(f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n{auth}\r\n".encode("latin-1"))
            got.data = sock.recv(65536)
            if b" 200 " not in got.data.split(b"\r\n")[0]:
                got.status, got.closed = [int(got.data[9:12])], sock.recv(1) == b""
                return got
            got.data = b""
        if not plain:
            try:
                sock = rig.loose.wrap_socket(sock, server_hostname=sni or None)
            except (ValueError, TypeError):
                if transport != "captured":
                    raise Refused("no SNI can say that") from None
        sock.sendall((request + "\r\n").encode("latin-1"))
        while more := sock.recv(65536):
            got.data += more
        got.closed = True
    except (OSError, Refused) as why:
        got.closed, got.why = True, str(why)
    finally:
        sock.close()
    got.status = [int(got.data[9:12])] if got.data.startswith(b"HTTP/1.1 ") else []
    return got


BAD_NAMES = [("C10", h) for h in
             ("127.1", "127.0.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "017700000001", "127.000.000.001", "0", "①②⑦.⓪.⓪.①".encode().decode("latin-1"))]
BAD_NAMES += [("C11", h) for h in ("[::1", "[[::1]]", "[fe80::1%25eth0]", "[::1%lo]", "[allowed.example]", "[]", "[127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
                                   "[::FFFF:93.184.216.34]")]
BAD_NAMES += [("C17", h) for h in ("upstream..test", ".upstream.test", "a" * 64 + ".test", ("a." * 127) + "test", "upstream.test..", "")]
BAD_NAMES += [("C18", h) for h in
              ("evil#upstream.test", "evil\\@upstream.test", "evil%2eupstream.test", "upstream.test%00.evil.test", "upstream.test;evil.test", "upstream.test,evil.test",
               "upstream.test evil.test", "upstream.test\tx", "upstream.test/x", "-upstream.test", "upstream\x00.test", "_upstream.test", "up_.test", "http://upstream.test")]
BAD_NAMES += [("C19", "\xd0\xb0.test"), ("C19", "upstream\xe3\x80\x82test"), ("C19", "upstream\xef\xbc\x8etest"), ("C19", "up\xe2\x80\x8bstream.test"), ("C19", "xn--upstream-.test"), ("C19", "xn--a.test"), ("C19", "xn--pstream-lb04b.test"),
              ("C20", "u:p@upstream.test"), ("C20", "upstream.test@evil.test")]
BAD_PORTS = ("0", "65536", "080", "99999", "", "-1", "+443", "4 43", "443x", "0x1bb", str(2 ** 32 + 443))
DENIED = [("C11", h) for h in ("[::1]", "[::]", "[::127.0.0.1]", "[0:0:0:0:0:0:0:1]", "[64:ff9b::a9fe:a9fe]",
                               "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[ff02::1]")]
DENIED += [("C9", "127.0.0.1"), ("C9", "192.0.2.7"), ("C9", "[2001:db8::7]"), ("C10", "0.0.0.0"), ("C10", "127.0.0.1.")]
DENIED += [("C13", h) for h in ("169.254.169.254", "metadata.google.internal", "100.100.100.200", "168.63.129.16", "169.254.170.2", "[fd00:ec2::254]")]
DENIED += [("C17", "localhost"), ("C17", "foo.localhost"), ("C17", "foo.localhost."), ("C18", "upstream.test.evil.test"), ("C18", "evilupstream.test"), ("C18", "upstream.tes"),
           ("C19", "xn--pstream-9ya.test"), ("C19", "xn--80ak6aa92e.com")]
DENIED += [("C36", h) for h in ("host.docker.internal", "gateway.containers.internal", "gateway.docker.internal", "kubernetes.default", "kubernetes.default.svc",
                                "kubernetes.default.svc.cluster.local", "printer.local", "db.internal", "db", "host.containers.internal")]


@everywhere("C8 C9 C10 C11 C13 C17 C18 C19 C20 C36")
def no_other_spelling_of_a_destination_is_reached(rig, transport):
    port = rig.up.plain_port if transport == "absolute" else rig.up.port
    for i, host in BAD_NAMES:
        got = ask(rig, transport, host, port)
        rig.refused(f"{i} {host!r}", got)
        if transport in ("connect", "unix", "reload"):
            assert got.status == [400], (host, got)
    for bad in BAD_PORTS:
        rig.refused(f"C8 port {bad!r}", ask(rig, transport, "upstream.test", bad), closed=transport != "captured")
    for i, host in DENIED:
        rig.refused(f"{i} {host}", ask(rig, transport, host, port), closed=False)
        if transport in ("socks", "captured"):
            rig.refused(f"{i} {host} in the clear", ask(rig, transport, host, rig.up.plain_port, plain=True), closed=False)
    for other in (22, 25, 6379, 8443, 443, 80, port + 1):
        rig.refused(f"C8 port {other}", ask(rig, transport, "upstream.test", other), closed=False)
    if transport in ("connect", "unix", "reload"):
        rig.refused("C8 no port", connect(rig, "upstream.test", transport=transport))
        wire = rig.open(transport, host="UPSTREAM.test.", sni="upstream.test")
        rig.passed("C17 one trailing dot, another case", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])


@everywhere("A42 B43 A39", ("connect", "unix", "reload"))
def a_connection_has_one_connect_and_then_tls(rig, transport):
    up = rig.up
    at = f"{up.name}:{up.port}"
    rig.refused("A42 CL on CONNECT", connect(rig, at, transport=transport, more="Content-Length: 3\r\n"))
    rig.refused("A42 CL 0 on CONNECT", connect(rig, at, transport=transport, more="Content-Length: 0\r\n"))
    rig.refused("A42 TE on CONNECT", connect(rig, at, transport=transport, more="Transfer-Encoding: chunked\r\n"))
    ok = f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n{{A}}\r\n"
    for behind in ("GET /ok HTTP/1.1\r\nHost: {H}\r\nConnection: close\r\n\r\n", "SSH-2.0-x\r\n", ok, "\x05\x01\x00\x03\x01", "\x16\x03\x01\xff\xff" + "x" * 70000, "\x80\x2e\x01\x00\x02" + "\0" * 60):
        got = rig.plain((ok + behind).encode("latin-1"), transport)
        rig.holds(f"B43 {behind[:40]!r} in a tunnel", got.closed and not rig.arrived() and got.data.count(b"HTTP/1.1 200") <= 1, got)
    auth = "" if transport == "unix" else f"Proxy-Authorization: {rig.gw.basic()}\r\n"
    tls = coalesced(rig, rig.knock(LISTENER.get(transport, transport)), ok.replace("{A}", auth).encode(), b"\r\n\r\n")
    rig.holds("A42 a hello behind the head", tls.selected_alpn_protocol() == "http/1.1" and len(rig.arrived()) == 1)
    alpn(rig, transport)


def alpn(rig, transport):
    """HTTP/2 is not what a handshake agrees on, and its preface is no request (the tables have that)."""
    ours = rig.tls
    for offered in (["h2"], ["h2c", "h2"], ["http/1.1", "h2"], ["h2", "http/1.1"]):
        rig.tls = rig.tls_context()
        rig.tls.set_alpn_protocols(offered)
        try:
            agreed = Wire_alpn(rig, transport)
        except (ssl.SSLError, ConnectionError):
            agreed = None
        rig.holds(f"A39 {offered}", agreed == ("http/1.1" if "http/1.1" in offered else None), agreed)
    rig.tls = ours


def Wire_alpn(rig, transport):
    wire = rig.open(transport, host=rig.up.name)
    found = wire.sock.selected_alpn_protocol()
    wire.close()
    return found


def coalesced(rig, sock, before, answered):
    """The client hello in one segment with what comes before it, then one request: the TLS object."""
    bio_in, bio_out = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = rig.tls.wrap_bio(bio_in, bio_out, server_hostname=rig.up.name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    sock.sendall(before + bio_out.read())
    data = b""
    while answered and answered not in data:
        data += sock.recv(65536)
    bio_in.write(data.partition(answered)[2] if answered else b"")
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            sock.sendall(bio_out.read())
            bio_in.write(sock.recv(65536))
    tls.write(f"GET /ok HTTP/1.1\r\nHost: {rig.up.name}:{rig.up.port}\r\n\r\n".encode())
    sock.sendall(bio_out.read())
    bio_in.write(sock.recv(65536))
    sock.close()
    return tls


@everywhere("A42", ("socks", "captured"))
def a_hello_behind_what_comes_before_it_is_not_lost(rig, transport):
    sock = rig.knock(transport)
    if transport == "captured":
        tls = coalesced(rig, sock, proxy2(rig.up.port), b"")
    else:
        name = rig.up.name.encode()
        sock.sendall(b"\x05\x01\x02")
        token = rig.gw.token("agent").encode()
        assert sock.recv(2) == b"\x05\x02"
        sock.sendall(b"\x01\x05agent" + bytes([len(token)]) + token)
        assert sock.recv(2) == b"\x01\x00"
        tls = coalesced(rig, sock, b"\x05\x01\x00\x03" + bytes([len(name)]) + name + rig.up.port.to_bytes(2, "big"), b"\x05\x00\x00\x01" + bytes(6))
    rig.holds("A42 a hello behind it", tls.selected_alpn_protocol() == "http/1.1" and len(rig.arrived()) == 1)
    alpn(rig, transport)


@everywhere("C37", ("connect", "unix", "reload"))
def a_connection_is_a_tunnel_or_has_requests(rig, transport):
    at, plain_at = f"{rig.up.name}:{rig.up.port}", f"{rig.up.name}:{rig.up.plain_port}"
    rig.refused("C37 Host of CONNECT", connect(rig, at, "other.test", transport))
    two = f"GET http://{plain_at}/ok HTTP/1.1\r\nHost: {plain_at}\r\n{{A}}\r\nCONNECT {at} HTTP/1.1\r\nHost: {at}\r\n{{A}}\r\n"
    got = rig.plain(two.encode(), transport)
    rig.holds("C37 CONNECT behind a request", got.status == [200, 400] and got.closed and len(rig.arrived()) == 1, got)
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/ok") + f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n".encode())
    rig.holds("C37 CONNECT in a tunnel", got.status == [200, 400] and got.closed and len(rig.arrived()) == 1, got)


@everywhere("C37", ("absolute", "socks", "captured", "later", "tunnel"))
def no_connect_comes_where_a_request_is_due(rig, transport):
    at = f"{rig.up.name}:{rig.up.port}"
    for plain in (False, True) if transport in ("socks", "captured") else (False,):
        for before in ((b"", 0), (b"GET {T}/ok HTTP/1.1\r\nHost: {H}\r\n{A}\r\n", 1)):
            wire = rig.open(transport, plain=plain)
            if transport == "absolute" and not before[1]:
                continue  # there it is a connection's first request, which is a CONNECT
            got = wire.talk(before[0] + f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n{{A}}\r\n".encode())
            rig.holds("C37 a CONNECT there", got.closed and got.status == [200] * before[1] + [400] and len(rig.arrived()) == before[1], got)


@everywhere("C21", apart=True)
def the_gateways_own_doors_are_never_dialled(rig, transport):
    desk, proxy = free_port(), free_port()
    hosts = {"door.test": "127.0.0.1", "six.test": '"::1"', "mapped.test": '"::ffff:127.0.0.1"', "any.test": "0.0.0.0"}
    cidrs = '["127.0.0.1/32", "::1/128", "0.0.0.0/8", "::/0"]'
    entries = "".join(f"  - {{ host: {h}, port: {p}, address: {a}, allow_private: {cidrs} }}\n" for h, a in hosts.items() for p in (desk, proxy))
    rules = "".join(f"  - {{ id: {h[0]}{p}{s}, match: {{ host: {h}, port: {p}, scheme: {s} }}, decide: allow }}\n"
                    for h in hosts for p in (desk, proxy) for s in ("http", "https"))
    rig.gw.stop()
    text = rig.gw.config.read_text().replace('"localhost:0"', f'"localhost:{desk}"').replace('http: "127.0.0.1:0"', f'http: "127.0.0.1:{proxy}"')
    rig.gw.config.write_text(text)
    rig.gw.policy.write_text(rig.gw.policy.read_text().replace("credentials:\n", entries + "credentials:\n") + rules)
    rig.gw.up()
    for host in hosts:
        for port in (desk, proxy):
            for plain in (True, False) if transport in ("socks", "captured") else (False,):
                got = ask(rig, transport, host, port, "/", plain)
                rig.refused(f"C21 {host}:{port}", got, closed=False)
                assert b"Sign in" not in got.data and b" 407 " not in got.data, (host, port, got)
    # (Nobody listens on [::1] here: that is simply refused by the kernel, as 0.0.0.0 is by its class.)
    if transport != "later":  # there the Host alone is another, and that is not looked up
        rig.lab.wait_for("the reasons", lambda: rig.gw.process.seen.count(b"address is the gateway's own") >= 4)


if __name__ == "__main__":
    main()
