#include "proxy/keeper/gates/gates.h"

#include "common/log.h"
#include "common/msg.h"
#include "proxy/fetcher/wire_fetch.h"
#include "proxy/identity.h"
#include "proxy/keeper/gates/question.h"

enum { NAME_MOST = 256 };

/* What is being asked. number: the keeper's own, of its question to the fetcher, never used again; 0: free. id: the
 * ledger's, which a ledger that was started again uses again: it is told which gate of which ticket was meant. */
struct asked {
    uint64_t number, id;
    struct id ticket;
    size_t nname;
    uint8_t name[NAME_MOST];
    struct secret *secret; /* that it is asked with */
};
static struct asked asked[GATES_ASKED_MOST];
static uint64_t numbers;

static void forget(struct asked *a)
{
    secret_free(&a->secret);
    a->number = 0;
}

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

/* 0: it was asked. */
static int ask(struct keeper *k, const struct asked *what, const struct gate *g, const struct gate_shown *shown,
               bool *never, struct err *e)
{
    struct dynbuf b;
    struct secret *secret = NULL;
    size_t at = 0;
    int bad = -1;
    dynbuf_init(&b, CHAN_PAYLOAD_MAX);
    while (at < GATES_ASKED_MOST && asked[at].number != 0)
        at++;
    uint64_t number = ++numbers;
    if (k->fetcher == NULL)
        err_set(e, "the fetcher, which asks it, does not run at the moment");
    else if (at == GATES_ASKED_MOST)
        err_set(e, "too many gates are asked at once");
    else if (gate_question(k, g, shown, &b, &secret, never, e) == 0)
        bad = chan_send(k->fetcher, M_FETCH, number | GATE_FETCH, dynbuf_span(&b)) == 0
                  ? 0
                  : err_set(e, "the fetcher takes no question now");
    if (bad == 0) {
        forget(&asked[at]);
        asked[at] = *what;
        asked[at].number = number;
        asked[at].secret = secret;
        secret = NULL;
    }
    secret_free(&secret);
    dynbuf_wipe(&b);
    return bad;
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
    struct err e = {{0}};
    struct digest of;
    struct gate g;
    msg_get_id(&m, &what.ticket);
    msg_get_digest(&m, &of);
    struct span name = msg_get_span(&m, NAME_MOST);
    struct gate_shown shown = {.ticket = &what.ticket, .of = &of};
    shown.input = msg_get_span(&m, FETCH_INPUT_MAX);
    shown.body = msg_get_span(&m, GATE_BODY_TEXT_MAX);
    shown.complete = msg_get_bool(&m);
    if (msg_end(&m) != 0 || f->id == 0 || shown.input.n == 0) {
        log_error("what a gate is to be asked cannot be read");
        return; /* the ledger has its patience */
    }
    what.nname = name.n;
    if (name.n > 0)
        memcpy(what.name, name.p, name.n);
    bool never = false;
    int bad = is_named(k, name, &of, &g) ? ask(k, &what, &g, &shown, &never, &e)
                                         : err_set(&e, "the policy of now has another gate or none");
    if (bad != 0)
        say(k, &what, never ? GATE_FAILED : GATE_NOT_ASKED, span_str(e.text));
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
    struct asked a = asked[at];
    asked[at] = (struct asked){.number = 0};
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
    if (gate_says_secret(words, a.secret))
        words = SPAN("its words are left out: they hold the secret that it is asked with");
    say(k, &a, said, words);
    forget(&a);
}

void keeper_gates_lost(struct keeper *k)
{
    for (size_t i = 0; i < GATES_ASKED_MOST; i++) {
        bool was = asked[i].number != 0;
        forget(&asked[i]);
        if (was)
            say(k, &asked[i], GATE_FAILED, SPAN("the fetcher, which asks it, has ended"));
    }
}

void keeper_gates_forget(void)
{
    for (size_t i = 0; i < GATES_ASKED_MOST; i++)
        forget(&asked[i]);
}
