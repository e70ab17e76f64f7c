/* A borrowed run of bytes: pointer and length, never a terminator.
 * Foreign bytes are handled through spans only. A span owns nothing. */
#ifndef COMMON_SPAN_H
#define COMMON_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MUSTCHECK    __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
/* Of a large local whose maker sets what counts and says how many of the rest do: the compiler does not zero it
 * first. */
#define UNZEROED __attribute__((uninitialized))

struct span {
    const uint8_t *p;
    size_t n;
};

/* A span over a string literal; the length is known to the compiler. */
#define SPAN(lit) ((struct span){(const uint8_t *)("" lit), sizeof(lit) - 1})
#define SPAN_NONE ((struct span){NULL, 0})
/* For printf: "%.*s", SPAN_FMT(s). Only for bytes known to be printable. */
#define SPAN_FMT(s) (int)(s).n, (const char *)(s).p

static inline struct span span_of(const void *p, size_t n)
{
    return (struct span){p, n};
}

/* Over a C string that this program itself made; never over foreign bytes. */
static inline struct span span_str(const char *own)
{
    return (struct span){(const uint8_t *)own, own ? strlen(own) : 0};
}

static inline bool span_eq(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline struct span span_from(struct span s, size_t off)
{
    return s.p == NULL || off > s.n ? SPAN_NONE : span_of(s.p + off, s.n - off); /* NULL + 0 is undefined */
}

static inline struct span span_first(struct span s, size_t n)
{
    return span_of(s.p, n < s.n ? n : s.n);
}

/* By their bytes; of two that begin alike the shorter one comes first. < 0, 0 or > 0. */
int span_cmp(struct span a, struct span b);
/* ASCII case only; the locale never matters. Most names differ in length already. */
bool span_ieq_bytes(const uint8_t *a, const uint8_t *b, size_t n);
static inline bool span_ieq(struct span a, struct span b)
{
    return a.n == b.n && span_ieq_bytes(a.p, b.p, a.n);
}

bool span_starts(struct span s, struct span prefix);
bool span_ends(struct span s, struct span suffix);
/* Index of byte c, or s.n. */
size_t span_index(struct span s, uint8_t c);
/* Index of the first occurrence of needle, or s.n. An empty needle is never found. */
size_t span_find(struct span s, struct span needle);
/* Split at the first c: *head before it, *rest after it. False, with all in head, if absent. */
bool span_cut(struct span s, uint8_t c, struct span *head, struct span *rest);
/* ASCII space and tab removed at both ends. */
struct span span_trim(struct span s);
/* Nothing but letters and digits of ASCII, and these. */
bool span_is_of(struct span s, struct span others);
/* Digits only, no sign, no leading zero but "0" itself, at most max: 0, or -1. */
int span_u64(struct span s, uint64_t max, uint64_t *out) MUSTCHECK;
/* Same length and bytes, in time that depends on the lengths alone. */
bool span_eq_consttime(struct span a, struct span b);

/* Memory that is kept but no longer means anything: in a build with AddressSanitizer, reading or writing it ends the
 * process with a report; in any other build these are nothing. For buffers that are used again, whose end the
 * allocator does not see. Unpoison before the bytes are written again; freeing poisoned memory is fine. */
#ifdef __SANITIZE_ADDRESS__
#define COMMON_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COMMON_POISON 1
#endif
#endif

#ifdef COMMON_POISON
/* Not const, as the library has them: they read nothing, and a compiler would ask for what they could read. */
void __asan_poison_memory_region(void volatile *p, size_t n);
void __asan_unpoison_memory_region(void volatile *p, size_t n);
#define poison(p, n)   __asan_poison_memory_region(p, n)
#define unpoison(p, n) __asan_unpoison_memory_region(p, n)
#else
#define poison(p, n)   ((void)0)
#define unpoison(p, n) ((void)0)
#endif

#endif
