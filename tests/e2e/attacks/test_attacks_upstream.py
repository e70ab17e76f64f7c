#!/usr/bin/env python3
"""Between the gateway and the upstream: what was decided once is sent once (attacks.tsv E42), what is known to be no
request is not begun, and a part of an answer is searched beyond its edges (D7, D46)."""
import room  # noqa: F401
from attack import everywhere, fields_of
from harness import main

WAITS = "inline_wait: 0s, expires: 2h, pending: 1000"


def once(up):
    """Reads that are held, and reads that are counted, of paths that end the connection instead of an answer."""
    return "".join(f"""  - {{ id: held{n}, match: {{ host: {up.name}, port: {port}{scheme}, path: "/drop/held/**" }}, decide: hold{use}, approve: {{ within: 2h }} }}
  - {{ id: counted{n}, match: {{ host: {up.name}, port: {port}{scheme}, path: "/drop/counted/**" }}, decide: allow{use}, limits: {{ requests: 1000/1d }} }}
""" for n, (port, scheme, use) in enumerate(((up.port, "", ", use: api"), (up.plain_port, ", scheme: http", ""))))


@everywhere("E42", more=once, apart=True)
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
        rig.holds(f"E42 {path}: its connection died", got.status in ([409], [502], [504]), got)
        new = [(r["method"], r["target"]) for r in rig.arrived()]
        rig.holds(f"E42 {path}: sent once", new == [("GET", path)], new)
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/drop/held/1"), 1)
    rig.holds("E42 nor when it is asked for again", got.status != [200] and not rig.arrived(), got)


@everywhere(["A9", "A12", "A13"])
def a_head_whose_body_is_known_to_be_malformed_leaves_no_beginning(rig, transport, case):
    rows = {"A9": ("0x5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n5g\r\n"), "A12": ("5\r\nhelloXX0\r\n\r\n", "4\r\nhello\r\n0\r\n\r\n"),
            "A13": ("5\r\nhello\r\n00\r\n\r\n", "5\r\nhello\r\n0;\r\n\r\n")}
    for body in rows[case]:
        wire = rig.open(transport)
        got = wire.talk(wire.head("POST", "/w/1", "Transfer-Encoding: chunked") + body.encode())
        rig.refused(f"{case} {body!r}", got, status=400)  # allowed by its head alone, and yet not a byte of it upstream


ECHO = "/part?only=authorization&pre=300&post=300"


def ranged(rig, wire, what, path, *lines, status=206, method="GET"):
    """(fields, body, the Range that arrived) of an answer to it."""
    got = wire.talk(wire.head(method, path, *lines), 1, heads=(0,) if method == "HEAD" else ())
    sent = fields_of(rig.passed(what, got, [(method, path, b"")], status)[0])
    head, _, body = got.data.partition(b"\r\n\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.decode().split("\r\n")[1:])}
    return fields, body, sent.get("range")


@everywhere("D46", cleartext=True, apart=True)
def what_parts_show_is_what_the_whole_shows(rig, transport):
    wire = rig.open(transport)
    _, whole, _ = ranged(rig, wire, "D46 the whole", ECHO, status=200)
    size, at = len(whole), whole.index(b"*")
    rig.holds("D46 the secret is covered", rig.secret.encode() not in whole and size == 600 + len(f"Bearer {rig.secret}"), whole)
    parts = [(n, n) for n in range(at - 3, size - 297)] + [(at - 3, n) for n in range(at, size - 297, 5)] + [(n, size - 1) for n in range(at, size - 297, 5)]
    both = []
    for first, last in parts:
        for asked in (f"bytes={first}-{last}", *([f"bytes={first}-", f"bytes=-{size - first}"] if last == size - 1 else [])):
            fields, body, sent = ranged(rig, wire, f"D46 {asked}", ECHO, f"Range: {asked}")
            rig.holds(f"D46 {asked}: what was asked, as the whole shows it", body == whole[first:last + 1], body)
            rig.holds(f"D46 {asked}: and said so", fields["content-range"] == f"bytes {first}-{last}/{size}" and "content-md5" not in fields, fields)
            rig.holds(f"D46 {asked}: more was searched", sent != asked, sent)
            both.append((asked, sent))
    rig.account()
    ranges = [(record.get("range"), record.get("range_sent")) for record in rig.reads if record["kind"] == "result"]
    rig.holds("D46 the audit has both ranges", ranges[-len(both):] == both, ranges)
    rig.holds("D46 and none of a request without one", set(ranges[:-len(both)]) == {(None, None)}, ranges)


def asked_first(up):
    return "".join(f"""  - {{ id: asked{n}, match: {{ host: {up.name}, port: {port}{scheme}, path: "/asked/**", method: GET }}, decide: hold{use}, approve: {{ within: 2h }} }}
""" for n, (port, scheme, use) in enumerate(((up.port, "", ", use: api"), (up.plain_port, ", scheme: http", ", use: api"))))


@everywhere("D7", cleartext=True, more=asked_first)
def a_range_is_what_was_asked_or_refused_in_words(rig, transport):
    wire = rig.open(transport)
    _, whole, _ = ranged(rig, wire, "D7 the whole", "/part?kib=700", status=200)
    for first, last in ((0, 0), (0, len(whole) - 1), (1, 300000), (5000, 700000), (len(whole) - 1, len(whole) - 1), (70000, 10 ** 9)):
        fields, body, _ = ranged(rig, wire, f"D7 {first}-{last}", "/part?kib=700", f"Range: bytes={first}-{last}")
        last = min(last, len(whole) - 1)
        rig.holds(f"D7 {first}-{last}", body == whole[first:last + 1] and fields["content-range"] == f"bytes {first}-{last}/{len(whole)}", fields)
    for lines in (["Range: bytes=0-0,2-2"], ["Range: bytes=-1,0-"], ["Range: lines=1-2"], ["Range: bytes=5-4"],
                  ["Range: bytes=0-1", 'If-Range: W/"a"']):
        for path in (ECHO, "/asked/1"):  # nobody is asked to approve what will not be sent
            got = wire.talk(wire.head("GET", path, *lines), 1)
            rig.refused(f"D7 {path} {lines}", got, closed=False, status=416)
            rig.holds(f"D7 {path} {lines}: in words", b'"code":"range-refused"' in got.data, got)
    rig.held("D7 one range is held", wire.talk(wire.head("GET", "/asked/1", "Range: bytes=0-0"), 1))
    size = 600 + len(f"Bearer {rig.secret}")
    for asked in (f"bytes={size}-", f"bytes={size}-{size + 5}", f"bytes={size + 10 ** 9}-", "bytes=-0"):
        fields, body, _ = ranged(rig, wire, f"D7 {asked} is past the end", ECHO, f"Range: {asked}", status=416)
        rig.holds(f"D7 {asked} says how long it is", fields["content-range"] == f"bytes */{size}" and not body, (fields, body))
    for path, status, code in (("/part?many=1", 502, b"upstream-failed"), ("/part?lie=1", 502, b"upstream-failed"), ("/part?enc=gzip", 502, b"part-encoded")):
        got = wire.talk(wire.head("GET", path, "Range: bytes=0-1"), 1)
        rig.holds(f"D7 {path}", got.status == [status] and b'"code":"' + code in got.data, got)
        rig.arrived()
    _, body, _ = ranged(rig, wire, "D7 If-Range of another version", ECHO, "Range: bytes=0-1", 'If-Range: "b"', status=200)
    rig.holds("D7 is given all of it", len(body) == size)
    _, body, _ = ranged(rig, wire, "D7 If-Range of this one", ECHO, "Range: bytes=0-1", 'If-Range: "a"')
    rig.holds("D7 is given the part", body == b"..")
    _, _, sent = ranged(rig, wire, "D7 HEAD", ECHO, "Range: bytes=0-1", method="HEAD")
    rig.holds("D7 HEAD has no bytes to search", sent == "bytes=0-1", sent)
    _, _, sent = ranged(rig, wire, "D7 no range of a POST", "/w/1", "Range: bytes=0-1", "Content-Length: 0", method="POST", status=200)
    rig.holds("D7 means nothing there", sent is None, sent)


if __name__ == "__main__":
    main()
