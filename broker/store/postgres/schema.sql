-- The broker's store in PostgreSQL, version 1. The tables are those of SQLite's version 3; what somebody else chose as a name is
-- bytes here, since text has to be characters of the database's encoding. Times are ms of Unix by the database's clock.

CREATE SCHEMA IF NOT EXISTS countersign_broker;

-- Which program's it is; one row, made with the tables.
CREATE TABLE countersign_broker.store (
    application text NOT NULL,
    version     bigint NOT NULL,
    state       text NOT NULL CHECK (state IN ('whole', 'copying', 'moved')) -- another than whole: no broker uses it
);
INSERT INTO countersign_broker.store VALUES ('countersign-broker', 1, 'whole');

-- The last move of this store, from it or to it: one row, or none. A move that was cut off is begun anew by itself alone.
CREATE TABLE countersign_broker.move (
    id text NOT NULL PRIMARY KEY
);

-- A connection's owner, and a number that each of its changes makes one more: when the answer to a commit was lost, it is seen
-- here whether that was kept. It is the first row of each change, so whoever looks waits until it is known.
CREATE TABLE countersign_broker.writer (
    id      text NOT NULL PRIMARY KEY,
    n       bigint NOT NULL,
    seen_ms bigint NOT NULL
);

CREATE TABLE countersign_broker.tenant (
    tenant        bytea NOT NULL PRIMARY KEY,
    conversations bigint NOT NULL,
    open          bigint NOT NULL,          -- turns that have not ended
    keys          bigint NOT NULL           -- rows of chat_key
);
-- When a turn of a tenant was taken last, as a count. A row of its own: who takes turns does not wait for who asks for some.
CREATE TABLE countersign_broker.served (
    tenant bytea NOT NULL PRIMARY KEY,
    served bigint NOT NULL
);

CREATE TABLE countersign_broker.conversation (
    tenant       bytea NOT NULL,
    id           text NOT NULL COLLATE "C",
    phase        text NOT NULL CHECK (phase IN ('coding', 'building', 'deploying', 'completed')),
    created_ms   bigint NOT NULL,
    changed_ms   bigint NOT NULL,
    turns        bigint NOT NULL,           -- so many it has had
    messages     bigint NOT NULL,
    log_epoch    bigint NOT NULL,
    log_first    bigint NOT NULL,           -- events log_first .. log_next - 1 are there
    log_next     bigint NOT NULL,
    log_bytes    bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE countersign_broker.turn (
    tenant        bytea NOT NULL,
    id            text NOT NULL COLLATE "C",
    conversation  text NOT NULL COLLATE "C",
    nth           bigint NOT NULL,          -- in the conversation
    state         text NOT NULL CHECK (state IN ('queued', 'running', 'done', 'aside')),
    cancelled     bigint NOT NULL DEFAULT 0,
    ready_ms      bigint NOT NULL,          -- not to be taken before
    created_ms    bigint NOT NULL,
    started_ms    bigint,
    ended_ms      bigint,
    -- the claim
    epoch         bigint NOT NULL DEFAULT 0,
    worker        text NOT NULL DEFAULT '',
    claimed_until bigint NOT NULL DEFAULT 0,
    claim_ms      bigint NOT NULL DEFAULT 0,
    lost          bigint NOT NULL DEFAULT 0, -- workers that ended since a step was settled last
    -- the budget, and what is used of it
    steps_max     bigint NOT NULL,
    tokens_max    bigint NOT NULL,
    cost_max      bigint NOT NULL,
    wall_max_ms   bigint NOT NULL,
    same_max      bigint NOT NULL,
    steps         bigint NOT NULL DEFAULT 0, -- settled
    tokens        bigint NOT NULL DEFAULT 0,
    cost          bigint NOT NULL DEFAULT 0,
    ending        text NOT NULL DEFAULT '',
    why           bytea NOT NULL DEFAULT '',
    asked         bytea,                    -- NULL: it is among the messages, or was cancelled before
    replays       text NOT NULL DEFAULT '' COLLATE "C", -- the turn whose calls give what they gave then; '': its are its own
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX turn_nth ON countersign_broker.turn (tenant, conversation, nth);
-- One of a conversation runs at a time; the database says so too.
CREATE UNIQUE INDEX turn_running ON countersign_broker.turn (tenant, conversation) WHERE state = 'running';
CREATE INDEX turn_open ON countersign_broker.turn (tenant, ready_ms) WHERE state IN ('queued', 'running');
CREATE INDEX turn_talk ON countersign_broker.turn (tenant, conversation, nth) WHERE state IN ('queued', 'running');
CREATE INDEX turn_worker ON countersign_broker.turn (worker) WHERE state = 'running';

-- One answer of the model and the calls in it. What is settled stays, with its checkpoint.
CREATE TABLE countersign_broker.step (
    tenant    bytea NOT NULL,
    turn      text NOT NULL COLLATE "C",
    n         bigint NOT NULL,
    state     text NOT NULL CHECK (state IN ('open', 'planned', 'settled')),
    kind      bytea NOT NULL,
    home      text NOT NULL DEFAULT '',     -- the gateway whose record has its calls
    attempts  bigint NOT NULL,
    began_ms  bigint NOT NULL,
    ended_ms  bigint,
    answer    bytea NOT NULL DEFAULT '',
    message_state        bytea NOT NULL DEFAULT '',
    filesystem_state_ref bytea NOT NULL DEFAULT '',
    execution_state      bytea NOT NULL DEFAULT '',
    effect_log           bytea NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, turn, n)
);

-- Written before it is run, settled once after.
CREATE TABLE countersign_broker.tool_call (
    tenant     bytea NOT NULL,
    turn       text NOT NULL COLLATE "C",
    step       bigint NOT NULL,
    ord        bigint NOT NULL,
    tool       bytea NOT NULL,
    args       bytea NOT NULL,
    class      bigint NOT NULL CHECK (class BETWEEN 0 AND 3), -- enum call_class: the smaller, the stricter
    key        bytea NOT NULL,
    ending     text NOT NULL CHECK (ending IN ('open', 'done', 'error', 'unknown', 'not-run')),
    result     bytea NOT NULL DEFAULT '',
    effect     bytea NOT NULL DEFAULT '',
    intent_ms  bigint NOT NULL,
    settled_ms bigint,
    PRIMARY KEY (tenant, turn, step, ord)
);
CREATE UNIQUE INDEX tool_call_key ON countersign_broker.tool_call (tenant, key);

-- What prompts are built of.
CREATE TABLE countersign_broker.message (
    tenant       bytea NOT NULL,
    conversation text NOT NULL COLLATE "C",
    seq          bigint NOT NULL,
    turn         text NOT NULL,
    role         bytea NOT NULL,
    body         bytea NOT NULL,
    PRIMARY KEY (tenant, conversation, seq)
);

-- What readers replay.
CREATE TABLE countersign_broker.display (
    tenant       bytea NOT NULL,
    conversation text NOT NULL COLLATE "C",
    seq          bigint NOT NULL,
    turn         text NOT NULL,
    epoch        bigint NOT NULL,           -- of the claim that wrote it
    type         bytea NOT NULL,
    body         bytea NOT NULL,
    at_ms        bigint NOT NULL,
    PRIMARY KEY (tenant, conversation, seq)
);

CREATE TABLE countersign_broker.chat_key (
    tenant       bytea NOT NULL,
    key          bytea NOT NULL,
    request      bytea NOT NULL,            -- digest of what was asked
    conversation text NOT NULL,
    turn         text NOT NULL,
    log_epoch    bigint NOT NULL,
    log_seq      bigint NOT NULL,
    at_ms        bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX chat_key_age ON countersign_broker.chat_key (at_ms);

-- What a turn's machine heard and did (broker/replay/). An empty body: from there on nothing more of this turn was kept.
CREATE TABLE countersign_broker.recorded (
    tenant bytea NOT NULL,
    turn   text NOT NULL COLLATE "C",
    part   bigint NOT NULL,
    at_ms  bigint NOT NULL,
    body   bytea NOT NULL,
    PRIMARY KEY (tenant, turn, part)
);
CREATE INDEX recorded_age ON countersign_broker.recorded (tenant, at_ms);
-- The bytes of a tenant's recordings. A row of its own: it is locked last, behind the turn and its conversation.
CREATE TABLE countersign_broker.recorded_size (
    tenant bytea NOT NULL PRIMARY KEY,
    bytes  bigint NOT NULL
);
