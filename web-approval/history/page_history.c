/* What was asked, and became of it. */
#include "web-approval/history/history.h"

#include <stdio.h>

#include "web-approval/route.h"

static const char *const states[] = {"pending",   "approved", "denied", "expired", "cancelled",
                                     "executing", "done",     "failed", "unknown"};

static void field(struct exchange *x, const char *name, const char *label, struct span value)
{
    (void)dynbuf_addf(&x->out,
                      "<div><label for=\"f-%s\">%s</label><input id=\"f-%s\" name=\"%s\" maxlength=\"%d\" value=\"",
                      name, label, name, name, HISTORY_WORDS);
    show_text(&x->out, value);
    PUT(x, "\"></div>\n");
}

static void form(struct exchange *x, const struct history_filter *f)
{
    PUT(x, "<form class=\"search\" method=\"get\" action=\"/history\" role=\"search\">\n");
    field(x, "q", "Words", f->text);
    PUT(x, "<div><label for=\"f-state\">State</label><select id=\"f-state\" name=\"state\"><option "
           "value=\"\">any</option>");
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        (void)dynbuf_addf(&x->out, "<option%s>%s</option>", span_eq(f->state, span_str(states[i])) ? " selected" : "",
                          states[i]);
    PUT(x, "</select></div>\n");
    field(x, "sandbox", "Sandbox", f->sandbox);
    field(x, "host", "Host", f->host);
    field(x, "by", "Decided by", f->by);
    PUT(x, "<div class=\"go\"><button>Search</button>");
    if (history_narrowed(f))
        PUT(x, " <a class=\"quiet\" href=\"/history\">Show all</a>");
    PUT(x, "</div>\n</form>\n");
}

struct rows {
    struct exchange *x;
    size_t n;
};

static void decision(struct exchange *x, const struct ticket *t)
{
    if (t->decided_by.n) {
        PUT(x, "<span>by <b>");
        page_decider(x, t, 60);
        PUT(x, "</b></span> ");
    }
    if (t->decided_reason.n) {
        PUT(x, "<span><q>");
        show_cut(&x->out, t->decided_reason, 120);
        PUT(x, "</q>");
        if (page_decider_untrusted(t))
            PUT(x, PAGE_UNTRUSTED);
        PUT(x, "</span> ");
    }
    if (t->has_outcome)
        (void)dynbuf_addf(&x->out, "<span>answered %llu</span> ", (unsigned long long)t->status);
}

static int row(void *ctx, const struct ticket *t)
{
    struct rows *rows = ctx;
    struct exchange *x = rows->x;
    struct dynbuf *out = &x->out;

    PUT(x, "<li class=\"row past\">");
    page_state(out, t->state);
    PUT(x, " <a href=\"/tickets/");
    show_text(out, t->id);
    PUT(x, "\">");
    page_summary(x, t, 160);
    PUT(x, "</a>\n<p class=\"meta\">");
    page_badge(out, t->effect);
    PUT(x, " <span>");
    show_cut(out, t->sandbox, 60);
    PUT(x, "</span> <span class=\"mono\">");
    show_host(out, t->host);
    page_port(x, t);
    PUT(x, "</span> ");
    decision(x, t);
    PUT(x, "<span>asked ");
    show_time(out, t->created_ms);
    PUT(x, "</span></p></li>\n");
    rows->n++;
    return 0;
}

static void ends(struct exchange *x, const struct history_filter *f, const struct rows *rows, struct span further)
{
    PUT(x, "<p class=\"pages\">");
    if (f->after.n) {
        PUT(x, "<a class=\"button\" href=\"/history");
        history_query(&x->out, f, SPAN_NONE);
        PUT(x, "\">Newest</a> ");
    }
    if (further.n) {
        PUT(x, "<a class=\"button\" href=\"/history");
        history_query(&x->out, f, further);
        (void)dynbuf_addf(&x->out, "\">%s</a> ", rows->n < f->limit ? "Look further back" : "Older");
    }
    if (rows->n) {
        PUT(x, "<a class=\"quiet\" download href=\"/history/export");
        history_query(&x->out, f, f->after);
        PUT(x, "\">Export as JSON lines</a>");
    }
    PUT(x, "</p>\n");
    if (further.n && rows->n < f->limit)
        (void)dynbuf_addf(&x->out,
                          "<p class=\"note\">These are out of %d requests; older ones are looked through next.</p>\n",
                          STORE_SEARCHED);
    if (rows->n)
        (void)dynbuf_addf(&x->out,
                          "<p class=\"meta\">The export begins with the first of this page and has up to %d; its "
                          "last line says where the next one begins.</p>\n",
                          HISTORY_EXPORTED);
}

void page_history(struct exchange *x)
{
    struct history_filter f;
    struct rows rows = {x, 0};
    struct span further = SPAN_NONE;
    struct err e;

    if (history_take(x, &f) != 0)
        return;
    page_begin(x, 200, "history", "History");
    PUT(x, "<h1>History</h1>\n");
    form(x, &f);
    PUT(x, "<ul class=\"rows\">\n");
    int rc = desk_store_history(x->desk->store, &f, &x->arena, row, &rows, &further, &e);
    PUT(x, "</ul>\n");
    if (rows.n == 0)
        (void)dynbuf_addf(&x->out, "<div class=\"empty\"><p>%s</p><p class=\"meta\">%s</p></div>\n",
                          history_narrowed(&f) || f.after.n ? "Nothing like that." : "Nothing was held yet.",
                          history_narrowed(&f) ? "Fewer words find more."
                                               : "What a rule holds stands here from the moment it is asked for.");
    ends(x, &f, &rows, further);
    page_end(x);
    if (rc != 0)
        reply_unable(x, &e);
}

/* A line each, as the API has them; no body is among it. */
static int line(void *ctx, const struct ticket *t)
{
    struct rows *rows = ctx;
    struct jsonw w;

    jsonw_begin(&w, &rows->x->out);
    api_ticket_json(&w, t, true);
    (void)dynbuf_add_byte(&rows->x->out, '\n');
    rows->n++;
    return 0;
}

void page_history_export(struct exchange *x)
{
    struct history_filter f;
    struct rows rows = {x, 0};
    struct span further = SPAN_NONE;
    struct jsonw w;
    struct err e;

    if (history_take(x, &f) != 0)
        return;
    f.limit = HISTORY_EXPORTED;
    reply_json(x, 200, &w);
    if (desk_store_history(x->desk->store, &f, &x->arena, line, &rows, &further, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    if (further.n) {
        jsonw_begin(&w, &x->out);
        jsonw_object(&w);
        jsonw_kv(&w, "after", further);
        jsonw_end_object(&w);
        (void)dynbuf_add_byte(&x->out, '\n');
    }
    x->type = "application/x-ndjson";
    (void)snprintf(x->download, sizeof(x->download), "history.jsonl");
}
