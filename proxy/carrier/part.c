/* A part of an answer: asked for wider than the client did, searched, and cut to what was asked (range.h). */
#include "proxy/carrier/exchange.h"

static bool is_get(const struct exchange *x)
{
    return span_eq(x->f.request.method, SPAN("GET"));
}

enum walk_next part_ask(struct exchange *x, struct span *value)
{
    struct part *p = &x->part;
    *value = SPAN_NONE;
    p->sent[0] = '\0';
    if (scrub_is_empty(x->scrub.set))
        return WALK_NEXT;
    switch (range_of(&x->f.request, &p->asked)) {
    case RANGE_NONE: return WALK_NEXT;
    case RANGE_ONE: break;
    case RANGE_BAD:
        return carry_fail(x, "range-refused",
                          "several ranges, or one that is not of bytes, or If-Range with a weak validator: such an "
                          "answer cannot be searched for secrets");
    }
    p->wide = range_wider(&p->asked, scrub_reach(x->scrub.set));
    range_text(&p->wide, p->sent);
    *value = span_str(p->sent);
    return WALK_NEXT;
}

static enum walk_next bad(struct exchange *x)
{
    return carry_fail(x, "bad-answer", "the upstream's part is not the range that it was asked for");
}

/* One field of this name; none and several are both empty. */
static struct span only_field(const struct http_head *h, struct span name)
{
    struct span value = SPAN_NONE;
    unsigned n = 0;
    for (size_t i = 0; i < h->nfields; i++)
        if (span_ieq(h->field[i].name, name)) {
            value = h->field[i].value;
            n++;
        }
    return n == 1 ? value : SPAN_NONE;
}

enum walk_next part_begin(struct exchange *x, const struct http_head *h)
{
    struct part *p = &x->part;
    const struct http_field *coding = http_find(h, SPAN("content-encoding"));
    if (h->status != 206 || !is_get(x) || scrub_is_empty(x->scrub.set))
        return WALK_NEXT; /* also when it answers with all of it, as it may */
    if (p->sent[0] == '\0')
        return carry_fail(x, "bad-answer", "the upstream answers with a part though nobody asked for one");
    if (coding != NULL && !span_ieq(coding->value, SPAN("identity")))
        return carry_fail(x, "part-encoded", "a part of an encoded answer cannot be searched for secrets");
    p->fit = range_fit(&p->asked, &p->wide, only_field(h, SPAN("content-range")), &p->part);
    if (p->fit == RANGE_WRONG || (h->framing == HTTP_LENGTH && h->length != p->part.came))
        return bad(x);
    return WALK_NEXT;
}

void part_head(struct exchange *x, struct wire_answer *a)
{
    struct part *p = &x->part;
    if (p->fit == RANGE_WRONG)
        return;
    if (p->fit == RANGE_PAST) {
        a->status = x->status = 416;
        a->reason = SPAN("Range Not Satisfiable");
        a->nfields = 0;
    }
    size_t kept = 0;
    bool same = p->part.give == p->part.came;
    for (size_t i = 0; i < a->nfields; i++) {
        struct span name = a->field[i].name;
        /* Of the bytes of the wider part: they would prove what is handed on wrong. */
        bool gone = !same && (span_ieq(name, SPAN("content-digest")) || span_ieq(name, SPAN("content-md5")));
        if (!gone && !span_ieq(name, SPAN("content-range")))
            a->field[kept++] = a->field[i];
    }
    a->field[kept++] = (struct http_field){SPAN("Content-Range"), span_str(p->part.text)};
    a->nfields = kept;
    a->framing = HTTP_LENGTH;
    a->length = p->part.give;
    x->flows = a->length == 0;
}

void part_cut(struct exchange *x, size_t from)
{
    struct part *p = &x->part;
    size_t n = x->ready.n - from;
    if (p->fit == RANGE_WRONG)
        return;
    size_t skip = p->part.skip < n ? (size_t)p->part.skip : n;
    size_t give = p->part.give < n - skip ? (size_t)p->part.give : n - skip;
    p->part.skip -= skip;
    p->part.give -= give;
    if (skip && give)
        memmove(x->ready.p + from, x->ready.p + from + skip, give);
    explicit_bzero(x->ready.p + from + give, n - give);
    x->ready.n = from + give;
}
