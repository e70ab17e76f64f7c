/* The ways in, as countersign.yaml names them: what goes with what, and whose a connection is. */
#include <stdio.h>
#include <stdlib.h>

#include "common/net/addr.h"
#include "policy/load/read/scalar.h"
#include "proxy/parent/config/config_in.h"

struct row_identity {
    const struct node *at;
    struct item sandbox;
    struct list source, certificate;
};
struct row_tls {
    const struct node *at;
    struct item certificate, key, clients;
};
struct row_listener {
    const struct node *at;
    struct item name, http, socks5, transparent, unix_path, dns, advertise;
    struct items peers;
    struct row_tls tls;
    const struct node *identity;
};

static void keep_node(struct loader *l, const struct node *n, void *field)
{
    *(const struct node **)field = n;
}

static void read_advertise(struct loader *l, const struct node *n, void *field);

static const struct key identity_keys[] = {
    {"sandbox", KEY_TEXT, AT(row_identity, sandbox), 0, .help = "the one sandbox this listener belongs to"},
    {"source", KEY_PAIRS, AT(row_identity, source), 0, .help = "sandboxes by address or range they come from"},
    {"certificate", KEY_PAIRS, AT(row_identity, certificate), 0,
     .help = "sandboxes by the DNS name in their certificate"},
    {.type = KEY_END}};
static const struct table identity_table = {"an identity", sizeof(struct row_identity), identity_keys};

static const struct key tls_keys[] = {
    {"certificate", KEY_TEXT, AT(row_tls, certificate), KEY_NEEDED,
     .help = "PEM file, the proxy's own, with its chain"},
    {"key", KEY_TEXT, AT(row_tls, key), KEY_NEEDED, .help = "PEM file of its private key"},
    {"clients", KEY_TEXT, AT(row_tls, clients), 0, .help = "PEM file of the CA that clients' certificates come from"},
    {.type = KEY_END}};
static const struct table tls_table = {"tls", sizeof(struct row_tls), tls_keys};

static const struct key listener_keys[] = {
    {"name", KEY_TEXT, AT(row_listener, name), KEY_NEEDED, .help = "what logs call it"},
    {"http", KEY_CALL, AT(row_listener, http), 0, .call = config_read_address,
     .help = "address:port; CONNECT and absolute-form"},
    {"socks5", KEY_CALL, AT(row_listener, socks5), 0, .call = config_read_address,
     .help = "address:port; SOCKS5 with user and password"},
    {"transparent", KEY_CALL, AT(row_listener, transparent), 0, .call = config_read_address,
     .help = "address:port that connections to elsewhere are redirected to"},
    {"unix", KEY_TEXT, AT(row_listener, unix_path), 0, .help = "a sandbox's own Unix listener, NAME.sock"},
    {"identity", KEY_CALL, AT(row_listener, identity), KEY_NEEDED, .call = keep_node,
     .help = "token, { sandbox: NAME }, { source: ... } or { certificate: ... }"},
    {"dns", KEY_CALL, AT(row_listener, dns), 0, .call = config_read_address,
     .help = "address:port where DNS is answered for a transparent listener"},
    {"tls", KEY_MAP, AT(row_listener, tls), 0, .table = &tls_table, .help = "the proxy itself speaks TLS"},
    {"proxy_protocol", KEY_TEXTS, AT(row_listener, peers), 0,
     .help = "ranges whose connections begin with a PROXY v2 header"},
    {"advertise", KEY_CALL, AT(row_listener, advertise), 0, .call = read_advertise,
     .help = "host:port that sandboxes are told to use"},
    {.type = KEY_END}};
const struct table config_listener_table = {"a listener", sizeof(struct row_listener), listener_keys};

/* "HOST:PORT" or "[HOST]:PORT"; the brackets stay. */
static bool split(struct span s, struct span *host, uint64_t *port)
{
    size_t colon = s.n;
    while (colon > 0 && s.p[colon - 1] != ':')
        colon--;
    *host = span_first(s, colon ? colon - 1 : 0);
    bool six = host->n > 2 && host->p[0] == '[' && host->p[host->n - 1] == ']';
    return host->n > 0 && (six || span_index(*host, ':') == host->n) &&
           span_u64(span_from(s, colon), 65535, port) == 0;
}

void config_read_address(struct loader *l, const struct node *n, void *field)
{
    struct span host;
    struct addr a;
    uint64_t port;
    if (n->kind != NODE_TEXT || n->text.n >= CONFIG_ADDRESS || !split(n->text, &host, &port) ||
        (addr_parse(host, &a) != 0 && !span_eq(host, SPAN("localhost"))))
        load_problem(l, n, "C006", "an address with its port is wanted, such as 127.0.0.1:3128 or [::1]:3128");
    else
        *(struct item *)field = (struct item){n->text, n};
}

static void read_advertise(struct loader *l, const struct node *n, void *field)
{
    struct span host = SPAN_NONE;
    uint64_t port = 0;
    bool shape = n->kind == NODE_TEXT && n->text.n < CONFIG_ADDRESS && split(n->text, &host, &port);
    if (!shape || port == 0 || scalar_host(host, false) != NULL)
        load_problem(l, n, "C007", "a host name or address with its port is wanted, such as gateway.internal:3128");
    else
        *(struct item *)field = (struct item){n->text, n};
}

bool config_unspecified(const char *address)
{
    static const uint8_t none[16];
    struct span host;
    struct addr a;
    uint64_t port;
    return split(span_str(address), &host, &port) && addr_parse(host, &a) == 0 &&
           memcmp(a.b, none, addr_bytes(&a)) == 0;
}

bool config_literal(const char *address)
{
    struct span host;
    struct addr a;
    uint64_t port;
    return split(span_str(address), &host, &port) && addr_parse(host, &a) == 0;
}

bool config_sandbox_ok(struct span s)
{
    if (s.n == 0 || s.n > 63)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '-' ||
              s.p[i] == '_' || (s.p[i] == '.' && i > 0)))
            return false;
    return true;
}

bool config_of_front(const struct config_listener *l)
{
    return l->identity == IDENTITY_SANDBOX && l->kind != CONFIG_SOCKS5 && l->certificate[0] == '\0' && l->npeers == 0;
}

/* ---- whose ---- */

static void take_sandbox(struct loader *l, const struct item *name, char out[CONFIG_NAME])
{
    if (!config_sandbox_ok(name->text))
        load_problem(l, name->at, "C008",
                     "a sandbox's name is 1 to 63 of a-z 0-9 . _ -, and does not begin with a dot");
    else if (span_eq(name->text, SPAN(STORE_SANDBOX)))
        load_problem(l, name->at, "C008",
                     STORE_SANDBOX " is who takes checkpoints to a store elsewhere; choose another name");
    else
        config_copy(l, out, CONFIG_NAME, name);
}

static bool same_range(const char *a, struct span b)
{
    struct cidr x, y;
    if (cidr_parse(span_str(a), &x) != 0 || cidr_parse(b, &y) != 0)
        return false;
    return x.bits == y.bits && addr_eq(&x.base, &y.base);
}

static void take_source(struct loader *l, const struct pair *p, struct config_listener *to)
{
    struct config_source *s = &to->source[to->nsources];
    struct cidr range;
    bool by_source = to->identity == IDENTITY_SOURCE;
    if (p->name.at == NULL || p->values.n != 1) {
        load_problem(l, p->at, "C009", "each is the name of one sandbox");
        return;
    }
    if (by_source ? cidr_parse(p->name.text, &range) != 0 : scalar_host(p->name.text, false) != NULL) {
        load_problem(l, p->name.at, "C010", "%s",
                     by_source
                         ? "an address or range is wanted, such as 10.0.0.5 or 10.1.0.0/16 (no bits set past the /)"
                         : "a DNS name is wanted, such as vm1.example: exactly, without wildcards");
        return;
    }
    for (size_t i = 0; by_source && i < to->nsources; i++)
        if (same_range(to->source[i].key, p->name.text)) {
            load_problem(l, p->name.at, "C011", "this range stands here twice: one of the two would never be used");
            return;
        }
    config_copy(l, s->key, sizeof(s->key), &p->name);
    take_sandbox(l, &p->values.v[0], s->sandbox);
    to->nsources++;
}

static void take_sources(struct loader *l, const struct list *rows, enum listener_identity identity,
                         struct config_listener *to)
{
    to->identity = identity;
    if (rows->n > LISTENER_SOURCES_MAX) {
        load_problem(l, rows->at, "C012", "at most %d can be named for one listener", LISTENER_SOURCES_MAX);
        return;
    }
    to->source = calloc(rows->n ? rows->n : 1, sizeof(*to->source));
    if (to->source == NULL)
        load_problem(l, rows->at, "P003", "no memory for the file");
    for (size_t i = 0; to->source != NULL && i < rows->n; i++)
        take_source(l, (const struct pair *)rows->v + i, to);
}

static void take_identity(struct loader *l, const struct node *n, struct config_listener *to)
{
    struct row_identity id = {0};
    if (n->kind == NODE_TEXT && span_eq(n->text, SPAN("token"))) {
        to->identity = IDENTITY_TOKEN;
        return;
    }
    if (n->kind == NODE_TEXT) {
        load_problem(l, n, "C002",
                     "an identity is token, { sandbox: NAME }, { source: ... } or { certificate: ... }");
        return;
    }
    keys_decode_map(l, n, &identity_table, &id);
    if (l->failed)
        return;
    if ((id.sandbox.at != NULL) + (id.source.at != NULL) + (id.certificate.at != NULL) != 1) {
        load_problem(l, n, "C002", "an identity is one of sandbox, source and certificate");
    } else if (id.sandbox.at != NULL) {
        to->identity = IDENTITY_SANDBOX;
        take_sandbox(l, &id.sandbox, to->sandbox);
    } else if (id.source.at != NULL) {
        take_sources(l, &id.source, IDENTITY_SOURCE, to);
    } else {
        take_sources(l, &id.certificate, IDENTITY_CERTIFICATE, to);
    }
}

/* ---- what goes with what ---- */

static const struct item *take_kind(struct loader *l, const struct row_listener *r, const char *file,
                                    struct config_listener *to)
{
    const struct item *at[] = {[CONFIG_HTTP] = &r->http,
                               [CONFIG_SOCKS5] = &r->socks5,
                               [CONFIG_TRANSPARENT] = &r->transparent,
                               [CONFIG_UNIX] = &r->unix_path};
    const struct item *found = NULL;
    size_t n = 0;
    for (unsigned k = CONFIG_HTTP; k <= CONFIG_UNIX; k++)
        if (at[k]->at != NULL) {
            found = at[k];
            to->kind = k;
            n++;
        }
    if (n != 1)
        load_problem(l, r->at, "C001", "a listener is exactly one of http:, socks5:, transparent: and unix:");
    else if (to->kind == CONFIG_UNIX)
        config_copy_path(l, to->address, sizeof(to->address), file, found);
    else
        config_copy(l, to->address, sizeof(to->address), found);
    return found;
}

/* The first thing about it that does not hold together, or NULL. *at: where. */
static const char *fault(const struct row_listener *r, const struct config_listener *to, const struct node **at)
{
    bool proxy = to->kind == CONFIG_HTTP || to->kind == CONFIG_SOCKS5;
    *at = r->identity;
    if (to->kind == CONFIG_UNIX && to->identity != IDENTITY_SANDBOX)
        return "a unix listener's identity is { sandbox: NAME }";
    if (to->kind == CONFIG_TRANSPARENT && to->identity != IDENTITY_SANDBOX && to->identity != IDENTITY_SOURCE)
        return "a transparent listener's identity is { sandbox: NAME } or { source: ... }: who is captured says "
               "nothing "
               "of itself";
    if (to->identity == IDENTITY_CERTIFICATE && r->tls.clients.at == NULL)
        return "identity by certificate needs tls: with clients:, the CA that those certificates come from";
    *at = r->tls.at;
    if (r->tls.at != NULL && !proxy)
        return "only an http or socks5 listener speaks TLS itself: remove tls:";
    if (r->tls.clients.at != NULL && to->identity != IDENTITY_CERTIFICATE)
        return "clients: goes with identity: { certificate: ... }: remove it, or name sandboxes by certificate";
    *at = r->peers.at;
    if (r->peers.at != NULL && !proxy)
        return "only an http or socks5 listener takes PROXY headers: remove proxy_protocol:";
    *at = r->advertise.at;
    if (r->advertise.at != NULL && !proxy)
        return "advertise: is for http and socks5 listeners, whose address sandboxes are told";
    *at = r->dns.at;
    if (r->dns.at != NULL && to->kind != CONFIG_TRANSPARENT)
        return "dns: goes with a transparent listener";
    return NULL;
}

static void take_peers(struct loader *l, const struct items *peers, struct config_listener *to)
{
    struct cidr range;
    if (peers->n > LISTENER_PEERS_MAX)
        load_problem(l, peers->at, "C013", "at most %d ranges of peers", LISTENER_PEERS_MAX);
    for (size_t i = 0; i < peers->n && i < LISTENER_PEERS_MAX; i++) {
        if (cidr_parse(peers->v[i].text, &range) != 0)
            load_problem(l, peers->v[i].at, "C010", "an address or range is wanted, such as 10.0.0.1 or 10.1.0.0/16");
        else
            config_copy(l, to->peer[to->npeers++], sizeof(to->peer[0]), &peers->v[i]);
    }
}

/* Port 0 takes a free one each time. */
static bool same_address(const char *a, const char *b)
{
    return *a && strcmp(a, b) == 0 && !span_ends(span_str(a), SPAN(":0"));
}

static void no_doubles(struct loader *l, const struct row_listener *r, const struct item *address,
                       const struct config_listener *to, const struct config *c)
{
    for (size_t i = 0; i < c->nlisteners && !l->failed; i++) {
        const struct config_listener *o = &c->listener[i];
        if (strcmp(o->name, to->name) == 0)
            load_problem(l, r->name.at, "C014",
                         "two listeners are called %s: logs and counts could not tell them apart", to->name);
        else if (same_address(to->address, o->address) || same_address(to->address, o->dns))
            load_problem(l, address->at, "C015", "listener %s is at this address already", o->name);
        else if (same_address(to->dns, o->dns) || same_address(to->dns, o->address))
            load_problem(l, r->dns.at, "C015", "listener %s is at this address already", o->name);
        else if (to->identity == IDENTITY_SANDBOX && strcmp(o->sandbox, to->sandbox) == 0)
            load_problem(
                l, r->identity, "C016",
                "sandbox %s has the listener %s already: one of a sandbox's own is enough; use { source: ... } "
                "where several ways in are wanted",
                to->sandbox, o->name);
    }
}

static void take_listener(struct loader *l, const struct row_listener *r, const char *file, struct config *c)
{
    struct config_listener *to = &c->listener[c->nlisteners];
    const struct node *at = NULL;
    *to = (struct config_listener){0};
    const struct item *address = take_kind(l, r, file, to);
    if (!l->failed && !scalar_is_name(r->name.text))
        load_problem(l, r->name.at, "C017", "a listener's name is of letters, digits, '.', '_' and '-', at most 64");
    if (l->failed)
        return;
    config_copy(l, to->name, sizeof(to->name), &r->name);
    take_identity(l, r->identity, to);
    const char *why = l->failed ? NULL : fault(r, to, &at);
    if (why != NULL)
        load_problem(l, at, "C002", "%s", why);
    take_peers(l, &r->peers, to);
    config_copy(l, to->advertise, sizeof(to->advertise), &r->advertise);
    config_copy(l, to->dns, sizeof(to->dns), &r->dns);
    config_copy_path(l, to->certificate, CONFIG_PATH, file, &r->tls.certificate);
    config_copy_path(l, to->key, CONFIG_PATH, file, &r->tls.key);
    config_copy_path(l, to->clients, CONFIG_PATH, file, &r->tls.clients);
    no_doubles(l, r, address, to, c);
    c->nlisteners++; /* also after a problem: what it holds is given back with the others */
}

void config_take_listeners(struct loader *l, const struct list *rows, const char *file, struct config *c)
{
    if (rows->n > CONFIG_LISTENERS) {
        load_problem(l, rows->at, "C004", "too many listeners: at most %d", CONFIG_LISTENERS);
        return;
    }
    c->nlisteners = 0;
    for (size_t i = 0; i < rows->n && !l->failed; i++)
        take_listener(l, (const struct row_listener *)rows->v + i, file, c);
}
