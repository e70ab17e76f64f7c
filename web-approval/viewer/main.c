/* countersign-view-picture: one picture of a held request, into a PNG that the page may show.
 *
 * The desk has it started by the parent, with a channel as descriptor 3, and gives it two memory files: the picture,
 * sealed, and an empty one for the PNG. What it reads is anybody's, and the libraries that read it are large: so
 * before the first byte of it this process can open nothing, start nothing and reach nobody, has so much memory and
 * so much time, and ends with its one answer. Who takes it over can show another picture in place of this one, and no
 * more. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memfd.h"
#include "common/net/chan.h"
#include "common/role/role.h"
#include "proxy/msgs.h"
#include "web-approval/viewer/view.h"

enum { MEMORY_MAX = 640 * 1024 * 1024 };

static void most(int what, uint64_t n)
{
    const struct rlimit l = {n, n};

    if (setrlimit(what, &l) != 0)
        log_die("it cannot be limited");
}

static void limits(void)
{
#ifndef COUNTERSIGN_DEV /* the sanitizers need all addresses there are */
    most(RLIMIT_AS, MEMORY_MAX);
#endif
    most(RLIMIT_CPU, VIEW_SECONDS);
    most(RLIMIT_FSIZE, VIEW_PNG_MAX);
    (void)alarm(VIEW_SECONDS);
}

/* All of it, and nobody changes it any more. */
static bool put(int fd, struct span png)
{
    while (png.n > 0) {
        ssize_t n = write(fd, png.p, png.n);
        if (n <= 0)
            return false;
        png = span_from(png, (size_t)n);
    }
    return memfd_seal(fd) == 0;
}

int main(void)
{
    static const struct wall wall = {.calls = WALL_MEMFD};
    struct dynbuf order, png, answer;
    struct span picture = SPAN_NONE;
    struct viewed v = {.end = VIEW_FAILED};
    struct frame f;

    role_job_start("view-picture");
    limits();
    role_confine_alone(&wall);
    role_job_order(&f, &order);
    dynbuf_init(&png, VIEW_PNG_MAX);
    dynbuf_init(&answer, CHAN_PAYLOAD_MAX);
    if (f.type != M_VIEW || f.payload.n != 0 || f.nfds != 2 || memfd_map(f.fd[0], VIEW_BYTES_MAX, &picture) != 0)
        log_die("the desk gives it one picture, sealed, and a place for what it makes of it");
    view_make(picture, &png, &v);
    if (v.end == VIEW_SHOWN && !put(f.fd[1], dynbuf_span(&png)))
        v = (struct viewed){.end = VIEW_FAILED};
    viewed_put(&answer, &v);
    bool told = role_job_answer(M_VIEWED, f.id, &answer);
    memfd_unmap(&picture);
    dynbuf_free(&answer);
    dynbuf_free(&png);
    dynbuf_free(&order);
    return told ? 0 : 1;
}
