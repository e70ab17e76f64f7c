-- What version 12 of the store has more than version 11 (runs/schema_11.sql); see there.

-- What is asked of a ticket before a person may approve it (gates: of the policy), each once.
CREATE TABLE gate (
    ticket TEXT NOT NULL REFERENCES ticket (id) ON DELETE CASCADE,
    name   TEXT NOT NULL,
    state  TEXT NOT NULL CHECK (state IN ('due', 'asked', 'agreed', 'denied', 'abstained', 'failed')),
    words  TEXT NOT NULL,              -- what it said, or why it said nothing; ''
    at_ms  INTEGER NOT NULL,           -- it is in this state since then
    of     BLOB NOT NULL CHECK (length(of) = 32), -- SHA-256 of what the ticket's policy means by name
    tries  INTEGER NOT NULL,           -- how often it could not be asked
    next_ms INTEGER NOT NULL,          -- and when it may be again; 0
    PRIMARY KEY (ticket, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX gate_state ON gate (state, at_ms);
