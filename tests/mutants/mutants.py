#!/usr/bin/env python3
"""Do the tests see a fault? Each row of mutants.tsv is planted by itself in a copy of the tree, the tests it names are
built and run, and one of them must fail.

usage: mutants.py [-j N] [WORD...]       all rows, or those whose file or texts have one of the words: `make mutants`
       mutants.py --texts                only whether each row's text still stands in its file, once

A row: file, what stands there once, what stands there then, the tests that see it (programs and .py files of `make check`;
plain:PROGRAM without sanitizers, which are not confined; e2e:FILE:PART for what no lower layer can see), and, when none sees it, why that is right. \\n is a line's end and \\\\ a backslash.
The tree as it is must be green first. A row that does not compile is broken, not noticed. It takes a scratch directory
below TMPDIR (MUTANTS_DIR: one that is kept, and used again).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = pathlib.Path(__file__).resolve().parent / "mutants.tsv"
SHARE = 0.95  # that must be noticed
ENOUGH = 60  # seconds a test may take, and so many times what it takes without a fault
TIMES = 20
RUNS = {"tests/unit/test_keeper": ["countersign-keeper"],  # programs that a test starts
        "tests/unit/test_talk": ["countersign-shim"], "tests/unit/test_files": ["countersign-shim"],
        "tests/play/judge/lease_bounds.py": ["tests/play/lease_lines", "tests/policy/judge_lines"]}
QUIET = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0", "DIFF_RANDOM": "3", "REPLAY_PAIRS": "20"}


class Row:
    def __init__(self, number, fields):
        fields += [""] * (5 - len(fields))
        self.number, self.file, self.tests, self.why = number, fields[0], fields[3].split(), fields[4]
        self.old, self.new = (re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text) for text in fields[1:3])
        self.programs = [t for t in self.tests if ":" not in t]
        self.plain = [t.removeprefix("plain:") for t in self.tests if t.startswith("plain:")]
        self.e2e = [t.split(":")[1:] for t in self.tests if t.startswith("e2e:")]

    def __str__(self):
        line = next((n for n in self.old.splitlines() if n.strip()), "").strip()
        return f"{self.number}: {self.file}: {line[:70]}"

    def text(self, top):
        """The file with the fault, or why there is none."""
        path = top / self.file
        have = path.read_text() if path.exists() else ""
        if have.count(self.old) != 1:
            raise LookupError(f"its text stands {have.count(self.old)} times there")
        return have.replace(self.old, self.new)


def targets(programs):
    return sorted({*(p for p in programs if not p.endswith(".py")), *(run for p in programs for run in RUNS.get(p, []))})


def table():
    rows = []
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            rows.append(Row(number, line.split("\t")))
    return rows


def run(command, cwd, seconds=None, env=None):
    """(status, output); status None: it took too long, and was ended with all it started."""
    with subprocess.Popen(command, cwd=cwd, env={**os.environ, **QUIET, **(env or {})}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as popen:
        try:
            out = popen.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(popen.pid, signal.SIGKILL)
            return None, popen.communicate()[0]
        return popen.returncode, out


def must(command, cwd):
    status, out = run(command, cwd)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))}: {status}\n{out[-4000:].decode('utf-8', 'replace')}")


class Tree:
    """A copy of the tree, and a build of it with sanitizers; for e2e rows an installed one without."""

    def __init__(self, top):
        self.top, self.build, self.plain, self.inst = top, top / "build-dev", top / "build-plain", top / "inst"

    def fill(self):
        names = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True).stdout.split(b"\0")
        for name in filter(None, map(os.fsdecode, names)):
            have, want = self.top / name, TOP / name
            if want.is_symlink() or not want.exists():
                continue
            if not have.exists() or have.read_bytes() != want.read_bytes():
                have.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(want, have)
        if not (self.top / "configure").exists():
            must(["autoreconf", "-fi"], self.top)

    def ready(self, programs):
        if not (self.build / "Makefile").exists():
            self.build.mkdir(exist_ok=True)
            must(["../configure", "--enable-dev"], self.build)
        must(["make", f"-j{os.cpu_count()}", *targets(programs)], self.build)

    def ready_plain(self):
        if not (self.plain / "Makefile").exists():
            self.plain.mkdir(exist_ok=True)
            must(["../configure", "--enable-werror", f"--prefix={self.inst}"], self.plain)
        must(["make", f"-j{os.cpu_count()}", "all"], self.plain)
        must(["make", "install"], self.plain)  # by itself: beside `all` it would build the same objects

    def make(self, build, *names):
        """With warnings that are no errors: a fault may leave something unused."""
        flags = re.search(r"^CFLAGS = (.*)$", (build / "Makefile").read_text(), re.M)[1]
        return run(["make", f"CFLAGS={flags} -Wno-error", *names], build)

    def test(self, program, seconds):
        # Some read files of the tree by a relative name, as `make check` runs them.
        words = [sys.executable, str(self.top / program)] if program.endswith(".py") else [f"./{program}"]
        return run(words, self.build, seconds, {"srcdir": str(self.top)})

    def test_e2e(self, file, part, seconds):
        env = {"PATH": f"{self.inst}/bin:{os.environ['PATH']}", "COUNTERSIGN_PREFIX": str(self.inst)}
        return run([sys.executable, str(next((self.top / "tests/e2e").rglob(file))), part], self.top, seconds, env)

    def plant(self, row, took):
        """noticed, by what and how; or why not."""
        path = self.top / row.file
        kept = path.read_text()
        path.write_text(row.text(self.top))
        try:
            if row.programs:
                status, out = self.make(self.build, *targets(row.programs))
                if status != 0:
                    return "broken", "does not compile: " + out[-600:].decode("utf-8", "replace")
                for program in row.programs:
                    status, _ = self.test(program, max(ENOUGH, TIMES * took[program]))
                    if status != 0:
                        return "noticed", f"{program}{' (it hangs)' if status is None else ''}"
            if row.plain or row.e2e:
                status, out = self.make(self.plain, *(["all", "install"] if row.e2e else row.plain))
                if status != 0:
                    return "broken", "does not compile: " + out[-600:].decode("utf-8", "replace")
            for program in row.plain:
                if run([f"./{program}"], self.plain, 600)[0] != 0:
                    return "noticed", f"{program}, without sanitizers"
            for file, part in row.e2e:
                status, _ = self.test_e2e(file, part, 600)
                if status != 0:
                    return "noticed", f"{file} {part}"
        finally:
            path.write_text(kept)
        return ("explained", row.why) if row.why else ("unnoticed", "by none of " + " ".join(row.tests))


def green(tree, programs):
    """Seconds each test takes on the tree as it is. Ends when one fails there."""
    took = {}
    for program in programs:
        began = time.monotonic()
        status, out = tree.test(program, None)
        took[program] = time.monotonic() - began
        if status != 0:
            sys.exit(f"{program} fails without a fault:\n{out[-4000:].decode('utf-8', 'replace')}")
    return took


def green_e2e(tree, rows):
    tree.ready_plain()
    for program in sorted({p for r in rows for p in r.plain}):
        must(["make", program], tree.plain)
        must([f"./{program}"], tree.plain)
    for file, part in sorted({tuple(e) for r in rows for e in r.e2e}):
        status, out = tree.test_e2e(file, part, None)
        if status != 0:
            sys.exit(f"{file} {part} fails without a fault:\n{out[-4000:].decode('utf-8', 'replace')}")


def trees(scratch, n, rows):
    programs = sorted({p for r in rows for p in r.programs})
    first = Tree(scratch / "0")
    first.top.mkdir(parents=True, exist_ok=True)
    first.fill()
    print(f"==> {len(programs)} test programs are built and run as they are", flush=True)
    first.ready(programs)
    took = green(first, programs)
    found = [first]
    for i in range(1, n):
        other = Tree(scratch / str(i))
        if other.top.exists():
            shutil.rmtree(other.top)
        must(["cp", "-a", str(first.top), str(other.top)], scratch)  # its times too: nothing is built anew
        found.append(other)
    return found, took


def batches(rows):
    """Rows of one file follow each other in one tree, so that little is built anew. Those with e2e or plain need the first tree."""
    by = {}
    for row in rows:
        by.setdefault((bool(row.e2e or row.plain), row.file), []).append(row)
    return [found for (late, _), found in by.items() if not late], [r for (late, _), found in by.items() if late for r in found]


def work(rows, every, took):
    free, results = queue.SimpleQueue(), []
    for tree in every:
        free.put(tree)

    def one(batch, tree=None):
        mine = tree or free.get()
        try:
            for row in batch:
                began = time.monotonic()
                try:
                    what, words = mine.plant(row, took)
                except LookupError as why:
                    what, words = "broken", str(why)
                results.append((row, what))
                good = "ok" if what in ("noticed", "explained") else "not ok"
                print(f"{good} {row}: {what}: {words} ({time.monotonic() - began:.0f} s, {len(results)} of {len(rows)})", flush=True)
        finally:
            if tree is None:
                free.put(mine)
    small, last = batches(rows)
    with concurrent.futures.ThreadPoolExecutor(len(every)) as pool:
        for done in [pool.submit(one, batch) for batch in small]:
            done.result()
    if last:
        print("==> the whole is built and installed for what only e2e and programs without sanitizers see", flush=True)
        green_e2e(every[0], last)
        one(last, every[0])
    return results


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    rows = [r for r in table() if not args.words or any(w in "\t".join((r.file, r.old, r.new)) for w in args.words)]
    bad = 0
    for row in rows:
        try:
            row.text(TOP)
        except LookupError as why:
            bad += 1
            print(f"not ok {row}: {why}")
    if args.texts or not rows:
        print(f"{len(rows)} rows, {bad} whose text does not stand there once")
        sys.exit(bool(bad) or not rows)
    kept = os.environ.get("MUTANTS_DIR")
    scratch = pathlib.Path(kept or tempfile.mkdtemp(prefix="mutants-"))
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        every, took = trees(scratch, max(1, args.j), rows)
        results = work(rows, every, took)
    finally:
        if not kept:
            shutil.rmtree(scratch, ignore_errors=True)
    counts = {what: sum(w == what for _, w in results) for what in ("noticed", "explained", "unnoticed", "broken")}
    share = counts["noticed"] / len(results)
    print(f"{len(results)} faults: " + ", ".join(f"{n} {what}" for what, n in counts.items()) + f"; {100 * share:.1f} % noticed")
    failed = counts["unnoticed"] + counts["broken"] + (share < SHARE)
    print(json.dumps({"passed": counts["noticed"] + counts["explained"], "failed": failed}))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
