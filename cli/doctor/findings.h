/* What `countersign doctor` found: a line each for people, or one JSON object
 * {"findings":[{"check","state","what","why","do"}],"bad":N}. `what` may hold
 * foreign text (a variable's value): nothing of it reaches the terminal as a
 * control character. */
#ifndef CLI_DOCTOR_FINDINGS_H
#define CLI_DOCTOR_FINDINGS_H

#include "cli/verb.h"

enum finding_state { FINDING_BAD = 0, FINDING_NOTE, FINDING_OK };

struct findings {
    bool json;
    unsigned bad;
    struct dynbuf out; /* of JSON, written at the end */
    struct jsonw w;
};

void findings_begin(struct findings *f, bool json);
/* why and todo are NULL where nothing is wrong. */
void finding(struct findings *f, enum finding_state state, const char *check, const char *why, const char *todo,
             const char *fmt, ...) PRINTF(6, 7);
/* CLI_OK, or CLI_RUNTIME when anything is bad. */
int findings_end(struct findings *f) MUSTCHECK;

/* from_sandbox.c: what can be told from inside a sandbox, with no state directory. direct: HOST:PORT places that
 * must not be reachable but through the gateway; ends with NULL. */
void doctor_sandbox(struct findings *f, const char *const *direct);
/* trust.c: verify the gateway's certificates with each file that a variable names. What the first good one
 * holds, as PEM, is in `good` (born here; empty: none is). */
struct env_url;
void doctor_trust(struct findings *f, const struct env_url *proxy, struct dynbuf *good);
/* policy.c: of the version of the policy that is in force, kept in dir (STATE_DIR/policies), the CA files that
 * keep chains from being checked strictly. digest: its hex. */
void doctor_policy(struct findings *f, const char *dir, struct span digest);
/* clients.c: of the gateway's status, what it refused for the protocol that was spoken. */
struct json;
void doctor_clients(struct findings *f, const struct json *status);
/* A whole file of at most a few MiB into b (born here). -1 with errno. */
int doctor_file(const char *path, struct dynbuf *b) MUSTCHECK;

#endif
