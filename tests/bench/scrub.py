#!/usr/bin/env python3
"""What searching an answer costs with 100 secrets in all their forms: instructions a byte, as callgrind counts them, and
bytes for each second of CPU time, the best of five runs. Fails past the bounds. Adds its rows to bench.json: case, proxy,
metric, unit, value.

The bounds are on answers as they come (JSON, noise, text full of escapes, and the first with a secret of 8 bytes among
them); an answer that is nothing but escapes is told beside them: it makes the most near misses.
"""
import argparse
import json
import pathlib

from policy import count, subprocess

SECRETS, MOST, LEAST = 100, 8, 1e9
CASES = (("JSON", "json", 40, True), ("noise", "noise", 40, True), ("escapes in text", "near", 40, True),
         ("JSON, a secret of 8 bytes", "json", 8, True), ("escapes alone", "escapes", 40, False))


def rate(program, *words):
    runs = [subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=True) for _ in range(5)]
    return max(float(done.stdout.split()[0]) for done in runs)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", required=True)
    options.add_argument("--out", default="bench.json")
    args = options.parse_args()
    rows, bad = [], []
    for name, kind, shortest, bounded in CASES:
        case = f"scrub, {SECRETS} secrets, {name}"
        cost = (count(args.program, kind, SECRETS, shortest, 3) - count(args.program, kind, SECRETS, shortest, 1)) / (2 << 20)
        speed = rate(args.program, kind, SECRETS, shortest, 256 if bounded else 32)
        rows += [{"case": case, "proxy": "countersign", "metric": "instructions", "unit": "/byte", "value": round(cost, 2)},
                 {"case": case, "proxy": "countersign", "metric": "rate", "unit": "bytes/s of CPU", "value": round(speed)}]
        print(f"{case:<44}{cost:8.2f} instructions a byte{speed / 1e9:8.2f} GB/s" + (f"  (at most {MOST}, at least {LEAST / 1e9:.0f})" if bounded else ""))
        if bounded and (cost > MOST or speed < LEAST):
            bad.append(case)
    out = pathlib.Path(args.out)
    kept = [r for r in json.loads(out.read_text()) if not r["case"].startswith("scrub, ")] if out.exists() else []
    out.write_text(json.dumps(kept + rows, indent=1) + "\n")
    assert not bad, bad


if __name__ == "__main__":
    main()
