/* The end of a sandbox that the warden runs: /api/v1/sandboxes/NAME/destroy. */
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"
#include "web-approval/api/steps.h"
#include "web-approval/idle/idle.h"
#include "web-approval/route.h"
#include "web-approval/store/idle.h"

enum { WHY_MAX = 512 };

/* One that is being ended. */
struct ending {
    void (*then)(struct exchange *x); /* when it is so, instead of the answer, with x->step as it was */
    void *step;
    uint64_t generation; /* by the ledger; 0: it knows of none that runs */
    bool there;
    struct idle_row idle;
};

static void ended(struct exchange *x)
{
    const struct ending *e = x->step;

    if (e->there)
        api_started_note(x, "sandbox-destroy", x->arg, NULL);
    if (e->then) {
        x->step = e->step;
        e->then(x);
        return;
    }
    if (!e->there) {
        reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
        return;
    }
    reply_empty(x, 204);
}

static void idle_over(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    struct ending *e = x->step;

    if (msg_end(&m) != 0 || !ok) {
        reply_problem(x, 503, "Not written",
                      "the sandbox is idle still: the ledger did not write its end down%s%.*s; ask again",
                      why.n ? ": " : "", SPAN_FMT(why));
        return;
    }
    api_checkpoint_forget(x->desk, e->idle.tenant, e->idle.checkpoint);
    e->there = true;
    ended(x);
}

/* It may be idle, or have become so until just now: its files end with it. */
static void look_idle(struct exchange *x)
{
    struct ending *e = x->step;
    int rc = idle_find(x, &e->idle);
    struct dynbuf *b;

    if (rc == 0)
        ended(x);
    else if (rc == 1 && (b = ask_begin(x, ASK_LEDGER, M_SANDBOX_IDLE_OVER, M_SANDBOX_DONE, idle_over))) {
        msg_put_span(b, x->arg);
        ask_send(x);
    }
}

static void end_written(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) == 0 && ok)
        look_idle(x);
    else
        reply_problem(
            x, 503, "Not written",
            "the sandbox does not run any more, but its leases may live: the ledger did not write it down%s%.*s; "
            "ask again",
            why.n ? ": " : "", SPAN_FMT(why));
}

/* The warden has told the ledger as well, on a way of its own: here it is waited for. */
static void destroyed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct ending *e = x->step;
    struct dynbuf *b;

    e->there = msg_get_bool(&m);
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now",
                      "the warden did not say that nothing of the sandbox is left; ask again in a moment");
    else if (e->generation == 0)
        look_idle(x);
    else if ((b = ask_begin(x, ASK_LEDGER, M_SANDBOX_ENDED, M_SANDBOX_DONE, end_written))) {
        msg_put_span(b, x->arg);
        msg_put_u64(b, e->generation);
        ask_send(x);
    }
}

void api_destroy_go(struct exchange *x, void (*then)(struct exchange *x))
{
    struct ending *e = arena_alloc(&x->arena, sizeof(*e));
    struct sandbox_row row;
    struct err err;
    struct dynbuf *b;

    if (!box_name_ok(x->arg)) {
        reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
        return;
    }
    if (!e) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    e->then = then;
    e->step = x->step;
    x->step = e;
    if (desk_store_sandbox(x->desk->store, x->arg, &x->arena, &row, &err) == 1 && span_eq(row.kind, SPAN("started")))
        e->generation = row.generation;
    if ((b = ask_begin(x, ASK_WARDEN, M_SB_DESTROY, M_SB_DESTROYED, destroyed))) {
        msg_put_span(b, x->arg);
        ask_send(x);
    }
}

void api_started_destroy(struct exchange *x)
{
    if (api_starts_already(x->desk, x->arg)) { /* else it would run on behind the answer that it does not */
        reply_problem(x, 409, "It starts", "a sandbox of this name is being started: ask again in a moment");
        return;
    }
    api_destroy_go(x, NULL);
}
