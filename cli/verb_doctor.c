/* countersign doctor: what a machine needs before anything else is worth asking. */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/verb.h"
#include "cli/verbs.h"

/* Each check says one line; bad ones count. */
static unsigned bad;

static void line(bool good, const char *what, const char *fmt, ...) PRINTF(3, 4);
static void line(bool good, const char *what, const char *fmt, ...)
{
    va_list ap;

    printf("%-4s %-12s ", good ? "ok" : "BAD", what);
    va_start(ap, fmt);
    (void)vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    bad += !good;
}

static void check_state(const char *dir)
{
    struct stat st;

    if (stat(dir, &st) != 0)
        line(errno == ENOENT, "state", "%s: %s", dir,
             errno == ENOENT ? "not there yet, `countersign up` makes it" : strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        line(false, "state", "%s is not a directory", dir);
    else if (st.st_mode & 0022)
        line(false, "state", "%s can be written by others: chmod go-w it", dir);
    else
        line(true, "state", "%s", dir);
}

static void check_ca(const char *dir)
{
    char path[PATH_MAX + 16];

    (void)snprintf(path, sizeof(path), "%s/bundle.crt", dir);
    if (access(path, R_OK) == 0)
        line(true, "ca", "%s", path);
    else
        line(errno == ENOENT, "ca", "%s: %s", path, errno == ENOENT ? "not made yet" : strerror(errno));
}

static void check_roles(struct gateway_call *g)
{
    unsigned status;
    struct err e;
    int running = api_running(g->sock, &e);

    if (running <= 0) {
        line(running == 0, "gateway", "%s", running == 0 ? "does not run (start it with `countersign up`)" : e.text);
        return;
    }
    if (api_call(g->sock, "GET", "/api/v1/status", SPAN_NONE, &status, &g->answer, &e) != 0)
        line(false, "gateway", "%s", e.text);
    else if (status != 200)
        line(false, "gateway", "answers with status %u", status);
    else
        line(true, "gateway", "runs; `countersign status` says more");
}

static void check_dns(void)
{
    struct addrinfo *list = NULL;
    int rc = getaddrinfo("localhost", NULL, NULL, &list);

    line(rc == 0, "names", "%s", rc == 0 ? "localhost has an address" : gai_strerror(rc));
    if (list)
        freeaddrinfo(list);
}

/* Certificates are judged by the clock: one that stands before this was written is wrong. */
static void check_clock(void)
{
    const time_t written = 1735689600; /* 2025-01-01 */
    line(time(NULL) > written, "clock", "%s", time(NULL) > written ? "after 2025" : "stands before 2025: set it");
}

static void check_program(const char *path, const char *what, const char *hint)
{
    bool there = access(path, X_OK) == 0;
    line(there, what, "%s%s%s", path, there ? "" : " is missing: ", there ? "" : hint);
}

static void check_userns(void)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    bool good = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    line(good, "namespaces", "%s",
         good ? "user namespaces can be made"
              : "user namespaces cannot be made: `countersign run` needs them "
                "(kernel.unprivileged_userns_clone, AppArmor, or a container's seccomp profile)");
}

int doctor_main(int argc, char **argv)
{
    static const struct option options[] = {VERB_OPTIONS, {NULL, 0, NULL, 0}};
    const char *state_dir = NULL;
    struct gateway_call g;
    char dir[PATH_MAX];
    struct err e;
    int o;

    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (o == OPT_STATE_DIR)
            state_dir = optarg;
        else
            return cli_usage("doctor");
    if (optind != argc)
        return cli_usage("doctor");
    if (api_state_dir(state_dir, dir, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    int rc = verb_begin(&g, state_dir, false);
    if (rc == CLI_OK) {
        check_state(dir);
        check_ca(dir);
        check_roles(&g);
        check_dns();
        check_clock();
        check_program("/usr/bin/bwrap", "bubblewrap", "install the package bubblewrap");
        check_userns();
    }
    verb_end(&g);
    return rc != CLI_OK ? rc : bad ? CLI_RUNTIME : CLI_OK;
}
