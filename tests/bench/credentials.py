#!/usr/bin/env python3
"""What credentials and leases cost beside the request itself. Adds its rows to bench.json, and says which are past MOST.

- Release and inject: CPU time of keeper and carrier together with 32 requests in flight, for a path whose rule uses a
  credential, less that for one whose rule does not; of one host, so that answers are searched either way.
- Signing: a request of 1 KiB signed anew (SigV4, the key of the day kept), beside the SHA-256 and HMAC it cannot do
  without; and the same behind the verification of what a sandbox signed with its lease's pair.
- Many of them: instructions of the judge, as callgrind counts them, for a read with a lease on a connection that is
  kept, with 1,000 credentials and 10,000 leases beside one of each.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

import bench as benches
import peers
from policy import count

MOST = {"release and inject, 32 in flight": 5, "signing anew, 1 KiB": 3, "verifying a pair and signing anew, 1 KiB": 3,
        "1,000 credentials and 10,000 leases": 1.03}
RELEASE, SIGN, VERIFY, MANY = MOST
ROLES = ("keeper", "carrier")
READ = "effect: read }, decide: allow, use: origin }"
BARE = "effect: read }, except: [{ path: /open }], decide: allow, use: origin }\n  - { id: bare, match: { host: localhost, port: %d, effect: read, path: /open }, decide: allow }"


def spent(peer):
    """Microseconds of CPU of keeper and carrier so far."""
    tick = 1e6 / os.sysconf("SC_CLK_TCK")
    return sum(peers.stat(pid)[1] * tick for pid in peer.tree()
               if pathlib.Path(f"/proc/{pid}/exe").resolve().name.removeprefix("countersign-") in ROLES)


def one(bench, peer, asked, seconds):
    before = spent(peer)
    done = subprocess.run(bench.command(peer, asked, ["--connections", "32", "--seconds", seconds]), capture_output=True, text=True, check=True)
    got = json.loads(done.stdout)
    assert not got["errors"], got
    return (spent(peer) - before) / got["requests"]


def release(args):
    bench = benches.Bench(os.path.abspath(args.loadgen), args.prefix)
    policy = peers.COUNTERSIGN_POLICY
    filled = (BARE % bench.origin_port).replace("{", "{{").replace("}", "}}")
    peers.COUNTERSIGN_POLICY = policy.replace(READ.replace("}", "}}"), filled, 1)
    assert peers.COUNTERSIGN_POLICY != policy
    origin = peers.start_origin(bench)
    peer = peers.start_countersign(bench)
    took = {"small": [], "open": []}
    try:
        for asked in took:
            one(bench, peer, asked, args.seconds / 4)
        for _ in range(args.rounds):
            for asked, found in took.items():
                found.append(one(bench, peer, asked, args.seconds))
    finally:
        peer.stop()
        origin.stop()
    shutil.rmtree(bench.dir)
    with_, without = (statistics.median(took[asked]) for asked in took)
    return [("with", "us/request", with_), ("without", "us/request", without), ("cpu", "us/request", with_ - without)]


def signing(first):
    """Of sign_bench's columns these two."""
    def measure(args):
        runs = [[float(n) for n in subprocess.run([args.sign, "100000"], capture_output=True, text=True, check=True).stdout.split()[first:first + 2]]
                for _ in range(args.rounds)]
        took, must = (statistics.median(run[i] for run in runs) / 1000 for i in range(2))
        return [("cpu", "us", took), ("must", "us", must), ("cpu_ratio", "x must", statistics.median(run[0] / run[1] for run in runs))]
    return measure


def policy_of(n):
    """n credentials with a rule each; the last is the one that is asked for."""
    names = [f"c{i}" for i in range(n - 1)] + ["leased"]
    hosts = [f"h{i}.example" for i in range(n - 1)] + ["api.example"]
    key = "source: {{ store: {0} }}, inject: {{ header: Authorization, format: \"Bearer {{}}\" }}, lease: github, require_lease: true, only: [{{ host: {1} }}]"
    return ("version: 1\nname: bench\ncredentials:\n" + "".join(f"  {c}: {{ {key.format(c, h)} }}\n" for c, h in zip(names, hosts)) +
            "rules:\n" + "".join(f"  - {{ id: r-{c}, match: {{ host: {h}, effect: read }}, decide: allow, use: {c} }}\n" for c, h in zip(names, hosts)))


def many(args):
    cost = []
    with tempfile.TemporaryDirectory() as where:
        for credentials, leases in ((1, 1), (1000, 10000)):
            file = pathlib.Path(where) / f"{credentials}.yaml"
            file.write_text(policy_of(credentials))
            cost.append((count(args.leases, file, "leased", leases, 3000) - count(args.leases, file, "leased", leases, 1000)) / 2000)
    return [("instructions", "/request", cost[1]), ("alone", "/request", cost[0]), ("ratio", "x alone", cost[1] / cost[0])]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--loadgen", required=True)
    options.add_argument("--prefix", required=True, help="where Countersign is installed, or its build directory")
    options.add_argument("--sign", required=True, help="sign_bench")
    options.add_argument("--leases", required=True, help="lease_bench")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=2)
    options.add_argument("--only", default="", help="only cases with this in their name")
    options.add_argument("--out", default="bench.json")
    args = options.parse_args()
    rows, bad = [], []
    for case, measure in ((RELEASE, release), (SIGN, signing(0)), (VERIFY, signing(2)), (MANY, many)):
        if args.only not in case:
            continue
        values = measure(args)
        rows += [{"case": case, "proxy": "countersign", "metric": m, "unit": unit, "value": round(v, 3)} for m, unit, v in values]
        print(f"{case:<44}" + ", ".join(f"{m} {v:.3f} {unit}" for m, unit, v in values) + f"  (at most {MOST[case]})")
        if values[-1][2] > MOST[case]:
            bad.append(case)
    out = pathlib.Path(args.out)
    old = json.loads(out.read_text()) if out.exists() else []
    out.write_text(json.dumps([r for r in old if r["case"] not in {r["case"] for r in rows}] + rows, indent=1) + "\n")
    assert not bad, bad


if __name__ == "__main__":
    main()
