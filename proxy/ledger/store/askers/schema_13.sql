-- What version 13 of the store has more than version 12 (gates/schema_12.sql); see there.

-- Open tickets whose client wants no connection to wait (Prefer: respond-async): once they are approved the gateway
-- sends them itself. A row goes with the end of its ticket.
CREATE TABLE later (
    ticket   TEXT NOT NULL PRIMARY KEY REFERENCES ticket (id) ON DELETE CASCADE,
    lease    BLOB,                     -- the id of the lease that it was asked with; NULL: with none
    narrowed BLOB NOT NULL,            -- the layers that its holder had added to it (common/lease/narrowed.h)
    tries    INTEGER NOT NULL,         -- how often it was to be sent, and provably was not
    told     INTEGER NOT NULL,         -- how often the judge was told of it since a judge came, a thaw, or such a try
    next_ms  INTEGER NOT NULL          -- of CLOCK_BOOTTIME: the judge is told of it again from then on
) STRICT, WITHOUT ROWID;
