#include "common/time/clock.h"

#include <stdio.h>

uint64_t clock_ns(clockid_t id)
{
    struct timespec t = {0};
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_ms(clockid_t id)
{
    return clock_ns(id) / 1000000;
}

bool utc_text(uint64_t ms, bool fraction, char out[UTC_TEXT])
{
    time_t t = (time_t)(ms / 1000);
    struct tm tm;
    size_t n = gmtime_r(&t, &tm) != NULL ? strftime(out, 24, "%Y-%m-%dT%H:%M:%S", &tm) : 0;
    if (n == 0)
        out[0] = '\0';
    else if (fraction)
        (void)snprintf(out + n, UTC_TEXT - n, ".%03uZ", (unsigned)(ms % 1000));
    else
        memcpy(out + n, "Z", 2);
    return n != 0;
}
