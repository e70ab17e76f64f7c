/* Who is at a workspace, for tests of what goes to and comes from it: a thread. Included by store_world.h alone. */
#ifndef TESTS_UNIT_CHECKPOINT_AT_WORK_H
#define TESTS_UNIT_CHECKPOINT_AT_WORK_H

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/file.h"
#include "sandbox-shim/checkpoint/stream.h"
#include "sandbox-shim/inside/shim_beneath.h"
#include "sandbox-shim/inside/shim_tree.h"
#include "sandbox-shim/workspace/marks.h"

static uint64_t told_bytes;        /* of the tar stream, at the last time */
static void (*before_bytes)(void); /* what becomes of a file that is about to be told */

static int out(void *arg, const uint8_t *p, size_t n)
{
    told_bytes += n;
    return stream_put(arg, p, n);
}

static struct tree_known known;

static int at_same(void *arg, int fd, const struct stat *st)
{
    int rc = known.same(arg, fd, st);
    if (rc == 0 && before_bytes != NULL)
        before_bytes();
    return rc;
}

struct at {
    int fd, folder;
    struct span bytes; /* what it says instead, whatever is asked, and ends */
};

static void at_work(int fd, int folder)
{
    static struct stream s;
    static struct pack k;
    static struct unpack u;
    static uint8_t piece[STREAM_PIECE];
    struct stream_end e = {.code = 0}, other;
    enum stream_what what;
    uint64_t most;
    size_t n;
    s = (struct stream){.fd = fd};
    if (stream_asked(fd, &what, &most) != 0)
        return;
    if (what == STREAM_PACK) {
        static struct marks marks;
        if (marks_begin(&marks, fd, &s) != 0)
            return;
        known = marks.known;
        marks.known.same = at_same;
        told_bytes = 0;
        k = (struct pack){.put = out, .arg = &s, .known = &marks.known, .most = most};
        e.code = pack_folder(&k, folder) == 0 ? 0 : (unsigned)errno;
        e.left_out = k.left_out;
        marks_end(&marks);
    } else {
        unpack_begin(&u, folder, true);
        u.exact = true;
        int got, rc = what == STREAM_REPLACE ? beneath_clear(folder) : 0;
        while (rc == 0 && (got = stream_get(fd, piece, &n, &other)) == STREAM_BYTES)
            rc = unpack_take(&u, piece, n);
        if (rc == 0)
            rc = unpack_end(&u);
        e.code = rc == 0 ? 0 : (unsigned)errno;
    }
    (void)!stream_end_put(&s, &e);
}

/* A thread: each page that is written behind a fork would cost more than all else. */
static void *begin_work(void *arg)
{
    const struct at *at = arg;
    char rest[64];
    if (at->bytes.p == NULL) {
        at_work(at->fd, at->folder);
    } else {
        (void)!file_write_fd(at->fd, at->bytes);
        (void)shutdown(at->fd, SHUT_WR);
        while (read(at->fd, rest, sizeof(rest)) > 0)
            ;
    }
    close(at->fd);
    close(at->folder);
    return NULL;
}

#endif
