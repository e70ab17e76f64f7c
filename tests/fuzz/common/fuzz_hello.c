/* First byte: bytes that arrive at once. Second: 0, the rest are records; else the rest is a message's body, sent in
 * records of that size. More bytes never change a verdict; a name is one that the rules for hosts take as it stands;
 * and OpenSSL, which sees the same bytes, reads the same name or refuses them. */
#include <openssl/ssl.h>

#include "common/dynbuf.h"
#include "common/handshake/hello.h"
#include "common/http/http.h"
#include "tests/fuzz/fuzz.h"

struct seen {
    bool asked, named;
    char name[256];
};

static int on_name(SSL *ssl, int *alert, void *arg)
{
    struct seen *s = SSL_get_app_data(ssl);
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)arg;
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    s->asked = true;
    s->named = name != NULL;
    if (name) {
        MUST_HOLD(strlen(name) < sizeof s->name);
        strcpy(s->name, name);
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL; /* the name is all that is wanted */
}

static void check_openssl(struct span in, const struct hello *h)
{
    static SSL_CTX *ctx;
    struct seen s = {.asked = false};
    if (ctx == NULL) {
        ctx = SSL_CTX_new(TLS_server_method());
        MUST_HOLD(ctx && SSL_CTX_set_tlsext_servername_callback(ctx, on_name));
    }
    SSL *ssl = SSL_new(ctx);
    BIO *from = BIO_new_mem_buf(in.p, (int)in.n), *to = BIO_new(BIO_s_mem());
    MUST_HOLD(ssl && from && to && SSL_set_app_data(ssl, &s));
    SSL_set_bio(ssl, from, to);
    MUST_HOLD(SSL_accept(ssl) <= 0);
    SSL_free(ssl);
    if (!s.asked)
        return; /* refused before the name mattered */
    MUST_HOLD(s.named == (h->nname > 0));
    MUST_HOLD(span_ieq(span_str(s.name), span_of(h->name, h->nname)));
}

static void check_name(enum hello_result r, const struct hello *h)
{
    char same[HTTP_HOST_MAX + 1];
    size_t n;
    MUST_HOLD((r == HELLO_OK) == (h->nname > 0) && h->name[h->nname] == 0);
    if (r != HELLO_OK)
        return;
    MUST_HOLD(http_canonical_host(span_of(h->name, h->nname), same, &n) == 0);
    MUST_HOLD(span_eq(span_of(same, n), span_of(h->name, h->nname)));
}

static enum hello_result deliver(struct span in, size_t step, struct hello *last)
{
    enum hello_result verdict = HELLO_MORE;
    for (size_t n = 0;; n = n + step < in.n ? n + step : in.n) {
        struct hello h;
        uint8_t *p = fuzz_copy(span_first(in, n));
        enum hello_result r = hello_parse(span_of(p, n), &h);
        free(p);
        check_name(r, &h);
        MUST_HOLD(verdict == HELLO_MORE || r == verdict);
        if (verdict != HELLO_MORE)
            MUST_HOLD(h.nname == last->nname && memcmp(h.name, last->name, h.nname) == 0 &&
                      h.has_ech == last->has_ech);
        verdict = r;
        *last = h;
        if (n == in.n)
            return r;
    }
}

static void wrap(struct dynbuf *out, struct span body, size_t fragment)
{
    const uint8_t head[4] = {1, (uint8_t)(body.n >> 16), (uint8_t)(body.n >> 8), (uint8_t)body.n};
    struct dynbuf message;
    dynbuf_init(&message, 1 << 17);
    MUST_HOLD(dynbuf_add(&message, span_of(head, sizeof head)) == 0 && dynbuf_add(&message, body) == 0);
    for (struct span rest = dynbuf_span(&message); rest.n;) {
        struct span part = span_first(rest, fragment);
        const uint8_t record[5] = {22, 3, 1, (uint8_t)(part.n >> 8), (uint8_t)part.n};
        MUST_HOLD(dynbuf_add(out, span_of(record, sizeof record)) == 0 && dynbuf_add(out, part) == 0);
        rest = span_from(rest, part.n);
    }
    dynbuf_free(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct hello h, other;
    struct dynbuf small, large;
    if (n < 2 || n > 1 << 15)
        return 0;
    struct span in = span_of(data + 2, n - 2);
    size_t step = data[0] ? data[0] : 1;
    dynbuf_init(&small, 1 << 18);
    dynbuf_init(&large, 1 << 18);
    enum hello_result r;
    if (data[1]) {
        wrap(&small, in, data[1]);
        wrap(&large, in, 1 << 14);
        in = dynbuf_span(&large);
        r = deliver(in, in.n, &h);
        if (small.n <= HELLO_MAX) {
            MUST_HOLD(deliver(dynbuf_span(&small), step + in.n / 64, &other) == r);
            MUST_HOLD(span_eq(span_of(h.name, h.nname), span_of(other.name, other.nname)));
        }
    } else {
        r = deliver(in, step + in.n / 64, &h);
    }
    if (r == HELLO_OK || r == HELLO_NO_NAME)
        check_openssl(in, &h);
    dynbuf_free(&small);
    dynbuf_free(&large);
    return 0;
}
