/* FILE_test.yaml: requests and what must come of them, decided by the same code
 * as in the gateway. A failure prints the explanation. */
#include <stdio.h>
#include <sys/stat.h>

#include "policy/test/own_tests.h"
#include "cli/policy/test/cover.h"
#include "cli/policy/explain/explain.h"
#include "cli/policy/show.h"
#include "cli/verb.h"
#include "policy/test/test_file.h"
#include "policy/load/disk.h"

struct run {
    const struct cli_call *call;
    struct loader l;
    struct policy_problem problem[20];
    struct policy_problems problems;
    struct loaded policy;
    struct jsonw *json;
    struct cover cover;
    bool covers;
    size_t passed, failed;
};

static void print_case(const struct run *t, const struct t_case *c, struct tested *d)
{
    printf("%s %s:%u ", d->ok ? "ok    " : "FAILED", c->at->file, c->at->line);
    print_text(c->name.text);
    putchar('\n');
    if (d->asks_time)
        printf("    note: the case has no at:, so it is decided by the time of now, and may end otherwise later\n");
    if (d->ok)
        return;
    for (size_t i = 0; i < d->ndiffs; i++) {
        printf("  %s: wanted ", d->diff[i].what);
        print_text(d->diff[i].wanted);
        fputs(", got ", stdout);
        print_text(d->diff[i].got);
        putchar('\n');
    }
    if (d->asked)
        explain_print(&t->policy, &d->q, "    ");
    else
        printf("    %s\n", d->why ? d->why : d->e.text);
}

static void json_case(const struct run *t, const struct t_case *c, struct tested *d)
{
    struct jsonw *w = t->json;
    struct dynbuf explained;
    jsonw_object(w);
    jsonw_kv(w, "file", span_str(c->at->file));
    jsonw_kv_u64(w, "line", c->at->line);
    jsonw_kv(w, "name", c->name.text);
    jsonw_kv_bool(w, "passed", d->ok);
    if (!d->ok && !d->asked)
        jsonw_kv(w, "why", span_str(d->why ? d->why : d->e.text));
    if (!d->ok && d->asked) {
        jsonw_kv_array(w, "differences");
        for (size_t i = 0; i < d->ndiffs; i++) {
            jsonw_object(w);
            jsonw_kv(w, "key", span_str(d->diff[i].what));
            jsonw_kv(w, "wanted", d->diff[i].wanted);
            jsonw_kv(w, "got", d->diff[i].got);
            jsonw_end_object(w);
        }
        jsonw_end_array(w);
        dynbuf_init(&explained, 4 << 20);
        explain_json(&t->policy, &d->q, &explained);
        jsonw_kv_raw(w, "explain", dynbuf_ok(&explained) ? dynbuf_span(&explained) : SPAN("null"));
        dynbuf_free(&explained);
    }
    jsonw_end_object(w);
}

static bool run_case(struct run *t, const struct t_case *c)
{
    struct tested d;
    test_case_run(t->policy.p, c, &d);
    if (t->covers && d.asked)
        cover_case(&t->cover, t->policy.p, &d.q);
    if (t->json)
        json_case(t, c, &d);
    else
        print_case(t, c, &d);
    tested_free(&d);
    return d.ok;
}

static int open_policy(struct run *t, const struct t_file *f, const char *file)
{
    const char *paths[16] = {0}, *floors = NULL;
    const char *slash = strrchr(file, '/');
    struct span dir = span_of(file, slash ? (size_t)(slash - file + 1) : 0);
    size_t n = 0;
    for (size_t i = 0; i <= f->policy.n && n < 16; i++) {
        const struct item *v = i < f->policy.n ? &f->policy.v[i] : &f->floors;
        char *path = v->at ? arena_alloc(&t->l.a, dir.n + v->text.n + 1) : NULL;
        if (path == NULL)
            continue;
        if (dir.n)
            memcpy(path, dir.p, dir.n);
        memcpy(path + dir.n, v->text.p, v->text.n);
        if (i < f->policy.n)
            paths[n++] = path;
        else
            floors = path;
    }
    return loaded_open_for(&t->policy, t->call, paths, n, floors);
}

/* What is often given in place of a test file. */
static bool is_no_test(const char *file, struct span text)
{
    char tests[4096];
    size_t rules = span_find(text, SPAN("\nrules:")), cases = span_find(text, SPAN("\ncases:"));
    if (rules == text.n || cases < text.n)
        return false;
    if (policy_tests_path(file, tests, sizeof(tests)) != 0)
        snprintf(tests, sizeof(tests), "FILE_test.yaml");
    fprintf(stderr, "%s is a policy, not a file of tests: countersign policy test %s\n", file, tests);
    return true;
}

static int read_test(struct run *t, const char *file, struct t_file *out)
{
    struct span text = SPAN_NONE;
    struct err e = {""};
    struct stat st;
    t->l.file = file;
    if (stat(file, &st) == 0 && S_ISDIR(st.st_mode)) {
        fprintf(stderr, "%s is a folder: name its files of tests, %s/*_test.yaml\n", file, file);
        return -1;
    }
    if (policy_read_file(file, POLICY_FILE_MAX, &t->l.a, &text, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
        return -1;
    }
    if (is_no_test(file, text))
        return -1;
    int rc = test_file_decode(&t->l, file, text, out);
    for (size_t i = 0; i < t->problems.n; i++)
        fprintf(stderr, "%s: error %s: %s\n", t->problem[i].where, t->problem[i].code, t->problem[i].text);
    return rc;
}

static int run_file(struct run *t, const char *file)
{
    struct t_file f = {0};
    int rc = CLI_INVALID;
    t->problems = (struct policy_problems){t->problem, 0, 20};
    t->l = (struct loader){.problems = &t->problems};
    arena_init(&t->l.a, 64 << 20);
    if (read_test(t, file, &f) != 0)
        goto out;
    if (open_policy(t, &f, file) != 0) {
        loaded_print(&t->policy, false);
        loaded_close(&t->policy);
        goto out;
    }
    if (t->covers)
        cover_policy(&t->cover, t->policy.p);
    const struct t_case *c = f.cases.v;
    for (size_t i = 0; i < f.cases.n; i++) {
        bool ok = run_case(t, &c[i]);
        t->passed += ok;
        t->failed += !ok;
    }
    loaded_close(&t->policy);
    rc = CLI_OK;
out:
    arena_free(&t->l.a);
    return rc;
}

/* --fail-under N; -1: not said, -2: no percentage. */
static int percent_of(const struct cli_call *c)
{
    uint64_t v;
    const char *least = cli_value(c, "fail-under");
    if (least == NULL)
        return -1;
    return span_u64(span_str(least), 100, &v) == 0 ? (int)v : -2;
}

static int print_sums(struct run *t, struct dynbuf *out)
{
    if (t->json)
        return show_json(out);
    printf("%zu passed, %zu failed\n", t->passed, t->failed);
    if (t->covers)
        cover_print(&t->cover);
    return 0;
}

static int run_files(struct run *t, struct dynbuf *out)
{
    struct jsonw w;
    int rc = CLI_OK;
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv_array(&w, "cases");
    t->json = t->call->json ? &w : NULL;
    for (size_t i = 0; i < t->call->nwords && rc == CLI_OK; i++)
        rc = run_file(t, t->call->word[i]);
    jsonw_end_array(&w);
    jsonw_kv_u64(&w, "passed", t->passed);
    jsonw_kv_u64(&w, "failed", t->failed);
    if (t->covers)
        cover_json(&t->cover, &w);
    jsonw_end_object(&w);
    int said = rc == CLI_OK || t->json ? print_sums(t, out) : 0;
    return rc == CLI_OK && said != 0 ? CLI_RUNTIME : rc;
}

int policy_test(const struct cli_call *c)
{
    struct run t = {.call = c, .covers = cli_flag(c, "coverage") || cli_flag(c, "fail-under")};
    struct dynbuf out;
    int percent = percent_of(c), rc;
    if (percent == -2)
        return verb_fail(CLI_USAGE, "--fail-under is a percentage, 0 to 100");
    dynbuf_init(&out, 16 << 20);
    cover_init(&t.cover);
    rc = run_files(&t, &out);
    /* A file without a case proves nothing. */
    if (rc == CLI_OK && (t.failed || t.passed == 0))
        rc = CLI_RUNTIME;
    if (rc == CLI_OK && percent >= 0 && cover_is_under(&t.cover, (unsigned)percent)) {
        fflush(stdout); /* the words come after what they are about, also in a pipe */
        fprintf(stderr, "the coverage is under %d%%\n", percent);
        rc = CLI_RUNTIME;
    }
    cover_free(&t.cover);
    dynbuf_free(&out);
    return rc;
}
