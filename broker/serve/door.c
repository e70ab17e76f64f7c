/* HTTP/1.1 towards callers: bounded in number, bytes and time; one call at a time on a connection. */
#include "broker/serve/caller.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "proxy/errand/broker_key.h"
#include "proxy/msgs.h"

enum { ACCEPTS = 16, PART = 64 * 1024, IN_MAX = 96 * 1024, ANSWER_MAX = 16 * 1024 * 1024 };

struct door {
    struct serve *serve;
    int fd;
    bool own;
    struct watch *watch;
};

struct span call_tenant(const struct call *x)
{
    return span_str(x->client->tenant);
}

struct span call_who(const struct call *x)
{
    return span_str(x->client->who);
}

bool call_from_page(const struct call *x)
{
    return x->client->desk;
}

/* --- one goes ------------------------------------------------------------------------------- */

static void call_free(struct call *x)
{
    lanes_forget(x);
    dynbuf_wipe(&x->raw); /* the key is in there */
    dynbuf_free(&x->body);
    dynbuf_free(&x->out);
    arena_free(&x->arena);
    free(x);
}

void caller_drop(struct caller *c, bool flush)
{
    if (c->ended)
        return;
    bool held = c->x != NULL && lanes_hold(c->x);
    c->ended = true;
    if (c->x != NULL && !held)
        call_free(c->x);
    if (!held)
        c->x = NULL;
    if (flush && c->conn != NULL)
        conn_finish(&c->conn);
    conn_free(&c->conn);
    for (struct caller **at = &c->serve->callers; *at != NULL; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            c->serve->ncallers--;
            break;
        }
    if (!c->working && !held)
        free(c);
}

void call_over(struct call *x)
{
    struct caller *c = x->client;
    if (!c->ended)
        return;
    call_free(x);
    c->x = NULL;
    if (!c->working)
        free(c);
}

/* --- what is answered ------------------------------------------------------------------------- */

static int head_write(struct caller *c, const struct call *x, enum http_framing framing)
{
    struct dynbuf b;
    const char *reason = x->status == 200   ? "OK"
                         : x->status == 202 ? "Accepted"
                         : x->status == 204 ? "No Content"
                         : x->status < 400  ? "Done"
                                            : "Refused";
    dynbuf_init(&b, 4096);
    bool bad = http_write_status_line(&b, x->status, span_str(reason)) != 0 ||
               (x->type && http_write_field(&b, SPAN("Content-Type"), span_str(x->type)) != 0) ||
               http_write_field(&b, SPAN("Cache-Control"), SPAN("no-store")) != 0 ||
               http_write_field(&b, SPAN("X-Content-Type-Options"), SPAN("nosniff")) != 0 ||
               (x->streams && http_write_field(&b, SPAN("X-Accel-Buffering"), SPAN("no")) != 0) ||
               (x->status == 401 && http_write_field(&b, SPAN("WWW-Authenticate"), SPAN("Bearer")) != 0) ||
               (c->last && http_write_field(&b, SPAN("Connection"), SPAN("close")) != 0) ||
               http_write_end(&b, framing, x->out.n) != 0 || conn_write(c->conn, dynbuf_span(&b)) != 0;
    dynbuf_free(&b);
    return bad ? -1 : 0;
}

static void work(struct caller *c);

static void over(struct caller *c)
{
    call_free(c->x);
    c->x = NULL;
    c->sent = 0;
    c->pumping = false;
    if (c->last)
        caller_drop(c, true);
    else {
        conn_deadline(c->conn, SERVE_IDLE_MS);
        work(c);
    }
}

static void pump(struct caller *c)
{
    struct call *x = c->x;
    while (c->sent < x->out.n && conn_queued(c->conn) < CONN_OUT_LOW) {
        struct span part = span_first(span_from(dynbuf_span(&x->out), c->sent), PART);
        if (conn_write(c->conn, part) != 0) {
            caller_drop(c, false);
            return;
        }
        c->sent += part.n;
    }
    conn_deadline(c->conn, SERVE_SEND_MS);
    if (c->sent == x->out.n)
        over(c);
}

void call_answer(struct call *x)
{
    struct caller *c = x->client;
    if (c->ended)
        return;
    c->last |= c->reading;
    if (!dynbuf_ok(&x->out)) {
        dynbuf_free(&x->out);
        x->status = 500;
    }
    c->pumping = true;
    if (head_write(c, x, x->status == 204 ? HTTP_NO_BODY : HTTP_LENGTH) != 0)
        caller_drop(c, false);
    else
        pump(c);
}

int call_stream(struct call *x)
{
    struct caller *c = x->client;
    if (c->ended)
        return -1;
    x->status = 200;
    x->type = "text/event-stream";
    x->streams = true;
    c->last = true;
    /* Set for the first alone: to set it anew puts it off, and who opens streams fast enough would silence all. */
    if (!c->serve->watched)
        timer_set(c->serve->pulse, SERVE_PULSE_MS);
    c->serve->watched = true;
    conn_deadline(c->conn, 0);
    c->asked_ms = c->known_ms = loop_now(c->serve->loop);
    if (head_write(c, x, HTTP_CHUNKED) == 0)
        return 0;
    caller_drop(c, false);
    return -1;
}

int call_piece(struct call *x, struct span s)
{
    struct caller *c = x->client;
    struct dynbuf b;
    if (c->ended)
        return -1;
    dynbuf_init(&b, s.n + 64);
    bool bad = http_write_chunk(&b, s) != 0 || conn_write(c->conn, dynbuf_span(&b)) != 0;
    dynbuf_free(&b);
    if (!bad && conn_queued(c->conn) >= CONN_OUT_LOW)
        conn_deadline(c->conn, SERVE_SEND_MS);
    if (!bad)
        return 0;
    caller_drop(c, false);
    return -1;
}

void call_cut(struct call *x)
{
    caller_drop(x->client, false);
}

void call_stream_end(struct call *x)
{
    struct caller *c = x->client;
    if (c->ended)
        return;
    if (conn_write(c->conn, SPAN("0\r\n\r\n")) == 0)
        over(c);
    else
        caller_drop(c, false);
}

bool call_reads(const struct call *x)
{
    return !x->client->ended && conn_queued(x->client->conn) < CONN_OUT_LOW;
}

void reply_json(struct call *x, unsigned status, struct jsonw *w)
{
    x->status = status;
    x->type = "application/json";
    dynbuf_reset(&x->out);
    jsonw_begin(w, &x->out);
}

void reply_no(struct call *x, unsigned status, const char *fmt, ...)
{
    char text[512];
    struct jsonw w;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    reply_json(x, status, &w);
    x->type = "application/problem+json";
    jsonw_object(&w);
    jsonw_kv_u64(&w, "status", status);
    jsonw_kv(&w, "detail", span_str(text));
    jsonw_end_object(&w);
    call_answer(x);
}

static void read_body(struct caller *c);

/* --- whose key it is -------------------------------------------------------------------------- */

bool caller_ask(struct caller *c)
{
    struct serve *s = c->serve;
    struct dynbuf *b = s->desk != NULL ? chan_begin(s->desk, M_BROKER_WHO, ++s->asked) : NULL;
    if (b == NULL)
        return false;
    msg_put_digest(b, &c->key);
    c->asks = s->asked;
    c->asked_ms = loop_now(s->loop);
    return chan_commit(s->desk) == 0;
}

static size_t held(const struct serve *s, const char *tenant)
{
    size_t n = 0;
    for (const struct caller *c = s->callers; c != NULL; c = c->next)
        n += !caller_is_known(c) && strcmp(c->tenant, tenant) == 0;
    return n;
}

/* Whoever may not gets no place to try again on. */
static void turn_away(struct caller *c, unsigned status, const char *why)
{
    c->last = true;
    reply_no(c->x, status, "%s", why);
}

static void let_in(struct caller *c, unsigned may)
{
    struct call *x = c->x;
    if ((may & x->needs) != x->needs)
        turn_away(c, 403, "this key is not for that (see `countersign key list`)");
    else if (!caller_is_known(c) && held(c->serve, c->tenant) > SERVE_TENANT_CLIENTS)
        turn_away(c, 429, "as many connections of this tenant are open as may be");
    else if (!c->reading)
        lanes_run(x, x->fn);
    else {
        if (x->head.expect_continue && conn_write(c->conn, SPAN("HTTP/1.1 100 Continue\r\n\r\n")) != 0) {
            caller_drop(c, false);
            return;
        }
        conn_deadline(c->conn, SERVE_REQUEST_MS);
        c->admitted = true;
        read_body(c);
    }
}

/* It was asked while a stream was open. */
static void still(struct caller *c, unsigned is, struct span tenant)
{
    c->again = false;
    if (is == DOCK_OPEN)
        c->known_ms = loop_now(c->serve->loop);
    if (is == DOCK_UNKNOWN || (is == DOCK_OPEN && !span_eq(tenant, span_str(c->tenant))))
        caller_drop(c, false);
}

void serve_frame(struct serve *s, struct frame *f)
{
    if (f->type == M_BROKER_TALK) {
        known_from_desk(s, f);
        return;
    }
    struct msg_in m = msg_in(f->payload);
    struct caller *c = s->callers;
    unsigned is = msg_get_u8(&m);
    (void)msg_get_span(&m, TENANT);
    struct span tenant = msg_get_span(&m, TENANT), note = msg_get_span(&m, 4096);
    while (c != NULL && (c->asks == 0 || c->asks != f->id))
        c = c->next;
    if (msg_end(&m) != 0 || f->type != M_BROKER_WHO) {
        log_error("the desk said %u, which cannot be read", f->type);
        return;
    }
    if (c == NULL || c->x == NULL)
        return;
    c->asks = 0;
    if (c->again) {
        still(c, is, tenant);
        return;
    }
    if (is == DOCK_OPEN) {
        (void)snprintf(c->tenant, sizeof(c->tenant), "%.*s", SPAN_FMT(tenant));
        let_in(c, route_scopes(note, &c->x->arena));
    } else {
        turn_away(c, is == DOCK_UNKNOWN ? 401 : 503,
                  is == DOCK_UNKNOWN ? "this key is not known: `countersign key create NAME --broker` makes one"
                                     : "the gateway cannot say whose key this is at the moment; try again");
    }
}

void serve_desk(struct serve *s, struct chan *desk)
{
    s->desk = desk;
    for (struct caller *c = s->callers, *next; c != NULL; c = next) {
        next = c->next;
        bool waits = c->asks != 0 && c->x != NULL && !c->again;
        c->asks = 0;
        c->again = false;
        if (waits && !caller_ask(c))
            reply_no(c->x, 503, "the gateway cannot say whose key this is at the moment; try again");
    }
}

/* Whoever nobody knows is answered before anything is kept of what it sends. */
static void admit(struct caller *c)
{
    struct call *x = c->x;
    const struct http_field *f = http_find(&x->head, SPAN("Authorization"));
    if (caller_is_known(c)) { /* of whose tenant it is, was said when it came */
        let_in(c, MAY_CHAT | MAY_READ);
        return;
    }
    struct span key =
        f != NULL && span_starts(f->value, SPAN("Bearer ")) ? span_trim(span_from(f->value, 7)) : SPAN_NONE;
    c->tenant[0] = '\0';
    if (key.n == 0 || key.n > SERVE_KEY_MAX) {
        turn_away(c, 401, "a key is needed: Authorization: Bearer csb_...");
        return;
    }
    broker_key_digest(key, &c->key);
    if (!caller_ask(c))
        reply_no(x, 503, "the gateway cannot say whose key this is at the moment; try again");
}

/* --- what is asked ----------------------------------------------------------------------------- */

static void read_body(struct caller *c)
{
    struct call *x = c->x;
    struct span data;
    size_t used = 1;
    enum http_result r = HTTP_MORE;
    while (r == HTTP_MORE && used > 0) {
        r = http_body_step(&c->body, conn_input(c->conn), &used, &data);
        if (r == HTTP_BAD) {
            reply_no(x, 400, "the request's body is malformed");
            return;
        }
        if (x->body.n + data.n > SERVE_BODY_MAX || dynbuf_add(&x->body, data) != 0) {
            reply_no(x, 413, "a request's body may have %d bytes here", SERVE_BODY_MAX);
            return;
        }
        conn_consume(c->conn, used);
    }
    if (r != HTTP_OK)
        return;
    c->reading = false;
    conn_deadline(c->conn, 0);
    lanes_run(x, x->fn);
}

static struct call *call_new(struct caller *c)
{
    struct call *x = calloc(1, sizeof(*x));
    if (x == NULL)
        return NULL;
    x->serve = c->serve;
    x->client = c;
    x->own = c->own;
    dynbuf_init(&x->raw, HTTP_HEAD_MAX);
    dynbuf_init(&x->body, SERVE_BODY_MAX);
    dynbuf_init(&x->out, ANSWER_MAX);
    arena_init(&x->arena, SERVE_ARENA_MAX);
    return x;
}

static void begin(struct caller *c, struct span head)
{
    struct http_err e;
    struct span data;
    size_t seen = 0, used;
    struct call *x = c->x = call_new(c);
    if (x == NULL || dynbuf_add(&x->raw, head) != 0 ||
        http_parse_request(dynbuf_span(&x->raw), HTTP_ORIGIN_SERVER, &seen, &x->head, &used, &e) != HTTP_OK) {
        caller_drop(c, false);
        return;
    }
    c->seen = 0;
    conn_consume(c->conn, head.n);
    http_body_begin(&c->body, &x->head);
    c->reading = http_body_step(&c->body, SPAN_NONE, &used, &data) != HTTP_OK;
    c->last = true; /* whoever asks for what there is not, without a key, is turned away, too */
    if (!route_find(x))
        return;
    c->last = !x->head.keep_alive;
    c->admitted = false;
    conn_deadline(c->conn, SERVE_REQUEST_MS);
    admit(c);
}

static void work(struct caller *c)
{
    if (c->working) /* whoever works goes on with it */
        return;
    c->working = true;
    while (!c->ended && c->x == NULL && conn_input(c->conn).n > 0) {
        struct http_head h;
        struct http_err e = {0};
        size_t used;
        enum http_result r = http_parse_request(conn_input(c->conn), HTTP_ORIGIN_SERVER, &c->seen, &h, &used, &e);
        if (r == HTTP_MORE)
            break;
        if (r == HTTP_OK)
            begin(c, span_first(conn_input(c->conn), used));
        else if ((c->x = call_new(c)) != NULL) {
            c->last = true;
            reply_no(c->x, e.status, "%s", e.why);
        } else
            caller_drop(c, false);
    }
    c->working = false;
    if (c->ended && c->x == NULL)
        free(c);
}

static void event(void *arg, struct conn *conn, enum conn_event ev)
{
    struct caller *c = arg;
    switch (ev) {
    case CONN_DATA:
        if (c->x == NULL)
            work(c);
        else if (c->reading && c->admitted)
            read_body(c);
        break;
    case CONN_DRAINED:
        if (c->x != NULL && c->pumping)
            pump(c);
        else if (c->x != NULL && c->x->streams) {
            conn_deadline(c->conn, 0);
            lanes_run(c->x, stream_more);
        }
        break;
    case CONN_EOF:
        if (c->x != NULL && !c->reading && !c->x->streams)
            c->last = true; /* who only waits for its answer gets it */
        else
            caller_drop(c, true);
        break;
    case CONN_CONNECTED:
    case CONN_TLS_READY: break;
    default: caller_drop(c, false);
    }
}

/* --- who knocks --------------------------------------------------------------------------------- */

/* Of whoever holds most of the places (callers that nobody knows yet are one) the oldest that is asked nothing goes,
 * or else the oldest, so that nobody keeps the others out. The newest is first in the list. */
static void make_room(struct serve *s)
{
    struct caller *most = NULL, *victim = NULL, *of[SERVE_CLIENTS + SERVE_OWN_CLIENTS];
    size_t n = 0;
    for (struct caller *c = s->callers; c != NULL; c = c->next) {
        size_t i = 0;
        c->held = 0;
        if (caller_is_known(c))
            continue;
        while (i < n && strcmp(of[i]->tenant, c->tenant) != 0)
            i++;
        if (i == n)
            of[n++] = c; /* the first of them counts */
        of[i]->held++;
        if (most == NULL || of[i]->held > most->held)
            most = of[i];
    }
    for (struct caller *c = s->callers; c != NULL; c = c->next)
        if (!caller_is_known(c) && most != NULL && strcmp(c->tenant, most->tenant) == 0 &&
            (victim == NULL || c->x == NULL || victim->x != NULL))
            victim = c;
    if (victim != NULL)
        caller_drop(victim, false);
}

struct caller *caller_add(struct serve *s, size_t most, int fd)
{
    struct caller *c = s->ncallers < most ? calloc(1, sizeof(*c)) : NULL;
    if (c == NULL) {
        close(fd);
        return NULL;
    }
    *c = (struct caller){.serve = s};
    if ((c->conn = conn_new(s->loop, fd, IN_MAX, event, c)) == NULL) {
        free(c);
        return NULL;
    }
    c->next = s->callers;
    s->callers = c;
    s->ncallers++;
    conn_deadline(c->conn, SERVE_REQUEST_MS);
    return c;
}

static void caller_new(struct door *door, int fd)
{
    struct serve *s = door->serve;
    size_t most = door->own ? SERVE_CLIENTS + SERVE_OWN_CLIENTS : SERVE_CLIENTS;
    if (!door->own && s->ncallers >= most)
        make_room(s);
    struct caller *c = caller_add(s, most, fd);
    if (c != NULL && door->own)
        known_own(c);
}

static void knock(void *arg, unsigned ready)
{
    struct door *door = arg;
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = listen_accept(door->fd);
        if (fd < 0)
            return;
        caller_new(door, fd);
    }
}

int serve_listen(struct serve *s, int fd, bool own)
{
    struct door *door = calloc(1, sizeof(*door));
    if (door == NULL)
        return -1;
    *door = (struct door){.serve = s, .fd = fd, .own = own};
    door->watch = watch_new(s->loop, fd, WATCH_READ, knock, door);
    return door->watch != NULL ? 0 : -1;
}
