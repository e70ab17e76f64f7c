#!/usr/bin/env python3
"""Names that move, lie or do not answer (attacks.tsv C12, C14, C15, C16, C31, C39): the gateway asks a name server of
the test's for its usual upstream. Requests are writes that pass at once: for them a name is always asked afresh."""
import re
import socket
import threading

import room  # noqa: F401
from attack import WAYS, Rig
from harness import main, test
from ways import LISTENER, Got, Refused, proxy2, socks5
from nameserver import A, AAAA, CNAME, NameServer, Record

NAME = "upstream.test"
HERE = [A("127.0.0.1")]
PRIVATE = ("127.0.0.2", "127.8.8.8", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.1.1", "169.254.1.1",
           "169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16", "0.0.0.0", "0.1.2.3", "192.0.0.1", "192.0.2.1",
           "198.18.0.1", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255")
PRIVATE6 = ("::", "::2", "fd00::1", "fc00::1", "fe80::1", "fec0::1", "ff02::1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::10.0.0.1",
            "64:ff9b::a9fe:a9fe", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:a00:1::1", "2002:7f00:1::", "2001:0:a00:1::1", "2001:db8::1",
            "fd00:ec2::254", "4000::1", "100::1")


class DnsRig(Rig):
    """The usual rig, but its upstream has a name and no address."""

    def __init__(self, lab, ways=("127.0.0.1/32",)):
        self.names = NameServer(lab)
        self.names.zone[NAME] = HERE
        plain = lab.env
        lab.env = lambda more=None: {**plain(more), "LOCALDOMAIN": "corp.test", "RES_OPTIONS": "ndots:9", "HOSTALIASES": "/dev/null"}
        super().__init__(lab, config=f'dns: {{ servers: "127.0.0.1:{self.names.port}" }}\n')
        lab.env = plain
        text = self.gw.policy.read_text().replace("address: 127.0.0.1, ", "")
        self.gw.policy.write_text(text.replace('["127.0.0.1/32"]', str(list(ways)).replace("'", '"')))
        self.reload()

    def send(self, transport, path="/w/x", wire=None, method="POST"):
        wire = wire or self.open(transport)
        got = wire.talk(wire.head(method, path, "Content-Length: 3") + b"abc", 1)
        wire.close()
        return got

    def fails(self, what, transport, code, wire=None, path="/w/x", method="POST"):
        """Refused, and for this reason."""
        self.refused(what, self.send(transport, path, wire, method), closed=False, status=502)
        self.because(what, path, code)

    def because(self, what, path, code):
        rows = self.lab.wait_for("the row", lambda: [r for r in self.gw.audit() if r["kind"] == "result" and r["path"] == path][-1:])
        assert rows[0]["code"] == code, f"{what}: for another reason: {rows[0]}"

    def works(self, what, transport, path="/w/good"):
        self.names.zone[NAME] = HERE
        self.passed(what, self.send(transport, path), [("POST", path, b"abc")])

    def only_the_name(self):
        """What was asked for is the name itself, never with a suffix, and only its addresses (C24)."""
        asked = {(q.name.lower(), q.type) for q in self.names.questions}
        assert asked <= {(n, t) for n in (NAME, "other.test") for t in (1, 28)}, asked


def everywhere(ids, **more):
    def add(function):
        for transport in WAYS:
            def run(lab, transport=transport):
                rig = DnsRig(lab, **more)
                with rig.case(ids, transport):
                    function(rig, transport)
                    rig.only_the_name()
                rig.settle()
            run.__name__ = f"{function.__name__}_over_{transport}"
            test()(run)
        return function
    return add


@everywhere("C12 C31")
def a_name_with_an_address_that_is_not_public_is_refused_whole(rig, transport):
    rows = [("C12", [A(a)]) for a in PRIVATE] + [("C12,C31", [AAAA(a)]) for a in PRIVATE6]
    rows += [("C12", HERE + [A("10.0.0.1")]), ("C12", [A("10.0.0.1")] + HERE), ("C31", HERE + [AAAA("fd00::1")]),
             ("C31", HERE + [AAAA("::ffff:127.0.0.2")]), ("C12", [A("127.0.0.1") for _ in range(20)] + [A("192.168.0.1")])]
    for n, (ids, zone) in enumerate(rows if transport == "connect" else rows[::5] + rows[-5:]):
        path = f"/w/{n}"
        wire = rig.open(transport)
        rig.names.zone[NAME] = zone
        rig.fails(f"{ids} {[r.data.hex() for r in zone][-2:]}", transport, "private-address", wire, path)
        rig.names.zone[NAME] = HERE
    rig.works("C12 an address that the policy allows", transport)
    rig.names.zone[NAME] = [AAAA("::ffff:127.0.0.1")]
    rig.passed("C31 the same in IPv6", rig.send(transport, "/w/mapped"), [("POST", "/w/mapped", b"abc")])


def bridge(lab, port):
    """::1 in front of the upstream, which has IPv4 alone."""
    listener = socket.create_server(("::1", port), family=socket.AF_INET6)

    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def accept():
        while True:
            try:
                here, _ = listener.accept()
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", port))
            for pair in ((here, there), (there, here)):
                threading.Thread(target=copy, args=pair, daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    lab.at_end += [listener.close, lambda: listener.shutdown(socket.SHUT_RDWR)]


@everywhere("C31", ways=("127.0.0.1/32", "::1/128"))
def a_host_of_ipv6_alone_is_reached_and_judged_like_any_other(rig, transport):
    for port in (rig.up.port, rig.up.plain_port):
        bridge(rig.lab, port)
    rig.names.zone[NAME] = [AAAA("::1")]
    rig.passed("C31 IPv6 alone", rig.send(transport, "/w/six"), [("POST", "/w/six", b"abc")])
    wire = rig.open(transport)
    rig.names.zone[NAME] = [AAAA("::1"), AAAA("fd00::1")]
    rig.fails("C31 a private one beside it", transport, "private-address", wire)
    rig.works("C31 IPv4 again", transport)


@everywhere("C14 C39 E38")
def a_name_that_moves_is_judged_where_it_went(rig, transport):
    turns = iter(range(1000))
    rig.works("C14 where it was", transport)
    for n, zone in enumerate(([A("127.0.0.2")], HERE + [A("10.0.0.1")], [CNAME("inside.test"), A("10.0.0.1", owner="inside.test")],
                              [A("169.254.169.254")], HERE + [AAAA("::2")], [AAAA("fd00::1")])):
        wire = rig.open(transport)  # of "later" and "reload": it has been there before
        rig.names.zone[NAME] = zone
        rig.fails(f"C14 moved {n}", transport, "private-address", wire, f"/w/moved{n}")
        rig.works(f"C14 back {n}", transport, f"/w/back{n}")
    # Another answer to each question, as a name of nobody's trust would give it.
    wires = [rig.open(transport) for _ in range(4)]
    rig.names.zone[NAME] = lambda q, tcp: [q.answer(HERE if next(turns) % 2 else [A("10.0.0.1")])]
    for n, wire in enumerate(wires):
        got = rig.send(transport, f"/w/turn{n}", wire)
        rig.holds("C14 either", got.status in ([200], [502]), got)
        if got.status == [200]:
            rig.passed("C14 the checked one", got, [("POST", f"/w/turn{n}", b"abc")])
        else:
            rig.refused("C14 neither", got, closed=False)
    # Between the approval and the sending.
    rig.names.zone[NAME] = HERE
    wire = rig.open(transport)
    got = wire.talk(wire.head("PUT", "/held", "Content-Length: 3") + b"abc", 1)
    rig.held("C39 a write waits", got)
    rig.gw.approve(re.search(rb"Countersign-Ticket: (\S+)", got.data)[1].decode())
    wire = rig.open(transport)
    rig.names.zone[NAME] = [A("10.0.0.1")]
    got = rig.send(transport, "/held", wire, "PUT")
    rig.holds("C14,C39,E38 approved, then moved", got.status == [502] and not rig.arrived(), got)
    rig.because("C14,C39,E38 approved, then moved", "/held", "private-address")
    rig.names.zone[NAME] = HERE


@everywhere("C15")
def a_broken_answer_is_no_answer(rig, transport):
    def tcp_only(answer):
        return lambda q, tcp: [answer(q)] if tcp else [q.answer(truncated=True)]
    many = [A(f"127.0.{n // 250}.{n % 250 + 1}") for n in range(1000)]
    loop = [CNAME("b.test"), CNAME(NAME, owner="b.test")]
    rows = [("SERVFAIL", "dns-failed", lambda q, tcp: [q.answer(code=2)]),
            ("REFUSED", "dns-failed", lambda q, tcp: [q.answer(code=5)]),
            ("rubbish", "dns-failed", lambda q, tcp: [q.answer(HERE)[:2] + b"\xff" * 60]),
            ("cut short", "dns-failed", lambda q, tcp: [q.answer(HERE)[:-2]]),
            ("another question", "dns-failed", lambda q, tcp: [q.answer(HERE).replace(b"\x08upstream", b"\x08downstrm")]),
            ("a pointer to itself", "dns-failed", lambda q, tcp: [q.answer(HERE)[:12] + b"\xc0\x0c" + q.answer(HERE)[14:]]),
            ("truncated, then 64 KiB", "dns-failed", tcp_only(lambda q: q.answer(HERE)[:12] + b"\xee" * 65000)),
            ("1000 addresses", "dns-failed", tcp_only(lambda q: q.answer(many))),
            ("a NUL in the name", "dns-failed", lambda q, tcp: [q.answer([CNAME("up\0.test"), A("10.0.0.1", owner="up\0.test")])])]
    if transport != "connect":  # what makes no sense at all is waited past
        rows = [row for row in rows if row[0] in ("SERVFAIL", "1000 addresses", "a NUL in the name")]

    def facing(zone):  # just before it is used: one that asks nothing for long is closed
        rig.names.zone[NAME] = HERE
        wire = rig.open(transport)
        rig.names.zone[NAME] = zone
        return wire
    wire = facing(tcp_only(lambda q: q.answer(HERE)))
    rig.passed("C15 truncated, then whole", rig.send(transport, "/w/tcp", wire), [("POST", "/w/tcp", b"abc")])
    for n, (what, code, zone) in enumerate(rows):
        rig.fails(f"C15 {what}", transport, code, facing(zone), f"/w/{n}")
    # Nobody's answers: of another number, from another port. The true server is silent.
    forged = facing(lambda q, tcp: [q.answer(HERE, number=q.id ^ 1), ("elsewhere", q.answer(HERE))])
    rig.fails("C15 forged", transport, "dns-failed", forged, "/w/forged")
    # What is not there is remembered for a while, so these come last, over connections that are there already.
    rig.names.zone[NAME] = HERE
    wires = [rig.open(transport) for _ in range(5)]
    for n, (what, zone) in enumerate((("a loop of names", loop), ("the address of another name", [A("127.0.0.1", owner="evil.test")]), ("text alone", [Record("TXT", b"\x05hello")]), ("NXDOMAIN", None))):
        rig.names.zone[NAME] = zone
        rig.refused(f"C15 {what}", rig.send(transport, f"/w/none{n}", wires.pop()), closed=False, status=502)
    asked = len(rig.names.questions)
    rig.refused("C15 again", rig.send(transport, "/w/again", wires.pop()), closed=False, status=502)
    rig.holds("C15 what is not there is not asked for again at once", len(rig.names.questions) == asked, rig.names.asked)


def reach(rig, transport, host, port):
    """What one gets who wants to go there, up to the denial."""
    at, got = f"{host}:{port}", Got()
    if transport == "absolute":
        return rig.plain(f"GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n{{A}}Connection: close\r\n\r\n".encode())
    sock = rig.knock(LISTENER.get(transport, transport))
    try:
        if transport == "captured":
            sock.sendall(proxy2(port))
        elif transport == "socks":
            if code := socks5(sock, "agent", rig.gw.token("agent"), host, port):
                raise Refused(f"SOCKS reply {code}")
        else:
            auth = "" if transport == "unix" else f"Proxy-Authorization: {rig.gw.basic()}\r\n"
            sock.sendall(f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n{auth}\r\n".encode())
            head = sock.recv(65536)
            if b" 200 " not in head.split(b"\r\n")[0]:
                got.data, got.status = head, [int(head[9:12])]
                return got
        sock = rig.tls.wrap_socket(sock, server_hostname=host)
        sock.sendall(f"GET / HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n".encode())
        while more := sock.recv(65536):
            got.data += more
        got.status = [int(got.data[9:12])] if got.data else []
    except (OSError, Refused) as why:
        got.closed, got.why = True, str(why)
    finally:
        sock.close()
    return got


@everywhere("C16")
def nothing_is_asked_about_a_host_that_is_not_allowed(rig, transport):
    port = rig.up.plain_port if transport == "absolute" else rig.up.port
    for host in ("c2VjcmV0.evil.test", "evil.test", "xupstream.test", "data.upstream.test", "upstream.test.evil.test"):
        rig.refused(f"C16 {host}", reach(rig, transport, host, port), closed=False)
    rig.refused("C16 another port", reach(rig, transport, NAME, port + 1), closed=False)
    before = len(rig.names.questions)
    wire = rig.open(transport)
    after = len(rig.names.questions)
    got = wire.talk(wire.head("GET", "/guard"), 1)
    rig.refused("C16 a path that is denied", got, closed=False, status=403)
    got = rig.open(transport).talk(wire.head("PUT", "/held", "Content-Length: 3") + b"abc", 1)
    rig.held("C16 a write that waits", got)
    rig.holds("C16 nothing was asked", len(rig.names.questions) - after <= (4 if transport == "later" else 0) and
              (transport in ("later", "reload") or before == 0), rig.names.asked)


if __name__ == "__main__":
    main()
