/* After a change of policy the judge looks at every open ticket again, so that the page offers no approval that could
 * never be used: one at a time, the next when the last was answered; large ones a second apart. Nothing is lost if it
 * is cut short: what is approved is judged again when it is used. */
#include <stdlib.h>

#include "common/log.h"
#include "proxy/ledger/ledger.h"

enum { LARGE_BYTES = 1024 * 1024 };

void review_stop(struct review *r)
{
    free(r->ids);
    *r = (struct review){.number = r->number};
}

/* 1 it was shown, 0 there was nothing to show, -1. */
static int show(struct ledger *l, const struct id *ticket)
{
    static struct wire_review w; /* too large for a stack */
    struct store_bytes request = {.head = SPAN_NONE};
    struct dynbuf *b = ledger_scratch(l);
    struct msg_in m;
    dynbuf_init(&request.body, STORE_BODY_MAX + 1);
    int got = store_review(l->store, ticket, &w, &request);
    m = msg_in(request.head);
    if (got == 1 && (wire_get_request(&m, &w.request) != 0 || msg_end(&m) != 0))
        got = 0;
    if (got == 1) {
        wire_put_review(b, &w);
        int fd = ledger_put_body(b, dynbuf_span(&request.body));
        if (fd == -2)
            b->failed = true;
        l->review.large = request.body.n > LARGE_BYTES;
        ledger_reply(l, TO_JUDGE, M_TICKET_REVIEW, l->review.number, fd < 0 ? -1 : fd, NULL);
    }
    dynbuf_free(&request.body);
    return got;
}

void review_next(struct ledger *l)
{
    struct review *r = &l->review;
    if (!store_has_data_key(l->store))
        return; /* after a start the judge may ask before the keeper gave it: what is held is shown then */
    while (r->at < r->n && !r->asked && !l->lost) {
        int got = show(l, &r->ids[r->at]);
        if (got < 0)
            return; /* the store fails: the same one later */
        r->asked = got == 1;
        r->at += got == 0;
    }
    if (r->at == r->n)
        review_stop(r);
    else
        ledger_touch(l);
}

int review_begin(struct ledger *l, struct frame *f)
{
    struct review *r = &l->review;
    review_stop(r);
    r->number = f->id;
    if (f->payload.n != 0)
        return -1;
    if (l->lost || store_open_tickets(l->store, &r->ids, &r->n) != 0) {
        log_warn("what is held cannot be looked at again by the policy of now; it will be when it is used");
        review_stop(r);
    }
    review_next(l);
    return 0;
}

int review_answered(struct ledger *l, struct frame *f)
{
    struct review *r = &l->review;
    struct msg_in m = msg_in(f->payload);
    struct id ticket;
    msg_get_id(&m, &ticket);
    bool keep = msg_get_bool(&m);
    if (msg_end(&m) != 0)
        return -1;
    if (f->id != r->number || !r->asked || !id_eq(&ticket, &r->ids[r->at]))
        return 0; /* of an earlier policy */
    if (!keep && (l->lost || store_void(l->store, &ticket, span_str(TICKET_OTHER_TERMS)) != 0)) {
        r->asked = false;
        return 0; /* asked again when the store is back */
    }
    r->at++;
    r->asked = false;
    if (!r->large)
        review_next(l);
    return 0;
}
