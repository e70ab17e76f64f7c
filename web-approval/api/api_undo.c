/* Commands that can be undone, steps: the files of their sandbox are kept before them (exec with `undo`), and
 * /api/v1/sandboxes/NAME/undo puts them back; NAME/steps says which can be. Before, the sandbox becomes its next
 * generation, by way of a pause: what it was given is worth nothing any more, also what of it stands in a file that
 * is there again then. While files are kept or put back no command begins. */
#include <stdio.h>

#include "common/log.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/api/steps.h"
#include "web-approval/idle/idle.h"
#include "web-approval/route.h"

enum { WORDS_MAX = 512 /* of a command; as the warden takes them */ };

/* --- a step begins ------------------------------------------------------------------------ */

/* As many as there is room for, each with a NUL; then a piece of the next. */
static void put_words(struct dynbuf *b, const struct json *argv)
{
    uint8_t words[WORDS_MAX];
    size_t n = 0;

    for (const struct json *a = argv ? argv->child : NULL; a && n < WORDS_MAX; a = a->next) {
        struct span s = span_first(a->text, a->text.n < WORDS_MAX - n - 1 ? a->text.n : WORDS_MAX - n - 1);
        if (s.n > 0)
            memcpy(words + n, s.p, s.n);
        n += s.n;
        words[n++] = '\0';
    }
    msg_put_span(b, span_of(words, n));
}

void api_step_keep(struct exchange *x, const struct json *argv, ask_fn *fn)
{
    struct sandbox_row row;
    struct span reach;
    struct err e;
    struct dynbuf *b;
    int rc = api_started_name(x) == 0 ? desk_store_sandbox(x->desk->store, x->arg, &x->arena, &row, &e) : -1;

    if (x->status != 0)
        return;
    if (rc == 0)
        reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
    else if (rc != 1 || api_checkpoint_reach(x, &row, &reach) != 0)
        reply_problem(x, 503, "Not possible now", "the ledger's row of the sandbox cannot be read");
    if (x->status != 0 || api_checkpoint_place(x) != 0 ||
        !(b = ask_begin(x, ASK_WARDEN, M_SB_LAYER, M_SB_CHECKPOINT, fn)))
        return;
    ask_longer(x, CHECKPOINT_MS);
    msg_put_span(b, x->arg);
    msg_put_span(b, row.tenant);
    msg_put_span(b, row.owner);
    msg_put_span(b, reach);
    put_words(b, argv);
    ask_send(x);
}

int api_step_kept(struct exchange *x, struct frame *f, uint64_t *step)
{
    struct span why, rest;
    enum store_end how = api_checkpoint_heard(f, &why, &rest);
    struct msg_in m = msg_in(rest);

    x->keeps = false;
    *step = msg_get_u32(&m);
    if (how == STORE_DONE && !m.bad && *step != 0)
        return 0;
    api_checkpoint_not_done(x, how == STORE_DONE ? STORE_FAILED : how, "the command was not begun: ", why);
    return -1;
}

/* --- those that can be undone ---------------------------------------------------------------- */

struct step_row {
    uint32_t step;
    uint64_t age_ms, bytes, added, left_out;
    struct span id, words;
};

static void get_row(struct msg_in *m, struct step_row *r)
{
    r->step = msg_get_u32(m);
    r->age_ms = msg_get_u64(m);
    r->bytes = msg_get_u64(m);
    r->added = msg_get_u64(m);
    r->left_out = msg_get_u64(m);
    r->id = msg_get_span(m, FORM_ID);
    r->words = msg_get_span(m, WORDS_MAX);
}

/* What the warden says of a sandbox before its rows. -1, answered: there is none. */
static int get_head(struct exchange *x, struct msg_in *m, bool *still, unsigned *runs, unsigned *n)
{
    bool there = msg_get_bool(m);

    *still = msg_get_bool(m);
    *runs = msg_get_u16(m);
    *n = msg_get_u16(m);
    if (!m->bad && there)
        return 0;
    if (m->bad)
        reply_problem(x, 503, "Not possible now", "the warden does not answer; try again in a moment");
    else
        reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
    return -1;
}

static void put_row(struct jsonw *w, const struct step_row *r)
{
    struct span word, words = r->words;

    jsonw_object(w);
    jsonw_kv_u64(w, "step", r->step);
    jsonw_kv_u64(w, "age_ms", r->age_ms);
    jsonw_kv_u64(w, "bytes", r->bytes);
    jsonw_kv_u64(w, "added", r->added);
    jsonw_kv_u64(w, "left_out", r->left_out);
    jsonw_kv_array(w, "argv");
    while (words.n > 0) {
        (void)span_cut(words, '\0', &word, &words); /* each has one behind it */
        jsonw_string(w, word);
    }
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void listed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct step_row r;
    unsigned runs, n;
    struct jsonw w;
    bool still;

    if (get_head(x, &m, &still, &runs, &n) != 0)
        return;
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "steps");
    for (unsigned i = 0; i < n && !m.bad; i++) {
        get_row(&m, &r);
        if (!m.bad)
            put_row(&w, &r);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now", "the warden did not say which there are; try again in a moment");
}

void api_steps_ask(struct exchange *x, ask_fn *fn)
{
    struct dynbuf *b = ask_begin(x, ASK_WARDEN, M_SB_LAYERS, M_SB_LAYERS_ARE, fn);

    if (!b)
        return;
    msg_put_span(b, x->arg);
    ask_send(x);
}

void api_steps(struct exchange *x)
{
    if (api_started_name(x) == 0)
        api_steps_ask(x, listed);
}

/* The row of a step, or of 0 the last one. -1, answered. */
static int find(struct exchange *x, struct msg_in *m, unsigned n, uint64_t step, struct step_row *found)
{
    struct step_row r;
    bool there = false;

    for (unsigned i = 0; i < n && !m->bad; i++) {
        get_row(m, &r);
        if (!m->bad && !there && (step == 0 || r.step == step)) {
            there = true;
            *found = r;
        }
    }
    if (msg_end(m) == 0 && there)
        return 0;
    if (m->bad)
        reply_problem(x, 503, "Not possible now", "the warden does not answer; try again in a moment");
    else
        reply_problem(x, 404, "No such step", "%s: `countersign sandbox steps %.*s` says which can be undone",
                      step == 0 ? "no step of the sandbox can be undone"
                                : "this step cannot be undone, or not any more",
                      SPAN_FMT(x->arg));
    return -1;
}

int api_step_checkpoint(struct exchange *x, struct frame *f, uint64_t step, struct span *id)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct step_row r;
    unsigned runs, n;
    bool still;

    if (get_head(x, &m, &still, &runs, &n) != 0 || find(x, &m, n, step, &r) != 0)
        return -1;
    *id = arena_copy(&x->arena, r.id);
    if (id->n > 0)
        return 0;
    reply_problem(x, 503, "Not possible now", "no memory");
    return -1;
}

int api_step_take(struct exchange *x, const struct member *given, uint64_t *step)
{
    *step = 0;
    return api_number(x, given, step, 1, UINT32_MAX);
}

/* --- one is undone -------------------------------------------------------------------------- */

struct undoing {
    struct pausing pause; /* the first: x->step is both */
    uint64_t step;
    enum store_end how;
    struct span why;
};

/* At whichever step it ends. */
static void let_go(struct exchange *x)
{
    api_moment_look(x->desk);
    idle_look(x->desk);
}

static void over(struct exchange *x)
{
    const struct undoing *v = x->step;
    struct jsonw w;

    if (v->how != STORE_DONE) {
        api_checkpoint_not_done(x, v->how,
                                v->how == STORE_FAILED
                                    ? "the step is not undone, and files of the sandbox may be missing until it is: "
                                    : "the step is not undone: ",
                                v->why);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "name", x->arg);
    jsonw_kv_u64(&w, "step", v->step);
    jsonw_kv(&w, "state", SPAN("running"));
    jsonw_kv_u64(&w, "generation", v->pause.generation);
    jsonw_end_object(&w);
}

static void note(struct exchange *x, uint64_t step)
{
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, 1024);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "operator", span_str(x->operator));
    jsonw_kv(&w, "sandbox", x->arg);
    jsonw_kv_u64(&w, "step", step);
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        ask_note(x->desk, "sandbox-undo", dynbuf_span(&b));
    else
        log_error("the audit misses an operator's act (sandbox-undo): no memory");
    dynbuf_free(&b);
}

static void put_back(struct exchange *x, struct frame *f)
{
    struct undoing *v = x->step;
    struct span rest;

    v->how = api_checkpoint_heard(f, &v->why, &rest);
    over(x);
}

/* It runs again, as what nothing of before is good for. */
static void renewed(struct exchange *x)
{
    const struct undoing *v = x->step;
    struct dynbuf *b;

    note(x, v->step); /* written down as asked for: what came of it the warden says */
    if (!(b = ask_begin(x, ASK_WARDEN, M_SB_UNDO, M_SB_CHECKPOINT, put_back)))
        return;
    ask_longer(x, CHECKPOINT_MS);
    msg_put_span(b, x->arg);
    msg_put_u32(b, (uint32_t)v->step);
    ask_send(x);
}

/* Its leases are dead. */
static void paused(struct exchange *x)
{
    struct undoing *v = x->step;

    v->pause.then = renewed;
    api_resume_go(x);
}

static void at_work(struct exchange *x)
{
    reply_problem(x, 409, "It is at work",
                  "a command runs in the sandbox, or its files are copied: wait for the end of that, or end it "
                  "(`countersign sandbox ps %.*s`, `kill`)",
                  SPAN_FMT(x->arg));
}

/* What began meanwhile hinders it, and then no lease is to end for nothing. */
static void looked_again(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    const struct undoing *v = x->step;
    struct step_row r;
    unsigned runs, n;
    bool still;

    if (get_head(x, &m, &still, &runs, &n) != 0)
        return;
    if (runs > 0)
        at_work(x);
    else if (find(x, &m, n, v->step, &r) == 0)
        api_pause_ends_leases(x);
}

static void stands_still(struct exchange *x)
{
    api_steps_ask(x, looked_again);
}

static void looked(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct undoing *v = x->step;
    struct step_row r;
    unsigned runs, n;
    bool still;

    if (get_head(x, &m, &still, &runs, &n) != 0)
        return;
    if (still)
        reply_problem(
            x, 409, "It is paused",
            "the sandbox is paused: `countersign sandbox resume %.*s` lets it go on, and then a step can be "
            "undone",
            SPAN_FMT(x->arg));
    else if (runs > 0)
        at_work(x);
    else if (find(x, &m, n, v->step, &r) == 0) {
        v->step = r.step;
        x->moment = true;
        api_pause_go(x);
    }
}

void api_undo(struct exchange *x)
{
    struct member f[] = {{"step", JSON_NUMBER, false, NULL}};
    struct undoing *v = arena_alloc(&x->arena, sizeof(*v));
    uint64_t step;

    if (body_members(x, f, 1) != 0 || api_step_take(x, &f[0], &step) != 0 || api_started_name(x) != 0 ||
        api_checkpoint_place(x) != 0)
        return;
    if (!v) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    *v = (struct undoing){.pause = {.then = paused, .still = stands_still}, .step = step};
    x->step = v;
    x->over = let_go;
    api_steps_ask(x, looked);
}
