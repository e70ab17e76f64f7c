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
    struct span scheme, rest, user, password;
    if (!span_cut(v, ' ', &scheme, &rest)) {
        add(s, v);
        return;
    }
    rest = span_trim(rest);
    if (!span_ieq(scheme, SPAN("basic"))) {
        struct span own = c->basic ? SPAN_NONE : unformat(c->format, v);
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

void brought_find(struct exchange *x, const struct credential *c, struct brought *out)
{
    const struct wire_request *r = &x->request;
    struct span name = c->header.n ? c->header : SPAN("Authorization");
    *out = (struct brought){.field = r->nfields};
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
    if (c->slot == SLOT_COOKIE)
        read_cookies(c, r->field[out->field].value, out);
    else
        read_value(c, r->field[out->field].value, &x->arena, out);
}

void brought_clear(struct wire_request *r, const struct brought *b)
{
    if (b->field >= r->nfields)
        return;
    memmove(&r->field[b->field], &r->field[b->field + 1], (r->nfields - b->field - 1) * sizeof(r->field[0]));
    r->nfields--;
}
