/* What the front refuses by itself is seen: each in the audit, by way of the judge, and counted for the parent. */
#include "proxy/front/client.h"

void front_tell(struct front *f)
{
    struct dynbuf *b = f->refused.n > 0 && f->parent != NULL ? chan_begin(f->parent, M_REFUSED, 0) : NULL;
    if (b == NULL)
        return;
    wire_put_refusals(b, &f->refused);
    (void)chan_commit(f->parent);
    f->refused.n = 0;
}

void front_count(struct front *f, const char *code)
{
    if (f->refused.n == 0)
        timer_set(f->tell, REFUSALS_EVERY_MS);
    refusals_count(&f->refused, f->name, span_str(code), 1);
}

static void audit(struct front *f, uint64_t xid, enum walk_step step, const char *code, struct span scheme,
                  struct span host, uint16_t port)
{
    struct dynbuf *b = f->judge ? chan_begin(f->judge, M_FRONT_REFUSED, xid) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)step);
    msg_put_span(b, span_str(code));
    msg_put_span(b, scheme);
    msg_put_span(b, host);
    msg_put_u16(b, port);
    (void)chan_commit(f->judge);
}

static uint64_t new_xid(struct front *f)
{
    return f->instance << FRONT_INSTANCE_SHIFT | ++f->counter;
}

/* Of a request that reached the judge, the judge writes the record. */
void front_note(struct client *c, const char *code)
{
    bool begins = c->hello || c->leaf != NULL || c->state == CLIENT_LEAF || c->state == CLIENT_HANDSHAKE;
    bool tls = begins || c->state == CLIENT_TUNNEL;
    front_count(c->front, code);
    if (client_asks(c) && c->state != CLIENT_LEAF)
        return;
    uint64_t xid = new_xid(c->front);
    if (client_says_step(c, xid) != 0)
        return;
    audit(c->front, xid, begins ? WALK_INTERCEPT : WALK_PARSE, code, tls ? SPAN("https") : SPAN("http"),
          span_of(c->host, c->nhost), c->port);
}

void front_note_stranger(struct front *f, const char *code, uint16_t port)
{
    front_count(f, code);
    audit(f, new_xid(f), WALK_ACCEPT, code, SPAN_NONE, SPAN_NONE, port);
}
