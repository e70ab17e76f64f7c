-- Version 4: which gateway's record has a step's calls, where several had one store before it was moved here; '': this one's.

ALTER TABLE step ADD COLUMN home TEXT NOT NULL DEFAULT '';

-- The last move of this store, from it or to it: one row, or none. A move that was cut off is begun anew by itself alone.
CREATE TABLE move (
    id TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
