#include "common/log.h"
#include "proxy/judge/frames/frames.h"
#include "proxy/judge/evaluation/rate_limit.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/leases/check.h"
#include "proxy/judge/leases/swap.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/replies/self_service.h"
#include "proxy/judge/stubs/stub.h"
#include "proxy/judge/tickets/client.h"
#include "proxy/judge/tickets/later.h"
#include "proxy/judge/tickets/review.h"

static int keep_state(struct exchange *x, const struct wire_ticket_state *t)
{
    x->ticket = *t;
    x->ticket.by = arena_copy(&x->arena, t->by);
    x->ticket.words = arena_copy(&x->arena, t->words);
    return x->ticket.words.n == t->words.n ? 0 : -1;
}

/* No ticket was opened: what the hold itself is bounded by is used up. */
static int ticket_over(struct judge *j, uint64_t xid, struct msg_in *m)
{
    struct exchange *x = exchange_find(j, xid);
    struct wire_over said;
    if (wire_get_over(m, &said) != 0 || msg_end(m) != 0)
        return -1;
    if (x == NULL || x->wait != X_TICKET)
        return 0;
    if (rate_limit_of_lease(x, &said)) {
        refuse_now(x, REFUSE_LEASE_USED_UP);
        return 0;
    }
    struct request r = exchange_asks(x);
    if (rate_limit_take(x, &said) != 0 || !evaluation_over(&x->now, x->sandbox, &r, x->exceeded) ||
        x->now.d.verdict != VERDICT_DENY)
        refuse_now(x, REFUSE_STORE); /* the ledger speaks of something else */
    else
        refuse_now(x, REFUSE_OVER_LIMIT);
    return 0;
}

/* No ticket is there yet. Decided again, because by now no more is left of it than its words. */
static int facts_wanted(struct judge *j, uint64_t xid)
{
    struct exchange *x = exchange_find(j, xid);
    if (x == NULL || x->wait != X_TICKET)
        return 0;
    if (x->claim != CLAIM_ASKED)
        return -1;
    exchange_claim(x, CLAIM_FACTS_WANTED);
    exchange_resume(j, xid);
    return 0;
}

static int ticket(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_ticket_state t;
    struct exchange *x = exchange_find(j, f->id);
    if (wire_get_ticket_state(&m, &t) != 0)
        return -1;
    if (t.state == TICKET_NONE && span_eq(t.words, SPAN("over-limit")))
        return ticket_over(j, f->id, &m);
    if (t.state == TICKET_NONE && span_eq(t.words, SPAN("facts-wanted")))
        return msg_end(&m) == 0 ? facts_wanted(j, f->id) : -1;
    if (!t.has_answer && msg_end(&m) != 0)
        return -1;
    if (x == NULL || x->wait != X_TICKET) { /* its client is gone; the ticket stays */
        ticket_client_missed(j, &t);
        return 0;
    }
    if (keep_state(x, &t) != 0) {
        refuse_now(x, REFUSE_INTERNAL);
        return 0;
    }
    if (t.has_answer) {
        x->answer = arena_copy(&x->arena, m.rest);
    }
    exchange_claim(x, CLAIM_TICKET);
    exchange_resume(j, x->xid);
    return 0;
}

/* The one that has waited longest of those parked for a ticket. */
static struct exchange *first_parked(struct judge *j, const struct id *id)
{
    struct exchange *first = NULL;
    for (size_t i = 0; i < XID_BUCKETS; i++)
        for (struct exchange *x = j->by_xid[i]; x != NULL; x = x->next_xid)
            if (x->wait == X_PARKED && id_eq(&x->ticket.ticket, id) &&
                (first == NULL || x->park_until < first->park_until ||
                 (x->park_until == first->park_until && x->xid < first->xid)))
                first = x;
    return first;
}

/* A decision wakes all who wait for it; of an approval exactly one makes use. */
static int ticket_changed(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_ticket_state t;
    struct exchange *x;
    if (wire_get_ticket_state(&m, &t) != 0 || msg_end(&m) != 0)
        return -1;
    if (t.state == TICKET_PENDING || t.state == TICKET_NONE)
        return 0;
    while ((x = first_parked(j, &t.ticket)) != NULL) {
        uint64_t xid = x->xid;
        if (keep_state(x, &t) != 0) {
            refuse_now(x, REFUSE_INTERNAL);
            continue;
        }
        exchange_resume(j, xid);
        x = exchange_find(j, xid);
        if (x != NULL && x->wait == X_CLAIM)
            t.state = TICKET_EXECUTING; /* for all others */
    }
    return 0;
}

/* What the ledger kept takes the place of what this client sent: same request, the bytes first held. */
static int take_claimed(struct exchange *x, struct msg_in *m, struct frame *f)
{
    struct span rest = arena_copy(&x->arena, m->rest);
    struct msg_in own = msg_in(rest);
    if (rest.n != m->rest.n)
        return -1;
    msg_get_digest(&own, &x->digest);
    struct span signature = msg_get_span(&own, SIGNATURE_BYTES + PROOF_MAX);
    if (wire_get_request(&own, &x->request) != 0)
        return -1;
    uint64_t size = msg_get_u64(&own);
    struct span bytes = msg_get_span(&own, BODY_INLINE_MAX);
    if (msg_end(&own) != 0 || signature.n < SIGNATURE_BYTES)
        return -1;
    x->signature = signature;
    int fd = frame_take_fd(f, 0);
    body_unref(&x->body); /* x->now was read from it and keeps it until it is judged again */
    if (fd >= 0) {
        x->body = body_of_memfd(fd, size, x->judge->config.body_max);
        return x->body ? 0 : -1;
    }
    if (bytes.n != size || (size > 0 && x->upload == UPLOAD_NONE))
        return -1;
    x->body = x->upload != UPLOAD_NONE ? body_inline(bytes) : NULL;
    return x->upload != UPLOAD_NONE && x->body == NULL ? -1 : 0;
}

static int claimed(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool ok = msg_get_bool(&m);
    uint8_t state = msg_get_u8(&m);
    struct exchange *x = exchange_find(j, f->id);
    if (m.bad || state > TICKET_UNKNOWN)
        return -1;
    if (x == NULL || x->wait != X_CLAIM)
        return 0;
    /* A grant that has ended since, or was used up by others: the ticket waits for a person. */
    bool waits = !ok && state == TICKET_PENDING && x->ticket.granted;
    exchange_claim(x, ok ? CLAIM_GRANTED : waits ? CLAIM_TICKET : CLAIM_LOST);
    x->ticket.state = state;
    x->ticket.granted = false;
    if (ok && take_claimed(x, &m, f) != 0) {
        log_exchange(LOG_ERROR, x->xid, "the ledger gave nothing usable for an approved ticket");
        refuse_now(x, REFUSE_NOT_SENT);
        return 0;
    }
    exchange_resume(j, x->xid);
    return 0;
}

static int intent_ok(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool ok = msg_get_bool(&m);
    struct exchange *x = exchange_find(j, f->id);
    if (msg_end(&m) != 0)
        return -1;
    if (x == NULL || x->wait != X_INTENT)
        return 0;
    exchange_intent(x, ok ? INTENT_WRITTEN : INTENT_REFUSED);
    exchange_resume(j, x->xid);
    return 0;
}

/* Nothing was written. With what is used up, the policy is asked again: it becomes a hold, or is denied. */
static int intent_over(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_over said;
    struct exchange *x = exchange_find(j, f->id);
    if (wire_get_over(&m, &said) != 0 || msg_end(&m) != 0)
        return -1;
    if (x == NULL || x->wait != X_INTENT)
        return 0;
    exchange_intent(x, INTENT_OVER_LIMIT);
    if (x->client != CLIENT_WAITS || said.n == 0)
        refuse_now(x, REFUSE_STORE);
    else if (rate_limit_of_lease(x, &said))
        refuse_now(x, REFUSE_LEASE_USED_UP);
    else if (rate_limit_take(x, &said) != 0)
        refuse_now(x, REFUSE_INTERNAL);
    else
        exchange_resume(j, x->xid);
    return 0;
}

/* Requests can be judged now, or refused with a reason: the parent says "is up" no earlier. */
static void welcomed(struct judge *j)
{
    if (j->welcomed)
        return;
    j->welcomed = true;
    (void)post_begin(j, ROLE_PARENT, 0, M_WELCOMED, 0);
    post_send(j, "the parent could not be told that the ledger was heard");
}

static int store(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool ok = msg_get_bool(&m);
    if (msg_end(&m) != 0)
        return -1;
    if (ok == j->store_lost)
        log_warn("the store is %s", ok ? "back" : "lost: requests are refused until it is back");
    j->store_lost = !ok;
    j->told |= ok;
    welcomed(j);
    if (ok)
        egress_ledger_back(j);
    return 0;
}

/* Some of it is still here, or waits for a connection. */
static bool is_on_its_way(const struct exchange *x)
{
    return x->wait == X_RESULT && x->websocket == WEBSOCKET_NONE &&
           (x->delivery < DELIVERY_SENT || x->upload == UPLOAD_STREAMS);
}

static void end_if_write(struct exchange *x, void *arg)
{
    if (is_on_its_way(x) && exchange_is_frozen(x) && x->cancel == CANCEL_NONE) {
        exchange_cancel(x, CANCEL_FROZEN); /* whose result is the last word on what has left */
        return;
    }
    if ((x->wait == X_PARKED || x->wait == X_TICKET || x->wait == X_BODY) && exchange_is_frozen(x))
        refuse_now(x, REFUSE_FROZEN);
    else
        websocket_again(x);
}

static int freeze(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool on = msg_get_bool(&m);
    if (msg_end(&m) != 0)
        return -1;
    if (on != j->frozen)
        log_warn("writes %s", on ? "are frozen: every one is refused until `countersign thaw`" : "may leave again");
    j->frozen = on;
    j->thawed = !on;
    if (on)
        exchange_each(j, end_if_write, NULL);
    return 0;
}

/* Requests under way know their sandbox as it was when they came. */
static void freeze_if_its(struct exchange *x, void *arg)
{
    const struct wire_sandbox *w = arg;
    if (x->sandbox == NULL || !span_eq(x->sandbox->name, w->name))
        return;
    x->sandbox->frozen = w->frozen.n > 0;
    if (x->sandbox->frozen)
        end_if_write(x, NULL);
}

static void end_if_gone(struct exchange *x, void *arg)
{
    if (!exchange_session_lives(x) && (x->wait == X_BODY || x->wait == X_TICKET || x->wait == X_PARKED))
        refuse_now(x, REFUSE_UNKNOWN_SANDBOX);
    else if (x->client == CLIENT_LATER && is_on_its_way(x) && x->cancel == CANCEL_NONE && !exchange_session_lives(x))
        exchange_cancel(x, CANCEL_CLIENT_GONE); /* no front goes with its sandbox */
    else
        websocket_again(x);
}

static int sandbox(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_sandbox w;
    if (wire_get_sandbox(&m, &w) != 0)
        return -1;
    bool gone = msg_get_bool(&m);
    if (msg_end(&m) != 0)
        return -1;
    if (!gone && sandbox_put(j, &w) != 0) { /* as it was before it may have had more: a token, writes */
        log_error("sandbox \"%.*s\" does not fit; it is not known", SPAN_FMT(w.name));
        sandbox_remove(j, w.name);
    }
    if (gone)
        sandbox_remove(j, w.name);
    else
        exchange_each(j, freeze_if_its, &w);
    exchange_each(j, end_if_gone, NULL);
    return 0;
}

/* All that came before is in force. */
static int heard(struct judge *j, const struct frame *f)
{
    post_begin(j, ROLE_LEDGER, 0, M_HEARD, f->id);
    post_send(j, "the ledger could not be told that its news were heard");
    return f->payload.n > 0 ? -1 : 0;
}

int frames_ledger(struct judge *j, struct frame *f)
{
    judge_heard_ledger(j);
    switch (f->type) {
    case M_TICKET: return ticket(j, f);
    case M_TICKET_CHANGED: return ticket_changed(j, f);
    case M_CLAIMED: return claimed(j, f);
    case M_INTENT_OK: return intent_ok(j, f);
    case M_INTENT_OVER: return intent_over(j, f);
    case M_SANDBOX: return sandbox(j, f);
    case M_TICKET_REVIEW: return review_ticket(j, f);
    case M_TICKET_LATER: return later_begin(j, f);
    case M_TICKET_IS: return self_ticket_told(j, f);
    case M_STORE: return store(j, f);
    case M_OUTCOME_OK: record_written(j, f->id); return 0;
    case M_FREEZE: return freeze(j, f);
    case M_LEASE_STUBBED: return stub_given(j, f->id, f->payload);
    case M_LEASE: return lease_told(j, f->payload);
    case M_EGRESS: return egress_told(j, f->payload);
    case M_EGRESS_KEPT: return egress_kept(j, f->id, f->payload);
    case M_HEARD: return heard(j, f);
    case M_LEASE_TAKE: return swap_taken(j, f->id, f->payload);
    default: return -1;
    }
}
