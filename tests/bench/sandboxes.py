#!/usr/bin/env python3
"""Started sandboxes beside what is under them, in one run: a bare bubblewrap, a bare fork and exec, a commit that is on disk,
tar, npm and SHA-256. Each is asked for over one connection of the control socket, and both sides of a ratio take turns.
A figure past its bound is told and makes this fail; bench.json has it as it was measured.
"""
import argparse
import concurrent.futures
import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time

CASE = "sandbox: "
MIB = 1 << 20
POOL = 4
BARE = ["/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--"]


def milliseconds(do, *words):
    begin = time.perf_counter()
    do(*words)
    return (time.perf_counter() - begin) * 1e3


def p(values, percent):
    values = sorted(values)
    return values[min(len(values) - 1, len(values) * percent // 100)]


class Control:
    """A connection to the control socket: kept open, but for what is streamed, after which it is another one."""

    def __init__(self, state):
        self.state = state
        self.connect()

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(600)
        self.sock.connect(str(self.state / "control.sock"))
        self.file, self.used = self.sock.makefile("rb"), time.monotonic()

    def ask(self, method, path, body=None, kind="application/json"):
        """(status, bytes of the answer)"""
        if time.monotonic() - self.used > 5:  # what is idle is closed
            self.sock.close()
            self.connect()
        self.used = time.monotonic()
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        self.sock.sendall(f"{method} /api/v1/{path} HTTP/1.1\r\nHost: control\r\nContent-Type: {kind}\r\n"
                          f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        status, length, chunked, last = int(self.file.readline().split()[1]), 0, False, False
        while (line := self.file.readline().strip().lower()):
            length = int(line.split(b":")[1]) if line.startswith(b"content-length:") else length
            last |= line == b"connection: close"
            chunked |= line == b"transfer-encoding: chunked"
        out = self.file.read(length) if not chunked else self.chunks()
        if last:
            self.sock.close()
            self.connect()
        return status, out

    def chunks(self):
        out = []
        while (size := int(self.file.readline(), 16)):
            out.append(self.file.read(size))
            self.file.readline()
        self.file.readline()
        return b"".join(out)

    def want(self, *words, status=(200, 201, 204), **more):
        got, out = self.ask(*words, **more)
        if got not in status:
            raise RuntimeError(f"{words[:2]}: {got} {out[:300]!r}")
        return out

    def start(self, name, **more):
        self.want("POST", "sandboxes/start", {"name": name, **more})

    def run(self, name, *argv, **more):
        out = self.want("POST", f"sandboxes/{name}/exec", {"argv": argv, **more})
        if b'"status":0' not in out:
            raise RuntimeError(f"{argv}: {out[-300:]!r}")
        return out

    def destroy(self, name):
        self.want("POST", f"sandboxes/{name}/destroy", {})


class Gateway:
    def __init__(self, prefix):
        self.prefix = pathlib.Path(prefix).resolve()
        self.program = self.prefix / ("bin/countersign" if (self.prefix / "bin").is_dir() else "countersign")
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bench-sandboxes-"))
        os.chmod(self.dir, 0o755)
        self.state = self.dir / "state"
        (self.dir / "policy.yaml").write_text("version: 1\nname: none\nrules: []\n")
        (self.dir / "countersign.yaml").write_text(
            "version: 1\nstate_dir: state\npolicy: [policy.yaml]\ndesk: { http: \"localhost:0\" }\nlisteners: []\n"
            f"pool: [{{ size: {POOL} }}]\n")
        self.log = (self.dir / "log").open("wb")
        self.process = subprocess.Popen([self.program, "up", "--config", self.dir / "countersign.yaml"],
                                        stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while not b"countersign is up" in (self.dir / "log").read_bytes():
            if time.monotonic() > end or self.process.poll() is not None:
                sys.exit(f"sandboxes: the gateway does not start: {(self.dir / 'log').read_text()[-2000:]}")
            time.sleep(0.05)
        self.store = sqlite3.connect(self.dir / "beside.db", isolation_level=None)  # the same disk
        for line in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE t(a, b)"):
            self.store.execute(line)

    def commit(self):
        self.store.execute("INSERT INTO t VALUES (randomblob(200), 1)")

    def control(self):
        return Control(self.state)

    def waiting(self, c):
        return json.loads(c.want("GET", "status"))["sandboxes"]["waiting"]

    def pool_is_full(self, c):
        while self.waiting(c) < POOL:
            time.sleep(0.01)
        time.sleep(0.05)  # the last of them has just been asked for

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        shutil.rmtree(self.dir, ignore_errors=True)


def bare_true():
    os.waitpid(os.posix_spawn("/usr/bin/true", ["true"], {}), 0)


def bare_sandbox():
    if os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(BARE[0], [*BARE, "/usr/bin/true"], {}), 0)[1]):
        raise RuntimeError("a bare bubblewrap does not run here")


# ---- what is measured: each gives {(what, metric, unit): value or (value, bound)} ----

def first_command(gw, rounds):
    c, took = gw.control(), {"bare": [], "fresh": [], "pool": []}

    def one(name, **limits):
        c.start(name, **limits)
        c.run(name, "true")
    for n in range(rounds + 1):
        now = {"bare": milliseconds(bare_sandbox),
               "fresh": milliseconds(lambda: one(f"fresh{n}", memory=1000 * MIB))}
        c.destroy(f"fresh{n}")
        gw.pool_is_full(c)
        now["pool"] = milliseconds(lambda: one(f"pool{n}"))
        c.destroy(f"pool{n}")
        for kind in took if n else ():  # the first round warms up
            took[kind].append(now[kind])
    bare, fresh, pool = (p(took[k], 50) for k in ("bare", "fresh", "pool"))
    return {("a bare bwrap --unshare-all", "p50", "ms"): bare,
            ("create and first command", "p50", "ms"): fresh,
            ("create and first command", "ratio", "x bare bwrap"): (fresh / bare, 3),
            ("create from the pool and first command", "p50", "ms"): pool,
            ("create from the pool and first command", "ratio", "x bare bwrap"): (pool / bare, 1)}


def command(gw, rounds):
    c, bare, ours = gw.control(), [], []
    c.start("runs")
    for n in range(rounds * 5 + 5):
        bare.append(milliseconds(bare_true) + milliseconds(gw.commit))
        ours.append(milliseconds(c.run, "runs", "true"))
    c.destroy("runs")
    b, o = p(bare[5:], 50), p(ours[5:], 50)
    return {("a fork, exec and commit", "p50", "ms"): b, ("a command in a running one", "p50", "ms"): o,
            ("a command in a running one", "ratio", "x fork, exec and commit"): (o / b, 2)}


def files(gw, rounds):
    c, reads, writes, body = gw.control(), [], [], os.urandom(1024)
    c.start("files")
    for n in range(rounds * 10 + 5):
        writes.append(milliseconds(lambda: c.want("PUT", "sandboxes/files/files?path=a", body, kind="application/octet-stream")))
        reads.append(milliseconds(lambda: c.want("GET", "sandboxes/files/files?path=a")))
    c.destroy("files")
    return {("1 KiB read", "p50", "ms"): (p(reads[5:], 50), 1), ("1 KiB written", "p50", "ms"): (p(writes[5:], 50), 1)}


def beside_busy(gw, rounds, many=100):
    c, took = gw.control(), []
    for n in range(many):
        c.start(f"busy{n}", memory=64 * MIB)
        c.want("POST", f"sandboxes/busy{n}/exec", {"argv": ["sh", "-c", "while :; do :; done"], "detach": True})
    c.start("calm")
    for _ in range(rounds * 4):
        took.append(milliseconds(c.run, "calm", "true"))
    for name in ("calm", *(f"busy{n}" for n in range(many))):
        c.destroy(name)
    return {(f"a command beside {many} busy ones", "p95", "ms"): (p(took, 95), 500)}


def burst(gw, rounds, many=100):
    def one(n):
        c = gw.control()
        status, out = c.ask("POST", "sandboxes/start", {"name": f"burst{n}", "memory": 64 * MIB})
        return status, out
    with concurrent.futures.ThreadPoolExecutor(many) as pool:
        begin = time.perf_counter()
        said = list(pool.map(one, range(many)))
        took = (time.perf_counter() - begin) * 1e3
    c = gw.control()
    for n in range(many):
        c.ask("POST", f"sandboxes/burst{n}/destroy", {})
    bad = [s for s in said if s[0] != 201]
    if bad:
        print("# burst:", bad[0], file=sys.stderr)
    return {(f"{many} creates at once", "failures", "sandboxes"): (len(bad), 0), (f"{many} creates at once", "all", "ms"): took}


def pss(pids):
    total = 0
    for pid in pids:
        try:
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                total += int(line.split()[1]) if line.startswith("Pss:") else 0
        except OSError:
            pass
    return total


def family(*roots):
    """These processes and all below them."""
    parents, found = {}, set(roots)
    for entry in os.listdir("/proc"):
        try:
            parents[int(entry)] = int(pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            pass
    grew = True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grew = bool(more)
    return found


def idle(gw, rounds, many=500):
    c = gw.control()
    before = family(gw.process.pid)
    roles = pss(before)
    for n in range(many):
        c.start(f"idle{n}", memory=64 * MIB)
    after = family(gw.process.pid)
    each = pss(after - before) / many
    grew = (pss(after & before) - roles) / many
    up = len(json.loads(c.want("GET", "sandboxes/started"))["started"])
    for n in range(many):
        c.destroy(f"idle{n}")
    bare = [subprocess.Popen([*BARE, "/bin/sh", "-c", "echo; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(20)]
    for one in bare:
        one.stdout.readline()
    theirs = pss(family(*(one.pid for one in bare))) / len(bare)
    for one in bare:
        one.stdin.close()
        one.wait()
    return {("idle ones at once", "up", "sandboxes"): up, ("idle ones at once", "missing", "sandboxes"): (many - up, 0),
            ("an idle one", "memory", "KiB"): each, ("an idle one in the gateway's own processes", "memory", "KiB"): grew,
            ("a bare bwrap with its shell", "memory", "KiB"): theirs,
            ("an idle one", "memory ratio", "x bwrap and its shell"): (each / theirs, 2)}


def tree_of(count):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for n in range(count):
            info = tarfile.TarInfo(f"tree/{n // 200}/file{n}.js")
            body = f"module.exports = {n};\n".encode() * 8
            info.size = len(body)
            t.addfile(info, io.BytesIO(body))
    return out.getvalue()


def tree(gw, rounds, count=20000):
    c, took, packed = gw.control(), {k: [] for k in ("tar in", "in", "tar out", "out")}, tree_of(count)
    (gw.dir / "tree.tar").write_bytes(packed)
    for n in range(max(1, rounds // 5)):
        place = gw.dir / f"tree{n}"
        place.mkdir()
        c.start("tree")
        took["tar in"].append(milliseconds(subprocess.run, ["tar", "-xf", gw.dir / "tree.tar", "-C", place]))
        took["in"].append(milliseconds(lambda: c.want("PUT", "sandboxes/tree/files/tar?path=.", packed, kind="application/x-tar")))
        took["tar out"].append(milliseconds(lambda: subprocess.run(["tar", "-cf", "-", "-C", place, "tree"], stdout=subprocess.PIPE)))
        took["out"].append(milliseconds(lambda: c.want("GET", "sandboxes/tree/files/tar?path=tree")))
        c.destroy("tree")
        shutil.rmtree(place)
    t = {k: p(v, 50) for k, v in took.items()}
    return {(f"{count} small files in", "p50", "ms"): t["in"], (f"{count} small files out", "p50", "ms"): t["out"],
            (f"{count} small files in", "ratio", "x tar"): (t["in"] / t["tar in"], 2),
            (f"{count} small files out", "ratio", "x tar"): (t["out"] / t["tar out"], 2)}


def packages(place, count=30, each=100):
    """Packages of npm in one folder, and a project that wants them all."""
    wants = {}
    for n in range(count):
        with tarfile.open(place / f"p{n}.tgz", "w:gz") as t:
            for name, body in [("package.json", json.dumps({"name": f"p{n}", "version": "1.0.0"})),
                               *((f"lib/f{k}.js", f"module.exports = {k};\n" * 20) for k in range(each))]:
                info = tarfile.TarInfo(f"package/{name}")
                info.size = len(body)
                t.addfile(info, io.BytesIO(body.encode()))
        wants[f"p{n}"] = f"file:p{n}.tgz"
    (place / "package.json").write_text(json.dumps({"name": "all", "version": "1.0.0", "dependencies": wants}))


INSTALL = ["sh", "-c", "rm -rf node_modules package-lock.json && exec npm install --offline --no-audit --no-fund --loglevel error"]


def npm(gw, rounds):
    if not shutil.which("npm"):
        print("# npm is not measured: it is not installed", file=sys.stderr)
        return {}
    c, place, bare, ours = gw.control(), gw.dir / "project", [], []
    place.mkdir()
    packages(place)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        t.add(place, ".")
    c.start("npm", memory=2048 * MIB, disk=1024 * MIB, cpu_percent=200)
    c.want("PUT", "sandboxes/npm/files/tar?path=.", out.getvalue(), kind="application/x-tar")
    env = {"PATH": os.environ["PATH"], "HOME": str(gw.dir)}
    for _ in range(max(2, rounds // 5)):
        bare.append(milliseconds(lambda: subprocess.run(INSTALL, cwd=place, env=env, check=True, stdout=subprocess.DEVNULL)))
        ours.append(milliseconds(c.run, "npm", *INSTALL))
    c.destroy("npm")
    b, o = min(bare), min(ours)
    return {("npm install on the bare disk", "best", "ms"): b, ("npm install in a workspace in memory", "best", "ms"): o,
            ("npm install in a workspace in memory", "ratio", "x the bare disk"): (o / b, 1.3)}


def checkpoint(gw, rounds, changed=16):
    c, ours, theirs = gw.control(), [], []
    c.start("kept", memory=3072 * MIB, disk=1500 * MIB)
    c.run("kept", "sh", "-c", "for i in $(seq 64); do head -c 16777216 /dev/urandom > f$i; done", timeout=600)
    c.want("POST", "sandboxes/kept/snapshot", {"name": "base"})
    for n in range(max(2, rounds // 5)):
        c.run("kept", "sh", "-c", f"head -c {changed * MIB} /dev/urandom > f1")
        bytes_of = os.urandom(changed * MIB)
        theirs.append(milliseconds(hashlib.sha256, bytes_of) + milliseconds(gw.commit))
        ours.append(milliseconds(lambda: c.want("POST", "sandboxes/kept/snapshot", {"name": f"more{n}"})))
    c.destroy("kept")
    o, t = p(ours, 50), p(theirs, 50)
    return {(f"checkpoint, {changed} MiB of 1 GiB changed", "p50", "ms"): o,
            (f"SHA-256 of {changed} MiB and a commit", "p50", "ms"): t,
            (f"checkpoint, {changed} MiB of 1 GiB changed", "ratio", "x hashing and a commit"): (o / t, 5)}


PARTS = {"first": first_command, "command": command, "files": files, "busy": beside_busy, "burst": burst, "tree": tree,
         "npm": npm, "checkpoint": checkpoint, "idle": idle}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--prefix", required=True, help="where Countersign is installed, or its build directory")
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--only", default=",".join(PARTS), help="parts, by comma")
    options.add_argument("--out", default="bench.json")
    args = options.parse_args()
    gw, rows, past = Gateway(args.prefix), [], []
    try:
        for part in args.only.split(","):
            for (what, metric, unit), value in PARTS[part](gw, args.rounds).items():
                value, bound = value if isinstance(value, tuple) else (value, None)
                missed = bound is not None and value > bound
                rows.append({"case": CASE + what, "proxy": "countersign", "metric": metric, "unit": unit, "value": round(value, 2)})
                if bound is not None:
                    rows[-1].update(bound=bound, within=not missed)
                print(f"{what:<48}{metric:<13}{value:>10.2f} {unit}" + (f"  (at most {bound})" if bound is not None else "") +
                      ("  PAST IT" if missed else ""), flush=True)
                past += [what] if missed else []
    except Exception:
        print((gw.dir / "log").read_text()[-2000:], file=sys.stderr)
        raise
    finally:
        gw.end()
    out, mine = pathlib.Path(args.out), {row["case"] for row in rows}
    old = json.loads(out.read_text()) if out.exists() else []
    out.write_text(json.dumps([r for r in old if r["case"] not in mine] + rows, indent=1) + "\n")
    sys.exit(f"sandboxes: past their bounds: {', '.join(sorted(set(past)))}" if past else 0)


if __name__ == "__main__":
    main()
