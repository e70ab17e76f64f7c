#include "policy/load/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text/nearest.h"
#include "policy/load/files/signed.h"
#include "policy/load/emit/zone.h"
#include "policy/load/read/keys.h"

enum { DISK_MEMORY_MAX = 128 * 1024 * 1024, PATH_MAX_BYTES = 4096, CA_MAX = 256 * 1024 };

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

/* Half of a file can be a policy too, with fewer denies: what grows or is written meanwhile is not read. */
static int same_still(int fd, const char *path, const struct stat *st, struct err *e)
{
    struct stat now = {0};
    uint8_t more;
    bool same = read(fd, &more, 1) == 0 && fstat(fd, &now) == 0 && now.st_size == st->st_size &&
                now.st_mtim.tv_sec == st->st_mtim.tv_sec && now.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
    return same ? 0 : err_set(e, "%s changed while it was read: try again", path);
}

/* Ends fd. */
static int read_open(int fd, const char *path, const struct stat *st, struct arena *a, struct span *out,
                     struct err *e)
{
    size_t n = (size_t)st->st_size;
    uint8_t *bytes = arena_alloc(a, n + 1);
    int rc = bytes ? read_all(fd, path, bytes, n, e) : err_set(e, "no memory to read %s", path);
    if (rc == 0)
        rc = same_still(fd, path, st, e);
    *out = span_of(bytes, n);
    close(fd);
    return rc;
}

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };

/* Open and looked at; -1 with *e. */
static int open_file(int dir, const char *name, const char *path, size_t max, struct stat *st, struct err *e)
{
    int fd = openat(dir, name, OPEN_FLAGS);
    if (fd < 0)
        return errno == ELOOP ? err_set(e, "%s is a symbolic link: name the file itself", path)
                              : err_errno(e, "cannot open %s", path);
    if (check_file(fd, path, max, st, e) == 0)
        return fd;
    close(fd);
    return -1;
}

int policy_read_file(const char *path, size_t max, struct arena *a, struct span *out, struct err *e)
{
    struct stat st = {0};
    int fd = open_file(AT_FDCWD, path, path, max, &st, e);
    return fd < 0 ? -1 : read_open(fd, path, &st, a, out, e);
}

struct disk {
    struct arena a;
    const char *const *paths;
    size_t n;
    const char *packs;
    const struct signers *signers; /* NULL: nothing has to be signed */
    policy_saw_fn *saw;
    void *saw_arg;
    policy_input_fn *input;
    void *input_arg;
    int (*roots_strict)(struct span roots_pem, struct err *e);
    struct seen { /* policy files, so that one by two names is one */
        dev_t dev;
        ino_t ino;
        struct span text;
    } seen[POLICY_FILES_MAX];
    size_t nseen;
};

/* Before anything is made of it: is what was read signed, where it has to be? */
static int take_read(struct disk *d, const char *path, struct span text, struct err *e)
{
    if (d->signers && signed_check(d->signers, path, text, &d->a, d->saw, d->saw_arg, e) != 0)
        return -1;
    if (d->saw)
        d->saw(d->saw_arg, path, text);
    return 0;
}

/* As policy_read_file, of what belongs to the policy. */
static int read_seen(struct disk *d, const char *path, size_t max, struct span *out, struct err *e)
{
    int rc = policy_read_file(path, max, &d->a, out, e);
    return rc == 0 ? take_read(d, path, *out, e) : rc;
}

/* The same of a policy file, fd, which this ends: its text is the one of before when it was read before. */
static int read_once(struct disk *d, int fd, const char *path, const struct stat *st, struct span *out, struct err *e)
{
    for (size_t i = 0; i < d->nseen; i++)
        if (d->seen[i].dev == st->st_dev && d->seen[i].ino == st->st_ino) {
            *out = d->seen[i].text;
            close(fd);
            return 0;
        }
    if (read_open(fd, path, st, &d->a, out, e) != 0 || take_read(d, path, *out, e) != 0)
        return -1;
    if (d->nseen < POLICY_FILES_MAX)
        d->seen[d->nseen++] = (struct seen){st->st_dev, st->st_ino, *out};
    return 0;
}

static int read_top(struct disk *d, const char *path, struct span *out, struct err *e)
{
    struct stat st = {0};
    int fd = open_file(AT_FDCWD, path, path, POLICY_FILE_MAX, &st, e);
    return fd < 0 ? -1 : read_once(d, fd, path, &st, out, e);
}

static bool is_plain(struct span s)
{
    return s.n > 0 && s.n < 512 && memchr(s.p, 0, s.n) == NULL && !span_starts(s, SPAN("../")) &&
           span_find(s, SPAN("/../")) == s.n;
}

/* Which packs the folder has, for whoever named one that it has not. */
static int no_pack(const char *dir, struct span stem, struct err *e)
{
    enum { PACKS = 32 };
    char list[256] = "", copy[PACKS][64];
    const char *names[PACKS + 1] = {0}, *near;
    size_t n = 0, have = 0;
    DIR *d = opendir(dir);
    for (struct dirent *f; d && (f = readdir(d));) {
        struct span name = span_str(f->d_name);
        if (span_ends(name, SPAN(".yaml")) && n + name.n < sizeof(list))
            n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%.*s", n ? ", " : "", (int)name.n - 5, f->d_name);
        if (span_ends(name, SPAN(".yaml")) && have < PACKS) {
            (void)snprintf(copy[have], sizeof(copy[have]), "%.*s", (int)name.n - 5, f->d_name);
            names[have] = copy[have];
            have++;
        }
    }
    if (d)
        closedir(d);
    near = nearest_name(stem, names);
    if (near)
        return err_set(e, "did you mean %s? %s has %s", near, dir, list);
    return n ? err_set(e, "%s has no %.*s, but %s", dir, SPAN_FMT(span_first(stem, 64)), list)
             : err_set(e, "there are no packs in %s", dir);
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
        if (access(path, F_OK) != 0 && errno == ENOENT) {
            if (i == 0 && !d->packs && access(dirs[1], F_OK) == 0)
                continue;
            return no_pack(dirs[0], stem, e);
        }
        if (strcmp(dirs[i], PKGDATADIR "/packs") != 0)
            return read_seen(d, path, POLICY_FILE_MAX, text, e);
        /* Installed with this program: whoever can write there needs no signature. */
        int rc = policy_read_file(path, POLICY_FILE_MAX, &d->a, text, e);
        if (rc == 0 && d->saw)
            d->saw(d->saw_arg, path, *text);
        return rc;
    }
    return -1;
}

static bool is_path(struct span s)
{
    return s.n > 0 && s.n < PATH_MAX_BYTES && memchr(s.p, 0, s.n) == NULL;
}

static int fetch_ca(struct disk *d, struct span name, struct span *text, struct err *e)
{
    char path[PATH_MAX_BYTES];
    if (!is_path(name))
        return err_set(e, "this is no path");
    snprintf(path, sizeof(path), "%.*s", SPAN_FMT(name));
    if (read_seen(d, path, CA_MAX, text, e) != 0)
        return -1;
    if (d->roots_strict)
        (void)d->roots_strict(*text,
                              e); /* words in *e: a warning; a revocation list, which comes this way too, has none */
    return 0;
}

static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path + 1) : 0;
}

/* The widest folder of a top file that path is in: what lies below it is not followed through any link. */
static int widest_folder(const struct disk *d, const char *path)
{
    int widest = -1;
    for (size_t i = 0; i < d->n; i++) {
        int n = folder_length(d->paths[i]);
        bool here = n == 0 ? path[0] != '/' : strncmp(d->paths[i], path, (size_t)n) == 0;
        if (here && (widest < 0 || n < widest))
            widest = n;
    }
    return widest;
}

/* Step by step through the folders below dir, which this ends; a step that is a link, or back, is refused. The path
 * is changed on the way and whole again at the end. */
static int open_below(int dir, char *path, size_t done, struct stat *st, struct err *e)
{
    char *slash;
    while (dir >= 0 && (slash = strchr(path + done, '/')) != NULL) {
        *slash = '\0';
        bool odd = path[done] == '\0' || strcmp(path + done, ".") == 0 || strcmp(path + done, "..") == 0;
        int next = odd ? -1 : openat(dir, path + done, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (odd)
            (void)err_set(e, "%s is no folder to go through", path);
        else if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
            (void)err_set(e, "%s is a symbolic link or no folder: name files by the folders they are in", path);
        else if (next < 0)
            (void)err_errno(e, "cannot open %s", path);
        *slash = '/';
        close(dir);
        dir = next;
        done = (size_t)(slash - path) + 1;
    }
    if (dir < 0)
        return -1;
    int fd = open_file(dir, path + done, path, POLICY_FILE_MAX, st, e);
    close(dir);
    return fd;
}

static int fetch_include(struct disk *d, struct span name, struct span *text, struct err *e)
{
    char path[PATH_MAX_BYTES], top[PATH_MAX_BYTES];
    struct stat st = {0};
    if (!is_path(name))
        return err_set(e, "this is no path");
    snprintf(path, sizeof(path), "%.*s", SPAN_FMT(name));
    int n = widest_folder(d, path);
    if (n < 0)
        return err_set(e, "%s is not in the folder of the policy", path);
    snprintf(top, sizeof(top), "%.*s", n, path);
    int dir = open(n ? top : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_errno(e, "cannot open %s", n ? top : "the folder");
    int fd = open_below(dir, path, (size_t)n, &st, e);
    return fd < 0 ? -1 : read_once(d, fd, path, &st, text, e);
}

/* The system's own: links lead from one name to another there, but never out. */
static int fetch_zone(struct disk *d, struct span name, struct span *text, struct err *e)
{
    static const char dir[] = "/usr/share/zoneinfo";
    char path[256], root[PATH_MAX], real[PATH_MAX];
    if (!zone_is_name(name))
        return err_set(e, "it is no name of a time zone");
    snprintf(path, sizeof(path), "%s/%.*s", dir, SPAN_FMT(name));
    if (realpath(dir, root) == NULL)
        return err_errno(e, "%s (install the package tzdata)", dir);
    if (realpath(path, real) == NULL)
        return err_errno(e, "%s", path);
    struct span below = span_str(real), top = span_str(root);
    if (!span_starts(below, top) || !span_starts(span_from(below, top.n), SPAN("/")))
        return err_set(e, "%s leads out of %s", path, dir);
    return policy_read_file(real, ZONE_FILE_MAX, &d->a, text, e);
}

/* Whoever has signers has had every file's signature checked already. */
static int signed_is_asked(const struct disk *d, struct err *e)
{
    return d->signers ? 0
                      : err_set(e, "nobody said whose signatures count: name a file of keys, policy_signers: in "
                                   "countersign.yaml and --signers for the verbs");
}

static int fetch_any(struct disk *arg, enum policy_ref kind, struct span name, struct span *text, struct err *e)
{
    switch (kind) {
    case POLICY_REF_PACK: return fetch_pack(arg, name, text, e);
    case POLICY_REF_CA: return fetch_ca(arg, name, text, e);
    case POLICY_REF_INCLUDE: return fetch_include(arg, name, text, e);
    case POLICY_REF_SIGNED: *text = SPAN_NONE; return signed_is_asked(arg, e);
    case POLICY_REF_ZONE: return fetch_zone(arg, name, text, e);
    }
    return err_set(e, "is not available yet");
}

static int fetch(void *arg, enum policy_ref kind, struct span name, struct span *text, struct err *e)
{
    struct disk *d = arg;
    int rc = fetch_any(d, kind, name, text, e);
    if (rc == 0 && d->input && kind != POLICY_REF_SIGNED)
        d->input(d->input_arg, (enum policy_input)kind, name, *text);
    return rc;
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

int policy_load_from_disk(const struct policy_place *from, struct dynbuf *out, struct policy_problems *problems,
                          struct err *e)
{
    const char *const *paths = from->paths;
    size_t n = from->n;
    struct disk d = {.paths = paths,
                     .n = n,
                     .packs = from->packs,
                     .saw = from->saw,
                     .saw_arg = from->saw_arg,
                     .input = from->input,
                     .input_arg = from->input_arg,
                     .roots_strict = from->roots_strict};
    struct policy_file files[POLICY_FILES_MAX + 1] = {{0}};
    struct err own = {""};
    size_t all = n + (from->floors ? 1 : 0);
    int rc = -1;
    arena_init(&d.a, DISK_MEMORY_MAX);
    if (n == 0 || n > POLICY_FILES_MAX) {
        (void)err_set(e, "%zu policy files: there must be 1 to %d", n, POLICY_FILES_MAX);
        goto out;
    }
    if (from->signers && (d.signers = signers_read(from->signers, &d.a, &own)) == NULL) {
        unreadable(problems, from->signers, &own);
        (void)err_set(e, "%s", own.text);
        goto out;
    }
    if (d.signers && d.input)
        d.input(d.input_arg, (enum policy_input)POLICY_REF_SIGNED, span_str(from->signers), SPAN_NONE);
    for (size_t i = 0; i < all; i++) {
        files[i] = (struct policy_file){i < n ? paths[i] : from->floors, SPAN_NONE, i == n};
        bool here = i < n && from->texts && from->texts[i].n;
        if (here) {
            files[i].text = from->texts[i];
        } else if (read_top(&d, files[i].name, &files[i].text, &own) != 0) {
            unreadable(problems, files[i].name, &own);
            (void)err_set(e, "%s", own.text);
            goto out;
        }
        if (d.input)
            d.input(d.input_arg, i < n ? POLICY_INPUT_FILE : POLICY_INPUT_FLOORS, span_str(files[i].name),
                    files[i].text);
    }
    rc = policy_load(files, all, fetch, &d, from->now_ms, out, problems, e);
out:
    arena_free(&d.a);
    return rc;
}
