#include "web-approval/groups/groups.h"

#include "policy/decision.h"

#include <stdlib.h>
#include <unistd.h>

#include "web-approval/deciding/deciding.h"

enum { FACTS_COMPARED = 200 };

bool group_alike(const struct ticket *a, const struct ticket *b)
{
    return span_eq(a->sandbox, b->sandbox) && span_eq(a->tenant, b->tenant) && span_eq(a->scheme, b->scheme) &&
           span_eq(a->host, b->host) && a->port == b->port && span_eq(a->method, b->method) &&
           span_eq(a->op, b->op) && span_eq(a->effect, b->effect) && span_eq(a->credential, b->credential) &&
           span_eq(a->rule_id, b->rule_id) && span_eq(a->code, b->code) && page_path_like(a->path, b->path);
}

static int found(void *ctx, const struct ticket *t)
{
    struct group *g = ctx;

    if (!group_alike(&g->row[0].t, t))
        return 0;
    g->full = g->n == GROUP_ROWS;
    if (!g->full)
        g->row[g->n++] = (struct view){.t = *t, .there = t->body_size == 0};
    return g->full;
}

static int by_age(const void *a, const void *b)
{
    const struct view *x = a, *y = b;

    return x->t.created_ms != y->t.created_ms ? (x->t.created_ms < y->t.created_ms ? -1 : 1)
                                              : span_cmp(x->t.id, y->t.id);
}

struct finding {
    struct group g;
    void (*show)(struct exchange *x, struct group *g);
};

static void show_all(struct exchange *x)
{
    struct finding *f = x->step;
    const struct reading *rows[GROUP_ROWS];
    struct arena a;

    arena_init(&a, READING_ARENA);
    for (size_t i = 0; i < f->g.n; i++) {
        page_read(x, &f->g.row[i], &a);
        rows[i] = &f->g.row[i].r;
    }
    reading_table(rows, f->g.n, &f->g.table);
    f->show(x, &f->g);
    arena_free(&a);
}

static void next_body(struct exchange *x);

static void body_came(struct exchange *x, struct frame *f)
{
    struct group *g = &((struct finding *)x->step)->g;

    (void)page_take_body(x, f, &g->row[g->asked++]);
    next_body(x);
}

static void next_body(struct exchange *x)
{
    struct group *g = &((struct finding *)x->step)->g;
    struct id id;

    while (g->asked < g->n && (g->row[g->asked].there || g->row[g->asked].t.body_size > GROUP_BODY ||
                               id_parse(g->row[g->asked].t.id, &id) != 0))
        g->asked++;
    if (g->asked == g->n) {
        show_all(x);
        return;
    }
    api_body_ask(x, &id, body_came);
}

void group_find(struct exchange *x, void (*show)(struct exchange *x, struct group *g))
{
    struct finding *f = arena_alloc(&x->arena, sizeof *f);
    struct ticket t;
    struct err e;

    if (!f) {
        page_problem(x, 503, "Not possible now", "There is no memory for this page.");
        return;
    }
    if (api_ticket_find(x, &t) != 0)
        return;
    if (!span_eq(t.state, SPAN("pending"))) {
        page_problem(x, 410, "Decided",
                     "The first of these requests waits no more. Those that still do are on the list.");
        return;
    }
    memset(f, 0, sizeof *f);
    f->show = show;
    f->g.row[0] = (struct view){.t = t, .there = t.body_size == 0};
    f->g.n = 1;
    x->step = f;
    if (desk_store_like(x->desk->store, &t, true, STORE_LOOKED_BACK, &x->arena, found, &f->g, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    qsort(f->g.row, f->g.n, sizeof f->g.row[0], by_age);
    next_body(x);
}

/* All of its body stands in the values that were compared. */
static bool is_compared(const struct view *v, const struct view *first)
{
    if (v->asked.facts && v->asked.facts->count > FACTS_COMPARED)
        return false;
    if (v->t.body_size == 0 || (v->t.body_sha256.n && span_eq(v->t.body_sha256, first->t.body_sha256)))
        return true;
    return v->r.kind && !v->r.together && v->r.nsaid == v->r.values && v->r.nsaid < READING_ROWS;
}

const char *group_alone(const struct group *g, size_t i)
{
    const struct view *v = &g->row[i];

    if (v->t.body_size > GROUP_BODY)
        return "its body is long";
    if (!v->there)
        return "its body is not to be had now";
    if (v->r.blocks)
        return "what is in it cannot be shown";
    if (v->t.diff == DIFF_REQUIRED)
        return "what it changes is on its own page";
    if (v->r.npictures > 0)
        return "its pictures and packages are on its own page";
    if (deciding_is_grave(&v->t))
        return "its name has to be typed";
    if (g->table.more > 0)
        return "they differ in more than this table has";
    for (size_t c = 0; c < g->table.ncolumns; c++)
        if (g->table.cell[i][c].value.n > GROUP_CELL)
            return "a value of it is too long for this table";
    return is_compared(v, &g->row[0]) ? NULL : "not all of its body is in this table";
}
