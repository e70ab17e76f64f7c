-- What version 7 of the store has more than version 6 (schema_6.sql); see there.

-- A task is a run, too. The table is made anew, for a check cannot be changed.
CREATE TABLE run_7 (
    id         TEXT NOT NULL PRIMARY KEY,
    what       TEXT NOT NULL CHECK (what IN ('command','task','start','restore','resume','pause','checkpoint','end')),
    sandbox    TEXT NOT NULL,
    nth        INTEGER NOT NULL,
    tenant     TEXT NOT NULL,
    generation INTEGER NOT NULL,
    command    TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('running','ended','unknown')),
    began_ms   INTEGER NOT NULL,
    ended_ms   INTEGER,
    begin_seq  INTEGER NOT NULL,
    end_seq    INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO run_7 SELECT id,what,sandbox,nth,tenant,generation,command,state,began_ms,ended_ms,begin_seq,end_seq FROM run;
DROP TABLE run;
ALTER TABLE run_7 RENAME TO run;
CREATE UNIQUE INDEX run_begin ON run (begin_seq);
CREATE UNIQUE INDEX run_sandbox ON run (sandbox, nth);
CREATE INDEX run_open ON run (sandbox) WHERE state = 'running';
CREATE INDEX run_old ON run (ended_ms) WHERE state <> 'running';

-- Bytes that records name by their digest, so that a run can be made again: of one tenant each, and sealed.
CREATE TABLE blob (
    tenant  TEXT NOT NULL,
    sha256  BLOB NOT NULL,                 -- of the bytes
    used_ms INTEGER NOT NULL,              -- when a record last named it
    size    INTEGER NOT NULL,              -- what it counts for (runs/runs.h)
    sealed  BLOB NOT NULL,
    PRIMARY KEY (tenant, sha256)
) STRICT;
CREATE INDEX blob_used ON blob (tenant, used_ms, size);
CREATE INDEX blob_old ON blob (used_ms);
