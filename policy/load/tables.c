/* The grammar. One row a key; KEY_LATER rows are known and refused. */
#include "policy/load/model.h"

#include "policy/load/scalar.h"

#define AT(T, f) offsetof(struct T, f)
#define LATER(name_)                                                                                                 \
    {                                                                                                                \
        .name = name_, .type = KEY_LATER                                                                             \
    }
#define TEXT(T, f, name_, help_)                                                                                     \
    {                                                                                                                \
        .name = name_, .type = KEY_TEXT, .at = AT(T, f), .help = help_                                               \
    }

static const struct choice decide_names[] = {
    {"deny", VERDICT_DENY}, {"hold", VERDICT_HOLD}, {"allow", VERDICT_ALLOW}, {0}};
static const struct choice deny_only[] = {{"deny", 0}, {"allow-reads", CHOICE_LATER}, {"hold", CHOICE_LATER}, {0}};
static const struct choice effect_bits[] = {{"read", 1u << EFFECT_READ},
                                            {"write", 1u << EFFECT_WRITE},
                                            {"delete", 1u << EFFECT_DELETE},
                                            {"admin", 1u << EFFECT_ADMIN},
                                            {"spend", 1u << EFFECT_SPEND},
                                            {"exec", 1u << EFFECT_EXEC},
                                            {0}};
static const struct choice effect_values[] = {{"read", EFFECT_READ},
                                              {"write", EFFECT_WRITE},
                                              {"delete", EFFECT_DELETE},
                                              {"admin", EFFECT_ADMIN},
                                              {"spend", EFFECT_SPEND},
                                              {"exec", EFFECT_EXEC},
                                              {0}};
static const struct choice scheme_bits[] = {{"https", SCHEME_HTTPS}, {"http", SCHEME_HTTP}, {0}};
static const struct choice service_bits[] = {
    {"upload-pack", GIT_UPLOAD_PACK}, {"receive-pack", GIT_RECEIVE_PACK}, {0}};
static const struct choice reason_names[] = {{"required", 1}, {"optional", 0}, {0}};
static const struct choice dialect_names[] = {{"problem", DIALECT_PROBLEM},
                                              {"git-info-refs", DIALECT_GIT_INFO_REFS},
                                              {"git-receive-pack", DIALECT_GIT_RECEIVE_PACK},
                                              {"npm", DIALECT_NPM},
                                              {"pip", DIALECT_PIP},
                                              {0}};
static const struct choice body_names[] = {{"opaque", BODY_NONE}, {"git-receive-pack", BODY_GIT_RECEIVE_PACK}, {0}};
static const struct choice slash_names[] = {{"refuse", 0}, {"keep", 1}, {0}};

static void read_tri(struct loader *l, const struct node *n, void *field)
{
    struct number *out = field;
    uint64_t v = 0;
    out->at = n;
    const char *why = n->kind == NODE_TEXT ? scalar_bool(n->text, n->plain, &v) : "is true or false";
    if (why)
        problem(l, n, "P008", "%.*s %s", SPAN_FMT(n->key->text), why);
    out->v = v ? TRI_TRUE : TRI_FALSE;
}

static const struct key basic_keys[] = {
    {.name = "user", .type = KEY_TEXT, .at = AT(m_inject, user), .flags = KEY_NEEDED, .help = "user name of Basic"},
    {0}};
static const struct table basic_table = {"basic:", sizeof(struct m_inject), basic_keys};

static void read_basic(struct loader *l, const struct node *n, void *inject)
{
    struct m_inject *out = inject, user = {0};
    uint64_t v = 0;
    out->basic = true;
    if (n->kind == NODE_MAP) {
        decode_map(l, n, &basic_table, &user);
        out->user = user.user;
    } else if (n->kind != NODE_TEXT || scalar_bool(n->text, n->plain, &v) != NULL || !v) {
        problem(l, n, "P008", "basic: is true when the secret is user:password itself, or { user: NAME }");
    }
}

static const struct key packuse_keys[] = {
    {.name = "pack", .type = KEY_TEXT, .at = AT(m_packuse, name), .flags = KEY_NEEDED, .help = "NAME@VERSION"},
    {.name = "hosts", .type = KEY_TEXTS, .at = AT(m_packuse, hosts), .help = "where it applies, HOST or HOST:PORT"},
    {0}};
static const struct table packuse_table = {"an entry of packs:", sizeof(struct m_packuse), packuse_keys};

static void read_packuses(struct loader *l, const struct node *n, void *field)
{
    struct list *out = field;
    out->at = n;
    if (n->kind != NODE_LIST) {
        problem(l, n, "P008", "packs: is a list such as [git@1, npm@1]");
        return;
    }
    struct m_packuse *v = arena_alloc(&l->a, (n->count + 1) * sizeof(*v));
    out->v = v;
    for (const struct node *c = n->child; c && v; c = c->next, v++, out->n++) {
        if (c->kind == NODE_MAP) {
            decode_map(l, c, &packuse_table, v);
        } else {
            v->at = c;
            (void)decode_text(l, c, &v->name);
        }
    }
    if (out->v == NULL)
        problem(l, n, "P003", "no memory for the file");
}

static const struct key scope_keys[] = {
    {.name = "sandboxes", .type = KEY_TEXTS, .at = AT(m_scope, sandboxes), .help = "names, * matches any run"},
    {.name = "labels", .type = KEY_PAIRS, .at = AT(m_scope, labels), .help = "all of these labels"},
    LATER("regions"),
    LATER("tenants"),
    {0}};
static const struct table scope_table = {"a scope", sizeof(struct m_scope), scope_keys};

static const struct key place_keys[] = {
    {.name = "host", .type = KEY_TEXT, .at = AT(m_place, host), .flags = KEY_NEEDED, .help = "exact host name"},
    {.name = "port",
     .type = KEY_COUNT,
     .at = AT(m_place, port),
     .lo = 1,
     .hi = 65535,
     .help = "default 443, with http 80"},
    {.name = "scheme",
     .type = KEY_ONE_OF,
     .at = AT(m_place, scheme),
     .choices = scheme_bits,
     .help = "default https"},
    {.name = "path", .type = KEY_TEXT, .at = AT(m_place, path), .help = "/a/*/b or /a/**; default: all"},
    {0}};
static const struct table place_table = {"a place of only:", sizeof(struct m_place), place_keys};

static const struct key source_keys[] = {TEXT(m_source, file, "file", "a file with the secret"),
                                         TEXT(m_source, env, "env", "an environment variable of the gateway"),
                                         TEXT(m_source, store, "store", "a name given to: countersign secret set"),
                                         LATER("vault"),
                                         LATER("github_app"),
                                         LATER("systemd"),
                                         LATER("exec"),
                                         LATER("oauth"),
                                         LATER("aws"),
                                         {0}};
static const struct table source_table = {"source:", sizeof(struct m_source), source_keys};

static const struct key inject_keys[] = {
    TEXT(m_inject, header, "header", "the field to set, such as Authorization"),
    TEXT(m_inject, format, "format", "its value, {} is the secret, such as \"Bearer {}\""),
    {.name = "basic", .type = KEY_CALL, .at = 0, .call = read_basic, .help = "true, or { user: NAME }"},
    {.name = "client_certificate",
     .type = KEY_BOOL,
     .at = AT(m_inject, certificate),
     .help = "true: the secret is PEM, a key and its chain, for the TLS handshake"},
    LATER("query"),
    LATER("sigv4"),
    {0}};
static const struct table inject_table = {"inject:", sizeof(struct m_inject), inject_keys};

static const struct key credential_keys[] = {{.name = "source",
                                              .type = KEY_MAP,
                                              .at = AT(m_credential, source),
                                              .table = &source_table,
                                              .flags = KEY_NEEDED,
                                              .help = "{ file: PATH }, { env: NAME } or { store: NAME }"},
                                             {.name = "inject",
                                              .type = KEY_MAP,
                                              .at = AT(m_credential, inject),
                                              .table = &inject_table,
                                              .flags = KEY_NEEDED,
                                              .help = "how it goes into the request"},
                                             {.name = "only",
                                              .type = KEY_LIST,
                                              .at = AT(m_credential, only),
                                              .table = &place_table,
                                              .flags = KEY_NEEDED,
                                              .help = "the only places it may go to"},
                                             LATER("permissions"),
                                             LATER("scrub"),
                                             {0}};
static const struct table credential_table = {"a credential", sizeof(struct m_credential), credential_keys};

static const struct choice tls_versions[] = {{"1.2", 0}, {"1.3", 1}, {0}};
static const struct key tls_keys[] = {
    TEXT(m_tls, ca, "ca", "a PEM file, trusted instead of the system's roots"),
    {.name = "pin", .type = KEY_TEXTS, .at = AT(m_tls, pins), .help = "sha256/BASE64 of a public key in the chain"},
    {.name = "crl",
     .type = KEY_TEXTS,
     .at = AT(m_tls, crls),
     .help = "PEM files of revocation lists, one for each issuer of the chain"},
    {.name = "min", .type = KEY_ONE_OF, .at = AT(m_tls, min), .choices = tls_versions, .help = "default \"1.2\""},
    {0}};
static const struct table tls_table = {"tls:", sizeof(struct m_tls), tls_keys};

static const struct key upstream_keys[] = {
    {.name = "host", .type = KEY_TEXT, .at = AT(m_upstream, host), .flags = KEY_NEEDED, .help = "exact host name"},
    {.name = "port", .type = KEY_COUNT, .at = AT(m_upstream, port), .lo = 1, .hi = 65535, .help = "default 443"},
    TEXT(m_upstream, address, "address", "dial this address instead of resolving the name"),
    TEXT(m_upstream, ca, "ca", "a PEM file, trusted instead of the system's roots"),
    {.name = "allow_private",
     .type = KEY_TEXTS,
     .at = AT(m_upstream, allow_private),
     .help = "private ranges it may be in"},
    {.name = "cleartext_credentials",
     .type = KEY_BOOL,
     .at = AT(m_upstream, cleartext),
     .help = "credentials over http://"},
    LATER("region"),
    {.name = "tls", .type = KEY_MAP, .at = AT(m_upstream, tls), .table = &tls_table, .help = "whom to trust there"},
    {0}};
static const struct table upstream_table = {"an upstream", sizeof(struct m_upstream), upstream_keys};

static const struct key approver_keys[] = {{.name = "operators",
                                            .type = KEY_TEXTS,
                                            .at = AT(m_approver, operators),
                                            .flags = KEY_NEEDED,
                                            .help = "names of operators"},
                                           LATER("groups"),
                                           LATER("quorum"),
                                           LATER("self_approval"),
                                           LATER("step_up"),
                                           {0}};
static const struct table approver_table = {"an approvers entry", sizeof(struct m_approver), approver_keys};

static const struct key git_keys[] = {
    {.name = "refs", .type = KEY_TEXTS, .at = AT(m_git, refs), .help = "refs/heads/agent/*"},
    {.name = "force",
     .type = KEY_CALL,
     .at = AT(m_git, force),
     .call = read_tri,
     .help = "an update counts as forced"},
    {.name = "delete", .type = KEY_CALL, .at = AT(m_git, delete), .call = read_tri, .help = "the ref is deleted"},
    {.name = "service",
     .type = KEY_SOME_OF,
     .at = AT(m_git, service),
     .choices = service_bits,
     .help = "fetch or push"},
    LATER("max_pack"),
    {0}};
static const struct table git_table = {"git:", sizeof(struct m_git), git_keys};

static const struct key ws_keys[] = {
    {.name = "subprotocol", .type = KEY_TEXTS, .at = AT(m_ws, subprotocols), .help = "one that is offered fits"},
    {0}};
static const struct table ws_table = {"ws:", sizeof(struct m_ws), ws_keys};

static const struct choice send_bits[] = {{"text", WS_SENDS_TEXT}, {"binary", WS_SENDS_BINARY}, {0}};
static const struct key messages_keys[] = {{.name = "send",
                                            .type = KEY_SOME_OF,
                                            .at = AT(m_messages, send),
                                            .choices = send_bits,
                                            .flags = KEY_NEEDED,
                                            .help = "text, binary or [text, binary]"},
                                           {.name = "max",
                                            .type = KEY_SIZE,
                                            .at = AT(m_messages, max),
                                            .lo = 1,
                                            .hi = WS_MAX_MOST,
                                            .help = "of one message, default 64KiB"},
                                           {.name = "total",
                                            .type = KEY_SIZE,
                                            .at = AT(m_messages, total),
                                            .lo = 1,
                                            .hi = 1ull << 40,
                                            .help = "of all messages, default 16MiB"},
                                           {.name = "within",
                                            .type = KEY_TIME,
                                            .at = AT(m_messages, within),
                                            .lo = 1000,
                                            .hi = 7 * 86400000ull,
                                            .help = "then it is closed, default 1h"},
                                           {0}};
static const struct table messages_table = {"messages:", sizeof(struct m_messages), messages_keys};

#define CONDITIONS                                                                                                   \
    {.name = "equals", .type = KEY_TEXTS, .at = AT(m_cond, equals), .help = "this value, or one of these"},          \
        {.name = "in", .type = KEY_TEXTS, .at = AT(m_cond, in), .help = "one of these values"},                      \
        {.name = "glob", .type = KEY_TEXTS, .at = AT(m_cond, glob), .help = "* matches any run of characters"},      \
        {.name = "int_lte",                                                                                          \
         .type = KEY_COUNT,                                                                                          \
         .at = AT(m_cond, at_most),                                                                                  \
         .hi = COND_NUMBER_MAX,                                                                                      \
         .help = "a whole number of at most this"},                                                                  \
        {.name = "int_gte",                                                                                          \
         .type = KEY_COUNT,                                                                                          \
         .at = AT(m_cond, at_least),                                                                                 \
         .hi = COND_NUMBER_MAX,                                                                                      \
         .help = "a whole number of at least this"},                                                                 \
        {.name = "exists", .type = KEY_BOOL, .at = AT(m_cond, exists), .help = "true: it is there"},                 \
    {                                                                                                                \
        .name = "absent", .type = KEY_BOOL, .at = AT(m_cond, absent), .help = "true: it is not there"                \
    }

static const struct key json_keys[] = {{.name = "pointer",
                                        .type = KEY_TEXT,
                                        .at = AT(m_cond, pointer),
                                        .flags = KEY_NEEDED,
                                        .help = "where in the body, RFC 6901: /amount"},
                                       CONDITIONS,
                                       {0}};
static const struct table json_table = {"an entry of json:", sizeof(struct m_cond), json_keys};
static const struct key form_keys[] = {
    {.name = "field", .type = KEY_TEXT, .at = AT(m_cond, field), .flags = KEY_NEEDED, .help = "its name"},
    CONDITIONS,
    {0}};
static const struct table form_table = {"an entry of form:", sizeof(struct m_cond), form_keys};

static const struct key match_keys[] = {
    {.name = "host", .type = KEY_TEXTS, .at = AT(m_match, hosts), .help = "exact, *.one label, **.one or more"},
    {.name = "scheme",
     .type = KEY_SOME_OF,
     .at = AT(m_match, schemes),
     .choices = scheme_bits,
     .help = "default https"},
    {.name = "port",
     .type = KEY_COUNTS,
     .at = AT(m_match, ports),
     .lo = 1,
     .hi = 65535,
     .help = "default 443, with http 80"},
    {.name = "method", .type = KEY_TEXTS, .at = AT(m_match, methods), .help = "GET, POST ..."},
    {.name = "path", .type = KEY_TEXTS, .at = AT(m_match, paths), .help = "* one segment, ** any number"},
    {.name = "query", .type = KEY_PAIRS, .at = AT(m_match, query), .help = "every occurrence must fit"},
    {.name = "header", .type = KEY_PAIRS, .at = AT(m_match, header), .help = "every occurrence must fit"},
    {.name = "op", .type = KEY_TEXTS, .at = AT(m_match, ops), .help = "operation of a pack, git.push or npm.**"},
    {.name = "effect",
     .type = KEY_SOME_OF,
     .at = AT(m_match, effects),
     .choices = effect_bits,
     .help = "what it does"},
    {.name = "resource",
     .type = KEY_TEXTS,
     .at = AT(m_match, resources),
     .help = "what it is done to, github:acme/*"},
    {.name = "git", .type = KEY_MAP, .at = AT(m_match, git), .table = &git_table, .help = "refs of a push"},
    {.name = "json", .type = KEY_LIST, .at = AT(m_match, json), .table = &json_table, .help = "of a JSON body"},
    {.name = "form", .type = KEY_LIST, .at = AT(m_match, form), .table = &form_table, .help = "of a form's fields"},
    LATER("multipart"),
    LATER("graphql"),
    LATER("jsonrpc"),
    LATER("mcp"),
    LATER("aws"),
    LATER("k8s"),
    {.name = "ws", .type = KEY_MAP, .at = AT(m_match, ws), .table = &ws_table, .help = "only WebSocket upgrades"},
    LATER("body"),
    {0}};
static const struct table match_table = {"match:", sizeof(struct m_match), match_keys};
static const struct table except_table = {"an entry of except:", sizeof(struct m_match), match_keys};

static const struct key approve_keys[] = {TEXT(m_approve, by, "by", "an entry of approvers:"),
                                          {.name = "within",
                                           .type = KEY_TIME,
                                           .at = AT(m_approve, within),
                                           .lo = 1000,
                                           .hi = 30 * 86400000ull,
                                           .help = "then it expires"},
                                          {.name = "reason",
                                           .type = KEY_ONE_OF,
                                           .at = AT(m_approve, reason),
                                           .choices = reason_names,
                                           .help = "of the approver"},
                                          {.name = "inline_wait",
                                           .type = KEY_TIME,
                                           .at = AT(m_approve, inline_wait),
                                           .hi = 600000,
                                           .help = "the client waits so long"},
                                          LATER("grants"),
                                          LATER("quorum"),
                                          LATER("step_up"),
                                          LATER("self_approval"),
                                          {0}};
static const struct table approve_table = {"approve:", sizeof(struct m_approve), approve_keys};

static const struct key rule_keys[] = {
    {.name = "id",
     .type = KEY_TEXT,
     .at = AT(m_rule, id),
     .flags = KEY_NEEDED,
     .help = "a name for errors and audit"},
    {.name = "scope", .type = KEY_TEXTS, .at = AT(m_rule, scope), .help = "entries of scopes:; default: all"},
    {.name = "match",
     .type = KEY_MAP,
     .at = AT(m_rule, match),
     .table = &match_table,
     .flags = KEY_NEEDED,
     .help = "what it is about"},
    {.name = "except", .type = KEY_LIST, .at = AT(m_rule, except), .table = &except_table, .help = "but not"},
    {.name = "decide",
     .type = KEY_ONE_OF,
     .at = AT(m_rule, decide),
     .choices = decide_names,
     .flags = KEY_NEEDED,
     .help = "allow, hold or deny"},
    {.name = "use", .type = KEY_TEXT, .at = AT(m_rule, use), .help = "an entry of credentials:"},
    {.name = "approve", .type = KEY_MAP, .at = AT(m_rule, approve), .table = &approve_table, .help = "of a hold"},
    {.name = "messages",
     .type = KEY_MAP,
     .at = AT(m_rule, messages),
     .table = &messages_table,
     .help = "what may be sent after a WebSocket upgrade; default: nothing"},
    {.name = "say", .type = KEY_PROSE, .at = AT(m_rule, say), .help = "the client is told this"},
    {.name = "instead", .type = KEY_PROSE, .at = AT(m_rule, instead), .help = "and what is allowed instead"},
    LATER("limits"),
    LATER("over"),
    LATER("when"),
    {0}};
static const struct table rule_table = {"a rule", sizeof(struct m_rule), rule_keys};

#define DEFAULT(n)                                                                                                   \
    {                                                                                                                \
        .name = n, .type = KEY_ONE_OF, .at = AT(m_defaults, any), .choices = deny_only,                              \
        .help = "deny; nothing else yet"                                                                             \
    }
static const struct key defaults_keys[] = {DEFAULT("unmatched_host"), DEFAULT("unmatched_request"),
                                           DEFAULT("unclassified"),   DEFAULT("hold_timeout"),
                                           DEFAULT("store_lost"),     {0}};
static const struct table defaults_table = {"defaults:", sizeof(struct m_defaults), defaults_keys};

static const struct key file_keys[] = {
    {.name = "version",
     .type = KEY_COUNT,
     .at = AT(m_file, version),
     .lo = 1,
     .hi = 1,
     .flags = KEY_NEEDED,
     .help = "1"},
    TEXT(m_file, name, "name", "shown in the audit and on the page"),
    {.name = "packs", .type = KEY_CALL, .at = AT(m_file, packs), .call = read_packuses, .help = "what requests are"},
    {.name = "defaults", .type = KEY_MAP, .at = AT(m_file, defaults), .table = &defaults_table, .help = "all deny"},
    {.name = "scopes", .type = KEY_NAMED, .at = AT(m_file, scopes), .table = &scope_table, .help = "who is asking"},
    {.name = "credentials",
     .type = KEY_NAMED,
     .at = AT(m_file, credentials),
     .table = &credential_table,
     .help = "whose key"},
    {.name = "upstreams",
     .type = KEY_LIST,
     .at = AT(m_file, upstreams),
     .table = &upstream_table,
     .help = "how to get there"},
    {.name = "approvers",
     .type = KEY_NAMED,
     .at = AT(m_file, approvers),
     .table = &approver_table,
     .help = "who decides"},
    {.name = "rules", .type = KEY_LIST, .at = AT(m_file, rules), .table = &rule_table, .help = "may it?"},
    LATER("include"),
    LATER("learning"),
    LATER("require_signed"),
    {0}};
const struct table file_table = {"a policy", sizeof(struct m_file), file_keys};

static const struct key floors_keys[] = {
    {.name = "version",
     .type = KEY_COUNT,
     .at = AT(m_file, version),
     .lo = 1,
     .hi = 1,
     .flags = KEY_NEEDED,
     .help = "1"},
    TEXT(m_file, name, "name", "for people"),
    {.name = "packs", .type = KEY_CALL, .at = AT(m_file, packs), .call = read_packuses, .help = "what requests are"},
    {.name = "scopes", .type = KEY_NAMED, .at = AT(m_file, scopes), .table = &scope_table, .help = "who is asking"},
    {.name = "rules",
     .type = KEY_LIST,
     .at = AT(m_file, rules),
     .table = &rule_table,
     .flags = KEY_NEEDED,
     .help = "each decide: deny"},
    {0}};
const struct table floors_table = {"a floors file", sizeof(struct m_file), floors_keys};

static const struct key could_keys[] = {
    {.name = "op", .type = KEY_TEXT, .at = AT(m_could, op), .flags = KEY_NEEDED, .help = "an operation of this pack"},
    TEXT(m_could, method, "method", "the method it would have"),
    TEXT(m_could, path, "path", "the path it would have"),
    {0}};
static const struct table could_table = {"only_where:", sizeof(struct m_could), could_keys};

static const struct key op_keys[] = {
    {.name = "op", .type = KEY_TEXT, .at = AT(m_op, op), .flags = KEY_NEEDED, .help = "its name"},
    TEXT(m_op, about, "about", "for people"),
    {.name = "effect",
     .type = KEY_ONE_OF,
     .at = AT(m_op, effect),
     .choices = effect_values,
     .flags = KEY_NEEDED,
     .help = "what it does"},
    {.name = "method", .type = KEY_TEXTS, .at = AT(m_op, methods), .help = "default: any"},
    {.name = "path", .type = KEY_TEXT, .at = AT(m_op, path), .flags = KEY_NEEDED, .help = "at most one **"},
    TEXT(m_op, query, "query", "the whole query, exactly"),
    TEXT(m_op, content_type, "content_type", "exactly"),
    TEXT(m_op, resource, "resource", "{host}, {1} ... of the wildcards"),
    TEXT(m_op, strip, "strip", "a suffix that the wildcards lose"),
    TEXT(m_op, summary, "summary", "a sentence for the page"),
    {.name = "dialect",
     .type = KEY_ONE_OF,
     .at = AT(m_op, dialect),
     .choices = dialect_names,
     .help = "of a refusal"},
    {.name = "body", .type = KEY_ONE_OF, .at = AT(m_op, body), .choices = body_names, .help = "who reads it"},
    {.name = "body_max", .type = KEY_SIZE, .at = AT(m_op, body_max), .lo = 1024, .hi = 1u << 30, .help = "then 413"},
    {.name = "only_where",
     .type = KEY_MAP,
     .at = AT(m_op, could),
     .table = &could_table,
     .help = "a rule could let this happen"},
    {0}};
static const struct table op_table = {"an operation", sizeof(struct m_op), op_keys};

static const struct key resource_keys[] = {TEXT(m_resource, host, "host", "default: any"),
                                           {.name = "resource",
                                            .type = KEY_TEXT,
                                            .at = AT(m_resource, resource),
                                            .flags = KEY_NEEDED,
                                            .help = "as in an operation"},
                                           {0}};
static const struct table resource_table = {"an entry of resources:", sizeof(struct m_resource), resource_keys};

static const struct key pack_keys[] = {
    {.name = "pack", .type = KEY_TEXT, .at = AT(m_pack, pack), .flags = KEY_NEEDED, .help = "NAME@VERSION"},
    TEXT(m_pack, about, "about", "for people"),
    {.name = "hosts", .type = KEY_TEXTS, .at = AT(m_pack, hosts), .help = "default: any"},
    {.name = "encoded_slash",
     .type = KEY_ONE_OF,
     .at = AT(m_pack, encoded_slash),
     .choices = slash_names,
     .help = "%2F in paths"},
    {.name = "resources",
     .type = KEY_LIST,
     .at = AT(m_pack, resources),
     .table = &resource_table,
     .help = "the first that fits the host"},
    {.name = "operations",
     .type = KEY_LIST,
     .at = AT(m_pack, ops),
     .table = &op_table,
     .flags = KEY_NEEDED,
     .help = "the first that fits names the request"},
    {0}};
const struct table pack_table = {"a pack", sizeof(struct m_pack), pack_keys};
