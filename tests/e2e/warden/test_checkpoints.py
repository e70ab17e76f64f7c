#!/usr/bin/env python3
"""Checkpoints of started sandboxes: the files of one outlive it, and nothing else of it does; by root's gateway and by
an ordinary user's."""
import fcntl
import os
import pathlib
import signal

from boxes import Nobodys, alive, both, execute, inside, nothing_is_left, setup, shell, start
from gateway import program
from harness import main, test
from keepers import (PYTHON, TREE, at_work, files, held, kill_at_work, nobody_is_at_work, state_of, store, walls_are_up,
                     whole)
from terminal import Terminal  # noqa: E402


def snapshot(gw, *words):
    return gw.cli_json("sandbox", "snapshot", *words)


def listed(gw):
    return gw.cli_json("checkpoint", "list")["checkpoints"]


@both
def all_files_of_one_come_back(lab, gw):
    """G9: names, modes, times and links; devices and sockets are left out, and that is said."""
    start(gw, "box")
    execute(gw, "box", PYTHON, "-c", TREE)
    before = files(gw, "box")
    assert len(before) == 11, before
    made = snapshot(gw, "box", "built")
    assert (made["files"], made["folders"], made["links"], made["left_out"]) == (5, 3, 3, 2), made
    assert (made["name"], made["sandbox"], made["state"]) == ("built", "box", "running"), made
    assert made["generation"] == 1 and made["sandbox_generation"] == 2, made
    assert files(gw, "box") == before  # it goes on as it was
    gw.cli("sandbox", "destroy", "box", rc=0)
    again = gw.cli_json("sandbox", "restore", "built", "box")
    assert again["generation"] == 3 and again["from"] == "built", again
    assert files(gw, "box") == before
    assert execute(gw, "box", "sh", "-c", "echo more > deep/more && cat deep/more").out == b"more\n"
    other = gw.cli_json("sandbox", "start", "other", "--from", made["id"])
    assert other["generation"] == 1 and files(gw, "other") == before
    gw.cli("sandbox", "destroy", "box", rc=0)
    gw.cli("sandbox", "destroy", "other", rc=0)
    assert [(c["id"], c["name"]) for c in listed(gw)] == [(made["id"], "built")]
    gw.cli("checkpoint", "rm", "built", rc=0)
    assert listed(gw) == []
    assert b"no such checkpoint" in gw.cli("sandbox", "restore", made["id"], rc=1).err


@both
def a_fork_is_another_one_with_the_same_files(lab, gw):
    start(gw, "box", "--memory", "256M", "--pids", "99", "--disk", "64M")
    shell(gw, "box", "echo one > file; sleep 600 & echo $! > pid")
    made = gw.cli_json("sandbox", "fork", "box", "twin")
    assert (made["name"], made["generation"], made["memory"], made["pids"], made["disk"]) == \
        ("twin", 1, 256 << 20, 99, 64 << 20), made
    assert {s["name"]: s["generation"] for s in gw.cli_json("sandbox", "started")["started"]} == {"box": 2, "twin": 1}
    assert shell(gw, "twin", "cat file").out == b"one\n"
    assert b"sleep" not in shell(gw, "twin", "cat /proc/[0-9]*/cmdline").out  # files, and no process
    assert b"sleep" in shell(gw, "box", "cat /proc/[0-9]*/cmdline").out
    shell(gw, "twin", "echo two > file")
    assert shell(gw, "box", "cat file").out == b"one\n"
    assert b"a name of its own" in gw.cli("sandbox", "fork", "box", "box", rc=1).err
    assert b"of the fork's name runs" in gw.cli("sandbox", "fork", "box", "twin", rc=1).err
    assert b"no sandbox of this name runs" in gw.cli("sandbox", "fork", "nobody", rc=1).err
    assert all(s["state"] == "running" for s in gw.cli_json("sandbox", "started")["started"])
    lab.wait_for("that what it was made of is gone", lambda: not any((pathlib.Path(gw.state) / "checkpoints").rglob("ck-*")))
    gw.recorded(1, about="sandbox-fork", fits=lambda r: r["what"]["sandbox"] == "box")
    for name in ("box", "twin"):
        gw.cli("sandbox", "destroy", name, rc=0)


MAPPED = """
import mmap, os, sys, time
with open("data", "r+b") as f:
    m = mmap.mmap(f.fileno(), 0)
was = m[5]                                      # read first: its page can be written now, and no time of the file changes
if sys.argv[1:] == ["later"]:
    open("ready", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
m[5] = was + 1
m.close()
open("done", "w").close()
"""


def known(gw):
    """How many files need not be told again for the next one."""
    said = next((pathlib.Path(gw.state) / "checkpoints").rglob("seen")).read_bytes()
    return int.from_bytes(said[8:12], "big")


@both
def what_changed_is_kept_again_however_it_was_written(lab, gw):
    """G9: a file whose bytes are known is not told for the next one; one that a mapping writes to, which changes no time of
    it, is."""
    def byte(name):
        snapshot(gw, "box", name)
        gw.cli("sandbox", "start", "twin", "--from", name, rc=0)
        got = shell(gw, "twin", "cut -b 6 data | head -n 1").out.strip()
        gw.cli("sandbox", "destroy", "twin", rc=0)
        return got

    start(gw, "box")
    shell(gw, "box", "for f in data still; do yes aaaaaaaaaaaaaaa$f | head -c 1048576 > $f; done")
    assert byte("one") == b"a"
    assert known(gw) == 2, known(gw)
    assert snapshot(gw, "box", "same")["bytes"] == 2 * 1048576
    assert known(gw) == 2, known(gw)
    execute(gw, "box", PYTHON, "-c", MAPPED)
    assert byte("two") == b"b"
    gw.cli("sandbox", "exec", "box", "--detach", "--", PYTHON, "-c", MAPPED, "later", rc=0)
    shell(gw, "box", "until test -e ready; do sleep 0.01; done; rm done")
    assert byte("three") == b"b"
    shell(gw, "box", "touch go; until test -e done; do sleep 0.01; done")
    assert byte("four") == b"c"
    assert known(gw) == 4, known(gw)
    gw.cli("sandbox", "destroy", "box", rc=0)
    for name in ("one", "same", "two", "three", "four"):
        gw.cli("checkpoint", "rm", name, rc=0)
    # Who looks at the checkpoints clears up what could not be while somebody else did.
    lab.wait_for("that nothing is known any more", lambda: listed(gw) == [] and
                 not list((pathlib.Path(gw.state) / "checkpoints").rglob("seen")))


def leases_of(lab, ordinary):
    gw = setup(lab, ordinary, lease="github")

    def issue(name):
        return gw.cli_json("lease", "issue", "api", "--sandbox", name)

    start(gw, "box")
    before = issue("box")
    shell(gw, "box", f"echo {before['lease']} > .env")
    made = snapshot(gw, "box")
    assert not alive(gw, "box", before), "a live lease would be in a checkpoint"
    after = issue("box")
    assert alive(gw, "box", after)
    gw.cli("sandbox", "fork", "box", "twin", rc=0)
    assert not any(alive(gw, name, lease) for name in ("box", "twin") for lease in (before, after))
    last = issue("box")
    gw.cli("sandbox", "destroy", "box", rc=0)
    gw.cli("sandbox", "restore", made["id"], "box", rc=0)
    assert not alive(gw, "box", before) and not alive(gw, "box", last)
    assert [s["generation"] for s in gw.cli_json("sandbox", "started")["started"] if s["name"] == "box"] == [4]
    for name in ("box", "twin"):
        gw.cli("sandbox", "destroy", name, rc=0)


@test()
def no_lease_of_before_is_good_after(lab):
    leases_of(lab, False)


@test()
def nor_is_one_of_an_ordinary_users_gateway(lab):
    leases_of(lab, True)


@both
def it_is_taken_at_one_moment(lab, gw):
    """Whatever runs: two files that are always changed together are alike, and a link that is put in a file's place
    again and again leads nowhere."""
    start(gw, "box")
    busy = """
import os
def put(name, n):
    open("tmp", "w").write(str(n)); os.rename("tmp", name)
n = 0
while True:
    n += 1
    put("a", n); put("b", n)
    os.symlink("/etc/passwd", "tmp"); os.rename("tmp", "swapped"); put("swapped", n)
"""
    number = execute(gw, "box", PYTHON, "-c", busy, options=("--detach",)).out.decode().strip()
    lab.wait_for("both", lambda: b"b" in shell(gw, "box", "ls").out.split())
    for _ in range(3):
        made = snapshot(gw, "box")
        gw.cli("sandbox", "start", "other", "--from", made["id"], rc=0)
        a, b = (int(shell(gw, "other", f"cat {name}").out) for name in ("a", "b"))
        assert a - b in (0, 1), (a, b)
        assert shell(gw, "other", "test ! -L swapped || readlink swapped").out in (b"", b"/etc/passwd\n")
        gw.cli("sandbox", "destroy", "other", rc=0)
    gw.cli("sandbox", "kill", "box", number, "KILL", rc=0)  # it runs still
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def one_that_is_paused_stays_so(lab, gw):
    start(gw, "box")
    shell(gw, "box", "echo kept > file")
    gw.cli("sandbox", "pause", "box", rc=0)
    made = snapshot(gw, "box")
    assert (made["state"], made["sandbox_generation"]) == ("paused", 1), made
    assert gw.cli_json("sandbox", "started")["started"][0]["state"] == "paused"
    gw.cli("sandbox", "resume", "box", rc=0)
    assert shell(gw, "box", "cat file").out == b"kept\n"
    gw.cli("sandbox", "destroy", "box", rc=0)


def kept(gw):
    return sum(f.stat().st_size for f in store(gw).rglob("ck-*"))


@test()
def what_is_there_already_costs_nothing_and_what_nobody_needs_goes(lab):
    gw = setup(lab)
    start(gw, "box")
    shell(gw, "box", "head -c 20000000 /dev/urandom > big; for i in $(seq 500); do echo $i > f$i; done")
    first = snapshot(gw, "box", "first")
    assert first["added"] > 20000000, first
    shell(gw, "box", "echo changed > f7")
    second = snapshot(gw, "box", "second")
    assert 0 < second["added"] < 1000, second
    assert snapshot(gw, "box", "third")["added"] == 0
    shell(gw, "box", "rm big")
    fourth = snapshot(gw, "box", "fourth")
    assert fourth["added"] == 0 and fourth["bytes"] < 10000, fourth
    for name in ("first", "second", "third"):
        assert kept(gw) > 20000000
        gw.cli("checkpoint", "rm", name, rc=0)
    assert kept(gw) < 200000, kept(gw)  # what the last one needs is written anew
    gw.cli("sandbox", "restore", "fourth", "other", rc=0)
    assert shell(gw, "other", "cat f7 f500; ls | wc -l").out == b"changed\n500\n500\n"
    gw.cli("checkpoint", "rm", "fourth", rc=0)
    assert kept(gw) == 0 and b"no such checkpoint" in gw.cli("checkpoint", "rm", "fourth", rc=1).err
    gw.recorded(4, about="checkpoint-rm")
    for name in ("box", "other"):
        gw.cli("sandbox", "destroy", name, rc=0)


@test()
def what_was_changed_on_the_disk_is_refused(lab):
    gw = setup(lab)
    start(gw, "box")
    shell(gw, "box", "seq 100000 > numbers; echo small > small")
    made = snapshot(gw, "box", "built")
    gw.cli("sandbox", "destroy", "box", rc=0)

    def refused(words, path, at):
        good = path.read_bytes()
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
        done = gw.cli("sandbox", "restore", made["id"], "box", rc=4)
        assert words in done.err, done.text()
        assert gw.cli_json("sandbox", "started")["started"] == []
        path.write_bytes(good)

    pack, = store(gw).rglob("*.pack")
    listing, = store(gw).rglob(made["id"])
    lab.expects(r"the pack \S+ of checkpoints is damaged|checkpoint ck-\S+ is damaged")
    for at in (10, 100, pack.stat().st_size - 1):
        refused(b"is damaged: a piece of", pack, at)
    for at in range(8, listing.stat().st_size, 61):
        refused(b"damaged", listing, at)
    nothing_is_left(gw)
    good = pack.read_bytes()
    pack.write_bytes(good[:-1])
    assert b"is damaged" in gw.cli("sandbox", "restore", "built", "box", rc=4).err
    pack.write_bytes(good)
    gw.cli("sandbox", "restore", "built", "box", rc=0)
    assert shell(gw, "box", "tail -1 numbers; cat small").out == b"100000\nsmall\n"
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def more_than_may_be_kept_is_refused_in_words(lab, gw):
    """G20: a file of 100 GB that is a hole, more bytes than one owner's checkpoints may have, and more than a disk has."""
    gw.config.write_text(gw.config.read_text() + "limits: { checkpoints: 2MiB }\n")
    gw.stop()
    gw.up()
    start(gw, "box")
    shell(gw, "box", "truncate -s 100G hole")
    done = gw.cli("sandbox", "snapshot", "box", rc=1)
    assert b"holes" in done.err and b": hole" in done.err, done.text()
    shell(gw, "box", "rm hole; truncate -s 400M a; truncate -s 400M b")
    assert b"holes" in gw.cli("sandbox", "snapshot", "box", rc=1).err
    shell(gw, "box", "rm a b; head -c 3000000 /dev/urandom > large")
    done = gw.cli("sandbox", "snapshot", "box")
    assert b"2097152 bytes" in done.err and b"checkpoint rm" in done.err, done.text()
    assert gw.control("POST", "/api/v1/sandboxes/box/snapshot", {})[0] == 507
    assert gw.cli_json("sandbox", "started")["started"][0]["state"] == "running" and listed(gw) == [] and kept(gw) == 0
    shell(gw, "box", "head -c 1500000 large > part; rm large")
    made = snapshot(gw, "box", "part")
    assert gw.control("POST", "/api/v1/sandboxes/box/snapshot", {"name": "part"})[0] == 409
    assert b"a checkpoint of this name exists" in gw.cli("sandbox", "snapshot", "box", "part", rc=1).err
    assert b"disk is full" in gw.cli("sandbox", "restore", made["id"], "other", "--disk", "1M", rc=4).err
    assert gw.control("POST", "/api/v1/sandboxes/start", {"from": "nothing"})[0] == 404
    assert gw.control("DELETE", "/api/v1/checkpoints/nothing")[0] == 404
    for wrong in ({"name": "Wrong"}, {"name": "ck-x"}, {"name": "../x"}, {"name": ""}, {"more": 1}):
        assert gw.control("POST", "/api/v1/sandboxes/box/snapshot", wrong)[0] == 400, wrong
    assert gw.control("POST", "/api/v1/sandboxes/start", {"from": "../x"})[0] == 400
    gw.cli("sandbox", "destroy", "box", rc=0)


# ---- accidents ----

@test()
def what_is_waited_for_is_said_at_a_terminal(lab):
    gw = setup(lab)
    start(gw, "box")
    snapshot(gw, "box", "built")
    env = {"COUNTERSIGN_STATE": str(gw.state), "PATH": os.environ["PATH"], "HOME": str(lab.home)}
    for words, said in ((("sandbox", "snapshot", "box"), b"its files are read: "),
                        (("sandbox", "fork", "box", "twin"), b"its files are copied: "),
                        (("sandbox", "restore", "built", "other"), b"its files are put into it: ")):
        with next(store(gw).glob("*/lock")).open() as place:
            fcntl.flock(place, fcntl.LOCK_EX)
            terminal = Terminal(lab, [program(), *words], env)
            terminal.until(said + b"1 s")
            terminal.until(said + b"2 s")
        assert terminal.end() == 0, terminal.said
    for name in ("box", "twin", "other"):
        gw.cli("sandbox", "destroy", name, rc=0)


@test()
def whoever_is_killed_nothing_half_made_is_kept(lab):
    """G24"""
    gw = setup(lab)
    lab.expects(r"parent: the (desk|warden) \(pid \d+\) ended by signal 9")
    start(gw, "box")
    shell(gw, "box", "seq 200000 > numbers; mkdir d; echo x > d/x")
    snapshot(gw, "box", "built")
    before = files(gw, "box")
    for commits, who in ((False, "checkpoint"), (False, "workspace"), (True, "checkpoint")):
        shell(gw, "box", "head -c 9999 /dev/urandom > more")
        client, keeper = held(gw, "sandbox", "snapshot", "box", "never", commits=commits)
        kill_at_work(gw, who, keeper)
        assert client.wait() == 4 and (b"who read" in client.seen or b"ended before" in client.seen), client.seen
        nobody_is_at_work(gw)
        assert len(whole(gw)) == 1 and gw.cli_json("sandbox", "started")["started"][0]["state"] == "running"
    for commits in (False, True):
        name = f"alone-{commits}".lower()
        client, keeper = held(gw, "sandbox", "snapshot", "box", name, commits=commits)
        client.stop()  # it alone: what it asked for is done
        os.kill(keeper, signal.SIGCONT)
        lab.wait_for("the checkpoint", lambda: name in [c.get("name") for c in listed(gw)])
        lab.wait_for("that it goes on", lambda: gw.cli_json("sandbox", "started")["started"][0]["state"] == "running")
        gw.cli("checkpoint", "rm", name, rc=0)
        client, keeper = held(gw, "sandbox", "snapshot", "box", "never", commits=commits)
        gw.kill("desk")
        nobody_is_at_work(gw)
        assert client.wait() != 0 and len(whole(gw)) == 1, client.seen
        lab.wait_for("that the next desk lets it go on", lambda: gw.cli_json("sandbox", "started")["started"][0]["state"] == "running")
        client, keeper = held(gw, "sandbox", "snapshot", "box", "never", commits=commits)
        gw.cli("sandbox", "destroy", "box", rc=0)
        nobody_is_at_work(gw)
        assert client.wait() != 0 and len(whole(gw)) == 1, client.seen
        start(gw, "box", "--from", "built")
        client, keeper = held(gw, "sandbox", "snapshot", "box", "never", commits=commits)
        gw.kill("warden")
        nobody_is_at_work(gw)
        assert client.wait() != 0 and len(whole(gw)) == 1, client.seen
        nothing_is_left(gw)
        start(gw, "box", "--from", "built")
        client, keeper = held(gw, "sandbox", "snapshot", "box", "never", commits=commits)
        lab.kills(gw.daemon())
        lab.wait_for("its end", lambda: state_of(keeper) == "Z")
        client.wait()
        gw.up()
        nothing_is_left(gw)
        assert [c["name"] for c in listed(gw)] == ["built"]
        start(gw, "box", "--from", "built")
        assert files(gw, "box") == before
    snapshot(gw, "box")  # which throws away what was half written
    assert not list(store(gw).rglob("tmp-*"))
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def whoever_is_killed_nothing_half_filled_runs(lab):
    """G24"""
    gw = setup(lab)
    lab.expects(r"parent: the (desk|warden) \(pid \d+\) ended by signal 9")
    start(gw, "box")
    digest = shell(gw, "box", "head -c 60000000 /dev/urandom > large; sha256sum large").out
    snapshot(gw, "box", "built")
    gw.cli("sandbox", "destroy", "box", rc=0)

    def of_it():
        return gw.cli_json("sandbox", "started")["started"]

    for who in ("checkpoint", "workspace", "desk", "warden"):
        client, keeper = held(gw, "sandbox", "restore", "built", "box")
        assert of_it() == []
        assert b"does not run yet" in execute(gw, "box", "true", rc=None).err
        if who in ("desk", "warden"):
            gw.kill(who)
        else:
            kill_at_work(gw, who, keeper)
        assert client.wait() != 0, client.seen
        nobody_is_at_work(gw)
        nothing_is_left(gw)
        lab.wait_for("who tells", lambda: gw.cli("sandbox", "started").rc == 0)
        assert of_it() == []
    for who in ("checkpoint", "workspace") * 3:  # wherever it is then
        client, keeper = held(gw, "sandbox", "restore", "built", "box")
        os.kill(keeper, signal.SIGCONT)
        kill_at_work(gw, who, keeper)
        assert (client.wait() == 0) == bool(of_it()), client.seen
        if of_it():
            assert shell(gw, "box", "sha256sum large").out == digest
            gw.cli("sandbox", "destroy", "box", rc=0)
        nothing_is_left(gw)
    client, keeper = held(gw, "sandbox", "restore", "built", "box")
    client.stop()  # it alone: what it asked for is done
    os.kill(keeper, signal.SIGCONT)
    lab.wait_for("it", of_it)
    assert shell(gw, "box", "sha256sum large").out == digest
    gw.cli("sandbox", "destroy", "box", rc=0)
    assert len(whole(gw)) == 1


@test()
def nothing_of_it_waits_for_another(lab):
    """G20: a neighbour of one that is being kept is not held up."""
    gw = setup(lab)
    for name in ("box", "neighbour"):
        start(gw, name)
        shell(gw, name, f"echo {name} > file")
    snapshot(gw, "box", "first")
    for commits in (False, True):
        client, keeper = held(gw, "sandbox", "snapshot", "box", commits=commits)
        assert execute(gw, "neighbour", "echo", "fine").out == b"fine\n"
        assert b"being read" in gw.cli("sandbox", "resume", "box", rc=1).err
        assert b"already" in gw.cli("sandbox", "snapshot", "box", rc=1).err
        assert snapshot(gw, "neighbour", "small")["files"] == 1
        assert [c.get("name") for c in listed(gw)][0] == "small"
        gw.cli("sandbox", "restore", "small", "third", rc=0)
        assert shell(gw, "third", "cat file").out == b"neighbour\n"
        gw.cli("sandbox", "destroy", "third", rc=0)
        gw.cli("checkpoint", "rm", "small", rc=0)  # what of it is not needed goes later
        os.kill(keeper, signal.SIGCONT)
        assert client.wait() == 0, client.seen
    assert len(listed(gw)) == 3
    for name in ("box", "neighbour"):
        gw.cli("sandbox", "destroy", name, rc=0)


@test()
def who_keeps_them_can_do_nothing_else(lab):
    """G9: a user of its own, and the folder."""
    gw = setup(lab)
    start(gw, "box")
    snapshot(gw, "box")
    client, keeper = held(gw, "sandbox", "snapshot", "box")
    users = {}
    for word in ("checkpoint", "workspace"):
        pid, = lab.wait_for("that one alone is at work", lambda word=word: [p for p in [at_work(gw, word)] if len(p) == 1 and p])[0]
        lab.wait_for("its walls", lambda pid=pid: walls_are_up(pid))
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        for line in ("CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
            assert line in status, (word, line)
        users[word] = [line.split()[1] for line in status.splitlines() if line.startswith("Uid:")][0]
    inner = [pathlib.Path(f"/proc/{pid}/status").read_text() for pid, words in inside(gw) if b"shim" in words]
    assert inner and all(f"Uid:\t{users['workspace']}\t" in status for status in inner), users
    assert users["checkpoint"] != users["workspace"] and "0" not in users.values(), users
    assert oct(os.stat(store(gw)).st_mode & 0o777) == "0o700" and str(os.stat(store(gw)).st_uid) == users["checkpoint"]
    os.kill(keeper, signal.SIGCONT)
    assert client.wait() == 0, client.seen
    gw.cli("sandbox", "destroy", "box", rc=0)


if __name__ == "__main__":
    main()
