#include "sandbox-shim/plan/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool inside(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    if (strcmp(dir, "/") == 0)
        return true;
    return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool place_overlaps(const char *a, const char *b)
{
    return inside(a, b) || inside(b, a);
}

int place_resolve(const char *path, char out[PATH_MAX])
{
    char head[PATH_MAX], real[PATH_MAX];
    const char *tail = "";
    struct stat st;
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof(head) || path[0] != '/') {
        errno = EINVAL;
        return -1;
    }
    memcpy(head, path, n + 1);
    while (!realpath(*head ? head : "/", real)) {
        if (errno != ENOENT || !*head)
            return -1;
        if (lstat(head, &st) == 0) { /* a link that leads nowhere yet: who knows where tomorrow */
            errno = ELOOP;
            return -1;
        }
        *strrchr(head, '/') = '\0';
        tail = path + strlen(head);
    }
    /* What does not exist is no link; but .. in it would lie about where it leads. */
    if (strstr(tail, "/..")) {
        errno = ENOENT;
        return -1;
    }
    int k = snprintf(out, PATH_MAX, "%s%s", strcmp(real, "/") == 0 && *tail ? "" : real, tail);
    if (k > 0 && k < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

/* never, nor anything in them; */
static const char *const whole[] = {"/etc",  "/usr", "/bin",  "/sbin", "/lib", "/lib64",
                                    "/boot", "/dev", "/proc", "/sys",  "/run", NULL};
/* not as they are: other people's and programs' files and sockets lie in them */
static const char *const exact[] = {"/home",      "/media",     "/mnt",     "/opt",     "/srv",
                                    "/tmp",       "/var",       "/var/tmp", "/var/lib", "/var/run",
                                    "/var/spool", "/var/cache", "/var/log", NULL};

static bool is_exact(const char *real)
{
    for (const char *const *p = exact; *p; p++)
        if (strcmp(real, *p) == 0)
            return true;
    return false;
}

static int check_system(const char *real, bool writable, struct err *e)
{
    for (const char *const *p = whole; *p; p++)
        if (inside(real, *p))
            return err_set(e,
                           "%s belongs to the system (%s): a sandbox must not have it; make a directory of "
                           "its own for the work and say --workspace DIR",
                           real, *p);
    if (writable && is_exact(real))
        return err_set(e,
                       "%s is shared with others: make a directory of its own for the work and say "
                       "--workspace DIR",
                       real);
    return 0;
}

int place_check(const char *real, bool writable, const char *state_dir, const char *home, struct err *e)
{
    char state[PATH_MAX], house[PATH_MAX];

    if (strcmp(real, "/") == 0)
        return err_set(e, "the directory must not be /: the sandbox could read every secret on this machine; say "
                          "--workspace DIR with the project's own directory");
    if (place_resolve(state_dir, state) != 0)
        return err_errno(e, "the state directory %s cannot be resolved", state_dir);
    if (place_overlaps(real, state))
        return err_set(e,
                       "the directory %s overlaps the state directory %s, where the credentials are sealed: use "
                       "another directory, or keep the state elsewhere with --state-dir",
                       real, state);
    if (home && home[0] == '/' && strcmp(home, "/") != 0) {
        if (place_resolve(home, house) != 0)
            return err_errno(e, "the home directory %s cannot be resolved", home);
        if (inside(house, real))
            return err_set(e,
                           "the directory %s is your home directory or holds it, with its keys and tokens: say "
                           "--workspace DIR with the project's own directory",
                           real);
    }
    return check_system(real, writable, e);
}

/* Where an open directory lies; -1 when it lies nowhere any more. */
static int path_of(int fd, char out[PATH_MAX])
{
    char link[64];
    struct stat opened, named;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    if (n <= 0)
        return -1;
    out[n] = '\0';
    errno = ESTALE;
    return fstat(fd, &opened) == 0 && lstat(out, &named) == 0 && opened.st_dev == named.st_dev &&
                   opened.st_ino == named.st_ino
               ? 0
               : -1;
}

/* Whoever owns a link says nothing: what a sandbox makes in its workspace belongs to its caller, who may be root. So
 * a link counts only where no sandbox can ever have written: in a directory that none is given, and that none but
 * root can write (/home on another disk, /opt/tool for its newest version). */
static bool link_is_the_systems(int dir, const char *path)
{
    struct stat st;

    return (strcmp(path, "/") == 0 || is_exact(path)) && fstat(dir, &st) == 0 && st.st_uid == 0 &&
           !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static int walk(const char *dir, int at, const char *path, int depth, struct err *e);

/* The link `name` in `at`: what it leads to, opened. */
static int follow(const char *dir, int at, const char *name, int depth, struct err *e)
{
    char where[PATH_MAX], target[PATH_MAX], real[PATH_MAX];
    ssize_t n = readlinkat(at, name, target, sizeof(target) - 1);

    if (n <= 0 || path_of(at, where) != 0 || depth == 0 || !realpath(dir, real))
        return err_errno(e, "the directory %s cannot be used", dir);
    target[n] = '\0';
    if (!link_is_the_systems(at, where))
        return err_set(e,
                       "the directory %s leads through the symbolic link %s%s%s, and a sandbox that could once write "
                       "there may have made it: if %s is what you mean, say that",
                       dir, where, where[1] ? "/" : "", name, real);
    return walk(dir, at, target, depth - 1, e);
}

/* Part by part, each opened before it is looked at: what is exchanged meanwhile is not what we have. */
static int walk(const char *dir, int from, const char *path, int depth, struct err *e)
{
    int at = path[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)
                            : openat(from, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    while (at >= 0 && *(path += strspn(path, "/"))) {
        char name[NAME_MAX + 1];
        struct stat st;
        size_t n = strcspn(path, "/");
        int next = -1;
        errno = ENAMETOOLONG;
        if (n <= NAME_MAX) {
            memcpy(name, path, n);
            name[n] = '\0';
            next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        }
        if (next >= 0 && (fstat(next, &st) != 0 || S_ISLNK(st.st_mode))) {
            close(next);
            next = follow(dir, at, name, depth, e);
            close(at);
            if (next < 0)
                return -1;
        } else {
            close(at);
        }
        at = next;
        path += n;
    }
    return at >= 0 ? at : err_errno(e, "the directory %s cannot be used", dir);
}

int place_open(const char *dir, char out[PATH_MAX], struct err *e)
{
    enum { LINKS_MAX = 8 }; /* one behind the other */
    struct stat st;
    int fd = *dir ? walk(dir, AT_FDCWD, dir, LINKS_MAX, e) : err_set(e, "a directory without a name cannot be used");

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
        (void)err_set(e, "the directory %s is not a directory", dir);
    else if (path_of(fd, out) != 0)
        (void)err_errno(e, "the directory %s cannot be found again", dir);
    else
        return fd;
    close(fd);
    return -1;
}

/* The directory this program lies in. */
static int own_dir(char out[PATH_MAX], struct err *e)
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

    if (n <= 0)
        return err_errno(e, "this program cannot find itself");
    out[n] = '\0';
    *strrchr(out, '/') = '\0';
    return 0;
}

int place_program(const char *name, char out[PATH_MAX], struct err *e)
{
    char dir[PATH_MAX];
    int n;

    if (own_dir(dir, e) != 0)
        return -1;
    n = snprintf(out, PATH_MAX, "%s/%s", dir, name);
    if (n > 0 && n < PATH_MAX && access(out, X_OK) == 0)
        return 0;
    n = snprintf(out, PATH_MAX, "%s/%s", LIBEXECDIR, name);
    if (n > 0 && n < PATH_MAX && access(out, X_OK) == 0)
        return 0;
    return err_errno(e, "%s is missing or cannot be executed: is Countersign installed completely?", out);
}

int place_policy(const char *name, char out[PATH_MAX], struct err *e)
{
    const char *dir = getenv("COUNTERSIGN_POLICIES");
    const char *const dirs[] = {dir && dir[0] == '/' ? dir : PKGDATADIR "/policies", PKGDATADIR "/conf/policies"};

    for (size_t i = 0; i < 2; i++) {
        int n = snprintf(out, PATH_MAX, "%s/%s.yaml", dirs[i], name);
        if (n > 0 && n < PATH_MAX && access(out, R_OK) == 0)
            return 0;
    }
    return err_set(e, "no policy for `%s` is shipped (looked in %s): say --policy FILE", name, dirs[0]);
}
