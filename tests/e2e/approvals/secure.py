"""The page over TLS, by the name that its certificate is for; and a browser that keeps cookies as browsers do."""
import http.client
import socket
import ssl
import urllib.parse

from room import Person
from harness import PATIENCE


class Secure(Person):
    """The same over TLS, by the name that the certificate is for."""
    site = "same-origin"

    def ask(self, method, path, body=None, host=None, origin=None):
        trust = ssl.create_default_context(cafile=str(self.lab.dir / "desk.crt"))
        with socket.create_connection(("127.0.0.1", int(self.host.rsplit(":")[-1])), timeout=PATIENCE) as plain:
            with trust.wrap_socket(plain, server_hostname="approve.test") as tls:
                conn = http.client.HTTPConnection("approve.test")
                conn.sock = tls
                fields = {"Host": host or self.host, "Origin": origin or self.origin, "Sec-Fetch-Site": self.site}
                if self.cookie:
                    fields["Cookie"] = self.cookie
                if body is not None:
                    fields["Content-Type"] = "application/x-www-form-urlencoded"
                conn.request(method, path, body, fields)
                answer = conn.getresponse()
                return answer, answer.read()


def certificate(lab):
    lab.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=x",
             "-addext", "subjectAltName=DNS:approve.test", "-keyout", lab.dir / "desk.key", "-out", lab.dir / "desk.crt"], rc=0)


class Browser(Secure):
    """Nobody is signed in. It keeps cookies, and leaves those that are `SameSite=Strict` at home where another site sent it."""

    def __init__(self, gw):
        self.lab, self.jar = gw.lab, {}
        first = urllib.parse.urlsplit(gw.page)
        self.origin, self.host, self.cookie = f"{first.scheme}://{first.netloc}", first.netloc, None

    def go(self, path, site="same-origin"):
        """(answer, text) of a page that is opened from such a site."""
        at_home = site == "cross-site"
        self.site = site
        self.cookie = "; ".join(f"{name}={value}" for name, (value, rest) in self.jar.items() if not (at_home and "SameSite=Strict" in rest)) or None
        answer, text = self.ask("GET", path)
        self.site = "same-origin"
        for field in answer.headers.get_all("Set-Cookie") or []:
            (name, _, value), rest = field.split(";")[0].partition("="), field
            assert name.startswith("__Host-") and "HttpOnly" in rest and "Secure" in rest and "Path=/;" in rest and "Domain" not in rest, field
            self.jar[name] = (value, rest)
        self.cookie = "; ".join(f"{name}={value}" for name, (value, _) in self.jar.items()) or None
        return answer, text.decode()
