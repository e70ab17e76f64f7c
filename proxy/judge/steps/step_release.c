/* RELEASE: the keeper is told to give the carrier what this place needs, and the carrier gets
 * the request. Never the one without the other: a request that needs a credential and
 * cannot have it is not sent. */
#include <unistd.h>

#include "proxy/judge/evaluation/signing.h"
#include "proxy/judge/evaluation/slot.h"
#include "proxy/judge/leases/check.h"
#include "proxy/judge/leases/swap.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"
#include "proxy/judge/tickets/ticket.h"
#include "proxy/judge/post.h"

int release_ask(struct exchange *x, uint64_t refused)
{
    const struct wire_request *r = &x->request;
    static const struct digest none;
    bool held = x->claim >= CLAIM_ASKED, signs = signing_is(x);
    struct dynbuf sign;
    dynbuf_init(&sign, CHAN_PAYLOAD_MAX);
    if (signs && signing_put(x, &sign) != 0) {
        dynbuf_free(&sign);
        return -1;
    }
    struct dynbuf *b = post_begin(x->judge, ROLE_KEEPER, 0, M_RELEASE, x->xid);
    msg_put_span(b, x->now.credential);
    msg_put_span(b, r->scheme);
    msg_put_span(b, r->host);
    msg_put_u16(b, r->port);
    msg_put_span(b, r->path);
    msg_put_u8(b, held);
    msg_put_digest(b, held ? &x->digest : &none);
    msg_put_span(b, held ? x->signature : SPAN_NONE);
    msg_put_digest(b, &x->upstream->place);
    msg_put_u64(b, refused);
    msg_put_id(b, &x->lease);
    msg_put_u8(b, signs);
    (void)dynbuf_add(b, dynbuf_span(&sign));
    dynbuf_free(&sign);
    return post_commit(x->judge, -1);
}

/* RELEASE_LIVE spares the keeper a question for reads and allowed writes that follow each other closely; a held
 * write is always released by its own signature, and a token of an answer for its own lease. */
static int release(struct exchange *x, struct wire_forward *f)
{
    struct judge *j = x->judge;
    int credential = x->now.d.credential;
    bool held = x->claim >= CLAIM_ASKED;
    bool proof = held && x->signature.n > SIGNATURE_BYTES; /* which the keeper looks at, whatever leaves with it */
    if (credential < 0 && !x->upstream->bound && !proof)
        return 0;
    bool alone = held || signing_is(x) || swap_is_token(x);
    if (!alone && upstream_is_live(j, x->upstream, credential)) {
        f->release = RELEASE_LIVE;
        return 0;
    }
    if (release_ask(x, 0) != 0)
        return -1;
    f->release = RELEASE_COMES;
    if (!alone)
        upstream_set_live(j, x->upstream, credential, true);
    return 0;
}

static int forward(struct exchange *x, struct wire_forward *f)
{
    struct span body = body_bytes(x->body);
    f->upstream = x->upstream->number;
    f->repeatable = exchange_is_repeatable(x);
    f->credential = x->now.credential;
    f->answer_id = ticket_answer_id(x);
    if (slot_place(x, f) != 0 || swap_put(x, &f->swaps) != 0)
        return -1;
    wire_copy_request(&f->request, &x->request);
    f->body = x->upload >= UPLOAD_TO_COME ? BODY_STREAM : body_kind(x->body);
    f->metered = egress_is_metered(x);
    if (upstream_reach(x->now.image, x->sandbox->reach, &x->request) != REACH_YES)
        f->reach = x->sandbox->reach;
    struct dynbuf *b = post_begin(x->judge, ROLE_CARRIER, 0, M_FORWARD, x->xid);
    wire_put_forward(b, f);
    msg_put_u64(b, f->body == BODY_STREAM ? x->declared : body.n);
    msg_put_span(b, f->body == BODY_INLINE ? body : SPAN_NONE);
    return post_commit(x->judge, f->body == BODY_FD ? body_fd(x->body) : -1);
}

/* The carrier has taken it over: from here on the body streams. */
static int open_body(struct exchange *x)
{
    struct dynbuf *b = post_begin(x->judge, ROLE_FRONT, x->front->instance, M_BODY_WANTED, x->xid);
    msg_put_u8(b, 1);
    msg_put_u64(b, UINT64_MAX);
    x->body_credit = BODY_WINDOW;
    exchange_upload(x, UPLOAD_STREAMS);
    return post_commit(x->judge, -1);
}

enum walk_next step_release(struct exchange *x)
{
    struct wire_forward f UNZEROED;
    const struct decision *d = &x->now.d;
    enum refuse_why lease = lease_still(x);
    memset(&f, 0, offsetof(struct wire_forward, request.field));
    if (lease != REFUSE_COUNT)
        return refuse(x, lease);
    /* The gateway sends also itself, and what was approved by another policy. */
    if (upstream_reach(x->now.image, x->sandbox->reach, &x->request) == REACH_NO)
        return refuse(x, REFUSE_REACH);
    x->upstream = upstream_of(x->judge, x->now.image, x->sandbox->account, &x->request);
    if (x->upstream == NULL)
        return refuse(x, REFUSE_CARRIER);
    if (d->credential >= 0 && !x->upstream->cleartext && span_eq(x->request.scheme, SPAN("http")))
        return refuse(x, REFUSE_CREDENTIAL);
    exchange_delivery(x, DELIVERY_OFFERED);
    if (x->broken || release(x, &f) != 0)
        return WALK_FAIL;
    if (forward(x, &f) != 0)
        return refuse(x, REFUSE_CARRIER);
    exchange_delivery(x, DELIVERY_FORWARDED);
    x->outcome = OUTCOME_UNKNOWN;
    if (f.metered)
        egress_begin(x, x->upload >= UPLOAD_TO_COME ? x->declared : body_bytes(x->body).n);
    websocket_begin(x);
    if (x->upload == UPLOAD_TO_COME && (x->front == NULL || open_body(x) != 0))
        exchange_cancel(x, CANCEL_CLIENT_GONE);
    return WALK_NEXT;
}
