#!/usr/bin/env python3
"""The walls of `countersign run --transparent`: what a command inside can send, and that all of it is captured or
refused at once. The gateway is a stand-in; unmodified programs through the real one: test_captured.py."""
import json
import os
import shutil
import socket
import sys
import textwrap

import room  # noqa: F401
import harness
from harness import Skip, main, test

sys.path.insert(0, str(harness.HERE / "lab"))
from control import Control  # noqa: E402
from inside import TRIES, program, python, run  # noqa: E402


def inside(lab, code, *options, **more):
    if not any(os.access(p, os.X_OK) for p in ("/usr/sbin/nft", "/usr/local/sbin/nft", "/sbin/nft")):
        raise Skip("nft is not installed")
    return python(lab, TRIES + textwrap.dedent(code), "--transparent", *options, **more)


@test("C32 netns", "G6 run", "G8 run")
def everything_is_captured_or_refused_at_once(lab):
    control = Control(lab)
    seen = inside(lab, """
        print(json.dumps({
            "tcp": [tcp(("192.0.2.7", p)) for p in (22, 25, 80, 443, 853, 5432, 15001, 65535)],
            "private": [tcp((a, 443)) for a in ("10.0.0.1", "169.254.169.254", "198.18.0.1", "198.18.0.2")],
            "six": [tcp(("2001:db8::7", 443), six), tcp(("fe80::1", 80), six), tcp(("::ffff:192.0.2.7", 443), six)],
            "quic": [udp(("192.0.2.7", 443)), udp(("2001:db8::7", 443), six)],
            "udp": [udp(("192.0.2.7", p)) for p in (123, 784, 853, 15053, 9999)],
            "own": [tcp(("127.0.0.1", p)) for p in (15001, 15053, 9)] + [tcp(("::1", 15001), six)],
        }))
        """, control=control)
    assert seen == {
        "tcp": [f"captured 192.0.2.7 {p} hello" for p in (22, 25, 80, 443, 853, 5432, 15001, 65535)],
        "private": [f"captured {a} 443 hello" for a in ("10.0.0.1", "169.254.169.254", "198.18.0.1", "198.18.0.2")],
        "six": ["captured 2001:db8::7 443 hello", "EINVAL", "captured 192.0.2.7 443 hello"],
        "quic": ["EPERM"] * 2,
        "udp": ["EPERM"] * 5,
        "own": ["ECONNREFUSED"] * 4,
    }, seen
    posted = [body for method, path, body in control.calls if (method, path) == ("POST", "/api/v1/sandboxes")]
    assert [body.get("captured") for body in posted] == [True], posted


@test("G7 run")
def every_name_has_an_address_of_ours_and_nobody_is_asked(lab):
    seen = inside(lab, """
        import subprocess
        def ask(name, kind, server="127.0.0.1", stream=False):
            labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split("."))
            query = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + labels + b"\\0" + struct.pack(">2H", kind, 1)
            s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM)
            s.settimeout(300)
            s.connect((server, 53))
            s.sendall(struct.pack(">H", len(query)) + query if stream else query)
            got = s.recv(600)[2 * stream:]
            code, count = got[3] & 15, struct.unpack(">H", got[6:8])[0]
            return [code, socket.inet_ntoa(got[-4:]) if count else None]
        def find(name):
            try:
                return sorted({a[4][0] for a in socket.getaddrinfo(name, 443)})
            except OSError as e:
                return str(e)
        print(json.dumps({
            "libc": [find(n) for n in ("api.example.com", "c2VjcmV0.evil.example", "single", "localhost")],
            "a": [ask("api.example.com", 1, s) for s in ("127.0.0.1", "127.0.0.53", "8.8.8.8", "169.254.169.253")],
            "others": [ask("api.example.com", k) for k in (28, 65, 64, 16, 15, 255, 12)],
            "tcp": [ask("api.example.com", 1, "9.9.9.9", True), ask("api.example.com", 65, "9.9.9.9", True)],
            "bad": [ask(n, 1) for n in ("_a.example.com", "1.2.3.4", "localhost")],
            "getent": subprocess.run(["getent", "ahostsv4", "example.org"], capture_output=True, text=True).stdout[:10],
        }))
        """)
    ours = [0, "198.18.0.1"]
    assert seen == {
        "libc": [["198.18.0.1"]] * 3 + [["127.0.0.1"]],
        "a": [ours] * 4,
        "others": [[0, None]] * 7,
        "tcp": [ours, [0, None]],
        "bad": [[3, None]] * 3,
        "getent": "198.18.0.1",
    }, seen


@test("C33 netns", "G26 run")
def the_rules_cannot_be_changed_from_inside(lab):
    seen = inside(lab, """
        import os, subprocess
        status = open("/proc/self/status").read()
        def no(*words):
            return subprocess.run(words, capture_output=True).returncode != 0
        before = tcp(("192.0.2.7", 443))
        print(json.dumps({
            "caps": sorted({l.split()[1] for l in status.splitlines() if l.startswith("Cap")}),
            "refused": [no("nft", "flush", "ruleset"), no("ip", "route", "flush", "table", "local"),
                        no("ip", "link", "set", "lo", "down"), no("unshare", "-Urn", "true"),
                        no("sysctl", "-w", "net.ipv4.ip_forward=1")],
            "captured": [before, tcp(("192.0.2.7", 443))],
            "proxies": sorted(k for k in os.environ if "proxy" in k.lower()),
            "trust": [os.environ[k] for k in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")],
            "java": os.environ["JAVA_TOOL_OPTIONS"],
        }))
        """, "--setenv", "MY_NO_PROXY=*")
    assert seen["caps"] == ["0000000000000000"] and seen["refused"] == [True] * 5, seen
    assert seen["captured"] == ["captured 192.0.2.7 443 hello"] * 2, seen
    assert seen["proxies"] == ["MY_NO_PROXY", "NODE_USE_ENV_PROXY"], seen
    assert seen["trust"] == ["/countersign/bundle.crt", "/countersign/ca.crt"], seen
    assert "trustStore=" in seen["java"] and "proxyHost" not in seen["java"], seen


@test()
def the_proxys_port_works_beside_it_and_processes_reach_each_other(lab):
    control = Control(lab)
    seen = inside(lab, """
        import threading
        server = socket.create_server(("127.0.0.1", 8000))
        def serve():
            conn, _ = server.accept()
            conn.sendall(b"a neighbour " + conn.recv(100))
            conn.close()
        threading.Thread(target=serve, daemon=True).start()
        s = socket.create_connection(("127.0.0.1", 3128))
        s.sendall(b"CONNECT a.example:443 HTTP/1.1\\r\\nHost: a.example:443\\r\\n\\r\\n")
        print(json.dumps({"proxy": s.recv(100).decode()[:34], "neighbour": tcp(("127.0.0.1", 8000))}))
        """, control=control)
    assert seen == {"proxy": "HTTP/1.1 403 Forbidden by the fake", "neighbour": "a neighbour hello"}, seen
    assert control.seen == ["CONNECT a.example:443 HTTP/1.1"], control.seen


@test()
def when_the_gateway_is_away_a_captured_connection_is_reset(lab):
    control = Control(lab)
    os.unlink(control.listener)
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(control.listener))  # nobody listens
    seen = inside(lab, 'print(json.dumps([tcp(("192.0.2.7", 443)) for _ in range(3)]))', control=control)
    dead.close()
    assert set(seen) <= {"ECONNRESET", "EPIPE"}, seen


@test("C32 netns")
def an_ordinary_user_gets_the_same_network(lab):
    if os.geteuid() != 0:
        raise Skip("not root: the other tests ran as an ordinary user")
    as_user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if lab.run([*as_user, "test", "-x", program()]).rc != 0:
        raise Skip(f"{program()} cannot be reached by an ordinary user")
    control = Control(lab)
    work = lab.dir / "work"
    work.mkdir()
    for path in [work, control.state, *control.state.iterdir()]:
        os.chown(path, 65534, 65534)
    done = lab.run([*as_user, program(), "run", "--transparent", "--state-dir", control.state, "--workspace", work, "--",
                    "/usr/bin/python3", "-c", TRIES + "print(tcp(('192.0.2.7', 22)), udp(('192.0.2.7', 443)))"], rc=0)
    assert done.out == b"captured 192.0.2.7 22 hello EPERM\n", done.text()


@test()
def what_cannot_be_captured_is_not_started(lab):
    """A bubblewrap that shares the network of its caller: never are rules loaded there."""
    real = shutil.which("bwrap")
    fake = lab.dir / "bwrap"
    fake.write_text("#!/bin/sh\n"  # takes --unshare-net out of the arguments' file
                    "fd=$2; tr '\\0' '\\n' </proc/self/fd/$fd | grep -v '^--unshare-net$' | tr '\\n' '\\0' >args\n"
                    f"exec 9<args; shift 2; exec {real} --args 9 \"$@\"\n")
    fake.chmod(0o755)
    before = lab.run(["nft", "list", "tables"], rc=0).out if os.geteuid() == 0 else b""
    done = run(lab, "echo it ran", "--transparent", "--bwrap", str(fake), rc=None)
    assert done.rc == 1 and b"it ran" not in done.out and b"was not" in done.err, done.text()
    assert os.geteuid() != 0 or lab.run(["nft", "list", "tables"], rc=0).out == before


if __name__ == "__main__":
    main()
