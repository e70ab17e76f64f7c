/* What a page shows: the conversations of late, and one of them as it is now, in one answer: what was said last, what
 * waits, its last turn, of which classes its calls were and how they ended, and what is there of a step that runs. */
#include "broker/models/message.h"
#include "broker/serve/serve.h"

enum {
    SAID = 100,            /* messages, the newest */
    TURNS = 16,            /* looked at for who waits and who runs */
    EVENTS = 512,          /* of the log, the newest */
    LIVE_MAX = 128 * 1024, /* of what the model has said by now */
    WORDS_MAX = 400,       /* of the message that a conversation began with */
    WHY_MAX = 500,
    TEXT_MAX = 16 * 1024,    /* of one text, or one result */
    TEXTS_MAX = 2048 * 1024, /* of all of them, as JSON: older messages are left out */
    BLOCKS_MAX = 512,        /* and of these */
    SCRATCH_MAX = 16 * 1024 * 1024
};

/* --- the conversations of late ---------------------------------------------------------------- */

/* The first text of it. */
static struct span words_of(struct span body, struct arena *a)
{
    const struct json *b = json_get(json_parse(body, a), SPAN("blocks"));
    for (b = b != NULL ? b->child : NULL; b != NULL; b = b->next)
        if (span_eq(json_text(b, SPAN("type")), SPAN("text")))
            return span_first(json_text(b, SPAN("text")), WORDS_MAX);
    return SPAN_NONE;
}

static void put_row(struct jsonw *w, const struct bstore_conversation *c, const struct bstore_messages *queued)
{
    struct arena a;
    arena_init(&a, SCRATCH_MAX);
    talk_put_id(w, "conversation_id", &c->id);
    jsonw_kv(w, "phase", c->phase);
    jsonw_kv_u64(w, "created_ms", c->created_ms);
    jsonw_kv_u64(w, "changed_ms", c->changed_ms);
    jsonw_kv_u64(w, "turns", c->turns);
    jsonw_kv_u64(w, "messages", c->messages);
    jsonw_kv_bool(w, "busy", c->busy);
    talk_put_private(w, c->private);
    jsonw_kv(w, "words", words_of(c->first, &a));
    jsonw_kv(w, "begun_by", talk_begun_by(c->first, queued, &a));
    arena_free(&a);
}

void view_lately(struct call *x)
{
    static const struct id any;
    static const struct bstore_messages none;
    struct bstore_conversations all;
    struct jsonw w;
    enum bstore_result r = bstore_lately(call_store(x), call_tenant(x), &any, &x->arena, &all);
    if (r != BS_OK) {
        talk_unable(x, r);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "conversations");
    for (size_t i = 0; i < all.n; i++) {
        jsonw_object(&w);
        put_row(&w, &all.row[i], &none);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_kv_bool(&w, "more", all.n == BSTORE_LATELY_MAX);
    jsonw_end_object(&w);
    call_answer(x);
}

/* --- one of them ------------------------------------------------------------------------------ */

/* What of a message is shown: its blocks, long texts cut, with how long they are. */
static void put_text(struct jsonw *w, const char *key, struct span text)
{
    jsonw_kv(w, key, span_first(text, TEXT_MAX));
    if (text.n > TEXT_MAX)
        jsonw_kv_u64(w, "bytes", text.n);
}

static void put_block(struct jsonw *w, const struct json *b)
{
    struct span type = json_text(b, SPAN("type"));
    const struct json *failed = json_get(b, SPAN("failed"));
    if (span_eq(type, SPAN("opaque"))) /* nobody but its provider understands it */
        return;
    jsonw_object(w);
    jsonw_kv(w, "type", type);
    if (json_get(b, SPAN("id")) != NULL)
        jsonw_kv(w, "id", json_text(b, SPAN("id")));
    if (span_eq(type, SPAN("call"))) {
        jsonw_kv(w, "name", json_text(b, SPAN("name")));
        put_text(w, "arguments", json_text(b, SPAN("json")));
    } else {
        put_text(w, "text", json_text(b, SPAN("text")));
    }
    if (span_eq(type, SPAN("result"))) /* what is not said plainly to have gone well has failed */
        jsonw_kv_bool(w, "failed", failed == NULL || failed->type != JSON_BOOL || failed->truth);
    jsonw_end_object(w);
}

static void put_message(struct jsonw *w, const struct bstore_read_message *m)
{
    struct arena a;
    size_t n = 0;
    arena_init(&a, SCRATCH_MAX);
    const struct json *j = json_parse(m->body, &a), *b = json_get(j, SPAN("blocks"));
    jsonw_object(w);
    talk_put_id(w, "turn_id", &m->turn);
    jsonw_kv(w, "role", m->role);
    jsonw_kv(w, "by", message_by(j));
    jsonw_kv(w, "stopped", message_stopped(j));
    jsonw_kv_array(w, "blocks");
    for (b = b != NULL ? b->child : NULL; b != NULL && n++ < BLOCKS_MAX; b = b->next)
        put_block(w, b);
    jsonw_end_array(w);
    jsonw_end_object(w);
    arena_free(&a);
}

/* The newest of what was said, each as it is shown: the oldest of them goes when one comes that finds no room. */
struct window {
    struct shown {
        uint64_t seq;
        struct dynbuf json;
    } of[SAID];
    size_t first, n, bytes;
};

static void window_drop(struct window *k)
{
    struct shown *s = &k->of[k->first];
    k->bytes -= s->json.n;
    dynbuf_free(&s->json);
    k->first = (k->first + 1) % SAID;
    k->n--;
}

static int window_add(struct window *k, const struct bstore_read_message *m)
{
    if (k->n == SAID)
        window_drop(k);
    struct shown *s = &k->of[(k->first + k->n) % SAID];
    struct jsonw w;
    s->seq = m->seq;
    dynbuf_init(&s->json, SCRATCH_MAX);
    jsonw_begin(&w, &s->json);
    put_message(&w, m);
    k->n++;
    k->bytes += s->json.n;
    while (k->n > 1 && k->bytes > TEXTS_MAX)
        window_drop(k);
    return dynbuf_ok(&k->of[(k->first + k->n - 1) % SAID].json) ? 0 : -1;
}

/* Page after page, to the end: what was said last is what nobody may miss. */
static enum bstore_result read_said(struct call *x, const struct id *id, uint64_t after, struct window *k)
{
    enum bstore_result r;
    bool more = true;
    do {
        struct bstore_messages page;
        struct arena a;
        arena_init(&a, SERVE_ARENA_MAX);
        r = bstore_messages(call_store(x), call_tenant(x), id, after, &a, &page);
        more = r == BS_OK && page.n > 0;
        for (size_t i = 0; more && i < page.n; i++) {
            after = page.message[i].seq;
            more = window_add(k, &page.message[i]) == 0;
        }
        arena_free(&a);
        if (r == BS_OK && page.n > 0 && !more)
            return BS_FAIL;
    } while (more);
    return r;
}

static void put_said(struct jsonw *w, const struct window *k)
{
    jsonw_kv_array(w, "said");
    for (size_t i = 0; i < k->n; i++)
        jsonw_raw(w, dynbuf_span(&k->of[(k->first + i) % SAID].json));
    jsonw_end_array(w);
    jsonw_kv_u64(w, "older", k->n > 0 ? k->of[k->first].seq - 1 : 0);
}

static void put_queued(struct jsonw *w, const struct bstore_messages *all)
{
    jsonw_kv_array(w, "queued");
    for (size_t i = 0; i < all->n; i++)
        put_message(w, &all->message[i]);
    jsonw_end_array(w);
}

struct view {
    struct id id;
    struct bstore_conversation row;
    struct window said;
    struct bstore_messages queued;
    struct bstore_turns turns;
    char running[ID_TEXT + 1]; /* the turn that runs; or empty */
    uint64_t steps;            /* that it has settled: what follows is not among what was said yet */
    struct bstore_log log;
    struct dynbuf live;
    struct span why; /* it waits, and why */
};

static enum bstore_result read_talk(struct call *x, struct view *v)
{
    struct bstore_conversations one;
    struct bstore *s = call_store(x);
    struct span tenant = call_tenant(x);
    enum bstore_result r = bstore_lately(s, tenant, &v->id, &x->arena, &one);
    if (r != BS_OK)
        return r;
    v->row = one.row[0];
    r = bstore_queued(s, tenant, &v->id, &x->arena, &v->queued); /* first what waits, see talk_history */
    if (r == BS_OK)
        r = read_said(x, &v->id, v->row.messages > SAID ? v->row.messages - SAID : 0, &v->said);
    if (r == BS_OK)
        r = bstore_turns(s, tenant, &v->id, v->row.turns > TURNS ? v->row.turns - TURNS : 0, &x->arena, &v->turns);
    return r;
}

static enum bstore_result put_turns(struct call *x, struct jsonw *w, struct view *v)
{
    enum bstore_result r = BS_OK;
    jsonw_kv_array(w, "open");
    for (size_t i = 0; i < v->turns.n && r == BS_OK; i++) {
        struct bstore_turn_row t;
        const struct id *id = &v->turns.row[i].id;
        if (v->turns.row[i].end != END_NONE && i + 1 < v->turns.n)
            continue;
        if ((r = bstore_turn(call_store(x), call_tenant(x), id, &x->arena, &t)) != BS_OK)
            break;
        jsonw_object(w);
        talk_put_id(w, "turn_id", id);
        jsonw_kv(w, "state", t.state);
        jsonw_kv(w, "end", span_str(t.end != END_NONE ? turn_end_name(t.end) : ""));
        jsonw_kv(w, "words", span_str(t.end != END_NONE ? turn_end_words(t.end) : ""));
        jsonw_kv(w, "why", t.why);
        jsonw_kv_u64(w, "steps", t.used.steps);
        jsonw_kv_u64(w, "tokens", t.used.tokens);
        jsonw_kv_u64(w, "cost_micro", t.used.cost_micro);
        jsonw_end_object(w);
        if (span_eq(t.state, SPAN("running")) && t.end == END_NONE) {
            id_text(id, v->running);
            v->steps = t.used.steps;
        }
    }
    jsonw_end_array(w);
    return r;
}

/* A call as it begins, or as it ended; of a step that runs, with what it is given and gave. */
static void put_call(struct jsonw *w, const struct json *j, bool live)
{
    static const char *const words[] = {"turn", "tool", "class", "end"}, *const more[] = {"arguments", "result"};
    uint64_t step = 0, call = 0;
    if (json_u64(j, SPAN("step"), &step) != 0 || json_u64(j, SPAN("call"), &call) != 0)
        return;
    jsonw_object(w);
    jsonw_kv_u64(w, "step", step);
    jsonw_kv_u64(w, "call", call);
    jsonw_kv_bool(w, "live", live);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (json_get(j, span_str(words[i])) != NULL)
            jsonw_kv(w, words[i], json_text(j, span_str(words[i])));
    for (size_t i = 0; live && i < sizeof(more) / sizeof(more[0]); i++)
        if (json_get(j, span_str(more[i])) != NULL)
            jsonw_kv(w, more[i], json_text(j, span_str(more[i])));
    jsonw_end_object(w);
}

static void put_event(struct call *x, struct jsonw *w, struct view *v, const struct bstore_read_event *e)
{
    struct arena a;
    uint64_t step = 0;
    arena_init(&a, SCRATCH_MAX);
    const struct json *j = json_parse(e->body, &a);
    bool live = v->running[0] != '\0' && span_eq(json_text(j, SPAN("turn")), span_str(v->running)) &&
                (json_u64(j, SPAN("step"), &step) != 0 || step > v->steps);
    if (span_eq(e->type, SPAN("tool.call")) || span_eq(e->type, SPAN("tool.done")))
        put_call(w, j, live);
    else if (live && span_eq(e->type, SPAN("message.delta")))
        (void)dynbuf_add(&v->live, span_first(json_text(j, SPAN("text")), LIVE_MAX - v->live.n));
    else if (live && span_eq(e->type, SPAN("turn.attempt_superseded")))
        dynbuf_reset(&v->live); /* what was shown of it is void */
    if (live)
        v->why = span_eq(e->type, SPAN("turn.retry"))
                     ? arena_copy(&x->arena, span_first(json_text(j, SPAN("why")), WHY_MAX))
                     : SPAN_NONE;
    arena_free(&a);
}

/* The newest of the log, a page after the other. The first question is for its bounds alone: no log has that epoch.
 */
static enum bstore_result put_events(struct call *x, struct jsonw *w, struct view *v)
{
    struct arena a;
    arena_init(&a, SERVE_ARENA_MAX);
    enum bstore_result r = bstore_events(call_store(x), call_tenant(x), &v->id, INT64_MAX, 0, &a, &v->log);
    uint64_t epoch = v->log.epoch, next = v->log.next,
             after = next > EVENTS + v->log.first ? next - 1 - EVENTS : v->log.first - 1;
    jsonw_kv_array(w, "calls");
    r = r == BS_LOST ? BS_OK : r;
    while (r == BS_OK && after + 1 < next) {
        arena_free(&a);
        arena_init(&a, SERVE_ARENA_MAX);
        r = bstore_events(call_store(x), call_tenant(x), &v->id, epoch, after, &a, &v->log);
        if (r != BS_OK || v->log.n == 0)
            break;
        for (size_t i = 0; i < v->log.n; i++)
            put_event(x, w, v, &v->log.event[i]);
        after = v->log.event[v->log.n - 1].seq;
    }
    jsonw_end_array(w);
    arena_free(&a);
    jsonw_kv(w, "last_event_id",
             arena_printf(&x->arena, "%llu.%llu", (unsigned long long)epoch, (unsigned long long)after));
    return r == BS_LOST ? BS_OK : r; /* it was shortened meanwhile: what there is, was said */
}

static void view_free(struct view *v)
{
    while (v->said.n > 0)
        window_drop(&v->said);
    dynbuf_free(&v->live);
}

void view_one(struct call *x)
{
    struct view v = {.steps = 0};
    struct jsonw w;
    if (!talk_id(x, &v.id))
        return;
    enum bstore_result r = read_talk(x, &v);
    if (r != BS_OK) {
        view_free(&v);
        talk_unable(x, r);
        return;
    }
    dynbuf_init(&v.live, LIVE_MAX);
    reply_json(x, 200, &w);
    jsonw_object(&w);
    put_row(&w, &v.row, &v.queued);
    put_said(&w, &v.said);
    put_queued(&w, &v.queued);
    r = put_turns(x, &w, &v);
    if (r == BS_OK)
        r = put_events(x, &w, &v);
    jsonw_kv(&w, "live", dynbuf_span(&v.live));
    jsonw_kv(&w, "waits", v.why);
    jsonw_end_object(&w);
    view_free(&v);
    if (r != BS_OK)
        talk_unable(x, r);
    else
        call_answer(x);
}
