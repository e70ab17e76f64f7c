#include "proxy/carrier/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memfd.h"
#include "proxy/outbound.h"

#define BODY_MAX (1024 * (uint64_t)1024 * 1024)

static struct exchange **slot_of(struct carrier *c, uint64_t xid)
{
    struct exchange **at = &c->bucket[(xid ^ xid >> 40) % EXCHANGE_BUCKETS];
    while (*at != NULL && (*at)->xid != xid)
        at = &(*at)->next;
    return at;
}

struct exchange *carry_find(struct carrier *c, uint64_t xid)
{
    return *slot_of(c, xid);
}

enum walk_next carry_fail(struct exchange *x, const char *code, const char *fmt, ...)
{
    va_list ap;
    x->code = code;
    va_start(ap, fmt);
    vsnprintf(x->why, sizeof(x->why), fmt, ap);
    va_end(ap);
    return WALK_FAIL;
}

/* ---- the end ---- */

static void send_result(struct exchange *x)
{
    struct chan *judge = x->carrier->judge;
    bool answered = x->answer >= ANSWER_HEAD;
    enum outcome outcome = answered ? OUTCOME_ANSWERED : x->sent != SENT_NOTHING ? OUTCOME_UNKNOWN : OUTCOME_NOT_SENT;
    struct dynbuf *b = judge ? chan_begin(judge, M_RESULT, x->xid) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)outcome);
    msg_put_u16(b, answered ? x->status : 0);
    msg_put_u64(b, x->out_bytes);
    msg_put_u64(b, x->in_bytes);
    msg_put_u64(b, x->meter.passed);
    msg_put_u8(b, x->delivery == DELIVERY_BEGUN || x->delivery == DELIVERY_ENDED);
    msg_put_span(b, span_str(x->code ? x->code : ""));
    msg_put_span(b, span_str(x->why));
    msg_put_span(b, span_str(outcome != OUTCOME_NOT_SENT ? x->part.sent : ""));
    /* A read that was answered well: all that follows is its record. */
    bool done = x->f.repeatable && x->code == NULL && x->delivery == DELIVERY_ENDED;
    (void)(done ? chan_commit_soon(judge) : chan_commit(judge));
}

static void let_connection_go(struct exchange *x)
{
    if (x->conn == NULL)
        return;
    struct pool_key k = {x->front->instance, x->upstream, x->addr, x->f.credential, NULL, 0};
    bool own = x->cred != NULL && x->cred->pem != NULL;   /* it speaks for that credential: nobody else's */
    bool old = x->trust != x->carrier->upstreams.changes; /* by roots or lists that are not in force any more */
    bool later = x->front->instance >= XID_LATER;         /* who knows when there is another one of its sandbox */
    if (x->code == NULL && x->answer == ANSWER_WHOLE && x->keep_alive && x->link != LINK_LOST && !own && !old &&
        !later)
        pool_put(&x->carrier->pool, &k, x->upstream, &x->conn);
    else
        conn_free(&x->conn);
}

static void release_all(struct exchange *x)
{
    names_forget(&x->carrier->names, x);
    timer_free(&x->timer);
    let_connection_go(x);
    scrub_end(&x->scrub);
    decode_free(&x->decode);
    swap_release(x);
    rpc_answer_end(&x->rpc);
    cred_unref(&x->cred);
    cred_unref(&x->renewed);
    upstream_unref(&x->upstream);
    dynbuf_free(&x->stream);
    dynbuf_free(&x->head);
    if (x->f.swaps.n)
        dynbuf_wipe(&x->ready);
    dynbuf_free(&x->ready);
    dynbuf_free(&x->kept);
    carry_websocket_free(&x->websocket);
    memfd_unmap(&x->map);
    free(x->payload);
    free(x);
}

void carry_end(struct exchange *x)
{
    if (x->delivery == DELIVERY_NOBODY && !x->f.repeatable && x->answer == ANSWER_WHOLE && x->code == NULL &&
        (x->swap == SWAP_NONE || x->swap == SWAP_DONE))
        delivery_kept(x);
    if (x->websocket != NULL)
        carry_websocket_over(x);
    if (x->delivery == DELIVERY_BEGUN)
        delivery_cut(x);
    if (x->code != NULL)
        log_exchange(LOG_INFO, x->xid, "ends at %s: %s: %s", walk_name(x->step), x->code, x->why);
    send_result(x);
    struct exchange **at = slot_of(x->carrier, x->xid);
    *at = x->next;
    x->carrier->nexchanges--;
    x->front->nexchanges--;
    x->front->nlarge -= decode_is_large(x->decode);
    release_all(x);
}

/* ---- the beginning ---- */

static int take_map(struct exchange *x, struct frame *f)
{
    int fd = frame_take_fd(f, 0);
    if (fd < 0)
        return -1;
    int rc = memfd_map(fd, BODY_MAX, &x->map);
    close(fd);
    x->whole = x->map;
    return rc == 0 && x->map.n == x->size ? 0 : -1;
}

static int take_body(struct exchange *x, struct frame *f, struct span in)
{
    dynbuf_init(&x->stream, 2 * (size_t)BODY_WINDOW);
    if (x->f.body != BODY_INLINE && in.n != 0)
        return -1;
    switch (x->f.body) {
    case BODY_NONE: x->body_ended = true; return x->size == 0 ? 0 : -1;
    case BODY_INLINE:
        x->whole = in;
        x->body_ended = true;
        return x->size == in.n ? 0 : -1;
    case BODY_FD: x->body_ended = true; return take_map(x, f);
    case BODY_STREAM: return x->size == UINT64_MAX || x->size <= INT64_MAX ? 0 : -1;
    }
    return -1;
}

/* The decided origin and the upstream's are one (INV3), and there is room. */
static enum walk_next admit(struct exchange *x, struct frame *f, struct span in)
{
    struct carrier *c = x->carrier;
    const struct wire_request *r = &x->f.request;
    if (c->nexchanges > EXCHANGES_MAX || x->front->nexchanges > EXCHANGES_A_FRONT)
        return carry_fail(x, "too-busy", "too many requests are under way; try again shortly");
    x->upstream = upstreams_get(&c->upstreams, x->f.upstream);
    if (x->upstream == NULL)
        return carry_fail(x, "unknown-upstream", "the upstream was never named to the carrier");
    if (!span_eq(r->scheme, x->upstream->scheme) || !span_eq(r->host, x->upstream->host) ||
        r->port != x->upstream->port)
        return carry_fail(x, "unknown-upstream", "the request's destination is not the upstream's");
    if (take_body(x, f, in) != 0)
        return carry_fail(x, "bad-body", "the body is not sealed, or not of the size that was said");
    if (outbound_is_upgrade(r) && carry_websocket_begin(x) != 0)
        return carry_fail(x, "bad-request", "this cannot be a WebSocket upgrade");
    return WALK_NEXT;
}

/* A copy of the message, for its spans to point into. */
static int read_forward(struct exchange *x, struct frame *f, struct span *in)
{
    x->payload = malloc(f->payload.n ? f->payload.n : 1);
    if (x->payload == NULL)
        return -1;
    memcpy(x->payload, f->payload.p, f->payload.n);
    struct msg_in m = msg_in(span_of(x->payload, f->payload.n));
    if (wire_get_forward(&m, &x->f) != 0)
        return -1;
    meter_begin(x);
    x->size = msg_get_u64(&m);
    *in = msg_get_span(&m, BODY_INLINE_MAX);
    return msg_end(&m);
}

static struct exchange *carry_new(struct carrier *c, uint64_t xid)
{
    struct front *front = carrier_front(c, xid);
    struct exchange *x = front ? malloc(sizeof(*x)) : NULL;
    if (x == NULL)
        return NULL;
    memset(x, 0, offsetof(struct exchange, f.request.field)); /* the fields are set as they are read */
    x->carrier = c;
    x->xid = xid;
    x->front = front;
    x->step = WALK_AWAIT_CREDENTIAL;
    x->credit = ANSWER_WINDOW;
    dynbuf_init(&x->head, 2 * (size_t)HTTP_ANSWER_HEAD_MAX);
    dynbuf_init(&x->ready, READY_MAX);
    dynbuf_init(&x->kept, ANSWER_KEPT_MAX);
    struct exchange **at = slot_of(c, xid);
    x->next = *at;
    *at = x;
    c->nexchanges++;
    front->nexchanges++;
    return x;
}

void carry_forward(struct carrier *c, struct frame *f)
{
    struct span in;
    if (carry_find(c, f->id) != NULL) {
        log_exchange(LOG_ERROR, f->id, "the judge forwards it twice; ignored");
        return;
    }
    struct exchange *x = carry_new(c, f->id);
    if (x == NULL) {
        struct exchange none = {.carrier = c, .xid = f->id, .code = "too-busy", .why = "no room for another request"};
        send_result(&none);
        return;
    }
    if (read_forward(x, f, &in) != 0)
        (void)carry_fail(x, "bad-message", "the judge's message cannot be understood");
    else if (admit(x, f, in) == WALK_NEXT) {
        carry_resume(x);
        return;
    }
    carry_end(x);
}

/* ---- things that happen to it ---- */

/* cut: an answer that has begun ends here too, and what came of a write is known by its head. */
void carry_cancel(struct exchange *x, bool cut)
{
    if (x->websocket != NULL && carry_websocket_is_on(x->websocket)) {
        carry_delivery(x, DELIVERY_NOBODY);
        carry_end(x);
        return;
    }
    bool all_is_here = x->sent == SENT_ALL || x->body_ended || x->answer >= ANSWER_HEAD;
    bool known = cut && x->answer >= ANSWER_HEAD;
    if (!x->f.repeatable && x->sent >= SENT_HEAD && all_is_here && !known) { /* it is seen to its end */
        carry_delivery(x, DELIVERY_NOBODY);
        carry_resume(x);
        return;
    }
    (void)carry_fail(x, "cancelled", "the client is gone");
    carry_end(x);
}

/* Each exchange there is, which may end by it; and the front that it is about. */
static void each(struct carrier *c, void (*fn)(struct exchange *x, struct front *front), struct front *front)
{
    for (size_t i = 0; i < EXCHANGE_BUCKETS; i++)
        for (struct exchange *x = c->bucket[i], *next; x != NULL; x = next) {
            next = x->next;
            fn(x, front);
        }
}

static void judge_ended(struct exchange *x, struct front *none)
{
    (void)carry_fail(x, "cancelled", "the judge ended");
    carry_end(x);
}

/* What it was asked for is lost with it. */
static void keeper_ended(struct exchange *x, struct front *none)
{
    if (x->swap == SWAP_ASKED || x->swap == SWAP_TOLD) {
        (void)carry_fail(x, "token-unswapped", "the keeper ended, and with it the token of the answer");
        carry_end(x);
        return;
    }
    if (x->refused != 0 && x->timer != NULL) { /* it waits for another one, with an answer */
        timer_free(&x->timer);
        carry_resume(x);
        return;
    }
    if (x->step != WALK_AWAIT_CREDENTIAL || x->cred != NULL)
        return;
    (void)carry_fail(x, "credential-unavailable", "the keeper ended before it released the credential");
    carry_end(x);
}

static void front_ended(struct exchange *x, struct front *front)
{
    if (x->front == front && x->delivery != DELIVERY_NOBODY)
        carry_cancel(x, false);
}

static void front_goes_on(struct exchange *x, struct front *front)
{
    if (x->front == front && x->step == WALK_SCRUB)
        carry_resume(x);
}

void carry_all_gone(struct carrier *c)
{
    each(c, judge_ended, NULL);
}

void carry_keeper_gone(struct carrier *c)
{
    each(c, keeper_ended, NULL);
}

void carry_front_gone(struct carrier *c, struct front *front)
{
    each(c, front_ended, front);
    pool_front_gone(&c->pool, front->instance);
}

void carry_front_goes_on(struct front *front)
{
    each(front->carrier, front_goes_on, front);
}

void carry_signed(struct carrier *c, struct frame *f)
{
    dynbuf_reset(&c->signed_chunks);
    c->signed_xid = dynbuf_add(&c->signed_chunks, f->payload) == 0 ? f->id : 0;
}

void carry_credential(struct carrier *c, struct frame *f)
{
    uint32_t ttl;
    uint64_t now = loop_now(c->loop);
    struct span chunks = c->signed_xid == f->id ? dynbuf_span(&c->signed_chunks) : SPAN_NONE;
    struct cred *cred = cred_read(&c->origins, f->payload, chunks, &ttl);
    c->signed_xid = 0;
    dynbuf_free(&c->signed_chunks);
    /* The channel's buffer must not keep it; the bytes are ours for this callback. */
    explicit_bzero((void *)(uintptr_t)f->payload.p, f->payload.n);
    if (cred == NULL)
        return;
    if (ttl > 0 && cred->bad.text[0] == '\0')
        creds_live(&c->creds, cred, f->id >> XID_FRONT_SHIFT, now + (ttl < CRED_TTL_MAX ? ttl : CRED_TTL_MAX));
    struct exchange *x = carry_find(c, f->id);
    if (x != NULL && x->step == WALK_AWAIT_CREDENTIAL && x->cred == NULL) {
        x->cred = cred;
        carry_resume(x);
        return;
    }
    if (x != NULL && x->refused != 0 && x->timer != NULL && x->renewed == NULL && !swap_is_open(x)) {
        x->renewed = cred;
        carry_resume(x);
        return;
    }
    if (x == NULL)
        creds_keep(&c->creds, cred, f->id, now + c->settings.release_ms);
    cred_unref(&cred);
}
