/* What every fuzzer shares. A property that does not hold ends the process. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "common/span.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
/* A fuzzer may have this: did any input get past its first check? A corpus of which none does tests nothing. */
bool fuzz_reached(void);
#pragma weak fuzz_reached

/* Not assert: it must hold in every build. */
#define MUST_HOLD(property)                                                                                          \
    do {                                                                                                             \
        if (!(property)) {                                                                                           \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #property);                            \
            abort();                                                                                                 \
        }                                                                                                            \
    } while (0)

/* A copy that ends where its memory ends, so that reading past it is seen. Caller frees. */
static inline uint8_t *fuzz_copy(struct span s)
{
    uint8_t *p = malloc(s.n ? s.n : 1);
    MUST_HOLD(p);
    if (s.n)
        memcpy(p, s.p, s.n);
    return p;
}

#endif
