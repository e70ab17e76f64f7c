/* common/sign/aws_chunked: bodies taken apart, and AWS's published example of signed chunks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/sign/aws_chunked.h"
#include "common/sign/sign.h"

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SIG ";chunk-signature=" A64

/* All data in a row, or "refused". */
static void reads(enum aws_payload payload, const char *body, const char *expected)
{
    struct aws_chunked c;
    struct aws_chunk one;
    struct dynbuf data;
    int rc;
    dynbuf_init(&data, 1024);
    assert_int_equal(aws_chunked_begin(&c, payload, span_str(body)), 0);
    while ((rc = aws_chunked_next(&c, &one)) > 0) {
        dynbuf_add(&data, one.data);
        if (one.signature)
            assert_memory_equal(body + one.signature, A64, SIGN_TEXT);
    }
    if (rc < 0) {
        assert_string_equal("refused", expected);
        assert_int_equal(aws_chunked_next(&c, &one), -1);
    } else {
        assert_int_equal(c.decoded, data.n);
        if (c.trailer_signature)
            assert_memory_equal(body + c.trailer_signature, A64, SIGN_TEXT);
        dynbuf_add_byte(&data, 0);
        assert_string_equal((char *)data.p, expected);
    }
    dynbuf_free(&data);
}

static void signed_chunks(void **state)
{
    enum aws_payload p = AWS_PAYLOAD_CHUNKS;
    reads(p, "3" SIG "\r\nabc\r\n2" SIG "\r\nde\r\n0" SIG "\r\n\r\n", "abcde");
    reads(p, "0" SIG "\r\n\r\n", "");
    reads(p, "A" SIG "\r\n0123456789\r\n0" SIG "\r\n\r\n", "0123456789");
    reads(p, "", "refused");
    reads(p, "3" SIG "\r\nabc\r\n", "refused");                              /* no end */
    reads(p, "3" SIG "\r\nabc\r\n0" SIG "\r\n", "refused");                  /* nor here */
    reads(p, "3\r\nabc\r\n0\r\n\r\n", "refused");                            /* unsigned */
    reads(p, "3" SIG "\r\nabcd\r\n0" SIG "\r\n\r\n", "refused");             /* longer than said */
    reads(p, "4" SIG "\r\nabc\r\n0" SIG "\r\n\r\n", "refused");              /* shorter */
    reads(p, "03" SIG "\r\nabc\r\n0" SIG "\r\n\r\n", "refused");             /* two spellings of a size */
    reads(p, "3" SIG ";x=y\r\nabc\r\n0" SIG "\r\n\r\n", "refused");          /* another extension */
    reads(p, "3" SIG "\nabc\n0" SIG "\n\n", "refused");                      /* line feeds alone */
    reads(p, "3" SIG "\r\nabc\r\n0" SIG "\r\n\r\nx", "refused");             /* more behind the end */
    reads(p, "3" SIG "\r\nabc\r\n0" SIG "\r\nx-amz-a:b\r\n\r\n", "refused"); /* a trailer nobody signed */
    reads(p, "100000000" SIG "\r\nabc\r\n0" SIG "\r\n\r\n", "refused");
    reads(p, "ffffffff" SIG "\r\nabc\r\n0" SIG "\r\n\r\n", "refused");
}

static void trailers(void **state)
{
    enum aws_payload p = AWS_PAYLOAD_CHUNKS_TRAILER;
    reads(p, "1" SIG "\r\na\r\n0" SIG "\r\nx-amz-checksum-crc32:AA==\r\nx-amz-trailer-signature:" A64 "\r\n\r\n",
          "a");
    reads(p, "0" SIG "\r\nx-amz-checksum-crc32:AA==\n\r\nx-amz-trailer-signature:" A64 "\r\n\r\n", "");
    reads(p, "0" SIG "\r\nx-amz-checksum-crc32:AA==\r\n\r\n", "refused"); /* without its signature */
    reads(p, "0" SIG "\r\nx-amz-trailer-signature:" A64 "\r\na:b\r\n\r\n", "refused");
    reads(p, "0" SIG "\r\nx-amz-trailer-signature:" A64 "\r\nx-amz-trailer-signature:" A64 "\r\n\r\n", "refused");
    p = AWS_PAYLOAD_UNSIGNED_TRAILER;
    reads(p, "2\r\nab\r\n0\r\nx-amz-checksum-crc32:AA==\r\n\r\n", "ab");
    reads(p, "2\r\nab\r\n0\r\n\r\n", "ab");
    reads(p, "2" SIG "\r\nab\r\n0\r\n\r\n", "refused");
    reads(p, "0\r\nx-amz-trailer-signature:" A64 "\r\n\r\n", "refused");
    reads(p, "0\r\na b:c\r\n\r\n", "refused");
    reads(p, "0\r\na:c\001\r\n\r\n", "refused");
    reads(p, "0\r\na\r\n\r\n", "refused");
    struct aws_chunked c;
    assert_int_equal(aws_chunked_begin(&c, AWS_PAYLOAD_HASH, SPAN("")), -1);
    assert_int_equal(aws_chunked_begin(&c, AWS_PAYLOAD_UNSIGNED, SPAN("")), -1);
    char many[2 + 2 + 5 * (AWS_TRAILERS_MAX + 1) + 3] = "0\r\n";
    for (size_t i = 0; i <= AWS_TRAILERS_MAX; i++) {
        reads(p, strcat(strcpy((char[200]){0}, many), "\r\n"), "");
        strcat(many, "a:b\r\n");
    }
    reads(p, strcat(many, "\r\n"), "refused");
}

/* "Signature Calculations for the Authorization Header: Transferring Payload in Multiple Chunks", Amazon S3 API
 * reference: 66,560 times 'a', in chunks of 65,536. */
static void example_of_s3(void **state)
{
    static const char *const expected[] = {"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
                                           "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
                                           "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"};
    static const size_t size[] = {65536, 1024, 0};
    static uint8_t data[65536];
    struct sign_scope s;
    uint8_t key[SIGN_KEY];
    char last[SIGN_TEXT + 1] = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
                          next[SIGN_TEXT + 1];
    struct digest d;
    memset(data, 'a', sizeof(data));
    assert_int_equal(sign_scope_at(SIGN_AWS4, 1369353600, SPAN("us-east-1"), SPAN("s3"), &s), 0);
    assert_int_equal(sign_key(&s, SPAN("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), key), 0);
    for (size_t i = 0; i < 3; i++) {
        digest_of(span_of(data, size[i]), &d);
        assert_int_equal(sign_chunk(&s, key, last, &d, next), 0);
        assert_string_equal(next, expected[i]);
        memcpy(last, next, sizeof(last));
    }
}

static void payloads(void **state)
{
    assert_int_equal(aws_payload_of(SPAN(A64)), AWS_PAYLOAD_HASH);
    assert_int_equal(aws_payload_of(SPAN("UNSIGNED-PAYLOAD")), AWS_PAYLOAD_UNSIGNED);
    assert_int_equal(aws_payload_of(SPAN("STREAMING-UNSIGNED-PAYLOAD-TRAILER")), AWS_PAYLOAD_UNSIGNED_TRAILER);
    assert_int_equal(aws_payload_of(SPAN("STREAMING-AWS4-HMAC-SHA256-PAYLOAD")), AWS_PAYLOAD_CHUNKS);
    assert_int_equal(aws_payload_of(SPAN("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER")), AWS_PAYLOAD_CHUNKS_TRAILER);
    assert_int_equal(aws_payload_of(SPAN("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD")), AWS_PAYLOAD_UNKNOWN);
    assert_int_equal(aws_payload_of(SPAN("unsigned-payload")), AWS_PAYLOAD_UNKNOWN);
    assert_int_equal(aws_payload_of(SPAN("")), AWS_PAYLOAD_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(signed_chunks), cmocka_unit_test(trailers),
                                       cmocka_unit_test(example_of_s3), cmocka_unit_test(payloads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
