/* What models were asked, summed up by what somebody wants to see it: for the broker's API, and for who reads its
 * pages. Pure. */
#ifndef BROKER_USAGE_H
#define BROKER_USAGE_H

#include "common/err.h"
#include "common/span.h"

enum usage_key { USAGE_TENANT = 0, USAGE_CONVERSATION, USAGE_MODEL, USAGE_TASK, USAGE_DAY, USAGE_KEYS };
enum usage_sum {
    USAGE_TIMES = 0,
    USAGE_INPUT,
    USAGE_OUTPUT,
    USAGE_CACHE_READ,
    USAGE_CACHE_WRITE,
    USAGE_COST, /* millionths */
    USAGE_SUMS
};
enum { USAGE_DAY_TEXT = 10 }; /* 2026-11-30 */

/* As members of an object: "tenant", "conversation_id", "model", "task", "day"; "asked", "input_tokens" ... */
const char *usage_key_name(enum usage_key k);
const char *usage_sum_name(enum usage_sum s);
/* "model,day": a bit (1 << enum usage_key) of each. -1: a word is none of tenant, conversation, model, task and day,
 * or stands twice. */
int usage_by(struct span words, unsigned *by) MUSTCHECK;

struct usage_row {
    struct span key[USAGE_KEYS]; /* those that it is not summed up by are empty */
    uint64_t sum[USAGE_SUMS];
};
struct usage {
    unsigned by;
    struct usage_row *row;
    size_t n, room; /* rows are the caller's */
};
/* Added to the row of its keys, or a new one, which refers to what one->key refers to. A sum that would be more than
 * INT64_MAX is that. -1: there is no room for one more, and nothing is changed. */
int usage_add(struct usage *u, const struct usage_row *one) MUSTCHECK;
/* By their keys: the day first. */
void usage_sort(struct usage *u);

/* Days of UTC, counted from 1970-01-01. -1: it is none of this or the last century after 1969. */
int usage_day_of(struct span text, uint64_t *day) MUSTCHECK;
void usage_day_text(uint64_t day, char out[USAGE_DAY_TEXT + 1]);

#endif
