#!/usr/bin/env python3
"""What a decision and the loading of a policy cost, in instructions that callgrind counts: no clock, no noise.

Policies of 10 and of 10,000 rules, shapes() says which; of each, what policy_judge takes for one REST request, as the
difference of two counts of judgements. And loading 10,000 rules, against libyaml alone reading the same file; and how
that grows with what a policy has long lists of, lists() says which. Fails past the bounds in MOST. Adds its rows to bench.json: case, proxy, metric, unit, value.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

MANY, FEW = 10000, 10
MOST = {"instructions": 10000, "ratio": 1.05, "load": 3, "grows": 2.5, "places": 4}
SCOPES = [f"team-{n}" for n in range(20)]
WANTED = "  - { id: wanted, match: { host: api.example, method: GET, path: /v1/items/* }, decide: allow }\n"


def rule(host, n):
    """The n-th rule about a host: of ten, six allow reads, one of them only some teams; two hold, one denies, one has
    an exception."""
    place, name = f"host: {host}", f"r-{host.replace('.', '-')}-{n}"
    path = f"/v1/part-{n // 10}/kind-{n % 10}"
    return {
        0: f"match: {{ {place}, method: [POST, PUT], path: {path}/* }}, decide: hold",
        1: f"match: {{ {place}, method: DELETE, path: \"{path}/**\" }}, decide: deny",
        2: f"match: {{ {place}, method: GET, path: \"{path}/**\" }}, except: [{{ path: {path}/keys }}], decide: allow",
        3: f"scope: [{SCOPES[n % 20]}], match: {{ {place}, method: GET, path: {path}/* }}, decide: allow",
        4: f"scope: [{SCOPES[n % 20]}], match: {{ {place}, effect: write, path: {path}/* }}, decide: hold",
    }.get(n % 10, f"match: {{ {place}, method: [GET, HEAD], path: {path}/* }}, decide: allow").join(
        [f"  - {{ id: {name}, ", " }\n"])


def policy(rules, hosts, anywhere=False):
    """So many rules over so many hosts, of which api.example is one; one of them is the one that decides. anywhere:
    the others say no path, so that nothing but the host tells which of them are to be asked."""
    scopes = "".join(f"  {s}: {{ sandboxes: [\"{s}-*\"] }}\n" for s in SCOPES)
    names = ["api.example"] + [f"svc-{n}.corp.example" for n in range(1, hosts)]
    body = [rule(names[n % hosts], n // hosts) for n in range(rules - 1)]
    if anywhere:
        body = [re.sub(r', path: [^ ,}]+|except: .*?\], ', '', b) for b in body]
    return f"version: 1\nname: bench\nscopes:\n{scopes}rules:\n{WANTED}{''.join(body)}"


def shapes():
    yield "100 hosts", policy(FEW, 1), policy(MANY, 100), True
    yield "1 host", policy(FEW, 1), policy(MANY, 1), True
    # Not bounded, but told: the 60 of the 100 rules about the host that fit are all asked.
    yield "100 hosts, no paths", policy(FEW, 1, True), policy(MANY, 100, True), False


def texts(n, form):
    return ", ".join(form.format(i) for i in range(n))


def lists():
    """Of what there may be n, and what could be walked once for each of them: name, how many, policy. The last number
    of "places" is the most that one credential may have."""
    head = "version: 1\nname: bench\n"
    one = "rules:\n  - { id: r, match: { host: a.example, method: GET%s }, decide: allow%s }\n"
    key = "credentials:\n  c:\n    source: { env: TOKEN }\n    inject: { header: A, format: \"{}\" }\n    only: ["
    yield "places", 1000, lambda n: (
        head + key + texts(n, "{{ host: h{}.example }}") + "]\n" +
        one.replace("a.example", f"[{texts(n, 'h{}.example')}]") % ("", ", use: c"))
    yield "regions", 4000, lambda n: (
        head + "scopes:\n" + "".join(f"  s{i}: {{ sandboxes: [s], regions: [g{i}] }}\n" for i in range(n)) +
        "upstreams:\n" + "".join(f"  - {{ host: h{i}.example, region: g{i} }}\n" for i in range(n)) +
        one % ("", ""))
    yield "exceptions", 4000, lambda n: (
        head + one % (f", path: [{texts(n, '/p{}')}]", f", except: [{texts(n, '{{ path: /p{} }}')}]"))
    yield "names of a query", 4000, lambda n: (
        head + one % (f", query_names: [{texts(n, 'q{}')}], query: {{{texts(n, ' q{}: x')} }}", ""))
    yield "values of a field", 4000, lambda n: (
        head + "rules:\n  - { id: r, match: { host: a.example, json: [" + ", ".join(
            f"{{ pointer: /a, in: [{texts(n, w + '{}')}] }}" for w in ("b", "c")) + "] }, decide: allow }\n")
    yield "two rules with hosts", 4000, lambda n: (
        head + "rules:\n" + "".join(f"  - {{ id: {r}, match: {{ host: [{texts(n, 'h{}.example')}], method: GET }}, "
                                    f"decide: {d} }}\n" for r, d in (("a", "allow"), ("h", "hold"))))


def count(*command):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *map(str, command)],
                          capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"bench: {' '.join(map(str, command))}: {done.stderr.strip()[-400:]}")
    return int(found[1])


def decision(program, file):
    return (count(program, "judge", file, 3000) - count(program, "judge", file, 1000)) / 2000


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", required=True)
    options.add_argument("--out", default="bench.json")
    options.add_argument("--only", default="", help="only shapes with this in their name")
    args = options.parse_args()
    rows, bad = [], []

    def row(case, metric, unit, value, most):
        rows.append({"case": case, "proxy": "countersign", "metric": metric, "unit": unit, "value": round(value, 2)})
        print(f"{case:<44}{metric:<14}{value:>14.2f} {unit}" + (f"  (at most {most})" if most else ""))
        if most and value > most:
            bad.append(f"{case}: {metric} {value:.2f}, at most {most}")

    with tempfile.TemporaryDirectory() as where:
        few, many = pathlib.Path(where) / "few.yaml", pathlib.Path(where) / "many.yaml"
        for name, small, large, bounded in shapes():
            if args.only not in name:
                continue
            few.write_text(small)
            many.write_text(large)
            one, all_ = decision(args.program, few), decision(args.program, many)
            row(f"decision, {MANY} rules, {name}", "instructions", "/decision", all_,
                MOST["instructions"] if bounded else None)
            row(f"decision, {MANY} rules, {name}", "ratio", f"x {FEW} rules", all_ / one,
                MOST["ratio"] if bounded else None)
            if not bounded:
                continue
            loaded, parsed = count(args.program, "load", many), count(args.program, "parse", many)
            row(f"load, {MANY} rules, {name}", "instructions", "/load", loaded, None)
            row(f"load, {MANY} rules, {name}", "ratio", "x libyaml", loaded / parsed, MOST["load"])
        for name, most, make in lists():
            if args.only not in name:
                continue
            cost = []
            for n in (most // 4, most // 2, most):
                many.write_text(make(n))
                cost.append(count(args.program, "load", many))
            row(f"load, {most // 2} to {most} {name}", "grows", "x before",
                (cost[2] - cost[1]) / (cost[1] - cost[0]), MOST["grows"])
            if name == "places":
                row(f"load, {most} {name}", "ratio", "x libyaml", cost[2] / count(args.program, "parse", many),
                    MOST["places"])
    out = pathlib.Path(args.out)
    kept = json.loads(out.read_text(encoding="utf-8")) if out.exists() else []
    cases = {r["case"] for r in rows}
    out.write_text(json.dumps([r for r in kept if r["case"] not in cases] + rows, indent=1) + "\n", encoding="utf-8")
    sys.exit("\n".join(bad) if bad else 0)


if __name__ == "__main__":
    main()
