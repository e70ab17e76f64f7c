#include "proxy/keeper/sources/signed.h"

#include <stdio.h>

#include "common/json/json.h"

static uint64_t seconds_of(const struct wire_fetch *w)
{
    return wire_setting_u64(w, SPAN("duration"), 0) / 1000;
}

static void put(struct wire_fetch *w, const char *key, struct span value)
{
    if (value.n)
        w->setting[w->nsettings++] = (struct wire_setting){span_str(key), value};
}

/* ---- AWS: https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html, API_AssumeRoleWithWebIdentity
 * ---- */

static void form(struct dynbuf *b, const char *name, struct span value)
{
    if (value.n == 0)
        return;
    (void)dynbuf_addf(b, "%s%s=", b->n ? "&" : "", name);
    dynbuf_add_percent(b, value, "-._~");
}

static void aws_body(const struct wire_fetch *w, struct dynbuf *b)
{
    static const struct {
        const char *setting, *name;
    } texts[] = {{"role", "RoleArn"},           {"session", "RoleSessionName"}, {"source_identity", "SourceIdentity"},
                 {"external_id", "ExternalId"}, {"policy", "Policy"},           {"web_identity", "WebIdentityToken"}};
    bool web = wire_setting(w, SPAN("web_identity"), 0).n > 0;
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
    if (seconds_of(w)) {
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)seconds_of(w));
        form(b, "DurationSeconds", span_str(text));
    }
}

/* ---- Tencent Cloud: https://cloud.tencent.com/document/api/1312, AssumeRole and GetFederationToken ---- */

static void tencent_body(const struct wire_fetch *w, struct dynbuf *b)
{
    static const struct {
        const char *setting, *name;
    } texts[] = {{"role", "RoleArn"},
                 {"session", "RoleSessionName"},
                 {"federation", "Name"},
                 {"source_identity", "SourceIdentity"},
                 {"external_id", "ExternalId"}};
    struct span policy = wire_setting(w, SPAN("policy"), 0);
    struct dynbuf encoded; /* within the JSON, as its documentation wants it */
    struct jsonw j;
    dynbuf_init(&encoded, SIGNED_BODY_MAX);
    jsonw_begin(&j, b);
    jsonw_object(&j);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct span value = wire_setting(w, span_str(texts[i].setting), 0);
        if (value.n)
            jsonw_kv(&j, texts[i].name, value);
    }
    dynbuf_add_percent(&encoded, policy, "-._~");
    if (policy.n)
        jsonw_kv(&j, "Policy", dynbuf_ok(&encoded) ? dynbuf_span(&encoded) : SPAN("%"));
    if (seconds_of(w))
        jsonw_kv_u64(&j, "DurationSeconds", seconds_of(w));
    jsonw_end_object(&j);
    dynbuf_free(&encoded);
}

static const struct sts {
    uint8_t kind;
    enum sign_scheme scheme;
    const char *content_type;
    void (*body)(const struct wire_fetch *w, struct dynbuf *b);
} all_sts[] = {{SOURCE_AWS, SIGN_AWS4, "application/x-www-form-urlencoded", aws_body},
               {SOURCE_TENCENT, SIGN_TC3, "application/json", tencent_body}};

static int sign(const struct sts *how, const struct wire_fetch *w, struct signer *s, int64_t now,
                struct signed_ask *out, struct err *e)
{
    bool tc3 = how->scheme == SIGN_TC3; /* which knows no regions */
    const struct credential c = {
        .sign = how->scheme, .region = tc3 ? SPAN_NONE : wire_setting(w, SPAN("region"), 0), .service = SPAN("sts")};
    const struct signer_place at = {w->to.scheme, w->to.host, w->to.port};
    struct wire_sign r = {.method = SPAN("POST"), .path = SPAN("/"), .nfields = 1};
    struct digest d;
    struct err why = {{0}};
    char hex[2 * DIGEST_BYTES + 1];
    r.field[0] = (struct http_field){SPAN("content-type"), span_str(how->content_type)};
    digest_of(dynbuf_span(&out->body), &d);
    hex_text(span_of(d.b, sizeof(d.b)), hex);
    r.payload = span_str(hex);
    if (signer_sign(s, &c, wire_setting(w, SPAN("key"), 0), &r, &at, now, &out->signature, &why) != 0)
        return err_set(e, "key, which it is signed with: %s", why.text);
    return 0;
}

static void put_signature(struct wire_fetch *w, const struct signature *s)
{
    static const struct {
        const char *field, *setting;
    } names[] = {{"X-Amz-Date", "field.X-Amz-Date"},
                 {"X-Amz-Security-Token", "field.X-Amz-Security-Token"},
                 {"X-TC-Timestamp", "field.X-TC-Timestamp"},
                 {"X-TC-Token", "field.X-TC-Token"},
                 {"Authorization", "field.Authorization"}};
    for (size_t i = 0; i < s->nfields; i++)
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            if (span_eq(s->field[i].name, span_str(names[k].field)))
                put(w, names[k].setting, secret_bytes(s->field[i].value));
}

int signed_ask(struct wire_fetch *w, struct signer *s, int64_t now, struct signed_ask *out, struct err *e)
{
    struct span url = wire_setting(w, SPAN("url"), 0), region = wire_setting(w, SPAN("region"), 0);
    bool federation = wire_setting(w, SPAN("federation"), 0).n > 0;
    const struct sts *how = NULL;
    *out = (struct signed_ask){.signature = {.nfields = 0}};
    dynbuf_init(&out->body, SIGNED_BODY_MAX);
    for (size_t i = 0; i < sizeof(all_sts) / sizeof(all_sts[0]); i++)
        if (all_sts[i].kind == w->kind)
            how = &all_sts[i];
    if (how == NULL)
        return 0;
    how->body(w, &out->body);
    if (!dynbuf_ok(&out->body))
        return err_set(e, "what it is asked with is longer than %d bytes", SIGNED_BODY_MAX);
    if (wire_setting(w, SPAN("key"), 0).n && sign(how, w, s, now, out, e) != 0)
        return -1;
    w->nsettings = 0; /* from here on the key is in none of them */
    put(w, "url", url);
    put(w, "body", dynbuf_span(&out->body));
    put(w, "field.Content-Type", span_str(how->content_type));
    if (how->kind == SOURCE_TENCENT) {
        put(w, "field.X-TC-Action", federation ? SPAN("GetFederationToken") : SPAN("AssumeRole"));
        put(w, "field.X-TC-Version", SPAN("2018-08-13"));
        put(w, "field.X-TC-Region", region);
    }
    put_signature(w, &out->signature);
    return 0;
}

void signed_clear(struct signed_ask *a)
{
    dynbuf_wipe(&a->body);
    signature_clear(&a->signature);
}
