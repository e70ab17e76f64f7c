/* countersign-workspace: the files of one sandbox's workspace as a tar stream, or made of one, as that sandbox's user
 * and from outside of it: the sandbox may stand still meanwhile. The workspace is where it is started; nothing in
 * there is followed, and of the disk it has nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/role/role.h"
#include "sandbox-shim/checkpoint/stream.h"
#include "sandbox-shim/inside/shim_beneath.h"
#include "sandbox-shim/inside/shim_tree.h"
#include "sandbox-shim/workspace/marks.h"

enum { STREAM_FD = 3, WORKSPACE_MODE = 0755 };

static struct stream to = {.fd = STREAM_FD};

static int out(void *arg, const uint8_t *p, size_t n)
{
    return stream_put(arg, p, n);
}

/* A name that failed, or words. */
static void words(struct stream_end *e, const char *text)
{
    e->nwords = strnlen(text, STREAM_WORDS);
    memcpy(e->words, text, e->nwords);
}

static void give(int dir, uint64_t most, struct stream_end *e)
{
    static struct pack k;
    static struct marks marks;

    if (marks_begin(&marks, STREAM_FD, &to) != 0)
        _exit(1); /* who keeps them has ended, and nobody is there to be told */
    k.put = out;
    k.arg = &to;
    k.known = &marks.known;
    k.most = most;
    if (pack_folder(&k, dir) != 0) {
        e->code = errno != 0 ? (unsigned)errno : EIO;
        words(e, k.m.name);
    }
    e->left_out = k.left_out;
    marks_end(&marks);
}

/* Its own mode is that of a fresh one then. */
static int clear(int dir)
{
    return fchmod(dir, WORKSPACE_MODE) == 0 && beneath_clear(dir) == 0 ? 0 : -1;
}

/* replace: instead of all that is there. */
static void take(int dir, bool replace, struct stream_end *e)
{
    static uint8_t in[STREAM_PIECE];
    static struct unpack u;
    struct stream_end said = {.code = 0};
    size_t n;
    int rc, got;

    unpack_begin(&u, dir, true);
    u.exact = true;
    for (rc = replace ? clear(dir) : 0; rc == 0 && (got = stream_get(STREAM_FD, in, &n, &said)) == STREAM_BYTES;)
        rc = unpack_take(&u, in, n);
    if (rc == 0 && (got != STREAM_ENDED || said.code != 0))
        _exit(1); /* who gives them has ended, and nobody is there to be told */
    if (rc == 0)
        rc = unpack_end(&u);
    if (rc != 0) {
        e->code = errno != 0 ? (unsigned)errno : EIO;
        words(e, u.why ? u.why : u.tar.member.name);
        unpack_drop(&u);
    }
    e->left_out = u.left_out;
}

int main(void)
{
    static const char *const here[] = {".", NULL};
    static const struct wall wall = {.calls = WALL_FILES | WALL_LINKS | WALL_MODES, .rw_dirs = here};
    struct stream_end end = {.code = 0};
    enum stream_what what = STREAM_NOTHING;
    uint64_t most;

    role_job_start("workspace");
    int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        log_die("the workspace cannot be opened");
    role_confine_alone(&wall);
    if (stream_asked(STREAM_FD, &what, &most) != 0)
        return 1;
    if (what == STREAM_PACK)
        give(dir, most, &end);
    else if (what == STREAM_UNPACK || what == STREAM_REPLACE)
        take(dir, what == STREAM_REPLACE, &end);
    else
        log_die("what is asked of a workspace cannot be understood");
    return stream_end_put(&to, &end) == 0 ? 0 : 1;
}
