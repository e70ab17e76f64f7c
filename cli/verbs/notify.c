/* countersign notify list|test: who is told outside the page, and whether they are */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "common/control/api.h"
#include "common/time/clock.h"

enum { LOOK_MS = 200, PATIENCE_MS = 40 * 1000 }; /* a try has 10 s, and waits for one that goes before */

static int ask(struct gateway_call *g)
{
    return verb_ask(g, "GET", "/api/v1/notify", SPAN_NONE, 200);
}

static int finish(struct gateway_call *g, int rc)
{
    dynbuf_wipe(&g->answer);
    verb_end(g);
    return rc;
}

int notify_list(const struct cli_call *c)
{
    struct gateway_call g;
    struct table t;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = ask(&g);
    if (rc == CLI_OK && c->json)
        verb_print_answer(&g);
    if (rc != CLI_OK || c->json)
        return finish(&g, rc);
    const struct json *rows = json_get(g.tree, SPAN("targets"));
    table_begin(&t, "NAME\tWAY\tWAIT\tGIVEN UP\tLAST ANSWER");
    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
        table_text(&t, member_text(r, "name"));
        table_text(&t, member_text(r, "way"));
        table_cell(&t, "%llu", (unsigned long long)member_u64(r, "waiting"));
        table_cell(&t, "%llu", (unsigned long long)member_u64(r, "given_up"));
        table_text(&t, member_text(r, "words"));
        table_row(&t);
    }
    table_end(&t, "Nobody is told outside the page: notify: of countersign.yaml(5) names them.");
    return finish(&g, rc);
}

static const struct json *row_of(const struct gateway_call *g, const char *name)
{
    const struct json *rows = json_get(g->tree, SPAN("targets"));

    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next)
        if (span_eq(member_text(r, "name"), span_str(name)))
            return r;
    return NULL;
}

/* Until a test that is newer than `before` has had its first try. */
static int outcome(struct gateway_call *g, const char *name, uint64_t before)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    uint64_t end = clock_ms(CLOCK_MONOTONIC) + PATIENCE_MS;

    while (clock_ms(CLOCK_MONOTONIC) < end) {
        dynbuf_wipe(&g->answer);
        int rc = ask(g);
        const struct json *r = rc == CLI_OK ? row_of(g, name) : NULL;
        if (!r)
            return rc == CLI_OK ? verb_fail(CLI_RUNTIME, "nobody of that name is told any more") : rc;
        if (member_u64(r, "test_ms") > before && member_u64(r, "test_tries") > 0) {
            bool told = span_eq(member_text(r, "test_state"), SPAN("told"));
            struct span words = member_text(r, "words");
            if (!told)
                return verb_fail(CLI_RUNTIME, "not told: %.*s", SPAN_FMT(words));
            printf("Told: ");
            print_text(words);
            putchar('\n');
            return CLI_OK;
        }
        (void)nanosleep(&pause, NULL);
    }
    return verb_fail(CLI_RUNTIME, "nothing came of it in %d s; `countersign notify list` says how it goes on",
                     PATIENCE_MS / 1000);
}

int notify_test(const struct cli_call *c)
{
    struct gateway_call g;
    char path[128];
    uint64_t before = 0;
    size_t n = strlen(c->word[0]);
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && (n == 0 || n > 63 || strspn(c->word[0], "abcdefghijklmnopqrstuvwxyz0123456789-._") != n))
        rc = verb_fail(CLI_USAGE, "a name here is 1 to 63 of a-z 0-9 . _ -");
    if (rc == CLI_OK && (rc = ask(&g)) == CLI_OK) {
        const struct json *r = row_of(&g, c->word[0]);
        before = r ? member_u64(r, "test_ms") : 0;
        dynbuf_wipe(&g.answer);
        (void)snprintf(path, sizeof(path), "/api/v1/notify/%s/test", c->word[0]);
        rc = verb_ask(&g, "POST", path, SPAN("{}"), 204);
    }
    if (rc == CLI_OK)
        rc = outcome(&g, c->word[0], before);
    return finish(&g, rc);
}
