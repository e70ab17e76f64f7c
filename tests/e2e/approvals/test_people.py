#!/usr/bin/env python3
"""People who decide: by name, in groups, several of them, never on their own; and what is written down of it."""
import os
import re
import socket
import urllib.parse

from room import Person, start, words
from gateway import Gateway, program, simple_policy
from harness import PATIENCE, main, test
from ports import free_port
from secure import Secure, certificate

LEADS = "approvers:\n  leads: { groups: [leads], quorum: 2 }\n  bob: { operators: [bob] }\n"


def policy(up, by):
    text = simple_policy(up)
    return text.replace("approve: { within: 2h }", f"approve: {{ within: 2h, {by} }}").replace("rules:\n", LEADS + "rules:\n")


def setup(lab, by):
    up = lab.upstream()
    secret = lab.canary("s3cret-" + up.name * 3)
    gw = Gateway(lab, policy(up, by), {"api": secret.encode()})
    return up, gw


def added(gw, name, *more):
    """Of one just added, their first browser."""
    return Person(gw, link=gw.cli_json("operator", "add", name, *more)["url"])


@test("E26 people", "E3 people")
def two_people_of_a_group_must_agree_and_each_once(lab):
    up, gw = setup(lab, "by: leads")
    alice, bob = added(gw, "alice", "--group", "leads"), added(gw, "bob", "--group", "leads", "--group", "desk")
    carol = added(gw, "carol")
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    assert "2 different people" in words(alice.get(f"/tickets/{ticket}"))
    assert carol.approve(ticket)[0] == 403, "who is in no such group may not"
    done = gw.cli("approvals", "approve", ticket)
    assert done.rc != 0 and b"who may approve" in done.err, done.err
    assert alice.approve(ticket)[0] == 303
    assert gw.show(ticket)["state"] == "pending" and up.effects() == {}, "one of two is not enough"
    assert "Agreed alice, signed in with a link" in words(bob.get(f"/tickets/{ticket}"))
    status, text = alice.approve(ticket)
    assert status == 409 and "agreed to it already" in text, text
    assert gw.show(ticket)["state"] == "pending" and up.effects() == {}
    assert bob.approve(ticket)[0] == 303
    agent.wait()
    assert up.effects() == {"POST /things": 1}
    record = gw.recorded(kind="ticket-decided", ticket=ticket)[0]
    assert record["by"] == "bob" and record["how"] == "link" and record["agreed"] == ["alice", "bob"], record
    assert re.fullmatch("[0-9a-f]{64}", record["shown"]), record
    assert gw.recorded(kind="ticket-agreed", ticket=ticket)[0]["shown"] == record["shown"], "both saw the same"
    page = words(bob.get(f"/tickets/{ticket}"))
    assert "Yes alice, signed in with a link" in page and record["shown"][:16] in page, page


@test("E26 people")
def nobody_approves_what_is_asked_by_a_sandbox_of_their_own(lab):
    up, gw = setup(lab, "by: bob")
    bob = added(gw, "bob", "--uid", str(os.geteuid()))  # whose sandboxes these are
    lab.leaves("pending")
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    status, text = bob.approve(ticket)
    assert status == 403 and "a sandbox of your own" in text, (status, words(text))
    done = gw.cli("approvals", "approve", ticket)
    assert done.rc != 0 and b"a sandbox of your own" in done.err, done.err
    assert gw.show(ticket)["state"] == "pending" and up.effects() == {}
    agent.signal(9)
    agent.wait()
    gw.policy.write_text(policy(up, "by: bob, self_approval: true"))
    gw.cli("reload", rc=0)
    again = start(lab, gw, up, "/things", "--data-binary", "a=2")
    ticket = lab.wait_for("it waits", lambda: next((t["id"] for t in gw.tickets() if t["id"] != ticket), None))
    assert bob.approve(ticket)[0] == 303
    again.wait()
    assert up.effects() == {"POST /things": 1}


@test("E26 password")
def a_password_signs_in_and_whoever_was_signed_in_before_is_out(lab):
    up, gw = setup(lab, "by: leads")
    alice = added(gw, "alice", "--group", "leads")
    me = alice.get("/me")
    assert "Name alice" in words(me) and "Groups leads" in words(me) and "with a link" in words(me)
    mark = re.search(r'action="/me/password".*?name="mark" value="([^"]+)"', me, re.S)[1]

    def set_password(new):
        answer, text = alice.ask("POST", "/me/password", urllib.parse.urlencode({"mark": mark, "new": new}))
        return None if b"Too fast" in text else answer.status
    assert lab.wait_for("the form is armed", lambda: set_password("short")) == 422
    secret = "correct horse battery staple"
    lab.canary(secret)
    assert set_password(secret) == 303
    alice.get("/me", 403)
    assert Person(gw, name="alice", password="wrong horse battery").answer.status == 403
    assert Person(gw, name="nobody", password="wrong horse battery").answer.status == 403
    again = Person(gw, name="alice", password=secret)
    assert again.answer.status == 303 and "HttpOnly" in again.answer.getheader("Set-Cookie")
    assert "with a password" in words(again.get("/me"))
    link = Person(gw, link=gw.cli_json("operator", "link", "alice")["url"])
    assert link.answer.status == 303
    gw.cli("operator", "rm", "alice", rc=0)
    again.get("/me", 403)
    link.get("/me", 403)
    assert Person(gw, name="alice", password=secret).answer.status == 403
    assert gw.cli_json("operator", "list")["operators"] == []


@test("E26 brute-force")
def a_wrong_password_is_tried_a_few_times_only(lab):
    up, gw = setup(lab, "by: leads")
    added(gw, "alice")
    for _ in range(5):
        assert Person(gw, name="alice", password="not this one").answer.status == 403
    assert Person(gw, name="alice", password="not this one").answer.status == 429
    assert Person(gw, name="bob", password="not this one").answer.status == 403, "of another name it is asked"


@test("E26 locked out")
def strangers_keep_nobody_from_signing_in_where_they_did_before(lab):
    up, gw = setup(lab, "by: leads")
    alice = added(gw, "alice")
    alice.cookie = alice.answer.headers.get_all("Set-Cookie")[1].split(";")[0]
    assert alice.cookie.startswith("countersign-browser="), alice.cookie
    assert alice.ask("GET", "/me")[0].status == 403, "it opens nothing"

    def tried(cookie):
        there = Person.__new__(Person)
        there.__dict__.update(alice.__dict__, cookie=cookie)
        return there.ask("POST", "/sign-in", "name=alice&password=not+this+one")[0].status
    while tried(None) == 403:
        pass
    assert tried(None) == 429 and tried(alice.cookie) == 403
    for n in range(200):  # a minute may end meanwhile
        if Person(gw, name=f"nobody{n}", password="not this one").answer.status == 429:
            break
    else:
        raise AssertionError("all of them together are slowed down")
    assert tried(alice.cookie) == 403
    assert [tried(alice.cookie) for _ in range(5)] == [403, 403, 403, 429, 429], "there too a few times only"


NGINX = """daemon off; master_process off; pid {0}/nginx.pid; error_log {0}/nginx.log;
events {{}}
http {{ access_log off; client_body_temp_path {0}/body; proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
server {{ listen 127.0.0.1:{1} ssl; server_name approve.test; ssl_certificate {0}/desk.crt; ssl_certificate_key {0}/desk.key;
location / {{ proxy_pass http://127.0.0.1:{2}; proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection "";
proxy_set_header X-Forwarded-User root; proxy_buffering off; }} }} }}
"""


@test("E39 proxy", "E12 proxy")
def behind_a_proxy_with_a_certificate_the_page_is_the_same(lab):
    certificate(lab)
    up = lab.upstream()
    outer, inner = free_port(), free_port()
    gw = Gateway(lab, simple_policy(up), {"api": b"s3cret-s3cret-s3cret"}, desk=f'http: "127.0.0.1:{inner}", name: "approve.test:{outer}"')
    (lab.dir / "nginx.conf").write_text(NGINX.format(lab.dir, outer, inner))
    lab.start(["/usr/sbin/nginx", "-c", lab.dir / "nginx.conf"])
    lab.wait_for("nginx", lambda: (lab.dir / "nginx.pid").exists())
    assert gw.page.startswith(f"https://approve.test:{outer}/sign-in?t="), gw.page
    root = Secure(gw, link=gw.page)
    assert root.answer.status == 303, root.text
    cookie = root.answer.getheader("Set-Cookie")
    assert cookie.startswith("__Host-countersign=") and "; Secure" in cookie, cookie
    assert root.ask("GET", "/")[0].status == 200
    stranger = Secure(gw, name="root", password="not this one")
    assert stranger.ask("GET", "/me")[0].status == 403, "what the proxy says of a user counts for nothing"
    for host in (f"localhost:{inner}", f"127.0.0.1:{inner}", "approve.test"):
        assert root.ask("GET", "/", host=host)[0].status == 403, host
    assert root.ask("POST", "/sign-out", "", origin=f"http://approve.test:{outer}")[0].status == 403
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    assert root.approve(gw.pending()["id"])[0] == 303
    agent.wait()
    assert up.effects() == {"POST /things": 1}


@test("E39 https", "E12 https")
def with_a_certificate_the_page_is_reached_from_elsewhere_by_its_own_name_alone(lab):
    certificate(lab)
    up = lab.upstream()
    port = free_port()
    gw = Gateway(lab, simple_policy(up), {"api": b"s3cret-s3cret-s3cret"},
                 desk=f'https: "127.0.0.1:{port}", certificate: desk.crt, key: desk.key, name: approve.test')
    assert gw.page.startswith(f"https://approve.test:{port}/sign-in?t="), gw.page
    root = Secure(gw, link=gw.page)
    assert root.answer.status == 303, root.text
    cookie = root.answer.getheader("Set-Cookie")
    assert cookie.startswith("__Host-countersign=") and "; Secure" in cookie and "HttpOnly" in cookie and cookie.endswith("; Max-Age=43200"), cookie
    answer, text = root.ask("GET", "/")
    assert answer.status == 200 and answer.getheader("Strict-Transport-Security"), text
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", "approve.test", f"other.test:{port}"):
        assert root.ask("GET", "/", host=host)[0].status == 403, host
    for origin in (f"http://approve.test:{port}", "https://approve.test", "null"):
        assert root.ask("POST", "/sign-out", "", origin=origin)[0].status == 403, origin
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as plain:
        plain.sendall(f"GET / HTTP/1.1\r\nHost: approve.test:{port}\r\n\r\n".encode())
        assert not plain.recv(1000).startswith(b"HTTP/"), "nothing is said without TLS"
    gw.cli("operator", "add", "alice", rc=0)
    assert gw.cli_json("operator", "link", "alice")["url"].startswith(f"https://approve.test:{port}/"), "opened from a phone, too"
    for wrong in ('http: "0.0.0.0:8088"', f'https: "127.0.0.1:{port}"', f'https: "127.0.0.1:{port}", certificate: desk.crt, key: desk.key, name: "*.test"'):
        gw.config.write_text(re.sub(r"desk: .*", lambda m: f"desk: {{ {wrong} }}", gw.config.read_text()))
        done = lab.run([program(), "up", "--config", gw.config, "--check-config"], rc=3)
        assert b"countersign.yaml:5:" in done.both and re.search(b"without TLS|goes with certificate|host name of the page", done.both), done.both


main()
