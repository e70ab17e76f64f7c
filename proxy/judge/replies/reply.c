#include "common/log.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"

void reply_send(struct judge *j, uint64_t instance, uint64_t xid, const struct wire_reply *r)
{
    struct dynbuf *b = j->ports.begin(j->ports.arg, ROLE_FRONT, instance, M_REPLY, xid);
    if (b == NULL)
        return;
    wire_put_reply(b, r);
    if (j->ports.commit(j->ports.arg, ROLE_FRONT, instance, -1) != 0)
        log_exchange(LOG_WARN, xid, "its answer could not be given to the front");
}

void reply_own(struct exchange *x, const struct wire_reply *r)
{
    if (x->client != CLIENT_WAITS)
        return;
    exchange_client(x, CLIENT_ANSWERED);
    reply_send(x->judge, x->front->instance, x->xid, r);
}

void refuse_send(struct exchange *x)
{
    struct wire_reply out;
    const struct refusal *r = &x->refusal;
    if (x->client != CLIENT_WAITS)
        return;
    if (dialect_reply(x->now.d.dialect, x->now.d.push, r, &x->arena, &out) != 0) {
        /* No room for words: the status alone still refuses. */
        out = (struct wire_reply){.head.status = (uint16_t)r->status, .close = true};
        out.head.reason = SPAN("Refused");
    }
    reply_own(x, &out);
}
