-- What version 12 of the store has more than version 11: who speaks to the broker, kind 'broker', in the one table of
-- tokens. The note of such a row says its scopes: {"scopes":["chat","read"]}. A CHECK cannot be changed in place.
CREATE TABLE token_12 (
    kind       TEXT NOT NULL CHECK (kind IN ('key','access','broker')),
    scope      TEXT NOT NULL,              -- the one sandbox it is good for; '': all of its tenant
    name       TEXT NOT NULL,              -- of the key it is, or came of
    tenant     TEXT NOT NULL,
    hash       BLOB,                       -- SHA-256 of its text; NULL: its key was removed
    note       TEXT NOT NULL,              -- JSON: of access, what the dock was told of the sandbox; of broker, its scopes
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, scope, name)
) STRICT, WITHOUT ROWID;
INSERT INTO token_12 SELECT kind, scope, name, tenant, hash, note, created_ms FROM token;
DROP TABLE token;
ALTER TABLE token_12 RENAME TO token;
CREATE UNIQUE INDEX token_hash ON token (hash) WHERE hash IS NOT NULL;
CREATE INDEX token_scope ON token (scope) WHERE scope <> '';
CREATE INDEX token_name ON token (name);
