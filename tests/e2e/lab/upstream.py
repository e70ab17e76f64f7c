#!/usr/bin/env python3
"""An upstream that records every byte and does what the path asks for.

Recorded in DIR, per connection N: N.in and N.out (the bytes after TLS), N.json (SNI, ALPN, TLS version).
requests.jsonl has one line a request: connection, offset in N.in, request line, fields, decoded body as a file.
effects.json counts complete requests by "METHOD path" (without query), written before the answer's first byte.

The path's first segment is the mode, the query its parameters; any other path is "ok". DIR/script.json may
map a path (or "METHOD path") to such a mode: {"/repos/a/b": "/status?code=500"}.

  /ok               200 and a small JSON body
  /echo             the request's fields, in the body: form=raw|base64|base64url|percent|hex|json, only=FIELD,
                    shift=N (filler bytes before, moves base64's alignment), header=1 (in X-Echo too), pre=N (N dots before);
                    form=basic is the decoded user:password, then=FORM writes that in another form
  /sse?n=3          an event stream of n events, each with the echo of the fields
  /big?kib=N        a body of N KiB
  /part             as /echo, or of bytes=b64 or kib=N, in parts: one range of bytes is honoured, If-Range too (tag "a"); many=1 answers with
                    multipart/byteranges, whole=1 ignores the range, lie=1 gives one byte less than it says is there
  /refuse?sha=HEX   401 to the Authorization whose SHA-256 that is, else as /ok
  /status?code=N&reason=TEXT      /redirect?to=URL      /slow?ms=N      /raw?b64=BYTES (sent as they are)
  /early?bytes=N    promises 1000 bytes, sends N, closes      /drop     reads the request, closes without a word
  /drophead         closes after the head   /reset  the same with a TCP reset   /earlyanswer  answers the head alone
  /continue         100 Continue first
  /ws               a WebSocket: sends b64=BYTES (frames, as they are), echoes messages with echo=1, answers pings and closes;
                    protocol=NAME, h=Name:value, accept=bad, version=1.0, noclose=1, end=1 (ends at once), flood=N (N messages of 64 KiB first). Every message goes to ws.jsonl.
Common parameters: chunk=7,13 (chunked, pieces of these sizes in turn, each its own write), split=7,13 (the same
writes without chunking), enc=gzip|deflate, close=1, ct=TYPE, h=Name:value (an extra field, repeatable),
gate=KEY (every piece after the first waits until /release?gate=KEY was asked once more; not counted, not recorded).
"""
import argparse
import base64
import binascii
import collections
import gzip
import hashlib
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import certs  # noqa: E402
import websocket  # noqa: E402

GATE_SECONDS = 300


class Gates:
    """Lets a test decide when the next piece of an answer goes out."""

    def __init__(self):
        self.turn, self.open = threading.Condition(), collections.Counter()

    def release(self, key):
        with self.turn:
            self.open[key] += 1
            self.turn.notify_all()

    def wait(self, key):
        with self.turn:
            if not self.turn.wait_for(lambda: self.open[key] > 0, GATE_SECONDS):
                raise ConnectionError(f"nobody released gate {key}")
            self.open[key] -= 1


class Recorder:
    def __init__(self, directory):
        self.dir, self.lock = pathlib.Path(directory), threading.Lock()
        self.dir.mkdir(parents=True, exist_ok=True)
        self.effects, self.connections, self.requests = collections.Counter(), itertools.count(1), itertools.count(1)
        self._write("effects.json", {})

    def _write(self, name, value):
        temporary = self.dir / (name + ".new")
        temporary.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")
        os.replace(temporary, self.dir / name)

    def connection(self, meta):
        n = next(self.connections)
        self._write(f"{n}.json", meta)
        return n, open(self.dir / f"{n}.in", "ab", buffering=0), open(self.dir / f"{n}.out", "ab", buffering=0)

    def request(self, conn, offset, request, body, complete):
        with self.lock:
            n = next(self.requests)
            (self.dir / f"body-{n}").write_bytes(body)
            record = {"n": n, "conn": conn, "offset": offset, "line": request.line, "method": request.method,
                      "target": request.target, "fields": request.fields, "complete": complete,
                      "body": f"body-{n}", "body_sha256": hashlib.sha256(body).hexdigest(), "body_len": len(body)}
            with open(self.dir / "requests.jsonl", "a", encoding="utf-8") as out:
                out.write(json.dumps(record) + "\n")
            if complete:
                self.effects[f"{request.method} {request.path}"] += 1
                self._write("effects.json", self.effects)


    def silent(self, conn, request):
        """A kept connection that ended instead of an answer: whoever asked may ask once more, if that is safe."""
        with self.lock, open(self.dir / "silent.jsonl", "a", encoding="utf-8") as out:
            out.write(json.dumps({"conn": conn, "method": request.method, "target": request.target}) + "\n")

    def message(self, conn, op, data, masks):
        with self.lock, open(self.dir / "ws.jsonl", "a", encoding="utf-8") as out:
            out.write(json.dumps({"conn": conn, "op": op, "data": data.decode("latin-1"), "masks": [m.hex() for m in masks]}) + "\n")


class Request:
    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.line, self.raw_fields = lines[0], "\r\n".join(lines[1:])
        self.method, _, rest = self.line.partition(" ")
        self.target = rest.rpartition(" ")[0]
        self.fields = [[a, b.strip(" \t")] for a, _, b in (line.partition(":") for line in lines[1:] if line)]
        parts = urllib.parse.urlsplit(self.target)
        self.path, self.query = parts.path, urllib.parse.parse_qs(parts.query, keep_blank_values=True)

    def field(self, name):
        return ",".join(b for a, b in self.fields if a.lower() == name)


class Params:
    def __init__(self, query):
        self.query = query

    def __call__(self, name, default=None):
        return self.query.get(name, [default])[-1]

    def number(self, name, default=0):
        return int(self(name, default))

    def sizes(self, name):
        return [max(1, int(n)) for n in self(name, "").split(",") if n]


class Connection:
    """One client, from handshake to close."""

    def __init__(self, server, sock, meta):
        self.server, self.sock, self.buffer, self.received = server, sock, b"", 0
        self.asked, self.sent, self.number = 0, False, None
        self.meta = meta

    def _read(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError
        if self.number is None:
            self.number, self.log_in, self.log_out = self.server.recorder.connection(self.meta)
        self.log_in.write(data)
        self.received += len(data)
        self.buffer += data

    def _until(self, mark):
        while mark not in self.buffer:
            self._read()
        taken, _, self.buffer = self.buffer.partition(mark)
        return taken

    def _exactly(self, n):
        while len(self.buffer) < n:
            self._read()
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def _body(self, request):
        if "chunked" in request.field("transfer-encoding").lower():
            pieces = []
            while size := int(self._until(b"\r\n").split(b";")[0], 16):
                pieces.append(self._exactly(size))
                self._until(b"\r\n")
            while self._until(b"\r\n"):
                pass
            return b"".join(pieces)
        return self._exactly(int(request.field("content-length") or 0))

    def send(self, data):
        self.sent = self.sent or bool(data)
        self.log_out.write(data)
        self.sock.sendall(data)

    def serve(self):
        while True:
            offset = self.received - len(self.buffer)
            request = Request(self._until(b"\r\n\r\n"))
            mode, params = self.server.mode_of(request)
            if mode == "release":
                self.server.gates.release(params("gate", ""))
                self.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                continue
            if mode in ("drophead", "earlyanswer"):
                self.server.recorder.request(self.number, offset, request, b"", False)
                if mode == "earlyanswer":
                    self.answer(request, params, b"early\n", close=True)
                return
            if mode == "continue" or "100-continue" in request.field("expect").lower():
                self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            try:
                body = self._body(request)
            except (EOFError, OSError):
                self.server.recorder.request(self.number, offset, request, self.buffer, False)
                raise
            self.server.recorder.request(self.number, offset, request, body, True)
            self.asked, self.sent = self.asked + 1, False
            if not self.act(mode, params, request):
                if self.asked > 1 and not self.sent:
                    self.server.recorder.silent(self.number, request)
                return

    def act(self, mode, params, request):
        """Answers; False ends the connection."""
        if mode == "drop":
            return False
        if mode == "reset":
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if mode == "raw":
            self.send(base64.b64decode(params("b64", "")))
            return not params("close")
        if mode == "early":
            self.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * min(999, params.number("bytes", 10)))
            return False
        if mode == "slow":
            if params("gate"):
                self.server.gates.wait(params("gate"))
            time.sleep(params.number("ms") / 1000)
        if mode == "ws" and request.field("upgrade"):
            return self.websocket(params, request)
        if mode == "sse":
            return self.events(params, request)
        if mode == "refuse":
            known = hashlib.sha256(request.field("authorization").encode()).hexdigest()
            return self.answer(request, params, b"who?\n", 401 if known == params("sha") else 200)
        if mode == "status":
            return self.answer(request, params, b"status\n", params.number("code", 200), params("reason", "Status"))
        if mode == "redirect":
            return self.answer(request, params, b"", 302, "Found", [("Location", params("to", "/"))])
        if mode == "big":
            return self.answer(request, params, (b"0123456789abcde\n" * 64) * params.number("kib", 16))
        if mode == "part":
            return self.part(request, params)
        if mode == "echo":
            text = echo(request, params)
            extra = [("X-Echo", text.decode("latin-1").replace("\r\n", " "))] if params("header") else []
            return self.answer(request, params, b"." * params.number("pre") + text, extra=extra)
        return self.answer(request, params, b'{"ok":true}\n', extra=[("Content-Type", "application/json")])

    def part(self, request, params):
        whole = bytes(n * 7 % 251 for n in range(1024)) * params.number("kib") or b"." * params.number("pre") + echo(request, params) + b"." * params.number("post")
        extra = [("ETag", '"a"'), ("Accept-Ranges", "bytes")]
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.field("range"))
        if not match or params("whole") or request.field("if-range") not in ("", '"a"'):
            return self.answer(request, params, whole, extra=extra)
        first, last = (max(0, len(whole) - int(match[2])), len(whole) - 1) if not match[1] else (int(match[1]), min(int(match[2] or len(whole)), len(whole) - 1))
        if first >= len(whole):
            return self.answer(request, params, b"", 416, "Range Not Satisfiable", extra=[("Content-Range", f"bytes */{len(whole)}")])
        if params("many"):
            return self.answer(request, params, b"--x\r\nContent-Range: bytes 0-1/9\r\n\r\nab\r\n--x--\r\n", 206, "Partial", extra=[("Content-Type", "multipart/byteranges; boundary=x")])
        extra += [("Content-Range", f"bytes {first}-{last - bool(params('lie'))}/{len(whole)}"), ("Content-MD5", "of-the-part")]
        return self.answer(request, params, whole[first:last + 1 - bool(params("lie"))], 206, "Partial Content", extra=extra)

    def websocket(self, params, request):
        key = request.field("sec-websocket-key")
        fields = ["Upgrade: websocket", "Connection: Upgrade"]
        fields.append("Sec-WebSocket-Accept: " + websocket.accept_of("other" if params("accept") else key))
        fields += [f"Sec-WebSocket-Protocol: {params('protocol')}"] if params("protocol") else []
        fields += [h.replace(":", ": ", 1) for h in params.query.get("h", [])]
        self.send(("\r\n".join([f"HTTP/{params('version', '1.1')} 101 Switching Protocols", *fields]) + "\r\n\r\n").encode())
        self.send(base64.b64decode(params("b64", "")))
        for _ in range(params.number("flood")):
            self.send(websocket.frame(websocket.BINARY, b"0123456789abcdef" * 4096, mask=None))
        if params("end"):
            return False
        def more():
            self._read()
            data, self.buffer = self.buffer, b""
            return data
        taken, self.buffer = self.buffer, b""
        reader = websocket.Reader(more, True, taken)
        while True:
            op, data = reader.message()
            self.server.recorder.message(self.number, op, data if op != websocket.CLOSE else repr(data).encode(), reader.masks)
            reader.masks = []
            if op == websocket.CLOSE:
                if not params("noclose"):
                    self.send(websocket.close(data[0], mask=None))
                    return False
            elif op == websocket.PING:
                self.send(websocket.frame(websocket.PONG, data, mask=None))
            elif op != websocket.PONG and params("echo"):
                self.send(websocket.frame(op, data, mask=None))

    def events(self, params, request):
        self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        text = echo(request, params).replace(b"\r\n", b"\ndata: ")
        for n in range(params.number("n", 3)):
            if n and params("gate"):
                self.server.gates.wait(params("gate"))
            event = b"id: %d\ndata: %s\n\n" % (n, text)
            self.send(b"%x\r\n%s\r\n" % (len(event), event))
        self.send(b"0\r\n\r\n")
        return True

    def answer(self, request, params, body, code=200, reason="OK", extra=(), close=False):
        close = close or bool(params("close")) or request.line.endswith("HTTP/1.0")
        fields = [("Content-Type", params("ct", "text/plain"))] if not dict(extra).get("Content-Type") else []
        fields += list(extra) + [tuple(h.split(":", 1)) for h in params.query.get("h", [])]
        if params("enc"):
            body = gzip.compress(body, mtime=0) if params("enc") == "gzip" else zlib.compress(body)
            fields.append(("Content-Encoding", params("enc")))
        chunks, splits = params.sizes("chunk"), params.sizes("split")
        fields.append(("Transfer-Encoding", "chunked") if chunks else ("Content-Length", str(len(body))))
        if close:
            fields.append(("Connection", "close"))
        head = f"HTTP/1.1 {code} {reason}\r\n" + "".join(f"{a}: {b.strip()}\r\n" for a, b in fields) + "\r\n"
        if request.method == "HEAD" or code in (204, 304):
            body = b""
        if not (chunks or splits):
            self.send(head.encode("latin-1") + body)
            return not close
        self.send(head.encode("latin-1"))
        for n, piece in enumerate(cut(body, chunks or splits)):
            if n and params("gate"):
                self.server.gates.wait(params("gate"))
            self.send(b"%x\r\n%s\r\n" % (len(piece), piece) if chunks else piece)
        if chunks and request.method != "HEAD":
            self.send(b"0\r\n\r\n")
        return not close


def cut(body, sizes):
    at, turn = 0, itertools.cycle(sizes)
    while at < len(body):
        n = next(turn)
        yield body[at:at + n]
        at += n


def echo(request, params):
    only = params("only")
    text = (request.field(only.lower()) if only else request.raw_fields).encode("latin-1")
    if params("form") == "basic":  # the decoded user:password of the Authorization field
        text = base64.b64decode(request.field("authorization").rpartition(" ")[2] or b"")
    text = b"~" * params.number("shift") + text
    forms = {"base64": base64.b64encode, "base64url": base64.urlsafe_b64encode, "hex": binascii.hexlify,
             "percent": lambda b: "".join(f"%{c:02X}" for c in b).encode(),
             "json": lambda b: ('"' + "".join(f"\\u{c:04x}" for c in b) + '"').encode()}
    return forms.get(params("then") or params("form"), bytes)(text)


class Server:
    def __init__(self, directory):
        self.recorder, self.gates = Recorder(directory), Gates()
        self.script = pathlib.Path(directory) / "script.json"

    def mode_of(self, request):
        url, query = request.path, request.query
        if self.script.exists():
            script = json.loads(self.script.read_text())
            mapped = script.get(f"{request.method} {request.path}") or script.get(request.path)
            if mapped:
                parts = urllib.parse.urlsplit(mapped)
                url, query = parts.path, urllib.parse.parse_qs(parts.query, keep_blank_values=True)
        return url.split("/")[1] if "/" in url else "ok", Params(query)

    def handle(self, sock, context, peer):
        meta = {"peer": peer, "tls": None}
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context:
                sock = context.wrap_socket(sock, server_side=True)
                meta = {"peer": peer, "tls": sock.version(), "sni": getattr(sock, "seen_name", None),
                        "alpn": sock.selected_alpn_protocol()}
            Connection(self, sock, meta).serve()
        except (EOFError, OSError, ValueError) as why:
            if not isinstance(why, EOFError):
                print(f"connection from {peer}: {why}", file=sys.stderr, flush=True)
        finally:
            sock.close()

    def listen(self, port, context):
        listener = socket.create_server(("127.0.0.1", port), backlog=128)

        def accept():
            while True:
                sock, peer = listener.accept()
                threading.Thread(target=self.handle, args=(sock, context, peer[1]), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        return listener.getsockname()[1]


def tls_context(ca, names):
    """One context, and one a name: NAME, NAME:expired, NAME:selfsigned, NAME:wrong (a certificate for another)."""
    def context(pair):
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(*map(str, pair))
        made.set_alpn_protocols(["http/1.1"])
        return made
    by_name = {}
    for entry in names:
        name, _, flaw = entry.partition(":")
        certified = "other.invalid" if flaw == "wrong" else name
        by_name[name] = context(ca.leaf(certified, sans=[f"DNS:{certified}"] if flaw == "wrong" else None,
                                        days=-1 if flaw == "expired" else 30, self_signed=flaw == "selfsigned"))
    first = next(iter(by_name.values()))

    def choose(sock, name, _context):
        sock.seen_name = name
        sock.context = by_name.get(name, first)
    for made in by_name.values():
        made.sni_callback = choose
    return first


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dir", required=True, help="where everything is recorded")
    options.add_argument("--ca-dir", help="a directory with ca.pem and ca.key; made when missing")
    options.add_argument("--name", action="append", default=[], help="NAME[:expired|:selfsigned|:wrong], repeatable")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--plain-port", type=int, default=0)
    options.add_argument("--port-file", help="JSON: the TLS and the plain port")
    args = options.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    server = Server(args.dir)
    ca = certs.CA(args.ca_dir or pathlib.Path(args.dir) / "ca")
    ports = {"tls": server.listen(args.port, tls_context(ca, args.name or ["upstream.test"])),
             "plain": server.listen(args.plain_port, None), "ca": str(ca.cert)}
    if args.port_file:
        temporary = args.port_file + ".new"
        pathlib.Path(temporary).write_text(json.dumps(ports))
        os.replace(temporary, args.port_file)
    print("ready " + json.dumps(ports), flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
