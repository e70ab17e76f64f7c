/* policy replay: what another policy would have said of recorded requests. */
#ifndef CLI_POLICY_REPLAY_REPLAY_H
#define CLI_POLICY_REPLAY_REPLAY_H

#include "cli/policy/loaded.h"
#include "cli/policy/replay/replay_judge.h"

enum direction { CHANGE_WIDENED = 0, CHANGE_NARROWED, CHANGE_UNKNOWN, CHANGES };
enum { EXAMPLE_MAX = 300, GROUPS_MAX = 4096 };

/* Requests that changed in the same way. */
struct group {
    uint64_t hash, count;
    enum direction change;
    enum verdict was, is;
    enum unknown unknown;
    struct span what, host, rule_was;
    struct rule_ref rule;
    bool limited;
    char example[EXAMPLE_MAX], sandbox[EXAMPLE_MAX]; /* display-safe */
    uint64_t example_ms;
};

struct replayed {
    struct arena a;
    struct bench *bench;
    struct source *source;
    struct group *groups;
    size_t ngroups;
    uint64_t same, now[3], unknown, widened, narrowed, ungrouped;
    uint64_t said_at; /* progress */
    bool tell;
};

/* replay_groups.c: source_fn */
int replay_take(void *arg, const struct record *r, uint64_t time_ms);
/* Heaviest first, what widened before all. */
void replay_sort(struct replayed *t);
/* replay_print.c */
void replay_print(const struct replayed *t);
int replay_json(const struct replayed *t) MUSTCHECK;
/* Foreign bytes for a terminal, shortened; what is not printable ASCII is '?'. */
void replay_plain(struct span s, char *out, size_t cap);
void replay_moment(uint64_t ms, char out[32]);

#endif
