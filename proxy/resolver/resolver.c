#include "proxy/resolver/resolver.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/msgs.h"

struct ask {
    struct ask *next;
    struct resolver *resolver;
    unsigned who;
    uint64_t id, until;
    bool told; /* answered already; only the name server's word is still to come */
    char name[HTTP_HOST_MAX + 1];
    struct cidr cidr[CIDRS_MAX];
    size_t ncidrs;
};

/* ---- the filter ---- */

enum verdict resolver_judge(const struct resolver *r, const struct addr *a, size_t n, const struct cidr *allowed,
                            size_t ncidrs)
{
    for (size_t i = 0; i < n; i++) {
        struct addr inner = addr_unwrap(&a[i]);
        if (!addr_may_dial(&a[i], allowed, ncidrs))
            return VERDICT_PRIVATE;
        if (addr_among(&inner, r->own, r->nown) && !cidrs_have(allowed, ncidrs, &inner))
            return VERDICT_PRIVATE;
    }
    return n > 0 ? VERDICT_FINE : VERDICT_PRIVATE;
}

/* ---- answers ---- */

static void tell(struct ask *a, const struct addr *addr, size_t n, const char *code, const char *why)
{
    struct chan *c = a->resolver->peer[a->who];
    struct dynbuf *b = a->told || c == NULL ? NULL : chan_begin(c, M_ADDRESSES, a->id);
    a->told = true;
    if (b == NULL)
        return;
    n = n < ANSWER_ADDRS ? n : ANSWER_ADDRS;
    msg_put_u8(b, (uint8_t)n);
    for (size_t i = 0; i < n; i++) {
        msg_put_u8(b, (uint8_t)addr[i].family);
        msg_put_span(b, span_of(addr[i].b, addr_bytes(&addr[i])));
    }
    if (n == 0) {
        msg_put_span(b, span_str(code));
        msg_put_span(b, span_str(why));
    }
    (void)chan_commit(c);
}

static void found(struct ask *a, const struct addr *addr, size_t n)
{
    if (resolver_judge(a->resolver, addr, n, a->cidr, a->ncidrs) == VERDICT_FINE)
        tell(a, addr, n, NULL, NULL);
    else
        tell(a, NULL, 0, "private-address",
             "the host has a private address; if that is meant, name its network in allow_private of this upstream");
}

static void forget(struct ask *a)
{
    for (struct ask **at = &a->resolver->asks; *at != NULL; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            a->resolver->nasks--;
            break;
        }
    free(a);
}

static struct missing *missing_of(struct resolver *r, const char *name)
{
    uint32_t h = 2166136261u;
    for (const char *p = name; *p != '\0'; p++)
        h = (h ^ (uint8_t)*p) * 16777619u;
    return &r->missing[h % MISSING_MAX];
}

static void on_dns(void *arg, enum dns_result result, const struct addr *addr, size_t n)
{
    struct ask *a = arg;
    struct resolver *r = a->resolver;
    if (result == DNS_FOUND) {
        found(a, addr, n);
    } else if (result == DNS_NOT_FOUND) {
        struct missing *m = missing_of(r, a->name);
        memcpy(m->name, a->name, sizeof(m->name));
        m->until = loop_now(r->loop) + MISSING_MS;
        tell(a, NULL, 0, "name-not-found", "there is no such host name");
    } else {
        tell(a, NULL, 0, "dns-failed", "the name server did not answer, or not sensibly; try again shortly");
    }
    forget(a);
}

/* ---- questions ---- */

static int read_ask(struct ask *a, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span host = msg_get_span(&m, HTTP_HOST_MAX);
    size_t n, count = msg_get_u16(&m);
    if (count > CIDRS_MAX || http_canonical_host(host, a->name, &n) != 0)
        return -1;
    a->name[n] = '\0';
    for (a->ncidrs = 0; a->ncidrs < count; a->ncidrs++)
        if (cidr_parse(msg_get_span(&m, 64), &a->cidr[a->ncidrs]) != 0)
            return -1;
    return msg_end(&m);
}

static void go(struct resolver *r, struct ask *a)
{
    struct addr literal;
    const struct missing *m = missing_of(r, a->name);
    if (addr_parse(span_str(a->name), &literal) == 0) {
        found(a, &literal, 1);
        forget(a);
    } else if (m->until > loop_now(r->loop) && strcmp(m->name, a->name) == 0) {
        tell(a, NULL, 0, "name-not-found", "there is no such host name");
        forget(a);
    } else {
        dns_ask(r->dns, a->name, on_dns, a);
    }
}

static void on_frame(void *arg, struct chan *c, struct frame *f)
{
    struct resolver *r = arg;
    struct ask *a = f->type == M_RESOLVE ? calloc(1, sizeof(*a)) : NULL;
    if (a == NULL) {
        log_error("message %u cannot be answered", f->type);
        return;
    }
    a->resolver = r;
    while (a->who + 1 < RESOLVER_PEERS && r->peer[a->who] != c)
        a->who++;
    a->id = f->id;
    a->until = loop_now(r->loop) + ASK_MS;
    a->next = r->asks;
    r->asks = a;
    r->nasks++;
    if (read_ask(a, f) != 0) {
        tell(a, NULL, 0, "name-not-found", "that is not a host name");
        forget(a);
    } else if (r->nasks > ASKS_MAX) {
        tell(a, NULL, 0, "dns-failed", "too many names are being resolved; try again shortly");
        forget(a);
    } else {
        go(r, a);
    }
}

static void on_gone(void *arg, struct chan *c)
{
    struct resolver *r = arg;
    unsigned who = 0;
    while (who + 1 < RESOLVER_PEERS && r->peer[who] != c)
        who++;
    chan_free(&r->peer[who]);
    for (struct ask *a = r->asks; a != NULL; a = a->next)
        a->told |= a->who == who;
}

void resolver_peer(struct resolver *r, unsigned who, int fd)
{
    static const struct chan_ops ops = {on_frame, on_gone};
    if (r->peer[who] != NULL)
        on_gone(r, r->peer[who]);
    r->peer[who] = chan_new(r->loop, fd, &ops, r);
}

static void sweep(void *arg)
{
    struct resolver *r = arg;
    uint64_t now = loop_now(r->loop);
    for (struct ask *a = r->asks; a != NULL; a = a->next)
        if (!a->told && a->until <= now)
            tell(a, NULL, 0, "dns-failed", "the name server did not answer in time; try again shortly");
    timer_set(r->sweep, 1000);
}

/* ---- life ---- */

static int own_one(struct resolver *r, struct span item)
{
    struct addr a;
    size_t colon = item.n;
    if (span_starts(item, SPAN("localhost")))
        return 0; /* loopback is private anyway */
    while (colon > 0 && item.p[colon - 1] != ':')
        colon--;
    if (addr_parse(item, &a) != 0 && (colon == 0 || addr_parse(span_first(item, colon - 1), &a) != 0))
        return -1;
    if (addr_class(&a) == ADDR_BAD) /* 0.0.0.0: all of this machine's, which are known */
        return 0;
    if (r->nown == OWN_MAX)
        return -1;
    r->own[r->nown++] = a;
    return 0;
}

int resolver_own(struct resolver *r, struct span list)
{
    while (list.n) {
        struct span item;
        (void)span_cut(list, ' ', &item, &list);
        if (item.n && own_one(r, item) != 0)
            return -1;
    }
    return 0;
}

struct resolver *resolver_new(struct loop *l, const char *servers, struct err *e)
{
    struct resolver *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        err_set(e, "no memory for the resolver");
        return NULL;
    }
    r->loop = l;
    int n = addr_own(r->own, OWN_MAX);
    r->nown = n > 0 ? (size_t)n : 0;
    r->sweep = timer_new(l, sweep, r);
    r->dns = dns_new(l, servers, e);
    if (n < 0 || n > OWN_MAX)
        err_set(e, "the addresses of this machine cannot be listed");
    if (n < 0 || n > OWN_MAX || r->sweep == NULL || r->dns == NULL)
        resolver_free(&r);
    else
        timer_set(r->sweep, 1000);
    return r;
}

void resolver_free(struct resolver **at)
{
    struct resolver *r = *at;
    *at = NULL;
    if (r == NULL)
        return;
    for (unsigned i = 0; i < RESOLVER_PEERS; i++)
        chan_free(&r->peer[i]);
    dns_free(&r->dns);
    while (r->asks != NULL)
        forget(r->asks);
    timer_free(&r->sweep);
    free(r);
}
