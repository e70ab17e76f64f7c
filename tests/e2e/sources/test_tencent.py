#!/usr/bin/env python3
"""A credential whose source is a role or a federated user of Tencent Cloud: what its STS is asked, signed with which key, which
keys the requests are signed with, and what bad answers get. The counterpart is written from the documentation of that STS."""
import email.message
import urllib.parse

import room  # noqa: F401
from asking import gateway, passes, refused
from counterparts import TencentSTS
from harness import main, test
from signed import Verifier

POLICY = '{"version":"2.0","statement":[{"effect":"allow","action":"cos:GetObject","resource":"*"}]}'
FEDERATION = f"federation: agents, policy: '{POLICY}'"


def setup(lab, more, key=None, **how):
    sts = TencentSTS(lab)
    for name, value in how.items():
        setattr(sts, name, value)
    source = f"tencent: {{ url: {sts.url}, timeout: 2s, region: ap-guangzhou, key: {{ store: user }}, {more} }}"
    up, gw = gateway(lab, source, sts, {"user": key or f"{sts.user.id}:{sts.user.secret}".encode()},
                     inject="tc3: { service: cos }")
    return sts, up, gw


def signed_with(up, key):
    for r in up.requests():
        headers = email.message.Message()
        for name, value in r["fields"]:
            headers[name] = value
        Verifier(key, r["method"], r["target"], headers, b"").verify()
    return len(up.requests())


@test()
def a_federated_user_has_the_policy_that_is_sent(lab):
    sts, up, gw = setup(lab, FEDERATION)
    for _ in range(3):
        passes(lab, gw, up)
    assert signed_with(up, sts.given[0]) == 3
    assert sts.asked == [{"Action": "GetFederationToken", "Region": "ap-guangzhou", "Name": "agents",
                          "Policy": urllib.parse.quote(POLICY, safe="-._~")}]


@test()
def a_role_is_assumed(lab):
    sts, up, gw = setup(lab, "role: 'qcs::cam::uin/100000000001:roleName/agents', session: agents, external_id: x, duration: 15m")
    passes(lab, gw, up)
    assert signed_with(up, sts.given[0]) == 1
    assert sts.asked == [{"Action": "AssumeRole", "Region": "ap-guangzhou", "RoleSessionName": "agents", "ExternalId": "x",
                          "RoleArn": "qcs::cam::uin/100000000001:roleName/agents", "DurationSeconds": 900}]


@test()
def keys_are_asked_for_anew_when_most_of_their_life_is_over(lab):
    sts, up, gw = setup(lab, FEDERATION, lifetime=3)

    def again():
        passes(lab, gw, up)
        return len(sts.given) > 1
    lab.wait_for("other keys", again)


BAD = {"hang": "did not answer in time", "500": "STS answered 500", "long": "longer than 256 KiB",
       "not json": "not a JSON object", "no token": "not all of TmpSecretId", "no time": "ExpiredTime"}


def bad_answer(bad, words):
    def run(lab):
        _, up, gw = setup(lab, FEDERATION, bad=bad)
        refused(lab, gw, up, words)
    run.__name__ = f"an_answer_that_is_bad_is_refused_in_words_{bad.replace(' ', '_')}"
    return run


for name, said in BAD.items():
    test("D24 config")(bad_answer(name, said))


@test("D24")
def what_is_wrong_with_the_key_is_named(lab):
    sts, up, gw = setup(lab, FEDERATION, key=b"AKIDcanary:another-canary-key")
    refused(lab, gw, up, "AuthFailure.SignatureFailure")


main()
