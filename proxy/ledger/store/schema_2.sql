-- What version 2 of the store has more than version 1 (schema.sql). A new store gets both; one of version 1 gets this,
-- in one transaction, when it is first opened. Neither file changes any more once a release has it: the next change is
-- a file of its own.

-- What else the policy saw of a held request.
ALTER TABLE ticket ADD COLUMN has_body INTEGER NOT NULL DEFAULT 0;  -- 1: it declared a body, even an empty one
ALTER TABLE ticket ADD COLUMN upgrade INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ticket ADD COLUMN content_type TEXT NOT NULL DEFAULT '';
ALTER TABLE ticket ADD COLUMN refs TEXT NOT NULL DEFAULT '';        -- of a push: "create REF" and so on, a line each

-- What counts against the limits of rules (policy/limit.h): one row for a request and each measure of each rule that
-- bounds it, however many windows that has. It belongs to a ticket or to the exchange boot-xid, and goes when that
-- ended without having been sent; else it stays until the longest window there can be has passed.
CREATE TABLE reserved (
    who     TEXT NOT NULL,             -- 'sandbox:NAME', 'session:SESSION', 'all'
    rule    TEXT NOT NULL,
    measure TEXT NOT NULL,             -- 'requests', 'form:FIELD', 'json:POINTER'
    at_ms   INTEGER NOT NULL,          -- counts for a window from here; 0: of a ticket nobody has claimed, counts always
    amount  INTEGER NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740992),
    ticket  TEXT REFERENCES ticket (id) DEFERRABLE INITIALLY DEFERRED, -- it is reserved first, then opened
    boot    TEXT,
    xid     INTEGER,
    CHECK ((ticket IS NULL) = (boot IS NOT NULL) AND (boot IS NULL) = (xid IS NULL))
) STRICT;
CREATE INDEX reserved_sum ON reserved (who, rule, measure, at_ms, amount);
CREATE INDEX reserved_ticket ON reserved (ticket) WHERE ticket IS NOT NULL;
CREATE INDEX reserved_exchange ON reserved (boot, xid) WHERE boot IS NOT NULL;
CREATE INDEX reserved_old ON reserved (at_ms) WHERE at_ms > 0;
