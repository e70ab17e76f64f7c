/* Tencent Cloud's STS: AssumeRole and GetFederationToken. What is asked, and the signature over it, the keeper made
 * (proxy/keeper/sources/signed.h); here it is sent, and keys that live for a while are read from the answer. */
#include "common/arena.h"
#include "common/json/json.h"
#include "common/time/clock.h"
#include "proxy/fetcher/job/sources.h"

enum { JSON_MEMORY = 8 * 1024 * 1024, VALUE_MAX_BYTES = 16 * 1024, CODE_MAX = 64 };

/* As in AuthFailure.SignatureFailure, or empty. */
static struct span error_code(const struct json *answer)
{
    struct span code = json_text(json_get(answer, SPAN("Error")), SPAN("Code"));
    for (size_t i = 0; i < code.n; i++)
        if (!((code.p[i] | 0x20) >= 'a' && (code.p[i] | 0x20) <= 'z') && code.p[i] != '.')
            return SPAN_NONE;
    return code.n <= CODE_MAX ? code : SPAN_NONE;
}

int tencent_answer(struct span json, uint64_t now_ms, struct arena *a, struct dynbuf *value, struct wire_fetched *out,
                   struct err *e)
{
    const struct json *all = json_parse(json, a), *answer = all ? json_get(all, SPAN("Response")) : NULL;
    uint64_t until = 0;
    *out = (struct wire_fetched){.ok = false};
    if (answer == NULL || answer->type != JSON_OBJECT)
        return err_set(e, "the answer of STS is not a JSON object with a Response");
    if (json_get(answer, SPAN("Error")) != NULL) {
        struct span code = error_code(answer);
        return err_set(e, "STS refused it%s%.*s", code.n ? ": " : "", SPAN_FMT(code));
    }
    const struct json *keys = json_get(answer, SPAN("Credentials"));
    if (source_keys(json_text(keys, SPAN("TmpSecretId")), json_text(keys, SPAN("TmpSecretKey")),
                    json_text(keys, SPAN("Token")), value) != 0)
        return err_set(e, "the answer of STS has not all of TmpSecretId, TmpSecretKey and Token");
    if (json_u64(answer, SPAN("ExpiredTime"), &until) != 0 || until > UINT32_MAX)
        return err_set(e, "ExpiredTime of the answer of STS is no time");
    out->lifetime_ms = until * 1000 > now_ms ? until * 1000 - now_ms : 1;
    out->value = dynbuf_span(value);
    return 0;
}

void source_tencent(const struct job *j, struct http *h)
{
    struct wire_fetched got;
    struct dynbuf value;
    struct arena a;
    struct err e = {{0}};
    struct span answer;
    unsigned status = 0;
    arena_init(&a, JSON_MEMORY);
    dynbuf_init(&value, VALUE_MAX_BYTES);
    if (http_ask_signed(h, &status, &answer, &e) != 0)
        job_failed(j, "STS: %s", e.text);
    if (status != 200) /* what it refuses it answers with 200, too */
        job_failed(j, "STS answered %u", status);
    if (tencent_answer(answer, clock_ms(CLOCK_REALTIME), &a, &value, &got, &e) != 0)
        job_failed(j, "%s", e.text);
    job_done(j, got.value, got.lifetime_ms, SPAN_NONE);
}
