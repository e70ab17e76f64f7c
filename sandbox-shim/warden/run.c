/* The commands of a sandbox. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/msg.h"
#include "sandbox-shim/warden/cell/cell.h"
#include "sandbox-shim/warden/kept.h"
#include "sandbox-shim/warden/record.h"

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

void run_tell_exit(const struct run *r, enum sb_end how, const struct talk *t)
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

void run_free(struct run *r)
{
    for (struct run **at = &r->box->runs; *at != NULL; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            if (r->kept == NULL || !r->kept->ended) {
                r->box->nruns--;
                r->box->used_ms = loop_now(r->box->warden->loop);
            }
            break;
        }
    cell_end(r);
    timer_free(&r->timer);
    record_free(r);
    kept_free(r);
    flow_free(r);
    free(r);
}

void run_say(struct run *r, const struct dynbuf *frame)
{
    if (r->cell != NULL)
        cell_say(r, frame);
    else
        box_say(r->box, frame);
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
        run_say(r, &b); /* which may end the sandbox, and with it r */
    dynbuf_free(&b);
}

static void time_over(void *arg)
{
    struct run *r = arg;

    if (record_waits(r)) {
        record_refuse(r, "the ledger did not write it down in time");
    } else if (r->box->state != BOX_RUNS) { /* it stands still, and nothing in it can end */
        r->due = true;
    } else if (r->killed && r->open > 0) { /* its end may wait behind what nobody reads: no more is told */
        r->most = r->said;
        timer_set(r->timer, RUN_KILL_MS);
        flow_credit(r, r->open); /* which may end the sandbox, and with it r */
    } else if (r->killed && r->cell != NULL) {
        cell_lost(r, r->late ? SB_TIMED_OUT : SB_LOST, "it was killed and did not end; its walls were taken down");
    } else if (r->killed) {
        box_end(r->box, "a command in it was killed and did not end");
    } else {
        r->late = true;
        kill_run(r);
    }
}

static void words_keep(struct run *r, const struct talk_command *c)
{
    for (size_t i = 0; i < c->nargs && !r->more_words; i++) {
        size_t room = sizeof(r->words) - r->nwords, n = c->arg[i].n;
        r->more_words = n >= room;
        if (room == 0)
            return;
        if (r->more_words)
            n = room - 1;
        if (n > 0)
            memcpy(r->words + r->nwords, c->arg[i].p, n);
        r->words[r->nwords + n] = '\0';
        r->nwords += n + 1;
    }
}

static bool says_content(enum talk_file what)
{
    return what == TALK_FILE_READ || what == TALK_FILE_PACK || what == TALK_FILE_WATCH;
}

static struct run *run_new(struct box *b, uint64_t asker, const struct run_order *o)
{
    struct run *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return NULL;
    r->box = b;
    if ((r->timer = timer_new(b->warden->loop, time_over, r)) == NULL || (o->detached && kept_begin(r) != 0)) {
        timer_free(&r->timer);
        free(r);
        return NULL;
    }
    flow_begin(r);
    r->id = ++b->last_run;
    r->asker = asker;
    r->since_ms = loop_now(b->warden->loop);
    r->most = o->most;
    r->input = o->command.input != TALK_NO_INPUT;
    r->terminal = o->command.input == TALK_TERMINAL;
    r->files = o->files.what != TALK_FILE_NONE;
    r->may[0] = says_content(o->files.what) ? o->files.most : FILES_ANSWER_MAX;
    r->may[1] = FILES_WORDS_MAX;
    words_keep(r, &o->command);
    (void)snprintf(r->lane, sizeof(r->lane), "%.*s", SPAN_FMT(o->lane));
    r->next = b->runs;
    b->runs = r;
    b->nruns++;
    return r;
}

const char *run_begin(struct box *b, uint64_t asker, const struct run_order *o)
{
    struct run *r;
    struct dynbuf words;

    if (!box_is_up(b))
        return "the sandbox does not run yet";
    if (b->state != BOX_RUNS)
        return "the sandbox is paused: `countersign sandbox resume` lets it go on";
    if (b->saves)
        return "its files are being kept for a step, or put back; ask again in a moment";
    if (b->nruns >= TALK_RUNS_MAX)
        return "as many commands run in it as may at once";
    if (b->last_run == UINT32_MAX)
        return "it has run all the commands it can; start it anew";
    dynbuf_init(&words, TALK_HEAD + TALK_PAYLOAD_MAX);
    bool files = o->files.what != TALK_FILE_NONE;
    if (files ? talk_put_files(&words, b->last_run + 1, &o->files) != 0
              : talk_put_run(&words, b->last_run + 1, &o->command) != 0) {
        dynbuf_free(&words);
        return files ? "the path is too long, empty, or has a NUL"
                     : "the command cannot be said: it is too long, has a NUL, a variable without a name, or a "
                       "terminal "
                       "without a size";
    }
    const char *why = o->detached ? kept_room(b) : NULL;
    if (why != NULL || (r = run_new(b, asker, o)) == NULL) {
        dynbuf_free(&words);
        return why != NULL ? why : "there is no memory for it";
    }
    if (files) {
        timer_set(r->timer, o->timeout_ms);
        box_say(b, &words);
    } else if ((why = record_begin(r, o, &words, o->detacher)) != NULL) {
        run_free(r);
    }
    dynbuf_free(&words);
    return why;
}

/* --- what is heard of it ----------------------------------------------------------- */

/* What is done with files is the shim's own code, which keeps to what it was asked for: one that says more lies, and
 * who asked would get more than it has room for. */
static bool says_too_much(struct run *r, const struct talk *t)
{
    uint64_t *may = &r->may[t->type == TALK_OUT ? 0 : 1];

    if (!r->files || t->bytes.n <= *may) {
        *may -= r->files ? t->bytes.n : 0;
        return false;
    }
    return true;
}

static int heard_output(struct run *r, const struct talk *t)
{
    struct warden *w = r->box->warden;
    uint32_t n = (uint32_t)t->bytes.n;
    uint64_t most = r->asker != 0 && r->said < r->most ? r->most - r->said : 0;
    size_t said = n < most && w->desk != NULL ? n : w->desk != NULL ? (size_t)most : 0;

    if (n > SB_WINDOW - r->open || says_too_much(r, t))
        return -1;
    r->open += n;
    if (r->kept != NULL) {
        record_said(r, t->type == TALK_OUT ? 0 : 1, t->bytes);
        kept_heard(r, t);
        flow_drop(r, n); /* it goes on, whoever follows it */
        return 0;
    }
    if (said > 0 && flow_put(r, t->type == TALK_OUT ? 0 : 1, span_first(t->bytes, said)) != 0)
        said = 0;
    record_said(r, t->type == TALK_OUT ? 0 : 1, span_first(t->bytes, said));
    r->cut += n - said;
    r->said += said;
    flow_drop(r, n - (uint32_t)said); /* what nobody is told: the command goes on */
    return 0;
}

static int heard_fed(struct run *r, const struct talk *t)
{
    struct warden *w = r->box->warden;
    struct dynbuf *b;

    if (t->fed > r->unfed)
        return -1;
    r->unfed -= t->fed;
    if (r->asker != 0 && w->desk != NULL && (b = chan_begin(w->desk, M_SB_FED, r->asker)) != NULL) {
        msg_put_u32(b, t->fed);
        (void)chan_commit(w->desk);
    }
    return 0;
}

int run_heard(struct box *b, const struct cell *from, const struct talk *t)
{
    static const enum sb_end ends[] = {
        [TALK_EXITED] = SB_EXITED, [TALK_SIGNALLED] = SB_SIGNALLED, [TALK_FAILED] = SB_NOT_STARTED};
    struct run *r = b->runs;

    while (r != NULL &&
           (r->id != t->run || r->cell != from || record_waits(r) || (r->kept != NULL && r->kept->ended)))
        r = r->next;
    if (r == NULL)
        return -1;
    if (t->type != TALK_END)
        return t->type == TALK_FED ? heard_fed(r, t) : heard_output(r, t);
    bool killed =
        t->how == TALK_SIGNALLED && t->code == SIGKILL; /* else it had ended, and its end waited to be read */
    enum sb_end how = r->late && killed ? SB_TIMED_OUT : ends[t->how];
    cell_falls(r);
    record_end(r, how, t);
    if (r->kept != NULL) {
        kept_end(r, how, t);
        return 0;
    }
    flow_tell(r, true);
    run_tell_exit(r, how, t);
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

    if (r != NULL && r->kept != NULL)
        kept_taken(r, bytes);
    else if (r != NULL)
        flow_taken(r, bytes);
}

int run_input(struct warden *w, uint64_t asker, struct span bytes)
{
    struct run *r = asker != 0 ? run_of(w, asker) : NULL;
    struct dynbuf b;

    if (r == NULL) /* it has ended meanwhile */
        return 0;
    if (!r->input || bytes.n > TALK_IN_WINDOW - r->unfed || (bytes.n == 0 && r->terminal))
        return -1;
    r->input = bytes.n > 0;
    r->unfed += (uint32_t)bytes.n;
    dynbuf_init(&b, TALK_HEAD + TALK_IN_WINDOW);
    int rc = talk_put_input(&b, r->id, bytes);
    if (rc == 0)
        rc = record_say(r, &b); /* which may end the sandbox, and with it r */
    dynbuf_free(&b);
    return rc;
}

int run_resize(struct warden *w, uint64_t asker, uint16_t rows, uint16_t columns)
{
    struct run *r = asker != 0 ? run_of(w, asker) : NULL;
    struct dynbuf b;

    if (r == NULL) /* it has ended meanwhile */
        return 0;
    dynbuf_init(&b, 64);
    int rc = r->terminal ? talk_put_size(&b, r->id, rows, columns) : -1;
    if (rc == 0)
        rc = record_say(r, &b); /* which may end the sandbox, and with it r */
    dynbuf_free(&b);
    return rc;
}

int run_tell(struct warden *w, uint64_t asker, unsigned signo)
{
    struct run *r = asker != 0 ? run_of(w, asker) : NULL;
    struct dynbuf b;

    if (r == NULL) /* it has ended meanwhile */
        return 0;
    dynbuf_init(&b, 64);
    int rc = talk_put_signal(&b, r->id, signo);
    if (rc == 0)
        rc = record_say(r, &b); /* which may end the sandbox, and with it r */
    dynbuf_free(&b);
    return rc;
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
    if (r->kept != NULL) {
        r->asker = 0;
        return;
    }
    if (record_waits(r)) { /* the ledger's answer finds nobody */
        run_free(r);
        return;
    }
    uint32_t open = r->open;
    struct box *b = r->box;
    uint32_t id = r->id;
    abandon(r); /* which may be its end */
    for (r = box_is_up(b) ? b->runs : NULL; r != NULL && r->id != id;)
        r = r->next;
    if (r != NULL)
        flow_credit(r, open);
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
        b->pauser = 0;
        if (b->asker != 0 || b->bound)
            box_end(b, "nobody waits for it any more");
    }
}

/* Who was killed has as long to end as if that had come now. */
void runs_go_on(struct box *b)
{
    struct run *next;

    for (struct run *r = b->runs; b->state == BOX_RUNS && r != NULL; r = next) {
        bool due = r->due;
        next = r->next;
        r->due = false;
        if (r->kept != NULL && r->kept->ended)
            continue;
        if (r->killed)
            timer_set(r->timer, RUN_KILL_MS);
        else if (due)
            time_over(r); /* which may end the sandbox, and with it them all */
    }
}

void runs_end(struct box *b, const char *why)
{
    const struct talk nothing = {.why = span_str(why)};

    while (b->runs != NULL) {
        if (record_waits(b->runs)) {
            record_refuse(b->runs, why);
            continue;
        }
        record_end(b->runs, SB_LOST, &nothing);
        flow_tell(b->runs, true);
        run_tell_exit(b->runs, SB_LOST, &nothing);
        run_free(b->runs);
    }
}
