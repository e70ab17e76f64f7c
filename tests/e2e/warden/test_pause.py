#!/usr/bin/env python3
"""Started sandboxes that are paused and go on: all that runs in one stops, nobody else does, what it was given before is
worth nothing after; and whoever is killed meanwhile, nothing of it is left."""
import os
import pathlib

from boxes import Nobodys, alive, both, cgroups, execute, following, inside, nothing_is_left, setup, shell, start
from gateway import program
from harness import main, test

PYTHON = "/usr/bin/python3"
# Processes of a group and session of their own, one after the other, and one that counts.
BUSY = """
import os, time
def spin():
    while True:
        sum(range(100000))
        time.sleep(0.01)
if os.fork() == 0:
    os.setsid()
    spin()
if os.fork() == 0:
    while True:
        if (pid := os.fork()) == 0: time.sleep(0.01); os._exit(0)
        os.waitpid(pid, 0)
n = 0
while True:
    n += 1
    print(n, flush=True)
    time.sleep(0.01)
"""


def outside(mark):
    """What of it has run so far, as seen from outside: clock ticks of each process with this word among its own."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if mark.encode() in words and b"countersign" not in words:  # and no client of it
                rest = (entry / "stat").read_text().rpartition(")")[2].split()
                if rest[0] != "Z":
                    found[entry.name] = int(rest[11]) + int(rest[12])
        except OSError:
            pass
    return found


def state(gw, name):
    return next(s["state"] for s in gw.cli_json("sandbox", "started")["started"] if s["name"] == name)


def busy(gw, name, mark):
    """A detached command whose processes are known by this word; its number."""
    number = execute(gw, name, PYTHON, "-c", BUSY, mark, options=("--detach",)).out.decode().strip()
    gw.lab.wait_for("all of it", lambda: len(found := outside(mark)) >= 3 and sum(n > 5 for n in found.values()) >= 1)
    return number


def pause(gw, name):
    said = gw.cli_json("sandbox", "pause", name)
    ordinary = isinstance(gw.lab, Nobodys)
    assert said["state"] == "paused" and ("approximate" in said["paused_by"]) == ordinary, said
    return said


@both
def all_of_one_stops_and_nobody_else_does(lab, gw):
    """G24"""
    mark = f"busy-{os.getpid()}-{id(gw)}"
    for name in ("box", "neighbour"):
        start(gw, name)
    shell(gw, "box", "echo kept > file")
    number = busy(gw, "box", mark)
    client = gw.lab.start([program(), "sandbox", "attach", "box", number],
                          env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
    client.wait_line("1")
    assert state(gw, "box") == "running"
    for generation in (1, 2):
        assert pause(gw, "box")["generation"] == generation
        before = outside(mark)
        for _ in range(10):
            assert execute(gw, "neighbour", "echo", "fine").out == b"fine\n"
            assert outside(mark) == before, (before, outside(mark))
        assert (state(gw, "box"), state(gw, "neighbour")) == ("paused", "running")
        assert gw.cli_json("status")["sandboxes"] == {"started": 2, "paused": 1, "waiting": 0}
        assert b"paused by" in gw.cli("sandbox", "started", rc=0).out
        for words in (("exec", "box", "--", "true"), ("ls", "box:."), ("cp", "box:file", "-"), ("kill", "box", number),
                      ("exec", "--detach", "box", "--", "true")):
            done = gw.cli("sandbox", *words)
            assert done.rc != 0 and b"sandbox resume" in done.err, (words, done.text())
        assert b"a sandbox of this name runs" in gw.cli("sandbox", "start", "box", rc=1).err
        assert [row["state"] for row in gw.cli_json("sandbox", "ps", "box")["commands"]] == ["running"]
        assert pause(gw, "box")["generation"] == generation  # and nothing else becomes of it
        said = gw.cli_json("sandbox", "resume", "box")
        assert said == {"name": "box", "state": "running", "generation": generation + 1}, said
        assert b"is not paused" in gw.cli("sandbox", "resume", "box", rc=1).err
        lab.wait_for("that it goes on", lambda: outside(mark) != before)
        assert shell(gw, "box", "cat file").out == b"kept\n"
        count = client.seen.count(b"\n")
        lab.wait_for("what it says then", lambda: client.seen.count(b"\n") > count)
    assert [s["generation"] for s in gw.cli_json("sandbox", "started")["started"] if s["name"] == "box"] == [3]
    assert [r["generation"] for r in gw.cli_json("sandbox", "list")["sandboxes"] if r["name"] == "box"] == [3]
    for about in ("sandbox-pause", "sandbox-paused", "sandbox-resume", "sandbox-resumed"):
        gw.recorded(2, about=about, fits=lambda r: r["what"]["sandbox"] == "box")
    gw.cli("sandbox", "kill", "box", number, "KILL", rc=0)
    assert client.wait() == 137, client.seen[-300:]
    for verb in ("pause", "resume"):
        assert b"no sandbox of this name runs" in gw.cli("sandbox", verb, "nobody", rc=1).err
    gw.cli("sandbox", "destroy", "box", rc=0)
    gw.cli("sandbox", "destroy", "neighbour", rc=0)
    lab.wait_for("nothing left of it", lambda: not outside(mark))


def leases_of(lab, ordinary):
    gw = setup(lab, ordinary, lease="github")
    start(gw, "box")

    def issue():
        return gw.cli_json("lease", "issue", "api", "--sandbox", "box")

    before = issue()
    pause(gw, "box")
    assert not alive(gw, "box", before)
    assert "was paused" in str(gw.cli_json("lease", "show", before["id"])), gw.cli_json("lease", "show", before["id"])
    meanwhile = issue()
    gw.cli("sandbox", "resume", "box", rc=0)
    assert not alive(gw, "box", meanwhile) and not alive(gw, "box", before)
    after = issue()
    assert alive(gw, "box", after)
    pause(gw, "box")
    gw.cli("sandbox", "destroy", "box", rc=0)
    assert not alive(gw, "box", after)


@test()
def no_lease_of_before_a_pause_is_good_after_it(lab):
    leases_of(lab, False)


@test()
def nor_is_one_of_an_ordinary_users_gateway(lab):
    leases_of(lab, True)


@both
def its_time_goes_on_and_ends_it(lab, gw):
    """G24"""
    mark = f"late-{os.getpid()}-{id(gw)}"
    start(gw, "box", "--timeout", "12s")
    client = following(gw, "box", PYTHON, "-c", BUSY, mark)
    lab.wait_for("it", lambda: outside(mark))
    pause(gw, "box")
    assert client.wait() == 125 and b"its time was over" in client.seen, client.seen[-300:]
    lab.wait_for("nothing left of it", lambda: not outside(mark))
    start(gw, "box")
    late = following(gw, "box", "sleep", "600")  # the time of a command is over when it goes on
    gw.lab.wait_for("it", lambda: gw.cli_json("sandbox", "started")["started"][0]["commands"] == 1)
    short = gw.lab.start([program(), "sandbox", "exec", "--timeout", "1s", "box", "--", "sleep", "600"],
                         env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
    gw.lab.wait_for("both", lambda: gw.cli_json("sandbox", "started")["started"][0]["commands"] == 2)
    pause(gw, "box")
    late.stop()
    gw.cli("sandbox", "resume", "box", rc=0)
    assert short.wait() == 124, short.seen
    lab.wait_for("the end of both", lambda: gw.cli_json("sandbox", "started")["started"][0]["commands"] == 0)
    assert execute(gw, "box", "echo", "on").out == b"on\n"
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def its_time_is_set_anew(lab):
    gw = setup(lab)
    start(gw, "box", "--timeout", "1h")
    pause(gw, "box")
    gw.cli("sandbox", "timeout", "box", "90m", rc=0)
    left = gw.cli_json("sandbox", "started")["started"][0]["left_ms"]
    assert 3600 * 1000 < left <= 90 * 60 * 1000, left
    for wrong in (("box", "0"), ("box", "soon"), ("BOX", "1h")):
        gw.cli("sandbox", "timeout", *wrong, rc=2)
    assert b"no sandbox of this name runs" in gw.cli("sandbox", "timeout", "nobody", "1h", rc=1).err
    gw.cli("sandbox", "timeout", "box", "1s", rc=0)
    lab.wait_for("its end", lambda: not gw.cli_json("sandbox", "started")["started"])
    gw.recorded(2, about="sandbox-timeout", fits=lambda r: r["what"]["sandbox"] == "box")


@test()
def a_job_that_had_stopped_stays_so_where_a_cgroup_freezes(lab):
    gw = setup(lab)
    start(gw, "box")
    script = "import os, signal, sys\nos.kill(os.getpid(), signal.SIGSTOP)\nprint('went on', flush=True)"
    number = execute(gw, "box", PYTHON, "-c", script, options=("--detach",)).out.decode().strip()
    look = "grep -h ^State: /proc/[0-9]*/status"
    lab.wait_for("that it stops", lambda: b"T (stopped)" in shell(gw, "box", look).out)
    pause(gw, "box")
    gw.cli("sandbox", "resume", "box", rc=0)
    assert b"T (stopped)" in shell(gw, "box", look).out
    gw.cli("sandbox", "kill", "box", number, "CONT", rc=0)
    assert gw.cli("sandbox", "attach", "box", number, rc=0).out == b"went on\n"
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def whoever_is_killed_nothing_frozen_is_left(lab):
    """G24"""
    gw = setup(lab)
    lab.expects(r"parent: the (desk|warden) \(pid \d+\) ended by signal 9")

    def began():
        start(gw, "box")
        execute(gw, "box", PYTHON, "-c", BUSY, options=("--detach",))
        pause(gw, "box")
        assert inside(gw) and cgroups(gw)

    began()
    gw.kill("warden")
    nothing_is_left(gw)
    began()
    gw.kill("desk")
    lab.wait_for("the next desk", lambda: gw.cli("sandbox", "ps", "box").rc == 0)
    assert state(gw, "box") == "paused"
    gw.cli("sandbox", "resume", "box", rc=0)
    pause(gw, "box")
    lab.kills(gw.daemon())
    gw.up()  # which ends what is frozen still
    nothing_is_left(gw)
    began()
    gw.stop()
    nothing_is_left(gw)


if __name__ == "__main__":
    main()
