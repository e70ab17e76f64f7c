#include <unistd.h>

#include "common/log.h"
#include "proxy/judge/frames/frames.h"
#include "proxy/judge/leases/check.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/tickets/review.h"
#include "proxy/judge/tickets/ticket.h"
#include "proxy/judge/accounts/turn.h"
#include "proxy/judge/accounts/upstreams.h"
#include "proxy/judge/post.h"

/* It waits for a connection or for its credential, which may take a while; no byte of it has left. A read that is
 * repeatable may be answered already. */
static bool waits_to_be_sent(const struct exchange *x)
{
    return x->wait == X_RESULT && x->websocket == WEBSOCKET_NONE && x->delivery < DELIVERY_SENT &&
           x->cancel == CANCEL_NONE && !exchange_is_repeatable(x) && !x->judge->config.shadow;
}

/* What is held is decided again as soon as there is another policy, so that nobody approves in vain; and what has not
 * left yet, so that nothing leaves that is denied by then. What is under way with a lease ends with it when the
 * credential is another one now. */
static void judge_again(struct exchange *x, void *arg)
{
    if (x->wait == X_RESULT && x->websocket == WEBSOCKET_NONE)
        lease_again(x);
    websocket_again(x);
    if (waits_to_be_sent(x)) {
        turn_for(x->judge, x->sandbox);
        if (!exchange_would_still(x))
            exchange_cancel(x, CANCEL_POLICY); /* whose result is the last word on what has left */
        return;
    }
    if (x->wait != X_PARKED)
        return;
    turn_for(x->judge, x->sandbox);
    if (exchange_still(x, VERDICT_HOLD)) {
        evaluation_pack(&x->now);
        return;
    }
    bool deny = x->now.d.verdict != VERDICT_HOLD && x->now.d.verdict != VERDICT_ALLOW;
    ticket_void(x, "the policy would not hold it like this any more");
    refuse_now(x, deny ? refuse_why_of(x) : REFUSE_POLICY_CHANGED);
}

static int image(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct digest want;
    struct err e;
    msg_get_digest(&m, &want);
    int fd = frame_take_fd(f, 0);
    if (msg_end(&m) != 0 || fd < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    struct image *i = image_open(fd, &want, &e);
    close(fd);
    if (i == NULL) {
        log_error("the new policy cannot be used: %s", e.text);
        return -1; /* never the old one meanwhile: who asked for this one is told that it is in force */
    }
    image_unref(j->image);
    i->serial = ++j->policies;
    j->image = i;
    upstreams_forget(j->upstreams);
    log_info("policy %.*s", SPAN_FMT(policy_name(i->policy)));
    exchange_each(j, judge_again, NULL);
    review_ask(j);
    return 0;
}

int frames_parent(struct judge *j, struct frame *f)
{
    return f->type == M_IMAGE ? image(j, f) : -1;
}

int frames_lobby(struct judge *j, uint64_t instance, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span token = msg_get_span(&m, 1024);
    if (f->type != M_IDENTIFY || msg_end(&m) != 0)
        return -1;
    const struct sandbox *s = sandbox_by_token(j, token);
    struct dynbuf *b = post_begin(j, ROLE_LOBBY, instance, M_IDENTITY, f->id);
    msg_put_u8(b, s != NULL ? IDENTITY_KNOWN : j->told ? IDENTITY_UNKNOWN : IDENTITY_LATER);
    msg_put_span(b, s ? s->name : SPAN_NONE);
    post_send(j, "the lobby could not be answered");
    return 0;
}
