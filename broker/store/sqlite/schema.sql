-- The broker's store, version 1. All ids are text (common/id.h), all times ms of Unix by the store's own clock. Every table
-- begins with the tenant, and nothing is looked up without it (but the next turn to run, which is anybody's).

CREATE TABLE tenant (
    tenant        TEXT NOT NULL PRIMARY KEY,
    served        INTEGER NOT NULL,        -- when a turn of it was taken last, as a count: who waits longest is next
    conversations INTEGER NOT NULL,
    open          INTEGER NOT NULL,        -- turns that have not ended
    keys          INTEGER NOT NULL         -- rows of chat_key
) STRICT, WITHOUT ROWID;
CREATE INDEX tenant_served ON tenant (served);
CREATE INDEX tenant_open ON tenant (served) WHERE open > 0;

CREATE TABLE conversation (
    tenant       TEXT NOT NULL,
    id           TEXT NOT NULL,
    phase        TEXT NOT NULL CHECK (phase IN ('coding', 'building', 'deploying', 'completed')),
    created_ms   INTEGER NOT NULL,
    changed_ms   INTEGER NOT NULL,
    turns        INTEGER NOT NULL,          -- so many it has had
    messages     INTEGER NOT NULL,
    log_epoch    INTEGER NOT NULL,
    log_first    INTEGER NOT NULL,          -- events log_first .. log_next - 1 are there
    log_next     INTEGER NOT NULL,
    log_bytes    INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE turn (
    tenant        TEXT NOT NULL,
    id            TEXT NOT NULL,
    conversation  TEXT NOT NULL,
    nth           INTEGER NOT NULL,         -- in the conversation
    state         TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'aside')),
    cancelled     INTEGER NOT NULL DEFAULT 0,
    ready_ms      INTEGER NOT NULL,         -- not to be taken before
    created_ms    INTEGER NOT NULL,
    started_ms    INTEGER,
    ended_ms      INTEGER,
    -- the claim
    epoch         INTEGER NOT NULL DEFAULT 0,
    worker        TEXT NOT NULL DEFAULT '',
    claimed_until INTEGER NOT NULL DEFAULT 0,
    claim_ms      INTEGER NOT NULL DEFAULT 0,
    lost          INTEGER NOT NULL DEFAULT 0, -- workers that ended since a step was settled last
    -- the budget, and what is used of it
    steps_max     INTEGER NOT NULL,
    tokens_max    INTEGER NOT NULL,
    cost_max      INTEGER NOT NULL,
    wall_max_ms   INTEGER NOT NULL,
    same_max      INTEGER NOT NULL,
    steps         INTEGER NOT NULL DEFAULT 0, -- settled
    tokens        INTEGER NOT NULL DEFAULT 0,
    cost          INTEGER NOT NULL DEFAULT 0,
    ending        TEXT NOT NULL DEFAULT '',
    why           TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX turn_nth ON turn (tenant, conversation, nth);
-- One of a conversation runs at a time; the database says so too.
CREATE UNIQUE INDEX turn_running ON turn (tenant, conversation) WHERE state = 'running';
CREATE INDEX turn_open ON turn (tenant, ready_ms) WHERE state IN ('queued', 'running');
CREATE INDEX turn_talk ON turn (tenant, conversation, nth) WHERE state IN ('queued', 'running');

-- One answer of the model and the calls in it. What is settled stays, with its checkpoint.
CREATE TABLE step (
    tenant    TEXT NOT NULL,
    turn      TEXT NOT NULL,
    n         INTEGER NOT NULL,
    state     TEXT NOT NULL CHECK (state IN ('open', 'planned', 'settled')),
    kind      TEXT NOT NULL,
    attempts  INTEGER NOT NULL,
    began_ms  INTEGER NOT NULL,
    ended_ms  INTEGER,
    answer    BLOB NOT NULL DEFAULT x'',
    message_state        BLOB NOT NULL DEFAULT x'',
    filesystem_state_ref TEXT NOT NULL DEFAULT '',
    execution_state      BLOB NOT NULL DEFAULT x'',
    effect_log           BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (tenant, turn, n)
) STRICT;

-- Written before it is run, settled once after.
CREATE TABLE tool_call (
    tenant     TEXT NOT NULL,
    turn       TEXT NOT NULL,
    step       INTEGER NOT NULL,
    ord        INTEGER NOT NULL,
    tool       TEXT NOT NULL,
    args       BLOB NOT NULL,
    class      INTEGER NOT NULL CHECK (class BETWEEN 0 AND 3), -- enum call_class: the smaller, the stricter
    key        BLOB NOT NULL,
    ending     TEXT NOT NULL CHECK (ending IN ('open', 'done', 'error', 'unknown', 'not-run')),
    result     BLOB NOT NULL DEFAULT x'',
    effect     TEXT NOT NULL DEFAULT '',
    intent_ms  INTEGER NOT NULL,
    settled_ms INTEGER,
    PRIMARY KEY (tenant, turn, step, ord)
) STRICT;
CREATE UNIQUE INDEX tool_call_key ON tool_call (tenant, key);

-- What prompts are built of.
CREATE TABLE message (
    tenant       TEXT NOT NULL,
    conversation TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    turn         TEXT NOT NULL,
    role         TEXT NOT NULL,
    body         BLOB NOT NULL,
    PRIMARY KEY (tenant, conversation, seq)
) STRICT;

-- What readers replay.
CREATE TABLE display (
    tenant       TEXT NOT NULL,
    conversation TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    turn         TEXT NOT NULL,
    epoch        INTEGER NOT NULL,          -- of the claim that wrote it
    type         TEXT NOT NULL,
    body         BLOB NOT NULL,
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (tenant, conversation, seq)
) STRICT;

CREATE TABLE chat_key (
    tenant       TEXT NOT NULL,
    key          TEXT NOT NULL,
    request      BLOB NOT NULL,             -- digest of what was asked
    conversation TEXT NOT NULL,
    turn         TEXT NOT NULL,
    log_epoch    INTEGER NOT NULL,
    log_seq      INTEGER NOT NULL,
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX chat_key_age ON chat_key (at_ms);
