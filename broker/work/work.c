#include "broker/work/work.h"

#include "common/log.h"
#include "common/net/loop.h"

enum { SAY_MS = 10 * 1000 }; /* a database that is away is asked often, and it is not said each time */

/* A turn that is on the queue. */
static void claim(struct work *w)
{
    struct claim c;
    enum bstore_result r = bstore_claim(w->store, &w->id, WORK_CLAIM_MS, &c);
    if (r == BS_OK)
        task_begin(w, &c);
    else if (r != BS_NONE && loop_now(w->loop) >= w->say_ms) {
        log_warn("the broker's store cannot be asked for a turn: %s", bstore_why(w->store));
        w->say_ms = loop_now(w->loop) + SAY_MS;
    }
}

/* Taking one is a write that all workers wait for each other with: it is tried when somebody has written something,
 * and else now and then, since a turn's time may have come. */
void work_look(void *arg)
{
    struct work *w = arg;
    uint64_t now = loop_now(w->loop), pulse = bstore_pulse(w->store);
    bool may = pulse != w->pulse || now >= w->try_ms;
    w->pulse = pulse;
    if (w->task == NULL && !w->stopping && may) {
        w->try_ms = now + WORK_TRY_MS;
        claim(w);
    }
    timer_set(w->look, WORK_LOOK_MS);
}

void work_begin(struct work *w)
{
    /* The one before of this number has ended, or we would not have been started: nobody has to wait for its claim.
     */
    if (bstore_ended(w->store, &w->id) != BS_OK)
        log_warn("what the worker before had claimed waits for its time: %s", bstore_why(w->store));
    if ((w->look = timer_new(w->loop, work_look, w)) == NULL)
        log_die("out of memory");
    timer_set(w->look, 0);
}
