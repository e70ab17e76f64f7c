#include "proxy/judge/accounts/upstreams.h"

#include <stdlib.h>

#include "proxy/identity.h"
#include "proxy/judge/accounts/account.h"
#include "proxy/judge/evaluation/image.h"
#include "proxy/judge/post.h"

enum { BUCKETS = 1024 };

struct upstreams {
    struct upstream_ref *bucket[BUCKETS];
    struct upstream_ref *newest, *oldest;
    size_t n;
    uint32_t spare[WIRE_UPSTREAMS_MAX]; /* the last number of each place that is free again */
    size_t nspare;
    uint32_t fresh; /* places that never had a number begin here */
};

struct upstreams *upstreams_new(void)
{
    return calloc(1, sizeof(struct upstreams));
}

void upstream_ref_drop(struct upstream_ref *u)
{
    if (u == NULL || --u->refs > 0)
        return;
    account_unref(u->owner);
    free(u);
}

static unsigned bucket_of(const struct wire_request *r)
{
    uint32_t h = 2166136261u ^ r->port ^ (uint32_t)(r->scheme.n << 16);
    for (size_t k = 0; k < r->host.n; k++)
        h = (h ^ r->host.p[k]) * 16777619u;
    return h % BUCKETS;
}

static bool is_to(const struct upstream_ref *u, const struct image *i, const struct wire_request *r)
{
    return u->policy == i->serial && u->port == r->port && span_eq(u->host, r->host) && span_eq(u->scheme, r->scheme);
}

static void unlink_use(struct upstreams *t, struct upstream_ref *u)
{
    *(u->newer ? &u->newer->older : &t->newest) = u->older;
    *(u->older ? &u->older->newer : &t->oldest) = u->newer;
    u->newer = u->older = NULL;
}

static void used_now(struct upstreams *t, struct upstream_ref *u)
{
    u->newer = NULL;
    u->older = t->newest;
    *(t->newest ? &t->newest->newer : &t->oldest) = u;
    t->newest = u;
}

/* Out of the table; who still uses it keeps it, and its number is not given out again. */
static void drop(struct upstreams *t, struct upstream_ref *u)
{
    const struct wire_request key = {.scheme = u->scheme, .host = u->host, .port = u->port};
    struct upstream_ref **at = &t->bucket[bucket_of(&key)];
    while (*at != u)
        at = &(*at)->next;
    *at = u->next;
    unlink_use(t, u);
    t->spare[t->nspare++] = u->number;
    t->n--;
    u->owner->upstreams--;
    upstream_ref_drop(u);
}

void upstreams_forget(struct upstreams *t)
{
    while (t->oldest != NULL)
        drop(t, t->oldest);
}

void upstreams_free(struct upstreams **t)
{
    if (*t != NULL)
        upstreams_forget(*t);
    free(*t);
    *t = NULL;
}

/* The place that goes for one more of this sandbox's, or NULL: there is room. */
static struct upstream_ref *who_goes(const struct upstreams *t, const struct account *a)
{
    struct upstream_ref *u = t->oldest, *goes = NULL;
    if (a->upstreams >= UPSTREAMS_EACH) {
        while (u != NULL && u->owner != a)
            u = u->newer;
        return u;
    }
    for (; t->n == WIRE_UPSTREAMS_MAX && u != NULL; u = u->newer)
        if (goes == NULL || u->owner->upstreams > goes->owner->upstreams)
            goes = u;
    return goes;
}

static struct upstream_ref *add(struct upstreams *t, const struct image *i, struct account *a,
                                const struct wire_request *r)
{
    struct upstream_ref *u = calloc(1, sizeof(*u) + r->host.n), *goes = who_goes(t, a);
    struct upstream_ref **at = &t->bucket[bucket_of(r)];
    if (u == NULL)
        return NULL;
    if (goes != NULL)
        drop(t, goes);
    memcpy(u->host_bytes, r->host.p, r->host.n);
    u->refs = 1;
    u->owner = account_ref(a);
    u->policy = i->serial;
    u->scheme = span_eq(r->scheme, SPAN("https")) ? SPAN("https") : SPAN("http");
    u->host = span_of(u->host_bytes, r->host.n);
    u->port = r->port;
    u->number = (t->nspare > 0 ? t->spare[--t->nspare] : t->fresh++) + WIRE_UPSTREAMS_MAX;
    u->next = *at;
    *at = u;
    used_now(t, u);
    t->n++;
    a->upstreams++;
    return u;
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
    if (identity_of_place(i->policy, u->scheme, u->host, u->port, &u->place) != 0)
        goto out;
    w.place = u->place;
    wire_put_upstream(post_begin(j, ROLE_CARRIER, 0, M_UPSTREAM, 0), &w);
    rc = post_commit(j, -1);
out:
    arena_free(&a);
    if (rc == 0)
        u->told = j->carrier_boot;
    return rc;
}

struct upstream_ref *upstream_of(struct judge *j, struct image *i, struct account *a, const struct wire_request *r)
{
    struct upstreams *t = j->upstreams;
    struct upstream_ref *u = t->bucket[bucket_of(r)];
    if (!j->carrier)
        return NULL;
    while (u != NULL && !is_to(u, i, r))
        u = u->next;
    if (u == NULL) {
        u = add(t, i, a, r);
    } else {
        unlink_use(t, u);
        used_now(t, u);
    }
    if (u == NULL || (u->told != j->carrier_boot && tell(j, i, u) != 0))
        return NULL;
    u->refs++;
    return u;
}

enum reach_said upstream_reach(struct image *i, struct span reach, const struct wire_request *r)
{
    struct upstream say = {0};
    struct arena a;
    if (reach.n == 0)
        return REACH_YES;
    arena_init(&a, 256 * 1024);
    bool known = policy_upstream(i->policy, r->host, r->port, &a, &say);
    enum reach_said by = reach_by_name(reach, r->host, known ? say.address : SPAN_NONE);
    arena_free(&a);
    return by;
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
