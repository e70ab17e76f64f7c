#!/usr/bin/env python3
"""How long a client that waits for an approval still waits once it is given: from the operator's word on the control
socket to the first byte of the answer, which is that of the upstream. Ticket, digest, the word's record, the credential,
the durable intent and the way upstream and back lie between. Adds its row to bench.json: case, proxy, metric, unit, value.
"""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import statistics
import time

import bench as benches
import peers

CASE = "approval to first byte"
RULE = '  - {{ id: held, match: {{ host: localhost, port: {port}, method: PUT, path: /post }}, decide: hold, use: origin }}\n'


class Control(http.client.HTTPConnection):
    """The operator's API on the control socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None):
        self.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
        answer = self.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {text}")
        return json.loads(text)


def tunnel(bench, peer):
    """TLS to the origin through the gateway."""
    target, raw = f"localhost:{bench.origin_port}", socket.create_connection(("127.0.0.1", peer.port))
    raw.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {peer.auth}\r\n\r\n".encode())
    said = b""
    while b"\r\n\r\n" not in said:
        said += raw.recv(4096)
    return ssl.create_default_context(cafile=peer.ca).wrap_socket(raw, server_hostname="localhost")


def once(bench, peer, control, n):
    """Microseconds from the approval to the first byte."""
    with tunnel(bench, peer) as tls:
        body = b"held %d" % n
        tls.sendall(b"PUT /post HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" %
                    (bench.origin_port, len(body), body))
        waiting = []
        while not waiting:
            waiting = control.ask("GET", "/api/v1/tickets?state=pending&limit=500")["tickets"]
        began = time.monotonic()
        control.ask("POST", f"/api/v1/tickets/{waiting[0]['id']}/approve", {"digest": waiting[0]["digest"]})
        first = tls.recv(1)
        took = time.monotonic() - began
        if first + tls.recv(11) != b"HTTP/1.1 200":
            raise RuntimeError("what was approved was not answered by the origin")
    return took * 1e6


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--loadgen", required=True)
    options.add_argument("--prefix", required=True, help="where Countersign is installed, or its build directory")
    options.add_argument("--times", type=int, default=50)
    options.add_argument("--out", default="bench.json")
    args = options.parse_args()
    bench = benches.Bench(os.path.abspath(args.loadgen), args.prefix)
    origin = peers.start_origin(bench)
    peer = peers.start_countersign(bench, RULE.format(port=bench.origin_port))
    try:
        control = Control(bench.dir / "countersign/state/control.sock")
        took = sorted(once(bench, peer, control, n) for n in range(args.times))
    finally:
        peer.stop()
        origin.stop()
    shutil.rmtree(bench.dir)
    rows = [{"case": CASE, "proxy": "countersign", "metric": name, "unit": "us", "value": round(value)}
            for name, value in (("p50", statistics.median(took)), ("p99", took[len(took) * 99 // 100]))]
    print(f"{CASE}: p50 {rows[0]['value']} us, p99 {rows[1]['value']} us")
    out = pathlib.Path(args.out)
    old = json.loads(out.read_text()) if out.exists() else []
    out.write_text(json.dumps([r for r in old if r["case"] != CASE] + rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
