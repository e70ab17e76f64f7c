/* AWS: instance metadata, version 2 alone (a session token first, fetched with PUT), and the credentials of a
 * container. The pair's id stands for the session token too: SDKs send it along, signed (leases/brought.c). */
#include "common/json/json.h"
#include "common/time/clock.h"
#include "proxy/judge/stubs/stub.h"

#define ROLES SPAN("/latest/meta-data/iam/security-credentials/")
#define TTL   "X-aws-ec2-metadata-token-ttl-seconds"

enum { PAIR_MAX = 2048 };

static enum refuse_why token(struct stub_says *s)
{
    char text[STUB_TOKEN_TEXT + 1];
    struct span ttl = stub_field(s->x, SPAN(TTL));
    uint64_t seconds;
    if (!span_eq(s->x->request.method, SPAN("PUT")))
        return REFUSE_STUB_METHOD;
    if (ttl.n == 0 || span_u64(ttl, STUB_TTL_MAX, &seconds) != 0 || seconds == 0)
        return REFUSE_STUB_BAD;
    if (stub_token_make(s->x, seconds, text) != 0 || stub_say(s, "text/plain", span_of(text, STUB_TOKEN_TEXT)) != 0)
        return REFUSE_INTERNAL;
    dialect_field(&s->reply.head, SPAN(TTL), ttl);
    return REFUSE_COUNT;
}

/* container: without what an instance says besides. */
static enum refuse_why pair(struct stub_says *s, bool container)
{
    const struct exchange *x = s->x;
    char now[UTC_TEXT], expires[UTC_TEXT];
    struct dynbuf b;
    struct jsonw w;
    s->wants_lease = true;
    if (x->stub.text.n == 0)
        return REFUSE_COUNT;
    dynbuf_init(&b, PAIR_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    if (!container) {
        jsonw_kv(&w, "Code", SPAN("Success"));
        (void)utc_text(x->judge->ports.wall(x->judge->ports.arg), false, now);
        jsonw_kv(&w, "LastUpdated", span_str(now));
        jsonw_kv(&w, "Type", SPAN("AWS-HMAC"));
    }
    jsonw_kv(&w, "AccessKeyId", x->stub.text);
    jsonw_kv(&w, "SecretAccessKey", x->stub.secret);
    jsonw_kv(&w, "Token", x->stub.text);
    (void)utc_text(x->stub.expires_ms, false, expires);
    jsonw_kv(&w, "Expiration", span_str(expires));
    jsonw_end_object(&w);
    bool bad = !dynbuf_ok(&b) || stub_say(s, container ? "application/json" : "text/plain", dynbuf_span(&b)) != 0;
    dynbuf_wipe(&b);
    return bad ? REFUSE_INTERNAL : REFUSE_COUNT;
}

enum refuse_why stub_aws(struct stub_says *s)
{
    struct span path = s->x->request.path, text = SPAN_NONE;
    if (span_eq(path, SPAN("/latest/api/token")))
        return token(s);
    if (!stub_is_get(s->x))
        return REFUSE_STUB_METHOD;
    if (!stub_token_good(s->x, stub_field(s->x, SPAN("X-aws-ec2-metadata-token"))))
        return REFUSE_STUB_TOKEN;
    if (span_starts(path, ROLES) && span_eq(span_from(path, ROLES.n), s->credential.name))
        return pair(s, false);
    if (span_eq(path, ROLES) || span_eq(path, span_first(ROLES, ROLES.n - 1)))
        text = s->credential.name;
    else if (span_eq(path, SPAN("/latest/meta-data/placement/region")))
        text = s->credential.region;
    if (text.n == 0)
        return REFUSE_STUB_NOT_HERE;
    return stub_say(s, "text/plain", text) == 0 ? REFUSE_COUNT : REFUSE_INTERNAL;
}

/* The field says that the program itself asks; what it says is no secret, since whose the connection is is known. */
enum refuse_why stub_aws_container(struct stub_says *s)
{
    if (!stub_is_get(s->x))
        return REFUSE_STUB_METHOD;
    return stub_field(s->x, SPAN("Authorization")).n == 0 ? REFUSE_STUB_TOKEN : pair(s, true);
}
