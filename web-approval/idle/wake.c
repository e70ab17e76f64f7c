/* An idle sandbox is needed. What may be left of it ends, be it that it had not ended yet or that a desk before this
 * one was killed while it restored it, and then it is started with its files, as its next generation. Nothing is done
 * in it before the ledger has written down that it has them: until then it is idle, whatever becomes of what was
 * begun. */
#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/api/steps.h"
#include "web-approval/ask.h"
#include "web-approval/dock.h"
#include "web-approval/idle/idle.h"
#include "web-approval/store/idle.h"

enum {
    WHY_MAX = 512,
    NOTE_MAX = 4096,
    LEAST_S = 60 /* beside what it had left: to be asked for more, or to be put aside again */
};

struct waking {
    struct idler at;
    idle_fn *fn;
    struct idle_row row;
    struct starting start;
};

/* It is answered, and not restored. */
static void not_woken(struct exchange *x)
{
    struct waking *w = x->holds;

    if (w->start.asked) /* what was begun of it is nobody's */
        idle_sweep_soon(x->desk, x->now_ms);
    idler_over(x->desk, &w->at, true);
}

/* What was begun goes, and nothing else of its name, which may be another one's by now. */
static void not_its_generation(struct exchange *x)
{
    const struct waking *w = x->holds;
    struct desk *d = x->desk;
    struct dynbuf *b = d->warden ? chan_begin(d->warden, M_SB_IDLE_END, ++d->last_id) : NULL;

    if (!b)
        return;
    msg_put_span(b, w->row.name);
    msg_put_u64(b, w->start.generation);
    (void)chan_commit(d->warden);
}

/* Its files are among others than before, which policies and whoever looks into it may have to know. */
static void note_image(struct exchange *x)
{
    const struct waking *w = x->holds;
    struct msg_in m = msg_in(w->row.box);
    struct wire_box had;
    struct dynbuf b;
    struct jsonw j;

    if (wire_get_box(&m, &had, false) != 0)
        return;
    dynbuf_init(&b, NOTE_MAX);
    jsonw_begin(&j, &b);
    jsonw_object(&j);
    jsonw_kv(&j, "operator", span_str(x->operator));
    jsonw_kv(&j, "sandbox", w->row.name);
    jsonw_kv(&j, "image", had.image);
    jsonw_kv(&j, "digest", span_str(w->start.digest));
    jsonw_kv(&j, "was", had.digest);
    jsonw_end_object(&j);
    if (dynbuf_ok(&b))
        ask_note(x->desk, "sandbox-another-image", dynbuf_span(&b));
    dynbuf_free(&b);
}

static void awake(struct exchange *x, struct frame *f)
{
    struct waking *w = x->holds;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    struct err e;

    if (msg_end(&m) != 0) {
        reply_problem(x, 503, "Not written", "the ledger did not write down that the sandbox is restored; ask again");
        return;
    }
    if (!ok) {
        not_its_generation(x);
        bool idle = desk_store_idle(x->desk->store, w->row.name, &x->arena, &w->row, &e) != 0;
        reply_problem(x, idle ? 503 : 404, idle ? "Not restored" : "No such sandbox", "%.*s", SPAN_FMT(why));
        return;
    }
    if (w->start.another)
        note_image(x);
    api_checkpoint_forget(x->desk, w->row.tenant, w->row.checkpoint);
    x->over = NULL;
    x->holds = x->step = NULL;
    x->keeps = false;
    x->woke = w->at.woke = w->start.generation;
    x->another = w->at.another = w->start.another;
    idler_over(x->desk, &w->at, false); /* who waits goes first, and may end with it */
    idler_go(x, w->fn, false);
}

static void has_its_files(struct exchange *x)
{
    const struct waking *w = x->holds;
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_SANDBOX_AWAKE, M_SANDBOX_DONE, awake);

    if (!b)
        return;
    msg_put_span(b, w->row.name);
    msg_put_u64(b, w->start.generation);
    ask_send(x);
}

/* As it was, and for as long as it had left. */
static void start(struct exchange *x)
{
    struct waking *w = x->holds;
    struct starting *s = &w->start;
    struct msg_in m = msg_in(w->row.box);

    *s = (struct starting){.session = w->row.session,
                           .from = w->row.checkpoint,
                           .found = w->row.checkpoint,
                           .reach = w->row.reach, /* of its row: whoever has the checkpoint says nothing of it */
                           .tenant = w->row.tenant,
                           .owner = w->row.owner,
                           .cpu_percent = w->row.cpu_percent,
                           .timeout_s = w->row.left_ms / 1000 + LEAST_S,
                           .strict = w->row.strict,
                           .wakes = true,
                           .then = has_its_files};
    if (s->timeout_s > STARTED_LIFE_MAX_S)
        s->timeout_s = STARTED_LIFE_MAX_S;
    if (wire_get_box(&m, &s->box, false) != 0 || msg_end(&m) != 0) {
        reply_problem(x, 503, "Not possible now",
                      "what the sandbox is to be again cannot be read; `countersign sandbox destroy` ends it");
        return;
    }
    (void)snprintf(s->name, sizeof(s->name), "%.*s", SPAN_FMT(w->row.name));
    (void)snprintf(s->image, sizeof(s->image), "%.*s", SPAN_FMT(s->box.image));
    (void)snprintf(s->digest, sizeof(s->digest), "%.*s", SPAN_FMT(s->box.digest));
    (void)snprintf(s->lane, sizeof(s->lane), "%.*s", SPAN_FMT(s->box.lane));
    s->box.name = span_str(s->name);
    s->box.image = span_str(s->image);
    s->box.digest = span_str(s->digest);
    s->box.lane = span_str(s->lane);
    x->step = s;
    api_start_go(x);
}

/* What a desk before this one had begun is over, and the sandbox idle as before. */
static void ended(struct exchange *x, struct frame *f)
{
    struct waking *w = x->holds;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    struct err e;

    if (msg_end(&m) != 0 || !ok)
        reply_problem(x, 503, "Not written",
                      "the ledger did not write down that the sandbox is idle still; ask again%s%.*s",
                      why.n ? ": " : "", SPAN_FMT(why));
    else if (desk_store_idle(x->desk->store, w->row.name, &x->arena, &w->row, &e) == 1)
        start(x);
    else
        reply_problem(x, 503, "Not possible now", "the sandbox is not idle any more, or that cannot be read");
}

static void gone(struct exchange *x, struct frame *f)
{
    const struct waking *w = x->holds;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct dynbuf *b;

    (void)msg_get_bool(&m);
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now",
                      "the warden did not say that nothing of the idle sandbox runs; ask again in a moment");
    else if (span_eq(w->row.kind, SPAN("idle")))
        start(x);
    else if ((b = ask_begin(x, ASK_LEDGER, M_SANDBOX_ENDED, M_SANDBOX_DONE, ended))) {
        msg_put_span(b, w->row.name);
        msg_put_u64(b, w->row.generation);
        ask_send(x);
    }
}

static void end_what_is_left(struct exchange *x)
{
    const struct waking *w = x->holds;
    struct dynbuf *b = ask_begin(x, ASK_WARDEN, M_SB_IDLE_END, M_SB_DESTROYED, gone);

    if (!b)
        return;
    ask_longer(x, DESK_START_MS);
    msg_put_span(b, w->row.name);
    msg_put_u64(b, w->row.generation);
    ask_send(x);
}

/* All that a desk said to the ledger before is written down by now. What had its files by then is not idle, though
 * its row was read before that: ended for it, its files of since then would be lost. */
static void fenced(struct exchange *x, struct frame *f)
{
    struct waking *w = x->holds;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct err e;

    (void)msg_get_bool(&m);
    (void)msg_get_span(&m, WHY_MAX);
    int rc = msg_end(&m) == 0 ? desk_store_idle(x->desk->store, w->at.name, &x->arena, &w->row, &e)
                              : err_set(&e, "the ledger did not say what is written down; ask again");
    if (rc == 1) {
        end_what_is_left(x);
    } else if (rc == 0) {
        x->over = NULL;
        x->holds = NULL;
        x->keeps = false;
        idler_over(x->desk, &w->at, false);
        idler_go(x, w->fn, false);
    } else {
        reply_unable(x, &e);
    }
}

static void wake(struct exchange *x, struct waking *w)
{
    struct dynbuf *b;

    if (api_checkpoint_place(x) != 0 || !(b = ask_begin(x, ASK_LEDGER, M_SANDBOX_AWAKE, M_SANDBOX_DONE, fenced)))
        return;
    x->holds = w;
    x->over = not_woken;
    idler_begin(x->desk, &w->at);
    msg_put_span(b, SPAN_NONE); /* of none: it only stands behind what was said before */
    msg_put_u64(b, 0);
    ask_send(x);
}

/* One of the same tenant's that is restored: who finds no place waits until it is over. */
static struct idler *other_of(const struct desk *d, struct span tenant)
{
    struct idler *i = d->idlers;

    while (i && (i->aside || !span_eq(i->tenant, tenant)))
        i = i->next;
    return i;
}

bool idle_wakes(struct exchange *x, idle_fn *fn)
{
    struct idler *at = idler_of(x->desk, x->arg);
    struct waking *w;
    struct idle_row r;

    if (at && at->waits) {
        idler_park(at, x, fn, false);
        return true;
    }
    int rc = idle_find(x, &r);
    if (rc <= 0)
        return rc < 0;
    at = api_checkpoint_has_place(x) ? NULL : other_of(x->desk, r.tenant);
    if (at) {
        idler_park(at, x, fn, false);
        return true;
    }
    if (!(w = arena_alloc(&x->arena, sizeof(*w)))) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return true;
    }
    *w = (struct waking){.at = {.name = r.name, .tenant = r.tenant, .waits = true}, .fn = fn, .row = r};
    wake(x, w);
    return true;
}
