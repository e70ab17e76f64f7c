/* An answer's stream as one text: what was shown, and what came of it. It must be the same at every cut. */
#ifndef TESTS_UNIT_MODELS_ANSWER_KIT_H
#define TESTS_UNIT_MODELS_ANSWER_KIT_H

#include "tests/kit.h"

#include "broker/models/answer/answer.h"

enum { TOLD_MAX = 64 * 1024 * 1024 };

#define EVENT(name, data) "event: " name "\ndata: " data "\n\n"
#define CHUNK(data)       "data: " data "\n\n"

static const struct model_origin origin = {SPAN("prov"), SPAN("m-1"), SPAN("https://api.test/v1")};

static inline void note_delta(void *ctx, const struct answer_delta *d)
{
    static const char letters[] = "?tran"; /* text, reasoning, a call's arguments, a call's name */
    char c = d->kind == DELTA_CALL ? 'n' : d->kind == DELTA_ARGUMENTS ? 'a' : letters[d->kind];
    assert_true(d->kind > DELTA_NONE && d->kind <= DELTA_ARGUMENTS && d->text.n > 0);
    (void)dynbuf_addf(ctx, "%c%zu:", c, d->piece);
    (void)dynbuf_add(ctx, d->text);
    (void)dynbuf_add_byte(ctx, '|');
}

static inline void put_result(struct dynbuf *out, const struct answer_result *r)
{
    struct jsonw w;
    const struct model_usage *u = &r->usage;
    (void)dynbuf_addf(out, "\n%s %s", r->end == ANSWER_COMPLETE ? "complete" : "failed", answer_stop_name(r->stop));
    if (u->known)
        (void)dynbuf_addf(out, " used %zu+%zu+%zu>%zu(%zu)", (size_t)u->input, (size_t)u->cache_read,
                          (size_t)u->cache_write, (size_t)u->output, (size_t)u->reasoning);
    (void)dynbuf_addf(out, " %.*s %.*s\n", SPAN_FMT(r->foreign), SPAN_FMT(r->model));
    if (r->end != ANSWER_COMPLETE) {
        assert_true(r->message.n == 0 && r->ncalls == 0);
        (void)dynbuf_addf(out, "%s %s: %s", fault_name(r->fault.kind), r->fault.code, r->fault.words);
        return;
    }
    jsonw_begin(&w, out);
    message_put(&w, &r->message);
    for (size_t i = 0; i < r->ncalls; i++)
        (void)dynbuf_addf(out, "\n%.*s=%.*s %s", SPAN_FMT(r->call[i].block->id), SPAN_FMT(r->call[i].foreign),
                          r->call[i].broken ? r->call[i].broken : "runs");
}

/* Fed in pieces of `step` bytes, the first one shorter by `less`. */
static inline void tell(enum model_protocol p, struct span stream, size_t step, size_t less, struct dynbuf *out)
{
    struct answer *a = answer_begin(p, &origin, SPAN("c7"), note_delta, out);
    assert_non_null(a);
    for (size_t at = 0, n = step - less; at < stream.n; at += n, n = step)
        if (!answer_feed(a, span_first(span_from(stream, at), n)))
            break;
    put_result(out, answer_finish(a));
    assert_false(out->failed);
    answer_free(&a);
    assert_null(a);
}

/* In one piece, byte by byte, and cut in two at every place. */
static inline void tells(enum model_protocol p, struct span stream, const char *want)
{
    struct dynbuf got;
    dynbuf_init(&got, TOLD_MAX);
    for (size_t cut = 0; cut <= stream.n; cut++) {
        dynbuf_reset(&got);
        tell(p, stream, cut == 0 ? 1 : stream.n, cut == 0 ? 0 : stream.n - cut, &got);
        if (!span_eq(dynbuf_span(&got), span_str(want)))
            print_error("cut at %zu:\n%.*s\n", cut, SPAN_FMT(dynbuf_span(&got)));
        assert_true(span_eq(dynbuf_span(&got), span_str(want)));
    }
    dynbuf_free(&got);
}

#define TELLS(protocol, stream, want) tells(protocol, SPAN(stream), want)

#endif
