#include "sandbox-shim/inside/watch/shim_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_beneath.h"
#include "sandbox-shim/inside/shim_talk.h"

enum {
    IN_ROOM = 64 * 1024,
    OUT_ROOM = 64 * 1024,
    CHANGE_MAX = 16 + 3 * TALK_PATH_MAX,
    /* EXCL_UNLINK: what has no name any more, or none yet (place_make), is not in the folder */
    CHANGES = IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |
              IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK,
};

/* A folder that is watched. Its numbers grow: a new one is the last. */
struct folder {
    int wd;
    char *path; /* below the top; "": the top; NULL: it is not watched any more */
};

static struct {
    int root, in;    /* in: what the kernel says */
    const char *top; /* the folder, beneath root. It is not kept open: that it is removed would not be said */
    bool deep;
    struct folder folder[TALK_WATCH_FOLDERS];
    size_t n;
    uint32_t put; /* the cookie of a file that was written elsewhere in it (place_put) */
    int (*out)(void *arg, const uint8_t *p, size_t n);
    char said[OUT_ROOM];
    size_t nsaid;
} w;

/* --- what is said ---------------------------------------------------------------- */

static int flush(void)
{
    int rc = w.nsaid > 0 ? w.out(NULL, (const uint8_t *)w.said, w.nsaid) : 0;

    w.nsaid = 0;
    return rc;
}

/* Of a path all but letters, digits and -._~/ as %XX. */
static int say(const char *what, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    static const char digits[] = "0123456789ABCDEF";

    if (sizeof(w.said) - w.nsaid < CHANGE_MAX && flush() != 0)
        return -1;
    w.nsaid += (size_t)snprintf(w.said + w.nsaid, CHANGE_MAX, "%s ", what);
    for (size_t i = 0; i < TALK_PATH_MAX && path[i] != '\0'; i++) {
        bool as_is = strchr(plain, path[i]) != NULL;
        unsigned c = (unsigned char)path[i];
        w.said[w.nsaid++] = as_is ? path[i] : '%';
        if (!as_is) {
            w.said[w.nsaid++] = digits[c >> 4];
            w.said[w.nsaid++] = digits[c & 15];
        }
    }
    w.said[w.nsaid++] = '\n';
    return 0;
}

/* path/name, or name alone. -1: it is longer than a path may be. */
static int join(char to[TALK_PATH_MAX + 1], const char *path, const char *name)
{
    int n = snprintf(to, TALK_PATH_MAX + 1, "%s%s%s", path, *path ? "/" : "", name);

    errno = ENAMETOOLONG;
    return n >= 0 && n <= TALK_PATH_MAX ? 0 : -1;
}

/* --- folders ----------------------------------------------------------------------- */

static struct folder *folder_of(int wd)
{
    size_t low = 0, high = w.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w.folder[middle].wd < wd)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w.n && w.folder[low].wd == wd && w.folder[low].path ? &w.folder[low] : NULL;
}

static void folder_drop(struct folder *f)
{
    free(f->path);
    f->path = NULL;
}

/* Those that are not watched any more give their places to others. */
static void folders_pack(void)
{
    size_t n = 0;

    for (size_t i = 0; i < w.n; i++)
        if (w.folder[i].path)
            w.folder[n++] = w.folder[i];
    w.n = n;
}

/* It, and all that are below it, are somewhere else now. */
static void folders_leave(const char *path)
{
    size_t n = strlen(path);

    for (size_t i = 0; i < w.n; i++) {
        struct folder *f = &w.folder[i];
        if (!f->path || strncmp(f->path, path, n) != 0 || (f->path[n] != '/' && f->path[n] != '\0'))
            continue;
        (void)inotify_rm_watch(w.in, f->wd);
        folder_drop(f);
    }
}

static int folder_open(const char *path, int flags)
{
    char all[TALK_PATH_MAX + 1];

    return join(all, w.top, path) == 0 ? beneath_open(w.root, all, flags | O_DIRECTORY | O_NOFOLLOW, 0, true) : -1;
}

/* Why one below the top cannot be watched, and need not be: it has gone, is no folder any more, or nobody may read
 * it.
 */
static bool is_none(int why)
{
    return why == ENOENT || why == ENOTDIR || why == ELOOP || why == EACCES;
}

static int folder_keep(int wd, const char *path)
{
    struct folder *f = folder_of(wd);
    char *copy = strdup(path);

    if (copy && f) { /* it was watched where it was before */
        free(f->path);
        f->path = copy;
        return 0;
    }
    if (copy && w.n < TALK_WATCH_FOLDERS && (w.n == 0 || wd > w.folder[w.n - 1].wd)) {
        w.folder[w.n++] = (struct folder){wd, copy};
        return 0;
    }
    free(copy);
    errno = EUSERS;
    return -1;
}

static int folder_watch(const char *path)
{
    char proc[64];
    int wd = -1, why, fd = folder_open(path, O_PATH);

    if (fd >= 0) {
        (void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
        wd = inotify_add_watch(w.in, proc, CHANGES);
    }
    why = errno;
    if (fd >= 0)
        close(fd);
    if (wd >= 0)
        return folder_keep(wd, path);
    errno = why == ENOSPC ? EUSERS : why; /* no disk is full */
    return *path && is_none(why) ? 0 : -1;
}

/* What lies in one: its folders are watched, too. new: it was not there before, and neither was what lies in it; what
 * comes while this is read may be said twice. */
static int folder_scan(const char *path, bool new)
{
    char below[TALK_PATH_MAX + 1];
    const struct dirent *e;
    struct stat st;
    int rc = 0, fd = folder_open(path, O_RDONLY | O_NONBLOCK);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    while (d && rc == 0 && (e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        rc = join(below, path, e->d_name);
        if (rc == 0 && new)
            rc = say("created", below);
        if (rc == 0 && fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
            rc = folder_watch(below);
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return rc; /* one that cannot be read has nothing that could be said */
}

/* The folder at path with all below it: those that are found stand behind it, and are looked at in turn. */
static int tree_watch(const char *path, bool new)
{
    char copy[TALK_PATH_MAX + 1];

    if (w.n > TALK_WATCH_FOLDERS / 2)
        folders_pack();
    size_t from = w.n;
    if (folder_watch(path) != 0)
        return -1;
    for (size_t i = from; w.deep && i < w.n; i++) {
        if (!w.folder[i].path)
            continue;
        (void)snprintf(copy, sizeof(copy), "%s", w.folder[i].path); /* which may be moved */
        if (folder_scan(copy, new) != 0)
            return -1;
    }
    return 0;
}

/* --- what the kernel says ------------------------------------------------------------- */

/* Ours, for a moment (place_put). */
static bool is_passing(const char *name)
{
    return strncmp(name, ".countersign-", 13) == 0;
}

/* A file without a name (O_TMPFILE), which the kernel calls by its number here: nothing in the folder changed. */
static bool is_nameless(const struct inotify_event *e, const struct folder *in)
{
    struct stat st;
    bool number = e->mask & IN_ATTRIB && e->name[0] == '#' && e->name[1 + strspn(e->name + 1, "0123456789")] == '\0';
    int fd = number ? folder_open(in->path, O_PATH) : -1;

    if (fd < 0)
        return false;
    bool none = fstatat(fd, e->name, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
    close(fd);
    return none;
}

/* A name came or went. -1: no more can be said. */
static int named(const struct inotify_event *e, const char *path)
{
    bool folder = e->mask & IN_ISDIR;

    if (e->mask & IN_MOVED_FROM) {
        if (folder && w.deep)
            folders_leave(path);
        return say("renamed", path);
    }
    if (e->mask & IN_DELETE)
        return say("removed", path);
    if (e->mask & IN_MOVED_TO && e->cookie == w.put) /* in place of what was there */
        return say("written", path);
    if (e->mask & (IN_CREATE | IN_MOVED_TO)) {
        if (say("created", path) != 0)
            return -1;
        return folder && w.deep ? tree_watch(path, true) : 0;
    }
    return say(e->mask & IN_MODIFY ? "written" : "mode", path);
}

/* 0 go on; 1 there is nothing more to say; -1 no more can be. */
static int heard(const struct inotify_event *e)
{
    char path[TALK_PATH_MAX + 1];
    struct folder *f = folder_of(e->wd);

    if (e->mask & IN_Q_OVERFLOW)
        return -1;
    if (!f)
        return 0;
    if (e->mask & IN_IGNORED) {
        folder_drop(f);
        return 0;
    }
    if (e->len == 0) { /* of itself: what is above says that too, but of the top */
        bool ends = *f->path == '\0' && e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT);
        return ends && say(e->mask & IN_MOVE_SELF ? "renamed" : "removed", ".") == 0 ? 1 : 0;
    }
    if (is_passing(e->name)) {
        w.put = e->mask & IN_MOVED_FROM ? e->cookie : w.put;
        return 0;
    }
    if (is_nameless(e, f))
        return 0;
    return join(path, f->path, e->name) != 0 ? -1 : named(e, path);
}

static int listen_on(void)
{
    static union {
        struct inotify_event e;
        char room[IN_ROOM];
    } in;
    int rc = 0;

    while (rc == 0) {
        ssize_t n = read(w.in, in.room, sizeof(in.room));
        if (n < 0 && errno != EINTR)
            return -1;
        for (ssize_t at = 0; rc == 0 && at < n;) {
            const struct inotify_event *e = (const void *)(in.room + at);
            at += (ssize_t)(sizeof(*e) + e->len);
            rc = heard(e);
        }
        if (rc >= 0 && flush() != 0)
            return -1;
    }
    return rc;
}

int watch_folder(int root, const char *path, bool deep, int (*out)(void *arg, const uint8_t *p, size_t n))
{
    w.root = root;
    w.top = path;
    w.deep = deep;
    w.out = out;
    w.in = inotify_init1(IN_CLOEXEC);
    if (w.in < 0)
        errno = EUSERS;
    if (w.in < 0 || tree_watch("", false) != 0 || say("watches", "") != 0 || flush() != 0)
        return -1;
    if (listen_on() >= 0)
        return 0;
    return say("missed", "") != 0 || flush() != 0 ? -1 : 0;
}
