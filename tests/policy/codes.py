#!/usr/bin/env python3
"""The codes of `policy check`: each that the sources tell is in the one table, in the manual and explained; SARIF has the
findings of the text, place for place. Prints what fails, and nothing else."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SRC, CLI = pathlib.Path(os.environ.get("srcdir", ".")), os.path.abspath("./countersign")
failed = 0


def said(good, what):
    global failed
    if not good:
        failed = 1
        print(f"not ok {what}")


def run(*args):
    done = subprocess.run([CLI, "policy", "check", *args], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


sources = [p for folder in ("policy/load", "cli/policy") for p in (SRC / folder).rglob("*.c") if p.name != "codes.c"]
told = {code for p in sources for code in re.findall(r'"(P[01]\d\d)"', p.read_text())}
table = dict(re.findall(r'\{"(P\d\d\d)", "([^"]+)"', (SRC / "policy/load/check/codes.c").read_text()))
manual = set(re.findall(r"^\.It (P\d\d\d)$", (SRC / "policy/countersign-policy.5").read_text(), re.M))
said(len(told) > 25, f"few codes are told: {sorted(told)}")
said(told == set(table), f"told and in the table differ: {sorted(told ^ set(table))}")
said(told == manual, f"told and in the manual differ: {sorted(told ^ manual)}")
said(list(table) == sorted(table), "the table is sorted")
for code, means in table.items():
    rc, out, _ = run("--explain", code)
    said(rc == 0 and out.startswith(f"{code} (") and means in out and len(out.splitlines()) >= 3, f"--explain {code}: {out}")
said(run("--explain", "P555")[0] == 2 and run("--explain", "P001", "x.yaml")[0] == 2, "--explain of nothing")
with tempfile.TemporaryDirectory() as where:
    bad, good, warned, loose = (os.path.join(where, name) for name in ("b ad:1.yaml", "good.yaml", "warned.yaml", "loose.yaml"))
    pathlib.Path(bad).write_text("version: 1\nrulse: []\nname: no\nrules: [{ id: a, match: { hots: \"\u00fc\" }, decide: allow }]\n")
    pathlib.Path(good).write_text("version: 1\nrules:\n  - { id: a, match: { host: a.example, method: GET }, decide: allow }\n")
    pathlib.Path(warned).write_text("version: 1\n")
    shutil.copy(SRC / "tests/policy/loose-ca.pem", where)
    pathlib.Path(loose).write_text("version: 1\nupstreams:\n  - { host: a.example, ca: loose-ca.pem }\n"
                                   "rules:\n  - { id: a, match: { host: a.example }, decide: deny }\n")
    for path, want in ((bad, 3), (good, 0), (warned, 0), (loose, 0), (os.path.join(where, "none.yaml"), 3)):
        rc, out, _ = run("--format", "sarif", path)
        found = json.loads(run("--json", path)[1])["problems"]
        sarif = json.loads(out)
        tool, results = sarif["runs"][0]["tool"]["driver"], sarif["runs"][0]["results"]
        said(rc == want and sarif["version"] == "2.1.0" and tool["name"], f"{path}: exit {rc}")
        said({r["id"] for r in tool["rules"]} == set(table) and all(r["shortDescription"]["text"] and r["help"]["text"] for r in tool["rules"]),
             "SARIF has the rules of the table")
        same = [(p["code"], p["severity"], p["text"], ":".join(p["where"].rsplit(":", 2)[1:])) for p in found]
        place = [r["locations"][0]["physicalLocation"] for r in results]
        have = [(r["ruleId"], r["level"], r["message"]["text"], f'{q["region"]["startLine"]}:{q["region"]["startColumn"]}') for r, q in zip(results, place)]
        said(have == same, f"{path}: SARIF {have}, JSON {same}")
        said(all(q["artifactLocation"]["uri"] == "file://" + path.replace(" ", "%20").replace("b%20ad:1", "b%20ad%3A1") for q in place), f"{path}: {place}")
    lacks = 'loose-ca.pem: the CA "/CN=Example CA" has no key usage that lets it sign certificates; certificates below it are checked without X509_STRICT'
    said(run(loose)[2] == f"{loose}:3:28: warning P121: {lacks}\n", f"a CA that is not strict: {run(loose)}")
    said(run("--format", "json", bad)[1] == run("--json", bad)[1], "--format json is --json")
    said(run("--format", "text", good)[:2] == run(good)[:2], "--format text is the usual")
    said(run("--format", "xml", good)[0] == 2, "no other format")
sys.exit(failed)
