#!/usr/bin/env python3
"""What an agent is told beforehand (/v1/manifest) and when it is refused: what was asked, why, and what there is instead."""
import datetime as dt
import json

import room  # noqa: F401
from gateway import Gateway
from harness import PATIENCE, main, test

POLICY = """version: 1
scopes:
  ci: {{ sandboxes: ["ci-*"] }}
upstreams:
  - {{ host: {host}, port: {port}, address: 127.0.0.1, ca: {ca}, allow_private: [127.0.0.0/8] }}
rules:
  - id: read
    match: {{ host: {host}, port: {port}, method: GET, path: "/v1/**" }}
    decide: allow
  - id: only-ci
    scope: ci
    match: {{ host: {host}, port: {port}, method: POST, path: /v1/things, json: [{{ pointer: /n, int_lte: 5 }}] }}
    decide: hold
  - id: never
    match: {{ host: {host}, method: DELETE }}
    decide: deny
    say: "Nothing is deleted here."
"""


def ask(lab, gw, url, *more, sandbox="agent"):
    done = lab.run(["curl", "-sS", "--max-time", str(PATIENCE), *more, url], env=gw.client_env(sandbox), rc=0)
    return json.loads(done.out)


@test()
def an_agent_can_read_what_it_may_ask_and_is_told_when_it_is_refused(lab):
    up = lab.upstream()
    gw = Gateway(lab, POLICY.format(host=up.name, port=up.port, ca=up.ca))
    mine = ask(lab, gw, "http://countersign.internal/v1/manifest", sandbox="ci-7")
    assert [o["decision"] for o in mine["operations"]] == ["deny", "hold", "allow"], mine
    hold = mine["operations"][1]
    assert hold["request"]["json"] == [{"pointer": "/n", "int_lte": 5}] and hold["request"]["path"] == ["/v1/things"]
    assert "rule" not in hold and len(mine["policy_digest"]) == 64 and mine["writes_frozen"] is False
    other = ask(lab, gw, "http://countersign.internal/v1/manifest", sandbox="vm")
    assert [o["decision"] for o in other["operations"]] == ["deny", "allow"], other
    assert ask(lab, gw, "http://countersign.internal/v1/manifest?host=elsewhere.test", sandbox="vm")["operations"] == []
    base = f"https://{up.name}:{up.port}"
    no = ask(lab, gw, base + "/v1/x?token=abc", "-X", "DELETE", sandbox="vm")
    assert no["detail"] == "Nothing is deleted here." and no["asked"] == f"DELETE {base}/v1/x", no
    assert no["allowed"] == ["GET /v1/**: allowed"] and no["manifest"].endswith("/v1/manifest"), no
    far = ask(lab, gw, "https://elsewhere.test/", sandbox="vm")
    assert far["allowed"] == [f"nothing at this host; hosts that can be reached: https://{up.name}:{up.port}"], far
    assert not up.effects(), up.effects()


@test()
def what_is_not_understood_is_told_and_recorded_with_its_cause(lab):
    up = lab.upstream()
    gw = Gateway(lab, POLICY.format(host=up.name, port=up.port, ca=up.ca))
    url = f"https://{up.name}:{up.port}/v1/things"
    for body, query, cause, why in (
            ('{"n": 1, "n": 9}', "", "key-twice", "an object in the JSON body has a key twice"),
            ('{"n": 1', "", "bad-json", "the body is not well-formed JSON"),
            ('{"n": 1}', "?n=9", "in-query",  # which would tell what the rule asks about: only the audit has it (B54)
             "its path, query, a field or the body may mean one thing to this policy and another to the server")):
        no = ask(lab, gw, url + query, "-H", "Content-Type: application/json", "-d", body, sandbox="ci-7")
        assert (no["code"], no["cause"], no["retry"]) == ("unclassified", "ambiguous" if query else cause, False), no
        assert no["detail"] == f"The policy needs to understand this request to decide it, and could not: {why}.", no
        assert "\"/n" not in json.dumps(no) and " /n" not in no["detail"], no  # B54
        lab.wait_for(f"the record of {cause}", lambda: [r for r in gw.audit() if r.get("cause") == cause])
    record = [r for r in gw.audit() if r.get("cause") == "in-query"][0]
    assert (record["kind"], record["verdict"], record["code"]) == ("denied", "deny", "unclassified"), record
    # To whom no rule asks about the body it is not allowed, whatever it says.
    no = ask(lab, gw, url, "-H", "Content-Type: application/json", "-d", '{"n": 1, "n": 9}', sandbox="vm")
    assert no["code"] == "denied" and "cause" not in no and "/n" not in no["detail"], no
    assert not up.effects(), up.effects()


HOURS = """version: 1
scopes:
  ci: {{ sandboxes: ["ci-*"] }}
upstreams:
  - {{ host: {host}, port: {port}, address: 127.0.0.1, ca: {ca}, allow_private: [127.0.0.0/8] }}
rules:
  - {{ id: read, match: {{ host: {host}, port: {port}, method: GET }}, decide: allow }}
  - id: deploy
    scope: ci
    match: {{ host: {host}, port: {port}, method: POST, path: /deploy }}
    decide: allow
    when: {{ days: {day}, hours: "09:00-17:00", zone: UTC }}
"""


@test()
def a_denial_of_these_hours_says_when_to_come_back(lab):
    up = lab.upstream()
    now = dt.datetime.now(dt.timezone.utc)
    then = (now + dt.timedelta(days=2)).replace(hour=9, minute=0, second=0, microsecond=0)
    day = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"][then.weekday()]
    gw = Gateway(lab, HOURS.format(host=up.name, port=up.port, ca=up.ca, day=day))
    url = f"https://{up.name}:{up.port}"
    done = lab.run(["curl", "-sS", "-i", "--max-time", str(PATIENCE), "-X", "POST", url + "/deploy"], env=gw.client_env("ci-7"), rc=0)
    head, body = done.out.decode().replace("\r\n", "\n").rsplit("\n\n", 1)
    no, wait = json.loads(body), (then - now).total_seconds()
    at = then.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert no["retry"] is True and no["next_steps"] == f"Repeat the same request after {at}.", no
    assert no["detail"] == (f"POST {url}/deploy is not allowed by the policy. It is allowed {day} 09:00-17:00 UTC, next from "
                            f"{at} on."), no
    told = [int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("retry-after:")]
    assert len(told) == 1 and wait - 120 < told[0] <= wait + 1, (told, wait)
    # To whom the manifest does not show the rule, its hours are not told either.
    for sandbox, path in (("vm", "/deploy"), ("ci-7", "/other")):
        no = ask(lab, gw, url + path, "-X", "POST", sandbox=sandbox)
        assert no["retry"] is False and no["detail"].endswith("is not allowed by the policy."), no
        assert no["next_steps"] == "Do not repeat it unchanged: the answer will be the same." and f" {day} " not in no["detail"], no
    assert not up.effects(), up.effects()


if __name__ == "__main__":
    main()
