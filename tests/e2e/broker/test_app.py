#!/usr/bin/env python3
"""A person and an agent make an application, from an empty sandbox to a branch on a Git server: the person at a terminal, with `countersign
chat` alone. Packages come from a registry, by way of the gateway; its tests are run; each push waits until it is approved. The
conversation goes on after a restart of everything, and days later."""
import os
import re
import sqlite3
import time

import room  # noqa: F401
from brokers import Broker
from gateway import program, upstream_yaml
from harness import main, test
from models import call, text
from terminal import Terminal

DAYS = 5
QUESTION = b"\x1b[7m--- approve it? [y/N]\x1b[0m "
WHO = "git -c user.name=Agent -c user.email=agent@sandbox.invalid"
TEST = """import test from 'node:test'
import assert from 'node:assert'
import { say } from '../app.mjs'
test('it says so', () => assert.equal(say('hello'), '%s'))
"""


def packages(lab):
    registry = lab.verdaccio()
    for name, does in (("shout", "text.toUpperCase() + '!'"), ("mark", "text + '?'")):
        registry.publish(name, "1.0.0", {"package.json": f'{{"name":"{name}","version":"1.0.0","type":"module","exports":"./index.js"}}',
                                         "index.js": f"export const {name} = (text) => {does}\n"})
    return registry


def behind(registry, git):
    """A registry that is read, and a repository that is fetched and, once somebody has looked at it, pushed to."""
    at = {"npm": f"host: {registry.host}, port: {registry.port}", "git": f"host: {git.host}, port: {git.port}"}
    return {
        "packs": "packs: [npm@1, git@1]\n",
        "upstreams": upstream_yaml(registry.host, registry.port, registry.ca) + upstream_yaml(git.host, git.port, git.ca),
        "credentials": "".join(f"""  {name}:
    source: {{ store: {name} }}
    inject: {{ basic: true }}
    only: [{{ {place} }}]
""" for name, place in at.items()),
        "rules": f"""  - {{ id: packages, match: {{ {at["npm"]}, effect: read }}, decide: allow, use: npm }}
  - {{ id: fetch, match: {{ {at["git"]}, op: [git.fetch, git.fetch.refs] }}, decide: allow, use: git }}
  - {{ id: push, match: {{ {at["git"]}, op: git.push }}, decide: hold, use: git, approve: {{ within: 2h }} }}
""",
        "secrets": {"npm": f"{registry.user}:{registry.password}".encode(), "git": f"{git.user}:{git.password}".encode()}}


def push(message):
    return call("run_command", dir="app", command=f"git add -A && {WHO} commit -qm '{message}' && git push -q origin HEAD:refs/heads/app")


class Talk:
    """A person at a terminal, who talks to it. conversation: it goes on with that one."""

    def __init__(self, broker, conversation=None):
        words = [program(), "chat", *(["--conversation", conversation] if conversation else [])]
        self.at = Terminal(broker.gw.lab, words, {"COUNTERSIGN_STATE": str(broker.gw.state), "PATH": os.environ["PATH"]})
        self.at.until(b"> ")

    def ask(self, words):
        self.at.type(words.encode() + b"\n")

    def hears(self, words):
        self.at.until(b"| " + words.encode())
        self.at.until(b"\r\n> ")

    def leave(self):
        """What it is told that the conversation is."""
        self.at.type(b"\x04")
        assert self.at.end() == 0, self.at.said
        return re.search(rb"It goes on with: countersign chat --conversation (\w+)", self.at.said)[1].decode()


def began_long_ago(store, days):
    """All that a store of conversations says of times is so much longer ago: what its clock, which nobody may move for a test alone,
    says days later."""
    with sqlite3.connect(store) as db:
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for column in [c[1] for c in db.execute(f"PRAGMA table_info({table})") if re.fullmatch(r"(?!wall_max|claim)\w+_ms|claimed_until", c[1])]:
                db.execute(f"UPDATE {table} SET {column} = {column} - ? WHERE {column} > 0", (days * 86400 * 1000,))
    db.close()


def made(broker, git, registry):
    """Two turns of one talk: it is made and pushed, which is approved where the person talks; and changed, approved by the API."""
    model = broker.model
    model.script([
        dict(call("run_command", command=f"git clone -q {git.url} app"), text="I begin with what is there.", pieces=1),
        call("write_file", call("write_file", path="app/app.mjs", content="import { shout } from 'shout'\nexport const say = (text) => shout(text)\n"),
             call("write_file", path="app/test/app.test.mjs", content=TEST % "HELLO"),
             call("write_file", path="app/.gitignore", content="node_modules\n"),
             call("write_file", path="app/.npmrc", content=f"registry={registry.url}\naudit=false\nfund=false\nupdate-notifier=false\n"),
             path="app/package.json", content='{"name":"app","version":"1.0.0","type":"module","scripts":{"test":"node --test"}}\n'),
        call("run_command", dir="app", command="npm install shout@1.0.0"),
        call("run_command", dir="app", command="npm test"),
        call("edit_file", path="app/test/app.test.mjs", old="'HELLO'", new="'HELLO!'"),
        call("run_command", dir="app", command="npm test"),
        push("It shouts"),
        text("It is pushed.", pieces=1)])
    talk = Talk(broker)
    talk.ask("make an application that shouts, and push it")
    talk.at.until(b"[run_command: error]")  # its own test failed, as it was written
    talk.at.until(QUESTION)
    assert b"refs/heads/app" in talk.at.said and not git.landed(), talk.at.said
    talk.at.type(b"y\n")
    talk.hears("It is pushed.")
    failed = [failed for failed, _ in model.results()]
    assert failed == [False] * 7 + [True] + [False] * 3 and [row[2] for row in git.landed()] == ["refs/heads/app"], (model.results(), git.landed())
    assert "pass 1" in model.results()[-2][1] and "fail 1" in model.results()[7][1], model.results()

    model.script([call("edit_file", path="app/app.mjs", old="shout(text)\n", new="shout(text) + '!'\n"),
                  call("edit_file", path="app/test/app.test.mjs", old="HELLO!", new="HELLO!!"),
                  call("run_command", dir="app", command="npm test"), push("Louder"), text("It is louder.", pieces=1)])
    talk.ask("louder")
    talk.at.until(QUESTION)
    ticket = broker.gw.pending()
    status, said = broker.gw.control("POST", f"/api/v1/tickets/{ticket['id']}/approve", {"digest": ticket["digest"]})
    assert status == 200, (status, said)
    talk.at.until(b"--- it was decided elsewhere ---")
    talk.hears("It is louder.")
    assert [row[2] for row in git.landed()] == ["refs/heads/app"] * 2, git.landed()
    return talk.leave()


def goes_on(broker, git, conversation, n, words):
    """In a sandbox that is new, with what was pushed; the model is asked with all that was said."""
    model = broker.model
    model.script([call("run_command", command=f"git clone -q -b app {git.url} app && cd app && npm install"),
                  call("write_file", path="app/note", content=words),
                  call("run_command", dir="app", command="npm install mark@1.0.0 && npm test"),
                  push(words), text(words, pieces=1)])
    talk = Talk(broker, conversation)
    talk.ask(words + ", please")
    talk.at.until(QUESTION)
    talk.at.type(b"y\n")
    talk.hears(words)
    assert b"[its sandbox is a new one" in talk.at.said and talk.leave() == conversation, talk.at.said
    told = ["This ran in a new sandbox" in said for _, said in model.results()[-4:]]
    assert told == [True, False, False, False], model.results()[-4:]
    assert [failed for failed, _ in model.results()[-4:]] == [False] * 4 and "pass 1" in model.results()[-2][1], model.results()[-4:]
    assert [row[2] for row in git.landed()] == ["refs/heads/app"] * n, git.landed()
    asked = [b["text"] for m in model.asked[-1]["body"]["messages"] if m["role"] == "user" and isinstance(m["content"], list)
             for b in m["content"] if b["type"] == "text"] + [m["content"] for m in model.asked[-1]["body"]["messages"] if isinstance(m["content"], str)]
    assert asked[:2] == ["make an application that shouts, and push it", "louder"] and len(asked) == n, asked


def application(lab, **how):
    registry, git = packages(lab), lab.git_server()
    broker = Broker(lab, workers=2, lanes=True, also=behind(registry, git), **how)
    conversation = made(broker, git, registry)
    broker.gw.stop()
    broker.gw.up()
    broker.find()
    goes_on(broker, git, conversation, 3, "After a restart")
    broker.gw.stop()
    began_long_ago(next(broker.gw.state.rglob("broker.db")), DAYS)
    broker.gw.up()
    broker.find()
    seen, = broker.ask("GET", "/conversations")[1]["conversations"]
    assert time.time() - seen["changed_ms"] / 1000 > DAYS * 86400, seen
    goes_on(broker, git, conversation, 4, "Days later")
    read = [r for r in broker.gw.audit() if r["kind"] == "result" and r["path"].endswith(".tgz")]
    assert {r["sandbox"] for r in read} == {"c-" + conversation}, read
    conversations = broker.ask("GET", "/conversations")[1]["conversations"]
    assert [c["conversation_id"] for c in conversations] == [conversation], conversations


@test()
def an_application_is_made_pushed_and_gone_on_with_days_later(lab):
    application(lab)


@test()
def and_by_an_ordinary_users_gateway(lab):
    application(lab, ordinary=True)


if __name__ == "__main__":
    main()
