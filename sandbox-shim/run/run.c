/* The verb `run`: options, checks in order, the sandbox, and everything given back. */
#include "sandbox-shim/run/run.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/control/exit.h"
#include "sandbox-shim/env.h"
#include "sandbox-shim/plan/bwrap.h"
#include "sandbox-shim/plan/place.h"
#include "sandbox-shim/plan/plan.h"
#include "sandbox-shim/run/gateway.h"
#include "sandbox-shim/run/home.h"
#include "sandbox-shim/run/network.h"
#include "sandbox-shim/run/notify.h"
#include "sandbox-shim/run/spawn.h"

extern char **environ;

struct run {
    const char *policy, *name, *state_dir, *bwrap, *nft, *home;
    const char *with[GATEWAY_WITH_MAX], *work[PLAN_WORK_MAX], *read[PLAN_READ_MAX];
    const char *set[GATEWAY_WITH_MAX];              /* of variables, for each of with; NULL: its own */
    char names[GATEWAY_WITH_MAX][GATEWAY_NAME_MAX]; /* what with points to */
    size_t nwith, nwork, nread;
    bool quiet;
    enum { CAPTURE_IF_POSSIBLE = 0, CAPTURE_OR_NOT_AT_ALL, CAPTURE_NOT } capture;
    char homes[PATH_MAX], session[PATH_MAX + 256];
    struct gateway gateway;
    struct plan plan;
};

static int usage(void)
{
    fputs("usage: countersign run [OPTION...] -- CMD [ARG...]\n`countersign run --help` lists the options.\n",
          stderr);
    return CLI_USAGE;
}

/* Names go into paths, both of the policy's file and of the control socket's. */
static bool name_is_plain(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");

    return n > 0 && n < GATEWAY_NAME_MAX && name[n] == '\0' && name[0] != '-';
}

static int PRINTF(1, 2) complain(const char *fmt, ...)
{
    va_list ap;

    fputs("countersign run: ", stderr);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return -1;
}

static int list_add(const char **list, size_t max, size_t *n, const char *value)
{
    if (*n == max)
        return complain("`%s` is one too many", value);
    list[(*n)++] = value;
    return 0;
}

static int name_take(const char **to, const char *value)
{
    if (!name_is_plain(value))
        return complain("`%s` is not a plain name: lower-case letters, digits, - and _", value);
    *to = value;
    return 0;
}

/* NAME or NAME=SET */
static int with_take(struct run *r, const char *value)
{
    const char *set = strchr(value, '='), *name;
    size_t n = set ? (size_t)(set - value) : strlen(value), at = r->nwith;

    if (at == GATEWAY_WITH_MAX || n >= sizeof(r->names[at]))
        return complain("`%s` is one too many, or too long", value);
    memcpy(r->names[at], value, n);
    r->names[at][n] = '\0';
    r->set[at] = NULL;
    if (name_take(&name, r->names[at]) != 0 || (set && name_take(&r->set[at], set + 1) != 0))
        return -1;
    return list_add(r->with, GATEWAY_WITH_MAX, &r->nwith, name);
}

static int option_take(struct run *r, int option, const char *value)
{
    struct err e = {""};
    int rc = 0;

    switch (option) {
    case 'p': r->policy = value; break;
    case 'w': rc = with_take(r, value); break;
    case 'd': rc = list_add(r->work, PLAN_WORK_MAX, &r->nwork, value); break;
    case 'n': rc = name_take(&r->name, value); break;
    case 'h': rc = name_take(&r->home, value); break;
    case 's': r->state_dir = value; break;
    case 't': r->capture = CAPTURE_OR_NOT_AT_ALL; break;
    case 'x': r->capture = CAPTURE_NOT; break;
    case 'q': r->quiet = true; break;
    case 'b': r->bwrap = value; break;
    case 'r': rc = list_add(r->read, PLAN_READ_MAX, &r->nread, value); break;
    case 'e':
        rc = env_may_set(value, &e) != 0 ? -1 : list_add(r->plan.setenv, PLAN_LIST_MAX, &r->plan.nsetenv, value);
        break;
    case 'm': rc = limits_memory(&r->plan.limits, value, &e); break;
    case 'P': rc = limits_pids(&r->plan.limits, value, &e); break;
    case 'c': rc = limits_cpus(&r->plan.limits, value, &e); break;
    default: rc = -1;
    }
    return e.text[0] ? complain("%s", e.text) : rc;
}

static int options_parse(struct run *r, int argc, char **argv)
{
    static const struct option known[] = {
        {"policy", required_argument, NULL, 'p'},    {"with", required_argument, NULL, 'w'},
        {"workspace", required_argument, NULL, 'd'}, {"name", required_argument, NULL, 'n'},
        {"state-dir", required_argument, NULL, 's'}, {"bwrap", required_argument, NULL, 'b'},
        {"read", required_argument, NULL, 'r'},      {"setenv", required_argument, NULL, 'e'},
        {"home", required_argument, NULL, 'h'},      {"memory", required_argument, NULL, 'm'},
        {"pids", required_argument, NULL, 'P'},      {"cpus", required_argument, NULL, 'c'},
        {"transparent", no_argument, NULL, 't'},     {"no-capture", no_argument, NULL, 'x'},
        {"quiet", no_argument, NULL, 'q'},           {NULL, 0, NULL, 0},
    };
    int option;

    optind = 1;
    while ((option = getopt_long(argc, argv, "+", known, NULL)) != -1)
        if (option_take(r, option, optarg) != 0)
            return -1;
    r->plan.cmd = argv + optind;
    return argv[optind] ? 0 : -1;
}

/* Opened, and the caller's home by name and by $HOME refused. -1 in words. */
static int place_take(const struct run *r, const char *dir, bool writable, struct plan_dir *out, struct err *e)
{
    const struct passwd *pw = getpwuid(geteuid());

    out->fd = place_open(dir, out->path, e);
    if (out->fd >= 0 && ((pw && place_check(out->path, writable, r->gateway.state_dir, pw->pw_dir, e) != 0) ||
                         place_check(out->path, writable, r->gateway.state_dir, getenv("HOME"), e) != 0)) {
        close(out->fd);
        out->fd = -1;
    }
    return out->fd < 0 ? -1 : 0;
}

/* The same of what the caller names; and never the homes of other sandboxes. */
static int named_take(const struct run *r, const char *dir, bool writable, struct plan_dir *out, struct err *e)
{
    char homes[PATH_MAX];

    if (place_take(r, dir, writable, out, e) != 0)
        return -1;
    if (place_resolve(r->homes, homes) != 0)
        return errno == EACCES ? 0 /* nothing of ours is where we cannot look */
                               : err_errno(e, "the homes of sandboxes (%s) cannot be told from it", r->homes);
    return place_overlaps(out->path, homes)
               ? err_set(e, "the directory %s overlaps %s, where the homes of sandboxes lie", out->path, homes)
               : 0;
}

static int work_take(struct run *r, const char *dir, struct err *e)
{
    struct plan_dir *d = &r->plan.work[r->plan.nwork];

    if (named_take(r, dir, true, d, e) != 0)
        return -1;
    for (size_t i = 1; i < r->plan.nwork; i++)
        if (strcmp(plan_name(&r->plan.work[i]), plan_name(d)) == 0)
            return err_set(e, "%s and %s would both be " INSIDE_WORKSPACES "%s", r->plan.work[i].path, d->path,
                           plan_name(d));
    r->plan.nwork++;
    return 0;
}

static int run_places(struct run *r, struct err *e)
{
    char home[PATH_MAX];

    if (home_base(r->homes, e) != 0)
        return -1;
    if (r->nwork == 0)
        r->work[r->nwork++] = ".";
    for (size_t i = 0; i < r->nwork; i++)
        if (work_take(r, r->work[i], e) != 0)
            return -1;
    for (; r->plan.nread < r->nread; r->plan.nread++)
        if (named_take(r, r->read[r->plan.nread], false, &r->plan.read[r->plan.nread], e) != 0)
            return -1;
    return r->home && (home_make(r->homes, r->home, home, e) != 0 || place_take(r, home, true, &r->plan.home, e) != 0)
               ? -1
               : 0;
}

/* By default whatever is sent is captured, and the variables are set for who follows them. */
static int run_capture(struct run *r, struct err *e)
{
    r->nft = r->capture == CAPTURE_NOT ? NULL : network_nft(e);
    if (r->capture == CAPTURE_OR_NOT_AT_ALL && r->nft == NULL)
        return -1;
    if (r->capture == CAPTURE_IF_POSSIBLE && (r->nft == NULL || network_try(r->nft, e) != 0)) {
        r->nft = NULL;
        if (!r->quiet)
            fprintf(stderr,
                    "countersign run: connections are not captured, programs must follow the proxy "
                    "variables: %s\n",
                    e->text);
    }
    r->plan.captured = r->nft != NULL;
    r->plan.variables = r->capture != CAPTURE_OR_NOT_AT_ALL;
    return 0;
}

/* After everything that can be refused: what it makes is given back by run_main. */
static int run_limits(struct run *r, struct err *e)
{
    char said[PATH_MAX + 256];

    if (limits_begin(&r->plan.limits, "/proc/self", e) != 0)
        return -1;
    limits_say(&r->plan.limits, said, sizeof(said));
    if (said[0] && !r->quiet)
        fprintf(stderr, "countersign run: %s\n", said);
    return 0;
}

static void session_put(struct run *r)
{
    const struct passwd *pw = getpwuid(geteuid());

    if (pw)
        (void)snprintf(r->session, sizeof(r->session), "%s@%.*s", pw->pw_name, PATH_MAX - 1, r->plan.work[0].path);
    else
        (void)snprintf(r->session, sizeof(r->session), "%u@%.*s", (unsigned)geteuid(), PATH_MAX - 1,
                       r->plan.work[0].path);
}

/* The command, and meanwhile a word to the caller about what waits. */
static int run_command(struct run *r, const char *bwrap, int *status, struct err *e)
{
    struct notify *n = NULL;
    int rc;

    if (!r->quiet)
        n = notify_begin(
            &(struct notify_of){r->gateway.sock, r->session, r->gateway.name, r->state_dir, r->gateway.own > 0});
    rc = spawn_run(bwrap, r->nft, &r->plan, status, e);
    notify_end(&n);
    return rc;
}

/* Everything that can be refused is refused before the first process starts. */
static int run_do(struct run *r, int *status, struct err *e)
{
    const char *bwrap;
    int failed;

    if (spawn_check_stdio(e) != 0)
        return CLI_RUNTIME;
    bwrap = bwrap_find(r->bwrap, e);
    if (!bwrap || gateway_find(&r->gateway, r->state_dir, e) != 0)
        return CLI_RUNTIME;
    if (run_places(r, e) != 0)
        return CLI_USAGE;
    if (run_capture(r, e) != 0 || run_limits(r, e) != 0)
        return CLI_RUNTIME;
    failed = gateway_open(&r->gateway, r->policy, r->with, r->nwith, e);
    if (failed)
        return failed;
    if (!r->quiet)
        gateway_warn_files(&r->gateway, r->plan.work, r->plan.nwork);
    session_put(r);
    if (gateway_check_with(&r->gateway, r->with, r->nwith, e) != 0 ||
        gateway_sandbox(&r->gateway, r->name, r->session, r->plan.captured, r->with, r->nwith, e) != 0 ||
        gateway_leases(&r->gateway, r->with, r->set, r->nwith, !r->quiet, &r->plan, e) != 0)
        return CLI_RUNTIME;
    r->plan.name = r->gateway.name;
    r->plan.listener = r->gateway.listener;
    r->plan.ca = r->gateway.ca;
    r->plan.bundle = r->gateway.bundle;
    r->plan.truststore = r->gateway.truststore;
    if (plan_build(&r->plan, environ, e) != 0 || run_command(r, bwrap, status, e) != 0)
        return CLI_RUNTIME;
    return CLI_OK;
}

int run_main(int argc, char **argv)
{
    struct run *r = calloc(1, sizeof(*r));
    struct err e = {""};
    int status = CLI_RUNTIME, failed;

    if (!r)
        return CLI_RUNTIME;
    if (options_parse(r, argc, argv) != 0) {
        free(r);
        return usage();
    }
    failed = run_do(r, &status, &e);
    if (failed)
        fprintf(stderr, "countersign run: %s\n", e.text);
    gateway_close(&r->gateway);
    limits_end(&r->plan.limits);
    plan_free(&r->plan);
    free(r);
    return failed ? failed : status;
}
