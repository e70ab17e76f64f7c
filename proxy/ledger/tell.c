/* What is to be told outside the page: sent by way of the keeper, one message to each target at once. A target that
 * does not answer holds up itself alone. */
#include "common/log.h"
#include "common/msg.h"
#include "proxy/ledger/ledger.h"

enum { TELL_PATIENCE_MS = 60 * 1000 };

static void failed(struct ledger *l, struct sent_tell *a, const char *why)
{
    a->number = 0;
    if (!l->lost && store_told(l->store, span_of(a->id, a->nid), TELL_NOT_NOW, span_str(why)) != 0)
        log_debug("that nobody was told waits for the store");
}

/* It is said once the turn is committed: what it says is then the same at each try. */
static int send_next(struct ledger *l, const struct wire_tell_target *t, struct sent_tell *a)
{
    struct store_tell m;
    int got = store_tell_next(l->store, t, &m);
    if (got != 1)
        return got;
    if (m.id.n > sizeof(a->id))
        return -1;
    *a = (struct sent_tell){.number = ++l->tells.number, .since = loop_now(l->loop), .asking = true, .nid = m.id.n};
    memcpy(a->id, m.id.p, m.id.n);
    struct dynbuf *b = ledger_scratch(l);
    msg_put_span(b, t->name);
    msg_put_digest(b, &t->of);
    msg_put_span(b, m.id);
    msg_put_span(b, m.title);
    msg_put_span(b, m.body);
    ledger_reply(l, TO_KEEPER, M_TELL, a->number, -1, NULL);
    return 1;
}

void ledger_tells_next(struct ledger *l)
{
    if (l->tells.targets.n == 0 || !l->tells.due || l->lost || l->ending || l->peer[ROLE_KEEPER] == NULL)
        return;
    l->tells.due = false;
    for (size_t i = 0; i < l->tells.targets.n; i++)
        if (l->tells.sent[i].number == 0 && send_next(l, &l->tells.targets.target[i], &l->tells.sent[i]) < 0) {
            l->tells.due = true;
            break;
        }
    ledger_touch(l); /* also where there was none: that it was looked for began a turn */
}

/* As of gates: a turn that failed sent nothing. */
void ledger_tells_turn(struct ledger *l, bool committed)
{
    for (size_t i = 0; i < l->tells.targets.n; i++) {
        struct sent_tell *a = &l->tells.sent[i];
        if (committed ? a->answered && !l->lost : a->asking) {
            a->number = 0;
            l->tells.due = true;
        }
        a->asking = false;
    }
}

int ledger_told(struct ledger *l, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct sent_tell *a = NULL;
    struct span id = msg_get_span(&m, TELL_ID_MAX);
    uint8_t what = msg_get_u8(&m);
    struct span words = msg_get_span(&m, TELL_WORDS_MAX);
    if (msg_end(&m) != 0 || what > TELL_NEVER || f->id == 0)
        return -1;
    for (size_t i = 0; i < l->tells.targets.n; i++)
        if (l->tells.sent[i].number == f->id && span_eq(span_of(l->tells.sent[i].id, l->tells.sent[i].nid), id))
            a = &l->tells.sent[i];
    if (a == NULL) {
        log_debug("what became of a message is not of one that was sent, or comes too late");
        return 0;
    }
    a->answered = true;
    if (!l->lost && store_told(l->store, id, (enum tell_outcome)what, words) != 0)
        log_debug("what became of a message waits for the store");
    return 0;
}

void ledger_tells_keeper_gone(struct ledger *l)
{
    for (size_t i = 0; i < l->tells.targets.n; i++)
        if (l->tells.sent[i].number != 0 && !l->tells.sent[i].answered)
            failed(l, &l->tells.sent[i], "the keeper, which sends it, has restarted");
    l->tells.due = true;
}

void ledger_tells_tick(struct ledger *l)
{
    uint64_t now = loop_now(l->loop);
    for (size_t i = 0; i < l->tells.targets.n; i++) {
        struct sent_tell *a = &l->tells.sent[i];
        if (a->number != 0 && now - a->since > TELL_PATIENCE_MS)
            failed(l, a, "it was sent, and nothing came back");
    }
    l->tells.due = true;
}

int ledger_tell_targets(struct ledger *l, struct span said)
{
    struct tell_targets *t = &l->tells.targets;
    (void)dynbuf_add(&l->tells.said, said);
    struct msg_in m = msg_in(dynbuf_span(&l->tells.said));
    size_t n = msg_get_u8(&m);
    if (m.bad || n > TELL_TARGETS_MAX)
        return -1;
    for (t->n = 0; t->n < n; t->n++)
        if (wire_get_tell_target(&m, &t->target[t->n]) != 0)
            return -1;
    return msg_end(&m);
}
