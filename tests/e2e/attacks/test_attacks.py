#!/usr/bin/env python3
"""Hostile requests, byte by byte (attacks.tsv group A, and B where the spelling is the attack), over each transport."""
import os
import socket
import struct

import room  # noqa: F401
from attack import Rig, asked, everywhere, fields_of
from harness import main, test
from ways import TUNNELLED, WAYS, proxy2

TARGET_MAX, FIELDS_MAX, HEAD_MAX = 16 * 1024, 100, 32 * 1024  # common/http/http.h

SEED = int(os.environ.get("ATTACK_SEED", "20"))  # of the cuts
CHUNKED = "Transfer-Encoding: chunked"
C0 = [chr(c) for c in [*range(0, 9), 11, 12, *range(14, 32), 127]]


def heads(*rows):
    """(id, one or more field lines) rows, as requests that must be refused; the body would end any framing."""
    return [(i, f"POST {{T}}/w/1 HTTP/1.1\r\nHost: {{H}}\r\n{{A}}{fields}\r\n\r\n5\r\nhello\r\n0\r\n\r\n") for i, fields in rows]


def lines(*rows):
    """(id, request line) rows."""
    return [(i, f"{line}\r\nHost: {{H}}\r\n{{A}}\r\n") for i, line in rows]


def bodies(*rows):
    """(id, chunked body) rows, for a write that is held and for one that is allowed by its head alone."""
    return [(i, f"POST {{T}}/{place} HTTP/1.1\r\nHost: {{H}}\r\n{{A}}{CHUNKED}\r\n\r\n{body}")
            for i, body in rows for place in ("h/1", "w/1")]


FRAMING = heads(
    ("A1", f"Content-Length: 5\r\n{CHUNKED}"), ("A1", f"{CHUNKED}\r\nContent-Length: 5"),
    ("A1", f"Content-Length: 0\r\n{CHUNKED}"), ("A1", f"content-length: 5\r\ntransfer-encoding: CHUNKED"),
    *[("A2", f"Content-Length: 5\r\nTransfer-Encoding: {v}") for v in
      ("chunked,", "chunked ", "chunked\t", ",chunked", "chunked, gzip", "chunked;x=1", "identity, chunked", '"chunked"')],
    *[("A3", f"Transfer-Encoding: {a}\r\nTransfer-Encoding: {b}") for a, b in
      (("chunked", "chunked"), ("cow", "chunked"), ("chunked", "identity"), ("", "chunked"), ("chunked", ""))],
    *[("A6", f"Transfer-Encoding: {v}") for v in
      ("gzip", "chunked, gzip", "xchunked", "", "gzip, chunked", "Chunked, gzip", "CHUNKED,", "identity", "\x0bchunked")],
    *[("A7", "\r\n".join(f"Content-Length: {n}" for n in row)) for row in ((5, 6), (5, 5), (5, 5, 5), (0, 5))],
    ("A7", "Content-Length: 5, 5"), ("A7", "Content-Length: 5,6"), ("A7", "Content-Length: 5\r\ncontent-length: 5"),
    *[("A8", f"Content-Length: {v}") for v in
      ("", "+5", "-0", "-1", "0x5", "5_0", "5 5", "5\x0b", "\xef\xbc\x95", "005", "010", "5;", "9" * 20, str(2 ** 63),
       str(2 ** 64 + 5), "5.0", "5e0", "\t", "'5'")],
    *[("A17", f"X-A: a{c}b") for c in C0], *[("A17", f"X{c}A: b") for c in C0],
    ("A18", "X-A: b\r\n c"), ("A18", "Transfer-Encoding:\r\n chunked"), ("A18", "Content-Length: 5\r\n\t0"),
    ("A18", " X-A: b"), ("A18", "X-A: b\r\n \r\nX-B: c"),
    *[("A19", f"Transfer-Encoding{c}: chunked") for c in (" ", "\t", "\x85", "\xa0")], ("A19", "X A: b"), ("A19", "\tX: b"),
    ("A20", "X-A"), ("A20", ": b"), ("A20", ":"), ("A20", "chunked\r\nTransfer-Encoding: chunked"),
    *[("A21", f"X{c}A: b") for c in '"(),/;<=>?@[\\]{}\x80\xff'],
    ("A15", "X-A: b\nContent-Length: 5"), ("A15", "X-A: b\n\r\n"), ("A15", "\n"),
    ("A16", "X-A: b\rTransfer-Encoding: chunked"), ("A16", "X-A: b\r\r\nX-B: c"), ("A16", "X\r-A: b"), ("A16", "X: b\r\n\rX: b"),
    *[("A35", f"Content-Length: 5\r\nExpect: {v}") for v in ("y 100-continue", "", "200-ok", "100-continue, 100-continue")],
    ("A35", "Content-Length: 5\r\nExpect: 100-continue\r\nExpect: 100-continue"),
    *[("A49", f"{n}: a\r\n{n}: b\r\nContent-Length: 5") for n in
      ("Authorization", "Cookie", "Content-Type", "Content-Encoding", "X-Amz-Target", "Origin", "Range", "Host")],
    *[("A50", f"{n}: 5") for n in ("Content_Length", "Transfer_Encoding", "content-Length\r\nContent_length", "Proxy_Authorization")],
    ("A50", "Transfer_Encoding: chunked"), ("A43", "Max-Forwards: 0"),
)
FRAMING += [("A5", f"POST {{T}}/w/1 HTTP/1.0\r\nHost: {{H}}\r\n{{A}}{fields}\r\n\r\n5\r\nhello\r\n0\r\n\r\n") for fields in
            (CHUNKED, f"{CHUNKED}\r\nConnection: keep-alive", f"{CHUNKED}\r\nContent-Length: 5", "Transfer-Encoding: identity")]
ODD = [chr(c) for c in [*range(1, 0x20), 0x7f, *range(0x80, 0x100)]]
TE_SPELLINGS = [form.replace("@", c) for c in ODD for form in
                ("@Transfer-Encoding: chunked", "Transfer-Encoding@: chunked", "Transfer-Encoding:@chunked", "Transfer-Encoding: chunked@")]
TE_SPELLINGS += [
    "Transfer Encoding: chunked", "Transfer-Encoding : chunked", " Transfer-Encoding: chunked", "transfer-encoding: chunked", "TRANSFER-ENCODING: CHUNKED",
    "Transfer-Encoding: Chunked", "Transfer-Encoding:chunked", "Transfer-Encoding:  chunked", "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: 'chunked'",
    "Transfer-Encoding:\r\n chunked", "Transfer-Encoding:\r\n\tchunked", "Transfer-Encoding: chunked\r\n ", "Transfer-\r\n Encoding: chunked",
    "X: X\rTransfer-Encoding: chunked", "X: X\nTransfer-Encoding: chunked", "X: X\r\n\rTransfer-Encoding: chunked", "X:X\r\rTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked", "Transfer-Encoding: chunked;", "Transfer-Encoding: chunked chunked",
    "Transfer-Encoding: x\r\nTransfer-Encoding: chunked", "Transfer-Encoding\r\n: chunked", "Transfer_Encoding: chunked", "\"Transfer-Encoding\": chunked",
    "Transfer-Encoding; chunked", "Foo: bar\r\n Transfer-Encoding: chunked"]
assert len(TE_SPELLINGS) == 668
LINES = lines(
    *[("A17", f"G{c}T {{T}}/ok HTTP/1.1") for c in C0], *[("A17", f"GET {{T}}/o{c}k HTTP/1.1") for c in C0],
    *[("A17", f"GET {{T}}/ok HTTP/1.{c}1") for c in C0[:4]],
    *[("A27", f"GET {{T}}/o{c}k HTTP/1.1") for c in ' #\\<>"{}`\x80\xff\t'],
    *[("A27", f"GET {{T}}/ok?a={c} HTTP/1.1") for c in ' #<>"\x80\xff\t'], *[("A27", f"GET {{H}}{c} HTTP/1.1") for c in "|^{\\"],
    *[("A28", line) for line in
      ("GET  {T}/ok HTTP/1.1", "GET {T}/ok  HTTP/1.1", "GET\t{T}/ok HTTP/1.1", " GET {T}/ok HTTP/1.1", "GET {T}/ok HTTP/1.1 ",
       "GET {T}/ok", "GET {T}/ok ", "GET {T}/ok http/1.1", "GET {T}/ok HTTP/1.2", "GET {T}/ok HTTP/1.9",
       "GET {T}/ok HTTP/2.0", "GET {T}/ok HTTP/3", "GET {T}/ok HTTP/1.1.1", "GET {T}/ok HTTP/4294967295.255",
       "GET {T}/ok HTTP/01.1", "GET {T}/ok HTTP/0.9", "GET {T}/ok HTTP/1.", "GET {T}/ok XHTTP/1.1")],
    ("A29", "\r\n\r\nGET {T}/ok HTTP/1.1"), ("A29", "\r\n" * 1000 + "GET {T}/ok HTTP/1.1"), ("A29", "\nGET {T}/ok HTTP/1.1"),
    *[("A30", f"{m} {{T}}/ok HTTP/1.1") for m in
      ("GE T", 'G=":<>(e),[T]', "G" * 1024, "", "GET:", "GET,POST", "\xc7ET")],
    ("A30", "PRI * HTTP/2.0"), ("A39", "PRI * HTTP/2.0\r\n\r\nSM"),
    *[("A43", f"{m} {{T}}/ok HTTP/1.1") for m in ("TRACE", "TRACK", "DEBUG", "trace")],
    *[("A25", f"GET {t} HTTP/1.1") for t in
      ("{H}", "*", "{H}/ok", "http:/ok", "http://", "http:///ok", "{T}//evil.test/ok", "//{H}/ok", "?x", "http://{H}@evil.test/")],
    ("A25", "OPTIONS * HTTP/1.1"), ("A25", "CONNECT /ok HTTP/1.1"), ("A25", "CONNECT u@{H} HTTP/1.1"), ("A25", "CONNECT upstream.test HTTP/1.1"),
    *[("A26", f"GET {u} HTTP/1.1") for u in
      ("https://{H}/ok", "http://u:p@{H}/ok", "ftp://{H}/ok", "file:///etc/passwd", "ws://{H}/ok", "gopher://{H}/_x", "HTTPS://{H}/ok")],
    *[("B4", f"GET {{T}}{p} HTTP/1.1") for p in
      ("/ok/../guard", "/ok/./x", "/%2e%2e/guard", "/ok/.%2e/guard", "/ok/..;/guard", "/ok/..;x=1/guard", "/ok/..%2fguard", "/ok/..",
       "/../..", "/..", "/.", "/ok/%2E", "/ok%2f..%2fguard", "/ok/..%3bx/guard", "/./guard")],
    *[("B5", f"GET {{T}}{p} HTTP/1.1") for p in ("/ok%5c..%5cguard", "/ok\\guard", "/%5Cguard", "/%2Fguard")],
    ("B6", "GET {T}//guard HTTP/1.1"), ("B6", "GET {T}///guard HTTP/1.1"), ("B6", "GET {T}/%2fguard HTTP/1.1"),
    *[("B9", f"GET {{T}}/ok/{p} HTTP/1.1") for p in
      ("%u002e", "%c0%ae%c0%ae", "%00", "%0d%0ax", "%", "%zz", "%4", "%ff", "%ed%a0%80", "a%0a", "x%7f", "%c3")],
    *[("B9", f"GET {{T}}/ok?a={p} HTTP/1.1") for p in ("%00", "%", "%zz", "%4")],
)
HOSTS = [("A23", f"GET {{T}}/ok HTTP/1.1\r\n{{A}}{h}\r\n\r\n") for h in
         ("X: y", "Host: {H}\r\nHost: {H}", "Host: {H}\r\nHost: evil.test", "Host:", "Host: {H},{H}", "Host: a b", "Host: a@{H}",
          "Host: {H}/b", "Host: {H}?b", "Host: {H}#b", "Host: [::1", "Host: upstream.test:", "Host: upstream.test:99999",
          "Host: upstream.test:0", "Host: upstream.test:+80", "Host: upstream.test:0443", "Host: {H}\x00", "Host: {H} x",
          "Host : {H}", "Host: {H}\r\nhost: {H}", "Host: upstream.test.evil.test", "Host: xupstream.test")]
HOSTS += [(i, f"GET {{T}}/ok HTTP/1.1\r\n{{A}}Host: {h}\r\n\r\n") for i, h in
          (("C3", "other.test:{P}"), ("C7", "upstream.test:1"), ("C7", "upstream.test"), ("C17", "upstream..test:{P}"),
           ("C17", ".upstream.test:{P}"), ("C18", "upstream.test.evil.test:{P}"), ("C18", "upstream.test%2eevil:{P}"),
           ("C18", "upstream.test;evil:{P}"), ("C18", "upstream.test\tevil"), ("C20", "u:p@upstream.test:{P}"), ("C35", "upstream.test:80"))]
HOSTS += [("A24", "GET https://evil.test/ok HTTP/1.1\r\n{A}Host: {H}\r\n\r\n"),
          ("A24", "GET http://evil.test/ok HTTP/1.1\r\n{A}Host: {H}\r\n\r\n"),
          ("A24", "GET http://other.test/ok HTTP/1.1\r\n{A}Host: {H}\r\n\r\n")]
CHUNKS = bodies(
    *[("A9", f"{s}\r\nhello\r\n0\r\n\r\n") for s in ("0x5", "+5", "-0", " 5", "5 ", "5_", "5g", "", "5 junk", "\t5", "5\t", "05", "5\x00")],
    *[("A10", f"{s}\r\nhello\r\n0\r\n\r\n") for s in
      ("80000000", "ffffffff", "8000000000000000", "10000000000000000", "10000000000000005", "0" * 1024 + "5", "FFFFFFFFFFFFFFFF")],
    *[("A11", f"5{x}\r\nhello\r\n0\r\n\r\n") for x in (";a=", ";=b", ";", ';a="x\r\n"', ';a="\\""', ";\nhello", ";" + "a" * 65536, "\r\r;a", ";a\rb", " ;a")],
    ("A11", ";\r\nhello\r\n0\r\n\r\n"),
    *[("A12", f"5\r\nhello{e}0\r\n\r\n") for e in ("\n", "XX", "", "\r", "\n\r")],
    ("A12", "4\r\nhello\r\n0\r\n\r\n"), ("A12", "6\r\nhello\r\n0\r\n\r\n"),
    *[("A13", f"5\r\nhello\r\n{e}") for e in ("0\r\n\n", "00\r\n\r\n", "0;\r\n\r\n", "0\n\n", "0\r\r\n", "0\r\n\rX", "0\r\n: x", "0\r\nX\r\n")],
    *[("A14", f"5\r\nhello\r\n0\r\n{t}\r\n\r\n") for t in (" X: y", "X y: z", "X: a\x00b", "X: y\n", "X: " + "a" * 70000, ":", "X")],
    *[("A32", f"5\r\nhello\r\n0\r\n{t}") for t in ("POST {T}/w/2 HTTP/1.1\r\n", "\x00\r\n\r\n")],
)
NOT_HTTP = [("A52", b"\x05\x01\x00"), ("A52", b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00"), ("A52", b"\x16\x03\x01\x02\x00\x01\x00"),
            ("A52", b"SSH-2.0-OpenSSH_9.2\r\n"), ("A52", b"EHLO evil.test\r\n"), ("A53", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c" + b"\x7f\0\0\1" * 3),
            ("A53", b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET {T}/ok HTTP/1.1\r\nHost: {H}\r\n{A}\r\n"),
            ("A39", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")]


SPLITS = (None, "bytes", SEED)  # whole, byte by byte, cut up by chance


def table(name, rows, ways=WAYS, splits=lambda n: (None, SPLITS[1 + n % 2]), cut=False):
    """Every row of an id by each way in, whole and in pieces (of two kinds, in turns by row and way), is refused without a
    byte upstream."""
    def run(lab):
        rig = Rig(lab)
        for turns, transport in enumerate(asked(run)):
            for i in sorted({i for i, _ in rows}):
                with rig.case(i, transport, cut):
                    for n, data in enumerate(data for other, data in rows if other == i):
                        for split in splits(n + turns):
                            turn(rig, transport, f"{i} row {n} {split or 'whole'} {data[:200]!r}", data, split, cut)
        assert rig.gw.tickets("all") == [], "what was refused became a ticket"
        rig.settle(cut)
    run.__name__, run.ways = name, ways
    test()(run)


def turn(rig, transport, what, data, split, cut):
    """Over a connection that is ready for a request, and in SOCKS and captured ones also where that is not in TLS."""
    for plain in (False, True) if transport in ("socks", "captured") else (False,):
        if plain and data[:1] in (b"\x16", "\x16"):
            continue  # that is TLS, and looked at as such
        wire = rig.open(transport, split=split, plain=True) if plain else rig.open(transport, split=split)
        got = wire.talk(data, 1 if plain and transport == "captured" else 0)  # (there the Host is all that is said of where to)
        denied = plain and transport == "captured" and got.status == [403]
        got.closed = got.closed or not denied and wire.talk(b"").closed
        rig.refused(what, got, closed=not denied, cut=cut)
        wire.close()


def at_the_door(rig, transport):
    """The same bytes where no tunnel is yet: on the listener itself."""
    for i, data in NOT_HTTP:
        if transport == "socks" and data.startswith(b"\x05") or transport == "captured" and data.startswith((b"\r\n\r\n\0", b"\x16")):
            continue  # what that listener is for
        for split in SPLITS:
            got = rig.plain(data, transport, eof=True, split=split)
            rig.refused(f"{i} {data[:30]!r} {split or 'whole'}", got)
            assert data[:8] not in got.data, f"{data} comes back: {got}"
    good = proxy2(rig.up.plain_port)
    for what, header in (("twice", good + good), ("local", proxy2(1, command=0x20)), ("port 0", proxy2(0)), ("UDP", good[:13] + b"\x12" + good[14:]), ("a socket", good[:13] + b"\x31" + good[14:]),
                         ("version 1", good[:12] + b"\x11" + good[13:]), ("too short", good[:15] + b"\x0b" + good[16:-1]), ("too long", good[:14] + b"\xff\xff" + good[16:]),
                         ("a wrong TLV", good[:15] + b"\x0f" + good[16:] + b"\x03\0\x09")) if transport == "captured" else [("on this listener", good)]:
        got = rig.plain(header + b"GET /ok HTTP/1.1\r\nHost: {H}\r\n\r\n", transport, eof=True)
        rig.refused(f"A53 a header {what}", got)


for group, entries in (("framing", FRAMING), ("request_lines", LINES), ("hosts", HOSTS), ("not_http", NOT_HTTP)):
    table(group, entries)
table("chunks", CHUNKS, cut=True)
table("transfer_encodings", heads(*[("A4", f"Content-Length: 5\r\n{line}") for line in TE_SPELLINGS]),
      splits=lambda n: SPLITS if n % 8 == 0 else (None,))
everywhere("A39 A52 A53")(at_the_door)


@everywhere("A4 A22", TUNNELLED)
def what_is_legal_though_odd_is_what_it_says(rig, transport):
    wire = rig.open(transport)
    for line in ("Content-Encoding: chunked", "Content-Encoding: CHUNKED"):
        got = wire.talk(wire.head("POST", "/h/1", "Content-Length: 5", line) + b"hello", 1)
        rig.stopped(f"A4 {line}", got)
        wire = rig.open(transport)
    for value in ("\x85b\xa0", "\xa0", "a\x85", "\xc3\xa4", "caf\xe9", "\xff\xfe", *[f"a{chr(c)}" for c in range(0x80, 0x100, 5)]):
        got = wire.talk(wire.head("GET", "/ok", f"X-A: {value}"), 1)
        if got.status == [200]:
            sent = fields_of(rig.passed(f"A22 {value!r}", got, [("GET", "/ok", b"")])[0])
            assert sent["x-a"] == value, sent
        else:
            rig.refused(f"A22 {value!r}", got, closed=False)
            wire = rig.open(transport)


def rss(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def slack(pid):
    """KiB that it may grow by: a sanitizer keeps what was freed, 256 MiB of it, to see it used again."""
    with open(f"/proc/{pid}/maps") as maps:
        return 8192 + (256 * 1024 if "libasan" in maps.read() else 0)


@everywhere("A40")
def heads_have_limits(rig, transport):
    wire = rig.open(transport)
    prefix = len(wire.fill(b"{T}"))
    for n, fits in ((TARGET_MAX - prefix, True), (TARGET_MAX - prefix + 1, False)):
        path = "/ok?" + "a" * (n - 4)
        one_limit(rig, transport, f"A40 a target of {n}", wire.head("GET", path), path, fits)
    for n, fits in ((FIELDS_MAX, True), (FIELDS_MAX + 1, False), (10000, False)):
        have = wire.fill(wire.head("GET", "/ok")).count(b": ")
        one_limit(rig, transport, f"A40 {n} fields", wire.head("GET", "/ok", *[f"X-{k}: a" for k in range(n - have)]), "/ok", fits)
    for n, fits in ((HEAD_MAX, True), (HEAD_MAX + 1, False), (2 * HEAD_MAX, False)):
        have = len(wire.fill(wire.head("GET", "/ok", "X-A: ")))
        one_limit(rig, transport, f"A40 a head of {n}", wire.head("GET", "/ok", "X-A: " + "a" * (n - have)), "/ok", fits)
    for line in ("G" * 100000, "GET {T}/" + "a" * 100000, "GET {T}/ok HTTP/1.1\r\nX: " + "a" * 1000000, "GET {T}/ok HTTP/1.1\r\n" + "a" * 1000000):
        rig.refused(f"A40 {line[:30]} and never an end", rig.open(transport).talk(line, timeout=3))
    before, more = rss(rig.gw.pid("front")), slack(rig.gw.pid("front"))
    for _ in range(50):
        rig.refused("A40 memory", rig.open(transport).talk(b"GET {T}/ok HTTP/1.1\r\nX: " + b"a" * 200000))
    assert rss(rig.gw.pid("front")) < before + more, f"{before} KiB, then {rss(rig.gw.pid('front'))} KiB"


def one_limit(rig, transport, what, data, target, fits):
    wire = rig.open(transport)
    got = wire.talk(data, 1)
    if fits:
        rig.passed(what, got, [("GET", target, b"")])
    else:
        rig.refused(what, got, closed=False)
        assert not got.status or got.status[0] in (400, 414, 431), got
    wire.close()


@everywhere("A41")
def no_split_changes_what_is_decided(rig, transport):
    wire = rig.open(transport)
    auth, body = wire.fill(b"{A}"), b"5\r\nhello\r\nb\r\n world, all\r\n0\r\n\r\n"
    seeds = [(wire.head("GET", "/ok?a=b", "X-A: b"), [200], ("GET", "/ok?a=b", b"")),
             (wire.head("POST", "/w/1", "Content-Length: 5") + b"hello", [200], ("POST", "/w/1", b"hello")),
             (wire.head("POST", "/w/1", CHUNKED) + body, [200], ("POST", "/w/1", b"hello world, all")),
             (wire.head("GET", "/guard"), [403], None), (wire.head("POST", "/h/1", "Content-Length: 3") + b"n=1", [403], None)]
    for data, status, wanted in seeds:
        data = wire.fill(data)
        for at in range(1, len(data)):
            if auth and data.index(auth) < at < data.index(auth) + len(auth) - 4:
                continue  # the same for all that matters, and long
            got = wire.talk(data, 1, split=[at])
            new = [(r["method"], r["target"], rig.up.body(r["n"])) for r in rig.arrived()]
            rig.holds(f"A41 at {at}", got.status == status and new == ([wanted] if wanted else []), (new, got))
            if got.closed or b"onnection: close" in got.data:
                wire.close()
                wire = rig.open(transport)
    all_of_them = b"".join(data for data, _, _ in seeds[:3])
    for split in (None, "bytes", *range(SEED, SEED + 10)):
        wire = rig.open(transport, split=split)
        rig.passed(f"A41 one behind the other, {split}", wire.talk(all_of_them, 3), [wanted for _, _, wanted in seeds[:3]])
        wire.close()


@everywhere("A34", hold="inline_wait: 20s, expires: 2h")
def who_goes_while_a_write_is_held_leaves_a_ticket_and_nothing_else(rig, transport):
    for n, way in enumerate(("end", "half", "reset")):
        wire = rig.open(transport)
        write = wire.fill(wire.head("POST", f"/h/{n}", "Content-Length: 3") + b"n=1")
        wire.sock.sendall(write[:-1])
        rig.holds(f"A34 {way}: a body that is not whole decides nothing", not rig.arrived() and not rig.gw.tickets())
        wire.sock.sendall(write[-1:])
        ticket = rig.gw.pending()["id"]
        rig.holds(f"A34 {way}: upstream untouched", not rig.arrived())
        leave(wire.sock, way)
        other = rig.open(transport)
        other.good(2)  # behind it in the same queue: it was seen to be gone
        rig.gw.approve(ticket)
        if way == "half":  # who ends what it says may still listen: then it has the answer now, and nobody else
            wire.talk(b"", 1)
            before = len(rig.requests())
        else:
            rig.holds(f"A34 {way}: an approval alone sends nothing", not rig.arrived())
            before = 0
        got = other.talk(write, 1)
        if before and rig.up.effects().get(f"POST /h/{n}") and b"Countersign-Ticket" in got.data:
            rig.holds("A34 half: it was sent to the one who asked", len(rig.arrived()) == 1)
        else:
            rig.passed(f"A34 {way}: the same again", got, [("POST", f"/h/{n}", b"n=1")])
        other.close()


def leave(sock, way):
    if way == "half":  # under TLS, too: the end of what comes
        socket.socket.shutdown(sock, socket.SHUT_WR)
        return
    if way == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


if __name__ == "__main__":
    main()
