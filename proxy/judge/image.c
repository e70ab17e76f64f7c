#include "proxy/judge/image.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/memfd.h"

enum { IMAGE_MAX = 64 * 1024 * 1024 };

struct image *image_ref(struct image *i)
{
    i->refs++;
    return i;
}

void image_unref(struct image *i)
{
    if (i == NULL || --i->refs > 0)
        return;
    if (i->policy)
        policy_close(i->policy);
    memfd_unmap(&i->map);
    arena_free(&i->arena);
    free(i);
}

struct image *image_open(int fd, const struct digest *want, struct err *e)
{
    struct image *i = calloc(1, sizeof(*i));
    if (i == NULL) {
        err_set(e, "no memory for a policy");
        return NULL;
    }
    i->refs = 1;
    arena_init(&i->arena, 64 * 1024 * 1024);
    if (memfd_map(fd, IMAGE_MAX, &i->map) != 0) {
        err_set(e, "its image cannot be mapped, or is not a memfd with all its seals");
        goto bad;
    }
    i->policy = policy_open(i->map, e);
    if (i->policy == NULL)
        goto bad;
    struct span stamp = policy_digest(i->policy);
    if (stamp.n != DIGEST_BYTES || memcmp(stamp.p, want->b, DIGEST_BYTES) != 0) {
        err_set(e, "its image is another one than announced");
        goto bad;
    }
    i->digest = *want;
    return i;
bad:
    image_unref(i);
    return NULL;
}

static unsigned bucket_of(const struct wire_request *r)
{
    uint32_t h = 2166136261u ^ r->port ^ (uint32_t)(r->scheme.n << 16);
    for (size_t k = 0; k < r->host.n; k++)
        h = (h ^ r->host.p[k]) * 16777619u;
    return h % UPSTREAM_BUCKETS;
}

static int tell(struct judge *j, struct image *i, struct upstream_ref *u)
{
    struct upstream say = {0};
    struct wire_upstream w = {.number = u->number, .scheme = u->scheme, .host = u->host, .port = u->port};
    int rc = -1;
    struct arena a;
    arena_init(&a, 256 * 1024);
    if (policy_upstream(i->policy, u->host, u->port, &a, &say)) {
        w.address = say.address;
        w.ca_pem = say.ca_pem;
        w.crl_pem = say.crl_pem;
        w.only_tls13 = say.only_tls13;
        w.cleartext_credentials = say.cleartext_credentials;
        /* Never fewer pins: without the right one every certificate would do. */
        if (say.npins > sizeof(w.pin) / sizeof(w.pin[0]) || (say.npins > 0 && say.pin == NULL))
            goto out;
        for (; w.npins < say.npins; w.npins++)
            w.pin[w.npins] = say.pin[w.npins];
        /* Fewer private ranges than the policy names refuses more, never less. */
        for (; w.ncidrs < say.nallow_private && w.ncidrs < sizeof(w.cidr) / sizeof(w.cidr[0]); w.ncidrs++)
            w.cidr[w.ncidrs] = say.allow_private[w.ncidrs];
    }
    u->cleartext = say.cleartext_credentials;
    u->bound = policy_host_bound(i->policy, u->scheme, u->host, u->port);
    w.has_secrets = u->bound;
    struct dynbuf *b = j->ports.begin(j->ports.arg, ROLE_CARRIER, 0, M_UPSTREAM, 0);
    if (b == NULL)
        goto out;
    wire_put_upstream(b, &w);
    rc = j->ports.commit(j->ports.arg, ROLE_CARRIER, 0, -1);
out:
    arena_free(&a);
    if (rc == 0)
        u->told = j->carrier_boot;
    return rc;
}

static struct upstream_ref *add(struct judge *j, struct image *i, const struct wire_request *r, unsigned bucket)
{
    if (i->nupstreams >= UPSTREAMS_MAX)
        return NULL;
    struct upstream_ref *u = arena_alloc(&i->arena, sizeof(*u));
    if (u == NULL)
        return NULL;
    u->scheme = span_eq(r->scheme, SPAN("https")) ? SPAN("https") : SPAN("http");
    u->host = arena_copy(&i->arena, r->host);
    u->port = r->port;
    u->number = ++j->upstreams;
    if (u->host.n != r->host.n)
        return NULL;
    u->next = i->upstream[bucket];
    i->upstream[bucket] = u;
    i->nupstreams++;
    return u;
}

struct upstream_ref *image_upstream(struct judge *j, struct image *i, const struct wire_request *r)
{
    unsigned bucket = bucket_of(r);
    struct upstream_ref *u = i->upstream[bucket];
    if (!j->carrier)
        return NULL;
    while (u != NULL && !(u->port == r->port && span_eq(u->host, r->host) && span_eq(u->scheme, r->scheme)))
        u = u->next;
    if (u == NULL)
        u = add(j, i, r, bucket);
    if (u != NULL && u->told != j->carrier_boot && tell(j, i, u) != 0)
        return NULL;
    return u;
}

bool upstream_is_live(const struct judge *j, const struct upstream_ref *u, int credential)
{
    uint64_t now = j->ports.now(j->ports.arg);
    for (unsigned k = 0; k < UPSTREAM_LIVE; k++)
        if (u->live[k].boot == j->carrier_boot && u->live[k].credential == credential &&
            now - u->live[k].at < RELEASE_LIVE_MS)
            return true;
    return false;
}

void upstream_set_live(const struct judge *j, struct upstream_ref *u, int credential, bool live)
{
    unsigned at = 0;
    for (unsigned k = 0; k < UPSTREAM_LIVE; k++) {
        if (u->live[k].boot != 0 && u->live[k].credential == credential) {
            at = k;
            break;
        }
        if (u->live[k].at < u->live[at].at)
            at = k;
    }
    if (live) {
        u->live[at].boot = j->carrier_boot;
        u->live[at].credential = credential;
        u->live[at].at = j->ports.now(j->ports.arg);
    } else if (u->live[at].credential == credential) {
        u->live[at].boot = 0;
        u->live[at].at = 0;
    }
}
