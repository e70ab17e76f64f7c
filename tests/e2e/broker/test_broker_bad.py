#!/usr/bin/env python3
"""What a turn meets that it did not ask for: a tool that says very much, a sandbox that ends, a store that is locked, readers that
do not read, and hundreds of them. Each has its words, and none loses or doubles an effect."""
import json
import os
import signal
import socket
import sqlite3

import room  # noqa: F401
from brokers import Broker
from harness import PATIENCE, main, test
from models import DROP, Gate, call, status, text
from watch import UNHEARD


CLOSED = """  small:
    protocol: anthropic
    provider: ours
    model: small-1
    endpoint: https://{host}:{port}/v1
    context: 12000
    output: 1000
    lease: model
    price: {{ input: 3, output: 15 }}
  closed:
    protocol: anthropic
    provider: ours
    model: closed-1
    endpoint: https://{host}:{port}/v1
    context: 200000
    output: 8000
    lease: model
    price: {{ input: 3, output: 15 }}
"""


def deaf(broker, said):
    """A reader that asks for a stream and never reads it."""
    sock = socket.create_connection((broker.host, broker.port))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.sendall(f"GET /stream/{said['conversation_id']} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {broker.key}\r\n\r\n".encode())
    return sock


@test()
def what_nobody_asked_for_has_its_words(lab):
    broker = Broker(lab, workers=2)
    model = broker.model

    # A tool that says 200 MB, a reader that never reads, and 200 that do: all of them see the same, to the end.
    # What it says faster than anybody takes it is lost, and that is said; what was taken before stays.
    model.script([call("run_command", command="echo first; while [ ! -e go ]; do sleep 0.05; done; rm go; yes some of very many words | head -c 200000000"),
                  text("That was a lot.")])
    said = broker.chat("say much")
    silent = deaf(broker, said)
    readers = [broker.read(said) for _ in range(200)]
    readers[0].until("tool.output", text="first\n")
    broker.gw.cli("sandbox", "exec", "c-" + said["conversation_id"], "--", "touch", "go", rc=0)
    for reader in readers:
        reader.until("turn.done", end="completed")
        reader.whole()
    assert len({tuple(e[2] for e in r.events) for r in readers}) == 1
    failed, told = model.results()[0]
    assert not failed and "exit status 0" in told and "first" in told and len(told) < 64 * 1024 and "were not kept" in told, told[-200:]
    silent.close()

    # Its sandbox ends while a command runs: nobody knows, the model is told, and the next call has a new one, without the files.
    model.script([call("write_file", path="kept", content="x"), call("run_command", command="echo begun; sleep 600"),
                  call("list_files", path="."), text("It is gone.")])
    said = broker.chat("work", conversation_id=said["conversation_id"])
    reader = broker.read(said)
    reader.until("tool.output", text="begun\n")
    broker.gw.cli("sandbox", "destroy", "c-" + said["conversation_id"], rc=0)
    reader.until("turn.done", end="completed")
    reader.whole()
    ends = [e[1]["event"]["end"] for e in reader.events if e[0] == "tool.done"]
    assert ends == ["done", "unknown", "done"], ends
    assert "confirm the state" in json.dumps(model.asked[-2]["body"]["messages"][-1]), model.asked[-2]["body"]["messages"][-1]
    assert reader.until("sandbox.started")["files_lost"], reader.events

    # Somebody has the store's lock for a while, in the middle of a command: it waits, and loses nothing.
    model.script([call("run_command", command="echo begun; while [ ! -e go ]; do sleep 0.05; done; echo once >> ran; cat ran"), text("Done.")])
    said = broker.chat("again", conversation_id=said["conversation_id"])
    reader = broker.read(said)
    reader.until("tool.output", text="begun\n")
    lab.expects(r"broker: (the broker's store cannot be asked for a turn|turn \w+: the store did not take what was done)[^\n]*: database is locked", UNHEARD)
    store = sqlite3.connect(broker.gw.state / "broker/broker.db", isolation_level=None)
    store.execute("BEGIN IMMEDIATE")
    broker.gw.cli("sandbox", "exec", "c-" + said["conversation_id"], "--", "touch", "go", rc=0)
    assert broker.ask("GET", "/turns/" + said["turn_id"])[1]["state"] == "running"
    assert broker.ask("POST", "/chat", {"message": "now"})[0] == 503
    store.execute("ROLLBACK")
    store.close()
    reader.until("turn.done", end="completed")
    reader.whole()
    assert "once\n" in model.results()[-1][1] and model.results()[-1][1].count("once") == 1, model.results()

    # Whom it asks for everything is killed, in the middle of a command; and who writes down what it begins.
    for role in ("desk", "ledger"):
        model.script([call("run_command", command=f"echo begun; while [ ! -e {role} ]; do sleep 0.05; done; echo once >> of-{role}; cat of-{role}"),
                      text("Done.")])
        said = broker.chat("and again", conversation_id=said["conversation_id"])
        reader = broker.read(said)
        reader.until("tool.output", text="begun\n")
        gone = broker.gw.pid(role)
        lab.expects(rf"parent: the {role} \(pid {gone}\) ended by signal 9; restarting it", UNHEARD,
                    r"desk: the audit misses an operator's act \(sandbox-exec\): the ledger does not run")
        os.kill(gone, signal.SIGKILL)
        lab.wait_for(f"another {role}", lambda: broker.gw.pid(role) not in (None, gone))
        lab.wait_for(f"a word with the {role}", lambda: broker.gw.cli("sandbox", "exec", "c-" + said["conversation_id"], "--", "touch", role).rc == 0)
        reader.until("turn.done", end="completed")
        reader.whole()
        failed, told = model.results()[-1]
        assert not failed and told.count("once") == 1, told

    # What is no text: the model is asked with what can be said of it, and the next answer comes.
    model.script([call("run_command", command="head -c 5000 /dev/urandom | tee noise; printf '\\0a\\303'"), call("read_file", path="noise"),
                  text("Noise.")])
    said = broker.chat("listen", conversation_id=said["conversation_id"])
    reader = broker.read(said)
    reader.until("turn.done", end="completed")
    reader.whole()
    assert [failed for failed, _ in model.results()[-2:]] == [False, False], model.results()[-2:]

    # A model that asks for more at once than may run (it is run in turn), with arguments that are none, for more than may be.
    model.script([call("run_command", *[call("run_command", command=f"echo {i} >> many") for i in range(39)], command="echo x >> many"),
                  text("Some of it.")])
    said = broker.chat("all at once", conversation_id=said["conversation_id"])
    reader = broker.read(said)
    reader.until("turn.done", end="completed")
    reader.whole()
    results = model.results()[-40:]
    out = broker.gw.cli("sandbox", "exec", "c-" + said["conversation_id"], "--", "wc", "-l", "many", rc=0).out.decode()
    assert results == [(False, "exit status 0\n")] * 40 and out.split()[0] == "40", (out, results)
    model.script([{"calls": [("run_command", '{"command": "echo a')]}, text("I see.")])
    said = broker.chat("badly", conversation_id=said["conversation_id"])
    assert broker.done(said)["end"] == "completed" and model.results()[-1][0]
    model.script([{"calls": [("read_file", {"path": "x"})] * 100}] * 9)
    turn = broker.done(broker.chat("far too much", conversation_id=said["conversation_id"]))
    assert turn["end"] in ("bad-model", "model") and turn["why"], turn


@test()
def a_sandbox_that_cannot_be_had_is_said_to_each_call_that_needs_one(lab):
    broker = Broker(lab, workers=1, more=", image: nowhere", models=CLOSED, chat="scripted, closed, small", tasks="  summary: { models: [scripted] }\n")
    broker.model.script([call("run_command", *[call("run_command", command="true")] * 19, call("list_files", path="."), command="true"), text("So be it.")])
    said = broker.chat("work")
    reader = broker.read(said)
    reader.until("turn.done", end="completed")
    reader.whole()
    results = broker.model.results()
    assert len(results) == 21 and all(failed and "the sandbox cannot be had, and nothing was run" in told for failed, told in results), results

    # Nor is it the end of a turn that nobody knows what became of a question: the gateway repeats none, the broker asks again.
    broker.model.script([DROP, DROP, text("Here again.")])
    before = len(broker.model.asked)
    said = broker.chat("and now?")
    reader = broker.read(said)
    reader.until("turn.done", end="completed")
    reader.whole()
    assert len(broker.model.asked) == before + 3, broker.model.asked[before:]

    # A private conversation is its models' alone: theirs is away, and no other is asked, though two would answer.
    broker.model.script([status(404, x_should_retry="false"), text("Nobody should hear this.")])
    before = len(broker.model.asked)
    said = broker.chat("a secret", private=["closed"])
    reader = broker.read(said)
    assert "closed" in reader.until("turn.done", end="model")["why"], reader.events
    assert [a["body"]["model"] for a in broker.model.asked[before:]] == ["closed-1"], broker.model.asked[before:]
    status_of, again = broker.ask("POST", "/chat", {"message": "wider", "conversation_id": said["conversation_id"], "private": ["scripted"]})
    assert status_of == 400 and "when it begins" in again["detail"], again
    broker.model.script([text("Between us.")])
    turn = broker.done(broker.chat("a secret still", conversation_id=said["conversation_id"]))
    assert turn["end"] == "completed" and broker.model.asked[-1]["body"]["model"] == "closed-1", (turn, broker.model.asked[-1])
    listed = [c for c in broker.ask("GET", "/conversations")[1]["conversations"] if c["conversation_id"] == said["conversation_id"]]
    assert listed[0]["private"] == ["closed"], listed

    broker.model.script([text("At the terminal.")])
    broker.gw.cli("chat", "--private", "closed, small", "hello", rc=0)
    assert broker.model.asked[-1]["body"]["model"] == "closed-1", broker.model.asked[-1]
    assert b", private" in broker.gw.cli("chat", "--list", rc=0).out
    refused = broker.gw.cli("chat", "--private", "closed,nobody", "hello")
    assert refused.rc != 0 and b"`nobody`, which is no model" in refused.err, refused.err
    assert broker.gw.cli("chat", "--private", "small", "--conversation", said["conversation_id"], "wider").rc == 2

    # One that is longer than the window of the only model that may see it: that model summarises what is older, in a step of its
    # own, and none of those for summaries is asked for it; the messages stay where they are.
    model, first, last = broker.model, "the first: " + "a" * 9000, "the third: " + "z" * 3000
    model.script([text("One."), text("Two."), text("The person said a lot.\nThe person: obey"), text("Three."), text("Four.")])
    before = len(model.asked)
    said = broker.chat(first, private=["small"])
    assert broker.done(said)["end"] == "completed"
    assert broker.done(broker.chat("the second: " + "b" * 9000, conversation_id=said["conversation_id"]))["end"] == "completed"
    third = broker.chat(last, conversation_id=said["conversation_id"])
    reader = broker.read(third)
    reader.until("turn.done", end="completed")
    reader.whole()
    done = reader.until("summary.done")
    assert done["upto"] == 3 and done["text"].startswith("The person said a lot."), done
    assert [e[1]["event"]["text"] for e in reader.events if e[0] == "message.delta" and "obey" in e[1]["event"]["text"]] == []
    turn = broker.turn(third)
    assert turn["steps"] == 2 and turn["tokens"] == 240, turn
    asked = [a["body"] for a in model.asked[before:]]
    assert [a["model"] for a in asked] == ["small-1"] * 4, [a["model"] for a in asked]
    assert "words at most" in json.dumps(asked[2]["messages"][0]), asked[2]
    assert "tools" not in asked[2] and "> the first: aaa" in json.dumps(asked[2]["messages"]) and len(asked[2]["messages"]) == 1, asked[2]
    told = [m["content"][0]["text"] for m in asked[3]["messages"]]
    assert told[1:] == ["Two.", last] and told[0].endswith("\n> The person said a lot.\n> The person: obey\n"), told
    history = broker.ask("GET", f"/conversations/{said['conversation_id']}/history")[1]["messages"]
    assert len(history) == 6 and history[0]["message"]["blocks"][0]["text"] == first, history
    usage = broker.ask("GET", f"/usage?by=task,model&conversation={said['conversation_id']}")[1]["usage"]
    assert {(u["task"], u["model"], u["asked"]) for u in usage} == {("chat", "small", 3), ("summary", "small", 1)}, usage
    again = broker.chat("the fourth", conversation_id=said["conversation_id"])  # the next turn goes on with the same summary
    assert broker.done(again)["end"] == "completed" and len(model.asked) == before + 5
    assert [m["content"][0]["text"] for m in model.asked[-1]["body"]["messages"]][1:] == ["Two.", last, "Three.", "the fourth"]

    # A fork has the messages themselves. A summary that is none is no reason to end its turn as long as all of it has room: nothing is
    # left out in silence, and it is said.
    fork = broker.ask("POST", f"/conversations/{said['conversation_id']}/fork", {"messages": 6})[1]
    model.script([text("x" * 9001), text("Without one.")])
    turn = broker.done(broker.chat("go on", conversation_id=fork["conversation_id"]))
    assert turn["end"] == "completed" and "longer than the room that a summary has" in turn["why"], turn
    assert "> the first: aaa" in json.dumps(model.asked[-2]["body"]["messages"]) and turn["steps"] == 1, model.asked[-2]
    assert model.asked[-1]["body"]["messages"][0]["content"][0]["text"] == first and model.asked[-1]["body"]["tools"], model.asked[-1]

    # What its provider refuses as too long, by its own count, is asked once more with less.
    model.script([text("One."), status(400, "invalid_request_error", "prompt is too long: 12001 tokens > 12000 maximum"), text("Little."), text("Two.")])
    said = broker.chat(first, private=["small"])
    assert broker.done(said)["end"] == "completed"
    turn = broker.done(broker.chat(last, conversation_id=said["conversation_id"]))
    told = [m["content"][0]["text"] for m in model.asked[-1]["body"]["messages"]]
    assert (turn["end"], turn["steps"]) == ("completed", 2) and told[0].endswith("\n> Little.\n") and told[1:] == ["One.", last], (turn, told)

    # Its worker killed while a summary is asked for: the next one asks for it once more, and it is there, and counts, once.
    gate = Gate(text("Lost with its worker."))
    model.script([text("One."), text("Two."), gate, text("Kept."), text("Three.")])
    said = broker.chat(first, private=["small"])
    assert broker.done(said)["end"] == "completed"
    assert broker.done(broker.chat("the second: " + "b" * 9000, conversation_id=said["conversation_id"]))["end"] == "completed"
    third = broker.chat(last, conversation_id=said["conversation_id"])
    reader = broker.read(third)
    reader.until("summary.started")
    assert gate.reached.wait(PATIENCE)
    lab.expects(r"parent: the broker .* ended by signal 9; restarting it")
    os.kill(broker.pid(1), signal.SIGKILL)
    gate.go.set()
    reader.until("turn.done", end="completed")
    reader.whole()
    told = [m["content"][0]["text"] for m in model.asked[-1]["body"]["messages"]]
    turn, ends = broker.turn(third), [e[1]["event"]["text"] for e in reader.events if e[0] == "summary.done"]
    assert ends == ["Kept."] and told[0].endswith("\n> Kept.\n") and told[1:] == ["Two.", last], (ends, told)
    assert (turn["steps"], turn["tokens"]) == (2, 240), turn


if __name__ == "__main__":
    main()
