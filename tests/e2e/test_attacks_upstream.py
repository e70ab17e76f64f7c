#!/usr/bin/env python3
"""Between the gateway and the upstream: what was decided once is sent once (attacks.md E42)."""
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



if __name__ == "__main__":
    main()
