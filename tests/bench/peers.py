"""The proxies of the bench. Each start_NAME(bench) starts one pinned to the proxy's core and returns a Peer,
or raises Missing when it is not installed. All of them: TLS 1.3 on both legs, P-256 certificates, the upstream's
chain and name verified, one header injected that the origin insists on."""
import base64
import grp
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

PROXY_CPU, LOAD_CPU = "0", "1"
HOSTS = "bench.test"  # h0.bench.test and so on are the origin, too
HERE = pathlib.Path(__file__).resolve().parent


class Missing(Exception):
    """This proxy is not on the machine; says what would bring it."""


class Peer:
    """A running proxy. reverse: loadgen speaks TLS to it straight; else CONNECT. ca: what its client trusts. any_host: it
    makes a certificate for whatever host is asked for, and finds the bench's hosts."""

    def __init__(self, name, popen, port, ca, reverse=False, auth=None, any_host=False):
        self.name, self.popen, self.port, self.ca, self.reverse, self.auth = name, popen, port, ca, reverse, auth
        self.any_host, self.hosts_asked = any_host, 0

    def tree(self):
        return family(self.popen.pid)

    def cpu_us(self):
        """User and system time of every process of the proxy together, so far."""
        return sum(stat(pid)[1] for pid in self.tree()) * 1e6 / os.sysconf("SC_CLK_TCK")

    def memory_kib(self):
        total = 0
        for pid in self.tree():
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        return total

    def stop(self):
        """TERM to its group, KILL after ten seconds; only what this Peer started."""
        pids = self.tree()
        for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 5)):
            signal_group(self.popen.pid, number)
            try:
                self.popen.wait(patience)
            except subprocess.TimeoutExpired:
                continue
            break
        for pid in pids:
            if stat(pid) and os.getpgid(pid) == self.popen.pid:
                os.kill(pid, signal.SIGKILL)


def signal_group(pgid, number):
    try:
        os.killpg(pgid, number)
    except ProcessLookupError:
        pass


def stat(pid):
    """(parent, utime + stime in ticks), or None when it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else (int(fields[1]), int(fields[11]) + int(fields[12]))


def family(root):
    """root and everything below it."""
    parents = {int(e): s[0] for e in os.listdir("/proc") if e.isdigit() and (s := stat(e))}
    found = [root] if root in parents else []
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def program(name, package):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Missing(f"apt-get install {package}")
    return path


def launch(bench, name, command, port, cpu=PROXY_CPU, env=None):
    """Starts it in a group of its own and waits until it takes connections."""
    log = open(bench.dir / f"{name}.out", "ab")
    popen = subprocess.Popen(["taskset", "-c", cpu] + [str(c) for c in command], stdout=log, stderr=log,
                             stdin=subprocess.DEVNULL, start_new_session=True, env=env, cwd=bench.dir)
    end, pause = time.monotonic() + 30, threading.Event()
    while time.monotonic() < end and popen.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return popen
        except OSError:
            pause.wait(0.02)
    signal_group(popen.pid, signal.SIGKILL)
    said = (bench.dir / f"{name}.out").read_text(errors="replace")[-2000:]
    raise RuntimeError(f"{name} does not listen on port {port} (see {bench.dir}):\n{said}")


def configure(bench, name, port=0):
    """conf/NAME.conf.in with its @WORDS@ filled in."""
    root = os.getuid() == 0
    group = "nogroup" if any(g.gr_name == "nogroup" for g in grp.getgrall()) else "nobody"
    words = {"DIR": bench.dir, "PORT": port, "ORIGIN": bench.origin_port, "SECRET": bench.secret,
             "USER": f"user nobody {group};" if root else "",
             "SQUIDUSER": "cache_effective_user proxy" if root else ""}
    text = (HERE / "conf" / f"{name}.conf.in").read_text()
    for word, value in words.items():
        text = text.replace(f"@{word}@", str(value))
    path = bench.dir / f"{name}.conf"
    path.write_text(text)
    return path


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


def start_origin(bench):
    nginx = program("nginx", "nginx-light")
    command = [nginx, "-p", bench.dir, "-e", "origin.log", "-c", configure(bench, "origin")]
    return Peer("origin", launch(bench, "origin", command, bench.origin_port, LOAD_CPU), bench.origin_port, bench.ca)


def start_nginx(bench):
    nginx, port = program("nginx", "nginx-light"), free_port()
    command = [nginx, "-p", bench.dir, "-e", "nginx.log", "-c", configure(bench, "nginx", port)]
    return Peer("nginx", launch(bench, "nginx", command, port), port, bench.ca, reverse=True)


def start_haproxy(bench):
    haproxy, port = program("haproxy", "haproxy"), free_port()
    command = [haproxy, "-db", "-f", configure(bench, "haproxy", port)]
    return Peer("haproxy", launch(bench, "haproxy", command, port), port, bench.ca, reverse=True)


def start_squid(bench):
    squid, port = program("squid", "squid-openssl"), free_port()
    certgen = pathlib.Path("/usr/lib/squid/security_file_certgen")
    if not certgen.exists():
        raise Missing("apt-get install squid-openssl (the squid here cannot intercept TLS)")
    store = bench.dir / "squid-certs"
    if not store.exists():
        subprocess.run([certgen, "-c", "-s", store, "-M", "4MB"], check=True, stdout=subprocess.DEVNULL)
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", "proxy", store], check=True)
        (bench.dir / "squid.log").touch()
        shutil.chown(bench.dir / "squid.log", "proxy")
    (bench.dir / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"127.0.0.1 h{n}.{HOSTS}\n" for n in range(bench.hosts)))
    command = [squid, "-N", "-f", configure(bench, "squid", port)]
    return Peer("squid", launch(bench, "squid", command, port), port, bench.ca, any_host=True)


def start_mitmproxy(bench):
    mitmdump, port = program("mitmdump", "mitmproxy"), free_port()
    home = bench.dir / "mitm"
    home.mkdir(exist_ok=True)
    shutil.copy(bench.dir / "ca/ca.both.pem", home / "mitmproxy-ca.pem")
    options = {"confdir": home, "listen_host": "127.0.0.1", "listen_port": port, "http2": "false",
               "modify_headers": f"/~q/Authorization/Bearer {bench.secret}", "flow_detail": 0,
               "ssl_verify_upstream_trusted_ca": bench.ca, "tls_version_client_min": "TLS1_3",
               "tls_version_server_min": "TLS1_3"}
    command = [mitmdump, "-q"] + [word for k, v in options.items() for word in ("--set", f"{k}={v}")]
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    return Peer("mitmproxy", launch(bench, "mitmproxy", command, port, env=env), port, bench.ca)


COUNTERSIGN_POLICY = """version: 1
name: bench
upstreams:
{hosts}  - {{ host: localhost, port: {port}, address: 127.0.0.1, allow_private: ["127.0.0.1/32"], ca: "{ca}" }}
credentials:
  origin:
    source: {{ store: origin }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{{ host: localhost, port: {port} }}]
rules:
  - {{ id: read, match: {{ host: localhost, port: {port}, effect: read }}, decide: allow, use: origin }}
  - {{ id: post, match: {{ host: localhost, port: {port}, method: POST, path: /post }}, decide: allow, use: origin }}
  - {{ id: open, match: {{ host: "*.bench.test", port: {port}, effect: read }}, decide: allow }}
"""
HOST = '  - {{ host: h{n}.bench.test, port: {port}, address: 127.0.0.1, allow_private: ["127.0.0.1/32"], ca: "{ca}" }}\n'


def start_countersign(bench, rules="", others=()):
    """The whole gateway, with policy, interception, injection, scrubbing and audit. rules: YAML, more of them; others:
    more sandboxes, whose credentials are in the peer's `others`."""
    if not bench.prefix:
        raise Missing("no --prefix with an installed countersign")
    prefix, port, home = pathlib.Path(bench.prefix).resolve(), free_port(), bench.dir / "countersign"
    program = prefix / "bin/countersign" if (prefix / "bin").is_dir() else prefix / "countersign"
    home.mkdir(exist_ok=True)
    (home / "policy.yaml").write_text(COUNTERSIGN_POLICY.format(
        port=bench.origin_port, ca=bench.ca,
        hosts="".join(HOST.format(n=n, port=bench.origin_port, ca=bench.ca) for n in range(bench.hosts))) + rules)
    (home / "countersign.yaml").write_text(
        "version: 1\nstate_dir: state\npolicy: [policy.yaml]\ndesk: { http: \"localhost:0\" }\n"
        "limits: { sandboxes: 600, connections: 2500 }\n"
        f'listeners: [{{ name: agents, http: "127.0.0.1:{port}", identity: token }}]\n')
    popen = launch(bench, "countersign", [program, "up", "--config", home / "countersign.yaml"], port)
    env = {"PATH": os.environ["PATH"], "COUNTERSIGN_STATE": str(home / "state")}

    def cli(*words, stdin=None):
        end, pause = time.monotonic() + 20, threading.Event()
        while True:  # the control socket is served a little after the proxy's port
            done = subprocess.run([program, *words], env=env, input=stdin, capture_output=True)
            if done.returncode == 0 or time.monotonic() > end:
                done.check_returncode()
                return done.stdout
            pause.wait(0.05)

    cli("secret", "set", "origin", stdin=bench.secret.encode())

    def create(name):
        token = json.loads(cli("sandbox", "create", name, "--json"))["token"]
        return base64.b64encode(f"{name}:{token}".encode()).decode()
    peer = Peer("countersign", popen, port, home / "state/ca.crt", auth=create("bench"), any_host=True)
    peer.others = {name: create(name) for name in others}
    return peer


PEERS = {"countersign": start_countersign, "nginx": start_nginx, "haproxy": start_haproxy, "squid": start_squid,
         "mitmproxy": start_mitmproxy}
