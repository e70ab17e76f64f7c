-- Version 2: what models were asked and what that took (SQLite's version 5). One that is of version 1 gets it as a new one does.

CREATE TABLE countersign_broker.usage (
    tenant       bytea NOT NULL,
    day          bigint NOT NULL,
    conversation text NOT NULL COLLATE "C",
    model        bytea NOT NULL,
    task         bytea NOT NULL,
    asked        bigint NOT NULL,
    input        bigint NOT NULL,
    output       bigint NOT NULL,
    cache_read   bigint NOT NULL,
    cache_write  bigint NOT NULL,
    cost         bigint NOT NULL,
    PRIMARY KEY (tenant, day, conversation, model, task)
);
CREATE INDEX usage_talk ON countersign_broker.usage (tenant, conversation, day, model, task);
UPDATE countersign_broker.store SET version = 2;
