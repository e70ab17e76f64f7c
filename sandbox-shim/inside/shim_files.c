#include "sandbox-shim/inside/shim_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_beneath.h"
#include "sandbox-shim/inside/shim_command.h"
#include "sandbox-shim/inside/shim_tree.h"
#include "sandbox-shim/inside/watch/shim_watch.h"

enum { ROOT_FD = 3, PIECE = 32 * 1024, ENTRY_MAX = 1 + 2 + 8 + 8 + 2 * (4 + PATH_MAX), MODE_BITS = 0777 };

static struct {
    int root;
    char path[PATH_MAX];
} workspace = {.root = -1};

void files_begin(void)
{
    workspace.root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* A neighbour may have closed it before a command with walls of its own began, of whom no files are asked. */
    if ((workspace.root < 0 && errno != EACCES) || !getcwd(workspace.path, sizeof(workspace.path)))
        die(EXIT_SETUP, "cannot open the workspace: %s", strerror(errno));
}

/* It may have waited for its name: what it would show of that is the age of its folders. */
bool files_named(const char *name)
{
    static const char *const folders[] = {"/home/agent", "/home", "/run", "/tmp", "/var/tmp", "/dev/shm", "."};

    if (!name || setenv("COUNTERSIGN_SANDBOX", name, 1) != 0)
        return false;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        (void)!utimensat(AT_FDCWD, folders[i], NULL, 0); /* those that are its user's */
    return true;
}

/* Relative to the workspace; NULL with errno: it begins elsewhere, or is too long. */
static const char *relative(const char *path)
{
    size_t n = strlen(workspace.path);

    if (strnlen(path, TALK_PATH_MAX + 1) > TALK_PATH_MAX) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (*path == '/') {
        if (strncmp(path, workspace.path, n) != 0 || (path[n] != '/' && path[n] != '\0')) {
            errno = EXDEV;
            return NULL;
        }
        path += n;
    }
    while (*path == '/')
        path++;
    return *path ? path : ".";
}

static int out(void *arg, const uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t some = write(STDOUT_FILENO, p, n);
        if (some < 0 && errno != EINTR)
            return -1;
        p += some > 0 ? some : 0;
        n -= some > 0 ? (size_t)some : 0;
    }
    return 0;
}

/* The next of the input: bytes, 0 at its end, -1. */
static ssize_t in(uint8_t *p, size_t n)
{
    ssize_t got;

    do
        got = read(STDIN_FILENO, p, n);
    while (got < 0 && errno == EINTR);
    return got;
}

/* --- one file -------------------------------------------------------------------- */

static int do_read(const struct file_order *o, const char *path)
{
    static uint8_t piece[PIECE];
    struct stat st;
    int fd = beneath_open(workspace.root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, true);

    if (fd < 0 || fstat(fd, &st) != 0)
        return -1;
    errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    if (!S_ISREG(st.st_mode) || o->from > INT64_MAX)
        return -1;
    uint64_t size = (uint64_t)st.st_size, left = size > o->from ? size - o->from : 0;
    errno = EFBIG;
    if (left > o->most && o->whole)
        return -1;
    left = left < o->most ? left : o->most;
    for (uint64_t at = o->from; left > 0;) {
        ssize_t n = pread(fd, piece, left < PIECE ? (size_t)left : PIECE, (off_t)at);
        if (n <= 0)
            return n == 0 ? 0 : -1; /* it became shorter */
        if (out(NULL, piece, (size_t)n) != 0)
            return -1;
        at += (uint64_t)n;
        left -= (uint64_t)n;
    }
    return 0;
}

ssize_t files_read_now(const struct file_order *o, uint8_t *to, size_t room)
{
    const char *path = o->what == TALK_FILE_READ && o->from == 0 ? relative(o->path) : NULL;
    int fd = path ? beneath_open(workspace.root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, true) : -1;
    struct stat st;
    ssize_t n = -1;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size <= o->most && (uint64_t)st.st_size < room)
        n = pread(fd, to, (size_t)st.st_size, 0);
    close(fd);
    return n;
}

static int write_all(int fd)
{
    static uint8_t piece[PIECE];
    ssize_t n;

    while ((n = in(piece, sizeof(piece))) > 0)
        for (ssize_t at = 0; at < n;) {
            ssize_t some = write(fd, piece + at, (size_t)(n - at));
            if (some < 0 && errno != EINTR)
                return -1;
            at += some > 0 ? some : 0;
        }
    return n < 0 ? -1 : 0;
}

static int do_write(const struct file_order *o, const char *path)
{
    mode_t mode = o->mode & MODE_BITS;
    struct place p;
    struct stat st;

    if (place_find(workspace.root, path, true, &p) != 0)
        return -1;
    bool there = fstatat(p.dir, p.name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    errno = EISDIR;
    if (there && S_ISDIR(st.st_mode)) /* before all of it is sent */
        return -1;
    if (o->mode == TALK_MODE_NONE)
        mode = there && S_ISREG(st.st_mode) ? st.st_mode & MODE_BITS : 0644;
    int fd = place_make(&p);
    return fd < 0 || write_all(fd) != 0 || fchmod(fd, mode) != 0 ? -1 : place_put(&p, fd);
}

static int do_mkdir(const struct file_order *o, const char *path)
{
    mode_t mode = o->mode == TALK_MODE_NONE ? 0755 : o->mode & MODE_BITS;
    struct place p;

    if (o->whole)
        return beneath_mkdirs(workspace.root, path, mode, true);
    return place_find(workspace.root, path, true, &p) == 0 ? mkdirat(p.dir, p.name, mode) : -1;
}

static int do_remove(const struct file_order *o, const char *path)
{
    struct place p;

    return place_find(workspace.root, path, true, &p) == 0 ? place_remove(&p, o->whole) : -1;
}

static int do_move(const struct file_order *o, const char *path)
{
    const char *other = relative(o->other);
    struct place from, to;

    if (!other || place_find(workspace.root, path, true, &from) != 0 ||
        place_find(workspace.root, other, true, &to) != 0)
        return -1;
    return renameat2(from.dir, from.name, to.dir, to.name, o->whole ? 0 : RENAME_NOREPLACE);
}

/* --- entries --------------------------------------------------------------------- */

static uint8_t *put_number(uint8_t *at, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
    return at + bytes;
}

static uint8_t *put_text(uint8_t *at, const char *text, size_t n)
{
    at = put_number(at, n, 4);
    memcpy(at, text, n);
    return at + n;
}

/* link: its target is that of `name` in dir. */
static int put_entry(int dir, const char *name, const char *said, const struct stat *st)
{
    uint8_t entry[ENTRY_MAX], *at = entry;
    char target[PATH_MAX];
    ssize_t n = S_ISLNK(st->st_mode) ? readlinkat(dir, name, target, sizeof(target)) : 0;

    at = put_number(at,
                    S_ISREG(st->st_mode)   ? 'f'
                    : S_ISDIR(st->st_mode) ? 'd'
                    : S_ISLNK(st->st_mode) ? 'l'
                                           : 'o',
                    1);
    at = put_number(at, st->st_mode & 07777, 2);
    at = put_number(at, S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0, 8);
    at = put_number(at, (uint64_t)st->st_mtim.tv_sec, 8);
    at = put_text(at, said, strnlen(said, NAME_MAX));
    at = put_text(at, target, n > 0 ? (size_t)n : 0);
    return out(NULL, entry, (size_t)(at - entry));
}

static int do_stat(const char *path)
{
    struct stat st;
    int fd = beneath_open(workspace.root, path, O_PATH | O_NOFOLLOW, 0, true);

    return fd < 0 || fstat(fd, &st) != 0 ? -1 : put_entry(fd, "", "", &st);
}

/* The names that come first; one more than is asked for, to know whether there are more. */
struct page {
    char *name[TALK_LIST_MAX + 1];
    size_t n, most;
};

static int page_put(struct page *g, const char *name)
{
    size_t low = 0, high = g->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(g->name[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > g->most)
        return 0;
    char *copy = strdup(name);
    if (!copy)
        return -1;
    if (g->n > g->most)
        free(g->name[--g->n]);
    memmove(g->name + low + 1, g->name + low, (g->n - low) * sizeof(g->name[0]));
    g->name[low] = copy;
    g->n++;
    return 0;
}

static int do_list(const struct file_order *o, const char *path)
{
    static struct page g;
    const struct dirent *e;
    struct stat st;
    int fd = beneath_open(workspace.root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0, true);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (!d)
        return -1;
    g.most = o->most < TALK_LIST_MAX ? (size_t)o->most : TALK_LIST_MAX;
    while ((errno = 0, e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && strcmp(e->d_name, o->other) > 0 &&
            page_put(&g, e->d_name) != 0)
            return -1;
    if (errno != 0)
        return -1;
    for (size_t i = 0; i < g.n && i < g.most; i++)
        if (fstatat(fd, g.name[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && put_entry(fd, g.name[i], g.name[i], &st) != 0)
            return -1; /* one that has gone meanwhile is not said */
    return out(NULL, (const uint8_t[]){0, g.n > g.most}, 2);
}

/* --- trees ------------------------------------------------------------------------ */

/* Of a folder of small files each would be three pieces. */
static struct {
    size_t n;
    uint8_t bytes[PIECE];
} gathered;

static int gather_end(void)
{
    size_t n = gathered.n;

    gathered.n = 0;
    return out(NULL, gathered.bytes, n);
}

static int gather(void *arg, const uint8_t *p, size_t n)
{
    if (n > sizeof(gathered.bytes) - gathered.n && gather_end() != 0)
        return -1;
    if (n >= sizeof(gathered.bytes))
        return out(NULL, p, n);
    memcpy(gathered.bytes + gathered.n, p, n);
    gathered.n += n;
    return 0;
}

static int do_pack(const struct file_order *o, const char *path)
{
    static struct pack k;
    int dir = beneath_open(workspace.root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0, true);

    k.put = gather;
    k.most = o->most;
    if (dir < 0)
        return -1;
    if (pack_folder(&k, dir) == 0)
        return gather_end();
    int why = errno;
    (void)dprintf(STDERR_FILENO, "%s", k.m.name);
    errno = why;
    return -1;
}

static int do_unpack(const char *path)
{
    static uint8_t piece[PIECE];
    static struct unpack u;
    ssize_t n = -1;

    if (beneath_mkdirs(workspace.root, path, 0755, true) != 0)
        return -1;
    int rc = -1, root = beneath_open(workspace.root, path, O_PATH | O_DIRECTORY, 0, true);
    if (root < 0)
        return -1;
    unpack_begin(&u, root, false);
    while ((n = in(piece, sizeof(piece))) > 0 && unpack_take(&u, piece, (size_t)n) == 0)
        ;
    if (n == 0)
        rc = unpack_end(&u);
    int why = errno;
    if (rc != 0)
        (void)dprintf(STDERR_FILENO, "%s", u.why ? u.why : u.tar.member.name);
    errno = why;
    return rc;
}

/* --- what is asked for ------------------------------------------------------------- */

static int run(const struct file_order *o)
{
    const char *path = relative(o->path);

    if (!path)
        return -1;
    switch (o->what) {
    case TALK_FILE_READ: return do_read(o, path);
    case TALK_FILE_WRITE: return do_write(o, path);
    case TALK_FILE_LIST: return do_list(o, path);
    case TALK_FILE_STAT: return do_stat(path);
    case TALK_FILE_MKDIR: return do_mkdir(o, path);
    case TALK_FILE_REMOVE: return do_remove(o, path);
    case TALK_FILE_MOVE: return do_move(o, path);
    case TALK_FILE_PACK: return do_pack(o, path);
    case TALK_FILE_UNPACK: return do_unpack(path);
    case TALK_FILE_WATCH: return watch_folder(workspace.root, path, o->whole, out);
    default: errno = ENOSYS; return -1;
    }
}

void files_become(const struct file_order *o)
{
    if (workspace.root != ROOT_FD && dup2(workspace.root, ROOT_FD) != ROOT_FD)
        _exit(errno);
    workspace.root = ROOT_FD;
    if (close_range(ROOT_FD + 1, ~0U, 0) != 0)
        _exit(errno);
    (void)signal(SIGPIPE, SIG_IGN); /* who reads has gone: EPIPE */
    int rc = run(o);
    _exit(rc == 0 ? 0 : errno & 0xff ? errno & 0xff : EIO);
}
