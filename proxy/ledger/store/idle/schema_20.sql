-- What version 20 of the store has more than the one before; see there.

-- Started sandboxes that cost nothing: they were paused for long, their files are in a checkpoint, and nothing of them
-- runs. Whose each is, its session, labels and limits of egress stay in its row of sandbox, whose kind is 'idle'; that
-- is 'started' again while its files are being restored, and when that is done there is no row here any more.
CREATE TABLE idle (
    name        TEXT NOT NULL PRIMARY KEY, -- of the sandbox
    tenant      TEXT NOT NULL,
    checkpoint  TEXT NOT NULL,             -- its files
    box         BLOB NOT NULL,             -- what it is to be again: wire_box (sandbox-shim/warden/wire_box.h)
    cpu_percent INTEGER NOT NULL,
    strict      INTEGER NOT NULL,          -- its limits are held by a cgroup, or it is not started
    left_ms     INTEGER NOT NULL,          -- of its time, when it was put aside
    since_ms    INTEGER NOT NULL           -- Unix ms
) STRICT, WITHOUT ROWID;
CREATE INDEX idle_tenant ON idle (tenant);
-- How often it was restored so: what opens it through the dock is another each time.
ALTER TABLE sandbox ADD COLUMN restored INTEGER NOT NULL DEFAULT 0;
