/* policy learn: arguments, and the way through. What it prints was loaded and judged before. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "policy/cli/learn.h"
#include "policy/cli/replay.h"
#include "policy/load/disk.h"

struct learn_args {
    struct source_args source;
    const char *packs, *policy, *signers, *as, *scope;
    bool patch, json;
};

static int read_options(int argc, char **argv, struct learn_args *a)
{
    static const struct option options[] = {
        {"since", required_argument, NULL, 's'},   {"until", required_argument, NULL, 'u'},
        {"from", required_argument, NULL, 'r'},    {"state-dir", required_argument, NULL, 'd'},
        {"packs", required_argument, NULL, 'p'},   {"policy", required_argument, NULL, 'f'},
        {"signers", required_argument, NULL, 'k'}, {"as", required_argument, NULL, 'a'},
        {"patch", no_argument, NULL, 'P'},         {"json", no_argument, NULL, 'j'},
        {"scope", required_argument, NULL, 'c'},   {NULL, 0, NULL, 0}};
    int o;
    optind = 1;
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (o) {
        case 's': a->source.since = optarg; break;
        case 'u': a->source.until = optarg; break;
        case 'r': a->source.from = optarg; break;
        case 'd': a->source.state_dir = optarg; break;
        case 'p': a->packs = optarg; break;
        case 'f': a->policy = optarg; break;
        case 'k': a->signers = optarg; break;
        case 'a': a->as = optarg; break;
        case 'c': a->scope = optarg; break;
        case 'P': a->patch = true; break;
        case 'j': a->json = true; break;
        default: return -1;
        }
    return optind == argc && !(a->source.from && a->source.state_dir) && (a->policy || !(a->patch || a->scope)) ? 0
                                                                                                                : -1;
}

/* Loaded as any policy, though it is in no file: with the policy there is, or alone. */
static int load_text(struct span text, const struct learn_args *a, const char *name, struct loaded *l)
{
    const char *const paths[] = {a->policy ? a->policy : name, name};
    const struct span texts[] = {a->policy ? SPAN_NONE : text, text};
    return loaded_open_place(
        l, (struct policy_place){
               .paths = paths, .texts = texts, .n = a->policy ? 2 : 1, .packs = a->packs, .signers = a->signers});
}

/* Does the rule for it decide, as it should, and with the credential that it says? */
static enum left judge(struct bench *b, const struct shape *s, const char *name)
{
    struct opinion o;
    bench_judge(b, &s->sample, s->sample_ms, &o);
    if (o.unknown == UNKNOWN_NOTHING && strcmp(o.code, "residency") == 0)
        return LEFT_RESIDENCY;
    bool right = o.unknown == UNKNOWN_NOTHING && o.verdict == (s->read ? VERDICT_ALLOW : VERDICT_HOLD) &&
                 span_eq(o.rule.file, span_str(name)) &&
                 span_eq(o.credential, s->use == USE_GIVEN ? s->used[0] : SPAN_NONE);
    return right ? LEFT_NOT : LEFT_UNSURE;
}

/* Is a read allowed by it and all else held, and nothing not judged? How many are not; leave: they are left out. */
static int judge_all(struct learnt *t, const struct loaded *l, struct source *source, const char *name, bool leave,
                     size_t *wrong)
{
    struct bench *b = bench_new(l->p, source);
    *wrong = 0;
    for (size_t i = 0; b && i < t->n; i++) {
        struct shape *s = t->shape[i];
        enum left why = s->left ? s->left : judge(b, s, name);
        *wrong += why != s->left;
        s->left = leave ? why : s->left;
    }
    int rc = b ? 0 : -1;
    bench_free(&b);
    return rc;
}

static size_t count_rules(const struct learnt *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->shape[i]->left == LEFT_NOT;
    return n;
}

static int check(struct learnt *t, struct source *source, const struct learn_args *a, size_t *wrong)
{
    struct dynbuf text;
    struct loaded l = {0};
    char name[PATH_MAX];
    *wrong = 0;
    if (count_rules(t) == 0)
        return 0;
    (void)snprintf(name, sizeof(name), "%s(proposed)", a->policy ? a->policy : "");
    dynbuf_init(&text, LEARNT_MAX);
    (void)dynbuf_add(&text, a->policy ? SPAN("version: 1\nrules:\n") : SPAN_NONE);
    learn_write(t, a->policy == NULL, &text);
    int rc = dynbuf_ok(&text) ? load_text(dynbuf_span(&text), a, name, &l) : err_set(&l.e, "it would be too long");
    if (rc != 0)
        print_problems(&l, false);
    else
        rc = judge_all(t, &l, source, name, true, wrong);
    loaded_close(&l);
    dynbuf_free(&text);
    return rc;
}

/* The same of the file as it would be: where the lines of a patch go is found without reading YAML. */
static int check_patched(struct learnt *t, struct source *source, const struct learn_args *a, struct span text,
                         struct err *e)
{
    struct loaded l = {0};
    size_t wrong = 0, rules = count_rules(t);
    if (text.n == 0)
        return 0;
    int rc = loaded_open_place(
        &l,
        (struct policy_place){.paths = &a->policy, .texts = &text, .n = 1, .packs = a->packs, .signers = a->signers});
    if (rc != 0)
        (void)err_set(e, "the file would not be valid with it, leave --patch out and copy the rules: %.200s",
                      l.e.text);
    else if (judge_all(t, &l, source, a->policy, false, &wrong) != 0 || wrong ||
             policy_rules(l.p) != policy_rules(t->policy) + rules)
        rc = err_set(e, "the file would not do with it what is proposed: leave --patch out and copy the rules");
    loaded_close(&l);
    return rc;
}

/* What was proposed, in the form that was asked for. */
static int print(struct learnt *t, struct source *s, const struct learn_args *a, struct span text)
{
    struct dynbuf patch, patched;
    struct err e = {""};
    int rc = EXIT_POLICY_OK;
    dynbuf_init(&patch, 4 * LEARNT_MAX);
    dynbuf_init(&patched, POLICY_FILE_MAX);
    if (a->patch && (learn_patch(a->policy, text, &patch, &patched, &e) != 0 ||
                     check_patched(t, s, a, dynbuf_span(&patched), &e) != 0)) {
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

static int run(struct learnt *t, struct source *s, const struct learn_args *a)
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
    rc = check(t, s, a, &wrong);
    if (rc == 0 && wrong)
        rc = check(t, s, a, &wrong);
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
static int find_scope(struct learnt *t, const struct learn_args *a)
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

static int open_and_run(struct learnt *t, const struct learn_args *a)
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

int policy_cli_learn(int argc, char **argv)
{
    struct learn_args a = {0};
    struct learnt *t = calloc(1, sizeof(*t));
    struct loaded l = {0};
    int rc = t == NULL                           ? EXIT_POLICY_RUNTIME
             : read_options(argc, argv, &a) != 0 ? policy_usage("learn")
                                                 : EXIT_POLICY_OK;
    if (rc == EXIT_POLICY_OK && a.policy && loaded_open_signed(&l, &a.policy, 1, NULL, a.packs, a.signers) != 0) {
        print_problems(&l, a.json);
        rc = EXIT_POLICY_INVALID;
    }
    if (rc == EXIT_POLICY_OK) {
        t->as = a.as ? span_str(a.as) : SPAN_NONE;
        t->policy = l.p;
        arena_init(&t->a, 256 * 1024 * 1024);
        rc = find_scope(t, &a);
        if (rc == EXIT_POLICY_OK)
            rc = open_and_run(t, &a);
        arena_free(&t->a);
    }
    loaded_close(&l);
    free(t);
    return rc;
}
