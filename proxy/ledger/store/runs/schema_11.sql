-- What version 11 of the store has more than version 10 (people/schema_10.sql); see there.

-- What a command sent by the lane of its sandbox, as the audit's records say it by its step: also when it has ended and
-- something that it started goes on.
ALTER TABLE run ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;   -- of which the outcome is written
ALTER TABLE run ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN bytes_out INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN bytes_in INTEGER NOT NULL DEFAULT 0;
CREATE INDEX run_step ON run (sandbox, command) WHERE what = 'command';
CREATE TABLE run_effect (
    run      TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    exchange TEXT NOT NULL,
    sent     INTEGER NOT NULL CHECK (sent IN (0, 1)),
    lease    TEXT NOT NULL,            -- that it was sent with; '': none
    PRIMARY KEY (run, exchange)
) STRICT, WITHOUT ROWID;
