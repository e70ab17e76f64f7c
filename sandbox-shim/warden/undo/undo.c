/* Before a command that is to be undone if need be (a step) the files of its workspace are put into a checkpoint of
 * no name, which costs reading them and writing what is new; to undo it they are put back in place of what is there.
 * So many steps can be undone as there are such checkpoints, the last ones: together they may have no more bytes than
 * the disk of the sandbox, else the first ones go. All of them go with their sandbox; what a warden that was killed
 * left behind the next one has swept (checkpoint_on_list). */
#include "sandbox-shim/warden/undo/undo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/msg.h"
#include "sandbox-shim/warden/checkpoint.h"

enum { STEPS_MAX = 16, WASTE_AGAIN_MS = 2000, WASTE_TRIES = 30, WASTE_LATER_MS = 60 * 1000 };

/* One that can be undone. */
struct step {
    uint32_t number;
    char id[FORM_ID + 1];                         /* of the checkpoint of before it */
    uint64_t at_ms, bytes, added, left_out, list; /* list: bytes, on the disk, of the names of its files */
    size_t nwords;
    char words[RUN_WORDS_MAX]; /* of its command, as of a run */
};

struct steps {
    char tenant[FORM_OWNER_MAX + 1], owner[FORM_OWNER_MAX + 1], reach[FORM_REACH_MAX + 1];
    uint32_t last;   /* no number is given twice */
    uint32_t undone; /* the one that is being undone; 0: none */
    size_t n;
    struct step step[STEPS_MAX]; /* the first one first */
    struct step next;            /* its words, while its files are being kept */
};

/* A checkpoint that is to be removed, or all of a sandbox's steps. */
struct waste {
    struct waste *next;
    enum order_what what;
    unsigned tries;
    uint64_t generation;
    char tenant[FORM_OWNER_MAX + 1], which[BOX_NAME_MAX + 1];
};

static struct {
    struct waste *first; /* it is being removed, if one goes */
    struct timer *timer;
    bool goes;
} wastes;

/* --- what nobody needs any more ------------------------------------------------------- */

/* One at a time: who keeps checkpoints for others is not to wait. */
static void waste_go(struct warden *w)
{
    const struct waste *g = wastes.first;

    if (g == NULL || wastes.goes)
        return;
    const struct order o = {.what = g->what,
                            .name = FORM_OF_UNDO,
                            .tenant = span_str(g->tenant),
                            .which = span_str(g->which),
                            .generation = g->generation};
    wastes.goes = true;
    if (checkpoint_begin(w, 0, NULL, &o) != NULL)
        undo_wasted(w, false);
}

static void again(void *arg)
{
    waste_go(arg);
}

/* One that cannot be removed is not to be in the way of the others. */
static void to_end(void)
{
    struct waste *g = wastes.first, **at = &wastes.first;

    while (*at != NULL)
        at = &(*at)->next;
    *at = g;
    wastes.first = g->next;
    g->next = NULL;
}

void undo_wasted(struct warden *w, bool done)
{
    struct waste *g = wastes.first;

    wastes.goes = false;
    if (g == NULL)
        return;
    if (!done && (wastes.timer != NULL || (wastes.timer = timer_new(w->loop, again, w)) != NULL)) {
        if (++g->tries == WASTE_TRIES)
            log_warn("what was kept of steps of %s could not be removed; it is tried again each minute", g->which);
        timer_set(wastes.timer, g->tries < WASTE_TRIES ? WASTE_AGAIN_MS : WASTE_LATER_MS);
        to_end();
        return;
    }
    if (!done)
        log_warn("what was kept of steps of %s could not be removed; it goes at the gateway's next start", g->which);
    wastes.first = g->next;
    free(g);
    waste_go(w);
}

static void waste_add(struct warden *w, enum order_what what, const char *tenant, const char *which,
                      uint64_t generation)
{
    struct waste **at = &wastes.first, *g = calloc(1, sizeof(*g));

    if (g == NULL) {
        log_warn("what was kept of steps of %s is not removed: no memory; it goes at the gateway's next start",
                 which);
        return;
    }
    g->what = what;
    g->generation = generation;
    (void)snprintf(g->tenant, sizeof(g->tenant), "%s", tenant);
    (void)snprintf(g->which, sizeof(g->which), "%s", which);
    while (*at != NULL)
        at = &(*at)->next;
    *at = g;
    waste_go(w);
}

void undo_box_ends(struct box *b)
{
    if (b->steps != NULL) /* one more may be on the disk than is known of: it was being kept */
        waste_add(b->warden, ORDER_SWEEP, b->steps->tenant, b->name, b->generation);
}

void undo_free(struct box *b)
{
    free(b->steps);
    b->steps = NULL;
}

/* --- those there are -------------------------------------------------------------------- */

bool undo_any(const struct warden *w)
{
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        if (b->steps != NULL && b->state != BOX_ENDING)
            return true;
    return false;
}

/* Step i, and those behind it, cannot be undone any more. */
static void cut_from(struct box *b, size_t i)
{
    struct steps *s = b->steps;

    for (size_t k = i; k < s->n; k++)
        waste_add(b->warden, ORDER_FORGET, s->tenant, s->step[k].id, 0);
    s->n = i;
}

static void drop_first(struct box *b)
{
    struct steps *s = b->steps;

    waste_add(b->warden, ORDER_FORGET, s->tenant, s->step[0].id, 0);
    memmove(&s->step[0], &s->step[1], --s->n * sizeof(s->step[0]));
}

/* About what they need of the disk: all of the first one, and of each other what was new with it; and their lists,
 * which share nothing. */
static bool fit(const struct box *b)
{
    uint64_t left = b->is.disk;

    for (size_t i = 0; i < b->steps->n; i++) {
        const struct step *s = &b->steps->step[i];
        uint64_t more = i == 0 ? s->bytes : s->added;
        if (more > left || s->list > left - more)
            return false;
        left -= more + s->list;
    }
    return true;
}

int undo_kept(struct box *b, struct span head, uint32_t *step)
{
    struct steps *s = b->steps;
    struct msg_in m = msg_in(head);
    struct form_head h;

    if (s == NULL || form_get_head(&m, &h) != 0)
        return -1;
    uint64_t list = msg_get_u64(&m);
    if (msg_end(&m) != 0)
        return -1;
    if (s->n == STEPS_MAX)
        drop_first(b);
    struct step *one = &s->step[s->n++];
    *one = s->next;
    one->number = *step = ++s->last;
    one->at_ms = loop_now(b->warden->loop);
    one->bytes = h.bytes;
    one->added = h.added;
    one->left_out = h.left_out;
    one->list = list;
    (void)snprintf(one->id, sizeof(one->id), "%.*s", SPAN_FMT(h.id));
    while (s->n > 1 && !fit(b))
        drop_first(b);
    return 0;
}

/* number 0: the last one. */
static struct step *step_of(const struct box *b, uint32_t number)
{
    struct steps *s = b->steps;

    for (size_t i = s != NULL ? s->n : 0; i > 0; i--)
        if (number == 0 || s->step[i - 1].number == number)
            return &s->step[i - 1];
    return NULL;
}

void undo_done(struct box *b, enum store_end how)
{
    struct steps *s = b->steps;
    const struct step *one = s != NULL ? step_of(b, s->undone) : NULL;
    char why[64];

    if (one == NULL || s->undone == 0)
        return;
    (void)snprintf(why, sizeof(why),
                   how == STORE_DONE ? "its files are those of before step %u" : "step %u of it could not be undone",
                   (unsigned)s->undone);
    if (how == STORE_DONE)
        cut_from(b, (size_t)(one - s->step));
    s->undone = 0;
    box_note(b, how == STORE_DONE ? "sandbox-undone" : "sandbox-not-undone", why);
}

/* --- what is asked for -------------------------------------------------------------------- */

/* Nothing changes its files but what somebody left running in it: who writes them is in its cgroup, and could do
 * nothing if that stood still. */
static const char *busy(const struct box *b)
{
    if (b == NULL)
        return "no sandbox of this name runs";
    if (!box_is_up(b))
        return "the sandbox does not run yet";
    if (b->state != BOX_RUNS)
        return "the sandbox is paused: `countersign sandbox resume` lets it go on";
    if (b->nruns > 0)
        return "a command runs in the sandbox, or its files are copied: files that change meanwhile are neither kept "
               "nor "
               "put back; wait for its end, or end it (`countersign sandbox ps`, `kill`)";
    return b->saves ? "its files are being kept or put back; ask again in a moment" : NULL;
}

/* which: of one that goes before; or none. */
static const char *keep_go(uint64_t asker, struct box *b, struct span which)
{
    const struct steps *s = b->steps;
    const struct order o = {.what = ORDER_SAVE,
                            .name = FORM_OF_UNDO,
                            .tenant = span_str(s->tenant),
                            .owner = span_str(s->owner),
                            .reach = span_str(s->reach),
                            .which = which,
                            .sandbox = span_str(b->name),
                            .generation = b->generation,
                            .disk = b->is.disk};
    const char *why = checkpoint_begin(b->warden, asker, b, &o);

    b->saves = why == NULL;
    return why;
}

bool undo_makes_room(struct box *b, uint64_t asker)
{
    struct steps *s = b->steps;

    if (s == NULL || s->n == 0)
        return false;
    const struct step first = s->step[0];
    memmove(&s->step[0], &s->step[1], --s->n * sizeof(s->step[0]));
    const char *why = keep_go(asker, b, span_str(first.id));
    if (why != NULL) /* else who keeps it removes that one first, and if it does not, it goes with its sandbox */
        waste_add(b->warden, ORDER_FORGET, s->tenant, first.id, 0);
    return why == NULL;
}

static const char *keep(uint64_t asker, struct box *b, const struct order *o, struct span words)
{
    if (b->steps == NULL && (b->steps = calloc(1, sizeof(*b->steps))) == NULL)
        return "there is no memory for it";
    struct steps *s = b->steps;
    s->next = (struct step){.nwords = words.n};
    if (words.n > 0)
        memcpy(s->next.words, words.p, words.n);
    (void)snprintf(s->tenant, sizeof(s->tenant), "%.*s", SPAN_FMT(o->tenant));
    (void)snprintf(s->owner, sizeof(s->owner), "%.*s", SPAN_FMT(o->owner));
    (void)snprintf(s->reach, sizeof(s->reach), "%.*s", SPAN_FMT(o->reach));
    return keep_go(asker, b, SPAN_NONE);
}

int undo_on_layer(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct order o = {.what = ORDER_SAVE, .name = FORM_OF_UNDO};

    o.sandbox = msg_get_span(&m, BOX_NAME_MAX);
    o.tenant = msg_get_span(&m, FORM_OWNER_MAX);
    o.owner = msg_get_span(&m, FORM_OWNER_MAX);
    o.reach = msg_get_span(&m, FORM_REACH_MAX);
    struct span words = msg_get_span(&m, RUN_WORDS_MAX);
    if (msg_end(&m) != 0 || f->id == 0 || o.tenant.n == 0)
        return -1;
    struct box *b = box_named(w, o.sandbox);
    const char *why = busy(b);
    if (why == NULL && checkpoint_clears(w))
        why = "what a gateway before this one kept of steps is being removed; ask again in a moment";
    if (why == NULL)
        why = keep(f->id, b, &o, words);
    if (why != NULL)
        checkpoint_tell(w, f->id, STORE_REFUSED, span_str(why), SPAN_NONE);
    return 0;
}

int undo_on_undo(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    uint32_t number = msg_get_u32(&m);

    if (msg_end(&m) != 0 || f->id == 0)
        return -1;
    struct box *b = box_named(w, name);
    const struct step *s = b != NULL ? step_of(b, number) : NULL;
    const char *why = busy(b);
    enum store_end how = why == NULL && s == NULL ? STORE_MISSING : STORE_REFUSED;
    if (how == STORE_MISSING)
        why = "no such step of the sandbox can be undone, or any more";
    if (why == NULL) {
        const struct order o = {
            .what = ORDER_LOAD, .name = FORM_OF_UNDO, .tenant = span_str(b->steps->tenant), .which = span_str(s->id)};
        why = checkpoint_begin(w, f->id, b, &o);
        b->saves = why == NULL;
        b->steps->undone = why == NULL ? s->number : 0;
    }
    if (why != NULL)
        checkpoint_tell(w, f->id, how, span_str(why), SPAN_NONE);
    return 0;
}

int undo_on_list(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);

    if (msg_end(&m) != 0)
        return -1;
    const struct box *b = box_named(w, name);
    const struct steps *s = b != NULL && box_is_up(b) ? b->steps : NULL;
    struct dynbuf *out = chan_begin(w->desk, M_SB_LAYERS_ARE, f->id);
    if (out == NULL)
        return 0;
    msg_put_u8(out, b != NULL && box_is_up(b));
    msg_put_u8(out, b != NULL && b->state != BOX_RUNS);
    msg_put_u16(out, b != NULL ? (uint16_t)b->nruns : 0);
    msg_put_u16(out, (uint16_t)(s != NULL ? s->n : 0));
    for (size_t i = s != NULL ? s->n : 0; i > 0; i--) {
        const struct step *one = &s->step[i - 1];
        msg_put_u32(out, one->number);
        msg_put_u64(out, loop_now(w->loop) - one->at_ms);
        msg_put_u64(out, one->bytes);
        msg_put_u64(out, one->added);
        msg_put_u64(out, one->left_out);
        msg_put_span(out, span_str(one->id));
        msg_put_span(out, span_of(one->words, one->nwords));
    }
    (void)chan_commit(w->desk);
    return 0;
}
