#include "proxy/judge/leases/swap.h"

#include "common/lease/wire_lease.h"
#include "proxy/identity.h"
#include "proxy/judge/leases/check.h"
#include "proxy/judge/post.h"
#include "proxy/lease/wire_swap.h"

enum { WHY_MAX = 512 };
#define LIFETIME_MS     (5 * 60 * 1000)       /* where neither answer nor policy says: as of a source that is asked */
#define LIFETIME_MAX_MS (24ull * 3600 * 1000) /* where the answer says more */

_Static_assert((int)ANSWER_POINTERS_MAX <= (int)SWAP_POINTERS_MAX && (int)ANSWER_TOKENS_MAX <= (int)SWAPS_MAX,
               "as many as a policy may name");

/* asking: the request's credential; the certificate that is shown with it asks too. */
static bool is_answer_to(const struct policy *p, const struct credential *c, const struct credential *asking)
{
    struct setting s;
    bool is = false;
    for (size_t i = 0; c->source == SOURCE_ANSWER && !is && policy_setting(p, c, i, &s); i++)
        is = span_eq(s.key, SPAN("to")) &&
             (span_eq(s.value, asking->name) || (asking->beside.n && span_eq(s.value, asking->beside)));
    return is;
}

static bool asking_of(const struct exchange *x, struct credential *c)
{
    return x->now.d.credential >= 0 && policy_credential(x->now.image->policy, (size_t)x->now.d.credential, c);
}

struct span swap_challenge(const struct policy *p, const struct credential *c)
{
    struct setting s;
    for (size_t i = 0; c->source == SOURCE_ANSWER && policy_setting(p, c, i, &s); i++)
        if (span_eq(s.key, SPAN("challenge")))
            return s.value;
    return SPAN_NONE;
}

bool swap_is_token(const struct exchange *x)
{
    struct credential c;
    return x->now.image != NULL && x->now.image->answers && x->now.d.credential >= 0 &&
           policy_credential(x->now.image->policy, (size_t)x->now.d.credential, &c) && c.source == SOURCE_ANSWER;
}

static void fill(const struct policy *p, const struct credential *c, struct wire_swap *w)
{
    struct setting s;
    *w = (struct wire_swap){.credential = c->name};
    for (size_t i = 0; policy_setting(p, c, i, &s); i++) {
        if (span_eq(s.key, SPAN("token")) && w->ntoken < SWAP_POINTERS_MAX)
            w->token[w->ntoken++] = s.value;
        else if (span_eq(s.key, SPAN("keep")) && w->nkeep < SWAP_POINTERS_MAX)
            w->keep[w->nkeep++] = s.value;
        else if (span_eq(s.key, SPAN("expires_in")))
            w->expires = s.value;
        else if (span_eq(s.key, SPAN("expires_at")))
            w->ends = s.value;
        else if (span_eq(s.key, SPAN("key")))
            w->key = s.value;
        else if (span_eq(s.key, SPAN("session_token")))
            w->session = s.value;
        else if (span_eq(s.key, SPAN("lifetime")) && span_u64(s.value, UINT64_MAX, &w->lifetime_ms) != 0)
            w->lifetime_ms = 0; /* refused where it is read */
    }
    if (w->lifetime_ms == 0)
        w->lifetime_ms = w->expires.n || w->ends.n ? LIFETIME_MAX_MS : LIFETIME_MS;
}

int swap_put(struct exchange *x, struct span *out)
{
    const struct policy *p = x->now.image->policy;
    struct wire_swap w;
    struct credential c, asking;
    struct dynbuf b;
    uint8_t n = 0;
    *out = SPAN_NONE;
    if (x->now.credential.n == 0 || !x->now.image->answers || !asking_of(x, &asking))
        return 0;
    dynbuf_init(&b, WIRE_SWAPS_BYTES);
    msg_put_u8(&b, 0);
    for (size_t i = 0; policy_credential(p, i, &c); i++)
        if (is_answer_to(p, &c, &asking)) {
            fill(p, &c, &w);
            wire_put_swap(&b, &w);
            n++;
        }
    if (n > SWAPS_MAX || !dynbuf_ok(&b)) {
        dynbuf_free(&b);
        return -1;
    }
    b.p[0] = n;
    if (n > 0)
        *out = arena_copy(&x->arena, dynbuf_span(&b));
    dynbuf_free(&b);
    return n == 0 || out->n > 0 ? 0 : -1;
}

/* Whose it is, and what for: all that is known here. */
static int lease_for(const struct exchange *x, const struct wire_swapped *w, struct wire_lease *l)
{
    const struct policy *p = x->now.image->policy;
    uint64_t end = lease_holder_end(x); /* with what it was asked for, as with all of that one */
    struct credential c, asking;
    for (size_t i = 0; asking_of(x, &asking) && policy_credential(p, i, &c); i++) {
        if (!span_eq(c.name, w->credential))
            continue;
        *l = (struct wire_lease){.id = w->lease,
                                 .parent = x->lease,
                                 .sandbox = x->sandbox->name,
                                 .session = x->sandbox->session,
                                 .generation = x->sandbox->generation,
                                 .credential = w->credential,
                                 .by = SPAN(LEASE_BY_ANSWER),
                                 .text = w->text,
                                 .tag = w->tag,
                                 .format = c.lease,
                                 .state = LEASE_LIVE,
                                 .expires_ms = end != 0 && end < w->expires_ms ? end : w->expires_ms};
        return is_answer_to(p, &c, &asking) ? identity_of_credential(p, i, &l->meaning) : -1;
    }
    return -1;
}

static void say(struct judge *j, uint64_t xid, bool ok, struct span why)
{
    struct dynbuf *b = post_begin(j, ROLE_CARRIER, 0, M_SWAP_TAKE, xid);
    msg_put_u8(b, ok);
    msg_put_span(b, why);
    post_send(j, "whether an answer's tokens are leases now could not be said to the carrier");
}

int swap_take(struct exchange *x, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct wire_swapped w[SWAPS_MAX];
    static struct wire_lease l[SWAPS_MAX]; /* too large for a stack */
    uint8_t n = msg_get_u8(&m);
    if (n == 0 || n > SWAPS_MAX || x->now.image == NULL || x->sandbox == NULL)
        return -1;
    for (uint8_t i = 0; i < n; i++)
        if (wire_get_swapped(&m, &w[i]) != 0 || lease_for(x, &w[i], &l[i]) != 0)
            return -1;
    if (msg_end(&m) != 0)
        return -1;
    struct dynbuf *b = post_begin(x->judge, ROLE_LEDGER, 0, M_LEASE_TAKE, x->xid);
    msg_put_u8(b, n);
    for (uint8_t i = 0; i < n; i++)
        wire_put_lease(b, &l[i]);
    if (post_commit(x->judge, -1) != 0)
        say(x->judge, x->xid, false, SPAN("the ledger does not run at the moment"));
    return 0;
}

int swap_leases_told(struct judge *j, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct dynbuf *b = NULL;
    struct wire_lease w;
    uint16_t n = msg_get_u16(&m);
    for (uint16_t i = 0; i < n; i++) {
        if (wire_get_lease(&m, &w) != 0)
            return -1;
        if (w.state == LEASE_LIVE || !span_eq(w.by, SPAN(LEASE_BY_ANSWER)))
            continue;
        if (b == NULL)
            b = post_begin(j, ROLE_KEEPER, 0, M_TOKEN_END, 0);
        msg_put_id(b, &w.id);
    }
    if (b != NULL)
        post_send(j, "dead leases could not be told to the keeper, which has their tokens until they end");
    return 0;
}

int swap_taken(struct judge *j, uint64_t xid, struct span payload)
{
    struct msg_in m = msg_in(payload);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    struct exchange *x = exchange_find(j, xid);
    if (msg_end(&m) != 0)
        return -1;
    if (x != NULL && x->wait == X_RESULT)
        say(j, xid, ok, span_first(why, 256));
    return 0;
}
