#!/usr/bin/env python3
"""What else is asked before a person may approve: a program of the policy's, which can deny and never approve."""
import json
import re
import sys
from pathlib import Path

from room import Person, command, start, words
from gateway import Gateway, simple_policy
from harness import main, test

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sources"))
from programs import Programs  # noqa: E402

SCAN = """
input=$(cat); path=$(printf %s "$input" | sed 's/.*"path":"\\([^"]*\\)".*/\\1/'); printf '%s\\n' "$input" >> "$0.asked"
case "$path" in
/fine) echo '{"decision":"allow","reason":"nothing <b>found</b>"}' ;;
/virus) echo '{"decision":"deny","reason":"it carries EICAR"}' ;;
/unsure) echo '{"decision":"abstain"}' ;;
/crash) kill -9 $$ ;;
/status) echo '{"decision":"allow"}'; exit 3 ;;
/hang) while :; do :; done ;;
/nonsense) echo 'yes, sure' ;;
/much) head -c 100000 /dev/zero | tr '\\0' x ;;
/net) port=$(printf %s "$input" | sed 's/.*"port":\\([0-9]*\\).*/\\1/')
    (exec 3<>"/dev/tcp/127.0.0.1/$port" && echo reached) > "$0.net" 2>&1; echo '{"decision":"abstain"}' ;;
esac"""
FAILS = {"/crash": "ended by signal 9", "/status": "ended with status 3", "/hang": "took more than", "/nonsense": "not one JSON object",
         "/much": "printed more than"}


def setup(lab, program=None):
    up, programs = lab.upstream(), Programs(lab)
    script = program or programs.write("scan", SCAN)
    text = simple_policy(up).replace("approve: { within: 2h }", "approve: { within: 2h, gates: [scanner] }")
    text = text.replace("rules:\n", f"gates:\n  scanner: {{ program: [{script}, --strict], timeout: 25s }}\n"
                        f"  hurried: {{ program: [{script}, --strict], timeout: 2s }}\nrules:\n")
    text = text.replace("effect: [write, delete]", "method: POST")  # the one that hangs is PUT: it alone has little time
    rule = text[text.index("  - id: writes"):]
    text += rule.replace("id: writes", "id: hurried").replace("POST", "PUT").replace("[scanner]", "[hurried]")
    gw = Gateway(lab, text, {"api": lab.canary("s3cret-" + up.name * 3).encode()})
    return up, programs, gw


def waiting(lab, gw, path):
    return lab.wait_for("it waits", lambda: next((t["id"] for t in gw.tickets() if t["path"] == path and t["state"] == "pending"), None))


def gate(lab, gw, ticket):
    """What the gate of this ticket said, once it has."""
    def said():
        one = gw.cli_json("approvals", "show", ticket)["gates"][0]
        return None if one["state"] in ("due", "asked") else (one["state"], one["words"])
    return lab.wait_for("the gate has answered", said)


@test()
def a_gate_denies_or_leaves_it_to_the_people(lab):
    up, programs, gw = setup(lab)
    agent, env = command(gw, up, "/virus", "--data-binary", "a=1")
    denied = lab.run(agent, env=env)
    assert b"Denied by gate scanner: it carries EICAR" in denied.out, denied.text()
    assert up.effects() == {}
    record = gw.recorded(kind="gate-answered")[0]
    assert record["gate"] == "scanner" and record["said"] == "denied" and re.fullmatch("[0-9a-f]{64}", record["of"]), record
    asked = json.loads(Path(programs.dir / "scan.asked").read_text().splitlines()[0])
    assert (asked["method"], asked["path"], asked["effect"]) == ("POST", "/virus", "write"), asked
    assert asked["body"]["base64"] == "YT0x" and asked["body"]["complete"], asked
    alice = Person(gw, link=gw.cli_json("operator", "add", "alice")["url"])
    for path, said in (("/fine", "agreed"), ("/unsure", "abstained"), ("/net", "abstained")):
        agent = start(lab, gw, up, path, "--data-binary", "a=1")
        ticket = waiting(lab, gw, path)
        assert gate(lab, gw, ticket)[0] == said
        assert gw.show(ticket)["state"] == "pending", "a gate approves nothing"
        page = alice.get(f"/tickets/{ticket}")
        assert "Gate scanner" in words(page) and "<b>found</b>" not in page, words(page)
        assert alice.approve(ticket)[0] == 303
        agent.wait()
    assert up.effects() == {"POST /fine": 1, "POST /unsure": 1, "POST /net": 1}
    tried = Path(programs.dir / "scan.net").read_text()
    assert "/dev/tcp" in tried and "reached" not in tried and "refused" not in tried, tried


@test()
def a_gate_that_fails_is_no_yes_and_the_page_says_what_failed(lab):
    up, programs, gw = setup(lab)
    lab.leaves("pending")
    alice = Person(gw, link=gw.cli_json("operator", "add", "alice")["url"])
    agents = []
    for path, why in FAILS.items():
        name, method = ("hurried", "PUT") if path == "/hang" else ("scanner", "POST")
        agents.append(start(lab, gw, up, path, "--data-binary", "a=1", method=method))
        ticket = waiting(lab, gw, path)
        state, said = gate(lab, gw, ticket)
        assert state == "failed" and why in said, (path, state, said)
        assert gw.show(ticket)["state"] == "pending"
        page = words(alice.get(f"/tickets/{ticket}"))
        assert "did not answer: you decide without it" in page and "Why: " in page and why in page, page
        assert f"Gate        {name}: failed: ".encode() in gw.cli("approvals", "show", ticket).out
    assert up.effects() == {}
    for agent in agents:
        agent.signal(9)
        agent.wait()


main()
