-- Version 6: which models may see a conversation, by their names in conf/models.yaml, each on a line; empty: all of them. Said when
-- it begins, and never again.

ALTER TABLE conversation ADD COLUMN private BLOB NOT NULL DEFAULT x'';
