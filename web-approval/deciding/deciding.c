#include "web-approval/deciding/deciding.h"

#include "web-approval/ask.h"
#include "web-approval/diffs/diffs.h"

struct deciding {
    struct view v;
    bool came; /* its body, or the word that there is none to be had */
    void *own;
    void (*then)(struct exchange *x, struct view *v);
};

void *deciding_own(const struct exchange *x)
{
    return ((const struct deciding *)x->step)->own;
}

static void body_came(struct exchange *x, struct frame *f)
{
    struct deciding *d = x->step;
    struct arena a;

    d->came = true;
    arena_init(&a, READING_ARENA);
    (void)page_take_body(x, f, &d->v);
    page_read(x, &d->v, &a);
    d->then(x, &d->v);
    arena_free(&a);
}

void deciding_read(struct exchange *x, const struct ticket *t, void *own,
                   void (*then)(struct exchange *x, struct view *v))
{
    struct deciding *d = arena_alloc(&x->arena, sizeof(*d));
    struct id id;

    if (!d || id_parse(t->id, &id) != 0) {
        reply_problem(x, 503, "Not possible now", "there is no memory to read this request with");
        return;
    }
    *d = (struct deciding){.v = {.t = *t}, .own = own, .then = then};
    x->step = d;
    if (t->body_size > 0)
        api_body_ask(x, &id, body_came);
    if (t->body_size > 0 && (d->came || x->status != 503))
        return;
    x->status = 0; /* without the ledger there is still something to say of it */
    body_came(x, NULL);
}

bool deciding_is_grave(const struct ticket *t)
{
    return span_eq(t->effect, SPAN("delete")) || span_eq(t->effect, SPAN("admin")) ||
           span_eq(t->effect, SPAN("spend"));
}

/* Somebody must type it, and see what they type. */
static bool can_be_typed(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] > 0x7e)
            return false;
    return s.n > 0 && s.n <= DECIDING_NAME_MAX && span_trim(s).n == s.n;
}

/* What stands behind the last c of it. */
static struct span behind_last(struct span s, char c)
{
    size_t at = s.n;

    while (at > 0 && s.p[at - 1] != c)
        at--;
    return span_from(s, at);
}

/* Both or neither: of two amounts none is the name. */
static void take_amount(struct span name, struct span value, struct span *found, size_t *n)
{
    if (!span_ieq(behind_last(name, '/'), SPAN("amount")) || !can_be_typed(value))
        return;
    *n += *n == 0 || !span_eq(*found, value);
    *found = value;
}

static struct span amount(const struct view *v)
{
    const struct json *list = v->asked.facts;
    struct span found = SPAN_NONE;
    size_t n = 0;

    for (const struct json *f = list ? list->child : NULL; f; f = f->next)
        take_amount(json_text(f, SPAN("label")), json_text(f, SPAN("value")), &found, &n);
    for (size_t i = 0; i < v->r.nsaid; i++)
        take_amount(v->r.said[i].name, v->r.said[i].value, &found, &n);
    return n == 1 ? found : SPAN_NONE;
}

struct span deciding_name(const struct view *v)
{
    const struct ticket *t = &v->t;
    size_t colon = span_index(t->resource, ':');
    struct span on = colon < t->resource.n ? span_from(t->resource, colon + 1) : t->resource, path = t->path, paid;

    if (!deciding_is_grave(t))
        return SPAN_NONE;
    if (span_eq(t->effect, SPAN("spend")) && (paid = amount(v)).n)
        return paid;
    if (can_be_typed(on) && !span_eq(on, SPAN("-")))
        return on;
    while (path.n > 0 && path.p[path.n - 1] == '/')
        path.n--;
    path = behind_last(path, '/');
    return can_be_typed(path) ? path : t->host;
}

/* The first thing that blocks it: the page lists them all. */
static const char *why_blocked(struct exchange *x, const struct reading *r)
{
    size_t i = 0;

    while (i < r->nflags && !r->flag[i].blocks)
        i++;
    struct span why = arena_printf(
        &x->arena, "what cannot be shown cannot be approved: %s. Deny it, or have it asked in another way",
        i < r->nflags ? r->flag[i].words : "it is not to be read");
    return why.p ? (const char *)why.p : "what cannot be shown cannot be approved";
}

const char *deciding_refuses(struct exchange *x, const struct view *v, struct span typed, unsigned *status)
{
    struct span name = deciding_name(v), why;
    const char *why_not;

    if (!v->there) {
        *status = 410;
        return "the body of this request cannot be had: it is no longer kept, or the ledger cannot use its store now";
    }
    if (v->r.blocks) {
        *status = 409;
        return why_blocked(x, &v->r);
    }
    if ((why_not = diffs_refuse(x->desk, &v->t)) != NULL) {
        *status = 409;
        return why_not;
    }
    if (reading_pictures(&v->r) > 0 && x->place != PLACE_PAGE) {
        *status = 409;
        return DECIDING_PICTURE ": its page is where they are shown; approve it there";
    }
    if (name.n == 0 || span_eq(span_trim(typed), name))
        return NULL;
    *status = 422;
    why = arena_printf(&x->arena, "%s: %s needs the name of what it is about with a yes, \"%.*s\"",
                       typed.n ? "that is another name" : "its name was not said",
                       span_eq(v->t.effect, SPAN("delete"))  ? "what deletes"
                       : span_eq(v->t.effect, SPAN("spend")) ? "what spends"
                                                             : "what changes who may do what",
                       SPAN_FMT(name));
    return why.p ? (const char *)why.p : "its name was not said";
}
