#include "common/log.h"
#include "proxy/judge/frames/frames.h"
#include "proxy/judge/leases/proof.h"
#include "proxy/judge/replies/refuse.h"

/* No credential, no request: the carrier is told to drop it, the client why. The carrier's M_RESULT
 * still comes and is what is recorded, with the keeper's code as its cause. Of a request that was answered and would
 * have been sent once more the answer goes on. */
static int release_failed(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span code = msg_get_span(&m, 64), why = msg_get_span(&m, 1024);
    struct exchange *x = exchange_find(j, f->id);
    if (msg_end(&m) != 0)
        return -1;
    if (x == NULL || x->delivery < DELIVERY_FORWARDED || x->delivery >= DELIVERY_FINISHED)
        return 0;
    log_exchange(LOG_WARN, x->xid, "credential \"%.*s\" was not released: %.*s: %.*s", SPAN_FMT(x->now.credential),
                 SPAN_FMT(code), SPAN_FMT(why));
    if (x->upstream)
        upstream_set_live(j, x->upstream, x->now.d.credential, false);
    if (x->renews && x->cancel == CANCEL_NONE) {
        frames_no_other(x);
        return 0;
    }
    x->cause = arena_copy(&x->arena, code);
    exchange_cancel(x, CANCEL_CREDENTIAL);
    refuse_now(x, span_eq(code, SPAN("token-gone")) ? REFUSE_LEASE_ENDED : REFUSE_CREDENTIAL);
    return 0;
}

/* Of a lease's signature. Where nobody can say, nothing is sent. */
static int verified(struct judge *j, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint8_t found = msg_get_u8(&m);
    struct exchange *x = exchange_find(j, f->id);
    if (msg_end(&m) != 0 || found > VERIFIED_RIGHT)
        return -1;
    if (x == NULL || x->wait != X_PROOF)
        return 0;
    if (found == VERIFIED_NOT) {
        refuse_now(x, REFUSE_INTERNAL);
        return 0;
    }
    proof_found(x, (enum wire_verified)found);
    exchange_resume(j, f->id);
    return 0;
}

int frames_keeper(struct judge *j, struct frame *f)
{
    switch (f->type) {
    case M_MINTED: return connect_minted(j, f);
    case M_RELEASE_FAILED: return release_failed(j, f);
    case M_LEASE_VERIFIED: return verified(j, f);
    default: return -1;
    }
}
