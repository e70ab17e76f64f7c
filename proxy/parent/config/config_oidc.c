/* oidc: of desk: in the configuration. */
#include <stdio.h>

#include "common/http/uri.h"
#include "proxy/parent/config/config_in.h"

enum { SECRET_NAME = 128, BUTTON = 40 };

static const struct choice claims[] = {
    {"preferred_username", OIDC_USERNAME}, {"email", OIDC_EMAIL}, {"sub", OIDC_SUB}, {NULL, 0}};

static const struct key oidc_keys[] = {
    {"issuer", KEY_TEXT, AT(row_oidc, issuer), KEY_NEEDED, .help = "https:// address by which the provider is known"},
    {"client_id", KEY_TEXT, AT(row_oidc, client), KEY_NEEDED, .help = "by which the provider knows this page"},
    {"client_secret", KEY_TEXT, AT(row_oidc, secret), KEY_NEEDED,
     .help = "the name that it has in the store: countersign secret set NAME"},
    {"authorization", KEY_TEXT, AT(row_oidc, authorization), KEY_NEEDED,
     .help = "https:// address that browsers are sent to"},
    {"token", KEY_TEXT, AT(row_oidc, token), KEY_NEEDED,
     .help = "https:// address of the token endpoint, which the gateway asks"},
    {"claim", KEY_ONE_OF, AT(row_oidc, claim), KEY_NEEDED, .choices = claims,
     .help = "what of the ID token is the person's name here"},
    {"name", KEY_TEXT, AT(row_oidc, name), 0, .help = "what the button says: Sign in with NAME"},
    {.type = KEY_END}};
const struct table config_oidc_table = {"oidc", sizeof(struct row_oidc), oidc_keys};

static bool is_plain(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || s.p[i] == '"' || s.p[i] == '\\' || s.p[i] == '<' || s.p[i] == '>')
            return false;
    return s.n > 0;
}

/* https://HOST[:PORT][/PATH], with a query where that may be. */
static bool is_https(struct span s, bool query)
{
    static const struct span scheme = SPAN("https://");
    struct span rest = span_starts(s, scheme) ? span_from(s, scheme.n) : SPAN_NONE, host;
    char name[HTTP_HOST_MAX + 1];
    size_t end = 0, n;
    uint16_t port;
    while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?')
        end++;
    return is_plain(rest) && span_index(rest, '#') == rest.n && (query || span_index(rest, '?') == rest.n) &&
           http_split_authority(span_first(rest, end), &host, &port) == 0 && http_canonical_host(host, name, &n) == 0;
}

static bool is_secret(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!word && (i == 0 || (c != '.' && c != '-')))
            return false;
    }
    return s.n > 0 && s.n <= SECRET_NAME;
}

static void check(struct loader *l, const struct row_oidc *r)
{
    const struct {
        const struct item *it;
        bool query;
    } urls[] = {{&r->issuer, false}, {&r->authorization, true}, {&r->token, false}};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        if (!is_https(urls[i].it->text, urls[i].query))
            load_problem(l, urls[i].it->at, "C005", "this is no https://HOST[:PORT]/PATH%s",
                         urls[i].query ? "" : ", without a query");
    if (!is_plain(r->client.text))
        load_problem(l, r->client.at, "C005", "client_id: is letters, digits and signs, without a space");
    if (!is_secret(r->secret.text))
        load_problem(l, r->secret.at, "C005",
                     "client_secret: is the name of a secret in the store, as countersign secret set takes it, never "
                     "the secret itself");
}

void config_take_oidc(struct loader *l, const struct row_oidc *r, bool named, struct config *c)
{
    struct config_oidc *to = &c->oidc;
    if (r->at == NULL)
        return;
    /* A cookie of http://localhost is anybody's who serves something there: it would bind a sign-in to no browser. */
    if (!named)
        load_problem(l, r->at, "C005",
                     "people sign in through a provider where the page has a name and https, its own or a proxy's: "
                     "desk: { name: ... }");
    check(l, r);
    if (r->name.at != NULL && (r->name.text.n == 0 || r->name.text.n > BUTTON))
        load_problem(l, r->name.at, "C005", "name: of a provider has 1 to %d bytes", BUTTON);
    config_copy(l, to->issuer, sizeof(to->issuer), &r->issuer);
    config_copy(l, to->client, sizeof(to->client), &r->client);
    config_copy(l, to->secret, sizeof(to->secret), &r->secret);
    config_copy(l, to->authorization, sizeof(to->authorization), &r->authorization);
    config_copy(l, to->token, sizeof(to->token), &r->token);
    snprintf(to->name, sizeof(to->name), "your organisation");
    if (r->name.at != NULL)
        config_copy(l, to->name, sizeof(to->name), &r->name);
    to->claim = (enum oidc_claim)r->claim.v;
}
