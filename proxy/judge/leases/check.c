#include "proxy/judge/leases/check.h"

#include <stdio.h>

#include "common/lease/narrowed.h"
#include "common/log.h"
#include "policy/pattern.h"
#include "proxy/identity.h"
#include "proxy/judge/leases/search.h"
#include "proxy/judge/evaluation/signing.h"
#include "proxy/judge/leases/brought.h"
#include "proxy/judge/leases/proof.h"
#include "proxy/judge/leases/swap.h"
#include "proxy/judge/post.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/stubs/stub.h"

static uint64_t wall(const struct exchange *x)
{
    return x->judge->ports.wall(x->judge->ports.arg);
}

/* Its credential in this policy; -1: there is none of that name. */
static int credential_of(const struct image *i, struct span name, struct credential *c)
{
    for (size_t at = 0; policy_credential(i->policy, at, c); at++)
        if (span_eq(c->name, name))
            return (int)at;
    return -1;
}

/* Does this policy mean by the name of its credential what was meant when the lease was made? *at: which it is. Found
 * once for each policy: it is asked of every request, and there may be a thousand credentials. */
static bool is_meant(const struct image *i, struct lease *l, size_t *at)
{
    struct credential c;
    struct digest now;
    *at = 0;
    if (l->meant.policy != i->serial) {
        int found = credential_of(i, l->credential, &c);
        if (found >= 0 && identity_of_credential(i->policy, (size_t)found, &now) != 0)
            return false; /* no memory now */
        l->meant.at = found < 0 ? 0 : (size_t)found;
        l->meant.same = found >= 0 && memcmp(&now, &l->meaning, sizeof(now)) == 0;
        l->meant.policy = i->serial;
    }
    *at = l->meant.at;
    return l->meant.same;
}

/* ---- leaks ---- */

/* In words, what is wrong with who brings it where; NULL: nothing. Of a credential that a reload made another one, or
 * took away, the lease has ended, and its places of now say nothing of where the lease may be. */
static const char *leaked(const struct exchange *x, struct lease *l)
{
    const struct wire_request *r = &x->request;
    size_t at;
    if (!span_eq(l->sandbox, x->sandbox->name) || !span_eq(l->session, x->sandbox->session))
        return "used by another sandbox";
    if (l->generation != x->sandbox->generation)
        return "used by another generation of its sandbox";
    if (is_meant(x->now.image, l, &at) &&
        !policy_credential_bound(x->now.image->policy, at, r->scheme, r->host, r->port))
        return "sent to a place that its credential is not for";
    return NULL;
}

static bool is_own(const struct exchange *x, const struct lease *l)
{
    return span_eq(l->sandbox, x->sandbox->name) && span_eq(l->session, x->sandbox->session);
}

/* Of a pair that signs the text is an id, which shows in logs and on terminals: another sandbox's that turns up is no
 * word of its secret being known, unless something is signed with it (proved: with this one's). Nor is its own
 * sandbox's, signed with or not, at a place that its credential is not for: SDKs sign for all the hosts they speak
 * to, and the secret follows from no signature. What its credential was when a reload has made it another one nobody
 * knows any more; the lease has ended with it. */
static bool is_only_named(const struct exchange *x, struct lease *l, bool proved)
{
    struct credential c;
    size_t at;
    bool known = is_own(x, l) ? l->generation != x->sandbox->generation : proved;
    if (known || !lease_is_pair(l->format))
        return false;
    return !is_meant(x->now.image, l, &at) ||
           (policy_credential(x->now.image->policy, at, &c) && c.sign != SIGN_NONE);
}

static enum refuse_why tell_leak(struct exchange *x, struct lease *l, const char *what)
{
    struct credential c;
    bool freeze = credential_of(x->now.image, l->credential, &c) >= 0 && c.freeze_on_leak;
    if (l->state != LEASE_LEAKED || l->untold) {
        struct dynbuf *b = post_begin(x->judge, ROLE_LEDGER, 0, M_LEASE_LEAK, x->xid);
        msg_put_id(b, &l->id);
        msg_put_span(b, x->sandbox->name);
        msg_put_span(b, x->sandbox->session);
        msg_put_span(b, x->request.host);
        msg_put_u16(b, x->request.port);
        msg_put_span(b, span_str(what));
        msg_put_u8(b, freeze);
        l->untold = x->judge->post.nobody;
        post_send(x->judge, "a leaked lease could not be told to the ledger");
    }
    l->state = LEASE_LEAKED; /* for everybody from now on; the ledger says so of its siblings */
    log_exchange(LOG_WARN, x->xid, "a lease of sandbox %.*s was %s", SPAN_FMT(l->sandbox), what);
    return REFUSE_LEASE_LEAKED;
}

/* ---- bounds ---- */

static bool host_fits(struct span bound, const struct wire_request *r)
{
    struct span host;
    uint16_t port;
    return http_split_authority(bound, &host, &port) == 0 && span_eq(host, r->host) && (port == 0 || port == r->port);
}

static bool one_fits(const struct wire_list *l, struct span s, uint8_t separator)
{
    for (size_t i = 0; i < l->n; i++)
        if (separator ? policy_pattern_fits(l->v[i], s, separator) : span_eq(l->v[i], s))
            return true;
    return l->n == 0;
}

static bool has_effect(const struct wire_layer *l, enum effect e)
{
    return l->effects == 0 || (l->effects >> e & 1) != 0;
}

struct layers {
    const struct wire_layer *v;
    size_t n;
};

/* One thing that the request was judged as. An upgrade is what the rule says, which of_decision asked about. */
static bool judged_fits(const struct judged *j, const struct wire_layer *l)
{
    if (j->overridden && (l->methods.n > 0 || !has_effect(l, EFFECT_WRITE) || !has_effect(l, EFFECT_DELETE)))
        return false;
    return one_fits(&l->methods, j->method, 0) && one_fits(&l->paths, j->path, '/') &&
           one_fits(&l->ops, j->op, '.') && has_effect(l, j->effect);
}

static bool judged_fits_all(const struct judged *j, void *arg)
{
    const struct layers *all = arg;
    bool fits = true;
    for (size_t i = 0; i < all->n && fits; i++)
        fits = judged_fits(j, &all->v[i]);
    return fits;
}

/* What is known of the request already. *more: what else it is judged as counts too. */
static bool of_decision(const struct exchange *x, struct wire_layer *l, bool *more)
{
    const struct wire_request *r = &x->request;
    const struct decision *d = &x->now.d;
    bool host = l->hosts.n == 0;
    for (size_t i = 0; i < l->hosts.n; i++)
        host |= host_fits(l->hosts.v[i], r);
    if (!host || !has_effect(l, d->effect))
        return false;
    if (d->upgrade && d->effect == EFFECT_READ) /* its rule says that it is one */
        l->effects = 0;
    *more |= l->methods.n > 0 || l->paths.n > 0 || l->ops.n > 0 || l->effects != 0;
    return true;
}

/* As a rule that allows must, they hold of everything the request may be taken for. That is worked out once. */
static bool all_fit(struct exchange *x, struct wire_layer *v, size_t n)
{
    struct layers all = {v, n};
    bool more = false;
    for (size_t i = 0; i < n; i++)
        if (!of_decision(x, &v[i], &more))
            return false;
    return !more || exchange_each_judged(x, judged_fits_all, &all);
}

static bool layers_fit(struct exchange *x, const struct lease *l)
{
    struct wire_layer v[LEASE_LAYERS_MAX];
    struct msg_in m = msg_in(l->layers);
    size_t n = 0;
    return wire_get_layers(&m, v, &n) == 0 && all_fit(x, v, n);
}

/* The one it was narrowed from. That of a token in an answer came with a request that brought a lease of another
 * credential: it ends with that one, whose bounds say nothing of it. */
static struct lease *wider(const struct exchange *x, const struct lease *l)
{
    struct lease *up = id_is_none(&l->parent) ? NULL : lease_by_id(x->judge->leases, &l->parent);
    return up != NULL && span_eq(up->credential, l->credential) ? up : NULL;
}

/* Its holder writes the patterns and the path: to find one in the other takes as long as the product of their
 * lengths, and the judge does one thing at a time. What ends in its only wildcards takes no time. */
static bool is_work(const struct exchange *x, const struct wire_layer *v, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < v[i].paths.n; k++) {
            struct span pattern = v[i].paths.v[k];
            bytes += span_index(pattern, '*') + 2 < pattern.n ? pattern.n : 0;
        }
    return bytes * x->request.path.n > LEASE_WORK_MAX;
}

/* And inside of what its holder made of it. */
static enum refuse_why holders_fit(struct exchange *x)
{
    static uint8_t bytes[LEASE_NARROWED_LAYERS][LEASE_NARROWED_BYTES];
    struct wire_layer v[LEASE_NARROWED_LAYERS];
    size_t n = 0;
    for (struct span rest = x->narrowed; rest.n; n++) {
        uint64_t expires_ms;
        if (n == LEASE_NARROWED_LAYERS || lease_narrowed_layer(&rest, bytes[n], &v[n], &expires_ms) != 0)
            return REFUSE_LEASE_BOUNDS;
        if (expires_ms != 0 && expires_ms <= wall(x))
            return REFUSE_LEASE_ENDED;
    }
    return !is_work(x, v, n) && all_fit(x, v, n) ? REFUSE_COUNT : REFUSE_LEASE_BOUNDS;
}

/* It lives, is for the credential as it is now, and the request is inside it and all it came from. */
static enum refuse_why in_order(struct exchange *x, struct lease *l)
{
    size_t at;
    if (!lease_lives(x->judge->leases, l, wall(x)) || !is_meant(x->now.image, l, &at))
        return REFUSE_LEASE_ENDED;
    if (x->now.d.credential < 0 || at != (size_t)x->now.d.credential)
        return REFUSE_LEASE_BOUNDS;
    for (; l != NULL; l = wider(x, l))
        if (!layers_fit(x, l))
            return REFUSE_LEASE_BOUNDS;
    return holders_fit(x);
}

enum refuse_why lease_still(struct exchange *x)
{
    if (id_is_none(&x->lease) || x->judge->config.shadow)
        return REFUSE_COUNT;
    struct lease *l = lease_by_id(x->judge->leases, &x->lease);
    size_t at;
    if (l == NULL || x->now.image == NULL || x->now.d.credential < 0 || leaked(x, l) != NULL)
        return REFUSE_LEASE_ENDED;
    if (x->judge->image != x->now.image && !is_meant(x->judge->image, l, &at)) /* decided before a reload */
        return REFUSE_LEASE_ENDED;
    return in_order(x, l);
}

/* ---- the request ---- */

/* Neither the page nor the record repeats it, whosever it is. */
static void blank(struct exchange *x, const struct lease_hit *hit)
{
    if (hit->in_target) {
        x->request.path = SPAN("/");
        x->request.query = SPAN_NONE;
        x->request.has_query = false;
    }
    if (hit->in_reason) {
        x->reason = SPAN_NONE;
        x->elicit.reason = SPAN_NONE;
    }
}

/* One that stands where none may. A denial by the policy stays that: its words say more. */
static enum refuse_why misplaced(struct exchange *x, const struct lease_hit *hit)
{
    struct lease *l = hit->text.n ? lease_by_text(x->judge->leases, hit->text) : NULL;
    const char *what = l ? leaked(x, l) : NULL;
    bool presigned = hit->in_target && signing_refuses(x) != NULL;
    blank(x, hit);
    if (what != NULL && !is_only_named(x, l, false))
        return tell_leak(x, l, what);
    if (x->now.d.credential < 0 && x->now.d.verdict == VERDICT_DENY && hit->in_field)
        return REFUSE_COUNT;
    if (what != NULL && is_own(x, l))
        return REFUSE_LEASE_BOUNDS;
    return presigned ? REFUSE_SIGN : REFUSE_LEASE_MISPLACED;
}

/* What may be the lease, in its slot: the one text with a tag in it. *n: how many there are. */
static struct span tagged(const struct exchange *x, const struct brought *s, size_t *n)
{
    struct span found = SPAN_NONE;
    bool as_is;
    *n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (lease_find(x->judge->leases, s->text[i], &as_is) < s->text[i].n) {
            found = s->text[i];
            ++*n;
        }
    return found;
}

/* The text alone says nothing where it is the id of a key: what was signed with the key has to be seen first. */
static enum refuse_why prove(struct exchange *x)
{
    if (x->proof == PROOF_WRONG)
        return REFUSE_LEASE_UNPROVEN;
    if (x->now.d.verdict == VERDICT_DENY) /* refused anyway, in words that say more */
        return REFUSE_COUNT;
    exchange_proof(x, PROOF_WANTED);
    return REFUSE_COUNT;
}

/* The lease whose text stands in a slot, or that its holder made it of. */
static struct lease *lease_of(struct exchange *x, const struct brought *s, struct span text)
{
    struct lease *l = lease_by_text(x->judge->leases, text);
    struct lease_narrowed is;
    x->narrowed = SPAN_NONE;
    if (l != NULL || s->claim.scheme != SIGN_NONE || lease_narrowed_read(text, &is) != 0)
        return l;
    l = lease_by_digest(x->judge->leases, &is.of);
    x->narrowed = arena_copy(&x->arena, is.layers);
    return l != NULL && !lease_is_pair(l->format) && x->narrowed.n > 0 ? l : NULL;
}

static enum refuse_why in_slot(struct exchange *x, const struct brought *s, struct span text, size_t n)
{
    struct lease *l = lease_of(x, s, text);
    const char *what = l ? leaked(x, l) : NULL;
    bool narrowed = x->narrowed.n > 0, proved = x->proof == PROOF_GIVEN;
    if (what != NULL && (narrowed ? proved : !is_only_named(x, l, proved)))
        return tell_leak(x, l, what);
    if (what != NULL && is_own(x, l) && !narrowed)
        return REFUSE_LEASE_BOUNDS;
    if (n > 1 || s->twice)
        return REFUSE_LEASE_MISPLACED;
    if (l == NULL)
        return REFUSE_LEASE_UNKNOWN;
    enum refuse_why why = what != NULL ? REFUSE_COUNT : in_order(x, l);
    if (why != REFUSE_COUNT)
        return why;
    if ((s->claim.scheme != SIGN_NONE || narrowed) && !proved)
        return prove(x);
    if (what != NULL)
        return REFUSE_LEASE_MISPLACED;
    x->lease = l->id;
    refuse_keep_signature(x);
    brought_clear(&x->request, s);
    return REFUSE_COUNT;
}

static enum refuse_why of_body(struct exchange *x)
{
    struct lease_hit hit;
    if (x->body == NULL || x->lease_body_seen || x->judge->leases->ntags == 0)
        return REFUSE_COUNT;
    x->lease_body_seen = true;
    return lease_search_body(x, &hit) ? misplaced(x, &hit) : REFUSE_COUNT;
}

enum refuse_why lease_check(struct exchange *x)
{
    struct credential c = {.lease = LEASE_NONE};
    struct brought slot = {.field = x->request.nfields};
    struct lease_hit hit;
    size_t n = 0;
    bool has = x->now.d.credential >= 0 && policy_credential(x->now.image->policy, (size_t)x->now.d.credential, &c) &&
               c.lease != LEASE_NONE;
    enum refuse_why why;
    if (x->sandbox == NULL)
        return REFUSE_INTERNAL;
    if (!id_is_none(&x->lease))
        return (why = lease_still(x)) != REFUSE_COUNT ? why : of_body(x);
    if (has)
        brought_find(x, &c, &slot);
    struct span text = x->judge->leases->ntags ? tagged(x, &slot, &n) : SPAN_NONE;
    if (x->judge->leases->ntags && lease_search_head(x, &slot, text, &hit)) {
        if ((why = misplaced(x, &hit)) != REFUSE_COUNT)
            return why;
    } else if (n > 0 && (why = in_slot(x, &slot, text, n)) != REFUSE_COUNT) {
        return why;
    }
    if ((why = of_body(x)) != REFUSE_COUNT)
        return why;
    if (x->proof == PROOF_WANTED)
        return x->narrowed.n > 0 ? proof_ask_narrowed(x, text)
                                 : proof_ask(x, &slot.claim, lease_by_text(x->judge->leases, text));
    bool required = c.require_lease || c.source == SOURCE_ANSWER; /* whose values are known by their leases alone */
    return has && required && id_is_none(&x->lease) && x->now.d.verdict != VERDICT_DENY ? REFUSE_LEASE_REQUIRED
                                                                                        : REFUSE_COUNT;
}

bool lease_may_pass(struct exchange *x, struct span piece)
{
    struct lease_hit hit;
    if (x->judge->leases->ntags == 0 || x->judge->config.shadow)
        return true;
    if (!lease_search_piece(x, piece, &hit))
        return true;
    x->cause = SPAN("lease-misplaced");
    struct lease *l = hit.text.n ? lease_by_text(x->judge->leases, hit.text) : NULL;
    const char *what = l && x->now.image && x->sandbox ? leaked(x, l) : NULL;
    if (what != NULL && !is_only_named(x, l, false))
        (void)tell_leak(x, l, what);
    return false;
}

/* ---- what changes under way ---- */

/* It may not ride on its lease any more. */
static void end_ride(struct exchange *x, enum refuse_why why)
{
    switch (x->wait) {
    case X_BODY:
    case X_PROOF:
    case X_TICKET:
    case X_PARKED: refuse_now(x, why); break;
    case X_RESULT:
        if (x->websocket != WEBSOCKET_NONE)
            websocket_again(x);
        else
            exchange_cancel(x, CANCEL_LEASE); /* whose result is the last word on what has left */
        break;
    case X_RUNS:
    case X_STUB:
    case X_STUB_TURN: /* these bring none */
    case X_CLAIM:
    case X_INTENT: break; /* looked at again before it is sent */
    }
}

void lease_again(struct exchange *x)
{
    size_t at;
    if (id_is_none(&x->lease) || x->wait == X_RUNS)
        return;
    struct lease *l = lease_by_id(x->judge->leases, &x->lease);
    if (l == NULL || !lease_lives(x->judge->leases, l, wall(x)) || !is_meant(x->judge->image, l, &at))
        end_ride(x, REFUSE_LEASE_ENDED);
}

static void again(struct exchange *x, void *arg)
{
    lease_again(x);
}

uint64_t lease_holder_end(const struct exchange *x)
{
    static uint8_t bytes[LEASE_NARROWED_BYTES];
    struct wire_layer layer;
    uint64_t first = 0, ms;
    for (struct span rest = id_is_none(&x->lease) ? SPAN_NONE : x->narrowed; rest.n;) {
        if (lease_narrowed_layer(&rest, bytes, &layer, &ms) != 0)
            return 1; /* it is none: over since long */
        first = ms != 0 && (first == 0 || ms < first) ? ms : first;
    }
    return first;
}

uint64_t lease_left(const struct exchange *x)
{
    uint64_t end = lease_holder_end(x), now = wall(x);
    uint64_t left = end > now ? end - now : 0;
    return left < LEASE_MAX_MS ? left : LEASE_MAX_MS;
}

void lease_tick(struct exchange *x)
{
    uint64_t end = lease_holder_end(x);
    if (end != 0 && end <= wall(x))
        end_ride(x, REFUSE_LEASE_ENDED);
}

/* Each time that a lease is narrowed it has one layer more, and nothing else changes it while it lives. A ledger that
 * is new tells of all of them again, of which few are. */
static bool is_narrower(const struct lease *known, const struct wire_lease *now)
{
    return known != NULL && known->layers.p[0] != now->nlayers;
}

/* A lease has other bounds: is this still inside of them? */
static void inside(struct exchange *x, void *arg)
{
    bool later = x->wait == X_RUNS || x->wait == X_BODY; /* it is asked about when all of it is there */
    enum refuse_why why = later ? REFUSE_COUNT : lease_still(x);
    if (why != REFUSE_COUNT)
        end_ride(x, why);
}

int lease_told(struct judge *j, struct span payload)
{
    struct msg_in m = msg_in(payload);
    uint64_t now = j->ports.wall(j->ports.arg);
    bool dead = false, narrowed = false;
    uint16_t n = msg_get_u16(&m);
    for (uint16_t i = 0; i < n; i++) {
        struct wire_lease w;
        if (wire_get_lease(&m, &w) != 0)
            return -1;
        stub_lease_told(j, &w);
        narrowed |= w.state == LEASE_LIVE && is_narrower(lease_by_id(j->leases, &w.id), &w);
        bool kept = lease_table_put(j->leases, &w, now) == 0;
        if (!kept)
            log_error("a lease of sandbox %.*s cannot be kept in mind; requests with it are refused",
                      SPAN_FMT(w.sandbox));
        dead |= !kept || w.state != LEASE_LIVE;
    }
    if (msg_end(&m) != 0)
        return -1;
    if (dead)
        exchange_each(j, again, NULL);
    if (narrowed)
        exchange_each(j, inside, NULL);
    return dead ? swap_leases_told(j, payload) : 0;
}

/* ---- counted ---- */

static void add_limit(struct exchange *x, const struct lease *l, struct wire_limits *out, const char *measure,
                      uint64_t max, uint64_t window_ms)
{
    char rule[6 + ID_TEXT + 1];
    if (max == 0)
        return;
    if (out->n == WIRE_LIMITS_MAX) { /* one that is not counted must not pass */
        out->limit[0].uncountable = true;
        return;
    }
    memcpy(rule, "lease:", 6);
    id_text(&l->id, rule + 6);
    struct wire_limit *k = &out->limit[out->n++];
    *k = (struct wire_limit){.rule = arena_copy(&x->arena, span_of(rule, 6 + ID_TEXT)),
                             .measure = span_str(measure),
                             .per = WIRE_PER_ALL,
                             .max = max,
                             .window_ms = window_ms,
                             .amount = 1};
    k->uncountable = k->rule.n == 0;
}

void lease_limits(struct exchange *x, struct wire_limits *out)
{
    const struct lease *l = id_is_none(&x->lease) ? NULL : lease_by_id(x->judge->leases, &x->lease);
    for (; l != NULL; l = wider(x, l)) {
        struct wire_layer v[LEASE_LAYERS_MAX];
        struct msg_in m = msg_in(l->layers);
        uint64_t uses = 0, rate = 0;
        size_t n = 0;
        if (wire_get_layers(&m, v, &n) != 0)
            n = 0;
        for (size_t i = 0; i < n; i++) {
            uses = v[i].uses && (uses == 0 || v[i].uses < uses) ? v[i].uses : uses;
            rate = v[i].rate && (rate == 0 || v[i].rate < rate) ? v[i].rate : rate;
        }
        add_limit(x, l, out, "uses", uses, LEASE_MAX_MS);
        add_limit(x, l, out, "rate", rate, LEASE_RATE_MS);
    }
}

bool lease_counts(struct exchange *x)
{
    static struct wire_limits none; /* too large for a stack */
    none.n = 0;
    if (!id_is_none(&x->lease))
        lease_limits(x, &none);
    return none.n > 0;
}
