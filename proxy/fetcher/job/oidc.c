/* OpenID Connect: the code that somebody brought back from their organisation's provider, against the ID token that
 * says who they are (OpenID Connect Core 1.0 sections 3.1.3 and 3.1.3.7).
 *
 * The signature of the ID token is not looked at: it comes over TLS from the token endpoint of the configuration,
 * whose certificate was verified, and "the TLS server validation MAY be used to validate the issuer in place of
 * checking the token signature" (3.1.3.7, point 6). So no other way in may lead to oidc_answer. */
#include <stdio.h>

#include "common/arena.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/time/clock.h"
#include "proxy/fetcher/job/sources.h"

enum {
    FORM_MAX = 16 * 1024,
    JSON_MEMORY = 8 * 1024 * 1024,
    TOKEN_MAX = 64 * 1024,
    NAME_MAX_BYTES = 128, /* of a claim that says who somebody is; no person's name here is as long */
    SKEW_S = 60,          /* so far may their clock be from ours */
    AGE_S = 10 * 60       /* older is no ID token that was made for this code */
};

int oidc_question(const struct wire_fetch *f, struct dynbuf *form, struct err *e)
{
    static const char *const sent[] = {"code", "redirect_uri", "code_verifier"};
    http_form_add(form, "grant_type", SPAN("authorization_code"));
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        struct span value = wire_setting(f, span_str(sent[i]), 0);
        if (value.n == 0)
            return err_set(e, "%s is missing", sent[i]);
        http_form_add(form, sent[i], value);
    }
    return dynbuf_ok(form) ? 0 : err_set(e, "what it is asked with is too long");
}

/* One part of a JWS in compact form: base64url, without padding (RFC 7515). NULL: it is no JSON object. */
static const struct json *part(struct span text, struct arena *a)
{
    char *b64 = text.n > 0 && text.n <= TOKEN_MAX ? arena_alloc(a, text.n + 4) : NULL;
    uint8_t *out = b64 != NULL ? arena_alloc(a, text.n + 4) : NULL;
    size_t n = 0, i;
    if (out == NULL)
        return NULL;
    for (i = 0; i < text.n; i++) {
        char c = (char)text.p[i];
        if (c == '+' || c == '/' || c == '=')
            return NULL;
        b64[i] = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
    }
    for (; i % 4 != 0; i++)
        b64[i] = '=';
    const struct json *j = base64_decode(span_of(b64, i), out, &n) == 0 ? json_parse(span_of(out, n), a) : NULL;
    return j != NULL && j->type == JSON_OBJECT ? j : NULL;
}

/* For this client and nobody else: who else it is for could have asked for it, and handed it on. */
static bool is_for(const struct json *claims, struct span client)
{
    const struct json *aud = json_get(claims, SPAN("aud")), *azp = json_get(claims, SPAN("azp"));
    if (aud != NULL && aud->type == JSON_ARRAY && aud->count == 1)
        aud = aud->child;
    return aud != NULL && aud->type == JSON_STRING && span_eq(aud->text, client) &&
           (azp == NULL || (azp->type == JSON_STRING && span_eq(azp->text, client)));
}

static int of_now(const struct json *claims, uint64_t now_s, struct err *e)
{
    uint64_t exp, iat, nbf = 0;
    if (json_u64(claims, SPAN("exp"), &exp) != 0 || json_u64(claims, SPAN("iat"), &iat) != 0)
        return err_set(e, "the ID token does not say when it was made and until when it is good");
    if (json_get(claims, SPAN("nbf")) != NULL && json_u64(claims, SPAN("nbf"), &nbf) != 0)
        return err_set(e, "nbf of the ID token is no time");
    if (exp + SKEW_S <= now_s)
        return err_set(e, "the ID token has expired; is the clock right?");
    if (iat > now_s + SKEW_S || nbf > now_s + SKEW_S)
        return err_set(e, "the ID token is of the future; is the clock right?");
    if (iat + AGE_S + SKEW_S < now_s)
        return err_set(e, "the ID token was made long ago; is the clock right?");
    return 0;
}

/* Who it is. An address that nobody has verified is whatever somebody typed at the provider. */
static int who(const struct json *claims, struct span claim, struct span *value, struct err *e)
{
    const struct json *verified = json_get(claims, SPAN("email_verified"));
    *value = json_text(claims, claim);
    if (value->n == 0)
        return err_set(e, "the ID token has no claim %.*s that is a text", SPAN_FMT(claim));
    if (span_eq(claim, SPAN("email")) && (verified == NULL || verified->type != JSON_BOOL || !verified->truth))
        return err_set(e, "the provider does not say that the e-mail address is verified (email_verified: true)");
    for (size_t i = 0; i < value->n; i++)
        if (value->n > NAME_MAX_BYTES || value->p[i] <= 0x20 || value->p[i] >= 0x7f)
            return err_set(e, "the claim %.*s is no name that a person here can have", SPAN_FMT(claim));
    return 0;
}

static int claims_hold(const struct json *claims, const struct wire_fetch *f, uint64_t now_s, struct err *e)
{
    struct span issuer = wire_setting(f, SPAN("issuer"), 0), client = wire_setting(f, SPAN("client_id"), 0);
    struct span nonce = wire_setting(f, SPAN("nonce"), 0);
    if (issuer.n == 0 || client.n == 0 || nonce.n == 0)
        return err_set(e, "what the ID token must say is not known");
    if (!span_eq(json_text(claims, SPAN("iss")), issuer))
        return err_set(e, "the ID token is of another issuer");
    if (!is_for(claims, client))
        return err_set(e, "the ID token is not for this client alone");
    if (json_text(claims, SPAN("sub")).n == 0)
        return err_set(e, "the ID token has no sub");
    if (!span_eq_consttime(json_text(claims, SPAN("nonce")), nonce))
        return err_set(e, "the ID token was made for another sign-in (nonce)");
    return of_now(claims, now_s, e);
}

int oidc_answer(struct span json, const struct wire_fetch *f, uint64_t now_s, struct arena *a,
                struct wire_fetched *out, struct err *e)
{
    const struct json *all = json_parse(json, a);
    struct span head, rest, body, signature;
    *out = (struct wire_fetched){.ok = false};
    if (all == NULL || all->type != JSON_OBJECT)
        return err_set(e, "the token endpoint's answer is not a JSON object");
    struct span token = json_text(all, SPAN("id_token"));
    if (token.n == 0)
        return err_set(e, "the token endpoint's answer has no id_token; does the provider know the scope openid?");
    if (token.n > TOKEN_MAX || !span_cut(token, '.', &head, &rest) || !span_cut(rest, '.', &body, &signature) ||
        span_index(signature, '.') < signature.n)
        return err_set(e, "the ID token is not a signed JWT (one that is encrypted is not read)");
    const struct json *header = part(head, a), *claims = part(body, a);
    struct span alg = json_text(header, SPAN("alg"));
    if (header == NULL || claims == NULL)
        return err_set(e, "the ID token cannot be read");
    /* Only a client that asks for that when it is registered may be given one (OpenID Connect Core section 2). */
    if (alg.n == 0 || span_ieq(alg, SPAN("none")) || signature.n == 0)
        return err_set(e, "the ID token is not signed");
    return claims_hold(claims, f, now_s, e) != 0 ? -1
                                                 : who(claims, wire_setting(f, SPAN("claim"), 0), &out->value, e);
}

void source_oidc(const struct job *j, struct http *h)
{
    struct wire_fetched got;
    struct dynbuf form, field;
    struct arena a;
    struct err e = {{0}};
    struct span body, code;
    unsigned status = 0;
    arena_init(&a, JSON_MEMORY);
    dynbuf_init(&form, FORM_MAX);
    if (oidc_question(&j->ask, &form, &e) != 0)
        job_failed(j, "%s", e.text);
    if (oauth2_basic(&j->ask, &field) != 0 || field.n == 0)
        job_failed(j, "client_id and client_secret are too long, or one is missing");
    const struct http_ask ask = {.method = "POST",
                                 .fields = {SPAN("Accept: application/json"), dynbuf_span(&field)},
                                 .body = dynbuf_span(&form)};
    if (http_ask(h, &ask, &status, &body, &e) != 0)
        job_failed(j, "the token endpoint: %s", e.text);
    if (status != 200) {
        code = source_error_code(body, &a);
        job_failed(j, "the token endpoint answered %u%s%.*s", status, code.n ? ": " : "", SPAN_FMT(code));
    }
    if (oidc_answer(body, &j->ask, clock_ms(CLOCK_REALTIME) / 1000, &a, &got, &e) != 0)
        job_failed(j, "%s", e.text);
    job_done(j, got.value, 0, SPAN_NONE);
}
