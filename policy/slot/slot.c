#include "policy/slot.h"

#include "policy/body/body.h"

enum { ONE_MAX = 16 * 1024 * 1024 }; /* of what one parameter may be to some server */

struct finding {
    const struct credential *c;
    struct arena *a;
    struct slotted *out;
};

static int none(struct finding *f, const char *why)
{
    f->out->why = why;
    return -1;
}

/* The mark between what stands before it and behind it. */
static int put_mark(struct finding *f, struct span before, struct span after, struct span *text)
{
    struct span name = f->c->name;
    uint8_t *to = arena_alloc(f->a, before.n + slot_mark_bytes(name) + after.n);
    if (to == NULL)
        return none(f, "there is no memory for the request");
    if (before.n)
        memcpy(to, before.p, before.n);
    f->out->at = before.n;
    to[before.n] = '~';
    memcpy(to + before.n + 1, name.p, name.n);
    to[before.n + 1 + name.n] = '~';
    if (after.n)
        memcpy(to + before.n + slot_mark_bytes(name), after.p, after.n);
    *text = span_of(to, before.n + slot_mark_bytes(name) + after.n);
    return 0;
}

/* ---- parameters, of a query or a form ---- */

enum whose { WHOSE_UNCLEAR = 0, WHOSE_OTHERS, WHOSE_OWN };

/* One parameter, as it came: is it the slot's, to every server or to none? */
static enum whose whose(struct finding *f, struct span one)
{
    struct params ps = {.looked = false};
    struct arena a;
    enum whose is = WHOSE_UNCLEAR;
    arena_init(&a, ONE_MAX);
    params_of_query(&ps, one, SPAN_NONE, &a);
    if (!ps.failed && !params_have(&ps, f->c->where)) {
        is = WHOSE_OTHERS;
    } else if (!ps.failed && ps.n == 1 && span_eq(ps.v[0].name, f->c->where)) {
        f->out->own = arena_copy(f->a, ps.v[0].value);
        f->out->nown++;
        is = WHOSE_OWN;
    }
    arena_free(&a);
    return is;
}

/* The others as they came, and behind them the slot's. */
static int in_parameters(struct finding *f, struct span text, struct span *with)
{
    struct span name = f->c->where, rest = text;
    uint8_t *to = arena_alloc(f->a, text.n + name.n + 2);
    size_t n = 0;
    if (to == NULL)
        return none(f, "there is no memory for the request");
    while (rest.n) {
        struct span one = span_first(rest, span_index(rest, '&'));
        rest = span_from(rest, one.n + 1);
        enum whose is = one.n ? whose(f, one) : WHOSE_OWN;
        if (is == WHOSE_UNCLEAR)
            return none(f, "some servers would take another parameter for the one that the credential goes into");
        if (is == WHOSE_OWN)
            continue;
        memcpy(to + n, one.p, one.n);
        n += one.n;
        to[n++] = '&';
    }
    memcpy(to + n, name.p, name.n);
    n += name.n;
    to[n++] = '=';
    return put_mark(f, span_of(to, n), SPAN_NONE, with);
}

static int in_query(struct finding *f, const struct request *r)
{
    if (path_hides_query(r->path))
        return none(f, "the path has an escaped '?', behind which some servers see a query");
    f->out->has_query = true;
    return in_parameters(f, r->query, &f->out->query);
}

/* ---- the path ---- */

static int in_path(struct finding *f, const struct request *r)
{
    struct span before = f->c->where, rest = span_from(r->path, before.n);
    size_t n = span_index(rest, '/');
    if (!span_starts(r->path, before) || n == 0)
        return none(f, "the path has no text in the place that the credential goes into");
    f->out->own = span_first(rest, n);
    f->out->nown = 1;
    return put_mark(f, before, span_from(rest, n), &f->out->path);
}

/* ---- the body ---- */

static int in_body(struct finding *f, const struct request *r)
{
    struct body_view v = {.looked = false};
    size_t at, n;
    body_look(&v, r, f->a);
    bool form = f->c->slot == SLOT_FORM;
    if (v.absent || v.is != &body_parsers[form ? COND_FORM : COND_JSON])
        return none(f, form ? "the body is no form beyond doubt" : "the body is no JSON beyond doubt");
    if (body_in_query(&v, r, v.is, f->c->where, f->a))
        return none(f, "the query has the place of the body that the credential goes into as well");
    if (form)
        return in_parameters(f, r->body, &f->out->body);
    if (body_json_string(&v, r->body, f->c->where, f->a, &at, &n, &f->out->own) != 0)
        return none(f, "the body has no text in the member that the credential goes into, or one that some servers "
                       "take for it");
    f->out->nown = 1;
    return put_mark(f, span_first(r->body, at), span_from(r->body, at + n), &f->out->body);
}

static int in_target(struct finding *f, const struct request *r)
{
    const struct slotted *out = f->out;
    if ((f->c->slot == SLOT_QUERY ? in_query(f, r) : in_path(f, r)) != 0)
        return -1;
    if (out->path.n + out->has_query + out->query.n > SLOT_TARGET_MAX)
        return none(f, "its path and query are longer than 8 KiB, which leaves no room for the credential");
    return 0;
}

int slot_find(const struct credential *c, const struct request *r, struct arena *a, struct slotted *out)
{
    struct finding f = {c, a, out};
    *out = (struct slotted){.path = r->path, .query = r->query, .body = r->body, .has_query = r->has_query};
    switch (c->slot) {
    case SLOT_QUERY:
    case SLOT_PATH: return in_target(&f, r);
    case SLOT_FORM:
    case SLOT_JSON: return in_body(&f, r);
    case SLOT_HEADER:
    case SLOT_COOKIE:
    case SLOT_KINDS: break;
    }
    return none(&f, "its slot is no part of a request that has to be found");
}
