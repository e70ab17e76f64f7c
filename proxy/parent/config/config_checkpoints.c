/* checkpoints: of the configuration: a store elsewhere that checkpoints are kept in as well. */
#include "proxy/parent/config/config_in.h"

static const struct key s3_keys[] = {
    {"endpoint", KEY_TEXT, AT(row_s3, endpoint), KEY_NEEDED,
     .help = "https://HOST[:PORT], an upstream of the policy"},
    {"bucket", KEY_TEXT, AT(row_s3, bucket), KEY_NEEDED, .help = "a bucket that is there"},
    {"prefix", KEY_TEXT, AT(row_s3, prefix), 0, .help = "what their names begin with there"},
    {"credential", KEY_TEXT, AT(row_s3, credential), KEY_NEEDED,
     .help = "of the policy, with sigv4, lease: aws and stub: aws"},
    {.type = KEY_END}};
static const struct table s3_table = {"s3", sizeof(struct row_s3), s3_keys};
static const struct key checkpoints_keys[] = {{"s3", KEY_MAP, AT(row_checkpoints, s3), KEY_NEEDED, .table = &s3_table,
                                               .help = "a store that speaks S3's API, asked through the gateway"},
                                              {.type = KEY_END}};
const struct table config_checkpoints_table = {"checkpoints", sizeof(struct row_checkpoints), checkpoints_keys};

/* It becomes part of a path, and of what is signed. */
static bool store_name(struct span s, bool slashes)
{
    bool before = false;

    for (size_t i = 0; i < s.n; i++) {
        bool plain = (s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= 'A' && s.p[i] <= 'Z') ||
                     (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '_';
        if (!plain && (!before || (s.p[i] != '-' && s.p[i] != '.' && (s.p[i] != '/' || !slashes))))
            return false;
        before = plain;
    }
    return before;
}

static bool endpoint_ok(struct span s)
{
    struct span rest = span_from(s, sizeof("https://") - 1);

    for (size_t i = 0; i < rest.n; i++)
        if (!((rest.p[i] >= 'a' && rest.p[i] <= 'z') || (rest.p[i] >= '0' && rest.p[i] <= '9') || rest.p[i] == '.' ||
              rest.p[i] == '-' || rest.p[i] == ':'))
            return false;
    return span_starts(s, SPAN("https://")) && rest.n > 0;
}

void config_take_checkpoints(struct loader *l, const struct row_checkpoints *all, struct config *c)
{
    const struct row_s3 *r = &all->s3;
    struct config_store *to = &c->away;

    if (r->at == NULL)
        return;
    if (!endpoint_ok(r->endpoint.text))
        load_problem(l, r->endpoint.at, "C005", "an endpoint is https://HOST or https://HOST:PORT");
    if (!store_name(r->bucket.text, false))
        load_problem(l, r->bucket.at, "C005", "a bucket's name has letters, digits, and . - between them");
    if (r->prefix.at != NULL && !store_name(r->prefix.text, true))
        load_problem(l, r->prefix.at, "C005", "a prefix has letters, digits, and . - / between them");
    config_copy(l, to->endpoint, sizeof(to->endpoint), &r->endpoint);
    config_copy(l, to->bucket, sizeof(to->bucket), &r->bucket);
    if (r->prefix.at != NULL)
        config_copy(l, to->prefix, sizeof(to->prefix), &r->prefix);
    config_copy(l, to->credential, sizeof(to->credential), &r->credential);
}
