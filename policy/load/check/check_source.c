#include "policy/load/check/check_source.h"

#include "policy/load/read/scalar.h"

enum { ARGUMENT_MAX = 4096, CLAIM_MAX = 60, CHALLENGE_MAX = 512 };

static void bad(struct loader *l, const struct item *v, const char *why)
{
    load_problem(l, v->at, "P008", "\"%.*s\" %s", SPAN_FMT(span_first(v->text, 100)), why);
}

static void check_stored(struct loader *l, enum source_kind kind, const struct item *v)
{
    if (v->at == NULL)
        return;
    if (kind == SOURCE_STORE && !scalar_is_name(v->text))
        bad(l, v, "is no name of a stored secret");
    if (kind == SOURCE_ENV && !scalar_is_word(v->text))
        bad(l, v, "is no name of a variable");
    if (kind == SOURCE_SYSTEMD && !scalar_is_name(v->text))
        bad(l, v, "is no name of a credential of systemd: letters, digits, '.', '_' and '-'");
}

static void check_settings(struct loader *l, const struct m_asked *a)
{
    for (size_t i = 0; i < a->n; i++) {
        check_stored(l, a->v[i].from, &a->v[i].value);
        if (a->v[i].value.text.n > ARGUMENT_MAX)
            load_problem(l, a->v[i].at, "P017", "a setting of a source is longer than %d bytes", ARGUMENT_MAX);
    }
}

/* HOST, [ADDRESS] or one of them with :PORT: exactly what a program may reach. */
static void check_place(struct loader *l, const struct item *v)
{
    struct span host = v->text;
    uint64_t port = 443;
    size_t at = host.n;
    while (at > 0 && host.p[at - 1] != ':' && host.p[at - 1] != ']')
        at--;
    if (at > 0 && host.p[at - 1] == ':') {
        if (span_u64(span_from(host, at), UINT16_MAX, &port) != 0)
            port = 0;
        host = span_first(host, at - 1);
    }
    const char *why = port == 0 ? "has no port from 1 to 65535" : scalar_host(host, false);
    if (why != NULL)
        bad(l, v, why);
}

static void check_exec(struct loader *l, const struct m_asked *a)
{
    bool value = false, expires = false;
    size_t i = 0, hosts = 0;
    while (i < a->n && !span_eq(a->v[i].key, SPAN("argv")))
        i++;
    if (i < a->n && !span_starts(a->v[i].value.text, SPAN("/")))
        bad(l, &a->v[i].value, "is no full path of a program");
    for (i = 0; i < a->n; i++) {
        value |= span_eq(a->v[i].key, SPAN("value"));
        expires |= span_eq(a->v[i].key, SPAN("expires_in"));
        if (span_eq(a->v[i].key, SPAN("hosts"))) {
            check_place(l, &a->v[i].value);
            hosts++;
        }
    }
    if (hosts > SOURCE_HOSTS_MAX)
        load_problem(l, a->at, "P017", "a program may reach at most %d hosts", SOURCE_HOSTS_MAX);
    if (expires && !value)
        load_problem(l, a->at, "P015",
                     "expires_in: is a place in JSON, so value: must say where in it the secret is");
}

static const struct m_setting *given(const struct m_asked *a, const char *key)
{
    for (size_t i = 0; i < a->n; i++)
        if (span_eq(a->v[i].key, span_str(key)))
            return &a->v[i];
    return NULL;
}

/* A JWT that is signed for it will stand in its place. */
static bool signed_for(const struct m_asked *a, const char *key)
{
    const struct m_setting *as = given(a, "jwt.as");
    return as != NULL && span_eq(as->value.text, span_str(key));
}

static void need(struct loader *l, const struct m_asked *a, const char *key, const char *why)
{
    if (given(a, key) == NULL && !signed_for(a, key))
        load_problem(l, a->at, "P015", "%s: is missing, %s", key, why);
}

bool check_https(struct loader *l, const struct item *url)
{
    struct span rest = span_from(url->text, sizeof("https://") - 1);
    struct span authority = span_first(rest, span_index(rest, '/'));
    struct span host = span_first(authority, span_index(authority, ':'));
    const char *why = NULL;
    if (!span_starts(url->text, SPAN("https://")))
        why = "is no https:// address: a secret does not go over another";
    else if (host.n == 0 || scalar_host(host, false) != NULL || span_index(rest, '?') < rest.n ||
             span_index(rest, '#') < rest.n || span_index(rest, '@') < rest.n)
        why = "is no https://HOST[:PORT]/PATH, without a query";
    for (size_t i = 0; i < rest.n && why == NULL; i++)
        if (rest.p[i] <= 0x20 || rest.p[i] >= 0x7f)
            why = "has bytes that no address has";
    if (why != NULL)
        bad(l, url, why);
    return why == NULL;
}

/* Whom it is asked of: https, and a host as upstreams: writes it. */
static void check_url(struct loader *l, const struct m_asked *a)
{
    const struct m_setting *url = given(a, "url");
    if (url != NULL)
        (void)check_https(l, &url->value);
}

static void check_oauth2(struct loader *l, const struct m_asked *a)
{
    static const struct {
        const char *grant, *needs;
    } rows[] = {{"client_credentials", "client_id"},
                {"refresh_token", "refresh_token"},
                {"jwt_bearer", "assertion"},
                {"token_exchange", "subject_token"}};
    const struct m_setting *grant = given(a, "grant"), *refresh = given(a, "refresh_token"), *auth = given(a, "auth");
    const struct m_setting *second = given(a, "downscope.url");
    size_t i = 0, n = sizeof(rows) / sizeof(rows[0]);
    if (grant == NULL)
        return;
    while (i < n && !span_eq(grant->value.text, span_str(rows[i].grant)))
        i++;
    if (i == n)
        bad(l, &grant->value, "is no grant: client_credentials, refresh_token, jwt_bearer or token_exchange");
    else
        need(l, a, rows[i].needs, "which this grant is asked with");
    if (i < n && span_eq(grant->value.text, SPAN("token_exchange")))
        need(l, a, "subject_token_type", "which this grant is asked with");
    if (refresh != NULL && refresh->from != SOURCE_STORE)
        load_problem(l, refresh->at, "P015",
                     "refresh_token: is { store: NAME }, for the next one is written back there");
    if (given(a, "client_secret") != NULL &&
        (given(a, "client_assertion") != NULL || signed_for(a, "client_assertion")))
        load_problem(l, a->at, "P015", "a client is shown by client_secret: or by client_assertion:, not by both");
    if (second != NULL && check_https(l, &second->value) && given(a, "downscope.options") == NULL)
        load_problem(l, second->at, "P015", "downscope_url: is where downscope: is asked for, which is missing");
    if (auth != NULL && !span_eq(auth->value.text, SPAN("basic")) && !span_eq(auth->value.text, SPAN("body")))
        bad(l, &auth->value, "is not how a client shows who it is: basic or body");
}

/* Letters, digits and what names are written with; no segment of dots, which would lead elsewhere. */
static bool path_is_plain(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!scalar_is_word(span_of(s.p + i, 1)) && s.p[i] != '/')
            return false;
    return s.n > 0 && span_find(s, SPAN("..")) == s.n && span_find(s, SPAN("//")) == s.n && span_index(s, '%') == s.n;
}

static void check_vault(struct loader *l, const struct m_asked *a)
{
    static const char *const paths[] = {"read", "auth"};
    bool jwt = given(a, "jwt") != NULL || signed_for(a, "jwt");
    int ways = (given(a, "token") != NULL) + (given(a, "secret_id") != NULL) + jwt;
    if (ways != 1)
        load_problem(l, a->at, "P015",
                     "a vault is asked with one of token:, secret_id: (and role_id:) and jwt: (and role:)");
    if (given(a, "secret_id") != NULL)
        need(l, a, "role_id", "which is shown with secret_id:");
    if (jwt)
        need(l, a, "role", "which is shown with jwt:");
    for (size_t k = 0; k < sizeof(paths) / sizeof(paths[0]); k++) {
        const struct m_setting *s = given(a, paths[k]);
        bool fine = s == NULL || (!span_starts(s->value.text, SPAN("/")) && path_is_plain(s->value.text));
        if (!fine)
            bad(l, &s->value, "is no path below /v1/, such as secret/data/app");
    }
}

/* What a JWT says of itself is not among the claims that a policy adds. */
static void check_jwt(struct loader *l, const struct m_asked *a)
{
    static const char *const own[] = {"iss", "sub", "aud", "iat", "nbf", "exp", "jti"};
    static const struct span claim = SPAN("jwt.claim.");
    size_t keys = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct m_setting *s = &a->v[i];
        struct span name = span_from(s->key, claim.n);
        keys += span_eq(s->key, SPAN("jwt.key"));
        if (span_eq(s->key, SPAN("jwt.kid")) && !scalar_is_word(s->value.text))
            bad(l, &s->value, "is no name of a key: letters, digits, '.', '_' and '-'");
        if (!span_starts(s->key, claim))
            continue;
        if (name.n > CLAIM_MAX)
            load_problem(l, s->at, "P017", "a claim's name is longer than %d bytes", CLAIM_MAX);
        for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
            if (span_eq(name, span_str(own[k])))
                load_problem(l, s->at, "P015", "%s is no claim of its own: iss:, sub:, aud: and ttl: say it", own[k]);
    }
    if (keys > 1)
        load_problem(l, a->at, "P015", "one JWT is signed for a source, and not two");
}

static void check_nothing(struct loader *l, const struct m_asked *a)
{
}

/* What is not narrowed would be all that the installation may do. */
static void check_github_app(struct loader *l, const struct m_asked *a)
{
    static const struct span permission = SPAN("permission.");
    const struct m_setting *installation = given(a, "installation");
    size_t repositories = 0, all = 0, permissions = 0;
    uint64_t number;
    if (installation != NULL && span_u64(installation->value.text, INT64_MAX, &number) != 0)
        bad(l, &installation->value, "is no number of an installation");
    for (size_t i = 0; i < a->n; i++) {
        const struct item *v = &a->v[i].value;
        if (span_eq(a->v[i].key, SPAN("repositories"))) {
            bool every = span_eq(v->text, SPAN("*"));
            repositories++;
            all += every;
            if (!every && !scalar_is_name(v->text))
                bad(l, v, "is no name of a repository, which is written without its owner");
        } else if (span_starts(a->v[i].key, permission)) {
            permissions++;
            if (!span_eq(v->text, SPAN("read")) && !span_eq(v->text, SPAN("write")) &&
                !span_eq(v->text, SPAN("admin")))
                bad(l, v, "is no permission: read, write or admin");
        }
    }
    if (repositories == 0 || (all && repositories > 1) || permissions == 0)
        load_problem(l, a->at, "P015",
                     "repositories: names some, or is \"*\" alone, for all; and permissions: has one or more");
}

/* An STS: its path is not signed otherwise. */
static void check_host_alone(struct loader *l, const struct m_asked *a)
{
    const struct m_setting *url = given(a, "url"), *session = given(a, "session");
    struct span rest = url != NULL ? span_from(url->value.text, sizeof("https://") - 1) : SPAN_NONE;
    if (span_index(rest, '/') < rest.n)
        bad(l, &url->value, "is more than https://HOST, which STS is asked at");
    if (session != NULL && (!scalar_is_name(session->value.text) || session->value.text.n < 2))
        bad(l, &session->value, "is no name of a session: letters, digits, '.', '_' and '-'");
}

static void check_aws(struct loader *l, const struct m_asked *a)
{
    const struct m_setting *role = given(a, "role");
    bool key = given(a, "key") != NULL, web = given(a, "web_identity") != NULL || signed_for(a, "web_identity");
    if (key == web)
        load_problem(l, a->at, "P015", "STS is asked with one of key: (and region:) and web_identity:");
    if (key)
        need(l, a, "region", "which the signature with key: is for");
    if (web && (given(a, "source_identity") != NULL || given(a, "external_id") != NULL))
        load_problem(l, a->at, "P015", "source_identity: and external_id: are sent with key: alone");
    check_host_alone(l, a);
    if (role != NULL && !span_starts(role->value.text, SPAN("arn:")))
        bad(l, &role->value, "is no ARN of a role");
}

static void check_tencent(struct loader *l, const struct m_asked *a)
{
    bool role = given(a, "role") != NULL, federation = given(a, "federation") != NULL;
    check_host_alone(l, a);
    if (role == federation)
        load_problem(l, a->at, "P015", "STS is asked for one of role: (and session:) and federation: (and policy:)");
    if (role)
        need(l, a, "session", "which a role is taken with");
    if (federation)
        need(l, a, "policy", "without which a federated user may do nothing");
    if (federation &&
        (given(a, "session") != NULL || given(a, "source_identity") != NULL || given(a, "external_id") != NULL))
        load_problem(l, a->at, "P015", "session:, source_identity: and external_id: are sent with role: alone");
}

/* What keep: names goes on with all that lies below it. */
static bool is_above(struct span pointer, struct span below)
{
    return span_starts(below, pointer) && (below.n == pointer.n || below.p[pointer.n] == '/');
}

static void check_keep(struct loader *l, const struct m_asked *a)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct m_setting *token = NULL;
        for (size_t k = 0; span_eq(a->v[i].key, SPAN("keep")) && k < a->n; k++) {
            struct span key = a->v[k].key;
            if ((span_eq(key, SPAN("token")) || span_eq(key, SPAN("key")) || span_eq(key, SPAN("session_token"))) &&
                is_above(a->v[i].value.text, a->v[k].value.text))
                token = &a->v[k];
        }
        if (token != NULL)
            load_problem(l, a->v[i].at, "P015", "keep: names what %.*s: lies in, and all that is there would go on",
                         SPAN_FMT(token->key));
    }
}

/* The challenge is a field's value. */
static void check_answer(struct loader *l, const struct m_asked *a)
{
    const struct m_setting *challenge = given(a, "challenge");
    size_t n[3] = {0};
    for (size_t i = 0; i < a->n; i++) {
        n[0] += span_eq(a->v[i].key, SPAN("to"));
        n[1] += span_eq(a->v[i].key, SPAN("token"));
        n[2] += span_eq(a->v[i].key, SPAN("keep"));
    }
    if (n[0] == 0 || n[1] == 0 || n[1] > ANSWER_POINTERS_MAX || n[2] > ANSWER_POINTERS_MAX)
        load_problem(l, a->at, "P015", "answer: has to: and token:, and at most %d places each in token: and keep:",
                     ANSWER_POINTERS_MAX);
    check_keep(l, a);
    if (given(a, "session_token") != NULL)
        need(l, a, "key", "which a session token is of");
    for (size_t i = 0; challenge != NULL && i < challenge->value.text.n; i++)
        if (challenge->value.text.p[i] < 0x20 || challenge->value.text.p[i] >= 0x7f) {
            bad(l, &challenge->value, "must be plain ASCII");
            break;
        }
    if (challenge != NULL && (challenge->value.text.n == 0 || challenge->value.text.n > CHALLENGE_MAX))
        load_problem(l, challenge->at, "P017", "challenge: is empty, or longer than %d bytes", CHALLENGE_MAX);
}

void check_source(struct loader *l, const struct m_source *s)
{
    static void (*const check[SOURCE_KINDS])(struct loader *, const struct m_asked *) = {
        [SOURCE_EXEC] = check_exec,       [SOURCE_OAUTH2] = check_oauth2,
        [SOURCE_VAULT] = check_vault,     [SOURCE_GITHUB_APP] = check_github_app,
        [SOURCE_JWT] = check_nothing,     [SOURCE_AWS] = check_aws,
        [SOURCE_TENCENT] = check_tencent, [SOURCE_ANSWER] = check_answer};
    const struct m_stored *is = &s->stored;
    const struct item *at[] = {[SOURCE_NONE] = NULL,
                               [SOURCE_FILE] = &is->file,
                               [SOURCE_ENV] = &is->env,
                               [SOURCE_STORE] = &is->store,
                               [SOURCE_SYSTEMD] = &is->systemd};
    int n = 0;
    for (unsigned k = SOURCE_FILE; k <= SOURCE_SYSTEMD; k++) {
        n += at[k]->at != NULL;
        check_stored(l, (enum source_kind)k, at[k]);
    }
    for (unsigned k = SOURCE_EXEC; k < SOURCE_KINDS; k++) {
        n += s->asked[k].at != NULL;
        check_settings(l, &s->asked[k]);
        check_url(l, &s->asked[k]);
        check_jwt(l, &s->asked[k]);
        if (s->asked[k].at != NULL)
            check[k](l, &s->asked[k]);
    }
    if (is->at && n != 1)
        load_problem(l, is->at, "P015",
                     "a source is one of file:, env:, store:, systemd:, exec:, oauth2:, vault:, github_app:, jwt:, "
                     "aws:, tencent: and answer:");
}
