#!/usr/bin/env python3
"""A credential whose source is a role of AWS: what STS is asked, who signs it, which keys the requests are signed with, and
what bad answers get. The counterpart is written from the documentation of STS and verifies each signature."""
import email.message
import json
import secrets

import room  # noqa: F401
from asking import ask, gateway, passes, refused
from counterparts import STS
from harness import main, test
from jose import Key
from signed import Verifier

SIGNED = "sigv4: { region: eu-central-1, service: s3 }"
ROLE = f"role: '{STS.role}', session: agents"


def setup(lab, more, public=None, key=None, store=(), **how):
    sts = STS(lab, public)
    for name, value in how.items():
        setattr(sts, name, value)
    own = {"user": key or f"{sts.user.id}:{sts.user.secret}".encode(), **dict(store)}
    up, gw = gateway(lab, f"aws: {{ url: {sts.url}, timeout: 2s, {ROLE}, {more} }}", sts, own, inject=SIGNED)
    return sts, up, gw


BY_KEY = "key: { store: user }, region: eu-central-1"


def signed_with(up, key):
    """Every request that the upstream got is signed with this key, as it sees it."""
    for r in up.requests():
        headers = email.message.Message()
        for name, value in r["fields"]:
            headers[name] = value
        Verifier(key, r["method"], r["target"], headers, b"").verify()
    return len(up.requests())


@test()
def a_role_is_assumed_and_requests_are_signed_with_its_keys(lab):
    policy = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::b/*"}]}'
    sts, up, gw = setup(lab, f"""{BY_KEY}, policy: '{policy}', policy_arns: [arn:aws:iam::aws:policy/ReadOnlyAccess],
                        source_identity: sandbox-7, external_id: 'a b&c', duration: 15m""")
    for _ in range(3):
        passes(lab, gw, up)
    assert signed_with(up, sts.given[0]) == 3 and len(sts.given) == 1
    assert sts.asked[0] == {
        "Action": "AssumeRole", "Version": "2011-06-15", "RoleArn": STS.role, "RoleSessionName": "agents",
        "Policy": policy, "PolicyArns.member.1.arn": "arn:aws:iam::aws:policy/ReadOnlyAccess",
        "SourceIdentity": "sandbox-7", "ExternalId": "a b&c", "DurationSeconds": "900"}
    assert b"gives a value that fits" in gw.cli("secret", "check", "api", rc=0).out


@test()
def a_session_takes_another_role_with_its_token(lab):
    sts = STS(lab)
    sts.user.token = lab.canary("FwoGZXIvYXdzE" + "t" * 60)
    up, gw = gateway(lab, f"aws: {{ url: {sts.url}, {ROLE}, {BY_KEY} }}", sts,
                     {"user": f"{sts.user.id}:{sts.user.secret}:{sts.user.token}".encode()}, inject=SIGNED)
    passes(lab, gw, up)
    assert signed_with(up, sts.given[0]) == 1


@test()
def a_jwt_of_ours_takes_a_role_without_any_key_of_aws(lab):
    own = Key(lab, "rsa")
    identity = "web_identity: { jwt: { key: { store: signer }, iss: 'https://id.example', sub: agents, aud: sts.amazonaws.com } }"
    sts, up, gw = setup(lab, identity, own.public, store={"signer": own.pem})
    passes(lab, gw, up)
    assert signed_with(up, sts.given[0]) == 1
    assert set(sts.asked[0]) == {"Action", "Version", "RoleArn", "RoleSessionName", "WebIdentityToken"}
    assert sts.claims["sub"] == "agents" and sts.claims["aud"] == "sts.amazonaws.com"


@test()
def keys_are_asked_for_anew_when_most_of_their_life_is_over(lab):
    sts, up, gw = setup(lab, BY_KEY, lifetime=3)

    def again():
        passes(lab, gw, up)
        return len(sts.given) > 1
    lab.wait_for("other keys", again)


@test("D24")
def parts_of_the_keys_are_looked_for_in_answers(lab):
    sts, up, gw = setup(lab, BY_KEY, new_token=lambda prefix: prefix + secrets.token_hex(30))  # which the client knows here
    passes(lab, gw, up)
    for part in (sts.given[0].id, sts.given[0].secret, sts.given[0].token):
        out = ask(lab, gw, up, f"/echo-text?{part}").out
        assert b" 200" in out.splitlines()[0] and part.encode() not in out, out


BAD = {"hang": "did not answer in time", "500": "STS answered 500", "long": "longer than 256 KiB", "not json": "not XML",
       "newline": "control character", "no token": "not all of AccessKeyId", "no time": "Expiration", "a type": "not XML"}


def bad_answer(bad, words):
    def run(lab):
        _, up, gw = setup(lab, BY_KEY, bad=bad)
        refused(lab, gw, up, words)
    run.__name__ = f"an_answer_that_is_bad_is_refused_in_words_{bad.replace(' ', '_')}"
    return run


for name, said in BAD.items():
    test("D24 config")(bad_answer(name, said))


@test("D24")
def what_is_wrong_with_the_key_is_named(lab):
    sts, up, gw = setup(lab, BY_KEY, key=b"AKIACANARYCANARY:another-canary-key")
    refused(lab, gw, up, "STS answered 403: SignatureDoesNotMatch")
    gw.cli("secret", "set", "user", stdin=b"a-canary-without-a-colon", rc=0)
    lab.wait_for("its words", lambda: b"must be ID:KEY" in gw.cli("secret", "check", "api").out)
    assert "canary" not in json.dumps(sts.asked).lower()


main()
