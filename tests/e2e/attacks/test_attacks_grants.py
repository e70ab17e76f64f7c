#!/usr/bin/env python3
"""Grants: approved once on the page or in the terminal, used by what is of the same shape and by nothing else."""
import concurrent.futures
import html
import json
import re
import secrets
import urllib.parse

import room  # noqa: F401
from gateway import Gateway, Page, upstream_yaml
from harness import PATIENCE, main, test

GRANTS = "grants: { uses: 20, within: 1h }"


def policy(up, more=GRANTS, also=""):
    place = f"host: {up.name}, port: {up.port}"
    return f"""version: 1
name: granted
upstreams:
{upstream_yaml(up.name, up.port, up.ca)}
credentials:
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{{ {place} }}]
rules:
  - id: writes
    match: {{ {place}, effect: [write, delete] }}
    decide: hold
    use: api
    approve: {{ within: 2h, {more} }}
{also}"""


def setup(lab, more=GRANTS, **keys):
    up = lab.upstream()
    secret = lab.canary(secrets.token_urlsafe(32))
    keys.setdefault("hold", "inline_wait: 1s, expires: 2h")
    return up, Gateway(lab, policy(up, more), {"api": secret.encode()}, **keys)


def send(lab, gw, up, path="/notes", body='{"title":"a","text":"b"}', name="agent", *more, rc=0):
    """The status of a request, and its body; 403 when it is held, for nobody waits long here."""
    command = ["curl", "-sS", "--max-time", str(PATIENCE), "-o", "-", "-w", "\n%{http_code}", "-X", "POST",
               "-H", "Content-Type: application/json", "--data-binary", body, *more, f"https://{up.name}:{up.port}{path}"]
    done = lab.run(command, env=gw.client_env(name), rc=rc)
    said, _, status = done.out.decode().rpartition("\n")
    return int(status), said


def hold_one(lab, gw, up, **more):
    """One that is held and given up by its client: its ticket."""
    known = {t["id"] for t in gw.tickets()}
    assert send(lab, gw, up, **more)[0] == 403
    new = [t for t in gw.tickets() if t["id"] not in known]
    assert len(new) == 1, new
    return new[0]["id"]


def give(lab, gw, up, uses, time="10m", **more):
    """A grant by the terminal; the ticket it was given with is used up first."""
    ticket = hold_one(lab, gw, up, **more)
    done = gw.cli("approvals", "approve", ticket, "--uses", str(uses), "--for", time, rc=0)
    assert send(lab, gw, up, **more)[0] == 200
    return done.out.decode()


def grants(gw):
    return gw.cli_json("grants", "list", "--all")["grants"]


@test("E23 connect")
def so_many_of_its_shape_and_then_a_person_again(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    said = give(lab, gw, up, 3)
    assert re.search(rf"# and up to 3 more until .* from agent, if they are POST {up.name}/notes with text, title\n", said), said
    for i in range(3):
        assert send(lab, gw, up, body=json.dumps({"text": f"number {i}", "title": "any"}))[0] == 200
    assert up.effects() == {"POST /notes": 4}
    status, said = send(lab, gw, up, body='{"title":"one","text":"more"}')
    assert status == 403 and json.loads(said)["code"] == "held", said
    assert up.effects() == {"POST /notes": 4}
    (one,) = grants(gw)
    assert (one["uses"], one["uses_max"], one["state"], one["by"]) == (3, 3, "used", "uid 0"), one
    given = [r for r in gw.audit() if r["kind"] == "grant-given"]
    used = [r for r in gw.audit() if r["kind"] == "intent" and r.get("grant") == one["id"]]
    assert len(given) == 1 and given[0]["uses"] == 3 and given[0]["shape"]["path"] == "/notes" and len(used) == 3, (given, used)
    decided = [t for t in gw.tickets("done") if t["decided_by"] == "uid 0"]
    assert len(decided) == 4 and "Nothing" not in gw.cli("grants", "list", "--all", rc=0).out.decode()


@test("E23 connect", "E2 connect")
def nothing_else_rides_on_it(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    give(lab, gw, up, 20)
    assert send(lab, gw, up)[0] == 200
    others = (
        {"body": '{"title":"a","text":"b","admin":true}'}, {"body": '{"title":"a"}'}, {"body": '{"title":{"text":"a"},"text":"b"}'},
        {"body": '{"title":"a","title":"b","text":"c"}'}, {"body": '{"title":"a\\u202eb","text":"c"}'}, {"body": "title=a&text=b"},
        {"path": "/notes/"}, {"path": "/Notes"}, {"path": "/notes?x=1"}, {"path": "/notes%2Fx"}, {"path": "//notes"},
        {"path": "/notes;x=1"}, {"name": "other"})
    for other in others:
        status, said = send(lab, gw, up, **other)
        assert status in (400, 403), (other, status, said)
    for more in (["-H", "X-Other: 1"], ["-H", "Content-Encoding: identity"], ["-X", "PUT"],
                 ["-H", "If-Match: x"], ["-H", "Content-Type: application/merge-patch+json"]):
        status, said = send(lab, gw, up, "/notes", '{"title":"a","text":"b"}', "agent", *more)
        assert status in (400, 403), (more, status, said)
    assert up.effects() == {"POST /notes": 2}, up.effects()
    assert grants(gw)[0]["uses"] == 1
    # the host in other letters is the same host; the request is as it is written
    assert send(lab, gw, up, "/notes", '{"title":"a","text":"b"}', "agent", "--connect-to",
                f"{up.name.upper()}:{up.port}:{up.name}:{up.port}")[0] == 200


@test("E23 connect", "B52 connect", "E41 reload")
def a_deny_beats_it_and_another_policy_ends_it(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    give(lab, gw, up, 20)
    place = f"host: {up.name}, port: {up.port}"
    gw.policy.write_text(policy(up, also=f"  - id: never\n    match: {{ {place}, method: POST }}\n    decide: deny\n"))
    gw.cli("reload", rc=0)
    status, said = send(lab, gw, up)
    assert status == 403 and json.loads(said)["code"] == "denied", said
    gw.policy.write_text(policy(up, also=f"  - id: reads\n    match: {{ {place}, effect: read }}\n    decide: allow\n"))
    gw.cli("reload", rc=0)  # the rule is the same, and the policy is not
    status, said = send(lab, gw, up)
    assert status == 403 and json.loads(said)["code"] == "held", said
    assert grants(gw)[0]["state"] == "other-policy" and up.effects() == {"POST /notes": 1}
    gw.policy.write_text(policy(up))
    gw.cli("reload", rc=0)
    assert send(lab, gw, up, body='{"title":"c","text":"d"}')[0] == 200  # as it was when it was given
    gw.cli("freeze", rc=0)
    assert send(lab, gw, up, body='{"title":"e","text":"f"}')[0] != 200 and up.effects() == {"POST /notes": 2}


@test("E23 connect")
def taken_back_it_is_good_for_nothing(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    give(lab, gw, up, 20)
    assert send(lab, gw, up)[0] == 200
    one = grants(gw)[0]["id"]
    gw.cli("grants", "revoke", one[:8], "--reason", "enough", rc=0)
    assert send(lab, gw, up)[0] == 403 and up.effects() == {"POST /notes": 2}
    assert gw.cli("grants", "revoke", one, rc=1).err
    assert [r["reason"] for r in gw.audit() if r["kind"] == "grant-ended"] == ["enough"]
    give(lab, gw, up, 20, body='{"other":1}')
    gw.cli("sandbox", "rm", "agent", rc=0)
    del gw.tokens["agent"]
    assert send(lab, gw, up, body='{"other":2}')[0] == 403  # another sandbox of that name
    assert {g["state"] for g in grants(gw)} == {"revoked", "ended"}


@test("E3 connect", "E23 connect")
def many_at_once_for_the_last_uses(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    give(lab, gw, up, 3)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: send(lab, gw, up, body=json.dumps({"title": str(i), "text": "b"}))[0], range(8)))
    assert sorted(got) == [200] * 3 + [403] * 5, got
    assert up.effects() == {"POST /notes": 4} and len(gw.tickets()) == 5


@test("E7 connect", "E23 connect")
def killed_at_any_moment_no_use_is_had_twice(lab):
    lab.leaves("pending", "unknown")
    up, gw = setup(lab)
    give(lab, gw, up, 6)
    for role in ("ledger", "judge", "ledger"):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(send, lab, gw, up, "/notes", json.dumps({"title": role, "text": secrets.token_hex(4)}), rc=None) for _ in range(2)]
            gw.kill(role)
            for a in asked:
                a.result()  # an answer, or a 503 in words: without a judge no tunnel is opened
    sent = up.effects()["POST /notes"] - 1
    uses = grants(gw)[0]["uses"]
    assert sent <= uses <= 6, (sent, uses)
    gw.stop()
    gw.up()
    left = 0
    while send(lab, gw, up, body=json.dumps({"title": "after", "text": secrets.token_hex(4)}))[0] == 200:
        left += 1
    assert left == 6 - uses and up.effects()["POST /notes"] - 1 <= 6, (left, uses)


def fields(page, action):
    form = re.search(rf'<form[^>]*action="{action}">(.*?)</form>', page, re.S)
    assert form, page
    return dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', form[1])), form[1]


def text(page):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page)))


@test("E11 desk")
def on_the_page_it_is_offered_given_listed_and_taken_back(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    ticket = hold_one(lab, gw, up, body='{"title":"a","text":"b"}')
    page = Page(gw)
    answer, shown = page.ask("GET", f"/tickets/{ticket}")
    shown = shown.decode()
    words = text(shown)
    assert "Approve, and the next ones like it" in words and f"POST https://{up.name}:{up.port}/notes" in words, words
    assert re.search(r"In its body, JSON: text \(any\), title \(any\); no other name", words), words
    assert shown.index("Approve this request") < shown.index("Deny this request") < shown.index("Approve this one and those")
    hidden, form = fields(shown, f"/tickets/{ticket}/grant")
    good = {**hidden, "uses": "5", "minutes": "10", "reason": "a note"}
    quick, said = page.ask("POST", f"/tickets/{ticket}/grant", urllib.parse.urlencode(good))
    if quick.status != 409:  # half a second had passed already
        assert quick.status == 303, (quick.status, said)
    else:
        for wrong in ({"mark": hidden["mark"][:-1] + ("0" if hidden["mark"][-1] != "0" else "1")}, {"digest": "0" * 64}, {"uses": "0"},
                      {"uses": "21"}, {"minutes": "61"}, {"minutes": "x"}):
            lab.wait_for("the form's moment", lambda: page.ask("POST", f"/tickets/{ticket}/grant", urllib.parse.urlencode(
                {**good, **wrong}))[0].status in (400, 403, 422))
        approve, _ = fields(shown, f"/tickets/{ticket}/approve")
        assert page.ask("POST", f"/tickets/{ticket}/grant", urllib.parse.urlencode(
            {**good, "mark": approve["mark"]}))[0].status == 403  # a yes to one is none to more
        assert page.ask("GET", f"/tickets/{ticket}/grant")[0].status == 405
        assert grants(gw) == [] and gw.tickets()
        answer, said = page.ask("POST", f"/tickets/{ticket}/grant", urllib.parse.urlencode(good))
        assert answer.status == 303, (answer.status, said)
    assert send(lab, gw, up, body='{"title":"a","text":"b"}')[0] == 200
    assert send(lab, gw, up, body='{"title":"c","text":"d"}')[0] == 200
    answer, listed = page.ask("GET", "/grants")
    words = text(listed.decode())
    assert "4 of 5 left" in words and "a note" in words and "for agent" in words, words
    one = grants(gw)[0]["id"]
    hidden, _ = fields(listed.decode(), f"/grants/{one}/revoke")
    assert page.ask("POST", f"/grants/{one}/revoke", "mark=00")[0].status == 403
    assert page.ask("POST", f"/grants/{one}/revoke", urllib.parse.urlencode(hidden))[0].status == 303
    assert "taken back" in text(page.ask("GET", "/grants")[1].decode())
    assert send(lab, gw, up, body='{"title":"e","text":"f"}')[0] == 403
    by_grant = [t for t in gw.tickets("done") if t["decided_reason"] == "a note" and gw.show(t["id"])["decided_channel"] == "grant"]
    assert len(by_grant) == 1 and "with a grant" in text(page.ask("GET", f"/tickets/{by_grant[0]['id']}")[1].decode())


@test("E23 desk")
def none_is_offered_for_what_a_rule_or_the_page_keeps_to_a_person(lab):
    lab.leaves("pending")
    up, gw = setup(lab, more="reason: optional")  # no word of it, and no pack names these
    ticket = hold_one(lab, gw, up)
    page = Page(gw)
    assert "next ones like it" not in page.ask("GET", f"/tickets/{ticket}")[1].decode()
    assert gw.cli("approvals", "approve", ticket, "--uses", "1", "--for", "5m", rc=1).err
    shown = gw.show(ticket)
    status, _ = gw.control("POST", f"/api/v1/tickets/{ticket}/approve", {"digest": shown["digest"], "uses": 1, "for_ms": 60000})
    assert status == 422 and gw.show(ticket)["state"] == "pending" and grants(gw) == []
    gw.policy.write_text(policy(up, "grants: { uses: 3, within: 5m }"))
    gw.cli("reload", rc=0)
    for body in ('{"title":"a\\u200bb"}', "not json", '{"query":"mutation { x }"}', '{"a":1,"a":2}'):
        ticket = hold_one(lab, gw, up, body=body)
        assert "next ones like it" not in page.ask("GET", f"/tickets/{ticket}")[1].decode(), body
        assert gw.cli("approvals", "approve", ticket, "--uses", "1", "--for", "5m").rc == 1, body
    ticket = hold_one(lab, gw, up, body='{"go":1}')
    for wrong in (("4", "5m"), ("3", "6m"), ("0", "5m"), ("3", "0s"), ("3", "x")):
        assert gw.cli("approvals", "approve", ticket, "--uses", wrong[0], "--for", wrong[1]).rc in (1, 2), wrong
    assert gw.cli("approvals", "approve", ticket, "--uses", "3").rc == 2
    assert gw.show(ticket)["state"] == "pending" and grants(gw) == []


main()
