#include "web-approval/grants/grants.h"
#include "web-approval/route.h"

enum { GRANTS_SHOWN = 200, NAME_SHOWN = 80 };

struct shown {
    struct exchange *x;
    size_t live, past;
    bool of_live; /* which of the two are being shown */
};

static bool is_live(const struct exchange *x, const struct grant_row *g)
{
    return span_eq(span_str(grants_state(x, g)), SPAN("live"));
}

static const char *state_words(const struct exchange *x, const struct grant_row *g)
{
    static const char *const words[][2] = {{"used", "all of it was used"},
                                           {"expired", "its time is over"},
                                           {"revoked", "taken back"},
                                           {"ended", "ended"},
                                           {"other-policy", "void: the policy is another one now"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (span_eq(span_str(grants_state(x, g)), span_str(words[i][0])))
            return words[i][1];
    return "";
}

/* Its own line in both lists: how much is left, until when, whose it is and who gave it. */
static void about(struct exchange *x, const struct grant_row *g)
{
    struct dynbuf *out = &x->out;
    bool live = is_live(x, g);

    PUT(x, "<p class=\"meta\"><span>");
    if (live) {
        (void)dynbuf_addf(out, "<b>%llu of %llu left</b>, ", (unsigned long long)(g->uses_max - g->uses),
                          (unsigned long long)g->uses_max);
        PUT(x, "until ");
        show_time(out, g->expires_ms);
    } else {
        show_own(out, state_words(x, g));
        if (g->how.n) {
            PUT(x, ": ");
            show_cut(out, g->how, 200);
        }
        (void)dynbuf_addf(out, ", used %llu of %llu", (unsigned long long)g->uses, (unsigned long long)g->uses_max);
    }
    PUT(x, "</span> <span>for <b>");
    show_cut(out, g->sandbox, NAME_SHOWN);
    PUT(x, "</b></span> <span>given by ");
    show_cut(out, g->by, NAME_SHOWN);
    PUT(x, " with <a href=\"/tickets/");
    show_text(out, g->ticket);
    PUT(x, "\">this request</a></span></p>\n");
}

static void revoke_form(struct exchange *x, const struct grant_row *g)
{
    char mark[GUARD_MARK_TEXT + 1];

    guard_mark(x->session, "revoke", g->id, SPAN_NONE, x->now_ms, mark);
    PUT(x, "<form method=\"post\" autocomplete=\"off\" action=\"/grants/");
    show_text(&x->out, g->id);
    (void)dynbuf_addf(&x->out,
                      "/revoke\">\n<input type=\"hidden\" name=\"mark\" value=\"%s\">\n"
                      "<button class=\"no\">Take it back</button>\n</form>\n",
                      mark);
}

static int show_one(void *ctx, const struct grant_row *g)
{
    struct shown *s = ctx;
    struct exchange *x = s->x;
    bool live = is_live(x, g);

    if (live != s->of_live)
        return 0;
    if ((live ? s->live : s->past) == 0)
        (void)dynbuf_addf(&x->out, "<h2>%s</h2>\n", live ? "Good now" : "Of late");
    *(live ? &s->live : &s->past) += 1;
    PUT(x, "<section class=\"grant\">\n<h3>");
    page_badge(&x->out, g->effect);
    PUT(x, " ");
    show_cut(&x->out, g->op.n ? g->op : g->method, NAME_SHOWN);
    PUT(x, "</h3>\n");
    about(x, g);
    page_grant_covers(x, g->method, g->scheme, g->host, g->port, g->shape_json);
    if (g->reason.n) {
        PUT(x, "<p class=\"meta\">Note: ");
        show_cut(&x->out, g->reason, 300);
        PUT(x, "</p>\n");
    }
    if (live)
        revoke_form(x, g);
    PUT(x, "</section>\n");
    return 0;
}

void page_grants(struct exchange *x)
{
    struct shown s = {.x = x, .of_live = true};
    struct err e;

    page_begin(x, 200, "grants", "Grants");
    PUT(x, "<p class=\"back\"><a href=\"/\">All that waits</a></p>\n<div class=\"title\">\n<h1>Grants</h1>\n"
           "<p class=\"meta\">What was approved ahead: so many requests of one shape, from one sandbox, for a time. "
           "A deny of the policy still denies, and another policy ends them.</p>\n</div>\n");
    int rc = desk_store_grants(x->desk->store, SPAN_NONE, GRANTS_SHOWN, &x->arena, show_one, &s, &e);
    if (rc == 0 && s.live == 0)
        PUT(x, "<p class=\"empty\">Nothing is approved ahead.</p>\n");
    s.of_live = false;
    if (rc == 0)
        rc = desk_store_grants(x->desk->store, SPAN_NONE, GRANTS_SHOWN, &x->arena, show_one, &s, &e);
    if (rc != 0) {
        reply_unable(x, &e);
        return;
    }
    page_end(x);
}
