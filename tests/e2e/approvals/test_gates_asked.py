#!/usr/bin/env python3
"""Gates that a server answers: a signed webhook is sent a held request before a person may approve it. It can deny and never
approve, and whatever it answers that is not beyond doubt is no yes. Covers E45."""
import base64
import hashlib
import hmac
import json
import re
import secrets
import sys
import time
from pathlib import Path

from room import Person, command, start, words
from gateway import Gateway, simple_policy
from harness import main, test

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sources"))
from counterparts import Counterpart  # noqa: E402


class Judge(Counterpart):
    """It checks what signs each question as Standard Webhooks has it, keeps it, and answers by the path that it is about."""

    def __init__(self, lab, name="judge.test"):
        super().__init__(lab, name)
        self.key = secrets.token_bytes(32)
        self.secret = lab.canary("whsec_" + lab.canary(base64.b64encode(self.key).decode()))
        self.fields, self.answers = [], {}

    def serve(self, handler, body):
        stamp, sent = handler.headers["webhook-timestamp"], handler.headers["webhook-id"]
        mac = hmac.new(self.key, f"{sent}.{stamp}.".encode() + body.encode(), hashlib.sha256).digest()
        asked = json.loads(body)
        asked["fine"] = (handler.headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode() and
                         abs(time.time() - int(stamp)) < 3600 and handler.command == "POST" and handler.path == "/ask")
        self.fields.append(sent)
        self.asked.append(asked)
        status, said = (lambda all_of: all_of.pop(0) if isinstance(all_of, list) else all_of)(self.answers[asked["path"]])
        if said is None:
            self.released.wait()
        else:
            more = [("Location", f"{self.url}/elsewhere")] if status == 302 else []
            self.send(handler, status, said if isinstance(said, bytes) else json.dumps(said).encode(), more)


def setup(lab, judge, body=False):
    up = lab.upstream()
    text = simple_policy(up).replace("approve: { within: 2h }", "approve: { within: 2h, gates: [judge] }")
    text = text.replace("upstreams:\n", "upstreams:\n" + judge.yaml.removeprefix("upstreams:\n"), 1)
    asked = f"webhook: {judge.url}/ask, secret: {{ store: judge-key }}, body: {'true' if body else 'false'}"
    text = text.replace("rules:\n", f"gates:\n  judge: {{ {asked}, timeout: 25s }}\n  hurried: {{ {asked}, timeout: 2s }}\nrules:\n")
    text = text.replace("effect: [write, delete]", "method: POST")  # the one that hangs is PUT: it alone has little time
    rule = text[text.index("  - id: writes"):]
    text += rule.replace("id: writes", "id: hurried").replace("POST", "PUT").replace("[judge]", "[hurried]")
    gw = Gateway(lab, text, {"api": lab.canary("s3cret-" + up.name * 3).encode(), "judge-key": judge.secret.encode()})
    return up, gw, text


def waiting(lab, gw, path):
    return lab.wait_for("it waits", lambda: next((t["id"] for t in gw.tickets() if t["path"] == path and t["state"] == "pending"), None))


def gate(lab, gw, ticket):
    """What the gate of this ticket said, once it has."""
    def said():
        one = gw.cli_json("approvals", "show", ticket)["gates"][0]
        return None if one["state"] in ("due", "asked") else (one["state"], one["words"])
    return lab.wait_for("the gate has answered", said)


@test()
def a_webhook_denies_or_leaves_it_to_the_people(lab):
    judge = Judge(lab)
    judge.answers = {"/bad": (200, {"decision": "deny", "reason": "it pays <i>twice</i>"}), "/fine": (200, {"decision": "allow"}),
                     "/unsure": (200, {"decision": "abstain", "reason": "<b>who knows</b>"}),
                     "/tells": (200, {"decision": "deny", "reason": f"key {judge.secret}"})}
    up, gw, _ = setup(lab, judge)
    agent, env = command(gw, up, "/bad", "--data-binary", "b0dy-of-the-agent")
    denied = lab.run(agent, env=env)
    assert b"Denied by gate judge: it pays" in denied.out, denied.text()
    asked, = judge.asked
    assert asked["fine"] and (asked["method"], asked["effect"], asked["sandbox"]) == ("POST", "write", "agent"), asked
    assert asked["body"]["size"] == 17 and "base64" not in asked["body"] and asked["body"]["complete"] is False, asked
    assert re.fullmatch(r"gate_[0-9a-z]{26}_[0-9a-f]{16}", judge.fields[0]), judge.fields
    record = gw.recorded(kind="gate-answered")[0]
    assert (record["gate"], record["said"], record["words"]) == ("judge", "denied", "it pays <i>twice</i>"), record
    alice = Person(gw, link=gw.cli_json("operator", "add", "alice")["url"])
    for path, said in (("/fine", "agreed"), ("/unsure", "abstained")):
        agent = start(lab, gw, up, path, "--data-binary", "a=1")
        ticket = waiting(lab, gw, path)
        assert gate(lab, gw, ticket)[0] == said
        assert gw.show(ticket)["state"] == "pending", "a gate approves nothing"
        page = alice.get(f"/tickets/{ticket}")
        assert "Gate judge" in words(page) and "<b>who" not in page, words(page)
        assert alice.approve(ticket)[0] == 303
        agent.wait()
    agent, env = command(gw, up, "/tells")
    told = lab.run(agent, env=env)  # the canary is looked for in what it prints, too
    assert b"Denied by gate judge: its words are left out" in told.out, told.text()
    assert up.effects() == {"POST /fine": 1, "POST /unsure": 1}


BAD = {"/redirect": (302, {"decision": "allow"}, "status 302"), "/created": (201, {"decision": "allow"}, "status 201"),
       "/error": (500, {"decision": "allow"}, "status 500"), "/form": (200, b"decision=allow", "not one JSON object"),
       "/twice": (200, b'{"decision":"deny","decision":"allow"}', "not one JSON object"),
       "/more": (200, {"decision": "allow", "sure": "yes"}, "more in it"), "/case": (200, {"decision": "Allow"}, "none of allow"),
       "/long": (200, b'{"decision":"allow"' + b" " * 9000 + b"}", "not one JSON object"),
       "/huge": (200, b" " * 400_000, "longer than"), "/hang": (200, None, "its timeout")}


@test()
def what_is_no_verdict_is_no_yes_and_the_page_says_why(lab):
    judge = Judge(lab)
    judge.answers = {path: (status, said) for path, (status, said, _) in BAD.items()}
    up, gw, _ = setup(lab, judge, body=True)
    lab.leaves("pending")
    alice = Person(gw, link=gw.cli_json("operator", "add", "alice")["url"])
    agents = []
    for path, (_, _, why) in BAD.items():
        agents.append(start(lab, gw, up, path, "--data-binary", "a=1", method="PUT" if path == "/hang" else "POST"))
        ticket = waiting(lab, gw, path)
        state, said = gate(lab, gw, ticket)
        why = why if why in said or path != "/hang" else "in time"  # the job's own words, or those of who waits for it
        assert state == "failed" and why in said, (path, state, said)
        assert gw.show(ticket)["state"] == "pending"
        page = words(alice.get(f"/tickets/{ticket}"))
        assert "did not answer: you decide without it" in page and why in page, page
    assert [a["path"] for a in judge.asked] == list(BAD), "one that redirects is not asked elsewhere"
    assert all(a["body"]["base64"] == "YT0x" and a["body"]["complete"] for a in judge.asked)
    assert up.effects() == {}
    for agent in agents:
        agent.signal(9)
        agent.wait()


@test()
def a_server_without_room_is_asked_again_and_decides_nothing_by_that(lab):
    judge, yes = Judge(lab), {"decision": "allow"}
    judge.answers = {"/busy": [(429, yes), (503, yes), (529, yes), (200, {"decision": "deny", "reason": "it was worth the wait"})]}
    up, gw, _ = setup(lab, judge)
    agent, env = command(gw, up, "/busy", "--data-binary", "a=1")
    denied = lab.run(agent, env=env)
    assert b"Denied by gate judge: it was worth the wait" in denied.out, denied.text()
    assert len(judge.asked) == 4 and all(a["fine"] for a in judge.asked) and up.effects() == {}
    assert len(gw.recorded(kind="gate-answered")) == 1


@test()
def a_verdict_outlives_each_role_and_is_never_one_for_other_terms(lab):
    judge, other = Judge(lab), Judge(lab, "other.test")
    other.key, other.secret = judge.key, judge.secret
    judge.answers = other.answers = {"/fine": (200, {"decision": "allow", "reason": "seen by the first"})}
    up, gw, text = setup(lab, judge)
    agent = start(lab, gw, up, "/fine", "--data-binary", "a=1")
    ticket = waiting(lab, gw, "/fine")
    assert gate(lab, gw, ticket) == ("agreed", "seen by the first")
    for role in ("keeper", "fetcher", "ledger"):
        gw.kill(role)
        lab.wait_for(f"the {role} is back", lambda: gw.cli("approvals", "show", ticket).rc == 0)
        assert gate(lab, gw, ticket) == ("agreed", "seen by the first")
    assert len(judge.asked) == 1
    gw.policy.write_text(text.replace("upstreams:\n", "upstreams:\n" + other.yaml.removeprefix("upstreams:\n"), 1)
                         .replace(f"webhook: {judge.url}/", f"webhook: {other.url}/"))
    gw.cli("reload", rc=0)
    lab.wait_for("it is over", lambda: gw.show(ticket)["state"] != "pending")
    agent.wait()
    agent = start(lab, gw, up, "/fine", "--data-binary", "a=1")
    again = waiting(lab, gw, "/fine")
    assert again != ticket and gate(lab, gw, again)[0] == "agreed"
    assert (len(judge.asked), len(other.asked)) == (1, 1) and judge.fields != other.fields
    gw.cli("approvals", "deny", again, "--reason", "no")
    agent.wait()
    assert up.effects() == {}


main()
