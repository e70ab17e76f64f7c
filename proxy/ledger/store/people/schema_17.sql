-- What version 17 of the store has more than version 16 (schema_16.sql); see there.

-- Of open tickets: who says that they are looking at it. A word to the others, for a while: it decides nothing.
CREATE TABLE looking (
    ticket         TEXT NOT NULL PRIMARY KEY REFERENCES ticket (id) ON DELETE CASCADE,
    looker         TEXT NOT NULL,      -- as decided_by
    looks_since_ms INTEGER NOT NULL,
    looks_until_ms INTEGER NOT NULL    -- nobody does from then on; nor before looks_since_ms, should the clock go back
) STRICT, WITHOUT ROWID;
