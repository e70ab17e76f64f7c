#include "broker/work/work.h"

#include "common/log.h"
#include "common/net/loop.h"

/* A turn that is on the queue. */
static void claim(struct work *w)
{
    struct claim c;
    enum bstore_result r = bstore_claim(w->store, &w->id, WORK_CLAIM_MS, &c);
    if (r == BS_OK)
        task_begin(w, &c);
    else if (r != BS_NONE)
        log_warn("the broker's store cannot be asked for a turn: %s", bstore_why(w->store));
}

void work_look(void *arg)
{
    struct work *w = arg;
    if (w->task == NULL && !w->stopping)
        claim(w);
    timer_set(w->look, WORK_LOOK_MS);
}

void work_begin(struct work *w)
{
    if (id_new(&w->id) != 0)
        log_die("the system has no randomness to give");
    if ((w->look = timer_new(w->loop, work_look, w)) == NULL)
        log_die("out of memory");
    timer_set(w->look, 0);
}
