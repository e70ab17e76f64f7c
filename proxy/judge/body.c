#include "proxy/judge/body.h"

#include <unistd.h>

#include "common/memfd.h"

int body_of_memfd(struct body *b, int fd, uint64_t size, uint64_t max)
{
    *b = (struct body){.fd = -1};
    if (fd < 0)
        return -1;
    if (size > max || memfd_map(fd, max, &b->map) != 0) {
        close(fd);
        return -1;
    }
    b->kind = BODY_FD;
    b->fd = fd;
    b->bytes = b->map;
    if (b->map.n != size) {
        body_free(b);
        return -1;
    }
    return 0;
}

void body_free(struct body *b)
{
    memfd_unmap(&b->map);
    if (b->kind == BODY_FD && b->fd >= 0)
        close(b->fd);
    *b = (struct body){.fd = -1};
}
