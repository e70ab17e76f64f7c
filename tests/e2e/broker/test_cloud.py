#!/usr/bin/env python3
"""@cloudbase/cloudbase-mcp, unmodified, in a conversation's sandbox over stdio: its tools are the model's, and what they call is signed
with a lease that the operator put into its variables. What reads passes, what writes waits for a person. The service stands in a network of the
test's own, at the real name and port: the client signs names without a port."""
import json
import secrets
import shutil
import sys

import room
from brokers import Broker
from gateway import upstream_yaml
from harness import HERE, main, test
from lab import netns
from lab.servers import npm_modules
from models import call, text

WHY = netns.own()
NAME = "tcb.tencentcloudapi.com"
TOOLS = """version: 1
servers:
  cloud:
    command: [node, /mnt/mcp/node_modules/@cloudbase/cloudbase-mcp/dist/cli.cjs]
    env: { TENCENTCLOUD_SECRETID: "{lease:keys}", TENCENTCLOUD_SECRETKEY: "{secret:keys}", TENCENTCLOUD_SESSIONTOKEN: "{lease:keys}",
           CLOUDBASE_ENV_ID: demo-1, CLOUDBASE_MCP_TELEMETRY_DISABLED: "true" }
    read: [queryEnv, callCloudApi]
    start: 5m
"""


class Cloud:
    """lab/signed.py with keys of its own."""

    def __init__(self, lab):
        self.dir = lab.exempt(lab.dir / "cloud")
        self.dir.mkdir()
        keys = {"id": lab.canary("AKID" + secrets.token_hex(16)), "secret": lab.canary(secrets.token_urlsafe(30)),
                "token": lab.canary(secrets.token_urlsafe(60)), "role": None}
        (self.dir / "keys.json").write_text(json.dumps(keys))
        said = json.loads(lab.start([sys.executable, HERE / "lab/signed.py", "--dir", self.dir, "--name", NAME, "--port", "443"],
                                    ready=rb"ready (\{.*\})").ready[1])
        self.also = {
            "upstreams": upstream_yaml(NAME, 443, said["ca"]),
            "credentials": f"  keys:\n    source: {{ store: keys }}\n    inject: {{ tc3: {{ service: tcb }} }}\n    lease: tencent\n    require_lease: true\n"
                           f"    only: [{{ host: {NAME} }}]\n",
            "rules": f'  - {{ id: describes, match: {{ host: {NAME}, method: POST, header: {{ X-TC-Action: "Describe*" }} }}, decide: allow, use: keys }}\n'
                     f'  - {{ id: others, match: {{ host: {NAME} }}, except: [{{ header: {{ X-TC-Action: "Describe*" }} }}], decide: hold, use: keys, '
                     "approve: { within: 2h } }\n",
            "secrets": {"keys": ":".join((keys["id"], keys["secret"], keys["token"])).encode()}}

    def requests(self):
        path = self.dir / "requests.jsonl"
        seen = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        assert not [r for r in seen if r["wrong"]], seen
        return seen


@test()
def the_tools_of_cloudbase_are_a_models(lab):
    netns.need(WHY)
    cloud, place = Cloud(lab), lab.exempt(lab.dir / "mcp")
    shutil.copytree(npm_modules(room.HERE.parent / "npm") / "node_modules/@cloudbase", place / "node_modules/@cloudbase", symlinks=True)
    (lab.dir / "tools.yaml").write_text(TOOLS)
    lab.dir.chmod(0o755)
    broker = Broker(lab, workers=1, lanes=True, more=", tools: tools.yaml", also=cloud.also,
                    config=f"mounts: [{{ name: mcp, path: {place}, tenants: [default], dock: /mnt/mcp }}]\n")
    api = {"service": "tcb", "params": {"EnvId": "demo-1"}}
    broker.model.script([call("cloud__callCloudApi", action="DescribeEnvs", **api), call("cloud__queryEnv", action="list"),
                         call("cloud__callCloudApi", action="ModifyEnv", **api), text("It is done.")])
    said = broker.chat("look, and change it")
    reader = broker.read(said)
    ticket = broker.gw.pending()
    assert (ticket["sandbox"], ticket["host"]) == ("c-" + said["conversation_id"], NAME), ticket
    before = len(cloud.requests())
    assert before >= 1, before  # what reads has passed
    broker.gw.approve(ticket["id"])
    reader.until("turn.done", end="completed")
    reader.whole()
    state, = [e[1]["event"] for e in reader.events if e[0] == "tool.server"]
    assert (state["state"], state["tools"], state["left_out"]) == ("ready", 40, 0), state
    tools = [t["name"] for t in broker.model.asked[0]["body"]["tools"] if t["name"].startswith("cloud__")]
    assert len(tools) == 40 and {"cloud__queryEnv", "cloud__manageFunctions"} < set(tools), tools
    described, listed, changed = broker.model.results()
    assert "DescribeEnvs" in described[1] and not described[0] and not listed[0], (described, listed)
    assert "ModifyEnv" in changed[1] and not changed[0] and len(cloud.requests()) > before, changed
    # The operator says that it only reads, and the server that it does not.
    classes = {e[1]["event"]["tool"]: e[1]["event"]["class"] for e in reader.events if e[0] == "tool.call"}
    assert classes == {"cloud__callCloudApi": "unsafe", "cloud__queryEnv": "read"}, classes
    # Leases of the sandbox's are all that is inside: the harness looks for the keys in all that it has, and it runs.
    box = "c-" + said["conversation_id"]
    leases = [r for r in broker.gw.cli_json("lease", "list", "--sandbox", box)["leases"] if r["sandbox"] == box]
    assert [(r["credential"], r["state"]) for r in leases] == [("keys", "live")], leases


if __name__ == "__main__":
    main()
