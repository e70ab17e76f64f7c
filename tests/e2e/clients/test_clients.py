#!/usr/bin/env python3
"""Real, unmodified clients through the gateway: each reads, each write waits, each shows a denial's words."""
import json
import secrets
import sys

import room  # noqa: F401
from gateway import WORDS, Gateway, commit, git_setup, simple_policy, upstream_yaml
from harness import HERE, main, test
from servers import npm_modules


def exported(gw):
    """Every record whole, in order and without a gap; of one kind; of a time."""
    out = gw.cli("audit", "export", rc=0).out
    records = [json.loads(line) for line in out.decode().splitlines()]
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1)) and len(records) > 3
    kinds = gw.cli("audit", "export", "--kind", "result", rc=0).out.decode().splitlines()
    want = [record for record in records if record["kind"] == "result"]
    assert want and [json.loads(line) for line in kinds][:len(want)] == want
    assert gw.cli("audit", "export", "--until", "2020-01-01T00:00:00Z", rc=0).out == b""
    assert len(gw.cli("audit", "export", "--since", "24h", rc=0).out.splitlines()) >= len(records)
    assert gw.cli("audit", "export", "--since", "soon").rc == 2
    assert gw.cli("audit", "tail", "--kind", "result").rc == 2


@test()
def git_clones_fetches_and_pushes_once_approved(lab):
    git, gw, env, work = git_setup(lab)
    head = commit(lab, work, env)
    push = lab.start(["git", "-C", str(work), "push", "origin", "HEAD:main"], env=env)
    ticket = gw.pending()
    assert git.landed() == []
    assert head in json.dumps(ticket), ticket
    gw.approve(ticket["id"])
    assert push.wait(30) == 0, push.seen
    assert [new for _, new, _ in git.landed()] == [head]
    lab.run(["git", "-C", work, "fetch", "-q"], env=env, rc=0)
    short = ticket["id"][:10]
    gw.recorded(kind="result", ticket=ticket["id"])
    story = gw.cli("audit", "tail", rc=0).out.decode()
    told = [f"push held: ticket {short} ", f"ticket {short} approved by ", "push sent, answered 200 "]
    places = [story.find(t) for t in told]
    assert -1 not in places and places == sorted(places), story
    assert "sandbox made known" not in story and "sandbox made known" in gw.cli("audit", "tail", "--all", rc=0).out.decode()
    assert len(gw.cli("audit", "tail", "-n", "3", rc=0).out.splitlines()) == 3
    assert gw.cli("audit", "tail", "-n", "x").rc == 2
    exported(gw)


@test()
def a_push_is_shown_as_its_commits(lab):
    git, gw, env, work = git_setup(lab)
    heads = []
    for n in range(12):  # git packs most of these as deltas of each other
        (work / "file.txt").write_text(f"line {n}\n" * 20)
        lab.run(["git", "-C", work, "add", "file.txt"], env=env, rc=0)
        lab.run(["git", "-C", work, "commit", "-qm", f"step {n}: \u202ereversed\n\nAnd a body that is the same in all."],
                env=env, rc=0)
        heads.append(lab.run(["git", "-C", work, "rev-parse", "HEAD"], env=env, rc=0).out.decode().strip())
    push = lab.start(["git", "-C", str(work), "push", "origin", "HEAD:main"], env=env)
    ticket = gw.pending()
    commits = [f["value"] for f in ticket["facts"] if f["label"] in ("Tip commit", "Commit")]
    assert [c[:40] for c in commits] == heads[::-1], ticket["facts"]
    assert commits[0].startswith(f"{heads[-1]} of refs/heads/main  step 11: "), commits[0]
    assert all("(Agent <agent@sandbox.invalid>, " in c for c in commits), commits
    assert "no ref leads" not in json.dumps(ticket["facts"]) and "to its end" not in json.dumps(ticket["facts"])
    shown = gw.cli("approvals", "show", ticket["id"], rc=0).out.decode()
    assert f"Tip commit: {heads[-1]} of refs/heads/main  step 11: \\u{{202e}}reversed" in shown, shown
    gw.approve(ticket["id"])
    assert push.wait(30) == 0, push.seen
    assert [new for _, new, _ in git.landed()] == [heads[-1]]


@test()
def a_5_mb_push_needs_one_approval(lab):
    git, gw, env, work = git_setup(lab)
    head = commit(lab, work, env, 5 * 1024 * 1024)
    push = lab.start(["git", "-C", str(work), "push", "origin", "HEAD:main"], env=env)
    ticket = gw.pending()
    assert any(f["label"] == "Tip commit" and f["value"].startswith(head) and "by an agent" in f["value"]
               for f in ticket["facts"]), ticket["facts"]
    gw.approve(ticket["id"])
    assert push.wait(60) == 0, push.seen
    assert [new for _, new, _ in git.landed()] == [head]
    assert len(gw.tickets("all")) == 1, gw.tickets("all")


@test()
def git_shows_a_waiting_push_and_the_retry_passes(lab):
    git, gw, env, work = git_setup(lab, hold="inline_wait: 1s, expires: 2h")
    head = commit(lab, work, env, 2 * 1024 * 1024)
    done = lab.run(["git", "-C", work, "push", "origin", "HEAD:main"], env=env)
    ticket = gw.pending()["id"]
    assert done.rc != 0 and ticket[:8].encode() in done.both, done.text()
    gw.approve(ticket)
    lab.run(["git", "-C", work, "push", "origin", "HEAD:main"], env=env, rc=0)
    assert [new for _, new, _ in git.landed()] == [head]


@test()
def git_shows_a_denials_words(lab):
    git, gw, env, work = git_setup(lab, push="deny")
    commit(lab, work, env)
    done = lab.run(["git", "-C", work, "push", "origin", "HEAD:main"], env=env)
    assert done.rc != 0 and WORDS.encode() in done.both, done.text()
    assert git.landed() == []


@test()
def git_shows_an_operators_denial(lab):
    git, gw, env, work = git_setup(lab)
    commit(lab, work, env)
    push = lab.start(["git", "-C", str(work), "push", "origin", "HEAD:main"], env=env)
    gw.deny(gw.pending()["id"], "wait for the release")
    assert push.wait(30) != 0
    assert b"wait for the release" in push.seen, push.seen
    assert git.landed() == []


def api_setup(lab, write="deny"):
    up = lab.upstream()
    gw = Gateway(lab, simple_policy(up, write=write), {"api": lab.canary(secrets.token_urlsafe(32)).encode()})
    return up, gw, gw.client_env(), f"https://{up.name}:{up.port}"


@test()
def curl_reads_and_shows_a_denial(lab):
    up, gw, env, base = api_setup(lab)
    assert lab.run(["curl", "-sSf", base + "/ok"], env=env, rc=0).out
    done = lab.run(["curl", "-sS", "-d", "a=1", base + "/x"], env=env, rc=0)
    assert b"ask in #platform" in done.out, done.text()


@test()
def curl_streams_events_as_they_come(lab):
    up, gw, env, base = api_setup(lab)
    client = lab.start(["curl", "-sSN", base + "/sse?n=3&gate=g"], env=env)
    client.wait_line(rb"data:.*\n\n")
    assert client.popen.poll() is None
    up.release("g")
    up.release("g")
    client.wait()


@test()
def wget_reads_and_fails_on_a_denial(lab):
    up, gw, env, base = api_setup(lab)
    env = dict(env)
    lab.run(["wget", "-qO-", f"--ca-certificate={env['SSL_CERT_FILE']}", base + "/ok"], env=env, rc=0)
    done = lab.run(["wget", "-O-", f"--ca-certificate={env['SSL_CERT_FILE']}", "--post-data=a=1", base + "/x"], env=env)
    assert done.rc == 8 and b"403" in done.both, done.text()


PYTHON = """
import sys, urllib.request, urllib.error
print(urllib.request.urlopen(sys.argv[1] + "/ok").status)
try:
    urllib.request.urlopen(sys.argv[1] + "/x", b"a=1")
except urllib.error.HTTPError as e:
    print(e.code, e.reason, e.read().decode())
"""
REQUESTS = """
import sys, requests
s = requests.Session()
print(s.get(sys.argv[1] + "/ok").status_code)
r = s.post(sys.argv[1] + "/x", data={"a": "1"})
print(r.status_code, r.json()["message"], r.json()["error"])
"""


@test()
def pythons_urllib_and_requests(lab):
    up, gw, env, base = api_setup(lab)
    for script in (PYTHON, REQUESTS):
        done = lab.run(["/usr/bin/python3", "-c", script, base], env=env, rc=0)
        assert b"200" in done.out and b"403" in done.out and b"ask in #platform" in done.out, done.text()


NODE = """
const { HttpsProxyAgent } = require("https-proxy-agent");
const https = require("https"), base = process.argv[1], agent = new HttpsProxyAgent(process.env.HTTPS_PROXY);
const ask = (method, path) => new Promise((done, bad) => https.request(base + path, { method, agent }, r => {
  let body = ""; r.on("data", d => body += d).on("end", () => done([r.statusCode, body]));
}).on("error", bad).end(method === "POST" ? "a=1" : undefined));
(async () => { console.log(...await ask("GET", "/ok")); console.log(...await ask("POST", "/x")); })();
"""


RAW = """
const { HttpsProxyAgent } = require("https-proxy-agent");
require("https").get(process.argv[1], { agent: new HttpsProxyAgent(process.env.HTTPS_PROXY) }, r => console.log(r.statusCode, r.resume() && ""));
"""


@test()
def what_libraries_leave_in_a_url_arrives_as_escapes(lab):
    up = lab.upstream("up_stream.test")
    gw = Gateway(lab, simple_policy(up), {"api": lab.canary(secrets.token_urlsafe(32)).encode()})
    env, base = gw.client_env(), f"https://{up.name}:{up.port}"
    lab.run(["curl", "-gsSf", "-H", "X-Name: caf\u00e9", base + "/a|b^c?q={a|b}^`\\"], env=env, rc=0)
    modules = npm_modules(HERE / "npm") / "node_modules"
    done = lab.run(["node", "-e", RAW, base + "/a|b?q={a|b}^`\\"], env={**env, "NODE_PATH": modules}, rc=0)
    assert done.out.startswith(b"200"), done.text()
    targets = [r["target"] for r in up.requests()]
    assert targets == ["/a%7Cb%5Ec?q=%7Ba%7Cb%7D%5E%60%5C", "/a%7Cb?q=%7Ba%7Cb%7D%5E%60%5C"], targets
    name = dict(up.requests()[0]["fields"])["X-Name"]
    assert name.encode("latin-1") == "caf\u00e9".encode(), name
    push = lab.start(["curl", "-gsS", "-d", "a=1", base + "/x?q={a|b}"], env=env)
    ticket = gw.pending()
    assert (ticket["path"], ticket["query"]) == ("/x", "q=%7Ba%7Cb%7D"), ticket
    gw.approve(ticket["id"])
    push.wait()
    assert up.requests()[-1]["target"] == "/x?q=%7Ba%7Cb%7D", up.requests()[-1]
    gw.recorded(kind="result", ticket=ticket["id"])


@test()
def an_ipv6_address_is_a_host_like_another(lab):
    files = lab.dir / "six"
    files.mkdir()
    (files / "ok").write_text("six\n")
    server = lab.start([sys.executable, "-u", "-m", "http.server", "0", "--bind", "::1", "-d", str(files)], ready=rb"port (\d+)")
    port = int(server.ready[1])
    gw = Gateway(lab, f"""version: 1
name: six
upstreams:
  - {{ host: "[::1]", port: {port}, allow_private: ["::1/128"] }}
rules:
  - {{ id: six, match: {{ host: "[::1]", port: {port}, scheme: http, effect: read }}, decide: allow }}
""")
    env = {**gw.client_env(), "NO_PROXY": "", "no_proxy": ""}
    for host in ("[::1]", "[0:0::1]"):
        assert lab.run(["curl", "-gsSf", f"http://{host}:{port}/ok"], env=env, rc=0).out == b"six\n"
    for host, why in (("[::2]", b"is not allowed by the policy"), ("127.0.0.1", b"is not allowed by the policy"),
                      ("[::ffff:127.0.0.1]", b"bad-authority")):
        done = lab.run(["curl", "-gsS", f"http://{host}:{port}/ok"], env=env, rc=0)
        assert why in done.out, done.text()


@test()
def node_with_a_proxy_agent(lab):
    up, gw, env, base = api_setup(lab)
    modules = npm_modules(HERE / "npm") / "node_modules"
    done = lab.run(["node", "-e", NODE, base], env={**env, "NODE_PATH": modules}, rc=0)
    assert b"200" in done.out and b"403" in done.out and b"ask in #platform" in done.out, done.text()


TUNNELS = """
const http = require("http"), proxy = new URL(process.env.HTTP_PROXY);
const auth = "Basic " + Buffer.from(decodeURIComponent(proxy.username + ":" + proxy.password)).toString("base64");
const tunnel = url => new Promise((done, bad) => http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT",
  path: url.hostname + ":" + (url.port || 80), headers: { Host: url.host, "Proxy-Authorization": auth } }).on("error", bad).on("connect",
  (r, socket) => r.statusCode === 200 ? done(socket) : bad(new Error("CONNECT " + r.statusCode))).end());
const ask = async (method, text) => {
  const url = new URL(text), socket = await tunnel(url);
  return new Promise((done, bad) => http.request({ host: url.hostname, port: url.port || 80, path: url.pathname, method,
    createConnection: () => socket }, r => {
    let body = ""; r.on("data", d => body += d).on("end", () => done(r.statusCode + " " + body));
  }).on("error", bad).end(method === "POST" ? "a=1" : undefined));
};
(async () => { for (let n = 1; n < process.argv.length; n += 2) console.log(await ask(process.argv[n], process.argv[n + 1])); })();
"""


@test()
def node_tunnels_plain_http(lab):
    """As undici and Node's own proxy support do: CONNECT also for http://, and no TLS behind it."""
    up = lab.upstream("upstream.test")
    place = f"host: {up.name}, port: {up.plain_port}, scheme: http"
    gw = Gateway(lab, f"""version: 1
name: plain
upstreams:
  - {{ host: {up.name}, port: {up.plain_port}, address: 127.0.0.1, allow_private: ["127.0.0.1/32"] }}
rules:
  - {{ id: reads, match: {{ {place}, effect: read }}, decide: allow }}
  - {{ id: writes, match: {{ {place}, effect: [write, delete] }}, decide: deny, say: "Writes are off, ask in #platform." }}
""")
    base = f"http://{up.name}:{up.plain_port}"
    words = ["GET", f"{base}/ok"] * 2 + ["POST", f"{base}/x", "GET", "http://countersign.internal/v1/whoami"]
    done = lab.run(["node", "-e", TUNNELS, *words], env=gw.client_env(), rc=0)
    lines = done.out.decode().split("\n\n")[:-1]
    assert sum(line.startswith("200 ") for line in lines) == 3 and '"sandbox":"agent"' in lines[-1], done.text()
    assert any(line.startswith("403 ") for line in lines) and "ask in #platform" in done.text(), done.text()
    assert up.effects() == {"GET /ok": 2}, up.effects()
    done = lab.run(["node", "-e", TUNNELS, "GET", "http://nobody-named-this.test/"], env=gw.client_env(), rc=0)
    assert done.out.startswith(b"403 ") and b"is not allowed by the policy" in done.out, done.text()


@test()
def npm_installs_and_shows_a_denied_publish(lab):
    registry = lab.verdaccio()
    registry.publish("left-pad-demo", "1.0.0", {"index.js": "module.exports = 1;\n"})
    place = f"host: {registry.host}, port: {registry.port}"
    gw = Gateway(lab, f"""version: 1
name: npm
packs: [npm@1]
upstreams:
{upstream_yaml(registry.host, registry.port, registry.ca)}
credentials:
  npm:
    source: {{ store: npm }}
    inject: {{ basic: true }}
    only: [{{ {place} }}]
rules:
  - id: read
    match: {{ {place}, effect: read }}
    decide: allow
    use: npm
  - id: no-publish
    match: {{ {place}, effect: [write, delete] }}
    decide: deny
    say: "Packages are published by the release job."
""", {"npm": f"{registry.user}:{registry.password}".encode()})
    env = {**gw.client_env(), "npm_config_registry": registry.url, "npm_config_audit": "false",
           "npm_config_fund": "false", "npm_config_update_notifier": "false"}
    work = lab.dir / "npmwork"
    work.mkdir()
    (work / "package.json").write_text('{"name":"agent-thing","version":"1.0.0","description":"x"}')
    lab.run(["npm", "install", "left-pad-demo@1.0.0"], env=env, cwd=work, rc=0)
    assert (work / "node_modules/left-pad-demo/index.js").exists()
    token = {f"npm_config_//{registry.host}:{registry.port}/:_authToken": "not-a-real-token"}
    done = lab.run(["npm", "publish"], env={**env, **token}, cwd=work)
    assert done.rc != 0 and b"published by the release job" in done.both, done.text()


@test()
def pip_shows_a_denied_file(lab):
    up = lab.upstream()
    place = f"host: {up.name}, port: {up.port}"
    gw = Gateway(lab, f"""version: 1
name: pip
packs: [pypi@1]
upstreams:
{upstream_yaml(up.name, up.port, up.ca)}
rules:
  - id: index
    match: {{ {place}, path: "/simple/**", method: [GET, HEAD] }}
    decide: allow
  - id: no-files
    match: {{ {place}, path: "/packages/**" }}
    decide: deny
    say: "demo 1.0 is not on the reviewed list."
""")
    index = '<!DOCTYPE html><a href="/packages/demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>'
    import base64
    answer = (f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(index)}\r\n\r\n{index}").encode()
    up.script({"/simple/demo/": "/raw?b64=" + base64.urlsafe_b64encode(answer).decode()})
    done = lab.run(["/usr/bin/python3", "-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--no-cache-dir",
                    "--index-url", f"https://{up.name}:{up.port}/simple/", "-d", lab.dir / "wheels", "demo"],
                   env=gw.client_env())
    assert done.rc != 0 and b"not on the reviewed list" in done.both, done.text()


main()
