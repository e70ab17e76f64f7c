/* What the desk asks, and the parent. */
#include "common/log.h"
#include "proxy/ledger/ledger.h"
#include "proxy/ledger/store/idle/ops_idle.h"
#include "proxy/ledger/store/runs/runs.h"

enum { NAME_MAX_BYTES = 256, WORDS_MAX = 4096, NOTE_MAX = 64 * 1024 };

static int decide(struct ledger *l, struct frame *f)
{
    static const struct span fail = {(const uint8_t *)"\0\0", 2};
    struct msg_in m = msg_in(f->payload);
    struct id id;
    struct store_decision d = {.what = DECIDE_NONE};
    enum decided result = DECIDED_STORE;
    uint8_t state = TICKET_NONE;
    msg_get_id(&m, &id);
    uint8_t what = msg_get_u8(&m);
    d.what = what <= DECIDE_CANCEL ? (enum decide)what : DECIDE_NONE;
    d.by = msg_get_span(&m, NAME_MAX_BYTES);
    d.channel = msg_get_span(&m, NAME_MAX_BYTES);
    d.how = msg_get_span(&m, NAME_MAX_BYTES);
    d.reason = msg_get_span(&m, WORDS_MAX);
    msg_get_digest(&m, &d.shown);
    msg_get_digest(&m, &d.facts);
    d.passkey = msg_get_span(&m, WORDS_MAX);
    d.grant.uses = msg_get_u32(&m);
    d.grant.for_ms = msg_get_u64(&m);
    d.instead_of = msg_get_span(&m, NAME_MAX_BYTES);
    int bad = msg_end(&m);
    if (bad == 0 && !l->lost && store_decide(l->store, &id, &d, &result, &state) != 0)
        result = DECIDED_STORE;
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, (uint8_t)result);
    msg_put_u8(b, state);
    ledger_reply(l, TO_DESK, M_DECIDED, f->id, -1, &fail);
    return bad;
}

static int grant_revoke(struct ledger *l, struct frame *f)
{
    static const struct span fail = {(const uint8_t *)"\0\0\0\0\0", 5};
    struct msg_in m = msg_in(f->payload);
    const char *why = "the store cannot be written to";
    struct id id;
    msg_get_id(&m, &id);
    struct span by = msg_get_span(&m, NAME_MAX_BYTES), reason = msg_get_span(&m, WORDS_MAX);
    int bad = msg_end(&m);
    if (bad == 0 && !l->lost && store_grant_revoke(l->store, &id, by, reason, &why) != 0)
        why = "the store cannot be written to";
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, bad == 0 && why == NULL);
    msg_put_span(b, span_str(why));
    ledger_reply(l, TO_DESK, M_GRANT_REVOKE, f->id, -1, &fail);
    return bad;
}

static int looking(struct ledger *l, struct frame *f)
{
    static const struct span fail = {(const uint8_t *)"\0\0\0\0\0", 5};
    struct msg_in m = msg_in(f->payload);
    enum looked result = LOOKED_STORE;
    struct span who = SPAN_NONE;
    struct id id;
    msg_get_id(&m, &id);
    struct store_look look = {.on = msg_get_bool(&m)};
    look.over = msg_get_bool(&m);
    look.by = msg_get_span(&m, NAME_MAX_BYTES);
    look.channel = msg_get_span(&m, NAME_MAX_BYTES);
    int bad = msg_end(&m);
    if (bad == 0 && !l->lost && store_look(l->store, &id, &look, &result, &who) != 0)
        result = LOOKED_STORE;
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, (uint8_t)result);
    msg_put_span(b, result == LOOKED_STORE ? SPAN_NONE : who);
    ledger_reply(l, TO_DESK, M_LOOK, f->id, -1, &fail);
    return bad;
}

static int body_get(struct ledger *l, struct frame *f)
{
    static const struct span fail = {(const uint8_t *)"\0\0\0\0\0\0\0\0\0\0\0\0\0", 13};
    struct msg_in m = msg_in(f->payload);
    struct id id;
    struct dynbuf body;
    bool ok = false;
    msg_get_id(&m, &id);
    int bad = msg_end(&m);
    dynbuf_init(&body, STORE_BODY_MAX + 1);
    if (bad == 0 && !l->lost && store_body(l->store, &id, &ok, &body) != 0)
        ok = false;
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, ok);
    int fd = ledger_put_body(b, ok ? dynbuf_span(&body) : SPAN_NONE);
    if (fd == -2)
        b->failed = true;
    ledger_reply(l, TO_DESK, M_BODY_IS, f->id, fd < 0 ? -1 : fd, &fail);
    dynbuf_free(&body);
    return bad;
}

/* The parent's own sandboxes need no answer: it says them again when it starts. */
static void sandbox_done(struct ledger *l, uint64_t id, enum role_id to, const char *why)
{
    struct dynbuf fail;
    if (to != ROLE_DESK) {
        if (why != NULL)
            log_error("a sandbox of the configuration is refused: %s", why);
        return;
    }
    dynbuf_init(&fail, 256);
    msg_put_u8(&fail, false);
    msg_put_span(&fail, SPAN("the store cannot be written to"));
    struct span on_failure = dynbuf_span(&fail);
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, why == NULL);
    msg_put_span(b, span_str(why));
    ledger_reply(l, TO_DESK, M_SANDBOX_DONE, id, -1, &on_failure);
    dynbuf_free(&fail);
}

static int sandbox_put(struct ledger *l, struct frame *f, enum role_id from)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_sandbox b;
    const char *why = "the message cannot be understood";
    int bad = wire_get_sandbox(&m, &b) != 0 || msg_end(&m) != 0 ? -1 : 0;
    if (bad == 0 && (l->lost || store_sandbox_put(l->store, &b, &why) != 0))
        why = "the store cannot be written to";
    sandbox_done(l, f->id, from, why);
    return bad;
}

static int sandbox_remove(struct ledger *l, struct frame *f, enum role_id from)
{
    struct msg_in m = msg_in(f->payload);
    const char *why = "the message cannot be understood";
    struct span name = msg_get_span(&m, NAME_MAX_BYTES);
    bool end_session = msg_get_bool(&m);
    int bad = msg_end(&m);
    if (bad == 0 && (l->lost || store_sandbox_remove(l->store, name, end_session, &why) != 0))
        why = "the store cannot be written to";
    sandbox_done(l, f->id, from, why);
    return bad;
}

/* One of the warden's is over, or stands still. */
static int sandbox_stopped(struct ledger *l, struct frame *f, enum role_id from)
{
    bool ended = f->type == M_SANDBOX_ENDED;
    struct msg_in m = msg_in(f->payload);
    const char *why = NULL;
    struct span name = msg_get_span(&m, NAME_MAX_BYTES);
    uint64_t generation = msg_get_u64(&m);
    int bad = msg_end(&m);
    if (bad != 0)
        why = "the message cannot be understood";
    else if (l->lost || (ended ? store_sandbox_ended : store_sandbox_paused)(l->store, name, generation) != 0)
        why = "the store cannot be written to";
    if (from == ROLE_DESK)
        sandbox_done(l, f->id, from, why);
    else if (why != NULL)
        log_error("that sandbox %.*s has ended is not written down: %s", SPAN_FMT(name), why);
    return bad;
}

/* One of the warden's is idle, or is so no more. */
static int sandbox_idle(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    const char *why = "the message cannot be understood";
    struct store_idle i = {.name = msg_get_span(&m, NAME_MAX_BYTES)};
    i.generation = f->type != M_SANDBOX_IDLE_OVER ? msg_get_u64(&m) : 0;
    if (f->type == M_SANDBOX_IDLE) {
        i.checkpoint = msg_get_span(&m, NAME_MAX_BYTES);
        i.box = msg_get_span(&m, WORDS_MAX);
        i.cpu_percent = msg_get_u64(&m);
        i.strict = msg_get_bool(&m);
        i.left_ms = msg_get_u64(&m);
    }
    int bad = msg_end(&m), rc = bad;
    if (bad == 0 && !l->lost)
        rc = f->type == M_SANDBOX_IDLE        ? store_sandbox_idle(l->store, &i, &why)
             : f->type == M_SANDBOX_IDLE_OVER ? store_sandbox_idle_over(l->store, i.name, &why)
                                              : store_sandbox_awake(l->store, i.name, i.generation, &why);
    if (bad == 0 && (l->lost || rc != 0))
        why = "the store cannot be written to";
    sandbox_done(l, f->id, ROLE_DESK, why);
    return bad;
}

static int sandbox_wake(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_sandbox b;
    const char *why = "the message cannot be understood";
    int bad = wire_get_sandbox(&m, &b) != 0 || msg_end(&m) != 0 ? -1 : 0;
    if (bad == 0 && (l->lost || store_sandbox_wake(l->store, &b, &why) != 0))
        why = "the store cannot be written to";
    sandbox_done(l, f->id, ROLE_DESK, why);
    return bad;
}

static int sandbox_token(struct ledger *l, struct frame *f, enum role_id from)
{
    struct msg_in m = msg_in(f->payload);
    const char *why = "the message cannot be understood";
    struct digest hash;
    struct span name = msg_get_span(&m, NAME_MAX_BYTES);
    msg_get_digest(&m, &hash);
    bool alone = msg_get_bool(&m);
    int bad = msg_end(&m);
    if (bad == 0 && (l->lost || store_sandbox_token(l->store, name, &hash, alone, &why) != 0))
        why = "the store cannot be written to";
    sandbox_done(l, f->id, from, why);
    return bad;
}

static int token_put(struct ledger *l, struct frame *f, enum role_id from)
{
    struct msg_in m = msg_in(f->payload);
    const char *why = "the message cannot be understood";
    struct store_token t = {.kind = msg_get_span(&m, NAME_MAX_BYTES)};
    t.scope = msg_get_span(&m, NAME_MAX_BYTES);
    t.name = msg_get_span(&m, NAME_MAX_BYTES);
    t.tenant = msg_get_span(&m, NAME_MAX_BYTES);
    t.has_hash = msg_get_bool(&m);
    msg_get_digest(&m, &t.hash);
    t.note = msg_get_span(&m, NOTE_MAX);
    int bad = msg_end(&m);
    if (bad == 0 && (l->lost || store_token_put(l->store, &t, &why) != 0))
        why = "the store cannot be written to";
    sandbox_done(l, f->id, from, why);
    return bad;
}

static int operator_put(struct ledger *l, struct frame *f, enum role_id from)
{
    struct msg_in m = msg_in(f->payload);
    const char *why = "the message cannot be understood";
    uint8_t what = msg_get_u8(&m);
    struct store_operator o = {.what = what <= OPERATOR_REMOVE ? (enum operator_act)what : OPERATOR_NONE};
    o.by = msg_get_span(&m, NAME_MAX_BYTES);
    o.name = msg_get_span(&m, NAME_MAX_BYTES);
    o.uid = msg_get_span(&m, NAME_MAX_BYTES);
    o.groups = msg_get_span(&m, WORDS_MAX);
    o.password = msg_get_span(&m, WORDS_MAX);
    int bad = msg_end(&m);
    if (bad == 0 && (l->lost || store_operator_put(l->store, &o, &why) != 0))
        why = "the store cannot be written to";
    sandbox_done(l, f->id, from, why);
    return bad;
}

static int deputy_put(struct ledger *l, struct frame *f, enum role_id from)
{
    struct msg_in m = msg_in(f->payload);
    const char *why = "the message cannot be understood";
    struct store_deputy d = {.by = msg_get_span(&m, NAME_MAX_BYTES)};
    d.instead_of = msg_get_span(&m, NAME_MAX_BYTES);
    d.deputy = msg_get_span(&m, NAME_MAX_BYTES);
    d.for_ms = msg_get_u64(&m);
    d.machine = msg_get_bool(&m);
    int bad = msg_end(&m);
    if (bad == 0 && (l->lost || store_deputy_put(l->store, &d, &why) != 0))
        why = "the store cannot be written to";
    sandbox_done(l, f->id, from, why);
    return bad;
}

static int tell_test(struct ledger *l, struct frame *f, enum role_id from)
{
    struct msg_in m = msg_in(f->payload);
    const char *why = "the message cannot be understood";
    struct span name = msg_get_span(&m, NAME_MAX_BYTES), by = msg_get_span(&m, NAME_MAX_BYTES);
    int bad = msg_end(&m);
    if (bad == 0 && (l->lost || store_tell_test(l->store, name, by, &why) != 0))
        why = "the store cannot be written to";
    l->tells.due = true;
    sandbox_done(l, f->id, from, why);
    return bad;
}

static int key_remove(struct ledger *l, struct frame *f, enum role_id from)
{
    struct msg_in m = msg_in(f->payload);
    const char *why = "the message cannot be understood";
    struct span name = msg_get_span(&m, NAME_MAX_BYTES);
    int bad = msg_end(&m);
    if (bad == 0 && (l->lost || store_key_remove(l->store, name, &why) != 0))
        why = "the store cannot be written to";
    sandbox_done(l, f->id, from, why);
    return bad;
}

static int note(struct ledger *l, struct frame *f, enum role_id from)
{
    struct msg_in m = msg_in(f->payload);
    struct span kind = msg_get_span(&m, NAME_MAX_BYTES), json = msg_get_span(&m, NOTE_MAX);
    if (msg_end(&m) != 0)
        return -1;
    /* It comes beside what the warden asks for, which is not to wait for a transaction of its own. */
    l->patient = from == ROLE_DESK && span_starts(kind, SPAN("sandbox-"));
    if (!l->lost && store_note(l->store, span_str(role_name(from)), kind, json) != 0)
        log_debug("a note waits for the store");
    else if (!l->lost && from == ROLE_PARENT && span_eq(kind, SPAN("policy")) &&
             store_run_policy(l->store, json) != 0)
        log_debug("which policy is in force waits for the store");
    return 0;
}

/* --- what tasks are made again from (store/runs/) ------------------------------------ */

static int task_over(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct id run = {{0}};
    struct dynbuf no;
    struct span tenant = msg_get_span(&m, NAME_MAX_BYTES), sandbox = msg_get_span(&m, NAME_MAX_BYTES);
    uint64_t generation = msg_get_u64(&m);
    struct span json = msg_get_span(&m, NOTE_MAX);
    int bad = msg_end(&m);
    bool ok = bad == 0 && !l->lost && store_task(l->store, tenant, sandbox, generation, json, &run) == 0;
    dynbuf_init(&no, 64);
    msg_put_u8(&no, false);
    msg_put_id(&no, &(struct id){{0}});
    struct span fail = dynbuf_span(&no);
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, ok);
    msg_put_id(b, &run);
    ledger_reply(l, TO_DESK, M_TASK_WRITTEN, f->id, -1, &fail);
    dynbuf_free(&no);
    return bad;
}

static int blob_put(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span tenant = msg_get_span(&m, NAME_MAX_BYTES), bytes = msg_get_span(&m, CHAN_PAYLOAD_MAX);
    if (msg_end(&m) != 0)
        return -1;
    if (!l->lost && store_blob_put(l->store, tenant, bytes) != 0)
        log_debug("what a record names is not kept: the store fails");
    return 0;
}

static int blob_get(struct ledger *l, struct frame *f)
{
    static const struct span fail = {(const uint8_t *)"\0\0\0\0\0", 5};
    struct msg_in m = msg_in(f->payload);
    struct dynbuf bytes;
    struct digest sha256;
    struct span tenant = msg_get_span(&m, NAME_MAX_BYTES);
    msg_get_digest(&m, &sha256);
    int bad = msg_end(&m);
    dynbuf_init(&bytes, STORE_BLOB_MAX + 1);
    bool ok = bad == 0 && !l->lost && store_blob_get(l->store, tenant, &sha256, &bytes) == 1;
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, ok);
    msg_put_span(b, ok ? dynbuf_span(&bytes) : SPAN_NONE);
    ledger_reply(l, TO_DESK, M_BLOB_IS, f->id, -1, &fail);
    dynbuf_free(&bytes);
    return bad;
}

static int freeze(struct ledger *l, struct frame *f)
{
    static const struct span fail = {(const uint8_t *)"\0\0\0\0\0", 5};
    struct msg_in m = msg_in(f->payload);
    bool on = msg_get_bool(&m), ok = false;
    struct span by = msg_get_span(&m, NAME_MAX_BYTES), reason = msg_get_span(&m, WORDS_MAX);
    int bad = msg_end(&m);
    if (bad == 0 && !l->lost)
        ok = store_freeze(l->store, on, by, reason) == 0;
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, ok);
    msg_put_span(b, ok ? SPAN_NONE : SPAN("the store cannot be written to"));
    ledger_reply(l, TO_DESK, M_FREEZE, f->id, -1, &fail);
    return bad;
}

int ledger_desk(struct ledger *l, struct frame *f, enum role_id from)
{
    switch (f->type) {
    case M_SANDBOX_PUT: return sandbox_put(l, f, from);
    case M_NOTE: return note(l, f, from);
    case M_DECIDE: return from == ROLE_DESK ? decide(l, f) : -1;
    case M_LOOK: return from == ROLE_DESK ? looking(l, f) : -1;
    case M_GRANT_REVOKE: return from == ROLE_DESK ? grant_revoke(l, f) : -1;
    case M_BODY_GET: return from == ROLE_DESK ? body_get(l, f) : -1;
    case M_FREEZE: return from == ROLE_DESK ? freeze(l, f) : -1;
    case M_SANDBOX_TOKEN: return from == ROLE_DESK ? sandbox_token(l, f, from) : -1;
    case M_TOKEN_PUT: return from == ROLE_DESK ? token_put(l, f, from) : -1;
    case M_OPERATOR_PUT: return from == ROLE_DESK ? operator_put(l, f, from) : -1;
    case M_DEPUTY_PUT: return from == ROLE_DESK ? deputy_put(l, f, from) : -1;
    case M_TELL_TEST: return from == ROLE_DESK ? tell_test(l, f, from) : -1;
    case M_KEY_RM: return from == ROLE_DESK ? key_remove(l, f, from) : -1;
    case M_LEASE_ISSUE:
    case M_LEASE_NARROW:
    case M_LEASE_REVOKE: return from == ROLE_DESK ? ledger_lease(l, f) : -1;
    case M_SANDBOX_ENDED: return from == ROLE_DESK || from == ROLE_WARDEN ? sandbox_stopped(l, f, from) : -1;
    case M_SANDBOX_IDLE:
    case M_SANDBOX_AWAKE:
    case M_SANDBOX_IDLE_OVER: return from == ROLE_DESK ? sandbox_idle(l, f) : -1;
    case M_SANDBOX_WAKE: return from == ROLE_DESK ? sandbox_wake(l, f) : -1;
    case M_SANDBOX_PAUSED: return from == ROLE_DESK ? sandbox_stopped(l, f, from) : -1;
    case M_TASK_OVER: return from == ROLE_DESK ? task_over(l, f) : -1;
    case M_BLOB_PUT: return from == ROLE_DESK ? blob_put(l, f) : -1;
    case M_BLOB_GET: return from == ROLE_DESK ? blob_get(l, f) : -1;
    case M_SANDBOX_RM: return from == ROLE_DESK ? sandbox_remove(l, f, from) : -1;
    default: return -1;
    }
}
