/* What a person says in a conversation, and that a turn is to end. Both are forms with the page's marks; what is said
 * has a key of the form's own, so that a form that is sent twice is one turn. */
#include "web-approval/talks/form.h"

#include <stdio.h>

#include "common/text/utf8.h"
#include "web-approval/ask.h"
#include "web-approval/talks/talks.h"

enum { STEPS = 100, STEPS_MAX = 1000, JSON_MAX = 96 * 1024, NOTE_MAX = 1024, MODELS_MAX = 8192 };

static void mark_field(struct exchange *x, const char *purpose, struct span subject, const char *name,
                       struct span shown)
{
    char mark[GUARD_MARK_TEXT + 1];

    guard_mark(x->session, purpose, subject, shown, x->now_ms, mark);
    (void)dynbuf_addf(&x->out, "<input type=\"hidden\" name=\"%s\" value=\"", name);
    show_text(&x->out, shown);
    (void)dynbuf_addf(&x->out, "\">\n<input type=\"hidden\" name=\"mark\" value=\"%s\">\n", mark);
}

static void composer(struct exchange *x, struct span conversation, const char *button, struct span key,
                     struct span message, uint64_t steps, struct span models)
{
    PUT(x, "<section class=\"composer\" aria-labelledby=\"say\">\n<h2 id=\"say\">");
    show_own(&x->out, conversation.n ? "Say something" : "A new conversation");
    PUT(x, "</h2>\n<form class=\"stacked\" id=\"composer\" method=\"post\" autocomplete=\"off\" "
           "action=\"/conversations");
    if (conversation.n) {
        PUT(x, "/");
        show_text(&x->out, conversation);
        PUT(x, "/say");
    }
    PUT(x, "\">\n");
    mark_field(x, "talk", conversation, "key", key);
    (void)dynbuf_addf(
        &x->out,
        "<label for=\"message\">What the model is to do</label>\n<textarea id=\"message\" name=\"message\" "
        "rows=\"4\" "
        "maxlength=\"%d\" required>",
        TALKS_MESSAGE_MAX);
    show_field(&x->out, message);
    (void)dynbuf_addf(
        &x->out,
        "</textarea>\n<label for=\"steps\">At most so many steps "
        "<small>answers of the model, 1 to %d</small></label>\n<input id=\"steps\" name=\"steps\" type=\"number\" "
        "min=\"1\" max=\"%d\" value=\"%d\">\n",
        STEPS_MAX, STEPS_MAX, (int)steps);
    if (!conversation.n) {
        PUT(x, "<label for=\"private\">Private to these models <small>names with commas between them, for good; "
               "empty: any "
               "may be asked</small></label>\n<input id=\"private\" name=\"private\" value=\"");
        show_text(&x->out, models);
        PUT(x, "\">\n");
    }
    (void)dynbuf_addf(&x->out, "<button class=\"yes\">%s</button>\n</form>\n</section>\n", button);
}

void talk_composer(struct exchange *x, struct span conversation, const char *button)
{
    char key[ID_TEXT + 1];
    struct id id;

    if (id_new(&id) != 0) {
        PUT(x, "<p class=\"note\">Nothing can be said here now: the system has no randomness to give.</p>\n");
        return;
    }
    id_text(&id, key);
    composer(x, conversation, button, span_of(key, ID_TEXT), SPAN_NONE, STEPS, SPAN_NONE);
}

void talk_canceller(struct exchange *x, struct span conversation, struct span turn)
{
    PUT(x, "<form method=\"post\" autocomplete=\"off\" action=\"/conversations/");
    show_text(&x->out, conversation);
    PUT(x, "/cancel\">\n");
    mark_field(x, "talk-cancel", conversation, "turn", turn);
    PUT(x, "<button class=\"no\">Cancel this turn</button>\n</form>\n");
}

/* --- what they send back ------------------------------------------------------------------------ */

static void back(struct exchange *x, struct span conversation)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/conversations/%.*s", SPAN_FMT(conversation));
    page_see(x, path);
}

/* Who had it done is in the audit; of what was said, its digest: the text is the broker's. */
static void note(struct exchange *x, const char *kind, struct span conversation, struct span turn,
                 const struct digest *text)
{
    char hex[2 * DIGEST_BYTES + 1];
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, NOTE_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "operator", span_str(x->operator));
    jsonw_kv(&w, "conversation", conversation);
    jsonw_kv(&w, "turn", turn);
    if (text) {
        hex_text(span_of(text->b, DIGEST_BYTES), hex);
        jsonw_kv(&w, "text_sha256", span_str(hex));
    }
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        ask_note(x->desk, kind, dynbuf_span(&b));
    dynbuf_free(&b);
}

/* What was sent, for when it is not taken. */
struct saying {
    struct digest text;
    struct span key, message, models;
    uint64_t steps;
};

/* It was not taken: the form again, with what was written and the same key, so that what was taken after all is not
 * taken twice. */
static void say_again(struct exchange *x, unsigned status, const char *why, struct span detail,
                      const struct saying *s)
{
    page_begin(x, status, "talk-again", "Not taken");
    PUT(x, "<div class=\"title\">\n<h1>Not taken</h1>\n<p>");
    show_own(&x->out, why);
    PUT(x, "</p>\n");
    if (detail.n) {
        PUT(x, "<p class=\"note\">");
        show_cut(&x->out, detail, DESK_TEXT);
        PUT(x, "</p>\n");
    }
    PUT(x, "</div>\n");
    composer(x, x->arg, "Say it again", s->key, s->message, s->steps, s->models);
    page_end(x);
}

static void said(struct exchange *x, unsigned status, struct span body)
{
    const struct saying *s = x->step;
    struct span id;
    struct id known;

    if (status != 202) {
        struct span detail = body.n ? json_text(json_parse(body, &x->arena), SPAN("detail")) : SPAN_NONE;
        bool refused =
            status == 400 || status == 403 || status == 404 || status == 409 || status == 413 || status == 429;
        say_again(x, refused ? status : 503,
                  refused ? "The broker refused it." : "The broker did not answer, or cannot take it at the moment.",
                  detail, s);
        return;
    }
    const struct json *j = json_parse(body, &x->arena);
    id = json_text(j, SPAN("conversation_id"));
    note(x, "conversation-said", id, json_text(j, SPAN("turn_id")), &s->text);
    if (id_parse(id, &known) == 0)
        back(x, id);
    else
        page_problem(
            x, 503, "Not known",
            "What the broker said cannot be read. Look at the list of conversations before you say it again.");
}

/* Line ends as a form has them, CR LF, become LF. -1, answered: it is no text, or too long. */
static int message_take(struct exchange *x, struct span in, struct span *out)
{
    uint8_t *p = arena_alloc(&x->arena, in.n + 1);
    size_t n = 0;

    for (size_t i = 0; p && i < in.n; i++)
        if (in.p[i] != '\r' || i + 1 == in.n || in.p[i + 1] != '\n')
            p[n++] = in.p[i];
    if (!p || talk_is_blank(span_of(p, n)) || n > 4 * TALKS_MESSAGE_MAX || utf8_run(span_of(p, n)) != n ||
        span_index(span_of(p, n), '\0') < n) {
        page_problem(x, 400, "Nothing was said",
                     "A message is a text of at most 6000 characters, 24000 bytes. What you wrote may be there when "
                     "you go back.");
        return -1;
    }
    *out = span_of(p, n);
    return 0;
}

/* Names with commas between them; whether there are such models, the broker says. */
static void put_models(struct jsonw *w, struct span names)
{
    struct span name;
    bool more = true;

    jsonw_kv_array(w, "private");
    while (more) {
        more = span_cut(names, ',', &name, &names);
        jsonw_string(w, span_trim(name));
    }
    jsonw_end_array(w);
}

static struct span chat_json(struct exchange *x, struct span message, uint64_t steps, struct span models)
{
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, JSON_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "message", message);
    if (x->arg.n)
        jsonw_kv(&w, "conversation_id", x->arg);
    jsonw_kv_object(&w, "budget");
    jsonw_kv_u64(&w, "steps", steps);
    jsonw_end_object(&w);
    if (models.n)
        put_models(&w, models);
    jsonw_end_object(&w);
    return arena_keep(&x->arena, &b);
}

void page_talk_say(struct exchange *x)
{
    struct talks_ask q = {.method = "POST", .target = SPAN("/chat")};
    struct span mark, key, steps, message, models;
    struct id id;
    uint64_t n = STEPS;

    if (form_field(x, "mark", &mark) != 0 || form_field(x, "key", &key) != 0 || form_field(x, "steps", &steps) != 0 ||
        form_field(x, "message", &message) != 0 || form_field(x, "private", &models) != 0 ||
        !page_mark_good(x, "talk", key, mark))
        return;
    if (id_parse(key, &id) != 0 || (x->arg.n && id_parse(x->arg, &id) != 0)) {
        page_problem(x, 400, "Bad request", "This is not the form that the page has.");
        return;
    }
    if (steps.n && (span_u64(steps, STEPS_MAX, &n) != 0 || n == 0)) {
        page_problem(x, 400, "Nothing was said", "The number of steps is a whole number from 1 to 1000.");
        return;
    }
    if (message_take(x, message, &message) != 0)
        return;
    models = span_trim(models);
    if (models.n > MODELS_MAX || utf8_run(models) != models.n) {
        page_problem(x, 400, "Nothing was said", "Names of models are a text of at most 8192 bytes.");
        return;
    }
    struct saying *keep = arena_alloc(&x->arena, sizeof *keep);
    q.once = key;
    q.json = chat_json(x, message, n, models);
    if (keep) {
        *keep = (struct saying){.key = key, .message = message, .models = models, .steps = n};
        digest_of(message, &keep->text);
    }
    x->step = keep;
    if (q.json.p && keep)
        talks_begin(x, &q, said);
    else
        page_problem(x, 503, "Not possible now", "There is no memory for this form.");
}

static void cancelled(struct exchange *x, unsigned status, struct span body)
{
    const struct span *turn = x->step;

    if (!talks_came(x, status, 202, body))
        return;
    note(x, "conversation-cancelled", x->arg, *turn, NULL);
    back(x, x->arg);
}

void page_talk_cancel(struct exchange *x)
{
    struct talks_ask q = {.method = "POST"};
    struct span mark, turn;
    struct id id;

    if (form_field(x, "mark", &mark) != 0 || form_field(x, "turn", &turn) != 0 ||
        !page_mark_good(x, "talk-cancel", turn, mark))
        return;
    if (id_parse(turn, &id) != 0 || id_parse(x->arg, &id) != 0) {
        page_problem(x, 400, "Bad request", "This is not the form that the page has.");
        return;
    }
    struct span *kept = arena_alloc(&x->arena, sizeof *kept);
    if (!kept) {
        page_problem(x, 503, "Not possible now", "There is no memory for this form.");
        return;
    }
    *kept = turn;
    x->step = kept;
    q.target = arena_printf(&x->arena, "/turns/%.*s/cancel", SPAN_FMT(turn));
    talks_begin(x, &q, cancelled);
}
