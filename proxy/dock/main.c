/* countersign-dock: its start-up, as a checklist. */
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "common/role/role.h"
#include "proxy/dock/dock.h"
#include "proxy/msgs.h"

static void desk_frame(void *arg, struct chan *c, struct frame *f)
{
    struct dock *d = arg;

    errand_frame(&d->errands, f);
}

static void desk_gone(void *arg, struct chan *c)
{
    struct dock *d = arg;

    chan_free(&d->errands.desk);
    errands_lost(&d->errands);
}

static void peer(void *arg, unsigned role, uint64_t instance, struct span info, int fd)
{
    static const struct chan_ops ops = {desk_frame, desk_gone};
    struct dock *d = arg;

    if (role != ROLE_DESK) {
        close(fd);
        return;
    }
    if (d->errands.desk)
        desk_gone(d, d->errands.desk);
    d->errands.desk = chan_new(d->loop, fd, &ops, d);
}

/* The only one there is: the listener. */
static void frame(void *arg, struct frame *f)
{
    struct dock *d = arg;
    struct msg_in m = msg_in(f->payload);
    unsigned kind = msg_get_u8(&m);
    int fd = frame_take_fd(f, 0);

    (void)msg_get_span(&m, 255);
    if (f->type != M_LISTEN || msg_end(&m) != 0 || kind != LISTEN_DOCK || fd < 0) {
        log_error("message %u of the parent is not understood", f->type);
        if (fd >= 0)
            close(fd);
    } else if (!door_new(d, fd)) {
        log_die("the dock cannot listen: no memory");
    }
}

int main(void)
{
    static struct dock dock;
    static const struct role_ops ops = {.frame = frame, .peer = peer};
    static const struct wall wall = {.calls = WALL_ACCEPT | WALL_PAIR};
    dock.loop = loop_new();
    if (!dock.loop)
        return 1;
    dock.errands = (struct errands){.loop = dock.loop, .most = DOCK_ERRANDS};
    struct role *r = role_start("dock", dock.loop, &ops, &dock);
    role_confine(r, &wall);
    role_ready(r);
    return loop_run(dock.loop) == 0 ? 0 : 1;
}
