#!/usr/bin/env python3
"""One table: what `countersign help --json` says is what the programs take, what the man pages tell and what is completed.

usage: verbs.py      in the build directory; SRC: the source tree
"""
import json
import os
import pathlib
import re
import subprocess
import sys

SRC = pathlib.Path(os.environ.get("srcdir", "."))
PROGRAM = "./countersign"
COMMON = {"json", "state-dir"}
PAGES = [SRC / page for page in ("cli/countersign.1", "cli/countersign-sandbox.7", "sandbox-shim/run/countersign-run.1",
                                 "proxy/parent/countersignd.8", "policy/countersign-policy.5")]


def run(*args):
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def items(page):
    """What the list of verbs says of each: (its words and arguments, all of its text)."""
    item = None
    for line in page.read_text().splitlines():
        if line.startswith(".It Cm "):
            if item:
                yield item
            item = (line[len(".It Cm "):], line + "\n")
        elif line.startswith((".El", ".It")) and item:
            yield item
            item = None
        elif item:
            item = (item[0], item[1] + line + "\n")


def flags(text):
    """--name stands there as `Fl -name`, or further in the same row as `-name`."""
    found = set()
    for line in text.splitlines():
        if re.search(r"\bFl\b", line):
            found |= set(re.findall(r"(?:^|\s)-([a-z][a-z-]+)", line))
    return found


def of_others(text, table):
    """Without `Cm VERB Fl -option`: another verb's option, which that verb must have."""
    takes = {v["name"]: {o["name"] for o in v["options"]} for v in table}

    def other(m):
        assert m[2] in takes.get(m[1], ()), f"countersign(1) speaks of `{m[1]}` --{m[2]}, which there is not"
        return ""
    return re.sub(r"^\.Cm ([a-z ]+) Fl -([a-z-]+)", other, text, flags=re.M)


def check_pages(table):
    told = {}
    for head, text in items(PAGES[0]):
        name = max((v["name"] for v in table if (head + " ").startswith(v["name"] + " ")), key=len, default=None)
        assert name, f"countersign(1) tells of a verb that is none: {head}"
        told[name] = told.get(name, "") + of_others(text, table)
    elsewhere = set().union(*(flags(p.read_text()) for p in PAGES[1:]))
    for v in table:
        assert v["name"] in told, f"countersign(1) does not tell of `{v['name']}`"
        own = {o["name"] for o in v["options"]} - COMMON
        here = flags(told[v["name"]]) - COMMON
        refers = ".Xr" in told[v["name"]] or v["name"].startswith("policy ")
        missing = own - here - (elsewhere if refers else set())
        assert not missing, f"no page tells of `{v['name']}` --{' --'.join(sorted(missing))}"
        assert here <= own, f"countersign(1) tells of `{v['name']}` --{' --'.join(sorted(here - own))}, which it does not take"
    print(f"{len(table)} verbs are told as they are")


def check_help(table):
    """Each verb's help names its options; one that it has not is refused, and one that is nearly right is suggested."""
    for v in table:
        words = v["name"].split()
        done = run(*words, "--help")
        assert done.returncode == 0 and not done.stderr, (words, done)
        for o in v["options"]:
            assert re.search(rf"--{re.escape(o['name'])}\b", done.stdout), (words, o)
        assert v["help"] in done.stdout and f"countersign {v['name']}" in done.stdout, words
        assert run("help", *words).stdout == done.stdout, words
        if any(o["name"] == "state-dir" for o in v["options"]):
            assert run(*words, "--state-dir", "x", "--help").stdout == done.stdout, words
        done = run(*words, "--no-such-option")
        assert done.returncode == 2 and "is no option of it" in done.stderr, (words, done)
        for o in v["options"]:
            if o.get("choices"):
                done = run(*words, f"--{o['name']}", "no-such-value")
                assert done.returncode == 2 and o["choices"] in done.stderr, (words, o, done)
    listed = run("--help").stdout.splitlines()[2:-2]
    assert len({line.index(re.split(r"\s{2,}", line.strip(), maxsplit=1)[1]) for line in listed}) == 1, listed  # one column
    for wrong, right in (("aprovals list", "`approvals`"), ("approvals lst", "`approvals list`"), ("polcy", "`policy`"),
                         ("stauts", "`status`"), ("secret add", "`secret set`"), ("approvals ls", "`approvals list`"),
                         ("lease crate x", "`lease issue`"), ("lease delete x", "`lease revoke`"), ("secret get", "`secret set`"),
                         ("start", "`up`"), ("policy lint", "`policy check`"), ("approve 8z3k", "`approvals approve`"), ("aproove", "`approvals approve`"),
                         ("show 8z3k", "`policy show`, `lease show`, `approvals show`, `runs show` or `ca show`")):
        done = run(*wrong.split())
        assert done.returncode == 2 and f"; did you mean {right}? `" in done.stderr, (wrong, done)
    done = run("stop")
    assert done.returncode == 2 and "; what `up` started ends with Ctrl-C" in done.stderr, done
    for wrong in ("foo", "deny8z3k", "xy"):  # like nothing there is
        done = run(wrong)
        assert done.returncode == 2 and "did you mean" not in done.stderr and f"no verb `{wrong}`. `" in done.stderr, done
    for wrong, said in (("run --polcy x -- true", "run: --polcy is no option of it; did you mean --policy?"),
                        ("run --policy", "run: --policy needs a value: FILE"), ("run --quiet", "run: CMD is missing"),
                        ("up --quite", "up: --quite is no option of it; did you mean --quiet?"),
                        ("log debgu", "log: `debgu` is one word too many; did you mean --level debug?"),
                        ("status now", "status: `now` is one word too many"), ("approvals show", "show: ID is missing"),
                        ("secret set", "secret set: NAME is missing"), ("policy test", "policy test: FILE_test.yaml is missing"),
                        ("policy check", "policy check: FILE is missing"), ("policy rollback", "DIGEST is missing"),
                        ("policy diff one", "it needs an OLD and a NEW policy"), ("env", "NAME is missing"),
                        ("doctor --direct a:1", "--direct needs --from-sandbox")):
        done = run(*wrong.split())
        first = done.stderr.splitlines()[0] if done.stderr else ""
        assert done.returncode == 2 and first.startswith("countersign ") and said in first, (wrong, done)
        assert "usage: countersign" in done.stderr, (wrong, done)
    done = run("run", "--bwrap", "/nowhere", "--", "true", "--polcy")  # what follows the command is the command's
    assert "--polcy" not in done.stderr, done
    done = run("run", "--bwrap", "/nowhere", "true", "--polcy")
    assert "--polcy" not in done.stderr, done
    done = run("policy", "explain", *["--header", "A: b"] * 65, "GET", "https://a.example/", "none.yaml")
    assert done.returncode == 2 and "too many options" in done.stderr, done  # none is left out silently
    done = run("doctor", "--from-sandbox", *["--direct", "127.0.0.1:1"] * 9)
    assert done.returncode == 2 and "usage:" in done.stderr, done
    done = run("approvals", "list", "--stat", "pending")
    assert done.returncode == 2 and "did you mean --state?" in done.stderr, done
    print("help, and what is said of what is wrong")


def check_own_readers(table):
    """`up` and `run` read their options themselves: the same ones as the table says, and no others."""
    for name, source in (("up", "proxy/parent/parent.c"), ("run", "sandbox-shim/run/run.c")):
        row = next(v for v in table if v["name"] == name)
        taken = {(n, kind == "required_argument") for n, kind in
                 re.findall(r'\{"([a-z-]+)", (required_argument|no_argument)', (SRC / source).read_text())}
        assert taken == {(o["name"], "arg" in o) for o in row["options"]}, (name, taken)
    print("up and run take what the table says")


def check_completion(table):
    script = run("completion", "bash").stdout
    for shell in ("bash", "zsh", "fish"):
        done = run("completion", shell)
        assert done.returncode == 0 and done.stdout, shell
    asked = [["ap"], ["approvals", ""], ["policy", "ch"], ["approvals", "list", "--state", "de"], ["env", "ci", "--format", ""]]
    asked += [v["name"].split() + ["--"] for v in table]
    lines = "\n".join("COMP_WORDS=(countersign " + " ".join(f"'{w}'" for w in words) + f"); COMP_CWORD={len(words)}; COMPREPLY=(); "
                      "_countersign; echo \"${COMPREPLY[*]}\"" for words in asked)
    done = subprocess.run(["bash", "-c", script + lines], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    got = [line.split() for line in done.stdout.splitlines()]
    assert got[:5] == [["approvals"], ["list", "show", "approve", "deny", "metrics", "claim", "unclaim", "watch"], ["check"], ["denied", "decided"],
                       ["shell", "docker", "compose", "kubernetes", "github"]], got[:5]
    for v, words in zip(table, got[5:]):
        assert words == [f"--{o['name']}" for o in v["options"]], (v["name"], words)
    assert run("completion", "tcsh").returncode == 2
    print("completions are those of the table")


def main():
    table = json.loads(run("help", "--json").stdout)
    assert len(table) > 30 and len({v["name"] for v in table}) == len(table)
    check_pages(table)
    check_help(table)
    check_own_readers(table)
    check_completion(table)


if __name__ == "__main__":
    sys.exit(main())
