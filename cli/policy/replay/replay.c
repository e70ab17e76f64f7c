/* policy replay: arguments, and the way through. */
#include "cli/policy/replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int say_damage(const struct source *s)
{
    const struct source_seen *n = source_seen(s);
    if (n->damaged == 0)
        return CLI_OK;
    fprintf(stderr, "countersign policy replay: %llu records could not be read and were not replayed. %s\n",
            (unsigned long long)n->damaged, n->damage.text);
    return CLI_RUNTIME;
}

static int run(struct replayed *t, const struct cli_call *c, const char *fail_on)
{
    struct err e = {""};
    int rc = source_read(t->source, replay_take, t, &e);
    if (t->tell && t->said_at)
        fputs("\r\033[K", stderr);
    if (rc != SOURCE_OK) {
        fprintf(stderr, "countersign policy replay: %s\n", e.text);
        return CLI_STORE;
    }
    replay_sort(t);
    if (!c->json)
        replay_print(t);
    else if (replay_json(t) != 0)
        return CLI_RUNTIME;
    rc = say_damage(t->source);
    if (strcmp(fail_on, "never") != 0 && (t->widened || (strcmp(fail_on, "any") == 0 && t->narrowed + t->unknown)))
        rc = CLI_RUNTIME;
    return rc;
}

int policy_replay(const struct cli_call *c)
{
    const char *fail_on = cli_value(c, "fail-on") ? cli_value(c, "fail-on") : "widened";
    const struct source_args from = {c->state_dir, cli_value(c, "from"), cli_value(c, "since"),
                                     cli_value(c, "until")};
    struct replayed t = {.tell = isatty(STDERR_FILENO) == 1};
    struct loaded l = {0};
    struct err e = {""};
    if (from.from && from.state_dir)
        return cli_complain(c->verb, "--from and --state-dir exclude each other");
    if (loaded_open_for(&l, c, (const char *const *)c->word, c->nwords, cli_value(c, "floors")) != 0) {
        loaded_print(&l, c->json);
        loaded_close(&l);
        return CLI_INVALID;
    }
    arena_init(&t.a, 64 * 1024 * 1024);
    int rc = source_open(&t.source, &from, (uint64_t)time(NULL) * 1000, &e);
    t.groups = calloc((size_t)2 * GROUPS_MAX, sizeof(*t.groups));
    t.bench = bench_new(l.p, t.source);
    if (rc == SOURCE_OK && t.groups && t.bench) {
        rc = run(&t, c, fail_on);
    } else {
        fprintf(stderr, "countersign policy replay: %s\n", rc ? e.text : "no memory");
        rc = rc ? rc : CLI_RUNTIME;
    }
    bench_free(&t.bench);
    source_close(&t.source);
    free(t.groups);
    arena_free(&t.a);
    loaded_close(&l);
    return rc;
}
