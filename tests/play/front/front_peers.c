#include "tests/play/front/front_peers.h"

#include <stdlib.h>
#include <unistd.h>

struct got take(struct stage *s, struct fake *from, uint16_t type)
{
    UNTIL(s, from->first != NULL || from->gone);
    if (from->first == NULL)
        fail_msg("the front ended the channel instead of message %u", type);
    struct got *g = from->first;
    from->first = g->next;
    if (from->first == NULL)
        from->last = NULL;
    from->n--;
    if (from->taken != NULL && from->taken->fd >= 0)
        close(from->taken->fd);
    free(from->taken);
    from->taken = g;
    if (g->type != type)
        fail_msg("expected message %u, got %u: \"%.*s\"", type, g->type, SPAN_FMT(g->payload));
    return *g;
}

void silent(struct stage *s, struct fake *from)
{
    settle(s);
    if (from->first != NULL)
        fail_msg("message %u was not expected: \"%.*s\"", from->first->type, SPAN_FMT(from->first->payload));
}

uint64_t take_connect(struct stage *s, const char *host, uint16_t port)
{
    struct got g = take(s, &s->judge, M_CONNECT);
    struct msg_in m = msg_in(g.payload);
    assert_true(span_eq(msg_get_span(&m, 5), SPAN("https")));
    struct span to = msg_get_span(&m, HTTP_HOST_MAX);
    if (!span_eq(to, span_str(host)))
        fail_msg("CONNECT to %.*s", SPAN_FMT(to));
    assert_int_equal(msg_get_u16(&m), port);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(g.id >> FRONT_INSTANCE_SHIFT, INSTANCE);
    return g.id;
}

struct ask take_request(struct stage *s)
{
    struct got g = take(s, &s->judge, M_REQUEST);
    struct msg_in m = msg_in(g.payload);
    struct ask a = {.id = g.id};
    assert_int_equal(wire_get_request(&m, &a.r), 0);
    a.reason = msg_get_span(&m, 500);
    a.body = msg_get_u8(&m);
    a.declared = msg_get_u64(&m);
    a.inlined = msg_get_span(&m, BODY_INLINE_MAX);
    assert_int_equal(msg_end(&m), 0);
    return a;
}

void give_reply(struct stage *s, uint64_t id, unsigned status, const char *body, bool close)
{
    struct wire_reply r = {
        .head = {.status = (uint16_t)status, .reason = SPAN("Said so")}, .body = span_str(body), .close = close};
    struct dynbuf *b = chan_begin(s->judge.chan, M_REPLY, id);
    wire_put_reply(b, &r);
    assert_int_equal(chan_commit(s->judge.chan), 0);
}

void give_refused_leaf(struct stage *s, uint64_t id, unsigned status, const char *body)
{
    struct wire_reply r = {
        .head = {.status = (uint16_t)status, .reason = SPAN("Said so")}, .body = span_str(body), .close = true};
    struct dynbuf *b = chan_begin(s->judge.chan, M_LEAF, id);
    msg_put_span(b, SPAN_NONE);
    msg_put_span(b, SPAN_NONE);
    wire_put_reply(b, &r);
    assert_int_equal(chan_commit(s->judge.chan), 0);
}

void give_wanted(struct stage *s, uint64_t id, uint8_t mode, uint64_t max)
{
    struct dynbuf *b = chan_begin(s->judge.chan, M_BODY_WANTED, id);
    msg_put_u8(b, mode);
    msg_put_u64(b, max);
    assert_int_equal(chan_commit(s->judge.chan), 0);
}

void give_body_credit(struct stage *s, uint64_t id, uint32_t n)
{
    struct dynbuf *b = chan_begin(s->judge.chan, M_BODY_CREDIT, id);
    msg_put_u32(b, n);
    assert_int_equal(chan_commit(s->judge.chan), 0);
}

void give_answer(struct stage *s, uint64_t id, unsigned status, enum http_framing framing, uint64_t length, bool end,
                 struct span first)
{
    struct wire_answer a = {
        .status = (uint16_t)status, .reason = SPAN("OK"), .framing = framing, .length = length, .nfields = 1};
    a.field[0] = (struct http_field){SPAN("X-From"), SPAN("upstream")};
    struct dynbuf *b = chan_begin(s->carrier.chan, M_ANSWER, id);
    wire_put_answer(b, &a);
    msg_put_u8(b, end);
    msg_put_span(b, first);
    assert_int_equal(chan_commit(s->carrier.chan), 0);
}

void give_body(struct stage *s, uint64_t id, struct span data)
{
    assert_int_equal(chan_send(s->carrier.chan, M_ANSWER_BODY, id, data), 0);
}

void give_end(struct stage *s, uint64_t id, bool ok)
{
    uint8_t said = ok;
    assert_int_equal(chan_send(s->carrier.chan, M_ANSWER_END, id, span_of(&said, 1)), 0);
}
