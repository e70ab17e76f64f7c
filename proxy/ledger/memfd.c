#include "proxy/ledger/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALED = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW };

int memfd_map(int fd, uint64_t size, uint64_t max, struct span *out)
{
    struct stat st;
    int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
    *out = SPAN_NONE;
    if (seals < 0 || (seals & SEALED) != SEALED || size == 0 || size > max || fstat(fd, &st) != 0 ||
        (uint64_t)st.st_size != size)
        return -1;
    void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -1;
    *out = span_of(p, size);
    return 0;
}

void memfd_unmap(struct span *s)
{
    if (s->p != NULL)
        munmap((void *)(uintptr_t)s->p, s->n);
    *s = SPAN_NONE;
}

int memfd_of(struct span s)
{
    int fd = memfd_create("countersign-body", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    while (s.n) {
        ssize_t n = write(fd, s.p, s.n);
        if (n <= 0)
            goto fail;
        s = span_from(s, (size_t)n);
    }
    if (fcntl(fd, F_ADD_SEALS, SEALED | F_SEAL_SEAL) == 0)
        return fd;
fail:
    close(fd);
    return -1;
}
