/* policy replay: arguments, and the way through. */
#include "cli/policy/replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static bool args_fit(const struct policy_args *a, const char *fail_on)
{
    bool known = strcmp(fail_on, "widened") == 0 || strcmp(fail_on, "any") == 0 || strcmp(fail_on, "never") == 0;
    return known && a->nwords && !(a->source.from && a->source.state_dir);
}

static int say_damage(const struct source *s)
{
    const struct source_seen *n = source_seen(s);
    if (n->damaged == 0)
        return EXIT_POLICY_OK;
    fprintf(stderr, "countersign policy replay: %llu records could not be read and were not replayed. %s\n",
            (unsigned long long)n->damaged, n->damage.text);
    return EXIT_POLICY_RUNTIME;
}

static int run(struct replayed *t, const struct policy_args *a, const char *fail_on)
{
    struct err e = {""};
    int rc = source_read(t->source, replay_take, t, &e);
    if (t->tell && t->said_at)
        fputs("\r\033[K", stderr);
    if (rc != SOURCE_OK) {
        fprintf(stderr, "countersign policy replay: %s\n", e.text);
        return EXIT_POLICY_STORE;
    }
    replay_sort(t);
    if (!a->json)
        replay_print(t);
    else if (replay_json(t) != 0)
        return EXIT_POLICY_RUNTIME;
    rc = say_damage(t->source);
    if (strcmp(fail_on, "never") != 0 && (t->widened || (strcmp(fail_on, "any") == 0 && t->narrowed + t->unknown)))
        rc = EXIT_POLICY_RUNTIME;
    return rc;
}

int policy_cli_replay(const struct policy_args *a)
{
    const char *fail_on = a->fail_on ? a->fail_on : "widened";
    struct replayed t = {.tell = isatty(STDERR_FILENO) == 1};
    struct loaded l = {0};
    struct err e = {""};
    if (!args_fit(a, fail_on))
        return POLICY_SHOW_USAGE;
    if (loaded_open_signed(&l, a->words, a->nwords, a->floors, a->packs, a->signers) != 0) {
        print_problems(&l, a->json);
        loaded_close(&l);
        return EXIT_POLICY_INVALID;
    }
    arena_init(&t.a, 64 * 1024 * 1024);
    int rc = source_open(&t.source, &a->source, (uint64_t)time(NULL) * 1000, &e);
    t.groups = calloc((size_t)2 * GROUPS_MAX, sizeof(*t.groups));
    t.bench = bench_new(l.p, t.source);
    if (rc == SOURCE_OK && t.groups && t.bench) {
        rc = run(&t, a, fail_on);
    } else {
        fprintf(stderr, "countersign policy replay: %s\n", rc ? e.text : "no memory");
        rc = rc ? rc : EXIT_POLICY_RUNTIME;
    }
    bench_free(&t.bench);
    source_close(&t.source);
    free(t.groups);
    arena_free(&t.a);
    loaded_close(&l);
    return rc;
}
