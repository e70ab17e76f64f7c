/* A model's answer is the same however its stream was cut; what is complete can be kept, read back, and told to any
 * model. Input: a byte for the protocol, one for the cuts, then the stream. */
#include "broker/models/answer/answer.h"
#include "broker/models/request/request.h"
#include "tests/fuzz/fuzz.h"

enum { IN_MAX = 64 * 1024, OUT_MAX = 64 * 1024 * 1024 };
static const struct model_origin origin = {SPAN("p"), SPAN("m"), SPAN("https://x/v1")};
static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void note(void *ctx, const struct answer_delta *d)
{
    MUST_HOLD(d->kind != DELTA_NONE && d->text.n > 0);
    (void)dynbuf_addf(ctx, "%d.%zu.%zu:", (int)d->kind, d->piece, d->text.n);
    (void)dynbuf_add(ctx, d->text);
}

static void put(struct dynbuf *out, const struct answer_result *r)
{
    struct jsonw w;
    (void)dynbuf_addf(out, "\n%d %d %d %d %llu %llu %llu %s %s %zu %zu\n", (int)r->end, (int)r->stop, (int)r->shown,
                      (int)r->usage.known, (unsigned long long)r->usage.input,
                      (unsigned long long)r->usage.cache_read, (unsigned long long)r->usage.output, r->fault.code,
                      r->fault.words, r->message.n, r->ncalls);
    (void)dynbuf_add(out, r->foreign);
    (void)dynbuf_add(out, r->model);
    jsonw_begin(&w, out);
    message_put(&w, &r->message);
    for (size_t i = 0; i < r->ncalls; i++) {
        (void)dynbuf_add(out, r->call[i].foreign);
        (void)dynbuf_add(out, span_str(r->call[i].broken ? r->call[i].broken : "runs"));
    }
}

/* Kept as JSON, and read back. */
static void keep(const struct message *m)
{
    struct arena a;
    struct dynbuf text;
    struct jsonw w;
    struct message back;
    struct err e;
    arena_init(&a, OUT_MAX);
    dynbuf_init(&text, OUT_MAX);
    jsonw_begin(&w, &text);
    message_put(&w, m);
    MUST_HOLD(message_get(json_parse(dynbuf_span(&text), &a), &a, &back, &e) == 0);
    MUST_HOLD(back.n == m->n);
    dynbuf_free(&text);
    arena_free(&a);
}

/* With a result for each of its calls it is a conversation that every model takes. */
static void go_on(const struct answer_result *r)
{
    static const struct block say = {.kind = BLOCK_TEXT, .text = SPAN("go")};
    struct block back[ANSWER_CALLS_MAX + 1] = {say};
    for (size_t i = 0; i < r->ncalls; i++)
        back[i + 1] = (struct block){.kind = BLOCK_RESULT, .id = r->call[i].block->id, .text = SPAN("ok")};
    const struct message m[] = {{MESSAGE_USER, &say, 1}, r->message, {MESSAGE_USER, back, r->ncalls + 1}};
    const struct model_request ask = {.message = m, .n = 3, .max_tokens = 1};
    for (enum model_protocol p = MODEL_ANTHROPIC; p <= MODEL_RESPONSES; p++) {
        const struct model_target t = {.name = SPAN("n"), .protocol = p, .origin = origin, .reasoning = true};
        const struct model_privacy all = {.who = WHO_ALL};
        struct arena a;
        struct dynbuf out;
        struct err e;
        arena_init(&a, OUT_MAX);
        dynbuf_init(&out, REQUEST_MAX);
        MUST_HOLD(request_write(&t, &all, &ask, &out, &e) == 0);
        /* What was nested as deep as JSON may be stands deeper now, and two members of one name may meet. */
        enum json_fault why = JSON_MALFORMED;
        const struct json *j = json_parse_twice(dynbuf_span(&out), &a, &why);
        MUST_HOLD(j != NULL || why == JSON_OVER_LIMIT);
        dynbuf_free(&out);
        arena_free(&a);
    }
}

static void fed(enum model_protocol p, struct span in, size_t step, struct dynbuf *out)
{
    struct answer *a = answer_begin(p, &origin, SPAN("p"), note, out);
    MUST_HOLD(a != NULL);
    dynbuf_init(out, OUT_MAX);
    for (size_t at = 0, n = step; at < in.n; at += n, n = n % 7 + step)
        if (!answer_feed(a, span_first(span_from(in, at), n)))
            break;
    const struct answer_result *r = answer_finish(a);
    MUST_HOLD(r->end != ANSWER_OPEN && (r->end == ANSWER_COMPLETE) == (r->fault.kind == FAULT_NONE));
    put(out, r);
    if (r->end == ANSWER_COMPLETE && step > IN_MAX) {
        reached = true;
        keep(&r->message);
        go_on(r);
    }
    answer_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dynbuf whole, cut, bytes;
    if (n < 2 || n > IN_MAX)
        return 0;
    enum model_protocol p = (enum model_protocol)(MODEL_ANTHROPIC + data[0] % 3);
    uint8_t *copy = fuzz_copy(span_of(data + 2, n - 2));
    struct span in = span_of(copy, n - 2);
    fed(p, in, IN_MAX + 1, &whole);
    fed(p, in, data[1] + 1u, &cut);
    fed(p, in, 1, &bytes);
    MUST_HOLD(dynbuf_ok(&whole));
    MUST_HOLD(span_eq(dynbuf_span(&whole), dynbuf_span(&cut)) && span_eq(dynbuf_span(&whole), dynbuf_span(&bytes)));
    dynbuf_free(&whole);
    dynbuf_free(&cut);
    dynbuf_free(&bytes);
    free(copy);
    return 0;
}
