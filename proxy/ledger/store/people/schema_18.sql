-- What version 18 of the store has more than version 17 (schema_17.sql); see there.

-- Who may approve a ticket too once nobody has decided for a while (struct wire_escalate).
CREATE TABLE escalation (
    ticket      TEXT NOT NULL REFERENCES ticket (id) ON DELETE CASCADE,
    entry       TEXT NOT NULL,      -- of approvers: of the policy that holds it
    after_ms    INTEGER NOT NULL,
    due_ms      INTEGER NOT NULL,   -- for people to read; by the clock that can be set nothing escalates
    due_boot_ms INTEGER NOT NULL,   -- CLOCK_BOOTTIME: from then on; while the machine is off no time passes
    since_ms    INTEGER NOT NULL,   -- when they were asked; 0: not yet
    PRIMARY KEY (ticket, entry)
) STRICT, WITHOUT ROWID;
CREATE INDEX escalation_due ON escalation (due_boot_ms) WHERE since_ms = 0;

-- Who decides in whose place, for a while. One has one deputy at most.
CREATE TABLE deputy (
    instead_of    TEXT NOT NULL PRIMARY KEY REFERENCES operator (name) ON DELETE CASCADE,
    deputy        TEXT NOT NULL REFERENCES operator (name) ON DELETE CASCADE,
    since_ms      INTEGER NOT NULL,
    until_ms      INTEGER NOT NULL,
    until_boot_ms INTEGER NOT NULL, -- CLOCK_BOOTTIME: whichever of both comes first
    CHECK (instead_of <> deputy)
) STRICT, WITHOUT ROWID;
CREATE INDEX deputy_is ON deputy (deputy);

-- In whose place the operator said it; '': in their own.
ALTER TABLE vote ADD COLUMN instead_of TEXT NOT NULL DEFAULT '';

-- What people decided one by one: so often, and after how long. Of at most so many operations; the rest is 'other'.
CREATE TABLE tally (
    op       TEXT NOT NULL,
    effect   TEXT NOT NULL,
    approved INTEGER NOT NULL,
    denied   INTEGER NOT NULL,
    ms       INTEGER NOT NULL,      -- of all of them together, from when it was held
    s1       INTEGER NOT NULL,      -- decided in less than 1 s, 3 s, ...: each has those before it
    s3       INTEGER NOT NULL,
    s10      INTEGER NOT NULL,
    s30      INTEGER NOT NULL,
    s60      INTEGER NOT NULL,
    s300     INTEGER NOT NULL,
    s1800    INTEGER NOT NULL,
    s7200    INTEGER NOT NULL,
    PRIMARY KEY (op, effect)
) STRICT, WITHOUT ROWID;
