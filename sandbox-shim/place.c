#include "sandbox-shim/place.h"

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

static int check_system(const char *real, bool writable, struct err *e)
{
    /* never, nor anything in them; */
    static const char *const whole[] = {"/etc",  "/usr", "/bin",  "/sbin", "/lib", "/lib64",
                                        "/boot", "/dev", "/proc", "/sys",  "/run", NULL};
    /* not as they are: other people's and programs' files and sockets lie in them */
    static const char *const exact[] = {"/home",      "/media",     "/mnt",     "/opt",     "/srv",
                                        "/tmp",       "/var",       "/var/tmp", "/var/lib", "/var/run",
                                        "/var/spool", "/var/cache", "/var/log", NULL};

    for (const char *const *p = whole; *p; p++)
        if (inside(real, *p))
            return err_set(e,
                           "%s belongs to the system (%s): a sandbox must not have it; make a directory of "
                           "its own for the work and say --workspace DIR",
                           real, *p);
    for (const char *const *p = exact; writable && *p; p++)
        if (strcmp(real, *p) == 0)
            return err_set(e,
                           "%s is shared with others: make a directory of its own for the work and say "
                           "--workspace DIR",
                           real);
    return 0;
}

int place_check(const char *dir, bool writable, const char *state_dir, const char *home, char out[PATH_MAX],
                struct err *e)
{
    char state[PATH_MAX], house[PATH_MAX];
    struct stat st;

    if (!realpath(dir, out))
        return err_errno(e, "the directory %s cannot be used", dir);
    if (stat(out, &st) != 0 || !S_ISDIR(st.st_mode))
        return err_set(e, "the directory %s is not a directory", out);
    if (strcmp(out, "/") == 0)
        return err_set(e, "the directory must not be /: the sandbox could read every secret on this machine; say "
                          "--workspace DIR with the project's own directory");
    if (place_resolve(state_dir, state) != 0)
        return err_errno(e, "the state directory %s cannot be resolved", state_dir);
    if (place_overlaps(out, state))
        return err_set(e,
                       "the directory %s overlaps the state directory %s, where the credentials are sealed: use "
                       "another directory, or keep the state elsewhere with --state-dir",
                       out, state);
    if (home && home[0] == '/' && strcmp(home, "/") != 0) {
        if (place_resolve(home, house) != 0)
            return err_errno(e, "the home directory %s cannot be resolved", home);
        if (inside(house, out))
            return err_set(e,
                           "the directory %s is your home directory or holds it, with its keys and tokens: say "
                           "--workspace DIR with the project's own directory",
                           out);
    }
    return check_system(out, writable, e);
}

int place_open(const char *resolved, struct err *e)
{
    char link[64], now[PATH_MAX];
    int fd = open(resolved, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "%s cannot be opened", resolved);
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, now, sizeof(now) - 1);
    if (n > 0 && (size_t)n == strlen(resolved) && memcmp(now, resolved, (size_t)n) == 0)
        return fd;
    close(fd);
    return err_set(e, "%s was moved or replaced while it was being opened", resolved);
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
