/* broker: of the configuration. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/postgres/where.h"
#include "proxy/duty/duty.h"
#include "proxy/parent/config/config_in.h"

enum { WORKERS = 4, WORKERS_MAX = 64, OTLP_HOST_MAX = 253, PEOPLE_NAME = 64 };

static const struct key broker_keys[] = {
    {"http", KEY_CALL, AT(row_broker, http), 0, .call = config_read_address,
     .help = "loopback address:port where conversations are had"},
    {"only", KEY_TEXTS, AT(row_broker, only), 0,
     .help = "stream or turn: what of the broker runs here; the rest does at other gateways with the same database"},
    {"store", KEY_TEXT, AT(row_broker, store), 0,
     .help = "sqlite:broker.db, or postgresql://USER@HOST:PORT/DATABASE"},
    {"store_password", KEY_TEXT, AT(row_broker, password), 0,
     .help = "of postgresql: the file of the password, which its owner alone can read; relative to this file"},
    {"models", KEY_TEXT, AT(row_broker, models), KEY_NEEDED, .help = "the table of models, relative to this file"},
    {"tools", KEY_TEXT, AT(row_broker, tools), 0, .help = "the file of MCP servers, relative to this file"},
    {"workers", KEY_COUNT, AT(row_broker, workers), 0, .lo = 1, .hi = WORKERS_MAX,
     .help = "processes that run turns, one at a time each"},
    {"image", KEY_TEXT, AT(row_broker, image), 0, .help = "what a conversation's sandbox is made of"},
    {"otlp", KEY_TEXT, AT(row_broker, otlp), 0,
     .help = "the URL of a collector that takes spans over OTLP/HTTP in JSON, through the gateway"},
    {"otlp_metrics", KEY_TEXT, AT(row_broker, otlp_metrics), 0, .help = "the same for metrics"},
    {"lanes", KEY_PAIRS, AT(row_broker, lanes), 0,
     .help = "by which lane the sandboxes of a tenant's conversations send; else by none"},
    {"people", KEY_TEXTS, AT(row_broker, people), 0,
     .help = "operators and groups who have conversations on the approval page, besides who runs the gateway"},
    {"budgets", KEY_LIST, AT(row_broker, budgets), 0, .table = &config_budget_table,
     .help = "how much models may be asked for a tenant, by all its turns together, in a day or a month"},
    {.type = KEY_END}};
const struct table config_broker_table = {"broker", sizeof(struct row_broker), broker_keys};

/* Models are asked through it, as each conversation's own identity. */
static bool has_proxy(const struct config *c)
{
    for (size_t i = 0; i < c->nlisteners; i++) {
        const struct config_listener *l = &c->listener[i];
        if (l->kind == CONFIG_HTTP && l->identity == IDENTITY_TOKEN && l->certificate[0] == '\0')
            return true;
    }
    return false;
}

/* As names of people and of groups are (proxy/ledger/store/people/operators.c). */
static bool is_name(struct span s)
{
    bool ok = s.n > 0 && s.n <= PEOPLE_NAME;
    for (size_t i = 0; i < s.n; i++)
        ok = ok && ((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') ||
                    memchr("._-:@/", s.p[i], 6) != NULL);
    return ok;
}

static void take_people(struct loader *l, const struct items *names, char to[CONFIG_PEOPLE])
{
    for (size_t i = 0; i < names->n; i++) {
        size_t n = strlen(to), room = CONFIG_PEOPLE - n;
        if (!is_name(names->v[i].text)) {
            load_problem(l, names->v[i].at, "C009",
                         "each is the name of an operator or of a group: up to 64 of a-z 0-9 . _ - : @ /");
            continue;
        }
        int more = snprintf(to + n, room, "%.*s\n", SPAN_FMT(names->v[i].text));
        if (more < 0 || (size_t)more >= room)
            load_problem(l, names->at, "C018", "these are too many: at most %d bytes of names", CONFIG_PEOPLE - 1);
    }
}

/* A database is said without its password, which is in a file that nobody else reads. */
static void take_store(struct loader *l, const struct row_broker *r, const char *file, struct config_broker *to)
{
    struct pg_where where;
    struct stat st;
    struct err e;
    bool here = r->store.at == NULL || span_eq(r->store.text, SPAN("sqlite:broker.db"));
    if (!here && pg_where_read(r->store.text, &where, &e) != 0)
        load_problem(l, r->store.at, "C005",
                     "store: is sqlite:broker.db or postgresql://USER@HOST:PORT/DATABASE: %.300s", e.text);
    if (!here)
        config_copy(l, to->store, sizeof(to->store), &r->store);
    if (r->password.at == NULL)
        return;
    if (here)
        load_problem(l, r->password.at, "C005", "store_password: goes with store: postgresql://...");
    config_copy_path(l, to->password, CONFIG_PATH, file, &r->password);
    if (l->failed)
        return;
    if (lstat(to->password, &st) != 0)
        load_problem(l, r->password.at, "C019", "store_password: %.200s cannot be read: %s", to->password,
                     strerror(errno));
    else if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0)
        load_problem(l, r->password.at, "C019",
                     "store_password: %.200s has to be a file that its owner alone can read: chmod 600",
                     to->password);
}

/* As the broker asks it (broker/work/wire.c): a name or an IPv4 address, and a port that there is. */
static bool asked_at(struct span authority)
{
    struct span host, port;
    uint64_t n = 1;
    bool ok = !span_cut(authority, ':', &host, &port) || (port.n > 0 && span_u64(port, 65535, &n) == 0);
    for (size_t i = 0; i < host.n; i++) {
        uint8_t c = host.p[i], low = c | 0x20;
        ok &= (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
    }
    return ok && n > 0 && host.n > 0 && host.n <= OTLP_HOST_MAX;
}

/* It is asked as any server is, by its URL alone: a key for it is a credential of the policy. */
static void take_otlp(struct loader *l, const char *key, const struct item *it, char to[CONFIG_PATH])
{
    struct span s = it->text;
    bool tls = span_starts(s, SPAN("https://")), ok = tls || span_starts(s, SPAN("http://"));
    struct span rest = span_from(s, tls ? 8 : 7);
    size_t slash = span_index(rest, '/');
    if (it->at == NULL)
        return;
    for (size_t i = 0; i < s.n; i++)
        ok &= s.p[i] > 0x20 && s.p[i] < 0x7f && s.p[i] != '#' && s.p[i] != '@' && s.p[i] != '?';
    if (!ok || slash == rest.n || !asked_at(span_first(rest, slash)))
        load_problem(l, it->at, "C005",
                     "%s: is http:// or https://, a host by its name or IPv4 address, a port from 1 to 65535 where "
                     "it is not the usual one, and a path, without a name, a key, a ? or a #, such as "
                     "https://collector.example/v1/traces",
                     key);
    else
        config_copy(l, to, CONFIG_PATH, it);
}

/* What is of turns alone, where none are run. */
static void serves_only(struct loader *l, const struct row_broker *r)
{
    const struct {
        const char *key;
        const struct node *at;
    } of[] = {{"workers", r->workers.at},
              {"image", r->image.at},
              {"lanes", r->lanes.at},
              {"otlp", r->otlp.at},
              {"otlp_metrics", r->otlp_metrics.at}};
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
        if (of[i].at != NULL)
            load_problem(l, of[i].at, "C005",
                         "%s: with only: [stream] no turns are run here: take it out, or add turn", of[i].key);
}

/* What is not done here is done by another gateway's broker, of the same database. */
static void take_only(struct loader *l, const struct row_broker *r, struct config_broker *to)
{
    struct err e;
    to->duties = r->only.at != NULL ? 0 : DUTY_ALL;
    for (size_t i = 0; i < r->only.n; i++)
        if (duty_add(r->only.v[i].text, &to->duties, &e) != 0)
            load_problem(l, r->only.v[i].at, "C005", "%.300s", e.text);
    if (l->failed || to->duties == DUTY_ALL)
        return;
    if (to->store[0] == '\0')
        load_problem(l, r->only.at, "C005",
                     "only: goes with store: postgresql://..., which other gateways have, too: of a file here nobody "
                     "would do the rest");
    if (to->duties == DUTY_TURN && (r->http.at != NULL || r->people.at != NULL))
        load_problem(l, r->http.at != NULL ? r->http.at : r->people.at, "C005",
                     "%s: with only: [turn] nobody serves here: take it out, or add stream",
                     r->http.at != NULL ? "http" : "people");
    if (to->duties == DUTY_STREAM)
        serves_only(l, r);
}

void config_take_broker(struct loader *l, const struct row_broker *r, const char *file, struct config *c)
{
    struct config_broker *to = &c->broker;
    if (r->at == NULL)
        return;
    take_store(l, r, file, to);
    take_only(l, r, to);
    if ((to->duties & DUTY_STREAM) && r->http.at == NULL)
        load_problem(l, r->at, "P010",
                     "broker needs the key \"http\": loopback address:port where conversations are "
                     "had");
    else if ((to->duties & DUTY_STREAM) && !config_loopback(r->http.text))
        load_problem(l, r->at, "C005",
                     "without TLS the broker may only listen on loopback: 127.0.0.1, ::1 or localhost; put a server "
                     "with TLS in front of it");
    if (r->image.at != NULL && !config_sandbox_ok(r->image.text))
        load_problem(l, r->image.at, "C020", "an image's name is 1 to 63 of a-z 0-9 . _ -");
    if ((to->duties & DUTY_TURN) && !has_proxy(c))
        load_problem(
            l, r->at, "C005",
            "the broker asks models through the gateway, as `identity: token`: listeners: has no http listener "
            "of that kind without tls");
    if (r->http.at != NULL)
        config_copy(l, to->address, sizeof(to->address), &r->http);
    config_copy_path(l, to->models, CONFIG_PATH, file, &r->models);
    if (!l->failed && access(to->models, R_OK) != 0)
        load_problem(l, r->models.at, "C019", "models: %.200s cannot be read: %s", to->models, strerror(errno));
    if (r->tools.at != NULL)
        config_copy_path(l, to->tools, CONFIG_PATH, file, &r->tools);
    if (r->tools.at != NULL && !l->failed && access(to->tools, R_OK) != 0)
        load_problem(l, r->tools.at, "C019", "tools: %.200s cannot be read: %s", to->tools, strerror(errno));
    if (r->image.at != NULL)
        config_copy(l, to->image, sizeof(to->image), &r->image);
    take_otlp(l, "otlp", &r->otlp, to->otlp);
    take_otlp(l, "otlp_metrics", &r->otlp_metrics, to->otlp_metrics);
    config_take_lanes(l, &r->lanes, to->lanes);
    take_people(l, &r->people, to->people);
    config_take_budgets(l, &r->budgets, c);
    to->workers = (to->duties & DUTY_TURN) == 0 ? 0 : r->workers.at != NULL ? r->workers.v : WORKERS;
}
