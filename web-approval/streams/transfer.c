#include "web-approval/streams/transfer.h"

#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/conn.h"
#include "proxy/msgs.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "web-approval/api/api.h"
#include "web-approval/ask.h"

enum { WHY_MAX = 512 };

void transfer_begin(struct transfer *t, struct conn *c, struct exchange *x)
{
    *t = (struct transfer){.conn = c, .x = x, .runs = true};
    http_body_begin(&t->body, &x->head);
    dynbuf_init(&t->said, TRANSFER_SAID_MAX);
    dynbuf_init(&t->words, TRANSFER_WORDS_MAX);
    share_take(&t->share, x, x->transfer->share);
}

void transfer_free(struct transfer *t)
{
    if (!t->x)
        return;
    share_free(&t->share);
    if (t->runs)
        api_started_unfollow(t->x->desk, t->x->follow);
    dynbuf_free(&t->said);
    dynbuf_free(&t->words);
    *t = (struct transfer){0};
}

/* --- its input ---------------------------------------------------------------- */

static int input_say(const struct transfer *t, struct span bytes)
{
    struct desk *d = t->x->desk;

    return d->warden && chan_send(d->warden, M_SB_INPUT, t->x->follow, bytes) == 0 ? 0 : -1;
}

static enum transfer_next refuse(struct transfer *t, unsigned status, const char *why)
{
    reply_problem(t->x, status, status == 400 ? "Bad request" : "Not possible now", "%s", why);
    return TRANSFER_ANSWERED; /* what runs is killed when this is freed */
}

/* What is not taken stays with the client: it can send no more than its connection keeps. */
enum transfer_next transfer_read(struct transfer *t)
{
    struct span data;
    size_t used;

    while (t->x->transfer->takes && !t->all && t->unfed < TALK_IN_WINDOW) {
        struct span in = span_first(conn_input(t->conn), TALK_IN_WINDOW - t->unfed);
        enum http_result rc = http_body_step(&t->body, in, &used, &data);
        if (rc == HTTP_BAD)
            return refuse(t, 400, t->body.err.why);
        if (data.n > 0 && input_say(t, data) != 0)
            return refuse(t, 503, "the warden does not run at the moment, or does not take more");
        t->unfed += (uint32_t)data.n;
        t->all = rc == HTTP_OK;
        t->moved += used;
        conn_consume(t->conn, used);
        if (t->all && input_say(t, SPAN_NONE) != 0)
            return refuse(t, 503, "the warden does not run at the moment, or does not take more");
        if (rc == HTTP_MORE && used == 0)
            break;
    }
    return TRANSFER_WAITS;
}

enum transfer_next transfer_tick(struct transfer *t, uint64_t now_ms)
{
    if (t->share.of != SHARE_FOLLOW || !share_stands_still(&t->share, t->moved, 0, now_ms))
        return TRANSFER_WAITS;
    reply_problem(t->x, 504, "It stands still",
                  "nothing was sent, taken or said for %d seconds: what was begun is ended, and its place free",
                  SHARE_STILL_MS / 1000);
    return TRANSFER_ANSWERED;
}

/* --- what comes of it ------------------------------------------------------------ */

static enum transfer_next hear_output(struct transfer *t, struct span payload)
{
    struct msg_in m = msg_in(payload);
    unsigned which = msg_get_u8(&m);
    struct exchange *x = t->x;

    if (m.bad)
        return TRANSFER_WAITS;
    t->moved += m.rest.n;
    if (which == 1 && x->transfer->gives) {
        x->status = 200;
        x->type = x->transfer->gives;
        x->stream = true;
        (void)dynbuf_add(&x->out, m.rest);
        t->runs = false; /* here: it is followed from now on */
    } else if (which == 1 && dynbuf_add(&t->said, m.rest) != 0) {
        return refuse(t, 503, "the sandbox says more than may be said");
    } else if (which != 1) {
        (void)dynbuf_add(&t->words, span_first(m.rest, TRANSFER_WORDS_MAX - t->words.n));
    }
    api_started_taken(x->desk, x->follow, (uint32_t)m.rest.n);
    return x->status != 0 ? TRANSFER_GIVES : TRANSFER_WAITS;
}

static enum transfer_next over(struct transfer *t, struct transfer_end *e)
{
    t->runs = false;
    e->said = dynbuf_span(&t->said);
    e->words = dynbuf_span(&t->words);
    t->x->transfer->done(t->x, e);
    if (t->x->status == 0) /* it is over: nothing comes any more that could answer */
        reply_problem(t->x, 503, "Not possible now", "what came could not be shown; ask again");
    return TRANSFER_ANSWERED;
}

enum transfer_next transfer_lost(struct transfer *t)
{
    return over(t, &(struct transfer_end){.how = SB_NOT_STARTED, .why = SPAN("the warden ended")});
}

enum transfer_next transfer_hear(struct transfer *t, const struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct transfer_end e = {0};
    uint32_t n;

    switch (f->type) {
    case M_SB_FED:
        n = msg_get_u32(&m);
        t->moved += n;
        t->unfed -= n < t->unfed ? n : t->unfed;
        return transfer_read(t);
    case M_SB_OUTPUT: return hear_output(t, f->payload);
    default:
        e.how = msg_get_u8(&m);
        e.code = msg_get_u8(&m);
        for (int i = 0; i < 5; i++) /* what it used */
            (void)msg_get_u64(&m);
        e.why = msg_get_span(&m, WHY_MAX);
        if (msg_end(&m) != 0)
            e = (struct transfer_end){.how = SB_NOT_STARTED, .why = SPAN("its end cannot be read")};
        else if (e.how == SB_EXITED && e.code == 0 && t->x->transfer->all && !t->all)
            e = (struct transfer_end){.how = SB_NOT_STARTED,
                                      .why = SPAN("the sandbox says that it has written what it was not given")};
        return over(t, &e);
    }
}
