#include "proxy/keeper/gates/gates.h"

#include "common/log.h"
#include "common/msg.h"
#include "proxy/fetcher/wire_fetch.h"

enum { NAME_MOST = 256 };

/* The ledger's numbers of what is being asked; 0: free. */
static uint64_t asked[GATES_ASKED_MOST];

static void say(struct keeper *k, uint64_t id, enum gate_said said, struct span words)
{
    struct dynbuf *b = k->ledger != NULL ? chan_begin(k->ledger, M_GATED, id) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)said);
    msg_put_span(b, span_first(words, FETCH_WHY_MAX));
    (void)chan_commit(k->ledger);
}

/* NULL: it was asked; else why not. */
static const char *ask(struct keeper *k, uint64_t id, const struct gate *g, struct span input)
{
    static struct wire_fetch ask;
    size_t at = 0;
    while (at < GATES_ASKED_MOST && asked[at] != 0)
        at++;
    if (k->fetcher == NULL || at == GATES_ASKED_MOST)
        return k->fetcher == NULL ? "the fetcher, which asks it, does not run at the moment"
                                  : "too many gates are asked at once";
    ask = (struct wire_fetch){.kind = FETCH_GATE, .timeout_ms = g->timeout_ms, .input = input};
    for (size_t i = 0; i < g->words && i < FETCH_SETTINGS_MAX; i++)
        ask.setting[ask.nsettings++] = (struct wire_setting){SPAN("argv"), policy_gate_word(k->policy, g, i)};
    struct dynbuf *b = chan_begin(k->fetcher, M_FETCH, id | GATE_FETCH);
    if (b == NULL)
        return "the fetcher takes no question now";
    wire_put_fetch(b, &ask);
    if (chan_commit(k->fetcher) != 0)
        return "the fetcher takes no question now";
    asked[at] = id;
    return NULL;
}

void keeper_gate(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct digest policy;
    struct gate g;
    const char *why = NULL;
    msg_get_digest(&m, &policy);
    struct span name = msg_get_span(&m, NAME_MOST), input = msg_get_span(&m, FETCH_INPUT_MAX);
    if (msg_end(&m) != 0 || f->id == 0 || (f->id & GATE_FETCH) != 0)
        why = "what it is asked with cannot be read";
    else if (k->policy == NULL || !span_eq(policy_digest(k->policy), span_of(policy.b, DIGEST_BYTES)))
        why = "the policy has changed before it was asked";
    else if (!policy_gate_named(k->policy, name, &g))
        why = "the policy names no such gate";
    else
        why = ask(k, f->id, &g, input);
    if (why != NULL)
        say(k, f->id, GATE_FAILED, span_str(why));
}

void keeper_gate_fetched(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_fetched got;
    enum gate_said said = GATE_FAILED;
    uint64_t id = f->id & ~GATE_FETCH;
    size_t at = 0;
    while (at < GATES_ASKED_MOST && (asked[at] != id || id == 0))
        at++;
    if (at == GATES_ASKED_MOST) {
        log_error("the fetcher said what a gate answered that nobody asked");
        return;
    }
    asked[at] = 0;
    struct span words = SPAN("what it answered cannot be read");
    if (wire_get_fetched(&m, &got) == 0 && msg_end(&m) == 0) {
        words = got.why;
        if (got.ok && got.value.p[0] > GATE_FAILED && got.value.p[0] <= GATE_ABSTAIN) {
            said = (enum gate_said)got.value.p[0];
            words = span_from(got.value, 1);
        }
    }
    say(k, id, said, words);
}

void keeper_gates_lost(struct keeper *k)
{
    for (size_t i = 0; i < GATES_ASKED_MOST; i++) {
        uint64_t id = asked[i];
        asked[i] = 0;
        if (id != 0)
            say(k, id, GATE_FAILED, SPAN("the fetcher, which asks it, has ended"));
    }
}
