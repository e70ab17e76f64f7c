#!/usr/bin/env python3
"""MCP servers of npm, unmodified, in the conversation's sandbox: their tools are the model's, each call is one of theirs, and what they
ask, send or break is answered, bounded and said."""
import json
import os
import shutil
import signal

import room
from boxes import inside
from brokers import Broker
from collector import Collector, hashed
from harness import main, test
from lab.servers import npm_modules
from models import Gate, call, text

NPM = room.HERE.parent / "npm/agents"
PACKAGES = "/mnt/mcp/node_modules/@modelcontextprotocol"
TOOLS = f"""version: 1
servers:
  files:
    command: [node, {PACKAGES}/server-filesystem/dist/index.js, /workspace]
    read: [read_text_file, list_directory, write_file]
    start: 5m
  all: {{ command: [node, {PACKAGES}/server-everything/dist/index.js, stdio], timeout: 20s, start: 5m }}
  new: {{ command: [node, /mnt/mcp/new.mjs], start: 5m }}
  none: {{ command: [/bin/sh, -c, "echo no such thing >&2; exit 3"] }}
"""
# A server of the newer era: it has no session, and gets what it wants in another round. A word of it is no message.
NEW = """import readline from 'node:readline'
console.log('a new server is here')
const say = (id, more) => console.log(JSON.stringify({ jsonrpc: '2.0', id, ...more }))
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (params._meta['io.modelcontextprotocol/protocolVersion'] !== '2026-07-28') return say(id, { error: { code: -32022, message: 'no' } })
  const version = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, serverInfo: { name: 'new', version: '1' } }
  if (method === 'server/discover') return say(id, { result: version })
  const output = { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'] }
  if (method === 'tools/list')
    return say(id, { result: { resultType: 'complete', ttlMs: 0, tools: [
      { name: 'ask', inputSchema: { type: 'object' } }, { name: 'end', inputSchema: { type: 'object' } },
      { name: 'liar', inputSchema: { type: 'object' }, outputSchema: output }, { name: 'sleep', inputSchema: { type: 'object' } }] } })
  if (method !== 'tools/call') return say(id, { error: { code: -32601, message: 'Method not found' } })
  if (params.name === 'end') process.exit(7)
  if (params.name === 'liar') return say(id, { result: { content: [{ type: 'text', text: 'trust me' }], structuredContent: { sum: 'much' } } })
  if (params.name === 'sleep') return
  if (params.requestState !== 'round 1')
    return say(id, { result: { resultType: 'input_required', requestState: 'round 1',
      inputRequests: { sure: { method: 'elicitation/create', params: { mode: 'form', message: 'Are you sure?', requestedSchema: { type: 'object', properties: {} } } } } } })
  say(id, { result: { content: [{ type: 'text', text: `you said ${params.inputResponses.sure.action} to ${params.arguments.what} in ${params._meta.traceparent}` }] } })
})
"""


def copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def servers(lab, tools=TOOLS, **how):
    """A broker whose conversations have these servers; the packages are the cache's own files."""
    place = lab.exempt(lab.dir / "mcp")
    shutil.copytree(npm_modules(NPM) / "node_modules", place / "node_modules", copy_function=copy, symlinks=True,
                    ignore=shutil.ignore_patterns("claude-code*", "codex*"))
    (place / "new.mjs").write_text(NEW)
    (lab.dir / "tools.yaml").write_text(tools)
    lab.dir.chmod(0o755)
    spans = Collector(lab)
    return Broker(lab, more=", tools: tools.yaml" + spans.more(), also=spans.also(),
                  config=f"mounts: [{{ name: mcp, path: {place}, tenants: [default], dock: /mnt/mcp }}]\n", **how)


def tools_of(broker, n=-1):
    return {t["name"]: t for t in broker.model.asked[n]["body"]["tools"]}


def turn(broker, words, steps, said=None, end="completed"):
    """Runs a turn to its end: (what was said, its reader)."""
    broker.model.script([*steps, text("That is all.")])
    said = broker.chat(words, **({"conversation_id": said["conversation_id"]} if said else {}))
    reader = broker.read(said)
    reader.until("turn.done", end=end)
    reader.whole()
    return said, reader


def classes(reader):
    return {e[1]["event"]["tool"]: e[1]["event"]["class"] for e in reader.events if e[0] == "tool.call"}


@test()
def servers_of_both_eras_are_a_models_tools(lab):
    broker = servers(lab, workers=1)
    model = broker.model
    said, reader = turn(broker, "look", [
        call("files__write_file", path="/workspace/a.txt", content="of a server\n"),
        call("files__read_text_file", call("files__list_directory", path="/workspace"), path="/workspace/a.txt"),
        call("read_file", path="a.txt"),
        call("all__echo", call("all__get-sum", a=2, b=3), call("all__no-such-tool"), message="hello\nthere"),
        call("new__ask", what="breakfast")])
    # What they have, and what has none is said, once.
    tools = tools_of(broker)
    assert {"run_command", "files__read_text_file", "all__echo", "new__ask", "new__liar"} <= tools.keys(), tools.keys()
    assert tools["files__read_text_file"]["input_schema"]["properties"]["path"] and tools["all__echo"]["description"], tools
    states = {e[1]["event"]["server"]: e[1]["event"] for e in reader.events if e[0] == "tool.server"}
    assert {name: state["state"] for name, state in states.items()} == {"files": "ready", "all": "ready", "new": "ready", "none": "failed"}, states
    assert "no such thing" in states["none"]["why"] and not [name for name in tools if name.startswith("none__")], states
    # What was said; and the workspace is one.
    results = model.results()
    assert [failed for failed, _ in results] == [False] * 6 + [True, False], results
    assert results[1][1].startswith("of a server") and "a.txt" in results[2][1] and "of a server" in results[3][1], results
    assert "hello\nthere" in results[4][1] and "5" in results[5][1] and "no tool of that name" in results[6][1], results
    assert "declined: Are you sure?" in results[7][1] and "you said decline to breakfast" in results[7][1], results[7]
    begun = hashed(said["conversation_id"] + said["turn_id"], 32)
    assert f"in 00-{begun}-{hashed(said['turn_id'] + '/5/call/0.1', 16)}-01" in results[7][1], results[7]
    # The operator says what only reads; a server that says otherwise of its own tool is heard.
    assert classes(reader) == {"files__write_file": "unsafe", "files__read_text_file": "read", "files__list_directory": "read", "read_file": "read",
                               "all__echo": "unsafe", "all__get-sum": "unsafe", "broken-call": "read", "new__ask": "unsafe"}, classes(reader)
    what_goes_wrong(broker, said)


def what_goes_wrong(broker, said):
    model = broker.model
    # One that ends in the middle: nobody knows, and the next call has it again; what breaks its own schema is shown to nobody.
    said, _ = turn(broker, "end it", [call("new__end"), call("new__ask", what="lunch"), call("new__liar")], said)
    (ended, how), (failed, asked), (lied, told) = model.results()[-3:]
    assert "may have succeeded" in how and "confirm the state" in json.dumps(model.asked[-3]["body"]["messages"][-1]), how
    assert not failed and "to lunch" in asked and lied and "/sum" in told and "trust me" not in told, (asked, told)
    # One that asks the person, by the older era's way.
    said, reader = turn(broker, "ask", [call("all__trigger-elicitation-request")], said)
    assert "declined" in model.results()[-1][1], model.results()[-1]
    # The sandbox ends, and the servers with it: they run in the next one.
    gate = Gate(call("files__list_directory", path="/workspace"))
    model.script([gate, text("It is empty.")])
    said = broker.chat("and now", conversation_id=said["conversation_id"])
    assert gate.reached.wait(60)
    broker.gw.cli("sandbox", "destroy", "c-" + said["conversation_id"], rc=0)
    gate.go.set()
    reader = broker.read(said)
    reader.until("turn.done", end="completed")
    assert "a.txt" not in model.results()[-1][1], model.results()[-1]
    # Whoever runs the turn is killed in the middle of a call: it is not repeated, and the model is told so; what only reads is.
    model.script([call("new__sleep"), call("files__list_directory", path="/workspace"), text("I see.")])
    said = broker.chat("be killed", conversation_id=said["conversation_id"])
    reader = broker.read(said)
    reader.until("tool.call", tool="new__sleep")
    broker.lab.expects(r"parent: the broker .* ended by signal 9; restarting it")
    os.kill(broker.pid(1), signal.SIGKILL)
    reader.until("turn.done", end="completed")
    reader.whole()
    assert "may have succeeded" in model.results()[-2][1] and not model.results()[-1][0], model.results()[-2:]
    # A call that is never answered: the turn is cancelled, and its server ends with it.
    model.script([call("new__sleep")])
    said = broker.chat("sleep", conversation_id=said["conversation_id"])
    reader = broker.read(said)
    reader.until("tool.call", tool="new__sleep")
    assert broker.ask("POST", f"/turns/{said['turn_id']}/cancel", {})[0] == 202
    reader.until("turn.done", end="cancelled")
    reader.whole()
    broker.lab.wait_for("no server of a turn that is over", lambda: not [line for _, line in inside(broker.gw) if b"/mnt/mcp/" in line])


if __name__ == "__main__":
    main()
