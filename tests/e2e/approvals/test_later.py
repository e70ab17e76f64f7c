#!/usr/bin/env python3
"""Approve and execute later: a client that says Prefer: respond-async is told 202 and where to ask; the gateway sends
what was approved itself, once, across restarts, by the policy of that moment, and keeps the answer."""
import json
import os
import re
import secrets
import signal
import sqlite3

from room import command, setup, words
from gateway import NOT_RELEASED, Gateway, Page, simple_policy
from harness import PATIENCE, main, test

LATER = ("-H", "Prefer: respond-async")
INSIDE = "http://countersign.internal/v1/tickets/"
ENDED = {"done", "failed", "unknown", "denied", "expired", "cancelled"}


def ask(lab, gw, url, name="agent"):
    """(status, head, body) of what a sandbox asks of itself."""
    told = lab.run(["curl", "-sS", "--max-time", str(PATIENCE), "-D", "-", url], env=gw.client_env(name), rc=0).out
    head, _, body = told.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body


def status(lab, gw, ticket):
    code, _, body = ask(lab, gw, INSIDE + ticket)
    assert code == 200, body
    return json.loads(body)


def begin(lab, gw, up, path="/things", *more, name="agent"):
    """A request that nobody waits for: its ticket."""
    told, env = command(gw, up, path, *LATER, "--data-binary", "a=1", *more, name=name)
    out = lab.run(told, env=env, rc=0).out.decode()
    head, body = re.search(r"(HTTP/1\.1 202.*?)\r\n\r\n(.*)", out, re.S).groups()
    said = json.loads(body)
    assert f"Location: {INSIDE}{said['ticket']}" in head and "Preference-Applied: respond-async" in head, head
    assert said["status_url"] == INSIDE + said["ticket"] and "type" not in said and "error" not in said, said
    return said["ticket"]


def ended(lab, gw, ticket):
    return lab.wait_for("its end", lambda: next((s for s in [status(lab, gw, ticket)] if s["state"] in ENDED), None))


@test("E30 asked-later")
def what_nobody_waits_for_is_sent_once_it_is_approved(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    up.script({"POST /things": "/echo?only=authorization"})
    ticket = begin(lab, gw, up)
    assert status(lab, gw, ticket)["sent_by_gateway"] is True and status(lab, gw, ticket)["state"] == "pending"
    assert ask(lab, gw, f"{INSIDE}{ticket}/answer")[0] == 404, "there is none yet"
    assert gw.show(ticket)["client"]["later"] is True
    page = words(Page(gw).ask("GET", f"/tickets/{ticket}")[1].decode())
    assert "Nobody need wait: after a yes the gateway sends this itself, once, and keeps the answer for the agent." in page
    gw.approve(ticket)
    said = ended(lab, gw, ticket)
    assert said["state"] == "done" and up.effects() == {"POST /things": 1}, (said, up.effects())
    assert ask(lab, gw, INSIDE + ticket, "other")[0] == 404, "a neighbour's looks like none"
    assert ask(lab, gw, f"{INSIDE}{ticket}/answer", "other")[0] == 404
    for _ in range(2):  # as often as it likes, for ten minutes
        code, head, body = ask(lab, gw, said["answer"])
        assert code == 200 and set(body) == {ord("*")} and "Countersign" not in head, (code, body)  # it was the credential
    assert begin(lab, gw, up) != ticket, "its answer was had: the same request is another one"
    assert up.effects() == {"POST /things": 1}
    sent = gw.recorded(kind="intent", ticket=ticket)
    assert len(sent) == 1 and sent[0]["later"] is True, sent


@test("E30 asked-later")
def a_denial_is_told_where_it_is_asked_for(lab):
    up, gw = setup(lab)
    ticket = begin(lab, gw, up)
    gw.deny(ticket, "Not on a Friday.")
    said = status(lab, gw, ticket)
    assert said["state"] == "denied" and said["words"] == "Not on a Friday.", said
    told, env = command(gw, up, "/things", *LATER, "--data-binary", "a=1")
    assert b"HTTP/1.1 403" in lab.run(told, env=env, rc=0).out, "the same words, and not once more 202"
    assert up.effects() == {}


@test("E30 asked-later")
def who_would_wait_a_little_gets_the_answer_if_it_comes_by_then(lab):
    up, gw = setup(lab)
    told, env = command(gw, up, "/things", "-H", "Prefer: wait=60, respond-async", "--data-binary", "a=1")
    agent = lab.start(told, env=env)
    ticket = gw.pending()["id"]
    gw.approve(ticket)
    assert agent.wait() == 0 and b"HTTP/1.1 200" in agent.seen, agent.seen
    assert up.effects() == {"POST /things": 1}


@test("F36 later")
def what_is_too_long_to_be_kept_is_not_taken_to_its_end(lab):
    """Else an answer without an end would have its place for ever."""
    up, gw = setup(lab)
    up.script({"POST /things": "/big?kib=512&chunk=300000&gate=rest"})  # the rest never comes
    ticket = begin(lab, gw, up)
    gw.approve(ticket)
    said = ended(lab, gw, ticket)
    assert said["state"] == "done" and "answer" not in said and up.effects() == {"POST /things": 1}, said
    up.release("rest")


@test("E6 asked-later", "E30 restart")
def it_outlives_a_restart_and_waits_for_a_thaw(lab):
    up, gw = setup(lab)
    ticket = begin(lab, gw, up)
    gw.cli("freeze", rc=0)
    gw.approve(ticket)
    assert status(lab, gw, ticket)["state"] == "approved"
    gw.process.signal(signal.SIGKILL)
    gw.process.wait()
    gw.up()
    assert up.effects() == {} and status(lab, gw, ticket)["state"] == "approved"
    gw.cli("thaw", rc=0)
    assert ended(lab, gw, ticket)["state"] == "done" and up.effects() == {"POST /things": 1}
    assert ask(lab, gw, f"{INSIDE}{ticket}/answer")[0] == 200


@test("E5 asked-later")
def the_policy_of_the_moment_it_is_sent_wins(lab):
    up, gw = setup(lab)
    ticket = begin(lab, gw, up)
    gw.cli("freeze", rc=0)
    gw.approve(ticket)
    gw.policy.write_text(simple_policy(up, write="deny"))
    gw.cli("reload", rc=0)
    gw.cli("thaw", rc=0)
    said = ended(lab, gw, ticket)
    assert said["state"] == "cancelled" and up.effects() == {}, said


@test("F15 later")
def what_provably_was_not_sent_is_tried_again(lab):
    lab.expects(NOT_RELEASED)
    up = lab.upstream()
    gw = Gateway(lab, simple_policy(up))
    ticket = begin(lab, gw, up)
    gw.approve(ticket)
    said = lab.wait_for("a try", lambda: next((s for s in [status(lab, gw, ticket)] if s.get("tries")), None))
    assert said["state"] == "approved" and up.effects() == {}, said
    gw.cli("secret", "set", "api", stdin=lab.canary(secrets.token_urlsafe(32)).encode(), rc=0)
    assert ended(lab, gw, ticket)["state"] == "done" and up.effects() == {"POST /things": 1}


class Write:
    """One that nobody waits for, stopped at a named point of approve, execute, answer."""

    def __init__(self, lab):
        self.lab, (self.up, self.gw), self.stopped = lab, setup(lab), []
        self.ticket = begin(lab, self.gw, self.up)

    def stored(self, query):
        """What the store says, asked beside everybody: it answers also while roles are stopped or gone."""
        store = sqlite3.connect(f"file:{self.gw.state}/store/ledger.db?mode=ro", uri=True, timeout=PATIENCE)
        try:
            return store.execute(query).fetchall()
        finally:
            store.close()

    def freeze(self, role):
        pid = self.gw.pid(role)
        self.lab.stops(pid)
        self.stopped.append(pid)

    def thaw(self):
        self.up.script({})
        self.up.release("answer")
        for pid in self.stopped:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

    def reach(self, point):
        if point == "APPROVED":  # the judge is told of it, and has not heard it
            self.freeze("judge")
        elif point == "CLAIMED":
            self.freeze("carrier")
        elif point in ("SENT", "RESULT"):
            self.up.script({"POST /things": "/slow?gate=answer"})
        self.gw.approve(self.ticket) if point != "APPROVED" else self.lab.start(
            ["countersign", "approvals", "approve", self.ticket], env={"COUNTERSIGN_STATE": self.gw.state, "PATH": os.environ["PATH"]})
        if point == "APPROVED":
            self.lab.wait_for("the approval", lambda: self.stored("SELECT 1 FROM ticket WHERE state='approved'"))
        if point in ("CLAIMED", "SENT", "RESULT"):
            self.lab.wait_for("the claim", lambda: self.stored("SELECT 1 FROM effect"))
        if point in ("SENT", "RESULT"):
            self.lab.wait_for("the first byte", lambda: self.stored("SELECT 1 FROM effect WHERE state='sent'"))
            self.lab.wait_for("the effect", lambda: self.up.effects().get("POST /things"))
        if point == "RESULT":
            self.freeze("ledger")
            self.up.script({})
            self.up.release("answer")
        if point == "ANSWER":
            assert ended(self.lab, self.gw, self.ticket)["state"] == "done"


def killed(role, point):
    def run(lab):
        lab.leaves("unknown")
        w = Write(lab)
        w.reach(point)
        if role == "parent":
            w.gw.process.signal(signal.SIGKILL)
            w.gw.process.wait()
            w.thaw()
            w.gw.up()
        else:
            old = w.gw.pid(role)
            lab.kills(old)
            w.thaw()
            lab.wait_for(f"another {role}", lambda: w.gw.pid(role) not in (None, old))
            lab.wait_for("the control socket", lambda: w.gw.cli("status").rc == 0)
        lab.wait_for("its end", lambda: w.stored("SELECT 1 FROM ticket WHERE ended_ms IS NOT NULL"))
        said, count = status(lab, w.gw, w.ticket), w.up.effects().get("POST /things", 0)
        assert said["state"] in ("done", "unknown") and count <= 1, (said, count)
        if said["state"] == "done":
            assert count == 1, "done, but nothing was sent"
            if "answer" in said:
                assert ask(lab, w.gw, said["answer"])[0] == 200
        else:
            assert "nobody here knows whether it took effect" in said["detail"], said
        if point == "ANSWER":
            assert "answer" in said, "it is kept over the end of anybody"
        assert w.gw.cli("audit", "verify").rc == 0
        print(f"# {said['state']}, {count} sent")
    run.__name__ = f"kill_{role}_at_{point}"
    return run


for role in ("ledger", "judge", "carrier", "parent"):
    for point in ("APPROVED", "CLAIMED", "SENT", "RESULT"):
        test(f"F13 later-{role}-{point}")(killed(role, point))
test("F13 later-parent-ANSWER")(killed("parent", "ANSWER"))
test("F13 later-keeper-CLAIMED")(killed("keeper", "CLAIMED"))

main()
