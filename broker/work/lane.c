/* What a turn is given: its conversation's identity at the gateway, anew each time the turn is taken, leases for it,
 * and a sandbox for its tools. */
#include <stdio.h>

#include "broker/models/message.h"
#include "broker/work/work.h"
#include "common/json/json.h"
#include "common/log.h"
#include "common/net/loop.h"

enum { START_MS = 300, ENDS_MOST = 400, BOX_LIFE_S = 24 * 3600, LIVE_MORE_S = 600, JSON_MAX = 4096 };

/* --- the lane ------------------------------------------------------------------------- */

static void taken(struct task *t, uint64_t arg, unsigned status, struct span body)
{
    const struct json *j = status == 201 ? json_parse(body, &t->step_arena) : NULL;
    struct span token = json_text(j, SPAN("token"));
    bool ok = token.n > 0 && token.n <= WORK_LANE_MAX;
    if (ok)
        (void)snprintf(t->lane, sizeof(t->lane), "%.*s", SPAN_FMT(token));
    else
        task_why(t, desk_words(t, status, body));
    task_ready(t, ok ? 201 : status == 201 ? 503 : status);
}

/* Who began the conversation, by name: it is theirs, whoever asks for a turn of it, and so is what a turn of it asks
 * for. Empty: a key did. The first message is there since the first turn was taken. */
static enum bstore_result beginner(struct task *t, struct span *by)
{
    const struct span tenant = span_of(t->claim.tenant, t->claim.tenant_n);
    struct bstore_conversations one;
    struct arena a;
    *by = SPAN_NONE;
    arena_init(&a, WORK_STEP_BYTES);
    enum bstore_result r = bstore_lately(t->w->store, tenant, &t->claim.conversation, &a, &one);
    const struct json *j = r == BS_OK ? json_parse(one.row[0].first, &a) : NULL;
    if (j != NULL)
        *by = arena_copy(&t->step_arena, message_by(j));
    arena_free(&a);
    return r == BS_OK && j == NULL ? BS_FAIL : r;
}

void lane_take(struct task *t)
{
    struct span by;
    struct dynbuf b;
    struct jsonw j;
    if (beginner(t, &by) != BS_OK) { /* nobody knows whose it is: no worker begins with it */
        task_why(t, SPAN("the store cannot be read"));
        task_ready(t, 503);
        return;
    }
    dynbuf_init(&b, JSON_MAX);
    jsonw_begin(&j, &b);
    jsonw_object(&j);
    if (by.n > 0)
        jsonw_kv(&j, "owner", by);
    jsonw_end_object(&j);
    struct span json = arena_keep(&t->step_arena, &b);
    desk_ask(t, "POST", arena_printf(&t->step_arena, "/api/v1/conversations/%s/identity", t->conversation),
             json.p != NULL ? json : SPAN("{}"), taken, 0);
}

/* How long its sandbox may be there. That of a live replay ends with its turn; this is for one whose end nobody could
 * ask for. */
static uint64_t life_s(const struct task *t)
{
    uint64_t wall_s = t->found.budget.wall_ms / 1000;
    bool soon = t->found.live.n > 0 && wall_s > 0 && wall_s < BOX_LIFE_S - LIVE_MORE_S;
    return soon ? wall_s + LIVE_MORE_S : BOX_LIFE_S;
}

/* Whether it went or not: the next turn of the conversation ends it, too. */
static void dropped(struct task *t, uint64_t arg, unsigned status, struct span body)
{
    task_finish(t);
}

static void emptied(struct task *t, uint64_t arg, unsigned status, struct span body);

static void box_end(struct task *t)
{
    desk_ask(t, "POST", desk_box(t, "/destroy", SPAN_NONE), SPAN_NONE, emptied, 0);
}

/* Of a replay that was live nothing goes on: its sandbox has ended, or is said to end by its time, and now what waits
 * for a person ends, too, and nothing of it can be approved any more. */
static void emptied(struct task *t, uint64_t arg, unsigned status, struct span body)
{
    struct span title = json_text(json_parse(body, &t->step_arena), SPAN("title"));
    if (status == 409 && span_eq(title, SPAN("It starts")) && t->ends++ < ENDS_MOST) { /* by a worker that was lost */
        timer_set(t->start, START_MS);
        return;
    }
    if (status != 204 && status != 200 && status != 404)
        log_warn("turn %s: the sandbox of a replay was not ended (%u): it ends by its time", t->turn, status);
    desk_ask(t, "DELETE",
             arena_printf(&t->step_arena, "/api/v1/conversations/%s/identity?end_session=1", t->conversation),
             SPAN_NONE, dropped, 0);
}

/* The turn is over, and nothing may be sent for it any more. */
void lane_drop(struct task *t)
{
    if (t->lane[0] == '\0') { /* it was given none, and the desk ends none for who shows none */
        task_finish(t);
        return;
    }
    if (t->found.live.n > 0) {
        t->dropping = true;
        if (!t->starting) /* else once that has an answer: what is ended before it starts runs on */
            box_end(t);
        return;
    }
    desk_ask(t, "DELETE", arena_printf(&t->step_arena, "/api/v1/conversations/%s/identity", t->conversation),
             SPAN_NONE, dropped, 0);
}

/* --- leases --------------------------------------------------------------------------- */

struct wants {
    told_fn *fn;
    uint64_t arg;
    struct span credential;
    struct wants *next; /* of those that wait for the sandbox */
};

/* The one of this credential; or where one may be put, NULL: nowhere. */
static struct task_lease *lease_of(struct task *t, struct span credential)
{
    for (size_t i = 0; i < t->nleases; i++)
        if (span_eq(t->lease[i].credential, credential))
            return &t->lease[i];
    return t->nleases < WORK_LEASES_MAX ? &t->lease[t->nleases] : NULL;
}

static void leased(struct task *t, uint64_t arg, unsigned status, struct span body)
{
    const struct wants *w = (const struct wants *)(uintptr_t)arg;
    const struct json *j = status == 201 ? json_parse(body, &t->step_arena) : NULL;
    struct span lease = json_text(j, SPAN("lease"));
    struct task_lease *l = lease_of(t, w->credential);
    uint64_t expires_ms = 0;
    (void)!json_u64(j, SPAN("expires_ms"), &expires_ms);
    if (lease.n == 0 || lease.n > WORK_LEASE_MAX || l == NULL || expires_ms <= loop_wall(t->w->loop)) {
        w->fn(t, w->arg, status == 201 ? 503 : status, body);
        return;
    }
    if (l == &t->lease[t->nleases]) {
        l->credential = arena_copy(&t->arena, w->credential);
        t->nleases++;
    }
    l->expires_ms = expires_ms;
    (void)snprintf(l->text, sizeof(l->text), "%.*s", SPAN_FMT(lease));
    w->fn(t, w->arg, 200, span_str(l->text));
}

void lease_need(struct task *t, struct span credential, told_fn *fn, uint64_t arg)
{
    struct wants *w = arena_alloc(&t->step_arena, sizeof(*w));
    struct dynbuf b;
    struct jsonw j;
    const struct task_lease *l = lease_of(t, credential);
    if (l != NULL && l != &t->lease[t->nleases] && l->expires_ms > loop_wall(t->w->loop) + WORK_SILENCE_MS) {
        fn(t, arg, 200, span_str(l->text));
        return;
    }
    dynbuf_init(&b, JSON_MAX);
    jsonw_begin(&j, &b);
    jsonw_object(&j);
    jsonw_kv(&j, "credential", credential);
    jsonw_end_object(&j);
    struct span json = arena_keep(&t->step_arena, &b);
    if (w == NULL || json.p == NULL) {
        fn(t, arg, 503, SPAN_NONE);
        return;
    }
    *w = (struct wants){.fn = fn, .arg = arg, .credential = credential};
    desk_ask(t, "POST", arena_printf(&t->step_arena, "/api/v1/conversations/%s/leases", t->conversation), json,
             leased, (uint64_t)(uintptr_t)w);
}

/* --- the sandbox ---------------------------------------------------------------------- */

/* Where several gateways have one store, each has a sandbox of this name: the one that was used last is named with
 * its gateway. */
static void refer(struct task *t, uint64_t generation)
{
    const char *home = t->w->store->home;
    (void)snprintf(t->files_ref, sizeof(t->files_ref), "%s.%llu%s%s", t->box, (unsigned long long)generation,
                   home[0] ? "@" : "", home);
}

/* One that runs here, and the files are those that another gateway's had last. */
static bool is_anothers(const struct task *t)
{
    const char *at = strchr(t->files_ref, '@');
    return t->files_ref[0] != '\0' && strcmp(at != NULL ? at + 1 : "", t->w->store->home) != 0;
}

static void say_started(struct task *t, uint64_t generation)
{
    struct dynbuf b;
    struct jsonw w;
    bool again = t->files_ref[0] != '\0';
    refer(t, generation);
    t->files_lost = again;
    show_begin(&b, &w);
    jsonw_kv(&w, "turn", span_str(t->turn));
    jsonw_kv(&w, "sandbox", span_str(t->box));
    jsonw_kv_bool(&w, "files_lost", again);
    jsonw_end_object(&w);
    show(t, "sandbox.started", &b);
}

/* Those that wait now, as long as the step is the same: what they are told may end it, and them with it, and who
 * comes to wait meanwhile waits for another start. */
static void tell_waiting(struct task *t, unsigned status, struct span body)
{
    uint64_t step = t->step;
    size_t n = 0;
    for (const struct wants *w = t->starts; w != NULL; w = w->next)
        n++;
    for (; n > 0 && t->starts != NULL && t->step == step && !t->over; n--) {
        const struct wants is = *t->starts;
        t->starts = is.next;
        is.fn(t, is.arg, status, body);
    }
    if (t->starts != NULL && !t->starting && t->step == step && !t->over)
        box_start(t);
}

static void started(struct task *t, uint64_t arg, unsigned status, struct span body)
{
    const struct json *j = json_parse(body, &t->step_arena);
    uint64_t generation = 0;
    if (t->dropping) {
        box_end(t);
        return;
    }
    if (status == 409 && span_eq(json_text(j, SPAN("title")), SPAN("It starts"))) { /* by the worker before */
        timer_set(t->start, START_MS);
        return;
    }
    t->starting = false;
    bool runs = status == 409 && span_eq(json_text(j, SPAN("title")), SPAN("It runs"));
    if (status == 201 || status == 200) {
        (void)!json_u64(j, SPAN("generation"), &generation);
        say_started(t, generation);
    } else if (runs && is_anothers(t)) {
        say_started(t, 0);
    } else if (runs && t->files_ref[0] == '\0') { /* started by a worker that was lost before it could say so */
        refer(t, 0);
    }
    t->box_up = status == 201 || status == 200 || runs;
    if (t->box_up)
        status = 200;
    tell_waiting(t, status, body);
}

void box_start(void *arg)
{
    struct task *t = arg;
    if (t->dropping) {
        box_end(t);
        return;
    }
    t->starting = true;
    desk_ask(
        t, "POST", SPAN("/api/v1/sandboxes/start"),
        arena_printf(&t->step_arena, "{\"name\":\"%s\",\"timeout\":%llu}", t->box, (unsigned long long)life_s(t)),
        started, 0);
}

void box_need(struct task *t, told_fn *fn, uint64_t arg)
{
    struct wants *w = arena_alloc(&t->step_arena, sizeof(*w));
    if (w == NULL || t->box_up) {
        fn(t, arg, w == NULL ? 503 : 200, SPAN_NONE);
        return;
    }
    struct wants **last = &t->starts;
    *w = (struct wants){.fn = fn, .arg = arg};
    while (*last != NULL)
        last = &(*last)->next;
    *last = w;
    if (!t->starting) /* the calls of a batch wait for one start */
        box_start(t);
}
