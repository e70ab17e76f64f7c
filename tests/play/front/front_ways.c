#include "tests/play/front/front_ways.h"

#include <stdlib.h>

void took_note(struct stage *s, enum walk_step step, const char *code, const char *scheme, const char *host,
               uint16_t port)
{
    UNTIL(s, s->books.first != NULL);
    while (s->books.first != NULL && s->books.first->type == M_REFUSED)
        (void)take(s, &s->books, M_REFUSED);
    struct got g = take(s, &s->books, M_FRONT_REFUSED);
    struct msg_in m = msg_in(g.payload);
    assert_int_equal(g.id >> FRONT_INSTANCE_SHIFT, INSTANCE);
    uint8_t said = msg_get_u8(&m);
    struct span c = msg_get_span(&m, 64), sc = msg_get_span(&m, 5), h = msg_get_span(&m, HTTP_HOST_MAX);
    uint16_t p = msg_get_u16(&m);
    assert_int_equal(msg_end(&m), 0);
    if (!span_eq(c, span_str(code)) || !span_eq(sc, span_str(scheme)) || !span_eq(h, span_str(host)) || p != port ||
        said != step)
        fail_msg("noted step %u, \"%.*s\", %.*s://%.*s:%u", said, SPAN_FMT(c), SPAN_FMT(sc), SPAN_FMT(h), p);
}

void expect_bytes(struct cl *c, struct span want)
{
    uint64_t until = now_ms() + 5000;
    for (cl_read(c); c->in.n < want.n; cl_read(c)) {
        if (c->ended || now_ms() > until)
            fail_msg("%zu bytes of %zu came", c->in.n, want.n);
        turn(c->s);
    }
    assert_true(span_eq(dynbuf_span(&c->in), want));
    cl_forget(c);
}

struct span hello_of(struct stage *s, const char *sni)
{
    SSL *ssl = SSL_new(s->tls);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    unsigned char *p;
    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    if (sni != NULL)
        assert_int_equal(SSL_set_tlsext_host_name(ssl, sni), 1);
    assert_true(SSL_do_handshake(ssl) < 1);
    long n = BIO_get_mem_data(out, &p);
    uint8_t *copy = malloc((size_t)n);
    assert_non_null(copy);
    struct span hello = span_of(memcpy(copy, p, (size_t)n), (size_t)n);
    SSL_free(ssl);
    return hello;
}

void socks_open(struct stage *s, struct cl *c, struct span request)
{
    cl_adopt_way(s, c, WAY_SOCKS, 0, "", SPAN_NONE);
    cl_say(c, request);
    expect_bytes(c, SPAN(SOCKS_GRANTED));
}
