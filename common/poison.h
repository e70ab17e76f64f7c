/* Memory that is kept but no longer means anything: in a build with AddressSanitizer, reading or writing it ends the
 * process with a report; in any other build these are nothing. For buffers that are used again, whose end the
 * allocator does not see. Unpoison before the bytes are written again; freeing poisoned memory is fine. */
#ifndef COMMON_POISON_H
#define COMMON_POISON_H

#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__
#define COMMON_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COMMON_POISON 1
#endif
#endif

#ifdef COMMON_POISON
void __asan_poison_memory_region(void const volatile *p, size_t n);
void __asan_unpoison_memory_region(void const volatile *p, size_t n);
#define poison(p, n)   __asan_poison_memory_region(p, n)
#define unpoison(p, n) __asan_unpoison_memory_region(p, n)
#else
#define poison(p, n)   ((void)0)
#define unpoison(p, n) ((void)0)
#endif

#endif
