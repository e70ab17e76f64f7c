-- Version 2: what is asked waits in its turn, and is among the conversation's messages from when that turn begins: asked while
-- another turn ran, it stood in the prompt of that one, and its own had nothing to answer.

ALTER TABLE turn ADD COLUMN asked BLOB;       -- NULL: it is among the messages, or was cancelled before

UPDATE turn SET asked = (SELECT m.body FROM message m WHERE m.tenant = turn.tenant AND m.conversation = turn.conversation
    AND m.turn = turn.id AND m.role = 'user') WHERE state = 'queued' AND epoch = 0;
-- One behind which a turn that ran has written more stays where it is, too: the numbers of messages have no gap.
DELETE FROM message WHERE EXISTS (SELECT 1 FROM turn t WHERE t.tenant = message.tenant AND t.id = message.turn
    AND t.conversation = message.conversation AND t.asked IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM message l JOIN turn t ON t.tenant = l.tenant AND t.id = l.turn WHERE l.tenant = message.tenant
    AND l.conversation = message.conversation AND l.seq > message.seq AND t.asked IS NULL);
UPDATE conversation SET messages = (SELECT coalesce(max(seq), 0) FROM message m WHERE m.tenant = conversation.tenant
    AND m.conversation = conversation.id);
