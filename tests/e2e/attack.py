"""For tests that send hostile bytes by hand: one gateway, every way in, and a recording upstream as the oracle.

    rig = Rig(lab)
    with rig.case("A7 A14", "connect"):         # "ok A7 connect" is printed when the oracle agrees at the end of it
        wire = rig.open("connect")              # the ways in: ways.py
        got = wire.talk(wire.head("POST", "/w", "Content-Length: 3") + b"abc")
        rig.refused("A7 two lengths", got)      # 4xx/5xx or nothing, the connection closed, not a byte upstream
        rig.passed("A14 trailers", got, [("POST", "/w", b"abc")])
    rig.settle()                                # what the upstream saw is what the audit decided, message for message

A case prints a line for each of its ids, and for no other reason than these three: an assertion of the rig named the
id (its first word; not needed when the case has only one), every assertion held, and the messages that the upstream
received are the decisions that the audit recorded. A case that fails is kept as the test's failure and the next one
goes on. Paths: reads and POSTs below /w pass at once, /guard is denied, every other write is held.
"""
import base64
import collections
import contextlib
import json
import pathlib
import re
import shutil
import secrets
import socket
import ssl
import sys
import threading
import time
import traceback

from gateway import Gateway, Text, upstream_yaml
from harness import Skip, test
import websocket  # noqa: E402  of lab, which harness made known
from ways import LISTENER, PATIENCE, WAYS, Got, Wire, answers  # noqa: F401

AUDIT_PAGE = 500
READS_LOOKED_AT = 3  # of a rig that is about something else, each by itself
SAFE = ("GET", "HEAD", "OPTIONS")
TUNNELS_KEPT = 16  # opened before each reload
ALLOWED = re.compile(rb"([A-Z]+) (/[!-~]*) HTTP/1\.1\r\n((?:[!-9;-~]+: [ -~\t\x80-\xff]*\r\n)+)\r\n")


def policy(up, more="", private=True, cleartext=False):
    tls, plain = f"host: {up.name}, port: {up.port}", f"host: {up.name}, port: {up.plain_port}, scheme: http"
    cidr = ', allow_private: ["127.0.0.1/32"]'
    rules, more = "", more(up) if callable(more) else more
    for n, place in enumerate((tls, plain)):
        use = "" if n and not cleartext else ", use: api"
        rules += f"""  - {{ id: read{n}, match: {{ {place}, effect: read }}, decide: allow{use} }}
  - {{ id: posts{n}, match: {{ {place}, method: POST, path: "/w/**" }}, decide: allow{use} }}
  - {{ id: writes{n}, match: {{ {place}, effect: [write, delete] }}, except: [{{ path: "/w/**", method: POST }}], decide: hold{use}, approve: {{ within: 2h }} }}
  - {{ id: guard{n}, match: {{ {place}, path: ["/guard", "/guard/**"] }}, decide: deny }}
"""
    return Text(f"""version: 1
name: attacked
packs: [git@1]
upstreams:
{upstream_yaml(up.name, up.port, up.ca)}{upstream_yaml("other.test", up.port, up.ca)}\
  - {{ host: {up.name}, port: {up.plain_port}, address: 127.0.0.1{cidr if private else ""}{", cleartext_credentials: true" if cleartext else ""} }}
credentials:
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{{ {tls} }}{f", {{ {plain} }}" if cleartext else ""}]
rules:
{rules}  - {{ id: other, match: {{ host: other.test, port: {up.port}, effect: read }}, decide: allow }}
{more}""")


def places(up):
    return ((0, f"host: {up.name}, port: {up.port}"), (1, f"host: {up.name}, port: {up.plain_port}, scheme: http"))


def wide(up, text):
    """Beside each rule of the text what allows all below /w, which the rig's policy does for POST."""
    return "".join(f"  - {{ id: {line.split(':', 1)[0].strip()}{n}, match: {{ {place}, {line.split(':', 1)[1].strip()} }}, decide: {verdict} }}\n"
                   for n, place in places(up) for line, verdict in text)


class Rig:
    def __init__(self, lab, more="", config="", hold="inline_wait: 0s, expires: 2h, pending: 1000", private=True, cleartext=False):
        self.lab = lab
        self.up = lab.upstream("upstream.test", "other.test")
        self.secret = lab.canary(secrets.token_urlsafe(32))
        lab.leaves("pending")  # what is held is held, and nobody decides
        self.gw = Gateway(lab, policy(self.up, more, private, cleartext), {"api": self.secret.encode()}, hold=hold, config=config,
                          listeners=('{ name: socks, socks5: "127.0.0.1:0", identity: token }',))
        self.tls = self.tls_context()
        self.loose = self.tls_context()
        self.loose.check_hostname = False
        self.tls.set_alpn_protocols(["http/1.1"])
        self.listeners, self.kept, self.reloads = {}, [], 0
        self.ids, self.named, self.asserted = None, set(), 0
        self.records, self.offset, self.seen = [], 0, 0
        self.raw, self.decided, self.after = {}, collections.Counter(), 0
        self.reloads_refused, self.reads, self.once = False, [], set()
        self.marks = {}  # of a secret in a path: what stands for it in the audit
        self.sockets = collections.Counter()  # messages over WebSockets that ended, by path, as the audit counts them
        self.authorities = {f"{name}:{port}".encode() for name, port in
                            (("upstream.test", self.up.port), ("upstream.test", self.up.plain_port), ("other.test", self.up.port))}

    def tls_context(self):
        return ssl.create_default_context(cafile=str(self.gw.state / "bundle.crt"))

    # ways in

    def control(self, method, path, body=None):
        return self.gw.control(method, path, body)

    def listener(self, who, captured=False):
        if who not in self.listeners:
            wanted = {"name": who, "session": who, "kind": "run", "with": []}
            status, made = self.control("POST", "/api/v1/sandboxes", {**wanted, "captured": True} if captured else wanted)
            assert status == 201, made
            self.listeners[who] = made["listener"]
        return self.listeners[who]

    def knock(self, transport, who="agent"):
        """A connection to the listener, and nothing more."""
        if transport in ("unix", "captured"):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(PATIENCE)
            sock.connect(self.listener(("cap-" if transport == "captured" else "run-") + who, transport == "captured"))
            return sock
        host, _, port = (self.gw.socks if transport == "socks" else self.gw.proxy).rpartition(":")
        sock = socket.create_connection((host, int(port)), PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def open(self, transport, **more):
        """A Wire. One of "reload" was opened, and carried a good request, before the policy was last replaced."""
        if transport != "reload" or more.keys() - {"split"}:  # one with wishes is opened now
            return Wire(self, transport, **more)
        if not self.kept:
            self.kept = [Wire(self, "reload") for _ in range(TUNNELS_KEPT)]
            for wire in self.kept:
                wire.good(1)
            self.reload()
        wire = self.kept.pop()
        wire.split = more.get("split")
        return wire

    def reload(self):
        """Another policy that decides the same of everything a test asks."""
        self.reloads += 1
        rule = f"  - {{ id: reload{self.reloads}, match: {{ host: other.test, path: /reload{self.reloads} }}, decide: deny }}\n"
        self.gw.policy.write_text(self.gw.policy.read_text() + rule)
        status, said = self.control("POST", "/api/v1/reload")
        assert status == 200, said

    def plain(self, data, transport="connect", eof=False, expect=0, timeout=PATIENCE, split=None):
        """Bytes to the listener itself, before any tunnel."""
        wire = Wire.__new__(Wire)
        wire.rig, wire.transport, wire.split, wire.sock = self, "absolute", split, self.knock(LISTENER.get(transport, transport))
        wire.host, wire.port = self.up.name, self.up.port if b"CONNECT" in data else self.up.plain_port
        wire.auth = "" if transport in ("unix", "captured") else f"Proxy-Authorization: {self.gw.basic()}\r\n"
        got = wire.talk(data, eof=eof, expect=expect, timeout=timeout)
        wire.close()
        return got

    # what must be true

    @contextlib.contextmanager
    def case(self, ids, transport, cut=False):
        """"ok ID transport" for each of ids, when what is asserted inside names it and the oracle agrees."""
        self.ids, self.named, self.asserted = ids.split(), set(), 0
        try:
            if transport == "reload" and not self.reloads:
                self.reload()
            yield
            unnamed = [i for i in self.ids if i not in self.named]
            assert self.asserted and (len(self.ids) == 1 or not unnamed), f"nothing was asserted of {unnamed}"
            late = [r for r in self.arrived() if r["complete"]]
            assert not late, f"arrived upstream behind the last look: {late}"
            self.account(cut)
            self.lab.proved += [f"{i} {transport}" for i in self.ids]
        except Skip:
            raise
        except Exception:  # noqa: BLE001  the other cases have their own say
            why = f"{ids} {transport}: {traceback.format_exc()}"
            self.lab.failures += [(f"{i} {transport}", why if i == self.ids[0] else "") for i in self.ids]
            self.arrived()
        finally:
            self.ids = None

    def says(self, what):
        """what is asserted: its first word is an id, or several with commas between."""
        self.asserted += 1
        self.named |= set(what.partition(" ")[0].split(","))

    def holds(self, what, true, detail=""):
        """An assertion of the test's own."""
        self.says(what)
        assert true, f"{what}: {detail}"

    def requests(self):
        """All that the upstream got, as its recorder parsed it."""
        path = self.up.dir / "requests.jsonl"
        if path.exists():
            with open(path, "rb") as lines:
                lines.seek(self.offset)
                new, _, _ = lines.read().rpartition(b"\n")
            if new:
                self.offset += len(new) + 1
                self.records += [json.loads(line) for line in new.splitlines()]
        return self.records

    def arrived(self):
        """What the upstream got since the last look."""
        found = self.requests()
        new, self.seen = found[self.seen:], len(found)
        return new

    def refused(self, what, got, closed=True, status=None, cut=False):
        """cut: of a write that its head alone allowed, a beginning without an end may have left."""
        self.says(what)
        new = [r for r in self.arrived() if r["complete"] or not cut]
        assert not new, f"{what}: arrived upstream: {new}; {got}"
        assert all(400 <= s <= 599 for s in got.status) and b" 200 " not in got.data.split(b"\r\n")[0], f"{what}: {got}"
        assert b"Countersign-Ticket" not in got.data, f"{what}: held, not refused: {got}"
        assert not status or got.status[:1] == [status], f"{what}: not {status}: {got}"
        assert not closed or got.closed, f"{what}: the connection stays open: {got}"

    def stopped(self, what, got, later=False):
        """Held or refused: one as good as the other."""
        if b"Countersign-Ticket: " in got.data:
            self.held(what, got, later)
        else:
            self.refused(what, got, closed=False)

    def held(self, what, got, later=False):
        """later: it asked not to be waited for."""
        self.says(what)
        new = self.arrived()
        assert not new, f"{what}: arrived upstream: {new}; {got}"
        assert got.status == [202 if later else 403] and b"Countersign-Ticket: " in got.data, f"{what}: {got}"

    def passed(self, what, got, wanted, status=200):
        """wanted: (method, target, body or None) of what must have arrived, in order."""
        self.says(what)
        new = self.arrived()
        seen = [(r["method"], r["target"], self.up.body(r["n"])) for r in new]
        assert len(seen) == len(wanted), f"{what}: {seen}, not {wanted}; {got}"
        for have, want in zip(seen, wanted):
            assert have[:2] == want[:2] and want[2] in (None, have[2]), f"{what}: {have}, not {want}; {got}"
        assert got.status == [status] * len(wanted), f"{what}: {got}"
        return new

    def outcomes(self):
        """(method, path) of each result in the audit, by what became of it."""
        while True:
            status, page = self.control("GET", f"/api/v1/audit?after={self.after}&limit={AUDIT_PAGE}")
            assert status == 200, page
            for row in page["audit"]:
                record, self.after = json.loads(row["json"]), row["seq"]
                if record.get("verdict") == "allow" and record.get("effect") == "read":
                    self.reads.append(record)
                if record["kind"] == "result":
                    self.decided[record["outcome"], record["method"], record["path"].partition("?")[0]] += 1
                elif record["kind"] == "websocket":
                    self.sockets[record["path"].partition("?")[0]] += record["messages_out"]
            if len(page["audit"]) < AUDIT_PAGE:
                return self.decided

    def account(self, cut=False):
        """Message for message: what the raw bytes hold, the recorder parsed and the audit decided. And all roles live.
        cut: a beginning may have left, and then its outcome is written down as unknown, or as its early answer."""
        whole, begun = self.received(cut)
        messages_sent = collections.Counter(target.partition("?")[0] for found in self.raw.values() for target in found[2])
        complete, seen = sum(1 for r in self.requests() if r["complete"]), whole + begun - self.silent()
        assert complete <= sum(whole.values()) <= len(self.records) and (cut or complete == sum(whole.values())), \
            f"{sum(whole.values())} raw messages, {complete} requests"
        end, pause = time.monotonic() + PATIENCE, threading.Event()
        while True:  # a result is written down behind the answer
            sure, maybe = collections.Counter(), collections.Counter()
            for (outcome, *message), n in self.outcomes().items():
                if outcome != "not-sent":
                    (maybe if cut and outcome == "unknown" else sure)[tuple(message)] += n
            if not (seen - sure - maybe) and not messages_sent - self.sockets or time.monotonic() > end:
                break
            pause.wait(0.005)
        assert +messages_sent == +self.sockets, f"messages over WebSockets: {messages_sent} came, {self.sockets} were decided"
        assert not (sure - seen) and not (seen - sure - maybe), \
            f"audit but not seen {sure - seen}, seen but not in the audit {seen - sure - maybe}"
        said = self.gw.process.seen
        if self.reloads_refused:  # which the test asked for, and which is an error to the operator
            said = b"\n".join(line for line in said.splitlines() if b"reload refused, the policy stays: " not in line)
        for word in (b'"level":"error"', b"was killed", b"ended with", b"restarting", b"Sanitizer"):
            assert word not in said, said[-2000:].decode("utf-8", "replace")

    def received(self, cut):
        """Two counts of (method, path) in the raw bytes: whole ones, and with cut beginnings."""
        whole, begun = collections.Counter(), collections.Counter()
        for path in self.up.dir.glob("*.in"):
            size = path.stat().st_size
            if self.raw.get(path, (None,))[0] != (size, cut):
                self.raw[path] = (size, cut), *messages(path, cut, self.authorities)
            for method, target, ended in self.raw[path][1]:
                for secret, mark in self.marks.items():
                    target = target.replace(secret, mark)
                (whole if ended else begun)[method, target.partition("?")[0]] += 1
        return whole, begun

    def silent(self):
        """Safe requests that met the end of a kept connection and were sent once more, which is the one that counts.
        Those of self.once are never sent again."""
        path, found = self.up.dir / "silent.jsonl", collections.Counter()
        for row in map(json.loads, path.read_bytes().rpartition(b"\n")[0].splitlines() if path.exists() else ()):
            if row["method"] in SAFE and row["target"] not in self.once:
                found[row["method"], row["target"].partition("?")[0]] += 1
        return found

    def settle(self, cut=False):
        """The account, that the audit's chain is whole, and that what passed as a read was one."""
        self.account(cut)
        self.covered()
        assert self.gw.cli("audit", "verify").rc == 0

    def covered(self, most=READS_LOOKED_AT):
        """B55: each request that passed as a read has a rule of the policy of its time that allows it, in the canonical
        form that was recorded; gives how many different ones there were."""
        keys, ours = ("policy", "sandbox", "method", "scheme", "host", "port", "path", "body", "type", "upgrade"), set()
        for record in self.reads:
            one = tuple(record.get(k) for k in keys)
            if one in ours or len(ours) == most:
                continue
            ours.add(one)
            path = self.lab.dir / "read.json"
            path.write_text(json.dumps(record))
            done = self.gw.cli("policy", "explain", "--json", "--record", path, self.version(record["policy"]))
            said = json.loads(done.out)
            assert done.rc == 0 and (said["decide"], said["effect"], said["rule"]["id"]) == ("allow", "read", record["rule"]["id"]), (record, said)
            rule = re.split(r"\bid: ", pathlib.Path(said["rule"]["file"]).read_text().partition(f"id: {said['rule']['id']}")[2])[0]
            probe = record["op"] in ("git.push.refs", "git.push.probe")  # pass where a push may, or may be asked for
            assert re.search(r"\bdecide: (allow|hold)\b" if probe else r"\bdecide: allow\b", rule), (record, rule)
        return len(ours)

    def version(self, digest):
        """The files of a policy that was in force; the first one's path."""
        place = self.lab.dir / f"version-{digest[:12]}"
        if not place.exists():
            place.mkdir()
            for file in (self.gw.state / "policies" / digest).glob("*-*.yaml"):
                shutil.copy(file, place / file.name.partition("-")[2])
        return place / "policy.yaml"


def messages(path, cut, authorities):
    """(method, target, whole) of each message in an upstream's raw bytes, which hold nothing else, written canonically;
    and the target of each message over a WebSocket, of which nothing else follows its 101."""
    data, found, sockets = path.read_bytes(), [], []
    if data.startswith(b"GET /release?gate="):  # the test's own word, to let an answer go on
        return found, sockets
    while data:
        match = ALLOWED.match(data)
        assert match, f"not canonical in {path.name}: {data[:300]!r}"
        fields = [line.split(b": ", 1) for line in match[3].split(b"\r\n") if line]
        named = {n.lower(): v for n, v in fields}
        names = [n.lower() for n, _ in fields]
        assert names.count(b"host") == 1 and fields[0][0] == b"Host" and fields[0][1] in authorities, fields
        assert b"transfer-encoding" not in names or b"content-length" not in names, fields
        upgrade = named[b"connection"] == b"Upgrade" and named.get(b"upgrade") == b"websocket" and match[1] == b"GET"
        assert upgrade or (named[b"connection"] == b"keep-alive" and b"upgrade" not in named), fields
        if upgrade and b"HTTP/1.1 101 " in path.with_suffix(".out").read_bytes():
            sockets = [match[2].decode()] * frames(data[match.end():])
            found.append((match[1].decode(), match[2].decode(), True))
            break
        rest, whole = data[match.end():], True
        if named.get(b"transfer-encoding") is not None:
            assert named[b"transfer-encoding"] == b"chunked", fields
            end = re.match(rb"(?s)(?:[1-9a-f][0-9a-f]*\r\n.*?\r\n)*?0\r\n\r\n", rest)
            whole, n = bool(end), end.end() if end else len(rest)
        else:
            n = int(named.get(b"content-length", b"0"))
            whole = len(rest) >= n
        assert whole or cut, f"cut body in {path.name}: {rest[:200]!r}"
        data = rest[n:]
        found.append((match[1].decode(), match[2].decode(), whole))
    return found, sockets


def frames(data):
    """How many text and binary messages there are in a client's frames, which are all masked, and nothing else."""
    reader, n = websocket.Reader(lambda: b"", True, data), 0
    with contextlib.suppress(EOFError):  # cut off in the middle of one
        while reader.buffer:
            n += reader.message()[0] in (websocket.TEXT, websocket.BINARY)
    return n


def raw_answer(data, close=True):
    """The path that makes the upstream answer with these very bytes."""
    text = base64.b64encode(data).decode().replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    return f"/raw?b64={text}" + ("&close=1" if close else "")


def fields_of(request):
    return {n.lower(): v for n, v in request["fields"]}


BOTH = ("socks", "captured")  # these carry HTTP with TLS and without


def wires(rig, transport, **more):
    """A connection, or one of each where there are two."""
    for plain in (False, True) if transport in BOTH else (False,):
        yield rig.open(transport, plain=plain, **more) if plain or more else rig.open(transport)


def hidden(rig, what, got, status=200):
    """Not in it, in any form; and it was an answer that would have shown it."""
    rig.holds(what, rig.secret.encode() not in got.data and got.status == [status], got)
    return rig.arrived()


def asked(run):
    """Of a test's ways in those that the command line names by "part of its name_over_way"; all, if none."""
    parts = [word.rpartition("_over_") for word in sys.argv[1:]]
    named = [way for part, _, way in parts if part and part in run.__name__]
    return [way for way in run.ways if way in named] or run.ways


def everywhere(ids, ways=WAYS, cut=False, apart=False, **more):
    """The test by each way in, as one case a way; rig and transport are its arguments. ids as a list: a case each, given
    too. apart: a gateway a way, of a test that leaves behind what the next way would meet."""
    def add(function):
        def by(some):
            def run(lab):
                rig = Rig(lab, **more)
                first = rig.gw.policy.read_text()
                for transport in asked(run):
                    for case in ids if isinstance(ids, list) else [ids]:
                        with rig.case(case, transport, cut):
                            function(rig, transport, *([case] if isinstance(ids, list) else []))
                    if rig.gw.policy.read_text() != first:
                        rig.gw.policy.write_text(first)
                        rig.reload()
                    rig.kept = []
                rig.settle(cut)
            run.__name__, run.ways = f"{function.__name__}_over_{some[0]}" if apart else function.__name__, some
            test()(run)
        for some in [(way,) for way in ways] if apart else [ways]:
            by(some)
        return function
    return add
