/* First byte: which message between processes. The rest: its bytes. What decodes, encoded again, is the same bytes:
 * so there is one spelling of a message, and nothing of it is lost. */
#include "proxy/refusals.h"
#include "proxy/wire_ticket.h"
#include "proxy/wire.h"
#include "tests/fuzz/fuzz.h"

static union {
    struct wire_request request;
    struct wire_answer answer;
    struct wire_reply reply;
    struct wire_upstream upstream;
    struct wire_forward forward;
    struct wire_record record;
    struct wire_ticket ticket;
    struct wire_ticket_state state;
    struct wire_sandbox sandbox;
    struct wire_listener listener;
    struct wire_limits limits;
    struct wire_over over;
    struct wire_review review;
} u;

#define PAIR(name, member)                                                                                           \
    static int get_##name(struct msg_in *m)                                                                          \
    {                                                                                                                \
        return wire_get_##name(m, &u.member);                                                                        \
    }                                                                                                                \
    static void put_##name(struct dynbuf *b)                                                                         \
    {                                                                                                                \
        wire_put_##name(b, &u.member);                                                                               \
    }
PAIR(request, request)
PAIR(answer, answer)
PAIR(reply, reply)
PAIR(upstream, upstream)
PAIR(forward, forward)
PAIR(record, record)
PAIR(ticket, ticket)
PAIR(ticket_state, state)
PAIR(sandbox, sandbox)
PAIR(listener, listener)
PAIR(limits, limits)
PAIR(over, over)
PAIR(review, review)

static const struct {
    int (*get)(struct msg_in *m);
    void (*put)(struct dynbuf *b);
} pairs[] = {
    {get_request, put_request}, {get_answer, put_answer},
    {get_reply, put_reply},     {get_upstream, put_upstream},
    {get_forward, put_forward}, {get_record, put_record},
    {get_ticket, put_ticket},   {get_ticket_state, put_ticket_state},
    {get_sandbox, put_sandbox}, {get_listener, put_listener},
    {get_limits, put_limits},   {get_over, put_over},
    {get_review, put_review},
};

/* A table of counts adds up what a message says more than once, so only the second time is it the same. */
static void check_refusals(struct span in)
{
    static struct refusals once, twice;
    struct msg_in m = msg_in(in);
    struct dynbuf b;
    once.n = twice.n = 0;
    if (wire_get_refusals(&m, SPAN_NONE, &once))
        return;
    dynbuf_init(&b, 1 << 16);
    wire_put_refusals(&b, &once);
    m = msg_in(dynbuf_span(&b));
    MUST_HOLD(dynbuf_ok(&b) && wire_get_refusals(&m, SPAN_NONE, &twice) == 0 && once.n == twice.n);
    for (size_t i = 0; i < once.n; i++) {
        uint64_t count = once.row[i].count > UINT32_MAX ? UINT32_MAX : once.row[i].count;
        MUST_HOLD(strcmp(once.row[i].listener, twice.row[i].listener) == 0 && count == twice.row[i].count);
        MUST_HOLD(strcmp(once.row[i].code, twice.row[i].code) == 0);
    }
    dynbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1)
        return 0;
    size_t which = data[0] % (1 + sizeof pairs / sizeof pairs[0]);
    struct span in = span_of(data + 1, n - 1);
    uint8_t *p = fuzz_copy(in);
    if (which == sizeof pairs / sizeof pairs[0]) {
        check_refusals(span_of(p, in.n));
        free(p);
        return 0;
    }
    struct msg_in m = msg_in(span_of(p, in.n));
    memset(&u, 0xa5, sizeof u); /* nothing of an earlier message may be taken for this one's */
    if (pairs[which].get(&m) == 0) {
        struct dynbuf b;
        MUST_HOLD(!m.bad && m.rest.n <= in.n);
        dynbuf_init(&b, in.n);
        pairs[which].put(&b);
        MUST_HOLD(dynbuf_ok(&b) && span_eq(dynbuf_span(&b), span_of(p, in.n - m.rest.n)));
        dynbuf_free(&b);
    } else {
        MUST_HOLD(msg_end(&m) != 0);
    }
    free(p);
    return 0;
}
