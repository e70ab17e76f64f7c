/* countersign-ledger: its start-up, as a checklist. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/time/clock.h"
#include "common/role/role.h"
#include "proxy/ledger/ledger.h"

struct start {
    struct ledger ledger;
    struct store_config config;
    char desk[512];
    char db[4096], dir[4096], boot[128], kernel_boot[64];
    bool running;
};

static void copy_text(char *to, size_t cap, struct span v)
{
    snprintf(to, cap, "%.*s", SPAN_FMT(v));
}

static uint64_t number(struct span key, struct span v, uint64_t max)
{
    uint64_t n;
    if (span_u64(v, max, &n) != 0)
        log_die("setting %.*s is not a number up to %llu", SPAN_FMT(key), (unsigned long long)max);
    return n;
}

static void config(void *arg, struct span key, struct span value)
{
    struct start *s = arg;
    if (span_eq(key, SPAN("db")))
        copy_text(s->db, sizeof(s->db), value);
    else if (span_eq(key, SPAN("store_dir")))
        copy_text(s->dir, sizeof(s->dir), value);
    else if (span_eq(key, SPAN("boot")))
        copy_text(s->boot, sizeof(s->boot), value);
    else if (span_eq(key, SPAN("expires_ms")))
        s->config.expires_ms = number(key, value, STORE_EXPIRES_MAX_MS);
    else if (span_eq(key, SPAN("pending_max")))
        s->config.pending_max = (unsigned)number(key, value, STORE_OPEN_MAX);
    else if (span_eq(key, SPAN("audit_reads")))
        s->config.audit_reads = number(key, value, 1) == 1;
    else if (span_eq(key, SPAN("desk_url")))
        copy_text(s->desk, sizeof(s->desk), value);
    else if (span_eq(key, SPAN("notify")) && ledger_tell_targets(&s->ledger, value) != 0)
        log_die("who is to be told cannot be read");
    else if (span_eq(key, SPAN("new_state")))
        s->config.new_state = number(key, value, 1) == 1;
    else if (span_eq(key, SPAN("secrets_only")))
        s->config.secrets_only = number(key, value, 1) == 1;
    else if (span_eq(key, SPAN("max_pages")))
        s->config.max_pages = (unsigned)number(key, value, 1u << 30);
}

static void peer(void *arg, unsigned role, uint64_t instance, struct span info, int fd)
{
    struct start *s = arg;
    ledger_peer(&s->ledger, role, fd);
}

static void frame(void *arg, struct frame *f)
{
    struct start *s = arg;
    ledger_parent_frame(&s->ledger, f);
}

static void stop(void *arg)
{
    struct start *s = arg;
    if (!s->running)
        exit(0);
    if (ledger_end(&s->ledger))
        loop_stop(s->ledger.loop);
}

/* Which CLOCK_BOOTTIME this is; without it deadlines are counted by the wall clock over a restart. */
static void read_kernel_boot(struct start *s)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, s->kernel_boot, sizeof(s->kernel_boot) - 1);
    if (fd >= 0)
        close(fd);
    s->config.kernel_boot = span_trim(span_of(s->kernel_boot, n < 0 ? 0 : (size_t)n));
    if (s->config.kernel_boot.n && s->config.kernel_boot.p[s->config.kernel_boot.n - 1] == '\n')
        s->config.kernel_boot.n--;
}

static void open_store(struct start *s)
{
    struct err e = {""};
    s->config.path = s->db;
    s->config.boot = span_str(s->boot);
    s->config.changed = ledger_tell;
    s->config.lease = ledger_lease_changed;
    s->config.arg = &s->ledger;
    s->ledger.tells.targets.desk = span_str(s->desk);
    s->config.tell = &s->ledger.tells.targets;
    if (ledger_start(&s->ledger) != 0)
        log_die("out of memory");
    s->ledger.store = store_open(&s->config, loop_wall(s->ledger.loop), clock_ms(CLOCK_BOOTTIME), &e);
    if (s->ledger.store == NULL)
        log_die("%s", e.text);
}

int main(void)
{
    static struct start s = {.config = {.audit_reads = true}};
    static const struct role_ops ops = {.peer = peer, .config = config, .frame = frame, .stop = stop};
    const char *const dirs[] = {s.dir, NULL};
    const struct wall wall = {.calls = WALL_FILES | WALL_MEMFD, .rw_dirs = dirs};
    dynbuf_init(&s.ledger.tells.said, 32 * 1024);
    if ((s.ledger.loop = loop_new()) == NULL)
        return 1;
    struct role *r = role_start("ledger", s.ledger.loop, &ops, &s);
    umask(027); /* the desk reads through its group; nobody else does */
    read_kernel_boot(&s);
    if ((s.ledger.signer = signer_new()) == NULL)
        log_die("no signing key: out of memory or randomness");
    role_confine(r, &wall);
    open_store(&s); /* as the user it will stay: the files are its own */
    role_ready(r);
    s.running = true;
    int rc = loop_run(s.ledger.loop);
    ledger_stop(&s.ledger);
    return rc == 0 ? 0 : 1;
}
