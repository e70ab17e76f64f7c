#include "proxy/carrier/range.h"

#include <inttypes.h>
#include <stdio.h>

static const uint64_t most = INT64_MAX;

struct range range_wider(const struct range *asked, uint64_t more)
{
    struct range wide = *asked;
    if (asked->suffix) {
        wide.from += more;
        return wide;
    }
    wide.from -= wide.from < more ? wide.from : more;
    if (wide.to != UINT64_MAX)
        wide.to += more;
    return wide;
}

void range_text(const struct range *r, char out[RANGE_TEXT])
{
    if (r->suffix)
        snprintf(out, RANGE_TEXT, "bytes=-%" PRIu64, r->from);
    else if (r->to == UINT64_MAX)
        snprintf(out, RANGE_TEXT, "bytes=%" PRIu64 "-", r->from);
    else
        snprintf(out, RANGE_TEXT, "bytes=%" PRIu64 "-%" PRIu64, r->from, r->to);
}

/* "bytes 0-99/200" */
static int read_content(struct span value, uint64_t *first, uint64_t *last, uint64_t *size)
{
    struct span unit, rest, range, length, a, b;
    if (!span_cut(value, ' ', &unit, &rest) || !span_ieq(unit, SPAN("bytes")) ||
        !span_cut(rest, '/', &range, &length) || !span_cut(range, '-', &a, &b))
        return -1;
    if (span_u64(a, most, first) != 0 || span_u64(b, most, last) != 0 || *first > *last)
        return -1;
    *size = UINT64_MAX;
    if (span_eq(length, SPAN("*")))
        return 0;
    return span_u64(length, most, size) == 0 && *last < *size ? 0 : -1;
}

/* Where what was asked lies in a representation of this size. to: the last byte, if it reaches so far. */
static void resolve(const struct range *r, uint64_t size, uint64_t *from, uint64_t *to)
{
    *from = r->from;
    *to = r->to;
    if (r->suffix) {
        *from = size > r->from ? size - r->from : 0;
        *to = UINT64_MAX;
    }
    if (*to >= size)
        *to = size - 1;
}

enum range_fit range_fit(const struct range *asked, const struct range *wide, struct span content_range,
                         struct range_part *p)
{
    uint64_t first, last, size, from, to, wide_from, wide_to;
    if (read_content(content_range, &first, &last, &size) != 0)
        return RANGE_WRONG;
    if (size == UINT64_MAX && (wide->suffix || wide->to == UINT64_MAX))
        return RANGE_WRONG; /* whether that is all of it cannot be told */
    resolve(wide, size, &wide_from, &wide_to);
    if (first != wide_from || last != wide_to)
        return RANGE_WRONG;
    resolve(asked, size, &from, &to);
    p->came = last - first + 1;
    if (from > last || (asked->suffix && asked->from == 0)) {
        p->skip = p->give = 0;
        snprintf(p->text, sizeof(p->text), "bytes */%" PRIu64, size);
        return RANGE_PAST;
    }
    p->skip = from - first;
    p->give = to - from + 1;
    int n = snprintf(p->text, sizeof(p->text), "bytes %" PRIu64 "-%" PRIu64 "/", from, to);
    if (size == UINT64_MAX)
        snprintf(p->text + n, sizeof(p->text) - (size_t)n, "*");
    else
        snprintf(p->text + n, sizeof(p->text) - (size_t)n, "%" PRIu64, size);
    return RANGE_PART;
}
