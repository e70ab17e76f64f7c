#!/usr/bin/env python3
"""What an answer tells of a secret: by its cuts and sizes, beside its data, after a reload, in encoders' escapes, by what
its head says of its body (attacks.tsv D1 to D3, D41, D42, D43, D45, D47)."""
import base64
import gzip
import html
import json
import re
import secrets
import urllib.parse
import zlib

import room  # noqa: F401
from attack import BOTH, everywhere, fields_of, hidden, raw_answer, wires
import codings
from harness import main

OK = b"HTTP/1.1 200 OK\r\n"
CLASS, FORM_MOST = 64, 8  # proxy/carrier/plan/plan.h


def until(wire, data, done):
    """What was read, and its sizes, until it is enough."""
    sizes = []
    while not done(data):
        more = wire.sock.recv(65536)
        assert more, f"the connection ended after {data!r}"
        data += more
        sizes.append(len(more))
    with open(wire.rig.lab.out / "answers", "ab") as out:
        out.write(data + b"\n")
    return data, sizes


def body_of(data):
    return data.partition(b"\r\n\r\n")[2]


@everywhere("D41", cleartext=True)
def sizes_tell_nothing_of_a_guess(rig, transport):
    reach = -(-len(f"Bearer {rig.secret}") // CLASS) * CLASS * FORM_MOST
    for wire in wires(rig, transport):
        for n in (1, 2, 7, 20, len(rig.secret) - 1):
            shapes = []
            for guess in (rig.secret[:n], rig.secret[:n - 1] + chr(ord(rig.secret[n - 1]) ^ 1), "!" * n):
                gate = secrets.token_hex(8)
                pre, sent = 2000, 2000 + n
                path = f"/echo?only=x-probe&pre={pre}&split={sent},10000&gate={gate}"
                wire.sock.sendall(wire.fill(wire.head("GET", path, f"X-Probe: {guess}!and the rest")))
                data, sizes = until(wire, b"", lambda d: len(body_of(d)) >= sent - (reach - 1))
                shapes.append((len(body_of(data)), [] if wire.plain else sizes))
                rig.up.release(gate)
                data, _ = until(wire, data, lambda d: body_of(d).endswith(b"!and the rest"))
                rig.holds(f"D41 {n} characters", shapes[-1] == shapes[0] and shapes[0][0] == sent - (reach - 1), shapes)
            rig.arrived()
        gate = secrets.token_hex(8)
        wire.sock.sendall(wire.fill(wire.head("GET", f"/sse?n=4&only=x-probe&gate={gate}", f"X-Probe: {rig.secret[:20]}")))
        data = b""
        for event in range(4):  # each is here when its end is, though it ends as the secret begins
            data, _ = until(wire, data, lambda d: d.count(b"\n\n") > event)
            rig.holds("D41 an event passes as it ends", data.count(rig.secret[:20].encode()) == event + 1, data)
            if event < 3:
                rig.up.release(gate)
        until(wire, data, lambda d: d.endswith(b"0\r\n\r\n"))
        rig.arrived()
        wire.close()


def gzip_with(flag, text, plain):
    field = len(text).to_bytes(2, "little") + text if flag == 4 else text + b"\0"
    return b"\x1f\x8b\x08" + bytes([flag]) + b"\0\0\0\0\0\3" + field + gzip.compress(plain)[10:]


@everywhere("D42", cleartext=True)
def beside_the_data_of_a_coding_it_is_found_as_well(rig, transport):
    secret = rig.secret.encode()
    dictionary = zlib.compressobj(zdict=secret)
    rows = [("gzip", gzip_with(flag, b"a " + secret + b".txt", b"data")) for flag in (4, 8, 16)]
    rows += [("gzip", gzip.compress(b"first") + row) for _, row in rows] + [("gzip", gzip.compress(b"first") + gzip.compress(secret))]
    rows += [("deflate", dictionary.compress(secret) + dictionary.flush()), ("zstd", b"\x50\x2a\x4d\x18" + len(secret).to_bytes(4, "little") + secret),
             ("br", b"\x0d\x2b\x80" + secret + b"\x03"), ("zstd", b"\x50\x2a\x4d\x18" + len(secret).to_bytes(4, "little") + secret + codings.zstd(b"data"))]
    for plain in (False, True) if transport in BOTH else (transport == "absolute",):
        for n, (coding, body) in enumerate(rows):
            head = OK + b"Content-Type: application/octet-stream\r\nContent-Encoding: " + coding.encode() + b"\r\n"
            chunks = b"".join(b"%x\r\n" % len(body[k:k + 9]) + body[k:k + 9] + b"\r\n" for k in range(0, len(body), 9)) + b"0\r\n\r\n"
            for framed in (b"Content-Length: %d\r\n\r\n" % len(body) + body, b"Transfer-Encoding: chunked\r\n\r\n" + chunks):
                rig.up.script({"/coded": raw_answer(head + framed)})
                wire = rig.open(transport, plain=plain) if transport in BOTH else rig.open(transport)
                got = wire.talk(wire.head("GET", "/coded"), 1)
                rig.holds(f"D42 row {n} {coding}", secret not in got.data and secret[:12] not in got.data, got)
                rig.arrived()
                wire.close()
    good = gzip_with(8, b"a-file.txt", b"data")
    rig.up.script({"/coded": raw_answer(OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(good) + good, close=False)})
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/coded"), 1)
    rig.holds("D42 one without it passes as it came", body_of(got.data) == good, got)
    rig.arrived()
    wire.close()


@everywhere("D43", cleartext=True)
def what_a_host_was_given_is_searched_for_after_it_lost_it(rig, transport):
    for wire in wires(rig, transport):
        got = wire.talk(wire.head("GET", "/ok"), 1)
        assert fields_of(rig.passed("D43 it is given", got, [("GET", "/ok", b"")])[0])["authorization"] == f"Bearer {rig.secret}"
        wire.close()
    text = re.sub(r"only: \[.*\]", f"only: [{{ host: other.test, port: {rig.up.port} }}]", rig.gw.policy.read_text()).replace(", use: api", "")
    text = "\n".join(line.replace("decide: allow }", "decide: allow, use: api }") if "id: other" in line else line for line in text.splitlines()) + "\n"
    rig.gw.policy.write_text(text)
    rig.reload()
    body = b"was: " + rig.secret.encode()
    rig.up.script({"/back": raw_answer(OK + b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body, close=False)})
    for wire in wires(rig, transport):
        got = wire.talk(wire.head("GET", "/back"), 1)
        new = hidden(rig, "D43 a host hands it back", got)
        assert "authorization" not in fields_of(new[0]) and b"was: ****" in got.data, (new, got)
        wire.close()


@everywhere("D1 D2 D3", cleartext=True)
def an_answer_with_it_is_refused_where_the_policy_says_so(rig, transport):
    text = rig.gw.policy.read_text()
    rig.gw.policy.write_text(text.replace("    only: [", "    scrub: refuse\n    only: [", 1))
    rig.reload()
    secret = rig.secret.encode()
    plain = OK + b"Content-Type: text/plain\r\n"
    rows = [("D2 value", plain + b"X-Echo: " + secret + b"\r\nContent-Length: 2\r\n\r\nok"),
            ("D2 reason", b"HTTP/1.1 400 " + secret + b"\r\nContent-Length: 2\r\n\r\nok")]
    for name, form in (("D1 literal", secret), ("D3 base64", base64.b64encode(secret)), ("D3 hex", secret.hex().encode())):
        rows.append((name, plain + b"Content-Length: %d\r\n\r\n" % (len(form) + 6) + b"before" + form))
    for wire in wires(rig, transport):
        for name, answer in rows:
            rig.up.script({"/back": raw_answer(answer)})
            wire = rig.open(transport, plain=wire.plain and transport != "absolute") if transport in BOTH else rig.open(transport)
            got = wire.talk(wire.head("GET", "/back"), 1)
            rig.holds(name, got.status == [502] and b"****" not in got.data and secret not in got.data, got)
            rig.arrived()
            wire.close()
    rig.up.script({"/back": raw_answer(plain + b"Content-Length: 2\r\n\r\nok", close=False)})
    wire = rig.open(transport)
    got = wire.talk(wire.head("GET", "/back"), 1)
    rig.holds("D1 one without it passes", got.status == [200] and body_of(got.data) == b"ok", got)
    rig.arrived()
    wire.close()


def escaped(secret):
    """As encoders of .NET, Go, PHP, Gson, Handlebars and others write it when nobody tells them otherwise."""
    def numbers(chars, form):
        return "".join(form.format(ord(c)) if c in chars else c for c in secret)
    def slashes(text, chars='"\\'):
        return "".join("\\" + c if c in chars else c for c in text)
    yield "python", json.dumps(secret)
    yield "php", slashes(secret, '"\\/')
    yield "go", slashes(secret).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    yield "gson", slashes(secret).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("=", "\\u003d").replace("'", "\\u0027")
    yield "net", numbers("\"&'+<>`", "\\u{:04X}")
    yield "all", "".join(f"\\u{ord(c):04x}" for c in secret)
    yield "python html", html.escape(secret)
    yield "go html", html.escape(secret, quote=False).replace('"', "&#34;").replace("'", "&#39;").replace("+", "&#43;")
    yield "net html", html.escape(secret).replace("+", "&#x2B;").replace("`", "&#x60;")
    yield "mustache", html.escape(secret).replace("/", "&#x2F;").replace("`", "&#x60;").replace("=", "&#x3D;").replace("&#x27;", "&#39;")
    yield "php html", html.escape(secret).replace("&#x27;", "&#039;")


@everywhere("D45", cleartext=True)
def the_escapes_of_encoders_are_forms(rig, transport):
    rig.secret = rig.lab.canary("p+/&<'=>" + secrets.token_urlsafe(24))
    rig.gw.cli("secret", "set", "api", stdin=rig.secret.encode(), rc=0)
    for wire in wires(rig, transport):
        for name, text in escaped(rig.secret):
            kind, body = b"text/html" if "html" in name else b"application/json", f"<{text}>".encode()
            rig.up.script({"/escaped": raw_answer(OK + b"Content-Type: " + kind + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body, close=False)})
            got = wire.talk(wire.head("GET", "/escaped"), 1)
            rig.holds(f"D45 {name}", rig.secret[-20:].encode() not in got.data and got.status == [200] and b"*" * 32 in got.data, got)
            assert fields_of(rig.arrived()[0])["authorization"] == f"Bearer {rig.secret}"
        wire.close()
    rig.gw.policy.write_text(rig.gw.policy.read_text().replace('inject: { header: Authorization, format: "Bearer {}" }', "inject: { basic: true }"))
    rig.reload()
    said = rig.gw.cli("secret", "set", "api", stdin=b"somebody-with-a-long-name:short", rc=1)
    rig.holds("D45 a pair with a short password", b"password" in said.both, said.text())


@everywhere("D47", cleartext=True)
def what_tells_of_a_body_does_not_outlive_it(rig, transport):
    names = ("ETag", "Content-MD5", "Digest", "Content-Digest", "Repr-Digest", "X-Amz-Checksum-Sha256", "X-Goog-Hash")
    for wire in wires(rig, transport):
        for name in names:
            query = f"h={name}:{urllib.parse.quote(chr(34) + '0123456789' + chr(34))}"
            got = wire.talk(wire.head("GET", f"/echo?only=authorization&{query}"), 1)
            hidden(rig, f"D47 {name}", got)
            rig.holds(f"D47 {name} of a body that was covered", b"0123456789" not in got.data and b"*" * 32 in got.data, got)
            got = wire.talk(wire.head("GET", f"/ok?{query}"), 1)
            rig.holds(f"D47 {name} of a body that was not", b"0123456789" in got.data and got.status == [200], got)
            rig.arrived()
        wire.close()


if __name__ == "__main__":
    main()
