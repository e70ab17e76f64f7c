/* What the judge asks. */
#include "common/log.h"
#include "common/memfd.h"
#include "proxy/ledger/ledger.h"
#include "proxy/ledger/store/egress/ops_egress.h"

enum { WHY_MAX = 4096, NAME_MAX_BYTES = 256, PROOF_MAX = 64 * 1024 };

static const struct span fail_no = {(const uint8_t *)"\0", 1};      /* false */
static const struct span fail_claim = {(const uint8_t *)"\0\0", 2}; /* false, no state */

static void put_state(struct ledger *l, uint64_t id, const struct wire_ticket_state *st, struct store_bytes *kept,
                      const struct wire_over *over)
{
    struct dynbuf fail;
    struct wire_ticket_state refused = {.state = TICKET_NONE, .words = SPAN("store")};
    int fd = -1;
    dynbuf_init(&fail, 256);
    wire_put_ticket_state(&fail, &refused);
    struct span on_failure = dynbuf_span(&fail);
    struct dynbuf *b = ledger_scratch(l);
    wire_put_ticket_state(b, st);
    if (st->has_answer) {
        dynbuf_add(b, kept->head);
        fd = ledger_put_body(b, dynbuf_span(&kept->body));
        if (fd == -2)
            b->failed = true;
    }
    if (over->n > 0)
        wire_put_over(b, over);
    ledger_reply(l, TO_JUDGE, M_TICKET, id, fd < 0 ? -1 : fd, &on_failure);
    dynbuf_free(&fail);
}

static int ticket_open(struct ledger *l, struct frame *f)
{
    static struct wire_ticket t; /* too large for a stack */
    static struct wire_limits limits;
    struct wire_over over = {.n = 0};
    struct msg_in m = msg_in(f->payload);
    struct wire_ticket_state st = {.state = TICKET_NONE};
    struct store_bytes kept = {.head = SPAN_NONE};
    struct span body, map = SPAN_NONE;
    dynbuf_init(&kept.body, ANSWER_KEPT_MAX + 1);
    if (wire_get_ticket(&m, &t) != 0 || wire_get_limits(&m, &limits) != 0 ||
        ledger_get_body(&m, f, STORE_BODY_MAX, &body, &map) != 0 || msg_end(&m) != 0) {
        st.words = SPAN("store");
        put_state(l, f->id, &st, &kept, &over);
        memfd_unmap(&map);
        return -1;
    }
    t.exchange = f->id;
    if (l->lost || store_ticket_open(l->store, &t, &limits, body, &st, &kept, &over) != 0) {
        st = (struct wire_ticket_state){.state = TICKET_NONE, .words = SPAN("store")};
        over.n = 0;
    }
    l->gates.due |= t.gates.n > 0;
    put_state(l, f->id, &st, &kept, &over);
    memfd_unmap(&map);
    dynbuf_free(&kept.body);
    return 0;
}

static void put_claimed(struct ledger *l, const struct store_claim *c, const struct digest *d,
                        const struct store_bytes *request, struct span proof)
{
    struct dynbuf word;
    uint8_t signature[SIGN_BYTES];
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, true);
    msg_put_u8(b, TICKET_EXECUTING);
    msg_put_digest(b, d);
    dynbuf_init(&word, SIGN_BYTES + PROOF_MAX);
    if (signer_release(l->signer, c->xid, c->credential, c->host, c->port, d, proof, signature) != 0 ||
        dynbuf_add(&word, span_of(signature, sizeof(signature))) != 0 || dynbuf_add(&word, proof) != 0)
        b->failed = true;
    msg_put_span(b, dynbuf_span(&word));
    dynbuf_free(&word);
    dynbuf_add(b, request->head);
    int fd = ledger_put_body(b, dynbuf_span(&request->body));
    if (fd == -2)
        b->failed = true;
    ledger_reply(l, TO_JUDGE, M_CLAIMED, c->xid, fd < 0 ? -1 : fd, &fail_claim);
}

static int claim(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct store_claim c = {.xid = f->id};
    struct store_bytes request = {.head = SPAN_NONE};
    struct digest d;
    struct dynbuf proof;
    bool ok = false;
    uint8_t state = TICKET_NONE;
    msg_get_id(&m, &c.ticket);
    c.credential = msg_get_span(&m, NAME_MAX_BYTES);
    c.host = msg_get_span(&m, HTTP_HOST_MAX);
    c.port = msg_get_u16(&m);
    msg_get_digest(&m, &c.policy);
    c.rule = msg_get_span(&m, NAME_MAX_BYTES);
    msg_get_digest(&m, &c.terms);
    int bad = wire_get_step(&m, &c.by);
    msg_get_id(&m, &c.lease);
    bad |= msg_end(&m);
    dynbuf_init(&request.body, STORE_BODY_MAX + 1);
    dynbuf_init(&proof, PROOF_MAX);
    c.proof = &proof;
    if (bad == 0 && !l->lost && store_claim(l->store, &c, &ok, &state, &d, &request) != 0)
        ok = false;
    if (ok) {
        put_claimed(l, &c, &d, &request, dynbuf_span(&proof));
    } else {
        struct dynbuf *b = ledger_scratch(l);
        msg_put_u8(b, false);
        msg_put_u8(b, state);
        ledger_reply(l, TO_JUDGE, M_CLAIMED, f->id, -1, &fail_claim);
    }
    dynbuf_free(&proof);
    dynbuf_free(&request.body);
    return bad;
}

/* If the turn fails, what they were past was not kept either: nothing is known of them. */
static void put_over(struct ledger *l, uint64_t xid, const struct wire_over *over)
{
    static const struct span unknown = {(const uint8_t *)"\0\0\0\0\0\0\0\0", 9};
    wire_put_over(ledger_scratch(l), over);
    ledger_reply(l, TO_JUDGE, M_INTENT_OVER, xid, -1, &unknown);
}

static int intent(struct ledger *l, struct frame *f)
{
    static struct wire_limits limits;
    struct msg_in m = msg_in(f->payload);
    struct wire_over over = {.n = 0};
    struct wire_record r;
    struct digest join = {{0}};
    bool ok = false;
    int bad = wire_get_record(&m, &r);
    msg_get_digest(&m, &join);
    bad = bad != 0 || wire_get_limits(&m, &limits) != 0 || msg_end(&m) != 0 ? -1 : 0;
    if (bad == 0 && !l->lost && store_intent(l->store, f->id, &r, &join, &limits, &ok, &over) != 0) {
        ok = false;
        over.n = 0;
    }
    if (over.n > 0)
        put_over(l, f->id, &over);
    else {
        msg_put_u8(ledger_scratch(l), ok);
        ledger_reply(l, TO_JUDGE, M_INTENT_OK, f->id, -1, &fail_no);
    }
    return bad;
}

static void get_answer(struct msg_in *m, struct store_outcome *o)
{
    struct wire_answer a;
    struct span before = m->rest;
    if (wire_get_answer(m, &a) != 0)
        return;
    o->answer_head = span_first(before, before.n - m->rest.n);
    uint64_t size = msg_get_u64(m);
    o->answer_body = msg_get_span(m, ANSWER_KEPT_MAX);
    if (m->bad || size != o->answer_body.n)
        m->bad = true;
}

static int outcome(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct store_outcome o = {.xid = f->id};
    if (wire_get_record(&m, &o.record) != 0)
        return -1;
    msg_get_id(&m, &o.ticket);
    uint8_t how = msg_get_u8(&m);
    o.status = msg_get_u16(&m);
    o.out = msg_get_u64(&m);
    o.in = msg_get_u64(&m);
    o.delivered = msg_get_bool(&m);
    o.kept = msg_get_bool(&m);
    bool told = msg_get_bool(&m);
    o.untold = msg_get_bool(&m);
    o.outcome = how <= OUTCOME_ANSWERED ? (enum outcome)how : OUTCOME_UNKNOWN;
    if (o.kept)
        get_answer(&m, &o);
    int bad = msg_end(&m);
    if (bad == 0 && !l->lost && store_outcome(l->store, &o) != 0)
        log_exchange(LOG_DEBUG, f->id, "an outcome waits for the store");
    else if (bad == 0 && !l->lost && told) {
        (void)ledger_scratch(l);
        ledger_reply(l, TO_JUDGE, M_OUTCOME_OK, f->id, -1, NULL); /* with the turn, or not at all */
    }
    l->refused |= o.outcome == OUTCOME_NOT_SENT;
    l->patient = id_is_none(&o.ticket) && !o.kept; /* else somebody looks at the ticket, or comes for the answer */
    return bad;
}

static int audit(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_record r;
    if (wire_get_record(&m, &r) != 0 || msg_end(&m) != 0)
        return -1;
    if (!l->lost && store_audit(l->store, f->id, &r) != 0)
        log_exchange(LOG_DEBUG, f->id, "a record waits for the store");
    l->refused = true;
    l->patient = true;
    return 0;
}

/* The end of a WebSocket: its upgrade has its result already. */
static int websocket(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct store_websocket w = {.xid = f->id};
    if (wire_get_record(&m, &w.record) != 0)
        return -1;
    w.messages_out = msg_get_u64(&m);
    w.messages_in = msg_get_u64(&m);
    w.out = msg_get_u64(&m);
    w.in = msg_get_u64(&m);
    w.closed = msg_get_u16(&m);
    if (msg_end(&m) != 0)
        return -1;
    if (!l->lost && store_websocket(l->store, &w) != 0)
        log_exchange(LOG_DEBUG, f->id, "a record waits for the store");
    l->patient = true;
    return 0;
}

static int void_ticket(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct id id;
    msg_get_id(&m, &id);
    struct span why = msg_get_span(&m, WHY_MAX);
    if (msg_end(&m) != 0)
        return -1;
    if (!l->lost && store_void(l->store, &id, why) != 0)
        log_debug("a ticket's end waits for the store");
    return 0;
}

static int client(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct id id;
    msg_get_id(&m, &id);
    bool waits = msg_get_bool(&m);
    uint64_t ms = msg_get_u64(&m);
    if (msg_end(&m) != 0)
        return -1;
    if (!l->lost && store_asker(l->store, &id, waits, ms) != 0)
        log_debug("who waits for a ticket is not written down");
    l->patient = true;
    return 0;
}

static int sent(struct ledger *l, struct frame *f)
{
    if (store_sent(l->store, f->id) != 0)
        log_exchange(LOG_DEBUG, f->id, "a mark is not written down");
    l->patient = true;
    return f->payload.n == 0 ? 0 : -1;
}

static int egress(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_egress e;
    if (wire_get_egress(&m, &e) != 0 || msg_end(&m) != 0)
        return -1;
    bool ok = !l->lost && store_egress_put(l->store, &e) == 0;
    msg_put_u8(ledger_scratch(l), ok);
    ledger_reply(l, TO_JUDGE, M_EGRESS_KEPT, f->id, -1, &fail_no);
    return 0;
}

int ledger_judge(struct ledger *l, struct frame *f)
{
    switch (f->type) {
    case M_TICKET_OPEN: return ticket_open(l, f);
    case M_CLAIM: return claim(l, f);
    case M_INTENT: return intent(l, f);
    case M_SENT_MARK: return sent(l, f);
    case M_OUTCOME: return outcome(l, f);
    case M_AUDIT: return audit(l, f);
    case M_WEBSOCKET: return websocket(l, f);
    case M_LEASE_STUB: return ledger_lease_stub(l, f);
    case M_LEASE_TAKE: return ledger_lease_take(l, f);
    case M_LEASE_LEAK: return ledger_lease_leak(l, f);
    case M_TICKET_VOID: return void_ticket(l, f);
    case M_TICKET_CLIENT: return client(l, f);
    case M_EGRESS_PUT: return egress(l, f);
    case M_REVIEW: return review_begin(l, f);
    case M_TICKET_ASK: return ledger_asked(l, f);
    case M_REVIEWED: return review_answered(l, f);
    default: return -1;
    }
}

bool ledger_must_keep(uint16_t type)
{
    return type == M_OUTCOME || type == M_AUDIT || type == M_WEBSOCKET || type == M_TICKET_VOID || type == M_NOTE ||
           type == M_LEASE_LEAK || type == M_SANDBOX_ENDED || type == M_RUN_END || type == M_RUN_LIFE ||
           type == M_TASK_OVER || type == M_GATED || type == M_TOLD;
}

static void put_sandbox(struct ledger *l, const struct wire_sandbox *b, bool gone)
{
    struct dynbuf *out = ledger_scratch(l);
    wire_put_sandbox(out, b);
    msg_put_u8(out, gone);
    ledger_reply(l, TO_JUDGE, M_SANDBOX, 0, -1, NULL);
}

static void welcome_one(void *arg, const struct wire_sandbox *b)
{
    put_sandbox(arg, b, false);
}

static void welcome_egress(void *arg, const struct wire_egress *e)
{
    wire_put_egress(ledger_scratch(arg), e);
    ledger_reply(arg, TO_JUDGE, M_EGRESS, 0, -1, NULL);
}

/* A judge takes itself for frozen until it is told otherwise. */
static void put_frozen(struct ledger *l, bool frozen)
{
    msg_put_u8(ledger_scratch(l), frozen);
    ledger_reply(l, TO_JUDGE, M_FREEZE, 0, -1, NULL);
}

void ledger_welcome_judge(struct ledger *l)
{
    bool frozen = true;
    l->owed_welcome = true;
    if (!l->lost && store_frozen(l->store, &frozen) != 0)
        log_error("whether writes are frozen cannot be read; they are refused");
    put_frozen(l, frozen);
    if (l->lost || store_judge_came(l->store) != 0 || store_egress(l->store, welcome_egress, l) != 0 ||
        store_sandboxes(l->store, welcome_one, l) != 0 || ledger_lease_welcome(l) != 0)
        log_error("the judge cannot be told who the sandboxes are, or which leases there are");
    uint8_t ok = !l->lost;
    dynbuf_add(ledger_scratch(l), span_of(&ok, 1));
    ledger_reply(l, TO_JUDGE, M_STORE, 0, -1, &fail_no);
}

void ledger_tell(void *arg, enum store_change what, uint64_t sequence, const struct wire_ticket_state *ticket,
                 const struct wire_sandbox *sandbox)
{
    struct ledger *l = arg;
    char text[ID_TEXT + 1];
    struct span subject = sandbox ? sandbox->name : SPAN_NONE;
    if (ticket) {
        id_text(&ticket->ticket, text);
        subject = span_of(text, ID_TEXT);
    }
    if (what == CHANGE_TICKET) {
        l->later_due |= ticket->state == TICKET_APPROVED;
        l->tells.due = true;
        wire_put_ticket_state(ledger_scratch(l), ticket);
        ledger_reply(l, TO_JUDGE, M_TICKET_CHANGED, 0, -1, NULL);
    } else if (what == CHANGE_ASKER) { /* which the judge said itself */
    } else if (what == CHANGE_FROZEN || what == CHANGE_THAWED) {
        l->tells.due = true;
        put_frozen(l, what == CHANGE_FROZEN);
    } else {
        put_sandbox(l, sandbox, what == CHANGE_SANDBOX_GONE);
    }
    struct dynbuf *b = ledger_scratch(l);
    msg_put_span(b, what == CHANGE_TICKET  ? SPAN("ticket")
                    : what == CHANGE_ASKER ? SPAN("asker")
                    : sandbox              ? SPAN("sandbox")
                                           : SPAN("freeze"));
    msg_put_span(b, subject);
    ledger_reply(l, TO_DESK, M_EVENT, sequence, -1, NULL);
}
