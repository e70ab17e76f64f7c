/* A message, what must become of it, and the delivery of it in every possible cut. */
#ifndef TESTS_UNIT_HTTP_HTTP_CASES_H
#define TESTS_UNIT_HTTP_HTTP_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/http/http.h"

struct http_case {
    const char *id; /* of the attack catalogue, or a word */
    enum http_place place;
    struct span bytes;
    unsigned status;  /* 0: accepted */
    const char *code; /* accepted: the dump of the model, NULL for any */
};

/* The model as text, so that two of them can be compared. Caller frees. */
static inline char *http_case_dump(const struct http_head *h, size_t used)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    fprintf(f, "%.*s %.*s form %d host %.*s port %u path %.*s query %d %.*s status %u %.*s minor %u used %zu",
            SPAN_FMT(h->method), SPAN_FMT(h->target), h->form, SPAN_FMT(h->host), h->port, SPAN_FMT(h->path),
            h->has_query, SPAN_FMT(h->query), h->status, SPAN_FMT(h->reason), h->minor, used);
    fprintf(f, " framing %d %llu keep %d expect %d upgrade %d\n", h->framing, (unsigned long long)h->length,
            h->keep_alive, h->expect_continue, h->upgrade);
    for (size_t i = 0; i < h->nfields; i++)
        fprintf(f, "[%.*s]=[%.*s]\n", SPAN_FMT(h->field[i].name), SPAN_FMT(h->field[i].value));
    assert_int_equal(fclose(f), 0);
    return text;
}

/* A copy that ends where its memory ends, so that reading past it is seen. */
static inline uint8_t *http_case_copy(struct span s)
{
    uint8_t *p = malloc(s.n ? s.n : 1);
    assert_non_null(p);
    if (s.n)
        memcpy(p, s.p, s.n);
    return p;
}

typedef enum http_result http_case_parse(struct span in, const struct http_case *c, size_t *seen, struct http_head *h,
                                         size_t *used, struct http_err *e);

/* Deliver c in pieces that end at first and then at every `step` bytes. The outcome as text; caller frees. */
static inline char *http_case_deliver(const struct http_case *c, http_case_parse *parse, size_t first, size_t step)
{
    struct http_head h;
    struct http_err e = {0};
    size_t seen = 0, used = 0, n = first;
    char *text = NULL;
    for (;; n = n + step < c->bytes.n ? n + step : c->bytes.n) {
        uint8_t *p = http_case_copy(span_first(c->bytes, n));
        enum http_result r = parse(span_of(p, n), c, &seen, &h, &used, &e);
        if (r == HTTP_OK)
            text = http_case_dump(&h, used);
        else if (r == HTTP_BAD)
            assert_true(asprintf(&text, "refused %u %s", e.status, e.code) > 0);
        free(p);
        if (text)
            return text;
        if (n == c->bytes.n)
            return strdup("more");
    }
}

static inline void http_case_check(const struct http_case *c, http_case_parse *parse)
{
    char want[128], *whole = http_case_deliver(c, parse, c->bytes.n, 1);
    if (c->status) {
        snprintf(want, sizeof want, "refused %u %s", c->status, c->code);
        if (strcmp(whole, want) != 0)
            fail_msg("%s: %.*s\nwanted %s\ngot    %s", c->id, SPAN_FMT(span_first(c->bytes, 300)), want, whole);
    } else if (strncmp(whole, "refused", 7) == 0 || strcmp(whole, "more") == 0) {
        fail_msg("%s: %.*s\nwanted acceptance\ngot    %s", c->id, SPAN_FMT(span_first(c->bytes, 300)), whole);
    } else if (c->code && strcmp(whole, c->code) != 0) {
        fail_msg("%s: %.*s\nwanted %s\ngot    %s", c->id, SPAN_FMT(c->bytes), c->code, whole);
    }
    for (size_t cut = 0; cut <= c->bytes.n; cut += c->bytes.n > 2000 ? 997 : 1) {
        char *cut_text = http_case_deliver(c, parse, cut, c->bytes.n);
        if (strcmp(cut_text, whole) != 0)
            fail_msg("%s: cut at %zu of %.*s\nwhole %s\ncut   %s", c->id, cut, SPAN_FMT(span_first(c->bytes, 300)),
                     whole, cut_text);
        free(cut_text);
    }
    char *bytewise = http_case_deliver(c, parse, 0, c->bytes.n > 2000 ? 61 : 1);
    assert_string_equal(bytewise, whole);
    free(bytewise);
    free(whole);
}
#endif
