#!/usr/bin/env python3
"""A credential whose source is a real token endpoint: npm's oidc-provider, which knows nothing of us. (What a bad one gets:
test_oauth2.py.)"""
import base64
import json
import ssl
import types
import urllib.parse
import urllib.request

import room  # noqa: F401
from asking import bearers, gateway, passes, refused
import certs
from gateway import upstream_yaml
from harness import HERE, PATIENCE, main, test
from jose import Key
from ports import free_port
from servers import npm_modules

SECRET = "s3cret/of:the client+100 %"


class Endpoint:
    """A name, a port and a certificate; start() has it answer, for who brings this secret."""

    def __init__(self, lab, **config):
        self.lab, self.dir, self.name, self.port = lab, lab.exempt(lab.dir / "oidc"), "login.test", free_port()
        self.dir.mkdir()
        self.ca = certs.CA(self.dir / "ca")
        cert, key = self.ca.leaf(self.name)
        self.issuer = f"https://{self.name}:{self.port}"
        self.config = {"issuer": self.issuer, "port": self.port, "cert": str(cert), "key": str(key), "scopes": ["read", "write"], "ttl": 600, **config}
        self.yaml = upstream_yaml(self.name, self.port, self.ca.cert)
        lab.canary(SECRET)

    def start(self, **client):
        known = [{"client_id": "agents", "scope": "read write", **client}, {"client_id": "test", "client_secret": "of-the-test"}]
        (self.dir / "config.json").write_text(json.dumps({**self.config, "clients": known}))
        process = self.lab.start(["node", HERE / "lab/oidc.cjs", npm_modules(HERE / "npm") / "node_modules", self.dir / "config.json"], ready="ready")
        self.lab.exempt(process.log)

    def says_of(self, token):
        """What the endpoint itself says that it is."""
        request = urllib.request.Request(f"https://localhost:{self.port}/token/introspection", urllib.parse.urlencode({"token": token}).encode(), headers={
            "Authorization": "Basic " + base64.b64encode(b"test:of-the-test").decode(), "Host": f"{self.name}:{self.port}"})
        context = ssl.create_default_context(cafile=str(self.ca.cert))
        context.check_hostname = False
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        with opener.open(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())


def setup(lab, more, store, client=None, **config):
    """client: what the endpoint knows of it, by default its secret alone."""
    endpoint = Endpoint(lab, **config)
    endpoint.start(**(client or {"client_secret": SECRET}))
    up, gw = gateway(lab, f"oauth2: {{ url: {endpoint.issuer}/token, grant: client_credentials, client_id: agents, scope: read, {more} }}",
                     types.SimpleNamespace(yaml=endpoint.yaml), store)
    return endpoint, up, gw


def was_given(lab, endpoint, up, scope="read"):
    token = lab.canary(bearers(up)[-1].removeprefix("Bearer "))
    said = endpoint.says_of(token)
    assert said["active"] and (said["client_id"], said["scope"], said["token_type"]) == ("agents", scope, "Bearer"), said


BASIC = "client_secret: { store: client }"


@test()
def a_client_is_known_by_basic(lab):
    endpoint, up, gw = setup(lab, BASIC, {"client": SECRET.encode()})
    for _ in range(3):
        passes(lab, gw, up)
    assert len(set(bearers(up))) == 1
    was_given(lab, endpoint, up)
    assert b"gives a value that fits" in gw.cli("secret", "check", "api", rc=0).out


@test()
def a_client_is_known_by_its_form(lab):
    endpoint, up, gw = setup(lab, f"{BASIC}, auth: body", {"client": SECRET.encode()},
                             {"client_secret": SECRET, "token_endpoint_auth_method": "client_secret_post"})
    passes(lab, gw, up)
    was_given(lab, endpoint, up)


@test()
def a_client_is_known_by_what_its_key_signed(lab):
    """private_key_jwt: the endpoint has what `countersign secret jwks` prints, and no secret."""
    own, endpoint = Key(lab, "ec"), Endpoint(lab)
    jwt = f"{{ jwt: {{ key: {{ store: signer }}, iss: agents, sub: agents, aud: '{endpoint.issuer}' }} }}"
    up, gw = gateway(lab, f"oauth2: {{ url: {endpoint.issuer}/token, grant: client_credentials, client_id: agents, scope: read write, client_assertion: {jwt} }}",
                     types.SimpleNamespace(yaml=endpoint.yaml), {"signer": own.pem})
    keys = json.loads(gw.cli("secret", "jwks", "signer", rc=0).out)
    endpoint.start(token_endpoint_auth_method="private_key_jwt", token_endpoint_auth_signing_alg="ES256", jwks=keys)
    passes(lab, gw, up)
    was_given(lab, endpoint, up, "read write")


@test()
def a_token_is_asked_for_again_when_most_of_its_life_is_over(lab):
    endpoint, up, gw = setup(lab, BASIC, {"client": SECRET.encode()}, ttl=3)

    def again():
        passes(lab, gw, up)
        return len(set(bearers(up))) > 1
    lab.wait_for("another token", again)
    was_given(lab, endpoint, up)


@test()
def what_it_refuses_is_told_by_its_code(lab):
    endpoint, up, gw = setup(lab, BASIC, {"client": b"another-secret-of-it"}, {"client_secret": SECRET, "scope": "read"})
    refused(lab, gw, up, "the token endpoint answered 401: invalid_client")
    gw.cli("secret", "set", "client", stdin=SECRET.encode(), rc=0)
    gw.policy.write_text(gw.policy.read_text().replace("scope: read,", "scope: write,"))
    gw.cli("reload", rc=0)
    refused(lab, gw, up, "the token endpoint answered 400: invalid_scope")
    gw.policy.write_text(gw.policy.read_text().replace("scope: write,", "scope: read,"))
    gw.cli("reload", rc=0)
    lab.wait_for("a token", lambda: gw.cli("secret", "check", "api").rc == 0)
    passes(lab, gw, up)
    was_given(lab, endpoint, up)


if __name__ == "__main__":
    main()
