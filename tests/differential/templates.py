#!/usr/bin/env python3
"""Templates that are signed beside Python's hmac: templates and requests are made from a seed, and the field that each comes to
must be what the standard library makes of the same. One in ten is changed in a part that is signed, and must come out otherwise;
one in ten has what no policy may have, and must be refused.

usage: templates.py TEMPLATES_PROGRAM [--seed N] [--requests N]
"""
import base64
import datetime
import email.utils
import hashlib
import hmac
import os
import random
import re
import subprocess
import sys
from urllib.parse import quote, unquote_plus

TEXT = "abcXYZ0189-._~!*'()+,;:@&=$/?[]%\"<>^`|\\äß漢🙂"
HASHES = (hashlib.sha256, hashlib.sha512, hashlib.sha1)
AS_TEXT, HEX, BASE64, BASE64URL = range(4)
BODY = ("body_sha256", "body_sha256_base64", "body_sha512", "body_sha512_base64")
TIMES = ("time", "time_ms", "date", "iso_time")
PARTS = ("method", "path", "query", "sorted_query", "target", "host", "id", *BODY, *TIMES)
# What a change of it changes, beside the parts that are made of the body or the query.
CHANGES = {"method": ("method",), "path": ("path", "target"), "host": ("host",), "id": ("id",), "body": ("body", *BODY),
           "query": ("query", "sorted_query", "target"), "now": TIMES}
BAD = ("{what}", "{", "}", "{Method}", "{token}", "{signature}", "{body}{method}", "\t", "é", "{header.X}", "{method", "{{id}}")


def text(rng, most, alphabet=TEXT, least=0):
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(least, most)))


def written(raw, how):
    if how == HEX:
        return raw.hex()
    return base64.b64encode(raw).decode() if how == BASE64 else base64.urlsafe_b64encode(raw).decode().rstrip("=")


def sorted_query(query):
    pairs = [part.partition("=") for part in query.split("&") if part]
    return "&".join("=".join(pair) for pair in sorted((quote(unquote_plus(n), safe="-_.~"), quote(unquote_plus(v), safe="-_.~"))
                                                      for n, _, v in pairs))


def values(r):
    at = datetime.datetime.fromtimestamp(r["now"] // 1000, datetime.timezone.utc)
    query = r["query"] or ""
    said = {"method": r["method"], "path": r["path"], "query": query, "host": r["host"], "id": r["id"],
            "target": r["path"] + ("" if r["query"] is None else "?" + query), "time": str(r["now"] // 1000),
            "time_ms": str(r["now"]), "date": email.utils.format_datetime(at, usegmt=True),
            "iso_time": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "sorted_query": sorted_query(query)}
    said = {name: value.encode() for name, value in said.items()} | {"body": r["body"]}
    for name in BODY:
        raw = hashlib.new(name.split("_")[1], r["body"]).digest()
        said[name] = (base64.b64encode(raw).decode() if name.endswith("base64") else raw.hex()).encode()
    return said | {f"header.{name}": value.encode() for name, value in r["headers"].items()}


def expand(template, said):
    return re.sub(rb"\{([^}]*)\}", lambda m: said[m[1].decode()], template.encode())


def expected(r):
    said = values(r)
    signature = hmac.new(r["key"], expand(r["template"], said), HASHES[r["hash"]]).digest()
    return expand(r["field"], said | {"signature": written(signature, r["written"]).encode()}).decode()


def request(rng):
    headers = {text(rng, 8, "abcxyz019-", 1): text(rng, 20, "abc XYZ\t 019,;=\"/:{}").strip() for _ in range(rng.randint(0, 4))}
    parts = [f"{{{rng.choice([*PARTS, *(f'header.{h}' for h in headers)])}}}" for _ in range(rng.randint(1, 8))]
    template = "".join(part + rng.choice(["", "\n", ".", ", ", ":", "&a=", "\n\n"]) for part in parts)
    key = rng.randbytes(rng.choice([1, 8, 20, 32, 63, 64, 65, 128, 129, 1000]))
    how = rng.choice([AS_TEXT, HEX, BASE64, BASE64URL])
    if how == AS_TEXT:
        key = text(rng, 100, least=1).encode()
    secret = key if how == AS_TEXT else written(key, how).encode()
    query = "&".join(f"{quote(text(rng, 6))}={quote(text(rng, 10), safe='')}" for _ in range(rng.choice([1, 2, 5, 20])))
    return {"hash": rng.randrange(3), "written": rng.choice([HEX, BASE64, BASE64URL]), "key_is": how, "key": key,
            "secret": secret.upper() if how == HEX and rng.random() < 0.5 else secret, "now": rng.randint(0, 253402300799999),
            "template": template + rng.choice(["", "", "{body}"]), "headers": headers,
            "field": rng.choice(["{signature}", "sha256={signature}", "t={time},v1={signature}", "HMAC {id}:{signature}",
                                 "{date} {iso_time} {body_sha512_base64} {signature}"]),
            "method": text(rng, 8, "ABCDEFGXYZ-", 1), "path": "/" + quote(text(rng, 30)), "id": text(rng, 20, "abcXYZ019-_=", 1),
            "query": rng.choice([None, "", query, query]), "host": text(rng, 9, "abc019", 1) + ".example" + rng.choice(["", ":8443"]),
            "body": rng.randbytes(rng.choice([0, 1, 20, 1000]))}


def change(rng, r):
    """Another request than was asked about, if any part that is signed can differ."""
    said = re.findall(r"\{([^}]*)\}", r["template"])
    can = [name for name, parts in CHANGES.items() if set(parts) & set(said)] + ["key"]
    at = rng.choice(can)
    if at == "body":
        return dict(r, body=r["body"] + b"x")
    if at == "now":
        return dict(r, now=(r["now"] + 1_000_000) % 253402300799999)
    if at == "query":
        return dict(r, query=(r["query"] or "") + "&changed=1")
    if at == "key":
        return dict(r, key=r["key"] + b"x")
    return dict(r, **{at: r[at] + "x"})


def line_of(r):
    def hexed(v):
        return (v if isinstance(v, bytes) else v.encode()).hex() or "-"
    query = "" if r["query"] is None else "?" + r["query"]
    texts = [r["secret"], r["template"], r["field"], r["method"], r["path"], query, r["host"], r["body"], r["id"]]
    for name, value in r["headers"].items():
        texts += [f"header.{name}", value]
    return " ".join([str(r["hash"]), str(r["written"]), str(r["key_is"]), str(r["now"]), *(hexed(t) for t in texts)])


def main():
    options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    rng, n = random.Random(int(options.get("--seed", 1))), int(options.get("--requests", 10000))
    lines, wanted, changed, refused = [], [], 0, 0
    for i in range(n):
        r = request(rng)
        if i % 10 == 9:
            bad, refused = rng.choice(BAD), refused + 1
            wanted.append(("refused", True))
            lines.append(line_of(dict(r, template=bad + r["template"] if rng.random() < 0.5 else "{time}" + bad + "{method}")))
        elif i % 10 == 8:
            changed += 1
            wanted.append((expected(change(rng, r)), False))
            lines.append(line_of(r))
        else:
            wanted.append((expected(r), True))
            lines.append(line_of(r))
    done = subprocess.run([os.path.abspath(sys.argv[1])], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True, timeout=300)
    ours = done.stdout.splitlines()
    wrong = [i for i, (got, (want, same)) in enumerate(zip(ours, wanted)) if (got == want) != same or (not same and got == "refused")]
    if done.returncode or len(ours) != n or wrong:
        print(f"not ok templates: exit {done.returncode}, {len(ours)} of {n} answered, {len(wrong)} not as expected")
        for i in wrong[:3]:
            print(f"  ours {ours[i]}\n  want {wanted[i]}\n  {lines[i]}")
        sys.exit(1)
    print(f"ok templates: {n} requests, {changed} of them changed and told apart, {refused} refused")


if __name__ == "__main__":
    main()
