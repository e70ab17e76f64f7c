#!/usr/bin/env python3
"""Held writes: approval, denial, expiry, retry, restart, and that what leaves is what was approved."""
import json
import re
import secrets
import sqlite3

from gateway import Gateway, Page, simple_policy
from harness import PATIENCE, main, test


def curl(gw, up, path, *more, name="agent"):
    return ["curl", "-sS", "--max-time", str(PATIENCE), "--suppress-connect-headers", "-D", "-", *more, f"https://{up.name}:{up.port}{path}"], gw.client_env(name)


def start_post(lab, gw, up, path, body):
    command, env = curl(gw, up, path, "-X", "POST", "-H", "Content-Type: application/json", "--data-binary", body)
    return lab.start(command, env=env)


def setup(lab, within="2h", **more):
    up = lab.upstream()
    secret = lab.canary(secrets.token_urlsafe(32))
    return up, secret, Gateway(lab, simple_policy(up, within=within), {"api": secret.encode()}, **more)


@test("INV4 connect")
def a_read_passes_with_the_credential_added_outside(lab):
    up, secret, gw = setup(lab)
    command, env = curl(gw, up, "/ok")
    done = lab.run(command, env=env, rc=0)
    assert b" 200 " in done.out, done.text()
    request = up.requests()[0]
    assert ["Authorization", f"Bearer {secret}"] in [list(f) for f in request["fields"]], request
    assert not any(n.lower().startswith(("proxy-", "x-forwarded", "via")) for n, _ in request["fields"])


@test("E1 connect", "INV1 connect")
def a_held_write_waits_and_passes_once_when_approved(lab):
    up, secret, gw = setup(lab)
    body = json.dumps({"n": 1, "text": "ä" * 100})
    client = start_post(lab, gw, up, "/things?x=1", body)
    ticket = gw.pending()
    assert up.effects() == {}, up.effects()
    downloaded = gw.cli("approvals", "show", ticket["id"], "--body", rc=0).out
    answer, from_page = Page(gw).ask("GET", f"/tickets/{ticket['id']}/body")
    assert answer.status == 200 and "attachment" in answer.getheader("Content-Disposition")
    gw.approve(ticket["id"])
    client.wait_line(r"HTTP/1.1 200")
    assert client.wait() == 0
    assert up.effects() == {"POST /things": 1}, up.effects()
    request = up.requests()[0]
    assert up.body(request["n"]) == body.encode() == downloaded == from_page
    assert request["line"].split(" ")[:2] == ["POST", "/things?x=1"] == [ticket["method"], ticket["path"] + "?" + ticket["query"]]
    # What the page showed is what came, but for the injected slot and the fields of the connection itself.
    own = {"host", "authorization", "content-length", "connection"}
    came = [(n, v) for n, v in request["fields"] if n.lower() not in own]
    shown = [(n, v) for n, v in ticket["fields"] if n.lower() not in own]
    assert sorted(came) == sorted(shown) and ("Content-Type", "application/json") in came, (came, shown)


@test("E6 connect")
def a_denial_says_the_operators_words(lab):
    up, secret, gw = setup(lab)
    client = start_post(lab, gw, up, "/things", "{}")
    ticket = gw.pending()["id"]
    gw.deny(ticket, "not on Fridays")
    client.wait_line(r"not on Fridays")
    client.wait()
    for how in ("approve", "deny"):  # who decided, and what that means now
        assert re.fullmatch(rf"countersign: {ticket[:10]} was denied by you at 20[-\d]+ [:\d]+: not on Fridays. That stands until 20[-\d]+ [:\d]+: "
                            r"after it, or changed, the request is asked anew\n", gw.cli("approvals", how, ticket, rc=1).err.decode())
    again = start_post(lab, gw, up, "/things", "{}")  # for as long as the ticket would have lived: nobody is asked again
    again.wait_line(r"not on Fridays")
    again.wait()
    said = json.loads(again.seen[again.seen.index(b"\r\n{") + 2:])
    assert said["code"] == "ticket-denied" and said["retry"] is False and said["expires"] in said["next_steps"], said
    assert not gw.tickets() and len(gw.tickets("all")) == 1
    other = start_post(lab, gw, up, "/things", "{ }")
    gw.deny(gw.pending()["id"], "nor this")  # another request is another question
    other.wait()
    assert up.effects() == {}


@test("E29 connect", "E30 connect")
def the_retry_joins_its_ticket_and_collects_the_answer(lab):
    lab.leaves("pending")
    up, secret, gw = setup(lab, hold="inline_wait: 1s, expires: 2h")
    command, env = curl(gw, up, "/things", "-X", "POST", "--data-binary", "a=1")
    first = lab.run(command, env=env, rc=0)
    ticket = gw.pending()
    assert ticket["id"].encode() in first.out, first.text()
    assert b" 200 " not in first.out.splitlines()[-1] and up.effects() == {}
    lab.run(command, env=env, rc=0)
    assert len(gw.tickets()) == 1, "the retry opened a second ticket"
    gw.approve(ticket["id"])
    assert up.effects() == {}, "nothing may execute before the client asks again"
    said = gw.cli("approvals", "approve", ticket["id"], rc=1).err
    assert b" was approved by you at " in said and b"takes it back" in said, said
    done = lab.run(command, env=env, rc=0)
    assert b"HTTP/1.1 200" in done.out, done.text()
    said = gw.cli("approvals", "deny", ticket["id"], rc=1).err
    assert b" was approved by you at " in said and said.endswith(b", and sent\n"), said
    assert up.effects() == {"POST /things": 1}
    again = lab.run(command, env=env, rc=0)
    assert b"HTTP/1.1 200" not in again.out and up.effects() == {"POST /things": 1}
    assert gw.pending()["id"] != ticket["id"], "a deliberate second write is a second ticket"


@test("E28 connect")
def a_ticket_nobody_decides_expires_and_denies(lab):
    lab.leaves("pending")
    up, secret, gw = setup(lab, within="2s", hold="inline_wait: 1s, expires: 2h")
    command, env = curl(gw, up, "/things", "-X", "POST", "--data-binary", "a=1")
    lab.run(command, env=env, rc=0)
    ticket = gw.tickets("all")[0]["id"]
    lab.wait_for("expiry", lambda: not gw.tickets())
    assert gw.cli("approvals", "approve", ticket).rc != 0
    done = lab.run(command, env=env, rc=0)
    assert b"HTTP/1.1 200" not in done.out and up.effects() == {}


@test("E28 clock")
def a_clock_that_jumps_lengthens_no_life(lab):
    """The deadline is kept by two clocks. A jump back of the one is the same as its deadline a day later: the other ends it."""
    lab.leaves("pending")
    up, secret, gw = setup(lab, within="4s", hold="inline_wait: 0s, expires: 2h")
    day = 24 * 3600 * 1000
    for n, column in enumerate(("expires_ms", "expires_boot_ms")):
        command, env = curl(gw, up, f"/things{n}", "-X", "POST", "--data-binary", "a=1")
        lab.run(command, env=env, rc=0)
        ticket = gw.pending()["id"]
        store = sqlite3.connect(gw.state / "store/ledger.db", timeout=PATIENCE)
        assert store.execute(f"UPDATE ticket SET {column}={column}+{day} WHERE id=?", (ticket,)).rowcount == 1
        store.commit()
        store.close()
        lab.wait_for("its end by the other clock", lambda: not gw.tickets())
        assert gw.show(ticket)["state"] == "expired" and gw.cli("approvals", "approve", ticket).rc != 0
        lab.run(command, env=env, rc=0)
    assert up.effects() == {}


@test("E7 connect")
def tickets_survive_a_restart_of_everything(lab):
    up, secret, gw = setup(lab, hold="inline_wait: 1s, expires: 2h")
    command, env = curl(gw, up, "/things", "-X", "POST", "--data-binary", "a=1")
    lab.run(command, env=env, rc=0)
    ticket = gw.pending()["id"]
    gw.process.signal(9)
    gw.process.wait()
    gw.up()
    env.update(gw.client_env())
    assert [t["id"] for t in gw.tickets()] == [ticket]
    gw.approve(ticket)
    done = lab.run(curl(gw, up, "/things", "-X", "POST", "--data-binary", "a=1")[0], env=env, rc=0)
    assert b"HTTP/1.1 200" in done.out, done.text()
    assert up.effects() == {"POST /things": 1}
    assert gw.cli("audit", "verify").rc == 0


@test("E21 connect")
def at_most_64_tickets_wait_for_one_sandbox(lab):
    lab.leaves("pending")
    up, secret, gw = setup(lab, hold="inline_wait: 0s, expires: 2h, pending: 3")
    for n in range(3):
        lab.run(curl(gw, up, f"/t{n}", "-X", "POST", "--data-binary", "x")[0], env=gw.client_env(), rc=0)
    done = lab.run(curl(gw, up, "/t3", "-X", "POST", "--data-binary", "x")[0], env=gw.client_env(), rc=0)
    assert b"HTTP/1.1 429" in done.out, done.text()
    assert len(gw.tickets()) == 3


@test("B52 connect")
def a_deny_that_came_after_the_approval_wins(lab):
    up, secret, gw = setup(lab, hold="inline_wait: 1s, expires: 2h")
    command, env = curl(gw, up, "/things", "-X", "POST", "--data-binary", "a=1")
    lab.run(command, env=env, rc=0)
    gw.approve(gw.pending()["id"])
    gw.policy.write_text(simple_policy(up, write="deny"))
    gw.cli("reload", rc=0)
    done = lab.run(command, env=env, rc=0)
    assert b"ask in #platform" in done.out and up.effects() == {}, done.text()


@test("B51 reload")
def a_broken_policy_keeps_the_old_one(lab):
    up, secret, gw = setup(lab)
    gw.policy.write_text(simple_policy(up).replace("decide: allow", "decide: alow"))
    done = gw.cli("reload")
    assert done.rc == 3, done.text()
    assert b"policy.yaml:" in done.both, done.text()
    command, env = curl(gw, up, "/ok")
    assert b" 200 " in lab.run(command, env=env, rc=0).out


main()
