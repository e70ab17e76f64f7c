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
POLICY = {"version": 1, "name": "x", "learning": "until 2020-01-01T00:00:00Z", "packs": ["git@1"],
          "scopes": {"bots": {"sandboxes": ["ci-*"], "labels": {"team": ["a", "b"]}, "regions": ["eu"]}},
          "upstreams": [{"host": "a.example", "port": 8443, "region": "eu"}],
          "credentials": {"c": {"source": {"store": "c"}, "inject": {"header": "Authorization", "format": "Bearer {}"},
                                "only": [{"host": "a.example", "port": 8443}]}},
          "rules": [{"id": "r", "scope": "bots", "match": {"host": "a.example", "query_names": [], "port": [8443], "effect": ["read", "write"]},
                     "except": [{"method": "DELETE"}], "decide": "hold", "use": "c",
                     "approve": {"within": "10m", "reason": "required"}, "limits": {"per": "session", "requests": ["5/1h", "20/1d"],
                                "sum": {"field": "amount", "max": 500, "every": "1d"}},
                     "when": [{"days": ["mon-fri"], "hours": "08:00-18:00", "zone": "UTC"}, {"zone": "UTC"}]}]}
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
    "hours without a zone": lambda p: p["rules"][0].update(when={"hours": "08:00-18:00"}),
    "no hours at all": lambda p: p["rules"][0].update(when=[]),
    "no region": lambda p: p["scopes"]["bots"].update(regions=[]),
    "two regions": lambda p: p["upstreams"][0].update(region=["eu", "us"]),
    "a rate without a time": lambda p: p["rules"][0]["limits"].update(requests="20"),
    "no rate": lambda p: p["rules"][0]["limits"].update(requests=[]),
    "no sum": lambda p: p["rules"][0]["limits"].update(sum=[]),
    "a sum without end": lambda p: p["rules"][0]["limits"]["sum"].pop("max"),
    "a sum of a sum": lambda p: p["rules"][0]["limits"]["sum"].update(sum={}),
    "a limit per host": lambda p: p["rules"][0]["limits"].update(per="host"),
    "learning for ever": lambda p: p.update(learning=True),
    "learning without an end": lambda p: p.update(learning="until tomorrow"),
    "names that are none": lambda p: p["rules"][0]["match"].update(query_names={"a": "b"}),
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
for path in sorted([*SRC.glob("conf/policies/*.yaml"), *SRC.glob("conf/cookbook/**/*.yaml")]):
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
