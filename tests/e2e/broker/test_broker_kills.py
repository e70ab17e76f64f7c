#!/usr/bin/env python3
"""Whoever runs a turn is killed at each step that a reader can see, and while an effect is on its way: an upstream that counts sees
it once, and what nobody can know the model is told; the reader misses nothing and hears nothing twice.

BROKER_STORE_ALL=1 (make torture): calls of every class, with either store, whoever is killed."""
import http.client
import json
import os
import pathlib
import signal
import threading

import room  # noqa: F401
from brokers import Broker
from gateway import running
from harness import main, test
from models import call, text
from postgres import Postgres

# Of one turn: an answer with words and a call, its effect, its result, an answer without a call.
STEPS = [("turn.started", 1), ("message.delta", 1), ("tool.call", 1), ("tool.output", 1), ("tool.done", 1), ("message.delta", 2)]
OTHERS = 55  # a page has 50
WORDS = {1: "I will send it, once.", 2: "It was sent, I think."}


def begin(broker, path, said=None):
    """A turn that says something, has one effect, and says something more, however often it is asked."""
    send = call("run_command", command="echo begun; curl -sS --cacert $CURL_CA_BUNDLE -d x "
                                       f"'https://{broker.up.name}:{broker.up.port}{path}'")

    def answer(asked):
        last = json.dumps(asked["body"]["messages"][-1])
        came = "tool_result" in last or '"role": "tool"' in last or "The last step was cut off" in last
        return text(WORDS[2], pieces=1) if came else dict(send, text=WORDS[1], pieces=1)

    broker.model.otherwise = answer
    said = broker.chat("send it", **({"conversation_id": said["conversation_id"]} if said else {}))
    return said, broker.read(said)


def kill(broker, worker=1):
    broker.lab.expects(r"parent: the broker .* ended by signal 9; restarting it")
    os.kill(broker.pid(worker), signal.SIGKILL)


def settled(broker, path, reader):
    """How its call ended; the upstream saw as much, and the reader all of it."""
    reader.until("turn.done", end="completed")
    reader.whole()
    ends = [e[1]["event"]["end"] for e in reader.events if e[0] == "tool.done" and e[1]["event"]["call"] == 0]
    assert len(ends) == 1 and broker.up.effects().get("POST " + path.partition("?")[0], 0) == 1, (path, ends, broker.up.effects())
    shown = [e[1]["event"] for e in reader.events if e[0] == "message.delta"]
    for step, words in WORDS.items():
        said = [e for e in shown if e["step"] == step]
        last = max(e["attempt"] for e in said)
        assert "".join(e["text"] for e in said if e["attempt"] == last) == words, (path, shown)
    return ends[0]


@test()
def a_worker_that_is_killed_at_any_step_repeats_nothing_and_loses_nothing(lab):
    broker = Broker(lab, workers=1, lanes=True)
    said, reader = begin(broker, "/things/warm")
    assert settled(broker, "/things/warm", reader) == "done"
    for name, nth in STEPS:
        path = f"/things/{name}-{nth}"
        said, reader = begin(broker, path, said)
        reader.until(name, nth)
        kill(broker)
        assert settled(broker, path, reader) == "done", name
    # While the upstream has it and has not answered; and who serves with it.
    broker.up.script({"POST /things/held": "/slow?gate=held"})
    said, reader = begin(broker, "/things/held", said)
    lab.wait_for("the effect", lambda: broker.up.effects().get("POST /things/held"))
    kill(broker)
    kill(broker, 0)
    reader.until("turn.started", 2)
    broker.up.release("held")
    assert settled(broker, "/things/held", reader) == "done"
    # The whole gateway, and the sandbox with it: nobody knows what the command did, and nobody does it again. In the record it
    # stands before more than a page of others.
    broker.up.script({"POST /things/lost": "/slow?gate=lost"})
    said, reader = begin(broker, "/things/lost", said)
    lab.wait_for("the effect", lambda: broker.up.effects().get("POST /things/lost"))
    for _ in range(OTHERS):
        broker.gw.cli("sandbox", "exec", "c-" + said["conversation_id"], "--", "true", rc=0)
    broker.gw.process.signal(signal.SIGKILL)
    broker.gw.process.wait()
    broker.up.release("lost")
    broker.gw.up()
    broker.find()
    assert settled(broker, "/things/lost", reader) == "unknown"
    told = json.dumps(broker.model.asked[-1]["body"]["messages"])
    assert "confirm the state" in told and "/things/lost" in told, told


# --- all of it: make torture ------------------------------------------------------------------

CLASSES = ["unsafe", "reconcilable", "idempotent", "read"]  # of the calls below, in their order
PAUSE = 5  # between two deaths of the database, s


def ask_all(broker, path, said):
    """A turn with a call of each class in one answer."""
    calls = call("run_command", call("edit_file", path="count", old="end", new="+end"), call("write_file", path="b", content=path),
                 call("read_file", path="b"), command=f"curl -sS -o /dev/null -w 'answered {path} %{{http_code}}' --cacert $CURL_CA_BUNDLE "
                                 f"-d x 'https://{broker.up.name}:{broker.up.port}{path}'")

    def answer(asked):
        last = json.dumps(asked["body"]["messages"][-1])
        came = "tool_result" in last or '"role": "tool"' in last or "The last step was cut off" in last
        return text(WORDS[2], pieces=1) if came else dict(calls, text=WORDS[1], pieces=1)

    broker.model.otherwise = answer
    said = patient(broker, path, conversation_id=said["conversation_id"])
    return said, broker.read(said)


def patient(broker, message, **more):
    """Asked with a key until somebody takes it; it is one turn."""
    def taken():
        try:
            status, said = broker.ask("POST", "/chat", {"message": message, **more}, Idempotency_Key=message)
            return said if status == 202 else None
        except (OSError, http.client.HTTPException):
            return None
    return broker.lab.wait_for("somebody who takes what is asked", taken)


def in_box(broker, key, command, **more):
    """What a command says, in a turn of its own while nobody is killed but the database."""
    broker.model.script([call("run_command", command=command), text("Done.", pieces=1)])
    said = patient(broker, key, **more)
    broker.read(said).until("turn.done", end="completed")
    return said, broker.model.results()[-1][1]


def once(broker, said, path, reader, edits, box):
    """Each call ended once, and what was done of it is what was said of it. Returns the edits that there are. box: the sandbox
    ended, and its workspace, of which no checkpoint is kept here, with it."""
    reader.until("turn.done")
    reader.whole()
    dones = [e[1]["event"] for e in reader.events if e[0] == "tool.done"]
    ends = {d["call"]: d["end"] for d in dones}
    assert len(dones) == len(ends), (path, dones)
    assert [e[0] for e in reader.events].count("turn.done") == 1, reader.events
    sent = broker.up.effects().get("POST " + path, 0)
    told = ends.get(0) == "done" and f"answered {path} 20" in json.dumps(broker.model.asked[-1]["body"]["messages"])
    assert sent <= 1 and (sent == 1 or not told) and (sent == 0 or ends.get(0) != "not-run"), (path, ends, sent)
    now, _, file = in_box(broker, "look " + path, "touch b; [ -e count ] || echo end > count; cat count b", conversation_id=said["conversation_id"])[1].partition("end")
    now = now.count("+")
    assert now <= edits + 1 and (box or edits <= now) and (box or now > edits or ends.get(1) != "done"), (path, ends, edits, now)
    assert box or ends.get(2) != "done" or path in file, (path, ends, file)
    return now


def kill_gateway(broker):
    broker.gw.process.signal(signal.SIGKILL)
    broker.gw.process.wait()
    broker.gw.up()
    broker.find()


def below(pid):
    for child in running(pid, ""):
        yield child
        yield from below(child)


def kill_sandbox(broker):
    """The first process inside each."""
    for pid in list(below(broker.gw.process.pid)):
        try:
            if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith((b"bwrap", b"/countersign/")):
                os.kill(pid, signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass


def every_cell(lab, postgres):
    broker = Broker(lab, workers=1, lanes=True, more=f', store: "{postgres.url}"' if postgres else "")
    lab.expects(r"\w+: [^\n]*")  # whoever is left says so
    who = {"gateway": kill_gateway, "sandbox": kill_sandbox, "worker": kill, "broker": lambda b: kill(b, 0),
           "ledger": lambda b: b.gw.kill("ledger")}
    over, lock = threading.Event(), threading.Lock()

    def restart(_=None):
        with lock:
            postgres.restart()

    def again_and_again():
        while not over.wait(PAUSE):
            restart()

    said = in_box(broker, "first", "echo end > count; : > b")[0]
    edits, cells = 0, 0
    if postgres:
        who["database"] = restart
        threading.Thread(target=again_and_again, daemon=True).start()
    try:
        for name, killed in who.items():
            for event, nth in STEPS:
                path = f"/things/{name}-{event}-{nth}"
                said, reader = ask_all(broker, path, said)
                reader.until(event, nth)
                killed(broker)
                edits = once(broker, said, path, reader, edits, name in ("gateway", "sandbox"))
                cells += len(CLASSES)
            print(f"# {'PostgreSQL' if postgres else 'SQLite'}: {name} killed at {len(STEPS)} steps, {cells} cells", flush=True)
    finally:
        over.set()
    doubled = [path for path, n in broker.up.effects().items() if path.startswith("POST /things/") and n > 1]
    print(f"# {cells} cells, {len(doubled)} effects doubled, 0 lost without a word")


def whoever_is_killed_in_every_class_nothing_is_repeated_or_lost(lab):
    every_cell(lab, None)


def the_same_while_the_database_is_killed_again_and_again(lab):
    every_cell(lab, Postgres(lab))


if os.environ.get("BROKER_STORE_ALL"):
    test()(whoever_is_killed_in_every_class_nothing_is_repeated_or_lost)
    test()(the_same_while_the_database_is_killed_again_and_again)


if __name__ == "__main__":
    main()
