#!/usr/bin/env python3
"""Our JSON Schema beside ajv (npm) and the JSON Schema Test Suite (Debian has that of draft-07): what is taken, all must judge
alike, and of an instance that does not fit, what we tell must be among what ajv finds. Where ajv stands alone against us (what `contains` found in
one list still counts in the next; what a branch that does not fit has looked at), the suite decides, or Debian's jsonschema.

Schemas and instances are made from a seed: half of the instances are made to fit, and some of those are then changed. A
schema that we refuse is only counted; of the suite, so many groups must be taken.

usage: schema.py SCHEMA_PROGRAM [--seed N] [--pairs N]
Needs node, npm, json-schema-test-suite and python3-jsonschema (conf/need test).
"""
import json
import os
import pathlib
import random
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e" / "lab")]
try:
    import jsonschema
except ImportError:
    sys.exit("differential: python3-jsonschema is missing: run conf/need test, and call /usr/bin/python3")
from lab.servers import npm_modules

SUITE = pathlib.Path("/usr/share/json-schema-test-suite")
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
NAMES = ["a", "b", "c", "x-1", "", "a/b~", "é"]
TEXTS = ["", "a", "ab", "abc", "a-b", "42", "é", "🙂", "x y"]
NUMBERS = [0, 1, 2, 3, -1, 1.0, 1.5, 2.5, 0.1, 0.3, 100, 12345678901234, -0.5]
PATTERNS = ["^a", "b$", "^[a-c]*$", "^\\d+$", "[^a-z]", "^(a|ab)(c|bcd)?$", "\\w-\\w", "^.{2,3}$", "^x-", "^$", "\\bb", "^.$"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
DEFS = 3
# The same kind of fault under the name that ajv has for it.
ALSO = {"minContains": "contains", "maxContains": "contains", "items": "additionalItems"}


def value(rng, depth):
    kind = rng.randrange(7 if depth > 0 else 4)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind in (1, 2):
        return rng.choice(NUMBERS)
    if kind == 3:
        return rng.choice(TEXTS)
    if kind == 4:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {name: value(rng, depth - 1) for name in rng.sample(NAMES, rng.randrange(4))}


def one_keyword(rng, depth):
    """A keyword and its value."""
    sub = lambda: schema(rng, depth - 1)
    subs = lambda: [sub() for _ in range(rng.randint(1, 3))]
    few = lambda: rng.randrange(4)
    names = lambda: rng.sample(NAMES, rng.randint(1, 2))
    plain = [("type", lambda: rng.choice(TYPES)), ("type", lambda: rng.sample(TYPES, 2)), ("const", lambda: value(rng, 1)),
             ("enum", lambda: [value(rng, 1) for _ in range(3)]), ("minimum", lambda: rng.choice(NUMBERS)),
             ("maximum", lambda: rng.choice(NUMBERS)), ("exclusiveMinimum", lambda: rng.choice(NUMBERS)),
             ("exclusiveMaximum", lambda: rng.choice(NUMBERS)), ("multipleOf", lambda: rng.choice([1, 2, 0.5, 0.1, 1.5, 3])),
             ("minLength", few), ("maxLength", few), ("pattern", lambda: rng.choice(PATTERNS)), ("minItems", few),
             ("maxItems", few), ("uniqueItems", lambda: rng.random() < 0.8), ("minProperties", few), ("maxProperties", few),
             ("required", names), ("dependentRequired", lambda: {n: names() for n in names()}),
             ("minContains", lambda: rng.randrange(3)), ("maxContains", few),
             ("$ref", lambda: rng.choice(["#", *(f"#/$defs/d{i}" for i in range(DEFS)), *(f"#here{i}" for i in range(DEFS))]))]
    deep = [("properties", lambda: {n: sub() for n in names()}), ("patternProperties", lambda: {rng.choice(PATTERNS): sub()}),
            ("additionalProperties", sub), ("propertyNames", sub), ("items", sub), ("prefixItems", subs), ("contains", sub),
            ("allOf", subs), ("anyOf", subs), ("oneOf", subs), ("not", sub), ("if", sub), ("then", sub), ("else", sub),
            ("dependentSchemas", lambda: {n: sub() for n in names()}), ("unevaluatedProperties", sub), ("unevaluatedItems", sub)]
    name, make = rng.choice(plain + 2 * deep if depth > 0 else plain)
    return name, make()


def schema(rng, depth):
    if rng.random() < 0.12:
        return rng.random() < 0.6
    return closed(dict(one_keyword(rng, depth) for _ in range(rng.choice([1, 1, 2, 3]))))


def closed(made):
    """Without what ajv does not look at: an `if` without the branch, which counts for unevaluated*."""
    return {"then": {"minLength": 0}, "else": {"minLength": 0}, **made} if "if" in made else made


def whole(rng):
    made = closed(dict(one_keyword(rng, 3) for _ in range(rng.choice([1, 2, 3, 4]))))
    made["$defs"] = {f"d{i}": {"$anchor": f"here{i}", **(lambda s: s if isinstance(s, dict) else {})(schema(rng, 2))}
                     for i in range(DEFS)}
    return made


def fitting(rng, s, depth):
    """A value that the schema may take: a guess, by what it says first."""
    if isinstance(s, bool) or depth == 0:
        return value(rng, depth)
    if "const" in s:
        return s["const"]
    if "enum" in s and s["enum"]:
        return rng.choice(s["enum"])
    for word in ("allOf", "anyOf", "oneOf"):
        if word in s and rng.random() < 0.5:
            return fitting(rng, rng.choice(s[word]), depth - 1)
    if any(w in s for w in ("properties", "required", "additionalProperties", "patternProperties", "dependentSchemas",
                            "unevaluatedProperties", "propertyNames", "minProperties")):
        made = {n: fitting(rng, p, depth - 1) for n, p in s.get("properties", {}).items() if rng.random() < 0.8}
        for name in s.get("required", []) + rng.sample(NAMES, rng.randrange(3)):
            made.setdefault(name, value(rng, 1))
        return made
    if any(w in s for w in ("items", "prefixItems", "contains", "minItems", "uniqueItems", "unevaluatedItems")):
        made = [fitting(rng, p, depth - 1) for p in s.get("prefixItems", [])]
        more = s.get("items", s.get("contains", s.get("unevaluatedItems", True)))
        return made + [fitting(rng, more, depth - 1) for _ in range(rng.randrange(4))]
    if any(w in s for w in ("minLength", "maxLength", "pattern")):
        return rng.choice(TEXTS)
    if any(w in s for w in ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum")):
        return rng.choice(NUMBERS)
    return value(rng, depth)


def pattern(rng, depth):
    """A regular expression of what we take, and now and then of what nobody takes."""
    kind = rng.randrange(6 if depth > 0 else 3)
    if kind < 3:
        made = rng.choice(["a", "b", "c", "ab", "1", ".", "é", "🙂", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "[ab]", "[^a]", "[a-c\\d]",
                           "[^\\W_]", "[\\s-]", "\\x61", "\\u{1f642}", "^", "$", "\\b", "\\B", "\\.", "[]", "[^]", "{", "]"])
    elif kind == 3:
        made = pattern(rng, depth - 1) + pattern(rng, depth - 1)
    elif kind == 4:
        made = pattern(rng, depth - 1) + "|" + pattern(rng, depth - 1)
    else:
        made = rng.choice(["(", "(?:", f"(?<n{rng.randrange(1 << 40)}>"]) + pattern(rng, depth - 1) + ")"
    if rng.random() < 0.3:
        made += rng.choice(["*", "+", "?", "{2}", "{0,1}", "{1,}", "{1,3}", "*?", "+?", "{2,1}", "{0}"])
    return made


def patterns(seed, n):
    rng = random.Random(f"{seed} patterns")
    for i in range(0, n, 4):
        made = {"pattern": pattern(rng, 4)}
        letters = "aabbc1 _-\né" + "🙂" * ("\\B" not in made["pattern"])  # V8 finds a \\B inside of one
        for k in range(4):
            yield f"pattern {seed}/{i + k}", "-", made, "".join(rng.choice(letters) for _ in range(rng.randrange(7))), None


def pairs(seed, n):
    rng = random.Random(f"{seed} schema")
    for i in range(0, n, 4):
        made = whole(rng)
        for k in range(4):
            yield f"{seed}/{i + k}", "-", made, fitting(rng, made, 4) if k % 2 else value(rng, 3), None


def suite():
    """Each test of draft-07's suite that our keywords and formats are about: name, options, schema, instance, is it valid."""
    top = SUITE / "tests" / "draft7"
    files = sorted(top.glob("*.json")) + [top / "optional" / f"{n}.json" for n in ("bignum", "zeroTerminatedFloats")]
    formats = [top / "optional" / "format" / f"{n}.json" for n in ("date-time", "date", "time", "email", "uri", "ipv4", "ipv6")]
    for file in files + formats:
        for group in json.loads(file.read_text(encoding="utf-8")):
            made = group["schema"]
            if isinstance(made, dict):
                made = {"$schema": DRAFT_07, **made}
            for test in group["tests"]:
                name = f"{file.stem}: {group['description']}: {test['description']}"
                yield name, "f" if file in formats else "-", made, test["data"], test["valid"]


def c_text(literals):
    """C's adjacent literals as the text that they are, with the single quotes of the tables for double ones."""
    raw = "".join(json.loads('"' + one.replace("\\x", "\\u00") + '"') for one in re.findall(r'"((?:[^"\\]|\\.)*)"', literals))
    return raw.encode("latin-1").decode().replace("'", '"')


def is_exact(text):
    """Does no number of it lose by being a double, as all are in ajv?"""
    return not re.search(r"\d{16}|[eE][+-]?\d{3}", text)


def tables():
    """The rows of our own unit test."""
    literal = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
    text = (HERE.parent / "unit" / "common" / "test_schema.c").read_text(encoding="utf-8")
    for found in re.finditer(r"\{" + literal + r",\s*" + literal + r",\s*(NULL|\")", text):
        made, instance = c_text(found[1]), c_text(found[2])
        if is_exact(made) and is_exact(instance):
            yield "row", "-", json.loads(made), json.loads(instance), found[3] == "NULL"


def ours(program, cases):
    lines = "".join(f"{options}\t{json.dumps(s)}\t{json.dumps(i)}\n" for _, options, s, i, _ in cases)
    done = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"differential: {program} ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def theirs(modules, cases):
    lines = "".join(json.dumps({"schema": s, "instance": i}) + "\n" for _, _, s, i, _ in cases)
    done = subprocess.run(["node", str(HERE / "schema.js"), str(modules)], input=lines, stdout=subprocess.PIPE, text=True, timeout=900)
    if done.returncode:
        sys.exit(f"differential: node schema.js ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def told_wrong(mine, ajv):
    """Is what we tell not among what ajv found? A schema that is false is told by the keyword that has it."""
    if mine["below"]:
        return not any(at.startswith(mine["path"]) for at, _ in ajv["errors"])
    wanted = {mine["keyword"], ALSO.get(mine["keyword"], mine["keyword"]), "false schema"}
    return not any(at == mine["path"] and word in wanted or at == mine["path"].rpartition("/")[0] and word in wanted or
                   at.rpartition("/")[0] == mine["path"] and word == "false schema" for at, word in ajv["errors"])


def by_jsonschema(made):
    return jsonschema.validators.validator_for(made, default=jsonschema.Draft202012Validator)(made)


def third(made, instance):
    """Does it fit, by the word of a third one? None: it fails."""
    try:
        return by_jsonschema(made).is_valid(instance)
    except (TypeError, KeyError, jsonschema.exceptions.RefResolutionError):
        return None


def third_finds(made, instance, path):
    """Is there, by its word, something wrong at this path? Or it fails."""
    pointer = lambda e: "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in e.absolute_path)
    try:
        return any(pointer(e) == path for e in by_jsonschema(made).iter_errors(instance))
    except (TypeError, KeyError):
        return True


def compare(cases, mine, ajv):
    wrong, counts = [], {"fits": 0, "schema-violation": 0, "refused": 0, "others": 0, "ajv alone": 0}
    for case, m in zip(cases, mine, strict=True):
        counts[m["verdict"] if m["verdict"] in counts else "others"] += 1
        a = next(ajv) if m["verdict"] in ("fits", "schema-violation") else None
        if a is None:
            continue
        expected = case[4]
        fits = m["verdict"] == "fits"
        if expected is not None and fits != expected:
            wrong.append((case, m, "the suite says otherwise"))
        elif case[1] == "f":
            continue
        elif "refused" in a or a["valid"] != fits:
            alone = expected is not None or "pattern " not in case[0] and third(case[2], case[3]) in (fits, None)
            counts["ajv alone"] += alone
            if not alone:
                wrong.append((case, m, f"ajv says {a}, and so does jsonschema"))
        elif not fits and told_wrong(m, a):
            alone = third_finds(case[2], case[3], m["path"])
            counts["ajv alone"] += alone
            if not alone:
                wrong.append((case, m, f"ajv found {a['errors']}"))
    for case, m, why in sorted(wrong, key=lambda w: len(str(w[0])))[:5]:
        print(f"  {case[0]}: {why}\n    ours     {m}\n    schema   {json.dumps(case[2])}\n    instance {json.dumps(case[3])}")
    return wrong, counts


def run(name, program, modules, cases, least_taken, least_each):
    mine = ours(program, cases)
    asked = [c for c, m in zip(cases, mine, strict=True) if m["verdict"] in ("fits", "schema-violation")]
    wrong, counts = compare(cases, mine, iter(theirs(modules, asked)))
    taken = (counts["fits"] + counts["schema-violation"]) / len(cases)
    good = not wrong and counts["ajv alone"] <= len(cases) / 100 and taken >= least_taken and min(counts["fits"], counts["schema-violation"]) >= least_each
    print(f"{'ok' if good else 'not ok'} {name}: {len(cases)} pairs, {counts}, {len(wrong)} judged otherwise")
    return good


def main():
    options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    seed, n = int(options.get("--seed", 1)), int(options.get("--pairs", 12000))
    program = os.path.abspath(sys.argv[1])
    modules = npm_modules(HERE / "npm") / "node_modules"
    good = run("the rows of our unit test", program, modules, list(tables()), 1, 50)
    good = run("JSON Schema Test Suite, draft-07", program, modules, list(suite()), 0.85, 150) and good
    good = run("patterns of our making", program, modules, list(patterns(seed, n)), 0.5, n // 20) and good
    good = run("schemas and instances of our making", program, modules, list(pairs(seed, n)), 0.5, n // 20) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
