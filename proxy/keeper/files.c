#include "proxy/keeper/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"

#define NEW ".new"

int files_check_dir(int dir, struct err *e)
{
    struct stat st;
    if (fstat(dir, &st) != 0)
        return err_errno(e, "cannot look at the keeper's folder");
    if (!S_ISDIR(st.st_mode))
        return err_set(e, "the keeper was given something that is not a folder");
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return err_set(e,
                       "the keeper's folder must belong to uid %u with mode 0700, but it belongs to uid %u with mode "
                       "%04o; chown and chmod it",
                       geteuid(), st.st_uid, (unsigned)st.st_mode & 07777);
    return 0;
}

int files_exist(int dir, const char *name, struct err *e)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT ? 0 : err_errno(e, "cannot look for keeper/%s", name);
}

static int check(int fd, const char *name, size_t max, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_errno(e, "cannot look at keeper/%s", name);
    if (!S_ISREG(st.st_mode))
        return err_set(e, "keeper/%s is not a regular file", name);
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return err_set(e,
                       "keeper/%s must belong to uid %u with mode 0600, but it belongs to uid %u with mode %04o; "
                       "somebody else may have read it: chown, chmod and rotate what it guards",
                       name, geteuid(), st.st_uid, (unsigned)st.st_mode & 07777);
    if (st.st_size < 0 || (uint64_t)st.st_size > max)
        return err_set(e, "keeper/%s is larger than it can be (%lld bytes)", name, (long long)st.st_size);
    return 0;
}

int files_read(int dir, const char *name, struct dynbuf *out, struct err *e)
{
    /* Non-blocking: a FIFO in its place must not hang the start. */
    int r = -1, fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_errno(e, "cannot open keeper/%s", name);
    if (check(fd, name, out->max - out->n, e) != 0)
        goto out;
    r = file_read_fd(fd, out) == 0 ? 1 : err_errno(e, "cannot read keeper/%s", name);
out:
    close(fd);
    return r;
}

/* Written beside, made durable, then moved to its name. */
static int put(int dir, const char *name, struct span bytes, unsigned how, struct err *e)
{
    char beside[64];
    int r = -1, fd = -1;
    snprintf(beside, sizeof(beside), "%s" NEW, name);
    if (unlinkat(dir, beside, 0) != 0 && errno != ENOENT) {
        err_errno(e, "cannot clear keeper/%s", beside);
        goto out;
    }
    fd = openat(dir, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || file_write_fd(fd, bytes) != 0 || fsync(fd) != 0) {
        err_errno(e, "cannot write keeper/%s", beside);
        goto out;
    }
    if (renameat2(dir, beside, dir, name, how) != 0 || fsync(dir) != 0) {
        err_errno(e, "cannot put keeper/%s in place", name);
        goto out;
    }
    r = 0;
out:
    if (fd >= 0)
        close(fd);
    if (r != 0)
        (void)unlinkat(dir, beside, 0);
    return r;
}

int files_create(int dir, const char *name, struct span bytes, struct err *e)
{
    return put(dir, name, bytes, RENAME_NOREPLACE, e);
}

int files_replace(int dir, const char *name, struct span bytes, struct err *e)
{
    return put(dir, name, bytes, 0, e);
}

int files_remove(int dir, const char *name, struct err *e)
{
    if (unlinkat(dir, name, 0) != 0 && errno != ENOENT)
        return err_errno(e, "cannot remove keeper/%s", name);
    return fsync(dir) == 0 ? 0 : err_errno(e, "cannot sync the keeper's folder");
}
