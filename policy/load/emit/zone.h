/* A time zone's offsets from the TZif data of the system (RFC 9636): its transitions, and what its footer says of the
 * years after them. Written into the image for a fixed run of years, so that the same files make the same image
 * whenever it is made. Pure. */
#ifndef POLICY_LOAD_EMIT_ZONE_H
#define POLICY_LOAD_EMIT_ZONE_H

#include "common/arena.h"
#include "common/err.h"
#include "policy/image/records.h"

enum { ZONE_FIRST_YEAR = 2020, ZONE_LAST_YEAR = 2060, ZONE_FILE_MAX = 64 * 1024, ZONE_SHIFTS_MAX = 512 };

struct zone {
    struct span name;
    struct img_shift *shift; /* the first is the beginning of ZONE_FIRST_YEAR */
    size_t n;
    int64_t until_s;
    uint32_t written; /* its record and one more; 0: none yet */
};

/* A name as the database has them: Europe/Berlin, Etc/GMT+1. */
bool zone_is_name(struct span name);
/* "UTC", which needs no data. -1: no memory. */
int zone_utc(struct arena *a, struct zone *out) MUSTCHECK;
/* 0, or -1 and why it is none. The shifts are in the arena. */
int zone_read(struct span tzif, struct arena *a, struct zone *out, struct err *e) MUSTCHECK;

/* Between zone.c and zone_rule.c: the footer. A rule gives the two changes of one year. */
struct zone_day { /* RFC 9636 and POSIX TZ: Mm.w.d, Jn or n, and a time of that day in seconds */
    enum { DAY_WEEK, DAY_OF_365, DAY_OF_366 } kind;
    unsigned month, week, day;
    int64_t time;
};
struct zone_rule {
    int64_t standard, summer; /* seconds of local time from UTC */
    bool changes;
    struct zone_day start, end; /* of summer */
};
/* False: it is not one, or says nothing that can be computed. */
bool zone_rule_read(struct span tz, struct zone_rule *out);
/* Unix time of that day of a year; `from_utc` is the offset in force before it. */
int64_t zone_day_at(const struct zone_day *d, int64_t year, int64_t from_utc);

#endif
