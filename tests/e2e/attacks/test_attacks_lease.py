#!/usr/bin/env python3
"""Leases: one stands where its credential will, is good for its own sandbox, its own places and what it is bounded to, and
for nothing once it has ended (attacks.tsv D12, D13, D32, D48). Whose it was is in the audit."""
import base64
import json

import room  # noqa: F401
from attack import everywhere, fields_of, wires
from harness import main
from leased import NAMES, again, asked, known, leaked, name_of, refused
from ways import PATIENCE

JSON, FORM = "Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded"


def leases(rig, transport):
    """From now on the gateway gives leases of its credential; who brings none gets it all the same."""
    text, place = rig.gw.policy.read_text(), "    source: { store: api }\n"
    rig.gw.policy.write_text(text.replace(place, place + "    lease: github\n"))
    rig.reload()
    rig.lab.expects("a lease of sandbox")
    known(rig, transport)


def issue(rig, transport, who="agent", **bounds):
    made = asked(rig, "/api/v1/leases", credential="api", sandbox=name_of(transport, who), **bounds)
    rig.lab.canary(made["lease"])  # it is not to be found anywhere either
    return made


def bearer(made):
    return f"Authorization: Bearer {made if isinstance(made, str) else made['lease']}"


def passes(rig, what, got, path="/ok", method="GET"):
    new = rig.passed(what, got, [(method, path, None)])
    assert fields_of(new[0])["authorization"] == f"Bearer {rig.secret}", new


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


# ---- where it stands ----

def heads(t):
    """(what, target, fields): every place of a head but its own."""
    hexed, escaped = t.encode().hex(), "".join(f"%{ord(c):02X}" for c in t)
    yield "query", f"/ok?a=1&key={t}", ()
    yield "query name", f"/ok?{t}=1", ()
    yield "path", f"/x/{t}/y", ()
    yield "escaped path", f"/x/{escaped}", ()
    yield "escaped query", f"/ok?k={escaped}", ()
    yield "query escaped twice", f"/ok?k={escaped.replace('%', '%25')}", ()
    yield "query in hex", f"/ok?k={hexed}", ()
    yield "query in upper hex", f"/ok?k={hexed.upper()}", ()
    for shift in range(3):
        coded = base64.b64encode(b"x" * shift + t.encode()).decode().rstrip("=").replace("+", "-").replace("/", "_")
        yield f"query in base64 at {shift}", f"/ok?k={coded}", ()
    for field in ("X-Api-Key", "User-Agent", "Cookie", "From", "If-None-Match", "Accept-Language", "Countersign-Reason", "Private-Token"):
        yield field, "/ok", (f"{field}: {'a=' if field == 'Cookie' else ''}{t}",)
    yield "Referer", "/ok", (f"Referer: https://upstream.test/?k={t}",)
    yield "another Basic", "/ok", (f"X-Auth: {basic('user', t)}",)
    yield "a field's name", "/ok", (f"X-{t}: 1",)
    yield "in its place and a cookie", "/ok", (bearer(t), f"Cookie: a={t}")


def bodies(t):
    """(what, content type, body)"""
    escaped = "".join(f"\\u{ord(c):04x}" for c in t)
    part = f'--b\r\nContent-Disposition: form-data; name="f"; filename="{t}"\r\n\r\nx\r\n--b--\r\n'
    mail = f"Subject: hello\r\nContent-Transfer-Encoding: base64\r\n\r\n{base64.b64encode(f'my key is {t}'.encode()).decode()}\r\n"
    yield "body", "text/plain", t
    yield "form", FORM[14:], f"a=1&key={t}"
    yield "form name", FORM[14:], f"{t}=1"
    yield "JSON", JSON[14:], json.dumps({"a": {"key": t}})
    yield "JSON name", JSON[14:], json.dumps({t: 1})
    yield "JSON escapes", JSON[14:], '{"a": "' + escaped + '"}'
    yield "GraphQL variable", JSON[14:], json.dumps({"query": "mutation($k: String) { set(key: $k) }", "variables": {"k": t}})
    yield "multipart filename", "multipart/form-data; boundary=b", part
    yield "mail", "message/rfc822", mail
    yield "behind 300 KiB", "application/octet-stream", "x" * 300 * 1024 + t


@everywhere("D12", cleartext=True)
def in_a_head_it_stands_in_one_place(rig, transport):
    leases(rig, transport)
    for wire in wires(rig, transport):
        made = issue(rig, transport)
        for value in (f"Bearer {made['lease']}", f"token {made['lease']}", basic("x-access-token", made["lease"]), basic(made["lease"], "")):
            passes(rig, f"D12 in its place as {value[:6]}", wire.talk(wire.head("GET", "/ok", f"Authorization: {value}"), 1))
        for what, target, fields in heads(made["lease"]):
            got = wire.talk(wire.head("GET", target, *fields), 1)
            refused(rig, f"D12 {what}", got, "lease-misplaced")
            if got.closed:
                wire = again(rig, transport, wire)
        got = again(rig, transport, wire).talk(f"GET {{T}}/ok HTTP/1.1\r\nHost: {made['lease']}\r\n{{A}}\r\n")
        rig.refused("D12 Host", got)
        passes(rig, "D12 and is good as before", again(rig, transport, wire).talk(wire.head("GET", "/ok", bearer(made)), 1))
        wire.close()


@everywhere("D12", cleartext=True, cut=True)
def nor_in_a_body(rig, transport):
    leases(rig, transport)
    for wire in wires(rig, transport):
        made = issue(rig, transport)
        for what, kind, body in bodies(made["lease"]):
            for chunked in (False, True) if what != "JSON escapes" else (False,):  # which are undone where a body is read whole
                sent = f"{len(body):x}\r\n{body}\r\n0\r\n\r\n" if chunked else body
                length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
                one = again(rig, transport, wire)
                rig.refused(f"D12 {what}{' in chunks' if chunked else ''}", one.talk(one.head("POST", "/w/x", f"Content-Type: {kind}", length, bearer(made)) + sent.encode(), 1),
                            closed=False, cut=True)
                one.close()
        wire.close()


# ---- where it goes ----

@everywhere("D13")
def for_another_place_it_has_leaked(rig, transport):
    """Another host, the same one over HTTP; for what comes in without a tunnel, another port too."""
    leases(rig, transport)
    places = [("over http", {"plain": True}, "upstream.test")] + ([("another host", {"host": "other.test"}, "other.test")] if transport != "absolute" else [])
    for what, where, host in places:
        for place in ("in its place", "elsewhere"):
            wire, made, sibling = rig.open(transport, **where), issue(rig, transport), issue(rig, transport)
            fields = [bearer(made)] if place == "in its place" else [f"X-Key: {made['lease']}"]
            got = wire.talk(wire.head("GET", "/ok", *fields), 1)
            refused(rig, f"D13 {what}, {place}", got, "lease-leaked")
            leaked(rig, f"D13 {what}, {place}: whose", made, name_of(transport), host)
            assert rig.control("GET", f"/api/v1/leases/{sibling['id']}")[1]["state"] == "revoked"
            wire.close()
    if transport == "absolute":
        for host, port in (("upstream.test", 9), ("other.test", rig.up.port), ("elsewhere.test", 80)):
            wire, made = rig.open(transport), issue(rig, transport)
            got = wire.talk(f"GET http://{host}:{port}/ok HTTP/1.1\r\nHost: {host}:{port}\r\n{{A}}{bearer(made)}\r\n\r\n", 1)
            refused(rig, f"D13 {host}:{port}", got, "lease-leaked")
            leaked(rig, f"D13 {host}:{port}: whose", made, name_of(transport), host)
            wire.close()


@everywhere("D13", cleartext=True)
def two_of_them_or_parts_of_one_are_none(rig, transport):
    leases(rig, transport)
    for wire in wires(rig, transport):
        one, two = issue(rig, transport)["lease"], issue(rig, transport)["lease"]
        rig.refused("D13 two fields", wire.talk(wire.head("GET", "/ok", bearer(one), bearer(two)), 1), closed=False, status=400)
        wire = again(rig, transport, wire)
        for what, fields, code in (("user and password", (f"Authorization: {basic(one, two)}",), "lease-misplaced"),
                                   ("one behind the other", (f"Authorization: Bearer {one}{two}",), "lease-unknown"),
                                   ("with a comma", (f"Authorization: Bearer {one},{two}",), "lease-unknown"),
                                   ("behind itself", (f"Authorization: Bearer {one} {one}",), "lease-unknown"),
                                   ("as a parameter", (f'Authorization: Digest username="{one}"',), "lease-unknown"),
                                   ("its beginning", (bearer(one[:-1]),), "lease-unknown"),
                                   ("with more behind it", (bearer(one + "A"),), "lease-unknown"),
                                   ("the other's end", (bearer(one[:20] + two[20:]),), "lease-unknown")):
            got = wire.talk(wire.head("GET", "/ok", *fields), 1)
            refused(rig, f"D13 {what}", got, code)
            if got.closed:
                wire = again(rig, transport, wire)
        for text in (one, two):
            passes(rig, "D13 each by itself", wire.talk(wire.head("GET", "/ok", bearer(text)), 1))
        wire.close()


# ---- whose it is ----

@everywhere("D32", cleartext=True)
def of_another_sandbox_it_has_leaked(rig, transport):
    leases(rig, transport)
    known(rig, transport, "thief")
    owner, thief = name_of(transport), name_of(transport, "thief")
    for what, target, fields in (("in its place", "/ok", bearer), ("elsewhere", "/ok", lambda made: f"X-Key: {made['lease']}"), ("denied anyway", "/guard", bearer)):
        made, sibling, own = issue(rig, transport), issue(rig, transport), issue(rig, transport, "thief")
        wire = rig.open(transport, who="thief")
        refused(rig, f"D32 {what}", wire.talk(wire.head("GET", target, fields(made)), 1), "lease-leaked")
        record = leaked(rig, f"D32 {what}: whose", made, thief, rig.up.name)
        assert record["sandbox"] == owner, record
        mine = rig.open(transport)
        for text in (made, sibling):
            refused(rig, f"D32 {what}: of no use to its owner either", mine.talk(mine.head("GET", "/ok", bearer(text)), 1), "lease-ended")
        passes(rig, f"D32 {what}: who has one of its own", rig.open(transport, who="thief").talk(wire.head("GET", "/ok", bearer(own)), 1))
        wire.close()
        mine.close()


def begin_anew(rig, transport):
    """Another sandbox of the same name: the next generation of a run, or one that was removed and made again."""
    name = name_of(transport)
    rig.kept.clear()
    if transport in NAMES:
        rig.listeners.pop(name)
    else:
        status, said = rig.control("DELETE", f"/api/v1/sandboxes/{name}?end_session=true")
        assert status in (200, 204), said
        rig.gw.tokens.pop("agent")
    known(rig, transport)


@everywhere("D32", cleartext=True)
def of_an_earlier_one_of_its_name_it_is_nothing(rig, transport):
    leases(rig, transport)
    made = issue(rig, transport)
    wire = rig.open(transport)
    passes(rig, "D32 while it runs", wire.talk(wire.head("GET", "/ok", bearer(made)), 1))
    wire.close()
    begin_anew(rig, transport)
    state = rig.control("GET", f"/api/v1/leases/{made['id']}")[1]
    rig.holds("D32 it ended with its sandbox", state["state"] == "revoked", state)
    new = issue(rig, transport)
    wire = rig.open(transport)
    if transport in NAMES:  # two generations are not one another
        refused(rig, "D32 replayed in the next one", wire.talk(wire.head("GET", "/ok", bearer(made)), 1), "lease-leaked")
        leaked(rig, "D32 replayed: whose", made, name_of(transport), rig.up.name)
        refused(rig, "D32 and the next one's own", wire.talk(wire.head("GET", "/ok", bearer(new)), 1), "lease-ended")
    else:
        refused(rig, "D32 replayed in the next one", wire.talk(wire.head("GET", "/ok", bearer(made)), 1), "lease-ended")
        passes(rig, "D32 and the next one's own", wire.talk(wire.head("GET", "/ok", bearer(new)), 1))
    wire.close()


@everywhere("D32", cleartext=True)
def of_a_started_one_that_was_paused_it_is_nothing(rig, transport):
    """Nor is one that was issued while it stood still."""
    leases(rig, transport)
    box = f"box-{transport}"
    rig.gw.cli("sandbox", "start", box, "--memory", "64M", "--disk", "1M", rc=0)
    before = asked(rig, "/api/v1/leases", credential="api", sandbox=box)
    asked(rig, f"/api/v1/sandboxes/{box}/pause")
    meanwhile = asked(rig, "/api/v1/leases", credential="api", sandbox=box)
    asked(rig, f"/api/v1/sandboxes/{box}/resume")
    for made, what in ((before, "of before"), (meanwhile, "of meanwhile")):
        rig.lab.canary(made["lease"])
        state = rig.control("GET", f"/api/v1/leases/{made['id']}")[1]
        rig.holds(f"D32 {what} it ended when it went on", state["state"] == "revoked", state)
        wire = rig.open(transport)
        refused(rig, f"D32 {what} a pause, replayed", wire.talk(wire.head("GET", "/ok", bearer(made)), 1), "lease-leaked")
        record = leaked(rig, f"D32 {what}: whose", made, name_of(transport), rig.up.name)
        assert record["sandbox"] == box, record
        wire.close()
    rig.gw.cli("sandbox", "destroy", box, rc=0)


@everywhere("D32", cleartext=True)
def of_a_started_one_that_was_kept_or_forked_it_is_nothing(rig, transport):
    """A checkpoint has files alone; what of a lease stands in one is dead, in all that begin with these files."""
    leases(rig, transport)
    box, twin = f"kept-{transport}", f"twin-{transport}"
    small = {"memory": 64 << 20, "disk": 1 << 20}
    asked(rig, "/api/v1/sandboxes/start", name=box, **small)
    before = asked(rig, "/api/v1/leases", credential="api", sandbox=box)
    rig.lab.canary(before["lease"])
    made = asked(rig, f"/api/v1/sandboxes/{box}/snapshot")
    between = asked(rig, "/api/v1/leases", credential="api", sandbox=box)
    rig.lab.canary(between["lease"])
    asked(rig, f"/api/v1/sandboxes/{box}/fork", name=twin)
    last = asked(rig, "/api/v1/leases", credential="api", sandbox=box)
    rig.lab.canary(last["lease"])
    rig.gw.cli("sandbox", "destroy", box, rc=0)
    asked(rig, "/api/v1/sandboxes/start", name=box, **{"from": made["id"]}, **small)
    for lease, what in ((before, "a snapshot"), (between, "a fork"), (last, "a restore")):
        state = rig.control("GET", f"/api/v1/leases/{lease['id']}")[1]
        rig.holds(f"D32 of before {what} it ended", state["state"] in ("revoked", "ended", "expired"), state)
        wire = rig.open(transport)
        refused(rig, f"D32 of before {what}, replayed", wire.talk(wire.head("GET", "/ok", bearer(lease)), 1), "lease-leaked")
        record = leaked(rig, f"D32 of before {what}: whose", lease, name_of(transport), rig.up.name)
        assert record["sandbox"] == box, record
        wire.close()
    rig.gw.cli("checkpoint", "rm", made["id"], rc=0)
    for name in (box, twin):
        rig.gw.cli("sandbox", "destroy", name, rc=0)


# ---- what it is for, and how long ----

def state_of(rig, made):
    return rig.control("GET", f"/api/v1/leases/{made['id']}")[1]["state"]


@everywhere("D48", cleartext=True)
def past_its_bounds_or_its_end_it_is_nothing(rig, transport):
    leases(rig, transport)
    for wire in wires(rig, transport):
        def read(made, path="/ok"):
            return wire.talk(wire.head("GET", path, bearer(made)), 1)

        def write(made):
            return wire.talk(wire.head("POST", "/w/x", bearer(made), "Content-Length: 2") + b"hi", 1)

        brief, whole = issue(rig, transport, expires_s=1), issue(rig, transport)
        child = asked(rig, f"/api/v1/leases/{whole['id']}/narrow", child=True, paths=["/ok", "/w/**"])
        rig.lab.canary(child["lease"])
        passes(rig, "D48 a write with a wide one", write(whole), "/w/x", "POST")
        passes(rig, "D48 and with what came from it", write(child), "/w/x", "POST")
        asked(rig, f"/api/v1/leases/{whole['id']}/narrow", methods=["GET"])
        for made, what in ((whole, "narrowed"), (child, "what came from it")):
            refused(rig, f"D48 {what}: a write", write(made), "lease-not-for-this")
            passes(rig, f"D48 {what}: a read", read(made))
        refused(rig, "D48 another path", read(child, "/echo"), "lease-not-for-this")
        refused(rig, "D48 narrowed, with another method in the query", read(whole, "/ok?_method=DELETE"), "lease-not-for-this")
        text = whole["lease"]
        for at in range(len("ghp_") + 6, len(text), 3):
            refused(rig, f"D48 changed by hand at {at}", read(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1:]), "lease-unknown")
        once = issue(rig, transport, uses=1)
        passes(rig, "D48 once", read(once))
        refused(rig, "D48 and no more", read(once), "lease-used-up")
        rig.lab.wait_for("it has expired", lambda: state_of(rig, brief) == "expired", PATIENCE)
        asked(rig, f"/api/v1/leases/{whole['id']}/revoke", reason="enough")
        for made, what in ((brief, "expired"), (whole, "revoked"), (child, "what came from it")):
            for _ in range(2):
                refused(rig, f"D48 {what}", read(made), "lease-ended")
        wire.close()


@everywhere("D48", cleartext=True, cut=True)
def revoked_it_ends_what_rides_on_it(rig, transport):
    """An answer that is on its way, and a body that is. So does one that is narrowed to what they are not."""
    leases(rig, transport)
    ends_what_rides_on_it(rig, transport, "revoke", reason="enough")
    ends_what_rides_on_it(rig, transport, "narrow", paths=["/elsewhere"])


def ends_what_rides_on_it(rig, transport, verb, **how):
    made = issue(rig, transport)
    gate = f"{verb}-{transport}"
    down, up = rig.open(transport), rig.open(transport)
    down.sock.sendall(down.fill(down.head("GET", f"/sse?n=3&gate={gate}", bearer(made))))
    data = b""
    while b"id: 0\n" not in data:
        more = down.sock.recv(65536)
        assert more, data
        data += more
    up.sock.sendall(up.fill(up.head("POST", f"/w/{verb}", bearer(made), "Content-Length: 2000000") + b"x" * 200000))
    began = f"POST /w/{verb} ".encode()
    rig.lab.wait_for("the body is on its way", lambda: any(began in p.read_bytes() for p in rig.up.dir.glob("*.in")), PATIENCE)
    asked(rig, f"/api/v1/leases/{made['id']}/{verb}", **how)
    for wire, what in ((down, "an answer"), (up, "a body")):
        data = b""
        while more := received(wire.sock):
            data += more
        rig.holds(f"D48 {verb}: {what} ends", b"id: 1\n" not in data and b" 200 " not in data, data[-300:])
        wire.close()
    rig.up.release(gate)
    rig.up.release(gate)
    new = rig.arrived()
    rig.holds(f"D48 {verb}: no whole body left", not [r for r in new if r["complete"] and r["method"] == "POST"], new)
    (told,) = rig.gw.recorded(kind=f"lease-{verb}{'d' if verb[-1] == 'e' else 'ed'}", lease=made["id"])
    rig.holds(f"D48 {verb}: whose", told["sandbox"] == name_of(transport) and told.get("how") == how.get("reason"), told)


@everywhere("D37", cleartext=True)
def a_credential_that_looks_like_something_else_is_taken_as_it_is(rig, transport):
    """One in the form of a lease, even of this gateway's own; with what patterns, escapes and JSON mean by a character."""
    leases(rig, transport)
    made = issue(rig, transport)
    for value in (made["lease"], "ghp_" + "0" * 36, "AKIA" + "7" * 16, "a.*b+c?[d-z]{2,}(e|f)^$#1", "%2541%42%00\\u0041\\x41", '"quoted", {}: &amp;<>\'', "~api~{}~"):
        rig.secret = rig.lab.canary(value)
        rig.gw.cli("secret", "set", "api", stdin=value.encode(), rc=0)
        own = issue(rig, transport)
        for wire in wires(rig, transport):
            for brought in ((), (bearer(own),)):
                rig.lab.wait_for("the new value is used", lambda: fresh(rig, wire, brought, value), PATIENCE)
                new = rig.arrived()
                rig.holds(f"D37 {value[:6]}", not new, new)
            wire.close()


def fresh(rig, wire, brought, value):
    """An echo of it: what the upstream got is the value, and the sandbox sees none of it."""
    got = wire.talk(wire.head("GET", "/echo?form=raw&only=authorization", *brought), 1)
    (sent,) = rig.arrived()
    rig.holds("D37 hidden", value.encode() not in got.data and got.status == [200], got)
    return fields_of(sent)["authorization"] == f"Bearer {value}"


def received(sock):
    try:
        return sock.recv(65536)
    except ConnectionError:
        return b""


if __name__ == "__main__":
    main()
