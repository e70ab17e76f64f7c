/* countersign runs list|show|repeat|output|export|verify */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "cli/verbs/chain.h"
#include "common/time/clock.h"

enum {
    PAGE_ROWS = 50,
    PATH_ROOM = 256,
    LIST_MAX = 1000,
    LIST_USUAL = 20,
    ROWS_MAX = 4 * 1024 * 1024, /* of them is remembered which records they name */
    SHORT_ID = 8,
    LINE_ROOM = 512 * 1024,
};

typedef int row_fn(void *arg, const struct json *row);

static bool sandbox_ok(const char *name)
{
    return span_is_of(span_str(name), SPAN("-._")) && *name != '\0' && strlen(name) < PATH_ROOM / 2;
}

/* Page by page; the newest first: at most `most`. */
static int each_row(struct gateway_call *g, const char *sandbox, const char *more, bool newest, uint64_t most,
                    row_fn *fn, void *arg)
{
    uint64_t at = newest ? INT64_MAX : 0, before;
    char path[PATH_ROOM];
    int rc = sandbox && !sandbox_ok(sandbox) ? verb_fail(CLI_USAGE, "that is not a sandbox's name") : CLI_OK;

    do {
        uint64_t rows = 0, limit = most < PAGE_ROWS ? most : PAGE_ROWS;
        before = at;
        (void)snprintf(path, sizeof(path), "/api/v1/runs?%s=%llu&limit=%llu&newest=%d%s%s%s",
                       newest ? "before" : "after", (unsigned long long)at, (unsigned long long)limit, newest, more,
                       sandbox ? "&sandbox=" : "", sandbox ? sandbox : "");
        if (rc == CLI_OK)
            rc = verb_ask(g, "GET", path, SPAN_NONE, 200);
        const struct json *list = rc == CLI_OK ? json_get(g->tree, SPAN("runs")) : NULL;
        if (rc == CLI_OK && !list)
            rc = verb_fail(CLI_RUNTIME, "the gateway's answer is not understood");
        for (const struct json *r = list ? list->child : NULL; r && rc == CLI_OK; r = r->next, rows++) {
            at = member_u64(r, "begin_seq");
            rc = fn(arg, r);
        }
        most -= rows;
        if (rows < limit)
            return rc;
    } while (rc == CLI_OK && most > 0 && at != before);
    return rc;
}

/* --- list ------------------------------------------------------------------------ */

static void add_words(struct table *t, const struct json *list)
{
    for (const struct json *w = list ? list->child : NULL; w; w = w->next) {
        if (w != list->child)
            table_add(t, " ");
        table_add_text(t, span_first(w->text, 40));
    }
}

/* "exited 0", "signalled 9", "unknown" */
static void put_how(struct table *t, const struct json *row, const struct json *end)
{
    struct span how = json_text(end, SPAN("how")), state = member_text(row, "state");
    bool command = span_eq(member_text(row, "what"), SPAN("command"));

    struct span outcome = json_text(json_get(end, SPAN("what")), SPAN("outcome"));
    table_add_text(t, command && how.n ? how : outcome.n ? outcome : state);
    for (size_t i = 0; i < 2; i++) {
        struct span code = member_text(end, i == 0 ? "status" : "signal");
        if (code.n) {
            table_add(t, " ");
            table_add_text(t, code);
        }
    }
    table_next(t);
}

static int list_row(void *arg, const struct json *r)
{
    struct table *t = arg;
    struct arena a;
    char when[32];

    arena_init(&a, 4 * API_EVENT_MAX);
    const struct json *begin = json_parse(member_text(r, "begin"), &a), *end = json_parse(member_text(r, "end"), &a);
    const struct json *what = json_get(end, SPAN("what"));
    struct span command = member_text(r, "command"), kind = json_text(what, SPAN("task"));
    struct span why = kind.n ? kind : json_text(what, SPAN("why"));
    table_text(t, span_first(member_text(r, "id"), SHORT_ID));
    table_cell(t, "%s", time_text(member_u64(r, "began_ms"), when));
    table_text(t, member_text(r, "sandbox"));
    table_text(t, member_text(r, "what"));
    table_text(t, command.n ? command : SPAN("-"));
    put_how(t, r, end);
    if (command.n)
        add_words(t, json_get(json_get(begin, SPAN("argv")), SPAN("words")));
    else
        table_add_text(t, why);
    table_next(t);
    table_row(t);
    arena_free(&a);
    return CLI_OK;
}

static int json_row(void *arg, const struct json *r);

static int list(struct gateway_call *g, const struct cli_call *c)
{
    const char *lines = cli_value(c, "lines");
    uint64_t most = LIST_USUAL;
    struct table t;

    if (lines && (span_u64(span_str(lines), LIST_MAX, &most) != 0 || most == 0))
        return verb_fail(CLI_USAGE, "--lines is a number from 1 to %d", LIST_MAX);
    if (c->json)
        return each_row(g, cli_value(c, "sandbox"), "", true, most, json_row, NULL);
    table_begin(&t, "ID\tBEGAN\tSANDBOX\tWHAT\tCOMMAND\tHOW\tWORDS");
    int rc = each_row(g, cli_value(c, "sandbox"), "", true, most, list_row, &t);
    table_end(&t, "Nothing ran.");
    return rc;
}

int runs_list(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = list(&g, c);
    verb_end(&g);
    return rc;
}

/* --- one as an object --------------------------------------------------------------- */

static void put_value(struct jsonw *w, const struct json *j)
{
    switch (j->type) {
    case JSON_STRING: jsonw_string(w, j->text); break;
    case JSON_NUMBER: jsonw_raw(w, j->text); break;
    case JSON_BOOL: jsonw_bool(w, j->truth); break;
    case JSON_OBJECT:
    case JSON_ARRAY:
        (j->type == JSON_OBJECT ? jsonw_object : jsonw_array)(w);
        for (const struct json *m = j->child; m; m = m->next) {
            if (j->type == JSON_OBJECT)
                jsonw_name(w, m->key);
            put_value(w, m);
        }
        (j->type == JSON_OBJECT ? jsonw_end_object : jsonw_end_array)(w);
        break;
    default: jsonw_raw(w, SPAN("null"));
    }
}

/* The two records as they are in the audit, byte by byte, and the members around them. */
static int json_row(void *arg, const struct json *r)
{
    struct dynbuf line;
    struct jsonw w;

    dynbuf_init(&line, LINE_ROOM);
    jsonw_begin(&w, &line);
    jsonw_object(&w);
    for (const struct json *m = r->child; m; m = m->next) {
        bool record = span_eq(m->key, SPAN("begin")) || span_eq(m->key, SPAN("end"));
        jsonw_name(&w, m->key);
        if (record && m->type == JSON_STRING)
            jsonw_raw(&w, m->text);
        else
            put_value(&w, m);
    }
    jsonw_end_object(&w);
    bool ok = dynbuf_ok(&line);
    if (ok)
        print_json_line(dynbuf_span(&line));
    dynbuf_free(&line);
    if (ok && fflush(stdout) == 0 && !ferror(stdout))
        return CLI_OK;
    return verb_fail(CLI_RUNTIME, "the run cannot be written");
}

int runs_export(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = each_row(&g, cli_value(c, "sandbox"), "&effects=1", false, UINT64_MAX, json_row, NULL);
    verb_end(&g);
    return rc;
}

/* --- show ----------------------------------------------------------------------------- */

/* A member to a line; what is inside of one is in its row. */
static void print_members(const struct json *j, const char *indent)
{
    for (const struct json *m = j ? j->child : NULL; m; m = m->next) {
        if (m->type == JSON_OBJECT) {
            printf("%s%.*s:\n", indent, SPAN_FMT(m->key));
            print_members(m, "    ");
            continue;
        }
        printf("%s%.*s:", indent, SPAN_FMT(m->key));
        for (const struct json *v = m->type == JSON_ARRAY ? m->child : m; v;
             v = m->type == JSON_ARRAY ? v->next : NULL) {
            putchar(' ');
            print_text(v->type == JSON_BOOL ? v->truth ? SPAN("yes") : SPAN("no") : v->text);
        }
        putchar('\n');
    }
}

static void print_run(const struct json *r)
{
    static const char *const records[] = {"begin", "end"};
    char when[32];
    struct arena a;

    printf("run %.*s: ", SPAN_FMT(member_text(r, "id")));
    print_text(member_text(r, "what"));
    printf(", %.*s\n", SPAN_FMT(member_text(r, "state")));
    for (size_t i = 0; i < 2; i++) {
        arena_init(&a, 4 * API_EVENT_MAX);
        const struct json *record = json_parse(member_text(r, records[i]), &a);
        uint64_t ms = member_u64(r, i == 0 ? "began_ms" : "ended_ms");
        bool same = i == 1 && member_u64(r, "begin_seq") == member_u64(r, "end_seq");
        if (record && !same) {
            printf("%s, record %llu of the audit:\n", time_text(ms, when),
                   (unsigned long long)member_u64(record, "seq"));
            print_members(record, "  ");
        }
        arena_free(&a);
    }
    const struct json *effects = json_get(r, SPAN("effects"));
    if (effects)
        printf("what it sent:\n");
    print_members(effects, "  ");
}

static int path_of(const char *id, const char *more, char path[PATH_ROOM])
{
    if (strlen(id) > ID_TEXT || !span_is_of(span_str(id), SPAN_NONE) || *id == '\0')
        return verb_fail(CLI_USAGE, "that is not the id of a run, nor the start of one");
    (void)snprintf(path, PATH_ROOM, "/api/v1/runs/%s%s", id, more);
    return CLI_OK;
}

static int show(struct gateway_call *g, const char *id)
{
    char path[PATH_ROOM];
    int rc = path_of(id, "", path);

    return rc == CLI_OK ? verb_ask(g, "GET", path, SPAN_NONE, 200) : rc;
}

int runs_show(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && (rc = show(&g, c->word[0])) == CLI_OK) {
        if (c->json)
            rc = json_row(NULL, g.tree);
        else
            print_run(g.tree);
    }
    verb_end(&g);
    return rc;
}

/* --- repeat ----------------------------------------------------------------------------- */

/* "result, status 0, output 1f2e..." */
static void print_end(const char *when, const struct json *end)
{
    struct span output = member_text(end, "output_sha256");
    bool signalled = json_get(end, SPAN("signal")) != NULL;

    printf("  %s: ", when);
    print_text(member_text(end, "outcome"));
    printf(", %s %llu, output %.*s\n", signalled ? "signal" : "status",
           (unsigned long long)member_u64(end, signalled ? "signal" : "status"),
           SPAN_FMT(output.n ? output : SPAN("none")));
}

static int repeated(struct gateway_call *g)
{
    struct err e;

    g->tree = json_parse(dynbuf_span(&g->answer), &g->arena);
    const struct json *is = g->status == 200 ? json_get(g->tree, SPAN("same")) : NULL;
    if (!is) {
        (void)api_explain(g->status, dynbuf_span(&g->answer), &e);
        return verb_fail(g->status == 503 ? CLI_STORE : CLI_RUNTIME, "%s", e.text);
    }
    if (g->json)
        verb_print_answer(g);
    else {
        printf("run %.*s repeats %.*s: %s\n", SPAN_FMT(member_text(g->tree, "run")),
               SPAN_FMT(member_text(g->tree, "repeats")), is->truth ? "the same" : "not the same");
        print_end("before", json_get(g->tree, SPAN("before")));
        print_end("now", json_get(g->tree, SPAN("now")));
    }
    return is->truth ? CLI_OK : CLI_RUNTIME;
}

int runs_repeat(const struct cli_call *c)
{
    struct gateway_call g;
    char path[PATH_ROOM];
    struct err e;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = path_of(c->word[0], "/repeat", path);
    if (rc == CLI_OK && api_call_patient(g.sock, "POST", path, SPAN_NONE, &g.status, &g.answer, &e))
        rc = verb_fail(CLI_STORE, "%s", e.text);
    if (rc == CLI_OK)
        rc = repeated(&g);
    verb_end(&g);
    return rc;
}

/* --- output ----------------------------------------------------------------------------- */

/* Whatever it says it is: never to a terminal, which would do what is in it. */
int runs_output(const struct cli_call *c)
{
    struct gateway_call g;
    char path[PATH_ROOM];
    struct err e;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && isatty(1))
        rc = verb_fail(CLI_USAGE, "what a task left is given to a file or a pipe: > FILE");
    if (rc == CLI_OK)
        rc = path_of(c->word[0], "/output", path);
    if (rc == CLI_OK && api_call(g.sock, "GET", path, SPAN_NONE, &g.status, &g.answer, &e))
        rc = verb_fail(CLI_STORE, "%s", e.text);
    if (rc == CLI_OK && g.status != 200) {
        (void)api_explain(g.status, dynbuf_span(&g.answer), &e);
        rc = verb_fail(g.status == 503 ? CLI_STORE : CLI_RUNTIME, "%s", e.text);
    }
    if (rc == CLI_OK && (fwrite(g.answer.p, 1, g.answer.n, stdout) != g.answer.n || fflush(stdout) != 0))
        rc = verb_fail(CLI_RUNTIME, "it cannot be written: %s", strerror(errno));
    verb_end(&g);
    return rc;
}

/* --- verify ----------------------------------------------------------------------------- */

/* A record that a row names, as it was given with the row. */
struct named {
    uint64_t seq;
    struct digest text;
    bool seen;
};

struct check {
    struct named *at;
    size_t n, room, next;
    uint64_t rows, unknown, running, forgotten, last; /* last: begin_seq of the last row */
};

static int broken(const struct json *r, const char *what)
{
    return verb_fail(CLI_RUNTIME, "run %.*s is not what the audit says: %s", SPAN_FMT(member_text(r, "id")), what);
}

static bool same(const struct json *row, const struct json *record, const char *key)
{
    return span_eq(member_text(row, key), member_text(record, key));
}

static bool at_time(const struct json *row, const char *key, const struct json *record)
{
    char when[UTC_TEXT];

    return utc_text(member_u64(row, key), true, when) && span_eq(json_text(record, SPAN("time")), span_str(when));
}

static bool is(const struct json *record, const char *key, const char *text)
{
    return span_eq(member_text(record, key), span_str(text));
}

/* The first column of a command's row that its records do not say; NULL: none. */
static const char *command_amiss(const struct json *r, const struct json *begin, const struct json *end)
{
    static const char *const keys[] = {"sandbox", "tenant", "generation", "command"};
    struct span id = member_text(r, "id");

    if (!is(begin, "kind", "run") || !span_eq(member_text(begin, "run"), id))
        return "begin_seq";
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (!same(r, begin, keys[i]))
            return keys[i];
    if (!end)
        return is(r, "state", "running") ? NULL : "state";
    if (!is(end, "kind", "run-end") || !span_eq(member_text(end, "run"), id))
        return "end_seq";
    return is(r, "state", is(end, "how", "unknown") ? "unknown" : "ended") ? NULL : "state";
}

/* What a note of the warden's is about, by what it is in the table. */
static const char *about_of(struct span what)
{
    static const char *const abouts[][2] = {{"start", "sandbox-started"},         {"restore", "sandbox-restored"},
                                            {"resume", "sandbox-resumed"},        {"pause", "sandbox-paused"},
                                            {"checkpoint", "sandbox-checkpoint"}, {"task", "task"}};

    for (size_t i = 0; i < sizeof(abouts) / sizeof(abouts[0]); i++)
        if (span_eq(what, span_str(abouts[i][0])))
            return abouts[i][1];
    return "";
}

/* The record of a sandbox's row that says it is over, for good or until its files are needed again. */
static bool says_over(const struct json *record)
{
    return is(record, "how", "ended") || is(record, "how", "idle");
}

/* The record of a sandbox's row, and whose generation it is: one that is over has the next already. */
static bool of_generation(const struct json *r, const struct json *record)
{
    const struct json *whose = is(record, "kind", "note") ? json_get(record, SPAN("what")) : record;
    uint64_t next = says_over(record);

    return same(r, whose, "sandbox") && member_u64(whose, "generation") == member_u64(r, "generation") + next;
}

static const char *life_amiss(const struct json *r, const struct json *begin, const struct json *end)
{
    const char *about = about_of(member_text(r, "what"));
    bool over = is(r, "what", "end"), begun = is(begin, "how", "started");

    if (!of_generation(r, begin))
        return "sandbox or generation";
    if (over ? !says_over(begin) : !begun && !is(begin, "about", about))
        return "what";
    if (!end)
        return begun && is(r, "state", "running") ? NULL : "state";
    if (!of_generation(r, end))
        return "end_seq";
    if (says_over(end))
        return !over && !is(r, "what", "start")                                           ? "what"
               : is(r, "state", !over && member_text(end, "why").n ? "unknown" : "ended") ? NULL
                                                                                          : "state";
    return !is(end, "about", about) ? "what" : is(r, "state", "ended") ? NULL : "state";
}

static int name_one(struct check *k, uint64_t seq, struct span text)
{
    if (k->n == k->room) {
        size_t room = k->room ? 2 * k->room : 1024;
        struct named *more = room <= 2 * ROWS_MAX ? realloc(k->at, room * sizeof(*more)) : NULL;
        if (!more)
            return verb_fail(CLI_RUNTIME, "there are more runs than can be held in memory");
        k->at = more;
        k->room = room;
    }
    k->at[k->n] = (struct named){.seq = seq};
    digest_of(text, &k->at[k->n++].text);
    return CLI_OK;
}

static int check_run(void *arg, const struct json *r)
{
    struct check *k = arg;
    struct span begin_text = member_text(r, "begin"), end_text = member_text(r, "end");
    uint64_t begin_seq = member_u64(r, "begin_seq"), end_seq = member_u64(r, "end_seq");
    struct arena a;
    int rc = CLI_OK;

    arena_init(&a, 4 * API_EVENT_MAX);
    const struct json *begin = json_parse(begin_text, &a), *end = end_seq ? json_parse(end_text, &a) : NULL;
    const char *amiss = NULL;
    if (!begin || (end_seq && !end))
        amiss = "there is no record that it names";
    else if (!at_time(r, "began_ms", begin) || (end ? !at_time(r, "ended_ms", end) : member_u64(r, "ended_ms") != 0))
        amiss = "its column began_ms or ended_ms";
    else
        amiss = (is(r, "what", "command") ? command_amiss : life_amiss)(r, begin, end);
    if (amiss)
        rc = broken(r, amiss);
    if (rc == CLI_OK)
        rc = name_one(k, begin_seq, begin_text);
    if (rc == CLI_OK && end_seq && end_seq != begin_seq)
        rc = name_one(k, end_seq, end_text);
    arena_free(&a);
    k->rows++;
    k->last = begin_seq;
    k->unknown += is(r, "state", "unknown");
    k->running += is(r, "state", "running");
    return rc;
}

static int by_seq(const void *x, const void *y)
{
    const struct named *a = x, *b = y;

    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* What the rows came with is what stands in the chain; and an end in the chain is one of a row, or its row is
 * forgotten. */
static int check_record(void *arg, uint64_t seq, struct span json, const struct json *record)
{
    struct check *k = arg;
    struct digest is_now;
    bool named = false;

    while (k->next < k->n && k->at[k->next].seq < seq)
        k->next++;
    for (; k->next < k->n && k->at[k->next].seq == seq; k->next++) {
        digest_of(json, &is_now);
        if (memcmp(is_now.b, k->at[k->next].text.b, DIGEST_BYTES) != 0)
            return verb_fail(CLI_RUNTIME, "record %llu is another in the chain than with its run",
                             (unsigned long long)seq);
        named = k->at[k->next].seen = true;
    }
    k->forgotten += !named && seq < k->last && is(record, "kind", "run"); /* later ones came meanwhile */
    return CLI_OK;
}

static int verify_rows(const struct cli_call *c, struct check *k)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = each_row(&g, NULL, "", false, UINT64_MAX, check_run, k);
    verb_end(&g);
    if (rc == CLI_OK && k->n > 0)
        qsort(k->at, k->n, sizeof(*k->at), by_seq);
    return rc;
}

int runs_verify(const struct cli_call *c)
{
    struct check k = {.n = 0};
    uint64_t records = 0;
    int rc = verify_rows(c, &k);

    if (rc == CLI_OK)
        rc = chain_walk(c, check_record, &k, &records);
    for (size_t i = 0; i < k.n && rc == CLI_OK; i++)
        if (!k.at[i].seen)
            rc = verb_fail(CLI_RUNTIME, "record %llu, which a run names, is not in the chain",
                           (unsigned long long)k.at[i].seq);
    free(k.at);
    if (rc != CLI_OK)
        return rc;
    if (c->json)
        printf("{\"runs\":%llu,\"running\":%llu,\"unknown\":%llu,\"forgotten\":%llu,\"records\":%llu}\n",
               (unsigned long long)k.rows, (unsigned long long)k.running, (unsigned long long)k.unknown,
               (unsigned long long)k.forgotten, (unsigned long long)records);
    else
        printf(
            "%llu runs are what the audit says, of which %llu go on and the end of %llu is not known; %llu records, "
            "unbroken.\nOf %llu more commands the audit alone has the records.\n",
            (unsigned long long)k.rows, (unsigned long long)k.running, (unsigned long long)k.unknown,
            (unsigned long long)records, (unsigned long long)k.forgotten);
    return CLI_OK;
}
