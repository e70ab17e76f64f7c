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
    *l = (struct wire_listener){.way = WAY_NONE};
    l->way = (enum way)msg_get_u8(m); /* not in the initialiser: the order of its parts is the compiler's */
    l->identity = (enum listener_identity)msg_get_u8(m);
    l->sandbox = msg_get_span(m, NAME_MAX_BYTES);
    size_t n = msg_get_u16(m);
    if (n > LISTENER_SOURCES_MAX)
        m->bad = true;
    for (l->nsources = 0; !m->bad && l->nsources < n; l->nsources++) {
        l->source[l->nsources].key = msg_get_span(m, NAME_MAX_BYTES);
        l->source[l->nsources].sandbox = msg_get_span(m, NAME_MAX_BYTES);
    }
    n = msg_get_u16(m);
    if (n > LISTENER_PEERS_MAX)
        m->bad = true;
    for (l->npeers = 0; !m->bad && l->npeers < n; l->npeers++)
        l->peer[l->npeers] = msg_get_span(m, NAME_MAX_BYTES);
    l->tls = msg_get_bool(m);
    if (l->way < WAY_HTTP || l->way > WAY_CAPTURED || l->identity < IDENTITY_TOKEN ||
        l->identity > IDENTITY_CERTIFICATE)
        m->bad = true;
    return m->bad ? -1 : 0;
}
