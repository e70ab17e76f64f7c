#include <stdlib.h>

#include "proxy/canonical.h"
#include "proxy/judge/accounts/account.h"
#include "proxy/judge/frames/frames.h"
#include "proxy/judge/replies/self_service.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/replies/refuse.h"

/* A leaf lives for days, a front for hours; still, none is used for longer than this. */
enum { LEAF_MS = 12 * 3600 * 1000, LEAF_BYTES_MAX = 8 * 1024 };

int connect_key(struct front *f, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct span spki = msg_get_span(&m, SPKI_MAX);
    if (msg_end(&m) != 0 || spki.n == 0 || f->nspki != 0)
        return -1;
    memcpy(f->spki, spki.p, spki.n);
    f->nspki = spki.n;
    return 0;
}

/* The leaf of a host, moved to the head of the list; NULL if there is none that is young enough. */
static struct leaf *leaf_find(struct judge *j, struct front *f, struct span host)
{
    uint64_t now = j->ports.now(j->ports.arg);
    struct leaf **at = &f->leafs;
    while (*at != NULL && !span_eq((*at)->host, host))
        at = &(*at)->next;
    struct leaf *l = *at;
    if (l == NULL)
        return NULL;
    *at = l->next;
    if (now - l->born > LEAF_MS) {
        free(l);
        f->nleafs--;
        return NULL;
    }
    l->next = f->leafs;
    f->leafs = l;
    return l;
}

static void leaf_keep(struct judge *j, struct front *f, struct span host, struct span der, struct span ca)
{
    struct leaf *l = malloc(sizeof(*l) + host.n + der.n + ca.n);
    if (l == NULL)
        return; /* minted again the next time */
    uint8_t *p = l->bytes;
    l->host = span_of(memcpy(p, host.p, host.n), host.n);
    l->der = span_of(memcpy(p + host.n, der.p, der.n), der.n);
    l->ca = span_of(memcpy(p + host.n + der.n, ca.p, ca.n), ca.n);
    l->born = j->ports.now(j->ports.arg);
    l->next = f->leafs;
    f->leafs = l;
    if (++f->nleafs <= FRONT_LEAFS_MAX)
        return;
    struct leaf **at = &f->leafs;
    while ((*at)->next != NULL)
        at = &(*at)->next;
    free(*at);
    *at = NULL;
    f->nleafs--;
}

static void answer(struct judge *j, struct front *f, uint64_t xid, struct span der, struct span ca)
{
    struct dynbuf *b = post_begin(j, ROLE_FRONT, f->instance, M_LEAF, xid);
    msg_put_span(b, der);
    msg_put_span(b, ca);
    post_send(j, "a leaf could not be given to the front");
}

static void turn_down(struct judge *j, struct front *f, const struct connect *to, enum refuse_why why)
{
    struct wire_reply out;
    struct arena a;
    const char *code = refuse_bare(why, &a, &out);
    struct dynbuf *b = post_begin(j, ROLE_FRONT, f->instance, M_LEAF, to->xid);
    msg_put_span(b, SPAN_NONE);
    msg_put_span(b, SPAN_NONE);
    wire_put_reply(b, &out);
    post_send(j, "a refusal could not be given to the front");
    record_refused(j, f,
                   &(struct refused){to->xid, WALK_INTERCEPT, span_str(code), SPAN("https"),
                                     span_of(to->host, to->nhost), to->port, to->by});
    arena_free(&a);
}

static bool is_waited_for(const struct front *f, struct span host)
{
    for (const struct connect *c = f->connects; c != NULL; c = c->next)
        if (span_eq(span_of(c->host, c->nhost), host))
            return true;
    return false;
}

static int mint(struct judge *j, struct front *f, uint64_t xid, struct span host)
{
    struct dynbuf *b = post_begin(j, ROLE_KEEPER, 0, M_MINT, xid);
    msg_put_span(b, host);
    msg_put_span(b, span_of(f->spki, f->nspki));
    timeshare_spend(&f->sandbox->account->time, j->ports.now(j->ports.arg), ACCOUNT_LEAF_US);
    return post_commit(j, -1);
}

static bool is_named(struct judge *j, const struct subject *who, struct span scheme, struct span host, uint16_t port)
{
    return policy_names_host(j->image->policy, who, scheme, host, port, j->ports.wall(j->ports.arg));
}

/* May a leaf be made at all? A host that no rule names gets one too, out of a small budget, so that the
 * client can be told inside TLS, where its user sees it. A host that is named for http alone is none of those: plain
 * HTTP comes through a CONNECT too, and what it carries is known only behind it. */
static bool may_mint(struct judge *j, struct front *f, struct span scheme, struct span host, uint16_t port)
{
    struct sandbox *s = f->sandbox;
    struct label own[SANDBOX_LABELS];
    struct subject who = sandbox_who(s, f->lane, own);
    if (j->config.shadow || self_service_is(host) ||
        (j->image && (is_named(j, &who, scheme, host, port) || is_named(j, &who, SPAN("http"), host, port) ||
                      policy_stub_host(j->image->policy, scheme, host, port))))
        return true;
    return sandbox_take_leaf(s, j->ports.now(j->ports.arg));
}

int connect_asked(struct judge *j, struct front *f, struct frame *fr)
{
    struct msg_in m = msg_in(fr->payload);
    struct span scheme = msg_get_span(&m, 5), host = msg_get_span(&m, HTTP_HOST_MAX);
    uint16_t port = msg_get_u16(&m);
    if (msg_end(&m) != 0 || !canonical_host(host) || port == 0 || f->nspki == 0)
        return -1;
    struct leaf *l = leaf_find(j, f, host);
    if (l != NULL) {
        answer(j, f, fr->id, l->der, l->ca);
        return 0;
    }
    struct connect to = {.xid = fr->id, .by = frames_step(f, fr->id), .nhost = host.n, .port = port};
    memcpy(to.host, host.p, host.n);
    bool others = is_waited_for(f, host);
    if (f->sandbox == NULL || f->sandbox->account->connects >= FRONT_CONNECTS_MAX) {
        turn_down(j, f, &to, f->sandbox ? REFUSE_TOO_MANY : refuse_unknown(j));
        return 0;
    }
    if (!others && !may_mint(j, f, scheme, host, port)) {
        turn_down(j, f, &to, REFUSE_LEAF_BUDGET);
        return 0;
    }
    struct connect *c = malloc(sizeof(*c));
    if (c == NULL || (!others && mint(j, f, fr->id, host) != 0)) {
        free(c);
        turn_down(j, f, &to, REFUSE_LEAF);
        return 0;
    }
    *c = to;
    c->of = account_ref(f->sandbox->account);
    c->of->connects++;
    c->next = f->connects;
    f->connects = c;
    return 0;
}

static void connect_over(struct connect *c)
{
    c->of->connects--;
    account_unref(c->of);
    free(c);
}

/* All who wait for this host at this front: with a leaf, or refused. */
static void settle(struct judge *j, struct front *f, struct span host, struct span der, struct span ca)
{
    for (struct connect **at = &f->connects; *at != NULL;) {
        struct connect *c = *at;
        if (!span_eq(span_of(c->host, c->nhost), host)) {
            at = &c->next;
            continue;
        }
        if (der.n)
            answer(j, f, c->xid, der, ca);
        else
            turn_down(j, f, c, REFUSE_LEAF);
        *at = c->next;
        connect_over(c);
    }
}

int connect_minted(struct judge *j, struct frame *fr)
{
    struct msg_in m = msg_in(fr->payload);
    struct span der = msg_get_span(&m, LEAF_BYTES_MAX), ca = msg_get_span(&m, LEAF_BYTES_MAX);
    char name[HTTP_HOST_MAX + 1];
    struct front *f = judge_front(j, fr->id >> XID_FRONT_SHIFT);
    const struct connect *c = NULL;
    if (msg_end(&m) != 0)
        return -1;
    for (c = f ? f->connects : NULL; c != NULL && c->xid != fr->id;)
        c = c->next;
    if (c == NULL)
        return 0;
    struct span host = span_of(memcpy(name, c->host, c->nhost), c->nhost);
    if (der.n)
        leaf_keep(j, f, host, der, ca);
    settle(j, f, host, der, ca);
    return 0;
}

void connect_keeper_gone(struct judge *j)
{
    for (struct front *f = j->fronts; f != NULL; f = f->next)
        while (f->connects != NULL) {
            char name[HTTP_HOST_MAX + 1];
            size_t n = f->connects->nhost;
            memcpy(name, f->connects->host, n);
            settle(j, f, span_of(name, n), SPAN_NONE, SPAN_NONE);
        }
}

void connect_forget(struct front *f)
{
    for (struct connect *c = f->connects, *next; c != NULL; c = next) {
        next = c->next;
        connect_over(c);
    }
    for (struct leaf *l = f->leafs, *next; l != NULL; l = next) {
        next = l->next;
        free(l);
    }
    f->connects = NULL;
    f->leafs = NULL;
}
