-- ledger.db: what the gateway must not forget. The ledger is the only writer;
-- the desk reads it through a read-only connection (SQLite, WAL: a reader never
-- blocks the writer, but a read transaction left open keeps the log from shrinking).
--
-- Times are Unix milliseconds unless a column says boot: those are milliseconds of
-- CLOCK_BOOTTIME in the kernel boot named in meta('kernel_boot').
-- Digests, keys and hashes are 32-byte blobs; ids are the 26 characters of id_text().
-- Text that came from a sandbox is kept as it came: escape it before it is shown.
-- Bytes that are not UTF-8 are replaced by U+FFFD in *_json, and kept in the sealed bodies.
-- This is version 1; schema_2.sql is what came to it. A ledger raises user_version as it adds what is missing, and
-- refuses a file of a version it does not know.

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,   -- 'kernel_boot', 'last_ms', 'created_ms', 'boot'
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sandbox (
    name        TEXT NOT NULL PRIMARY KEY,
    session     TEXT NOT NULL,
    owner       TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    kind        TEXT NOT NULL,         -- run, token, channel, started; ended: was started
    generation  INTEGER NOT NULL,
    token_hash  BLOB,                  -- SHA-256 of the token's text, and of up to 7 older ones; or NULL
    labels_json TEXT NOT NULL,         -- {"key": "value", ...}
    created_ms  INTEGER NOT NULL,
    changed_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ticket (
    id          TEXT NOT NULL PRIMARY KEY,
    state       TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'cancelled',
                                               'executing', 'done', 'failed', 'unknown')),
    -- who asks
    sandbox     TEXT NOT NULL,
    session     TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    -- the request as it would leave, canonical; fields_json is [["name","value"], ...] in order
    method      TEXT NOT NULL,
    scheme      TEXT NOT NULL,
    host        TEXT NOT NULL,
    port        INTEGER NOT NULL,
    path        TEXT NOT NULL,
    query       TEXT,                  -- NULL: no question mark
    fields_json TEXT NOT NULL,
    head        BLOB NOT NULL,         -- the same, exact (proxy/wire.h, wire_put_request): what is sent
    body_size   INTEGER NOT NULL,      -- 0: none. The bytes: table body, sealed; the desk asks the ledger
    body_sha256 BLOB NOT NULL,
    digest      BLOB NOT NULL,         -- what an approval covers
    join_key    BLOB NOT NULL,         -- what makes a retry the same request
    -- what the judge made of it
    op          TEXT NOT NULL,
    effect      TEXT NOT NULL,
    resource    TEXT NOT NULL,
    credential  TEXT NOT NULL,         -- '' : none
    code        TEXT NOT NULL,
    rule_id     TEXT NOT NULL,
    rule_file   TEXT NOT NULL,
    rule_line   INTEGER NOT NULL,
    policy      BLOB NOT NULL,         -- digest of the policy that held it
    summary     TEXT NOT NULL,
    facts_json  TEXT NOT NULL,         -- as the judge wrote it
    agent_reason TEXT NOT NULL,        -- the agent's own word: untrusted
    approve_by  TEXT NOT NULL,         -- '' : any operator
    dialect     TEXT NOT NULL,
    reason_required INTEGER NOT NULL CHECK (reason_required IN (0, 1)),
    repeats     INTEGER NOT NULL DEFAULT 0, -- how often the same request came again
    -- its life
    created_ms  INTEGER NOT NULL,
    expires_ms  INTEGER NOT NULL,
    expires_boot_ms INTEGER NOT NULL,  -- whichever of the two comes first
    decided_ms  INTEGER,               -- approved, denied, cancelled or expired
    decided_by  TEXT NOT NULL DEFAULT '',
    decided_channel TEXT NOT NULL DEFAULT '', -- page, cli, ...
    decided_reason  TEXT NOT NULL DEFAULT '',
    claimed_ms  INTEGER,               -- approved -> executing
    boot        TEXT,                  -- with xid: the exchange that executed it
    xid         INTEGER,               -- 64 bits, two's complement
    ended_ms    INTEGER,               -- of every end state
    status      INTEGER,               -- of the upstream's answer
    bytes_out   INTEGER,
    bytes_in    INTEGER,
    delivered   INTEGER                -- 1: the client that asked took the answer
) STRICT;

-- One live ticket for each session and join key; the database says so too.
CREATE UNIQUE INDEX ticket_live ON ticket (session, join_key)
    WHERE state IN ('pending', 'approved', 'executing');
CREATE INDEX ticket_join ON ticket (session, join_key, created_ms);
CREATE INDEX ticket_open ON ticket (expires_ms) WHERE state IN ('pending', 'approved');
CREATE INDEX ticket_sandbox_open ON ticket (sandbox) WHERE state = 'pending';
CREATE INDEX ticket_state ON ticket (state, created_ms);
CREATE INDEX ticket_created ON ticket (created_ms);

-- A held request's bytes. sealed: 12 bytes nonce, ciphertext, 16 bytes tag of
-- AES-256-GCM; the additional data is "body " and the ticket's id. Deleted 24 hours
-- after the ticket ended; the ticket stays.
CREATE TABLE body (
    ticket TEXT NOT NULL PRIMARY KEY REFERENCES ticket (id) ON DELETE CASCADE,
    sealed BLOB NOT NULL
) STRICT;

-- An unsafe request's answer that nobody took, kept 10 minutes for the retry; sealed
-- as above with "answer ". Inside: wire_answer, then the body.
CREATE TABLE answer (
    ticket     TEXT NOT NULL PRIMARY KEY REFERENCES ticket (id) ON DELETE CASCADE,
    until_ms   INTEGER NOT NULL,
    until_boot_ms INTEGER NOT NULL,
    sealed     BLOB NOT NULL
) STRICT;

-- Every request with an effect: written before its first byte leaves.
CREATE TABLE effect (
    boot       TEXT NOT NULL,
    xid        INTEGER NOT NULL,
    ticket     TEXT REFERENCES ticket (id),
    state      TEXT NOT NULL           -- ORs: for an IN of so many SQLite fills a table of its own at each write
               CHECK (state = 'intent' OR state = 'sent' OR state = 'answered' OR state = 'not-sent' OR state = 'unknown'),
    sandbox    TEXT NOT NULL,
    intent_ms  INTEGER NOT NULL,
    sent_ms    INTEGER,
    ended_ms   INTEGER,
    status     INTEGER,
    PRIMARY KEY (boot, xid)
) STRICT, WITHOUT ROWID;
CREATE INDEX effect_open ON effect (intent_ms) WHERE state IN ('intent', 'sent');
CREATE INDEX effect_ticket ON effect (ticket) WHERE ticket IS NOT NULL;

-- The audit chain. hash = SHA-256(hash of seq - 1, or 32 zero bytes for seq 1; then json).
-- Only seq (it is in the JSON too) and json are covered; time_ms, kind, exchange and
-- ticket repeat what is in the JSON so that a page can look rows up.
CREATE TABLE audit (
    seq      INTEGER PRIMARY KEY,      -- 1, 2, 3 ... without gaps
    time_ms  INTEGER NOT NULL,
    kind     TEXT NOT NULL,            -- start, policy, sandbox, ticket-opened, ticket-decided,
                                       -- ticket-expired, intent, sent (if no result came
                                       -- in the same second: else it says when), freeze, thaw,
                                       -- result, denied, answer-collected, policy, note
    exchange TEXT,                     -- BOOT-XID
    ticket   TEXT,
    json     TEXT NOT NULL,
    hash     BLOB NOT NULL
) STRICT;
CREATE INDEX audit_ticket ON audit (ticket) WHERE ticket IS NOT NULL;
