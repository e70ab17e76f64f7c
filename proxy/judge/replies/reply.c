#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/post.h"

enum { ACCEPTED = 202 };

void reply_send(struct judge *j, uint64_t instance, uint64_t xid, const struct wire_reply *r)
{
    wire_put_reply(post_begin(j, ROLE_FRONT, instance, M_REPLY, xid), r);
    post_send(j, "its answer could not be given to the front");
}

void reply_own(struct exchange *x, const struct wire_reply *r)
{
    if (x->client != CLIENT_WAITS)
        return;
    exchange_client(x, CLIENT_ANSWERED);
    reply_send(x->judge, x->front->instance, x->xid, r);
}

struct dialect_client refuse_client(const struct exchange *x)
{
    return (struct dialect_client){.said = x->now.d.dialect,
                                   .request = &x->request,
                                   .body = body_bytes(x->body),
                                   .push = x->now.d.push,
                                   .aws_signature = x->aws_signature,
                                   .rpc_id = x->rpc_id};
}

void refuse_keep_signature(struct exchange *x)
{
    if (x->aws_signature.n == 0)
        x->aws_signature = dialect_aws_signature(&x->request);
}

void refuse_send(struct exchange *x)
{
    struct dialect_client c = refuse_client(x);
    struct wire_reply out;
    if (x->client != CLIENT_WAITS)
        return;
    if (x->refusal.status == ACCEPTED) /* who asked for that knows it from every server */
        c.said = DIALECT_PROBLEM;
    dialect_reply(&c, &x->refusal, &x->arena, &out);
    reply_own(x, &out);
}
