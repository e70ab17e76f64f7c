#include "proxy/judge/evaluation/body.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/memfd.h"

struct body *body_inline(struct span bytes)
{
    struct body *b = calloc(1, sizeof(*b));
    if (b != NULL)
        *b = (struct body){.refs = 1, .kind = BODY_INLINE, .fd = -1, .bytes = bytes};
    return b;
}

struct body *body_of_memfd(int fd, uint64_t size, uint64_t max)
{
    struct body *b = fd < 0 ? NULL : calloc(1, sizeof(*b));
    if (b == NULL)
        goto fail;
    *b = (struct body){.refs = 1, .kind = BODY_FD, .fd = fd};
    if (size > max || memfd_map(fd, max, &b->bytes) != 0)
        goto fail;
    if (b->bytes.n == size)
        return b;
    memfd_unmap(&b->bytes);
fail:
    free(b);
    if (fd >= 0)
        close(fd);
    return NULL;
}

struct body *body_ref(struct body *b)
{
    if (b != NULL)
        b->refs++;
    return b;
}

void body_unref(struct body **at)
{
    struct body *b = *at;
    *at = NULL;
    if (b == NULL || --b->refs > 0)
        return;
    if (b->kind == BODY_FD) {
        memfd_unmap(&b->bytes);
        close(b->fd);
    }
    free(b);
}

struct span body_bytes(const struct body *b)
{
    return b ? b->bytes : SPAN_NONE;
}

enum wire_body body_kind(const struct body *b)
{
    return b ? b->kind : BODY_NONE;
}

int body_fd(const struct body *b)
{
    return b && b->kind == BODY_FD ? b->fd : -1;
}
