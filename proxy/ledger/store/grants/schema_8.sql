-- What version 8 of the store has more than version 7 (runs/schema_7.sql); see there.

-- What a held request has in common with others that one grant may cover (proxy/judge/tickets/shape.h).
ALTER TABLE ticket ADD COLUMN shape BLOB;                           -- NULL: no grant covers it
ALTER TABLE ticket ADD COLUMN shape_json TEXT NOT NULL DEFAULT '';  -- in words, as the judge wrote it
ALTER TABLE ticket ADD COLUMN generation INTEGER;                   -- of its sandbox, when it was held
ALTER TABLE ticket ADD COLUMN grant_uses INTEGER NOT NULL DEFAULT 0;      -- at most so many may be granted with it,
ALTER TABLE ticket ADD COLUMN grant_within_ms INTEGER NOT NULL DEFAULT 0; -- for so long
ALTER TABLE ticket ADD COLUMN grant_id TEXT;                        -- by which it was approved; NULL: by none

-- Approvals that cover more than one request. All that binds one was copied of the ticket it was given with.
CREATE TABLE grants (
    id          TEXT NOT NULL PRIMARY KEY,
    ticket      TEXT NOT NULL REFERENCES ticket (id),
    sandbox     TEXT NOT NULL,
    session     TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    generation  INTEGER NOT NULL,
    shape       BLOB NOT NULL,
    terms       BLOB NOT NULL,
    policy      BLOB NOT NULL,             -- digest: another policy, and it fits nothing
    credential  TEXT NOT NULL,
    host        TEXT NOT NULL,
    port        INTEGER NOT NULL,
    uses_max    INTEGER NOT NULL,
    uses        INTEGER NOT NULL DEFAULT 0 CHECK (uses BETWEEN 0 AND uses_max),
    state       TEXT NOT NULL CHECK (state IN ('live','used','expired','revoked','ended')),
    created_ms  INTEGER NOT NULL,
    expires_ms  INTEGER NOT NULL,
    expires_boot_ms INTEGER NOT NULL,      -- whichever of the two comes first
    granted_by  TEXT NOT NULL,
    channel     TEXT NOT NULL,
    reason      TEXT NOT NULL,
    ended_ms    INTEGER,
    how         TEXT NOT NULL DEFAULT ''   -- why it ended
) STRICT;
CREATE INDEX grants_live ON grants (session, shape) WHERE state = 'live';
CREATE INDEX grants_sandbox ON grants (sandbox) WHERE state = 'live';
CREATE INDEX grants_created ON grants (created_ms);
