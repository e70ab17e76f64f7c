#!/usr/bin/env python3
"""People who sign in through their organisation's OpenID Connect provider: npm's oidc-provider, which knows nothing of us, and one that
answers as a test tells it to."""
import base64
import hashlib
import html
import http.client
import json
import re
import secrets
import socket
import ssl
import sys
import threading
import time
import urllib.parse

from room import start, words
import certs
from gateway import Gateway, program, simple_policy, upstream_yaml
from harness import HERE, PATIENCE, main, test
from ports import free_port
from secure import Browser, Secure, certificate
from servers import npm_modules

sys.path.append(str(HERE / "sources"))
from counterparts import Counterpart  # noqa: E402

SECRET = "s3cret/of:the desk+100 %"
PEOPLE = "approvers:\n  leads: { groups: [leads] }\n  touched: { groups: [leads], step_up: passkey }\n"


def policy(up, provider, by="leads"):
    text = simple_policy(up).replace("approve: { within: 10m }", f"approve: {{ within: 10m, by: {by} }}").replace("rules:\n", PEOPLE + "rules:\n")
    return text.replace("credentials:\n", provider.yaml + "credentials:\n", 1)


def desk(provider, port, claim="preferred_username", **other):
    keys = {"issuer": provider.issuer, "client_id": "desk", "client_secret": "desk-client", "authorization": f"{provider.issuer}/auth",
            "token": f"{provider.issuer}/token", "claim": claim, "name": "Example Org", **other}
    return (f'https: "127.0.0.1:{port}", certificate: desk.crt, key: desk.key, name: approve.test, '
            f'oidc: {{ {", ".join(f"{k}: {json.dumps(v)}" for k, v in keys.items())} }}')


def setup(lab, provider, port=None, by="leads", **more):
    certificate(lab)
    up = lab.upstream()
    gw = Gateway(lab, policy(up, provider, by), {"api": lab.canary("s3cret-" + up.name * 3).encode(), "desk-client": SECRET.encode()},
                 desk=desk(provider, port or free_port(), **more))
    return up, gw


class Real:
    """A name, a port and a certificate; start() has it answer."""

    def __init__(self, lab, people):
        self.lab, self.dir, self.port, self.people, self.jar = lab, lab.exempt(lab.dir / "oidc"), free_port(), people, {}
        self.dir.mkdir()
        ca = certs.CA(self.dir / "ca")
        self.cert, self.key = ca.leaf("login.test")
        self.issuer, self.trust = f"https://login.test:{self.port}", ssl.create_default_context(cafile=str(ca.cert))
        self.yaml = upstream_yaml("login.test", self.port, ca.cert)
        lab.canary(SECRET)

    def start(self, page):
        client = {"client_id": "desk", "client_secret": SECRET, "grant_types": ["authorization_code"], "response_types": ["code"],
                  "redirect_uris": [f"{page}/sign-in/oidc"]}
        (self.dir / "config.json").write_text(json.dumps({
            "issuer": self.issuer, "port": self.port, "cert": str(self.cert), "key": str(self.key), "scopes": ["openid", "profile", "email"],
            "ttl": 600, "clients": [client], "people": self.people}))
        process = self.lab.start(["node", HERE / "lab/oidc.cjs", npm_modules(HERE / "npm") / "node_modules", self.dir / "config.json"], ready="ready")
        self.lab.exempt(process.log)

    def get(self, url):
        """Where it leads, as somebody's browser with its cookies."""
        at = urllib.parse.urlsplit(url)
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as plain:
            with self.trust.wrap_socket(plain, server_hostname="login.test") as tls:
                conn = http.client.HTTPConnection("login.test")
                conn.sock = tls
                conn.request("GET", f"{at.path}?{at.query}", headers={"Host": f"login.test:{self.port}", "Cookie": "; ".join(f"{n}={v}" for n, v in self.jar.items())})
                answer = conn.getresponse()
                text = answer.read().decode()
        for field in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = field.split(";")[0].partition("=")
            self.jar[name] = value
        assert answer.status in (302, 303), (answer.status, text)
        return urllib.parse.urljoin(url, answer.getheader("Location"))

    def signs_in(self, away, name):
        """What the browser is sent back with, when this person sat before it."""
        self.jar = {}
        at = self.get(away)
        assert "/login/" in at, at
        at = self.get(f"{at}?name={name}" if name else at)
        return self.get(at) if at.startswith(self.issuer) else at


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
