#!/usr/bin/env python3
"""Sandboxes that wait for whoever asks for one (pool: of the configuration): that nobody can tell one from one that was
started just then, that each is somebody's once, and that nothing is left of those that nobody wanted; by root's gateway and
by an ordinary user's."""
import contextlib
import os
import pathlib
import re
import signal
import time

from boxes import both, cgroups, execute, nothing_is_left, shell, start
from harness import main, shims

POOL = "pool: [{ size: 2 }, { size: 1, memory: 512MiB }]\n"
PYTHON = "/usr/bin/python3"

# What a program in it can know of it, but for what is each one's own.
LOOK = """
import os, json, socket
mounts = [line.split(" - ") for line in open("/proc/self/mountinfo")]
seen = {"environ": dict(os.environ), "host": socket.gethostname(), "uid": os.getresuid() + os.getresgid(), "cwd": os.getcwd(),
        "fds": sorted(os.listdir("/proc/self/fd")), "pids": sorted(p for p in os.listdir("/proc") if p.isdigit()),
        "mounts": [[a.split()[4:6], b.split()] for a, b in mounts],
        "tree": [[d, sorted(f)] for place in ("/workspace", "/home", "/tmp", "/run", "/countersign", "/dev/shm") for d, _, f in os.walk(place)],
        "net": open("/proc/net/dev").read(), "self": [l for l in open("/proc/self/status") if l.startswith(("Cap", "No", "Sec"))]}
print(json.dumps(seen, sort_keys=True))
"""


def waiting(gw):
    return gw.cli_json("status")["sandboxes"]["waiting"]


def full(gw, n=3):
    gw.lab.wait_for(f"{n} that wait", lambda: waiting(gw) == n)


def shim_of(gw, name):
    """The first process of the sandbox, from outside: its child says who it is."""
    sleeper = f"sleep-for-{name}"
    shell(gw, name, f"ln -sf /usr/bin/sleep /tmp/{sleeper}")
    gw.cli("sandbox", "exec", "--detach", name, "--", f"/tmp/{sleeper}", "600", rc=0)

    def found():
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and sleeper.encode() in (entry / "cmdline").read_bytes().split(b"\0")[0]:
                    return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        return None
    return gw.lab.wait_for("its process", found)


@both(config=POOL)
def one_that_waited_is_as_one_that_was_started_just_then(lab, gw):
    full(gw)
    assert gw.cli_json("sandbox", "started")["started"] == []  # those that wait are nobody's
    assert gw.cli_json("status")["sandboxes"]["started"] == 0
    before = set(shims())
    begun = time.time()
    told = {"waited": start(gw, "waited"), "fresh": start(gw, "fresh", "--pids", "255")}
    assert shim_of(gw, "waited") in before and shim_of(gw, "fresh") not in before
    assert {k: v for k, v in told["waited"].items() if k not in ("name", "pids")} == \
        {k: v for k, v in told["fresh"].items() if k not in ("name", "pids")}, told
    seen = {name: re.sub(rb"([ug]id)=\d+", rb"\1=ITS", execute(gw, name, PYTHON, "-c", LOOK).out.replace(
        b"sleep-for-" + name.encode(), b"it").replace(b'"' + name.encode() + b'"', b'"NAME"')) for name in told}
    assert len({len(s.split(b", ")) for s in seen.values()}) == 1, seen
    for one, other in zip(*(s.split(b", ") for s in seen.values())):
        assert one == other, (one, other)
    assert b'"COUNTERSIGN_SANDBOX": "NAME"' in seen["waited"], seen["waited"]
    # Of before it was somebody's, no folder of its own tells.
    for place in ("/workspace", "/home/agent", "/tmp"):
        assert float(shell(gw, "waited", f"stat -c %Y {place}").out) >= int(begun), place
    listed = {s["name"]: s for s in gw.cli_json("sandbox", "started")["started"]}
    assert listed["waited"].keys() == listed["fresh"].keys() and 0 <= listed["waited"]["age_ms"] <= (time.time() - begun) * 1000 + 1
    audit = {r["what"]["sandbox"]: r["what"].keys() for r in gw.audit() if r.get("about") == "sandbox-started"}
    assert audit["waited"] == audit["fresh"], audit
    for name in told:
        gw.cli("sandbox", "destroy", name, rc=0)


@both(config=POOL)
def each_is_somebody_s_once(lab, gw):
    """G23: what somebody left in one, the next does not find."""
    full(gw)
    used = set()
    for n in range(4):
        start(gw, "box", "--memory", "512M")
        shell(gw, "box", "test -z \"$(ls -A /workspace /tmp /home/agent /dev/shm)\" || ls -AR /workspace /tmp /home/agent")
        pid = shim_of(gw, "box")
        assert pid not in used
        used.add(pid)
        shell(gw, "box", "echo mine | tee /workspace/a /tmp/b ~/c /dev/shm/d")
        gw.cli("sandbox", "destroy", "box", rc=0)
        full(gw)
    # A checkpoint's files find one that waits, too.
    start(gw, "box")
    shell(gw, "box", "echo kept > file")
    gw.cli("sandbox", "snapshot", "box", "kept", rc=0)
    gw.cli("sandbox", "destroy", "box", rc=0)
    full(gw)
    before = set(shims())
    gw.cli("sandbox", "restore", "kept", "again", rc=0)
    assert shell(gw, "again", "cat file").out == b"kept\n" and shim_of(gw, "again") in before
    gw.cli("sandbox", "destroy", "again", rc=0)


@both(config=POOL)
def what_nobody_wanted_is_not_left(lab, gw):
    """G24"""
    def written(config):
        gw.config.write_text(gw.config.read_text().partition("pool:")[0] + config)
    full(gw)
    one = min(shims())
    os.kill(one, signal.SIGKILL)  # another one comes, when it was seen that this one did not last
    gw.lab.wait_for("another", lambda: one not in shims() and waiting(gw) == 3)
    written("")
    gw.cli("reload", rc=0)
    full(gw, 0)
    nothing_is_left(gw)
    written("pool: [{ size: 1, image: none }]\n")
    lab.expects("no sandbox waits for who asks for one of image none")
    gw.cli("reload", rc=0)
    start(gw, "box")  # what is asked for starts all the same
    gw.cli("sandbox", "destroy", "box", rc=0)
    written("pool: [{ size: 3 }]\n")
    gw.cli("reload", rc=0)
    full(gw)
    lab.expects(r"parent: the warden \(pid \d+\) ended by signal 9")
    old = set(shims())
    gw.kill("warden")
    gw.lab.wait_for("those of another warden", lambda: not old & set(shims()) and waiting(gw) == 3)
    lost = {r["what"].get("sandbox") for r in gw.audit() if r.get("about") == "sandbox-ended"}
    assert lost == {"box"}, lost  # nobody's end is nobody's loss
    gw.stop()
    gw.lab.wait_for("nothing left", lambda: not shims() and not cgroups(gw))


if __name__ == "__main__":
    main()
