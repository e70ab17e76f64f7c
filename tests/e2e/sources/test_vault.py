#!/usr/bin/env python3
"""A credential whose source is a vault (one written from Vault's documented HTTP API): logins, KV version 2, leased
secrets, and bad answers."""
import room  # noqa: F401
from asking import ask, bearers, gateway, passes, refused
from counterparts import Vault
from harness import main, test
from jose import Key

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
def a_jwt_of_another_issuer_logs_in(lab):
    vault, up, gw = setup(lab, f"role: app, auth: jwt, jwt: {{ store: jwt }}, {KV}")
    passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {vault.value}"] and ("POST", "/v1/auth/jwt/login") in vault.asked


@test()
def a_jwt_that_is_signed_here_logs_in_without_any_secret_of_the_vaults(lab):
    own, vault = Key(lab, "ec"), Vault(lab)
    vault.public = own.public
    jwt = f"{{ jwt: {{ key: {{ store: signer }}, iss: 'https://gateway.example', sub: agents, aud: '{vault.url}' }} }}"
    up, gw = gateway(lab, f"vault: {{ url: {vault.url}, role: app, auth: jwt, jwt: {jwt}, {KV} }}", vault, {"signer": own.pem})
    passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {vault.value}"] and vault.claims["iss"] == "https://gateway.example"
    gw.cli("secret", "set", "signer", stdin=Key(lab, "ec").pem, rc=0)
    lab.wait_for("another key's", lambda: "log in at auth/jwt" in gw.cli("secret", "check", "api").out.decode())


@test()
def a_value_of_a_kv_store_is_read_again_when_its_time_is_over(lab):
    vault, up, gw = setup(lab, f"token: {{ store: vault }}, {KV}, lifetime: 2s")
    passes(lab, gw, up)
    first, vault.value = vault.value, vault.new_token("kv")
    used_until(lab, gw, up, "the new value", lambda: bearers(up)[-1] == f"Bearer {vault.value}")
    assert bearers(up)[0] == f"Bearer {first}"


@test()
def a_leased_secret_keeps_the_token_that_its_lease_hangs_on(lab):
    vault, up, gw = setup(lab, "role_id: app, secret_id: { store: secret-id }, read: database/creds/app, value: /data/password")
    passes(lab, gw, up)
    passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {vault.tokens[1]}"] * 2 and vault.revoked == []


LEASED = "read: database/creds/app, value: /data/password"
APPROLE = f"role_id: app, secret_id: {{ store: secret-id }}, {LEASED}"


def used_until(lab, gw, up, what, condition):
    """Requests, all of which pass with a value that the vault has not ended, until it is so."""
    def once():
        passes(lab, gw, up)
        return condition()
    lab.wait_for(what, once)


def times(vault, path):
    return vault.asked.count(("POST", path))


def renewed(how):
    def run(lab):
        vault, up, gw = setup(lab, APPROLE, **how)
        used_until(lab, gw, up, "two renewals", lambda: times(vault, "/v1/sys/leases/renew") >= 2)
        assert times(vault, "/v1/auth/token/renew-self") >= 2 and times(vault, "/v1/auth/approle/login") == 1
        assert set(bearers(up)) == {f"Bearer {vault.tokens[1]}"} and vault.revoked == []
    run.__name__ = f"lease_and_token_are_renewed_by_the_first_use_past_most_of_the_life_of_one_{next(iter(how))}"
    return run


def replaced(name, how):
    def run(lab):
        vault, up, gw = setup(lab, APPROLE, lease_s=3, **how)
        used_until(lab, gw, up, "the end of the first", lambda: "database/creds/app/x1" not in vault.leases)
        first, second = vault.tokens[1:3]
        assert bearers(up)[0] == f"Bearer {first}" and f"Bearer {second}" in bearers(up)
        at = vault.asked.index(("POST", "/v1/auth/token/revoke-self"))
        assert vault.asked[:at].count(("GET", "/v1/database/creds/app")) >= 2, "not before another one was in use"
    run.__name__ = f"what_is_not_renewed_is_replaced_and_what_it_replaced_is_given_back_{name}"
    return run


for each in ({"lease_s": 2}, {"token_s": 2}):
    test()(renewed(each))
for name, each in {"refused": {"renewed_s": 0}, "too_short": {"renewed_s": 1},
                   "token_refused": {"refuses": ("/v1/auth/token/renew-self",)}}.items():
    test()(replaced(name, each))


@test()
def a_lease_by_the_operators_token_is_given_back_alone(lab):
    vault, up, gw = setup(lab, f"token: {{ store: vault }}, {LEASED}", lease_s=3, renewed_s=0)
    used_until(lab, gw, up, "the end of the first", lambda: "database/creds/app/x1" not in vault.leases)
    assert vault.token in vault.live and vault.revoked == [] and times(vault, "/v1/auth/token/renew-self") == 0


@test()
def a_lifetime_of_the_policys_is_the_most_for_which_a_value_is_used(lab):
    vault, up, gw = setup(lab, f"{APPROLE}, lifetime: 2s")
    used_until(lab, gw, up, "another one, and the end of the first", lambda: vault.revoked)
    assert times(vault, "/v1/sys/leases/renew") == 0 and len(set(bearers(up))) >= 2


@test()
def what_cannot_be_given_back_is_said_and_keeps_nothing_from_being_used(lab):
    vault, up, gw = setup(lab, APPROLE, lease_s=3, renewed_s=0, refuses=("/v1/auth/token/revoke-self",))
    lab.expects("fetch-http: the vault answered 403 when it was to revoke a token that is not used any more")
    used_until(lab, gw, up, "a third value", lambda: vault.leased >= 3)
    assert b"the vault answered 403 when it was to revoke a token" in gw.process.seen
    assert gw.process.seen.count(b"when it was to revoke") <= vault.leased, "each is tried once"


@test()
def a_check_asks_for_another_one_and_a_dead_vault_ends_nothing_that_lives(lab):
    vault, up, gw = setup(lab, APPROLE)
    passes(lab, gw, up)
    gw.cli("secret", "check", "api", rc=0)
    assert vault.leased == 2 and times(vault, "/v1/sys/leases/renew") == 0
    used_until(lab, gw, up, "the end of the first", lambda: len(vault.leases) == 1)
    vault.bad = "500"
    lab.wait_for("a failure", lambda: gw.cli("secret", "check", "api").rc == 1)  # the first may hear of a question before it
    passes(lab, gw, up)
    vault.bad = None
    gw.cli("secret", "check", "api", rc=0)
    used_until(lab, gw, up, "the end of the second", lambda: list(vault.leases) == ["database/creds/app/x3"])


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
