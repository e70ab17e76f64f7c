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

SMALL, BIG, HUGE = 100, 16384, 100 * 1000 * 1000
FILES = {"small": SMALL, "big": BIG, "huge": HUGE}
NEW_HOST, NEW_HOSTS = "first request to a host", 300  # a round asks that many hosts, each once
CASES = {  # name: (what is asked for, options of the load)
    "keep-alive, 32 connections": ("small", ["--connections", "32"]),
    "keep-alive, one at a time": ("small", ["--connections", "1"]),
    "keep-alive, 32, 16 KiB": ("big", ["--connections", "32"]),
    "new connection each": ("small", ["--connections", "4", "--new"]),
    "POST of 1 KiB, 32": ("post", ["--connections", "32", "--post", "1024"]),
    "POST of 1 KiB, one": ("post", ["--connections", "1", "--post", "1024"]),
    "100 MB down": ("huge", ["--connections", "1"]),
    "100 MB up": ("post", ["--connections", "1", "--post", str(HUGE)]),
    NEW_HOST: ("open", ["--connections", "4", "--requests", str(NEW_HOSTS)]),
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
        for name, size in FILES.items():
            (self.dir / "www" / name).write_bytes(name[:1].encode() * size)
        ca = certs.CA(self.dir / "ca", "Bench CA")
        cert, key = ca.leaf("localhost", ["DNS:localhost", "IP:127.0.0.1", f"DNS:*.{peers.HOSTS}"])
        for out, parts in (("localhost.both.pem", (cert, key)), ("ca.both.pem", (ca.key, ca.cert))):
            certs.bundle(self.dir / "ca" / out, *parts)
            os.chmod(self.dir / "ca" / out, 0o644)  # of this bench alone; some proxies read it as another user
        self.ca, self.secret, self.origin_port = ca.cert, secrets.token_hex(20), peers.free_port()
        self.hosts = 0  # how many hosts anybody will have asked for

    def command(self, peer, asked, options, host="localhost"):
        """The load's words: `asked` of the origin, through this proxy."""
        words = ["taskset", "-c", peers.LOAD_CPU, self.loadgen, "--proxy", f"127.0.0.1:{peer.port}", "--target",
                 f"{host}:{self.origin_port}", "--ca", peer.ca, "--body", FILES.get(asked, SMALL), "--path", f"/{asked}", *options]
        words += ["--reverse"] if peer.reverse else []
        words += ["--auth", peer.auth] if peer.auth else []
        return [str(word) for word in words]

    def load(self, peer, case, seconds):
        asked, options = CASES[case]
        if case == NEW_HOST:
            command = self.command(peer, asked, [*options, "--hosts", peer.hosts_asked], peers.HOSTS)
            peer.hosts_asked += NEW_HOSTS
        else:
            command = self.command(peer, asked, [*options, "--seconds", seconds])
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds * 5 + 60)
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
    bench.hosts = NEW_HOSTS * (rounds + 1) if NEW_HOST in cases else 0
    origin, running, measured = peers.start_origin(bench), [], {}
    try:
        for name in names:
            try:
                running.append(peers.PEERS[name](bench))
            except peers.Missing as why:
                print(f"# {name} is not measured: {why}", file=sys.stderr)
        for case in cases:
            able = [peer for peer in running if case != NEW_HOST or peer.any_host]
            for peer in able:
                bench.load(peer, case, seconds / 4)
            for _ in range(rounds):
                for peer in able:
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
