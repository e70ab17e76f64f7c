/* policy learn: arguments, and the way through. What it prints was loaded and judged before. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/policy/learn/learn.h"
#include "cli/policy/replay/replay.h"

/* What was proposed, in the form that was asked for. */
static int print(struct learnt *t, struct source *s, const struct policy_args *a, struct span text)
{
    struct dynbuf patch, patched;
    struct err e = {""};
    int rc = EXIT_POLICY_OK;
    dynbuf_init(&patch, 4 * LEARNT_MAX);
    dynbuf_init(&patched, POLICY_FILE_MAX);
    if (a->patch && (learn_patch(a->policy, text, &patch, &patched, &e) != 0 ||
                     learn_check_patched(t, s, a, dynbuf_span(&patched), &e) != 0)) {
        fprintf(stderr, "countersign policy learn: %s: no patch: %s\n", a->policy, e.text);
        rc = EXIT_POLICY_RUNTIME;
    }
    if (a->json && learn_json(t, source_seen(s), a->patch ? &patch : NULL, rc ? e.text : NULL) != 0)
        rc = EXIT_POLICY_RUNTIME;
    else if (!a->json && rc == EXIT_POLICY_OK)
        printf("%.*s", SPAN_FMT(a->patch ? dynbuf_span(&patch) : text));
    dynbuf_free(&patch);
    dynbuf_free(&patched);
    return rc;
}

static void say_counts(const struct learnt *t, const struct source_seen *seen)
{
    fprintf(stderr,
            "%llu requests read, %llu of them let through by the policy there is and %llu denied by its rules, "
            "%zu kinds of others\n",
            (unsigned long long)seen->requests, (unsigned long long)t->allowed, (unsigned long long)t->denied, t->n);
    if (t->others)
        fprintf(stderr, "%llu of them were of other sandboxes\n", (unsigned long long)t->others);
}

static int say_damage(const struct source_seen *seen)
{
    if (seen->damaged == 0)
        return EXIT_POLICY_OK;
    fprintf(stderr, "%llu records could not be read. %s\n", (unsigned long long)seen->damaged, seen->damage.text);
    return EXIT_POLICY_RUNTIME;
}

static int run(struct learnt *t, struct source *s, const struct policy_args *a)
{
    struct err e = {""};
    struct dynbuf out;
    size_t wrong = 0;
    const struct source_seen *seen = source_seen(s);
    int rc = source_read(s, learn_take, t, &e);
    if (rc != SOURCE_OK) {
        fprintf(stderr, "countersign policy learn: %s\n", e.text);
        return EXIT_POLICY_STORE;
    }
    learn_use(t);
    rc = learn_check(t, s, a, &wrong);
    if (rc == 0 && wrong)
        rc = learn_check(t, s, a, &wrong);
    dynbuf_init(&out, LEARNT_MAX);
    learn_write(t, a->policy == NULL, &out);
    if (rc != 0 || wrong || !dynbuf_ok(&out)) {
        fputs("countersign policy learn: what it would propose does not hold when it is tried; nothing is proposed. "
              "Narrow what is read with --since and --until\n",
              stderr);
        rc = EXIT_POLICY_RUNTIME;
    } else {
        rc = print(t, s, a, dynbuf_span(&out));
    }
    if (!a->json)
        say_counts(t, seen);
    int damaged = say_damage(seen);
    dynbuf_free(&out);
    return rc ? rc : damaged;
}

/* 0, or EXIT_POLICY_USAGE with the names that there are. */
static int find_scope(struct learnt *t, const struct policy_args *a)
{
    t->scope = a->scope ? span_str(a->scope) : SPAN_NONE;
    t->scope_at = a->scope ? policy_scope(t->policy, t->scope) : -1;
    if (a->scope == NULL || t->scope_at >= 0)
        return EXIT_POLICY_OK;
    fprintf(stderr, "countersign policy learn: %s has no scope \"%s\"; it has ", a->policy, a->scope);
    struct span name = policy_scope_name(t->policy, 0);
    if (name.n == 0)
        fputs("none", stderr);
    for (int i = 0; name.n; name = policy_scope_name(t->policy, ++i))
        fprintf(stderr, "%s%.*s", i ? ", " : "", SPAN_FMT(name));
    fputs("\n", stderr);
    return EXIT_POLICY_USAGE;
}

static int open_and_run(struct learnt *t, const struct policy_args *a)
{
    struct source *s = NULL;
    struct err e = {""};
    int rc = source_open(&s, &a->source, (uint64_t)time(NULL) * 1000, &e);
    if (rc == SOURCE_OK && t->policy && (t->present = bench_new(t->policy, s)) == NULL) {
        (void)err_set(&e, "no memory");
        rc = EXIT_POLICY_RUNTIME;
    }
    if (rc == SOURCE_OK)
        rc = run(t, s, a);
    else
        fprintf(stderr, "countersign policy learn: %s\n", e.text);
    bench_free(&t->present);
    source_close(&s);
    return rc;
}

int policy_cli_learn(const struct policy_args *a)
{
    bool fits = a->nwords == 0 && !(a->source.from && a->source.state_dir) && (a->policy || !(a->patch || a->scope));
    struct learnt *t = calloc(1, sizeof(*t));
    struct loaded l = {0};
    int rc = t == NULL ? EXIT_POLICY_RUNTIME : !fits ? POLICY_SHOW_USAGE : EXIT_POLICY_OK;
    if (rc == EXIT_POLICY_OK && a->policy && loaded_open_signed(&l, &a->policy, 1, NULL, a->packs, a->signers) != 0) {
        print_problems(&l, a->json);
        rc = EXIT_POLICY_INVALID;
    }
    if (rc == EXIT_POLICY_OK) {
        t->as = a->as ? span_str(a->as) : SPAN_NONE;
        t->policy = l.p;
        arena_init(&t->a, 256 * 1024 * 1024);
        rc = find_scope(t, a);
        if (rc == EXIT_POLICY_OK)
            rc = open_and_run(t, a);
        arena_free(&t->a);
    }
    loaded_close(&l);
    free(t);
    return rc;
}
