/* What a set came to, for a person, for a program, and as a page that asks for nothing elsewhere. The same score
 * gives the same bytes. Names of tools and models are foreign text: what could be taken for something else is written
 * over. */
#ifndef BROKER_REPLAY_REPORT_H
#define BROKER_REPLAY_REPORT_H

#include "broker/replay/live.h"
#include "common/dynbuf.h"

enum { REPORT_MAX = 64 << 20 };

/* A failed buffer: it is longer than the buffer may be. */
void report_text(const struct score *s, struct dynbuf *out);
void report_json(const struct score *s, struct dynbuf *out);
void report_page(const struct score *s, struct dynbuf *out);

/* Which mode it is, in a word and in words. */
const char *report_mode(const struct score *s);
const char *report_words(const struct score *s);
/* How many recorded runs it is of. */
uint64_t report_turns(const struct score *s);
/* "ran", "lost", "not-begun" */
const char *report_live_state(enum live_state state);
/* Of runs that were asked once more, how many end as they did. */
uint64_t report_same_ends(const struct score *s);
/* What the three share: "completed", "as recorded: set-aside", "not gone through" ... of one run. */
struct span report_end(const struct again *r, char room[96]);
/* n of `of` as "66.7 %", rounded down; "-": of none. */
const char *report_share(uint64_t n, uint64_t of, char room[32]);
/* A quotient with two places, rounded down; "-": by none. */
const char *report_quotient(uint64_t n, uint64_t by, char room[32]);

#endif
