/* OAuth 2.0: client credentials and refresh tokens (RFC 6749), a JWT as authorization (RFC 7523), token exchange
 * (RFC 8693). */
#include "common/arena.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/time/instant.h"
#include "proxy/fetcher/job/sources.h"

enum { FORM_MAX = 64 * 1024, JSON_MEMORY = 8 * 1024 * 1024, CODE_MAX = 64, CREDENTIALS_MAX = 16 * 1024 };

static const struct grant {
    const char *name, *type; /* as the policy says it, and as it is sent */
} grants[] = {{"client_credentials", "client_credentials"},
              {"refresh_token", "refresh_token"},
              {"jwt_bearer", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
              {"token_exchange", "urn:ietf:params:oauth:grant-type:token-exchange"}};

/* Settings that are sent under their own name. */
static const char *const sent[] = {"client_assertion",
                                   "refresh_token",
                                   "assertion",
                                   "scope",
                                   "audience",
                                   "resource",
                                   "subject_token",
                                   "subject_token_type",
                                   "requested_token_type",
                                   "actor_token",
                                   "actor_token_type",
                                   "options"};

static bool in_the_body(const struct wire_fetch *f)
{
    return span_eq(wire_setting(f, SPAN("auth"), 0), SPAN("body"));
}

int oauth2_question(const struct wire_fetch *f, struct dynbuf *form, struct err *e)
{
    struct span grant = wire_setting(f, SPAN("grant"), 0), id = wire_setting(f, SPAN("client_id"), 0);
    struct span secret = wire_setting(f, SPAN("client_secret"), 0);
    const char *type = NULL;
    for (size_t i = 0; i < sizeof(grants) / sizeof(grants[0]); i++)
        if (span_eq(grant, span_str(grants[i].name)))
            type = grants[i].type;
    if (type == NULL)
        return err_set(e, "it has no grant that is known");
    http_form_add(form, "grant_type", span_str(type));
    if (id.n && (in_the_body(f) || secret.n == 0))
        http_form_add(form, "client_id", id);
    if (secret.n && in_the_body(f))
        http_form_add(form, "client_secret", secret);
    if (wire_setting(f, SPAN("client_assertion"), 0).n) /* RFC 7523 section 2.2 */
        http_form_add(form, "client_assertion_type", SPAN("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        struct span value;
        for (size_t k = 0; (value = wire_setting(f, span_str(sent[i]), k)).n; k++)
            http_form_add(form, sent[i], value);
    }
    return dynbuf_ok(form) ? 0 : err_set(e, "what it is asked with is too long");
}

int oauth2_basic(const struct wire_fetch *f, struct dynbuf *field)
{
    struct dynbuf pair;
    struct span id = wire_setting(f, SPAN("client_id"), 0), secret = wire_setting(f, SPAN("client_secret"), 0);
    dynbuf_init(&pair, CREDENTIALS_MAX);
    dynbuf_init(field, 2 * CREDENTIALS_MAX);
    if (secret.n == 0 || in_the_body(f))
        return 0;
    http_form_add(&pair, "", id);
    (void)dynbuf_add_byte(&pair, ':');
    size_t colon = pair.n;
    http_form_add(&pair, "", secret); /* "&=" before the secret, "=" before the id: cut out below */
    if (!dynbuf_ok(&pair))
        return -1;
    memmove(pair.p + colon, pair.p + colon + 2, pair.n - colon - 2);
    struct span text = span_of(pair.p + 1, pair.n - 3);
    (void)dynbuf_add(field, SPAN("Authorization: Basic "));
    uint8_t *room = dynbuf_room(field, 4 * ((text.n + 2) / 3) + 1);
    if (room != NULL)
        dynbuf_grew(field, base64_encode(text, (char *)room));
    dynbuf_wipe(&pair);
    return dynbuf_ok(field) ? 0 : -1;
}

struct span source_error_code(struct span json, struct arena *a)
{
    const struct json *j = json_parse(json, a);
    struct span code = j != NULL && j->type == JSON_OBJECT ? json_text(j, SPAN("error")) : SPAN_NONE;
    for (size_t i = 0; i < code.n; i++)
        if (!(code.p[i] >= 'a' && code.p[i] <= 'z') && code.p[i] != '_')
            return SPAN_NONE;
    return code.n <= CODE_MAX ? code : SPAN_NONE;
}

/* A number of seconds; some servers write it as a text. */
static int seconds(const struct json *all, uint64_t *ms, struct err *e)
{
    const struct json *x = json_get(all, SPAN("expires_in"));
    *ms = 0;
    if (x == NULL || x->type == JSON_NULL)
        return 0;
    if ((x->type != JSON_NUMBER && x->type != JSON_STRING) || instant_seconds(x->text, ms) != 0)
        return err_set(e, "expires_in of the token endpoint's answer is no number of seconds");
    *ms += *ms == 0;
    return 0;
}

int oauth2_answer(struct span json, struct arena *a, struct wire_fetched *out, struct err *e)
{
    const struct json *all = json_parse(json, a);
    *out = (struct wire_fetched){.ok = false};
    if (all == NULL || all->type != JSON_OBJECT)
        return err_set(e, "the token endpoint's answer is not a JSON object");
    struct span type = json_text(all, SPAN("token_type"));
    out->value = json_text(all, SPAN("access_token"));
    out->keep = json_text(all, SPAN("refresh_token"));
    if (out->value.n == 0)
        return err_set(e, "the token endpoint's answer has no access_token");
    if (!span_ieq(type, SPAN("bearer")) && !span_eq(type, SPAN("N_A")))
        return err_set(e, "the token endpoint's token is not of type Bearer");
    return seconds(all, &out->lifetime_ms, e);
}

void source_oauth2(const struct job *j, struct http *h)
{
    struct wire_fetched got;
    struct dynbuf form, field;
    struct arena a;
    struct err e = {{0}};
    struct span body, code;
    unsigned status = 0;
    arena_init(&a, JSON_MEMORY);
    dynbuf_init(&form, FORM_MAX);
    if (oauth2_question(&j->ask, &form, &e) != 0)
        job_failed(j, "%s", e.text);
    if (oauth2_basic(&j->ask, &field) != 0)
        job_failed(j, "client_id and client_secret are too long");
    const struct http_ask ask = {.method = "POST",
                                 .fields = {SPAN("Accept: application/json"), dynbuf_span(&field)},
                                 .body = dynbuf_span(&form)};
    if (http_ask(h, &ask, &status, &body, &e) != 0)
        job_failed(j, "the token endpoint: %s", e.text);
    if (status != 200) {
        code = source_error_code(body, &a);
        job_failed(j, "the token endpoint answered %u%s%.*s", status, code.n ? ": " : "", SPAN_FMT(code));
    }
    int bad = oauth2_answer(body, &a, &got, &e);
    bool rotates = span_eq(wire_setting(&j->ask, SPAN("grant"), 0), SPAN("refresh_token"));
    struct span keep = rotates ? got.keep : SPAN_NONE;
    if (bad != 0)
        job_kept(j, keep, e.text);
    job_done(j, got.value, got.lifetime_ms, keep);
}
