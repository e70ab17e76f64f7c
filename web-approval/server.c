#include "web-approval/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memfd.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "common/net/chan.h"
#include "web-approval/api/steps.h"
#include "web-approval/ask.h"
#include "web-approval/diffs/diffs.h"
#include "web-approval/dock.h"
#include "web-approval/exchange.h"
#include "web-approval/idle/idle.h"
#include "web-approval/pictures/pictures.h"
#include "web-approval/streams/follow.h"
#include "web-approval/streams/news.h"
#include "web-approval/route.h"
#include "web-approval/streams/transfer.h"
#include "web-approval/talks/talks.h"
#include "web-approval/tasks/chore.h"

enum { PIECE = 64 * 1024, DOORS = 4, ACCEPTS = 16, TICK_MS = 1000 };

struct door {
    struct server *server;
    enum desk_place place;
    int fd;
    struct watch *watch;
    size_t nclients;
};

struct server {
    struct desk *desk;
    struct door door[DOORS];
    struct door dock; /* through which nobody knocks */
    size_t ndoors, nstreams, streams_max;
    struct client *clients;
    struct timer *tick;
    struct news news; /* events that the streams are still to get */
    uint64_t ping_at;
};

/* What a client gets after the head of its answer, for as long as it stays. */
enum stream { STREAM_NONE = 0, STREAM_EVENTS, STREAM_RUN /* what a command says */ };

struct client {
    struct door *door;
    struct conn *conn;
    size_t seen;
    struct exchange *x; /* being answered */
    size_t sent;        /* of its answer */
    bool ready, last;   /* the answer is there; close after it */
    enum stream stream;
    struct follow follow;     /* of STREAM_RUN */
    struct transfer transfer; /* that its exchange waits for */
    char operator[GUARD_OPERATOR];
    struct caller caller; /* of PLACE_DOCK */
    struct client *next, *prev;
};

static void client_work(struct client *c);

static struct exchange *exchange_of(struct client *c)
{
    struct exchange *x = exchange_new(c->door->server->desk, c->door->place, c->operator, & c->caller);
    if (x)
        x->client = c;
    return x;
}

/* --- the way out ---------------------------------------------------------- */

static int head_write(struct exchange *x)
{
    struct dynbuf head;
    int rc;

    dynbuf_init(&head, 8 * 1024);
    rc = answer_head(x, x->client->last, &head) || conn_write(x->client->conn, dynbuf_span(&head));
    dynbuf_free(&head);
    return rc != 0 ? -1 : 0;
}

static void place_free(struct door *d)
{
    if (d->nclients-- == SERVER_CLIENTS && d->watch)
        watch_set(d->watch, WATCH_READ);
}

static void client_end(struct client *c, bool flush)
{
    struct server *s = c->door->server;

    if (flush && c->conn)
        conn_finish(&c->conn);
    conn_free(&c->conn);
    if (c->x) {
        c->x->client = NULL;
        c->x->left = true;
        bool ours = c->transfer.x != NULL;
        transfer_free(&c->transfer);
        if (c->ready || ours) /* else it is somebody's answer that frees it */
            exchange_free(c->x);
        else
            chore_left(c->x); /* which may answer it */
    }
    *(c->prev ? &c->prev->next : &s->clients) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    follow_free(&c->follow);
    if (c->stream == STREAM_EVENTS)
        s->nstreams--;
    else
        place_free(c->door);
    free(c);
}

/* The next piece of the answer: 1 written, 0 there is none, -1. */
static int piece_write(struct client *c)
{
    struct exchange *x = c->x;
    uint8_t buf[PIECE];

    if (c->sent < x->out.n) {
        struct span part = span_first(span_from(dynbuf_span(&x->out), c->sent), PIECE);
        c->sent += part.n;
        return conn_write(c->conn, part) == 0 ? 1 : -1;
    }
    uint64_t off = c->sent - x->out.n;
    if (x->file < 0 || off >= x->file_size)
        return 0;
    ssize_t n = pread(x->file, buf, x->file_size - off < PIECE ? x->file_size - off : PIECE, (off_t)off);
    if (n <= 0)
        return -1;
    c->sent += (size_t)n;
    return conn_write(c->conn, span_of(buf, (size_t)n)) == 0 ? 1 : -1;
}

/* Everybody can look at the page: who takes what streams there are leaves a quarter of them to those who have a few.
 */
static bool stream_fits(const struct client *c)
{
    const struct server *s = c->door->server;
    size_t own = 0;

    for (const struct client *o = s->clients; o; o = o->next)
        own += o->stream == STREAM_EVENTS && span_eq(span_str(o->operator), span_str(c->x->operator));
    return s->nstreams + (own < SERVER_STREAMS_SURE ? 0 : s->streams_max / 4) < s->streams_max;
}

static void stream_begin(struct client *c)
{
    struct server *s = c->door->server;

    news_tell(&s->news); /* what this one has read already is not told it once more */
    c->stream = c->x->follow ? STREAM_RUN : STREAM_EVENTS;
    if (c->stream == STREAM_EVENTS) {
        s->nstreams++;
        place_free(c->door);
        memcpy(c->operator, c->x->operator, sizeof(c->operator));
    } else {
        follow_begin(&c->follow, s->desk, c->conn, c->x);
    }
    c->ready = false;
    exchange_free(c->x);
    c->x = NULL;
    conn_deadline(c->conn, 0);
}

/* The answer is out of our hands. False: so is the client. */
static bool client_next(struct client *c)
{
    exchange_free(c->x);
    c->x = NULL;
    c->ready = false;
    c->sent = 0;
    if (c->last) {
        client_end(c, true);
        return false;
    }
    conn_deadline(c->conn, SERVER_IDLE_MS);
    return true;
}

/* False: the client is gone. */
static bool client_pump(struct client *c)
{
    int rc = 1;

    while (rc == 1 && conn_queued(c->conn) < CONN_OUT_LOW)
        rc = piece_write(c);
    if (rc == 0)
        return client_next(c);
    if (rc > 0) {
        conn_deadline(c->conn, SERVER_SEND_MS);
        return true;
    }
    client_end(c, false);
    return false;
}

/* Send what x says. False: the client is gone. */
static bool answer(struct client *c)
{
    struct exchange *x = c->x;

    c->ready = true;
    if (!dynbuf_ok(&x->out))
        reply_problem(x, 500, "Too large", "the answer is larger than the desk gives out");
    if (x->stream && x->follow == 0 && !stream_fits(c)) {
        x->stream = false;
        reply_problem(x, 503, "Too many", "too many event streams are open");
    }
    c->last |= x->stream;
    if (head_write(x) != 0 || (x->stream && stream_chunk(c->conn, &x->out, false) != 0)) {
        if (x->follow) /* it runs already, and nobody will hear of it */
            api_started_unfollow(c->door->server->desk, x->follow);
        client_end(c, false);
        return false;
    }
    if (!x->stream)
        return client_pump(c);
    stream_begin(c);
    return true;
}

/* A transfer goes on. False: the client is gone. */
static bool transferred(struct client *c, enum transfer_next next)
{
    if (next == TRANSFER_WAITS)
        return true;
    transfer_free(&c->transfer);
    return answer(c);
}

/* What its handler left. False: the client is gone. */
static bool handled(struct client *c)
{
    if (c->x->status != 0)
        return answer(c);
    if (!c->x->transfer)
        return true;
    transfer_begin(&c->transfer, c->conn, c->x);
    return transferred(c, transfer_read(&c->transfer));
}

/* Another role's answer made x's. */
static void answered(struct exchange *x)
{
    struct client *c = x->client;

    if (!c)
        exchange_free(x);
    else if (handled(c))
        client_work(c);
}

/* --- the way in ----------------------------------------------------------- */

static void refuse_head(struct client *c, const struct http_err *e)
{
    struct exchange *x = exchange_of(c);

    c->last = true;
    if (!x) {
        client_end(c, false);
        return;
    }
    c->x = x;
    x->head.path = SPAN("/api/"); /* the refusal is JSON: this was no browser */
    reply_problem(x, e->status, "Bad request", "%s", e->why);
    (void)answer(c);
}

/* The whole request is in: it gets its own copy, for it may outlive the connection. False: the client is gone. */
static bool request_run(struct client *c, size_t head, size_t all)
{
    struct exchange *x = exchange_of(c);
    struct http_err e;
    size_t seen = 0, used;

    if (!x || dynbuf_add(&x->raw, span_first(conn_input(c->conn), all)) != 0 ||
        http_parse_request(dynbuf_span(&x->raw), HTTP_ORIGIN_SERVER, &seen, &x->head, &used, &e) != HTTP_OK) {
        if (x)
            exchange_free(x);
        client_end(c, false);
        return false;
    }
    x->body = span_from(dynbuf_span(&x->raw), head);
    conn_consume(c->conn, all);
    c->x = x;
    c->seen = 0;
    c->last |= !x->head.keep_alive;
    conn_deadline(c->conn, 0); /* questions have their own */
    route_run(x);
    return handled(c);
}

/* Requests that are complete, one after the other. */
static void client_work(struct client *c)
{
    while (!c->x && c->stream == STREAM_NONE && conn_input(c->conn).n > 0) {
        struct http_head h;
        struct http_err e = {0};
        size_t used;
        enum http_result r = http_parse_request(conn_input(c->conn), HTTP_ORIGIN_SERVER, &c->seen, &h, &used, &e);
        if (r == HTTP_MORE)
            return;
        if (r != HTTP_OK || head_refused(c->door->place, &h, &e)) {
            refuse_head(c, &e);
            return;
        }
        bool streams = route_streams(c->door->place, &h);
        size_t body = h.framing == HTTP_LENGTH && !streams ? (size_t)h.length : 0,
               there = conn_input(c->conn).n - used;
        if (h.expect_continue && there == 0 && (body > 0 || streams) &&
            conn_write(c->conn, SPAN("HTTP/1.1 100 Continue\r\n\r\n")) != 0)
            return;
        c->seen = 0;        /* the head is parsed again when its body is there */
        c->last |= streams; /* what nobody takes of its body is no request */
        if (there < body || !request_run(c, used, used + body))
            return;
    }
}

/* --- a command that is followed -------------------------------------------- */

/* Whoever has all of it is done, and its place another's, also if it does not close. */
static void follows_end(struct server *s)
{
    for (struct client *c = s->clients, *next; c; c = next) {
        next = c->next;
        if (follow_done(&c->follow))
            client_end(c, true);
    }
}

/* Files that nothing moves of: whoever waits for an answer is told so, one that has begun is cut short. */
static void still_end(struct server *s, uint64_t now)
{
    for (struct client *c = s->clients, *next; c; c = next) {
        next = c->next;
        if (follow_stands_still(&c->follow, now)) {
            log_info("the answer to a client that reads nothing, or of a file that gives nothing, is cut short");
            client_end(c, false);
        } else if (c->transfer.x && transferred(c, transfer_tick(&c->transfer, now))) {
            client_work(c);
        }
    }
}

void server_follow(struct server *s, struct frame *f)
{
    struct client *c = s->clients;

    while (c && (c->follow.id != f->id || f->id == 0))
        c = c->next;
    if (c && follow_hear(&c->follow, f) != 0)
        client_end(c, false);
    if (c)
        return;
    for (c = s->clients; c && (!c->transfer.x || c->x->follow != f->id);)
        c = c->next;
    if (c && transferred(c, transfer_hear(&c->transfer, f)))
        client_work(c);
}

void server_follow_gone(struct server *s)
{
    for (struct client *c = s->clients, *next; c; c = next) {
        next = c->next;
        if (c->follow.id != 0 && follow_lost(&c->follow) != 0)
            client_end(c, false);
        else if (c->transfer.x && transferred(c, transfer_lost(&c->transfer)))
            client_work(c);
    }
}

static void client_event(void *arg, struct conn *conn, enum conn_event ev)
{
    struct client *c = arg;

    switch (ev) {
    case CONN_DATA:
        if (c->stream != STREAM_NONE)
            conn_consume(conn, conn_input(conn).n);
        else if (!c->transfer.x || transferred(c, transfer_read(&c->transfer)))
            client_work(c);
        break;
    case CONN_DRAINED:
        if (c->stream == STREAM_RUN && follow_drained(&c->follow) != 0)
            client_end(c, false);
        else if (c->x && c->ready && client_pump(c))
            client_work(c);
        break;
    case CONN_EOF:
        /* A half-closed client still gets its answer. */
        if (c->x && !c->transfer.x && (c->ready || !c->x->ends))
            c->last = true;
        else if (c->stream != STREAM_RUN || c->follow.id != 0 || follow_done(&c->follow))
            client_end(c, true);
        break;
    case CONN_TIMEOUT:
        if (!follow_waits(&c->follow))
            client_end(c, false);
        break;
    case CONN_CONNECTED:
    case CONN_TLS_READY: break;
    default: client_end(c, false);
    }
}

/* On the control socket: root, and whoever the gateway belongs to. */
static bool control_admits(struct client *c)
{
    unsigned uid;

    if (conn_peer_pid(c->conn, &uid) < 0)
        return false;
    (void)snprintf(c->operator, sizeof(c->operator), "uid %u", uid);
    return uid == 0 || uid == c->door->server->desk->owner_uid;
}

static struct client *client_new(struct door *d, int fd)
{
    struct server *s = d->server;
    struct client *c = calloc(1, sizeof(*c));

    if (!c) {
        close(fd);
        return NULL;
    }
    c->door = d;
    c->conn = conn_new(s->desk->loop, fd, EXCHANGE_IN_MAX, client_event, c);
    if (!c->conn || (d->place == PLACE_CONTROL && !control_admits(c)) ||
        (d->place == PLACE_PAGE && s->desk->tls && conn_tls_accept_own(c->conn, s->desk->tls) != 0)) {
        conn_free(&c->conn);
        free(c);
        return NULL;
    }
    c->next = s->clients;
    if (c->next)
        c->next->prev = c;
    s->clients = c;
    if (++d->nclients == SERVER_CLIENTS && d->watch)
        watch_set(d->watch, 0);
    conn_deadline(c->conn, SERVER_REQUEST_MS);
    return c;
}

/* The last quarter of the places is for tenants that hold next to none: one that takes what it can get keeps no other
 * from being answered. */
static bool adopts(const struct server *s, struct span tenant)
{
    size_t own = 0;

    for (const struct client *c = s->clients; c; c = c->next)
        own += c->door->place == PLACE_DOCK && span_eq(span_str(c->caller.tenant), tenant);
    return s->dock.nclients + (own < SERVER_TENANT_SURE ? 0 : SERVER_DOCK_CLIENTS / 4) < SERVER_DOCK_CLIENTS;
}

int server_adopt(struct server *s, int fd, const struct caller *who)
{
    struct client *c;

    if (!adopts(s, span_str(who->tenant))) {
        close(fd);
        return -1;
    }
    s->dock.server = s;
    s->dock.place = PLACE_DOCK;
    if (!(c = client_new(&s->dock, fd)))
        return -1;
    c->caller = *who;
    (void)snprintf(c->operator, sizeof(c->operator), "%s%s", who->broker ? "broker" : "key ", who->key);
    return 0;
}

void server_drop(struct server *s, struct span key)
{
    for (struct client *c = s->clients, *next; c; c = next) {
        next = c->next;
        if (c->door->place == PLACE_DOCK && span_eq(span_str(c->caller.key), key))
            client_end(c, false);
    }
}

static void knock(void *arg, unsigned ready)
{
    struct door *d = arg;

    for (int i = 0; i < ACCEPTS && d->nclients < SERVER_CLIENTS; i++) {
        int fd = listen_accept(d->fd);
        if (fd < 0)
            return;
        (void)client_new(d, fd);
    }
}

/* --- streams and time ----------------------------------------------------- */

static void stream_write(struct client *c, struct span s)
{
    struct dynbuf chunk;

    dynbuf_init(&chunk, s.n + 64);
    if (conn_queued(c->conn) > CONN_OUT_MAX / 4 || http_write_chunk(&chunk, s) != 0 ||
        conn_write(c->conn, dynbuf_span(&chunk)) != 0)
        client_end(c, false); /* does not read: it resumes by Last-Event-ID */
    dynbuf_free(&chunk);
}

static void streams_write(void *arg, struct span text)
{
    struct server *s = arg;

    for (struct client *c = s->clients, *next; c; c = next) {
        next = c->next;
        if (c->stream == STREAM_EVENTS)
            stream_write(c, text);
    }
}

void server_event(struct server *s, uint64_t seq, struct span kind, struct span subject)
{
    news_add(&s->news, seq, kind, subject);
}

void server_due(struct server *s, uint64_t now)
{
    ask_expire(s->desk, now);
    pictures_expire(s->desk, now);
    api_moment_due(s->desk, now);
    idle_due(s->desk, now);
    diffs_due(s->desk, now);
    if (talks_due)
        talks_due(s->desk, now);
    follows_end(s);
    still_end(s, now);
    if (now >= s->ping_at) {
        s->ping_at = now + SERVER_PING_MS;
        streams_write(s, SPAN(": still here\n\n"));
    }
}

static void tick(void *arg)
{
    struct server *s = arg;

    server_due(s, loop_now(s->desk->loop));
    timer_set(s->tick, TICK_MS);
}

struct server *server_new(struct desk *d)
{
    struct server *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->desk = d;
    s->streams_max = news_streams(SERVER_STREAMS, SERVER_DOCK_CLIENTS);
    s->tick = timer_new(d->loop, tick, s);
    if (!s->tick || news_init(&s->news, d->loop, streams_write, s) != 0) {
        timer_free(&s->tick);
        free(s);
        return NULL;
    }
    exchange_answered = answered;
    dock_drop = server_drop;
    timer_set(s->tick, TICK_MS);
    return s;
}

int server_listen(struct server *s, enum desk_place place, int fd)
{
    struct door *d = &s->door[s->ndoors];

    if (s->ndoors == DOORS || fd < 0)
        goto fail;
    *d = (struct door){.server = s, .place = place, .fd = fd};
    d->watch = watch_new(s->desk->loop, fd, WATCH_READ, knock, d);
    if (!d->watch)
        goto fail;
    s->ndoors++;
    return 0;
fail:
    if (fd >= 0)
        close(fd);
    return -1;
}
