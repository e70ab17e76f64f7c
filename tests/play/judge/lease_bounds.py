#!/usr/bin/env python3
"""A lease lets through what all its layers, and all of what it came from, let through, and nothing else: random leases,
narrowed and handed down several times, random requests and other spellings of each part of them. A layer is asked for
as an allow rule of the same words, by judge_lines: what that rule does not allow in this very spelling must not pass,
and what passes with a lease passes with each one it was narrowed from. A text with one character changed passes
nowhere. And uses and rate hold in any order in which requests are asked, counted and ended.
Usage: lease_bounds.py [SEED [ROUNDS]]; a failure prints its seed."""
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import urllib.parse

TOP = pathlib.Path(os.environ.get("srcdir", "."))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "policy"))
import respell  # noqa: E402

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 4
SPELLINGS = 24  # of each request
R = random.Random(SEED)
EFFECTS = ["read", "write", "delete"]
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RATE_MS = 60000


def fail(words):
    print(f"not ok seed {SEED}: {words}"[:20000])
    sys.exit(1)


def policy(rule):
    credential = {"source": {"store": "leased"}, "inject": {"header": "Authorization", "format": "Bearer {}"}, "lease": "github",
                  "require_lease": True, "only": [{"host": h} for h in respell.HOSTS]}
    return json.dumps({"version": 1, "packs": ["npm@1"], "credentials": {"leased": credential}, "rules": [rule]}, ensure_ascii=False)


def everything():
    return {"id": "all", "match": {"host": respell.HOSTS}, "decide": "allow", "use": "leased"}


class Program:
    """One that answers a line with a line, on a policy file of its own."""

    def __init__(self, name, text):
        self.folder = tempfile.TemporaryDirectory()
        file = os.path.join(self.folder.name, "policy.yaml")
        pathlib.Path(file).write_text(text, encoding="utf-8")
        self.popen = subprocess.Popen([name, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env={**os.environ, "PACKS": str(TOP / "conf" / "packs")})

    def say(self, *command):
        self.popen.stdin.write(json.dumps(command) + "\n")
        self.popen.stdin.flush()
        answer = self.popen.stdout.readline().rstrip("\n")
        if not answer:
            fail(f"{self.popen.args[0]} ended with {self.popen.wait()} at {command}")
        return answer

    def end(self):
        self.popen.stdin.close()
        if self.popen.wait() != 0:
            fail(f"{self.popen.args[0]} ended with {self.popen.returncode}")
        self.popen.stdout.close()
        self.folder.cleanup()


# ---- leases ----

def path_bound(asked):
    words = list(R.choice(asked)["path"])
    parts = [urllib.parse.quote(w, safe=respell.SAFE_PATH) if R.random() < 0.7 else "*" for w in words]
    if R.random() < 0.4:
        parts = [*parts[:R.randint(0, len(parts) - 1)], "**"]
    return "/" + "/".join(parts)


def layer(asked):
    """Some kinds of bounds; each list is wide enough that requests on both sides of it are asked."""
    made = {}
    for key, make in (("hosts", lambda: [h + R.choice(["", "", ":443", ":8443"]) for h in respell.some(respell.HOSTS, 3)]), ("methods", lambda: respell.some(["GET", "POST", "PUT", "DELETE"], 3)),
                      ("paths", lambda: [path_bound(asked) for _ in range(R.randint(1, 4))]),
                      ("ops", lambda: respell.some(["http.get", "http.post", "http.put", "http.*", "npm.*", "npm.metadata", "http.delete"], 4)),
                      ("effects", lambda: respell.some(EFFECTS, 2))):
        if R.random() < 0.35:
            made[key] = make()
    return made


def rule_of(bounds):
    """All requests go to port 443, and a rule without a port is about that alone."""
    names = {"hosts": "host", "methods": "method", "paths": "path", "ops": "op", "effects": "effect"}
    match = {"host": respell.HOSTS, **{names[k]: v for k, v in bounds.items()}}
    match["host"] = [h.partition(":")[0] for h in match["host"] if not h.endswith(":8443")] or ["nowhere.test"]
    return {"id": "bound", "match": match, "decide": "allow", "use": "leased"}


class Leases:
    """What was given to the judge: each with all layers that hold of it, and what it is narrower than."""

    def __init__(self, judge, asked):
        self.judge, self.asked, self.n, self.layers, self.within, self.wider = judge, asked, 0, [], {}, {}

    def made(self):
        one = layer(self.asked)
        self.layers.append(one)
        return one, len(self.layers) - 1

    def do(self, *command):
        answer = self.judge.say(*command)
        if answer != "ok":
            fail(f"{command}: {answer}")

    def issue(self, layers, wider=()):
        self.n += 1
        self.do("issue", self.n, *(self.layers[i] for i in layers))
        self.within[self.n], self.wider[self.n] = set(layers), set(wider)
        return self.n

    def child(self, parent):
        one, i = self.made()
        self.n += 1
        self.do("child", self.n, parent, one)
        self.within[self.n], self.wider[self.n] = {i}, {parent}
        return self.n

    def narrow(self, n):
        one, i = self.made()
        self.do("narrow", n, one)
        self.within[n].add(i)

    def holds(self, n):
        """All layers: its own, and of what it came from, as they are now."""
        return set.union(self.within[n], *(self.holds(w) for w in self.wider[n])) if self.wider[n] else self.within[n]

    def tree(self):
        whole = self.issue([])
        first = self.issue([self.made()[1]], [whole])
        again = self.issue(sorted(self.within[first]), [first])  # the same one, narrowed twice
        self.narrow(again)
        self.narrow(again)
        child = self.child(first)
        grandchild = self.child(child)
        self.narrow(child)  # later, and holds of what came from it all the same
        return [whole, first, again, child, grandchild]


# ---- bounds ----

def bounds(counts):
    asked = respell.ASKED[:] = [respell.request() for _ in range(16)]
    lines = [respell.line(q) for q in asked]
    for q in asked:
        others = [s for _, s in respell.spellings(q)]
        lines += R.sample(others, min(SPELLINGS, len(others)))
    judge = Program("tests/play/lease_lines", policy(everything()))
    leases = Leases(judge, asked)
    ids = leases.tree()
    allowed = []
    for one in leases.layers:
        reference = Program("tests/policy/judge_lines", policy(rule_of(one)))
        allowed.append([reference.say(*line[:5]).startswith("allow ") for line in lines])
        reference.end()
    passed = {n: [judge.say("try", n, -1, "", *line[1:5]) for line in lines] for n in ids}
    for k, line in enumerate(lines):
        for n in ids:
            inside = all(allowed[i][k] for i in leases.holds(n))
            got = passed[n][k]
            counts["asked"] += 1
            counts["inside"] += inside and got == "sent"
            counts["outside"] += not inside
            counts["stricter"] += inside and got == "lease-not-for-this"
            if got == "sent" and not inside:
                fail(f"{line[1:5]} passed with a lease of {[leases.layers[i] for i in leases.holds(n)]}")
            for w in leases.wider[n]:
                if got == "sent" and passed[w][k] != "sent":
                    fail(f"{line[1:5]} passed with the narrower lease of {[leases.layers[i] for i in leases.holds(n)]}, and with the wider one it is {passed[w][k]}")
    changed(judge, ids[0], lines[0], counts)
    judge.end()


def changed(judge, n, line, counts):
    """Each character of the text in turn: those of the prefix and the tag, those that say which it is, the checksum."""
    for at in range(40):
        got = judge.say("try", n, at, R.choice(ALPHABET), *line[1:5])
        counts["changed"] += 1
        if got not in ("lease-required", "lease-unknown"):
            fail(f"a lease changed at {at} is {got}")


# ---- counts ----

class Counted:
    """What a lease may still do, kept as simply as can be. What is bound later is counted from then on."""

    def __init__(self, parent, uses, rate):
        self.parent, self.uses, self.rate = parent, uses, rate
        self.used, self.rated = {}, {}  # what was let through while it had that bound: when

    def up(self):
        """It, and all it came from, with the bounds of now."""
        return [(self, self.uses, self.rate), *(self.parent.up() if self.parent else ())]


def has_room(bounds_then, now):
    return all((not uses or len(c.used) < uses) and (not rate or sum(t > now - RATE_MS for t in c.rated.values()) < rate)
               for c, uses, rate in bounds_then)


class Counting:
    """Requests that are asked for, counted and ended in any order, with leases that came from one another."""

    def __init__(self, counts):
        self.counts, self.judge, self.told, self.now, self.serial = counts, Program("tests/play/lease_lines", policy(everything())), [], 0, 0
        self.waiting, self.sent = {}, {}

    def issue(self):
        n, bound = len(self.told), {k: v for k, v in (("uses", R.randint(1, 20)), ("rate", R.randint(1, 8))) if R.random() < 0.7} or {"uses": 9}
        parent = R.randrange(n) if n and R.random() < 0.6 else None
        self.told.append(Counted(None if parent is None else self.told[parent], bound.get("uses"), bound.get("rate")))
        if self.judge.say(*(["issue", n] if parent is None else ["child", n, parent]), bound) != "ok":
            fail("a lease is not issued")

    def narrow(self):
        n, uses = R.randrange(len(self.told)), R.randint(1, 20)
        if self.judge.say("narrow", n, {"uses": uses}) == "ok":  # not more often than one can be
            self.told[n].uses = min(uses, self.told[n].uses or uses)

    def ask(self):
        x, n = min({*range(1, 60)} - set(self.waiting) - set(self.sent), default=None), R.randrange(len(self.told))
        if x is None:
            return
        got = self.judge.say("ask", x, n, -1, "", "GET", "https://a.test/v1", "", None)
        if got != "asks":
            fail(f"a request with a lease that counts is {got} before it was counted")
        self.waiting[x] = self.told[n].up()

    def count(self):
        x = R.choice(list(self.waiting))
        then = self.waiting.pop(x)
        room, got = has_room(then, self.now), self.judge.say("ledger", x)
        self.counts["let through" if room else "past"] += 1
        if got != ("sent" if room else "lease-used-up"):
            fail(f"at {self.now} it is {got}, of {[(uses, c.used, rate, c.rated) for c, uses, rate in then]}")
        if room:
            self.serial += 1
            self.sent[x] = self.serial, then
            for c, uses, rate in then:
                c.used.update({self.serial: self.now} if uses else {})
                c.rated.update({self.serial: self.now} if rate else {})

    def end(self):
        x, how = R.choice(list(self.sent)), R.choice(["answered", "not-sent", "unknown"])
        serial, then = self.sent.pop(x)
        if self.judge.say("end", x, how) != "ended":
            fail("an exchange does not end")
        for c, _, _ in then if how == "not-sent" else ():
            c.used.pop(serial, None)
            c.rated.pop(serial, None)

    def pass_time(self):
        while self.waiting:  # nobody waits so long for the ledger
            self.count()
        ms = R.choice([1, 1000, 20000, 60000])
        self.now += ms
        self.judge.say("time", ms)

    def run(self):
        for _ in range(4):
            self.issue()
        for _ in range(250):
            what = R.random()
            if what < 0.4:
                self.ask()
            elif what < 0.75:
                if self.waiting:
                    self.count()
            elif what < 0.92:
                if self.sent:
                    self.end()
            elif what < 0.95:
                self.narrow()
            else:
                self.pass_time()
        self.judge.end()


def main():
    counts = collections.Counter()
    for _ in range(ROUNDS):
        bounds(counts)
        Counting(counts).run()
    wanted = {"inside": 60, "outside": 100, "changed": 40, "past": 5, "let through": 5}
    if any(counts[k] < n * ROUNDS for k, n in wanted.items()) or counts["stricter"] > counts["inside"] / 50:
        fail(f"the generator makes too little of something, or leases refuse what is inside: {dict(counts)}")
    print(f"ok {ROUNDS} trees of leases, seed {SEED}: {dict(counts)}")


if __name__ == "__main__":
    main()
