/* RECORD INTENT: an allowed effect is on disk before its first byte leaves. A held one
 * was written down by the claim, a read needs nothing. */
#include "proxy/judge/digest.h"
#include "proxy/judge/record.h"
#include "proxy/judge/refuse.h"
#include "proxy/judge/steps.h"

enum { INTENT_WAIT_MS = 10 * 1000 };

static enum walk_next ask(struct exchange *x)
{
    struct judge *j = x->judge;
    uint8_t path[RECORD_PATH_MAX];
    struct wire_record r;
    struct digest_input in = {.session = x->sandbox->session,
                              .credential = x->now.credential,
                              .request = &x->request,
                              .body = x->body.bytes};
    if (!x->body_to_come) /* of a body that streams through there is no digest */
        request_digest(&in, &x->digest);
    record_fill(x, &r, path);
    struct dynbuf *b = j->ports.begin(j->ports.arg, ROLE_LEDGER, 0, M_INTENT, x->xid);
    if (b == NULL)
        return WALK_FAIL;
    wire_put_record(b, &r);
    if (judge_commit_ledger(j, -1) != 0)
        return WALK_FAIL;
    x->intent = true;
    x->intent_effect = x->now.d.effect;
    exchange_wait(x, X_INTENT, INTENT_WAIT_MS);
    return WALK_WAIT;
}

enum walk_next step_record(struct exchange *x)
{
    if (x->held || x->now.d.effect == EFFECT_READ)
        return WALK_NEXT;
    if (!x->intent)
        return ask(x);
    if (!x->intent_ok) {
        x->intent = false;
        return WALK_FAIL;
    }
    if (x->replied || x->client_gone || x->front == NULL) {
        return x->replied ? WALK_REPLY : refuse(x, REFUSE_INTERNAL);
    }
    if (exchange_is_frozen(x))
        return refuse(x, REFUSE_FROZEN);
    if (x->now.image != x->judge->image && !x->judge->config.shadow && !exchange_still(x, VERDICT_ALLOW)) {
        return refuse(x, x->now.d.verdict == VERDICT_DENY ? REFUSE_DENIED : REFUSE_POLICY_CHANGED);
    }
    return WALK_NEXT;
}
