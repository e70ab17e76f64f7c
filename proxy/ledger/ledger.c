#include "proxy/ledger/ledger.h"

#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memfd.h"
#include "common/time/clock.h"
#include "common/trace.h"

enum { SCRATCH_MAX = 2 * 1024 * 1024 };

static void set_clock(struct ledger *l)
{
    store_clock(l->store, loop_wall(l->loop), clock_ms(CLOCK_BOOTTIME));
}

/* Of what concerns an exchange. */
static void note(uint16_t type, uint64_t exchange, const char *came)
{
    const char *what = NULL;
    switch (type) {
    case M_TICKET_OPEN:
    case M_TICKET: what = "ticket"; break;
    case M_CLAIM:
    case M_CLAIMED: what = "claim"; break;
    case M_INTENT:
    case M_INTENT_OVER:
    case M_INTENT_OK: what = "intent"; break;
    case M_SENT_MARK: what = "sent"; break;
    case M_OUTCOME:
    case M_OUTCOME_OK: what = "outcome"; break;
    case M_AUDIT: what = "refusal"; break;
    default: return;
    }
    trace_step(exchange, what, came);
}

static void send_now(void *arg, enum outbox_to to, uint16_t type, uint64_t id, struct span payload, int fd)
{
    struct ledger *l = arg;
    struct chan *c = l->peer[to == TO_JUDGE    ? ROLE_JUDGE
                             : to == TO_WARDEN ? ROLE_WARDEN
                             : to == TO_KEEPER ? ROLE_KEEPER
                                               : ROLE_DESK];
    if (to == TO_JUDGE)
        l->judge_spoke = false;
    if (c == NULL)
        return;
    note(type, id, l->lost ? "not written" : "written");
    int r = fd >= 0 ? chan_send_fd(c, type, id, payload, fd) : chan_send(c, type, id, payload);
    if (r != 0 && !chan_is_lost(c))
        log_exchange(LOG_WARN, to == TO_JUDGE ? id : 0, "message %u could not be given to its peer", type);
}

struct dynbuf *ledger_scratch(struct ledger *l)
{
    dynbuf_reset(&l->scratch);
    return &l->scratch;
}

static void on_gone(void *arg, struct chan *c);

/* What is told to the judge without its having asked is news. With a judge that lets more wait for it than there is
 * room for it is over: what waits goes out in its order, and what it has not heard is said to it again, before its
 * next request, over the channel that the parent then makes. */
static void say(void *arg, enum outbox_to to, uint16_t type, uint64_t id, struct span payload, int fd)
{
    struct ledger *l = arg;
    if (to == TO_JUDGE && id == 0 && type != M_STORE && l->peer[ROLE_JUDGE] != NULL)
        heard_news(&l->heard);
    int kept = to == TO_DESK ? heard_keeps(&l->heard, type, id, payload, fd) : 0;
    if (kept < 0 && l->peer[ROLE_JUDGE] != NULL) {
        log_error("the judge does not say what it has heard: its channel is closed");
        on_gone(l, l->peer[ROLE_JUDGE]);
    }
    if (kept <= 0)
        send_now(l, to, type, id, payload, fd);
}

static void ask_judge(struct ledger *l)
{
    if (heard_asks(&l->heard) && chan_send(l->peer[ROLE_JUDGE], M_HEARD, l->heard.number, SPAN_NONE) != 0)
        heard_release(&l->heard, send_now, l); /* it has gone */
}

static void heard(struct ledger *l, const struct frame *f)
{
    l->judge_spoke = true;
    if (f->payload.n > 0 || heard_answer(&l->heard, f->id, send_now, l) != 0)
        log_error("message %u from the judge cannot be understood", f->type);
    ask_judge(l);
}

/* The end of a turn, in words. */
static void say_all(struct ledger *l, bool committed)
{
    outbox_flush(&l->out, committed, say, l);
    ask_judge(l);
}

static void say_store(struct ledger *l)
{
    uint8_t ok = !l->lost;
    say(l, TO_JUDGE, M_STORE, 0, span_of(&ok, 1), -1);
}

/* The frames of the turn that must not be lost wait until the store is back. */
static void keep_turn(struct ledger *l)
{
    if (l->backlog.n + l->turn.n > BACKLOG_BYTES)
        log_error("more results than can be remembered while the store fails; some will read `unknown`");
    else if (dynbuf_add(&l->backlog, dynbuf_span(&l->turn)) != 0)
        log_error("out of memory for results while the store fails");
}

/* Who watches reads in the audit what it was: one word for all of a moment, however often a sandbox is refused, for
 * everybody who watches asks then. */
static void say_refused(struct ledger *l)
{
    uint64_t now = loop_now(l->loop);
    if (!l->refused || now < l->refused_next)
        return; /* every_second comes by */
    l->refused = false;
    l->refused_next = now + REFUSED_EVERY_MS;
    struct dynbuf *b = ledger_scratch(l);
    msg_put_span(b, SPAN("refused"));
    msg_put_span(b, SPAN_NONE);
    say(l, TO_DESK, M_EVENT, 0, dynbuf_span(b), -1);
}

static void flush(struct ledger *l)
{
    if (l->waiting > 0)
        timer_clear(l->later);
    l->waiting = 0;
    bool ok = store_commit(l->store) == 0;
    if (!ok || l->lost)
        keep_turn(l);
    else
        l->owed_welcome = false;
    dynbuf_reset(&l->turn);
    if (!ok && !l->lost) {
        l->lost = true;
        log_error("the store failed: %s; refusing until it is back", store_why(l->store));
        say_store(l);
    }
    say_all(l, ok);
    ledger_gates_turn(l, ok);
    ledger_tells_turn(l, ok);
    if (!ok)
        return;
    say_refused(l);
    ledger_gates_next(l);
    ledger_tells_next(l);
}

static void end_of_turn(void *arg)
{
    struct ledger *l = arg;
    l->scheduled = false;
    flush(l);
    if (l->later_due)
        ledger_later(l);
}

void ledger_touch(struct ledger *l)
{
    if (outbox_full(&l->out))
        flush(l);
    if (l->scheduled)
        return;
    l->scheduled = loop_defer(l->loop, end_of_turn, l) == 0;
    if (!l->scheduled)
        flush(l);
}

static void later_is_now(void *arg)
{
    flush(arg);
}

/* Reads and refusals share a transaction with what comes in the next milliseconds: one fsync for all of them. Who
 * waits for an answer ends that wait for all (ledger_touch). */
static void touch_later(struct ledger *l)
{
    if (l->scheduled)
        return;
    if (l->waiting++ == 0)
        timer_set(l->later, LATER_MS);
    if (l->waiting >= LATER_RECORDS || l->turn.n >= LATER_BYTES)
        flush(l);
}

void ledger_reply(struct ledger *l, enum outbox_to to, uint16_t type, uint64_t id, int fd, const struct span *fail)
{
    bool built = dynbuf_ok(&l->scratch) && l->scratch.n <= CHAN_PAYLOAD_MAX;
    if (built && outbox_put(&l->out, to, type, id, dynbuf_span(&l->scratch), fd, fail) == 0)
        return;
    if (!built && fd >= 0)
        close(fd);
    /* Nothing may be done that its asker is not told of. */
    log_error("a reply does not fit; the turn is undone");
    store_fail(l->store, "a reply does not fit");
    if (fail != NULL)
        say(l, to, type, id, *fail, -1);
}

int ledger_get_body(struct msg_in *m, struct frame *f, uint64_t max, struct span *body, struct span *map)
{
    uint64_t size = msg_get_u64(m);
    *map = SPAN_NONE;
    *body = msg_get_span(m, BODY_INLINE_MAX);
    if (m->bad || size > max)
        return -1;
    if (body->n == size)
        return 0;
    if (body->n != 0 || f->nfds == 0 || memfd_map(f->fd[0], max, map) != 0 || map->n != size)
        return -1;
    *body = *map;
    return 0;
}

int ledger_put_body(struct dynbuf *b, struct span body)
{
    int fd = -1;
    /* The head beside it takes room as well. */
    bool inl = body.n <= BODY_INLINE_MAX && b->n + body.n + 64 <= CHAN_PAYLOAD_MAX;
    msg_put_u64(b, body.n);
    msg_put_span(b, inl ? body : SPAN_NONE);
    if (!inl && (fd = memfd_of(body)) < 0)
        return -2;
    return fd;
}

/* ---- frames ---- */

/* from, type, id, payload: as the backlog keeps a frame. */
static void note_frame(struct dynbuf *to, enum role_id from, const struct frame *f)
{
    msg_put_u8(to, (uint8_t)from);
    msg_put_u16(to, f->type);
    msg_put_u64(to, f->id);
    msg_put_span(to, f->payload);
}

static int handle(struct ledger *l, enum role_id from, struct frame *f)
{
    if (from == ROLE_JUDGE)
        return ledger_judge(l, f);
    if (from == ROLE_KEEPER && f->type == M_LEASE_MADE)
        return ledger_lease_made(l, f);
    if (from == ROLE_KEEPER && f->type == M_GATED)
        return ledger_gated(l, f);
    if (from == ROLE_KEEPER && f->type == M_TOLD)
        return ledger_told(l, f);
    if (from == ROLE_KEEPER && f->type != M_NOTE)
        return -1;
    if (from == ROLE_WARDEN && ledger_is_of_runs(f->type))
        return ledger_runs(l, f);
    if (from == ROLE_WARDEN && f->type != M_SANDBOX_ENDED)
        return -1;
    return ledger_desk(l, f, from);
}

static void take(struct ledger *l, enum role_id from, struct frame *f)
{
    l->judge_spoke |= from == ROLE_JUDGE;
    set_clock(l);
    if (ledger_must_keep(f->type))
        note_frame(&l->turn, from, f);
    l->patient = false;
    if (from == ROLE_JUDGE)
        note(f->type, f->id, "asked");
    if (handle(l, from, f) != 0)
        log_exchange(LOG_ERROR, from == ROLE_JUDGE ? f->id : 0, "message %u from the %s cannot be understood",
                     f->type, role_name(from));
    if (l->patient)
        touch_later(l);
    else
        ledger_touch(l);
}

/* One of the frames that waited, in a turn of its own. One that fails on a store that works is nothing the store will
 * ever take: it is dropped, loudly, and the others are not held up by it. -1: the store fails again. */
static int replay_one(struct ledger *l, enum role_id from, struct frame *f)
{
    set_clock(l);
    bool understood = handle(l, from, f) == 0;
    bool ok = store_commit(l->store) == 0;
    say_all(l, ok);
    if (ok && understood)
        return 0;
    if (!ok && store_probe(l->store) != 0)
        return -1;
    log_exchange(LOG_ERROR, f->id, "message %u cannot be written down (%s); it is dropped", f->type,
                 ok ? "malformed" : store_why(l->store));
    return 0;
}

/* Results that came while the store failed, in their order. */
static void replay(struct ledger *l)
{
    struct dynbuf old = l->backlog;
    dynbuf_init(&l->backlog, BACKLOG_BYTES + CHAN_PAYLOAD_MAX);
    struct msg_in m = msg_in(dynbuf_span(&old));
    while (m.rest.n && !m.bad && !l->lost) {
        struct span before = m.rest;
        enum role_id from = (enum role_id)msg_get_u8(&m);
        struct frame f = {.type = msg_get_u16(&m), .id = msg_get_u64(&m)};
        f.payload = msg_get_span(&m, CHAN_PAYLOAD_MAX);
        if (m.bad || replay_one(l, from, &f) == 0)
            continue;
        l->lost = true; /* this one and the rest wait on */
        if (dynbuf_add(&l->backlog, before) != 0)
            log_error("out of memory for results while the store fails");
    }
    dynbuf_free(&old);
}

static void come_back(struct ledger *l)
{
    keep_turn(l); /* what came since the last flush was not written either */
    dynbuf_reset(&l->turn);
    l->lost = false;
    replay(l);
    if (l->lost)
        return;
    log_warn("the store is back");
    if (l->owed_welcome)
        ledger_welcome_judge(l);
    else
        say_store(l);
}

static void every_second(void *arg)
{
    struct ledger *l = arg;
    set_clock(l);
    if (l->lost && store_probe(l->store) == 0)
        come_back(l);
    if (!l->lost) {
        if (store_tick(l->store) != 0)
            log_debug("the store fails: %s", store_why(l->store)); /* the flush says so once */
        ledger_gates_tick(l);
        ledger_tells_tick(l);
        review_next(l);
        ledger_later(l);
        flush(l);
    }
    if (l->judge_spoke)
        say_store(l);
    timer_set(l->second, 1000);
}

/* Not from the store: who could write there could write another one. */
static void say_audit_key(struct ledger *l)
{
    uint8_t key[SIGN_PUBLIC];
    if (l->peer[ROLE_DESK] == NULL || store_audit_key(l->store, key) != 0)
        return;
    struct dynbuf *b = ledger_scratch(l);
    msg_put_span(b, span_of(key, sizeof(key)));
    if (chan_send(l->peer[ROLE_DESK], M_AUDIT_KEY, 0, dynbuf_span(b)) != 0)
        log_debug("the desk has just gone; the next one is told the audit's key");
}

static void take_data_key(struct ledger *l, struct secret *key)
{
    store_data_key(l->store, key);
    say_audit_key(l);
    if (!l->lost && store_sign(l->store) == 0)
        ledger_touch(l);
    review_next(l);
}

static void on_frame(void *arg, struct chan *c, struct frame *f)
{
    struct ledger *l = arg;
    if (c == l->peer[ROLE_JUDGE] && f->type == M_HEARD) {
        heard(l, f);
        return;
    }
    if (c == l->peer[ROLE_KEEPER] &&
        (f->type == M_NOTE || f->type == M_LEASE_MADE || f->type == M_GATED || f->type == M_TOLD)) {
        take(l, ROLE_KEEPER, f);
        return;
    }
    if (c == l->peer[ROLE_KEEPER]) {
        struct msg_in m = msg_in(f->payload);
        struct span key = msg_get_span(&m, 32);
        struct secret *s = f->type == M_DATA_KEY && key.n == 32 && msg_end(&m) == 0 ? secret_new(key) : NULL;
        if (key.n > 0) /* the channel's buffer must not keep it; the bytes are ours for this callback */
            explicit_bzero((void *)(uintptr_t)key.p, key.n);
        if (s == NULL)
            log_error("the keeper's message %u cannot be understood", f->type);
        else
            take_data_key(l, s);
        return;
    }
    take(l, c == l->peer[ROLE_JUDGE] ? ROLE_JUDGE : c == l->peer[ROLE_WARDEN] ? ROLE_WARDEN : ROLE_DESK, f);
}

static void on_gone(void *arg, struct chan *c)
{
    struct ledger *l = arg;
    if (c == l->peer[ROLE_KEEPER]) {
        ledger_lease_keeper_gone(l);
        ledger_gates_keeper_gone(l);
        ledger_tells_keeper_gone(l);
        ledger_touch(l);
    }
    if (c == l->peer[ROLE_DESK])
        ledger_lease_desk_gone(l);
    if (c == l->peer[ROLE_JUDGE])
        heard_release(&l->heard, send_now, l);
    for (size_t i = 0; i < ROLE_COUNT; i++)
        if (l->peer[i] == c)
            l->peer[i] = NULL;
    chan_free(&c);
    if (l->ending && l->peer[ROLE_JUDGE] == NULL)
        loop_stop(l->loop);
}

bool ledger_end(struct ledger *l)
{
    l->ending = true;
    return l->peer[ROLE_JUDGE] == NULL;
}

void ledger_peer(struct ledger *l, unsigned role, int fd)
{
    static const struct chan_ops ops = {on_frame, on_gone};
    uint8_t key[SIGN_PUBLIC];
    if (role != ROLE_JUDGE && role != ROLE_DESK && role != ROLE_KEEPER && role != ROLE_WARDEN) {
        log_error("introduced to the %s, with whom there is nothing to talk about", role_name((enum role_id)role));
        close(fd);
        return;
    }
    if (role == ROLE_KEEPER) {
        ledger_lease_keeper_gone(l);
        ledger_gates_keeper_gone(l);
        ledger_tells_keeper_gone(l);
    }
    if (role == ROLE_DESK)
        ledger_lease_desk_gone(l);
    flush(l); /* what was said to the old one is said to the old one */
    if (role == ROLE_JUDGE || role == ROLE_DESK)
        heard_release(&l->heard, send_now, l);
    chan_free(&l->peer[role]);
    if ((l->peer[role] = chan_new(l->loop, fd, &ops, l)) == NULL)
        return;
    set_clock(l);
    if (role == ROLE_JUDGE) {
        review_stop(&l->review);
        ledger_welcome_judge(l);
        ledger_touch(l);
    }
    if (role == ROLE_DESK)
        say_audit_key(l);
    if (role == ROLE_KEEPER && signer_public(l->signer, key) == 0) {
        struct dynbuf *b = ledger_scratch(l);
        msg_put_span(b, span_of(key, sizeof(key)));
        if (chan_send(l->peer[role], M_LEDGER_KEY, 0, dynbuf_span(b)) != 0)
            log_debug("the keeper has just gone; the next one is told our key");
    }
}

void ledger_parent_frame(struct ledger *l, struct frame *f)
{
    take(l, ROLE_PARENT, f);
}

int ledger_start(struct ledger *l)
{
    outbox_init(&l->out);
    heard_init(&l->heard);
    dynbuf_init(&l->scratch, SCRATCH_MAX);
    dynbuf_init(&l->turn, OUTBOX_BYTES);
    dynbuf_init(&l->backlog, BACKLOG_BYTES + CHAN_PAYLOAD_MAX);
    if ((l->second = timer_new(l->loop, every_second, l)) == NULL ||
        (l->later = timer_new(l->loop, later_is_now, l)) == NULL)
        return -1;
    timer_set(l->second, 1000);
    return 0;
}

void ledger_stop(struct ledger *l)
{
    if (!l->lost && (store_sent_write(l->store) != 0 || store_sign(l->store) != 0))
        log_warn("the end of the audit is not signed");
    flush(l);
    heard_release(&l->heard, send_now, l);
    for (size_t i = 0; i < ROLE_COUNT; i++)
        chan_free(&l->peer[i]);
    timer_free(&l->second);
    timer_free(&l->later);
    outbox_free(&l->out);
    heard_free(&l->heard);
    review_stop(&l->review);
    dynbuf_free(&l->scratch);
    dynbuf_free(&l->turn);
    dynbuf_free(&l->tells.said);
    dynbuf_free(&l->backlog);
    store_close(&l->store);
    signer_free(&l->signer);
}
