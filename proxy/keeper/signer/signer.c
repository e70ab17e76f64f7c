#include "proxy/keeper/signer/signer.h"

#include <stdlib.h>

#include "common/sign/hmac.h"

struct signer {
    struct {
        struct digest of; /* scheme, secret, day, region and service */
        struct secret *key;
    } kept[SIGNER_KEYS];
    size_t next;
};

enum { ARENA_MAX = 512 * 1024, AUTHORIZATION_MAX = 64 * 1024 };

struct signer *signer_new(void)
{
    return calloc(1, sizeof(struct signer));
}

void signer_free(struct signer **s)
{
    if (*s == NULL)
        return;
    for (size_t i = 0; i < SIGNER_KEYS; i++)
        secret_free(&(*s)->kept[i].key);
    free(*s);
    *s = NULL;
}

static int cut_pair(struct span value, struct signer_pair *out, struct err *e)
{
    struct span rest;
    *out = (struct signer_pair){.id = SPAN_NONE};
    if (span_index(value, '\n') < value.n || !span_cut(value, ':', &out->id, &rest) || !sign_name_ok(out->id))
        return err_set(e, "the value must be ID:KEY or ID:KEY:TOKEN: it is to sign with");
    bool token = span_cut(rest, ':', &out->key, &out->token);
    if (out->key.n < SIGNER_PART_MIN || (token && out->token.n < SIGNER_PART_MIN))
        return err_set(e, "the key or the token in it is shorter than %d bytes: answers could not be scrubbed of it",
                       SIGNER_PART_MIN);
    return 0;
}

static int key_fits(const struct credential *c, struct span key, struct err *e)
{
    static const char *const written[SIGN_CODINGS] = {"text", "hex", "base64", "base64url"};
    uint8_t raw[SIGN_HMAC_KEY_MAX];
    size_t n = 0;
    int rc = sign_hmac_key(c->hmac.key, key, raw, &n);
    explicit_bzero(raw, sizeof(raw));
    if (rc != 0)
        return err_set(e, "the key in it is not %s, as the policy says that it is written", written[c->hmac.key]);
    if (n < SIGNER_PART_MIN)
        return err_set(e, "the key in it is shorter than %d bytes: answers could not be scrubbed of it",
                       SIGNER_PART_MIN);
    return 0;
}

int signer_parts(const struct credential *c, struct span value, struct signer_pair *out, struct err *e)
{
    *out = (struct signer_pair){.key = value};
    if ((c->sign != SIGN_HMAC || c->hmac.secret != SIGN_KEY_ALONE) && cut_pair(value, out, e) != 0)
        return -1;
    if (c->sign != SIGN_HMAC)
        return 0;
    if (c->hmac.secret == SIGN_ID_KEY_TOKEN && out->token.n == 0)
        return err_set(e, "the value must be ID:KEY:TOKEN: the policy puts {token} into a header");
    return key_fits(c, out->key, e);
}

struct secret *signer_key_bytes(const struct credential *c, struct span key)
{
    uint8_t raw[SIGN_HMAC_KEY_MAX];
    size_t n = 0;
    struct secret *s = NULL;
    if (c->sign == SIGN_HMAC && c->hmac.key != SIGN_AS_TEXT && sign_hmac_key(c->hmac.key, key, raw, &n) == 0)
        s = secret_new(span_of(raw, n));
    explicit_bzero(raw, sizeof(raw));
    return s;
}

static void name_key(const struct sign_scope *scope, struct span whose, struct digest *of)
{
    struct digest_ctx *d = digest_begin();
    digest_add_field(d, span_of(&(uint8_t){(uint8_t)scope->scheme}, 1));
    digest_add_field(d, whose);
    digest_add_field(d, span_str(scope->day));
    digest_add_field(d, scope->region);
    digest_add_field(d, scope->service);
    digest_end(d, of);
}

struct span signer_kept(const struct signer *s, const struct sign_scope *scope, struct span whose)
{
    struct digest of;
    name_key(scope, whose, &of);
    for (size_t i = 0; i < SIGNER_KEYS; i++)
        if (s->kept[i].key != NULL && memcmp(&s->kept[i].of, &of, sizeof(of)) == 0)
            return secret_bytes(s->kept[i].key);
    return SPAN_NONE;
}

struct span signer_keep(struct signer *s, const struct sign_scope *scope, struct span whose, struct span secret)
{
    uint8_t key[SIGN_KEY];
    if (sign_key(scope, secret, key) != 0)
        return SPAN_NONE;
    size_t at = s->next;
    s->next = (at + 1) % SIGNER_KEYS;
    secret_free(&s->kept[at].key);
    s->kept[at].key = secret_new(span_of(key, sizeof(key)));
    name_key(scope, whose, &s->kept[at].of);
    explicit_bzero(key, sizeof(key));
    return s->kept[at].key ? secret_bytes(s->kept[at].key) : SPAN_NONE;
}

/* The key of the day, made or kept. */
static struct span key_of(struct signer *s, const struct sign_scope *scope, struct span secret)
{
    struct span key = signer_kept(s, scope, secret);
    return key.n ? key : signer_keep(s, scope, secret, secret);
}

static int give(struct signature *out, struct span name, struct span value)
{
    out->field[out->nfields].name = name;
    out->field[out->nfields].value = secret_new(value);
    return out->field[out->nfields++].value ? 0 : -1;
}

int signer_put_host(struct dynbuf *out, const struct signer_place *at)
{
    unsigned usual = span_eq(at->scheme, SPAN("https")) ? 443 : 80;
    (void)dynbuf_add(out, at->host);
    if (at->port != usual)
        (void)dynbuf_addf(out, ":%u", (unsigned)at->port);
    return dynbuf_ok(out) ? 0 : -1;
}

static int add_host(struct sign_request *r, struct arena *a, const struct signer_place *at)
{
    struct dynbuf host;
    dynbuf_init(&host, HTTP_HOST_MAX + 8);
    int rc = signer_put_host(&host, at) == 0 ? sign_add_field(r, a, SPAN("host"), dynbuf_span(&host)) : -1;
    dynbuf_free(&host);
    return rc;
}

static int add_own(struct sign_request *r, struct arena *a, const struct sign_scope *scope,
                   const struct signer_pair *pair, bool tell_payload, struct signature *out)
{
    bool tc3 = scope->scheme == SIGN_TC3;
    struct span stamp = span_str(scope->stamp);
    if (tc3) /* neither is signed */
        return give(out, SPAN("X-TC-Timestamp"), stamp) == 0 &&
                       (pair->token.n == 0 || give(out, SPAN("X-TC-Token"), pair->token) == 0)
                   ? 0
                   : -1;
    if (give(out, SPAN("X-Amz-Date"), stamp) != 0 || sign_add_field(r, a, SPAN("x-amz-date"), stamp) != 0)
        return -1;
    if (pair->token.n && (give(out, SPAN("X-Amz-Security-Token"), pair->token) != 0 ||
                          sign_add_field(r, a, SPAN("x-amz-security-token"), pair->token) != 0))
        return -1;
    if (tell_payload && (give(out, SPAN("X-Amz-Content-Sha256"), r->payload) != 0 ||
                         sign_add_field(r, a, SPAN("x-amz-content-sha256"), r->payload) != 0))
        return -1;
    return 0;
}

static int sign_chunks(const struct sign_scope *scope, const uint8_t *key, const struct wire_sign *w,
                       char last[SIGN_TEXT + 1], struct dynbuf *out)
{
    for (struct span rest = w->chunks; rest.n; rest = span_from(rest, WIRE_CHUNK)) {
        struct digest d;
        char next[SIGN_TEXT + 1];
        bool trailer = w->trailer && rest.n == WIRE_CHUNK;
        memcpy(d.b, rest.p + 8, DIGEST_BYTES);
        if ((trailer ? sign_trailer : sign_chunk)(scope, key, last, &d, next) != 0)
            return -1;
        (void)dynbuf_add(out, span_first(rest, 8));
        (void)dynbuf_add(out, span_of(next, SIGN_TEXT));
        memcpy(last, next, sizeof(next));
    }
    return dynbuf_ok(out) ? 0 : -1;
}

/* A session token is among them; their memory is the arena's, which is not wiped. */
static void wipe_fields(struct sign_request *r)
{
    for (size_t i = 0; i < r->nfields; i++)
        explicit_bzero((void *)(uintptr_t)r->field[i].value.p, r->field[i].value.n);
    r->nfields = 0;
}

static int sign_all(struct signer *s, const struct sign_scope *scope, const struct signer_pair *pair,
                    const struct wire_sign *w, const struct signer_place *at, struct arena *a, struct signature *out)
{
    struct sign_request r = {.method = w->method, .path = w->path, .query = w->query, .payload = w->payload};
    char signature[SIGN_TEXT + 1];
    struct dynbuf text;
    int rc = -1;
    struct span key = key_of(s, scope, pair->key);
    dynbuf_init(&text, AUTHORIZATION_MAX);
    for (size_t i = 0; i < w->nfields; i++)
        if (sign_add_field(&r, a, w->field[i].name, w->field[i].value) != 0)
            goto out;
    if (w->payload.n == 0 || key.n != SIGN_KEY || add_host(&r, a, at) != 0 ||
        add_own(&r, a, scope, pair, w->tell_payload, out) != 0)
        goto out;
    if (sign_request(scope, key.p, &r, signature) != 0 ||
        sign_authorization(scope, pair->id, &r, signature, &text) != 0)
        goto out;
    if (give(out, SPAN("Authorization"), dynbuf_span(&text)) == 0)
        rc = sign_chunks(scope, key.p, w, signature, &out->chunks);
out:
    wipe_fields(&r);
    dynbuf_wipe(&text);
    return rc;
}

int signer_sign(struct signer *s, const struct credential *c, struct span value, const struct wire_sign *r,
                const struct signer_place *at, int64_t now, struct signature *out, struct err *e)
{
    struct sign_scope scope;
    struct signer_pair pair;
    struct arena a;
    *out = (struct signature){.nfields = 0};
    dynbuf_init(&out->chunks, (size_t)WIRE_CHUNKS_MAX * WIRE_CHUNK_SIGNED);
    if (signer_parts(c, value, &pair, e) != 0)
        return -1;
    if (sign_scope_at(c->sign, now, c->region, c->service, &scope) != 0)
        return err_set(e, "the policy's region or service can stand in no signature");
    arena_init(&a, ARENA_MAX);
    int rc = sign_all(s, &scope, &pair, r, at, &a, out);
    arena_free(&a);
    return rc == 0 ? 0 : err_set(e, "the request could not be signed: out of memory, or its head is too large");
}

void signature_clear(struct signature *s)
{
    for (size_t i = 0; i < s->nfields; i++)
        secret_free(&s->field[i].value);
    dynbuf_free(&s->chunks);
    *s = (struct signature){.nfields = 0};
}
