#include "common/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/dynbuf.h"

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

void arena_wipe(struct arena *a)
{
    for (struct arena_block *b = a->blocks; b != NULL; b = b->next) {
        unpoison(b->bytes, b->cap);
        explicit_bzero(b->bytes, b->cap);
    }
    arena_free(a);
}

/* Not zeroed yet: of a block only what is handed out is worth it. */
static void *take(struct arena *a, size_t wanted)
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
        b = malloc(sizeof(*b) + cap);
        if (b == NULL)
            return NULL;
        poison(b->bytes, cap);
        b->n = 0;
        b->cap = cap;
        /* One that is full with this goes behind the newest, where there may be room yet. */
        struct arena_block **at = n > BLOCK && a->blocks ? &a->blocks->next : &a->blocks;
        b->next = *at;
        *at = b;
    }
    void *out = b->bytes + b->n;
    b->n += n;
    a->used += n;
    unpoison(out, wanted);
    return out;
}

void *arena_alloc(struct arena *a, size_t n)
{
    void *out = take(a, n);
    return out ? memset(out, 0, n) : NULL;
}

struct span arena_copy(struct arena *a, struct span s)
{
    if (s.n == 0)
        return SPAN_NONE;
    uint8_t *p = take(a, s.n);
    if (p == NULL)
        return SPAN_NONE;
    memcpy(p, s.p, s.n);
    return span_of(p, s.n);
}

struct span arena_keep(struct arena *a, struct dynbuf *b)
{
    struct span out = SPAN_NONE;
    if (dynbuf_ok(b))
        out = b->n ? arena_copy(a, dynbuf_span(b)) : SPAN("");
    dynbuf_free(b);
    return out;
}

struct span arena_join(struct arena *a, struct span one, struct span other)
{
    uint8_t *p = one.n > SIZE_MAX - other.n ? NULL : take(a, one.n + other.n);
    if (p && one.n)
        memcpy(p, one.p, one.n);
    if (p && other.n)
        memcpy(p + one.n, other.p, other.n);
    return p ? span_of(p, one.n + other.n) : SPAN_NONE;
}

struct span arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = n < 0 ? NULL : take(a, (size_t)n + 1);
    if (text == NULL)
        return SPAN_NONE;
    va_start(ap, fmt);
    (void)vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return span_of(text, (size_t)n);
}

void *arena_more(struct arena *a, void *v, size_t n, size_t *max, size_t size)
{
    if (n < *max)
        return v;
    size_t more = *max ? 2 * *max : 16;
    void *to = more > SIZE_MAX / size ? NULL : arena_alloc(a, more * size);
    if (to == NULL)
        return NULL;
    if (n)
        memcpy(to, v, n * size);
    *max = more;
    return to;
}
