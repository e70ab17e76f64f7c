/* Between the files of policy diff. */
#ifndef CLI_POLICY_DIFF_DIFF_PARTS_H
#define CLI_POLICY_DIFF_DIFF_PARTS_H

#include "cli/policy/diff/diff_found.h"

/* diff_text.c: what a rule, or all around the rules of a host, says; equal texts decide alike. */
struct span *diff_rule_texts(const struct policy *p, struct arena *a);
struct span diff_around(const struct policy *p, struct span host, struct arena *a);
struct span diff_pack_text(const struct policy *p, const struct img_pack *k, struct arena *a);
/* Does one of the globs fit? */
bool diff_globs_fit(const struct policy *p, struct img_range globs, struct span text, uint8_t sep, bool fold);

/* diff_paths.c and diff_who.c: one dimension each */
int diff_space_paths(struct space *s, struct dim *d);
int diff_paths_merge(struct space *s, struct dim *d); /* diff_alike.c */
int diff_space_who(struct space *s, struct dim *d);
/* diff_atoms.c */
struct option *diff_dim_add(struct space *s, struct dim *d, struct option o);
struct dim *diff_space_dim(struct space *s, enum dim_kind kind, struct span name);
int diff_space_masked(struct space *s); /* the dimensions up to DIM_MASKED */
/* over: the request asks the server for another method, too. */
bool diff_option_may_fit(const struct space *s, const struct site *r, const struct dim *d, const struct option *o,
                         bool over);
/* The mask that counts from here on. */
bool diff_option_overrides(const struct dim *d, const struct option *o, bool over);
/* diff_asked.c: query, headers, upgrade's subprotocols, time; diff_body.c: bodies and pushes */
int diff_space_asked(struct space *s);
int diff_space_bodies(struct space *s);

enum { DIFF_SIGN_MAX = 1 << 20 };
/* diff_sign.c: values that are answered alike have the same sign. */
struct signs {
    struct span *v;
    size_t n, max;
};
/* 1: there was no such sign; 0: there was; -1: no memory. It is freed. */
int diff_sign_add(struct space *s, struct signs *l, struct dynbuf *sign);
/* The same of what every part of every rule answers to the request. */
int diff_signs_add(struct space *s, struct signs *l, const struct request *r);
/* A request for the host that has nothing else. */
struct request diff_bare_request(const struct space *s, struct span method);

/* Patterns that grow. Both: as written and in any spelling; so are globs. */
struct patterns {
    struct pattern *v;
    size_t n, max;
};
int diff_patterns_add(struct space *s, struct patterns *l, struct span text, bool fold);
int diff_patterns_add_both(struct space *s, struct patterns *l, struct span text);
int diff_patterns_add_globs(struct space *s, struct patterns *l, const struct policy *p, struct img_range globs);

/* diff_points.c: judge all combinations; how many there are at most */
uint64_t diff_space_size(const struct space *s);
void diff_space_judge(struct space *s, struct diff *d);
/* Drop what only requests show that ask for another method, where it is stricter, or told of others by the same rule.
 */
void diff_drop_overrides(struct diff *d);

/* diff_compare.c */
struct drift diff_decisions(const struct diff *d, const struct request *r, uint64_t now_ms,
                            const struct decision *was, const struct decision *is, struct arena *a);
enum diff_kind diff_change_kind(const struct drift *c);
/* Is every text of a range one of the other's? */
bool diff_texts_within(const struct policy *p, struct img_range r, const struct policy *q, struct img_range of);
/* diff_lists.c */
void diff_lists(struct diff *d);
struct entry *diff_entry(struct diff *d);
/* diff_print.c */
struct diff_args {
    const struct cli_call *call;
    const char *const *paths[2];
    size_t npaths[2];
    const char *floors[2], *witness;
};
void diff_print(const struct diff *d, const struct diff_args *a);
int diff_json(const struct diff *d, const struct diff_args *a) MUSTCHECK;
int diff_witness_files(const struct diff *d, const struct diff_args *a) MUSTCHECK;

#endif
