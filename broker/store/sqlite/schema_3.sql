-- Version 3: what a turn's machine heard and did, so that the run can be gone through again (broker/replay/). An empty body: from
-- there on nothing more of this turn was kept.

ALTER TABLE turn ADD COLUMN replays TEXT NOT NULL DEFAULT ''; -- the turn whose calls give what they gave then; '': its are its own
ALTER TABLE tenant ADD COLUMN recorded INTEGER NOT NULL DEFAULT 0; -- bytes of its recordings

CREATE TABLE recorded (
    tenant TEXT NOT NULL,
    turn   TEXT NOT NULL,
    part   INTEGER NOT NULL,
    at_ms  INTEGER NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (tenant, turn, part)
) STRICT;
CREATE INDEX recorded_age ON recorded (tenant, at_ms);
