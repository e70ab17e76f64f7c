/* First byte: the method that is answered. Second: how many bytes arrive at once. The rest: a response head. */
#include "tests/fuzz/common/fuzz_http.h"

struct verdict {
    enum http_result result;
    struct http_head head;
    struct http_err err;
    size_t used;
    uint8_t *bytes;
};

static void deliver(struct verdict *v, struct span in, struct span method, size_t step)
{
    size_t seen = 0;
    memset(v, 0, sizeof *v);
    for (size_t n = step < in.n ? step : in.n;; n = n + step < in.n ? n + step : in.n) {
        v->bytes = fuzz_copy(span_first(in, n));
        v->result = http_parse_response(span_of(v->bytes, n), method, &seen, &v->head, &v->used, &v->err);
        if (v->result != HTTP_MORE || n == in.n)
            return;
        free(v->bytes);
    }
}

static void check_round_trip(const struct http_head *h, struct span method)
{
    struct dynbuf out;
    struct http_head again;
    struct http_err e;
    size_t seen = 0, used;
    dynbuf_init(&out, 1 << 20);
    MUST_HOLD(http_write_status_line(&out, h->status, h->reason) == 0);
    for (size_t i = 0; i < h->nfields; i++)
        if (!http_is_framing(h->field[i].name))
            MUST_HOLD(http_write_field(&out, h->field[i].name, h->field[i].value) == 0);
    MUST_HOLD(http_write_end(&out, h->framing, h->length) == 0);
    if (out.n <= HTTP_ANSWER_HEAD_MAX && h->nfields < HTTP_ANSWER_FIELDS_MAX) {
        MUST_HOLD(http_parse_response(dynbuf_span(&out), method, &seen, &again, &used, &e) == HTTP_OK);
        MUST_HOLD(used == out.n && h->status == again.status && span_eq(h->reason, again.reason));
        MUST_HOLD(h->framing == again.framing);
        MUST_HOLD(h->framing != HTTP_LENGTH || h->length == again.length);
        fuzz_same_fields(h, &again, true);
    }
    dynbuf_free(&out);
}

/* As the carrier does with one that is refused: no end of a line is in a field, and nothing behind the head changes.
 */
static void check_unfolded(struct span in, struct span method)
{
    struct verdict v;
    uint8_t *p = fuzz_copy(in);
    bool any = http_unfold(p, in.n);
    MUST_HOLD(!http_unfold(p, in.n));
    deliver(&v, span_of(p, in.n), method, in.n ? in.n : 1);
    if (v.result == HTTP_OK) {
        fuzz_clean_fields(&v.head);
        check_round_trip(&v.head, method);
        MUST_HOLD(span_eq(span_from(in, v.used), span_of(p + v.used, in.n - v.used)));
        MUST_HOLD(any || span_eq(in, span_of(p, in.n)));
    }
    free(v.bytes);
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct span methods[] = {SPAN("GET"), SPAN("HEAD"), SPAN("CONNECT")};
    struct verdict whole, cut;
    if (n < 2)
        return 0;
    struct span method = methods[data[0] % 3], in = span_of(data + 2, n - 2);
    deliver(&whole, in, method, in.n ? in.n : 1);
    deliver(&cut, in, method, data[1] ? data[1] : 1);
    MUST_HOLD(whole.result == cut.result && whole.used == cut.used);
    if (whole.result == HTTP_BAD)
        MUST_HOLD(whole.err.code == cut.err.code && whole.err.status == 502 && whole.err.why);
    fuzz_same_head(&whole.head, &cut.head);
    if (whole.result == HTTP_OK) {
        fuzz_clean_fields(&whole.head);
        check_round_trip(&whole.head, method);
    }
    free(whole.bytes);
    free(cut.bytes);
    check_unfolded(in, method);
    return 0;
}
