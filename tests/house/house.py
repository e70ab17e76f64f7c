#!/usr/bin/env python3
"""The law of the house, checked: rooms (rooms.py), lengths, limits, purity, format. test_house.py plants a breach of each.

usage: house.py SRCDIR [BUILDDIR]
  .may_include  in each folder with C: one glob a line for house headers and, in <...>, library headers;
                the C library and the kernel's own headers are open to all (purity is checked by symbols)
  arrows        cli, web-approval, proxy -> policy -> common, and no circle of rooms; a room is a folder with a .may_include
  folders       at most 25 files in one; the C in it has a README of at most 20 lines
  names         a file that a comment, a README or another text for people names is there
  version       CHANGES begins with the version that configure.ac has
  limits        every bound in a role's headers has a row in tests/limits.tsv, with a test beside it
  purity        libpolicy.a of BUILDDIR must not reach for files, sockets, clock, environment or random
"""
import os
import re
import shutil
import subprocess
import sys

import rooms

LIMITS = {"function": 60, ".c": 600, ".h": 200}
SKIP = ("build", ".git", "node_modules", "autom4te.cache")
IMPURE = re.compile(
    r"^(open|openat|fopen|read|write|socket|connect|bind|accept|getenv|secure_getenv|time|clock_gettime|"
    r"gettimeofday|random|rand|getrandom|arc4random.*|fork|exec.*|system|popen|EVP_.*|SSL_.*|event_.*|sqlite3_.*|yaml_.*)$")
BOUND = re.compile(r"\b([A-Z][A-Z0-9_]*(?:_MAX|_EACH|_LEAFS|_TICKETS|_SHARE|_A_FRONT|_FRAMES|_CLIENTS))\s*=|"
                   r"#define\s+([A-Z][A-Z0-9_]*(?:_MAX|_BYTES))\s")
problems = []


def bad(where, text):
    problems.append(f"{where}: {text}")


def tree(top):
    """Every file of it: what git knows or would take, or in a tarball all that stands there."""
    run = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=top, capture_output=True, text=True)
    if run.returncode == 0 and os.path.exists(os.path.join(top, ".git")):
        return sorted(p for p in set(run.stdout.split("\0")) if p and os.path.exists(os.path.join(top, p)))
    found = []
    for folder, dirs, names in os.walk(top):
        dirs[:] = [d for d in dirs if not d.startswith(SKIP)]
        found += [os.path.relpath(os.path.join(folder, name), top) for name in names]
    return sorted(found)


def functions(lines):
    """(name, length) of each function: the house style puts its closing brace in column 0."""
    start = name = None
    for number, line in enumerate(lines):
        if line.startswith("{") and start is None:
            start = number
            head = ""
            back = number - 1
            while back >= 0 and lines[back].strip() and not lines[back].startswith(("}", "#", "/")):
                head = lines[back] + " " + head
                back -= 1
            found = re.findall(r"(\w+)\s*\(", head)
            name = found[0] if found else None
        elif line.startswith("}") and start is not None:
            if name:
                yield name, number - start - 1
            start = None


def check_lengths(path, lines):
    kind = path[-2:]
    limit = LIMITS[kind]
    if len(lines) > limit:
        bad(path, f"{len(lines)} lines, at most {limit}")
    if kind == ".c":
        for name, length in functions(lines):
            if length > LIMITS["function"]:
                bad(path, f"{name}() has {length} lines, at most {LIMITS['function']}")


def check_readmes(top, paths):
    for folder in sorted({os.path.dirname(p) for p in paths if p.endswith(".c") and not p.startswith("tests/")}):
        path = os.path.join(folder, "README.md")
        if not os.path.exists(os.path.join(top, path)):
            bad(folder, "no README.md")
        elif len(open(os.path.join(top, path), encoding="utf-8").readlines()) > 20:
            bad(path, "over 20 lines")


def check_format(top, paths):
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if tool is None:
        bad("clang-format", "not installed (Debian: clang-format-14)")
        return
    run = subprocess.run([tool, "--dry-run", "--Werror", *paths], cwd=top, capture_output=True, text=True)
    for line in run.stderr.splitlines():
        if "error:" in line:
            bad(line.split(": error")[0], "not formatted (clang-format)")


def check_purity(build):
    library = os.path.join(build, "libpolicy.a")
    if not os.path.exists(library):
        bad(library, "not built")
        return
    run = subprocess.run(["nm", "-u", library], capture_output=True, text=True, check=True)
    if "__asan_init" in run.stdout:
        return  # only the plain build tells
    for line in run.stdout.splitlines():
        symbol = line.split()[-1].split("@")[0] if line.split() else ""
        if IMPURE.match(symbol):
            bad("libpolicy.a", f"reaches for {symbol}()")


def check_limits(top, paths):
    """tests/limits.tsv: each bound has a row, and one that a sandbox can reach names a test that is there."""
    rows = [line.split("\t") for line in open(os.path.join(top, "tests/limits.tsv"), encoding="utf-8").read().splitlines()
            if not line.startswith("#")][1:]
    found = set()
    for path in paths:
        if re.fullmatch(r"(proxy/(timeshare|(judge|front|lobby|carrier|ledger|keeper|resolver|fetcher|dock|reach)/[\w/]+)|sandbox-shim/(warden/[\w/]+|images/\w+|checkpoint/[\w/]+)|web-approval/(pictures|viewer|broker)/\w+|broker/(turn|(store|serve|work|mcp|otlp)/[\w/]+|loop/\w+|models/[\w/]+))\.h", path):
            found |= {(a or b, path) for a, b in BOUND.findall(open(os.path.join(top, path), encoding="utf-8").read())}
    for name, header in sorted(found ^ {(row[0], row[1]) for row in rows}):
        bad(header, f"{name} has no row in tests/limits.tsv, or the row no {name}")
    for name, header, whose, past, test in rows:
        file, _, function = test.partition(":")
        there = os.path.join(top, file)
        if whose not in ("sandbox", "source", "tenant", "message", "process", "config", "all") or not past:
            bad("tests/limits.tsv", f"{name}: whose is it, and what is past it?")
        elif whose in ("sandbox", "source", "tenant") and not function:
            bad("tests/limits.tsv", f"{name}: no test finds a neighbour served")
        elif function and not (os.path.exists(there) and f" {function}(void **state)" in open(there, encoding="utf-8").read()):
            bad("tests/limits.tsv", f"{name}: there is no {test}")


def check_messages(top):
    """A message's number is its own."""
    seen = {}
    for path in ("proxy/msgs.h", "proxy/msgs_box.h"):
        there = os.path.join(top, path)
        for name, number in re.findall(r"^\s*(M_\w+) = (\d+),", open(there, encoding="utf-8").read(), re.M) if os.path.exists(there) else ():
            if seen.setdefault(number, name) != name:
                bad(path, f"{name} has the number of {seen[number]}")


def check_version(top):
    """What users are told of this version comes first in CHANGES."""
    at = [os.path.join(top, name) for name in ("configure.ac", "CHANGES")]
    if not os.path.exists(at[0]):
        return
    version = re.search(r"AC_INIT\(\[\w+\], \[([\d.]+)\]", open(at[0], encoding="utf-8").read())[1]
    told = re.search(r"^(\d[\d.]*)", open(at[1], encoding="utf-8").read() if os.path.exists(at[1]) else "", re.M)
    if not told or told[1] != version:
        bad("CHANGES", f"does not begin with version {version} of configure.ac")


def law(top):
    """What is wrong by the text alone."""
    problems.clear()
    everything = tree(top)
    paths = [p for p in everything if p.endswith((".c", ".h"))]
    for path in paths:
        lines = open(os.path.join(top, path), encoding="utf-8").read().splitlines()
        check_lengths(path, lines)
        for found in (*rooms.check_includes(top, path, lines), *rooms.check_never(path, lines)):
            bad(*found)
    for found in (*rooms.check_circles(top, paths), *rooms.check_folders(everything),
                  *rooms.check_names(top, everything)):
        bad(*found)
    check_readmes(top, paths)
    check_limits(top, paths)
    check_messages(top)
    check_version(top)
    return problems


def main():
    top = sys.argv[1]
    law(top)
    check_format(top, [p for p in tree(top) if p.endswith((".c", ".h"))])
    if len(sys.argv) > 2:
        check_purity(sys.argv[2])
    for line in problems:
        print(line)
    print(f"house: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
