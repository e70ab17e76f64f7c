#!/usr/bin/env python3
"""People who sign in through their organisation's OpenID Connect provider: npm's oidc-provider, which knows nothing of us, and one that
answers as a test tells it to."""
import base64
import hashlib
import html
import json
import re
import secrets
import sys
import threading
import time
import urllib.parse

from room import start, words
from gateway import program
from harness import HERE, PATIENCE, main, test
from ports import free_port
from provider import SECRET, Real, desk, setup
from secure import Browser, Secure

sys.path.append(str(HERE / "sources"))
from counterparts import Counterpart  # noqa: E402

def away(browser):
    """Where the button leads."""
    answer, text = browser.go("/sign-in")
    assert answer.status == 200, text
    (where,) = re.findall(r'<a class="button yes" href="([^"]+)">Sign in with Example Org</a>', text)
    answer, text = browser.go(where)
    assert answer.status == 303, words(text)
    return answer.getheader("Location")


def back(browser, url):
    """(status, words) of the page that the provider sends it back to."""
    at = urllib.parse.urlsplit(url)
    assert f"{at.scheme}://{at.netloc}{at.path}" == f"{browser.origin}/sign-in/oidc", url
    answer, text = browser.go(f"{at.path}?{at.query}", "cross-site")
    if answer.status == 200:
        assert answer.getheader("Refresh") == "0; url=/" and 'href="/"' in text
    return answer.status, words(text)


@test("E26 oidc")
def a_person_signs_in_through_a_real_provider_and_decides(lab):
    real = Real(lab, {"a1": {"preferred_username": "alice", "email": "alice@example.com", "email_verified": True},
                      "a2": {"preferred_username": "Alice"}, "root": {"preferred_username": "uid 0"}})
    port = free_port()
    up, gw = setup(lab, real, port)
    real.start(f"https://approve.test:{port}")
    gw.cli("operator", "add", "alice", "--group", "leads", rc=0)
    alice = Browser(gw)
    status, text = back(alice, real.signs_in(away(alice), "a1"))
    assert status == 200 and "You are alice" in text, text
    assert "through your organisation's provider" in words(alice.get("/me")) and "A password" not in words(alice.get("/me"))
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    assert alice.approve(ticket)[0] == 303
    agent.wait()
    assert up.effects() == {"POST /things": 1}
    record = gw.recorded(kind="ticket-decided", ticket=ticket)[0]
    assert (record["by"], record["how"]) == ("alice", "oidc"), record
    assert "Yes alice, signed in through the organisation's provider" in words(alice.get(f"/tickets/{ticket}"))
    for name in ("a2", "root"):
        other = Browser(gw)
        status, text = back(other, real.signs_in(away(other), name))
        assert status == 403, (name, text)
        assert other.go("/me")[0].status == 403 and "__Host-countersign" not in other.jar
    nobody = Browser(gw)
    status, text = back(nobody, real.signs_in(away(nobody), None))
    assert status == 403 and "The provider says no: access_denied" in text, text
    gw.cli("operator", "rm", "alice", rc=0)
    assert alice.go("/me")[0].status == 403, "who is removed is out at once"
    again = Browser(gw)
    status, text = back(again, real.signs_in(away(again), "a1"))
    assert status == 403 and "nobody here has this very name" in text, text


@test("E26 oidc email")
def an_address_is_a_name_and_a_rule_that_wants_a_passkey_still_wants_it(lab):
    real = Real(lab, {"a1": {"email": "alice@example.com", "email_verified": True}, "b1": {"email": "bob@example.com", "email_verified": False}})
    port = free_port()
    up, gw = setup(lab, real, port, claim="email", by="touched")
    real.start(f"https://approve.test:{port}")
    for name in ("alice@example.com", "bob@example.com"):
        gw.cli("operator", "add", name, "--group", "leads", rc=0)
    alice, bob = Browser(gw), Browser(gw)
    assert back(alice, real.signs_in(away(alice), "a1"))[0] == 200
    status, text = back(bob, real.signs_in(away(bob), "b1"))
    assert status == 403 and "does not say that the e-mail address is verified" in text, text
    lab.leaves("pending")
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    status, text = alice.approve(ticket)
    assert status == 422 and "passkey" in text, (status, words(text))
    assert gw.show(ticket)["state"] == "pending" and up.effects() == {}
    agent.signal(9)
    agent.wait()
    gw.cli("operator", "rm", "alice@example.com", rc=0)


class Told(Counterpart):
    """A token endpoint that answers as it is told: claims of the ID token, what else is said, codes that take for ever."""

    def __init__(self, lab):
        super().__init__(lab, "login.test")
        lab.canary(SECRET)
        self.issuer, self.nonces, self.claims, self.answer, self.used = self.url, {}, {}, {}, set()

    def token(self, code):
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": "desk", "sub": "a1", "iat": now, "exp": now + 300, "nonce": self.nonces.get(code), "preferred_username": "alice", **self.claims}

        def part(value):
            return base64.urlsafe_b64encode(json.dumps({k: v for k, v in value.items() if v is not None}).encode()).rstrip(b"=").decode()
        return f"{part({'alg': 'RS256'})}.{part(claims)}.c2lnbmVk"

    def serve(self, handler, body):
        form = {k: v[0] for k, v in urllib.parse.parse_qs(body).items()}
        self.asked.append(form)
        kind, _, text = handler.headers.get("Authorization", "").partition(" ")
        known = kind == "Basic" and [urllib.parse.unquote(p) for p in base64.b64decode(text).decode().split(":")] == ["desk", SECRET]
        code = form.get("code", "")
        if self.badly(handler):
            return
        if code.startswith("slow"):
            self.released.wait()
        if not known or form.get("grant_type") != "authorization_code" or code in self.used:
            self.send(handler, 400, {"error": "invalid_client" if not known else "invalid_grant"})
            return
        self.used.add(code)
        self.send(handler, 200, {"access_token": "not-ours", "token_type": "Bearer", "id_token": self.token(code), **self.answer})

    def gives(self, url, **other):
        """What it sends a browser back with, that came by this URL."""
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        code = secrets.token_urlsafe(12)
        self.nonces[code] = asked["nonce"]
        fields = {"code": code, "state": asked["state"], "iss": self.issuer, **other}
        return asked["redirect_uri"] + "?" + urllib.parse.urlencode({k: v for k, v in fields.items() if v is not None})


def told(lab, **more):
    provider = Told(lab)
    up, gw = setup(lab, provider, **more)
    gw.cli("operator", "add", "alice", "--group", "leads", rc=0)
    return provider, gw


@test("E26 oidc")
def what_is_sent_there_is_what_the_flow_wants(lab):
    provider, gw = told(lab)
    browser = Browser(gw)
    url = away(browser)
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
    assert url.startswith(f"{provider.issuer}/auth?") and asked["response_type"] == "code" and asked["client_id"] == "desk", url
    assert asked["redirect_uri"] == f"{browser.origin}/sign-in/oidc" and asked["scope"] == "openid profile" and asked["code_challenge_method"] == "S256", url
    assert "s3cret" not in url
    assert back(browser, provider.gives(url))[0] == 200
    (form,) = provider.asked
    challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
    assert challenge == asked["code_challenge"] and form["redirect_uri"] == asked["redirect_uri"] and "client_secret" not in form, form
    assert len({asked["state"], asked["nonce"], form["code_verifier"]}) == 3
    browser.ask("GET", "/")
    answer, text = browser.ask("GET", "/me")
    assert answer.status == 200 and "Name alice" in words(text.decode())


@test("E26 oidc claims")
def what_a_bad_provider_says_signs_nobody_in(lab):
    provider, gw = told(lab)
    now = int(time.time())
    rows = [({"nonce": "another"}, "another sign-in"), ({"nonce": None}, "another sign-in"), ({"aud": "other"}, "not for this client alone"),
            ({"aud": ["desk", "other"]}, "not for this client alone"), ({"azp": "other"}, "not for this client alone"), ({"iss": "https://evil.test"}, "another issuer"),
            ({"exp": now - 3600}, "has expired"), ({"iat": now - 7200}, "made long ago"), ({"iat": now + 7200}, "of the future"),
            ({"preferred_username": None}, "no claim preferred_username"), ({"preferred_username": ["alice"]}, "no claim preferred_username"),
            ({"preferred_username": "mallory"}, "nobody here has this very name"), ({"preferred_username": "uid 0"}, "no name that a person here can have"),
            ({"preferred_username": "alice\0"}, "")]
    for claims, why in rows:
        provider.claims = claims
        browser = Browser(gw)
        status, text = back(browser, provider.gives(away(browser)))
        assert status == 403 and why in text, (claims, status, text)
        assert "__Host-countersign" not in browser.jar
    provider.claims = {}
    for answer, why in (({"id_token": None}, "no id_token"), ({"id_token": "a.b"}, "not a signed JWT"), ({"id_token": "e30.e30."}, "not signed")):
        provider.answer = answer
        browser = Browser(gw)
        status, text = back(browser, provider.gives(away(browser)))
        assert status == 403 and why in text, (answer, status, text)
    provider.answer = {}
    for bad in ("500", "not json", "redirect", "cut", "long"):
        provider.bad = bad
        browser = Browser(gw)
        status, text = back(browser, provider.gives(away(browser)))
        assert status == 403 and "canary" not in text and "token-in-an-error-page" not in text, (bad, status, text)
    provider.bad = None
    browser = Browser(gw)
    assert back(browser, provider.gives(away(browser)))[0] == 200
    gw.cli("secret", "rm", "desk-client", rc=0)
    lab.expects("keeper: nobody is signed in through the provider: nothing of that name is in the store")
    status, text = back(browser, provider.gives(away(browser)))
    assert status == 403 and "nothing of that name is in the store" in text.lower(), text


@test("E26 oidc csrf", "E11 oidc")
def what_another_browser_began_signs_nobody_in(lab):
    provider, gw = told(lab)
    mallory, victim = Browser(gw), Browser(gw)
    hers = provider.gives(away(mallory))
    assert back(victim, hers)[0] == 403, "who began nothing"
    own = away(victim)
    status, text = back(victim, hers)
    assert status == 403 and "did not begin in this browser" in text, text
    assert provider.asked == [], "the provider is not asked at all"
    mixed = urllib.parse.urlsplit(hers)
    code = dict(urllib.parse.parse_qsl(mixed.query))["code"]
    status, text = back(victim, provider.gives(own, code=code))
    assert status == 403 and "another sign-in (nonce)" in text, text
    for other, why in (({"iss": "https://evil.test"}, "another provider"), ({"state": "0" * 64}, "did not begin"), ({"state": None}, "did not begin"),
                       ({"code": None, "error": "access_denied"}, "says no: access_denied"), ({"code": None, "error": "<b>x"}, "The provider says no"),
                       ({"iss": None}, None)):
        status, text = back(victim, provider.gives(away(victim), **other))
        assert (status, why) == (200, None) or (status in (400, 403) and why and why in text), (other, status, text)
    provider.asked.clear()
    url = provider.gives(away(victim))
    held = dict(victim.jar)
    assert back(victim, url)[0] == 200
    victim.jar = held
    status, text = back(victim, url)
    assert status == 403 and "was done already" in text and len(provider.asked) == 1, (text, provider.asked)
    thief = Browser(gw)
    url = away(thief)
    provider.used.add("spent")
    provider.nonces["spent"] = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))["nonce"]
    status, text = back(thief, provider.gives(url, code="spent"))
    assert status == 403 and "invalid_grant" in text, text
    assert Browser(gw).go("/sign-in/oidc/go", "cross-site")[0].status == 403, "nobody is sent there by another site"


@test("E26 oidc bounds")
def strangers_who_are_slow_keep_nobody_out_who_was_here_before(lab):
    provider, gw = told(lab)
    known = Browser(gw)
    assert back(known, provider.gives(away(known)))[0] == 200
    link = gw.cli_json("operator", "link", "alice")["url"]
    waiting = []
    for n in range(4):
        slow = Browser(gw)
        url = urllib.parse.urlsplit(provider.gives(away(slow), code=f"slow{n}"))
        waiting.append(slow)
        slow.thread = threading.Thread(target=lambda b=slow, u=url: setattr(b, "came", b.go(f"{u.path}?{u.query}", "cross-site")), daemon=True)
        slow.thread.start()
    lab.wait_for("four are asked", lambda: sum(f.get("code", "").startswith("slow") for f in provider.asked) == 4)
    late = Browser(gw)
    status, text = back(late, provider.gives(away(late)))
    assert status == 503 and "Too many sign in at once" in text, (status, text)
    assert back(known, provider.gives(away(known)))[0] == 200, "a browser in which somebody was signed in so"
    assert Secure(gw, link=link).answer.status == 303, "a link waits for none of them"
    for slow in waiting:
        slow.thread.join(PATIENCE)
        answer, text = slow.came
        assert answer.status in (403, 503), (answer.status, text)
        assert re.search("did not answer in time|took more than|keeper did not answer", html.unescape(text)), words(text)
    assert back(late, provider.gives(away(late)))[0] == 200, "and then there is room again"


@test("E26 oidc config")
def a_provider_is_for_a_page_with_a_name_and_https(lab):
    provider = Told(lab)
    up, gw = setup(lab, provider)
    good = desk(provider, 1)
    for wrong, why in ((re.sub("https: .*name: approve.test", 'http: "127.0.0.1:8088"', good), b"where the page has a name"),
                       (desk(provider, 1, token="http://login.test/token"), b"no https://"), (desk(provider, 1, issuer=provider.issuer + "?a=b"), b"no https://"),
                       (desk(provider, 1, client_secret="the secret/itself"), b"never the secret itself"), (desk(provider, 1, claim="name"), b"claim")):
        gw.config.write_text(re.sub(r"desk: .*", lambda m, w=wrong: f"desk: {{ {w} }}", gw.config.read_text()))
        done = lab.run([program(), "up", "--config", gw.config, "--check-config"], rc=3)
        assert b"countersign.yaml:5:" in done.both and why in done.both, (wrong, done.both)


main()
