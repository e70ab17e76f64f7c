#!/usr/bin/env python3
"""Our parser beside others (A54): what ours accepts, h11, llhttp and nghttp2's validators must accept too, and read
the same, unless known.tsv says why not.

usage: run.py VERDICT_PROGRAM [--seed N] [--messages N] [--show]
Needs python3-h11, node and libnghttp2-14 (conf/need test); with another python3 first in PATH call /usr/bin/python3.
"""
import ctypes
import os
import re
import struct
import subprocess
import sys

import corpus

HERE = os.path.dirname(os.path.abspath(__file__))
try:
    import h11
except ImportError:
    sys.exit("differential: python3-h11 is missing: run conf/need test, and call /usr/bin/python3")

RESPONSE = 4


def lines_of(command, data):
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE, timeout=120)
    if done.returncode != 0:
        sys.exit(f"differential: {command[0]} ended with {done.returncode}")
    return done.stdout.decode().splitlines()


def from_line(line):
    """([message], end); a message is (start line parts, minor, body, [(name, value)])."""
    *said, end = line.split("; ")
    messages = []
    unhex = lambda w: bytes.fromhex(w[1:])
    for m in said:
        w = m.split(" ")
        fields = [tuple(unhex(x) for x in f.split("=")) for f in (w[5] if len(w) > 5 else "").split(",") if f]
        start = (int(w[1]),) if w[0] == "A" else (unhex(w[1]), unhex(w[2]))
        messages.append((start, int(w[3]), unhex(w[4]), fields))
    return messages, end


def by_h11(place, data):
    response = place == RESPONSE
    c = h11.Connection(h11.CLIENT if response else h11.SERVER, max_incomplete_event_size=1 << 17)
    messages, head, body = [], None, b""
    try:
        if response:
            c.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
            c.send(h11.EndOfMessage())
        c.receive_data(data)
        while True:
            e = c.next_event()
            if e is h11.NEED_DATA:
                c.receive_data(b"")
                e = c.next_event()
                if e is h11.NEED_DATA:
                    return messages, "cut"
            if e is h11.PAUSED or type(e) is h11.ConnectionClosed:
                return messages, "clean"
            if type(e) in (h11.Request, h11.Response):
                head, body = e, b""
            elif type(e) is h11.InformationalResponse:
                messages.append(((e.status_code,), int(e.http_version[2:]), b"", list(e.headers)))
                if e.status_code == 101:
                    return messages, "tunnel"
            elif type(e) is h11.Data:
                body += bytes(e.data)
            elif type(e) is h11.EndOfMessage:
                start = (head.status_code,) if response else (bytes(head.method), bytes(head.target))
                messages.append((start, int(head.http_version[2:]), body, list(head.headers)))
                if response:
                    return messages, "clean"
                if head.method == b"CONNECT":
                    return messages, "tunnel"
                if c.our_state is h11.SEND_RESPONSE or c.our_state is h11.MIGHT_SWITCH_PROTOCOL or c.our_state is h11.IDLE:
                    c.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                    c.send(h11.EndOfMessage())
                if c.our_state is not h11.DONE or c.their_state is not h11.DONE:
                    return messages, "closed"
                c.start_next_cycle()
    except h11.RemoteProtocolError as e:
        return messages, f"bad {e}"


class Nghttp2:
    """Its validators of single fields, over what we accepted."""

    def __init__(self):
        self.lib = ctypes.CDLL("libnghttp2.so.14")

    def ok(self, what, value):
        return getattr(self.lib, "nghttp2_check_" + what)(value, ctypes.c_size_t(len(value))) != 0

    def problem(self, place, message):
        start, _, _, fields = message
        for name, value in fields:
            if not self.ok("header_name", name.lower()):
                return f"header name {name!r}"
            if not self.ok("header_value_rfc9113", value):
                return f"header value {value!r}"
            if name.lower() == b"host" and place != RESPONSE and not self.ok("authority", value):
                return f"authority {value!r}"
        if place == RESPONSE:
            return None
        method, target = start
        if not self.ok("method", method):
            return f"method {method!r}"
        if not self.ok("authority" if method == b"CONNECT" else "path", target):
            return f"target {target!r}"
        return None


def plain(fields):
    """Fields as they are compared: names without case, codings without case."""
    return [(n.lower(), v.lower() if n.lower() == b"transfer-encoding" else v) for n, v in fields]


def difference(ours, theirs):
    """What the other refused or read otherwise of the messages that we accepted, or None."""
    messages, end = theirs
    for i, m in enumerate(ours):
        if i >= len(messages):
            return f"refused: {end}"
        for what, a, b in (("start line", m[0], messages[i][0]), ("version", m[1], messages[i][1]), ("body", m[2], messages[i][2]),
                           ("fields", plain(m[3]), plain(messages[i][3]))):
            if a != b:
                return f"{what}: {a!r} is {b!r}"
    return None


def known():
    """[(peer, what it says, the message, reason)]: regular expressions over text, the message as Python writes bytes."""
    rows = []
    for line in open(os.path.join(HERE, "known.tsv"), encoding="utf-8"):
        if line.strip() and not line.startswith("#"):
            peer, what, message, reason = line.rstrip("\n").split("\t")
            rows.append((peer, re.compile(what), re.compile(message), reason))
    return rows


def main():
    program = os.path.abspath(sys.argv[1])
    option = lambda name, default: int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default
    seen, cases = set(), []
    for name, place, data in corpus.corpus(option("--seed", 1), option("--messages", 8000)):
        if (place, data) not in seen:
            seen.add((place, data))
            cases.append((name, place, data))
    packed = b"".join(struct.pack(">IB", len(d), p) + d for _, p, d in cases)
    ours = [from_line(x) for x in lines_of([program], packed)]
    node = [from_line(x) for x in lines_of(["node", os.path.join(HERE, "llhttp.js")], packed)]
    if not len(ours) == len(node) == len(cases):
        sys.exit(f"differential: {len(cases)} messages, {len(ours)} and {len(node)} verdicts")
    rows, used, validators = known(), set(), Nghttp2()
    accepted = {"requests": 0, "responses": 0}
    stricter = {"h11": 0, "llhttp": 0}
    found = {}
    for i, (name, place, data) in enumerate(cases):
        mine = ours[i][0]
        answers = {"h11": by_h11(place, data), "llhttp": node[i]}
        for peer, theirs in answers.items():
            stricter[peer] += len(theirs[0]) > len(mine)
        if not mine:
            continue
        accepted["responses" if place == RESPONSE else "requests"] += 1
        verdicts = [(peer, difference(mine, theirs)) for peer, theirs in answers.items()]
        verdicts += [("nghttp2", p) for p in [next((p for p in (validators.problem(place, m) for m in mine) if p), None)]]
        for peer, what in verdicts:
            if what is None:
                continue
            row = next((r for r in rows if r[0] == peer and r[1].search(what) and r[2].search(repr(data))), None)
            if row:
                used.add(row)
            else:
                found.setdefault((peer, re.sub(r"[0-9]+|b'[^']*'", "", what)), []).append((name, what, data))
    for (peer, _), list_of in sorted(found.items()):
        name, what, data = min(list_of, key=lambda f: len(f[2]))
        print(f"not ok differential (A54) {peer} ({name}): we accept, {what}\n    {data!r}\n    and {len(list_of) - 1} more like it. "
              "Ours is wrong, or tests/differential/known.tsv says why it is not")
        if "--show" in sys.argv:
            for more in list_of[:8]:
                print("   ", more)
    for row in rows:
        if row not in used and "--show" in sys.argv:
            print(f"note: nothing differs any more as known.tsv says: {row[0]} {row[1].pattern}")
    if min(accepted.values()) < 100:
        print(f"not ok differential (A54): we accepted {accepted} only: the comparison says nothing")
        found["few"] = []
    print(f"{len(cases)} messages; accepted {accepted}; llhttp takes {stricter['llhttp']} that we refuse, h11 {stricter['h11']}; "
          f"{len(used)} known differences")
    if not found:
        print("ok differential (A54): what we accept, h11, llhttp and nghttp2 read the same")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
