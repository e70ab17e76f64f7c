-- What version 14 of the store has more than version 13 (askers/schema_13.sql); see there.

-- How much a started sandbox may send and be sent; 0: no limit. egress_epoch: the generation from which on it is counted.
ALTER TABLE sandbox ADD COLUMN egress_requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandbox ADD COLUMN egress_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandbox ADD COLUMN egress_epoch INTEGER NOT NULL DEFAULT 0;
-- What of that which the policy lets it a sandbox may reach (proxy/reach/reach.h); empty: all of it.
ALTER TABLE sandbox ADD COLUMN reach TEXT NOT NULL DEFAULT '';
-- How much of what it may send is used, or may be before this is written again; and all of a tenant's together.
CREATE TABLE egress (
    whose    INTEGER NOT NULL,         -- enum egress_whose (proxy/egress/egress.h)
    name     TEXT NOT NULL,
    epoch    INTEGER NOT NULL,         -- as of its sandbox; of a tenant Unix ms, since when it is counted
    requests INTEGER NOT NULL,
    bytes    INTEGER NOT NULL,
    PRIMARY KEY (whose, name)
) STRICT, WITHOUT ROWID;
