#!/usr/bin/env python3
"""People with passkeys decide in a real browser: a burst together, a refund that wants a passkey over it, a payout that wants two of
them, a push that is denied in words, a grant that is used and taken back, and a write that the gateway sends after a restart.

usage: test_person.py [NAME...]      PREFIX/bin first in PATH; SHOTS=DIR keeps the screenshots
"""
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e/lab")]
from gateway import Gateway, commit, git_policy, upstream_yaml  # noqa: E402
from harness import PATIENCE, main, test  # noqa: E402
from ports import free_port  # noqa: E402
from servers import npm_modules  # noqa: E402

MODULES = npm_modules(HERE.parent / "e2e/npm") / "node_modules"
JSON = ("-H", "Content-Type: application/json", "--data-binary")
BUTTON = {"approve": "Approve this request", "deny": "Deny this request", "grant": "Approve this one and those"}


class Browser:
    """People by name, each in a browser with an authenticator of their own (person.mjs)."""

    def __init__(self, lab, gw):
        shots = os.environ.get("SHOTS") or "-"
        self.process = lab.start(["node", HERE / "person.mjs", "--link", gw.page, "--modules", MODULES, "--shots", shots],
                                 env={"PATH": os.environ["PATH"]}, stdin=subprocess.PIPE, ready=r'\{"ok":true\}\n')
        self.answered = 1

    def ask(self, who, do, **more):
        self.process.popen.stdin.write(json.dumps({"who": who, "do": do, **more}).encode() + b"\n")
        self.process.popen.stdin.flush()
        lines = self.process.wait_line(rb"(?:[^\n]*\n){%d}" % (self.answered + 1))[0].splitlines()
        self.answered += 1
        return json.loads(lines[-1])

    def __call__(self, who, do, **more):
        said = self.ask(who, do, **more)
        assert "error" not in said, (who, do, more, said["error"])
        return said.get("text")

    def decides(self, who, ticket, how, until, **fields):
        return self(who, "press", path=f"/tickets/{ticket}", button=BUTTON[how], until=until, fields=fields)


def policy(up, git):
    place = f"host: {up.name}, port: {up.port}"
    rules = "\n".join(f"""  - id: {name}
    match: {{ {place}, method: POST, path: /{name} }}{more}
    decide: hold
    use: api
    approve: {{ within: 30m, {approve} }}""" for name, approve, more in (
        ("invitations", "by: leads", ""), ("payouts", "by: two", ""), ("notes", "by: leads, grants: { uses: 20, within: 1h }", ""),
        ("reports", "by: leads", ""),
        ("refunds", "by: touched, reason: required", "\n    except: [{ form: [{ field: amount, int_lte: 5000 }] }]")))
    text = git_policy(git)
    return text.replace("credentials:\n", f"""{upstream_yaml(up.name, up.port, up.ca)}approvers:
  leads: {{ groups: [leads] }}
  touched: {{ groups: [leads], step_up: passkey }}
  two: {{ groups: [leads], quorum: 2, step_up: passkey }}
credentials:
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{{ {place} }}]
""").replace("rules:\n", f"""rules:
  - id: small-refunds
    match: {{ {place}, method: POST, path: /refunds, form: [{{ field: amount, int_lte: 5000 }}] }}
    decide: allow
    use: api
{rules}
""")


class Agent:
    """What a sandbox does: it never waits long, and comes again."""

    def __init__(self, lab, gw, up):
        self.lab, self.gw, self.up, self.known = lab, gw, up, set()

    def send(self, path, *more):
        """(status, what was said) of one request."""
        done = self.lab.run(["curl", "-sS", "--max-time", str(PATIENCE), "-w", "\n%{http_code}", *more, f"https://{self.up.name}:{self.up.port}{path}"],
                            env=self.gw.client_env(), rc=0)
        said, _, status = done.out.decode().rpartition("\n")
        return int(status), said

    def new(self):
        """The tickets that came since the last time, the oldest first."""
        found = [t["id"] for t in reversed(self.gw.tickets()) if t["id"] not in self.known]
        self.known.update(found)
        return found

    def held(self, path, *more):
        status, said = self.send(path, *more)
        ticket, = self.new()
        assert status in (403, 202), (status, said)
        return ticket


def thirty_alike(browse, agent, up):
    for n in range(30):
        agent.send("/invitations", *JSON, json.dumps({"email": f"p{n}@e.example", "role": "member" if n != 17 else "owner"}))
    first, *rest = agent.new()
    assert len(rest) == 29
    listed = browse("alice", "look", path="/")
    assert "30 alike" in listed, listed
    browse("alice", "shoot", path="/", name="list")
    browse("alice", "shoot", path=f"/groups/{first}", name="group")
    browse("alice", "press", path=f"/groups/{first}", button="Approve those picked", until="29 of 29 approved", fields={"#words": "the new team"})
    for n in (0, 16, 29):
        assert agent.send("/invitations", *JSON, json.dumps({"email": f"p{n}@e.example", "role": "member"}))[0] == 200, n
    odd, = [t["id"] for t in agent.gw.tickets()]
    browse.decides("alice", odd, "deny", "What became of it", **{"#why-no": "no owners"})
    assert up.effects() == {"POST /invitations": 3}, up.effects()


def a_refund_over_the_limit(browse, agent, up):
    assert agent.send("/refunds", "-d", "amount=5000&order=7")[0] == 200
    big = ("-d", "amount=9000&order=7")
    ticket = agent.held("/refunds", *big)
    shown = browse("alice", "look", path=f"/tickets/{ticket}")
    assert "9000" in shown, shown
    browse("alice", "shoot", path=f"/tickets/{ticket}", name="refund")
    browse("alice", "verified", yes=False)
    why = {"#why-yes": "the parcel was lost"}
    browse.decides("alice", ticket, "approve", "The passkey was not used", **why)
    assert agent.gw.show(ticket)["state"] == "pending"
    browse("alice", "verified", yes=True)
    done = browse.decides("alice", ticket, "approve", "What became of it", **why)
    assert "with their passkey over this very request" in done, done
    assert agent.send("/refunds", *big)[0] == 200
    assert up.effects()["POST /refunds"] == 2, up.effects()


def a_payout_that_wants_two(browse, agent, up):
    ticket = agent.held("/payouts", *JSON, '{"to": "acme", "sum": 100}')
    assert "2 different people" in browse("alice", "look", path=f"/tickets/{ticket}")
    browse.decides("alice", ticket, "approve", "Agreed")
    assert agent.gw.show(ticket)["state"] == "pending"
    browse("bob", "shoot", path=f"/tickets/{ticket}", name="second")
    browse.decides("bob", ticket, "approve", "What became of it")
    record, = agent.gw.recorded(kind="ticket-decided", ticket=ticket)
    assert record["by"] == "bob" and record["agreed"] == ["alice", "bob"] and record["passkey"] is True, record
    assert agent.send("/payouts", *JSON, '{"to": "acme", "sum": 100}')[0] == 200
    assert up.effects()["POST /payouts"] == 1, up.effects()


def a_push_that_is_denied(browse, agent, git, work, env):
    lab = agent.lab
    commit(lab, work, env)
    assert lab.run(["git", "-C", work, "push", "origin", "HEAD:main"], env=env).rc != 0
    ticket, = agent.new()
    browse("alice", "shoot", path=f"/tickets/{ticket}", name="push")
    browse.decides("alice", ticket, "deny", "What became of it", **{"#why-no": "wait for the release of Monday"})
    again = lab.run(["git", "-C", work, "push", "origin", "HEAD:main"], env=env)
    assert again.rc != 0 and b"wait for the release of Monday" in again.both and git.landed() == [], again.text()


def a_grant_that_is_taken_back(browse, agent, up):
    def note(n):
        return agent.send("/notes", *JSON, json.dumps({"title": f"t{n}"}))[0]
    ticket = agent.held("/notes", *JSON, '{"title": "t0"}')
    browse("alice", "press", path=f"/tickets/{ticket}", open="Approve, and the next ones like it", button=BUTTON["grant"],
           fields={"#grant-uses": "10", "#grant-minutes": "10"}, until="What became of it")
    assert [note(n) for n in (0, 1, 2)] == [200, 200, 200] and not agent.new()
    grants = browse("alice", "look", path="/grants")
    assert "8 of 10 left" in grants, grants
    browse("alice", "shoot", path="/grants", name="grants")
    browse("alice", "press", path="/grants", button="Take it back", until="taken back")
    assert note(3) == 403 and up.effects()["POST /notes"] == 3, up.effects()
    ticket, = agent.new()
    browse.decides("alice", ticket, "deny", "What became of it", **{"#why-no": "enough"})


def a_report_that_nobody_waits_for(browse, agent, up):
    """The gateway is restarted, and so is the agent: all it knows is the ticket. People sign in anew, with the same passkey."""
    lab, gw = agent.lab, agent.gw
    ticket = agent.held("/reports", "-H", "Prefer: respond-async", *JSON, '{"month": 11}')
    browse("alice", "away")
    gw.stop()
    gw.up()
    assert "Name alice" in browse("alice", "signIn")
    browse.decides("alice", ticket, "approve", "What became of it")

    def asked(end=""):
        done = lab.run(["curl", "-sS", f"http://countersign.internal/v1/tickets/{ticket}{end}"], env=gw.client_env(), rc=0)
        return json.loads(done.out) if not end else done.out
    lab.wait_for("that it was sent", lambda: asked()["state"] == "done")
    assert up.effects()["POST /reports"] == 1 and asked("/answer")
    browse("alice", "shoot", path=f"/tickets/{ticket}", name="sent")
    browse("alice", "shoot", path="/history", name="history")


@test("E1 browser", "E3 browser", "E26 browser", "E30 browser", "E36 browser")
def all_that_people_decide(lab):
    lab.leaves("approved")  # the agent does not come again for most of the thirty
    up, git = lab.upstream(), lab.git_server()
    secret = lab.canary("s3cret-" + up.name * 3)
    gw = Gateway(lab, policy(up, git), {"api": secret.encode(), "demo": f"{git.user}:{git.password}".encode()},
                 hold="inline_wait: 0s, expires: 30m", desk=f'http: "localhost:{free_port()}"')
    env, agent = gw.client_env(), Agent(lab, gw, up)
    lab.run(["git", "clone", "-q", git.url, "work"], env=env, rc=0)
    browse = Browser(lab, gw)
    for name in ("alice", "bob"):
        me = browse(name, "enroll", url=gw.cli_json("operator", "add", name, "--group", "leads")["url"])
        assert f"Name {name}" in me and "with a passkey" in me, me
    browse("alice", "shoot", path="/me", name="me")
    thirty_alike(browse, agent, up)
    a_refund_over_the_limit(browse, agent, up)
    a_payout_that_wants_two(browse, agent, up)
    a_push_that_is_denied(browse, agent, git, lab.dir / "work", env)
    a_grant_that_is_taken_back(browse, agent, up)
    a_report_that_nobody_waits_for(browse, agent, up)


main()
