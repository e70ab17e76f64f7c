#!/usr/bin/env python3
"""A sandbox's way in, and its end: a Unix listener of the configuration, a front that dies, a sandbox that is removed."""
import json
import os
import signal
import socket
import stat
import threading

import room  # noqa: F401
from gateway import ROLES, Gateway, simple_policy
from harness import PATIENCE, main, test

WHOAMI = b"GET http://countersign.internal/v1/whoami HTTP/1.1\r\nHost: countersign.internal\r\n"

LISTENERS = ('listeners:\n  - { name: agents, http: "127.0.0.1:0", identity: token }\n'
             '  - { name: one, unix: one.sock, identity: { sandbox: sb-one } }\n')


class Channel(Gateway):
    """A gateway whose configuration has a Unix listener too."""

    def up(self):
        text = self.config.read_text()
        self.config.write_text("".join(LISTENERS if line.startswith("listeners:") else line + "\n"
                                       for line in text.splitlines()))
        super().up()


def gateway(lab):
    return Channel(lab, simple_policy(lab.upstream()), {"api": lab.canary("a-secret-nobody-is-to-see").encode()})


def ask(way, head=""):
    """Who the gateway says one is, over an open connection; b"" when it was closed instead."""
    way.settimeout(PATIENCE)
    try:
        way.sendall(WHOAMI + head.encode() + b"\r\n")
        return way.recv(65536)
    except ConnectionError:
        return b""


def knock(lab):
    way = socket.socket(socket.AF_UNIX)
    way.connect(str(lab.dir / "one.sock"))
    return way


def by_token(gw, name):
    host, port = gw.proxy.split(":")
    return socket.create_connection((host, int(port))), f"Proxy-Authorization: {gw.basic(name)}\r\n"


def sandbox_of(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), answer
    return json.loads(body)["sandbox"]


@test()
def a_unix_listener_of_the_configuration_is_a_sandbox(lab):
    gw = gateway(lab)
    assert stat.S_IMODE(os.stat(lab.dir / "one.sock").st_mode) == 0o600
    with knock(lab) as way:
        assert sandbox_of(ask(way)) == "sb-one"
    found = {s["name"]: s["kind"] for s in gw.cli_json("sandbox", "list")["sandboxes"]}
    assert found["sb-one"] == "channel", found


@test()
def it_is_still_one_after_its_front_or_the_ledger_died(lab):
    gw = gateway(lab)
    for role in ("front", "ledger"):
        with knock(lab) as way:
            assert sandbox_of(ask(way)) == "sb-one"
            gw.kill(role)
        lab.wait_for(f"the sandbox after the {role}", lambda: b'"sb-one"' in ask(knock(lab)))


@test()
def a_front_that_dies_takes_nobody_with_it(lab):
    """The parent is halted meanwhile, so that it learns of the death and of new connections at once."""
    gw = gateway(lab)
    way, auth = by_token(gw, "busy")
    assert sandbox_of(ask(way, auth)) == "busy"
    others = {role: gw.pid(role) for role in ROLES}
    lab.stops(gw.daemon())
    try:
        lab.kills(gw.pid("front"))
        assert way.recv(1) == b""  # its connections are closed with it
        ways = [by_token(gw, "busy") for _ in range(8)]
        for new, auth in ways:
            new.sendall(WHOAMI + auth.encode() + b"\r\n")
        threading.Event().wait(0.3)  # for the lobby to learn whose they are
    finally:
        os.kill(gw.daemon(), signal.SIGCONT)
    for new in (way, *(new for new, _ in ways)):
        new.close()

    def answers():
        new, auth = by_token(gw, "busy")
        with new:
            return b'"busy"' in ask(new, auth)
    lab.wait_for("the sandbox again", answers)
    assert {role: gw.pid(role) for role in ROLES} == others, "more than the front ended"


@test()
def what_came_in_by_a_token_ends_with_its_sandbox(lab):
    gw = gateway(lab)
    way, auth = by_token(gw, "gone")
    assert sandbox_of(ask(way, auth)) == "gone"
    gw.cli("sandbox", "rm", "gone", rc=0)
    gw.tokens.clear()
    gw.token("gone")  # another sandbox of the same name: the old connection is not its
    assert b'"gone"' not in ask(way, auth)
    way.close()

@test()
def a_front_serves_the_session_it_was_started_for_and_no_other(lab):
    """The name is given to another one while the old front hangs: it is ended, and what it had is not the new one's."""
    gw = gateway(lab)
    way, head = by_token(gw, "agent")
    assert sandbox_of(ask(way, head)) == "agent"
    old = gw.pid("front")
    lab.stops(old)
    gw.cli("sandbox", "rm", "agent", rc=0)
    del gw.tokens["agent"]
    new, head = by_token(gw, "agent")
    assert sandbox_of(ask(new, head)) == "agent"
    lab.wait_for("the end of the old front", lambda: not os.path.exists(f"/proc/{old}"))
    assert ask(way) == b"" and sandbox_of(ask(new, head)) == "agent"


main()
