#!/usr/bin/env python3
"""Against somebody who is signed in, in a real browser: other sites (E11, E12, E13), the words of requests (E14), a second
press (E3), a page that is out of date (E24).

usage: test_hostile.py [NAME...]      PREFIX/bin first in PATH
"""
import http.server
import json
import os
import pathlib
import secrets
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e/lab")]
from gateway import Gateway, simple_policy  # noqa: E402
from harness import PATIENCE, main, test  # noqa: E402
from ports import free_port  # noqa: E402
from servers import npm_modules  # noqa: E402

MODULES = npm_modules(HERE.parent / "e2e/npm") / "node_modules"
# Each says who it was, if it runs: as a tag, in an attribute, in a script, in a URL, in an event stream, in what shows text.
TRIES = ('<script>pwned("tag")</script>', '"><img src=x onerror=pwned("attribute")>', "'onmouseover='pwned(1)' autofocus onfocus='pwned(2)",
         "</title></textarea></script><svg/onload=pwned('svg')>", "javascript:pwned('url')//", "data:text/html,<script>parent.pwned(1)</script>",
         "{{constructor.constructor('pwned(1)')()}}${pwned(1)}", "<math><mi xlink:href=javascript:pwned(1)>x", "<base href=//evil.test/>",
         "<style>@import'//evil.test/x'</style>", "<meta http-equiv=refresh content=0;url=//evil.test/>", "<iframe srcdoc='<script>parent.pwned(1)</script>'>",
         "&lt;script&gt;pwned(1)&lt;/script&gt;", "\\u003cscript\\u003epwned(1)\\u003c/script\\u003e", "--><!--<img src=x onerror=pwned(3)>-->", "]]><x xmlns='http://www.w3.org/1999/xhtml' onload='pwned(1)'/>",
         "<a href=javascript:pwned(1) id=approve name=approve>Approve this request</a>", "\ufeff<\u0000script>pwned(1)</script>", "ⅹ<ſcript>pwned(1)</ſcript>")


class Evil(http.server.BaseHTTPRequestHandler):
    """The other site: an empty page for the test's scripts, without any policy of its own."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>other</title><body>")

    def log_message(self, *_):
        pass


class Browser:
    def __init__(self, lab, gw, evil):
        self.process = lab.start(["node", HERE / "hostile.mjs", "--link", gw.cli_json("signin")["url"], "--modules", MODULES, "--shots", "-",
                                  "--evil", str(evil)], env={"PATH": os.environ["PATH"]}, stdin=subprocess.PIPE, ready=r'\{"ok":true\}\n')
        self.answered = self.process.seen.count(b"\n") - 1

    def __call__(self, do, **more):
        self.process.popen.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
        self.process.popen.stdin.flush()
        self.answered += 1
        lines = self.process.wait_line(rb"(?:[^\n]*\n){%d}" % (self.answered + 1))[0].splitlines()
        said = json.loads(lines[-1])
        assert "error" not in said, (do, more, said["error"])


def setup(lab):
    up = lab.upstream()
    gw = Gateway(lab, simple_policy(up), {"api": lab.canary(secrets.token_urlsafe(32)).encode()}, hold="inline_wait: 0s, expires: 30m",
                 desk=f'http: "localhost:{free_port()}"')
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.block_on_close = False  # a browser keeps connections that it may want
    lab.at_end.append(lambda: (server.shutdown(), server.server_close()))
    return up, gw, lambda: Browser(lab, gw, server.server_address[1])


def send(lab, gw, up, path, *more, method="POST", known=None):
    known = {t["id"] for t in gw.tickets()} if known is None else known
    done = lab.run(["curl", "-sS", "--path-as-is", "-g", "--max-time", str(PATIENCE), "-X", method, *more, f"https://{up.name}:{up.port}{path}"],
                   env=gw.client_env(), rc=0)
    new = [t["id"] for t in gw.tickets() if t["id"] not in known]
    return new[0] if new else done


@test("E11 browser", "E12 browser", "E13 browser")
def other_sites_decide_nothing(lab):
    lab.leaves("pending", "approved")
    up, gw, opened = setup(lab)
    ticket = send(lab, gw, up, "/pay", "-d", "n=1")
    spare = [send(lab, gw, up, f"/spare{n}", "-d", "n=1") for n in range(20)]
    browse = opened()
    for what in ("forge", "rebind", "framed"):
        browse(what, ticket=ticket, **({"spare": spare} if what == "framed" else {}))
        assert gw.show(ticket)["state"] == "pending" and up.effects() == {}, what
    assert not [r for r in gw.audit() if r["kind"] == "ticket-decided" and r["ticket"] == ticket]
    browse("own", ticket=ticket)  # which is to say that all of it would have been right
    assert gw.show(ticket)["state"] == "approved"


@test("E14 browser")
def no_word_of_a_request_is_more_than_text(lab):
    lab.leaves("pending", "denied", "approved")
    up, gw, opened = setup(lab)
    paths, quoted = [], lambda s: "".join(c if c.isalnum() and c.isascii() else "".join(f"%{b:02X}" for b in c.encode()) for c in s)
    for n, bad in enumerate(TRIES):
        flat = bad.replace("\0", "").replace("\ufeff", "")
        field = flat.encode("utf-8", "replace").decode("latin-1").encode("latin-1")
        boundary = "b0undary"
        form = (f'--{boundary}\r\nContent-Disposition: form-data; name="{flat.replace(chr(34), "%22")}"; filename="{flat.replace(chr(34), "%22")}.svg"\r\n'
                f"Content-Type: image/svg+xml\r\n\r\n{bad}\r\n--{boundary}--\r\n").encode()
        kinds = (("application/json", json.dumps({bad: bad, "n": n}).encode()), ("application/x-www-form-urlencoded", f"{quoted(bad)}={quoted(bad)}".encode()),
                 (f"multipart/form-data; boundary={boundary}", form), ("text/html", bad.encode()))
        kind, body = kinds[n % len(kinds)]
        (lab.dir / "body").write_bytes(body)
        (lab.dir / "field").write_bytes(b"X-Words: " + field + b"\r\nCountersign-Reason: " + field + b"\r\n")
        place = quoted("".join(c for c in flat if c not in "/\\;"))  # with these it is another path to some, and refused
        ticket = send(lab, gw, up, f"/{place}?{quoted(flat)}={quoted(flat)}", "-H", f"Content-Type: {kind}", "-H", f"@{lab.dir / 'field'}",
                      "--data-binary", f"@{lab.dir / 'body'}")
        assert isinstance(ticket, str), (bad, ticket.text())
        paths += [f"/tickets/{ticket}"]
    for n, bad in enumerate(TRIES[:6]):  # what an operator says of them, and what is searched for
        gw.cli("approvals", "deny", paths[n].rpartition("/")[2], "--reason", bad.replace("\0", ""), rc=0)
        paths += [f"/history?q={quoted(bad)}", f"/tickets/{quoted(bad)}", f"/sign-in?t={quoted(bad)}"]
    browse = opened()
    browse("inert", paths=["/", *paths, "/history", "/sandboxes", "/credentials", "/grants", "/policy", "/decisions", "/audit", "/health", "/me"])
    assert up.effects() == {}


@test("E3 browser", "E24 browser")
def a_second_press_and_a_page_of_before_decide_nothing(lab):
    lab.leaves("pending", "approved", "denied")
    up, gw, opened = setup(lab)
    sent = [send(lab, gw, up, f"/pay{n}", "-d", "n=1") for n in range(4)]
    browse = opened()
    browse("twice", tickets=sent[:2])
    said = [r for r in gw.audit() if r["kind"] == "ticket-decided"]
    assert sorted(r["ticket"] for r in said) == sorted(sent[:2]), said
    for n in (0, 0, 1, 1):
        send(lab, gw, up, f"/pay{n}", "-d", "n=1")
    assert up.effects() == {"POST /pay0": 1, "POST /pay1": 1}, up.effects()
    browse("open", ticket=sent[2])
    gw.deny(sent[2], "decided elsewhere")
    browse("stale", words="not pending any more")
    browse("open", ticket=sent[3])
    gw.stop()
    gw.up()
    browse("stale", words="")
    assert gw.show(sent[3])["state"] == "pending" and gw.show(sent[2])["state"] == "denied"


main()
