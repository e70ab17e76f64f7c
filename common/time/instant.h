/* Points in time as people write them. Pure: no clock, no zone of the machine. */
#ifndef COMMON_TIME_INSTANT_H
#define COMMON_TIME_INSTANT_H

#include "common/span.h"

/* Days from 1970-01-01 to a day of the Gregorian calendar; month 1..12, day 1.. */
int64_t instant_days_to(int64_t year, unsigned month, unsigned day);
unsigned instant_days_of_month(int64_t year, unsigned month);
/* RFC 3339 with its offset, of this century: 2026-11-23T09:00:00Z or +01:00. NULL and Unix ms, or why not, as the end
 * of a sentence that begins with the key. */
const char *instant_of(struct span s, uint64_t *ms);
/* How long it is from now (Unix ms) until such a time, which may have a fraction of a second, that is not counted; 1
 * when it was. -1: it is none. */
int instant_left(struct span s, uint64_t now_ms, uint64_t *left_ms) MUSTCHECK;

#endif
