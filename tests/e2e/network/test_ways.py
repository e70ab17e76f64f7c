#!/usr/bin/env python3
"""Unmodified programs through the ways in that have a lobby or an identity of their own: SOCKS5, source address,
client certificate, PROXY v2, TLS to the proxy itself. Each: a read passes, a write is held, a denial says its words."""
import re
import secrets
import socket
import ssl
import subprocess

import room  # noqa: F401
from gateway import Gateway, simple_policy
from harness import PATIENCE, Skip, main, test
from lab.certs import CA
from ways import answers, exactly, proxy2

NO = "Writes are off, ask in #platform."


def setup(lab, listeners, write="hold", **more):
    up = lab.upstream()
    secret = lab.canary(secrets.token_urlsafe(32))
    gw = Gateway(lab, simple_policy(up, write=write), {"api": secret.encode()}, listeners=listeners, **more)
    return up, secret, gw


def door(gw, name):
    """host:port of a listener, in the order of the configuration; the first one is agents."""
    seen = gw.process.seen.decode()
    shown = re.findall(r"^(?:proxy|captured) +(?:\w+://)?(\S+:\d+) ", seen, re.M)
    return shown[name]


def curl(gw, up, path, *more):
    return ["curl", "-sS", "--max-time", str(PATIENCE), "--suppress-connect-headers", "-D", "-", "--cacert", gw.state / "bundle.crt",
            "--noproxy", "", *more, f"https://{up.name}:{up.port}{path}"]


def writes(up):
    return {what: n for what, n in up.effects().items() if not what.startswith("GET ")}


def a_read_a_write_a_denial(lab, gw, up, secret, *proxy, name):
    """With curl: the read has the credential outside, the write waits and passes once, and a denial is understood."""
    done = lab.run(curl(gw, up, "/ok", *proxy), rc=0)
    assert b" 200 " in done.out, done.text()
    first = up.requests()[-1]
    assert ["Authorization", f"Bearer {secret}"] in [list(f) for f in first["fields"]], first
    client = lab.start(curl(gw, up, "/things", *proxy, "-X", "POST", "--data-binary", "a=1"))
    ticket = gw.pending()
    assert ticket["sandbox"] == name, ticket
    assert writes(up) == {}, writes(up)
    gw.approve(ticket["id"])
    client.wait_line(r"HTTP/1.1 200")
    assert client.wait() == 0 and writes(up) == {"POST /things": 1}, writes(up)
    client = lab.start(curl(gw, up, "/things", *proxy, "-X", "POST", "--data-binary", "a=2"))
    gw.deny(gw.pending()["id"], NO)
    client.wait_line(re.escape(NO))
    client.wait()
    assert writes(up) == {"POST /things": 1}, writes(up)
    assert not any("proxy-" in n.lower() for r in up.requests() for n, _ in r["fields"]), "a field of ours went upstream"


SOCKS = '{ name: e2b, socks5: "127.0.0.1:0", identity: token }'


@test("D32 socks", "D33 socks")
def socks5_with_curl(lab):
    up, secret, gw = setup(lab, [SOCKS])
    proxy = f"socks5h://agent:{gw.token('agent')}@{door(gw, 1)}"
    a_read_a_write_a_denial(lab, gw, up, secret, "--proxy", proxy, name="agent")


PYTHON = """
import sys, requests
print(requests.request(sys.argv[1], sys.argv[2], data=sys.argv[3] or None, timeout=300).text)
"""


@test()
def socks5_with_python(lab):
    if subprocess.run(["/usr/bin/python3", "-c", "import requests, socks"], capture_output=True, check=False).returncode:
        raise Skip("python3-requests and python3-socks")
    up, secret, gw = setup(lab, [SOCKS])
    env = dict(line.split("=", 1) for line in gw.cli(
        "sandbox", "create", "py", rc=0).out.decode().replace("export ", "").replace("'", "").splitlines())
    gw.tokens["py"] = re.search(r"cst_\w+", env["HTTPS_PROXY"])[0]
    env = dict(line.split("=", 1) for line in gw.cli(
        "env", "py", "--via", "socks5", rc=0).out.decode().replace("export ", "").replace("'", "").splitlines())
    assert env["ALL_PROXY"].startswith("socks5h://py:"), env

    def ask(method, path, data=""):
        return ["/usr/bin/python3", "-c", PYTHON, method, f"https://{up.name}:{up.port}{path}", data]
    assert lab.run(ask("GET", "/ok"), env=env, rc=0).out.strip() == b'{"ok":true}'
    client = lab.start(ask("POST", "/things", "a=1"), env=env)
    gw.approve(gw.pending()["id"])
    assert client.wait() == 0 and writes(up) == {"POST /things": 1}, writes(up)
    client = lab.start(ask("POST", "/things", "a=2"), env=env)
    gw.deny(gw.pending()["id"], NO)
    client.wait_line(re.escape(NO))
    assert writes(up) == {"POST /things": 1}, writes(up)


@test("D32 socks-refused")
def socks5_with_another_password(lab):
    up, secret, gw = setup(lab, [SOCKS])
    gw.token("agent")
    for password in ("wrong", "cst_" + "a" * 52):
        done = lab.run(curl(gw, up, "/ok", "--proxy", f"socks5h://agent:{password}@{door(gw, 1)}"))
        assert done.rc == 97, done.text()  # curl: proxy handshake error
    done = lab.run(curl(gw, up, "/ok", "--proxy", f"socks5h://{door(gw, 1)}"))
    assert done.rc == 97, done.text()
    lab.wait_for("the counts", lambda: gw.refused().get(("e2b", "unknown-token")) == 2
                 and gw.refused().get(("e2b", "socks-no-method")) == 1)
    assert b"refused   e2b  unknown-token  2 times" in gw.cli("status", rc=0).out
    assert up.requests() == []


@test()
def other_protocols_are_refused_and_not_reflected(lab):
    up, secret, gw = setup(lab, [SOCKS])
    mine = b"reflect-me"
    for where, first in ((0, b"\x04\x01\x00\x50\x01\x02\x03\x04" + mine + b"\0"), (0, b"\x05\x01\x00" + mine),
                         (0, b"\x16\x03\x01\x00\x80" + mine), (0, b"SSH-2.0-" + mine + b"\r\n"),
                         (0, b"EHLO " + mine + b"\r\n"), (1, b"SSH-2.0-" + mine + b"\r\n"),
                         (1, b"GET http://" + mine + b"/ HTTP/1.1\r\n\r\n"), (1, b"\x04\x01\x00\x50\x01\x02\x03\x04" + mine + b"\0")):
        got = ask(door(gw, where), first, end=True)
        assert mine not in got, (first, got)
        assert b" 200 " not in got and not got.startswith(b"\x05\x00"), (first, got)
    assert up.requests() == [], up.requests()
    a_read = lab.run(curl(gw, up, "/ok", "--proxy", f"http://agent:{gw.token('agent')}@{gw.proxy}"), rc=0)
    assert b" 200 " in a_read.out


def connect_to(where):
    host, port = where.rsplit(":", 1)
    return socket.create_connection((host, int(port)), PATIENCE)


def ask(where, data, end=False):
    """Everything that came back until the other side closed."""
    with connect_to(where) as s:
        s.sendall(data)
        if end:
            s.shutdown(socket.SHUT_WR)
        got = b""
        try:
            while more := s.recv(65536):
                got += more
        except ConnectionError:
            pass
        return got


@test("D32 source")
def the_source_address_names_the_sandbox(lab):
    up, secret, gw = setup(lab, ['{ name: vms, http: "127.0.0.1:0", identity: { source: '
                                 '{ "127.0.0.0/8": rest, "127.0.0.5/32": vm5 } } }',
                                 '{ name: far, http: "127.0.0.1:0", identity: { source: { "192.0.2.1": vm6 } } }'])
    proxy = f"http://{door(gw, 1)}"
    a_read_a_write_a_denial(lab, gw, up, secret, "--proxy", proxy, "--interface", "127.0.0.5", name="vm5")
    # Whatever else it says of itself: the address counts.
    client = lab.start(curl(gw, up, "/other", "--proxy", proxy.replace("//", "//vm5:x@"), "--interface", "127.0.0.9", "-d", "a=3"))
    ticket = gw.pending()
    assert ticket["sandbox"] == "rest", ticket
    gw.deny(ticket["id"], NO)
    client.wait()
    done = lab.run(curl(gw, up, "/ok", "--proxy", f"http://{door(gw, 2)}"))
    assert done.rc == 56, done.text()
    lab.wait_for("the count", lambda: gw.refused().get(("far", "unknown-source")) == 1)
    names = {s["name"] for s in gw.cli_json("sandbox", "list")["sandboxes"]}
    assert names >= {"vm5", "vm6", "rest"}, names
    gw.cli("sandbox", "rm", "vm5", rc=0)  # no sandbox any more, whoever comes from there
    before = len(up.requests())
    done = lab.run(curl(gw, up, "/ok", "--proxy", proxy, "--interface", "127.0.0.5"))
    assert b" 200 OK" not in done.both and len(up.requests()) == before, done.text()


@test("D32 own")
def a_tcp_listener_of_one_sandbox(lab):
    up, secret, gw = setup(lab, ['{ name: own, http: "127.0.0.1:0", identity: { sandbox: vm7 } }',
                                 '{ name: socks, socks5: "127.0.0.1:0", identity: { sandbox: vm8 } }'])
    a_read_a_write_a_denial(lab, gw, up, secret, "--proxy", f"http://{door(gw, 1)}", name="vm7")
    done = lab.run(curl(gw, up, "/ok", "--proxy", f"socks5h://{door(gw, 2)}"), rc=0)
    assert b" 200 " in done.out, done.text()


def tls_files(lab, name="gw.test"):
    ca = CA(lab.dir / "proxy-ca", "Proxy CA")
    cert, key = ca.leaf(name)
    return ca, f"tls: {{ certificate: {cert}, key: {key}"


@test("D32 tls")
def a_proxy_that_speaks_tls(lab):
    ca, tls = tls_files(lab)
    (lab.dir / "live.pem").symlink_to(ca.dir / "gw.test.pem")  # as renewed certificates often are
    tls = tls.replace(str(ca.dir / "gw.test.pem"), "live.pem")
    up, secret, gw = setup(lab, [f'{{ name: web, http: "127.0.0.1:0", identity: token, {tls} }} }}'])
    proxy = ["--proxy", f"https://agent:{gw.token('agent')}@{door(gw, 1)}", "--proxy-cacert", ca.cert]
    a_read_a_write_a_denial(lab, gw, up, secret, *proxy, name="agent")
    gw.kill("lobby")  # another one reads the same files from their beginning
    assert b" 200 " in lab.run(curl(gw, up, "/ok", *proxy), rc=0).out
    done = lab.run(curl(gw, up, "/ok", "--proxy", f"https://agent:wrong@{door(gw, 1)}", "--proxy-cacert", ca.cert))
    assert done.rc == 56 and b"407" in done.err, done.text()
    plain = ask(door(gw, 1), b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
    assert b"HTTP" not in plain, plain
    lab.wait_for("the counts", lambda: gw.refused().get(("web", "tls-failed")) == 1
                 and gw.refused().get(("web", "unknown-token")) == 1)


@test("D32 certificate")
def the_client_certificate_names_the_sandbox(lab):
    ca, tls = tls_files(lab)
    names = "identity: { certificate: { vm1.example: vm1, vm2.example: vm2 } }"
    up, secret, gw = setup(lab, [f'{{ name: mtls, http: "127.0.0.1:0", {names}, {tls}, clients: {ca.cert} }} }}',
                                 f'{{ name: stls, socks5: "127.0.0.1:0", identity: token, {tls} }} }}'])
    cert, key = ca.leaf("vm1.example", ["DNS:vm1.example"], usage="clientAuth")
    proxy = ["--proxy", f"https://{door(gw, 1)}", "--proxy-cacert", ca.cert]
    a_read_a_write_a_denial(lab, gw, up, secret, *proxy, "--proxy-cert", cert, "--proxy-key", key, name="vm1")
    other, other_key = ca.leaf("vm3.example", ["DNS:vm3.example"], usage="clientAuth")
    stranger = CA(lab.dir / "stranger", "Stranger")
    strange, strange_key = stranger.leaf("vm1.example", ["DNS:vm1.example"], usage="clientAuth")
    for more in ((), ("--proxy-cert", other, "--proxy-key", other_key), ("--proxy-cert", strange, "--proxy-key", strange_key)):
        assert lab.run(curl(gw, up, "/ok", *proxy, *more)).rc != 0
    lab.wait_for("the counts", lambda: gw.refused().get(("mtls", "unknown-certificate")) == 1
                 and gw.refused().get(("mtls", "tls-failed")) == 2)
    assert len(up.requests()) == 2, up.requests()
    # SOCKS inside TLS, which no curl speaks: by hand.
    token = gw.token("agent").encode()
    context = ssl.create_default_context(cafile=ca.cert)
    with context.wrap_socket(connect_to(door(gw, 2)), server_hostname="gw.test") as s:
        s.sendall(b"\x05\x01\x02\x01\x01u" + bytes([len(token)]) + token)
        assert exactly(s, 4) == b"\x05\x02\x01\x00"


BEHIND = '{ name: behind, http: "127.0.0.1:0", proxy_protocol: ["%s"], identity: { source: { "192.0.2.99": vm9 } } }'
TOKENS = '{ name: tokens, http: "127.0.0.1:0", proxy_protocol: ["%s"], identity: token }'


def get(up, more=""):
    return f"GET http://{up.name}:{up.plain_port}/ok HTTP/1.1\r\nHost: {up.name}:{up.plain_port}\r\n{more}Connection: close\r\n\r\n".encode()


@test()
def a_proxy_header_of_a_listed_peer(lab):
    up, secret, gw = setup(lab, [BEHIND % "127.0.0.1", TOKENS % "127.0.0.0/8"])
    with connect_to(door(gw, 1)) as raw:
        raw.sendall(proxy2(443))
        raw.sendall(f"CONNECT {up.name}:{up.port} HTTP/1.1\r\nHost: {up.name}:{up.port}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += exactly(raw, 1)
        assert b" 200 " in head, head
        context = ssl.create_default_context(cafile=gw.state / "ca.crt")
        with context.wrap_socket(raw, server_hostname=up.name) as s:
            s.sendall(f"GET /ok HTTP/1.1\r\nHost: {up.name}:{up.port}\r\nConnection: close\r\n\r\n".encode())
            got = b""
            while more := s.recv(65536):
                got += more
    assert answers(got, closed=True)[0][0] == 200, got
    lab.wait_for("the record", lambda: [r for r in gw.audit() if r.get("sandbox") == "vm9" and r.get("path") == "/ok"])
    # It must be there, whole, and of this version; what follows is read as ever.
    for first in (get(up), b"PROXY TCP4 192.0.2.99 192.0.2.7 1 2\r\n" + get(up), proxy2(443)[:-1] + b"", proxy2(443, command=0x31)):
        got = ask(door(gw, 1), first, end=True)
        assert b" 200 " not in got and b"192.0.2" not in got, got
    got = ask(door(gw, 2), proxy2(443) + get(up))
    assert b" 407 " in got, got
    lab.wait_for("the count", lambda: gw.refused().get(("behind", "bad-proxy-header")) == 3)


@test()
def a_proxy_header_of_anybody_else(lab):
    up, secret, gw = setup(lab, [BEHIND % "192.0.2.1", TOKENS % "192.0.2.1",
                                 '{ name: vms, http: "127.0.0.1:0", identity: { source: { 127.0.0.1: vm1 } } }'])
    auth = f"Proxy-Authorization: {gw.basic()}\r\n"
    for n, where in enumerate((0, 1, 2)):
        for header in (proxy2(443), b"PROXY TCP4 192.0.2.99 192.0.2.7 1 2\r\n"):
            got = ask(door(gw, where), header + get(up, auth))
            assert b" 200 " not in got and b"192.0.2" not in got, got
    # Known by where it comes from, it is refused by its front.
    for header in (proxy2(443), b"PROXY TCP4 192.0.2.99 192.0.2.7 1 2\r\n"):
        got = ask(door(gw, 3), header + get(up))
        assert b" 200 " not in got and b"192.0.2" not in got, got
    lab.wait_for("the front's counts", lambda: [k for k in gw.refused() if k[0] == "vm1"])
    assert up.requests() == [], up.requests()
    counts = lab.wait_for("the counts", lambda: {k: n for k, n in gw.refused().items() if k[0] != "vm1"} if len(gw.refused()) >= 4 else None)
    assert counts == {("agents", "bad-proxy-header"): 2, ("tokens", "bad-proxy-header"): 2, ("behind", "unknown-source"): 2}, counts


def query(name):
    return b"\x12\x34\x01\x00\x00\x01" + b"\0" * 6 + b"".join(bytes([len(w)]) + w.encode() for w in name.split(".")) + b"\0\0\x01\0\x01"


@test()
def a_transparent_listener_takes_only_the_captured_and_answers_dns(lab):
    up, secret, gw = setup(lab, ['{ name: vm, transparent: "127.0.0.1:0", dns: "127.0.0.1:0", identity: { sandbox: vm1 } }',
                                 '{ name: vms, transparent: "127.0.0.1:0", identity: { source: { 127.0.0.1: vm2 } } }'])
    for where in (1, 2):
        got = ask(door(gw, where), get(up))  # it came straight to us
        assert b" 200 " not in got, got
    assert up.requests() == []
    lab.wait_for("the counts", lambda: gw.refused().get(("vms", "not-captured")) == 1 and [k for k in gw.refused() if k[0] == "vm1"])
    host, port = re.search(r"^dns +(\S+):(\d+) ", gw.process.seen.decode(), re.M).groups()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(PATIENCE)
        s.sendto(query("never-asked.test"), (host, int(port)))
        udp = s.recv(4096)
    with socket.create_connection((host, int(port)), PATIENCE) as s:
        s.sendall(len(query("never-asked.test")).to_bytes(2, "big") + query("never-asked.test"))
        tcp = exactly(s, int.from_bytes(exactly(s, 2), "big"))
    for answer in (udp, tcp):
        assert answer[:2] == b"\x12\x34" and answer[3] & 15 == 0 and answer[6:8] == b"\0\x01", answer


@test()
def what_a_reload_changes_and_what_it_cannot(lab):
    ca, tls = tls_files(lab)
    up, secret, gw = setup(lab, [f'{{ name: web, http: "127.0.0.1:0", identity: token, {tls} }} }}',
                                 '{ name: far, http: "127.0.0.1:0", identity: { source: { "192.0.2.1": vm6 } } }'])
    far = ["--proxy", f"http://{door(gw, 2)}"]
    proxy = ["--proxy", f"https://agent:{gw.token('agent')}@{door(gw, 1)}", "--proxy-cacert"]
    assert lab.run(curl(gw, up, "/ok", *far)).rc != 0
    text = gw.config.read_text()

    def reload(new, rc=0):
        gw.config.write_text(new)
        return gw.cli("reload", rc=rc).text()

    for wrong in (text.replace("192.0.2.1", "192.0.2.1/8"), text + "nonsense: 1\n", text.replace("proxy-ca/gw.test.pem", "no.pem"),
                  text.replace("policy.yaml", "no-policy.yaml")):
        said = reload(wrong, 3)
        assert re.search(r"countersign.yaml:\d+:\d+|no.pem|no-policy", said), said
        assert lab.run(curl(gw, up, "/ok", *far)).rc != 0
    # Another CA and certificate in the same files; an address that is somebody's now; a policy file of another name.
    other = CA(lab.dir / "other-ca", "Other")
    cert, key = other.leaf("gw.test")
    (ca.dir / "gw.test.pem").write_bytes(cert.read_bytes())
    (ca.dir / "gw.test.key").write_bytes(key.read_bytes())
    (lab.dir / "next.yaml").write_text(simple_policy(up, write="deny"))
    said = reload(text.replace("192.0.2.1", "127.0.0.0/8").replace("policy.yaml", "next.yaml"))
    assert "in force" in said and "restart" not in said, said
    lab.wait_for("the new owner", lambda: lab.run(curl(gw, up, "/ok", *far)).rc == 0)
    assert b" 200 " in lab.run(curl(gw, up, "/ok", *proxy, other.cert), rc=0).out
    assert lab.run(curl(gw, up, "/ok", *proxy, ca.cert)).rc != 0
    assert b" 403 " in lab.run(curl(gw, up, "/x", *far, "-d", "a=1"), rc=0).out
    said = reload(text.replace("inline_wait: 10m", "inline_wait: 5s").replace("name: far", "name: near"))
    assert "listeners, hold needs a restart" in said, said


@test()
def what_sandboxes_are_told(lab):
    up, secret, gw = setup(lab, [])
    gw.stop()
    text = gw.config.read_text()
    everywhere = text.replace("127.0.0.1:0", "0.0.0.0:0")
    gw.config.write_text(everywhere)
    gw.process = lab.start(["countersign", "up", "--config", gw.config], ready=r"countersign is up")
    done = gw.cli("sandbox", "create", "ci-7")
    assert done.rc != 0 and b"advertise" in done.both and b"0.0.0.0:0" not in done.both, done.text()
    assert [s for s in gw.cli_json("sandbox", "list")["sandboxes"] if s["name"] == "ci-7"] == []
    gw.stop()
    gw.config.write_text(everywhere.replace("identity: token", 'identity: token, advertise: "gw.internal:3128"'))
    gw.process = lab.start(["countersign", "up", "--config", gw.config], ready=r"countersign is up")
    done = gw.cli("sandbox", "create", "ci-7", rc=0)
    assert b"@gw.internal:3128" in done.out and b"0.0.0.0" not in done.out, done.text()


@test()
def a_listener_whose_files_are_missing_is_said_at_the_start(lab):
    config = lab.dir / "c.yaml"
    config.write_text('version: 1\nstate_dir: s\ndesk: { http: "localhost:0" }\nlisteners: [{ name: web, '
                      'http: "127.0.0.1:0", identity: token, tls: { certificate: no.pem, key: no.key } }]\n')
    done = lab.run(["countersign", "up", "--config", config])
    assert done.rc == 3 and b"no.pem" in done.err, done.text()
    ca = CA(lab.dir / "proxy-ca", "Proxy CA")
    cert, _ = ca.leaf("a.test")
    _, key = ca.leaf("b.test")
    config.write_text(config.read_text().replace("no.pem", str(cert)).replace("no.key", str(key)))
    for more in ((), ("--check-config",)):
        done = lab.run(["countersign", "up", "--config", config, *more])
        assert done.rc == 3 and b"listener web: tls: the private key is not that of" in done.err, done.text()


main()
