#!/usr/bin/env python3
"""The manifest for programs that write programs: as TypeScript it compiles, strictly, and a program made with it asks what
the policy lets through; as OpenAPI 3.1 it is valid. A refusal names the smallest change that would be allowed."""
import json

import room  # noqa: F401
from gateway import Gateway, commit, git_policy
from harness import HERE, PATIENCE, main, test
from lab.servers import npm_modules

POLICY = """version: 1
name: typed
packs: [git@1, npm@1, graphql@1]
scopes:
  ci: {{ sandboxes: ["ci-*"] }}
upstreams:
  - {{ host: {host}, port: {port}, address: 127.0.0.1, ca: {ca}, allow_private: [127.0.0.0/8] }}
rules:
  - id: zz-read
    match: {{ host: {host}, port: {port}, method: GET, path: "/v1/**", query: {{ page: ["1", "2"] }} }}
    decide: allow
  - id: zz-change
    match: {{ host: {host}, port: {port}, method: PUT, path: "/v1/things/{{thing}}", json: [{{ pointer: /n, int_lte: 5 }},
      {{ pointer: "/to/kind", in: [a, "7", "true"] }}] }}
    decide: allow
  - {{ id: zz-mixed, match: {{ host: {host}, port: {port}, method: PUT, path: /v1/mixed }}, decide: allow }}
  - {{ id: zz-mixed-all, match: {{ host: {host}, port: {port}, method: PUT, path: /v1/mixed, query: {{ all: "1" }} }}, decide: hold }}
  - id: zz-pay
    match: {{ host: {host}, port: {port}, method: POST, path: /v1/pay, form: [{{ field: currency, equals: eur }}] }}
    decide: hold
    say: "*/ Ask finance. `x` /* \\u2028 //"
  - id: zz-ci
    scope: ci
    match: {{ host: {host}, port: {port}, method: POST, path: /v1/own }}
    decide: allow
  - {{ id: zz-npm, match: {{ host: registry.npmjs.org, op: ["npm.*"] }}, decide: hold }}
  - {{ id: zz-git, match: {{ host: git.example, op: ["git.fetch", "git.push"] }}, decide: hold }}
  - {{ id: zz-wide, match: {{ host: "**.wide.example", effect: [read, write] }}, decide: allow }}
  - {{ id: zz-query, match: {{ host: api.example, method: POST, path: /graphql, graphql: {{ type: query }} }}, decide: allow }}
  - {{ id: zz-tool, match: {{ host: api.example, method: POST, path: /mcp, mcp: {{ tool: [look] }} }}, decide: hold }}
"""
CLIENT = """import {{ request, decisions, Operations }} from "./operations";
const made = [
  request("GET {base}/v1/{{+pathRest1}}", {{ path: {{ pathRest1: "a b/c" }}, query: {{ page: "2", more: "x&y" }} }}),
  request("PUT {base}/v1/things/{{thing}}", {{ path: {{ thing: "7/8" }}, json: {{ n: 3, to: {{ kind: "a" }}, other: [1] }} }}),
  request("POST {base}/v1/pay", {{ form: {{ currency: "eur", "a b": "&" }} }}),
];
const waits: "allow" | "hold" | "depends" = decisions["POST {base}/v1/pay"];
const known: Operations["POST {base}/v1/pay"]["decision"] = "hold";
console.log(JSON.stringify({{ made, waits, known, decisions }}));
"""
WRONG = (('query: { page: "2"', 'query: { page: "3"'), ('{ thing: "7/8" }', "{}"), ('kind: "a"', "kind: 8"), ("n: 3", 'n: "3"'),
         ('"eur"', '"usd"'), ('"hold";\nconsole', '"allow";\nconsole'), ("/v1/pay\", {", "/v1/own\", {"))


def told(lab, gw, query, sandbox="agent"):
    done = lab.run(["curl", "-sS", "-i", "--max-time", str(PATIENCE), f"http://countersign.internal/v1/manifest{query}"], env=gw.client_env(sandbox), rc=0)
    head, body = done.out.decode().replace("\r\n", "\n").split("\n\n", 1)
    return int(head.split()[1]), head, body


def compiled(lab, folder, *more):
    modules = npm_modules(HERE / "npm") / "node_modules"
    return lab.run(["node", modules / "typescript/bin/tsc", "--strict", "--noUnusedLocals", "--exactOptionalPropertyTypes",
                    "--lib", "es2017", "--target", "es2017", "--module", "commonjs", *more, folder / "client.ts"])


def setup(lab):
    up = lab.upstream()
    return up, Gateway(lab, POLICY.format(host=up.name, port=up.port, ca=up.ca), hold="inline_wait: 0s, expires: 2h"), f"https://{up.name}:{up.port}"


@test()
def a_program_made_with_the_types_asks_what_is_let_through(lab):
    up, gw, base = setup(lab)
    status, head, module = told(lab, gw, "?as=typescript")
    assert status == 200 and "content-type: text/plain; charset=utf-8" in head.lower(), head
    assert told(lab, gw, "?as=typescript")[2] == module
    assert "/v1/own" not in module and "/v1/own" in told(lab, gw, "?as=typescript", sandbox="ci-7")[2]
    assert "zz-" not in module and "no room" not in module, module  # no rule ids, and all of it
    work = lab.dir / "program"
    work.mkdir()
    text, console = CLIENT.format(base=base), "declare const console: { log(text: string): void };\n"
    (work / "operations.ts").write_text(module)
    (work / "client.ts").write_text(console + text)
    done = compiled(lab, work, "--outDir", work / "out")
    assert done.rc == 0, done.text()
    said = json.loads(lab.run(["node", work / "out/client.js"], rc=0).out)
    assert said["waits"] == "hold" and said["decisions"][f"GET {base}/v1/{{+pathRest1}}"] == "allow", said
    assert said["decisions"][f"PUT {base}/v1/mixed"] == "depends", said
    get, put, pay = said["made"]
    assert get["url"] == f"{base}/v1/a%20b/c?page=2&more=x%26y" and put["url"] == f"{base}/v1/things/7%2F8", said
    assert pay["body"] == "currency=eur&a%20b=%26" and json.loads(put["body"])["to"] == {"kind": "a"}, said
    for one, want in ((get, 200), (pay, 403)):
        fields = [word for name, value in one["headers"].items() for word in ("-H", f"{name}: {value}")]
        data = ["--data-binary", one["body"]] if "body" in one else []
        got = lab.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", str(PATIENCE), "-X", one["method"],
                       *fields, *data, one["url"]], env=gw.client_env("agent"), rc=0)
        assert int(got.out) == want, (one, got.text())
    # What the policy does not let through does not compile.
    for right, wrong in WRONG:
        assert right in text, right
        (work / "client.ts").write_text(console + text.replace(right, wrong))
        done = compiled(lab, work, "--noEmit")
        assert done.rc != 0 and "error TS" in done.text(), (wrong, done.text())
    for ticket in gw.tickets():
        gw.deny(ticket["id"], "no")
    assert up.effects() == {"GET /v1/a%20b/c": 1}, up.effects()


CHECK = """import(process.argv[1]).then(async ({ Validator }) => {
  const text = require("fs").readFileSync(process.argv[2], "utf8"), v = new Validator(), done = await v.validate(JSON.parse(text));
  console.log(JSON.stringify([done.valid, done.errors || null, v.version]));
});"""


@test()
def the_description_is_valid_openapi(lab):
    up, gw, base = setup(lab)
    modules = npm_modules(HERE / "npm") / "node_modules"
    for query in ("?as=openapi", f"?as=openapi&host={up.name}", "?host=registry.npmjs.org&as=openapi", "?as=openapi&host=none.example"):
        status, head, text = told(lab, gw, query)
        assert status == 200 and "content-type: application/json" in head.lower(), head
        (lab.dir / "openapi.json").write_text(text)
        done = lab.run(["node", "-e", CHECK, modules / "@seriousme/openapi-schema-validator/index.js", lab.dir / "openapi.json"], rc=0)
        assert json.loads(done.out) == [True, None, "3.1"], (query, done.text())
        assert "zz-" not in text and "left-out" not in text, text
    api = json.loads(told(lab, gw, "?as=openapi")[2])
    pay = api["paths"]["/v1/pay"]["post"]
    assert pay["x-countersign-decision"] == "hold" and pay["servers"] == [{"url": base}], pay
    assert pay["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]["properties"] == {"currency": {"enum": ["eur"]}}, pay
    assert "/v1/own" not in api["paths"]
    put = api["paths"]["/v1/things/{thing}"]["put"]
    both = put["requestBody"]["content"]["application/json"]["schema"]["allOf"]
    assert both[0]["properties"] == {"n": {"type": "integer", "maximum": 5}} and both[0]["required"] == ["n"], put
    assert both[1]["properties"]["to"]["properties"] == {"kind": {"enum": ["a", "7", 7, "true", True]}}, put
    mixed = api["paths"]["/v1/mixed"]["put"]
    assert mixed["x-countersign-decision"] == "depends" and [one["decision"] for one in mixed["x-countersign"]] == ["hold", "allow"], mixed
    assert not up.effects()


@test()
def another_form_is_refused_in_words(lab):
    up, gw, _ = setup(lab)
    status, _, text = told(lab, gw, "?as=wsdl")
    no = json.loads(text)
    assert (status, no["code"]) == (400, "unknown-form") and "?as=typescript" in no["detail"] and "?as=openapi" in no["detail"], no
    for query in ("?as=typescript&as=typescript", "?as=openapi&hosts=x", "?as=openapi&"):
        assert told(lab, gw, query)[0] == 404, query
    assert not up.effects()


@test()
def a_denial_names_the_path_near_by(lab):
    up, gw, base = setup(lab)
    for sandbox, near in (("agent", ""), ("ci-7", " At /v1/own it is allowed.")):
        done = lab.run(["curl", "-sS", "--max-time", str(PATIENCE), "-d", "x", base + "/v1/owns"], env=gw.client_env(sandbox), rc=0)
        no = json.loads(done.out)
        assert no["detail"].endswith("is not allowed by the policy." + near), no
    assert not up.effects()


@test()
def a_held_push_names_the_refs_that_need_nobody(lab):
    git, own = lab.git_server(), '{ git: { refs: ["refs/heads/agent/*"], force: false } }'
    place = f'host: {git.host}, port: {git.port}, path: "/demo/**"'
    policy = git_policy(git).replace("    decide: hold", f"    except: [{own}]\n    decide: hold")
    policy += f"  - {{ id: own, match: {{ {place}, op: git.push, {own[2:-2]} }}, decide: allow, use: demo }}\n"
    gw = Gateway(lab, policy, {"demo": f"{git.user}:{git.password}".encode()}, hold="inline_wait: 1s, expires: 2h")
    env, work = gw.client_env(), lab.dir / "work"
    lab.run(["git", "clone", "-q", git.url, "work"], env=env, rc=0)
    head = commit(lab, work, env)
    done = lab.run(["git", "-C", work, "push", "origin", "HEAD:main"], env=env)
    assert done.rc != 0 and b"To refs/heads/agent/* it is allowed." in done.both, done.text()
    lab.run(["git", "-C", work, "push", "origin", "HEAD:refs/heads/agent/a"], env=env, rc=0)
    assert [(name, new) for _, new, name in git.landed()] == [("refs/heads/agent/a", head)], git.landed()
    gw.deny(gw.pending()["id"], "it is elsewhere")


if __name__ == "__main__":
    main()
