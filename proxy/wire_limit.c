#include "proxy/wire_limit.h"

enum { RULE_BYTES = 256, MEASURE_BYTES = 8 * 1024 };

void wire_put_limits(struct dynbuf *b, const struct wire_limits *l)
{
    msg_put_u8(b, (uint8_t)l->n);
    for (size_t i = 0; i < l->n; i++) {
        const struct wire_limit *k = &l->limit[i];
        msg_put_span(b, k->rule);
        msg_put_span(b, k->measure);
        msg_put_u8(b, k->per);
        msg_put_u64(b, k->max);
        msg_put_u64(b, k->window_ms);
        msg_put_u64(b, k->amount);
        msg_put_u8(b, k->uncountable);
    }
}

int wire_get_limits(struct msg_in *m, struct wire_limits *l)
{
    size_t n = msg_get_u8(m);
    if (n > WIRE_LIMITS_MAX)
        m->bad = true;
    for (l->n = 0; !m->bad && l->n < n; l->n++) {
        struct wire_limit *k = &l->limit[l->n];
        k->rule = msg_get_span(m, RULE_BYTES);
        k->measure = msg_get_span(m, MEASURE_BYTES);
        k->per = msg_get_u8(m);
        k->max = msg_get_u64(m);
        k->window_ms = msg_get_u64(m);
        k->amount = msg_get_u64(m);
        k->uncountable = msg_get_bool(m);
        if (k->per > WIRE_PER_ALL || k->rule.n == 0 || k->measure.n == 0 || k->window_ms == 0)
            m->bad = true;
    }
    return m->bad ? -1 : 0;
}

void wire_put_over(struct dynbuf *b, const struct wire_over *o)
{
    msg_put_u8(b, (uint8_t)o->n);
    for (size_t i = 0; i < o->n; i++)
        msg_put_u8(b, o->past[i]);
    msg_put_u64(b, o->room_ms);
}

int wire_get_over(struct msg_in *m, struct wire_over *o)
{
    size_t n = msg_get_u8(m);
    if (n > WIRE_LIMITS_MAX)
        m->bad = true;
    for (o->n = 0; !m->bad && o->n < n; o->n++)
        o->past[o->n] = msg_get_bool(m);
    o->room_ms = msg_get_u64(m);
    return m->bad ? -1 : 0;
}
