#!/usr/bin/env python3
"""The desk's server without a browser: limits, streams, exact bytes (E12, E15, E27, E34).

usage: server.py --desk BUILD/countersign-desk
"""
import argparse
import hashlib
import http.client
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e/lab"))
from patience import PATIENCE  # noqa: E402

BIG = "bnr" + "0" * 23
STREAMS = 1536  # SERVER_STREAMS of web-approval/server.h


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("countersign")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


def call(path, method, target, body=None, headers=None):
    c = Unix(path)
    c.request(method, target, body, {"Content-Type": "application/json", **(headers or {})} if body is not None else headers or {})
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, data, r


def raw(port, text, wait=True):
    s = socket.create_connection(("127.0.0.1", port), 10)
    s.sendall(text)
    if not wait:
        return s
    out = b""
    while True:
        got = s.recv(65536)
        if not got:
            return out
        out += got


def status_of(answer):
    return int(answer.split(b" ", 2)[1])


def heads(port):
    host = f"Host: localhost:{port}\r\n".encode()
    close = b"Connection: close\r\n\r\n"
    rows = [
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n" + close, 403), (b"GET / HTTP/1.1\r\n" + close, 400),
        (b"GET http://localhost/ HTTP/1.1\r\n" + host + close, 400), (b"CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n", 400),
        (b"POST /sign-in HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n" + close, 411),
        (b"POST /sign-in HTTP/1.1\r\n" + host + b"Content-Length: 65537\r\n" + close, 413),
        (b"GET / HTTP/1.1\r\n" + host + b"X: " + b"a" * 40000 + b"\r\n" + close, 431),
        (b"nonsense\r\n\r\n", 400),
    ]
    for text, want in rows:
        got = status_of(raw(port, text))
        assert got == want, (text[:60], got, want)
    print("ok E12 server")


def pipelined(port):
    one = f"GET /assets/icon.svg HTTP/1.1\r\nHost: localhost:{port}\r\n".encode()
    out = raw(port, (one + b"\r\n") * 300 + one + b"Connection: close\r\n\r\n")
    assert out.count(b"HTTP/1.1 200 OK") == 301


def crowd(port):
    """The 81st waits; it is served when another ends. A half request is ended in time."""
    held = [raw(port, b"GET / HT", wait=False) for _ in range(80)]
    late = raw(port, f"GET /assets/icon.svg HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode(), wait=False)
    late.settimeout(0.5)
    try:
        assert not late.recv(1), "the 81st was served"
    except TimeoutError:
        pass
    held.pop().close()
    late.settimeout(PATIENCE)
    assert late.recv(12) == b"HTTP/1.1 200"
    for s in held:
        s.settimeout(PATIENCE)
        assert s.recv(1) == b"", "half a request is not waited for"
    print("ok E34 server")


def bodies(sock):
    want = hashlib.sha256(b"x").digest() * 65536
    status, data, r = call(sock, "GET", f"/api/v1/tickets/{BIG}/body")
    assert status == 200 and data == want
    assert r.getheader("X-Content-Type-Options") == "nosniff" and r.getheader("Content-Type").startswith("text/plain")
    assert r.getheader("Content-Disposition").startswith("attachment") and "sandbox" in r.getheader("Content-Security-Policy")
    print("ok E15 server")


def stream(sock, last=None):
    c = Unix(sock)
    c.request("GET", "/api/v1/events", headers={"Last-Event-ID": last} if last else {})
    return c, c.getresponse()


def event(r):
    lines = []
    while True:
        line = r.readline().decode().rstrip("\n")
        if not line and lines:
            return dict(x.split(": ", 1) for x in lines if not x.startswith(":"))
        if line:
            lines.append(line)


def streams(sock, parent):
    c, r = stream(sock)
    hello = event(r)
    assert hello["event"] == "hello"
    parent.stdin.write("ticket\n")
    parent.stdin.flush()
    new = event(r)
    assert new["event"] == "ticket" and int(new["id"]) == int(hello["id"]) + 1
    c2, r2 = stream(sock, hello["id"])  # what was missed comes again
    assert event(r2)["event"] == "hello" and event(r2) == new
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    many = []
    while not many or many[-1][1].status == 200:
        assert len(many) < STREAMS, "one who looks may take every stream"
        many.append(stream(sock))
    assert many[-1][1].status == 503 and len(many) > 22, (many[-1][1].status, len(many))
    print(f"   {len(many) + 1} streams, then 503")
    for m in many + [(c, r), (c2, r2)]:
        m[0].close()
    assert call(sock, "GET", "/api/v1/tickets")[0] == 200


def strict(sock):
    status, data, _ = call(sock, "GET", "/api/v1/tickets?state=pending")
    first = json.loads(data)["tickets"][0]
    target = f"/api/v1/tickets/{first['id']}/approve"
    assert call(sock, "POST", target, json.dumps({"digest": first["digest"], "by": "me"}))[0] == 400
    assert call(sock, "POST", target, json.dumps({"digest": "0" * 64}))[0] == 409
    assert call(sock, "POST", target, json.dumps({"digest": first["digest"]}))[0] == 200
    assert call(sock, "POST", target, json.dumps({"digest": first["digest"]}))[0] == 409
    print("ok E27 server")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--desk", required=True)
    args = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="desk.") as tmp:
        parent = subprocess.Popen([sys.executable, os.path.join(HERE, "desk_parent.py"), "--desk", args.desk, "--dir", tmp],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            link = next(line.split()[1] for line in parent.stdout if line.startswith("signin "))
            port, sock = int(link.split(":")[2].split("/")[0]), tmp + "/control.sock"
            heads(port)
            pipelined(port)
            bodies(sock)
            streams(sock, parent)
            strict(sock)
            crowd(port)
        finally:
            parent.stdin.close()
            ended = parent.wait(10)
        assert ended == 0, "the desk died"
        print("server: all well")


if __name__ == "__main__":
    main()
