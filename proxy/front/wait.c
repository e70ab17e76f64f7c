/* A connection's one deadline: what it stands for, and what passes when it does.
 * None is put off by a single byte: a head and a handshake have theirs from the
 * start, a body and an answer must get on by so much in each. */
#include "common/log.h"
#include "proxy/front/client.h"

static uint64_t length_of(const struct front_limits *l, enum client_wait w)
{
    switch (w) {
    case WAIT_JUDGE: return 0;
    case WAIT_HEAD:
    case WAIT_FIRST: return l->head_ms;
    case WAIT_IDLE: return l->idle_ms;
    case WAIT_LEAF: return l->leaf_ms;
    case WAIT_TLS: return l->tls_ms;
    case WAIT_BODY: return l->body_ms;
    case WAIT_WRITE: return l->write_ms;
    case WAIT_CLOSE: return l->close_ms;
    }
    return l->close_ms;
}

/* How much has reached the kernel of what was written. */
static uint64_t delivered(const struct client *c)
{
    size_t queued = conn_queued(c->conn);
    return c->written > queued ? c->written - queued : 0;
}

static void set(struct client *c, enum client_wait w)
{
    c->wait = w;
    c->mark = w == WAIT_BODY ? c->x.size : delivered(c);
    conn_deadline(c->conn, length_of(&c->front->limits, w));
}

void client_wait(struct client *c, enum client_wait w)
{
    if (c->wait == w || c->state == CLIENT_CLOSING)
        return;
    if (client_answered(c) && (w == WAIT_BODY || w == WAIT_JUDGE))
        return; /* now it is the client's reading that counts */
    if (w == WAIT_CLOSE)
        c->stalled = loop_now(c->front->loop) + c->front->limits.write_ms;
    set(c, w);
}

/* Answers flow at the pace of the upstream: only what is queued and not taken is the client's fault. */
static void write_passed(struct client *c)
{
    if (conn_queued(c->conn) == 0 || delivered(c) > c->mark) {
        set(c, WAIT_WRITE);
        return;
    }
    log_exchange(LOG_DEBUG, client_asks(c) ? c->x.xid : 0, "a client does not read its answer");
    client_drop(c);
}

static void close_passed(struct client *c)
{
    uint64_t now = loop_now(c->front->loop);
    if (delivered(c) > c->mark)
        c->stalled = now + c->front->limits.write_ms;
    if (conn_queued(c->conn) == 0 || now >= c->stalled)
        client_free(c);
    else
        set(c, WAIT_CLOSE);
}

/* Not a byte. On its way elsewhere that is a protocol in which the server speaks first, and is not spoken here. */
static void silent(struct client *c)
{
    if (c->state == CLIENT_LOOK)
        front_note(c, "client-silent");
    client_finish(c);
}

void client_timeout(struct client *c)
{
    switch (c->wait) {
    case WAIT_JUDGE: break;
    case WAIT_FIRST:
    case WAIT_HEAD:
        if (conn_input(c->conn).n > 0 || c->state == CLIENT_SOCKS)
            front_refuse(c, 408, "head-too-slow", "the request's head did not come within the time it is given");
        else
            silent(c);
        break;
    case WAIT_IDLE: client_finish(c); break;
    case WAIT_LEAF:
        front_refuse(c, 503, "tls-refused", "no certificate could be had in time; repeat the request");
        break;
    case WAIT_TLS:
        front_note(c, "tls-too-slow");
        client_free(c);
        break;
    case WAIT_BODY:
        if (c->x.size - c->mark >= FRONT_BODY_BYTES)
            set(c, WAIT_BODY);
        else
            front_body_slow(c);
        break;
    case WAIT_WRITE: write_passed(c); break;
    case WAIT_CLOSE: close_passed(c); break;
    }
}
