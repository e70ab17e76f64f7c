#!/usr/bin/env python3
"""What it costs to look into a query, a form and a JSON body as they grow, in instructions that callgrind counts: twice
as much takes at most MOST times as long, beside a policy of many rules that ask about them. Usage: parts.py JUDGE_LINES"""
import json
import re
import subprocess
import sys
import tempfile

MOST, RULES = 2.5, 40
FORM, JSON = "Content-Type: application/x-www-form-urlencoded\n", "Content-Type: application/json\n"


def policy():
    rules = ["  - { id: all, match: { host: a.test }, decide: allow }"]
    for n in range(RULES):
        rules += [f"  - {{ id: q{n}, match: {{ host: a.test, query: {{ mode{n}: wipe }} }}, decide: deny }}",
                  f"  - {{ id: f{n}, match: {{ host: a.test, path: /form, form: [{{ field: mode{n}, equals: wipe }}] }}, decide: deny }}",
                  f"  - {{ id: j{n}, match: {{ host: a.test, path: /json, json: [{{ pointer: /mode{n}, equals: wipe }}] }}, decide: deny }}"]
    return "version: 1\nrules:\n" + "\n".join(rules) + "\n"


def line(path="/", query="", fields="", body=None):
    return json.dumps(["vm", "GET" if body is None else "POST", f"https://a.test{path}{'?' + query if query else ''}", fields, body])


CASES = {
    "a query of '&'": (4000, lambda n: line(query="&" * n)),
    "a query of names": (4000, lambda n: line(query="a&" * (n // 2))),
    "a query of ';'": (4000, lambda n: line(query="a;" * (n // 2))),
    "a query of '%26'": (8000, lambda n: line(query="a=" + "%26a" * (n // 4))),
    "a query of '&%26'": (8000, lambda n: line(query="&%2526" * (n // 6))),
    "a form of fields": (2500, lambda n: line("/form", "", FORM, "&".join(f"a{i}={i}" for i in range(n)))),
    "a form of one value": (1 << 20, lambda n: line("/form", "", FORM, "a=" + "x" * n)),
    "a form of escapes": (1 << 19, lambda n: line("/form", "", FORM, "a=" + "%41" * (n // 3))),
    "JSON of members": (4000, lambda n: line("/json", "", JSON, json.dumps({f"a{i}": i for i in range(n)}))),
    "JSON of one text": (1 << 20, lambda n: line("/json", "", JSON, json.dumps({"a": "x" * n}))),
}


def count(program, file, text):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, file], input=text + "\n", capture_output=True,
                          text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"parts: {done.stderr[-400:]}")
    return int(found[1])


def main():
    bad = []
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(policy())
        file.flush()
        for name, (n, make) in CASES.items():
            cost = [count(sys.argv[1], file.name, make(m)) for m in (n, 2 * n, 4 * n)]
            grows = (cost[2] - cost[1]) / max(1, cost[1] - cost[0])
            print(f"{name:<24}{cost[2] / 1e6:10.1f} M instructions{grows:8.2f} x before (at most {MOST})")
            if grows > MOST:
                bad.append(name)
    sys.exit(f"not linear: {', '.join(bad)}" if bad else 0)


if __name__ == "__main__":
    main()
