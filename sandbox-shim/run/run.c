/* The verb `run`: options, checks in order, the sandbox, and everything given back. */
#include "sandbox-shim/run/run.h"

#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/control/exit.h"
#include "sandbox-shim/env.h"
#include "sandbox-shim/run/gateway.h"
#include "sandbox-shim/run/network.h"
#include "sandbox-shim/run/notify.h"
#include "sandbox-shim/run/place.h"
#include "sandbox-shim/run/plan.h"
#include "sandbox-shim/run/spawn.h"

extern char **environ;

struct run {
    const char *policy, *workspace, *name, *state_dir, *bwrap, *nft;
    const char *with[GATEWAY_WITH_MAX];
    size_t nwith;
    const char *read[PLAN_READ_MAX];
    size_t nread;
    bool notify, quiet;
    char resolved[PATH_MAX], session[PATH_MAX + 256];
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

static int option_take(struct run *r, int option, const char *value)
{
    struct err e;

    switch (option) {
    case 'p': r->policy = value; return 0;
    case 'w':
        if (r->nwith == GATEWAY_WITH_MAX || !name_is_plain(value))
            break;
        r->with[r->nwith++] = value;
        return 0;
    case 'd': r->workspace = value; return 0;
    case 'n':
        if (!name_is_plain(value))
            break;
        r->name = value;
        return 0;
    case 's': r->state_dir = value; return 0;
    case 't': r->plan.transparent = true; return 0;
    case 'N': r->notify = true; return 0;
    case 'q': r->quiet = true; return 0;
    case 'b': r->bwrap = value; return 0;
    case 'r':
        if (r->nread == PLAN_READ_MAX)
            break;
        r->read[r->nread++] = value;
        return 0;
    case 'e':
        if (r->plan.nsetenv == PLAN_LIST_MAX)
            break;
        if (env_may_set(value, &e) != 0) {
            fprintf(stderr, "countersign run: %s\n", e.text);
            return -1;
        }
        r->plan.setenv[r->plan.nsetenv++] = value;
        return 0;
    default: return -1;
    }
    fprintf(stderr, "countersign run: `%s` is not a plain name, or one too many\n", value);
    return -1;
}

static int options_parse(struct run *r, int argc, char **argv)
{
    static const struct option known[] = {
        {"policy", required_argument, NULL, 'p'},    {"with", required_argument, NULL, 'w'},
        {"workspace", required_argument, NULL, 'd'}, {"name", required_argument, NULL, 'n'},
        {"state-dir", required_argument, NULL, 's'}, {"bwrap", required_argument, NULL, 'b'},
        {"read", required_argument, NULL, 'r'},      {"setenv", required_argument, NULL, 'e'},
        {"transparent", no_argument, NULL, 't'},     {"notify", no_argument, NULL, 'N'},
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
static int place_take(const struct run *r, const char *dir, bool writable, char out[PATH_MAX], struct err *e)
{
    const struct passwd *pw = getpwuid(geteuid());
    int fd = place_open(dir, out, e);

    if (fd >= 0 && ((pw && place_check(out, writable, r->gateway.state_dir, pw->pw_dir, e) != 0) ||
                    place_check(out, writable, r->gateway.state_dir, getenv("HOME"), e) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int run_places(struct run *r, struct err *e)
{
    r->plan.workspace = place_take(r, r->workspace ? r->workspace : ".", true, r->resolved, e);
    if (r->plan.workspace < 0)
        return -1;
    for (size_t i = 0; i < r->nread; i++) {
        struct plan_read *read = &r->plan.read[r->plan.nread];
        read->fd = place_take(r, r->read[i], false, read->path, e);
        if (read->fd < 0)
            return -1;
        r->plan.nread++;
    }
    return 0;
}

static void session_put(struct run *r)
{
    const struct passwd *pw = getpwuid(geteuid());

    if (pw)
        (void)snprintf(r->session, sizeof(r->session), "%s@%s", pw->pw_name, r->resolved);
    else
        (void)snprintf(r->session, sizeof(r->session), "%u@%s", (unsigned)geteuid(), r->resolved);
}

/* The command, and meanwhile a word to the caller about what waits. */
static int run_command(struct run *r, const char *bwrap, int *status, struct err *e)
{
    struct notify *n = NULL;
    int rc;

    if (!r->quiet && (r->notify || isatty(STDERR_FILENO)))
        n = notify_begin(r->gateway.sock, r->session, r->state_dir);
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
    bwrap = spawn_bwrap(r->bwrap, e);
    if (r->plan.transparent && (r->nft = network_nft(e)) == NULL)
        return CLI_RUNTIME;
    if (!bwrap || gateway_find(&r->gateway, r->state_dir, e) != 0)
        return CLI_RUNTIME;
    if (run_places(r, e) != 0)
        return CLI_USAGE;
    failed = gateway_open(&r->gateway, r->policy, r->with, r->nwith, e);
    if (failed)
        return failed;
    session_put(r);
    if (gateway_check_with(&r->gateway, r->with, r->nwith, e) != 0 ||
        gateway_sandbox(&r->gateway, r->name, r->session, r->plan.transparent, r->with, r->nwith, e) != 0)
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
    r->plan.workspace = -1;
    if (options_parse(r, argc, argv) != 0) {
        free(r);
        return usage();
    }
    failed = run_do(r, &status, &e);
    if (failed)
        fprintf(stderr, "countersign run: %s\n", e.text);
    gateway_close(&r->gateway);
    plan_free(&r->plan);
    free(r);
    return failed ? failed : status;
}
