"""Servers that are told: of webhooks and of Slack (HTTP, over TLS or not), and of mail (SMTP, with or without STARTTLS)."""
import base64
import hashlib
import hmac
import http.client
import http.server
import json
import secrets
import socket
import ssl
import threading
import time
import urllib.parse

from harness import PATIENCE


def key_of(lab):
    """A key, and the secret that it is written as."""
    key = secrets.token_bytes(32)
    text = "whsec_" + base64.b64encode(key).decode()
    lab.canary(text)
    lab.canary(base64.b64encode(key).decode())
    return key, text


def hook(port, name="ops", more="", path="/hook"):
    return f'name: {name}, webhook: "http://127.0.0.1:{port}{path}", secret: {name}-key{more}'


class Hook:
    """A receiver that keeps what it is sent; answers: statuses that come first, then always 204."""

    def __init__(self, lab, answers=(), tls=None, location=None):
        self.lab, self.got, self.answers, self.location, self.gate = lab, [], list(answers), location, threading.Lock()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with hook.gate:
                    status = hook.answers.pop(0) if hook.answers else 204
                    hook.got.append((self.path, dict((k.lower(), v) for k, v in self.headers.items()), body, status))
                lab.capture("webhook", str(self.headers).encode() + body)
                self.send_response(status)
                if hook.location:
                    self.send_header("Location", hook.location)
                self.send_header("Content-Length", "0" if status == 204 else "9")
                self.end_headers()
                self.wfile.write(b"" if status == 204 else b"something")

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        lab.at_end.append(self.close)

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def wait(self, n, fits=lambda body: True):
        """The first n that fit, once they are there: [(path, fields, JSON, status answered)]."""
        def enough():
            with self.gate:
                found = [(p, f, json.loads(b), s) for p, f, b, s in self.got if fits(json.loads(b))]
            return found[:n] if len(found) >= n else None
        return self.lab.wait_for(f"{n} messages", enough)

    def verify(self, key, i=None):
        """As a receiver does that follows Standard Webhooks."""
        for _, fields, body, _ in list(self.got) if i is None else [self.got[i]]:
            stamp = fields["webhook-timestamp"]
            signed = f"{fields['webhook-id']}.{stamp}.".encode() + body
            mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
            assert fields["webhook-signature"] == f"v1,{mac}", fields
            assert abs(time.time() - int(stamp)) < 3600, stamp
            assert fields["content-type"] == "application/json", fields


class Slack(Hook):
    """Slack as it is when somebody presses a button of a message that it was sent: it says so, signed, to the gateway's page."""
    TEAM = "T012AB3C4"

    def __init__(self, lab, key):
        super().__init__(lab)
        self.key = key

    def press(self, page, button, user, name="team", key=None, age=0, change=None, headers=None):
        """(status, the request as it was signed)."""
        payload = {"type": "block_actions", "team": {"id": self.TEAM}, "user": {"id": user, "name": "alice", "username": "alice"},
                   "actions": [{"type": "button", **{k: button[k] for k in ("action_id", "value") if k in button}}],
                   "trigger_id": secrets.token_hex(8), "response_url": f"http://127.0.0.1:{self.port}/actions/{user}"}
        body = "payload=" + urllib.parse.quote_plus(json.dumps(payload))
        if headers is None:
            stamp = str(int(time.time()) - age)
            mac = hmac.new((key or self.key).encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
            headers = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"}
        return self.send(page, name, change(body) if change else body, headers)

    def send(self, page, name, body, headers):
        split = urllib.parse.urlsplit(page)
        conn = http.client.HTTPConnection(split.hostname, split.port, timeout=PATIENCE)
        conn.request("POST", f"/slack/{name}", body, {"Content-Type": "application/x-www-form-urlencoded", **headers})
        status = conn.getresponse().status
        conn.close()
        return status, (body, headers)


class Mail:
    """An SMTP server: login: (user, password) that it wants; tls: (certificate, key) for STARTTLS; refuse: so many first."""

    def __init__(self, lab, login=None, tls=None, refuse=0):
        self.lab, self.login, self.tls, self.refuse = lab, login, tls, refuse
        self.mails, self.said = [], []
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        self.open = True
        threading.Thread(target=self.accept, daemon=True).start()
        lab.at_end.append(self.close)

    def close(self):
        self.open = False
        self.door.close()

    def accept(self):
        while self.open:
            try:
                conn, _ = self.door.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(conn,), daemon=True).start()

    def talk(self, conn):
        try:
            self.dialogue(conn)
        except (OSError, ValueError) as why:
            self.said.append(f"ended: {why}")
        finally:
            conn.close()

    def dialogue(self, conn):
        lines, secure, mail = conn.makefile("rb"), False, {"to": []}

        def say(text):
            conn.sendall(text.encode() + b"\r\n")
        say("220 sink ESMTP")
        while line := lines.readline():
            word = line.strip().decode()
            self.said.append(word)
            verb = word.upper()
            if verb.startswith("EHLO"):
                more = (["STARTTLS"] if self.tls and not secure else []) + (["AUTH PLAIN LOGIN"] if self.login else [])
                for i, text in enumerate(["sink", *more]):
                    say(f"250{' ' if i == len(more) else '-'}{text}")
            elif verb == "STARTTLS" and self.tls:
                say("220 go on")
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(*self.tls)
                conn = context.wrap_socket(conn, server_side=True)
                lines, secure = conn.makefile("rb"), True
            elif verb.startswith("AUTH PLAIN"):
                token = word.split()[2] if len(word.split()) > 2 else ""
                if not token:
                    say("334 ")
                    token = lines.readline().strip().decode()
                mail["login"] = tuple(base64.b64decode(token).decode().split("\0")[1:])
                say("235 ok" if mail["login"] == self.login else "535 no")
            elif verb.startswith("MAIL FROM:"):
                mail["from"], mail["secure"] = word[10:].split()[0].strip("<>"), secure
                if self.refuse > 0:
                    self.refuse -= 1
                    say("451 later")
                else:
                    say("250 ok")
            elif verb.startswith("RCPT TO:"):
                mail["to"].append(word[8:].strip("<> "))
                say("250 ok")
            elif verb == "DATA":
                say("354 go on")
                text = b""
                while (part := lines.readline()) not in (b".\r\n", b""):
                    text += part[1:] if part.startswith(b"..") else part
                mail["text"] = text
                self.lab.capture("mail", text)
                self.mails.append(dict(mail))
                mail = {"to": []}
                say("250 taken")
            elif verb == "QUIT":
                say("221 bye")
                return
            else:
                say("250 ok" if verb in ("RSET", "NOOP") else "502 no")

    def wait(self, n=1):
        return self.lab.wait_for(f"{n} mails", lambda: self.mails[:n] if len(self.mails) >= n else None)
