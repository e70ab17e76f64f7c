#!/usr/bin/env python3
"""A server whose callers sign with an HMAC, in ways that services document: as GitHub and Stripe sign what they send, as
Coinbase and Azure's App Configuration ask for it. It takes nothing unsigned.

usage: hmac_signed.py --dir DIR --name HOST
DIR/keys.json has what each way is verified with. Says {"port": N, "ca": PATH} when it is ready; DIR/requests.jsonl has a line for
each request, with what was wrong with it ("" for nothing).
"""
import argparse
import base64
import email.utils
import hashlib
import hmac
import http.server
import json
import pathlib
import re
import ssl
import threading
import time

import certs

LATE = 60


class Wrong(Exception):
    """What is wrong with a request."""


def one(headers, name):
    values = headers.get_all(name, [])
    if len(values) != 1:
        raise Wrong(f"{name} is there {len(values)} times")
    return values[0]


def now_is(seconds):
    if abs(time.time() - float(seconds)) > LATE:
        raise Wrong("signed at another time")


def same(signature, key, text, how=hashlib.sha256, written=bytes.hex):
    if not hmac.compare_digest(signature, written(hmac.new(key, text, how).digest())):
        raise Wrong(f"the signature {signature} does not match, over {text!r}")


def b64(data):
    return base64.b64encode(data).decode()


def github(keys, _method, _target, headers, body):
    """docs.github.com, Validating webhook deliveries"""
    same(one(headers, "X-Hub-Signature-256").removeprefix("sha256="), keys["github"].encode(), body)


def older(keys, _method, _target, headers, body):
    """the same, as it was before: with SHA-1"""
    same(one(headers, "X-Hub-Signature").removeprefix("sha1="), keys["older"].encode(), body, hashlib.sha1)


def stripe(keys, _method, _target, headers, body):
    """docs.stripe.com, Verify webhook signatures manually"""
    said = dict(part.split("=", 1) for part in one(headers, "Stripe-Signature").split(","))
    now_is(said["t"])
    same(said["v1"], keys["stripe"].encode(), said["t"].encode() + b"." + body)


def coin(keys, method, target, headers, body):
    """docs.cdp.coinbase.com, Exchange REST API authentication"""
    stamp = one(headers, "CB-ACCESS-TIMESTAMP")
    now_is(stamp)
    if (one(headers, "CB-ACCESS-KEY"), one(headers, "CB-ACCESS-PASSPHRASE")) != (keys["coin"]["id"], keys["coin"]["pass"]):
        raise Wrong("another key or passphrase")
    same(one(headers, "CB-ACCESS-SIGN"), base64.b64decode(keys["coin"]["key"]), f"{stamp}{method}{target}".encode() + body,
         written=b64)


def azure(keys, method, target, headers, body):
    """learn.microsoft.com, Azure App Configuration: HMAC authentication"""
    found = re.fullmatch(r"HMAC-SHA256 Credential=([^&]+)&SignedHeaders=x-ms-date;host;x-ms-content-sha256&Signature=(.+)",
                         one(headers, "Authorization"))
    if not found or found[1] != keys["azure"]["id"]:
        raise Wrong("no signature of this key")
    date, digest = one(headers, "x-ms-date"), one(headers, "x-ms-content-sha256")
    now_is(email.utils.parsedate_to_datetime(date).timestamp())
    if digest != b64(hashlib.sha256(body).digest()):
        raise Wrong("the body is another one than was signed")
    same(found[2], base64.b64decode(keys["azure"]["key"]),
         f"{method}\n{target}\n{date};{one(headers, 'Host')};{digest}".encode(), written=b64)


WAYS = {"github": github, "older": older, "stripe": stripe, "coin": coin, "azure": azure}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def serve(self):
        body, wrong = self.rfile.read(int(self.headers.get("Content-Length", 0))), ""
        way = self.path.split("/")[1].partition("?")[0]
        try:
            WAYS[way](self.server.keys, self.command, self.path, self.headers, body)
        except Wrong as why:
            wrong = str(why)
        self.server.note({"method": self.command, "path": self.path, "wrong": wrong, "body": body[:100].decode(errors="replace"),
                          "fields": [[k.lower(), v] for k, v in self.headers.items()]})
        said = b"wrong" if wrong else b"right"
        if self.path.endswith("/leak"): # in all the forms in which it may come back
            key = self.server.keys[way]["key"]
            raw = base64.b64decode(key)
            said = b" ".join([b"leak", key.encode(), raw.hex().encode(), base64.b64encode(b"x" + raw), base64.urlsafe_b64encode(raw)])
        self.send_response(403 if wrong else 200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, options):
        super().__init__(("127.0.0.1", 0), Handler)
        self.keys = json.loads((options.dir / "keys.json").read_text())
        self.lock, self.log = threading.Lock(), open(options.dir / "requests.jsonl", "a", encoding="utf-8")

    def note(self, row):
        with self.lock:
            self.log.write(json.dumps(row) + "\n")
            self.log.flush()


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--dir", type=pathlib.Path, required=True)
    parse.add_argument("--name", required=True)
    options = parse.parse_args()
    ca = certs.CA(options.dir / "ca")
    cert, key = ca.leaf(options.name)
    server = Server(options)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print("ready", json.dumps({"port": server.server_address[1], "ca": str(ca.cert)}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
