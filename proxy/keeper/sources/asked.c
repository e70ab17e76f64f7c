#include "proxy/keeper/sources/asked.h"

#include "common/http/uri.h"

_Static_assert((int)FETCH_HOSTS_MAX == (int)SOURCE_HOSTS_MAX, "a policy that loads can be asked with");

static const struct span downscope = SPAN("downscope."), url = SPAN("url");

/* HOST[:PORT] of a key of the source, and what the policy says of that host. */
static int destination(const struct policy *p, const struct setting *s, struct arena *a, struct wire_upstream *to,
                       struct err *e)
{
    bool is_url = span_eq(s->key, url);
    struct span rest = is_url ? span_from(s->value, sizeof("https://") - 1) : s->value, host;
    struct upstream u = {0};
    size_t n = 0;
    char *name = arena_alloc(a, HTTP_HOST_MAX + 1);
    *to = (struct wire_upstream){.scheme = SPAN("https")};
    if (is_url && !span_starts(s->value, SPAN("https://")))
        return err_set(e, "its url: is not https://HOST/PATH");
    if (name == NULL || http_split_authority(span_first(rest, span_index(rest, '/')), &host, &to->port) != 0 ||
        http_canonical_host(host, name, &n) != 0)
        return err_set(e, "what its %.*s: names is no HOST or HOST:PORT", SPAN_FMT(s->key));
    to->host = span_of(name, n);
    to->port = to->port ? to->port : 443;
    if (!policy_upstream(p, to->host, to->port, a, &u))
        return 0;
    if (u.npins > sizeof(to->pin) / sizeof(to->pin[0]) || (u.npins > 0 && u.pin == NULL))
        return err_set(e, "more keys are pinned for its host than can be told");
    to->address = u.address;
    to->ca_pem = u.ca_pem;
    to->crl_pem = u.crl_pem;
    to->only_tls13 = u.only_tls13;
    for (; to->npins < u.npins; to->npins++)
        to->pin[to->npins] = u.pin[to->npins];
    for (; to->ncidrs < u.nallow_private && to->ncidrs < sizeof(to->cidr) / sizeof(to->cidr[0]); to->ncidrs++)
        to->cidr[to->ncidrs] = u.allow_private[to->ncidrs];
    return 0;
}

/* Who a host is, the policy says too: what one server gave is not what another one would have given. */
static void identify_server(const struct policy *p, const struct setting *s, struct digest_ctx *d)
{
    struct wire_upstream to;
    struct arena a;
    arena_init(&a, 1024 * 1024);
    if (destination(p, s, &a, &to, NULL) == 0) {
        digest_add_field(d, to.address);
        digest_add_field(d, to.ca_pem);
        digest_add_field(d, to.crl_pem);
        digest_add_field(d, to.only_tls13 ? SPAN("1.3") : SPAN_NONE);
        for (size_t i = 0; i < to.npins; i++)
            digest_add_field(d, to.pin[i]);
        for (size_t i = 0; i < to.ncidrs; i++)
            digest_add_field(d, to.cidr[i]);
    }
    arena_free(&a);
}

static bool names_server(const struct credential *c, const struct setting *s)
{
    return span_eq(s->key, url) || (c->source == SOURCE_EXEC && span_eq(s->key, SPAN("hosts")));
}

/* The settings of one step, from *i on: those of the second have that prefix, and some are for both. */
bool asked_setting(const struct policy *p, const struct credential *c, enum asked_step step, size_t *i,
                   struct setting *s)
{
    while (p != NULL && policy_setting(p, c, (*i)++, s)) {
        bool of_second = span_starts(s->key, downscope);
        bool both = span_eq(s->key, SPAN("timeout")) || span_eq(s->key, SPAN("lifetime"));
        if (of_second && step == ASKED_DOWNSCOPE)
            s->key = span_from(s->key, downscope.n);
        if (both || of_second == (step == ASKED_DOWNSCOPE))
            return true;
    }
    return false;
}

/* The step whose answer is the value. */
enum asked_step asked_last(const struct policy *p, const struct credential *c)
{
    struct setting s;
    for (size_t i = 0; asked_setting(p, c, ASKED_DOWNSCOPE, &i, &s);)
        if (span_eq(s.key, url))
            return ASKED_DOWNSCOPE;
    return ASKED_FIRST;
}

static void identify_step(const struct policy *p, const struct credential *c, enum asked_step step,
                          struct digest_ctx *d)
{
    struct setting s;
    digest_add_field(d, span_str(policy_source_name(c->source)));
    for (size_t i = 0; asked_setting(p, c, step, &i, &s);) {
        digest_add_field(d, s.key);
        digest_add_field(d, span_str(policy_source_name(s.from)));
        digest_add_field(d, s.value);
        if (names_server(c, &s))
            identify_server(p, &s, d);
    }
}

void asked_identify(const struct policy *p, const struct credential *c, enum asked_step step, struct digest *out)
{
    struct digest_ctx *d = digest_begin();
    identify_step(p, c, ASKED_FIRST, d);
    if (step == ASKED_DOWNSCOPE) {
        digest_add_field(d, downscope);
        identify_step(p, c, ASKED_DOWNSCOPE, d);
    }
    digest_end(d, out);
}

/* What proves a server to a program is the program's: no certificates and no keys go along. */
int asked_servers(const struct policy *p, const struct credential *c, enum asked_step step, struct wire_fetch *w,
                  struct arena *a, struct err *e)
{
    struct setting s;
    for (size_t i = 0; asked_setting(p, c, step, &i, &s);) {
        bool is_url = span_eq(s.key, url);
        if (!names_server(c, &s))
            continue;
        if (!is_url && w->nhosts == FETCH_HOSTS_MAX)
            return err_set(e, "its program may reach at most %d hosts", FETCH_HOSTS_MAX);
        struct wire_upstream *to = is_url ? &w->to : &w->host[w->nhosts++];
        if (destination(p, &s, a, to, e) != 0)
            return -1;
        if (!is_url) {
            to->ca_pem = to->crl_pem = SPAN_NONE;
            to->npins = 0;
        }
    }
    return 0;
}

int asked_url(const struct policy *p, struct span at, struct arena *a, struct wire_upstream *to, struct err *e)
{
    return destination(p, &(struct setting){.key = url, .value = at}, a, to, e);
}
