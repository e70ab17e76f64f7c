-- Version 3: which models may see a conversation (SQLite's version 6). One of an earlier version gets it as a new one does.

ALTER TABLE countersign_broker.conversation ADD COLUMN private bytea NOT NULL DEFAULT '';
UPDATE countersign_broker.store SET version = 3;
