/* What time it is, and how a moment is written. */
#ifndef COMMON_TIME_CLOCK_H
#define COMMON_TIME_CLOCK_H

#include <time.h>

#include "common/span.h"

/* CLOCK_REALTIME: of Unix; CLOCK_MONOTONIC, CLOCK_BOOTTIME: since some moment before, the latter also asleep. */
uint64_t clock_ns(clockid_t id);
uint64_t clock_ms(clockid_t id);

enum { UTC_TEXT = 32 };
/* "2026-11-22T10:00:00Z" of Unix ms, with fraction "2026-11-22T10:00:00.123Z" (RFC 3339). False, and an empty text:
 * no year has it. */
bool utc_text(uint64_t ms, bool fraction, char out[UTC_TEXT]);

#endif
