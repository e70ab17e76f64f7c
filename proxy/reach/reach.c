#include "proxy/reach/reach.h"

enum { LABEL_MAX = 63, NAME_MAX_BYTES = 253 };

int reach_next(struct span *rest, struct reach_rule *rule)
{
    struct span line;

    if (rest->n == 0)
        return 0;
    if (!span_cut(*rest, '\n', &line, rest) || line.n < 4 || line.p[2] != ' ' ||
        (line.p[0] != '+' && line.p[0] != '-') || (line.p[1] != 'n' && line.p[1] != 'a'))
        return -1;
    *rule = (struct reach_rule){line.p[0] == '+', line.p[1] == 'a', span_from(line, 3)};
    return rule->address || reach_name_ok(rule->what) ? 1 : -1;
}

bool reach_ok(struct span text)
{
    struct reach_rule r;
    size_t n = 0;
    int rc;

    while ((rc = reach_next(&text, &r)) == 1)
        n++;
    return rc == 0 && n <= REACH_RULES_MAX;
}

bool reach_name_ok(struct span name)
{
    size_t label = 0;

    if (span_starts(name, SPAN("*.")))
        name = span_from(name, 2);
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        if (!plain && (c != '.' || label == 0))
            return false;
        label = c == '.' ? 0 : label + 1;
        if (label > LABEL_MAX)
            return false;
    }
    return label > 0 && name.n <= NAME_MAX_BYTES;
}

static bool name_fits(struct span pattern, struct span host)
{
    if (host.n > 0 && host.p[host.n - 1] == '.') /* the root's dot names the same host */
        host.n--;
    if (!span_starts(pattern, SPAN("*.")))
        return span_ieq(pattern, host);
    struct span below = span_from(pattern, 1); /* with its dot */
    return host.n > below.n && span_ieq(span_from(host, host.n - below.n), below);
}

/* What its names say of the host, and what addresses there are to say more. */
struct by_name {
    bool denied, allows, named, ranges;
};

static bool look(struct span text, struct span host, struct by_name *o)
{
    struct reach_rule r;
    int rc;

    *o = (struct by_name){false};
    while ((rc = reach_next(&text, &r)) == 1) {
        bool fits = !r.address && name_fits(r.what, host);
        o->allows |= r.allows;
        o->named |= r.allows && fits;
        o->denied |= !r.allows && fits;
        o->ranges |= r.address;
    }
    return rc == 0;
}

enum reach_said reach_by_name(struct span text, struct span host)
{
    struct by_name o;

    if (!look(text, host, &o) || o.denied)
        return REACH_NO;
    if (o.ranges)
        return REACH_BY_ADDRESS;
    return !o.allows || o.named ? REACH_YES : REACH_NO;
}

bool reach_by_address(struct span text, struct span host, reach_fits *fits, const void *arg)
{
    struct by_name o;
    struct reach_rule r;
    bool allowed = false;

    if (!look(text, host, &o) || o.denied)
        return false;
    while (reach_next(&text, &r) == 1) {
        bool in = r.address && fits(r.what, arg);
        if (in && !r.allows)
            return false;
        allowed |= in;
    }
    return allowed || o.named || !o.allows;
}
