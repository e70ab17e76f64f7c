#!/usr/bin/env python3
"""conf/compose and conf/kubernetes: the files fit their schemas, and the network they lay is built here from network
namespaces, with the very files the gateway's container runs, and used by unmodified programs."""
import json
import pathlib
import re
import secrets
import shutil
import subprocess
import sys

import yaml

import room  # noqa: F401
from existing import fetch_class
from gateway import Gateway, program, upstream_yaml
from harness import HERE, PATIENCE, TOP, Skip, main, test
from servers import npm_modules

sys.path.insert(0, str(HERE / "lab"))
import cable  # noqa: E402
import netns  # noqa: E402

MODULES = npm_modules(HERE / "npm")  # while there is a network
WHY = netns.own()
COMPOSE, KUBERNETES = TOP / "conf/compose", TOP / "conf/kubernetes"
SAY = "Not from here, ask in #platform."
PYTHON = "/usr/bin/python3"  # Debian's, with Debian's requests and PySocks


# the files

def schemas(lab, kind, *files, rc=0):
    return lab.run(["node", HERE / "lab/schemas.mjs", MODULES, kind, *files], rc=rc)


@test()
def the_compose_file_fits_its_schema_and_says_what_matters(lab):
    file = COMPOSE / "compose.yaml"
    schemas(lab, "compose", file)
    for good, bad in (("internal: true", "internl: true"), ("service_healthy", "healthy"), ("cap_drop:", "cap_dropp:")):
        (lab.dir / "bad.yaml").write_text(file.read_text().replace(good, bad))
        assert b"WRONG" in schemas(lab, "compose", lab.dir / "bad.yaml", rc=1).out, bad
    doc = yaml.safe_load(file.read_text())
    agent, gateway = doc["services"]["agent"], doc["services"]["gateway"]
    assert agent["networks"] == ["agents"] and doc["networks"]["agents"] == {"internal": True}
    assert gateway["networks"] == ["agents", "outward"] and "healthcheck" in gateway
    assert agent["depends_on"] == {"gateway": {"condition": "service_healthy"}}
    assert agent["volumes"] == ["public:/countersign:ro"], "never the state"


@test()
def the_kubernetes_files_fit_their_schemas_and_say_what_matters(lab):
    files = [KUBERNETES / "gateway.yaml", KUBERNETES / "agents.yaml"]
    out = schemas(lab, "kubernetes", *files).out
    assert out.count(b"valid ") == 11, out
    for good, bad in (("podSelector: {}", "podSelectr: {}"), ("replicas: 1", "replicas: one"), ("port: 3128", "prt: 3128"),
                      ("kind: NetworkPolicy", "kind: NetworkPolice"), ("policyTypes: [Egress]", "policyTypes: Egress")):
        broken = [lab.dir / f.name for f in files]
        for old, new in zip(files, broken):
            new.write_text(old.read_text().replace(good, bad))
        assert b"WRONG" in schemas(lab, "kubernetes", *broken, rc=1).out, bad
    docs = {(d["kind"], d["metadata"]["name"]): d for f in files for d in yaml.safe_load_all(f.read_text())}
    nothing = docs["NetworkPolicy", "nothing-leaves"]["spec"]
    assert nothing == {"podSelector": {}, "policyTypes": ["Egress", "Ingress"]}
    data = docs["ConfigMap", "gateway"]["data"]
    for name, text in data.items():
        (lab.dir / name).write_text(text)
    lab.run([program(), "policy", "check", lab.dir / "policy.yaml"], rc=0)
    lab.run([program(), "up", "--check-config", "--config", lab.dir / "countersign.yaml"], rc=0)
    told = re.findall(r'advertise: "(\S+?)\.(\S+?)\.svc:(\d+)"', data["countersign.yaml"])
    ports = {str(p["port"]) for p in docs["Service", "gateway"]["spec"]["ports"]}
    assert {p for _, _, p in told} == ports and {(s, n) for s, n, _ in told} == {("gateway", "countersign")}


def comes_with(packages):
    """These and what they depend on, as dpkg knows it of what is installed here."""
    listed = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Pre-Depends}, ${Depends}\\n"], capture_output=True, text=True, check=True).stdout
    needs = {line.split(" ", 1)[0]: set(re.findall(r"(?:^|[,|]) *([a-z0-9][a-z0-9.+-]+)", line.split(" ", 1)[1])) for line in listed.splitlines()}
    found, new = set(), set(packages)
    while new:
        found |= new
        new = set().union(*(needs.get(p, set()) for p in new)) - found
    return found


@test()
def the_image_has_every_library(lab):
    if b"__asan_init" in pathlib.Path(program()).read_bytes():
        raise Skip("a build with sanitizers needs theirs, and no image holds it")
    root = pathlib.Path(program()).resolve().parent.parent
    needed = set()
    for binary in [*(root / "bin").iterdir(), *(root / "libexec/countersign").iterdir()]:
        listed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False).stdout
        needed |= {pathlib.Path(p).resolve() for p in re.findall(r"=> (/\S+)", listed)}
    packages = set()
    for path in needed:  # Debian knows some of them by their place before /usr was merged
        for name in (path, str(path).removeprefix("/usr")):
            found = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True, check=False).stdout
            packages |= {found.split(":")[0]} if found else set()
    text = (COMPOSE / "Dockerfile").read_text()
    image = text.rsplit("\nFROM ", 1)[1]
    own = {p for p in packages if re.search(rf"\b{re.escape(p)}\b", image)}
    missing = packages - comes_with(own | {"libc6"})  # which a Debian image has anyway
    assert "libssl3" in own and not missing, missing
    assert all((TOP / name).exists() for name in re.findall(r"COPY (conf\S+)", text))


# the network

class Composed(Gateway):
    """conf/compose/gateway as its container would run it, and an agent beside it."""

    def __init__(self, lab, policy, secret):
        netns.need(WHY)
        self.lab, self.state, self.tokens = lab, lab.dir / "state", {}
        self.public = lab.dir / "public"
        self.public.mkdir()
        self.policy, self.config = lab.dir / "policy.yaml", lab.dir / "countersign.yaml"
        self.policy.write_text(policy)
        text = (COMPOSE / "countersign.yaml").read_text()
        for old, new in (("/var/lib/countersign", str(self.state)), ("localhost:8088", "localhost:18088")):
            assert old in text
            text = text.replace(old, new)
        self.config.write_text(text + "hold: { inline_wait: 30s, expires: 2h }\n")
        self.agent = cable.Agent(lab, name="gateway")
        self.up()
        for name, value in secret.items():
            self.cli("secret", "set", name, stdin=value.encode(), rc=0)

    def up(self):
        self.process = self.lab.start([COMPOSE / "gateway"], ready=r"countersign is up", env={
            "COUNTERSIGN_STATE": self.state, "COUNTERSIGN_CONFIG": self.config, "COUNTERSIGN_PUBLIC": self.public,
            "COUNTERSIGN_INSIDE": self.public})
        self.lab.wait_for("what the health check looks for", (self.public / "env.sh").exists)

    def variables(self, text=None):
        """What the agent's shell makes of env.sh."""
        script = (text or (self.public / "env.sh").read_text()) + "\nenv -0"
        out = self.lab.run(["env", "-i", "PATH=/usr/bin:/bin", "sh", "-c", script], rc=0).out.decode()
        env = dict(pair.split("=", 1) for pair in out.split("\0") if pair)
        return {**{k: v for k, v in env.items() if k not in ("PWD", "OLDPWD", "_", "SHLVL", "PATH")}, "GIT_AUTHOR_NAME": "a",
                "GIT_AUTHOR_EMAIL": "a@b.invalid", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b.invalid"}


def composed(lab):
    up, git = lab.upstream(), lab.git_server()
    secret = {"api": lab.canary(secrets.token_urlsafe(32)), "demo": f"{git.user}:{git.password}"}
    api, repo = f"host: {up.name}, port: {up.port}", f'host: {git.host}, port: {git.port}, path: "/demo/**"'
    gw = Composed(lab, f"""version: 1
name: topology
packs: [git@1]
upstreams:
{upstream_yaml(up.name, up.port, up.ca)}{upstream_yaml(git.host, git.port, git.ca)}
credentials:
  api: {{ source: {{ store: api }}, inject: {{ header: Authorization, format: "Bearer {{}}" }}, only: [{{ {api} }}] }}
  demo: {{ source: {{ store: demo }}, inject: {{ basic: true }}, only: [{{ {repo} }}] }}
rules:
  - {{ id: read, match: {{ {api}, effect: read }}, decide: allow, use: api }}
  - {{ id: write, match: {{ {api}, effect: write }}, decide: hold, use: api, approve: {{ within: 2h }} }}
  - {{ id: never, match: {{ {api}, effect: write, path: "/never" }}, decide: deny, say: "{SAY}" }}
  - {{ id: fetch, match: {{ {repo}, op: [git.fetch, git.fetch.refs] }}, decide: allow, use: demo }}
  - {{ id: push, match: {{ {repo}, op: git.push }}, decide: hold, use: demo, approve: {{ within: 2h }} }}
  - {{ id: tags, match: {{ {repo}, op: git.push, git: {{ refs: ["refs/tags/**"] }} }}, decide: deny, say: "{SAY}" }}
""", secret)
    gw.upstream, gw.git, gw.secret = up, git, secret["api"]
    gw.base = f"https://{up.name}:{up.port}"
    return gw


def use(gw, env, read, write, denied, sandbox="agent"):
    """A program reads; its write waits for a person and then lands, once; what is denied it shows in these words."""
    before = gw.upstream.effects()
    done = gw.agent.run(read, env=env, rc=0)
    assert b'"ok":' in done.out, done.text()
    assert ["Authorization", f"Bearer {gw.secret}"] in [list(f) for f in gw.upstream.requests()[-1]["fields"]]
    client = gw.agent.start(write, env=env)
    ticket = gw.pending()
    assert ticket["sandbox"] == sandbox and gw.upstream.effects() == {**before, "GET /ok": before.get("GET /ok", 0) + 1}
    gw.approve(ticket["id"])
    assert client.wait(40) == 0, client.seen
    assert gw.upstream.effects()["POST /things"] == before.get("POST /things", 0) + 1
    done = gw.agent.run(denied, env=env)
    assert SAY.encode() in done.both, done.text()
    assert "POST /never" not in gw.upstream.effects()


def use_git(gw, env, work):
    """The same of git, on a clone of its own."""
    place = gw.lab.dir / work
    gw.agent.run(["git", "clone", "-q", gw.git.url, place], env=env, rc=0)
    (place / "file").write_text(secrets.token_hex(8))
    gw.agent.run(["git", "-C", place, "add", "file"], env=env, rc=0)
    gw.agent.run(["git", "-C", place, "commit", "-qm", "by an agent"], env=env, rc=0)
    before = len(gw.git.landed())
    push = gw.agent.start(["git", "-C", str(place), "push", "-q", "origin", "HEAD:main"], env=env)
    ticket = gw.pending()
    assert len(gw.git.landed()) == before
    gw.approve(ticket["id"])
    assert push.wait(40) == 0 and len(gw.git.landed()) == before + 1, push.seen
    done = gw.agent.run(["git", "-C", place, "push", "origin", "HEAD:refs/tags/v1"], env=env)
    assert done.rc != 0 and SAY.encode() in done.both, done.text()
    assert len(gw.git.landed()) == before + 1


def curl(gw, path, *more):
    return ["curl", "-sS", "--max-time", str(PATIENCE), *more, gw.base + path]


def wget(gw, env, path, *more):
    """wget reads no variable for its roots: in a container, update-ca-certificates tells it."""
    return ["wget", "-nv", "-O-", "--content-on-error", "--tries=1", f"--timeout={PATIENCE}",
            f"--ca-certificate={env['SSL_CERT_FILE']}", *more, gw.base + path]


REQUESTS = """
import sys, requests
method, url = sys.argv[1:]
answer = requests.request(method, url, data={"a": "1"} if method == "POST" else None, timeout=300)
print(answer.text)
"""


def requests(gw, method, path):
    return [PYTHON, "-c", REQUESTS, method, gw.base + path]


@test()
def programs_pass_by_connect(lab):
    gw = composed(lab)
    env = gw.variables()
    assert env["HTTPS_PROXY"].startswith("http://agent:cst_") and env["HTTPS_PROXY"].endswith("@gateway:3128"), env
    use(gw, env, curl(gw, "/ok", "-f"), curl(gw, "/things", "-f", "-da=1"), curl(gw, "/never", "-da=1"))
    use(gw, env, wget(gw, env, "/ok"), wget(gw, env, "/things", "--post-data=a=1"), wget(gw, env, "/never", "--post-data=a=1"))
    use(gw, env, requests(gw, "GET", "/ok"), requests(gw, "POST", "/things"), requests(gw, "POST", "/never"))
    use_git(gw, env, "one")
    assert gw.cli("audit", "verify").rc == 0
    assert b"a name that only sandboxes know" in gw.cli("doctor", rc=0).out
    done = gw.agent.run([program(), "doctor", "--from-sandbox", "--direct", f"{gw.agent.gateway}:18088"], env=env)
    assert done.rc == 0, done.text()


NODE = """
const [method, url] = process.argv.slice(1);
fetch(url, { method, body: method === "POST" ? "a=1" : undefined }).then(async r => console.log(await r.text()));
"""


@test()
def nodes_fetch_passes_by_its_variable(lab):
    version = [int(n) for n in lab.run(["node", "-p", "process.versions.node"], rc=0).out.split(b".")]
    if not (version >= [24] or [22, 21] <= version[:2] < [23]):
        raise Skip(f"Node {version[0]}.{version[1]} reads no proxy variable; 22.21 and 24 do")
    gw = composed(lab)
    ask = [["node", "-e", NODE, method, gw.base + path] for method, path in
           (("GET", "/ok"), ("POST", "/things"), ("POST", "/never"))]
    use(gw, gw.variables(), *ask)


@test()
def programs_pass_by_socks(lab):
    gw = composed(lab)
    env = gw.variables(gw.cli("env", "agent", "--via", "socks5", "--dir", gw.public, rc=0).out.decode())
    assert env["ALL_PROXY"].startswith("socks5h://agent:cst_") and env["ALL_PROXY"].endswith("@gateway:1080"), env
    use(gw, env, curl(gw, "/ok", "-f"), curl(gw, "/things", "-f", "-da=1"), curl(gw, "/never", "-da=1"))
    if subprocess.run([PYTHON, "-c", "import socks"], check=False, stderr=subprocess.DEVNULL).returncode == 0:
        use(gw, env, requests(gw, "GET", "/ok"), requests(gw, "POST", "/things"), requests(gw, "POST", "/never"))
    else:
        print("# skipped: Python's requests over SOCKS (package python3-socks)")
    use_git(gw, env, "two")


@test()
def java_passes_where_its_address_says_who_it_is(lab):
    """The JVM says no token: the compose file's listeners are not for it, one with `source` is."""
    classes = fetch_class(lab)
    gw = composed(lab)
    gw.stop()
    gw.config.write_text(gw.config.read_text().replace("listeners:\n", "listeners:\n" +
                         '  - { name: java, http: "0.0.0.0:3129", identity: { source: { "%s": jvm } } }\n' % gw.agent.address))
    gw.up()
    env = gw.variables()
    env["JAVA_TOOL_OPTIONS"] = env["JAVA_TOOL_OPTIONS"].replace("proxyPort=3128", "proxyPort=3129")
    ask = [["java", "-cp", classes, "Fetch", *words] for words in
           (["GET", gw.base + "/ok"], ["POST", gw.base + "/things", "a=1"], ["POST", gw.base + "/never", "a=1"])]
    use(gw, env, *ask, sandbox="jvm")


TRIES = """
import errno, json, socket, sys
seen = {}
for kind, host, port in json.loads(sys.argv[1]):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    s.settimeout(300)
    try:
        s.connect((host, port))
        if kind == "udp":
            s.send(b"x")
        seen[f"{kind} {host} {port}"] = "open"
    except OSError as e:
        seen[f"{kind} {host} {port}"] = errno.errorcode.get(e.errno, str(e))
print(json.dumps(seen))
"""


@test()
def there_is_no_other_way_out(lab):
    gw = composed(lab)
    env, ours = gw.variables(), gw.agent.gateway
    away = [["tcp", "192.0.2.7", 443], ["tcp", "192.0.2.7", 22], ["udp", "192.0.2.7", 53], ["udp", "192.0.2.7", 443],
            ["tcp", "2001:db8::7", 443], ["tcp", "169.254.169.254", 80]]
    near = [["tcp", ours, port] for port in (18088, gw.upstream.port, gw.git.port, 22, 53)] + \
           [["tcp", "127.0.0.1", port] for port in (18088, 3128)]
    done = gw.agent.run([PYTHON, "-c", TRIES, json.dumps(away + near)], rc=0)
    seen = json.loads(done.out)
    assert all(seen[f"{k} {h} {p}"] == "ENETUNREACH" for k, h, p in away), seen
    assert all(seen[f"{k} {h} {p}"] == "ECONNREFUSED" for k, h, p in near), seen
    assert gw.agent.run(["curl", "-sS", "--noproxy", "*", "--max-time", "5", gw.base + "/ok"], env=env).rc != 0
    # The desk answers here; from there neither its own address nor the proxy leads to it.
    desk = b"Sign in"
    assert desk in lab.run(["curl", "-sS", "http://localhost:18088/"], rc=0).out
    for host in ("localhost", "127.0.0.1", ours, "gateway", "[::1]"):
        for scheme in ("http", "https"):
            done = gw.agent.run(["curl", "-sSk", "--max-time", str(PATIENCE), "-w", "\n%{http_code}", f"{scheme}://{host}:18088/"],
                                env={**env, "NO_PROXY": "", "no_proxy": ""})
            assert not done.out.endswith(b"\n200") and desk not in done.out, (scheme, host, done.text())


@test()
def the_token_outlives_a_restart_and_not_its_state(lab):
    lab.expects("ledger: .* made a new store")
    gw = composed(lab)
    env = gw.variables()
    gw.stop()
    gw.up()
    gw.agent.run(curl(gw, "/ok", "-f"), env=env, rc=0)
    assert gw.variables() == env
    gw.stop()
    shutil.rmtree(gw.state)
    (gw.public / "ca.crt").unlink()
    gw.up()
    lab.wait_for("new variables", lambda: gw.variables() != env)
    gw.cli("secret", "set", "api", stdin=gw.secret.encode(), rc=0)
    lab.wait_for("the keeper's word", lambda: gw.agent.run(curl(gw, "/ok", "-f"), env=gw.variables()).rc == 0)


main()
