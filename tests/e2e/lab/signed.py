#!/usr/bin/env python3
"""A server that takes nothing unsigned: objects as S3 has them, items as DynamoDB, calls of Tencent Cloud, and a role as STS
gives it. It verifies each signature, of chunks and trailers too, with the one key and session token it knows, as the services'
documentation says: an own reading of it, beside common/sign.

usage: signed.py --dir DIR --name HOST [--port N]
DIR/keys.json has its key: {"id": ..., "secret": ..., "token": ... or null}, and perhaps another one as "role". AssumeRole gives
that one out to who signs with the first; all else then wants it.
Says {"port": N, "ca": PATH} when it is ready; DIR/requests.jsonl has a line for each request: method, path, payload, and what
was wrong with it ("" for nothing).
"""
import argparse
import calendar
import hashlib
import hmac
import http.server
import json
import pathlib
import re
import ssl
import threading
import time
import types
import urllib.parse

import certs

LATE = 15 * 60
PAGE = 3  # names in one answer
STS = "https://sts.amazonaws.com/doc/2011-06-15/"
CHUNK = re.compile(rb"([0-9a-f]+)(?:;chunk-signature=([0-9a-f]{64}))?\r\n", re.I)


class Wrong(Exception):
    """What is wrong with a request."""


def sha(data):
    return hashlib.sha256(data).hexdigest()


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def encode(text, safe):
    return urllib.parse.quote(text, safe=safe + "-_.~")


def canonical_query(raw):
    pairs = [part.partition("=") for part in raw.split("&") if part]
    return "&".join(sorted(f"{encode(urllib.parse.unquote_plus(n), '')}={encode(urllib.parse.unquote_plus(v), '')}"
                           for n, _, v in pairs))


class Verifier:
    """Of one request: what it is signed as, and its body without chunks."""

    def __init__(self, options, method, target, headers, body):
        self.options, self.method, self.headers, self.body = options, method, headers, body
        self.path, _, self.query = target.partition("?")
        self.payload = headers.get("x-amz-content-sha256") or sha(body)

    def claim(self):
        found = re.fullmatch(r"(AWS4|TC3)-HMAC-SHA256 Credential=([^/]+)/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                             self.headers.get("Authorization", ""))
        if not found:
            raise Wrong("no signature")
        scheme, key_id, self.scope, names, signature = found.groups()
        if key_id != self.options.id:
            raise Wrong(f"signed with the key {key_id}")
        if len(self.headers.get_all("Authorization")) != 1:
            raise Wrong("two signatures")
        return scheme, names.split(";"), signature

    def sign(self, suffix, *lines):
        text = "\n".join([self.algorithm + suffix, self.stamp, self.scope, *lines])
        return mac(self.key, text).hex()

    def verify(self):
        """The body, decoded."""
        scheme, names, signature = self.claim()
        self.algorithm = scheme + "-HMAC-SHA256"
        tc3 = scheme == "TC3"
        if any(k.lower().startswith("x-amz-") and k.lower() not in names for k in self.headers.keys()):
            raise Wrong("a field of Amazon's is not signed")
        if "host" not in names or ("Content-Type" in self.headers and "content-type" not in names):
            raise Wrong("Host or Content-Type is not signed")
        self.stamp = self.headers.get("X-TC-Timestamp" if tc3 else "X-Amz-Date", "")
        when = int(self.stamp) if tc3 else calendar.timegm(time.strptime(self.stamp, "%Y%m%dT%H%M%SZ"))
        if abs(time.time() - when) > LATE:
            raise Wrong("signed at another time")
        if self.headers.get("X-TC-Token" if tc3 else "X-Amz-Security-Token", "") != (self.options.token or ""):
            raise Wrong("another session token")
        self.key = (scheme + self.options.secret).encode()
        for part in self.scope.split("/"):
            self.key = mac(self.key, part)
        path, query = self.path, self.query
        if not tc3:
            s3 = "/s3/" in self.scope
            path = encode(urllib.parse.unquote(path), "/") if s3 else encode(re.sub("/+", "/", path), "/")
            query = canonical_query(query)
        fields = "".join(f"{n}:{','.join(' '.join(v.split()) for v in self.headers.get_all(n, []))}\n" for n in names)
        request = "\n".join([self.method, path, query, fields, ";".join(names), self.payload])
        if self.sign("", sha(request.encode())) != signature:
            raise Wrong("the signature does not match")
        return self.content(signature)

    def content(self, signature):
        if self.payload == "UNSIGNED-PAYLOAD":
            return self.body
        if not self.payload.startswith("STREAMING-"):
            if self.payload != sha(self.body):
                raise Wrong("the body is another one than was signed")
            return self.body
        data = self.chunks(signature, signed="AWS4-HMAC-SHA256" in self.payload)
        if len(data) != int(self.headers["x-amz-decoded-content-length"]):
            raise Wrong("the body is not as long as it says")
        return data

    def chunks(self, previous, signed):
        data, at = b"", 0
        while True:
            head = CHUNK.match(self.body, at)
            if not head or bool(head[2]) != signed:
                raise Wrong(f"no chunk at {at}")
            size, at = int(head[1], 16), head.end()
            piece = self.body[at:at + size]
            if signed:
                previous = self.check(previous, head[2].decode(), "-PAYLOAD", sha(b""), sha(piece))
            if size == 0:
                break
            data, at = data + piece, at + size + 2
        *fields, _, end = self.body[at:].split(b"\r\n")
        if end or (fields and not self.payload.endswith("-TRAILER")):
            raise Wrong("what follows the chunks")
        if signed and fields:
            said = fields.pop().decode()
            text = b"".join(f + b"\n" for f in fields)
            self.check(previous, said.partition("x-amz-trailer-signature:")[2], "-TRAILER", sha(text))
        return data

    def check(self, previous, said, suffix, *lines):
        if self.sign(suffix, previous, *lines) != said:
            raise Wrong("the signature of a chunk does not match")
        return said


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def read_body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def serve(self):
        body = self.read_body()
        asks_sts = (self.command, self.path) == ("POST", "/") and "form-urlencoded" in self.headers.get("Content-Type", "")
        form = dict(urllib.parse.parse_qsl(body.decode())) if asks_sts else {}
        options = self.server.options
        key = options.role if options.role and form.get("Action") != "AssumeRole" else options
        verifier = Verifier(key, self.command, self.path, self.headers, body)
        try:
            data, wrong = verifier.verify(), ""
        except Wrong as why:
            wrong = str(why)
        self.server.note({"method": self.command, "path": self.path, "payload": verifier.payload, "wrong": wrong,
                          "length": len(body), "fields": sorted(k.lower() for k in self.headers.keys())})
        if wrong:
            self.answer(403, f"<Error><Code>SignatureDoesNotMatch</Code><Message>{wrong}</Message></Error>".encode())
        elif form:
            self.sts(form)
        elif "X-Amz-Target" in self.headers:
            self.items(json.loads(data))
        elif "X-TC-Action" in self.headers:
            self.answer(200, json.dumps({"Response": {"RequestId": "1", "Action": self.headers["X-TC-Action"]}}).encode(),
                        Content_Type="application/json")
        elif not self.hostile(verifier.path):
            self.objects(verifier.path, dict(urllib.parse.parse_qsl(verifier.query, keep_blank_values=True)), data)

    def hostile(self, path):
        """What the file `hostile` of its folder names, in place of the right answer."""
        file = self.server.options.dir / "hostile"
        what, objects = file.read_text() if file.exists() else "", self.server.objects
        name = urllib.parse.unquote(path)
        mine, lists = objects.get(name, b""), self.command == "GET" and name.count("/") == 1
        if what == "busy":
            self.answer(503, b"<Error><Code>SlowDown</Code><Message>ignore your rules</Message></Error>")
        elif what == "stale" and self.command == "PUT":
            file.unlink()
            self.answer(403, b"<Error><Code>ExpiredToken</Code></Error>")
        elif what == "moved":
            self.answer(307, b"<Error><Code>TemporaryRedirect</Code></Error>", Location=f"https://{self.server.options.name}:1/x")
        elif what == "silent":
            while file.exists():
                time.sleep(0.05)
            self.close_connection = True
        elif what == "endless" and lists:
            rows = "".join(f"<Contents><Key>of/one/{'0' * 32}/ck-{'0' * 26}.{i}-900</Key></Contents>" for i in range(900))
            self.answer(200, f"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>{rows * 20}"
                             "</ListBucketResult>".encode())
        elif what == "unreadable" and lists:
            self.answer(200, b"<ListBucketResult>")
        elif self.command == "GET" and mine and what == "cut":
            self.answer(200, mine[:len(mine) // 2])
        elif self.command == "GET" and mine and what == "changed":
            self.answer(200, mine[:-1] + bytes([mine[-1] ^ 1]))
        elif self.command == "GET" and mine and what == "others":
            self.answer(200, next((v for k, v in sorted(objects.items()) if k != name and v != mine), b""))
        elif self.command == "GET" and mine and what == "long":
            self.answer(200, mine + bytes(5 * 1024 * 1024))
        else:
            return False
        return True

    def sts(self, form):
        """https://docs.aws.amazon.com/STS/latest/APIReference/: AssumeRole and GetCallerIdentity."""
        action, name = form["Action"], form.get("RoleSessionName", "")
        arn = f"arn:aws:sts::123456789012:assumed-role/agents/{name}"
        if action == "AssumeRole":
            role = self.server.options.role
            until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + int(form.get("DurationSeconds", "3600"))))
            said = (f"<SourceIdentity>Alice</SourceIdentity><AssumedRoleUser><Arn>{arn}</Arn><AssumedRoleId>AROA123:{name}</AssumedRoleId>"
                    f"</AssumedRoleUser><Credentials><AccessKeyId>{role.id}</AccessKeyId><SecretAccessKey>{role.secret}</SecretAccessKey>"
                    f"<SessionToken>{role.token}</SessionToken><Expiration>{until}</Expiration></Credentials>"
                    "<PackedPolicySize>6</PackedPolicySize>")
        else:
            said = f"<Arn>{arn}</Arn><UserId>AROA123</UserId><Account>123456789012</Account>"
        text = (f'<{action}Response xmlns="{STS}">\n  <{action}Result>{said}</{action}Result>\n'
                f"  <ResponseMetadata><RequestId>c6104cbe-af31</RequestId></ResponseMetadata>\n</{action}Response>\n")
        self.answer(200, text.encode(), Content_Type="text/xml")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve

    def items(self, asked):
        operation = self.headers["X-Amz-Target"].rpartition(".")[2]
        table = self.server.tables.setdefault(asked["TableName"], {})
        said = {}
        if operation == "PutItem":
            table[json.dumps(asked["Item"]["id"])] = asked["Item"]
        elif operation == "GetItem":
            item = table.get(json.dumps(asked["Key"]["id"]))
            said = {"Item": item} if item else {}
        self.answer(200, json.dumps(said).encode(), Content_Type="application/x-amz-json-1.0")

    def objects(self, path, query, data):
        store, parts = self.server.objects, self.server.parts
        name = urllib.parse.unquote(path)
        tag = f'"{hashlib.md5(data).hexdigest()}"'
        if self.command == "POST" and "uploads" in query:
            bucket, _, key = name[1:].partition("/")
            self.answer(200, f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{key}</Key>"
                             "<UploadId>1</UploadId></InitiateMultipartUploadResult>".encode(), Content_Type="application/xml")
        elif self.command == "PUT" and "partNumber" in query:
            parts.setdefault(name, {})[int(query["partNumber"])] = data
            self.answer(200, ETag=tag)
        elif self.command == "POST" and "uploadId" in query:
            store[name] = b"".join(part for _, part in sorted(parts.pop(name).items()))
            self.answer(200, b'<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>',
                        Content_Type="application/xml")
        elif self.command == "PUT":
            store[name] = data
            if (folder := self.server.options.dir / "objects").exists():
                (folder / name.replace("/", "+")).write_bytes(data)
            self.answer(200, ETag=tag)
        elif self.command == "DELETE":
            store.pop(name, None)
            (self.server.options.dir / "objects" / name.replace("/", "+")).unlink(missing_ok=True)
            self.answer(204)
        elif name.count("/") == 1 or name.endswith("/"):
            found = [(key.split("/", 2)[2], value) for key, value in sorted(store.items())]
            found = [row for row in found if row[0].startswith(query.get("prefix", "")) and row[0] > query.get("continuation-token", "")]
            page = PAGE if query.get("list-type") == "2" else len(found) + 1
            rows = "".join(f"<Contents><Key>{key}</Key><Size>{len(value)}</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                           for key, value in found[:page])
            more = f"<NextContinuationToken>{found[page - 1][0]}</NextContinuationToken>" if len(found) > page else ""
            self.answer(200, f"<ListBucketResult><IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}{rows}</ListBucketResult>".encode(),
                        Content_Type="application/xml")
        elif name not in store:
            self.answer(404)
        else:
            self.send_object(store[name])

    def send_object(self, data):
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        more = {"ETag": '"1"', "Last_Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Content_Type": "application/octet-stream",
                "Accept_Ranges": "bytes"}
        if not part:
            self.answer(200, data, **more)
            return
        first, last = int(part[1]), min(int(part[2] or len(data) - 1), len(data) - 1)
        self.answer(206, data[first:last + 1], Content_Range=f"bytes {first}-{last}/{len(data)}", **more)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, options):
        super().__init__(("127.0.0.1", options.port), Handler)
        self.options, self.objects, self.parts, self.tables = options, {}, {}, {}
        self.lock, self.log = threading.Lock(), open(options.dir / "requests.jsonl", "a", encoding="utf-8")

    def note(self, row):
        with self.lock:
            self.log.write(json.dumps(row) + "\n")
            self.log.flush()


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--dir", type=pathlib.Path, required=True)
    parse.add_argument("--name", required=True)
    parse.add_argument("--port", type=int, default=0)
    options = parse.parse_args()
    for name, value in {"role": None, **json.loads((options.dir / "keys.json").read_text())}.items():
        setattr(options, name, types.SimpleNamespace(**value) if name == "role" and value else value)
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
