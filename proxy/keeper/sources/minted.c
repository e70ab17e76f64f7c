#include "proxy/keeper/sources/minted.h"

#include "common/crypto/jws.h"
#include "common/id.h"
#include "common/json/json.h"

static const struct span prefix = SPAN("jwt."), claim = SPAN("jwt.claim.");

uint64_t minted_ms(const struct wire_fetch *w)
{
    return wire_setting_u64(w, SPAN("jwt.ttl"), MINTED_MS);
}

/* One is a text, more are a list (RFC 7519 section 4.1.3). */
static void put_audience(struct jsonw *j, const struct wire_fetch *w)
{
    struct span first = wire_setting(w, SPAN("jwt.aud"), 0), one;
    if (wire_setting(w, SPAN("jwt.aud"), 1).n == 0) {
        if (first.n)
            jsonw_kv(j, "aud", first);
        return;
    }
    jsonw_kv_array(j, "aud");
    for (size_t i = 0; (one = wire_setting(w, SPAN("jwt.aud"), i)).n; i++)
        jsonw_string(j, one);
    jsonw_end_array(j);
}

static void put_others(struct jsonw *j, const struct wire_fetch *w)
{
    char name[64];
    for (size_t i = 0; i < w->nsettings; i++) {
        struct span key = span_from(w->setting[i].key, claim.n);
        if (!span_starts(w->setting[i].key, claim) || key.n >= sizeof(name))
            continue;
        memcpy(name, key.p, key.n);
        name[key.n] = '\0';
        jsonw_kv(j, name, w->setting[i].value);
    }
}

static int put_claims(struct dynbuf *out, const struct wire_fetch *w, int64_t now)
{
    static const struct {
        const char *setting, *name;
    } texts[] = {{"jwt.iss", "iss"}, {"jwt.sub", "sub"}};
    struct jsonw j;
    struct id id;
    char text[ID_TEXT + 1];
    if (now <= MINTED_BEFORE_S || id_new(&id) != 0)
        return -1;
    id_text(&id, text);
    jsonw_begin(&j, out);
    jsonw_object(&j);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct span value = wire_setting(w, span_str(texts[i].setting), 0);
        if (value.n)
            jsonw_kv(&j, texts[i].name, value);
    }
    put_audience(&j, w);
    jsonw_kv_u64(&j, "iat", (uint64_t)(now - MINTED_BEFORE_S));
    jsonw_kv_u64(&j, "exp", (uint64_t)now + minted_ms(w) / 1000);
    jsonw_kv(&j, "jti", span_str(text));
    put_others(&j, w);
    jsonw_end_object(&j);
    return dynbuf_ok(out) ? 0 : -1;
}

/* The settings that said what is in it are told to nobody else. */
static void replace(struct wire_fetch *w, struct span jwt)
{
    struct span as = wire_setting(w, SPAN("jwt.as"), 0);
    size_t n = 0;
    for (size_t i = 0; i < w->nsettings; i++)
        if (!span_starts(w->setting[i].key, prefix))
            w->setting[n++] = w->setting[i];
    w->setting[n++] = (struct wire_setting){as.n ? as : SPAN("assertion"), jwt};
    w->nsettings = n;
}

int minted_jwt(struct wire_fetch *w, int64_t now, struct secret **jwt, struct err *e)
{
    struct span pem = wire_setting(w, SPAN("jwt.key"), 0), kid = wire_setting(w, SPAN("jwt.kid"), 0);
    struct err why = {{0}};
    struct dynbuf claims, text;
    int rc = 0;
    *jwt = NULL;
    if (pem.n == 0)
        return 0;
    struct jws_key *key = jws_key_new(pem, &why);
    if (key == NULL)
        return err_set(e, "key, which it signs with: %s", why.text);
    dynbuf_init(&claims, MINTED_CLAIMS_MAX);
    dynbuf_init(&text, JWS_MAX);
    if (span_eq(kid, SPAN("*")))
        kid = span_str(jws_kid(key));
    if (put_claims(&claims, w, now) == 0 && jws_sign(key, kid, dynbuf_span(&claims), &text) == 0)
        *jwt = secret_new(dynbuf_span(&text));
    if (*jwt != NULL)
        replace(w, secret_bytes(*jwt));
    else
        rc = err_set(e, "what it is to sign is longer than %d bytes, or there is no memory", MINTED_CLAIMS_MAX);
    dynbuf_free(&claims);
    dynbuf_wipe(&text);
    jws_key_free(&key);
    return rc;
}
