#!/usr/bin/env python3
"""Between the gateway and the upstream: what was decided once is sent once (attacks.md E42), and what is known to be no
request is not begun."""
from attack import everywhere
from harness import main

WAITS = "inline_wait: 0s, expires: 10m, pending: 1000"


def once(up):
    """Reads that are held, and reads that are counted, of paths that end the connection instead of an answer."""
    return "".join(f"""  - {{ id: held{n}, match: {{ host: {up.name}, port: {port}{scheme}, path: "/drop/held/**" }}, decide: hold{use}, approve: {{ within: 10m }} }}
  - {{ id: counted{n}, match: {{ host: {up.name}, port: {port}{scheme}, path: "/drop/counted/**" }}, decide: allow{use}, limits: {{ requests: 1000/1d }} }}
""" for n, (port, scheme, use) in enumerate(((up.port, "", ", use: api"), (up.plain_port, ", scheme: http", ""))))


@everywhere("E42", more=once)
def what_was_held_or_counted_is_sent_at_most_once(rig, transport):
    rig.lab.leaves("unknown")  # the server ended before it answered
    rig.once = {"/drop/held/1", "/drop/counted/1"}
    wire = rig.open(transport)
    rig.held("E42 a read is held", wire.talk(wire.head("GET", "/drop/held/1"), 1))
    rig.gw.approve(rig.gw.pending()["id"])
    for path in sorted(rig.once):
        warm, wire = rig.open(transport), rig.open(transport)
        rig.passed("E42 a connection to be kept", warm.talk(warm.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
        got = wire.talk(wire.head("GET", path), 1)
        rig.holds(f"E42 {path}: its connection died", got.status in ([502], [504]), got)
        new = [(r["method"], r["target"]) for r in rig.arrived()]
        rig.holds(f"E42 {path}: sent once", new == [("GET", path)], new)
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/drop/held/1"), 1)
    rig.holds("E42 nor when it is asked for again", got.status != [200] and not rig.arrived(), got)


@everywhere(["A9", "A12", "A13"])
def a_head_whose_body_is_known_to_be_malformed_leaves_no_beginning(rig, transport, case):
    rows = {"A9": ("0x5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n5g\r\n"), "A12": ("5\r\nhelloXX0\r\n\r\n", "4\r\nhello\r\n0\r\n\r\n"),
            "A13": ("5\r\nhello\r\n00\r\n\r\n", "5\r\nhello\r\n0;x\r\n\r\n")}
    for body in rows[case]:
        wire = rig.open(transport)
        got = wire.talk(wire.head("POST", "/w/1", "Transfer-Encoding: chunked") + body.encode())
        rig.refused(f"{case} {body!r}", got, status=400)  # allowed by its head alone, and yet not a byte of it upstream


if __name__ == "__main__":
    main()
