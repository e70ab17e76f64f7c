/* The configuration file, as rows: key, type, where it goes, bounds, one sentence. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "policy/load/disk.h"
#include "policy/load/read/scalar.h"
#include "proxy/parent/config/config_in.h"

enum { CONFIG_FILE_MAX = 256 * 1024, UID_MIN = 1000, UID_NOBODY = 65534, UID_MAX = 2000 * 1000 * 1000 };

struct row_desk {
    const struct node *at;
    struct item http, https, certificate, key, name;
    struct row_oidc oidc;
};
struct row_dock {
    const struct node *at;
    struct item http;
    struct list lanes;
};
struct row_hold {
    const struct node *at;
    struct number inline_wait, expires, pending;
};
struct row_limits {
    const struct node *at;
    struct number sandboxes, connections, checkpoints;
};
struct row_body {
    const struct node *at;
    struct number max;
};
struct row_dns {
    const struct node *at;
    struct items servers;
};
struct row_master {
    const struct node *at;
    struct item file, systemd;
    struct items exec;
};
struct row_log {
    const struct node *at;
    struct number level, format;
    struct item trace;
};
struct row_file {
    const struct node *at;
    struct number version, uid_base, mode, store_lost, disclose, idle;
    struct item state_dir, store, floors, signers, roots, crl;
    struct row_dns dns;
    struct items policy, tasks;
    struct list listeners, pool, mounts, devices, notify;
    struct row_desk desk;
    struct row_dock dock;
    struct row_broker broker;
    struct row_diff diff;
    struct row_hold hold;
    struct row_body body;
    struct row_limits limits;
    struct row_egress egress;
    struct row_checkpoints checkpoints;
    struct row_master master;
    struct row_log log;
};

/* One or a list of them; an address of digits and dots is nothing else here. */
static void take_addresses(struct loader *l, const struct node *n, void *field)
{
    struct items *out = field;
    const struct node *first = n->kind == NODE_LIST ? n->child : n;
    size_t max = n->kind == NODE_LIST ? n->count : 1;
    out->at = n;
    out->v = max ? arena_alloc(&l->a, max * sizeof(*out->v)) : NULL;
    for (const struct node *c = first; c != NULL && out->v != NULL && out->n < max; c = c->next)
        out->v[out->n++] = (struct item){c->text, c};
    if (out->n == 0)
        load_problem(l, n, "C009", "at least one address is wanted, such as 10.0.0.2 or 10.0.0.2:53");
}

static const struct key desk_keys[] = {
    {"http", KEY_CALL, AT(row_desk, http), 0, .call = config_read_address,
     .help = "loopback address:port of the approval page"},
    {"https", KEY_CALL, AT(row_desk, https), 0, .call = config_read_address,
     .help = "instead of http: any address:port, with TLS"},
    {"certificate", KEY_TEXT, AT(row_desk, certificate), 0,
     .help = "of https: PEM file of the chain, its leaf first"},
    {"key", KEY_TEXT, AT(row_desk, key), 0, .help = "of https: PEM file of its private key"},
    {"name", KEY_TEXT, AT(row_desk, name), 0,
     .help = "of https, or of http behind a proxy of this machine that speaks https: the host name that browsers go "
             "to, with a port where that is another"},
    {"oidc", KEY_MAP, AT(row_desk, oidc), 0, .table = &config_oidc_table,
     .help = "people sign in through this OpenID Connect provider, too"},
    {.type = KEY_END}};
static const struct table desk_table = {"desk", sizeof(struct row_desk), desk_keys};

static const struct key dock_keys[] = {{"http", KEY_CALL, AT(row_dock, http), KEY_NEEDED, .call = config_read_address,
                                        .help = "loopback address:port of the sandbox API"},
                                       {"lanes", KEY_PAIRS, AT(row_dock, lanes), 0,
                                        .help = "by which lane the sandboxes of a tenant's keys send; else by none"},
                                       {.type = KEY_END}};
static const struct table dock_table = {"e2b", sizeof(struct row_dock), dock_keys};

static const struct key hold_keys[] = {{"inline_wait", KEY_TIME, AT(row_hold, inline_wait), 0, .hi = 600 * 1000,
                                        .help = "how long a client is kept waiting"},
                                       {"expires", KEY_TIME, AT(row_hold, expires), 0, .lo = 1000,
                                        .hi = UINT64_C(7) * 86400 * 1000,
                                        .help = "how long a ticket waits for a decision"},
                                       {"pending", KEY_COUNT, AT(row_hold, pending), 0, .lo = 1, .hi = 1024,
                                        .help = "tickets a sandbox may have waiting"},
                                       {.type = KEY_END}};
static const struct table hold_table = {"hold", sizeof(struct row_hold), hold_keys};

static const struct key limits_keys[] = {
    {"sandboxes", KEY_COUNT, AT(row_limits, sandboxes), 0, .lo = 1, .hi = CONFIG_SANDBOXES,
     .help = "sandboxes that may be connected at once"},
    {"connections", KEY_COUNT, AT(row_limits, connections), 0, .lo = 1, .hi = CONFIG_CONNECTIONS,
     .help = "connections that a sandbox may have open"},
    {"checkpoints", KEY_SIZE, AT(row_limits, checkpoints), 0, .lo = 1024 * 1024, .hi = UINT64_C(1) << 50,
     .help = "bytes on disk of the checkpoints of one owner"},
    {.type = KEY_END}};
static const struct table limits_table = {"limits", sizeof(struct row_limits), limits_keys};

static const struct key body_keys[] = {{"max", KEY_SIZE, AT(row_body, max), 0, .lo = 1024, .hi = 1024 * 1024 * 1024,
                                        .help = "the largest body that is read whole"},
                                       {.type = KEY_END}};
static const struct table body_table = {"body", sizeof(struct row_body), body_keys};

static const struct key dns_keys[] = {{"servers", KEY_CALL, AT(row_dns, servers), KEY_NEEDED, .call = take_addresses,
                                       .help = "name servers as address or address:port, instead of resolv.conf's"},
                                      {.type = KEY_END}};
static const struct table dns_table = {"dns", sizeof(struct row_dns), dns_keys};

static const struct key master_keys[] = {
    {"file", KEY_TEXT, AT(row_master, file), 0, .help = "a file of mode 0600"},
    {"systemd", KEY_TEXT, AT(row_master, systemd), 0, .help = "a credential that the unit is given"},
    {"exec", KEY_TEXTS, AT(row_master, exec), 0, .help = "a program that prints it, by its full path, and arguments"},
    {.type = KEY_END}};
static const struct table master_table = {"master_key", sizeof(struct row_master), master_keys};

static const struct choice levels[] = {
    {"error", LOG_ERROR}, {"warn", LOG_WARN}, {"info", LOG_INFO}, {"debug", LOG_DEBUG}, {NULL, 0}};
static const struct choice forms[] = {{"auto", LOG_AUTO}, {"json", LOG_JSON}, {"text", LOG_TEXT}, {NULL, 0}};
static const struct key log_keys[] = {
    {"level", KEY_ONE_OF, AT(row_log, level), 0, .choices = levels, .help = "what is written, and what is worse"},
    {"trace", KEY_TEXT, AT(row_log, trace), 0, .help = "a sandbox of whose exchanges everything is written"},
    {"format", KEY_ONE_OF, AT(row_log, format), 0, .choices = forms, .help = "auto: words on a terminal, else JSON"},
    {.type = KEY_END}};
static const struct table log_table = {"log", sizeof(struct row_log), log_keys};

static const struct choice modes[] = {{"enforce", 1}, {"shadow", 2}, {NULL, 0}};
static const struct choice lost[] = {{"deny", 0}, {"allow-reads", 1}, {NULL, 0}};
static const struct choice disclosures[] = {{"none", 0}, {"rules", 1}, {NULL, 0}};

static const struct key file_keys[] = {
    {"version", KEY_COUNT, AT(row_file, version), KEY_NEEDED, .lo = 1, .hi = 1, .help = "1"},
    {"state_dir", KEY_TEXT, AT(row_file, state_dir), 0, .help = "CA, sealed secrets, store"},
    {"uid_base", KEY_COUNT, AT(row_file, uid_base), 0, .lo = UID_MIN, .hi = UID_MAX,
     .help = "the first of the user ids that root's gateway gives out; those below 1000 are the system's"},
    {"store", KEY_TEXT, AT(row_file, store), 0, .help = "sqlite:ledger.db"},
    {"master_key", KEY_MAP, AT(row_file, master), 0, .table = &master_table,
     .help = "where the key is that the CA and the credentials are sealed under, when not in state_dir"},
    {"mode", KEY_ONE_OF, AT(row_file, mode), 0, .choices = modes,
     .help = "enforce; or shadow: decide and record, let everything pass without credentials of ours"},
    {"policy", KEY_TEXTS, AT(row_file, policy), 0, .help = "policy files, relative to this file"},
    {"floors", KEY_TEXT, AT(row_file, floors), 0, .help = "the operator's own denies"},
    {"policy_signers", KEY_TEXT, AT(row_file, signers), 0, .help = "keys, of which one has signed each policy file"},
    {"roots", KEY_TEXT, AT(row_file, roots), 0, .help = "PEM file of the roots upstream servers are verified with"},
    {"crl", KEY_TEXT, AT(row_file, crl), 0, .help = "PEM file of revocation lists, one for each issuer below roots"},
    {"dns", KEY_MAP, AT(row_file, dns), 0, .table = &dns_table, .help = "name resolution"},
    {"listeners", KEY_LIST, AT(row_file, listeners), 0, .table = &config_listener_table, .help = "ways in"},
    {"desk", KEY_MAP, AT(row_file, desk), 0, .table = &desk_table, .help = "the approval page"},
    {"e2b", KEY_MAP, AT(row_file, dock), 0, .table = &dock_table,
     .help = "sandboxes by E2B's API; off unless it is there"},
    {"broker", KEY_MAP, AT(row_file, broker), 0, .table = &config_broker_table,
     .help = "conversations with models; off unless it is there"},
    {"diff", KEY_MAP, AT(row_file, diff), 0, .table = &config_diff_table,
     .help = "what a held push or package changes; off unless it is there"},
    {"hold", KEY_MAP, AT(row_file, hold), 0, .table = &hold_table, .help = "held writes"},
    {"body", KEY_MAP, AT(row_file, body), 0, .table = &body_table, .help = "request bodies"},
    {"limits", KEY_MAP, AT(row_file, limits), 0, .table = &limits_table, .help = "how many at once"},
    {"egress", KEY_MAP, AT(row_file, egress), 0, .table = &config_egress_table,
     .help = "how much started sandboxes may send and be sent"},
    {"checkpoints", KEY_MAP, AT(row_file, checkpoints), 0, .table = &config_checkpoints_table,
     .help = "where checkpoints are kept as well"},
    {"mounts", KEY_LIST, AT(row_file, mounts), 0, .table = &config_mount_table,
     .help = "directories that started sandboxes may read"},
    {"devices", KEY_LIST, AT(row_file, devices), 0, .table = &config_pool_table,
     .help = "devices that tasks may have"},
    {"tasks", KEY_TEXTS, AT(row_file, tasks), KEY_EMPTY, .help = "files of kinds of tasks, relative to this file"},
    {"pool", KEY_LIST, AT(row_file, pool), 0, .table = &config_ready_table,
     .help = "sandboxes that are started before anybody asks for them"},
    {"idle", KEY_TIME, AT(row_file, idle), 0, .lo = 1000, .hi = UINT64_C(7) * 86400 * 1000,
     .help = "paused for so long a started sandbox ends, and its files are kept until it is needed again"},
    {"notify", KEY_LIST, AT(row_file, notify), 0, .table = &config_notify_table,
     .help = "who is told outside the page"},
    {"log", KEY_MAP, AT(row_file, log), 0, .table = &log_table, .help = "what is written to standard error"},
    {"store_lost", KEY_ONE_OF, AT(row_file, store_lost), 0, .choices = lost, .help = "deny, or allow-reads"},
    {"disclose", KEY_ONE_OF, AT(row_file, disclose), 0, .choices = disclosures,
     .help = "rules: name them to clients"},
    {.name = "metrics", .type = KEY_LATER},
    {.name = "lanes", .type = KEY_LATER},
    {.type = KEY_END}};
static const struct table file_table = {"the configuration", sizeof(struct row_file), file_keys};

void config_copy(struct loader *l, char *dst, size_t cap, const struct item *it)
{
    if (it->text.n >= cap)
        load_problem(l, it->at, "C018", "this is too long: at most %zu bytes", cap - 1);
    else
        snprintf(dst, cap, "%.*s", SPAN_FMT(it->text));
}

void config_copy_path(struct loader *l, char *dst, size_t cap, const char *file, const struct item *it)
{
    const char *slash = it->text.n && it->text.p[0] != '/' ? strrchr(file, '/') : NULL;
    int n = snprintf(dst, cap, "%.*s%.*s", slash ? (int)(slash - file + 1) : 0, file, SPAN_FMT(it->text));
    if (n < 0 || (size_t)n >= cap)
        load_problem(l, it->at, "C018", "this path is too long: at most %zu bytes with the folder of this file",
                     cap - 1);
}

/* Said here, with its place: whoever needs the file later could only name the file. */
static void take_file(struct loader *l, char dst[CONFIG_PATH], const char *file, const char *key,
                      const struct item *it)
{
    if (it->at == NULL)
        return;
    config_copy_path(l, dst, CONFIG_PATH, file, it);
    if (!l->failed && access(dst, R_OK) != 0)
        load_problem(l, it->at, "C019", "%s: %.200s cannot be read: %s", key, dst, strerror(errno));
}

bool config_loopback(struct span address)
{
    return span_starts(address, SPAN("127.")) || span_starts(address, SPAN("localhost:")) ||
           span_starts(address, SPAN("[::1]:"));
}

/* As c-ares reads them: address:port, an IPv6 address in brackets. */
static bool add_server(struct config *c, struct span s)
{
    uint64_t port = 53;
    bool brackets = s.n > 0 && s.p[0] == '[';
    size_t colon = s.n;
    while (colon > 0 && s.p[colon - 1] != ':' && s.p[colon - 1] != ']')
        colon--;
    bool has_port = colon > 0 && s.p[colon - 1] == ':' && (brackets || span_index(s, ':') == colon - 1);
    struct span host = has_port ? span_first(s, colon - 1) : s;
    if (has_port && (span_u64(span_from(s, colon), 65535, &port) != 0 || port == 0))
        return false;
    if (brackets && host.n > 2 && host.p[host.n - 1] == ']')
        host = span_of(host.p + 1, host.n - 2);
    if (scalar_ip(host) != NULL || brackets != (span_index(host, ':') < host.n && (brackets || has_port)))
        return false;
    size_t n = strlen(c->dns_servers), room = sizeof(c->dns_servers) - n;
    bool six = span_index(host, ':') < host.n;
    int len = snprintf(c->dns_servers + n, room, "%s%s%.*s%s:%u", n ? "," : "", six ? "[" : "", SPAN_FMT(host),
                       six ? "]" : "", (unsigned)port);
    return len > 0 && (size_t)len < room;
}

void config_take_lanes(struct loader *l, const struct list *rows, char to[CONFIG_DOCK_LANES])
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct pair *p = (const struct pair *)rows->v + i;
        size_t n = strlen(to), room = CONFIG_DOCK_LANES - n;
        if (p->name.at == NULL || p->values.n != 1 || !config_sandbox_ok(p->name.text) ||
            !config_sandbox_ok(p->values.v[0].text)) {
            load_problem(l, p->at, "C009", "each is the one lane of a tenant, both of them 1 to 63 of a-z 0-9 . _ -");
            continue;
        }
        int more = snprintf(to + n, room, "%.*s %.*s\n", SPAN_FMT(p->name.text), SPAN_FMT(p->values.v[0].text));
        if (more < 0 || (size_t)more >= room)
            load_problem(l, p->at, "C018", "these are too many: at most %d bytes of names", CONFIG_DOCK_LANES - 1);
    }
}

static void take_dns(struct loader *l, const struct row_dns *r, struct config *c)
{
    for (size_t i = 0; i < r->servers.n; i++)
        if (r->servers.v[i].at->kind != NODE_TEXT || !add_server(c, r->servers.v[i].text))
            load_problem(l, r->servers.v[i].at, "C009",
                         "a name server is an address, with its port when that is not 53: 10.0.0.2, 10.0.0.2:5353, "
                         "\"[fd00::2]:53\"; no more than a dozen");
}

static void take_program(struct loader *l, const struct items *exec, struct config_master *m)
{
    if (exec->n > CONFIG_ARGS)
        load_problem(l, exec->at, "C021", "a program has at most %d arguments", CONFIG_ARGS - 1);
    for (size_t i = 0; i < exec->n && i < CONFIG_ARGS; i++)
        config_copy(l, m->argv[i], CONFIG_PATH, &exec->v[i]);
    if (exec->n > 0 && m->argv[0][0] != '/')
        load_problem(l, exec->v[0].at, "C021", "a program is named by its full path");
}

static void take_master(struct loader *l, const struct row_master *r, const char *file, struct config_master *m)
{
    if (r->at == NULL)
        return;
    if ((r->file.at != NULL) + (r->systemd.at != NULL) + (r->exec.at != NULL) != 1)
        load_problem(l, r->at, "C021", "the master key is in exactly one of file:, systemd: and exec:");
    m->from = r->file.at != NULL ? SOURCE_FILE : r->systemd.at != NULL ? SOURCE_SYSTEMD : SOURCE_EXEC;
    if (r->file.at != NULL)
        config_copy_path(l, m->where, CONFIG_PATH, file, &r->file);
    if (r->systemd.at != NULL && !scalar_is_name(r->systemd.text))
        load_problem(l, r->systemd.at, "C021", "a credential's name has letters, digits, '.', '_' and '-'");
    if (r->systemd.at != NULL)
        config_copy(l, m->where, CONFIG_PATH, &r->systemd);
    take_program(l, &r->exec, m);
}

static void take_log(struct loader *l, const struct row_log *r, struct config *c)
{
    if (r->level.at != NULL)
        c->log_level = (enum log_level)r->level.v;
    c->log_form = (enum log_form)r->format.v;
    if (r->trace.at != NULL && !config_sandbox_ok(r->trace.text))
        load_problem(l, r->trace.at, "C020", "a sandbox's name is 1 to 63 of a-z 0-9 . _ -");
    else if (r->trace.at != NULL)
        config_copy(l, c->log_trace, sizeof(c->log_trace), &r->trace);
}

/* A DNS name, which a certificate can be for, and a port where browsers use another than the page listens on. */
static bool is_site(struct span name)
{
    struct span host, port;
    uint64_t n;
    bool has = span_cut(name, ':', &host, &port), dot = false;
    for (size_t i = 0; i < host.n; i++) {
        uint8_t c = host.p[i];
        dot |= c == '.';
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.')
            return false;
    }
    return host.n > 0 && host.n <= 253 && (dot || span_eq(host, SPAN("localhost"))) &&
           (!has || (span_u64(port, 65535, &n) == 0 && n > 0));
}

static void take_desk(struct loader *l, const struct row_desk *r, const char *file, struct config *c)
{
    bool tls = r->https.at != NULL;
    if (tls == (r->http.at != NULL))
        load_problem(l, r->at, "C005", "the page has one of http and https");
    else if (!tls && !config_loopback(r->http.text))
        load_problem(l, r->at, "C005",
                     "without TLS the page may only listen on loopback: 127.0.0.1, ::1 or localhost; https: with a "
                     "certificate may be anywhere");
    else if (tls != (r->certificate.at != NULL) || tls != (r->key.at != NULL) || (tls && r->name.at == NULL))
        load_problem(l, r->at, "C005",
                     "https: of the page goes with certificate:, key: and name:, and the first two with it alone");
    else if (r->name.at != NULL && !is_site(r->name.text))
        load_problem(
            l, r->name.at, "C005",
            "name: is the host name of the page in small letters, as in approve.example or approve.example:8443");
    config_copy(l, c->desk_address, sizeof(c->desk_address), tls ? &r->https : &r->http);
    if (r->name.at != NULL)
        config_copy(l, c->desk_name, sizeof(c->desk_name), &r->name);
    config_take_oidc(l, &r->oidc, r->name.at != NULL, c);
    if (!tls)
        return;
    config_copy_path(l, c->desk_certificate, CONFIG_PATH, file, &r->certificate);
    config_copy_path(l, c->desk_key, CONFIG_PATH, file, &r->key);
}

static void take(struct loader *l, const struct row_file *r, const char *file, struct config *c)
{
    if (r->state_dir.at != NULL)
        config_copy_path(l, c->state_dir, CONFIG_PATH, file, &r->state_dir);
    if (r->uid_base.v <= UID_NOBODY + 1 && r->uid_base.v + CONFIG_UIDS > UID_NOBODY)
        load_problem(l, r->uid_base.at, "C022",
                     "uid_base: of the %d user ids from there on two are nobody's, %d and %d", CONFIG_UIDS,
                     UID_NOBODY, UID_NOBODY + 1);
    c->uid_base = (int)r->uid_base.v;
    take_file(l, c->floors, file, "floors", &r->floors);
    take_file(l, c->signers, file, "policy_signers", &r->signers);
    if (r->roots.at != NULL)
        config_copy_path(l, c->roots, CONFIG_PATH, file, &r->roots);
    take_file(l, c->crl, file, "crl", &r->crl);
    take_dns(l, &r->dns, c);
    take_master(l, &r->master, file, &c->master);
    if (r->store.at != NULL && !span_eq(r->store.text, SPAN("sqlite:ledger.db")))
        load_problem(l, r->store.at, "C003", "only sqlite:ledger.db is available yet");
    if (r->policy.n > CONFIG_POLICIES) {
        load_problem(l, r->at, "C004", "too many policy files: at most %d", CONFIG_POLICIES);
        return;
    }
    for (size_t i = 0; i < r->policy.n; i++)
        config_copy_path(l, c->policy[c->npolicy++], CONFIG_PATH, file, &r->policy.v[i]);
    if (r->listeners.at != NULL)
        config_take_listeners(l, &r->listeners, file, c);
    if (r->desk.at != NULL)
        take_desk(l, &r->desk, file, c);
    if (r->dock.at != NULL && !config_loopback(r->dock.http.text))
        load_problem(l, r->dock.at, "C005",
                     "without TLS the sandbox API may only listen on loopback: 127.0.0.1, ::1 or localhost; put a "
                     "server with TLS in front of it");
    if (r->dock.at != NULL)
        config_copy(l, c->dock_address, sizeof(c->dock_address), &r->dock.http);
    config_take_lanes(l, &r->dock.lanes, c->dock_lanes);
    config_take_broker(l, &r->broker, file, c);
    config_take_diff(l, &r->diff, c);
    if (r->hold.inline_wait.at != NULL)
        c->inline_wait_ms = r->hold.inline_wait.v;
    if (r->hold.expires.at != NULL)
        c->expires_ms = r->hold.expires.v;
    if (r->hold.pending.at != NULL)
        c->pending_max = r->hold.pending.v;
    if (r->limits.sandboxes.at != NULL)
        c->sandboxes_max = r->limits.sandboxes.v;
    if (r->limits.connections.at != NULL)
        c->connections_max = r->limits.connections.v;
    if (r->limits.checkpoints.at != NULL)
        c->checkpoints_max = r->limits.checkpoints.v;
    config_take_checkpoints(l, &r->checkpoints, c);
    if (r->body.max.at != NULL)
        c->body_max = r->body.max.v;
    config_take_egress(l, &r->egress, c);
    c->idle_ms = r->idle.v;
    take_log(l, &r->log, c);
    config_take_mounts(l, &r->mounts, &r->devices, c);
    config_take_tasks(l, &r->tasks, file, c);
    config_take_ready(l, &r->pool, c);
    config_take_notify(l, &r->notify, file, c);
    c->shadow = r->mode.v == 2;
    c->store_lost_allow_reads = r->store_lost.v == 1;
    c->disclose_rules = r->disclose.v == 1;
}

static int load_file(const char *path, struct config *c, struct err *e)
{
    struct span text;
    struct row_file row = {0};
    struct loader l = {.e = e, .file = path};
    int bad = -1;
    arena_init(&l.a, 16 * 1024 * 1024);
    if (policy_read_file(path, CONFIG_FILE_MAX, &l.a, &text, e) != 0)
        goto out;
    digest_of(text, &c->text);
    struct node *root = yaml_tree(&l, path, text);
    if (root != NULL) {
        keys_decode_map(&l, root, &file_table, &row);
        if (!l.failed)
            take(&l, &row, path, c);
    }
    bad = root == NULL || l.failed ? -1 : 0;
out:
    arena_free(&l.a);
    return bad;
}

static void defaults(struct config *c, const struct config_args *a)
{
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME"), *given = getenv("COUNTERSIGN_STATE");
    *c = (struct config){.inline_wait_ms = 50 * 1000,
                         .expires_ms = 30 * 60 * 1000,
                         .body_max = 64 * 1024 * 1024,
                         .pending_max = 64,
                         .sandboxes_max = 256,
                         .checkpoints_max = UINT64_C(16) << 30,
                         .connections_max = 1024,
                         .log_level = LOG_INFO,
                         .nlisteners = 1};
    if (given != NULL && *given)
        snprintf(c->state_dir, CONFIG_PATH, "%s", given);
    else if (geteuid() == 0)
        snprintf(c->state_dir, CONFIG_PATH, "/var/lib/countersign");
    else if (xdg != NULL && *xdg == '/')
        snprintf(c->state_dir, CONFIG_PATH, "%s/countersign", xdg);
    else
        snprintf(c->state_dir, CONFIG_PATH, "%s/.local/state/countersign", home ? home : "");
    snprintf(c->packs_dir, CONFIG_PATH, "%s/packs", a->data_dir ? a->data_dir : PKGDATADIR);
    snprintf(c->roots, CONFIG_PATH, "/etc/ssl/certs/ca-certificates.crt");
    snprintf(c->desk_address, sizeof(c->desk_address), "localhost:8088");
    if (a->private) { /* several of them may run at once */
        c->nlisteners = 0;
        snprintf(c->desk_address, sizeof(c->desk_address), "localhost:0");
        c->log_level = LOG_WARN; /* it serves another command, whose terminal this is */
    }
    c->listener[0] = (struct config_listener){
        .kind = CONFIG_HTTP, .identity = IDENTITY_TOKEN, .name = "agents", .address = "127.0.0.1:3128"};
}

struct config *config_load(const struct config_args *a, struct err *e)
{
    struct config *c = calloc(1, sizeof(*c));
    if (c == NULL)
        log_die("out of memory");
    defaults(c, a);
    if (a->config != NULL && load_file(a->config, c, e) != 0)
        goto bad;
    if (a->state_dir != NULL)
        snprintf(c->state_dir, CONFIG_PATH, "%s", a->state_dir);
    if (a->policy != NULL) {
        c->npolicy = 1;
        snprintf(c->policy[0], CONFIG_PATH, "%s", a->policy);
    }
    if (c->state_dir[0] != '/') {
        err_set(e, "the state directory must be an absolute path (--state-dir or state_dir:), not \"%s\"",
                c->state_dir);
        goto bad;
    }
    while (strlen(c->state_dir) > 1 && c->state_dir[strlen(c->state_dir) - 1] == '/')
        c->state_dir[strlen(c->state_dir) - 1] = '\0';
    if (config_mounts_apart(c, e) != 0)
        goto bad;
    if (c->npolicy == 0) {
        snprintf(c->policy[0], CONFIG_PATH, "%s/policies/default.yaml", a->data_dir ? a->data_dir : PKGDATADIR);
        c->npolicy = 1;
    }
    return c;
bad:
    config_free(&c);
    return NULL;
}

void config_free(struct config **cp)
{
    for (size_t i = 0; *cp != NULL && i < CONFIG_LISTENERS; i++)
        free((*cp)->listener[i].source);
    for (size_t i = 0; *cp != NULL && i < TASKS_MAX; i++)
        dynbuf_free(&(*cp)->task[i]);
    free(*cp);
    *cp = NULL;
}
