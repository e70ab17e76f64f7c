/* The commands of a sandbox. */
#include <signal.h>
#include <stdlib.h>

#include "common/msg.h"
#include "sandbox-shim/warden/warden.h"

/* --- who asked --------------------------------------------------------------------- */

void run_tell_none(struct warden *w, uint64_t asker, enum sb_end how, const char *why)
{
    const struct run none = {.asker = asker};
    const struct talk nothing = {.why = span_str(why)};
    struct dynbuf *b = w->desk != NULL ? chan_begin(w->desk, M_SB_EXIT, none.asker) : NULL;

    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)how);
    msg_put_u8(b, 0);
    for (int i = 0; i < 5; i++)
        msg_put_u64(b, 0);
    msg_put_span(b, nothing.why);
    (void)chan_commit(w->desk);
}

static void tell_exit(const struct run *r, enum sb_end how, const struct talk *t)
{
    struct warden *w = r->box->warden;
    struct dynbuf *b = r->asker != 0 && w->desk != NULL ? chan_begin(w->desk, M_SB_EXIT, r->asker) : NULL;

    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)how);
    msg_put_u8(b, (uint8_t)t->code);
    msg_put_u64(b, r->said);
    msg_put_u64(b, r->cut);
    msg_put_u64(b, t->user_us);
    msg_put_u64(b, t->system_us);
    msg_put_u64(b, t->memory_kib);
    msg_put_span(b, t->why);
    (void)chan_commit(w->desk);
}

/* --- one of them ------------------------------------------------------------------- */

static void run_free(struct run *r)
{
    for (struct run **at = &r->box->runs; *at != NULL; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            r->box->nruns--;
            break;
        }
    timer_free(&r->timer);
    free(r);
}

/* Nothing of the sandbox is needed to believe that it ended: if it is not said, the sandbox ends. */
static void kill_run(struct run *r)
{
    struct dynbuf b;

    if (r->killed)
        return;
    r->killed = true;
    timer_set(r->timer, RUN_KILL_MS);
    dynbuf_init(&b, 64);
    if (talk_put_signal(&b, r->id, SIGKILL) == 0)
        box_say(r->box, &b); /* which may end the sandbox, and with it r */
    dynbuf_free(&b);
}

static void credit(struct run *r, uint32_t bytes)
{
    struct dynbuf b;

    if (bytes > r->open)
        bytes = r->open;
    r->open -= bytes;
    dynbuf_init(&b, 64);
    if (bytes > 0 && talk_put_credit(&b, r->id, bytes) == 0)
        box_say(r->box, &b);
    dynbuf_free(&b);
}

static void time_over(void *arg)
{
    struct run *r = arg;

    if (r->killed && r->open > 0) { /* its end may wait behind what nobody reads: no more is told */
        r->most = r->said;
        timer_set(r->timer, RUN_KILL_MS);
        credit(r, r->open); /* which may end the sandbox, and with it r */
    } else if (r->killed) {
        box_end(r->box, "a command in it was killed and did not end");
    } else {
        r->late = true;
        kill_run(r);
    }
}

const char *run_begin(struct box *b, uint64_t asker, const struct run_order *o)
{
    struct run *r;
    struct dynbuf words;

    if (b->state != BOX_RUNS)
        return "the sandbox does not run yet";
    if (b->nruns >= TALK_RUNS_MAX)
        return "as many commands run in it as may at once";
    if (b->last_run == UINT32_MAX)
        return "it has run all the commands it can; start it anew";
    dynbuf_init(&words, TALK_HEAD + TALK_PAYLOAD_MAX);
    if (talk_put_run(&words, b->last_run + 1, &o->command) != 0) {
        dynbuf_free(&words);
        return "the command cannot be said: it is too long, has a NUL, or a variable without a name";
    }
    if ((r = calloc(1, sizeof(*r))) == NULL || (r->timer = timer_new(b->warden->loop, time_over, r)) == NULL) {
        free(r);
        dynbuf_free(&words);
        return "there is no memory for it";
    }
    r->box = b;
    r->id = ++b->last_run;
    r->asker = asker;
    r->most = o->most;
    r->next = b->runs;
    b->runs = r;
    b->nruns++;
    timer_set(r->timer, o->timeout_ms);
    box_say(b, &words);
    dynbuf_free(&words);
    return NULL;
}

/* --- what is heard of it ----------------------------------------------------------- */

static int heard_output(struct run *r, const struct talk *t)
{
    struct warden *w = r->box->warden;
    uint32_t n = (uint32_t)t->bytes.n;
    uint64_t most = r->asker != 0 && r->said < r->most ? r->most - r->said : 0;
    size_t said = n < most ? n : (size_t)most;
    struct dynbuf *b;

    if (n > SB_WINDOW - r->open)
        return -1;
    r->open += n;
    r->cut += n - said;
    if (said > 0 && w->desk != NULL && (b = chan_begin(w->desk, M_SB_OUTPUT, r->asker)) != NULL) {
        msg_put_u8(b, t->type == TALK_OUT ? 1 : 2);
        (void)dynbuf_add(b, span_first(t->bytes, said));
        (void)chan_commit(w->desk);
        r->said += said;
        n -= (uint32_t)said;
    }
    credit(r, n); /* what nobody is told is taken at once: the command goes on */
    return 0;
}

int run_heard(struct box *b, const struct talk *t)
{
    static const enum sb_end ends[] = {
        [TALK_EXITED] = SB_EXITED, [TALK_SIGNALLED] = SB_SIGNALLED, [TALK_FAILED] = SB_NOT_STARTED};
    struct run *r = b->runs;

    while (r != NULL && r->id != t->run)
        r = r->next;
    if (r == NULL)
        return -1;
    if (t->type != TALK_END)
        return heard_output(r, t);
    bool killed =
        t->how == TALK_SIGNALLED && t->code == SIGKILL; /* else it had ended, and its end waited to be read */
    tell_exit(r, r->late && killed ? SB_TIMED_OUT : ends[t->how], t);
    run_free(r);
    return 0;
}

/* --- what the desk says of it ------------------------------------------------------ */

static struct run *run_of(struct warden *w, uint64_t asker)
{
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        for (struct run *r = b->runs; r != NULL; r = r->next)
            if (r->asker == asker)
                return r;
    return NULL;
}

void run_taken(struct warden *w, uint64_t asker, uint32_t bytes)
{
    struct run *r = asker != 0 ? run_of(w, asker) : NULL;

    if (r != NULL)
        credit(r, bytes);
}

static void abandon(struct run *r)
{
    r->asker = 0;
    kill_run(r);
}

void run_kill(struct warden *w, uint64_t asker)
{
    struct run *r = asker != 0 ? run_of(w, asker) : NULL;

    if (r == NULL)
        return;
    uint32_t open = r->open;
    struct box *b = r->box;
    abandon(r);
    if (b->state == BOX_RUNS)
        credit(r, open);
}

void runs_desk_gone(struct warden *w)
{
    struct run *r;

    for (struct box *b = w->boxes; b != NULL; b = b->next) {
        do {
            for (r = b->runs; r != NULL && r->asker == 0;)
                r = r->next;
            if (r != NULL)
                run_kill(w, r->asker);
        } while (r != NULL);
        if (b->asker != 0)
            box_end(b, "nobody waits for it any more");
    }
}

void runs_end(struct box *b, const char *why)
{
    const struct talk nothing = {.why = span_str(why)};

    while (b->runs != NULL) {
        tell_exit(b->runs, SB_LOST, &nothing);
        run_free(b->runs);
    }
}
