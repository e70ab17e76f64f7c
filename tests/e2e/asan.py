#!/usr/bin/env python3
"""The end-to-end tests on a sanitizer build: a role that reads what it must not, or leaks, dies of it with a report, and
the harness fails the test (watch.py).

usage: asan.py PREFIX [--sample | FILE[:PART]...]     all of them: `make e2e-asan`; ./check runs the sample

PREFIX: where a build of --enable-dev is installed. It has no seccomp: what that keeps out is tests/walls' business. The
last line counts what passed.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
# What points into a large body, a frame or a buffer that is used again, from the first byte to the record; what the dock
# refuses, whose call is gone as soon as it is answered.
SAMPLE = ("test_clients.py:a_5_mb_push", "test_hold.py:a_held_write", "test_attacks_decided.py:needs_over_connect",
          "test_websocket.py:joins_its_ticket_over_connect", "dock/test_hostile.py:said_in_words")


def run(prefix, what):
    """(what, counts, output) of FILE[:PART]."""
    file, _, part = what.partition(":")
    env = {**os.environ, "PATH": f"{prefix}/bin:{os.environ['PATH']}", "COUNTERSIGN_PREFIX": str(prefix)}
    with tempfile.TemporaryFile() as out:
        status = subprocess.run([sys.executable, next(HERE.rglob(file)), *([part] if part else [])], env=env, stdin=subprocess.DEVNULL,
                                stdout=out, stderr=subprocess.STDOUT).returncode
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    try:
        counts = json.loads(text.rstrip().rpartition("\n")[2])
    except ValueError:
        counts = {"passed": 0, "failed": 0, "skipped": 0}
    if status != 0 and not counts["failed"] or not any(counts.values()):
        counts["failed"] += 1
    return what, counts, text


def main():
    if len(sys.argv) < 2 or not os.access(f"{sys.argv[1]}/bin/countersign", os.X_OK):
        sys.exit(__doc__)
    prefix, files = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    if files == ["--sample"]:
        files = SAMPLE
    roles = prefix / "libexec/countersign/countersign-judge"
    if b"__asan_init" not in roles.read_bytes():
        sys.exit(f"asan.py: {roles} has no sanitizers: build it with --enable-dev")
    sums = {"passed": 0, "failed": 0, "skipped": 0}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for what, counts, text in pool.map(lambda f: run(prefix, f), files or sorted(p.name for p in HERE.rglob("test_*.py"))):
            print(f"{'not ok' if counts['failed'] else 'ok'} {what} # {counts}", flush=True)
            if counts["failed"]:
                print("# " + text.rstrip().replace("\n", "\n# "), flush=True)
            sums = {name: n + counts[name] for name, n in sums.items()}
    print(json.dumps(sums))
    sys.exit(1 if sums["failed"] else 0)


main()
