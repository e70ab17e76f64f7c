/* An image is opened: checked once, and for each rule it is worked out which requests it never fits. */
#include <stdlib.h>

#include "policy/match/prefilter.h"

struct policy *policy_open(struct span image, struct err *e)
{
    struct policy *p = NULL;
    const struct img_head *h = (const void *)image.p;
    if (image.n < sizeof(*h) || (uintptr_t)image.p % 8 != 0 || memcmp(h->magic, IMG_MAGIC, 8) != 0) {
        err_set(e, "the compiled policy is not one: its head is missing; compile it again");
        return NULL;
    }
    if (h->version != IMG_VERSION || h->size != image.n) {
        err_set(e,
                "the compiled policy has version %u and says %u of %zu bytes; this program reads version %d: "
                "compile it again with this version",
                h->version, h->size, image.n, IMG_VERSION);
        return NULL;
    }
    p = calloc(1, sizeof(*p));
    if (p == NULL) {
        err_set(e, "no memory to open the compiled policy");
        return NULL;
    }
    p->base = image.p;
    p->head = h;
    if (!img_check(p)) {
        free(p);
        err_set(e, "the compiled policy is damaged: something in it points outside; compile it again");
        return NULL;
    }
    p->never = calloc((size_t)p->n[IMG_RULE] + 1, sizeof(*p->never));
    if (p->never == NULL) {
        free(p);
        err_set(e, "no memory to open the compiled policy");
        return NULL;
    }
    for (uint32_t i = 0; i < p->n[IMG_RULE]; i++)
        p->never[i] = prefilter_never(p, img_at(p, IMG_RULE, i));
    return p;
}

void policy_close(struct policy *p)
{
    if (p)
        free(p->never);
    free(p);
}
