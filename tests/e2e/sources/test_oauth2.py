#!/usr/bin/env python3
"""A credential whose source is a token endpoint (one written from the RFCs): each grant, refreshing, and bad answers."""
import hashlib
import os

import room  # noqa: F401
from asking import ask, bearers, gateway, passes, refused, told_by_doctor
from counterparts import TokenEndpoint
from harness import main, test

CLIENT = 'client_id: "the client", client_secret: { store: client }'


def setup(lab, more=f"grant: client_credentials, {CLIENT}", store=(), **how):
    endpoint = TokenEndpoint(lab)
    for name, value in how.items():
        setattr(endpoint, name, value)
    source = f"oauth2: {{ url: {endpoint.url}/oauth/token, {more} }}"
    up, gw = gateway(lab, source, endpoint, {"client": endpoint.secret.encode(), **dict(store)})
    return endpoint, up, gw


@test()
def client_credentials_give_a_token_that_is_used_while_it_lives(lab):
    endpoint, up, gw = setup(lab, f'grant: client_credentials, {CLIENT}, scope: "a b", audience: [one, two]')
    for _ in range(3):
        passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {endpoint.tokens[0]}"] * 3
    assert len(endpoint.asked) == 1, endpoint.asked
    assert endpoint.asked[0] == {"grant_type": ["client_credentials"], "scope": ["a b"], "audience": ["one", "two"]}
    assert b"*" in ask(lab, gw, up, "/echo?form=base64").out


@test()
def a_client_can_show_itself_in_the_body(lab):
    endpoint, up, gw = setup(lab, f"grant: client_credentials, auth: body, {CLIENT}", auth="body")
    passes(lab, gw, up)


@test()
def a_token_is_asked_for_again_when_most_of_its_life_is_over(lab):
    endpoint, up, gw = setup(lab, lifetime=2)

    def changed():
        passes(lab, gw, up)
        return len(set(bearers(up))) > 2
    lab.wait_for("new tokens", changed)
    assert set(bearers(up)) <= {f"Bearer {t}" for t in endpoint.tokens}


@test()
def a_token_that_the_upstream_refuses_is_asked_for_again(lab):
    endpoint, up, gw = setup(lab)
    passes(lab, gw, up)
    first, = endpoint.tokens
    up.script({"/ok": "/refuse?sha=" + hashlib.sha256(f"Bearer {first}".encode()).hexdigest(), "/never": "/status?code=401"})
    passes(lab, gw, up)  # it was revoked there before its time
    assert bearers(up) == [f"Bearer {t}" for t in (first, first, endpoint.tokens[1])]
    sent = len(up.requests())
    for path in ("/never", "/never"):  # an upstream that refuses all of them is heard, and costs the source nothing
        assert b" 401" in ask(lab, gw, up, path).out.splitlines()[0]
    assert len(endpoint.tokens) == 2 and len(up.requests()) == sent + 2, "nor is it asked twice with the same"
    client = writing(lab, gw, up, "/never")
    gw.cli("approvals", "approve", gw.pending()["id"], rc=0)
    client.wait()
    assert up.effects()["POST /never"] == 1, "a write is not repeated"


@test()
def where_the_endpoint_fails_the_upstreams_refusal_is_the_answer(lab):
    endpoint, up, gw = setup(lab)
    passes(lab, gw, up)
    up.script({"/ok": "/status?code=401"})
    endpoint.bad = "500"
    assert b" 401" in ask(lab, gw, up).out.splitlines()[0]
    assert len(endpoint.asked) == 2 and len(up.requests()) == 2


@test()
def a_refresh_token_is_used_once_and_the_next_one_is_sealed(lab):
    endpoint = TokenEndpoint(lab)
    endpoint.lifetime = 1
    source = (f"oauth2: {{ url: {endpoint.url}/oauth/token, grant: refresh_token, {CLIENT}, "
              "refresh_token: { store: refresh } }")
    up, gw = gateway(lab, source, endpoint, {"client": endpoint.secret.encode(), "refresh": endpoint.refresh.encode()})

    def changed():
        passes(lab, gw, up)
        return len(set(bearers(up))) > 2
    lab.wait_for("new tokens", changed)
    gw.recorded(about="secret", fits=lambda r: r["what"].get("act") == "rotated")  # and it is in the audit
    # the next gateway has the newest one, sealed
    gw.process.signal(15)
    gw.process.wait()
    gw.up()
    passes(lab, gw, up)


@test()
def the_next_refresh_token_is_kept_from_an_answer_that_is_bad_otherwise(lab):
    endpoint = TokenEndpoint(lab)
    endpoint.bad = "no number"
    source = (f"oauth2: {{ url: {endpoint.url}/oauth/token, grant: refresh_token, {CLIENT}, "
              "refresh_token: { store: refresh } }")
    up, gw = gateway(lab, source, endpoint, {"client": endpoint.secret.encode(), "refresh": endpoint.refresh.encode()})
    refused(lab, gw, up, "no number of seconds")
    endpoint.bad = None
    lab.wait_for("the next question", lambda: b" 200" in ask(lab, gw, up).out.splitlines()[0])


@test()
def a_stop_waits_for_the_next_refresh_token(lab):
    endpoint = TokenEndpoint(lab)
    endpoint.bad = "slow"
    source = (f"oauth2: {{ url: {endpoint.url}/oauth/token, grant: refresh_token, {CLIENT}, "
              "refresh_token: { store: refresh } }")
    up, gw = gateway(lab, source, endpoint, {"client": endpoint.secret.encode(), "refresh": endpoint.refresh.encode()})
    client = lab.start(["curl", "-sS", f"https://{up.name}:{up.port}/ok"], env=gw.client_env())
    lab.wait_for("the question", lambda: endpoint.asked)
    gw.process.signal(15)
    client.wait()  # whoever relays for it has ended: the token is spent, and its answer is not there yet
    assert gw.process.popen.poll() is None
    endpoint.bad = None
    endpoint.released.set()
    assert gw.process.wait() == 0
    gw.up()
    passes(lab, gw, up)
    gw.recorded(about="secret", fits=lambda r: r["what"].get("act") == "rotated")


@test()
def a_jwt_is_exchanged_for_a_token(lab):
    endpoint = TokenEndpoint(lab)
    jwt = lab.secret_file("jwt", "eyJhbGciOiJSUzI1NiJ9.canary.canary")
    source = f"oauth2: {{ url: {endpoint.url}/oauth/token, grant: jwt_bearer, {CLIENT}, assertion: {{ file: {jwt} }} }}"
    up, gw = gateway(lab, source, endpoint, {"client": endpoint.secret.encode()})
    passes(lab, gw, up)
    assert endpoint.asked[0]["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    assert endpoint.asked[0]["assertion"] == ["eyJhbGciOiJSUzI1NiJ9.canary.canary"]


@test()
def a_token_is_exchanged_for_another(lab):
    kind = "urn:ietf:params:oauth:token-type:access_token"
    endpoint, up, gw = setup(lab, f"grant: token_exchange, {CLIENT}, subject_token: {{ store: subject }}, "
                                  f"subject_token_type: '{kind}', resource: https://api.test/",
                             store={"subject": b"subject-canary-1"})
    passes(lab, gw, up)
    assert endpoint.asked[0]["subject_token"] == ["subject-canary-1"] and endpoint.asked[0]["subject_token_type"] == [kind]


BAD = {"hang": "did not answer in time", "500": "answered 500", "long": "longer than 256 KiB", "not json": "not a JSON object",
       "redirect": "answered 302", "cut": "cannot be asked", "newline": "control character", "no token": "no access_token",
       "another type": "not of type Bearer", "no number": "no number of seconds"}


def bad_answer(bad, words):
    def run(lab):
        endpoint, up, gw = setup(lab, f"grant: client_credentials, {CLIENT}, timeout: 2s", bad=bad)
        refused(lab, gw, up, words)
        asked = len(endpoint.asked)
        assert b"502" in ask(lab, gw, up).out.splitlines()[0]
        assert len(endpoint.asked) == asked, "a failure is remembered for a while"
    run.__name__ = f"an_answer_that_is_bad_is_refused_in_words_{bad.replace(' ', '_')}"
    return run


for name, said in BAD.items():
    test("D24 config")(bad_answer(name, said))


@test()
def the_wrong_secret_is_told_by_its_code_alone(lab):
    endpoint = TokenEndpoint(lab)
    source = f"oauth2: {{ url: {endpoint.url}/oauth/token, grant: client_credentials, {CLIENT} }}"
    up, gw = gateway(lab, source, endpoint, {"client": b"another-secret"})
    refused(lab, gw, up, "answered 401: invalid_client")
    told_by_doctor(lab, gw, "answered 401: invalid_client")
    gw.cli("secret", "rm", "client", rc=0)
    refused(lab, gw, up, "client_secret, which it is asked with", "nothing of that name is in the store")


@test()
def a_server_nobody_vouches_for_is_told_nothing(lab):
    endpoint, other = TokenEndpoint(lab), TokenEndpoint(lab, "other.test")
    source = f"oauth2: {{ url: {endpoint.url}/oauth/token, grant: client_credentials, {CLIENT} }}"
    ca = other.yaml.split('ca: "')[1].split('"')[0]
    endpoint.yaml = endpoint.yaml.replace(endpoint.yaml.split('ca: "')[1].split('"')[0], ca)
    up, gw = gateway(lab, source, endpoint, {"client": endpoint.secret.encode()})
    refused(lab, gw, up, "certificate is not accepted")
    assert endpoint.asked == []


@test()
def a_server_without_a_ca_of_its_own_is_verified_by_the_gateways_roots(lab):
    endpoint = TokenEndpoint(lab)
    endpoint.yaml = endpoint.yaml.replace(f', ca: "{endpoint.ca}"', "")
    source = f"oauth2: {{ url: {endpoint.url}/oauth/token, grant: client_credentials, {CLIENT} }}"
    up, gw = gateway(lab, source, endpoint, {"client": endpoint.secret.encode()}, config=f"roots: {endpoint.ca}\n")
    passes(lab, gw, up)


@test("D17")
def a_server_is_held_to_what_an_upstream_is(lab):
    endpoint = TokenEndpoint(lab, sans=["email:x@login.test"])  # its name is in the subject alone
    source = f"oauth2: {{ url: {endpoint.url}/oauth/token, grant: client_credentials, {CLIENT} }}"
    up, gw = gateway(lab, source, endpoint, {"client": endpoint.secret.encode()})
    refused(lab, gw, up, "certificate is not accepted")
    assert endpoint.asked == []


@test()
def a_private_address_that_no_upstream_names_is_not_dialled(lab):
    endpoint = TokenEndpoint(lab)
    source = f"oauth2: {{ url: {endpoint.url}/oauth/token, grant: client_credentials, {CLIENT} }}"
    endpoint.yaml = endpoint.yaml.replace(', allow_private: ["127.0.0.1/32"]', "")
    up, gw = gateway(lab, source, endpoint, {"client": endpoint.secret.encode()})
    refused(lab, gw, up, "private address")
    assert endpoint.asked == []


def writing(lab, gw, up, path="/things"):
    env = gw.client_env()
    return lab.start(["curl", "-sS", "--suppress-connect-headers", "-D", "-", "--data-binary", "a=1",
                      f"https://{up.name}:{up.port}{path}"], env=env)


@test()
def what_is_approved_is_not_said_to_be_sent_while_its_credential_is_fetched(lab):
    endpoint, up, gw = setup(lab, f"grant: client_credentials, {CLIENT}, timeout: 10s", bad="hang")
    client = writing(lab, gw, up)
    ticket = gw.pending()["id"]
    said = gw.cli("approvals", "approve", ticket, rc=0).out.decode()
    assert "on its way" in said and "sent" not in said, said
    endpoint.bad = "500"
    endpoint.released.set()
    assert client.wait() == 0
    assert up.effects() == {}


@test("D24")
def a_write_that_waits_for_its_credential_is_denied_by_a_reload(lab):
    endpoint = TokenEndpoint(lab)
    endpoint.bad = "hang"
    source = f"oauth2: {{ url: {endpoint.url}/oauth/token, grant: client_credentials, {CLIENT} }}"
    up, gw = gateway(lab, source, endpoint, {"client": endpoint.secret.encode()})
    policy = gw.policy.read_text()
    client = writing(lab, gw, up)
    gw.approve(gw.pending()["id"])
    lab.wait_for("the question", lambda: endpoint.asked)
    gw.policy.write_text(policy.replace("decide: hold", "decide: deny").replace("use: api\n    approve: { within: 2h }", 'say: "Writes are off."'))
    gw.cli("reload", rc=0)
    assert client.wait() == 0 and b"policy-changed" in client.seen, client.seen
    endpoint.bad = None
    endpoint.released.set()
    assert up.effects() == {}


@test()
def nothing_of_it_is_left_when_it_is_over(lab):
    endpoint, up, gw = setup(lab, bad="hang")
    import threading
    result = []
    gw.client_env()
    thread = threading.Thread(target=lambda: result.append(ask(lab, gw, up)))
    thread.start()
    lab.wait_for("the question", lambda: endpoint.asked)
    job = lab.wait_for("the job", lambda: gw.pid("fetch-http"))
    status = open(f"/proc/{job}/status", encoding="ascii").read()
    assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status, status
    if os.geteuid() == 0:
        assert "Uid:\t0" not in status, "it runs as root"
    gw.kill("keeper")
    lab.wait_for("its end", lambda: not os.path.exists(f"/proc/{job}"))
    thread.join()
    assert b"502" in result[0].out.splitlines()[0], result[0].text()


main()
