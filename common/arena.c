#include "common/arena.h"

#include <stdlib.h>

struct arena_block {
    struct arena_block *next;
    size_t n, cap;
    _Alignas(max_align_t) uint8_t bytes[];
};

enum { BLOCK = 4096 };

void arena_init(struct arena *a, size_t max)
{
    *a = (struct arena){.max = max};
}

void arena_free(struct arena *a)
{
    for (struct arena_block *b = a->blocks, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    a->blocks = NULL;
    a->used = 0;
}

void *arena_alloc(struct arena *a, size_t wanted)
{
    size_t n = wanted;
    const size_t align = _Alignof(max_align_t);
    if (n > a->max)
        return NULL;
    n = (n + align - 1) & ~(align - 1);
    if (n > a->max - a->used)
        return NULL;
    struct arena_block *b = a->blocks;
    if (b == NULL || b->cap - b->n < n) {
        size_t cap = n > BLOCK ? n : BLOCK;
        b = calloc(1, sizeof(*b) + cap);
        if (b == NULL)
            return NULL;
        poison(b->bytes, cap);
        b->cap = cap;
        b->next = a->blocks;
        a->blocks = b;
    }
    void *out = b->bytes + b->n;
    b->n += n;
    a->used += n;
    unpoison(out, wanted);
    return out;
}

struct span arena_copy(struct arena *a, struct span s)
{
    if (s.n == 0)
        return SPAN_NONE;
    uint8_t *p = arena_alloc(a, s.n);
    if (p == NULL)
        return SPAN_NONE;
    memcpy(p, s.p, s.n);
    return span_of(p, s.n);
}
