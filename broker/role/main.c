/* countersign-broker: its start-up, as a checklist. One process serves, each other one runs turns (--only). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "broker/budgets.h"
#include "broker/mcp/table/table.h"
#include "broker/models/route/table.h"
#include "broker/role/migrate.h"
#include "broker/serve/serve.h"
#include "broker/store/postgres/postgres.h"
#include "broker/store/sqlite/sqlite.h"
#include "broker/work/seen/export.h"
#include "broker/work/work.h"
#include "common/file.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "common/net/tls.h"
#include "common/role/role.h"
#include "proxy/duty/duty.h"
#include "proxy/msgs.h"

enum {
    TEXT = 1024,
    OPEN_TRIES = 100,
    OPEN_PAUSE_MS = 50,
    /* How long one call waits for a database that is away: a worker most of its claim, since it can do nothing else;
     * who serves, so long that a restart of it is not noticed. */
    WORKER_PATIENCE_MS = WORK_CLAIM_MS * 4 / 5,
    SERVE_PATIENCE_MS = 3000,
    START_PATIENCE_MS = 1000,
    PARENT_FD = 3 /* common/role/role.h */
};

struct start {
    char dir[TEXT], db[TEXT], models[TEXT], tools[TEXT], otlp[TEXT], otlp_metrics[TEXT], proxy[128], boot[64],
        url[TEXT], has_password[8];
    char budget_lines[BUDGETS_TEXT_MAX];
    struct budgets budgets;
    struct pg_where where;
    char password[PG_PASSWORD_MAX + 1];
    size_t password_n;
    uint64_t worker, workers, owner;
    unsigned does; /* enum duty, one of them */
    struct work work;
    struct serve serve;
    struct loop *loop;
    struct chan *desk;
};

static bool runs(const struct start *s)
{
    return (s->does & DUTY_TURN) != 0;
}

static void setting(void *arg, struct span key, struct span value)
{
    struct start *s = arg;
    const struct {
        const char *key;
        char *to;
        size_t room;
    } texts[] = {{"broker_dir", s->dir, sizeof(s->dir)},
                 {"broker_db", s->db, sizeof(s->db)},
                 {"models", s->models, sizeof(s->models)},
                 {"tools", s->tools, sizeof(s->tools)},
                 {"boot", s->boot, sizeof(s->boot)},
                 {"proxy", s->proxy, sizeof(s->proxy)},
                 {"otlp", s->otlp, sizeof(s->otlp)},
                 {"otlp_metrics", s->otlp_metrics, sizeof(s->otlp_metrics)},
                 {"broker_store", s->url, sizeof(s->url)},
                 {"broker_budgets", s->budget_lines, sizeof(s->budget_lines)},
                 {"broker_password", s->has_password, sizeof(s->has_password)}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (span_eq(key, span_str(texts[i].key)) &&
            snprintf(texts[i].to, texts[i].room, "%.*s", SPAN_FMT(value)) >= (int)texts[i].room)
            log_die("the setting %s is too long", texts[i].key);
    const struct {
        const char *key;
        uint64_t *to;
    } numbers[] = {{"worker", &s->worker}, {"workers", &s->workers}, {"owner_uid", &s->owner}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (span_eq(key, span_str(numbers[i].key)) && span_u64(value, UINT32_MAX, numbers[i].to) != 0)
            log_die("a setting is not a number");
}

static void desk_frame(void *arg, struct chan *c, struct frame *f)
{
    struct start *s = arg;
    if (runs(s))
        errand_frame(&s->work.errands, f);
    else
        serve_frame(&s->serve, f);
}

static void desk_gone(void *arg, struct chan *c)
{
    struct start *s = arg;
    chan_free(&s->desk);
    s->work.errands.desk = NULL;
    if (runs(s))
        errands_lost(&s->work.errands);
    else
        serve_desk(&s->serve, NULL);
}

static void peer(void *arg, unsigned role, uint64_t instance, struct span info, int fd)
{
    static const struct chan_ops ops = {desk_frame, desk_gone};
    struct start *s = arg;
    if (role != ROLE_DESK) {
        close(fd);
        return;
    }
    if (s->desk != NULL)
        desk_gone(s, s->desk);
    s->desk = chan_new(s->loop, fd, &ops, s);
    s->work.errands.desk = s->desk;
    if (!runs(s))
        serve_desk(&s->serve, s->desk);
}

static void take_ca(struct start *s, struct frame *f)
{
    struct err e;
    const struct tls_trust trust = {.roots_pem = f->payload};
    struct tls_client *c = tls_client_new(&trust, &e);
    if (c == NULL) {
        log_error("the gateway's CA cannot be used: %s", e.text);
        return;
    }
    tls_client_free(&s->work.tls);
    s->work.tls = c;
}

static void frame(void *arg, struct frame *f)
{
    struct start *s = arg;
    struct msg_in m = msg_in(f->payload);
    if (f->type == M_BROKER_CA) {
        if (runs(s))
            take_ca(s, f);
        return;
    }
    unsigned kind = msg_get_u8(&m);
    (void)msg_get_span(&m, 255);
    int fd = frame_take_fd(f, 0);
    bool ours = f->type == M_LISTEN && msg_end(&m) == 0 && (kind == LISTEN_BROKER || kind == LISTEN_BROKER_OWN);
    if (!ours || fd < 0 || runs(s)) {
        log_error("message %u of the parent is not understood", f->type);
        if (fd >= 0)
            close(fd);
    } else if (serve_listen(&s->serve, fd, kind == LISTEN_BROKER_OWN) != 0) {
        log_die("the broker cannot listen: no memory");
    }
}

static void stop(void *arg)
{
    struct start *s = arg;
    s->work.stopping = true;
    if (s->work.task != NULL)
        task_leave(s->work.task);
    export_end(&s->work);
    exit(0);
}

/* What turns did is sent to the operator's collector, where there is one. */
static void export_those(struct start *s)
{
    s->work.spans = s->otlp[0] != '\0' ? export_new(&s->work, EXPORT_SPANS, s->otlp) : NULL;
    s->work.metrics = s->otlp_metrics[0] != '\0' ? export_new(&s->work, EXPORT_METRICS, s->otlp_metrics) : NULL;
    if ((s->otlp[0] != '\0' && s->work.spans == NULL) || (s->otlp_metrics[0] != '\0' && s->work.metrics == NULL))
        log_die("out of memory");
}

/* Read while files can be opened. */
static void read_models(struct start *s)
{
    struct dynbuf text;
    struct err e;
    dynbuf_init(&text, TABLE_TEXT_MAX);
    arena_init(&s->work.models_arena, TABLE_ARENA_MAX);
    if (file_read(s->models, &text) != 0)
        log_die("the table of models cannot be read: %s", s->models);
    struct span kept = arena_copy(&s->work.models_arena, dynbuf_span(&text));
    if (kept.p == NULL || table_read(s->models, kept, &s->work.models_arena, &s->work.models, &e) != 0)
        log_die("%s", kept.p == NULL ? "the table of models is empty" : e.text);
    dynbuf_free(&text);
}

/* Who serves knows their names alone. */
static void name_models(struct start *s)
{
    const struct route_table *t = &s->work.models;
    struct span *name = arena_alloc(&s->work.models_arena, t->n * sizeof(*name));
    for (size_t i = 0; name != NULL && i < t->n; i++)
        name[i] = t->model[i].target.name;
    s->serve.model = name;
    s->serve.models = name != NULL ? t->n : 0;
    struct span *answer = arena_alloc(&s->work.models_arena, t->task[0].n * sizeof(*answer));
    for (size_t i = 0; answer != NULL && i < t->task[0].n; i++)
        answer[i] = t->model[t->task[0].model[i]].target.name;
    s->serve.answer = answer;
    s->serve.answers = answer != NULL ? t->task[0].n : 0;
}

static void read_tools(struct start *s)
{
    struct dynbuf text;
    struct err e;
    if (s->tools[0] == '\0')
        return;
    dynbuf_init(&text, MCP_TABLE_TEXT_MAX);
    arena_init(&s->work.tools_arena, MCP_TABLE_ARENA_MAX);
    if (file_read(s->tools, &text) != 0)
        log_die("the file of tools cannot be read: %s", s->tools);
    struct span kept = arena_copy(&s->work.tools_arena, dynbuf_span(&text));
    if (kept.p == NULL || mcp_table_read(s->tools, kept, &s->work.tools_arena, &s->work.tools, &e) != 0)
        log_die("%s", kept.p == NULL ? "the file of tools is empty" : e.text);
    dynbuf_free(&text);
}

/* Who serves makes it where there is none; the workers come to one that is there. While it is being made, or taken
 * over from one that was killed, it may be refused for a moment. */
static struct bstore *open_store(const struct start *s)
{
    const struct timespec pause = {.tv_nsec = OPEN_PAUSE_MS * 1000000L};
    struct bstore *store = NULL;
    struct stat st;
    struct err e = {"it is not there"};
    for (int i = 0; i < OPEN_TRIES && store == NULL; i++) {
        if (i > 0)
            (void)nanosleep(&pause, NULL);
        if (!runs(s) || (stat(s->db, &st) == 0 && st.st_size > 0))
            store = bstore_sqlite_open(s->db, NULL, &e);
    }
    if (store == NULL)
        log_die("the broker's store: %s", e.text);
    return store;
}

/* Which gateway this is, of several with one database: made once, and kept with what else the broker keeps here. Two
 * processes may make it at once; the first one's is everybody's. */
static void home_of(const struct start *s, char home[ID_TEXT + 1])
{
    char path[TEXT + 16], mine[TEXT + 32];
    struct dynbuf text;
    struct id id;
    (void)snprintf(path, sizeof(path), "%s/home", s->dir);
    (void)snprintf(mine, sizeof(mine), "%s.%llu", path, (unsigned long long)s->worker);
    dynbuf_init(&text, 2 * ID_TEXT);
    if (access(path, F_OK) != 0) {
        int fd = id_new(&id) == 0 ? open(mine, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
        id_text(&id, home);
        if (fd < 0 || write(fd, home, ID_TEXT) != ID_TEXT || fsync(fd) != 0)
            log_die("the broker's folder cannot be written: %s", mine);
        close(fd);
        (void)!link(mine, path);
        (void)unlink(mine);
    }
    if (file_read(path, &text) != 0 || id_parse(dynbuf_span(&text), &id) != 0)
        log_die("%s is not as the broker wrote it: it has to be one id; if nothing runs, remove it", path);
    id_text(&id, home);
    dynbuf_free(&text);
}

/* A connection that breaks, or is not there yet, is made by the store itself: a database that is away ends nothing,
 * least of all the rest of the gateway. */
static struct bstore *open_postgres(struct start *s)
{
    struct err e;
    struct bstore *store = bstore_postgres_later(&s->where, span_of(s->password, s->password_n), NULL, &e);
    if (store == NULL)
        log_die("the broker's store: %s", e.text);
    home_of(s, store->home);
    store->patience_ms = START_PATIENCE_MS;
    return store;
}

/* Who serves says what is wrong with it, before anybody asks. */
static void look_at_store(struct start *s)
{
    if (s->url[0] && !runs(s) && bstore_sweep(s->work.store) != BS_OK)
        log_error("the broker's store cannot be used: %s; until it can, what the broker is asked is answered with "
                  "503, and no turn goes on; the rest of the gateway is not held up by that",
                  bstore_why(s->work.store));
}

/* From now on it waits as long as usual; while the gateway starts, others wait for this process. */
static void be_patient(struct start *s)
{
    if (s->url[0] == '\0')
        return;
    s->work.store->patience_ms = runs(s) ? WORKER_PATIENCE_MS : SERVE_PATIENCE_MS;
    for (size_t i = 0; i + 1 < SERVE_LANES; i++)
        if (s->serve.more[i] != NULL)
            s->serve.more[i]->patience_ms = SERVE_PATIENCE_MS;
}

/* Who serves has more than one connection: who waits for a slow answer holds up nobody else. */
static void open_stores(struct start *s)
{
    s->work.store = s->serve.store = s->url[0] ? open_postgres(s) : open_store(s);
    for (size_t i = 0; s->url[0] && !runs(s) && i < SERVE_LANES - 1; i++)
        s->serve.more[i] = open_postgres(s);
    explicit_bzero(s->password, sizeof(s->password));
}

/* Before anything is confined: where it is, and the password, from the descriptor that the parent opened. */
static void read_store(struct start *s, const struct role *r)
{
    struct err e;
    if (s->url[0] == '\0')
        return;
    if (pg_where_read(span_str(s->url), &s->where, &e) != 0)
        log_die("the broker's store: %s", e.text);
    if (s->has_password[0] == '\0')
        return;
    int fd = role_config_fd(r, 0);
    ssize_t n = fd >= 0 ? pread(fd, s->password, sizeof(s->password), 0) : -1;
    if (n < 0 || n > PG_PASSWORD_MAX)
        log_die("the broker's store: store_password: %s", n < 0 ? "it cannot be read" : "the password is too long");
    while (n > 0 && (s->password[n - 1] == '\n' || s->password[n - 1] == '\r'))
        n--;
    if (n == 0)
        log_die("the broker's store: store_password: the file has no password in it: write one, or take the setting "
                "out");
    if (memchr(s->password, '\0', (size_t)n) != NULL)
        log_die("the broker's store: the password has a zero byte in it");
    s->password_n = (size_t)n;
    close(fd);
}

/* Of every connection to it: who asks a model is held to them, and who serves says so before. */
static void set_budgets(struct start *s)
{
    if (budgets_read(span_str(s->budget_lines), &s->budgets) != 0)
        log_die("the budgets of tenants cannot be read");
    s->work.store->budgets = &s->budgets;
    for (size_t i = 0; i + 1 < SERVE_LANES; i++)
        if (s->serve.more[i] != NULL)
            s->serve.more[i]->budgets = &s->budgets;
}

static uint16_t proxy_port(const struct start *s)
{
    const char *colon = strrchr(s->proxy, ':');
    uint64_t n = 0;
    if (colon == NULL || span_u64(span_str(colon + 1), 65535, &n) != 0)
        log_die("the gateway has no proxy for the broker");
    return (uint16_t)n;
}

/* The one way to the database, besides the gateway's own proxy for a worker. */
static void wall_of(struct start *s, struct wall *w, uint16_t ports[2], const char *const dirs[],
                    const char *const roots[])
{
    *w = (struct wall){.calls = WALL_FILES | WALL_ACCEPT, .rw_dirs = dirs, .ports = ports};
    if (runs(s)) {
        w->calls = WALL_FILES | WALL_PAIR | WALL_CONNECT;
        ports[w->nports++] = proxy_port(s);
    }
    if (s->url[0] == '\0')
        return;
    if (s->where.folder[0] != '\0') {
        w->calls |= WALL_UNIX;
        return;
    }
    w->calls |= WALL_CONNECT;
    ports[w->nports++] = s->where.port;
    if (roots[0][0] != '\0')
        w->ro_paths = roots;
}

/* The same for each process that is this worker of this gateway, one after the other. */
static void who(const struct start *s, struct id *id)
{
    struct digest d;
    char text[128];
    int n = snprintf(text, sizeof(text), "%s worker %llu", s->boot, (unsigned long long)s->worker);
    digest_of(span_of(text, n > 0 ? (size_t)n : 0), &d);
    memcpy(id->b, d.b, ID_BYTES);
}

/* What this process is to do: one of both, so that who parses what callers send has no way to a model or a sandbox,
 * and nobody who serves waits with a turn. */
static unsigned read_words(int argc, char *argv[])
{
    struct err e = {"say --only stream, or --only turn"};
    unsigned does = 0;
    bool ok = argc == 3 && strcmp(argv[1], "--only") == 0 && duty_read(span_str(argv[2]), &does, &e) == 0;
    if (ok && does == DUTY_ALL)
        (void)err_set(&e, "only: one process does one of them; the gateway starts one for each");
    else if (ok && fcntl(PARENT_FD, F_GETFD) >= 0)
        return does;
    else if (ok)
        (void)err_set(&e,
                      "it is started by its gateway, which knows keys and sandboxes: say `broker: { only: [%s] }` "
                      "in countersign.yaml(5)",
                      duty_words(does));
    (void)fprintf(stderr, "countersign-broker: %s (countersign-broker(7))\n", e.text);
    exit(2);
}

/* For who looks for what this process does not do. */
static void say_duty(const struct start *s)
{
    if (runs(s))
        log_info("runs turns, and serves nobody (--only turn)");
    else if (s->workers > 0)
        log_info("serves conversations (--only stream); %llu processes beside it run turns",
                 (unsigned long long)s->workers);
    else
        log_info("serves conversations (--only stream); nobody runs turns at this gateway: another one with this "
                 "store has to");
}

int main(int argc, char *argv[])
{
    static struct start s;
    static const struct role_ops ops = {.peer = peer, .config = setting, .frame = frame, .stop = stop};
    const char *const dirs[] = {s.dir, NULL};
    const char *const roots[] = {s.where.roots, NULL};
    uint16_t ports[2] = {0, 0};
    struct wall wall;
    if (argc > 1 && strcmp(argv[1], "migrate") == 0)
        return migrate(argc - 2, argv + 2);
    s.does = read_words(argc, argv);
    if ((s.loop = loop_new()) == NULL)
        return 1;
    s.work.loop = s.serve.loop = s.loop;
    s.work.errands = (struct errands){.loop = s.loop, .most = 2 * WORK_WISHES_MAX};
    struct role *r = role_start("broker", s.loop, &ops, &s);
    umask(077);
    read_models(&s);
    name_models(&s);
    read_tools(&s);
    read_store(&s, r);
    wall_of(&s, &wall, ports, dirs, roots);
    role_confine(r, &wall);
    (void)setenv("HOME", "/nonexistent", 1); /* a library that looks for files of a user's there asks nobody where */
    open_stores(&s);
    set_budgets(&s);
    look_at_store(&s);
    s.work.store->share = s.workers > 1 ? s.workers - 1 : 1; /* one tenant's turns never have all workers */
    (void)snprintf(s.work.proxy, sizeof(s.work.proxy), "%s", s.proxy);
    s.serve.owner = (unsigned)s.owner;
    s.serve.workers = s.workers;
    who(&s, &s.work.id);
    s.work.number = (unsigned)s.worker;
    if (runs(&s))
        export_those(&s);
    if (runs(&s))
        work_begin(&s.work);
    else if (serve_begin(&s.serve) != 0)
        log_die("out of memory");
    be_patient(&s);
    say_duty(&s);
    role_ready(r);
    return loop_run(s.loop) == 0 ? 0 : 1;
}
