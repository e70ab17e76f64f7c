#!/usr/bin/env python3
"""Our parser of GraphQL beside the reference implementation, npm's graphql: of every document that ours takes, the other must take it too
and read the same operations, fields at their tops and arguments. That ours refuses more is meant; it is only counted.

usage: graphql.py GRAPHQL_PROGRAM [--seed N] [--documents N] [--show]
Needs node and npm (conf/need test).
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e" / "lab")]
from lab.servers import npm_modules

NAMES = ["a", "b", "createIssue", "query", "mutation", "subscription", "fragment", "on", "true", "null", "_x9", "Type"]
PIECES = ["{", "}", "(", ")", "[", "]", ":", "$", "!", "@", "=", "|", "&", "...", "..", "\"", "\"\"\"", "\\", "\\\"\"\"", "#", ",", "\n", "\r", "\r\n", "\t", " ", "\ufeff",
          "\u2028", "\u00a0", "\x0b", "\x00", "\x7f", "é", "🙂", "\\u0041", "\\ud83d\\ude00", "\\u{1F600}", "\\ud800", "0", "01", "-1", "1.5e3", "1.", "query", "mutation", "on", "a",
          "fragment F on T { a }", "...F", "{ b }", "(a: 1)", "$v", "true"]


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def name(self):
        return self.rng.choice(NAMES)

    def blank(self):
        return self.rng.choice([" ", " ", " ", "", ",", "\n", "\r\n", "\t", "#x \"{\n", "\ufeff"])

    def text(self):
        r = self.rng
        inner = "".join(r.choice(["a", "mutation {x}", "\\\"", "\\n", "\\u0041", "\\ud83d\\ude00", "\\u{41}", "é", "🙂", "\t", " ", "#", "{"]) for _ in range(r.randint(0, 5)))
        if r.random() < 0.6:
            return f'"{inner}"'
        lines = [r.choice(["", " ", "  ", "\t", "   "]) + r.choice(["", "a", "b c", "\\\"\"\"", "\"q\" ", "\\n", "é"]) for _ in range(r.randint(0, 6))]
        return '"""' + r.choice(["\n", "\n", "\n", "\r\n"]).join(lines) + '"""'

    def value(self, depth, constant):
        r = self.rng
        kind = r.choice(["name", "int", "float", "text", "text", "list", "object", "variable"])
        if kind == "variable" and not constant:
            return "$" + self.name()
        if kind == "list" and depth:
            return "[" + self.blank().join(" " + self.value(depth - 1, constant) for _ in range(r.randint(0, 3))) + "]"
        if kind == "object" and depth:
            return "{" + " ".join(f"{n}:{self.blank()}{self.value(depth - 1, constant)}" for n in set(r.choices(NAMES, k=r.randint(0, 3)))) + "}"
        return {"int": r.choice(["0", "-0", "12", "-7"]), "float": r.choice(["1.5", "0e1", "-1E+5", "2.0e-3"]), "text": self.text()}.get(kind, self.name())

    def arguments(self, constant=False):
        some = sorted(set(self.rng.choices(NAMES, k=self.rng.randint(1, 3))))
        return "(" + self.blank().join(f" {n}{self.blank()}:{self.value(2, constant)}" for n in some) + ")"

    def maybe(self, make, chance=0.3):
        return make() if self.rng.random() < chance else ""

    def directive(self):
        return f"@{self.name()}" + self.maybe(self.arguments)

    def selections(self, depth, spreads):
        r, out = self.rng, []
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if kind < 0.15 and spreads:
                out.append(f"...{r.choice(spreads)} " + self.maybe(self.directive))
            elif kind < 0.3 and depth:
                out.append("..." + self.maybe(lambda: " on Type ", 0.6) + self.maybe(self.directive) + self.selections(depth - 1, spreads))
            else:
                out.append(self.maybe(lambda: self.name() + self.blank() + ":") + self.name() + self.maybe(self.arguments) + " " + self.maybe(self.directive, 0.15)
                           + (self.maybe(lambda: self.selections(depth - 1, spreads)) if depth else ""))
        return "{" + self.blank() + " ".join(out) + self.blank() + "}"

    def variable(self, n):
        return f"$v{n}:{self.blank()}" + self.rng.choice(["Int", "[Int!]!", "[[T]]", "on!"]) + self.maybe(lambda: "=" + self.value(2, True)) + " " + self.maybe(lambda: "@d", 0.1)

    def document(self):
        r = self.rng
        fragments = [f"F{i}" for i in range(r.randint(0, 3))]
        parts = [f"fragment {f} on Type {self.maybe(self.directive, 0.1)}{self.selections(2, fragments[i + 1:])}" for i, f in enumerate(fragments)]
        names = sorted(set(r.choices(["A", "B", "C"], k=r.randint(1, 2))))
        if r.random() < 0.5:
            names = [""]
        for name in names:
            head = r.choice(["query", "mutation", "subscription"]) + " " + name + self.maybe(lambda: "(" + " ".join(self.variable(n) for n in range(r.randint(1, 3))) + ")")
            parts.append((head if name or r.random() < 0.5 else "") + self.maybe(self.directive, 0.1) + self.selections(2, fragments))
        r.shuffle(parts)
        return self.blank().join(parts)

    def changed(self, text):
        """The same with some of it gone, doubled, or something else in it."""
        r = self.rng
        for _ in range(r.randint(1, 3)):
            at, to = sorted((r.randint(0, len(text)), r.randint(0, len(text))))
            to = min(to, at + 4)
            text = text[:at] + r.choice(["", r.choice(PIECES), r.choice(PIECES), text[at:to] * 2]) + text[to if r.random() < 0.5 else at:]
        return text


def documents(seed, n):
    made = Maker(seed)
    for i in range(n):
        text = made.document()
        data = (made.changed(text) if i % 3 else text).encode()
        if i % 50 == 49:  # bytes, too
            at = made.rng.randint(0, len(data))
            data = data[:at] + made.rng.randbytes(1) + data[at:]
        yield data


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("program")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--documents", type=int, default=20000)
    options.add_argument("--show", action="store_true", help="what only ours refuses, too")
    args = options.parse_args()
    given = list(documents(args.seed, args.documents))
    lines = "".join(d.hex() + "\n" for d in given)
    modules = npm_modules(HERE / "npm") / "node_modules"
    ours = subprocess.run([args.program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    theirs = subprocess.run(["node", HERE / "graphql.js"], input=lines, capture_output=True, text=True, check=True,
                            env={**os.environ, "NODE_PATH": str(modules)}).stdout.splitlines()
    assert len(ours) == len(theirs) == len(given), (len(ours), len(theirs))
    taken = stricter = bad = 0
    for data, we, they in zip(given, ours, theirs):
        taken += we != "refused"
        stricter += we == "refused" and they != "refused"
        if we == "refused" and they != "refused" and args.show:
            print(f"only ours refuses {data!r}")
        if we not in ("refused", they):
            bad += 1
            print(f"not ok graphql: {data!r}\n  ours   {we}\n  theirs {they}")
    if taken < len(given) // 5:
        bad += 1
        print(f"not ok graphql: we took {taken} only: the comparison says nothing")
    if bad == 0:
        print(f"ok graphql: {len(given)} documents, {taken} of them taken by both and read the same, {stricter} refused by ours alone")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
