-- What version 14 of the store has more than version 13 (askers/schema_13.sql); see there.

-- What people are told outside the page (notify: of countersign.yaml): one row a message and who is told it, written
-- in the turn in which it happened, sent until it is told or given up.
CREATE TABLE tell (
    id      TEXT PRIMARY KEY,          -- webhook-id: the same at each try
    target  TEXT NOT NULL,             -- a name of notify:
    of      BLOB NOT NULL CHECK (length(of) = 32), -- SHA-256 of what the configuration said of it
    event   TEXT NOT NULL,             -- ticket.waiting, ..., or many: in place of those that came too fast
    ticket  TEXT NOT NULL,             -- '' where it is of none
    sandbox TEXT NOT NULL,             -- whose message it is, and who is charged for it; '': the operator's
    state   TEXT NOT NULL CHECK (state IN ('due', 'told', 'given-up')),
    title   TEXT NOT NULL,
    body    TEXT NOT NULL,             -- as it is sent; '' of many until its first try, and when it is told
    count   INTEGER NOT NULL,          -- of many: how many messages it stands for
    at_ms   INTEGER NOT NULL,
    tries   INTEGER NOT NULL,
    next_ms INTEGER NOT NULL,          -- not before that
    ended_ms INTEGER NOT NULL,         -- told or given up; 0
    words   TEXT NOT NULL              -- of the last try: what was answered, or why it failed
) STRICT, WITHOUT ROWID;
CREATE INDEX tell_target ON tell (target, state, next_ms);
CREATE INDEX tell_at ON tell (target, at_ms);
