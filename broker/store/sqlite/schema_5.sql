-- Version 5: what models were asked and what that took, by day (of UTC, from 1970-01-01), conversation, model and task. Each row
-- stands for at least one question of a step that is kept: there are never more of them than of questions.

CREATE TABLE usage (
    tenant       TEXT NOT NULL,
    day          INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    model        TEXT NOT NULL,             -- as conf/models.yaml called it
    task         TEXT NOT NULL,
    asked        INTEGER NOT NULL,          -- so often
    input        INTEGER NOT NULL,          -- tokens, as the three below; each sum stands still at the largest number
    output       INTEGER NOT NULL,
    cache_read   INTEGER NOT NULL,
    cache_write  INTEGER NOT NULL,
    cost         INTEGER NOT NULL,          -- millionths
    PRIMARY KEY (tenant, day, conversation, model, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_talk ON usage (tenant, conversation, day, model, task);
