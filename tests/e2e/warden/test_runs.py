#!/usr/bin/env python3
"""What is written down of commands in started sandboxes: before they are ordered, and when they have ended, whatever is
killed between."""
import hashlib
import json
import signal
import sqlite3

from boxes import both, execute, following, setup, shell, start
import harness  # noqa: F401
from harness import main, test


def runs(gw, *options):
    return [json.loads(line) for line in gw.cli("runs", "list", "--json", "-n", "100", *options, rc=0).out.splitlines()]


def commands(gw):
    return [r for r in reversed(runs(gw)) if r["what"] == "command"]


def settled(lab, gw, n):
    """n commands whose end is written down: who ran one does not wait for that."""
    lab.wait_for(f"{n} commands that have ended", lambda: [r["state"] != "running" for r in commands(gw)] == [True] * n)
    return commands(gw)


def verify(gw, rc=0):
    return gw.cli("runs", "verify", rc=rc)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@both
def a_command_leaves_one_record_of_what_it_was_and_how_it_ended(lab, gw):
    started = start(gw, "box")
    execute(gw, "box", "sh", "-c", "cd /tmp; printf four; printf wrong >&2; exit 3", rc=3,
            options=("--env", "TOKEN=of no worth", "--dir", "/workspace"))
    shell(gw, "box", "kill -9 $$", rc=137)
    gw.cli("sandbox", "exec", "box", "--", "no-such-program", rc=None)
    (one, killed, none) = settled(lab, gw, 3)
    begin, end = one["begin"], one["end"]
    assert (begin["kind"], begin["sandbox"], begin["generation"], begin["command"]) == ("run", "box", 1, "1.1"), begin
    assert begin["argv"]["words"] == ["sh", "-c", "cd /tmp; printf four; printf wrong >&2; exit 3"], begin
    assert "TOKEN" in begin["variables"]["words"] and begin["dir"] == "/workspace" and begin["user"] == "1000", begin
    assert begin["digest"] == started["digest"] and len(begin["policy"]) == 64, begin
    assert (end["how"], end["status"], end["cut"]) == ("exited", 3, 0), end
    assert end["stdout"] == {"bytes": 4, "sha256": sha256(b"four")}, end
    assert end["stderr"] == {"bytes": 5, "sha256": sha256(b"wrong")}, end
    assert one["state"] == "ended" and one["ended_ms"] >= one["began_ms"], one
    assert (killed["end"]["how"], killed["end"]["signal"]) == ("signalled", 9), killed
    assert none["state"] == "ended", none
    shown = json.loads(gw.cli("runs", "show", one["id"][:10], "--json", rc=0).out)
    assert shown["begin"] == begin and shown["effects"] == {
        "requests": 0, "refused": 0, "bytes_out": 0, "bytes_in": 0, "exchanges": [], "more": False, "leases": []}, shown
    assert b"exited" in gw.cli("runs", "show", one["id"], rc=0).out
    assert b"exited 3" in gw.cli("runs", "list", rc=0).out
    gw.cli("sandbox", "destroy", "box", rc=0)
    assert [r["what"] for r in reversed(runs(gw))] == ["start", "command", "command", "command", "end"], runs(gw)
    exported = [json.loads(line) for line in gw.cli("runs", "export", rc=0).out.splitlines()]
    assert [r["id"] for r in exported] == [r["id"] for r in reversed(runs(gw))], exported
    assert b"5 runs are what the audit says" in verify(gw).out
    assert b"of no worth" not in gw.cli("audit", "export", rc=0).out
    gw.cli("runs", "show", "nosuchrun", rc=1)
    gw.cli("runs", "show", "../x", rc=2)


@both
def no_value_and_no_output_is_kept(lab, gw):
    """Beside what is looked at here, the canary is searched in all of the gateway's files."""
    canary = lab.canary("e" * 40)
    start(gw, "box")
    status, _ = gw.control("POST", "/api/v1/sandboxes/box/exec", {
        "argv": ["sh", "-c", "echo $TOKEN; echo $TOKEN >&2"], "env": [f"TOKEN={canary}"], "detach": True})
    assert status == 201, status
    (one,) = settled(lab, gw, 1)
    assert one["begin"]["variables"]["words"] == ["TOKEN"], one
    assert one["end"]["stdout"] == {"bytes": 41, "sha256": sha256(canary.encode() + b"\n")} == one["end"]["stderr"], one
    for words in (("audit", "export"), ("runs", "export"), ("runs", "show", one["id"])):
        assert canary.encode() not in gw.cli(*words, rc=0).out, words
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def what_is_cut_and_what_is_detached_say_so(lab):
    gw = setup(lab)
    start(gw, "box")
    gw.cli("sandbox", "exec", "--output", "10", "box", "--", "head", "-c", "3000000", "/dev/zero", rc=None)
    number = execute(gw, "box", "sh", "-c", "printf said", options=("--detach",)).out.decode().strip()
    cut, detached = settled(lab, gw, 2)
    assert cut["end"]["stdout"] == {"bytes": 10, "sha256": sha256(bytes(10))} and cut["end"]["cut"] == 3000000 - 10, cut
    assert detached["command"] == number and detached["begin"]["detached"] is True, detached
    assert detached["end"]["stdout"] == {"bytes": 4, "sha256": sha256(b"said")}, detached
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def what_becomes_of_a_sandbox_stands_around_its_commands(lab):
    gw = setup(lab)
    start(gw, "box")
    gw.cli("sandbox", "pause", "box", rc=0)
    gw.cli("sandbox", "resume", "box", rc=0)
    gw.cli("sandbox", "snapshot", "box", "kept", rc=0)
    shell(gw, "box", "true")
    gw.cli("sandbox", "restore", "kept", "again", rc=0)
    gw.cli("sandbox", "destroy", "box", rc=0)
    want = ["start", "pause", "resume", "pause", "checkpoint", "resume", "command", "end"]
    lab.wait_for("all of it", lambda: [r["what"] for r in reversed(runs(gw, "--sandbox", "box"))] == want)
    lab.wait_for("its start", lambda: [(r["what"], r["state"]) for r in runs(gw, "--sandbox", "again")]
                 == [("restore", "ended")])
    assert commands(gw)[0]["generation"] == 3 and commands(gw)[0]["command"] == "1.1", commands(gw)
    verify(gw)
    gw.cli("sandbox", "destroy", "again", rc=0)


@test()
def whoever_is_killed_between_leaves_a_record(lab):
    """F15"""
    gw = setup(lab)
    lab.expects(r"parent: the (warden|ledger|desk) \(pid \d+\) ended by signal 9")
    for role in ("warden", "ledger", "desk"):
        start(gw, role)
        client = following(gw, role, "sh", "-c", "echo runs; sleep 1000")
        client.wait_line("runs")
        (one,) = [r for r in commands(gw) if r["sandbox"] == role]
        assert one["state"] == "running" and "end" not in one, one
        gw.kill(role)
        if role == "ledger":
            lab.wait_for("another ledger", lambda: gw.cli("sandbox", "exec", role, "--", "true", rc=None).rc == 0)
            assert [r["state"] for r in commands(gw) if r["sandbox"] == role][0] == "running"
            gw.cli("sandbox", "destroy", role, rc=0)
        client.wait()
        lab.wait_for("its end", lambda: gw.cli("runs", "list", rc=None).rc == 0 and all(
            r["state"] != "running" for r in commands(gw) if r["sandbox"] == role))
        (one, *_) = [r for r in commands(gw) if r["sandbox"] == role]
        want = {"warden": ("unknown", "unknown"), "ledger": ("ended", "lost"), "desk": ("ended", "signalled")}[role]
        assert (one["state"], one["end"]["how"]) == want, one
    verify(gw)


@test()
def who_kills_all_of_the_gateway_leaves_a_record(lab):
    gw = setup(lab)
    start(gw, "box")
    client = following(gw, "box", "sh", "-c", "echo runs; sleep 1000")
    client.wait_line("runs")
    gw.process.signal(signal.SIGKILL)
    gw.process.wait()
    client.wait()
    gw.up()
    (one,) = settled(lab, gw, 1)
    assert (one["state"], one["end"]["how"]) == ("unknown", "unknown"), one
    assert [r["what"] for r in reversed(runs(gw))] == ["start", "command", "end"], runs(gw)
    verify(gw)


@test()
def a_change_of_what_is_kept_is_noticed(lab):
    """E43, of what is kept of runs."""
    gw = setup(lab)
    start(gw, "box")
    shell(gw, "box", "exit 4", rc=4)
    shell(gw, "box", "true")
    settled(lab, gw, 2)
    verify(gw)
    changes = [("run", "state", "'unknown'", "what='command'"), ("run", "sandbox", "'other'", "what='command'"),
               ("run", "generation", "9", "what='command'"), ("run", "command", "'1.9'", "what='command'"),
               ("run", "began_ms", "began_ms+1", "what='command'"), ("run", "ended_ms", "ended_ms+1", "what='command'"),
               ("run", "tenant", "'acme'", "what='command'"), ("run", "what", "'resume'", "what='start'"),
               ("run", "generation", "9", "what='start'"),
               ("audit", "json", "replace(json,'\"status\":4','\"status\":0')", "kind='run-end'"),
               ("audit", "json", "replace(json,'exit 4','exit 0')", "kind='run'")]
    for table, column, value, where in changes:
        db = sqlite3.connect(gw.state / "store" / "ledger.db", timeout=20)
        key = "seq" if table == "audit" else "id"
        old = db.execute(f"SELECT {key}, {column} FROM {table} WHERE {where} ORDER BY {key} LIMIT 1").fetchone()
        db.execute(f"UPDATE {table} SET {column}={value} WHERE {key}=?", (old[0],))
        db.commit()
        done = verify(gw, rc=1)
        assert b"is not what the audit says" in done.err or b"the chain is broken" in done.err, (column, done.text())
        db.execute(f"UPDATE {table} SET {column}=? WHERE {key}=?", (old[1], old[0]))
        db.commit()
        db.close()
        verify(gw)
    gw.cli("sandbox", "destroy", "box", rc=0)


if __name__ == "__main__":
    main()
