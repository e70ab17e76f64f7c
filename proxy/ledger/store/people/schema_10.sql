-- What version 10 of the store has more than version 9 (askers/schema_9.sql); see there.

-- The people who decide. Their passkeys are the keeper's.
CREATE TABLE operator (
    name       TEXT NOT NULL PRIMARY KEY,  -- a-z 0-9 . _ - @
    uid        TEXT UNIQUE,                -- "uid 1000": the user of this machine who is this person too; or NULL
    groups     TEXT NOT NULL,              -- in order, a space between; ''
    password   TEXT NOT NULL,              -- as crypt(3) made it; '': none
    generation INTEGER NOT NULL,           -- raised when the password changes: who had signed in before is out
    created_ms INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who decided on a ticket, and how. Of one that needs several there is a row for each before it is decided.
CREATE TABLE vote (
    ticket   TEXT NOT NULL REFERENCES ticket (id) ON DELETE CASCADE,
    operator TEXT NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('approved', 'denied', 'cancelled')),
    channel  TEXT NOT NULL,
    how      TEXT NOT NULL,                -- passkey, password, link, oidc, socket: how they had signed in; ''
    reason   TEXT NOT NULL,
    facts    BLOB,                         -- SHA-256 of the facts that were shown (wire_facts_digest); NULL: not said
    passkey  BLOB,                         -- what their passkey signed over these; NULL: nothing
    at_ms    INTEGER NOT NULL,
    PRIMARY KEY (ticket, operator)
) STRICT, WITHOUT ROWID;

-- How many must agree, and who counts (struct wire_people).
ALTER TABLE ticket ADD COLUMN quorum INTEGER NOT NULL DEFAULT 1;
ALTER TABLE ticket ADD COLUMN self_approval INTEGER NOT NULL DEFAULT 1;
ALTER TABLE ticket ADD COLUMN step_up INTEGER NOT NULL DEFAULT 0;
-- Whose sandbox it came from, also when that is no more or is another one's by now; '': nobody's.
ALTER TABLE ticket ADD COLUMN owner TEXT NOT NULL DEFAULT '';
