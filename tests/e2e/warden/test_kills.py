#!/usr/bin/env python3
"""kill -9 of the warden, of a sandbox's first process, of the parent and of the whole gateway at each step of what is done
with a sandbox: start, claim of one that waits, exec, snapshot, restore, fork, destroy, and while one becomes idle and is restored; by root's gateway and by an ordinary user's. Nothing is
left of it (process, mount, cgroup, file, user, row) and nothing is lost that was said to be done.

At each step one of the four is killed under root's gateway and another one under the ordinary user's, and over the steps of
an operation each of them; with KILLS=all each of the four at each step (make torture).

Each operation is a row of steps. A step names where it stands still, since who is to act next was stopped, and holds it
there; the next one goes on from that. What a process was sent and has not read says that the step is reached, so that
none is taken for another."""
import contextlib
import fcntl
import os
import pathlib
import signal
import sqlite3
import subprocess

from boxes import both, cgroups, shell, start
from gateway import ROLES, program
from harness import PATIENCE, main

KILLED = ("warden", "shim", "parent", "gateway")
ALL = os.environ.get("KILLS") == "all"
DONE = "it is said to be done"


# ---- what there is ----

def processes():
    """{pid: (parent, command line)} of all that live."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            rest = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split() if entry.isdigit() else "Z"
            if rest[0] not in "ZX":
                found[int(entry)] = int(rest[1]), pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            pass
    return found


def named(words):
    return os.path.basename(words.split(b"\0")[0]).decode(errors="replace").removeprefix("countersign-")


def others(gw):
    """{pid: name} of all below this test that is none of the gateway's roles, nor the test's own server: what belongs to a
    sandbox, or is done for one, wherever it went when who started it ended."""
    all_of = processes()
    ours = {os.getpid(), *(p.pid for p in gw.lab.processes)}
    below, found, grew = {os.getpid()}, {}, True
    while grew:
        grew = False
        for pid, (parent, words) in all_of.items():
            if parent in below and pid not in below:
                below.add(pid)
                grew = True
                if pid not in ours and not (parent == gw.daemon() and named(words) in (*ROLES, "front")):
                    found[pid] = named(words)
    return found


def roles(gw):
    return [pid for pid, (parent, words) in processes().items() if parent == gw.daemon() and named(words) in (*ROLES, "front")]


def one(gw, name):
    found = [pid for pid, is_called in others(gw).items() if is_called == name]
    return found[-1] if found else None


def sent(to, of):
    """Bytes that process `of` sent process `to` and that this has not read."""
    lines = [line.split() for line in subprocess.run(["ss", "-xtanHp"], capture_output=True, text=True,
                                                     check=True).stdout.splitlines()]
    whose = {f[5]: " ".join(f[8:]) for f in lines if len(f) > 8}
    return sum(int(f[2]) for f in lines if len(f) > 8 and f"pid={to}," in f[8] and int(f[2]) and
               f"pid={of}," in whose.get(f[7], ""))


def mounts(gw):
    return sorted(line.split(" ", 3)[3] for pid in ("self", gw.daemon())
                  for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines())


def folder(gw):
    """Its state directory, but for what is always there and what checkpoints are made of."""
    return sorted(str(p.relative_to(gw.state)) for p in gw.state.rglob("*")
                  if "checkpoints" not in p.parts and not p.name.startswith(("ledger.db", "sb-")) and
                  p.parts[-2] not in ("policies",))


def kept(gw):
    return gw.cli_json("checkpoint", "list")["checkpoints"]


def kept_half(gw):
    """Who looks which there are throws away what was half written, once nobody writes it any more."""
    kept(gw)
    return half(gw)


def half(gw):
    return list((gw.state / "checkpoints").rglob("tmp-*"))


# ---- one that stands still ----

class Still:
    """An operation on its way, at a step. Whoever was stopped goes on when this is over."""

    def __init__(self, gw, *words):
        self.gw, self.lab, self.words = gw, gw.lab, words
        self.stopped, self.locks, self.client = set(), {}, None

    def begin(self):
        self.client = self.lab.start([program(), *self.words],
                                     env={"COUNTERSIGN_STATE": self.gw.state, "PATH": os.environ["PATH"]})

    def pid(self, who):
        return self.gw.daemon() if who == "parent" else self.gw.pid(who) if who in ROLES else one(self.gw, who)

    def stop(self, who):
        pid = self.lab.wait_for(f"the {who}", lambda: self.pid(who))
        self.lab.stops(pid)
        self.stopped.add(pid)

    def go_on(self, who=None):
        for pid in list(self.stopped) if who is None else [self.pid(who)]:
            self.stopped.discard(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def until_sent(self, to, of):
        self.lab.wait_for(f"what the {of} says to the {to}", lambda: sent(self.pid(to), self.pid(of)))

    def then(self, to, of, goes_on):
        """`to` is stopped, who was so far goes on, and `of` says to `to` what it does not read."""
        self.stop(to)
        self.go_on(goes_on)
        self.until_sent(to, of)

    def lock(self, place):
        self.locks[place] = place.open()
        fcntl.flock(self.locks[place], fcntl.LOCK_EX)

    def unlock(self):
        for file in self.locks.values():
            file.close()
        self.locks = {}

    def over(self):
        self.unlock()
        self.go_on()


# ---- the steps ----
# Of each operation: the name of a step, and what leads there from the one before.

def first(who, of):
    """Who is asked first is stopped before it is."""
    def lead(s):
        s.stop(who)
        s.begin()
        s.until_sent(who, of)
    return lead


def then(to, of, goes_on):
    return lambda s: s.then(to, of, goes_on)


def its_process_waits(s):
    s.stop("warden")
    s.go_on("parent")
    s.lab.wait_for("its process", lambda: one(s.gw, "start-sandbox"))


def it_is_up(s):
    s.stop("warden")
    s.go_on("start-sandbox")
    s.lab.wait_for("its first process", lambda: one(s.gw, "shim"))
    s.until_sent("warden", "shim")


def it_runs(s):
    s.go_on("shim")
    s.client.wait_line("here")


def it_ends(s):
    s.stop("ledger")
    os.kill(s.lab.wait_for("the command", lambda: one(s.gw, "sleep")), signal.SIGKILL)
    s.until_sent("ledger", "warden")


def at_work(s):
    s.lab.wait_for("who is at its files", lambda: one(s.gw, "checkpoint") and one(s.gw, "workspace"))


def files_are_read(s):
    s.lock(next((s.gw.state / "checkpoints").glob("*/lock")))
    s.go_on("ledger")
    at_work(s)


def nothing_has_its_name(s):
    shelf = s.locks
    s.locks = {}
    s.lock(s.gw.state / "checkpoints" / "lock")
    for file in shelf.values():
        file.close()
    s.lab.wait_for("all of it on the disk", lambda: [f for f in half(s.gw) if f.suffix != ".pack"])


def it_is_kept(s):
    s.stop("ledger")
    s.unlock()
    s.lab.wait_for("its name", lambda: not half(s.gw) and not one(s.gw, "checkpoint"))
    s.until_sent("ledger", "desk")


def files_are_put_aside(s):
    s.lock(next((s.gw.state / "checkpoints").glob("*/lock")))
    s.begin()
    at_work(s)


def files_come_back(s):
    s.lock(next((s.gw.state / "checkpoints").glob("*/lock")))
    s.go_on("warden")
    at_work(s)


def it_has_them(s):
    it_is_filled(s)
    s.then("ledger", "desk", "desk")


def it_is_filled(s):
    s.stop("desk")
    s.unlock()
    s.until_sent("desk", "warden")


START = [("the ledger is to raise its generation", first("ledger", "desk")),
         ("the warden is to start it", then("warden", "desk", "ledger")),
         ("the parent is to start its process", then("parent", "warden", "warden")),
         ("its process waits for its order", its_process_waits),
         ("its order is not read yet", then("start-sandbox", "warden", "warden")),
         ("it is up and nobody knows", it_is_up),
         ("the desk is to say so", then("desk", "warden", "warden"))]
CLAIM = [*START[:1], ("the warden is to give one away", START[1][1]),
         ("the parent is to hear whose it is", then("parent", "warden", "warden"))]
EXEC = [("the ledger is to write it down", first("ledger", "warden")),
        ("the sandbox is to run it", then("shim", "warden", "ledger")),
        ("it runs", it_runs),
        ("the ledger is to write its end down", it_ends)]
SNAPSHOT = [("the parent is to pause it", first("parent", "warden")),
            ("the ledger is to end its leases", then("ledger", "desk", "parent")),
            ("its files are to be read", files_are_read),
            ("nothing of it has its name", nothing_has_its_name),
            ("it is kept and the sandbox stands still", it_is_kept)]
RESTORE = [("the ledger is to raise its generation", START[0][1]),
           ("its files are to be written", files_are_read),
           ("the desk is to say so", it_is_filled)]
FORK = [*SNAPSHOT, ("the files of the fork are to be written", files_are_read), ("the desk is to say so", it_is_filled)]
DESTROY = [("the warden is to end it", first("warden", "desk")),
           ("the parent is to kill it", then("parent", "warden", "warden")),
           ("the ledger is to write its end down", then("ledger", "desk", "parent"))]
# It is paused, and then put aside by itself.
IDLES = [("its files are to be read", files_are_put_aside),
         ("nothing of it has its name", nothing_has_its_name),
         ("its files are kept and the ledger does not know", it_is_kept),
         ("it is idle and stands still", then("warden", "desk", "ledger")),
         ("the parent is to kill it", then("parent", "warden", "warden"))]
WAKES = [("the warden is to end what is left of it", first("warden", "desk")),
         ("the ledger is to raise its generation", then("ledger", "desk", "warden")),
         ("the warden is to start it", then("warden", "desk", "ledger")),
         ("its files are to be written", files_come_back),
         ("it has its files and the ledger does not know", it_has_them)]


# ---- what is done, and what has to be so then ----

class World:
    """A gateway with a checkpoint that is kept, and how all is when no sandbox runs."""

    def __init__(self, lab, gw):
        self.lab, self.gw = lab, gw
        lab.expects(r"parent: the \w+ \(pid \d+\) ended by signal 9",
                    r"the audit misses what became of sandbox",
                    r"parent: sandbox \w+ can neither be paused nor go on")  # it was killed just then
        start(gw, "box")
        self.digest = shell(gw, "box", "seq 20000 > numbers; sha256sum numbers").out
        gw.cli("sandbox", "snapshot", "box", "built", rc=0)
        gw.cli("sandbox", "destroy", "box", rc=0)
        self.nothing_of_any_is_left()
        self.mounts, self.folder = mounts(gw), folder(gw)

    def running(self, idle=False):
        return sorted(s["name"] for s in self.gw.cli_json("sandbox", "started")["started"] if (s["state"] == "idle") == idle)

    def stored(self, query):
        store = sqlite3.connect(f"file:{self.gw.state}/store/ledger.db?mode=ro", uri=True, timeout=PATIENCE)
        try:
            return [row[0] for row in store.execute(query).fetchall()]
        finally:
            store.close()

    def nothing_of_any_is_left(self):
        gw = self.gw
        self.lab.wait_for("no sandbox", lambda: self.running() == [])
        self.lab.wait_for("nothing left of any: " + str(others(gw)), lambda: not others(gw) and not cgroups(gw))
        self.lab.wait_for("an end in the ledger", lambda: not self.stored("SELECT id FROM run WHERE state = 'running'") and
                          not self.stored("SELECT name FROM sandbox WHERE kind = 'started'"))
        self.lab.wait_for("nothing half made", lambda: not kept_half(gw))
        assert not self.running(idle=True) and not self.stored("SELECT name FROM idle")
        self.lab.wait_for("nothing kept that nobody asked for", lambda: len(kept(gw)) == len(
            [p for p in (gw.state / "checkpoints").rglob("ck-*") if not p.suffix]))

    def kill(self, who, s):
        """False: there is none of these yet, or no more."""
        gw = self.gw
        if who == "shim":
            pids = [pid for pid, name in others(gw).items() if name in ("shim", "start-sandbox")]
        else:
            pids = [gw.pid("warden")] if who == "warden" else [gw.daemon(), *(roles(gw) if who == "gateway" else ())]
        if not pids:
            return False
        if who in ("parent", "gateway"):
            gw.process.told = True
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                self.lab.kills(pid)
        s.over()
        if who in ("parent", "gateway"):
            gw.process.wait()
            gw.up()
        else:
            self.lab.wait_for("the gateway", lambda: gw.pid("warden") not in (None, *pids) and gw.cli("sandbox", "started").rc == 0)
        return True


def box_runs(w):
    start(w.gw, "box")
    shell(w.gw, "box", "seq 500 > numbers")


def one_waits(w, n=1):
    gw = w.gw
    gw.config.write_text(gw.config.read_text().partition("pool:")[0] + (f"pool: [{{ size: {n} }}]\n" if n else ""))
    gw.cli("reload", rc=0)
    w.lab.wait_for(f"{n} that wait", lambda: gw.cli_json("status")["sandboxes"]["waiting"] == n)


def none_waits(w, done):
    """Those that wait come back whoever was killed, and one of them is given away."""
    one_waits(w, 1)
    one_waits(w, 0)


def more_is_whole(w, done):
    """What was said to be kept is; what was not said to be so may be kept, but then whole."""
    names = [c.get("name") for c in kept(w.gw)]
    assert "more" in names or not done, names
    if "more" in names:
        w.gw.cli("sandbox", "restore", "more", "again", rc=0)
        assert shell(w.gw, "again", "cat numbers | wc -l").out == b"500\n"
        w.gw.cli("checkpoint", "rm", "more", rc=0)


def only_built_is_kept(w, done):
    w.lab.wait_for("that nothing of a fork is kept", lambda: [c.get("name") for c in kept(w.gw)] == ["built"])


def box_may_idle(w):
    start(w.gw, "box", "--idle", "1s")
    shell(w.gw, "box", "seq 500 > numbers")


def box_is_idle(w):
    box_may_idle(w)
    w.gw.cli("sandbox", "pause", "box", rc=0)
    w.lab.wait_for("that it is idle and has ended",
                   lambda: w.running(idle=True) == ["box"] and not others(w.gw) and not cgroups(w.gw))
    w.restored = times_restored(w)


def idle_ends(w):
    w.gw.cli("sandbox", "destroy", "box", rc=0)
    assert w.running(idle=True) == []


def it_is_idle_or_ended(w, done):
    """From when the ledger knows that it is idle, it is, whoever was killed; before, it ends as any that is paused."""
    late = [step for step, _ in IDLES[3:]] + [DONE]
    w.lab.wait_for("that it is one of both", lambda: not w.stored("SELECT 1 FROM sandbox WHERE name = 'box' AND kind = 'started'"))
    if w.running(idle=True) or w.step in late:
        assert shell(w.gw, "box", "wc -l < numbers").out == b"500\n"
        idle_ends(w)


def times_restored(w):
    return w.stored("SELECT restored FROM sandbox WHERE name = 'box'")


def it_is_idle_still(w, done):
    """Until it has its files again, and that is written down: from then on it ends with them, as any other that runs. Who is
    killed may let the others come so far."""
    restored = times_restored(w) != w.restored
    assert restored or not done, w.step
    if not restored and not w.running():
        assert w.running(idle=True) == ["box"], w.step
    if w.running(idle=True):
        assert shell(w.gw, "box", "wc -l < numbers").out == b"500\n"
        idle_ends(w)


def operation(name, steps, words, prepares=None, holds=None, status=0, then_so=None):
    """At each step, each of those that are killed. status: of the client, when all of it is done; holds: what has to be so
    then, and if it was not; then_so: what is waited for when it has said so."""
    def run(lab, gw):
        w = World(lab, gw)
        hit, meant, killed = set(), set(), set()
        ordinary = gw.state.stat().st_uid != 0
        for n, step in enumerate([*(step for step, _ in steps), DONE]):
            for who in KILLED if ALL else [KILLED[(n + 2 * ordinary) % len(KILLED)]]:
                meant.add((step, who))
                if prepares:
                    prepares(w)
                s = Still(gw, *words)
                w.step = step
                try:
                    for one_step, lead in steps[:n + 1]:
                        lead(s)
                        hit.add(one_step)
                    if step == DONE:
                        s.over()
                        assert s.client.wait() == status, s.client.seen
                        if then_so:
                            lab.wait_for("what is so then", lambda: then_so(w))
                        hit.add(DONE)
                    if w.kill(who, s):
                        killed.add((step, who))
                except AssertionError as why:
                    raise AssertionError(f"{step}, {who} killed: {why}") from why
                finally:
                    s.over()
                done = s.client.wait() == status
                print(f"# {step}, {who} killed: {'done' if done else 'not done'}")
                if (step, who) in killed:
                    # Who stands still dies when it goes on: its files are read until then, and a fork made of them.
                    forked = ["twin"] if who == "shim" and done and name == "is_forked" else None
                    # Who waits ends before it is given away, and then another one is started.
                    forked = ["box"] if who == "shim" and step != DONE and name == "is_claimed" else forked
                    # What no warden has heard of yet, the next one starts.
                    forked = ["box"] if who == "warden" and done and step == START[0][0] else forked
                    lab.wait_for("that no sandbox runs", lambda: w.running() in ([], forked))
                if holds:
                    holds(w, done)
                for box in w.running():
                    gw.cli("sandbox", "destroy", box)
                w.nothing_of_any_is_left()
                assert mounts(gw) == w.mounts and folder(gw) == w.folder, (step, who, folder(gw), w.folder)
                assert "built" in [c.get("name") for c in kept(gw)], (step, who)
        assert hit == {*(step for step, _ in steps), DONE}, hit
        assert killed >= {(step, who) for step, who in meant if who != "shim"}, killed
        assert not ALL or "shim" in [who for _, who in killed]
        gw.cli("sandbox", "restore", "built", "box", rc=0)
        assert shell(gw, "box", "sha256sum numbers").out == w.digest
        gw.cli("sandbox", "destroy", "box", rc=0)
        w.nothing_of_any_is_left()
    run.__name__ = f"whoever_is_killed_while_one_{name}"
    run.__doc__ = "G24"
    both(run)


operation("starts", START, ("sandbox", "start", "box"))
operation("is_claimed", CLAIM, ("sandbox", "start", "box"), one_waits, none_waits)
operation("runs_a_command", EXEC, ("sandbox", "exec", "box", "--", "sh", "-c", "echo here; sleep 600"), box_runs, status=137)
operation("is_kept", SNAPSHOT, ("sandbox", "snapshot", "box", "more"), box_runs, more_is_whole)
operation("is_restored", RESTORE, ("sandbox", "restore", "built", "box"))
operation("is_forked", FORK, ("sandbox", "fork", "box", "twin"), box_runs, only_built_is_kept)
operation("becomes_idle", IDLES, ("sandbox", "pause", "box"), box_may_idle, it_is_idle_or_ended,
          then_so=lambda w: w.running(idle=True) == ["box"])
operation("is_needed_again", WAKES, ("sandbox", "exec", "box", "--", "cat", "numbers"), box_is_idle, it_is_idle_still)
operation("is_destroyed", DESTROY, ("sandbox", "destroy", "box"), box_runs)

if __name__ == "__main__":
    main()
