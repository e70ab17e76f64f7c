/* The third choice on a ticket's page. */
#include <stdio.h>

#include "common/msg.h"
#include "web-approval/deciding/deciding.h"
#include "web-approval/grants/grants.h"
#include "web-approval/route.h"

enum { NAMES_SHOWN = 64, VALUE_SHOWN = 200, MINUTE = 60 * 1000 };

static void names(struct exchange *x, const char *before, const struct json *list, const char *none)
{
    size_t n = 0;

    PUT(x, "<li>");
    if (!list || list->count == 0) {
        show_own(&x->out, none);
        PUT(x, "</li>\n");
        return;
    }
    show_own(&x->out, before);
    for (const struct json *i = list->child; i && n < NAMES_SHOWN; i = i->next, n++) {
        const struct json *value = json_get(i, SPAN("value"));
        (void)dynbuf_add(&x->out, n ? SPAN(", <b class=\"mono\">") : SPAN(" <b class=\"mono\">"));
        show_text(&x->out, json_text(i, SPAN("name")));
        PUT(x, "</b> ");
        if (value) {
            PUT(x, "exactly <q class=\"mono\">");
            show_cut(&x->out, value->text, VALUE_SHOWN);
            PUT(x, "</q>");
        } else {
            PUT(x, "(any)");
        }
    }
    PUT(x, "; no other name</li>\n");
}

void page_grant_covers(struct exchange *x, struct span method, struct span scheme, struct span host, uint64_t port,
                       struct span shape_json)
{
    const struct json *shape = json_parse(shape_json, &x->arena);
    const struct ticket at = {.scheme = scheme, .port = port};
    struct span body = json_text(shape, SPAN("body"));

    PUT(x, "<ul class=\"covers\">\n<li><b class=\"mono\">");
    show_cut(&x->out, method, HTTP_METHOD_MAX);
    PUT(x, "</b> <span class=\"mono\">");
    show_text(&x->out, scheme);
    PUT(x, "://");
    show_text(&x->out, host);
    page_port(x, &at);
    show_text(&x->out, json_text(shape, SPAN("path")));
    PUT(x, "</span></li>\n");
    names(x, "In its query:", json_get(shape, SPAN("query")), "Nothing in its query");
    names(x,
          span_eq(body, SPAN("JSON")) ? "In its body, JSON:" : "In its body, a form:", json_get(shape, SPAN("names")),
          body.n ? "Nothing in its body" : "No body");
    PUT(x, "</ul>\n");
}

/* Those of the usual steps that are below the most, and the most. */
static void choose(struct exchange *x, const char *name, const uint64_t *steps, size_t n, uint64_t most,
                   uint64_t unit)
{
    uint64_t usual = most < steps[1] ? most : steps[1];

    (void)dynbuf_addf(&x->out, "<select id=\"grant-%s\" name=\"%s\">\n", name, name);
    for (size_t i = 0; i <= n; i++) {
        uint64_t v = i < n ? steps[i] : most;
        if (i < n && v >= most)
            continue;
        (void)dynbuf_addf(&x->out, "<option value=\"%llu\"%s>", (unsigned long long)(v / unit),
                          v == usual ? " selected" : "");
        if (unit == 1)
            show_count(&x->out, v, "more request");
        else
            show_span_of_time(&x->out, v);
        PUT(x, "</option>\n");
    }
    PUT(x, "</select>\n");
}

static void form(struct exchange *x, const struct view *v, const struct grant_offer *o)
{
    const struct ticket *t = &v->t;
    static const uint64_t counts[] = {1, 5, 10, 25, 50};
    static const uint64_t times[] = {5 * MINUTE, 10 * MINUTE, 30 * MINUTE, 60 * MINUTE, 120 * MINUTE, 240 * MINUTE};
    char digest[2 * DIGEST_BYTES + 1] = "", mark[GUARD_MARK_TEXT + 1];

    if (t->digest.n == DIGEST_BYTES)
        hex_text(t->digest, digest);
    guard_mark(x->session, "grant", t->id, span_str(digest), x->now_ms, mark);
    PUT(x, "<form class=\"grant\" method=\"post\" autocomplete=\"off\" action=\"/tickets/");
    show_text(&x->out, t->id);
    (void)dynbuf_addf(
        &x->out,
        "/grant\">\n<input type=\"hidden\" name=\"digest\" value=\"%s\">\n"
        "<input type=\"hidden\" name=\"mark\" value=\"%s\">\n<label for=\"grant-uses\">At most</label>\n",
        digest, mark);
    choose(x, "uses", counts, sizeof counts / sizeof counts[0], o->uses, 1);
    PUT(x, "<label for=\"grant-minutes\">For</label>\n");
    choose(x, "minutes", times, sizeof times / sizeof times[0], o->within_ms, MINUTE);
    page_name_field(x, v, "name-more");
    (void)dynbuf_addf(
        &x->out,
        "<label for=\"why-more\">%s</label>\n<input id=\"why-more\" name=\"reason\" maxlength=\"300\"%s>\n"
        "<button class=\"arm\">Approve this one and those</button>\n</form>\n",
        t->reason_required ? "Why it is right <small>needed, kept in the audit</small>"
                           : "Note <small>kept in the audit</small>",
        t->reason_required ? " required" : "");
}

void page_grant_offer(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;
    struct grant_offer o = grants_offer(x, t);

    /* What is apt to deceive is decided one by one. */
    if (!v->there || v->r.blocks || v->r.nflags || v->r.npictures || page_is_cut(t) || o.uses == 0 ||
        o.within_ms < MINUTE)
        return;
    PUT(x, "<div class=\"choice more\">\n<details>\n<summary>Approve, and the next ones like it</summary>\n"
           "<p>This one leaves as above. So do the next ones from <b>");
    show_cut(&x->out, t->sandbox, 80);
    PUT(x, "</b>, without a question, if they are like it in all of this:</p>\n");
    page_grant_covers(x, t->method, t->scheme, t->host, t->port, o.shape_json);
    PUT(x, "<p>with the same header fields, ");
    if (t->credential.n) {
        PUT(x, "the credential <b>");
        show_cut(&x->out, t->credential, 80);
        PUT(x, "</b>");
    } else {
        PUT(x, "no credential");
    }
    PUT(x, " and the policy of now, which may still deny each. You can take it back under "
           "<a href=\"/grants\">Grants</a>.</p>\n");
    form(x, v, &o);
    PUT(x, "</details>\n</div>\n");
}

/* --- what the form sends -------------------------------------------------- */

/* What the form says, kept while the body is asked for. */
struct granting {
    struct span reason, name;
    struct digest shown;
    struct grant_ask more;
};

const char *grants_refuse(struct exchange *x, const struct view *v, struct span typed, unsigned *status)
{
    const char *why = deciding_refuses(x, v, typed, status);

    if (why || (!v->r.nflags && !v->r.npictures && !page_is_cut(&v->t)))
        return why;
    *status = 409;
    return "the page says something of this request that a person should look at, or cannot show all of it: such are "
           "decided one by one, without a grant";
}

static void judged(struct exchange *x, struct view *v)
{
    const struct granting *g = deciding_own(x);
    unsigned status = 0;
    const char *why = grants_refuse(x, v, g->name, &status);
    struct id id;

    if (why)
        page_problem(x, status, status == 422 ? "The name is needed" : "Not decided", why);
    else if (id_parse(v->t.id, &id) == 0)
        api_decide_more(x, &id, DECIDE_APPROVE, g->reason, &g->shown, g->more, "page", page_decided);
}

void page_grant(struct exchange *x)
{
    struct granting *g = arena_alloc(&x->arena, sizeof *g);
    struct span digest, mark, words, uses, minutes;
    uint64_t n = 0, m = 0;
    struct ticket t;

    if (!g) {
        page_problem(x, 503, "Not possible now", "There is no memory for this form.");
        return;
    }
    if (form_field(x, "digest", &digest) != 0 || form_field(x, "mark", &mark) != 0 ||
        form_field(x, "reason", &words) != 0 || form_field(x, "name", &g->name) != 0 ||
        form_field(x, "uses", &uses) != 0 || form_field(x, "minutes", &minutes) != 0 ||
        !page_mark_good(x, "grant", digest, mark))
        return;
    if (hex_parse(digest, g->shown.b, DIGEST_BYTES) != 0 || span_u64(uses, UINT32_MAX, &n) != 0 || n == 0 ||
        span_u64(minutes, 24 * 60, &m) != 0 || m == 0) {
        page_problem(x, 400, "Bad request", "This is not the form that the page has.");
        return;
    }
    g->more = (struct grant_ask){(uint32_t)n, m * MINUTE};
    if (reason_clean(x, words, &g->reason) == 0 && api_ticket_find(x, &t) == 0 &&
        page_may_approve(x, &t, g->reason, SPAN_NONE))
        deciding_read(x, &t, g, judged);
}
