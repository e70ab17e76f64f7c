#!/usr/bin/env python3
"""The store in trouble: a full disk, a database somebody else has locked, a ledger that hangs or is gone. Every
request is refused, in words, soon; nothing is lost; and it goes on by itself when the trouble is over."""
import ctypes
import json
import os
import secrets
import signal
import sqlite3
import subprocess
import threading

from gateway import Gateway, simple_policy
from harness import PATIENCE, Skip, main, test

CLONE_NEWNS = 0x20000
CURL = ["curl", "-sS", "--max-time", str(PATIENCE), "--suppress-connect-headers", "-D", "-"]


def private_mounts():
    """What is mounted from here on nobody else sees, and it goes with us."""
    if os.geteuid() != 0 or ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return False
    return subprocess.run(["mount", "--make-rprivate", "/"]).returncode == 0


HUNG = ("judge: the ledger has not said a word for 5 s: requests are refused until it does", "judge: the ledger speaks again")
NO_START = (r"parent: the ledger \(pid \d+\) ended by exit 1; restarting it", "parent: the ledger does not come up; giving up",
            "ledger: (cannot make the store .* is full|the store cannot be brought in order: database is locked)")


class World:
    """A gateway, its store on a small disk of its own if wanted, and a client."""

    def __init__(self, lab, disk=None, **more):
        if disk and not MOUNTS:
            raise Skip("a small disk needs root, to mount it")
        self.lab, self.up, self.store = lab, lab.upstream(), lab.dir / "state/store"
        lab.expects("ledger: the store failed: .* (is full|is locked); refusing until it is back", r"\w+: the store is back",
                    "judge: the store is lost: requests are refused until it is back")
        if disk:
            self.store.mkdir(parents=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk}", "tmpfs", self.store], check=True)
            lab.at_end.append(lambda: subprocess.run(["umount", self.store], check=True))
        policy = simple_policy(self.up, extra=self.freely()).replace('[write, delete] }', '[write, delete], path: /things }')
        self.gw = Gateway(lab, policy, more.pop("secrets", {"api": lab.canary(
            secrets.token_urlsafe(32)).encode()}), **more)
        self.env = self.gw.client_env()
        self.url = f"https://{self.up.name}:{self.up.port}"

    def freely(self):
        return ('  - id: freely\n    match: { host: %s, port: %d, path: /free, effect: write }\n'
                '    decide: allow\n    use: api\n' % (self.up.name, self.up.port))

    def command(self, path, data=None):
        return [*CURL, *(["--data-binary", data] if data else []), self.url + path]

    def ask(self, path="/ok", data=None):
        """(status, answer) of a request; a curl that is not answered is a failure."""
        done = self.lab.run(self.command(path, data), env=self.env, rc=0)
        return int(done.out.split()[1]), done.out

    def refused(self, path="/ok", data=None):
        """503, and words an agent can act on."""
        status, answer = self.ask(path, data)
        problem = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert status == 503 and problem["code"] == "store-unavailable" and problem["retry"] is True, answer
        assert b"Retry-After:" in answer and b"nothing was sent" in answer.splitlines()[0].lower(), answer
        return True

    def all_refused(self):
        seen = len(self.up.requests())
        for path, data in (("/ok", None), ("/things", "a=1"), ("/free", "a=1"), ("/ok", None)):
            self.refused(path, data)
        assert len(self.up.requests()) == seen, "something was sent all the same"

    def works(self):
        return self.ask()[0] == 200

    def fill(self):
        """Until not a byte is left."""
        with open(self.store / "ballast", "wb", buffering=0) as out:
            for size in (65536, 4096, 1):
                try:
                    while out.write(b"x" * size):
                        pass
                except OSError:
                    pass

    def state_of(self, ticket):
        return next(t["state"] for t in self.gw.tickets("all") if t["id"] == ticket)


def lock(world):
    """Another process's write lock on the database; returns what ends it."""
    held, release = threading.Event(), threading.Event()

    def hold():
        store = sqlite3.connect(world.store / "ledger.db", isolation_level=None, timeout=PATIENCE)
        store.execute("BEGIN EXCLUSIVE")
        held.set()
        release.wait()
        store.execute("ROLLBACK")
        store.close()
    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    assert held.wait()
    return lambda: (release.set(), thread.join(20))


@test("F11 connect", "E32 full")
def on_a_full_disk_every_request_is_refused_in_words(lab):
    w = World(lab, disk="3m")
    assert w.works()
    client = lab.start(w.command("/things", "a=1"), env=w.env)
    ticket = w.gw.pending()["id"]
    w.fill()
    # A read that passed is written down after; the first that cannot be tells.
    lab.wait_for("a refusal", lambda: w.ask()[0] == 503)
    w.all_refused()
    done = w.gw.cli("approvals", "approve", ticket)
    assert done.rc != 0 and b"the ledger cannot use its store now" in done.both, done.text()
    (w.store / "ballast").unlink()
    lab.wait_for("the store's return", w.works)
    assert w.state_of(ticket) == "pending", "the ticket was lost"
    w.gw.approve(ticket)
    client.wait_line(r"HTTP/1.1 200")  # it waited through all of it
    lab.wait_for("the ticket's end", lambda: w.state_of(ticket) == "done")
    assert w.up.effects().get("POST /things", 0) == 1
    assert w.ask("/free", "a=1")[0] == 200 and w.gw.cli("audit", "verify").rc == 0


@test("F11 result")
def what_was_sent_when_the_disk_filled_is_written_down_later(lab):
    w = World(lab, disk="3m")
    w.works()
    client = lab.start(w.command("/things", "a=1"), env=w.env)
    ticket = w.gw.pending()["id"]
    lab.stops(w.up.process.pid)
    w.gw.approve(ticket)
    lab.wait_for("the execution", lambda: w.state_of(ticket) == "executing")
    w.fill()
    os.kill(w.up.process.pid, signal.SIGCONT)
    client.wait_line(r"HTTP/1.1 200")
    client.wait()
    lab.wait_for("a refusal", lambda: w.ask()[0] == 503)
    assert w.state_of(ticket) == "executing"
    (w.store / "ballast").unlink()
    lab.wait_for("the outcome", lambda: w.state_of(ticket) == "done")
    results = w.gw.recorded(kind="result", ticket=ticket)
    assert [r["outcome"] for r in results] == ["answered"], results
    assert w.gw.cli("audit", "verify").rc == 0


@test("F12 connect", "E32 locked")
def while_another_process_locks_the_database_every_request_is_refused(lab):
    w = World(lab)
    assert w.works()
    unlock = lock(w)
    try:
        lab.wait_for("a refusal", lambda: w.ask()[0] == 503)
        w.all_refused()
    finally:
        unlock()
    lab.wait_for("the store's return", w.works)
    assert w.ask("/free", "a=1")[0] == 200 and w.gw.cli("audit", "verify").rc == 0


@test("F11 allow-reads")
def with_allow_reads_reads_pass_and_are_recorded_later(lab):
    w = World(lab, config="store_lost: allow-reads\n")
    unlock = lock(w)
    try:
        lab.wait_for("a refusal", lambda: w.ask("/free", "a=1")[0] == 503)
        for _ in range(3):
            assert w.works(), "a read was refused"
        w.refused("/things", "a=1")
        w.refused("/free", "a=1")
        assert w.up.effects() == {"GET /ok": 3}, w.up.effects()
    finally:
        unlock()
    lab.wait_for("the store's return", lambda: w.ask("/free", "a=1")[0] == 200)
    assert len(w.gw.recorded(3, kind="result", path="/ok")) == 3
    assert w.gw.cli("audit", "verify").rc == 0


@test("F12 hung")
def while_the_ledger_hangs_clients_are_refused_soon(lab):
    lab.expects(*HUNG)
    lab.leaves("pending")  # opened when the ledger ran on; its client was told to repeat itself
    w = World(lab)
    assert w.works()
    ledger = w.gw.pid("ledger")
    lab.stops(ledger)
    try:
        asked = [lab.start(w.command(path, "a=1"), env=w.env) for path in ("/free", "/things")]
        for client in asked:
            client.wait()
            assert b"HTTP/1.1 503" in client.seen and b"store-unavailable" in client.seen, client.seen
        w.all_refused()
    finally:
        os.kill(ledger, signal.SIGCONT)
    lab.wait_for("the ledger's return", w.works)
    assert w.ask("/free", "a=1")[0] == 200
    assert w.up.effects().get("POST /free") == 1, "what was refused was sent later"
    assert w.gw.pid("ledger") == ledger and w.gw.cli("audit", "verify").rc == 0


@test("F12 reads")
def reads_stop_soon_when_nobody_writes_them_down(lab):
    lab.expects(*HUNG)
    w = World(lab)
    assert w.works()
    ledger = w.gw.pid("ledger")
    lab.stops(ledger)
    try:
        lab.wait_for("a refusal", lambda: w.ask()[0] == 503)
        w.refused()
    finally:
        os.kill(ledger, signal.SIGCONT)
    lab.wait_for("the ledger's return", w.works)


@test("F11 start")
def a_start_on_a_full_disk_is_refused_in_words(lab):
    lab.expects(*NO_START, "ledger: .* made a new store")
    w = World(lab, disk="1m")
    w.gw.stop()
    for file in w.store.iterdir():
        file.unlink()
    w.fill()
    start = ["countersign", "up", "--config", w.gw.config]
    done = lab.run(start)
    assert done.rc == 4 and b"full" in done.both and b"giving up" in done.both, done.text()
    (w.store / "ballast").unlink()
    w.gw.up()


@test("F12 start")
def a_start_on_a_locked_database_is_refused_in_words(lab):
    lab.expects(*NO_START)
    w = World(lab)
    w.gw.stop()
    unlock = lock(w)
    try:
        done = lab.run(["countersign", "up", "--config", w.gw.config])
        assert done.rc == 4 and b"locked" in done.both, done.text()
    finally:
        unlock()


if __name__ == "__main__":
    MOUNTS = private_mounts()
    main()
