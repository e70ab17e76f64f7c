#!/usr/bin/env python3
"""policy replay: the counts, what widened, what cannot be told, each request once, a store and lines of JSON alike."""
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

TOP = pathlib.Path(os.environ.get("srcdir", pathlib.Path(__file__).resolve().parents[2])).resolve()
PROGRAM = pathlib.Path("countersign").resolve()
POLICY = """version: 1
packs: [git@1]
scopes: { eng: { sandboxes: ["ci-*"], labels: { team: eng } } }
rules:
  - { id: read, match: { host: api.test, method: GET, path: "/v1/**" }, decide: allow }
  - { id: note, match: { host: api.test, method: POST, path: /v1/notes }, decide: allow }
  - { id: pay, match: { host: api.test, method: POST, path: /v1/pay, json: [{ pointer: /n, int_lte: 5 }] }, decide: hold }
  - { id: flag, match: { host: h.test, header: { x-flag: "on" } }, decide: allow }
  - { id: topic, match: { op: git.push, resource: "git:git.test/a/b", git: { refs: ["refs/heads/agent/*"] } },
      decide: allow }
  - { id: eng, scope: eng, match: { host: eng.test, path: "/**" }, decide: allow }
"""


def request(verdict, method, path, host="api.test", **more):
    return {"sandbox": "ci-1", "method": method, "scheme": "https", "host": host, "port": 443, "path": path,
            "verdict": verdict, "code": "rule", "op": "http." + method.lower(), "effect": "read", **more}


def records():
    push = {"op": "git.push", "host": "git.test"}
    yield "result", "x-1", request("allow", "GET", "/v1/a")
    for kind in ("intent", "sent", "result"):
        yield kind, "x-2", request("hold", "POST", "/v1/notes", effect="write")  # widened, once
    yield "denied", "x-3", request("allow", "GET", "/v2/a")  # narrowed
    yield "denied", "x-4", request("hold", "POST", "/v1/pay", body=True, type="application/json")  # body
    yield "denied", "x-5", request("deny", "GET", "/a", host="h.test")  # header
    yield "denied", "x-6", request("allow", "POST", "/a/b.git/git-receive-pack", refs=["create refs/heads/agent/x"],
                                   body=True, **push)
    yield "denied", "x-7", request("allow", "POST", "/a/b.git/git-receive-pack", refs=["update refs/heads/main"],
                                   body=True, **push)  # narrowed
    yield "denied", "x-8", request("deny", "POST", "/a/b.git/git-receive-pack", refs=["create refs/heads/agent/x",
                                                                                    "..."], body=True, **push)
    yield "denied", "x-9", request("deny", "GET", "/v1/" + "a" * 2100)  # cut
    yield "denied", "x-10", {"sandbox": "ci-1", "scheme": "https", "host": "no.test", "port": 443, "verdict": "deny",
                             "code": "host-not-named", "op": "identify"}  # the same
    yield "denied", "x-11", {"sandbox": "ci-1", "scheme": "https", "host": "api.test", "port": 443, "verdict": "deny",
                             "code": "host-not-named", "op": "identify"}  # only the CONNECT
    yield "denied", "x-12", {"sandbox": "ci-1", "verdict": "deny", "code": "bad-token"}  # nobody was asked
    yield "denied", "x-13", request("deny", "GET", "/", host="eng.test")  # widened in the store, unknown in a file
    yield "denied", "x-14", request("deny", "GET", "/", host="eng.test", sandbox="web-1")  # another's: the same


def lines():
    for i, (kind, exchange, rest) in enumerate(records()):
        seconds = 1793000000 + i
        yield seconds * 1000, kind, exchange, json.dumps(
            {"seq": i + 1, "time": f"2026-10-26T07:33:{20 + i:02}.000Z", "kind": kind, "exchange": exchange, **rest})


def replay(*args, rc):
    done = subprocess.run([PROGRAM, "policy", "replay", "--json", "--packs", TOP / "conf/packs", *args],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == rc, (done.returncode, rc, done.stdout, done.stderr)
    return json.loads(done.stdout) if done.stdout else done.stderr.decode()


def check(said, labels):
    want = {"same": 4, "widened": 1 + labels, "narrowed": 2, "cannot_tell": 6 - labels, "not_judged": 1, "damaged": 0,
            "requests": 13}
    assert {key: said[key] for key in want} == want, said
    kinds = [group["change"] for group in said["groups"]]
    assert kinds == sorted(kinds, key=["widened", "narrowed", "cannot-tell"].index), kinds
    unknown = {(group["not_recorded"], group.get("rule", {}).get("id")) for group in said["groups"]
               if group["change"] == "cannot-tell"}
    want = {("its body", "pay"), ("its header", "flag"), ("the refs of a push", "topic"),
            ("its path, which was too long for the record", None), ("what would have been asked in the tunnel", None)}
    assert unknown - {("the sandbox's labels", None)} == want, unknown
    assert said["groups"][0]["count"] == 1 and said["groups"][0]["example"].startswith(("GET https://eng",
                                                                                         "POST https://api"))


def two_sandboxes(here):
    """The same request of two sandboxes is two questions, in either order; the last line may have no end."""
    policy, file = here / "two.yaml", here / "two.jsonl"
    policy.write_text("""version: 1
scopes: { ci: { sandboxes: ["ci-*"] } }
rules: [{ id: ci, scope: ci, match: { host: api.test, path: "/**" }, decide: allow }]
""", encoding="utf-8")
    for names in (("ci-1", "web-1", "ci-2", "web-2"), ("web-1", "ci-1", "web-2", "ci-2")):
        text = "\n".join(json.dumps({"seq": i + 1, "time": "2026-10-26T07:33:20.000Z", "kind": "denied",
                                     "exchange": f"y-{i}", **request("deny", "GET", "/v1/a"), "sandbox": name})
                         for i, name in enumerate(names))
        file.write_text("x" * 5000 + "\n" + text, encoding="utf-8")
        said = replay("--from", file, policy, rc=1)
        assert (said["widened"], said["same"], said["damaged"]) == (2, 2, 1), said


def not_guessed(here):
    """A subprotocol that was offered is in no record; a read that counted as a write asked for another method by a field."""
    policy, file = here / "ws.yaml", here / "ws.jsonl"
    policy.write_text("""version: 1
packs: [{ pack: npm@1, hosts: [reg.test] }]
rules:
  - { id: chat, match: { host: ws.test, ws: { subprotocol: chat } }, decide: allow }
  - { id: npm, match: { host: reg.test, op: npm.metadata }, decide: allow }
""", encoding="utf-8")
    asked = [request("allow", "GET", "/feed", host="ws.test", upgrade=True, effect="write"),
             request("allow", "GET", "/left", host="reg.test", op="npm.metadata"),
             request("deny", "GET", "/left", host="reg.test", op="npm.metadata", effect="write")]
    text = [json.dumps({"seq": i + 1, "time": "2026-10-26T07:33:20.000Z", "kind": "denied", "exchange": f"z-{i}", **v})
            for i, v in enumerate(asked)]
    file.write_text("\n".join(text) + "\n", encoding="utf-8")
    said = replay("--from", file, policy, rc=0)
    assert (said["same"], said["widened"], said["cannot_tell"]) == (2, 0, 1), said
    assert said["groups"][0]["not_recorded"] == "the subprotocols it offered", said
    for record, rc in zip(text, (11, 0, 11)):
        done = subprocess.run([PROGRAM, "policy", "explain", "--packs", TOP / "conf/packs", "--record", "-", policy],
                              input=record.encode(), stdout=subprocess.PIPE, check=False)
        assert done.returncode == rc, (record, done)


def main():
    with tempfile.TemporaryDirectory() as name:
        here = pathlib.Path(name)
        policy, file, empty = here / "new.yaml", here / "audit.jsonl", here / "empty.yaml"
        policy.write_text(POLICY.replace('eng: { sandboxes', 'eng: { sandboxes'), encoding="utf-8")
        empty.write_text("version: 1\nrules: [{ id: nobody, match: { host: x.test }, decide: deny }]\n", encoding="utf-8")
        file.write_text("".join(line + "\n" for _, _, _, line in lines()), encoding="utf-8")
        store = here / "store" / "ledger.db"  # where a gateway has it
        store.parent.mkdir()
        db = sqlite3.connect(store)
        db.executescript((TOP / "proxy/ledger/store/schema.sql").read_text(encoding="utf-8"))
        for i, (ms, kind, exchange, line) in enumerate(lines()):
            db.execute("insert into audit values (?, ?, ?, ?, NULL, ?, x'00')", (i + 1, ms, kind, exchange, line))
        db.execute("insert into sandbox values ('ci-1', 's', '', '', 'run', 1, NULL, '{\"team\": \"eng\"}', 1, 1)")
        db.commit()
        db.close()
        before = store.read_bytes()
        check(replay("--state-dir", here, policy, rc=1), labels=1)
        assert store.read_bytes() == before
        assert replay("--state-dir", here, "--fail-on", "never", "--since", "2026-10-26T07:33:30Z", policy,
                      rc=0)["requests"] < 12
        said = replay("--from", file, "--fail-on", "never", policy, rc=0)
        assert said["cannot_tell"] == 12, said  # nobody's labels are known, and a scope asks for some
        assert replay("--from", file, empty, rc=0)["widened"] == 0
        replay("--from", file, "--fail-on", "any", empty, rc=1)
        file.write_text("{not json\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
        assert replay("--from", file, empty, rc=1)["damaged"] == 1
        assert replay("--from", file, "--fail-on", "never", empty, rc=1)["damaged"] == 1
        whole = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("{\"")]
        for hidden in (whole[0] + "\0 and more", whole[0] + "\0" + "x" * 9000 + whole[0]):  # a NUL ends no record
            file.write_text(hidden + "\n" + whole[1] + "\n", encoding="utf-8")
            assert replay("--from", file, "--fail-on", "never", empty, rc=1)["damaged"] == 1
        assert "--from" in replay("--state-dir", here / "none", policy, rc=4)
        assert "--since" in replay("--state-dir", here, "--since", "yesterday", policy, rc=2)
        two_sandboxes(here)
        not_guessed(here)
    print("ok policy replay")


if __name__ == "__main__":
    sys.exit(main())
