/* The life of one sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/state.h"
#include "sandbox-shim/warden/checkpoint.h"
#include "sandbox-shim/warden/pause.h"
#include "sandbox-shim/warden/pool/pool.h"
#include "sandbox-shim/warden/undo/undo.h"

static const struct state_row states[BOX_STATES] = {
    [BOX_NONE] = {"none", STATE(BOX_ASKED)},
    [BOX_ASKED] = {"asked", STATE(BOX_STARTING) | STATE(BOX_ENDING)},
    [BOX_STARTING] = {"starting", STATE(BOX_READY) | STATE(BOX_FILLING) | STATE(BOX_RUNS) | STATE(BOX_ENDING)},
    [BOX_READY] = {"ready", STATE(BOX_FILLING) | STATE(BOX_RUNS) | STATE(BOX_ENDING)},
    [BOX_FILLING] = {"filling", STATE(BOX_RUNS) | STATE(BOX_ENDING)},
    [BOX_RUNS] = {"runs", STATE(BOX_PAUSING) | STATE(BOX_ENDING)},
    [BOX_PAUSING] = {"pausing", STATE(BOX_PAUSED) | STATE(BOX_RUNS) | STATE(BOX_ENDING)},
    [BOX_PAUSED] = {"paused", STATE(BOX_RESUMING) | STATE(BOX_ENDING)},
    [BOX_RESUMING] = {"resuming", STATE(BOX_PAUSED) | STATE(BOX_RUNS) | STATE(BOX_ENDING)},
    [BOX_ENDING] = {"ending", 0},
};

bool box_set(struct box *b, enum box_state to)
{
    if (!state_may(STATE_KIND("sandbox", states), 0, b->state, to))
        return false;
    b->state = to;
    return true;
}

bool box_is_up(const struct box *b)
{
    return b->state >= BOX_RUNS && b->state < BOX_ENDING;
}

struct box *box_named(struct warden *w, struct span name)
{
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        if (b->state != BOX_ENDING && !b->waits && span_eq(span_str(b->name), name))
            return b;
    return NULL;
}

struct box *box_numbered(struct warden *w, uint64_t id)
{
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        if (b->id == id)
            return b;
    return NULL;
}

bool box_ends(const struct warden *w, struct span name)
{
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        if (b->state == BOX_ENDING && !b->waits && span_eq(span_str(b->name), name))
            return true;
    return false;
}

/* --- its end --------------------------------------------------------------------- */

void box_forget(struct box *b)
{
    struct warden *w = b->warden;

    for (struct box **at = &w->boxes; *at != NULL; at = &(*at)->next)
        if (*at == b) {
            *at = b->next;
            break;
        }
    bool none = b->state != BOX_ENDING, waits = b->waits;
    w->nboxes -= none && !waits;
    runs_end(b, "its sandbox was not started");
    conn_free(&b->conn);
    timer_free(&b->timer);
    flow_turn_free(b);
    undo_free(b);
    if (b->fd >= 0)
        close(b->fd);
    if (!waits)
        warden_tell_destroyed(w, span_str(b->name));
    free(b);
    if (none)
        pool_look(w, waits ? POOL_FAILED : POOL_ANY);
}

/* Its leases end with it. If that cannot be said, the next ledger hears which ones there are. */
static void tell_ended(const struct box *b)
{
    struct warden *w = b->warden;
    struct dynbuf *m = w->ledger != NULL ? chan_begin(w->ledger, M_SANDBOX_ENDED, b->id) : NULL;

    if (m == NULL)
        return;
    msg_put_span(m, span_str(b->name));
    msg_put_u64(m, b->generation);
    (void)chan_commit(w->ledger);
}

/* Its names are plain, and why is ours: nothing in them must be escaped. */
void box_note(const struct box *b, const char *kind, const char *why)
{
    struct warden *w = b->warden;
    struct dynbuf json, *m = w->ledger != NULL ? chan_begin(w->ledger, M_RUN_LIFE, b->id) : NULL;

    log_info("sandbox %s, generation %llu: %s", b->name, (unsigned long long)b->generation, why);
    if (m == NULL) {
        log_warn("the audit misses what became of sandbox %s: the ledger does not run", b->name);
        return;
    }
    dynbuf_init(&json, 1024);
    (void)dynbuf_addf(&json,
                      "{\"sandbox\":\"%s\",\"generation\":%llu,\"image\":\"%s\",\"digest\":\"%s\",\"why\":\"%s\"",
                      b->name, (unsigned long long)b->generation, b->image[0] ? b->image : "host",
                      b->digest[0] ? b->digest : "unknown", why);
    if (b->from.which[0] != '\0')
        (void)dynbuf_addf(&json, ",\"from\":\"%s\"", b->from.which);
    (void)dynbuf_add_byte(&json, '}');
    msg_put_span(m, span_str(kind));
    msg_put_span(m, span_str(b->name));
    msg_put_u64(m, b->generation);
    msg_put_span(m, dynbuf_span(&json));
    (void)chan_commit(w->ledger);
    dynbuf_free(&json);
}

void box_end(struct box *b, const char *why)
{
    struct warden *w = b->warden;

    if (b->state == BOX_ENDING || !box_set(b, BOX_ENDING))
        return;
    w->nboxes -= !b->waits;
    if (b->asker != 0)
        warden_tell_started(w, b->asker, b, why);
    b->asker = 0;
    box_tell_paused(w, b->pauser, b, SB_PAUSE_NOBODY, NULL);
    checkpoint_box_ends(b, why);
    undo_box_ends(b);
    runs_end(b, why);
    timer_clear(b->timer);
    conn_free(&b->conn);
    if (b->waits)
        log_info("a sandbox of image %s that waited: %s", b->image[0] ? b->image : "host", why);
    else {
        tell_ended(b);
        box_note(b, "sandbox-ended", why);
    }
    (void)chan_send(w->parent, M_BOX_END, b->id, SPAN_NONE); /* else it writes that down, should this warden end */
    pool_look(w, b->waits ? POOL_FAILED : POOL_ANY);
}

static void time_over(void *arg)
{
    struct box *b = arg;

    box_end(b, box_is_up(b) ? "its time was over" : "it did not come up in time; the log may say why");
}

/* --- what it says ------------------------------------------------------------------ */

/* Its first process tells the gateway which command what it carries is of. */
static void say_born(struct box *b)
{
    struct dynbuf m;

    dynbuf_init(&m, 64);
    if (talk_put_born(&m, b->born) == 0)
        box_say(b, &m); /* which may end it */
    dynbuf_free(&m);
}

static void comes_up(struct box *b)
{
    uint64_t now = loop_now(b->warden->loop);

    if (b->lane[0] != '\0')
        say_born(b);
    if (b->state == BOX_ENDING || !box_set(b, BOX_RUNS))
        return;
    b->since_ms = b->used_ms = now;
    b->until_ms = now + b->timeout_ms;
    timer_set(b->timer, b->timeout_ms);
    warden_tell_started(b->warden, b->asker, b, NULL);
    b->asker = 0;
    box_note(b, b->from.which[0] ? "sandbox-restored" : "sandbox-started",
             b->version ? "its limits are held by a cgroup" : "its limits are those of each process");
    pool_look(b->warden, POOL_ANY);
}

/* It has its name, and is to have its files. */
static void take_name(struct box *b)
{
    struct dynbuf name;

    dynbuf_init(&name, TALK_HEAD + TALK_PATH_MAX);
    if (talk_put_name(&name, span_str(b->name)) == 0)
        box_say(b, &name); /* which may end it */
    dynbuf_free(&name);
    if (b->state == BOX_ENDING)
        return;
    if (b->from.which[0] == '\0') {
        comes_up(b);
        return;
    }
    if (!box_set(b, BOX_FILLING))
        return;
    timer_set(b->timer, BOX_FILL_MS);
    const char *why = checkpoint_fill(b);
    if (why != NULL)
        box_end(b, why);
}

static void take_hello(struct box *b)
{
    if (!b->waits)
        take_name(b);
    else if (box_set(b, BOX_READY)) {
        timer_clear(b->timer);
        pool_look(b->warden, POOL_WAITS);
    }
}

static void hear_all(struct box *b)
{
    struct talk t;
    size_t used;

    while (b->state == BOX_STARTING || b->state == BOX_READY || box_is_up(b)) {
        enum talk_got got = talk_take(conn_input(b->conn), &t, &used);
        if (got == TALK_MORE)
            return;
        bool ok = got == TALK_FRAME && (t.type == TALK_HELLO) == (b->state == BOX_STARTING);
        if (ok && t.type == TALK_HELLO)
            take_hello(b);
        else if (ok)
            ok = run_heard(b, NULL, &t) == 0;
        if (!ok)
            box_end(b, "its first process said what it may not");
        else if (b->conn != NULL)
            conn_consume(b->conn, used);
    }
}

static void hear(struct box *b)
{
    hear_all(b);
    if (box_is_up(b))
        flow_tell_all(b);
}

void box_filled(struct box *b)
{
    comes_up(b);
    if (box_is_up(b))
        hear(b); /* what came meanwhile */
}

static void event(void *arg, struct conn *c, enum conn_event ev)
{
    struct box *b = arg;

    if (ev == CONN_DATA)
        hear(b);
    else if (ev != CONN_DRAINED && ev != CONN_CONNECTED)
        box_end(b, box_is_up(b) ? "its first process ended" : "it could not be set up; the log may say why");
}

void box_say(struct box *b, const struct dynbuf *frame)
{
    if (b->conn != NULL && conn_write(b->conn, dynbuf_span(frame)) != 0)
        box_end(b, "its first process does not listen");
}

/* --- its start ----------------------------------------------------------------------- */

/* The process that becomes it waits for this, and reads not one byte more. */
static int order(struct box *b)
{
    struct wire_box x = b->is;
    struct dynbuf payload;

    if (b->version != 0)
        x.memory = x.pids = 0; /* the cgroup holds all of it together */
    if (b->waits)
        x.name = SPAN("waits"); /* for what it says in the log until it has one */
    dynbuf_init(&payload, 1024);
    wire_put_box(&payload, &x);
    int rc = dynbuf_ok(&payload) ? chan_write_one(b->fd, M_BOX_ORDER, b->id, dynbuf_span(&payload)) : -1;
    dynbuf_free(&payload);
    return rc;
}

void box_started(struct box *b, unsigned version)
{
    if (b->state != BOX_ASKED) /* it was told to end meanwhile */
        return;
    b->version = version;
    int rc = order(b), fd = b->fd;
    b->fd = -1;
    b->conn = conn_new(b->warden->loop, fd, TALK_IN_MAX, event, b);
    if (rc != 0 || b->conn == NULL || !box_set(b, BOX_STARTING))
        box_end(b, "it cannot be told what to be");
}

/* Who it is, and for whom. */
static void be(struct box *b, uint64_t asker, const struct box_order *o)
{
    b->asker = asker;
    b->generation = b->born = o->generation;
    b->timeout_ms = o->timeout_ms;
    b->from = o->from;
    b->bound = o->bound;
    b->waits = o->waits;
    b->is = o->is;
    (void)snprintf(b->name, sizeof(b->name), "%.*s", SPAN_FMT(o->is.name));
    (void)snprintf(b->image, sizeof(b->image), "%.*s", SPAN_FMT(o->is.image));
    (void)snprintf(b->digest, sizeof(b->digest), "%.*s", SPAN_FMT(o->is.digest));
    (void)snprintf(b->lane, sizeof(b->lane), "%.*s", SPAN_FMT(o->is.lane));
    b->is.lane = span_str(b->lane);
    if (o->is.extras.n > 0)
        memcpy(b->extras, o->is.extras.p, o->is.extras.n);
    b->is.extras = span_of(b->extras, o->is.extras.n);
    b->is.name = span_str(b->name);
    b->is.image = span_str(b->image);
    b->is.digest = span_str(b->digest);
}

static struct box *box_new(struct warden *w, uint64_t asker, const struct box_order *o)
{
    struct box *b = calloc(1, sizeof(*b));

    if (b == NULL)
        return NULL;
    *b = (struct box){.warden = w,
                      .id = ++w->last_box,
                      .since_ms = loop_now(w->loop),
                      .cpu_percent = o->cpu_percent,
                      .strict = o->strict,
                      .fd = -1};
    be(b, asker, o);
    b->timer = timer_new(w->loop, time_over, b);
    if (b->timer == NULL || flow_turn_begin(b) != 0) {
        timer_free(&b->timer);
        free(b);
        return NULL;
    }
    b->next = w->boxes;
    w->boxes = b;
    w->nboxes += !o->waits;
    return b;
}

/* Whoever looks at it sees no other than one that was started now. */
void box_claim(struct box *b, uint64_t asker, const struct box_order *o)
{
    struct warden *w = b->warden;
    struct dynbuf *m = chan_begin(w->parent, M_BOX_CLAIMED, b->id);

    be(b, asker, o);
    w->nboxes++;
    if (m != NULL) {
        msg_put_span(m, o->is.name);
        msg_put_u64(m, o->generation);
        (void)chan_commit(w->parent);
    }
    take_name(b);
}

const char *box_start(struct warden *w, uint64_t asker, const struct box_order *o)
{
    int fd[2] = {-1, -1};

    if (!o->waits && box_named(w, o->is.name) != NULL)
        return "a sandbox of this name runs";
    if (!o->waits && pool_claim(w, asker, o))
        return NULL;
    if (!pool_room(w, o->waits))
        return "as many sandboxes run as may at once";
    struct box *b = box_new(w, asker, o);
    if (b == NULL)
        return "there is no memory for it";
    struct dynbuf *m = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) != 0 || !box_set(b, BOX_ASKED) ||
        (m = chan_begin(w->parent, M_BOX, b->id)) == NULL)
        goto fail;
    b->fd = fd[0];
    fd[0] = -1;
    msg_put_span(m, o->is.name);
    msg_put_u64(m, o->generation);
    msg_put_u64(m, o->is.memory);
    msg_put_u64(m, o->is.pids);
    msg_put_u64(m, o->cpu_percent);
    msg_put_u8(m, o->strict);
    msg_put_span(m, o->is.image.n > 0 ? o->is.digest : SPAN_NONE);
    msg_put_u8(m, o->is.lane.n > 0);
    msg_put_span(m, o->is.extras);
    if (chan_commit_fd(w->parent, fd[1]) != 0)
        goto fail;
    close(fd[1]);
    timer_set(b->timer, BOX_START_MS);
    return NULL;
fail:
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    box_forget(b);
    return "it cannot be asked for: no descriptors, or no memory";
}
