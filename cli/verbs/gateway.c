/* countersign up, reload, status, signin */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/verb.h"

enum { SHORT_DIGEST = 12 };

/* --- up ------------------------------------------------------------------- */

int up_main(int argc, char **argv)
{
    char path[PATH_MAX], name[] = "countersignd";

    if (verb_program("countersignd", path) != 0)
        return verb_fail(CLI_RUNTIME, "countersignd is not installed: %s: %s", path, strerror(errno));
    argv[0] = name;
    (void)execv(path, argv);
    return verb_fail(CLI_RUNTIME, "cannot start %s: %s", path, strerror(errno));
}

/* --- one call ------------------------------------------------------------- */

/* Turned away before anybody could say whose they are; or, by a front, before the judge could be asked. */
static void print_refused(const struct json *rows)
{
    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
        fputs("refused   ", stdout);
        print_text(member_text(r, "listener"));
        fputs("  ", stdout);
        print_text(member_text(r, "code"));
        printf("  %llu times\n", (unsigned long long)member_u64(r, "count"));
    }
}

static void print_files(const struct json *files)
{
    for (const struct json *f = files ? files->child : NULL; f; f = f->next) {
        struct span state = member_text(f, "state"), name = member_text(f, "name"), path = member_text(f, "path");
        fputs("          ", stdout);
        print_text(path.n && !span_starts(name, SPAN("/")) ? path : name); /* whose directory would that be? */
        if (span_eq(state, SPAN("changed")))
            fputs("  CHANGED since it was read: not in force until `countersign reload`", stdout);
        else if (!span_eq(state, SPAN("same")))
            print_text(member_text(f, "why"));
        putchar('\n');
    }
}

static void print_policy(const struct json *j, uint64_t now_ms)
{
    const struct json *pinned = json_get(j, SPAN("pinned"));
    char age[32];

    fputs("policy    ", stdout);
    print_text(member_text(j, "policy_name").n ? member_text(j, "policy_name") : SPAN("(without a name)"));
    fputs(", version ", stdout);
    print_text(span_first(member_text(j, "policy"), SHORT_DIGEST));
    if (member_u64(j, "in_force_ms"))
        printf(", %llu rules, in force for %s", (unsigned long long)member_u64(j, "rules"),
               age_text(now_ms, member_u64(j, "in_force_ms"), age));
    if (pinned) {
        fputs("\n          PINNED by a rollback of ", stdout);
        print_person(member_text(pinned, "by"));
        fputs(": the policy files are not in force (countersign policy rollback --end)", stdout);
    }
    putchar('\n');
    print_files(json_get(j, SPAN("files")));
    if (member_text(j, "needs_restart").n) {
        fputs("restart   needed for what changed in: ", stdout);
        print_text(member_text(j, "needs_restart"));
        putchar('\n');
    }
}

/* Where to decide, and what waits there. */
static void print_page(const struct json *j, uint64_t now_ms)
{
    uint64_t waiting = member_u64(j, "waiting");
    char age[32];

    fputs("page      ", stdout);
    print_text(member_text(j, "page"));
    fputs("  (countersign signin opens it)\nwaiting   ", stdout);
    if (!json_get(j, SPAN("waiting")))
        puts("not known: the store cannot be read");
    else if (waiting == 0)
        puts("nothing");
    else
        printf("%llu, the oldest for %s (countersign approvals list)\n", (unsigned long long)waiting,
               age_text(now_ms, member_u64(j, "oldest_ms"), age));
    uint64_t turns = member_u64(j, "turns_nobody_runs");
    if (turns)
        printf("turns     no process runs turns: %llu %s for %s (countersign-broker(7), One part alone)\n",
               (unsigned long long)turns, turns == 1 ? "waits" : "wait, the first",
               age_text(now_ms, member_u64(j, "turns_since_ms"), age));
}

static void print_listeners(const struct json *j)
{
    const struct json *rows = json_get(j, SPAN("listeners"));

    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
        struct span way = member_text(r, "way");
        print_text(way);
        printf("%*s", way.n < 10 ? (int)(10 - way.n) : 1, "");
        print_text(member_text(r, "url"));
        fputs("  (", stdout);
        print_text(member_text(r, "name"));
        fputs(", sandboxes by ", stdout);
        print_text(member_text(r, "sandbox").n ? SPAN("this listener: ") : member_text(r, "identity"));
        print_text(member_text(r, "sandbox"));
        puts(")");
    }
}

static void print_roles(const struct json *roles)
{
    for (const struct json *r = roles ? roles->child : NULL; r; r = r->next) {
        const struct json *ready = json_get(r, SPAN("ready"));
        struct span name = member_text(r, "role");
        print_text(name);
        printf("%*s", name.n < 10 ? (int)(10 - name.n) : 1, "");
        printf("pid %llu  %s", (unsigned long long)member_u64(r, "pid"),
               ready && ready->truth ? "ready" : "starting");
        if (member_text(r, "does").n) {
            fputs("  does ", stdout);
            print_text(member_text(r, "does"));
        }
        if (member_u64(r, "fails"))
            printf("  failed %llu times", (unsigned long long)member_u64(r, "fails"));
        putchar('\n');
    }
}

static void print_frozen(const struct json *j)
{
    const struct json *frozen = json_get(j, SPAN("frozen"));
    char since[32];

    if (!frozen || !frozen->truth)
        return;
    fputs("writes    frozen by ", stdout);
    print_person(member_text(j, "by"));
    printf(" since %s", time_text(member_u64(j, "since_ms"), since));
    if (member_text(j, "reason").n) {
        fputs(": ", stdout);
        print_text(member_text(j, "reason"));
    }
    puts(" (countersign thaw)");
}

/* Of the gateway; and of this program, when that is another one. */
static void print_versions(const struct json *j)
{
    fputs("version   ", stdout);
    print_text(member_text(j, "version"));
    if (!span_eq(member_text(j, "version"), SPAN(PACKAGE_VERSION)))
        fputs(" (this command is " PACKAGE_VERSION ")", stdout);
    putchar('\n');
}

static void print_sandboxes(const struct json *j)
{
    uint64_t started = j ? member_u64(j, "started") : 0, paused = j ? member_u64(j, "paused") : 0;

    if (started > 0)
        printf("started   %llu sandboxes, %llu of them paused\n", (unsigned long long)started,
               (unsigned long long)paused);
}

static void print_status(const struct json *j, const struct json *frozen)
{
    uint64_t now_ms = member_u64(j, "time_ms");
    char age[32], since[32];

    print_versions(j);
    fputs("mode      ", stdout);
    print_text(member_text(j, "mode"));
    putchar('\n');
    print_frozen(frozen);
    printf("up        for %s, since %s\n", age_text(now_ms, member_u64(j, "started_ms"), age),
           time_text(member_u64(j, "started_ms"), since));
    fputs("state     ", stdout);
    print_text(member_text(j, "state_dir"));
    putchar('\n');
    print_policy(j, now_ms);
    print_page(j, now_ms);
    print_listeners(j);
    print_roles(json_get(j, SPAN("roles")));
    print_sandboxes(json_get(j, SPAN("sandboxes")));
    print_refused(json_get(j, SPAN("refused")));
}

static int one_call(const struct cli_call *c, const char *method, const char *path, unsigned want, const char *member)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, method, path, SPAN_NONE, want);
    if (rc == CLI_RUNTIME && g.status == 422)
        rc = CLI_INVALID; /* of a reload: the policy */
    if (rc == CLI_OK && c->json) {
        verb_print_answer(&g);
    } else if (rc == CLI_OK) {
        print_lines(member_text(g.tree, member));
        putchar('\n');
    }
    verb_end(&g);
    return rc;
}

int reload_main(const struct cli_call *c)
{
    return one_call(c, "POST", "/api/v1/reload", 200, "text");
}

int status_main(const struct cli_call *c)
{
    struct gateway_call g, freeze;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/status", SPAN_NONE, 200);
    if (rc == CLI_OK && c->json) {
        verb_print_answer(&g);
    } else if (rc == CLI_OK) {
        rc = verb_begin(&freeze, c);
        if (rc == CLI_OK)
            rc = verb_ask(&freeze, "GET", "/api/v1/freeze", SPAN_NONE, 200);
        print_status(g.tree, rc == CLI_OK ? freeze.tree : NULL);
        verb_end(&freeze);
    }
    verb_end(&g);
    return rc;
}

int signin_main(const struct cli_call *c)
{
    return one_call(c, "POST", "/api/v1/signin", 201, "url");
}
