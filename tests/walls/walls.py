#!/usr/bin/env python3
"""What each role of the installed build cannot do, tried for real: a running role is made to make the call.

usage: walls.py PROBE        (PREFIX/bin first in PATH; root: the roles are not dumpable, and that is one of the walls)
"""
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent / "e2e/sources"))
sys.path.insert(2, str(pathlib.Path(__file__).resolve().parent.parent / "e2e/approvals"))
PROBE = os.path.abspath(sys.argv.pop(1))
from gateway import ROLES, Gateway, simple_policy  # noqa: E402
from harness import PATIENCE, Skip, main, test  # noqa: E402
from pictures import drawn, png, read  # noqa: E402
from programs import GROUP, Programs  # noqa: E402
from watch import UNHEARD  # noqa: E402

ALL = ROLES + ("dock", "front")
EPOLL_WAIT = "232"  # x86-64, as the probe itself


def waiting(gw, role, old=None):
    """The role's process once it is confined and waits for work; None before."""
    pid = gw.pid(role)
    try:
        if pid in (None, old) or field(pid, "Seccomp") != ["2"]:
            return None
        return pid if pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] == EPOLL_WAIT else None
    except OSError:
        return None


def tried(lab, gw, up, role, *call):
    """The outcome in words. A killed role comes back as another process; a front when somebody knocks."""
    if os.geteuid() != 0:
        raise Skip("only root may make a role do something: they are not dumpable")
    if role == "front" and not gw.pid("front"):
        ask = ["curl", "-sS", "--max-time", "5", f"https://{up.name}:{up.port}/ok"]
        lab.wait_for("an answer through a front", lambda: lab.run(ask, env=gw.client_env()).rc == 0)
    pid = lab.wait_for(f"a {role}", lambda: waiting(gw, role))
    done = subprocess.run([PROBE, str(pid), *map(str, call)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    word = done.stdout.strip()
    if word != "killed":
        return word
    lab.expects(rf"parent: the [\w -]+ \(pid {pid}\) ended by signal {signal.SIGSYS:d}", UNHEARD)
    lab.wait_for(f"the end of the {role}", lambda: not os.path.exists(f"/proc/{pid}"))
    if role != "front":
        lab.wait_for(f"another {role}", lambda: waiting(gw, role, pid))
    return word


def setup(lab):
    up = lab.upstream()
    return up, Gateway(lab, simple_policy(up), {"api": lab.canary("c" * 40).encode()}, config='e2b: { http: "127.0.0.1:0" }\n')


def no_way(word):
    return word == "killed" or word.startswith("refused E")


def field(pid, name):
    for line in open(f"/proc/{pid}/status", encoding="ascii"):
        if line.startswith(name + ":"):
            return line.split(":")[1].split()


def runs(pid):
    """Not gone, and not dead but unreaped: orphans of a killed parent become ours."""
    try:
        return field(pid, "State")[0] != "Z"
    except OSError:
        return False


@test("D22 walls")
def every_role_is_confined_and_alone(lab):
    up, gw = setup(lab)
    lab.run(["curl", "-sS", f"https://{up.name}:{up.port}/ok"], env=gw.client_env(), rc=0)
    uids = {}
    for role in ALL:
        pid = gw.pid(role)
        assert field(pid, "Seccomp") == ["2"], (role, "no seccomp filter")
        assert field(pid, "NoNewPrivs") == ["1"], role
        assert set("".join(field(pid, "CapEff"))) == {"0"}, (role, "keeps capabilities")
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        assert any(line.split()[4] == "0" for line in limits.splitlines() if line.startswith("Max core")), role
        uids[role] = field(pid, "Uid")[0]
        if os.geteuid() == 0:
            assert uids[role] != "0", (role, "runs as root")
        try:
            environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        except PermissionError:  # not dumpable: nobody but root reads it
            assert os.geteuid() != 0, role
            continue
        assert b"PATH=" not in environ.replace(b"\0", b"\n") or role == "keeper", (role, environ[:200])
    if os.geteuid() == 0:
        assert len(set(uids.values())) == len(uids), uids


@test()
def no_role_can_start_a_program(lab):
    up, gw = setup(lab)
    for role in ALL:
        for call in (("exec", "/bin/true"), ("fork",)):
            assert tried(lab, gw, up, role, *call) == "killed", (role, call)


@test()
def no_role_can_write_and_run_memory_or_trace_another(lab):
    up, gw = setup(lab)
    for role in ALL:
        assert no_way(tried(lab, gw, up, role, "mmap-exec")), role
        assert no_way(tried(lab, gw, up, role, "ptrace", gw.pid("keeper") if role != "keeper" else 1)), role


@test()
def front_judge_lobby_fetcher_warden_and_dock_open_no_file_and_no_socket(lab):
    up, gw = setup(lab)
    for role in ("front", "judge", "lobby", "fetcher", "warden", "dock"):
        for call in (("open", "/etc/passwd"), ("create", "/tmp/countersign-wall"), ("tcp",), ("udp",), ("unix",)):
            assert tried(lab, gw, up, role, *call) == "killed", (role, call)


@test()
def the_keeper_has_no_network(lab):
    up, gw = setup(lab)
    for call in (("tcp",), ("udp",)):
        assert no_way(tried(lab, gw, up, "keeper", *call)), call


@test()
def the_carrier_and_the_resolver_cannot_read_the_store(lab):
    up, gw = setup(lab)
    for role in ("carrier", "resolver", "desk", "lobby", "fetcher", "warden", "dock"):
        for path in (gw.state / "keeper/master.key", gw.state / "store/ledger.db"):
            if (role, path.name) != ("desk", "ledger.db"):
                assert no_way(tried(lab, gw, up, role, "open", path)), (role, path)


@test("C29 files")
def only_the_keeper_can_open_the_ca_key(lab):
    up, gw = setup(lab)
    keys = sorted((gw.state / "keeper").iterdir())
    assert keys, "no key files"
    for role in ALL:
        for path in keys:
            word = tried(lab, gw, up, role, "open", path)
            assert (word == "done" or role != "keeper") and (role == "keeper" or no_way(word)), (role, path.name, word)
        for path in keys:
            assert path.stat().st_mode & 0o077 == 0, path


@test()
def the_carrier_and_the_resolver_have_the_sockets_they_need_and_no_others(lab):
    up, gw = setup(lab)
    assert tried(lab, gw, up, "carrier", "tcp") == "done", "the probe finds walls where there are none"
    assert tried(lab, gw, up, "resolver", "udp") == "done", "the probe finds walls where there are none"
    for role, call in (("carrier", "udp"), ("carrier", "unix"), ("resolver", "unix")):
        assert no_way(tried(lab, gw, up, role, call)), (role, call)


@test()
def no_role_can_signal_another(lab):
    up, gw = setup(lab)
    for role in ALL:
        assert no_way(tried(lab, gw, up, role, "kill", gw.daemon())), role


@test()
def the_desk_and_the_ledger_reach_no_network(lab):
    up, gw = setup(lab)
    for role in ("desk", "ledger"):
        for call in (("tcp",), ("udp",)):
            assert no_way(tried(lab, gw, up, role, *call)), (role, call)
        assert no_way(tried(lab, gw, up, role, "create", "/tmp/countersign-wall")), role


def relay_waiting(programs):
    """The relay of the program once it is confined and waits for who comes; None before."""
    pid = programs.relay("op")
    try:
        there = pid and field(pid, "Seccomp") == ["2"]
        return pid if there and pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] == EPOLL_WAIT else None
    except OSError:
        return None


@test()
def the_relay_of_a_program_dials_and_nothing_else(lab):
    if os.geteuid() != 0:
        raise Skip("only root may make a process do something that is not dumpable")
    up, programs = lab.upstream(), Programs(lab)
    script = programs.write("op", GROUP + 'while [ ! -e "$0.go" ]; do sleep 0.05; done; echo token-of-a-program')
    gw = Gateway(lab, simple_policy(up, secret=f'exec: {{ argv: [{script}], hosts: ["{up.name}:{up.port}"], timeout: 25s }}'))
    for call, may in ((("tcp",), True), (("udp",), False), (("unix",), False), (("open", "/etc/passwd"), False),
                      (("exec", "/bin/true"), False), (("fork",), False), (("kill", gw.daemon()), False)):
        for mark in ("go", "group"):
            (programs.dir / f"op.{mark}").unlink(missing_ok=True)
        asks = threading.Thread(target=gw.cli, args=("secret", "check", "api"))
        asks.start()
        pid = lab.wait_for("a relay", lambda: relay_waiting(programs))
        assert field(pid, "NoNewPrivs") == ["1"] and set("".join(field(pid, "CapEff"))) == {"0"}
        assert field(pid, "Uid")[0] != "0"
        done = subprocess.run([PROBE, str(pid), *map(str, call)], capture_output=True, text=True, timeout=PATIENCE)
        (programs.dir / "op.go").touch()
        asks.join()
        assert done.returncode == 0, done.stderr
        word = done.stdout.strip()
        assert word == "done" if may else no_way(word), (call, word)
        lab.wait_for("its end", lambda: not runs(pid))


RECVMSG, M_VIEW, M_VIEWED, SEALS = "47", 156, 157, 0xf  # x86-64; proxy/msgs.h; all four of memfd_create(2)
F_ADD_SEALS, F_GET_SEALS = 1033, 1034


class Viewer:
    """What opens pictures, as the parent starts it, with us as the desk at the other end of its descriptor 3."""

    def __init__(self, lab):
        self.end, theirs = socket.socketpair()
        prefix = pathlib.Path(shutil.which("countersign")).resolve().parent.parent
        program = prefix / "libexec/countersign/countersign-view-picture"
        env = {"COUNTERSIGN_UID": "62777", "COUNTERSIGN_GID": "62777"} if os.geteuid() == 0 else {}
        self.process = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" 3<&0 </dev/null', program], stdin=theirs, env=env)
        theirs.close()
        self.pid = self.process.pid
        lab.wait_for("a viewer that waits", self.waits)

    def waits(self):
        try:
            call = pathlib.Path(f"/proc/{self.pid}/syscall").read_text().split()[0]
        except OSError:
            return False
        return field(self.pid, "Seccomp") == ["2"] and call == RECVMSG

    def order(self, data, seals=SEALS):
        """(what it answered, the PNG's bytes and seals); None: it ended without a word."""
        picture, out = os.memfd_create("picture", os.MFD_ALLOW_SEALING), os.memfd_create("png", os.MFD_ALLOW_SEALING)
        os.write(picture, data)
        fcntl.fcntl(picture, F_ADD_SEALS, seals)
        socket.send_fds(self.end, [struct.pack(">IHHQ", 0, M_VIEW, 2, 7)], [picture, out])
        os.close(picture)
        self.end.settimeout(PATIENCE)
        said = b""
        try:
            while got := self.end.recv(4096):
                said += got
        except ConnectionResetError:
            pass
        self.process.wait(PATIENCE)
        made = os.pread(out, 1 << 24, 0), fcntl.fcntl(out, F_GET_SEALS)
        os.close(out)
        if not said:
            return None
        n, kind, fds, order = struct.unpack(">IHHQ", said[:16])
        assert (kind, fds, order, n) == (M_VIEWED, 0, 7, len(said) - 16), said
        return said[16:], made


@test("D22 walls")
def what_opens_pictures_can_do_nothing_else(lab):
    if os.geteuid() != 0:
        raise Skip("only root may make a process do something that is not dumpable")
    gone = lab.dir / "countersign-wall"
    for call in (("open", "/etc/passwd"), ("create", gone), ("tcp",), ("udp",), ("unix",), ("exec", "/bin/true"), ("fork",),
                 ("mmap-exec",), ("ptrace", 1), ("kill", os.getpid())):
        viewer = Viewer(lab)
        assert field(viewer.pid, "NoNewPrivs") == ["1"] and set("".join(field(viewer.pid, "CapEff"))) == {"0"}
        assert field(viewer.pid, "Uid")[0] == "62777"
        limits = {line[:26].strip(): line[26:].split() for line in pathlib.Path(f"/proc/{viewer.pid}/limits").read_text().splitlines()}
        assert limits["Max core file size"][1] == "0" and limits["Max cpu time"][1] == "10", limits
        assert limits["Max address space"][1] == str(640 << 20) and limits["Max file size"][1] == str(10 << 20), limits
        done = subprocess.run([PROBE, str(viewer.pid), *map(str, call)], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        assert no_way(done.stdout.strip()), (call, done.stdout)
        viewer.process.kill()
        viewer.process.wait()
    assert not gone.exists()


@test("D22 walls")
def what_opens_pictures_takes_one_that_is_sealed_and_ends(lab):
    rows = drawn("A GOOD PIN")
    said, (made, seals) = Viewer(lab).order(png(rows))
    assert said[:2] == b"\x01\x01" and read(made) == rows and seals & SEALS == SEALS, (said, seals)
    said, (made, seals) = Viewer(lab).order(png(rows)[:-20])
    assert said[0] != 1 and made == b"", said
    for seals in (0, SEALS & ~8):  # its bytes could change while they are read
        assert Viewer(lab).order(png(rows), seals) is None
    assert Viewer(lab).order(b"") is None


@test("F16 walls")
def the_parents_death_ends_every_role(lab):
    up, gw = setup(lab)
    lab.run(["curl", "-sS", f"https://{up.name}:{up.port}/ok"], env=gw.client_env(), rc=0)
    pids = [gw.pid(role) for role in ALL]
    gw.process.signal(9)
    gw.process.wait()
    lab.wait_for("the end of all", lambda: not any(runs(pid) for pid in pids))


main()
