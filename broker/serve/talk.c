/* What is said, and asked for, at once: POST /chat, cancelling, lists, history, a fork. */
#include "broker/models/message.h"
#include "broker/serve/serve.h"

enum { TEXT_MAX = 128 * 1024, NAME_SHOWN = 64 };

void talk_unable(struct call *x, enum bstore_result r)
{
    switch (r) {
    case BS_NONE: reply_no(x, 404, "there is no such conversation or turn"); break;
    case BS_FULL: reply_no(x, 429, "as much as may be at once: end or cancel some of it, and try again"); break;
    case BS_CONFLICT: reply_no(x, 409, "this was asked for otherwise before, or cannot be now"); break;
    default: reply_no(x, 503, "the store cannot be used at the moment; try again");
    }
}

void talk_put_id(struct jsonw *w, const char *key, const struct id *id)
{
    char text[ID_TEXT + 1];
    id_text(id, text);
    jsonw_kv(w, key, span_of(text, ID_TEXT));
}

void talk_put_private(struct jsonw *w, struct span names)
{
    struct span name;
    if (names.n == 0)
        return;
    jsonw_kv_array(w, "private");
    while (names.n > 0) {
        (void)span_cut(names, '\n', &name, &names);
        jsonw_string(w, name);
    }
    jsonw_end_array(w);
}

/* --- whose a conversation is -------------------------------------------------------------- */

struct span talk_begun_by(struct span first, const struct bstore_messages *queued, struct arena *a)
{
    struct arena scratch;
    if (first.n == 0 && queued->n > 0)
        first = queued->message[0].body;
    arena_init(&scratch, SERVE_ARENA_MAX);
    struct span by = arena_copy(a, message_by(json_parse(first, &scratch)));
    arena_free(&scratch);
    return by;
}

/* Who has a name on the page is held to it by `self_approval`: they speak, and end turns, in what they began there
 * alone, so that what is asked for in it is theirs and nobody else's. False, answered. */
static bool may_speak(struct call *x, const struct id *conversation)
{
    struct bstore_conversations one;
    struct bstore_messages queued;
    if (!call_from_page(x))
        return true;
    enum bstore_result r = bstore_queued(call_store(x), call_tenant(x), conversation, &x->arena, &queued);
    if (r == BS_OK) /* what waits comes first: what begins meanwhile is seen twice, and not missed */
        r = bstore_lately(call_store(x), call_tenant(x), conversation, &x->arena, &one);
    if (r != BS_OK) {
        talk_unable(x, r);
        return false;
    }
    struct span by = talk_begun_by(one.row[0].first, &queued, &x->arena);
    if (by.n > 0 && span_eq(by, call_who(x)))
        return true;
    reply_no(x, 403, "this conversation was begun by %.*s: begin your own to speak",
             SPAN_FMT(by.n > 0 ? by : SPAN("a key, or by nobody who is known")));
    return false;
}

/* --- POST /chat --------------------------------------------------------------------------- */

bool talk_known(struct call *x, const struct json *j, const char *of, const char *const *name)
{
    for (const struct json *m = j->child; m != NULL; m = m->next) {
        const char *const *n = name;
        while (*n != NULL && !span_eq(m->key, span_str(*n)))
            n++;
        if (*n == NULL) {
            reply_no(x, 400, "`%s%.*s` is no member here", of, SPAN_FMT(span_first(m->key, NAME_SHOWN)));
            return false;
        }
    }
    return true;
}

/* A whole number of the body, where it is there. -1, answered. */
static int number(struct call *x, const struct json *j, const char *key, uint64_t most, uint64_t *out)
{
    if (json_get(j, span_str(key)) == NULL)
        return 0;
    if (json_u64(j, span_str(key), out) == 0 && *out > 0 && *out <= most)
        return 0;
    reply_no(x, 400, "`budget.%s` is a whole number from 1 to %llu", key, (unsigned long long)most);
    return -1;
}

static int budget(struct call *x, const struct json *j, struct budget *b)
{
    static const char *const names[] = {"steps", "tokens", "cost_micro", "wall_ms", "same_calls", NULL};
    *b = (struct budget){.steps = 100, .wall_ms = 3600 * 1000};
    if (j != NULL && j->type != JSON_OBJECT) {
        reply_no(x, 400, "`budget` is an object of steps, tokens, cost_micro, wall_ms and same_calls");
        return -1;
    }
    if (j != NULL && !talk_known(x, j, "budget.", names))
        return -1;
    return number(x, j, "steps", TURN_STEPS_MAX, &b->steps) != 0 ||
                   number(x, j, "tokens", INT64_MAX >> 11, &b->tokens) != 0 ||
                   number(x, j, "cost_micro", INT64_MAX >> 11, &b->cost_micro) != 0 ||
                   number(x, j, "wall_ms", 7 * 86400 * 1000u, &b->wall_ms) != 0 ||
                   number(x, j, "same_calls", TURN_SAME_MAX, &b->same_calls) != 0
               ? -1
               : 0;
}

static bool is_named(struct span names, struct span name)
{
    struct span one;
    while (names.n > 0) {
        (void)span_cut(names, '\n', &one, &names);
        if (span_eq(one, name))
            return true;
    }
    return false;
}

static bool has_one_that_answers(const struct serve *s, struct span names)
{
    for (size_t i = 0; i < s->answers; i++)
        if (is_named(names, s->answer[i]))
            return true;
    return false;
}

/* Which models may see it, where that is said: each is one that there is, since a name that is misspelt would leave
 * it to nobody, and one line of what is kept; and one of them at least answers turns. Said when it begins, and not
 * again. -1, answered. */
static int privacy(struct call *x, const struct json *j, bool begun, struct span *out)
{
    struct dynbuf b;
    if (j == NULL)
        return 0;
    if (begun || j->type != JSON_ARRAY || j->child == NULL) {
        reply_no(x, 400,
                 begun ? "which models may see a conversation is said when it begins: `private` and "
                         "`conversation_id` are not said together"
                       : "`private` is a list of the names of models, with one at least, or not there");
        return -1;
    }
    dynbuf_init(&b, BSTORE_PRIVATE_MAX);
    for (const struct json *m = j->child; m != NULL; m = m->next) {
        bool is =
            m->type == JSON_STRING && live_has_model(x->serve, m->text) && span_index(m->text, '\n') == m->text.n;
        if (!is || is_named(dynbuf_span(&b), m->text)) {
            reply_no(x, 400,
                     is ? "`private` has `%.*s` twice" : "`private` has `%.*s`, which is no model of the table",
                     SPAN_FMT(span_first(m->text, NAME_SHOWN)));
            dynbuf_free(&b);
            return -1;
        }
        if (b.n > 0)
            (void)dynbuf_add_byte(&b, '\n');
        (void)dynbuf_add(&b, m->text);
    }
    *out = arena_keep(&x->arena, &b);
    if (out->n > 0 && !has_one_that_answers(x->serve, *out)) {
        reply_no(x, 400,
                 "`private` has no model that answers turns: name one at least of the first task of the table");
        return -1;
    }
    if (out->n > 0) /* else it would be one that all may see */
        return 0;
    reply_no(x, 413, "`private` is longer than %d bytes", BSTORE_PRIVATE_MAX);
    return -1;
}

static struct span said(struct call *x, struct span text)
{
    const struct block block = {.kind = BLOCK_TEXT, .text = text};
    const struct message m = {.of = MESSAGE_USER, .block = &block, .n = 1};
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, BSTORE_BODY_MAX);
    jsonw_begin(&w, &b);
    message_put_said(&w, &m, call_who(x));
    return arena_keep(&x->arena, &b);
}

void talk_accepted(struct call *x, const struct bstore_chatted *c)
{
    char conversation[ID_TEXT + 1];
    struct jsonw w;
    id_text(&c->conversation, conversation);
    reply_json(x, 202, &w);
    jsonw_object(&w);
    talk_put_id(&w, "conversation_id", &c->conversation);
    talk_put_id(&w, "turn_id", &c->turn);
    jsonw_kv(&w, "stream_url", arena_printf(&x->arena, "/stream/%s", conversation));
    jsonw_kv(&w, "last_event_id",
             arena_printf(&x->arena, "%llu.%llu", (unsigned long long)c->log_epoch, (unsigned long long)c->log_seq));
    jsonw_end_object(&w);
    call_answer(x);
}

void talk_chat(struct call *x)
{
    static const char *const names[] = {"message", "conversation_id", "budget", "private", NULL};
    const struct json *j = json_parse(dynbuf_span(&x->body), &x->arena), *of = json_get(j, SPAN("conversation_id"));
    const struct http_field *key = http_find(&x->head, SPAN("Idempotency-Key"));
    struct span text = json_text(j, SPAN("message"));
    struct bstore_chat in = {.tenant = call_tenant(x), .key = key != NULL ? key->value : SPAN_NONE};
    struct bstore_chatted out;
    if (j == NULL || j->type != JSON_OBJECT || text.n == 0 || text_is_blank(text)) {
        reply_no(x, 400,
                 "a chat is a JSON object with `message`, a text, and maybe `conversation_id`, `budget` and "
                 "`private`");
        return;
    }
    if (!talk_known(x, j, "", names))
        return;
    if (of != NULL && of->type != JSON_STRING) {
        reply_no(x, 400, "`conversation_id` is a text, or not there");
        return;
    }
    if (text.n > TEXT_MAX || in.key.n > BSTORE_KEY_MAX) {
        reply_no(x, 413, "a message has at most %d bytes, an Idempotency-Key %d", TEXT_MAX, BSTORE_KEY_MAX);
        return;
    }
    if (of != NULL && id_parse(of->text, &in.conversation) != 0) {
        reply_no(x, 404, "there is no such conversation");
        return;
    }
    if (budget(x, json_get(j, SPAN("budget")), &in.budget) != 0 ||
        privacy(x, json_get(j, SPAN("private")), of != NULL, &in.private) != 0 ||
        (of != NULL && !may_speak(x, &in.conversation)))
        return;
    in.body = said(x, text);
    digest_of(dynbuf_span(&x->body), &in.request);
    enum bstore_result r = in.body.p != NULL ? bstore_chat(call_store(x), &in, &out) : BS_FULL;
    if (r == BS_OK || r == BS_AGAIN)
        talk_accepted(x, &out);
    else if (r == BS_CONFLICT)
        reply_no(x, 409, "this Idempotency-Key came with another request before");
    else if (r == BS_SPENT)
        usage_spent(x, in.tenant);
    else
        talk_unable(x, r);
}

/* --- turns --------------------------------------------------------------------------------- */

bool talk_id(struct call *x, struct id *id)
{
    if (id_parse(x->arg, id) == 0)
        return true;
    reply_no(x, 404, "there is no such conversation or turn");
    return false;
}

/* Of a replay: of which turn it is one, and of a live one, which model is asked. */
static void put_replay(struct jsonw *w, struct span of)
{
    if (of.n >= ID_TEXT)
        jsonw_kv(w, "replay_of", span_first(of, ID_TEXT));
    if (of.n > ID_TEXT)
        jsonw_kv(w, "live", span_from(of, ID_TEXT + 1));
}

void talk_turn(struct call *x)
{
    struct bstore_turn_row row;
    struct jsonw w;
    struct id id;
    if (!talk_id(x, &id))
        return;
    enum bstore_result r = bstore_turn(call_store(x), call_whose(x), &id, &x->arena, &row);
    if (r != BS_OK) {
        talk_unable(x, r);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    talk_put_id(&w, "turn_id", &id);
    talk_put_id(&w, "conversation_id", &row.conversation);
    jsonw_kv(&w, "state", row.state);
    if (row.end != END_NONE) {
        jsonw_kv(&w, "end", span_str(turn_end_name(row.end)));
        jsonw_kv(&w, "words", span_str(turn_end_words(row.end)));
    }
    if (row.why.n > 0)
        jsonw_kv(&w, "why", row.why);
    put_replay(&w, row.replays);
    jsonw_kv_u64(&w, "steps", row.used.steps);
    jsonw_kv_u64(&w, "tokens", row.used.tokens);
    jsonw_kv_u64(&w, "cost_micro", row.used.cost_micro);
    jsonw_end_object(&w);
    call_answer(x);
}

void talk_cancel(struct call *x)
{
    struct jsonw w;
    struct id id;
    if (!talk_id(x, &id))
        return;
    if (call_from_page(x)) {
        struct bstore_turn_row row;
        enum bstore_result is = bstore_turn(call_store(x), call_tenant(x), &id, &x->arena, &row);
        if (is != BS_OK)
            talk_unable(x, is);
        if (is != BS_OK || !may_speak(x, &row.conversation))
            return;
    }
    enum bstore_result r = bstore_cancel(call_store(x), call_whose(x), &id);
    if (r != BS_OK && r != BS_AGAIN) {
        talk_unable(x, r);
        return;
    }
    reply_json(x, 202, &w);
    jsonw_object(&w);
    talk_put_id(&w, "turn_id", &id);
    jsonw_end_object(&w);
    call_answer(x);
}

/* --- conversations -------------------------------------------------------------------------- */

void talk_list(struct call *x)
{
    struct bstore_conversations all;
    struct id after = {{0}};
    struct span from;
    struct jsonw w;
    if (call_query(x, SPAN("after"), &from) && id_parse(from, &after) != 0) {
        reply_no(x, 400, "`after` is the id of a conversation");
        return;
    }
    enum bstore_result r = bstore_conversations(call_store(x), call_tenant(x), &after, &x->arena, &all);
    if (r != BS_OK) {
        talk_unable(x, r);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "conversations");
    for (size_t i = 0; i < all.n; i++) {
        const struct bstore_conversation *c = &all.row[i];
        jsonw_object(&w);
        talk_put_id(&w, "conversation_id", &c->id);
        jsonw_kv(&w, "phase", c->phase);
        jsonw_kv_u64(&w, "created_ms", c->created_ms);
        jsonw_kv_u64(&w, "changed_ms", c->changed_ms);
        jsonw_kv_u64(&w, "turns", c->turns);
        jsonw_kv_u64(&w, "messages", c->messages);
        jsonw_kv_bool(&w, "busy", c->busy);
        if (c->replay)
            jsonw_kv_bool(&w, "replay", true);
        talk_put_private(&w, c->private);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_kv_bool(&w, "more", all.n == BSTORE_READ_MAX);
    jsonw_end_object(&w);
    call_answer(x);
}

/* One that waits for its turn has no number yet. */
static void put_messages(struct jsonw *w, const char *name, const struct bstore_messages *all)
{
    jsonw_kv_array(w, name);
    for (size_t i = 0; i < all->n; i++) {
        jsonw_object(w);
        if (strcmp(name, "messages") == 0)
            jsonw_kv_u64(w, "seq", all->message[i].seq);
        talk_put_id(w, "turn_id", &all->message[i].turn);
        jsonw_kv(w, "role", all->message[i].role);
        jsonw_kv_raw(w, "message", all->message[i].body);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

void talk_history(struct call *x)
{
    struct bstore_messages page, queued;
    struct span from;
    uint64_t after = 0;
    struct jsonw w;
    struct id id;
    if (!talk_id(x, &id))
        return;
    if (call_query(x, SPAN("after"), &from) && span_u64(from, INT64_MAX, &after) != 0) {
        reply_no(x, 400, "`after` is the number of a message");
        return;
    }
    /* First what waits: one that begins meanwhile is said twice, and not left out. */
    enum bstore_result r = bstore_queued(call_store(x), call_tenant(x), &id, &x->arena, &queued);
    if (r == BS_OK)
        r = bstore_messages(call_store(x), call_tenant(x), &id, after, &x->arena, &page);
    if (r != BS_OK) {
        talk_unable(x, r);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    put_messages(&w, "messages", &page);
    put_messages(&w, "queued", &queued);
    jsonw_kv_bool(&w, "more", page.n > 0);
    jsonw_end_object(&w);
    call_answer(x);
}

/* With the first so many messages of it; its sandbox and its log stay behind. */
void talk_fork(struct call *x)
{
    const struct json *j = json_parse(dynbuf_span(&x->body), &x->arena);
    struct id id, made;
    uint64_t messages = 0;
    struct jsonw w;
    if (!talk_id(x, &id))
        return;
    if (json_u64(j, SPAN("messages"), &messages) != 0 || messages == 0) {
        reply_no(x, 400, "a fork says how many `messages` it begins with");
        return;
    }
    enum bstore_result r = bstore_fork(call_store(x), call_tenant(x), &id, messages, &made);
    if (r == BS_CONFLICT)
        reply_no(x, 409, "it has not so many messages, or calls would be cut from their results there");
    else if (r == BS_FULL)
        reply_no(x, 413, "a fork begins with at most %d messages of %d bytes in all, and %d conversations are kept",
                 BSTORE_FORK_MAX, BSTORE_FORK_BYTES_MAX, BSTORE_CONVERSATIONS_EACH);
    else if (r != BS_OK)
        talk_unable(x, r);
    else {
        reply_json(x, 201, &w);
        jsonw_object(&w);
        talk_put_id(&w, "conversation_id", &made);
        jsonw_end_object(&w);
        call_answer(x);
    }
}
