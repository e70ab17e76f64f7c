#!/usr/bin/env python3
"""A credential that lies here: in a file, in the gateway's own environment, in the sealed store (systemd's: test_exec.py). What
reaches the upstream, what becomes of a change, and what a bad one gets."""
import base64
import os
import secrets

import room  # noqa: F401
from asking import ask, bearers, gateway, passes, refused
from harness import main, test


def token(lab):
    return lab.canary(secrets.token_urlsafe(32))


def covered(lab, gw, up, value):
    """An echo of it is: it is still looked for."""
    body = f"<{value}>".encode()
    raw = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    up.script({"/said": "/raw?b64=" + base64.b64encode(raw).decode().replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")})
    done = ask(lab, gw, up, "/said")
    assert b" 200" in done.out.splitlines()[0] and b"*" * len(value) in done.out, done.text()


def used(lab, gw, up, value):
    def once():
        passes(lab, gw, up)
        return bearers(up)[-1] == f"Bearer {value}"
    lab.wait_for("the new value", once)


def ended(lab, gw, up):
    """What was released is used for two seconds more."""
    lab.wait_for("its end", lambda: b"credential-unavailable" in ask(lab, gw, up).out)


@test()
def a_file_is_read_again_when_it_changed(lab):
    first, second = token(lab), token(lab)
    path = lab.secret_file("token", first)
    up, gw = gateway(lab, f"file: {path}", None)
    for _ in range(3):
        passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {first}"] * 3
    path.write_text(second + "\n")  # in its place, with the end of a line
    used(lab, gw, up, second)
    for value in (first, second):
        covered(lab, gw, up, value)
    third = token(lab)
    path.unlink()
    ended(lab, gw, up)
    refused(lab, gw, up, "deleted or replaced by another", "reload the policy")
    lab.secret_file("token", third)
    refused(lab, gw, up, "deleted or replaced by another")
    gw.cli("reload", rc=0)
    used(lab, gw, up, third)
    assert b"gives a value that fits" in gw.cli("secret", "check", "api", rc=0).out


def linked(path):
    other = path.with_name("elsewhere")
    path.rename(other)
    path.symlink_to(other)


def instead(make):
    def prepare(path):
        path.unlink()
        make(path)
    return prepare


BAD = {"others_may_read": (lambda path: path.chmod(0o644), "others may read it"), "a_group_may_read": (lambda path: path.chmod(0o640), "chmod 600"),
       "is_a_link": (linked, "could not be opened"), "is_not_there": (lambda path: path.unlink(), "could not be opened"),
       "is_a_folder": (instead(lambda path: path.mkdir(0o700)), "not a regular file"), "is_a_pipe": (instead(lambda path: os.mkfifo(path, 0o600)), "not a regular file"),
       "is_empty": (lambda path: path.write_text(""), "the value is empty"), "is_short": (lambda path: path.write_text("abc\n"), "shorter than"),
       "is_long": (lambda path: path.write_text("a" * 20_000), "longer than"), "is_huge": (lambda path: os.truncate(path, 1 << 26), "longer than"),
       "has_two_lines": (lambda path: path.write_text("canary-of-a-file\nX-Evil: 1\n"), "control character"),
       "has_a_nul": (lambda path: path.write_bytes(b"canary-of-a-file\0"), "control character")}


def bad_file(name):
    prepare, words = BAD[name]

    def run(lab):
        path = lab.secret_file("token", token(lab))
        lab.exempt(path.with_name("elsewhere"))
        prepare(path)
        up, gw = gateway(lab, f"file: {path}", None)
        refused(lab, gw, up, words)
    run.__name__ = f"a_file_that_{name}_is_refused_in_words"
    return run


for each in BAD:
    test("D24 config")(bad_file(each))


@test()
def a_variable_is_taken_once_and_is_in_no_other_role(lab):
    value = token(lab)
    up, gw = gateway(lab, "env: SERVICE_TOKEN", None, env={"SERVICE_TOKEN": value})
    passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {value}"]
    covered(lab, gw, up, value)
    for role in ("judge", "carrier", "ledger", "desk", "resolver", "lobby", "fetcher", "keeper"):
        try:
            with open(f"/proc/{gw.pid(role)}/environ", "rb") as environ:
                assert value.encode() not in environ.read(), role
        except PermissionError:
            assert os.geteuid() != 0, role


@test("D24 config")
def a_variable_that_is_not_set_or_no_value_is_refused_in_words(lab):
    up, gw = gateway(lab, "env: SERVICE_TOKEN", None)
    refused(lab, gw, up, "its variable was not set when the gateway started")
    gw.stop()
    gw.env = {"SERVICE_TOKEN": "canary-of-a-variable\nX-Evil: 1"}
    gw.up()
    refused(lab, gw, up, "control character")


@test("D24 config")
def what_is_not_in_the_store_is_refused_until_it_is_set(lab):
    up, gw = gateway(lab, "store: api", None)
    refused(lab, gw, up, "nothing of that name is in the store", "countersign secret set")
    first, second = token(lab), token(lab)
    gw.cli("secret", "set", "api", stdin=first.encode(), rc=0)
    used(lab, gw, up, first)
    gw.cli("secret", "set", "api", stdin=second.encode() + b"\n", rc=0)
    used(lab, gw, up, second)
    covered(lab, gw, up, first)
    gw.stop()
    gw.up()
    used(lab, gw, up, second)
    gw.cli("secret", "rm", "api", rc=0)
    ended(lab, gw, up)
    refused(lab, gw, up, "nothing of that name is in the store")


if __name__ == "__main__":
    main()
