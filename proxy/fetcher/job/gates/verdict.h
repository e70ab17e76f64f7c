/* What a gate said: its program printed it, or its server answered it. */
#ifndef PROXY_FETCHER_JOB_VERDICT_H
#define PROXY_FETCHER_JOB_VERDICT_H

#include "common/err.h"
#include "common/span.h"
#include "proxy/words.h"

enum { VERDICT_OUT_MAX = 8 * 1024, VERDICT_WORDS_MAX = 400 };

struct arena;
struct job;
/* Pure. Exactly {"decision": "allow", "deny" or "abstain", "reason": TEXT}, the reason left out or at most
 * VERDICT_WORDS_MAX bytes on one line; anything else is GATE_FAILED and says why in e. *reason borrows from printed
 * or a. */
enum gate_said verdict_read(struct span printed, struct arena *a, struct span *reason, struct err *e) MUSTCHECK;
/* The same of what was read already, whatever the reason is like. */
struct json;
enum gate_said verdict_of(const struct json *all, struct span *reason, struct err *e) MUSTCHECK;
/* The job's answer: what it said as one byte, and its words. Exits. */
void verdict_done(const struct job *j, enum gate_said said, struct span reason) __attribute__((noreturn));

#endif
