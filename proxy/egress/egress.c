#include "proxy/egress/egress.h"

void wire_put_egress(struct dynbuf *b, const struct wire_egress *e)
{
    msg_put_u8(b, e->whose);
    msg_put_span(b, e->name);
    msg_put_u64(b, e->epoch);
    for (size_t i = 0; i < EGRESS_MEASURES; i++)
        msg_put_u64(b, e->used[i]);
}

int wire_get_egress(struct msg_in *m, struct wire_egress *e)
{
    e->whose = msg_get_u8(m);
    e->name = msg_get_span(m, EGRESS_NAME_MAX);
    e->epoch = msg_get_u64(m);
    for (size_t i = 0; i < EGRESS_MEASURES; i++)
        e->used[i] = msg_get_u64(m);
    if (e->whose >= EGRESS_WHOSE || e->name.n == 0)
        m->bad = true;
    for (size_t i = 0; i < EGRESS_MEASURES; i++)
        if (e->used[i] > INT64_MAX) /* the store has no larger ones */
            m->bad = true;
    if (e->epoch > INT64_MAX)
        m->bad = true;
    return m->bad ? -1 : 0;
}

int egress_tenant_next(struct span *rest, struct egress_tenant *t)
{
    struct span line, word[4], left;
    uint64_t n[3];

    if (rest->n == 0)
        return 0;
    if (!span_cut(*rest, '\n', &line, rest))
        return -1;
    left = line;
    for (size_t i = 0; i < 4; i++)
        if (span_cut(left, ' ', &word[i], &left) != (i < 3))
            return -1;
    for (size_t i = 0; i < 3; i++)
        if (span_u64(word[i + 1], INT64_MAX, &n[i]) != 0)
            return -1;
    if (word[0].n == 0 || n[2] == 0)
        return -1;
    *t = (struct egress_tenant){.name = word[0], .most = {n[0], n[1]}, .per_ms = n[2]};
    return 1;
}
