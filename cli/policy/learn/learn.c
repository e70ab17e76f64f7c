/* policy learn: arguments, and the way through. What it prints was loaded and judged before. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/policy/learn/learn.h"

/* What was proposed, in the form that was asked for. */
static int print(struct learnt *t, struct source *s, const struct cli_call *c, struct span text)
{
    struct dynbuf patch, patched;
    struct err e = {""};
    const char *policy = cli_value(c, "policy");
    bool patches = cli_flag(c, "patch");
    int rc = CLI_OK;
    dynbuf_init(&patch, 4 * LEARNT_MAX);
    dynbuf_init(&patched, POLICY_FILE_MAX);
    if (patches && (learn_patch(policy, text, &patch, &patched, &e) != 0 ||
                    learn_check_patched(t, s, c, dynbuf_span(&patched), &e) != 0)) {
        fprintf(stderr, "countersign policy learn: %s: no patch: %s\n", policy, e.text);
        rc = CLI_RUNTIME;
    }
    if (c->json && learn_json(t, source_seen(s), patches ? &patch : NULL, rc ? e.text : NULL) != 0)
        rc = CLI_RUNTIME;
    else if (!c->json && rc == CLI_OK)
        printf("%.*s", SPAN_FMT(patches ? dynbuf_span(&patch) : text));
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
        return CLI_OK;
    fprintf(stderr, "%llu records could not be read. %s\n", (unsigned long long)seen->damaged, seen->damage.text);
    return CLI_RUNTIME;
}

static int run(struct learnt *t, struct source *s, const struct cli_call *c)
{
    struct err e = {""};
    struct dynbuf out;
    size_t wrong = 0;
    const struct source_seen *seen = source_seen(s);
    int rc = source_read(s, learn_take, t, &e);
    if (rc != SOURCE_OK) {
        fprintf(stderr, "countersign policy learn: %s\n", e.text);
        return CLI_STORE;
    }
    learn_use(t);
    rc = learn_check(t, s, c, &wrong);
    if (rc == 0 && wrong)
        rc = learn_check(t, s, c, &wrong);
    dynbuf_init(&out, LEARNT_MAX);
    learn_write(t, t->policy == NULL, &out);
    if (rc != 0 || wrong || !dynbuf_ok(&out)) {
        fputs("countersign policy learn: what it would propose does not hold when it is tried; nothing is proposed. "
              "Narrow what is read with --since and --until\n",
              stderr);
        rc = CLI_RUNTIME;
    } else {
        rc = print(t, s, c, dynbuf_span(&out));
    }
    if (!c->json)
        say_counts(t, seen);
    int damaged = say_damage(seen);
    dynbuf_free(&out);
    return rc ? rc : damaged;
}

/* 0, or CLI_USAGE with the names that there are. */
static int find_scope(struct learnt *t, const struct cli_call *c)
{
    const char *scope = cli_value(c, "scope");
    t->scope = scope ? span_str(scope) : SPAN_NONE;
    t->scope_at = scope ? policy_scope(t->policy, t->scope) : -1;
    if (scope == NULL || t->scope_at >= 0)
        return CLI_OK;
    fprintf(stderr, "countersign policy learn: %s has no scope \"%s\"; it has ", cli_value(c, "policy"), scope);
    struct span name = policy_scope_name(t->policy, 0);
    if (name.n == 0)
        fputs("none", stderr);
    for (int i = 0; name.n; name = policy_scope_name(t->policy, ++i))
        fprintf(stderr, "%s%.*s", i ? ", " : "", SPAN_FMT(name));
    fputs("\n", stderr);
    return CLI_USAGE;
}

static int open_and_run(struct learnt *t, const struct cli_call *c, const struct source_args *from)
{
    struct source *s = NULL;
    struct err e = {""};
    int rc = source_open(&s, from, (uint64_t)time(NULL) * 1000, &e);
    if (rc == SOURCE_OK && t->policy && (t->present = bench_new(t->policy, s)) == NULL) {
        (void)err_set(&e, "no memory");
        rc = CLI_RUNTIME;
    }
    if (rc == SOURCE_OK)
        rc = run(t, s, c);
    else
        fprintf(stderr, "countersign policy learn: %s\n", e.text);
    bench_free(&t->present);
    source_close(&s);
    return rc;
}

int policy_learn(const struct cli_call *c)
{
    const struct source_args from = {c->state_dir, cli_value(c, "from"), cli_value(c, "since"),
                                     cli_value(c, "until")};
    const char *policy = cli_value(c, "policy"), *as = cli_value(c, "as");
    struct loaded l = {0};
    if (from.from && from.state_dir)
        return cli_complain(c->verb, "--from and --state-dir exclude each other");
    if (!policy && (cli_flag(c, "patch") || cli_flag(c, "scope")))
        return cli_complain(c->verb, "--patch and --scope need --policy FILE");
    struct learnt *t = calloc(1, sizeof(*t));
    int rc = t == NULL ? CLI_RUNTIME : CLI_OK;
    if (rc == CLI_OK && policy && loaded_open_for(&l, c, &policy, 1, NULL) != 0) {
        loaded_print(&l, c->json);
        rc = CLI_INVALID;
    }
    if (rc == CLI_OK) {
        t->as = as ? span_str(as) : SPAN_NONE;
        t->policy = l.p;
        arena_init(&t->a, 256 * 1024 * 1024);
        rc = find_scope(t, c);
        if (rc == CLI_OK)
            rc = open_and_run(t, c, &from);
        arena_free(&t->a);
    }
    loaded_close(&l);
    free(t);
    return rc;
}
