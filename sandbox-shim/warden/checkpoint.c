/* Checkpoints of sandboxes' files: who keeps them and who is at a workspace are processes of the parent's, of which
 * each does one thing and ends. Their bytes do not come by here; what is told of them is told on as it is. */
#include "sandbox-shim/warden/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "sandbox-shim/warden/undo/undo.h"

/* GONE_MS: the parent's word why nobody was started may come behind the end of the channel that nobody has. */
enum { GONE_MS = 200, SAVE_MS = 15 * 60 * 1000, SHORT_MS = 60 * 1000, WHY_MAX = 1024, REST_MAX = CHAN_PAYLOAD_MAX };
/* What went here goes elsewhere as well: soon after anything that may leave something, again after a failure, and now
 * and then in any case. */
enum { TIDY_SOON_MS = 200, TIDY_AGAIN_MS = 60 * 1000, TIDY_LATER_MS = 10 * 60 * 1000 };

/* What may have to ask the checkpoint store, which may be slow, at once, so that there is always room for what needs
 * none (STORES_MAX, DOCK_STORES); TENANT: of one tenant, the operators' own among them. */
enum { AWAY_TASKS = 8, AWAY_TENANT_TASKS = 4 };

/* One thing that is done. */
struct task {
    struct task *next;
    struct warden *warden;
    uint64_t id, asker; /* asker: the desk's; 0: nobody but its sandbox */
    uint64_t box;       /* 0: none */
    enum order_what what;
    bool idle; /* its sandbox is to end then, unless somebody comes back to it before */
    bool undo; /* it is about steps (undo.h) */
    bool away; /* it may have to ask the checkpoint store */
    char tenant[FORM_OWNER_MAX + 1];
    struct chan *chan; /* to who keeps them; NULL: it has ended */
    struct timer *timer;
};

static struct {
    struct timer *timer;     /* NULL: checkpoints are nowhere else */
    bool goes, more, failed; /* more: something came meanwhile; failed: the last one, which is done again later */
} tidies;

/* --- its end ---------------------------------------------------------------------------- */

static void task_free(struct task *t)
{
    for (struct task **at = &t->warden->tasks; *at != NULL; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    chan_free(&t->chan);
    timer_free(&t->timer);
    free(t);
}

void checkpoint_tell(struct warden *w, uint64_t asker, enum store_end how, struct span why, struct span rest)
{
    struct dynbuf *m = w->desk != NULL && asker != 0 ? chan_begin(w->desk, M_SB_CHECKPOINT, asker) : NULL;

    if (m == NULL)
        return;
    msg_put_u8(m, (uint8_t)how);
    msg_put_span(m, why);
    msg_put_span(m, rest);
    (void)chan_commit(w->desk);
}

/* why may have any bytes: names of files are among its words. */
static void filled(struct box *b, bool done, struct span why)
{
    char words[WHY_MAX + 1];

    if (b == NULL || b->state != BOX_FILLING)
        return;
    if (done) {
        box_filled(b);
        return;
    }
    (void)snprintf(words, sizeof(words), "%.*s", SPAN_FMT(why));
    warden_tell_started(b->warden, b->asker, NULL, words);
    b->asker = 0;
    box_end(b, "the files of its checkpoint could not be put into it");
}

/* The same of one that is about steps; b: its sandbox, or NULL. */
static void undo_end(struct task *t, struct box *b, enum store_end how, struct span why, struct span rest)
{
    struct dynbuf m;
    uint32_t step;

    if (t->what == ORDER_SAVE && how == STORE_FULL && b != NULL && undo_makes_room(b, t->asker))
        return;
    dynbuf_init(&m, REST_MAX);
    if (t->what == ORDER_SAVE && how == STORE_DONE && (b == NULL || undo_kept(b, rest, &step) != 0)) {
        how = STORE_FAILED;
        why = SPAN("what who keeps checkpoints said cannot be read");
    } else if (t->what == ORDER_SAVE && how == STORE_DONE) {
        msg_put_u32(&m, step);
        (void)dynbuf_add(&m, rest);
    } else if (t->what == ORDER_LOAD && b != NULL) {
        undo_done(b, how);
    }
    checkpoint_tell(t->warden, t->asker, how, why, dynbuf_span(&m));
    if (t->asker == 0 && (t->what == ORDER_SWEEP || t->what == ORDER_FORGET))
        undo_wasted(t->warden, how == STORE_DONE || how == STORE_MISSING);
    dynbuf_free(&m);
}

static void tidied(bool done)
{
    tidies.goes = false;
    tidies.failed = !done;
    timer_set(tidies.timer, !done ? TIDY_AGAIN_MS : tidies.more ? TIDY_SOON_MS : TIDY_LATER_MS);
    tidies.more = false;
}

/* One thing was done: it may have left something. */
static void tidy_soon(enum order_what what)
{
    if (tidies.timer == NULL || what == ORDER_LOAD || what == ORDER_LOOK || what == ORDER_LOOK_STEP)
        return;
    tidies.more = tidies.more || tidies.goes;
    if (!tidies.goes && !tidies.failed)
        timer_set(tidies.timer, TIDY_SOON_MS);
}

static void task_end(struct task *t, enum store_end how, struct span why, struct span rest)
{
    struct warden *w = t->warden;
    struct box *b = t->box != 0 ? box_numbered(w, t->box) : NULL;

    t->box = 0; /* which may end now, and nobody waits for this any more */
    (void)chan_send(w->parent, M_CHECKPOINT_END, t->id, SPAN_NONE);
    if (t->what == ORDER_TIDY)
        tidied(how == STORE_DONE);
    else
        tidy_soon(t->what);
    if (b != NULL)
        b->saves = false;
    if (t->undo) {
        undo_end(t, b, how, why, rest);
        task_free(t);
        return;
    }
    if (b != NULL && t->what == ORDER_SAVE)
        box_note(b, "sandbox-checkpoint",
                 how == STORE_DONE ? "its files are in a checkpoint" : "its files were not put into a checkpoint");
    checkpoint_tell(w, t->asker, how, why, rest);
    if (t->what == ORDER_LOAD)
        filled(b, how == STORE_DONE, why);
    task_free(t);
}

static void task_frame(void *arg, struct chan *c, struct frame *f)
{
    struct task *t = arg;
    struct msg_in m = msg_in(f->payload);
    unsigned how = msg_get_u8(&m);
    struct span why = msg_get_span(&m, WHY_MAX), rest = msg_get_span(&m, REST_MAX);

    if (f->type != M_CHECKPOINT_DONE || f->id != t->id || msg_end(&m) != 0 || how >= STORE_ENDS)
        task_end(t, STORE_FAILED, SPAN("what who keeps checkpoints said cannot be read"), SPAN_NONE);
    else
        task_end(t, (enum store_end)how, why, rest);
}

static void task_gone(void *arg, struct chan *c)
{
    struct task *t = arg;

    chan_free(&t->chan);
    timer_set(t->timer, GONE_MS);
}

static void task_late(void *arg)
{
    const struct task *t = arg;

    task_end(arg, STORE_FAILED,
             t->chan != NULL ? SPAN("it took too long")
                             : SPAN("who keeps checkpoints ended before it was done; the log may say why"),
             SPAN_NONE);
}

void checkpoint_on_none(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span why = msg_get_span(&m, WHY_MAX);

    for (struct task *t = w->tasks; t != NULL; t = t->next)
        if (t->id == f->id) {
            task_end(t, t->undo && t->what == ORDER_LOAD ? STORE_REFUSED : STORE_FAILED, why, SPAN_NONE);
            return;
        }
}

void checkpoint_box_ends(const struct box *b, const char *why)
{
    struct task *next;

    for (struct task *t = b->warden->tasks; t != NULL; t = next) {
        next = t->next;
        if (t->box == b->id)
            task_end(t, STORE_FAILED, span_str(why), SPAN_NONE);
    }
}

void checkpoint_idle_stops(const struct box *b)
{
    for (struct task *t = b->warden->tasks; t != NULL; t = t->next)
        if (t->box == b->id && t->idle) {
            task_end(t, STORE_REFUSED, SPAN("somebody came back to it meanwhile"), SPAN_NONE);
            return;
        }
}

void checkpoint_desk_gone(struct warden *w)
{
    struct task *next;

    for (struct task *t = w->tasks; t != NULL; t = next) {
        next = t->next;
        if (t->undo && t->what == ORDER_LOAD)
            t->asker = 0; /* half put back is worse, and nobody needs to hear of it */
        else if (t->asker != 0)
            task_end(t, STORE_FAILED, SPAN_NONE, SPAN_NONE);
    }
}

bool checkpoint_clears(const struct warden *w)
{
    for (const struct task *t = w->tasks; t != NULL; t = t->next)
        if (t->undo && t->what == ORDER_SWEEP && t->asker != 0)
            return true;
    return false;
}

/* --- its start ---------------------------------------------------------------------------- */

static bool may_ask_away(const struct order *o)
{
    bool looks = o->what == ORDER_LIST || o->what == ORDER_REMOVE || o->what == ORDER_LOOK;

    return tidies.timer != NULL &&
           (looks || ((o->what == ORDER_SAVE || o->what == ORDER_LOAD) && !form_stays_here(o->name)));
}

static bool has_place(const struct warden *w, const struct order *o)
{
    unsigned all = 0, own = 0;

    for (const struct task *t = w->tasks; t != NULL; t = t->next) {
        all += t->away;
        own += t->away && span_eq(span_str(t->tenant), o->tenant);
    }
    return !may_ask_away(o) || (all < AWAY_TASKS && own < AWAY_TENANT_TASKS);
}

static struct task *task_new(struct warden *w, uint64_t asker, const struct box *b, const struct order *o, int fd)
{
    static const struct chan_ops ops = {task_frame, task_gone};
    struct task *t = calloc(1, sizeof(*t));

    if (t == NULL) {
        close(fd);
        return NULL;
    }
    *t = (struct task){.warden = w,
                       .id = ++w->last_task,
                       .asker = asker,
                       .box = b != NULL ? b->id : 0,
                       .what = o->what,
                       .away = may_ask_away(o),
                       .idle = span_eq(o->name, FORM_OF_IDLE),
                       .undo = span_eq(o->name, FORM_OF_UNDO)};
    (void)snprintf(t->tenant, sizeof(t->tenant), "%.*s", SPAN_FMT(o->tenant));
    t->timer = timer_new(w->loop, task_late, t);
    t->chan = chan_new(w->loop, fd, &ops, t);
    t->next = w->tasks;
    w->tasks = t;
    if (t->timer != NULL && t->chan != NULL)
        return t;
    task_free(t);
    return NULL;
}

static int ask(struct task *t, enum store_with with, const struct order *o, const int keeper[2], const int user[2])
{
    struct warden *w = t->warden;
    struct dynbuf *m = chan_begin(w->parent, M_CHECKPOINT, t->id);

    if (m == NULL)
        return -1;
    msg_put_u8(m, (uint8_t)with);
    msg_put_u64(m, t->box);
    if (chan_commit_fds(w->parent, (const int[]){keeper[1], user[1]}, with == STORE_ALONE ? 1 : 2) != 0)
        return -1;
    if ((m = chan_begin(t->chan, M_CHECKPOINT_ORDER, t->id)) == NULL)
        return -1;
    order_put(m, o);
    return with == STORE_ALONE ? chan_commit(t->chan) : chan_commit_fd(t->chan, user[0]);
}

/* Why not; NULL: begun. */
const char *checkpoint_begin(struct warden *w, uint64_t asker, struct box *b, const struct order *o)
{
    enum store_with with = o->what == ORDER_SAVE ? STORE_READS : o->what == ORDER_LOAD ? STORE_WRITES : STORE_ALONE;
    int keeper[2] = {-1, -1}, user[2] = {-1, -1};
    struct task *t = NULL;
    int rc = -1;

    if (!has_place(w, o))
        return "as much is done as may be at once that may have to ask the checkpoint store; ask again in a moment";
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, keeper) == 0 &&
        (with == STORE_ALONE || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, user) == 0)) {
        t = task_new(w, asker, b, o, keeper[0]);
        keeper[0] = -1;
        rc = t != NULL ? ask(t, with, o, keeper, user) : -1;
    }
    if (rc == 0)
        timer_set(t->timer, with == STORE_ALONE && o->what != ORDER_TIDY ? SHORT_MS : SAVE_MS);
    else if (t != NULL)
        task_free(t);
    for (int i = 0; i < 2; i++) {
        if (keeper[i] >= 0)
            close(keeper[i]);
        if (user[i] >= 0)
            close(user[i]);
    }
    return rc == 0 ? NULL : "it cannot be asked for: no descriptors, or no memory";
}

static void tidy(void *arg)
{
    const struct order o = {.what = ORDER_TIDY, .tenant = SPAN("default")};

    tidies.goes = checkpoint_begin(arg, 0, NULL, &o) == NULL;
    if (!tidies.goes)
        tidied(false);
}

int checkpoint_tidies(struct warden *w)
{
    if ((tidies.timer = timer_new(w->loop, tidy, w)) == NULL)
        return -1;
    timer_set(tidies.timer, TIDY_SOON_MS);
    return 0;
}

/* --- what is asked for ------------------------------------------------------------------------ */

int checkpoint_on_snapshot(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct order o = {.what = ORDER_SAVE};

    o.sandbox = msg_get_span(&m, BOX_NAME_MAX);
    o.tenant = msg_get_span(&m, FORM_OWNER_MAX);
    o.owner = msg_get_span(&m, FORM_OWNER_MAX);
    o.name = msg_get_span(&m, FORM_NAME_MAX);
    o.reach = msg_get_span(&m, FORM_REACH_MAX);
    if (msg_end(&m) != 0 || f->id == 0 || o.tenant.n == 0 || !form_is_called(o.name) || span_eq(o.name, FORM_OF_UNDO))
        return -1;
    struct box *b = box_named(w, o.sandbox);
    if (b != NULL && !span_eq(o.name, FORM_OF_IDLE))
        checkpoint_idle_stops(b);
    enum store_end how = STORE_REFUSED;
    const char *why = b == NULL                ? "no sandbox of this name runs"
                      : b->state != BOX_PAUSED ? "the sandbox is not paused"
                      : b->saves               ? "its files are being read for a checkpoint already"
                                               : NULL;
    if (why == NULL) {
        how = STORE_FAILED;
        o.generation = b->generation;
        o.disk = b->is.disk;
        why = checkpoint_begin(w, f->id, b, &o);
        b->saves = why == NULL;
    }
    if (why != NULL)
        checkpoint_tell(w, f->id, how, span_str(why), SPAN_NONE);
    return 0;
}

int checkpoint_on_list(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct order o = {.what = (enum order_what)msg_get_u8(&m)};

    o.tenant = msg_get_span(&m, FORM_OWNER_MAX);
    o.which = msg_get_span(&m, FORM_NAME_MAX);
    if (msg_end(&m) != 0 || f->id == 0 || o.tenant.n == 0 ||
        (o.what != ORDER_LIST && o.what != ORDER_LOOK && o.what != ORDER_REMOVE && o.what != ORDER_SWEEP &&
         o.what != ORDER_IDLE && o.what != ORDER_FORGET && o.what != ORDER_LOOK_STEP))
        return -1;
    if (o.what == ORDER_SWEEP && o.which.n == 0 && !undo_any(w))
        o.name = FORM_OF_UNDO; /* those of steps are of wardens before this one, too */
    const char *why = checkpoint_begin(w, f->id, NULL, &o);
    if (why != NULL)
        checkpoint_tell(w, f->id, STORE_FAILED, span_str(why), SPAN_NONE);
    return 0;
}

int checkpoint_on_start(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span tenant = msg_get_span(&m, FORM_OWNER_MAX), which = msg_get_span(&m, FORM_NAME_MAX);
    struct box_from from = {.here = msg_get_bool(&m)};

    if (m.bad || tenant.n == 0 || (!form_is_id(which) && !form_is_name(which)))
        return -1;
    (void)snprintf(from.tenant, sizeof(from.tenant), "%.*s", SPAN_FMT(tenant));
    (void)snprintf(from.which, sizeof(from.which), "%.*s", SPAN_FMT(which));
    return warden_start(w, f->id, m.rest, &from);
}

const char *checkpoint_fill(struct box *b)
{
    const struct order o = {.what = ORDER_LOAD,
                            .tenant = span_str(b->from.tenant),
                            .name = b->from.here ? FORM_OF_FORK : SPAN_NONE,
                            .which = span_str(b->from.which)};

    return checkpoint_begin(b->warden, 0, b, &o);
}
