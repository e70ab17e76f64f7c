"""A stand-in for the desk's control socket and for one sandbox's listener: enough to test `countersign run` alone."""
import json
import os
import pathlib
import socket
import threading


SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


class Control:
    """Serves STATE_DIR/control.sock. calls: (method, path, body) in order. seen: what came to the listener."""

    def __init__(self, lab, credentials=None, state=None, extra=None):
        self.state = pathlib.Path(state or lab.dir / "state")
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.state / "run").mkdir(mode=0o700, exist_ok=True)
        self.credentials, self.extra = credentials or {}, extra or {}
        self.calls, self.seen, self.sockets = [], [], []
        self.listener = self.state / "sb-0001.sock"
        for name in ("ca.crt", "bundle.crt", "truststore.p12"):
            (self.state / name).write_text(f"-----BEGIN {name}-----\n")
        self._serve(self.state / "control.sock", self._control)
        self._serve(self.listener, self._proxy)
        lab.at_end.append(self.close)

    def _serve(self, path, handle):
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        os.chmod(path, 0o600)
        server.listen(64)
        self.sockets.append(server)

        def loop():
            while True:
                try:
                    client = server.accept()[0]
                except OSError:
                    return
                threading.Thread(target=self._one, args=(handle, client), daemon=True).start()
        threading.Thread(target=loop, daemon=True).start()

    @staticmethod
    def _one(handle, client):
        with client:
            try:
                handle(client)
            except OSError:
                pass

    def _captured(self, client):
        """A PROXY v2 header, then whatever: says where it was meant to go and the first bytes."""
        head = client.recv(16, socket.MSG_WAITALL)
        assert head.startswith(SIGNATURE), head
        kind, size = {0x2111: (socket.AF_INET, 4), 0x2121: (socket.AF_INET6, 16)}[int.from_bytes(head[12:14], "big")]
        address = client.recv(int.from_bytes(head[14:16], "big"), socket.MSG_WAITALL)
        to = f"{socket.inet_ntop(kind, address[size:2 * size])} {int.from_bytes(address[-2:], 'big')}"
        self.seen.append(f"captured {to}")
        client.sendall(f"captured {to} ".encode() + client.recv(65536))

    @staticmethod
    def _head(client):
        data = b""
        while b"\r\n\r\n" not in data:
            more = client.recv(65536)
            if not more:
                return None, b""
            data += more
        head, _, rest = data.partition(b"\r\n\r\n")
        return head, rest

    def _control(self, client):
        head, body = self._head(client)
        if head is None:
            return
        method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
        length = next((int(f.split(b":")[1]) for f in head.split(b"\r\n") if f.lower().startswith(b"content-length:")), 0)
        while len(body) < length:
            body += client.recv(65536)
        if not path.startswith(("/api/v1/status", "/api/v1/events", "/api/v1/tickets", "/api/v1/audit")):  # by who says what waits: at any time
            self.calls.append((method, path, json.loads(body) if body else None))
        status, answer = self.answer(method, path)
        text = json.dumps(answer).encode() if answer is not None else b""
        kind = b"application/problem+json" if status >= 400 else b"application/json"
        client.sendall(b"HTTP/1.1 %d X\r\nContent-Type: %s\r\n" % (status, kind)
                       + (b"" if status == 204 else b"Content-Length: %d\r\n" % len(text)) + b"\r\n" + text)

    def answer(self, method, path):
        if (method, path) in self.extra:
            return self.extra[method, path]
        if (method, path) == ("GET", "/api/v1/credentials"):
            return 200, {"credentials": [{"name": n, "present": p, "store": n} for n, p in self.credentials.items()]}
        if (method, path) == ("POST", "/api/v1/sandboxes"):
            return 201, {"id": "01", "name": "run-ab12", "listener": str(self.listener),
                         "ca": str(self.state / "ca.crt"), "bundle": str(self.state / "bundle.crt"),
                         "truststore": str(self.state / "truststore.p12")}
        if (method, path) == ("DELETE", "/api/v1/sandboxes/run-ab12"):
            return 204, None
        return 404, {"title": "Not Found", "detail": "no such thing"}

    def _proxy(self, client):
        """Answers a plain request with 1 MiB, a CONNECT with 403, `ECHO` by echoing to the end."""
        if client.recv(1, socket.MSG_PEEK) == SIGNATURE[:1]:
            self._captured(client)
            return
        head, rest = self._head(client)
        if head is None:
            return
        self.seen.append(head.split(b"\r\n")[0].decode())
        if head.startswith(b"CONNECT"):
            client.sendall(b"HTTP/1.1 403 Forbidden by the fake\r\nContent-Length: 0\r\n\r\n")
        elif head.startswith(b"ECHO"):
            # Half-close: read to the end first, answer after it.
            while more := client.recv(65536):
                rest += more
            client.sendall(rest)
        else:
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\nConnection: close\r\n\r\n" + b"x" * 1048576)

    def close(self):
        for server in self.sockets:
            server.shutdown(socket.SHUT_RDWR)
            server.close()
