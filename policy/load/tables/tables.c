/* The grammar of a file and what it names; rules and packs have files of their own. One row a key; KEY_LATER rows are
 * known and refused. */
#include "policy/load/tables/tables.h"

#include "common/lease/lease.h"
#include "common/time/instant.h"
#include "policy/load/read/scalar.h"

static const struct choice deny_only[] = {{"deny", 0}, {"allow-reads", CHOICE_LATER}, {"hold", CHOICE_LATER}, {0}};
const struct choice step_ups[] = {{"passkey", 1}, {0}};
const struct choice scheme_choices[] = {{"https", SCHEME_HTTPS}, {"http", SCHEME_HTTP}, {0}};

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
        keys_decode_map(l, n, &basic_table, &user);
        out->user = user.user;
    } else if (n->kind != NODE_TEXT || scalar_bool(n->text, n->plain, &v) != NULL || !v) {
        load_problem(l, n, "P008", "basic: is true when the secret is user:password itself, or { user: NAME }");
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
        load_problem(l, n, "P008", "packs: is a list such as [git@1, npm@1]");
        return;
    }
    struct m_packuse *v = arena_alloc(&l->a, (n->count + 1) * sizeof(*v));
    out->v = v;
    for (const struct node *c = n->child; c && v; c = c->next, v++, out->n++) {
        if (c->kind == NODE_MAP) {
            keys_decode_map(l, c, &packuse_table, v);
        } else {
            v->at = c;
            (void)keys_decode_text(l, c, &v->name);
        }
    }
    if (out->v == NULL)
        load_problem(l, n, "P003", "no memory for the file");
}

static const struct key scope_keys[] = {
    {.name = "sandboxes", .type = KEY_TEXTS, .at = AT(m_scope, sandboxes), .help = "names, * matches any run"},
    {.name = "labels", .type = KEY_PAIRS, .at = AT(m_scope, labels), .help = "all of these labels"},
    {.name = "regions", .type = KEY_TEXTS, .at = AT(m_scope, regions), .help = "only upstreams of these regions"},
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
     .choices = scheme_choices,
     .help = "default https"},
    {.name = "path", .type = KEY_TEXT, .at = AT(m_place, path), .help = "/a/*/b or /a/**; default: all"},
    {0}};
static const struct table place_table = {"a place of only:", sizeof(struct m_place), place_keys};

#define SERVICE                                                                                                      \
    {                                                                                                                \
        .name = "service", .type = KEY_TEXT, .at = AT(m_sign, service), .flags = KEY_NEEDED, .help = "such as s3"    \
    }
static const struct key sigv4_keys[] = {
    {.name = "region", .type = KEY_TEXT, .at = AT(m_sign, region), .flags = KEY_NEEDED, .help = "such as us-east-1"},
    SERVICE,
    {0}};
static const struct table sigv4_table = {"sigv4:", sizeof(struct m_sign), sigv4_keys};
static const struct key tc3_keys[] = {SERVICE, {0}};
static const struct table tc3_table = {"tc3:", sizeof(struct m_sign), tc3_keys};

static const struct choice hash_choices[] = {
    {"sha256", SIGN_SHA256}, {"sha512", SIGN_SHA512}, {"sha1", SIGN_SHA1}, {0}};
static const struct choice coding_choices[] = {
    {"hex", SIGN_HEX}, {"base64", SIGN_BASE64}, {"base64url", SIGN_BASE64URL}, {0}};
static const struct choice key_choices[] = {
    {"text", SIGN_AS_TEXT}, {"hex", SIGN_HEX}, {"base64", SIGN_BASE64}, {"base64url", SIGN_BASE64URL}, {0}};
static const struct key hmac_keys[] = {{.name = "sign",
                                        .type = KEY_PROSE,
                                        .at = AT(m_hmac, sign),
                                        .flags = KEY_NEEDED,
                                        .help = "what is signed, with placeholders, such as \"{time}.{body}\""},
                                       {.name = "headers",
                                        .type = KEY_PAIRS,
                                        .at = AT(m_hmac, headers),
                                        .flags = KEY_NEEDED | KEY_SINGLE,
                                        .help = "the fields to set, with placeholders, {signature} in one of them"},
                                       {.name = "algorithm",
                                        .type = KEY_ONE_OF,
                                        .at = AT(m_hmac, algorithm),
                                        .choices = hash_choices,
                                        .help = "the hash of the HMAC, default sha256"},
                                       {.name = "encoding",
                                        .type = KEY_ONE_OF,
                                        .at = AT(m_hmac, encoding),
                                        .choices = coding_choices,
                                        .help = "how the signature is written, default hex"},
                                       {.name = "key",
                                        .type = KEY_ONE_OF,
                                        .at = AT(m_hmac, key),
                                        .choices = key_choices,
                                        .help = "how the secret writes the key, default text: its bytes as they are"},
                                       {0}};
static const struct table hmac_table = {"hmac:", sizeof(struct m_hmac), hmac_keys};

static const struct key inject_keys[] = {
    TEXT(m_inject, header, "header", "the field to set, such as Authorization"),
    TEXT(m_inject, format, "format", "the value, {} is the secret, such as \"Bearer {}\""),
    {.name = "basic", .type = KEY_CALL, .at = 0, .call = read_basic, .help = "true, or { user: NAME }"},
    {.name = "client_certificate",
     .type = KEY_BOOL,
     .at = AT(m_inject, certificate),
     .help = "true: the secret is PEM, a key and its chain, for the TLS handshake"},
    TEXT(m_inject, slot[SLOT_COOKIE], "cookie", "the cookie to set"),
    TEXT(m_inject, slot[SLOT_QUERY], "query", "the parameter of the query to set; it ends in servers' logs"),
    TEXT(m_inject, slot[SLOT_PATH], "path", "what the path begins with, {} is the secret, such as /bot{}"),
    TEXT(m_inject, slot[SLOT_FORM], "form", "the field of a form to set"),
    TEXT(m_inject, slot[SLOT_JSON], "json", "the member of a JSON body to set, as a pointer"),
    {.name = "sigv4",
     .type = KEY_MAP,
     .at = AT(m_inject, sigv4),
     .table = &sigv4_table,
     .help = "a signature of AWS, Version 4; the secret is ID:KEY or ID:KEY:TOKEN"},
    {.name = "tc3",
     .type = KEY_MAP,
     .at = AT(m_inject, tc3),
     .table = &tc3_table,
     .help = "a signature of Tencent Cloud, TC3-HMAC-SHA256; the secret is ID:KEY or ID:KEY:TOKEN"},
    {.name = "hmac",
     .type = KEY_MAP,
     .at = AT(m_inject, hmac),
     .table = &hmac_table,
     .help = "an HMAC over parts of the request; the secret is the key, or ID:KEY or ID:KEY:TOKEN"},
    {0}};
static const struct table inject_table = {"inject:", sizeof(struct m_inject), inject_keys};

static const struct choice scrub_choices[] = {{"redact", 0}, {"refuse", 1}, {0}};
static const struct choice lease_choices[] = {
#define X(id, name, prefix, alphabet, n, checksum, secret, secret_alphabet) {name, LEASE_##id},
    LEASE_FORMATS(X)
#undef X
        {0}};
static const struct choice leak_choices[] = {{"refuse", 0}, {"freeze", 1}, {0}};
static const struct choice stub_choices[] = {{"aws", STUB_AWS}, {"google", STUB_GOOGLE}, {"oauth", STUB_OAUTH}, {0}};
static const struct key credential_keys[] = {{.name = "source",
                                              .type = KEY_MAP,
                                              .at = AT(m_credential, source),
                                              .table = &source_table,
                                              .flags = KEY_NEEDED,
                                              .help = "where the secret is, or who is asked for it"},
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
                                             {.name = "lease",
                                              .type = KEY_ONE_OF,
                                              .at = AT(m_credential, lease),
                                              .choices = lease_choices,
                                              .help = "what a lease of it looks like: see countersign lease"},
                                             {.name = "require_lease",
                                              .type = KEY_BOOL,
                                              .at = AT(m_credential, require_lease),
                                              .help = "true: refused without a lease"},
                                             {.name = "on_leak",
                                              .type = KEY_ONE_OF,
                                              .at = AT(m_credential, on_leak),
                                              .choices = leak_choices,
                                              .help = "a lease is used elsewhere: refuse, or freeze writes as well"},
                                             {.name = "stub",
                                              .type = KEY_ONE_OF,
                                              .at = AT(m_credential, stub),
                                              .choices = stub_choices,
                                              .help = "as what SDKs get leases of it: aws, google or oauth"},
                                             {.name = "token_url",
                                              .type = KEY_TEXT,
                                              .at = AT(m_credential, token_url),
                                              .help = "of stub: oauth, the address that answers with leases"},
                                             {.name = "beside",
                                              .type = KEY_TEXT,
                                              .at = AT(m_credential, beside),
                                              .help = "a client certificate that is shown with it"},
                                             LATER("permissions"),
                                             {.name = "scrub",
                                              .type = KEY_ONE_OF,
                                              .at = AT(m_credential, scrub),
                                              .choices = scrub_choices,
                                              .help = "an answer with it in it is covered, or refused"},
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
    TEXT(m_upstream, region, "region", "where its data is, for regions: of a scope"),
    {.name = "tls", .type = KEY_MAP, .at = AT(m_upstream, tls), .table = &tls_table, .help = "whom to trust there"},
    {0}};
static const struct table upstream_table = {"an upstream", sizeof(struct m_upstream), upstream_keys};

static const struct key approver_keys[] = {
    {.name = "operators",
     .type = KEY_TEXTS,
     .at = AT(m_approver, operators),
     .help = "people, by the names of countersign operator"},
    {.name = "groups", .type = KEY_TEXTS, .at = AT(m_approver, groups), .help = "people, by their groups"},
    PEOPLE_KEYS(m_approver),
    {0}};
static const struct table approver_table = {"an approvers entry", sizeof(struct m_approver), approver_keys};

static const struct key kept_keys[] = {{.name = "store",
                                        .type = KEY_TEXT,
                                        .at = AT(m_kept, store),
                                        .flags = KEY_NEEDED,
                                        .help = "a name given to: countersign secret set"},
                                       {0}};
static const struct table kept_table = {"a gate's secret:", sizeof(struct m_kept), kept_keys};

static const struct choice gate_apis[] = {{"anthropic", GATE_ANTHROPIC}, {"chat", GATE_CHAT}, {NULL, 0}};
static const struct key gate_keys[] = {
    {.name = "program",
     .type = KEY_TEXTS,
     .at = AT(m_gate, program),
     .help = "its full path, and its arguments; no shell reads them"},
    TEXT(m_gate, webhook, "webhook", "https://HOST[:PORT]/PATH, which is asked"),
    {.name = "secret",
     .type = KEY_MAP,
     .at = AT(m_gate, secret),
     .table = &kept_table,
     .help = "of a webhook: whsec_..., which signs what it is sent"},
    {.name = "body",
     .type = KEY_BOOL,
     .at = AT(m_gate, body),
     .help = "of a webhook or model: is it sent the body? default false"},
    TEXT(m_gate, model, "model", "the name of a model, which is asked"),
    {.name = "api",
     .type = KEY_ONE_OF,
     .at = AT(m_gate, api),
     .choices = gate_apis,
     .help = "of a model: how it is spoken to"},
    TEXT(m_gate, url, "url", "of a model: https://HOST[:PORT]/PATH"),
    TEXT(m_gate, credential, "credential", "of a model: the credential it is asked with"),
    {.name = "instructions",
     .type = KEY_PROSE,
     .at = AT(m_gate, instructions),
     .help = "of a model: what you want it to look at"},
    {.name = "timeout",
     .type = KEY_TIME,
     .at = AT(m_gate, timeout),
     .lo = 1000,
     .hi = GATE_TIMEOUT_MOST,
     .help = "then it has not agreed; default 10s"},
    {0}};
static const struct table gate_table = {"a gate", sizeof(struct m_gate), gate_keys};

/* "until TIME". That it is soon is asked when it is loaded; the image is over by itself. */
static void read_learning(struct loader *l, const struct node *n, void *field)
{
    enum { DAY_MS = 24 * 60 * 60 * 1000 };
    struct number *out = field;
    const char *why = "is: until TIME";
    out->at = n;
    if (n->kind == NODE_TEXT && span_starts(n->text, SPAN("until ")))
        why = instant_of(span_from(n->text, 6), &out->v);
    if (why)
        load_problem(l, n, "P008", "learning %s, as in: until 2026-11-23T18:00:00Z", why);
    else if (out->v > l->now_ms && out->v - l->now_ms > DAY_MS)
        load_problem(l, n, "P015", "learning ends at most 24 hours from now: what is learnt must become rules");
    else if (out->v <= l->now_ms)
        load_problem(l, n, "P115", "learning is over: take the key out");
}

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
    {.name = "gates",
     .type = KEY_NAMED,
     .at = AT(m_file, gates),
     .table = &gate_table,
     .help = "who else is asked before a person may approve"},
    {.name = "rules", .type = KEY_LIST, .at = AT(m_file, rules), .table = &rule_table, .help = "may it?"},
    {.name = "include",
     .type = KEY_TEXTS,
     .at = AT(m_file, include),
     .help = "further files, relative to this one's folder"},
    {.name = "learning",
     .type = KEY_CALL,
     .at = AT(m_file, learning),
     .call = read_learning,
     .pattern = "^until 20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(Z|[+-][0-9]{2}:[0-9]{2})$",
     .help = "until TIME, at most a day from now: reads pass and writes are held where no rule fits"},
    {.name = "require_signed",
     .type = KEY_BOOL,
     .at = AT(m_file, require_signed),
     .help = "true: every file is signed by a key that the operator named"},
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
    {.name = "include", .type = KEY_NEVER, .help = "a floors file stands alone: write its rules into this one"},
    {0}};
const struct table floors_table = {"a floors file", sizeof(struct m_file), floors_keys};
