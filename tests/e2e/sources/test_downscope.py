#!/usr/bin/env python3
"""A credential that is a token of a service account of Google, narrowed by a credential access boundary: asked for in two
steps, of two servers, each written from its documentation."""
import room  # noqa: F401
from asking import ask, bearers, gateway, passes, refused
from counterparts import Cloud, GoogleSTS
from harness import main, test
from jose import Key

BUCKET = "//storage.googleapis.com/projects/_/buckets/acme-reports"
BEGINS = "resource.name.startsWith('projects/_/buckets/acme-reports/objects/2026/')"
BOUNDARY = f"""downscope: [{{ resource: {BUCKET}, permissions: ["inRole:roles/storage.objectViewer", "inRole:roles/storage.objectCreator"],
      condition: "{BEGINS}" }}, {{ resource: {BUCKET}-2, permissions: "inRole:roles/storage.objectViewer" }}]"""


def setup(lab, more=BOUNDARY, **how):
    """(account, sts, upstream, gateway)"""
    account, own = Cloud(lab), Key(lab, "rsa")
    account.public, account.of = own.public, "assertion"
    sts = GoogleSTS(lab, account)
    for name, value in how.items():
        setattr(account if name == "lifetime" else sts, name, value)
    account.yaml += sts.yaml
    up, gw = gateway(lab, f"""oauth2: {{ url: {account.url}/oauth/token, grant: jwt_bearer, timeout: 2s,
      assertion: {{ jwt: {{ key: {{ store: signer }}, iss: agents@acme.iam.gserviceaccount.com, aud: "https://oauth2.googleapis.com/token",
                         claims: {{ scope: "https://www.googleapis.com/auth/devstorage.read_write" }} }} }},
      {more}, downscope_url: {sts.url}/v1/token }}""", account, {"signer": own.pem})
    return account, sts, up, gw


@test()
def a_token_is_narrowed_before_it_is_used(lab):
    account, sts, up, gw = setup(lab)
    for _ in range(3):
        passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {sts.tokens[0]}"] * 3
    assert len(account.asked) == 1 and set(account.asked[0]) == {"grant_type", "assertion"}, account.asked
    assert sts.options == [{"accessBoundary": {"accessBoundaryRules": [
        {"availableResource": BUCKET, "availabilityCondition": {"expression": BEGINS},
         "availablePermissions": ["inRole:roles/storage.objectViewer", "inRole:roles/storage.objectCreator"]},
        {"availableResource": BUCKET + "-2", "availablePermissions": ["inRole:roles/storage.objectViewer"]}]}}]
    assert b"*" in ask(lab, gw, up, "/echo?form=base64").out
    assert b"gives a value that fits" in gw.cli("secret", "check", "api", rc=0).out
    assert len(account.asked) == 2 and len(sts.asked) == 2, "both steps are looked at"


@test()
def a_narrowed_token_ends_with_the_one_it_is_of(lab):
    account, sts, up, gw = setup(lab, lifetime=2)

    def changed():
        passes(lab, gw, up)
        return len(set(bearers(up))) > 2
    lab.wait_for("new tokens", changed)
    assert set(bearers(up)) <= {f"Bearer {t}" for t in sts.tokens} and len(account.tokens) > 1


@test("D24")
def a_step_that_fails_is_named(lab):
    account, sts, up, gw = setup(lab)
    account.bad = "500"
    refused(lab, gw, up, "the token endpoint answered 500")
    assert not sts.asked
    account.bad, sts.bad = None, "500"
    lab.wait_for("the next question", lambda: "downscope: the token endpoint answered 500" in gw.cli("secret", "check", "api").out.decode())
    refused(lab, gw, up, "downscope: the token endpoint answered 500")
    assert not bearers(up), "the token that is not narrowed goes nowhere"
    sts.bad = None
    lab.wait_for("the next question", lambda: b" 200" in ask(lab, gw, up).out.splitlines()[0])
    assert set(bearers(up)) <= {f"Bearer {t}" for t in sts.tokens}


def bad_answer(bad, words):
    def run(lab):
        account, sts, up, gw = setup(lab, bad=bad)
        refused(lab, gw, up, "downscope: ", words)
        assert not bearers(up)
    run.__name__ = f"an_answer_of_the_second_step_that_is_bad_is_refused_in_words_{bad.replace(' ', '_')}"
    return run


for name, said in {"hang": "did not answer in time", "not json": "not a JSON object", "redirect": "answered 302", "revoked": "answered 400: invalid_grant"}.items():
    test("D24")(bad_answer(name, said))


if __name__ == "__main__":
    main()
