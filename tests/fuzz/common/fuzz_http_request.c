/* First byte: the place. Second: how many bytes arrive at once. The rest: a request head. */
#include "tests/fuzz/common/fuzz_http.h"

struct verdict {
    enum http_result result;
    struct http_head head;
    struct http_err err;
    size_t used;
    uint8_t *bytes; /* the head points into them */
};

static void deliver(struct verdict *v, struct span in, enum http_place place, size_t step)
{
    size_t seen = 0;
    memset(v, 0, sizeof *v);
    for (size_t n = step < in.n ? step : in.n;; n = n + step < in.n ? n + step : in.n) {
        v->bytes = fuzz_copy(span_first(in, n));
        v->result = http_parse_request(span_of(v->bytes, n), place, &seen, &v->head, &v->used, &v->err);
        if (v->result != HTTP_MORE || n == in.n)
            return;
        MUST_HOLD(v->used == 0 && v->head.nfields == 0);
        free(v->bytes);
    }
}

/* What is written has them as escapes: of another target nothing is said here. */
static bool has_raw(struct span target)
{
    for (size_t i = 0; i < target.n; i++)
        if (strchr("|^`{}\\", target.p[i]) != NULL)
            return true;
    return false;
}

static void check_canonical(const struct http_head *h)
{
    struct dynbuf once, twice;
    char host[HTTP_HOST_MAX + 1], again[HTTP_HOST_MAX + 1];
    size_t n, m;
    MUST_HOLD(http_canonical_host(h->host, host, &n) == 0);
    MUST_HOLD(http_canonical_host(span_of(host, n), again, &m) == 0 && n == m && memcmp(host, again, n) == 0);
    for (int keep = 0; keep < 2; keep++) {
        dynbuf_init(&once, HTTP_HEAD_MAX);
        dynbuf_init(&twice, HTTP_HEAD_MAX);
        if (http_canonical_path(h->path, keep, &once) == 0) {
            MUST_HOLD(http_canonical_path(dynbuf_span(&once), keep, &twice) == 0);
            MUST_HOLD(span_eq(dynbuf_span(&once), dynbuf_span(&twice)));
            MUST_HOLD(keep || span_find(dynbuf_span(&once), SPAN("%2F")) == once.n);
            MUST_HOLD(span_find(dynbuf_span(&once), SPAN("/../")) == once.n);
            MUST_HOLD(!has_raw(dynbuf_span(&once)));
        }
        dynbuf_free(&once);
        dynbuf_free(&twice);
    }
    dynbuf_init(&once, HTTP_HEAD_MAX);
    dynbuf_init(&twice, HTTP_HEAD_MAX);
    if (http_canonical_query(h->query, &once) == 0) {
        MUST_HOLD(http_canonical_query(dynbuf_span(&once), &twice) == 0);
        MUST_HOLD(!has_raw(dynbuf_span(&once)));
        MUST_HOLD(span_eq(dynbuf_span(&once), dynbuf_span(&twice)));
    }
    dynbuf_free(&once);
    dynbuf_free(&twice);
}

static void write_again(const struct http_head *h, struct dynbuf *out)
{
    struct dynbuf host, target;
    dynbuf_init(&host, 1024);
    dynbuf_init(&target, HTTP_TARGET_MAX + 1);
    (void)dynbuf_add(&host, h->host);
    if (h->port)
        (void)dynbuf_addf(&host, ":%u", h->port);
    (void)dynbuf_add(&target, h->form == HTTP_AUTHORITY ? h->target : h->path);
    if (h->has_query) {
        (void)dynbuf_add_byte(&target, '?');
        (void)dynbuf_add(&target, h->query);
    }
    MUST_HOLD(http_write_request_line(out, h->method, dynbuf_span(&target)) == 0);
    MUST_HOLD(http_write_field(out, SPAN("Host"), dynbuf_span(&host)) == 0);
    for (size_t i = 0; i < h->nfields; i++)
        if (!http_is_framing(h->field[i].name))
            MUST_HOLD(http_write_field(out, h->field[i].name, h->field[i].value) == 0);
    MUST_HOLD(http_write_end(out, h->framing, h->length) == 0);
    dynbuf_free(&host);
    dynbuf_free(&target);
}

/* What was parsed, written and parsed again is the same request. */
static void check_round_trip(const struct http_head *h)
{
    struct dynbuf out;
    struct http_head again;
    struct http_err e;
    size_t seen = 0, used;
    if (has_raw(h->target))
        return;
    dynbuf_init(&out, 1 << 20);
    write_again(h, &out);
    if (out.n <= HTTP_HEAD_MAX && h->nfields < HTTP_FIELDS_MAX) {
        enum http_place place = h->form == HTTP_AUTHORITY ? HTTP_ON_PROXY_PORT : HTTP_IN_TUNNEL;
        MUST_HOLD(http_parse_request(dynbuf_span(&out), place, &seen, &again, &used, &e) == HTTP_OK);
        MUST_HOLD(used == out.n);
        MUST_HOLD(span_eq(h->method, again.method) && span_eq(h->path, again.path));
        MUST_HOLD(h->has_query == again.has_query && span_eq(h->query, again.query));
        MUST_HOLD(span_eq(h->host, again.host) && h->port == again.port);
        MUST_HOLD(h->framing == again.framing && h->length == again.length);
        fuzz_same_fields(h, &again, true);
    }
    dynbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct verdict whole, cut;
    if (n < 2)
        return 0;
    enum http_place place = (enum http_place)(1 + data[0] % 3);
    struct span in = span_of(data + 2, n - 2);
    deliver(&whole, in, place, in.n ? in.n : 1);
    deliver(&cut, in, place, data[1] ? data[1] : 1);
    MUST_HOLD(whole.result == cut.result && whole.used == cut.used);
    if (whole.result == HTTP_BAD)
        MUST_HOLD(whole.err.code == cut.err.code && whole.err.status >= 400 && whole.err.why);
    fuzz_same_head(&whole.head, &cut.head);
    if (whole.result == HTTP_OK) {
        fuzz_clean_fields(&whole.head);
        if (whole.head.form != HTTP_AUTHORITY)
            check_canonical(&whole.head);
        check_round_trip(&whole.head);
    }
    free(whole.bytes);
    free(cut.bytes);
    return 0;
}
