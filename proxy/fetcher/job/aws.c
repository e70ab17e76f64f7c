/* AWS STS: AssumeRole and AssumeRoleWithWebIdentity. What is asked, and the signature over it, the keeper made
 * (proxy/keeper/sources/signed.h); here it is sent, and keys that live for a while are read from the answer. */
#include "common/arena.h"
#include "common/json/xml.h"
#include "common/time/clock.h"
#include "common/time/instant.h"
#include "proxy/fetcher/job/sources.h"

enum { XML_MEMORY = 1024 * 1024, VALUE_MAX_BYTES = 16 * 1024, CODE_MAX = 64 };

int source_keys(struct span id, struct span key, struct span token, struct dynbuf *value)
{
    (void)dynbuf_addf(value, "%.*s:%.*s:%.*s", SPAN_FMT(id), SPAN_FMT(key), SPAN_FMT(token));
    bool parts = id.n && key.n && token.n && span_index(id, ':') == id.n && span_index(key, ':') == key.n;
    return parts && dynbuf_ok(value) ? 0 : -1;
}

int aws_answer(struct span xml, uint64_t now_ms, struct arena *a, struct dynbuf *value, struct wire_fetched *out,
               struct err *e)
{
    static const char *const places[] = {
        "/AssumeRoleResponse/AssumeRoleResult/Credentials",
        "/AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials"};
    const struct json *all = xml_parse(xml, a), *in = NULL;
    *out = (struct wire_fetched){.ok = false};
    if (all == NULL)
        return err_set(e, "the answer of STS is not XML as it answers");
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && in == NULL; i++)
        in = json_pointer(all, span_str(places[i]));
    if (source_keys(json_text(in, SPAN("AccessKeyId")), json_text(in, SPAN("SecretAccessKey")),
                    json_text(in, SPAN("SessionToken")), value) != 0)
        return err_set(e, "the answer of STS has not all of AccessKeyId, SecretAccessKey and SessionToken");
    if (instant_left(json_text(in, SPAN("Expiration")), now_ms, &out->lifetime_ms) != 0)
        return err_set(e, "Expiration of the answer of STS is no time with its zone");
    out->value = dynbuf_span(value);
    return 0;
}

struct span aws_error_code(struct span xml, struct arena *a)
{
    const struct json *error = json_pointer(xml_parse(xml, a), SPAN("/ErrorResponse/Error"));
    struct span code = json_text(error, SPAN("Code"));
    for (size_t i = 0; i < code.n; i++)
        if (!((code.p[i] | 0x20) >= 'a' && (code.p[i] | 0x20) <= 'z'))
            return SPAN_NONE;
    return code.n <= CODE_MAX ? code : SPAN_NONE;
}

void source_aws(const struct job *j, struct http *h)
{
    struct wire_fetched got;
    struct dynbuf value;
    struct arena a;
    struct err e = {{0}};
    struct span answer, code;
    unsigned status = 0;
    arena_init(&a, XML_MEMORY);
    dynbuf_init(&value, VALUE_MAX_BYTES);
    if (http_ask_signed(h, &status, &answer, &e) != 0)
        job_failed(j, "STS: %s", e.text);
    if (status != 200) {
        code = aws_error_code(answer, &a);
        job_failed(j, "STS answered %u%s%.*s", status, code.n ? ": " : "", SPAN_FMT(code));
    }
    if (aws_answer(answer, clock_ms(CLOCK_REALTIME), &a, &value, &got, &e) != 0)
        job_failed(j, "%s", e.text);
    job_done(j, got.value, got.lifetime_ms, SPAN_NONE);
}
