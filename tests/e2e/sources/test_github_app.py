#!/usr/bin/env python3
"""A credential that is a GitHub App's installation token: what is asked for, with which JWT, and what bad answers and
keys get. The counterpart is written from GitHub's documentation."""
import base64
import os

import room  # noqa: F401
from asking import ask, bearers, gateway, memory, passes, refused
from counterparts import GitHub
from harness import main, test
from jose import Key

NARROW = "repositories: [app, docs], permissions: { contents: write, metadata: read }"


def setup(lab, narrow=NARROW, kind="rsa", key=None, **how):
    own = Key(lab, kind)
    github = GitHub(lab, own.public)
    github.key = own
    for name, value in how.items():
        setattr(github, name, value)
    source = (f"github_app: {{ url: {github.url}, app_id: {github.app}, key: {{ store: app }}, "
              f"installation: 4711, timeout: 2s, {narrow} }}")
    up, gw = gateway(lab, source, github, {"app": key or own.pem})
    return github, up, gw


@test()
def an_installation_token_is_asked_for_what_the_policy_names(lab):
    github, up, gw = setup(lab)
    for _ in range(3):
        passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {github.tokens[0]}"] * 3 and len(github.tokens[0]) > 400
    assert github.narrowed == [{"repositories": ["app", "docs"], "permissions": {"contents": "write", "metadata": "read"}}]
    assert 0 < github.claims[0]["exp"] - github.claims[0]["iat"] <= 600
    assert b"*" in ask(lab, gw, up, "/echo?form=base64").out, "it is looked for in answers"


@test()
def all_repositories_are_asked_for_by_saying_so(lab):
    github, up, gw = setup(lab, 'repositories: ["*"], permissions: { issues: write }')
    passes(lab, gw, up)
    assert github.narrowed == [{"permissions": {"issues": "write"}}]


@test()
def it_is_asked_for_anew_when_most_of_its_life_is_over(lab):
    github, up, gw = setup(lab, lifetime=3)

    def again():
        passes(lab, gw, up)
        return len(github.narrowed) > 1
    lab.wait_for("a second token", again)


BAD = {"hang": "did not answer in time", "500": "GitHub answered 500", "long": "longer than 256 KiB",
       "newline": "control character", "no token": "no token", "no time": "expires_at"}


def bad_answer(bad, words):
    def run(lab):
        _, up, gw = setup(lab, bad=bad)
        refused(lab, gw, up, words)
    run.__name__ = f"an_answer_that_is_bad_is_refused_in_words_{bad.replace(' ', '_')}"
    return run


for name, said in BAD.items():
    test("D24 config")(bad_answer(name, said))


@test()
def what_is_wrong_with_the_app_is_named(lab):
    _, up, gw = setup(lab, key=Key(lab, "rsa").pem)
    refused(lab, gw, up, "401", "the key is not the app's")


@test()
def more_than_the_installation_has_is_named(lab):
    _, up, gw = setup(lab, "repositories: [app], permissions: { administration: write }")
    refused(lab, gw, up, "422", "not all of these")


@test()
def a_value_that_is_no_key_is_named_and_nobody_is_asked(lab):
    github, up, gw = setup(lab, key=b"a-canary-that-is-no-key")
    refused(lab, gw, up, "no private key in PEM")
    assert github.asked == []


@test("D24")
def the_key_is_in_no_process_that_has_a_network(lab):
    github, up, gw = setup(lab, bad="hang")
    client = lab.start(["curl", "-sS", f"https://{up.name}:{up.port}/ok"], env=gw.client_env())
    lab.wait_for("the question", lambda: github.asked)
    der = base64.b64decode("".join(github.key.pem.decode().splitlines()[1:-1]))
    if os.geteuid() == 0:
        there = {role: b"".join(memory(gw.pid(role))) for role in ("fetcher", "fetch-http", "carrier")}
        assert b"/access_tokens" in there["fetch-http"], "its memory is read"
        for role, bytes_ in there.items():
            assert github.key.pem[200:260] not in bytes_ and der[200:260] not in bytes_, f"the key is in the {role}"
    github.released.set()
    client.wait()


main()
