/* /api/v1/runs: what ran in started sandboxes, with the records of the audit that say so. */
#include "common/msg.h"
#include "web-approval/api/api.h"
#include "web-approval/route.h"

enum { RUNS_PAGE = 50 /* in one answer, each with two records of some KiB */ };

struct found {
    struct run_row row[RUNS_PAGE];
    size_t n;
};

static int found_row(void *ctx, const struct run_row *r)
{
    struct found *f = ctx;

    f->row[f->n++] = *r;
    return f->n == RUNS_PAGE;
}

/* --- what it sent --------------------------------------------------------------- */

static void put_names(struct jsonw *w, const char *key, const struct span *name, size_t n)
{
    jsonw_kv_array(w, key);
    for (size_t i = 0; i < n; i++)
        jsonw_string(w, name[i]);
    jsonw_end_array(w);
}

/* By its step, which is its own as long as anything that it started goes on. */
static int put_effects(struct exchange *x, struct jsonw *w, const struct run_row *r, struct err *err)
{
    struct run_effects e;

    if (!span_eq(r->what, SPAN("command")))
        return 0;
    if (desk_store_effects(x->desk->store, r->id, &x->arena, &e, err) != 0)
        return -1;
    jsonw_kv_object(w, "effects");
    jsonw_kv_u64(w, "requests", e.requests);
    jsonw_kv_u64(w, "refused", e.refused);
    jsonw_kv_u64(w, "bytes_out", e.bytes_out);
    jsonw_kv_u64(w, "bytes_in", e.bytes_in);
    put_names(w, "exchanges", e.exchange, e.n);
    jsonw_kv_bool(w, "more", e.requests > e.n || e.sent > e.n);
    put_names(w, "leases", e.lease, e.nleases);
    jsonw_end_object(w);
    return 0;
}

/* --- one ------------------------------------------------------------------------ */

/* As a string: its bytes are what the chain covers. */
static void put_record(struct jsonw *w, const char *key, const char *hash_key, struct span json, struct span hash)
{
    char hex[2 * DIGEST_BYTES + 1];

    if (hash.n != DIGEST_BYTES)
        return;
    hex_text(hash, hex);
    jsonw_kv(w, key, json);
    jsonw_kv(w, hash_key, span_str(hex));
}

static int put_run(struct exchange *x, struct jsonw *w, const struct run_row *r, bool effects, struct err *e)
{
    jsonw_object(w);
    jsonw_kv(w, "id", r->id);
    jsonw_kv(w, "what", r->what);
    jsonw_kv(w, "sandbox", r->sandbox);
    jsonw_kv(w, "tenant", r->tenant);
    jsonw_kv_u64(w, "generation", r->generation);
    if (r->command.n)
        jsonw_kv(w, "command", r->command);
    jsonw_kv(w, "state", r->state);
    jsonw_kv_u64(w, "began_ms", r->began_ms);
    jsonw_kv_u64(w, "ended_ms", r->ended_ms);
    jsonw_kv_u64(w, "begin_seq", r->begin_seq);
    jsonw_kv_u64(w, "end_seq", r->end_seq);
    put_record(w, "begin", "begin_hash", r->begin, r->begin_hash);
    put_record(w, "end", "end_hash", r->end, r->end_hash);
    int rc = effects ? put_effects(x, w, r, e) : 0;
    jsonw_end_object(w);
    return rc;
}

static struct found *find(struct exchange *x, const struct run_filter *f)
{
    struct found *found = arena_alloc(&x->arena, sizeof(*found));
    struct err e = {"no memory"};

    if (found)
        found->n = 0;
    if (!found || desk_store_runs(x->desk->store, f, &x->arena, found_row, found, &e) != 0) {
        reply_unable(x, &e);
        return NULL;
    }
    return found;
}

static bool number_of(struct exchange *x, const char *name, uint64_t max, uint64_t *out)
{
    return api_query_number(x, name, max, out) == 0;
}

static void put_runs(struct exchange *x, const struct run_filter *f, bool effects)
{
    const struct found *found = find(x, f);
    struct jsonw w;
    struct err e;
    int rc = 0;

    if (!found)
        return;
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "runs");
    for (size_t i = 0; i < found->n && rc == 0; i++)
        rc = put_run(x, &w, &found->row[i], effects, &e);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (rc != 0)
        reply_unable(x, &e);
}

void api_runs_of(struct exchange *x, struct span sandbox)
{
    struct run_filter f = {.sandbox = sandbox, .before = INT64_MAX, .limit = RUNS_PAGE, .newest = true};

    if (number_of(x, "before", INT64_MAX, &f.before))
        put_runs(x, &f, true);
}

void api_runs(struct exchange *x)
{
    uint64_t limit = RUNS_PAGE, newest = 0, effects = 0;
    struct run_filter f = {.before = INT64_MAX};

    if (query_field(x, "sandbox", &f.sandbox) != 0 || !number_of(x, "after", INT64_MAX, &f.after) ||
        !number_of(x, "before", INT64_MAX, &f.before) || !number_of(x, "limit", RUNS_PAGE, &limit) ||
        !number_of(x, "newest", 1, &newest) || !number_of(x, "effects", 1, &effects))
        return;
    f.limit = (size_t)limit;
    f.newest = newest == 1;
    put_runs(x, &f, effects == 1);
}

int api_run_find(struct exchange *x, struct run_row *r)
{
    const struct run_filter f = {.prefix = x->arg, .before = INT64_MAX, .limit = 2};
    const struct found *found = find(x, &f);

    if (!found)
        return -1;
    *r = found->row[0];
    if (found->n == 1)
        return 0;
    reply_problem(x, found->n ? 409 : 404, found->n ? "Which run" : "No such run", "%s",
                  found->n ? "more than one run's id begins so"
                           : "no run has this id, or it is not kept any more: the audit has its records");
    return -1;
}

void api_run(struct exchange *x)
{
    struct run_row r;
    struct jsonw w;
    struct err e;

    if (api_run_find(x, &r) != 0)
        return;
    reply_json(x, 200, &w);
    if (put_run(x, &w, &r, true, &e) != 0)
        reply_unable(x, &e);
}
