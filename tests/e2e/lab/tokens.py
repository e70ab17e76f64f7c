#!/usr/bin/env python3
"""A token server for a registry, written from "Token Authentication Specification" and "Token Authentication Implementation"
of the Distribution project: who asks with Basic gets a JWT for the scopes that are asked for. What a test writes into
DIR/mode makes it answer otherwise, with a token all the same.

usage: tokens.py --dir DIR --name HOST --service NAME
DIR/login has USER:PASSWORD, DIR/mark a text that stands in each token; DIR/sign.pem and sign.key are made for its signatures.
Says {"port": N, "ca": PATH} when it is ready; DIR/requests.jsonl has a line for each request: user, scope, token.
"""
import argparse
import base64
import gzip
import http.server
import json
import pathlib
import secrets
import ssl
import subprocess
import time
import urllib.parse

import certs


def url64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def token(self, user, scopes):
        o, now = self.server.options, int(time.time())
        access = [{"type": kind, "name": name, "actions": actions.split(",")}
                  for kind, name, actions in (scope.split(":", 2) for scope in scopes if scope.count(":") == 2)]
        head = {"typ": "JWT", "alg": "RS256", "x5c": [o.chain]}
        claims = {"iss": "tokens", "sub": user, "aud": o.service, "exp": now + 300, "nbf": now - 10, "iat": now,
                  "jti": secrets.token_hex(8), "mark": o.mark, "access": access}
        text = ".".join(url64(json.dumps(part).encode()) for part in (head, claims))
        signed = subprocess.run(["openssl", "dgst", "-sha256", "-sign", o.dir / "sign.key"], input=text.encode(),
                                capture_output=True, check=True)
        return f"{text}.{url64(signed.stdout)}"

    def answer(self, status, body, **fields):
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": len(body), **fields}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        o, query = self.server.options, urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        scheme, _, pair = self.headers.get("Authorization", "").partition(" ")
        login = base64.b64decode(pair).decode() if scheme == "Basic" else ""
        if login != o.login:
            self.answer(401, b'{"errors":[{"code":"UNAUTHORIZED"}]}', WWW_Authenticate='Basic realm="tokens"')
            return
        scopes = [scope for given in query.get("scope", []) for scope in given.split(" ")]
        token = self.token(login.partition(":")[0], scopes)
        with open(o.dir / "requests.jsonl", "a", encoding="utf-8") as log:
            log.write(json.dumps({"user": login.partition(":")[0], "scope": scopes, "token": token}) + "\n")
        self.say(token)

    def say(self, token):
        path = self.server.options.dir / "mode"
        mode = path.read_text() if path.exists() else ""
        good = {"token": token, "access_token": token, "expires_in": 2 if mode == "brief" else 300,
                "issued_at": "2026-01-01T00:00:00Z", "refresh_token": token[::-1]}
        body, status, fields = json.dumps(good).encode(), 200, {}
        if mode == "page":
            body, fields = f"<html>{token}</html>".encode(), {"Content_Type": "text/html"}
        elif mode == "elsewhere":
            body = json.dumps({"data": good}).encode()
        elif mode == "two":
            body = json.dumps({**good, "access_token": token[1:]}).encode()
        elif mode == "line":
            body = json.dumps({"token": token + "\r\nX: y"}).encode()
        elif mode == "large":
            body = json.dumps({**good, "more": "x" * 100_000}).encode()
        elif mode == "gzip":
            body, fields = gzip.compress(body), {"Content_Encoding": "gzip"}
        elif mode == "redirect":
            status, fields = 302, {"Location": f"/token?token={token}"}
        elif mode == "part":
            status, fields = 206, {"Content_Range": f"bytes 0-{len(body) - 1}/{len(body)}"}
        elif mode == "cut":
            body, fields = body[:-20], {"Content_Length": len(body)}
        elif mode == "field":
            fields = {"X_Token": token, "ETag": f'"{token}"'}
        if mode == "cut":
            self.close_connection = True
        self.answer(status, body, **fields)


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--dir", type=pathlib.Path, required=True)
    parse.add_argument("--name", required=True)
    parse.add_argument("--service", required=True)
    o = parse.parse_args()
    o.login, o.mark = (o.dir / "login").read_text(), (o.dir / "mark").read_text()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=tokens", "-keyout",
                    o.dir / "sign.key", "-out", o.dir / "sign.pem"], check=True, capture_output=True)
    o.chain = "".join((o.dir / "sign.pem").read_text().splitlines()[1:-1])
    ca = certs.CA(o.dir / "ca")
    cert, key = ca.leaf(o.name)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.options = True, o
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print("ready", json.dumps({"port": server.server_address[1], "ca": str(ca.cert)}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
