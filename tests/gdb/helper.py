#!/usr/bin/env python3
"""conf/gdb/countersign.py, in a gdb that stops where an exchange of a play ends. Without gdb it is skipped.

usage: helper.py     in the build directory; srcdir: the source tree
"""
import os
import re
import shutil
import subprocess
import sys

SRC = os.environ.get("srcdir", ".")
PLAY = "tests/play/test_judge_hold"
ASK = ["break exchange_end", "run", "print *x", "print x->request.path", "print x->digest", "countersign-trace x->xid",
       "countersign-trace 5", "kill"]


def main():
    if not shutil.which("gdb"):
        print("gdb is not installed")
        return 77
    with open(PLAY, "rb") as program:
        if b"\0.debug_info\0" not in program.read():
            print("this build has no debug information")
            return 77
    done = subprocess.run(["gdb", "-q", "-batch", "-nx", "-x", f"{SRC}/conf/gdb/countersign.py",
                           *(word for line in ASK for word in ("-ex", line)), "--args", PLAY],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "DEBUGINFOD_URLS": ""})
    said = done.stdout
    if "Breakpoint 1, exchange_end" not in said:
        if re.search("ptrace|Operation not permitted|personality", said + done.stderr):
            print("gdb may not run a program here")
            return 77
        sys.exit(f"gdb did not stop there:\n{said}{done.stderr}")
    for wanted in (r"^\$1 = exchange 7696581394433 at WALK_END, X_RUNS = \{", r'method = "POST"', r'^\$2 = "/w"$',
                   r"^\$3 = [0-9a-f]{64}$", r"^ +\d+  7696581394433  evaluate +next$", r"^ +\d+  7696581394433  release +next$",
                   r"^no step is remembered$"):
        if not re.search(wanted, said, re.MULTILINE):
            sys.exit(f"gdb does not say {wanted!r}:\n{said}{done.stderr}")
    print("an exchange, its texts and its steps are readable in gdb")
    return 0


if __name__ == "__main__":
    sys.exit(main())
