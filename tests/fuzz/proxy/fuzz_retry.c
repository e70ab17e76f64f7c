/* What a retry repeats of a request depends on nothing but the request, and not on which boundary a multipart body
 * has. Input: method, path, query, Content-Type and X-Amz-Target, a line each; then the body. */
#include "proxy/judge/tickets/retry.h"
#include "tests/fuzz/fuzz.h"

enum { BOUNDARY_MAX = 70 };
static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static struct span line(struct span *rest)
{
    struct span one;
    span_cut(*rest, '\n', &one, rest);
    return one;
}

static void write_over(uint8_t *p, size_t n, struct span old, struct span other)
{
    for (size_t at; (at = span_find(span_of(p, n), old)) < n; p += at + old.n, n -= at + old.n)
        memcpy(p + at, other.p, other.n);
}

/* The same with another boundary of that length. */
static void boundary_means_nothing(const struct wire_request *r, struct span body, const struct retry *was)
{
    uint8_t z[BOUNDARY_MAX];
    struct span type = r->field[0].value, head = SPAN("boundary=");
    size_t at = type.n;
    for (size_t i = 0; i + head.n < type.n; i++)
        if (span_ieq(span_of(type.p + i, head.n), head))
            at = i + head.n;
    struct span is = span_from(type, at);
    is = span_trim(span_first(is, span_index(is, ';')));
    if (is.n > 2 && is.p[0] == '"')
        is = span_of(is.p + 1, is.n - 2);
    memset(z, 'Z', sizeof(z));
    struct span other = span_of(z, is.n < sizeof(z) ? is.n : sizeof(z));
    if (is.n == 0 || is.n != other.n || span_find(body, other) < body.n ||
        span_find(type, is) + is.n != (size_t)(is.p - type.p) + is.n)
        return;
    uint8_t *b = fuzz_copy(body), *t = fuzz_copy(type);
    write_over(b, body.n, is, other);
    memcpy(t + (is.p - type.p), other.p, other.n);
    struct wire_request again = *r;
    struct retry now;
    again.field[0].value = span_of(t, type.n);
    retry_of(&again, span_of(b, body.n), &now);
    MUST_HOLD(now.row == was->row && memcmp(&now.body, &was->body, sizeof(now.body)) == 0);
    free(t);
    free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span rest = span_of(data, n);
    struct wire_request r = {.nfields = 2};
    struct retry one, two;
    r.method = line(&rest);
    r.path = line(&rest);
    r.query = line(&rest);
    r.has_query = r.query.n > 0;
    r.field[0] = (struct http_field){SPAN("Content-Type"), line(&rest)};
    r.field[1] = (struct http_field){SPAN("X-Amz-Target"), line(&rest)};
    uint8_t *p = fuzz_copy(rest);
    struct span body = span_of(p, rest.n);
    retry_of(&r, body, &one);
    retry_of(&r, body, &two);
    MUST_HOLD(one.row == two.row && span_eq(one.path, two.path) && span_eq(one.query, two.query));
    MUST_HOLD(!one.has_body || memcmp(&one.body, &two.body, sizeof(one.body)) == 0);
    MUST_HOLD(one.row != 0 || (!one.has_body && !one.without_type && span_eq(one.path, r.path)));
    reached |= one.row != 0;
    if (one.without_type)
        boundary_means_nothing(&r, body, &one);
    free(p);
    return 0;
}
