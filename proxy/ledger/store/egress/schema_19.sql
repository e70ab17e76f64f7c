-- What version 19 of the store has more than version 18; see there.

-- What of that which the policy lets it a sandbox may reach (proxy/reach/reach.h); empty: all of it.
ALTER TABLE sandbox ADD COLUMN reach TEXT NOT NULL DEFAULT '';
