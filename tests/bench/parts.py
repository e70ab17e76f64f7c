#!/usr/bin/env python3
"""What it costs to look into a query, forms, a JSON body and a GraphQL document as they grow, in instructions that callgrind counts:
twice as much takes at most MOST times as long, beside a policy of many rules that ask about them; and to look into a GraphQL
document of 4 KiB takes at most GRAPHQL_MOST more than its JSON alone. Usage: parts.py JUDGE_LINES"""
import json
import re
import subprocess
import sys
import tempfile

MOST, RULES, GRAPHQL_MOST = 2.5, 40, 60000
FORM, JSON = "Content-Type: application/x-www-form-urlencoded\n", "Content-Type: application/json\n"
PARTS, PART = "Content-Type: multipart/form-data; boundary=b1\n", '--b1\r\nContent-Disposition: form-data; name="a{}"\r\n\r\n'


def policy():
    rules = ["  - { id: all, match: { host: a.test }, decide: allow }"]
    for n in range(RULES):
        rules += [f"  - {{ id: q{n}, match: {{ host: a.test, query: {{ mode{n}: wipe }} }}, decide: deny }}",
                  f"  - {{ id: f{n}, match: {{ host: a.test, path: /form, form: [{{ field: mode{n}, equals: wipe }}] }}, decide: deny }}",
                  f"  - {{ id: j{n}, match: {{ host: a.test, path: /json, json: [{{ pointer: /mode{n}, equals: wipe }}] }}, decide: deny }}",
                  f"  - {{ id: m{n}, match: {{ host: a.test, path: /up, multipart: [{{ field: mode{n}, equals: wipe }}, {{ file: a, exists: true }}] }}, decide: deny }}",
                  f"  - {{ id: g{n}, match: {{ host: a.test, path: /graphql, graphql: {{ fields: mode{n} }} }}, decide: deny }}"]
    return "version: 1\nrules:\n" + "\n".join(rules) + "\n"


def line(path="/", query="", fields="", body=None):
    return json.dumps(["vm", "GET" if body is None else "POST", f"https://a.test{path}{'?' + query if query else ''}", fields, body])


def graphql(text):
    return line("/graphql", "", JSON, json.dumps({"query": text}))


FOUR_KIB = "query Q($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { issues(first: 100) { nodes { %s } } } }"
FOUR_KIB %= " ".join(f"number{i} title url author {{ login ...on User {{ id }} }}" for i in range(74))
ONE_RULE = "version: 1\nrules:\n  - {{ id: r, match: {{ host: a.test, path: /graphql{} }}, decide: allow }}\n"
ASKS = {"GraphQL": ", graphql: { type: query, fields: repository }", "JSON": ", json: [{ pointer: /query, exists: true }]", "nothing": "",
        "MCP": ", mcp: { tool: search }"}
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
    "a form of parts": (250, lambda n: line("/up", "", PARTS, "".join(PART.format(i) + "x\r\n" for i in range(n)) + "--b1--\r\n")),
    "a form of one part": (1 << 20, lambda n: line("/up", "", PARTS, PART.format("") + "\r\n--b" * (n // 5) + "\r\n--b1--\r\n")),
    "GraphQL of fields": (4000, lambda n: graphql("{a{" + "b " * n + "}}")),
    "GraphQL of fields at the top": (110, lambda n: graphql("{" + "b " * n + "}")),
    "GraphQL of spreads": (2000, lambda n: graphql("{a{" + "...F199 " * n + "}}" + "".join(f"fragment F{i} on T{{a}}" for i in range(200)))),
    "GraphQL of one text": (1 << 19, lambda n: graphql('{a(b:"' + "x" * n + '")}')),
    "GraphQL of one block": (1 << 18, lambda n: graphql('{a(b:"""' + " x\n" * (n // 3) + '""")}')),
}


def count(program, file, text):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, file], input=text + "\n", capture_output=True,
                          text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"parts: {done.stderr[-400:]}")
    return int(found[1])


CALL = line("/graphql", "", JSON, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"q": ["x" * 40] * 93}}}))
RPC_MOST = 1.5


READ_ONCE, READ_OFTEN, READ_MOST = "/json", "/a%3Ab/C.json/", 1.1
LONG = "x y%41 1e3 " * 18000
READ = {"JSON": ('json: [{ pointer: /mode, glob: ["*wipe*", "*drop*", "a*b*c"] }]', JSON, json.dumps({"mode": LONG})),
        "a form": ('form: [{ field: mode, glob: "*wipe*" }]', FORM, "mode=" + LONG.replace(" ", "+")),
        "a form with files": ('multipart: [{ field: mode, glob: "*wipe*" }]', PARTS,
                              PART.replace("a{}", "mode") + LONG + "\r\n--b1--\r\n")}


def of_readings(asks, fields, body):
    """How much longer it takes where servers may read the path in several ways: the body is the same in each."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(f"version: 1\nrules:\n  - {{ id: all, match: {{ host: a.test }}, decide: allow }}\n"
                   f"  - {{ id: d, match: {{ host: a.test, {asks} }}, decide: deny }}\n")
        file.flush()
        often, once = (count(sys.argv[1], file.name, line(path, "", fields, body)) for path in (READ_OFTEN, READ_ONCE))
        return often / once


def of_one(asks, one=graphql(FOUR_KIB)):
    """What the second of two takes."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(ONE_RULE.format(asks))
        file.flush()
        return count(sys.argv[1], file.name, one + "\n" + one) - count(sys.argv[1], file.name, one)


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
    one = {name: of_one(asks) for name, asks in ASKS.items()}
    cost = one["GraphQL"] - one["JSON"]
    print(f"GraphQL of {len(FOUR_KIB)} bytes: {cost} instructions (at most {GRAPHQL_MOST}) behind its JSON, which takes {one['JSON'] - one['nothing']}")
    call = {name: of_one(ASKS[name], CALL) for name in ("MCP", "JSON", "nothing")}
    call_times = (call["MCP"] - call["nothing"]) / (call["JSON"] - call["nothing"])
    print(f"a tool of MCP in {len(CALL)} bytes: {call_times:.2f} x what its JSON takes (at most {RPC_MOST})")
    read = {name: of_readings(*case) for name, case in READ.items()}
    for name, times in read.items():
        print(f"{name} of {len(LONG)} bytes below a path with several readings: {times:.2f} x (at most {READ_MOST})")
    late = [name for name, is_late in (("GraphQL", cost > GRAPHQL_MOST), ("MCP", call_times > RPC_MOST), *((name, times > READ_MOST) for name, times in read.items())) if is_late]
    sys.exit(f"not linear: {', '.join(bad)}" if bad else f"too long: {', '.join(late)}" if late else 0)


if __name__ == "__main__":
    main()
