#include <unistd.h>

#include "common/log.h"
#include "proxy/canonical.h"
#include "proxy/judge/accounts/account.h"
#include "proxy/judge/frames/frames.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/leases/check.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"

enum { REASON_BYTES = 500, CODE_BYTES = 64, BODY_KIND_NONE = 0, BODY_KIND_INLINE, BODY_KIND_TO_COME };

struct wire_step frames_step(const struct front *f, uint64_t xid)
{
    if (f->lane.n > 0) /* it can speak for no other, whatever it says */
        return f->one;
    return f->said_of == xid ? f->said : (struct wire_step){.number = 0};
}

static int step_said(struct front *front, const struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    front->said_of = f->id;
    return wire_get_step(&m, &front->said) == 0 ? msg_end(&m) : -1;
}

void frames_client_gone(struct exchange *x)
{
    if (x->client == CLIENT_WAITS)
        exchange_client(x, CLIENT_GONE);
    switch (x->wait) {
    case X_RUNS:
    case X_BODY:
    case X_PROOF:
    case X_TICKET:
    case X_STUB_TURN:
    case X_PARKED: /* the ticket stays: the same request may come back */
        exchange_end(x, "the client is gone");
        break;
    case X_CLAIM:
    case X_INTENT:
    case X_STUB: /* its answer comes, and then nothing is sent */ break;
    case X_RESULT: exchange_cancel(x, CANCEL_CLIENT_GONE); break;
    }
}

/* A request that cannot even become an exchange. */
static void turn_away(struct judge *j, struct front *front, uint64_t xid, enum refuse_why why)
{
    struct wire_reply out;
    struct arena a;
    (void)refuse_bare(why, &a, &out);
    reply_send(j, front->instance, xid, &out);
    arena_free(&a);
}

/* payload: the exchange's own copy */
static int take_request(struct exchange *x, struct span payload)
{
    struct msg_in m = msg_in(payload);
    if (wire_get_request(&m, &x->request) != 0)
        return -1;
    x->reason = msg_get_span(&m, REASON_BYTES);
    uint8_t said = msg_get_u8(&m), kind = said & (uint8_t)~REQUEST_FORWARDED;
    x->forwarded = kind != said;
    x->declared = msg_get_u64(&m);
    struct span body = msg_get_span(&m, BODY_INLINE_MAX);
    if (msg_end(&m) != 0 || kind > BODY_KIND_TO_COME || (kind != BODY_KIND_INLINE && body.n != 0))
        return -1;
    if (kind != BODY_KIND_NONE)
        exchange_upload(x, kind == BODY_KIND_TO_COME ? UPLOAD_TO_COME : UPLOAD_WHOLE);
    x->body = kind == BODY_KIND_INLINE ? body_inline(body) : NULL;
    x->by = frames_step(x->front, x->xid);
    return 0;
}

static int request(struct judge *j, struct front *front, struct frame *f)
{
    if (exchange_find(j, f->id) != NULL)
        return -1;
    if (front->nexchanges >= FRONT_EXCHANGES_MAX ||
        (front->sandbox && front->sandbox->account->exchanges >= FRONT_EXCHANGES_MAX)) {
        turn_away(j, front, f->id, REFUSE_TOO_MANY);
        return 0;
    }
    struct exchange *x = exchange_new(j, front, f->id);
    struct span own = x ? arena_copy(&x->arena, f->payload) : SPAN_NONE;
    if (x == NULL || own.n != f->payload.n) {
        turn_away(j, front, f->id, REFUSE_INTERNAL);
        if (x != NULL)
            exchange_end(x, "no memory");
        return 0;
    }
    enum canonical is = take_request(x, own) == 0 ? canonical_request(&x->request) : CANONICAL_NOT;
    if (is == CANONICAL_NOT) {
        log_exchange(LOG_ERROR, x->xid, "a front sent no request, or one that is not in its canonical form");
        exchange_end(x, "the front sent no request");
        return -1;
    }
    if (is == CANONICAL_NO_MEMORY || (x->upload == UPLOAD_WHOLE && x->body == NULL))
        refuse_now(x, REFUSE_INTERNAL);
    else if (x->body && x->sandbox && !exchange_reserve(x, x->body->bytes.n))
        refuse_now(x, REFUSE_BODIES);
    else
        walk_run(x);
    return 0;
}

static int body_whole(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint64_t size = msg_get_u64(&m);
    struct span bytes = msg_get_span(&m, BODY_INLINE_MAX);
    if (x->wait != X_BODY || msg_end(&m) != 0 || (bytes.n != 0 && bytes.n != size))
        return -1;
    int fd = frame_take_fd(f, 0);
    if (size > x->body_max) {
        if (fd >= 0) {
            close(fd); /* there was to be none */
            return -1;
        }
        refuse_now(x, REFUSE_BODY_TOO_LARGE);
        return 0;
    }
    if (fd >= 0) {
        x->body = body_of_memfd(fd, size, x->body_max);
        if (bytes.n != 0 || x->body == NULL) {
            log_exchange(LOG_ERROR, x->xid, "a front gave a body that is not a sealed memfd of its size");
            return -1;
        }
    } else if (bytes.n != size) {
        return -1;
    } else {
        struct span own = arena_copy(&x->arena, bytes);
        x->body = own.n == bytes.n ? body_inline(own) : NULL;
        if (x->body == NULL) {
            refuse_now(x, REFUSE_INTERNAL);
            return 0;
        }
    }
    exchange_upload(x, UPLOAD_WHOLE);
    (void)exchange_reserve(x, size); /* never more than was reserved before */
    exchange_resume(x->judge, x->xid);
    return 0;
}

/* Body bytes on their way through: within the credit, and only of a request that was let go. */
static int body_more(struct exchange *x, struct frame *f)
{
    if (x->client == CLIENT_ANSWERED)
        return 0;
    if (x->upload != UPLOAD_STREAMS || f->payload.n > x->body_credit)
        return -1;
    x->body_credit -= f->payload.n;
    if (x->cancel != CANCEL_LEASE && !lease_may_pass(x, f->payload))
        exchange_cancel(x, CANCEL_LEASE); /* whose result is the last word on what has left */
    if (x->cancel == CANCEL_LEASE)
        return 0;
    dynbuf_add(post_begin(x->judge, ROLE_CARRIER, 0, M_BODY, x->xid), f->payload);
    post_send(x->judge, "body bytes could not be passed on");
    return 0;
}

static int body_end(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool ok = msg_get_bool(&m);
    if (msg_end(&m) != 0)
        return -1;
    if (x->wait == X_BODY) {
        if (ok)
            return -1;
        refuse_now(x, REFUSE_BODY_BAD);
        return 0;
    }
    if (x->upload != UPLOAD_STREAMS)
        return x->client == CLIENT_ANSWERED ? 0 : -1;
    exchange_upload(x, UPLOAD_ENDED);
    msg_put_u8(post_begin(x->judge, ROLE_CARRIER, 0, M_BODY_END, x->xid), ok);
    post_send(x->judge, "the end of its body could not be passed on");
    return 0;
}

static bool is_word(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '-' || s.p[i] == '.'))
            return false;
    return s.n > 0;
}

/* Refused by the front itself. One sandbox cannot fill the audit with it: past so many a second they are counted. */
static int front_refused(struct judge *j, struct front *front, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint8_t step = msg_get_u8(&m);
    struct refused r = {.xid = f->id, .code = msg_get_span(&m, CODE_BYTES), .by = frames_step(front, f->id)};
    r.scheme = msg_get_span(&m, 5);
    r.host = msg_get_span(&m, HTTP_HOST_MAX);
    r.port = msg_get_u16(&m);
    bool known_scheme = r.scheme.n == 0 || span_eq(r.scheme, SPAN("http")) || span_eq(r.scheme, SPAN("https"));
    if (msg_end(&m) != 0 || !is_word(r.code) || !known_scheme ||
        (step != WALK_ACCEPT && step != WALK_INTERCEPT && step != WALK_PARSE))
        return -1;
    r.step = (enum walk_step)step;
    record_refused(j, front, &r);
    return 0;
}

int frames_front(struct judge *j, struct front *front, struct frame *f)
{
    if (f->type == M_FRONT_KEY)
        return f->id == 0 ? connect_key(front, f->payload) : -1;
    if (f->id >> XID_FRONT_SHIFT != front->instance)
        return -1; /* another front's exchange */
    if (f->type == M_STEP)
        return step_said(front, f);
    if (f->type == M_FRONT_REFUSED)
        return front_refused(j, front, f);
    if (f->type == M_CONNECT)
        return connect_asked(j, front, f);
    if (f->type == M_REQUEST)
        return request(j, front, f);
    struct exchange *x = exchange_find(j, f->id);
    if (x == NULL)
        return f->type == M_BODY || f->type == M_BODY_END || f->type == M_BODY_WHOLE || f->type == M_CANCEL ||
                       f->type == M_MESSAGE
                   ? 0
                   : -1;
    switch (f->type) {
    case M_BODY_WHOLE: return x->client == CLIENT_ANSWERED ? 0 : body_whole(x, f);
    case M_BODY: return body_more(x, f);
    case M_BODY_END: return body_end(x, f);
    case M_CANCEL: frames_client_gone(x); return 0;
    case M_MESSAGE: return websocket_message(x, f);
    default: return -1;
    }
}
