#include "proxy/judge/evaluation/image.h"

#include <stdlib.h>

#include "common/memfd.h"

enum { IMAGE_MAX = 64 * 1024 * 1024 };

struct image *image_ref(struct image *i)
{
    i->refs++;
    return i;
}

void image_unref(struct image *i)
{
    if (i == NULL || --i->refs > 0)
        return;
    if (i->policy)
        policy_close(i->policy);
    memfd_unmap(&i->map);
    free(i);
}

struct image *image_open(int fd, const struct digest *want, struct err *e)
{
    struct image *i = calloc(1, sizeof(*i));
    if (i == NULL) {
        err_set(e, "no memory for a policy");
        return NULL;
    }
    i->refs = 1;
    if (memfd_map(fd, IMAGE_MAX, &i->map) != 0) {
        err_set(e, "its image cannot be mapped, or is not a memfd with all its seals");
        goto bad;
    }
    i->policy = policy_open(i->map, e);
    if (i->policy == NULL)
        goto bad;
    struct span stamp = policy_digest(i->policy);
    if (stamp.n != DIGEST_BYTES || memcmp(stamp.p, want->b, DIGEST_BYTES) != 0) {
        err_set(e, "its image is another one than announced");
        goto bad;
    }
    i->digest = *want;
    struct credential c;
    for (size_t at = 0; !i->answers && policy_credential(i->policy, at, &c); at++)
        i->answers = c.source == SOURCE_ANSWER;
    return i;
bad:
    image_unref(i);
    return NULL;
}
