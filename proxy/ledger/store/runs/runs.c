#include "proxy/ledger/store/runs/runs.h"

#include <stdio.h>

#include "proxy/words.h"

enum { STEP = 256, COMMAND_TEXT = 48, TENANT_MOST = 256, SWEPT = 4096 };

/* A row that is new. */
struct row_new {
    struct span what, sandbox, tenant, command;
    uint64_t generation;
    bool runs;
};

static struct span tenant_of(struct store *s, struct span sandbox)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RUN_TENANT);
    if (q == NULL)
        return SPAN_NONE;
    db_text(q, 1, sandbox);
    struct span tenant =
        db_step(&s->db, q) == DB_ROW ? store_copy(s, span_first(db_col(q, 0), TENANT_MOST)) : SPAN_NONE;
    sqlite3_reset(q);
    return tenant;
}

/* Its number in the row of its sandbox; the first of a longer row are forgotten. 0: the store fails. */
static uint64_t next_of(struct store *s, struct span sandbox)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RUN_LAST);
    if (q == NULL)
        return 0;
    db_text(q, 1, sandbox);
    uint64_t nth = db_step(&s->db, q) == DB_ROW ? db_col_int(q, 0) + 1 : 0;
    sqlite3_reset(q);
    if (nth <= STORE_RUNS_MAX)
        return nth;
    if ((q = db_stmt(&s->db, SQL_RUN_FIRST)) == NULL)
        return 0;
    db_text(q, 1, sandbox);
    db_int(q, 2, nth - STORE_RUNS_MAX);
    return db_run(&s->db, q) == 0 ? nth : 0;
}

/* Of the record that was written last. */
static int add(struct store *s, const struct row_new *n, const struct id *id)
{
    char text[ID_TEXT + 1];
    uint64_t nth = next_of(s, n->sandbox);
    sqlite3_stmt *q = nth != 0 ? db_stmt(&s->db, SQL_RUN_ADD) : NULL;
    if (q == NULL)
        return -1;
    id_text(id, text);
    db_text(q, 1, span_of(text, ID_TEXT));
    db_text(q, 2, n->what);
    db_text(q, 3, n->sandbox);
    db_int(q, 4, nth);
    db_text(q, 5, n->tenant);
    db_int(q, 6, n->generation);
    db_text(q, 7, n->command);
    db_text(q, 8, n->runs ? SPAN("running") : SPAN("ended"));
    db_int(q, 9, s->wall);
    if (!n->runs) {
        db_int(q, 10, s->wall);
        db_int(q, 12, s->now.seq);
    }
    db_int(q, 11, s->now.seq);
    return db_run(&s->db, q);
}

/* --- a command ------------------------------------------------------------------- */

static void put_words(struct jsonw *w, const char *key, const struct wire_words *words)
{
    char hex[2 * DIGEST_BYTES + 1];
    hex_text(span_of(words->digest.b, DIGEST_BYTES), hex);
    jsonw_kv_object(w, key);
    jsonw_kv_array(w, "words");
    for (size_t i = 0; i < words->n; i++)
        jsonw_string(w, words->word[i]);
    jsonw_end_array(w);
    jsonw_kv_u64(w, "all", words->all);
    jsonw_kv_u64(w, "cut", words->cut);
    jsonw_kv(w, "sha256", span_str(hex));
    jsonw_end_object(w);
}

/* What the parent noted last: the judge takes a policy before that is noted. Empty: it noted none yet. */
static struct span policy_now(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_META_GET);
    if (q == NULL)
        return SPAN_NONE;
    db_text(q, 1, SPAN("policy"));
    struct span hex = db_step(&s->db, q) == DB_ROW ? store_copy(s, db_col(q, 0)) : SPAN_NONE;
    sqlite3_reset(q);
    return hex;
}

int store_run_policy(struct store *s, struct span json)
{
    if (store_begin(s) != 0)
        return -1;
    struct span hex = json_text(json_parse(json, &s->arena), SPAN("policy"));
    return hex.n == 2 * DIGEST_BYTES && span_is_of(hex, SPAN_NONE) ? meta_set(s, SPAN("policy"), hex) : 0;
}

static void put_begin(struct jsonw *w, const struct wire_run *r, const struct row_new *n, struct span policy)
{
    static const char *const inputs[] = {"none", "pipe", "terminal"};
    jsonw_kv(w, "sandbox", r->sandbox);
    jsonw_kv(w, "tenant", n->tenant);
    jsonw_kv_u64(w, "generation", r->generation);
    jsonw_kv(w, "command", n->command);
    jsonw_kv(w, "image", r->image.n ? r->image : SPAN("host"));
    jsonw_kv(w, "digest", r->packages.n ? r->packages : SPAN("unknown"));
    if (r->lane.n)
        jsonw_kv(w, "lane", r->lane);
    put_words(w, "argv", &r->argv);
    jsonw_kv(w, "dir", r->dir);
    jsonw_kv(w, "user", r->user);
    put_words(w, "variables", &r->env);
    jsonw_kv(w, "input", span_str(inputs[r->input < 3 ? r->input : 0]));
    jsonw_kv_bool(w, "detached", r->detached);
    jsonw_kv_u64(w, "timeout_ms", r->timeout_ms);
    jsonw_kv(w, "policy", policy.n ? policy : SPAN("unknown"));
}

int store_run_begin(struct store *s, const struct wire_run *r, struct id *id)
{
    char command[COMMAND_TEXT], text[ID_TEXT + 1];
    struct audit a;
    if (store_begin(s) != 0)
        return -1;
    if (id_new(id) != 0)
        return db_doom(&s->db, "the system has no randomness to give");
    (void)snprintf(command, sizeof(command), "%llu.%u", (unsigned long long)r->born, (unsigned)r->number);
    const struct row_new n = {.what = SPAN("command"),
                              .sandbox = r->sandbox,
                              .tenant = tenant_of(s, r->sandbox),
                              .command = span_str(command),
                              .generation = r->generation,
                              .runs = true};
    struct span policy = policy_now(s);
    if (s->db.doomed)
        return -1;
    id_text(id, text);
    audit_begin(&a, s, "run", NULL, NULL, SPAN_NONE);
    jsonw_kv(&a.w, "run", span_of(text, ID_TEXT));
    put_begin(&a.w, r, &n, policy);
    return audit_end(&a) == 0 ? add(s, &n, id) : -1;
}

/* Its row, if it runs by it. 1, 0, -1. */
static int settle(struct store *s, struct span id, struct span state)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RUN_END);
    if (q == NULL)
        return -1;
    db_text(q, 1, id);
    db_text(q, 2, state);
    db_int(q, 3, s->wall);
    db_int(q, 4, s->now.seq + 1); /* of the record that follows in the same turn */
    return db_run(&s->db, q) != 0 ? -1 : db_changes(&s->db);
}

/* Sandbox, generation and command of a run, for the record of its end. 1, 0 there is none, -1. */
static int put_whose(struct store *s, struct jsonw *w, struct span id)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RUN_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, id);
    enum db_result got = db_step(&s->db, q);
    jsonw_kv(w, "run", id);
    if (got == DB_ROW) {
        jsonw_kv(w, "sandbox", db_col(q, 0));
        jsonw_kv_u64(w, "generation", db_col_int(q, 1));
        jsonw_kv(w, "command", db_col(q, 2));
    }
    sqlite3_reset(q);
    return got == DB_ROW ? 1 : got == DB_DONE ? 0 : -1;
}

static void put_said(struct jsonw *w, const char *key, const struct wire_said *said)
{
    char hex[2 * DIGEST_BYTES + 1];
    hex_text(span_of(said->digest.b, DIGEST_BYTES), hex);
    jsonw_kv_object(w, key);
    jsonw_kv_u64(w, "bytes", said->bytes);
    jsonw_kv(w, "sha256", span_str(hex));
    jsonw_end_object(w);
}

static void put_end(struct jsonw *w, const struct wire_run_end *e)
{
    static const char *const ends[] = {[SB_LOST] = "lost",
                                       [SB_EXITED] = "exited",
                                       [SB_SIGNALLED] = "signalled",
                                       [SB_NOT_STARTED] = "not-started",
                                       [SB_TIMED_OUT] = "timed-out"};
    jsonw_kv(w, "how", span_str(ends[e->how <= SB_TIMED_OUT ? e->how : SB_LOST]));
    if (e->how == SB_EXITED || e->how == SB_SIGNALLED)
        jsonw_kv_u64(w, e->how == SB_EXITED ? "status" : "signal", e->code);
    jsonw_kv_u64(w, "user_us", e->user_us);
    jsonw_kv_u64(w, "system_us", e->system_us);
    jsonw_kv_u64(w, "memory_kib", e->memory_kib);
    put_said(w, "stdout", &e->out[0]);
    put_said(w, "stderr", &e->out[1]);
    jsonw_kv_u64(w, "cut", e->cut);
    if (e->why.n)
        jsonw_kv(w, "why", e->why);
}

int store_run_end(struct store *s, const struct id *id, const struct wire_run_end *e)
{
    char text[ID_TEXT + 1];
    struct audit a;
    if (store_begin(s) != 0)
        return -1;
    id_text(id, text);
    int was = settle(s, span_of(text, ID_TEXT), SPAN("ended"));
    if (was <= 0)
        return was;
    audit_begin(&a, s, "run-end", NULL, NULL, SPAN_NONE);
    if (put_whose(s, &a.w, span_of(text, ID_TEXT)) != 1)
        return -1;
    put_end(&a.w, e);
    if (runs_put_egress(s, &a.w, span_of(text, ID_TEXT)) != 0)
        return -1;
    return audit_end(&a);
}

static int unknown(struct store *s, struct span id, const char *why)
{
    struct audit a;
    int was = settle(s, id, SPAN("unknown"));
    if (was <= 0)
        return was;
    audit_begin(&a, s, "run-end", NULL, NULL, SPAN_NONE);
    if (put_whose(s, &a.w, id) != 1)
        return -1;
    jsonw_kv(&a.w, "how", SPAN("unknown"));
    jsonw_kv(&a.w, "why", span_str(why));
    if (runs_put_egress(s, &a.w, id) != 0)
        return -1;
    return audit_end(&a);
}

static bool among(struct span id, const struct id *but, size_t n)
{
    struct id is;
    bool ok = id_parse(id, &is) == 0, there = false;
    for (size_t i = 0; i < n; i++)
        there |= ok && id_eq(&is, &but[i]);
    return there;
}

static int unknown_but(struct store *s, struct span sandbox, const struct id *but, size_t n, const char *why)
{
    static char ids[STEP][ID_TEXT];
    char behind[ID_TEXT + 1] = "";
    size_t found;
    do {
        sqlite3_stmt *q = db_stmt(&s->db, SQL_RUNS_OPEN);
        enum db_result got;
        if (q == NULL)
            return -1;
        db_text(q, 1, sandbox);
        db_text(q, 2, span_str(behind));
        for (found = 0; (got = db_step(&s->db, q)) == DB_ROW && found < STEP;)
            if (db_col(q, 0).n == ID_TEXT)
                memcpy(ids[found++], db_col(q, 0).p, ID_TEXT);
        sqlite3_reset(q);
        if (got == DB_FAIL)
            return -1;
        for (size_t i = 0; i < found; i++) {
            memcpy(behind, ids[i], ID_TEXT);
            if (!among(span_of(ids[i], ID_TEXT), but, n) && unknown(s, span_of(ids[i], ID_TEXT), why) != 0)
                return -1;
        }
    } while (found == STEP);
    return 0;
}

int store_runs_unknown(struct store *s, const struct id *but, size_t n, const char *why)
{
    return store_begin(s) != 0 ? -1 : unknown_but(s, SPAN_NONE, but, n, why);
}

/* --- a sandbox around it ------------------------------------------------------------ */

/* One record says it all, or it is begun by the last one. */
static int add_named(struct store *s, const struct row_new *n, struct id *id)
{
    if (id_new(id) != 0)
        return db_doom(&s->db, "the system has no randomness to give");
    return add(s, n, id);
}

static int add_life(struct store *s, struct span what, struct span sandbox, struct span tenant, uint64_t generation,
                    bool runs)
{
    struct id id;
    const struct row_new n = {
        .what = what, .sandbox = sandbox, .tenant = tenant, .generation = generation, .runs = runs};
    return add_named(s, &n, &id);
}

int store_task(struct store *s, struct span tenant, struct span sandbox, uint64_t generation, struct span json,
               struct id *id)
{
    const struct row_new n = {
        .what = SPAN("task"), .sandbox = sandbox, .tenant = tenant, .generation = generation, .runs = false};
    return store_note(s, SPAN("desk"), SPAN("task"), json) == 0 ? add_named(s, &n, id) : -1;
}

int runs_generation(struct store *s, const struct wire_sandbox *b)
{
    return add_life(s, SPAN("start"), b->name, b->tenant, b->generation, true);
}

/* What was begun for this generation is settled by the record that was written last. */
static int life_settled(struct store *s, struct span sandbox, uint64_t generation, struct span what,
                        struct span state)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RUN_STARTED);
    if (q == NULL)
        return -1;
    db_text(q, 1, sandbox);
    db_int(q, 2, generation);
    db_text(q, 3, what);
    db_text(q, 4, state);
    db_int(q, 5, s->wall);
    db_int(q, 6, s->now.seq);
    return db_run(&s->db, q);
}

int runs_over(struct store *s, const struct wire_sandbox *b, uint64_t generation, bool lost)
{
    struct span state = lost ? SPAN("unknown") : SPAN("ended");
    if (life_settled(s, b->name, generation, SPAN("start"), state) != 0 ||
        add_life(s, SPAN("end"), b->name, b->tenant, generation, false) != 0)
        return -1;
    return unknown_but(s, b->name, NULL, 0, lost ? RUNS_UNHEARD : "its sandbox ended, and its own end was not told");
}

int runs_put_aside(struct store *s, const struct wire_sandbox *b, uint64_t generation)
{
    return life_settled(s, b->name, generation, SPAN("start"), SPAN("ended")) == 0
               ? add_life(s, SPAN("end"), b->name, b->tenant, generation, false)
               : -1;
}

int store_run_life(struct store *s, struct span kind, struct span sandbox, uint64_t generation, struct span json)
{
    static const struct {
        const char *kind, *what;
    } begun[] = {{"sandbox-started", "start"}, {"sandbox-restored", "restore"}, {"sandbox-resumed", "resume"}},
      alone[] = {{"sandbox-paused", "pause"}, {"sandbox-checkpoint", "checkpoint"}};
    if (store_note(s, SPAN("warden"), kind, json) != 0)
        return -1;
    for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++)
        if (span_eq(kind, span_str(begun[i].kind)))
            return life_settled(s, sandbox, generation, span_str(begun[i].what), SPAN("ended"));
    for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++)
        if (span_eq(kind, span_str(alone[i].kind)))
            return add_life(s, span_str(alone[i].what), sandbox, tenant_of(s, sandbox), generation, false);
    return 0;
}

int runs_sweep(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RUN_OLD);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall > STORE_RUNS_AGE_MAX ? s->wall - STORE_RUNS_AGE_MAX : 0);
    db_int(q, 2, SWEPT);
    return db_run(&s->db, q);
}
