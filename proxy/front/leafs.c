/* Leafs that were read before. The judge gives one with every CONNECT; to parse
 * one costs most of a handshake, so the same bytes are not parsed twice. */
#include "proxy/front/front.h"

#include <stdlib.h>

struct front_leaf {
    struct dynbuf der, ca;
    struct tls_leaf *leaf;
    struct front_leaf *next;
};

static void drop(struct front *f, struct front_leaf **at)
{
    struct front_leaf *one = *at;
    *at = one->next;
    f->nleafs--;
    dynbuf_free(&one->der);
    dynbuf_free(&one->ca);
    tls_leaf_free(&one->leaf);
    free(one);
}

/* The most recently used comes first. */
static struct tls_leaf *use(struct front *f, struct front_leaf **at)
{
    struct front_leaf *one = *at;
    *at = one->next;
    one->next = f->leafs;
    f->leafs = one;
    return one->leaf;
}

struct tls_leaf *front_leaf_of(struct front *f, struct span der, struct span ca)
{
    struct front_leaf **at = &f->leafs, **last = at;
    for (; *at != NULL; last = at, at = &(*at)->next)
        if (span_eq(dynbuf_span(&(*at)->der), der) && span_eq(dynbuf_span(&(*at)->ca), ca))
            return use(f, at);
    struct front_leaf *one = calloc(1, sizeof(*one));
    if (one == NULL)
        return NULL;
    dynbuf_init(&one->der, FRONT_LEAF_BYTES);
    dynbuf_init(&one->ca, FRONT_LEAF_BYTES);
    one->leaf = tls_leaf_new(f->key, der, ca);
    if (one->leaf == NULL || dynbuf_add(&one->der, der) != 0 || dynbuf_add(&one->ca, ca) != 0) {
        f->nleafs++;
        drop(f, &one);
        return NULL;
    }
    if (f->nleafs == FRONT_LEAFS_MAX)
        drop(f, last);
    one->next = f->leafs;
    f->leafs = one;
    f->nleafs++;
    return one->leaf;
}

void front_leafs_free(struct front *f)
{
    while (f->leafs != NULL)
        drop(f, &f->leafs);
}
