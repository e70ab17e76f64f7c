/* The conversations of late, and the form that begins one. */
#include "web-approval/talks/talks.h"

#include <stdio.h>
#include <string.h>

#include "web-approval/rooms/rooms.h"
#include "web-approval/talks/form.h"

enum { WORDS = 160, PENDING = 1000 };

void (*talks_due)(struct desk *d, uint64_t now_ms);
bool (*talks_asks)(struct exchange *x, const struct talks_ask *q, talks_fn *fn, const char **why);

void talks_begin(struct exchange *x, const struct talks_ask *q, talks_fn *fn)
{
    const char *why = strcmp(x->desk->broker_only, "turn") == 0
                          ? "the broker of this gateway runs turns and serves nobody (`broker: only:` of "
                            "countersign.yaml(5)): conversations are had at the gateway that serves them"
                          : "there is no broker: `broker:` of countersign.yaml(5) makes one";

    if (!talks_asks || !talks_asks(x, q, fn, &why))
        page_problem(x, 503, "Not possible now", why);
}

bool talks_came(struct exchange *x, unsigned status, unsigned want, struct span body)
{
    const struct json *j = status != want && body.n ? json_parse(body, &x->arena) : NULL;
    struct span detail = span_first(json_text(j, SPAN("detail")), DESK_TEXT - 1);
    char words[DESK_TEXT];

    if (status == want)
        return true;
    (void)snprintf(words, sizeof(words), "%.*s", SPAN_FMT(detail));
    if (status == 404)
        page_problem(x, 404, "No such conversation", "There is no conversation of this id here.");
    else if (status == 0 || status >= 500)
        page_problem(
            x, 503, "The broker does not answer",
            words[0]
                ? words
                : "It did not answer in time, or has just ended. What it had taken goes on; load this page again.");
    else
        page_problem(x, status == 429 || status == 413 || status == 409 || status == 403 ? status : 400, "Not taken",
                     words[0] ? words : "the broker refused it");
    return false;
}

/* --- which of them wait for a decision ------------------------------------------------------- */

struct sessions {
    struct span of[PENDING];
    size_t n;
    bool known;
};

static int session(void *ctx, const struct ticket *t)
{
    struct sessions *s = ctx;

    if (s->n < PENDING)
        s->of[s->n++] = t->session;
    return 0;
}

static void sessions_read(struct exchange *x, struct sessions *s)
{
    const struct ticket_filter f = {.state = SPAN("pending"), .tenant = SPAN(TALKS_TENANT), .limit = PENDING};
    struct err e;

    s->n = 0;
    s->known = desk_store_tickets(x->desk->store, &f, &x->arena, session, s, &e) == 0;
}

static size_t waits(const struct sessions *s, struct span id)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += span_starts(s->of[i], SPAN("c-")) && span_eq(span_from(s->of[i], 2), id);
    return n;
}

/* --- the list --------------------------------------------------------------------------------- */

static uint64_t number(const struct json *j, const char *key)
{
    uint64_t n = 0;

    return json_u64(j, span_str(key), &n) == 0 ? n : 0;
}

static void row(struct exchange *x, const struct json *c, const struct sessions *s)
{
    struct span id = json_text(c, SPAN("conversation_id")), words = json_text(c, SPAN("words"));
    const struct json *busy = json_get(c, SPAN("busy"));
    struct id known;
    size_t n = waits(s, id);

    if (id_parse(id, &known) != 0)
        return;
    PUT(x, "<tr><td><a href=\"/conversations/");
    show_text(&x->out, id);
    PUT(x, "\">");
    if (words.n) {
        PUT(x, "<span class=\"mono\">&ldquo;");
        show_cut(&x->out, words, WORDS);
        PUT(x, "&rdquo;</span>");
    } else {
        PUT(x, "Not begun yet");
    }
    PUT(x, "</a></td>");
    room_cell(x, "State");
    if (!s->known)
        PUT(x, "<b>what waits is not known</b>");
    else if (n > 0)
        (void)dynbuf_addf(&x->out, "<b>%zu waiting</b>", n);
    else if (busy && busy->truth)
        PUT(x, "<span class=\"state s-executing\">working</span>");
    else
        PUT(x, "<span class=\"state\">idle</span>");
    PUT(x, "</td>");
    room_cell_text(x, "Begun by", json_text(c, SPAN("begun_by")));
    room_cell_text(x, "Phase", json_text(c, SPAN("phase")));
    room_cell(x, "Turns");
    (void)dynbuf_addf(&x->out, "%llu</td>", (unsigned long long)number(c, "turns"));
    room_cell(x, "Sandbox");
    PUT(x, "<a class=\"mono\" href=\"/sandboxes?name=c-");
    show_text(&x->out, id);
    PUT(x, "\">c-");
    show_text(&x->out, span_first(id, 8));
    PUT(x, "&hellip;</a></td>");
    room_cell(x, "Changed");
    show_time(&x->out, number(c, "changed_ms"));
    PUT(x, "</td></tr>\n");
}

/* False: answered. */
static bool list(struct exchange *x, const struct json *all)
{
    static const char *const heads[] = {"Began with", "State", "Begun by", "Phase", "Turns", "Sandbox", "Changed"};
    const struct json *rows = json_get(all, SPAN("conversations")), *more = json_get(all, SPAN("more"));
    struct sessions *s = arena_alloc(&x->arena, sizeof *s);

    if (!s || !rows || rows->type != JSON_ARRAY) {
        page_problem(x, 503, "Not possible now",
                     s ? "What the broker said cannot be read." : "There is no memory for this page.");
        return false;
    }
    sessions_read(x, s);
    if (!rows->child) {
        room_empty(x, "Nothing was said yet.",
                   "Say something above, or with <code>countersign chat</code>: it becomes a conversation, with a "
                   "sandbox of its own, and what it asks for waits for you in it.");
        return true;
    }
    room_section(x, "talks", "Of late");
    room_table(x, "Conversations", heads, sizeof heads / sizeof heads[0]);
    for (const struct json *c = rows->child; c; c = c->next)
        row(x, c, s);
    room_table_end(x);
    if (more && more->truth)
        PUT(x, "<p class=\"note\">These are the newest. Older ones go on with <code>countersign chat --conversation "
               "ID</code>.</p>\n");
    room_section_end(x);
    return true;
}

static void came(struct exchange *x, unsigned status, struct span body)
{
    if (!talks_came(x, status, 200, body))
        return;
    const struct json *all = json_parse(body, &x->arena);
    room_begin(x, "talks", "Conversations",
               "With models that work in sandboxes and hold no key. What they ask for waits for a decision, as from "
               "anybody.");
    talk_composer(x, SPAN_NONE, "Begin one");
    if (list(x, all))
        page_end(x);
}

void page_talks(struct exchange *x)
{
    const struct talks_ask q = {.method = "GET", .target = SPAN("/conversations/lately")};

    talks_begin(x, &q, came);
}
