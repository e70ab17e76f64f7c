#!/usr/bin/env python3
"""What an agent is told beforehand (/v1/manifest) and when it is refused: what was asked, why, and what there is instead."""
import json

from gateway import Gateway
from harness import main, test

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
    done = lab.run(["curl", "-sS", "--max-time", "30", *more, url], env=gw.client_env(sandbox), rc=0)
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
    assert far["allowed"] == [f"nothing at this host; hosts that can be reached: {up.name}"], far
    assert not up.effects(), up.effects()


if __name__ == "__main__":
    main()
