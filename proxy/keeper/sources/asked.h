/* What the policy says that a source is asked, and of whom: settings, by the step that they are for (fetch.h). Pure.
 */
#ifndef PROXY_KEEPER_ASKED_H
#define PROXY_KEEPER_ASKED_H

#include "common/err.h"
#include "common/id.h"
#include "policy/policy.h"
#include "proxy/fetcher/wire_fetch.h"

enum asked_step { ASKED_FIRST = 0 /* and the only one of most */, ASKED_DOWNSCOPE };

/* The settings of one step, in turn: *i is 0 for the first. False: there are no more, or there is no policy. */
bool asked_setting(const struct policy *p, const struct credential *c, enum asked_step step, size_t *i,
                   struct setting *s) MUSTCHECK;
/* The step whose answer is the value. */
enum asked_step asked_last(const struct policy *p, const struct credential *c);
/* All that is asked up to this step, and what the policy says of the servers. */
void asked_identify(const struct policy *p, const struct credential *c, enum asked_step step, struct digest *out);
/* Whom w asks in this step, and what the policy says of that host: https://HOST[:PORT]/...; or, where a program asks,
 * each HOST[:PORT] that it may reach. What they are lives in a; -1: e says which of them is none. */
int asked_servers(const struct policy *p, const struct credential *c, enum asked_step step, struct wire_fetch *w,
                  struct arena *a, struct err *e) MUSTCHECK;
/* The same of this one url, which is no source's. */
int asked_url(const struct policy *p, struct span url, struct arena *a, struct wire_upstream *to,
              struct err *e) MUSTCHECK;

#endif
