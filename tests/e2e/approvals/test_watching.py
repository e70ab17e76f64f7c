#!/usr/bin/env python3
"""What waits, at a terminal: keys that move, a yes that wants all of it on the screen, and words of a no.

usage: test_watch.py [NAME...]      PREFIX/bin first in PATH
"""
import os
import select
import shutil

import room
from gateway import program
from harness import PATIENCE, main, test
from terminal import Terminal

import time


def press(screen, key, words):
    """A key is not taken in the first moments of what is shown: pressed until it is."""
    end = time.monotonic() + PATIENCE
    while screen.said.find(words, screen.read) < 0:
        assert time.monotonic() < end, screen.said[-2000:]
        screen.type(key)
        while select.select([screen.fd], [], [], 0.2)[0]:
            screen.said += os.read(screen.fd, 4096)
    screen.until(words)


def view(lab, gw):
    return Terminal(lab, [shutil.which(program()), "approvals", "watch"],
                    lab.env({"COUNTERSIGN_STATE": str(gw.state), "PATH": os.environ["PATH"], "TERM": "xterm-256color"}))


@test("E17 terminal")
def a_yes_is_taken_of_what_stands_on_the_screen_alone(lab):
    up, gw = room.setup(lab, hold="inline_wait: 10m, expires: 2h")
    screen = view(lab, gw)
    screen.until(b"Nothing waits")
    client = room.start(lab, gw, up, "/small", "--data-binary", "hello there")
    screen.until(b"1 waiting")
    screen.until(b"/small")
    screen.type(b"\r")
    screen.until(b"a approve")
    screen.resize(14, 99)
    screen.until(b"not all of it stands here")
    press(screen, b"a", b"/tickets/")
    assert up.effects() == {}
    screen.resize(50, 120)
    screen.until(b"a approve")
    press(screen, b"a", b"Enter approves")
    screen.type(b"seen\r")
    screen.until(b" approved")
    client.wait_line(r'"ok"', PATIENCE)
    assert up.effects() == {"POST /small": 1}
    long = room.start(lab, gw, up, "/long", "--data-binary", "\n".join(f"line {i}" for i in range(200)))
    screen.until(b"/long")
    screen.type(b"\r")
    screen.until(b"not all of it stands here")
    press(screen, b"d", b"Enter denies")
    screen.type(b"not today\r")
    screen.until(b" denied")
    long.wait_line(r"not today", PATIENCE)
    assert up.effects() == {"POST /small": 1}
    gone = room.start(lab, gw, up, "/gone", "--data-binary", "x")
    screen.until(b"/gone")
    screen.type(b"\r")
    screen.until(b"a approve")
    gw.deny(gw.pending()["id"], "elsewhere")
    screen.until(b"Decided elsewhere: denied")
    screen.type(b"q")
    screen.until(b"Nothing waits")
    screen.type(b"q")
    assert screen.end() == 0, screen.said
    gone.wait()
    decided = {r["reason"] for r in gw.audit() if r.get("kind") == "ticket-decided"}
    assert {"seen", "not today", "elsewhere"} <= decided, decided


if __name__ == "__main__":
    main()
