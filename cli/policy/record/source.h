/* Where recorded requests come from: the gateway's own store, read only and in pages so that nobody waits, or lines
 * of JSON. One request is told once, though its intent, its result and its ticket are records of their own. */
#ifndef CLI_POLICY_RECORD_SOURCE_H
#define CLI_POLICY_RECORD_SOURCE_H

#include "common/arena.h"
#include "common/err.h"
#include "cli/policy/record/record.h"
#include "policy/decision.h"

struct source_args {
    const char *state_dir, *from; /* from: a file, or "-" */
    const char *since, *until;
};
struct source_seen {
    uint64_t records, requests, older, unjudged; /* unjudged: refused before a policy was asked */
    uint64_t damaged, first_ms, last_ms;
    struct err damage; /* of the first damaged one */
};

/* "24h" before now_ms, or a moment; option: its name, for *e. */
int source_moment(const char *text, const char *option, uint64_t now_ms, uint64_t *out, struct err *e) MUSTCHECK;

struct source;
enum { SOURCE_OK = 0, SOURCE_USAGE = 2, SOURCE_AWAY = 4 };
/* SOURCE_*; *e says why and what to do. now_ms: what "24h" is counted back from. */
int source_open(struct source **s, const struct source_args *a, uint64_t now_ms, struct err *e) MUSTCHECK;
/* Every request, in order, and what came of its ticket as a record of the same that is marked again; a fn that is not
 * 0 ends it. */
typedef int source_fn(void *arg, const struct record *r, uint64_t time_ms);
int source_read(struct source *s, source_fn *fn, void *arg, struct err *e) MUSTCHECK;
/* The labels that the store has of a sandbox today; false: it has none of that name, or there is no store. */
bool source_labels(struct source *s, struct span sandbox, struct arena *a, struct subject *out);
const struct source_seen *source_seen(const struct source *s);
void source_close(struct source **s);

#endif
