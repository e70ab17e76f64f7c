#include "web-approval/glance/glance.h"

#include <stdlib.h>
#include <unistd.h>

static struct glance *set_of(struct glances *all, struct span id, size_t *set)
{
    uint32_t hash = 2166136261U; /* FNV-1a */

    for (size_t i = 0; i < id.n; i++)
        hash = (hash ^ id.p[i]) * 16777619U;
    *set = hash % GLANCE_SETS;
    return all->kept[*set];
}

const struct glance *glance_of(const struct desk *d, const struct ticket *t)
{
    size_t set;

    if (!d->glances)
        return NULL;
    const struct glance *way = set_of(d->glances, t->id, &set);
    for (size_t i = 0; i < GLANCE_WAYS; i++)
        if (way[i].there && span_eq(span_of(way[i].id, ID_TEXT), t->id))
            return &way[i];
    return NULL;
}

static struct glance *place_for(struct desk *d, struct span id)
{
    size_t set;

    if (!d->glances)
        d->glances = calloc(1, sizeof *d->glances);
    if (!d->glances || id.n != ID_TEXT)
        return NULL;
    struct glance *way = set_of(d->glances, id, &set);
    return &way[d->glances->next[set]++ % GLANCE_WAYS];
}

void glance_forget(struct desk *d)
{
    free(d->glances);
    d->glances = NULL;
}

static void keep_text(struct glance_text *to, struct span s)
{
    s = span_first(s, GLANCE_TEXT);
    to->n = (uint8_t)s.n;
    for (size_t i = 0; i < s.n; i++)
        to->c[i] = s.p[i];
}

/* The first; what blocks comes before. */
static void keep_flag(struct glance *g, const struct reading *r)
{
    const struct flag *first = r->nflags ? &r->flag[0] : NULL;

    for (size_t i = 0; i < r->nflags && !first->blocks; i++)
        if (r->flag[i].blocks)
            first = &r->flag[i];
    if (!first)
        return;
    g->first = first->words;
    keep_text(&g->about, first->name);
    keep_text(&g->shows, first->value);
}

static void keep(struct glance *g, const struct view *v, bool read)
{
    const struct reading *r = &v->r;

    *g = (struct glance){.there = true, .read = read, .blocks = r->blocks, .flags = r->nflags + r->more};
    for (size_t i = 0; i < ID_TEXT; i++)
        g->id[i] = (char)v->t.id.p[i];
    keep_flag(g, r);
    g->values = r->values;
    for (; g->nsaid < r->nsaid && g->nsaid < GLANCE_SAID; g->nsaid++) {
        keep_text(&g->name[g->nsaid], r->said[g->nsaid].name);
        keep_text(&g->value[g->nsaid], r->said[g->nsaid].value);
    }
}

static void make(struct exchange *x, const struct ticket *t, struct span body, bool read)
{
    struct glance *g = place_for(x->desk, t->id);
    struct view v = {.t = *t, .bytes = body};
    struct arena a;

    if (!g)
        return;
    arena_init(&a, READING_ARENA);
    page_read(x, &v, &a);
    keep(g, &v, read);
    arena_free(&a);
}

static void next(struct exchange *x);

static void body_came(struct exchange *x, struct frame *f)
{
    struct glance_walk *w = x->step;
    const struct ticket *t = w->t[w->at++];
    struct body b;

    if (!f) { /* the ledger does not answer: nobody waits for it once more for each row */
        w->show(x);
        return;
    }
    if (api_body_read(f, &b) == 0) {
        if (b.bytes.n == t->body_size)
            make(x, t, b.bytes, true);
        if (b.fd >= 0)
            close(b.fd);
    }
    next(x);
}

/* The first whose body is to be asked for; false: there is none. */
static bool wanted(struct exchange *x, struct glance_walk *w, struct id *id)
{
    for (; w->at < w->n; w->at++) {
        const struct ticket *t = w->t[w->at];
        if (glance_of(x->desk, t))
            continue;
        if (t->body_size == 0 || t->body_size > GLANCE_BODY)
            make(x, t, SPAN_NONE, t->body_size == 0);
        else if (w->bytes + t->body_size <= GLANCE_BODIES && id_parse(t->id, id) == 0)
            return true;
    }
    return false;
}

static void next(struct exchange *x)
{
    struct glance_walk *w = x->step;
    struct id id;

    if (!wanted(x, w, &id)) {
        w->show(x);
        return;
    }
    size_t at = w->at;
    w->bytes += (size_t)w->t[at]->body_size;
    api_body_ask(x, &id, body_came);
    if (x->status == 503 && w->at == at) { /* it could not be asked: rows say that nobody looked */
        x->status = 0;
        dynbuf_reset(&x->out);
        w->show(x);
    }
}

void glance_walk(struct exchange *x, struct glance_walk *w)
{
    x->step = w;
    next(x);
}
