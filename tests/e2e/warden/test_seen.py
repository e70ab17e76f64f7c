#!/usr/bin/env python3
"""What is seen of started sandboxes: what they use, as counted from outside, and what their commands said."""
import base64
import os
import shutil
import sys

from boxes import Nobodys, both, execute, setup, shell, start
import harness
from gateway import program
from harness import main, test

sys.path.insert(0, str(harness.HERE / "lab"))
from terminal import Terminal  # noqa: E402

PYTHON = "/usr/bin/python3"
USES = """
import time
held = bytearray(60 << 20)
open("/workspace/held", "wb").write(bytes(20 << 20))
print("ready", flush=True)
while True:
    sum(range(100000))
"""


def metrics(gw, name):
    return next(s for s in gw.cli_json("sandbox", "top")["sandboxes"] if s["name"] == name)


def detach(gw, *command):
    return execute(gw, "box", *command, options=("--detach",)).out.decode().strip()


@both
def what_one_uses_is_seen_and_its_neighbour_has_no_part_in_it(lab, gw):
    for name in ("box", "neighbour"):
        start(gw, name, "--memory", "256M", "--disk", "64M")
    before = metrics(gw, "box")
    number = detach(gw, PYTHON, "-c", USES)
    lab.wait_for("that it has all of it", lambda: gw.cli("sandbox", "logs", "box", number, rc=0).out == b"ready\n")
    lab.wait_for("a second of its work", lambda: metrics(gw, "box")["cpu_us"] - before["cpu_us"] > 1000000)
    now, other = metrics(gw, "box"), metrics(gw, "neighbour")
    assert now["memory_used"] - before["memory_used"] > 55 << 20 and other["memory_used"] < 40 << 20, (before, now, other)
    assert now["pids_used"] > before["pids_used"] and other["cpu_us"] < 1000000, (before, now, other)
    if isinstance(gw.lab, Nobodys):
        assert now["measured_by"] == "each process (approximate)" and "disk_used" not in now, now
    else:
        assert now["measured_by"] == "cgroup" and 20 << 20 <= now["disk_used"] < 24 << 20, now
        assert now["memory_peak"] >= now["memory_used"] >= 80 << 20, now
    assert now["memory"] == 256 << 20 and now["commands"] == 1, now
    gw.cli("sandbox", "pause", "box", rc=0)
    still = metrics(gw, "box")
    assert still["state"] == "paused" and metrics(gw, "box")["cpu_us"] == still["cpu_us"], still
    table = gw.cli("sandbox", "top", rc=0).out.decode().splitlines()
    assert len(table) == 2 and table[0].split()[:2] in (["box", "paused"], ["neighbour", "running"]), table
    assert "of 256 MiB" in table[0], table
    assert len(gw.cli("sandbox", "top", "neighbour", rc=0).out.splitlines()) == 1
    for name in ("box", "neighbour"):
        gw.cli("sandbox", "destroy", name, rc=0)
    assert b"no sandbox is started" in gw.cli("sandbox", "top", rc=0).err


@test()
def how_long_nothing_ran_in_one_is_seen(lab):
    gw = setup(lab)

    def idle():
        return gw.cli_json("sandbox", "started")["started"][0]["idle_ms"]

    start(gw, "box")
    lab.wait_for("a while", lambda: idle() > 1000)
    number = detach(gw, "sh", "-c", "until [ -e /tmp/go ]; do sleep 0.1; done")
    assert idle() == 0
    shell(gw, "box", "touch /tmp/go")
    lab.wait_for("its end", lambda: gw.cli_json("sandbox", "logs", "box", number)["state"] == "exited")
    lab.wait_for("the next while", lambda: idle() > 0)
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def at_a_terminal_it_is_shown_anew(lab):
    gw = setup(lab)
    start(gw, "box")
    top = Terminal(lab, [shutil.which(program()), "sandbox", "top"],
                   lab.env({"COUNTERSIGN_STATE": str(gw.state), "PATH": os.environ["PATH"], "TERM": "xterm-256color"}))
    for _ in range(2):
        top.until(b"NAME")
        top.until(b"box")
        top.until(b"\x1b[H")
    top.type(b"\x03")
    assert top.end() != 0, top.said
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def what_a_detached_command_said_is_read_without_following_it(lab, gw):
    start(gw, "box")
    assert b"no detached command" in gw.cli("sandbox", "logs", "box", rc=0).err
    one = detach(gw, "sh", "-c", "echo one; echo wrong >&2; until [ -e /tmp/go ]; do sleep 0.1; done; echo two; exit 3")
    follower = gw.lab.start([program(), "sandbox", "logs", "-f", "box", one],
                            env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
    follower.wait_line("one")
    two = detach(gw, "head", "-c", "1000000", "/dev/zero")
    lab.wait_for("all of it", lambda: gw.cli_json("sandbox", "logs", "box", two)["state"] == "exited")
    done = gw.cli("sandbox", "logs", "box", one, rc=0)
    assert (done.out, done.err) == (b"one\n", b"wrong\n"), done.text()
    done = gw.cli("sandbox", "logs", "box", two, rc=0)
    assert done.out == b"\0" * 131072 and b"868928 bytes before what follows are not kept any more" in done.err, done.err
    said = gw.cli_json("sandbox", "logs", "box", two)
    assert said["stdout"]["cut"] == 868928 and len(base64.b64decode(said["stdout"]["data"])) == 131072 and said["status"] == 0
    both_of_them = gw.cli("sandbox", "logs", "box", rc=0).out
    assert both_of_them.startswith(f"==> command {one} <==\none\n==> command {two} <==\n".encode()), both_of_them[:100]
    gw.cli("sandbox", "pause", "box", rc=0)
    assert gw.cli("sandbox", "logs", "box", one, rc=0).out == b"one\n"
    gw.cli("sandbox", "resume", "box", rc=0)
    shell(gw, "box", "touch /tmp/go")
    assert follower.wait() == 3 and b"two" in follower.seen, follower.seen
    assert gw.cli("sandbox", "logs", "box", one, rc=0).out == b"one\ntwo\n"
    for wrong in (("-f", "box"), ("box", "x"), ("box", "7"), ("BOX",)):
        gw.cli("sandbox", "logs", *wrong, rc=2)
    assert b"no such command is there" in gw.cli("sandbox", "logs", "box", "1.77", rc=1).err
    gw.cli("sandbox", "destroy", "box", rc=0)
    assert b"no sandbox of this name runs" in gw.cli("sandbox", "logs", "box", rc=1).err


if __name__ == "__main__":
    main()
