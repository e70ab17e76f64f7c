#!/usr/bin/env python3
"""The audit as evidence (attacks.tsv E43): a column that is printed or filtered by says what the hashed text says, and
signed heads show a chain that was written anew from somewhere on. Whoever writes to the store here does so by hand."""
import contextlib
import hashlib
import sqlite3

from gateway import Gateway, simple_policy
from harness import main, test


def setup(lab):
    up = lab.upstream("upstream.test")
    gw = Gateway(lab, simple_policy(up), {"api": lab.canary("audit-canary-value").encode()}, hold="inline_wait: 0s, expires: 2h")
    lab.leaves("pending", "approved")
    for path in ("/one", "/two"):
        lab.run(["curl", "-s", "-X", "POST", "-d", "x", f"https://upstream.test:{up.port}{path}"], env=gw.client_env(), rc=0)
    gw.approve(gw.pending(2)[0]["id"])
    gw.stop()  # what is there is signed when it ends
    gw.up()
    return gw


def rows(gw, sql, *values):
    with contextlib.closing(sqlite3.connect(gw.state / "store" / "ledger.db", timeout=20)) as db, db:
        return db.execute(sql, values).fetchall()


def verify(gw, *words):
    done = gw.cli("audit", "verify", *words)
    return done.rc, done.text()


@test("E43 files", "E32 files")
def a_column_that_is_not_what_its_text_says_is_named(lab):
    gw = setup(lab)
    rc, said = verify(gw)
    assert rc == 0 and "unbroken" in said and "Signed up to record" in said, said
    seq, = rows(gw, "SELECT max(seq) FROM audit WHERE ticket IS NOT NULL")[0]
    for column, value in (("kind", "note"), ("kind", ""), ("time_ms", 1), ("ticket", "0" * 26), ("ticket", None), ("exchange", "boot-1")):
        was, = rows(gw, f"SELECT {column} FROM audit WHERE seq=?", seq)[0]
        rows(gw, f"UPDATE audit SET {column}=? WHERE seq=?", value, seq)
        rc, said = verify(gw)
        name = column.removesuffix("_ms")
        assert rc == 1 and f"record {seq}" in said and f"its column {name} " in said, (column, value, said)
        rows(gw, f"UPDATE audit SET {column}=? WHERE seq=?", was, seq)
    assert verify(gw)[0] == 0
    kept = rows(gw, "SELECT * FROM audit WHERE seq IN (2, 3)")
    for change in ("UPDATE audit SET json=replace(json, 'time', 'tide') WHERE seq=2", "UPDATE audit SET hash=zeroblob(32) WHERE seq=2",
                   "DELETE FROM audit WHERE seq=2", "UPDATE audit SET seq=-2 WHERE seq=3; UPDATE audit SET seq=3 WHERE seq=2; UPDATE audit SET seq=2 WHERE seq=-2"):
        for one in change.split(";"):
            rows(gw, one)
        rc, said = verify(gw)
        assert rc == 1 and "the chain is broken at record" in said, (change, said)
        rows(gw, "DELETE FROM audit WHERE seq IN (2, 3)")
        for row in kept:
            rows(gw, f"INSERT INTO audit VALUES({','.join('?' * len(row))})", *row)
    assert verify(gw)[0] == 0


@test("E43 files")
def a_chain_that_was_written_anew_is_seen_by_its_signatures(lab):
    gw = setup(lab)
    key = gw.cli_json("audit", "verify")["key"]
    assert gw.cli_json("audit", "verify", "--key", key)["signed"] > 3
    rc, said = verify(gw, "--key", "ab" * 32)
    assert rc == 1 and "signed with another key" in said and key in said, said
    assert verify(gw, "--key", "ab")[0] == 2
    before = rows(gw, "SELECT seq, json, hash FROM audit ORDER BY seq")
    last, at = b"\0" * 32, 3
    for seq, text, _ in before:  # every hash fits again
        if seq == at:
            text = text.replace('"kind":"', '"kind":"', 1)[:-1] + ',"extra":"nobody wrote this"}'
        last = hashlib.sha256(last + text.encode()).digest()
        rows(gw, "UPDATE audit SET json=?, hash=? WHERE seq=?", text, last, seq)
    rc, said = verify(gw)
    assert rc == 1 and "its signature does not fit" in said, said
    for seq, text, old in before:
        rows(gw, "UPDATE audit SET json=?, hash=? WHERE seq=?", text, old, seq)
    assert verify(gw)[0] == 0
    signed = rows(gw, "SELECT seq, key, signature FROM checkpoint ORDER BY seq")
    rows(gw, "UPDATE checkpoint SET signature=zeroblob(64) WHERE seq=?", signed[0][0])
    rc, said = verify(gw)
    assert rc == 1 and f"record {signed[0][0]}: its signature does not fit" in said, said
    rows(gw, "UPDATE checkpoint SET signature=? WHERE seq=?", signed[0][2], signed[0][0])
    end = before[-1][0] + 1000
    rows(gw, "INSERT INTO checkpoint VALUES(?, 1, ?, ?)", end, *signed[0][1:])
    rc, said = verify(gw)
    assert rc == 1 and "its tail was cut" in said, said
    rows(gw, "DELETE FROM checkpoint WHERE seq=?", end)
    gw.stop()
    gw.up()  # the key is the gateway's, not the process's
    assert gw.cli_json("audit", "verify")["key"] == key


main()
