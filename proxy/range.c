#include "proxy/range.h"

static const uint64_t most = INT64_MAX;

static bool is_range(const struct wire_request *r, const struct http_field *f)
{
    return span_eq(r->method, SPAN("GET")) && span_ieq(f->name, SPAN("range"));
}

static enum range_asked parse(struct span value, struct range *asked)
{
    struct span unit, set, first, last;
    if (!span_cut(value, '=', &unit, &set) || !span_ieq(unit, SPAN("bytes")) || !span_cut(set, '-', &first, &last))
        return RANGE_BAD;
    *asked = (struct range){.suffix = first.n == 0, .to = UINT64_MAX};
    if (asked->suffix)
        return span_u64(last, most, &asked->from) == 0 ? RANGE_ONE : RANGE_BAD;
    if (span_u64(first, most, &asked->from) != 0 || (last.n && span_u64(last, most, &asked->to) != 0))
        return RANGE_BAD;
    return asked->from <= asked->to ? RANGE_ONE : RANGE_BAD;
}

enum range_asked range_of(const struct wire_request *r, struct range *asked)
{
    enum range_asked found = RANGE_NONE;
    bool weak = false;
    for (size_t i = 0; i < r->nfields; i++) {
        const struct http_field *f = &r->field[i];
        weak |= (span_ieq(f->name, SPAN("if-range")) || span_ieq(f->name, SPAN("if_range"))) &&
                span_starts(f->value, SPAN("W/"));
        if (!is_range(r, f))
            continue;
        if (found != RANGE_NONE || parse(f->value, asked) != RANGE_ONE)
            return RANGE_BAD;
        found = RANGE_ONE;
    }
    return found == RANGE_ONE && weak ? RANGE_BAD : found;
}

struct span range_written(const struct wire_request *r)
{
    for (size_t i = 0; i < r->nfields; i++)
        if (is_range(r, &r->field[i]))
            return r->field[i].value;
    return SPAN_NONE;
}
