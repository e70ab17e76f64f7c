"""The ways in: one connection of a client to the gateway, by hand, ready for a request.

connect   CONNECT, then TLS, on the listener of many       unix      the same on the listener of one sandbox
absolute  http:// absolute-form, no tunnel                 socks     SOCKS5 with a token, then TLS (plain=True: HTTP)
captured  a PROXY v2 header says where it was going, then TLS with an SNI (plain=True: HTTP)
later     a tunnel that has carried two good requests      reload    a tunnel from before the policy was replaced
tunnel    CONNECT, then HTTP without TLS (undici, Node 24): the cases where that could make a difference

Of sandboxes themselves: run (countersign run, beside a stand-in gateway), run-gateway, started and started-user (by root's gateway, and by an ordinary user's)
"""
import random
import re
import socket
import ssl
import struct

from harness import PATIENCE

WAYS = ("connect", "absolute", "unix", "socks", "captured", "later", "reload")
TUNNELLED = (*WAYS, "tunnel")
TUNNELS = tuple(way for way in WAYS if way != "absolute")
LISTENER = {"later": "connect", "reload": "connect", "tunnel": "connect"}  # the rest is met on a listener of its own
BYTES_MAX = 1500  # of a message that goes out byte by byte, the rest in one piece


class Refused(AssertionError):
    """The way in itself said no: no tunnel."""


class Got:
    """What came back: all bytes, the status of each whole answer, whether the connection ended."""

    def __init__(self):
        self.data, self.status, self.closed, self.why = b"", [], False, ""

    def __repr__(self):
        return f"status {self.status}, closed {self.closed} {self.why}: {self.data[-600:]!r}"


def answers(data, heads=(), closed=False):
    """(status, body) of each whole answer in data; those numbered in `heads` are to HEAD. closed: the last may end so."""
    found = []
    while b"\r\n\r\n" in data:
        head, _, data = data.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        fields = dict((a.lower(), b.strip()) for a, _, b in (line.partition(b":") for line in head.split(b"\r\n")[1:]))
        if status < 200 or status in (204, 304) or len(found) in heads:
            body = b""
        elif b"content-length" in fields:
            n = int(fields[b"content-length"])
            if len(data) < n:
                break
            body, data = data[:n], data[n:]
        elif fields.get(b"transfer-encoding") == b"chunked":
            if not re.search(rb"(\A|\r\n)0\r\n\r\n", data):
                break
            body, _, data = data.partition(b"0\r\n\r\n")
        elif closed:
            body, data = data, b""
        else:
            break
        if status >= 200:
            found.append((status, body))
    return found


def pieces(data, split):
    """data cut up: None whole, "bytes" one by one, a number: some cuts by that seed, a list: there."""
    if split is None or len(data) < 2:
        return [data]
    if isinstance(split, list):
        return [data[a:b] for a, b in zip([0, *split], [*split, len(data)])]
    if split == "bytes":
        return [data[n:n + 1] for n in range(min(len(data), BYTES_MAX))] + ([data[BYTES_MAX:]] if len(data) > BYTES_MAX else [])
    cuts = sorted(random.Random(f"{split} {len(data)}").sample(range(1, len(data)), min(3, len(data) - 1)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]


def proxy2(port, address="192.0.2.7", command=0x21):
    """A PROXY v2 header: a connection that was on its way to address:port."""
    block = socket.inet_aton("192.0.2.99") + socket.inet_aton(address) + struct.pack("!HH", 40000, port)
    return b"\r\n\r\n\0\r\nQUIT\n" + bytes([command, 0x11]) + struct.pack("!H", len(block)) + block


class Wire:
    """One connection to the gateway, past everything that comes before the first request."""

    def __init__(self, rig, transport, who="agent", host=None, sni=True, auth=True, plain=False, split=None):
        self.rig, self.transport, self.who, self.split = rig, transport, who, split
        up = rig.up
        self.plain = plain or transport in ("absolute", "tunnel")
        self.host, self.port = host or up.name, up.plain_port if self.plain else up.port
        door = LISTENER.get(transport, transport)
        self.auth = f"Proxy-Authorization: {rig.gw.basic(who)}\r\n" if auth and door in ("connect", "absolute") else ""
        self.sock = rig.knock(door, who)
        self.got = Got()
        self.enter(door, self.host if sni is True else sni)
        if transport == "later":
            self.good(2)

    def enter(self, door, sni):
        if door == "socks":
            self.socks()
        elif door == "captured":
            self.sock.sendall(proxy2(self.port))
        elif door in ("connect", "unix"):
            self.connect()
        if not self.plain:
            self.sock = self.rig.tls.wrap_socket(self.sock, server_hostname=sni or None)

    def connect(self):
        self.sock.sendall(f"CONNECT {self.host}:{self.port} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n{self.auth}\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            more = self.sock.recv(1)
            if not more:
                raise Refused(f"CONNECT: {head!r}")
            head += more
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise Refused(f"CONNECT: {head!r}")

    def socks(self):
        said = socks5(self.sock, self.who, self.rig.gw.token(self.who), self.host, self.port)
        if said != 0:
            raise Refused(f"SOCKS: reply {said}")

    def good(self, n):
        """n reads that pass, so that what follows is not a connection's first."""
        for _ in range(n):
            got = self.talk(self.head("GET", "/ok"), 1, split=None)
            assert got.status == [200], f"a good read: {got}"
            new = [r for r in self.rig.arrived() if r["complete"]]
            assert [r["target"] for r in new] == ["/ok"], new

    def fill(self, data):
        """{T} is what stands before the path, {H} the Host, {P} the port, {A} the line that says who we are."""
        prefix = f"http://{self.host}:{self.port}" if self.transport == "absolute" else ""
        auth = self.auth if self.transport == "absolute" else ""
        data = data.encode("latin-1") if isinstance(data, str) else data
        return (data.replace(b"{T}", prefix.encode()).replace(b"{H}", f"{self.host}:{self.port}".encode())
                .replace(b"{P}", str(self.port).encode()).replace(b"{A}", auth.encode()))

    def head(self, method, path, *fields, version="HTTP/1.1"):
        lines = "".join(line + "\r\n" for line in fields)
        return f"{method} {{T}}{path} {version}\r\nHost: {{H}}\r\n{{A}}{lines}\r\n".encode("latin-1")

    def talk(self, data, expect=0, eof=False, heads=(), timeout=PATIENCE, split=False):
        """Sends, reads until the connection ends or, with expect, until so many whole answers came."""
        got = self.got = Got()
        self.sock.settimeout(timeout)
        try:
            for piece in pieces(self.fill(data), self.split if split is False else split):
                self.sock.sendall(piece)
            if eof:
                self.sock.shutdown(socket.SHUT_WR)
        except OSError as why:
            got.why = f"sending: {why}"
        try:
            while not expect or len(answers(got.data, heads)) < expect:
                more = self.sock.recv(65536)
                if not more:
                    got.closed = True
                    break
                got.data += more
        except TimeoutError:
            got.why = "timeout"
        except (ssl.SSLError, ConnectionError) as why:
            got.closed, got.why = True, str(why)
        got.status = [status for status, _ in answers(got.data, heads, got.closed)]
        with open(self.rig.lab.out / "answers", "ab") as out:  # for the canary search
            out.write(got.data + b"\n")
        return got

    def close(self):
        self.sock.close()


def exactly(sock, n):
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        if not more:
            raise Refused(f"the connection ended after {data!r}")
        data += more
    return data


def socks5(sock, user, password, host, port, split=None):
    """Greeting, login and CONNECT of SOCKS5 (RFC 1928, 1929); gives the reply's code."""
    def say(data):
        for piece in pieces(data, split):
            sock.sendall(piece)
    say(b"\x05\x01\x02")
    assert exactly(sock, 2) == b"\x05\x02", "SOCKS: greeting"
    say(b"\x01" + bytes([len(user)]) + user.encode() + bytes([len(password)]) + password.encode())
    assert exactly(sock, 2) == b"\x01\x00", "SOCKS: login"
    name = host.encode("latin-1")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        where = (b"\x04" if ":" in host else b"\x01") + socket.inet_pton(family, host.strip("[]"))
    except (OSError, ValueError):
        where = b"\x03" + bytes([min(len(name), 255)]) + name[:255]
    say(b"\x05\x01\x00" + where + struct.pack("!H", port & 0xffff))
    reply = exactly(sock, 4)
    exactly(sock, {1: 6, 4: 18}[reply[3]])
    return reply[1]
