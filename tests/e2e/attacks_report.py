#!/usr/bin/env python3
"""Was every due attack of tests/attacks.tsv stopped on each of its ways in?

usage: attacks_report.py [--all] [--without WAY,WAY] LOG...

The logs are those of one run of all test_*.py of tests/e2e and tests/browser (--without browser,server: of tests/e2e alone); what counts is the line "ok ID WAY", which only the oracle of
attack.py prints. Prints a table (--all: of every row, else of those with something missing), then the count. Exit 1
when a due line is missing or also said to be "not ok", when a line names a way that the list does not have, or when a way is left out unexplained.
"""
import pathlib
import re
import sys

LIST = pathlib.Path(__file__).resolve().parent.parent / "attacks.tsv"
EVERYWHERE = {"connect", "absolute", "unix", "socks", "captured", "later", "reload"}
LINE = re.compile(r"(not )?ok ([A-G]\d+) (\S+)$")


def listed():
    """[(id, priority, state, ways, why, title)]"""
    rows = [line.split("\t") for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    assert rows[0] == ["id", "priority", "state", "ways", "why", "title"], rows[0]
    found = [(i, int(p), state, [w for w in ways.split(",") if w != "-"], why, title) for i, p, state, ways, why, title in rows[1:]]
    assert len({row[0] for row in found}) == len(found), "an id comes twice"
    return found


def main():
    words = sys.argv[1:]
    without = words.pop(words.index("--without") + 1).split(",") if "--without" in words else []
    every, logs = "--all" in words, [a for a in words if not a.startswith("--")]
    said, denied, wrong, due = set(), set(), [], 0
    for log in logs:
        for line in pathlib.Path(log).read_text(errors="replace").splitlines():
            match = LINE.match(line)
            if match:
                (denied if match[1] else said).add(match.groups()[1:])
    said, ok = said - denied, 0
    for i, priority, state, ways, why, title in listed():
        if state != "due":
            continue
        ways = [w for w in ways if w not in without]
        if not ways and not without or (EVERYWHERE - set(ways)) and not why:
            wrong.append(f"{i}: ways are left out, and why is not said")
        missing = [w for w in ways if (i, w) not in said]
        wrong += [f"not ok {i} {w}" for w in missing]
        wrong += [f"{i} {w} was run but is not in {LIST.name}" for j, w in sorted(said) if j == i and w not in ways]
        due, ok = due + len(ways), ok + len(ways) - len(missing)
        if every or missing:
            print(f"{i:4} P{priority} " + " ".join(w if w not in missing else f"[{w}]" for w in ways) + f"  {title}" + (f"  ({why})" if why else ""))
    print("\n".join(wrong))
    print(f"{ok} of {due} attacks and ways in were stopped" + ("; [way]: missing" if ok < due else ""))
    sys.exit(1 if wrong or not logs else 0)


if __name__ == "__main__":
    main()
