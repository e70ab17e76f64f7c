/* The list: what waits, and what was decided lately. */
#include <stdio.h>
#include <stdlib.h>

#include "web-approval/deciding/deciding.h"
#include "web-approval/groups/groups.h"
#include "web-approval/page/page.h"
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

/* What it does, from the judge's facts: the first few. */
static void card_facts(struct exchange *x, const struct json *list)
{
    size_t n = 0;

    if (!list || !list->child)
        return;
    PUT(x, "<p class=\"matters\">");
    for (const struct json *f = list->child; f && n < CARD_FACTS; f = f->next, n++) {
        PUT(x, "<span>");
        show_cut(&x->out, json_text(f, SPAN("label")), 40);
        PUT(x, " <b>");
        show_cut(&x->out, json_text(f, SPAN("value")), 80);
        PUT(x, "</b></span> ");
    }
    if (list->count > n)
        (void)dynbuf_addf(&x->out, "<span>%zu more</span>", list->count - n);
    PUT(x, "</p>\n");
}

static void card_when(struct exchange *x, const struct ticket *t, const struct reading *r)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<p class=\"meta\">");
    if (r->nflags)
        PUT(x, "<span class=\"warn\">look twice</span> ");
    page_expires(x, t, "");
    PUT(x, " ");
    page_asker_word(x, t);
    PUT(x, " <span>from <b>");
    show_cut(out, t->sandbox, 80);
    PUT(x, "</b></span> ");
    if (page_unusual(t)) {
        PUT(x, "<span><b>");
        show_own(out, page_unusual(t));
        PUT(x, "</b></span> ");
    }
    PUT(x, "<span>asked ");
    show_span_of_time(out, x->wall_ms > t->created_ms ? x->wall_ms - t->created_ms : 0);
    PUT(x, " ago</span> ");
    if (t->repeats > 0) {
        PUT(x, "<span>asked again ");
        show_count(out, t->repeats, "time");
        PUT(x, "</span> ");
    }
    PUT(x, "</p>\n");
}

/* Its head and facts are read here; the body, when it is opened. */
static void card(struct exchange *x, const struct ticket *t)
{
    struct dynbuf *out = &x->out;
    struct view v = {.t = *t};
    struct arena a;

    arena_init(&a, CARD_ARENA);
    page_read(x, &v, &a);

    (void)dynbuf_addf(out, "<li class=\"card e-%s\" data-ticket=\"", deciding_is_grave(t) ? "grave" : "other");
    show_text(out, t->id);
    PUT(x, "\">\n<p class=\"kind\">");
    page_badge(out, t->effect);
    PUT(x, "</p>\n<div>\n<h2><a href=\"/tickets/");
    show_text(out, t->id);
    PUT(x, "\">");
    page_summary(x, t, 240);
    PUT(x, "</a></h2>\n");
    if (v.r.nflags || !says_where(x, t))
        card_where(x, t);
    card_facts(x, v.asked.facts);
    PUT(x, "</div>\n");
    card_when(x, t, &v.r);
    PUT(x, "</li>\n");
    arena_free(&a);
}

struct waiting {
    struct ticket t[PAGE_WAITING];
    bool told[PAGE_WAITING]; /* within a group */
    size_t n;
};

/* A burst is one row: what differs in it stands on the page behind it, where it is decided. */
static void group_card(struct exchange *x, const struct waiting *all, const size_t *at, size_t n)
{
    const struct ticket *t = &all->t[at[0]];
    struct dynbuf *out = &x->out;
    size_t waits = 0;

    (void)dynbuf_addf(out, "<li class=\"card group e-%s\" data-ticket=\"", deciding_is_grave(t) ? "grave" : "other");
    for (size_t i = 0; i < n; i++) {
        show_own(out, i ? " " : "");
        show_text(out, all->t[at[i]].id);
        waits += all->t[at[i]].asker.waits;
    }
    PUT(x, "\">\n<p class=\"kind\">");
    page_badge(out, t->effect);
    PUT(x, "</p>\n<div>\n<h2><a href=\"/groups/");
    show_text(out, t->id);
    (void)dynbuf_addf(out, "\">%zu alike: ", n);
    page_summary(x, t, 240);
    PUT(x, "</a></h2>\n");
    card_where(x, t);
    PUT(x, "<p class=\"matters\"><span>Open them to see what differs</span></p>\n</div>\n<p class=\"meta\">");
    page_expires(x, t, "");
    (void)dynbuf_addf(out, " <span class=\"askers\">%zu of %zu agents wait</span> <span>from <b>", waits, n);
    show_cut(out, t->sandbox, 80);
    PUT(x, "</b></span></p>\n</li>\n");
}

static void one_or_group(struct exchange *x, struct waiting *all, size_t i)
{
    size_t at[PAGE_WAITING] = {i}, n = 1;

    if (all->told[i])
        return;
    for (size_t j = i + 1; j < all->n && n < GROUP_ROWS; j++)
        if (!all->told[j] && group_alike(&all->t[i], &all->t[j]))
            at[n++] = j;
    if (n < GROUP_LEAST) {
        card(x, &all->t[i]);
        return;
    }
    for (size_t j = 0; j < n; j++)
        all->told[at[j]] = true;
    group_card(x, all, at, n);
}

static int waiting_row(void *ctx, const struct ticket *t)
{
    struct waiting *all = ctx;

    if (all->n < PAGE_WAITING)
        all->t[all->n++] = *t;
    return 0;
}

/* What expires first comes first. */
static int by_urgency(const void *a, const void *b)
{
    const struct ticket *x = a, *y = b;

    return x->expires_ms < y->expires_ms ? -1 : x->expires_ms > y->expires_ms;
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
        PUT(x, "<h2>Lately decided</h2>\n<ul class=\"rows\">\n");
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

static void list_body(struct exchange *x, uint64_t pending)
{
    const struct ticket_filter waiting = {.state = SPAN("pending"), .limit = PAGE_WAITING};
    const struct ticket_filter recent = {.state = SPAN("decided"), .limit = PAGE_RECENT};
    struct recent rows = {x, false};
    struct waiting *all = arena_alloc(&x->arena, sizeof *all);
    struct err e;

    if (all)
        memset(all->told, 0, sizeof all->told);
    if (!all) {
        page_problem(x, 503, "Not possible now", "There is no memory for this page.");
        return;
    }
    PUT(x, "<h1>Waiting for a decision</h1>\n");
    if (pending == 0)
        PUT(x, "<div class=\"empty\"><p>Nothing waits.</p><p class=\"meta\">When an agent asks for something that a "
               "rule "
               "holds, it stands here until somebody decides.</p></div>\n");
    PUT(x, "<ul class=\"cards\">\n");
    int rc = desk_store_tickets(x->desk->store, &waiting, &x->arena, waiting_row, all, &e);
    qsort(all->t, all->n, sizeof all->t[0], by_urgency);
    for (size_t i = 0; i < all->n; i++)
        one_or_group(x, all, i);
    PUT(x, "</ul>\n");
    if (pending > PAGE_WAITING)
        (void)dynbuf_addf(&x->out, "<p class=\"meta\">The newest %d of %llu are shown.</p>\n", PAGE_WAITING,
                          (unsigned long long)pending);
    if (rc == 0)
        rc = desk_store_tickets(x->desk->store, &recent, &x->arena, recent_row, &rows, &e);
    if (rows.any)
        PUT(x, "</ul>\n<p><a class=\"quiet\" href=\"/history\">All that was decided</a></p>\n");
    page_end(x);
    if (rc != 0)
        reply_unable(x, &e);
}

void page_list(struct exchange *x)
{
    char title[64];
    uint64_t pending;
    struct err e;

    if (!x->session) {
        page_problem(
            x, 403, "Sign in",
            "This page opens with a link that works once. `countersign up` printed one; `countersign signin` "
            "prints another.");
        return;
    }
    if (desk_store_pending(x->desk->store, &pending, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    (void)snprintf(title, sizeof(title), "%llu waiting", (unsigned long long)pending);
    page_begin(x, 200, "list", pending ? title : "Nothing waits");
    list_body(x, pending);
}
