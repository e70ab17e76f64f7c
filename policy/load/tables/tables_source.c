/* source: of a credential: where a secret is, or who is asked for it and with what. */
#include <stdio.h>

#include "common/json/json.h"
#include "policy/load/read/scalar.h"
#include "policy/load/tables/tables.h"

enum { NUMBER_LEN = 24 };

static const struct key stored_keys[] = {
    TEXT(m_stored, file, "file", "a file with the secret"),
    TEXT(m_stored, env, "env", "an environment variable of the gateway"),
    TEXT(m_stored, store, "store", "a name given to: countersign secret set"),
    TEXT(m_stored, systemd, "systemd", "a name below $CREDENTIALS_DIRECTORY of the gateway's unit"),
    {0}};
static const struct table stored_table = {"a secret", sizeof(struct m_stored), stored_keys};

/* ---- settings: each key of a source that is asked becomes one, or a row of them ---- */

static void add(struct loader *l, struct m_asked *to, struct span key, const struct item *value,
                enum source_kind from)
{
    if (to->v == NULL)
        to->v = arena_alloc(&l->a, SETTINGS_MAX * sizeof(*to->v));
    if (to->v == NULL || to->n == SETTINGS_MAX)
        load_problem(l, value->at, "P017", "a source has more than %d settings", SETTINGS_MAX);
    else
        to->v[to->n++] = (struct m_setting){value->at, key, *value, from};
}

static bool text(struct loader *l, const struct node *n, struct item *out)
{
    if (n->kind == NODE_TEXT)
        return keys_decode_text(l, n, out);
    load_problem(l, n, "P008", "a single text is wanted here");
    return false;
}

static void read_text_as(struct loader *l, const struct node *n, void *field, struct span key)
{
    struct item value = {0};
    if (text(l, n, &value))
        add(l, field, key, &value, SOURCE_NONE);
}

static void read_text(struct loader *l, const struct node *n, void *field)
{
    read_text_as(l, n, field, n->key->text);
}

/* A number that is a name: with quotes or without. */
static void read_number_as(struct loader *l, const struct node *n, void *field, struct span key)
{
    struct item value = {n->text, n};
    uint64_t number;
    if (n->kind == NODE_TEXT && span_u64(n->text, UINT64_MAX, &number) == 0)
        add(l, field, key, &value, SOURCE_NONE);
    else
        read_text_as(l, n, field, key);
}

static void read_texts_as(struct loader *l, const struct node *n, void *field, struct span key)
{
    if (n->kind != NODE_LIST)
        read_text_as(l, n, field, key);
    for (const struct node *c = n->kind == NODE_LIST ? n->child : NULL; c; c = c->next)
        read_text_as(l, c, field, key);
}

static void read_texts(struct loader *l, const struct node *n, void *field)
{
    read_texts_as(l, n, field, n->key->text);
}

/* Kept in milliseconds. */
static void read_time_as(struct loader *l, const struct node *n, void *field, struct span key, uint64_t lo,
                         uint64_t hi, const char *bounds)
{
    struct item value = {.at = n};
    uint64_t ms = 0;
    char *digits = arena_alloc(&l->a, NUMBER_LEN);
    const char *why = n->kind == NODE_TEXT ? scalar_time(n->text, &ms) : "is a time such as 10s";
    if (why == NULL && (ms < lo || ms > hi))
        why = bounds;
    if (why != NULL || digits == NULL) {
        load_problem(l, n, "P008", "%.*s %s", SPAN_FMT(n->key->text), why ? why : "found no memory");
        return;
    }
    value.text = span_of(digits, (size_t)snprintf(digits, NUMBER_LEN, "%llu", (unsigned long long)ms));
    add(l, field, key, &value, SOURCE_NONE);
}

static void read_timeout(struct loader *l, const struct node *n, void *field)
{
    read_time_as(l, n, field, n->key->text, 1000, 25 * 1000, "is from 1s to 25s: the request waits that long");
}

static void read_lifetime(struct loader *l, const struct node *n, void *field)
{
    read_time_as(l, n, field, n->key->text, 1000, 24 * 3600 * 1000, "is from 1s to 24h");
}

static void read_pointer(struct loader *l, const struct node *n, void *field)
{
    const char *why = n->kind == NODE_TEXT ? scalar_pointer(n->text) : "is a text";
    if (why)
        load_problem(l, n, "P008", "%.*s %s", SPAN_FMT(n->key->text), why);
    else
        read_text(l, n, field);
}

static void read_pointers(struct loader *l, const struct node *n, void *field)
{
    bool list = n->kind == NODE_LIST;
    for (const struct node *c = list ? n->child : n; c; c = list ? c->next : NULL) {
        const char *why = c->kind == NODE_TEXT ? scalar_pointer(c->text) : "is a text, or a list of texts";
        if (why)
            load_problem(l, c, "P008", "%.*s %s", SPAN_FMT(n->key->text), why);
        else
            read_text_as(l, c, field, n->key->text);
    }
}

static void add_secret(struct loader *l, const struct node *n, struct span key, struct m_asked *to)
{
    struct m_stored is = {0};
    keys_decode_map(l, n, &stored_table, &is);
    const struct item *at[] = {
        [SOURCE_FILE] = &is.file, [SOURCE_ENV] = &is.env, [SOURCE_STORE] = &is.store, [SOURCE_SYSTEMD] = &is.systemd};
    unsigned given = 0, which = SOURCE_NONE;
    for (unsigned k = SOURCE_FILE; k <= SOURCE_SYSTEMD; k++)
        if (at[k]->at != NULL) {
            which = k;
            given++;
        }
    if (given != 1)
        load_problem(l, n, "P015", "a secret is in one of file:, env:, store: and systemd:");
    else
        add(l, to, key, at[which], (enum source_kind)which);
}

static void read_secret_as(struct loader *l, const struct node *n, void *field, struct span key)
{
    if (n->kind == NODE_MAP)
        add_secret(l, n, key, field);
    else
        load_problem(l, n, "P008", "a secret is not written here: say where it is, as in { store: NAME }");
}

static void read_secret(struct loader *l, const struct node *n, void *field)
{
    read_secret_as(l, n, field, n->key->text);
}

/* Names and what they stand for: PREFIX.NAME. A text, or a secret where one may be. */
static void read_pairs(struct loader *l, const struct node *n, void *field, struct span prefix, bool secrets)
{
    if (n->kind != NODE_MAP) {
        load_problem(l, n, "P008", "%.*s: is a mapping from names to texts%s", SPAN_FMT(n->key->text),
                     secrets ? " and secrets" : "");
        return;
    }
    for (const struct node *c = n->child; c; c = c->next) {
        struct item name = {0};
        if (!keys_decode_text(l, c->key, &name))
            continue;
        struct span key = arena_join(&l->a, prefix, name.text);
        if (!scalar_is_word(name.text) || span_index(name.text, '=') < name.text.n)
            load_problem(l, c->key, "P008", "\"%.*s\" is no name%s", SPAN_FMT(span_first(name.text, 60)),
                         secrets ? " of a variable" : "");
        else if (key.p != NULL && secrets && c->kind == NODE_MAP)
            add_secret(l, c, key, field);
        else if (key.p != NULL)
            read_text_as(l, c, field, key);
    }
}

static void read_env(struct loader *l, const struct node *n, void *field)
{
    read_pairs(l, n, field, SPAN("env."), true);
}

/* ---- what is signed with a key that stays here: proxy/keeper/sources/minted.h ---- */

static void read_key(struct loader *l, const struct node *n, void *field)
{
    read_secret_as(l, n, field, SPAN("jwt.key"));
}

static void read_issuer(struct loader *l, const struct node *n, void *field)
{
    read_number_as(l, n, field, SPAN("jwt.iss"));
}

static void read_subject(struct loader *l, const struct node *n, void *field)
{
    read_text_as(l, n, field, SPAN("jwt.sub"));
}

static void read_audience(struct loader *l, const struct node *n, void *field)
{
    read_texts_as(l, n, field, SPAN("jwt.aud"));
}

static void read_key_id(struct loader *l, const struct node *n, void *field)
{
    read_text_as(l, n, field, SPAN("jwt.kid"));
}

static void read_ttl(struct loader *l, const struct node *n, void *field)
{
    read_time_as(l, n, field, SPAN("jwt.ttl"), 60 * 1000, 24 * 3600 * 1000, "is from 1m to 24h");
}

static void read_claims(struct loader *l, const struct node *n, void *field)
{
    read_pairs(l, n, field, SPAN("jwt.claim."), false);
}

static void read_number(struct loader *l, const struct node *n, void *field)
{
    read_number_as(l, n, field, n->key->text);
}

static void read_permissions(struct loader *l, const struct node *n, void *field)
{
    read_pairs(l, n, field, SPAN("permission."), false);
}

#define ASKED(name_, call_, flags_, help_)                                                                           \
    {                                                                                                                \
        .name = name_, .type = KEY_CALL, .call = call_, .flags = flags_, .help = help_                               \
    }
#define TIMEOUT  ASKED("timeout", read_timeout, 0, "the longest it may take; default 10s")
#define LIFETIME ASKED("lifetime", read_lifetime, 0, "how long a value is used; default 5m, or what the answer says")

static const struct key exec_keys[] = {
    ASKED("argv", read_texts, KEY_NEEDED, "a program by its full path, and its arguments; no shell reads them"),
    ASKED("hosts", read_texts, 0,
          "what it may reach, HOST or HOST:PORT, by the proxy in HTTPS_PROXY; default: nothing"),
    ASKED("env", read_env, 0, "its variables: texts, or secrets such as { store: NAME }; there are no others"),
    ASKED("value", read_pointer, 0,
          "where in the JSON it prints the secret is, as in /data/token; default: all it prints"),
    ASKED("expires_in", read_pointer, 0, "where in that JSON the seconds are for which it may be used"),
    TIMEOUT,
    LIFETIME,
    {0}};
static const struct table exec_table = {"exec:", sizeof(struct m_asked), exec_keys};

static const struct key jwt_keys[] = {
    ASKED("key", read_key, KEY_NEEDED,
          "the private key it is signed with, as in { store: NAME }: RSA, or EC on P-256"),
    ASKED("key_id", read_key_id, 0, "what its header calls the key; default as in: countersign secret jwks"),
    ASKED("iss", read_issuer, KEY_NEEDED, "who says it"),
    ASKED("sub", read_subject, 0, "of whom"),
    ASKED("aud", read_audience, KEY_NEEDED, "to whom"),
    ASKED("ttl", read_ttl, 0, "how long it is good for; default 5m"),
    ASKED("claims", read_claims, 0, "what else it says: texts by their names"),
    {0}};
static const struct table jwt_table = {"jwt:", sizeof(struct m_asked), jwt_keys};

static void add_jwt(struct loader *l, const struct node *n, struct m_asked *to)
{
    const struct item own = {SPAN("*"), n};
    bool named = false;
    struct m_asked is = {0};
    keys_decode_map(l, n, &jwt_table, &is);
    for (size_t i = 0; i < is.n; i++) {
        named |= span_eq(is.v[i].key, SPAN("jwt.kid"));
        add(l, to, is.v[i].key, &is.v[i].value, is.v[i].from);
    }
    if (!named)
        add(l, to, SPAN("jwt.kid"), &own, SOURCE_NONE);
}

static void read_jwt(struct loader *l, const struct node *n, void *field)
{
    struct m_asked *to = field;
    to->at = n;
    if (n->kind == NODE_MAP)
        add_jwt(l, n, to);
    else
        load_problem(l, n, "P008", "jwt: is a mapping with key:, iss: and aud:");
}

/* A secret, or a JWT that is signed for it: { jwt: ... }. */
static void read_signed(struct loader *l, const struct node *n, void *field)
{
    const struct node *only = n->kind == NODE_MAP && n->count == 1 ? n->child : NULL;
    const struct item as = {n->key->text, n};
    if (only == NULL || !span_eq(only->key->text, SPAN("jwt")) || only->kind != NODE_MAP) {
        read_secret(l, n, field);
        return;
    }
    add_jwt(l, only, field);
    add(l, field, SPAN("jwt.as"), &as, SOURCE_NONE);
}

/* ---- Google's "Downscoping with Credential Access Boundaries": what is asked for second (proxy/keeper/sources) ----
 */

enum { BOUNDARIES_MAX = 10, OPTIONS_MAX = 64 * 1024 };
#define A_TOKEN   SPAN("urn:ietf:params:oauth:token-type:access_token")
#define THEIR_STS SPAN("https://sts.googleapis.com/v1/token")

struct boundary {
    const struct node *at;
    struct item resource, condition;
    struct items permissions;
};
static const struct key boundary_keys[] = {
    {.name = "resource",
     .type = KEY_TEXT,
     .at = AT(boundary, resource),
     .flags = KEY_NEEDED,
     .help = "a bucket, //storage.googleapis.com/projects/_/buckets/NAME"},
    {.name = "permissions",
     .type = KEY_TEXTS,
     .at = AT(boundary, permissions),
     .flags = KEY_NEEDED,
     .help = "at most these of what it may do there, as in inRole:roles/storage.objectViewer"},
    TEXT(boundary, condition, "condition", "an expression in CEL, as in resource.name.startsWith('...')"),
    {0}};
static const struct table boundary_table = {"downscope:", sizeof(struct boundary), boundary_keys};

static void put_boundary(struct loader *l, const struct node *n, struct jsonw *w)
{
    struct boundary is = {0};
    keys_decode_map(l, n, &boundary_table, &is);
    if (is.resource.at != NULL && !span_starts(is.resource.text, SPAN("//")))
        load_problem(l, is.resource.at, "P008", "\"%.*s\" is no full name of a resource, which begins with //",
                     SPAN_FMT(span_first(is.resource.text, 100)));
    jsonw_object(w);
    jsonw_kv(w, "availableResource", is.resource.text);
    jsonw_kv_array(w, "availablePermissions");
    for (size_t i = 0; i < is.permissions.n; i++) {
        if (!span_starts(is.permissions.v[i].text, SPAN("inRole:")))
            load_problem(l, is.permissions.v[i].at, "P008", "\"%.*s\" is no inRole:ROLE",
                         SPAN_FMT(span_first(is.permissions.v[i].text, 100)));
        jsonw_string(w, is.permissions.v[i].text);
    }
    jsonw_end_array(w);
    if (is.condition.at != NULL) {
        jsonw_kv_object(w, "availabilityCondition");
        jsonw_kv(w, "expression", is.condition.text);
        jsonw_end_object(w);
    }
    jsonw_end_object(w);
}

static struct m_setting *second_url(struct m_asked *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (span_eq(a->v[i].key, SPAN("downscope.url")))
            return &a->v[i];
    return NULL;
}

static void read_downscope(struct loader *l, const struct node *n, void *field)
{
    struct m_asked *to = field;
    struct item options = {.at = n};
    struct dynbuf b;
    struct jsonw w;
    size_t count = 0;
    dynbuf_init(&b, OPTIONS_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv_object(&w, "accessBoundary");
    jsonw_kv_array(&w, "accessBoundaryRules");
    for (const struct node *c = n->kind == NODE_LIST ? n->child : NULL; c != NULL; c = c->next, count++)
        put_boundary(l, c, &w);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    options.text = arena_keep(&l->a, &b);
    if (count == 0 || count > BOUNDARIES_MAX || options.text.p == NULL) {
        load_problem(l, n, "P008",
                     "downscope: is a list of at most %d, each with resource: and permissions:", BOUNDARIES_MAX);
        return;
    }
    if (second_url(to) == NULL)
        add(l, to, SPAN("downscope.url"), &(struct item){THEIR_STS, n}, SOURCE_NONE);
    add(l, to, SPAN("downscope.grant"), &(struct item){SPAN("token_exchange"), n}, SOURCE_NONE);
    add(l, to, SPAN("downscope.subject_token_type"), &(struct item){A_TOKEN, n}, SOURCE_NONE);
    add(l, to, SPAN("downscope.requested_token_type"), &(struct item){A_TOKEN, n}, SOURCE_NONE);
    add(l, to, SPAN("downscope.options"), &options, SOURCE_NONE);
}

static void read_downscope_url(struct loader *l, const struct node *n, void *field)
{
    struct m_setting *theirs = second_url(field);
    struct item value = {0};
    if (!text(l, n, &value))
        return;
    if (theirs != NULL)
        *theirs = (struct m_setting){n, theirs->key, value, SOURCE_NONE};
    else
        add(l, field, SPAN("downscope.url"), &value, SOURCE_NONE);
}

#define URL(help_) ASKED("url", read_text, KEY_NEEDED, help_)

static const struct key oauth2_keys[] = {
    URL("the token endpoint, https://HOST/PATH"),
    ASKED("grant", read_text, KEY_NEEDED, "client_credentials, refresh_token, jwt_bearer or token_exchange"),
    ASKED("client_id", read_text, 0, "who asks"),
    ASKED("client_secret", read_secret, 0, "what proves it, as in { store: NAME }"),
    ASKED("auth", read_text, 0, "how both are shown: basic, which is the default, or body"),
    ASKED("refresh_token", read_secret, 0, "{ store: NAME }; the next one is sealed there"),
    ASKED("client_assertion", read_signed, 0, "a JWT that proves it instead, as in { jwt: ... }"),
    ASKED("assertion", read_signed, 0, "the JWT of jwt_bearer, as in { file: PATH } or { jwt: ... }"),
    ASKED("subject_token", read_signed, 0, "the token that is exchanged, as in { file: PATH } or { jwt: ... }"),
    ASKED("subject_token_type", read_text, 0, "what it is, as in urn:ietf:params:oauth:token-type:jwt"),
    ASKED("requested_token_type", read_text, 0, "what is wanted for it"),
    ASKED("actor_token", read_secret, 0, "of who acts for the subject"),
    ASKED("actor_token_type", read_text, 0, "what that is"),
    ASKED("scope", read_text, 0, "what it is for: words with spaces between them"),
    ASKED("audience", read_texts, 0, "whom it is for"),
    ASKED("resource", read_texts, 0, "the same, as an address (RFC 8707)"),
    ASKED("downscope", read_downscope, 0, "what of a token of Google's is used: a list of boundaries"),
    ASKED("downscope_url", read_downscope_url, 0,
          "where one is narrowed, default https://sts.googleapis.com/v1/token"),
    TIMEOUT,
    LIFETIME,
    {0}};
static const struct table oauth2_table = {"oauth2:", sizeof(struct m_asked), oauth2_keys};

static const struct key vault_keys[] = {
    URL("the vault, https://HOST:PORT"),
    ASKED("token", read_secret, 0, "a token of its own, as in { store: NAME }"),
    ASKED("role_id", read_text, 0, "who asks, by AppRole"),
    ASKED("secret_id", read_secret, 0, "what proves it"),
    ASKED("role", read_text, 0, "who asks, with a JWT"),
    ASKED("jwt", read_signed, 0, "that JWT, as in { file: /var/run/secrets/kubernetes.io/serviceaccount/token }"),
    ASKED("auth", read_text, 0, "where it logs in, default approle, with jwt: kubernetes"),
    ASKED("namespace", read_text, 0, "of Vault Enterprise and OpenBao"),
    ASKED("read", read_text, KEY_NEEDED, "a path below /v1/: secret/data/app, database/creds/app"),
    ASKED("value", read_pointer, KEY_NEEDED, "where in its answer the secret is: /data/data/token, /data/password"),
    TIMEOUT,
    LIFETIME,
    {0}};
static const struct table vault_table = {"vault:", sizeof(struct m_asked), vault_keys};

static const struct key github_app_keys[] = {
    URL("the API, https://api.github.com or https://HOST/api/v3"),
    ASKED("app_id", read_issuer, KEY_NEEDED, "the app's client id, or its number"),
    ASKED("key", read_key, KEY_NEEDED, "its private key, as in { store: NAME }"),
    ASKED("installation", read_number, KEY_NEEDED, "the number of its installation"),
    ASKED("repositories", read_texts, KEY_NEEDED, "names without their owner, or \"*\": all of the installation"),
    ASKED("permissions", read_permissions, KEY_NEEDED, "what the token may do there, as in { contents: write }"),
    TIMEOUT,
    LIFETIME,
    {0}};
static const struct table github_app_table = {"github_app:", sizeof(struct m_asked), github_app_keys};

static const struct key answer_keys[] = {
    ASKED("to", read_texts, KEY_NEEDED, "the credential, or credentials, with which such an answer is asked for"),
    ASKED("token", read_pointers, KEY_NEEDED,
          "where in its JSON or XML the value is, as in /access_token; all of several are the same"),
    ASKED("key", read_pointer, 0, "of keys to sign with: where the key is; token: is then where its id is"),
    ASKED("session_token", read_pointer, 0, "of keys to sign with: where the session token is"),
    ASKED("expires_in", read_pointer, 0, "where in it the seconds are for which it may be used"),
    ASKED("expires_at", read_pointer, 0, "where in it the time is until which it may be used"),
    LIFETIME,
    ASKED("keep", read_pointers, 0, "texts of it that are no secret, beside those with usual names, and go on"),
    ASKED("challenge", read_text, 0,
          "WWW-Authenticate of the 401 for who brings no lease of it, where clients read in it whom to ask"),
    {0}};
static const struct table answer_table = {"answer:", sizeof(struct m_asked), answer_keys};

static void read_duration(struct loader *l, const struct node *n, void *field)
{
    read_time_as(l, n, field, n->key->text, 15 * 60 * 1000, 12 * 3600 * 1000, "is from 15m to 12h");
}

static const struct key aws_keys[] = {
    URL("the STS of a region, https://sts.REGION.amazonaws.com"),
    ASKED("role", read_text, KEY_NEEDED, "the role's ARN"),
    ASKED("session", read_text, KEY_NEEDED, "what the session is called in the records of AWS"),
    ASKED("key", read_secret, 0, "who asks: { store: NAME }, in it ID:KEY or ID:KEY:TOKEN"),
    ASKED("region", read_text, 0, "of the signature with that key"),
    ASKED("web_identity", read_signed, 0, "or who asks: a token of a provider, { file: PATH } or { jwt: ... }"),
    ASKED("policy", read_text, 0, "JSON that narrows what the role may do"),
    ASKED("policy_arns", read_texts, 0, "the same, policies by their ARNs"),
    ASKED("source_identity", read_text, 0, "kept in the records of AWS whatever role is taken next"),
    ASKED("external_id", read_text, 0, "what the role's owner asks for"),
    ASKED("duration", read_duration, 0, "how long the keys live; default 1h"),
    TIMEOUT,
    LIFETIME,
    {0}};
static const struct table aws_table = {"aws:", sizeof(struct m_asked), aws_keys};

static const struct key tencent_keys[] = {
    URL("the STS of Tencent Cloud, https://sts.tencentcloudapi.com"),
    ASKED("key", read_secret, KEY_NEEDED, "who asks: { store: NAME }, in it ID:KEY or ID:KEY:TOKEN"),
    ASKED("region", read_text, KEY_NEEDED, "which region is asked, as in ap-guangzhou"),
    ASKED("role", read_text, 0, "the role, as in qcs::cam::uin/100000000001:roleName/agents"),
    ASKED("session", read_text, 0, "what the session is called in the records of Tencent Cloud"),
    ASKED("federation", read_text, 0, "or the name of a federated user: letters"),
    ASKED("policy", read_text, 0, "JSON that narrows what the role may do; of a federated user all there is"),
    ASKED("source_identity", read_text, 0, "kept in the records of Tencent Cloud"),
    ASKED("external_id", read_text, 0, "what the role's owner asks for"),
    ASKED("duration", read_duration, 0, "how long the keys live; default 2h, of a federated user 30m"),
    TIMEOUT,
    LIFETIME,
    {0}};
static const struct table tencent_table = {"tencent:", sizeof(struct m_asked), tencent_keys};

static const struct key source_keys[] = {
    TEXT(m_source, stored.file, "file", "a file with the secret"),
    TEXT(m_source, stored.env, "env", "an environment variable of the gateway"),
    TEXT(m_source, stored.store, "store", "a name given to: countersign secret set"),
    TEXT(m_source, stored.systemd, "systemd", "a name below $CREDENTIALS_DIRECTORY of the gateway's unit"),
    {.name = "exec",
     .type = KEY_MAP,
     .at = AT(m_source, asked[SOURCE_EXEC]),
     .table = &exec_table,
     .help = "a program that prints the secret"},
    {.name = "oauth2",
     .type = KEY_MAP,
     .at = AT(m_source, asked[SOURCE_OAUTH2]),
     .table = &oauth2_table,
     .help = "a token endpoint"},
    {.name = "vault",
     .type = KEY_MAP,
     .at = AT(m_source, asked[SOURCE_VAULT]),
     .table = &vault_table,
     .help = "HashiCorp Vault or OpenBao"},
    {.name = "github_app",
     .type = KEY_MAP,
     .at = AT(m_source, asked[SOURCE_GITHUB_APP]),
     .table = &github_app_table,
     .help = "a token of a GitHub App's installation"},
    {.name = "jwt",
     .type = KEY_CALL,
     .at = AT(m_source, asked[SOURCE_JWT]),
     .call = read_jwt,
     .help = "a JWT that is signed here"},
    {.name = "aws",
     .type = KEY_MAP,
     .at = AT(m_source, asked[SOURCE_AWS]),
     .table = &aws_table,
     .help = "keys of a role of AWS, by its STS"},
    {.name = "tencent",
     .type = KEY_MAP,
     .at = AT(m_source, asked[SOURCE_TENCENT]),
     .table = &tencent_table,
     .help = "keys of a role or a federated user of Tencent Cloud, by its STS"},
    {.name = "answer",
     .type = KEY_MAP,
     .at = AT(m_source, asked[SOURCE_ANSWER]),
     .table = &answer_table,
     .help = "a token in the answer to a request with another credential"},
    {0}};
const struct table source_table = {"source:", sizeof(struct m_source), source_keys};
