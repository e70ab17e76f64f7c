/* DECIDE: what the policy said is acted on, if it can be done now. */
#include "proxy/judge/record.h"
#include "proxy/judge/refuse.h"
#include "proxy/judge/steps.h"

enum walk_next step_decide(struct exchange *x)
{
    struct decision *d = &x->now.d;
    const struct wire_request *r = &x->request;
    if (d->need_body) { /* it is all there is, and still not enough */
        d->verdict = VERDICT_DENY;
        d->need_body = false;
        d->code = "unclassified";
    }
    if (d->verdict != VERDICT_ALLOW && d->verdict != VERDICT_HOLD) {
        bool unclear = span_eq(span_str(d->code), SPAN("unclassified"));
        return refuse(x, unclear && d->say.n == 0 ? REFUSE_UNCLASSIFIED : REFUSE_DENIED);
    }
    if (d->credential >= 0 && !policy_credential_may_go(x->now.image->policy, (size_t)d->credential, r->scheme,
                                                        r->host, r->port, r->path)) {
        d->verdict = VERDICT_DENY;
        d->code = "credential-not-here";
        return refuse(x, REFUSE_DENIED);
    }
    if (!judge_store_ok(x->judge) && (d->verdict != VERDICT_ALLOW || d->effect != EFFECT_READ))
        return refuse(x, REFUSE_STORE);
    return WALK_NEXT;
}
