#include "proxy/wire_listener.h"

enum { NAME_MAX_BYTES = 255 };

void wire_put_listener(struct dynbuf *b, const struct wire_listener *l)
{
    msg_put_u8(b, (uint8_t)l->way);
    msg_put_u8(b, (uint8_t)l->identity);
    msg_put_span(b, l->sandbox);
    msg_put_u16(b, (uint16_t)l->nsources);
    for (size_t i = 0; i < l->nsources; i++) {
        msg_put_span(b, l->source[i].key);
        msg_put_span(b, l->source[i].sandbox);
    }
    msg_put_u16(b, (uint16_t)l->npeers);
    for (size_t i = 0; i < l->npeers; i++)
        msg_put_span(b, l->peer[i]);
    msg_put_u8(b, l->tls);
}

int wire_get_listener(struct msg_in *m, struct wire_listener *l)
{
    *l = (struct wire_listener){.way = msg_get_u8(m), .identity = msg_get_u8(m)};
    l->sandbox = msg_get_span(m, NAME_MAX_BYTES);
    l->nsources = msg_get_u16(m);
    if (l->nsources > LISTENER_SOURCES_MAX)
        return -1;
    for (size_t i = 0; i < l->nsources; i++) {
        l->source[i].key = msg_get_span(m, NAME_MAX_BYTES);
        l->source[i].sandbox = msg_get_span(m, NAME_MAX_BYTES);
    }
    l->npeers = msg_get_u16(m);
    if (l->npeers > LISTENER_PEERS_MAX)
        return -1;
    for (size_t i = 0; i < l->npeers; i++)
        l->peer[i] = msg_get_span(m, NAME_MAX_BYTES);
    l->tls = msg_get_bool(m);
    bool known = l->way >= WAY_HTTP && l->way <= WAY_CAPTURED && l->identity >= IDENTITY_TOKEN &&
                 l->identity <= IDENTITY_CERTIFICATE;
    return known && !m->bad ? 0 : -1;
}
