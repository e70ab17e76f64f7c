#!/usr/bin/env python3
"""Hostile answers (attacks.tsv A44 to A48, D), one sandbox against another (D32, E25), and the desk (E9, E11, E12)."""
import base64
import http.client
import json
import re
import socket
import textwrap
import threading
import time
import urllib.parse

import room  # noqa: F401
from attack import Rig, everywhere, raw_answer
from gateway import program
from harness import PATIENCE, main, test
from ways import TUNNELS

OK = b"HTTP/1.1 200 OK\r\n"
BAD_HEADS = [
    OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    OK + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    OK + b"Content-Length: 5\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", OK + b"Content-Length: 5, 5\r\n\r\nhello", OK + b"Content-Length: +5\r\n\r\nhello",
    OK + b"Content-Length: -5\r\n\r\nhello", OK + b"Content-Length: 0x5\r\n\r\nhello", OK + b"Content-Length: 99999999999999999999\r\n\r\nhello",
    OK + b"Content-Length: \r\n\r\nhello", OK + b"Transfer-Encoding: gzip\r\n\r\nhello", OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    OK + b"Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n", OK + b"X: a\0b\r\n\r\n", OK + b"X: a\rb\r\n\r\n", OK + b"X: a\r\n b\0\r\n\r\n", OK + b"Content-Length: 1\r\n 0\r\n\r\nhellohello", OK + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", OK + b"X a\r\n\r\n",
    OK + b": a\r\n\r\n", OK + b"X : a\r\n\r\n", OK + b" X: a\r\n\r\n", OK + b"X\x01: a\r\n\r\n", b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", OK[:-2] + b"\0\r\n\r\n",
    b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 -200 OK\r\n\r\n", b"HTTP/1.1 099 OK\r\n\r\n", b"HTTP/1.1 000 OK\r\n\r\n", b"HTTP/1.1 1000 OK\r\n\r\n",
    b"HTTP/2.0 200 OK\r\n\r\n", b"HTTP/1.2 200 OK\r\n\r\n", b"http/1.1 200 OK\r\n\r\n", b"ICY 200 OK\r\n\r\n", b"200 OK\r\n\r\n", b"hello", b"\r\n\r\n", b"\x16\x03\x01\x00\x00",
    b"HTTP/1.1  200 OK\r\n\r\n", b"HTTP/1.1\t200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK" + b"x" * 70000 + b"\r\n\r\n", OK + b"".join(b"X-%d: a\r\n" % n for n in range(1000)) + b"\r\n", OK + b"X: " + b"a" * 70000 + b"\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello", b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 103 Early\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + OK + b"\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + OK + b"Content-Length: 0\r\n\r\n", b""]
BAD_BODIES = [OK + b"Transfer-Encoding: chunked\r\n\r\n" + b for b in (
    b"5\r\nhelloXX0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b"5;a=\r\nhello\r\n0\r\n\r\n", b"-5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n", b"5\r\nhel", b"5\nhello\n0\n\n",
    b"ffffffffffffffff\r\nhello", b"5\r\nhello\r\n0\r\nX y\r\n\r\n", b"5\r\nhello\r\n0\r\n", b"5\r\nhello\r\n0\r\nX: " + b"a" * 70000 + b"\r\n\r\n")]
CUT_SHORT = [OK + b"Content-Length: 50\r\n\r\nhello", OK + b"Content-Type: text/plain\r\nContent-Length: 50\r\n\r\n", b""]
CUT_SHORT += [OK + b"Transfer-Encoding: chunked\r\n\r\n" + b for b in (b"5\r\nhello\r\n", b"5\r\nhel", b"5\r\nhello\r\n0\r\n")]
BAD_BODIES += CUT_SHORT[:2]


def of_what(answer):
    """The id of such an answer: an interim one, one that ends too early, any other."""
    if answer[9:10] == b"1":
        return "A45"
    return "D19" if answer in CUT_SHORT else "A44"


@everywhere(["A44", "A45", "D19"])
def an_answer_that_is_not_clean_is_refused_or_cut(rig, transport, case):
    for n, (answer, cut) in enumerate([(a, False) for a in BAD_HEADS] + [(a, True) for a in BAD_BODIES]):
        for keep in (True, False) if of_what(answer) == case else ():
            if not keep and cut:
                continue  # an upstream that merely waits is waited for
            wire = rig.open(transport)
            rig.up.script({"/scripted": raw_answer(answer, close=not cut or keep)})
            got = wire.talk(wire.head("GET", "/scripted"), 1)
            what = f"{case} row {n} {answer[:120]!r}"
            if got.status == [502]:
                rig.holds(what, b"hello" not in got.data, got)
            else:
                rig.holds(what, cut and (got.closed or got.why), got)
                ended = got.status or re.search(rb"(\A|\r\n)0\r\n\r\n\Z", got.data)
                assert not ended, f"{what}: a cut answer looks complete: {got}"
            wire.close()
            rig.arrived()


@everywhere("A44")
def what_real_servers_say_is_passed_on_in_one_form(rig, transport):
    many = b"".join(b"X-%d: %s\r\n" % (n, b"a" * 200) for n in range(250))
    rows = ((200, b"200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\ncontent-type: text/plain\r\nContent-Length: 5\r\n"),
            (200, b"200 OK\r\nX-A: one\r\n two\r\n\tthree\r\nContent-Length: 5\r\n"), (200, b"200 OK\r\nContent-Length: 5\r\n" + many),
            (600, b"600 Odd\r\nContent-Length: 5\r\n"), (999, b"999 No\r\nContent-Length: 5\r\n"))
    for status, head in rows:
        rig.up.script({"/said": raw_answer(b"HTTP/1.1 " + head + b"\r\nhello", close=False)})
        wire = rig.open(transport)
        got = wire.talk(wire.head("GET", "/said"), 1)
        names = [line.split(b":")[0].lower() for line in got.data.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]]
        rig.holds(f"A44 {head[:40]!r}", got.status == [status] and got.data.endswith(b"\r\n\r\nhello"), got)
        assert names.count(b"content-length") == 1 and names.count(b"content-type") <= 1 and b"two" not in names, got
        assert head.count(b"X-") == sum(n.startswith(b"x-") for n in names), got
        assert b"X-A" not in head or b"X-A: one two three\r\n" in got.data, got
        rig.arrived()
        wire.close()
    chunks = b"5;a;b=c\r\nhello\r\n0;d=\"e, f\"\r\n\r\n"
    rig.up.script({"/said": raw_answer(OK + b"Transfer-Encoding: Chunked\r\n\r\n" + chunks, close=False)})
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/said"), 1)
    rig.holds("A44 extensions", got.status == [200] and b"hello" in got.data and b";" not in got.data.partition(b"\r\n\r\n")[2], got)
    rig.arrived()
    wire.close()


@everywhere("A45 A46 A47")
def what_comes_beside_the_answer_is_nobodys_answer(rig, transport):
    poison = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
    good = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"
    rows = [("A46 two answers", "GET", good + poison), ("A45 an interim one", "GET", b"HTTP/1.1 100 Continue\r\n\r\n" + good),
            ("A45 102", "GET", b"HTTP/1.1 102 Processing\r\n\r\n" + good), ("A45 hints", "GET", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + good),
            ("A47 204 with a body", "GET", b"HTTP/1.1 204 No\r\nContent-Length: 6\r\n\r\npoison" + poison),
            ("A47 304 with a body", "GET", b"HTTP/1.1 304 No\r\nContent-Length: 6\r\n\r\npoison" + poison),
            ("A47 HEAD with a body", "HEAD", OK + b"Content-Length: 6\r\n\r\npoison" + poison),
            ("A47 204 chunked", "GET", b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n6\r\npoison\r\n0\r\n\r\n"),
            ("A47 to the end", "GET", b"HTTP/1.1 200 OK\r\n\r\ngood"), ("A47 1.0", "GET", b"HTTP/1.0 200 OK\r\n\r\ngood" + b" "),
            ("A46 CL then more", "GET", OK + b"Content-Length: 4\r\n\r\ngoodpoison")]
    for what, method, answer in rows:
        wire = rig.open(transport)
        if what in ("A47 to the end", "A47 1.0"):
            got = wire.talk(wire.head("GET", raw_answer(answer)), 1)
            if transport == "absolute":
                rig.holds(what, got.status == [200] and b"good" in got.data and wire.talk(wire.head("GET", "/ok"), 1).status == [200], got)
            else:  # over TLS the end must be said, or it is a cut (D19)
                rig.holds(what, got.closed and not got.data.endswith(b"0\r\n\r\n"), got)
            rig.arrived()
            continue
        for _ in range(3):
            got = wire.talk(wire.head(method, raw_answer(answer, close=False)), 1, heads=(0,) if method == "HEAD" else ())
            rig.holds(what, b"poison" not in got.data and len(got.status) == 1 and got.status[0] in (200, 204, 304), got)
            assert b" 103 " not in got.data and b" 102 " not in got.data and got.data.count(b"HTTP/1.1") <= 2, (what, got)
            got = wire.talk(wire.head("GET", "/ok"), 1)
            assert got.status == [200] and b'{"ok":true}' in got.data, f"{what}: the next request got another answer: {got}"
        wire.close()
        rig.arrived()
    wire = rig.open(transport)
    got = wire.talk(wire.head("POST", "/w/1?x", "Content-Length: 3") + b"abc", 1)
    rig.passed("A46 a write on such a connection", got, [("POST", "/w/1?x", b"abc")])


@everywhere("A48", cut=True)
def an_early_answer_ends_both_connections(rig, transport):
    """The rest of the body is nobody's request."""
    rig.up.script({"POST /w/early": "/earlyanswer"})
    for declared, ahead in ((300000, 1000), (300000, 0), (3000, 10), (3000, 3000), (300000, 300000)):
        wire = rig.open(transport)
        inner = wire.fill(wire.head("DELETE", "/w/inner"))
        body = b"x" * declared + inner
        got = wire.talk(wire.head("POST", "/w/early", f"Content-Length: {len(body)}") + body[:ahead], 1)
        new = [r["target"] for r in rig.arrived()]
        rig.holds(f"A48 {ahead} of {declared}", got.status in ([200], [409]), got)
        got = wire.talk(body[ahead:] + wire.head("GET", "/guard"), timeout=2)
        new += [r["target"] for r in rig.arrived()]
        rig.holds(f"A48 the rest of {declared}", new == ["/w/early"] and got.closed and got.status in ([], [403]), (new, got))
        wire.close()
        wire = rig.open(transport)
        rig.passed("A48 the next", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
        wire.close()


def forms(secret):
    whole = ("Bearer " + secret).encode()
    return {"raw": whole, "base64": base64.b64encode(whole), "percent": "".join(f"%{c:02X}" for c in whole).encode(), "url": base64.urlsafe_b64encode(b"~" + whole)}


@everywhere("D2 D4 D10 D25 D27", TUNNELS)
def a_secret_is_covered_wherever_an_answer_hides_it(rig, transport):
    for name, text in forms(rig.secret).items():
        places = {
            "value": OK + b"X-Echo: " + text + b"\r\nContent-Length: 0\r\n\r\n",
            "many": OK + b"X-A: " + text + b" " + text + b"\r\nWarning: " + text + b"\r\nContent-Length: 0\r\n\r\n",
            "location": b"HTTP/1.1 302 Found\r\nLocation: https://evil.test/?" + text.replace(b" ", b"") + b"\r\nContent-Length: 0\r\n\r\n",
            "challenge": b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"" + text + b"\"\r\nContent-Length: 0\r\n\r\n",
            "reason": b"HTTP/1.1 400 " + text + b"\r\nContent-Length: 0\r\n\r\n",
            "cookie": OK + b"Set-Cookie: a=" + text + b"\r\nContent-Length: 0\r\n\r\n",
            "interim": b"HTTP/1.1 103 Early\r\nX: " + text + b"\r\n\r\n" + OK + b"Content-Length: 0\r\n\r\n",
            "trailer": OK + b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Echo: " + text + b"\r\n\r\n",
            "error": b"HTTP/1.1 500 No\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(text) + text,
            "type": OK + b"Content-Type: " + text + b"\r\nContent-Length: 0\r\n\r\n",
            "extension": OK + b"Transfer-Encoding: chunked\r\n\r\n2;" + text + b"\r\nok\r\n0\r\n\r\n",
            "no-type": OK + b"Content-Length: %d\r\n\r\n" % len(text) + text,
            "binary": OK + b"Content-Type: image/png\r\nContent-Length: %d\r\n\r\n" % len(text) + text,
            "tiny": OK + b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(b"1\r\n%c\r\n" % c for c in text) + b"0\r\n\r\n",
            "two": OK + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % 9 + text[:9] + b"\r\n%x\r\n" % len(text[9:]) + text[9:] + b"\r\n0\r\n\r\n",
            "malformed": OK + b"X: a\0" + text + b"\r\n\r\n", "garbage": text + b"\r\n\r\n", "after": OK + b"Content-Length: 2\r\n\r\nok" + text,
            "cut": OK + b"Content-Type: text/plain\r\nContent-Length: 5000\r\n\r\n" + text[:-1],
        }
        for place, answer in places.items():
            wire = rig.open(transport)
            rig.up.script({f"/scripted/{place}": raw_answer(answer)})
            got = wire.talk(wire.head("GET", f"/scripted/{place}"), 1)
            core = text[8:-2] if place != "cut" else text[8:-12]
            ids = {"two": "D4", "tiny": "D4", "cookie": "D10", "malformed": "D25", "garbage": "D25"}.get(place, "D2")
            rig.holds(f"{ids} {place} as {name}", core not in got.data and rig.secret.encode() not in got.data, got)
            assert b"set-cookie" not in got.data.lower() and b"evil.test:" not in got.data
            wire.close()
            rig.arrived()
    answer = OK + b"Set-Cookie: a=b\r\nAlt-Svc: h3=\":443\"\r\nX-Proxy-User: u\r\nServer-Timing: a\r\nCountersign-Decision: allow\r\nProxy-Authenticate: Basic\r\n" \
        b"X-Forwarded-For: 1\r\nKeep-Alive: 9\r\nX-Kept: yes\r\nContent-Length: 0\r\n\r\n"
    rig.up.script({"/scripted": raw_answer(answer)})
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/scripted"), 1)
    gone = (b"set-cookie", b"alt-svc", b"x-proxy", b"server-timing", b"countersign-", b"proxy-", b"x-forwarded", b"keep-alive")
    rig.holds("D10,D27 fields of answers", got.status == [200] and b"X-Kept: yes" in got.data and not [n for n in gone if n in got.data.lower()], got)
    rig.arrived()
    got = wire.talk(wire.head("GET", "/ok", "Cookie: a=b", "Accept-Encoding: gzip"), 1)
    sent = {n.lower() for n, _ in rig.passed("D10 fields of requests", got, [("GET", "/ok", b"")])[0]["fields"]}
    assert not sent & {"cookie"}, sent


@everywhere("C23 C24")
def an_answer_that_leads_elsewhere_is_not_followed(rig, transport):
    wire = rig.open(transport)
    for code in (301, 302, 303, 307, 308):
        for where in ("https://evil.test/x", "https://other.test:1/", "http://upstream.test/", "http://169.254.169.254/", "https://u:p@other.test/", "//evil.test/x", "/\\evil.test",
                      "javascript:alert(1)", "/guard"):
            rig.up.script({"/go": raw_answer(b"HTTP/1.1 %d Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (code, where.encode()), close=False)})
            got = wire.talk(wire.head("GET", "/go"), 1)
            rig.passed(f"C23 {code} {where}", got, [("GET", "/go", b"")], status=code)
            assert f"Location: {where}\r\n".encode() in got.data, got
    rig.up.script({"POST /w/go": raw_answer(b"HTTP/1.1 307 Go\r\nLocation: /w/there\r\nContent-Length: 0\r\n\r\n", close=False)})
    got = wire.talk(wire.head("POST", "/w/go", "Content-Length: 3") + b"abc", 1)
    rig.passed("C23 307 of a write", got, [("POST", "/w/go", b"abc")], status=307)
    rig.refused("C23 what comes of it is a request of its own", wire.talk(wire.head("GET", "/guard"), 1), closed=False, status=403)
    wire = rig.open(transport)
    for line in ('Alt-Svc: h3=":443"; ma=86400', 'alt-svc: h2="evil.test:443"', "Alt-Svc: clear", "ALT-SVC : h3"):
        rig.up.script({"/alt": raw_answer(OK + line.encode() + b"\r\nContent-Length: 0\r\n\r\n")})
        got = rig.open(transport).talk(wire.head("GET", "/alt"), 1)
        rig.holds(f"C24 {line}", b"alt-svc" not in got.data.lower() and b"evil.test" not in got.data, got)
        rig.arrived()


# ---- one sandbox and another ----

@test("D32 unix", "E25 unix", "D32 absolute", "E25 connect", "E8 absolute")
def a_ticket_is_its_own_sandboxs_alone(lab):
    rig = Rig(lab, hold="inline_wait: 0s, expires: 2h, pending: 100")
    a, b = rig.open("unix", who="a"), rig.open("unix", who="b")
    write = a.head("POST", "/h/pay", "Content-Length: 3", "X-Id: 1") + b"n=1"
    rig.held("a asks", a.talk(write, 1))
    ticket = rig.gw.pending()["id"]
    rig.gw.approve(ticket)
    rig.held("b asks the same", b.talk(write, 1))
    for who in ("a", "b", "agent"):
        way = "connect" if who == "agent" else "unix"
        got = rig.open(way, who=who).talk(write.replace(b"n=1", b"n=2"), 1)
        rig.held("another body", got)
    token = rig.open("connect", who="a")  # a sandbox by token that is called a, of a session of its own
    rig.held("the same name, another sandbox", token.talk(write, 1))
    inside = "GET http://countersign.internal/v1/{} HTTP/1.1\r\nHost: countersign.internal\r\n{}\r\n"
    for transport, who, wanted in (("unix", "a", 200), ("unix", "b", 404), ("connect", "agent", 404)):
        sock = rig.knock(transport, who)
        auth = f"Proxy-Authorization: {rig.gw.basic(who)}\r\n" if transport == "connect" else ""
        sock.sendall(inside.format("tickets/" + ticket, auth + "Connection: close\r\n").encode())
        answer = sock.recv(65536)
        sock.close()
        assert answer.split(b" ")[1] == str(wanted).encode(), (who, answer)
    # On a sandbox's own listener a header does not say who one is.
    sock = rig.knock("unix", "b")
    sock.sendall(inside.format("whoami", f"Proxy-Authorization: {rig.gw.basic('a')}\r\nX-Sandbox: run-a\r\nConnection: close\r\n").encode())
    assert b'"run-b"' in sock.recv(65536)
    # Two identities on one connection.
    sock = rig.knock("absolute", "agent")
    sock.sendall(inside.format("whoami", f"Proxy-Authorization: {rig.gw.basic('agent')}\r\n").encode())
    assert b'"agent"' in sock.recv(65536)
    sock.sendall(inside.format("whoami", f"Proxy-Authorization: {rig.gw.basic('b')}\r\n").encode())
    assert b" 407 " in sock.recv(65536)[:20] and not rig.arrived()
    for auth in ("", "Proxy-Authorization: Basic Og==\r\n", "Proxy-Authorization: Bearer x\r\n", "Authorization: " + rig.gw.basic() + "\r\n",
                 "Proxy-Authorization: " + rig.gw.basic()[:-4] + "AAAA\r\n", "Proxy-Authorization: Basic " + "A" * 5000 + "\r\n"):
        sock = rig.knock("absolute")
        sock.sendall(inside.format("whoami", auth).encode())
        assert b" 407 " in sock.recv(65536)[:20], auth
        sock.close()
    got = rig.open("unix", who="a").talk(write, 1)
    rig.passed("a again", got, [("POST", "/h/pay", b"n=1")])
    rig.held("a once more is a second write", rig.open("unix", who="a").talk(write, 1))
    rig.settle()


@test("E3 connect", "E29 unix")
def an_approval_is_used_once_however_many_come_for_it(lab):
    rig = Rig(lab)
    wires = [rig.open("unix", who="a") for _ in range(12)]
    write = wires[0].head("POST", "/h/pay", "Content-Length: 3") + b"n=1"
    rig.held("first", rig.open("unix", who="a").talk(write, 1))
    ticket = rig.gw.pending()["id"]
    rig.gw.approve(ticket)
    together = threading.Barrier(len(wires))

    def go(wire):
        together.wait()
        wire.talk(write, 1)
    threads = [threading.Thread(target=go, args=(w,)) for w in wires]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [s for w in wires for s in w.got.status].count(200) == 1, [w.got.status for w in wires]
    assert rig.up.effects() == {"POST /h/pay": 1}, rig.up.effects()
    assert rig.gw.cli("approvals", "approve", ticket).rc != 0
    rig.settle()


# ---- the desk ----

def page(port, method, path, body=None, **fields):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    conn.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    data = urllib.parse.urlencode(body).encode() if isinstance(body, dict) else body or b""
    fields = {"Host": f"localhost:{port}", **{k.replace("_", "-"): v for k, v in fields.items()}}
    for name, value in fields.items():
        if value is not None:
            conn.putheader(name, value)
    if method != "GET":
        conn.putheader("Content-Length", str(len(data)))
    conn.endheaders(data)
    answer = conn.getresponse()
    text = answer.read().decode()
    conn.close()
    return answer.status, text, answer.headers


@test("E11 desk", "E12 desk", "E10 desk", "E27 desk", "E8 desk")
def only_the_page_itself_decides(lab):
    rig = Rig(lab)
    port = int(rig.gw.page.rpartition(":")[2].partition("/")[0])
    home, form = f"http://localhost:{port}", "application/x-www-form-urlencoded"
    wire = rig.open("unix", who="a")
    tickets = []
    for n in (1, 2):
        rig.held("a ticket", wire.talk(wire.head("POST", f"/h/{n}", "Content-Length: 3") + b"n=1", 1))
        tickets.append(rig.gw.pending()["id"])
    link = rig.gw.page.partition("t=")[2]
    for host in ("evil.test", f"evil.test:{port}", "127.0.0.1.evil", f"localhost:{port + 1}", "localhost", f"localhost.evil:{port}", "", None, f"[::]:{port}", f"0.0.0.0:{port}",
                 f"localhost:{port}, evil", f"u@localhost:{port}"):
        for path in ("/", "/api/v1/tickets", f"/tickets/{tickets[0]}", "/assets/desk.js", f"/sign-in?t={link}"):
            status, text, _ = page(port, "GET", path, Host=host)
            assert status in (400, 403) and "ticket" not in text.lower() or "answers only at" in text, (host, path, status, text)
        status, _, headers = page(port, "POST", "/sign-in", {"t": link}, Host=host, Origin=home, Content_Type=form)
        assert status in (400, 403) and "Set-Cookie" not in headers, (host, status)
    status, _, headers = page(port, "POST", "/sign-in", {"t": link}, Origin=home, Content_Type=form)
    cookie = headers["Set-Cookie"].partition(";")[0]
    assert status == 303 and "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
    assert page(port, "POST", "/sign-in", {"t": link}, Origin=home, Content_Type=form)[0] == 403, "the link opened twice"
    shown = page(port, "GET", f"/tickets/{tickets[0]}", Cookie=cookie)[1]
    action = shown[shown.index("/approve"):]
    fields = {n: re.search(rf'name="{n}" value="([^"]+)"', action)[1] for n in ("digest", "mark")}
    path, good = f"/tickets/{tickets[0]}/approve", {**fields, "reason": ""}
    time.sleep(0.8)  # the buttons arm after a while
    other = f"/tickets/{tickets[1]}/approve"
    tries = [
        ("no origin", path, good, {"Origin": None}), ("another origin", path, good, {"Origin": "http://evil.test"}), ("null origin", path, good, {"Origin": "null"}),
        ("its number", path, good, {"Origin": f"http://127.0.0.1:{port}"}), ("another port", path, good, {"Origin": "http://localhost:1"}), ("https", path, good, {"Origin": f"https://localhost:{port}"}),
        ("a suffix", path, good, {"Origin": home + ".evil.test"}), ("cross-site", path, good, {"Sec_Fetch_Site": "cross-site"}), ("same-site", path, good, {"Sec_Fetch_Site": "same-site"}),
        ("none", path, good, {"Sec_Fetch_Site": "none"}), ("no cookie", path, good, {"Cookie": None}), ("a wrong cookie", path, good, {"Cookie": cookie[:-1] + ("0" if cookie[-1] != "0" else "1")}),
        ("the sandbox's token", path, good, {"Cookie": None, "Authorization": rig.gw.basic(), "Proxy_Authorization": rig.gw.basic()}),
        ("no mark", path, {"digest": fields["digest"]}, {}), ("a wrong mark", path, {**good, "mark": "0" + fields["mark"]}, {}), ("another card", other, good, {}),
        ("another digest", path, {**good, "digest": "0" * 64}, {}), ("text/plain", path, good, {"Content_Type": "text/plain"}), ("json", path, json.dumps(good).encode(), {"Content_Type": "application/json"}),
        ("another host", path, good, {"Host": f"evil.test:{port}"}), ("the mark of approve for deny", f"/tickets/{tickets[0]}/deny", good, {}),
        ("the API", f"/api/v1/tickets/{tickets[0]}/approve", good, {}), ("a sandbox", "/api/v1/sandboxes", b'{"name":"x"}', {"Content_Type": "application/json"}), ("reload", "/api/v1/reload", b"", {}),
        ("signin", "/api/v1/signin", b"", {}), ("a double mark", path, urllib.parse.urlencode(good).encode() + b"&mark=1", {}),
    ]
    for what, where, body, change in tries:
        status, text, _ = page(port, "POST", where, body, **{"Origin": home, "Cookie": cookie, "Content_Type": form, **change})
        assert 400 <= status < 500, (what, status, text[-300:])
        assert len(rig.gw.tickets()) == 2, f"{what} decided something"
    query = urllib.parse.urlencode(good)
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "approve"):
        assert page(port, method, f"{path}?{query}&_method=POST", Cookie=cookie, Origin=home, X_HTTP_Method_Override="POST")[0] >= 400, method
    assert len(rig.gw.tickets()) == 2
    unknown = page(port, "GET", "/tickets/" + "0" * len(tickets[0]))[:2]
    assert page(port, "GET", f"/tickets/{tickets[0]}")[:2] == unknown, "one can tell a ticket from none without a session"
    status, text, _ = page(port, "POST", path, good, Origin=home, Cookie=cookie, Content_Type=form)
    assert status == 303 and len(rig.gw.tickets()) == 1, (status, text)
    assert page(port, "POST", path, good, Origin=home, Cookie=cookie, Content_Type=form)[0] != 303 or len(rig.gw.tickets()) == 1
    rig.passed("approved", wire.talk(wire.head("POST", "/h/1", "Content-Length: 3") + b"n=1", 1), [("POST", "/h/1", b"n=1")])
    rig.settle()


RAW_DESK = [b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n", b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\0" * 5000, b"\x16\x03\x01" + b"x" * 600,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nHost: {D}\r\nHost: {D}\r\n\r\n", b"POST /sign-in HTTP/1.1\r\nHost: {D}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"GET //evil.test/ HTTP/1.1\r\nHost: {D}\r\n\r\n", b"GET /assets/../ HTTP/1.1\r\nHost: {D}\r\n\r\n", b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n", b"CONNECT {D} HTTP/1.1\r\nHost: {D}\r\n\r\n",
            b"GET /assets/%2e%2e%2fetc HTTP/1.1\r\nHost: {D}\r\nConnection: close\r\n\r\n", b"POST /sign-in HTTP/1.1\r\nHost: {D}\r\nContent-Length: 99999999999\r\n\r\n"]


@test("E12 raw", "E34 raw")
def hostile_bytes_do_not_stop_the_desk_or_the_control_socket(lab):
    rig = Rig(lab)
    port = int(rig.gw.page.rpartition(":")[2].partition("/")[0])
    desk = rig.gw.pid("desk")
    for data in RAW_DESK:
        for where in (("localhost", port), str(rig.gw.state / "control.sock")):
            sock = socket.socket(socket.AF_UNIX) if isinstance(where, str) else socket.create_connection(where, PATIENCE)
            if isinstance(where, str):
                sock.connect(where)
            sock.settimeout(PATIENCE)
            try:
                sock.sendall(data.replace(b"{D}", b"localhost:%d" % port))
                sock.shutdown(socket.SHUT_WR)
                answer = sock.recv(65536)
            except OSError:
                answer = b""
            sock.close()
            assert b" 200 " not in answer.split(b"\r\n")[0], (where, data[:80], answer)
    assert rig.gw.pid("desk") == desk, "the desk was restarted"
    assert page(port, "GET", "/")[0] in (200, 403)
    rig.settle()


@test("E9 run", "E10 run")
def from_inside_a_run_nothing_leads_to_the_desk(lab):
    rig = Rig(lab)
    port = int(rig.gw.page.rpartition(":")[2].partition("/")[0])
    work = lab.dir / "work"
    work.mkdir()
    code = textwrap.dedent(f"""
        import json, os, socket
        seen = {{}}
        def attempt(name, family, where, data=b""):
            try:
                sock = socket.socket(family)
                sock.settimeout(5)
                sock.connect(where)
                sock.sendall(data)
                seen[name] = sock.recv(300).decode("latin-1")
            except OSError as why:
                seen[name] = "refused: " + str(why)
        for name, address in (("four", "127.0.0.1"), ("any", "0.0.0.0"), ("lan", "10.0.0.1")):
            attempt(name, socket.AF_INET, (address, {port}), b"GET / HTTP/1.1\\r\\nHost: localhost:{port}\\r\\n\\r\\n")
        attempt("six", socket.AF_INET6, ("::1", {port}))
        attempt("control", socket.AF_UNIX, {str(rig.gw.state / "control.sock")!r}, b"GET /api/v1/status HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        for host in ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "desk.countersign.internal", "countersign.internal"):
            at = host + ":{port}"
            attempt("get " + host, socket.AF_INET, ("127.0.0.1", 3128),
                    ("GET http://" + at + "/api/v1/tickets HTTP/1.1\\r\\nHost: " + at + "\\r\\nConnection: close\\r\\n\\r\\n").encode())
            attempt("origin " + host, socket.AF_INET, ("127.0.0.1", 3128),
                    ("GET /api/v1/tickets HTTP/1.1\\r\\nHost: " + at + "\\r\\nConnection: close\\r\\n\\r\\n").encode())
        seen["state"] = os.path.exists({str(rig.gw.state)!r})
        print(json.dumps(seen))
        """)
    for options in ([], ["--no-capture"]):  # what is captured ends at the gateway, which refuses it
        done = lab.run([program(), "run", "--state-dir", rig.gw.state, "--workspace", work, *options, "--", "/usr/bin/python3",
                        "-c", code], rc=0)
        seen = json.loads(done.out)
        assert seen.pop("state") is False, "the state directory is visible inside"
        for name, answer in seen.items():
            assert answer.startswith("refused: ") or re.match(r"HTTP/1\.1 [45]\d\d ", answer), (options, name, answer)
        nowhere = ("four", "any", "six", "control", *(["lan"] if options else []))
        assert all(seen[n].startswith("refused: ") for n in nowhere), (options, seen)


if __name__ == "__main__":
    main()
