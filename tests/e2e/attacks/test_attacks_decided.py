#!/usr/bin/env python3
"""What decides and what does not (attacks.tsv B47 to B50, B54, B55): who asks is said by the way in and never by a field,
a body is decided on when it is whole, nothing goes without the credential it needs, and a refusal maps no policy."""
import re
import time

import room  # noqa: F401
from attack import Rig, everywhere, fields_of
from gateway import NOT_RELEASED
from harness import main, test
from ways import Refused, Wire, pieces

# ---- B47, B48: fields ----

WHO = ("User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36", "User-Agent: kube-probe/1.31",
       "User-Agent: ELB-HealthChecker/2.0", "X-Internal: 1", "X-Agent-Name: admin", "X-Agent-Id: admin", "X-Sandbox: admin", "Sandbox: admin",
       "X-Countersign-Sandbox: admin", "Countersign-Sandbox: admin", "Countersign-Session: admin", "Countersign-Decision: allow",
       "Countersign-Ticket: 00000000000000000000000000", "X-Countersign-Decision: allow", "X-Policy: admin", "X-Role: admin", "X-User: admin",
       "X-Forwarded-User: admin", "X-Remote-User: admin", "X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1", "Forwarded: for=127.0.0.1",
       "Via: 1.1 admin", "From: admin@example.test", "Referer: https://admin.test/", "Origin: null", "X-Approved-By: admin", "X-Approval: true",
       "X-Bypass: 1", "X-Debug: 1", "X-Health-Check: 1", "Authorization: Bearer admin", "Cookie: sandbox=admin; role=admin",
       "X-Original-Host: other.test", "X-Scope: admins", "X-Label: team=admins", "DNT: 1\r\nX-Agent-Name: admin\r\nX-Agent-Name: admin")


def for_admins(up):
    """A path that every sandbox but admin is denied."""
    return "".join(f"""  - {{ id: mine{n}, scope: people, match: {{ host: {up.name}, port: {port}, path: "/admin/**"{scheme} }}, decide: deny }}
""" for n, (port, scheme) in enumerate(((up.port, ""), (up.plain_port, ", scheme: http"))))


def change(rig, *edits, more=""):
    """Another policy: the first one with these edits, and with more rules."""
    text = rig.gw.policy.read_text()
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    rig.gw.policy.write_text(text + more)
    rig.reload()


def whose(rig):
    """The sandboxes of all results written down since the last time."""
    from_seq, found = getattr(rig, "whose_seq", 0), set()
    status, page = rig.control("GET", f"/api/v1/audit?after={from_seq}&limit=500")
    assert status == 200, page
    for row in page["audit"]:
        rig.whose_seq = row["seq"]
        found |= {row["sandbox"]} if row.get("sandbox") else set()
    return found


@everywhere("B47")
def no_field_says_who_asks(rig, transport):
    change(rig, ("rules:\n", "scopes:\n  people: { sandboxes: [agent, run-agent, cap-agent] }\nrules:\n"), more=for_admins(rig.up))
    me = {"unix": "run-agent", "captured": "cap-agent"}.get(transport, "agent")
    admin = Wire(rig, transport, who="admin")
    rig.passed("B47 the admin", admin.talk(admin.head("GET", "/admin/x"), 1), [("GET", "/admin/x", b"")])
    admin.close()
    fields = list(WHO)
    if transport != "absolute":  # there a second identity of the same field is another attack (A7, C30)
        fields += [f"Proxy-Authorization: {rig.gw.basic('admin')}", f"Authorization: {rig.gw.basic('admin')}", f"X-Proxy-Authorization: {rig.gw.basic('admin')}"]
    wire = rig.open(transport)
    whose(rig)
    for n, line in enumerate(fields):
        wire.split = (None, "bytes", n)[n % 3]
        lines = line.split("\r\n")
        for what, method, path in (("the admin's", "GET", "/admin/x"), ("the guard", "GET", "/guard")):
            got = wire.talk(wire.head(method, path, *lines), 1)
            rig.refused(f"B47 {what} with {line}", got, closed=False, status=403 if not line.startswith("Proxy-A") else None)
            wire = again(rig, transport, wire, got)
        got = wire.talk(wire.head("POST", "/other", *lines, "Content-Length: 1") + b"x", 1)
        rig.stopped(f"B47 a write with {line}", got)
        wire = again(rig, transport, wire, got)
        got = wire.talk(wire.head("GET", "/ok", *lines), 1)
        if got.status == [200]:
            sent = fields_of(rig.passed(f"B47 a read with {line}", got, [("GET", "/ok", b"")])[0])
            rig.holds(f"B47 {line}: the credential is the gateway's", transport == "absolute" or sent["authorization"] == f"Bearer {rig.secret}", sent)
        else:
            rig.refused(f"B47 a read with {line}", got, closed=False)
        wire = again(rig, transport, wire, got)
        rig.holds(f"B47 {line} is nobody else's in the audit", whose(rig) <= {me}, (me, line))
    wire.close()


def again(rig, transport, wire, got):
    """The same connection, or another one behind an answer that ended it."""
    if not got.closed and b"\r\nConnection: close" not in got.data:
        return wire
    wire.close()
    return rig.open(transport)


LEAVE = ("If-Match: *", 'If-None-Match: "a", W/"b"', "If-None-Match: *", "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
         "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT", "Prefer: return=minimal, respond-async", "Prefer: handling=lenient",
         "X-Idempotency-Key: 1", "Idempotency-Key: 8e03978e", "X-HTTP-Content-SHA: DELETE", "X-Http-Content-Sha256: e3b0c442")
RANGES = ("Range: bytes=0-0", "Range: bytes=0-0\r\nIf-Range: \"a\"", "If-Range: \"a\"")
NO_RANGES = ("Range: bytes=-1,0-", "RANGE: lines=1-2")


@everywhere("B48")
def a_condition_or_a_preference_is_no_other_request(rig, transport):
    wire = rig.open(transport)
    secret = transport != "absolute"  # http:// has no credential in this policy, and then ranges leave as they came
    for n, line in enumerate((*LEAVE, *RANGES, *NO_RANGES)):
        wire.split = (None, "bytes", n)[n % 3]
        lines, later = line.split("\r\n"), "respond-async" in line
        got = wire.talk(wire.head("GET", "/ok", *lines), 1)
        if line in NO_RANGES and secret:
            rig.refused(f"B48 a read with {line}", got, closed=False, status=416)
        else:
            sent = fields_of(rig.passed(f"B48 a read with {line}", got, [("GET", "/ok", b"")])[0])
            for one in lines:
                name, _, value = one.partition(": ")
                came = sent.get(name.lower(), "")
                wider = secret and name == "Range" and re.fullmatch(r"bytes=0-[1-9]\d*", came)
                rig.holds(f"B48 {one} leaves as it came, or wider", wider or came == value, sent)
        wire.talk(wire.head("HEAD", "/ok", *lines), 1, heads=(0,))
        rig.holds(f"B48 HEAD with {line}", [(r["method"], r["target"]) for r in rig.arrived()] == [("HEAD", "/ok")])
        got = wire.talk(wire.head("GET", "/guard", *lines), 1)
        rig.refused(f"B48 the guard with {line}", got, closed=False, status=403)
        wire = again(rig, transport, wire, got)
        for method, body in (("POST", b"x"), ("PUT", b"x"), ("PATCH", b"x"), ("DELETE", b"")):
            got = wire.talk(wire.head(method, "/other", *lines, f"Content-Length: {len(body)}") + body, 1)
            rig.held(f"B48 {method} with {line}", got, later)
            wire = again(rig, transport, wire, got)
        for method, path in (("GET", "/ok"), ("HEAD", "/ok")):  # a body makes them writes, whatever is said beside it
            got = wire.talk(wire.head(method, path, *lines, "Content-Length: 1") + b"x", 1, heads=(0,) if method == "HEAD" else ())
            rig.stopped(f"B48 {method} with a body and {line}", got, later)
            wire = again(rig, transport, wire, got)
    wire.close()


# ---- B49: bodies ----

def list_only(up):
    """At /w/rpc nothing but {"op": "list"} passes."""
    return "".join(f"""  - {{ id: rpc{n}, match: {{ host: {up.name}, port: {port}, path: /w/rpc{scheme} }}, except: [{{ json: [{{ pointer: /op, equals: list }}] }}], decide: deny }}
  - {{ id: large{n}, match: {{ host: {up.name}, port: {port}, path: /w/rpc{scheme}, json: [{{ pointer: /n, int_gte: 100 }}] }}, decide: deny }}
""" for n, (port, scheme) in enumerate(((up.port, ""), (up.plain_port, ", scheme: http"))))


FILL = b'"pad": "' + b"p" * 3000 + b'", '
BAD = (b'{"op": "list", ' + FILL + b'"op": "wipe"}', b'{"op": "list", ' + FILL + b'"OP": "wipe"}', b'{"op": "list", ' + FILL + b'"\\u006fp": "wipe"}',
       b'{"op": "list", ' + FILL + b'"n": 100}', b'{"op": "list", ' + FILL + b'"n": 1e2}', b'{"op": "list"}' + b" " * 3000 + b'{"op": "wipe"}',
       b'[{"op": "list"}, ' + b" " * 3000 + b'{"op": "wipe"}]', b'{"a": {"op": "list"}, ' + FILL + b'"op": "wipe"}', b'{"op": "list", ' + FILL + b'"op"')
GOOD = b'{"op": "list", ' + FILL + b'"n": 99}'


def framed(body, chunked):
    if not chunked:
        return "Content-Length: %d" % len(body), body
    return "Transfer-Encoding: chunked", b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces(body, 5)) + b"0\r\n\r\n"


def left(rig):
    """Has any byte of a body of these reached the upstream?"""
    return any(b"ppp" in path.read_bytes() or b"/w/rpc" in path.read_bytes() for path in rig.up.dir.glob("*.in"))


@everywhere("B49", more=list_only, apart=True)
def a_body_is_decided_on_when_it_is_whole(rig, transport):
    other = rig.open(transport)
    for chunked in (False, True):
        for n, body in enumerate(BAD):
            length, data = framed(body, chunked)
            wire = rig.open(transport, split=(None, "bytes", n)[n % 3])
            head, behind = wire.head("POST", "/w/rpc", "Content-Type: application/json", length), data[-20:]
            for piece in pieces(wire.fill(head + data[:-20]), 7 + n):  # the beginning, which alone would pass
                wire.sock.sendall(piece)
            other.good(1)
            rig.holds(f"B49 {n} waits for its end", not left(rig), body[-30:])
            rig.refused(f"B49 {n} at its end", wire.talk(behind, 1), closed=False)
            wire.close()
        wire = rig.open(transport)
        length, data = framed(GOOD, chunked)
        wire.sock.sendall(wire.fill(wire.head("POST", "/w/rpc", "Content-Type: application/json", length)) + data[:-1])
        other.good(1)
        rig.holds("B49 a good one waits too", not left(rig))
        wire.close()  # and never ends
        other.good(1)
    rig.holds("B49 nothing left", not left(rig))
    for chunked in (False, True):
        length, data = framed(GOOD, chunked)
        wire = rig.open(transport)
        wire.sock.sendall(wire.fill(wire.head("POST", "/w/rpc", "Content-Type: application/json", length)) + data[:-1])
        other.good(1)
        rig.passed("B49 a good one at its end", wire.talk(data[-1:], 1), [("POST", "/w/rpc", GOOD)])
        wire.close()


# ---- B50: no credential, no request ----

def managed(place):
    """Routes whose credentials are: there, never set, in a file, and of a ticket that ends soon."""
    return f"""  - {{ id: gone, match: {{ {place}, path: "/w-gone/**", effect: read }}, decide: allow, use: unset }}
  - {{ id: file, match: {{ {place}, path: "/w-file/**", effect: read }}, decide: allow, use: filed }}
  - {{ id: soon, match: {{ {place}, path: "/h-soon/**", method: PUT }}, decide: hold, use: api, approve: {{ within: 1s }} }}
  - {{ id: hgone, match: {{ {place}, path: "/h-gone/**", method: PUT }}, decide: hold, use: unset, approve: {{ within: 2h }} }}
  - {{ id: hfile, match: {{ {place}, path: "/h-file/**", method: PUT }}, decide: hold, use: filed, approve: {{ within: 2h }} }}
"""


def with_managed(rig, place):
    """The rig's policy with these rules, and what they need above."""
    rig.key = rig.lab.exempt(rig.lab.dir / "filed.key")
    rig.file_secret = rig.lab.canary("filed-" + rig.secret[::-1])
    key(rig, rig.file_secret.encode())
    only = f"only: [{{ {place} }}]"
    change(rig, ("credentials:\n", f"""credentials:
  unset: {{ source: {{ store: unset }}, inject: {{ header: Authorization, format: "Bearer {{}}" }}, {only} }}
  filed: {{ source: {{ file: filed.key }}, inject: {{ header: Authorization, format: "Bearer {{}}" }}, {only} }}
"""), ("effect: read }, decide: allow, use: api", 'effect: read }, except: [{ path: ["/w-gone/**", "/w-file/**"] }], decide: allow, use: api'),
           ('except: [{ path: "/w/**", method: POST }]', 'except: [{ path: ["/h-soon/**", "/h-gone/**", "/h-file/**"] }, { path: "/w/**", method: POST }]'), more=managed(place))


def key(rig, data, mode=0o600):
    """In place: the gateway keeps open what a reload found."""
    if data is None:
        rig.key.unlink()
        return
    rig.key.write_bytes(data)
    rig.key.chmod(mode)


def put(wire, path, body=b"pay"):
    return wire.talk(wire.head("PUT", path, f"Content-Length: {len(body)}") + body, 1)


def unsent(rig, what, got):
    """Of a ticket that ended."""
    rig.holds(what, not rig.arrived() and got.status in ([403], [502]) and b" 200 " not in got.data, got)


def ticket_of(got):
    return re.search(rb"Countersign-Ticket: (\S+)", got.data)[1].decode()


@everywhere("B50", cleartext=True, apart=True)
def nothing_goes_without_the_credential_it_needs(rig, transport):
    rig.lab.expects(NOT_RELEASED)
    with_managed(rig, f"host: {rig.up.name}, port: " + (f"{rig.up.plain_port}, scheme: http" if transport == "absolute" else f"{rig.up.port}"))
    for n, split in enumerate((None, "bytes", 11)):
        fresh = lambda: rig.open(transport, split=split) if split else rig.open(transport)  # noqa: E731
        missing(rig, fresh, n)
        undecided(rig, fresh, n)
        approved_in_vain(rig, fresh, n)


def missing(rig, fresh, n):
    wire = fresh()
    rig.refused("B50 a read whose credential was never set", wire.talk(wire.head("GET", f"/w-gone/{n}", "Authorization: Bearer mine"), 1), closed=False, status=502)
    for what, data, mode in (("empty", b"", 0o600), ("of two lines", b"a\r\nX-Evil: b\r\n", 0o600), ("open to anybody", rig.file_secret.encode(), 0o666), ("gone", None, 0)):
        key(rig, data, mode)
        wire = fresh()
        got = wire.talk(wire.head("GET", f"/w-file/{n}?{what.replace(' ', '-')}"), 1)
        rig.refused(f"B50 a read whose credential's file is {what}", got, closed=False, status=502)
    for path in ("/W-GONE/", "/w-g%4fne/", "/w-Gone/", "//w-gone/", "/w-gone;a/"):  # where another rule has no exception, its credential would go
        rig.refused(f"B50 {path}: another spelling of such a place", fresh().talk(wire.head("GET", f"{path}{n}"), 1), closed=False)
    key(rig, rig.file_secret.encode())
    rig.reload()
    wire = fresh()
    new = rig.passed("B50 a read with its credential", wire.talk(wire.head("GET", f"/w-file/{n}"), 1), [("GET", f"/w-file/{n}", b"")])
    rig.holds("B50 it has it", fields_of(new[0])["authorization"] == f"Bearer {rig.file_secret}", new)
    rig.reload()  # what was released before the policy was replaced counts no more


def undecided(rig, fresh, n):
    wire = fresh()
    got = put(wire, f"/h-soon/{n}")
    rig.held("B50 held", got)
    ticket = ticket_of(got)
    rig.lab.wait_for("its end", lambda: ticket not in [t["id"] for t in rig.gw.tickets()])
    rig.stopped("B50 timed out: again", put(fresh(), f"/h-soon/{n}"))
    got = put(fresh(), f"/other/denied{n}")
    rig.held("B50 to be denied", got)
    rig.gw.deny(ticket_of(got), "no")
    unsent(rig, "B50 denied: again", put(fresh(), f"/other/denied{n}"))


def approved_in_vain(rig, fresh, n):
    for what, path, after in (("was never set", f"/h-gone/{n}", None), ("is gone by then", f"/h-file/{n}", None),
                                      ("is no value by then", f"/h-file/no-value{n}", b"a\nb: c")):
        got = put(fresh(), path)
        rig.held(f"B50 held, and its credential {what}", got)
        rig.gw.approve(ticket_of(got))
        if path.startswith("/h-file"):
            key(rig, after)
        got = put(fresh(), path)
        unsent(rig, f"B50 approved, and its credential {what}", got)
        key(rig, rig.file_secret.encode())
        rig.reload()


# ---- B54: what a refusal tells ----

SAY, ELSE = "Ask in #platform-sentence.", "Use the staging-sentence."
OWN = ("zz-rule", "zz-scope", "zz-approvers", "zz-person", "zzcred", "policy.yaml", "countersign.yaml", "near", "/zzamount", "zzfield", "zzquery", "except", "git@1")


def a_map(up):
    """Rules of every kind below /m, none of which a client is to know."""
    text = ""
    for n, (port, scheme) in enumerate(((up.port, ""), (up.plain_port, ", scheme: http"))):
        place = f"host: {up.name}, port: {port}{scheme}"
        text += f"""  - {{ id: zz-rule-deny{n}, match: {{ {place}, path: "/m/denied/**" }}, decide: deny }}
  - {{ id: zz-rule-body{n}, match: {{ {place}, path: "/w/m/json", json: [{{ pointer: /zzamount, int_gte: 100 }}] }}, decide: deny }}
  - {{ id: zz-rule-form{n}, match: {{ {place}, path: "/w/m/form", form: [{{ field: zzfield, in: [red, green] }}] }}, decide: deny }}
  - {{ id: zz-rule-not{n}, match: {{ {place}, path: "/m/not/**" }}, except: [{{ query: {{ zzquery: [yes1] }} }}], decide: deny }}
  - {{ id: zz-rule-scope{n}, scope: zz-scope, match: {{ {place}, path: "/m/scope/**" }}, decide: deny }}
  - {{ id: zz-rule-say{n}, match: {{ {place}, path: "/m/say/**" }}, decide: deny, say: "{SAY}", instead: "{ELSE}" }}
  - {{ id: zz-rule-hold{n}, match: {{ {place}, path: "/m/hold/**", method: PUT }}, decide: hold{"" if n else ", use: zzcred"}, approve: {{ by: zz-approvers, within: 2h }} }}
"""
    place = f"host: {up.name}, port: {up.port}"
    return text + f"""  - {{ id: zz-rule-cred, match: {{ {place}, path: "/m/cred/**", effect: read }}, decide: allow, use: zzcred }}
"""


def mapped(rig):
    place = f"only: [{{ host: {rig.up.name}, port: {rig.up.port} }}]"
    change(rig, ("credentials:\n", f"""scopes:
  zz-scope: {{ sandboxes: ["*agent"] }}
approvers:
  zz-approvers: {{ operators: [zz-person] }}
credentials:
  zzcred: {{ source: {{ store: zzcred }}, inject: {{ header: Authorization, format: "Bearer {{}}" }}, {place} }}
"""), ("effect: read }, decide: allow, use: api", 'effect: read }, except: [{ path: "/m/cred/**" }], decide: allow, use: api'),
           ('except: [{ path: "/w/**", method: POST }]', 'except: [{ path: "/m/hold/**", method: PUT }, { path: "/w/**", method: POST }]'), more=a_map(rig.up))


def coarse(got):
    """An answer without what differs by its asking: the path that was asked, and whether a body was still to come."""
    text = re.sub(rb"/(w/)?m/[!#-~]*", b"/m", got.data)
    text = re.sub(rb"\b(GET|HEAD|PUT|POST|DELETE) (?=http)", b"", text)
    return re.sub(rb"(?i)\r\n(date|content-length|connection): [^\r]*", b"", text)


@everywhere("B54", apart=True)
def a_refusal_maps_no_policy(rig, transport):
    rig.lab.expects(NOT_RELEASED)
    mapped(rig)
    kind, form = "Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded"
    push = "Content-Type: application/x-git-receive-pack-request"
    rows = [("GET", "/m/denied/a", "", b""), ("POST", "/m/denied/a", "", b"x"), ("DELETE", "/m/denied/b/c?d=e", "", b""), ("GET", "/m/DENIED/a", "", b""),
            ("GET", "/m/not/a", "", b""), ("GET", "/m/not/a?zzquery=no", "", b""), ("GET", "/m/not/a?zzquery=yes1&zzquery=2", "", b""), ("GET", "/m/not/a?zzquery=YES1", "", b""),
            ("GET", "/m/scope/a", "", b""), ("POST", "/w/m/json", kind, b'{"zzamount": 100}'), ("POST", "/w/m/json", kind, b'{"zzamount": 100000}'),
            ("POST", "/w/m/form", form, b"zzfield=red"), ("POST", "/w/m/form", form, b"zzfield=RED&a=b")]
    seen, unclear = {}, {}
    for n, split in enumerate((None, "bytes", 3)):
        for method, path, line, body in rows:
            wire = rig.open(transport, split=split) if split else rig.open(transport)
            got = wire.talk(wire.head(method, path, *[line] if line else [], *[f"Content-Length: {len(body)}"] if body else []) + body, 1)
            rig.refused(f"B54 {method} {path}", got, closed=False, status=403)
            tells(rig, f"B54 {method} {path} {body}", got)
            seen.setdefault(coarse(got), []).append((method, path, body))
            wire.close()
        for body in (b'{"zzamount": "100"}', b'{"zzamount": 1e2}', b'{"ZZAMOUNT": 100}', b'{"zzamount": 1, "zzamount": 100}', b"[", b"{"):
            wire = rig.open(transport, split=split) if split else rig.open(transport)
            got = wire.talk(wire.head("POST", "/w/m/json", kind, f"Content-Length: {len(body)}") + body, 1)
            if got.status == [403]:
                rig.refused(f"B54 unclear {body}", got, closed=False)
                tells(rig, f"B54 unclear {body}", got)
                unclear.setdefault(coarse(got), []).append(body)
            else:
                rig.arrived()
            wire.close()
    rig.holds("B54 all denials are one", len(seen) == 1, "\n".join(f"{rows}: {text!r}" for text, rows in seen.items()))
    # Told apart is only what the body shows by itself, whatever a rule asks about: a key twice, and what is no JSON.
    alone = {b'{"zzamount": 1, "zzamount": 100}': b"key-twice", b"[": b"bad-json", b"{": b"bad-json"}
    for text, bodies in unclear.items():
        causes = {alone.get(body, b"ambiguous") for body in bodies}
        rig.holds("B54 what is unclear is told by the body alone", len(causes) == 1 and b'"cause":"%s"' % causes.pop() in text, (bodies, text))
    rig.holds("B54 all else that is unclear is one", len(unclear) <= 3, unclear)
    # Another spelling of what a pack knows: git is answered in its own form, in which the cause has words alone.
    got = rig.open(transport).talk(wire.head("POST", "/w/m/r.git/git-receive-PACK", push, "Content-Length: 4") + b"0000", 1)
    rig.refused("B54 a path in another spelling", got, closed=False, status=403)
    rig.holds("B54 packs are not told", b"may mean one thing to this policy" in got.data and b"spelling" not in got.data and b"pack knows" not in got.data, got)
    tells(rig, "B54 a path in another spelling", got)
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/m/say/a"), 1)
    rig.refused("B54 with a sentence", got, closed=False, status=403)
    rig.holds("B54 it is said", SAY.encode() in got.data and ELSE.encode() in got.data, got)
    tells(rig, "B54 with a sentence", got)
    got = rig.open(transport).talk(wire.head("PUT", "/m/hold/a", "Content-Length: 1") + b"x", 1)
    rig.held("B54 held", got)
    tells(rig, "B54 held", got)
    ended_badly(rig, transport)
    manifest(rig, transport)


def tells(rig, what, got):
    found = [word for word in OWN if word.encode() in re.sub(rb"/m/[!#-~]*", b"", got.data)] + (["Countersign-Rule"] if b"countersign-rule" in got.data.lower() else [])
    for word in ("read0", "read1", "posts0", "posts1", "writes0", "writes1", "guard0", "guard1", "reload1", "api"):
        found += [word] * bool(re.search(rb"(?<![\w/.-])" + word.encode() + rb"(?![\w/.-])", got.data))
    rig.holds(what, not found, (found, got))


def ended_badly(rig, transport):
    """A person said no; a credential that was never set."""
    got = put(rig.open(transport), "/other/0")
    rig.held("B54 to be denied", got)
    rig.gw.deny(ticket_of(got), "No-sentence.")
    got = put(rig.open(transport), "/other/0")
    unsent(rig, "B54 denied by a person", got)
    tells(rig, "B54 denied by a person", got)
    if transport != "absolute":  # where no credential is needed
        wire = rig.open(transport)
        got = wire.talk(wire.head("GET", "/m/cred/a"), 1)
        rig.refused("B54 without its credential", got, closed=False, status=502)
        tells(rig, "B54 without its credential", got)


def manifest(rig, transport):
    """What a sandbox may ask is told, and nothing of how it is decided."""
    data = b"GET http://countersign.internal/v1/manifest HTTP/1.1\r\nHost: countersign.internal\r\n{A}\r\n"
    got = rig.plain(data.replace(b"{A}", f"Proxy-Authorization: {rig.gw.basic()}\r\n".encode() if transport != "unix" else b""), "unix" if transport == "unix" else "connect", expect=1)
    rig.holds("B54 the manifest", got.status == [200] and b'"operations"' in got.data, got)
    found = [w for w in ("zz-rule", "zz-scope", "zz-approvers", "zz-person", "zzcred", "policy.yaml", '"id"') if w.encode() in got.data]
    rig.holds("B54 of the manifest", not found, (found, got))


@test()
def where_rules_are_disclosed_they_are_named(lab):
    rig = Rig(lab, config="disclose: rules\n")
    mapped(rig)
    with rig.case("B54", "connect"):
        for line, id in (("GET /m/denied/a", "zz-rule-deny0"), ("GET /m/say/a", "zz-rule-say0"), ("GET /guard", "guard0")):
            wire = rig.open("connect")
            got = wire.talk(wire.head(*line.split()), 1)
            rig.refused(f"B54 disclosed {line}", got, closed=False, status=403)
            rig.holds(f"B54 disclosed {line}", f"Countersign-Rule: {id}".encode() in got.data and b"zz-approvers" not in got.data, got)
    rig.settle()


# ---- B55: what passed as a read ----

READS = ("/ok", "/a%41", "/a//b", "/a;b=c", "/;a", "/a%2fb", "/a%c3%a4", "/%7euser", "/ok?a=b", "/ok?a=%2e&b", "/ok?", "/a/..;/b", "/OK", "/ok/", "/a.b", "/a%20b",
         "/ok?x=1;y=2", "/ok?_method=GET", "/ok?a[]=1", "/r.git/info/refs?service=git-upload-pack", "/a+b", "/*", "/a:b", "/ok?%61=b",
         "/r.git/info/refs?service=git-receive-pack")


def conditional(up):
    """Reads that a rule allows twice, at another hour, and, to some sandboxes, in other regions."""
    hour = (time.gmtime().tm_hour + 6) % 23
    return "".join(f"""  - {{ id: twice{n}, match: {{ host: {up.name}, port: {port}, path: "/twice/**"{scheme}, effect: read }}, decide: allow, limits: {{ requests: 2/1d }} }}
  - {{ id: hours{n}, match: {{ host: {up.name}, port: {port}, path: "/hours/**"{scheme}, effect: read }}, decide: allow, when: {{ hours: "{hour:02}:00-{hour + 1:02}:00", zone: UTC }} }}
""" for n, (port, scheme) in enumerate(((up.port, ""), (up.plain_port, ", scheme: http"))))


def conditions(rig, transport):
    """A rule that is used up, out of its hours or about another region covers nothing."""
    change(rig, (", effect: read }, decide: allow", ', effect: read }, except: [{ path: ["/twice/**", "/hours/**"] }], decide: allow'),
           ("rules:\n", "scopes:\n  abroad: { sandboxes: [\"*abroad\"], regions: [eu] }\nrules:\n"), more=conditional(rig.up))
    wire = rig.open(transport)
    for n in range(2):
        rig.passed("B55 within its limit", wire.talk(wire.head("GET", f"/twice/{n}"), 1), [("GET", f"/twice/{n}", b"")])
    for n in range(2):
        got = wire.talk(wire.head("GET", f"/twice/{n}"), 1)
        rig.refused("B55 past its limit", got, closed=False)
    rig.refused("B55 out of its hours", wire.talk(wire.head("GET", "/hours/x"), 1), closed=False, status=403)
    rig.passed("B55 the plain rule", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
    wire.close()
    if transport not in ("later", "reload"):  # those begin with reads of their own, which are nobody's there
        wire = Wire(rig, transport, who="abroad")
        rig.refused("B55 in another region", wire.talk(wire.head("GET", "/ok"), 1), closed=False, status=403)


@everywhere("B55", apart=True)
def what_passed_as_a_read_has_a_rule_of_its_own(rig, transport):
    bodies = ((), ("Content-Length: 0",), ("Content-Length: 1",), ("Content-Type: application/json", "Content-Length: 0"))
    for n, path in enumerate(READS):
        wire = rig.open(transport, split="bytes" if n % 3 else n) if n % 2 else rig.open(transport)
        for method in ("GET", "HEAD", "OPTIONS", "POST", "QUERY", "get"):
            for lines in bodies if method in ("GET", "HEAD", "POST") else bodies[:1]:
                got = wire.talk(wire.head(method, path, *lines) + b"x" * (lines[:1] == ("Content-Length: 1",)), 1, heads=(0,) if method == "HEAD" else ())
                rig.says("B55")
                new = [r for r in rig.arrived() if r["complete"]]
                assert all(r["method"] in ("GET", "HEAD", "OPTIONS") for r in new), (method, path, new)
                wire = again(rig, transport, wire, got)
        wire.close()
    conditions(rig, transport)
    rig.account()
    n = rig.covered(most=150)
    rig.holds("B55 as many as were sent", n >= len(READS), n)


if __name__ == "__main__":
    main()
