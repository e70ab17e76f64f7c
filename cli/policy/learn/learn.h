/* policy learn: what was recorded, as rules to review. Exact: a neighbour of what was seen stays denied. */
#ifndef CLI_POLICY_LEARN_LEARN_H
#define CLI_POLICY_LEARN_LEARN_H

#include "common/dynbuf.h"
#include "cli/policy/learn/learn_words.h"
#include "cli/policy/loaded.h"
#include "cli/policy/replay/replay_judge.h"

enum {
    SHAPES_MAX = 2000,
    VALUES_MOST = 8,
    NAMES_MOST = 16,
    REFS_MOST = 32,
    SANDBOXES_MOST = 16,
    CREDENTIALS_MOST = 4
};
enum { LEARNT_MAX = 1024 * 1024, LEARNT_PACKS = 5, LEARNT_ID = 48 };

struct learnt_name {
    struct span name;
    struct span value[VALUES_MOST];
    size_t n; /* VALUES_MOST + 1: too many to list, any */
};

/* Requests that one rule is about. */
struct shape {
    struct span key, scheme, host, method, path, op, effect, resource;
    struct span sandbox[SANDBOXES_MOST];
    char id[LEARNT_ID];   /* of its rule */
    struct record sample; /* its texts are kept too */
    uint64_t port, count, first_ms, last_ms, sample_ms;
    struct learnt_name names[NAMES_MOST];
    size_t nnames, nrefs, nsandboxes;
    struct span refs[REFS_MOST];
    struct span used[CREDENTIALS_MOST]; /* credentials that it went with, by their names */
    size_t nused;
    bool read, deletes, more_sandboxes, bare; /* bare: also without one, as a rule said */
    enum left left;                           /* why there is no rule */
    enum use use;
    bool doubt[DOUBTS];
};

struct learnt {
    struct arena a;
    struct shape *shape[SHAPES_MAX];
    size_t n;
    uint64_t beyond, unlabelled, others; /* others: of sandboxes that were not asked about */
    uint64_t allowed, denied;            /* by the policy there is */
    struct span as, scope;               /* only sandboxes that they cover, or empty */
    int scope_at;
    const struct policy *policy; /* the one there is, or NULL */
    struct bench *present;       /* that judges by it, or NULL */
};

/* learn_shapes.c: source_fn */
int learn_take(void *arg, const struct record *r, uint64_t time_ms);
/* learn_yaml.c: whole: with what a file begins with. */
void learn_write(const struct learnt *t, bool whole, struct dynbuf *out);
/* learn_use.c */
void learn_take_credential(struct learnt *t, struct shape *s, const struct record *r);
void learn_use(struct learnt *t);
/* Is it about a repository: a fetch or a push? */
bool learn_is_git(const struct shape *s);
/* The packs that its rules speak of; how many. */
size_t learn_packs(const struct learnt *t, const char *out[LEARNT_PACKS]);
/* learn_json.c: all of it in one document; patch: what learn_patch wrote, or why it wrote none, or NULL: not asked.
 */
int learn_json(const struct learnt *t, const struct source_seen *seen, const struct dynbuf *patch,
               const char *no_patch) MUSTCHECK;
/* Which credentials it went with, and why its rule uses none of them; in words. */
void learn_used(struct dynbuf *out, const struct shape *s);
/* learn_check.c: with the policy there is or alone; how many kinds it gets wrong, which are left out. */
int learn_check(struct learnt *t, struct source *source, const struct cli_call *c, size_t *wrong) MUSTCHECK;
/* The same of the policy's file as it would be. */
int learn_check_patched(struct learnt *t, struct source *source, const struct cli_call *c, struct span text,
                        struct err *e) MUSTCHECK;
/* learn_patch.c: what learn_write wrote, as a unified diff against the file, and the file as it would be; nothing
 * when there is no rule. */
int learn_patch(const char *path, struct span rules, struct dynbuf *out, struct dynbuf *patched,
                struct err *e) MUSTCHECK;

#endif
