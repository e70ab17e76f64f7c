#!/usr/bin/env python3
"""The deceptive requests of tests/deceptive: each through a gateway that holds it, then the page of its ticket."""
import base64
import gzip
import html
import io
import pathlib
import random
import re
import sys
import tarfile

from gateway import Gateway, Page, upstream_yaml
from harness import PATIENCE, TOP, main, test

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent / "approvals"))
from pictures import drawn, png, read  # noqa: E402

FOLDER = TOP / "tests/deceptive"
HOSTS = ("upstream.test", "registry.npmjs.org", "xn--pypal-4ve.test")
OURS = ("lines", "coded")  # of a request in a file: what is done to its body
# What hides, turns or imitates, and is nowhere on a page as it came.
NEVER = re.compile("[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u2060\ufeff\u061c\u001b\U000e0000-\U000e007f]")


def policy(up):
    places = [f"{{ host: {host}, port: {up.port}, effect: [write, delete, spend, admin, exec] }}" for host in HOSTS]
    rules = "".join(f"  - id: writes-{n}\n    match: {place}\n    decide: hold\n    approve: {{ within: 2h }}\n"
                    for n, place in enumerate(places))
    ups = "".join(upstream_yaml(host, up.port, up.ca) for host in HOSTS)
    packs = f"[git@1, {{ pack: npm@1, hosts: [\"{HOSTS[1]}:{up.port}\"] }}]"
    return f"version: 1\nname: deceptive\npacks: {packs}\nupstreams:\n{ups}rules:\n{rules}"


def picture(says):
    """"picture WORDS", with "cut N" in front without its last bytes, with "frames N" as one that says it moves."""
    how, _, words = says.rpartition("picture ")
    how, _, n = how.strip().partition(" ")
    made = png(drawn(words), int(n) if how == "frames" else 1)
    return made[:-int(n)] if how == "cut" else made


def package(says, whole):
    """"NAME=TEXT NAME=TEXT", as npm packs them; or without the end."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for file in says.decode().split(" "):
            name, _, text = file.partition("=")
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text.encode())
            out.addfile(member, io.BytesIO(text.encode()))
    files = data.getvalue().rstrip(b"\0")
    return gzip.compress(files + bytes(-len(files) % 512 + 1024) if whole else files, mtime=0)


def filled(text):
    """A body's bytes: its <<...>> made into what they stand for."""
    def one(found):
        word, _, rest = found[1].partition(b" ")
        if word.startswith(b"U+"):
            return chr(int(word[2:], 16)).encode()
        if word == b"hex":
            return bytes.fromhex(rest.decode())
        if word == b"pkt":
            line = rest + b"\0 report-status\n"
            return b"%04x" % (len(line) + 4) + line
        if word in (b"picture", b"cut", b"frames"):
            return picture(found[1].decode())
        if word in (b"package", b"halfpackage"):
            return base64.b64encode(package(rest, word == b"package"))
        if word == b"base64":
            return base64.b64encode(picture(rest.decode()))
        count, _, what = rest.partition(b" ")
        assert word == b"times", word
        return what * int(count)
    return re.sub(rb"<<(.*?)>>", one, text, flags=re.S)


class Request:
    def __init__(self, text):
        head, _, body = text.partition("\n\n")
        first, *fields = head.strip().splitlines()
        self.approve = first == "then: approve"
        if self.approve:
            first, *fields = fields
        self.method, *host, self.path = first.split()
        self.host = host[0] if host else HOSTS[0]
        pairs = [tuple(f.split(": ", 1)) for f in fields]
        self.fields = [f"{n}: {v}" for n, v in pairs if n.lower() not in OURS]
        ours = {n.lower(): v for n, v in pairs if n.lower() in OURS}
        body = body.rstrip("\n") + ("\n" if "lines" in ours else "")
        self.body = filled(body.replace("\n", "\r\n").encode() if "lines" in ours else body.encode())
        for _ in ours.get("coded", "").split():
            self.body = gzip.compress(self.body, mtime=0)


class Case:
    def __init__(self, path):
        lines, *requests = path.read_text().split("\n---\n")
        self.name = path.stem
        self.wants = [tuple(line.split(": ", 1)) for line in lines.splitlines() if line and not line.startswith("#")]
        self.requests = [Request(r) for r in requests]


def words(page):
    """The text of it: what is inside a line stays together, a quotation has its marks."""
    page = re.sub(r"<q[^>]*>|</q>", '"', page)
    page = re.sub(r"</?(?:b|i|span|strong|small|del|ins|time)\b[^>]*>", "", page)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page))).strip()


def sent(lab, gw, up, request):
    """Sends it; the id of its ticket."""
    before = {t["id"] for t in gw.tickets()}
    body = []
    if request.body:
        file = lab.dir / "body"
        file.write_bytes(request.body)
        body = ["--data-binary", f"@{file}"]
    lab.run(["curl", "-sS", "--path-as-is", "--max-time", str(PATIENCE), "-X", request.method, *body,
             *(part for f in ["Expect:", *request.fields] for part in ("-H", f)),
             f"https://{request.host}:{up.port}{request.path}"], env=gw.client_env(), rc=0)
    new = [t["id"] for t in gw.tickets() if t["id"] not in before]
    assert len(new) == 1, (request.path, new)
    return new[0]


def check(case, page):
    """What is not as the file says, in words."""
    flags = re.search(r'<section class="flags.*?</section>', page, re.S)
    shown, looked = words(page.partition("<main")[2]), words(flags[0]) if flags else ""
    assert not NEVER.search(page), f"{case.name}: {NEVER.search(page)[0]!r} is on the page as it came"
    offered = bool(re.search(r'<form class="approve"', page))
    yield from (() if offered == (("approve", "no") not in case.wants) else (f"approve is offered: {offered}",))
    yield from (() if '<form class="deny"' in page else ("no way to deny it",))
    for kind, want in case.wants:
        if kind == "order":
            first, _, then = want.partition(" | ")
            good = first in shown and then in shown and shown.index(first) < shown.index(then)
        else:
            good = kind in ("approve", "whole", "picture") or want in (looked if kind == "look" else shown)
        if not good:
            yield f"{kind}: {want}\n  list: {looked}\n  page: {shown[:6000]}"


def check_picture(page, ticket, want):
    """It is fetched where the page says, can do nothing there, and is that picture, dot by dot."""
    n, words = want.split(" ", 1)
    shown = page.ask("GET", f"/tickets/{ticket}")[1].decode()
    path = f"/tickets/{ticket}/picture?n={n}"
    assert re.search(rf'<img src="{re.escape(path)}" width="\d+" height="\d+" alt="Picture', shown), (want, shown)
    answer, data = page.ask("GET", path)
    assert answer.status == 200 and answer.getheader("Content-Type") == "image/png", (want, answer.status, data[:300])
    assert answer.getheader("X-Content-Type-Options") == "nosniff" and answer.getheader("Cache-Control") == "no-store"
    assert answer.getheader("Content-Security-Policy").endswith("; sandbox"), answer.getheader("Content-Security-Policy")
    assert read(data) == drawn(words), want
    for other in (int(n) + 8, 99, "x"):
        answer, data = page.ask("GET", f"/tickets/{ticket}/picture?n={other}")
        assert answer.status == 404 and b"\x89PNG" not in data, other


def noise(width, height):
    """A picture of more than a mebibyte, which is handed on without being read into a page."""
    dice = random.Random(20)
    return [[tuple(dice.randbytes(3)) for _ in range(width)] for _ in range(height)]


def part(name, data):
    return (f'--9ae1c04f77\r\nContent-Disposition: form-data; name="{name}"; filename="{name}.png"\r\nContent-Type: image/png\r\n\r\n'
            .encode() + data + b"\r\n")


def check_large(lab, gw, up, page):
    """By itself and as one of two files of a form: shown, and approved on the page of the whole body alone."""
    rows = noise(700, 520)
    form = part("large", png(rows)) + part("small", png(drawn("SEND IT"))) + b"--9ae1c04f77--\r\n"
    for kind, body, pictures in (("image/png", png(rows), [rows]),
                                 ("multipart/form-data; boundary=9ae1c04f77", form, [rows, drawn("SEND IT")])):
        request = Request(f"POST /large\nContent-Type: {kind}\n\n")
        request.body = body
        ticket = sent(lab, gw, up, request)
        assert len(body) > 1 << 20
        shown, whole = (page.ask("GET", f"/tickets/{ticket}{more}")[1].decode() for more in ("", "/whole"))
        assert shown.count("<img ") == whole.count("<img ") == len(pictures), words(shown)[:3000]
        assert 'class="approve"' not in shown and 'class="approve"' in whole, words(whole)[:3000]
        for n, want in enumerate(pictures):
            assert read(page.ask("GET", f"/tickets/{ticket}/picture?n={n}")[1]) == want, (kind, n)
        refused = gw.cli("approvals", "approve", ticket, rc=None)
        assert refused.rc != 0 and b"which only its own page shows" in refused.err, refused
        gw.deny(ticket, "seen")


@test("E14 page", "E16 page", "E17 page", "E18 page", "E19 page", "E20 page")
def each_is_flagged_or_blocked(lab):
    up = lab.upstream(*HOSTS)
    gw = Gateway(lab, policy(up), hold="inline_wait: 0s, expires: 2h")
    page, wrong = Page(gw), []
    lab.leaves("approved")
    cases = [Case(path) for path in sorted(FOLDER.rglob("*.txt"), key=lambda p: p.name)]
    assert len(cases) == 26, [c.name for c in cases]
    for case in cases:
        tickets = []
        for request in case.requests:
            if request.approve:
                gw.approve(tickets[-1])
            tickets.append(sent(lab, gw, up, request))
        answer, data = page.ask("GET", f"/tickets/{tickets[-1]}")
        assert answer.status == 200, (case.name, answer.status)
        wrong += [f"{case.name}: {what}" for what in check(case, data.decode())]
        for want in (want for kind, want in case.wants if kind == "whole"):
            whole = page.ask("GET", f"/tickets/{tickets[-1]}/whole")[1].decode()
            assert want in words(whole) and 'name="whole"' in whole and 'class="flags' in whole, (case.name, words(whole)[:3000])
        for want in (want for kind, want in case.wants if kind == "picture"):
            check_picture(page, tickets[-1], want)
        answer, listed = page.ask("GET", "/")
        assert answer.status == 200 and tickets[-1].encode() in listed and not NEVER.search(listed.decode()), case.name
        for ticket in {t["id"] for t in gw.tickets()}:
            gw.deny(ticket, "seen")
    check_large(lab, gw, up, page)
    assert not wrong, "\n".join(wrong)
    assert up.effects() == {}, up.effects()


main()
