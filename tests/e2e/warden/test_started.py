#!/usr/bin/env python3
"""Sandboxes that the gateway starts itself: what runs in them, what they may use, and that they end when they are told
to, whatever they do; by root's gateway and by an ordinary user's."""
import base64
import hashlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

from boxes import Nobodys, alive, both, execute, following, group, inside, nothing_is_left, setup, shell, start
import harness
from gateway import program
from harness import PATIENCE, main, test

sys.path.insert(0, str(harness.HERE / "lab"))
from terminal import Terminal  # noqa: E402

PYTHON = "/usr/bin/python3"


def at_a_terminal(gw, *words, within=()):
    """`countersign sandbox` as a person would use it."""
    drop = gw.lab.drop if isinstance(gw.lab, Nobodys) else []
    command = [*within, *drop, program(), "sandbox", *words]
    return Terminal(gw.lab, [shutil.which(command[0]), *command[1:]],
                    gw.lab.env({"COUNTERSIGN_STATE": str(gw.state), "PATH": os.environ["PATH"], "TERM": "xterm-256color"}))


@both
def a_command_runs_with_its_arguments_and_both_its_outputs(lab, gw):
    made = start(gw, "box")
    assert made["name"] == "box" and made["generation"] == 1, made
    done = shell(gw, "box", 'echo "$A" "$1"; echo err >&2; pwd; exit 3' , rc=3, options=("--env", "A=b c"))
    assert done.out == b"b c \n/workspace\n" and done.err == b"err\n", done.text()
    done = execute(gw, "box", "cat", "--", "/etc/hostname", "-- x", rc=1)
    assert b"-- x" in done.err, done.text()
    assert execute(gw, "box", "pwd", options=("--dir", "/tmp")).out == b"/tmp\n"
    for word in ((b"cat", b"\xff"), (b"env", b"A=\xc3")):
        assert b"as UTF-8" in execute(gw, "box", *word, rc=2).err
    assert b"as UTF-8" in execute(gw, "box", "pwd", rc=2, options=(b"--dir", b"/\x80")).err
    assert b"no-such-program" in execute(gw, "box", "no-such-program", rc=127).err
    assert shell(gw, "box", "kill -KILL $$", rc=137).out == b""
    assert execute(gw, "box", "sleep", "60", rc=124, options=("--timeout", "1s")).err == \
        b"countersign: its time was over (--timeout)\n"
    done = execute(gw, "box", "head", "-c", "5000000", "/dev/zero", options=("--output", "1M"))
    assert len(done.out) == 1 << 20 and b"3951424 bytes of its output were dropped" in done.err, len(done.out)
    done = execute(gw, "box", "head", "-c", "5000000", "/dev/zero")
    assert done.out == b"\0" * 5000000 and done.err == b"", (len(done.out), done.err)
    shell(gw, "box", "echo kept > file")
    assert shell(gw, "box", "cat file").out == b"kept\n"  # as long as it runs
    assert [s["name"] for s in gw.cli_json("sandbox", "started")["started"]] == ["box"]
    gw.cli("sandbox", "destroy", "box", rc=0)
    assert gw.cli_json("sandbox", "started")["started"] == []
    assert gw.cli("sandbox", "destroy", "box", rc=1).err.startswith(b"countersign: no sandbox of this name runs")
    assert b"no sandbox of this name runs" in execute(gw, "box", "true", rc=125).err
    told = {"sandbox-start", "sandbox-started", "sandbox-exec", "sandbox-destroy", "sandbox-ended"}
    gw.lab.wait_for("its record", lambda: told <= {r.get("about") for r in gw.audit()})


@both
def nothing_leads_out_of_it(lab, gw):
    """G2 G6 G9 G10: no descriptor, no network, no process and no capability of anybody else's."""
    start(gw, "box")
    look = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
assert sorted(os.listdir("/countersign")) == ["countersign-shim"], os.listdir("/countersign")
assert os.listdir("/sys/class/net") == ["lo"] if os.path.exists("/sys/class/net") else True
fds = {fd: os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)}
assert all(int(fd) <= 2 for fd in fds), fds
assert fds["0"] == "/dev/null" and fds["1"].startswith("pipe:") and fds["2"].startswith("pipe:"), fds
pids = [p for p in os.listdir("/proc") if p.isdigit()]
assert len(pids) == 2 and "1" in pids, pids
for path in ("/proc/1/fd", "/proc/1/environ", "/proc/1/mem"):
    try:
        os.listdir(path) if path.endswith("fd") else open(path).read(1)
    except PermissionError:
        continue
    raise SystemExit("can read " + path)
assert libc.ptrace(16, 1, 0, 0) == -1, "ptrace"
try:
    os.kill(1, 9)
except PermissionError:
    pass
status = open("/proc/self/status").read()
for line in ("CapEff:\\t0000000000000000", "CapBnd:\\t0000000000000000", "NoNewPrivs:\\t1", "Seccomp:\\t2"):
    assert line in status, line
assert not any("TOKEN" in k or "PROXY" in k.upper() for k in os.environ), os.environ
try:
    socket.create_connection(("127.0.0.1", 3128), 2)
except OSError:
    pass
else:
    raise SystemExit("a way out")
print(os.getuid())
"""
    done = execute(gw, "box", PYTHON, "-c", look)
    assert done.out == b"1000\n", done.text()
    assert execute(gw, "box", "true").rc == 0  # kill -9 1 was of no use
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def terminals_are_a_sandbox_s_own(lab, gw):
    """G20 F36: the machine has some thousands of them for all."""
    all_of_them = ("import os, sys, time\nn = 0\ntry:\n while n < 2000: os.openpty(); n += 1\nexcept OSError: pass\n"
                   "print(n, flush=True); time.sleep(600)")
    start(gw, "greedy", "--files", "4096")
    start(gw, "neighbour")
    greedy = following(gw, "greedy", PYTHON, "-c", all_of_them)
    assert greedy.wait_line(rb"^(\d+)\n")[1] == b"64", greedy.seen
    assert b"No space" in execute(gw, "greedy", PYTHON, "-c", "import os; os.openpty()", rc=1).err
    assert execute(gw, "neighbour", PYTHON, "-c", all_of_them.replace("600", "0")).out == b"64\n"
    terminal = at_a_terminal(gw, "exec", "--tty", "neighbour", "--", "tty")
    assert terminal.end() == 0 and b"/dev/pts/0" in terminal.said, terminal.said
    for name in ("greedy", "neighbour"):
        gw.cli("sandbox", "destroy", name, rc=0)


@both
def what_it_may_use_is_bounded_and_costs_its_neighbour_nothing(lab, gw):
    """G20"""
    made = start(gw, "greedy", "--memory", "256M", "--pids", "32", "--disk", "16M", "--files", "64", "--cpus", "0.5")
    assert (made["limits"], made["held_by"][:6]) in (("strict", "cgroup"), ("approximate", "each p")), made
    assert made["limits"] == ("approximate" if isinstance(gw.lab, Nobodys) else "strict"), made
    said = gw.cli("doctor").out
    assert (b"limits: strict holds what" if made["limits"] == "strict" else b"limits: strict starts no sandbox") in said, said
    start(gw, "neighbour")
    assert execute(gw, "greedy", PYTHON, "-c", "bytearray(1 << 30); print('had it')", rc=None).out == b""
    lab.wait_for("room again", lambda: "greedy" in str(gw.cli_json("sandbox", "started")) or start(gw, "greedy"))
    bomb = "import os,time\nn=0\ntry:\n while True:\n  if os.fork() == 0: time.sleep(60); os._exit(0)\n  n += 1\nexcept OSError: print(n)"
    said = execute(gw, "greedy", PYTHON, "-c", bomb).out
    assert 0 < int(said) < 40, said
    assert execute(gw, "neighbour", "echo", "fine").out == b"fine\n"
    gw.cli("sandbox", "destroy", "greedy", rc=0)
    start(gw, "greedy", "--memory", "256M", "--disk", "16M", "--files", "64")
    assert b"Read-only" in shell(gw, "greedy", "echo > /dev/x", rc=None).err
    for place in ("/workspace", "/tmp", "/dev/shm", "/home/agent"):
        done = shell(gw, "greedy", f"head -c 100000000 /dev/zero > {place}/big; stat -c %s {place}/big; rm {place}/big")
        assert b"No space left" in done.err and int(done.out) <= 16 << 20, (place, done.text())
    done = execute(gw, "greedy", PYTHON, "-c", "import os\ntry:\n while True: os.open('/dev/null', 0)\nexcept OSError as e: print(e)")
    assert b"Too many open files" in done.out, done.text()
    assert execute(gw, "neighbour", "echo", "fine").out == b"fine\n"
    for name in ("greedy", "neighbour"):
        gw.cli("sandbox", "destroy", name, rc=0)


@test()
def it_ends_when_it_is_told_whatever_it_does(lab):
    """G24: at any moment, without its help."""
    gw = setup(lab)
    ignore = "trap '' TERM INT HUP; (setsid sh -c 'while true; do :; done' &) ; while true; do :; done"
    for n in range(3):
        start(gw, "box")
        client = following(gw, "box", "sh", "-c", ignore)
        if n:
            lab.wait_for("its processes", lambda: len(inside(gw)) > 3)
        gw.cli("sandbox", "destroy", "box", rc=0)
        assert client.wait() == 125, client.seen
        nothing_is_left(gw)
    start(gw, "short", "--timeout", "1s")
    client = following(gw, "short", "sh", "-c", ignore)
    assert client.wait() == 125 and b"its time was over" in client.seen, client.seen
    nothing_is_left(gw)
    start(gw, "box")
    client = following(gw, "box", "sleep", "600")
    lab.wait_for("its command", lambda: any(b"sleep" in words for _, words in inside(gw)))
    client.stop()  # nobody waits for it any more
    lab.wait_for("the end of its command", lambda: not any(b"sleep" in words for _, words in inside(gw)))
    assert execute(gw, "box", "echo", "on").out == b"on\n"
    gw.cli("sandbox", "destroy", "box", rc=0)
    nothing_is_left(gw)


@both
def a_command_reads_what_it_is_given(lab, gw):
    start(gw, "box")

    def fed(given, *command, rc=0, options=()):
        return gw.cli("sandbox", "exec", "--stdin", *options, "box", "--", *command, stdin=given, rc=rc)

    every = bytes(range(256)) * 4096
    assert fed(every, "sha256sum").out.split()[0].decode() == hashlib.sha256(every).hexdigest()
    assert fed(b"", "cat").out == b"" and fed(b"a\nb", "sh", "-c", "read x; echo $x; cat").out == b"a\nb"
    assert fed(every, "head", "-c", "3").out == every[:3]  # which does not read the rest
    assert fed(every, "sh", "-c", "exec <&-; exit 4", rc=4).out == b""
    assert fed(every, "sleep", "600", rc=124, options=("--timeout", "1s")).out == b""  # which reads none of it
    assert execute(gw, "box", "cat").out == b""
    client = gw.lab.start([program(), "sandbox", "exec", "--stdin", "box", "--", "sh", "-c", "read x; exit 5"],
                          env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]}, stdin=subprocess.PIPE)
    gw.lab.wait_for("it", lambda: gw.cli_json("sandbox", "started")["started"][0]["commands"] == 1)
    client.popen.stdin.write(b"a line\n")  # and it stays open
    client.popen.stdin.flush()
    assert client.wait() == 5, client.seen
    client.popen.stdin.close()
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def with_a_killed_client_go_its_command_and_who_read_for_it(lab):
    gw = setup(lab)
    start(gw, "box")
    client = gw.lab.start([program(), "sandbox", "exec", "--stdin", "box", "--", "cat"],
                          env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]}, stdin=subprocess.PIPE)
    lab.wait_for("its command", lambda: any(words.startswith(b"cat") for _, words in inside(gw)))
    lab.wait_for("who reads for it", lambda: len(group(client.pid)) == 2)
    client.signal(9)  # it alone, and its standard input stays open
    lab.wait_for("their ends", lambda: not group(client.pid) and not any(b"cat" in words for _, words in inside(gw)))
    client.popen.stdin.close()
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def a_shell_works_as_at_any_terminal(lab, gw):
    """Job control, Ctrl-C for the command alone, a change of size, and everything put back."""
    start(gw, "box")
    terminal = at_a_terminal(gw, "shell", "--env", "A=b c", "--dir", "/tmp", "box")
    terminal.type(b"PS1='ready'\"> \"\n")
    terminal.until(b"ready> ")
    terminal.type(b"echo $TERM-$A-$PWD-$(stty size)-$((1+1)); cat\n")
    terminal.until(b"xterm-256color-b c-/tmp-33 99-2")
    terminal.type(b"echoed\n")
    terminal.until(b"echoed\r\nechoed\r\n")
    terminal.type(b"\x03")
    terminal.until(b"ready> ")
    terminal.type(b"sleep 1000 &\n")
    terminal.until(b"[1]")
    terminal.until(b"ready> ")
    terminal.type(b"kill %1; wait; echo jobs-$?\n")
    terminal.until(b"jobs-0")
    terminal.until(b"ready> ")
    terminal.resize(44, 77)
    terminal.type(b"until [ \"$(stty size)\" = '44 77' ]; do :; done; echo size-$(stty size)\n")
    terminal.until(b"size-44 77")
    terminal.until(b"ready> ")
    terminal.type(b"exit 6\n")
    assert terminal.end() == 6, terminal.said
    assert b"no job control" not in terminal.said, terminal.said
    look = ("import errno, fcntl, os\nassert [os.isatty(fd) for fd in range(3)] == [True] * 3\n"
            "for request in (0x5412, 0x541c, 0x5423):\n try:\n  fcntl.ioctl(0, request, b'x' * 8)\n except OSError as e:\n"
            "  print(errno.errorcode[e.errno])\nfor name in os.listdir('/dev/pts'):\n print(name)")
    terminal = at_a_terminal(gw, "exec", "--tty", "box", "--", PYTHON, "-c", look)  # nothing types into it, and no other is there
    assert terminal.end() == 0, terminal.said
    assert sorted(terminal.said.split()) == [b"0", *[b"EPERM"] * 3, b"ptmx"], terminal.said
    gw.cli("sandbox", "destroy", "box", rc=0)


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@test()
def a_terminal_is_put_back_at_each_way_out(lab):
    gw = setup(lab)
    start(gw, "box")
    for words in (("exec", "--tty", "box", "--", "true"), ("shell", "box")):
        assert b"this needs a terminal" in gw.cli("sandbox", *words, rc=2).err

    def began(within=()):
        terminal = at_a_terminal(gw, "exec", "--tty", "box", "--", "sleep", "600", within=within)
        lab.wait_for("its terminal", lambda: not terminal.is_as_before())
        lab.wait_for("its command", lambda: any(words.startswith(b"sleep") for _, words in inside(gw)))
        return terminal

    terminal = at_a_terminal(gw, "exec", "--tty", "--timeout", "1s", "box", "--", "sleep", "600")
    assert terminal.end() == 124 and b"countersign: its time was over" in terminal.said, terminal.said
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        terminal = began()
        os.kill(terminal.pid, number)
        assert terminal.end() == -number, terminal.said
        lab.wait_for("the end of its command", lambda: not any(b"sleep" in words for _, words in inside(gw)))
    for late in (False, True):  # not even killed it leaves the terminal changed, nor when its session's leader has ended first
        terminal = began(within=["sh", "-c", '"$@"; echo status-$?', "sh"])
        client, = children(terminal.pid)
        feeder, = children(client)
        if late:
            os.kill(feeder, signal.SIGSTOP)
        os.kill(client, signal.SIGKILL)
        terminal.until(b"status-137")
        os.waitid(os.P_PID, terminal.pid, os.WEXITED | os.WNOWAIT)
        if late:
            os.kill(feeder, signal.SIGCONT)
        lab.wait_for("the terminal as it was", terminal.is_as_before)
        assert terminal.end() == 0, terminal.said
    terminal = began()
    gw.cli("sandbox", "destroy", "box", rc=0)
    assert terminal.end() == 125 and b"it was destroyed" in terminal.said, terminal.said
    nothing_is_left(gw)


def detach(gw, *command, options=()):
    return execute(gw, "box", *command, options=("--detach", *options)).out.decode().strip()


def commands(gw):
    return {str(c["command"]): c for c in gw.cli_json("sandbox", "ps", "box")["commands"]}


def attach(gw, number, rc=0):
    return gw.cli("sandbox", "attach", "box", number, rc=rc)


def attached(gw, number):
    """By a client that is left running."""
    return gw.lab.start([program(), "sandbox", "attach", "box", number],
                        env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})


@both
def a_detached_command_goes_on_without_anybody(lab, gw):
    start(gw, "box")
    number = detach(gw, "sh", "-c", "echo one; echo err >&2; until [ -e /tmp/go ]; do sleep 0.1; done; echo two; exit 3")
    client = attached(gw, number)
    client.wait_line("one")
    row = commands(gw)[number]
    assert row["argv"][:2] == ["sh", "-c"] and (row["state"], row["detached"], row["followed"]) == ("running", True, True), row
    assert b"somebody follows it already" in attach(gw, number, rc=125).err
    client.stop()
    lab.wait_for("the client's end", lambda: not commands(gw)[number]["followed"])
    client = attached(gw, number)
    client.wait_line("one")
    shell(gw, "box", "touch /tmp/go")
    assert client.wait() == 3, client.seen
    for _ in range(2):  # it is there for who asks
        done = attach(gw, number, rc=3)
        assert (done.out, done.err) == (b"one\ntwo\n", b"err\n"), done.text()
    assert b"exited 3, detached  sh -c echo one" in gw.cli("sandbox", "ps", "box", rc=0).out
    much = detach(gw, "head", "-c", "1000000", "/dev/zero")
    lab.wait_for("its end", lambda: commands(gw)[much]["state"] == "exited")
    done = attach(gw, much)
    assert done.out == b"\0" * 131072 and done.err == \
        b"countersign: 868928 bytes of its output before what follows are not kept any more\n", (len(done.out), done.err)
    late = detach(gw, "sleep", "600", options=("--timeout", "1s"))
    lab.wait_for("its end", lambda: commands(gw)[late]["state"] == "timed-out")
    assert b"its time was over" in attach(gw, late, rc=124).err
    none = detach(gw, "no-such-program")
    lab.wait_for("its end", lambda: commands(gw)[none].get("status") == 127)
    gw.cli("sandbox", "destroy", "box", rc=0)
    assert b"no sandbox of this name runs" in gw.cli("sandbox", "ps", "box", rc=1).err
    assert b"no sandbox of this name runs" in attach(gw, number, rc=125).err


@test()
def any_command_is_listed_and_sent_signals(lab):
    gw = setup(lab)
    start(gw, "box")
    for name, status in ((), 143), (("KILL",), 137), (("SIGINT",), 130), (("1",), 129):
        number = detach(gw, "sleep", "600")
        gw.cli("sandbox", "kill", "box", number, *name, rc=0)
        attach(gw, number, rc=status)
    assert b"this command has ended" in gw.cli("sandbox", "kill", "box", number, rc=1).err
    assert b"no such command is there" in gw.cli("sandbox", "kill", "box", "1.77", rc=1).err
    for wrong in (("box", "x"), ("box", "0"), ("box", "7"), ("box", "1.0"), ("box", number, "NONE"), ("box", number, "65")):
        gw.cli("sandbox", "kill", *wrong, rc=2)
    client = following(gw, "box", "sleep", "600")
    lab.wait_for("its command", lambda: any(words.startswith(b"sleep") for _, words in inside(gw)))
    number, = [n for n, row in commands(gw).items() if row["state"] == "running"]
    assert b"whoever runs it follows it" in attach(gw, number, rc=125).err
    gw.cli("sandbox", "kill", "box", number, rc=0)
    assert client.wait() == 143, client.seen
    assert number not in commands(gw)
    told = {"sandbox-exec", "sandbox-signal", "sandbox-attach"}
    lab.wait_for("its record", lambda: told <= {r.get("about") for r in gw.audit()})
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def a_command_of_before_is_none_of_now(lab):
    """G24: numbers begin anew with each start of a name, so what a command is called says of which start it is."""
    gw = setup(lab)
    start(gw, "box")
    before = detach(gw, "sleep", "600")
    gw.cli("sandbox", "destroy", "box", rc=0)
    start(gw, "box")
    now = detach(gw, "sleep", "600")
    assert (before, now) == ("1.1", "2.1")
    for verb in ("kill", "attach", "logs"):
        assert b"of another start of th" in gw.cli("sandbox", verb, "box", before, rc=125 if verb == "attach" else 1).err
    assert commands(gw)[now]["state"] == "running"
    gw.cli("sandbox", "pause", "box", rc=0)
    gw.cli("sandbox", "resume", "box", rc=0)  # is another generation, of the same commands
    assert set(commands(gw)) == {now}
    gw.cli("sandbox", "kill", "box", now, rc=0)
    attach(gw, now, rc=143)
    lab.wait_for("its record", lambda: [(r["what"]["generation"], r["what"]["number"]) for r in gw.audit()
                                        if r.get("about") == "sandbox-signal"] == [(2, 1)])
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def detached_commands_are_so_many_and_end_with_their_sandbox_alone(lab):
    """G20 G24: they outlive the desk, and nothing else."""
    gw = setup(lab)
    lab.expects(r"parent: the (desk|warden) \(pid \d+\) ended by signal 9")
    start(gw, "box")
    numbers = [detach(gw, "sleep", "600") for _ in range(16)]
    assert b"as many detached commands" in execute(gw, "box", "true", rc=125, options=("--detach",)).err
    assert execute(gw, "box", "echo", "others").out == b"others\n"
    gw.cli("sandbox", "kill", "box", numbers[3], rc=0)
    lab.wait_for("its end", lambda: commands(gw)[numbers[3]]["state"] == "signalled")
    last = detach(gw, "sh", "-c", "echo before; exec sleep 600")
    assert set(commands(gw)) == {*numbers, last} - {numbers[3]}
    gw.kill("desk")
    lab.wait_for("the next desk", lambda: gw.cli("sandbox", "ps", "box").rc == 0)
    assert {row["state"] for row in commands(gw).values()} == {"running"}
    client = attached(gw, last)
    client.wait_line("before")
    gw.cli("sandbox", "destroy", "box", rc=0)
    assert client.wait() == 125 and b"it was destroyed" in client.seen, client.seen
    nothing_is_left(gw)
    start(gw, "box")
    detach(gw, "sh", "-c", "trap '' TERM HUP INT; while :; do echo more; done")
    gw.kill("warden")
    nothing_is_left(gw)


@test()
def who_reads_slowly_gets_the_end_of_the_output_and_the_status(lab):
    gw = setup(lab)
    start(gw, "box")
    body = b'{"argv":["sh","-c","head -c 200000 /dev/zero; exit 3"]}'
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        client.connect(str(pathlib.Path(gw.state) / "control.sock"))
        client.sendall(b"POST /api/v1/sandboxes/box/exec HTTP/1.1\r\nHost: countersign\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body) + body)
        lab.wait_for("the end of the command", lambda: gw.cli_json("sandbox", "started")["started"][0]["commands"] == 0)
        time.sleep(3)  # longer than the desk gives a connection that is to end
        seen = b"".join(iter(lambda: client.recv(65536), b""))
    data = [line[6:] for line in seen.split(b"\n") if line.startswith(b"data: ")]
    assert sum(len(base64.b64decode(d)) for d in data if not d.startswith(b"{")) == 200000, len(seen)
    assert b'"how":"exited","status":3' in seen and seen.endswith(b"0\r\n\r\n"), seen[-300:]
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def each_start_is_another_generation(lab):
    gw = setup(lab, lease="github")
    assert start(gw, "box")["generation"] == 1
    lease = gw.cli_json("lease", "issue", "api", "--sandbox", "box")
    assert b"a sandbox of this name runs" in gw.cli("sandbox", "start", "box", rc=1).err
    assert [r["generation"] for r in gw.cli_json("sandbox", "list")["sandboxes"] if r["name"] == "box"] == [1]
    assert b"this sandbox runs" in gw.cli("sandbox", "rm", "box", rc=1).err
    gw.cli("sandbox", "destroy", "box", rc=0)
    assert not alive(gw, "box", lease)
    assert start(gw, "box")["generation"] == 2
    assert not alive(gw, "box", lease)
    gw.token("other")
    assert b"was not started here" in gw.cli("sandbox", "start", "other", rc=1).err
    gw.cli("sandbox", "destroy", "box", rc=0)
    gw.cli("sandbox", "rm", "box", rc=0)
    assert "box" not in [r["name"] for r in gw.cli_json("sandbox", "list")["sandboxes"]]


@test()
def the_leases_of_a_sandbox_end_with_it_however_it_ends(lab):
    gw = setup(lab, lease="github")
    lab.expects(r"parent: the warden \(pid \d+\) ended by signal 9")
    start(gw, "box", "--timeout", "2s")
    lease = gw.cli_json("lease", "issue", "api", "--sandbox", "box")
    lab.wait_for("the end of its time", lambda: not alive(gw, "box", lease))
    start(gw, "box")
    lease = gw.cli_json("lease", "issue", "api", "--sandbox", "box")
    assert alive(gw, "box", lease)
    gw.kill("warden")
    lab.wait_for("the next warden", lambda: not alive(gw, "box", lease))
    assert start(gw, "box")["generation"] == 3
    lease = gw.cli_json("lease", "issue", "api", "--sandbox", "box")
    lab.kills(gw.daemon())
    gw.up()
    lab.wait_for("what was before", lambda: not alive(gw, "box", lease))
    assert start(gw, "box")["generation"] == 4
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def what_cannot_be_held_is_not_started(lab):
    """G18"""
    gw = setup(lab, ordinary=True)
    done = gw.cli("sandbox", "start", "box", "--limits", "strict", rc=None)
    assert done.rc != 0 and b"its limits cannot be held here" in done.err, done.text()
    assert gw.cli_json("sandbox", "started")["started"] == []
    done = gw.cli("sandbox", "start", "box", rc=0)
    assert b"limits: approximate, held by each process for itself" in done.err, done.text()


@test()
def whoever_is_killed_nothing_is_left(lab):
    gw = setup(lab)
    lab.expects(r"parent: the warden \(pid \d+\) ended by signal 9")

    def began(name):
        start(gw, name)
        client = following(gw, name, "sleep", "600")
        lab.wait_for("its command", lambda: any(words.startswith(b"sleep") for _, words in inside(gw)))
        return client

    client = began("box")
    gw.kill("warden")
    assert client.wait() == 125, client.seen
    nothing_is_left(gw)
    assert gw.cli_json("sandbox", "started")["started"] == []
    lab.wait_for("its record", lambda: "the warden ended" in str([r for r in gw.audit() if r.get("about") == "sandbox-ended"]))
    for part in (b"/countersign/", b"bwrap"):  # the first process inside, and bubblewrap
        client = began("box")
        os.kill(next(pid for pid, words in inside(gw) if words.startswith(part)), 9)
        assert client.wait() == 125 and b"its first process ended" in client.seen, client.seen
        nothing_is_left(gw)
    client = began("box")
    lab.kills(gw.daemon())
    client.wait()
    lab.wait_for("the end of the gateway", lambda: not inside(gw))
    gw.up()
    nothing_is_left(gw)
    assert start(gw, "box")["generation"] == 5
    assert execute(gw, "box", "echo", "again").out == b"again\n"


@test()
def many_at_once_are_started_or_refused_in_words(lab):
    gw = setup(lab)
    names = [f"box-{n}" for n in range(24)]
    env = {"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]}
    clients = [gw.lab.start([program(), "sandbox", "start", name, "--memory", "64M", "--disk", "1M"], env=env) for name in names]
    assert [client.wait() for client in clients] == [0] * len(names), [client.seen for client in clients]
    assert sorted(s["name"] for s in gw.cli_json("sandbox", "started")["started"]) == sorted(names)
    assert {r["generation"] for r in gw.cli_json("sandbox", "list")["sandboxes"]} == {1}
    clients = [gw.lab.start([program(), "sandbox", "start", "same"], env=env) for _ in range(8)]
    assert sorted(client.wait() == 0 for client in clients) == [False] * 7 + [True], [client.seen for client in clients]
    ran, = [s for s in gw.cli_json("sandbox", "started")["started"] if s["name"] == "same"]
    assert [r["generation"] for r in gw.cli_json("sandbox", "list")["sandboxes"] if r["name"] == "same"] == [ran["generation"]]
    users = {pathlib.Path(f"/proc/{pid}/status").read_text().split("Uid:")[1].split()[0]
             for pid, words in inside(gw) if words.startswith(b"/countersign/")}
    assert len(users) == len(names) + 1, users
    gw.stop()
    nothing_is_left(gw)


if __name__ == "__main__":
    main()
