#include "sandbox-shim/images/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/text/visible.h"
#include "sandbox-shim/inside/shim_beneath.h"

#define HIDES  ".wh."
#define OPAQUE ".wh..wh..opq"
enum { SHOWN_MAX = 160, FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* --- words ------------------------------------------------------------------------------ */

/* Of the member's name, which is foreign. */
static int fail(const char *name, const char *what, struct err *e)
{
    struct dynbuf b;

    dynbuf_init(&b, 64 * 1024);
    visible_text(&b, span_of(name, strnlen(name, SHOWN_MAX / 4)), false);
    int n = (int)(b.n < SHOWN_MAX ? b.n : SHOWN_MAX);
    (void)err_set(e, "`%.*s` in it %s", n, b.p ? (const char *)b.p : "", what);
    dynbuf_free(&b);
    return -1;
}

static int fail_errno(const char *name, struct err *e)
{
    switch (errno) {
    case ELOOP: return fail(name, "goes through a symbolic link", e);
    case ENOTDIR: return fail(name, "goes through what is no folder", e);
    case EXDEV: return fail(name, "leads out of the image", e);
    case EMLINK: return fail(name, "is a link to a file that has too many", e);
    case ENAMETOOLONG: return fail(name, "has a name that is too long", e);
    case ENOSPC:
    case EDQUOT: return err_set(e, "there is no room for it where the state directory is");
    default: break;
    }
    return fail(name, strerror(errno), e);
}

/* --- removing ----------------------------------------------------------------------------- */

static bool itself(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int folder_clear(int fd, unsigned depth);

/* As deep as a layer may be, and each folder is ours to write. */
static int remove_at(int dir, const char *name, unsigned depth)
{
    if (unlinkat(dir, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 0;
    int fd = errno == ENOTEMPTY || errno == EEXIST ? openat(dir, name, FOLDER) : -1;
    if (fd < 0)
        return -1;
    int rc = folder_clear(fd, depth + 1), why = errno;
    close(fd);
    errno = why;
    return rc == 0 ? unlinkat(dir, name, AT_REMOVEDIR) : -1;
}

/* fd stays the caller's. */
static int folder_clear(int fd, unsigned depth)
{
    int rc = -1, own = depth <= LAYER_DEPTH_MAX + 1 ? openat(fd, ".", FOLDER) : -1;
    DIR *d = own >= 0 ? fdopendir(own) : NULL;
    const struct dirent *entry;
    bool some = true;

    if (!d) {
        errno = depth <= LAYER_DEPTH_MAX + 1 ? errno : ENAMETOOLONG;
        goto out;
    }
    for (rc = 0; rc == 0 && some;) { /* again: what is removed may hide from who reads on */
        some = false;
        rewinddir(d);
        while (rc == 0 && (errno = 0, entry = readdir(d)) != NULL)
            if (!itself(entry->d_name)) {
                rc = remove_at(fd, entry->d_name, depth);
                some = true;
            }
    }
out:;
    int why = errno;
    if (d)
        closedir(d);
    else if (own >= 0)
        close(own);
    errno = why;
    return rc;
}

int layer_remove(int dir, const char *name)
{
    return remove_at(dir, name, 0);
}

/* --- where a member goes -------------------------------------------------------------------- */

static int count(struct layering *l, struct err *e)
{
    return ++l->entries <= LAYER_ENTRIES_MAX
               ? 0
               : err_set(e, "it has more than %d files, folders and links", LAYER_ENTRIES_MAX);
}

/* The folder at `above`, and those above it as far as they are not there. */
static int folders_make(struct layering *l, const char *above, struct err *e)
{
    char part[TAR_NAME_MAX + 1];
    size_t n = strlen(above);
    struct place p;

    for (size_t at = 1; at <= n; at++) {
        if (at < n && above[at] != '/')
            continue;
        memcpy(part, above, at);
        part[at] = '\0';
        int rc = place_find(l->root, part, false, &p);
        if (rc == 0 && (rc = mkdirat(p.dir, p.name, 0755)) == 0)
            rc = count(l, e) == 0 ? 0 : -2;
        place_close(&p);
        if (rc == -2)
            return -1;
        if (rc != 0 && errno != EEXIST)
            return fail_errno(above, e);
    }
    return 0;
}

/* l->dir: the folder that the path is in; *name: its name there. 1, unless it is to be made: it is not there. */
static int above_open(struct layering *l, const char *path, bool make, const char **name, struct err *e)
{
    const char *slash = strrchr(path, '/');
    char above[TAR_NAME_MAX + 1];
    size_t n = slash ? (size_t)(slash - path) : 0, depth = 0;

    *name = slash ? slash + 1 : path;
    memcpy(above, path, n);
    above[n] = '\0';
    if (l->dir >= 0 && strcmp(above, l->above) == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        depth += above[i] == '/';
    if (depth + 2 > LAYER_DEPTH_MAX)
        return fail(path, "lies too deep", e);
    if (l->dir >= 0)
        close(l->dir);
    const char *at = n > 0 ? above : ".";
    l->dir = beneath_open(l->root, at, O_PATH | O_DIRECTORY, 0, false);
    if (l->dir < 0 && errno == ENOENT && !make)
        return 1;
    if (l->dir < 0 && errno == ENOENT) {
        if (folders_make(l, above, e) != 0)
            return -1;
        l->dir = beneath_open(l->root, at, O_PATH | O_DIRECTORY, 0, false);
    }
    memcpy(l->above, above, n + 1);
    return l->dir >= 0 ? 0 : fail_errno(path, e);
}

/* --- what a layer hides ------------------------------------------------------------------------ */

/* The name that it hides, or NULL; *all: all that is in its folder. */
static const char *hidden(const char *path, bool *all)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    *all = strcmp(name, OPAQUE) == 0;
    return strncmp(name, HIDES, sizeof(HIDES) - 1) == 0 ? name + sizeof(HIDES) - 1 : NULL;
}

static int hide_note(struct layering *l, struct err *e)
{
    const char *path = l->tar.member.name, *name;
    bool all;

    if (!(name = hidden(path, &all)))
        return 0;
    if (!all && strncmp(name, HIDES, sizeof(HIDES) - 1) == 0)
        return 0; /* a mark of the file system that the image was made on */
    if (!all && (*name == '\0' || itself(name)))
        return fail(path, "hides a name that is none", e);
    size_t n = (size_t)(name - path) - (sizeof(HIDES) - 1);
    (void)dynbuf_add_byte(&l->hides, all ? 'o' : 'w');
    (void)dynbuf_add(&l->hides, span_of(path, n));
    if (!all)
        (void)dynbuf_add(&l->hides, span_str(name));
    (void)dynbuf_add_byte(&l->hides, 0);
    return dynbuf_ok(&l->hides) ? 0 : err_set(e, "it hides more names than are looked at");
}

/* The folder at this path (with a slash at its end, or empty) is as if nothing below had put anything into it. */
static int hide_all(struct layering *l, char *path, struct err *e)
{
    size_t n = strlen(path);

    if (n > 0)
        path[n - 1] = '\0';
    int fd = beneath_open(l->root, n > 0 ? path : ".", O_RDONLY | O_DIRECTORY, 0, false);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : fail_errno(path, e);
    int rc = folder_clear(fd, 0);
    if (rc != 0)
        (void)fail_errno(path, e);
    close(fd);
    return rc;
}

int layer_hide(struct layering *l, struct err *e)
{
    const char *name;
    int rc = 0;

    for (size_t at = 0; at < l->hides.n && rc == 0;) {
        char *entry = (char *)l->hides.p + at;
        at += strlen(entry) + 1;
        layer_drop(l); /* a folder that is open may go */
        if (entry[0] == 'o') {
            rc = hide_all(l, entry + 1, e);
            continue;
        }
        rc = above_open(l, entry + 1, false, &name, e);
        if (rc == 0 && layer_remove(l->dir, name) != 0 && errno != ENOENT)
            rc = fail_errno(entry + 1, e);
        rc = rc > 0 ? 0 : rc;
    }
    layer_drop(l);
    dynbuf_free(&l->hides);
    return rc;
}

/* --- what it has ----------------------------------------------------------------------------- */

static int file_end(struct layering *l, struct err *e)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = l->mtime}};

    if (l->file < 0)
        return 0;
    int rc = fchmod(l->file, l->mode & 0111 ? 0755 : 0644);
    (void)futimens(l->file, times); /* one that does not fit is of no matter */
    rc |= close(l->file);
    l->file = -1;
    return rc == 0 ? 0 : err_errno(e, "a file of it cannot be written");
}

static int link_make(struct layering *l, const char *name)
{
    struct place from;
    struct stat st;
    int rc = place_find(l->root, l->tar.member.target, false, &from);

    if (rc == 0)
        rc = fstatat(from.dir, from.name, &st, AT_SYMLINK_NOFOLLOW);
    if (rc == 0 && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        rc = -1;
    } else if (rc == 0) {
        rc = linkat(from.dir, from.name, l->dir, name, 0);
    }
    place_close(&from);
    return rc;
}

static int make(struct layering *l, const char *name)
{
    const struct tar_member *m = &l->tar.member;

    switch (m->type) {
    case TAR_FILE:
        l->mode = m->mode;
        l->mtime = m->mtime;
        l->file = openat(l->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        return l->file >= 0 ? 0 : -1;
    case TAR_LINK: return symlinkat(m->target, l->dir, name);
    case TAR_HARD_LINK: return link_make(l, name);
    default: break;
    }
    return mkdirat(l->dir, name, 0755);
}

/* What has the name gives way, but a folder to a folder. */
static int make_anew(struct layering *l, const char *name)
{
    bool folder = l->tar.member.type == TAR_FOLDER;
    struct stat st;
    int rc = make(l, name);

    if (rc == 0 || errno != EEXIST)
        return rc;
    if (fstatat(l->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    if (folder && S_ISDIR(st.st_mode))
        return 0;
    return layer_remove(l->dir, name) == 0 ? make(l, name) : -1;
}

static int member_take(struct layering *l, struct err *e)
{
    const struct tar_member *m = &l->tar.member;
    const char *name;
    bool all;

    if (l->looks)
        return hide_note(l, e);
    if (file_end(l, e) != 0)
        return -1;
    if (m->name[0] == '\0' || hidden(m->name, &all))
        return 0;
    l->left_out += m->type == TAR_OTHER;
    if (m->type == TAR_OTHER || (m->type == TAR_HARD_LINK && strcmp(m->name, m->target) == 0))
        return 0;
    l->lost_rights += (m->type == TAR_FILE && m->mode & 07000) || (m->type == TAR_FOLDER && m->mode & 06000);
    if (above_open(l, m->name, true, &name, e) != 0 || count(l, e) != 0)
        return -1;
    if (make_anew(l, name) != 0)
        return m->type == TAR_HARD_LINK && errno == ENOENT ? fail(m->name, "is a link to a file that is not there", e)
                                                           : fail_errno(m->name, e);
    return 0;
}

static int data_take(struct layering *l, struct err *e)
{
    struct span s = span_of(l->tar.data, l->tar.ndata);

    if (l->looks || l->file < 0)
        return 0;
    l->bytes += s.n;
    return file_write_fd(l->file, s) == 0 ? 0 : fail_errno(l->tar.member.name, e);
}

void layer_begin(struct layering *l, bool looks)
{
    memset(&l->tar, 0, sizeof(l->tar));
    l->looks = looks;
    l->file = l->dir = -1;
    if (looks)
        dynbuf_init(&l->hides, LAYER_HIDES_MAX);
}

int layer_take(struct layering *l, struct span bytes, struct err *e)
{
    size_t used;

    for (;;) {
        enum tar_got got = tar_step(&l->tar, bytes.p, bytes.n, &used);
        bytes = span_from(bytes, used);
        switch (got) {
        case TAR_MEMBER:
            if (member_take(l, e) != 0)
                return -1;
            break;
        case TAR_DATA:
            if (data_take(l, e) != 0)
                return -1;
            break;
        case TAR_MORE:
        case TAR_END: return 0;
        default: return err_set(e, "%s", l->tar.why);
        }
    }
}

int layer_end(struct layering *l, struct err *e)
{
    int rc = file_end(l, e);

    if (rc == 0 && !l->tar.ended)
        rc = err_set(e, "its tar stream is cut short");
    layer_drop(l);
    return rc;
}

void layer_drop(struct layering *l)
{
    if (l->file >= 0)
        close(l->file);
    if (l->dir >= 0)
        close(l->dir);
    l->file = l->dir = -1;
}
