/* The kinds of tasks that there are, the tasks that run, and an end for one of these: /api/v1/tasks,
 * /api/v1/tasks/running and /api/v1/tasks/ID/cancel; and what one left that did not fit, for operators:
 * /api/v1/runs/ID/output. */
#include <stdio.h>

#include "web-approval/route.h"
#include "web-approval/tasks/task.h"

/* --- those that run ------------------------------------------------------------------- */

static struct task *named(const struct desk *d, struct span id)
{
    struct task *t = d->tasks;

    while (t && !span_eq(span_str(t->id), id))
        t = t->next;
    return t;
}

int task_enlist(struct exchange *x, struct task *t, struct span id)
{
    struct desk *d = x->desk;
    char text[ID_TEXT + 1];
    struct id random;

    if (id.n == 0 && id_new(&random) != 0) {
        reply_problem(x, 503, "Not possible now", "the system has no randomness to give");
        return -1;
    }
    if (id.n > 0)
        (void)snprintf(t->id, sizeof(t->id), "%.*s", SPAN_FMT(id));
    else {
        id_text(&random, text);
        (void)snprintf(t->id, sizeof(t->id), "task-%.10s", text);
    }
    if (named(d, span_str(t->id))) {
        reply_problem(x, 409, "It runs", "a task of this id runs: `countersign task cancel %s` ends it", t->id);
        return -1;
    }
    t->x = x;
    t->since_ms = x->now_ms;
    t->next = d->tasks;
    d->tasks = t;
    return 0;
}

void task_delist(struct task *t)
{
    struct task **at = t->x ? &t->x->desk->tasks : NULL;

    while (at && *at && *at != t)
        at = &(*at)->next;
    if (at && *at)
        *at = t->next;
    t->x = NULL;
}

void api_tasks_running(struct exchange *x)
{
    struct jsonw w;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "running");
    for (const struct task *t = x->desk->tasks; t; t = t->next) {
        jsonw_object(&w);
        jsonw_kv(&w, "id", span_str(t->id));
        jsonw_kv(&w, "kind", t->kind->is.kind);
        jsonw_kv(&w, "tenant", t->tenant);
        jsonw_kv(&w, "operator", span_str(t->x->operator));
        jsonw_kv(&w, "sandbox", span_str(t->start.name));
        jsonw_kv_u64(&w, "attempt", t->attempts);
        jsonw_kv_u64(&w, "age_ms", x->now_ms > t->since_ms ? x->now_ms - t->since_ms : 0);
        jsonw_kv(&w, "state", t->ending || t->cancelled ? SPAN("ending") : SPAN("running"));
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
}

void api_task_cancel(struct exchange *x)
{
    struct task *t = named(x->desk, x->arg);

    if (body_members(x, NULL, 0) != 0)
        return;
    if (!t) {
        reply_problem(x, 404, "No such task",
                      "no task of this id runs: `countersign task running` lists those that do");
        return;
    }
    if (t->ending) {
        reply_problem(x, 409, "Too late", "the task is over, and its sandbox is being ended");
        return;
    }
    t->cancelled = true;
    reply_empty(x, 204);
    chore_left(t->x); /* what runs for it, if anything yet, is done; its exchange may be over with this */
}

/* --- what there are ------------------------------------------------------------------- */

static void put_kind(struct jsonw *w, const struct wire_task *is)
{
    jsonw_object(w);
    jsonw_kv(w, "kind", is->kind);
    if (is->ntenants > 0)
        jsonw_kv_array(w, "tenants");
    for (size_t i = 0; i < is->ntenants; i++)
        jsonw_string(w, is->tenant[i]);
    if (is->ntenants > 0)
        jsonw_end_array(w);
    jsonw_kv(w, "image", is->image.n ? is->image : SPAN("host"));
    if (is->lane.n > 0)
        jsonw_kv(w, "lane", is->lane);
    if (is->residency.n > 0)
        jsonw_kv(w, "residency", is->residency);
    jsonw_kv_u64(w, "retries", is->retries);
    jsonw_kv_u64(w, "timeout_ms", is->timeout_ms);
    jsonw_kv_raw(w, "input", is->input);
    jsonw_kv_raw(w, "output", is->output);
    jsonw_end_object(w);
}

void api_tasks(struct exchange *x)
{
    const struct task_kinds *k = &x->desk->kinds;
    struct jsonw w;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "tasks");
    for (size_t i = 0; i < k->n; i++)
        put_kind(&w, &k->now[i]->is);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
}

/* --- what did not fit ----------------------------------------------------------------- */

static void output_came(struct exchange *x, struct frame *f)
{
    const struct digest *sha256 = x->step;
    struct span bytes;

    if (!f)
        reply_problem(x, 503, "Not possible now", "the ledger did not answer; try again in a moment");
    else if (!task_blob_take(f, sha256, &bytes))
        reply_problem(x, 404, "Not kept",
                      "what this task left is not kept, or not any more: what is larger than 300 KiB is not, and the "
                      "rest for 30 days at most");
    if (x->status != 0)
        return;
    reply_empty(x, 200);
    x->type = "application/octet-stream"; /* whatever it says it is: nobody shows it */
    (void)dynbuf_add(&x->out, bytes);
}

void api_run_output(struct exchange *x)
{
    struct digest *sha256 = arena_alloc(&x->arena, sizeof(*sha256));
    struct run_row r;

    if (!sha256 || api_run_find(x, &r) != 0) {
        if (x->status == 0)
            reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    const struct json *what = json_get(json_parse(r.begin, &x->arena), SPAN("what"));
    const struct json *kept = json_get(what, SPAN("output_kept"));
    if (!span_eq(r.what, SPAN("task")) || !kept || !kept->truth || !task_digest_read(what, "output_sha256", sha256)) {
        reply_problem(x, 404, "Not kept", "of this run no output is kept: only what a task left that did not fit is");
        return;
    }
    x->step = sha256;
    api_started_note(x, "task-output", r.sandbox, NULL);
    task_blob_ask(x, r.tenant, sha256, output_came);
}
