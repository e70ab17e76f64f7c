#include "proxy/dock/parse/network.h"

enum holds { HOLDS_TEXTS = 0, HOLDS_RULES, HOLDS_NOTHING };

static const struct {
    struct span name;
    enum holds holds;
    const char *not_had; /* of HOLDS_NOTHING */
} members[] = {
    {{(const uint8_t *)"allowOut", 8}, HOLDS_TEXTS, NULL},
    {{(const uint8_t *)"denyOut", 7}, HOLDS_TEXTS, NULL},
    {{(const uint8_t *)"rules", 5}, HOLDS_RULES, NULL},
    {{(const uint8_t *)"egressProxy", 11},
     HOLDS_NOTHING,
     "a sandbox sends through this gateway alone: `network.egressProxy` is not had here; leave it out"},
    {{(const uint8_t *)"allowPublicTraffic", 18},
     HOLDS_NOTHING,
     "nothing of a sandbox is reached from outside but by this API: `network.allowPublicTraffic` is not had here; "
     "leave it out"},
    {{(const uint8_t *)"maskRequestHost", 15},
     HOLDS_NOTHING,
     "nothing of a sandbox is reached from outside but by this API: `network.maskRequestHost` is not had here; leave "
     "it out"},
    {{(const uint8_t *)"httpsPorts", 10},
     HOLDS_NOTHING,
     "nothing of a sandbox is reached from outside but by this API: `network.httpsPorts` is not had here; leave it "
     "out"},
};

static unsigned refused(unsigned status, const char *words, const char **out)
{
    *out = words;
    return status;
}

static bool are_texts(const struct json *list)
{
    bool ok = list->type == JSON_ARRAY;

    for (const struct json *m = ok ? list->child : NULL; m; m = m->next)
        ok &= m->type == JSON_STRING;
    return ok;
}

/* A rule there has headers to put in, or does nothing. */
static bool rules_do_nothing(const struct json *rules)
{
    bool nothing = true;

    for (const struct json *host = rules->child; host; host = host->next) {
        nothing &= host->type == JSON_ARRAY;
        for (const struct json *r = host->type == JSON_ARRAY ? host->child : NULL; r; r = r->next)
            nothing &= r->type == JSON_OBJECT && r->count == 0;
    }
    return nothing;
}

static unsigned member_read(const struct json *m, const char **words)
{
    size_t i = 0;

    while (i < sizeof(members) / sizeof(members[0]) && !span_eq(m->key, members[i].name))
        i++;
    if (i == sizeof(members) / sizeof(members[0]))
        return refused(400,
                       "`network` has a member that is not known here: there are `allowOut`, `denyOut` and `rules`, "
                       "and `allow_internet_access` stands beside `network`",
                       words);
    if (m->type == JSON_NULL)
        return 0;
    if (members[i].holds == HOLDS_NOTHING)
        return refused(501, members[i].not_had, words);
    if (members[i].holds == HOLDS_TEXTS)
        return are_texts(m)
                   ? 0
                   : refused(400, "`allowOut` and `denyOut` of `network` are lists of texts, or null", words);
    if (m->type != JSON_OBJECT)
        return refused(400, "`rules` of `network` is an object of lists, or null", words);
    return rules_do_nothing(m)
               ? 0
               : refused(501,
                         "`network.rules` put headers into requests: credentials are put in by this gateway's "
                         "policy, of which no caller of this API says anything; leave `transform` out",
                         words);
}

/* NULL: it names nothing. */
static const struct json *texts(const struct json *n, struct span name)
{
    const struct json *l = json_get(n, name);

    return l && l->count > 0 ? l : NULL;
}

static bool has(const struct json *list, struct span text)
{
    for (const struct json *m = list ? list->child : NULL; m; m = m->next)
        if (span_eq(m->text, text))
            return true;
    return false;
}

unsigned network_read(const struct json *body, struct network *n, const char **words)
{
    const struct json *internet = json_get(body, SPAN("allow_internet_access")),
                      *said = json_get(body, SPAN("network"));
    unsigned status;

    *n = (struct network){.alone = internet && internet->type == JSON_BOOL && !internet->truth};
    if (internet && internet->type != JSON_NULL && internet->type != JSON_BOOL)
        return refused(400, "`allow_internet_access` is true, false or null", words);
    if (said && said->type != JSON_NULL && said->type != JSON_OBJECT)
        return refused(400, "`network` is an object with lists `allowOut` and `denyOut`, or null", words);
    for (const struct json *m = said ? said->child : NULL; m; m = m->next)
        if ((status = member_read(m, words)) != 0)
            return status;
    const struct json *allow = texts(said, SPAN("allowOut")), *deny = texts(said, SPAN("denyOut"));
    if (has(allow, SPAN("*")))
        return refused(501, "`*` alone is no name here: all there is is `0.0.0.0/0`, or no `allowOut` at all", words);
    n->alone |= !allow && has(deny, SPAN("0.0.0.0/0"));
    n->allow = n->alone ? NULL : allow;
    n->deny = n->alone ? NULL : deny;
    return 0;
}
