#include "proxy/carrier/carrier.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "proxy/carrier/exchange.h"
#include "proxy/carrier/share.h"

enum { SWEEP_MS = 1000 };

/* ---- fronts ---- */

static struct front *front_of(struct carrier *c, uint64_t instance)
{
    for (struct front *f = c->fronts; f != NULL; f = f->next)
        if (f->instance == instance)
            return f;
    struct front *f = c->nfronts < FRONTS_MAX ? calloc(1, sizeof(*f)) : NULL;
    if (f == NULL)
        return NULL;
    *f = (struct front){.carrier = c, .next = c->fronts, .instance = instance};
    timeshare_init(&f->time);
    c->fronts = f;
    c->nfronts++;
    return f;
}

struct front *carrier_front(struct carrier *c, uint64_t xid)
{
    return front_of(c, xid >> XID_FRONT_SHIFT);
}

static void sweep_fronts(struct carrier *c)
{
    for (struct front **at = &c->fronts; *at != NULL;) {
        struct front *f = *at;
        if (f->chan != NULL || f->nexchanges > 0) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        c->nfronts--;
        free(f);
    }
}

/* Answers' credit is all a front says; an id of another front ends the channel. */
static void front_frame(void *arg, struct chan *ch, struct frame *f)
{
    struct front *front = arg;
    struct exchange *x = carry_find(front->carrier, f->id);
    if (f->type != M_ANSWER_CREDIT || f->id >> XID_FRONT_SHIFT != front->instance) {
        log_exchange(LOG_ERROR, f->id, "front %llu breaks the contract with message %u",
                     (unsigned long long)front->instance, f->type);
        chan_free(&front->chan);
        carry_front_gone(front->carrier, front);
    } else if (x != NULL) {
        delivery_credit(x, f);
    }
}

static void front_gone(void *arg, struct chan *ch)
{
    struct front *front = arg;
    chan_free(&front->chan);
    carry_front_gone(front->carrier, front);
}

/* ---- the other peers ---- */

static void named_upstream(struct carrier *c, struct frame *f)
{
    struct wire_upstream w;
    struct err e;
    struct msg_in m = msg_in(f->payload);
    if (wire_get_upstream(&m, &w) != 0 || msg_end(&m) != 0)
        log_error("an upstream of the judge cannot be understood");
    else if (upstreams_put(&c->upstreams, &w, &e) != 0)
        log_error("upstream %.*s:%u: %s", SPAN_FMT(w.host), w.port, e.text);
}

static void judge_frame(void *arg, struct chan *ch, struct frame *f)
{
    struct carrier *c = arg;
    struct exchange *x;
    switch (f->type) {
    case M_UPSTREAM: named_upstream(c, f); return;
    case M_FORWARD: carry_forward(c, f); return;
    case M_BODY:
    case M_BODY_END:
        if ((x = carry_find(c, f->id)) != NULL)
            send_body_frame(x, f);
        return;
    case M_MESSAGE:
    case M_WS_CLOSE:
        if ((x = carry_find(c, f->id)) != NULL)
            carry_websocket_frame(x, f);
        return;
    case M_SWAP_TAKE: swap_judge_said(c, f); return;
    case M_NEED_RELEASE:
        if ((x = carry_find(c, f->id)) != NULL)
            dial_renew_none(x);
        return;
    case M_EGRESS_GIVE:
        if ((x = carry_find(c, f->id)) != NULL)
            meter_given(x, f->payload);
        return;
    case M_CANCEL:
        if ((x = carry_find(c, f->id)) != NULL && x->delivery != DELIVERY_NOBODY)
            carry_cancel(x, span_eq(f->payload, SPAN("\1")));
        return;
    default: log_exchange(LOG_ERROR, f->id, "the judge sends message %u, which the carrier does not know", f->type);
    }
}

static void judge_gone(void *arg, struct chan *ch)
{
    struct carrier *c = arg;
    chan_free(&c->judge);
    carry_all_gone(c);
}

static void keeper_frame(void *arg, struct chan *ch, struct frame *f)
{
    if (f->type == M_SIGNED)
        carry_signed(arg, f);
    else if (f->type == M_CREDENTIAL)
        carry_credential(arg, f);
    else if (f->type == M_SWAPPED)
        swap_keeper_said(arg, f);
    else
        log_exchange(LOG_ERROR, f->id, "the keeper sends message %u, which the carrier does not know", f->type);
}

static void keeper_gone(void *arg, struct chan *ch)
{
    struct carrier *c = arg;
    chan_free(&c->keeper);
    carry_keeper_gone(c);
}

static void resolver_frame(void *arg, struct chan *ch, struct frame *f)
{
    struct carrier *c = arg;
    if (names_frame(&c->names, f) != 0)
        log_error("the resolver's message %u cannot be understood", f->type);
}

static void resolver_gone(void *arg, struct chan *ch)
{
    struct carrier *c = arg;
    chan_free(&c->names.chan);
    names_peer(&c->names, NULL);
}

static const struct chan_ops front_ops = {front_frame, front_gone};
static const struct chan_ops judge_ops = {judge_frame, judge_gone};
static const struct chan_ops keeper_ops = {keeper_frame, keeper_gone};
static const struct chan_ops resolver_ops = {resolver_frame, resolver_gone};

static void peer_front(struct carrier *c, uint64_t instance, int fd)
{
    struct front *f = front_of(c, instance);
    if (f == NULL) {
        log_error("no room for another front");
        close(fd);
        return;
    }
    if (f->chan != NULL) {
        chan_free(&f->chan);
        carry_front_gone(c, f);
    }
    f->chan = chan_new(c->loop, fd, &front_ops, f);
}

void carrier_peer(struct carrier *c, unsigned peer, uint64_t instance, int fd)
{
    switch (peer) {
    case ROLE_FRONT: peer_front(c, instance, fd); return;
    case ROLE_JUDGE:
        if (c->judge != NULL)
            judge_gone(c, c->judge);
        c->judge = chan_new(c->loop, fd, &judge_ops, c);
        return;
    case ROLE_KEEPER:
        if (c->keeper != NULL)
            keeper_gone(c, c->keeper);
        c->keeper = chan_new(c->loop, fd, &keeper_ops, c);
        return;
    case ROLE_RESOLVER:
        if (c->names.chan != NULL)
            resolver_gone(c, c->names.chan);
        names_peer(&c->names, chan_new(c->loop, fd, &resolver_ops, c));
        return;
    default: log_error("the carrier has nothing to say to a %s", role_name((enum role_id)peer)); close(fd);
    }
}

/* ---- life ---- */

void carrier_settings_default(struct settings *s)
{
    *s = (struct settings){
        .connect_ms = 10000, .first_byte_ms = 300000, .idle_ms = 300000, .release_ms = 30000, .pool_idle_ms = 30000};
}

int carrier_config(struct carrier *c, struct span key, struct span value)
{
    const struct {
        struct span key;
        uint64_t *to;
    } times[] = {{SPAN("connect_ms"), &c->settings.connect_ms},
                 {SPAN("first_byte_ms"), &c->settings.first_byte_ms},
                 {SPAN("idle_ms"), &c->settings.idle_ms},
                 {SPAN("release_ms"), &c->settings.release_ms},
                 {SPAN("pool_idle_ms"), &c->settings.pool_idle_ms}};
    if (span_eq(key, SPAN("own")))
        return names_own(&c->names, value);
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (span_eq(key, times[i].key))
            return span_u64(value, 24 * 3600 * 1000, times[i].to) == 0 && *times[i].to > 0 ? 0 : -1;
    return 0;
}

static void sweep(void *arg)
{
    struct carrier *c = arg;
    creds_expire(&c->creds, loop_now(c->loop));
    pool_expire(&c->pool, c->settings.pool_idle_ms);
    names_expire(&c->names);
    sweep_fronts(c);
    timer_set(c->sweep, SWEEP_MS);
}

struct carrier *carrier_new(struct loop *l, struct span roots, struct span crl)
{
    struct carrier *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->loop = l;
    c->clock = share_clock;
    carrier_settings_default(&c->settings);
    dynbuf_init(&c->signed_chunks, (size_t)WIRE_CHUNKS_MAX * WIRE_CHUNK_SIGNED);
    names_init(&c->names, l);
    pool_init(&c->pool, l);
    upstreams_init(&c->upstreams, roots, crl);
    c->sweep = timer_new(l, sweep, c);
    c->share = timer_new(l, share_look, c);
    if (c->sweep == NULL || c->share == NULL || !dynbuf_ok(&c->upstreams.system) ||
        !dynbuf_ok(&c->upstreams.system_crl))
        carrier_free(&c);
    else
        timer_set(c->sweep, SWEEP_MS);
    return c;
}

void carrier_free(struct carrier **c)
{
    struct carrier *d = *c;
    *c = NULL;
    if (d == NULL)
        return;
    carry_all_gone(d);
    chan_free(&d->judge);
    chan_free(&d->keeper);
    chan_free(&d->names.chan);
    for (struct front *f = d->fronts; f != NULL; f = f->next)
        chan_free(&f->chan);
    sweep_fronts(d);
    names_clear(&d->names);
    pool_clear(&d->pool);
    creds_clear(&d->creds);
    dynbuf_free(&d->signed_chunks);
    origins_clear(&d->origins);
    upstreams_clear(&d->upstreams);
    timer_free(&d->sweep);
    timer_free(&d->share);
    free(d);
}
