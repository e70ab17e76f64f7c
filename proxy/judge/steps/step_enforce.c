/* ENFORCE: a denial is refused; what is allowed or held goes on, if it can be done now. */
#include "common/log.h"
#include "proxy/judge/evaluation/signing.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"
#include "proxy/range.h"

/* What enforcement would have done stays in the record; what is done is to let it pass, with no credential of ours.
 * A record that cannot be written would make the mode pointless: that is refused as ever. */
static enum walk_next shadow(struct exchange *x)
{
    struct decision *d = &x->now.d;
    if (!judge_store_ok(x->judge) && d->effect != EFFECT_READ)
        return refuse(x, REFUSE_STORE);
    if (d->verdict != VERDICT_ALLOW)
        log_exchange(LOG_INFO, x->xid, "shadow: %.*s %.*s%.*s would be %s (%s)", SPAN_FMT(x->request.method),
                     SPAN_FMT(x->request.host), SPAN_FMT(x->request.path),
                     d->verdict == VERDICT_HOLD ? "held" : "denied", d->code);
    d->credential = -1;
    x->now.credential = SPAN_NONE;
    return WALK_NEXT;
}

/* The answer will be searched for secrets, and of several ranges it cannot be: said before a ticket is opened, for
 * nobody is to approve what will not be sent. The carrier looks at the same again. */
static bool range_is_in_vain(const struct exchange *x)
{
    const struct wire_request *r = &x->request;
    struct range asked;
    return range_of(r, &asked) == RANGE_BAD &&
           (x->now.d.credential >= 0 || policy_host_bound(x->now.image->policy, r->scheme, r->host, r->port));
}

enum walk_next step_enforce(struct exchange *x)
{
    struct decision *d = &x->now.d;
    const struct wire_request *r = &x->request;
    if (exchange_is_frozen(x) && (x->judge->config.shadow || d->need_body || d->verdict != VERDICT_DENY))
        return refuse(x, REFUSE_FROZEN);
    if (upstream_reach(x->now.image, x->sandbox->reach, r) == REACH_NO) /* before anybody is asked to approve it */
        return refuse(x, REFUSE_REACH);
    if (d->need_body) { /* it is all there is, and still not enough */
        d->verdict = VERDICT_DENY;
        d->need_body = false;
        d->code = "unclassified";
    }
    if (d->verdict == VERDICT_DENY && strcmp(d->code, "unclassified") == 0) {
        struct request asked = exchange_asks(x);
        evaluation_ambiguity(&x->now, x->sandbox, x->lane, &asked);
    }
    if (x->judge->config.shadow)
        return shadow(x);
    if (d->verdict != VERDICT_ALLOW && d->verdict != VERDICT_HOLD) {
        return refuse_denial(x);
    }
    if (d->credential >= 0 && !policy_credential_may_go(x->now.image->policy, (size_t)d->credential, r->scheme,
                                                        r->host, r->port, r->path)) {
        d->verdict = VERDICT_DENY;
        d->code = "credential-not-here";
        return refuse(x, REFUSE_DENIED);
    }
    if (signing_refuses(x) != NULL)
        return refuse(x, REFUSE_SIGN);
    if (range_is_in_vain(x))
        return refuse(x, REFUSE_RANGE);
    if (!judge_store_ok(x->judge) && (d->verdict != VERDICT_ALLOW || d->effect != EFFECT_READ || d->nlimits > 0 ||
                                      egress_is_metered(x))) /* who counts is away */
        return refuse(x, REFUSE_STORE);
    if (!egress_request(x, x->upload >= UPLOAD_TO_COME ? x->declared : body_bytes(x->body).n))
        return refuse(x, REFUSE_EGRESS);
    return websocket_offer(x) == 0 ? WALK_NEXT : WALK_FAIL;
}
