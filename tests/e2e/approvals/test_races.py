#!/usr/bin/env python3
"""What was asked, what was approved and what leaves are one thing, once (attacks.tsv E1 to E8, E22, E25, E29 to E31, E40), whoever
decides at the same moment: two approvers, the clock, a client that goes, a reload, a restart."""
import json
import random
import threading

import room  # noqa: F401
from attack import Rig, everywhere
from harness import PATIENCE, main, test
from ways import TUNNELS

LONG = "inline_wait: 10m, expires: 2h, pending: 1000"
SHORT = "inline_wait: 20s, expires: 2h, pending: 1000"


def newest(rig, known):
    """The one ticket that is there and was not known; it is now."""
    found = rig.lab.wait_for("a ticket", lambda: [t["id"] for t in rig.gw.tickets("all") if t["id"] not in known])
    known.update(found)
    assert len(found) == 1, found
    return found[0]


def all_of(rig):
    return {t["id"] for t in rig.gw.tickets("all")}


@everywhere("E1 E31", TUNNELS, hold=LONG)
def what_comes_behind_a_held_request_changes_nothing_of_it(rig, transport):
    known, wire = all_of(rig), rig.open(transport)
    first = wire.head("POST", f"/h/a-{transport}?x=1", "Content-Type: text/plain", "Content-Length: 5") + b"first"
    other = wire.head("DELETE", f"/h/b-{transport}", "Content-Length: 6") + b"second"
    wire.sock.sendall(wire.fill(first + other))
    ticket = newest(rig, known)
    rig.open(transport).good(2)
    wire.sock.settimeout(1)
    try:
        early = wire.sock.recv(1)
    except TimeoutError:
        early = b""
    rig.holds("E31 not a byte before it is decided", early == b"" and not rig.arrived(), early)
    rig.gw.approve(ticket)
    got = wire.talk(b"", 1)
    rig.passed("E1 the bytes that were shown", got, [("POST", f"/h/a-{transport}?x=1", b"first")])
    second = newest(rig, known)
    rig.holds("E1 what came behind it is a request of its own", rig.gw.show(second)["path"] == f"/h/b-{transport}" and not rig.arrived())
    rig.gw.deny(second, "no")
    rig.holds("E1 and is refused for itself", wire.talk(b"", 1).status == [403] and not rig.arrived())
    wire.close()


VARIED = [("another body", {"body": b'{"n":2}'}), ("a longer body", {"body": b'{"n":1} '}), ("no body", {"body": b""}), ("another method", {"method": "PUT"}),
          ("another path", {"path": "/h/pay/?x=1"}), ("a path in capitals", {"path": "/h/PAY?x=1"}), ("another query", {"path": "/h/pay?x=2"}),
          ("a query more", {"path": "/h/pay?x=1&x=1"}), ("no query", {"path": "/h/pay"}), ("another type", {"fields": ["Content-Type: application/json; charset=x", "X-Api: 1", "Accept: a/b"]}),
          ("another field", {"fields": ["Content-Type: application/json", "X-Api: 2", "Accept: a/b"]}), ("a field more", {"fields": ["Content-Type: application/json", "X-Api: 1", "Accept: a/b", "X-More: 1"]}),
          ("a field twice", {"fields": ["Content-Type: application/json", "X-Api: 1", "X-Api: 1", "Accept: a/b"]}), ("a field less", {"fields": ["Content-Type: application/json", "Accept: a/b"]}),
          ("a coding", {"fields": ["Content-Type: application/json", "X-Api: 1", "Accept: a/b", "Content-Encoding: identity"]})]
FIELDS = ["Content-Type: application/json", "X-Api: 1", "Accept: a/b"]


def write(wire, method="POST", path="/h/pay?x=1", fields=FIELDS, body=b'{"n":1}'):
    return wire.head(method, path.replace("/h/", f"/h/{wire.transport}/"), *fields, f"Content-Length: {len(body)}") + body


@everywhere("E2 E29", TUNNELS, hold="inline_wait: 0s, expires: 2h, pending: 1000")
def a_yes_is_to_these_bytes_alone(rig, transport):
    known, wire = all_of(rig), rig.open(transport)
    rig.held("E2 asked", wire.talk(write(wire), 1))
    ticket = newest(rig, known)
    for _ in range(3):
        rig.held("E29 a retry", rig.open(transport).talk(write(wire), 1))
    rig.holds("E29 is the same ticket", all_of(rig) == known)
    rig.gw.approve(ticket)
    for what, change in VARIED:
        got = rig.open(transport).talk(write(wire, **change), 1)
        rig.stopped(f"E2 {what}", got)
        assert ticket.encode() not in got.data, (what, got)
    mine = "socks" if transport == "socks" else "unix" if transport in ("unix", "captured") else "connect"
    rig.held("E2 another sandbox", rig.open(mine, who="stranger").talk(write(wire), 1))
    rig.holds("E2 the yes is still for it alone", rig.gw.show(ticket)["state"] == "approved")
    again = ["accept: a/b", "X-API: 1", "content-TYPE: application/json"]  # the same, said otherwise
    new = rig.passed("E2 the bytes first held", rig.open(transport).talk(write(wire, fields=again), 1), [("POST", f"/h/{transport}/pay?x=1", b'{"n":1}')])
    order = [n for n, _ in new[0]["fields"] if n.lower() in ("content-type", "x-api", "accept")]
    rig.holds("E2 as they were shown", order == ["Content-Type", "X-Api", "Accept"], new[0]["fields"])
    rig.lab.wait_for("the ledger to hear of its end", lambda: rig.gw.show(ticket)["state"] == "done")
    got = rig.open(transport).talk(write(wire), 1)
    rig.held("E2 once", got)
    assert ticket.encode() not in got.data, got


@everywhere("E5", TUNNELS, hold=LONG, cut=True)
def what_may_have_been_done_is_not_done_again(rig, transport):
    rig.lab.leaves("unknown")
    for how in ("/drop", "/reset", "/drophead"):
        known, wire, path = all_of(rig), rig.open(transport), f"/h{how}-{transport}"
        rig.up.script({f"POST {path}": how})
        data = wire.head("POST", path, "Content-Length: 3") + b"n=1"
        wire.sock.sendall(wire.fill(data))
        ticket = newest(rig, known)
        rig.gw.approve(ticket)
        got = wire.talk(b"", 1)
        rig.holds(f"E5 {how} is an error to who asked", got.closed or got.status[:1] in ([409], [502], [504]), got)
        state = rig.lab.wait_for("its end", lambda: (lambda s: s if s not in ("approved", "executing") else None)(rig.gw.show(ticket)["state"]))
        new = rig.arrived()
        rig.holds(f"E5 {how} once, and said so", [r["target"] for r in new] == [path] and state == "unknown", (state, new))
        wire.close()
        again = rig.open(transport)
        again.sock.sendall(again.fill(data))
        second = newest(rig, known)
        rig.holds(f"E5 {how} asked again is asked anew", second != ticket and not rig.arrived())
        rig.gw.deny(second, "no")
        again.talk(b"", 1)
        again.close()


def together(*jobs):
    """All of them at the same moment; what each gave."""
    got, start = [None] * len(jobs), threading.Barrier(len(jobs))

    def run(n, job):
        start.wait()
        got[n] = job()
    threads = [threading.Thread(target=run, args=one) for one in enumerate(jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return got


class Life:
    """One write and what became of it: how often it was let through, refused, and left."""

    def __init__(self, rig, n, dice):
        self.rig, self.dice, self.path = rig, dice, f"/h/life{n}"
        self.data = lambda wire: wire.head("POST", self.path, "Content-Length: 3") + b"n=1"
        self.tickets, self.yes, self.no, self.wires = {}, {}, {}, []

    def send(self):
        wire = self.rig.open(self.dice.choice(("connect", "unix")), who="racer")
        wire.sock.sendall(wire.fill(self.data(wire)))
        self.wires.append(wire)
        self.see()

    def see(self):
        for row in self.rig.gw.control("GET", "/api/v1/tickets?state=&limit=500")[1]["tickets"]:
            if row["path"] == self.path:
                self.tickets[row["id"]] = row["digest"]

    def act(self, what):
        """A function that does it to the newest ticket, and counts."""
        if not self.tickets:
            return lambda: None
        ticket = sorted(self.tickets)[-1] if what != "old" else self.dice.choice(sorted(self.tickets))
        verdict = "deny" if what == "deny" else "approve"

        def go():
            status, _ = self.rig.gw.control("POST", f"/api/v1/tickets/{ticket}/{verdict}", {"digest": self.tickets[ticket], "reason": "as it is"})
            if status == 200:
                counts = self.yes if verdict == "approve" else self.no
                counts[ticket] = counts.get(ticket, 0) + 1
        return go

    def leave(self):
        for wire in self.wires:
            wire.sock.close()
        self.wires = []


def settled(rig, life):
    """What must hold of it at any time: one yes at most that counted for each ticket, and no more effects than those."""
    sent = sum(r["target"] == life.path and r["complete"] for r in rig.requests())
    life.see()
    done = 0
    for ticket in life.tickets:
        state = rig.gw.show(ticket)["state"]
        yes, no = life.yes.get(ticket, 0), life.no.get(ticket, 0)
        assert yes <= 1 and no <= 1, (ticket, yes, no)
        assert yes or state not in ("approved", "executing", "done", "unknown", "failed"), (ticket, state)
        assert not no or state in ("denied", "cancelled"), (ticket, state, "a no that was taken stands")
        done += state in ("done", "unknown", "executing")
    assert sent <= sum(life.yes.values()) and sent <= done, (life.path, sent, life.yes, done)
    return sent


@test("E3 races", "E4 races", "E40 races")
def however_two_approvers_clients_and_restarts_meet(lab):
    lab.leaves("pending", "approved", "unknown", "executing")
    rig, dice = Rig(lab, hold=SHORT), random.Random(14)
    rig.listener("run-racer")
    sent = denied = 0
    for n in range(24):
        life = Life(rig, n, dice)
        life.send()
        for _ in range(6):
            doing = [life.act(dice.choice(("approve", "approve", "approve", "deny", "old"))) for _ in range(dice.randint(1, 3))]
            doing += [dice.choice((life.send, life.leave, rig.reload, life.send, lambda: None))]
            together(*doing)
            settled(rig, life)
        life.leave()
        sent, denied = sent + settled(rig, life), denied + sum(life.no.values())
    assert sent > 5 and denied > 5, f"{sent} sent, {denied} refused: it does not try both"
    assert rig.gw.cli("audit", "verify").rc == 0


@test("E4 kills", "E7 kills", "E40 kills")
def a_yes_at_the_moment_of_an_end_is_one_or_none(lab):
    lab.leaves("pending", "approved", "unknown", "executing")
    rig, dice = Rig(lab, hold=SHORT), random.Random(41)
    for n, role in enumerate(("ledger", "judge", "desk", "carrier", "ledger", "judge")):
        life = Life(rig, n, dice)
        life.send()
        lab.wait_for("a ticket", lambda life=life: (life.see(), life.tickets)[1])
        ticket = next(iter(life.tickets))

        def approve(life=life):
            try:
                life.act("approve")()
            except (OSError, ValueError, IndexError):
                pass  # it was killed meanwhile: what became of the yes is seen below
        together(approve, lambda role=role: rig.gw.kill(role))
        life.leave()
        state = lab.wait_for("its state", lambda ticket=ticket: rig.gw.show(ticket)["state"])
        sent = sum(r["target"] == life.path and r["complete"] for r in rig.requests())
        assert sent <= 1 and (not sent or state in ("done", "unknown", "executing", "failed")), (role, sent, state)
        assert state in ("pending", "approved", "executing", "done", "unknown", "failed"), (role, state)
    assert rig.gw.cli("audit", "verify").rc == 0


@test("E4 expiry")
def a_yes_at_the_end_of_its_time_is_in_time_or_too_late(lab):
    lab.leaves("approved")
    rig = Rig(lab, hold=SHORT)
    rig.gw.policy.write_text(rig.gw.policy.read_text().replace("within: 2h", "within: 1s"))
    rig.reload()
    known, seen = all_of(rig), set()
    for n in range(12):
        wire = rig.open("unix", who="late")
        wire.sock.sendall(wire.fill(wire.head("POST", f"/h/late{n}", "Content-Length: 3") + b"n=1"))
        ticket = newest(rig, known)
        row = rig.gw.show(ticket)
        pause = threading.Event()
        pause.wait(max(0, 0.86 + n * 0.025 - 0.05))  # around the end of that second
        status, _ = rig.gw.control("POST", f"/api/v1/tickets/{ticket}/approve", {"digest": row["digest"]})
        if n % 3 == 0:
            wire.sock.close()
        else:
            wire.talk(b"", 1)
        state = lab.wait_for("its end", lambda ticket=ticket: (lambda s: s if s in ("expired", "done", "failed") else None)(rig.gw.show(ticket)["state"]))
        sent = sum(r["target"] == f"/h/late{n}" for r in rig.requests())
        assert (status == 200) >= (state == "done") and sent == (state == "done"), (n, status, state, sent)
        seen.add(state == "expired")
        wire.close()
    assert rig.gw.cli("audit", "verify").rc == 0


@test("E8 ids")
def ids_say_nothing_of_each_other(lab):
    lab.leaves("pending")
    rig = Rig(lab)
    wire = rig.open("unix", who="a")
    for n in range(40):
        rig.held("one", wire.talk(wire.head("POST", f"/h/{n}", "Content-Length: 1") + b"x", 1))
    before = all_of(rig)
    rig.gw.stop()
    rig.gw.up()
    rig.listeners = {}
    wire = rig.open("unix", who="b")
    for n in range(24):
        rig.held("one", wire.talk(wire.head("POST", f"/h/{n}", "Content-Length: 1") + b"x", 1))
    ids = all_of(rig)
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    numbers = [sum(alphabet.index(c) << (5 * k) for k, c in enumerate(reversed(i))) >> 2 for i in ids]
    assert before < ids and len(ids) == 64 and all(len(i) == 26 for i in ids), ids
    for bit in range(128):  # each is set in about half of them: nothing is a clock, a counter or a version
        share = sum(n >> bit & 1 for n in numbers)
        assert 8 <= share <= 56, (bit, share)
    status, said = rig.gw.control("GET", f"/api/v1/tickets/{'0' * 26}")
    wrong, other = sorted(ids)[0], None
    for k in range(26):  # one letter away from a real one is as unknown as any
        near = wrong[:k] + alphabet[(alphabet.index(wrong[k]) + 4) % 32] + wrong[k + 1:]
        got, text = rig.gw.control("GET", f"/api/v1/tickets/{near}")
        other = other or text
        assert got == status == 404 and json.dumps(text).replace(near, "") == json.dumps(said).replace("0" * 26, ""), (got, text, said)


main()
