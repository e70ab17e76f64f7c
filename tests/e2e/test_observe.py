#!/usr/bin/env python3
"""`countersign log` and `trace`: what is written, changed on the running gateway, and one exchange through all roles."""
import fcntl
import json
import os
import pathlib
import re
import secrets
import subprocess

from gateway import Gateway, program, simple_policy
from harness import PATIENCE, main, test


def setup(lab, **more):
    up = lab.upstream()
    secret = lab.canary(secrets.token_urlsafe(32))
    return up, Gateway(lab, simple_policy(up), {"api": secret.encode()}, **more)


def curl(gw, up, path, *more, name="agent"):
    return ["curl", "-sS", "--max-time", str(PATIENCE), *more, f"https://{up.name}:{up.port}{path}"], gw.client_env(name)


def get(lab, gw, up, path="/ok", **more):
    command, env = curl(gw, up, path, **more)
    lab.run(command, env=env, rc=0)


def lines(gw):
    """What the gateway has written that is a line of its log."""
    found = re.findall(rb'^\{"time".*\}$', gw.process.seen, re.MULTILINE)
    return [json.loads(line) for line in found]


def exchange_of(lab, gw, path, kind="result"):
    found = lab.wait_for(f"the record of {path}", lambda: [r for r in gw.audit() if r["kind"] == kind and r["path"] == path])
    return found[-1]["exchange"]


def log_of(gw):
    said = gw.cli_json("log")
    assert said.pop("pid") == gw.process.popen.pid and said.pop("to"), said
    return said


@test()
def a_held_and_approved_write_is_followed_through_all_roles(lab):
    up, gw = setup(lab)
    command, env = curl(gw, up, "/things", "-X", "POST", "--data-binary", "a=1")
    client = lab.start(command, env=env)
    ticket = gw.pending()
    held = exchange_of(lab, gw, "/things", "ticket-opened")
    before = gw.cli_json("trace", held)  # while it waits
    assert before["steps"][-1]["role"] == "judge" and before["steps"][-1]["result"] in ("wait", "parked"), before
    gw.approve(ticket["id"])
    assert client.wait() == 0
    assert exchange_of(lab, gw, "/things") == held
    trace = gw.cli_json("trace", held.split("-")[-1])  # the number alone names it too
    assert trace["exchange"] == held and trace["missing"] == [], trace
    steps, times = trace["steps"], [s["us"] for s in trace["steps"]]
    assert times[0] == 0 and times == sorted(times) and times[-1] > 0, times
    assert {s["role"] for s in steps} == {"front", "judge", "ledger", "keeper", "carrier"}, steps
    did = [f"{s['role']} {s['step']} {s['result']}" for s in steps]
    order = ["front parse next", "ledger ticket written", "ledger claim written", "keeper credential released",
             "carrier await-credential next", "carrier forward next", "carrier scrub done", "front end answered", "judge end done"]
    assert [d for d in did if d in order and order] and [did.index(o) for o in order[:-2]] == sorted(did.index(o) for o in order[:-2]), did
    assert set(order) <= set(did), did
    assert gw.cli_json("trace", ticket["id"][:8])["exchange"] == held
    shown = gw.cli("trace", held, rc=0).text()
    assert re.search(r"^request   POST \S+/things$", shown, re.MULTILINE) and "recorded  write sent, answered 200" in shown, shown
    longest = max(range(1, len(times)), key=lambda n: times[n] - times[n - 1])
    assert re.search(rf"^took      [\d.]+ m?s, {len(steps)} steps; the longest pause, .* after: {did[longest - 1]}$", shown, re.MULTILINE), shown
    assert re.search(r"^ +\N{MICRO SIGN}s  ROLE ", shown, re.MULTILINE), shown
    assert held in shown and re.search(r"^ +\d+  keeper    credential       released$", shown, re.MULTILINE), shown
    for wrong, rc in (("7", 2), ("zzzz", 1), ("0" * 32 + "-1099511627777", 1), ("../x", 2), (str((99 << 40) + 5), 1)):
        assert gw.cli("trace", wrong).rc == rc, wrong


@test()
def the_level_is_changed_live_and_a_sandbox_followed(lab):
    up, gw = setup(lab, config="log: { level: warn }\n")
    get(lab, gw, up)
    assert log_of(gw) == {"level": "warn", "trace": ""}
    early = ("parent", "ledger")  # they write before the level is told
    assert not [line for line in lines(gw) if line["level"] in ("debug", "info") and line["role"] not in early], lines(gw)
    gw.cli("log", "--level", "debug", rc=0)
    get(lab, gw, up, "/seen")
    exchange = exchange_of(lab, gw, "/seen")
    roles = {"front", "judge", "carrier"}
    lab.wait_for("lines of all roles", lambda: roles <= {line["role"] for line in lines(gw) if line.get("exchange") == exchange})
    said = gw.cli_json("log", "--level", "error", "--trace", "other", "--for", "1h")
    assert said["level"] == "error" and said["trace"] == "other" and said["until_ms"] > 0, said
    get(lab, gw, up, "/quiet")
    get(lab, gw, up, "/followed", name="other")  # its front is started now, and is told
    quiet, followed = exchange_of(lab, gw, "/quiet"), exchange_of(lab, gw, "/followed")
    lab.wait_for("lines of all roles", lambda: roles <= {line["role"] for line in lines(gw) if line.get("exchange") == followed})
    assert not [line for line in lines(gw) if line.get("exchange") == quiet], quiet
    gw.kill("judge")  # the next one is told what is in force
    lab.wait_for("the judge's return", lambda: lab.run(*curl(gw, up, "/again", name="other")).rc == 0)
    again = exchange_of(lab, gw, "/again")
    lab.wait_for("lines of the new judge", lambda: "judge" in {line["role"] for line in lines(gw) if line.get("exchange") == again})
    gw.cli("log", "--for", "1h", rc=2)
    gw.cli("log", "--level", "loud", rc=2)
    assert gw.cli("log", "--trace", "Not A Name").rc == 1
    gw.cli("reload", rc=0)
    assert log_of(gw) == {"level": "warn", "trace": ""}
    gw.cli("log", "--level", "debug", "--for", "200ms", rc=0)
    lab.wait_for("the end of it", lambda: log_of(gw) == {"level": "warn", "trace": ""})
    gw.recorded(kind="note", about="log")


@test()
def lines_are_words_where_a_person_reads_them(lab):
    up, gw = setup(lab, config="log: { format: text, level: debug }\n")
    get(lab, gw, up)
    number = exchange_of(lab, gw, "/ok").split("-")[-1]
    for role in ("front", "judge", "carrier"):
        gw.process.wait_line(rf"(?m)^debug {role:8} \d\d:\d\d:\d\d\.\d{{3}}  \S.*  exchange={number}$")
    assert not lines(gw), lines(gw)


def wall_of(pid):
    return re.findall(r"(?m)^(?:Seccomp|NoNewPrivs|CapEff):.*", pathlib.Path(f"/proc/{pid}/status").read_text())


def confined_while_it_plays(lab, gw, exchange, wall):
    """What is in the file came from a sandbox: the judge that plays it is as confined as the one that runs. It is looked at
    while it waits for somebody to read what it says."""
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writes, b"." * 4096)
    played = subprocess.Popen([program(), "replay-exchange", exchange],
                              env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]}, stdout=subprocess.DEVNULL, stderr=writes)
    os.close(writes)
    assert "NoNewPrivs:\t1" in wall, wall
    lab.wait_for("its wall", lambda: wall_of(played.pid) == wall)
    with os.fdopen(reads, "rb") as rest:
        rest.read()
    assert played.wait(PATIENCE) == 0


@test()
def a_recorded_exchange_is_judged_again_alone(lab):
    up, gw = setup(lab)
    get(lab, gw, up)  # its front runs
    recording = gw.state / "recording"
    assert gw.cli("log", "--record").rc == 2 and gw.cli("replay-exchange", "1099511627777").rc == 1
    assert gw.cli_json("log", "--trace", "agent", "--record")["recording"] == "recording"
    command, env = curl(gw, up, "/things", "-X", "POST", "--data-binary", "a=1")
    client = lab.start(command, env=env)
    ticket = gw.pending()
    gw.approve(ticket["id"])
    assert client.wait() == 0
    get(lab, gw, up, "/read")
    get(lab, gw, up, "/not-recorded", name="other")
    held, other = exchange_of(lab, gw, "/things"), exchange_of(lab, gw, "/not-recorded")
    read = exchange_of(lab, gw, "/read")
    gw.cli("log", "--trace", "", rc=0)
    assert "recording" not in gw.cli_json("log") and recording.stat().st_mode & 0o777 == 0o600
    size = recording.stat().st_size
    get(lab, gw, up, "/after")
    assert recording.stat().st_size == size
    wall = wall_of(gw.pid("judge"))
    gw.stop()  # nothing of it is needed
    done = gw.cli("replay-exchange", held, rc=0)
    said = done.out.decode()
    assert [word for word in ("REQUEST", "TICKET_OPEN", "CLAIMED", "RELEASE", "FORWARD", "RESULT", "OUTCOME") if word not in said] == [], said
    assert "all as recorded" in said and "hold: wait" in done.err.decode(), done.text()
    assert b"all as recorded" in gw.cli("replay-exchange", read, rc=0).out
    assert gw.cli("replay-exchange", held, "--debugger", "echo", rc=0).out.split()[0] == b"--args"
    confined_while_it_plays(lab, gw, held, wall)
    assert b"the exchange is not in it" in gw.cli("replay-exchange", other).err
    data = bytearray(recording.read_bytes())
    at = data.rindex(b"/things")
    data[at:at + 7] = b"/thongs"
    wrong = lab.dir / "wrong"
    wrong.write_bytes(data)
    done = gw.cli("replay-exchange", held, "--from", wrong)
    assert done.rc == 1 and b"\n! " in done.out and b"not as recorded" in done.out, done.text()
    wrong.write_bytes(data[:-3])
    assert b"its end is missing" in gw.cli("replay-exchange", held, "--from", wrong).err


@test()
def more_than_can_be_recorded_ends_the_recording_and_nothing_else(lab):
    up, gw = setup(lab, hold="inline_wait: 1s, expires: 2h")
    get(lab, gw, up)
    lab.expects("judge: the recording ends: ")
    lab.leaves("pending")
    judge = gw.pid("judge")
    body = lab.dir / "body"
    body.write_bytes(secrets.token_bytes(31 << 20))
    gw.cli("log", "--trace", "agent", "--record", rc=0)
    sent = []
    for i in range(6):
        command, env = curl(gw, up, f"/things/{i}", "-X", "POST", "-o", "/dev/null", "-w", "%{http_code}", "--data-binary", f"@{body}")
        sent.append(lab.start(command, env=env))
    assert [client.wait() for client in sent] == [0] * len(sent)
    seen = [client.seen for client in sent]  # so much at once is more than a slow disk takes in time: then one is told to come again
    assert b"403" in seen and set(seen) <= {b"403", b"503"}, seen
    gw.process.wait_line(r"the recording ends")
    assert gw.pid("judge") == judge
    assert (gw.state / "recording").stat().st_size <= 64 << 20


if __name__ == "__main__":
    main()
