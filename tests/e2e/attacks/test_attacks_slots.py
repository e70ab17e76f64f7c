#!/usr/bin/env python3
"""A credential in the query, a cookie, the path, a form and a JSON body: alone in its place, and seen nowhere (attacks.tsv D14, D26)."""
import json
import secrets
import urllib.parse

import room  # noqa: F401
from attack import BOTH, everywhere, fields_of, hidden, raw_answer, wires
from harness import main

FIVE = ("connect", "absolute", "unix", "socks", "captured")  # "later" and "reload" begin with a request that has no such place
FORM, JSON = "Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json"


def slot(rig, inject, special=""):
    """From now on the credential goes there, with another value: that, and as it stands in a URL."""
    rig.secret = rig.lab.canary(secrets.token_urlsafe(24) + special)
    text = rig.gw.policy.read_text()
    before, _, rest = text.partition("    inject: {")
    rig.gw.policy.write_text(before + "    inject: { " + inject + " }\n" + rest.partition("\n")[2])
    rig.reload()
    rig.gw.cli("secret", "set", "api", stdin=rig.secret.encode(), rc=0)
    return rig.secret


def again(rig, transport, wire):
    return rig.open(transport, plain=wire.plain) if transport in BOTH else rig.open(transport)


def one(rig, what, got, status=200):
    """The one request that arrived, without any credential of the sandbox's own."""
    rig.says(what)
    new = rig.arrived()
    assert len(new) == 1 and got.status == [status], (what, new, got)
    assert not [v for _, v in new[0]["fields"] if "mine" in v] and "mine" not in new[0]["target"], (what, new)
    return new[0], rig.up.body(new[0]["n"])


OWN = ("Authorization: Bearer mine", "Cookie: a=mine", "X-Api-Key: mine")


@everywhere("D14 D26", FIVE, cleartext=True)
def in_the_query_it_is_alone_and_shown_nowhere(rig, transport):
    secret = slot(rig, "query: key", '+/="&%')
    escaped = urllib.parse.quote(secret, safe="-._~")
    for wire in wires(rig, transport):
        for target, rest in (("/q", []), ("/q?a=1", [("a", "1")]), ("/q?key=mine&a=1", [("a", "1")]), ("/q?a=1&key=mine&key=mine", [("a", "1")]), ("/q?%6b%65y=mine", [])):
            request, _ = one(rig, f"D14 {target}", wire.talk(wire.head("GET", target, *OWN), 1))
            query = urllib.parse.parse_qsl(request["target"].partition("?")[2])
            assert query == rest + [("key", secret)] and request["target"].endswith("key=" + escaped), request
        for target in ("/q?KEY=mine", "/q?key[]=mine", "/q?key.=mine", "/q?a=1;key=mine", "/q?a=%26key=mine", "/q?a=%2526key%253dmine"):
            rig.refused(f"D14 {target}", wire.talk(wire.head("GET", target), 1), closed=False, status=400)
        for where, answer in (
                ("location", b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.test/?key=" + escaped.encode() + b"\r\nContent-Length: 0\r\n\r\n"),
                ("link", b"HTTP/1.1 200 OK\r\nLink: </q?key=" + escaped.encode() + b">; rel=next\r\nContent-Length: 0\r\n\r\n"),
                ("page", b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\nGET /q?key=%s" % (len(escaped) + 11, escaped.encode()))):
            rig.up.script({"/said": raw_answer(answer, close=False)})
            got = wire.talk(wire.head("GET", "/said"), 1)
            rig.holds(f"D26 {where}", escaped.encode() not in got.data and secret.encode() not in got.data and b"***" in got.data, got)
            rig.arrived()
            # What a browser would send on, from what it was shown.
            request, _ = one(rig, f"D26 referer behind {where}", wire.talk(wire.head("GET", "/ok", "Referer: " + f"https://{rig.up.name}/q?a=1"), 1))
            assert secret not in str(request["fields"]) and escaped not in str(request["fields"]), request
        wire.close()
    shown(rig, "D26", (secret, escaped))


def shown(rig, ids, values):
    """Neither the audit nor a ticket nor the gateway's own words have it."""
    rig.outcomes()
    page = json.dumps(rig.control("GET", "/api/v1/audit?after=0&limit=500")[1]) + json.dumps(rig.control("GET", "/api/v1/tickets?state=all")[1])
    said = page + rig.gw.process.seen.decode("latin-1")
    rig.holds(f"{ids} shown", not any(v in said or json.dumps(v)[1:-1] in said for v in values), said[-300:])


@everywhere("D14 D26", FIVE, cleartext=True)
def in_the_path_it_takes_the_clients_place(rig, transport):
    secret = slot(rig, 'path: "/w/bot{}"', ":x")
    rig.marks[secret] = "~api~"
    for wire in wires(rig, transport):
        for own in ("x", "12:abc", "~api~"):
            request, _ = one(rig, f"D14 {own}", wire.talk(wire.head("GET", f"/w/bot{own}/getMe?a=1", *OWN), 1))
            assert request["target"] == f"/w/bot{secret}/getMe?a=1", request
            request, body = one(rig, f"D14 POST {own}", wire.talk(wire.head("POST", f"/w/bot{own}/send", "Content-Length: 2") + b"hi", 1))
            assert request["target"] == f"/w/bot{secret}/send" and body == b"hi", request
        for target in ("/w/bot/getMe", "/w/", "/other", "/w/bot"):
            rig.refused(f"D14 {target}", wire.talk(wire.head("GET", target), 1), closed=False, status=400)
        rig.up.script({f"/w/bot{secret}/said": raw_answer(b"HTTP/1.1 302 Found\r\nLocation: /w/bot" + secret.encode() + b"/login\r\nContent-Length: 0\r\n\r\n", close=False)})
        got = wire.talk(wire.head("GET", "/w/botx/said"), 1)
        hidden(rig, "D26 location", got, 302)
        assert b"***" in got.data, got
        wire.close()
    shown(rig, "D26", (secret,))


@everywhere("D14", FIVE, cleartext=True)
def in_a_cookie_or_a_body_it_is_alone(rig, transport):
    secret = slot(rig, "cookie: sid")
    for wire in wires(rig, transport):
        request, _ = one(rig, "D14 cookie", wire.talk(wire.head("GET", "/c", "Cookie: sid=mine; theme=mine"), 1))
        assert [v for n, v in request["fields"] if n.lower() == "cookie"] == [f"sid={secret}"], request
        wire.close()
    secret = slot(rig, "form: token", '"&+ %='.replace(" ", ""))
    for wire in wires(rig, transport):
        for body in (b"", b"a=1", b"token=mine&a=1", b"a=1&token=mine&token=mine"):
            request, sent = one(rig, f"D14 form {body}", wire.talk(wire.head("POST", "/w/f", FORM, f"Content-Length: {len(body)}", *OWN) + body, 1))
            fields = urllib.parse.parse_qsl(sent.decode())
            assert fields == ([("a", "1")] if b"a=1" in body else []) + [("token", secret)], sent
        for body in (b"Token=mine", b"token[]=mine", b"a=1;token=mine", b"a=%26token=mine"):
            rig.refused(f"D14 form {body}", wire.talk(wire.head("POST", "/w/f", FORM, f"Content-Length: {len(body)}") + body, 1), closed=False, status=400)
        rig.refused("D14 form and query", wire.talk(wire.head("POST", "/w/f?token=mine", FORM, "Content-Length: 3") + b"a=1", 1), closed=False, status=400)
        wire.close()
    secret = slot(rig, "json: /auth/0/key", '"\\/')
    for wire in wires(rig, transport):
        for body in (b'{"auth":[{"key":"mine"}],"n":[1,{"key":"}"}]}', b' {"n" : "\\"", "auth":[ {"a":{} , "key" :\t"\\u006dine" } , 2 ]}'):
            request, sent = one(rig, f"D14 json {body}", wire.talk(wire.head("POST", "/w/j", JSON, f"Content-Length: {len(body)}", *OWN) + body, 1))
            want = json.loads(body)
            want["auth"][0]["key"] = secret
            assert json.loads(sent) == want, sent
        for body in (b'{"auth":[{"key":"mine","key":"x"}]}', b'{"auth":[{"key":"x","KEY":"mine"}]}', b'{"auth":[{"key":{"key":"mine"}}]}', b'{"auth":{"0":{"Key":"mine"}}}', b'[{"auth":[{"key":"mine"}]}]', b'{"auth":[]}', b"{"):
            rig.refused(f"D14 json {body}", wire.talk(wire.head("POST", "/w/j", JSON, f"Content-Length: {len(body)}") + body, 1), closed=False, status=400)
        assert "key" not in fields_of(request)
        wire.close()


if __name__ == "__main__":
    main()
