#!/usr/bin/env python3
"""Started sandboxes that cost nothing while nobody needs them: one that was paused for long is put into a checkpoint and
ended, and the next call that names it finds its files again, and nothing that ran or was given to it before."""
import os
import sqlite3

from boxes import alive, both, cgroups, execute, inside, nothing_is_left, setup, shell, start
from gateway import program
from harness import PATIENCE, main, test

SAID = b"was idle: its files were restored"


def row(gw, name):
    return next((s for s in gw.cli_json("sandbox", "started")["started"] if s["name"] == name), None)


def state(gw, name):
    return (row(gw, name) or {}).get("state")


def idles(gw, name):
    """It is paused, and then put aside."""
    gw.cli("sandbox", "pause", name, rc=0)
    gw.lab.wait_for("that it is idle", lambda: state(gw, name) == "idle")
    return row(gw, name)


def kept(gw):
    """Checkpoints on the disk, whoever made them."""
    return sorted(p.name for p in (gw.state / "checkpoints").rglob("ck-*") if "." not in p.name)


def in_store(gw, query):
    store = sqlite3.connect(f"file:{gw.state}/store/ledger.db?mode=ro", uri=True, timeout=PATIENCE)
    try:
        return store.execute(query).fetchall()
    finally:
        store.close()


@both
def its_files_are_there_again_and_nothing_else(lab, gw):
    """G24"""
    start(gw, "box", "--idle", "1s", "--memory", "256M", "--disk", "64M", "--files", "128", "--timeout", "2h",
          "--session", "work")
    shell(gw, "box", "mkdir -p a/b; echo kept > a/b/file; chmod 700 a/b/file; ln -s b/file a/link")
    number = execute(gw, "box", "sleep", "600", options=("--detach",)).out.decode().strip()
    before = row(gw, "box")
    assert before["idle_after"] == 1
    is_now = idles(gw, "box")
    nothing_is_left(gw)  # no process, no cgroup
    assert is_now["generation"] > before["generation"] and is_now["left_ms"] > 3600 * 1000, is_now
    assert b"idle since" in gw.cli("sandbox", "started", rc=0).out
    assert gw.cli_json("checkpoint", "list")["checkpoints"] == [] and len(kept(gw)) == 1  # nobody's to find, and counted
    assert [r["kind"] for r in gw.cli_json("sandbox", "list")["sandboxes"] if r["name"] == "box"] == ["idle"]
    # What needs what ran in it does not restore it.
    for words in (("ps", "box"), ("attach", "box", number), ("kill", "box", number), ("logs", "box", number),
                  ("timeout", "box", "1h"), ("pause", "box")):
        done = gw.cli("sandbox", *words)
        assert done.rc != 0 and b"idle" in done.err, (words, done.text())
    assert b"is idle" in gw.cli("sandbox", "start", "box", rc=1).err
    assert b"or is idle" in gw.cli("sandbox", "rm", "box", rc=1).err
    assert state(gw, "box") == "idle"
    done = shell(gw, "box", "cat a/link; stat -c %a a/b/file; pgrep sleep || echo none")
    assert done.out == b"kept\n700\nnone\n" and SAID in done.err, done.text()
    after = row(gw, "box")
    assert after["state"] == "running" and after["generation"] > is_now["generation"] and after["left_ms"] > 3600 * 1000
    for same in ("memory", "pids", "disk", "files", "image", "digest", "limits", "held_by", "idle_after"):
        assert after.get(same) == before.get(same), (same, before, after)
    assert in_store(gw, "SELECT session FROM sandbox WHERE name = 'box'") == [("work",)]
    lab.wait_for("its checkpoint gone", lambda: not kept(gw))
    assert in_store(gw, "SELECT * FROM idle") == []
    assert SAID not in shell(gw, "box", "true").err  # once
    gw.recorded(1, about="sandbox-idle", fits=lambda r: r["what"]["sandbox"] == "box")
    gw.cli("runs", "verify", rc=0)
    gw.cli("audit", "verify", rc=0)
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def each_call_that_needs_it_restores_it(lab, gw):
    """G24"""
    start(gw, "box", "--idle", "1s")
    shell(gw, "box", "echo one > file")
    here = lab.dir / "here"
    here.write_bytes(b"from here" * 100000)
    calls = ((("sandbox", "ls", "box:."), b"file"), (("sandbox", "cp", "box:file", "-"), b"one"),
             (("sandbox", "cp", here, "box:up"), b""), (("sandbox", "resume", "box"), b""), (("sandbox", "snapshot", "box"), b"ck-"),
             (("sandbox", "fork", "box", "twin"), b""), (("sandbox", "exec", "--detach", "box", "--", "true"), b"."))
    for words, has in calls:
        idles(gw, "box")
        done = gw.cli(*words, rc=0)
        assert SAID in done.err and has in done.out, (words, done.text())
        assert state(gw, "box") == "running", words
    assert shell(gw, "twin", "cat file").out == b"one\n"
    assert shell(gw, "box", "wc -c < up").out == b"900000\n"
    idles(gw, "box")
    # Two at once: one restores it, both have it.
    waiting = [gw.lab.start([program(), "sandbox", "exec", "box", "--", "sh", "-c", "echo it >> both"],
                            env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]}) for _ in range(3)]
    assert [w.wait() for w in waiting] == [0, 0, 0], [w.seen for w in waiting]
    assert any(SAID in w.seen for w in waiting)  # who came later, of a slow machine, found it running
    assert shell(gw, "box", "cat both").out == b"it\n" * 3
    assert in_store(gw, "SELECT restored FROM sandbox WHERE name = 'box'") == [(len(calls) + 1,)]
    # Destroyed while it is idle: nothing of it is left.
    idles(gw, "box")
    assert kept(gw)
    gw.cli("sandbox", "destroy", "box", rc=0)
    gw.cli("sandbox", "destroy", "twin", rc=0)
    assert state(gw, "box") is None
    assert b"no sandbox" in gw.cli("sandbox", "resume", "box", rc=1).err
    lab.wait_for("what was listed alone", lambda: len(kept(gw)) == len(gw.cli_json("checkpoint", "list")["checkpoints"]))
    start(gw, "box")
    assert shell(gw, "box", "ls").out == b""
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def no_lease_of_before_is_good_after_it(lab):
    """G24"""
    gw = setup(lab, lease="github", config="idle: 1s\n")
    start(gw, "box")
    assert row(gw, "box")["idle_after"] == 1
    lease = gw.cli_json("lease", "issue", "api", "--sandbox", "box")
    idles(gw, "box")
    assert not alive(gw, "box", lease)
    assert gw.cli("lease", "issue", "api", "--sandbox", "box").rc != 0
    gw.cli("sandbox", "resume", "box", rc=0)
    assert not alive(gw, "box", lease) and alive(gw, "box", gw.cli_json("lease", "issue", "api", "--sandbox", "box"))
    start(gw, "never", "--idle", "never")
    assert "idle_after" not in row(gw, "never")
    for wrong in ("0s", "8d", "soon"):
        assert gw.cli("sandbox", "start", "wrong", "--idle", wrong).rc != 0
    gw.stop()


@test()
def one_that_cannot_be_kept_stays_paused_and_says_why(lab):
    """G24"""
    gw = setup(lab, config="limits: { checkpoints: 2MiB }\n")
    lab.expects(r"stays paused, and is tried to be put aside again")
    start(gw, "box", "--idle", "1s")
    shell(gw, "box", "head -c 3M /dev/urandom > big; echo kept > file; sleep 600 &")
    gw.cli("sandbox", "pause", "box", rc=0)
    lab.wait_for("why", lambda: row(gw, "box").get("not_idle"))
    assert "would need more than" in row(gw, "box")["not_idle"] and state(gw, "box") == "paused", row(gw, "box")
    assert b"not made idle" in gw.cli("sandbox", "started", rc=0).out
    assert not kept(gw)
    done = gw.cli("sandbox", "resume", "box", rc=0)
    assert SAID not in done.err and "not_idle" not in row(gw, "box")
    assert b"sleep 600" in shell(gw, "box", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").out
    shell(gw, "box", "rm big")
    idles(gw, "box")
    assert shell(gw, "box", "ls").out == b"file\n"
    gw.stop()


@test()
def it_is_idle_still_when_the_gateway_starts_again(lab):
    """G24"""
    gw = setup(lab)
    start(gw, "box", "--idle", "1s")
    shell(gw, "box", "echo kept > file")
    idles(gw, "box")
    gw.stop()
    assert not inside(gw) and not cgroups(gw)
    gw.up()
    assert state(gw, "box") == "idle"
    done = shell(gw, "box", "cat file")
    assert done.out == b"kept\n" and SAID in done.err
    gw.stop()


if __name__ == "__main__":
    main()
