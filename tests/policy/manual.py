#!/usr/bin/env python3
"""countersign-policy(5) by the program: every policy that it shows loads without a warning but of what a fragment lacks, its tests
pass, and every key of the grammar has a place in it; those that are refused stand in their list."""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SRC = pathlib.Path(os.environ.get("srcdir", pathlib.Path(__file__).resolve().parents[2]))
TEXT = (SRC / "policy/countersign-policy.5").read_text()
bad = 0


def said(good, what, words=""):
    global bad
    bad += not good
    print(f"{'ok' if good else 'not ok'} {what}{'' if good else chr(10) + str(words)}")


def run(where, *args):
    done = subprocess.run([os.path.abspath("countersign"), "policy", *map(str, args)], cwd=where, text=True,
                          capture_output=True)
    return done.returncode, done.stdout + done.stderr


def whole(block):
    """What an example leaves to the reader: the first line, and what its rules name."""
    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    block = re.sub(r"^learning: until .*", f"learning: until {soon}", block)
    if block.lstrip().startswith("- "):
        block = "rules:\n" + block
    if "version:" not in block:
        block = "version: 1\n" + block
    for part, key, entry in (("credentials", "use", "{ source: { env: X }, inject: { basic: true }, only: [{ host: HOST }] }"),
                             ("approvers", "by", '{ operators: ["uid 1000"] }')):
        named = set(re.findall(rf"\b{key}: (\w+)", block))
        if named and f"{part}:" not in block:
            host = re.findall(r"host: ([\w.]+)", block)[-1]
            block += f"\n{part}:\n" + "".join(f"  {n}: {entry.replace('HOST', host)}\n" for n in sorted(named))
    return block


examples = [b.replace("\\&", "") for b in re.findall(r"^\.Bd -literal -offset indent\n(.*?)^\.Ed$", TEXT, re.M | re.S)]
policies = [b for b in examples if re.match(r"(version|rules|scopes|credentials|upstreams|approvers|include|learning):| *- id:", b)]
tests = [b for b in examples if b.startswith("policy:")]
said(len(policies) >= 14 and len(tests) == 1, "the manual has its examples", (len(policies), len(tests)))
with tempfile.TemporaryDirectory() as name:
    where = pathlib.Path(name)
    (where / "teams").mkdir()
    for part in ("shared.yaml", "teams/web.yaml"):  # what the example of include: names
        (where / part).write_text("version: 1\n")
    # a certificate of nobody; the example of an upstream names one
    (where / "acme-ca.pem").write_bytes((SRC / "tests/policy/manual-ca.pem").read_bytes())
    for i, block in enumerate(policies):
        (where / "x.yaml").write_text(whole(block))
        floors = ["--floors", "x.yaml", "none.yaml"] if "name: floors" in block else ["x.yaml"]
        (where / "none.yaml").write_text("version: 1\nrules: [{ id: nobody, match: { host: n.example, effect: read }, decide: allow }]\n")
        rc, words = run(where, "check", "--packs", SRC.resolve() / "conf/packs", *floors)
        said(rc == 0, f"example {i + 1} loads", f"{whole(block)}\n{words}")
        warned = set(re.findall(r"warning (P\d+)", words))
        # fragments have no rules, or no use for what they name
        said(warned <= {"P105", "P107", "P112"}, f"example {i + 1} is as an expert would write it", words)
    (where / "x.yaml").write_text(policies[0])
    (where / "x_test.yaml").write_text(tests[0])
    rc, words = run(where, "test", "--packs", SRC.resolve() / "conf/packs", "x_test.yaml")
    said(rc == 0, "the example of tests passes", words)

later = TEXT.split(".Sh NOT AVAILABLE YET")[1].split(".Sh ")[0]
rest = TEXT.replace(later, "")
TABLES = ("tables.c", "tables_rule.c", "tables_source.c")
keys = {key for table in TABLES for key in re.findall(
    r'(?:\.name = |TEXT\(\w+, [\w.\[\]]+, |ASKED\()"(\w+)"', (SRC / "policy/load/tables" / table).read_text())}
missing = sorted(k for k in keys if not re.search(rf"(?<![\w-]){k}(?![\w-])", rest))
said(len(keys) > 60 and not missing, "every key of the grammar is in the manual", missing)
refused = {key for table in TABLES for key in re.findall(
    r'LATER\("(\w+)"\)', (SRC / "policy/load/tables" / table).read_text())}
missing = sorted(k for k in refused if not re.search(rf"(?<![\w-]){k}(?![\w-])", later))
said(len(refused) > 5 and not missing, "every key that is not available yet is listed", missing)
rc, words = run(".", "schema", "policy")
said(rc == 0 and json.loads(words), "the schema is there", words[:200])
sys.exit(bad != 0)
