/* A message of an outer handshake, and the delivery of every prefix of it. */
#ifndef TESTS_UNIT_COMMON_HANDSHAKE_CASES_H
#define TESTS_UNIT_COMMON_HANDSHAKE_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/handshake/hello.h"
#include "common/handshake/proxy2.h"
#include "common/handshake/socks5.h"

/* A verdict and all that came with it, so that two can be compared byte for byte. */
struct outcome {
    int result;
    size_t used;
    union {
        struct hello hello;
        struct proxy2 proxy;
        struct socks5_request request;
        enum socks5_method method;
        struct {
            char user[256], password[256];
        };
    };
    int why;
};

typedef void parse_fn(struct span in, struct outcome *o);

/* Every prefix: MORE up to some byte, and from there one verdict that more bytes never change. */
static inline void check_cuts(const char *id, parse_fn *parse, struct span in, struct outcome *last)
{
    struct outcome *o = calloc(2, sizeof *o), *was = o + 1; /* zeroed: padding is compared too */
    size_t decided = SIZE_MAX, step = in.n > 4000 ? 97 : 1;
    assert_non_null(o);
    for (size_t n = 0;; n = n + step < in.n ? n + step : in.n) {
        uint8_t *p = malloc(n ? n : 1); /* ends where its memory ends: reading past it is seen */
        assert_non_null(p);
        if (n)
            memcpy(p, in.p, n);
        memset(o, 0, sizeof *o);
        parse(span_of(p, n), o);
        free(p);
        if (o->result == 1 && decided != SIZE_MAX)
            fail_msg("%s: decided at %zu, asked for more at %zu", id, decided, n);
        if (o->result != 1 && decided == SIZE_MAX) {
            decided = n;
            *was = *o;
        } else if (o->result != 1 && memcmp(o, was, sizeof *o) != 0) {
            fail_msg("%s: another verdict at %zu than at %zu", id, n, decided);
        }
        if (n == in.n)
            break;
    }
    *last = *o;
    free(o);
}

#endif
