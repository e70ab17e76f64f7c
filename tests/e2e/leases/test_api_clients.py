#!/usr/bin/env python3
"""Clients of GitHub's API and of model providers, unmodified, with a lease where they read their key: each server gets the real one
and tells it back, and nothing of a sandbox ever holds it."""
import json
import os
import secrets
import sys

from clients import Inside
from gateway import Gateway, upstream_yaml
from harness import HERE, Skip, main, test
from servers import npm_modules

ANTHROPIC = """
const { Anthropic } = require("@anthropic-ai/sdk");
const asked = { model: "claude-test", max_tokens: 99, messages: [{ role: "user", content: "What is it?" }] };
(async () => {
  const client = new Anthropic({ baseURL: process.argv[1] });
  console.log("whole:", (await client.messages.create(asked)).content[0].text);
  let text = "";
  for await (const event of client.messages.stream(asked)) if (event.type === "content_block_delta") text += event.delta.text;
  console.log("streamed:", text);
})();
"""
OPENAI = """
const { OpenAI } = require("openai");
const asked = { model: "gpt-test", messages: [{ role: "user", content: "What is it?" }] };
(async () => {
  const client = new OpenAI({ baseURL: process.argv[1] + "/v1" });
  console.log("whole:", (await client.chat.completions.create(asked)).choices[0].message.content);
  let text = "";
  for await (const part of await client.chat.completions.create({ ...asked, stream: true })) text += part.choices[0].delta.content ?? "";
  console.log("streamed:", text);
})();
"""


class Providers:
    """lab/providers.py with keys of its own, and sandboxes behind a gateway that has them."""

    KINDS = {"github": ("ghp_", 'header: Authorization, format: "token {}"'), "anthropic": ("sk-ant-api03-", 'header: X-Api-Key, format: "{}"'),
             "openai": ("sk-", 'header: Authorization, format: "Bearer {}"')}

    def __init__(self, lab, *kinds, write="allow", packs=""):
        self.dir = lab.exempt(lab.dir / "providers")
        self.dir.mkdir()
        self.keys = {kind: lab.canary(self.KINDS[kind][0] + secrets.token_urlsafe(30)) for kind in kinds}
        (self.dir / "keys.json").write_text(json.dumps(self.keys))
        names = sum((["--name", f"{kind}.test"] for kind in kinds), [])
        said = lab.start([sys.executable, HERE / "lab/providers.py", "--dir", self.dir, *names], ready=rb"ready (\{.*\})").ready[1]
        self.port, ca = json.loads(said)["port"], json.loads(said)["ca"]
        upstreams = "".join(upstream_yaml(f"{kind}.test", self.port, ca) for kind in kinds)
        credentials = "".join(f"""  {kind}:
    source: {{ store: {kind} }}
    inject: {{ {self.KINDS[kind][1]} }}
    lease: {kind}
    require_lease: true
    only: [{{ host: {kind}.test, port: {self.port} }}]
""" for kind in kinds)
        rules = "".join(f"""  - {{ id: {kind}-{effect}, match: {{ host: {kind}.test, port: {self.port}, effect: {effect} }}, decide: {decide}, use: {kind} }}
""" for kind in kinds for effect, decide in (("read", "allow"), ("write", write)))
        self.inside = Inside(lab, Gateway(lab, f"version: 1\nname: providers\n{packs.format(port=self.port)}upstreams:\n{upstreams}credentials:\n{credentials}rules:\n{rules}",
                             {kind: key.encode() for kind, key in self.keys.items()}))

    def requests(self):
        path = self.dir / "requests.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@test()
def what_a_sandbox_holds_is_seen(lab):
    """What the others find nothing with: a secret that somebody gives the command."""
    inside = Providers(lab, "github").inside
    plant = secrets.token_urlsafe(32)
    inside("sh", "-c", 'echo "$LEAK" | base64 >~/kept', options=["--setenv", f"LEAK={plant}"], looked_for=[plant.encode()])
    found = {row["program"]: "\n".join(row["found"]) for row in inside.rows() if row["found"]}
    assert "memory: literal" in found["dash"] and "memory: base64" in found["base64"], found
    assert "/home/agent/kept: base64" in found["dash"], found


@test()
def gh_asks_and_writes_with_a_lease(lab):
    if not os.path.exists("/usr/bin/gh"):
        raise Skip("gh of Debian (conf/need test)")
    p = Providers(lab, "github")
    ask = ["--with", "github", "--setenv", f"GH_HOST=github.test:{p.port}"]
    done = p.inside("gh", "api", "--include", "user", options=ask)
    assert b"200 OK" in done.out and b'"octocat"' in done.out, done.text()
    p.inside.had_no_secret("gh")
    done = p.inside("gh", "api", "repos/acme/app/issues", "-f", "title=by an agent", options=ask)
    assert b'"number":7' in done.out.replace(b" ", b""), done.text()
    p.inside.had_no_secret("gh")
    assert [(r["path"], r["right"]) for r in p.requests()] == [("/api/v3/user", True), ("/api/v3/repos/acme/app/issues", True)]
    done = p.inside("gh", "api", "user", options=["--setenv", "GH_ENTERPRISE_TOKEN=mine", *ask[2:]], rc=1)
    assert b"lease" in done.err and len(p.requests()) == 2, done.text()


@test()
def gh_reads_by_graphql_and_its_mutation_is_asked_about_once(lab):
    if not os.path.exists("/usr/bin/gh"):
        raise Skip("gh of Debian (conf/need test)")
    p = Providers(lab, "github", write="hold", packs="packs: [{{ pack: graphql@1, hosts: [\"github.test:{port}\"] }}]\n")
    ask = ["--with", "github", "--setenv", f"GH_HOST=github.test:{p.port}"]
    done = p.inside("gh", "pr", "list", "-R", "acme/app", options=ask)
    assert b"Mend the roof" in done.out and not p.inside.gw.tickets(), done.text()
    make = p.inside.start("gh", "pr", "create", "-R", "acme/app", "--title", "By an agent", "--body", "x", "--head", "agent", "--base", "main", options=ask)
    ticket = p.inside.gw.pending()
    assert "mutation PullRequestCreate: createPullRequest" in json.dumps(ticket), ticket
    assert not [r for r in p.requests() if "createPullRequest" in r["body"]["query"]], p.requests()
    p.inside.gw.approve(ticket["id"])
    assert make.wait() == 0 and b"pull/13" in make.seen, make.seen
    asked = [r["body"]["query"] for r in p.requests()]
    assert [("createPullRequest" in query) for query in asked].count(True) == 1 and len(p.inside.gw.tickets("all")) == 1, asked
    assert all(r["path"] == "/api/graphql" and r["right"] for r in p.requests()), p.requests()


def an_sdk_answers(lab, kind, script):
    """Whole and as a stream: the stand-in's words, and its key nowhere."""
    p = Providers(lab, kind)
    modules = npm_modules(HERE / "npm") / "node_modules"
    done = p.inside("node", "-e", script, f"https://{kind}.test:{p.port}", options=[
        "--with", kind, "--read", modules, "--setenv", f"NODE_PATH={modules}", *p.inside.early("node")])
    words = b"The lease is not the key."
    assert b"whole: " + words + b"\n" in done.out and b"streamed: " + words + b"\n" in done.out, done.text()
    assert [r["right"] for r in p.requests()] == [True, True], p.requests()
    p.inside.had_no_secret("node", early=True)
    p.inside.had_no_secret("node")


@test()
def the_sdk_of_anthropic_streams_with_a_lease(lab):
    an_sdk_answers(lab, "anthropic", ANTHROPIC)


@test()
def the_sdk_of_openai_streams_with_a_lease(lab):
    an_sdk_answers(lab, "openai", OPENAI)


if __name__ == "__main__":
    main()
