#!/usr/bin/env python3
"""What one sandbox spends is its own (attacks.tsv F32 to F36): it goes to a limit and past it, and another one's requests are
all answered. Nothing here looks at a clock: whoever waits waits for an answer."""
import json
import resource
import select
import socket
import struct
import threading
import zlib

import room  # noqa: F401
from attack import Rig, everywhere
from harness import main, test
from nameserver import NameServer
from ways import Wire

NAMES, BATCH = 9000, 100  # more than the carrier knows places
COPIES, OPEN_MAX = 260, 256
FLOOD, TURNS = 900, 3
PATIENT = 120


def places(up):
    return (f"host: {up.name}, port: {up.port}", f"host: {up.name}, port: {up.plain_port}, scheme: http")


def rules(up):
    """What makes the judge read whole bodies, and a wildcard."""
    found = ""
    for n, place in enumerate(places(up)):
        found += f"""  - {{ id: form{n}, match: {{ {place}, method: POST, path: /w/form, form: [{{ field: never, equals: "1" }}] }}, decide: deny }}
  - {{ id: parked{n}, match: {{ {place}, method: POST, path: /parked, json: [{{ pointer: /n, int_lte: 5 }}] }}, decide: hold }}
"""
    return found + """  - { id: wide, match: { host: "*.wide.test", scheme: http, effect: read }, decide: allow }
"""


class Neighbour:
    """Another sandbox, which asks again and again; each of its requests is answered as ever."""

    def __init__(self, rig):
        self.rig, self.asked, self.stop, self.failed = rig, 0, threading.Event(), []
        self.lock = threading.Lock()
        self.wire = Wire(rig, "connect", who="neighbour")
        self.ask()

    def ask(self):
        got = self.wire.talk(self.wire.head("GET", "/ok"), 1, timeout=PATIENT)
        if got.closed and not got.status and not got.data:  # it was not asked for a minute: on a busy machine that is soon over
            self.wire = Wire(self.rig, "connect", who="neighbour")
            got = self.wire.talk(self.wire.head("GET", "/ok"), 1, timeout=PATIENT)
        assert got.status == [200], got
        self.asked += 1

    def __enter__(self):
        def run():
            try:
                while not self.stop.is_set():
                    self.ask()
            except Exception as why:  # noqa: BLE001  told by the test
                self.failed.append(why)
        self.thread = threading.Thread(target=run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def served(self, what):
        self.rig.holds(f"{what}: the neighbour was always answered", self.asked > 1 and not self.failed, self.failed)
        codes = {r.get("code") for r in self.rig.gw.audit() if r.get("sandbox") == "neighbour"}
        self.rig.holds(f"{what}: and nothing of it was refused", not codes & {"store-unavailable", "too-many-requests", "carrier-lost"}, codes)
        self.rig.arrived()


@test()
def names_without_end_over_absolute(lab):
    names = NameServer(lab)  # who knows none of them
    rig = Rig(lab, rules, config=f'dns: {{ servers: "127.0.0.1:{names.port}" }}\n')
    with rig.case("F32 F36", "absolute"):
        wire = rig.open("absolute")
        with Neighbour(rig) as neighbour:
            for first in range(0, NAMES, BATCH):
                asks = [f"GET http://n{i}.wide.test/ HTTP/1.1\r\nHost: n{i}.wide.test\r\n{wire.auth}\r\n" for i in range(first, first + BATCH)]
                got = wire.talk("".join(asks), BATCH, timeout=PATIENT)
                rig.holds("F32 each name is an answer of its own", got.status == [502] * BATCH, got)
        neighbour.served("F32,F36 names")
        rig.passed("F32,F36 and who asked goes on", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
        other = Wire(rig, "connect", who="neighbour")  # a new connection, too
        rig.passed("F32,F36 and so does the neighbour", other.talk(other.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
    rig.settle()


def pkt(line):
    return f"{len(line) + 4:04x}".encode() + line


def bomb():
    """A push of one file of 63 MiB of zeros."""
    size, head = 63 << 20, bytearray()
    byte, rest = (3 << 4) | (size & 15), size >> 4
    while rest:
        head.append(byte | 0x80)
        byte, rest = rest & 0x7f, rest >> 7
    head.append(byte)
    pack = b"PACK" + struct.pack("!II", 2, 1) + bytes(head) + zlib.compress(bytes(size), 9)
    command = b"0" * 40 + b" " + b"1" * 40 + b" refs/heads/main\0report-status\n"
    return pkt(command) + b"0000" + pack + bytes(20)


@everywhere("F33", more=rules, apart=True)
def processor_time_is_spent_by_its_own(rig, transport):
    form = b"&".join(b"k%d=v" % n for n in range(20000))
    push, neighbour = bomb(), Neighbour(rig)
    rig.arrived()
    wires = [rig.open(transport) for _ in range(3 * TURNS)]  # some ways begin with requests of their own
    with neighbour:
        for _ in range(TURNS):
            wire = wires.pop()
            got = wire.talk(wire.head("POST", "/w/form", "Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(form)}") + form, 1, timeout=PATIENT)
            rig.holds("F33 a form is decided", got.status and got.status[0] in (200, 403), got)
            wire = wires.pop()
            got = wire.talk(wire.head("GET", "/ok?" + "&" * 16384), 1, timeout=PATIENT)
            rig.holds("F33 a query is decided", got.status and got.status[0] != 503, got)
            wire = wires.pop()
            head = wire.head("POST", "/r.git/git-receive-pack", "Content-Type: application/x-git-receive-pack-request", f"Content-Length: {len(push)}")
            got = wire.talk(head + push, 1, timeout=PATIENT)
            rig.holds("F33 a push is held", got.status in ([200], [403]) and b"store-unavailable" not in got.data, got)
        for _ in range(50):
            got = rig.plain(b"GET http://countersign.internal/v1/manifest HTTP/1.1\r\nHost: countersign.internal\r\n{A}\r\n",
                            "unix" if transport == "unix" else "connect", expect=1, timeout=PATIENT)
            rig.holds("F33 the manifest is told", got.status == [200], got)
    neighbour.served("F33")
    rig.holds("F33 and the retries joined one ticket", len(rig.gw.tickets()) == 1, rig.gw.tickets())


def resident(pid):
    with open(f"/proc/{pid}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024


def kept_by_sanitizers(pid):
    """They hold back memory that was given back, to see who still uses it."""
    with open(f"/proc/{pid}/maps") as maps:
        return 512 << 20 if "libasan" in maps.read() else 0


@test()
def copies_that_wait_over_connect(lab):
    rig = Rig(lab, rules, hold="inline_wait: 10m, expires: 30m")
    body = json.dumps({"n": 1, "a": [0] * 66000}).encode()
    assert 190_000 < len(body) < 200_000
    with rig.case("F34 F36", "connect"):
        neighbour = Neighbour(rig)
        before, wires = resident(rig.gw.pid("judge")), []
        for n in range(COPIES):
            wire = rig.open("connect")
            wire.sock.sendall(wire.fill(wire.head("POST", "/parked", "Content-Type: application/json", f"Content-Length: {len(body)}") + body))
            wires.append(wire)
        # Those past what a sandbox may have open are told so, at once; which of them, is not said.
        over = []
        while len(over) < COPIES - OPEN_MAX:
            ready, _, _ = select.select([w.sock for w in wires if w not in over], [], [], PATIENT)
            assert ready, over
            over += [w for w in wires if w.sock in ready]
        said = [w.talk(b"", 1).status for w in over]
        rig.holds("F34,F36 past the limit it is told so", said == [[429]] * (COPIES - OPEN_MAX), said)
        neighbour.ask()
        neighbour.served("F34,F36 copies")
        grown = resident(rig.gw.pid("judge")) - before
        most = 3 * COPIES * len(body) + kept_by_sanitizers(rig.gw.pid("judge"))
        rig.holds("F34 what waits takes what was sent, and not what it was parsed into", grown < most, grown)
        rig.gw.deny(rig.gw.pending()["id"], "no")
        said = [w.talk(b"", 1, timeout=PATIENT).status for w in wires if w not in over]
        rig.holds("F34 and all of them are told what became of it", said == [[403]] * OPEN_MAX, said)
    rig.settle()


class Slow(socket.socket):
    """Says the first half of its first words, waits for others to come, and then says the rest."""

    meanwhile = None

    def sendall(self, data, *more):
        if self.meanwhile:
            super().sendall(data[:len(data) // 2])
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
            data = data[len(data) // 2:]
        super().sendall(data, *more)


def silent_ones_fill_the_lobby(transport):
    def run(lab):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096) if hard > 0 else 4096, hard))
        rig, flood = Rig(lab), []

        def address(name):
            host, _, port = (rig.gw.socks if name == "socks" else rig.gw.proxy).rpartition(":")
            return host, int(port)

        def come():
            for _ in range(FLOOD):
                flood.append(socket.create_connection(address(transport), PATIENT, source_address=("127.0.0.3", 0)))
            flood[0].settimeout(PATIENT)
            rig.holds("F35 they drive out each other", flood[0].recv(1) == b"")

        def knock(door, who="agent"):
            sock = Slow()
            sock.settimeout(PATIENT)
            sock.connect(address(transport))
            sock.meanwhile = come
            return sock
        with rig.case("F35", transport):
            usual, rig.knock = rig.knock, knock
            wire = rig.open(transport)
            rig.knock = usual
            rig.passed("F35 a slow one gets in", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
            wire = rig.open(transport)
            rig.passed("F35 and so does who comes now", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
        for sock in flood:
            sock.close()
        rig.settle()
    run.__name__ = f"silent_ones_fill_the_lobby_over_{transport}"
    test()(run)


for way in ("connect", "socks"):
    silent_ones_fill_the_lobby(way)

if __name__ == "__main__":
    main()
