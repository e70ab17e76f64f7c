#include "tests/play/judge/play.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

bool play_inside, play_torture;

/* Of common/net/chan.c, which the plays do without. */
int frame_take_fd(struct frame *f, unsigned i)
{
    int fd = i < f->nfds ? f->fd[i] : -1;
    if (fd >= 0)
        f->fd[i] = -1;
    return fd;
}

static struct dynbuf *port_begin(void *arg, enum role_id to, uint64_t instance, uint16_t type, uint64_t id)
{
    struct play *p = arg;
    if (!p->up[to])
        return NULL;
    assert_int_equal(p->open.to, ROLE_NONE); /* one at a time */
    p->open = (struct sent){to, instance, type, id, {0}, -1};
    dynbuf_init(&p->open.payload, 1 << 20);
    return &p->open.payload;
}

static int port_commit(void *arg, enum role_id to, uint64_t instance, int fd)
{
    struct play *p = arg;
    assert_int_equal(p->open.to, to);
    assert_true(p->open.instance == instance);
    if (play_torture && !dynbuf_ok(&p->open.payload)) {
        p->open = (struct sent){0};
        return -1;
    }
    assert_true(dynbuf_ok(&p->open.payload));
    assert_true(p->open.payload.n <= CHAN_PAYLOAD_MAX);
    assert_true(p->n < sizeof(p->out) / sizeof(p->out[0]));
    if (p->recorder)
        recorder_out(p->recorder, to, instance, p->open.type, p->open.id, dynbuf_span(&p->open.payload));
    if ((p->open.type == M_REVIEW && !p->reviews) || (p->open.type == M_TICKET_CLIENT && !p->clients)) {
        dynbuf_free(&p->open.payload);
        p->open = (struct sent){0};
        return 0;
    }
    p->open.fd = fd >= 0 ? dup(fd) : -1;
    p->out[p->n++] = p->open;
    p->open = (struct sent){0};
    return 0;
}

static uint64_t port_now(void *arg)
{
    return ((struct play *)arg)->now;
}

static uint64_t port_wall(void *arg)
{
    return PLAY_WALL + ((struct play *)arg)->now;
}

static uint64_t port_clock(void *arg)
{
    return ((struct play *)arg)->now * 1000 + play_spent_us;
}

static void port_hold_back(void *arg, uint64_t instance, bool on)
{
    struct play *p = arg;
    assert_true(instance < sizeof(p->held_back) / sizeof(p->held_back[0]));
    p->held_back[instance] = on;
}

/* `now` stands still during a turn. */
static void turn_over(struct play *p)
{
    p->now += play_spent_us / 1000;
    play_spent_us %= 1000;
}

static void port_wake(void *arg, uint64_t in_ms)
{
    struct play *p = arg;
    p->alarm = in_ms == UINT64_MAX ? 0 : p->now + in_ms;
}

void play_open(struct play *p)
{
    struct judge_ports ports = {p,         port_begin, port_commit, port_now,      port_wall,
                                port_wake, NULL,       port_clock,  port_hold_back};
    memset(p, 0, sizeof(*p));
    p->now = 1000000;
    p->j = judge_new(&ports);
    assert_non_null(p->j);
    p->got.fd = -1;
}

void play_all(struct play *p, const char *policy)
{
    play_open(p);
    for (enum role_id r = ROLE_LOBBY; r < ROLE_COUNT; r++)
        if (r != ROLE_FRONT && r != ROLE_JUDGE && r != ROLE_RESOLVER && r != ROLE_DESK)
            play_peer(p, r, 0, "");
    play_sandbox(p, "sb", "ses", "token-of-sb", false);
    give_bool(p, ROLE_LEDGER, M_STORE, 0, true); /* the last word of its welcome */
    play_peer(p, ROLE_FRONT, FRONT, "sb");
    play_policy(p, policy);
}

static void forget(struct sent *s)
{
    dynbuf_free(&s->payload);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

void play_close(struct play *p)
{
    expect_nothing(p);
    judge_free(&p->j);
    forget(&p->got);
    assert_null(p->j);
}

int play_policy_fd(const char *text, uint8_t digest, unsigned seals)
{
    uint8_t head[32] = {digest};
    int fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, head, sizeof(head)), sizeof(head));
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

void play_policy(struct play *p, const char *text)
{
    struct digest d = {{++p->digest}};
    int fd = play_policy_fd(text, p->digest, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    msg_put_digest(from(p), &d);
    assert_int_equal(give(p, ROLE_PARENT, 0, M_IMAGE, 0, fd), 0);
}

void play_peer(struct play *p, enum role_id r, uint64_t instance, const char *info)
{
    p->up[r] = true;
    if (p->recorder)
        recorder_event(p->recorder, ENTRY_PEER, r, instance, span_str(info));
    judge_peer(p->j, r, instance, span_str(info));
    if (r == ROLE_LEDGER)
        give_bool(p, ROLE_LEDGER, M_FREEZE, 0, false); /* its first word */
}

void play_gone(struct play *p, enum role_id r, uint64_t instance)
{
    p->up[r] = false;
    if (p->recorder)
        recorder_event(p->recorder, ENTRY_GONE, r, instance, SPAN_NONE);
    judge_gone(p->j, r, instance);
}

void play_time(struct play *p, uint64_t ms)
{
    uint64_t until = p->now + ms;
    while (p->alarm != 0 && p->alarm <= until) {
        p->now = p->alarm;
        p->alarm = 0;
        if (p->recorder)
            recorder_event(p->recorder, ENTRY_TICK, ROLE_NONE, 0, SPAN_NONE);
        judge_tick(p->j);
    }
    p->now = until;
}

static struct dynbuf building;

struct dynbuf *from(struct play *p)
{
    dynbuf_free(&building);
    dynbuf_init(&building, 1 << 20);
    return &building;
}

int give(struct play *p, enum role_id r, uint64_t instance, uint16_t type, uint64_t id, int fd)
{
    struct frame f = {.type = type, .id = id, .payload = dynbuf_span(&building), .fd = {fd}, .nfds = fd >= 0};
    assert_true(dynbuf_ok(&building));
    if (p->recorder)
        recorder_in(p->recorder, r, instance, &f);
    play_inside = true;
    int rc = judge_frame(p->j, r, instance, &f);
    play_inside = false;
    turn_over(p);
    if (fd >= 0 && f.fd[0] >= 0)
        close(f.fd[0]);
    dynbuf_free(&building);
    return rc;
}

void play_sandbox(struct play *p, const char *name, const char *session, const char *token, bool gone)
{
    struct wire_sandbox s = {.name = span_str(name), .session = span_str(session), .has_token = token != NULL};
    if (token)
        digest_of(span_str(token), &s.token_hash);
    struct dynbuf *b = from(p);
    wire_put_sandbox(b, &s);
    msg_put_u8(b, gone);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
}

static struct wire_request request_of(const struct ask *a)
{
    struct wire_request r = {.scheme = SPAN("https"), .host = SPAN("api.example"), .port = 443};
    r.host = a->host ? span_str(a->host) : r.host;
    r.method = span_str(a->method);
    r.path = span_str(a->path);
    r.query = span_str(a->query);
    r.has_query = a->query != NULL;
    if (a->upgrade)
        r.field[r.nfields++] = (struct http_field){SPAN("Upgrade"), SPAN("websocket")};
    if (a->header)
        r.field[r.nfields++] = (struct http_field){span_str(a->header), span_str(a->value)};
    for (size_t i = 0; i < ASK_MORE && a->more[i].name.n; i++)
        r.field[r.nfields++] = a->more[i];
    return r;
}

void give_request(struct play *p, uint64_t xid, const struct ask *a)
{
    struct wire_request r = request_of(a);
    struct dynbuf *b = from(p);
    wire_put_request(b, &r);
    msg_put_span(b, span_str(a->reason));
    msg_put_u8(b, (uint8_t)((a->kind ? a->kind : a->body != NULL) | (a->forwarded ? REQUEST_FORWARDED : 0)));
    msg_put_u64(b, a->kind == 2 ? a->declared : span_str(a->body).n);
    msg_put_span(b, span_str(a->body));
    assert_int_equal(give(p, ROLE_FRONT, xid >> 40, M_REQUEST, xid, -1), 0);
}

static struct wire_ticket_state state_of(uint8_t n, enum ticket_state s, const char *by, const char *words)
{
    return (struct wire_ticket_state){.ticket = {{n}},
                                      .state = (uint8_t)s,
                                      .expires_ms = 1767229200000u, /* 2026-01-01T01:00:00Z */
                                      .by = span_str(by),
                                      .words = span_str(words)};
}

void give_ticket(struct play *p, uint64_t xid, uint8_t n, enum ticket_state s)
{
    struct wire_ticket_state t = state_of(n, s, NULL, NULL);
    wire_put_ticket_state(from(p), &t);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_TICKET, xid, -1), 0);
}

void give_changed(struct play *p, uint8_t n, enum ticket_state s, const char *by, const char *words)
{
    struct wire_ticket_state t = state_of(n, s, by, words);
    wire_put_ticket_state(from(p), &t);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_TICKET_CHANGED, 0, -1), 0);
}

void give_claimed(struct play *p, uint64_t xid, const struct ask *first, const struct digest *d)
{
    give_claimed_fd(p, xid, first, d, first ? span_str(first->body).n : 0, -1);
}

void give_claimed_fd(struct play *p, uint64_t xid, const struct ask *first, const struct digest *d, uint64_t n,
                     int fd)
{
    uint8_t signature[64] = {42};
    struct dynbuf *b = from(p);
    msg_put_u8(b, first != NULL);
    msg_put_u8(b, TICKET_EXECUTING);
    if (first != NULL) {
        struct wire_request r = request_of(first);
        msg_put_digest(b, d);
        msg_put_span(b, span_of(signature, sizeof(signature)));
        wire_put_request(b, &r);
        msg_put_u64(b, n);
        msg_put_span(b, span_str(first->body));
    }
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_CLAIMED, xid, fd), 0);
}

void give_result(struct play *p, uint64_t xid, enum outcome o, uint16_t status, bool relayed, const char *code)
{
    struct dynbuf *b = from(p);
    msg_put_u8(b, (uint8_t)o);
    msg_put_u16(b, status);
    msg_put_u64(b, 10);
    msg_put_u64(b, 20);
    msg_put_u64(b, 30);
    msg_put_u8(b, relayed);
    msg_put_span(b, span_str(code));
    msg_put_span(b, SPAN("10.0.0.1: connection refused"));
    msg_put_span(b, span_str(p->range_sent));
    assert_int_equal(give(p, ROLE_CARRIER, 0, M_RESULT, xid, -1), 0);
}

void give_bool(struct play *p, enum role_id r, uint16_t type, uint64_t id, bool v)
{
    msg_put_u8(from(p), v);
    assert_int_equal(give(p, r, id >> 40 ? (r == ROLE_FRONT ? id >> 40 : 0) : 0, type, id, -1), 0);
}

struct msg_in expect(struct play *p, enum role_id to, uint16_t type, uint64_t id)
{
    if (p->first == p->n)
        fail_msg("expected message %u to %s, but nothing was sent", type, role_name(to));
    forget(&p->got);
    p->got = p->out[p->first++];
    if (p->got.to != to || p->got.type != type || p->got.id != id)
        fail_msg("expected message %u to %s of %llx, got %u to %s of %llx", type, role_name(to),
                 (unsigned long long)id, p->got.type, role_name(p->got.to), (unsigned long long)p->got.id);
    if (p->first == p->n)
        p->first = p->n = 0;
    return msg_in(dynbuf_span(&p->got.payload));
}

void expect_nothing(struct play *p)
{
    if (p->first != p->n)
        fail_msg("message %u to %s was not expected", p->out[p->first].type, role_name(p->out[p->first].to));
}

struct wire_reply expect_reply(struct play *p, uint64_t xid, unsigned status, const char *words)
{
    struct wire_reply r;
    struct msg_in m = expect(p, ROLE_FRONT, M_REPLY, xid);
    assert_int_equal(wire_get_reply(&m, &r), 0);
    assert_int_equal(msg_end(&m), 0);
    if (r.head.status != status || (words && span_find(r.body, span_str(words)) == r.body.n))
        fail_msg("expected %u with \"%s\", got %u: %.*s", status, words, r.head.status, SPAN_FMT(r.body));
    return r;
}

struct wire_forward expect_forward(struct play *p, uint64_t xid, struct span *inline_body)
{
    struct wire_forward f;
    struct msg_in m = expect(p, ROLE_CARRIER, M_FORWARD, xid);
    assert_int_equal(wire_get_forward(&m, &f), 0);
    uint64_t size = msg_get_u64(&m);
    struct span body = msg_get_span(&m, BODY_INLINE_MAX);
    assert_int_equal(msg_end(&m), 0);
    if (f.body == BODY_INLINE)
        assert_int_equal(size, body.n);
    if (inline_body)
        *inline_body = body;
    return f;
}

struct wire_ticket expect_ticket_open(struct play *p, uint64_t xid)
{
    struct wire_ticket t;
    struct msg_in m = expect(p, ROLE_LEDGER, M_TICKET_OPEN, xid);
    assert_int_equal(wire_get_ticket(&m, &t), 0);
    assert_int_equal(wire_get_limits(&m, &p->limits), 0);
    (void)msg_get_u64(&m);
    (void)msg_get_span(&m, BODY_INLINE_MAX);
    assert_int_equal(msg_end(&m), 0);
    return t;
}

enum outcome expect_outcome(struct play *p, uint64_t xid, bool with_ticket)
{
    struct wire_record r;
    struct id ticket;
    struct msg_in m = expect(p, ROLE_LEDGER, M_OUTCOME, xid);
    assert_int_equal(wire_get_record(&m, &r), 0);
    msg_get_id(&m, &ticket);
    assert_int_equal(!id_is_none(&ticket), with_ticket);
    enum outcome o = (enum outcome)msg_get_u8(&m);
    (void)msg_get_u16(&m);
    (void)msg_get_u64(&m);
    (void)msg_get_u64(&m);
    (void)msg_get_bool(&m); /* delivered */
    (void)msg_get_bool(&m); /* kept */
    if (msg_get_bool(&m) && p->up[ROLE_LEDGER] && !p->unwritten) {
        (void)from(p);
        assert_int_equal(give(p, ROLE_LEDGER, 0, M_OUTCOME_OK, xid, -1), 0);
    }
    return o;
}

void expect_audit(struct play *p, uint64_t xid, const char *verdict, const char *code)
{
    struct wire_record r;
    struct msg_in m = expect(p, ROLE_LEDGER, M_AUDIT, xid);
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_int_equal(msg_end(&m), 0);
    if (!span_eq(r.verdict, span_str(verdict)) || !span_eq(r.code, span_str(code)))
        fail_msg("expected %s %s, got %.*s %.*s", verdict, code, SPAN_FMT(r.verdict), SPAN_FMT(r.code));
}
