#!/usr/bin/env python3
"""The broker, whole: a scripted model works in a sandbox, its turns are durable, readers miss nothing and hear nothing twice,
whoever is killed; no key is anywhere but in the gateway."""
import json

import room  # noqa: F401
from brokers import Broker
from harness import main, test
from models import CUT, call, status, text


@test()
def a_model_edits_a_file_and_runs_a_command(lab):
    broker = Broker(lab)
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
    # The model was asked with the credential, which nobody but the gateway holds; with what the broker showed, it was a lease.
    asked = broker.model.asked[0]["fields"]
    assert asked["x-api-key"] == "m" * 40 and "proxy-authorization" not in asked, asked
    turn = broker.turn(said)
    assert turn["state"] == "done" and turn["steps"] == 4 and turn["tokens"] == 4 * 120 and turn["cost_micro"] == 4 * (300 + 300), turn
    # A conversation is an identity of its own at the gateway, which ends with its turn.
    assert {r["sandbox"] for r in broker.gw.audit() if r.get("rule") == "model"} <= {"m-" + said["conversation_id"]}
    assert not [s for s in broker.gw.cli_json("sandbox", "list")["sandboxes"] if s["name"].startswith("m-")]
    # All of it was read: a reader that comes back with the last id may stop.
    assert broker.ask("GET", "/stream/" + said["conversation_id"], Last_Event_ID=reader.after)[0] == 204

    # It goes on, and remembers.
    broker.model.script([text("yes")])
    again = broker.chat("and do you remember?", conversation_id=said["conversation_id"])
    assert broker.done(again)["end"] == "completed"
    messages = broker.model.asked[-1]["body"]["messages"]
    assert messages[0]["content"] == "make it say good day" or "make it say good day" in json.dumps(messages[0]), messages[0]
    status_, history = broker.ask("GET", f"/conversations/{said['conversation_id']}/history")
    assert [m["role"] for m in history["messages"]] == ["user", *["assistant", "results"] * 3, "assistant", "user", "assistant"]
    assert [c["conversation_id"] for c in broker.ask("GET", "/conversations")[1]["conversations"]] == [said["conversation_id"]]


if __name__ == "__main__":
    main()
