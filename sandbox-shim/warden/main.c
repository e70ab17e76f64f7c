/* countersign-warden: its start-up, as a checklist. */
#include <unistd.h>

#include "common/id.h"
#include "common/role/role.h"
#include "sandbox-shim/warden/checkpoint.h"
#include "sandbox-shim/warden/pool/pool.h"

static void peer(void *arg, unsigned role, uint64_t instance, struct span info, int fd)
{
    if (role == ROLE_DESK)
        warden_desk(arg, fd);
    else if (role == ROLE_LEDGER)
        warden_ledger(arg, fd);
    else
        close(fd);
}

static void frame(void *arg, struct frame *f)
{
    warden_parent_frame(arg, f);
}

static bool away; /* checkpoints are elsewhere as well */

static void config(void *arg, struct span key, struct span value)
{
    if (span_eq(key, SPAN("away")))
        away = span_eq(value, SPAN("1"));
}

int main(void)
{
    static struct warden w;
    static const struct role_ops ops = {.frame = frame, .peer = peer, .config = config};
    static const struct wall wall = {.calls = WALL_PAIR};
    w.loop = loop_new();
    if (w.loop == NULL)
        return 1;
    if (pool_begin(&w) != 0)
        return 1;
    struct role *r = role_start("warden", w.loop, &ops, &w);
    w.parent = role_parent(r);
    struct digest warm;
    digest_of(SPAN_NONE, &warm); /* what looks for its own files does so before the wall */
    role_confine(r, &wall);
    role_ready(r);
    if (away && checkpoint_tidies(&w) != 0)
        return 1;
    return loop_run(w.loop) == 0 ? 0 : 1;
}
