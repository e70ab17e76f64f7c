#include "sandbox-shim/inside/shim_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_beneath.h"

enum { TRIES = 64 }; /* to make what somebody else makes something else of meanwhile */

/* --- out ----------------------------------------------------------------------------- */

static int put(struct pack *k, const uint8_t *p, size_t n)
{
    if (n > k->most) {
        errno = EFBIG;
        return -1;
    }
    k->most -= n;
    return k->put(k->arg, p, n);
}

static int put_head(struct pack *k, enum tar_type type, const struct stat *st)
{
    k->m.type = type;
    k->m.mode = (unsigned)st->st_mode & 07777;
    k->m.size = type == TAR_FILE ? (uint64_t)st->st_size : 0;
    k->m.mtime = st->st_mtim.tv_sec;
    size_t n = tar_head(k->head, &k->m);
    errno = n == 0 ? ENAMETOOLONG : EFBIG;
    return n == 0 || k->m.size > k->most ? -1 : put(k, k->head, n); /* what does not fit is not begun */
}

/* As many bytes as its header says, whatever becomes of the file meanwhile. */
static int put_content(struct pack *k, int fd)
{
    uint64_t left = k->m.size;

    for (bool ended = false; left > 0;) {
        size_t most = left < TREE_PIECE ? (size_t)left : TREE_PIECE;
        ssize_t n = ended ? 0 : read(fd, k->piece, most);
        if (n < 0)
            return -1;
        ended = n == 0;
        if (ended) {
            memset(k->piece, 0, most);
            n = (ssize_t)most;
        }
        if (put(k, k->piece, (size_t)n) != 0)
            return -1;
        left -= (uint64_t)n;
    }
    memset(k->piece, 0, TAR_BLOCK);
    return put(k, k->piece, tar_pad(k->m.size));
}

/* What does not fit is not begun, nor asked about: a file may say that it has more bytes than anybody can read. */
static int put_file(struct pack *k, int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return -1;
    if (!S_ISREG(st.st_mode))
        return 0;
    if ((uint64_t)st.st_size > k->most) {
        errno = EFBIG;
        return -1;
    }
    int same = k->known ? k->known->same(k->known->arg, fd, &st) : 0;
    if (same < 0)
        return -1;
    if (same == 1) {
        k->most -= (uint64_t)st.st_size;
        st.st_size = 0;
    }
    return put_head(k, TAR_FILE, &st) == 0 ? put_content(k, fd) : -1;
}

static int pack_file(struct pack *k, int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENXIO ? 0 : -1; /* it is another one now, or none */
    int rc = put_file(k, fd);
    int why = errno;
    close(fd);
    errno = why;
    return rc;
}

static int pack_link(struct pack *k, int dir, const char *name, const struct stat *st)
{
    ssize_t n = readlinkat(dir, name, k->m.target, TAR_NAME_MAX);

    if (n <= 0)
        return 0;
    k->m.target[n] = '\0';
    int rc = put_head(k, TAR_LINK, st);
    k->m.target[0] = '\0';
    return rc;
}

static int pack_level(struct pack *k, int dir, unsigned depth);

static int pack_below(struct pack *k, int dir, const char *name, unsigned depth)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENOTDIR ? 0 : -1;
    int rc = fstat(fd, &st);
    if (rc == 0)
        rc = put_head(k, TAR_FOLDER, &st);
    if (rc == 0)
        rc = pack_level(k, fd, depth + 1);
    int why = errno;
    close(fd);
    errno = why;
    return rc;
}

static int pack_entry(struct pack *k, int dir, const char *name, unsigned depth)
{
    size_t at = strlen(k->m.name), n = strlen(name);
    struct stat st;
    int rc = 0;

    if (at + 1 + n > TAR_NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -1;
    (void)snprintf(k->m.name + at, sizeof(k->m.name) - at, "%s%s", at > 0 ? "/" : "", name);
    if (S_ISREG(st.st_mode))
        rc = pack_file(k, dir, name);
    else if (S_ISDIR(st.st_mode))
        rc = pack_below(k, dir, name, depth);
    else if (S_ISLNK(st.st_mode))
        rc = pack_link(k, dir, name, &st);
    else
        k->left_out++;
    if (rc == 0)
        k->m.name[at] = '\0'; /* else it says where it failed */
    return rc;
}

static int pack_level(struct pack *k, int dir, unsigned depth)
{
    const struct dirent *e;
    int rc = 0, fd = depth < TREE_DEPTH_MAX ? openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (depth >= TREE_DEPTH_MAX)
        errno = ENAMETOOLONG;
    if (!d) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    while (rc == 0 && (errno = 0, e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = pack_entry(k, dir, e->d_name, depth);
    if (rc == 0 && errno != 0)
        rc = -1;
    int why = errno;
    closedir(d);
    errno = why;
    return rc;
}

int pack_folder(struct pack *k, int dir)
{
    k->m = (struct tar_member){0};
    if (pack_level(k, dir, 0) != 0)
        return -1;
    memset(k->piece, 0, 2 * TAR_BLOCK);
    return put(k, k->piece, 2 * TAR_BLOCK);
}

/* --- in ------------------------------------------------------------------------------ */

void unpack_begin(struct unpack *u, int root, bool outside)
{
    memset(u, 0, sizeof(*u));
    u->root = root;
    u->outside = outside;
    u->file = u->dir = -1;
}

void unpack_drop(struct unpack *u)
{
    int why = errno;

    if (u->file >= 0)
        close(u->file);
    if (u->dir >= 0)
        close(u->dir);
    u->file = u->dir = -1;
    errno = why;
}

/* The folder that a member is in, made if need be; *name: its name there. */
static int above_open(struct unpack *u, const char **name)
{
    const char *whole = u->tar.member.name, *slash = strrchr(whole, '/');
    char above[TAR_NAME_MAX + 1];
    size_t n = slash ? (size_t)(slash - whole) : 0;

    *name = slash ? slash + 1 : whole;
    memcpy(above, whole, n);
    above[n] = '\0';
    if (u->dir >= 0 && strcmp(above, u->above) == 0)
        return 0;
    if (u->dir >= 0)
        close(u->dir);
    const char *path = n > 0 ? above : ".";
    u->dir = beneath_open(u->root, path, O_PATH | O_DIRECTORY, 0, !u->outside);
    if (u->dir < 0 && errno == ENOENT && beneath_mkdirs(u->root, above, 0777, !u->outside) == 0)
        u->dir = beneath_open(u->root, path, O_PATH | O_DIRECTORY, 0, !u->outside);
    memcpy(u->above, above, n + 1);
    return u->dir >= 0 ? 0 : -1;
}

/* From its folder, which is `depth` below the root: up at the beginning alone, and not past the root. Each link being
 * so, no way through several of them leads out either. */
static bool leads_out(const char *target, size_t depth)
{
    bool down = false;

    if (*target == '/')
        return true;
    while (*target) {
        size_t part = strcspn(target, "/");
        bool up = part == 2 && memcmp(target, "..", 2) == 0;
        if (up && (down || depth-- == 0))
            return true;
        down |= !up && part > 0 && !(part == 1 && *target == '.');
        target += part + (target[part] == '/');
    }
    return false;
}

static size_t depth_of(const char *name)
{
    size_t n = 0;

    for (; *name; name++)
        n += *name == '/';
    return n;
}

/* A hard link to a symbolic link is that link once more, at a depth that nobody asked leads_out about. */
static int make_hard_link(struct unpack *u, const char *name)
{
    struct place from = {.dir = -1};
    struct stat st;
    int rc = place_find(u->root, u->tar.member.target, !u->outside, &from);

    if (rc == 0)
        rc = fstatat(from.dir, from.name, &st, AT_SYMLINK_NOFOLLOW);
    if (rc == 0 && u->outside && !S_ISREG(st.st_mode))
        u->left_out++;
    else if (rc == 0)
        rc = linkat(from.dir, from.name, u->dir, name, 0);
    place_close(&from);
    return rc;
}

static int make_link(const struct unpack *u, const char *name)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = u->tar.member.mtime}};
    int rc = symlinkat(u->tar.member.target, u->dir, name);

    if (rc == 0 && u->exact)
        (void)utimensat(u->dir, name, times, AT_SYMLINK_NOFOLLOW); /* one that does not fit is of no matter */
    return rc;
}

/* What has the name is not written into, whatever it is: it gives way. */
static int make(struct unpack *u, const char *name)
{
    const struct tar_member *m = &u->tar.member;

    if (m->type == TAR_FILE) {
        u->mtime = m->mtime;
        u->mode = m->mode;
        u->file = openat(u->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)m->mode & 0777);
        return u->file >= 0 ? 0 : -1;
    }
    return m->type == TAR_LINK ? make_link(u, name) : make_hard_link(u, name);
}

/* A folder that comes again. */
static int folder_end(const struct unpack *u, const char *name)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = u->tar.member.mtime}};
    int fd = openat(u->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == EACCES && fchmodat(u->dir, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
        fd = openat(u->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd >= 0 ? fchmod(fd, (mode_t)u->tar.member.mode & 0777) : -1;

    if (fd >= 0) {
        (void)futimens(fd, times);
        close(fd);
    }
    return rc;
}

static int make_folder(const struct unpack *u, const char *name)
{
    struct stat st;

    if (mkdirat(u->dir, name, (mode_t)(u->tar.member.mode & 0777) | 0700) == 0)
        return 0;
    if (errno == EEXIST && fstatat(u->dir, name, &st, u->outside ? AT_SYMLINK_NOFOLLOW : 0) == 0 &&
        S_ISDIR(st.st_mode))
        return u->exact ? folder_end(u, name) : 0;
    return -1;
}

static int file_end(struct unpack *u)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = u->mtime}};

    if (u->file < 0)
        return 0;
    int rc = u->exact ? fchmod(u->file, (mode_t)u->mode & 0777) : 0;
    (void)futimens(u->file, times); /* one that does not fit is of no matter */
    if (close(u->file) != 0)
        rc = -1;
    u->file = -1;
    return rc;
}

/* Something is in the way, and may be so once more: who makes it may be as quick. */
static bool may_again(const struct unpack *u, unsigned tries)
{
    return (errno == EEXIST && tries < (u->exact ? TRIES : 1)) || (errno == EACCES && u->exact && tries < TRIES);
}

/* What has the name goes; where the stream is exact, also a folder with all that is in it, and a folder that nothing
 * may be put into may be: its own mode comes last. */
static bool gives_way(const struct unpack *u, const char *name)
{
    struct place p = {.dir = u->dir};

    if (!u->exact)
        return unlinkat(u->dir, name, 0) == 0;
    if (errno == EACCES)
        return fchmodat(u->dir, ".", 0700, 0) == 0;
    (void)snprintf(p.name, sizeof(p.name), "%s", name);
    (void)!place_remove(&p, true); /* if it stays, it is met again */
    return true;
}

static int member_take(struct unpack *u)
{
    const struct tar_member *m = &u->tar.member;
    const char *name;

    if (file_end(u) != 0)
        return -1;
    if (m->type == TAR_OTHER ||
        (m->type == TAR_LINK && u->outside && !u->exact && leads_out(m->target, depth_of(m->name)))) {
        u->left_out++;
        return 0;
    }
    if (m->name[0] == '\0' || (m->type == TAR_HARD_LINK && strcmp(m->name, m->target) == 0))
        return 0;
    if (above_open(u, &name) != 0)
        return -1;
    if (m->type == TAR_FOLDER) {
        int made = make_folder(u, name);
        for (unsigned i = 0; made != 0 && u->exact && may_again(u, i) && gives_way(u, name); i++)
            made = make_folder(u, name);
        return made;
    }
    int rc = make(u, name);
    for (unsigned i = 0; rc != 0 && may_again(u, i) && gives_way(u, name); i++)
        rc = make(u, name);
    return rc;
}

static int data_take(const struct unpack *u)
{
    const uint8_t *p = u->tar.data;

    for (size_t left = u->tar.ndata; left > 0;) {
        ssize_t n = write(u->file, p, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        p += n;
        left -= (size_t)n;
    }
    return 0;
}

int unpack_take(struct unpack *u, const uint8_t *p, size_t n)
{
    size_t used;

    for (;;) {
        enum tar_got got = tar_step(&u->tar, p, n, &used);
        p += used;
        n -= used;
        switch (got) {
        case TAR_MEMBER:
            if (member_take(u) != 0)
                return -1;
            break;
        case TAR_DATA:
            if (data_take(u) != 0)
                return -1;
            break;
        case TAR_MORE:
        case TAR_END: return 0;
        default:
            u->why = u->tar.why;
            errno = EBADMSG;
            return -1;
        }
    }
}

int unpack_end(struct unpack *u)
{
    int rc = file_end(u);

    if (rc == 0 && !u->tar.ended) {
        u->why = "the tar stream is cut short";
        errno = EBADMSG;
        rc = -1;
    }
    unpack_drop(u);
    return rc;
}
