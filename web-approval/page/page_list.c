/* The list: what waits, and what was decided lately. */
#include <stdio.h>
#include <stdlib.h>

#include "web-approval/deciding/deciding.h"
#include "web-approval/glance/glance.h"
#include "web-approval/groups/groups.h"
#include "web-approval/page/page.h"
#include "web-approval/people/people.h"
#include "web-approval/route.h"

enum { CARD_FACTS = 3, CARD_ARENA = 4 * 1024 * 1024 };

/* Where it goes, exactly; a row is one line high, or two, and the whole of it stands on the ticket's page. */
static void card_where(struct exchange *x, const struct ticket *t)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<p class=\"where mono\">");
    show_cut(out, t->method, 32);
    PUT(x, " ");
    show_host(out, t->host);
    page_port(x, t);
    show_cut(out, t->path, 160);
    if (t->has_query) {
        PUT(x, "?");
        show_cut(out, t->query, 80);
    }
    PUT(x, "</p>\n");
}

/* Is its sentence nothing but that? Then a row says it once. */
static bool says_where(struct exchange *x, const struct ticket *t)
{
    bool usual = t->port == (span_eq(t->scheme, SPAN("https")) ? 443 : 80);
    struct span port = usual ? SPAN("") : arena_printf(&x->arena, ":%llu", (unsigned long long)t->port);
    struct span where = arena_printf(&x->arena, "%.*s %.*s%.*s%.*s", SPAN_FMT(t->method), SPAN_FMT(t->host),
                                     SPAN_FMT(port), SPAN_FMT(t->path));

    return !t->has_query && where.p && span_eq(where, t->summary);
}

static void card_value(struct exchange *x, struct span name, struct span value)
{
    PUT(x, "<span>");
    show_cut(&x->out, name, 40);
    PUT(x, " <b>");
    if (value.n)
        show_cut(&x->out, value, 80);
    else
        PUT(x, "<i>empty</i>");
    PUT(x, "</b></span> ");
}

/* What it does in the first few values: those of the judge's facts, and of what no pack knows, of its body. */
static void card_matters(struct exchange *x, const struct json *facts, const struct glance *g)
{
    bool said = facts && facts->child;
    size_t n = 0, all = said ? facts->count : g ? g->values : 0;

    if (all == 0)
        return;
    PUT(x, "<p class=\"matters\">");
    for (const struct json *f = said ? facts->child : NULL; f && n < CARD_FACTS; f = f->next, n++)
        card_value(x, json_text(f, SPAN("label")), json_text(f, SPAN("value")));
    for (; !said && n < g->nsaid && n < CARD_FACTS; n++)
        card_value(x, span_of(g->name[n].c, g->name[n].n), span_of(g->value[n].c, g->value[n].n));
    if (all > n)
        (void)dynbuf_addf(&x->out, "<span>%zu more</span>", all - n);
    PUT(x, "</p>\n");
}

/* What is to be looked at twice before anything else; and what nobody could look at here. */
static void card_look(struct exchange *x, const struct ticket *t, const struct glance *g)
{
    if (g && g->flags) {
        PUT(x, "<p class=\"look\"><span class=\"warn\">");
        show_own(&x->out, g->blocks ? "cannot be approved" : "look twice");
        PUT(x, "</span> ");
        if (g->about.n) {
            PUT(x, "<b class=\"mono\">");
            show_cut(&x->out, span_of(g->about.c, g->about.n), 60);
            PUT(x, "</b>: ");
        }
        show_own(&x->out, g->first);
        if (g->shows.n) {
            PUT(x, " <q class=\"mono\">");
            show_cut(&x->out, span_of(g->shows.c, g->shows.n), 60);
            PUT(x, "</q>");
        }
        if (g->flags > 1)
            (void)dynbuf_addf(&x->out, ", and %zu more", g->flags - 1);
        PUT(x, "</p>\n");
    }
    if (g ? !g->read : t->body_size > 0) {
        PUT(x, "<p class=\"look\">Its body, ");
        show_size(&x->out, t->body_size);
        PUT(x, ", is read when you open it</p>\n");
    }
}

static void card_when(struct exchange *x, const struct ticket *t)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<p class=\"meta\">");
    page_asker_word(x, t);
    PUT(x, " ");
    people_looking_word(x, t);
    people_escalated_word(x, t);
    if (page_unusual(t)) {
        PUT(x, "<span><b>");
        show_own(out, page_unusual(t));
        PUT(x, "</b></span> ");
    }
    PUT(x, "<span>asked ");
    show_span_of_time(out, x->wall_ms > t->created_ms ? x->wall_ms - t->created_ms : 0);
    PUT(x, " ago");
    if (t->repeats > 0) {
        PUT(x, ", again ");
        show_count(out, t->repeats, "time");
    }
    PUT(x, "</span> ");
    page_expires(x, t, "");
    PUT(x, "</p>\n");
}

void page_card(struct exchange *x, const struct ticket *t)
{
    const struct glance *g = glance_of(x->desk, t);
    struct dynbuf *out = &x->out;
    struct arena a;

    arena_init(&a, CARD_ARENA);
    (void)dynbuf_addf(out, "<li class=\"card e-%s\" data-ticket=\"", deciding_is_grave(t) ? "grave" : "other");
    show_text(out, t->id);
    PUT(x, "\">\n<p class=\"kind\">");
    page_badge(out, t->effect);
    PUT(x, "</p>\n<div>\n<h3><a href=\"/tickets/");
    show_text(out, t->id);
    PUT(x, "\">");
    page_summary(x, t, 240);
    PUT(x, "</a></h3>\n");
    card_look(x, t, g);
    card_matters(x, json_parse(t->facts_json, &a), g);
    if (!says_where(x, t))
        card_where(x, t);
    PUT(x, "</div>\n");
    card_when(x, t);
    PUT(x, "</li>\n");
    arena_free(&a);
}

struct row {
    struct ticket t;
    uint64_t box_ms, kind_ms; /* when the first of its sandbox, and of its kind there, expires */
    bool told;                /* within a group */
};

/* A list that is made: x->step is both. */
struct waiting {
    struct glance_walk walk;
    struct row row[PAGE_WAITING];
    size_t n;
    struct desk_waits all; /* that are not shown, too */
    uint64_t pending;
    bool unread; /* the store could not be */
    struct err why;
};

/* A burst is one row: what differs in it stands on the page behind it, where it is decided. */
static void group_card(struct exchange *x, const struct waiting *all, const size_t *at, size_t n)
{
    const struct ticket *t = &all->row[at[0]].t;
    struct dynbuf *out = &x->out;
    size_t waits = 0, twice = 0;

    (void)dynbuf_addf(out, "<li class=\"card group e-%s\" data-ticket=\"", deciding_is_grave(t) ? "grave" : "other");
    for (size_t i = 0; i < n; i++) {
        show_own(out, i ? " " : "");
        show_text(out, all->row[at[i]].t.id);
        waits += all->row[at[i]].t.asker.waits;
        const struct glance *g = glance_of(x->desk, &all->row[at[i]].t);
        twice += g && g->flags;
    }
    PUT(x, "\">\n<p class=\"kind\">");
    page_badge(out, t->effect);
    PUT(x, "</p>\n<div>\n<h3><a href=\"/groups/");
    show_text(out, t->id);
    (void)dynbuf_addf(out, "\">%zu alike: ", n);
    page_summary(x, t, 240);
    PUT(x, "</a></h3>\n");
    if (twice)
        (void)dynbuf_addf(out, "<p class=\"look\"><span class=\"warn\">look twice</span> at %zu of them</p>\n",
                          twice);
    PUT(x, "<p class=\"matters\"><span>Open them to see what differs</span></p>\n");
    card_where(x, t);
    (void)dynbuf_addf(out, "</div>\n<p class=\"meta\"><span class=\"askers\">%zu of %zu agents wait</span> ", waits,
                      n);
    page_expires(x, t, "");
    PUT(x, "</p>\n</li>\n");
}

/* end: of the rows of its sandbox. */
static void one_or_group(struct exchange *x, struct waiting *all, size_t i, size_t end)
{
    size_t at[PAGE_WAITING] = {i}, n = 1;

    if (all->row[i].told)
        return;
    for (size_t j = i + 1; j < end && n < GROUP_ROWS; j++)
        if (!all->row[j].told && group_alike(&all->row[i].t, &all->row[j].t))
            at[n++] = j;
    if (n < GROUP_LEAST) {
        page_card(x, &all->row[i].t);
        return;
    }
    for (size_t j = 0; j < n; j++)
        all->row[at[j]].told = true;
    group_card(x, all, at, n);
}

/* All of a sandbox that wait; shown: of them, which may be all. */
static uint64_t of_sandbox(const struct desk_waits *w, struct span name, size_t shown)
{
    for (size_t i = 0; i < w->n; i++)
        if (span_eq(w->box[i].sandbox, name))
            return w->box[i].waiting > shown ? w->box[i].waiting : shown;
    return shown;
}

static void flood(struct exchange *x, uint64_t n, size_t shown)
{
    if (n > PAGE_OF_EACH)
        (void)dynbuf_addf(
            &x->out,
            "<p class=\"note\"><b>A flood.</b> The first %zu of %llu stand here; what is odd is easily "
            "missed in so many. <a href=\"/freeze\">Freezing writes</a> stops them while you look.</p>\n",
            shown, (unsigned long long)n);
    else if (n > shown)
        (void)dynbuf_addf(&x->out, "<p class=\"hint\">The first %zu of %llu stand here.</p>\n", shown,
                          (unsigned long long)n);
}

/* Rows stand under the sandbox that asks. */
static void by_sandbox(struct exchange *x, struct waiting *all)
{
    struct dynbuf *out = &x->out;
    size_t end;

    for (size_t i = 0; i < all->n; i = end) {
        struct span name = all->row[i].t.sandbox;
        for (end = i; end < all->n && span_eq(all->row[end].t.sandbox, name);)
            end++;
        PUT(x, "<section class=\"box\">\n<h2><a href=\"/sandboxes?name=");
        show_encoded(out, name);
        PUT(x, "\">");
        show_cut(out, name, 80);
        uint64_t n = of_sandbox(&all->all, name, end - i);
        (void)dynbuf_addf(out, "</a> <small>%llu waiting</small></h2>\n", (unsigned long long)n);
        flood(x, n, end - i);
        PUT(x, "<ul class=\"cards\">\n");
        for (size_t j = i; j < end; j++)
            one_or_group(x, all, j, end);
        PUT(x, "</ul>\n</section>\n");
    }
}

static int waiting_row(void *ctx, const struct ticket *t)
{
    struct waiting *all = ctx;

    if (all->n < PAGE_WAITING)
        all->row[all->n++] = (struct row){.t = *t};
    return 0;
}

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_kind(const void *a, const void *b)
{
    const struct ticket *x = &((const struct row *)a)->t, *y = &((const struct row *)b)->t;
    int c = span_cmp(x->sandbox, y->sandbox);

    if (c == 0)
        c = span_cmp(x->effect, y->effect);
    if (c == 0)
        c = span_cmp(x->op, y->op);
    return c ? c : span_cmp(x->host, y->host);
}

static int by_kind_and_time(const void *a, const void *b)
{
    int c = by_kind(a, b);

    return c ? c : order(((const struct row *)a)->t.expires_ms, ((const struct row *)b)->t.expires_ms);
}

/* What expires first comes first, with all of its sandbox, and there of its kind. */
static int by_urgency(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int c = order(x->box_ms, y->box_ms);

    if (c == 0)
        c = span_cmp(x->t.sandbox, y->t.sandbox);
    if (c == 0)
        c = order(x->kind_ms, y->kind_ms);
    return c ? c : by_kind_and_time(a, b);
}

static void sort(struct waiting *all)
{
    qsort(all->row, all->n, sizeof all->row[0], by_kind_and_time);
    for (size_t i = 0, end; i < all->n; i = end) { /* a sandbox */
        uint64_t box_ms = UINT64_MAX;
        for (end = i; end < all->n && span_eq(all->row[end].t.sandbox, all->row[i].t.sandbox); end++) {
            struct row *r = &all->row[end];
            r->kind_ms = end > i && by_kind(r, r - 1) == 0 ? r[-1].kind_ms : r->t.expires_ms;
            box_ms = r->kind_ms < box_ms ? r->kind_ms : box_ms;
        }
        for (size_t j = i; j < end; j++)
            all->row[j].box_ms = box_ms;
    }
    qsort(all->row, all->n, sizeof all->row[0], by_urgency);
}

struct recent {
    struct exchange *x;
    bool any;
};

static int recent_row(void *ctx, const struct ticket *t)
{
    struct recent *recent = ctx;
    struct exchange *x = recent->x;
    struct dynbuf *out = &x->out;

    if (!recent->any)
        PUT(x, "<section class=\"box\" id=\"lately\">\n<h2>Lately decided</h2>\n<ul class=\"rows\">\n");
    recent->any = true;
    PUT(x, "<li class=\"row\">");
    page_state(out, t->state);
    PUT(x, " <a href=\"/tickets/");
    show_text(out, t->id);
    PUT(x, "\">");
    page_summary(x, t, 160);
    PUT(x, "</a> <span class=\"meta\"><span>");
    show_cut(out, t->sandbox, 60);
    PUT(x, "</span>");
    if (t->decided_by.n) {
        PUT(x, " <span>by ");
        page_decider(x, t, 60);
        PUT(x, "</span>");
    }
    if (t->decided_ms) {
        PUT(x, " <span>");
        show_span_of_time(out, x->wall_ms > t->decided_ms ? x->wall_ms - t->decided_ms : 0);
        PUT(x, " ago</span>");
    }
    PUT(x, "</span></li>\n");
    return 0;
}

static void show_list(struct exchange *x)
{
    struct recent rows = {x, false};
    struct waiting *all = x->step;
    char title[64];

    (void)snprintf(title, sizeof(title), "%llu waiting", (unsigned long long)all->pending);
    page_begin(x, 200, "list", all->pending ? title : "Nothing waits");
    PUT(x, "<div class=\"title\"><h1>Waiting for a decision</h1></div>\n<div id=\"waiting\">\n");
    if (all->pending == 0)
        PUT(x, "<div class=\"empty\"><p>Nothing waits.</p><p class=\"meta\">When an agent asks for something that a "
               "rule holds, it stands here until somebody decides. What was decided is in the <a "
               "href=\"/history\">history</a>; try a request against the <a "
               "href=\"/policy\">policy</a>.</p></div>\n");
    by_sandbox(x, all);
    PUT(x, "</div>\n");
    if (!all->unread && all->n < all->pending)
        (void)dynbuf_addf(&x->out, "<p class=\"hint\">%zu of %llu are shown.</p>\n", all->n,
                          (unsigned long long)all->pending);
    if (!all->unread)
        all->unread = desk_store_lately(x->desk->store, PAGE_RECENT, &x->arena, recent_row, &rows, &all->why) != 0;
    if (rows.any)
        PUT(x, "</ul>\n<p><a class=\"quiet\" href=\"/history\">All that was decided</a></p>\n</section>\n");
    page_end(x);
    if (all->unread)
        reply_unable(x, &all->why);
}

/* What waits, in the order in which it stands there; each is glanced at before any is shown. */
static void list_body(struct exchange *x, uint64_t pending)
{
    struct waiting *all = arena_alloc(&x->arena, sizeof *all);
    const struct ticket **list = arena_alloc(&x->arena, PAGE_WAITING * sizeof *list);

    if (!all || !list) {
        page_problem(x, 503, "Not possible now", "There is no memory for this page.");
        return;
    }
    all->pending = pending;
    all->unread = desk_store_waiting(x->desk->store, PAGE_OF_EACH, PAGE_WAITING, &x->arena, &all->all, waiting_row,
                                     all, &all->why) != 0;
    sort(all);
    for (size_t i = 0; i < all->n; i++)
        list[i] = &all->row[i].t;
    all->walk = (struct glance_walk){.t = list, .n = all->n, .show = show_list};
    glance_walk(x, &all->walk);
}

void page_list(struct exchange *x)
{
    uint64_t pending;
    struct err e;

    if (!x->session) {
        page_problem(
            x, 403, "Sign in",
            "This page opens with a link that works once. `countersign up` printed one; `countersign signin` "
            "prints another.");
        return;
    }
    if (desk_store_pending(x->desk->store, &pending, &e) != 0)
        reply_unable(x, &e);
    else
        list_body(x, pending);
}
