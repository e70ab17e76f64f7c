#!/usr/bin/python3
"""when: against Python's own zoneinfo: random instants, and those around every change of a zone's clock (gaps, folds,
half hours, a day left out, negative summer time, Ramadan), in windows of every kind. Rules are asked through
`countersign policy test`, at: TIME."""
import datetime as dt
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import zoneinfo

ZONES = ["UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/St_Johns", "America/Santiago",
         "Australia/Lord_Howe", "Asia/Kathmandu", "Asia/Tehran", "Asia/Gaza", "Africa/Casablanca", "Africa/Cairo",
         "Pacific/Apia", "Pacific/Chatham", "Antarctica/Troll", "Etc/GMT+12", "Pacific/Kiritimati"]
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
FIRST, LAST = (int(dt.datetime(y, 1, 1, tzinfo=dt.timezone.utc).timestamp()) for y in (2020, 2061))
SRC = pathlib.Path(os.environ.get("srcdir", "."))
seed = int(os.environ.get("WHEN_SEED", 1))
pick = random.Random(seed)
CASES = int(os.environ.get("WHEN_CASES", 3000))


def minutes(text):
    return int(text[:2]) * 60 + int(text[3:])


def clock(m):
    return f"{m // 60:02}:{m % 60:02}"


def days(spec):
    first, _, last = spec.partition("-")
    a, b = DAYS.index(first), DAYS.index(last or first)
    return {(a + i) % 7 for i in range((b - a) % 7 + 1)}


def window():
    """A window as it is written, and what it means."""
    out = {"zone": pick.choice(ZONES)}
    if pick.random() < .7:
        out["days"] = [pick.choice(DAYS) + pick.choice(["", "-" + pick.choice(DAYS)]) for _ in range(pick.randint(1, 2))]
    if pick.random() < .8:
        out["hours"] = []
        for _ in range(pick.randint(1, 2)):
            a, b = pick.randrange(1440), pick.randrange(1441)
            out["hours"].append(f"{clock(a)}-{clock(b if b != a else 1440)}")
    return out


def fits(w, at):
    local = dt.datetime.fromtimestamp(at, zoneinfo.ZoneInfo(w["zone"]))
    on = set().union(*map(days, w["days"])) if "days" in w else set(range(7))
    today, now = local.weekday(), local.hour * 60 + local.minute
    for hours in w.get("hours", ["00:00-24:00"]):
        a, b = map(minutes, hours.split("-"))
        if a < b and today in on and a <= now < b:
            return True
        if a >= b and (today in on and now >= a or (today - 1) % 7 in on and now < b):
            return True
    return False


def changes(zone):
    """Instants at which the zone's clock is put forward or back, found by halving."""
    tz, found, at = zoneinfo.ZoneInfo(zone), [], FIRST

    def off(t):
        return dt.datetime.fromtimestamp(t, tz).utcoffset()
    while at < LAST - 1:
        to = min(at + 7 * 86400, LAST - 1)
        if off(at) != off(to):
            lo, hi = at, to
            while hi - lo > 1:
                mid = (lo + hi) // 2
                lo, hi = (mid, hi) if off(mid) == off(lo) else (lo, mid)
            found.append(hi)
        at = to
    return found


CHANGES = {z: changes(z) for z in ZONES}


def instant(w):
    near = [c for v in w for c in CHANGES[v["zone"]]]
    if near and pick.random() < .5:
        at = pick.choice(near) + pick.choice([-1, 0, 1, pick.randint(-90000, 90000)])
    else:
        at = pick.randrange(FIRST, LAST)
    return min(max(at, FIRST), LAST - 1)


def text(w):
    return "{ " + ", ".join(f"{k}: {v if k == 'zone' else '[' + ', '.join(chr(34) + x + chr(34) for x in v) + ']'}"
                            for k, v in w.items()) + " }"


rules, cases = ["version: 1", "rules:"], ["policy: p.yaml", "cases:"]
asked = []
for i in range(CASES // 10):
    w = [window() for _ in range(pick.choice([1, 1, 2, 3]))]
    rules.append(f"  - {{ id: r{i}, match: {{ host: h{i}.test }}, decide: hold, when: [{', '.join(map(text, w))}] }}")
    for _ in range(10):
        at = instant(w)
        want = "hold" if any(fits(v, at) for v in w) else "deny"
        when = dt.datetime.fromtimestamp(at, dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        cases.append(f'  - {{ name: c, at: {when}, request: {{ method: GET, url: "https://h{i}.test/" }}, '
                     f"expect: {{ decide: {want} }} }}")
        asked.append(want)
with tempfile.TemporaryDirectory() as where:
    pathlib.Path(where, "p.yaml").write_text("\n".join(rules) + "\n")
    pathlib.Path(where, "p_test.yaml").write_text("\n".join(cases) + "\n")
    run = subprocess.run(["./countersign", "policy", "test", "--packs", SRC / "conf/packs", f"{where}/p_test.yaml"],
                         capture_output=True, text=True)
held = asked.count("hold")
good = run.returncode == 0 and f"{len(asked)} passed, 0 failed" in run.stdout and 0.1 < held / len(asked) < 0.9
failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED")][:5]
print(f"{'ok' if good else 'not ok'} {len(asked)} instants, {held} in force, {len(ZONES)} zones"
      f"{'' if good else f' (WHEN_SEED={seed}): {failed} {run.stderr[:300]}'}")
sys.exit(not good)
