#!/usr/bin/env python3
"""A credential whose source is a program that asks a server: it reaches the hosts its source names, by the proxy in its
network of its own, and nothing else. The programs are scripts with curl or Python: stand-ins for `vault`, `op`,
`gcloud` and their like."""
import contextlib
import os
import pathlib
import secrets
import shutil
import socket
import threading

import room  # noqa: F401
from asking import bearers, gateway, memory, passes, refused
from counterparts import Counterpart
from harness import Skip, main, test
from programs import GROUP, Programs


class Secrets(Counterpart):
    """Answers every GET with one token, as a secret store's API would."""
    def __init__(self, lab, name="vault.test", **leaf):
        super().__init__(lab, name, **leaf)
        self.token = self.new_token()

    def serve(self, handler, body):
        self.asked.append(handler.path)
        if not self.badly(handler):
            self.send(handler, 200, self.token.encode(), kind="text/plain")


class Login(Secrets):
    """What `gcloud` and `op` do: a key is shown for a session, and the session for the secret, which lives a while."""
    def __init__(self, lab):
        super().__init__(lab, "login.test")
        self.key = lab.canary("key-" + secrets.token_urlsafe(20))
        self.session = lab.canary("session-" + secrets.token_urlsafe(20))

    def serve(self, handler, body):
        self.asked.append((handler.command, handler.path))
        if (handler.command, handler.path, body) == ("POST", "/login", self.key):
            self.send(handler, 200, {"session": self.session})
        elif handler.path == "/v1/secret" and handler.headers.get("Authorization") == f"Bearer {self.session}":
            self.send(handler, 200, {"secret": self.token, "ttl": 3600})
        else:
            self.send(handler, 403, {"error": "who is that?"})


# A stand-in for gcloud: its HTTP library asks proxies in HTTP/1.0 and without a Host field, as gcloud's has done.
LOGS_IN = """
exec /usr/bin/python3 - <<'EOF'
import json, os, ssl, sys, urllib.request
tls = ssl.create_default_context(cafile="{ca}")
def ask(path, data=None, **fields):
    with urllib.request.urlopen(urllib.request.Request("{url}" + path, data, fields), context=tls) as answer:
        return json.load(answer)
session = ask("/login", os.environ["SERVICE_KEY"].encode())["session"]
print(json.dumps(ask("/v1/secret", Authorization="Bearer " + session)))
EOF"""


def setup(lab, body, more="", hosts=None, vault=None, yaml=None, store=()):
    """Of the script's body {url} is the vault, {ca} a file its user can read."""
    namespaces = pathlib.Path("/proc/sys/user/max_user_namespaces")
    if namespaces.exists() and namespaces.read_text().strip() == "0":
        raise Skip("there are no user namespaces here")
    vault, programs = vault or Secrets(lab), Programs(lab)
    ca = programs.dir / "vault.ca"
    shutil.copy(vault.ca, ca)
    os.chmod(ca, 0o644)
    script = programs.write("op", GROUP + body.format(url=vault.url, ca=ca))
    hosts = hosts if hosts is not None else f'"{vault.name}:{vault.port}"'
    counterpart = vault if yaml is None else type("Row", (), {"yaml": yaml})
    up, gw = gateway(lab, f"exec: {{ argv: [{script}], hosts: [{hosts}]{more} }}", counterpart, store)
    return up, gw, programs, vault


@test()
def a_program_asks_the_server_that_its_source_names(lab):
    up, gw, programs, vault = setup(lab, "curl -sS --cacert {ca} {url}/v1/secret")
    for _ in range(2):
        passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {vault.token}"] * 2
    assert vault.asked == ["/v1/secret"], vault.asked
    lab.wait_for("the end of the job and its relay", lambda: not programs.running("op"))


def logging_in(lab, key=None):
    login = Login(lab)
    more = ", env: { SERVICE_KEY: { store: service } }, value: /secret, expires_in: /ttl"
    return setup(lab, LOGS_IN, more=more, vault=login, store={"service": (key or login.key).encode()})


@test()
def a_program_logs_in_with_a_sealed_key_and_prints_what_it_was_given(lab):
    up, gw, programs, login = logging_in(lab)
    passes(lab, gw, up)
    assert bearers(up) == [f"Bearer {login.token}"]
    assert login.asked == [("POST", "/login"), ("GET", "/v1/secret")], login.asked


@test()
def a_login_that_is_refused_releases_nothing(lab):
    up, gw, programs, login = logging_in(lab, key="canary-of-another-key")
    refused(lab, gw, up, "ended with status 1")
    assert login.asked[0] == ("POST", "/login") and ("GET", "/v1/secret") not in login.asked


@test("D24")
def the_relay_has_none_of_its_secrets(lab):
    if os.geteuid() != 0:
        raise Skip("only root may look into a process that is not dumpable")
    key = lab.canary("key-" + secrets.token_urlsafe(20))
    up, gw, programs, vault = setup(lab, 'while [ ! -e "$0.go" ]; do sleep 0.05; done; echo token-of-a-program',
                                    more=", env: { SERVICE_KEY: { store: service } }, timeout: 25s",
                                    store={"service": key.encode()})
    check = threading.Thread(target=gw.cli, args=("secret", "check", "api"))
    check.start()
    relay = lab.wait_for("a relay", lambda: programs.relay("op"))
    there = b"".join(memory(relay))
    environment = []
    for pid in programs.running("op"):  # each short sleep of the program's is one of them, and ends
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            environment.append(pathlib.Path(f"/proc/{pid}/environ").read_bytes())
    (programs.dir / "op.go").touch()
    check.join()
    assert vault.name.encode() in there, "its memory is read"
    assert any(key.encode() in env for env in environment), "the program has it"
    assert key.encode() not in there


@test()
def it_has_no_other_way_out(lab):
    door = socket.create_server(("127.0.0.1", 0))
    port = door.getsockname()[1]
    door6 = socket.create_server(("::1", port), family=socket.AF_INET6)
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("")  # under a name of the kernel's choice
    abstract.listen()
    name = abstract.getsockname()[1:].decode()
    up, gw, programs, vault = setup(lab, f"""
(exec 3<>/dev/tcp/127.0.0.1/{port}) 2> "$0.tcp" && echo connected > "$0.tcp"
(exec 3<>/dev/tcp/::1/{port}) 2> "$0.tcp6" && echo connected > "$0.tcp6"
(exec 3<>/dev/udp/192.0.2.1/53) 2> "$0.udp" && echo connected > "$0.udp"
curl -sS --noproxy '*' --cacert {{ca}} {{url}}/direct 2> "$0.direct" && echo connected > "$0.direct"
curl -sS --abstract-unix-socket {name} http://host/ 2> "$0.abstract" && echo connected > "$0.abstract"
unshare -Un true 2> "$0.unshare" && echo left > "$0.unshare"
sed -n '3,$s/:.*//p' /proc/net/dev > "$0.devices"
id -u > "$0.user"
curl -sS --cacert {{ca}} {{url}}/by-the-proxy""")
    passes(lab, gw, up)
    assert vault.asked == ["/by-the-proxy"], vault.asked
    for listener in (door, door6, abstract):
        listener.setblocking(False)
        try:
            listener.accept()
            raise AssertionError("it reached a listener of this machine")
        except BlockingIOError:
            pass
        finally:
            listener.close()
    for what in ("tcp", "tcp6", "udp", "direct", "abstract", "unshare"):
        said = (programs.dir / f"op.{what}").read_text()
        assert said and "connected" not in said and "left" not in said, f"{what}: {said}"
    assert (programs.dir / "op.devices").read_text().split() == ["lo"]
    assert (programs.dir / "op.user").read_text().strip() != "65534", "it is who it is outside"


@test()
def another_host_and_another_port_are_refused_and_the_log_says_which(lab):
    other = Secrets(lab, "other.test")
    vault = Secrets(lab)
    lab.expects(r"fetch-program: the program asked for (other\.test|127\.0\.0\.1|vault\.test) port \d+, which hosts:")
    up, gw, programs, _ = setup(lab, f"""
for at in {other.url} https://127.0.0.1:{vault.port} https://{vault.name}:{other.port}; do
    curl -sk --noproxy '' -o /dev/null -w '%{{{{http_connect}}}}\\n' $at/ >> "$0.refused"
done
curl -s -o /dev/null -w '%{{{{http_code}}}}\\n' http://{vault.name}:{vault.port}/ >> "$0.refused"
curl -sS --cacert {{ca}} {{url}}/""", vault=vault, yaml=vault.yaml + other.yaml)
    passes(lab, gw, up)
    assert (programs.dir / "op.refused").read_text().split() == ["403"] * 3 + ["405"]
    assert other.asked == [] and vault.asked == ["/"]
    lab.wait_for("the log", lambda: f"other.test port {other.port}".encode() in gw.process.seen)


@test()
def a_private_address_needs_the_policy_to_allow_it(lab):
    vault = Secrets(lab)
    yaml = f"  - {{ host: {vault.name}, port: {vault.port}, address: 127.0.0.1 }}\n"
    up, gw, programs, _ = setup(lab, "curl -sS --cacert {ca} {url}/", vault=vault, yaml=yaml)
    refused(lab, gw, up, "vault.test, which its program may reach, cannot be", "private")
    assert programs.calls("op") == 0 and vault.asked == []


@test()
def the_program_itself_checks_the_servers_certificate(lab):
    up, gw, programs, vault = setup(lab, "curl -sS {url}/")
    refused(lab, gw, up, "status 60")  # CURLE_PEER_FAILED_VERIFICATION
    assert vault.asked == []


@test()
def a_server_that_hangs_ends_the_program_and_its_relay(lab):
    up, gw, programs, vault = setup(lab, "curl -sS --cacert {ca} {url}/ & wait", more=", timeout: 1s")
    vault.bad = "hang"
    refused(lab, gw, up, "more than 1 s")
    lab.wait_for("the end of both", lambda: not programs.running("op"))


@test()
def a_redirect_to_another_host_ends_there(lab):
    lab.expects(r"fetch-program: the program asked for elsewhere\.test port 443, which hosts:")
    up, gw, programs, vault = setup(lab, "curl -sSL --cacert {ca} {url}/")
    vault.bad = "redirect"
    refused(lab, gw, up, "ended with status 56")  # CURLE_RECV_ERROR: the proxy did not take CONNECT


def hanging(lab):
    """A program that waits for its server, and who asked for it."""
    up, gw, programs, vault = setup(lab, "curl -sS --cacert {ca} {url}/ & wait", more=", timeout: 25s")
    vault.bad = "hang"
    asks = threading.Thread(target=gw.cli, args=("secret", "check", "api"))
    asks.start()
    lab.wait_for("the question", lambda: vault.asked)
    assert programs.relay("op"), "it is asked through a relay"
    return gw, programs, asks


@test()
def the_fetchers_death_ends_the_program_and_its_relay(lab):
    gw, programs, asks = hanging(lab)
    gw.kill("fetcher")
    lab.wait_for("the end of both", lambda: not programs.running("op"))
    asks.join()


@test()
def the_parents_death_ends_the_program_and_its_relay(lab):
    gw, programs, asks = hanging(lab)
    gw.process.signal(9)
    gw.process.wait()
    lab.wait_for("the end of both", lambda: not programs.running("op"))
    asks.join()


# Run as in a container that lets nobody make user namespaces: in one of its own, whose limit of further ones is zero.
NO_NAMESPACES = """
import ctypes, os, sys
me, uid, gid = os.getpid(), os.geteuid(), os.getegid()
begin, go = os.pipe()
helper = os.fork()
if helper == 0:
    os.read(begin, 1)
    if uid:
        open(f"/proc/{me}/setgroups", "w").write("deny")
    open(f"/proc/{me}/uid_map", "w").write(f"{uid} {uid} 1" if uid else "0 0 4294967295")
    open(f"/proc/{me}/gid_map", "w").write(f"{gid} {gid} 1" if uid else "0 0 4294967295")
    os._exit(0)
assert ctypes.CDLL(None).unshare(0x10000000) == 0
os.write(go, b"x")
assert os.waitpid(helper, 0)[1] == 0
open("/proc/sys/user/max_user_namespaces", "w").write("0")
os.execv(sys.argv[1], sys.argv[1:])
"""


class Contained:
    """A lab whose gateway runs so."""
    def __init__(self, lab):
        self.lab = lab

    def start(self, command, **more):
        return self.lab.start(["/usr/bin/python3", "-c", NO_NAMESPACES, *command], **more)

    def __getattr__(self, name):
        return getattr(self.lab, name)


@test()
def where_there_are_no_user_namespaces_it_is_refused_in_words(lab):
    up, gw, programs, vault = setup(Contained(lab), "curl -sS --cacert {ca} {url}/")
    refused(lab, gw, up, "op has hosts:, and this system gives it no network of its own", "user.max_user_namespaces")
    assert programs.calls("op") == 0 and vault.asked == []


@test()
def a_variable_of_the_policy_comes_before_the_proxys(lab):
    up, gw, programs, vault = setup(lab, 'env > "$0.env"; curl -sS --cacert {ca} {url}/',
                                    more=", env: { ALL_PROXY: 'socks5://nowhere:1' }")
    passes(lab, gw, up)
    said = dict(line.split("=", 1) for line in (programs.dir / "op.env").read_text().splitlines())
    assert said["HTTPS_PROXY"] == said["https_proxy"] == said["http_proxy"] == "http://127.0.0.1:3128", said
    assert said["ALL_PROXY"] == "socks5://nowhere:1", said


main()
