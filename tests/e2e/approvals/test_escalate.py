#!/usr/bin/env python3
"""Who is asked as well when nobody decides, and who decides in whose place: more people who may say yes, never fewer yeses.
Covers E26."""
import os
import re
import sqlite3

from room import Person, forms, send, start, words
from sinks import Hook, hook, key_of
from gateway import Gateway, simple_policy
from harness import PATIENCE, main, test

APPROVERS = ("approvers:\n  desk: { operators: [alice, dave] }\n  leads: { groups: [leads] }\n  all: { operators: [alice, carol] }\n"
             "rules:\n")


def setup(lab, approve, config="", stored=()):
    up = lab.upstream()
    secret = lab.canary("s3cret-" + up.name * 3)
    text = simple_policy(up).replace("approve: { within: 2h }", f"approve: {{ within: 2h, {approve} }}").replace("rules:\n", APPROVERS)
    gw = Gateway(lab, text, {"api": secret.encode()}, config=config)
    for name, value in dict(stored).items():
        gw.cli("secret", "set", name, stdin=value.encode(), rc=0)
    return up, gw


def added(gw, name, *more):
    return Person(gw, link=gw.cli_json("operator", "add", name, *more)["url"])


def press(person, path, kind, **fields):
    form = forms(person.get(path))[kind]

    def again():
        status, text = send(person, form, **fields)
        return None if "Too fast" in text else (status, words(text))
    return person.lab.wait_for("the form is armed", again)


@test("E26 escalation")
def others_are_asked_after_a_time_and_nothing_else_changes(lab):
    key, text = key_of(lab)
    sink = Hook(lab)
    lead = Hook(lab)
    config = "notify:\n" + "".join(f"  - {{ {t} }}\n" for t in (hook(sink.port), hook(lead.port, "lead", ", events: [escalated]")))
    up, gw = setup(lab, "by: desk, quorum: 2, escalate: { after: 1h, to: leads }", config, {"ops-key": text, "lead-key": text})
    alice, bob, carol = added(gw, "alice"), added(gw, "bob", "--group", "leads"), added(gw, "carol")
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    page = words(bob.get(f"/tickets/{ticket}"))
    assert "May be approved by desk Or by leads , asked as well from" in page.replace("leads,", "leads ,"), page
    assert bob.approve(ticket)[0] == 403, "their time has not come"
    gw.stop()
    agent.wait()
    gw.up()
    bob, alice, carol = (Person(gw, link=gw.cli_json("operator", "link", name)["url"]) for name in ("bob", "alice", "carol"))
    assert bob.approve(ticket)[0] == 403 and not gw.show(ticket)["escalate"][0]["since_ms"]
    store = sqlite3.connect(gw.state / "store/ledger.db", timeout=PATIENCE)
    store.execute("UPDATE escalation SET due_boot_ms=1")  # an hour later
    store.commit()
    store.close()
    lab.wait_for("others are asked", lambda: gw.show(ticket).get("escalated_ms"))
    told = sink.wait(1, lambda b: b["type"] == "ticket.escalated")[0][2]
    assert told["data"]["asked"] == "leads" and told["data"]["ticket"] == ticket, told
    assert [b["type"] for _, _, b, _ in lead.wait(1)] == ["ticket.escalated"], "who is told of that alone hears of nothing else"
    assert "pending, escalated" in gw.cli("approvals", "list", rc=0).out.decode()
    assert "asked as well since" in gw.cli("approvals", "show", ticket, rc=0).out.decode()
    page = words(bob.get(f"/tickets/{ticket}"))
    assert "asked as well since" in page and "for nobody had decided" in page, page
    assert "escalated" in words(bob.get("/"))
    assert carol.approve(ticket)[0] == 403, "who is in neither may not"
    assert bob.approve(ticket)[0] == 303
    assert gw.show(ticket)["state"] == "pending", "two must agree, as before"
    assert bob.approve(ticket)[0] == 409
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    assert alice.approve(ticket)[0] == 303
    assert agent.wait() == 0 and up.effects() == {"POST /things": 1}
    assert [r["to"] for r in gw.recorded(kind="ticket-escalated", ticket=ticket)] == ["leads"]
    assert gw.cli("audit", "verify").rc == 0


@test("E26 deputy")
def a_deputy_decides_in_ones_place_and_counts_once_with_them(lab):
    up, gw = setup(lab, "by: all, quorum: 2")
    alice, bob, carol = added(gw, "alice"), added(gw, "bob"), added(gw, "carol")
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    assert bob.approve(ticket)[0] == 403
    status, text = press(alice, "/me", "deputy-name", deputy="nobody", hours="5")
    assert status == 409 and "obody has the deputy's name" in text, text
    assert press(alice, "/me", "deputy-name", deputy="bob", hours="5")[0] == 303
    assert "bob decides in your place until" in words(alice.get("/me")) and "in the place of alice until" in words(bob.get("/me"))
    rows = gw.cli_json("operator", "deputies")["deputies"]
    assert [(r["for"], r["deputy"], r["until_ms"] - r["since_ms"]) for r in rows] == [("alice", "bob", 5 * 3600000)], rows
    assert "You approve in the place of" in words(bob.get(f"/tickets/{ticket}"))
    assert bob.approve(ticket, deputy_for="carol")[0] == 403, "of whom one is no deputy, one has no place"
    assert bob.approve(ticket, deputy_for="alice")[0] == 303
    assert "bob for alice" in words(alice.get(f"/tickets/{ticket}"))
    status, text = alice.approve(ticket)
    assert status == 409 and "counts once" in text, words(text)
    assert gw.show(ticket)["state"] == "pending" and up.effects() == {}, "two who stand for one another are one"
    assert gw.recorded(kind="ticket-agreed", ticket=ticket)[0]["for"] == "alice"
    assert "bob for alice" in gw.cli("audit", "tail", "-n", "5", rc=0).out.decode()
    assert carol.approve(ticket)[0] == 303
    assert agent.wait() == 0 and up.effects() == {"POST /things": 1}
    counted = gw.cli("approvals", "metrics", rc=0).out.decode()
    assert re.search(r'^countersign_approvals_total\{op="[^"]*",effect="write",decision="approved"\} 1$', counted, re.M), counted
    assert re.search(r'^countersign_approval_decision_seconds_bucket\{op="[^"]*",effect="write",le="\+Inf"\} 1$', counted, re.M), counted
    assert press(bob, "/me", "deputy-end")[0] == 303, "who does not want to need not"
    assert gw.cli_json("operator", "deputies")["deputies"] == []


@test("E26 deputy")
def what_is_ones_own_no_deputy_approves(lab):
    lab.leaves("pending")
    up, gw = setup(lab, "by: all")
    bob = added(gw, "bob")
    added(gw, "alice", "--uid", str(os.geteuid()))  # whose sandboxes these are
    done = gw.cli("operator", "deputy", "bob", "--for", "1h")
    assert done.rc == 0, done.text()
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    status, text = bob.approve(ticket, deputy_for="alice")
    assert status == 403 and "whose deputy you are" in words(text), words(text)
    gw.cli("operator", "no-deputy", "alice", rc=0)
    status, text = bob.approve(ticket)
    assert status == 403 and "names who may approve it" in words(text), words(text)
    assert gw.cli("operator", "deputy", "bob", "--for", "91d").rc != 0
    assert gw.cli("operator", "deputy", "bob").rc == 2
    assert gw.show(ticket)["state"] == "pending" and up.effects() == {}
    agent.signal(9)
    agent.wait()


main()
