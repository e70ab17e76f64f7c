"""A collector of spans: a server with TLS that takes OTLP/HTTP in JSON, as strictly as the conventions have it.

    collector = Collector(lab)
    Broker(lab, also=collector.also(), more=collector.more())
    collector.script([status(503)])  # for the next requests
    collector.traces()               # {trace id: [span]}, of all that it took; each is looked at by `look`
"""
import hashlib
import json
import re

import room  # noqa: F401
from gateway import upstream_yaml
from models import Model

TEXTS = {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.conversation.id", "gen_ai.agent.name", "gen_ai.request.model",
         "gen_ai.response.model", "gen_ai.tool.name", "gen_ai.tool.call.id", "error.type", "mcp.method.name", "mcp.protocol.version",
         "jsonrpc.request.id", "network.transport", "countersign.turn.id"}
NUMBERS = {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens",
           "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.reasoning.output_tokens", "countersign.step",
           "countersign.attempt", "countersign.epoch"}
KINDS = {"invoke_agent": 1, "chat": 3, "execute_tool": 1}
NEEDED = {"invoke_agent": {"gen_ai.conversation.id", "gen_ai.agent.name", "gen_ai.provider.name"},
          "chat": {"gen_ai.request.model", "gen_ai.provider.name", "gen_ai.conversation.id", "gen_ai.request.stream"},
          "execute_tool": {"gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.conversation.id"}}


def hashed(text, digits):
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


class Collector(Model):
    name = "collector.test"

    def also(self):
        """For the policy: the rule that an operator writes."""
        return {"upstreams": upstream_yaml(self.name, self.port, self.ca),
                "rules": f"  - id: spans\n    scope: telemetry\n    match: {{ host: {self.name}, port: {self.port}, method: POST, path: /v1/traces }}\n"
                         "    decide: allow\nscopes:\n  telemetry: { sandboxes: [\"otlp-*\"], labels: { telemetry: [spans] } }\n"}

    def more(self):
        return f", otlp: 'https://{self.name}:{self.port}/v1/traces'"

    def answer(self, request):
        body = request.rfile.read(int(request.headers["Content-Length"]))
        with self.lock:
            step = self.steps.pop(0) if self.steps else {"status": 200, "fields": {}}
            self.asked.append({"path": request.path, "body": body, "fields": {k.lower(): v for k, v in request.headers.items()},
                               "taken": step.get("status") == 200})
        if step.get("drop"):
            request.close_connection = True
            return
        said = step.get("said", b"{}")
        request.send_response(step["status"])
        for name, value in step["fields"].items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(said)))
        request.end_headers()
        request.wfile.write(said)

    def spans(self, taken=True):
        with self.lock:
            asked = [a for a in self.asked if a["taken"] or not taken]
        found = []
        for a in asked:
            body = json.loads(a["body"])
            assert list(body) == ["resourceSpans"] and a["path"] == "/v1/traces" and a["fields"]["content-type"] == "application/json", a
            for resource in body["resourceSpans"]:
                names = {x["key"]: x["value"]["stringValue"] for x in resource["resource"]["attributes"]}
                assert names["service.name"] == "countersign-broker" and names["service.instance.id"], names
                for scope in resource["scopeSpans"]:
                    assert scope["schemaUrl"].startswith("https://opentelemetry.io/schemas/gen-ai"), scope["schemaUrl"]
                    found += [look(s) for s in scope["spans"]]
        return found

    def traces(self):
        """Whole ones: each span's parent is there."""
        found = {}
        for s in self.spans():
            found.setdefault(s["trace"], []).append(s)
        for spans in found.values():
            ids = {s["id"] for s in spans}
            assert len(ids) == len(spans) and all(s["parent"] in ids for s in spans if s["parent"]), spans
        return found

    def of(self, turn):
        return [s for s in self.spans() if s["countersign.turn.id"] == turn]


def look(s):
    """One span, strictly: {attribute: value}, with trace, id, parent, name, begun, ended and failed."""
    assert set(s) <= {"traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status"}, s
    assert re.fullmatch("[0-9a-f]{32}", s["traceId"]) and re.fullmatch("[0-9a-f]{16}", s["spanId"]) and s["traceId"].strip("0"), s
    assert re.fullmatch("[0-9a-f]{16}", s.get("parentSpanId", "0" * 16)), s
    assert all(isinstance(s[k], str) and re.fullmatch("[0-9]{19}", s[k]) for k in ("startTimeUnixNano", "endTimeUnixNano")), s
    is_ = {}
    for a in s["attributes"]:
        key, value = a["key"], a["value"]
        assert set(a) == {"key", "value"} and len(value) == 1 and key not in is_, a
        if key in TEXTS:
            is_[key] = value["stringValue"]
            assert isinstance(is_[key], str) and 0 < len(is_[key].encode()) <= 128, a
        elif key in NUMBERS:
            assert isinstance(value["intValue"], str), a
            is_[key] = int(value["intValue"])
        elif key == "gen_ai.request.stream":
            is_[key] = value["boolValue"]
            assert is_[key] is True, a
        else:
            assert key == "gen_ai.response.time_to_first_chunk", key
            is_[key] = value["doubleValue"]
            assert isinstance(is_[key], float), a
    operation = is_["gen_ai.operation.name"]
    assert s["kind"] == KINDS[operation] and NEEDED[operation] <= set(is_), s
    of = {"invoke_agent": "countersign", "chat": is_.get("gen_ai.request.model"), "execute_tool": is_.get("gen_ai.tool.name")}[operation]
    assert s["name"] == f"{operation} {of}", s
    turn = is_["countersign.turn.id"]
    assert s["traceId"] == hashed(is_["gen_ai.conversation.id"] + turn, 32), s
    root = hashed(turn, 16)
    assert (s["spanId"], s.get("parentSpanId")) == (root, None) if operation == "invoke_agent" else s["parentSpanId"] == root, s
    assert s.get("status") == ({"code": 2} if "error.type" in is_ else None), s
    begun, ended = int(s["startTimeUnixNano"]), int(s["endTimeUnixNano"])
    assert begun <= ended, s
    return {**is_, "trace": s["traceId"], "id": s["spanId"], "parent": s.get("parentSpanId"), "name": s["name"], "begun": begun, "ended": ended}
