/* HTTP/1.1 towards callers: bounded in number, bytes and time. One call at a time on a connection, and its answer no
 * faster than it is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "proxy/dock/dock.h"
#include "proxy/errand/errand.h"
#include "proxy/dock/access/signed.h"

enum { ACCEPTS = 16, PIECE = 64 * 1024, TICK_MS = 5000 };

struct door {
    struct dock *dock;
    int fd;
    struct watch *watch;
    struct timer *tick;
};

struct client {
    struct dock *dock;
    struct door *door;
    struct conn *conn;
    size_t seen;
    struct call *x; /* being answered */
    call_fn *fn;    /* of one whose body is read whole */
    struct http_body body;
    bool reading, over, last; /* its body: is read whole, has been read; close after the answer */
    bool pumping, working, ended;
    size_t sent;
    uint64_t said_ms;     /* when a stream was written to last */
    struct digest holder; /* the tenant that it was found to be of; zeros: not known yet */
    size_t held;          /* make_room: connections of that */
    struct client *next, *prev;
};

static void client_work(struct client *c);

/* --- calls ------------------------------------------------------------------------ */

/* Its handler is through with it: what is left is an answer, however slowly that is read, and not what it was made
 * of, which may be several times as much. */
static void call_forget(struct call *x)
{
    if (x->gone)
        x->gone(x);
    x->gone = NULL;
    x->step = NULL;
    x->json = NULL;
    errand_free(&x->errand);
    dynbuf_wipe(&x->raw); /* the key or token is in there, and what follows from it in the others */
    dynbuf_wipe(&x->body);
    arena_wipe(&x->arena);
    x->head = (struct http_head){.nfields = 0};
}

static void call_free(struct call *x)
{
    call_forget(x);
    dynbuf_wipe(&x->out);
    explicit_bzero(x, sizeof(*x));
    free(x);
}

static struct call *call_new(struct client *c)
{
    struct call *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->dock = c->dock;
    x->client = c;
    x->wall_ms = loop_wall(c->dock->loop);
    dynbuf_init(&x->raw, HTTP_HEAD_MAX);
    dynbuf_init(&x->body, DOCK_BODY_MAX);
    dynbuf_init(&x->out, DOCK_ANSWER_MAX);
    arena_init(&x->arena, DOCK_ARENA_MAX);
    return x;
}

static void client_end(struct client *c, bool flush)
{
    struct dock *d = c->dock;
    struct call *x = c->x;

    if (c->ended)
        return;
    c->ended = true;
    c->x = NULL;
    if (x)
        call_free(x);
    if (flush && c->conn)
        conn_finish(&c->conn);
    conn_free(&c->conn);
    *(c->prev ? &c->prev->next : &d->clients) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    d->nclients--;
    if (!c->working)
        free(c);
}

/* --- the way out -------------------------------------------------------------------- */

static int head_write(struct client *c, const struct call *x, enum http_framing framing)
{
    static const struct {
        unsigned status;
        const char *words;
    } words[] = {{200, "OK"},           {201, "Created"},         {204, "No Content"},         {400, "Bad Request"},
                 {401, "Unauthorized"}, {403, "Forbidden"},       {404, "Not Found"},          {409, "Conflict"},
                 {413, "Too Large"},    {501, "Not Implemented"}, {503, "Service Unavailable"}};
    char date[40];
    time_t t = (time_t)(x->wall_ms / 1000);
    struct tm tm;
    const char *reason = "Status";
    struct dynbuf b;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (words[i].status == x->status)
            reason = words[i].words;
    if (!gmtime_r(&t, &tm) || strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
        date[0] = '\0';
    dynbuf_init(&b, 4096);
    bool bad = http_write_status_line(&b, x->status, span_str(reason)) != 0 ||
               http_write_field(&b, SPAN("Date"), span_str(date)) != 0 ||
               (x->type && http_write_field(&b, SPAN("Content-Type"), span_str(x->type)) != 0) ||
               http_write_field(&b, SPAN("Cache-Control"), SPAN("no-store")) != 0 ||
               http_write_field(&b, SPAN("X-Content-Type-Options"), SPAN("nosniff")) != 0 ||
               (x->next[0] && http_write_field(&b, SPAN("x-next-token"), span_str(x->next)) != 0) ||
               (c->last && http_write_field(&b, SPAN("Connection"), SPAN("close")) != 0) ||
               http_write_end(&b, framing, x->out.n) != 0 || conn_write(c->conn, dynbuf_span(&b)) != 0;
    dynbuf_free(&b);
    return bad ? -1 : 0;
}

/* The answer has left. */
static void call_over(struct client *c)
{
    struct call *x = c->x;

    c->x = NULL;
    c->sent = 0;
    call_free(x);
    if (c->last) {
        client_end(c, true);
        return;
    }
    conn_deadline(c->conn, DOCK_IDLE_MS);
    client_work(c);
}

/* The next of an answer that is there whole. */
static void pump(struct client *c)
{
    struct call *x = c->x;

    while (c->sent < x->out.n && conn_queued(c->conn) < CONN_OUT_LOW) {
        struct span part = span_first(span_from(dynbuf_span(&x->out), c->sent), PIECE);
        if (conn_write(c->conn, part) != 0) {
            client_end(c, false);
            return;
        }
        c->sent += part.n;
    }
    conn_deadline(c->conn, DOCK_SEND_MS);
    if (c->sent == x->out.n)
        call_over(c);
}

void call_answer(struct call *x)
{
    struct client *c = x->client;

    errand_free(&x->errand);
    call_forget(x);
    c->last |= !c->over; /* what nobody read of its body is no request */
    if (!dynbuf_ok(&x->out)) {
        dynbuf_free(&x->out);
        x->status = 500;
    }
    x->takes = NULL;
    c->pumping = true;
    if (head_write(c, x, x->status == 204 ? HTTP_NO_BODY : HTTP_LENGTH) != 0)
        client_end(c, false);
    else
        pump(c);
}

int call_stream(struct call *x, unsigned status, const char *type)
{
    struct client *c = x->client;

    x->status = status;
    x->type = type;
    c->last |= !c->over;
    x->streams = true;
    c->said_ms = loop_now(c->dock->loop);
    if (head_write(c, x, HTTP_CHUNKED) == 0)
        return 0;
    client_end(c, false);
    return -1;
}

int call_piece(struct call *x, struct span s)
{
    struct client *c = x->client;
    struct dynbuf b;

    dynbuf_init(&b, s.n + 64);
    bool bad = http_write_chunk(&b, s) != 0 || conn_write(c->conn, dynbuf_span(&b)) != 0;
    dynbuf_free(&b);
    c->said_ms = loop_now(c->dock->loop);
    if (!bad && conn_queued(c->conn) >= CONN_OUT_LOW)
        conn_deadline(c->conn, DOCK_SEND_MS);
    if (!bad)
        return 0;
    client_end(c, false);
    return -1;
}

void call_stream_end(struct call *x, bool whole)
{
    struct client *c = x->client;

    if (whole && conn_write(c->conn, SPAN("0\r\n\r\n")) == 0)
        call_over(c);
    else
        client_end(c, false);
}

void call_patience(struct call *x, uint64_t ms)
{
    conn_deadline(x->client->conn, ms);
}

bool call_reads(const struct call *x)
{
    return conn_queued(x->client->conn) < CONN_OUT_LOW;
}

/* --- the way in --------------------------------------------------------------------- */

int call_body(struct call *x, size_t most, struct dynbuf *to, bool *over)
{
    struct client *c = x->client;
    struct span data;
    size_t used = 1;

    while (!c->over && to->n < most && used > 0) {
        struct span in = span_first(conn_input(c->conn), most - to->n);
        enum http_result r = http_body_step(&c->body, in, &used, &data);
        if (r == HTTP_BAD || dynbuf_add(to, data) != 0)
            return -1;
        conn_consume(c->conn, used);
        c->over = r == HTTP_OK;
    }
    *over = c->over;
    return 0;
}

/* Its body, as far as it is here. */
static void read_whole(struct client *c)
{
    struct call *x = c->x;
    bool over = false;

    int rc = call_body(x, DOCK_BODY_MAX, &x->body, &over);
    if (rc == 0 && !over && x->body.n < DOCK_BODY_MAX)
        return;
    c->reading = false;
    conn_deadline(c->conn, 0);
    if (rc != 0)
        reply_no(x, 400, "the request's body is malformed");
    else if (!over)
        reply_no(x, 413, "a request's body may have %d bytes here", DOCK_BODY_MAX);
    else
        c->fn(x);
}

static void refuse_head(struct client *c, const struct http_err *e)
{
    c->last = c->over = true;
    if (!(c->x = call_new(c)))
        client_end(c, false);
    else
        reply_no(c->x, e->status, "%s", e->why);
}

static void call_begin(struct client *c, struct span head)
{
    struct call *x = c->x = call_new(c);
    struct http_err e;
    size_t seen = 0, used;
    call_fn *fn = NULL;

    c->seen = c->sent = 0;
    c->over = c->pumping = false;
    if (!x || dynbuf_add(&x->raw, head) != 0 ||
        http_parse_request(dynbuf_span(&x->raw), HTTP_ORIGIN_SERVER, &seen, &x->head, &used, &e) != HTTP_OK) {
        client_end(c, false);
        return;
    }
    conn_consume(c->conn, head.n);
    http_body_begin(&c->body, &x->head);
    c->last |= !x->head.keep_alive;
    c->over = x->head.framing == HTTP_NO_BODY || (x->head.framing == HTTP_LENGTH && x->head.length == 0);
    enum call_takes takes = route_find(x, &fn);
    if (takes == TAKES_REFUSED || c->x != x)
        return;
    if (x->head.expect_continue && !c->over && conn_write(c->conn, SPAN("HTTP/1.1 100 Continue\r\n\r\n")) != 0) {
        client_end(c, false);
        return;
    }
    c->fn = fn;
    conn_deadline(c->conn, DOCK_REQUEST_MS);
    c->reading = takes == TAKES_WHOLE;
    if (c->reading) {
        read_whole(c);
        return;
    }
    fn(x);
}

static void client_work(struct client *c)
{
    bool outer = !c->working;

    if (!outer) /* whoever works goes on with it */
        return;
    c->working = true;
    while (!c->ended && !c->x && conn_input(c->conn).n > 0) {
        struct http_head h;
        struct http_err e = {0};
        size_t used;
        enum http_result r = http_parse_request(conn_input(c->conn), HTTP_ORIGIN_SERVER, &c->seen, &h, &used, &e);
        if (r == HTTP_MORE)
            break;
        if (r == HTTP_BAD)
            refuse_head(c, &e);
        else
            call_begin(c, span_first(conn_input(c->conn), used));
    }
    c->working = false;
    if (c->ended)
        free(c);
}

static void on_data(struct client *c)
{
    if (!c->x)
        client_work(c);
    else if (c->reading)
        read_whole(c);
    else if (c->x->takes) {
        conn_deadline(c->conn, DOCK_REQUEST_MS);
        c->x->takes(c->x);
    }
}

static void event(void *arg, struct conn *conn, enum conn_event ev)
{
    struct client *c = arg;

    switch (ev) {
    case CONN_DATA: on_data(c); break;
    case CONN_DRAINED:
        if (c->x && c->pumping)
            pump(c);
        else if (c->x && c->x->streams) {
            conn_deadline(c->conn, 0);
            if (c->x->drained)
                c->x->drained(c->x);
        }
        break;
    case CONN_EOF:
        if (c->x && !c->reading && !c->x->takes && !c->x->streams)
            c->last = true; /* who only waits for its answer gets it */
        else
            client_end(c, true);
        break;
    case CONN_CONNECTED:
    case CONN_TLS_READY: break;
    default: client_end(c, false);
    }
}

/* --- who knocks ----------------------------------------------------------------------- */

void call_holder(struct call *x, const char *tenant)
{
    digest_of(span_str(tenant), &x->client->holder);
    if (x->form != CALL_CONTROL)
        signed_keep(x->dock, x->arg, call_field(x, SPAN("x-access-token")), &x->client->holder);
}

const struct digest *call_tenant(const struct call *x)
{
    return &x->client->holder;
}

static bool same_holder(const struct client *a, const struct client *b)
{
    return span_eq(span_of(a->holder.b, DIGEST_BYTES), span_of(b->holder.b, DIGEST_BYTES));
}

/* All places are taken: of whoever holds most of them the oldest that is asked nothing ends, or else the oldest, so
 * that nobody keeps the others out. The newest is first in the list. */
static void make_room(struct dock *d)
{
    struct client *of = NULL, *victim = NULL;

    for (struct client *c = d->clients; c; c = c->next) {
        c->held = 1;
        for (struct client *o = d->clients; o != c; o = o->next)
            if (same_holder(o, c)) {
                o->held++; /* the first of them counts */
                break;
            }
    }
    for (struct client *c = d->clients; c; c = c->next)
        if (!of || c->held > of->held)
            of = c;
    for (struct client *c = of; c; c = c->next)
        if (same_holder(c, of) && (!victim || !c->x || victim->x))
            victim = c;
    if (victim)
        client_end(victim, false);
}

static void client_new(struct door *door, int fd)
{
    struct dock *d = door->dock;
    struct client *c = calloc(1, sizeof(*c));

    if (!c) {
        close(fd);
        return;
    }
    c->dock = d;
    c->door = door;
    c->conn = conn_new(d->loop, fd, DOCK_UNREAD_MAX, event, c);
    if (!c->conn) {
        free(c);
        return;
    }
    c->next = d->clients;
    if (c->next)
        c->next->prev = c;
    d->clients = c;
    d->nclients++;
    conn_deadline(c->conn, DOCK_REQUEST_MS);
}

static void knock(void *arg, unsigned ready)
{
    struct door *door = arg;

    for (int i = 0; i < ACCEPTS; i++) {
        int fd = listen_accept(door->fd);
        if (fd < 0)
            return;
        if (door->dock->nclients == DOCK_CLIENTS)
            make_room(door->dock);
        client_new(door, fd);
    }
}

/* A stream on which nothing was said for a while says that it is there. */
static void tick(void *arg)
{
    struct door *door = arg;
    uint64_t now = loop_now(door->dock->loop);

    for (struct client *c = door->dock->clients, *next; c; c = next) {
        next = c->next;
        if (c->x && c->x->ping && c->x->streams && now - c->said_ms >= DOCK_PING_MS && call_reads(c->x))
            c->x->ping(c->x);
    }
    timer_set(door->tick, TICK_MS);
}

struct door *door_new(struct dock *d, int fd)
{
    struct door *door = calloc(1, sizeof(*door));

    if (!door)
        return NULL;
    *door = (struct door){.dock = d, .fd = fd};
    door->watch = watch_new(d->loop, fd, WATCH_READ, knock, door);
    door->tick = timer_new(d->loop, tick, door);
    if (!door->watch || !door->tick)
        return NULL;
    timer_set(door->tick, TICK_MS);
    return door;
}
