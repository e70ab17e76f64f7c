"""npm's oidc-provider as the provider of a page that has a name and https, and a gateway whose page sends people there."""
import http.client
import json
import socket
import ssl
import urllib.parse

import certs
from gateway import Gateway, simple_policy, upstream_yaml
from harness import HERE, PATIENCE
from ports import free_port
from secure import certificate
from servers import npm_modules

SECRET = "s3cret/of:the desk+100 %"
PEOPLE = "approvers:\n  leads: { groups: [leads] }\n  touched: { groups: [leads], step_up: passkey }\n"


def policy(up, provider, by="leads"):
    text = simple_policy(up).replace("approve: { within: 2h }", f"approve: {{ within: 2h, by: {by} }}").replace("rules:\n", PEOPLE + "rules:\n")
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
        at = self.get(f"{at}?name={name or ''}")
        return self.get(at) if at.startswith(self.issuer) else at
