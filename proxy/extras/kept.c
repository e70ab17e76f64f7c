#include "proxy/extras/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/id.h"

enum { FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, BLOCK = 512, DEEP = 64, SESSION_BYTES = 16 };

void kept_key(const struct wire_extras *x, struct span name, bool of_session, char key[KEPT_KEY_MAX + 1])
{
    char hex[2 * DIGEST_BYTES + 1] = "";

    if (of_session && x->session.n >= SESSION_BYTES)
        hex_text(span_first(x->session, SESSION_BYTES), hex);
    (void)snprintf(key, KEPT_KEY_MAX + 1, "%.*s@%.*s%s%s", SPAN_FMT(name), SPAN_FMT(x->tenant), hex[0] ? "@" : "",
                   hex);
}

static bool key_ok(const char *key)
{
    size_t n = strlen(key);

    return n > 0 && n <= KEPT_KEY_MAX && key[0] != '.' && key[0] != '@' && strchr(key, '@') &&
           strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-._@") == n;
}

static int folder_open(const char *state_dir, struct err *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/mounts", state_dir);

    if (n <= 0 || (size_t)n >= sizeof(path))
        return err_set(e, "the state directory's path is too long");
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return err_errno(e, "%s cannot be made", path);
    int fd = open(path, FOLDER);
    return fd >= 0 ? fd : err_errno(e, "%s cannot be opened", path);
}

/* The key of a lock's file. */
static bool key_of(const char *file, char key[KEPT_KEY_MAX + 1])
{
    size_t n = strlen(file);

    if (n < 6 || n - 5 > KEPT_KEY_MAX || strcmp(file + n - 5, ".lock") != 0)
        return false;
    (void)snprintf(key, KEPT_KEY_MAX + 1, "%.*s", (int)(n - 5), file);
    return key_ok(key);
}

/* NAME@TENANT[@SESSION]. */
static struct span tenant_of(const char *key)
{
    struct span tenant = SPAN_NONE, rest;

    (void)span_cut(span_str(key), '@', &tenant, &rest);
    (void)span_cut(rest, '@', &tenant, &rest);
    return tenant;
}

/* Whether there is no room for one more with this key. */
static bool is_full(int folder, const char *new)
{
    char key[KEPT_KEY_MAX + 1];
    int fd = dup(folder);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *at;
    size_t n = 0, same = 0;

    if (d)
        rewinddir(d);
    while (d && (at = readdir(d)))
        if (key_of(at->d_name, key)) {
            n++;
            same += span_eq(tenant_of(key), tenant_of(new));
        }
    if (d)
        (void)closedir(d);
    else if (fd >= 0)
        close(fd);
    return !d || n >= KEPT_MAX || same >= KEPT_OF_TENANT;
}

int kept_hold(const char *state_dir, const char *key, struct err *e)
{
    char lock[KEPT_KEY_MAX + 6];
    struct stat st;
    int folder = key_ok(key) ? folder_open(state_dir, e) : err_set(e, "%s is no key of a kept directory", key);

    if (folder < 0)
        return -1;
    (void)snprintf(lock, sizeof(lock), "%s.lock", key);
    bool fresh = faccessat(folder, lock, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
    int fd =
        fresh && is_full(folder, key) ? -1 : openat(folder, lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    close(folder);
    if (fd < 0)
        return err_set(
            e, "a directory cannot be kept: there are as many as may be, of its tenant or at all, or the disk is "
               "full; `countersign mount rm` makes room");
    if (flock(fd, LOCK_SH | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink == 1)
        return fd;
    close(fd);
    return err_set(e, "the directory %s is being removed; ask again in a moment", key);
}

/* --- those that there are ------------------------------------------------------------------ */

static uint64_t total;

static int add(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)path, (void)type, (void)at;
    total += (uint64_t)st->st_blocks * BLOCK;
    return 0;
}

static uint64_t size_of(const char *state_dir, const char *key)
{
    char path[PATH_MAX];
    struct stat st;

    total = 0;
    (void)snprintf(path, sizeof(path), "%s/mounts/%s.img", state_dir, key);
    if (lstat(path, &st) == 0)
        return (uint64_t)st.st_blocks * BLOCK;
    (void)snprintf(path, sizeof(path), "%s/mounts/%s", state_dir, key);
    (void)nftw(path, add, DEEP, FTW_PHYS);
    return total;
}

int kept_each(const char *state_dir, kept_fn *fn, void *ctx, struct err *e)
{
    char key[KEPT_KEY_MAX + 1];
    struct dirent *at;
    int folder = folder_open(state_dir, e);
    DIR *d = folder >= 0 ? fdopendir(folder) : NULL;

    if (!d) {
        if (folder >= 0)
            close(folder);
        return folder >= 0 ? err_errno(e, "it cannot be listed") : -1;
    }
    while ((at = readdir(d)))
        if (key_of(at->d_name, key))
            fn(ctx, key, size_of(state_dir, key));
    (void)closedir(d);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)at;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

static int gone(const char *state_dir, const char *key, struct err *e)
{
    static const char *const files[] = {".img", ".img.new", ".lock"};
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/mounts/%s", state_dir, key);
    if (nftw(path, remove_one, DEEP, FTW_PHYS | FTW_DEPTH) != 0 && errno != ENOENT)
        return err_errno(e, "it cannot be removed: %s", path);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) { /* its lock is the last */
        (void)snprintf(path, sizeof(path), "%s/mounts/%s%s", state_dir, key, files[i]);
        if (unlink(path) != 0 && errno != ENOENT)
            return err_errno(e, "it cannot be removed: %s", path);
    }
    return 0;
}

int kept_remove(const char *state_dir, const char *key, struct err *e)
{
    char lock[KEPT_KEY_MAX + 6];
    int folder = key_ok(key) ? folder_open(state_dir, e) : err_set(e, "that is no kept directory's name");

    if (folder < 0)
        return -1;
    (void)snprintf(lock, sizeof(lock), "%s.lock", key);
    int fd = openat(folder, lock, O_RDWR | O_NOFOLLOW | O_CLOEXEC), rc = -1;
    close(folder);
    if (fd < 0)
        return err_set(e, "no directory %s is kept: `countersign mount list` shows those that are", key);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        (void)err_set(e, "a sandbox has %s: it is removed when none does", key);
    else
        rc = gone(state_dir, key, e);
    close(fd);
    return rc;
}
