/* Between the files that explain (explain.h). */
#ifndef POLICY_EXPLAIN_WHY_H
#define POLICY_EXPLAIN_WHY_H

#include "common/dynbuf.h"
#include "policy/explain.h"
#include "policy/match/match.h"

enum { WORDS_MAX = 4096, VALUE_SHOWN = 120 };

/* What is there and what the rule wants, in words. */
void why_words(const struct ask *k, const struct img_rule *r, enum miss key, struct dynbuf *out);
/* The bytes, at most VALUE_SHOWN of them. */
void why_value(struct dynbuf *out, struct span s);
/* "a", "a or b", "a, b or 3 more" of a list of IMG_STR, IMG_GLOB or IMG_HOST. */
void why_list(struct dynbuf *out, const struct policy *p, enum img_table t, struct img_range r);
/* "mon-fri 09:00-17:00 Europe/Berlin", of each window of the rule; and a time of Unix in UTC, as RFC 3339 has it. */
void why_hours(struct dynbuf *out, const struct policy *p, const struct img_rule *r);
void why_time(struct dynbuf *out, uint64_t ms);
/* Calls fn for every rule that the index has for this host, however many others there are (allowed.c). */
typedef void why_rule_fn(void *arg, uint32_t rule);
void why_host_rules(const struct policy *p, struct span host, why_rule_fn *fn, void *arg);
struct span why_host_pattern(const struct policy *p, const struct img_host *h, struct arena *a);

#endif
