/* Leases: asked for by the desk, and by the judge for what stubs answer; made by the keeper, written down here, told
 * to the judge. Their text passes through on its way to who asked: to a person once, to a sandbox's stubs whenever
 * they are asked again, for which the keeper derives it anew. */
#include "common/log.h"
#include "proxy/ledger/ledger.h"

enum { BY_MAX = 256, WHY_MAX = 512, TOLD_BYTES = 240 * 1024, LEASES_TAKEN = 4 /* at once */ };

_Static_assert(TOLD_BYTES + LEASE_WIRE_BYTES + 2 <= CHAN_PAYLOAD_MAX, "a message has room for the last one, too");
_Static_assert(LEASES_MAX * 1024 + LEASES_LAYERS_BYTES <= OUTBOX_BYTES - 4 * 1024 * 1024,
               "a turn has room for all leases, with names of usual lengths, and for the sandboxes");

/* id: the asker's own. Without *why the lease is given, with its texts. */
static void give(struct ledger *l, enum outbox_to to, uint64_t id, const char *why, const struct wire_lease *lease,
                 struct span text, struct span secret)
{
    static const struct id none;
    struct dynbuf fail;
    dynbuf_init(&fail, 256);
    msg_put_u8(&fail, false);
    msg_put_span(&fail, SPAN("the store cannot be written to"));
    msg_put_id(&fail, &none);
    msg_put_u64(&fail, 0);
    msg_put_span(&fail, SPAN_NONE);
    msg_put_span(&fail, SPAN_NONE);
    struct span on_failure = dynbuf_span(&fail);
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, why == NULL);
    msg_put_span(b, span_str(why));
    msg_put_id(b, lease && why == NULL ? &lease->id : &none);
    msg_put_u64(b, lease && why == NULL ? lease->expires_ms : 0);
    msg_put_span(b, why == NULL ? text : SPAN_NONE);
    msg_put_span(b, why == NULL ? secret : SPAN_NONE);
    ledger_reply(l, to, to == TO_DESK ? M_LEASE_GIVEN : M_LEASE_STUBBED, id, -1, &on_failure);
    if (b->n > 0)
        explicit_bzero(b->p, b->n);
    dynbuf_free(&fail);
}

static void forget(struct asked_lease *a)
{
    dynbuf_free(&a->said);
    *a = (struct asked_lease){.number = 0};
}

static enum outbox_to asker(const struct ledger *l, const struct asked_lease *a)
{
    return a < l->leases.asked + LEASES_ASKED ? TO_DESK : TO_JUDGE;
}

/* Ask the keeper for the text of one that is there, or may be issued. NULL: it was asked; else why not. */
static const char *ask_keeper(struct ledger *l, enum outbox_to to, uint64_t id, bool there, struct wire_lease *lease)
{
    struct asked_lease *a = NULL;
    struct chan *keeper = l->peer[ROLE_KEEPER];
    size_t end = to == TO_DESK ? LEASES_ASKED : LEASES_ASKED + STUBS_ASKED;
    for (size_t i = to == TO_DESK ? 0 : LEASES_ASKED; i < end && a == NULL; i++)
        if (l->leases.asked[i].number == 0)
            a = &l->leases.asked[i];
    if (keeper == NULL || a == NULL)
        return keeper ? "too many leases are asked for at once; try again" : "the keeper does not run at the moment";
    if (!there && id_new(&lease->id) != 0)
        return "the system has no randomness to give";
    *a = (struct asked_lease){.number = ++l->leases.number, .id = id, .there = there};
    dynbuf_init(&a->said, CHAN_PAYLOAD_MAX);
    wire_put_lease(&a->said, lease);
    struct dynbuf *b = dynbuf_ok(&a->said) ? chan_begin(keeper, M_LEASE_MAKE, a->number) : NULL;
    if (b != NULL) {
        msg_put_id(b, &lease->id);
        msg_put_u8(b, (uint8_t)lease->format);
        if (chan_commit(keeper) == 0)
            return NULL;
    }
    forget(a);
    return "the keeper takes no question now";
}

static void issue(struct ledger *l, uint64_t desk, struct wire_lease *lease)
{
    const char *why = "the store cannot be written to";
    if (!l->lost && store_lease_check(l->store, lease, &why) != 0)
        why = "the store cannot be written to";
    if (why == NULL)
        why = ask_keeper(l, TO_DESK, desk, false, lease);
    if (why != NULL)
        give(l, TO_DESK, desk, why, NULL, SPAN_NONE, SPAN_NONE);
}

int ledger_lease_stub(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_lease lease = {.sandbox = msg_get_span(&m, BY_MAX)};
    const char *why = "the store cannot be written to";
    bool there = false;
    lease.credential = msg_get_span(&m, BY_MAX);
    msg_get_digest(&m, &lease.meaning);
    lease.format = (enum lease_format)msg_get_u8(&m);
    int bad = msg_end(&m) != 0 || lease.format >= LEASE_FORMAT_COUNT ? -1 : 0;
    if (bad != 0)
        why = "the message cannot be understood";
    else if (!l->lost && store_lease_stub(l->store, &lease, &there, &why) != 0)
        why = "the store cannot be written to";
    if (why == NULL)
        why = ask_keeper(l, TO_JUDGE, f->id, there, &lease);
    if (why != NULL)
        give(l, TO_JUDGE, f->id, why, NULL, SPAN_NONE, SPAN_NONE);
    return bad;
}

static int asked_to_issue(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_lease lease;
    if (wire_get_lease(&m, &lease) != 0 || msg_end(&m) != 0 || !id_is_none(&lease.parent)) {
        give(l, TO_DESK, f->id, "the message cannot be understood", NULL, SPAN_NONE, SPAN_NONE);
        return -1;
    }
    issue(l, f->id, &lease);
    return 0;
}

static int asked_to_narrow(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_lease lease = {.state = LEASE_LIVE}, now;
    const char *why = "the store cannot be written to";
    msg_get_id(&m, &lease.parent);
    bool child = msg_get_bool(&m);
    lease.expires_ms = msg_get_u64(&m);
    lease.by = msg_get_span(&m, BY_MAX);
    if (wire_get_layers(&m, lease.layer, &lease.nlayers) != 0 || msg_end(&m) != 0 || lease.nlayers != 1 ||
        id_is_none(&lease.parent)) {
        give(l, TO_DESK, f->id, "the message cannot be understood", NULL, SPAN_NONE, SPAN_NONE);
        return -1;
    }
    if (child) {
        issue(l, f->id, &lease);
        return 0;
    }
    if (!l->lost &&
        store_lease_narrow(l->store, &lease.parent, &lease.layer[0], lease.expires_ms, lease.by, &now, &why) != 0)
        why = "the store cannot be written to";
    give(l, TO_DESK, f->id, why, &now, SPAN_NONE, SPAN_NONE);
    return 0;
}

static int asked_to_revoke(struct ledger *l, struct frame *f)
{
    static const struct span fail = {(const uint8_t *)"\0\0\0\0\0", 5};
    struct msg_in m = msg_in(f->payload);
    const char *why = "the store cannot be written to";
    struct id id;
    msg_get_id(&m, &id);
    struct span by = msg_get_span(&m, BY_MAX), reason = msg_get_span(&m, WHY_MAX);
    int bad = msg_end(&m);
    if (bad != 0)
        why = "the message cannot be understood";
    else if (!l->lost && store_lease_revoke(l->store, &id, by, reason, &why) != 0)
        why = "the store cannot be written to";
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, why == NULL);
    msg_put_span(b, span_str(why));
    ledger_reply(l, TO_DESK, M_LEASE_REVOKE, f->id, -1, &fail);
    return bad;
}

int ledger_lease(struct ledger *l, struct frame *f)
{
    switch (f->type) {
    case M_LEASE_ISSUE: return asked_to_issue(l, f);
    case M_LEASE_NARROW: return asked_to_narrow(l, f);
    case M_LEASE_REVOKE: return asked_to_revoke(l, f);
    default: return -1;
    }
}

int ledger_lease_leak(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct lease_leak leak = {.xid = f->id};
    msg_get_id(&m, &leak.lease);
    leak.sandbox = msg_get_span(&m, BY_MAX);
    leak.session = msg_get_span(&m, BY_MAX);
    leak.host = msg_get_span(&m, HTTP_HOST_MAX);
    leak.port = msg_get_u16(&m);
    leak.what = msg_get_span(&m, WHY_MAX);
    leak.freeze = msg_get_bool(&m);
    if (msg_end(&m) != 0)
        return -1;
    if (!l->lost && store_lease_leaked(l->store, &leak) != 0)
        log_exchange(LOG_DEBUG, f->id, "a leaked lease waits for the store");
    return 0;
}

/* One more, of the sandbox as the judge knows it. */
static const char *take_one(struct ledger *l, struct wire_lease *lease)
{
    const char *why = "the store cannot be written to";
    struct span session = lease->session;
    uint64_t generation = lease->generation;
    if (l->lost || store_lease_check(l->store, lease, &why) != 0)
        return "the store cannot be written to";
    if (why == NULL && (!span_eq(session, lease->session) || generation != lease->generation))
        why = "its sandbox has begun anew";
    if (why == NULL && store_lease_put(l->store, lease, &why) != 0)
        why = "the store cannot be written to";
    return why;
}

/* Of the tokens of one answer: all, or the answer does not go on. */
int ledger_lease_take(struct ledger *l, struct frame *f)
{
    static const struct span fail = {(const uint8_t *)"\0\0\0\0\0", 5};
    struct msg_in m = msg_in(f->payload);
    struct wire_lease lease;
    struct id done[LEASES_TAKEN];
    uint8_t n = msg_get_u8(&m), taken = 0;
    const char *why = n == 0 || n > LEASES_TAKEN ? "the message cannot be understood" : NULL, *unused;
    for (uint8_t i = 0; i < n && why == NULL; i++) {
        if (wire_get_lease(&m, &lease) != 0)
            why = "the message cannot be understood";
        else if ((why = take_one(l, &lease)) == NULL)
            done[taken++] = lease.id;
    }
    for (uint8_t i = 0; i < taken && why != NULL; i++)
        if (store_lease_revoke(l->store, &done[i], SPAN(LEASE_BY_ANSWER), SPAN("its answer did not go on"),
                               &unused) != 0)
            break; /* the turn fails */
    struct dynbuf *b = ledger_scratch(l);
    msg_put_u8(b, why == NULL);
    msg_put_span(b, span_str(why));
    ledger_reply(l, TO_JUDGE, M_LEASE_TAKE, f->id, -1, &fail);
    return m.bad ? -1 : 0;
}

static void made(struct ledger *l, struct asked_lease *a, struct span tag, struct span text, struct span secret)
{
    struct msg_in m = msg_in(dynbuf_span(&a->said));
    const char *why = "the keeper could not make it";
    struct wire_lease lease;
    struct digest was;
    if (wire_get_lease(&m, &lease) != 0 || msg_end(&m) != 0)
        text = SPAN_NONE;
    was = lease.text;
    digest_of(text, &lease.text);
    if (text.n > 0 && a->there) {
        why = memcmp(&was, &lease.text, sizeof(was)) == 0 ? NULL : "the keeper makes another lease of it now";
    } else if (text.n > 0) {
        lease.tag = tag;
        why = "the store cannot be written to";
        if (!l->lost && store_lease_put(l->store, &lease, &why) != 0)
            why = "the store cannot be written to";
    }
    give(l, asker(l, a), a->id, why, &lease, text, secret);
}

int ledger_lease_made(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span tag = msg_get_span(&m, LEASE_TAG), text = msg_get_span(&m, LEASE_TEXT_MAX),
                secret = msg_get_span(&m, LEASE_TEXT_MAX);
    int bad = msg_end(&m);
    if (tag.n != LEASE_TAG)
        text = SPAN_NONE;
    for (size_t i = 0; i < LEASES_ASKED + STUBS_ASKED; i++) {
        struct asked_lease *a = &l->leases.asked[i];
        if (a->number == 0 || a->number != f->id)
            continue;
        made(l, a, tag, bad == 0 ? text : SPAN_NONE, secret);
        forget(a);
    }
    return bad;
}

void ledger_lease_keeper_gone(struct ledger *l)
{
    for (size_t i = 0; i < LEASES_ASKED + STUBS_ASKED; i++) {
        struct asked_lease *a = &l->leases.asked[i];
        if (a->number == 0)
            continue;
        give(l, asker(l, a), a->id, "the keeper ended before it had made it; ask again", NULL, SPAN_NONE, SPAN_NONE);
        forget(a);
    }
}

/* The next desk counts its questions from one again: an answer to the last one's would be taken for its own. */
void ledger_lease_desk_gone(struct ledger *l)
{
    for (size_t i = 0; i < LEASES_ASKED; i++)
        if (l->leases.asked[i].number != 0)
            forget(&l->leases.asked[i]);
}

/* ---- to the judge ---- */

struct telling {
    struct ledger *l;
    struct dynbuf v;
    uint16_t n;
};

static void tell(struct telling *t)
{
    struct dynbuf *b = ledger_scratch(t->l);
    msg_put_u16(b, t->n);
    dynbuf_add(b, dynbuf_span(&t->v));
    if (t->n > 0)
        ledger_reply(t->l, TO_JUDGE, M_LEASE, 0, -1, NULL);
    dynbuf_reset(&t->v);
    t->n = 0;
}

static void tell_one(void *arg, const struct wire_lease *lease)
{
    struct telling *t = arg;
    wire_put_lease(&t->v, lease);
    t->n++;
    if (t->v.n >= TOLD_BYTES || t->n == UINT16_MAX)
        tell(t);
}

void ledger_lease_changed(void *arg, uint64_t sequence, const struct wire_lease *lease)
{
    char text[ID_TEXT + 1];
    struct telling t = {.l = arg};
    dynbuf_init(&t.v, CHAN_PAYLOAD_MAX);
    tell_one(&t, lease);
    tell(&t);
    dynbuf_free(&t.v);
    id_text(&lease->id, text);
    struct dynbuf *b = ledger_scratch(t.l);
    msg_put_span(b, SPAN("lease"));
    msg_put_span(b, span_of(text, ID_TEXT));
    ledger_reply(t.l, TO_DESK, M_EVENT, sequence, -1, NULL);
}

int ledger_lease_welcome(struct ledger *l)
{
    struct telling t = {.l = l};
    dynbuf_init(&t.v, CHAN_PAYLOAD_MAX);
    int bad = store_leases(l->store, tell_one, &t);
    bool whole = dynbuf_ok(&t.v);
    tell(&t);
    dynbuf_free(&t.v);
    return bad != 0 || !whole ? -1 : 0;
}
