#!/usr/bin/env python3
"""The approval page with all the tickets there may be: what its list costs the processes of the gateway with ten that wait and
with a thousand, how long a client waits from the operator's word to the first byte in both, how much of it a browser loads, and
what a thousand browsers cost that look at it. Adds its rows to bench.json: case, proxy, metric, unit, value; tells what is past its bound.
"""
import argparse
import gzip
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import sys
import time
import urllib.parse

import approve
import bench as benches
import peers

VIEWERS = 1000
FEW, MANY, EACH = 10, 960, 60  # of all 1,024 that there may be; of one sandbox
LIST = "the page's list"
RULES = approve.RULE + '  - {{ id: waits, match: {{ host: localhost, port: {port}, method: PUT, path: /w/* }}, decide: hold, use: origin }}\n'


class Page:
    def __init__(self, link):
        url = urllib.parse.urlsplit(link)
        self.port, self.host, self.cookie = url.port, url.netloc, None
        form = self.ask("GET", f"{url.path}?{url.query}")[1]
        hidden = dict(re.findall(r'<input[^>]*type="hidden"[^>]*name="([^"]+)"[^>]*value="([^"]*)"', form.decode()))
        answer, _ = self.ask("POST", "/sign-in", urllib.parse.urlencode(hidden))
        self.cookie = answer.getheader("Set-Cookie").split(";")[0]

    def ask(self, method, path, body=None):
        fields = {"Host": self.host, "Origin": f"http://{self.host}", "Sec-Fetch-Site": "same-origin"}
        if self.cookie:
            fields["Cookie"] = self.cookie
        if body is not None:
            fields["Content-Type"] = "application/x-www-form-urlencoded"
        conn = http.client.HTTPConnection("127.0.0.1", self.port)
        conn.request(method, path, body, fields)
        answer = conn.getresponse()
        data = answer.read()
        conn.close()
        if answer.status not in (200, 303):
            sys.exit(f"desk: {method} {path}: {answer.status}")
        return answer, data

    def weight(self):
        """Bytes that a browser loads with an empty cache, as gzip makes them."""
        html = self.ask("GET", "/")[1]
        loads = set(re.findall(rb'(?:href|src)="(/[^"]+\.(?:css|js|svg)[^"]*)"', html))
        if any(re.findall(rb'(?:href|src)="(https?:[^"]+)"', html)):
            sys.exit("desk: the page asks for something elsewhere")
        return sum(len(gzip.compress(self.ask("GET", p.decode())[1])) for p in loads)


def view(page):
    """A browser that looks at the page: the stream of what happens, from its first event on."""
    raw = socket.create_connection(("127.0.0.1", page.port))
    raw.settimeout(60)
    raw.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {page.host}\r\nCookie: {page.cookie}\r\nSec-Fetch-Site: same-origin\r\n\r\n".encode())
    if not until(raw, b"\n\n").startswith(b"HTTP/1.1 200"):
        sys.exit("desk: a viewer is turned away")
    return raw


def until(raw, end):
    said = b""
    while end not in said:
        more = raw.recv(4096)
        if not more:
            sys.exit(f"desk: a viewer's stream ended behind {said[-200:]}")
        said += more
    return said


def viewers(bench, peer, control, page):
    """KiB that they are, once each of them was told of a ticket."""
    before = peer.memory_kib()
    streams = [view(page) for _ in range(VIEWERS)]
    once(bench, peer, control, 0)
    for raw in streams:
        until(raw, b"event: ticket")
    grew = peer.memory_kib() - before
    for raw in streams:
        raw.close()
    return grew


def asked(bench, peer, auth, path, n):
    """A write through the gateway, whose client stays."""
    target = f"localhost:{bench.origin_port}"
    raw = socket.create_connection(("127.0.0.1", peer.port))
    raw.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {auth}\r\n\r\n".encode())
    said = b""
    while b"\r\n\r\n" not in said:
        said += raw.recv(4096)
    tls = ssl.create_default_context(cafile=peer.ca).wrap_socket(raw, server_hostname="localhost")
    body = b'{"n":%d,"title":"One of many that wait"}' % n
    tls.sendall(b"PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                (path.encode(), target.encode(), len(body), body))
    return tls


def waiting(control, path):
    return [t for t in control.ask("GET", "/api/v1/tickets?state=pending&limit=500")["tickets"] if t["path"] == path]


def fill(bench, peer, control, page, few, many):
    """So many wait that nobody waits for any more."""
    names = sorted(peer.others)
    for n in range(few, many):
        path = f"/w/{n}"
        tls = asked(bench, peer, peer.others[names[n // EACH]], path, n)
        while not waiting(control, path):
            pass
        tls.close()


def once(bench, peer, control, n):
    """Microseconds from the approval to the first byte."""
    with asked(bench, peer, peer.auth, "/post", n) as tls:
        ticket = None
        while not ticket:
            ticket = next(iter(waiting(control, "/post")), None)
        began = time.monotonic()
        control.ask("POST", f"/api/v1/tickets/{ticket['id']}/approve", {"digest": ticket["digest"]})
        first = tls.recv(1)
        took = time.monotonic() - began
        if first + tls.recv(11) != b"HTTP/1.1 200":
            sys.exit("desk: what was approved was not answered by the origin")
    return took * 1e6


def measure(bench, peer, control, page, times):
    for _ in range(3):
        page.ask("GET", "/")
    before = peer.cpu_us()
    for _ in range(times):
        page.ask("GET", "/")
    cpu = (peer.cpu_us() - before) / times
    took = sorted(once(bench, peer, control, n) for n in range(times))
    return cpu, took[len(took) // 2], took[len(took) * 99 // 100]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--loadgen", required=True)
    options.add_argument("--prefix", required=True, help="where Countersign is installed, or its build directory")
    options.add_argument("--times", type=int, default=100)
    options.add_argument("--out", default="bench.json")
    args = options.parse_args()
    bench = benches.Bench(os.path.abspath(args.loadgen), args.prefix)
    origin = peers.start_origin(bench)
    peer = peers.start_countersign(bench, RULES.format(port=bench.origin_port), [f"many-{n:02}" for n in range(-(-MANY // EACH))])
    try:
        home = bench.dir / "countersign"
        control = approve.Control(home / "state/control.sock")
        page = Page(re.search(r"page\s+(http\S+)", (bench.dir / "countersign.out").read_text())[1])
        fill(bench, peer, control, page, 0, FEW)
        few = measure(bench, peer, control, page, args.times)
        fill(bench, peer, control, page, FEW, MANY)
        many = measure(bench, peer, control, page, args.times)
        weight = page.weight()
        live = viewers(bench, peer, control, page)
    finally:
        peer.stop()
        origin.stop()
    shutil.rmtree(bench.dir)
    rows = [{"case": f"{case}, {n} wait", "proxy": "countersign", "metric": metric, "unit": unit, "value": round(value)}
            for n, got in ((FEW, few), (MANY, many))
            for case, metric, unit, value in ((LIST, "cpu", "us/request", got[0]), ("approval to first byte", "p50", "us", got[1]),
                                              ("approval to first byte", "p99", "us", got[2]))]
    rows.append({"case": "the page, all it loads, gzip", "proxy": "countersign", "metric": "weight", "unit": "bytes", "value": weight})
    rows.append({"case": f"{VIEWERS} browsers look at the page", "proxy": "countersign", "metric": "memory", "unit": "KiB", "value": live})
    for row in rows:
        print(f"{row['case']}: {row['metric']} {row['value']} {row['unit']}")
    out, cases = pathlib.Path(args.out), {r["case"] for r in rows}
    old = json.loads(out.read_text()) if out.exists() else []
    out.write_text(json.dumps([r for r in old if r["case"] not in cases] + rows, indent=1) + "\n")
    if many[0] > 3 * few[0] or many[2] > 2 * few[2] or weight > 60 * 1024 or live > 100 * 1024:
        print(f"past its bounds: the list {many[0] / few[0]:.1f} times (3), an approval's p99 {many[2] / few[2]:.1f} times (2), "
                 f"{weight} bytes (61440), {VIEWERS} viewers {live} KiB (102400)")


if __name__ == "__main__":
    main()
