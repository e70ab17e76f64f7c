-- Version 4: which gateway's record has a step's calls, where several had one store before it was moved here; '': this one's.

ALTER TABLE step ADD COLUMN home TEXT NOT NULL DEFAULT '';
