#include "proxy/judge/leases/table.h"

#include <stdlib.h>

struct lease_table *lease_table_new(void)
{
    return calloc(1, sizeof(struct lease_table));
}

void lease_table_free(struct lease_table **t)
{
    if (*t == NULL)
        return;
    for (size_t i = 0; i < LEASE_BUCKETS; i++)
        for (struct lease *l = (*t)->by_id[i], *next; l != NULL; l = next) {
            next = l->next_id;
            free(l);
        }
    free(*t);
    *t = NULL;
}

static size_t bucket(const uint8_t *b)
{
    return ((size_t)b[0] << 8 | b[1]) % LEASE_BUCKETS;
}

struct lease *lease_by_id(const struct lease_table *t, const struct id *id)
{
    struct lease *l = t->by_id[bucket(id->b)];
    while (l != NULL && !id_eq(&l->id, id))
        l = l->next_id;
    return l;
}

struct lease *lease_by_digest(const struct lease_table *t, const struct digest *d)
{
    struct lease *l = t->by_text[bucket(d->b)];
    while (l != NULL && memcmp(&l->text, d, sizeof(*d)) != 0)
        l = l->next_text;
    return l;
}

struct lease *lease_by_text(const struct lease_table *t, struct span text)
{
    struct digest d;
    digest_of(text, &d);
    return lease_by_digest(t, &d);
}

static void take_out(struct lease_table *t, struct lease *l)
{
    struct lease **at = &t->by_id[bucket(l->id.b)];
    while (*at != l)
        at = &(*at)->next_id;
    *at = l->next_id;
    for (at = &t->by_text[bucket(l->text.b)]; *at != l;)
        at = &(*at)->next_text;
    *at = l->next_text;
    t->n--;
    free(l);
}

/* The dead one whose end lies furthest back, if that is not just now: leases of tokens in answers are many, and the
 * ledger, which counts, forgets them sooner than others. */
static bool make_room(struct lease_table *t, uint64_t now_ms)
{
    struct lease *oldest = NULL;
    for (size_t i = 0; i < LEASE_BUCKETS; i++)
        for (struct lease *l = t->by_id[i]; l != NULL; l = l->next_id)
            if (l->state != LEASE_LIVE && (oldest == NULL || l->ended_ms < oldest->ended_ms))
                oldest = l;
    if (oldest == NULL || oldest->ended_ms + LEASE_BRIEF_MS > now_ms)
        return false;
    take_out(t, oldest);
    return true;
}

/* The characters of base64 that depend on the tag alone, when `before` bytes stand before it in its group of three.
 */
static size_t base64_of(const uint8_t tag[LEASE_TAG], size_t before, uint8_t out[NEEDLE_MAX])
{
    static const size_t skip[] = {0, 2, 3}, n[] = {8, 7, 7};
    uint8_t in[LEASE_TAG + 3] = {0};
    char text[4 * 4 + 1];
    memcpy(in + before, tag, LEASE_TAG);
    (void)base64_encode(span_of(in, before + LEASE_TAG), text);
    memcpy(out, text + skip[before], n[before]);
    return n[before];
}

static int know_tag(struct lease_table *t, struct span tag)
{
    for (size_t i = 0; i < t->ntags; i++)
        if (span_eq(tag, span_of(t->tag[i].tag, LEASE_TAG)))
            return 0;
    if (tag.n != LEASE_TAG || t->ntags == LEASE_TAGS_MAX)
        return -1;
    struct lease_tag *k = &t->tag[t->ntags++];
    char hex[2 * LEASE_TAG + 1];
    memcpy(k->tag, tag.p, LEASE_TAG);
    memcpy(k->needle[0].b, tag.p, k->needle[0].n = LEASE_TAG);
    for (size_t before = 0; before < 3; before++)
        k->needle[1 + before].n = base64_of(k->tag, before, k->needle[1 + before].b);
    hex_text(tag, hex);
    for (size_t i = 0; i < 2 * LEASE_TAG; i++) {
        k->needle[4].b[i] = (uint8_t)hex[i];
        k->needle[5].b[i] = hex[i] >= 'a' ? (uint8_t)(hex[i] - 32) : (uint8_t)hex[i];
    }
    k->needle[4].n = k->needle[5].n = 2 * LEASE_TAG;
    return 0;
}

static struct span keep(uint8_t **at, struct span s)
{
    struct span out = span_of(*at, s.n);
    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return out;
}

int lease_table_put(struct lease_table *t, const struct wire_lease *w, uint64_t now_ms)
{
    struct lease *old = lease_by_id(t, &w->id), *l = NULL;
    struct dynbuf layers;
    int bad = -1;
    dynbuf_init(&layers, LEASE_LAYERS_MAX * 4 * LEASE_LIST_MAX * (LEASE_BOUND_BYTES + 8));
    wire_put_layers(&layers, w->layer, w->nlayers);
    if (know_tag(t, w->tag) != 0 || !dynbuf_ok(&layers) ||
        (old == NULL && t->n >= LEASES_MAX && !make_room(t, now_ms)))
        goto out;
    l = malloc(sizeof(*l) + w->sandbox.n + w->session.n + w->credential.n + w->how.n + layers.n);
    if (l == NULL)
        goto out;
    bool untold = old != NULL && old->untold && w->state == LEASE_LIVE; /* it does not know yet */
    if (old != NULL)
        take_out(t, old);
    uint8_t *at = l->bytes;
    *l = (struct lease){.id = w->id,
                        .parent = w->parent,
                        .meaning = w->meaning,
                        .text = w->text,
                        .format = w->format,
                        .state = untold ? LEASE_LEAKED : w->state,
                        .generation = w->generation,
                        .untold = untold,
                        .expires_ms = w->expires_ms,
                        .ended_ms = w->ended_ms};
    l->sandbox = keep(&at, w->sandbox);
    l->session = keep(&at, w->session);
    l->credential = keep(&at, w->credential);
    l->how = keep(&at, w->how);
    l->layers = keep(&at, dynbuf_span(&layers));
    l->next_id = t->by_id[bucket(l->id.b)];
    t->by_id[bucket(l->id.b)] = l;
    l->next_text = t->by_text[bucket(l->text.b)];
    t->by_text[bucket(l->text.b)] = l;
    t->n++;
    bad = 0;
out:
    if (bad != 0 && old != NULL && old->state == LEASE_LIVE) { /* it may be that it was narrowed, or is dead */
        old->state = LEASE_DEAD;
        old->ended_ms = now_ms;
    }
    dynbuf_free(&layers);
    return bad;
}

bool lease_lives(const struct lease_table *t, const struct lease *l, uint64_t now_ms)
{
    for (size_t depth = 0; l != NULL && depth < LEASE_DEPTH_MAX; depth++) {
        if (l->state != LEASE_LIVE || l->expires_ms <= now_ms)
            return false;
        if (id_is_none(&l->parent))
            return true;
        l = lease_by_id(t, &l->parent);
    }
    return false;
}

size_t lease_find(const struct lease_table *t, struct span s, bool *as_is)
{
    *as_is = false;
    for (size_t i = 0; i < t->ntags; i++)
        for (size_t k = 0; k < LEASE_NEEDLES; k++) {
            size_t at = span_find(s, span_of(t->tag[i].needle[k].b, t->tag[i].needle[k].n));
            *as_is = k == 0;
            if (at < s.n)
                return at;
        }
    *as_is = false;
    return s.n;
}
