#!/usr/bin/env python3
"""MCP servers over HTTP, by way of the gateway: the broker shows a lease, the server is asked with the credential, what writes waits for
a person, and what a server does that it should not is bounded and said."""
import http.server
import json
import os
import signal
import ssl
import threading

import room  # noqa: F401
from brokers import Broker
from collector import Collector, hashed
from gateway import upstream_yaml
from harness import PATIENCE, main, test
from lab import certs
from lab.ports import free_port
from models import call, text

TOOLS = """version: 1
servers:
  new:  {{ url: "https://{host}:{port}/mcp/new", lease: tools, read: [look, see] }}
  old:  {{ url: "https://{host}:{port}/mcp/old", timeout: 60s }}
  away: {{ url: "https://nowhere.test/mcp" }}
"""
POLICY = """  - {{ id: asks, match: {{ {at}, op: mcp.ask }}, decide: allow, use: tools }}
  - {{ id: looks, match: {{ {at}, path: /mcp/new, mcp: {{ tool: [look, lose, big, away] }} }}, decide: allow, use: tools }}
  - {{ id: notes, match: {{ {at}, path: /mcp/new, mcp: {{ tool: [note, see] }} }}, decide: hold, use: tools, approve: {{ within: 2h }} }}
  - {{ id: old, match: {{ {at}, path: /mcp/old }}, decide: allow, use: tools }}
"""
SCHEMA = {"type": "object", "properties": {"what": {"type": "string", "x-mcp-header": "What"}}}
BAD = {"type": "object", "properties": {"what": {"type": "string", "x-mcp-header": "two words"}}}


class Tools:
    """A server of both eras, at two paths, with TLS; it keeps each request's method, path, fields and body."""
    name = "tools.test"

    def __init__(self, lab):
        self.lab, self.seen, self.answers, self.lock = lab, [], {}, threading.Condition()
        self.port, home = free_port(), lab.dir / "tools"
        lab.exempt(home)
        authority = certs.CA(home / "ca")
        cert, key = authority.leaf(self.name)
        self.ca = authority.cert
        tools = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                tools.post(self)

            def do_GET(self):
                tools.get(self)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        lab.at_end.append(self.server.shutdown)

    def keep(self, request, body):
        fields = {name.lower(): value for name, value in request.headers.items()}
        with self.lock:
            self.seen.append({"method": request.command, "path": request.path, "fields": fields, "body": body})
        return fields

    def called(self, tool):
        return [s for s in self.seen if s["body"] and s["body"].get("method") == "tools/call" and s["body"]["params"]["name"] == tool]

    @staticmethod
    def say(request, status, message=None, **fields):
        said = json.dumps(message, indent=1).encode() if message is not None else b""
        request.send_response(status)
        for name, value in {"Content-Type": "application/json", **fields}.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", str(len(said)))
        request.end_headers()
        request.wfile.write(said)

    @staticmethod
    def stream(request):
        """What writes an event of it."""
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream; charset=utf-8")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()

        def event(message, *lines, last=True):
            said = "".join(f"{line}\n" for line in (*lines, f"data: {json.dumps(message) if message else ''}")).encode() + b"\n"
            request.wfile.write(b"%x\r\n%s\r\n%s" % (len(said), said, b"0\r\n\r\n" if last else b""))
            request.wfile.flush()
        return event

    def post(self, request):
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        fields = self.keep(request, body)
        if "method" not in body:  # an answer to what it asked
            with self.lock:
                self.answers[body["id"]] = body
                self.lock.notify_all()
            self.say(request, 202)
        elif "id" not in body:
            self.say(request, 202)
        elif request.path == "/mcp/new":
            self.new(request, body, fields)
        else:
            self.old(request, body, fields)

    def new(self, request, body, fields):
        def result(**more):
            self.say(request, 200, {"jsonrpc": "2.0", "id": body["id"], "result": {"resultType": "complete", **more}})
        method, params = body["method"], body["params"]
        assert fields["mcp-method"] == method and fields["mcp-protocol-version"] == "2026-07-28" and "mcp-session-id" not in fields, fields
        if method == "server/discover":
            result(supportedVersions=["2026-07-28"], capabilities={"tools": {}}, serverInfo={"name": "new", "version": "1"})
        elif method == "tools/list":
            result(ttlMs=0, tools=[{"name": name, "inputSchema": SCHEMA} for name in ("look", "note", "lose", "big", "away", "see")]
                   + [{"name": "bad", "inputSchema": BAD}])
        elif params["name"] == "lose":
            request.close_connection = True  # without a word
        elif params["name"] == "away":
            self.say(request, 307, Location="https://elsewhere.test/")
        elif params["name"] == "big":
            result(content=[{"type": "text", "text": "x" * (2 << 20)}])
        else:
            result(content=[{"type": "text", "text": f"{params['name']}: {fields.get('mcp-param-what')}"}])

    def old(self, request, body, fields):
        def whole(**result):
            return {"jsonrpc": "2.0", "id": body["id"], "result": result}
        if body["method"] == "initialize":
            assert "mcp-session-id" not in fields, fields
            self.say(request, 200, whole(protocolVersion="2025-06-18", capabilities={"tools": {}}, serverInfo={"name": "old", "version": "1"}),
                     Mcp_Session_Id="session-1")
        elif fields.get("mcp-session-id") != "session-1":
            self.say(request, 400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request: not initialized"}})
        elif body["method"] == "tools/list":
            assert fields["mcp-protocol-version"] == "2025-06-18", fields
            self.stream(request)(whole(tools=[{"name": name, "inputSchema": {"type": "object"}} for name in ("ask", "cut")]), "event: message")
        elif body["params"]["name"] == "ask":
            event = self.stream(request)
            event({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {"message": "Which one?", "requestedSchema": {}}}, last=False)
            with self.lock:
                assert self.lock.wait_for(lambda: "q1" in self.answers, PATIENCE)
            event(whole(content=[{"type": "text", "text": "you said " + self.answers["q1"]["result"]["action"]}]))
        else:
            self.resumed = whole(content=[{"type": "text", "text": "it went on"}])
            self.stream(request)(None, "id: e1", "retry: 10")

    def get(self, request):
        fields = self.keep(request, None)
        assert fields["mcp-session-id"] == "session-1" and fields["last-event-id"] == "e1", fields
        self.stream(request)(self.resumed, "id: e2")


def begin(lab):
    tools = Tools(lab)
    at = f"host: {tools.name}, port: {tools.port}"
    (lab.dir / "tools.yaml").write_text(TOOLS.format(host=tools.name, port=tools.port))
    credential = (f'  tools:\n    source: {{ store: tools }}\n    inject: {{ header: Authorization, format: "Bearer {{}}" }}\n'
                  f"    lease: generic\n    only: [{{ {at} }}]\n")
    spans = Collector(lab)
    return spans, tools, Broker(lab, workers=1, more=", tools: tools.yaml" + spans.more(),
                         also={"packs": f"packs: [{{ pack: mcp@1, hosts: [\"{tools.name}:{tools.port}\"] }}]\n", "upstreams": upstream_yaml(tools.name, tools.port, tools.ca) + spans.also()["upstreams"],
                               "credentials": credential, "rules": POLICY.format(at=at) + spans.also()["rules"],
                               "secrets": {"tools": lab.canary("t" * 40).encode()}})


@test()
def servers_over_http_are_a_models_tools(lab):
    spans, tools, broker = begin(lab)
    model = broker.model
    model.script([call("new__look", what="häuser"), call("old__ask"), call("old__cut"), call("new__note", what="remember"), text("That is all.")])
    said = broker.chat("look, and note it")
    reader = broker.read(said)
    ticket = broker.gw.pending()
    assert not tools.called("note") and ticket["host"] == tools.name, (tools.seen, ticket)
    broker.gw.approve(ticket["id"])
    reader.until("turn.done", end="completed")
    reader.whole()
    states = {e[1]["event"]["server"]: e[1]["event"] for e in reader.events if e[0] == "tool.server"}
    assert [states[name]["state"] for name in ("new", "old", "away")] == ["ready", "ready", "failed"], states
    assert (states["new"]["tools"], states["new"]["left_out"]) == (6, 1) and "status 403" in states["away"]["why"], states
    assert not [e for e in reader.events if e[0] == "sandbox.started"], reader.names()  # there is none of its own
    # An argument that stands in a field; a question, which is declined; an answer that was cut off, and asked for; what was approved.
    results = model.results()
    assert [failed for failed, _ in results] == [False] * 4, results
    assert results[0][1] == "look: =?base64?aMOkdXNlcg==?=" and results[3][1] == "note: remember", results
    assert "declined: Which one?" in results[1][1] and "you said decline" in results[1][1] and results[2][1] == "it went on", results
    called = {e[1]["event"]["tool"]: e[1]["event"]["class"] for e in reader.events if e[0] == "tool.call"}
    assert called == {"new__look": "read", "new__note": "unsafe", "old__ask": "unsafe", "old__cut": "unsafe"}, called
    # The server is asked with the credential, and never sees what the broker showed.
    assert {s["fields"]["authorization"] for s in tools.seen} == {"Bearer " + "t" * 40}, tools.seen
    assert not any("proxy-authorization" in s["fields"] for s in tools.seen) and len(tools.called("note")) == 1, tools.seen
    what_goes_wrong(tools, broker, said)
    first = who_comes_again_joins_its_ticket(tools, broker, said)
    calls_are_spans(broker, spans)
    their_requests_are_of_the_trace(tools, broker, spans.traces(), first)


def calls_are_spans(broker, spans):
    """With what is known of the server and the protocol, and nothing of what was said."""
    broker.lab.wait_for("a root of each turn", lambda: sum(s["parent"] is None for s in spans.spans()) == 3)
    calls = {s["gen_ai.tool.name"]: s for trace in spans.traces().values() for s in trace if s["name"].startswith("execute_tool ")}
    assert {s["network.transport"] for s in calls.values()} == {"tcp"} and {s["mcp.method.name"] for s in calls.values()} == {"tools/call"}, calls
    assert calls["new__look"]["mcp.protocol.version"] == "2026-07-28" and calls["old__ask"]["mcp.protocol.version"].startswith("202"), calls
    assert all(int(s["jsonrpc.request.id"]) > 0 for s in calls.values()) and "error.type" not in calls["new__look"], calls
    assert (calls["new__lose"]["error.type"], calls["new__away"]["error.type"]) == ("unknown", "tool_error"), calls
    sent = b"".join(a["body"] for a in spans.asked)
    assert not [words for words in ("häuser", "remember", "Which one", "t" * 40, "not now") if words.encode() in sent], sent


def who_comes_again_joins_its_ticket(tools, broker, said):
    """A worker that is lost while its call is held: the next one's is of another span, and the same call. The turn's id."""
    listed = [s for s in tools.seen if s["path"] == "/mcp/new" and s["body"]["method"] == "tools/list"]
    tickets = len(broker.gw.tickets("all"))
    broker.model.script([call("new__see", what="again"), text("Seen.")])
    said = broker.chat("see", conversation_id=said["conversation_id"])
    ticket = broker.gw.pending()
    broker.lab.expects(r"parent: the broker .* ended by signal 9; restarting it")
    os.kill(broker.pid(1), signal.SIGKILL)
    broker.lab.wait_for("another worker's question", lambda: len([s for s in tools.seen if s["path"] == "/mcp/new"
                                                                  and s["body"]["method"] == "tools/list"]) == len(listed) + 2)
    broker.gw.approve(ticket["id"])
    assert broker.done(said)["end"] == "completed" and broker.model.results()[-1] == (False, "see: again"), broker.model.results()[-1]
    assert len(tools.called("see")) == 1 and len(broker.gw.tickets("all")) == tickets + 1, broker.gw.tickets("all")
    return said["turn_id"]


def their_requests_are_of_the_trace(tools, broker, traces, again):
    """In what MCP has for it, and in no field."""
    spans = {f"00-{s['trace']}-{s['id']}-01": s for trace in traces.values() for s in trace}
    for asked in tools.seen:
        body = asked["body"]
        assert "traceparent" not in asked["fields"], asked
        if body is None or "method" not in body or "id" not in body:
            assert "traceparent" not in json.dumps(body), body
        elif body["method"] != "tools/call":
            assert spans[body["params"]["_meta"]["traceparent"]]["name"] == "invoke_agent countersign", body
        elif body["params"]["name"] != "see":
            tool = f"{asked['path'].rpartition('/')[2]}__{body['params']['name']}"
            assert spans[body["params"]["_meta"]["traceparent"]]["name"] == f"execute_tool {tool}", body
    # What was sent is what was held first, and so of the first worker's span.
    call, = (s for s in spans.values() if s["name"] == "execute_tool new__see")
    first = hashed(f"{again}/{call['countersign.step']}/call/0.1", 16)
    assert call["countersign.epoch"] == 2 and call["id"] != first, call
    assert tools.called("see")[0]["body"]["params"]["_meta"]["traceparent"] == f"00-{call['trace']}-{first}-01", tools.called("see")
    assert not [a for a in broker.model.asked if "traceparent" in {name.lower() for name in a["fields"]}]


def what_goes_wrong(tools, broker, said):
    model = broker.model
    model.script([call("new__lose", what="a"), call("new__away", what="b"), call("new__big", what="c"), call("new__look", what="d"),
                  call("new__note", what="no"), text("I see.")])
    said = broker.chat("and now", conversation_id=said["conversation_id"])
    reader = broker.read(said)
    ticket = broker.gw.pending()
    broker.gw.cli("approvals", "deny", ticket["id"], "--reason", "not now", rc=0)
    reader.until("turn.done", end="completed")
    reader.whole()
    lost, away, big, looked, denied = model.results()[-5:]
    # Nobody knows what came of a call without an answer; a redirection is not followed; what is too long is nobody's; it goes on.
    assert "may have succeeded" in lost[1] and len(tools.called("lose")) == 1, lost
    assert away[0] and "status 307" in away[1] and not [s for s in tools.seen if "elsewhere" in s["path"]], away
    assert "message may be" in big[1] and looked == (False, "look: d"), (big[1][:200], looked)
    assert denied[0] and "not now" in denied[1] and len(tools.called("note")) == 1, denied


if __name__ == "__main__":
    main()
