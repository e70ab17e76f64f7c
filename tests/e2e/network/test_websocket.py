#!/usr/bin/env python3
"""WebSockets over each transport: which upgrades pass, what may be sent afterwards, and what never comes back."""
import base64
import functools
import json
import os
import pathlib
import re
import secrets
import select
import sqlite3
import ssl

import room  # noqa: F401
import attack
import ways
from attack import PATIENCE, WAYS
from gateway import NOT_RELEASED, Gateway, upstream_yaml
from harness import main, test
import certs  # noqa: E402  of the lab, which harness made known
import websocket  # noqa: E402
from servers import npm_modules  # noqa: E402
from websocket import BINARY, CLOSE, KEY, PING, PONG, TEXT, close, frame

END = b"\r\n"
TLS = tuple(way for way in WAYS if way != "absolute")  # no credential goes over http://
DEEP = ("connect", "absolute", "captured")  # where it is frames that are looked at, not the way they came


def rules(up):
    text = ""
    for n, place in enumerate((f"host: {up.name}, port: {up.port}", f"host: {up.name}, port: {up.plain_port}, scheme: http")):
        use = "" if n else ", use: api"
        for name, more, then in (("feed", "effect: read, ", ""), ("talk", "", ", messages: { send: text, max: 1KiB, total: 4KiB }"),
                                 ("any", "", ", messages: { send: [text, binary], max: 192KiB }"),
                                 ("short", "", ", messages: { send: text, within: 1s }")):
            text += f'  - {{ id: {name}{n}, match: {{ {place}, {more}path: "/ws/{name}", ws: {{}} }}, decide: allow{use}{then} }}\n'
        text += f'  - {{ id: held{n}, match: {{ {place}, path: "/ws/held", ws: {{}} }}, decide: hold{use}, messages: {{ send: text }} }}\n'
        text += f'  - {{ id: named{n}, match: {{ {place}, path: "/ws/named", ws: {{ subprotocol: [v1, "graphql-*"] }} }}, decide: allow{use}, messages: {{ send: text }} }}\n'
        text += f'  - {{ id: limited{n}, match: {{ {place}, path: "/ws/limited", ws: {{}} }}, decide: allow{use}, messages: {{ send: text }}, limits: {{ requests: 2/1d }} }}\n'
        text += f'  - {{ id: answers{n}, match: {{ {place}, path: "/raw", ws: {{}} }}, decide: allow{use} }}\n'
    return text


def everywhere(ids, ways=WAYS, apart=False):
    """As in attack.py; what the test has looked at itself is not looked at again."""
    def add(function):
        @functools.wraps(function)
        def looked(rig, transport):
            function(rig, transport)
            rig.arrived()
        attack.everywhere(ids, ways, apart=apart, more=rules)(looked)
        return function
    return add


def arrived(rig):
    """What came upstream since this was asked last, whoever looked in between."""
    found, rig.aside = getattr(rig, "aside", []) + rig.arrived(), []
    return found


HANDSHAKE = ("Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13")


class Socket:
    """A client. Its handshake is as given; all that comes is kept for the canary search."""

    def __init__(self, rig, transport, path, *fields, handshake=HANDSHAKE, behind=b""):
        rig.aside = arrived(rig)  # a way in may look for what it sends itself
        self.rig, self.wire, self.data = rig, rig.open(transport), bytearray()
        self.wire.sock.settimeout(PATIENCE)
        self.send(self.wire.fill(self.wire.head("GET", path, *handshake, *fields)) + behind)
        head = b""
        while b"\r\n\r\n" not in head:
            more = self.recv()
            assert more, f"no answer: {head!r}"
            head += more
        self.head, _, rest = head.partition(b"\r\n\r\n")
        self.status = int(self.head.split(b" ")[1])
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        self.fields = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        self.reader = websocket.Reader(self.recv, False, rest)
        if self.status == 101:
            assert self.fields["sec-websocket-accept"] == websocket.accept_of(KEY), self.head
            assert self.fields["upgrade"].lower() == "websocket" and self.fields["connection"].lower() == "upgrade", self.head
            assert "sec-websocket-extensions" not in self.fields, self.head

    def recv(self):
        try:
            data = self.wire.sock.recv(65536)
        except (ssl.SSLError, ConnectionError):
            data = b""
        self.data += data
        with open(self.rig.lab.out / "answers", "ab") as out:
            out.write(data)
        return data

    def send(self, data):
        self.wire.sock.sendall(data)

    def pump(self, data):
        """Sends all of it and takes meanwhile what comes: one thread, for a TLS connection is no two threads' at once."""
        sock, data = self.wire.sock, memoryview(data)
        sock.setblocking(False)
        while data:
            try:
                data = data[sock.send(data[:65536]):]
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                select.select([sock], [sock], [], PATIENCE)
            try:
                more = sock.recv(65536)
                assert more, "the end came before all was sent"
                self.data += more
                self.reader.buffer += more
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
        sock.settimeout(PATIENCE)

    def say(self, text):
        self.send(frame(TEXT, text))

    def closed_with(self, code, words=""):
        """The next thing is a close with this code, and then the end."""
        op, data = self.reader.message()
        assert op == CLOSE and data[0] == code and words in data[1], (op, data)
        assert not self.reader.buffer and not self.recv(), "something came after the close"
        self.wire.close()

    def hang_up(self):
        self.send(close(1000, "bye"))
        self.closed_with(1000)


def opened(rig, transport, path, *fields, **more):
    ws = Socket(rig, transport, path, *fields, **more)
    assert ws.status == 101, (ws.head, ws.data)
    return ws


def raw(*frames):
    """The query that makes the upstream send these bytes behind its 101."""
    return base64.b64encode(b"".join(frames)).decode().replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")


def server(op, data=b"", fin=True, **more):
    return frame(op, data, fin, mask=None, **more)


def ends(rig, n=1):
    """The records of n WebSockets that ended."""
    def enough():
        found = [r for r in rig.gw.audit() if r["kind"] == "websocket"]
        return found if len(found) >= n else None
    return rig.lab.wait_for(f"{n} ends in the audit", enough)


def came(rig):
    """All that arrived over the newest WebSocket, when its close has."""
    conn = rig.up.requests()[-1]["conn"]
    return rig.lab.wait_for("the close upstream", lambda: (got := rig.up.messages(conn)) and got[-1][0] == CLOSE and got)


@everywhere("B42 A38", apart=True)
def an_upgrade_passes_with_a_key_of_its_own(rig, transport):
    ws = opened(rig, transport, "/ws/talk?echo=1", "X-Kept: 1", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
                "Sec_WebSocket_Key: x", "Sec-WebSocket-Foo: x")
    ws.say("hällo")
    assert ws.reader.message() == (TEXT, "hällo".encode())
    ws.say("")
    assert ws.reader.message() == (TEXT, b"")
    ws.send(frame(PING, b"are you there"))
    assert ws.reader.message() == (PONG, b"are you there")
    ws.hang_up()
    new = arrived(rig)
    assert len(new) == 1, new
    sent = {n.lower(): v for n, v in new[0]["fields"]}
    assert len(sent) == len(new[0]["fields"]), new
    rig.holds("B42,A38 a key of its own", sent["sec-websocket-key"] != KEY and len(base64.b64decode(sent["sec-websocket-key"])) == 16, sent)
    assert (sent["upgrade"], sent["connection"], sent["sec-websocket-version"], sent["x-kept"]) == ("websocket", "Upgrade", "13", "1"), sent
    extra = set(sent) - {"host", "upgrade", "connection", "sec-websocket-key", "sec-websocket-version", "x-kept", "authorization", "accept-encoding"}
    rig.holds("A38 nothing else of the handshake", not extra, extra)
    assert transport == "absolute" or sent["authorization"] == f"Bearer {rig.secret}"
    assert rig.up.messages()[:3] == [(TEXT, "hällo".encode()), (TEXT, b""), (PING, b"are you there")], rig.up.messages()
    end = ends(rig)[0]
    assert (end["messages_out"], end["messages_in"], end["closed"], end.get("code")) == (2, 2, 1000, None), end
    # that it was sent is a record of its own where the result was not there yet, which is a matter of the machine's pace
    exchange = [r["kind"] for r in rig.gw.recorded(3, exchange=end["exchange"], fits=lambda r: r["kind"] != "sent")]
    assert exchange == ["intent", "result", "websocket"], exchange


@everywhere("B42 B30", apart=True)
def without_a_word_about_messages_nothing_may_be_sent(rig, transport):
    for data in (frame(TEXT, '{"type":"subscribe","payload":{"query":"mutation { rm }"}}'), frame(BINARY, b"\0" * 300), frame(TEXT, b"")):
        ws = opened(rig, transport, f"/ws/feed?b64={raw(server(TEXT, 'one'), server(BINARY, b'2'))}")
        assert ws.reader.message() == (TEXT, b"one") and ws.reader.message() == (BINARY, b"2")
        ws.send(frame(PING, b"p"))
        assert ws.reader.message() == (PONG, b"p")
        ws.send(data)
        ws.closed_with(1008, "lets nothing be sent")
        rig.holds("B42,B30 not a message arrived", [op for op, _ in came(rig)] == [PING, CLOSE], came(rig))
    ends(rig, 3)
    arrived(rig)
    denied = rig.gw.recorded(3, kind="denied")
    assert [r["code"] for r in denied] == ["message-not-allowed"] * 3, denied
    assert [r["code"] for r in ends(rig, 3)] == ["message-not-allowed"] * 3


@everywhere("B42", DEEP)
def what_may_be_sent_has_limits(rig, transport):
    for path, data, code, why in (("/ws/talk", frame(TEXT, "x" * 1025), 1009, "message-too-large"),
                                  ("/ws/talk", frame(BINARY, b"x"), 1008, "message-not-allowed"),
                                  ("/ws/talk", frame(TEXT, "x" * 1024) * 4 + frame(TEXT, "x"), 1008, "messages-spent"),
                                  ("/ws/any", frame(TEXT, "x" * (192 * 1024 + 1)), 1009, "message-too-large"),
                                  ("/ws/any", frame(PING, b"x" * 125) * 6700, 1008, "pings-spent"),
                                  ("/ws/short", b"", 1008, "websocket-time")):
        ws = opened(rig, transport, path)
        ws.send(data)
        while (got := ws.reader.message())[0] == PONG:
            pass
        assert got[0] == CLOSE and got[1][0] == code, (path, got)
        assert not ws.recv(), "something came after the close"
        ws.wire.close()
        rig.lab.wait_for("its end", lambda: [r for r in rig.gw.audit() if r["kind"] == "websocket"][-1:] and
                         [r for r in rig.gw.audit() if r["kind"] == "websocket"][-1].get("code") == why)
        conn = rig.up.requests()[-1]["conn"]
        most = [1024] * 4 if why == "messages-spent" else []

        def passed():
            return [len(d) for op, d in rig.up.messages(conn) if op in (TEXT, BINARY)]
        rig.lab.wait_for("what may be sent", lambda: len(passed()) >= len(most))
        rig.holds(f"B42 {why}", passed() == most, passed())
    ws = opened(rig, transport, "/ws/any?echo=1")
    big = bytes(range(256)) * 768  # 192 KiB
    for _ in range(3):
        ws.send(frame(BINARY, big))
    for _ in range(3):
        assert ws.reader.message() == (BINARY, big)
    ws.hang_up()


@everywhere("B42", DEEP)
def fragments_become_one_message(rig, transport):
    ws = opened(rig, transport, "/ws/any?echo=1")
    text = "zwölf €uro".encode()
    ws.send(b"".join([frame(TEXT, text[:4], fin=False), frame(PING, b"between"), frame(0, text[4:7], fin=False), frame(0, b"", fin=False),
                      frame(0, text[7:])]))
    assert ws.reader.message() == (PONG, b"between") and ws.reader.message() == (TEXT, text)
    whole = frame(BINARY, b"a" * 70000, fin=False) + frame(0, b"b" * 300)
    for n in range(0, len(whole), 1000):
        ws.send(whole[n:n + 1000])
    assert ws.reader.message() == (BINARY, b"a" * 70000 + b"b" * 300)
    for byte in frame(TEXT, "byte by byte"):
        ws.send(bytes([byte]))
    assert ws.reader.message() == (TEXT, b"byte by byte")
    ws.hang_up()
    came(rig)
    masks = [mask for line in (rig.up.dir / "ws.jsonl").read_text().splitlines() for mask in json.loads(line)["masks"]]
    rig.holds("B42 a fresh mask each", len(masks) >= 5 and len(set(masks)) == len(masks), masks)


@everywhere("B42", DEEP, apart=True)
def wrong_frames_end_it(rig, transport):
    for what, data, code in (("unmasked", frame(TEXT, "x", mask=None), 1002), ("rsv1", frame(TEXT, "x", rsv=4), 1002),
                             ("rsv3", frame(BINARY, b"x", rsv=1), 1002), ("opcode 3", frame(3, b"x"), 1002),
                             ("opcode 11", frame(11, b"x"), 1002), ("continuation of nothing", frame(0, b"x"), 1002),
                             ("text in text", frame(TEXT, "a", fin=False) + frame(TEXT, "b"), 1002),
                             ("long ping", frame(PING, b"x" * 126), 1002), ("cut ping", frame(PING, b"x", fin=False), 1002),
                             ("not UTF-8", frame(TEXT, b"\xff"), 1007), ("overlong", frame(TEXT, b"\xc0\xaf"), 1007),
                             ("surrogate", frame(TEXT, b"\xed\xa0\x80"), 1007), ("cut rune", frame(TEXT, b"\xe2\x82"), 1007),
                             ("2^63", frame(BINARY, b"", length=2 ** 63), 1002), ("huge", frame(BINARY, b"", length=2 ** 40), 1009),
                             ("a length in more bytes", b"\x81\xfe\x00\x01" + b"\0" * 5, 1002), ("close of one byte", frame(CLOSE, b"x"), 1002),
                             ("close 1005", close(1005), 1002), ("close 999", close(999), 1002), ("close with bad words", frame(CLOSE, b"\x03\xe8\xff"), 1007)):
        ws = opened(rig, transport, "/ws/any")
        ws.send(data)
        try:
            ws.closed_with(code)
        except AssertionError as why:
            raise AssertionError(f"{what}: {why}") from None
        rig.holds("B42 nothing of it arrived", [op for op, _ in came(rig)] == [CLOSE], came(rig))
    ends(rig, 20)


@everywhere("A45 A38")
def only_the_answer_that_was_asked_for_switches(rig, transport):
    answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    for n, path in enumerate(("/ws/any?accept=bad", "/ws/any?h=Sec-WebSocket-Extensions:permessage-deflate", "/ws/any?protocol=v9", "/ws/any?version=1.0",
                              "/ws/any?h=Upgrade:h2c", f"/raw?close=1&b64={raw(answer.encode(), END)}",
                              f"/raw?close=1&b64={raw(answer.replace('websocket', 'h2c').encode(), END)}")):
        ws = Socket(rig, transport, path)
        rig.holds(f"A45 {path[:60]}", ws.status == 409, ws.data)
        ws.wire.close()
    # Not asked at all: no upgrade left, and none comes back.
    for fields in ((), ("Upgrade: websocket", f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13"), ("Upgrade: h2c", "Connection: Upgrade")):
        ws = Socket(rig, transport, f"/raw?close=1&b64={raw(answer.encode(), END, b'hello')}", handshake=fields)
        rig.holds("A45,A38 unasked", ws.status == 502 and b"hello" not in ws.data, ws.data)
        ws.wire.close()
    ws = Socket(rig, transport, "/status?code=403", handshake=HANDSHAKE)
    assert ws.status == 403, ws.data  # no rule


@everywhere("A38 B30")
def a_rule_for_requests_is_none_for_upgrades(rig, transport):
    ws = Socket(rig, transport, "/ok")
    rig.holds("A38,B30 no rule", ws.status == 403 and b"denied" in ws.data, ws.data)
    ws = Socket(rig, transport, "/ok", behind=ws.wire.fill(ws.wire.head("GET", "/ok?behind")))
    assert ws.status == 403, ws.data
    found = []
    rig.lab.wait_for("the request behind the upgrade", lambda: found.extend(arrived(rig)) or found)
    rig.holds("A38 what follows is a request", [r["line"] for r in found] == ["GET /ok?behind HTTP/1.1"] and
              "upgrade" not in attack.fields_of(found[0]), found)
    for drop, more in (("Connection", "Connection: notupgrade"), ("Connection", "Connection: keep-alive"), ("Sec-WebSocket-Version", "Sec-WebSocket-Version: 8"),
                       ("Sec-WebSocket-Key", "Sec-WebSocket-Key: c2hvcnQ="), ("Sec-WebSocket-Key", f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Key: {KEY}"),
                       ("Upgrade", "Upgrade: websocket, h2c"), ("Upgrade", "Upgrade: foo"),
                       ("X", "Sec-WebSocket-Protocol: a b"), ("X", "Sec-WebSocket-Protocol: a,,b")):
        # What is no proper upgrade is a request without one: it goes where requests go, and no rule for upgrades covers it.
        fields = [f for f in HANDSHAKE if not f.startswith(drop + ":")] + more.split("\r\n")
        ws = Socket(rig, transport, "/ws/held", handshake=fields)
        assert ws.status == 200, (more, ws.data)
        new = arrived(rig)
        rig.holds(f"A38 {more}", len(new) == 1 and "upgrade" not in attack.fields_of(new[0]), new)
        ws.wire.close()
    arrived(rig)
    wire = rig.open(transport)
    rig.held("A38 on a POST", wire.talk(wire.head("POST", "/ws/any", *HANDSHAKE, "Content-Length: 0"), 1))


@everywhere("B42")
def a_held_upgrade_joins_its_ticket(rig, transport):
    first = Socket(rig, transport, "/ws/held?echo=1")
    assert first.status == 403 and "countersign-ticket" in first.fields, first.data
    again = Socket(rig, transport, "/ws/held?echo=1", handshake=[*HANDSHAKE[:2], "Sec-WebSocket-Key: " + base64.b64encode(b"k" * 16).decode(), HANDSHAKE[3]])
    assert again.fields["countersign-ticket"] == first.fields["countersign-ticket"]
    other = Socket(rig, transport, "/ws/held?echo=1", "Sec-WebSocket-Protocol: v1")
    assert transport != "absolute" or other.fields["countersign-ticket"] != first.fields["countersign-ticket"], "another subprotocol is another request"
    rig.holds("B42 it waits", arrived(rig) == [])
    ticket = rig.gw.show(first.fields["countersign-ticket"])
    assert ["Upgrade", "websocket"] in [list(f) for f in ticket["fields"]] and "WebSocket to" in json.dumps(ticket), ticket
    assert "may send text over it without asking again" in json.dumps(ticket), ticket
    rig.gw.approve(ticket["id"])
    ws = opened(rig, transport, "/ws/held?echo=1")
    ws.say("approved")
    assert ws.reader.message() == (TEXT, b"approved")
    rig.lab.wait_for("the ticket's end, which the upgrade is", lambda: rig.gw.show(ticket["id"])["state"] == "done")
    second = Socket(rig, transport, "/ws/held?echo=1")
    assert second.status == 403 and second.fields["countersign-ticket"] != ticket["id"], "an approval is used once"
    ws.send(frame(BINARY, b"not that"))
    ws.closed_with(1008)
    rig.holds("B42 sent once", len(arrived(rig)) == 1)


def secret_frames(secret):
    """Rows of (what, frames of the server, how many whole messages may come before the close)."""
    half = len(secret) // 2
    a, b = secret[:half - 2], secret[half - 2:]
    yield "in one message", [server(TEXT, b"so: " + secret)], 0
    yield "behind another", [server(TEXT, b"fine"), server(BINARY, b"\0" + secret + b"\0")], 1
    yield "over fragments", [server(TEXT, a, fin=False), server(0, b"", fin=False), server(0, b)], 0
    yield "byte by byte over fragments", [server(TEXT, b"", fin=False), *(server(0, bytes([c]), fin=False) for c in secret), server(0)], 0
    yield "over two messages", [server(TEXT, a), server(TEXT, b)], 1
    yield "over two messages with a ping between", [server(TEXT, a), server(PING, b"x"), server(TEXT, b)], 1
    yield "over many messages", [server(TEXT, bytes([c])) for c in secret], len(secret) - 1
    yield "in base64", [server(TEXT, b"x" + base64.b64encode(b"y" + secret))], 0
    yield "in hex", [server(TEXT, secret.hex())], 0
    yield "in a ping", [server(PING, secret)], 0
    yield "over two pings", [server(PING, a), server(PING, b)], 0
    yield "in a close", [close(1000, "bye " + secret.decode(), mask=None)], 0


@everywhere("B42", TLS, apart=True)
def a_secret_in_what_the_server_sends_ends_it(rig, transport):
    for n, (what, frames, before) in enumerate(secret_frames(rig.secret.encode())):
        rig.up.script({"/ws/feed": f"/ws?b64={raw(*frames)}"})
        ws = opened(rig, transport, "/ws/feed")
        got, aside = [], []
        while (message := ws.reader.message())[0] != CLOSE:
            (aside if message[0] == PING else got).append(message)
        assert message[1][0] == 1011 and "secret" in message[1][1], (what, message)
        assert len(got) <= before, (what, got)
        rig.holds(f"B42 {what}", rig.secret.encode() not in b"".join(m for _, m in got), got)
        rig.holds(f"B42 {what}", rig.secret.encode() not in b"".join(m for _, m in aside), aside)
        ws.wire.close()
        assert ends(rig, n + 1)[-1].get("code") == "secret-in-message", what


@everywhere("B42", DEEP, apart=True)
def a_server_that_breaks_the_rules_is_cut_off(rig, transport):
    for n, (what, data) in enumerate((("masked", frame(TEXT, "x")), ("rsv1", server(TEXT, "x", rsv=4)), ("opcode", server(5, b"x")),
                                      ("not UTF-8", server(TEXT, b"\xff")), ("too large", server(BINARY, b"x" * (1024 * 1024 + 1))))):
        rig.up.script({"/ws/feed": f"/ws?b64={raw(data)}"}) if len(data) < 1000 else rig.up.script({"/ws/feed": f"/ws?b64={raw(data[:10])}"})
        ws = opened(rig, transport, "/ws/feed")
        ws.closed_with(1011)
        rig.says("B42 " + what)
        assert ends(rig, n + 1)[-1].get("code") == "bad-answer", what
    big = b"0123456789abcdef" * 65536
    rig.up.script({"/ws/feed": f"/ws?b64={raw(server(BINARY, big), server(TEXT, 'after'))}"})
    ws = opened(rig, transport, "/ws/feed")
    assert ws.reader.message() == (BINARY, big), "a message of 1 MiB"
    assert ws.reader.message() == (TEXT, b"after")
    ws.hang_up()


@everywhere("B42", DEEP, apart=True)
def it_ends_properly_from_either_side(rig, transport):
    ws = opened(rig, transport, f"/ws/any?noclose=1&b64={raw(close(4001, 'done', mask=None))}")
    assert ws.reader.message() == (CLOSE, (4001, "done"))
    ws.send(close(4001, ""))
    assert not ws.recv()
    assert ends(rig)[-1]["closed"] == 4001 and came(rig)[-1] == (CLOSE, b"(4001, '')"), came(rig)
    ws = opened(rig, transport, "/ws/any")
    ws.send(close(0))
    ws.closed_with(0)
    ws = opened(rig, transport, "/ws/any?end=1")
    assert not ws.recv(), "what the upstream cut looks like a proper end"
    assert ends(rig, 3)[-1].get("code") == "answer-cut"
    ws = opened(rig, transport, "/ws/any")
    ws.wire.close()
    ends(rig, 4)
    assert came(rig)
    ws = opened(rig, transport, "/ws/any?noclose=1")
    ws.send(close(1000) + frame(TEXT, "behind the close"))
    assert ws.recv() == b""
    rig.holds("B42 nothing behind a close", b"behind the close" not in b"".join(d for _, d in rig.up.messages()))


@everywhere("D34 B42", TLS)
def a_token_in_a_subprotocol_does_not_leave(rig, transport):
    token = "base64url.bearer.authorization.k8s.io.c2VjcmV0"
    ws = opened(rig, transport, "/ws/named?protocol=v1", f"Sec-WebSocket-Protocol: {token}, v1", "Sec-WebSocket-Protocol: graphql-ws")
    assert ws.fields["sec-websocket-protocol"] == "v1"
    ws.hang_up()
    ws = opened(rig, transport, "/ws/any", f"Sec-WebSocket-Protocol: {token}")
    ws.hang_up()
    offers = [[v for n, v in r["fields"] if n.lower() == "sec-websocket-protocol"] for r in arrived(rig)]
    rig.holds("D34,B42 the token stays", offers == [["v1, graphql-ws"], []], offers)
    ws = Socket(rig, transport, "/ws/named", f"Sec-WebSocket-Protocol: {token}")
    assert ws.status == 403, ws.data
    ws = Socket(rig, transport, f"/ws/named?protocol={token}", f"Sec-WebSocket-Protocol: {token}, v1")
    assert ws.status == 409, ws.data


def counted(rig):
    """What limits count: one a request that left, or may have."""
    store = sqlite3.connect(f"file:{rig.gw.state}/store/ledger.db?mode=ro", uri=True, timeout=PATIENCE)
    try:
        return store.execute("SELECT coalesce(sum(amount),0) FROM reserved").fetchone()[0]
    finally:
        store.close()


def past_the_limit(rig, transport):
    rig.aside = arrived(rig)  # a way in may look for what it sends itself
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/ws/limited?echo=1", *HANDSHAKE), 1)
    rig.refused("B42 past its limit", got, closed=False)
    assert b'"code":"over-limit"' in got.data and b"2 requests in 1 day" in got.data, got
    wire.close()


@everywhere("B42", apart=True)
def an_upgrade_counts_once_against_a_limit(rig, transport):
    first = opened(rig, transport, "/ws/limited?echo=1")
    for n in range(5):
        first.say(f"message {n}")
        assert first.reader.message() == (TEXT, f"message {n}".encode())
    assert counted(rig) == 1, "messages are not requests"
    second = opened(rig, transport, "/ws/limited?echo=1")
    assert counted(rig) == 2
    first.hang_up()
    ends(rig)
    assert counted(rig) == 2, "an end gives nothing back"
    past_the_limit(rig, transport)
    second.say("what was let through before stays open")
    assert second.reader.message() == (TEXT, b"what was let through before stays open")
    second.hang_up()
    ends(rig, 2)
    past_the_limit(rig, transport)
    sent = [r for r in arrived(rig) if "/ws/limited" in r["target"]]
    rig.holds("B42 what left is what was counted", len(sent) == 2 == counted(rig), sent)


@everywhere("B42", ("connect", "unix", "socks", "captured", "reload"), apart=True)
def of_an_upgrade_only_what_did_not_leave_is_given_back(rig, transport):
    rig.lab.expects(NOT_RELEASED)
    def results():
        return [r for r in rig.gw.audit() if r["kind"] == "result" and r["path"].startswith("/ws/limited")]

    def another_policy(text):
        rig.gw.policy.write_text(text)
        status, said = rig.control("POST", "/api/v1/reload")
        assert status == 200, said

    def ends_in(status, outcome, kept):
        before = len(results())
        ws = Socket(rig, transport, "/ws/limited?echo=1")
        assert ws.status == status, (ws.head, ws.data)
        ws.wire.close()
        result = rig.lab.wait_for("its result", lambda: results()[before:])
        assert [r["outcome"] for r in result] == [outcome], result
        assert counted(rig) == kept, (outcome, counted(rig))

    rig.open(transport).close()
    text = rig.gw.policy.read_text()
    another_policy(text.replace("127.0.0.1", "127.0.0.2"))  # where nobody listens
    for _ in range(3):  # of two a day
        ends_in(502, "not-sent", 0)
    another_policy(text)
    rig.gw.cli("secret", "rm", "api", rc=0)
    for _ in range(3):
        ends_in(502, "not-sent", 0)
    rig.gw.cli("secret", "set", "api", stdin=rig.secret.encode(), rc=0)
    rig.up.script({"/ws/limited": "/drop"})
    ends_in(409, "unknown", 1)
    rig.up.script({"/ws/limited": "/status?code=403"})
    ends_in(403, "answered", 2)
    rig.up.script({})
    past_the_limit(rig, transport)
    sent = [r for r in arrived(rig) if "/ws/limited" in r["target"]]
    rig.holds("B42 what left is counted", len(sent) == 2 == counted(rig), sent)


@everywhere("B42")
def a_policy_that_would_not_let_it_through_ends_it(rig, transport):
    kept, gone = opened(rig, transport, "/ws/any?echo=1"), opened(rig, transport, "/ws/talk?echo=1")
    for ws in (kept, gone):
        ws.say("before")
        assert ws.reader.message() == (TEXT, b"before")
    text = rig.gw.policy.read_text()
    rig.gw.policy.write_text("".join(line for line in text.splitlines(True) if "/ws/talk" not in line).replace("192KiB", "2KiB"))
    rig.gw.cli("policy", "check", rig.gw.policy, rc=0)
    status, said = rig.control("POST", "/api/v1/reload")
    assert status == 200, said
    gone.closed_with(1008, "policy")
    kept.say("after")
    assert kept.reader.message() == (TEXT, b"after")
    kept.send(frame(TEXT, "x" * 2049))
    kept.closed_with(1009)
    ws = Socket(rig, transport, "/ws/talk")
    assert ws.status == 403, ws.data


    rig.holds("B42 another policy", kept is not gone)


@everywhere("B42", DEEP)
def nobody_has_to_hold_what_the_other_does_not_read(rig, transport):
    """12 MiB each way, faster than they are taken: all of it arrives, and no process grows by it."""
    ws = opened(rig, transport, "/ws/any?flood=200")
    ws.send(b"".join(frame(BINARY, b"x" * 65536, mask=b"abcd") for _ in range(3)))
    size = max(resident(rig, role) for role in ("carrier", "judge", "front"))
    assert all(ws.reader.message() == (BINARY, b"0123456789abcdef" * 4096) for _ in range(200))
    ws.hang_up()
    rig.holds("B42 limits", size < 60 * 1024, f"{size} KiB")
    ws = opened(rig, transport, "/ws/any?echo=1")
    big = os.urandom(190 * 1024)
    ws.pump(frame(BINARY, big, mask=b"abcd") * 60)
    for n in range(60):
        assert ws.reader.message() == (BINARY, big), n
    ws.hang_up()


def resident(rig, role):
    """KiB"""
    status = pathlib.Path(f"/proc/{rig.gw.pid(role)}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1])


def open_by_now(rig, opened_so_far):
    """While a part of the gateway begins anew its clients are told to come again, and nothing worse."""
    try:
        opened_so_far.append(Socket(rig, "connect", "/ws/feed"))
        return opened_so_far[-1].status == 101
    except ways.Refused as e:
        assert " 503 " in str(e), e
        return False


@test()
def a_part_of_the_gateway_that_ends_takes_them_along(lab):
    rig, tried = attack.Rig(lab, rules), []
    for n, role in enumerate(("judge", "carrier", "front")):
        ws = opened(rig, "connect", "/ws/any?echo=1")
        ws.say("before")
        assert ws.reader.message() == (TEXT, b"before")
        rig.gw.kill(role)
        try:
            op, data = ws.reader.message()
            assert op == CLOSE and data[0] == 1001, (role, op, data)
        except EOFError:
            pass
        assert not ws.recv(), role
        rig.lab.wait_for("the end upstream", lambda: [op for op, _ in rig.up.messages()].count(CLOSE) == n + 1 or role == "carrier")
        # Kept open: of the second one the end is counted with the front's, and no other may be.
        lab.wait_for(f"the {role}'s return", lambda: open_by_now(rig, tried))
    assert b"Sanitizer" not in rig.gw.process.seen
    assert rig.gw.cli("audit", "verify").rc == 0


@test("B42 connect")
def freeze_ends_those_that_are_no_reads(lab):
    rig = attack.Rig(lab, rules)
    feed, talk = opened(rig, "connect", "/ws/feed"), opened(rig, "connect", "/ws/talk?echo=1")
    rig.gw.cli("freeze", "--reason", "an incident", rc=0)
    talk.closed_with(1008, "frozen")
    feed.send(frame(PING, b"p"))
    assert feed.reader.message() == (PONG, b"p")
    assert Socket(rig, "connect", "/ws/talk").status == 403
    rig.gw.cli("thaw", rc=0)
    opened(rig, "connect", "/ws/talk").hang_up()
    feed.hang_up()


@test()
def shadow_mode_lets_them_pass_without_a_credential(lab):
    rig = attack.Rig(lab, rules, config="mode: shadow\n")
    rig.up.script({"/elsewhere": "/ws?echo=1"})
    ws = opened(rig, "connect", "/elsewhere")
    ws.say("nobody allowed this")
    assert ws.reader.message() == (TEXT, b"nobody allowed this")
    ws.hang_up()
    assert "authorization" not in attack.fields_of(rig.up.requests()[0])
    end = ends(rig)[0]
    assert end["verdict"] == "deny" and end["enforced"] is False and end["messages_out"] == 1, end


SERVER = """
const { WebSocketServer } = require("ws");
const fs = require("fs");
const server = require("https").createServer({ cert: fs.readFileSync(process.argv[1]), key: fs.readFileSync(process.argv[2]) });
new WebSocketServer({ server, perMessageDeflate: true }).on("connection", (ws, request) => {
  ws.on("message", (data, binary) => ws.send(binary ? data : `${request.headers.authorization ? "known" : "unknown"}: ${data}`, { binary }));
});
server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
"""
CLIENT = """
const WebSocket = require("ws");
const { HttpsProxyAgent } = require("https-proxy-agent");
const ws = new WebSocket(process.argv[1], ["v1"], { agent: new HttpsProxyAgent(process.env.HTTPS_PROXY) });
ws.on("open", () => { console.log(`open [${ws.extensions}]`); ws.ping("p"); });
ws.on("pong", (data) => { console.log(`pong ${data}`); ws.send("hello"); });
ws.on("message", (data) => { console.log(`got ${data}`); ws.send(process.argv[2] === "binary" ? Buffer.from([1]) : "x".repeat(5000)); });
ws.on("unexpected-response", (request, answer) => { console.log(`answer ${answer.statusCode} ${answer.headers["countersign-ticket"]}`); process.exit(3); });
ws.on("close", (code, words) => { console.log(`closed ${code} ${words}`); });
ws.on("error", (why) => { console.log(`error ${why}`); });
"""


@test("B42 connect")
def a_program_and_a_server_of_others(lab):
    """npm's ws at both ends, as it is: it offers permessage-deflate, which nobody agrees to."""
    modules = {"NODE_PATH": npm_modules(pathlib.Path(__file__).resolve().parent.parent / "npm") / "node_modules"}
    ca = certs.CA(lab.exempt(lab.dir / "server"))
    server = lab.start(["node", "-e", SERVER, *ca.leaf("ws.test")], env=modules, ready=r"port (\d+)")
    port, secret = int(server.ready[1]), lab.canary(secrets.token_urlsafe(32))
    place = f"host: ws.test, port: {port}"
    gw = Gateway(lab, f"""version: 1
name: others
upstreams:
{upstream_yaml("ws.test", port, ca.cert)}
credentials: {{ api: {{ source: {{ store: api }}, inject: {{ header: Authorization, format: "Bearer {{}}" }}, only: [{{ {place} }}] }} }}
rules:
  - {{ id: talk, match: {{ {place}, path: /talk, ws: {{ subprotocol: v1 }} }}, decide: allow, use: api, messages: {{ send: text, max: 4KiB }} }}
  - {{ id: held, match: {{ {place}, path: /held, ws: {{ subprotocol: v1 }} }}, decide: hold, use: api }}
""", {"api": secret.encode()}, hold="inline_wait: 0s, expires: 2h")
    env = {**gw.client_env(), **modules}
    url = f"wss://ws.test:{port}"
    done = lab.run(["node", "-e", CLIENT, url + "/talk"], env=env, rc=0).text()
    assert "open []\npong p\ngot known: hello\nclosed 1009 countersign: not sent: the message is larger" in done, done
    done = lab.run(["node", "-e", CLIENT, url + "/talk", "binary"], env=env, rc=0).text()
    assert "closed 1008 countersign: not sent: the policy lets no binary" in done, done
    held = lab.run(["node", "-e", CLIENT, url + "/held"], env=env, rc=3).text()
    ticket = gw.pending()["id"]
    assert f"answer 403 {ticket}" in held, held
    gw.approve(ticket)
    done = lab.run(["node", "-e", CLIENT, url + "/held"], env=env, rc=0).text()
    assert "open []\npong p\nclosed 1008" in done, done


if __name__ == "__main__":
    main()
