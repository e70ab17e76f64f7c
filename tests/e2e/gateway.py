"""The gateway under test: `countersign up` with a policy of the test's, and the operator's side of it.

    gw = Gateway(lab, policy_text, secrets={"demo-git": b"user:password"})
    Gateway(lab, policy_text, listeners=['{ name: e2b, socks5: "127.0.0.1:0", identity: token }'])   # beside agents
    env = gw.client_env("ci-7")            # what `countersign sandbox create` would set, for a client on this host
    ticket = gw.pending()                  # waits for one, gives its facts
    gw.approve(ticket["id"]); gw.deny(ticket["id"], "words")

PREFIX/bin must be first in PATH (./check arranges it).
"""
import base64
import http.client
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import urllib.parse

from harness import PATIENCE

WORDS = "Pushes to main are for people, ask in #release."
AGENTS = '{ name: agents, http: "127.0.0.1:0", identity: token }'
REFUSED = r"parent: (reload|rollback) refused, the policy stays: "
NOT_RELEASED = r"judge: credential .* was not released: credential-unavailable|parent: credential .*: cannot open "
ROLES = ("ledger", "keeper", "resolver", "judge", "carrier", "lobby", "desk", "fetcher", "warden")


class Text(str):
    """Of a policy or a configuration that a test changes. What is to be changed stands there, or the test fails: else it would go
    on with the text of before, and often see what it expects all the same."""

    def replace(self, old, new, count=-1):
        assert old in self, f"nothing to replace: {old!r} does not stand in\n{self}"
        return Text(super().replace(old, new, count))

    def __add__(self, more):
        return Text(super().__add__(more))

    def __radd__(self, before):
        return Text(before.__add__(str(self)))


class TextFile(type(pathlib.Path())):
    def read_text(self, *args, **more):
        return Text(super().read_text(*args, **more))


class Gateway:
    def __init__(self, lab, policy, secrets=(), hold="inline_wait: 10m, expires: 2h", config="", ca=(), listeners=(),
                 listen="127.0.0.1", env=None, desk='http: "localhost:0"'):
        self.env = env
        self.lab, self.state = lab, lab.dir / "state"
        self.policy, self.config = TextFile(lab.dir / "policy.yaml"), TextFile(lab.dir / "countersign.yaml")
        self.policy.write_text(policy)
        if "roots:" not in config:
            config = few_roots(lab) + config
        self.config.write_text("version: 1\nstate_dir: state\npolicy: [policy.yaml]\n"
                               f"listeners: [{', '.join((AGENTS.replace('127.0.0.1', listen), *listeners))}]\n"
                               f"desk: {{ {desk} }}\n" + f"hold: {{ {hold} }}\n" + config)
        self.tokens = {}
        self.up()
        for name, value in dict(secrets).items():
            self.cli("secret", "set", name, stdin=value, rc=0)

    def up(self):
        self.process = self.lab.start([program(), "up", "--config", self.config], env=self.env,
                                      ready=r"countersign is up")
        self.proxy = re.search(rb"proxy +http://(\S+)", self.process.seen)[1].decode()
        socks = re.search(rb"socks5?(?:h)?://(\S+)", self.process.seen)
        self.socks = socks and socks[1].decode()
        self.page = re.search(rb"page +(\S+)", self.process.seen)[1].decode()

    def cli(self, *words, stdin=None, rc=None, timeout=PATIENCE):
        done = self.lab.run([program(), *words], env={"COUNTERSIGN_STATE": self.state, "PATH": os.environ["PATH"]},
                            stdin=stdin, rc=rc, timeout=timeout)
        if words[0] in ("freeze", "thaw"):  # what an operator does and is told needs no announcement
            self.lab.expects(r"judge: writes (are frozen|may leave again)")
        elif done.rc == 3:
            self.lab.expects(REFUSED)
        return done

    def cli_json(self, *words):
        return json.loads(self.cli(*words, "--json", rc=0).out)

    def control(self, method, path, body=None):
        """(status, JSON) of the control socket."""
        data = json.dumps(body).encode() if body is not None else b""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(PATIENCE)
            sock.connect(str(self.state / "control.sock"))
            sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: control\r\nContent-Type: application/json\r\n"
                         f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
            answer = b""
            while more := sock.recv(65536):
                answer += more
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), json.loads(body) if body else None

    def get(self, path):
        """What the control socket answers to what is asked again and again: a program that starts for it costs ten times as
        much. What it said last is searched for canaries, as everything that an operator reads."""
        status, answer = self.control("GET", path)
        assert status == 200, (path, status, answer)
        self.lab.capture_last(path.partition("?")[0], json.dumps(answer))
        return answer

    def refused(self):
        """What was turned away before a sandbox was known: {(listener, code): count}."""
        return {(r["listener"], r["code"]): r["count"] for r in self.get("/api/v1/status")["refused"]}

    # sandboxes

    def token(self, name):
        if name not in self.tokens:
            self.tokens[name] = self.cli_json("sandbox", "create", name)["token"]
        return self.tokens[name]

    def client_env(self, name="agent"):
        """The variables that clients follow, as the shell form of `sandbox create` prints them."""
        url = f"http://{name}:{self.token(name)}@{self.proxy}"
        bundle, ca = str(self.state / "bundle.crt"), str(self.state / "ca.crt")
        env = {key: url for key in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")}
        env.update({key: bundle for key in (
            "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "npm_config_cafile")})
        env.update(NODE_EXTRA_CA_CERTS=ca, NO_PROXY="", no_proxy="", GIT_TERMINAL_PROMPT="0",
                   npm_config_proxy=url, npm_config_https_proxy=url, npm_config_noproxy="",
                   GIT_AUTHOR_NAME="Agent", GIT_AUTHOR_EMAIL="agent@sandbox.invalid",
                   GIT_COMMITTER_NAME="Agent", GIT_COMMITTER_EMAIL="agent@sandbox.invalid")
        return env

    def basic(self, name="agent"):
        return "Basic " + base64.b64encode(f"{name}:{self.token(name)}".encode()).decode()

    # the operator

    def tickets(self, state="pending"):
        return self.get(f"/api/v1/tickets?state={'' if state == 'all' else state}&limit=500")["tickets"]

    def pending(self, n=1, timeout=PATIENCE):
        """Waits until n tickets are pending; the newest one's facts (all of them when n is not 1)."""
        def enough():
            found = self.tickets()
            return found if len(found) >= n else None
        found = self.lab.wait_for(f"{n} pending tickets", enough, timeout)
        return self.show(found[0]["id"]) if n == 1 else found

    def show(self, ticket):
        return self.get(f"/api/v1/tickets/{ticket}?reading=1")

    def approve(self, ticket):
        """As somebody who has looked at it: with its name, where that is needed."""
        name = self.show(ticket)["reading"].get("name")
        self.cli("approvals", "approve", ticket, *(["--name", name] if name else []), rc=0)

    def deny(self, ticket, words):
        self.cli("approvals", "deny", ticket, "--reason", words, rc=0)

    def recorded(self, n=1, fits=None, **want):
        """The records with these fields, once there are n: one is written behind the answer that it is about."""
        def enough():
            found = [r for r in self.audit() if all(r.get(k) == v for k, v in want.items()) and (fits is None or fits(r))]
            return found if len(found) >= n else None
        return self.lab.wait_for(f"{n} records of {want}", enough)

    def audit(self):
        """All that is recorded by now. What was answered a moment ago may be missing: recorded() waits for it."""
        rows = []
        while page := self.get(f"/api/v1/audit?after={rows[-1]['seq'] if rows else 0}&limit=500")["audit"]:
            rows += page
        return [json.loads(row["json"]) for row in rows]

    # accidents

    def pid(self, role):
        """The process of a role (the newest when there are several fronts), or None."""
        found = running(self.daemon(), f"countersign-{role}")
        return found[-1] if found else None

    def daemon(self):
        return self.process.pid

    def unread(self, pid):
        """Whether something was sent to a process that it has not taken, for a role that was stopped: a message, or a
        connection at its door."""
        lines = subprocess.run(["ss", "-xtanHp"], capture_output=True, text=True, check=True).stdout.splitlines()
        return any(f"pid={pid}," in line and int(line.split()[2]) for line in lines)

    def kill(self, role):
        """SIGKILL it; for a standing role, wait until another one is up."""
        old = self.pid(role)
        self.lab.kills(old)
        if role != "front":
            self.lab.wait_for(f"another {role}", lambda: self.pid(role) not in (None, old))
            self.lab.wait_for("the control socket", lambda: self.cli("status").rc == 0)

    def stop(self):
        return self.process.stop()


def running(parent, name):
    """The children of a process in whose command line this stands, the oldest first."""
    found = []
    if not pathlib.Path("/proc/self/task", str(os.getpid()), "children").exists():
        raise AssertionError("this kernel does not say whose child a process is")
    try:
        children = " ".join(t.read_text() for t in pathlib.Path(f"/proc/{parent}/task").glob("*/children")).split()
    except (FileNotFoundError, ProcessLookupError):
        return found
    for child in children:
        try:
            if name.encode() in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def few_roots(lab, at="/etc/ssl/certs/ca-certificates.crt"):
    """Three of the system's roots: to read all of them costs each process of each test more than what it then does. Nothing
    here talks to a server that they vouch for; ./quickstart and the tests of the bundle run with all."""
    end = "-----END CERTIFICATE-----\n"
    (lab.dir / "roots.pem").write_text("".join(one + end for one in pathlib.Path(at).read_text().split(end)[:3]))
    return "roots: roots.pem\n"


def program():
    found = shutil.which("countersign")
    if not found:
        raise AssertionError("countersign is not in PATH: run through ./check, or put PREFIX/bin first")
    return found


def upstream_yaml(host, port, ca, more=""):
    return (f'  - {{ host: {host}, port: {port}, address: 127.0.0.1, allow_private: ["127.0.0.1/32"], ca: "{ca}"{more} }}\n')


def hold_keys(within):
    return f"use: api\n    approve: {{ within: {within} }}"


def simple_policy(up, secret="store: api", write="hold", extra="", within="2h"):
    """One upstream, one bearer credential; reads allowed, writes as told."""
    place = f"host: {up.name}, port: {up.port}"
    return Text(f"""version: 1
name: test
packs: [git@1, npm@1]
upstreams:
{upstream_yaml(up.name, up.port, up.ca)}
credentials:
  api:
    source: {{ {secret} }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{{ {place} }}]
rules:
  - id: reads
    match: {{ {place}, effect: read }}
    decide: allow
    use: api
  - id: writes
    match: {{ {place}, effect: [write, delete] }}
    decide: {write}
    {hold_keys(within) if write == "hold" else 'say: "Writes are off, ask in #platform."'}
{extra}""")


class Page:
    """A signed-in browser without a browser: GETs of the approval page."""

    def __init__(self, gw):
        link = urllib.parse.urlsplit(gw.page)
        self.origin, self.host, self.cookie = f"{link.scheme}://{link.netloc}", link.netloc, None
        answer, form = self.ask("GET", f"{link.path}?{link.query}")
        hidden = dict(re.findall(rb'<input[^>]*type="hidden"[^>]*name="([^"]+)"[^>]*value="([^"]*)"', form))
        answer, _ = self.ask("POST", "/sign-in", urllib.parse.urlencode(hidden))
        assert answer.status == 303, (answer.status, form)
        self.cookie = answer.getheader("Set-Cookie").split(";")[0]

    def ask(self, method, path, body=None):
        conn = http.client.HTTPConnection("127.0.0.1", int(self.host.rsplit(":")[-1]), timeout=PATIENCE)
        fields = {"Host": self.host, "Origin": self.origin, "Sec-Fetch-Site": "same-origin"}
        if self.cookie:
            fields["Cookie"] = self.cookie
        if body is not None:
            fields["Content-Type"] = "application/x-www-form-urlencoded"
        conn.request(method, path, body, fields)
        answer = conn.getresponse()
        data = answer.read()
        conn.close()
        return answer, data


def git_policy(git, push="hold"):
    place = f'host: {git.host}, port: {git.port}, path: "/demo/**"'
    decide = "hold" if push == "hold" else f'deny\n    say: "{WORDS}"'
    return Text(f"""version: 1
name: git
packs: [git@1]
upstreams:
{upstream_yaml(git.host, git.port, git.ca)}
credentials:
  demo:
    source: {{ store: demo }}
    inject: {{ basic: true }}
    only: [{{ {place} }}]
rules:
  - id: fetch
    match: {{ {place}, op: [git.fetch, git.fetch.refs] }}
    decide: allow
    use: demo
  - id: push
    match: {{ {place}, op: git.push }}
    decide: {decide}
    {"use: demo" if push == "hold" else ""}
""")


def git_setup(lab, push="hold", hold="inline_wait: 10m, expires: 2h"):
    """A Git server behind a gateway, and a clone of its repository: (server, gateway, environment, clone)."""
    git = lab.git_server()
    gw = Gateway(lab, git_policy(git, push), {"demo": f"{git.user}:{git.password}".encode()}, hold=hold)
    env = gw.client_env()
    lab.run(["git", "clone", "-q", git.url, "work"], env=env, rc=0)
    return git, gw, env, lab.dir / "work"


def commit(lab, work, env, size=0):
    """A new commit of a file of so many bytes; its id."""
    (work / "file.bin").write_bytes(os.urandom(size) if size else secrets.token_bytes(16))
    lab.run(["git", "-C", work, "add", "file.bin"], env=env, rc=0)
    lab.run(["git", "-C", work, "commit", "-qm", "by an agent"], env=env, rc=0)
    return lab.run(["git", "-C", work, "rev-parse", "HEAD"], env=env, rc=0).out.decode().strip()
