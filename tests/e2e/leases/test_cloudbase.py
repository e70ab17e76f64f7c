#!/usr/bin/env python3
"""@cloudbase/cloudbase-mcp, unmodified and with nothing set but a pair of Tencent Cloud's form, inside `countersign run --with`: what
its tools call is signed with the pair, and the service (lab/signed.py) takes the real keys' signatures alone. It stands in a
network of the test's own, at the real name and port: the client signs names without a port."""
import json

from clients import Storage
import netns
from harness import HERE, main, test
from servers import npm_modules

WHY = netns.own()
CALL = {"name": "callCloudApi", "arguments": {"service": "tcb", "action": "DescribeEnvs", "params": {"Limit": 1}}}
CLIENT = """
const { spawn } = require("child_process"), { createInterface } = require("readline");
const server = spawn(process.execPath, [process.argv[1]], { stdio: ["pipe", "pipe", "inherit"] });
const say = message => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
createInterface({ input: server.stdout }).on("line", line => {
  const answer = JSON.parse(line);
  if (answer.id === 1) {
    say({ method: "notifications/initialized" });
    say({ id: 2, method: "tools/call", params: JSON.parse(process.argv[2]) });
  } else if (answer.id === 2) {
    console.log("called:", JSON.stringify(answer.result ?? answer.error));
    server.kill("SIGTERM");
  }
});
server.on("exit", (code, signal) => console.log("ended:", code, signal));
say({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } } });
"""


def called(lab, *more, **how):
    s = Storage(lab, "tc3: { service: tcb }", "tencent", host="tcb.tencentcloudapi.com", port=443)
    modules = npm_modules(HERE / "npm") / "node_modules"
    names = (*more, "CLOUDBASE_MCP_TELEMETRY_DISABLED=true", f"NODE_PATH={modules}")
    done = s("env", "node", "-e", CLIENT, modules / "@cloudbase/cloudbase-mcp/dist/cli.cjs", json.dumps(CALL), early="node",
             options=["--read", modules, *sum((["--setenv", name] for name in names), [])], **how)
    assert b'\\"Action\\": \\"DescribeEnvs\\"' in done.out and b"ended: 0" in done.out, done.text()
    s.signed.all_were_right(1)
    s.inside.had_no_secret("node", early=True)
    return s, done


@test()
def a_tool_of_cloudbase_is_called(lab):
    netns.need(WHY)
    called(lab, "CLOUDBASE_ENV_ID=demo-1")


@test()
def a_tool_of_cloudbase_is_called_with_the_variables_of_a_whole_environment(lab):
    netns.need(WHY)
    s, done = called(lab, named="keys=cloudbase", env={"CLOUDBASE_ENV_ID": "demo-1", "TENCENTCLOUD_REGION": "$(id)"})
    assert b"keys is in TENCENTCLOUD_SECRETID, TENCENTCLOUD_SECRETKEY, TENCENTCLOUD_SESSIONTOKEN" in done.err, done.text()
    there = s("env", "env", named="keys=cloudbase", env={"CLOUDBASE_ENV_ID": "demo-1", "TENCENTCLOUD_REGION": "$(id)"}).out.splitlines()
    names = {line.partition(b"=")[0] for line in there}
    assert b"CLOUDBASE_ENV_ID=demo-1" in there and b"TENCENTCLOUD_SESSIONTOKEN" in names and b"TENCENTCLOUD_REGION" not in names, there


if __name__ == "__main__":
    main()
