/* A group's page: what they have in common, a table of what differs, one form. */
#include <stdio.h>

#include "web-approval/deciding/deciding.h"
#include "web-approval/groups/groups.h"
#include "web-approval/route.h"

enum { COMMON_SHOWN = 60, COMMON_VALUE = 240, NAME_SHOWN = 80, ID_SHOWN = 10 };

static void head(struct exchange *x, const struct group *g)
{
    const struct ticket *t = &g->row[0].t;
    struct dynbuf *out = &x->out;
    size_t waits = 0;

    for (size_t i = 0; i < g->n; i++)
        waits += g->row[i].t.asker.waits;
    (void)dynbuf_addf(out, "<p class=\"back\"><a href=\"/\">All that waits</a></p>\n<div class=\"title%s\">\n",
                      deciding_is_grave(t) ? " grave" : "");
    (void)dynbuf_addf(out,
                      "<p class=\"asker waits\"><b>%zu of %zu agents wait</b>: of these a yes sends the request "
                      "now, of the others when they ask again.</p>\n<p class=\"kind\">",
                      waits, g->n);
    page_badge(out, t->effect);
    (void)dynbuf_addf(out, "</p>\n<h1>%zu requests alike: ", g->n);
    page_summary(x, t, 240);
    PUT(x, "</h1>\n<p class=\"meta\"><span>asked by <b>");
    show_cut(out, t->sandbox, 80);
    PUT(x, "</b></span> <span>held by <b>");
    show_cut(out, t->rule_id.n ? t->rule_id : t->code, 80);
    PUT(x, "</b></span> <span>credential <b>");
    t->credential.n ? show_cut(out, t->credential, 80) : show_own(out, "none");
    PUT(x, "</b></span></p>\n</div>\n");
    if (g->full)
        (void)dynbuf_addf(out,
                          "<p class=\"note\">There are more than the %d of this table; they are on the list when "
                          "these are decided.</p>\n",
                          GROUP_ROWS);
}

static bool differs(const struct group *g, struct span name)
{
    for (size_t c = 0; c < g->table.ncolumns; c++)
        if (span_eq(g->table.name[c], name))
            return true;
    return false;
}

static size_t common_row(struct exchange *x, const struct group *g, struct span name, struct span value, size_t n)
{
    if (differs(g, name))
        return n;
    if (n < COMMON_SHOWN) {
        PUT(x, "<div><dt>");
        show_cut(&x->out, name.n ? name : SPAN("(all of it)"), NAME_SHOWN);
        PUT(x, "</dt><dd class=\"mono\">");
        show_cut(&x->out, value, COMMON_VALUE);
        PUT(x, "</dd></div>\n");
    }
    return n + 1;
}

static void common(struct exchange *x, const struct group *g)
{
    const struct view *v = &g->row[0];
    const struct json *list = v->asked.facts;
    size_t n = 0;

    PUT(x, "<section aria-labelledby=\"common\">\n<h2 id=\"common\">The same in all of them</h2>\n"
           "<div class=\"url mono\"><b class=\"method\">");
    show_cut(&x->out, v->t.method, 32);
    PUT(x, "</b> ");
    show_host(&x->out, v->t.host);
    page_port(x, &v->t);
    if (!differs(g, SPAN("Path")))
        show_cut(&x->out, v->t.path, COMMON_VALUE);
    PUT(x, "</div>\n<dl class=\"fields\">\n");
    for (const struct json *f = list ? list->child : NULL; f; f = f->next)
        n = common_row(x, g, json_text(f, SPAN("label")), json_text(f, SPAN("value")), n);
    for (size_t i = 0; i < v->r.nsaid; i++)
        n = common_row(x, g, v->r.said[i].name, v->r.said[i].value, n);
    PUT(x, "</dl>\n");
    if (n > COMMON_SHOWN)
        (void)dynbuf_addf(&x->out, "<p class=\"note\">And %zu more: open one of them.</p>\n", n - COMMON_SHOWN);
    PUT(x, "</section>\n");
}

static bool is_odd(const struct group *g, size_t i)
{
    for (size_t c = 0; c < g->table.nodd; c++)
        if (g->table.cell[i][c].odd)
            return true;
    return false;
}

static void cell(struct exchange *x, const struct group *g, size_t i, size_t c)
{
    const struct table_cell *cell = &g->table.cell[i][c];
    struct dynbuf *out = &x->out;

    (void)dynbuf_addf(out, "<td class=\"mono%s\"><span class=\"label narrow\">", cell->odd ? " odd" : "");
    show_cut(out, g->table.name[c], NAME_SHOWN);
    PUT(x, " </span>");
    if (cell->odd)
        PUT(x, "<b>");
    if (!cell->value.p)
        PUT(x, "<i>nothing</i>");
    else if (cell->value.n == 0)
        PUT(x, "<i>empty</i>");
    else
        show_cut(out, cell->value, GROUP_CELL);
    show_own(out, "");
    if (cell->odd)
        PUT(x, "</b> <small>odd one</small>");
    PUT(x, "</td>");
}

/* What is odd, or apt to deceive, is not among what a yes is offered for unasked. */
static void row(struct exchange *x, const struct group *g, size_t i)
{
    const struct view *v = &g->row[i];
    const char *alone = group_alone(g, i);
    bool odd = is_odd(g, i), chosen = !odd && !alone && v->r.nflags == 0;
    struct dynbuf *out = &x->out;

    (void)dynbuf_addf(out, "<tr%s data-ticket=\"", odd ? " class=\"odd\"" : "");
    show_text(out, v->t.id);
    (void)dynbuf_addf(out, "\"><td class=\"pick\"><label><input type=\"checkbox\" name=\"r%zu\" value=\"1\"%s> ", i,
                      chosen ? " checked" : "");
    (void)dynbuf_addf(out, "<span class=\"count\">%zu</span></label></td><td><a class=\"mono\" href=\"/tickets/",
                      i + 1);
    show_text(out, v->t.id);
    PUT(x, "\">");
    show_cut(out, span_first(v->t.id, ID_SHOWN), ID_SHOWN);
    PUT(x, "</a> ");
    page_asker_word(x, &v->t);
    if (v->r.nflags > g->row[0].r.nflags || (i == 0 && v->r.nflags))
        PUT(x, " <span class=\"warn\">look twice</span>");
    if (alone)
        (void)dynbuf_addf(out, "<br><small>A yes only on its own page: %s.</small>", alone);
    PUT(x, "</td>");
    for (size_t c = 0; c < g->table.ncolumns; c++)
        cell(x, g, i, c);
    PUT(x, "</tr>\n");
}

static void table(struct exchange *x, const struct group *g)
{
    PUT(x,
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"A row for each\">\n<table class=\"group\">\n"
        "<thead><tr><th scope=\"col\">Pick</th><th scope=\"col\">Request</th>");
    for (size_t c = 0; c < g->table.ncolumns; c++) {
        PUT(x, "<th scope=\"col\" class=\"mono\">");
        show_cut(&x->out, g->table.name[c].n ? g->table.name[c] : SPAN("(all of it)"), NAME_SHOWN);
        PUT(x, "</th>");
    }
    PUT(x, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < g->n; i++)
        row(x, g, i);
    PUT(x, "</tbody>\n</table>\n</div>\n");
    if (g->table.more)
        PUT(x, "<p class=\"note\">They differ in more than a table holds: each is approved on its own page.</p>\n");
}

/* What was shown, in order: "ID.DIGEST,..."; a "-" before those that were not offered for a yes. */
static struct span rows_text(struct exchange *x, const struct group *g)
{
    struct dynbuf b;

    dynbuf_init(&b, GROUP_FORM);
    for (size_t i = 0; i < g->n; i++) {
        char digest[2 * DIGEST_BYTES + 1] = "";
        if (g->row[i].t.digest.n == DIGEST_BYTES)
            hex_text(g->row[i].t.digest, digest);
        (void)dynbuf_addf(&b, "%s%s%.*s.%s", i ? "," : "", group_alone(g, i) ? "-" : "", SPAN_FMT(g->row[i].t.id),
                          digest);
    }
    struct span out = dynbuf_ok(&b) ? arena_copy(&x->arena, dynbuf_span(&b)) : SPAN_NONE;
    dynbuf_free(&b);
    return out;
}

static void form(struct exchange *x, const struct group *g)
{
    struct span rows = rows_text(x, g);
    char mark[GUARD_MARK_TEXT + 1];
    bool needed = false;

    for (size_t i = 0; i < g->n; i++)
        needed |= g->row[i].t.reason_required;
    guard_mark(x->session, "group", x->arg, rows, x->now_ms, mark);
    PUT(x, "<form class=\"group\" method=\"post\" autocomplete=\"off\" action=\"/groups/");
    show_text(&x->out, x->arg);
    (void)dynbuf_addf(&x->out, "\">\n<input type=\"hidden\" name=\"mark\" value=\"%s\">\n", mark);
    PUT(x, "<input type=\"hidden\" name=\"rows\" value=\"");
    show_text(&x->out, rows);
    PUT(x, "\">\n<section aria-labelledby=\"differ\">\n<h2 id=\"differ\">What differs</h2>\n");
    if (g->table.ncolumns == 0)
        PUT(x, "<p>Nothing that could be compared.</p>\n");
    table(x, g);
    PUT(x,
        "</section>\n<section class=\"decide\" aria-labelledby=\"decide\">\n<h2 id=\"decide\">Your decision on those "
        "that are picked</h2>\n<div class=\"choice together\">\n<p>Each is decided as it stands above, by its own "
        "digest. What changed meanwhile is left as it is, and said.</p>\n<label for=\"words\">");
    show_own(&x->out, needed ? "Words, needed for a yes" : "Words");
    PUT(x, " <small>kept in the audit; of a no, told to the agent</small></label>\n"
           "<input id=\"words\" name=\"reason\" maxlength=\"300\">\n<div class=\"both\">\n"
           "<button class=\"yes arm\" name=\"verdict\" value=\"approve\">Approve those picked</button>\n"
           "<button class=\"no arm\" name=\"verdict\" value=\"deny\">Deny those picked</button>\n"
           "</div>\n</div>\n</section>\n</form>\n");
}

static void show(struct exchange *x, struct group *g)
{
    char title[64];

    (void)snprintf(title, sizeof(title), "%zu requests alike", g->n);
    page_begin(x, 200, "group", title);
    head(x, g);
    common(x, g);
    form(x, g);
    page_end(x);
}

void page_group(struct exchange *x)
{
    group_find(x, show);
}
