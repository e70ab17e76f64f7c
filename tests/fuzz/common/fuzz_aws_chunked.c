/* common/sign/aws_chunked: first byte the payload, then a body. What is taken apart covers the body, signatures lie
 * in it, and the chunks written anew are the same bytes. */
#include <stdio.h>

#include "common/sign/aws_chunked.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void write_chunk(struct dynbuf *out, const struct aws_chunk *c, struct span body)
{
    char size[20];
    snprintf(size, sizeof(size), "%zx", c->data.n);
    (void)dynbuf_add(out, span_str(size));
    if (c->signature) {
        MUST_HOLD(c->signature <= body.n && body.n - c->signature >= 64);
        (void)dynbuf_add(out, SPAN(";chunk-signature="));
        (void)dynbuf_add(out, span_of(body.p + c->signature, 64));
    }
    (void)dynbuf_add(out, SPAN("\r\n"));
    (void)dynbuf_add(out, c->data);
    if (c->data.n)
        (void)dynbuf_add(out, SPAN("\r\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct aws_chunked c;
    struct aws_chunk one;
    struct dynbuf again;
    struct digest d;
    int rc;
    if (n == 0)
        return 0;
    uint8_t *copy = fuzz_copy(span_of(data + 1, n - 1));
    struct span body = span_of(copy, n - 1);
    if (aws_chunked_begin(&c, (enum aws_payload)(data[0] % 6), body) != 0) {
        free(copy);
        return 0;
    }
    reached = true;
    dynbuf_init(&again, 2 * n + 64);
    while ((rc = aws_chunked_next(&c, &one)) > 0)
        write_chunk(&again, &one, body);
    if (rc == 0) {
        MUST_HOLD(c.at == body.n && dynbuf_ok(&again) && again.n <= body.n);
        MUST_HOLD(span_ieq(dynbuf_span(&again), span_first(body, again.n))); /* sizes may be in either case */
        MUST_HOLD(c.trailer_signature <= body.n && aws_chunked_next(&c, &one) == 0);
        aws_chunked_trailer_digest(&c, &d);
    } else {
        MUST_HOLD(aws_chunked_next(&c, &one) == -1);
    }
    dynbuf_free(&again);
    free(copy);
    return 0;
}
