#!/usr/bin/env python3
"""kill -9 of each role at each point of a held write: it ends in done, refused or unknown, the upstream has seen
it at most once, and no ticket is lost. The upstream that counts is the oracle."""
import os
import secrets
import signal
import sqlite3

from gateway import ROLES, Gateway, simple_policy
from harness import PATIENCE, main, test

POINTS = ("HOLD", "INTENT", "SENT", "RESULT")
ENDED = {"done", "failed", "unknown", "denied", "expired", "cancelled"}
CURL = ["curl", "-sS", "--max-time", str(PATIENCE), "--suppress-connect-headers", "-D", "-"]


def stored(gw, query):
    """What the store says, asked beside everybody: it answers also while roles are stopped or gone."""
    store = sqlite3.connect(f"file:{gw.state}/store/ledger.db?mode=ro", uri=True, timeout=PATIENCE)
    try:
        return store.execute(query).fetchall()
    finally:
        store.close()


class Write:
    """One POST on its way, stopped at a named point."""

    def __init__(self, lab):
        self.lab, self.up = lab, lab.upstream()
        self.gw = Gateway(lab, simple_policy(self.up), {"api": lab.canary(secrets.token_urlsafe(32)).encode()},
                          hold="inline_wait: 10s, expires: 2h")
        self.env = self.gw.client_env()
        self.url = f"https://{self.up.name}:{self.up.port}"
        self.post = [*CURL, "--data-binary", "pay=1", self.url + "/pay"]
        self.stopped = []

    def freeze(self, pid):
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
        self.stopped = []

    def reach(self, point):
        self.lab.run([*CURL, self.url + "/ok"], env=self.env, rc=0)
        self.client = self.lab.start(self.post, env=self.env)
        self.lab.wait_for("a ticket", lambda: stored(self.gw, "SELECT 1 FROM ticket WHERE state='pending'"))
        self.ticket = self.gw.tickets()[0]["id"]
        if point == "HOLD":
            return
        if point in ("INTENT", "UNMARKED"):
            self.freeze(self.gw.pid("carrier"))
        else:  # all of the write arrives, and no answer comes
            self.up.script({"POST /pay": "/slow?gate=answer"})
        self.gw.approve(self.ticket)
        self.lab.wait_for("the intent", lambda: stored(self.gw, "SELECT 1 FROM effect"))
        if point == "UNMARKED":
            self.leave_unmarked()
        if point in ("SENT", "RESULT"):
            self.lab.wait_for("the first byte", lambda: stored(self.gw, "SELECT 1 FROM effect WHERE state='sent'"))
        if point == "RESULT":
            self.lab.wait_for("the effect", lambda: self.up.effects().get("POST /pay"))
            self.freeze(self.gw.pid("ledger"))
            self.up.script({})
            self.up.release("answer")

    def leave_unmarked(self):
        """All of the write has left and was answered, and no mark of its first byte is on disk: nor will one be."""
        carrier = self.gw.pid("carrier")
        self.lab.wait_for("the word to send it", lambda: self.gw.unread(carrier))
        self.freeze(self.gw.pid("ledger"))
        os.kill(carrier, signal.SIGCONT)
        self.lab.wait_for("the effect", lambda: self.up.effects().get("POST /pay"))
        assert stored(self.gw, "SELECT state FROM effect") == [("intent",)]

    def repeat(self):
        """The agent repeats itself, as it was told to; a further ticket is not approved by anyone."""
        again = self.lab.start(self.post, env=self.env)
        self.lab.wait_for("the repeated request's end", lambda: again.popen.poll() is not None or
                          len(stored(self.gw, "SELECT id FROM ticket")) > 1)
        again.stop()

    def state(self):
        return next((t["state"] for t in self.gw.tickets("all") if t["id"] == self.ticket), "lost")


def scenario(role, point):
    def run(lab):
        lab.leaves("pending", "unknown")  # what is repeated is held again
        w = Write(lab)
        w.reach(point)
        if role == "parent":
            w.gw.process.signal(signal.SIGKILL)
            w.gw.process.wait()
            w.thaw()
            w.gw.up()
            w.env.update(w.gw.client_env())
        else:
            old = w.gw.pid(role)
            lab.kills(old)
            w.thaw()
            if role != "front":
                lab.wait_for(f"another {role}", lambda: w.gw.pid(role) not in (None, old))
                lab.wait_for("the control socket", lambda: w.gw.cli("status").rc == 0)
        if point == "HOLD":
            w.gw.approve(w.ticket)
        w.client.wait(15)
        w.repeat()
        state = lab.wait_for("an end", lambda: w.state() if w.state() in ENDED else None)
        count = w.up.effects().get("POST /pay", 0)
        assert count <= 1, f"{count} effects, ticket {state}"
        assert state != "done" or count == 1, "done, but nothing was sent"
        assert not (count == 1 and state in ("failed", "denied", "expired", "cancelled")), f"sent, but {state}"
        assert w.gw.cli("audit", "verify").rc == 0
        # And nothing of it stands in the way of the next request.
        assert b" 200" in lab.run([*CURL, w.url + "/ok"], env=w.env, rc=0).out
        print(f"# {state}, {count} sent; the client: {w.client.seen.splitlines()[:1]}")
    run.__name__ = f"kill_{role}_at_{point}"
    return run


for role in (*ROLES, "front", "parent"):
    for point in POINTS:
        test("F13 " + f"{role}-{point}")(scenario(role, point))
for role in ("carrier", "judge", "ledger", "parent"):
    test("F13 " + f"{role}-UNMARKED")(scenario(role, "UNMARKED"))


@test("F15 outcome")
def an_outcome_on_its_way_to_a_ledger_that_dies_is_not_lost(lab):
    w = Write(lab)
    w.reach("RESULT")
    old = w.gw.pid("ledger")
    assert w.client.wait() == 0 and b" 200" in w.client.seen, w.client.seen
    lab.wait_for("the outcome", lambda: w.gw.unread(old))
    lab.kills(old)
    lab.wait_for("what came of it", lambda: w.gw.cli("status").rc == 0 and w.state() == "done")
    said = [r["outcome"] for r in w.gw.recorded(kind="result", path="/pay")]
    assert said == ["answered"] and w.up.effects()["POST /pay"] == 1, said
    assert w.gw.cli("audit", "verify").rc == 0


@test("F15 ledger-return")
def a_ledger_that_ended_is_back_by_itself(lab):
    up = lab.upstream()
    gw = Gateway(lab, simple_policy(up), {"api": lab.canary(secrets.token_urlsafe(32)).encode()})
    env = gw.client_env()
    ask = ["curl", "-sS", "--suppress-connect-headers", "-D", "-", f"https://{up.name}:{up.port}/ok"]
    assert b" 200" in lab.run(ask, env=env, rc=0).out
    lab.kills(gw.pid("ledger"))
    lab.run(ask, env=env)
    lab.wait_for("the ledger's return", lambda: b" 200" in lab.run(ask, env=env).out)


if __name__ == "__main__":
    main()
