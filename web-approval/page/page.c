#include "web-approval/page/page.h"

#include <stdio.h>
#include <string.h>

#include "web-approval/people/who.h"

/* The rooms of the page. */
static const struct room {
    const char *kind, *path, *name;
} rooms[] = {{"list", "/", "Waiting"},
             {"talks", "/conversations", "Conversations"},
             {"history", "/history", "History"},
             {"habits", "/decisions", "Decisions"},
             {"grants", "/grants", "Grants"},
             {"sandboxes", "/sandboxes", "Sandboxes"},
             {"credentials", "/credentials", "Credentials"},
             {"policy", "/policy", "Policy"},
             {"audit", "/audit", "Audit"},
             {"models", "/models", "Models and tools"},
             {"health", "/health", "Health"}};

static void room_link(struct exchange *x, const struct room *r, const char *kind)
{
    uint64_t waiting;
    struct err e;

    (void)dynbuf_addf(&x->out, "<a href=\"%s\"%s>%s", r->path,
                      strcmp(kind, r->kind) == 0 ? " aria-current=\"page\"" : "", r->name);
    if (strcmp(r->kind, "list") == 0 && desk_store_pending(x->desk->store, &waiting, &e) == 0 && waiting)
        (void)dynbuf_addf(&x->out, " <span class=\"n\">%llu</span>", (unsigned long long)waiting);
    PUT(x, "</a>\n");
}

/* Conversations are where a broker serves, numbers also where it only runs turns; both for whom it serves. */
static bool has_room(const struct exchange *x, const char *kind)
{
    if (strcmp(kind, "talks") == 0)
        return x->desk->talks && who_may_talk(x);
    if (strcmp(kind, "models") == 0)
        return (x->desk->talks || x->desk->tally) && who_may_talk(x);
    return true;
}

/* Where one can go, who one is, and the two things that are done from anywhere. On a narrow screen it opens from a
 * button, which needs no script. */
static void nav(struct exchange *x, const char *kind)
{
    PUT(x, "<button class=\"menu\" type=\"button\" popovertarget=\"rooms\">Menu</button>\n"
           "<div class=\"rooms\" id=\"rooms\" popover>\n<nav aria-label=\"Rooms\">\n");
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++)
        if (has_room(x, rooms[i].kind))
            room_link(x, &rooms[i], kind);
    (void)dynbuf_addf(&x->out, "</nav>\n<div class=\"me\">\n<a href=\"/freeze\"%s>Freeze writes</a>\n",
                      strcmp(kind, "freeze") == 0 ? " aria-current=\"page\"" : "");
    PUT(x,
        "<div id=\"mine\" hidden></div>\n<form method=\"post\" action=\"/sign-out\"><a class=\"who\" href=\"/me\">");
    show_own(&x->out, x->operator);
    PUT(x, "</a> <button class=\"quiet\">Sign out</button></form>\n</div>\n</div>\n");
}

void page_begin(struct exchange *x, unsigned status, const char *kind, const char *title)
{
    struct dynbuf *out = &x->out;

    x->status = status;
    x->type = "text/html; charset=utf-8";
    dynbuf_reset(out);
    PUT(x, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
           "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    show_own(out, title);
    PUT(x, " &middot; Countersign</title>\n<link rel=\"stylesheet\" href=\"/assets/style.css\">\n"
           "<link rel=\"icon\" href=\"/assets/icon.svg\" type=\"image/svg+xml\">\n");
    if (x->session)
        PUT(x, "<script type=\"module\" src=\"/assets/desk.js\"></script>\n");
    if (strcmp(kind, "sign-in") == 0 || strcmp(kind, "me") == 0 || strcmp(kind, "ticket") == 0)
        PUT(x, "<script type=\"module\" src=\"/assets/passkey.js\"></script>\n");
    (void)dynbuf_addf(out, "</head>\n<body data-page=\"%s\"%s>\n", kind, x->session ? " class=\"in\"" : "");
    PUT(x, "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header class=\"top\">\n"
           "<a class=\"brand\" href=\"/\">Countersign</a>\n");
    if (x->session)
        nav(x, kind);
    PUT(x, "</header>\n<div class=\"page\">\n<div id=\"news\" class=\"news\" role=\"status\"></div>\n"
           "<main id=\"main\" tabindex=\"-1\">\n");
    if (x->session)
        page_notices(x, kind);
}

void page_end(struct exchange *x)
{
    PUT(x, "</main>\n</div>\n</body>\n</html>\n");
}

void page_problem(struct exchange *x, unsigned status, const char *title, const char *detail)
{
    page_begin(x, status, "", title);
    PUT(x, "<section class=\"plain\">\n<h1>");
    show_own(&x->out, title);
    PUT(x, "</h1>\n<p>");
    /* The API's details are half sentences; a page begins with a capital. */
    if (detail[0] >= 'a' && detail[0] <= 'z')
        (void)dynbuf_add_byte(&x->out, (uint8_t)(detail[0] - 'a' + 'A'));
    show_own(&x->out, detail[0] >= 'a' && detail[0] <= 'z' ? detail + 1 : detail);
    PUT(x, "</p>\n<p>");
    (void)dynbuf_add(&x->out, x->session ? SPAN("<a class=\"button\" href=\"/\">To the list</a>")
                                         : SPAN("<a class=\"button\" href=\"/sign-in\">Sign in</a>"));
    PUT(x, "</p>\n</section>\n");
    page_end(x);
}

void page_see(struct exchange *x, const char *path)
{
    reply_empty(x, 303);
    (void)snprintf(x->location, sizeof(x->location), "%s", path);
}

void page_badge(struct dynbuf *out, struct span effect)
{
    static const struct {
        const char *word, *shape;
    } shapes[] = {{"read", "&#9675;"},  {"write", "&#9679;"}, {"delete", "&#9650;"},
                  {"admin", "&#9670;"}, {"spend", "&#9632;"}, {"exec", "&#9654;"}};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (span_eq(effect, span_str(shapes[i].word))) {
            (void)dynbuf_addf(out, "<span class=\"badge e-%s\"><span aria-hidden=\"true\">%s</span> %s</span>",
                              shapes[i].word, shapes[i].shape, shapes[i].word);
            return;
        }
    (void)dynbuf_add(out, SPAN("<span class=\"badge e-unknown\"><span aria-hidden=\"true\">?</span> "));
    show_cut(out, effect, 40);
    (void)dynbuf_add(out, SPAN("</span>"));
}

void page_state(struct dynbuf *out, struct span state)
{
    static const char *const known[] = {"pending",   "approved", "denied", "expired", "cancelled",
                                        "executing", "done",     "failed", "unknown"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (span_eq(state, span_str(known[i]))) {
            (void)dynbuf_addf(out, "<span class=\"state s-%s\">%s</span>", known[i], known[i]);
            return;
        }
    show_cut(out, state, 40);
}

const char *page_unusual(const struct ticket *t)
{
    return span_eq(t->code, SPAN("over-limit")) ? "past a limit"
           : span_eq(t->code, SPAN("learning")) ? "no rule fits it"
                                                : NULL;
}

void page_decider(struct exchange *x, const struct ticket *t, size_t max)
{
    static const struct {
        struct span by;
        const char *words;
    } nobody[] = {{SPAN("policy"), "the policy"},
                  {SPAN("client"), "its own client"},
                  {SPAN("session"), "the end of its session"},
                  {SPAN("time"), "the end of its time"}};

    for (size_t i = 0; t->decided_channel.n == 0 && i < sizeof nobody / sizeof nobody[0]; i++)
        if (span_eq(t->decided_by, nobody[i].by)) {
            show_own(&x->out, nobody[i].words);
            return;
        }
    show_cut(&x->out, t->decided_by, max);
}

bool page_decider_untrusted(const struct ticket *t)
{
    return t->decided_channel.n == 0 && span_eq(t->decided_by, SPAN("client"));
}

void page_port(struct exchange *x, const struct ticket *t)
{
    bool usual =
        (t->port == 443 && span_eq(t->scheme, SPAN("https"))) || (t->port == 80 && span_eq(t->scheme, SPAN("http")));

    if (!usual)
        (void)dynbuf_addf(&x->out, ":%llu", (unsigned long long)t->port);
}

void page_summary(struct exchange *x, const struct ticket *t, size_t max)
{
    struct dynbuf *out = &x->out;

    if (t->summary.n) {
        show_cut(out, t->summary, max);
        return;
    }
    show_cut(out, t->method, HTTP_METHOD_MAX);
    PUT(x, " to ");
    show_cut(out, t->host, max);
    show_cut(out, t->path, max);
}

void page_expires(struct exchange *x, const struct ticket *t, const char *attributes)
{
    (void)dynbuf_addf(&x->out, "<span %sdata-expires=\"%llu\">", attributes, (unsigned long long)t->expires_ms);
    if (t->expires_ms > x->wall_ms) {
        PUT(x, "expires in ");
        show_time_left(&x->out, t->expires_ms - x->wall_ms);
    } else {
        PUT(x, "expired");
    }
    PUT(x, "</span>");
}

void page_row(struct exchange *x, const char *label, struct span value)
{
    (void)dynbuf_addf(&x->out, "<dt>%s</dt><dd>", label);
    show_text(&x->out, value);
    PUT(x, "</dd>\n");
}
