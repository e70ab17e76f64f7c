#include "policy/load/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DISK_MEMORY_MAX = 128 * 1024 * 1024, DISK_FILES_MAX = 64, CA_MAX = 256 * 1024 };

static int check_file(int fd, const char *path, size_t max, struct stat *st, struct err *e)
{
    if (fstat(fd, st) != 0)
        return err_errno(e, "cannot look at %s", path);
    if (!S_ISREG(st->st_mode))
        return err_set(e, "%s is not a regular file", path);
    if (st->st_mode & S_IWOTH)
        return err_set(e, "anybody may write %s: run chmod o-w on it", path);
    if ((uint64_t)st->st_size > max)
        return err_set(e, "%s has %lld bytes, more than the %zu that are read: split it", path,
                       (long long)st->st_size, max);
    return 0;
}

static int read_all(int fd, const char *path, uint8_t *to, size_t n, struct err *e)
{
    for (size_t got = 0; got < n;) {
        ssize_t r = read(fd, to + got, n - got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return err_errno(e, "cannot read %s", path);
        if (r == 0)
            return err_set(e, "%s changed while it was read: try again", path);
        got += (size_t)r;
    }
    return 0;
}

int policy_read_file(const char *path, size_t max, struct arena *a, struct span *out, struct err *e)
{
    struct stat st = {0};
    uint8_t *bytes = NULL;
    int rc = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ELOOP ? err_set(e, "%s is a symbolic link: name the file itself", path)
                              : err_errno(e, "cannot open %s", path);
    if (check_file(fd, path, max, &st, e) != 0)
        goto out;
    bytes = arena_alloc(a, (size_t)st.st_size + 1);
    if (bytes == NULL) {
        (void)err_set(e, "no memory to read %s", path);
        goto out;
    }
    rc = read_all(fd, path, bytes, (size_t)st.st_size, e);
    *out = span_of(bytes, (size_t)st.st_size);
out:
    close(fd);
    return rc;
}

struct disk {
    struct arena a;
    const char *const *paths;
    size_t n;
    const char *packs;
};

static bool is_plain(struct span s)
{
    return s.n > 0 && s.n < 512 && memchr(s.p, 0, s.n) == NULL && !span_starts(s, SPAN("../")) &&
           span_find(s, SPAN("/../")) == s.n;
}

static int fetch_pack(struct disk *d, struct span name, struct span *text, struct err *e)
{
    const char *const dirs[] = {d->packs ? d->packs : PKGDATADIR "/packs", d->packs ? NULL : "conf/packs"};
    char path[4096];
    struct span stem = span_first(name, span_index(name, '@'));
    if (!is_plain(stem) || span_index(stem, '/') < stem.n)
        return err_set(e, "no name of a pack");
    for (size_t i = 0; i < 2 && dirs[i]; i++) {
        snprintf(path, sizeof(path), "%s/%.*s.yaml", dirs[i], SPAN_FMT(stem));
        if (i == 1 || d->packs || access(path, F_OK) == 0)
            return policy_read_file(path, POLICY_FILE_MAX, &d->a, text, e);
    }
    return -1;
}

/* Beside the policy file that exists with it; a policy of several files may lie in several folders. */
static int fetch_ca(struct disk *d, struct span name, struct span *text, struct err *e)
{
    char path[4096];
    if (!is_plain(name))
        return err_set(
            e, "a file of CAs or CRLs lies in the policy's folder or below, or its path is absolute, without \"..\"");
    if (name.p[0] == '/') {
        snprintf(path, sizeof(path), "%.*s", SPAN_FMT(name));
        return policy_read_file(path, CA_MAX, &d->a, text, e);
    }
    for (size_t i = 0; i < d->n; i++) {
        const char *slash = strrchr(d->paths[i], '/');
        int dir = slash ? (int)(slash - d->paths[i] + 1) : 0;
        snprintf(path, sizeof(path), "%.*s%.*s", dir, d->paths[i], SPAN_FMT(name));
        if (i + 1 == d->n || access(path, F_OK) == 0)
            return policy_read_file(path, CA_MAX, &d->a, text, e);
    }
    return -1;
}

static int fetch(void *arg, enum policy_ref kind, struct span name, struct span *text, struct err *e)
{
    return kind == POLICY_REF_PACK ? fetch_pack(arg, name, text, e) : fetch_ca(arg, name, text, e);
}

/* A file that cannot be read is a problem like any other, so that --json has it too. */
static void unreadable(struct policy_problems *p, const char *path, const struct err *e)
{
    if (p == NULL || p->n >= p->max)
        return;
    struct policy_problem *v = &p->v[p->n++];
    snprintf(v->code, sizeof(v->code), "P000");
    v->severity = 'E';
    snprintf(v->where, sizeof(v->where), "%.250s:1:1", path);
    snprintf(v->text, sizeof(v->text), "%s", e->text);
}

int policy_load_from_disk(const char *const *paths, size_t n, const char *floors, const char *packs,
                          struct dynbuf *out, struct policy_problems *problems, struct err *e)
{
    struct disk d = {.paths = paths, .n = n, .packs = packs};
    struct policy_file files[DISK_FILES_MAX + 1] = {{0}};
    struct err own = {""};
    size_t all = n + (floors ? 1 : 0);
    int rc = -1;
    arena_init(&d.a, DISK_MEMORY_MAX);
    if (n == 0 || n > DISK_FILES_MAX) {
        (void)err_set(e, "%zu policy files: there must be 1 to %d", n, DISK_FILES_MAX);
        goto out;
    }
    for (size_t i = 0; i < all; i++) {
        files[i] = (struct policy_file){i < n ? paths[i] : floors, SPAN_NONE, i == n};
        if (policy_read_file(files[i].name, POLICY_FILE_MAX, &d.a, &files[i].text, &own) != 0) {
            unreadable(problems, files[i].name, &own);
            (void)err_set(e, "%s", own.text);
            goto out;
        }
    }
    rc = policy_load(files, all, fetch, &d, out, problems, e);
out:
    arena_free(&d.a);
    return rc;
}
