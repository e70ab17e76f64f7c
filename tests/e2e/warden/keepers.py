"""Who keeps files of sandboxes and who is at their workspaces, for the tests of this folder: to be held and killed; and
files of every kind."""
import contextlib
import fcntl
import os
import pathlib
import signal

from boxes import execute
from gateway import program

PYTHON = "/usr/bin/python3"
# Of each kind, with names and modes that are easily lost.
TREE = r"""
import os, socket
os.umask(0)
w = os.path.join
os.makedirs("deep/er/empty")
open("plain", "w").write("hello\n")
open(b"new\nline \xff\xfe", "wb").write(b"odd name\n")
open("deep/large", "wb").write(os.urandom(1 << 16) * 40 + b"tail")
open("deep/zero", "wb").close()
os.symlink("/usr/bin/python3", "absolute")
os.symlink("../../../../etc/passwd", "deep/out")
os.symlink("nowhere", b"dangling \xff")
os.link("plain", "hard")
os.mkfifo("pipe")
s = socket.socket(socket.AF_UNIX); s.bind("socket")
os.chmod("plain", 0o640); os.chmod("deep/zero", 0o400); os.chmod("deep/er", 0o555); os.chmod("deep", 0o711)
for name in ("plain", "deep/large", "deep/er", "deep"):
    os.utime(name, (1, 1234567890))
os.utime("absolute", (1, 1111111111), follow_symlinks=False)
"""
LOOK = r"""
import hashlib, os, stat
for top, folders, files in os.walk(b"."):
    for name in sorted(folders + files):
        path = os.path.join(top, name)
        st = os.lstat(path)
        kind = stat.S_IFMT(st.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            continue
        what = hashlib.sha256(open(path, "rb").read()).hexdigest() if kind == stat.S_IFREG else \
            os.readlink(path) if kind == stat.S_IFLNK else ""
        print(path, oct(st.st_mode), st.st_uid, int(st.st_mtime) if path not in (b"./deep/er/empty",) else "", what)
"""


def files(gw, name):
    return sorted(execute(gw, name, PYTHON, "-c", LOOK).out.splitlines())


def store(gw):
    return gw.state / "checkpoints"


def at_work(gw, word):
    """Processes of this gateway that are at a checkpoint."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            stat = pathlib.Path(f"/proc/{entry}/stat").read_text() if entry.isdigit() else ""
            state, parent = stat.rpartition(")")[2].split()[:2] if stat else ("Z", "")
            if f"({f'countersign-{word}'[:15]})" in stat and parent == str(gw.daemon()) and state != "Z" and \
                    pathlib.Path(f"/proc/{entry}/cmdline").read_bytes():
                found.append(int(entry))
        except OSError:
            pass
    return found


def walls_are_up(pid):
    """The filter of system calls is the last of them."""
    return "\nSeccomp:\t2\n" in pathlib.Path(f"/proc/{pid}/status").read_text()


def held(gw, *words, commits=False):
    """A client whose work at a checkpoint has begun, before a file is read or written, or (commits) when all of it is on
    the disk and nothing has its name yet; it stands still there. (it, who keeps it)"""
    lock = store(gw) / "lock" if commits else next(store(gw).glob("*/lock"))
    with lock.open() as place:
        fcntl.flock(place, fcntl.LOCK_EX)
        client = gw.lab.start([program(), *words], env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
        gw.lab.wait_for("its place", lambda: list(store(gw).rglob("tmp-ck-*")) if commits else at_work(gw, "workspace"))
        gw.lab.wait_for("who keeps it", lambda: len(at_work(gw, "checkpoint")) == 1)  # and nobody who sweeps
        keeper, = at_work(gw, "checkpoint")
        gw.lab.wait_for("its walls", lambda: walls_are_up(keeper))
        os.kill(keeper, signal.SIGSTOP)
        gw.lab.wait_for("that it stands still", lambda: state_of(keeper) == "T")
    return client, keeper


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def kill_at_work(gw, who, keeper):
    """Of those that work on, some may be done by now."""
    for pid in at_work(gw, who):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if who == "workspace":
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGCONT)


def nobody_is_at_work(gw):
    gw.lab.wait_for("nobody at work", lambda: not at_work(gw, "checkpoint") and not at_work(gw, "workspace"))


def whole(gw):
    """What has the name of a checkpoint."""
    return [f for f in store(gw).rglob("ck-*") if f.suffix != ".pack"]
