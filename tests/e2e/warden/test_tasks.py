#!/usr/bin/env python3
"""Tasks: a command in a sandbox of its own, with JSON that fits a schema going in and coming out. Of a result that does
not fit, no byte reaches who asked."""
import concurrent.futures
import json
import os
import pathlib
import sqlite3

from boxes import Nobodys, nothing_is_left
from gateway import Gateway, program, simple_policy
from harness import main, test

TASKS = pathlib.Path(__file__).resolve().parents[3] / "conf/tasks"
PYTHON = "/usr/bin/python3"
BEGIN = """
import json, os, sys, time
given = json.load(open(os.environ["COUNTERSIGN_TASK_INPUT"]))
def give(text): open(os.environ["COUNTERSIGN_TASK_RESULT"], "w").write(text)
"""
WORD = "crossing-where-nothing-may"  # the commands have it backwards
HIDDEN = repr(WORD[::-1]) + "[::-1]"
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
ENDS = {
    "fits": ('give(json.dumps({"n": given["n"] + 1}))', 200, None),
    "text": (f'give(json.dumps({{"n": {HIDDEN}}}))', 502, {"error": "schema_violation", "path": "/n", "keyword": "type"}),
    "more": (f'give(json.dumps({{"n": 1, {HIDDEN}: 2}}))', 502,
             {"error": "schema_violation", "path": "", "keyword": "additionalProperties"}),
    "none": (f"print({HIDDEN}); print({HIDDEN}, file=sys.stderr)", 502, {"error": "no_result"}),
    "no-json": (f"give({HIDDEN})", 502, {"error": "not_json"}),
    "twice": ("""give('{"n": 1, "n": 2}')""", 502, {"error": "not_json"}),
    "status": (f"give({HIDDEN}); sys.exit(7)", 502, {"error": "command_failed", "command": {"how": "exited", "status": 7}}),
    "killed": ("os.kill(os.getpid(), 9)", 502, {"error": "command_failed", "command": {"how": "signalled", "signal": 9}}),
    "slow": ("time.sleep(600)", 502, {"error": "timed_out"}),
    "large": ("give('[' + '1,' * 1000000 + '1]')", 502, {"error": "too_large"}),
    "deep": ("give('[' * 500 + ']' * 500)", 502, {"error": "too_large"}),
    "link": ('os.symlink("/etc/passwd", os.environ["COUNTERSIGN_TASK_RESULT"])', 502, {"error": "no_result"}),
    "folder": ('os.mkdir(os.environ["COUNTERSIGN_TASK_RESULT"])', 502, {"error": "no_result"}),
    "pipe": ('os.mkfifo(os.environ["COUNTERSIGN_TASK_RESULT"])', 502, {"error": "no_result"}),
}


def kind(lab, name, script, output=NUMBER, timeout="60s", **more):
    for end, schema in (("in", NUMBER), ("out", output)):
        (lab.dir / f"{name}.{end}.json").write_text(json.dumps(schema))
    (lab.dir / f"{name}.yaml").write_text(json.dumps({
        "version": 1, "kind": name, "command": [PYTHON, "-c", "exec(bytes.fromhex('%s'))" % (BEGIN + script).encode().hex()],
        "timeout": timeout, "limits": {"memory": "256MiB", "disk": "32MiB"}, "input": f"{name}.in.json",
        "output": f"{name}.out.json", **more}))
    return f"{name}.yaml"


def gateway(lab, files, ordinary=False):
    policy = simple_policy(lab.upstream())
    return Gateway(Nobodys(lab) if ordinary else lab, policy, {"api": lab.canary("c" * 40).encode()},
                   config=f"tasks: [{', '.join(map(str, files))}]\n")


def both(function):
    for ordinary in (False, True):
        def case(lab, ordinary=ordinary):
            function(lab, ordinary)
        case.__name__ = function.__name__ + ("_by_an_ordinary_user" if ordinary else "")
        case.__doc__ = function.__doc__
        test()(case)
    return function


@both
def only_a_result_that_fits_crosses(lab, ordinary):
    """G16: whatever the command leaves or says, the answer has the place and the keyword, or a status."""
    gw = gateway(lab, [kind(lab, name, script, timeout="5s" if name == "slow" else "60s")
                       for name, (script, _, _) in ENDS.items()], ordinary)
    for name, (_, status, want) in ENDS.items():
        got, answer = gw.control("POST", "/api/v1/tasks", {"kind": name, "input": {"n": 41}})
        assert got == status, (name, got, answer)
        assert WORD not in json.dumps(answer), (name, answer)
        if want is None:
            assert answer["result"] == {"n": 42}, answer
        else:
            assert "result" not in answer and want.items() <= answer.items(), (name, answer)
            kept = name in ("text", "more", "no-json", "twice", "deep")  # the others left nothing, or more than is kept
            assert ("blob" in answer) == kept, (name, answer)
            left = gw.cli("runs", "output", answer["run"], rc=0 if kept else 1)
            assert (WORD.encode() in left.out) == (name in ("text", "more", "no-json")), (name, left.both)
        assert gw.cli_json("sandbox", "started")["started"] == [], name
    nothing_is_left(gw)
    notes = gw.recorded(len(ENDS), about="task")
    assert sorted(n["what"]["task"] for n in notes) == sorted(ENDS)
    assert WORD not in json.dumps(gw.audit())
    assert WORD.encode() not in gw.process.seen


@both
def an_input_that_does_not_fit_starts_nothing(lab, ordinary):
    gw = gateway(lab, [kind(lab, "fits", ENDS["fits"][0])], ordinary)
    for given, path, keyword in (({}, "", "required"), ({"n": "x"}, "/n", "type"), ([], "", "type"),
                                 ({"n": 1, "m": 1}, "", "additionalProperties")):
        status, answer = gw.control("POST", "/api/v1/tasks", {"kind": "fits", "input": given})
        assert (status, answer["error"], answer["of"]) == (422, "schema_violation", "input"), answer
        assert (answer["path"], answer["keyword"]) == (path, keyword), answer
    assert gw.control("POST", "/api/v1/tasks", {"kind": "other", "input": {"n": 1}})[0] == 404
    assert [r for r in gw.audit() if r.get("about") in ("sandbox-start", "task")] == []


@test()
def the_shipped_kind_runs_from_the_command_line(lab):
    gw = gateway(lab, [TASKS / "word-count.yaml"])
    (lab.dir / "text.json").write_text('{"text": "so many words \\u001b[2J"}')
    done = gw.cli("task", "run", "word-count", lab.dir / "text.json", rc=0)
    assert json.loads(done.out) == {"words": 4, "bytes": 18} and not done.err, done.both
    assert json.loads(gw.cli("task", "run", "word-count", stdin=b'{"text": ""}', rc=0).out)["words"] == 0
    answer = json.loads(gw.cli("task", "run", "word-count", "--json", stdin=b'{"text": 1}', rc=1).out)
    assert (answer["error"], answer["path"], answer["keyword"]) == ("schema_violation", "/text", "type"), answer
    assert b"the input breaks the schema of its kind at /text: type" in \
        gw.cli("task", "run", "word-count", stdin=b'{"text": 1}', rc=1).err
    assert b"is not one JSON value" in gw.cli("task", "run", "word-count", stdin=b'{"text": "", "text": ""}', rc=1).err
    assert b"at most 61440 bytes" in gw.cli("task", "run", "word-count", stdin=b'"' + b"x" * 70000 + b'"', rc=1).err
    assert b"no kind of task" in gw.cli("task", "run", "none", stdin=b"{}", rc=1).err
    assert b"word-count  host  at most 30 s" in gw.cli("task", "list", rc=0).out
    assert gw.cli_json("task", "list")["tasks"][0]["output"]["required"] == ["words", "bytes"]


@both
def who_leaves_ends_the_task_and_its_sandbox(lab, ordinary):
    gw = gateway(lab, [kind(lab, "slow", "time.sleep(600)")], ordinary)
    (lab.dir / "in.json").write_text('{"n": 1}')
    client = gw.lab.start([program(), "task", "run", "slow", lab.dir / "in.json"],
                          env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
    lab.wait_for("its command", lambda: [s for s in gw.cli_json("sandbox", "started")["started"] if s["commands"]])
    client.stop()
    lab.wait_for("its end", lambda: gw.cli_json("sandbox", "started")["started"] == [])
    nothing_is_left(gw)
    assert gw.recorded(1, about="task")[0]["what"]["outcome"] == "cancelled"


@both
def an_operator_ends_a_task_and_no_other_attempt_begins(lab, ordinary):
    """Its caller is told that it was cancelled, and nothing of it is left."""
    gw = gateway(lab, [kind(lab, "slow", "time.sleep(600)", retries=3)], ordinary)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(gw.control, "POST", "/api/v1/tasks", {"kind": "slow", "id": "mine", "tenant": "acme", "input": {"n": 1}})
        lab.wait_for("its command", lambda: [s for s in gw.cli_json("sandbox", "started")["started"] if s["commands"]])
        [runs] = gw.cli_json("task", "running")["running"]
        assert (runs["id"], runs["tenant"], runs["kind"], runs["state"]) == ("mine", "acme", "slow", "running"), runs
        assert b"mine" in gw.cli("task", "running", rc=0).out
        assert b"no task of this id" in gw.cli("task", "cancel", "other", rc=1).err
        assert gw.control("POST", "/api/v1/tasks", {"kind": "slow", "id": "mine", "input": {"n": 1}})[0] == 409
        gw.cli("task", "cancel", "mine", rc=0)
        status, answer = answer.result()
    assert (status, answer["error"], answer["attempts"]) == (502, "cancelled", 1), answer
    assert gw.cli_json("task", "running")["running"] == [] and gw.cli_json("sandbox", "started")["started"] == []
    nothing_is_left(gw)
    assert gw.recorded(1, about="task")[0]["what"]["outcome"] == "cancelled"


@test()
def a_kind_may_begin_anew_and_be_a_tenants_own(lab):
    """Each attempt has a sandbox and a record of its own; which kind a name means, whose task it is says."""
    gw = gateway(lab, [kind(lab, "flaky", "sys.exit(7)", retries=2)])
    status, answer = gw.control("POST", "/api/v1/tasks", {"kind": "flaky", "input": {"n": 1}})
    assert (status, answer["error"], answer["attempts"]) == (502, "command_failed", 3), answer
    notes = gw.recorded(3, about="task")
    assert [n["what"]["attempt"] for n in notes] == [1, 2, 3] and len({n["what"]["sandbox"] for n in notes}) == 3, notes
    ours = kind(lab, "own", 'give(json.dumps({"n": 2}))', tenants=["acme"])
    (lab.dir / "acme.yaml").write_text((lab.dir / ours).read_text())
    files = f"tasks: [{kind(lab, 'own', ENDS['fits'][0])}, acme.yaml]"
    gw.config.write_text(gw.config.read_text().replace("tasks: [flaky.yaml]", files))
    gw.cli("reload", rc=0)
    run = lambda **more: gw.control("POST", "/api/v1/tasks", {"kind": "own", "input": {"n": 6}, **more})[1]["result"]["n"]
    assert (run(), run(tenant="beta"), run(tenant="acme")) == (7, 7, 2)
    nothing_is_left(gw)


@test()
def many_at_once_are_run_or_refused_in_words(lab):
    gw = gateway(lab, [kind(lab, "fits", ENDS["fits"][0])])
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda n: gw.control("POST", "/api/v1/tasks", {"kind": "fits", "input": {"n": n}}), range(30)))
    for n, (status, answer) in enumerate(answers):
        assert (status, answer.get("result")) == (200, {"n": n + 1}) or (status == 503 and answer["detail"]), answer
    assert sum(status == 200 for status, _ in answers) >= 1
    nothing_is_left(gw)
    assert gw.control("POST", "/api/v1/tasks", {"kind": "fits", "input": {"n": 1}})[0] == 200


@test()
def a_reload_has_other_kinds_or_refuses(lab):
    gw = gateway(lab, [kind(lab, "fits", ENDS["fits"][0])])
    kind(lab, "fits", 'give(json.dumps({"n": "text"}))', output={"type": "object"})
    gw.cli("reload", rc=0)
    assert gw.control("POST", "/api/v1/tasks", {"kind": "fits", "input": {"n": 1}})[1]["result"] == {"n": "text"}
    kind(lab, "fits", "pass", output={"type": "objekt"})
    lab.expects("reload refused")
    done = gw.cli("reload")
    assert done.rc != 0 and b"fits.yaml" in done.err and b"this schema cannot be used, at /type" in done.err, done.both
    assert gw.control("POST", "/api/v1/tasks", {"kind": "fits", "input": {"n": 1}})[0] == 200


@both
def who_dies_ends_the_task_and_its_sandbox(lab, ordinary):
    """Killed, the desk and the warden leave nothing of it: no sandbox idles until its time is over."""
    gw = gateway(lab, [kind(lab, "slow", "time.sleep(600)"), kind(lab, "fits", ENDS["fits"][0])], ordinary)
    (lab.dir / "in.json").write_text('{"n": 1}')
    for role in ("warden", "desk"):
        client = gw.lab.start([program(), "task", "run", "slow", lab.dir / "in.json"],
                              env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
        lab.wait_for("its command", lambda: [s for s in gw.cli_json("sandbox", "started")["started"] if s["commands"]])
        gw.kill(role)
        client.told = True
        assert client.wait() == 4, client.seen
        lab.wait_for("its end", lambda: gw.cli_json("sandbox", "started")["started"] == [])
        nothing_is_left(gw)
        lab.wait_for("another one",
                     lambda: gw.control("POST", "/api/v1/tasks", {"kind": "fits", "input": {"n": 1}})[0] == 200)


def repeat(gw, run, rc=0):
    return json.loads(gw.cli("runs", "repeat", run, "--json", rc=rc).out)


@both
def the_same_record_repeats_to_the_same_output(lab, ordinary):
    gw = gateway(lab, [kind(lab, "fits", ENDS["fits"][0]), kind(lab, "text", ENDS["text"][0]), kind(lab, "status", ENDS["status"][0]),
                       kind(lab, "time", 'give(json.dumps({"n": time.time_ns()}))')], ordinary)
    status, first = gw.control("POST", "/api/v1/tasks", {"kind": "fits", "input": {"n": 41}})
    assert (status, first["result"]) == (200, {"n": 42}), first
    again = repeat(gw, first["run"])
    assert again["same"] is True and again["repeats"] == first["run"] and again["result"] == {"n": 42}, again
    assert again["before"] == again["now"] and len(again["now"]["output_sha256"]) == 64, again
    assert repeat(gw, again["run"][:12])["same"] is True  # a repetition is a run, too
    assert b"the same" in gw.cli("runs", "repeat", first["run"], rc=0).out
    for name, outcome in (("text", "schema_violation"), ("status", "command_failed")):
        status, answer = gw.control("POST", "/api/v1/tasks", {"kind": name, "input": {"n": 1}})
        again = repeat(gw, answer["run"])
        assert status == 502 and again["same"] is True and again["now"]["outcome"] == outcome, (answer, again)
        assert WORD not in json.dumps(again) and "result" not in again, again
    _, answer = gw.control("POST", "/api/v1/tasks", {"kind": "time", "input": {"n": 1}})
    again = repeat(gw, answer["run"], rc=1)
    assert again["same"] is False and again["before"]["output_sha256"] != again["now"]["output_sha256"], again
    assert b"not the same" in gw.cli("runs", "repeat", answer["run"], rc=1).out
    records = {r["id"]: r for line in gw.cli("runs", "list", "--json", "-n", "200", rc=0).out.splitlines() for r in [json.loads(line)]}
    what = records[first["run"]]["begin"]["what"]
    assert records[first["run"]]["what"] == "task" and what["outcome"] == "result" and what["digest"].startswith("sha256:"), what
    assert what["limits"]["memory"] == 256 << 20 and what["limits"]["disk"] == 32 << 20, what
    gw.cli("runs", "verify", rc=0)
    nothing_is_left(gw)


@test()
def what_a_record_does_not_hold_is_not_made_up_for(lab):
    gw = gateway(lab, [kind(lab, "fits", ENDS["fits"][0])])
    _, first = gw.control("POST", "/api/v1/tasks", {"kind": "fits", "input": {"n": 41}})
    (lab.dir / "fits.yaml").unlink()  # a kind that was taken away since is still what it was
    gw.config.write_text(gw.config.read_text().replace("tasks: [fits.yaml]", "tasks: []"))
    gw.cli("reload", rc=0)
    assert gw.control("POST", "/api/v1/tasks", {"kind": "fits", "input": {"n": 41}})[0] == 404
    assert repeat(gw, first["run"])["same"] is True
    command = next(json.loads(line) for line in gw.cli("runs", "list", "--json", rc=0).out.splitlines() if b'"what":"command"' in line)
    assert b"it is no task" in gw.cli("runs", "repeat", command["id"], rc=1).err
    db = sqlite3.connect(gw.state / "store" / "ledger.db", timeout=20)
    assert [n for n, in db.execute("SELECT count(*) FROM blob WHERE instr(sealed, CAST('\"n\"' AS BLOB)) > 0")] == [0]
    db.execute("DELETE FROM blob WHERE length(sealed) < 100")  # its input
    db.commit()
    db.close()
    assert b"its input is not kept" in gw.cli("runs", "repeat", first["run"], rc=1).err
    gw.cli("runs", "repeat", "nosuchrun", rc=1)
    gw.cli("runs", "repeat", "../x", rc=2)
    nothing_is_left(gw)


main()
