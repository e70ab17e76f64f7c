#!/usr/bin/env python3
"""Claude Code and Codex, unmodified, from npm, in a started sandbox. Each has a lease in its environment and nothing else; its scripted
model asks for a command, the command's request is held until a person has approved it, and the agent ends with its model's last words."""
import json
import os
import shutil

import room
from boxes import execute, start
from gateway import Gateway, upstream_yaml
from harness import main, test
from lab.servers import npm_modules
from models import Model, text

NPM = room.HERE.parent / "npm/agents"
LAST = "The note was sent, and I am done."
CODEX = """model = "scripted-1"
model_provider = "gateway"
sandbox_mode = "danger-full-access"
approval_policy = "never"
[model_providers.gateway]
name = "OpenAI"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
# The kind of lease, where the gateway puts the credential in, and the one POST that is the agent's own.
AGENTS = {"anthropic": ('header: x-api-key, format: "{}"', "/v1/messages"),
          "openai": ('header: Authorization, format: "Bearer {}"', "/v1/responses")}


def policy(kind, model, up):
    inject, path = AGENTS[kind]
    at, there = f"host: {model.name}, port: {model.port}", f"host: {up.name}, port: {up.port}"
    return f"""version: 1
name: agents
scopes:
  web: {{ labels: {{ lane: [web] }} }}
upstreams:
{upstream_yaml(model.name, model.port, model.ca)}{upstream_yaml(up.name, up.port, up.ca)}
credentials:
  model:
    source: {{ store: model }}
    inject: {{ {inject} }}
    lease: {kind}
    require_lease: true
    only: [{{ {at} }}]
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{{ {there} }}]
rules:
  - {{ id: model, match: {{ {at}, method: POST, path: {path} }}, scope: web, decide: allow, use: model }}
  - {{ id: writes, match: {{ {there}, effect: write }}, scope: web, decide: hold, use: api, approve: {{ within: 2h }} }}
"""


def programs(lab):
    """The packages, where sandboxes can be given them; they are the cache's own files, and hold nothing."""
    place = lab.dir / "agents"
    shutil.copytree(npm_modules(NPM) / "node_modules", place, copy_function=copy, symlinks=True)
    return lab.exempt(place)


def copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


class Case:
    def __init__(self, lab, kind):
        self.lab, self.kind, self.model, self.up = lab, kind, Model(lab), lab.upstream()
        secret = lab.canary("sk-ant-" + "m" * 60) if kind == "anthropic" else lab.canary("sk-" + "m" * 60)
        self.gw = Gateway(lab, policy(kind, self.model, self.up), {"model": secret.encode(), "api": lab.canary("c" * 40).encode()},
                          config=f"mounts: [{{ name: agents, path: {programs(lab)}, tenants: [default] }}]\n")
        lab.dir.chmod(0o755)
        self.url = f"https://{self.model.name}:{self.model.port}"
        self.secret = secret
        start(self.gw, "box", "--lane", "web", "--memory", "4G", "--mount", "agents:/mnt/agents")
        told = self.gw.cli("lease", "env", "model", "--sandbox", "box", "--format", "docker", rc=0).out.decode()
        self.lease = dict(line.split("=", 1) for line in told.splitlines() if line and not line.startswith("#"))

    def command(self):
        return f"echo remember > note && curl -sS --cacert $CURL_CA_BUNDLE --data-binary @note https://{self.up.name}:{self.up.port}/ok"

    def run(self, env, *words):
        """The agent, to its end; the write is approved while it waits."""
        options = [word for name, value in {**self.lease, **env}.items() for word in ("--env", f"{name}={value}")]
        agent = self.gw.lab.start(["countersign", "sandbox", "exec", "--timeout", "280s", *options, "box", "--", *words],
                                  env={"COUNTERSIGN_STATE": self.gw.state, "PATH": os.environ["PATH"]})
        ticket = self.gw.pending()
        assert (ticket["sandbox"], ticket["host"]) == ("box", self.up.name) and not self.up.effects(), ticket
        self.gw.approve(ticket["id"])
        agent.told = True
        assert agent.wait() == 0 and LAST.encode() in agent.seen, agent.seen.decode()[-4000:]
        self.proven()

    def proven(self):
        """The write came once, with its credential, and the model was asked with its own; inside there is a lease alone, for the sandbox
        runs on, and is searched with everything else when the test is over."""
        assert self.up.effects() == {"POST /ok": 1}, self.up.effects()
        sent, = [r for r in self.up.requests() if r["method"] == "POST"]
        assert ["Authorization", "Bearer " + "c" * 40] in sent["fields"], sent
        turns = [a for a in self.model.asked if a["path"].partition("?")[0] == AGENTS[self.kind][1]]
        assert len(turns) >= 2, [a["path"] for a in self.model.asked]
        for asked in turns:
            assert self.secret in (asked["fields"].get("x-api-key"), asked["fields"].get("authorization", "").removeprefix("Bearer ")), asked["fields"]
            assert not any(lease in json.dumps(asked["fields"]) for lease in self.lease.values()), asked["fields"]
        assert execute(self.gw, "box", "cat", "/workspace/note").out == b"remember\n"


@test()
def claude_code_finishes_a_tool_turn(lab):
    case = Case(lab, "anthropic")

    def answer(asked):
        tools = [t["name"] for t in asked["body"].get("tools", ())]
        if "tool_result" in json.dumps(asked["body"]["messages"]):
            return text(LAST)
        return {"calls": [("Bash", {"command": case.command(), "description": "Send the note"})]} if "Bash" in tools else text("A note")
    case.model.otherwise = answer
    case.run({"ANTHROPIC_BASE_URL": case.url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "HOME": "/home/agent"},
             "/mnt/agents/@anthropic-ai/claude-code-linux-x64/claude", "-p", "send the note", "--dangerously-skip-permissions")


@test()
def codex_finishes_a_tool_turn(lab):
    case = Case(lab, "openai")

    def answer(asked):
        if "function_call_output" in json.dumps(asked["body"]["input"]):
            return text(LAST)
        tools = {t.get("name"): t for t in asked["body"]["tools"]}
        name = next(n for n in ("exec_command", "shell_command", "shell") if n in tools)
        word = "cmd" if name == "exec_command" else "command"
        wait = {"exec_command": {"yield_time_ms": 30000}}.get(name, {"timeout_ms": 280000})
        return {"calls": [(name, {word: ["sh", "-c", case.command()] if name == "shell" else case.command(), **wait})]}
    case.model.otherwise = answer
    execute(case.gw, "box", "sh", "-c", 'mkdir -p /home/agent/.codex && printf %s "$1" > /home/agent/.codex/config.toml', "sh",
            CODEX.format(url=case.url))
    program, = (npm_modules(NPM) / "node_modules").glob("@openai/codex-linux-x64/vendor/*/bin/codex")
    case.run({"HOME": "/home/agent"}, f"/mnt/agents/{program.relative_to(npm_modules(NPM) / 'node_modules')}",
             "exec", "--skip-git-repo-check", "send the note")


if __name__ == "__main__":
    main()
