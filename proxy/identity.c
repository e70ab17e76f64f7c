#include "proxy/identity.h"

enum { IDENTITY_MAX = 16 * 1024 * 1024 };

static int finish(struct dynbuf *b, struct digest *out)
{
    int rc = dynbuf_ok(b) ? 0 : -1;
    *out = (struct digest){{0}};
    if (rc == 0 && b->n > 0)
        digest_of(dynbuf_span(b), out);
    dynbuf_free(b);
    return rc;
}

int identity_of_place(const struct policy *p, struct span scheme, struct span host, uint16_t port, struct digest *out)
{
    struct dynbuf b;
    dynbuf_init(&b, IDENTITY_MAX);
    policy_put_place(p, scheme, host, port, &b);
    return finish(&b, out);
}

int identity_of_terms(const struct policy *p, const struct decision *d, struct digest *out)
{
    struct dynbuf b;
    dynbuf_init(&b, IDENTITY_MAX);
    policy_put_terms(p, d, &b);
    return finish(&b, out);
}

int identity_of_credential(const struct policy *p, size_t i, struct digest *out)
{
    struct dynbuf b;
    dynbuf_init(&b, IDENTITY_MAX);
    policy_put_credential(p, i, &b);
    return finish(&b, out);
}

int identity_of_gate(const struct policy *p, const struct gate *g, struct digest *out)
{
    struct dynbuf b;
    dynbuf_init(&b, IDENTITY_MAX);
    policy_put_gate(p, g, &b);
    return finish(&b, out);
}
