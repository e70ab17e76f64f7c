#!/usr/bin/env python3
"""Steps of started sandboxes: what one did to the files is undone exactly, and nothing of it is kept for longer than its
sandbox; by root's gateway and by an ordinary user's."""
import contextlib
import json
import os
import signal

from boxes import alive, both, execute, nothing_is_left, setup, shell, start
from harness import main, test
from keepers import PYTHON, TREE, at_work, files, held, kill_at_work, nobody_is_at_work, store, whole

# What a step may do, also to hinder that it is undone. What it makes has names, links and modes of all kinds.
HAVOC = r"""
import os, socket
os.remove("plain"); os.remove("hard")
open("deep/large", "r+b").write(b"CHANGED")
os.chmod("deep/zero", 0o777); os.chmod("deep", 0o700)
os.utime("deep/large", (1, 1234567890))
os.chmod("deep/er", 0o755); os.rmdir("deep/er/empty"); os.rmdir("deep/er"); open("deep/er", "w").write("no folder now")
os.remove("absolute"); os.symlink("/etc/shadow", "absolute")
os.rename(b"new\nline \xff\xfe", b"moved")
open(b"another\nline \xfe\x01", "w").write("x")
os.symlink("../../../../etc", b"out \xff"); os.symlink("/etc/passwd", "plain")
os.makedirs("more/of/these"); os.link("deep/large", "more/link"); os.mkfifo("more/fifo")
socket.socket(socket.AF_UNIX).bind("more/socket")
os.mkdir("closed"); open("closed/file", "w").write("x"); os.chmod("closed", 0)
os.mkdir("stuck"); os.mkdir("stuck/in"); open("stuck/in/file", "w").write("x"); os.chmod("stuck/in", 0o500); os.chmod("stuck", 0o500)
top = os.getcwd()
for _ in range(600):
    os.mkdir("d" * 200); os.chdir("d" * 200)
os.chdir(top)
os.chmod(".", 0o500)
"""

# What is left running makes a folder where a file comes back.
RACES = """
import os
while True:
    try:
        os.mkdir("file")
    except OSError:
        pass
"""


def step(gw, *command, rc=0, options=()):
    """The number of a step."""
    done = execute(gw, "box", *command, rc=rc, options=("--undo", *options))
    said = [line for line in done.err.decode().splitlines() if line.startswith("countersign: step ")]
    assert len(said) == 1, done.text()
    return int(said[0].split()[-1])


def steps(gw, name="box"):
    return [s["step"] for s in gw.cli_json("sandbox", "steps", name)["steps"]]


def undo(gw, *words):
    return gw.cli_json("sandbox", "undo", "box", *words)


def running(gw, name="box"):
    return {s["name"]: s for s in gw.cli_json("sandbox", "started")["started"]}.get(name, {}).get("state") == "running"


def stores_nothing(gw):
    gw.lab.wait_for("that nothing of a step is kept", lambda: not list(store(gw).rglob("ck-*")))


@both
def a_step_is_undone_exactly(lab, gw):
    """G9: whatever it did, also where it tried to hinder that; and nothing outside of the workspace is touched."""
    start(gw, "box")
    execute(gw, "box", PYTHON, "-c", TREE)
    before = files(gw, "box")
    passwd = os.stat("/etc/passwd")
    assert step(gw, PYTHON, "-c", HAVOC) == 1
    assert b"moved" in shell(gw, "box", "ls").out
    one, = gw.cli_json("sandbox", "steps", "box")["steps"]
    assert one["argv"][:2] == [PYTHON, "-c"] and (one["step"], one["left_out"]) == (1, 2), one
    said = undo(gw)
    assert (said["step"], said["state"], said["generation"]) == (1, "running", 2), said
    assert files(gw, "box") == before and steps(gw) == []
    assert shell(gw, "box", "ls -A | wc -l; stat -c %a . deep/zero; ls -A deep/er").out == b"7\n755\n400\nempty\n"
    now = os.stat("/etc/passwd")
    assert (now.st_mode, now.st_mtime, now.st_uid) == (passwd.st_mode, passwd.st_mtime, passwd.st_uid)
    assert step(gw, "sh", "-c", "echo more > more; exit 7", rc=7) == 2  # no number is given twice
    assert undo(gw, "2")["generation"] == 3 and files(gw, "box") == before
    gw.recorded(2, about="sandbox-undo", fits=lambda r: r["what"]["sandbox"] == "box")
    gw.recorded(2, about="sandbox-undone")
    gw.cli("sandbox", "destroy", "box", rc=0)
    stores_nothing(gw)


@both
def later_steps_are_undone_with_it_and_others_begin_from_it(lab, gw):
    start(gw, "box", "--disk", "8M")
    shell(gw, "box", "echo 0 > file")
    for n in "1234":
        step(gw, "sh", "-c", f"echo {n} > file; echo {n} > new{n}", options=("--env", "TOKEN=" + "u" * 40))
    assert steps(gw) == [4, 3, 2, 1]
    gw.cli("sandbox", "fork", "box", "twin", "--from", "3", rc=0)
    assert shell(gw, "twin", "cat file; ls; grep -rac uuuuuuuuuu . || true").out.split() == \
        [b"2", b"file", b"new1", b"new2", b"./file:0", b"./new1:0", b"./new2:0"]
    assert steps(gw, "twin") == [] and running(gw) and gw.cli_json("sandbox", "started")["started"]
    gw.cli("sandbox", "destroy", "twin", rc=0)
    assert undo(gw, "3")["step"] == 3 and shell(gw, "box", "cat file; ls").out == b"2\nfile\nnew1\nnew2\n"
    assert steps(gw) == [2, 1]
    assert undo(gw, "1")["step"] == 1 and shell(gw, "box", "cat file; ls").out == b"0\nfile\n"
    assert b"no step of the sandbox can be undone" in gw.cli("sandbox", "undo", "box", rc=1).err
    assert b"cannot be undone, or not any more" in gw.cli("sandbox", "undo", "box", "4", rc=1).err
    assert b"cannot be undone, or not any more" in gw.cli("sandbox", "fork", "box", "twin", "--from", "4", rc=1).err
    assert b"no sandbox of this name runs" in gw.cli("sandbox", "undo", "nobody", rc=1).err
    assert gw.control("POST", "/api/v1/sandboxes/box/undo", {"step": 0})[0] == 400
    assert gw.control("POST", "/api/v1/sandboxes/box/undo", {"steps": 1})[0] == 400
    # G20: with more than its disk could hold the first ones go
    for n in range(3):
        step(gw, "sh", "-c", "head -c 3000000 /dev/urandom > large")
    assert steps(gw) == [7, 6, 5]
    step(gw, "sh", "-c", "head -c 3000000 /dev/urandom > large")
    assert steps(gw) == [8, 7], steps(gw)
    gw.cli("sandbox", "destroy", "box", rc=0)
    stores_nothing(gw)


@test()
def what_hinders_it_is_said_and_the_last_sixteen_can_be_undone(lab):
    """G20, and no lease of before is good after."""
    gw = setup(lab, lease="github")
    start(gw, "box")
    lease = gw.cli_json("lease", "issue", "api", "--sandbox", "box")
    for n in range(17):
        step(gw, "sh", "-c", f"echo {n + 1} > file")
    assert steps(gw) == list(range(17, 1, -1))
    assert alive(gw, "box", lease)  # a step alone ends none
    number = execute(gw, "box", "sleep", "600", options=("--detach",)).out.decode().strip()
    for words in (("undo", "box"), ("exec", "--undo", "box", "--", "true")):
        assert b"a command runs in the sandbox" in gw.cli("sandbox", *words).err, words
    assert b"the command was not begun" in gw.cli("sandbox", "exec", "--undo", "box", "--", "true").err
    gw.cli("sandbox", "kill", "box", number, "KILL", rc=0)
    lab.wait_for("its end", lambda: gw.cli_json("sandbox", "ps", "box")["commands"][0]["state"] != "running")
    gw.cli("sandbox", "pause", "box", rc=0)
    for words in (("undo", "box"), ("exec", "--undo", "box", "--", "true")):
        assert b"the sandbox is paused" in gw.cli("sandbox", *words).err, words
    gw.cli("sandbox", "resume", "box", rc=0)
    lease = gw.cli_json("lease", "issue", "api", "--sandbox", "box")
    undo(gw, "2")
    assert shell(gw, "box", "cat file").out == b"1\n" and not alive(gw, "box", lease) and steps(gw) == []
    done = json.loads(gw.cli("sandbox", "exec", "--json", "--undo", "--detach", "box", "--", "sh", "-c", "echo alone > file", rc=0).out)
    assert done["step"] == 18 and done["command"], done
    lab.wait_for("its end", lambda: gw.cli_json("sandbox", "ps", "box")["commands"][0]["state"] != "running")
    left = execute(gw, "box", "sh", "-c", "(sleep 600; echo late > file) & echo left > file", options=("--undo",))
    assert b"step 19" in left.err
    undo(gw, "18")  # what a command left running goes on, and writes meanwhile
    assert shell(gw, "box", "cat file; cat /proc/[0-9]*/cmdline | tr '\\0' ' '").out.startswith(b"1\n")
    execute(gw, "box", "sh", "-c", f"rm file; {PYTHON} -c '{RACES}' >/dev/null 2>&1 & until test -d file; do :; done",
            options=("--undo",))
    undo(gw)  # also folders where files come back
    assert shell(gw, "box", "cat file").out == b"1\n"
    step(gw, "true")
    gw.recorded(1, about="sandbox-exec", fits=lambda r: r["what"].get("step") == 21)
    assert gw.cli_json("checkpoint", "list")["checkpoints"] == []
    shell(gw, "box", "truncate -s 100G hole")
    assert b"not begun: " in gw.cli("sandbox", "exec", "--undo", "box", "--", "touch", "begun").err
    assert shell(gw, "box", "ls").out == b"file\nhole\n"
    gw.cli("sandbox", "destroy", "box", rc=0)
    stores_nothing(gw)


@test()
def whoever_is_killed_it_is_undone_or_can_be(lab):
    """G24"""
    gw = setup(lab)
    lab.expects(r"parent: the (desk|warden) \(pid \d+\) ended by signal 9")
    start(gw, "box")
    script = "head -c 30000000 /dev/urandom > large; mkdir d; echo x > d/x"
    shell(gw, "box", script)
    before = files(gw, "box")

    def changes():
        return step(gw, "sh", "-c", "rm -r d; echo changed > large")

    for who in ("checkpoint", "workspace"):
        changes()
        for at_once in (True, False):  # before anything was done, and wherever it is then
            client, keeper = held(gw, "sandbox", "undo", "box")
            if not at_once:
                os.kill(keeper, signal.SIGCONT)
            kill_at_work(gw, who, keeper)
            rc = client.wait()
            assert rc == 0 or b"is not undone" in client.seen, client.seen
            nobody_is_at_work(gw)
            assert running(gw)
            if rc == 0:
                break
        if rc != 0:
            undo(gw)
        assert files(gw, "box") == before and steps(gw) == []
    changes()
    client, keeper = held(gw, "sandbox", "undo", "box")
    gw.kill("desk")
    os.kill(keeper, signal.SIGCONT)
    client.wait()
    lab.wait_for("the next desk, and the end of it", lambda: gw.cli("sandbox", "started").rc == 0 and running(gw) and steps(gw) == [])
    assert files(gw, "box") == before and steps(gw) == []
    for words in (("undo", "box"), ("exec", "--undo", "box", "--", "true")):
        changes()
        client, keeper = held(gw, "sandbox", *words)
        gw.cli("sandbox", "destroy", "box", rc=0)
        assert client.wait() != 0, client.seen
        nobody_is_at_work(gw)
        stores_nothing(gw)
        start(gw, "box")
        shell(gw, "box", script)
    for who in ("warden", "gateway"):
        for words in (("undo", "box"), ("exec", "--undo", "box", "--", "true")):
            changes()
            client, keeper = held(gw, "sandbox", *words)
            if who == "warden":
                gw.kill(who)
            else:
                lab.kills(gw.daemon())
                with contextlib.suppress(ProcessLookupError):
                    os.kill(keeper, signal.SIGCONT)
            client.wait()
            if who == "gateway":
                gw.up()
            nobody_is_at_work(gw)
            nothing_is_left(gw)
            lab.wait_for("who tells", lambda: gw.cli("sandbox", "started").rc == 0)
            stores_nothing(gw)
            start(gw, "box")
            shell(gw, "box", script)
    assert whole(gw) == []
    gw.cli("sandbox", "destroy", "box", rc=0)


if __name__ == "__main__":
    main()
