"""What the files of this folder share: a gateway that holds writes over plain HTTPS, clients of it, forms of its page."""
import html
import re
import secrets
import sys
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway import Gateway, Page, simple_policy  # noqa: E402
from harness import PATIENCE  # noqa: E402


def setup(lab, **more):
    up = lab.upstream()
    secret = lab.canary(secrets.token_urlsafe(32))
    return up, Gateway(lab, simple_policy(up), {"api": secret.encode()}, **more)


def command(gw, up, path, *more, method="POST", name="agent"):
    return (["curl", "-sS", "--path-as-is", "--max-time", str(PATIENCE), "-D", "-", "-X", method, *more, f"https://{up.name}:{up.port}{path}"],
            gw.client_env(name))


def start(lab, gw, up, path, *more, method="POST", name="agent"):
    words, env = command(gw, up, path, *more, method=method, name=name)
    return lab.start(words, env=env)


def forms(page):
    """The forms of a page: {class: (action, {hidden field: value})}."""
    found = {}
    for head, inner in re.findall(r"<form([^>]*)>(.*?)</form>", page, re.S):
        kind, action = (re.search(f'{key}="([^"]*)"', head) for key in ("class", "action"))
        hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', inner)
        if kind and action:
            found[kind[1]] = (html.unescape(action[1]), [(n, html.unescape(v)) for n, v in hidden])
    return found


def send(page, form, **fields):
    """(status, text) of what comes of a form that was filled in."""
    action, hidden = form
    answer, text = page.ask("POST", action, urllib.parse.urlencode(hidden + list(fields.items())))
    return answer.status, answer.getheader("Location") or text.decode()


def words(text):
    text = re.sub(r"</?(?:b|i|q|span|strong|small|del|ins|time|code)\b[^>]*>", "", text)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text))).strip()


class Person(Page):
    """Somebody's browser, signed in with a link or a password."""

    def __init__(self, gw, link=None, name=None, password=None):
        self.lab = gw.lab
        first = urllib.parse.urlsplit(gw.page)
        self.origin, self.host, self.cookie = f"{first.scheme}://{first.netloc}", first.netloc, None
        fields = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(link).query)) if link else {"name": name, "password": password}
        self.answer, self.text = self.ask("POST", "/sign-in", urllib.parse.urlencode(fields))
        cookie = self.answer.getheader("Set-Cookie")
        self.cookie = cookie and cookie.split(";")[0]

    def get(self, path, status=200):
        answer, text = self.ask("GET", path)
        assert answer.status == status, (path, answer.status, words(text.decode())[:500])
        return text.decode()

    def approve(self, ticket, **fields):
        """(status, where to or why not), after the page was looked at for long enough."""
        form = forms(self.get(f"/tickets/{ticket}"))["approve"]

        def sent():
            status, text = send(self, form, **fields)
            return None if "Too fast" in text else (status, text)
        return self.lab.wait_for("the form is armed", sent)
