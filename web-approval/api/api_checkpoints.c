/* Checkpoints: /api/v1/sandboxes/NAME/snapshot and fork, /api/v1/checkpoints. The files of a sandbox are read while
 * it stands still, and it goes on as its next generation: what it was given before is worth nothing any more, also
 * what of it stands in a file. */
#include <stdio.h>

#include "common/log.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "proxy/reach/reach.h"
#include "web-approval/api/steps.h"
#include "web-approval/dock.h"
#include "web-approval/idle/idle.h"
#include "web-approval/route.h"

enum { WHY_MAX = 1024, NOTE_MAX = 4096 };

/* One whose files become a checkpoint. */
struct snapping {
    struct pausing pause; /* the first: x->step is both */
    struct span name;     /* of the checkpoint; empty: none */
    bool ran;             /* and goes on */
    bool asked;           /* who keeps it was */
    enum store_end how;
    struct span why, head; /* in the arena */
    bool forks;
    bool of_step; /* with the files of before a step: none are read then */
    uint64_t step;
    struct starting start; /* of a fork */
};

/* --- whose ------------------------------------------------------------------------------ */

struct span api_tenant(const struct exchange *x)
{
    return x->place == PLACE_DOCK ? span_str(x->caller.tenant) : SPAN("default");
}

/* Each may take long: no tenant of the dock's has them all, and operators have some that nobody else gets. */
static bool has_place(const struct exchange *x, unsigned *tenants)
{
    unsigned all = 0, own = 0;

    for (size_t i = 0; i < DESK_ASKS; i++) {
        const struct exchange *o = x->desk->asks[i].id != 0 ? x->desk->asks[i].x : NULL;
        if (o == NULL || !o->keeps || o->place != PLACE_DOCK)
            continue;
        all++;
        own += span_eq(span_str(o->caller.tenant), span_str(x->caller.tenant));
    }
    *tenants = own;
    return x->place != PLACE_DOCK || (own < DOCK_TENANT_STORES && all < DOCK_STORES);
}

bool api_checkpoint_has_place(const struct exchange *x)
{
    unsigned own;

    return has_place(x, &own);
}

int api_checkpoint_place(struct exchange *x)
{
    unsigned own;

    x->keeps = has_place(x, &own);
    if (x->keeps)
        return 0;
    reply_problem(x, 429, "Too many", "as much is done with checkpoints as may be at once, %u of it of this tenant's",
                  own);
    return -1;
}

/* --- words ------------------------------------------------------------------------------ */

int api_checkpoint_named(struct exchange *x, const struct json *given, struct span *to)
{
    *to = given ? given->text : SPAN_NONE;
    if (!given || form_is_id(*to) || form_is_name(*to))
        return 0;
    reply_problem(x, 400, "Bad request", "that is neither the id of a checkpoint (ck-...) nor its name");
    return -1;
}

void api_checkpoint_note(struct exchange *x, const char *kind, struct span sandbox, struct span checkpoint)
{
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, NOTE_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "operator", span_str(x->operator));
    if (sandbox.n > 0)
        jsonw_kv(&w, "sandbox", sandbox);
    jsonw_kv(&w, "checkpoint", checkpoint);
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        ask_note(x->desk, kind, dynbuf_span(&b));
    else
        log_error("the audit misses an operator's act (%s): no memory", kind);
    dynbuf_free(&b);
}

void api_checkpoint_not_done(struct exchange *x, enum store_end how, const char *before, struct span why)
{
    static const struct {
        unsigned status;
        const char *title;
    } words[STORE_ENDS] = {[STORE_FAILED] = {503, "Not done"},
                           [STORE_MISSING] = {404, "No such checkpoint"},
                           [STORE_TAKEN] = {409, "Name taken"},
                           [STORE_REFUSED] = {409, "Not done"},
                           [STORE_FULL] = {507, "Full"}};

    reply_problem(x, words[how].status, words[how].title, "%s%.*s", before, SPAN_FMT(why));
}

static void not_done(struct exchange *x, enum store_end how, struct span why)
{
    api_checkpoint_not_done(x, how, "", why);
}

static void put_head(struct jsonw *w, const struct form_head *h)
{
    jsonw_kv(w, "id", h->id);
    if (h->name.n > 0)
        jsonw_kv(w, "name", h->name);
    jsonw_kv(w, "sandbox", h->sandbox);
    jsonw_kv_u64(w, "generation", h->generation);
    jsonw_kv(w, "owner", h->owner);
    jsonw_kv_u64(w, "created_ms", h->created_ms);
    jsonw_kv_u64(w, "files", h->files);
    jsonw_kv_u64(w, "folders", h->folders);
    jsonw_kv_u64(w, "links", h->links);
    jsonw_kv_u64(w, "left_out", h->left_out);
    jsonw_kv_u64(w, "bytes", h->bytes);
    jsonw_kv_u64(w, "added", h->added);
}

enum store_end api_checkpoint_heard(struct frame *f, struct span *why, struct span *rest)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned how = msg_get_u8(&m);

    *why = msg_get_span(&m, WHY_MAX);
    *rest = msg_get_span(&m, CHAN_PAYLOAD_MAX);
    if (msg_end(&m) == 0 && how < STORE_ENDS)
        return (enum store_end)how;
    *why = SPAN("the warden did not say what became of it; `countersign checkpoint list` says which there are");
    *rest = SPAN_NONE;
    return STORE_FAILED;
}

static struct span keep(struct exchange *x, struct span s)
{
    uint8_t *p = s.n > 0 ? arena_alloc(&x->arena, s.n) : NULL;

    if (!p)
        return SPAN_NONE;
    memcpy(p, s.p, s.n);
    return span_of(p, s.n);
}

/* --- a snapshot --------------------------------------------------------------------------- */

void api_checkpoint_tell(struct desk *d, enum order_what what, struct span tenant, struct span which)
{
    struct dynbuf *b = d->warden ? chan_begin(d->warden, M_SB_CHECKPOINTS, ++d->last_id) : NULL;

    if (!b)
        return;
    msg_put_u8(b, (uint8_t)what);
    msg_put_span(b, tenant);
    msg_put_span(b, which);
    (void)chan_commit(d->warden);
}

/* At whichever step it ends. Once a fork is asked for, who waits for that forgets what it is made of. */
static void let_go(struct exchange *x)
{
    const struct snapping *v = x->holds;
    struct msg_in m = msg_in(v->head);
    struct form_head h;

    if (v->forks && !v->of_step && v->how == STORE_DONE && !v->start.asked && form_get_head(&m, &h) == 0)
        api_checkpoint_forget(x->desk, v->start.tenant, h.id);
    /* Who kept it may have been killed: what is half written goes, and what of a fork was whole just before. Neither
     * looks into a checkpoint store. */
    if (v->asked && v->how != STORE_DONE)
        api_checkpoint_tell(x->desk, v->forks ? ORDER_SWEEP : ORDER_IDLE, v->start.tenant,
                            v->forks ? x->arg : SPAN_NONE);
    api_moment_look(x->desk);
    idle_look(x->desk); /* it may have been due meanwhile */
}

/* It goes on, or stands still as before. */
static void over(struct exchange *x)
{
    struct snapping *v = x->step;
    struct msg_in m = msg_in(v->head);
    struct form_head h;
    struct jsonw w;

    if (v->of_step && v->how == STORE_DONE) {
        api_checkpoint_note(x, "sandbox-fork", x->arg, v->start.from);
        v->start.of_step = true;
        x->step = &v->start;
        api_checkpoint_look(x);
        return;
    }
    if (v->how != STORE_DONE || form_get_head(&m, &h) != 0) {
        not_done(x, v->how == STORE_DONE ? STORE_FAILED : v->how, v->why);
        return;
    }
    if (v->forks) {
        v->start.from = v->start.found = h.id;
        v->start.borrows = true;
        x->step = &v->start;
        if (api_reach_narrow(x, &v->start, h.reach) == 0)
            api_start_go(x);
        return;
    }
    reply_json(x, 201, &w);
    jsonw_object(&w);
    put_head(&w, &h);
    jsonw_kv(&w, "state", v->ran ? SPAN("running") : SPAN("paused"));
    jsonw_kv_u64(&w, "sandbox_generation", v->pause.generation);
    jsonw_end_object(&w);
}

static void go_on(struct exchange *x)
{
    struct snapping *v = x->step;

    v->pause.then = over;
    if (v->ran)
        api_resume_go(x);
    else
        over(x);
}

static void taken(struct exchange *x, struct frame *f)
{
    struct snapping *v = x->step;
    struct span why, head;
    struct form_head h;

    v->how = api_checkpoint_heard(f, &why, &head);
    v->why = keep(x, why);
    v->head = keep(x, head);
    struct msg_in m = msg_in(v->head);
    if (v->how == STORE_DONE && form_get_head(&m, &h) == 0)
        api_checkpoint_note(x, v->forks ? "sandbox-fork" : "sandbox-snapshot", x->arg, h.id);
    go_on(x);
}

/* Of one that the dock started without a network nothing, also where its row is
 * older than such words. */
int api_checkpoint_reach(struct exchange *x, const struct sandbox_row *row, struct span *reach)
{
    struct span note;
    struct err e;

    if (dock_note(x, row->name, &note, &e) != 0)
        return -1;
    const struct json *said = note.n > 0 ? json_parse(note, &x->arena) : NULL;
    bool nothing = note.n > 0 && (!said || json_get(said, SPAN("alone")));
    *reach = nothing ? REACH_NOTHING : row->reach;
    return 0;
}

/* Nothing in it runs, and its leases are dead. */
static void paused(struct exchange *x)
{
    struct snapping *v = x->step;
    struct sandbox_row row;
    struct span reach;
    struct err e;
    struct dynbuf *b;

    if (desk_store_sandbox(x->desk->store, x->arg, &x->arena, &row, &e) != 1 ||
        api_checkpoint_reach(x, &row, &reach) != 0) {
        v->how = STORE_FAILED;
        v->why = SPAN("the ledger's row of the sandbox cannot be read");
        go_on(x);
        return;
    }
    v->start.tenant = row.tenant; /* a fork is of the same, and so are its mounts */
    if (v->start.box.extras.n > 0 && api_extras_again(x, &v->start) != 0)
        return;
    if (v->of_step) {
        v->how = STORE_DONE;
        go_on(x);
        return;
    }
    if (!(b = ask_begin(x, ASK_WARDEN, M_SB_SNAPSHOT, M_SB_CHECKPOINT, taken)))
        return;
    ask_longer(x, CHECKPOINT_MS);
    msg_put_span(b, x->arg);
    msg_put_span(b, row.tenant);
    msg_put_span(b, row.owner);
    msg_put_span(b, v->name);
    msg_put_span(b, reach);
    v->asked = true;
    ask_send(x);
}

/* As that one, of the image that it has, whatever its name means by now. */
static void start_alike(struct starting *s, const struct wire_box *is)
{
    (void)snprintf(s->image, sizeof(s->image), "%.*s", SPAN_FMT(is->image));
    (void)snprintf(s->digest, sizeof(s->digest), "%.*s", SPAN_FMT(is->digest));
    s->box = (struct wire_box){.name = s->box.name,
                               .memory = is->memory,
                               .pids = is->pids,
                               .disk = is->disk,
                               .files = is->files,
                               .idle_ms = is->idle_ms,
                               .egress_requests = is->egress_requests,
                               .egress_bytes = is->egress_bytes,
                               .image = span_str(s->image),
                               .digest = span_str(s->digest),
                               .lane = span_str(s->lane),
                               .extras = s->box.extras};
}

/* A fork with the files of before a step has them from where they are kept; leases that stand in one die as well. */
static void stepped(struct exchange *x, struct frame *f)
{
    struct snapping *v = x->step;

    if (api_step_checkpoint(x, f, v->step, &v->start.from) == 0)
        api_pause_go(x);
}

static void listed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned n = msg_get_u16(&m);
    struct snapping *v = x->step;
    struct started one;
    bool there = false, taken = false;

    for (unsigned i = 0; i < n && !m.bad; i++) {
        api_started_get(&m, &one);
        taken |= v->forks && span_eq(one.box.name, v->start.box.name);
        if (!span_eq(one.box.name, x->arg))
            continue;
        there = true;
        v->ran = one.way == PAUSE_NONE;
        start_alike(&v->start, &one.box);
    }
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now", "the warden does not answer; try again in a moment");
    else if (!there)
        reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
    else if (taken)
        reply_problem(x, 409, "It runs", "a sandbox of the fork's name runs");
    else if (v->of_step)
        api_steps_ask(x, stepped);
    else
        api_pause_go(x);
}

static struct snapping *begin(struct exchange *x)
{
    struct snapping *v = arena_alloc(&x->arena, sizeof(*v));

    if (api_checkpoint_place(x) != 0)
        return NULL;
    if (!v) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return NULL;
    }
    *v = (struct snapping){.pause = {.then = paused}};
    x->step = x->holds = v;
    x->moment = true;
    x->over = let_go;
    return v;
}

void api_snapshot(struct exchange *x)
{
    struct member f[] = {{"name", JSON_STRING, false, NULL}};
    struct snapping *v;

    if (body_members(x, f, 1) != 0 || api_started_name(x) != 0 || !(v = begin(x)))
        return;
    v->name = f[0].value ? f[0].value->text : SPAN_NONE;
    if (f[0].value && !form_is_name(v->name))
        reply_problem(x, 400, "Bad request",
                      "a checkpoint's name has 1 to %d of a-z 0-9 - . _, begins with a letter or digit, and not with "
                      "ck-",
                      FORM_NAME_MAX);
    else if (ask_begin(x, ASK_WARDEN, M_SB_LIST, M_SB_LISTED, listed))
        ask_send(x);
}

/* --- one that is begun with ----------------------------------------------------------------- */

void api_checkpoint_look(struct exchange *x)
{
    const struct starting *s = x->step;
    struct dynbuf *b = ask_begin(x, ASK_WARDEN, M_SB_CHECKPOINTS, M_SB_CHECKPOINT, api_checkpoint_looked);

    if (!b)
        return;
    ask_longer(x, CHECKPOINT_MS);
    msg_put_u8(b, s->of_step ? ORDER_LOOK_STEP : ORDER_LOOK);
    msg_put_span(b, s->tenant);
    msg_put_span(b, s->from);
    ask_send(x);
}

void api_checkpoint_looked(struct exchange *x, struct frame *f)
{
    struct starting *s = x->step;
    struct span why, rest;
    enum store_end how = api_checkpoint_heard(f, &why, &rest);
    struct msg_in m = msg_in(rest);
    struct form_head h;

    if (how != STORE_DONE || form_get_head(&m, &h) != 0 || msg_end(&m) != 0) {
        not_done(x, how == STORE_DONE ? STORE_FAILED : how, why);
        return;
    }
    s->found = keep(x, h.id);
    if (s->found.n == 0)
        reply_problem(x, 503, "Not possible now", "no memory");
    else if (api_reach_narrow(x, s, h.reach) == 0)
        api_start_go(x);
}

/* --- a fork --------------------------------------------------------------------------------- */

void api_fork(struct exchange *x)
{
    struct member f[] = {{"name", JSON_STRING, false, NULL},   {"session", JSON_STRING, false, NULL},
                         {"limits", JSON_STRING, false, NULL}, {"timeout", JSON_NUMBER, false, NULL},
                         {"lane", JSON_STRING, false, NULL},   {"mounts", JSON_ARRAY, false, NULL},
                         {"step", JSON_NUMBER, false, NULL}};
    struct snapping *v;

    if (body_members(x, f, 7) != 0 || api_started_name(x) != 0 || !(v = begin(x)))
        return;
    v->forks = true;
    v->name = FORM_OF_FORK;
    api_start_begin(x->desk, &v->start);
    if (api_start_take(x, &v->start, &f[0], &f[1], &f[2], &f[3]) != 0 || api_lane_take(x, &v->start, &f[4]) != 0 ||
        api_mounts_take(x, &v->start, &f[5]) != 0 || api_step_take(x, &f[6], &v->step) != 0)
        return;
    v->of_step = f[6].value != NULL;
    if (span_eq(v->start.box.name, x->arg))
        reply_problem(x, 409, "It runs", "a fork is another sandbox: it needs a name of its own");
    else if (ask_begin(x, ASK_WARDEN, M_SB_LIST, M_SB_LISTED, listed))
        ask_send(x);
}

/* --- which there are -------------------------------------------------------------------------- */

static void put_list(struct exchange *x, struct frame *f)
{
    struct span why, rest;
    enum store_end how = api_checkpoint_heard(f, &why, &rest);
    struct msg_in m = msg_in(rest);
    struct form_head h;
    struct jsonw w;

    if (how != STORE_DONE) {
        not_done(x, how, why);
        return;
    }
    bool more = msg_get_bool(&m);
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "checkpoints");
    while (m.rest.n > 0 && form_get_head(&m, &h) == 0) {
        jsonw_object(&w);
        put_head(&w, &h);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_kv_bool(&w, "more", more);
    jsonw_end_object(&w);
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now", "what was said of the checkpoints cannot be read");
}

/* An operator may say whose are meant; of a caller of the dock its key says that. -1, answered. */
static int whose(struct exchange *x, struct span *tenant)
{
    struct span given = SPAN_NONE;

    *tenant = api_tenant(x);
    if (x->place != PLACE_DOCK && query_field(x, "tenant", &given) != 0)
        return -1;
    if (given.n > 0)
        *tenant = given;
    if (given.n <= CALLER_TENANT)
        return 0;
    reply_problem(x, 400, "Bad request", "a tenant's name has at most %d bytes", CALLER_TENANT);
    return -1;
}

static void ask(struct exchange *x, enum order_what what, struct span which, ask_fn *fn)
{
    struct span tenant;
    struct dynbuf *b;

    if (whose(x, &tenant) != 0 || api_checkpoint_place(x) != 0 ||
        !(b = ask_begin(x, ASK_WARDEN, M_SB_CHECKPOINTS, M_SB_CHECKPOINT, fn)))
        return;
    ask_longer(x, CHECKPOINT_MS);
    msg_put_u8(b, (uint8_t)what);
    msg_put_span(b, tenant);
    msg_put_span(b, which);
    ask_send(x);
}

void api_checkpoint_forget(struct desk *d, struct span tenant, struct span id)
{
    struct dynbuf *b = d->warden ? chan_begin(d->warden, M_SB_CHECKPOINTS, ++d->last_id) : NULL;

    if (!b)
        return; /* it is listed, and can be removed */
    msg_put_u8(b, ORDER_FORGET);
    msg_put_span(b, tenant);
    msg_put_span(b, id);
    (void)chan_commit(d->warden);
}

/* Nothing of before this desk is on its way. */
void api_checkpoints_sweep(struct desk *d)
{
    api_checkpoint_tell(d, ORDER_SWEEP, SPAN("default"), SPAN_NONE);
}

void api_checkpoints(struct exchange *x)
{
    struct span after;

    if (query_field(x, "after", &after) != 0)
        return;
    if (after.n > 0 && !form_is_id(after))
        reply_problem(x, 400, "Bad request", "`after` is the id of a checkpoint");
    else
        ask(x, ORDER_LIST, after, put_list);
}

static void removed(struct exchange *x, struct frame *f)
{
    struct span why, rest;
    enum store_end how = api_checkpoint_heard(f, &why, &rest);

    if (how != STORE_DONE) {
        not_done(x, how, why);
        return;
    }
    struct msg_in m = msg_in(rest);
    api_checkpoint_note(x, "checkpoint-rm", SPAN_NONE, msg_get_span(&m, FORM_ID));
    reply_empty(x, 204);
}

void api_checkpoint_remove(struct exchange *x)
{
    if (form_is_id(x->arg) || form_is_name(x->arg))
        ask(x, ORDER_REMOVE, x->arg, removed);
    else
        reply_problem(x, 404, "No such checkpoint", ORDER_NO_SUCH);
}
