/* Standard Webhooks 1.0.0, "Signature scheme". */
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "common/id.h"
#include "proxy/fetcher/wire_fetch.h"
#include "proxy/keeper/tell/tell.h"

enum { MAC = 32, MESSAGE_MOST = FETCH_INPUT_MAX + TELL_ID_MAX + 32 };

static int key_of(struct span secret, uint8_t key[2 * TELL_KEY_MAX], size_t *n, struct err *e)
{
    static const struct span prefix = SPAN("whsec_");
    if (!span_starts(secret, prefix))
        return err_set(e, "its secret does not begin with whsec_");
    struct span text = span_from(secret, prefix.n);
    if (text.n > 4 * ((TELL_KEY_MAX + 2) / 3) || base64_decode(text, key, n) != 0 || *n < TELL_KEY_MIN ||
        *n > TELL_KEY_MAX)
        return err_set(e, "its secret is not whsec_ and the base64 of %d to %d bytes", TELL_KEY_MIN, TELL_KEY_MAX);
    return 0;
}

int tell_sign(struct span secret, struct span id, uint64_t seconds, struct span body, struct dynbuf *out,
              struct err *e)
{
    uint8_t key[2 * TELL_KEY_MAX], mac[MAC];
    char text[4 * ((MAC + 2) / 3) + 1];
    unsigned nmac = 0;
    size_t n = 0;
    struct dynbuf m;
    int bad = key_of(secret, key, &n, e);
    dynbuf_init(&m, MESSAGE_MOST);
    if (bad != 0)
        goto out;
    (void)dynbuf_addf(&m, "%.*s.%llu.", SPAN_FMT(id), (unsigned long long)seconds);
    (void)dynbuf_add(&m, body);
    if (!dynbuf_ok(&m) || HMAC(EVP_sha256(), key, (int)n, m.p, m.n, mac, &nmac) == NULL || nmac != MAC) {
        bad = err_set(e, "it cannot be signed: it is too long, or there is no memory");
        goto out;
    }
    (void)dynbuf_add(out, SPAN("v1,"));
    (void)dynbuf_add(out, span_of(text, base64_encode(span_of(mac, MAC), text)));
    bad = dynbuf_ok(out) ? 0 : err_set(e, "out of memory");
out:
    explicit_bzero(key, sizeof(key));
    dynbuf_free(&m);
    return bad;
}
