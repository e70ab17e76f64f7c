#!/usr/bin/env python3
"""What intercepting a request costs, beside other proxies, in one run.

Every proxy ends TLS 1.3 from the client, injects a header, and speaks TLS 1.3 to the same origin. The proxy is
pinned to core 0, the load and the origin to core 1. Measured: user and system time of all the proxy's processes
together, by request; rounds go over all proxies in turn and the median counts. Only ratios travel between machines.
Prints one table and writes the same rows to bench.json: case, proxy, metric, unit, value.
"""
import argparse
import json
import os
import pathlib
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e/lab")]
import certs  # noqa: E402
import peers  # noqa: E402

SMALL, BIG = 100, 16384
CASES = {
    "keep-alive, 32 connections": (SMALL, ["--connections", "32"]),
    "keep-alive, one at a time": (SMALL, ["--connections", "1"]),
    "keep-alive, 32, 16 KiB": (BIG, ["--connections", "32"]),
    "new connection each": (SMALL, ["--connections", "4", "--new"]),
}
METRICS = {"cpu": "us/request", "cpu_ratio": "x nginx", "rate": "requests/s", "p50": "us", "p99": "us",
           "memory": "KiB", "errors": "requests"}


class Bench:
    """What the proxies share: a directory, the CA, the secret to inject, the origin's port."""

    def __init__(self, loadgen, prefix):
        self.loadgen, self.prefix = loadgen, prefix
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bench-"))
        os.chmod(self.dir, 0o755)
        for name in ("tmp", "www"):
            (self.dir / name).mkdir()
        os.chmod(self.dir / "tmp", 0o777)
        (self.dir / "www/small").write_bytes(b"s" * SMALL)
        (self.dir / "www/big").write_bytes(b"b" * BIG)
        ca = certs.CA(self.dir / "ca", "Bench CA")
        cert, key = ca.leaf("localhost")
        for out, parts in (("localhost.both.pem", (cert, key)), ("ca.both.pem", (ca.key, ca.cert))):
            certs.bundle(self.dir / "ca" / out, *parts)
            os.chmod(self.dir / "ca" / out, 0o644)  # of this bench alone; some proxies read it as another user
        self.ca, self.secret, self.origin_port = ca.cert, secrets.token_hex(20), peers.free_port()

    def load(self, peer, case, seconds):
        size, options = CASES[case]
        command = ["taskset", "-c", peers.LOAD_CPU, self.loadgen, "--proxy", f"127.0.0.1:{peer.port}", "--target",
                   f"localhost:{self.origin_port}", "--ca", peer.ca, "--seconds", seconds, "--body", size,
                   "--path", "/small" if size == SMALL else "/big", *options]
        command += ["--reverse"] if peer.reverse else []
        command += ["--auth", peer.auth] if peer.auth else []
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=seconds * 5 + 60)
        if not done.stdout.strip():
            raise RuntimeError(f"loadgen says: {done.stderr.strip()}")
        if done.stderr:
            print(f"# {peer.name}: {done.stderr.strip()}", file=sys.stderr)
        return json.loads(done.stdout)

    def measure(self, peer, case, seconds):
        before = peer.cpu_us()
        got = self.load(peer, case, seconds)
        used = peer.cpu_us() - before
        n = max(1, got["requests"])
        if got["errors"]:
            print(f"# {peer.name}, {case}: {got['errors']} errors: {got['first_error']}", file=sys.stderr)
        return {"cpu": used / n, "rate": n / got["seconds"], "p50": got["p50_us"], "p99": got["p99_us"],
                "errors": got["errors"], "memory": peer.memory_kib()}


def run(bench, names, cases, rounds, seconds):
    """{(case, proxy): [measured, one a round]}"""
    origin, running, measured = peers.start_origin(bench), [], {}
    try:
        for name in names:
            try:
                running.append(peers.PEERS[name](bench))
            except peers.Missing as why:
                print(f"# {name} is not measured: {why}", file=sys.stderr)
        for case in cases:
            for peer in running:
                bench.load(peer, case, seconds / 4)
            for _ in range(rounds):
                for peer in running:
                    measured.setdefault((case, peer.name), []).append(bench.measure(peer, case, seconds))
                    tell(f"{case}: {peer.name}")
    finally:
        for peer in reversed(running):
            peer.stop()
        origin.stop()
        tell("")
    return measured


def tell(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def rows_of(measured):
    rows = []
    for (case, proxy), rounds in measured.items():
        values = {metric: statistics.median(r[metric] for r in rounds) for metric in rounds[0]}
        values["errors"] = sum(r["errors"] for r in rounds)
        base = measured.get((case, "nginx"))
        if base:
            values["cpu_ratio"] = values["cpu"] / statistics.median(r["cpu"] for r in base)
        rows += [{"case": case, "proxy": proxy, "metric": m, "unit": METRICS[m],
                  "value": round(values[m], 2 if m.startswith("cpu") else 0)} for m in METRICS if m in values]
    return rows


def table(rows):
    names = list(METRICS)
    print(f"{'case':<28}{'proxy':<13}" + "".join(f"{n + ' ' + METRICS[n]:>19}" for n in names))
    seen = {}
    for row in rows:
        seen.setdefault((row["case"], row["proxy"]), {})[row["metric"]] = row["value"]
    for (case, proxy), values in seen.items():
        print(f"{case:<28}{proxy:<13}" + "".join(
            f"{values[n]:>19.{2 if n.startswith('cpu') else 0}f}" if n in values else f"{'-':>19}" for n in names))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--loadgen", required=True)
    options.add_argument("--prefix", help="where Countersign is installed, or its build directory")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=2)
    options.add_argument("--only", default=",".join(peers.PEERS), help="proxies, by comma")
    options.add_argument("--case", default="", help="only cases with this in their name")
    options.add_argument("--out", default="bench.json")
    args = options.parse_args()
    bench = Bench(os.path.abspath(args.loadgen), args.prefix)
    try:
        rows = rows_of(run(bench, args.only.split(","), [c for c in CASES if args.case in c], args.rounds,
                           args.seconds))
    except RuntimeError as why:
        sys.exit(f"bench: {why}")
    shutil.rmtree(bench.dir)
    table(rows)
    out = pathlib.Path(args.out)
    old = json.loads(out.read_text()) if out.exists() else []
    out.write_text(json.dumps(rows + [r for r in old if r["case"] not in CASES], indent=1) + "\n")
    sys.exit(1 if any(r["metric"] == "errors" and r["value"] for r in rows) else 0)


if __name__ == "__main__":
    main()
