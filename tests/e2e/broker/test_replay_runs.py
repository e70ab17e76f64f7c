#!/usr/bin/env python3
"""`countersign replay`: turns of conversations are recorded as they run, made into a set, and gone through again, to the same byte."""
import glob
import html.parser
import json
import os
import re
import signal

import prom
import room  # noqa: F401
from brokers import Broker
from collector import METRICS, Collector
from gateway import program
from harness import PATIENCE, main, test
from models import CUT, DROP, Gate, call, stalls, status, text

SAID = ["ask after the weather", "zebra.txt", "nothing like it was seen", "written by a person"]  # nothing of it is recorded


def ten_runs(broker, collector):
    """The turns' ids, and how each ended."""
    model, turns = broker.model, []

    def turn(message, steps, end, **more):
        model.script(steps)
        said = broker.chat(message, **more)
        assert broker.done(said)["end"] == end, (message, broker.turn(said))
        turns.append((said["turn_id"], end))
        return said

    first = turn(SAID[0], [call("write_file", path=SAID[1], content=SAID[3]), text(SAID[2])], "completed")
    turn("fail", [call("run_command", command="echo no; exit 3"), text("so be it")], "completed", conversation_id=first["conversation_id"])
    turn("be busy", [status(529, retry_after="1"), text("at last")], "completed")
    turn("begin again", [CUT, text("now whole")], "completed")
    turn("side by side", [call("list_files", call("list_files", path="."), path="."), text("both")], "completed")
    turn("what is not there", [call("no_such_tool", a=1), text("no")], "completed")
    turn("for ever", [call("read_file", path="x")] * 9, "same-calls", budget={"same_calls": 3})
    turn("a few steps", [call("read_file", path=str(i)) for i in range(9)], "steps", budget={"steps": 2})
    stalled = stalls()
    model.script([stalled])
    said = broker.chat("be cancelled")
    broker.read(said).until("message.delta")
    assert broker.ask("POST", f"/turns/{said['turn_id']}/cancel", {})[0] == 202
    assert broker.done(said)["end"] == "cancelled"
    stalled["until"].set()
    turns.append((said["turn_id"], "cancelled"))
    turns.append((a_worker_is_killed(broker, collector), "completed"))
    return turns


def a_worker_is_killed(broker, collector):
    """In its second step, while the model is asked: what it had written down is there, and its spans of the first have left."""
    gate, steps = Gate(text("over")), [call("list_files", path=".")]
    broker.model.script([*steps, gate])
    said = broker.chat("lose a worker")
    assert gate.reached.wait(PATIENCE)
    broker.lab.wait_for("the spans of its first step", lambda: len(collector.of(said["turn_id"])) == 2)
    broker.lab.wait_for("what they come to", lambda: collector.measured() == collector.measured_by_spans())  # else the last of it dies with it
    broker.model.script([text("over")])
    broker.lab.expects(r"parent: the broker .* ended by signal 9; restarting it")
    os.kill(broker.pid(1), signal.SIGKILL)
    gate.go.set()
    assert broker.done(said)["end"] == "completed"
    return said["turn_id"]


ANOTHER = """  another:
    protocol: anthropic
    provider: ours
    model: scripted-2
    endpoint: https://{host}:{port}/v1
    context: 200000
    output: 8000
    lease: model
    price: {{ input: 30, output: 150 }}
"""


class Page(html.parser.HTMLParser):
    """Tags, and what may lead elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ways = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.ways += [v for k, v in attrs if k in ("src", "href", "action", "style") or k.startswith("on")]


class Replays:
    def __init__(self, broker):
        self.broker, self.n = broker, 0

    def run(self, recorded, *words, rc=0, **env):
        """The report, of a set of these bytes."""
        self.n += 1
        path = self.broker.lab.dir / f"set{self.n}"
        path.write_bytes(recorded)
        return self.broker.lab.run([program(), "replay", "run", str(path), *words], env={"PATH": os.environ["PATH"], **env}, rc=rc).out


@test()
def ten_recorded_runs_give_the_same_report_to_the_byte(lab):
    collector = Collector(lab)
    broker = Broker(lab, workers=1, lanes=True, models=ANOTHER, also=collector.also(), more=collector.more(metrics=True))
    collector.script([DROP, status(503, retry_after="1")])  # the same spans come again
    turns = ten_runs(broker, collector)
    again = Replays(broker)
    every_turn_is_a_trace(broker, collector, turns)
    recorded = broker.gw.cli("replay", "export", *[t for t, _ in turns], rc=0).out
    assert recorded == broker.gw.cli("replay", "export", *[t for t, _ in turns], rc=0).out
    for words in SAID + ["c" * 40, "m" * 40, "echo no", "lease"]:
        assert words.encode() not in recorded, words
    report = json.loads(again.run(recorded, "--json"))
    assert report["differ"] == 0 and report["left_out"] == 0, report
    runs = {r["turn"]: r for r in report["runs"]}
    for turn, end in turns:
        is_, was = runs[turn], broker.ask("GET", "/turns/" + turn)[1]
        assert (is_["end"], is_["steps"], is_["tokens"], is_["cost_micro"]) == (end, was["steps"], was["tokens"], was["cost_micro"]), (is_, was)
    by_name = [runs[turn] for turn, _ in turns]
    assert by_name[1]["calls"]["error"] == 1 and by_name[2]["times_asked"] == 2 and by_name[2]["workers"] == 2, by_name
    assert by_name[3]["times_asked"] == 2 and by_name[4]["calls"]["done"] == 2 and by_name[9]["workers"] == 2, by_name
    assert report["all"]["completed"] == 7 and report["models"][0]["model"] == "scripted", report

    libs = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    other = {"TZ": "Asia/Kathmandu", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
    if libs:
        other.update(LD_PRELOAD=libs[0], FAKETIME="+3h 17m")
    for words in ([], ["--json"], ["--format", "html"], ["--fault", "model", "--fault", "tool", "--fault", "worker", "--seeds", "7", "--json"]):
        one = again.run(recorded, *words, TZ="UTC")
        assert one == again.run(recorded, *words) == again.run(recorded, *words, **other), words
    faults = json.loads(one)["faults"]
    assert [f["fault"] for f in faults] == ["model", "tool", "worker"], faults
    for f in faults:  # the one whose worker was lost is not recorded whole; some have no call
        assert 0 < f["placed"] <= f["tried"] == 6 * 7 and f["recovered"] > 0 and f["repeated"] == 0 and f["hidden"] == 0, f
    other_seeds = json.loads(again.run(recorded, "--fault", "worker", "--seeds", "30", "--json"))["faults"][0]
    assert other_seeds["tried"] == 6 * 30, other_seeds

    page = Page(again.run(recorded, "--format", "html").decode())
    assert page.ways == [] and not page.tags & {"script", "img", "link", "iframe", "form", "object"}, (page.tags, page.ways)
    what_is_otherwise_is_told(again, recorded)
    models_are_asked_once_more(broker, again, turns)
    whose_they_are(broker, turns, recorded)
    live = Live(broker, turns)
    live.two_turns_by_two_models_twice()
    live.what_cannot_be_done_or_nobody_decides_is_said()
    live.a_broker_that_is_killed_and_somebody_who_leaves()
    what_it_cost_is_metered(broker)
    a_collector_harms_no_turn(broker, collector)


def every_turn_is_a_trace(broker, collector, turns):
    """With what was asked, what was called, and how it ended; nothing of what was said."""
    broker.lab.wait_for("a root of each turn", lambda: sum(s["parent"] is None for s in collector.spans()) == len(turns))
    traces = collector.traces()
    assert len(traces) == len(turns), traces
    by_turn = {spans[0]["countersign.turn.id"]: spans for spans in traces.values()}
    for turn, end in turns:
        said, spans = broker.ask("GET", "/turns/" + turn)[1], by_turn[turn]
        root, = [s for s in spans if s["parent"] is None]
        assert root["gen_ai.conversation.id"] == said["conversation_id"] and root.get("error.type") == (None if end == "completed" else end), root
        assert all(root["begun"] <= s["begun"] + 10**9 for s in spans), spans
    kinds = [[(s["name"], s.get("error.type")) for s in sorted(by_turn[turn], key=lambda s: (s["begun"], s["ended"])) if s["parent"]] for turn, _ in turns]
    asked = ("chat scripted-1", None)
    assert kinds[1] == [asked, ("execute_tool run_command", "tool_error"), asked], kinds[1]
    assert kinds[2] == [("chat scripted-1", "overloaded"), asked], kinds[2]
    assert kinds[3] == [("chat scripted-1", "cut"), asked], kinds[3]
    assert kinds[8] == [("chat scripted-1", "cancelled")], kinds[8]
    assert kinds[9] == [asked, ("execute_tool list_files", None), asked], kinds[9]
    lost = by_turn[turns[9][0]]
    assert {s["countersign.epoch"] for s in lost} == {1, 2}, lost  # two workers, one trace
    first = next(s for s in by_turn[turns[0][0]] if s["name"].startswith("chat"))
    assert (first["gen_ai.usage.input_tokens"], first["gen_ai.usage.output_tokens"], first["gen_ai.response.model"]) == (100, 20, "scripted"), first
    sent = b"".join(a["body"] for a in collector.asked)
    for words in SAID + ["c" * 40, "m" * 40, "echo no", "lease", "cst_"]:
        assert words.encode() not in sent, words
    first, again, taken = [a["body"] for a in collector.asked if a["path"] == "/v1/traces"][:3]
    assert first == again == taken, "not the same once more"
    record = broker.gw.recorded(kind="intent", path="/v1/traces")[0]
    assert (record["sandbox"], record["rule"]["id"]) == ("otlp-1", "spans"), record
    broker.lab.wait_for("what all spans come to", lambda: collector.measured() == collector.measured_by_spans())
    assert {name for name, _ in collector.measured()} == set(METRICS), collector.measured()
    record = broker.gw.recorded(kind="intent", path="/v1/metrics")[0]
    assert (record["sandbox"], record["rule"]["id"]) == ("otlp-1", "metrics"), record
    what_is_counted(broker, len(turns))


def what_is_counted(broker, turns):
    rows = prom.rows(broker.gw.cli("approvals", "metrics", rc=0).out.decode())
    one, tool = 'model="scripted"', 'gen_ai_tool_name="run_command"'

    def number(name, labels):
        return rows[f"{name}{{{labels}}}"]
    asked = number("gen_ai_client_operation_duration_seconds_count", one)
    assert asked > turns and number("gen_ai_client_operation_duration_seconds_bucket", one + ',le="+Inf"') == asked, rows
    assert 0 < number("gen_ai_client_operation_time_to_first_chunk_seconds_count", one) < asked, rows
    assert number("countersign_model_errors_total", one + ',error_type="overloaded"') == 1, rows
    assert number("countersign_model_errors_total", one + ',error_type="cancelled"') == 1, rows
    assert number("countersign_model_tokens_total", one + ',gen_ai_token_type="output"') >= 20 and number("countersign_model_cost_total", one) > 0, rows
    assert number("gen_ai_execute_tool_duration_seconds_count", tool) == number("countersign_tool_errors_total", tool + ',error_type="tool_error"') == 1
    assert rows["countersign_spans_sent_total"] > 0 and rows["countersign_spans_lost_total"] == 0, rows
    assert rows["countersign_metric_points_sent_total"] > 0 and rows["countersign_metric_points_lost_total"] == 0, rows


def a_collector_harms_no_turn(broker, collector):
    """It takes nothing, answers rubbish, or the policy does not let it be asked: the turns go on, and what is lost is counted."""
    def lost():
        return prom.rows(broker.gw.cli("approvals", "metrics", rc=0).out.decode())["countersign_spans_lost_total"]

    broker.lab.expects(r"broker: spans are not taken \(otlp: of the configuration\): the collector answered 400")
    broker.model.otherwise = text("as ever")
    was = lost()
    collector.script([{"status": 400, "fields": {}, "said": b"<html>\xff"}])
    assert broker.done(broker.chat("while it refuses"))["end"] == "completed"
    now = broker.lab.wait_for("what is lost", lambda: (lambda n: n if n > was else None)(lost()))
    for decide, code in (("deny", "denied"), ("hold", "denied")):
        broker.lab.expects(rf"broker: spans are not taken \(otlp: of the configuration\): the gateway answered 403 \({code}\): ")
        broker.gw.policy.write_text(re.sub("(path: /v1/traces }\n    decide: )[a-z]+", r"\g<1>" + decide, broker.gw.policy.read_text()))
        broker.gw.cli("reload", rc=0)
        now = lost()
        assert broker.done(broker.chat("while it may not be asked"))["end"] == "completed"
        broker.lab.wait_for("what is lost because of the policy", lambda: lost() > now)
    broker.gw.recorded(path="/v1/traces", kind="denied", code="spans-held")  # nobody is asked to approve it
    assert broker.gw.cli_json("approvals", "list")["tickets"] == []


def what_is_otherwise_is_told(again, recorded):
    """A recording of a machine that did something else than this one is what a changed machine finds."""
    for old, new, heard in ((b'"did":"finish same-calls"', b'"did":"begin 4"', b"step"), (b'"did":"run 0, run 1"', b'"did":"run 0"', b"planned"),
                            (b'"did":"give-back 1', b'"did":"give-back 2', b"no-answer")):
        assert recorded.count(old) >= 1, old
        changed = recorded.replace(old, new, 1)
        said = again.run(changed, rc=1)
        assert b"1 of 10 runs are otherwise" in said and heard + b"\n    then: " + new[7:-1] in said, said
        assert json.loads(again.run(changed, "--json", rc=1))["differ"] == 1
    for wrong in (recorded[:-1], recorded.replace(b'"version":1', b'"version":2', 1), b"", recorded.replace(b'"heard":"step"', b'"heard":"leap"', 1)):
        assert again.run(wrong, rc=3) == b""


def models_are_asked_once_more(broker, again, turns):
    """A model hears of each call what it heard of it then; no sandbox is started, and what was not called then has no result."""
    asked = [turns[i][0] for i in (0, 1, 4, 8, 9)]  # of these one was cancelled
    recorded = broker.gw.cli("replay", "export", *asked, rc=0).out
    before, boxes = len(broker.model.asked), {b["name"] for b in broker.gw.cli_json("sandbox", "started")["started"]}
    broker.model.script([
        call("write_file", path=SAID[1], content=SAID[3]), text("written"),
        call("run_command", command="echo no; exit 3"), call("run_command", command="echo no; exit 3"), text("so be it"),
        call("list_files", call("list_files", path="."), path="."), text("both"),
        call("read_file", path="another way"), text("I give up")])
    path = broker.lab.dir / "asked"
    path.write_bytes(recorded)
    done = broker.gw.cli("replay", "run", str(path), "--mode", "tools-recorded", "--json", rc=0)
    assert b"1 runs were left out" in done.err, done.err
    report = json.loads(done.out)
    assert report["mode"] == "tools-recorded" and report["same_ends"] == 4 and report["all"]["completed"] == 4, report
    assert [r["of_turn"] for r in report["runs"]] == [t for t in asked if t != turns[8][0]], report
    assert [(r["calls"]["done"], r["calls"]["error"]) for r in report["runs"]] == [(1, 0), (0, 2), (2, 0), (0, 1)], report
    assert report["then"]["calls"] == 5 and report["all"]["calls"] == 6, report
    told = [json.dumps(a["body"]["messages"][-1]) for a in broker.model.asked[before:]]
    assert SAID[0] in told[0] and len(told) == 9, told
    assert "exit status 3" in told[3] and told[3].count("This call failed") == 1 and "Nothing was run" in told[4], told
    assert "Nothing was run" in told[8], told
    assert {b["name"] for b in broker.gw.cli_json("sandbox", "started")["started"]} == boxes
    assert b"with recorded tools" in broker.gw.cli("replay", "run", str(path), "--mode", "tools-recorded", rc=0).out
    for words in (["--fault", "model"], ["--tenant", "acme"]):
        mode = ["--mode", "tools-recorded"] if words[0] == "--fault" else []
        assert again.run(recorded, *mode, *words, rc=2) == b""


def whose_they_are(broker, turns, recorded):
    """A key sees its own tenant's; the operator says whose; what has not ended, or is no turn, is no run."""
    turn, conversation = turns[0][0], broker.ask("GET", "/turns/" + turns[0][0])[1]["conversation_id"]
    other = broker.gw.cli_json("key", "create", "other", "--broker", "--tenant", "acme")["key"]
    reads = broker.gw.cli_json("key", "create", "reads", "--broker", "--read-only")["key"]
    for path in (f"/turns/{turn}/recording", f"/conversations/{conversation}/turns"):
        for tenant in ("", "?tenant=default"):
            assert broker.ask("GET", path + tenant, key=other)[0] == 404, path
        assert broker.ask("GET", path, key="csb_" + "0" * 40)[0] == 401, path
    assert broker.ask("POST", f"/turns/{turn}/replay", {}, key=other)[0] == 404
    assert broker.ask("POST", f"/turns/{turn}/replay", {}, key=reads)[0] == 403
    listed = broker.ask("GET", f"/conversations/{conversation}/turns", key=reads)[1]["turns"]
    assert [(t["turn_id"], t["end"], t["recorded"]) for t in listed] == [(*t, True) for t in turns[:2]], listed
    both = broker.gw.cli("replay", "export", conversation, rc=0).out
    assert both.count(b'{"run":') == 2 and all(line in recorded for line in both.splitlines()), both
    broker.gw.cli("replay", "export", "--tenant", "acme", turn, rc=1)
    broker.model.script([text("of acme")])
    said = broker.ask("POST", "/chat", {"message": "hello"}, key=other)[1]
    broker.lab.wait_for("the end of acme's turn", lambda: broker.ask("GET", "/turns/" + said["turn_id"], key=other)[1]["state"] == "done")
    assert said["turn_id"].encode() in broker.gw.cli("replay", "export", "--tenant", "acme", said["turn_id"], rc=0).out
    broker.gw.cli("replay", "export", said["turn_id"], rc=1)
    gate = Gate(text("late"))
    broker.model.script([gate])
    said = broker.chat("not yet")
    assert gate.reached.wait(PATIENCE)
    assert broker.ask("GET", f"/turns/{said['turn_id']}/recording")[0] == 409
    gate.go.set()
    broker.done(said)


def what_it_cost_is_metered(broker):
    """To the millionth what all turns have used, by model and task, a replay as one; each tenant sees its own."""
    def of(path, key=None):
        answer = broker.ask("GET", "/usage" + path, key=key)
        assert answer[0] == 200, answer
        return answer[1]

    def tokens(rows):
        return sum(r["input_tokens"] + r["output_tokens"] + r["cache_read_tokens"] + r["cache_write_tokens"] for r in rows)

    by_task = of("?by=model,task")["usage"]
    assert {(r["model"], r["task"]) for r in by_task} == {("scripted", "chat"), ("scripted", "replay"), ("another", "replay")}, by_task
    talks = [c["conversation_id"] for c in broker.ask("GET", "/conversations")[1]["conversations"]]
    turns = [broker.ask("GET", "/turns/" + t["turn_id"])[1] for c in talks for t in broker.ask("GET", f"/conversations/{c}/turns")[1]["turns"]]
    used = (sum(t["tokens"] for t in turns), sum(t["cost_micro"] for t in turns))
    assert used == (tokens(by_task), sum(r["cost_micro"] for r in by_task)) and used[1] > 0, (used, by_task)
    one = turns[0]["conversation_id"]
    of_one = of(f"?by=conversation&conversation={one}")["usage"]
    assert [r["conversation_id"] for r in of_one] == [one] and of_one[0]["cost_micro"] == sum(t["cost_micro"] for t in turns if t["conversation_id"] == one), of_one
    assert of("?to=2026-01-01&from=2025-12-01")["usage"] == []
    for wrong in ("?by=models", "?form=2026-01-01", "?from=yesterday", "?next=00", "?conversation=x"):
        assert broker.ask("GET", "/usage" + wrong)[0] == 400, wrong

    mine = broker.gw.cli_json("key", "create", "meter", "--broker", "--tenant", "acme", "--read-only")["key"]
    nobody = broker.gw.cli_json("key", "create", "nobody", "--broker", "--tenant", "empty", "--read-only")["key"]
    assert [r["asked"] for r in of("?by=tenant", mine)["usage"]] == [1]
    for words in ("", "&tenant=default", "&tenant=*", f"&conversation={one}"):
        assert of("?by=tenant" + words, nobody)["usage"] == [], words
        assert {r["tenant"] for r in of("?by=tenant" + words, mine)["usage"]} <= {"acme"}, words

    told = broker.gw.cli_json("usage", "--by", "tenant,task", "--since", "7d")["usage"]
    assert [(r["tenant"], r["task"]) for r in told] == [("acme", "chat"), ("default", "chat"), ("default", "replay")], told
    assert sum(r["cost_micro"] for r in told if r["tenant"] == "default") == used[1], told
    row = broker.gw.cli("usage", "--tenant", "acme", rc=0).out.decode().split()
    assert row == ["scripted", "1", "100", "20", "0", "0", "0.000600"], row
    assert broker.gw.cli("usage", "--tenant", "empty", rc=0).out == b""
    for words in (["--by", "cost"], ["--since", "soon"], ["--tenant", "a&b"], ["--conversation", "x"], ["now"]):
        broker.gw.cli("usage", *words, rc=2)


class Live:
    """Real tools, each run in a fork of its conversation with a sandbox of its own."""

    def __init__(self, broker, turns):
        self.broker, self.turns, self.firsts = broker, [t for t, _ in turns], 0
        self.original = broker.ask("GET", "/turns/" + self.turns[0])[1]["conversation_id"]
        self.before = self.left()

    def left(self):
        """Sandboxes that run, and the original's messages and file: what no replay changes."""
        gw = self.broker.gw
        return ({b["name"] for b in gw.cli_json("sandbox", "started")["started"]},
                self.broker.ask("GET", f"/conversations/{self.original}/history")[1],
                gw.cli("sandbox", "exec", "c-" + self.original, "--", "cat", SAID[1], rc=0).out)

    def words(self, turns, *words):
        path = self.broker.lab.dir / "live"
        path.write_bytes(self.broker.gw.cli("replay", "export", *turns, rc=0).out)
        return [str(path) if w is path else str(w) for w in ("replay", "run", path, "--mode", "live", *words)]

    def run(self, turns, *words):
        done = self.broker.gw.cli(*self.words(turns, *words, "--json"), rc=0)
        return json.loads(done.out), done.err.decode()

    def start(self, turns, *words):
        return self.broker.lab.start([program(), *self.words(turns, *words)],
                                     env={"COUNTERSIGN_STATE": self.broker.gw.state, "PATH": os.environ["PATH"]})

    def answers(self, asked):
        """The one writes and is done; the other lists, reads what is not there, and to the fourth question it asks for more than may be."""
        model, heard = asked["body"]["model"], json.dumps(asked["body"]["messages"][-1])
        if "tool_result" in heard:
            return text("so it is")
        if model == "scripted-1":
            return call("write_file", path=SAID[1], content="by a fork")
        self.firsts += 1
        return call("list_files", *[call("list_files", path=".")] * (64 if self.firsts == 4 else 0), call("read_file", path="nothing"), path=".")

    def two_turns_by_two_models_twice(self):
        broker = self.broker
        broker.model.script([])
        plain, broker.model.otherwise = broker.model.otherwise, self.answers
        asked = len(broker.model.asked)
        report, said = self.run([self.turns[0], self.turns[4]], "--model", "scripted", "--model", "another", "--seeds", 2, "--cost", 10**8)
        broker.model.otherwise = plain
        live = report["live"]
        assert report["mode"] == "live" and (live["ran"], live["lost"], live["not_begun"], live["undecided"]) == (8, 0, 0, 0), report
        assert said.count("\n# ") == 8 and "# 8 of 8: " in said and "leaves once more" in said, said
        one, two = live["models"]
        assert (one["runs"], one["completed"], one["calls"], one["calls_done"], one["cost_micro"]) == (4, 4, 4, 4, 4 * 2 * 600), one
        assert (two["runs"], two["completed"], two["calls"], two["calls_done"]) == (4, 3, 6, 3), two
        assert two["completed_thousandths_by_seed"] == {"least": 500, "middle": 500, "most": 1000}, two
        cost = two["cost_micro_by_run"]
        assert cost["least"] == cost["middle"] == 12000 < cost["most"], two
        assert live["completed_thousandths_by_model"] == {"least": 750, "middle": 750, "most": 1000}, live
        assert [t["recorded"]["calls"] for t in live["turns"]] == [1, 2] and report["then"]["runs"] == 8, live
        assert [[m["ran"] for m in t["models"]] for t in live["turns"]] == [[2, 2], [2, 2]], live
        words = [json.dumps(a["body"]["messages"]) for a in broker.model.asked[asked:]]
        assert sum(SAID[0] in w for w in words) == 8 and not any(SAID[2] in w for w in words), words
        made = [r["turn"] for r in live["runs"]]
        assert len(set(made)) == 8 and not set(made) & set(self.turns), made
        fork = broker.ask("GET", "/turns/" + made[0])[1]
        assert (fork["replay_of"], fork["live"]) == (self.turns[0], "scripted"), fork
        marked = {c["conversation_id"] for c in broker.ask("GET", "/conversations")[1]["conversations"] if c.get("replay")}
        assert fork["conversation_id"] in marked and self.original not in marked, marked
        assert self.left() == self.before
        self.cleaned()

    def cleaned(self):
        """No sandbox and no identity of a replay is left."""
        forks = {c["conversation_id"] for c in self.broker.ask("GET", "/conversations")[1]["conversations"] if c.get("replay")}
        names = {s["name"] for s in self.broker.gw.get("/api/v1/sandboxes")["sandboxes"] if s["kind"] in ("token", "started")}
        assert not {k + f for f in forks for k in ("c-", "m-")} & names, (forks, names)

    def what_cannot_be_done_or_nobody_decides_is_said(self):
        broker = self.broker
        send = f"curl -sS --cacert $CURL_CA_BUNDLE -d x https://{broker.up.name}:{broker.up.port}/ok"
        broker.model.script([call("run_command", command=send)])
        before = broker.up.effects()
        report, said = self.run([self.turns[1], self.turns[0], self.turns[8]], "--model", "scripted", "--cost", 10**8, "--wait", "3s")
        live = report["live"]
        assert "1 runs were left out" in said and (live["ran"], live["not_begun"], live["undecided"]) == (1, 1, 1), report
        assert "no checkpoint is kept" in live["runs"][0]["why"] and report["runs"][0]["end"] == "time", report
        assert broker.gw.tickets() == [] and broker.up.effects() == before, broker.gw.tickets()
        self.cleaned()
        asked = len(broker.model.asked)
        for rc, *words in ((1, "--model", "scripted", "--model", "nobody", "--cost", 10**8), (2, "--model", "scripted"), (2, "--cost", 9),
                           (2, "--model", "scripted", "--cost", 9, "--fault", "tool")):
            broker.gw.cli(*self.words(self.turns[:1], *words), rc=rc)
        assert len(broker.model.asked) == asked  # all names are looked at before anything is asked
        assert broker.ask("POST", f"/turns/{self.turns[0]}/live", {"model": "scripted"})[0] == 403
        assert self.left() == self.before

    def a_broker_that_is_killed_and_somebody_who_leaves(self):
        broker = self.broker
        gate = Gate(text("late"))
        broker.model.script([gate])
        run = self.start(self.turns[:1], "--model", "scripted", "--cost", 10**8)
        assert gate.reached.wait(PATIENCE)
        broker.model.script([call("write_file", path=SAID[1], content="after it"), text("over")])
        for worker in (0, 1):
            os.kill(broker.pid(worker), signal.SIGKILL)
        gate.go.set()
        assert run.wait() == 0 and b"1 of 1 runs (100.0 %)" in run.seen, run.seen

        gate = Gate(text("late"))
        broker.model.script([call("write_file", path=SAID[1], content="and then"), gate])
        run = self.start(self.turns[:1], "--model", "scripted", "--cost", 10**8)
        assert gate.reached.wait(PATIENCE)
        run.signal(signal.SIGINT)
        assert run.wait() == 1 and b"interrupted" in run.seen and b"cancelled, " in run.seen, run.seen
        gate.go.set()
        self.cleaned()
        assert self.left() == self.before


if __name__ == "__main__":
    main()
