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
/* A number of seconds as JSON writes one, without a sign: 60, 3599.5, 1.7e9. What is less than a millisecond is not
 * counted. 0 and ms; -1: it is none, or 2^32 seconds and more. */
int instant_seconds(struct span s, uint64_t *ms) MUSTCHECK;
/* How long it is from now (Unix ms) until a time that an answer tells; 1 when it was. As RFC 3339 has it, with or
 * without a fraction of a second, that is not counted; as such a number of seconds since 1970; or, from the year 2001
 * on, in whole milliseconds since then. -1: it is none of these. */
int instant_left(struct span s, uint64_t now_ms, uint64_t *left_ms) MUSTCHECK;

#endif
