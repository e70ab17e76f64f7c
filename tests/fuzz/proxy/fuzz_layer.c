/* A layer of anybody's, over one that has what it could be led through: all that is made lies beneath its folder and
 * is a file, a folder or a link of the modes that it may have; nothing beside it is changed; no descriptor stays
 * open. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox-shim/images/layer.h"
#include "tests/fuzz/fuzz.h"

static bool reached;
static char top[] = "/tmp/fuzz_layer.XXXXXX";
static int outer = -1;

bool fuzz_reached(void)
{
    return reached;
}

static void over(void)
{
    (void)!layer_remove(outer, "in");
    (void)!layer_remove(outer, "secret");
    (void)rmdir(top);
}

static void begin(void)
{
    if (outer >= 0)
        return;
    MUST_HOLD(mkdtemp(top) != NULL);
    outer = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(outer, "secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    MUST_HOLD(outer >= 0 && fd >= 0 && write(fd, "secret", 6) == 6);
    close(fd);
    (void)umask(022);
    MUST_HOLD(atexit(over) == 0);
}

static int look(const char *path, const struct stat *st, int type, struct FTW *at)
{
    MUST_HOLD(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode));
    MUST_HOLD(S_ISLNK(st->st_mode) || (st->st_mode & 07777) == 0755 || (st->st_mode & 07777) == 0644);
    return 0;
}

static unsigned open_now(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static int pass(struct layering *l, struct span in, bool looks)
{
    struct err e;
    int rc = 0;

    layer_begin(l, looks);
    for (size_t at = 0; at < in.n && rc == 0; at += 700) {
        size_t n = in.n - at < 700 ? in.n - at : 700;
        uint8_t *copy = fuzz_copy(span_of(in.p + at, n));
        rc = layer_take(l, span_of(copy, n), &e);
        free(copy);
    }
    if (rc == 0)
        rc = layer_end(l, &e);
    layer_drop(l);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct stat was, is;
    struct err e;

    begin();
    MUST_HOLD(layer_remove(outer, "in") == 0 || errno == ENOENT);
    unsigned open_before = open_now();
    char inner[sizeof(top) + 3];
    (void)snprintf(inner, sizeof(inner), "%s/in", top);
    struct layering l = {.root = -1, .file = -1, .dir = -1};
    MUST_HOLD(mkdirat(outer, "in", 0755) == 0);
    l.root = openat(outer, "in", O_PATH | O_DIRECTORY | O_CLOEXEC);
    MUST_HOLD(l.root >= 0 && mkdirat(l.root, "d", 0755) == 0 && symlinkat("..", l.root, "up") == 0 &&
              symlinkat("../../secret", l.root, "d/l") == 0 && fstatat(outer, "secret", &was, 0) == 0);
    if (pass(&l, span_of(data, n), true) == 0 && layer_hide(&l, &e) == 0 && pass(&l, span_of(data, n), false) == 0) {
        reached |= l.entries > 0;
        (void)!bones_put(l.root, &e);
    }
    dynbuf_free(&l.hides);
    close(l.root);
    MUST_HOLD(nftw(inner, look, 64, FTW_PHYS) == 0);
    MUST_HOLD(fstatat(outer, "secret", &is, 0) == 0 && is.st_size == was.st_size && is.st_nlink == was.st_nlink &&
              is.st_mode == was.st_mode && is.st_mtim.tv_nsec == was.st_mtim.tv_nsec);
    MUST_HOLD(open_now() == open_before);
    return 0;
}
