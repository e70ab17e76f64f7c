#!/usr/bin/env python3
"""Several brokers on one PostgreSQL share the turns of all conversations, and any of them serves any stream: one is killed again and
again, and the database too; every turn ends once, and every stream is whole wherever it is read.

BROKERS_MINUTES and BROKERS_CONVERSATIONS make it longer (make torture)."""
import http.client
import os
import pathlib
import re
import signal
import socket
import threading
import time

import room  # noqa: F401
from brokers import Broker, Reader
from harness import PATIENCE, main, test
from models import Gate, text
from postgres import Postgres

MINUTES = float(os.environ.get("BROKERS_MINUTES", "0"))
CONVERSATIONS = int(os.environ.get("BROKERS_CONVERSATIONS", "9"))
TURNS, KILLS, BROKERS = 2, 3, 3
PAUSE = 60  # between what one conversation is asked, in the long form, s
PROGRAM = pathlib.Path(os.environ["COUNTERSIGN_PREFIX"]) / "libexec/countersign/countersign-broker"
WORDS = "It is so, and no other way."


class Beside:
    """A lab whose gateway has a folder of its own: several of them beside each other."""

    def __init__(self, lab, name):
        self.lab, self.dir = lab, lab.dir / name
        self.dir.mkdir()

    def run(self, command, **more):
        return self.lab.run(command, **{"cwd": self.dir, **more})

    def start(self, command, **more):
        return self.lab.start(command, **{"cwd": self.dir, **more})

    def __getattr__(self, name):
        return getattr(self.lab, name)


def start(lab, postgres, n=BROKERS):
    brokers = [Broker(Beside(lab, f"gateway{i}"), workers=1, more=f', store: "{postgres.url}"') for i in range(n)]
    for broker in brokers:
        broker.model.otherwise = text(WORDS, pieces=4)
    return brokers


def kill(broker):
    """All of its processes at once."""
    broker.lab.expects(r"parent: the broker .* ended by signal 9; restarting it")
    for pid in (broker.pid(0), broker.pid(1)):
        os.kill(pid, signal.SIGKILL)


def patient(broker, message, **more):
    """Asked with a key, again and again while nobody is there; it is one turn."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            status, said = broker.ask("POST", "/chat", {"message": message, **more}, Idempotency_Key=message)
            if status == 202:
                return said
            assert status == 503, (status, said)
        except OSError:
            pass
        threading.Event().wait(0.1)
    raise AssertionError("nobody took what was asked")


def once(postgres, said):
    """Each turn ended once, in its log and in its row."""
    turns = ",".join(f"'{s['turn_id']}'" for s in said)
    rows = postgres.ask("SELECT state, ending, count(*) FROM countersign_broker.turn WHERE id IN (" + turns + ") GROUP BY 1, 2")
    assert rows == [f"done|completed|{len(said)}"], rows
    rows = postgres.ask("SELECT count(*), count(DISTINCT turn) FROM countersign_broker.display WHERE type='turn.done' AND turn IN (" + turns + ")")
    assert rows == [f"{len(said)}|{len(said)}"], rows


def read_everywhere(brokers, conversation, first):
    """The same events, from the first to the last, whoever serves them."""
    seen = []
    for broker in brokers:
        reader = Reader(broker, conversation, first)
        reader.join(PATIENCE)
        assert not reader.is_alive() and reader.whole(), reader.events
        seen.append([(e[0], e[1]["event"], e[2]) for e in reader.events])
    assert all(other == seen[0] for other in seen), seen
    return seen[0]


@test()
def three_brokers_share_all_turns_and_one_is_killed_again_and_again(lab):
    postgres = Postgres(lab)
    brokers = start(lab, postgres)
    began, broken = time.monotonic(), []
    end, over, kills = began + 60 * MINUTES, threading.Event(), [0]
    for broker in brokers if MINUTES else []:
        broker.lab.expects(r"PostgreSQL: ")

    def settled(turns):
        """None of these may lose a second worker, nor any other that has lost one: after two it is set aside."""
        ids = ",".join(f"'{turn}'" for turn in turns)
        return over.is_set() or postgres.ask(
            "SELECT count(*) FROM countersign_broker.turn WHERE state IN ('queued','running') AND (lost>0"
            + (f" OR id IN ({ids})" if ids else "") + ")") == ["0"]

    def killer():
        ran = []
        while not over.is_set() and (kills[0] < KILLS or time.monotonic() < end):
            lab.wait_for("the turns that lost a worker to go on", lambda: settled(ran))
            kill(brokers[-1])
            ran = postgres.ask("SELECT id FROM countersign_broker.turn WHERE state='running'")
            kills[0] += 1
            if MINUTES and kills[0] % 3 == 0:
                postgres.restart()
            over.wait(10 if MINUTES else 0.5)

    def talk(i, said):
        more, n = {}, 0
        while n < TURNS or (time.monotonic() < end and not over.is_set()):  # as long as somebody is killed, somebody talks
            said.append(patient(brokers[(i + n) % BROKERS], f"{i}.{n}", **more))
            more, n = {"conversation_id": said[-1]["conversation_id"]}, n + 1
            if MINUTES:
                over.wait(PAUSE)

    def guarded(run, *args):
        try:
            run(*args)
        except BaseException as e:  # a thread that ended is a test that failed
            broken.append(repr(e))
            over.set()

    threads, talks = [threading.Thread(target=guarded, args=(killer,))], [[] for _ in range(CONVERSATIONS)]
    threads += [threading.Thread(target=guarded, args=(talk, i, talks[i])) for i in range(CONVERSATIONS)]
    for thread in threads:
        thread.start()
    for thread in threads[1:]:
        thread.join()
    live = [brokers[i % BROKERS].read(said[0]) for i, said in enumerate(talks)]
    for reader in live:
        reader.until("turn.done", len(talks[live.index(reader)]))
        reader.whole()
    if not MINUTES:
        threads[0].join()
    over.set()
    threads[0].join()
    assert kills[0] >= KILLS
    assert not broken, broken
    print(f"# {kills[0]} kills, {CONVERSATIONS} conversations, {time.monotonic() - began:.0f} s")
    once(postgres, [turn for said in talks for turn in said])
    for said in talks[:5]:
        events = read_everywhere(brokers, said[0]["conversation_id"], said[0]["last_event_id"])
        assert [e[0] for e in events].count("turn.done") == len(said)


@test()
def a_database_that_is_killed_loses_and_doubles_nothing(lab):
    postgres = Postgres(lab)
    brokers = start(lab, postgres, 2)
    said = []
    for n in range(4):
        said.append(patient(brokers[n % 2], f"before {n}"))
        lab.expects(r"PostgreSQL: ")
        postgres.restart()
        said.append(patient(brokers[n % 2], f"after {n}"))
    for turn in said:
        reader = brokers[0].read(turn)
        reader.until("turn.done", end="completed")
        reader.whole()
    once(postgres, said)


@test()
def a_database_that_is_away_ends_no_gateway(lab):
    postgres = Postgres(lab)
    postgres.stop()
    lab.expects(r"PostgreSQL: ")
    broker = start(lab, postgres, 1)[0]
    assert broker.ask("POST", "/chat", {"message": "nobody is there"})[0] == 503
    postgres.start()
    broker.done(patient(broker, "now"))


@test()
def who_waits_for_the_database_holds_up_nobody_else(lab):
    postgres = Postgres(lab)
    broker = start(lab, postgres, 1)[0]
    first = patient(broker, "first")
    broker.done(first)

    released = threading.Event()

    def chat(n):
        try:
            while broker.ask("POST", "/chat", {"message": f"second {n}"})[0] == 503 and not released.is_set():
                pass  # it has waited as long as a chat does
        except (OSError, http.client.HTTPException):
            pass  # the test is over

    def waiting():
        return set(postgres.ask("SELECT pid, xact_start FROM pg_stat_activity WHERE wait_event_type='Lock'"
                                " AND application_name='countersign-broker'"))

    def served_meanwhile():
        """What is read is read while one and the same change waits; each waits for some seconds, so a slow machine tries again."""
        before = waiting()
        reader = Reader(broker, first["conversation_id"], first["last_event_id"])
        reader.until("turn.done", end="completed")
        assert broker.ask("GET", "/nowhere")[0] == 404
        return bool(before & waiting())

    # What a chat needs is somebody else's for a while; what is read needs nothing of it.
    lab.start([*postgres.drop, "psql", "-h", str(postgres.dir), "-U", "broker", "-d", "postgres", "-c",
               "BEGIN", "-c", "SELECT 'taken' FROM countersign_broker.tenant FOR UPDATE", "-c", "SELECT pg_sleep(600)"],
              cwd=postgres.dir, ready="taken")
    waits = [threading.Thread(target=chat, args=(n,), daemon=True) for n in range(4)]
    for thread in waits:
        thread.start()
    lab.wait_for("chats that wait", lambda: len(waiting()) >= 2)
    lab.wait_for("something to be served meanwhile", served_meanwhile)
    assert all(thread.is_alive() for thread in waits)
    released.set()
    postgres.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query='SELECT pg_sleep(600)'")
    for thread in waits:
        thread.join()


@test()
def one_gateway_serves_and_another_runs_turns_and_either_is_killed(lab):
    """What a part does not do is done by the other, or refused in words; where nobody does it, that is said."""
    refused = lab.run([PROGRAM, "--only", "stream,model"], rc=2).err.decode()
    assert "model is no process of its own" in refused, refused
    assert "say `broker: { only: [turn] }`" in lab.run([PROGRAM, "--only", "turn"], rc=2).err.decode()
    postgres = Postgres(lab)
    serves, runs = (Broker(Beside(lab, only), only=only, workers=1, more=f', store: "{postgres.url}"') for only in ("stream", "turn"))
    assert (serves.does(), runs.does()) == (["stream"], ["turn"])
    assert b"runs no turns (only: stream)" in serves.gw.process.seen and b"runs turns, 1 at once, and serves nobody" in runs.gw.process.seen
    assert b"no broker serves here" in runs.gw.cli("usage").err
    serves.lab.expects(r"parent: the broker .* ended by signal 9; restarting it")

    def killed(pid_of, worker):
        """Its turn is asked, and in the middle of the answer this process ends."""
        gate = Gate(text(WORDS, pieces=4))
        runs.model.script([gate, text(WORDS, pieces=4)])
        reader = serves.read(serves.chat("how is it?"))
        reader.until("turn.started")
        assert gate.reached.wait(PATIENCE)
        pid = pid_of.pid(worker)
        os.kill(pid, signal.SIGKILL)
        lab.wait_for("another process in its place", lambda: pid_of.pid(worker) != pid)
        if worker == 0:
            gate.go.set()
        reader.until("turn.done", end="completed")
        gate.go.set()
        reader.whole()
        return reader.names().count("turn.started")

    assert killed(serves, 0) == 1
    assert killed(runs, 1) == 2
    runs.gw.stop()
    waits = serves.chat("is anybody there?")
    serves.lab.expects("broker: no process runs turns: 1 waits since")
    found = lab.wait_for("it to be said that nobody runs turns", lambda: (lambda h: None if h["ok"] else h)(serves.ask("GET", "/health")[1]))
    assert found == {"ok": False, "does": "stream", "problem": "no process runs turns"}, found
    assert serves.ask("POST", f"/turns/{waits['turn_id']}/cancel")[0] == 202
    assert serves.ask("GET", "/health")[1]["ok"]

    # A newer release has made more of the tables: what runs goes on, what is started is refused, and says which release it needs.
    postgres.ask("UPDATE countersign_broker.store SET version=version+1")
    assert serves.ask("GET", "/turns/" + waits["turn_id"])[0] == 200
    words = r"has version \d+, and this program is of version \d+: install the release that made it"
    serves.lab.expects(r"broker: the broker's store cannot be used: .*" + words)
    os.kill(serves.pid(0), signal.SIGKILL)
    serves.gw.process.wait_line(words)
    serves.pid(0)
    assert serves.ask("GET", "/turns/" + waits["turn_id"])[0] == 503
    with socket.socket(socket.AF_UNIX) as own:
        own.connect(str(serves.gw.state) + "/broker.sock")
        own.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b" 503 " in (said := own.makefile("rb").read()) and re.search(words, said.decode()), said


if __name__ == "__main__":
    main()
