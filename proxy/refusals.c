#include "proxy/refusals.h"

#include <stdio.h>

static size_t row_of(struct refusals *r, struct span listener, struct span code)
{
    for (size_t i = 0; i < r->n; i++)
        if (span_eq(span_str(r->row[i].listener), listener) && span_eq(span_str(r->row[i].code), code))
            return i;
    /* The last row is for those who find none. */
    if (r->n >= REFUSALS_MAX - 1) {
        listener = code = SPAN("other");
        if (r->n == REFUSALS_MAX)
            return REFUSALS_MAX - 1;
    }
    size_t i = r->n++;
    snprintf(r->row[i].listener, REFUSALS_NAME, "%.*s", SPAN_FMT(listener));
    snprintf(r->row[i].code, REFUSALS_NAME, "%.*s", SPAN_FMT(code));
    r->row[i].count = 0;
    return i;
}

void refusals_count(struct refusals *r, struct span listener, struct span code, uint64_t more)
{
    if (more == 0)
        return;
    size_t i = row_of(r, span_first(listener, REFUSALS_NAME - 1), span_first(code, REFUSALS_NAME - 1));
    r->row[i].count = more > UINT64_MAX - r->row[i].count ? UINT64_MAX : r->row[i].count + more;
}

void wire_put_refusals(struct dynbuf *b, const struct refusals *r)
{
    msg_put_u16(b, (uint16_t)r->n);
    for (size_t i = 0; i < r->n; i++) {
        msg_put_span(b, span_str(r->row[i].listener));
        msg_put_span(b, span_str(r->row[i].code));
        msg_put_u32(b, r->row[i].count > UINT32_MAX ? UINT32_MAX : (uint32_t)r->row[i].count);
    }
}

static bool is_word(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '-' && c != '.' && c != '_')
            return false;
    }
    return s.n > 0;
}

int wire_get_refusals(struct msg_in *m, struct span only, struct refusals *r)
{
    uint16_t n = msg_get_u16(m);
    for (uint16_t i = 0; i < n; i++) {
        struct span listener = msg_get_span(m, REFUSALS_NAME - 1), code = msg_get_span(m, REFUSALS_NAME - 1);
        uint32_t more = msg_get_u32(m);
        if (only.n > 0)
            listener = only;
        if (m->bad || !is_word(listener) || !is_word(code))
            return -1;
        refusals_count(r, listener, code, more);
    }
    return msg_end(m);
}
