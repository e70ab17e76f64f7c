/* Sandboxes that the warden runs, when they stand still and how long they may run: /api/v1/sandboxes/NAME/pause,
 * resume and timeout. With a pause end the leases of one, and it goes on as another generation: the ledger raises it
 * before the warden is asked, so that nothing of before, nor what was issued meanwhile, is good for what runs then.
 */
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/extras/wire_extras.h"
#include "proxy/msgs.h"
#include "proxy/wire_ticket.h"
#include "web-approval/api/api.h"
#include "web-approval/api/steps.h"
#include "web-approval/idle/idle.h"
#include "web-approval/route.h"

enum { WHY_MAX = 512 };

/* --- what is said ------------------------------------------------------------------ */

static void nobody(struct exchange *x)
{
    reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
}

/* It is as it was asked to be. */
static void reply_so(struct exchange *x, const char *kind, const struct pausing *p)
{
    struct sandbox_row row;
    struct err e;
    struct jsonw w;

    api_started_note(x, kind, x->arg, NULL);
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "name", x->arg);
    jsonw_kv(&w, "state", p->way == PAUSE_NONE ? SPAN("running") : SPAN("paused"));
    jsonw_kv_u64(&w, "generation", p->generation);
    if (p->way != PAUSE_NONE)
        jsonw_kv(&w, "paused_by", span_str(api_paused_by(p->way)));
    if (x->woke && desk_store_sandbox(x->desk->store, x->arg, &x->arena, &row, &e) == 1)
        jsonw_kv_u64(&w, "restored", row.restored); /* so often, its files and not what ran */
    if (x->woke && x->another)
        jsonw_kv_bool(&w, "another_image", true);
    jsonw_end_object(&w);
}

static void is_so(struct exchange *x, const char *kind, const struct pausing *p)
{
    if (p->then)
        p->then(x);
    else
        reply_so(x, kind, p);
}

/* What the warden says of it. SB_PAUSE_NOT also if it says nothing; answered, unless it is SB_PAUSE_DONE. */
static enum sb_paused warden_said(struct exchange *x, struct frame *f, struct pausing *p)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned what = msg_get_u8(&m);

    p->way = msg_get_u8(&m);
    p->generation = msg_get_u64(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    if (msg_end(&m) != 0 || what > SB_PAUSE_NOBODY) {
        reply_problem(x, 503, "Not possible now",
                      "the warden did not answer: `countersign sandbox started` says whether it is paused");
        return SB_PAUSE_NOT;
    }
    if (what == SB_PAUSE_NOBODY)
        nobody(x);
    else if (what == SB_PAUSE_NOT)
        reply_problem(x, 409, "As it was", "the sandbox is as it was: %.*s", SPAN_FMT(why));
    return (enum sb_paused)what;
}

/* --- a pause ------------------------------------------------------------------------ */

static void leases_ended(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) == 0 && ok)
        is_so(x, "sandbox-pause", x->step);
    else if (x->moment)
        reply_problem(
            x, 503, "Not written",
            "the sandbox goes on in a moment, and nothing was done with it: the ledger did not write the end "
            "of its leases down%s%.*s; ask again",
            why.n ? ": " : "", SPAN_FMT(why));
    else
        reply_problem(x, 503, "Not written",
                      "the sandbox is paused, but its leases may live until it goes on: the ledger did not write "
                      "their end down%s%.*s; ask again",
                      why.n ? ": " : "", SPAN_FMT(why));
}

void api_pause_ends_leases(struct exchange *x)
{
    const struct pausing *p = x->step;
    struct dynbuf *b;

    if (!(b = ask_begin(x, ASK_LEDGER, M_SANDBOX_PAUSED, M_SANDBOX_DONE, leases_ended)))
        return;
    msg_put_span(b, x->arg);
    msg_put_u64(b, p->generation);
    ask_send(x);
}

static void paused(struct exchange *x, struct frame *f)
{
    struct pausing *p = x->step;

    if (warden_said(x, f, p) != SB_PAUSE_DONE)
        return;
    idle_look(x->desk);
    if (p->still)
        p->still(x);
    else
        api_pause_ends_leases(x);
}

/* Its name may be one, and there is memory to wait. False: answered. */
static bool begin(struct exchange *x)
{
    if (api_started_name(x) != 0)
        return false;
    struct pausing *p = arena_alloc(&x->arena, sizeof(*p));
    if (!p)
        reply_problem(x, 503, "Not possible now", "no memory");
    else
        *p = (struct pausing){.then = NULL};
    x->step = p;
    return p != NULL;
}

void api_pause_go(struct exchange *x)
{
    struct dynbuf *b = ask_begin(x, ASK_WARDEN, M_SB_PAUSE, M_SB_PAUSED, paused);

    if (!b)
        return;
    msg_put_span(b, x->arg);
    msg_put_u8(b, x->moment);
    ask_send(x);
}

void api_started_pause(struct exchange *x)
{
    if (begin(x))
        api_pause_go(x);
}

/* --- and its end -------------------------------------------------------------------- */

static void resumed(struct exchange *x, struct frame *f)
{
    struct pausing *p = x->step;
    uint64_t given = p->generation;
    enum sb_paused what = warden_said(x, f, p);

    if (what == SB_PAUSE_NOBODY)
        api_started_over(x->desk, x->arg, given);
    if (what == SB_PAUSE_DONE)
        is_so(x, "sandbox-resume", p);
}

static void put_done(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    struct pausing *p = x->step;
    struct sandbox_row row;
    struct err e;
    struct dynbuf *b;

    if (msg_end(&m) != 0 || !ok) {
        reply_problem(x, 503, "Not written",
                      "the sandbox is paused still: the ledger did not write its next generation down%s%.*s",
                      why.n ? ": " : "", SPAN_FMT(why));
        return;
    }
    if (desk_store_sandbox(x->desk->store, x->arg, &x->arena, &row, &e) != 1) {
        reply_problem(x, 503, "Not written", "the ledger's row of the sandbox cannot be read; it is paused still");
        return;
    }
    p->generation = row.generation;
    if (!(b = ask_begin(x, ASK_WARDEN, M_SB_RESUME, M_SB_PAUSED, resumed)))
        return;
    msg_put_span(b, x->arg);
    msg_put_u64(b, p->generation);
    ask_send(x);
}

static void label(struct wire_sandbox *s, struct span key, struct span value)
{
    if (value.n == 0)
        return;
    s->label[s->nlabels].key = key;
    s->label[s->nlabels++].value = value;
}

/* What its files are, and not what they are called, is a label of it, and its lane: policies may name these. */
void api_started_label(struct wire_sandbox *s, const struct wire_box *b)
{
    struct wire_extras e;

    label(s, b->image.n ? SPAN("image") : SPAN("packages"), b->digest);
    label(s, SPAN("lane"), b->lane);
    if (wire_get_extras(b->extras, &e) == 0) {
        label(s, SPAN("task"), e.task);
        label(s, SPAN("residency"), e.residency);
    }
}

/* One that runs keeps its generation: whether it is paused is asked for before. */
static void listed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned n = msg_get_u16(&m);
    bool there = false, still = false;
    struct sandbox_row row;
    struct started one, it = {.way = PAUSE_NONE};
    struct err e;
    struct dynbuf *b;

    for (unsigned i = 0; i < n && !m.bad; i++) {
        api_started_get(&m, &one);
        if (span_eq(one.box.name, x->arg)) {
            there = true;
            it = one;
            still = one.way != PAUSE_NONE;
        }
    }
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now", "the warden does not answer; try again in a moment");
    else if (!there)
        nobody(x);
    else if (!still)
        reply_problem(x, 409, "It runs", "the sandbox is not paused");
    else if (desk_store_sandbox(x->desk->store, x->arg, &x->arena, &row, &e) != 1)
        reply_problem(x, 503, "Not possible now", "the ledger's row of the sandbox cannot be read");
    if (x->status != 0 || !(b = ask_begin(x, ASK_LEDGER, M_SANDBOX_PUT, M_SANDBOX_DONE, put_done)))
        return;
    struct wire_sandbox put = {.name = x->arg,
                               .session = row.session,
                               .kind = SPAN("started"),
                               .owner = row.owner,
                               .tenant = row.tenant,
                               .egress = {it.box.egress_requests, it.box.egress_bytes},
                               .egress_epoch = 1, /* as before, and what was used is used */
                               .generation = 1};
    api_started_label(&put, &it.box);
    wire_put_sandbox(b, &put);
    ask_send(x);
}

/* Two at once would leave it with a generation of before the ledger's. */
static bool resumes_already(const struct exchange *x)
{
    for (size_t i = 0; i < DESK_ASKS; i++) {
        const struct ask *a = &x->desk->asks[i];
        if (a->id != 0 && (a->fn == listed || a->fn == put_done || a->fn == resumed) && span_eq(a->x->arg, x->arg))
            return true;
    }
    return false;
}

void api_resume_go(struct exchange *x)
{
    if (resumes_already(x))
        reply_problem(x, 409, "It goes on", "the sandbox is being resumed");
    else if (ask_begin(x, ASK_WARDEN, M_SB_LIST, M_SB_LISTED, listed))
        ask_send(x);
}

/* One that was idle runs already: it was restored for this. */
void api_started_resume(struct exchange *x)
{
    const struct pausing restored = {.way = PAUSE_NONE, .generation = x->woke};

    if (x->woke)
        reply_so(x, "sandbox-resume", &restored);
    else if (begin(x))
        api_resume_go(x);
}

/* --- its time --------------------------------------------------------------------- */

static void time_set(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool is_so = msg_get_bool(&m);

    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now",
                      "the warden did not answer: `countersign sandbox started` says how long it may run");
    else if (!is_so)
        reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
    else {
        api_started_note(x, "sandbox-timeout", x->arg, NULL);
        reply_empty(x, 204);
    }
}

void api_started_timeout(struct exchange *x)
{
    struct member f[] = {{"timeout", JSON_NUMBER, true, NULL}};
    uint64_t s;
    struct dynbuf *b;

    if (body_members(x, f, 1) != 0 || api_number(x, &f[0], &s, 1, STARTED_LIFE_MAX_S) != 0 ||
        api_started_name(x) != 0 || !(b = ask_begin(x, ASK_WARDEN, M_SB_TIMEOUT, M_SB_TIMEOUT, time_set)))
        return;
    msg_put_span(b, x->arg);
    msg_put_u64(b, s * 1000);
    ask_send(x);
}
