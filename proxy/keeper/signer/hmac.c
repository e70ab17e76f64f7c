#include "proxy/keeper/signer/hmac.h"

#include "common/sign/hmac.h"

enum { SIGNED_MAX = 512 * 1024, FIELD_MAX = 16 * 1024, SIGNATURE_MAX = 256 };

/* With the key: what is signed, signed. */
static int make(const struct credential *c, const struct sign_facts *f, struct span key_text, struct dynbuf *out)
{
    uint8_t key[SIGN_HMAC_KEY_MAX];
    struct dynbuf text;
    size_t n = 0;
    int rc = -1;
    dynbuf_init(&text, SIGNED_MAX);
    if (sign_expand(c->hmac.sign, f, &text) == 0 && sign_hmac_key(c->hmac.key, key_text, key, &n) == 0)
        rc = sign_hmac(c->hmac.hash, span_of(key, n), dynbuf_span(&text), c->hmac.encoding, out);
    explicit_bzero(key, sizeof(key));
    dynbuf_wipe(&text);
    return rc;
}

static int set_field(const struct sign_facts *f, struct span name, struct span format, struct signature *out)
{
    struct dynbuf value;
    int rc = -1;
    dynbuf_init(&value, FIELD_MAX);
    if (out->nfields < SIGNER_FIELDS && sign_expand(format, f, &value) == 0) {
        out->field[out->nfields].name = name;
        out->field[out->nfields].value = secret_new(dynbuf_span(&value));
        rc = out->field[out->nfields++].value ? 0 : -1;
    }
    dynbuf_wipe(&value);
    return rc;
}

int hmac_sign(const struct policy *p, const struct credential *c, struct span value, const struct wire_sign *r,
              const struct signer_place *at, uint64_t now_ms, struct signature *out, struct err *e)
{
    struct signer_pair pair;
    struct dynbuf host, signature;
    struct span name, format;
    *out = (struct signature){.nfields = 0};
    if (signer_parts(c, value, &pair, e) != 0)
        return -1;
    dynbuf_init(&host, HTTP_HOST_MAX + 8);
    dynbuf_init(&signature, SIGNATURE_MAX);
    struct sign_facts f = {.method = r->method,
                           .path = r->path,
                           .query = r->query,
                           .body = r->payload,
                           .given = r->field,
                           .ngiven = r->nfields,
                           .now_ms = now_ms,
                           .id = pair.id,
                           .token = pair.token};
    int rc = signer_put_host(&host, at);
    f.host = dynbuf_span(&host);
    if (rc == 0)
        rc = make(c, &f, pair.key, &signature);
    f.signature = dynbuf_span(&signature);
    for (size_t i = 0; rc == 0 && policy_signed_field(p, c, i, &name, &format); i++)
        rc = set_field(&f, name, format, out);
    dynbuf_free(&host);
    dynbuf_free(&signature);
    if (rc == 0 && out->nfields > 0)
        return 0;
    return err_set(e, "the request could not be signed: out of memory, or its parts are too large");
}
