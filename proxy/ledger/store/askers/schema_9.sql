-- What version 9 of the store has more than version 8 (grants/schema_8.sql); see there.

-- Of each open ticket: does a client wait for the decision? It decides what a yes does: what is waited for is sent at
-- once, anything else when the same request comes again. A ticket of before this version has none: nobody waits.
CREATE TABLE asker (
    ticket   TEXT NOT NULL PRIMARY KEY REFERENCES ticket (id) ON DELETE CASCADE,
    waits    INTEGER NOT NULL CHECK (waits IN (0, 1)),
    since_ms INTEGER NOT NULL,         -- it waits, or nobody does
    until_ms INTEGER NOT NULL          -- when it is told to ask again; 0: nobody waits, or it is not known yet
) STRICT, WITHOUT ROWID;
CREATE INDEX asker_waits ON asker (ticket) WHERE waits = 1;
