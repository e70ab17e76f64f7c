#!/usr/bin/env python3
"""The tutorial by what it says: its blocks build the files as a reader would, its commands run, and what they print
is what the text shows. `tutorial.py --write` puts the present answers into the text, to be read and kept.

Fences: `yaml add=FILE` appends; `to=SECTION` puts it at the end of that part of the file, a new one goes to the end;
`after=RULE/KEY` below that key of a rule. `console` lines with `$` are run in one shell, the others are its answer.
What says `gateway` or `sandbox` is run by tests/e2e/policy/test_tutorial.py against a running one."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SRC = pathlib.Path(os.environ.get("srcdir", pathlib.Path(__file__).resolve().parents[2]))
TEXT = SRC / "conf/cookbook/TUTORIAL.md"
FENCE = re.compile(r"^```(\w+)(.*)\n((?:(?!```).*\n)*)```\n", re.M)


def blocks(text):
    """(kind, words, body, span of the body) of each fenced block."""
    for found in FENCE.finditer(text):
        words = dict(w.split("=", 1) if "=" in w else (w, "") for w in found[2].split())
        yield found[1], words, found[3], found.span(3)


def added(text, words, body):
    """The file with the lines where the text says they go."""
    lines = text.splitlines(keepends=True)
    at = len(lines)
    if "to" in words and f"{words['to']}:\n" in lines:
        at = lines.index(f"{words['to']}:\n") + 1
        while at < len(lines) and (lines[at] == "\n" or lines[at].startswith(" ")):
            at += 1
        while lines[at - 1] == "\n":
            at -= 1
    if "after" in words:
        rule, key = words["after"].split("/")
        at = lines.index(f"  - id: {rule}\n") + 1
        while not lines[at].startswith(f"    {key}:"):
            at += 1
        at += 1
    elif "to" not in words and text and body.startswith(tuple("abcdefghijklmnopqrstuvwxyz")):
        body = "\n" + body  # a new part of the file, with an empty line before it
    return "".join(lines[:at]) + body + "".join(lines[at:])


def commands(body):
    """[(command, answer)]"""
    parts = re.split(r"^\$ ", body, flags=re.M)
    assert parts[0] == "", f"a console block begins with a command: {body[:60]!r}"
    return [tuple(p.split("\n", 1)) for p in parts[1:]]


def answers(body, where, path, env=()):
    """The block with what its commands print now."""
    script = "".join(f"{command}\nstatus=$?; printf '\\036'; (exit $status)\n" for command, _ in commands(body))
    done = subprocess.run(["bash", "-c", "umask 022; exec 2>&1; " + script], cwd=where, text=True, capture_output=True,
                          env={"PATH": path, "HOME": str(where), "LC_ALL": "C.UTF-8", **dict(env)})
    said = done.stdout.split("\036")[:-1]
    assert len(said) == len(commands(body)), done.stdout
    said = [re.sub(r" --packs \S+", "", out) for out in said]
    return "".join(f"$ {command}\n{out}{'' if out.endswith(chr(10)) or not out else chr(10)}"
                   for (command, _), out in zip(commands(body), said))


def alike(body):
    """What of an answer is compared: all but digests, times, and how much work an analysis took."""
    for pattern, word in ((r"\b[0-9a-f]{6,64}\b", "DIGEST"), (r"\d{4}-\d\d-\d\d[T ][0-9:.]+Z?", "TIME"),
                          (r"\d+ (classes of|requests judged)", r"N \1")):
        body = re.sub(pattern, word, body)
    return body


def wrapper(where):
    """A `countersign` of this build that knows its packs, in a folder for PATH."""
    bin_dir = pathlib.Path(where, "bin")
    bin_dir.mkdir()
    me = bin_dir / "countersign"
    me.write_text(f"#!/bin/sh\nverb=$1 what=$2\nshift 2\n"
                  f"exec '{pathlib.Path('countersign').resolve()}' $verb $what --packs '{(SRC / 'conf/packs').resolve()}' \"$@\"\n")
    me.chmod(0o755)
    return f"{bin_dir}:{os.environ['PATH']}"


def main(write):
    text, bad, out, last = TEXT.read_text(), 0, "", 0
    with tempfile.TemporaryDirectory() as where:
        path = wrapper(where)
        desk = pathlib.Path(where, "desk")
        desk.mkdir()
        for kind, words, body, (start, end) in blocks(text):
            if "add" in words and "gateway" not in words:
                file = desk / words["add"]
                file.write_text(added(file.read_text() if file.exists() else "", words, body))
            now = answers(body, desk, path) if kind == "console" and not words else body
            line = text.count("\n", 0, start) + 1
            if alike(now) == alike(body):
                now = body
            else:
                bad += 1
                print(f"not ok TUTORIAL.md:{line}: the program says\n{now}--- the text says\n{body}")
            if kind == "console" and not words and now == body:
                print(f"ok TUTORIAL.md:{line}")
            out += text[last:start] + now
            last = end
        if write:
            TEXT.write_text(out + text[last:])
    return bad != 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv))
