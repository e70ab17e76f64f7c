#include "proxy/carrier/upstream/names.h"

#include <stdlib.h>

#include "common/msg.h"
#include "proxy/msgs.h"

struct name_ask {
    struct name_ask *next;
    uint64_t id, until;
    bool sent; /* no: there was no resolver; it is asked as soon as there is one */
    struct upstream *upstream;
    names_fn *fn;
    void *arg;
};

void names_init(struct names *n, struct loop *l)
{
    *n = (struct names){.loop = l, .next_id = 1};
}

/* ---- our own addresses ---- */

static bool is_any(const struct addr *a)
{
    static const uint8_t none[16];
    return memcmp(a->b, none, addr_bytes(a)) == 0;
}

int names_own(struct names *n, struct span list)
{
    while (list.n) {
        struct span item;
        struct addr a;
        uint64_t port;
        (void)span_cut(list, ' ', &item, &list);
        if (item.n == 0)
            continue;
        size_t colon = item.n;
        while (colon > 0 && item.p[colon - 1] != ':')
            colon--;
        struct span host = span_first(item, colon ? colon - 1 : 0);
        if (span_eq(host, SPAN("localhost")))
            host = SPAN("127.0.0.1");
        if (colon == 0 || span_u64(span_from(item, colon), 65535, &port) != 0 || addr_parse(host, &a) != 0 ||
            n->nown == NAMES_OWN_MAX)
            return -1;
        n->own[n->nown++] = (struct own){a, (uint16_t)port, is_any(&a)};
    }
    return 0;
}

int names_own_interfaces(struct names *n)
{
    int count = addr_own(n->interface, NAMES_OWN_MAX);
    if (count < 0 || count > NAMES_OWN_MAX)
        return -1;
    n->ninterfaces = (size_t)count;
    return 0;
}

/* Our own proxy port or desk, at any of this machine's addresses. */
static bool is_listener(const struct names *n, const struct addr *a, uint16_t port)
{
    for (size_t i = 0; i < n->nown; i++) {
        const struct own *o = &n->own[i];
        bool ours = addr_eq(&o->addr, a) ||
                    (o->any && (addr_class(a) == ADDR_LOOPBACK || addr_among(a, n->interface, n->ninterfaces)));
        if (o->port == port && ours)
            return true;
    }
    return false;
}

bool names_allowed(const struct upstream *u, const struct addr *a)
{
    return cidrs_have(u->cidr, u->ncidrs, a);
}

/* Every address, or none: one that may not be dialled condemns the name (C14). */
static bool check(const struct names *n, const struct upstream *u, struct span *code, struct span *why)
{
    *code = SPAN("private-address");
    for (size_t i = 0; i < u->naddr; i++) {
        struct addr a = addr_unwrap(&u->addr[i]);
        if (is_listener(n, &a, u->port)) {
            *why = SPAN("the host's address is the gateway's own");
            return false;
        }
        if (!addr_may_dial(&u->addr[i], u->cidr, u->ncidrs) ||
            (addr_among(&a, n->interface, n->ninterfaces) && !names_allowed(u, &a))) {
            *why = SPAN("the host has a private address; if that is meant, name its network in allow_private of "
                        "this upstream");
            return false;
        }
    }
    *code = *why = SPAN_NONE;
    return true;
}

/* ---- questions ---- */

static void drop(struct names *n, struct name_ask *a)
{
    upstream_unref(&a->upstream);
    free(a);
    n->npending--;
}

static void answer(struct names *n, struct name_ask *a, struct span code, struct span why)
{
    names_fn *fn = a->fn;
    void *arg = a->arg;
    drop(n, a);
    fn(arg, code, why);
}

static struct name_ask *take(struct names *n, uint64_t id)
{
    for (struct name_ask **at = &n->pending; *at != NULL; at = &(*at)->next)
        if ((*at)->id == id) {
            struct name_ask *a = *at;
            *at = a->next;
            return a;
        }
    return NULL;
}

static void send_ask(struct names *n, struct name_ask *a)
{
    const struct upstream *u = a->upstream;
    struct dynbuf *b = n->chan != NULL ? chan_begin(n->chan, M_RESOLVE, a->id) : NULL;
    if (b == NULL)
        return;
    msg_put_span(b, u->host);
    msg_put_u16(b, (uint16_t)u->ncidrs);
    for (size_t i = 0; i < u->ncidrs; i++)
        msg_put_span(b, u->cidr_text[i]);
    a->sent = chan_commit(n->chan) == 0;
}

/* Names that mean something else on every network: of this machine, this cluster, this container host (C36). */
static bool is_local_name(struct span host)
{
    static const char *const zones[] = {".localhost", ".local",         ".internal", ".lan",
                                        ".intranet",  ".corp",          ".home",     ".home.arpa",
                                        ".private",   ".cluster.local", NULL};
    if (span_index(host, '.') == host.n)
        return true;
    for (size_t i = 0; zones[i] != NULL; i++)
        if (span_ends(host, span_str(zones[i])))
            return true;
    return false;
}

enum names_result names_ask(struct names *n, struct upstream *u, bool fresh, names_fn *fn, void *arg,
                            struct span *code, struct span *why)
{
    uint64_t now = loop_now(n->loop);
    if (u->literal || (!fresh && u->naddr > 0 && now - u->resolved < NAMES_FRESH_MS))
        return check(n, u, code, why) ? NAMES_HERE : NAMES_REFUSED;
    if (u->ncidrs == 0 && is_local_name(u->host)) {
        *code = SPAN("private-address");
        *why = SPAN("the name is one of a local network; if that is meant, give this upstream an address or name its "
                    "network in allow_private");
        return NAMES_REFUSED;
    }
    *code = SPAN("dns-failed");
    *why = SPAN("names cannot be resolved now; try again shortly");
    struct name_ask *a = n->npending < NAMES_PENDING_MAX ? malloc(sizeof(*a)) : NULL;
    if (a == NULL)
        return NAMES_REFUSED;
    *a = (struct name_ask){n->pending, n->next_id++, now + NAMES_WAIT_MS, false, u, fn, arg};
    u->refs++;
    send_ask(n, a);
    n->pending = a;
    n->npending++;
    return NAMES_ASKED;
}

static int read_addresses(struct msg_in *m, struct upstream *u)
{
    size_t count = msg_get_u8(m);
    u->naddr = 0;
    for (size_t i = 0; i < count && !m->bad; i++) {
        struct addr a;
        uint8_t family = msg_get_u8(m);
        if (addr_from_bytes(family, msg_get_span(m, 16), &a) != 0)
            return -1;
        if (u->naddr < UPSTREAM_ADDRS)
            u->addr[u->naddr++] = a;
    }
    return m->bad ? -1 : 0;
}

int names_frame(struct names *n, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span code = SPAN_NONE, why = SPAN_NONE;
    if (f->type != M_ADDRESSES)
        return -1;
    struct name_ask *a = take(n, f->id);
    if (a == NULL) /* its asker is gone */
        return 0;
    struct upstream *u = a->upstream;
    int bad = read_addresses(&m, u);
    if (bad == 0 && u->naddr == 0) {
        code = msg_get_span(&m, 64);
        why = msg_get_span(&m, 256);
        bad = code.n == 0 ? -1 : 0;
    }
    if (bad != 0 || msg_end(&m) != 0) {
        u->naddr = 0;
        answer(n, a, SPAN("dns-failed"), SPAN("the resolver's answer cannot be understood"));
        return -1;
    }
    u->resolved = loop_now(n->loop);
    if (u->naddr > 0 && !check(n, u, &code, &why))
        u->naddr = 0;
    answer(n, a, code, why);
    return 0;
}

/* The first pending question that one of these holds for: sent, due by then, or of this asker. */
static struct name_ask *first(struct names *n, bool sent, uint64_t due, const void *arg)
{
    struct name_ask *a = n->pending;
    while (a != NULL && !(sent && a->sent) && a->until > due && (arg == NULL || a->arg != arg))
        a = a->next;
    return a == NULL ? NULL : take(n, a->id);
}

void names_forget(struct names *n, void *arg)
{
    for (struct name_ask *a; (a = first(n, false, 0, arg)) != NULL;)
        drop(n, a);
}

/* A resolver that is gone takes its questions with it; those it was never asked wait for the next. */
void names_peer(struct names *n, struct chan *c)
{
    n->chan = c;
    for (struct name_ask *a; c == NULL && (a = first(n, true, 0, NULL)) != NULL;)
        answer(n, a, SPAN("dns-failed"), SPAN("the resolver ended; try again shortly"));
    for (struct name_ask *a = n->pending; c != NULL && a != NULL; a = a->next)
        if (!a->sent)
            send_ask(n, a);
}

void names_expire(struct names *n)
{
    for (struct name_ask *a; (a = first(n, false, loop_now(n->loop), NULL)) != NULL;)
        answer(n, a, SPAN("dns-failed"), SPAN("the name server did not answer in time"));
}

void names_clear(struct names *n)
{
    for (struct name_ask *a; (a = first(n, false, UINT64_MAX, NULL)) != NULL;)
        drop(n, a);
}
