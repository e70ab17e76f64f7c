/* Google: the metadata server, which a client shows that it means by Metadata-Flavor: Google, and that shows the
 * same. */
#include "common/json/json.h"
#include "proxy/judge/stubs/stub.h"

#define FLAVOR   "Metadata-Flavor"
#define ACCOUNTS SPAN("/computeMetadata/v1/instance/service-accounts/")
#define SCOPES   "https://www.googleapis.com/auth/cloud-platform"
#define DOMAIN   "@countersign.internal"

enum { JSON_TEXT_MAX = 2048, EMAIL_MAX = 256 };

static enum refuse_why say(struct stub_says *s, const char *type, struct span body)
{
    return stub_say(s, type, body) == 0 ? REFUSE_COUNT : REFUSE_INTERNAL;
}

static enum refuse_why token(struct stub_says *s)
{
    struct dynbuf b;
    struct jsonw w;
    s->wants_lease = true;
    if (s->x->stub.text.n == 0)
        return REFUSE_COUNT;
    dynbuf_init(&b, JSON_TEXT_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "access_token", s->x->stub.text);
    jsonw_kv_u64(&w, "expires_in", stub_seconds(s->x));
    jsonw_kv(&w, "token_type", SPAN("Bearer"));
    jsonw_end_object(&w);
    enum refuse_why why = dynbuf_ok(&b) ? say(s, "application/json", dynbuf_span(&b)) : REFUSE_INTERNAL;
    dynbuf_wipe(&b);
    return why;
}

/* The account as a whole, as it is asked with ?recursive=true. */
static enum refuse_why account(struct stub_says *s, struct span email)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, JSON_TEXT_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv_array(&w, "aliases");
    jsonw_string(&w, SPAN("default"));
    jsonw_end_array(&w);
    jsonw_kv(&w, "email", email);
    jsonw_kv_array(&w, "scopes");
    jsonw_string(&w, SPAN(SCOPES));
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    enum refuse_why why = dynbuf_ok(&b) ? say(s, "application/json", dynbuf_span(&b)) : REFUSE_INTERNAL;
    dynbuf_free(&b);
    return why;
}

static bool is_recursive(struct span query)
{
    struct span one;
    for (bool more = true; more;) {
        more = span_cut(query, '&', &one, &query);
        if (span_ieq(one, SPAN("recursive=true")))
            return true;
    }
    return false;
}

/* Below service-accounts/: of the only account there is, by either of its names. */
static enum refuse_why below(struct stub_says *s, struct span rest)
{
    char text[EMAIL_MAX];
    struct span name = s->credential.name, whose, what;
    if (name.n + sizeof(DOMAIN) > sizeof(text))
        return REFUSE_INTERNAL;
    memcpy(text, name.p, name.n);
    memcpy(text + name.n, DOMAIN, sizeof(DOMAIN) - 1);
    struct span email = span_of(text, name.n + sizeof(DOMAIN) - 1);
    if (rest.n == 0)
        return say(s, "application/text", SPAN("default/\n"));
    (void)span_cut(rest, '/', &whose, &what);
    if (!span_eq(whose, SPAN("default")) && !span_eq(whose, email))
        return REFUSE_STUB_NOT_HERE;
    if (what.n == 0)
        return is_recursive(s->x->request.query)
                   ? account(s, email)
                   : say(s, "application/text", SPAN("aliases\nemail\nscopes\ntoken\n"));
    if (span_eq(what, SPAN("token")))
        return token(s);
    if (span_eq(what, SPAN("email")))
        return say(s, "application/text", email);
    if (span_eq(what, SPAN("aliases")))
        return say(s, "application/text", SPAN("default\n"));
    return span_eq(what, SPAN("scopes")) ? say(s, "application/text", SPAN(SCOPES "\n")) : REFUSE_STUB_NOT_HERE;
}

enum refuse_why stub_google(struct stub_says *s)
{
    static const struct {
        const char *path, *says;
    } folders[] = {{"/", "computeMetadata/\n"},
                   {"/computeMetadata/", "v1/\n"},
                   {"/computeMetadata/v1", "instance/\n"},
                   {"/computeMetadata/v1/", "instance/\n"},
                   {"/computeMetadata/v1/instance", "service-accounts/\n"},
                   {"/computeMetadata/v1/instance/", "service-accounts/\n"}};
    struct span path = s->x->request.path;
    if (!span_eq(stub_field(s->x, SPAN(FLAVOR)), SPAN("Google")))
        return REFUSE_STUB_FLAVOR;
    if (!stub_is_get(s->x))
        return REFUSE_STUB_METHOD;
    dialect_field(&s->reply.head, SPAN(FLAVOR), SPAN("Google"));
    dialect_field(&s->reply.head, SPAN("Server"), SPAN("Metadata Server for VM"));
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (span_eq(path, span_str(folders[i].path)))
            return say(s, "application/text", span_str(folders[i].says));
    return span_starts(path, ACCOUNTS) ? below(s, span_from(path, ACCOUNTS.n)) : REFUSE_STUB_NOT_HERE;
}
