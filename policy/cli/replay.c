/* policy replay: arguments, and the way through. */
#include "policy/cli/replay.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct replay_args {
    struct source_args source;
    const char *packs, *floors, *signers, *fail_on;
    bool json;
};

static int read_options(int argc, char **argv, struct replay_args *a)
{
    static const struct option options[] = {
        {"since", required_argument, NULL, 's'},   {"until", required_argument, NULL, 'u'},
        {"from", required_argument, NULL, 'r'},    {"state-dir", required_argument, NULL, 'd'},
        {"packs", required_argument, NULL, 'p'},   {"floors", required_argument, NULL, 'f'},
        {"json", no_argument, NULL, 'j'},          {"fail-on", required_argument, NULL, 'o'},
        {"signers", required_argument, NULL, 'k'}, {NULL, 0, NULL, 0}};
    int o;
    optind = 1;
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (o) {
        case 's': a->source.since = optarg; break;
        case 'u': a->source.until = optarg; break;
        case 'r': a->source.from = optarg; break;
        case 'd': a->source.state_dir = optarg; break;
        case 'p': a->packs = optarg; break;
        case 'f': a->floors = optarg; break;
        case 'o': a->fail_on = optarg; break;
        case 'k': a->signers = optarg; break;
        case 'j': a->json = true; break;
        default: return -1;
        }
    bool known =
        strcmp(a->fail_on, "widened") == 0 || strcmp(a->fail_on, "any") == 0 || strcmp(a->fail_on, "never") == 0;
    return known && optind < argc && !(a->source.from && a->source.state_dir) ? 0 : -1;
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

static int run(struct replayed *t, const struct replay_args *a)
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
    if (strcmp(a->fail_on, "never") != 0 &&
        (t->widened || (strcmp(a->fail_on, "any") == 0 && t->narrowed + t->unknown)))
        rc = EXIT_POLICY_RUNTIME;
    return rc;
}

int policy_cli_replay(int argc, char **argv)
{
    struct replay_args a = {.fail_on = "widened"};
    struct replayed t = {.tell = isatty(STDERR_FILENO) == 1};
    struct loaded l = {0};
    struct err e = {""};
    if (read_options(argc, argv, &a) != 0)
        return policy_usage("replay");
    if (loaded_open_signed(&l, (const char *const *)argv + optind, (size_t)(argc - optind), a.floors, a.packs,
                           a.signers) != 0) {
        print_problems(&l, a.json);
        loaded_close(&l);
        return EXIT_POLICY_INVALID;
    }
    arena_init(&t.a, 64 * 1024 * 1024);
    int rc = source_open(&t.source, &a.source, (uint64_t)time(NULL) * 1000, &e);
    t.groups = calloc((size_t)2 * GROUPS_MAX, sizeof(*t.groups));
    t.bench = bench_new(l.p, t.source);
    if (rc == SOURCE_OK && t.groups && t.bench) {
        rc = run(&t, &a);
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
