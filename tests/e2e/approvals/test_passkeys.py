#!/usr/bin/env python3
"""Passkeys: added with a link, to sign in, and to say yes to one very request, which the keeper looks at before it gives out anything."""
import base64
import contextlib
import re
import sqlite3
import urllib.parse

from room import Person, command, forms, send, start, words
from gateway import Gateway, simple_policy
from harness import main, test
from authenticator import Passkey

PEOPLE = "approvers:\n  leads: { groups: [leads], step_up: passkey }\n"


def setup(lab):
    up = lab.upstream()
    secret = lab.canary("s3cret-" + up.name * 3)
    text = simple_policy(up).replace("approve: { within: 2h }", "approve: { within: 2h, by: leads }").replace("rules:\n", PEOPLE + "rules:\n")
    return up, Gateway(lab, text, {"api": secret.encode()})


def attributes(page, action):
    """Of the form that goes there: (its data- attributes, its hidden fields)."""
    head, inner = re.search(rf'<form([^>]*action="{re.escape(action)}"[^>]*)>(.*?)</form>', page, re.S).groups()
    return dict(re.findall(r'data-([a-z]+)="([^"]*)"', head)), dict(re.findall(r'name="([a-z]+)" value="([^"]*)"', inner))


def with_passkey(lab, gw, name, kind="es256", **wrong):
    """Somebody who was sent a link, and added a passkey behind it: (their browser, the passkey, what came of it)."""
    link = gw.cli_json("operator", "add", name, "--group", "leads")["url"]
    who = Person(gw, link=link)
    data, hidden = attributes(who.get("/me"), "/me/passkey")
    key = Passkey(who.origin, data["site"], kind)

    def sent():
        answer, text = who.ask("POST", "/me/passkey", urllib.parse.urlencode({"mark": hidden["mark"], "passkey": key.make(data["passkey"], **wrong)}))
        return None if b"Too fast" in text else (answer.status, text.decode())
    return who, key, lab.wait_for("the form is armed", sent)


def yes(lab, who, ticket, made):
    form = forms(who.get(f"/tickets/{ticket}"))["approve"]

    def sent():
        status, text = send(who, (form[0], [f for f in form[1] if f[0] != "passkey"]), passkey=made)
        return None if "Too fast" in text else (status, text)
    return lab.wait_for("the form is armed", sent)


def challenge(who, ticket):
    return attributes(who.get(f"/tickets/{ticket}"), f"/tickets/{ticket}/approve")[0]["passkey"]


@test("E26 passkey")
def a_passkey_is_added_with_a_link_and_signs_in(lab):
    up, gw = setup(lab)
    for kind in ("es256", "eddsa", "rs256"):
        who, key, done = with_passkey(lab, gw, kind, kind)
        assert done[0] == 303, done
        assert "a passkey since" in words(who.get("/me")) and "Add a passkey" not in who.get("/me"), "the link was used up"

        def sign_in(**wrong):
            page = Person(gw, name="nobody", password="x" * 12)
            data, hidden = attributes(page.get("/sign-in"), "/sign-in")
            return page.ask("POST", "/sign-in", urllib.parse.urlencode({"seed": hidden["seed"], "passkey": key.sign(data["passkey"], **wrong)}))[0].status
        assert sign_in() == 303
        assert sign_in(flags=0x01) == 403, "nobody was asked who is there"
        assert sign_in(origin="https://evil.example") == 403
        assert sign_in(crossOrigin=True) == 403
        key.count = 0
        assert sign_in() == 403, "a copy that counts anew"
    key.count = 100
    assert sign_in() == 303
    assert gw.control("DELETE", f"/api/v1/operators/{kind}")[0] == 204  # the keeper is not told
    status, said = gw.control("POST", "/api/v1/operators", {"name": kind})
    assert status == 201, said
    assert sign_in() == 403, "whoever has the name now has no passkey of another's"
    for wrong in ({"flags": 0x41}, {"origin": "https://evil.example"}, {"type": "webauthn.get"}):
        assert with_passkey(lab, gw, "x" + "".join(wrong), **wrong)[2][0] == 403, wrong


@test("E26 step-up")
def a_yes_needs_a_passkey_over_that_very_request(lab):
    up, gw = setup(lab)
    alice, key, done = with_passkey(lab, gw, "alice")
    assert done[0] == 303, done
    first, second = (start(lab, gw, up, f"/{n}", "--data-binary", f"a={n}") for n in (1, 2))
    tickets = {t["path"]: t["id"] for t in gw.pending(2)}
    one, two = tickets["/1"], tickets["/2"]
    done = gw.cli("approvals", "approve", one)
    assert done.rc != 0, "not in a terminal"
    assert yes(lab, alice, one, "")[0] == 422
    status, text = yes(lab, alice, one, key.sign(challenge(alice, two)))
    assert status == 403 and "about something else" in text, (status, words(text))
    assert gw.show(one)["state"] == "pending" and up.effects() == {}
    assert yes(lab, alice, one, key.sign(challenge(alice, one)))[0] == 303
    first.wait()
    assert up.effects() == {"POST /1": 1}
    record = gw.recorded(kind="ticket-decided", ticket=one)[0]
    assert record["passkey"] is True and record["by"] == "alice", record
    assert "with their passkey over this very request" in words(alice.get(f"/tickets/{one}"))
    gw.deny(two, "no")
    second.wait()


@test("E26 taken-over")
def a_desk_that_says_yes_by_itself_gets_no_credential(lab):
    """Whatever it writes of a vote in the store: the keeper asks for what the passkey signed."""
    up, gw = setup(lab)
    alice, key, done = with_passkey(lab, gw, "alice")
    assert done[0] == 303, done
    agent = start(lab, gw, up, "/1", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    agent.signal(9)
    agent.wait()
    other = key.sign(challenge(alice, ticket), flags=0x01).split(".")  # signed, and not as it must be
    gw.stop()
    with contextlib.closing(sqlite3.connect(gw.state / "store/ledger.db")) as db, db:
        blob = b"".join(len(p).to_bytes(4, "big") + p for p in map(unb64, other))
        db.execute("INSERT INTO vote VALUES (?,'alice','approved','page','passkey','',zeroblob(32),?,1,'')", (ticket, blob))
        db.execute("UPDATE ticket SET state='approved', decided_by='alice', decided_channel='page' WHERE id=?", (ticket,))
    gw.up()
    again, env = command(gw, up, "/1", "--data-binary", "a=1")
    lab.expects(r"passkeys|approval-not-proven")
    out = lab.run(again, env=env).out
    assert b"200 OK" not in out.split(b"\r\n\r\n", 1)[1] and up.effects() == {}, out


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


main()
