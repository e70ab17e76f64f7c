-- What version 3 of the store has more than version 2 (schema_2.sql); see there.

-- In ticket.fields_json the value of a field that carries a credential of the sandbox's own is masked from now on
-- (proxy/outbound.h); ticket.head has it, for it is sent.

-- On which terms it is held: SHA-256 of its rule, operation, credential's definition, approvers and gates (proxy/identity.h).
-- NULL: held by an earlier version, which kept none. An open ticket whose terms are not those of now is cancelled.
ALTER TABLE ticket ADD COLUMN terms BLOB;

-- Signed heads of the audit chain: Ed25519 (RFC 8032) over "countersign audit 1", the key's gateway being whoever has its
-- private half, and the row audit.hash of seq. One every so many records, and one when the ledger ends.
CREATE TABLE checkpoint (
    seq       INTEGER PRIMARY KEY,     -- of the record it ends with
    time_ms   INTEGER NOT NULL,
    key       BLOB NOT NULL,           -- the public half, 32 bytes
    signature BLOB NOT NULL            -- 64 bytes, over proxy/ledger/store/sign.h: signer_head
) STRICT;
