/* A recorded request, judged by another policy: the same code as in the gateway, on what the record knows. What it
 * does not know is never guessed: then the answer is that it cannot be told, and why. */
#ifndef CLI_POLICY_REPLAY_REPLAY_JUDGE_H
#define CLI_POLICY_REPLAY_REPLAY_JUDGE_H

#include "cli/policy/record/source.h"
#include "policy/policy.h"
#include "policy/scope.h"

enum unknown {
    UNKNOWN_NOTHING = 0,
    UNKNOWN_PATH,   /* cut at RECORD_CUT */
    UNKNOWN_TUNNEL, /* only a CONNECT was recorded */
    UNKNOWN_BODY,
    UNKNOWN_HEADER,
    UNKNOWN_REFS,
    UNKNOWN_LABELS,
    UNKNOWN_LIMIT, /* it was past a limit, and limits are not counted here */
    UNKNOWN_SUBPROTOCOL,
    UNKNOWN_KINDS
};
const char *bench_unknown_words(enum unknown u);

struct opinion {
    enum verdict verdict;
    const char *code;
    enum unknown unknown;
    struct rule_ref rule; /* that decides, or that asks for what is not known */
    struct span op;       /* as the policy names it */
    struct span credential;
    bool limited; /* within limits */
};

struct bench; /* a policy, what it asks about, and the answers of before */
struct bench *bench_new(const struct policy *p, struct source *s);
void bench_free(struct bench **b);
/* Spans of the answer point into the policy's image. */
void bench_judge(struct bench *b, const struct record *r, uint64_t time_ms, struct opinion *o);
/* Does the policy's scope cover the sandbox, by the labels it has now? */
enum covers bench_covers(struct bench *b, int scope, struct span sandbox);

#endif
