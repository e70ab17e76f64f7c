/* source: of a credential: where a secret is, or who is asked for it and with what. */
#include <stdio.h>

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

static void read_text(struct loader *l, const struct node *n, void *field)
{
    struct item value = {0};
    if (text(l, n, &value))
        add(l, field, n->key->text, &value, SOURCE_NONE);
}

static void read_texts(struct loader *l, const struct node *n, void *field)
{
    struct item value = {0};
    if (n->kind != NODE_LIST) {
        read_text(l, n, field);
        return;
    }
    for (const struct node *c = n->child; c; c = c->next)
        if (text(l, c, &value))
            add(l, field, n->key->text, &value, SOURCE_NONE);
}

/* Kept in milliseconds. */
static void read_time(struct loader *l, const struct node *n, void *field, uint64_t lo, uint64_t hi,
                      const char *bounds)
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
    add(l, field, n->key->text, &value, SOURCE_NONE);
}

static void read_timeout(struct loader *l, const struct node *n, void *field)
{
    read_time(l, n, field, 1000, 25 * 1000, "is from 1s to 25s: the request waits that long");
}

static void read_lifetime(struct loader *l, const struct node *n, void *field)
{
    read_time(l, n, field, 1000, 24 * 3600 * 1000, "is from 1s to 24h");
}

static void read_pointer(struct loader *l, const struct node *n, void *field)
{
    const char *why = n->kind == NODE_TEXT ? scalar_pointer(n->text) : "is a text";
    if (why)
        load_problem(l, n, "P008", "%.*s %s", SPAN_FMT(n->key->text), why);
    else
        read_text(l, n, field);
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

static void read_secret(struct loader *l, const struct node *n, void *field)
{
    if (n->kind == NODE_MAP)
        add_secret(l, n, n->key->text, field);
    else
        load_problem(l, n, "P008", "a secret is not written here: say where it is, as in { store: NAME }");
}

/* Names and what they stand for: KEY.NAME. A secret, or a text that is none. */
static void read_env(struct loader *l, const struct node *n, void *field)
{
    if (n->kind != NODE_MAP) {
        load_problem(l, n, "P008", "env: is a mapping from names to texts and secrets");
        return;
    }
    for (const struct node *c = n->child; c; c = c->next) {
        struct item name = {0}, value = {0};
        uint8_t *key = arena_alloc(&l->a, 4 + c->key->text.n);
        if (key == NULL || !keys_decode_text(l, c->key, &name))
            continue;
        memcpy(key, "env.", 4);
        memcpy(key + 4, name.text.p, name.text.n);
        if (!scalar_is_word(name.text) || span_index(name.text, '=') < name.text.n)
            load_problem(l, c->key, "P008", "\"%.*s\" is no name of a variable", SPAN_FMT(span_first(name.text, 60)));
        else if (c->kind == NODE_MAP)
            add_secret(l, c, span_of(key, 4 + name.text.n), field);
        else if (text(l, c, &value))
            add(l, field, span_of(key, 4 + name.text.n), &value, SOURCE_NONE);
    }
}

#define ASKED(name_, call_, flags_, help_)                                                                           \
    {                                                                                                                \
        .name = name_, .type = KEY_CALL, .call = call_, .flags = flags_, .help = help_                               \
    }
#define TIMEOUT  ASKED("timeout", read_timeout, 0, "the longest it may take; default 10s")
#define LIFETIME ASKED("lifetime", read_lifetime, 0, "how long a value is used; default 5m, or what the answer says")

static const struct key exec_keys[] = {
    ASKED("argv", read_texts, KEY_NEEDED, "a program by its full path, and its arguments; no shell reads them"),
    ASKED("env", read_env, 0, "its variables: texts, or secrets such as { store: NAME }; there are no others"),
    ASKED("value", read_pointer, 0,
          "where in the JSON it prints the secret is, as in /data/token; default: all it prints"),
    ASKED("expires_in", read_pointer, 0, "where in that JSON the seconds are for which it may be used"),
    TIMEOUT,
    LIFETIME,
    {0}};
static const struct table exec_table = {"exec:", sizeof(struct m_asked), exec_keys};

#define URL(help_) ASKED("url", read_text, KEY_NEEDED, help_)

static const struct key oauth2_keys[] = {
    URL("the token endpoint, https://HOST/PATH"),
    ASKED("grant", read_text, KEY_NEEDED, "client_credentials, refresh_token, jwt_bearer or token_exchange"),
    ASKED("client_id", read_text, 0, "who asks"),
    ASKED("client_secret", read_secret, 0, "what proves it, as in { store: NAME }"),
    ASKED("auth", read_text, 0, "how both are shown: basic, which is the default, or body"),
    ASKED("refresh_token", read_secret, 0, "{ store: NAME }; the next one is sealed there"),
    ASKED("assertion", read_secret, 0, "the JWT of jwt_bearer, as in { file: PATH }"),
    ASKED("subject_token", read_secret, 0, "the token that is exchanged"),
    ASKED("subject_token_type", read_text, 0, "what it is, as in urn:ietf:params:oauth:token-type:jwt"),
    ASKED("requested_token_type", read_text, 0, "what is wanted for it"),
    ASKED("actor_token", read_secret, 0, "of who acts for the subject"),
    ASKED("actor_token_type", read_text, 0, "what that is"),
    ASKED("scope", read_text, 0, "what it is for: words with spaces between them"),
    ASKED("audience", read_texts, 0, "whom it is for"),
    ASKED("resource", read_texts, 0, "the same, as an address (RFC 8707)"),
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
    ASKED("jwt", read_secret, 0, "that JWT, as in { file: /var/run/secrets/kubernetes.io/serviceaccount/token }"),
    ASKED("auth", read_text, 0, "where it logs in, default approle, with jwt: kubernetes"),
    ASKED("namespace", read_text, 0, "of Vault Enterprise and OpenBao"),
    ASKED("read", read_text, KEY_NEEDED, "a path below /v1/: secret/data/app, database/creds/app"),
    ASKED("value", read_pointer, KEY_NEEDED, "where in its answer the secret is: /data/data/token, /data/password"),
    TIMEOUT,
    LIFETIME,
    {0}};
static const struct table vault_table = {"vault:", sizeof(struct m_asked), vault_keys};

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
    LATER("github_app"),
    LATER("aws"),
    {0}};
const struct table source_table = {"source:", sizeof(struct m_source), source_keys};
