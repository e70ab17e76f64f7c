/* What the HTTP fuzzers share: two models that must be the same. */
#ifndef TESTS_FUZZ_COMMON_FUZZ_HTTP_H
#define TESTS_FUZZ_COMMON_FUZZ_HTTP_H

#include "common/http/http.h"
#include "tests/fuzz/fuzz.h"

static inline void fuzz_same_fields(const struct http_head *a, const struct http_head *b, bool without_framing)
{
    size_t j = 0;
    for (size_t i = 0; i < a->nfields; i++) {
        if (without_framing && http_is_framing(a->field[i].name))
            continue;
        while (without_framing && j < b->nfields && http_is_framing(b->field[j].name))
            j++;
        MUST_HOLD(j < b->nfields);
        MUST_HOLD(span_eq(a->field[i].name, b->field[j].name) && span_eq(a->field[i].value, b->field[j].value));
        j++;
    }
    while (without_framing && j < b->nfields && http_is_framing(b->field[j].name))
        j++;
    MUST_HOLD(j == b->nfields);
}

static inline void fuzz_same_head(const struct http_head *a, const struct http_head *b)
{
    MUST_HOLD(span_eq(a->method, b->method) && span_eq(a->target, b->target) && a->form == b->form);
    MUST_HOLD(span_eq(a->scheme, b->scheme) && span_eq(a->host, b->host) && a->port == b->port);
    MUST_HOLD(span_eq(a->path, b->path) && a->has_query == b->has_query && span_eq(a->query, b->query));
    MUST_HOLD(a->status == b->status && span_eq(a->reason, b->reason) && a->minor == b->minor);
    MUST_HOLD(a->framing == b->framing && a->length == b->length && a->keep_alive == b->keep_alive);
    MUST_HOLD(a->expect_continue == b->expect_continue && a->upgrade == b->upgrade);
    fuzz_same_fields(a, b, false);
}

/* No byte that could end a line or a string early is in the model. */
static inline void fuzz_clean_fields(const struct http_head *h)
{
    MUST_HOLD(h->nfields <= (h->status ? HTTP_ANSWER_FIELDS_MAX : HTTP_FIELDS_MAX));
    for (size_t i = 0; i < h->nfields; i++) {
        struct span v = h->field[i].value;
        MUST_HOLD(http_is_token(h->field[i].name));
        MUST_HOLD(span_index(v, '\r') == v.n && span_index(v, '\n') == v.n && span_index(v, 0) == v.n);
        MUST_HOLD(span_eq(v, span_trim(v)));
    }
}

#endif
