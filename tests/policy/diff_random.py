#!/usr/bin/env python3
"""policy diff on random pairs of policies (pairs.py): whatever request is decided differently is told, with these rules and
in this direction; what diff shows of its witnesses is what the judge says of them; and it is silent where nothing but
order, form and names differ. DIFF_RANDOM pairs of DIFF_SEED; once LEAST of them are done, none is begun after DIFF_SECONDS.
A failure prints its pair."""
import json
import os
import random
import subprocess
import sys
import tempfile
import time

import pairs

SRC = os.environ.get("srcdir", ".")
PACKS = os.path.join(SRC, "conf", "packs")
SEED = int(os.environ.get("DIFF_SEED", "1"))
PAIRS = int(os.environ.get("DIFF_RANDOM", "10"))
MOST = int(os.environ.get("DIFF_SECONDS", "60"))
LEAST = min(3, PAIRS)
ASKED = int(os.environ.get("DIFF_ASKED", "300"))
KEEP = os.environ.get("DIFF_KEEP")
SECONDS, RANK = 300, {"deny": 0, "hold": 1, "allow": 2}
MONDAY = int(time.time()) // 86400 * 86400 - (int(time.time()) // 86400 + 3) % 7 * 86400 + 7 * 86400
FIELDS = ["decide", "code", "rule", "op", "effect", "credential", "approvers", "reason", "within", "messages", "limits"]


def judge(file, lines):
    done = subprocess.run(["tests/policy/judge_lines", file], input="".join(json.dumps(v) + "\n" for v in lines), capture_output=True,
                          text=True, env={**os.environ, "PACKS": PACKS})
    if done.returncode != 0:
        raise SystemExit(f"not ok judge_lines: {done.returncode} {done.stdout}{done.stderr}")
    return [dict(zip(FIELDS, a.split())) for a in done.stdout.splitlines()]


def diff(old, new):
    began = os.times().children_user
    done = subprocess.run(["./countersign", "policy", "diff", "--json", "--packs", PACKS, old, new], capture_output=True, text=True,
                          timeout=20 * SECONDS)
    took = os.times().children_user - began
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {}
    return (said if "entries" in said else None), done.stdout + done.stderr, took, done.returncode


def quiet(code):
    """No rule fits, be it that none names the host."""
    return "no-rule" if code == "host-not-named" else code


def told(e):
    return tuple(x for s in ("old", "new") for x in (e[s]["decide"], quiet(e[s]["code"]), e[s].get("rule", {}).get("id", "-")))


def decided(a, b):
    return tuple(x for s in (a, b) for x in (s["decide"], quiet(s["code"]), s["rule"]))


def line_of_witness(e, side):
    """What `explain` is told, as judge_lines takes it."""
    words, q = e["explain_" + side][3:], {"--as": ["sandbox"], "--label": [], "--header": [], "--at": [], "--data": [], "--ref": [], "--packs": []}
    while words[0].startswith("--"):
        if words[0] == "--as":
            q["--as"] = []
        q[words[0]].append(words[1])
        words = words[2:]
    if q["--ref"]:
        return None
    fields = "".join(h + "\n" for h in q["--header"])
    at = int(time.mktime(time.strptime(q["--at"][0], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone) if q["--at"] else int(time.time())
    return [q["--as"][0], words[0], words[1], fields, q["--data"][0] if q["--data"] else None,
            "".join(v.replace("=", ": ", 1) + "\n" for v in q["--label"]), str(at)]


def wrong_witness(entries, old, new):
    for side, file in (("old", old), ("new", new)):
        lines = [(e, line_of_witness(e, side)) for e in entries if "text" not in e]
        lines = [(e, v) for e, v in lines if v]
        for (e, v), a in zip(lines, judge(file, [v for _, v in lines]) if lines else []):
            is_ = (a["decide"], quiet(a.get("code", "")), a.get("rule", "-"))
            if is_ != told(e)[:3] if side == "old" else is_ != told(e)[3:]:
                return f"witness: diff says {told(e)} of {v}, the judge {side} {a}"
    for e in entries:
        if "text" not in e and e["old"]["decide"] != e["new"]["decide"]:
            if (RANK[e["new"]["decide"]] > RANK[e["old"]["decide"]]) != (e["kind"] == "widened"):
                return f"direction: {e['kind']} {told(e)}"
    return ""


ASPECT = {"credential": "credential", "reason": "reason", "within": "within", "messages": "messages", "limits": "limits"}


def missed(entries, v, a, b):
    """Why the difference of two decisions is not in what diff said, or nothing."""
    if "code" not in a or "code" not in b:
        return "" if a == b else "one is refused"
    fits = [e for e in entries if told(e) == decided(a, b)]
    if "X-HTTP-Method-Override" in v[3]:  # told where it is looser, once a rule
        fits = [e for e in entries if told(e)[3::2] == decided(a, b)[3::2] and e["kind"] != "narrowed"]
        return "" if fits or RANK[a["decide"]] >= RANK[b["decide"]] else "override"
    if a["decide"] != b["decide"]:
        return "" if fits else "verdict"
    if a["decide"] == "deny":
        return ""
    for key, aspect in ASPECT.items():
        if key in ("reason", "within") and a["decide"] != "hold" or key == "messages" and not v[2].startswith("ws"):
            continue
        if key == "limits":
            strip = lambda s: sorted({x.split("/", 1)[1] for x in s.split(",") if "/" in x})
            if strip(a[key]) == strip(b[key]):
                continue
        if a[key] != b[key] and not any({aspect, "counted-anew"} & {*e["widened"], *e["narrowed"], *e["changed"]} for e in fits):
            return aspect
    return ""


def fail(i, why, *files):
    print(f"not ok pair {i} of DIFF_SEED={SEED}: {why[:3000]}")
    for f in files:
        with open(f, encoding="utf-8") as text:
            print(f"--- {os.path.basename(f)}\n{text.read()}")


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def one(i, tmp, counts):
    """False: there is something to tell."""
    r = random.Random(f"{SEED}/{i}")
    p = pairs.policy(r)
    quietly = i % 4 == 3
    q, text = pairs.same(r, p) if quietly else (pairs.edited(r, p), None)
    old, new = os.path.join(tmp, "old.yaml"), os.path.join(tmp, "new.yaml")
    write(old, json.dumps(p, indent=1))
    write(new, text or json.dumps(q, indent=1))
    said, words, took, rc = diff(old, new)
    counts["slowest"] = max(counts["slowest"], round(took, 1))
    if rc == 3:
        counts["refused"] += 1
        counts["why"] = words[:200]
        return True
    if said is None or took > SECONDS:
        fail(i, f"exit {rc} after {took:.0f} s: {words}", old, new)
        return False
    loud = [e for e in said["entries"] if e["kind"] != "note"]
    counts["entries"] += len(loud)
    counts["partly"] += bool(said["not_fully_analysed"])
    if quietly:
        counts["silent"] += 1
        if loud or (said["not_fully_analysed"] and not counts["partly"]):
            fail(i, f"it says the same, and diff: {[told(e) if 'text' not in e else e for e in loud][:3]}", old, new)
            return False
        return True
    shown = [e for e in said["entries"] if "text" not in e]
    why = wrong_witness(shown, old, new)
    if why:
        fail(i, why, old, new)
        return False
    lines = [pairs.line(v, MONDAY) for v in pairs.requests(r, p, q, ASKED)]
    for v, a, b in zip(lines, judge(old, lines), judge(new, lines)):
        counts["judged"] += 1
        counts["let"] += a["decide"] in ("allow", "hold")
        if a.get("decide") == b.get("decide") and a["decide"] in ("deny", "refused"):
            continue
        why = "" if said["not_fully_analysed"] else missed(shown, v, a, b)
        counts["different"] += a["decide"] != b["decide"]
        if why:
            fail(i, f"missed ({why}): {json.dumps(v)}\n  old {a}\n  new {b}\n  said {[told(e) for e in shown]}", old, new)
            return False
    return True


def main():
    counts = {k: 0 for k in ("entries", "silent", "partly", "judged", "let", "different", "refused", "slowest")}
    first = int(os.environ.get("DIFF_FIRST", "0"))
    bad, began, done = 0, time.time(), 0
    with tempfile.TemporaryDirectory() as tmp:
        for i in range(first, first + PAIRS):
            if done >= LEAST and time.time() > began + MOST:
                break
            good = one(i, tmp, counts)
            done += 1
            bad += not good
            if not good and KEEP:
                for n in ("old", "new"):
                    os.rename(os.path.join(tmp, n + ".yaml"), os.path.join(KEEP, f"{i}.{n}.yaml"))
            if bad and not KEEP:
                break
    print(f"{'not ok' if bad else 'ok'} {done} of {PAIRS} pairs, DIFF_SEED={SEED}: {counts}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
