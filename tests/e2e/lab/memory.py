#!/usr/bin/env python3
"""Runs a command and looks into each of its processes from outside (ptrace holds it meanwhile): is a secret in its memory,
environment and arguments included? Once as it ends, and whenever it sends itself SIGSTOP, which does not stop it then: for
interpreters, which give their memory back before they end (EARLY has the code that does so). Where processes are in a PID
namespace of their own, the files that only they see are searched too, as what its first process has started ends: its home,
/tmp, /var/tmp and /run.

usage: memory.py --secret-file FILE... --report FILE -- COMMAND...        memory.py --self-test
The report is a list of {"program", "inside", "early", "bytes", "files", "found"}. Its status is the command's; 127:
nothing is proven. Who is not root cannot look into a process that has closed itself to that: it then has 0 bytes.

Everywhere fragments of the secret are looked for, as it is and in the forms of canary.py, and runs of eight escapes; around
each of them canary.py searches. A process that was killed had no end to look at, and is in no report.
"""
import argparse
import array
import binascii
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import canary

PTRACE_CONT, PTRACE_SEIZE, PTRACE_LISTEN = 7, 0x4206, 0x4208
FORK, VFORK, CLONE, EXIT, STOP = 1, 2, 3, 6, 128
OPTIONS = 1 << FORK | 1 << VFORK | 1 << CLONE | 1 << EXIT | 1 << 20  # the last: what is traced ends with its tracer
WALL = 0x40000000
PAGE = os.sysconf("SC_PAGESIZE")
PRESENT, OF_FILE, BLOCK = 3 << 62, 1 << 61, 4096
PIECE, AROUND, FRAGMENT = 8 << 20, 4096, 16
# Each begins with bytes of its own, which is what makes it fast.
ESCAPES = [re.compile(rb"%s(?:%s){7}" % (one, one)) for one in (
    rb"%[0-9A-Fa-f]{2}", rb"\\u00[0-9A-Fa-f]{2}", rb"\\x[0-9A-Fa-f]{2}", rb"\\[0-3][0-7]{2}", rb"&#[xX]?[0-9A-Fa-f]{1,6};")]
ONLY_THEIRS = ("home", "tmp", "var/tmp", "run")
# What a program that is not changed loads by its environment: {name: (file, code, variable, value for a folder)}.
EARLY = {"node": ("early.cjs", "process.on('exit', () => process.kill(process.pid, 'SIGSTOP'));\n",
                  "NODE_OPTIONS", "--require={}/early.cjs"),
         "python": ("sitecustomize.py", "import atexit, os\natexit.register(os.kill, os.getpid(), 19)\n", "PYTHONPATH", "{}")}


def fragments(secrets):
    """What is in bytes that hold a secret, also when a part of it is escaped."""
    whole = [n for n, _ in canary.needles(secrets)]
    whole += [h for s in secrets for h in (binascii.hexlify(s), binascii.hexlify(s).upper())]
    return {piece for n in whole for piece in (n[:FRAGMENT], n[-FRAGMENT:])}


def search(data, secrets, wanted, path):
    """Findings in bytes, at most one a form and view."""
    places = {m.start() // AROUND for form in ESCAPES for m in form.finditer(data)}
    for piece in wanted:
        at = data.find(piece)
        while at >= 0:
            places.add(at // AROUND)
            at = data.find(piece, (at // AROUND + 1) * AROUND)
    found = {}
    for place in sorted(places):
        near = data[max(0, place - 1) * AROUND:(place + 2) * AROUND]
        for one in canary.search_bytes(near, secrets, path):
            found[one.form, one.view] = one
    return list(found.values())


def runs(pid, first, last, writable):
    """(from, to) of the pages of one mapping that are there and are not simply those of a file."""
    start = None
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for at in range(first, last, BLOCK * PAGE):
            pages = min(BLOCK, (last - at) // PAGE)
            table = array.array("Q", os.pread(pagemap.fileno(), 8 * pages, at // PAGE * 8))
            if not any(map(PRESENT.__and__, set(table))):
                table = ()
            for n, entry in enumerate(table):
                here = entry & PRESENT and (writable or not entry & OF_FILE)
                if here and start is None:
                    start = at + n * PAGE
                elif not here and start is not None:
                    yield start, at + n * PAGE
                    start = None
            if not table and start is not None:
                yield start, at
                start = None
    if start is not None:
        yield start, last


def memory(pid):
    """Its pages, in pieces that overlap."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
        areas = [line.split(maxsplit=5) for line in maps]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for span, rights, *_, name in (area if len(area) > 5 else [*area, ""] for area in areas):
            if name.startswith(("[vsyscall", "[vvar")):
                continue
            first, last = (int(n, 16) for n in span.split("-"))
            for start, end in runs(pid, first, last, rights[1] == "w"):
                for at in range(start, end, PIECE):
                    try:
                        yield os.pread(mem.fileno(), min(PIECE + AROUND, end - at), at)
                    except OSError:  # of a device, or a file that has become shorter
                        continue


def numbers(pid, name):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return [int(n) for n in re.search(rf"^{name}:\s*(.*)$", text, re.M)[1].split()]


class Tracer:
    def __init__(self, secrets):
        self.secrets, self.wanted, self.report = secrets, fragments(secrets), []
        self.ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        self.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.depth = len(numbers("self", "NSpid"))

    def ask(self, request, pid, data):
        if self.ptrace(request, pid, None, data) != 0 and ctypes.get_errno() != 3:  # it is gone
            raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of {pid}")

    def look(self, tid, early):
        """A thread of it stands still; at the end its first one, of which nothing is gone yet."""
        size, files, found = 0, False, []
        try:
            if not early and numbers(tid, "Tgid") != [tid]:
                return
            program = pathlib.Path(f"/proc/{tid}/comm").read_text(encoding="utf-8", errors="replace").strip()
            inside = len(numbers(tid, "NSpid")) > self.depth
            try:
                program = os.path.basename(os.readlink(f"/proc/{tid}/exe"))
                for data in memory(tid):
                    size += len(data)
                    found += search(data, self.secrets, self.wanted, "memory")
                files = inside and not early and numbers(numbers(tid, "PPid")[0], "NSpid")[-1] == 1
                if files:
                    there = [f"/proc/{tid}/root/{name}" for name in ONLY_THEIRS]
                    found += canary.search(self.secrets, [path for path in there if os.path.isdir(path)])
            except PermissionError:
                if os.geteuid() == 0 or size > 0:
                    raise
        except (FileNotFoundError, ProcessLookupError):  # killed while it was looked at
            return
        self.report.append({"program": program, "inside": inside, "early": early, "bytes": size, "files": files,
                            "found": [f"{f.path}: {f.form}, {f.view}" for f in found]})

    def run(self, command):
        """The command's status, when it and all that came from it have ended."""
        reader, writer = os.pipe()
        first = os.fork()
        if first == 0:
            try:
                os.read(reader, 1)
                os.execvp(command[0], command)
            finally:
                os._exit(127)
        self.ask(PTRACE_SEIZE, first, OPTIONS)
        os.write(writer, b"g")
        status = 127
        while True:
            try:
                pid, how = os.waitpid(-1, WALL)
            except ChildProcessError:
                return status
            if not os.WIFSTOPPED(how):
                status = os.waitstatus_to_exitcode(how) if pid == first else status
                continue
            number, event = os.WSTOPSIG(how), how >> 16
            if event == EXIT or (event == 0 and number == signal.SIGSTOP):
                self.look(pid, event == 0)
                number = 0
            if event == STOP and number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
                self.ask(PTRACE_LISTEN, pid, None)
            else:
                self.ask(PTRACE_CONT, pid, None if event else number)


PLANT = "import sys; kept = bytes.fromhex(sys.stdin.readline()); bulk = b'x' * (4 << 20) + kept; sys.stdin.read()"


def sees(secret, data):
    """Whether a process that holds these bytes, and never had them in its arguments, is one that holds the secret."""
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        (directory / "secret").write_bytes(secret)
        name, code, variable, value = EARLY["python"]
        (directory / name).write_text(code)
        done = subprocess.run(["/usr/bin/python3", __file__, "--secret-file", directory / "secret", "--report", directory / "report",
                               "--", "sh", "-c", f'{variable}={value.format(directory)} /usr/bin/python3 -c "$0"; exit 7', PLANT],
                              check=False, text=True, input=data.hex() + "\n")
        rows = json.loads((directory / "report").read_text())
        assert done.returncode == 7 and [r["early"] for r in rows] == [True, False, False], (done.returncode, rows)
        assert rows[0]["bytes"] > 4 << 20, rows
        return bool(rows[0]["found"])


def self_test():
    secret = b"cnry-8ZqT4_xwL0kEy7PbNsR2vG5hJm"
    wanted, failed = fragments([secret]), 0
    forms = canary.planted(secret)
    for name in ("gzip", "zlib", "http", "pack", "second in a pack", "hexdump", "twice", "edge"):  # canary.py undoes these in files
        del forms[name]
    around = os.urandom(3 * AROUND)
    for name, data in forms.items():
        there = around[:-5] + data + around  # across what one look takes
        failed += canary.tell(bool(search(there, [secret], wanted, "")), f"found in memory as {name}")
    for name in ("literal", "header"):
        failed += canary.tell(sees(secret, forms[name]), f"found in a process as {name}")
    failed += canary.tell(not sees(secret, secret[:-1]), "nothing found in a process that has none")
    return 1 if failed else 0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--self-test", action="store_true")
    options.add_argument("--secret-file", action="append", default=[], help="its content, without a last newline")
    options.add_argument("--report")
    options.add_argument("command", nargs="*")
    args = options.parse_args()
    if args.self_test:
        return self_test()
    if not args.secret_file or not args.report or not args.command:
        options.error("a --secret-file, a --report and a command are needed")
    tracer = Tracer([pathlib.Path(name).read_bytes().rstrip(b"\n") for name in args.secret_file])
    try:
        status = tracer.run(args.command)
    except OSError as why:
        print(f"memory: {why}", file=sys.stderr)
        return 127
    pathlib.Path(args.report).write_text(json.dumps(tracer.report, indent=1) + "\n", encoding="utf-8")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
