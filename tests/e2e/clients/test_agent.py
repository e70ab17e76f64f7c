#!/usr/bin/env python3
"""An agent that has a tool and sees nothing but its exit status and its output: no page, no audit, no field of an answer. The same few
lines read what git, gh, npm, the aws CLI, kubectl, stripe and an MCP client print, and know each time what to do next: wait and repeat
the command, be done, or stop and say why. What a person does meanwhile is done while the agent waits, and only to what it has read of."""
import datetime as dt
import json
import re
import secrets
import shutil
import time

import room  # noqa: F401
from apis import LOOKS, raw
from gateway import Gateway, program, upstream_yaml
from harness import HERE, Skip, main, test
from ports import free_port
from servers import npm_modules
import certs

REASON = "Not before the audit, ask Ada."
RULE = "Agents change nothing here, ask in #platform."
ENOUGH = 12  # times that a command is run: one that is told to wait so often waits for nothing


class Agent:
    """tool() runs the command: (exit status, output). wait(ticket, until) is how it waits when it is told to."""

    HELD = re.compile(r"Ticket (\w{26}), open until (\S+Z)\. Repeat the same request, unchanged")
    EXPIRED = re.compile(r"(Nobody decided|The ticket expired).* Repeat the same request to ask again")
    REFUSED = re.compile(r"(Denied by .*) Do not repeat it unchanged: until (\S+Z) the answer is the same")
    FORBIDDEN = re.compile(r"(.*) Do not repeat it unchanged: the answer will be the same")

    def __init__(self, tool, wait):
        self.tool, self.wait, self.story = tool, wait, []

    def understand(self, status, said):
        """One word for what has happened, and what else there is to know of it."""
        text = " ".join(re.sub(r"(?m)^remote:", "", said).split())
        for word, words in (("held", self.HELD), ("expired", self.EXPIRED), ("refused", self.REFUSED), ("forbidden", self.FORBIDDEN)):
            if found := words.search(text):
                return word, found.groups()
        return ("done" if status == 0 else "lost"), (text,)

    def work(self):
        """Repeats the command for as long as that is what it is told: how it ends, and why."""
        tickets = []
        for _ in range(ENOUGH):
            word, known = self.understand(*self.tool())
            self.story.append(word)
            if word == "held":
                tickets += [known[0]] if known[0] not in tickets else []
                if len(tickets) > 1:
                    return "expired", f"nobody decided {tickets[0]}; {tickets[1]} is open now"
                self.wait(*known)
            elif word != "expired" or self.story.count(word) > 1:
                return word, known[0]
        return "lost", f"told to wait {ENOUGH} times"


class Recorded:
    """A tool, and lab/upstream.py with the few answers that it wants. AT, in its words and its variables, is the server's host and port,
    BRANCH one that nothing else is pushed to. fine: what the tool prints when it was done."""

    packs, inject, secret = "", "", b""

    def __init__(self, lab, words, fine, answers=None, env=None, modules=False):
        self.lab, self.words, self.fine, self.env, self.modules = lab, words, fine, env or {}, modules
        self.serve({**LOOKS, **(answers or {})})
        self.at = f"{self.host}:{self.port}"

    def serve(self, answers):
        self.up = self.lab.upstream("api.test")
        self.up.script({path: raw(answer) for path, answer in answers.items()})
        self.host, self.port, self.ca = self.up.name, self.up.port, self.up.ca

    def prepare(self, world, case):
        (world.work(case) / "file").write_text("data")

    def effects(self):
        return len([r for r in self.up.requests() if r["method"] not in ("GET", "HEAD")])


class Storage(Recorded):
    """The client signs with keys that open nothing: what it repeats it signs anew, and what is sent is signed with others."""

    inject = "sigv4: { region: eu-1, service: s3 }"

    def serve(self, answers):
        super().serve(answers)
        self.secret = f"AKIA{secrets.token_hex(8).upper()}:{self.lab.canary(secrets.token_urlsafe(30))}".encode()


class Git(Recorded):
    packs, inject = "git@1", "basic: true"
    WHO = ["-c", "user.name=Agent", "-c", "user.email=agent@sandbox.invalid"]

    def serve(self, answers):
        self.git = self.lab.git_server()
        self.host, self.port, self.ca = self.git.host, self.git.port, self.git.ca
        self.secret = f"{self.git.user}:{self.git.password}".encode()

    def prepare(self, world, case):
        for words in (["clone", "-q", self.git.url, "app"], ["-C", "app", *self.WHO, "commit", "-q", "--allow-empty", "-m", case]):
            status, said = world.run(case, ["git", *words])
            assert status == 0, said

    def effects(self):
        return len(self.git.landed())


class Npm(Recorded):
    packs, inject = "npm@1", "basic: true"

    def serve(self, answers):
        self.registry = self.lab.verdaccio()
        self.host, self.port, self.ca = self.registry.host, self.registry.port, self.registry.ca
        self.secret = f"{self.registry.user}:{self.registry.password}".encode()

    def prepare(self, world, case):
        (world.work(case) / "package.json").write_text(json.dumps({"name": f"agents-{case}", "version": "1.0.0", "description": "x"}))
        (world.work(case) / ".npmrc").write_text(f"registry={self.registry.url}\n//{self.at}/:_authToken=any\naudit=false\n"
                                                 "fund=false\nupdate-notifier=false\n")

    def effects(self):
        return len(list((self.registry.dir / "storage").glob("agents-*/*.tgz")))


class Mcp(Recorded):
    """The server of the SDK itself (mcp.cjs), with one tool that pays."""

    def serve(self, answers):
        self.host, self.port, self.paid = "mcp.test", free_port(), self.lab.dir / "paid"
        self.packs = f'{{ pack: mcp@1, hosts: ["{self.host}:{self.port}"] }}'
        ca = certs.CA(self.lab.dir / "ca")
        cert, key = ca.leaf(self.host)
        self.ca, config = ca.cert, self.lab.dir / "mcp.json"
        config.write_text(json.dumps({"port": self.port, "cert": str(cert), "key": str(key), "log": str(self.paid)}))
        self.lab.start(["node", HERE / "clients/mcp.cjs", npm_modules(HERE / "npm") / "node_modules", config], ready="ready")

    def effects(self):
        return len(self.paid.read_text().splitlines()) if self.paid.exists() else 0


STRIPE = """
const [host, port] = process.argv[1].split(":"), Stripe = require("stripe");
new Stripe("sk_test_any", { host, port, protocol: "https" }).refunds.create({ charge: "ch_1", amount: 500 })
  .then(r => console.log("refunded as", r.id), e => { console.log(e.type, e.message); process.exitCode = 1; });
"""
MCP = """
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
(async () => {
  const client = new Client({ name: "agent", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[1])));
  console.log((await client.listTools()).tools.map(tool => tool.name));
  console.log((await client.callTool({ name: "pay", arguments: { amount: 5 } })).content[0].text);
  process.exit();
})().catch(e => { console.log(e.message); process.exit(1); });
"""
AWS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_REGION": "eu-1", "AWS_DEFAULT_REGION": "eu-1", "AWS_PAGER": "",
       "AWS_EC2_METADATA_DISABLED": "true"}
GH = {"GH_HOST": "AT", "GH_ENTERPRISE_TOKEN": "any", "GH_NO_UPDATE_NOTIFIER": "1"}
DELETED = {"/api/v1/namespaces/default/configmaps/x": {"kind": "Status", "apiVersion": "v1", "status": "Success"}}
TOOLS = {
    "git": lambda lab: Git(lab, ["git", "-C", "app", "push", "origin", "HEAD:BRANCH"], "HEAD -> agent/approved"),
    "gh": lambda lab: Recorded(lab, ["gh", "api", "repos/acme/app/issues", "-f", "title=by an agent"], '"number"',
                               {"/api/v3/repos/acme/app/issues": {"number": 7}}, GH),
    "npm": lambda lab: Npm(lab, ["npm", "publish"], "+ agents-approved@1.0.0"),
    "aws": lambda lab: Storage(lab, ["aws", "--endpoint-url", "https://AT", "s3", "cp", "file", "s3://bucket/key"],
                               "upload: ./file to s3://bucket/key", {"/bucket/key": ""}, AWS),
    "kubectl": lambda lab: Recorded(lab, "kubectl --server https://AT --token any --cache-dir /tmp/cache delete --wait=false configmap x".split(),
                                    'configmap "x" deleted', DELETED),
    "stripe": lambda lab: Recorded(lab, ["node", "-e", STRIPE, "AT"], "refunded as re_1", {"/v1/refunds": {"id": "re_1", "object": "refund"}},
                                   modules=True),
    "mcp": lambda lab: Mcp(lab, ["node", "-e", MCP, "https://AT/mcp"], "paid 5", modules=True),
}


class World:
    """The tool's server, a gateway before it, and a sandbox for each of what may become of its request, which has that for its name."""

    HELD = {"approved": "within: 2h, inline_wait: 0s", "refused": "within: 2h, inline_wait: 0s",
            "late": "within: 1s", "forgotten": "within: 3s, inline_wait: 0s"}

    def __init__(self, lab, tool):
        if not shutil.which(tool.words[0], path="/usr/bin"):
            raise Skip(f"{tool.words[0]} of Debian (conf/need test)")
        lab.leaves("pending")  # forgotten: what it asks in the end
        self.lab, self.tool = lab, tool
        place, cases = f"host: {tool.host}, port: {tool.port}", [*self.HELD, "forbidden"]
        use = ", use: key" if tool.inject else ""
        credential = f"""credentials:
  key: {{ source: {{ store: key }}, inject: {{ {tool.inject} }}, only: [{{ {place} }}] }}
""" if tool.inject else ""
        packs = f"packs: [{tool.packs}]\n" if tool.packs else ""
        changes = f"match: {{ {place}, effect: [write, delete] }}"
        rules = "".join(f"  - {{ id: {case}, scope: {case}, {changes}, decide: hold, approve: {{ {how} }}{use} }}\n"
                        for case, how in self.HELD.items())
        self.gw = Gateway(lab, f"""version: 1
name: agents
{packs}scopes: {{ {', '.join(f'{case}: {{ sandboxes: [{case}] }}' for case in cases)} }}
upstreams:
{upstream_yaml(tool.host, tool.port, tool.ca)}{credential}rules:
  - {{ id: look, match: {{ {place}, effect: read }}, decide: allow{use} }}
{rules}  - {{ id: forbidden, scope: forbidden, {changes}, decide: deny, say: "{RULE}" }}
""", {"key": tool.secret} if tool.inject else {}, hold="inline_wait: 1m, expires: 2h")
        for case in cases:
            self.work(case).mkdir()
            tool.prepare(self, case)

    def work(self, case):
        return self.lab.dir / f"work-{case}"

    def run(self, case, words):
        modules = npm_modules(HERE / "npm") / "node_modules" if self.tool.modules else None
        options = ["--read", modules, "--setenv", f"NODE_PATH={modules}"] if modules else []
        options += sum((["--setenv", f"{k}={v.replace('AT', self.tool.at)}"] for k, v in self.tool.env.items()), [])
        words = [word.replace("AT", self.tool.at).replace("BRANCH", f"agent/{case}") for word in words]
        done = self.lab.run([program(), "run", "--quiet", "--name", case, "--state-dir", self.gw.state, "--workspace", self.work(case),
                             *options, "--", *words])
        return done.rc, done.text()

    def agent(self, case, outside, ends):
        """It does its work and ends like that; what it says, and what it met on the way. What was sent: only what was approved."""
        agent = Agent(lambda: self.run(case, self.tool.words), outside)
        ended, why = agent.work()
        assert ended == ends, (case, agent.story, ended, why)
        assert self.tool.effects() == 1, (case, agent.story)
        return why, agent.story

    def approved(self):
        """It comes twice before anybody has looked, is told of one ticket, and comes once more."""
        told = []

        def outside(ticket, until):
            told.append(ticket)
            if len(told) == 2:
                assert self.tool.effects() == 0
                self.gw.approve(ticket)
        why, story = self.agent("approved", outside, "done")
        assert story == ["held", "held", "done"] and self.tool.fine in why, (story, why)

    def refused(self):
        why, story = self.agent("refused", lambda ticket, until: self.gw.deny(ticket, REASON), "refused")
        assert story == ["held", "refused"] and REASON in why, (story, why)

    def forbidden(self):
        why, story = self.agent("forbidden", None, "forbidden")
        assert story == ["forbidden"] and RULE in why, (story, why)

    def late(self):
        """Nobody decides while the tool waits: it asks again, since it is told that it may, and then leaves it."""
        _, story = self.agent("late", None, "expired")
        assert story == ["expired", "expired"], story

    def forgotten(self):
        """Nobody decides until the time that it was told: what it repeats then is asked anew."""
        def outside(ticket, until):
            then = dt.datetime.fromisoformat(until.replace("Z", "+00:00")).timestamp()
            self.lab.wait_for("the time that it was told", lambda: time.time() > then and ticket not in [t["id"] for t in self.gw.tickets()])
        why, story = self.agent("forgotten", outside, "expired")
        assert story == ["held", "held"], (story, why)


def add(name, tool):
    def a_tool(lab):
        world = World(lab, tool(lab))
        for case in (world.approved, world.refused, world.forbidden, world.late, world.forgotten):
            case()
    a_tool.__name__ = f"what_{name}_prints_is_enough"
    test()(a_tool)


for entry in TOOLS.items():
    add(*entry)

if __name__ == "__main__":
    main()
