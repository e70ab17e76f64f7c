/* What the gateway sends itself once it is approved: the judge is told of it then, and again as long as it is not on
 * its way, since it may have been another judge's, or a frozen sandbox's, when it was told. Also what a sandbox asks
 * of its own tickets. */
#include "common/log.h"
#include "common/time/clock.h"
#include "proxy/ledger/ledger.h"

enum { AT_ONCE = 16, AT_ONCE_BYTES = 4 * 1024 * 1024 }; /* in a turn; what is left a second later */

/* An id of no front's: its upper half is the sandbox's, so that none pays for another; never the same twice in the
 * life of a gateway, for the clock goes on by more than one ms for each, also while no ledger runs. */
static uint64_t exchange_id(struct ledger *l, struct span sandbox)
{
    const uint64_t low = (UINT64_C(1) << XID_FRONT_SHIFT) - 1;
    struct digest d;
    uint64_t now = clock_ms(CLOCK_BOOTTIME);
    digest_of(sandbox, &d);
    uint64_t whose = XID_LATER | (uint64_t)(d.b[0] & 0x7f) << 16 | (uint64_t)d.b[1] << 8 | d.b[2];
    l->last_later = now > l->last_later ? now : l->last_later + 1;
    return whose << XID_FRONT_SHIFT | (l->last_later & low);
}

/* Bytes of the body that was told of, or -1. */
static int64_t tell(struct ledger *l, const struct id *ticket)
{
    static struct wire_review w; /* too large for a stack */
    struct wire_later later;
    struct store_bytes request = {.head = SPAN_NONE};
    struct dynbuf *b = ledger_scratch(l);
    struct msg_in m;
    dynbuf_init(&request.body, STORE_BODY_MAX + 1);
    int got = store_later(l->store, ticket, &w, &later, &request);
    int64_t size = got < 0 ? -1 : (int64_t)request.body.n;
    m = msg_in(request.head);
    if (got == 1 && wire_get_request(&m, &w.request) == 0 && msg_end(&m) == 0) {
        wire_put_review(b, &w);
        wire_put_later(b, &later);
        int fd = ledger_put_body(b, dynbuf_span(&request.body));
        if (fd == -2)
            b->failed = true;
        ledger_reply(l, TO_JUDGE, M_TICKET_LATER, exchange_id(l, w.sandbox), fd < 0 ? -1 : fd, NULL);
    }
    dynbuf_free(&request.body);
    return size;
}

void ledger_later(struct ledger *l)
{
    int64_t bytes = 0;
    struct id ticket;
    if (l->later_due) /* else the second ends the turn */
        ledger_touch(l);
    l->later_due = false;
    if (l->peer[ROLE_JUDGE] == NULL || l->lost || l->ending || !store_has_data_key(l->store))
        return; /* every second it is looked for again */
    for (size_t i = 0; i < AT_ONCE && bytes < AT_ONCE_BYTES; i++) {
        int got = store_later_next(l->store, &ticket);
        int64_t told = got == 1 ? tell(l, &ticket) : -1;
        if (told < 0)
            return; /* no more of them, or the store fails: at the end of the turn that is said */
        bytes += told;
        ledger_touch(l);
    }
}

int ledger_asked(struct ledger *l, struct frame *f)
{
    static const struct span fail = {(const uint8_t *)"\2", 1}; /* it cannot be read now */
    struct store_asked said = {.known = false};
    struct store_bytes kept = {.head = SPAN_NONE};
    struct msg_in m = msg_in(f->payload);
    struct id ticket;
    msg_get_id(&m, &ticket);
    struct span session = msg_get_span(&m, 256);
    bool answer = msg_get_bool(&m);
    int fd = -1;
    if (msg_end(&m) != 0)
        return -1;
    dynbuf_init(&kept.body, ANSWER_KEPT_MAX + 1);
    bool ok = !l->lost && store_asked(l->store, &ticket, session, answer, &said, &kept) == 0;
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, ok ? said.known : 2);
    if (ok && said.known) {
        wire_put_ticket_state(b, &said.state);
        msg_put_u8(b, said.later);
        msg_put_u64(b, said.tries);
        msg_put_u64(b, said.until_ms);
        if (said.state.has_answer) {
            dynbuf_add(b, kept.head);
            fd = ledger_put_body(b, dynbuf_span(&kept.body));
        }
        if (fd == -2)
            b->failed = true;
    }
    ledger_reply(l, TO_JUDGE, M_TICKET_IS, f->id, fd < 0 ? -1 : fd, &fail);
    dynbuf_free(&kept.body);
    return 0;
}
