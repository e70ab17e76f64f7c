#include "web-approval/streams/follow.h"

#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/conn.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"
#include "web-approval/streams/transfer.h"

enum { EVENT_BYTES = 32 * 1024 };

int stream_chunk(struct conn *c, const struct dynbuf *event, bool last)
{
    struct dynbuf chunk;

    dynbuf_init(&chunk, event->n + 64);
    bool bad = !dynbuf_ok(event) || http_write_chunk(&chunk, dynbuf_span(event)) != 0 ||
               (last && dynbuf_add(&chunk, SPAN("0\r\n\r\n")) != 0) || conn_write(c, dynbuf_span(&chunk)) != 0;
    dynbuf_free(&chunk);
    return bad ? -1 : 0;
}

void follow_begin(struct follow *f, struct desk *d, struct conn *c, const struct exchange *x)
{
    *f = (struct follow){.desk = d,
                         .conn = c,
                         .id = x->follow,
                         .input = x->input,
                         .terminal = x->terminal,
                         .raw = x->transfer,
                         .rests = x->transfer && x->transfer->rests,
                         .next = d->following};
    d->following = f;
    for (int i = 0; i < 2; i++)
        dynbuf_init(&f->waits[i], SB_WINDOW);
    share_take(&f->share, x, SHARE_FOLLOW);
}

void follow_free(struct follow *f)
{
    if (!f->desk)
        return;
    share_free(&f->share);
    struct follow **at = &f->desk->following;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    if (f->id != 0)
        api_started_unfollow(f->desk, f->id);
    dynbuf_free(&f->waits[0]);
    dynbuf_free(&f->waits[1]);
    *f = (struct follow){0};
}

static bool reads(const struct follow *f)
{
    return conn_queued(f->conn) < CONN_OUT_LOW;
}

/* So much more of its input may come. */
static int fed_write(struct follow *f)
{
    struct dynbuf event;

    dynbuf_init(&event, 64);
    (void)dynbuf_addf(&event, "event: fed\ndata: %u\n\n", (unsigned)f->fed);
    f->fed = 0;
    int rc = stream_chunk(f->conn, &event, false);
    dynbuf_free(&event);
    return rc;
}

/* So much of this output is not there any more. */
static int cut_write(struct follow *f, unsigned which)
{
    struct dynbuf event;

    dynbuf_init(&event, 128);
    (void)dynbuf_addf(&event, "event: cut\ndata: {\"output\":\"%s\",\"bytes\":%llu}\n\n",
                      which == 0 ? "stdout" : "stderr", (unsigned long long)f->cut[which].bytes);
    f->cut[which].bytes = 0;
    int rc = stream_chunk(f->conn, &event, false);
    dynbuf_free(&event);
    return rc;
}

static int piece_write(struct follow *f, unsigned which, uint32_t *left)
{
    struct span piece = span_first(dynbuf_span(&f->waits[which]), EVENT_BYTES);
    struct dynbuf event;

    if (f->cut[which].bytes > 0 && f->cut[which].behind == 0 && cut_write(f, which) != 0)
        return -1;
    if (f->cut[which].bytes > 0)
        piece = span_first(piece, f->cut[which].behind);
    if (piece.n == 0)
        return 0;
    dynbuf_init(&event, 2 * EVENT_BYTES);
    if (!f->raw)
        api_started_output(&event, which + 1, piece);
    else if (which == 0)
        (void)dynbuf_add(&event, piece);
    int rc = stream_chunk(f->conn, &event, false);
    dynbuf_free(&event);
    f->cut[which].behind -= f->cut[which].bytes > 0 ? piece.n : 0;
    *left += (uint32_t)piece.n;
    dynbuf_drop(&f->waits[which], piece.n);
    return rc;
}

static bool waits(const struct follow *f, unsigned which)
{
    return f->waits[which].n > 0 || f->cut[which].bytes > 0;
}

/* What waits, in turn of both outputs, as far as the client reads, or all of it. Written small, a command's output is
 * many times its size: so it is joined while it waits, and more may be said only when it has left. */
static int waits_write(struct follow *f, bool all)
{
    uint32_t left = 0;
    int rc = f->fed > 0 && (all || reads(f)) ? fed_write(f) : 0;

    for (unsigned i = 0; rc == 0 && (waits(f, 0) || waits(f, 1)) && (all || reads(f)); i = 1 - i)
        rc = piece_write(f, i, &left);
    if (left > 0)
        api_started_taken(f->desk, f->id, left);
    return rc;
}

static uint64_t rest_ms(const struct follow *f)
{
    return f->raw ? SHARE_STILL_MS : FOLLOW_REST_MS;
}

/* What the command said last and how it ended are the client's to read, however slowly: nothing waits for that any
 * more. */
static int follow_end(struct follow *f, const struct dynbuf *event, bool whole)
{
    bool bad = waits_write(f, true) != 0 || stream_chunk(f->conn, event, whole) != 0;

    f->id = 0; /* nobody need be told that it is not followed */
    if (bad)
        return -1;
    f->rest = conn_queued(f->conn);
    conn_deadline(f->conn, rest_ms(f));
    conn_end(f->conn);
    return 0;
}

/* Of an answer that is nothing but its output the end says that all of it is there: without it, it was cut short. */
static int raw_end(struct follow *f, const struct frame *m)
{
    struct msg_in in = msg_in(m ? m->payload : SPAN_NONE);
    unsigned how = msg_get_u8(&in), code = msg_get_u8(&in);
    struct dynbuf none;

    dynbuf_init(&none, 1);
    return follow_end(f, &none, !in.bad && how == SB_EXITED && code == 0);
}

static int hear_fed(struct follow *f, const struct frame *m)
{
    struct msg_in in = msg_in(m->payload);
    uint32_t n = msg_get_u32(&in);

    if (msg_end(&in) != 0 || n > f->unfed)
        return 0;
    f->unfed -= n;
    f->fed += n;
    return waits_write(f, false);
}

static int hear_cut(struct follow *f, const struct frame *m)
{
    struct msg_in in = msg_in(m->payload);
    unsigned which = msg_get_u8(&in);
    uint64_t bytes = msg_get_u64(&in);

    if (msg_end(&in) != 0 || which < 1 || which > 2)
        return 0;
    if (f->cut[which - 1].bytes == 0)
        f->cut[which - 1].behind = f->waits[which - 1].n;
    f->cut[which - 1].bytes += bytes;
    return waits_write(f, false);
}

int follow_hear(struct follow *f, struct frame *m)
{
    if (m->type == M_SB_FED)
        return hear_fed(f, m);
    if (f->raw && m->type == M_SB_EXIT)
        return raw_end(f, m);
    if (m->type == M_SB_CUT)
        return hear_cut(f, m);
    struct dynbuf event;
    struct span bytes = SPAN_NONE;
    unsigned which;
    int rc = 0;

    dynbuf_init(&event, CHAN_PAYLOAD_MAX * 2);
    bool heard = api_started_heard(m, &which, &bytes, &event) == 0;
    f->heard += heard ? bytes.n : 0;
    if (heard && which > 0)
        rc = dynbuf_add(&f->waits[which - 1], bytes) != 0 || waits_write(f, false) != 0 ? -1 : 0;
    else if (heard)
        rc = follow_end(f, &event, true);
    dynbuf_free(&event);
    return rc;
}

int follow_lost(struct follow *f)
{
    struct dynbuf event;

    if (f->raw)
        return raw_end(f, NULL);
    dynbuf_init(&event, 256);
    api_started_lost(&event);
    int rc = follow_end(f, &event, true);
    dynbuf_free(&event);
    return rc;
}

bool follow_stands_still(struct follow *f, uint64_t now_ms)
{
    return f->desk != NULL && f->raw && !f->rests && f->id != 0 &&
           share_stands_still(&f->share, f->heard, conn_queued(f->conn), now_ms);
}

int follow_drained(struct follow *f)
{
    return f->id != 0 ? waits_write(f, false) : 0;
}

bool follow_done(const struct follow *f)
{
    return f->desk != NULL && f->id == 0 && conn_queued(f->conn) == 0;
}

bool follow_waits(struct follow *f)
{
    size_t left = f->desk != NULL && f->id == 0 ? conn_queued(f->conn) : 0;

    if (left == 0 || left >= f->rest)
        return false;
    f->rest = left;
    conn_deadline(f->conn, rest_ms(f));
    return true;
}
