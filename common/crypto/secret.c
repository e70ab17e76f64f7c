#include "common/crypto/secret.h"

#include <sys/mman.h>
#include <unistd.h>

struct secret {
    size_t mapped, n;
    uint8_t bytes[];
};

/* Pages that were freed and are empty: to map and lock one takes longer than to sign a request, and a release needs
 * several. No process that has secrets has threads. */
enum { SPARES = 8 };
static struct secret *spare[SPARES];
static size_t spares;

struct secret *secret_room(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (n > 1024 * 1024)
        return NULL;
    size_t len = (sizeof(struct secret) + n + page - 1) / page * page;
    if (len == page && spares > 0) {
        struct secret *s = spare[--spares];
        unpoison(s->bytes, n);
        s->n = n;
        return s;
    }
    struct secret *s = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return NULL;
    /* Locking may be refused by RLIMIT_MEMLOCK; keeping out of cores never is. */
    (void)mlock(s, len);
    if (madvise(s, len, MADV_DONTDUMP) != 0) {
        munmap(s, len);
        return NULL;
    }
    s->mapped = len;
    s->n = n;
    return s;
}

struct secret *secret_new(struct span from)
{
    struct secret *s = secret_room(from.n);
    if (s != NULL && from.n)
        memcpy(s->bytes, from.p, from.n);
    return s;
}

uint8_t *secret_fill(struct secret *s)
{
    return s->bytes;
}

struct span secret_bytes(const struct secret *s)
{
    return s ? span_of(s->bytes, s->n) : SPAN_NONE;
}

void secret_free(struct secret **s)
{
    if (s == NULL || *s == NULL)
        return;
    size_t len = (*s)->mapped;
    explicit_bzero((*s)->bytes, (*s)->n);
    if (len == (size_t)sysconf(_SC_PAGESIZE) && spares < SPARES) {
        poison((*s)->bytes, len - sizeof(struct secret));
        spare[spares++] = *s;
    } else {
        unpoison((*s)->bytes, len - sizeof(struct secret)); /* other memory may come to lie there */
        munmap(*s, len);
    }
    *s = NULL;
}
