-- What version 16 of the store has more than version 15 (egress/schema_15.sql); see there.

-- Of a push: is what it changes made ready for the page (1), and does a yes wait for it (2)?
ALTER TABLE ticket ADD COLUMN diff INTEGER NOT NULL DEFAULT 0;
