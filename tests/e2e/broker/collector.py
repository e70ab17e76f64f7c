"""A collector of spans and metrics: a server with TLS that takes OTLP/HTTP in JSON, as strictly as the conventions have it.

    collector = Collector(lab)
    Broker(lab, also=collector.also(), more=collector.more(metrics=True))
    collector.script([status(503)])  # for the next requests with spans
    collector.traces()               # {trace id: [span]}, of all that it took; each is looked at by `look`
    collector.measured()             # {(metric, its attributes): (count, sum)}, of all workers; collector.measured_by_spans(): what it has to be
"""
import collections
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


SECONDS = [0.01 * 2**i for i in range(14)]
METRICS = {  # unit, bounds, attributes that each point has, and those that it may have
    "gen_ai.client.operation.duration": ("s", SECONDS, {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"}, {"error.type"}),
    "gen_ai.client.operation.time_to_first_chunk": ("s", SECONDS, {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"}, set()),
    "gen_ai.client.token.usage": ("{token}", [4**i for i in range(14)],
                                  {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.token.type"}, set()),
    "gen_ai.execute_tool.duration": ("s", SECONDS, {"gen_ai.tool.name", "gen_ai.agent.name"}, {"error.type"})}


def hashed(text, digits):
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


class Collector(Model):
    name = "collector.test"

    def also(self):
        """For the policy: the rule that an operator writes."""
        return {"upstreams": upstream_yaml(self.name, self.port, self.ca),
                "rules": f"  - id: spans\n    scope: telemetry\n    match: {{ host: {self.name}, port: {self.port}, method: POST, path: /v1/traces }}\n"
                         "    decide: allow\n"
                         f"  - id: metrics\n    scope: telemetry\n    match: {{ host: {self.name}, port: {self.port}, method: POST, path: /v1/metrics }}\n"
                         "    decide: allow\nscopes:\n  telemetry: { sandboxes: [\"otlp-*\"], labels: { telemetry: [spans] } }\n"}

    def more(self, metrics=False):
        place = f"https://{self.name}:{self.port}/v1"
        return f", otlp: '{place}/traces'" + (f", otlp_metrics: '{place}/metrics'" if metrics else "")

    def answer(self, request):
        body = request.rfile.read(int(request.headers["Content-Length"]))
        with self.lock:
            scripted = self.steps and request.path == "/v1/traces"
            step = self.steps.pop(0) if scripted else {"status": 200, "fields": {}}
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
            asked = [a for a in self.asked if (a["taken"] or not taken) and a["path"] == "/v1/traces"]
        return [look(s) for a in asked for _, s in values(a, "Spans", "spans")]

    def measured(self):
        """Of each worker its last, which has all since it began (another one may have its name); one after the other has more."""
        with self.lock:
            asked = [a for a in self.asked if a["path"] == "/v1/metrics"]
        last = {}
        for a in asked:
            for instance, metric in values(a, "Metrics", "metrics"):
                for labels, point in points(metric):
                    key = (instance, point["startTimeUnixNano"], metric["name"], labels)
                    count, total = last.get(key, (0, 0))
                    assert int(point["count"]) >= count and point["sum"] >= total, (last[key], point)
                    last[key] = (int(point["count"]), point["sum"])
        found = {}
        for (*_, name, labels), (count, total) in last.items():
            was = found.get((name, labels), (0, 0))
            found[name, labels] = (was[0] + count, round(was[1] + total, 3))
        return found

    def measured_by_spans(self):
        found = collections.defaultdict(lambda: (0, 0))

        def add(name, s, value, *labels, **more):
            is_ = {k: s[k] for k in labels if k in s}
            key = (name, frozenset({**is_, **more}.items()))
            found[key] = (found[key][0] + 1, round(found[key][1] + value, 3))
        model = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model")
        for s in self.spans():
            took = (s["ended"] - s["begun"]) / 10**9
            if s["gen_ai.operation.name"] == "chat":
                add("gen_ai.client.operation.duration", s, took, *model, "error.type")
                if "gen_ai.response.time_to_first_chunk" in s:
                    add("gen_ai.client.operation.time_to_first_chunk", s, s["gen_ai.response.time_to_first_chunk"], *model)
                for kind in ("input", "output"):
                    if f"gen_ai.usage.{kind}_tokens" in s:
                        add("gen_ai.client.token.usage", s, s[f"gen_ai.usage.{kind}_tokens"], *model, **{"gen_ai.token.type": kind})
            elif s["gen_ai.operation.name"] == "execute_tool":
                add("gen_ai.execute_tool.duration", s, took, "gen_ai.tool.name", "error.type", **{"gen_ai.agent.name": "countersign"})
        return dict(found)

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


def values(asked, what, each):
    """(who says it, the value), of a request's body."""
    body = json.loads(asked["body"])
    assert list(body) == ["resource" + what] and asked["fields"]["content-type"] == "application/json", asked
    for resource in body["resource" + what]:
        assert set(resource) == {"resource", "scope" + what}, resource
        names = {x["key"]: x["value"]["stringValue"] for x in resource["resource"]["attributes"]}
        assert names["service.name"] == "countersign-broker" and names["service.instance.id"], names
        for scope in resource["scope" + what]:
            assert scope["schemaUrl"].startswith("https://opentelemetry.io/schemas/gen-ai"), scope["schemaUrl"]
            for value in scope[each]:
                yield names["service.instance.id"], value


def points(metric):
    """One metric, strictly: (its attributes, the point)."""
    unit, bounds, needed, allowed = METRICS[metric["name"]]
    assert set(metric) == {"name", "unit", "histogram"} and metric["unit"] == unit, metric
    assert set(metric["histogram"]) == {"aggregationTemporality", "dataPoints"} and metric["histogram"]["aggregationTemporality"] == 2, metric
    seen = set()
    for p in metric["histogram"]["dataPoints"]:
        assert set(p) == {"attributes", "startTimeUnixNano", "timeUnixNano", "count", "sum", "bucketCounts", "explicitBounds"}, p
        labels = {a["key"]: a["value"]["stringValue"] for a in p["attributes"]}
        assert needed <= set(labels) <= needed | allowed and len(labels) == len(p["attributes"]), p
        assert all(isinstance(p[k], str) and re.fullmatch("[0-9]{19}", p[k]) for k in ("startTimeUnixNano", "timeUnixNano")), p
        assert int(p["startTimeUnixNano"]) <= int(p["timeUnixNano"]), p
        assert [round(b, 2) for b in p["explicitBounds"]] == [round(b, 2) for b in bounds] and len(p["bucketCounts"]) == 15, p
        assert isinstance(p["count"], str) and all(isinstance(n, str) for n in p["bucketCounts"]), p
        assert sum(map(int, p["bucketCounts"])) == int(p["count"]) > 0 <= p["sum"], p
        assert frozenset(labels.items()) not in seen, metric
        seen.add(frozenset(labels.items()))
        yield frozenset(labels.items()), p


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
