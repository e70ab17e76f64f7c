-- What version 6 of the store has more than version 5 (tokens/schema_5.sql); see there.

-- What ran in started sandboxes, and what became of them around it. All of it is in the records of the audit that
-- begin_seq and end_seq name; the columns repeat what is needed to find them.
CREATE TABLE run (
    id         TEXT NOT NULL PRIMARY KEY,
    what       TEXT NOT NULL CHECK (what IN ('command','start','restore','resume','pause','checkpoint','end')),
    sandbox    TEXT NOT NULL,
    nth        INTEGER NOT NULL,           -- in the row of this sandbox
    tenant     TEXT NOT NULL,
    generation INTEGER NOT NULL,           -- of the sandbox, when it began
    command    TEXT NOT NULL,              -- what `sandbox ps` calls it, as '3.7'; '' of what is none
    state      TEXT NOT NULL CHECK (state IN ('running','ended','unknown')),
    began_ms   INTEGER NOT NULL,
    ended_ms   INTEGER,
    begin_seq  INTEGER NOT NULL,
    end_seq    INTEGER                     -- the same: one record says all of it
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX run_begin ON run (begin_seq);
CREATE UNIQUE INDEX run_sandbox ON run (sandbox, nth);
CREATE INDEX run_open ON run (sandbox) WHERE state = 'running';
CREATE INDEX run_old ON run (ended_ms) WHERE state <> 'running';
