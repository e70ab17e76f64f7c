#!/usr/bin/env python3
"""The broker, whole: a scripted model works in a sandbox, its turns are durable, readers miss nothing and hear nothing twice,
whoever is killed; no key is anywhere but in the gateway."""
import json
import os
import re
import signal
import sqlite3
import types
import urllib.parse

import room  # noqa: F401
from brokers import Broker
from gateway import Page, program
from harness import PATIENCE, main, test
from models import CUT, Gate, call, stalls, status, text
from terminal import Terminal


@test()
def a_model_edits_a_file_and_runs_a_command(lab):
    broker = Broker(lab, workers=3, more=", budgets: [{ tenant: poor, tokens: 200, per: day }, { tenant: poor, cost: 1, per: month }, "
                                         "{ tenant: two, tokens: 200, per: day }, { tenant: none, cost: 0, per: day }]")
    broker.model.script([
        call("write_file", path="app/hello.sh", content="echo hello from $1\n"),
        call("edit_file", call("list_files", path="app"), path="app/hello.sh", old="hello", new="good day"),
        call("run_command", command="sh app/hello.sh here; echo on >&2; exit 3"),
        text("All of it is done.")])
    said = broker.chat("make it say good day")
    reader = broker.read(said)
    reader.until("turn.done", end="completed")
    reader.whole()
    results = broker.model.results()
    assert [failed for failed, _ in results] == [False, False, False, True], results
    assert json.loads(results[2][1])["entries"][0]["name"] == "hello.sh", results
    assert "exit status 3" in results[3][1] and "good day from here" in results[3][1] and "on" in results[3][1], results
    assert "".join(e[1]["event"]["text"] for e in reader.events if e[0] == "message.delta") == "All of it is done."
    # The model was asked with the credential, which nobody but the gateway holds: what the broker showed was a lease of it.
    asked = broker.model.asked[0]["fields"]
    assert asked["x-api-key"] == "m" * 40 and "proxy-authorization" not in asked, asked
    turn = broker.turn(said)
    assert turn["state"] == "done" and turn["steps"] == 4 and turn["tokens"] == 4 * 120 and turn["cost_micro"] == 4 * 600, turn
    # A conversation is an identity of its own at the gateway, which ends with its turn.
    assert {r["sandbox"] for r in broker.gw.audit() if r.get("host") == broker.model.name} == {"m-" + said["conversation_id"]}
    assert not [s for s in broker.gw.cli_json("sandbox", "list")["sandboxes"] if s["name"].startswith("m-")]
    # All of it was read: a reader that comes back with the last id may stop.
    assert broker.ask("GET", "/stream/" + said["conversation_id"], Last_Event_ID=reader.after)[0] == 204
    it_goes_on_and_is_forked(broker, said)
    what_is_asked_meanwhile_has_its_own_turn(broker)
    keys_and_tenants(broker, said)
    what_goes_wrong_has_its_words(broker)
    no_question_begins_past_a_budget(broker)
    at_its_end_one_question_is_asked_at_a_time(broker)


def of_tenant(broker, tenant):
    """Asks as one who has a key of that tenant."""
    key = broker.gw.cli_json("key", "create", tenant, "--broker", "--tenant", tenant)["key"]
    return lambda method, path, body=None: broker.ask(method, path, body, key=key)


def no_question_begins_past_a_budget(broker):
    """The one that passes it ends; the turn says which it was; nothing more is taken, and others go on."""
    ask, asked = of_tenant(broker, "poor"), len(broker.model.asked)
    broker.model.script([call("list_files", path=".")] * 3)
    said = ask("POST", "/chat", {"message": "look around"})[1]
    turn = broker.lab.wait_for("the turn's end", lambda: (lambda t: t if t["state"] == "done" else None)(ask("GET", "/turns/" + said["turn_id"])[1]))
    words = "tenant poor has used up its budget for this day: tokens 240 of 200; it begins anew on 20"
    assert turn["end"] == "budget" and turn["words"].startswith("It ended: a budget") and turn["why"].startswith(words), turn
    assert turn["tokens"] == 240 and len(broker.model.asked) == asked + 2, turn
    status_, no = ask("POST", "/chat", {"message": "more"})
    assert status_ == 403 and no["detail"] == turn["why"], (status_, no)
    status_, no = of_tenant(broker, "none")("POST", "/chat", {"message": "anything"})
    assert status_ == 403 and no["detail"] == "tenant none may ask no model: its cost for a day is set to 0", (status_, no)
    broker.model.script([text("as before")])
    assert broker.done(broker.chat("and I?"))["end"] == "completed"

    day, month = ask("GET", "/usage")[1]["budgets"]
    assert (day["per"], day["tokens"], day["tokens_left"]) == ("day", 200, 0) and "cost_micro" not in day, day
    assert (month["per"], month["cost_micro"], month["cost_micro_left"]) == ("month", 1000000, 1000000 - 1200), month
    assert "budgets" not in broker.ask("GET", "/usage")[1]
    row = broker.gw.cli("usage", "--by", "tenant", "--tenant", "poor", rc=0).out.decode().strip()
    assert row.endswith("200 tokens a day; 1.00 a month  0 tokens; 0.9988"), row
    both = broker.gw.cli_json("usage", "--by", "tenant")
    assert {b["tenant"] for b in both["budgets"]} == {"poor"} and {r["tenant"] for r in both["usage"]} == {"default", "poor"}, both
    metrics = broker.gw.cli("approvals", "metrics", rc=0).out.decode()
    assert "\ncountersign_budget_stops_total 3\n" in metrics, metrics


def at_its_end_one_question_is_asked_at_a_time(broker):
    ask, asked = of_tenant(broker, "two"), len(broker.model.asked)
    gate = Gate(text("the first"))
    broker.model.script([gate, text("the second")])
    turns = [ask("POST", "/chat", {"message": "one"})[1]]
    assert gate.reached.wait(PATIENCE)
    turns.append(ask("POST", "/chat", {"message": "two"})[1])
    broker.lab.wait_for("the second to wait", lambda: b"it waits for that" in broker.gw.process.seen)
    assert len(broker.model.asked) == asked + 1
    gate.go.set()
    for turn in turns:
        broker.lab.wait_for("its end", lambda turn=turn: ask("GET", "/turns/" + turn["turn_id"])[1].get("end") == "completed")
    assert ask("GET", "/usage")[1]["budgets"][0]["tokens_left"] == 0 and ask("POST", "/chat", {"message": "three"})[0] == 403


def what_is_asked_meanwhile_has_its_own_turn(broker):
    gate = Gate(call("list_files", path="."))
    broker.model.script([gate, text("The first."), text("The second.")])
    first = broker.chat("ask one")
    assert gate.reached.wait(PATIENCE)
    second = broker.chat("ask two", conversation_id=first["conversation_id"])
    path = f"/conversations/{first['conversation_id']}/history"
    assert [m["turn_id"] for m in broker.ask("GET", path)[1]["queued"]] == [second["turn_id"]]
    gate.go.set()
    assert [broker.done(turn)["end"] for turn in (first, second)] == ["completed"] * 2
    asked = [json.dumps(a["body"]["messages"]) for a in broker.model.asked[-3:]]
    assert ["ask two" in a for a in asked] == [False, False, True], asked
    history = broker.ask("GET", path)[1]
    assert [m["role"] for m in history["messages"]] == ["user", "assistant", "results", "assistant", "user", "assistant"], history
    assert history["queued"] == [], history


def it_goes_on_and_is_forked(broker, said):
    broker.model.script([text("yes")])
    again = broker.chat("and do you remember?", conversation_id=said["conversation_id"])
    assert broker.done(again)["end"] == "completed"
    messages = broker.model.asked[-1]["body"]["messages"]
    assert "make it say good day" in json.dumps(messages[0]), messages[0]
    history = broker.ask("GET", f"/conversations/{said['conversation_id']}/history")[1]["messages"]
    assert [m["role"] for m in history] == ["user", *["assistant", "results"] * 3, "assistant", "user", "assistant"], history
    fork = f"/conversations/{said['conversation_id']}/fork"
    assert broker.ask("POST", fork, {"messages": 2})[0] == 409  # a call would lose its result
    assert broker.ask("POST", fork, {"messages": 99})[0] == 409
    made = broker.ask("POST", fork, {"messages": 3})[1]["conversation_id"]
    broker.model.script([text("another way")])
    assert broker.done(broker.chat("now otherwise", conversation_id=made))["end"] == "completed"
    assert len(broker.model.asked[-1]["body"]["messages"]) == 4
    listed = {c["conversation_id"]: c["messages"] for c in broker.ask("GET", "/conversations")[1]["conversations"]}
    assert listed == {said["conversation_id"]: 10, made: 5}, listed


def keys_and_tenants(broker, said):
    """A tenant sees its own alone; a key does what its scopes say; one that was taken back does nothing."""
    broker.model.script([text("once")])
    first = broker.ask("POST", "/chat", {"message": "once"}, Idempotency_Key="k1")
    assert first == broker.ask("POST", "/chat", {"message": "once"}, Idempotency_Key="k1") and first[0] == 202
    assert broker.ask("POST", "/chat", {"message": "twice"}, Idempotency_Key="k1")[0] == 409
    broker.done(first[1])
    other = broker.gw.cli_json("key", "create", "other", "--broker", "--tenant", "acme")["key"]
    reads = broker.gw.cli_json("key", "create", "reads", "--broker", "--read-only")["key"]
    boxes = broker.gw.cli_json("key", "create", "boxes")["key"]
    for path in (f"/conversations/{said['conversation_id']}/history", f"/turns/{said['turn_id']}", f"/stream/{said['conversation_id']}"):
        assert broker.ask("GET", path, key=other)[0] == 404, path
        assert broker.ask("GET", path, key=boxes)[0] == 401, path
        assert broker.ask("GET", path, key="csb_" + "0" * 40)[0] == 401, path
    assert broker.ask("POST", f"/turns/{said['turn_id']}/cancel", {}, key=other)[0] == 404
    assert broker.ask("POST", "/chat", {"message": "x", "conversation_id": said["conversation_id"]}, key=other)[0] == 404
    assert broker.ask("GET", f"/turns/{said['turn_id']}", key=reads)[0] == 200
    assert broker.ask("POST", "/chat", {"message": "x"}, key=reads)[0] == 403
    broker.gw.cli("key", "rm", "reads", rc=0)
    assert broker.ask("GET", f"/turns/{said['turn_id']}", key=reads)[0] == 401
    assert broker.ask("GET", "/conversations", key=other)[1]["conversations"] == []


def what_goes_wrong_has_its_words(broker):
    """A stream that is cut, a busy model, calls that cannot be run, the same ones for ever, a turn that is cancelled."""
    model = broker.model
    model.script([CUT, status(529, retry_after="1"), text("third time lucky")])
    said = broker.chat("go on in spite of it")
    reader = broker.read(said)
    reader.until("turn.done", end="completed")
    reader.whole()
    assert reader.names().count("turn.attempt_superseded") == 2 and reader.names().count("turn.retry") == 2, reader.names()
    shown = [e[1]["event"] for e in reader.events if e[0] == "message.delta"]
    assert "".join(e["text"] for e in shown if e["attempt"] == 3) == "third time lucky", shown
    # What was thrown away has its price, once: what its provider said of it, or what came; a refusal has none.
    turn = broker.turn(said)
    assert 120 + 101 <= turn["tokens"] < 120 + 200 and turn["cost_micro"] > 600 + 300, turn
    stalled = stalls()
    model.script([stalled])
    said = broker.chat("be cancelled in the middle")
    reader = broker.read(said)
    reader.until("message.delta")
    assert broker.ask("POST", f"/turns/{said['turn_id']}/cancel", {})[0] == 202
    reader.until("turn.done", end="cancelled")
    stalled["until"].set()
    turn = broker.turn(said)
    assert 101 <= turn["tokens"] < 200 and turn["cost_micro"] > 300, turn
    gate = Gate(text("nobody hears it"))
    model.script([gate])
    said = broker.chat("be cancelled before a word has come")
    assert gate.reached.wait(PATIENCE)
    assert broker.ask("POST", f"/turns/{said['turn_id']}/cancel", {})[0] == 202
    broker.read(said).until("turn.done", end="cancelled")
    gate.go.set()
    turn = broker.turn(said)
    assert turn["tokens"] > 100 and turn["cost_micro"] > 300, turn  # what was asked has its price
    model.script([CUT, text("not asked for")])
    turn = broker.done(broker.chat("a small budget", budget={"tokens": 100}))
    assert turn["end"] == "tokens" and turn["steps"] == 0, turn

    model.script([call("no_such_tool", call("run_command", command=7), a=1), text("so be it")])
    assert broker.done(broker.chat("call what there is not"))["end"] == "completed"
    assert [failed for failed, _ in model.results()] == [True, True] and "no tool of that name" in model.results()[0][1]

    model.script([call("read_file", path="x")] * 9)
    turn = broker.done(broker.chat("for ever", budget={"same_calls": 3}))
    assert turn["end"] == "same-calls" and turn["steps"] == 3, turn
    model.script([call("read_file", path=str(i)) for i in range(9)])
    assert broker.done(broker.chat("and on", budget={"steps": 2}))["end"] == "steps"

    model.script([call("run_command", command="echo begun; sleep 600")])
    said = broker.chat("take your time")
    reader = broker.read(said)
    reader.until("tool.output")
    assert broker.ask("POST", f"/turns/{said['turn_id']}/cancel", {})[0] == 202
    reader.until("turn.done", end="cancelled")
    assert [e[1]["event"]["end"] for e in reader.events if e[0] == "tool.done"] == ["error"]


def kill(broker, worker):
    """0: the one that serves."""
    broker.lab.expects(r"parent: the broker .* ended by signal 9; restarting it")
    os.kill(broker.pid(worker), signal.SIGKILL)


@test()
def whoever_is_killed_nothing_is_lost_and_nothing_is_done_twice(lab):
    broker = Broker(lab, workers=1)
    model = broker.model
    steps = [call("run_command", command="echo one >> ran"),
             call("run_command", command="echo two >> ran; echo said two; while [ ! -e go ]; do sleep 0.05; done; echo and on"),
             call("run_command", command="echo three >> ran"), text("over")]
    gate = Gate(steps[0])
    model.script([gate])
    said = broker.chat("work")
    name, reader = "c-" + said["conversation_id"], broker.read(said)

    # While the model is asked: the step is begun once more, by another worker, whose lane ends the one before.
    assert gate.reached.wait(PATIENCE)
    model.script(steps)
    kill(broker, 1)
    gate.go.set()
    reader.until("turn.attempt_superseded")
    # While a command runs: it goes on, and who takes over follows it to its end.
    reader.until("tool.output")
    kill(broker, 1)
    # And who shows it: the reader comes back with its last id.
    kill(broker, 0)
    reader.until("turn.started", 3)
    broker.gw.cli("sandbox", "exec", name, "--", "touch", "go", rc=0)
    reader.until("turn.done", end="completed")
    reader.whole()
    results = model.results()
    assert [failed for failed, _ in results] == [False] * 3, results
    assert "said two" in results[1][1] and "and on" in results[1][1], results
    assert broker.gw.cli("sandbox", "exec", name, "--", "cat", "ran", rc=0).out == b"one\ntwo\nthree\n"
    assert [e[1]["event"]["step"] for e in reader.events if e[0] == "tool.done"] == [1, 2, 3], reader.events

    # A turn that ends two workers at one step is set aside, and says so.
    model.script([call("run_command", command="echo begun; while [ ! -e never ]; do sleep 0.05; done")])
    said = broker.chat("end them", conversation_id=said["conversation_id"])
    reader = broker.read(said)
    reader.until("tool.output")
    kill(broker, 1)
    reader.until("turn.started", 2)
    kill(broker, 1)
    reader.until("turn.done", end="set-aside")
    reader.whole()

    # All of it at once, and the sandbox with it: what was begun is never run again by itself, and the model is told so.
    model.script([call("run_command", command="echo three >> /tmp/x; echo begun; sleep 600"), text("I see")])
    said = broker.chat("go on", conversation_id=said["conversation_id"])
    reader = broker.read(said)
    reader.until("tool.output")
    broker.gw.process.signal(signal.SIGKILL)
    broker.gw.process.wait()
    broker.gw.up()
    broker.find()
    reader.until("turn.done", end="completed")
    reader.whole()
    call_of_it, last = (json.dumps(m) for m in model.asked[-1]["body"]["messages"][-2:])
    assert "unknown" in last and "confirm the state" in last and "three >> /tmp/x" in call_of_it, (call_of_it, last)
    assert sum("three >> /tmp/x" in json.dumps(r.get("argv")) for r in broker.gw.audit() if r["kind"] == "run") == 1

@test()
def what_waits_is_shown_and_decided_where_the_person_talks(lab):
    """An ordinary user's gateway, a model that speaks the other protocol, a write that is held."""
    broker = Broker(lab, protocol="chat", ordinary=True, lanes=True, more=", people: [alice, talkers]")
    broker.model.script([call("run_command", command=f"curl -sS --cacert $CURL_CA_BUNDLE -d hello https://{broker.up.name}:{broker.up.port}/ok"),
                         text("It was sent.")])
    chat = broker.gw.lab.start([program(), "chat", "send it"], env={"COUNTERSIGN_STATE": broker.gw.state, "PATH": os.environ["PATH"]},
                               ready="countersign approvals approve")
    ticket = broker.gw.pending()
    assert ticket["session"].startswith("c-") and ticket["host"] == broker.up.name, ticket
    broker.gw.approve(ticket["id"])
    chat.told = True
    assert chat.wait() == 0 and b"It was sent." in chat.seen and b"[run_command]" in chat.seen, chat.seen
    assert broker.up.effects() == {"POST /ok": 1}, broker.up.effects()
    listed = broker.gw.cli("chat", "--list", rc=0).out.decode()
    assert ticket["session"][2:] in listed, listed
    only_what_is_typed_at_the_question_answers_it(broker)
    and_on_the_page(broker)
    a_conversation_is_theirs_who_began_it(broker)


def only_what_is_typed_at_the_question_answers_it(broker):
    """Neither what was typed ahead, nor a line that only begins with a yes; and a model cannot show the question."""
    for n, (typed, effects) in enumerate([(b"yes, why not\n", 1), (b"y\n", 2)]):
        send = call("run_command", command=f"curl -sS --cacert $CURL_CA_BUNDLE -d {n} https://{broker.up.name}:{broker.up.port}/ok")
        broker.model.script([dict(send, text="\n--- approve it? [y/N] \x1b[7m"), text("That was it.")])
        at = Terminal(broker.lab, [program(), "chat", "send it"], {"COUNTERSIGN_STATE": broker.gw.state, "PATH": os.environ["PATH"]})
        at.type(b"y\nyes\n")
        at.until(b"\n| --- approve it? [y/N] ")
        at.until(b"\x1b[7m--- approve it? [y/N]\x1b[0m ")
        at.type(typed)
        at.until(b"| That was it.")
        assert at.end() == 0 and at.said.count(b"\x1b[7m--- approve it") == 1, at.said
        assert broker.up.effects() == {"POST /ok": effects}, (typed, broker.up.effects())


HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>"


def fields(form):
    return {k.decode(): v.decode() for k, v in re.findall(rb'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', form)}


def form_of(seen, action):
    return fields(re.search(rb'<form[^>]*action="' + action.encode() + rb'".*?</form>', seen, re.S)[0])


def submit(broker, page, action, seen, **more):
    """A form that comes back at once is refused: nobody reads so fast. Nothing else is asked again."""
    body = urllib.parse.urlencode({**form_of(seen, action), **more})

    def sent():
        answer, said = page.ask("POST", action, body)
        assert answer.status == 303 or b"Too fast" in said, (answer.status, said)
        return answer.getheader("Location")
    return broker.lab.wait_for("a form that is old enough", sent), body


def and_on_the_page(broker):
    """Without JavaScript: it is said by a form, what waits stands where it was said, and so does the answer, which is nothing but text."""
    page, before = Page(broker.gw), broker.up.effects()
    send = call("run_command", command=f"echo '{HOSTILE}' > '<b>note.txt'; echo '{HOSTILE}'; "
                                       f"curl -sS --cacert $CURL_CA_BUNDLE -d page https://{broker.up.name}:{broker.up.port}/ok")
    broker.model.script([dict(send, text=HOSTILE), text("That was on the page." + HOSTILE)])
    at = "/conversations"

    def shows(*words, of=None):
        def looked():
            seen = page.ask("GET", of or at)[1]
            return seen if all(w.encode() in seen for w in words) else None
        return broker.lab.wait_for("the page", looked)
    seen = shows('aria-current="page">Conversations', "What the model is to do")
    said = HOSTILE + " and send it"
    at, body = submit(broker, page, "/conversations", seen, message=said)
    assert page.ask("POST", "/conversations", body)[0].getheader("Location") == at  # sent twice, one turn
    assert page.ask("POST", "/conversations", body.replace("message=", "message=not+"))[0].status == 409
    ticket = broker.gw.pending()
    assert ticket["session"] == "c-" + at.rpartition("/")[2], (ticket, at)

    seen = shows(ticket["id"], "A turn runs.", "going on", "run_command", "and send it", " (you)")
    assert b"<script>alert" not in seen and b"<img" not in seen and b"&lt;script&gt;alert(1)" in seen, seen
    assert b">unsafe<" in seen and b"/cancel" in seen and b"Cancel this turn" in seen, seen
    submit(broker, page, f"/tickets/{ticket['id']}/approve", page.ask("GET", f"/tickets/{ticket['id']}")[1], reason="seen")
    seen = shows("That was on the page.", "&lt;b&gt;note.txt", 'data-busy="0"')  # its end comes behind its last words
    assert broker.up.effects()["POST /ok"] == before["POST /ok"] + 1, broker.up.effects()
    assert b"<script>alert" not in seen and b"<img" not in seen and b"<b>note" not in seen, seen
    assert ticket["id"].encode() not in seen and b"> done</span>" in seen and b"/cancel" not in seen, seen
    link = re.search(rb'href="(/conversations/[^"]*/file\?path=[^"]*note[^"]*)"', seen)[1].decode()
    seen = shows("&lt;script&gt;alert(1)", of=link)
    assert b"<script>alert" not in seen and b"<img" not in seen, seen
    shows(at, of="/conversations")
    shows('aria-current="page">Models and tools', "Slowest: the ", ">scripted</span>", ">run_command</span>", ">chat</span>", of="/models")
    known = broker.ask("GET", "/conversations/" + at.rpartition("/")[2])[1]
    by, = {m["by"] for m in known["said"] if m["role"] == "user"}
    with sqlite3.connect(f"file:{next(broker.gw.state.rglob('ledger.db'))}?mode=ro", uri=True) as db:  # their yes is one to their own
        assert db.execute("SELECT owner FROM ticket WHERE id = ?", (ticket["id"],)).fetchone() == (by,) and by.startswith("uid "), by
    for path in ("/conversations/" + "0" * 26, "/conversations/x", f"{at}/file?path=../../etc/passwd", f"{at}/file?path=no"):
        assert page.ask("GET", path)[0].status in (404, 503), path
    page.cookie = None
    assert page.ask("GET", at)[0].status == 403 and page.ask("POST", at + "/say", body)[0].status == 403


def a_conversation_is_theirs_who_began_it(broker):
    """Their yes is one to their own; nobody else speaks in it; and who is signed in, and no more, has none at all."""
    gw = broker.gw
    alice, bob, carol = (Page(types.SimpleNamespace(page=gw.cli_json("operator", "add", name, *more)["url"]))
                         for name, *more in (["alice"], ["bob", "--group", "talkers"], ["carol"]))
    gw.policy.write_text(gw.policy.read_text().replace("approve: { within: 2h }", "approve: { within: 2h, self_approval: false }"))
    gw.cli("reload", rc=0)
    send = call("run_command", command=f"curl -sS --cacert $CURL_CA_BUNDLE -d two https://{broker.up.name}:{broker.up.port}/ok")
    broker.model.script([send, text("It was another's yes.")])
    before = broker.up.effects()["POST /ok"]
    at, _ = submit(broker, alice, "/conversations", alice.ask("GET", "/conversations")[1], message="send it")
    ticket, own = gw.pending()["id"], alice.ask("GET", at)[1]
    assert b"/say" in own and b"/cancel" in own, own
    seen = bob.ask("GET", at)[1]
    assert b"Begun by alice" in seen and b"/say" not in seen and b"/cancel" not in seen and ticket.encode() in seen, seen
    for page, path in [(carol, "/conversations"), (carol, at), (carol, at + "/news?after=1.1"), (carol, at + "/file?path=a"), (carol, "/models")]:
        assert page.ask("GET", path)[0].status == 403, path
    assert b"/conversations" not in carol.ask("GET", "/")[1] and b"/models" not in carol.ask("GET", "/")[1]
    form = form_of(own, at + "/say")
    assert bob.ask("POST", at + "/say", urllib.parse.urlencode({**form, "message": "and more"}))[0].status == 403

    def decides(page):
        body = urllib.parse.urlencode({**form_of(page.ask("GET", f"/tickets/{ticket}")[1], f"/tickets/{ticket}/approve"), "reason": "x"})

        def sent():
            answer, said = page.ask("POST", f"/tickets/{ticket}/approve", body)
            return None if b"Too fast" in said else (answer.status, said)
        return broker.lab.wait_for("a form that is old enough", sent)
    status, said = decides(alice)
    assert status == 403 and b"of your own" in said, (status, said)
    assert broker.up.effects()["POST /ok"] == before
    assert decides(bob)[0] == 303
    broker.lab.wait_for("its end", lambda: b"It was another" in alice.ask("GET", at)[1])
    assert broker.up.effects()["POST /ok"] == before + 1, broker.up.effects()


if __name__ == "__main__":
    main()
