#!/usr/bin/env python3
"""constructs.txt lists what a policy may say and what it may not; this holds `policy check --json` against it, and it
against the printed schema and the table of codes, so that a new key or code needs its lines there. Prints what fails.

    == NAME: OUTCOME        accepted, with the codes of its warnings; or each refusal's code and line:col
    the snippet             "version: 1" is line 1 of the file, unless NAME begins with "raw"; "floors" in NAME: a floors file

Beside the file lie more.yaml, ca.pem, crl.pem and loose.pem. `--write` prints the list with what check says now, to be read before
it is believed. Debian's Python: it has python3-yaml."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError as why:
    print(f"skipped: {why} (python3-yaml)")
    sys.exit(77)

SRC, CLI = pathlib.Path(os.environ.get("srcdir", ".")), os.path.abspath("./countersign")
NOT_BY_TEXT = {"P000", "P003", "P099"}  # files, memory and faults of ours
OF_PACKS = {"P016"}
BESIDE = {"more.yaml": "version: 1\nrules: [{ id: more, match: { host: m.example }, decide: deny }]\n",
          "ca.pem": "-----BEGIN CERTIFICATE-----\n", "crl.pem": "-----BEGIN X509 CRL-----\n",
          "loose.pem": (SRC / "tests/policy/loose-ca.pem").read_text()}  # a CA without a key usage
failed = 0


def said(good, what):
    global failed
    if not good:
        failed = 1
        print(f"not ok {what}")


def rows():
    for part in re.split(r"^== ", (SRC / "tests/policy/constructs.txt").read_text(), flags=re.M)[1:]:
        head, _, text = part.partition("\n")
        name, _, outcome = head.rpartition(": ")
        yield name, outcome.split(), text if name.startswith("raw") else "version: 1\n" + text


def found(where, name, text):
    """What check says: its codes and, of refusals, their places."""
    path, floors = os.path.join(where, "p.yaml"), os.path.join(where, "f.yaml")
    pathlib.Path(floors if "floors" in name else path).write_text(text)
    if "floors" in name:
        pathlib.Path(path).write_text("version: 1\nrules: [{ id: of-p, match: { host: p.example, method: GET }, decide: allow }]\n")
    args = [CLI, "policy", "check", "--json", "--packs", SRC / "conf/packs", *(["--floors", floors] if "floors" in name else []), path]
    done = json.loads(subprocess.run(args, capture_output=True, text=True).stdout)
    errors = [f'{p["code"]} {":".join(p["where"].rsplit(":", 2)[1:])}' for p in done["problems"] if p["severity"] == "error"]
    warnings = sorted({p["code"] for p in done["problems"] if p["severity"] == "warning"})
    return " ".join(errors) if errors else " ".join(["accepted", *warnings]), done["problems"]


class Keys:
    """The keys of a schema, by the name of their table; which of them a document has."""

    def __init__(self, kind):
        self.root = json.loads(subprocess.run([CLI, "policy", "schema", kind], check=True, capture_output=True).stdout)
        self.all, self.later = set(), set()
        for table, body in [(kind, self.root), *self.root["$defs"].items()]:
            for key, value in body.get("properties", {}).items():
                (self.later if "not" in value else self.all).add((self.table(table), key))
        self.kind = kind

    @staticmethod
    def table(name):
        return "match" if name == "an-entry-of-except" else name

    def of(self, node, schema=None, table=None):
        schema, table = schema or self.root, table or self.kind
        if "$ref" in schema:
            table = schema["$ref"].rpartition("/")[2]
            yield from self.of(node, self.root["$defs"][table], table)
            return
        for one in schema.get("anyOf", []) + schema.get("oneOf", []):
            yield from self.of(node, one, table)
        for item in node if isinstance(node, list) else ():
            if "items" in schema:
                yield from self.of(item, schema["items"], table)
        for key, value in node.items() if isinstance(node, dict) else ():
            if key in schema.get("properties", {}):
                yield self.table(table), key
                yield from self.of(value, schema["properties"][key], table)
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from self.of(value, schema["additionalProperties"], table)


def main():
    kinds = {kind: Keys(kind) for kind in ("policy", "floors")}
    good, later, codes, names = set(), set(), set(), set()
    with tempfile.TemporaryDirectory() as where:
        for name, text in BESIDE.items():
            pathlib.Path(where, name).write_text(text)
        for name, outcome, text in rows():
            said(name not in names, f"{name}: twice")
            names.add(name)
            have, problems = found(where, name, text)
            if "--write" in sys.argv:
                print(f"== {name}: {have}\n{text if name.startswith('raw') else text[11:]}", end="")
                print("\n".join(f"#{p}" for p in problems), file=sys.stderr)
                continue
            if outcome[0] != "accepted":  # in the order of the lines
                pairs = sorted(zip(outcome[::2], outcome[1::2]), key=lambda one: [int(n) for n in one[1].split(":")])
                outcome = [word for pair in pairs for word in pair]
            said(have == " ".join(outcome), f"{name}: {have}, not {' '.join(outcome)}: {[p['text'] for p in problems]}")
            codes |= set(re.findall(r"P\d\d\d", " ".join(outcome)))
            try:
                keys = set(kinds["floors" if "floors" in name else "policy"].of(yaml.safe_load(text)))
            except (yaml.YAMLError, ValueError, TypeError, AttributeError):
                continue
            (good if outcome[0] == "accepted" else later if "P007" in outcome else set()).update(keys)
    if "--write" in sys.argv:
        return
    policy = kinds["policy"]
    said(len(names) > 150, f"only {len(names)} constructs")
    said(not policy.all - good, f"keys that no accepted construct has: {sorted('.'.join(k) for k in policy.all - good)}")
    said(not policy.later - later, f"keys that are not available yet and no refused construct has: {sorted('.'.join(k) for k in policy.later - later)}")
    table = set(re.findall(r'\{"(P\d\d\d)", ', (SRC / "policy/load/check/codes.c").read_text()))
    said(not table - codes - NOT_BY_TEXT - OF_PACKS, f"codes that no construct has: {sorted(table - codes - NOT_BY_TEXT - OF_PACKS)}")


main()
sys.exit(failed)
