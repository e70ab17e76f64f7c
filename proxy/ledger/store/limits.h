/* The ledger's numbers: counts, bytes, and times in ms. */
#ifndef PROXY_LEDGER_STORE_LIMITS_H
#define PROXY_LEDGER_STORE_LIMITS_H

enum {
    STORE_PENDING_MAX = 64,
    STORE_OPEN_MAX = 1024, /* tickets pending or approved, of all sandboxes */
    STORE_ANSWER_MS = 600000,
    AUDIT_SIGNED = 256, /* records between two signatures */
    STORE_SANDBOXES_MAX = 4096,
    STORE_BODY_MAX = 64 * 1024 * 1024,
};
#define STORE_EXPIRES_MS     (30u * 60 * 1000)
#define STORE_EXPIRES_MAX_MS (7ull * 24 * 3600 * 1000)
#define STORE_BODIES_MS      (24ull * 3600 * 1000)
#define STORE_SANDBOX_BYTES  (256ull * 1024 * 1024) /* held for one sandbox */
#define STORE_ALL_BYTES      (1024ull * 1024 * 1024)

#endif
