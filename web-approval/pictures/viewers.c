#include "web-approval/pictures/viewers.h"

#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"

/* Its one answer, by the number it was given. */
static void said(void *arg, struct chan *c, struct frame *f)
{
    struct desk *d = arg;
    struct viewing *run = pictures_run(d, f->id);
    struct msg_in m = msg_in(f->payload);
    struct viewed v;

    if (!run || run->chan != c)
        return;
    bool good = f->type == M_VIEWED && viewed_get(&m, &v) == 0;
    pictures_said(d, run, good ? &v : NULL);
}

static void gone(void *arg, struct chan *c)
{
    struct desk *d = arg;

    log_warn("what opens a picture of a held request ended without a word: it is not shown");
    pictures_lost(d, c);
}

static bool begin(struct desk *d, struct viewing *run, int picture)
{
    static const struct chan_ops ops = {said, gone};
    const int files[] = {picture, run->out};
    struct dynbuf *b;
    int fd[2] = {-1, -1};
    bool good = false;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) != 0)
        return false;
    if ((b = chan_begin(d->parent, M_JOB, run->id)) == NULL)
        goto out;
    msg_put_u8(b, JOB_VIEW);
    if (chan_commit_fd(d->parent, fd[1]) != 0)
        goto out;
    run->chan = chan_new(d->loop, fd[0], &ops, d);
    fd[0] = -1;
    good = run->chan && chan_begin(run->chan, M_VIEW, run->id) && chan_commit_fds(run->chan, files, 2) == 0;
out:
    if (fd[0] >= 0)
        close(fd[0]);
    close(fd[1]);
    return good;
}

static void end(struct desk *d, struct viewing *run)
{
    chan_free(&run->chan);
    (void)chan_send(d->parent, M_JOB_END, run->id, SPAN_NONE);
}

const struct viewer_ops viewers = {begin, end};

void viewers_none(struct desk *d, uint64_t id)
{
    struct viewing *run = pictures_run(d, id);

    if (run)
        pictures_said(d, run, NULL);
}
