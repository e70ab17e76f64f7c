#!/usr/bin/env python3
"""Around a credential: errors, fields and dumps of a request that answers hold, what is no text, redirects, another protocol, the
value before a rotation; and who looks at the gateway: in its logs, on its page, into its processes (attacks.tsv D20 to D23, D25, D27,
D28, D30, D31, D35, D36, D38 to D40)."""
import base64
import gzip
import json
import os
import resource
import secrets
import signal
import socket
import zlib

import room  # noqa: F401
from attack import Rig, everywhere, fields_of, raw_answer, wires
import codings
from gateway import NOT_RELEASED, REFUSED, ROLES, Gateway, Page, program, simple_policy
from harness import PATIENCE, main, test
from leased import again, asked, known, name_of, refused

OK = b"HTTP/1.1 200 OK\r\n"
TEXT = b"Content-Type: text/plain\r\n"


def whole(body, *fields, status=b"200 OK"):
    """An answer with this body."""
    return b"HTTP/1.1 " + status + b"\r\n" + b"".join(f + b"\r\n" for f in fields) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def said(rig, transport, wire, answer, *fields, close=True):
    """What comes of it, on a connection of its own."""
    rig.up.script({"/said": raw_answer(answer, close=close)})
    one = again(rig, transport, wire)
    got = one.talk(one.head("GET", "/said", *fields), 1)
    one.close()
    return got


def covered(rig, what, got, statuses=(200, 502)):
    """No more of it than stars, or nothing at all."""
    secret = rig.secret.encode()
    shown = [form for form in (secret, secret[2:-2], base64.b64encode(secret)[4:-4], secret.hex().encode()) if form in got.data]
    rig.holds(what, not shown and got.status in [[s] for s in statuses] + [[]], got)
    assert got.status != [200] or b"*" * len(secret) in got.data, (what, got)
    rig.arrived()


# ---- what an upstream says ----

@everywhere("D25", cleartext=True)
def an_error_repeats_nothing_of_what_was_sent(rig, transport):
    secret = b"Bearer " + rig.secret.encode()
    words = b"invalid header value: " + secret
    ours = (("no answer", words + b"\r\n\r\n"), ("no name", OK + words[:21] + b"\r\n\r\n" + secret), ("a name", OK + secret + b": 1\r\n\r\n"),
            ("a status", b"HTTP/1.1 " + secret + b"\r\n\r\n"), ("a length", OK + b"Content-Length: " + secret + b"\r\n\r\n"),
            ("a framing", OK + b"Transfer-Encoding: " + secret + b"\r\n\r\n"), ("a coding", whole(b"ok", b"Content-Encoding: " + secret)),
            ("a version", b"HTTP/9.9 200 " + words + b"\r\n\r\n"), ("another protocol", b"HTTP/1.1 101 " + words + b"\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"))
    theirs = (("400", b"400 " + secret), ("500", b"500 Oops"), ("502", b"502 Bad Gateway"), ("404", b"404 Who"))
    for wire in wires(rig, transport):
        for what, answer in ours:
            got = said(rig, transport, wire, answer)
            covered(rig, f"D25 {what}", got, (502,))
            assert b"header value" not in got.data and (b'"upstream-failed"' in got.data or b'"answer-refused"' in got.data), (what, got)
        for what, status in theirs:
            for kind in (b"text/html", b"application/problem+json", b"application/octet-stream"):
                covered(rig, f"D25 {what} of {kind}", said(rig, transport, wire, whole(words, b"Content-Type: " + kind, status=status)), (400, 404, 500, 502))
        for what, answer in (("a body that is cut", OK + TEXT + b"Content-Length: 500\r\n\r\n" + words),
                             ("a chunk that is none", OK + TEXT + b"Transfer-Encoding: chunked\r\n\r\n" + words + b"\r\n"),
                             ("chunks that end", OK + TEXT + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(words) + words + b"\r\nzz\r\n")):
            covered(rig, f"D25 {what}", said(rig, transport, wire, answer))
        wire.close()


INSIDE = ("Set-Cookie: sid=inside", "Set-Cookie2: sid=inside", "Server-Timing: inside;dur=5", 'Alt-Svc: h3="inside:443"', "Via: 1.1 inside", "Forwarded: host=inside",
          "X-Forwarded-For: inside", "X-Forwarded-Host: inside", "X-Real-IP: inside", "X-Original-URL: /inside", "X-Envoy-Upstream: inside", "X-Proxy-User: inside",
          "Proxy-Authenticate: Basic realm=inside", "Proxy-Status: inside", "Countersign-Decision: inside", "Countersign-Ticket: inside", "X-Hop: inside")
OUTSIDE = ("X-Request-Id: 7", "Link: </a>; rel=next", "Retry-After: 3", "X-RateLimit-Remaining: 9", "ETag: \"1\"", "Last-Modified: Sun, 01 Jan 2023 00:00:00 GMT")


@everywhere("D27", cleartext=True)
def fields_that_tell_of_the_inside_stay_there(rig, transport):
    lines = [line.encode() for line in (*INSIDE, *OUTSIDE, "Connection: X-Hop", "Content-Type: text/plain")]
    for wire in wires(rig, transport):
        got = said(rig, transport, wire, whole(b"ok", *lines), close=False)
        rig.passed("D27 the answer", got, [("GET", "/said", b"")])
        head = got.data.partition(b"\r\n\r\n")[0].lower()
        left = [line for line in INSIDE if line.partition(":")[0].lower().encode() + b":" in head]
        rig.holds("D27 gone", not left and b"inside" not in head, got)
        rig.holds("D27 the others", all(line.lower().encode() in head for line in OUTSIDE) and b"content-type: text/plain" in head, got)
        wire.close()


@everywhere("D35", cleartext=True)
def a_dump_of_the_request_shows_no_credential(rig, transport):
    secret = rig.secret.encode()
    dump = b"GET /said HTTP/1.1\r\nHost: upstream.test\r\nauthorization: Bearer " + secret + b"\r\nAccept: message/http\r\n\r\n"
    parts = b"--x\r\nContent-Type: message/http\r\n\r\n" + dump + b"\r\n--x--\r\n"
    for wire in wires(rig, transport):
        for kind, body in (("message/http", dump), ("application/http;msgtype=request", dump), ("message/rfc822", dump), ("text/plain", dump),
                           ("multipart/mixed; boundary=x", parts), ("application/octet-stream", dump), ("application/json", json.dumps({"raw": dump.decode()}).encode())):
            got = said(rig, transport, wire, whole(body, b"Content-Type: " + kind.encode()), "Accept: message/http, application/http")
            covered(rig, f"D35 {kind}", got)
        covered(rig, "D35 without a type", said(rig, transport, wire, whole(dump)))
        wire.close()


@everywhere("D38", cleartext=True)
def what_is_no_text_passes_whole_or_not_at_all(rig, transport):
    secret, noise = rig.secret.encode(), os.urandom(150_000)
    binary = b"Content-Type: application/octet-stream"
    for wire in wires(rig, transport):
        got = said(rig, transport, wire, whole(noise, binary, b'ETag: "1"'), close=False)
        rig.holds("D38 without it: byte for byte", got.status == [200] and got.data.endswith(b"\r\n\r\n" + noise), len(got.data))
        rig.holds("D38 and what tells of it stays", b'\r\netag: "1"\r\n' in got.data.lower(), got.data[:500])
        rig.arrived()
        for what, body in (("first", secret + noise), ("last", noise + secret), ("alone", secret), ("amid", noise[:70_000] + secret + noise[70_000:])):
            for kind in (binary, b"Content-Type: image/png", b"X-None: 1"):
                got = said(rig, transport, wire, whole(body, kind))
                rig.holds(f"D38 {what}, {kind}", secret not in got.data and secret[2:-2] not in got.data and got.status in ([502], []), (got.status, got.data[:300]))
                assert b"*" * 20 not in got.data, (what, got.data[:300])
                rig.arrived()
        text = b"first " + secret + b" and\nlast \xc3\xa4"
        got = said(rig, transport, wire, whole(text, b"Content-Type: text/plain; charset=utf-8", b"Digest: x", b"Signature: y"), close=False)
        rig.holds("D38 a text keeps its length", got.data.endswith(b"\r\n\r\n" + text.replace(secret, b"*" * len(secret))), got)
        rig.holds("D38 and says it", b"\r\ncontent-length: %d\r\n" % len(text) in got.data.lower() and b"digest" not in got.data.lower(), got)
        rig.arrived()
        wire.close()


@everywhere("D39", cleartext=True)
def a_search_that_breaks_off_ends_the_answer(rig, transport):
    """Because what it is to look into is broken, or asks for more than it may have. (Where there is no memory: the unit tests.)"""
    secret, noise = rig.secret.encode(), os.urandom(200_000)
    packed = gzip.compress(noise, 6)
    rows = (("gzip", b"cut", packed[:-9]), ("gzip", b"what is behind it", packed + b"more " + secret),
            ("deflate", b"no block", zlib.compress(noise)[:1000] + b"\xff" * 400), ("zstd", b"cut", codings.zstd(noise)[:-5]),
            ("zstd", b"a window of 128 MiB", b"\x28\xb5\x2f\xfd\x00\x88" + codings.zstd(noise)[6:]), ("br", b"cut", codings.brotli(noise)[:-5]),
            ("gzip", b"a bomb", gzip.compress(b"\0" * (40 << 20) + secret, 9)))
    for wire in wires(rig, transport):
        for coding, what, body in rows:
            got = said(rig, transport, wire, whole(body, b"Content-Type: text/plain", b"Content-Encoding: " + coding.encode()))
            rig.holds(f"D39 {coding}: {what}", got.status in ([502], []) and secret not in got.data, (got.status, got.data[:300]))
            rig.arrived()
        for coding, body in (("gzip", packed), ("zstd", codings.zstd(noise)), ("br", codings.brotli(noise))):
            got = said(rig, transport, wire, whole(body, b"Content-Encoding: " + coding.encode()), close=False)
            rig.holds(f"D39 {coding}: a good one passes as it came", got.status == [200] and got.data.endswith(body), (got.status, got.data[:300]))
            rig.arrived()
        wire.close()


@everywhere("D31", cleartext=True)
def where_an_answer_leads_the_credential_does_not_go(rig, transport):
    there = f"https://other.test:{rig.up.port}/ok"
    for wire in wires(rig, transport):
        for what, to in (("a redirect", there), ("one in a parameter", f"{there}?next=https://upstream.test/"), ("one without a scheme", there[6:])):
            rig.up.script({"/away": f"/redirect?to={to}"})
            got = wire.talk(wire.head("GET", "/away"), 1)
            sent = rig.passed(f"D31 {what}", got, [("GET", "/away", b"")], status=302)
            rig.holds(f"D31 {what} is told, not followed", fields_of(sent[0])["authorization"] == f"Bearer {rig.secret}" and to.encode() in got.data, got)
        wire.close()
    if transport == "absolute":  # it leads to a host that the policy knows over TLS alone
        wire = rig.open(transport)
        at = f"other.test:{rig.up.port}"
        rig.refused("D31 where it leads", wire.talk(f"GET http://{at}/ok HTTP/1.1\r\nHost: {at}\r\n{{A}}\r\n", 1), closed=False)
        return
    other = rig.open(transport, host="other.test")
    new = rig.passed("D31 where it leads", other.talk(other.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
    rig.holds("D31 without the credential", "authorization" not in fields_of(new[0]) and rig.secret not in str(new), new)


@everywhere("D28", cleartext=True)
def nothing_is_compressed_beside_a_credential(rig, transport):
    """By one stream with it, or by a protocol that would."""
    rig.tls.set_alpn_protocols(["h2", "http/1.1"])
    guess = f"authorization: Bearer {rig.secret[:9]}".encode() * 50
    for wire in wires(rig, transport):
        if not wire.plain:
            rig.holds("D28 what is spoken here", wire.sock.selected_alpn_protocol() in (None, "http/1.1"), wire.sock.selected_alpn_protocol())
        got = wire.talk(wire.head("GET", "/ok", "Accept-Encoding: gzip, br, zstd", "TE: gzip"), 1)
        sent = rig.passed("D28 a read", got, [("GET", "/ok", b"")])[0]
        named = fields_of(sent)
        rig.holds("D28 what is asked for", named["accept-encoding"] == "identity" and not {"te", "http2-settings"} & set(named), sent)
        meta = rig.up.meta(sent["conn"])
        rig.holds("D28 what is spoken there", meta.get("alpn") in (None, "http/1.1") and (wire.plain or meta["tls"].startswith("TLS")), meta)
        got = wire.talk(wire.head("POST", "/w/guess", "Content-Type: text/plain", f"Content-Length: {len(guess)}") + guess, 1)
        sent = rig.passed("D28 a write", got, [("POST", "/w/guess", guess)])[0]
        rig.holds("D28 as it came", "content-encoding" not in fields_of(sent) and fields_of(sent)["content-length"] == str(len(guess)), sent)
        wire.close()


MARK = "Q7kZ" * 8


@everywhere("D40", cleartext=True)
def a_short_answer_has_no_bytes_of_a_long_request(rig, transport):
    """Of another sandbox, or of the one before on the same connection."""
    field, body = f"X-Long: {MARK * 100}", (MARK * 6000).encode()
    for wire in wires(rig, transport):
        others = [again(rig, transport, wire)]
        if transport not in ("later", "reload"):  # those are of one sandbox
            others.append(rig.open(transport, who="b", **({"plain": True} if wire.plain and transport != "absolute" else {})))
        for other in others:
            got = wire.talk(wire.head("POST", f"/w/long?q={MARK * 50}", field, f"Content-Length: {len(body)}") + body, 1)
            rig.passed("D40 a long one", got, [("POST", f"/w/long?q={MARK * 50}", body)])
            for what, head in (("a read", other.head("GET", "/ok")), ("an error", other.head("GET", "/status?code=500")), ("a denial", other.head("GET", "/guard")),
                               ("a head", other.head("HEAD", "/ok")), ("what is held", other.head("POST", "/h/1", "Content-Length: 0")),
                               ("the same again", wire.head("GET", "/ok")), ("none at all", other.head("GET", "/ok", "Content-Length: 1, 2"))):
                by = wire if what == "the same again" else other
                got = by.talk(head, 1, heads=(0,) if what == "a head" else ())
                new = rig.arrived()
                rig.holds(f"D40 {what}", got.status and MARK[:16].encode() not in got.data and rig.secret.encode() not in got.data, got)
                rig.holds(f"D40 {what}, there", not any(MARK[:16] in str(r["fields"]) + r["target"] or rig.up.body(r["n"]) for r in new), new)
            other.close()
        wire.close()


@everywhere("D36", cleartext=True)
def the_value_before_a_rotation_is_still_looked_for(rig, transport):
    old, new = rig.secret, rig.lab.canary(secrets.token_urlsafe(32))
    rig.lab.expects(NOT_RELEASED)
    for wire in wires(rig, transport):
        covered(rig, "D36 before", said(rig, transport, wire, whole(old.encode(), b"Content-Type: text/plain")))
        wire.close()
    rig.gw.cli("secret", "rotate", "api", "--keep", "1h", stdin=new.encode(), rc=0)
    rig.secret = new
    for wire in wires(rig, transport):
        def used():
            rig.holds("D36 goes on", wire.talk(wire.head("GET", "/ok"), 1).status == [200])
            return fields_of(rig.arrived()[0])["authorization"] == f"Bearer {new}"
        rig.lab.wait_for("the new value", used)
        for what, value in (("the old one", old), ("the new one", new)):
            for form, text in (("literal", value), ("base64", base64.b64encode(value.encode()).decode()), ("hex", value.encode().hex())):
                got = said(rig, transport, wire, whole(f"<{text}>".encode(), b"Content-Type: text/plain"))
                rig.holds(f"D36 {what}, {form}", text[4:-4].encode() not in got.data and got.status == [200], got)
                rig.arrived()
        wire.close()


# ---- who looks at the gateway ----

def leases(rig, transport):
    """From now on leases are given of its credential; one of them."""
    text, place = rig.gw.policy.read_text(), "    source: { store: api }\n"
    rig.gw.policy.write_text(text.replace(place, place + "    lease: github\n"))
    rig.reload()
    known(rig, transport)
    made = asked(rig, "/api/v1/leases", credential="api", sandbox=name_of(transport))
    rig.lab.canary(made["lease"])  # it is not to be found in any file either
    return made["lease"]


@everywhere("D20", cleartext=True)
def no_log_has_a_value_or_a_lease(rig, transport):
    """At its most talkative, and whatever went wrong. All files of the gateway are searched too, when the test is over."""
    lease = leases(rig, transport)
    rig.gw.cli("log", "--level", "debug", "--for", "1h", rc=0)
    for wire in wires(rig, transport):
        mine = f"Authorization: Bearer {lease}"
        rig.passed("D20 a read", wire.talk(wire.head("GET", "/ok", mine), 1), [("GET", "/ok", b"")])
        rig.passed("D20 a write", wire.talk(wire.head("POST", "/w/1", mine, "Content-Length: 1") + b"x", 1), [("POST", "/w/1", b"x")])
        rig.held("D20 a write that waits", wire.talk(wire.head("POST", "/h/1", mine, "Content-Length: 1") + b"x", 1))
        rig.refused("D20 a denial", wire.talk(wire.head("GET", "/guard", mine), 1), closed=False, status=403)
        for fields in ((f"X-Key: {lease}",), (mine + "x",), (f"Cookie: a={lease}", mine)):
            one = again(rig, transport, wire)
            rig.refused(f"D20 {fields[0][:9]}", one.talk(one.head("GET", "/ok", *fields), 1), closed=False, status=403)
        refused(rig, "D20 in the target", again(rig, transport, wire).talk(wire.head("GET", f"/ok?key={lease}"), 1), "lease-misplaced")
        covered(rig, "D20 an answer", said(rig, transport, wire, OK + rig.secret.encode() + b"\r\n\r\n"), (502,))
        covered(rig, "D20 an echo", said(rig, transport, wire, whole(rig.secret.encode(), b"Content-Type: text/plain")))
        wire.close()
    talked = rig.lab.wait_for("what was done", lambda: rig.gw.process.seen.count(b'"level":"debug"') > 20 and rig.gw.process.seen)
    for what, value in (("value", rig.secret), ("lease", lease)):
        forms = (value, value[6:-2], base64.b64encode(value.encode()).decode()[:-4], value.encode().hex())
        rig.holds(f"D20 no {what}", not any(form.encode() in talked for form in forms), talked[-500:])


@everywhere("D21", cleartext=True, apart=True)
def people_and_programs_that_decide_see_the_credentials_name_alone(rig, transport):
    secret = rig.secret.encode()
    for wire in wires(rig, transport):
        rig.held("D21 it waits", wire.talk(wire.head("POST", f"/h/{int(wire.plain)}", "X-Id: 1", "Content-Length: 3") + b"n=1", 1))
        ticket = next(t["id"] for t in rig.gw.tickets() if t["path"] == f"/h/{int(wire.plain)}")
        for path in ("tickets", f"tickets/{ticket}", "credentials", "leases", "audit?after=0&limit=500", "status", "sandboxes"):
            status, answer = rig.control("GET", f"/api/v1/{path}")
            text = json.dumps(answer)
            rig.lab.capture("api", text)
            rig.holds(f"D21 {path.partition('/')[0]}", status == 200 and secret not in text.encode(), text[-500:])
            assert '"api"' in text or path not in ("tickets", f"tickets/{ticket}", "credentials"), (path, text[-500:])
        stream = events(rig, ticket)
        rig.lab.capture("events", stream)
        rig.holds("D21 events", secret not in stream, stream[-500:])
        wire.close()
    page = Page(rig.gw)
    for path in ("/", f"/tickets/{ticket}"):
        answer, text = page.ask("GET", path)
        rig.lab.capture("page", text)
        rig.holds(f"D21 the page {path[:9]}", answer.status == 200 and secret not in text and ticket[:8].encode() in text, text[-500:])


def events(rig, ticket):
    """What the stream of events says, until it has told of this ticket."""
    data = b""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(rig.gw.state / "control.sock"))
        sock.sendall(b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: control\r\n\r\n")
        while ticket.encode() not in data:
            more = sock.recv(65536)
            assert more, data[-500:]
            data += more
    return data


WILD = ("*.amazonaws.com", "**.amazonaws.com", "*.github.io", "*.vercel.app", "*.atlassian.net", "*.upstream.test", "*")


@test()
def a_credential_is_for_hosts_that_are_named_and_for_no_wildcard(lab):
    rig = Rig(lab)
    rig.reloads_refused = True
    good = rig.gw.policy.read_text()
    with rig.case("D30", "config"):
        for host in WILD:
            lab.expects(REFUSED)
            rig.gw.policy.write_text(good.replace("    only: [{ host: upstream.test", f'    only: [{{ host: "{host}"', 1))
            assert rig.gw.policy.read_text() != good
            status, why = rig.control("POST", "/api/v1/reload")
            rig.holds(f"D30 {host}", status != 200 and "wildcard" in str(why), why)
            wire = rig.open("connect")
            new = rig.passed(f"D30 {host}: all stays", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
            assert fields_of(new[0])["authorization"] == f"Bearer {rig.secret}", new
            wire.close()
        for host in ("*.com", "*.github.io", "**.amazonaws.com"):  # nor does a rule let anything go to anybody's host
            rig.gw.policy.write_text(good + f'  - {{ id: wide, match: {{ host: "{host}", effect: read }}, decide: allow }}\n')
            status, why = rig.control("POST", "/api/v1/reload")
            rig.holds(f"D30 a rule for {host}", status != 200 and "wildcard" in str(why), why)
        rig.gw.policy.write_text(good)
        rig.reload()
    rig.settle()


LOOK = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
seen = {}
for pid in sorted(int(n) for n in os.listdir("/proc") if n.isdigit()):
    one = seen[pid] = {}
    for name in ("comm", "cmdline", "environ", "mem", "maps", "stat"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                one[name] = file.read(1 << 16).decode("latin-1") if name != "mem" else "opened"
        except OSError as why:
            one[name] = -why.errno
    try:
        one["fd"] = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError as why:
        one["fd"] = -why.errno
attached = [pid for pid in range(1, 70000) if pid not in seen and libc.ptrace(16, pid, 0, 0) == 0]
print(json.dumps({"seen": seen, "attached": attached}))
"""


@test("D22 run")
def a_sandbox_sees_no_process_of_the_gateway(lab):
    up, secret = lab.upstream(), lab.canary(secrets.token_urlsafe(32))
    gw = Gateway(lab, simple_policy(up), {"api": secret.encode()})
    (lab.dir / "work").mkdir()
    done = lab.run([program(), "run", "--state-dir", gw.state, "--workspace", lab.dir / "work", "--", "sh", "-c",
                    f"curl -sS --max-time {PATIENCE} https://{up.name}:{up.port}/ok >/dev/null; /usr/bin/python3 -c '{LOOK}'"], rc=0, timeout=2 * PATIENCE)
    said_there = json.loads(done.out)
    assert len(up.requests()) == 1 and len(said_there["seen"]) >= 2 and not said_there["attached"], done.text()
    for pid, one in said_there["seen"].items():
        words = json.dumps(one)
        assert not any(f"countersign-{role}" in words for role in (*ROLES, "front")) and secret not in words, (pid, one)
        assert int(pid) < 1000, "of a namespace of its own"


@test("D23 files")
def a_role_that_crashes_leaves_no_memory_behind(lab):
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        up, secret = lab.upstream(), lab.canary(secrets.token_urlsafe(32))
        lab.expects(NOT_RELEASED)
        gw = Gateway(lab, simple_policy(up), {"api": secret.encode()})
        asks = ["curl", "-sS", "--max-time", str(PATIENCE), f"https://{up.name}:{up.port}/ok"]
        for role in ("keeper", "carrier", "judge", "ledger"):
            lab.wait_for("an answer", lambda: b"true" in lab.run(asks, env=gw.client_env()).out)
            pid = gw.pid(role)
            with open(f"/proc/{pid}/limits", encoding="ascii") as limits:
                assert next(line for line in limits if line.startswith("Max core file size")).split()[4:6] == ["0", "0"], role
            lab.kills(pid, signal.SIGSEGV)
            lab.wait_for(f"another {role}", lambda: gw.pid(role) not in (None, pid))
            lab.wait_for("the control socket", lambda: gw.cli("status").rc == 0)
        assert any(f"Bearer {secret}" in json.dumps(r) for r in up.requests())
        cores = [path for path in lab.dir.rglob("core*") if path.is_file()]
        assert not cores, cores
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


if __name__ == "__main__":
    main()
