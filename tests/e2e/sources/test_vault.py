#!/usr/bin/env python3
"""A credential whose source is a vault (one written from Vault's documented HTTP API): logins, KV version 2, leased
secrets, and bad answers."""
import room  # noqa: F401
from asking import ask, bearers, gateway, passes, refused
from counterparts import Vault
from harness import main, test

KV = "read: secret/data/app, value: /data/data/token"


def setup(lab, more, store=(), **how):
    vault = Vault(lab)
    for name, value in how.items():
        setattr(vault, name, value)
    given = {"vault": vault.token, "secret-id": vault.secret_id, "jwt": vault.jwt}
    up, gw = gateway(lab, f"vault: {{ url: {vault.url}, {more} }}", vault, {k: v.encode() for k, v in given.items()})
    return vault, up, gw


@test()
def a_token_reads_a_value_of_kv_version_2(lab):
    vault, up, gw = setup(lab, f"token: {{ store: vault }}, {KV}")
    for _ in range(3):
        passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {vault.value}"] * 3
    assert vault.asked == [("GET", "/v1/secret/data/app")]


@test()
def approle_logs_in_and_gives_its_token_back(lab):
    vault, up, gw = setup(lab, f"role_id: app, secret_id: {{ store: secret-id }}, {KV}")
    passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {vault.value}"]
    lab.wait_for("the token's end", lambda: len(vault.revoked) == 1)
    assert vault.live == {vault.token}


@test()
def a_jwt_of_kubernetes_logs_in_within_a_namespace(lab):
    vault, up, gw = setup(lab, f"role: app, jwt: {{ store: jwt }}, namespace: team, {KV}", namespace="team")
    passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {vault.value}"]


@test()
def a_leased_secret_keeps_the_token_that_its_lease_hangs_on(lab):
    vault, up, gw = setup(lab, "role_id: app, secret_id: { store: secret-id }, read: database/creds/app, value: /data/password")
    passes(lab, gw, up)
    passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {vault.tokens[1]}"] * 2 and vault.revoked == []


BAD = {"hang": "did not answer in time", "500": "answered 500 when", "long": "longer than 256 KiB",
       "not json": "not a JSON object", "newline": "control character"}


def bad_answer(bad, words):
    def run(lab):
        vault, up, gw = setup(lab, f"token: {{ store: vault }}, timeout: 2s, {KV}", bad=bad)
        refused(lab, gw, up, words)
    run.__name__ = f"an_answer_that_is_bad_is_refused_in_words_{bad.replace(' ', '_')}"
    return run


for name, said in BAD.items():
    test("D24 config")(bad_answer(name, said))


@test()
def each_step_that_can_fail_is_named(lab):
    vault, up, gw = setup(lab, f"role_id: app, secret_id: {{ store: secret-id }}, {KV}")
    gw.cli("secret", "set", "secret-id", stdin=b"another-secret-id", rc=0)
    refused(lab, gw, up, "answered 400 when it was asked to log in at auth/approle")
    vault, up, gw = vault, up, gw
    gw.cli("secret", "set", "secret-id", stdin=vault.secret_id.encode(), rc=0)
    lab.wait_for("the failure to be forgotten", lambda: b" 200" in ask(lab, gw, up).out.splitlines()[0])


@test()
def a_path_or_a_field_that_is_not_there_is_named(lab):
    vault, up, gw = setup(lab, "token: { store: vault }, read: secret/data/other, value: /data/data/token")
    refused(lab, gw, up, "answered 404 when secret/data/other was read")
    gw.policy.write_text(gw.policy.read_text().replace("secret/data/other", "secret/data/app").replace("data/token", "data/nothing"))
    gw.cli("reload", rc=0)
    refused(lab, gw, up, "no text at /data/data/nothing")


main()
