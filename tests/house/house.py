#!/usr/bin/env python3
"""The law of the house, checked: who may include whom, lengths, purity, format.

usage: house.py SRCDIR [BUILDDIR]
  .may_include  in each folder with C: one glob a line for house headers and, in <...>, library headers;
                the C library and the kernel's own headers are open to all (purity is checked by symbols)
  exceptions    tests/house/exceptions.txt: "FILE LINES" or "FILE:FUNCTION LINES"; it only shrinks
  limits        every bound in a role's headers has a row in tests/limits.tsv, with a test beside it
  purity        libpolicy.a of BUILDDIR must not reach for files, sockets, clock, environment or random
"""
import fnmatch
import os
import re
import shutil
import subprocess
import sys

LIMITS = {"function": 60, ".c": 600, ".h": 200}
SKIP = ("build", ".git", "node_modules", "autom4te.cache")
IMPURE = re.compile(
    r"^(open|openat|fopen|read|write|socket|connect|bind|accept|getenv|secure_getenv|time|clock_gettime|"
    r"gettimeofday|random|rand|getrandom|arc4random.*|fork|exec.*|system|popen|EVP_.*|SSL_.*|event_.*|sqlite3_.*|yaml_.*)$")
BOUND = re.compile(r"\b([A-Z][A-Z0-9_]*(?:_MAX|_EACH|_LEAFS|_TICKETS|_SHARE|_A_FRONT|_FRAMES))\s*=|"
                   r"#define\s+([A-Z][A-Z0-9_]*(?:_MAX|_BYTES))\s")
problems = []


def bad(where, text):
    problems.append(f"{where}: {text}")


def files(top):
    for folder, dirs, names in os.walk(top):
        dirs[:] = [d for d in dirs if not d.startswith(SKIP)]
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(folder, name), top)


def exceptions(top):
    allowed = {}
    path = os.path.join(top, "tests/house/exceptions.txt")
    if os.path.exists(path):
        for line in open(path, encoding="utf-8"):
            if line.strip() and not line.startswith("#"):
                name, limit = line.split()
                allowed[name] = int(limit)
    return allowed


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


def check_lengths(top, path, lines, allowed):
    kind = path[-2:]
    limit = allowed.get(path, LIMITS[kind])
    if len(lines) > limit:
        bad(path, f"{len(lines)} lines, at most {limit}")
    if kind == ".c":
        for name, length in functions(lines):
            most = allowed.get(f"{path}:{name}", LIMITS["function"])
            if length > most:
                bad(path, f"{name}() has {length} lines, at most {most}")


def rules(top, folder, cache={}):
    """The folder's own .may_include, or the nearest above it."""
    if folder not in cache:
        path = os.path.join(top, folder, ".may_include")
        if os.path.exists(path):
            text = open(path, encoding="utf-8").read().splitlines()
            cache[folder] = [t.strip() for t in text if t.strip() and not t.startswith("#")]
        else:
            cache[folder] = rules(top, os.path.dirname(folder)) if folder else None
            if cache[folder] is None and not folder:
                cache[folder] = []
    return cache[folder]


def check_includes(top, path, lines):
    folder = os.path.dirname(path)
    law = rules(top, folder)
    if path.startswith("tests/"):
        return
    if law is None:
        bad(path, f"{folder}/.may_include is missing or empty")
        return
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if not found:
            continue
        target = f"<{found[2]}>" if found[1] == "<" else found[2]
        if found[1] == "<" and not LIBRARY.match(target):
            continue
        if not any(fnmatch.fnmatchcase(target, rule) for rule in law):
            bad(f"{path}:{number}", f"may not include {target} (see {folder}/.may_include)")


# Said by the design; no .may_include may loosen it.
NEVER = [
    ("proxy/front/", r"proxy/(keeper|ledger)/|policy/load/|common/crypto/secret\.h"),
    ("proxy/judge/", r"proxy/(keeper|ledger)/|policy/load/|common/crypto/secret\.h"),
    (r"proxy/(parent|lobby|resolver)/|web-approval/|sandbox-shim/|cli/", r"common/crypto/(secret|seal)\.h"),
    ("common/", r"^(policy|proxy|web-approval|broker|cli|sandbox-shim)/"),
    ("policy/", r"^(proxy|web-approval|broker|cli)/|<(event2/|openssl/|sys/socket|netdb|curl)"),
    ("proxy/carrier/plan/", r"secret|scrub|cred|inject|proxy/(keeper|carrier/[^p])"),
    ("proxy/", r"^(web-approval|broker|cli)/"),
]
LIBRARY = re.compile(r"^<(event|openssl/|yaml|yajl/|sqlite3|ares|seccomp|zlib|cmocka|curl|nghttp2|idn2|libpsl|brotli|zstd)")
NET_ONLY = re.compile(r"^<(event2/|event\.h|openssl/ssl\.h)")


def check_never(path, lines):
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if not found:
            continue
        target = f"<{found[2]}" if found[1] == "<" else found[2]
        for prefix, pattern in NEVER:
            if re.match(prefix, path) and re.search(pattern, target):
                bad(f"{path}:{number}", f"the design forbids {target} here")
        if NET_ONLY.match(target) and not path.startswith(("common/net/", "tests/")):
            bad(f"{path}:{number}", f"only common/net names {target}>")


def check_shim(path, lines):
    if path.startswith("sandbox-shim/inside/") and path.endswith((".c", ".h")):
        for number, line in enumerate(lines, 1):
            if re.match(r'\s*#\s*include\s+"(?!sandbox-shim/inside/shim_\w+\.h")', line):
                bad(f"{path}:{number}", "the shim links no house code")


def check_readmes(top):
    for folder, dirs, names in os.walk(top):
        dirs[:] = [d for d in dirs if not d.startswith(SKIP)]
        rel = os.path.relpath(folder, top)
        if rel.startswith("tests/") or not any(n.endswith(".c") for n in names):
            continue
        path = os.path.join(folder, "README.md")
        if not os.path.exists(path):
            bad(rel, "no README.md")
        elif len(open(path, encoding="utf-8").readlines()) > 20:
            bad(os.path.join(rel, "README.md"), "over 20 lines")


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
        if re.fullmatch(r"proxy/(timeshare|(judge|front|lobby|carrier|ledger|keeper|resolver)/[\w/]+)\.h", path):
            found |= {(a or b, path) for a, b in BOUND.findall(open(os.path.join(top, path), encoding="utf-8").read())}
    for name, header in sorted(found ^ {(row[0], row[1]) for row in rows}):
        bad(header, f"{name} has no row in tests/limits.tsv, or the row no {name}")
    for name, header, whose, past, test in rows:
        file, _, function = test.partition(":")
        there = os.path.join(top, file)
        if whose not in ("sandbox", "source", "message", "process", "config", "all") or not past:
            bad("tests/limits.tsv", f"{name}: whose is it, and what is past it?")
        elif whose in ("sandbox", "source") and not function:
            bad("tests/limits.tsv", f"{name}: no test finds a neighbour served")
        elif function and not (os.path.exists(there) and f" {function}(void **state)" in open(there, encoding="utf-8").read()):
            bad("tests/limits.tsv", f"{name}: there is no {test}")


def main():
    top = sys.argv[1]
    allowed = exceptions(top)
    paths = list(files(top))
    for path in paths:
        lines = open(os.path.join(top, path), encoding="utf-8").read().splitlines()
        check_lengths(top, path, lines, allowed)
        check_includes(top, path, lines)
        check_never(path, lines)
        check_shim(path, lines)
    check_readmes(top)
    check_format(top, paths)
    check_limits(top, paths)
    if len(sys.argv) > 2:
        check_purity(sys.argv[2])
    for line in problems:
        print(line)
    print(f"house: {len(paths)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
