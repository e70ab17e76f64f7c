#!/usr/bin/env python3
"""A credential that is a JWT signed here, verified as an upstream would that trusts the key; and such JWTs as what the
token endpoints of clouds are asked with."""
import json
import time

import room  # noqa: F401
from asking import ask, bearers, gateway, passes, refused
from counterparts import Cloud
from harness import main, test
from jose import Key, decoded, pem_of, thumbprint, verified

SAYS = "iss: \"https://gateway.example\", sub: agents, aud: \"https://api.example\""


def setup(lab, kind="ec", more="", key=None):
    own = Key(lab, kind)
    up, gw = gateway(lab, f"jwt: {{ key: {{ store: signer }}, {SAYS}{more} }}", None, {"signer": key or own.pem})
    return own, up, gw


def published(lab, gw, *names):
    """The set as an upstream reads it: {kid: PEM}, made from its numbers alone."""
    keys = json.loads(gw.cli("secret", "jwks", *names, rc=0).out)["keys"]
    return {k["kid"]: pem_of(k) for k in keys if k["use"] == "sig" and thumbprint(k) == k["kid"]}


def signed(lab, kind):
    own, up, gw = setup(lab, kind, ", ttl: 10m, claims: { team: blue }")
    for _ in range(3):
        passes(lab, gw, up)
    assert len(set(bearers(up))) == 1, "one that lives is used again"
    jwt = bearers(up)[0].removeprefix("Bearer ")
    head = json.loads(decoded(jwt.split(".")[0]))
    head, claims = verified(lab, jwt, published(lab, gw, "signer")[head["kid"]])
    now = time.time()
    assert head["alg"] == {"ec": "ES256", "rsa": "RS256"}[kind] and head["typ"] == "JWT"
    assert {k: v for k, v in claims.items() if k not in ("iat", "exp", "jti")} == {
        "iss": "https://gateway.example", "sub": "agents", "aud": "https://api.example", "team": "blue"}
    assert now - 120 < claims["iat"] <= now and now + 540 < claims["exp"] <= now + 600
    assert b"gives a value that fits" in gw.cli("secret", "check", "api", rc=0).out
    assert b"*" in ask(lab, gw, up, "/echo?form=base64").out, "it is looked for in answers"


@test()
def an_upstream_that_trusts_the_key_on_p256_takes_it(lab):
    signed(lab, "ec")


@test()
def an_upstream_that_trusts_the_rsa_key_takes_it(lab):
    signed(lab, "rsa")


@test()
def both_keys_are_published_before_the_new_one_is_used(lab):
    own, up, gw = setup(lab, more=", key_id: first")
    gw.cli("secret", "set", "next", stdin=Key(lab, "rsa").pem, rc=0)
    assert len(published(lab, gw, "signer", "next")) == 2
    passes(lab, gw, up)
    jwt = bearers(up)[0].removeprefix("Bearer ")
    head, _ = verified(lab, jwt, own.public)
    assert head["kid"] == "first"


@test("D24")
def nothing_but_the_public_half_is_shown(lab):
    own, up, gw = setup(lab, "rsa")
    keys = json.loads(gw.cli("secret", "jwks", "signer", rc=0).out)["keys"]
    assert set(keys[0]) == {"alg", "use", "kid", "kty", "e", "n"}
    for name, words in (("nowhere", b"no secret of that name"), ("text", b"no private key in PEM")):
        gw.cli("secret", "set", "text", stdin=b"a-canary-that-is-no-key", rc=0)
        said = gw.cli("secret", "jwks", name)
        assert said.rc == 1 and words in said.err and b"canary" not in said.out + said.err, said.text()


@test("D24")
def without_its_key_there_is_none(lab):
    own, up, gw = setup(lab)
    gw.cli("secret", "rm", "signer", rc=0)
    refused(lab, gw, up, "jwt.key", "nothing of that name is in the store")


def cloud(lab, settings, **how):
    endpoint, own = Cloud(lab), Key(lab, "rsa")
    if "of" in how:
        endpoint.public = own.public
    for name, value in how.items():
        setattr(endpoint, name, value)
    source = f"oauth2: {{ url: {endpoint.url}/oauth/token, {settings} }}"
    up, gw = gateway(lab, source, endpoint, {"signer": own.pem, "client": endpoint.secret.encode()})
    return endpoint, up, gw


@test()
def a_service_account_of_google_is_shown_by_what_its_key_signed(lab):
    says = {"iss": "agents@project.iam.gserviceaccount.com", "aud": "https://oauth2.googleapis.com/token",
            "scope": "https://www.googleapis.com/auth/devstorage.read_only"}
    endpoint, up, gw = cloud(lab, f"""grant: jwt_bearer, assertion: {{ jwt: {{ key: {{ store: signer }}, key_id: 0123abcd,
                             iss: "{says['iss']}", aud: "{says['aud']}", claims: {{ scope: "{says['scope']}" }} }} }}""",
                             of="assertion", wants=says)
    for _ in range(2):
        passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {endpoint.tokens[0]}"] * 2 and endpoint.head["kid"] == "0123abcd"
    assert set(endpoint.asked[0]) == {"grant_type", "assertion"}, "nothing else is told"


ENTRA = "grant: client_credentials, scope: https://management.azure.com/.default"


@test()
def an_application_of_entra_is_shown_by_its_client_secret(lab):
    endpoint, up, gw = cloud(lab, f"{ENTRA}, client_id: the client, client_secret: {{ store: client }}, auth: body", auth="body")
    passes(lab, gw, up)
    assert endpoint.asked[0]["scope"] == ["https://management.azure.com/.default"]


@test()
def an_application_of_entra_is_shown_without_any_secret(lab):
    says = {"iss": "https://id.example", "sub": "agents", "aud": "api://AzureADTokenExchange"}
    inner = ", ".join(f'{k}: "{v}"' for k, v in says.items())
    endpoint, up, gw = cloud(lab, f"{ENTRA}, client_id: app, client_assertion: {{ jwt: {{ key: {{ store: signer }}, {inner} }} }}",
                             of="client_assertion", wants=says)
    passes(lab, gw, up)
    form = endpoint.asked[0]
    assert form["client_assertion_type"] == ["urn:ietf:params:oauth:client-assertion-type:jwt-bearer"]
    assert form["client_id"] == ["app"] and "client_secret" not in form


@test("D24")
def who_does_not_trust_the_key_gives_nothing(lab):
    endpoint, up, gw = cloud(lab, f"{ENTRA}, client_id: app, client_assertion: {{ jwt: {{ key: {{ store: signer }}, {SAYS} }} }}",
                             of="client_assertion", wants={"sub": "another"})
    refused(lab, gw, up, "the token endpoint answered 401: invalid_client")


main()
