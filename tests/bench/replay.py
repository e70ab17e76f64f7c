#!/usr/bin/env python3
"""What replaying recorded requests costs, beside sqlite3 reading the same rows, in one run.

Builds a ledger of a million audit records with the real schema (one of five requests is like no other), then takes in
turn the CPU, user and system, of `sqlite3 FILE "select json from audit"` and of `countersign policy replay`; the
median of the ratios counts, and must be at most 5. Adds its rows to bench.json: case, proxy, metric, unit, value.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
CASE, MOST = "replay of recorded requests", 5
POLICY = """version: 1
packs: [git@1, npm@1]
scopes: { ci: { sandboxes: ["ci-*"] } }
rules:
  - { id: read, match: { host: api.example.com, effect: read, path: "/v1/**" }, decide: allow }
  - { id: write, scope: ci, match: { host: api.example.com, method: [POST, PUT], path: "/v1/**" }, decide: hold }
  - { id: gone, match: { host: api.example.com, method: DELETE }, decide: deny }
  - { id: fetch, match: { op: git.fetch, resource: "git:git.example.com/acme/*" }, decide: allow }
"""


def record(seq, ms, kind, more, rest):
    when = f"2026-11-{1 + ms // 86400000 % 28:02}T{ms // 3600000 % 24:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}"
    return json.dumps({"seq": seq, "time": f"{when}.{ms % 1000:03}Z", "kind": kind, **more, **rest},
                      separators=(",", ":"))


def requests(rng, digest):
    """A request's members and the kinds of its records, for ever."""
    names = ["repos", "users", "orders", "items", "search", "reports"]
    while True:
        one = rng.random()
        path = f"/v1/{rng.choice(names)}/{rng.randrange(800)}"
        if rng.random() < 0.2:
            path += f"?page={rng.randrange(10 ** 9)}&per_page=100"
        what = {"sandbox": f"ci-{rng.randrange(40)}", "session": f"ci-{rng.randrange(40)}", "method": "GET",
                "scheme": "https", "host": "api.example.com", "port": 443, "path": path, "verdict": "allow",
                "code": "rule", "op": "http.get", "effect": "read",
                "rule": {"id": "api-read", "file": "policy.yaml", "line": 12}}
        kinds = ["result"]
        if one < 0.15:
            what |= {"method": "POST", "op": "http.post", "effect": "write", "body": True, "type": "application/json"}
            kinds = ["intent", "sent", "result"]
        elif one < 0.20:
            what |= {"method": "DELETE", "op": "http.delete", "effect": "delete", "verdict": "deny", "code": "no-rule"}
            del what["rule"]
            kinds = ["denied"]
        elif one < 0.30:
            what |= {"host": "git.example.com", "op": "git.fetch", "resource": "git:git.example.com/acme/app",
                     "path": "/acme/app.git/info/refs?service=git-upload-pack"}
        yield what | {"policy": digest, "request": f"{rng.getrandbits(256):064x}"}, kinds


def rows(count):
    rng, seq, ms, xid = random.Random(1), 0, 1793000000000, 0
    for what, kinds in requests(rng, f"{rng.getrandbits(256):064x}"):
        xid += 1
        for kind in kinds:
            seq, ms = seq + 1, ms + rng.randrange(200)
            if seq > count:
                return
            more = {"exchange": f"0123456789abcdefghjkmnpqrs-{xid}"}
            if kind == "result":
                more |= {"outcome": "answered", "status": 200, "bytes_out": 310, "bytes_in": 5120, "delivered": True}
            rest = {"sandbox": what["sandbox"]} if kind == "sent" else what
            yield seq, ms, kind, more["exchange"], None, record(seq, ms, kind, more, rest), rng.randbytes(32)


def build(path, count):
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("pragma synchronous = off; pragma journal_mode = wal;")
    db.executescript((TOP / "proxy/ledger/store/schema.sql").read_text(encoding="utf-8"))
    db.execute("begin")
    db.executemany("insert into audit values (?, ?, ?, ?, ?, ?, ?)", rows(count))
    db.execute("commit")
    db.execute("pragma wal_checkpoint(truncate)")
    db.close()


def cpu(command, env=None):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE if env else subprocess.DEVNULL, env=env, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def write(path, values):
    """Our rows in the file, others as they were."""
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    kept = [row for row in old if row["case"] != CASE]
    kept += [{"case": CASE, "proxy": proxy, "metric": metric, "unit": unit, "value": round(value, 3)}
             for proxy, metric, unit, value in values]
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--countersign", required=True)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        state, policy = pathlib.Path(name), pathlib.Path(name) / "policy.yaml"
        policy.write_text(POLICY, encoding="utf-8")
        (state / "store").mkdir()
        build(state / "store" / "ledger.db", args.records)
        read = ["sqlite3", str(state / "store/ledger.db"), "select json from audit"]
        replay = [args.countersign, "policy", "replay", "--json", "--fail-on", "never", "--state-dir", str(state),
                  "--packs", str(TOP / "conf/packs"), str(policy)]
        pairs = []
        for _ in range(args.rounds):
            (theirs, _), (ours, said) = cpu(read), cpu(replay, dict(os.environ))
            pairs.append((theirs, ours))
        counts = json.loads(said)
    if counts["damaged"] or counts["records"] != args.records or not counts["same"] or not counts["narrowed"]:
        sys.exit(f"the replay did not read what was written: {counts}")
    theirs, ours = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
    ratio = statistics.median(ours / theirs for theirs, ours in pairs)
    print(f"{args.records} records, {counts['requests']} requests: sqlite3 {theirs:.2f} s, replay {ours:.2f} s of CPU, "
          f"{ratio:.2f} times (at most {MOST})")
    if args.out:
        write(args.out, [("sqlite3", "cpu", "s", theirs), ("countersign", "cpu", "s", ours),
                         ("countersign", "cpu_ratio", "x sqlite3", ratio)])
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
