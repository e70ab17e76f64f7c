#!/usr/bin/env python3
"""The handshake of a client, by hand (attacks.tsv C4, C5, C6, C26) and the certificates it is shown (C28)."""
import re
import socket
import ssl
import struct
import subprocess
import threading
import warnings

import room  # noqa: F401
from attack import everywhere
from harness import PATIENCE, main
from ways import LISTENER, TUNNELS, Got, Refused, Wire

ENTRIES = tuple(way for way in TUNNELS if way != "later")
SNI, EARLY_DATA, ECH, PADDING = 0, 42, 0xfe0d, 21


def fresh(name="upstream.test", context=None):
    """(TLS object, its outgoing bytes, its incoming ones) of a client that has just said hello."""
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = context or ssl.create_default_context()
    tls = context.wrap_bio(into, out, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return tls, out.read(), into


class Hello:
    """A ClientHello taken apart."""

    def __init__(self, name="upstream.test"):
        data = fresh(name)[1][9:]
        self.fixed, at = data[:34], 34
        self.session, at = data[at + 1:at + 1 + data[at]], at + 1 + data[at]
        n = struct.unpack_from("!H", data, at)[0]
        self.ciphers, at = data[at + 2:at + 2 + n], at + 2 + n
        self.compression, at = data[at + 1:at + 1 + data[at]], at + 1 + data[at]
        self.extensions, at = [], at + 2
        while at < len(data):
            kind, n = struct.unpack_from("!HH", data, at)
            self.extensions.append((kind, data[at + 4:at + 4 + n]))
            at += 4 + n

    def without(self, kind):
        self.extensions = [e for e in self.extensions if e[0] != kind]
        return self

    def sni(self, *names, kind=0):
        """The name list as these bytes."""
        block = b"".join(bytes([kind]) + struct.pack("!H", len(n)) + n for n in names)
        self.without(SNI).extensions.insert(0, (SNI, struct.pack("!H", len(block)) + block))
        return self

    def more(self, kind, data=b""):
        self.extensions.insert(1, (kind, data))
        return self

    def message(self):
        ext = b"".join(struct.pack("!HH", k, len(d)) + d for k, d in self.extensions)
        body = (self.fixed + bytes([len(self.session)]) + self.session + struct.pack("!H", len(self.ciphers)) + self.ciphers
                + bytes([len(self.compression)]) + self.compression + struct.pack("!H", len(ext)) + ext)
        return b"\x01" + struct.pack("!I", len(body))[1:] + body

    def records(self, size=16384, version=b"\x03\x01"):
        return records(self.message(), size, version)


def records(message, size, version=b"\x03\x01"):
    return b"".join(b"\x16" + version + struct.pack("!H", len(message[n:n + size])) + message[n:n + size] for n in range(0, len(message), size))


def entered(rig, transport, host="upstream.test"):
    """A connection at which TLS comes next."""
    wire = Wire.__new__(Wire)
    wire.rig, wire.transport, wire.who, wire.split, wire.plain = rig, transport, "agent", None, True
    wire.host, wire.port = host, rig.up.port
    door = LISTENER.get(transport, transport)
    wire.auth = f"Proxy-Authorization: {rig.gw.basic()}\r\n" if door == "connect" else ""
    wire.sock = rig.knock(door)
    wire.enter(door, None)
    return wire.sock


def raw(rig, transport, data, one_by_one=False):
    """What comes back on a hello, until the end or the first bytes of a handshake."""
    sock, got = entered(rig, transport), Got()
    sock.settimeout(PATIENCE)
    try:
        for piece in ([data[n:n + 1] for n in range(len(data))] if one_by_one else [data]):
            sock.sendall(piece)
        while not got.data.startswith(b"\x16"):
            more = sock.recv(65536)
            if not more:
                got.closed = True
                break
            got.data += more
    except TimeoutError:
        got.why = "timeout"
    except ConnectionError as why:
        got.closed, got.why = True, str(why)
    sock.close()
    return got


def no_handshake(rig, what, got):
    rig.holds(what, got.closed and not got.data.startswith(b"\x16") and not rig.arrived(), got)


def accepted(rig, what, got):
    rig.holds(what, got.data.startswith(b"\x16\x03\x03") and not rig.arrived(), got)


@everywhere("C4", ENTRIES)
def a_handshake_names_its_host_once_and_well(rig, transport):
    accepted(rig, "C4 as it should be", raw(rig, transport, Hello().records()))
    accepted(rig, "C4 upper case", raw(rig, transport, Hello().sni(b"UPSTREAM.Test").records()))
    for what, names in (("an address", [b"127.0.0.1"]), ("an IPv6 address", [b"::1"]), ("two names", [b"upstream.test", b"other.test"]),
                        ("twice the name", [b"upstream.test", b"upstream.test"]), ("a NUL", [b"upstream.test\0.evil.test"]), ("a NUL at the end", [b"upstream.test\0"]),
                        ("a dot at the end", [b"upstream.test."]), ("256 bytes", [b"a" * 60 + (b"." + b"a" * 60) * 3 + b".upstream.test"]), ("a long label", [b"a" * 64 + b".test"]),
                        ("an underscore in front", [b"_upstream.test"]), ("an underscore behind", [b"upstream_.test"]), ("no LDH", [b"upstream test"]), ("a wildcard", [b"*.test"]), ("UTF-8", ["\u0430.test".encode()]), ("an empty name", [b""]), ("no name in the list", []), ("another host", [b"other.test"]), ("a longer name", [b"upstream.test.evil.test"]),
                        ("an empty label", [b"upstream..test"]), ("a port", [b"upstream.test:443"])):
        if transport != "captured" or what not in ("another host", "a longer name"):  # there the SNI is what says where to
            no_handshake(rig, f"C4 {what}", raw(rig, transport, Hello().sni(*names).records()))
    no_handshake(rig, "C4 no SNI", raw(rig, transport, Hello().without(SNI).records()))
    no_handshake(rig, "C4 another kind of name", raw(rig, transport, Hello().sni(b"upstream.test", kind=1).records()))
    no_handshake(rig, "C4 two extensions", raw(rig, transport, Hello().more(SNI, dict(Hello("other.test").extensions)[SNI]).records()))
    for what, block in (("a length that lies", b"\0\x20\0\0\rupstream.test"), ("bytes behind", b"\0\x10\0\0\rupstream.test\0"), ("nothing", b""), ("half a length", b"\0")):
        hello = Hello().without(SNI)
        hello.extensions.insert(0, (SNI, block))
        no_handshake(rig, f"C4 {what}", raw(rig, transport, hello.records()))


@everywhere("C5", ENTRIES)
def an_encrypted_hello_changes_nothing(rig, transport):
    """The outer name is the one that counts; nothing of an inner one is looked at, and none leaves."""
    inner = Hello("other.test").message()[4:]
    outer = b"\0\0\1\0\1\x07\0\x20" + b"k" * 32 + struct.pack("!H", len(inner)) + inner
    for what, block in (("GREASE", outer[:7] + b"\0\x20" + b"g" * 32 + b"\0\x90" + b"x" * 144), ("one that hides another name", outer), ("an inner mark", b"\1"), ("empty", b"")):
        accepted(rig, f"C5 {what}", raw(rig, transport, Hello().more(ECH, block).records()))
        no_handshake(rig, f"C5 {what}, another outer name", raw(rig, transport, Hello("evil.test" if transport != "captured" else "127.1").more(ECH, block).records()))
    # A whole handshake with it, by another client.
    got = s_client(rig, transport, f"GET /ok HTTP/1.1\r\nHost: {rig.up.name}:{rig.up.port}\r\nConnection: close\r\n\r\n", "-serverinfo", str(ECH), "-tls1_2")
    rig.passed("C5 a whole handshake", got, [("GET", "/ok", b"")])
    got = s_client(rig, transport, f"GET /ok HTTP/1.1\r\nHost: other.test:{rig.up.port}\r\n\r\n", "-serverinfo", str(ECH), "-tls1_2")
    rig.refused("C5 the inner name as Host", got, status=421)
    for conn in {r["conn"] for r in rig.requests()}:
        meta = rig.up.meta(conn)
        rig.holds("C5 upstream gets a name of ours", meta["sni"] == rig.up.name and meta["tls"] == "TLSv1.3", meta)


def s_client(rig, transport, data, *options):
    """openssl's own client over this way in."""
    sock, got = entered(rig, transport), Got()
    with socket.create_server(("127.0.0.1", 0)) as server:
        relay = threading.Thread(target=lambda: join(server.accept()[0], sock), daemon=True)
        relay.start()
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{server.getsockname()[1]}", "-servername", rig.up.name, "-quiet", "-ign_eof",
                               "-CAfile", str(rig.gw.state / "bundle.crt"), *options], input=data.encode(), capture_output=True, timeout=PATIENCE)
        relay.join(10)
    got.data, got.closed = done.stdout, True
    got.status = [int(got.data[9:12])] if got.data.startswith(b"HTTP/1.1 ") else []
    got.why = done.stderr[-500:].decode("utf-8", "replace")
    return got


def join(a, b):
    """Carries bytes both ways until both have ended."""
    def one(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    back = threading.Thread(target=one, args=(b, a), daemon=True)
    back.start()
    one(a, b)
    back.join(10)
    a.close()
    b.close()


@everywhere("C6", ENTRIES)
def a_handshake_in_pieces_or_of_another_age(rig, transport):
    whole = Hello().records()
    for what, data, one in (("byte by byte", whole, True), ("a byte a record", Hello().records(1), False), ("seven bytes a record, byte by byte", Hello().records(7), True)):
        got = raw(rig, transport, data, one)
        rig.holds(f"C6 {what}", (got.data.startswith(b"\x16\x03\x03") or got.closed) and not rig.arrived(), got)
    in_pieces(rig, transport)
    long = Hello().more(PADDING, b"\0" * 16000).more(0xfafa, b"\0" * 16000)
    no_handshake(rig, "C6 a hello of 32 KiB", raw(rig, transport, long.records()))
    sslv2 = b"\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10" + b"\x01\0\x80\x02\0\x80\x03\0\x80\x04\0\x80\x05\0\x80\x06\0\x40\x07\0\xc0" + b"c" * 16
    for what, data in (("an SSLv2 hello", sslv2), ("SSL 3.0", ssl3()),
                       ("a record of no handshake", b"\x17" + whole[1:]), ("an alert", b"\x15\x03\x01\0\2\2\0"), ("an empty record", b"\x16\x03\x01\0\0" + whole[5:]),
                       ("a length past the end", whole[:6] + b"\xff\xff\xff" + whole[9:])):
        no_handshake(rig, f"C6 {what}", raw(rig, transport, data))
    accepted(rig, "C6 compression offered", compressed(raw(rig, transport, packed_hello())))
    early = Hello().more(EARLY_DATA).records() + b"\x17\x03\x03\0\x40" + b"GET /ok HTTP/1.1\r\nHost: upstream.test\r\n\r\n".ljust(64, b"x")
    got = raw(rig, transport, early)
    rig.holds("C6 early data", not rig.arrived() and b"HTTP" not in got.data, got)
    old_versions(rig, transport)
    got = s_client(rig, transport, "R\n", "-tls1_2", "-legacy_renegotiation", "-no_ign_eof")
    rig.refused("C6 renegotiation", got, closed=False)


def ssl3():
    hello = Hello().without(43)
    hello.fixed = b"\x03\x00" + hello.fixed[2:]
    return hello.records(version=b"\x03\x00")


def packed_hello():
    hello = Hello()
    hello.compression = b"\x01\x00"
    return hello.without(43).records()  # 43: supported_versions; TLS 1.3 forbids the offer


def compressed(got):
    """Null compression must have been chosen, if a ServerHello came; an alert will do as well."""
    if got.data[:1] == b"\x16":
        assert got.data[44 + got.data[43] + 2] == 0, got
        return got
    assert got.closed, got
    got.data = b"\x16\x03\x03"
    return got


def in_pieces(rig, transport):
    """A whole handshake and a request, whatever the pieces of the first message are."""
    for size in (1, 100):
        tls, hello, into = fresh(context=rig.tls)
        sock = entered(rig, transport)
        sock.sendall(records(hello[5:], size))
        data = sock.recv(65536)
        while data:
            into.write(data)
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                data = sock.recv(65536)
        rig.holds(f"C6 in records of {size}", bool(data))
        sock.close()


def old_versions(rig, transport):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.minimum_version = context.maximum_version = version
            no_handshake(rig, f"C6 {version.name}", raw(rig, transport, fresh(context=context)[1]))


@everywhere("C26", ENTRIES)
def no_session_is_taken_up_under_another_name(rig, transport):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = rig.tls_context()
        context.minimum_version = context.maximum_version = version
        rig.tls, ours = context, rig.tls
        first = rig.open(transport, host="upstream.test")
        rig.passed("C26 the first", first.talk(first.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
        session = first.sock.session
        for name in ("other.test", "upstream.test"):
            sock = entered(rig, transport, name)
            try:
                again = context.wrap_socket(sock, server_hostname=name, session=session)
            except (ssl.SSLError, ConnectionError):
                continue
            rig.holds(f"C26 {version.name} {name}", not again.session_reused and sans(again) == [name], sans(again))
            again.sendall(f"GET /ok HTTP/1.1\r\nHost: upstream.test:{rig.up.port}\r\nConnection: close\r\n\r\n".encode())
            said = again.recv(65536)
            assert name == "upstream.test" or b" 421 " in said, said
            again.close()
        rig.tls = ours
        rig.arrived()


def sans(tls):
    return [value for kind, value in tls.getpeercert().get("subjectAltName", ()) if kind == "DNS"]


LONG = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 40, "test"])


@everywhere("C28", ENTRIES, more=f"  - {{ id: long, match: {{ host: {LONG}, port: 443, effect: read }}, decide: allow }}\n")
def certificates_are_plain_and_few(rig, transport):
    rig.tls, ours, serials = rig.loose, rig.tls, []
    for name in (LONG, "upstream.test", "other.test", "evil.test"):
        wire = rig.open(transport, host=name)
        der = wire.sock.getpeercert(True)
        text = subprocess.run(["openssl", "x509", "-inform", "DER", "-noout", "-text"], input=der, capture_output=True, check=True).stdout.decode()
        names = re.search(r"Subject Alternative Name:.*\n\s*(.*)", text)[1]
        ca = subprocess.run(["openssl", "x509", "-in", str(rig.gw.state / "ca.crt"), "-noout", "-text"], capture_output=True, check=True, text=True).stdout
        rig.holds(f"C28 {name[:20]}", names == f"DNS:{name}" and "CN" not in re.search(r"Subject:(.*)", text)[1] and "CA:FALSE" in text
                  and "TLS Web Server Authentication" in text and "Client" not in text.partition("Extended Key Usage")[2].splitlines()[1], text)
        dates = [ssl.cert_time_to_seconds(re.search(rf"{edge} *: (.*)", t)[1]) for t in (text, ca) for edge in ("Not Before", "Not After")]
        assert dates[0] >= dates[2] and dates[1] <= dates[3], dates
        serials.append(re.search(r"Serial Number:\s*(\S+)", text)[1])
        wire.close()
    rig.holds("C28 serial numbers", len(set(serials)) == len(serials), serials)
    shown = 0
    for n in range(150):
        try:
            rig.open(transport, host=f"h{n}.evil.test").close()
            shown += 1
        except (ssl.SSLError, ConnectionError, Refused):
            pass
    rig.holds("C28 a budget for what is denied", 0 < shown < 100, shown)
    rig.tls = ours
    wire = rig.open(transport, host="upstream.test")
    rig.passed("C28 and the allowed are not in it", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])


if __name__ == "__main__":
    main()
