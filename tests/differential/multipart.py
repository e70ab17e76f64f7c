#!/usr/bin/env python3
"""Our parser of forms with files beside undici's (Node's from version 20 on) and Python's (email): of every body that ours takes, each of the two reads
the same fields and files, or refuses it. That ours refuses more is meant; it is only counted.

usage: multipart.py MULTIPART_PROGRAM [--seed N] [--bodies N] [--show]
Needs node and npm (conf/need test).
"""
import argparse
import email.message
import email.parser
import email.policy
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e" / "lab")]
from lab.servers import npm_modules

NAMES = [b"a", b"currency", b"file", b"a b", b"a[]", b"\xc3\xa4", b"x%22y", b"filename", b"__proto__", b"0", b""]
FILES = [b"a.txt", b"a b.png", b"", b"../a", b"\xc3\xa4.txt", b"a%0d%0ab", b"a,b", b"name=x"]
TYPES = [b"text/plain", b"image/png", b"application/octet-stream", b"application/json", b"text/plain; charset=utf-8"]
CONTENTS = [b"", b"x", b"eur", b"\r\n", b"a\nb", b"--", b"\r\n--", b"\xff\x00\x01", "ä".encode(), b"--x--\r\n", b"Content-Disposition: form-data; name=\"b\"\r\n\r\nz", b" y "]
PIECES = [b"\r\n", b"\n", b"\r", b"--", b"\"", b"\\", b";", b" ", b"\t", b":", b"=", b"%22", b"\\\"", b"\x00", b"\xff", b"'", b"name=\"b\"", b"; name=\"b\"", b"; filename=\"b\"",
          b"; name*=utf-8''b", b"; filename*=utf-8''b.txt", b"\r\nContent-Type: text/html", b"\r\nContent-Type: multipart/mixed; boundary=c", b"\r\nContent-Transfer-Encoding: base64",
          b"\r\nContent-Transfer-Encoding: 8bit", b"\r\nContent-Length: 1", b"\r\nX: y", b"\r\n folded", b"=?utf-8?q?b?="]


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def head(self):
        r = self.rng
        name = r.choice(NAMES)
        word = name if name.isalnum() and r.random() < 0.1 else b'"' + name + b'"'
        lines = [r.choice([b"Content-Disposition: ", b"Content-Disposition: ", b"content-disposition:"]) + b"form-data; name=" + word]
        if r.random() < 0.4:
            lines[0] += b'; filename="' + r.choice(FILES) + b'"'
            if r.random() < 0.9:
                lines.append(b"Content-Type: " + r.choice(TYPES))
        elif r.random() < 0.1:
            lines.append(b"Content-Type: text/plain")
        if r.random() < 0.05:
            lines.append(b"Content-Transfer-Encoding: binary")
        r.shuffle(lines)
        return b"\r\n".join(lines)

    def body(self):
        r = self.rng
        boundary = r.choice([b"----formdata-undici-%012d" % r.randint(0, 10 ** 12 - 1), b"-" * 24 + b"%016x" % r.getrandbits(64), b"%032x" % r.getrandbits(128)])
        parts = b"".join(b"--" + boundary + b"\r\n" + self.head() + b"\r\n\r\n" + r.choice(CONTENTS) + b"\r\n" for _ in range(r.randint(1, 4)))
        type_ = b"multipart/form-data; boundary=" + r.choice([boundary, boundary, b'"' + boundary + b'"'])
        return type_, parts + b"--" + boundary + b"--" + r.choice([b"\r\n", b"\r\n", b""]), boundary

    def changed(self, data, boundary):
        """The same with some of it gone, doubled, or something else in it."""
        r = self.rng
        for _ in range(r.randint(1, 3)):
            at = r.randint(0, len(data))
            near = data.find(boundary, at)
            at = near + r.choice([0, -2, -4, len(boundary), len(boundary) + 2]) if near >= 0 and r.random() < 0.3 else at
            at = max(at, 0)
            to = min(at + r.randint(0, 4), len(data))
            data = data[:at] + r.choice([b"", r.choice(PIECES), r.choice(PIECES), r.choice(PIECES), data[at:to] * 2, boundary[:r.randint(1, len(boundary))]]) + data[to if r.random() < 0.4 else at:]
        return data


def bodies(seed, n):
    made = Maker(seed)
    for i in range(n):
        type_, data, boundary = made.body()
        if i % 3 == 1:
            data = made.changed(data, boundary)
        if i % 30 == 29:
            type_ = made.changed(type_, boundary)
        yield type_.replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b""), data


def raw(text):
    return text.encode("utf-8", "surrogateescape")


def by_email(type_, body):
    """As a server that takes the body for a message with this Content-Type."""
    whole = email.parser.BytesParser(policy=email.policy.compat32).parsebytes(b"Content-Type: " + type_ + b"\r\n\r\n" + body)
    if not whole.is_multipart():
        return None
    out = []
    for part in whole.get_payload():
        name = part.get_param("name", header="content-disposition")
        file = part.get_param("filename", header="content-disposition")
        if not isinstance(name, str) or not (file is None or isinstance(file, str)) or "\ufffd" in name + (file or ""):
            return None  # what is not ASCII it does not read
        content = part.get_payload(decode=True)
        out.append((raw(name), None if file is None else raw(file), part.get_content_type().encode() if "content-type" in part else b"", content if content is not None else b""))
    return out


def parts_of(line):
    """[(name, file name or None, type, content)], or None."""
    if line == "refused":
        return None
    out = []
    for one in line.split(";")[:-1]:
        kind, *rest = one.split(" ")
        rest = [bytes.fromhex(x) for x in rest]
        out.append((rest[0], None, b"", rest[1]) if kind == "field" else tuple(rest))
    return out


def plain(text):
    """WHATWG forms escape these three in names, and their readers undo it: to ours such a name is in doubt."""
    for what, escape in ((b'"', b"%22"), (b"\r", b"%0d"), (b"\n", b"%0a")):
        text = text.replace(escape, what).replace(escape.upper(), what)
    return text


def same(ours, theirs, types):
    def known(part):
        name, file, type_, content = part
        return plain(name), None if file is None else plain(file), type_.partition(b";")[0].lower() if types and file is not None else b"", content

    return [known(p) for p in ours] == [known(p) for p in theirs]


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("program")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--bodies", type=int, default=20000)
    options.add_argument("--show", action="store_true", help="what only ours refuses, too")
    args = options.parse_args()
    given = list(bodies(args.seed, args.bodies))
    lines = "".join(f"{t.hex()} {b.hex()}\n" for t, b in given)
    ours = subprocess.run([args.program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    nodes = subprocess.run(["node", HERE / "multipart.js", npm_modules(HERE / "npm")], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(ours) == len(nodes) == len(given), (len(ours), len(nodes))
    taken = stricter = bad = 0
    both = {"node": 0, "email": 0}
    for (type_, body), we, node in zip(given, ours, nodes):
        mine, others = parts_of(we), {"node": parts_of(node), "email": by_email(type_, body)}
        taken += mine is not None
        stricter += mine is None and others["node"] is not None
        if mine is None and others["node"] is not None and args.show:
            print(f"only ours refuses {type_!r} {body!r}")
        for who, theirs in others.items():
            both[who] += mine is not None and theirs is not None
            # Without a type, Node says one of its own.
            if mine is not None and theirs is not None and not same(mine, theirs, all(p[2] for p in mine if p[1] is not None)):
                bad += 1
                print(f"not ok multipart: {type_!r} {body!r}\n  ours  {mine}\n  {who} {theirs}")
    if min(both.values()) < len(given) // 3:
        bad += 1
        print(f"not ok multipart: of {len(given)} only {both} were read by both: the comparison says nothing")
    if bad == 0:
        print(f"ok multipart: {len(given)} bodies, {taken} of them taken; Node read {both['node']} of these, Python {both['email']}, all the same; {stricter} refused by ours and not by Node")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
