#include "proxy/judge/body.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int sealed_map(int fd, size_t max, void **map, size_t *size)
{
    const int want = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    /* Sealed first, then measured: the other way round the size could still change. */
    if (seals < 0 || (seals & want) != want || fstat(fd, &st) != 0)
        return -1;
    if (st.st_size <= 0 || (uint64_t)st.st_size > max)
        return -1;
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -1;
    *map = p;
    *size = (size_t)st.st_size;
    return 0;
}

int body_of_memfd(struct body *b, int fd, uint64_t size, uint64_t max)
{
    *b = (struct body){.fd = -1};
    if (fd < 0)
        return -1;
    if (size > max || sealed_map(fd, (size_t)max, &b->map, &b->size) != 0) {
        close(fd);
        return -1;
    }
    b->kind = BODY_FD;
    b->fd = fd;
    b->bytes = span_of(b->map, b->size);
    if (b->size != size) {
        body_free(b);
        return -1;
    }
    return 0;
}

void body_free(struct body *b)
{
    if (b->map)
        munmap(b->map, b->size);
    if (b->kind == BODY_FD && b->fd >= 0)
        close(b->fd);
    *b = (struct body){.fd = -1};
}
