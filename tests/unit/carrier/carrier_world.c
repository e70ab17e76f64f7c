#include "tests/unit/carrier/carrier_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"

static void late(void *arg)
{
    struct world *w = arg;
    w->late = true;
    loop_stop(w->loop);
}

/* One stretch of the loop: until something happens. */
static void stretch(struct world *w)
{
    timer_set(w->limit, 300000); /* of what is stuck; a busy machine is not */
    w->late = false;
    assert_int_equal(loop_run(w->loop), 0);
    timer_clear(w->limit);
    if (w->late)
        fail_msg("nothing happened for 300 s");
}

static void saw(struct world *w, enum role_id at, struct frame *f)
{
    assert_true(w->nseen < SEEN_MAX);
    struct seen *s = &w->seen[w->nseen++];
    *s = (struct seen){.at = at, .type = f->type, .id = f->id};
    dynbuf_init(&s->payload, CHAN_PAYLOAD_MAX);
    assert_int_equal(dynbuf_add(&s->payload, f->payload), 0);
    s->fd = f->nfds ? frame_take_fd(f, 0) : -1;
    loop_stop(w->loop);
}

#define PEER(name, role)                                                                                             \
    static void name##_frame(void *arg, struct chan *c, struct frame *f)                                             \
    {                                                                                                                \
        saw(arg, role, f);                                                                                           \
    }                                                                                                                \
    static void name##_gone(void *arg, struct chan *c)                                                               \
    {                                                                                                                \
        struct world *w = arg;                                                                                       \
        chan_free(&w->peer[role]);                                                                                   \
        loop_stop(w->loop);                                                                                          \
    }                                                                                                                \
    static const struct chan_ops name##_ops = {name##_frame, name##_gone}
PEER(judge, ROLE_JUDGE);
PEER(keeper, ROLE_KEEPER);
PEER(resolver, ROLE_RESOLVER);
PEER(front, ROLE_FRONT);

static struct chan *peer_of(struct world *w, enum role_id role, uint64_t instance, const struct chan_ops *ops)
{
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
    struct chan *c = chan_new(w->loop, fd[0], ops, w);
    assert_non_null(c);
    carrier_peer(w->carrier, role, instance, fd[1]);
    return c;
}

static void connect_peer(struct world *w, enum role_id role, uint64_t instance, const struct chan_ops *ops)
{
    w->peer[role] = peer_of(w, role, instance, ops);
}

static void other_gone(void *arg, struct chan *c)
{
    struct world *w = arg;
    chan_free(&w->other_front);
}

void world_other_front(struct world *w)
{
    static const struct chan_ops ops = {front_frame, other_gone};
    w->other_front = peer_of(w, ROLE_FRONT, FRONT + 1, &ops);
}

/* ---- the upstream ---- */

static void up_event(void *arg, struct conn *c, enum conn_event ev)
{
    struct world *w = arg;
    struct up *u = w->up;
    while (u->conn != c)
        u++;
    if (ev == CONN_DATA) {
        assert_int_equal(dynbuf_add(&u->got, conn_input(c)), 0);
        conn_consume(c, conn_input(c).n);
    } else if (ev != CONN_DRAINED) {
        u->ended = true;
    }
    loop_stop(w->loop);
}

static void up_accept(void *arg, unsigned ready)
{
    struct world *w = arg;
    int fd = listen_accept(w->listener);
    if (fd < 0)
        return;
    assert_true(w->nups < UPS_MAX);
    struct up *u = &w->up[w->nups++];
    dynbuf_init(&u->got, 16 * 1024 * 1024);
    u->conn = conn_new(w->loop, fd, 64 * 1024, up_event, w);
    assert_non_null(u->conn);
}

bool world_up_has(const struct world *w, size_t i, const char *part)
{
    struct span got = dynbuf_span(&w->up[i].got);
    return i < w->nups && span_find(got, span_str(part)) < got.n;
}

void world_wait_up(struct world *w, size_t i, const char *part)
{
    while (i >= w->nups || !world_up_has(w, i, part))
        stretch(w);
}

void world_wait_closed(struct world *w, size_t i)
{
    while (!w->up[i].ended)
        stretch(w);
}

void world_answer(struct world *w, size_t i, const char *text)
{
    assert_int_equal(conn_write(w->up[i].conn, span_str(text)), 0);
}

/* ---- life ---- */

struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->secret = TOKEN;
    log_init("test", LOG_ERROR);
    w->loop = loop_new();
    w->carrier = carrier_new(w->loop, SPAN_NONE, SPAN_NONE);
    w->limit = timer_new(w->loop, late, w);
    w->listener = listen_tcp("127.0.0.1:0");
    assert_true(w->listener >= 0);
    w->port = (uint16_t)listen_port(w->listener);
    w->watch = watch_new(w->loop, w->listener, WATCH_READ, up_accept, w);
    assert_true(w->carrier != NULL && w->limit != NULL && w->watch != NULL);
    connect_peer(w, ROLE_JUDGE, 0, &judge_ops);
    connect_peer(w, ROLE_KEEPER, 0, &keeper_ops);
    connect_peer(w, ROLE_RESOLVER, 0, &resolver_ops);
    connect_peer(w, ROLE_FRONT, FRONT, &front_ops);
    world_upstream(w, 1, "127.0.0.1", false, true);
    return w;
}

void world_resolver(struct world *w)
{
    connect_peer(w, ROLE_RESOLVER, 0, &resolver_ops);
}

void world_free(struct world **at)
{
    struct world *w = *at;
    carrier_free(&w->carrier);
    for (size_t i = 0; i < ROLE_COUNT; i++)
        chan_free(&w->peer[i]);
    chan_free(&w->other_front);
    for (size_t i = 0; i < w->nups; i++) {
        conn_free(&w->up[i].conn);
        dynbuf_free(&w->up[i].got);
    }
    for (size_t i = 0; i < w->nseen; i++) {
        dynbuf_free(&w->seen[i].payload);
        if (w->seen[i].fd >= 0)
            close(w->seen[i].fd);
    }
    watch_free(&w->watch);
    timer_free(&w->limit);
    if (w->listener >= 0)
        close(w->listener);
    loop_free(&w->loop);
    free(w);
    *at = NULL;
}

static struct seen *find(struct world *w, enum role_id at, uint16_t type, uint64_t id)
{
    for (size_t i = 0; i < w->nseen; i++)
        if (w->seen[i].at == at && w->seen[i].type == type && w->seen[i].id == id)
            return &w->seen[i];
    return NULL;
}

struct seen *world_wait(struct world *w, enum role_id at, uint16_t type, uint64_t id)
{
    struct seen *s;
    while ((s = find(w, at, type, id)) == NULL)
        stretch(w);
    return s;
}

size_t world_count(const struct world *w, enum role_id at, uint16_t type, uint64_t id)
{
    size_t n = 0;
    for (size_t i = 0; i < w->nseen; i++)
        n += w->seen[i].at == at && w->seen[i].type == type && w->seen[i].id == id;
    return n;
}

static void stop_now(void *arg)
{
    loop_stop(arg);
}

void world_settle(struct world *w)
{
    for (int i = 0; i < 8; i++) {
        struct timer *t = timer_new(w->loop, stop_now, w->loop);
        assert_non_null(t);
        timer_set(t, 1);
        stretch(w);
        timer_free(&t);
    }
}

void world_close_up(struct world *w, size_t i)
{
    conn_free(&w->up[i].conn);
    w->up[i].ended = true;
}

/* ---- what the peers say ---- */

void world_say(struct world *w, enum role_id from, uint16_t type, uint64_t id, struct span payload)
{
    assert_int_equal(chan_send(w->peer[from], type, id, payload), 0);
}

void world_upstream(struct world *w, uint32_t n, const char *address, bool has_secrets, bool cleartext)
{
    struct wire_upstream u = {.number = n,
                              .scheme = SPAN("http"),
                              .host = SPAN("up.test"),
                              .address = span_str(address),
                              .port = w->port,
                              .cleartext_credentials = cleartext,
                              .has_secrets = has_secrets,
                              .place = w->place,
                              .ncidrs = 1};
    u.cidr[0] = SPAN("127.0.0.0/8");
    struct dynbuf *b = chan_begin(w->peer[ROLE_JUDGE], M_UPSTREAM, 0);
    assert_non_null(b);
    wire_put_upstream(b, &u);
    assert_int_equal(chan_commit(w->peer[ROLE_JUDGE]), 0);
}

void world_forward(struct world *w, uint64_t xid, struct request r)
{
    struct wire_forward f = {.upstream = r.upstream ? r.upstream : 1,
                             .repeatable = !r.once,
                             .release = r.release,
                             .credential = span_str(r.credential ? r.credential : ""),
                             .slot = r.slot,
                             .slot_at = r.slot_at,
                             .body = r.body,
                             .metered = r.metered,
                             .reach = r.reach,
                             .swaps = r.swaps,
                             .answer_id = r.answer_id};
    f.request = (struct wire_request){.scheme = SPAN("http"),
                                      .host = SPAN("up.test"),
                                      .port = w->port,
                                      .method = span_str(r.method ? r.method : "GET"),
                                      .path = span_str(r.path ? r.path : "/")};
    if (r.upgrade)
        f.request.field[f.request.nfields++] = (struct http_field){SPAN("Upgrade"), SPAN("websocket")};
    if (r.field != NULL)
        f.request.field[f.request.nfields++] = (struct http_field){SPAN("X-Test"), span_str(r.field)};
    if (r.range != NULL)
        f.request.field[f.request.nfields++] = (struct http_field){SPAN("Range"), span_str(r.range)};
    struct chan *judge = w->peer[ROLE_JUDGE];
    struct dynbuf *b = chan_begin(judge, M_FORWARD, xid);
    assert_non_null(b);
    wire_put_forward(b, &f);
    msg_put_u64(b, r.body == BODY_INLINE ? r.data.n : r.size);
    msg_put_span(b, r.data);
    assert_int_equal(r.body == BODY_FD ? chan_commit_fd(judge, r.fd) : chan_commit(judge), 0);
}

void world_credential(struct world *w, uint64_t xid, uint32_t ttl, const char *host, const char *name,
                      const char *value)
{
    struct dynbuf *b = chan_begin(w->peer[ROLE_KEEPER], M_CREDENTIAL, xid);
    assert_non_null(b);
    msg_put_u32(b, ttl);
    msg_put_span(b, SPAN("http"));
    msg_put_span(b, span_str(host));
    msg_put_u16(b, w->port);
    msg_put_digest(b, &w->place);
    msg_put_span(b, span_str(name));
    msg_put_u8(b, (uint8_t)w->slot);
    msg_put_span(b, name[0] && w->slot == SLOT_HEADER ? SPAN("Authorization") : SPAN_NONE);
    msg_put_span(b, span_str(value));
    msg_put_span(b, SPAN_NONE);
    msg_put_u16(b, 1);
    msg_put_span(b, span_str(w->secret));
    msg_put_u8(b, w->refuse);
    msg_put_u8(b, 0);
    msg_put_u32(b, 0);
    msg_put_u64(b, w->version);
    assert_int_equal(chan_commit(w->peer[ROLE_KEEPER]), 0);
}

struct result world_result(struct world *w, uint64_t xid)
{
    struct seen *s = world_wait(w, ROLE_JUDGE, M_RESULT, xid);
    struct msg_in m = msg_in(dynbuf_span(&s->payload));
    struct result r;
    r.outcome = msg_get_u8(&m);
    r.status = msg_get_u16(&m);
    r.out = msg_get_u64(&m);
    r.in = msg_get_u64(&m);
    r.egress = msg_get_u64(&m);
    r.relayed = msg_get_bool(&m);
    r.code = msg_get_span(&m, 64);
    r.why = msg_get_span(&m, 512);
    r.range = msg_get_span(&m, 96);
    assert_int_equal(msg_end(&m), 0);
    return r;
}

void world_front_answer(struct world *w, uint64_t xid, struct answer *a)
{
    *a = (struct answer){.ended = false};
    dynbuf_init(&a->body, 16 * 1024 * 1024);
    struct seen *s = world_wait(w, ROLE_FRONT, M_ANSWER, xid);
    struct msg_in m = msg_in(dynbuf_span(&s->payload));
    assert_int_equal(wire_get_answer(&m, &a->head), 0);
    a->ok = a->ended = msg_get_bool(&m);
    assert_int_equal(dynbuf_add(&a->body, msg_get_span(&m, CHAN_PAYLOAD_MAX)), 0);
    assert_int_equal(msg_end(&m), 0);
    for (; s < w->seen + w->nseen; s++)
        if (s->id == xid && s->type == M_ANSWER_BODY)
            assert_int_equal(dynbuf_add(&a->body, dynbuf_span(&s->payload)), 0);
        else if (s->id == xid && s->type == M_ANSWER_END) {
            assert_false(a->ended);
            a->ended = true;
            a->ok = s->payload.p[0] == 1;
        }
}

void expect_code(struct world *w, uint64_t xid, enum outcome o, const char *code)
{
    struct result r = world_result(w, xid);
    if (!span_eq(r.code, span_str(code)))
        fail_msg("code %.*s (%.*s), not %s", SPAN_FMT(r.code), SPAN_FMT(r.why), code);
    assert_int_equal(r.outcome, o);
    assert_int_equal(world_count(w, ROLE_JUDGE, M_RESULT, xid), 1);
}

void expect_answer(struct world *w, uint64_t xid, const char *body, bool ok)
{
    struct answer a;
    (void)world_result(w, xid);
    world_settle(w);
    world_front_answer(w, xid, &a);
    assert_true(a.ended);
    assert_int_equal(a.ok, ok);
    if (!span_eq(dynbuf_span(&a.body), span_str(body)))
        fail_msg("body is %.*s", SPAN_FMT(dynbuf_span(&a.body)));
    dynbuf_free(&a.body);
}

void world_get(struct world *w, uint64_t n, size_t up, const char *answer, const char *body)
{
    char path[32], line[48];
    snprintf(path, sizeof(path), "/%llu", (unsigned long long)n);
    snprintf(line, sizeof(line), "GET /%llu HTTP/1.1\r\n", (unsigned long long)n);
    world_forward(w, XID(n), (struct request){.path = path});
    world_wait_up(w, up, line);
    world_answer(w, up, answer);
    expect_answer(w, XID(n), body, true);
}
