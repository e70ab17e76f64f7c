/* A JSON number as the exact decimal it is, without a copy of its digits. */
#ifndef COMMON_SCHEMA_DECIMAL_H
#define COMMON_SCHEMA_DECIMAL_H

#include "common/span.h"

enum { DECIMAL_TEXT_MAX = 1024, DECIMAL_EXPONENT_MAX = 9999, DECIMAL_DIVISOR_DIGITS = 9 };

/* d.ddd * 10^top. Zero has no digits and no sign. */
struct decimal {
    struct span digits; /* from the first that is not 0 to the last that is not; there may be a point in it */
    size_t count;       /* of the digits, without the point */
    int64_t top, low;   /* exponents of the first and of the last digit */
    bool negative;
};

/* text: a number as JSON has it, which must live as long as *d. False: longer than DECIMAL_TEXT_MAX, or with an
 * exponent past DECIMAL_EXPONENT_MAX. */
bool decimal_of(struct span text, struct decimal *d) MUSTCHECK;
/* < 0, 0 or > 0 */
int decimal_cmp(const struct decimal *a, const struct decimal *b);
bool decimal_is_integer(const struct decimal *d);
/* The next digit and its place: *at begins with 0. Behind the last one: 0, for ever. */
unsigned decimal_next(const struct decimal *d, size_t *at);

/* What another number may be a multiple of: positive, at most DECIMAL_DIVISOR_DIGITS digits between its zeros. */
struct divisor {
    uint64_t digits;
    int64_t low; /* digits * 10^low */
};
bool decimal_divisor(const struct decimal *d, struct divisor *out) MUSTCHECK;
bool decimal_is_multiple(const struct decimal *d, struct divisor of);

#endif
