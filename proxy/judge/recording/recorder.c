#include "proxy/judge/recording/recorder.h"

#include <stdio.h>

#include "common/log.h"
#include "common/memfd.h"
#include "proxy/judge/evaluation/image.h"
#include "proxy/judge/accounts/upstreams.h"
#include "proxy/judge/leases/table.h"
#include "proxy/judge/state.h"

/* One entry has room for a policy's image or a large body; what is larger ends the recording. */
enum { ENTRY_BYTES = 32 * 1024 * 1024, LEASES_RECORDED = 2048 };

static bool on(const struct recorder *r)
{
    return r->upto > r->from;
}

static void put(struct recorder *r, struct entry *e)
{
    const struct judge_ports *p = &r->judge->ports;
    struct dynbuf b;
    if (!on(r))
        return;
    e->now = p->now(p->arg);
    e->wall = p->wall(p->arg);
    e->clock = p->clock(p->arg);
    dynbuf_init(&b, ENTRY_BYTES);
    entry_put(&b, e);
    bool small = dynbuf_ok(&b);
    if (!small || r->sink(r->arg, dynbuf_span(&b)) != 0) {
        log_warn("the recording ends: %s",
                 small ? "there is more than can be written so fast" : "a message is too large to be recorded");
        r->from = r->upto = 0;
    }
    dynbuf_free(&b);
}

static void put_config(struct recorder *r)
{
    const struct judge *j = r->judge;
    char text[6][320];
    snprintf(text[0], sizeof(text[0]), "hold.inline_wait_ms=%llu", (unsigned long long)j->config.inline_wait_ms);
    snprintf(text[1], sizeof(text[1]), "hold.expires_ms=%llu", (unsigned long long)j->config.expires_ms);
    snprintf(text[2], sizeof(text[2]), "body_max=%llu", (unsigned long long)j->config.body_max);
    snprintf(text[3], sizeof(text[3]), "store_lost=%s", j->config.allow_reads ? "allow-reads" : "deny");
    snprintf(text[4], sizeof(text[4]), "disclose=%s", j->config.disclose_rules ? "rules" : "none");
    snprintf(text[5], sizeof(text[5]), "desk_url=%s", j->config.desk_url);
    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
        put(r, &(struct entry){.kind = ENTRY_CONFIG, .payload = span_str(text[i])});
    put(r, &(struct entry){.kind = ENTRY_CONFIG,
                           .payload = j->config.shadow ? SPAN("mode=shadow") : SPAN("mode=enforce")});
}

static void put_frame(struct recorder *r, enum role_id role, uint64_t instance, uint16_t type, const struct dynbuf *b)
{
    put(r, &(struct entry){
               .kind = ENTRY_IN, .role = role, .instance = instance, .type = type, .payload = dynbuf_span(b)});
}

static void put_image(struct recorder *r)
{
    const struct image *i = r->judge->image;
    if (i != NULL)
        put(r, &(struct entry){.kind = ENTRY_IN,
                               .role = ROLE_PARENT,
                               .type = M_IMAGE,
                               .body = i->map,
                               .has_body = true,
                               .payload = span_of(i->digest.b, DIGEST_BYTES)});
}

/* What is known of it: its text is nowhere, nor who asked for it. Any tag will do, as long as each is told of. */
static bool put_lease(struct recorder *r, const struct lease *l, struct dynbuf *b, size_t nth)
{
    static struct wire_lease w; /* too large for a stack */
    const struct lease_table *t = r->judge->leases;
    struct msg_in layers = msg_in(l->layers);
    w = (struct wire_lease){.id = l->id,
                            .parent = l->parent,
                            .sandbox = l->sandbox,
                            .session = l->session,
                            .credential = l->credential,
                            .generation = l->generation,
                            .meaning = l->meaning,
                            .text = l->text,
                            .tag = span_of(t->tag[nth % t->ntags].tag, LEASE_TAG),
                            .format = l->format,
                            .state = l->state,
                            .expires_ms = l->expires_ms,
                            .ended_ms = l->ended_ms,
                            .how = l->how};
    if (wire_get_layers(&layers, w.layer, &w.nlayers) != 0)
        return false;
    dynbuf_reset(b);
    msg_put_u16(b, 1);
    wire_put_lease(b, &w);
    if (dynbuf_ok(b))
        put_frame(r, ROLE_LEDGER, 0, M_LEASE, b);
    return dynbuf_ok(b);
}

/* The sandbox's own first: past so many the others, which it has no business to name, are not known to who plays it
 * again. */
static void put_leases(struct recorder *r, const struct sandbox *s)
{
    const struct lease_table *t = r->judge->leases;
    struct dynbuf b;
    size_t n = 0;
    dynbuf_init(&b, CHAN_PAYLOAD_MAX);
    for (unsigned others = 0; others < 2; others++)
        for (size_t i = 0; i < LEASE_BUCKETS && n < LEASES_RECORDED; i++)
            for (const struct lease *l = t->by_id[i]; l != NULL && n < LEASES_RECORDED; l = l->next_id)
                if (span_eq(l->sandbox, s->name) != others)
                    n += put_lease(r, l, &b, n);
    dynbuf_free(&b);
}

static void put_ledger(struct recorder *r, const struct sandbox *s)
{
    static struct wire_sandbox w; /* its tokens are not needed: nobody is identified again */
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024);
    put(r, &(struct entry){.kind = ENTRY_PEER, .role = ROLE_LEDGER});
    msg_put_u8(&b, !r->judge->thawed);
    put_frame(r, ROLE_LEDGER, 0, M_FREEZE, &b);
    for (unsigned lost = r->judge->told ? 0 : 1; lost <= r->judge->store_lost; lost++) { /* it was there once */
        dynbuf_reset(&b);
        msg_put_u8(&b, !lost);
        put_frame(r, ROLE_LEDGER, 0, M_STORE, &b);
    }
    dynbuf_reset(&b);
    if (s != NULL) {
        w = (struct wire_sandbox){.name = s->name,
                                  .session = s->session,
                                  .generation = s->generation,
                                  .reach = s->reach,
                                  .frozen = s->frozen ? SPAN("frozen") : SPAN_NONE,
                                  .nlabels = s->nlabels};
        for (size_t i = 0; i < s->nlabels; i++) {
            w.label[i].key = s->label[i].key;
            w.label[i].value = s->label[i].value;
        }
        wire_put_sandbox(&b, &w);
        msg_put_u8(&b, false);
        put_frame(r, ROLE_LEDGER, 0, M_SANDBOX, &b);
        put_leases(r, s);
    }
    dynbuf_free(&b);
}

static void put_front(struct recorder *r, const struct front *f)
{
    struct dynbuf b;
    put(r, &(struct entry){.kind = ENTRY_PEER, .role = ROLE_FRONT, .instance = f->instance, .payload = f->info});
    if (f->nspki == 0)
        return;
    dynbuf_init(&b, SPKI_MAX + 4);
    msg_put_span(&b, span_of(f->spki, f->nspki));
    put_frame(r, ROLE_FRONT, f->instance, M_FRONT_KEY, &b);
    dynbuf_free(&b);
}

void recorder_set(struct recorder *r, uint64_t from, uint64_t upto)
{
    const struct judge *j = r->judge;
    const struct front *f = judge_front(j, from >> XID_FRONT_SHIFT);
    r->from = from;
    r->upto = upto;
    if (!on(r))
        return;
    upstreams_forget(j->upstreams); /* what the carrier was told of before, a new judge would tell it again */
    put(r, &(struct entry){.kind = ENTRY_START, .id = MSG_VERSION});
    put_config(r);
    put_image(r);
    if (j->carrier)
        put(r, &(struct entry){.kind = ENTRY_PEER, .role = ROLE_CARRIER});
    if (j->keeper)
        put(r, &(struct entry){.kind = ENTRY_PEER, .role = ROLE_KEEPER});
    if (j->ledger)
        put_ledger(r, f ? f->sandbox : NULL);
    if (f != NULL)
        put_front(r, f);
}

/* Of the exchanges, or what the judge goes by in them. */
static bool wanted(const struct recorder *r, enum role_id role, uint64_t instance, uint16_t type, uint64_t id)
{
    if (!on(r) || (role == ROLE_FRONT && instance != r->from >> XID_FRONT_SHIFT))
        return false;
    if (id >= r->from && id < r->upto)
        return true;
    return (role == ROLE_PARENT && type == M_IMAGE) || (role == ROLE_FRONT && type == M_FRONT_KEY) ||
           (role == ROLE_LEDGER &&
            (type == M_STORE || type == M_FREEZE || type == M_TICKET_CHANGED || type == M_LEASE));
}

void recorder_in(struct recorder *r, enum role_id role, uint64_t instance, const struct frame *f)
{
    struct entry e = {
        .kind = ENTRY_IN, .role = role, .instance = instance, .type = f->type, .id = f->id, .payload = f->payload};
    if (!wanted(r, role, instance, f->type, f->id))
        return;
    e.has_body = f->nfds > 0 && memfd_map(f->fd[0], ENTRY_BYTES, &e.body) == 0;
    put(r, &e);
    if (e.has_body)
        memfd_unmap(&e.body);
}

void recorder_out(struct recorder *r, enum role_id role, uint64_t instance, uint16_t type, uint64_t id,
                  struct span payload)
{
    if (on(r) && id >= r->from && id < r->upto)
        put(r,
            &(struct entry){
                .kind = ENTRY_OUT, .role = role, .instance = instance, .type = type, .id = id, .payload = payload});
}

void recorder_event(struct recorder *r, enum entry_kind kind, enum role_id role, uint64_t instance, struct span info)
{
    bool other = role == ROLE_LOBBY || (role == ROLE_FRONT && instance != r->from >> XID_FRONT_SHIFT);
    if (on(r) && !other)
        put(r, &(struct entry){.kind = kind, .role = role, .instance = instance, .payload = info});
}
