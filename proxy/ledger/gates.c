/* Gates: asked by way of the keeper, a few at once, each once. Nobody waits for them but the ticket. */
#include "common/log.h"
#include "common/msg.h"
#include "proxy/ledger/ledger.h"
#include "proxy/ledger/store/gates/asked.h"

enum {
    GATE_NAME_MAX = 256,
    GATE_WORDS_MOST = 512,
    GATE_PATIENCE_MS = 60 * 1000,
    GATE_LATER_MS = 64 * 1000, /* longer than the store puts one off */
};

_Static_assert(GATE_NAME_MAX <= sizeof(((struct asked_gate *)0)->name), "a gate's name has room");

static void failed(struct ledger *l, struct asked_gate *a, const char *why)
{
    struct id ticket = a->ticket;
    struct span name = span_of(a->name, a->nname);
    if (!l->lost && store_gate_answered(l->store, &ticket, name, GATE_FAILED, span_str(why)) != 0)
        log_debug("that a gate did not answer waits for the store");
    a->number = 0;
}

static struct asked_gate *free_one(struct ledger *l)
{
    for (size_t i = 0; i < GATES_ASKED; i++)
        if (l->gates.asked[i].number == 0)
            return &l->gates.asked[i];
    return NULL;
}

/* Once it is written down that it was asked, it is: a turn that fails asks nobody. */
static int ask_next(struct ledger *l, struct asked_gate *a)
{
    struct dynbuf input, body;
    struct store_gate g = {.each = GATES_ASKED_EACH, .input = &input, .body = &body};
    dynbuf_init(&input, GATE_INPUT_MAX);
    dynbuf_init(&body, GATE_BODY_TEXT_MAX);
    int got = store_gate_next(l->store, &g);
    if (got == 1 && (id_parse(g.ticket, &a->ticket) != 0 || g.name.n > GATE_NAME_MAX))
        got = -1;
    if (got == 1) {
        a->number = ++l->gates.number;
        a->since = loop_now(l->loop);
        a->asking = true;
        a->answered = false;
        memcpy(a->name, g.name.p, g.name.n);
        a->nname = g.name.n;
        if (!dynbuf_ok(&input) || !dynbuf_ok(&body)) {
            failed(l, a, "the request is too large to be shown to it");
        } else {
            struct dynbuf *b = ledger_scratch(l);
            msg_put_id(b, &a->ticket);
            msg_put_digest(b, &g.of);
            msg_put_span(b, g.name);
            msg_put_span(b, dynbuf_span(&input));
            msg_put_span(b, dynbuf_span(&body));
            msg_put_u8(b, g.complete);
            ledger_reply(l, TO_KEEPER, M_GATE, a->number, -1, NULL);
        }
    }
    dynbuf_wipe(&input);
    dynbuf_wipe(&body);
    return got;
}

void ledger_gates_next(struct ledger *l)
{
    struct asked_gate *a;
    if (!l->gates.due || l->lost || l->ending || l->peer[ROLE_KEEPER] == NULL || !store_has_data_key(l->store))
        return; /* without the key there is no body to show */
    l->gates.due = false;
    while ((a = free_one(l)) != NULL) {
        int got = ask_next(l, a);
        l->gates.again = got < 0;
        if (got <= 0)
            break;
    }
    ledger_touch(l); /* also where there was none: that it was looked for began a turn */
}

/* A turn that failed asked nobody, and what came in it is heard again when the store is back. */
void ledger_gates_turn(struct ledger *l, bool committed)
{
    for (size_t i = 0; i < GATES_ASKED; i++) {
        struct asked_gate *a = &l->gates.asked[i];
        if (committed ? a->answered && !l->lost : a->asking) {
            a->number = 0;
            l->gates.due = true;
        }
        a->asking = false;
    }
}

static struct asked_gate *asked_as(struct ledger *l, uint64_t number, const struct id *ticket, struct span name)
{
    for (size_t i = 0; i < GATES_ASKED && number != 0; i++) {
        struct asked_gate *a = &l->gates.asked[i];
        if (a->number == number && id_eq(&a->ticket, ticket) && span_eq(span_of(a->name, a->nname), name))
            return a;
    }
    return NULL;
}

/* Its slot is kept until that is committed, so that it can be heard again. */
int ledger_gated(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct id ticket;
    msg_get_id(&m, &ticket);
    struct span name = msg_get_span(&m, GATE_NAME_MAX);
    uint8_t said = msg_get_u8(&m);
    struct span words = msg_get_span(&m, GATE_WORDS_MOST);
    if (msg_end(&m) != 0 || said > GATE_NOT_ASKED)
        return -1;
    struct asked_gate *a = asked_as(l, f->id, &ticket, name);
    if (a == NULL) {
        log_warn("what a gate said is not what it was asked, or comes too late");
        return 0;
    }
    a->answered = true;
    if (said == GATE_NOT_ASKED)
        l->gates.look_until = loop_now(l->loop) + GATE_LATER_MS;
    if (l->lost)
        return 0;
    if ((said == GATE_NOT_ASKED ? store_gate_later(l->store, &ticket, name, words)
                                : store_gate_answered(l->store, &ticket, name, (enum gate_said)said, words)) != 0)
        log_debug("what a gate said waits for the store");
    return 0;
}

void ledger_gates_keeper_gone(struct ledger *l)
{
    for (size_t i = 0; i < GATES_ASKED; i++)
        if (l->gates.asked[i].number != 0 && !l->gates.asked[i].answered)
            failed(l, &l->gates.asked[i], "the keeper, which asks it, has restarted");
    l->gates.due = true;
    l->gates.look_until = loop_now(l->loop) + GATE_LATER_MS;
}

/* One that the store holds for asked and that nobody is asked about: what became of it could not be written down. */
static void fail_forgotten(struct ledger *l)
{
    uint8_t copy[GATE_NAME_MAX];
    struct span ticket, name;
    struct id id;
    for (unsigned i = 0; i <= GATES_ASKED && store_gate_asked(l->store, i, &ticket, &name) == 1; i++) {
        bool known = id_parse(ticket, &id) != 0;
        for (size_t k = 0; k < GATES_ASKED && !known; k++)
            known = asked_as(l, l->gates.asked[k].number, &id, name) != NULL;
        if (known || name.n > GATE_NAME_MAX)
            continue;
        memcpy(copy, name.p, name.n); /* the operation that follows takes the store's own away */
        name.p = copy;
        if (store_gate_answered(l->store, &id, name, GATE_FAILED, SPAN("what it said could not be written down")) !=
            0)
            log_debug("that a gate's answer was lost waits for the store");
        return;
    }
}

void ledger_gates_tick(struct ledger *l)
{
    uint64_t now = loop_now(l->loop);
    for (size_t i = 0; i < GATES_ASKED; i++) {
        struct asked_gate *a = &l->gates.asked[i];
        if (a->number == 0 || a->answered || now - a->since <= GATE_PATIENCE_MS)
            continue;
        failed(l, a, "it was asked, and nothing came back");
        l->gates.due = true;
    }
    fail_forgotten(l);
    l->gates.due |= l->gates.again || now < l->gates.look_until;
}
