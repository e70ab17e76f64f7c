/* The policy's own tests, before it is in force. What is said of a failure goes to a log, a terminal and a page. */
#include "policy/test/own_tests.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/text/visible.h"
#include "policy/test/test_file.h"

enum { TESTS_MEMORY_MAX = 64 * 1024 * 1024, TESTS_PATH_MAX = 4096, WORDS_MAX = 4096 };

int policy_tests_path(const char *path, char *out, size_t cap)
{
    struct span s = span_str(path);
    size_t dot = s.n;
    while (dot > 0 && s.p[dot - 1] != '.' && s.p[dot - 1] != '/')
        dot--;
    struct span ending = span_from(s, dot);
    if (dot < 2 || s.p[dot - 2] == '/' || (!span_eq(ending, SPAN("yaml")) && !span_eq(ending, SPAN("yml"))))
        return -1;
    int n = snprintf(out, cap, "%.*s_test.%.*s", (int)(dot - 1), path, SPAN_FMT(ending));
    return n < 0 || (size_t)n >= cap ? -1 : 0;
}

static void say_values(struct dynbuf *b, const struct tested *t)
{
    for (size_t i = 0; i < t->ndiffs; i++) {
        (void)dynbuf_addf(b, "%s%s: wanted ", i ? "; " : "", t->diff[i].what);
        visible_text(b, span_first(t->diff[i].wanted, 100), false);
        (void)dynbuf_add(b, SPAN(", got "));
        visible_text(b, t->diff[i].got.n ? span_first(t->diff[i].got, 100) : SPAN("nothing"), false);
    }
}

static int say_failed(const struct t_case *c, const struct tested *t, struct err *e)
{
    struct dynbuf b;
    dynbuf_init(&b, WORDS_MAX);
    (void)dynbuf_addf(&b, "%s:%u: the policy's own test \"", c->at->file, c->at->line);
    visible_text(&b, span_first(c->name.text, 100), false);
    (void)dynbuf_add(&b, SPAN("\" failed: "));
    if (t->why || !t->asked) {
        (void)dynbuf_add(&b, span_str(t->why ? t->why : t->e.text));
    } else {
        say_values(&b, t);
        if (t->q.decision.rule.id.n) {
            (void)dynbuf_add(&b, SPAN(" (by rule "));
            visible_text(&b, span_first(t->q.decision.rule.id, 100), false);
            (void)dynbuf_add(&b, SPAN(")"));
        } else {
            (void)dynbuf_addf(&b, " (because %s)", t->q.decision.code);
        }
    }
    (void)err_set(e, "%.*s", SPAN_FMT(dynbuf_span(&b)));
    dynbuf_free(&b);
    return -1;
}

static int decode(struct loader *l, const char *file, struct t_file *f, struct err *e)
{
    struct span text = SPAN_NONE;
    if (policy_read_file(file, POLICY_FILE_MAX, &l->a, &text, e) != 0)
        return -1;
    if (test_file_decode(l, file, text, f) != 0) {
        const struct policy_problem *first = l->problems->v;
        return l->problems->n ? err_set(e, "%s: error %s: %s", first->where, first->code, first->text)
                              : err_set(e, "%s: no file of tests", file);
    }
    return f->cases.n ? 0 : err_set(e, "%s has no case, which proves nothing: write one, or remove the file", file);
}

static int run_file(const struct policy *p, const char *file, struct tests_ran *ran, struct err *e)
{
    struct policy_problem first[1];
    struct policy_problems problems = {first, 0, 1};
    struct loader l = {.problems = &problems, .file = file};
    struct t_file f = {0};
    arena_init(&l.a, TESTS_MEMORY_MAX);
    int bad = decode(&l, file, &f, e);
    const struct t_case *c = f.cases.v;
    for (size_t i = 0; bad == 0 && i < f.cases.n; i++) {
        struct tested t;
        test_case_run(p, &c[i], &t);
        if (!t.ok && ran->failed == 0)
            (void)say_failed(&c[i], &t, e);
        ran->cases++;
        ran->failed += !t.ok;
        tested_free(&t);
    }
    ran->files++;
    arena_free(&l.a);
    return bad;
}

int policy_tests_run(const struct policy *p, const char *const *paths, size_t n, struct tests_ran *ran, struct err *e)
{
    char file[TESTS_PATH_MAX];
    struct stat st;
    *ran = (struct tests_ran){0};
    for (size_t i = 0; i < n; i++) {
        if (policy_tests_path(paths[i], file, sizeof(file)) != 0)
            continue;
        if (lstat(file, &st) != 0 && errno == ENOENT)
            continue;
        if (run_file(p, file, ran, e) != 0)
            return -1;
    }
    if (ran->failed > 1) {
        size_t used = strnlen(e->text, sizeof(e->text));
        (void)snprintf(e->text + used, sizeof(e->text) - used, "; %zu of %zu cases failed", ran->failed, ran->cases);
    }
    return ran->failed ? -1 : 0;
}
