#include "sandbox-shim/inside/shim_beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TRIES = 100, FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

/* EAGAIN: a name on the way was changed while it was followed, and whether that leads out cannot be said. */
int beneath_open(int root, const char *path, int flags, mode_t mode, bool links)
{
    const struct open_how how = {.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
                                 .mode = mode,
                                 .resolve =
                                     RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (links ? 0 : RESOLVE_NO_SYMLINKS)};
    long fd = -1;

    for (int i = 0; i < TRIES; i++) {
        fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return (int)fd;
}

int place_find(int root, const char *path, bool links, struct place *p)
{
    char above[PATH_MAX];
    size_t n = strlen(path);

    p->dir = -1;
    while (n > 0 && path[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && path[at - 1] != '/')
        at--;
    if (n == 0 || (n - at == 1 && path[at] == '.') || (n - at == 2 && memcmp(path + at, "..", 2) == 0)) {
        errno = EBUSY;
        return -1;
    }
    if (n - at > NAME_MAX || at >= sizeof(above)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(p->name, path + at, n - at);
    p->name[n - at] = '\0';
    memcpy(above, path, at);
    above[at] = '\0';
    p->dir = beneath_open(root, at > 0 ? above : ".", O_PATH | O_DIRECTORY, 0, links);
    return p->dir < 0 ? -1 : 0;
}

void place_close(struct place *p)
{
    int why = errno;

    if (p->dir >= 0)
        close(p->dir);
    p->dir = -1;
    errno = why;
}

/* --- a file that is written ------------------------------------------------------- */

int place_make(const struct place *p)
{
    return openat(p->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

/* Nothing replaces a name at once but another name: where there is something, it has one of its own for a moment. */
int place_put(const struct place *p, int fd)
{
    char from[64], name[64];
    uint64_t random;
    int rc = -1;

    (void)snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, from, p->dir, p->name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    for (int i = 0; rc != 0 && errno == EEXIST && i < TRIES; i++) {
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            return -1;
        (void)snprintf(name, sizeof(name), ".countersign-%016llx", (unsigned long long)random);
        rc = linkat(AT_FDCWD, from, p->dir, name, AT_SYMLINK_FOLLOW);
    }
    if (rc != 0)
        return -1;
    if (renameat(p->dir, name, p->dir, p->name) == 0)
        return 0;
    int why = errno;
    (void)unlinkat(p->dir, name, 0);
    errno = why;
    return -1;
}

/* --- what is removed --------------------------------------------------------------- */

static bool itself(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Its entries, also of one that its owner may not read; NULL with errno. */
static DIR *folder_open(int dir, const char *name)
{
    struct stat st;
    int fd = openat(dir, name, FOLDER);

    if (fd < 0 && errno == EACCES && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
        fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
        fd = openat(dir, name, FOLDER);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0)
        (void)fchmod(fd, 0700);
    if (fd >= 0 && d == NULL)
        close(fd);
    return d;
}

/* What is in a folder goes, but its own folders: they go up into top, so that none lies deeper than one below it and
 * a tree of any depth costs two descriptors. Did anything go? */
static bool folder_flatten(int top, DIR *d, unsigned *names)
{
    const struct dirent *e;
    bool some = false;
    char name[64];

    while ((e = readdir(d)) != NULL) {
        if (itself(e->d_name))
            continue;
        int rc = unlinkat(dirfd(d), e->d_name, 0);
        if (rc != 0) /* what is above it is written into it */
            (void)!fchmodat(dirfd(d), e->d_name, 0700, AT_SYMLINK_NOFOLLOW);
        errno = EEXIST;
        while (rc != 0 && errno == EEXIST) {
            (void)snprintf(name, sizeof(name), ".countersign-gone-%u", (*names)++);
            rc = renameat2(dirfd(d), e->d_name, top, name, RENAME_NOREPLACE);
        }
        some |= rc == 0;
    }
    return some;
}

static int folder_empty(DIR *top)
{
    unsigned names = 0;
    const struct dirent *e;

    for (bool some = true, any; some;) {
        some = any = false;
        rewinddir(top);
        while ((e = readdir(top)) != NULL) {
            if (itself(e->d_name))
                continue;
            any = true;
            if (unlinkat(dirfd(top), e->d_name, 0) == 0 || unlinkat(dirfd(top), e->d_name, AT_REMOVEDIR) == 0) {
                some = true;
                continue;
            }
            DIR *d = folder_open(dirfd(top), e->d_name);
            if (d == NULL)
                continue;
            some |= folder_flatten(dirfd(top), d, &names);
            closedir(d);
            some |= unlinkat(dirfd(top), e->d_name, AT_REMOVEDIR) == 0;
        }
        if (!any)
            return 0;
    }
    errno = ENOTEMPTY;
    return -1;
}

int place_remove(const struct place *p, bool whole)
{
    struct stat st;

    if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    if (!S_ISDIR(st.st_mode))
        return unlinkat(p->dir, p->name, 0);
    if (unlinkat(p->dir, p->name, AT_REMOVEDIR) == 0)
        return 0;
    if (!whole)
        return -1;
    DIR *top = folder_open(p->dir, p->name);
    int rc = top ? folder_empty(top) : -1, why = errno;
    if (top)
        closedir(top);
    errno = why;
    return rc == 0 ? unlinkat(p->dir, p->name, AT_REMOVEDIR) : -1;
}

int beneath_clear(int dir)
{
    int fd = openat(dir, ".", FOLDER);
    DIR *top = fd >= 0 ? fdopendir(fd) : NULL;
    int rc = top ? folder_empty(top) : -1, why = errno;

    if (top)
        closedir(top);
    else if (fd >= 0)
        close(fd);
    errno = why;
    return rc;
}

/* --- folders ------------------------------------------------------------------------- */

int beneath_mkdirs(int root, const char *path, mode_t mode, bool links)
{
    char part[PATH_MAX];
    struct place p;
    size_t n = strlen(path);

    if (n >= sizeof(part)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (size_t at = 1; at <= n; at++) {
        if (at < n && path[at] != '/')
            continue;
        memcpy(part, path, at);
        part[at] = '\0';
        int rc = place_find(root, part, links, &p);
        if (rc == 0)
            rc = mkdirat(p.dir, p.name, mode);
        place_close(&p);
        if (rc != 0 && errno != EEXIST && errno != EBUSY)
            return -1;
    }
    int fd = beneath_open(root, n > 0 ? path : ".", O_PATH | O_DIRECTORY, 0, links);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : -1;
}
