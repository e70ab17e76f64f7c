#!/usr/bin/env python3
"""What SDKs ask for credentials by themselves (metadata of AWS and Google, a token endpoint) is answered with leases: unmodified SDKs
work in `countersign run` without a variable of a key, and no such request, nor anything real, goes anywhere."""
import json
import os
import re
import secrets

from clients import BOTO3, NODE, PYTHON, REGION, Inside
from gateway import Gateway, upstream_yaml
from harness import HERE, PATIENCE, Skip, main, test
from servers import npm_modules
from signing import Signed

STUBBED = "\n    lease: aws\n    require_lease: true\n    stub: aws"
INSTANCE, ROLES = "http://169.254.169.254", "/latest/meta-data/iam/security-credentials/"
CONTAINER = "http://169.254.170.2/v2/credentials"
CURL = ["curl", "-sS", "--max-time", str(PATIENCE)]
# Its own chain, with more patience than its second: this machine may have much else to do.
PATIENT = NODE.replace("forcePathStyle: true", "forcePathStyle: true, credentials: "
                       f"require('@aws-sdk/credential-provider-node').defaultProvider({{ timeout: {1000 * PATIENCE} }})")
GOOGLE = """
const { GoogleAuth } = require("google-auth-library");
(async () => {
  const client = await new GoogleAuth({ scopes: "https://www.googleapis.com/auth/cloud-platform" }).getClient();
  console.log(client.constructor.name, (await client.request({ url: process.argv[1] })).status);
})();
"""


class Instance:
    """The service that verifies signatures, and sandboxes that nobody gave a key."""

    def __init__(self, lab):
        self.signed = Signed(lab, f"sigv4: {{ region: {REGION}, service: s3 }}", lease=STUBBED)
        self.gw, self.url = self.signed.gw, self.signed.url
        self.inside = Inside(lab, self.gw)

    def __call__(self, *words, early=None, options=()):
        more = sum((["--setenv", f"AWS_{name}"] for name in (
            f"DEFAULT_REGION={REGION}", f"REGION={REGION}", "PAGER=", "MAX_ATTEMPTS=1", f"METADATA_SERVICE_TIMEOUT={PATIENCE}")), [])
        return self.inside(*words, options=[*more, *(self.inside.early(early) if early else []), *options])

    def leases(self):
        return [r for r in self.gw.cli_json("lease", "list")["leases"]]


def code(answer):
    found = re.search(rb'"code":"([a-z-]+)"', answer)
    return found[1].decode() if found else None


def lines_of(done):
    return [line for line in done.out.splitlines() if line]


@test()
def the_aws_cli_and_boto3_with_a_role_of_an_instance(lab):
    s = Instance(lab)
    if not os.path.exists("/usr/bin/aws"):
        raise Skip("awscli of Debian (conf/need test)")
    (s.inside.work / "small").write_bytes(os.urandom(1024))
    (s.inside.work / "client.py").write_text(BOTO3)
    done = s("sh", "-ec", f"aws --endpoint-url {s.url} s3 cp --no-progress small s3://bucket/small; /usr/bin/python3 client.py {s.url}; env", early="python")
    s.signed.all_were_right(3)
    s.inside.had_no_secret(PYTHON, early=True)
    assert b"AWS_ACCESS_KEY_ID" not in done.out, done.text()
    # Two programs, one lease: it is given again until little of its time is left.
    (lease,) = s.leases()
    assert lease["credential"] == "keys" and lease["by"] == "a stub", lease
    mine = s.gw.recorded(6, kind="answered")
    assert {r["code"] for r in mine} == {"stub"} and {r["credential"] for r in mine} == {"keys"}, mine
    assert {r["host"] for r in mine} == {"169.254.169.254"} and "/latest/api/token" in {r["path"] for r in mine}, mine
    assert s.gw.cli("audit", "verify").rc == 0
    # Another run is another sandbox.
    s("sh", "-ec", f"aws --endpoint-url {s.url} s3 cp --no-progress small s3://bucket/again")
    assert len({r["sandbox"] for r in s.leases()}) == 2, s.leases()


@test()
def a_container_for_boto3_and_the_sdk_for_javascript(lab):
    s = Instance(lab)
    modules = npm_modules(HERE / "npm") / "node_modules"
    (s.inside.work / "client.py").write_text(BOTO3)
    given = sum((["--setenv", v] for v in (f"AWS_CONTAINER_CREDENTIALS_FULL_URI={CONTAINER}", "AWS_CONTAINER_AUTHORIZATION_TOKEN=stub")), [])
    s("/usr/bin/python3", "client.py", s.url, early="python", options=given)
    s.inside.had_no_secret(PYTHON, early=True)
    done = s("node", "-e", PATIENT, s.url, early="node", options=[*given, "--read", modules, "--setenv", f"NODE_PATH={modules}"])
    assert done.out == b"from node\n", done.text()
    s.inside.had_no_secret("node", early=True)
    s.signed.all_were_right(5)
    rows = s.gw.recorded(2, kind="answered")
    assert {r["host"] for r in rows} == {"169.254.170.2"}, rows


@test()
def the_sdk_for_javascript_with_a_role_of_an_instance(lab):
    s = Instance(lab)
    modules = npm_modules(HERE / "npm") / "node_modules"
    done = s("node", "-e", PATIENT, s.url, options=["--read", modules, "--setenv", f"NODE_PATH={modules}"])
    assert done.out == b"from node\n", done.text()
    s.signed.all_were_right(3)


class Tokens:
    """A service that takes a token, whose leases are given as Google and a token endpoint give theirs."""

    def __init__(self, lab, stub):
        self.up = lab.upstream("upstream.test", "login.test")
        self.secret = lab.canary(secrets.token_urlsafe(32))
        place = f"host: {self.up.name}, port: {self.up.port}"
        self.gw = Gateway(lab, f"""version: 1
name: tokens
upstreams:
{upstream_yaml(self.up.name, self.up.port, self.up.ca)}{upstream_yaml("login.test", self.up.port, self.up.ca)}
credentials:
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    lease: generic
    require_lease: true
    {stub.format(port=self.up.port)}
    only: [{{ {place} }}]
rules:
  - {{ id: api, match: {{ {place}, effect: read }}, decide: allow, use: api }}
""", {"api": self.secret.encode()})
        self.inside, self.url = Inside(lab, self.gw), f"https://{self.up.name}:{self.up.port}/ok"

    def got_the_secret(self, n):
        asked = self.up.requests()
        assert len(asked) == n and all(f"Bearer {self.secret}" in json.dumps(r) and "cs_" not in json.dumps(r) for r in asked), asked


@test()
def googles_metadata(lab):
    t = Tokens(lab, "stub: google")
    base = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
    flavor = '-H "Metadata-Flavor: Google"'
    ask = " ".join(CURL)
    done = t.inside("sh", "-ec", f"""{ask} {base}; echo; {ask} {flavor} -H 'X-Forwarded-For: 10.0.0.1' {base}; echo
{ask} {flavor} {base}; echo; {ask} -i {flavor} {INSTANCE}/ | tr -d '\\r'
token=$({ask} {flavor} {base} | sed 's/.*"access_token":"//; s/".*//'); {ask} -w '%{{http_code}}' -o /dev/null -H "Authorization: Bearer $token" {t.url}""")
    refused, forwarded, token, *rest = lines_of(done)
    assert code(refused) == "stub-header" and code(forwarded) == "stub-forwarded", done.text()
    said = json.loads(token)
    assert said["token_type"] == "Bearer" and 21000 < said["expires_in"] <= 21600 and said["access_token"].startswith("cs_"), said
    assert b"Metadata-Flavor: Google" in rest and rest[-1] == b"200", done.text()
    t.got_the_secret(1)
    assert t.secret.encode() not in done.both
    (lease,) = t.gw.cli_json("lease", "list")["leases"]
    assert lease["by"] == "a stub", lease


@test()
def googles_library(lab):
    t = Tokens(lab, "stub: google")
    modules = npm_modules(HERE / "npm") / "node_modules"
    # It gives the server three seconds to show itself unless it is told that there is one.
    told = ["--setenv", "METADATA_SERVER_DETECTION=assume-present", "--read", modules, "--setenv", f"NODE_PATH={modules}"]
    done = t.inside("node", "-e", GOOGLE, t.url, options=told)
    assert done.out == b"Compute 200\n", done.text()
    t.got_the_secret(1)


@test()
def a_token_endpoint(lab):
    t = Tokens(lab, 'stub: oauth\n    token_url: "https://login.test:{port}/oauth2/token"')
    at = f"https://login.test:{t.up.port}/oauth2/token"
    ask = " ".join(CURL)
    done = t.inside("sh", "-ec", f"""{ask} -d grant_type=client_credentials -d client_id=me -d client_secret=any {at}; echo; {ask} -d grant_type=magic {at}; echo
{ask} -d client_id=me {at}; echo; {ask} {at}; echo; {ask} https://login.test:{t.up.port}/elsewhere; echo
{ask} --data-urlencode grant_type=urn:ietf:params:oauth:grant-type:token-exchange -d subject_token=x {at}; echo
token=$({ask} -d grant_type=refresh_token -d refresh_token=x {at} | sed 's/.*"access_token":"//; s/".*//')
{ask} -w '%{{http_code}}' -o /dev/null -H "Authorization: Bearer $token" {t.url}""")
    token, unknown, none, get, elsewhere, exchanged, status = lines_of(done)
    assert json.loads(token)["access_token"].startswith("cs_") and json.loads(token)["token_type"] == "Bearer", token
    assert json.loads(unknown) == {"error": "unsupported_grant_type"} and json.loads(none) == {"error": "invalid_request"}, done.text()
    assert code(get) == "bad-method" and code(elsewhere) == "denied", done.text()
    assert json.loads(exchanged)["issued_token_type"].endswith(":access_token") and status == b"200", done.text()
    t.got_the_secret(1)  # and nothing went to login.test, which is the same server


@test()
def what_the_services_refuse_is_refused_here(lab):
    s = Instance(lab)
    ask, token = " ".join(CURL), f"{INSTANCE}/latest/api/token"
    ttl, mine = '-H "X-aws-ec2-metadata-token-ttl-seconds: 60"', '-H "X-aws-ec2-metadata-token: $t"'
    lines = [f"{ask} {INSTANCE}{ROLES}", f"{ask} -H 'X-aws-ec2-metadata-token: AAAA' {INSTANCE}{ROLES}", f"{ask} -X PUT {token}", f"{ask} {ttl} {token}",
             f"{ask} {ttl} -X PUT -H 'X-Forwarded-For: 10.0.0.1' {token}", f"{ask} {mine} {INSTANCE}/latest/user-data", f"{ask} {CONTAINER}",
             f"{ask} {INSTANCE}/", f"{ask} {INSTANCE}:8080{ROLES}", f"{ask} {mine} {INSTANCE}{ROLES}", f"{ask} {mine} {INSTANCE}/latest/meta-data/placement/region"]
    done = s("sh", "-c", f"t=$({ask} {ttl} -X PUT {token}); " + "; ".join(line + "; echo" for line in lines))
    answers = lines_of(done)
    assert [code(a) or a.decode() for a in answers] == [
        "stub-token", "stub-token", "stub-bad-request", "bad-method", "stub-forwarded", "not-found", "stub-token", "denied", "denied", "keys", REGION], done.text()
    assert s.leases() == [], "no lease is made before one is asked for"


@test()
def by_the_proxy_too_and_never_again_once_it_was_revoked(lab):
    s = Instance(lab)
    env = s.gw.client_env("ci")
    ask = lambda *words: lab.run([*CURL, *words], env=env, rc=0).out  # noqa: E731
    asked = [*CURL, "-H", "Authorization: any", CONTAINER]
    first = json.loads(lab.run(asked, env=env, rc=0).out)
    assert first == json.loads(lab.run(asked, env=env, rc=0).out), "the same one"
    assert first["AccessKeyId"].startswith("AKIA") and first["Token"] == first["AccessKeyId"] and len(first["SecretAccessKey"]) == 40
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["Expiration"]), first
    other = json.loads(lab.run(asked, env=s.gw.client_env("docs"), rc=0).out)
    assert other["AccessKeyId"] != first["AccessKeyId"]
    (mine,) = [r for r in s.leases() if r["sandbox"] == "ci"]
    s.gw.cli("lease", "revoke", mine["id"], rc=0)
    assert code(ask("-H", "Authorization: any", CONTAINER)) == "lease-ended"
    assert json.loads(lab.run(asked, env=s.gw.client_env("docs"), rc=0).out) == other
    # A judge that begins anew is told so again.
    s.gw.kill("judge")
    lab.wait_for("still no other one", lambda: code(lab.run(asked, env=env).out) == "lease-ended")
    # The sandbox begins anew, and so does this.
    s.gw.cli("sandbox", "rm", "ci", rc=0)
    s.gw.tokens.pop("ci")
    env.update(s.gw.client_env("ci"))
    again = json.loads(ask("-H", "Authorization: any", CONTAINER))
    assert again["AccessKeyId"] not in (first["AccessKeyId"], other["AccessKeyId"]), again


if __name__ == "__main__":
    main()
