#!/usr/bin/env python3
"""conf/nftables, really loaded, in networks of the test's own: what is captured, what is rejected, and how fast. The
gateway's listeners are the test's own sockets here; unmodified programs through the real ones: test_captured.py."""
import json
import os
import pwd
import socket
import struct
import sys
import textwrap
import threading

import room  # noqa: F401
import harness
from harness import main, test

sys.path.insert(0, str(harness.HERE / "lab"))
import netns  # noqa: E402
from inside import TRIES  # noqa: E402

WHY_NOT = netns.own()


class Gateway:
    """What the rules redirect to: says where a connection was meant to go; answers datagrams as the name server."""

    def __init__(self, lab, addresses, dns):
        self.open, self.asked = True, []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listener = socket.create_server((address, 15001), family=family)
            self.serve(lab, listener, lambda l=listener, f=family: self.accept(l, f))
        names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        names.bind((dns, 15053))
        self.serve(lab, names, lambda: self.answer(names))
        streams = socket.create_server((dns, 15053))
        self.serve(lab, streams, lambda: self.stream(streams))

    def serve(self, lab, sock, step):
        def loop():
            while True:
                try:
                    step()
                except OSError:
                    return
        thread = threading.Thread(target=loop, daemon=True)
        thread.start()

        def end():
            sock.shutdown(socket.SHUT_RDWR) if sock.type == socket.SOCK_STREAM else sock.close()
            sock.close()
        lab.at_end.append(end)

    def accept(self, listener, family):
        conn, _ = listener.accept()
        with conn:
            if family == socket.AF_INET:
                raw = conn.getsockopt(socket.SOL_IP, 80, 16)
                to = socket.inet_ntop(family, raw[4:8])
            else:
                raw = conn.getsockopt(socket.IPPROTO_IPV6, 80, 28)
                to = socket.inet_ntop(family, raw[8:24])
            conn.recv(100)
            conn.sendall(f"captured {to} {struct.unpack('>H', raw[2:4])[0]}".encode())

    def answer(self, names):
        data, peer = names.recvfrom(2000)
        self.asked.append(data)
        names.sendto(b"our names", peer)

    def stream(self, streams):
        conn, _ = streams.accept()
        with conn:
            conn.recv(100)
            conn.sendall(b"our names by tcp")


def answers(done):
    return json.loads(done.out)


@test()
def the_rule_files_are_valid(lab):
    netns.need(WHY_NOT)
    found = sorted(p.name for p in netns.RULES.glob("*.nft"))
    assert found == ["gateway.nft", "user.nft"], found
    for name in found:
        lab.run(["nft", "-c", "-f", netns.RULES / name], rc=0)


@test("C32 netns")
def a_network_behind_the_gateway_is_captured_whole(lab):
    netns.need(WHY_NOT)
    box = netns.Box(lab)
    netns.Rules(lab, "gateway")
    gateway = Gateway(lab, ["10.99.0.1", "fd00:99::1"], "10.99.0.1")
    ssh = socket.create_server(("0.0.0.0", 2222))
    lab.at_end.append(ssh.close)
    code = TRIES + textwrap.dedent("""
        print(json.dumps({
            "web": [tcp(("192.0.2.7", p)) for p in (80, 443)],
            "others": [tcp(("192.0.2.7", p)) for p in (22, 25, 853, 5432, 8443, 15001)],
            "ours": tcp(("198.18.0.1", 443)),
            "six": [tcp(("2001:db8::7", p), six) for p in (443, 5432)],
            "names": [udp((a, 53)) for a in ("192.0.2.53", "10.99.0.1", "8.8.8.8")] + [tcp(("8.8.8.8", 53))],
            "quic": [udp(("192.0.2.7", 443)), udp(("2001:db8::7", 443), six)],
            "udp": [udp(("192.0.2.7", p)) for p in (123, 853, 9999)],
            "own": [tcp(("10.99.0.1", p)) for p in (15001, 2222, 15053)] + [tcp(("fd00:99::1", p), six)
                    for p in (15001, 2222)],
            "own udp": [udp(("10.99.0.1", p)) for p in (15053, 123)],
        }))
        """)
    seen = answers(box.run(["python3", "-c", code], rc=0))
    assert seen == {
        "web": ["captured 192.0.2.7 80", "captured 192.0.2.7 443"],
        "others": [f"captured 192.0.2.7 {p}" for p in (22, 25, 853, 5432, 8443, 15001)],
        "ours": "captured 198.18.0.1 443",
        "six": ["captured 2001:db8::7 443", "captured 2001:db8::7 5432"],
        "names": ["our names"] * 3 + ["our names by tcp"],
        "quic": ["ECONNREFUSED"] * 2,
        "udp": ["EHOSTUNREACH"] * 3,
        "own": ["ECONNREFUSED"] * 5,
        "own udp": ["EHOSTUNREACH"] * 2,
    }, seen
    assert len(gateway.asked) >= 3


@test("C32 netns")
def what_a_sandbox_sends_raw_is_refused_too(lab):
    netns.need(WHY_NOT)
    box = netns.Box(lab)
    netns.Rules(lab, "gateway")
    code = TRIES + textwrap.dedent("""
        def raw(protocol, data):
            s = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
            listen = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            listen.settimeout(300)
            s.sendto(data, ("192.0.2.7", 0))
            while True:
                got = listen.recv(2000)
                if got[20] == 3:
                    return list(got[20:22])
        print(json.dumps({"echo": raw(1, b"\\x08\\0\\xf7\\xff\\0\\0\\0\\0"), "sctp": raw(132, b"\\0" * 16),
                          "gre": raw(47, b"\\0" * 16)}))
        """)
    seen = answers(box.run(["python3", "-c", code], rc=0))
    assert seen == {"echo": [3, 13], "sctp": [3, 13], "gre": [3, 13]}, seen  # administratively prohibited


@test("C32 netns")
def a_users_own_processes_are_captured_and_nobody_elses(lab):
    netns.need(WHY_NOT)
    netns.Box(lab)
    netns.ip("route", "add", "default", "via", "10.99.0.2")  # there is a way out
    netns.ip("-6", "route", "add", "default", "via", "fd00:99::2")
    user = pwd.getpwnam("nobody")
    netns.Rules(lab, "user", agent=user.pw_uid)
    Gateway(lab, ["127.0.0.1", "::1"], "127.0.0.1")
    desk = socket.create_server(("127.0.0.1", 8088))
    lab.at_end.append(desk.close)
    code = TRIES + textwrap.dedent("""
        print(json.dumps({
            "tcp": [tcp(("192.0.2.7", p)) for p in (22, 443, 5432)],
            "six": tcp(("2001:db8::7", 443), six),
            "names": [udp((a, 53)) for a in ("192.0.2.53", "127.0.0.53", "127.0.0.1")] + [tcp(("8.8.8.8", 53))],
            "quic": [udp(("192.0.2.7", 443)), udp(("2001:db8::7", 443), six)],
            "own": [tcp(("127.0.0.1", p)) for p in (15001, 8088)] + [tcp(("::1", 15001), six)],
        }))
        """)
    as_user = ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups", "python3", "-c"]
    seen = answers(lab.run([*as_user, code], rc=0))
    assert seen == {
        "tcp": [f"captured 192.0.2.7 {p}" for p in (22, 443, 5432)],
        "six": "captured 2001:db8::7 443",
        "names": ["our names"] * 3 + ["our names by tcp"],
        "quic": ["EPERM"] * 2,
        "own": ["ECONNREFUSED"] * 3,
    }, seen
    theirs = answers(lab.run(["python3", "-c", TRIES + "print(json.dumps(tcp(('10.99.0.2', 9))))"], rc=0))
    ours = answers(lab.run([*as_user, TRIES + "print(json.dumps(tcp(('10.99.0.2', 9))))"], rc=0))
    assert (theirs, ours) == ("ECONNREFUSED", "captured 10.99.0.2 9")


if __name__ == "__main__":
    os.environ.pop("NO_PROXY", None)
    main()
