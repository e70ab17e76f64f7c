#include "common/dynbuf.h"

#include <stdio.h>
#include <stdlib.h>

void dynbuf_init(struct dynbuf *b, size_t max)
{
    *b = (struct dynbuf){.max = max};
}

/* What stands behind the bytes means nothing, until room is made for more. */
static void spare(struct dynbuf *b)
{
    if (b->p != NULL)
        poison(b->p + b->n, b->cap - b->n);
}

static void wipe(struct dynbuf *b)
{
    if (b->p == NULL)
        return;
    unpoison(b->p, b->cap);
    explicit_bzero(b->p, b->cap);
}

void dynbuf_free(struct dynbuf *b)
{
    if (b == NULL)
        return;
    free(b->p);
    *b = (struct dynbuf){.max = b->max};
}

void dynbuf_wipe(struct dynbuf *b)
{
    if (b != NULL)
        wipe(b);
    dynbuf_free(b);
}

void dynbuf_reset(struct dynbuf *b)
{
    b->n = 0;
    b->failed = false;
    spare(b);
}

static int fail(struct dynbuf *b)
{
    wipe(b);
    free(b->p);
    *b = (struct dynbuf){.max = b->max, .failed = true};
    return -1;
}

uint8_t *dynbuf_grow(struct dynbuf *b, size_t n)
{
    if (b->failed || n > b->max - b->n)
        return fail(b), NULL;
    if (b->cap - b->n < n) {
        size_t want = b->cap ? b->cap : b->max < 64 ? b->max : 64; /* never past max: dynbuf_room relies on it */
        while (want - b->n < n)
            want = want > b->max / 2 ? b->max : want * 2;
        uint8_t *grown = malloc(want);
        if (grown == NULL)
            return fail(b), NULL;
        /* Not realloc: the old block may hold what dynbuf_wipe must overwrite. */
        if (b->p != NULL) {
            memcpy(grown, b->p, b->n);
            explicit_bzero(b->p, b->n);
            free(b->p);
        }
        b->p = grown;
        b->cap = want;
        spare(b);
    }
    unpoison(b->p + b->n, n);
    return b->p + b->n;
}

void dynbuf_grew(struct dynbuf *b, size_t n)
{
    b->n += n <= b->cap - b->n ? n : b->cap - b->n;
    spare(b);
}

int dynbuf_add(struct dynbuf *b, struct span s)
{
    if (s.n == 0)
        return b->failed ? -1 : 0;
    uint8_t *to = dynbuf_room(b, s.n);
    if (to == NULL)
        return -1;
    memcpy(to, s.p, s.n);
    b->n += s.n;
    return 0;
}

int dynbuf_add_byte(struct dynbuf *b, uint8_t c)
{
    return dynbuf_add(b, span_of(&c, 1));
}

int dynbuf_add_u64(struct dynbuf *b, uint64_t v)
{
    uint8_t digits[20], *at = digits + sizeof(digits);
    do
        *--at = (uint8_t)('0' + v % 10);
    while ((v /= 10) > 0);
    return dynbuf_add(b, span_of(at, (size_t)(digits + sizeof(digits) - at)));
}

int dynbuf_addf(struct dynbuf *b, const char *fmt, ...)
{
    va_list ap;
    size_t room = b->cap - b->n;
    if (room > 0)
        unpoison(b->p + b->n, room);
    va_start(ap, fmt);
    int n = vsnprintf(room ? (char *)b->p + b->n : NULL, room, fmt, ap); /* mostly it fits at once */
    va_end(ap);
    if (n < 0)
        return fail(b), -1;
    if ((size_t)n < room) {
        dynbuf_grew(b, (size_t)n);
        return 0;
    }
    uint8_t *to = dynbuf_room(b, (size_t)n + 1);
    if (to == NULL)
        return -1;
    va_start(ap, fmt);
    vsnprintf((char *)to, (size_t)n + 1, fmt, ap);
    va_end(ap);
    dynbuf_grew(b, (size_t)n);
    return 0;
}

void dynbuf_drop(struct dynbuf *b, size_t n)
{
    size_t left = n < b->n ? b->n - n : 0;
    if (left > 0)
        memmove(b->p, b->p + n, left);
    if (b->n > left)
        explicit_bzero(b->p + left, b->n - left);
    b->n = left;
    spare(b);
}

bool dynbuf_ok(const struct dynbuf *b)
{
    return !b->failed;
}

void dynbuf_add_percent(struct dynbuf *b, struct span s, const char *plain)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool as_is = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c && strchr(plain, c));
        (void)(as_is ? dynbuf_add_byte(b, c) : dynbuf_addf(b, "%%%02X", c));
    }
}
