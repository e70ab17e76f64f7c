/* First byte: which message. The rest: what came. More bytes never change a verdict, and what was taken, written
 * again from the model, is the same bytes. */
#include "common/dynbuf.h"
#include "common/handshake/socks5.h"
#include "tests/fuzz/fuzz.h"

struct outcome {
    enum socks5_result result;
    enum socks5_method method;
    enum socks5_reply why;
    size_t used;
    struct socks5_request request;
};

static void check_greeting(struct span in, const struct outcome *o, enum socks5_method want)
{
    struct span offered = span_first(span_from(in, 2), in.p[1]);
    MUST_HOLD(o->used == 2u + in.p[1] && offered.n == in.p[1] && offered.n > 0);
    bool there = span_index(offered, (uint8_t)want) < offered.n;
    MUST_HOLD(o->method == (there ? want : SOCKS5_NO_METHOD));
}

static void check_login(struct span in, struct span user, struct span password, size_t used)
{
    struct dynbuf b;
    dynbuf_init(&b, 1024);
    MUST_HOLD(user.n > 0 && user.n < 256 && password.n > 0 && password.n < 256);
    (void)dynbuf_add_byte(&b, 1);
    (void)dynbuf_add_byte(&b, (uint8_t)user.n);
    (void)dynbuf_add(&b, user);
    (void)dynbuf_add_byte(&b, (uint8_t)password.n);
    (void)dynbuf_add(&b, password);
    MUST_HOLD(span_eq(dynbuf_span(&b), span_first(in, used)));
    dynbuf_free(&b);
}

static void check_request(struct span in, const struct outcome *o)
{
    const struct socks5_request *r = &o->request;
    uint8_t type = r->family == 0 ? 3 : r->family == 4 ? 1 : 4;
    struct dynbuf b;
    dynbuf_init(&b, 1024);
    MUST_HOLD(r->port > 0 && (r->family == 0) == (r->nhost > 0) && r->nhost <= SOCKS5_NAME_MAX && !r->host[r->nhost]);
    MUST_HOLD(span_index(span_of(r->host, r->nhost), 0) == r->nhost && o->why == SOCKS5_SUCCEEDED);
    (void)dynbuf_add(&b, SPAN("\x05\x01\0"));
    (void)dynbuf_add_byte(&b, type);
    if (type == 3) {
        (void)dynbuf_add_byte(&b, (uint8_t)r->nhost);
        (void)dynbuf_add(&b, span_of(r->host, r->nhost));
    } else {
        (void)dynbuf_add(&b, span_of(r->address, type == 1 ? 4 : 16));
    }
    (void)dynbuf_add_byte(&b, (uint8_t)(r->port >> 8));
    (void)dynbuf_add_byte(&b, (uint8_t)r->port);
    MUST_HOLD(span_eq(dynbuf_span(&b), span_first(in, o->used)));
    dynbuf_free(&b);
}

static void parse(unsigned which, struct span in, struct outcome *o)
{
    struct span user, password;
    enum socks5_method want = which % 4 == 0 ? SOCKS5_NONE : SOCKS5_PASSWORD;
    memset(o, 0, sizeof *o);
    if (which % 4 < 2) {
        o->result = socks5_greeting(in, want, &o->method, &o->used);
        if (o->result == SOCKS5_OK)
            check_greeting(in, o, want);
    } else if (which % 4 == 2) {
        o->result = socks5_login(in, &user, &password, &o->used);
        if (o->result == SOCKS5_OK)
            check_login(in, user, password, o->used);
    } else {
        o->result = socks5_request(in, &o->request, &o->used, &o->why);
        if (o->result == SOCKS5_OK)
            check_request(in, o);
        else if (o->result == SOCKS5_BAD)
            MUST_HOLD(o->why != SOCKS5_SUCCEEDED);
        else
            o->why = SOCKS5_SUCCEEDED; /* says nothing yet */
    }
    MUST_HOLD((o->result == SOCKS5_OK) == (o->used > 0) && o->used <= in.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct outcome was = {.result = SOCKS5_MORE}, o;
    if (n < 1 || n > 1024)
        return 0;
    struct span in = span_of(data + 1, n - 1);
    for (size_t k = 0; k <= in.n; k++) {
        uint8_t *p = fuzz_copy(span_first(in, k));
        parse(data[0], span_of(p, k), &o);
        free(p);
        MUST_HOLD(was.result == SOCKS5_MORE || memcmp(&was, &o, sizeof o) == 0);
        was = o;
    }
    return 0;
}
