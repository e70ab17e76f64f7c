/* AWAIT_CREDENTIAL: what the keeper releases for this exchange is here, or need not be. */
#include "proxy/carrier/exchange.h"

/* A credential that is to be used is here, is for this origin, and may be shown there. It may have been released a
 * while ago: what others brought to its origin since is looked for too. */
static enum walk_next check_credential(struct exchange *x)
{
    struct err e;
    if (x->cred->bad.text[0] != '\0')
        return carry_fail(x, "credential-unavailable", "the credential cannot be used: %s", x->cred->bad.text);
    if (!cred_fits(x->cred, x->upstream, x->f.credential))
        return carry_fail(x, "credential-unavailable",
                          "the released credential is for another origin, or of another policy");
    if (x->cred->slot != x->f.slot ||
        (slot_in_body(x->f.slot) &&
         (x->f.body == BODY_STREAM || !slot_has_mark(x->whole, x->f.slot_at, x->cred->name))))
        return carry_fail(x, "credential-unavailable", "the released credential is for another place in the request");
    if (x->cred->pem != NULL && !x->upstream->tls)
        return carry_fail(x, "cleartext-credential", "a client certificate goes over https only");
    struct scrub *set = origins_since(&x->carrier->origins, x->upstream, x->cred->set, &e);
    if (set == NULL)
        return carry_fail(x, "credential-unavailable", "answers could not be searched for it: %s", e.text);
    scrub_begin(&x->scrub, set);
    return WALK_NEXT;
}

static void release_late(void *arg)
{
    struct exchange *x = arg;
    (void)carry_fail(x, "credential-unavailable", "the keeper did not release the credential in time; try again");
    carry_end(x);
}

int carry_ask_release(const struct exchange *x)
{
    struct dynbuf *b = chan_begin(x->carrier->judge, M_NEED_RELEASE, x->xid);
    msg_put_u64(b, x->refused);
    return chan_commit(x->carrier->judge);
}

enum walk_next step_await_credential(struct exchange *x)
{
    struct carrier *c = x->carrier;
    if (x->f.release == RELEASE_NONE && !x->upstream->has_secrets) {
        struct scrub *given = origins_find(&c->origins, x->upstream); /* by an earlier policy */
        if (given != NULL)
            scrub_begin(&x->scrub, given);
        return x->f.credential.n == 0 && x->f.slot == SLOT_HEADER ? WALK_NEXT : WALK_FAIL;
    }
    if (x->f.credential.n && !x->upstream->tls && !x->upstream->cleartext_credentials)
        return carry_fail(x, "cleartext-credential",
                          "a credential does not go over http:// unless the upstream says cleartext_credentials");
    if (x->cred == NULL)
        x->cred = x->f.release == RELEASE_COMES
                      ? creds_claim(&c->creds, x->xid)
                      : creds_find(&c->creds, x->upstream, x->f.credential, x->front->instance, loop_now(c->loop));
    if (x->cred == NULL && x->timer != NULL) /* what answers an ask is kept under its exchange */
        x->cred = creds_claim(&c->creds, x->xid);
    if (x->cred != NULL) {
        timer_free(&x->timer);
        return check_credential(x);
    }
    if (x->timer == NULL) {
        x->timer = timer_new(c->loop, release_late, x);
        if (x->timer == NULL)
            return WALK_FAIL;
        /* Without a keeper only one that is just being introduced can still give it. */
        timer_set(x->timer, c->keeper != NULL ? c->settings.release_ms : NO_KEEPER_MS);
        if (x->f.release != RELEASE_COMES && carry_ask_release(x) != 0)
            return WALK_FAIL;
    }
    return WALK_WAIT;
}
