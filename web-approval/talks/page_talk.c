/* One conversation: what was said, what of it waits for a decision, its composer, its sandbox's files. */
#include "web-approval/talks/talks.h"

#include <stdio.h>

#include "web-approval/rooms/rooms.h"
#include "web-approval/talks/form.h"

enum { WORDS = 160, PENDING = 1000, WHY = 500 };

static struct span text_of(const struct json *j, const char *key)
{
    return json_text(j, span_str(key));
}

static unsigned long long number(const struct json *j, const char *key)
{
    uint64_t n = 0;

    return json_u64(j, span_str(key), &n) == 0 ? n : 0;
}

static bool busy(const struct talk *t)
{
    const struct json *b = json_get(t->now, SPAN("busy"));

    return b && b->type == JSON_BOOL && b->truth;
}

static const struct json *turns(const struct talk *t)
{
    const struct json *list = json_get(t->now, SPAN("open"));

    return list && list->type == JSON_ARRAY ? list->child : NULL;
}

/* Who began it speaks in it, and nobody else does on the page: the broker holds to that (broker/serve/talk.c). */
static bool is_own(const struct exchange *x, const struct talk *t)
{
    return span_eq(text_of(t->now, "begun_by"), span_str(x->operator));
}

static void readers(struct exchange *x, const struct talk *t)
{
    struct span by = text_of(t->now, "begun_by");

    PUT(x, "<p class=\"note\" id=\"reads\">Begun by ");
    if (by.n)
        show_cut(&x->out, by, WORDS);
    else
        PUT(x, "a key, or by nobody who is known");
    PUT(x, ": <a href=\"/conversations\">begin your own</a> to speak.</p>\n");
}

/* --- what waits ---------------------------------------------------------------------------------- */

static int here_row(void *ctx, const struct ticket *row)
{
    struct talk *t = ctx;

    if (t->walk.n < TALKS_HERE) {
        t->here[t->walk.n] = *row;
        t->first[t->walk.n] = &t->here[t->walk.n];
        t->walk.n++;
    }
    t->waiting++;
    return 0;
}

/* The tickets of its session, each glanced at before any is shown, as in the list. */
static void look(struct exchange *x, struct talk *t, void (*show)(struct exchange *x))
{
    const struct ticket_filter f = {
        .state = SPAN("pending"), .session = span_str(t->box), .tenant = SPAN(TALKS_TENANT), .limit = PENDING};

    t->walk = (struct glance_walk){.t = t->first, .show = show};
    t->unread = desk_store_tickets(x->desk->store, &f, &x->arena, here_row, t, &t->why) != 0;
    glance_walk(x, &t->walk);
}

static void waiting(struct exchange *x, const struct talk *t)
{
    if (t->waiting == 0)
        return;
    PUT(x, "<section class=\"box\" aria-labelledby=\"here\">\n<h2 id=\"here\">Waits for a decision</h2>\n<ul "
           "class=\"cards\">\n");
    for (size_t i = 0; i < t->walk.n; i++)
        page_card(x, t->first[i]);
    PUT(x, "</ul>\n");
    if (t->waiting > t->walk.n)
        (void)dynbuf_addf(
            &x->out, "<p class=\"hint\">The newest %zu of %zu; all of them are in <a href=\"/\">the list</a>.</p>\n",
            t->walk.n, t->waiting);
    PUT(x, "</section>\n");
}

/* --- its state ----------------------------------------------------------------------------------- */

static void turn_now(struct exchange *x, const struct talk *t, const struct json *turn)
{
    struct span words = text_of(turn, "words"), why = text_of(turn, "why"), end = text_of(turn, "end");
    struct id id;
    bool open = end.n == 0, waits = span_eq(text_of(turn, "state"), SPAN("queued"));

    PUT(x, "<div class=\"turn\">\n<p>");
    if (open)
        show_own(&x->out, waits ? "A turn waits to begin." : "A turn runs.");
    else if (words.n)
        show_cut(&x->out, words, WHY);
    if (!open && why.n) {
        PUT(x, " <small>");
        show_cut(&x->out, why, WHY);
        PUT(x, "</small>");
    }
    PUT(x, "</p>\n<p class=\"meta\"><span>");
    show_count(&x->out, number(turn, "steps"), "step");
    PUT(x, "</span> <span>");
    show_count(&x->out, number(turn, "tokens"), "token");
    (void)dynbuf_addf(&x->out, "</span> <span>cost %llu.%06llu</span></p>\n", number(turn, "cost_micro") / 1000000,
                      number(turn, "cost_micro") % 1000000);
    if (open && is_own(x, t) && id_parse(text_of(turn, "turn_id"), &id) == 0)
        talk_canceller(x, span_str(t->id), text_of(turn, "turn_id"));
    PUT(x, "</div>\n");
}

/* Which models see it, where not all do. */
static void private_to(struct exchange *x, const struct talk *t)
{
    const struct json *list = json_get(t->now, SPAN("private"));

    if (!list || list->type != JSON_ARRAY || !list->child)
        return;
    PUT(x, "<p class=\"note\">Private: no model is asked but ");
    for (const struct json *m = list->child; m; m = m->next) {
        show_cut(&x->out, m->text, WORDS);
        if (m->next)
            PUT(x, ", ");
    }
    PUT(x, ".</p>\n");
}

static void state(struct exchange *x, const struct talk *t)
{
    PUT(x, "<section aria-labelledby=\"state\">\n<h2 id=\"state\">");
    (void)dynbuf_addf(&x->out, "<span class=\"state%s\">%s</span>", busy(t) ? " s-executing" : "",
                      busy(t) ? "working" : "idle");
    PUT(x, " <small>phase ");
    show_cut(&x->out, text_of(t->now, "phase"), WORDS);
    PUT(x, "; ");
    show_count(&x->out, number(t->now, "turns"), "turn");
    PUT(x, "; last changed ");
    show_time(&x->out, number(t->now, "changed_ms"));
    PUT(x, "</small></h2>\n");
    private_to(x, t);
    for (const struct json *turn = turns(t); turn; turn = turn->next)
        turn_now(x, t, turn);
    PUT(x, "</section>\n");
}

/* --- the page ------------------------------------------------------------------------------------- */

static void show(struct exchange *x)
{
    struct talk *t = x->step;
    struct span words = text_of(t->now, "words");

    page_begin(x, 200, "talk", "Conversation");
    PUT(x, "<p class=\"back\"><a href=\"/conversations\">All conversations</a></p>\n<div class=\"title\">\n"
           "<h1>Conversation</h1>\n</div>\n");
    if (words.n) {
        PUT(x, "<p class=\"label\">It began with</p>\n<pre class=\"body\">");
        show_body(&x->out, span_first(words, WORDS));
        PUT(x, "</pre>\n");
    }
    PUT(x, "<div id=\"talk\" data-talk=\"");
    show_own(&x->out, t->id);
    PUT(x, "\" data-after=\"");
    show_text(&x->out, text_of(t->now, "last_event_id"));
    (void)dynbuf_addf(&x->out, "\" data-busy=\"%d\">\n", busy(t));
    talk_said(x, t);
    waiting(x, t);
    state(x, t);
    PUT(x, "</div>\n");
    if (is_own(x, t))
        talk_composer(x, span_str(t->id), "Say it");
    else
        readers(x, t);
    talk_files(x, t);
    page_end(x);
    if (t->unread)
        reply_unable(x, &t->why);
}

/* Its files come last: what they end with is answered at once. */
static void with_files(struct exchange *x)
{
    struct talk *t = x->step;

    if (t->started && !t->part) {
        talk_files_ask(x, t, show);
        if (x->transfer)
            return;
        x->status = 0; /* what it said of that is not the answer: the page is there without them */
    }
    show(x);
}

/* Its sandbox is its own and the tenant's, or it is not looked at. */
int talk_sandbox(struct exchange *x, struct talk *t, struct err *e)
{
    struct sandbox_row r;

    (void)snprintf(t->box, sizeof(t->box), "c-%s", t->id);
    int rc = desk_store_sandbox(x->desk->store, span_str(t->box), &x->arena, &r, e);
    bool own = rc == 1 && span_eq(r.tenant, SPAN(TALKS_TENANT)) && span_eq(r.session, span_str(t->box));

    t->started = own && span_eq(r.kind, SPAN("started"));
    t->idle = own && span_eq(r.kind, SPAN("idle"));
    return rc < 0 ? -1 : 0;
}

static void came(struct exchange *x, unsigned status, struct span body)
{
    struct talk *t = x->step;
    struct err e;

    if (!talks_came(x, status, 200, body))
        return;
    t->now = json_parse(body, &x->arena);
    if (!t->now || t->now->type != JSON_OBJECT) {
        page_problem(x, 503, "Not possible now",
                     "What the broker said cannot be read, or is more than this page can show.");
        return;
    }
    if (talk_sandbox(x, t, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    look(x, t, with_files);
}

/* The id of x->arg, or NULL, answered. */
static const char *id_of(struct exchange *x)
{
    struct id id;
    struct span copy = id_parse(x->arg, &id) == 0 ? arena_printf(&x->arena, "%.*s", SPAN_FMT(x->arg)) : SPAN_NONE;

    if (!copy.p)
        page_problem(x, 404, "No such conversation", "There is no conversation of this id here.");
    return (const char *)copy.p;
}

void page_talk(struct exchange *x)
{
    struct talks_ask q = {.method = "GET"};
    struct talk *t = arena_alloc(&x->arena, sizeof *t);
    struct span part;
    const char *id = id_of(x);

    if (!id || query_field(x, "part", &part) != 0)
        return;
    if (!t) {
        page_problem(x, 503, "Not possible now", "There is no memory for this page.");
        return;
    }
    *t = (struct talk){.id = id, .part = part.n > 0};
    x->step = t;
    q.target = arena_printf(&x->arena, "/conversations/%s", id);
    talks_begin(x, &q, came);
}

/* --- news: the script asks, and is answered when something happened, or after a while ---------------- */

static void news(struct exchange *x, unsigned status, struct span body)
{
    reply_empty(x, status == 200 ? 204 : status == 204 ? 202 : 503); /* 202: all was read, and nothing goes on */
}

void page_talk_news(struct exchange *x)
{
    struct talks_ask q = {.method = "GET", .news = true};
    struct span after, epoch, seq;
    const char *why, *id = id_of(x);
    uint64_t n;

    if (!id || query_field(x, "after", &after) != 0)
        return;
    if (!span_cut(after, '.', &epoch, &seq) || span_u64(epoch, INT64_MAX, &n) != 0 || n == 0 ||
        span_u64(seq, INT64_MAX, &n) != 0) {
        reply_empty(x, 400);
        return;
    }
    q.target = arena_printf(&x->arena, "/stream/%s?after=%.*s", id, SPAN_FMT(after));
    if (!talks_asks || !talks_asks(x, &q, news, &why))
        reply_empty(x, 503); /* as many wait as may: it looks again after a while */
}
