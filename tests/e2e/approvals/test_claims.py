#!/usr/bin/env python3
"""Who says that they are looking at a ticket: told to the others, for a while, and nothing is decided by it."""
import json
import re
import sqlite3

from room import Person, forms, send, setup, start, words
from gateway import simple_policy
from harness import PATIENCE, main, test

LEADS = "approvers:\n  leads: { groups: [leads] }\n"


def added(gw, name, *more):
    return Person(gw, link=gw.cli_json("operator", "add", name, *more)["url"])


def press(person, ticket):
    """The form that says it, from the page as it is now."""
    form = forms(person.get(f"/tickets/{ticket}"))["claim"]

    def again():
        status, text = send(person, form)
        return None if "Too fast" in text else (status, text)
    return person.lab.wait_for("the form is armed", again)


@test("E3 claimed")
def it_is_told_taken_over_and_decides_nothing(lab):
    up, gw = setup(lab)
    gw.policy.write_text(simple_policy(up).replace("approve: { within: 2h }", "approve: { within: 2h, by: leads }").replace("rules:\n", LEADS + "rules:\n"))
    gw.cli("reload", rc=0)
    alice, bob, carol = added(gw, "alice", "--group", "leads"), added(gw, "bob", "--group", "leads"), added(gw, "carol")
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    assert "Nobody has said" in words(alice.get(f"/tickets/{ticket}"))
    assert press(alice, ticket)[0] == 303
    assert "You are looking at this" in words(alice.get(f"/tickets/{ticket}"))
    seen = words(bob.get(f"/tickets/{ticket}"))
    assert "alice is looking at this" in seen and "What you decide counts all the same" in seen and "Take it over" in seen, seen
    assert "alice is looking" in words(bob.get("/"))
    claim = gw.show(ticket)["claim"]
    assert claim["by"] == "alice" and claim["until_ms"] - claim["since_ms"] == 600000, claim
    assert "pending, alice" in gw.cli("approvals", "list", rc=0).out.decode()
    assert press(carol, ticket)[0] == 403, "who may not approve it keeps nobody away"
    assert press(bob, ticket)[0] == 303 and gw.show(ticket)["claim"]["by"] == "bob"
    form = forms(bob.get(f"/tickets/{ticket}"))["claim"]
    forged = (form[0], [(n, "take" if n == "act" else v) for n, v in form[1]])
    assert send(alice, forged)[0] == 403 and send(bob, forged)[0] == 403, "a mark is of one act and one person"
    said = [(r["kind"], r["by"], r.get("from")) for r in gw.audit() if "claimed" in r["kind"]]
    assert said == [("ticket-claimed", "alice", None), ("ticket-claimed", "bob", "alice")], said
    assert alice.approve(ticket)[0] == 303, "it warns; it does not block"
    assert agent.wait() == 0 and up.effects() == {"POST /things": 1}
    assert "claim" not in gw.show(ticket)


@test("E3 claimed")
def at_the_terminal_and_never_against_a_no(lab):
    up, gw = setup(lab)
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    person = added(gw, "alice")
    assert press(person, ticket)[0] == 303
    done = gw.cli("approvals", "claim", ticket)
    assert done.rc == 1 and b"alice" in done.err and b"taken over" in done.err, done.text()
    done = gw.cli("approvals", "unclaim", ticket)
    assert done.rc == 1 and b"alice" in done.err, done.text()
    done = gw.cli("approvals", "claim", ticket, "--take", rc=0)
    assert b"is looked at by you, taken over from alice: the others see it for 10 minutes" in done.out, done.text()
    before = len(gw.audit())
    gw.cli("approvals", "claim", ticket, rc=0)
    assert len(gw.audit()) == before, "said again at once it is written down once"
    assert b"looked at by uid" in gw.cli("audit", "tail", "-n", "3", rc=0).out
    gw.cli("approvals", "unclaim", ticket, rc=0)
    assert gw.cli("approvals", "unclaim", ticket).rc == 1 and "claim" not in gw.show(ticket)
    assert press(person, ticket)[0] == 303
    store = sqlite3.connect(gw.state / "store/ledger.db", timeout=PATIENCE)
    store.execute("UPDATE looking SET looks_since_ms=looks_since_ms-600001, looks_until_ms=looks_until_ms-600001")
    store.commit()
    store.close()
    assert "claim" not in gw.show(ticket) and "Nobody has said" in words(person.get(f"/tickets/{ticket}"))  # ten minutes later
    gw.cli("approvals", "claim", ticket, rc=0)
    gw.deny(ticket, "no")  # of alice's or anybody's claim a no knows nothing
    agent.wait_line("Denied by")
    agent.wait()
    done = gw.cli("approvals", "claim", ticket)
    assert done.rc == 1 and b"not pending any more" in done.err, done.text()
    assert up.effects() == {}


@test("E3 claimed")
def a_claim_is_live_and_outlives_a_restart(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    watching = lab.start(["curl", "-sSN", "--unix-socket", gw.state / "control.sock", "http://x/api/v1/events"], ready="hello")
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    gw.cli("approvals", "claim", ticket, rc=0)
    seen = watching.wait_line(r"event: asker\ndata: (\{[^\n]*%s[^\n]*\})[\s\S]*event: asker\ndata: (\{[^\n]*%s[^\n]*\})" % (ticket, ticket))
    assert json.loads(seen[2])["subject"] == ticket
    gw.stop()
    agent.wait()
    gw.up()
    assert re.match(r"uid \d+$", gw.show(ticket)["claim"]["by"])
    assert gw.cli("audit", "verify").rc == 0


main()
