#!/usr/bin/env python3
"""Upstream servers that are not proven (attacks.tsv D17, D18, D19, C27): through the gateway's own way out, with a
credential bound to each of them. The server keeps every byte that comes through its TLS: of a request to a server
that was not proven there must be none."""
import collections
import contextlib
import json
import re
import secrets
import socket
import ssl
import subprocess
import threading
import warnings

import room  # noqa: F401
from gateway import Gateway
from harness import PATIENCE, main, test
import der
from der import ANY_USE, CLIENT, Issuer, Key, extension
from ports import free_port

warnings.simplefilter("ignore", DeprecationWarning)  # an old version of TLS is what is tested


class Server:
    """One port, a certificate a name. What came through TLS is in data[name]; what became of a handshake in ended."""

    def __init__(self, lab, low=ssl.TLSVersion.TLSv1_2, high=ssl.TLSVersion.TLSv1_3, ask=ssl.CERT_NONE):
        self.lab, self.contexts, self.data, self.ended, self.resumed, self.peers = lab, {}, {}, {}, [], []
        self.abrupt = False
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfine\n"
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.first = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.first.set_ciphers("ALL:@SECLEVEL=0")
        self.first.minimum_version, self.first.maximum_version = low, high
        if ask != ssl.CERT_NONE:
            self.first.verify_mode = ask
            self.first.load_verify_locations(lab.dir / "root.pem")
        # All of that is settled before the name is known.
        self.first.sni_callback = self.choose
        threading.Thread(target=self.accept, daemon=True).start()
        lab.at_end.append(self.close)

    def add(self, name, chain, key):
        path = self.lab.dir / f"server-{name}.pem"
        path.write_text(chain)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.load_cert_chain(path, key.path)
        context.load_verify_locations(self.lab.dir / "root.pem")
        context.sni_callback = self.choose
        self.contexts[name], self.data[name] = context, b""

    def choose(self, sock, name, _context):
        sock.name = name
        if name not in self.contexts:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        sock.context = self.contexts[name]
        return None

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # or the thread that waits there would take one more
        self.listener.close()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        name = None
        try:
            sock.settimeout(PATIENCE)
            with self.first.wrap_socket(sock, server_side=True, do_handshake_on_connect=False) as tls:
                tls.name = None
                try:
                    tls.do_handshake()
                finally:
                    name = tls.name
                self.resumed.append(tls.session_reused)
                self.peers.append(tls.getpeercert(True))
                while data := tls.recv(65536):
                    self.data[name] = self.data.get(name, b"") + data
                    if data.endswith(b"\r\n\r\n"):
                        tls.sendall(self.answer)
                        if self.abrupt:
                            tls.shutdown(socket.SHUT_RDWR)  # of the socket, not of TLS
                self.ended[name] = "closed"
        except OSError as why:
            self.ended[name] = str(why)


class World:
    """A gateway whose policy knows each name, with what it is to trust there; ask(name) goes there as a sandbox."""

    def __init__(self, lab):
        self.lab, self.server, self.names, self.servers, self.asked = lab, Server(lab), {}, {}, 0
        self.secret = lab.canary(secrets.token_urlsafe(32))
        self.dir = lab.dir / "certs"
        self.dir.mkdir()
        lab.expects("carrier: upstream .* are checked without X509_STRICT")  # which the tests' own root does not bear
        self.root = Issuer(self.dir, "Root")
        self.key = Key.ec(self.dir, "leaf")
        (lab.dir / "root.pem").write_text(self.root.pem)

    def file(self, name, text):
        (self.lab.dir / name).write_text(text)
        return name

    def add(self, name, chain, tls="ca: root.pem", key=None, **own):
        server = self.servers[name] = Server(self.lab, **own) if own else self.server
        server.add(name, chain, key or self.key)
        self.names[name] = tls

    def leaf(self, name, issuer=None, chain="", tls="ca: root.pem", key=None, sans=None, **how):
        """A server for this name whose certificate is like that; chain: what it sends behind its own."""
        server = {k: how.pop(k) for k in ("low", "high", "ask") if k in how}
        text = (issuer or self.root).leaf([f"DNS:{name}"] if sans is None else sans, key or self.key, **how)
        self.add(name, text + chain, tls, key, **server)

    def up(self, config="", edit=str, **secrets):
        places = [f"host: {name}, port: {self.servers[name].port}" for name in self.names]
        ports = sorted({server.port for server in self.servers.values()})
        policy = "version: 1\nname: tls\nupstreams:\n" + "".join(
            f'  - {{ {place}, address: 127.0.0.1, allow_private: ["127.0.0.1/32"]{f", tls: {{ {tls} }}" if tls else ""} }}\n'
            for place, tls in zip(places, self.names.values())) + f"""credentials:
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{", ".join(f"{{ {place} }}" for place in places)}]
rules:
  - id: reads
    match: {{ host: [{", ".join(self.names)}], port: {ports}, effect: read }}
    decide: allow
    use: api
"""
        self.gw = Gateway(self.lab, edit(policy), {"api": self.secret.encode(), **secrets}, config=config)
        self.tls = ssl.create_default_context(cafile=str(self.gw.state / "bundle.crt"))
        self.tls.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # an end without close_notify is an error here

    def ask(self, name, head="GET /here HTTP/1.1\r\n"):
        """(status, body) of a read there."""
        self.asked += 1
        host, _, port = self.gw.proxy.rpartition(":")
        place = f"{name}:{self.servers[name].port}"
        with socket.create_connection((host, int(port)), PATIENCE) as sock:
            sock.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nProxy-Authorization: {self.gw.basic()}\r\n\r\n".encode())
            opened = b""
            while b"\r\n\r\n" not in opened:
                opened += sock.recv(1)
            assert b" 200 " in opened.split(b"\r\n")[0], opened
            with self.tls.wrap_socket(sock, server_hostname=name, suppress_ragged_eofs=False) as tls:
                tls.sendall(f"{head}Host: {place}\r\nConnection: close\r\n\r\n".encode())
                got = b""
                try:
                    while more := tls.recv(65536):
                        got += more
                except (ssl.SSLError, ConnectionError) as why:
                    got += f"\n[{why}]".encode()
        with open(self.lab.out / "answers", "ab") as out:  # for the canary search
            out.write(got + b"\n")
        assert got, f"{name}: no answer at all"
        head, _, body = got.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]) if head.startswith(b"HTTP/1.1 ") else 0, body or head

    @contextlib.contextmanager
    def case(self, *ids):
        """As the rig's (attack.py), with these servers as the oracle: what came through their TLS is what the audit has
        as sent, request for request. Then "ok ID upstream" is printed."""
        self.asked = 0
        yield
        came = collections.Counter()
        for name, server in self.servers.items():
            came[name] += server.data.get(name, b"").count(b"GET /here HTTP/1.1\r\n")
        sent = None
        for _ in range(100):  # a result is written down behind the answer
            sent = collections.Counter(r["host"] for r in self.gw.audit() if r["kind"] == "result" and r["outcome"] != "not-sent")
            if sent == +came:
                break
        assert self.asked and sent == +came, f"arrived, but not in the audit: {came - sent}; the other way: {sent - came}"
        self.lab.proved += [f"{i} upstream" for i in ids]

    def passes(self, name):
        status, body = self.ask(name)
        assert (status, body) == (200, b"fine\n"), f"{name}: {status} {body!r}; {self.servers[name].ended.get(name)}"
        assert self.secret.encode() in self.servers[name].data[name], f"{name}: the credential did not arrive"

    def reasons(self, n):
        """What the carrier says of the handshakes that failed, in their order: n of them."""
        def all_of_them():
            found = re.findall(rb'"role":"carrier"[^\n]*TLS handshake: ([^"]*)"', self.gw.process.seen)
            return found if len(found) >= n else None
        return [words.decode() for words in self.lab.wait_for(f"{n} reasons", all_of_them)]

    def fails(self, name):
        status, body = self.ask(name)
        came = self.servers[name].data.get(name, b"")
        assert not came, f"{name}: bytes arrived at a server that was not proven: {came!r}"
        assert status == 502 and json.loads(body)["code"] == "upstream-failed", f"{name}: {status} {body!r}"


WORDS = {"hostname mismatch": """wrong-host.test prefix.test cn-only.test cn-right.test cn-and-mail.test ip-san.test
         star.com a.b.stars.test foo.part.test bar.part.test apex.test a.b.deep.test nul.test nul-cn.test under-score.test
         xn--strae-oqa.test dot.test v1.test""", "has expired": "expired.test expired-issuer.test pin-expired.test",
         "not yet valid": "not-yet.test", "unsuitable certificate purpose": "eku-client.test eku-any.test",
         "no extended key usage serverAuth": "eku-none.test", "a CA's": "ca-as-leaf.test",
         "serial number": "serial-zero.test serial-negative.test serial-long.test", "authority information": "aia.test",
         "critical extension": "critical.test", "too many subject": "many-sans.test",
         "excessive message size": "10k-sans.test huge-chain.test", "key too weak": "rsa1024.test weak-issuer.test",
         "digest algorithm too weak": "sha1.test sha1-issuer.test", "issuer certificate": "incomplete.test",
         "alert handshake failure": "dsa.test k256.test", "self-signed": "untrusted.test self.test",
         "signature failure": "same-name.test forged.test forged-list.test", "path length": "pathlen.test",
         "invalid CA": "issued-by-a-leaf.test v1-issuer.test", "chain too long": "deep-chain.test",
         "permitted subtree": "outside.test", "vouch for": "bar.hole.test", "checked for this name": "a.starred.test",
         "certificate revoked": "revoked.test revoked-issuer.test gone.test", "unable to get certificate CRL": "no-list.test",
         "CRL has expired": "old-list.test", "among the pins": "pin-wrong.test pin-unused.test",
         "protocol version": "only11.test min13-has12.test", "public suffix": "foo.co.uk", "of a kind": "dsa-issuer.test",
         "which only a CA's": "fenced-leaf.test", "Missing Authority Key Identifier": "not-to-the-letter.test"}
WHY = {name: words for words, names in WORDS.items() for name in names.split()}


def wrong_certificates(w):
    """Each is one way of being wrong; those that pass show that nothing else is."""
    root, key, late = w.root, w.key, dict(before=-7200, after=-3600)
    good, bad = [], []

    def case(into, name, *how, **more):
        w.leaf(name, *how, **more)
        into.append(name)

    case(good, "good.test")
    case(good, "a.wild.test", sans=["DNS:*.wild.test"])
    case(good, "xn--bcher-kva.test")
    case(bad, "expired.test", **late)
    case(bad, "not-yet.test", before=3600)
    case(bad, "wrong-host.test", sans=["DNS:other.test"])
    case(bad, "prefix.test", sans=["DNS:prefix.test.evil.test"])
    case(bad, "cn-only.test", sans=[], cn="cn-only.test")
    case(bad, "cn-right.test", sans=["DNS:other.test"], cn="cn-right.test")
    case(bad, "cn-and-mail.test", sans=["email:x@cn-and-mail.test"], cn="cn-and-mail.test")
    case(bad, "ip-san.test", sans=["IP:127.0.0.1"])
    case(bad, "foo.co.uk", sans=["DNS:*.co.uk"])
    case(good, "bar.co.uk", sans=["DNS:*.co.uk", "DNS:bar.co.uk"])
    case(good, "a.bar.co.uk", sans=["DNS:*.bar.co.uk"])
    case(bad, "star.com", sans=["DNS:*.com"])
    case(bad, "a.b.stars.test", sans=["DNS:*.*.stars.test"])
    case(bad, "foo.part.test", sans=["DNS:f*o.part.test"])
    case(bad, "bar.part.test", sans=["DNS:b*.part.test"])
    case(bad, "apex.test", sans=["DNS:*.apex.test"])
    case(bad, "a.b.deep.test", sans=["DNS:*.deep.test"])
    case(bad, "nul.test", sans=[b"nul.test\0.evil.test"])
    case(bad, "nul-cn.test", sans=[], cn=b"nul-cn.test\0.evil.test")
    case(bad, "under-score.test", sans=["DNS:under_score.test"])
    case(bad, "xn--strae-oqa.test", sans=["straße.test".encode()])
    case(bad, "dot.test", sans=["DNS:.dot.test", "DNS:.test", "DNS:*"])
    case(bad, "eku-client.test", eku=[CLIENT])
    case(bad, "eku-none.test", eku=())
    case(bad, "eku-any.test", eku=[ANY_USE])
    case(bad, "ca-as-leaf.test", ca=True)
    w.add("v1.test", root.issue("v1.test", key, version=0))
    bad.append("v1.test")
    case(bad, "serial-zero.test", serial=0)
    case(bad, "serial-negative.test", serial=-5)
    case(bad, "serial-long.test", serial=1 << 170)
    case(bad, "aia.test", more=[extension(der.AIA, b"\x30\x05nonsense"[:7])])
    case(bad, "critical.test", more=[extension("1.2.3.4.5", b"\x05\0", True)])
    case(bad, "many-sans.test", sans=[f"DNS:h{n}.x" for n in range(3000)] + ["DNS:many-sans.test"])
    case(bad, "10k-sans.test", sans=[f"DNS:h{n}.example" for n in range(10000)] + ["DNS:10k-sans.test"])

    # keys and signatures
    case(good, "rsa2048.test", key=Key.rsa(w.dir, "rsa2048", 2048))
    case(bad, "rsa1024.test", key=Key.rsa(w.dir, "rsa1024", 1024))
    case(bad, "dsa.test", key=Key.dsa(w.dir, "dsa"))
    case(bad, "k256.test", key=Key.ec(w.dir, "k256", "secp256k1"))
    case(bad, "sha1.test", md="sha1")
    weak = Issuer(w.dir, "Weak", root, key=Key.rsa(w.dir, "weak", 1024))
    case(bad, "weak-issuer.test", weak, chain=weak.pem)
    old = Issuer(w.dir, "Old", root, md="sha1")
    case(bad, "sha1-issuer.test", old, chain=old.pem)

    dsa = Issuer(w.dir, "Dsa", root, key=Key.dsa(w.dir, "dsa-issuer", 2048))
    case(bad, "dsa-issuer.test", dsa, chain=dsa.pem)
    case(bad, "fenced-leaf.test", more=[der.constraints(permitted=["DNS:fenced-leaf.test"])])

    # to the letter, below a CA that is
    letter = Issuer(w.dir, "Letter", more=[extension("2.5.29.14", der.tlv(4, b"letter"))])
    w.file("letter.pem", letter.pem)
    case(good, "letter.test", letter, tls="ca: letter.pem", more=[extension("2.5.29.35", der.seq(der.tlv(0x80, b"letter")))])
    case(bad, "not-to-the-letter.test", letter, tls="ca: letter.pem")

    # issuers
    middle, other = Issuer(w.dir, "Middle", root), Issuer(w.dir, "Other")
    same = Issuer(w.dir, "Root", key=Key.ec(w.dir, "another-root"))
    case(good, "middle.test", middle, chain=middle.pem)
    case(bad, "incomplete.test", middle)
    case(bad, "untrusted.test", other, chain=other.pem)
    case(bad, "same-name.test", same, chain=same.pem)
    lone = Issuer(w.dir, "self.test", key=key, extensions=[extension(der.SAN, der.seq(der.general("DNS:self.test"))),
                                                           extension(der.EKU, der.seq(der.oid(der.SERVER)))])
    w.add("self.test", lone.pem)
    bad.append("self.test")
    gone = Issuer(w.dir, "Gone", root, **late)
    case(bad, "expired-issuer.test", gone, chain=gone.pem)
    short = Issuer(w.dir, "Short", root, pathlen=der.integer(0))
    below = Issuer(w.dir, "Below", short)
    case(good, "pathlen-fits.test", short, chain=short.pem)
    case(bad, "pathlen.test", below, chain=below.pem + short.pem)
    fake = Issuer(w.dir, "Fake", root, extensions=[extension(der.BASIC, der.seq(), True)])
    case(bad, "issued-by-a-leaf.test", fake, chain=fake.pem)
    first = Issuer(w.dir, "V1", root, version=0, extensions=[])
    case(bad, "v1-issuer.test", first, chain=first.pem)
    unsigned = root.leaf(["DNS:forged.test"], key, signer=other.key)
    w.add("forged.test", unsigned)
    bad.append("forged.test")
    deep, chain = root, ""
    for n in range(12):
        deep = Issuer(w.dir, f"Deep {n}", deep, key=middle.key)
        chain = deep.pem + chain
    case(bad, "deep-chain.test", deep, chain=chain)
    case(bad, "huge-chain.test", middle, chain=middle.pem * 400)

    # name constraints
    fence = Issuer(w.dir, "Fence", root, more=[der.constraints(permitted=["DNS:inside.test"])])
    case(good, "a.inside.test", fence, chain=fence.pem)
    case(bad, "outside.test", fence, chain=fence.pem)
    hole = Issuer(w.dir, "Hole", root, more=[der.constraints(excluded=["DNS:bar.hole.test"])])
    case(good, "foo.hole.test", hole, chain=hole.pem, sans=["DNS:*.hole.test"])
    case(bad, "bar.hole.test", hole, chain=hole.pem, sans=["DNS:*.hole.test"])
    starred = Issuer(w.dir, "Starred", root, more=[der.constraints(excluded=["DNS:*.starred.test"])])
    case(bad, "a.starred.test", starred, chain=starred.pem)

    # revocation lists: of every issuer, current, signed by it
    lists = {"root": root.crl(), "middle": middle.crl([9001]), "old": root.crl(before=-7200, after=-3600),
             "forged": None, "middle-gone": None}
    other_root = Issuer(w.dir, "Root", key=Key.ec(w.dir, "list-forger"))
    lists["forged"] = other_root.crl()
    for stem, text in lists.items():
        if text:
            w.file(f"{stem}.crl", text)
    case(good, "not-revoked.test", middle, chain=middle.pem, tls="ca: root.pem, crl: [root.crl, middle.crl]")
    case(bad, "revoked.test", middle, chain=middle.pem, serial=9001, tls="ca: root.pem, crl: [root.crl, middle.crl]")
    case(bad, "no-list.test", middle, chain=middle.pem, tls="ca: root.pem, crl: root.crl")
    case(bad, "old-list.test", tls="ca: root.pem, crl: old.crl")
    case(bad, "forged-list.test", tls="ca: root.pem, crl: forged.crl")
    lost = Issuer(w.dir, "Lost", root, serial=9002)
    w.file("lost.crl", lost.crl())
    w.file("root-lost.crl", root.crl([9002]))
    case(bad, "revoked-issuer.test", lost, chain=lost.pem, tls="ca: root.pem, crl: [root-lost.crl, lost.crl]")

    # pins: after all that, not instead
    spare = Key.ec(w.dir, "spare")
    case(good, "pin-leaf.test", tls=f'ca: root.pem, pin: "{key.pin()}"')
    case(good, "pin-root.test", middle, chain=middle.pem, tls=f'ca: root.pem, pin: ["{spare.pin()}", "{root.key.pin()}"]')
    case(bad, "pin-wrong.test", tls=f'ca: root.pem, pin: "{spare.pin()}"')
    case(bad, "pin-expired.test", tls=f'ca: root.pem, pin: "{key.pin()}"', **late)
    case(bad, "pin-unused.test", chain=spare_certificate(w, spare), tls=f'ca: root.pem, pin: "{spare.pin()}"')

    # versions
    case(good, "only12.test", high=ssl.TLSVersion.TLSv1_2)
    case(bad, "only11.test", low=ssl.TLSVersion.TLSv1, high=ssl.TLSVersion.TLSv1_1)
    case(good, "min13.test", tls='ca: root.pem, min: "1.3"')
    case(bad, "min13-has12.test", high=ssl.TLSVersion.TLSv1_2, tls='ca: root.pem, min: "1.3"')
    return good, bad


def spare_certificate(w, key):
    """Sent along, but no part of the chain."""
    return w.root.leaf(["DNS:spare.test"], key)


@test()
def no_byte_goes_to_a_server_that_is_not_proven(lab):
    w = World(lab)
    good, bad = wrong_certificates(w)
    w.up()
    wrong = []
    with w.case("D17", "D18"):
        for names, judge in ((good, w.passes), (bad, w.fails)):
            for name in names:
                try:
                    judge(name)
                except AssertionError as why:
                    wrong.append(str(why))
        check_reasons(w, bad, wrong)
        assert not wrong, f"{len(wrong)} of {len(good) + len(bad)}:\n" + "\n".join(wrong)
    print(f"# {len(good)} servers that are right, {len(bad)} that are not")


def check_reasons(w, bad, wrong):
    wrong += [f"{name}: for the reason {said!r}" for name, said in zip(bad, w.reasons(len(bad))) if WHY[name] not in said]


@test()
def the_environment_has_no_say_and_no_session_is_resumed(lab):
    w = World(lab)
    other = Issuer(w.dir, "Other")
    w.file("roots.pem", other.pem)
    w.leaf("named.test")
    w.leaf("system.test", tls="")
    w.leaf("roots.test", other, tls="")
    keylog, conf = lab.dir / "keylog", lab.dir / "openssl.cnf"
    conf.write_text("openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nVerifyMode = Once\n"
                    f"VerifyCAFile = {lab.dir}/root.pem\nOptions = UnsafeLegacyRenegotiation\n")
    plain = lab.env
    lab.env = lambda more=None: {**plain(more), "SSL_CERT_FILE": str(lab.dir / "root.pem"), "SSL_CERT_DIR": str(lab.dir),
                                 "OPENSSL_CONF": str(conf), "SSLKEYLOGFILE": str(keylog)}
    w.up("roots: roots.pem\n")
    lab.env = plain
    with w.case("D18", "C27"):
        w.passes("named.test")
        w.passes("roots.test")
        w.fails("system.test")
        assert not keylog.exists(), "the keys of a connection were written down"
        w.gw.token("second")
        w.gw.basic = lambda name="second", basic=w.gw.basic: basic("second")  # its connections are not the first one's
        for name in ("named.test", "roots.test"):
            w.passes(name)
        assert w.server.resumed == [False] * 4, w.server.resumed


@test()
def lists_of_the_operator_are_about_the_operators_roots(lab):
    w = World(lab)
    w.file("lists.pem", w.root.crl([77]))
    w.leaf("fine.test", tls="")
    w.leaf("gone.test", tls="", serial=77)
    w.leaf("own.test", serial=77)  # with a CA of its own and no list for it
    w.up("roots: root.pem\ncrl: lists.pem\n")
    with w.case("D17"):
        w.passes("fine.test")
        w.fails("gone.test")
        assert WHY["gone.test"] in w.reasons(1)[0]
        w.passes("own.test")
        # Another list, from the next connection on; one that is none changes nothing.
        w.file("lists.pem", w.root.crl([78]))
        assert w.gw.cli("reload").rc == 0
        w.passes("gone.test")
        w.file("lists.pem", "no list\n")
        assert b"revocation list" in w.gw.cli("reload", rc=3).err
        w.passes("gone.test")
        w.file("lists.pem", w.root.crl([77]))
        assert w.gw.cli("reload").rc == 0
        w.server.data["gone.test"], seen = b"", w.server.data["gone.test"]
        w.fails("gone.test")
        w.server.data["gone.test"] = seen


@test()
def a_certificate_of_ours_that_is_asked_for_is_not_given(lab):
    w = World(lab)
    w.leaf("optional.test", ask=ssl.CERT_OPTIONAL)
    w.leaf("required.test", ask=ssl.CERT_REQUIRED)
    w.leaf("required12.test", ask=ssl.CERT_REQUIRED, high=ssl.TLSVersion.TLSv1_2)
    w.up()
    w.passes("optional.test")
    for name in ("required.test", "required12.test"):
        status, body = w.ask(name)
        assert status == 502 and not w.servers[name].data.get(name), (name, status, body)
        ended = lab.wait_for("the server's word on it", lambda: w.servers[name].ended.get(name))
        assert "did not return a certificate" in ended, ended
    w.lab.proved.append("D19 upstream")


@test()
def an_answer_that_ends_without_a_farewell_is_cut(lab):
    w = World(lab)
    w.leaf("a.test")
    w.up()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
    with w.case("D19"):
        for answer, came in ((head + b"Content-Length: 100\r\n\r\nhello\n", b"hello\n"), (head + b"Content-Length: 100\r\n\r\n", b""),
                             (head + b"Transfer-Encoding: chunked\r\n\r\n6\r\nhello\n\r\n", b"hello\n"), (head + b"\r\nhello", b"hello"),
                             (head + b"Content-Length: 90000\r\n\r\n" + b"hello\n" * 14000, b"hello\n" * 14000), (head[:-2], None), (b"", None)):
            w.server.answer, w.server.abrupt = answer, True
            status, body = w.ask("a.test")
            if came is None:
                assert status == 502, f"{answer!r}: {status} {body!r}"
                continue
            cut = any(words in body for words in (b"EOF occurred in violation", b"UNEXPECTED_EOF", b"reset"))
            assert status == 200 and cut and b"\r\n0\r\n" not in body, f"{answer!r}: {status} {body!r}"
            got = re.sub(rb"(?:\r\n)?[0-9a-f]+\r\n", b"", body) if b"Content-Length" not in answer else body
            assert got.partition(b"\n[")[0].strip() == came.strip(), f"{answer[:99]!r}: all that came is handed on: {got[:300]!r}"
        w.server.answer, w.server.abrupt = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfine\n", False
        w.passes("a.test")


@test()
def a_client_certificate_is_shown_where_its_rule_says_and_nowhere_else(lab):
    w = World(lab)
    for name in ("mine.test", "other.test", "held.test"):
        w.leaf(name, ask=ssl.CERT_REQUIRED)
    w.leaf("open.test", ask=ssl.CERT_OPTIONAL)
    w.leaf("both.test", ask=ssl.CERT_REQUIRED)
    token = lab.canary("token-" + "x7" * 16)
    key = Key.ec(w.dir, "client")
    text = key.path.read_text()
    lab.canary(text.splitlines()[1])
    lab.exempt(key.path)
    mine = w.root.issue("the gateway", key, extensions=[extension(der.EKU, der.seq(der.oid(CLIENT)))])

    shown = ssl.PEM_cert_to_DER_cert(mine)

    def edit(policy):
        place = {name: f"host: {name}, port: {server.port}" for name, server in w.servers.items()}
        only = ", ".join(f"{{ {place[name]} }}" for name in ("mine.test", "held.test", "open.test", "both.test"))
        head, _, _ = policy.partition("rules:\n")
        return head + f"""  mtls:
    source: {{ store: mtls }}
    inject: {{ client_certificate: true }}
    only: [{only}]
  both:
    source: {{ store: both }}
    inject: {{ header: X-Api-Key, format: "{{}}" }}
    beside: mtls
    only: [{{ {place["both.test"]} }}, {{ {place["other.test"]} }}]
rules:
  - {{ id: both, match: {{ {place["both.test"]}, effect: read }}, decide: allow, use: both }}
  - {{ id: half, match: {{ {place["other.test"]}, path: "/half", effect: read }}, decide: allow, use: both }}
  - {{ id: mine, match: {{ {place["mine.test"]}, effect: read }}, decide: allow, use: mtls }}
  - {{ id: held, match: {{ {place["held.test"]}, effect: read }}, decide: hold, use: mtls }}
  - {{ id: other, match: {{ {place["other.test"]}, effect: read }}, decide: allow }}
  - {{ id: open, match: {{ {place["open.test"]}, path: "/here", effect: read }}, decide: allow, use: mtls }}
  - {{ id: without, match: {{ {place["open.test"]}, path: "/without", effect: read }}, decide: allow }}
"""
    w.up(edit=edit, mtls=(text + mine).encode(), both=token.encode())
    assert w.ask("both.test") == (200, b"fine\n"), w.servers["both.test"].ended
    assert w.servers["both.test"].peers == [shown] and f"X-Api-Key: {token}".encode() in w.servers["both.test"].data["both.test"]
    assert w.ask("other.test", "GET /half HTTP/1.1\r\n")[0] == 403, "the certificate may not go there, so the token does not"
    for _ in range(2):
        assert w.ask("mine.test") == (200, b"fine\n"), w.servers["mine.test"].ended
    assert w.servers["mine.test"].peers == [shown] * 2, "a connection that shows a certificate is shared"
    assert b"uthorization" not in w.servers["mine.test"].data["mine.test"] and w.ask("other.test")[0] == 502
    assert w.ask("open.test")[0] == 200 and w.ask("open.test", "GET /without HTTP/1.1\r\n")[0] == 200
    assert w.servers["open.test"].peers == [shown, None], w.servers["open.test"].peers
    done = []
    asking = threading.Thread(target=lambda: done.append(w.ask("held.test")))
    asking.start()
    ticket = w.gw.pending()
    assert not w.servers["held.test"].peers, "it was shown before the approval"
    w.gw.approve(ticket["id"])
    asking.join(PATIENCE)
    assert done == [(200, b"fine\n")] and w.servers["held.test"].peers == [shown], (done, w.servers["held.test"].ended)
    for bad in (text, mine, (text + w.root.leaf(["DNS:x.test"], w.key))):
        done = w.gw.cli("secret", "set", "mtls", stdin=bad.encode())
        assert bad not in (text, mine) or done.rc != 0, done.text()
        if done.rc == 0:
            # What was released a moment ago may be used that long.
            lab.wait_for("another key's certificate is refused", lambda: w.ask("mine.test")[0] == 502)


def by_hand(lab, w, *options):
    """`openssl s_server` as the server of a.test; its standard input is ours."""
    chain = lab.dir / "server-a.test.pem"
    port = free_port()
    process = lab.start(["openssl", "s_server", "-accept", str(port), "-cert", chain, "-key", w.key.path, "-crlf",
                         *options], ready=r"ACCEPT", stdin=subprocess.PIPE)
    lab.exempt(process.log)
    return port, process


@test()
def a_server_that_starts_over_gets_nothing_more(lab):
    for command in "rR":  # begin again; the same, and ask for a certificate (keys that change: tests/unit/net/test_tls.c)
        w = World(lab)
        w.leaf("a.test")
        w.leaf("b.test")
        port, process = by_hand(lab, w, "-tls1_2")
        w.servers["a.test"] = type("Port", (), {"port": port, "data": {}})
        w.up()
        done = []
        asking = threading.Thread(target=lambda w=w, done=done: done.append(w.ask("a.test")))
        asking.start()
        process.wait_line(rb"GET /here")
        say = process.popen.stdin
        say.write(f"{command}\n".encode())
        say.flush()
        process.wait_line(rb"SSL_do_handshake|ERROR|error|DONE")
        try:
            say.write(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nfine\n")
            say.flush()
            say.close()
        except BrokenPipeError:
            pass
        asking.join(PATIENCE)
        assert done and done[0][0] == 502, (command, done)
        process.wait_line(rb"no renegotiation")
        w.passes("b.test")
        w.gw.stop()
        process.stop()
        again(lab)


def again(lab):
    """A second world in the same lab."""
    lab.expects("ledger: .* made a new store")
    for path in ("state", "certs"):
        (lab.dir / path).rename(lab.dir / f"{path}-{len(list(lab.dir.iterdir()))}")


if __name__ == "__main__":
    main()
