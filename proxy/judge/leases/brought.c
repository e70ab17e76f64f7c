#include "proxy/judge/leases/brought.h"

static void add(struct brought *s, struct span text)
{
    if (text.n > 0 && s->n < BROUGHT_TEXTS)
        s->text[s->n++] = text;
}

/* "Bearer {}": what stands for {}. */
static struct span unformat(struct span format, struct span v)
{
    size_t at = span_find(format, SPAN("{}"));
    if (at == format.n)
        return SPAN_NONE;
    struct span before = span_first(format, at), after = span_from(format, at + 2);
    if (v.n <= before.n + after.n || !span_starts(v, before) || !span_ends(v, after))
        return SPAN_NONE;
    return span_of(v.p + before.n, v.n - before.n - after.n);
}

/* Whichever of the usual ways a client has: a tool that knows its provider's API may use another than the policy. */
static void read_value(const struct credential *c, struct span v, struct arena *a, struct brought *s)
{
    struct span scheme, rest, user, password, own = c->basic ? SPAN_NONE : unformat(c->format, v);
    if (!span_cut(v, ' ', &scheme, &rest)) {
        add(s, own.n ? own : v);
        return;
    }
    rest = span_trim(rest);
    if (!span_ieq(scheme, SPAN("basic"))) {
        add(s, own.n ? own : rest);
        return;
    }
    size_t n = 0;
    uint8_t *pair = arena_alloc(a, rest.n + 1);
    if (pair == NULL || base64_decode(rest, pair, &n) != 0)
        return;
    span_cut(span_of(pair, n), ':', &user, &password);
    add(s, user);
    add(s, password);
}

/* name=value; other=value */
static void read_cookies(const struct credential *c, struct span v, struct brought *s)
{
    struct span one;
    bool found = false;
    while (v.n) {
        span_cut(v, ';', &one, &v);
        struct span own = unformat(c->format, span_trim(one));
        s->twice |= own.n > 0 && found;
        found |= own.n > 0;
        add(s, own);
    }
}

/* The only field of this name in which there is this; r->nfields: there is none, or more. */
static size_t only_field(const struct wire_request *r, struct span name, struct span value)
{
    size_t at = r->nfields, n = 0;
    for (size_t i = 0; i < r->nfields; i++)
        if (span_ieq(r->field[i].name, name) && span_eq(r->field[i].value, value)) {
            at = i;
            n++;
        }
    return n == 1 ? at : r->nfields;
}

/* A lease's id, as the id of a key. Some tools want a session token too, and are given the same text for it. */
static void read_claim(const struct wire_request *r, const struct credential *c, struct brought *s)
{
    if (sign_claim_read(r->field[s->field].value, &s->claim) != 0)
        return;
    add(s, s->claim.id);
    s->token = only_field(r, c->sign == SIGN_TC3 ? SPAN("X-TC-Token") : SPAN("X-Amz-Security-Token"), s->claim.id);
}

void brought_find(struct exchange *x, const struct credential *c, struct brought *out)
{
    const struct wire_request *r = &x->request;
    struct span name = c->header.n ? c->header : SPAN("Authorization");
    *out = (struct brought){.field = r->nfields, .token = r->nfields};
    if (c->certificate)
        return;
    if (slot_is_marked(c->slot)) {
        out->twice = x->nown > 1;
        add(out, x->own);
        return;
    }
    for (size_t i = 0; i < r->nfields; i++) {
        if (!span_ieq(r->field[i].name, name))
            continue;
        out->twice = out->field < r->nfields;
        out->field = i;
    }
    if (out->field == r->nfields)
        return;
    if (c->sign != SIGN_NONE && c->sign != SIGN_HMAC)
        read_claim(r, c, out);
    else if (c->slot == SLOT_COOKIE)
        read_cookies(c, r->field[out->field].value, out);
    else
        read_value(c, r->field[out->field].value, &x->arena, out);
}

static void take_out(struct wire_request *r, size_t at)
{
    if (at >= r->nfields)
        return;
    memmove(&r->field[at], &r->field[at + 1], (r->nfields - at - 1) * sizeof(r->field[0]));
    r->nfields--;
}

void brought_clear(struct wire_request *r, const struct brought *b)
{
    bool token = b->token < r->nfields;
    take_out(r, b->field);
    if (token)
        take_out(r, b->token > b->field ? b->token - 1 : b->token);
}
