#include "common/role/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum { PATH_ROOM = 64, TEXT_MAX = 4096 };

struct process {
    pid_t pid, parent;
    unsigned long long since; /* with the number, nobody else's */
    unsigned long long ticks, threads, pages;
    bool ours;
};
static struct process all[FAMILY_MAX]; /* of one look */
static struct process stood[FAMILY_MAX];

/* --- what /proc says ---------------------------------------------------------- */

/* Whether that was because there is nobody any more; else nobody knows what he does. */
static bool is_gone(int why)
{
    return why == ENOENT || why == ESRCH;
}

/* NUL-terminated. -1 with errno (is_gone). */
static int read_text(const char *path, char text[TEXT_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, TEXT_MAX - 1) : -1;
    int why = n < 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    errno = why;
    return n > 0 ? 0 : -1;
}

/* A line of stat: NUMBER (NAME) STATE PARENT ..., as the 14th to 17th its time and that of its children, the 20th its
 * threads, the 22nd when it began, the 24th its memory. The name may be anything. -1 with errno (is_gone). */
static int read_stat(const char *path, char *state, struct process *p)
{
    char text[TEXT_MAX];
    unsigned long long time[4];
    int parent;

    if (read_text(path, text) != 0)
        return -1;
    const char *end = strrchr(text, ')');
    errno = EBADMSG;
    if (!end ||
        sscanf(end, ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %llu %*d %llu %*u %llu",
               state, &parent, &time[0], &time[1], &time[2], &time[3], &p->threads, &p->since, &p->pages) != 9)
        return -1;
    p->parent = parent;
    p->ticks = time[0] + time[1] + time[2] + time[3];
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

static const struct process *numbered(size_t n, pid_t pid)
{
    const struct process key = {.pid = pid};

    return bsearch(&key, all, n, sizeof(*all), by_number);
}

/* Who came from whom: of those that are there now, until nothing more follows. How many of them are ours. */
static size_t mark(size_t n, pid_t from)
{
    size_t ours = 0;

    for (size_t i = 0; i < n; i++)
        all[i].ours = false;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            const struct process *parent = all[i].ours ? NULL : numbered(n, all[i].parent);
            if (!parent || (parent->pid != from && !parent->ours))
                continue;
            all[i].ours = more = true;
            ours++;
        }
    }
    return ours;
}

/* All there are. 0: too many, or they cannot be read. *whole false: one that was there could not be looked at, most
 * often because it was gone, and what it may have left is not seen: so does who starts another one and ends, again
 * and again. Those that only their own user may look at are none of ours. */
static size_t look(bool *whole)
{
    char path[PATH_ROOM], state;
    DIR *d = opendir("/proc");
    const struct dirent *e;
    size_t n = 0;

    *whole = true;
    while (d && (errno = 0, e = readdir(d)) != NULL) {
        long pid = strtol(e->d_name, NULL, 10);
        if (pid <= 0)
            continue;
        if (n == FAMILY_MAX) {
            n = 0;
            break;
        }
        (void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
        all[n] = (struct process){.pid = (pid_t)pid};
        if (read_stat(path, &state, &all[n]) == 0 || errno == EACCES || errno == EPERM)
            n++;
        else
            *whole = false;
    }
    if (d && !e && errno != 0)
        *whole = false; /* there may be more */
    if (d)
        closedir(d);
    qsort(all, n, sizeof(*all), by_number);
    for (size_t i = 0; i < n; i++)
        if (all[i].parent != 0 && numbered(n, all[i].parent) == NULL)
            *whole = false; /* it cannot be said whose it is */
    return n;
}

/* --- who runs ------------------------------------------------------------------- */

enum standing { RUNS, WAITS, STANDS };

/* Who waits in the kernel and cannot be interrupted, and was told to stop. */
static bool is_told(pid_t pid)
{
    char path[PATH_ROOM], text[TEXT_MAX];

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    const char *pending = read_text(path, text) == 0 ? strstr(text, "\nShdPnd:") : NULL;
    return pending && strtoull(pending + sizeof("\nShdPnd:") - 1, NULL, 16) >> (SIGSTOP - 1) & 1;
}

/* Each of its threads: the first one may have ended while others run. RUNS also where that cannot be seen. */
static enum standing how_stands(pid_t pid)
{
    char path[2 * PATH_ROOM], state;
    struct process p;
    const struct dirent *e;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return is_gone(errno) ? STANDS : RUNS;
    bool still = true, waits = false;
    while (still && (errno = 0, e = readdir(d)) != NULL) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat", (int)pid, e->d_name);
        if (read_stat(path, &state, &p) != 0)
            still = is_gone(errno);
        else if (state == 'D' && is_told(pid))
            waits = true;
        else
            still = strchr("TtZXx", state) != NULL;
    }
    still = still && (errno == 0 || is_gone(errno));
    closedir(d);
    return !still ? RUNS : waits ? WAITS : STANDS;
}

/* Who waits for the end of a vfork does nothing before it is told to go on, and has a child that stands. Another one
 * that waits may be in the midst of starting somebody, which it finishes before it stops. */
static bool stands(size_t n, pid_t pid)
{
    enum standing how = how_stands(pid);
    for (size_t i = 0; how == WAITS && i < n; i++)
        if (all[i].ours && all[i].parent == pid && how_stands(all[i].pid) == STANDS)
            return true;
    return how == STANDS;
}

/* Whoever has the number when it is taken hold of; if it is still who was meant, it was so then. */
static void tell(const struct process *meant, int signo)
{
    char path[PATH_ROOM], state;
    struct process now;
    int fd = pidfd_open(meant->pid, 0);

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)meant->pid);
    if (fd >= 0 && read_stat(path, &state, &now) == 0 && now.since == meant->since)
        (void)pidfd_send_signal(fd, signo, NULL, 0);
    if (fd >= 0)
        close(fd);
}

/* Those of ours among n, by number. How many. */
static size_t note_ours(size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        if (all[i].ours)
            stood[k++] = all[i];
    return k;
}

/* Whether nobody is of it now but who was among the k that stood; false also if that cannot be seen. Who stands
 * starts nobody; who started another one and ended, or stopped itself, did so before he was found standing, so whom
 * he started is there by now. */
static bool nobody_new(pid_t from, size_t k)
{
    bool whole;
    size_t n = look(&whole);

    if (mark(n, from) == 0)
        return false; /* who stands is still there */
    for (size_t i = 0; whole && i < n; i++) {
        const struct process *was = all[i].ours ? bsearch(&all[i], stood, k, sizeof(*stood), by_number) : NULL;
        whole = !all[i].ours || (was && was->since == all[i].since);
    }
    return whole;
}

int family_stop(pid_t from)
{
    bool whole;
    size_t n = look(&whole), ours = mark(n, from);
    bool still = whole;

    for (size_t i = 0; i < n; i++)
        if (all[i].ours && !stands(n, all[i].pid)) {
            tell(&all[i], SIGSTOP);
            still = false;
        }
    if (ours == 0)
        return -1;
    return still && nobody_new(from, note_ours(n));
}

int family_continue(pid_t from)
{
    bool whole;
    size_t n = look(&whole), ours = mark(n, from);

    for (size_t i = 0; i < n; i++)
        if (all[i].ours)
            tell(&all[i], SIGCONT);
    return ours > 0 ? 0 : -1;
}

void family_usage(const pid_t *from, size_t n, struct family_usage *u)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), ticks = (uint64_t)sysconf(_SC_CLK_TCK);
    bool whole;
    size_t there = look(&whole);

    for (size_t i = 0; i < n; i++) {
        u[i] = (struct family_usage){UINT64_MAX, UINT64_MAX, UINT64_MAX};
        if (mark(there, from[i]) == 0)
            continue;
        u[i] = (struct family_usage){0};
        for (size_t k = 0; k < there; k++)
            if (all[k].ours) {
                u[i].memory += all[k].pages * page;
                u[i].pids += all[k].threads;
                u[i].cpu_us += all[k].ticks * 1000000 / ticks;
            }
    }
}
