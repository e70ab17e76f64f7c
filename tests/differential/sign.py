#!/usr/bin/env python3
"""Our signer beside others: botocore (Debian's python3-botocore), @smithy/signature-v4 and Tencent Cloud's own (npm).

Requests are made from a seed; each is signed by the other program, and ours must write the same Authorization from what is on
the wire. One in fifty is changed after it was signed, and must then come out otherwise.

usage: sign.py SIGN_PROGRAM [--seed N] [--requests N]
Needs python3-botocore, node and npm (conf/need test); with another python3 first in PATH call /usr/bin/python3.
"""
import calendar
import datetime
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
from unittest import mock
from urllib.parse import quote

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e" / "lab")]
try:
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
except ImportError:
    sys.exit("differential: python3-botocore is missing: run conf/need test, and call /usr/bin/python3")
from lab.servers import npm_modules

TEXT = "abcXYZ0189-._~ !*'()+,;:@&=$/?#[]%\"<>^`{|}\\äß漢🙂\u00e9e\u0301"
SERVICES = ["dynamodb", "sts", "sqs", "lambda", "ec2", "execute-api", "secretsmanager", "bedrock"]
REGIONS = ["us-east-1", "eu-central-1", "ap-southeast-2", "us-gov-west-1", "auto"]
CHANGED = 50
EMPTY = hashlib.sha256(b"").hexdigest()


def text(rng, most, alphabet=TEXT, least=0):
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(least, most)))


def raw_query(pairs, raw=""):
    """As it goes on the wire. raw: what its client leaves unescaped, though it signs the escapes."""
    return "&".join(f"{quote(n, safe='-_.~' + raw)}={quote(v, safe='-_.~' + raw)}" for n, v in pairs)


def request(rng, kind):
    """One request, as a client would have it before it signs. path: as it goes on the wire."""
    segments = [quote(text(rng, 8, TEXT.replace("/", "")), safe="-_.~") for _ in range(rng.randint(0, 4))]
    if kind == "aws":
        segments = [rng.choice(["", ".", ".."]) if rng.random() < 0.1 else s for s in segments]
    names = {text(rng, 6, least=1) for _ in range(rng.choice([0, 0, 1, 2, 5, 20]))}
    query = [(n, text(rng, 10)) for n in sorted(names, key=lambda _: rng.random())]
    body = rng.randbytes(rng.choice([0, 0, 1, 20, 1000]))
    headers = {"content-type": rng.choice(["application/json", "application/x-amz-json-1.0", "text/plain;  charset=utf-8"])}
    for i in range(rng.randint(0, 5)):
        value = text(rng, 20, "abc XYZ\t 019,;=\"/:").strip()
        headers[rng.choice([f"x-amz-meta-k{i}", f"X-Amz-Target{i}", f"x-custom-{i}"])] = value
    r = {"kind": kind, "method": rng.choice(["GET", "PUT", "POST", "DELETE", "HEAD"]),
         "host": "h" + text(rng, 9, "abc019") + ".example.com",
         "path": "/" + "/".join(segments), "query": query, "headers": headers, "body": body.hex(),
         "id": "AKIA" + text(rng, 16, "ABCDEFG234567", 16), "secret": text(rng, 40, "abcXYZ019+/", 40),
         "token": rng.choice(["", text(rng, 60, "abcXYZ019+/=", 8)]), "region": rng.choice(REGIONS),
         "service": "s3" if kind == "s3" else rng.choice(SERVICES), "time": rng.randint(946684800, 4102444800)}
    if kind == "tc3":
        r.update(method=rng.choice(["GET", "POST"]), path=rng.choice(["/", "/v1/x"]), service=rng.choice(["tcb", "cvm", "sts"]),
                 headers={"content-type": rng.choice(["application/json", "application/x-www-form-urlencoded"])})
    return r


def by_botocore(requests):
    for r in requests:
        kind = botocore.auth.S3SigV4Auth if r["kind"] == "s3" else botocore.auth.SigV4Auth
        credentials = botocore.credentials.Credentials(r["id"], r["secret"], r["token"] or None)
        made = botocore.awsrequest.AWSRequest(method=r["method"], url=f"https://{r['host']}{r['path']}", headers=r["headers"],
                                              data=bytes.fromhex(r["body"]), params=r["query"])
        if r["kind"] == "s3":
            made.context["has_streaming_input"] = r["time"] % 2 == 0
        with mock.patch("botocore.auth.datetime") as clock:
            clock.datetime.utcnow.return_value = datetime.datetime.fromtimestamp(r["time"], datetime.timezone.utc)
            kind(credentials, r["service"], r["region"]).add_auth(made)
        yield {"host": r["host"], **{k.lower(): v for k, v in made.headers.items()}}


def by_node(requests, modules):
    lines = "".join(json.dumps(r) + "\n" for r in requests)
    done = subprocess.run(["node", str(HERE / "sign.js"), str(modules)], input=lines, stdout=subprocess.PIPE, text=True,
                          timeout=600)
    if done.returncode:
        sys.exit(f"differential: node sign.js ended with {done.returncode}")
    for r, line in zip(requests, done.stdout.splitlines(), strict=True):
        yield {"host": r["host"], **{k.lower(): v for k, v in {**r["headers"], **json.loads(line)}.items()}}


def hexed(value):
    return (value if isinstance(value, bytes) else value.encode()).hex() or "-"


def line_of(r, signed, raw):
    fields = {k: v for k, v in signed.items() if k.lower() != "authorization"}
    lower = {k.lower(): v for k, v in fields.items()}
    payload = lower.get("x-amz-content-sha256") or hashlib.sha256(bytes.fromhex(r["body"])).hexdigest()
    stamp = str(r["time"]) if r["kind"] == "tc3" else lower["x-amz-date"]
    texts = [signed["authorization"], r["secret"], stamp, r["kind"], r["method"], r["path"], raw, payload]
    return " ".join(hexed(t) for t in texts) + " " + ",".join(f"{hexed(k)}={v.encode().hex()}" for k, v in fields.items())


def change(rng, r):
    """Another request than the one that was signed."""
    at = rng.choice(["method", "path", "secret", "field"])
    if at == "method":
        return dict(r, method="PATCH")
    if at == "path":
        return dict(r, path=r["path"] + "x")
    if at == "secret":
        return dict(r, secret=r["secret"][:-1] + ("a" if r["secret"][-1] != "a" else "b"))
    return dict(r, changed=True)


def compare(name, program, rng, requests, signed):
    lines, expected = [], []
    for i, (r, s) in enumerate(zip(requests, signed, strict=True)):
        # A client may write the query in any order; Tencent signs it as it is written.
        pairs = list(r["query"])
        if r["kind"] == "tc3":
            raw = "&".join(f"{quote(n, safe='-_.!~*()')}={quote(v, safe='-_.!~*()')}" for n, v in pairs)  # as Node's URL has it
        else:
            rng.shuffle(pairs)
            raw = raw_query(pairs, rng.choice(["", "|{}", "^`\\|"]))
        authorization, other = s["authorization"], i % CHANGED == CHANGED - 1
        if other:
            r = change(rng, r)
            if r.get("changed"):
                s = dict(s, **{"content-type": "changed/" + s["content-type"]})
        expected.append((authorization, other))
        lines.append(line_of(r, s, raw))
    done = subprocess.run([program], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True, timeout=300)
    ours = done.stdout.splitlines()
    wrong = [i for i, (got, (want, other)) in enumerate(zip(ours, expected)) if (got == want) == other or got == "refused"]
    if done.returncode or len(ours) != len(lines) or wrong:
        print(f"not ok {name}: exit {done.returncode}, {len(ours)} of {len(lines)} answered, {len(wrong)} not as expected")
        for i in wrong[:3]:
            print(f"  ours   {ours[i]}\n  theirs {expected[i][0]}, changed: {expected[i][1]}\n  {json.dumps(requests[i])}")
        return False
    print(f"ok {name}: {len(lines)} requests, {sum(o for _, o in expected)} of them changed and told apart")
    return True


def main():
    options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    seed, n = int(options.get("--seed", 1)), int(options.get("--requests", 10000))
    program = os.path.abspath(sys.argv[1])
    modules = npm_modules(HERE / "npm") / "node_modules"
    good = True
    for name, signers, kinds, count in (
            ("botocore", by_botocore, ["aws", "s3"], n),
            ("@smithy/signature-v4", lambda r: by_node(r, modules), ["aws", "s3"], n),
            ("tencentcloud-sdk-nodejs", lambda r: by_node(r, modules), ["tc3"], max(1, n // 10))):
        rng = random.Random(f"{seed} {name}")
        requests = [request(rng, kinds[i % len(kinds)]) for i in range(count)]
        good = compare(name, program, rng, requests, list(signers(requests))) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
