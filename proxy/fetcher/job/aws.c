/* AWS STS: AssumeRole and AssumeRoleWithWebIdentity. What is asked, and the signature over it, the keeper made
 * (proxy/keeper/sources/signed.h); here it is sent, and keys that live for a while are read from the answer. */
#include "common/arena.h"
#include "common/time/clock.h"
#include "proxy/fetcher/job/sources.h"
#include "proxy/fetcher/job/xml.h"

enum { XML_MEMORY = 1024 * 1024, VALUE_MAX_BYTES = 16 * 1024, CODE_MAX = 64 };

#define IN_ROLE     "AssumeRoleResponse/AssumeRoleResult/Credentials/"
#define IN_IDENTITY "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/"

int source_keys(struct span id, struct span key, struct span token, struct dynbuf *value)
{
    (void)dynbuf_addf(value, "%.*s:%.*s:%.*s", SPAN_FMT(id), SPAN_FMT(key), SPAN_FMT(token));
    bool parts = id.n && key.n && token.n && span_index(id, ':') == id.n && span_index(key, ':') == key.n;
    return parts && dynbuf_ok(value) ? 0 : -1;
}

int aws_answer(struct span xml, uint64_t now_ms, struct arena *a, struct dynbuf *value, struct wire_fetched *out,
               struct err *e)
{
    struct xml_want want[] = {{.path = IN_ROLE "AccessKeyId"},      {.path = IN_ROLE "SecretAccessKey"},
                              {.path = IN_ROLE "SessionToken"},     {.path = IN_ROLE "Expiration"},
                              {.path = IN_IDENTITY "AccessKeyId"},  {.path = IN_IDENTITY "SecretAccessKey"},
                              {.path = IN_IDENTITY "SessionToken"}, {.path = IN_IDENTITY "Expiration"}};
    *out = (struct wire_fetched){.ok = false};
    if (xml_read(xml, want, sizeof(want) / sizeof(want[0]), a) != 0)
        return err_set(e, "the answer of STS is not XML as it answers");
    const struct xml_want *w = want[0].text.n ? want : want + 4;
    if (source_keys(w[0].text, w[1].text, w[2].text, value) != 0)
        return err_set(e, "the answer of STS has not all of AccessKeyId, SecretAccessKey and SessionToken");
    if (source_expires(w[3].text, now_ms, &out->lifetime_ms) != 0)
        return err_set(e, "Expiration of the answer of STS is no time with its zone");
    out->value = dynbuf_span(value);
    return 0;
}

struct span aws_error_code(struct span xml, struct arena *a)
{
    struct xml_want want = {.path = "ErrorResponse/Error/Code"};
    if (xml_read(xml, &want, 1, a) != 0)
        return SPAN_NONE;
    for (size_t i = 0; i < want.text.n; i++)
        if (!((want.text.p[i] | 0x20) >= 'a' && (want.text.p[i] | 0x20) <= 'z'))
            return SPAN_NONE;
    return want.text.n <= CODE_MAX ? want.text : SPAN_NONE;
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
