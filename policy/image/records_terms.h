/* Records of a compiled policy (records.h): what bounds a rule in amount and in time. */
#ifndef POLICY_IMAGE_RECORDS_TERMS_H
#define POLICY_IMAGE_RECORDS_TERMS_H

#include "policy/image/records.h"

/* limits: of a rule; one record a bound. key: a form field's name or a JSON pointer, empty for requests. */
enum { LIMIT_REQUESTS = 0, LIMIT_FORM, LIMIT_JSON, LIMIT_MEASURES };
enum { LIMIT_PER_SANDBOX = 0, LIMIT_PER_SESSION, LIMIT_PER_ALL, LIMIT_PERS };
struct img_limit {
    uint32_t measure, per;
    struct img_str key;
    uint64_t max, window_ms;
};

/* when: of a rule. Minutes of the day in the zone's own time; from >= to goes over midnight and belongs to the day it
 * begins on. */
enum { WINDOW_DAYS_ALL = 0x7f }; /* bit 0 is Monday */
struct img_window {
    uint32_t days, from_min, to_min;
    uint32_t zone; /* IMG_ZONE */
};
/* A zone's offsets from UTC, ascending; before the first and from `until_s` on nothing is known, and a window neither
 * fits nor does not fit. */
struct img_shift {
    int64_t from_s;   /* Unix time */
    int64_t offset_s; /* of local time from UTC */
};
struct img_zone {
    struct img_str name;
    struct img_range shifts; /* IMG_SHIFT */
    int64_t until_s;
};

#endif
