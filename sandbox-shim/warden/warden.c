/* What is said to the warden, and its answers. */
#include "sandbox-shim/warden/warden.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"

enum { CPU_PERCENT_MAX = 102400, WHY_MAX = 400, OUTPUT_MAX_MIB = 1024 };

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

static int on_start(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct box_order o;

    int bad = wire_get_box(&m, &o.is, false);
    o.generation = msg_get_u64(&m);
    o.cpu_percent = msg_get_u64(&m);
    o.timeout_ms = msg_get_u64(&m);
    o.strict = msg_get_bool(&m);
    if (bad || msg_end(&m) != 0 || f->id == 0 || o.cpu_percent == 0 || o.cpu_percent > CPU_PERCENT_MAX ||
        o.timeout_ms == 0 || o.timeout_ms > BOX_TIMEOUT_MAX_MS)
        return -1;
    const char *why = box_start(w, f->id, &o);
    if (why != NULL)
        warden_tell_started(w, f->id, NULL, why);
    return 0;
}

static int on_list(struct warden *w, struct frame *f)
{
    struct dynbuf *m = f->payload.n == 0 ? chan_begin(w->desk, M_SB_LISTED, f->id) : NULL;
    uint64_t now = loop_now(w->loop);
    uint16_t n = 0;

    if (m == NULL)
        return f->payload.n == 0 ? 0 : -1;
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        n += b->state == BOX_RUNS;
    msg_put_u16(m, n);
    for (struct box *b = w->boxes; b != NULL; b = b->next) {
        if (b->state != BOX_RUNS)
            continue;
        wire_put_box(m, &b->is);
        msg_put_u64(m, b->generation);
        msg_put_u64(m, now - b->since_ms);
        msg_put_u64(m, b->until_ms > now ? b->until_ms - now : 0);
        msg_put_u8(m, (uint8_t)b->version);
        msg_put_u16(m, (uint16_t)b->nruns);
    }
    (void)chan_commit(w->desk);
    return 0;
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
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);

    if (msg_end(&m) != 0)
        return -1;
    struct box *b = box_named(w, name);
    if (b != NULL)
        box_end(b, "it was destroyed");
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

static int on_exec(struct warden *w, struct frame *f)
{
    static struct span word[TALK_WORDS_MAX];
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    struct run_order o = {.timeout_ms = msg_get_u64(&m), .most = msg_get_u64(&m)};
    size_t nargs = msg_get_u16(&m), nvars = msg_get_u16(&m);

    if (nargs + nvars > TALK_WORDS_MAX || f->id == 0 || o.timeout_ms == 0 || o.timeout_ms > RUN_TIMEOUT_MAX_MS ||
        o.most > (uint64_t)OUTPUT_MAX_MIB << 20)
        return -1;
    for (size_t i = 0; i < nargs + nvars; i++)
        word[i] = msg_get_span(&m, TALK_PAYLOAD_MAX);
    o.command = (struct talk_command){word, word + nargs, nargs, nvars, msg_get_span(&m, TALK_PAYLOAD_MAX)};
    if (msg_end(&m) != 0)
        return -1;
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

static int desk_said(struct warden *w, struct frame *f)
{
    switch (f->type) {
    case M_SB_START: return on_start(w, f);
    case M_SB_LIST: return on_list(w, f);
    case M_SB_DESTROY: return on_destroy(w, f);
    case M_SB_EXEC: return on_exec(w, f);
    case M_SB_TAKEN: return on_taken(w, f);
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
    runs_desk_gone(w);
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

    if (f->type != M_SANDBOX_DONE) {
        log_error("the ledger said %u, and there is nothing to say", f->type);
        return;
    }
    w->known = true;
    int fd = w->waiting - 1;
    w->waiting = 0;
    if (fd >= 0)
        warden_desk(w, fd);
}

static void ledger_gone(void *arg, struct chan *c)
{
    struct warden *w = arg;

    chan_free(&w->ledger);
}

void warden_ledger(struct warden *w, int fd)
{
    static const struct chan_ops ops = {ledger_frame, ledger_gone};
    struct dynbuf *m;
    uint16_t n = 0;

    chan_free(&w->ledger);
    w->ledger = chan_new(w->loop, fd, &ops, w);
    if (w->ledger == NULL || (m = chan_begin(w->ledger, M_SANDBOX_RUN, 0)) == NULL)
        return;
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        n += b->state != BOX_ENDING;
    msg_put_u16(m, n);
    for (const struct box *b = w->boxes; b != NULL; b = b->next) {
        if (b->state == BOX_ENDING)
            continue;
        msg_put_span(m, span_str(b->name));
        msg_put_u64(m, b->generation);
    }
    (void)chan_commit(w->ledger);
}

/* The parent's words are its own, and go into an answer as they are. */
static void on_none(struct box *b, struct span why)
{
    char words[WHY_MAX + 1];

    (void)snprintf(words, sizeof(words), "%.*s", SPAN_FMT(why));
    warden_tell_started(b->warden, b->asker, NULL, words);
    b->asker = 0;
    box_forget(b);
}

void warden_parent_frame(struct warden *w, struct frame *f)
{
    struct box *b = box_numbered(w, f->id);
    struct msg_in m = msg_in(f->payload);
    unsigned version = f->type == M_BOX_STARTED ? msg_get_u8(&m) : 0;
    struct span why = f->type == M_BOX_NONE ? msg_get_span(&m, WHY_MAX) : SPAN_NONE;

    if (msg_end(&m) != 0 || (f->type != M_BOX_STARTED && f->type != M_BOX_NONE && f->type != M_BOX_GONE))
        log_error("message %u of the parent is not understood", f->type);
    else if (b == NULL)
        log_debug("sandbox %llu is not known any more", (unsigned long long)f->id);
    else if (f->type == M_BOX_STARTED)
        box_started(b, version);
    else if (f->type == M_BOX_NONE)
        on_none(b, why);
    else {
        box_end(b, "its first process ended"); /* if that was not heard yet */
        box_forget(b);
    }
}
