#!/usr/bin/env python3
"""Keys that an STS gives a sandbox in JSON: what comes in is a pair, which its tools sign with, and the service (lab/signed.py)
takes the keys' signatures, session token and all."""
import base64
import hashlib
import json
import re
import urllib.parse

import room  # noqa: F401
from gateway import upstream_yaml
from harness import main, test
from signing import Pair, Pairs

TC3 = "tc3: { service: tcb }"


class Sts(Pairs):
    """The keys of the service stand in an answer of another upstream, which is asked with a credential."""

    def __init__(self, lab):
        super().__init__(lab, TC3, lease="\n    lease: tencent")
        self.sts = lab.upstream("sts.test")
        answer = json.dumps({"Response": {"Credentials": {"TmpSecretId": self.id, "TmpSecretKey": self.key, "Token": self.token},
                                          "ExpiredTime": 1900000000, "Expiration": "2030-03-17T17:46:40Z", "RequestId": "r-1"}}).encode()
        raw = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer
        (self.sts.dir / "script.json").write_text(json.dumps({"/keys": "/raw?b64=" + urllib.parse.quote(base64.b64encode(raw).decode(), safe="")}))
        place = f"host: {self.sts.name}, port: {self.sts.port}"
        text = self.gw.policy.read_text().replace("    source: { store: keys }\n", """    source:
      answer:
        to: sts
        token: /Response/Credentials/TmpSecretId
        key: /Response/Credentials/TmpSecretKey
        session_token: /Response/Credentials/Token
        lifetime: 30m
""").replace("credentials:\n", f"""{upstream_yaml(self.sts.name, self.sts.port, self.sts.ca)}credentials:
  sts:
    source: {{ store: sts }}
    inject: {{ header: X-Key, format: "{{}}" }}
    only: [{{ {place} }}]
""")
        self.gw.policy.write_text(text + f"  - {{ id: keys, match: {{ {place}, effect: read }}, decide: allow, use: sts }}\n")
        self.gw.cli("secret", "set", "sts", stdin=lab.canary("a-key-of-the-sts").encode(), rc=0)
        self.gw.cli("reload", rc=0)

    def log_in(self):
        """What the sandbox has of it."""
        done = self.lab.run(["curl", "-sS", f"https://{self.sts.name}:{self.sts.port}/keys"], env={**self.env, **self.gw.client_env()}, rc=0)
        for secret in (self.id, self.key, self.token):
            assert secret.encode() not in done.both, done.text()
        return json.loads(done.out)["Response"]


@test()
def keys_of_an_sts_are_a_pair_inside(lab):
    s = Sts(lab)
    said = s.log_in()
    keys = said["Credentials"]
    assert said["Expiration"] and said["RequestId"] == "r-1" and keys["Token"] == keys["TmpSecretId"], said
    assert re.fullmatch(r"AKID\w{32}", keys["TmpSecretId"]) and len(keys["TmpSecretKey"]) == 32, said
    pair, body = Pair(keys["TmpSecretId"], keys["TmpSecretKey"], scheme="TC3", service="tcb"), b'{"Limit":1}'
    fields = pair.sign("POST", s.at, "/", "", {"content-type": "application/json"}, hashlib.sha256(body).hexdigest())
    more = {**fields, "x-tc-action": "DescribeEnvs"}
    assert s.send({**more, "x-tc-token": pair.id}, "POST", "/", body=body) == "200"
    assert s.send(more, "POST", "/", body=body) == "200"
    assert s.send(more, "POST", "/", body=b'{"Limit":2}') == "lease-unproven"
    other = Pair(keys["TmpSecretId"], "x" * 32, scheme="TC3", service="tcb")
    wrong = other.sign("POST", s.at, "/", "", {"content-type": "application/json"}, hashlib.sha256(body).hexdigest())
    assert s.send({**wrong, "x-tc-action": "DescribeEnvs"}, "POST", "/", body=body) == "lease-unproven"
    s.all_were_right(2)
    assert s.log_in()["Credentials"]["TmpSecretId"] != pair.id  # the same keys, by another lease


if __name__ == "__main__":
    main()
