#include "proxy/lease/wire_swap.h"

enum { NAME_MAX_BYTES = 256 };

static void put_pointers(struct dynbuf *b, const struct span *v, size_t n)
{
    msg_put_u8(b, (uint8_t)n);
    for (size_t i = 0; i < n; i++)
        msg_put_span(b, v[i]);
}

static size_t get_pointers(struct msg_in *m, struct span v[SWAP_POINTERS_MAX])
{
    uint8_t n = msg_get_u8(m);
    if (n > SWAP_POINTERS_MAX)
        m->bad = true;
    for (uint8_t i = 0; i < n && !m->bad; i++)
        v[i] = msg_get_span(m, SWAP_POINTER_BYTES);
    return m->bad ? 0 : n;
}

void wire_put_swap(struct dynbuf *b, const struct wire_swap *w)
{
    msg_put_span(b, w->credential);
    msg_put_span(b, w->expires);
    msg_put_span(b, w->ends);
    msg_put_span(b, w->key);
    msg_put_span(b, w->session);
    msg_put_u64(b, w->lifetime_ms);
    put_pointers(b, w->token, w->ntoken);
    put_pointers(b, w->keep, w->nkeep);
}

int wire_get_swap(struct msg_in *m, struct wire_swap *w)
{
    *w = (struct wire_swap){.ntoken = 0};
    w->credential = msg_get_span(m, NAME_MAX_BYTES);
    w->expires = msg_get_span(m, SWAP_POINTER_BYTES);
    w->ends = msg_get_span(m, SWAP_POINTER_BYTES);
    w->key = msg_get_span(m, SWAP_POINTER_BYTES);
    w->session = msg_get_span(m, SWAP_POINTER_BYTES);
    w->lifetime_ms = msg_get_u64(m);
    w->ntoken = get_pointers(m, w->token);
    w->nkeep = get_pointers(m, w->keep);
    return m->bad || w->credential.n == 0 || w->ntoken == 0 || w->lifetime_ms == 0 ? -1 : 0;
}

void wire_put_swapped(struct dynbuf *b, const struct wire_swapped *w)
{
    msg_put_span(b, w->credential);
    msg_put_id(b, &w->lease);
    msg_put_span(b, w->tag);
    msg_put_digest(b, &w->text);
    msg_put_u64(b, w->expires_ms);
}

int wire_get_swapped(struct msg_in *m, struct wire_swapped *w)
{
    *w = (struct wire_swapped){.expires_ms = 0};
    w->credential = msg_get_span(m, NAME_MAX_BYTES);
    msg_get_id(m, &w->lease);
    w->tag = msg_get_span(m, LEASE_TAG);
    msg_get_digest(m, &w->text);
    w->expires_ms = msg_get_u64(m);
    return m->bad || w->credential.n == 0 || id_is_none(&w->lease) || w->tag.n != LEASE_TAG || w->expires_ms == 0 ? -1
                                                                                                                  : 0;
}
