#include "proxy/lobby/relay.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/lobby/door.h"

enum { LAST_BYTES_MS = 60 * 1000 }; /* without the client taking any of them */

struct relay {
    struct lobby *lobby;
    struct conn *client, *front;
    bool ending;    /* the front has said its last word; the client still takes it */
    size_t left;    /* then: of that word, when it was looked at last */
    uint64_t until; /* then: when too long nothing of it was taken */
    char sandbox[DOOR_NAME];
    struct relay *newer, **at;
};

static void relay_free(struct relay *r)
{
    conn_free(&r->client);
    conn_free(&r->front);
    *r->at = r->newer;
    if (r->newer != NULL)
        r->newer->at = r->at;
    free(r);
}

/* The front is gone in the middle of something: that must not pass for a proper end. */
static void relay_cut(struct relay *r)
{
    conn_reset(&r->client);
    relay_free(r);
}

/* 0, or -1: the relay is gone. */
static int pump(struct relay *r, struct conn *from, struct conn *to)
{
    struct span in = conn_input(from);
    if (in.n > 0 && conn_queued(to) < CONN_OUT_LOW) {
        if (conn_write(to, in) != 0) {
            relay_cut(r);
            return -1;
        }
        conn_consume(from, in.n);
    }
    conn_pause(from, conn_queued(to) >= CONN_OUT_LOW);
    return 0;
}

/* All of it is with the kernel. */
static void client_ended(struct relay *r)
{
    conn_finish(&r->client);
    relay_free(r);
}

/* What the front said last still goes out, at the pace at which the client takes it. */
static void front_ended(struct relay *r)
{
    r->ending = true;
    conn_free(&r->front);
    conn_end(r->client);
    conn_pause(r->client, false);
    conn_consume(r->client, conn_input(r->client).n);
    if (conn_push(r->client) == 0) {
        client_ended(r);
        return;
    }
    r->left = conn_queued(r->client);
    r->until = loop_now(r->lobby->loop) + LAST_BYTES_MS;
    conn_deadline(r->client, r->lobby->limits.close_ms);
}

/* Time has passed at its end. A client that takes nothing any more is left: without a close_notify it knows. */
static void time_passed(struct relay *r)
{
    size_t left = conn_queued(r->client);
    uint64_t now = loop_now(r->lobby->loop);
    if (left == 0) {
        client_ended(r);
        return;
    }
    if (left < r->left)
        r->until = now + LAST_BYTES_MS;
    r->left = left;
    if (now >= r->until)
        relay_free(r);
    else
        conn_deadline(r->client, r->lobby->limits.close_ms);
}

static void from_client(void *arg, struct conn *c, enum conn_event ev)
{
    struct relay *r = arg;
    switch (ev) {
    case CONN_DATA:
        if (r->ending)
            conn_consume(c, conn_input(c).n); /* nobody is there to take it */
        else
            (void)pump(r, c, r->front);
        break;
    case CONN_DRAINED:
        if (!r->ending)
            (void)pump(r, r->front, c);
        break;
    case CONN_TIMEOUT: time_passed(r); break;
    case CONN_EOF:
        if (!r->ending && pump(r, c, r->front) == 0)
            conn_end(r->front);
        break;
    case CONN_CONNECTED:
    case CONN_TLS_READY: break;
    default: relay_free(r); break; /* reset, cut short, too slow: the front sees its end cut too */
    }
}

static void from_front(void *arg, struct conn *c, enum conn_event ev)
{
    struct relay *r = arg;
    switch (ev) {
    case CONN_DATA: (void)pump(r, c, r->client); break;
    case CONN_DRAINED: (void)pump(r, r->client, c); break;
    case CONN_EOF:
        if (pump(r, c, r->client) == 0)
            front_ended(r);
        break;
    case CONN_CONNECTED: break;
    default: relay_cut(r); break;
    }
}

size_t relay_count(const struct lobby *l, struct span sandbox)
{
    size_t n = 0;
    for (const struct relay *r = l->relays; r != NULL; r = r->newer)
        n += sandbox.n == 0 || span_eq(span_str(r->sandbox), sandbox);
    return n;
}

bool relay_room(const struct lobby *l, struct span sandbox)
{
    return relay_count(l, SPAN_NONE) < LOBBY_RELAYS_MAX && relay_count(l, sandbox) < LOBBY_RELAYS_EACH;
}

int relay_new(struct lobby *l, struct span sandbox, struct conn **client)
{
    int sv[2];
    struct relay *r = calloc(1, sizeof(*r));
    if (r == NULL || sandbox.n >= DOOR_NAME ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) != 0) {
        free(r);
        return -1;
    }
    if ((r->front = conn_new(l->loop, sv[0], LOBBY_INPUT_MAX, from_front, r)) == NULL) {
        close(sv[1]);
        free(r);
        return -1;
    }
    r->lobby = l;
    memcpy(r->sandbox, sandbox.p, sandbox.n);
    r->client = *client;
    *client = NULL;
    conn_deadline(r->client, 0);
    conn_set_callback(r->client, from_client, r); /* and is told of what it has read */
    r->newer = l->relays;
    r->at = &l->relays;
    if (r->newer != NULL)
        r->newer->at = &r->newer;
    l->relays = r;
    return sv[1];
}

void relay_free_all(struct lobby *l)
{
    while (l->relays != NULL)
        relay_cut(l->relays);
}
