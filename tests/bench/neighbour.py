#!/usr/bin/env python3
"""What a sandbox waits while another one spends all it can, in one run.

One sandbox reads, one request at a time; then it does the same beside another one that asks for the manifest of many
rules, or has forms of megabytes taken apart, over several connections and without end. The medians of the rounds
count: beside the greedy one the usual answer may take at most twice as long. Adds its rows to bench.json: case,
proxy, metric, unit, value.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import shutil
import socket
import statistics
import sys

import bench as benches
import peers

CASE, MOST, GREEDY, RULES = "neighbour", 2, 4, 2000
READS = "keep-alive, one at a time"
POLICY = """  - { id: forms, match: { host: forms.test, scheme: http, method: POST, form: [{ field: never, equals: "1" }] }, decide: allow }
"""
FORM = b"&".join(b"k%d=v" % n for n in range(400000))  # some megabytes
ASKS = {
    "manifest": b"GET http://countersign.internal/v1/manifest HTTP/1.1\r\nHost: countersign.internal\r\n%s\r\n",
    "forms": b"POST http://forms.test/ HTTP/1.1\r\nHost: forms.test\r\nContent-Type: application/x-www-form-urlencoded\r\n"
             b"Content-Length: %d\r\n%%s\r\n%s" % (len(FORM), FORM),
}


def greedy(port, auth, ask):
    """Asks, takes the answer, and asks again, until it is ended."""
    os.sched_setaffinity(0, {int(peers.LOAD_CPU)})
    ask = ask % b"Proxy-Authorization: Basic %s\r\nConnection: close\r\n" % auth.encode()
    while True:
        with socket.create_connection(("127.0.0.1", port)) as sock:
            try:
                sock.sendall(ask)
                while sock.recv(1 << 20):
                    pass
            except ConnectionError:
                pass


def beside(peer, what, fn):
    workers = [multiprocessing.Process(target=greedy, args=(peer.port, peer.others["greedy"], ASKS[what]), daemon=True)
               for _ in range(GREEDY if what else 0)]
    for worker in workers:
        worker.start()
    try:
        return fn()
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--loadgen", required=True)
    options.add_argument("--prefix", required=True, help="where Countersign is installed, or its build directory")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=2)
    options.add_argument("--out", default="bench.json")
    args = options.parse_args()
    bench = benches.Bench(os.path.abspath(args.loadgen), args.prefix)
    rules = POLICY + "".join(f"  - {{ id: r{n}, match: {{ host: h{n}.test, path: /a/** }}, decide: hold }}\n" for n in range(RULES))
    origin = peers.start_origin(bench)
    peer = peers.start_countersign(bench, rules, ["greedy"])
    took = {None: [], **{what: [] for what in ASKS}}
    try:
        for _ in range(args.rounds):
            for what, found in took.items():
                found.append(beside(peer, what, lambda: bench.measure(peer, READS, args.seconds))["p50"])
    finally:
        peer.stop()
        origin.stop()
    shutil.rmtree(bench.dir)
    usual, rows = statistics.median(took.pop(None)), []
    rows.append({"case": CASE, "proxy": "countersign", "metric": "p50", "unit": "us", "value": round(usual)})
    for what, found in took.items():
        ratio = statistics.median(found) / usual
        print(f"beside {what}: p50 {statistics.median(found):.0f} us, {ratio:.2f} times the usual {usual:.0f} us")
        rows.append({"case": CASE, "proxy": "countersign", "metric": f"p50 beside {what}", "unit": "x usual", "value": round(ratio, 2)})
    out = pathlib.Path(args.out)
    old = json.loads(out.read_text()) if out.exists() else []
    out.write_text(json.dumps([r for r in old if r["case"] != CASE] + rows, indent=1) + "\n")
    sys.exit(1 if any(r["unit"] == "x usual" and r["value"] > MOST for r in rows) else 0)


if __name__ == "__main__":
    main()
