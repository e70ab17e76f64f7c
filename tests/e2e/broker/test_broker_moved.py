#!/usr/bin/env python3
"""Conversations go on in another database: `countersign-broker migrate` from SQLite to PostgreSQL and back."""
import os
import pathlib

import room  # noqa: F401
from brokers import Broker
from harness import main, test
from models import text
from postgres import Postgres

PROGRAM = pathlib.Path(os.environ["COUNTERSIGN_PREFIX"]) / "libexec/countersign/countersign-broker"


def tables(done):
    """What was counted and digested of each table."""
    return {line.split()[0]: line.split()[1:] for line in done.out.decode().splitlines() if " sha256 " in line}


@test()
def conversations_go_on_in_another_database_and_come_back(lab):
    postgres = Postgres(lab)
    broker = Broker(lab, workers=1)
    broker.model.otherwise = text("It is so.")
    config = broker.gw.config
    here, file = config.read_text(), broker.gw.state / "broker/broker.db"
    secret = lab.canary("p" * 40)
    password = lab.dir / "password"
    password.write_text(secret)
    password.chmod(0o600)

    def migrate(*words, rc=0):
        # What the library would take from the environment counts for nothing: this server has no channel binding.
        return lab.run([PROGRAM, "migrate", *words], env={"PGCHANNELBINDING": "require"}, rc=rc)

    def asked(n, **more):
        said = broker.chat(f"question {n}", **more)
        broker.done(said)
        return said

    first = asked(1)
    talk = {"conversation_id": first["conversation_id"]}
    there, back = f"sqlite:{file}", postgres.url
    assert "in use" in migrate(there, back, rc=1).text()
    broker.gw.stop()
    assert "usage" in migrate(there, rc=2).text()
    assert "password has no place" in migrate(there, back.replace("broker@", "broker:word@"), rc=1).text()
    dry = migrate("--dry-run", there, back)
    assert "nothing was changed" in dry.text()
    assert not postgres.ask("SELECT 1 FROM pg_namespace WHERE nspname='countersign_broker'")
    moved = migrate("--to-password", password, there, back)
    assert tables(moved) == tables(dry) and len(tables(moved)) == 10, moved.text()
    assert "moved before" in migrate(there, back, rc=1).text()
    assert "moved before" in migrate(there, f"sqlite:{file}.new", rc=1).text()  # two that go on with it double each call
    assert not file.with_name("broker.db.new").exists()
    config.write_text(here.replace(", workers: 1", f', workers: 1, store: "{postgres.url}"'))
    broker.gw.up()
    broker.find()
    asked(2, **talk)
    assert "in use" in migrate(back, f"sqlite:{file}.new", rc=1).text()
    broker.gw.stop()
    assert "left of one that was moved" in migrate(back, there, rc=1).text()
    file.rename(file.with_name("before.db"))
    migrate(back, there)
    config.write_text(here)
    broker.gw.up()
    broker.find()
    asked(3, **talk)
    status, said = broker.ask("GET", f"/conversations/{first['conversation_id']}/history")
    assert status == 200 and [m["message"]["blocks"][0]["text"] for m in said["messages"]] == [
        words for n in (1, 2, 3) for words in (f"question {n}", "It is so.")], said
    reader = broker.read(first)
    reader.until("turn.done", 3, end="completed")
    reader.whole()
    password.unlink()  # it may be nowhere else


if __name__ == "__main__":
    main()
