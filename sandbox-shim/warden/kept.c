/* Detached commands: they run whether or not somebody follows them. Of what they say the last is kept, and what falls
 * out of that is counted: who follows one is told so, and never holds it up. */
#include <stdlib.h>
#include <string.h>

#include "common/msg.h"
#include "sandbox-shim/warden/cell/cell.h"
#include "sandbox-shim/warden/kept.h"
#include "sandbox-shim/warden/record.h"

/* --- which are kept ------------------------------------------------------------------ */

/* How many there are, and the first of those that have ended, which is the first to go. */
static size_t kept_count(const struct box *b, struct run **first)
{
    size_t n = 0;

    *first = NULL;
    for (struct run *r = b->runs; r != NULL; r = r->next) {
        n += r->kept != NULL;
        if (r->kept != NULL && r->kept->ended && r->asker == 0)
            *first = r;
    }
    return n;
}

/* Of the sandbox that has the most of them: the first of those that have ended. NULL: all of all run, or are
 * followed. */
static struct run *first_of_most(const struct warden *w)
{
    struct run *first, *found = NULL;
    size_t most = 0;

    for (const struct box *b = w->boxes; b != NULL; b = b->next) {
        size_t n = kept_count(b, &first);
        if (first != NULL && n > most) {
            most = n;
            found = first;
        }
    }
    return found;
}

const char *kept_room(struct box *b)
{
    struct run *first;
    size_t n = kept_count(b, &first);

    if (n < RUNS_KEPT_MAX && b->warden->nkept < WARDEN_KEPT_MAX)
        return NULL;
    if (n < RUNS_KEPT_MAX)
        first = first_of_most(b->warden);
    if (first == NULL && n == 0) /* what others run is nothing that keeps a sandbox from its first */
        return NULL;
    if (first == NULL)
        return n >= RUNS_KEPT_MAX ? "as many detached commands run in it as may at once"
                                  : "as many detached commands run as may in all sandboxes";
    run_free(first);
    return NULL;
}

int kept_begin(struct run *r)
{
    r->kept = calloc(1, sizeof(*r->kept));
    if (r->kept == NULL)
        return -1;
    r->box->warden->nkept++;
    return 0;
}

void kept_free(struct run *r)
{
    if (r->kept == NULL)
        return;
    r->box->warden->nkept--;
    for (int i = 0; i < 2; i++)
        ring_free(&r->kept->out[i]);
    free(r->kept);
    r->kept = NULL;
}

/* --- what is told of one ------------------------------------------------------------- */

static void tell_cut(const struct run *r, int which, uint64_t bytes)
{
    struct warden *w = r->box->warden;
    struct dynbuf *b = bytes > 0 ? chan_begin(w->desk, M_SB_CUT, r->asker) : NULL;

    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)(1 + which));
    msg_put_u64(b, bytes);
    (void)chan_commit(w->desk);
}

/* False: there is none, or no more may be told now. */
static bool tell_piece(struct run *r, int which)
{
    struct warden *w = r->box->warden;
    struct kept *k = r->kept;
    size_t most = SB_WINDOW - k->open;
    uint64_t cut = 0;
    struct dynbuf *b;
    bool small = k->out[which].end - k->at[which] < FLOW_SMALL && !k->ended;

    if (most == 0 || (small && k->open > 0 && r->flow.frames >= FLOW_FRAMES))
        return false;
    struct span s = ring_get(&k->out[which], &k->at[which], most < TALK_PIECE_MAX ? most : TALK_PIECE_MAX, &cut);
    r->cut += cut;
    tell_cut(r, which, cut);
    if (s.n == 0 || (b = chan_begin(w->desk, M_SB_OUTPUT, r->asker)) == NULL)
        return false;
    msg_put_u8(b, (uint8_t)(1 + which));
    (void)dynbuf_add(b, s);
    (void)chan_commit(w->desk);
    k->open += (uint32_t)s.n;
    r->flow.frames++;
    r->said += s.n;
    return true;
}

/* Is something missing before what would be told next? */
static bool has_gap(const struct kept *k)
{
    uint64_t cut = 0;

    for (int i = 0; i < 2; i++) {
        uint64_t at = k->at[i];
        (void)ring_get(&k->out[i], &at, 0, &cut);
    }
    return cut > 0;
}

/* What is missing is told when all that was told before is taken: the desk has one place for it, not a row of them.
 */
void kept_tell(struct run *r)
{
    struct kept *k = r->kept;
    bool more = r->asker != 0 && r->box->warden->desk != NULL && (k->open == 0 || !has_gap(k));

    while (more) {
        more = tell_piece(r, 0);
        more |= tell_piece(r, 1);
    }
    if (r->asker == 0 || !k->ended || k->at[0] < k->out[0].end || k->at[1] < k->out[1].end)
        return;
    run_tell_exit(r, k->how, &k->end);
    r->asker = 0;
}

void kept_heard(struct run *r, const struct talk *t)
{
    int which = t->type == TALK_OUT ? 0 : 1;

    ring_put(&r->kept->out[which], t->bytes);
    if (r->kept->out[which].end - r->kept->at[which] >= FLOW_SMALL) /* else when all is heard that is there */
        kept_tell(r);
}

void kept_end(struct run *r, enum sb_end how, const struct talk *t)
{
    struct kept *k = r->kept;
    size_t n = t->why.n < sizeof(k->why) ? t->why.n : sizeof(k->why);

    k->ended = true;
    k->how = how;
    k->end = *t;
    if (n > 0)
        memcpy(k->why, t->why.p, n);
    k->end.why = span_of(k->why, n);
    cell_end(r); /* which had the bytes of t */
    r->box->nruns--;
    r->box->used_ms = loop_now(r->box->warden->loop);
    timer_clear(r->timer);
    r->flow.owed = 0;
    kept_tell(r);
}

void kept_taken(struct run *r, uint32_t bytes)
{
    r->kept->open -= bytes < r->kept->open ? bytes : r->kept->open;
    r->flow.frames = r->kept->open > 0 ? r->flow.frames : 0;
    kept_tell(r);
}

/* --- what the desk asks of them ---------------------------------------------------------- */

/* Numbers begin anew with each start of a name: the generation says of which start it is. NULL: *what says why. */
static struct run *find(struct warden *w, struct msg_in *m, enum sb_found *what)
{
    struct span name = msg_get_span(m, BOX_NAME_MAX);
    uint64_t generation = msg_get_u64(m);
    uint32_t number = msg_get_u32(m);
    const struct box *b = box_named(w, name);
    struct run *r = b != NULL && b->born == generation ? b->runs : NULL;

    while (r != NULL && r->id != number)
        r = r->next;
    *what = b == NULL               ? SB_FOUND_NOWHERE
            : b->born != generation ? SB_FOUND_OTHER
            : r == NULL             ? SB_FOUND_NONE
                                    : SB_FOUND;
    return r;
}

static void put_row(struct dynbuf *m, const struct run *r, uint64_t now)
{
    const struct kept *k = r->kept;
    bool ended = k != NULL && k->ended;

    msg_put_u32(m, r->id);
    msg_put_u64(m, now - r->since_ms);
    msg_put_u8(m, k != NULL);
    msg_put_u8(m, r->asker != 0);
    msg_put_u8(m, !ended);
    msg_put_u8(m, ended ? (uint8_t)k->how : 0);
    msg_put_u8(m, ended ? (uint8_t)k->end.code : 0);
    msg_put_u8(m, r->more_words);
    msg_put_span(m, span_of(r->words, r->nwords));
}

int kept_list(struct warden *w, struct frame *f)
{
    struct msg_in in = msg_in(f->payload);
    struct span name = msg_get_span(&in, BOX_NAME_MAX);
    struct dynbuf *m = msg_end(&in) == 0 ? chan_begin(w->desk, M_SB_COMMANDS_ARE, f->id) : NULL;
    uint16_t n = 0;

    if (m == NULL)
        return msg_end(&in);
    const struct box *b = box_named(w, name);
    for (const struct run *r = b != NULL ? b->runs : NULL; r != NULL; r = r->next)
        n++;
    msg_put_u8(m, b != NULL);
    msg_put_u64(m, b != NULL ? b->born : 0);
    msg_put_u16(m, n);
    for (const struct run *r = b != NULL ? b->runs : NULL; r != NULL; r = r->next)
        put_row(m, r, loop_now(w->loop));
    (void)chan_commit(w->desk);
    return 0;
}

int kept_attach(struct warden *w, struct frame *f)
{
    struct msg_in in = msg_in(f->payload);
    enum sb_found what;
    struct run *r = find(w, &in, &what);

    if (msg_end(&in) != 0 || f->id == 0)
        return -1;
    const char *why = what == SB_FOUND_NOWHERE ? "no sandbox of this name runs"
                      : what == SB_FOUND_OTHER ? "it is of another start of this sandbox, which has ended"
                      : r == NULL              ? "no such command is there, or any more"
                      : r->kept == NULL        ? "it is not detached, and whoever runs it follows it"
                      : r->asker != 0          ? "somebody follows it already"
                                               : NULL;
    if (why != NULL) {
        run_tell_none(w, f->id, SB_LOST, why);
        return 0;
    }
    r->asker = f->id;
    r->said = r->cut = r->kept->at[0] = r->kept->at[1] = 0;
    r->kept->open = 0;
    r->flow.frames = 0;
    kept_tell(r);
    return 0;
}

/* What is kept of both outputs, and nobody need have read it. */
static void put_output(struct dynbuf *m, const struct ring *out)
{
    uint64_t at = 0, cut = 0;
    struct span first = ring_get(out, &at, RING_MAX, &cut), rest = ring_get(out, &at, RING_MAX, &cut);

    msg_put_u64(m, cut);
    msg_put_u32(m, (uint32_t)(first.n + rest.n)); /* a span of two pieces */
    (void)dynbuf_add(m, first);
    (void)dynbuf_add(m, rest);
}

int kept_log(struct warden *w, struct frame *f)
{
    struct msg_in in = msg_in(f->payload);
    enum sb_found what;
    const struct run *r = find(w, &in, &what);
    struct dynbuf *m = msg_end(&in) == 0 ? chan_begin(w->desk, M_SB_LOG, f->id) : NULL;

    if (m == NULL)
        return msg_end(&in);
    const struct kept *k = r != NULL ? r->kept : NULL;
    bool ended = k != NULL && k->ended;
    msg_put_u8(m, (uint8_t)(r != NULL && k == NULL ? SB_FOUND_NONE : what));
    msg_put_u8(m, !ended);
    msg_put_u8(m, ended ? (uint8_t)k->how : 0);
    msg_put_u8(m, ended ? (uint8_t)k->end.code : 0);
    for (int i = 0; i < 2 && k != NULL; i++)
        put_output(m, &k->out[i]);
    (void)chan_commit(w->desk);
    return 0;
}

int kept_signal(struct warden *w, struct frame *f)
{
    struct msg_in in = msg_in(f->payload);
    enum sb_found what;
    struct run *r = find(w, &in, &what);
    unsigned signo = msg_get_u8(&in);
    struct dynbuf b;

    dynbuf_init(&b, 64);
    if (msg_end(&in) != 0 || talk_put_signal(&b, r != NULL ? r->id : 1, signo) != 0) {
        dynbuf_free(&b);
        return -1;
    }
    if (r != NULL && record_waits(r)) /* nobody has heard of it yet */
        what = SB_FOUND_NONE;
    else if (r != NULL && r->kept != NULL && r->kept->ended)
        what = SB_FOUND_ENDED;
    else if (r != NULL && r->box->state != BOX_RUNS)
        what = SB_FOUND_PAUSED;
    uint8_t found = (uint8_t)what;
    if (what == SB_FOUND)
        run_say(r, &b); /* which may end the sandbox, and with it r */
    dynbuf_free(&b);
    if (w->desk != NULL)
        (void)chan_send(w->desk, M_SB_SIGNALLED, f->id, span_of(&found, 1));
    return 0;
}
