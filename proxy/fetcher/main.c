/* countersign-fetcher: its start-up, as a checklist. */
#include <stdio.h>
#include <unistd.h>

#include "common/log.h"
#include "common/role/role.h"
#include "proxy/fetcher/fetcher.h"
#include "proxy/msgs.h"

static void config(void *arg, struct span key, struct span value)
{
    struct fetcher *f = arg;
    if (span_eq(key, SPAN("roots")) && value.n < sizeof(f->roots))
        snprintf(f->roots, sizeof(f->roots), "%.*s", SPAN_FMT(value));
}

static void peer(void *arg, unsigned role, uint64_t instance, struct span info, int fd)
{
    if (role == ROLE_KEEPER)
        fetcher_keeper(arg, fd);
    else if (role == ROLE_RESOLVER)
        fetcher_resolver(arg, fd);
    else
        close(fd);
}

static void frame(void *arg, struct frame *f)
{
    if (f->type == M_JOB_NONE)
        fetcher_no_job(arg, f->id);
    else
        log_error("message %u of the parent is not understood", f->type);
}

int main(void)
{
    static struct fetcher f;
    static const struct role_ops ops = {.frame = frame, .peer = peer, .config = config};
    static const struct wall wall = {.calls = WALL_PAIR};
    f.loop = loop_new();
    if (f.loop == NULL)
        return 1;
    struct role *r = role_start("fetcher", f.loop, &ops, &f);
    f.parent = role_parent(r);
    role_confine(r, &wall);
    role_ready(r);
    return loop_run(f.loop) == 0 ? 0 : 1;
}
