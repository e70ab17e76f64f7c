/* What was said: by a person, by the model, by tools; each of it foreign text in a box of its own. */
#include "web-approval/talks/talks.h"

#include <stdio.h>

enum {
    TEXT_SHOWN = 12 * 1024, /* of what a person or the model says */
    ARGS_SHOWN = 2 * 1024,
    RESULT_SHOWN = 4 * 1024,
    SHORT = 400,       /* a result that is longer is folded up */
    TURN_IN_CALL = 12, /* characters of a turn's id in that of a call */
    WHO_SHOWN = 80,
    TOOL_SHOWN = 64
};

static struct span text_of(const struct json *j, const char *key)
{
    return json_text(j, span_str(key));
}

static uint64_t number(const struct json *j, const char *key)
{
    uint64_t n = 0;

    return json_u64(j, span_str(key), &n) == 0 ? n : 0;
}

static const struct json *items(const struct json *j, const char *key)
{
    const struct json *list = json_get(j, span_str(key));

    return list && list->type == JSON_ARRAY ? list->child : NULL;
}

void talk_text(struct exchange *x, struct span text, uint64_t all, size_t max)
{
    struct span first = span_first(text, max);

    all = all > text.n ? all : text.n;
    PUT(x, "<pre class=\"body\">");
    show_body(&x->out, first);
    PUT(x, "</pre>\n");
    if (all > first.n) {
        PUT(x, "<p class=\"hint\">The first ");
        show_size(&x->out, first.n);
        PUT(x, " of ");
        show_size(&x->out, all);
        PUT(x, ".</p>\n");
    }
}

/* --- calls ------------------------------------------------------------------------------------ */

/* What the log has of a call, as far as it goes back: its class is with its beginning, its end with its end. */
struct logged {
    struct span class, end;
};

/* Its id is c, the beginning of its turn's, its step and its place there: "cTURN-3-0". */
static struct logged logged_of(const struct talk *t, struct span id)
{
    struct logged found = {SPAN_NONE, SPAN_NONE};
    struct span turn, rest, step, place;
    uint64_t s, n;

    if (!span_cut(span_from(id, 1), '-', &turn, &rest) || !span_cut(rest, '-', &step, &place) ||
        turn.n != TURN_IN_CALL || span_u64(step, INT64_MAX, &s) != 0 || span_u64(place, INT64_MAX, &n) != 0)
        return found;
    for (const struct json *c = items(t->now, "calls"); c; c = c->next) {
        if (number(c, "step") != s || number(c, "call") != n || !span_starts(text_of(c, "turn"), turn))
            continue;
        if (text_of(c, "class").n)
            found.class = text_of(c, "class");
        if (text_of(c, "end").n)
            found.end = text_of(c, "end");
    }
    return found;
}

static void put_class(struct exchange *x, struct span class)
{
    static const struct {
        const char *word, *means;
    } known[] = {{"unsafe", "it may change something, and is never repeated by itself"},
                 {"reconcilable", "what it changed can be looked at"},
                 {"idempotent", "it may be repeated"},
                 {"read", "it only reads"}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (span_eq(class, span_str(known[i].word))) {
            (void)dynbuf_addf(&x->out, " <span class=\"tag%s\" title=\"%s\">%s</span>", i == 0 ? " grave" : "",
                              known[i].means, known[i].word);
            return;
        }
}

static void put_end(struct exchange *x, struct span end)
{
    static const struct {
        const char *word, *state, *says;
    } known[] = {{"done", "good", "&#10003;</span> done"},
                 {"error", "bad", "&#10007;</span> failed"},
                 {"unknown", "bad", "?</span> nobody knows what came of it"},
                 {"not-run", "bad", "&#8709;</span> not run"}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (span_eq(end, span_str(known[i].word))) {
            (void)dynbuf_addf(&x->out, " <span class=\"state %s\"><span aria-hidden=\"true\">%s</span>",
                              known[i].state, known[i].says);
            return;
        }
    PUT(x, " <span class=\"state s-executing\">going on</span>");
}

static void put_call(struct exchange *x, struct span tool, struct logged l, struct span args, uint64_t all)
{
    PUT(x, "<p class=\"call\"><b class=\"mono\">");
    show_cut(&x->out, tool, TOOL_SHOWN);
    PUT(x, "</b>");
    put_class(x, l.class);
    put_end(x, l.end);
    PUT(x, "</p>\n");
    talk_text(x, args, all, ARGS_SHOWN);
}

/* id: so that the script can leave it open when the page is shown anew. */
static void put_result(struct exchange *x, struct span id, struct span text, uint64_t all)
{
    if (text.n <= SHORT) {
        talk_text(x, text, all, RESULT_SHOWN);
        return;
    }
    PUT(x, "<details id=\"r-");
    show_text(&x->out, id);
    PUT(x, "\">\n<summary>Its result, ");
    show_size(&x->out, all > text.n ? all : text.n);
    PUT(x, "</summary>\n");
    talk_text(x, text, all, RESULT_SHOWN);
    PUT(x, "</details>\n");
}

/* --- messages --------------------------------------------------------------------------------- */

static void begin(struct exchange *x, const char *class, const char *who)
{
    (void)dynbuf_addf(&x->out, "<li class=\"said %s\">\n<p class=\"label\">%s", class, who);
}

/* The result that a call had, in the messages behind it. */
static const struct json *result_of(const struct json *message, struct span id)
{
    for (const struct json *m = message->next; m; m = m->next)
        for (const struct json *b = items(m, "blocks"); b; b = b->next)
            if (span_eq(text_of(b, "type"), SPAN("result")) && span_eq(text_of(b, "id"), id))
                return b;
    return NULL;
}

static void call(struct exchange *x, const struct talk *t, const struct json *message, const struct json *b)
{
    struct span id = text_of(b, "id");
    const struct json *r = result_of(message, id), *failed = json_get(r, SPAN("failed"));
    struct logged l = logged_of(t, id);

    if (r && l.end.n == 0)
        l.end = failed && !failed->truth ? SPAN("done") : SPAN("error");
    begin(x, "tool", "A tool</p>\n");
    put_call(x, text_of(b, "name"), l, text_of(b, "arguments"), number(b, "bytes"));
    if (r)
        put_result(x, id, text_of(r, "text"), number(r, "bytes"));
    PUT(x, "</li>\n");
}

static void words(struct exchange *x, const struct json *message, const struct json *b)
{
    struct span role = text_of(message, "role"), by = text_of(message, "by"), stopped = text_of(message, "stopped");
    bool person = span_eq(role, SPAN("user")), model = span_eq(role, SPAN("assistant"));

    if (talk_is_blank(text_of(b, "text")))
        return;
    begin(x,
          person  ? "person"
          : model ? "model"
                  : "told",
          model    ? "The model"
          : person ? ""
                   : "The broker told the model");
    if (person && by.n)
        show_cut(&x->out, by, WHO_SHOWN);
    else if (person)
        PUT(x, "A person, by a key or before names were kept");
    if (person && span_eq(by, span_str(x->operator)))
        PUT(x, " (you)");
    PUT(x, "</p>\n");
    talk_text(x, text_of(b, "text"), number(b, "bytes"), TEXT_SHOWN);
    if (model && stopped.n) {
        PUT(x, "<p class=\"note\">It stopped before its end: ");
        show_cut(&x->out, stopped, WHO_SHOWN);
        PUT(x, "</p>\n");
    }
    PUT(x, "</li>\n");
}

static void message(struct exchange *x, const struct talk *t, const struct json *m)
{
    for (const struct json *b = items(m, "blocks"); b; b = b->next) {
        struct span type = text_of(b, "type");
        if (span_eq(type, SPAN("call")))
            call(x, t, m, b);
        else if (span_eq(type, SPAN("text")))
            words(x, m, b);
        else if (span_eq(type, SPAN("image")))
            PUT(x, "<li class=\"said person\"><p class=\"label\">A picture, which is not shown here</p></li>\n");
    }
}

/* --- the step that runs, and what waits for its turn --------------------------------------------- */

/* The end of a call of that step, once the log has it. */
static const struct json *ended(const struct json *begun)
{
    for (const struct json *c = begun->next; c; c = c->next)
        if (text_of(c, "end").n && number(c, "step") == number(begun, "step") &&
            number(c, "call") == number(begun, "call") && span_eq(text_of(c, "turn"), text_of(begun, "turn")))
            return c;
    return NULL;
}

static void live(struct exchange *x, const struct talk *t)
{
    struct span text = text_of(t->now, "live"), waits = text_of(t->now, "waits");

    if (!talk_is_blank(text)) {
        begin(x, "model", "The model, just now</p>\n");
        talk_text(x, text, 0, TEXT_SHOWN);
        PUT(x, "</li>\n");
    }
    for (const struct json *c = items(t->now, "calls"); c; c = c->next) {
        const struct json *is_live = json_get(c, SPAN("live")), *end = ended(c);
        if (!is_live || !is_live->truth || text_of(c, "class").n == 0)
            continue;
        begin(x, "tool", "A tool, just now</p>\n");
        put_call(x, text_of(c, "tool"), (struct logged){text_of(c, "class"), text_of(end, "end")},
                 text_of(c, "arguments"), 0);
        if (end)
            talk_text(x, text_of(end, "result"), 0, RESULT_SHOWN);
        PUT(x, "</li>\n");
    }
    if (waits.n) {
        PUT(x, "<li class=\"said told\"><p class=\"note\">It waits, and is tried again: ");
        show_cut(&x->out, waits, 500);
        PUT(x, "</p></li>\n");
    }
}

void talk_said(struct exchange *x, const struct talk *t)
{
    uint64_t older = number(t->now, "older");

    PUT(x, "<section aria-labelledby=\"said\">\n<h2 id=\"said\">What was said <small>what models and tools say is "
           "shown as "
           "text, and is not to be trusted</small></h2>\n");
    if (older) {
        PUT(x, "<p class=\"hint\">");
        show_count(&x->out, older, "older message");
        (void)dynbuf_addf(&x->out, " %s not shown.</p>\n", older == 1 ? "is" : "are");
    }
    PUT(x, "<ol class=\"talk\">\n");
    for (const struct json *m = items(t->now, "said"); m; m = m->next)
        message(x, t, m);
    live(x, t);
    PUT(x, "</ol>\n");
    if (items(t->now, "queued")) {
        PUT(x, "<h3>Said, and not begun yet</h3>\n<ol class=\"talk\">\n");
        for (const struct json *m = items(t->now, "queued"); m; m = m->next)
            message(x, t, m);
        PUT(x, "</ol>\n");
    }
    PUT(x, "</section>\n");
}
