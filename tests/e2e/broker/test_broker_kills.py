#!/usr/bin/env python3
"""Whoever runs a turn is killed at each step that a reader can see, and while an effect is on its way: an upstream that counts sees
it once, and what nobody can know the model is told; the reader misses nothing and hears nothing twice."""
import json
import os
import signal

import room  # noqa: F401
from brokers import Broker
from harness import main, test
from models import call, text

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


if __name__ == "__main__":
    main()
