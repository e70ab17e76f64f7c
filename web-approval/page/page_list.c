/* The list: what waits, and what was decided lately. */
#include <stdio.h>

#include "web-approval/page/page.h"
#include "web-approval/route.h"

static void card_where(struct exchange *x, const struct ticket *t)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<p class=\"where\"><span class=\"mono\">");
    show_cut(out, t->method, 32);
    PUT(x, " ");
    show_host(out, t->host);
    show_cut(out, t->path, 160);
    PUT(x, "</span></p>\n");
}

static void card_when(struct exchange *x, const struct ticket *t)
{
    struct dynbuf *out = &x->out;

    PUT(x, "<p class=\"meta\"><span>from <b>");
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
    page_expires(x, t, "");
    PUT(x, "</p>\n");
}

static int waiting_card(void *ctx, const struct ticket *t)
{
    struct exchange *x = ctx;
    struct dynbuf *out = &x->out;

    (void)dynbuf_addf(out, "<li class=\"card e-%s\" data-ticket=\"",
                      span_eq(t->effect, SPAN("delete")) ? "delete" : "other");
    show_text(out, t->id);
    PUT(x, "\">\n<p class=\"kind\">");
    page_badge(out, t->effect);
    PUT(x, "</p>\n<h2><a href=\"/tickets/");
    show_text(out, t->id);
    PUT(x, "\">");
    page_summary(x, t, 240);
    PUT(x, "</a></h2>\n");
    card_where(x, t);
    card_when(x, t);
    PUT(x, "</li>\n");
    return 0;
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
    struct err e;

    PUT(x, "<h1>Waiting for a decision</h1>\n");
    if (pending == 0)
        PUT(x, "<div class=\"empty\"><p>Nothing waits.</p><p class=\"meta\">When an agent asks for something that a "
               "rule "
               "holds, it stands here until somebody decides.</p></div>\n");
    PUT(x, "<ul class=\"cards\">\n");
    int rc = desk_store_tickets(x->desk->store, &waiting, &x->arena, waiting_card, x, &e);
    PUT(x, "</ul>\n");
    if (pending > PAGE_WAITING)
        (void)dynbuf_addf(&x->out, "<p class=\"meta\">The newest %d of %llu are shown.</p>\n", PAGE_WAITING,
                          (unsigned long long)pending);
    if (rc == 0)
        rc = desk_store_tickets(x->desk->store, &recent, &x->arena, recent_row, &rows, &e);
    if (rows.any)
        PUT(x, "</ul>\n");
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
