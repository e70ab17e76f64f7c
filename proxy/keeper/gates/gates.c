#include "proxy/keeper/gates/gates.h"

#include "common/log.h"
#include "common/msg.h"
#include "proxy/fetcher/wire_fetch.h"
#include "proxy/identity.h"

enum { NAME_MOST = 256 };

/* What is being asked. number: the keeper's own, of its question to the fetcher, never used again; 0: free. id: the
 * ledger's, which a ledger that was started again uses again: it is told which gate of which ticket was meant. */
struct asked {
    uint64_t number, id;
    struct id ticket;
    size_t nname;
    uint8_t name[NAME_MOST];
};
static struct asked asked[GATES_ASKED_MOST];
static uint64_t numbers;

static void say(struct keeper *k, const struct asked *a, uint8_t said, struct span words)
{
    struct dynbuf *b = k->ledger != NULL ? chan_begin(k->ledger, M_GATED, a->id) : NULL;
    if (b == NULL)
        return;
    msg_put_id(b, &a->ticket);
    msg_put_span(b, span_of(a->name, a->nname));
    msg_put_u8(b, said);
    msg_put_span(b, span_first(words, FETCH_WHY_MAX));
    (void)chan_commit(k->ledger);
}

/* NULL: it was asked; else why not. */
static const char *ask(struct keeper *k, const struct asked *what, const struct gate *g, struct span input)
{
    static struct wire_fetch ask;
    size_t at = 0;
    while (at < GATES_ASKED_MOST && asked[at].number != 0)
        at++;
    if (k->fetcher == NULL || at == GATES_ASKED_MOST)
        return k->fetcher == NULL ? "the fetcher, which asks it, does not run at the moment"
                                  : "too many gates are asked at once";
    ask = (struct wire_fetch){.kind = FETCH_GATE, .timeout_ms = g->timeout_ms, .input = input};
    for (size_t i = 0; i < g->words && i < FETCH_SETTINGS_MAX; i++)
        ask.setting[ask.nsettings++] = (struct wire_setting){SPAN("argv"), policy_gate_word(k->policy, g, i)};
    uint64_t number = ++numbers;
    struct dynbuf *b = chan_begin(k->fetcher, M_FETCH, number | GATE_FETCH);
    if (b == NULL)
        return "the fetcher takes no question now";
    wire_put_fetch(b, &ask);
    if (chan_commit(k->fetcher) != 0)
        return "the fetcher takes no question now";
    asked[at] = *what;
    asked[at].number = number;
    return NULL;
}

/* The definition is the one that the ticket is held by, whatever else the policy says by now. */
static bool is_named(const struct keeper *k, struct span name, const struct digest *of, struct gate *g)
{
    struct digest now;
    return k->policy != NULL && policy_gate_named(k->policy, name, g) && identity_of_gate(k->policy, g, &now) == 0 &&
           memcmp(&now, of, sizeof(now)) == 0;
}

void keeper_gate(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct asked what = {.id = f->id};
    struct digest of;
    struct gate g;
    msg_get_id(&m, &what.ticket);
    msg_get_digest(&m, &of);
    struct span name = msg_get_span(&m, NAME_MOST), input = msg_get_span(&m, FETCH_INPUT_MAX);
    if (msg_end(&m) != 0 || f->id == 0) {
        log_error("what a gate is to be asked cannot be read");
        return; /* the ledger has its patience */
    }
    what.nname = name.n;
    if (name.n > 0)
        memcpy(what.name, name.p, name.n);
    const char *why =
        is_named(k, name, &of, &g) ? ask(k, &what, &g, input) : "the policy of now has another gate or none";
    if (why != NULL)
        say(k, &what, GATE_NOT_ASKED, span_str(why));
}

void keeper_gate_fetched(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_fetched got;
    uint8_t said = GATE_FAILED;
    uint64_t number = f->id & ~GATE_FETCH;
    size_t at = 0;
    while (at < GATES_ASKED_MOST && (asked[at].number != number || number == 0))
        at++;
    if (at == GATES_ASKED_MOST) {
        log_debug("a gate answered, and who asked is not there any more");
        return;
    }
    asked[at].number = 0;
    struct span words = SPAN("what it answered cannot be read");
    if (wire_get_fetched(&m, &got) == 0 && msg_end(&m) == 0) {
        words = got.why;
        if (got.busy)
            said = GATE_NOT_ASKED;
        if (got.ok && got.value.p[0] > GATE_FAILED && got.value.p[0] <= GATE_ABSTAIN) {
            said = got.value.p[0];
            words = span_from(got.value, 1);
        }
    }
    say(k, &asked[at], said, words);
}

void keeper_gates_lost(struct keeper *k)
{
    for (size_t i = 0; i < GATES_ASKED_MOST; i++) {
        bool was = asked[i].number != 0;
        asked[i].number = 0;
        if (was)
            say(k, &asked[i], GATE_FAILED, SPAN("the fetcher, which asks it, has ended"));
    }
}

void keeper_gates_forget(void)
{
    for (size_t i = 0; i < GATES_ASKED_MOST; i++)
        asked[i].number = 0;
}
