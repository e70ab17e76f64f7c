#!/usr/bin/env python3
"""What stays in memory while nobody asks anything: two thousand idle connections beside other proxies, and five hundred
sandboxes with a connection each. Each connection has asked once. Counted is what the proxy's processes have more than
before (proportional set size, as the kernel shares it out), by connection or sandbox. Adds its rows to bench.json.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys

import bench as benches
import peers

IDLE, CONNECTIONS = "idle connections, 2,000", 2000
MANY, SANDBOXES = "sandboxes with a connection, 500", 500


def idle(bench, peer, connections, auth=None):
    """A load whose connections all stand, each after one answer."""
    command = bench.command(peer, "small", ["--connections", connections, "--idle"])
    if auth:
        command[command.index("--auth") + 1] = auth
    load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = load.stdout.readline()
    if said != "ready\n":
        sys.exit(f"memory: {peer.name}, {connections} connections: exit {load.wait()}, {said}{load.stderr.read()}")
    return load


def end(loads):
    for load in loads:
        load.stdin.close()
    for load in loads:
        load.wait(60)


def connections(bench, names):
    found = {}
    for name in names:
        try:
            peer = peers.PEERS[name](bench)
        except peers.Missing as why:
            print(f"# {name} is not measured: {why}", file=sys.stderr)
            continue
        try:
            end([idle(bench, peer, 1)])
            before = peer.memory_kib()
            loads = [idle(bench, peer, CONNECTIONS)]
            found[IDLE, name] = (peer.memory_kib() - before) / CONNECTIONS
            end(loads)
        finally:
            peer.stop()
    return found


def sandboxes(bench):
    peer = peers.start_countersign(bench, others=[f"sandbox-{n}" for n in range(SANDBOXES)])
    try:
        before, loads = peer.memory_kib(), []
        for auth in peer.others.values():
            loads.append(idle(bench, peer, 1, auth))
        used = (peer.memory_kib() - before) / SANDBOXES
        end(loads)
    finally:
        peer.stop()
    return {(MANY, "countersign"): used}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--loadgen", required=True)
    options.add_argument("--prefix", required=True, help="where Countersign is installed, or its build directory")
    options.add_argument("--only", default="countersign,nginx,haproxy,squid", help="proxies, by comma")
    options.add_argument("--out", default="bench.json")
    args = options.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    bench = benches.Bench(os.path.abspath(args.loadgen), args.prefix)
    origin = peers.start_origin(bench)
    try:
        found = connections(bench, args.only.split(","))
        shutil.rmtree(bench.dir / "countersign", ignore_errors=True)
        found.update(sandboxes(bench))
    finally:
        origin.stop()
    shutil.rmtree(bench.dir)
    rows = [{"case": case, "proxy": proxy, "metric": "memory each", "unit": "KiB", "value": round(used, 1)}
            for (case, proxy), used in found.items()]
    for row in rows:
        print(f"{row['case']:<36}{row['proxy']:<13}{row['value']:>8.1f} KiB each")
    out = pathlib.Path(args.out)
    old = json.loads(out.read_text()) if out.exists() else []
    out.write_text(json.dumps([r for r in old if r["case"] not in (IDLE, MANY)] + rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
