#include "common/role/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FILE_MAX = 64 * 1024,
    CPU_PERIOD_US = 100000,
    DIR_ROOM = 2 * PATH_MAX,
    FILE_ROOM = DIR_ROOM + 64,
    END_TRIES = 100,    /* moments */
    SWEEP_TRIES = 1000, /* the same, of all together */
    V1 = 1,
    V2 = 2,
};

static const struct {
    unsigned bit;
    const char *name;
} controllers[] = {{CGROUP_FREEZER, "freezer"}, /* first: what is frozen there does not leave the others */
                   {CGROUP_MEMORY, "memory"},
                   {CGROUP_PIDS, "pids"},
                   {CGROUP_CPU, "cpu"},
                   {CGROUP_COUNTER, "cpuacct"}};
enum { CONTROLLERS = sizeof(controllers) / sizeof(controllers[0]) };

static const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};

/* --- files ------------------------------------------------------------------ */

/* NUL-terminated. -1 with errno. */
static int read_file(const char *path, char out[FILE_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got = -1;

    if (fd < 0)
        return -1;
    while (n < FILE_MAX - 1 && (got = read(fd, out + n, FILE_MAX - 1 - n)) > 0)
        n += (size_t)got;
    close(fd);
    out[n] = '\0';
    return got < 0 ? -1 : 0;
}

static int write_text(const char *dir, const char *file, const char *value)
{
    char path[FILE_ROOM];
    int fd, rc;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    rc = write(fd, value, strlen(value)) == (ssize_t)strlen(value) ? 0 : -1;
    close(fd);
    return rc;
}

static int write_number(const char *dir, const char *file, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return write_text(dir, file, text);
}

/* Is this word in the list? */
static bool has_word(const char *list, const char *word)
{
    static const char ends[] = " ,\n";
    size_t n = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || strchr(ends, at[-1])) && strchr(ends, at[n])) /* its NUL is an end, too */
            return true;
    return false;
}

/* --- where it may be -------------------------------------------------------- */

/* Where this controller's hierarchy is mounted as a whole; NULL: version 2's. A line of mountinfo:
 * ID PARENT DEV ROOT POINT OPTIONS ... - TYPE SOURCE SUPER-OPTIONS, whose last names the controllers of version 1. */
static int find_mount(const char *mountinfo, const char *controller, char point[PATH_MAX])
{
    char line[2 * PATH_MAX], root[PATH_MAX];

    for (const char *at = mountinfo; *at;) {
        size_t n = strcspn(at, "\n");
        if (n < sizeof(line)) {
            memcpy(line, at, n);
            line[n] = '\0';
            const char *type = strstr(line, controller ? " - cgroup " : " - cgroup2 ");
            const char *options = type ? strrchr(type, ' ') + 1 : NULL;
            if (type && (!controller || has_word(options, controller)) &&
                sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2 && strcmp(root, "/") == 0)
                return 0;
        }
        at += n + (at[n] == '\n');
    }
    return -1;
}

/* Where we are in it: the line N:CONTROLLERS:PATH, for version 2 0::PATH. */
static int find_own(const char *cgroup, const char *controller, char path[PATH_MAX])
{
    for (const char *at = cgroup; *at;) {
        size_t n = strcspn(at, "\n"), names = strcspn(at, ":") + 1;
        const char *colon = names < n ? memchr(at + names, ':', n - names) : NULL;
        size_t of = colon ? (size_t)(colon - at) - names : 0, rest = colon ? n - names - of - 1 : 0;
        char list[256];
        if (colon && of < sizeof(list) && rest > 0 && rest < PATH_MAX && colon[1] == '/') {
            memcpy(list, at + names, of);
            list[of] = '\0';
            memcpy(path, colon + 1, rest);
            path[rest] = '\0';
            if ((controller ? has_word(list, controller) : of == 0) && !strstr(path, "/.."))
                return 0;
        }
        at += n + (at[n] == '\n');
    }
    return -1;
}

/* --- making it -------------------------------------------------------------- */

static int set_v1(const struct cgroup_folder *f, const struct cgroup_amounts *a)
{
    if (f->holds & CGROUP_MEMORY && (write_number(f->path, "memory.limit_in_bytes", a->memory) != 0 ||
                                     (write_number(f->path, "memory.memsw.limit_in_bytes", a->memory) != 0 &&
                                      errno != ENOENT))) /* swap is not counted, or there is none */
        return -1;
    if (f->holds & CGROUP_PIDS && write_number(f->path, "pids.max", a->pids) != 0)
        return -1;
    if (f->holds & CGROUP_CPU &&
        (write_number(f->path, "cpu.cfs_period_us", CPU_PERIOD_US) != 0 ||
         write_number(f->path, "cpu.cfs_quota_us", a->cpu_percent * (CPU_PERIOD_US / 100)) != 0))
        return -1;
    return 0;
}

static int set_v2(const struct cgroup_folder *f, const struct cgroup_amounts *a)
{
    char cpu[64];

    if (f->holds & CGROUP_MEMORY &&
        (write_number(f->path, "memory.max", a->memory) != 0 ||
         (write_text(f->path, "memory.swap.max", "0") != 0 && errno != ENOENT))) /* no swap, no file */
        return -1;
    if (f->holds & CGROUP_PIDS && write_number(f->path, "pids.max", a->pids) != 0)
        return -1;
    (void)snprintf(cpu, sizeof(cpu), "%llu %d", (unsigned long long)a->cpu_percent * (CPU_PERIOD_US / 100),
                   CPU_PERIOD_US);
    return f->holds & CGROUP_CPU ? write_text(f->path, "cpu.max", cpu) : 0;
}

/* A folder of ours below dir that holds these; of version 1 it may be there already, for another controller of the
 * same mount. */
static bool add_folder(struct cgroup *c, unsigned version, const char *dir, const char *leaf, unsigned holds,
                       const struct cgroup_amounts *a)
{
    struct cgroup_folder *f = &c->folder[c->n];
    int n = c->n < CGROUP_FOLDERS ? snprintf(f->path, sizeof(f->path), "%s/%s", dir, leaf) : -1;

    if (n <= 0 || n >= CGROUP_PATH)
        return false;
    for (unsigned i = 0; i < c->n; i++)
        if (strcmp(c->folder[i].path, f->path) == 0) {
            f = &c->folder[i];
            f->holds |= holds;
            return set_v1(f, a) == 0;
        }
    if (mkdir(f->path, 0755) != 0)
        return false;
    f->version = version;
    f->holds = holds;
    if ((version == V1 ? set_v1 : set_v2)(f, a) == 0) {
        c->n++;
        return true;
    }
    (void)rmdir(f->path);
    return false;
}

/* Does this place give its children all of them? */
static bool gives(const char *dir, unsigned holds)
{
    char path[FILE_ROOM], has[FILE_MAX];

    (void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control", dir);
    if (read_file(path, has) != 0)
        return false;
    for (size_t i = 0; i < CONTROLLERS; i++)
        if (holds & controllers[i].bit && !has_word(has, controllers[i].name))
            return false;
    return true;
}

/* What /proc says of us: the mounts, where we are, and of these a pair in hand. */
struct places {
    char mountinfo[FILE_MAX], cgroup[FILE_MAX], point[PATH_MAX], own[PATH_MAX];
};

static int read_places(struct places *p, const char *proc)
{
    char path[DIR_ROOM];

    (void)snprintf(path, sizeof(path), "%s/mountinfo", proc);
    if (read_file(path, p->mountinfo) != 0)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/cgroup", proc);
    return read_file(path, p->cgroup);
}

static void place(const struct places *p, char path[DIR_ROOM])
{
    (void)snprintf(path, DIR_ROOM, "%s%s", p->point, strcmp(p->own, "/") == 0 ? "" : p->own);
}

/* One further up; false: there is none. */
static bool up(struct places *p)
{
    if (strcmp(p->own, "/") == 0 || p->own[0] == '\0')
        return false;
    *strrchr(p->own, '/') = '\0';
    return true;
}

/* From where we are upwards: the first place that lets us. */
static bool add_v2(struct cgroup *c, struct places *p, const char *leaf, unsigned holds,
                   const struct cgroup_amounts *a)
{
    char path[DIR_ROOM];

    if (find_mount(p->mountinfo, NULL, p->point) != 0 || find_own(p->cgroup, NULL, p->own) != 0)
        return false;
    do {
        place(p, path);
        if (gives(path, holds) && add_folder(c, V2, path, leaf, holds, a))
            return true;
    } while (up(p));
    return false;
}

/* In the hierarchy of version 1 that is mounted at the place in hand. */
static bool add_v1(struct cgroup *c, struct places *p, const char *leaf, size_t controller,
                   const struct cgroup_amounts *a)
{
    char path[DIR_ROOM];

    if (find_own(p->cgroup, controllers[controller].name, p->own) != 0)
        return false;
    place(p, path);
    return add_folder(c, V1, path, leaf, controllers[controller].bit, a);
}

/* Every folder of version 2 freezes and counts; without one there may be hierarchies of version 1 that do. */
static void add_more(struct cgroup *c, struct places *p, const char *leaf, const struct cgroup_amounts *a)
{
    unsigned more = cgroup_freezer(c) ? 0 : (a->freezes ? CGROUP_FREEZER : 0) | (a->counts ? CGROUP_COUNTER : 0);

    for (size_t i = 0; i < CONTROLLERS; i++)
        if (controllers[i].bit & more && find_mount(p->mountinfo, controllers[i].name, p->point) == 0)
            (void)add_v1(c, p, leaf, i, a);
}

bool cgroup_make(struct cgroup *c, const char *proc, const char *leaf, const struct cgroup_amounts *a)
{
    unsigned wanted =
        (a->memory ? CGROUP_MEMORY : 0) | (a->pids ? CGROUP_PIDS : 0) | (a->cpu_percent ? CGROUP_CPU : 0);
    struct places p;

    c->n = 0;
    if (read_places(&p, proc) != 0)
        return false;
    for (size_t i = 0; i < CONTROLLERS; i++) {
        if (!(wanted & controllers[i].bit) || find_mount(p.mountinfo, controllers[i].name, p.point) != 0)
            continue; /* version 2 may have it */
        wanted &= ~controllers[i].bit;
        if (!add_v1(c, &p, leaf, i, a))
            goto fail;
    }
    if (wanted == 0 || add_v2(c, &p, leaf, wanted, a)) {
        if (c->n > 0)
            add_more(c, &p, leaf, a);
        return c->n > 0;
    }
fail:
    cgroup_end(c);
    return false;
}

/* --- in it, and after it ---------------------------------------------------- */

/* Version 1 lets the one thread there is go alone, which waits for nobody; to move a process, the kernel stops all
 * others from starting threads, and waits until each of them knows (10 ms and more). */
int cgroup_join(const struct cgroup *c)
{
    for (unsigned i = 0; i < c->n; i++)
        if (write_text(c->folder[i].path, c->folder[i].version == V1 ? "tasks" : "cgroup.procs", "0") != 0)
            return -1;
    return 0;
}

unsigned cgroup_version(const struct cgroup *c)
{
    return c->n > 0 ? c->folder[0].version : 0;
}

static const struct cgroup_folder *freezer(const struct cgroup *c)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->folder[i].version == V2 || c->folder[i].holds & CGROUP_FREEZER)
            return &c->folder[i];
    return NULL;
}

unsigned cgroup_freezer(const struct cgroup *c)
{
    return freezer(c) ? freezer(c)->version : 0;
}

int cgroup_freeze(const struct cgroup *c, bool on)
{
    const struct cgroup_folder *f = freezer(c);

    if (!f)
        return -1;
    return f->version == V2 ? write_text(f->path, "cgroup.freeze", on ? "1" : "0")
                            : write_text(f->path, "freezer.state", on ? "FROZEN" : "THAWED");
}

int cgroup_frozen(const struct cgroup *c)
{
    const struct cgroup_folder *f = freezer(c);
    char path[FILE_ROOM], text[FILE_MAX];

    if (!f)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/%s", f->path, f->version == V2 ? "cgroup.events" : "freezer.state");
    if (read_file(path, text) != 0)
        return -1;
    return f->version == V2 ? strstr(text, "frozen 1\n") != NULL : strcmp(text, "FROZEN\n") == 0;
}

/* --- what it uses ------------------------------------------------------------- */

/* The number in this file, or behind the word at the beginning of one of its lines. */
static void read_number(const char *dir, const char *file, const char *word, uint64_t *v)
{
    char path[FILE_ROOM], text[FILE_MAX];
    size_t n = word ? strlen(word) : 0;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    if (read_file(path, text) != 0)
        return;
    for (const char *at = text, *next; *at; at = next) {
        size_t line = strcspn(at, "\n");
        next = at + line + (at[line] == '\n');
        if (word && (strncmp(at, word, n) != 0 || at[n] != ' '))
            continue;
        at += word ? n + 1 : 0;
        if (*at >= '0' && *at <= '9')
            *v = strtoull(at, NULL, 10);
        return;
    }
}

void cgroup_usage(const struct cgroup *c, struct cgroup_usage *u)
{
    uint64_t ns = UINT64_MAX;

    *u = (struct cgroup_usage){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (unsigned i = 0; i < c->n; i++) {
        const struct cgroup_folder *f = &c->folder[i];
        bool v2 = f->version == V2;
        if (f->holds & CGROUP_MEMORY) {
            read_number(f->path, v2 ? "memory.current" : "memory.usage_in_bytes", NULL, &u->memory);
            read_number(f->path, v2 ? "memory.peak" : "memory.max_usage_in_bytes", NULL, &u->peak);
            read_number(f->path, "memory.stat", "shmem", &u->files);
        }
        if (f->holds & CGROUP_PIDS)
            read_number(f->path, "pids.current", NULL, &u->pids);
        if (v2)
            read_number(f->path, "cpu.stat", "usage_usec", &u->cpu_us);
        else if (f->holds & CGROUP_COUNTER)
            read_number(f->path, "cpuacct.usage", NULL, &ns);
    }
    if (u->cpu_us == UINT64_MAX && ns != UINT64_MAX)
        u->cpu_us = ns / 1000;
}

/* --- its end ------------------------------------------------------------------ */

/* Version 1 has no file that kills, nor version 2 before Linux 5.14: one after the other, as they are listed; what
 * does not fit is listed the next time. */
static void kill_listed(const char *dir)
{
    char path[FILE_ROOM], text[FILE_MAX], *end;

    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
    if (read_file(path, text) != 0)
        return;
    for (char *at = text; *at; at = end + (*end == '\n')) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            return;
        if (pid > 1 && *end == '\n') /* else it is cut, and would be another's */
            (void)kill((pid_t)pid, SIGKILL);
    }
}

static void kill_all(const struct cgroup_folder *f)
{
    if (f->version != V2 || write_text(f->path, "cgroup.kill", "1") != 0)
        kill_listed(f->path);
    if (f->version == V1) /* who is frozen there dies when it goes on, before it does anything else */
        (void)write_text(f->path, "freezer.state", "THAWED");
}

/* All of them first: as long as it is frozen in one, none of the others can be removed. */
bool cgroup_try_end(struct cgroup *c)
{
    for (unsigned i = 0; i < c->n; i++)
        kill_all(&c->folder[i]);
    for (; c->n > 0; c->n--)
        if (rmdir(c->folder[c->n - 1].path) != 0 && errno == EBUSY)
            return false;
    return true;
}

void cgroup_end(struct cgroup *c)
{
    for (int i = 0; i < END_TRIES && !cgroup_try_end(c); i++)
        (void)nanosleep(&moment, NULL);
    c->n = 0;
}

/* How many of them are there still. */
static unsigned sweep_dir(const char *dir, const char *prefix, unsigned version)
{
    struct cgroup c = {.n = 1};
    DIR *d = opendir(dir);
    const struct dirent *e;
    unsigned left = 0;

    while (d && (e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        int n = snprintf(c.folder[0].path, CGROUP_PATH, "%s/%s", dir, e->d_name);
        c.folder[0].version = version;
        c.n = n > 0 && n < CGROUP_PATH;
        left += !cgroup_try_end(&c);
    }
    if (d)
        closedir(d);
    return left;
}

static unsigned sweep_once(struct places *p, const char *prefix)
{
    char path[DIR_ROOM];
    unsigned left = 0;

    for (size_t i = 0; i < CONTROLLERS; i++)
        if (find_mount(p->mountinfo, controllers[i].name, p->point) == 0 &&
            find_own(p->cgroup, controllers[i].name, p->own) == 0) {
            place(p, path);
            left += sweep_dir(path, prefix, V1);
        }
    if (find_mount(p->mountinfo, NULL, p->point) != 0 || find_own(p->cgroup, NULL, p->own) != 0)
        return left;
    do {
        place(p, path);
        left += sweep_dir(path, prefix, V2);
    } while (up(p));
    return left;
}

/* All are killed before any is waited for: a busy kernel takes seconds to end the processes of many. */
void cgroup_sweep(const char *proc, const char *prefix)
{
    struct places p;

    if (read_places(&p, proc) != 0)
        return;
    for (int i = 0; i < SWEEP_TRIES && sweep_once(&p, prefix) > 0; i++)
        (void)nanosleep(&moment, NULL);
}
