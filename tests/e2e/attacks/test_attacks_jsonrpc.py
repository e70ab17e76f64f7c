#!/usr/bin/env python3
"""Messages of JSON-RPC and tools of MCP that look like something else (attacks.tsv B32, B33): none that is denied passes."""
import json

import room  # noqa: F401
from attack import everywhere, wide
from harness import main, test  # noqa: F401


def say(method, params=None, **more):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params is not None else {}), **more})


def call(tool, arguments=None, **more):
    return say("tools/call", {"name": tool, "arguments": arguments or {}, **more})


LIST, DROP, DELETE = say("ok"), say("drop"), call("delete_all")
FORM = "application/x-www-form-urlencoded"

# id: its path, what is stopped, and what passes: a body, or (body or None for a GET, what follows the path, other fields)
CASES = {
    "B32": ("/w/rpc",
            [DROP, say("Drop"), f"[{LIST},{DROP}]", f"[{DROP}]", f"[[{DROP}]]", f"[{LIST},[{DROP}]]", "[]", f"[{LIST},null]", f"{LIST}{DROP}", f"{LIST}\n{DROP}",
             '{"jsonrpc":"2.0","method":"drop"}', '{"method":"drop"}', '{"jsonrpc":"2.0","id":1,"method":"ok","method":"drop"}', '{"jsonrpc":"2.0","id":1,"method":"ok","Method":"drop"}',
             '{"jsonrpc":"2.0","id":1,"meth\\u006fd":"drop"}', '{"jsonrpc":"2.0","id":1,"method":"dr\\u006fp"}', '{"jsonrpc":"2.0","id":1,"method":["drop"]}', '{"jsonrpc":"1.0","id":1,"method":"ok"}',
             "[" + ",".join([LIST] * 501) + "]", (LIST, "?method=drop", ()), (None, "?method=drop", ()), ("method=drop", "", ("Content-Type: " + FORM,)), (DROP, "", ("Content-Type: text/plain",))],
            [LIST, f"[{LIST},{LIST}]", say("ok", ["drop"]), say("dropped"), (None, "?a=drop", ())]),
    "B33": ("/w/mcp",
            [DELETE, call("Delete_All"), f"[{say('tools/list')},{DELETE}]", call("delete"), say("tools/call", {"name": "search", "Name": "delete_all"}),
             say("tools/call", {"name": ["delete_all"]}), say("tools/call", ["delete_all"]), say("tools/call"), say("tools/call", {"n\u0061me": "delete_all"}), say("tools/call", {"name": "search\x00delete"}),
             call("move", {"to": "trash"}), call("move", {"To": "trash"}), call("move", [{"to": "trash"}]), call("move", '{"to":"trash"}'), call("move", {"to": '["trash"]'}), say("tools/call", {"name": "move", "Arguments": {"to": "trash"}}),
             (say("tools/list"), "", ("Mcp-Method: tools/call",)), (say("tools/list"), "", ("Mcp-Name: delete_all",)), (call("search"), "", ("Mcp-Method: tools/call", "Mcp-Name: delete_all")),
             (call("search"), "", ("Mcp-Name: search", "Mcp-Name: delete_all"))],
            [say("tools/list"), call("search", {"q": "delete_all"}), call("undelete"), say("prompts/get", {"name": "delete_all"}), call("move", {"to": "inbox"}),
             (call("search"), "", ("Mcp-Method: tools/call", "Mcp-Name: search"))]),
}
RULES = [("methods: path: /w/rpc, jsonrpc: { method: drop }", "deny"), ("tools: path: /w/mcp, mcp: { tool: \"delete*\" }", "deny"),
         ("arguments: path: /w/mcp, mcp: { arguments: [{ pointer: /to, equals: trash }] }", "deny")]


def ask(rig, transport, path, case, n):
    body, more, fields = case if isinstance(case, tuple) else (case, "", ())
    data = (body or "").encode()
    head = ["GET", path + more] if body is None else ["POST", path + more, *(() if any("Content-Type" in f for f in fields) else ("Content-Type: application/json",)), f"Content-Length: {len(data)}"]
    wire = rig.open(transport, split="bytes") if n % 5 == 4 and len(data) < 1000 else rig.open(transport)
    got = wire.talk(wire.head(*head, *fields) + data, 1)
    wire.close()
    return got, (head[0], head[1], data)


@everywhere(list(CASES), more=lambda up: wide(up, RULES))
def what_may_be_denied_is_stopped(rig, transport, case):
    path, stopped, passed = CASES[case]
    for n, what in enumerate(stopped):
        got, _ = ask(rig, transport, path, what, n)
        rig.refused(f"{case} {str(what)[:200]}", got, closed=False, status=403)
    for n, what in enumerate(passed):
        got, arrives = ask(rig, transport, path, what, n)
        rig.passed(f"{case} {what}", got, [arrives])


if __name__ == "__main__":
    main()
