/* EVALUATE: who asks; then the policy (policy_judge, policy/decide/decide.c) says what the request is, and whether it
 * is allowed, held or denied. If that takes the body, or the request will be held, the body is read whole and this
 * step runs again. What a stub answers (../stubs) ends here. Where the credential has a slot in the request, what is
 * decided is the request with its mark. */
#include "proxy/judge/evaluation/signing.h"
#include "proxy/judge/evaluation/slot.h"
#include "proxy/judge/replies/self_service.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"
#include "proxy/judge/stubs/stub.h"

static enum walk_next want_body(struct exchange *x)
{
    struct judge *j = x->judge;
    uint64_t max = j->config.body_max;
    if (x->now.d.body_max && x->now.d.body_max < max)
        max = x->now.d.body_max;
    if ((slot_wants_body(x) || signing_takes_body(x)) && max > BODY_INLINE_MAX)
        max = BODY_INLINE_MAX;
    if (x->stub.kind != STUB_NONE && max > STUB_BODY_MAX)
        max = STUB_BODY_MAX;
    x->body_max = max;
    if (x->declared != UINT64_MAX && x->declared > max)
        return refuse(x, REFUSE_BODY_TOO_LARGE);
    if (!exchange_reserve(x, x->declared < max ? x->declared : max))
        return refuse(x, REFUSE_BODIES);
    struct dynbuf *b = post_begin(j, ROLE_FRONT, x->front->instance, M_BODY_WANTED, x->xid);
    msg_put_u8(b, 2);
    msg_put_u64(b, max);
    if (post_commit(j, -1) != 0)
        return WALK_FAIL;
    exchange_wait(x, X_BODY, 0); /* the front has its own timers for a slow client */
    return WALK_WAIT;
}

/* Shadow mode looks at what it can, and blocks nothing for being too large to look at. */
static bool wants_body(const struct exchange *x)
{
    if (x->judge->config.shadow)
        return x->now.d.need_body && x->declared <= x->judge->config.body_max;
    if (slot_wants_body(x))
        return true;
    return x->now.d.need_body || x->now.d.verdict == VERDICT_HOLD ||
           (x->now.d.verdict == VERDICT_ALLOW && signing_wants_body(x));
}

/* What an agent's own client was asked in MCP's words, and answers, is ours: it is taken off before anything is
 * decided, shown, compared with what was held, or sent. */
static int take_own_round(struct exchange *x)
{
    if (x->elicit_read || x->upload != UPLOAD_WHOLE)
        return 0;
    x->elicit_read = true;
    if (elicit_read(&x->request, body_bytes(x->body), span_str(x->judge->config.desk_url), &x->arena, &x->elicit) !=
        0)
        return -1;
    struct body *own = x->elicit.own ? body_inline(x->elicit.body) : NULL;
    if (own != NULL) {
        body_unref(&x->body);
        x->body = own;
    }
    return x->elicit.own && own == NULL ? -1 : 0;
}

enum walk_next step_evaluate(struct exchange *x)
{
    struct judge *j = x->judge;
    if (x->front == NULL)
        return WALK_FAIL;
    if (self_service_is(x->request.host))
        return self_service_answer(x);
    if (j->ending)
        return refuse(x, REFUSE_ENDING);
    if (!judge_store_ok(j) && !j->config.allow_reads)
        return refuse(x, REFUSE_STORE);
    if (!exchange_session_lives(x))
        return refuse(x, REFUSE_UNKNOWN_SANDBOX);
    if (j->image == NULL)
        return refuse(x, REFUSE_NO_POLICY);
    if (take_own_round(x) != 0)
        return WALK_FAIL;
    evaluation_drop(&x->now);
    exchange_evaluate(x, &x->now);
    if (stub_is(x))
        return x->upload >= UPLOAD_TO_COME && stub_wants_body(x) ? want_body(x) : stub_answer(x);
    if (x->upload >= UPLOAD_TO_COME && exchange_is_frozen(x))
        return WALK_NEXT; /* refused: its body need not come first */
    if (x->upload >= UPLOAD_TO_COME && wants_body(x))
        return want_body(x);
    enum walk_next next = slot_take(x);
    if (next == WALK_NEXT && x->upload >= UPLOAD_TO_COME && wants_body(x))
        return want_body(x);
    return next;
}
