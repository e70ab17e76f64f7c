#include "proxy/carrier/upstream/upstream.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/text/suffix.h"

enum { SYSTEM_MAX = 8 * 1024 * 1024 };

struct roots {
    struct roots *next;
    unsigned refs;
    struct digest of;
    struct tls_client *tls;
};

void upstreams_init(struct upstreams *s, struct span system_roots, struct span system_crl)
{
    memset(s, 0, sizeof(*s));
    dynbuf_init(&s->system, SYSTEM_MAX);
    dynbuf_init(&s->system_crl, SYSTEM_MAX);
    (void)dynbuf_add(&s->system, system_roots);
    (void)dynbuf_add(&s->system_crl, system_crl);
}

static void roots_unref(struct roots **r)
{
    struct roots *d = *r;
    *r = NULL;
    if (d == NULL || --d->refs > 0)
        return;
    tls_client_free(&d->tls);
    free(d);
}

void upstream_unref(struct upstream **u)
{
    if (u == NULL || *u == NULL)
        return;
    struct upstream *d = *u;
    *u = NULL;
    if (--d->refs > 0)
        return;
    roots_unref(&d->roots);
    arena_free(&d->a);
    free(d);
}

/* Entries that no upstream uses any more go when the next one is looked up. */
static void sweep(struct upstreams *s)
{
    for (struct roots **at = &s->roots; *at != NULL;) {
        if ((*at)->refs > 1) {
            at = &(*at)->next;
            continue;
        }
        struct roots *gone = *at;
        *at = gone->next;
        roots_unref(&gone);
    }
}

void upstreams_clear(struct upstreams *s)
{
    for (size_t i = 0; i < WIRE_UPSTREAMS_MAX; i++)
        upstream_unref(&s->slot[i]);
    roots_unref(&s->warm);
    sweep(s);
    dynbuf_free(&s->system);
    dynbuf_free(&s->system_crl);
}

static int trust_digest(const struct tls_trust *t, struct digest *d)
{
    struct digest part;
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    digest_of(t->roots_pem, &part);
    msg_put_digest(&b, &part);
    digest_of(t->crl_pem, &part);
    msg_put_digest(&b, &part);
    msg_put_u8(&b, t->crl_pem.n > 0);
    msg_put_u8(&b, t->only_13);
    for (size_t i = 0; i < t->npins; i++)
        msg_put_span(&b, t->pin[i]);
    int rc = dynbuf_ok(&b) ? 0 : -1;
    digest_of(dynbuf_span(&b), d);
    dynbuf_free(&b);
    return rc;
}

/* The settings that trust this, made once (a system bundle takes milliseconds). The list holds one reference. */
static struct roots *roots_of(struct upstreams *s, const struct tls_trust *t)
{
    struct digest d;
    if (trust_digest(t, &d) != 0)
        return NULL;
    sweep(s);
    for (struct roots *r = s->roots; r != NULL; r = r->next)
        if (memcmp(r->of.b, d.b, DIGEST_BYTES) == 0) {
            r->refs++;
            return r;
        }
    struct roots *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    *r = (struct roots){.next = s->roots, .refs = 2, .of = d};
    s->roots = r;
    return r;
}

/* host: of the upstream whose CA this is; none: they are everybody's. */
static struct tls_client *client_new(struct tls_trust *t, struct span host, struct err *e)
{
    struct err why = {""};
    t->public_suffix = suffix_is_public;
    if (host.n && tls_roots_strict(t->roots_pem, &why) != 0 && why.text[0])
        log_info("upstream %.*s: %s; certificates it issues are checked without X509_STRICT", SPAN_FMT(host),
                 why.text);
    return tls_client_new(t, e);
}

/* Settings for the system's trust, made now, with a reference for s->warm. */
static int warm(struct upstreams *s, struct tls_trust *t, struct err *e)
{
    struct roots *r = roots_of(s, t);
    if (r == NULL)
        return err_set(e, "no memory for trusted roots");
    if (r->tls == NULL)
        r->tls = client_new(t, SPAN_NONE, e);
    if (r->tls == NULL) {
        roots_unref(&r);
        return -1;
    }
    roots_unref(&s->warm);
    s->warm = r;
    return 0;
}

int upstreams_warm(struct upstreams *s, struct err *e)
{
    struct tls_trust t = {.roots_pem = dynbuf_span(&s->system), .crl_pem = dynbuf_span(&s->system_crl)};
    return t.roots_pem.n == 0 ? 0 : warm(s, &t, e);
}

int upstreams_system(struct upstreams *s, struct span roots, struct span crl, struct err *e)
{
    struct tls_trust t = {.roots_pem = roots, .crl_pem = crl};
    if (roots.n > SYSTEM_MAX || crl.n > SYSTEM_MAX)
        return err_set(e, "they have more than %d bytes", SYSTEM_MAX);
    if (roots.n == 0)
        roots_unref(&s->warm);
    else if (warm(s, &t, e) != 0)
        return -1;
    s->changes++;
    dynbuf_reset(&s->system);
    dynbuf_reset(&s->system_crl);
    /* Without memory for them no server that needs them is trusted any more. */
    (void)dynbuf_add(&s->system, roots);
    (void)dynbuf_add(&s->system_crl, crl);
    for (size_t i = 0; i < WIRE_UPSTREAMS_MAX; i++)
        if (s->slot[i] != NULL && s->slot[i]->trust.roots_pem.n == 0)
            roots_unref(&s->slot[i]->roots);
    return 0;
}

struct tls_client *upstream_tls(struct upstreams *s, struct upstream *u, struct err *e)
{
    struct tls_trust t = u->trust;
    if (t.roots_pem.n == 0) { /* the operator's lists are those of the operator's roots */
        t.roots_pem = dynbuf_span(&s->system);
        if (t.crl_pem.n == 0)
            t.crl_pem = dynbuf_span(&s->system_crl);
    }
    if (u->roots == NULL && (u->roots = roots_of(s, &t)) == NULL) {
        err_set(e, "no memory for trusted roots");
        return NULL;
    }
    if (u->roots->tls == NULL && t.roots_pem.n == 0)
        err_set(e, "no trusted roots: install ca-certificates, or name the CA in the policy's upstreams:");
    else if (u->roots->tls == NULL)
        u->roots->tls = client_new(&t, u->trust.roots_pem.n ? u->host : SPAN_NONE, e);
    return u->roots->tls;
}

static int fill_trust(struct upstream *u, const struct wire_upstream *w, struct err *e)
{
    struct tls_trust *t = &u->trust;
    t->roots_pem = arena_copy(&u->a, w->ca_pem);
    t->crl_pem = arena_copy(&u->a, w->crl_pem);
    t->only_13 = w->only_tls13;
    bool whole = t->roots_pem.n == w->ca_pem.n && t->crl_pem.n == w->crl_pem.n && w->npins <= TLS_PINS_MAX;
    for (; whole && t->npins < w->npins; t->npins++) {
        t->pin[t->npins] = arena_copy(&u->a, w->pin[t->npins]);
        whole = t->pin[t->npins].n == w->pin[t->npins].n;
    }
    return whole ? 0 : err_set(e, "no memory for whom to trust");
}

static int fill(struct upstream *u, const struct wire_upstream *w, struct err *e)
{
    u->number = w->number;
    u->port = w->port;
    u->scheme = arena_copy(&u->a, w->scheme);
    u->host = arena_copy(&u->a, w->host);
    u->tls = span_eq(w->scheme, SPAN("https"));
    u->cleartext_credentials = w->cleartext_credentials;
    u->has_secrets = w->has_secrets;
    u->bound = w->place;
    for (u->ncidrs = 0; u->ncidrs < w->ncidrs; u->ncidrs++) {
        u->cidr_text[u->ncidrs] = arena_copy(&u->a, w->cidr[u->ncidrs]);
        if (cidr_parse(u->cidr_text[u->ncidrs], &u->cidr[u->ncidrs]) != 0)
            return err_set(e, "a network in allow_private is none; write it as 10.0.0.0/8");
    }
    if (u->scheme.n == 0 || u->host.n == 0 || u->port == 0)
        return err_set(e, "an upstream without scheme, host or port, or no memory");
    if (!u->tls && !span_eq(w->scheme, SPAN("http")))
        return err_set(e, "an upstream is http or https");
    if (fill_trust(u, w, e) != 0)
        return -1;
    struct span literal = w->address.n ? w->address : w->host;
    u->literal = addr_parse(literal, &u->addr[0]) == 0;
    u->naddr = u->literal;
    if (w->address.n && !u->literal)
        return err_set(e, "the policy's address of this upstream is none; write it as 192.0.2.1 or 2001:db8::1");
    return 0;
}

int upstreams_put(struct upstreams *s, const struct wire_upstream *w, struct err *e)
{
    struct upstream **at = &s->slot[w->number % WIRE_UPSTREAMS_MAX];
    upstream_unref(at);
    struct upstream *u = calloc(1, sizeof(*u));
    if (u == NULL)
        return err_set(e, "no memory for an upstream");
    u->refs = 1;
    arena_init(&u->a, 512 * 1024);
    if (fill(u, w, e) != 0) {
        upstream_unref(&u);
        return -1;
    }
    *at = u;
    return 0;
}

struct upstream *upstreams_get(struct upstreams *s, uint32_t number)
{
    struct upstream *u = s->slot[number % WIRE_UPSTREAMS_MAX];
    if (u == NULL || u->number != number)
        return NULL;
    u->refs++;
    return u;
}
