-- What version 5 of the store has more than version 4 (schema_4.sql); see there.

-- Who may speak to the dock. kind: 'key', what an operator issued to a platform; 'access', what lets who holds that key
-- into one sandbox.
CREATE TABLE token (
    kind       TEXT NOT NULL CHECK (kind IN ('key','access')),
    scope      TEXT NOT NULL,              -- the one sandbox it is good for; '': all of its tenant
    name       TEXT NOT NULL,              -- of the key it is, or came of
    tenant     TEXT NOT NULL,
    hash       BLOB,                       -- SHA-256 of its text; NULL: its key was removed
    note       TEXT NOT NULL,              -- JSON, what the dock was told of the sandbox when it was started; or ''
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, scope, name)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX token_hash ON token (hash) WHERE hash IS NOT NULL;
CREATE INDEX token_scope ON token (scope) WHERE scope <> '';
CREATE INDEX token_name ON token (name);
