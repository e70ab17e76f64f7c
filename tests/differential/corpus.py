"""Messages for the differential test: the cases of group A of the attack catalogue, and mutations of good messages.
The same list every time. Each is (id, place, bytes): place 1 in a tunnel, 2 on the proxy port, 4 a response."""
import random

HOST = b"Host: a.example\r\n"
GET = b"GET /x?y=1 HTTP/1.1\r\n" + HOST + b"Accept: */*\r\n\r\n"
POST = b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nX-A: b, c\r\n\r\nhello"
CHUNKED = b"POST /x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n"
TRAILER = CHUNKED[:-2] + b"X-T: v\r\n\r\n"
ABSOLUTE = b"GET http://a.example:80/x HTTP/1.1\r\nHost: a.example:80\r\n\r\n"
CONNECT = b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"
UPGRADE = b"GET /ws HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
EXPECT = POST.replace(b"X-A: b, c", b"Expect: 100-continue")
PIPELINED = GET + POST + CHUNKED + GET
SEEDS = [(1, GET), (1, POST), (1, CHUNKED), (1, TRAILER), (2, ABSOLUTE), (2, CONNECT), (1, UPGRADE), (1, EXPECT),
         (1, PIPELINED), (1, GET.replace(b"1.1", b"1.0"))]
OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS = [OK + b"Content-Length: 5\r\n\r\nhello", OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nT: v\r\n\r\n",
           OK + b"A: b\r\n\r\nhello", b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 0\r\n\r\n",
           b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
           b"HTTP/1.1 204 \r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"]
# What parsers disagree on: controls, line ends, white space of other alphabets, separators.
BYTES = [bytes([c]) for c in (0, 1, 8, 9, 10, 11, 12, 13, 27, 31, 32, 127, 0x80, 0x85, 0xa0, 0xff)] + \
    [b"\r\n", b"\n\n", b"\r\n ", b"\r\n\t", b"  "] + [bytes([c]) for c in b"\",;:=_+-.()/\\@[]{}<>#?%&'*0x1A"]


def with_field(line, method=b"POST", body=b"", version=b"HTTP/1.1"):
    return method + b" /x " + version + b"\r\n" + HOST + line + b"\r\n\r\n" + body


def framing():
    body = b"5\r\nhello\r\n0\r\n\r\n"
    te = b"Transfer-Encoding: "
    for first, second in ((b"Content-Length: 5", te + b"chunked"), (te + b"chunked", b"Content-Length: 5")):
        yield "A1", with_field(first + b"\r\n" + second, body=body)
        yield "A1", with_field(first + b"\r\nX-A: b\r\n" + second, body=body)
    for v in (b"chunked,", b"chunked ", b"chunked\t", b",chunked", b"chunked, gzip", b"chunked;x=1", b"identity, chunked",
              b"gzip, chunked", b"gzip", b"xchunked", b"", b"Chunked", b"CHUNKED", b"\"chunked\"", b"chunked, chunked",
              b"identity", b"chunked\x00", b"\x0bchunked", b"chunked\x0c", b"chunk\xe9d", b"chunked\xa0"):
        yield "A2 A6", with_field(te + v, body=body)
        yield "A2 A6", with_field(te + v + b"\r\nContent-Length: 5", body=body)
        yield "A5", with_field(te + v, body=body, version=b"HTTP/1.0")
        yield "A3", with_field(te + b"chunked\r\n" + te + v, body=body)
        yield "A3", with_field(te + v + b"\r\n" + te + b"chunked", body=body)
    for v in (b"", b"+5", b"-0", b"-1", b"0x5", b"5_0", b"5 5", b"5\x0b", "５".encode(), b"005", b"010", b"5;", b"5.0",
              b"5, 5", b"5,5", b"5,6", b"9" * 19, b"9" * 20, b"9223372036854775808", b"18446744073709551621", b"5\t",
              b"\t5", b" 5 ", b"0", b"00", b"5\x00", b"5\xa0", b"e5", b"1e1", b"5\r\n 0"):
        yield "A8", with_field(b"Content-Length: " + v, body=b"hello")
        yield "A8", with_field(b"Content-Length:" + v, body=b"hello")
        yield "A7", with_field(b"Content-Length: 5\r\nContent-Length: " + v, body=b"hello")
        yield "A7", with_field(b"Content-Length: " + v + b"\r\nContent-Length: 5", body=b"hello")
    for name in (b"Content_Length", b"Content Length", b"Content-Length ", b"\xefContent-Length", b"content-length"):
        yield "A50", with_field(name + b": 5", body=b"hello")


def obfuscation():
    """A4: the coding's field name and value, each byte before, inside and behind it."""
    for c in list(range(0x20)) + list(range(0x7f, 0x100)):
        c = bytes([c])
        for line in (c + b"Transfer-Encoding: chunked", b"Transfer-Encoding" + c + b": chunked", b"Transfer-Encoding:" + c + b"chunked",
                     b"Transfer-Encoding: chunked" + c, b"Transfer-" + c + b"Encoding: chunked", b"Transfer-Encoding: chu" + c + b"nked",
                     b"X: X" + c + b"Transfer-Encoding: chunked", b"X: X\r" + c + b"Transfer-Encoding: chunked"):
            yield "A4", with_field(line, body=b"0\r\n\r\n")
            yield "A4", with_field(b"Content-Length: 5\r\n" + line, body=b"0\r\n\r\n")


def chunks():
    head = CHUNKED[:CHUNKED.index(b"\r\n\r\n") + 4]
    sizes = [b"0x5", b"+5", b"-0", b" 5", b"5 ", b"5\t", b"5_", b"5g", b"", b"5 junk", b"05", b"0" * 15 + b"5", b"0" * 1024 + b"5",
             b"80000000", b"ffffffff", b"8000000000000000", b"10000000000000000", b"10000000000000005", b"5;a=b", b"5;",
             b"5;a=\"x\r\n\"", b"5;\nhello", b";", b"5\r;a", b"5 ;a", b"5\x00", b"5\r", b"A", b"a", b"5, 5", b"\xef\xbc\x95"]
    for s in sizes:
        yield "A9 A10 A11", head + s + b"\r\nhello\r\n0\r\n\r\n"
        yield "A9 A10 A11", head + b"5\r\nhello\r\n" + s + b"\r\nhello\r\n0\r\n\r\n"
        yield "A13", head + b"5\r\nhello\r\n" + s.replace(b"5", b"0") + b"\r\n\r\n"
    for end in (b"\n", b"XX", b"", b"\r", b"\r\r\n", b"\n\r", b"\r\n\r\n", b" \r\n", b"x\r\n"):
        yield "A12", head + b"5\r\nhello" + end + b"0\r\n\r\n"
        yield "A12", head + b"5\r\nhell" + end + b"0\r\n\r\n"
        yield "A13", head + b"5\r\nhello\r\n0" + end + b"\r\n"
        yield "A13", head + b"5\r\nhello\r\n0\r\n" + end
        yield "A13", head + b"5" + end + b"hello\r\n0\r\n\r\n"
    for t in (b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Host: b", b"X", b"X : y", b" X: y", b": y", b"X: a\nY: b", b"X: \x00",
              b"X: a\r\n b", b"X: \xff", b"Trailer: x", b"X: " + b"a" * 9000):
        yield "A14", head + b"5\r\nhello\r\n0\r\n" + t + b"\r\n\r\n"


def heads():
    for line in (b"X: a\nY: b", b"X: a\n", b"X: a\rY: b", b"X: a\r", b"X: \rY", b"X\r: a", b"X: a\r\n b", b"X: a\r\n\tb", b"X: a\r\n \r\n b", b" X: a",
                 b"X : a", b"X\t: a", b"X\x85: a", b"X\xa0: a", b"X Y: a", b"X", b": a", b":", b"", b"X:", b"X: ", b"X:\t", b"X:a",
                 b"X: a ", b"X: \xa0", b"X: a\x85", b"X: caf\xe9", b"X: \xc3\xa9", b"X_Y: a", b"X.Y: a", b"'X: a", b"`X: a", b"|X: a", b"~: a"):
        yield "A15 A16 A18 A19 A20 A22", with_field(line, b"GET")
        yield "A18", b"GET /x HTTP/1.1\r\n" + line + b"\r\n" + HOST + b"\r\n"
    for c in range(256):
        c = bytes([c])
        yield "A17 A21", with_field(b"X" + c + b"Y: a", b"GET")
        yield "A17 A22", with_field(b"X: a" + c + b"b", b"GET")
        yield "A17 A22", with_field(b"X: " + c, b"GET")
        yield "A17 A30", b"G" + c + b"T /x HTTP/1.1\r\n" + HOST + b"\r\n"
        yield "A17 A27", b"GET /x" + c + b"y HTTP/1.1\r\n" + HOST + b"\r\n"
        yield "A17 A27", b"GET /x?" + c + b" HTTP/1.1\r\n" + HOST + b"\r\n"
        yield "A17 A23", b"GET /x HTTP/1.1\r\nHost: a" + c + b"b\r\n\r\n"
        yield "A17 A28", b"GET /x HTTP/1.1" + c + b"\r\n" + HOST + b"\r\n"
        yield "A28", b"GET" + c + b"/x HTTP/1.1\r\n" + HOST + b"\r\n"
        yield "A29 A52", c + GET
    for line in (b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\r\n" * 1000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                 b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + b"\1" * 12, b"\x05\x01\x00", b"\x04\x01",
                 b"\x16\x03\x01\x00\x05", b"SSH-2.0-x\r\n", b"EHLO a\r\n"):
        yield "A29 A39 A52 A53", line + GET
    for v in (b"HTTP/0.9", b"http/1.1", b"HTTP/1.2", b"HTTP/1.9", b"HTTP/2.0", b"HTTP/3", b"HTTP/1.1.1", b"HTTP/4294967295.255", b"HTTP/01.1",
              b"HTTP/1.01", b"HTTP/1.1 ", b" HTTP/1.1", b"HTTP /1.1", b"HTTP/1.", b"HTTP/.1", b"HTTP/1,1", b"HTTP/1.1\t", b"", b"HTP/1.1", b"HTTPS/1.1",
              b"ICE/1.0", b"RTSP/1.0", b"HTTP/1.0", b"HTTP/+1.1", b"HTTP/1.\xb1"):
        yield "A28", b"GET /x " + v + b"\r\n" + HOST + b"\r\n"
    for m in (b"get", b"GE T", b"G=\":<>(e),[T]", b"G" * 32, b"G" * 33, b"G" * 1024, b"", b"PRI", b"GETX", b"TRACE", b"TRACK", b"DEBUG", b"M-SEARCH",
              b"SOURCE", b"PATCH", b"PUT", b"DELETE", b"OPTIONS", b"HEAD", b"PROPFIND", b"BREW", b"QUERY", b"GET\x00", b"\x80ET"):
        yield "A30 A43", m + b" /x HTTP/1.1\r\n" + HOST + b"\r\n"
        yield "A36", m + b" /x HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello"


def destinations():
    for h in (b"", b"a,b", b"a b", b"a@b", b"a/b", b"a?b", b"a#b", b"[::1", b"a:", b"a:99999", b"a:0", b"a:+80", b"a:0443", b"a:80:80", b"[::1]", b"[::1]:80",
              b"::1", b"127.0.0.1", b"127.1", b"0x7f.1", b"a..b", b"-a", b"a_b", b"a.", b"*", b"a%41", b"a\tb", b"\xc3\xa9", b"A.EXAMPLE", b"a;b", b"a\\b"):
        yield 1, "A23", b"GET /x HTTP/1.1\r\nHost: " + h + b"\r\n\r\n"
        yield 2, "A24", b"GET http://" + h + b"/x HTTP/1.1\r\nHost: " + h + b"\r\n\r\n"
        yield 2, "A24", b"GET http://a.example/x HTTP/1.1\r\nHost: " + h + b"\r\n\r\n"
        yield 2, "A25", b"CONNECT " + h + b":443 HTTP/1.1\r\nHost: " + h + b":443\r\n\r\n"
        yield 1, "A23", b"GET /x HTTP/1.1\r\n" + HOST + b"Host: " + h + b"\r\n\r\n"
    yield 1, "A23", b"GET /x HTTP/1.1\r\n\r\n"
    yield 1, "A23", b"GET /x HTTP/1.0\r\n\r\n"
    for t in (b"*", b"a.example:443", b"x", b"//h/x", b"http:/x", b"http://", b"HTTP://A.EXAMPLE/", b"https://a.example/", b"ftp://a/", b"file:///x", b"ws://a/",
              b"http://u:p@a.example/", b"http://a.example", b"http://a.example?x", b"/x y", b"/x#y", b"/%zz", b"/%00", b"/../x", b"/a%2fb", b"/\\x", b"", b"/" + b"a" * 17000):
        for place in (1, 2):
            yield place, "A25 A26 A27", b"GET " + t + b" HTTP/1.1\r\n" + HOST + b"\r\n"
        yield 1, "A25", b"OPTIONS " + t + b" HTTP/1.1\r\n" + HOST + b"\r\n"
        yield 2, "A25", b"CONNECT " + t + b" HTTP/1.1\r\n" + HOST + b"\r\n"
    yield 2, "A42", CONNECT[:-2] + b"Content-Length: 5\r\n\r\nhello"
    yield 2, "A42", CONNECT + b"\x16\x03\x01\x00\x05"


def connection():
    for line in (b"Connection: Authorization, Host, Content-Length", b"Connection: close, X-Injected", b"Connection: close", b"Connection: keep-alive",
                 b"Connection: close\r\nConnection: keep-alive", b"Connection: keep-alive, close", b"Connection: ,", b"Connection:", b"Upgrade: h2c\r\nHTTP2-Settings: x",
                 b"Upgrade: foo", b"Upgrade: foo\r\nConnection: upgrade", b"Connection: notupgrade\r\nUpgrade: x", b"Connection: upgrade", b"Proxy-Connection: close",
                 b"Expect: 100-continue", b"Expect: y 100-continue", b"Expect:", b"Expect: 100-continue\r\nExpect: 100-continue", b"Authorization: a\r\nAuthorization: b",
                 b"Cookie: a\r\nCookie: b", b"Content-Type: a\r\nContent-Type: b", b"Max-Forwards: 0", b"Via: x", b"TE: trailers", b"Keep-Alive: timeout=5"):
        for version in (b"HTTP/1.1", b"HTTP/1.0"):
            yield "A35 A37 A38 A49", with_field(line, b"GET", version=version) + GET
            yield "A35 A37 A38 A49", with_field(line + b"\r\nContent-Length: 5", body=b"hello", version=version) + GET
            yield "A31 A38", with_field(line + b"\r\nTransfer-Encoding: chunked", body=b"0\r\n\r\n", version=version) + GET
    yield "A31", GET * 100
    yield "A31", GET + b"junk\r\n\r\n"
    yield "A32", POST + b"smuggled" + GET
    yield "A32", with_field(b"Content-Length: 100", body=GET) + GET
    yield "A40", with_field(b"\r\n".join(b"X-%d: y" % i for i in range(98)), b"GET")
    yield "A40", with_field(b"\r\n".join(b"X-%d: y" % i for i in range(101)), b"GET")
    yield "A40", with_field(b"X: " + b"y" * 40000, b"GET")


def answers():
    for line in (b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"Content-Length: 5\r\nContent-Length: 5", b"Content-Length: 5\r\nContent-Length: 6",
                 b"Content-Type: a/b\r\nContent-Length: 5\r\nContent-Type: a/b", b"Content-Type: a/b\r\nContent-Type: b/a\r\nContent-Length: 5",
                 b"Content-Length: 5, 5", b"Content-Length: +5", b"Content-Length: -1", b"Content-Length:", b"Content-Length: 05", b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked, gzip",
                 b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: ", b"X: a\nY: b", b"X: a\r\n b", b"X", b"X : a", b": a",
                 b"X: \x00", b"X: a\rb", b" X: a", b"X: caf\xe9", b"Connection: close", b"Connection: keep-alive", b"Set-Cookie: a\r\nSet-Cookie: b"):
        for body in (b"hello", b"5\r\nhello\r\n0\r\n\r\n"):
            for version in (b"HTTP/1.1", b"HTTP/1.0"):
                yield "A44", version + b" 200 OK\r\n" + line + b"\r\n\r\n" + body
    for start in (b"HTTP/1.1 2000 OK", b"HTTP/1.1 20 OK", b"HTTP/1.1 -20 OK", b"HTTP/1.1 099 OK", b"HTTP/1.1 600 OK", b"HTTP/1.1 999 OK", b"HTTP/1.1 200", b"HTTP/1.1 200 ", b"HTTP/1.1  200 OK",
                  b"HTTP/1.1\t200 OK", b"HTTP/1.1 200\tOK", b"HTTP/1.2 200 OK", b"HTTP/2 200 OK", b"HTTP/2.0 200 OK", b"HTTP/0.9 200 OK", b"http/1.1 200 OK", b" HTTP/1.1 200 OK", b"ICY 200 OK",
                  b"HTTP/1.1 200 O\x00K", b"HTTP/1.1 200 O\rK", b"HTTP/1.1 200 \xc3\xa9", b"HTTP/1.1 2x0 OK", b"HTTP/1.1 200 OK ", b"RTSP/1.0 200 OK", b"HTTP/1.1 101 Switching Protocols", b"HTTP/1.1 200 " + b"x" * 40000):
        yield "A44", start + b"\r\nContent-Length: 5\r\n\r\nhello"
    for status in (b"100", b"101", b"102", b"103", b"199", b"204", b"205", b"304"):
        for line in (b"", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"X: y\r\n"):
            yield "A45 A47", b"HTTP/1.1 " + status + b" X\r\n" + line + b"\r\n" + ANSWERS[0]
    yield "A46", ANSWERS[0] + ANSWERS[0]
    for line, _ in ((m, 0) for _, m in chunks()):
        yield "A44", OK + line[line.index(b"Transfer-Encoding"):]


def everywhere(seed, offsets=None):
    """Each byte of BYTES put in, put in place of, and each byte taken out or doubled, at every offset."""
    for at in offsets or range(len(seed) + 1):
        yield seed[:at] + seed[at + 1:]
        yield seed[:at] + seed[at:at + 1] + seed[at:]
        for b in BYTES:
            yield seed[:at] + b + seed[at:]
            yield seed[:at] + b + seed[at + 1:]


LINES = [b"Content-Length: 5", b"Content-Length: 0", b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip", b"Host: b.example", b"Connection: close", b"Upgrade: h2c",
         b"Expect: 100-continue", b" folded", b"\tfolded", b"X", b"", b"0", b"5", b"GET / HTTP/1.1", b"TE: trailers", b"Content_Length: 5", b"X-A: \x00"]


def mutate(rng, m):
    kind = rng.randrange(8)
    at = rng.randrange(len(m) + 1)
    lines = m.split(b"\r\n")
    k = rng.randrange(len(lines))
    if kind == 0:
        return m[:at] + rng.choice(BYTES) + m[at:]
    if kind == 1:
        return m[:at] + rng.choice(BYTES) + m[at + 1:]
    if kind == 2:
        return m[:at] + m[at + rng.randrange(1, 9):]
    if kind == 3:
        return b"\r\n".join(lines[:k] + [rng.choice(LINES)] + lines[k:])
    if kind == 4:
        return b"\r\n".join(lines[:k] + lines[k + 1:])
    if kind == 5:
        return b"\r\n".join(lines[:k + 1] + lines[k:])
    if kind == 6:
        j = rng.randrange(len(lines))
        lines[j], lines[k] = lines[k], lines[j]
        return b"\r\n".join(lines)
    return b"\r\n".join(lines[:k + 1]) + rng.choice([b"\n", b"\r", b"\r\r\n", b"\n\r\n"]) + b"\r\n".join(lines[k + 1:])


def corpus(seed=1, random_messages=8000):
    for place, m in SEEDS:
        yield "seed", place, m
    for m in ANSWERS:
        yield "seed", 4, m
    for part in (framing, obfuscation, chunks, heads, connection):
        for name, m in part():
            yield name, 1, m
    for place, name, m in destinations():
        yield name, place, m
    for name, m in answers():
        yield name, 4, m
    for place, m in ((1, CHUNKED), (1, POST), (2, CONNECT), (4, ANSWERS[1])):
        for changed in everywhere(m):
            yield "every byte", place, changed
    rng = random.Random(seed)
    for _ in range(random_messages):
        place, m = rng.choice(SEEDS + [(4, a) for a in ANSWERS])
        for _ in range(rng.choice((1, 1, 2, 3))):
            m = mutate(rng, m)
        yield "mutation", place, m
