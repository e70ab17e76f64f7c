#!/usr/bin/env python3
"""Limits, end to end: what is allowed until it is used up, held or denied past that, counted over restarts and kills,
and given back only when nothing left."""
import hashlib
import os
import secrets
import signal
import socket
import sqlite3
import ssl
import types

import room  # noqa: F401
from gateway import Gateway, upstream_yaml
from harness import PATIENCE, main, test
from ways import Wire


def stored(gw, query):
    """What the store says, asked beside everybody."""
    store = sqlite3.connect(f"file:{gw.state}/store/ledger.db?mode=ro", uri=True, timeout=PATIENCE)
    try:
        return store.execute(query).fetchall()
    finally:
        store.close()


def policy(up, limit="requests: 2/1d", over="over: large", large="", extra="", hold_id="large"):
    place = f"host: {up.name}, port: {up.port}"
    return f"""version: 1
name: limits
upstreams:
{upstream_yaml(up.name, up.port, up.ca)}{upstream_yaml("closed.test", up.port + 1, up.ca)}
credentials:
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{{ {place} }}]
rules:
  - {{ id: ok, match: {{ {place}, method: GET, path: /ok }}, decide: allow, use: api }}
  - {{ id: looks, match: {{ {place}, method: GET, path: "/look/**" }}, decide: allow, use: api, limits: {{ requests: 2/1h }} }}
  - {{ id: small, match: {{ {place}, method: POST, path: /pay }}, decide: allow, use: api,
      limits: {{ {limit} }}, {over} }}
  - {{ id: {hold_id}, match: {{ {place}, method: POST, path: /large }}, decide: hold, use: api, approve: {{ within: 2h }},
      say: "Ask in finance." {large} }}
  - {{ id: closed, match: {{ host: closed.test, port: {up.port + 1}, method: POST }}, decide: allow, limits: {{ requests: 1/1d }} }}
{extra}"""


class Payments:
    def __init__(self, lab, hold="inline_wait: 0s, expires: 2h", **more):
        self.lab, self.up = lab, lab.upstream()
        self.gw = Gateway(lab, policy(self.up, **more), {"api": lab.canary(secrets.token_urlsafe(32)).encode()}, hold=hold)
        self.url = f"https://{self.up.name}:{self.up.port}"

    def command(self, path, body=None, url=None):
        what = [] if body is None else ["--data-binary", body, "-H", f"Content-Type: application/{'json' if body.startswith('{') else 'x-www-form-urlencoded'}"]
        return ["curl", "-sS", "--max-time", str(PATIENCE), "--suppress-connect-headers", "-D", "-", *what, (url or self.url) + path]

    def ask(self, path, body=None, name="agent", url=None):
        """(status, text) of the answer."""
        done = self.lab.run(self.command(path, body, url), env=self.gw.client_env(name), rc=0)
        return int(done.out.split(b" ", 2)[1]), done.out.decode()

    def answers(self):
        """Again, after a part of the gateway ended: while it begins anew there may be no tunnel."""
        done = self.lab.run(self.command("/ok"), env=self.gw.client_env())
        return done.rc == 0 and done.out.split(b" ", 2)[1] == b"200"

    def pay(self, body="x=1", **more):
        return self.ask("/pay", body, **more)

    def sent(self, what="POST /pay"):
        return self.up.effects().get(what, 0)

    def reserved(self, where="1"):
        return stored(self.gw, f"SELECT coalesce(sum(amount),0) FROM reserved WHERE {where}")[0][0]

    def records(self, n=1, **want):
        return self.gw.recorded(n, **want)


def held(answer):
    return answer[0] == 403 and "Countersign-Decision: hold" in answer[1]


def over(answer, *words):
    return answer[0] in (403, 429) and '"code":"over-limit"' in answer[1] and all(w in answer[1] for w in words)


@test("the limit connect")
def past_the_limit_a_person_is_asked(lab):
    lab.leaves("pending")
    p = Payments(lab)
    assert [p.pay()[0] for _ in range(2)] == [200, 200]
    third = p.pay()
    assert held(third), third
    assert p.sent() == 2
    ticket = p.gw.pending()
    assert ticket["code"] == "over-limit" and ticket["rule"]["id"] == "large", ticket
    assert held(p.pay()) and len(p.gw.tickets()) == 1, "the retry opened another ticket"
    assert held(p.pay("x=2")) and len(p.gw.tickets()) == 2, "another request joined it"
    p.gw.approve(ticket["id"])
    assert p.sent() == 2
    assert p.pay()[0] == 200 and p.sent() == 3, "the retry sends what was approved"
    assert held(p.pay()) and p.sent() == 3, "once"
    opened = p.records(kind="ticket-opened")[0]
    assert opened["code"] == "over-limit" and opened["rule"]["id"] == "large" and opened["body"] is True, opened
    assert opened["type"] == "application/x-www-form-urlencoded", opened
    assert p.reserved() == 2, "what a person approved does not count against the rule that allows"


@test("the limit's words connect")
def without_over_it_is_denied_and_says_why(lab):
    p = Payments(lab, limit="requests: 1/1d", over="")
    assert p.pay()[0] == 200
    answer = p.pay()
    assert over(answer, "the limit of 1 request in 1 day is used up", f"POST {p.url}/pay", "Retry-After: "), answer
    assert p.sent() == 1
    [record] = p.records(kind="denied", code="over-limit")
    assert record["rule"]["id"] == "small" and record["verdict"] == "deny", record
    assert p.pay(name="other")[0] == 200, "each sandbox has its own"


@test("a sum connect")
def a_sum_counts_what_the_body_says(lab):
    lab.leaves("pending")
    p = Payments(lab, limit="requests: 10/1d, sum: { pointer: /amount, max: 100, every: 1d }")
    assert p.pay('{"amount": 60}')[0] == 200
    assert held(p.pay('{"amount": 41}'))
    assert p.pay('{"amount": 40}')[0] == 200
    for body in ('{"amount": 1}', '{"amount": -5}', '{"amount": 0.5}', '{"amount": "1"}', '{"other": 1}', '{"amount": 1e400}'):
        assert p.pay(body)[0] != 200, body
    assert p.sent() == 2
    assert p.reserved("measure='json:/amount'") == 100


@test("a limited read connect")
def reads_are_counted(lab):
    p = Payments(lab)
    assert [p.ask("/look/a")[0] for _ in range(2)] == [200, 200]
    assert over(p.ask("/look/b"), "2 requests in 1 hour")
    assert p.ask("/ok")[0] == 200
    assert len(p.up.requests()) == 3


@test("the last unit connect")
def of_many_at_once_as_many_pass_as_there_is_room_for(lab):
    p = Payments(lab, limit="requests: 3/1d", over="")
    env = p.gw.client_env()
    all_of_them = [lab.start(p.command("/pay", f"n={n}"), env=env) for n in range(12)]
    for client in all_of_them:
        client.wait()
    passed = sum(b"HTTP/1.1 200" in client.seen for client in all_of_them)
    assert passed == 3 == p.sent(), (passed, p.sent())


@test("not sent connect")
def what_could_not_be_sent_is_given_back(lab):
    p = Payments(lab)
    closed = f"https://closed.test:{p.up.port + 1}"
    for _ in range(2): # of one a day: the first never left
        assert p.ask("/x", "n=1", url=closed)[0] == 502
    lab.wait_for("what was reserved to be given back", lambda: p.reserved() == 0)
    assert [r["outcome"] for r in p.records(2, kind="result")] == ["not-sent"] * 2


class Stream:
    """A POST whose body goes out as it is given: not all of it is there yet."""

    def __init__(self, p, path="/pay", port=None, name=None):
        def knock(_door, _who):
            host, _, number = p.gw.proxy.rpartition(":")
            return socket.create_connection((host, int(number)), PATIENCE)
        up = types.SimpleNamespace(name=name or p.up.name, port=port or p.up.port, plain_port=None)
        self.wire = Wire(types.SimpleNamespace(up=up, gw=p.gw, lab=p.lab, knock=knock,
                                               tls=ssl.create_default_context(cafile=str(p.gw.state / "bundle.crt"))), "connect")
        self.wire.sock.settimeout(PATIENCE)
        self.wire.sock.sendall(self.wire.fill(self.wire.head("POST", path, "Transfer-Encoding: chunked")))

    def give(self, data):
        self.wire.sock.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def answer(self, end=b""):
        """(status, text), after the end of the body or with end=b"" before it."""
        got = self.wire.talk(end, 1)
        self.wire.close()
        assert len(got.status) == 1, got
        return got.status[0], got.data.decode()

    def end(self):
        return self.answer(b"0\r\n\r\n")[0]


def came(up, what=b"POST /pay"):
    """How much came of each request of that kind, whole or not."""
    return [len(rest) for path in up.dir.glob("*.in") for rest in path.read_bytes().split(what)[1:]]


LARGE = b"0123456789abcdef" * 65536  # 1 MiB, four body windows


@test("a streamed body connect")
def a_body_that_streams_counts_once(lab):
    p = Payments(lab, over="")
    for n in range(2):
        one = Stream(p)
        one.give(LARGE)
        lab.wait_for("its beginning upstream, before its end is sent", lambda: len([size for size in came(p.up) if size > 700_000]) > n)
        assert p.reserved() == n + 1 and p.sent() == n, "counted before it left, once"
        one.give(LARGE)
        assert one.end() == 200 and p.reserved() == n + 1 == p.sent()
    assert [len(p.up.body(r["n"])) for r in p.up.requests()] == [2 * len(LARGE)] * 2
    before = sum(came(p.up))
    third = Stream(p)
    third.give(LARGE[:4096])
    for answer in (third.answer(), p.pay()):  # its head decides: nobody waits for its body
        assert over(answer, "the limit of 2 requests in 1 day is used up"), answer
    assert sum(came(p.up)) == before and p.sent() == 2 == p.reserved()
    assert [r["outcome"] for r in p.records(2, kind="result", fits=lambda r: r["code"] != "over-limit")] == ["answered"] * 2


@test("a streamed body cut connect")
def a_client_that_goes_away_in_the_middle_keeps_its_count(lab):
    p = Payments(lab, over="")
    for n in range(2):
        one = Stream(p)
        one.give(LARGE)
        lab.wait_for("its beginning upstream", lambda: len([size for size in came(p.up) if size > 700_000]) > n)
        one.wire.close()
        result = p.records(n + 1, kind="result")[n:]
        assert [r["outcome"] for r in result] == ["unknown"], result
        assert p.reserved() == n + 1 and p.sent() == 0
    assert over(p.pay(), "2 requests in 1 day") and p.sent() == 0


@test("a streamed body held connect")
def what_a_person_may_be_asked_about_is_read_whole(lab):
    p = Payments(lab, limit="requests: 1/1d")

    def whole():
        one = Stream(p)
        one.give(LARGE)
        assert p.sent() == len(came(p.up)), "nothing of it leaves before all of it is there"
        return one.answer(b"0\r\n\r\n")
    assert whole()[0] == 200 and p.sent() == 1
    assert held(whole()) and len(came(p.up)) == 1
    ticket = p.gw.pending()
    assert ticket["body_sha256"] == hashlib.sha256(LARGE).hexdigest(), ticket
    p.gw.approve(ticket["id"])
    assert whole()[0] == 200 and p.sent() == 2
    assert [len(p.up.body(r["n"])) for r in p.up.requests()] == [len(LARGE)] * 2


@test("a streamed body not sent connect")
def a_body_that_had_nowhere_to_stream_to_is_given_back(lab):
    p = Payments(lab)
    for _ in range(2):  # of one a day
        one = Stream(p, "/x", p.up.port + 1, "closed.test")
        one.give(LARGE[:100_000])
        assert one.answer()[0] == 502
        lab.wait_for("what was reserved to be given back", lambda: p.reserved() == 0)
    assert [r["outcome"] for r in p.records(2, kind="result")] == ["not-sent"] * 2


@test("the hold's own limit connect")
def a_hold_past_its_own_limit_is_denied(lab):
    p = Payments(lab, limit="requests: 1/1d", large=", limits: { requests: 1/1d }")
    assert p.pay()[0] == 200
    assert held(p.pay("x=2"))
    assert over(p.pay("x=3"), "1 request in 1 day", "Ask in finance.") and len(p.gw.tickets()) == 1
    p.gw.deny(p.gw.pending()["id"], "no")
    assert held(p.pay("x=3")), "what was denied has left its place"
    ticket = p.gw.pending()["id"]
    p.gw.approve(ticket)
    assert p.pay("x=3")[0] == 200 and p.sent() == 2
    assert over(p.pay("x=4")), "what was sent has not"


@test("a restart connect")
def a_restart_forgets_nothing(lab):
    p = Payments(lab, over="")
    assert p.pay()[0] == 200
    p.gw.kill("ledger")
    lab.wait_for("an answer", p.answers)
    assert p.pay()[0] == 200 and over(p.pay())
    p.gw.process.signal(signal.SIGKILL)
    p.gw.process.wait()
    p.gw.up()
    assert over(p.pay()) and p.sent() == 2
    assert p.gw.cli("audit", "verify").rc == 0


def killed(role, stop):
    """kill -9 while a write is on its way: what was reserved stays if it may have left, and is never counted twice."""
    def run(lab):
        p = Payments(lab, limit="requests: 3/1d", over="")
        assert p.ask("/ok")[0] == 200
        frozen = p.up.process.pid if stop == "upstream" else p.gw.pid(stop)
        lab.stops(frozen)
        client = lab.start(p.command("/pay", "n=1"), env=p.gw.client_env())
        lab.wait_for("the intent", lambda: stored(p.gw, "SELECT 1 FROM effect"))
        old = p.gw.pid(role)
        lab.kills(old)
        os.kill(frozen, signal.SIGCONT) if frozen != old else None
        lab.wait_for(f"another {role}", lambda: p.gw.pid(role) not in (None, old))
        client.wait()
        lab.wait_for("an answer", p.answers)
        lab.wait_for("an end", lambda: not stored(p.gw, "SELECT 1 FROM effect WHERE state IN ('intent','sent')"))
        [state] = stored(p.gw, "SELECT state FROM effect ORDER BY intent_ms LIMIT 1")[0]
        kept, sent = p.reserved(), p.sent()
        assert kept == (0 if state == "not-sent" else 1), (state, kept)
        assert sent <= kept, f"{sent} sent, {kept} counted"
        print(f"# {state}: {sent} sent, {kept} counted")
        results = [p.pay(f"n={n}")[0] for n in range(2, 6)]
        assert results.count(200) == 3 - kept, results
    run.__name__ = f"kill_{role}_with_{stop}_stopped"
    return run


for role, stop in (("ledger", "carrier"), ("judge", "upstream"), ("carrier", "upstream"), ("carrier", "carrier")):
    test(f"F13 limits-{role}-{stop}")(killed(role, stop))


@test("B52 connect", "INV6 connect")
def a_reload_ends_what_could_never_be_used(lab):
    p = Payments(lab, limit="requests: 1/1d")
    assert p.pay()[0] == 200
    assert held(p.pay("x=2")) and held(p.ask("/large", "y=1"))
    both = {t["id"] for t in p.gw.tickets()}
    assert len(both) == 2
    p.gw.policy.write_text(policy(p.up, limit="requests: 5/1d"))  # more of what it was past: it stays
    p.gw.cli("reload", rc=0)
    lab.run(["sleep", "1.5"])
    assert {t["id"] for t in p.gw.tickets()} == both
    p.gw.policy.write_text(policy(p.up, over="", extra="""  - { id: never, match: { path: /large, host: %s, port: %d }, decide: deny }
""" % (p.up.name, p.up.port)))
    p.gw.cli("reload", rc=0)
    lab.wait_for("the tickets' end", lambda: not p.gw.tickets())
    assert {t["state"] for t in p.gw.tickets("all")} == {"cancelled"}
    ends = p.records(2, kind="ticket-decided", state="cancelled", by="policy")
    assert len(ends) == 2 and all("the policy would not hold it" in r["reason"] for r in ends), ends
    assert p.sent() == 1 and p.sent("POST /large") == 0


@test("B52 connect")
def an_approval_that_waits_is_taken_back_too(lab):
    lab.leaves("pending")
    p = Payments(lab)
    assert held(p.ask("/large", "y=1"))
    ticket = p.gw.pending()["id"]
    p.gw.approve(ticket)
    p.gw.policy.write_text(policy(p.up, hold_id="other"))  # another rule holds it now: nobody approved that
    p.gw.policy.write_text(p.gw.policy.read_text().replace("over: large", "over: other"))
    p.gw.cli("reload", rc=0)
    lab.wait_for("the ticket's end", lambda: [t["state"] for t in p.gw.tickets("all")] == ["cancelled"])
    assert held(p.ask("/large", "y=1")) and p.gw.pending()["id"] != ticket
    assert p.sent("POST /large") == 0


if __name__ == "__main__":
    main()
