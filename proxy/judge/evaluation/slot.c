#include "proxy/judge/evaluation/slot.h"

#include "common/log.h"
#include "policy/slot.h"
#include "proxy/judge/replies/refuse.h"

enum { FINDING_MAX = 24 * 1024 * 1024 }; /* a body taken apart */

static bool slot_of(const struct exchange *x, struct credential *c)
{
    const struct decision *d = &x->now.d;
    bool sends = d->verdict == VERDICT_ALLOW || d->verdict == VERDICT_HOLD;
    return sends && d->credential >= 0 && !x->judge->config.shadow &&
           policy_credential(x->now.image->policy, (size_t)d->credential, c) && slot_is_marked(c->slot);
}

bool slot_wants_body(const struct exchange *x)
{
    struct credential c;
    return slot_of(x, &c) && slot_in_body(c.slot);
}

static bool same(const struct request *r, const struct slotted *s)
{
    return span_eq(r->path, s->path) && r->has_query == s->has_query && span_eq(r->query, s->query) &&
           span_eq(r->body, s->body);
}

/* The request becomes the one with the mark. -1: no memory. */
static int put(struct exchange *x, const struct slotted *s)
{
    struct wire_request *r = &x->request;
    struct span body = body_bytes(x->body);
    x->own = arena_copy(&x->arena, s->own);
    x->nown = s->nown;
    r->path = arena_copy(&x->arena, s->path);
    r->query = arena_copy(&x->arena, s->query);
    r->has_query = s->has_query;
    if (r->path.n != s->path.n || r->query.n != s->query.n)
        return -1;
    if (span_eq(body, s->body))
        return 0;
    struct span with = arena_copy(&x->arena, s->body);
    body_unref(&x->body);
    x->body = with.n == s->body.n ? body_inline(with) : NULL;
    return x->body != NULL ? 0 : -1;
}

static enum walk_next without(struct exchange *x, const struct slotted *s)
{
    log_exchange(LOG_INFO, x->xid, "no place for the credential \"%.*s\": %s", SPAN_FMT(x->now.credential), s->why);
    return refuse(x, REFUSE_SLOT);
}

/* What leaves is decided, with the same credential or not at all. */
static enum walk_next decide(struct exchange *x, struct slotted *s)
{
    int credential = x->now.d.credential;
    evaluation_drop(&x->now);
    exchange_evaluate(x, &x->now);
    if (x->now.d.verdict == VERDICT_DENY || x->now.d.credential == credential)
        return WALK_NEXT;
    s->why = "with its mark in the request another rule decides, which sends another credential or none";
    return without(x, s);
}

enum walk_next slot_take(struct exchange *x)
{
    struct credential c;
    struct slotted s;
    struct arena a;
    enum walk_next next = WALK_NEXT;
    if (!slot_of(x, &c))
        return WALK_NEXT;
    arena_init(&a, FINDING_MAX);
    struct request r = exchange_asks(x);
    if (slot_find(&c, &r, &a, &s) != 0)
        next = without(x, &s);
    else if (!same(&r, &s))
        next = put(x, &s) != 0 ? WALK_FAIL : decide(x, &s);
    arena_free(&a);
    return next;
}

int slot_place(struct exchange *x, struct wire_forward *f)
{
    struct credential c;
    struct slotted s;
    struct arena a;
    if (!slot_of(x, &c))
        return 0;
    arena_init(&a, FINDING_MAX);
    struct request r = exchange_asks(x);
    int rc = slot_find(&c, &r, &a, &s);
    if (rc == 0 && !same(&r, &s))
        rc = -1;
    f->slot = c.slot;
    f->slot_at = (uint32_t)s.at;
    arena_free(&a);
    return rc;
}
