-- Version 3: which models may see a conversation (SQLite's version 6). One of an earlier version gets it as a new one does.

ALTER TABLE countersign_broker.conversation ADD COLUMN private bytea NOT NULL DEFAULT '';
-- A broker of an earlier version that still runs cannot say it: it begins no conversation, and makes no copy that all would see.
ALTER TABLE countersign_broker.conversation ALTER COLUMN private DROP DEFAULT;
-- Nor does it run a turn of one: it would ask any model. A session of ours says its version (link.c).
CREATE FUNCTION countersign_broker.runs_private() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(nullif(current_setting('countersign_broker.version', true), ''), '0')::bigint < 3 AND EXISTS (
        SELECT 1 FROM countersign_broker.conversation c
        WHERE c.tenant = NEW.tenant AND c.id = NEW.conversation AND c.private <> '') THEN
        RAISE EXCEPTION 'the conversation is private, and this countersign-broker is of an earlier version, that knows of none: end it';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER turn_private BEFORE UPDATE OF epoch ON countersign_broker.turn
    FOR EACH ROW EXECUTE PROCEDURE countersign_broker.runs_private();
UPDATE countersign_broker.store SET version = 3;
