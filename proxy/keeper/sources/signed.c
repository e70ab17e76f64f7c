#include "proxy/keeper/sources/signed.h"

#include <stdio.h>

#define FORM "application/x-www-form-urlencoded"

static void form(struct dynbuf *b, const char *name, struct span value)
{
    if (value.n == 0)
        return;
    (void)dynbuf_addf(b, "%s%s=", b->n ? "&" : "", name);
    dynbuf_add_percent(b, value, "-._~");
}

/* https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html and API_AssumeRoleWithWebIdentity.html */
static void aws_body(const struct wire_fetch *w, struct dynbuf *b)
{
    static const struct {
        const char *setting, *name;
    } texts[] = {{"role", "RoleArn"},           {"session", "RoleSessionName"}, {"source_identity", "SourceIdentity"},
                 {"external_id", "ExternalId"}, {"policy", "Policy"},           {"web_identity", "WebIdentityToken"}};
    bool web = wire_setting(w, SPAN("web_identity"), 0).n > 0;
    uint64_t seconds = wire_setting_u64(w, SPAN("duration"), 0) / 1000;
    struct span arn;
    char text[64];
    form(b, "Action", web ? SPAN("AssumeRoleWithWebIdentity") : SPAN("AssumeRole"));
    form(b, "Version", SPAN("2011-06-15"));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        form(b, texts[i].name, wire_setting(w, span_str(texts[i].setting), 0));
    for (size_t i = 0; (arn = wire_setting(w, SPAN("policy_arns"), i)).n; i++) {
        (void)snprintf(text, sizeof(text), "PolicyArns.member.%zu.arn", i + 1);
        form(b, text, arn);
    }
    if (seconds) {
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)seconds);
        form(b, "DurationSeconds", span_str(text));
    }
}

static int sign(const struct wire_fetch *w, struct signer *s, int64_t now, struct span key, struct signed_ask *out,
                struct err *e)
{
    const struct credential c = {
        .sign = SIGN_AWS4, .region = wire_setting(w, SPAN("region"), 0), .service = SPAN("sts")};
    const struct signer_place at = {w->to.scheme, w->to.host, w->to.port};
    struct wire_sign r = {.method = SPAN("POST"), .path = SPAN("/"), .nfields = 1};
    struct digest d;
    struct err why = {{0}};
    char hex[2 * DIGEST_BYTES + 1];
    r.field[0] = (struct http_field){SPAN("content-type"), SPAN(FORM)};
    digest_of(dynbuf_span(&out->body), &d);
    hex_text(span_of(d.b, sizeof(d.b)), hex);
    r.payload = span_str(hex);
    if (signer_sign(s, &c, key, &r, &at, now, &out->signature, &why) != 0)
        return err_set(e, "key, which it is signed with: %s", why.text);
    return 0;
}

static void put(struct wire_fetch *w, const char *key, struct span value)
{
    w->setting[w->nsettings++] = (struct wire_setting){span_str(key), value};
}

int signed_ask(struct wire_fetch *w, struct signer *s, int64_t now, struct signed_ask *out, struct err *e)
{
    static const struct {
        const char *field, *setting;
    } names[] = {{"X-Amz-Date", "field.X-Amz-Date"},
                 {"X-Amz-Security-Token", "field.X-Amz-Security-Token"},
                 {"Authorization", "field.Authorization"}};
    struct span key = wire_setting(w, SPAN("key"), 0), url = wire_setting(w, SPAN("url"), 0);
    *out = (struct signed_ask){.signature = {.nfields = 0}};
    dynbuf_init(&out->body, SIGNED_BODY_MAX);
    if (w->kind != SOURCE_AWS)
        return 0;
    aws_body(w, &out->body);
    if (!dynbuf_ok(&out->body))
        return err_set(e, "what it is asked with is longer than %d bytes", SIGNED_BODY_MAX);
    if (key.n && sign(w, s, now, key, out, e) != 0)
        return -1;
    w->nsettings = 0; /* from here on the key is in none of them */
    put(w, "url", url);
    put(w, "body", dynbuf_span(&out->body));
    put(w, "field.Content-Type", SPAN(FORM));
    for (size_t i = 0; i < out->signature.nfields; i++)
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            if (span_eq(out->signature.field[i].name, span_str(names[k].field)))
                put(w, names[k].setting, secret_bytes(out->signature.field[i].value));
    return 0;
}

void signed_clear(struct signed_ask *a)
{
    dynbuf_wipe(&a->body);
    signature_clear(&a->signature);
}
