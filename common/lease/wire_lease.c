#include "common/lease/wire_lease.h"

enum { NAME_BYTES = 256, HOW_BYTES = 512, EFFECT_BITS = 7 };

const char *lease_state_name(enum lease_state s)
{
    static const char *const names[] = {[LEASE_DEAD] = "dead",
                                        [LEASE_LIVE] = "live",
                                        [LEASE_EXPIRED] = "expired",
                                        [LEASE_REVOKED] = "revoked",
                                        [LEASE_LEAKED] = "leaked"};
    return (unsigned)s <= LEASE_LEAKED ? names[s] : names[LEASE_DEAD];
}

static void put_list(struct dynbuf *b, const struct wire_list *l)
{
    msg_put_u8(b, (uint8_t)l->n);
    for (size_t i = 0; i < l->n; i++)
        msg_put_span(b, l->v[i]);
}

static void get_list(struct msg_in *m, struct wire_list *l)
{
    size_t n = msg_get_u8(m);
    if (n > LEASE_LIST_MAX)
        m->bad = true;
    for (l->n = 0; !m->bad && l->n < n; l->n++) {
        l->v[l->n] = msg_get_span(m, LEASE_BOUND_BYTES);
        if (l->v[l->n].n == 0)
            m->bad = true;
    }
}

void wire_put_layers(struct dynbuf *b, const struct wire_layer *v, size_t n)
{
    msg_put_u8(b, (uint8_t)n);
    for (size_t i = 0; i < n; i++) {
        put_list(b, &v[i].hosts);
        put_list(b, &v[i].methods);
        put_list(b, &v[i].paths);
        put_list(b, &v[i].ops);
        msg_put_u32(b, v[i].effects);
        msg_put_u64(b, v[i].uses);
        msg_put_u64(b, v[i].rate);
    }
}

int wire_get_layers(struct msg_in *m, struct wire_layer *v, size_t *n)
{
    size_t count = msg_get_u8(m);
    if (count > LEASE_LAYERS_MAX)
        m->bad = true;
    for (*n = 0; !m->bad && *n < count; (*n)++) {
        struct wire_layer *l = &v[*n];
        get_list(m, &l->hosts);
        get_list(m, &l->methods);
        get_list(m, &l->paths);
        get_list(m, &l->ops);
        l->effects = msg_get_u32(m);
        l->uses = msg_get_u64(m);
        l->rate = msg_get_u64(m);
        if (l->effects >> EFFECT_BITS != 0)
            m->bad = true;
    }
    return m->bad ? -1 : 0;
}

void wire_put_lease(struct dynbuf *b, const struct wire_lease *l)
{
    msg_put_id(b, &l->id);
    msg_put_id(b, &l->parent);
    msg_put_span(b, l->sandbox);
    msg_put_span(b, l->session);
    msg_put_span(b, l->credential);
    msg_put_span(b, l->by);
    msg_put_u64(b, l->generation);
    msg_put_digest(b, &l->meaning);
    msg_put_digest(b, &l->text);
    msg_put_span(b, l->tag);
    msg_put_u8(b, (uint8_t)l->format);
    msg_put_u8(b, (uint8_t)l->state);
    msg_put_u64(b, l->created_ms);
    msg_put_u64(b, l->expires_ms);
    msg_put_u64(b, l->ended_ms);
    msg_put_span(b, l->how);
    wire_put_layers(b, l->layer, l->nlayers);
}

int wire_get_lease(struct msg_in *m, struct wire_lease *l)
{
    msg_get_id(m, &l->id);
    msg_get_id(m, &l->parent);
    l->sandbox = msg_get_span(m, NAME_BYTES);
    l->session = msg_get_span(m, NAME_BYTES);
    l->credential = msg_get_span(m, NAME_BYTES);
    l->by = msg_get_span(m, NAME_BYTES);
    l->generation = msg_get_u64(m);
    msg_get_digest(m, &l->meaning);
    msg_get_digest(m, &l->text);
    l->tag = msg_get_span(m, LEASE_TAG);
    uint8_t format = msg_get_u8(m), state = msg_get_u8(m);
    l->created_ms = msg_get_u64(m);
    l->expires_ms = msg_get_u64(m);
    l->ended_ms = msg_get_u64(m);
    l->how = msg_get_span(m, HOW_BYTES);
    if (format >= LEASE_FORMAT_COUNT || state > LEASE_LEAKED || (l->tag.n != 0 && l->tag.n != LEASE_TAG))
        m->bad = true;
    l->format = m->bad ? LEASE_NONE : (enum lease_format)format;
    l->state = m->bad ? LEASE_DEAD : (enum lease_state)state;
    return wire_get_layers(m, l->layer, &l->nlayers);
}
