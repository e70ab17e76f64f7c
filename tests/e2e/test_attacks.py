#!/usr/bin/env python3
"""Hostile requests, byte by byte (attacks.md group A, and B where the spelling is the attack), over each transport."""
import os

from attack import Rig
from harness import main, test
from ways import WAYS

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
      ("gzip", "chunked, gzip", "xchunked", "", "gzip, chunked", "Chunked", "chunked,", "identity", "\x0bchunked")],
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
LINES = lines(
    *[("A17", f"G{c}T {{T}}/ok HTTP/1.1") for c in C0], *[("A17", f"GET {{T}}/o{c}k HTTP/1.1") for c in C0],
    *[("A17", f"GET {{T}}/ok HTTP/1.{c}1") for c in C0[:4]],
    *[("A27", f"GET {{T}}/o{c}k HTTP/1.1") for c in ' #\\<>"{}^|`\x80\xff\t'],
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
    *[("A11", f"5{x}\r\nhello\r\n0\r\n\r\n") for x in (";a=b", ";", ';a="x\r\n"', ";\nhello", ";" + "a" * 65536, "\r\r;a", ";a\rb", " ;a")],
    ("A11", ";\r\nhello\r\n0\r\n\r\n"),
    *[("A12", f"5\r\nhello{e}0\r\n\r\n") for e in ("\n", "XX", "", "\r", "\n\r")],
    ("A12", "4\r\nhello\r\n0\r\n\r\n"), ("A12", "6\r\nhello\r\n0\r\n\r\n"),
    *[("A13", f"5\r\nhello\r\n{e}") for e in ("0\r\n\n", "00\r\n\r\n", "0;x\r\n\r\n", "0\n\n", "0\r\r\n", "0\r\n\rX", "0\r\n: x", "0\r\nX\r\n")],
    *[("A14", f"5\r\nhello\r\n0\r\n{t}\r\n\r\n") for t in (" X: y", "X y: z", "X: a\x00b", "X: y\n", "X: " + "a" * 70000, ":", "X")],
    *[("A32", f"5\r\nhello\r\n0\r\n{t}") for t in ("POST {T}/w/2 HTTP/1.1\r\n", "\x00\r\n\r\n")],
)
NOT_HTTP = [("A52", b"\x05\x01\x00"), ("A52", b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00"), ("A52", b"\x16\x03\x01\x02\x00\x01\x00"),
            ("A52", b"SSH-2.0-OpenSSH_9.2\r\n"), ("A52", b"EHLO evil.test\r\n"), ("A53", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c" + b"\x7f\0\0\1" * 3),
            ("A53", b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET {T}/ok HTTP/1.1\r\nHost: {H}\r\n{A}\r\n"),
            ("A39", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")]


SPLITS = (None, "bytes", SEED)  # whole, byte by byte, cut up by chance


def table(name, rows, ways=WAYS):
    """A test a way in: every row of an id, whole and in pieces, is refused without a byte upstream."""
    for transport in ways:
        def run(lab, transport=transport):
            rig = Rig(lab)
            for i in sorted({i for i, _ in rows}):
                with rig.case(i, transport, cut=name == "chunks"):
                    for n, data in enumerate(data for other, data in rows if other == i):
                        for split in SPLITS:
                            wire = rig.open(transport, split=split)
                            got = wire.talk(data)
                            rig.refused(f"{i} row {n} {split or 'whole'} {data[:200]!r}", got, cut=name == "chunks")
                            wire.close()
            assert rig.gw.tickets("all") == [], "what was refused became a ticket"
            rig.settle(cut=name == "chunks")
        run.__name__ = f"{name}_over_{transport}"
        test()(run)


for group, entries in (("framing", FRAMING), ("request_lines", LINES), ("hosts", HOSTS), ("chunks", CHUNKS), ("not_http", NOT_HTTP)):
    table(group, entries)

if __name__ == "__main__":
    main()
