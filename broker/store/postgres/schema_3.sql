-- Version 3: which models may see a conversation (SQLite's version 6). One of an earlier version gets it as a new one does.

ALTER TABLE countersign_broker.conversation ADD COLUMN private bytea NOT NULL DEFAULT '';
-- A broker of an earlier version that still runs cannot say it: it begins no conversation, and makes no copy that all would see.
ALTER TABLE countersign_broker.conversation ALTER COLUMN private DROP DEFAULT;
UPDATE countersign_broker.store SET version = 3;
