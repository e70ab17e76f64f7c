#!/usr/bin/python3
"""`countersign policy schema` against the files themselves, by a validator that is not ours: every shipped policy and
pack fits, and what the loader refuses for its shape the schema refuses too. Debian's Python: it has the validator."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as why:
    print(f"skipped: {why} (python3-jsonschema, python3-yaml)")
    sys.exit(77)

SRC = pathlib.Path(os.environ.get("srcdir", "."))
POLICY = {"version": 1, "name": "x", "packs": ["git@1"],
          "scopes": {"bots": {"sandboxes": ["ci-*"], "labels": {"team": ["a", "b"]}}},
          "credentials": {"c": {"source": {"store": "c"}, "inject": {"header": "Authorization", "format": "Bearer {}"},
                                "only": [{"host": "a.example", "port": 8443}]}},
          "rules": [{"id": "r", "scope": "bots", "match": {"host": "a.example", "port": [8443], "effect": ["read", "write"]},
                     "except": [{"method": "DELETE"}], "decide": "hold", "use": "c",
                     "approve": {"within": "10m", "reason": "required"}}]}
BROKEN = {  # what is wrong: a change to POLICY
    "no version": lambda p: p.pop("version"),
    "another version": lambda p: p.update(version=2),
    "version as text": lambda p: p.update(version="1"),
    "unknown key": lambda p: p.update(alow=[]),
    "a rule without decide": lambda p: p["rules"][0].pop("decide"),
    "a rule's unknown key": lambda p: p["rules"][0].update(then="allow"),
    "a decision of its own": lambda p: p["rules"][0].update(decide="maybe"),
    "an effect of its own": lambda p: p["rules"][0]["match"].update(effect="reads"),
    "an empty list": lambda p: p["rules"][0]["match"].update(host=[]),
    "a port past the last": lambda p: p["rules"][0]["match"].update(port=65536),
    "port 0": lambda p: p["credentials"]["c"]["only"][0].update(port=0),
    "a time without a unit": lambda p: p["rules"][0]["approve"].update(within="10"),
    "a time as a number": lambda p: p["rules"][0]["approve"].update(within=600),
    "a list where a mapping is": lambda p: p.update(scopes=[]),
    "a matcher that waits": lambda p: p["rules"][0]["match"].update(graphql={"type": "query"}),
    "a source that waits": lambda p: p["credentials"]["c"].update(source={"vault": {}}),
    "no place": lambda p: p["credentials"]["c"].pop("only"),
}
bad = 0


def said(good, what):
    global bad
    bad += not good
    print(f"{'ok' if good else 'not ok'} {what}")


def schema(kind):
    text = subprocess.run(["./countersign", "policy", "schema", kind], check=True, capture_output=True).stdout
    found = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def loads(policy, where):
    path = pathlib.Path(where, "p.yaml")
    path.write_text(yaml.safe_dump(policy, default_flow_style=False))
    done = subprocess.run(["./countersign", "policy", "check", "--packs", SRC / "conf/packs", path], capture_output=True)
    return done.returncode == 0, done.stderr.decode()


policy, pack = schema("policy"), schema("pack")
schema("floors")
for path in sorted([*SRC.glob("conf/policies/*.yaml"), *SRC.glob("conf/examples/*.yaml")]):
    if not path.name.endswith("_test.yaml"):
        errors = [e.message for e in policy.iter_errors(yaml.safe_load(path.read_text()))]
        said(not errors, f"{path.name} fits {errors[:1] or ''}")
for path in sorted(SRC.glob("conf/packs/*.yaml")):
    errors = [e.message for e in pack.iter_errors(yaml.safe_load(path.read_text()))]
    said(not errors, f"pack {path.name} fits {errors[:1] or ''}")
with tempfile.TemporaryDirectory() as where:
    good, words = loads(POLICY, where)
    said(policy.is_valid(POLICY) and good, f"the whole one fits both {'' if good else words}")
    for what, change in BROKEN.items():
        broken = copy.deepcopy(POLICY)
        change(broken)
        said(not policy.is_valid(broken), f"the schema refuses {what}")
        said(not loads(broken, where)[0], f"the loader refuses {what}")
sys.exit(bad != 0)
