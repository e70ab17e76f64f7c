#!/usr/bin/env python3
"""Being told outside the page: signed webhooks, Slack's form and mail, retried until they are told or given up, and charged to
who floods; nothing of it decides, and none has more in it than facts. Covers E35."""
import email
import os
import re
import secrets
import signal
import socket
import sys
from pathlib import Path

from room import command, setup, start
from sinks import Hook, Mail, Slack, hook, key_of
from gateway import Page
from harness import main, test

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
import certs  # noqa: E402

LATER = r"ledger: notify \S+: \S+ was not told, and is tried again: "
GIVEN_UP = r"ledger: notify \S+ was not told of \S+ \S*, and will not be: "


def told(lab, targets, stored=(), **more):
    up, gw = setup(lab, config="notify:\n" + "".join(f"  - {{ {t} }}\n" for t in targets), **more)
    for name, value in dict(stored).items():
        gw.cli("secret", "set", name, stdin=value.encode(), rc=0)
    return up, gw


ALL = ", events: [waiting, decided, expired, cancelled, executed, failed, unknown, frozen]"


def pending(lab, gw, path):
    return lab.wait_for("it waits", lambda: next((t["id"] for t in gw.tickets() if t["path"].startswith(path)), None))


@test()
def a_webhook_is_signed_and_says_facts_and_no_more(lab):
    key, text = key_of(lab)
    sink = Hook(lab)
    up, gw = told(lab, [hook(sink.port, more=ALL)], {"ops-key": text})
    body = "b0dy-" + secrets.token_urlsafe(24)
    lab.secret_file("body", body)
    query = "qu3ry-" + secrets.token_urlsafe(24)
    lab.exempt(up.dir)
    agent = start(lab, gw, up, f"/pay?k={query}", "--data-binary", f"@{lab.dir}/body")
    ticket = pending(lab, gw, "/pay")
    (_, fields, first, _), = sink.wait(1)
    assert first["type"] == "ticket.waiting" and first["data"]["ticket"] == ticket, first
    data = first["data"]
    assert data["sandbox"] == "agent" and data["effect"] == "write" and data["expires"] > data["since"], data
    assert data["untrusted"]["host"] == f"{up.name}:{up.port}" and data["untrusted"]["method"] == "POST", data
    assert data["link"].endswith(f"/tickets/{ticket}") and data["link"].startswith("http://localhost:"), data
    assert fields["webhook-id"].startswith("msg_")
    gw.approve(ticket)
    agent.wait()
    kinds = [b["type"] for _, _, b, _ in sink.wait(3)]
    assert sorted(kinds) == ["ticket.approved", "ticket.executed", "ticket.waiting"], kinds
    approved = next(b for _, _, b, _ in sink.wait(3) if b["type"] == "ticket.approved")
    assert approved["data"]["untrusted"]["by"], approved
    gw.cli("freeze", "--reason", "now", rc=0)
    gw.cli("thaw", rc=0)
    sink.wait(2, lambda b: b["type"].startswith("writes."))
    assert len({f["webhook-id"] for _, f, _, _ in sink.got}) == 5
    sink.verify(key)
    for _, fields, sent, _ in sink.got:
        assert body.encode() not in sent and query.encode() not in sent, sent


@test()
def one_that_fails_is_told_again_with_the_same_id_across_every_kill(lab):
    key, text = key_of(lab)
    sink = Hook(lab, answers=[500, 503, 302], location="/elsewhere")
    up, gw = told(lab, [hook(sink.port)], {"ops-key": text})
    lab.expects(LATER)
    lab.leaves("pending")
    agent = start(lab, gw, up, "/one", "--data-binary", "a=1")
    sink.wait(1)
    gw.kill("ledger")
    sink.wait(2)
    lab.kills(gw.daemon())
    lab.wait_for("the gateway is gone", lambda: gw.process.ended)
    gw.up()
    got = sink.wait(4)
    assert [s for _, _, _, s in got][:4] == [500, 503, 302, 204], got
    assert len({f["webhook-id"] for _, f, _, _ in got}) == 1 and len({repr(b) for _, _, b, _ in got}) == 1, got
    assert {p for p, _, _, _ in got} == {"/hook"}, "a redirection was followed"
    sink.verify(key)
    agent.signal(9)
    agent.wait()


@test()
def what_cannot_be_told_is_given_up_and_said_and_holds_up_nobody_else(lab):
    key, text = key_of(lab)
    sink = Hook(lab)
    closed = socket.create_server(("127.0.0.1", 0))
    dead = closed.getsockname()[1]
    closed.close()
    gone = Hook(lab, answers=[410])
    up, gw = told(lab, [hook(dead, "dead", ", give_up: 5s"), hook(gone.port, "gone"), hook(sink.port, "ops"), hook(sink.port, "unset")],
                  {"dead-key": text, "gone-key": text, "ops-key": text})
    lab.expects(LATER)
    lab.expects(GIVEN_UP)
    lab.leaves("pending")
    agent = start(lab, gw, up, "/one", "--data-binary", "a=1")
    sink.wait(1)
    records = gw.recorded(2, kind="not-told")
    words = {r["target"]: r["words"] for r in records}
    assert set(words) == {"dead", "gone"}, records
    assert "cannot be reached" in words["dead"] and words["gone"] == "it answered 410", words
    assert len(sink.got) == 1 and len(gone.got) == 1, (sink.got, gone.got)
    rows = gw.cli_json("notify", "list")["targets"]
    state = {r["name"]: r for r in rows}
    assert state["dead"]["given_up"] == 1 and state["ops"]["told"] == 1 and state["unset"]["waiting"] == 1, rows
    assert "no stored secret unset-key" in state["unset"]["words"], rows
    assert b"dead was not told 1 times in a week: " in gw.cli("doctor", rc=1).out
    done = gw.cli("notify", "test", "ops", rc=0)
    assert done.out == b"Told: it answered 204\n" and sink.got[-1][2].startswith(b'{"type":"test"'), done.text()
    assert b"not told: 127.0.0.1" in gw.cli("notify", "test", "dead", rc=1).err
    assert gw.cli("notify", "test", "nobody", rc=1).err
    page = Page(gw).ask("GET", "/health")[1].decode()
    assert "Told outside the page" in page and "1 given up in a week" in page, page
    agent.signal(9)
    agent.wait()


@test()
def a_flood_is_one_message_and_its_neighbour_is_heard(lab):
    key, text = key_of(lab)
    sink = Hook(lab)
    up, gw = told(lab, [hook(sink.port)], {"ops-key": text})
    lab.leaves("pending")
    agents = [start(lab, gw, up, f"/n{i}", "--data-binary", "a=1", name="noisy") for i in range(24)]
    lab.wait_for("all wait", lambda: len(gw.tickets()) == 24)
    agents.append(start(lab, gw, up, "/quiet", "--data-binary", "a=1", name="calm"))
    sink.wait(1, lambda b: b["data"].get("sandbox") == "calm")
    (_, _, many, _), = sink.wait(1, lambda b: b["type"] == "tickets.many")
    assert len(sink.wait(10, lambda b: b["data"].get("sandbox") == "noisy")) == 10 and len(sink.got) == 12, sink.got
    assert many["data"]["messages"] == "14" and many["data"]["waiting"] == "25", many
    assert many["data"]["waiting_by_sandbox"] == {"noisy": 24, "calm": 1}, many
    sink.verify(key)
    for agent in agents:
        agent.signal(9)
        agent.wait()


@test()
def https_is_verified_and_tenants_hear_of_their_own(lab):
    key, text = key_of(lab)
    ca = certs.CA(lab.dir / "hook-ca")
    sink = Hook(lab, tls=ca.leaf("localhost"))
    other = certs.CA(lab.dir / "other-ca", "Another")
    up, gw = told(lab, [f'name: ops, webhook: "https://localhost:{sink.port}/in", secret: ops-key, ca: {ca.cert}',
                        f'name: wrong, webhook: "https://localhost:{sink.port}/wrong", secret: ops-key, ca: {other.cert}, give_up: 5s',
                        f'name: theirs, webhook: "https://localhost:{sink.port}/theirs", secret: ops-key, ca: {ca.cert}, tenants: [acme]'],
                  {"ops-key": text})
    lab.exempt(lab.dir / "hook-ca")
    lab.expects(LATER)
    lab.expects(GIVEN_UP)
    lab.leaves("pending")
    agent = start(lab, gw, up, "/one", "--data-binary", "a=1")
    sink.wait(1)
    record = gw.recorded(1, kind="not-told")[0]
    assert record["target"] == "wrong" and "certificate is not accepted" in record["words"], record
    assert {p for p, _, _, _ in sink.got} == {"/in"}, sink.got
    sink.verify(key)
    agent.signal(9)
    agent.wait()


@test()
def slack_is_told_with_a_link_and_no_button_that_decides(lab):
    sink = Hook(lab)
    token = lab.canary(secrets.token_urlsafe(24))
    up, gw = told(lab, ["name: team, slack: team-url"], {"team-url": f"http://127.0.0.1:{sink.port}/services/{token}"})
    lab.leaves("pending")
    agent = start(lab, gw, up, "/one", "--data-binary", "a=1", method="CHANNEL")
    (path, fields, body, _), = sink.wait(1)
    assert path == f"/services/{token}" and "webhook-signature" not in fields, (path, fields)
    blocks = body["blocks"]
    assert [b["type"] for b in blocks] == ["header", "section", "section", "actions"], blocks
    assert blocks[2]["text"]["type"] == "plain_text" and blocks[2]["text"]["text"].startswith("Not to be trusted"), blocks
    assert "CHANNEL" in blocks[2]["text"]["text"]
    button, = blocks[3]["elements"]
    assert button["text"]["text"] == "Open" and "/tickets/" in button["url"] and set(button) == {"type", "text", "url"}, button
    assert "pprove" not in repr(body)
    agent.signal(9)
    agent.wait()


@test()
def a_button_in_slack_denies_and_slack_has_its_answer_before_the_ledger(lab):
    key = lab.canary(secrets.token_hex(16))
    slack = Slack(lab, key)
    up, gw = told(lab, ["name: team, slack: team-url, signing: team-key, people: "
                        f"[{{ slack: {slack.TEAM}/U0ALICE, operator: alice }}, {{ slack: {slack.TEAM}/U0GONE, operator: gone }}]"],
                  {"team-url": f"http://127.0.0.1:{slack.port}/services/x", "team-key": key})
    gw.cli("operator", "add", "alice", rc=0)
    agent = start(lab, gw, up, "/one", "--data-binary", "a=1")
    (_, _, body, _), = slack.wait(1)
    opens, denies = body["blocks"][-1]["elements"]
    ticket = gw.pending()["id"]
    assert "url" in opens and denies["value"] == ticket and denies["text"]["text"] == "Deny" and "pprove" not in repr(body), body
    # Nothing without Slack's signature, of now, over these bytes.
    assert slack.press(gw.page, denies, "U0ALICE", key="0" * 32)[0] == 403
    assert slack.press(gw.page, denies, "U0ALICE", age=400)[0] == 403
    assert slack.press(gw.page, denies, "U0ALICE", change=lambda b: b.replace("U0ALICE", "U0GONE"))[0] == 403
    assert slack.press(gw.page, denies, "U0ALICE", name="other")[0] == 404
    assert slack.press(gw.page, denies, "U0ALICE", headers={})[0] == 403
    # Nobody whom the configuration names, by whatever name they have there; or one who is no operator any more.
    assert slack.press(gw.page, denies, "U0MALLORY")[0] == 200
    (path, _, words, _), = slack.wait(1, lambda b: "names nobody" in b.get("text", ""))
    assert path == "/actions/U0MALLORY" and words["response_type"] == "ephemeral" and not words["replace_original"], words
    status, sent = slack.press(gw.page, denies, "U0GONE")
    assert status == 200 and slack.send(gw.page, "team", *sent)[0] == 403
    assert slack.press(gw.page, denies, "no id")[0] == 400
    slack.wait(1, lambda b: "is not there" in b.get("text", ""))
    assert slack.press(gw.page, opens, "U0ALICE")[0] == 200 and slack.press(gw.page, dict(denies, action_id="approve"), "U0ALICE")[0] == 200
    assert gw.pending()["id"] == ticket
    # Only what denies takes a place of the few: 256 in five minutes.
    for _ in range(257):
        assert slack.press(gw.page, opens, "U0ALICE")[0] == 200
    # Slack has its 200 while the ledger stands still; then it is denied, and the message says so.
    ledger = gw.pid("ledger")
    lab.expects("judge: the ledger (has not said a word for|speaks again)")  # on a machine that is slow enough
    lab.stops(ledger)
    assert slack.press(gw.page, denies, "U0ALICE")[0] == 200
    assert not [b for _, _, b, _ in slack.got if b"Denied in Slack" in b]
    os.kill(ledger, signal.SIGCONT)
    (path, _, words, _), = slack.wait(1, lambda b: "Denied in Slack by alice" in b.get("text", "") or "is not known" in b.get("text", ""))
    assert path == "/actions/U0ALICE" and "blocks" not in words, words
    assert words["replace_original"] or "is not known" in words["text"], words  # on a machine that stood still for ten seconds
    agent.wait()
    shown = gw.show(ticket)
    assert shown["state"] == "denied" and shown["decided_by"] == "alice" and shown["decided_channel"] == "slack", shown
    assert slack.press(gw.page, denies, "U0ALICE")[0] == 200
    slack.wait(1, lambda b: "does not wait any more" in b.get("text", ""))
    assert len(slack.got) == 5, slack.got


@test()
def mail_goes_over_starttls_with_its_password_and_plain_only_where_it_may(lab):
    ca = certs.CA(lab.dir / "mail-ca")
    password = lab.canary("p4ss-" + secrets.token_urlsafe(20))
    relay = Mail(lab, login=("countersign", password), tls=ca.leaf("localhost"), refuse=1)
    plain, bare = Mail(lab), Mail(lab)
    up, gw = told(lab, [f'name: mail, ca: {ca.cert}, mail: {{ relay: "smtp://localhost:{relay.port}", from: gate@corp.example, '
                        'to: [a@corp.example, b@corp.example], user: countersign, password: relay-password }',
                        f'name: plain, mail: {{ relay: "smtp://127.0.0.1:{plain.port}", from: gate@corp.example, to: c@corp.example, starttls: offered }}',
                        f'name: bare, give_up: 5s, mail: {{ relay: "smtp://127.0.0.1:{bare.port}", from: gate@corp.example, to: d@corp.example }}'],
                  {"relay-password": password})
    lab.exempt(lab.dir / "mail-ca")
    lab.expects(LATER)
    lab.expects(GIVEN_UP)
    lab.leaves("pending")
    agent = start(lab, gw, up, "/one", "--data-binary", "a=1")
    ticket = pending(lab, gw, "/one")
    mail, = relay.wait()
    assert mail["secure"] and mail["login"] == ("countersign", password) and mail["from"] == "gate@corp.example", mail
    assert mail["to"] == ["a@corp.example", "b@corp.example"], mail
    read = email.message_from_bytes(mail["text"])
    assert read["Subject"] == "Countersign: A request waits for a decision (agent)", read["Subject"]
    assert read["To"].split() == ["a@corp.example,", "b@corp.example"] and read["Auto-Submitted"] == "auto-generated", read.items()
    text = read.get_payload()
    assert "Asked by: agent" in text and "Method: POST" in text and re.search(rf"Open: http://localhost:\d+/tickets/{ticket}", text), text
    assert text.index("Not to be trusted") < text.index("Method: POST") and "pprove" not in text, text
    one, = plain.wait()
    assert not one["secure"] and "login" not in one, one
    assert gw.recorded(1, kind="not-told")[0]["target"] == "bare"
    assert not bare.mails and not any(s.upper().startswith("MAIL") for s in bare.said), bare.said
    agent.signal(9)
    agent.wait()


main()
