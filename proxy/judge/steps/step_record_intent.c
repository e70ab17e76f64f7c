/* RECORD INTENT: an allowed effect is on disk before its first byte leaves, and what limits count is reserved. A held
 * one was written down by the claim; a read that no limit counts needs nothing. */
#include "proxy/judge/tickets/digest.h"
#include "proxy/judge/evaluation/rate_limit.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/leases/check.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"

enum { INTENT_WAIT_MS = 10 * 1000 };

static enum walk_next ask(struct exchange *x)
{
    struct record_text text;
    struct wire_record r;
    struct wire_limits limits;
    struct digest join;
    struct digest_input in = {.session = x->sandbox->session,
                              .credential = x->now.credential,
                              .request = &x->request,
                              .body = body_bytes(x->body)};
    if (x->upload < UPLOAD_TO_COME) /* of a body that streams through there is no digest */
        request_digest(&in, &x->digest);
    record_fill(x, &r, &text);
    rate_limit_wire(x, &limits);
    rate_limit_join(x, &join);
    struct dynbuf *b = post_begin(x->judge, ROLE_LEDGER, 0, M_INTENT, x->xid);
    wire_put_record(b, &r);
    msg_put_digest(b, &join);
    wire_put_limits(b, &limits);
    if (post_commit(x->judge, -1) != 0)
        return WALK_FAIL;
    exchange_intent(x, INTENT_ASKED);
    x->intent_effect = x->now.d.effect;
    exchange_wait(x, X_INTENT, INTENT_WAIT_MS);
    return WALK_WAIT;
}

/* It is on disk. Does what was decided before still stand? */
static enum walk_next written(struct exchange *x)
{
    if (x->client != CLIENT_WAITS)
        return x->refusal.code ? WALK_REPLY : refuse(x, REFUSE_INTERNAL);
    if (!exchange_session_lives(x))
        return refuse(x, REFUSE_UNKNOWN_SANDBOX);
    if (exchange_is_frozen(x))
        return refuse(x, REFUSE_FROZEN);
    if (x->now.image != x->judge->image && !x->judge->config.shadow && !exchange_still(x, VERDICT_ALLOW))
        return x->now.d.verdict == VERDICT_DENY ? refuse_denial(x) : refuse(x, REFUSE_POLICY_CHANGED);
    return WALK_NEXT;
}

enum walk_next step_record_intent(struct exchange *x)
{
    bool counted = (x->now.d.nlimits > 0 || lease_counts(x)) && !x->judge->config.shadow;
    if (x->claim >= CLAIM_ASKED)
        return WALK_NEXT;
    switch (x->intent) {
    case INTENT_NONE: return x->now.d.effect == EFFECT_READ && !counted ? WALK_NEXT : ask(x);
    case INTENT_OVER_LIMIT: exchange_intent(x, INTENT_NONE); return WALK_REWIND;
    case INTENT_WRITTEN: return written(x);
    case INTENT_REFUSED:
    case INTENT_ASKED: break;
    }
    return WALK_FAIL;
}
