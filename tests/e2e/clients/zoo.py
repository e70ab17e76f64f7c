#!/usr/bin/env python3
"""Unmodified clients behind the gateway, in three set-ups, as one table: `make clients` prints it and writes docs/clients.md.

usage: zoo.py [--docs FILE] [part of a client's name...]

Of each client: does its read arrive with the credential; does it print the words of a hold, and of a denial; does a second run
join the first one's ticket; is it sent, once, when that is approved. The server is lab/upstream.py, with the few answers that a client looks
at first: what is measured is the client. git has its own. npm and pip with theirs: test_clients.py; what only prints: test_words.py; what
goes on by what it reads: test_agent.py."""
import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import time

import room  # noqa: F401
from apis import LOOKS, raw
from gateway import Gateway, commit, program, upstream_yaml
from harness import HERE, Lab
from servers import npm_modules

NO = "Nothing is changed here on weekdays"
WAIT = "Repeat the same request, unchanged"
SETUPS = {"run": [], "run --no-capture": ["--no-capture"], "variables": None}
CELLS = ("read", "hold", "joins", "sent", "denial")
LIMIT = 60  # seconds for one run
SYSTEM = "/usr/bin:/usr/local/bin:/bin"  # whose programs these are, in each set-up
AWS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "eu-1", "AWS_REGION": "eu-1", "AWS_PAGER": "",
       "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"}
GH = {"GH_HOST": "AT", "GH_ENTERPRISE_TOKEN": "any", "GH_NO_UPDATE_NOTIFIER": "1"}
URLLIB = """
import sys, urllib.request, urllib.error
try:
    print(urllib.request.urlopen(sys.argv[1], sys.argv[2].encode() if len(sys.argv) > 2 else None).read().decode())
except urllib.error.HTTPError as e:
    sys.exit(e.read().decode())
"""
REQUESTS = """
import sys, requests
r = requests.post(sys.argv[1], files={"f": sys.argv[2]}) if len(sys.argv) > 2 else requests.get(sys.argv[1])
print(r.text)
sys.exit(not r.ok)
"""
BOTO3 = """
import sys, boto3, botocore
s3 = boto3.client("s3", endpoint_url=sys.argv[1], config=botocore.config.Config(retries={"total_max_attempts": 1}))
print(s3.put_object(Bucket="bucket", Key="key", Body=b"x") if len(sys.argv) > 2 else s3.list_objects_v2(Bucket="bucket"))
"""
FETCH = """
const [url, body] = process.argv.slice(1), form = new FormData();
form.append("f", body ?? "");
fetch(url, body ? { method: "POST", body: form } : {}).then(async r => { console.log(await r.text()); process.exitCode = r.ok ? 0 : 1; })
  .catch(e => { console.log(e.cause?.message ?? e.message); process.exitCode = 1; });
"""
JAVA = """import java.net.URI; import java.net.http.*;
class Zoo { public static void main(String[] a) throws Exception {
  var q = HttpRequest.newBuilder(URI.create(a[0])).version(HttpClient.Version.HTTP_1_1);
  if (a.length > 1) q.POST(HttpRequest.BodyPublishers.ofString(a[1]));
  var r = HttpClient.newHttpClient().send(q.build(), HttpResponse.BodyHandlers.ofString());
  System.out.println(r.body()); System.exit(r.statusCode() < 400 ? 0 : 1); } }
"""
S3 = """const { S3Client, PutObjectCommand, ListObjectsV2Command } = require("@aws-sdk/client-s3");
const s3 = new S3Client({ endpoint: process.argv[1], forcePathStyle: true, maxAttempts: 1 });
s3.send(process.argv[2] ? new PutObjectCommand({ Bucket: "bucket", Key: "key", Body: "x" }) : new ListObjectsV2Command({ Bucket: "bucket" }))
  .then(r => console.log("done")).catch(e => { console.log(e.name, e.message); process.exitCode = 1; });"""
OPENAI = """const { OpenAI } = require("openai"), o = new OpenAI({ apiKey: "any", baseURL: process.argv[1], maxRetries: 0 });
(process.argv[2] ? o.chat.completions.create({ model: "m", messages: [] }) : o.models.list())
  .then(r => console.log("done")).catch(e => { console.log(e.message); process.exitCode = 1; });"""
ANTHROPIC = """const { Anthropic } = require("@anthropic-ai/sdk"), a = new Anthropic({ apiKey: "any", baseURL: process.argv[1], maxRetries: 0 });
(process.argv[2] ? a.messages.create({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "x" }] }) : a.models.list())
  .then(r => console.log("done")).catch(e => { console.log(e.message); process.exitCode = 1; });"""

UNDICI = """const { fetch, EnvHttpProxyAgent } = require("undici"), [url, body] = process.argv.slice(1);
fetch(url, { dispatcher: new EnvHttpProxyAgent(), ...(body && { method: "POST", body }) })
  .then(async r => { console.log(await r.text()); process.exitCode = r.ok ? 0 : 1; });"""
AXIOS = """const axios = require("axios"), [url, data] = process.argv.slice(1);
axios({ url, ...(data && { method: "POST", data }) }).then(r => console.log(r.data))
  .catch(e => { console.log(e.message, e.response?.data); process.exitCode = 1; });"""
OCTOKIT = """const { Octokit } = require("@octokit/rest"), asked = { owner: "acme", repo: "app" };
const { repos, issues } = new Octokit({ auth: "any", baseUrl: process.argv[1] + "/api/v3" });
(process.argv[2] ? issues.create({ ...asked, title: "x" }) : repos.get(asked))
  .then(r => console.log("done")).catch(e => { console.log(e.message); process.exitCode = 1; });"""
STRIPE = """const [host, port] = process.argv[1].split(":"), Stripe = require("stripe");
const { customers, refunds } = new Stripe("sk_test_any", { host, port, protocol: "https", maxNetworkRetries: 0 });
(process.argv[2] ? refunds.create({ charge: "ch_1" }) : customers.list())
  .then(r => console.log("done")).catch(e => { console.log(e.message); process.exitCode = 1; });"""
SLACK = """const { WebClient } = require("@slack/web-api"), slack = new WebClient("xoxb-any", { slackApiUrl: process.argv[1] + "/api/" });
(process.argv[2] ? slack.chat.postMessage({ channel: "C1", text: "x" }) : slack.auth.test())
  .then(r => console.log("done")).catch(e => { console.log(e.message); process.exitCode = 1; });"""
PAGE = """<!DOCTYPE html><title>page</title><p id="p">not yet</p><script>
fetch("/x", { method: "POST", body: "a=1" }).then(r => r.text()).then(text => { p.textContent = text; });</script>"""
PACKUMENT = {"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
    "name": "demo", "version": "1.0.0", "dist": {"tarball": "https://zoo.test/demo.tgz", "shasum": "0" * 40}}}}
IMAGE = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": [], "config": {
    "mediaType": "application/vnd.oci.image.config.v1+json", "digest": f"sha256:{'0' * 64}", "size": 2}})
DIGEST = "sha256:" + hashlib.sha256(IMAGE.encode()).hexdigest()
STATE = {"version": 4, "terraform_version": "1.0.0", "serial": 1, "lineage": "agent", "outputs": {}, "resources": []}
TERRAFORM = ["sh", "-c", 'terraform init -reconfigure -input=false -backend-config="address=https://$0/state" >/dev/null && exec terraform state "$@"',
             "AT"]
ANSWERS = {**{path: raw(answer) for path, answer in LOOKS.items()},
           "/api/v1/namespaces/default/configmaps/x": raw({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
           "/page": raw(PAGE, kind="text/html"), "/simple/demo/": raw('<a href="demo-1.0-py3-none-any.whl">demo</a>', kind="text/html"),
           "/demo": raw(PACKUMENT), "GET /agents-thing": "/status?code=404", "GET /state": raw({**STATE, "serial": 0}), "HEAD /bucket/key": "/status?code=404",
           "/v2/demo/app/manifests/1": raw(IMAGE, kind="application/vnd.oci.image.manifest.v1+json", fields=[f"Docker-Content-Digest: {DIGEST}"]),
           f"DELETE /v2/demo/app/manifests/{DIGEST}": "/status?code=202&reason=Accepted"}


class Client:
    """name; how it says its version; a read and a write of it (None: it has none), where AT is the server's host and port, and N tells the
    set-ups apart. around: why a cell is no, by its set-up or for all (""). prepare: what its folder must have. git: its server is git's own,
    which takes nobody without the credential. denied: a write that is denied by more than its host."""

    def __init__(self, name, version, read, write, env=None, modules=False, around=None, prepare=None, git=False, denied=None):
        self.name, self.version, self.read, self.write = name, version, read, write
        self.env, self.modules, self.around = env or {}, modules, around or {}
        self.prepare, self.git, self.denied = prepare, git, denied or write

    def program(self):
        return shutil.which(self.version[0], path=SYSTEM)


def clone(zoo):
    env = zoo.gw.client_env()
    zoo.lab.run(["git", "clone", "-q", zoo.git.url, "app"], env=env, cwd=zoo.work, rc=0)
    commit(zoo.lab, zoo.work / "app", env)


def built(zoo):
    env = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOTELEMETRY": "off",
           "GOCACHE": zoo.lab.dir / "go-cache", "GOPATH": zoo.lab.dir / "go-path", "PATH": SYSTEM}
    zoo.lab.run(["go", "build", "-o", zoo.work / "fetch-go", "."], cwd=HERE / "lab/go", env=env, rc=0)


def states(zoo):
    (zoo.work / "main.tf").write_text('terraform {\n  backend "http" {}\n}\n')
    (zoo.work / "new.tfstate").write_text(json.dumps(STATE))


def package(zoo):
    (zoo.work / "thing").mkdir()
    (zoo.work / "thing/package.json").write_text('{"name": "agents-thing", "version": "1.0.0", "description": "by an agent"}')


NODE_20 = dict.fromkeys(("run --no-capture", "variables"),
                        "Node before 24 follows no proxy variable: capture, or an agent of its own (https-proxy-agent, undici)")
JVM = {"run --no-capture": "Java gives a proxy no token", "variables": "Java gives a proxy no token: a listener of its own, or capture"}
S3CMD = {**dict.fromkeys(("run --no-capture", "variables"), "s3cmd follows no proxy variable: proxy_host in its own file"),
         "run": "s3cmd sends along when the file was last read, which its own first run changes: --no-preserve; or the second ticket, which lasts"}
RCLONE = {**AWS, **{f"RCLONE_CONFIG_S_{k}": v for k, v in (("TYPE", "s3"), ("PROVIDER", "Other"), ("ENDPOINT", "https://AT"), ("ENV_AUTH", "true"))},
          "RCLONE_S3_NO_CHECK_BUCKET": "true"}
ONCE = ["--retries=1", "--low-level-retries=1"]
CHROMIUM = ["chromium", "--headless", "--disable-gpu", "--dump-dom"]
CLIENTS = [
    Client("curl", ["curl", "--version"], ["curl", "-sS", "https://AT/ok"], ["curl", "-sS", "--fail-with-body", "-F", "a=1", "https://AT/x"]),
    Client("wget", ["wget", "--version"], ["wget", "-qO-", "https://AT/ok"],
           ["wget", "-O-", "--content-on-error", "--post-data=a=1", "https://AT/x"],
           around={"variables": "Debian's wget has no variable for whom to trust: --ca-certificate, or the system's file"}),
    Client("Python urllib", ["python3", "--version"], ["python3", "-c", URLLIB, "https://AT/ok"],
           ["python3", "-c", URLLIB, "https://AT/x", "a=1"]),
    Client("Python requests (a form)", ["python3", "-c", "import requests; print(requests.__version__)"],
           ["python3", "-c", REQUESTS, "https://AT/ok"], ["python3", "-c", REQUESTS, "https://AT/x", "a"]),
    Client("boto3 S3", ["python3", "-c", "import boto3; print(boto3.__version__)"], ["python3", "-c", BOTO3, "https://AT"],
           ["python3", "-c", BOTO3, "https://AT", "put"], AWS),
    Client("aws s3", ["aws", "--version"], ["aws", "--endpoint-url", "https://AT", "s3", "ls", "s3://bucket"],
           ["aws", "--endpoint-url", "https://AT", "s3", "cp", "file", "s3://bucket/key"], AWS),
    Client("s3cmd", ["s3cmd", "--version"],
           ["s3cmd", "-c", "/dev/null", "--host=AT", "--host-bucket=AT", "--region=eu-1", "ls", "s3://bucket"],
           ["s3cmd", "-c", "/dev/null", "--host=AT", "--host-bucket=AT", "--region=eu-1", "--no-progress", "put", "file", "s3://bucket/key"], AWS,
           around=S3CMD),
    Client("Node fetch (a form)", ["node", "--version"], ["node", "-e", FETCH, "https://AT/ok"], ["node", "-e", FETCH, "https://AT/x", "a"],
           around=NODE_20),
    Client("@aws-sdk/client-s3", ["node", "--version"], ["node", "-e", S3, "https://AT"], ["node", "-e", S3, "https://AT", "put"], AWS,
           modules=True, around=NODE_20),
    Client("openai", ["node", "--version"], ["node", "-e", OPENAI, "https://AT/v1"], ["node", "-e", OPENAI, "https://AT/v1", "x"],
           modules=True, around=NODE_20),
    Client("@anthropic-ai/sdk", ["node", "--version"], ["node", "-e", ANTHROPIC, "https://AT"], ["node", "-e", ANTHROPIC, "https://AT", "x"],
           modules=True, around=NODE_20),
    Client("undici (EnvHttpProxyAgent)", ["node", "--version"], ["node", "-e", UNDICI, "https://AT/ok"], ["node", "-e", UNDICI, "https://AT/x", "a=1"],
           modules=True),
    Client("axios", ["node", "--version"], ["node", "-e", AXIOS, "https://AT/ok"], ["node", "-e", AXIOS, "https://AT/x", "a=1"], modules=True),
    Client("@octokit/rest", ["node", "--version"], ["node", "-e", OCTOKIT, "https://AT"], ["node", "-e", OCTOKIT, "https://AT", "x"],
           modules=True, around=NODE_20),
    Client("stripe", ["node", "--version"], ["node", "-e", STRIPE, "AT"], ["node", "-e", STRIPE, "AT", "x"], modules=True, around=NODE_20),
    Client("@slack/web-api", ["node", "--version"], ["node", "-e", SLACK, "https://AT"], ["node", "-e", SLACK, "https://AT", "x"],
           modules=True, around=NODE_20),
    Client("npm", ["npm", "--version"], ["npm", "view", "demo", "version", "--registry=https://AT/"],
           ["npm", "publish", "./thing", "--registry=https://AT/", "--//AT/:_authToken=any"], prepare=package),
    Client("pip", ["python3", "-m", "pip", "--version"],
           "python3 -m pip --disable-pip-version-check index versions demo --index-url https://AT/simple/".split(), None),
    Client("Go net/http", ["go", "version"], ["./fetch-go", "GET", "https://AT/ok"], ["./fetch-go", "POST", "https://AT/x", "a=1"], prepare=built),
    Client("Java HttpClient", ["java", "--version"], ["java", "Zoo.java", "https://AT/ok"], ["java", "Zoo.java", "https://AT/x", "a=1"],
           around=JVM),
    Client("git", ["git", "--version"], ["git", "-C", "app", "fetch", "origin"], ["git", "-C", "app", "push", "origin", "HEAD:agent-@N@"],
           prepare=clone, git=True, denied=["git", "-C", "app", "push", "origin", "HEAD:denied"]),
    Client("gh", ["gh", "--version"], ["gh", "api", "repos/acme/app"], ["gh", "api", "repos/acme/app/issues", "-f", "title=x"], GH),
    Client("kubectl", ["kubectl", "version", "--client"],
           "kubectl --server https://AT --token any --cache-dir cache get --raw /api".split(),
           "kubectl --server https://AT --token any --cache-dir cache delete configmap x --wait=false".split()),
    Client("skopeo", ["skopeo", "--version"], ["skopeo", "inspect", "--raw", "docker://AT/demo/app:1"],
           ["skopeo", "delete", "docker://AT/demo/app:1"]),
    Client("rclone S3", ["rclone", "version"], ["rclone", *ONCE, "lsf", "s:bucket"],
           ["rclone", *ONCE, "--s3-no-head", "copyto", "file", "s:bucket/key"], RCLONE),
    Client("terraform (http backend)", ["terraform", "version"], [*TERRAFORM, "pull"], [*TERRAFORM, "push", "new.tfstate"],
           {"CHECKPOINT_DISABLE": "1"}, prepare=states,
           around={"": "terraform prints the status of an error and no more: what waits and what was refused is said by run itself"}),
    Client("Chromium", ["chromium", "--version"], [*CHROMIUM, "https://AT/ok"], [*CHROMIUM, "--virtual-time-budget=20000", "https://AT/page"],
           around={"variables": "Chromium gives a proxy no token and trusts a store of its own (ca nss): a listener of its own, or capture"}),
    *[Client(name, [name], None, None) for name in
      ("@modelcontextprotocol/sdk", "http", "twine", "uv", "pnpm", "yarn", "glab", "git-lfs", "cargo", "psql", "ssh")],
]
UNEXPLAINED = "not explained"
ELSEWHERE = {"@modelcontextprotocol/sdk": "calls a tool, is held, repeats, and reads each answer: tests/e2e/clients/test_agent.py",
             "twine": "is held, and its upload is sent once it is approved: tests/e2e/clients/test_shipped.py",
             "git-lfs": "fetches, is held, and stores: tests/e2e/clients/test_shipped.py",
             "psql": "is told why it gets nowhere: tests/e2e/clients/test_strangers.py",
             "ssh": "is told why it gets nowhere: tests/e2e/clients/test_strangers.py"}


class Zoo:
    def __init__(self, lab):
        lab.leaves("pending", "approved")  # of who does not join
        self.lab, self.work, self.git, self.up = lab, lab.dir / "work", lab.git_server(), lab.upstream("zoo.test", "deny.test")
        self.work.mkdir()
        (self.work / "Zoo.java").write_text(JAVA)
        self.up.script(ANSWERS)
        self.token, rules, hosts = lab.canary(secrets.token_urlsafe(32)), "", ("zoo.test", "deny.test")
        for host, decide in zip(hosts, ("hold\n    use: api", f"deny\n    say: '{NO}.'")):
            place = f"host: {host}, port: {self.up.port}"
            rules += (f"  - {{ id: read-{host}, match: {{ {place}, effect: read }}, decide: allow, use: api }}\n"
                      f"  - {{ id: asks-{host}, match: {{ {place}, path: /api/auth.test }}, decide: allow, use: api }}\n"  # Slack's reads are POSTs
                      f"  - id: write-{host}\n    match: {{ {place}, effect: [write, delete] }}\n    except: [{{ path: /api/auth.test }}]\n"
                      f"    decide: {decide}\n")
        only = ", ".join(f"{{ host: {host}, port: {self.up.port} }}" for host in hosts)
        place = f"host: {self.git.host}, port: {self.git.port}"
        self.gw = Gateway(lab, f"""version: 1
name: zoo
packs: [git@1]
upstreams:
{"".join(upstream_yaml(host, self.up.port, self.up.ca) for host in hosts)}{upstream_yaml(self.git.host, self.git.port, self.git.ca)}credentials:
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{only}]
  git: {{ source: {{ store: git }}, inject: {{ basic: true }}, only: [{{ {place} }}] }}
rules:
  - {{ id: git-read, match: {{ {place}, effect: read }}, decide: allow, use: git }}
  - {{ id: git-push, match: {{ {place}, op: git.push }}, decide: hold, use: git }}
  - {{ id: git-denied, match: {{ {place}, op: git.push, git: {{ refs: [refs/heads/denied] }} }}, decide: deny, say: "{NO}." }}
{rules}""", {"api": self.token.encode(), "git": f"{self.git.user}:{self.git.password}".encode()}, hold="inline_wait: 0s, expires: 2h")

    def run(self, setup, client, words, host="zoo.test"):
        """Its exit status and what it printed."""
        put = {"AT": f"{host}:{self.up.port}", "@N@": str(list(SETUPS).index(setup))}

        def placed(text):
            for mark, value in put.items():
                text = text.replace(mark, value)
            return text
        words = ["timeout", str(LIMIT), *(placed(str(w)) for w in words)]  # one that gets nowhere tries for minutes
        env = {k: placed(v) for k, v in client.env.items()}
        modules = npm_modules(HERE / "npm") / "node_modules" if client.modules else None
        if modules:
            env["NODE_PATH"] = str(modules)
        if setup == "variables":
            done = self.lab.run(words, env={**self.gw.client_env(), **env, "PATH": SYSTEM}, cwd=self.work)
        else:
            options = [*SETUPS[setup], *(["--read", modules] if modules else [])]
            options += sum((["--setenv", f"{k}={v}"] for k, v in env.items()), [])
            done = self.lab.run([program(), "run", "--quiet", "--state-dir", self.gw.state, "--workspace", self.work, *options, "--", *words])
        if done.rc == 124:
            print(f"{client.name}, {setup}: ended after {LIMIT} s", file=sys.stderr)
        return done.rc, " ".join(done.both.decode(errors="replace").split())

    def effects(self, client):
        return len(self.git.landed() if client.git else [r for r in self.up.requests() if r["method"] not in ("GET", "HEAD")])

    def reads(self, setup, client):
        """Whether the server was reached, and by nothing without the credential: git's takes nobody then."""
        seen = len(self.up.requests())
        status, _ = self.run(setup, client, client.read)
        arrived = self.up.requests()[seen:]
        return status == 0 if client.git else bool(arrived), all(dict(r["fields"]).get("Authorization") == f"Bearer {self.token}" for r in arrived)

    def measure(self, setup, client):
        """{cell: yes or no}."""
        (self.work / "file").write_text("data")  # anew: no other client has read it
        reached, known = self.reads(setup, client)
        cells = {"read": reached and known}
        if not reached or client.write is None:
            return cells if client.write is None else dict.fromkeys(CELLS, False)
        before, sent = {t["id"] for t in self.gw.tickets()}, self.effects(client)
        said = [self.run(setup, client, client.write)[1] for _ in range(2)]
        held = [t for t in self.gw.tickets() if t["id"] not in before]
        cells["hold"] = bool(held) and all(WAIT in words for words in said)
        cells["joins"] = len(held) == 1
        for ticket in held:
            self.gw.approve(ticket["id"])
        self.run(setup, client, client.write)
        cells["sent"] = self.effects(client) == sent + 1
        cells["denial"] = NO in self.run(setup, client, client.denied, "deny.test")[1]
        return cells


def version(lab, client):
    if client.modules:
        package = npm_modules(HERE / "npm") / "node_modules" / client.name.split(" ")[0] / "package.json"
        return json.loads(package.read_text())["version"]
    done = lab.run(client.version, env={"PATH": SYSTEM})
    found = re.search(r"\d+(\.\d+)+", (done.out or done.err).decode())
    return found[0] if done.rc == 0 and found else ""


def rows(lab, names):
    """(client, version, {set-up: cells or why there are none})."""
    zoo = Zoo(lab)
    for client in CLIENTS:
        if names and not any(name in client.name for name in names):
            continue
        if client.read is None or not client.program():
            why = "has no row of its own yet" if client.program() else "is not there: nothing was measured"
            yield client, "", {"": ELSEWHERE.get(client.name, why)}
            continue
        if client.prepare:
            client.prepare(zoo)
        cells = {}
        for setup in SETUPS:
            begun = time.monotonic()
            cells[setup] = zoo.measure(setup, client)
            print(f"{client.name}, {setup}: {sum(cells[setup].values())} of {len(cells[setup])} in {time.monotonic() - begun:.0f} s", file=sys.stderr)
        yield client, version(lab, client), cells


def table(found):
    """The rows of the table, and what is no, by its reason."""
    lines, notes = [], {}
    for client, is_version, cells in found:
        if "" in cells:
            lines.append(f"| {client.name} | {cells['']} |" + " |" * len(SETUPS))
            continue
        lines.append(f"| {client.name} | {is_version} | " + " | ".join(
            " ".join(c if yes else f"**no {c}**" for c, yes in cells[setup].items()) if any(cells[setup].values()) else "**nothing arrives**"
            for setup in SETUPS) + " |")
        whys = {setup: client.around.get(setup) or client.around.get("") or UNEXPLAINED for setup in SETUPS if not all(cells[setup].values())}
        for why in dict.fromkeys(whys.values()):
            where = ", ".join(setup for setup in whys if whys[setup] == why)
            notes.setdefault(why, {}).setdefault(where, []).append(client.name)
    return lines, notes


HEAD = """# Clients

Made by `make clients`: unmodified clients behind the gateway, each in a sandbox of `countersign run`, the same without capturing
(proxy variables alone), and on a host with the variables of `countersign sandbox create`. Of each: does its **read** arrive with the credential; does
it print the words of a **hold** and of a **denial**; does a second run **join** the first one's ticket; is it **sent** once when that is
approved.

"""


def page(lines, notes):
    """The table as it is printed and written."""
    whys = ["", "What is no, and why:", ""] if notes else []
    for why, at in notes.items():
        who = "; ".join(f"{', '.join(names)} ({where})" for where, names in at.items())
        whys.append(f"- {who}: {why}")
    return "\n".join([f"| client | version | {' | '.join(SETUPS)} |", "|---|---|" + "---|" * len(SETUPS), *lines, *whys, ""])


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--docs")
    options.add_argument("names", nargs="*")
    args = options.parse_args()
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # what is left over becomes ours, to be seen
    os.umask(0o022)
    lab = Lab("zoo")
    try:
        lines, notes = table(list(rows(lab, args.names)))
    finally:
        wrong = lab.close()
    text = page(lines, notes)
    print(text)
    if args.docs:
        pathlib.Path(args.docs).write_text(HEAD + text, encoding="utf-8")
    for line in wrong:
        print(f"# {line}", file=sys.stderr)
    sys.exit(1 if wrong or UNEXPLAINED in notes else 0)


if __name__ == "__main__":
    main()
