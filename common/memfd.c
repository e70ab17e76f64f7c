#include "common/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

int memfd_seal(int fd)
{
    return fcntl(fd, F_ADD_SEALS, SEALS) == 0 ? 0 : -1;
}

int memfd_of(struct span s)
{
    int fd = memfd_create("countersign", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    while (s.n > 0) {
        ssize_t n = write(fd, s.p, s.n);
        if (n <= 0)
            goto fail;
        s = span_from(s, (size_t)n);
    }
    if (memfd_seal(fd) == 0)
        return fd;
fail:
    close(fd);
    return -1;
}

int memfd_map(int fd, uint64_t max, struct span *out)
{
    struct stat st;
    int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
    *out = SPAN_NONE;
    /* Sealed first, then measured: the other way round the size could still change. The kernel may have added
     * seals of its own (F_SEAL_EXEC). */
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) != 0)
        return -1;
    if (st.st_size <= 0 || (uint64_t)st.st_size > max || (uint64_t)st.st_size > SIZE_MAX)
        return -1;
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -1;
    *out = span_of(p, (size_t)st.st_size);
    return 0;
}

void memfd_unmap(struct span *s)
{
    void *p = (void *)(uintptr_t)s->p;
#ifdef COMMON_POISON /* the place stays taken: a stale span must not find other bytes there */
    if (p != NULL &&
        mmap(p, s->n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        munmap(p, s->n);
#else
    if (p != NULL)
        munmap(p, s->n);
#endif
    *s = SPAN_NONE;
}
