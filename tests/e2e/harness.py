"""Runner for end-to-end tests: start real things, wait for what they say, keep every byte, leave nothing behind.

    from harness import Skip, main, test

    @test("B52 connect")                     # lines "ok B52 connect" are printed when it passes
    def a_push_is_held(lab):
        git = lab.git_server()               # its password becomes a canary at once
        daemon = lab.start(["countersign", "up", ...], ready=r"listening on (\\S+)")
        done = lab.run(["git", "clone", git.url], env={...}, rc=0)
        assert b"remote:" in done.err
    main()

Each test has a Lab: a directory of its own (lab.dir), an empty home, an environment of only PATH, HOME, LANG
and TZ plus what the test gives. After the test everything it started is ended, whatever else still runs below us is a
failure, every canary is searched in everything below lab.dir (lab.exempt(path) takes out what must hold it), and what
no test announced fails it: a role that ended, a warning or an error in a log, a ticket left open (watch.py).
The ids of groups A and C and D1 to D19 (attacks.tsv) cannot be given so: only the oracle of attack.py
says those, case by case (lab.proved). Prints "ok NAME" or "not ok NAME" lines and, last, the counts as one line of JSON. Arguments: names to run
(substrings). LAB_KEEP=1 keeps the directories; a failed test's directory is always kept.
"""
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.insert(0, str(HERE / "lab"))
import canary  # noqa: E402
import servers  # noqa: E402
from patience import PATIENCE  # noqa: E402
from watch import Watch  # noqa: E402

TESTS = []
PR_SET_CHILD_SUBREAPER = 36
ORACLE_IDS = re.compile(r"((A|C)\d+|D1?\d) (?!(netns|files)$)")  # else the network itself or the files say it
PASSED_ON = ("PATH", "LANG", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")

MOMENT = r"(?:\d\d\d\d-\d\d-\d\d )?\d\d:\d\d"  # as a person reads it: with its day, when that is another one


LATER = r"\d\d\d\d-\d\d-\d\d \d\d:\d\d"  # the same of what is two hours away, which is tomorrow here


def late():
    """A time zone in which it is eleven at night, so that what holds at some hours only is seen at each hour alike: what is
    open for two hours is so until tomorrow."""
    now = time.gmtime()
    ahead = (23 - now.tm_hour) * 60 - now.tm_min
    return f"LATE{'+' if ahead < 0 else '-'}{abs(ahead) // 60:02}:{abs(ahead) % 60:02}"


LATE = late()


class Skip(Exception):
    """What the test needs is not on this machine. Says what."""


class Done:
    """A command that ended: rc, out, err (bytes)."""

    def __init__(self, rc, out, err):
        self.rc, self.out, self.err = rc, out, err

    @property
    def both(self):
        return self.out + self.err

    def text(self):
        return self.both.decode("utf-8", "replace")


class Process:
    """Something that keeps running, in a process group of its own; out and err go to one file as they come."""

    def __init__(self, command, env, cwd, log, stdin=subprocess.DEVNULL):
        self.name, self.log = str(command[0]), log
        self.is_gateway = "up" in command[1:2]
        self.seen, self.news, self.ended = b"", threading.Condition(), False
        self.ready, self.told, self.stuck = None, False, ""  # told: the test itself ended it
        self.end_by = signal.SIGTERM
        self.popen = subprocess.Popen(command, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = self.popen.pid
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with open(self.log, "ab", buffering=0) as out:
            while data := self.popen.stdout.read1(65536):
                out.write(data)
                with self.news:
                    self.seen += data
                    self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def wait_line(self, pattern, timeout=PATIENCE):
        """The first match of pattern in the output so far or to come; an error when the process ends before."""
        wanted = re.compile(pattern.encode() if isinstance(pattern, str) else pattern)
        with self.news:
            self.news.wait_for(lambda: wanted.search(self.seen) or self.ended, timeout)
            found = wanted.search(self.seen)
            if not found:
                state = "ended" if self.ended else f"said nothing like that in {timeout} s"
                raise AssertionError(f"{self.name}: waiting for {wanted.pattern!r}, but it {state}:\n"
                                     + self.seen[-3000:].decode("utf-8", "replace"))
            return found

    def wait(self, timeout=PATIENCE):
        """Its exit status; what it said until then has been seen."""
        status = self.popen.wait(timeout)
        self.reader.join(2)  # a child of its own may hold the pipe open
        return status

    def signal(self, number):
        self.told = True
        self.popen.send_signal(number)

    def stop(self, grace=PATIENCE):
        """TERM (end_by), then after the grace KILL, to the whole group, with what each of it was at until then in `stuck`. Returns
        the exit status (negative: a signal)."""
        self.told = True
        if self.popen.poll() is None:
            self._group(self.end_by)
            try:
                self.popen.wait(grace)
            except subprocess.TimeoutExpired:
                self.stuck = f"; {grace} s after it was told to: {self._standing()}"
                self._group(signal.SIGKILL)
                self.popen.wait(5)
        self.reader.join(5)
        return self.popen.returncode

    def _standing(self):
        """Who of its group there is, in which state and where in the kernel."""
        def is_at(entry):
            rest = (entry / "stat").read_text().rpartition(")")[2].split()
            name = (entry / "comm").read_text().strip()
            place = [line.split("] ")[-1].split("+")[0] for line in (entry / "stack").read_text().splitlines()[:4]] \
                if os.geteuid() == 0 else [(entry / "wchan").read_text()]
            return f"{name} ({entry.name}) {rest[0]} {' < '.join(place)}" if rest[2] == str(self.pid) else ""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                found += [said for said in [is_at(entry) if entry.name.isdigit() else ""] if said]
            except OSError:
                continue
        return ", ".join(found)

    def _group(self, number):
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass


class Lab:
    def __init__(self, name):
        self.name = name
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cs-"))
        os.chmod(self.dir, 0o755)  # the Git server's worker may be another user
        self.out, self.home = self.dir / "out", self.dir / "home"
        self.out.mkdir()
        self.home.mkdir()
        self.count, self.processes, self.at_end, self.secrets, self.exempted = 0, [], [], [], []
        self.watch = Watch(self.dir)
        self.expects, self.kills, self.leaves = self.watch.expects, self.watch.kills, self.watch.leaves
        self.proved, self.failures = [], []  # by the oracle: "ID transport"; the same and what did not hold, in words

    # what tests call

    def run(self, command, env=None, cwd=None, stdin=None, timeout=PATIENCE, rc=None):
        """Runs to the end and keeps its output; with rc given, another status is a failure."""
        base = self._record(command)
        with open(f"{base}.out", "wb") as out, open(f"{base}.err", "wb") as err:
            popen = subprocess.Popen(command, env=self.env(env), cwd=cwd or self.dir, stdout=out, stderr=err,
                                     stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                                     start_new_session=True)
            try:
                popen.communicate(stdin, timeout)
            except BaseException as why:
                os.killpg(popen.pid, signal.SIGKILL)
                popen.wait()
                if isinstance(why, subprocess.TimeoutExpired):
                    raise AssertionError(f"{command[0]} took more than {timeout} s") from None
                raise
        done = Done(popen.returncode, *(pathlib.Path(base + end).read_bytes() for end in (".out", ".err")))
        if rc is not None and done.rc != rc:
            raise AssertionError(f"{' '.join(map(str, command))}: status {done.rc}, not {rc}:\n{done.text()[-3000:]}")
        return done

    def start(self, command, env=None, cwd=None, ready=None, timeout=PATIENCE, stdin=subprocess.DEVNULL):
        """Starts what stays; with ready, waits for a line that matches. Its match is process.ready."""
        process = Process(command, self.env(env), cwd or self.dir, self._record(command) + ".log", stdin)
        self.processes.append(process)
        process.ready = process.wait_line(ready, timeout) if ready else None
        return process

    def env(self, more=None):
        env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        env.update({"HOME": str(self.home), "TZ": LATE, **{k: str(v) for k, v in (more or {}).items()}})
        return env

    def wait_for(self, what, condition, timeout=PATIENCE):
        """For what announces itself nowhere (a file, a row): asks until it is true, and returns that. A server that ends
        meanwhile by itself ends the wait, with its words. To ask is work (a program that starts, a thousand processes looked
        through), which what is waited for would otherwise do: it is a fifth of the time at most, and less in a long wait."""
        began, pause = time.monotonic(), threading.Event()
        end, asked = began + timeout, began
        standing = [p for p in self.processes if p.ready and not p.ended]
        while not (value := condition()):
            for process in standing:
                if process.ended and not process.told and process.popen.poll() is not None:
                    raise AssertionError(f"{what}: but {process.name} ended ({process.popen.returncode}):\n"
                                         + process.seen[-3000:].decode("utf-8", "replace"))
            now = time.monotonic()
            if now > end:
                raise AssertionError(f"{what}: not in {timeout} s")
            pause.wait(min(0.25, max(0.01, 4 * (now - asked), (now - began) / 20)))
            asked = time.monotonic()
        return value

    def stops(self, pid):
        """SIGSTOP, and until each of its threads stands: the signal is taken by one of them, and the others go on until that
        one has run, which on a busy machine is enough for a whole request."""
        def standing():
            try:
                tasks = [t.read_text() for t in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
            except (FileNotFoundError, ProcessLookupError):
                return False  # a thread ended meanwhile, or all of it
            return all(t.rpartition(")")[2].split()[0] in "TtZX" for t in tasks)
        os.kill(pid, signal.SIGSTOP)
        self.wait_for(f"process {pid} to stand still", lambda: standing() or not os.path.exists(f"/proc/{pid}"))

    def canary(self, secret, user=None):
        """From now on this must not be anywhere below lab.dir when the test is over."""
        self.secrets += canary.forms_of(secret, user)
        return secret

    def exempt(self, path):
        """What lies here rightly holds a canary: a secret's source, a server's own files."""
        self.exempted.append(pathlib.Path(path))
        return path

    def secret_file(self, name, secret, user=None):
        """A canary in a file of mode 0600, as a credential's source."""
        path = self.dir / name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            out.write(self.canary(secret, user))
        return self.exempt(path)

    def capture(self, name, data):
        """Keeps bytes the test read by itself (a page, a socket) for the search."""
        self.count += 1
        path = self.out / f"{self.count:03}-{name}"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def capture_last(self, name, data):
        """The same, and only what came last by this name."""
        (self.out / ("last-" + name.replace("/", "-"))).write_text(data, encoding="utf-8", errors="surrogateescape")

    def git_server(self, port=None):
        return servers.GitServer(self, TOP / "conf/demo/git-server", port)

    def upstream(self, *names, ca_dir=None):
        return servers.Upstream(self, names or ("upstream.test",), ca_dir)

    def verdaccio(self, is_open=False):
        return servers.Verdaccio(self, HERE / "npm", is_open)

    # the end

    def _record(self, command):
        self.count += 1
        base = f"{self.out}/{self.count:03}-{pathlib.Path(str(command[0])).name}"
        pathlib.Path(base + ".cmd").write_text(" ".join(map(str, command)) + "\n", encoding="utf-8")
        return base

    def close(self):
        """Ends everything; returns what is wrong after that, in words."""
        wrong = self._in_sandboxes() if self.secrets else []
        for process in reversed(self.processes):
            told = process.told
            status = process.stop()
            if process.is_gateway and status != 0 and not told and process.pid not in self.watch.killed:
                wrong.append(f"the gateway (pid {process.pid}) ended with status {status}{process.stuck}")
        for action in reversed(self.at_end):
            try:
                action()
            except Exception as why:
                wrong.append(f"at the end: {why}")
        for pid, command in leftovers():
            wrong.append(f"still runs: {command} ({pid})")
        wrong += self.watch.wrong()
        if self.secrets:
            try:
                wrong += [f"the canary is in {f.path}: {f.form}, {f.view}"
                          for f in canary.search(self.secrets, [self.dir], self.exempted)]
            except OSError as why:
                wrong.append(f"the canary search could not read everything: {why}")
        return wrong

    def _in_sandboxes(self):
        """What is searched while it is there: sandboxes that run, and those that wait."""
        wrong = []
        for pid in shims():
            try:
                wrong += [f"the canary is in a sandbox, {f.path}: {f.form}, {f.view}" for f in canary.search_sandbox(self.secrets, pid)]
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has ended meanwhile
            except OSError as why:
                wrong.append(f"the canary search could not look into sandbox {pid}: {why}")
        return wrong

    def tails(self):
        for path in sorted(self.out.iterdir()):
            data = path.read_bytes()
            if data and path.suffix != ".cmd":
                print(f"# --- {path}\n" + data[-2000:].decode("utf-8", "replace"))


def shims():
    """The first process of each sandbox below this test that lives."""
    parents, found = {}, []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit():
                fields = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")
                parents[int(entry)] = int(fields[2].split()[1])
                if "countersign-shi" in fields[0] and fields[2].split()[0] != "Z":
                    found.append(int(entry))
        except (FileNotFoundError, ProcessLookupError):
            pass

    def below(pid):
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()
    return [pid for pid in found if below(pid)]


def children():
    """(pid, command line) of every live child of ours; orphans below us become our children."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) != os.getpid():
                    continue
                if fields[0] == "Z":
                    os.waitpid(int(entry), os.WNOHANG)
                    continue
                command = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                yield int(entry), command.strip()
            except (OSError, ChildProcessError):
                continue


def leftovers(grace=60):
    """What did not end within the grace; it is killed."""
    end, pause = time.monotonic() + grace, threading.Event()
    while (left := list(children())) and time.monotonic() < end:
        pause.wait(0.02)
    for pid, _ in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return left


def test(*covers):
    """Marks a test. covers: "ID transport" strings of tests/attacks.tsv, but not those of the oracle."""
    oracles = [line for line in covers if ORACLE_IDS.match(line)]
    assert not oracles, f"{oracles}: only a case of attack.py's Rig may say that"

    def add(function):
        function.covers = covers
        TESTS.append(function)
        return function
    return add


def chosen(function, words):
    """Do these words of a command line name it? One of several ways in is named by "part of a name_over_way" too."""
    name, ways = function.__name__, getattr(function, "ways", ())
    parts = [word.rpartition("_over_") for word in words]
    return not words or any(word in name for word in words) or any(part and part in name and way in ways for part, _, way in parts)


def run_one(function):
    """'passed', 'failed' or 'skipped', having printed its line."""
    name, outcome, wrong = function.__name__, "passed", []
    lab = Lab(name)
    try:
        function(lab)
    except Skip as why:
        outcome = "skipped"
        print(f"ok {name} # skip {why}")
    except Exception:
        wrong.append(traceback.format_exc())
    finally:
        ends_badly = lab.close()
        wrong += [why for _, why in lab.failures if why] + ends_badly
    for line in sorted({line for line, _ in lab.failures}):
        print(f"not ok {line}")
    for line in sorted(set(lab.proved)) if not ends_badly else ():
        print(f"ok {line}")
    if wrong:
        outcome = "failed"
        print(f"not ok {name}")
        for text in wrong:
            print("# " + text.rstrip().replace("\n", "\n# "))
        lab.tails()
        print(f"# kept: {lab.dir}")
    elif outcome == "passed":
        print(f"ok {name}")
        for line in function.covers:
            print(f"ok {line}")
    if not wrong and not os.environ.get("LAB_KEEP"):
        shutil.rmtree(lab.dir)
    sys.stdout.flush()
    return outcome


def main():
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.umask(0o022)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for function in TESTS:
        if chosen(function, sys.argv[1:]):
            counts[run_one(function)] += 1
    print(json.dumps(counts))
    sys.exit(1 if counts["failed"] or not any(counts.values()) else 0)
