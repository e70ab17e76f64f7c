#!/usr/bin/env python3
"""Tokens in answers, where the policy says that leases take their places: nothing of one reaches the sandbox, whatever the answer
looks like, and the lease is of worth where the token is for, and nowhere else (attacks.tsv D9)."""
import base64
import gzip
import json
import re
import secrets
import urllib.parse

import room  # noqa: F401
from attack import everywhere, fields_of, wires
from harness import main
from leased import known

OK = b"HTTP/1.1 200 OK\r\n"


def tokens(rig, transport):
    """From now on answers below /token have tokens, which are for what is below /with."""
    rig.token = rig.lab.canary(secrets.token_urlsafe(32))
    rig.again = rig.lab.canary(secrets.token_urlsafe(32))
    text = rig.gw.policy.read_text()
    only = text[text.index("    only: ["):].splitlines()[0]
    text = re.sub(r"effect: read }, decide: allow, use: api", 'effect: read }, except: [{ path: ["/with/**", /token] }], decide: allow, use: api', text)
    for n, place in enumerate(re.findall(r"\{ (host: [^}]*) \}", only)):
        text += f'  - {{ id: with{n}, match: {{ {place}, path: "/with/**", effect: read }}, decide: allow, use: token }}\n'
        text += f'  - {{ id: token{n}, match: {{ {place}, path: /token, effect: read }}, decide: allow, use: login }}\n'
    rig.gw.policy.write_text(text.replace("rules:\n", f"""  login:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
{only}
  token:
    source: {{ answer: {{ to: login, token: [/token, /a/0/access_token, /r/token, /r/a/access_token], expires_in: /expires_in, challenge: 'Bearer realm="/token"' }} }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    lease: generic
{only}
rules:
""", 1))
    rig.reload()
    rig.lab.expects("a lease of sandbox")
    known(rig, transport)


def answers_with(rig, raw):
    """What the upstream says to /token: the sandbox has no part in it."""
    path = rig.up.dir / "script.json"
    path.write_text(json.dumps({"/token": "/raw?b64=" + urllib.parse.quote(base64.b64encode(raw).decode(), safe="") + "&close=1"}))


def said(body, *fields):
    return OK + b"".join(f + b"\r\n" for f in (b"Content-Type: application/json", b"Content-Length: %d" % len(body), *fields)) + b"\r\n" + body


def hidden(rig, what, got):
    for secret in (rig.token, rig.again):
        rig.holds(what, secret.encode() not in got.data and base64.b64encode(secret.encode())[:20] not in got.data, got)


def good(rig):
    return json.dumps({"token": rig.token, "a": [{"access_token": rig.token, "id_token": rig.again}], "refresh_token": rig.again,
                       "expires_in": 60, "scope": f"read {rig.token}"}).encode()


def xml(body, *fields):
    return said(b"<r>" + body + b"</r>", *fields).replace(b"application/json", b"text/xml")


def good_xml(rig):
    t, again = rig.token.encode(), rig.again.encode()
    return (b'<token x="' + again + b'">\n ' + t + b" </token><a><access_token>" + t + b"</access_token><id_token>" + again + b"</id_token></a>"
            b"<refresh_token>" + again + b"</refresh_token><scope>read " + t + b"</scope>")


def ask(rig, transport, plain):
    wire = rig.open(transport, plain=True) if plain else rig.open(transport)
    got = wire.talk(wire.head("GET", "/token"), 1)
    wire.close()
    return got


@everywhere("D9", cleartext=True)
def a_token_never_comes_in_and_its_lease_does(rig, transport):
    tokens(rig, transport)
    for wire in wires(rig, transport):
        for raw in (said(good(rig)), said(good(rig), b"X-Token: " + rig.token.encode(), b'ETag: "' + rig.again.encode() + b'"'),
                    xml(good_xml(rig)), said(b'<?xml version="1.0" encoding="UTF-8"?>\n<r xmlns="urn:x">' + good_xml(rig) + b"</r>\n"),
                    OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(b"1\r\n%c\r\n" % c for c in good(rig)) + b"0\r\n\r\n"):
            answers_with(rig, raw)
            got = ask(rig, transport, wire.plain)
            rig.passed("D9 swapped", got, [("GET", "/token", None)])
            hidden(rig, "D9 hidden", got)
            lease = re.search(rb'token(?:":"|>)(cs_[A-Za-z0-9]{40})["<]', got.data)
            rig.holds("D9 lease", lease and got.data.count(lease[1]) == 2 and b"refresh_token" not in got.data, got)
        mine = f"Authorization: Bearer {lease[1].decode()}"
        new = rig.passed("D9 used", wire.talk(wire.head("GET", "/with/ok", mine), 1), [("GET", "/with/ok", None)])
        rig.holds("D9 token", fields_of(new[0])["authorization"] == f"Bearer {rig.token}", new)
        got = wire.talk(wire.head("GET", "/with/ok"), 1)
        rig.refused("D9 without one", got, closed=False, status=401)
        rig.holds("D9 challenge", b'WWW-Authenticate: Bearer realm="/token"\r\n' in got.data, got)
        got = wire.talk(wire.head("GET", "/ok", mine), 1)
        rig.refused("D9 elsewhere", got, closed=False, status=403)
        wire.close()


@everywhere("D9", cleartext=True)
def an_answer_that_hides_its_token_is_refused(rig, transport):
    tokens(rig, transport)
    t, whole = rig.token.encode(), good(rig)
    for wire in wires(rig, transport):
        for raw in (said(b"<html>" + t), said(b'{"data":' + whole + b"}"), said(whole[:-1]), said(whole + whole),
                    said(b'{"token":["' + t + b'"]}'), said(b'{"token":"' + t + b'","token":"' + rig.again.encode() + b'"}'),
                    said(b'{"token":"' + t + b'","a":[{"access_token":"' + rig.again.encode() + b'"}]}'), said(whole + b" " * 70_000),
                    said(b'{"token":"' + t + b'\\n' + rig.again.encode() + b'"}'), said(gzip.compress(whole), b"Content-Encoding: gzip"),
                    xml(b"<token><![CDATA[" + t + b"]]></token>"), xml(b"<token>" + t + b"</token><!-- " + t + b" -->"),
                    said(b'<!DOCTYPE r [<!ENTITY t "' + t + b'">]><r><token>&t;</token></r>'), xml(b"<x:token>" + t + b"</x:token>"),
                    xml(b"<token>" + t + b"<b/></token>"), xml((b"<token>" + t + b"</token>") * 2), xml(b'<token value="' + t + b'"/>'),
                    xml(b"<token>" + t + b"</token><a><access_token>" + rig.again.encode() + b"</access_token></a>"),
                    said(f'<?xml version="1.0" encoding="utf-16"?><r><token>{rig.token}</token></r>'.encode("utf-16")),
                    said(whole, b"Content-Encoding: identity, gzip"), said(whole).replace(b"200 OK", b"203 Other"),
                    said(whole, b"Content-Range: bytes 0-9/10").replace(b"200 OK", b"206 Part"),
                    b"HTTP/1.1 302 Found\r\nLocation: /?" + t + b"\r\nContent-Length: 0\r\n\r\n",
                    said(whole).replace(b"Content-Length: ", b"Content-Length: 9"), b"HTTP/1.1 204 None\r\nX-Token: " + t + b"\r\n\r\n"):
            answers_with(rig, raw)
            got = ask(rig, transport, wire.plain)
            rig.arrived()
            rig.holds(f"D9 {raw[:12]}", got.status == [502] and b"cs_" not in got.data, (raw, got))
            hidden(rig, "D9 hidden", got)
        answers_with(rig, said(b'{"error":"no"}').replace(b"200 OK", b"403 No"))
        got = ask(rig, transport, wire.plain)
        rig.passed("D9 an error", got, [("GET", "/token", None)], status=403)
        wire.close()


if __name__ == "__main__":
    main()
