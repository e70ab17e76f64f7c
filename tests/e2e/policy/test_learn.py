#!/usr/bin/env python3
"""`policy learn` on the record of a gateway's own traffic: every read that was seen is allowed, every write that was seen
is held, and neighbours of them, a thousand and more, are denied."""
import json
import re
import shutil

import room  # noqa: F401
from gateway import Gateway, commit, upstream_yaml
from harness import PATIENCE, Skip, main, test

UPGRADE = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13")
ZERO, ONE, TWO = "0" * 40, "a" * 40, "b" * 40


class Ask:
    """A request that is sent, and what must come of it when the proposal is in force."""

    def __init__(self, want, method, base, path, body=None, fields=(), kind=None):
        self.want, self.method, self.base, self.path, self.body = want, method, base, path, body
        self.fields = [*fields, *([f"Content-Type: {kind}"] if kind else [])]

    def but(self, **changes):
        other = Ask("deny", self.method, self.base, self.path, self.body, self.fields)
        other.__dict__.update(changes)
        return other

    def key(self):
        path, _, query = self.path.partition("?")
        write = self.method not in ("GET", "HEAD", "OPTIONS")  # it waits with any body: who approves it sees which
        return (self.method, self.base, path, tuple(sorted(query.split("&"))), write or self.body is None,
                () if write else tuple(self.fields))

    def curl(self):
        how = ["-I"] if self.method == "HEAD" else ["-X", self.method]
        body = [] if self.body is None else ["--data-binary", self.body]
        return ["curl", "-sS", "--max-time", str(PATIENCE), "--path-as-is", "-g", "-o", "/dev/null", *how, *body,
                *(x for f in self.fields for x in ("-H", f)), self.base + self.path]

    def case(self):
        fields = {}
        for f in self.fields:
            fields.setdefault(f.split(": ")[0], []).append(f.split(": ", 1)[1])
        return {"name": f"{self.want} {self.method} {self.base}{self.path} {self.fields} {self.body}", "as": {"sandbox": "agent"},
                "request": {"method": self.method, "url": self.base + self.path, **({"headers": fields} if fields else {}),
                            **({} if self.body is None else {"body": self.body})}, "expect": {"decide": self.want}}


def traffic(up):
    """Through a tunnel and in absolute form."""
    tls, plain = f"https://{up.name}:{up.port}", f"http://{up.name}:{up.plain_port}"
    asks = [Ask("allow", "GET", tls, f"/v1/{what}/{n}") for what in ("repos", "users") for n in range(8)]
    asks += [Ask("allow", "GET", tls, path) for path in (
        "/search?q=cats&page=1", "/search?q=dogs&page=2", "/flag?empty=x", "/odd/~a!$'()b:@,=/", "/odd/...", "/A/b.C-d_e", "/")]
    asks += [Ask("allow", "GET", tls, f"/list?page={n}") for n in range(10)]  # more values than are listed
    asks += [Ask("allow", "HEAD", tls, "/head"), Ask("allow", "OPTIONS", tls, "/options"),
             Ask("allow", "GET", plain, "/plain?x=1"), Ask("allow", "GET", plain, "/plain/2")]
    asks += [Ask("hold", "POST", tls, "/form", "a=1&b=2", kind="application/x-www-form-urlencoded"),
             Ask("hold", "POST", tls, "/json", '{"a":1}', kind="application/json"), Ask("hold", "POST", plain, "/plain/form", "a=1"),
             Ask("hold", "PUT", tls, "/things/1?dry=no", "x"), Ask("hold", "PATCH", tls, "/things/1", "x"),
             Ask("hold", "DELETE", tls, "/things/1"), Ask("hold", "GET", tls, "/search/body", "x=1")]
    # What no exact rule can say: left out, with the reason.
    asks += [Ask("deny", "GET", tls, "/status?code=404", fields=UPGRADE), Ask("deny", "GET", tls, "/two//slashes"),
             Ask("deny", "GET", tls, "/a%20b"), Ask("deny", "GET", tls, "/twice?a=1&a=2"), Ask("deny", "GET", tls, "/bare?a"),
             Ask("deny", "GET", tls, "/key/ghp0a1b2c3d4e5f6g7h8i9j0klmn")]
    return asks


def neighbours(ask):
    """Requests that differ from it in one thing."""
    path, _, query = ask.path.partition("?")
    last, tail = path.rstrip("/"), "?" + query if query else ""
    for to in (last + "x", last + "/more", last.rpartition("/")[0] or "/up", last.upper(), last[:-1] + "_", "/other", path + "%2e",
               "/v1" + path, path + "/" if path != last + "/" else last):
        yield ask.but(path=(to or "/up") + tail)
    for to in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "GET", "HEAD", "QUERY"):
        yield ask.but(method=to)
    pairs = [p for p in query.split("&") if p]
    for to in (pairs + ["more=1"], pairs + pairs[:1], pairs[1:], [p.upper() for p in pairs], [p + ";x=1" for p in pairs],
               [p.replace("=", "[]=") for p in pairs], pairs + [p + "0" for p in pairs[:1]], pairs + ["_method=DELETE"]):
        yield ask.but(path=path + ("?" + "&".join(to) if to else ""))
    if "page=" not in query or "q=" in query:
        yield ask.but(path=path + "?" + "&".join(p + "0" for p in pairs or ["x="]))
    scheme, host, port = re.fullmatch(r"(https?)://(.+):(\d+)", ask.base).groups()
    for base in (f"{scheme}://other.test:{port}", f"{scheme}://x.{host}:{port}", f"{scheme}://{host}.evil.test:{port}",
                 f"{scheme}://{host}:{int(port) + 7}", f"{scheme}://{host}", f"{'http' if scheme == 'https' else 'https'}://{host}:{port}"):
        yield ask.but(base=base)
    if ask.want == "allow":
        yield ask.but(body="x")
        yield ask.but(fields=[*ask.fields, *UPGRADE])
        yield ask.but(fields=[*ask.fields, "X-HTTP-Method-Override: DELETE"])


def push_case(url, ref, want, old=ONE, new=TWO):
    return {"name": f"{want} push {ref} {old} {new}", "as": {"sandbox": "agent"}, "expect": {"decide": want},
            "git_push": {"url": url, "refs": [{"name": ref, "old": old, "new": new}]}}


def recorded(lab, gw, asks):
    """A read's record is written behind its answer: learn is asked once all are there."""
    want = {(a.method, a.path) for a in asks}
    lab.wait_for("the last record", lambda: want <= {(r.get("method"), r.get("path")) for r in gw.audit()})


def reads(gw, host, *patterns):
    """The recorded paths at host, each of them one of the patterns', when every pattern has one."""
    paths = {r["path"] for r in gw.audit() if r.get("host") == host and r.get("method")}
    found = [next((p for p in paths if re.fullmatch(pattern, p)), None) for pattern in patterns]
    return found if all(found) else None


def judge(lab, gw, asks, cases=()):
    """The proposal loads, and says of everything what it must."""
    done = gw.cli("policy", "learn", rc=0)
    text = done.out.decode()
    learned, tests = lab.dir / "learned.yaml", lab.dir / "learned_test.yaml"
    learned.write_text(text)
    checked = json.loads(gw.cli("policy", "check", "--json", learned, rc=0).out)
    assert "error" not in json.dumps(checked), checked
    known, near = {a.key() for a in asks}, {}
    for a in asks:
        if a.want != "deny":
            near.update((o.key(), o) for o in neighbours(a) if o.key() not in known)
    for o in [o for o in near.values() if re.fullmatch(r"/list\?page=[^&;]+", o.path) and o.method == "GET" and not o.fields
              and o.body is None and o.base == asks[0].base]:
        del near[o.key()]  # of a name with more values than are listed any will do
    assert len(near) >= 1000, len(near)
    tests.write_text(json.dumps({"policy": "learned.yaml", "cases": [a.case() for a in [*asks, *near.values()]] + list(cases)}))
    said = gw.cli("policy", "test", tests)
    failed = "\n".join(line for line in said.text().splitlines() if not line.startswith("ok "))
    assert said.rc == 0, failed[:6000] + text
    print(f"# {len(asks)} seen, {len(near)} neighbours, {len(cases)} others: as they must be")
    return text, done.err.decode()


@test()
def what_a_gateway_in_shadow_mode_saw(lab):
    up = lab.upstream()
    gw = Gateway(lab, "version: 1\nname: nothing\nupstreams:\n" + upstream_yaml(up.name, up.port, up.ca)
                 + upstream_yaml(up.name, up.plain_port, up.ca)
                 + "rules:\n  - { id: other, match: { host: other.example, effect: read }, decide: allow }\n", config="mode: shadow\n")
    asks = traffic(up)
    for a in asks:
        lab.run(a.curl(), env=gw.client_env(), rc=0)
    recorded(lab, gw, [a for a in asks if "/key/" not in a.path])
    lab.wait_for("the last record", lambda: any("/key/" in r.get("path", "") for r in gw.audit()))
    text, said = judge(lab, gw, asks)
    assert text.count("# WARNING") == sum(a.want == "hold" for a in asks) == text.count("decide: hold"), text
    assert "ghp0a1b2" not in text and text.count("# left out") == sum(a.want == "deny" for a in asks), text


@test()
def what_an_enforcing_gateway_saw_of_curl_git_and_npm(lab):
    lab.leaves("pending")
    up, git, registry = lab.upstream(), lab.git_server(), lab.verdaccio()
    registry.publish("left-pad-demo", "1.0.0", {"index.js": "module.exports = 1;\n"})
    at, repository, npm = f"host: {up.name}", f"host: {git.host}, port: {git.port}", f"host: {registry.host}, port: {registry.port}"
    gw = Gateway(lab, f"""version: 1
name: all
packs: [git@1, npm@1]
upstreams:
{upstream_yaml(up.name, up.port, up.ca)}{upstream_yaml(up.name, up.plain_port, up.ca)}
{upstream_yaml(git.host, git.port, git.ca)}{upstream_yaml(registry.host, registry.port, registry.ca)}
credentials:
  git: {{ source: {{ store: git }}, inject: {{ basic: true }}, only: [{{ {repository} }}] }}
  npm: {{ source: {{ store: npm }}, inject: {{ basic: true }}, only: [{{ {npm} }}] }}
rules:
  - {{ id: reads, match: {{ {at}, port: {up.port}, effect: read }}, decide: allow }}
  - {{ id: plain, match: {{ {at}, port: {up.plain_port}, scheme: http, effect: read }}, decide: allow }}
  - {{ id: fetch, match: {{ {repository}, op: [git.fetch, git.fetch.refs] }}, decide: allow, use: git }}
  - {{ id: push, match: {{ {repository}, op: git.push }}, decide: hold, use: git }}
  - {{ id: packages, match: {{ {npm}, effect: read }}, decide: allow, use: npm }}
""", {"git": f"{git.user}:{git.password}".encode(), "npm": f"{registry.user}:{registry.password}".encode()},
                 hold="inline_wait: 0s, expires: 2h")
    env = gw.client_env()
    asks = traffic(up)
    for a in asks:
        lab.run(a.curl(), env=env, rc=0)
    work = lab.dir / "work"
    lab.run(["git", "clone", "-q", git.url, work], env=env, rc=0)
    commit(lab, work, env)
    lab.run(["git", "-C", work, "push", "origin", "HEAD:refs/heads/agent/x"], env=env)
    assert gw.pending()
    app = lab.dir / "app"
    app.mkdir()
    (app / "package.json").write_text('{"name":"agent-thing","version":"1.0.0"}')
    lab.run(["npm", "install", "left-pad-demo@1.0.0"], cwd=app, rc=0, env={
        **env, "npm_config_registry": registry.url, "npm_config_audit": "false", "npm_config_fund": "false",
        "npm_config_update_notifier": "false"})
    recorded(lab, gw, [a for a in asks if "/key/" not in a.path])
    seen = lab.wait_for("the package and its list", lambda: reads(gw, registry.host, "/left-pad-demo", "/left-pad-demo/-/left-pad-demo-1.0.0.tgz"))
    asks += [Ask("allow", "GET", f"https://{registry.host}:{registry.port}", path) for path in sorted(seen)]
    fetch = Ask("allow", "GET", f"https://{git.host}:{git.port}", "")
    refs, _ = lab.wait_for("the clone", lambda: reads(gw, git.host, r"\S+/info/refs\?service=git-upload-pack", r"\S+/git-upload-pack"))
    base = refs.partition("/info/")[0]
    others = [fetch.but(want=want, path=path).case() for want, path in (
        ("allow", refs), ("deny", refs.replace(base, base + "x")), ("deny", refs.replace(base, "/demo/other.git")),
        ("deny", base + "/info/refs"), ("deny", base + "/HEAD"), ("deny", base + "/objects/info/packs"), ("deny", base))]
    url = f"https://{git.host}:{git.port}{base}"
    others += [push_case(url, "refs/heads/agent/x", "hold", ZERO), push_case(url, "refs/heads/agent/y", "deny", ZERO),
               push_case(url, "refs/heads/main", "deny"), push_case(url, "refs/heads/agent/x", "deny", new=ZERO),
               push_case(url + "x", "refs/heads/agent/x", "deny", ZERO), push_case(url, "refs/heads/agent/X", "deny", ZERO)]
    text, _ = judge(lab, gw, asks, others)
    assert 'git: { refs: ["refs/heads/agent/x"], delete: false }' in text, text
    keys = lab.dir / "keys.yaml"  # the same credentials, and no rule of theirs
    keys.write_text((lab.dir / "policy.yaml").read_text().partition("rules:")[0]
                    + "rules:\n  - { id: other, match: { host: other.example, method: GET, path: / }, decide: allow }\n")
    told = json.loads(gw.cli("policy", "learn", "--policy", keys, "--json", rc=0).out)
    uses = {r["match"]["host"]: set() for r in told["rules"]}
    for r in told["rules"]:
        uses[r["match"]["host"]].add((r.get("use"), r["decide"]))
    assert uses[git.host] == {("git", "allow"), ("git", "hold")} and uses[registry.host] == {("npm", "allow")}, told
    assert uses[up.name] == {(None, "allow"), (None, "hold")}, told
    assert {w["code"] for w in told["warnings"]} == {"held-write"}, told["warnings"]
    with_policy = gw.cli("policy", "learn", "--policy", lab.dir / "learned.yaml", rc=0)
    assert b"  - id:" not in with_policy.out, "what it allows is not proposed again"


@test()
def a_read_that_an_operator_denied_is_not_proposed(lab):
    """The request of a denied ticket stands in the store as opened, decided and refused: one request, and no rule."""
    lab.leaves("pending")
    up = lab.upstream()
    gw = Gateway(lab, "version: 1\nname: asks\nupstreams:\n" + upstream_yaml(up.name, up.port, up.ca) + f"""rules:
  - {{ id: ask, match: {{ host: {up.name}, port: {up.port}, effect: read }}, decide: hold }}
""", hold="inline_wait: 0s, expires: 2h")

    def ask(path):
        lab.run(["curl", "-sS", "--max-time", str(PATIENCE), "-o", "/dev/null", f"https://{up.name}:{up.port}{path}"], env=gw.client_env(), rc=0)
    ask("/denied")
    gw.deny(gw.pending()["id"], "not this one")
    ask("/waits")
    ask("/denied")
    lab.wait_for("the refusals", lambda: sum(r.get("kind") == "denied" for r in gw.audit()) >= 3)
    said = json.loads(gw.cli("policy", "learn", "--json", rc=0).out)
    assert [(r["match"]["path"], r["decide"]) for r in said["rules"]] == [("/waits", "allow")], said
    assert [x["code"] for x in said["left_out"]] == ["ticket-denied"], said


@test()
def a_patch_for_one_scope_is_in_force_after_a_reload(lab):
    if not shutil.which("patch"):
        raise Skip("no patch(1) here")
    up = lab.upstream()
    (lab.dir / "host.yaml").write_text("version: 1\nrules:\n  - { id: one, match: "
                                       f"{{ host: {up.name}, port: {up.port}, method: GET, path: /one }}, decide: allow }}\n")
    gw = Gateway(lab, "version: 1\nname: first\nscopes: { team: { sandboxes: [agent] } }\ninclude: [host.yaml]\nupstreams:\n"
                 + upstream_yaml(up.name, up.port, up.ca) + "rules: []\n")

    def status(path, who="agent", method="GET"):
        return lab.run(["curl", "-sS", "--max-time", str(PATIENCE), "-o", "/dev/null", "-w", "%{http_code}", "-X", method,
                        f"https://{up.name}:{up.port}{path}"], env=gw.client_env(who), rc=0).text().strip()
    assert [status(*x) for x in (("/two",), ("/three", "other"), ("/one",))] == ["403", "403", "200"]
    lab.wait_for("the records", lambda: {"/two", "/three", "/one"} <= {r.get("path") for r in gw.audit()})
    patch = gw.cli("policy", "learn", "--policy", gw.policy, "--scope", "team", "--patch", rc=0).out
    assert patch.count(b"- id:") == 1 and b'scope: "team"' in patch, patch
    lab.run(["patch", "-s", "-p0", str(gw.policy)], stdin=patch, rc=0)
    gw.cli("reload", rc=0)
    assert [status(*x) for x in (("/two",), ("/two", "other"), ("/three",), ("/three", "other"), ("/two/x",), ("/one",))] == [
        "200", "403", "403", "403", "403", "200"]


main()
