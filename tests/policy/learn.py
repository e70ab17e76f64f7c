#!/usr/bin/env python3
"""policy learn: reads that were seen are allowed, writes that were seen are held, 1,000 neighbours of them are
denied, and nothing that a sandbox sent gets out of its quotes or into the file when it looks like a secret."""
import json
import os
import pathlib
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(os.environ.get("srcdir", pathlib.Path(__file__).resolve().parents[2])).resolve()
PROGRAM = pathlib.Path("countersign").resolve()
TOKEN = "ghp0a1b2c3d4e5f6g7h8i9j0klmn"


def url(r):
    return f"{r['scheme']}://{r['host']}:{r['port']}{r['path']}"


def record(method, path, effect="read", **more):
    return {"sandbox": "ci-1", "method": method, "scheme": "https", "host": "api.test", "port": 443, "path": path,
            "verdict": "deny", "code": "no-rule", "op": "http." + method.lower(), "effect": effect, **more}


def seen():
    reads = [record("GET", f"/v1/{name}/{i}") for name in ("repos", "users") for i in range(15)]
    reads += [record("GET", "/search?q=cats&page=1"), record("GET", "/search?q=dogs&page=2"),
              record("HEAD", "/v1/x"), record("GET", "/odd/~a!$'()b:@,=/"),
              record("GET", "/plain", scheme="http", port=80), record("GET", "/port", port=8443)]
    reads += [record("GET", f"/list?page={i}") for i in range(12)]  # more values than are listed
    git = {"host": "git.test", "resource": "git:git.test/acme/app"}
    fetches = [record("GET", "/acme/app.git/info/refs?service=git-upload-pack", **{**git, "op": "git.fetch.refs"})]
    writes = [record("POST", "/v1/notes", "write", body=True, type="application/json"),
              record("PUT", "/v1/notes/1", "write", body=True), record("DELETE", "/v1/notes/1", "delete")]
    push = record("POST", "/acme/app.git/git-receive-pack", "write", body=True, refs=["create refs/heads/agent/x"],
                  **{**git, "op": "git.push"})
    return reads + fetches, writes, push


def hostile():
    for text in ('"', "\\", "\n  - id: evil\n    decide: allow", "\u202e", "\x00", "*", "**", "{x}", "a: b", "#", "\x7f"):
        for key in ("path", "method", "host", "sandbox", "effect", "resource", "op", "scheme"):
            r = record("GET", "/h")
            r[key] = ("/h" if key == "path" else "x") + text
            yield r
    yield record("GET", "/t/" + TOKEN)
    yield record("GET", "/t?key=" + TOKEN)
    yield record("GET", "/long/" + "a" * 2100)
    yield record("GET", "/ws", "write", upgrade=True)
    yield record("GET", "/a//b")
    yield record("GET", "/a?b=1&b=2")
    yield record("GET", "/a?b")
    yield record("GET", "/a?")


def lines(records):
    return "".join(json.dumps({"seq": i + 1, "time": "2026-11-22T10:00:00.000Z", "kind": "denied",
                               "exchange": f"x-{i}", **r}) + "\n" for i, r in enumerate(records))


def neighbours(r):
    """Other requests, each of which differs in one thing."""
    path, _, query = r["path"].partition("?")
    last, fetch = path.rstrip("/"), path.endswith("/info/refs")
    for to in (last + "x", last + "/more", "/" + last.lstrip("/")[1:], last.upper(), last[:-1] + "_", "/", "/other"):
        yield {"path": to + ("?" + query if query else "")}
    for to in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "GET", "HEAD"):
        yield {"method": to}
    for to in ("more=1", "q=fish&page=1", "q=cats&page=1&x=1", "q=cats&q=fish&page=1"):
        yield {"path": path + "?" + to}
    for to in ("other.test", "x.api.test", "api.test.evil.test"):
        yield {"host": to}
    yield {"port": 9443}
    yield {"scheme": "http" if r["scheme"] == "https" else "https", "port": r["port"]}
    if r["effect"] == "read" and not fetch:
        yield {"body": True}
        yield {"upgrade": True}


def key(r):
    return (r["method"], r["scheme"], r["host"], r["port"], r["path"], r["effect"] == "read" and bool(r.get("body")),
            bool(r.get("upgrade")))


def case(r, decide):
    request = {"method": r["method"], "url": url(r)}
    if r.get("upgrade"):
        request["headers"] = {"Upgrade": ["websocket"], "Connection": ["Upgrade"]}
    if r.get("body"):
        request["body"] = "x"
    return {"name": f"{decide} {r['method']} {url(r)}", "request": request, "as": {"sandbox": "ci-1"},
            "expect": {"decide": decide}}


def push_case(ref, decide, old=None, new=None):
    one = {"name": ref, **({"old": old} if old else {}), **({"new": new} if new else {})}
    return {"name": f"push {ref} {old} {new}", "as": {"sandbox": "ci-1"}, "expect": {"decide": decide},
            "git_push": {"url": "https://git.test/acme/app.git", "refs": [one]}}


def writes_no_file():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def run(*args, rc=0, stdin=None):
    done = subprocess.run([PROGRAM, "policy", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          input=stdin, preexec_fn=writes_no_file if args[0] == "learn" else None)
    assert done.returncode == rc, (args, done.returncode, "\n".join(l for l in done.stdout.decode().splitlines() if not l.startswith("ok "))[-3000:], done.stderr[-3000:])
    return done.stdout.decode(), done.stderr.decode()


def patched(here, file, packs):
    """--patch, on files that have their rules in several places; --as."""
    head, policy = "version: 1\npacks: [git@1]\n", here / "policy.yaml"
    if not shutil.which("patch"):
        print("ok policy learn --patch # skip no patch(1) here")
        return
    rule = "- id: a\n{0}  match: {{ host: a.test, effect: read }}\n{0}  decide: allow\n{0}  say: |\n{0}    # words\n"
    scope = "scopes:\n  ci: { sandboxes: [ci-*] }\n"
    (here / "more.yaml").write_text("version: 1\nrules:\n  " + rule.format("  ").replace("id: a", "id: more"), encoding="utf-8")
    flow = "rules: [{ id: a, match: { host: a.test, effect: read }, decide: allow }]\n"
    for text, empty in ((head + "rules:\n  " + rule.format("  "), None), (head + "rules: # mine\n" + rule.format("") + scope, None),
                        (head + "rules:\n\n      " + rule.format("      ") + "\n# about scopes\n" + scope, None),
                        ("rules:\n  # one\n  " + rule.format("  ") + "  # the end\n" + head, None), (head, None),
                        (head + scope + "# rules: []\n", None), (head + "rules: []\n", "rules:\n"),
                        (head + "rules: [ ]  # none: yet\n" + scope, "rules:  # none: yet\n"), ("rules:    []\n" + head, "rules:\n"),
                        (head + "include: [more.yaml]\nrules: []\n", "rules:\n")):
        policy.write_bytes(text.encode())
        diff, _ = run("learn", "--from", file, "--policy", policy, "--patch", *packs)
        assert policy.read_bytes() == text.encode() and diff.startswith("--- "), diff
        told = json.loads(run("learn", "--from", file, "--policy", policy, "--patch", "--json", *packs)[0])
        assert told["patch"] == diff and diff.count("- id:") == len(told["rules"]), told
        subprocess.run(["patch", "-s", "-p0", str(policy)], input=diff.encode(), cwd=here, check=True)
        run("check", *packs, policy)
        kept = policy.read_bytes().decode().splitlines(True)
        gone = [l for l in text.splitlines(True) if l not in kept]
        assert len(gone) == (empty is not None) and (empty is None or gone[0].startswith("rules:") and empty in kept), (gone, kept)
        again, _ = run("learn", "--from", file, "--policy", policy, "--patch", *packs)
        assert again == "", again
    assert run("learn", "--from", file, "--as", "other-*", *packs)[0].count("- id:") == 0
    assert run("learn", "--from", file, "--as", "ci-*", *packs)[0].count("- id:") > 30
    for text, words in ((head + flow, "is not a list of lines"), (head + "rules: [\n]\n", "is not a list of lines"),
                        (head + "rules:\n  []\n", "is not a list of lines"), (head + "rules: []", "has no line end"),
                        (head + '"rules": []\n', "would not be valid with it"), ("{ version: 1, packs: [git@1] }\n", "would not be valid with it"),
                        (head + "...\n", "would not be valid with it"),
                        (head + 'name: "a\nrules: []\nb"\n', "would not be valid with it"),
                        (head + "rules:\n  " + rule.format("  ").rstrip(), "has no line end")):
        policy.write_text(text, encoding="utf-8")
        _, said = run("learn", "--from", file, "--policy", policy, "--patch", *packs, rc=1)
        assert words in said, said
        told = json.loads(run("learn", "--from", file, "--policy", policy, "--patch", "--json", *packs, rc=1)[0])
        assert words in told["no_patch"] and "patch" not in told and told["rules"], told
    run("learn", "--from", file, "--patch", *packs, rc=2)
    print("ok policy learn --patch")


def as_json(here, file, learned, packs):
    """--json: the same rules, by the policy that they make; what was warned of and left out, with codes."""
    said = json.loads(run("learn", "--from", file, "--json", *packs)[0])
    again, rules = here / "again.yaml", said["rules"]
    keys = {"id", "match", "decide", "use", "scope"}
    again.write_text(json.dumps({"version": 1, "name": "learned", "packs": said["packs"], "rules": [
        {k: v for k, v in r.items() if k in keys} for r in rules]}), encoding="utf-8")
    assert json.loads(run("diff", "--json", "--fail-on", "any", *packs, learned, again)[0])["entries"] == []
    assert run("check", "--json", *packs, learned)[0].count('"code"') == 0
    assert all(r["first_seen"] == r["last_seen"] == "2026-11-22T10:00:00Z" and r["sandboxes"] == ["ci-1"] for r in rules)
    pages = next(r for r in rules if r["match"].get("path") == "/list")
    assert pages["count"] == 12 and pages["match"]["query"] == {"page": ["*"]} and pages["decide"] == "allow", pages
    held = [r["id"] for r in rules if r["decide"] == "hold"]
    assert [(w["code"], w["rule"]) for w in said["warnings"]] == [("held-write", id_) for id_ in held] and len(held) == 4
    assert said["requests"] == sum(r["count"] for r in rules) and said["left_out"] == [] and "patch" not in said, said
    # with a policy that is no policy, without a store
    assert json.loads(run("learn", "--from", file, "--policy", file, "--json", *packs, rc=3)[0])["valid"] is False
    assert run("learn", "--state-dir", here / "none", "--json", *packs, rc=4)[0] == ""
    print("ok policy learn --json")


WITH_KEYS = """version: 1
name: mine
packs: [{ pack: git@1 }]
upstreams: [{ host: clear.test, port: 80, cleartext_credentials: true }]
credentials:
  api: { source: { env: A }, inject: { basic: true }, only: [{ host: api.test, path: "/v1/**" }, { host: clear.test, scheme: http },
         { host: open.test, scheme: http }] }
  forge: { source: { env: F }, inject: { basic: true }, only: [{ host: git.test, path: "/acme/**" }, { host: git.test, path: "/half/x.git/info/refs" }] }
rules:
  - { id: other, match: { host: other.test, method: GET, path: / }, decide: allow }
"""


def credentials(here, packs):
    """use: where every request went with one credential, which the policy has and lets go there; else the words."""
    file, policy, both = here / "used.jsonl", here / "keys.yaml", here / "both.yaml"
    policy.write_text(WITH_KEYS, encoding="utf-8")
    through = {"verdict": "allow", "code": "rule"}
    git = {"host": "git.test", **through, "credential": "forge"}
    fetch = {**git, "op": "git.fetch.refs"}
    asked = [
        ("api", record("GET", "/v1/a", credential="api", **through), record("GET", "/v1/a")),
        ("api", record("POST", "/v1/a", "write", body=True, credential="api", verdict="hold", code="rule")),
        ("api", record("GET", "/c", scheme="http", port=80, **{**through, "host": "clear.test"}, credential="api")),
        ("api", record("GET", "/v1/shadow", credential="api", **through), record("GET", "/v1/shadow", **through, enforced=False),
         record("GET", "/v1/shadow", **{**through, "code": "learning"})),
        ("forge", record("GET", "/acme/app.git/info/refs?service=git-upload-pack", resource="git:git.test/acme/app", **fetch)),
        ("credential-not-for-here", record("GET", "/half/x.git/info/refs?service=git-upload-pack", resource="git:git.test/half/x", **fetch)),
        ("credential-not-for-here", record("GET", "/v2/a", credential="api", **through)),
        ("credential-cleartext", record("GET", "/c", scheme="http", port=80, **{**through, "host": "open.test"}, credential="api")),
        ("credential-unknown", record("GET", "/v1/b", credential="gone", **through)),
        ("ambiguous-credential", record("GET", "/v1/c", credential="api", **through), record("GET", "/v1/c", credential="forge", **through)),
        ("credential-sometimes", record("GET", "/v1/d", credential="api", **through), record("GET", "/v1/d", **through)),
        (None, record("GET", "/v1/e", **through))]
    file.write_text(lines([r for _, *some in asked for r in some]), encoding="utf-8")
    said = json.loads(run("learn", "--from", file, "--policy", policy, "--json", *packs)[0])
    assert said["left_out"] == [] and len(said["rules"]) == len(asked), said
    for rule, (want, *some) in zip(said["rules"], asked):
        codes = [w["code"] for w in said["warnings"] if w["rule"] == rule["id"] and w["code"] != "held-write"]
        assert (rule.get("use"), codes) in ((want, []), (None, [want] if want else [])), (rule, codes, want)
        assert rule["credentials"] == sorted({r["credential"] for r in some if "credential" in r}), rule
    text, _ = run("learn", "--from", file, "--policy", policy, *packs)
    assert text.count('    use: "api"') == 4 and text.count('    use: "forge"') == 1 and text.count("this rule sends it without") == 6, text
    both.write_text(WITH_KEYS + text, encoding="utf-8")
    assert "P106" not in run("check", "--json", *packs, both)[0]
    text, _ = run("learn", "--from", file, *packs)
    assert "use:" not in text.replace("use: narrow", "") and text.count("  # it went with the credential api, and without --policy") == 6, text
    # an id that was taken and narrowed stays that rule's
    taken = said["rules"][0]["id"]
    policy.write_text(WITH_KEYS + f"  - {{ id: {taken}, match: {{ host: narrow.test, method: GET, path: / }}, decide: allow }}\n", encoding="utf-8")
    again = json.loads(run("learn", "--from", file, "--policy", policy, "--json", *packs)[0])
    assert [r["id"] for r in again["rules"]] == [taken + "-2"] + [r["id"] for r in said["rules"][1:]]
    # without the pack its operations have no name
    policy.write_text("version: 1\nrules: [{ id: x, match: { host: x.test, method: GET, path: / }, decide: allow }]\n", encoding="utf-8")
    again = json.loads(run("learn", "--from", file, "--policy", policy, "--json", *packs)[0])
    assert [x["code"] for x in again["left_out"]] == ["pack-not-listed"] * 2, again["left_out"]
    # what it lets through while it learns has no rule; a sandbox whose labels decide is not guessed about
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    policy.write_text(WITH_KEYS + f"learning: until {soon}\n", encoding="utf-8")
    again = json.loads(run("learn", "--from", file, "--policy", policy, "--json", *packs)[0])
    assert again["let_through"] == 0 and again["rules"] == said["rules"], again
    policy.write_text(WITH_KEYS + "scopes: { eng: { labels: { team: [eng] }, regions: [eu] } }\n", encoding="utf-8")
    again = json.loads(run("learn", "--from", file, "--policy", policy, "--json", *packs)[0])
    assert again["rules"] == [] and [(x["code"], x["count"]) for x in again["left_out"]] == [("labels-not-known", 17)], again
    policy.write_text(WITH_KEYS + "scopes: { eng: { sandboxes: [ci-1], regions: [eu] } }\n", encoding="utf-8")
    again = json.loads(run("learn", "--from", file, "--policy", policy, "--json", *packs)[0])
    assert again["rules"] == [] and {x["code"] for x in again["left_out"]} == {"residency"}, again
    print("ok policy learn: credentials")


def never_sent(here, packs):
    """The credential of what was never sent is none that it went with; what an operator denied is not proposed as allow."""
    file, policy = here / "unsent.jsonl", here / "unsent.yaml"
    policy.write_text(WITH_KEYS, encoding="utf-8")
    api, waits = {"credential": "api"}, {"verdict": "hold", "code": "rule"}
    opened = {"kind": "ticket-opened", **waits, **api}

    def held(path, method="GET", effect="read", **end):
        """A ticket that was opened, and how it ended: with all of its request in both, and a refusal of the one that waited."""
        r = record(method, path, effect, ticket="t" + path, request="d" + path, **{**opened, "exchange": None})
        del r["exchange"]
        return [r, {**r, **end}, {**r, "kind": "denied", "code": "ticket-" + end.get("state", "expired"), "exchange": "y" + path}]
    no, late = {"kind": "ticket-decided", "state": "denied"}, {"kind": "ticket-expired", "state": "expired"}
    rules = [  # what is proposed, with which use:, with which warnings
        ("/v1/nothere", None, ["credential-not-sent"], [record("GET", "/v1/nothere", verdict="deny", code="credential-not-here", **api)]),
        ("/v1/away", None, ["credential-not-sent"], [record("GET", "/v1/away", kind="result", outcome="not-sent", verdict="allow",
                                                          code="credential-unavailable", **api)]),
        ("/v1/once", "api", [], [record("GET", "/v1/once", verdict="allow", code="rule", **api),
                                 record("GET", "/v1/once", verdict="allow", code="credential-unavailable", **api)]),
        ("/v1/yes", "api", [], held("/v1/yes", kind="ticket-decided", state="approved")[:2]),
        ("/v1/late", "api", ["ticket-expired"], held("/v1/late", **late)),
        ("/v1/late2", None, ["ticket-expired", "credential-not-sent"], [record("GET", "/v1/late2", verdict="hold", code="ticket-expired", **api)]),
        ("/v1/write", "api", ["ticket-denied", "held-write"], held("/v1/write", "POST", "write", **no))]
    left = [held("/v1/no", **no), held("/v1/no", **no)[1::-1] + [record("GET", "/v1/no", verdict="allow", code="rule", **api)],
            [record("GET", "/v1/no2", verdict="hold", code="ticket-denied", **api)]]
    file.write_text(lines([r for *_, some in rules for r in some] + [r for some in left for r in some]), encoding="utf-8")
    said = json.loads(run("learn", "--from", file, "--policy", policy, "--json", *packs)[0])
    got = [(r["match"]["path"], r.get("use"), sorted(w["code"] for w in said["warnings"] if w["rule"] == r["id"])) for r in said["rules"]]
    assert got == [(path, use, sorted(codes)) for path, use, codes, _ in rules], got
    assert [(x["code"], x["count"]) for x in said["left_out"]] == [("ticket-denied", 3), ("ticket-denied", 1)], said["left_out"]
    assert said["requests"] == sum(x["count"] for x in said["rules"] + said["left_out"]) and said["damaged"] == 0, said
    assert [r["decide"] for r in said["rules"]] == ["allow"] * 6 + ["hold"]
    text, _ = run("learn", "--from", file, "--policy", policy, *packs)
    assert text.count("# WARNING: it was to go with a credential") == 3 and text.count("that an operator denied") == 2, text
    assert "/v1/no\"" not in text and text.count("# WARNING: one that waited") == 2, text
    # what became of a ticket is no request of its own, here as in a replay
    told = json.loads(run("replay", "--from", file, "--json", *packs, policy)[0])
    assert told["requests"] == said["requests"], told
    print("ok policy learn: what was never sent")


SCOPED = """version: 1
scopes:
  ci: { sandboxes: ["ci-*"] }
  eng: { sandboxes: ["w*"], labels: { team: [eng] } }
rules:
  - { id: other, match: { host: other.test, method: GET, path: / }, decide: allow }
  - { id: web, scope: eng, match: { host: api.test, method: GET, path: /v1/has }, decide: allow }
"""


def scopes(here, packs):
    """--scope: what its sandboxes asked, for its sandboxes; nobody's labels are guessed."""
    file, policy, both = here / "scoped.jsonl", here / "scoped.yaml", here / "scoped-both.yaml"
    policy.write_text(SCOPED, encoding="utf-8")
    asked = [record("GET", "/v1/a", sandbox="ci-1"), record("GET", "/v1/a", sandbox="ci-2"), record("GET", "/v1/has", sandbox="ci-1"),
             record("POST", "/v1/n", "write", body=True, sandbox="ci-1"), record("GET", "/v1/b", sandbox="web-1"),
             record("GET", "/v1/has", sandbox="web-1"), record("GET", "/v1/c", sandbox="web-2"), record("GET", "/v1/d", sandbox="other")]
    file.write_text(lines(asked), encoding="utf-8")
    store = here / "store" / "ledger.db"
    store.parent.mkdir()
    db = sqlite3.connect(store)
    db.executescript((TOP / "proxy/ledger/store/schema.sql").read_text(encoding="utf-8"))
    for i, line in enumerate(lines(asked).splitlines()):
        db.execute("insert into audit values (?, ?, 'denied', ?, NULL, ?, x'00')", (i + 1, 1793000000000 + i, f"x-{i}", line))
    for name, team in (("web-1", "eng"), ("web-2", "sales"), ("ci-1", "eng")):
        db.execute("insert into sandbox values (?, 's', '', '', 'run', 1, NULL, ?, 1, 1)", (name, json.dumps({"team": team})))
    db.commit()
    db.close()

    def of(source, scope):
        said = json.loads(run("learn", *source, "--policy", policy, "--scope", scope, "--json", *packs)[0])
        assert all(r["scope"] == scope for r in said["rules"]), said
        return [(r["match"]["path"], r["decide"], r["count"]) for r in said["rules"]], said
    lists, here_it_is = ["--from", file], ["--state-dir", here]
    for source in (lists, here_it_is):
        rules, said = of(source, "ci")
        assert rules == [("/v1/a", "allow", 2), ("/v1/has", "allow", 1), ("/v1/n", "hold", 1)] and said["other_sandboxes"] == 4, said
    rules, said = of(here_it_is, "eng")
    assert rules == [("/v1/b", "allow", 1)] and said["other_sandboxes"] == 6 and said["let_through"] == 1 and said["left_out"] == [], said
    rules, said = of(lists, "eng")
    assert rules == [] and [(x["code"], x["count"]) for x in said["left_out"]] == [("labels-not-known", 3)], said
    text, said = run("learn", *lists, "--policy", policy, "--scope", "ci", *packs)
    assert "4 of them were of other sandboxes" in said, said
    both.write_text(SCOPED + text, encoding="utf-8")
    cases = [{**case(r, want), "as": {"sandbox": who}} for r in asked[:4] for who, want in (
        ("ci-3", "hold" if r["effect"] == "write" else "allow"), ("web-2", "deny"), ("xci-3", "deny"))]
    (here / "scoped-both_test.yaml").write_text(json.dumps({"policy": both.name, "cases": cases}), encoding="utf-8")
    run("test", *packs, here / "scoped-both_test.yaml")
    # two scopes of one request have two rules; and all of them another
    ids = [r["id"] for scope in (["--scope", "ci"], []) for r in json.loads(
        run("learn", *lists, "--policy", policy, "--as", "ci-*", *scope, "--json", *packs)[0])["rules"]]
    assert len(ids) == 6 == len(set(ids)), ids
    assert 'no scope "CI"; it has ci, eng' in run("learn", *lists, "--policy", policy, "--scope", "CI", *packs, rc=2)[1]
    run("learn", *lists, "--scope", "ci", *packs, rc=2)
    # one reader of options for all verbs
    assert run("learn", f"--from={file}", *packs)[0] == run("learn", "--from", file, *packs)[0]
    for wrong in (["--json=x"], ["--floors", "x"], ["--since"], ["a.yaml"], ["--fromm", "x"], ["--state-dir", here]):
        assert "usage: countersign policy learn" in run("learn", "--from", file, *packs, *wrong, rc=2)[1], wrong
    for wrong in ([], ["--scope", "ci", "a.yaml"], ["--fail-on", "some", "a.yaml"], ["--state-dir", here, "a.yaml"]):
        assert "usage: countersign policy replay" in run("replay", "--from", file, *packs, *wrong, rc=2)[1], wrong
    print("ok policy learn --scope")


def main():
    packs = ["--packs", TOP / "conf/packs"]
    reads, writes, push = seen()
    with tempfile.TemporaryDirectory() as name:
        here = pathlib.Path(name)
        learned, file = here / "learned.yaml", here / "audit.jsonl"
        file.write_text(lines(reads + writes + [push]), encoding="utf-8")
        text, _ = run("learn", "--from", file, *packs)
        learned.write_text(text, encoding="utf-8")
        run("check", *packs, learned)
        assert text.count("# WARNING") == 4 == text.count("decide: hold"), text
        assert "left out" not in text, text
        cases = [case(r, "allow") for r in reads] + [case(r, "hold") for r in writes]
        cases += [push_case("refs/heads/agent/x", "hold", "0", "b2"), push_case("refs/heads/main", "deny"),
                  push_case("refs/heads/agent/y", "deny"), push_case("refs/heads/agent/x", "deny", "a1", "0")]
        known, near = {key(r) for r in reads + writes}, {}
        for r in reads + writes:
            for change in neighbours(r):
                other = {**r, **change}
                page = other["path"].startswith("/list?page=")
                if key(other) not in known and not (page and other["method"] == "GET" and other["host"] == "api.test"):
                    near[key(other)] = other
        assert len(near) >= 1000, len(near)
        cases += [case(r, "deny") for r in near.values()]
        (here / "learned_test.yaml").write_text(json.dumps({"policy": "learned.yaml", "cases": cases}),
                                                encoding="utf-8")
        run("test", *packs, here / "learned_test.yaml")
        print(f"ok policy learn: {len(near)} neighbours are denied")
        as_json(here, file, learned, packs)
        credentials(here, packs)
        never_sent(here, packs)
        scopes(here, packs)
        again, said = run("learn", "--from", file, "--policy", learned, *packs)
        assert again == "", (again, said)  # what it allows is not proposed again
        patched(here, file, packs)
        for bad in ('{"kind":"read"}', "{not json"):  # the rest is proposed all the same, and the exit says that it is not all
            text, said = run("learn", "--from", "-", *packs, rc=1, stdin=(lines([record("GET", "/v1/x")]) + bad + "\n").encode())
            assert "/v1/x" in text and "1 records could not be read" in said, (text, said)
        file.write_text(lines(hostile()), encoding="utf-8")
        text, _ = run("learn", "--from", file, *packs)
        learned.write_text(text, encoding="utf-8")
        run("check", *packs, learned)
        assert TOKEN not in text and "evil" not in text.replace("xn  -", "") or "\n  - id: evil" not in text, text
        assert all(" " <= c < "\x7f" or c == "\n" for c in text) and "left out" in text
        out, _ = run("learn", "--from", file, "--json", *packs)
        told = json.loads(out)
        assert TOKEN not in out and all(" " <= c < "\x7f" or c == "\n" for c in out), out
        assert sum(x["count"] for x in told["left_out"] + told["rules"]) == told["requests"]
        codes = {"effect-not-recorded", "websocket", "path-cut", "odd-host-or-method", "odd-path", "odd-query",
                 "secret-in-path", "secret-in-query"}
        assert {x["code"] for x in told["left_out"]} == codes and all(x["reason"] for x in told["left_out"]), told
        print("ok policy learn: hostile records")


if __name__ == "__main__":
    sys.exit(main())
