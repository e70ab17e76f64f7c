#include "web-approval/follow.h"

#include "common/net/chan.h"
#include "common/net/conn.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"

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

void follow_begin(struct follow *f, struct desk *d, struct conn *c, uint64_t id)
{
    *f = (struct follow){.desk = d, .conn = c, .id = id};
    for (int i = 0; i < 2; i++)
        dynbuf_init(&f->waits[i], SB_WINDOW);
    d->follows++;
}

void follow_free(struct follow *f)
{
    if (!f->desk)
        return;
    f->desk->follows--;
    if (f->id != 0)
        api_started_unfollow(f->desk, f->id);
    dynbuf_free(&f->waits[0]);
    dynbuf_free(&f->waits[1]);
    *f = (struct follow){0};
}

/* What waits, in turn of both outputs, as far as the client reads, or all of it. Written small, a command's output is
 * many times its size: so it is joined while it waits, and more may be said only when it has left. */
static int waits_write(struct follow *f, bool all)
{
    uint32_t left = 0;
    int rc = 0;

    for (unsigned i = 0;
         rc == 0 && (f->waits[0].n > 0 || f->waits[1].n > 0) && (all || conn_queued(f->conn) < CONN_OUT_LOW);
         i = 1 - i) {
        struct span piece = span_first(dynbuf_span(&f->waits[i]), EVENT_BYTES);
        struct dynbuf event;
        if (piece.n == 0)
            continue;
        dynbuf_init(&event, 2 * EVENT_BYTES);
        api_started_output(&event, i + 1, piece);
        rc = stream_chunk(f->conn, &event, false);
        dynbuf_free(&event);
        dynbuf_drop(&f->waits[i], piece.n);
        left += (uint32_t)piece.n;
    }
    if (left > 0)
        api_started_taken(f->desk, f->id, left);
    return rc;
}

/* What the command said last and how it ended are the client's to read, however slowly: nothing waits for that any
 * more. */
static int follow_end(struct follow *f, const struct dynbuf *event)
{
    bool bad = waits_write(f, true) != 0 || stream_chunk(f->conn, event, true) != 0;

    f->id = 0; /* nobody need be told that it is not followed */
    if (bad)
        return -1;
    f->rest = conn_queued(f->conn);
    conn_deadline(f->conn, FOLLOW_REST_MS);
    conn_end(f->conn);
    return 0;
}

int follow_hear(struct follow *f, struct frame *m)
{
    struct dynbuf event;
    struct span bytes;
    unsigned which;
    int rc = 0;

    dynbuf_init(&event, CHAN_PAYLOAD_MAX * 2);
    bool heard = api_started_heard(m, &which, &bytes, &event) == 0;
    if (heard && which > 0)
        rc = dynbuf_add(&f->waits[which - 1], bytes) != 0 || waits_write(f, false) != 0 ? -1 : 0;
    else if (heard)
        rc = follow_end(f, &event);
    dynbuf_free(&event);
    return rc;
}

int follow_lost(struct follow *f)
{
    struct dynbuf event;

    dynbuf_init(&event, 256);
    api_started_lost(&event);
    int rc = follow_end(f, &event);
    dynbuf_free(&event);
    return rc;
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
    conn_deadline(f->conn, FOLLOW_REST_MS);
    return true;
}
