/* What is said to the warden, and its answers. */
#include "sandbox-shim/warden/cell/cell.h"
#include "sandbox-shim/warden/checkpoint.h"
#include "sandbox-shim/warden/kept.h"
#include "sandbox-shim/warden/pause.h"
#include "sandbox-shim/warden/pool/pool.h"
#include "sandbox-shim/warden/record.h"
#include "sandbox-shim/warden/undo/undo.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"

/* Who waits until nothing is left of the sandboxes of a name that end. */
struct destroyer {
    struct destroyer *next;
    uint64_t asker;
    char name[BOX_NAME_MAX + 1];
};

enum { CPU_PERCENT_MAX = 102400, WHY_MAX = 400, OUTPUT_MAX_MIB = 1024, USAGE_MAX = 64 };
enum { PART_BYTES = 8 * 1024, ROWS_BYTES = 1024 * 1024 /* more than WARDEN_BOXES_MAX rows */ };

void warden_tell_started(struct warden *w, uint64_t asker, const struct box *b, const char *why)
{
    struct dynbuf *m = w->desk != NULL && asker != 0 ? chan_begin(w->desk, M_SB_STARTED, asker) : NULL;

    if (m == NULL)
        return;
    msg_put_u8(m, why == NULL);
    msg_put_span(m, why ? span_str(why) : SPAN_NONE);
    msg_put_u8(m, b ? (uint8_t)b->version : 0);
    (void)chan_commit(w->desk);
}

/* --- the desk ---------------------------------------------------------------------- */

int warden_start(struct warden *w, uint64_t asker, struct span payload, const struct box_from *from)
{
    struct msg_in m = msg_in(payload);
    struct box_order o = {.from = from != NULL ? *from : (struct box_from){.which = ""}};

    int bad = wire_get_box(&m, &o.is, false);
    o.generation = msg_get_u64(&m);
    o.cpu_percent = msg_get_u64(&m);
    o.timeout_ms = msg_get_u64(&m);
    o.strict = msg_get_bool(&m);
    o.bound = msg_get_bool(&m);
    if (bad || msg_end(&m) != 0 || asker == 0 || o.cpu_percent == 0 || o.cpu_percent > CPU_PERCENT_MAX ||
        o.timeout_ms == 0 || o.timeout_ms > BOX_TIMEOUT_MAX_MS)
        return -1;
    const char *why = box_start(w, asker, &o);
    if (why != NULL)
        warden_tell_started(w, asker, NULL, why);
    return 0;
}

/* Images are the parent's: the question goes on to it, and its answer back. */
static int on_image(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    struct span had = m.rest.n > 0 ? msg_get_span(&m, BOX_DIGEST_MAX) : SPAN_NONE;

    if (msg_end(&m) != 0 || (name.n > 0 && !box_name_ok(name)) || (had.n > 0 && !box_digest_ok(had)))
        return -1;
    return chan_send(w->parent, M_BOX_IMAGE, f->id, f->payload);
}

void warden_put_row(struct dynbuf *m, const struct box *b)
{
    uint64_t now = loop_now(b->warden->loop);

    wire_put_box(m, &b->is);
    msg_put_u64(m, b->generation);
    msg_put_u64(m, now - b->since_ms);
    msg_put_u64(m, b->until_ms > now ? b->until_ms - now : 0);
    msg_put_u64(m, b->nruns > 0 ? 0 : now - b->used_ms);
    msg_put_u8(m, (uint8_t)b->version);
    msg_put_u16(m, (uint16_t)b->nruns);
    msg_put_u8(m, (uint8_t)b->way);
    msg_put_span(m, span_str(b->idle.why));
}

/* All sandboxes together may be longer than a frame: in as many as it takes. */
static void tell_long(struct warden *w, uint16_t type, uint64_t id, const struct dynbuf *rows)
{
    struct span rest = dynbuf_span(rows);

    for (; rest.n > PART_BYTES; rest = span_from(rest, PART_BYTES))
        (void)chan_send(w->desk, M_SB_PART, id, span_first(rest, PART_BYTES));
    if (dynbuf_ok(rows))
        (void)chan_send(w->desk, type, id, rest);
}

static int on_list(struct warden *w, struct frame *f)
{
    struct dynbuf rows;
    uint16_t n = 0;

    if (f->payload.n > 0)
        return -1;
    dynbuf_init(&rows, ROWS_BYTES);
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        n += box_is_up(b);
    msg_put_u16(&rows, n);
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        if (box_is_up(b))
            warden_put_row(&rows, b);
    tell_long(w, M_SB_LISTED, f->id, &rows);
    dynbuf_free(&rows);
    return 0;
}

/* From now, whether or not it stands still. */
static int on_timeout(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    uint64_t ms = msg_get_u64(&m);

    if (msg_end(&m) != 0 || ms == 0 || ms > BOX_TIMEOUT_MAX_MS)
        return -1;
    struct box *b = box_named(w, name);
    uint8_t is_so = b != NULL && box_is_up(b);
    if (is_so) {
        b->until_ms = loop_now(w->loop) + ms;
        timer_set(b->timer, ms);
        checkpoint_idle_stops(b); /* it would be put aside with the time that it had before */
    }
    return chan_send(w->desk, M_SB_TIMEOUT, f->id, span_of(&is_so, 1));
}

static void tell_destroyed(struct warden *w, uint64_t asker, uint8_t there)
{
    if (w->desk != NULL)
        (void)chan_send(w->desk, M_SB_DESTROYED, asker, span_of(&there, 1));
}

void warden_tell_destroyed(struct warden *w, struct span name)
{
    for (struct destroyer **at = &w->destroyers; *at != NULL && !box_ends(w, name);) {
        struct destroyer *d = *at;
        if (!span_eq(span_str(d->name), name)) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        tell_destroyed(w, d->asker, true);
        free(d);
    }
}

/* Answered when nothing is left of it: also of one that ends already, whoever ended it. */
static int on_destroy(struct warden *w, struct frame *f)
{
    bool idle = f->type == M_SB_IDLE_END;
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    uint64_t generation = idle ? msg_get_u64(&m) : UINT64_MAX;

    if (msg_end(&m) != 0)
        return -1;
    struct box *b = box_named(w, name);
    if (b != NULL && b->generation <= generation)
        box_end(b, idle ? "it is idle: its files are kept, and it has them again when it is asked for"
                        : "it was destroyed");
    if (!box_ends(w, name)) {
        tell_destroyed(w, f->id, false);
        return 0;
    }
    struct destroyer *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return 0; /* who asked is not answered, and asks again */
    d->asker = f->id;
    (void)snprintf(d->name, sizeof(d->name), "%.*s", SPAN_FMT(name));
    d->next = w->destroyers;
    w->destroyers = d;
    return 0;
}

void warden_tell_detached(struct warden *w, uint64_t asker, uint64_t born, uint32_t number, const char *why)
{
    struct dynbuf *m = w->desk != NULL ? chan_begin(w->desk, M_SB_DETACHED, asker) : NULL;

    if (m == NULL)
        return;
    msg_put_u64(m, born);
    msg_put_u32(m, number);
    msg_put_span(m, why ? span_str(why) : SPAN_NONE);
    (void)chan_commit(w->desk);
}

static int on_exec(struct warden *w, struct frame *f)
{
    static struct span word[TALK_WORDS_MAX];
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    struct run_order o = {.timeout_ms = msg_get_u64(&m), .most = msg_get_u64(&m)};
    unsigned input = msg_get_u8(&m), rows = msg_get_u16(&m), columns = msg_get_u16(&m);
    o.detached = msg_get_bool(&m);
    size_t nargs = msg_get_u16(&m), nvars = msg_get_u16(&m);

    if (nargs + nvars > TALK_WORDS_MAX || f->id == 0 || o.timeout_ms == 0 || o.timeout_ms > RUN_TIMEOUT_MAX_MS ||
        o.most > (uint64_t)OUTPUT_MAX_MIB << 20 || input > TALK_TERMINAL || (o.detached && input != TALK_NO_INPUT))
        return -1;
    for (size_t i = 0; i < nargs + nvars; i++)
        word[i] = msg_get_span(&m, TALK_PAYLOAD_MAX);
    o.command = (struct talk_command){.arg = word,
                                      .variable = word + nargs,
                                      .nargs = nargs,
                                      .nvariables = nvars,
                                      .dir = msg_get_span(&m, TALK_PAYLOAD_MAX),
                                      .input = (enum talk_input)input,
                                      .rows = (uint16_t)rows,
                                      .columns = (uint16_t)columns};
    o.lane = m.rest.n > 0 ? msg_get_span(&m, BOX_NAME_MAX) : SPAN_NONE;
    if (msg_end(&m) != 0 || (o.lane.n > 0 && !box_name_ok(o.lane)))
        return -1;
    o.detacher = o.detached ? f->id : 0;
    struct box *b = box_named(w, name);
    const char *why = b ? run_begin(b, o.detached ? 0 : f->id, &o) : "no sandbox of this name runs";
    if (o.detached && why != NULL)
        warden_tell_detached(w, f->id, 0, 0, why);
    else if (why != NULL)
        run_tell_none(w, f->id, b ? SB_NOT_STARTED : SB_LOST, why);
    return 0;
}

static int on_files(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    struct run_order o = {.timeout_ms = msg_get_u64(&m), .most = UINT64_MAX};

    o.files.what = (enum talk_file)msg_get_u8(&m);
    o.files.mode = msg_get_u16(&m);
    o.files.whole = msg_get_bool(&m);
    o.files.from = msg_get_u64(&m);
    o.files.most = msg_get_u64(&m);
    o.files.path = msg_get_span(&m, TALK_PATH_MAX);
    o.files.other = msg_get_span(&m, TALK_PATH_MAX);
    if (msg_end(&m) != 0 || f->id == 0 || o.timeout_ms == 0 || o.timeout_ms > RUN_TIMEOUT_MAX_MS ||
        o.files.what == TALK_FILE_NONE)
        return -1;
    const struct span words[] = {SPAN("(files)"), o.files.path}; /* what it is listed as */
    o.command = (struct talk_command){.arg = words, .nargs = 2, .input = TALK_PIPE};
    struct box *b = box_named(w, name);
    const char *why = b ? run_begin(b, f->id, &o) : "no sandbox of this name runs";
    if (why != NULL)
        run_tell_none(w, f->id, b ? SB_NOT_STARTED : SB_LOST, why);
    return 0;
}

static int on_taken(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint32_t bytes = msg_get_u32(&m);

    if (msg_end(&m) != 0)
        return -1;
    run_taken(w, f->id, bytes);
    return 0;
}

static int on_resize(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint16_t rows = msg_get_u16(&m), columns = msg_get_u16(&m);

    return msg_end(&m) == 0 ? run_resize(w, f->id, rows, columns) : -1;
}

static int desk_said(struct warden *w, struct frame *f)
{
    switch (f->type) {
    case M_SB_START: return warden_start(w, f->id, f->payload, NULL);
    case M_SB_START_FROM: return checkpoint_on_start(w, f);
    case M_SB_SNAPSHOT: return checkpoint_on_snapshot(w, f);
    case M_SB_CHECKPOINTS: return checkpoint_on_list(w, f);
    case M_SB_LAYER: return undo_on_layer(w, f);
    case M_SB_LAYERS: return undo_on_list(w, f);
    case M_SB_UNDO: return undo_on_undo(w, f);
    case M_SB_LIST: return on_list(w, f);
    case M_SB_IDLE_END:
    case M_SB_DESTROY: return on_destroy(w, f);
    case M_SB_IDLE: return idle_on_ask(w, f);
    case M_SB_IDLE_NOT: return idle_on_not(w, f);
    case M_SB_TIMEOUT: return on_timeout(w, f);
    case M_SB_IMAGE: return on_image(w, f);
    case M_SB_METER: return chan_send(w->parent, M_BOX_METER, f->id, SPAN_NONE);
    case M_SB_LOG: return kept_log(w, f);
    case M_SB_PAUSE: return box_on_pause(w, f);
    case M_SB_RESUME: return box_on_resume(w, f);
    case M_SB_MOMENT: return box_on_moment(w, f);
    case M_SB_EXEC: return on_exec(w, f);
    case M_SB_FILES: return on_files(w, f);
    case M_SB_TAKEN: return on_taken(w, f);
    case M_SB_TELL: return f->payload.n == 1 ? run_tell(w, f->id, f->payload.p[0]) : -1;
    case M_SB_INPUT: return run_input(w, f->id, f->payload);
    case M_SB_RESIZE: return on_resize(w, f);
    case M_SB_COMMANDS: return kept_list(w, f);
    case M_SB_ATTACH: return kept_attach(w, f);
    case M_SB_SIGNAL: return kept_signal(w, f);
    case M_SB_KILL: run_kill(w, f->id); return 0;
    default: return -1;
    }
}

static void desk_frame(void *arg, struct chan *c, struct frame *f)
{
    if (desk_said(arg, f) != 0)
        log_error("the desk said %u, which cannot be read", f->type);
}

/* Who asked is gone with it. */
static void desk_gone(void *arg, struct chan *c)
{
    struct warden *w = arg;

    chan_free(&w->desk);
    while (w->destroyers != NULL) {
        struct destroyer *d = w->destroyers;
        w->destroyers = d->next;
        free(d);
    }
    record_desk_gone(w);
    runs_desk_gone(w);
    checkpoint_desk_gone(w);
}

/* A start is of the generation that the ledger gave it: before one is asked for, those of a warden before this one
 * have to be over for the ledger. */
void warden_desk(struct warden *w, int fd)
{
    static const struct chan_ops ops = {desk_frame, desk_gone};

    if (w->desk != NULL)
        desk_gone(w, w->desk);
    if (w->waiting > 0)
        close(w->waiting - 1);
    w->waiting = 0;
    if (w->known)
        w->desk = chan_new(w->loop, fd, &ops, w);
    else
        w->waiting = fd + 1;
}

/* --- the ledger and the parent ------------------------------------------------------- */

static void ledger_frame(void *arg, struct chan *c, struct frame *f)
{
    struct warden *w = arg;

    if (f->type == M_RUN_BEGUN && record_answered(w, f) == 0)
        return;
    if (f->type != M_SANDBOX_DONE) {
        log_error("the ledger said %u, which cannot be read", f->type);
        return;
    }
    w->known = true;
    pool_look(w, POOL_WAITS);
    int fd = w->waiting - 1;
    w->waiting = 0;
    if (fd >= 0)
        warden_desk(w, fd);
}

static void ledger_gone(void *arg, struct chan *c)
{
    struct warden *w = arg;

    chan_free(&w->ledger);
    record_ledger_gone(w);
}

void warden_ledger(struct warden *w, int fd)
{
    static const struct chan_ops ops = {ledger_frame, ledger_gone};
    struct dynbuf *m;
    uint16_t n = 0;

    if (w->ledger != NULL)
        ledger_gone(w, w->ledger);
    w->ledger = chan_new(w->loop, fd, &ops, w);
    if (w->ledger == NULL || (m = chan_begin(w->ledger, M_SANDBOX_RUN, 0)) == NULL)
        return;
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        n += b->state != BOX_ENDING && !b->waits;
    msg_put_u16(m, n);
    for (const struct box *b = w->boxes; b != NULL; b = b->next) {
        if (b->state == BOX_ENDING || b->waits)
            continue;
        msg_put_span(m, span_str(b->name));
        msg_put_u64(m, b->generation);
    }
    record_put_open(m, w);
    (void)chan_commit(w->ledger);
}

/* The parent's words are its own, and go into an answer as they are. */
static void on_none(struct box *b, struct span why)
{
    char words[WHY_MAX + 1];

    (void)snprintf(words, sizeof(words), "%.*s", SPAN_FMT(why));
    if (b->waits)
        log_warn("no sandbox waits for who asks for one of image %s: %s", b->image[0] ? b->image : "host", words);
    warden_tell_started(b->warden, b->asker, NULL, words);
    b->asker = 0;
    box_forget(b);
}

/* What the parent counted, of those that are up still; what that says, the desk reads. */
static void on_metered(struct warden *w, struct frame *f)
{
    struct msg_in in = msg_in(f->payload);
    struct dynbuf rows;

    if (w->desk == NULL)
        return;
    dynbuf_init(&rows, ROWS_BYTES);
    for (size_t n = msg_get_u16(&in); n > 0 && !in.bad; n--) {
        const struct box *b = box_numbered(w, msg_get_u64(&in));
        struct span usage = msg_get_span(&in, USAGE_MAX);
        if (in.bad || b == NULL || !box_is_up(b))
            continue;
        warden_put_row(&rows, b);
        msg_put_span(&rows, usage);
    }
    tell_long(w, M_SB_METER, f->id, &rows);
    dynbuf_free(&rows);
}

static void on_paused(struct box *b, unsigned way, struct span why)
{
    char words[WHY_MAX + 1];

    (void)snprintf(words, sizeof(words), "%.*s", SPAN_FMT(why));
    box_paused(b, (enum pause_way)way, why.n > 0 ? words : NULL);
}

static void about_box(struct warden *w, struct frame *f)
{
    struct box *b = box_numbered(w, f->id);
    struct msg_in m = msg_in(f->payload);
    bool paused = f->type == M_BOX_PAUSED;
    unsigned what = f->type == M_BOX_STARTED || paused ? msg_get_u8(&m) : 0; /* version of its cgroup, or way */
    struct span why = f->type == M_BOX_NONE || paused ? msg_get_span(&m, WHY_MAX) : SPAN_NONE;

    if (msg_end(&m) != 0 || (paused && what >= PAUSE_WAYS) ||
        (f->type != M_BOX_STARTED && f->type != M_BOX_NONE && f->type != M_BOX_GONE && !paused))
        log_error("message %u of the parent is not understood", f->type);
    else if (b == NULL)
        log_debug("sandbox %llu is not known any more", (unsigned long long)f->id);
    else if (f->type == M_BOX_STARTED)
        box_started(b, what);
    else if (f->type == M_BOX_NONE)
        on_none(b, why);
    else if (paused)
        on_paused(b, what, why);
    else {
        box_end(b, "its first process ended"); /* if that was not heard yet */
        box_forget(b);
    }
}

void warden_parent_frame(struct warden *w, struct frame *f)
{
    if (f->type == M_BOX_METER)
        on_metered(w, f);
    else if (f->type == M_CHECKPOINT_NONE)
        checkpoint_on_none(w, f);
    else if (f->type == M_CELL_NONE)
        cell_on_none(w, f);
    else if (f->type == M_POOL)
        pool_told(w, f);
    else if (f->type == M_BOX_IMAGE && pool_image(w, f))
        return;
    else if (f->type == M_BOX_IMAGE) {
        if (w->desk != NULL)
            (void)chan_send(w->desk, M_SB_IMAGE, f->id, f->payload);
    } else
        about_box(w, f);
}
