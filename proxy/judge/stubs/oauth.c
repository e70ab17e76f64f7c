/* A token endpoint (RFC 6749): whatever client it says it is, whose the connection is is known, and the lease is for
 * that sandbox. What it shows (a secret, a refresh token, an assertion) is not looked at and goes nowhere. */
#include "common/json/json.h"
#include "policy/slot.h"
#include "proxy/judge/stubs/stub.h"

#define GRANT "urn:ietf:params:oauth:grant-type:"

enum { JSON_TEXT_MAX = 2048 };

/* Its grant, or an empty text. */
static struct span grant_of(struct stub_says *s)
{
    static const struct credential field = {.slot = SLOT_FORM, .where = {(const uint8_t *)"grant_type", 10}};
    struct request r = exchange_asks(s->x);
    struct slotted found;
    return slot_find(&field, &r, &s->x->arena, &found) == 0 && found.nown == 1 ? found.own : SPAN_NONE;
}

static enum refuse_why say(struct stub_says *s, struct dynbuf *b)
{
    enum refuse_why why =
        dynbuf_ok(b) && stub_say(s, "application/json", dynbuf_span(b)) == 0 ? REFUSE_COUNT : REFUSE_INTERNAL;
    dynbuf_wipe(b);
    return why;
}

/* As section 5.2 has it, since SDKs show what it says. */
static enum refuse_why fault(struct stub_says *s, const char *code)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, JSON_TEXT_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "error", span_str(code));
    jsonw_end_object(&w);
    s->reply.head.status = 400;
    s->reply.head.reason = SPAN("Bad Request");
    return say(s, &b);
}

enum refuse_why stub_oauth(struct stub_says *s)
{
    static const char *const known[] = {"client_credentials", "refresh_token",    "password",
                                        "authorization_code", GRANT "jwt-bearer", GRANT "token-exchange"};
    struct dynbuf b;
    struct jsonw w;
    size_t i = 0, n = sizeof(known) / sizeof(known[0]);
    if (!span_eq(s->x->request.method, SPAN("POST")))
        return REFUSE_STUB_METHOD;
    struct span grant = grant_of(s);
    if (grant.n == 0)
        return fault(s, "invalid_request");
    while (i < n && !span_eq(grant, span_str(known[i])))
        i++;
    if (i == n)
        return fault(s, "unsupported_grant_type");
    s->wants_lease = true;
    if (s->x->stub.text.n == 0)
        return REFUSE_COUNT;
    dynbuf_init(&b, JSON_TEXT_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "access_token", s->x->stub.text);
    jsonw_kv(&w, "token_type", SPAN("Bearer"));
    jsonw_kv_u64(&w, "expires_in", stub_seconds(s->x));
    if (i == n - 1)
        jsonw_kv(&w, "issued_token_type", SPAN("urn:ietf:params:oauth:token-type:access_token"));
    jsonw_end_object(&w);
    return say(s, &b);
}
