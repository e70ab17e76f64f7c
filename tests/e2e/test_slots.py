#!/usr/bin/env python3
"""A credential in the query, a cookie, the path, a form and a JSON body: it arrives there, alone, and nobody here sees it."""
import json
import secrets
import urllib.parse

from gateway import Gateway, Page, simple_policy
from harness import PATIENCE, main, test

HEADER = 'inject: { header: Authorization, format: "Bearer {}" }'
SPECIAL = 'a+b/c=d"e\\f%2&g;h'  # what each slot escapes in its own way


def setup(lab, inject, secret=None, write="allow", **more):
    up = lab.upstream()
    secret = lab.canary(secret or secrets.token_urlsafe(24) + SPECIAL)
    text = simple_policy(up, write=write).replace(HEADER, f"inject: {{ {inject} }}")
    if write == "allow":
        text = "\n".join(line for line in text.splitlines() if not line.strip().startswith("say:")) + "\n    use: api\n"
    return up, secret, Gateway(lab, text, {"api": secret.encode()}, **more)


def post(lab, gw, up, target, kind, body):
    data = lab.dir / "body"
    data.write_text(body)
    return ask(lab, gw, up, target, "-X", "POST", "-H", f"Content-Type: application/{kind}", "--data-binary", f"@{data}")


def ask(lab, gw, up, target, *more, rc=0):
    return lab.run(["curl", "-sS", "--path-as-is", "--globoff", "--max-time", str(PATIENCE), "--suppress-connect-headers", "-D", "-", *more, f"https://{up.name}:{up.port}{target}"],
                   env=gw.client_env(), rc=rc)


def last(up):
    request = up.requests()[-1]
    return request["line"].split(" ")[1], {n.lower(): v for n, v in request["fields"]}, up.body(request["n"])


def query_of(target):
    return urllib.parse.parse_qsl(target.partition("?")[2], keep_blank_values=True)


@test()
def in_the_query_it_stands_once_and_alone(lab):
    up, secret, gw = setup(lab, "query: key")
    for asked, rest in (("/q", []), ("/q?", []), ("/q?a=1", [("a", "1")]), ("/q?key=mine&a=1", [("a", "1")]), ("/q?a=1&key=x&key=y", [("a", "1")]), ("/q?%6bey=mine&b=%26", [("b", "&")])):
        done = ask(lab, gw, up, asked, "-H", "Authorization: Bearer mine", "-H", "Cookie: a=mine")
        target, fields, _ = last(up)
        assert b" 200" in done.out and query_of(target) == rest + [("key", secret)], (asked, target, done.text())
        assert "authorization" not in fields and "cookie" not in fields and fields["accept-encoding"] == "identity", fields
    n = len(up.requests())
    for asked in ("/q?KEY=mine", "/q?key[]=mine", "/q?a=1;key=mine", "/q?a=%26key=mine", "/q%3Fkey=mine"):
        done = ask(lab, gw, up, asked)
        assert b"HTTP/1.1 400" in done.out and b"no-slot" in done.out, (asked, done.text())
    assert len(up.requests()) == n


@test()
def a_cookie_is_set_and_the_clients_are_not(lab):
    up, secret, gw = setup(lab, "cookie: sid", secrets.token_urlsafe(32))
    ask(lab, gw, up, "/c", "-H", "Cookie: sid=mine; theme=dark", "-H", "Authorization: mine")
    _, fields, _ = last(up)
    assert fields["cookie"] == f"sid={secret}" and "authorization" not in fields, fields
    done = gw.cli("secret", "set", "api", stdin=b"not; a=cookie value")
    assert done.rc != 0 and b"cookie" in done.both, done.text()


@test()
def in_the_path_it_replaces_what_the_client_had_there(lab):
    up, secret, gw = setup(lab, 'path: "/bot{}"', f"{secrets.randbelow(10**9)}:{secrets.token_urlsafe(24)}")
    for own in ("x", "lease-123", "~api~", "a%20b"):
        ask(lab, gw, up, f"/bot{own}/getMe?a=1")
        assert last(up)[0] == f"/bot{secret}/getMe?a=1", last(up)
    for asked in ("/bot/getMe", "/other/x", "/bot"):
        done = ask(lab, gw, up, asked)
        assert b"HTTP/1.1 400" in done.out and b"no-slot" in done.out, (asked, done.text())
    assert gw.cli("secret", "set", "api", stdin=b"with-a-question?mark").rc != 0


@test()
def in_a_form_it_stands_once_and_alone(lab):
    up, secret, gw = setup(lab, "form: token")
    for body, rest in (("", []), ("a=1&b=2", [("a", "1"), ("b", "2")]), ("token=mine&a=%26", [("a", "&")]), ("a=1&token=x&token=y", [("a", "1")])):
        done = post(lab, gw, up, "/f", "x-www-form-urlencoded", body)
        assert b" 200" in done.out, done.text()
        _, fields, sent = last(up)
        assert urllib.parse.parse_qsl(sent.decode()) == rest + [("token", secret)] and int(fields["content-length"]) == len(sent), (body, sent)
    n = len(up.requests())
    for target, body, kind in (("/f", "Token=mine", "x-www-form-urlencoded"), ("/f", "a=1;token=x", "x-www-form-urlencoded"), ("/f", "a=1", "json"), ("/f?token=mine", "a=1", "x-www-form-urlencoded"),
                               ("/f", "a=1", "octet-stream")):
        done = post(lab, gw, up, target, kind, body)
        assert b"HTTP/1.1 400" in done.out and b"no-slot" in done.out, (target, body, kind, done.text())
    done = post(lab, gw, up, "/f", "x-www-form-urlencoded", "a=" + "x" * 300000)
    assert b"HTTP/1.1 413" in done.out, done.text()
    assert ask(lab, gw, up, "/f").out.count(b"no-slot") and len(up.requests()) == n  # without a body


@test()
def in_json_it_replaces_a_text(lab):
    up, secret, gw = setup(lab, "json: /auth/api~1key")
    for text in ('{"auth":{"api/key":"mine"},"n":1}', ' { "a" : [1, {"x":"}"}, "\\"" ], "auth" : { "b":"\\\\", "api\\/key" :\t"" , "z":null } } ', '{"auth":{"api/key":"' + "x" * 200000 + '"}}'):
        done = post(lab, gw, up, "/j", "json", text)
        assert b" 200" in done.out, done.text()
        want, sent = json.loads(text), last(up)[2]
        want["auth"]["api/key"] = secret
        assert json.loads(sent) == want and int(last(up)[1]["content-length"]) == len(sent), sent[:500]
    n = len(up.requests())
    for text in ('{"auth":{}}', '{"auth":{"api/key":1}}', '{"auth":{"api/key":"a","API/key":"b"}}', '{"auth":{"api/key":"a","api/key":"b"}}', '[{"auth":{"api/key":"a"}}]', '{"auth"', ""):
        done = post(lab, gw, up, "/j", "json", text)
        assert b"HTTP/1.1 400" in done.out and b"no-slot" in done.out, (text, done.text())
    assert len(up.requests()) == n


@test()
def an_approver_sees_the_mark_and_a_retry_with_another_key_is_the_same_request(lab):
    lab.leaves("pending")
    up, secret, gw = setup(lab, "query: key", write="hold", hold="inline_wait: 1s, expires: 2h")
    first = ask(lab, gw, up, "/things?key=lease-one&a=1", "-X", "POST", "--data-binary", "n=1")
    assert b"HTTP/1.1 403" in first.out and up.effects() == {}, first.text()
    ticket = gw.pending()
    assert ticket["query"] == "a=1&key=~api~" and "lease-one" not in json.dumps(ticket), ticket
    answer, page = Page(gw).ask("GET", f"/tickets/{ticket['id']}")
    assert b"key=~api~" in page and b"lease-one" not in page, page
    ask(lab, gw, up, "/things?a=1&key=lease-two", "-X", "POST", "--data-binary", "n=1")
    assert len(gw.tickets()) == 1
    gw.approve(ticket["id"])
    done = ask(lab, gw, up, "/things?key=lease-three&a=1", "-X", "POST", "--data-binary", "n=1")
    assert b"HTTP/1.1 200" in done.out and query_of(last(up)[0]) == [("a", "1"), ("key", secret)], done.text()
    assert up.effects() == {"POST /things": 1}
    gw.recorded(fits=lambda r: r.get("path", "").startswith("/things"))


@test()
def an_approved_body_has_the_mark_and_leaves_with_the_secret(lab):
    up, secret, gw = setup(lab, "json: /token", write="hold")
    env = gw.client_env()
    client = lab.start(["curl", "-sS", "--max-time", str(PATIENCE), "-D", "-", "-X", "POST", "-H", "Content-Type: application/json", "--data-binary", '{"token":"lease","n":1}',
                        f"https://{up.name}:{up.port}/j"], env=env)
    ticket = gw.pending()
    body = gw.cli("approvals", "show", ticket["id"], "--body", rc=0).out
    assert json.loads(body) == {"token": "~api~", "n": 1}, body
    gw.approve(ticket["id"])
    client.wait_line(r"HTTP/1.1 200")
    assert client.wait() == 0 and json.loads(last(up)[2]) == {"token": secret, "n": 1}


@test()
def a_rule_decides_on_what_leaves(lab):
    up = lab.upstream()
    text = simple_policy(up).replace(HEADER, "inject: { query: key }").replace("effect: read }", "effect: read, query_names: [a, key] }")
    gw = Gateway(lab, text, {"api": lab.canary(secrets.token_urlsafe(24)).encode()})
    assert b" 200" in ask(lab, gw, up, "/q?a=1").out and b" 200" in ask(lab, gw, up, "/q?key=x").out
    assert b" 403" in ask(lab, gw, up, "/q?b=1").out
    gw.policy.write_text(text.replace("[a, key]", "[a]"))
    assert b"P123" in gw.cli("policy", "check", gw.policy).both
    gw.cli("reload", rc=0)
    assert b" 403" in ask(lab, gw, up, "/q?a=1").out  # its own name is not among them


@test()
def explain_and_check_say_where_it_goes(lab):
    up = lab.upstream()
    text = simple_policy(up)
    policy = lab.dir / "said.yaml"
    for inject, words, warned in (("query: key", b"api -> query key", True), ("cookie: sid", b"api -> cookie sid", False), ('path: "/bot{}"', b"api -> path /bot{}", True),
                                  ("form: token", b"api -> form token", False), ("json: /a/b", b"api -> json /a/b", False)):
        policy.write_text(text.replace(HEADER, f"inject: {{ {inject} }}"))
        done = lab.run(["countersign", "policy", "explain", "GET", f"https://{up.name}:{up.port}/botx/y", str(policy)])
        assert words in done.out, done.text()
        assert (b"P122" in lab.run(["countersign", "policy", "check", str(policy)]).both) == warned


if __name__ == "__main__":
    main()
