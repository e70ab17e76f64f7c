"""For tests that send hostile bytes by hand: one gateway, three transports, and a recording upstream as the oracle.

    rig = Rig(lab)
    wire = rig.open("connect")                  # or "absolute", "unix"
    got = wire.talk(wire.head("POST", "/w", "Content-Length: 3") + b"abc")
    rig.refused("A7 two lengths", got)          # 4xx/5xx or nothing, the connection closed, not a byte upstream
    rig.passed("A14 trailers", got, [("POST", "/w", b"abc")])
    rig.settle()                                # what the upstream saw is what the audit decided, message for message

In a message {T} is what stands before the path (nothing, or http://host:port), {H} the Host, {A} the line that says
who we are. Paths: reads and POSTs below /w pass at once, /guard is denied, every other write is held.
"""
import base64
import collections
import json
import re
import secrets
import socket
import ssl

from gateway import Gateway, upstream_yaml

PATIENCE = 8
ALLOWED = re.compile(rb"([A-Z]+) (/[!-~]*) HTTP/1\.1\r\n((?:[!-9;-~]+: [ -~\t]*\r\n)+)\r\n")


def policy(up, more="", private=True):
    tls, plain = f"host: {up.name}, port: {up.port}", f"host: {up.name}, port: {up.plain_port}, scheme: http"
    cidr = ', allow_private: ["127.0.0.1/32"]'
    rules = ""
    for n, place in enumerate((tls, plain)):
        use = "" if n else ", use: api"
        rules += f"""  - {{ id: read{n}, match: {{ {place}, effect: read }}, decide: allow{use} }}
  - {{ id: posts{n}, match: {{ {place}, method: POST, path: "/w/**" }}, decide: allow{use} }}
  - {{ id: writes{n}, match: {{ {place}, effect: [write, delete] }}, except: [{{ path: "/w/**", method: POST }}], decide: hold{use}, approve: {{ within: 10m }} }}
  - {{ id: guard{n}, match: {{ {place}, path: ["/guard", "/guard/**"] }}, decide: deny }}
"""
    return f"""version: 1
name: attacked
packs: [git@1]
upstreams:
{upstream_yaml(up.name, up.port, up.ca)}{upstream_yaml("other.test", up.port, up.ca)}\
  - {{ host: {up.name}, port: {up.plain_port}, address: 127.0.0.1{cidr if private else ""} }}
credentials:
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{{ {tls} }}]
rules:
{rules}  - {{ id: other, match: {{ host: other.test, port: {up.port}, effect: read }}, decide: allow }}
{more}"""


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


class Wire:
    """One connection to the gateway, past the CONNECT and the handshake where there are some."""

    def __init__(self, rig, transport, who="agent", host=None, sni=True, auth=True):
        self.rig, self.transport = rig, transport
        up = rig.up
        self.host, self.port = host or up.name, up.plain_port if transport == "absolute" else up.port
        self.auth = f"Proxy-Authorization: {rig.gw.basic(who)}\r\n" if auth and transport != "unix" else ""
        self.sock = rig.knock(transport, who)
        self.got = Got()
        if transport != "absolute":
            self.tunnel(self.host if sni is True else sni)

    def tunnel(self, sni, coalesced=b""):
        self.sock.sendall(f"CONNECT {self.host}:{self.port} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n{self.auth}\r\n"
                          .encode() + coalesced)
        head = b""
        while b"\r\n\r\n" not in head:
            more = self.sock.recv(1)
            if not more:
                raise AssertionError(f"CONNECT: {head!r}")
            head += more
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise AssertionError(f"CONNECT: {head!r}")
        self.sock = self.rig.tls.wrap_socket(self.sock, server_hostname=sni or None)

    def fill(self, data):
        prefix = f"http://{self.host}:{self.port}" if self.transport == "absolute" else ""
        auth = self.auth if self.transport == "absolute" else ""
        data = data.encode("latin-1") if isinstance(data, str) else data
        return (data.replace(b"{T}", prefix.encode()).replace(b"{H}", f"{self.host}:{self.port}".encode())
                .replace(b"{A}", auth.encode()))

    def head(self, method, path, *fields, version="HTTP/1.1"):
        lines = "".join(line + "\r\n" for line in fields)
        return f"{method} {{T}}{path} {version}\r\nHost: {{H}}\r\n{{A}}{lines}\r\n".encode("latin-1")

    def talk(self, data, expect=0, eof=False, heads=(), timeout=PATIENCE):
        """Sends, reads until the connection ends or, with expect, until so many whole answers came."""
        got = self.got = Got()
        self.sock.settimeout(timeout)
        try:
            self.sock.sendall(self.fill(data))
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


class Rig:
    def __init__(self, lab, more="", config="", hold="inline_wait: 0s, expires: 10m, pending: 1000", private=True):
        self.lab = lab
        self.up = lab.upstream("upstream.test", "other.test")
        self.secret = lab.canary(secrets.token_urlsafe(32))
        self.gw = Gateway(lab, policy(self.up, more, private), {"api": self.secret.encode()}, hold=hold, config=config)
        self.tls = ssl.create_default_context(cafile=str(self.gw.state / "bundle.crt"))
        self.loose = ssl.create_default_context(cafile=str(self.gw.state / "bundle.crt"))
        self.loose.check_hostname = False
        self.tls.set_alpn_protocols(["http/1.1"])
        self.seen, self.cases, self.listeners = 0, 0, {}

    # ways in

    def control(self, method, path, body=None):
        """(status, JSON) of the control socket."""
        data = json.dumps(body).encode() if body is not None else b""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(PATIENCE)
            sock.connect(str(self.gw.state / "control.sock"))
            sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: control\r\nContent-Type: application/json\r\n"
                         f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
            answer = b""
            while more := sock.recv(65536):
                answer += more
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), json.loads(body) if body else None

    def listener(self, who):
        if who not in self.listeners:
            status, made = self.control("POST", "/api/v1/sandboxes",
                                        {"name": who, "session": who, "kind": "run", "with": []})
            assert status == 201, made
            self.listeners[who] = made["listener"]
        return self.listeners[who]

    def knock(self, transport, who="agent"):
        if transport == "unix":
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(PATIENCE)
            sock.connect(self.listener("run-" + who))
            return sock
        host, _, port = self.gw.proxy.rpartition(":")
        return socket.create_connection((host, int(port)), PATIENCE)

    def open(self, transport, **more):
        return Wire(self, transport, **more)

    def plain(self, data, transport="connect", eof=False, expect=0, timeout=PATIENCE):
        """Bytes to the listener itself, before any tunnel."""
        wire = Wire.__new__(Wire)
        wire.rig, wire.transport, wire.sock = self, "absolute", self.knock(transport)
        wire.host, wire.port = self.up.name, self.up.port if b"CONNECT" in data else self.up.plain_port
        wire.auth = "" if transport == "unix" else f"Proxy-Authorization: {self.gw.basic()}\r\n"
        got = wire.talk(data, eof=eof, expect=expect, timeout=timeout)
        wire.close()
        return got

    # what must be true

    def arrived(self):
        """What the upstream got since the last look."""
        found = self.up.requests()
        new, self.seen = found[self.seen:], len(found)
        return new

    def refused(self, what, got, closed=True, status=None, cut=False):
        """cut: of a write that its head alone allowed, a beginning without an end may have left."""
        self.cases += 1
        new = [r for r in self.arrived() if r["complete"] or not cut]
        assert not new, f"{what}: arrived upstream: {new}; {got}"
        assert all(400 <= s <= 599 for s in got.status) and b" 200 " not in got.data.split(b"\r\n")[0], f"{what}: {got}"
        assert b"Countersign-Ticket" not in got.data, f"{what}: held, not refused: {got}"
        assert not status or got.status[:1] == [status], f"{what}: not {status}: {got}"
        assert not closed or got.closed, f"{what}: the connection stays open: {got}"

    def stopped(self, what, got):
        """Held or refused: one as good as the other."""
        if b"Countersign-Ticket: " in got.data:
            self.held(what, got)
        else:
            self.refused(what, got, closed=False)

    def held(self, what, got):
        self.cases += 1
        new = self.arrived()
        assert not new, f"{what}: arrived upstream: {new}; {got}"
        assert got.status == [403] and b"Countersign-Ticket: " in got.data, f"{what}: {got}"

    def passed(self, what, got, wanted, status=200):
        """wanted: (method, target, body or None) of what must have arrived, in order."""
        self.cases += 1
        new = self.arrived()
        seen = [(r["method"], r["target"], self.up.body(r["n"])) for r in new]
        assert len(seen) == len(wanted), f"{what}: {seen}, not {wanted}; {got}"
        for have, want in zip(seen, wanted):
            assert have[:2] == want[:2] and want[2] in (None, have[2]), f"{what}: {have}, not {want}; {got}"
        assert got.status == [status] * len(wanted), f"{what}: {got}"
        return new

    def settle(self, cut=False):
        """Message for message: what the raw bytes hold, the recorder parsed and the audit decided. And all roles live.
        cut: a beginning may have left, and then its outcome is written down as unknown."""
        records = [r for r in self.up.requests() if r["complete"] or not cut]
        raw = [m for path in sorted(self.up.dir.glob("*.in")) for m in messages(path, cut)]
        assert len(raw) == len(records), f"{len(raw)} raw messages, {len(records)} requests"
        seen, decided = collections.Counter((m, t.partition("?")[0]) for m, t in raw), None
        for _ in range(100):  # a result is written down behind the answer
            decided = collections.Counter((r["method"], r["path"].partition("?")[0]) for r in self.gw.audit() if r["kind"] == "result" and
                                          r["outcome"] not in ("not-sent", cut and "unknown"))
            if sum(decided.values()) >= sum(seen.values()):
                break
        assert decided == seen, f"audit but not seen {decided - seen}, seen but not in the audit {seen - decided}"
        said = self.gw.process.seen
        for word in (b'"level":"error"', b"was killed", b"ended with", b"restarting", b"Sanitizer"):
            assert word not in said, said[-2000:].decode("utf-8", "replace")
        assert self.gw.cli("audit", "verify").rc == 0


def messages(path, cut=False):
    """(method, target) of each message in an upstream's raw bytes, which hold nothing else and are written canonically."""
    data, found = path.read_bytes(), []
    while data:
        match = ALLOWED.match(data)
        assert match, f"not canonical in {path.name}: {data[:300]!r}"
        fields = [line.split(b": ", 1) for line in match[3].split(b"\r\n") if line]
        named = {n.lower(): v for n, v in fields}
        names = [n.lower() for n, _ in fields]
        assert names.count(b"host") == 1 and fields[0][0] == b"Host", fields
        assert b"transfer-encoding" not in names or b"content-length" not in names, fields
        assert named[b"connection"] == b"keep-alive", fields
        rest = data[match.end():]
        if named.get(b"transfer-encoding") is not None:
            end = re.match(rb"(?s)(?:[1-9a-f][0-9a-f]*\r\n.*?\r\n)*?0\r\n\r\n", rest)
            if cut and not end:
                break
            assert named[b"transfer-encoding"] == b"chunked" and end, (path.name, rest[:200])
            data = rest[end.end():]
        else:
            n = int(named.get(b"content-length", b"0"))
            assert len(rest) >= n, f"cut body in {path.name}"
            data = rest[n:]
        found.append((match[1].decode(), match[2].decode()))
    return found


def raw_answer(data, close=True):
    """The path that makes the upstream answer with these very bytes."""
    text = base64.b64encode(data).decode().replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    return f"/raw?b64={text}" + ("&close=1" if close else "")
