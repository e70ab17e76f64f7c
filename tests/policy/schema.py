#!/usr/bin/python3
"""`countersign policy schema` against the files themselves, by a validator that is not ours: every shipped policy and
pack fits, and what the loader refuses for its shape the schema refuses too. Debian's Python: it has the validator."""
import copy
import json
import os
import pathlib
import re
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
    "a matcher that waits": lambda p: p["rules"][0]["match"].update(k8s={"verb": "get"}),
    "GraphQL without a type of that name": lambda p: p["rules"][0]["match"].update(graphql={"types": "query"}),
    "a source without what it is asked for": lambda p: p["credentials"]["c"].update(source={"vault": {}}),
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
TESTS = {"policy": ["p.yaml"], "floors": "f.yaml", "cases": [
    {"name": "a request", "as": {"sandbox": "ci-1", "labels": {"team": "web"}}, "at": "2026-11-23T09:00:00Z",
     "request": {"method": "POST", "url": "https://a.example/", "headers": {"X": ["1", "2"]}, "form": {"a": ["1", "2"]}},
     "used": [{"rule": "r", "requests": 3}, {"rule": "r", "field": "amount", "sum": 7}],
     "expect": {"decide": "deny", "because": "no-rule", "rule": "none", "credential": "none", "op": "http.post",
                "effect": "write", "resource": "x", "say": "No."}},
    {"name": "a push", "git_push": {"url": "https://github.com/a/b", "refs": [{"name": "refs/heads/x", "old": "0", "new": "b2"}]},
     "used": {"rule": "r", "pointer": "/n", "sum": 7}, "expect": {"decide": "allow"}},
    {"name": "a body", "request": {"method": "POST", "url": "https://a.example/", "body": "x"}, "expect": {"decide": "hold"}},
    {"name": "JSON", "request": {"method": "POST", "url": "https://a.example/", "json": "{}"}, "expect": {"decide": "hold"}}]}
FLOORS = {"version": 1, "rules": [{"id": "f", "match": {"host": "f.example"}, "decide": "deny"}]}
BROKEN_TESTS = {
    "no policy": lambda t: t.pop("policy"),
    "no cases": lambda t: t.pop("cases"),
    "an unknown key": lambda t: t.update(case=[]),
    "two values of a label": lambda t: t["cases"][0]["as"]["labels"].update(team=["web", "core"]),
    "a label of none": lambda t: t["cases"][0]["as"]["labels"].update(team=[]),
    "a code that no decision has": lambda t: t["cases"][0]["expect"].update(because="norule"),
    "an effect that is none": lambda t: t["cases"][0]["expect"].update(effect="reads"),
    "a decision of its own": lambda t: t["cases"][0]["expect"].update(decide="denied"),
    "no expectation": lambda t: t["cases"][0].pop("expect"),
    "a time without a zone": lambda t: t["cases"][0].update(at="2026-11-23T09:00:00"),
    "a push of a word": lambda t: t["cases"][1]["git_push"].update(refs="refs/heads/x"),
}
BEYOND_SCHEMA = {  # and what only the loader sees
    "a request and a push": lambda t: t["cases"][1].update(request=t["cases"][0]["request"]),
    "neither a request nor a push": lambda t: t["cases"][0].pop("request"),
    "two bodies": lambda t: t["cases"][0]["request"].update(json="{}"),
    "a sum of requests": lambda t: t["cases"][0]["used"][0].update(sum=3),
}
bad = 0


class NoTimes(yaml.SafeLoader):
    """As the gateway reads: 2026-11-23T09:00:00Z is a text."""
    yaml_implicit_resolvers = {first: [r for r in rs if r[0] != "tag:yaml.org,2002:timestamp"]
                               for first, rs in yaml.SafeLoader.yaml_implicit_resolvers.items()}


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


def runs(tests, where):
    """False and where it is wrong: refused before a case is run."""
    path = pathlib.Path(where, "t_test.yaml")
    path.write_text(yaml.safe_dump(tests, default_flow_style=False))
    done = subprocess.run(["./countersign", "policy", "test", "--packs", SRC / "conf/packs", path], capture_output=True, text=True)
    at = re.search(r"t_test.yaml:\d+:\d+: error (P\d+): (.*)", done.stderr)
    return not at, (done.returncode, at and at.groups(), done.stderr)


policy, pack, tests = schema("policy"), schema("pack"), schema("test")
schema("floors")
for path in sorted([*SRC.glob("conf/policies/*.yaml"), *SRC.glob("conf/cookbook/**/*.yaml")]):
    if not path.name.endswith("_test.yaml"):
        errors = [e.message for e in policy.iter_errors(yaml.safe_load(path.read_text()))]
        said(not errors, f"{path.name} fits {errors[:1] or ''}")
    else:
        errors = [e.message for e in tests.iter_errors(yaml.load(path.read_text(), NoTimes))]
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
    for name, text in (("p.yaml", POLICY), ("f.yaml", FLOORS)):
        pathlib.Path(where, name).write_text(yaml.safe_dump(text, default_flow_style=False))
    good, words = runs(TESTS, where)
    said(tests.is_valid(TESTS) and good and words[0] == 1, f"the tests fit both, and fail when they are run: {words}")
    for what, change in {**BROKEN_TESTS, **BEYOND_SCHEMA}.items():
        broken = copy.deepcopy(TESTS)
        change(broken)
        said(tests.is_valid(broken) == (what in BEYOND_SCHEMA), f"the schema of tests and {what}")
        good, words = runs(broken, where)
        said(not good and words[0] == 3, f"the loader of tests refuses {what} {words if good else ''}")
# A code that a decision may have is one that a test may expect, and so it is in the manual.
codes = set(tests.schema["$defs"]["expect"]["properties"]["because"]["enum"])
room = "".join(p.read_text() for p in [SRC / "policy/decide/decide.c", SRC / "policy/decide/limit.c", *SRC.glob("policy/classify/*.c")])
used = set(re.findall(r'(?:outcome_refusal\(|code = |bad = |return )"([a-z-]+)"', room))
said(len(used) > 15 and not used - codes, f"every code can be expected {sorted(used - codes)}")
text = (SRC / "policy/countersign-policy.5").read_text()
said(not [c for c in codes if not re.search(rf"(?<![\w-]){c}(?![\w-])", text)], "every code is in the manual")
sys.exit(bad != 0)
