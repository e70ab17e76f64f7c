#!/usr/bin/env python3
"""A credential whose source is a program that nobody changed: Debian's AWS CLI, which takes a role with a sealed key, asking STS through
the proxy of its network. What any program may and may not: test_exec_hosts.py."""
import email.message
import os
import shutil

import room  # noqa: F401
from asking import gateway, passes, refused
from counterparts import STS
from harness import Skip, main, test
from signed import Verifier

KEYS = "join(':', [Credentials.AccessKeyId, Credentials.SecretAccessKey, Credentials.SessionToken])"


def setup(lab, key=None):
    if not os.path.exists("/usr/bin/aws"):
        raise Skip("awscli of Debian (conf/need test)")
    sts, folder = STS(lab), lab.dir / "for-programs"
    folder.mkdir()
    shutil.copy(sts.ca, folder / "ca.pem")
    os.chmod(folder / "ca.pem", 0o644)
    argv = ["/usr/bin/aws", "sts", "assume-role", "--endpoint-url", sts.url, "--role-arn", STS.role, "--role-session-name", "agents",
            "--query", KEYS, "--output", "text"]
    env = {"AWS_ACCESS_KEY_ID": f"'{sts.user.id}'", "AWS_SECRET_ACCESS_KEY": "{ store: user }", "AWS_DEFAULT_REGION": STS.region,
           "AWS_CA_BUNDLE": str(folder / "ca.pem"), "AWS_EC2_METADATA_DISABLED": "'true'", "HOME": str(folder)}
    up, gw = gateway(lab, f"""exec: {{ argv: [{", ".join(f'"{word}"' for word in argv)}], hosts: ["{sts.name}:{sts.port}"], timeout: 25s,
                     env: {{ {", ".join(f"{name}: {value}" for name, value in env.items())} }} }}""", sts, {"user": (key or sts.user.secret).encode()},
                     inject="sigv4: { region: eu-central-1, service: s3 }")
    return sts, up, gw


@test()
def the_aws_cli_takes_a_role_and_its_keys_sign(lab):
    sts, up, gw = setup(lab)
    for _ in range(3):
        passes(lab, gw, up)
    assert len(sts.given) == 1 and [form["Action"] for form in sts.asked] == ["AssumeRole"], sts.asked
    for r in up.requests():
        headers = email.message.Message()
        for name, value in r["fields"]:
            headers[name] = value
        Verifier(sts.given[0], r["method"], r["target"], headers, b"").verify()
    assert len(up.requests()) == 3


@test("D24 config")
def a_key_that_sts_does_not_know_is_refused_in_words(lab):
    sts, up, gw = setup(lab, key="canary-of-another-key-of-it")
    refused(lab, gw, up, "ended with status")
    assert sts.asked and not sts.given


if __name__ == "__main__":
    main()
