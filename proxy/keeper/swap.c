/* Tokens that came in answers: the carrier hands them over, and is given a lease for each, under whose id the token
 * is kept. Whose the leases are, the judge and the ledger say before the answer goes on; without them none of these
 * ids is ever asked for. */
#include "common/lease/wire_lease.h"
#include "proxy/identity.h"
#include "proxy/keeper/keeper.h"
#include "proxy/keeper/value.h"
#include "proxy/lease/wire_swap.h"

static int named(const struct policy *p, struct span name, struct credential *c)
{
    for (size_t i = 0; p != NULL && policy_credential(p, i, c); i++)
        if (span_eq(c->name, name))
            return (int)i;
    return -1;
}

static bool has_colon(struct span s)
{
    return span_index(s, ':') < s.n;
}

/* As a source would give it: ID:KEY or ID:KEY:TOKEN of keys to sign with. NULL: no memory, or there is nothing. */
static struct secret *joined(const struct span part[3])
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < 3; i++)
        n += part[i].n ? part[i].n + (i > 0) : 0;
    struct secret *s = n > 0 ? secret_room(n) : NULL;
    for (size_t i = 0; s != NULL && i < 3; i++) {
        if (part[i].n == 0)
            continue;
        if (i > 0)
            secret_fill(s)[at++] = ':';
        memcpy(secret_fill(s) + at, part[i].p, part[i].n);
        at += part[i].n;
    }
    return s;
}

/* Could it be used, once it is asked for? */
static int check(const struct keeper *k, struct span name, struct span value, bool pair, struct credential *c,
                 struct digest *meaning, struct err *e)
{
    int at = named(k->policy, name, c);
    if (at < 0 || c->source != SOURCE_ANSWER || c->lease == LEASE_NONE || lease_is_pair(c->lease) != pair)
        return err_set(e, "the policy of now has no credential that answers are the source of, under its name");
    if (identity_of_credential(k->policy, (size_t)at, meaning) != 0)
        return err_set(e, "no memory");
    return value_check(value, e) == 0 ? value_fits(c, value, e) : -1;
}

static int keep(struct keeper *k, uint64_t xid, struct msg_in *m, struct dynbuf *out, struct err *e)
{
    uint64_t now = loop_wall(k->loop);
    struct lease_texts made = {.ntext = 0};
    struct credential c;
    struct digest meaning;
    struct wire_swapped w = {.credential = msg_get_span(m, 256)};
    struct span part[3];
    int bad = -1;
    for (size_t i = 0; i < 3; i++)
        part[i] = msg_get_span(m, CHAN_PAYLOAD_MAX);
    uint64_t lives = msg_get_u64(m);
    struct secret *value = joined(part);
    w.expires_ms = now + lives;
    if (m->bad || lives == 0 || lives > LEASE_MAX_MS || value == NULL)
        err_set(e, "the carrier's message cannot be understood");
    else if (part[1].n > 0 && (has_colon(part[0]) || has_colon(part[1]))) /* it would be taken apart elsewhere */
        err_set(e, "the id or the key has a colon in it");
    else if (check(k, w.credential, secret_bytes(value), part[1].n > 0, &c, &meaning, e) == 0)
        bad = id_new(&w.lease) != 0 ? -1 : lease_derive(k->lease_root, &w.lease, c.lease, &made);
    if (bad == 0) {
        bad = tokens_put(k->tokens, xid, &w.lease, &meaning, value, w.expires_ms, now);
        value = NULL;
    }
    if (bad == 0) {
        w.tag = span_of(made.tag, LEASE_TAG);
        digest_of(span_of(made.text, made.ntext), &w.text);
        wire_put_swapped(out, &w);
        msg_put_span(out, span_of(made.text, made.ntext));
        msg_put_span(out, span_of(made.secret, made.nsecret));
    } else if (e->text[0] == '\0') {
        err_set(e, "as many tokens are kept as may be, or no lease could be made");
    }
    secret_free(&value);
    explicit_bzero(&made, sizeof(made));
    return bad;
}

void keeper_swap(struct keeper *k, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct err e = {{0}};
    struct dynbuf leases;
    uint8_t n = msg_get_u8(&m);
    int bad = n == 0 || n > SWAPS_MAX ? err_set(&e, "the carrier's message cannot be understood") : 0;
    dynbuf_init(&leases, SWAPS_MAX * 1024);
    keeper_expire(k);
    for (uint8_t i = 0; i < n && bad == 0; i++)
        bad = keep(k, f->id, &m, &leases, &e);
    if (bad == 0 && (msg_end(&m) != 0 || !dynbuf_ok(&leases)))
        bad = err_set(&e, "the carrier's message cannot be understood");
    explicit_bzero((void *)(uintptr_t)f->payload.p, f->payload.n); /* the channel's buffer must not keep it */
    if (bad != 0)
        tokens_drop(k->tokens, f->id);
    struct dynbuf *b = k->carrier ? chan_begin(k->carrier, M_SWAPPED, f->id) : NULL;
    if (b != NULL) {
        msg_put_u8(b, bad == 0 ? n : 0);
        msg_put_span(b, span_str(e.text));
        (void)dynbuf_add(b, bad == 0 ? dynbuf_span(&leases) : SPAN_NONE);
        (void)chan_commit(k->carrier);
    }
    dynbuf_wipe(&leases);
}
