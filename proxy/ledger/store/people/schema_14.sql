-- What version 14 of the store has more than version 13 (askers/schema_13.sql); see there.

-- Of a push: is what it changes made ready for the page (1), and does a yes wait for it (2)?
ALTER TABLE ticket ADD COLUMN diff INTEGER NOT NULL DEFAULT 0;
