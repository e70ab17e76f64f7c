#!/usr/bin/env python3
"""The credential: where it goes, where it never comes back, whose it is (attacks.tsv D1 to D16, C22, C25, C29, C34, C40)."""
import gzip
import os
import socket
import stat
import threading
import zlib

import room  # noqa: F401
from attack import BOTH, Rig, everywhere, fields_of, hidden, raw_answer, wires
import codings
from gateway import NOT_RELEASED
from harness import main, test
from test_attacks_hello import join
from ways import LISTENER

OK = b"HTTP/1.1 200 OK\r\n"
MIB = 1024 * 1024


@everywhere("D1 D3 D6", cleartext=True)
def an_echo_shows_no_credential(rig, transport):
    for wire in wires(rig, transport):
        for path in ("/echo?form=raw", "/echo?form=raw&ct=application/json", "/echo?form=raw&ct=text/html&h=X-A:b"):
            got = wire.talk(wire.head("GET", path, "X-Probe: here"), 1)
            new = hidden(rig, f"D1 {path}", got)
            sent = fields_of(new[0])["authorization"]
            assert sent == f"Bearer {rig.secret}" and b"here" in got.data and b"*" * 20 in got.data, (sent, got)
        for form in ("raw", "base64", "base64url", "percent", "hex"):
            for shift in (0, 1, 2):
                got = wire.talk(wire.head("GET", f"/echo?form={form}&only=authorization&shift={shift}"), 1)
                hidden(rig, f"D3 {form} at {shift}", got)
                assert b"*" * 20 in got.data and not near(rig.secret.encode(), form, got.data), got
        for n, decoys in (("decoys", b"Bearer " + os.urandom(30).hex().encode()), ("tokens", b"ghp_" + b"x" * 36)):
            body = b"\n".join([decoys] * 80) + b"\n" + rig.secret.encode()
            rig.up.script({"/decoys": raw_answer(OK + b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body, close=False)})
            got = wire.talk(wire.head("GET", "/decoys"), 1)
            hidden(rig, f"D6 eighty {n}", got)
            assert decoys in got.data, got
        for n in (100, 70000, 5 * MIB):
            got = wire.talk(wire.head("GET", f"/echo?form=raw&pre={n}"), 1)
            hidden(rig, f"D6 behind {n} bytes", got)
            assert len(got.data) > n and b"*" * 20 in got.data[-2000:]
        wire.close()


def near(secret, form, data):
    """A piece in the middle of the form, which no neighbour changes."""
    import base64
    whole = {"base64": base64.b64encode(secret)[8:40], "base64url": base64.urlsafe_b64encode(secret)[8:40], "hex": secret.hex().encode()[8:60],
             "percent": "".join(f"%{c:02X}" for c in secret).encode()[9:90], "raw": secret[4:-4]}[form]
    return whole in data


@everywhere("D3", ("connect", "unix", "socks", "captured", "later", "reload"))
def the_parts_of_a_password_are_not_shown_either(rig, transport):
    """Basic: user:password in base64, the pair, the password alone; to a host of its own."""
    if transport == "later":
        rig.secret = pair_at(rig, "upstream.test", "use: api")
    else:
        rig.secret = pair_at(rig, "other.test", None)
    host = "upstream.test" if transport == "later" else "other.test"
    for form, then in (("raw", None), ("basic", None), ("basic", "base64"), ("basic", "percent"), ("basic", "hex")):
        wire = rig.open(transport) if transport == "later" else rig.open(transport, host=host)
        got = wire.talk(wire.head("GET", f"/echo?only=authorization&form={form}" + (f"&then={then}" if then else "")), 1)
        hidden(rig, f"D3 {form} {then}", got)
        sent = fields_of(rig.records[-1])["authorization"]
        assert sent.startswith("Basic ") and sent[6:26].encode() not in got.data and b"*" * 10 in got.data, got
        wire.close()


def pair_at(rig, host, use):
    """From now on requests to host get user:password; the password."""
    password = rig.lab.canary(os.urandom(24).hex(), "somebody")
    text = rig.gw.policy.read_text()
    if use:
        text = text.replace('inject: { header: Authorization, format: "Bearer {}" }', "inject: { basic: true }")
        rig.gw.cli("secret", "set", "api", stdin=f"somebody:{password}".encode(), rc=0)
    else:
        text = text.replace("credentials:\n", f"credentials:\n  pair:\n    source: {{ store: pair }}\n    inject: {{ basic: true }}\n    only: [{{ host: {host}, port: {rig.up.port} }}]\n")
        text = "\n".join(line.replace("decide: allow }", "decide: allow, use: pair }") if "id: other" in line else line for line in text.splitlines()) + "\n"
        rig.gw.cli("secret", "set", "pair", stdin=f"somebody:{password}".encode(), rc=0)
    rig.gw.policy.write_text(text)
    rig.reload()
    return password


def bare_deflate(text):
    """Without zlib's wrapper, as some servers send it."""
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(text) + coder.flush()


@everywhere("D5", cleartext=True)
def an_echo_in_a_coding_is_looked_into_or_refused(rig, transport):
    text = b"before " + rig.secret.encode() + b" after"
    bomb = gzip.compress(b"\0" * (60 * MIB) + text, 9)
    rows = [("gzip", gzip.compress(text)), ("gzip", gzip.compress(b"x" * 100000 + text)), ("deflate", zlib.compress(text)), ("x-gzip", gzip.compress(text)), ("gzip, gzip", gzip.compress(gzip.compress(text))),
            ("br", b"\x8b\x02\x80" + text + b"\x03"), ("zstd", b"\x28\xb5\x2f\xfd" + text), ("unknown", text), ("identity", text), ("gzip", text), ("gzip", gzip.compress(text)[:-4]),
            ("br", codings.brotli(text)), ("zstd", codings.zstd(text)), ("zstd", codings.zstd(b"ok") + codings.zstd(text)), ("br", codings.brotli(text)[:-2]), ("br, zstd", codings.zstd(codings.brotli(text))),
            ("deflate", bare_deflate(text)), ("deflate", bare_deflate(b"ok") + bare_deflate(text)),
            ("gzip", gzip.compress(b"ok") + gzip.compress(text)), ("gzip", gzip.compress(b"ok") + text), ("gzip\r\nContent-Encoding: gzip", gzip.compress(text)), ("GZIP", gzip.compress(text)), ("gzip", bomb)]
    for wire in wires(rig, transport):
        for n, (coding, body) in enumerate(rows):
            head = OK + b"Content-Type: text/plain\r\nContent-Encoding: " + coding.encode() + b"\r\n"
            chunks = b"".join(b"%x\r\n" % len(body[k:k + 700]) + body[k:k + 700] + b"\r\n" for k in range(0, len(body), 700)) + b"0\r\n\r\n"
            for framed in (b"Content-Length: %d\r\n\r\n" % len(body) + body, b"Transfer-Encoding: chunked\r\n\r\n" + chunks):
                rig.up.script({"/coded": raw_answer(head + framed)})
                wire = rig.open(transport, plain=wire.plain and transport != "absolute") if transport in BOTH else rig.open(transport)
                got = wire.talk(wire.head("GET", "/coded"), 1)
                shown = rig.secret.encode() in decoded(got.data.partition(b"\r\n\r\n")[2])
                rig.holds(f"D5 row {n} {coding!r}", not shown and rig.secret.encode() not in got.data, (coding, got))
                new = rig.arrived()
                assert fields_of(new[0])["accept-encoding"] == "identity", new
                wire.close()
    for coding, body in (("br", codings.brotli(b"clean " * 99)), ("zstd", codings.zstd(b"clean " * 99)), ("deflate", bare_deflate(b"clean " * 99))):
        rig.up.script({"/coded": raw_answer(OK + f"Content-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body, close=False)})
        wire = rig.open(transport)
        got = wire.talk(wire.head("GET", "/coded"), 1)
        rig.holds(f"D5 clean {coding} passes as it came", got.data.partition(b"\r\n\r\n")[2] == body, got)
        rig.arrived()
        wire.close()


def decoded(body):
    """What a client that believes anything could make of it."""
    found = body + codings.plain(body) + codings.plain(codings.plain(body))
    for _ in range(2):
        for wbits in (31, 15, -15):
            try:
                decoder = zlib.decompressobj(wbits)
                part = decoder.decompress(body, 80 * MIB)
                found, body = found + part + decoder.unused_data, part
                break
            except zlib.error:
                continue
    return found


@everywhere("D2 D4 D10", ("absolute", "socks", "captured"), cleartext=True)
def in_the_clear_it_is_covered_as_well(rig, transport):
    secret = rig.secret.encode()
    wire = rig.open(transport, plain=True) if transport in BOTH else rig.open(transport)
    for place, answer in (
            ("D2 value", OK + b"X-Echo: Bearer " + secret + b"\r\nContent-Length: 0\r\n\r\n"), ("D2 reason", b"HTTP/1.1 400 " + secret + b"\r\nContent-Length: 0\r\n\r\n"),
            ("D2 location", b"HTTP/1.1 302 Found\r\nLocation: https://evil.test/?" + secret + b"\r\nContent-Length: 0\r\n\r\n"),
            ("D2 trailer", OK + b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Echo: " + secret + b"\r\n\r\n"),
            ("D2 extension", OK + b"Transfer-Encoding: chunked\r\n\r\n2;" + secret + b"\r\nok\r\n0\r\n\r\n"), ("D10 cookie", OK + b"Set-Cookie: a=" + secret + b"\r\nContent-Length: 0\r\n\r\n"),
            ("D2 interim", b"HTTP/1.1 103 Early\r\nX: " + secret + b"\r\n\r\n" + OK + b"Content-Length: 0\r\n\r\n"),
            ("D4 one by one", OK + b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(b"1\r\n%c\r\n" % c for c in secret) + b"0\r\n\r\n"),
            ("D4 two", OK + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n" + secret[:9] + b"\r\n%x\r\n" % len(secret[9:]) + secret[9:] + b"\r\n0\r\n\r\n")):
        rig.up.script({"/scripted": raw_answer(answer)})
        wire = rig.open(transport, plain=True) if transport in BOTH else rig.open(transport)
        got = wire.talk(wire.head("GET", "/scripted"), 1)
        rig.holds(place, secret[2:-2] not in got.data and b"set-cookie" not in got.data.lower(), got)
        assert fields_of(rig.arrived()[0])["authorization"] == f"Bearer {rig.secret}"
        wire.close()
    wire = rig.open(transport, plain=True) if transport in BOTH else rig.open(transport)
    got = wire.talk(wire.head("GET", "/ok", "Cookie: a=b"), 1)
    sent = fields_of(rig.passed("D10 fields of requests", got, [("GET", "/ok", b"")])[0])
    assert not set(sent) & {"cookie"}, sent


@everywhere("D8 D11", cleartext=True)
def what_a_scrub_cannot_do_is_the_policys(rig, transport):
    for wire in wires(rig, transport):
        for path in ("/guard/oauth/token", "/guard/user/keys", "/guard/debug/vars", "/guard/env?from=0&to=8"):
            rig.refused(f"D8 {path}", wire.talk(wire.head("GET", path), 1), closed=False, status=403)
        for n in range(2):  # nothing is kept to answer from: each of them is asked for, for each sandbox
            rig.up.script({"/cached": raw_answer(OK + b'ETag: "a"\r\nCache-Control: public, max-age=9999\r\nLast-Modified: Sun, 01 Jan 2023 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok', close=False)})
            rig.passed(f"D11 again {n}", wire.talk(wire.head("GET", "/cached"), 1), [("GET", "/cached", b"")])
        etag = rig.secret.encode()
        for what, answer, status in (("304", b"HTTP/1.1 304 Not Modified\r\nETag: \"" + etag + b"\"\r\n\r\n", 304), ("HEAD", OK + b"ETag: W/\"" + etag + b"\"\r\nContent-Length: 9\r\n\r\n", 200)):
            rig.up.script({"/tag": raw_answer(answer, close=False)})
            method = "HEAD" if what == "HEAD" else "GET"
            got = wire.talk(wire.head(method, "/tag", 'If-None-Match: "x"'), 1, heads=(0,) if what == "HEAD" else ())
            hidden(rig, f"D11 {what}", got, status)
        for digest in ("ETag", "Content-MD5", "Digest", "Content-Digest", "Repr-Digest"):
            rig.up.script({"/digest": raw_answer(OK + f'{digest}: "0123456789"\r\nContent-Type: text/plain\r\n'.encode() + b"Content-Length: %d\r\n\r\n" % len(etag) + etag, close=False)})
            got = wire.talk(wire.head("GET", "/digest"), 1)
            rig.holds(f"D11 {digest} of a body that was covered", etag not in got.data and b"0123456789" not in got.data, got)
            rig.arrived()
            wire = wire if not got.closed else rig.open(transport, plain=wire.plain) if transport in BOTH else rig.open(transport)
        rig.refused("D8 TRACE", wire.talk(wire.head("TRACE", "/ok"), 1), closed=False)
        wire.close()


OWN = ("Authorization: Bearer mine", "authorization: Basic bWluZQ==", "AUTHORIZATION: mine", "Cookie: login=1", "X-Api-Key: mine", "x_api_key: mine", "Api-Key: mine", "X-Auth-Token: mine",
       "Private-Token: mine", "X-Goog-Api-Key: mine", "X-Access-Token: mine", "X-Amz-Security-Token: mine", "Job-Token: mine", "X-Vault-Token: mine")


@everywhere("D14 C40", cleartext=True)
def the_sandboxs_own_credential_does_not_get_there(rig, transport):
    for wire in wires(rig, transport):
        for line in OWN:
            ids = "D14,C40" if line.lower().startswith("authorization") else "C40"
            sent = rig.passed(f"{ids} {line}", wire.talk(wire.head("GET", "/ok", line), 1), [("GET", "/ok", b"")])[0]["fields"]
            assert [v for n, v in sent if n.lower() == "authorization"] == [f"Bearer {rig.secret}"], sent
            assert not [v for _, v in sent if "mine" in v or "login" in v or "bWluZQ" in v], sent
            got = wire.talk(wire.head("POST", "/w/1", line, "Content-Length: 1") + b"x", 1)
            sent = rig.passed(f"{ids} {line} of a write", got, [("POST", "/w/1", b"x")])[0]["fields"]
            assert not [v for _, v in sent if "mine" in v], sent
        for lines in (("Authorization: a", "Authorization: b"), ("Authorization: a", "authorization: b"), ("Authorization: a\r\n b",), ("Authorization : a",)):
            again = rig.open(transport, plain=wire.plain) if transport in BOTH else rig.open(transport)
            rig.refused(f"D14 {lines}", again.talk(wire.head("GET", "/ok", *lines), 1), closed=False)
            again.close()
        wire.close()


@everywhere("D16")
def no_credential_goes_over_cleartext(rig, transport):
    """The policy here binds it to https alone."""
    at, plain_at = f"{rig.up.name}:{rig.up.port}", f"{rig.up.name}:{rig.up.plain_port}"
    if transport == "absolute" or transport in BOTH:
        wire = rig.open(transport, plain=True) if transport in BOTH else rig.open(transport)
        sent = fields_of(rig.passed("D16 http has a rule without it", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])[0])
        assert "authorization" not in sent and rig.secret not in str(sent), sent
    if transport in ("connect", "unix", "reload"):
        got = rig.plain(f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n{{A}}\r\nGET /ok HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n".encode(), transport)
        rig.holds("D16 plaintext in a tunnel", got.closed and not rig.arrived() and got.data.count(b"HTTP/1.1 2") <= 1, got)
    elif transport == "later":
        wire = rig.open(transport)
        below = socket.socket(fileno=os.dup(wire.sock.fileno()))
        below.sendall(f"GET /ok HTTP/1.1\r\nHost: {at}\r\n\r\n".encode())
        below.close()
        rig.refused("D16 plaintext under TLS", wire.talk(b""))
    elif transport == "absolute":
        rig.refused("D16 http to the port of https", rig.plain(f"GET http://{at}/ok HTTP/1.1\r\nHost: {at}\r\n{{A}}\r\n".encode(), expect=1), closed=False)
    # Another policy: the credential is bound to http without leave; and an https upstream that speaks no TLS.
    with Talker() as talker:
        text = rig.gw.policy.read_text()
        plain_place = f"host: {rig.up.name}, port: {rig.up.plain_port}, scheme: http"
        text = "\n".join(line.replace("decide: allow }", "decide: allow, use: api }") if "id: read1" in line else line for line in text.splitlines()) + "\n"
        text = text.replace("    only: [{ ", f"    only: [{{ {plain_place} }}, {{ host: other.test, port: {talker.port} }}, {{ ")
        text = text.replace("credentials:\n", f'  - {{ host: other.test, port: {talker.port}, address: 127.0.0.1, allow_private: ["127.0.0.1/32"] }}\ncredentials:\n')
        text += f"  - {{ id: talker, match: {{ host: other.test, port: {talker.port}, effect: read }}, decide: allow, use: api }}\n"
        rig.gw.policy.write_text(text)
        rig.reload()
        for wire in wires(rig, transport) if transport in BOTH or transport == "absolute" else ():
            if wire.plain:
                rig.refused("D16 bound to http, without leave", wire.talk(wire.head("GET", "/ok"), 1), closed=False)
        got = tls_to(rig, transport, talker.port)
        rig.refused("D16 an upstream without TLS", got, closed=False)
        assert all(b"HTTP" not in data and data[:1] in (b"\x16", b"") for data in talker.got), talker.got
    # A redirect to http is passed on and not followed; who follows it has no credential there.
    rig.up.script({"/down": f"/redirect?to=http://{plain_at}/ok"})
    if transport not in ("absolute",):
        wire = rig.open(transport)
        rig.passed("D16 a redirect", wire.talk(wire.head("GET", "/down"), 1), [("GET", "/down", b"")], status=302)
        sent = rig.plain(f"GET http://{plain_at}/ok HTTP/1.1\r\nHost: {plain_at}\r\n{{A}}\r\n".encode(), "connect", expect=1)
        rig.refused("D16 where it leads", sent, closed=False)


class Talker:
    """A server without TLS that keeps what it is told."""

    def __enter__(self):
        self.got, self.server = [], socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def serve(self):
        while True:
            try:
                sock, _ = self.server.accept()
                sock.settimeout(5)
                self.got.append(sock.recv(4096))
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
                sock.close()
            except OSError:
                return

    def __exit__(self, *_):
        self.server.close()


def tls_to(rig, transport, port):
    """GET https://other.test:port/ok over this way in, where TLS can be asked for at all."""
    if transport in ("absolute", "later"):  # by a tunnel beside it: the upstream leg is the same for all
        transport = "connect"
    host, ours = rig.up.port, rig.tls
    rig.up.port = port
    try:
        wire = rig.open(transport, host="other.test")
        return wire.talk(b"GET /ok HTTP/1.1\r\nHost: other.test:%d\r\n\r\n" % port, 1)
    finally:
        rig.up.port, rig.tls = host, ours


@everywhere("C25", cleartext=True)
def a_kept_connection_serves_one_sandbox_one_host_and_one_credential(rig, transport):
    rig.who = {}
    people = ("agent", "b") if transport != "later" else ("agent", "b")
    open_wires = []
    for _ in range(2):
        for who in people:
            for wire in wires(rig, transport, who=who):
                open_wires.append((who, wire))
            if transport not in ("absolute", "later"):
                open_wires.append((who, rig.open(transport, who=who, host="other.test")))
    for turn in range(3):
        for who, wire in open_wires:
            got = wire.talk(wire.head("GET", f"/ok?{who}{turn}"), 1)
            rig.passed(f"C25 {who} {wire.host}", got, [("GET", f"/ok?{who}{turn}", b"")])
    seen = {}
    for r in rig.requests():
        sent = fields_of(r)
        who = r["target"].partition("?")[2][:-1]
        if who:
            seen.setdefault(r["conn"], set()).add((who, sent["host"], sent.get("authorization")))
    for conn, kinds in seen.items():
        meta = rig.up.meta(conn)
        (who, host, auth), = kinds if len(kinds) == 1 else (("several", str(kinds), ""),)
        rig.holds(f"C25 connection {conn}", len(kinds) == 1 and (meta.get("sni") or host.rpartition(":")[0]) == host.rpartition(":")[0], (meta, kinds))
        assert (auth is not None) == host.startswith("upstream.test"), kinds


@everywhere("C22")
def a_relay_in_between_changes_nothing(rig, transport):
    """Some process in the sandbox carries the bytes: what counts is what they say, not who brings them."""
    direct, servers = rig.knock, []

    def knock(way, who="agent"):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        threading.Thread(target=lambda: join(server.accept()[0], direct(way, who)), daemon=True).start()
        sock = socket.create_connection(server.getsockname(), 8)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
    for through in (False, True):
        rig.knock = knock if through else direct
        name = "relayed" if through else "direct"
        wire = rig.open(transport, who="agent")
        rig.passed(f"C22 {name} read", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
        rig.refused(f"C22 {name} denied", wire.talk(wire.head("GET", "/guard"), 1), closed=False, status=403)
        rig.held(f"C22 {name} held", wire.talk(wire.head("POST", f"/h/{name}", "Content-Length: 1") + b"x", 1))
        wire.close()
        if LISTENER.get(transport, transport) in ("connect", "absolute"):
            for target in (f"CONNECT {rig.up.name}:{rig.up.port}", f"GET http://{rig.up.name}:{rig.up.plain_port}/ok"):
                at = target.partition(" ")[2].replace("http://", "").partition("/")[0]
                got = rig.plain(f"{target} HTTP/1.1\r\nHost: {at}\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n".encode(), transport, expect=1)
                rig.refused(f"C22 {name} without a token", got, closed=False, status=407)
        # One CONNECT through another.
        if transport in ("connect", "unix", "later", "reload"):
            wire = rig.open(transport, who="agent")
            rig.refused(f"C22 {name} a tunnel in a tunnel", wire.talk(f"CONNECT {rig.gw.proxy} HTTP/1.1\r\nHost: {rig.gw.proxy}\r\n\r\n"))
    rig.knock = direct
    for server in servers:
        server.close()


@test()
def no_proxy_stands_behind_the_proxy(lab):
    """Neither the configuration nor the environment names one: what was checked is what is dialled."""
    plain = lab.env
    gone = {k: "http://127.0.0.1:9" for n in ("http_proxy", "https_proxy", "all_proxy") for k in (n, n.upper())}
    lab.env = lambda more=None: {**gone, **plain(more)}
    rig = Rig(lab)
    with rig.case("C34", "config"):
        wire = rig.open("connect")
        rig.passed("C34 the environment has no say", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
        good = rig.gw.config.read_text()
        for line in ("proxy: http://127.0.0.1:9", "upstream_proxy: http://127.0.0.1:9", "https_proxy: http://127.0.0.1:9", "parent: 127.0.0.1:9"):
            (lab.dir / "other.yaml").write_text(good + line + "\n")
            done = lab.run([os.environ.get("COUNTERSIGND", "countersign"), "up", "--config", lab.dir / "other.yaml"])
            rig.holds(f"C34 {line}", done.rc == 3 and line.partition(":")[0] in done.text(), done.text())
        policy = rig.gw.policy.read_text()
        for key in ("proxy", "via", "upstream_proxy"):
            (lab.dir / "other-policy.yaml").write_text(policy.replace("address: 127.0.0.1", f"{key}: 127.0.0.1:9, address: 127.0.0.1", 1))
            done = rig.gw.cli("policy", "check", lab.dir / "other-policy.yaml")
            rig.holds(f"C34 {key} of an upstream", done.rc == 3 and key in done.text(), done.text())
    rig.settle()


@test()
def the_cas_key_stays_with_the_keeper(lab):
    lab.expects("keeper: ", r"parent: the keeper .*(ended by exit|does not come up)",
                "ledger: .*was not there, though its gateway has run before")
    rig = Rig(lab)
    with rig.case("C29", "files"):
        for transport in ("connect", "unix"):
            wire = rig.open(transport)
            rig.passed("C29 one CA", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
        found = [path for path in rig.gw.state.rglob("*") if path.is_file()]
        for path in found:
            data, mode = path.read_bytes(), stat.S_IMODE(path.stat().st_mode)
            rig.holds(f"C29 {path.name}", b"PRIVATE KEY" not in data, path)
            assert mode & 0o022 == 0 and (mode & 0o007 == 0 or path.suffix in (".crt", ".p12")), (path, oct(mode))
        keys = [path for path in found if "ca" in path.name and path.suffix not in (".crt", ".p12") or path.name.endswith(".key")]
        rig.holds("C29 there is a key", keys and all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in keys), found)
        names = [str(path.relative_to(rig.gw.state)) for path in keys]
        rig.gw.stop()
        other = lab.dir / "elsewhere"
        for name in names:  # a link instead of what would be made, in another state directory
            state = lab.dir / ("state-" + name.replace("/", "-"))
            (state / name).parent.mkdir(parents=True, mode=0o700, exist_ok=True)
            state.chmod(0o700)
            (state / name).symlink_to(other)
            (lab.dir / "linked.yaml").write_text(rig.gw.config.read_text().replace("state_dir: state", f"state_dir: {state.name}"))
            done = lab.run(["timeout", "-s", "KILL", "300", "countersign", "up", "--config", lab.dir / "linked.yaml"])
            rig.holds(f"C29 a link for {name}", done.rc not in (0, 137) and not other.exists(), done.text())
        rig.gw.up()
        rig.tls = rig.tls_context()


BAD_VALUES = [b"a" * 20 + b"\r\nX-Evil: 1", b"a" * 20 + b"\nb", b"a" * 20 + b"\rb", b"a" * 20 + b"\0b", b"\0", b"", b"\n", b"a" * 70000, b"a" * 20 + b"\x7f", b"a" * 20 + b"\x01",
              "geheim-\u00e4\u00f6\u00fc-geheim".encode(), b"a" * 20 + b"\xff", b"q9z"]


@test()
def a_value_that_no_field_can_carry_is_refused(lab):
    lab.expects(NOT_RELEASED)
    rig = Rig(lab)
    with rig.case("D15", "config"):
        wire = rig.open("connect")
        for value in BAD_VALUES:
            done = rig.gw.cli("secret", "set", "api", stdin=value)
            if done.rc == 0:  # kept: then it is not used
                got = wire.talk(wire.head("GET", "/ok"), 1)
                rig.refused(f"D15 {value[:40]!r}", got, closed=False)
            else:
                rig.holds(f"D15 {value[:40]!r}", done.rc in (1, 2), done.text())
            assert len(value) < 2 or value not in done.both and b"X-Evil" not in done.both, done.text()
            said = rig.gw.process.seen
            assert len(value) < 5 or value[:30] not in said, said
        rig.gw.cli("secret", "set", "api", stdin=rig.secret.encode() + b"\n", rc=0)
        wire = rig.open("connect")
        got = wire.talk(wire.head("GET", "/ok"), 1)
        sent = fields_of(rig.passed("D15 the end of a line is no part of it", got, [("GET", "/ok", b"")])[0])
        assert sent["authorization"] == f"Bearer {rig.secret}", sent
    rig.settle()


if __name__ == "__main__":
    main()
