#include "policy/load/read/names.h"

#include <idn2.h>
#include <libpsl.h>
#include <stdio.h>

#include "common/text/idna.h"

static bool other_script(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= 0x80)
            return true;
    return false;
}

static bool has_alabel(struct span s)
{
    for (struct span label; s.n > 0;) {
        (void)span_cut(s, '.', &label, &s);
        if (idna_is_alabel(label))
            return true;
    }
    return false;
}

/* No mapping: what is not a name as it stands (upper case, wide dots, joined forms) is refused, not guessed at. */
int names_to_ascii(struct span name, char out[NAMES_TEXT_MAX], const char **why)
{
    char text[NAMES_TEXT_MAX];
    uint8_t *ascii = NULL;
    if (name.n >= sizeof(text)) {
        *why = "it is too long";
        return -1;
    }
    snprintf(text, sizeof(text), "%.*s", SPAN_FMT(name));
    int rc = idn2_lookup_u8((const uint8_t *)text, &ascii,
                            IDN2_NFC_INPUT | IDN2_NO_TR46 | IDN2_ALABEL_ROUNDTRIP | IDN2_USE_STD3_ASCII_RULES);
    *why = idn2_strerror(rc);
    if (rc == IDN2_OK)
        snprintf(out, NAMES_TEXT_MAX, "%s", (const char *)ascii);
    idn2_free(ascii);
    return rc == IDN2_OK ? 0 : -1;
}

static void refuse(struct loader *l, const struct item *v, const char *why)
{
    load_problem(l, v->at, "P013",
                 "\"%.*s\" is no name of IDNA2008: %s; write it as its registry does, in lower case",
                 SPAN_FMT(span_first(v->text, 100)), why);
}

/* An A-label stays; one that stands for nothing is no name. */
static void check_alabels(struct loader *l, const struct item *v, struct span name)
{
    const char *why = "";
    char ascii[NAMES_TEXT_MAX];
    if (names_to_ascii(name, ascii, &why) != 0)
        refuse(l, v, why);
    for (struct span label; name.n > 0;) {
        (void)span_cut(name, '.', &label, &name);
        if (idna_is_alabel(label) && !idna_alabel_ok(label)) {
            refuse(l, v, "a label in xn-- is not one that a name can have");
            return;
        }
    }
}

static void one(struct loader *l, struct item *v)
{
    /* Before the name and behind it: a wildcard, a port. */
    size_t before = span_starts(v->text, SPAN("**.")) ? 3 : span_starts(v->text, SPAN("*.")) ? 2 : 0;
    struct span name = span_from(v->text, before);
    struct span host = span_first(name, span_index(name, ':')), port = span_from(name, host.n);
    const char *why = "";
    char ascii[NAMES_TEXT_MAX];
    if (!other_script(v->text)) {
        if (has_alabel(host))
            check_alabels(l, v, host);
        return;
    }
    if (names_to_ascii(host, ascii, &why) != 0) {
        refuse(l, v, why);
        v->text = SPAN("name.invalid"); /* said once */
        return;
    }
    struct span made = span_str(ascii);
    uint8_t *text = arena_alloc(&l->a, before + made.n + port.n + 1);
    if (text == NULL) {
        load_problem(l, v->at, "P003", "no memory for the name");
        return;
    }
    snprintf((char *)text, before + made.n + port.n + 1, "%.*s%s%.*s", SPAN_FMT(span_first(v->text, before)), ascii,
             SPAN_FMT(port));
    struct span written = v->text;
    v->text = span_of(text, before + made.n + port.n);
    load_problem(l, v->at, "P108", "\"%.*s\" is %.*s on the wire, and that is what requests are compared with",
                 SPAN_FMT(span_first(written, 100)), SPAN_FMT(v->text));
}

static void all(struct loader *l, struct items *v)
{
    for (size_t i = 0; i < v->n; i++)
        one(l, &v->v[i]);
}

void names_of_file(struct loader *l, struct m_file *f)
{
    struct m_rule *rule = f->rules.v;
    struct m_credential *credential = f->credentials.v;
    struct m_upstream *upstream = f->upstreams.v;
    struct m_packuse *use = f->packs.v;
    for (size_t i = 0; i < f->rules.n; i++) {
        struct m_match *except = rule[i].except.v;
        all(l, &rule[i].match.hosts);
        for (size_t k = 0; k < rule[i].except.n; k++)
            all(l, &except[k].hosts);
    }
    for (size_t i = 0; i < f->credentials.n; i++) {
        struct m_place *place = credential[i].only.v;
        for (size_t k = 0; k < credential[i].only.n; k++)
            one(l, &place[k].host);
    }
    for (size_t i = 0; i < f->upstreams.n; i++)
        one(l, &upstream[i].host);
    for (size_t i = 0; i < f->packs.n; i++)
        all(l, &use[i].hosts);
}

void names_of_pack(struct loader *l, struct m_pack *k)
{
    all(l, &k->hosts);
}

static bool public_suffix(struct span name)
{
    char text[NAMES_TEXT_MAX];
    const psl_ctx_t *list = psl_builtin();
    snprintf(text, sizeof(text), "%.*s", SPAN_FMT(span_first(name, sizeof(text) - 1)));
    return list != NULL && psl_is_public_suffix2(list, text, PSL_TYPE_ANY | PSL_TYPE_NO_STAR_RULE) != 0;
}

static bool among(struct span name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (span_eq(name, span_str(*names)))
            return true;
    return false;
}

const char *names_too_wide(struct span pattern)
{
    /* The list cannot be asked what lies below a name; these are large and have storage or hosting below. */
    static const char *const above[] = {"amazonaws.com", "amazonaws.com.cn", "windows.net",  "azure.com",
                                        "azure.net",     "oraclecloud.com",  "aliyuncs.com", NULL};
    bool deep = span_starts(pattern, SPAN("**.")), wide = deep || span_starts(pattern, SPAN("*."));
    struct span name = span_from(pattern, deep ? 3 : 2);
    if (!wide)
        return NULL;
    if (span_index(name, '.') == name.n)
        return "is a wildcard over a whole top-level domain: name a domain below it";
    if (public_suffix(name))
        return "is a wildcard over a public suffix, under which anybody can have a name: name the hosts that are "
               "meant";
    if (deep && among(name, above))
        return "is a wildcard over names of which some belong to any customer of that service: name the hosts that "
               "are meant";
    return NULL;
}

bool names_shared(struct span pattern)
{
    static const char *const tenants[] = {"atlassian.net",
                                          "core.windows.net",
                                          "blob.core.windows.net",
                                          "storage.googleapis.com",
                                          "sharepoint.com",
                                          "slack.com",
                                          "zendesk.com",
                                          "freshdesk.com",
                                          "service-now.com",
                                          "okta.com",
                                          "auth0.com",
                                          "my.salesforce.com",
                                          "snowflakecomputing.com",
                                          "cloudapp.net",
                                          "onmicrosoft.com",
                                          NULL};
    bool deep = span_starts(pattern, SPAN("**.")), wide = deep || span_starts(pattern, SPAN("*."));
    return wide && among(span_from(pattern, deep ? 3 : 2), tenants);
}
