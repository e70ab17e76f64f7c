-- What version 20 of the store has more than version 19; see there.

-- What of that which the policy lets it a sandbox may reach (proxy/reach/reach.h); empty: all of it.
ALTER TABLE sandbox ADD COLUMN reach TEXT NOT NULL DEFAULT '';
