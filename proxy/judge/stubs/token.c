/* Nothing is kept of a token: it says until when it is good, and a MAC says of which sandbox. */
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "proxy/judge/stubs/stub.h"

static int mac(struct exchange *x, uint64_t until_ms, struct digest *out)
{
    struct judge *j = x->judge;
    struct dynbuf b;
    unsigned n = 0;
    dynbuf_init(&b, 4096);
    msg_put_u64(&b, until_ms);
    msg_put_span(&b, x->sandbox->name);
    msg_put_span(&b, x->sandbox->session);
    msg_put_u64(&b, x->sandbox->generation);
    bool made = dynbuf_ok(&b) && HMAC(EVP_sha256(), j->stub_key, sizeof(j->stub_key), b.p, b.n, out->b, &n) != NULL &&
                n == DIGEST_BYTES;
    dynbuf_free(&b);
    return made ? 0 : -1;
}

static int text_of(struct exchange *x, uint64_t until_ms, char out[STUB_TOKEN_TEXT + 1])
{
    uint8_t raw[STUB_TOKEN_BYTES];
    struct digest d;
    if (mac(x, until_ms, &d) != 0)
        return -1;
    for (int i = 0; i < 8; i++)
        raw[i] = (uint8_t)(until_ms >> (56 - 8 * i));
    memcpy(raw + 8, d.b, DIGEST_BYTES);
    hex_text(span_of(raw, sizeof(raw)), out);
    return 0;
}

int stub_token_make(struct exchange *x, uint64_t seconds, char out[STUB_TOKEN_TEXT + 1])
{
    return text_of(x, x->judge->ports.wall(x->judge->ports.arg) + seconds * 1000, out);
}

bool stub_token_good(struct exchange *x, struct span text)
{
    uint64_t now = x->judge->ports.wall(x->judge->ports.arg), until_ms = 0;
    uint8_t raw[STUB_TOKEN_BYTES];
    char want[STUB_TOKEN_TEXT + 1];
    if (text.n != STUB_TOKEN_TEXT || hex_parse(text, raw, sizeof(raw)) != 0)
        return false;
    for (int i = 0; i < 8; i++)
        until_ms = until_ms << 8 | raw[i];
    return until_ms > now && text_of(x, until_ms, want) == 0 &&
           span_eq_consttime(text, span_of(want, STUB_TOKEN_TEXT));
}
