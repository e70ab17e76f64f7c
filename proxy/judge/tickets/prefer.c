#include "proxy/judge/tickets/prefer.h"

enum { WAIT_MAX_S = 3600 };

/* The first of a list, up to this mark outside of a quoted text; false: it was the last one. */
static bool cut(struct span s, uint8_t mark, struct span *first, struct span *rest)
{
    bool quoted = false;
    for (size_t i = 0; i < s.n; i++) {
        if (quoted && s.p[i] == '\\')
            i++;
        else if (s.p[i] == '"')
            quoted = !quoted;
        else if (s.p[i] == mark && !quoted) {
            *first = span_first(s, i);
            *rest = span_from(s, i + 1);
            return true;
        }
    }
    *first = s;
    *rest = SPAN_NONE;
    return false;
}

struct said {
    bool async, wait, other;
    uint64_t seconds;
};

/* token [ = word ] and parameters, of which none means anything here. */
static void preference(struct span one, struct said *to)
{
    struct span name, value, parameters;
    (void)cut(one, ';', &name, &parameters);
    (void)span_cut(name, '=', &name, &value);
    name = span_trim(name);
    value = span_trim(value);
    if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
        value = span_of(value.p + 1, value.n - 2);
    if (span_ieq(name, SPAN("respond-async")) && value.n == 0)
        to->async = true;
    else if (span_ieq(name, SPAN("wait")) && !to->wait)
        to->wait = span_u64(value, WAIT_MAX_S, &to->seconds) == 0;
    else if (!span_ieq(name, SPAN("wait")))
        to->other = true;
}

static void list(struct span rest, struct said *to)
{
    struct span one;
    for (bool more = true; more;) {
        more = cut(rest, ',', &one, &rest);
        preference(one, to);
    }
}

bool prefer_is_ours(const struct http_field *f)
{
    struct said all = {.async = false};
    if (!span_ieq(f->name, SPAN("prefer")))
        return false;
    list(f->value, &all);
    return !all.other;
}

bool prefer_async(const struct wire_request *r, uint64_t *wait_ms)
{
    struct said all = {.async = false};
    for (size_t i = 0; i < r->nfields; i++)
        if (span_ieq(r->field[i].name, SPAN("prefer")))
            list(r->field[i].value, &all);
    *wait_ms = all.wait ? all.seconds * 1000 : 0;
    return all.async;
}
