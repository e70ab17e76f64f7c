#!/usr/bin/env python3
"""A name is not an identity: what outlives a policy, under a reload that gives its name to something else (attacks.tsv D44,
E41, E45); and the name in which a write is sent is shown (E44). One table: a row is a long-lived object, what happens to its name, and what must be true then. Every row is run,
and prints itself."""
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import re
import secrets
import socket
import threading
import urllib.parse

import room  # noqa: F401
from attack import Rig, everywhere, fields_of
from gateway import NOT_RELEASED, REFUSED, Page
from harness import main, test
import certs  # noqa: E402  of lab, which harness made known
from ways import Refused, Wire

BASE = {"name": "api", "file": "a.key", "hosts": ("upstream.test",), "header": "Authorization", "rule": "writes", "by": None,
        "operators": (f"uid {os.getuid()}",), "reason": "optional", "within": "10m", "hold": "hold", "max": 3, "limited": "limited",
        "other": "allow", "where": (), "more": ""}


class World:
    """A gateway whose policy is BASE and what a row makes of it. Reads of both hosts use the credential where it may go."""

    def __init__(self, lab):
        self.rig, self.lab = Rig(lab), lab
        self.value = {name: secrets.token_urlsafe(32) for name in ("a", "b")}
        for name, value in self.value.items():
            lab.secret_file(f"{name}.key", value)
        self.terms, self.first, self.count = dict(BASE), None, 0
        self.upstreams = re.search(r"upstreams:\n(  - .*\n)+", self.rig.gw.policy.read_text())[0]

    def text(self):
        t, up = self.terms, self.rig.up
        only = ", ".join(f"{{ host: {h}, port: {up.port} }}" for h in t["hosts"])
        upstreams = "".join(line for line in self.upstreams.splitlines(True) if t["other"] or "other.test" not in line)
        for old, new in t["where"]:
            upstreams = upstreams.replace(old, new)
        decide = {h: d for h, d in (("upstream.test", "allow"), ("other.test", t["other"])) if d}
        use = {h: f", use: {t['name']}" if t["name"] and h in t["hosts"] and d == "allow" else "" for h, d in decide.items()}
        who = f"approvers:\n  people: {{ operators: [{', '.join(json.dumps(o) for o in t['operators'])}] }}\n" if t["by"] else ""
        inject = f"{{ header: {t['header']}, format: \"Bearer {{}}\" }}"
        creds = f"credentials:\n  {t['name']}:\n    source: {{ file: {self.lab.dir / t['file']} }}\n    inject: {inject}\n    only: [{only}]\n" if t["name"] else ""
        approve = f", approve: {{ within: {t['within']}, reason: {t['reason']}{', by: people' if t['by'] else ''} }}" if t["hold"] == "hold" else ""
        place = f"host: upstream.test, port: {up.port}"
        return (f"version: 1\nname: identity\n{upstreams}{creds}{who}rules:\n"
                + "".join(f"  - {{ id: read-{h.split('.')[0]}, match: {{ host: {h}, port: {up.port}, effect: read }}, decide: {decide[h]}{use[h]} }}\n" for h in use)
                + f"  - {{ id: {t['rule']}, match: {{ {place}, method: POST, path: \"/hold/**\" }}, decide: {t['hold']}{use['upstream.test'] if t['hold'] != 'deny' else ''}{approve} }}\n"
                + f"  - {{ id: {t['limited']}, match: {{ {place}, method: POST, path: /limited }}, decide: allow, limits: {{ requests: {t['max']}/1d }} }}\n"
                + t["more"])

    def use(self, **change):
        """The policy with these terms is in force; its digest."""
        self.terms = {**BASE, **change}
        self.rig.gw.policy.write_text(self.text())
        status, said = self.rig.control("POST", "/api/v1/reload")
        assert status == 200, said
        return self.digest()

    def digest(self):
        return self.rig.gw.cli_json("policy", "history")["current"]

    def read(self, host="upstream.test", who="agent"):
        wire = Wire(self.rig, "connect", who=who, host=host)
        got = wire.talk(wire.head("GET", "/ok"), 1)
        wire.close()
        return got

    def hold(self, path, body=b"x", who="agent", *fields):
        """A write that is held: (what came back, its ticket)."""
        wire = Wire(self.rig, "connect", who=who)
        got = wire.talk(wire.head("POST", path, *fields, f"Content-Length: {len(body)}") + body, 1)
        wire.close()
        found = re.search(rb"Countersign-Ticket: (\S+)", got.data)
        return got, found and found[1].decode()

    def state(self, ticket):
        return self.rig.gw.show(ticket)["state"]

    def decide(self, ticket, reason=None):
        self.rig.gw.cli("approvals", "approve", ticket, *(["--reason", reason] if reason else []), rc=0)

    # what a row may expect

    def sends(self, row, value, host="upstream.test", header="authorization"):
        new = self.rig.passed(row, self.read(host), [("GET", "/ok", b"")])
        sent = fields_of(new[0])
        self.rig.holds(row, sent.get(header) == (value and f"Bearer {value}") and not (header != "authorization" and "authorization" in sent), sent)

    def sends_nothing(self, row, host):
        self.rig.refused(row, self.read(host), closed=False)


def source(w, row, change, expect):
    """A credential that was used a moment ago, so that its file is open, its value read, released and on a connection."""
    w.use()
    w.sends(f"E45 before {row}", w.value["a"])
    w.use(**change)
    expect(w, f"D44 {row}")


def ticket(w, row, change, expect, approved=False):
    """A held write, pending or approved, whose client comes back when the policy is another."""
    w.count += 1
    path = f"/hold/{w.count}"
    w.use()
    got, old = w.hold(path)
    w.rig.held(f"E45 before {row}", got)
    if approved:
        w.decide(old)
    w.use(**change)
    expect(w, f"E41 {row}", path, old, approved)


def void(w, row, path, old, approved):
    """The old ticket ends by the policy's hand, whoever comes back or not; the new one has not been approved."""
    w.lab.wait_for(f"{row}: {old} is cancelled", lambda: w.state(old) == "cancelled")
    got, new = w.hold(path)
    w.rig.held(row, got)
    w.rig.holds(row, new and new != old and w.state(new) == "pending", (old, new))


def denied(w, row, path, old, approved):
    w.lab.wait_for(f"{row}: {old} is cancelled", lambda: w.state(old) == "cancelled")
    got, new = w.hold(path)
    w.rig.refused(row, got, closed=False, status=403)


def stays(w, row, path, old, approved):
    """Nothing that was agreed on is different: the same ticket, and its approval is good."""
    if not approved:
        got, new = w.hold(path)
        w.rig.held(row, got)
        w.rig.holds(row, new == old, (old, new))
        w.decide(old)
    got, _ = w.hold(path)
    sent = fields_of(w.rig.passed(row, got, [("POST", path, b"x")])[0])
    w.rig.holds(row, sent["authorization"] == f"Bearer {w.value['a']}", sent)
    w.rig.lab.wait_for(f"{row}: done", lambda: w.state(old) == "done")  # it is written a moment after the answer is there


def gone(host):
    return lambda w, row: w.sends_nothing(row, host)


def value(name, host="upstream.test", header="authorization"):
    return lambda w, row: w.sends(row, name and w.value[name], host, header)


def both(w, row):
    value("a")(w, row)
    value("a", "other.test")(w, row)


OTHER = ("other.test",)
NOBODY = {"by": True, "operators": ("uid 4000000",)}
MINE = {"by": True}
SOURCES = [  # what the reload does with the credential's name, what the policy says then, what must be sent
    ("rebinds it to a file that is not there, for another host", {"file": "none.key", "hosts": OTHER}, gone("other.test")),
    ("rebinds it to a link, for another host", {"file": "link.key", "hosts": OTHER}, gone("other.test")),
    ("rebinds it to an empty file, for another host", {"file": "empty.key", "hosts": OTHER}, gone("other.test")),
    ("rebinds it to a folder, for another host", {"file": "out", "hosts": OTHER}, gone("other.test")),
    ("rebinds it to a file that is not there, for the same host", {"file": "none.key"}, gone("upstream.test")),
    ("rebinds it to another file", {"file": "b.key"}, value("b")),
    ("rebinds it to another file and host", {"file": "b.key", "hosts": OTHER}, value("b", "other.test")),
    ("rebinds it to another field", {"header": "X-Api-Key"}, value("a", header="x-api-key")),
    ("renames it", {"name": "renamed"}, value("a")),
    ("narrows it to another host", {"hosts": OTHER}, value(None)),
    ("widens it to another host as well", {"hosts": ("upstream.test", "other.test")}, both),
    ("removes it", {"name": ""}, value(None)),
]
TICKETS = [  # what the reload does with the terms of a hold, what the policy says then, what becomes of the ticket
    ("renames its rule", {"rule": "other-writes"}, void),
    ("rebinds its credential to another file", {"file": "b.key"}, void),
    ("rebinds its credential to another field", {"header": "X-Api-Key"}, void),
    ("renames its credential", {"name": "renamed"}, void),
    ("widens its credential to another host", {"hosts": ("upstream.test", "other.test")}, void),
    ("takes its credential away", {"name": ""}, void),
    ("narrows who may approve", MINE, void),
    ("narrows who may approve to somebody else", NOBODY, void),
    ("wants a reason", {"reason": "required"}, void),
    ("shortens its life", {"within": "5m"}, void),
    ("removes its rule", {"hold": "deny"}, denied),
    ("says more of something else", {"more": "  - { id: more, match: { host: other.test, path: /more }, decide: deny }\n"}, stays),
]


def prepare(w):
    (w.lab.dir / "empty.key").touch(0o600)
    (w.lab.dir / "link.key").symlink_to(w.lab.dir / "a.key")
    (w.lab.dir / "none.key").unlink(missing_ok=True)


@test()
def a_credentials_name_is_not_its_source(lab):
    w = World(lab)
    prepare(w)
    lab.expects(NOT_RELEASED, r"parent: credential api: cannot open")
    for what, change, expect in SOURCES:
        with w.rig.case("D44 E45", "reload"):
            source(w, f"a source: a reload {what}", change, expect)
        print(f"row: a credential's source, value, connection: a reload {what}", flush=True)
    with w.rig.case("D44 E45", "rollback"):
        first = w.use()
        w.sends("D44 before", w.value["a"])
        w.use(file="b.key", hosts=OTHER)
        w.sends("D44 the other", w.value["b"], "other.test")
        (lab.dir / "a.key").rename(lab.dir / "away.key")
        lab.exempt(lab.dir / "away.key")
        w.rig.gw.cli("policy", "rollback", first, rc=0)
        w.sends_nothing("D44 back, and its file is not there any more", "upstream.test")
        w.sends("E45 and the other host gets nothing", None, "other.test")
        (lab.dir / "away.key").rename(lab.dir / "a.key")
        w.rig.gw.cli("policy", "rollback", first, rc=0)
        w.sends("D44 back", w.value["a"])
        w.rig.gw.cli("policy", "rollback", "--end", rc=0)
    print("row: a credential's source, value, connection: a rollback", flush=True)
    w.rig.settle()


@test()
def a_ticket_is_of_the_terms_it_was_held_on(lab):
    w = World(lab)
    prepare(w)
    for what, change, expect in TICKETS:
        for approved in (False, True):
            how = "an approved" if approved else "a pending"
            with w.rig.case("E41 E45", "reload"):
                ticket(w, f"{how} ticket: a reload {what}", change, expect, approved)
            print(f"row: {how} ticket: a reload {what}", flush=True)
    with w.rig.case("E41 E45", "reload"):
        w.use(**MINE)  # the same approvers entry, with other people in it
        got, old = w.hold("/hold/who")
        w.decide(old)
        w.use(**NOBODY)
        void(w, "E41 an approved ticket: a reload narrows an approvers entry", "/hold/who", old, True)
        w.use(**NOBODY)  # and widened: it was for nobody to approve, and is asked for again
        got, old = w.hold("/hold/wide")
        w.use()
        void(w, "E45 a pending ticket: a reload widens who may approve", "/hold/wide", old, False)
    print("row: a ticket: a reload narrows an approvers entry, and widens it", flush=True)
    w.rig.settle()


def form_of(page, ticket):
    """What the page's form for a yes sends, or None: it has none."""
    text = page.ask("GET", f"/tickets/{ticket}")[1]
    form = re.search(rb'<form[^>]* action="/tickets/[^"]*/approve">(.*?)</form>', text, re.S)
    return form and {n.decode(): v.decode() for n, v in re.findall(rb'<input type="hidden" name="([^"]+)" value="([^"]*)"', form[1])}


def say_yes(w, page, ticket, form):
    """The status of the page's answer to that form, at a human's pace."""
    def answered():
        answer, text = page.ask("POST", f"/tickets/{ticket}/approve", urllib.parse.urlencode(form))
        return None if b"Too fast" in text else answer.status
    return w.lab.wait_for("the page's answer", answered)


def row(rig, what, way, check):
    with rig.case("E45", way):
        check(f"E45 {what}")
    print(f"row: {what}", flush=True)


def main_rollback(w, what):
    first = w.use()
    got, old = w.hold("/hold/back")
    w.decide(old)
    w.use(reason="required")
    w.lab.wait_for("cancelled", lambda: w.state(old) == "cancelled")
    w.rig.gw.cli("policy", "rollback", first, rc=0)
    got, new = w.hold("/hold/back")
    w.rig.held(what, got)
    w.rig.holds(what, new != old and w.state(old) == "cancelled" and w.state(new) == "pending", (old, new))
    w.rig.gw.cli("policy", "rollback", "--end", rc=0)


def recreate(w, name):
    w.rig.gw.cli("sandbox", "rm", name, rc=0)
    w.rig.gw.tokens.pop(name)
    w.rig.gw.token(name)


def somebody_else(lab, port):
    """A server of the upstream's port on another address, that ends whatever comes: (its address, what came)."""
    came = []
    for address in (f"127.0.0.{n}" for n in range(2, 255)):
        try:
            server = socket.create_server((address, port))
            break
        except OSError:  # somebody's port
            continue

    def serve():
        with contextlib.suppress(OSError):
            while True:
                sock, peer = server.accept()
                came.append(peer)
                sock.close()

    def end():
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    threading.Thread(target=serve, daemon=True).start()
    lab.at_end.append(end)
    return address, came


@test()
def what_else_outlives_a_policy_or_a_sandbox(lab):
    w = World(lab)
    rig = w.rig

    def withdrawn(what):
        main_rollback(w, what)

    def frozen(what):
        first = w.use()
        rig.gw.cli("freeze", rc=0)
        for step in (lambda: w.use(rule="other-writes"), lambda: rig.gw.cli("policy", "rollback", first, rc=0), lambda: rig.gw.cli("policy", "rollback", "--end", rc=0), lambda: recreate(w, "agent")):
            step()
            got, made = w.hold("/hold/frozen")
            rig.refused(what, got, closed=False, status=403)
            rig.holds(what, b"Writes are frozen" in got.data, got)
        rig.gw.cli("thaw", rc=0)

    def counted(what):
        """A limit is known by its rule's id: what was used under it counts on, whatever the rule means by now."""
        w.use(limited="spent")
        for n in range(3):
            rig.passed(what, w.hold("/limited")[0], [("POST", "/limited", b"x")])
        for change in ({"max": 2}, {"name": "renamed"}, {"max": 3}):
            w.use(limited="spent", **change)
            rig.refused(what, w.hold("/limited")[0], closed=False)
        recreate(w, "agent")
        w.use(limited="spent")
        rig.refused(f"{what}, as a sandbox of the same name", w.hold("/limited")[0], closed=False)

    def counted_anew(what):
        """Renamed, it begins at nothing: `policy diff` says so."""
        w.use(limited="again")
        rig.passed(what, w.hold("/limited")[0], [("POST", "/limited", b"x")])

    def tokens(what):
        """rm and create: the tunnel and the token of before are nobody's."""
        w.use()
        open_one, token = Wire(rig, "connect", who="short"), rig.gw.token("short")
        rig.passed(what, open_one.talk(open_one.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
        recreate(w, "short")
        new, rig.gw.tokens["short"] = rig.gw.tokens["short"], token
        try:
            Wire(rig, "connect", who="short")
            rig.holds(f"{what}: the old token", False)
        except Refused:
            rig.holds(f"{what}: the old token", True)
        rig.gw.tokens["short"] = new
        try:
            got = open_one.talk(open_one.head("GET", "/ok"), 1)
        except OSError:
            got = None
        rig.holds(f"{what}: the old tunnel", got is None or got.status != [200], got)
        rig.arrived()
        rig.holds(f"{what}: the new one", w.read(who="short").status == [200])
        rig.arrived()

    def tickets(what):
        """rm and create under the same name: the ticket of the first is not the second's, to see or to use."""
        w.use()
        got, old = w.hold("/hold/mine", who="first")
        w.decide(old)
        recreate(w, "first")
        got, new = w.hold("/hold/mine", who="first")
        rig.held(what, got)
        rig.holds(what, new != old and w.state(new) == "pending", (old, new))
        seen = rig.plain(f"GET http://countersign.internal/v1/tickets/{old} HTTP/1.1\r\nHost: countersign.internal\r\n"
                         f"Proxy-Authorization: {rig.gw.basic('first')}\r\n\r\n".encode(), expect=1)
        rig.holds(f"{what}: seen", seen.status == [404], seen)

    def trust(what):
        """Lists that cannot be read as such: the reload is refused, and nothing of it is in force."""
        good, before = rig.gw.config.read_text(), w.use()
        (lab.dir / "bad.crl").write_text("this is no list\n")
        rig.gw.config.write_text(good + "crl: bad.crl\n")
        w.terms = {**BASE, "file": "b.key"}
        rig.gw.policy.write_text(w.text())
        status, said = rig.control("POST", "/api/v1/reload")
        rig.holds(what, status != 200, said)
        rig.holds(what, w.digest() == before, said)
        w.sends(what, w.value["a"])
        rig.gw.config.write_text(good)
        w.use()

    def leafs(what):
        """The certificate for a host is kept for the sandbox; what the policy says of the host is asked anew."""
        for other in ("deny", ""):
            w.use()
            open_one = Wire(rig, "connect", who="leafed", host="other.test")
            rig.passed(what, open_one.talk(open_one.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
            w.use(other=other)
            for wire in (open_one, Wire(rig, "connect", who="leafed", host="other.test")):
                rig.holds(f"{what}: it is the one that was kept", wire.sock.getpeercert(True) == open_one.sock.getpeercert(True))
                rig.refused(f"{what}: {other or 'removed'}", wire.talk(wire.head("GET", "/ok"), 1), closed=False, status=403)
        w.use()
        was = open_one.sock.getpeercert(True)
        recreate(w, "leafed")
        again = Wire(rig, "connect", who="leafed", host="other.test")
        rig.holds(f"{what}: another sandbox has its own", again.sock.getpeercert(True) != was)
        rig.passed(what, again.talk(again.head("GET", "/ok"), 1), [("GET", "/ok", b"")])

    rig.reloads_refused = True
    lab.expects(REFUSED)
    row(rig, "a certificate for a host: a reload denies it, removes it; sandbox rm and create", "connect", leafs)
    row(rig, "an approved ticket: a reload narrows, a rollback takes it back", "rollback", withdrawn)
    row(rig, "a freeze: reload, rollback, sandbox rm and create", "reload", frozen)
    row(rig, "what a limit counts: a reload narrows, renames a credential, widens; sandbox rm and create", "reload", counted)
    row(rig, "what a limit counts: a reload renames its rule", "reload", counted_anew)
    row(rig, "a token and a tunnel: sandbox rm and create", "connect", tokens)
    row(rig, "a ticket, approved and seen: sandbox rm and create", "connect", tickets)
    row(rig, "roots and lists: a reload with lists that are none", "reload", trust)
    rig.settle()


@test()
def what_is_open_when_a_reload_comes(lab):
    w = World(lab)
    rig = w.rig

    def pages(what):
        """Who is signed in, with a ticket open, when a reload makes it another: the form of before says yes to nothing."""
        page = Page(rig.gw)
        for change in ({"rule": "other-writes"}, {"file": "b.key"}, NOBODY):
            w.use()
            got, old = w.hold("/hold/seen")
            form = form_of(page, old)
            w.use(**change)
            lab.wait_for(f"{what}: {old} is cancelled", lambda: w.state(old) == "cancelled")
            rig.holds(f"{what}: a yes to the old one", say_yes(w, page, old, form) >= 400 and w.state(old) == "cancelled")
            rig.holds(f"{what}: the old one asks nothing", form_of(page, old) is None)
            got, new = w.hold("/hold/seen")
            rig.held(what, got)
            rig.holds(f"{what}: the old form for the new one", say_yes(w, page, new, form) == 403 and w.state(new) == "pending")
            rig.holds(f"{what}: what waits", new.encode() in page.ask("GET", "/")[1])
            form = form_of(page, new)
            mine = change is not NOBODY
            rig.holds(f"{what}: whose it is", say_yes(w, page, new, form) == (303 if mine else 403), form)
            rig.holds(f"{what}: and so it is", w.state(new) == ("approved" if mine else "pending"))

    def kept(what):
        """A connection to the upstream that waits for the next request is one of the policy that it was made by."""
        other = certs.CA(lab.dir / "other-ca")
        lab.exempt(lab.dir / "other-ca")
        elsewhere, came = somebody_else(lab, rig.up.port)
        moved = (f"port: {rig.up.port}, address: 127.0.0.1, allow_private: [\"127.0.0.1/32\"]", f"port: {rig.up.port}, address: {elsewhere}, allow_private: [\"{elsewhere}/32\"]")
        trusts = f"ca: \"{rig.up.ca}\""

        def number():
            return rig.passed(what, w.read(), [("GET", "/ok", b"")])[0]["conn"]
        for how, where in (("address", moved), ("ca", (trusts, f"ca: \"{other.cert}\"")), ("no ca", (f", {trusts}", "")),
                           ("pin", (trusts, f"tls: {{ ca: \"{rig.up.ca}\", pin: sha256/{base64.b64encode(bytes(32)).decode()} }}"))):
            w.use()
            lab.wait_for("a connection that is kept", lambda: number() == number())
            was, open_one = number(), rig.open("connect")
            got, ticket = w.hold(f"/hold/{how.replace(' ', '-')}")
            w.decide(ticket)
            w.use(where=(where,))
            for wire in (open_one, rig.open("connect")):
                rig.refused(f"{what}: {how}", wire.talk(wire.head("GET", "/ok"), 1), closed=False, status=502)
            got, _ = w.hold(f"/hold/{how.replace(' ', '-')}")
            rig.holds(f"{what}: {how}, an approved write", got.status == [502] and not rig.arrived(), got)
            rig.holds(f"{what}: {how}: where it went", bool(came) == (where is moved), came)
            came.clear()
            w.use()
            rig.holds(f"{what}: {how}, and back: not the one of before", number() != was)

    row(rig, "a page that is open: a reload renames a rule, rebinds a credential, narrows who may approve", "reload", pages)
    row(rig, "a connection to an upstream that waits: a reload changes its address, its CA, its pin", "reload", kept)
    rig.settle()


def own_holds(up):
    return f"  - {{ id: own, match: {{ host: other.test, port: {up.port}, method: POST }}, decide: hold, approve: {{ within: 2h }} }}\n"


@everywhere("E44", more=own_holds, apart=True)
def a_credential_of_the_sandboxs_own_is_shown_and_counts(rig, transport):
    page = Page(rig.gw)
    for field, scheme in (("Authorization", "Bearer "), ("authorization", "Basic "), ("Cookie", ""), ("X-Api-Key", ""), ("X_Auth_Token", ""), ("X-Amz-Security-Token", "")):
        tickets, values = [], [scheme + secrets.token_urlsafe(30) for _ in range(2)]
        for value in (values[0], values[1], values[0]):
            wire = rig.open(transport) if transport == "absolute" else rig.open(transport, host="other.test")
            got = wire.talk(wire.head("POST", f"/own/{field}", f"{field}: {value}", "Content-Length: 1") + b"x", 1)
            rig.held(f"E44 {field}", got)
            tickets.append(re.search(rb"Countersign-Ticket: (\S+)", got.data)[1].decode())
            wire.close()
        rig.holds(f"E44 {field}: another one is another ticket, the same one joins", tickets[0] == tickets[2] != tickets[1], tickets)
        shown = [rig.gw.show(t) for t in tickets[:2]]
        rig.holds(f"E44 {field}: another digest", shown[0]["digest"] != shown[1]["digest"], shown)
        for value, facts in zip(values, shown):
            mark = hashlib.sha256(value.encode()).hexdigest()[:12]
            said = [f["value"] for f in facts["facts"] if f["label"] == "The sandbox's own credential"]
            rig.holds(f"E44 {field}: said", len(said) == 1 and said[0].startswith(f"{field}: {scheme.strip()}") and mark in said[0], facts)
            texts = {"api": json.dumps(facts), "cli": rig.gw.cli("approvals", "show", facts["id"], rc=0).text(), "page": page.ask("GET", f"/tickets/{facts['id']}")[1].decode()}
            for where, text in texts.items():
                rig.holds(f"E44 {field}: masked on {where}", value.split()[-1] not in text and mark in text, text)
        rig.gw.approve(tickets[0])
        wire = rig.open(transport) if transport == "absolute" else rig.open(transport, host="other.test")
        got = wire.talk(wire.head("POST", f"/own/{field}", f"{field}: {values[0]}", "Content-Length: 1") + b"x", 1)
        sent = fields_of(rig.passed(f"E44 {field}", got, [("POST", f"/own/{field}", b"x")])[0])
        rig.holds(f"E44 {field}: sent in that name", sent[field.lower()] == values[0], sent)
        wire.close()


main()
