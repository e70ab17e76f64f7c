#!/usr/bin/env python3
"""What a hostile sandbox tries (hostile.py), and what it leaves for others to trip over: names, archives, links that move, very many
entries. By root's gateway and by an ordinary user's, one each. Beside it: a fork bomb, memory (test_started.py), full disks (test_files.py), files that are holes
(test_checkpoints.py), another tenant (dock/test_hostile.py, dock/test_snapshots.py), images that lie (test_images.py), accidents (test_kills.py)."""
import contextlib
import io
import json
import os
import pathlib
import socket
import tarfile

from boxes import NOBODY, Nobodys, execute, following, nothing_is_left, setup, shell, start
from harness import main, test

PYTHON = "/usr/bin/python3"
HOSTILE = (pathlib.Path(__file__).resolve().parent / "hostile.py").read_text()
# Of these ids something is tried in each of them.
TRIED = ("G1", "G2", "G3", "G4", "G6", "G9", "G10", "G11", "G12", "G13", "G14", "G20", "G21")
THEIRS = """
import ctypes, os, socket, subprocess, sys
one, two = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
one.bind(b"\\0theirs"), one.listen(), two.bind(b"\\0theirs")
libc = ctypes.CDLL(None)
assert libc.shmget(0x5ec7e7, 4096, 0o1666) >= 0 and libc.msgget(0x5ec7e7, 0o1666) >= 0
for path in ("/workspace/theirs", "/tmp/theirs", "/dev/shm/theirs"):
    open(path, "w").write("theirs")
child = subprocess.Popen(["sleep", "98765"])
print("ready", flush=True)
child.wait()
"""


def by(ordinary):
    return "started-user" if ordinary else "started"


def case(function, covers=()):
    """The same by root's gateway and by an ordinary user's."""
    for ordinary in (False, True):
        def run(lab, ordinary=ordinary):
            function(lab, setup(lab, ordinary))
        run.__name__ = function.__name__ + ("_by_an_ordinary_user" if ordinary else "")
        run.__doc__ = function.__doc__
        test(*[f"{i} {by(ordinary)}" for i in covers])(run)
    return function


def inside_and_around(lab, gw):
    """All that is about one sandbox or two, in one gateway."""
    start(gw, "box", "--pids", "200")
    start(gw, "neighbour")
    theirs = following(gw, "neighbour", PYTHON, "-c", THEIRS)
    theirs.wait_line("ready")
    nothing_it_tries_works(gw)
    what_it_packs_leads_nowhere(gw)
    names_are_bytes(gw)
    links_that_move_lead_nowhere(gw)
    very_many_entries_cost_nobody_else(gw)
    assert execute(gw, "neighbour", "cat", "theirs", "/tmp/theirs", "/dev/shm/theirs").out == b"theirs" * 3
    theirs.stop()
    gw.cli("sandbox", "destroy", "neighbour", rc=0)
    who_is_killed_leaves_nothing(gw)


def nothing_it_tries_works(gw):
    if os.uname().machine != "x86_64":
        return  # the numbers are those of x86-64
    outside = f"\0countersign-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            sock = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            sock.bind(outside)
            if kind == socket.SOCK_STREAM:
                sock.listen()
        places = [str(gw.state / name) for name in ("control.sock", "ledger.db", "master.key", "ca.crt")] + ["/run/systemd/notify", "/var/run/docker.sock"]
        script = f"import sys\nsys.argv = ['hostile', {outside!r}, *{places!r}]\n" + HOSTILE
        gw.cli("sandbox", "cp", "-", "box:hostile.py", stdin=script.encode(), rc=0)
        for options in ((), ("--lane", "web")):  # and behind walls of its own in there
            rows = json.loads(execute(gw, "box", PYTHON, "hostile.py", options=options).out)
            proxy = [name for what, _, got in rows if what == "G1 variables" for name in got.split() if "PROXY" in name.upper()]
            wrong = [row for row in rows if row[2] not in (row[1].split() or [""]) and not (options and row[2] == " ".join(proxy))]
            assert not wrong, f"{options}\n" + "\n".join(f"{what}: {got!r}, not {may!r}" for what, may, got in wrong)
            tried = {what.split()[0] for what, _, _ in rows}
            assert len(rows) > 500 and tried == set(TRIED) and bool(proxy) == bool(options), (len(rows), tried, proxy)
    assert execute(gw, "box", "echo", "still here").out == b"still here\n"


def archive(*members):
    """(name, type, where it leads or what is in it)"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, kind, what in members:
            info = tarfile.TarInfo("x")
            info.name, info.type, info.mode = name, kind, 0o6777
            if kind == tarfile.REGTYPE:
                info.size = len(what)
            else:
                info.linkname = what or ""
            if kind in (tarfile.CHRTYPE, tarfile.BLKTYPE):
                info.devmajor = info.devminor = 1
            tar.addfile(info, io.BytesIO(what) if kind == tarfile.REGTYPE else None)
    return out.getvalue()


def what_it_packs_leads_nowhere(gw):
    """G14: an archive that comes in. What comes out of a sandbox: test_files.py."""
    file, link, hard = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
    planted = b"planted"
    rows = ([("../escaped", file, planted)], [("a/../../escaped", file, planted)], [("/tmp/escaped", file, planted)], [("/escaped", file, planted)],
            [("d", link, "/tmp"), ("d/escaped", file, planted)], [("d", link, ".."), ("d/tmp/escaped", file, planted)],
            [("d", link, "../tmp"), ("d/escaped/x", file, planted)], [("d", link, "/tmp"), ("d/escaped", tarfile.DIRTYPE, None)],
            [("h", hard, "/etc/passwd"), ("h", file, planted)], [("h", hard, "../../etc/passwd")], [("d", link, "/tmp/secret"), ("h", hard, "d")],
            [("d", link, "/tmp/secret"), ("d", file, planted)], [("dev", tarfile.CHRTYPE, None)], [("dev", tarfile.BLKTYPE, None)], [("p", tarfile.FIFOTYPE, None)],
            [("..", tarfile.DIRTYPE, None)], [("d/..", tarfile.DIRTYPE, None)], [("", file, planted)], [("x" * 5000, file, planted)])
    shell(gw, "box", "echo secret > /tmp/secret; umask > /dev/null; mkdir in")
    for n, members in enumerate(rows):
        gw.cli("sandbox", "cp", "-", f"box:in/{n}", "--tar", stdin=archive(*members))
    seen = shell(gw, "box", "ls -A /tmp; cat /tmp/secret; ls -Ad /escaped /workspace/escaped /workspace/in/escaped 2>/dev/null; "
                 "find in -type p -o -type c -o -type b -o -perm /6000; find in -type f -links +1; ! grep -rs secret in").out
    assert seen == b"secret\nsecret\n", seen
    shell(gw, "box", "rm -r in")


def names_are_bytes(gw):
    """G14: of any bytes but the two that cannot be; in answers, in archives, in checkpoints, on a terminal."""
    make = ("import os\nos.mkdir('names'); os.chdir('names')\nfor n in (b'a\\nb', b'\\xff\\xfe', b'\\x1b]0;t\\x07\\x1b[2J', b'-rf', b' ', b'..x', b'%00', "
            "b'\"', b'\\\\', b'a' * 255, b'\\xc3\\xa4', b'\\xe2\\x80\\xaegnp', b'\\r', b'{}', b'ck-x'):\n open(n, 'wb').write(n)\n"
            "os.mkdir(b'd\\n\\xff'); open(b'd\\n\\xff/f\\n\\x80', 'wb').write(b'deep'); os.symlink(b'\\xff\\n', b'l\\n')")
    execute(gw, "box", PYTHON, "-c", make)
    look = ("import os, sys, hashlib\nfound = []\nfor folder, folders, files in os.walk(b'names'):\n for n in folders + files:\n  p = os.path.join(folder, n)\n"
            "  found.append((p, os.readlink(p) if os.path.islink(p) else open(p, 'rb').read() if os.path.isfile(p) else None))\nprint(sorted(found, key=repr))")
    want = execute(gw, "box", PYTHON, "-c", look).out
    said = gw.cli("sandbox", "ls", "box:names", rc=0).out
    assert said.count(b"\n") == 17 and not set(said) & {0x1b, 7, 13}, said
    status, answer = gw.control("GET", "/api/v1/sandboxes/box/files/list?path=names")
    assert status == 200 and len(answer["entries"]) == 17, answer
    here = gw.lab.dir / "names-here"
    here.mkdir()
    if isinstance(gw.lab, Nobodys):
        os.chown(here, NOBODY, NOBODY)
    gw.cli("sandbox", "cp", "box:names", here / "names", rc=0)
    tree = gw.lab.run([PYTHON, "-c", f"import os; os.chdir({str(here)!r})\n" + look], rc=0)
    assert tree.out == want, tree.text()
    shell(gw, "box", "mv names first")
    gw.cli("sandbox", "cp", here / "names", "box:names", rc=0)
    assert execute(gw, "box", PYTHON, "-c", look).out == want
    made = gw.cli_json("sandbox", "snapshot", "box")
    gw.cli("sandbox", "restore", made["id"], "again", rc=0)
    assert execute(gw, "again", PYTHON, "-c", look).out == want
    gw.cli("sandbox", "destroy", "again", rc=0)
    shell(gw, "box", "rm -r first names")


def links_that_move_lead_nowhere(gw):
    """G14: a folder is a link in the next moment, while a checkpoint is written. While a file is read: test_files.py."""
    swap = ("import ctypes, os\nlibc = ctypes.CDLL(None)\nopen('/tmp/marked', 'w').write('from outside')\nos.makedirs('swap/deep')\n"
            "open('swap/marked', 'w').write('inside'); open('swap/deep/marked', 'w').write('inside')\nos.symlink('/tmp', 'link'); os.mkdir('many')\n"
            "for n in range(2000): open('many/%d' % n, 'w').write('x')\nprint('ready', flush=True)\n"
            "while True:\n libc.renameat2(-100, b'swap', -100, b'link', 2)\n libc.renameat2(-100, b'swap', -100, b'many/1', 2); libc.renameat2(-100, b'swap', -100, b'many/1', 2)")
    other = following(gw, "box", PYTHON, "-c", swap)
    other.wait_line("ready")
    for n in range(4):
        gw.cli("sandbox", "snapshot", "box", f"moved-{n}", rc=0)
        gw.cli("sandbox", "restore", f"moved-{n}", "again", rc=0)
        seen = shell(gw, "again", "! grep -rs 'from outside' . && find . -type l | wc -l && find . -name marked | wc -l").out
        assert seen == b"1\n2\n", (n, seen)
        gw.cli("sandbox", "destroy", "again", rc=0)
        gw.cli("checkpoint", "rm", f"moved-{n}", rc=0)
    other.stop()
    shell(gw, "box", "rm -r swap link many /tmp/marked")


def very_many_entries_cost_nobody_else(gw):
    """G20: 20,000 for the ten million of the catalogue, each step of which is the same: what is told of them is bounded, or taken in pieces."""
    shell(gw, "box", "mkdir many; cd many; seq -f %06.0f 0 19999 | xargs touch")
    listed = gw.cli("sandbox", "ls", "box:many")
    assert listed.rc == 0 and listed.out.count(b"\n") == 20000 or b"many" in listed.err, listed.text()[-300:]
    made = gw.cli_json("sandbox", "snapshot", "box")
    assert made["files"] >= 20000, made
    gw.cli("checkpoint", "rm", made["id"], rc=0)
    assert execute(gw, "neighbour", "echo", "fine").out == b"fine\n"
    status, answer = gw.control("DELETE", "/api/v1/sandboxes/box/files?path=many&recursive=true")
    assert status in (200, 204), answer
    assert b"many" not in shell(gw, "box", "ls").out


def who_is_killed_leaves_nothing(gw):
    """G24: kill -9 of the warden, then of the gateway; by root in more places: test_kills.py."""
    gw.lab.expects(r"parent: the warden \(pid \d+\) ended by signal 9")
    for n, end in enumerate((lambda: gw.kill("warden"), lambda: (gw.lab.kills(gw.daemon()), gw.up()))):
        words = f"31337.{os.getpid()}{n}"

        def left(words=words.encode()):
            return [pid for pid in os.listdir("/proc") if pid.isdigit() and words in read_of(pid) and not {b"exec", b"-c"} & set(read_of(pid).split(b"\0"))]
        if n:
            start(gw, "box")
        client = following(gw, "box", "sleep", words)
        gw.lab.wait_for("its command", left)
        end()
        assert client.wait() != 0, client.seen
        gw.lab.wait_for("nothing of it", lambda: not left())
        assert gw.cli_json("sandbox", "started")["started"] == []
        assert str(gw.state) not in pathlib.Path("/proc/mounts").read_text()
        if not isinstance(gw.lab, Nobodys):
            nothing_is_left(gw)
    start(gw, "box")
    assert execute(gw, "box", "ls", "-A").out == b""
    gw.cli("sandbox", "destroy", "box", rc=0)


def read_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


case(inside_and_around, (*TRIED, "G24"))


if __name__ == "__main__":
    main()
