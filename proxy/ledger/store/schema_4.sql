-- What version 4 of the store has more than version 3 (schema_3.sql); see there.

-- Leases (common/lease/wire_lease.h): texts in the form of a credential that mean something to this gateway alone. The text is
-- nowhere here: the keeper derives it from the id, and what is kept is its digest.
CREATE TABLE lease (
    id          TEXT PRIMARY KEY,
    parent      TEXT REFERENCES lease(id), -- that it came from; NULL: none
    sandbox     TEXT NOT NULL,
    session     TEXT NOT NULL,
    generation  INTEGER NOT NULL,          -- of the sandbox, when it was issued
    credential  TEXT NOT NULL,
    meaning     BLOB NOT NULL,             -- of the credential: SHA-256 (proxy/identity.h)
    format      TEXT NOT NULL,             -- common/lease/lease.h
    tag         TEXT NOT NULL,
    text_sha256 BLOB NOT NULL UNIQUE,
    layers      BLOB NOT NULL,             -- what it is good for (wire_put_layers)
    state       TEXT NOT NULL CHECK (state IN ('live','expired','revoked','leaked')),
    created_ms  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    expires_ms  INTEGER NOT NULL,
    ended_ms    INTEGER,
    how         TEXT NOT NULL DEFAULT ''   -- why it ended
) STRICT;
CREATE INDEX lease_live ON lease(sandbox) WHERE state='live';
CREATE INDEX lease_due ON lease(expires_ms) WHERE state='live';
CREATE INDEX lease_parent ON lease(parent) WHERE parent IS NOT NULL;

-- Its writes are stopped, for a lease of its own was used elsewhere or it used another one's; why. NULL: they are not.
ALTER TABLE sandbox ADD COLUMN frozen TEXT;
