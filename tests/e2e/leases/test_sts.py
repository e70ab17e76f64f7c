#!/usr/bin/env python3
"""Keys that an STS gives a sandbox, in JSON or XML: what comes in is a pair, which its tools sign with, and the service
(lab/signed.py) takes the keys' signatures, session token and all."""
import base64
import hashlib
import json
import re
import urllib.parse

import room  # noqa: F401
from clients import PYTHON, REGION, Storage
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
                                          "ExpiredTime": 1900000000.25, "Expiration": "2030-03-17T17:46:40Z", "RequestId": "r-1"}}).encode()
        raw = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer
        (self.sts.dir / "script.json").write_text(json.dumps({"/keys": "/raw?b64=" + urllib.parse.quote(base64.b64encode(raw).decode(), safe="")}))
        place = f"host: {self.sts.name}, port: {self.sts.port}"
        text = self.gw.policy.read_text().replace("    source: { store: keys }\n", """    source:
      answer:
        to: sts
        token: /Response/Credentials/TmpSecretId
        key: /Response/Credentials/TmpSecretKey
        session_token: /Response/Credentials/Token
        expires_at: /Response/ExpiredTime
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
    assert said["Expiration"] and said["ExpiredTime"] == 1900000000.25 and said["RequestId"] == "r-1" and keys["Token"] == keys["TmpSecretId"], said
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


RESULT = "/AssumeRoleResponse/AssumeRoleResult"
ARN = "arn:aws:iam::123456789012:role/agents"


class Role(Storage):
    """A role of AWS: sandboxes have a pair of the keys that it is assumed with, and what STS answers is of use for one service."""

    def __init__(self, lab, service, more=""):
        super().__init__(lab, f"sigv4: {{ region: {REGION}, service: sts }}", role=True)
        gw = self.signed.gw
        text = gw.policy.read_text()
        place = text.split("only: [{ ")[1].split(" }")[0]
        head = text[:text.index("rules:")]
        gw.policy.write_text(f"""{head}  role:
    source:
      answer:
        to: keys
        token: {RESULT}/Credentials/AccessKeyId
        key: {RESULT}/Credentials/SecretAccessKey
        session_token: {RESULT}/Credentials/SessionToken
        expires_at: {RESULT}/Credentials/Expiration
        keep: [{RESULT}/AssumedRoleUser, {RESULT}/PackedPolicySize]
    inject: {{ sigv4: {{ region: {REGION}, service: {service} }} }}
    lease: aws
    only: [{{ {place} }}]
rules:
  - {{ id: assume, match: {{ {place}, method: POST, path: /, form: [{{ field: Action, equals: AssumeRole }}] }}, decide: allow, use: keys }}
  - {{ id: who, match: {{ {place}, method: POST, path: /, form: [{{ field: Action, equals: GetCallerIdentity }}] }}, decide: allow, use: role }}
  - {{ id: objects, match: {{ {place}, path: "/bucket/**" }}, decide: allow, use: role }}
""")
        gw.cli("reload", rc=0)


@test()
def the_aws_cli_assumes_a_role(lab):
    r = Role(lab, "sts")
    aws = f"aws --endpoint-url {r.url} sts"
    done = r("aws", "sh", "-ec", f"{aws} assume-role --role-arn {ARN} --role-session-name it --duration-seconds 900 > said; cat said; "
             "key() { python3 -c 'import json,sys; print(json.load(open(\"said\"))[\"Credentials\"][sys.argv[1]])' $1; }; "
             "export AWS_ACCESS_KEY_ID=$(key AccessKeyId) AWS_SECRET_ACCESS_KEY=$(key SecretAccessKey) "
             f"AWS_SESSION_TOKEN=$(key SessionToken); {aws} get-caller-identity", early="python")
    said = json.loads(done.out[:done.out.index(b"}\n{") + 2])
    keys = said["Credentials"]
    assert re.fullmatch(r"A[KS]IA[A-Z2-7]{16}", keys["AccessKeyId"]) and keys["SessionToken"] == keys["AccessKeyId"], said
    assert said["AssumedRoleUser"]["Arn"].endswith("assumed-role/agents/it") and keys["Expiration"] > "2026", said
    assert said["PackedPolicySize"] == 6 and "SourceIdentity" not in said and b"assumed-role/agents" in done.out[done.out.index(b"}\n{"):], done.text()
    r.signed.all_were_right(2)
    r.inside.had_no_secret(PYTHON, early=True)


BOTO3 = """
import sys, boto3, botocore.config
said = boto3.client("sts", endpoint_url=sys.argv[1]).assume_role(RoleArn=sys.argv[2], RoleSessionName="it")
keys = said["Credentials"]
assert keys["Expiration"].tzinfo and said["AssumedRoleUser"]["AssumedRoleId"] == "AROA123:it" and said["PackedPolicySize"] == 6, said
session = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
s3 = session.client("s3", endpoint_url=sys.argv[1], config=botocore.config.Config(s3={"addressing_style": "path"}))
s3.put_object(Bucket="bucket", Key="a", Body=b"from boto3")
assert s3.get_object(Bucket="bucket", Key="a")["Body"].read() == b"from boto3"
try:
    boto3.client("s3", endpoint_url=sys.argv[1]).head_object(Bucket="bucket", Key="a")
except botocore.exceptions.ClientError as why:
    print("with the keys themselves:", why)
"""


@test()
def boto3_assumes_a_role(lab):
    r = Role(lab, "s3")
    r.signed.gw.lab.expects("a lease of sandbox")
    (r.inside.work / "assume.py").write_text(BOTO3)
    done = r("python3", "/usr/bin/python3", "assume.py", r.url, ARN, early="python")
    assert b"with the keys themselves:" in done.out, done.text()
    r.signed.all_were_right(3)
    r.inside.had_no_secret(PYTHON, early=True)


if __name__ == "__main__":
    main()
