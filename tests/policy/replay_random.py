#!/usr/bin/env python3
"""policy replay on random policies (pairs.py): of records whose verdict is what the policy said when the request was whole,
with its fields, body and time, replay says the same or that it cannot tell. REPLAY_PAIRS policies of REPLAY_SEED."""
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.parse

import pairs

SRC = os.environ.get("srcdir", ".")
PACKS = os.path.join(SRC, "conf", "packs")
SEED = int(os.environ.get("REPLAY_SEED", "1"))
PAIRS = int(os.environ.get("REPLAY_PAIRS", "150"))
MOST = int(os.environ.get("REPLAY_SECONDS", "8"))
LEAST = min(3, PAIRS)  # however long they take
MONDAY = 1793577600  # a Monday
BARE = ("GET", "HEAD", "OPTIONS")


def judged(file, lines):
    done = subprocess.run(["tests/policy/judge_lines", file], input="".join(json.dumps(v) + "\n" for v in lines), capture_output=True,
                          text=True, env={**os.environ, "PACKS": PACKS})
    return [a.split() for a in done.stdout.splitlines()] if done.returncode == 0 else None


def record(i, v, a):
    """What the gateway writes down of it."""
    url = urllib.parse.urlsplit(v[2])
    scheme = url.scheme.replace("ws", "http")
    at = datetime.datetime.fromtimestamp(int(v[6]), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    fields = [f.partition(": ")[::2] for f in v[3].splitlines()]
    types = [value for name, value in fields if name == "Content-Type"]
    out = {"seq": i + 1, "time": at, "kind": "denied", "exchange": f"x-{i}", "sandbox": v[0], "method": v[1], "scheme": scheme,
           "host": url.hostname, "port": url.port or (443 if scheme == "https" else 80),
           "path": url.path + ("?" + url.query if url.query else ""), "verdict": a[0], "code": a[1], "op": a[3], "effect": a[4]}
    out.update({"body": True} if v[4] is not None else {}, **({"type": types[0]} if types else {}),
               **({"upgrade": True} if url.scheme.startswith("ws") else {}))
    parsed = a[1] != "unclassified" and types and types[0].lower() == "application/x-git-receive-pack-request"
    if parsed and v[4] and " report-status" in v[4] and url.path.endswith("/git-receive-pack"):
        old, new, name = v[4][4:].partition("\0")[0].split(" ")
        out["refs"] = [f"{'create' if set(old) == {'0'} else 'delete' if set(new) == {'0'} else 'update'} {name}"]
    return out


def askable(v):
    """Not what the man page says is not seen: a field that asks for another method beside what is no read."""
    return "X-HTTP-Method-Override" not in v[3] or v[1] in BARE and v[4] is None and not v[2].startswith("ws")


def one(i, tmp, counts):
    r = random.Random(f"replay {SEED}/{i}")
    p = pairs.policy(r)
    p["scopes"] = {"s1": {"sandboxes": ["ci-*"]}, "s2": {"sandboxes": ["dev"]}}  # nobody's labels are in a file of records
    file, log = os.path.join(tmp, "p.yaml"), os.path.join(tmp, "log.jsonl")
    with open(file, "w", encoding="utf-8") as f:
        json.dump(p, f, indent=1)
    lines = [v for v in (pairs.line(q, MONDAY) for q in pairs.requests(r, p, p, 120)) if askable(v)]
    answers = judged(file, [v[:5] + ["", v[6]] for v in lines])
    if answers is None:
        counts["refused"] += 1
        return True
    records = [record(k, v, a) for k, (v, a) in enumerate(zip(lines, answers)) if a[0] != "refused"]
    with open(log, "w", encoding="utf-8") as f:
        f.write("".join(json.dumps(x) + "\n" for x in records))
    done = subprocess.run(["./countersign", "policy", "replay", "--json", "--packs", PACKS, "--from", log, file], capture_output=True,
                          text=True)
    said = json.loads(done.stdout)
    counts["told"] += said["same"]
    counts["let"] += sum(x["verdict"] != "deny" for x in records)
    counts["cannot"] += said["cannot_tell"]
    wrong = [g for g in said["groups"] if g["change"] != "cannot-tell"]
    if wrong or said["damaged"]:
        print(f"not ok policy {i} of REPLAY_SEED={SEED}: {json.dumps(wrong[:2])}")
        print("\n".join(json.dumps([v, a]) for v, a in zip(lines, answers) if wrong and a[0] == wrong[0]["was"] and urllib.parse.urlsplit(v[2]).path in
                        wrong[0]["example"] and v[1] == wrong[0]["example"].split()[0])[:3000])
        print(json.dumps(p))
    return not wrong


def main():
    counts, began, bad, i = {"told": 0, "let": 0, "cannot": 0, "refused": 0}, time.time(), 0, 0
    with tempfile.TemporaryDirectory() as tmp:
        while i < PAIRS and (i < LEAST or time.time() < began + MOST) and bad < 3:
            bad += not one(i, tmp, counts)
            i += 1
    print(f"{'not ok' if bad else 'ok'} {i} policies, REPLAY_SEED={SEED}: {counts}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
