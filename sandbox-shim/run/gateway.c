#include "sandbox-shim/run/gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/control/api.h"
#include "common/control/exit.h"
#include "common/json/json.h"
#include "sandbox-shim/run/place.h"

enum { READY_WAIT_MS = 30 * 1000, END_WAIT_MS = 10 * 1000, TREE_BYTES = 4 * 1024 * 1024 };

/* --- a gateway of our own ------------------------------------------------- */

static void __attribute__((noreturn)) become_gateway(const struct gateway *g, const char *policy, int ready)
{
    char number[16], self[] = "/proc/self/exe";
    int null = open("/dev/null", O_RDONLY);

    (void)snprintf(number, sizeof(number), "%d", ready);
    /* Its own group: a Ctrl-C meant for the command must not take the gateway from under it. */
    if (null < 0 || dup2(null, 0) != 0 || setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 ||
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0 || fcntl(ready, F_SETFD, 0) != 0) {
        fprintf(stderr, "countersign run: cannot start the gateway: %s\n", strerror(errno));
        _exit(1);
    }
    (void)execl(self, "countersign", "up", "--policy", policy, "--state-dir", g->state_dir, "--quiet", "--private",
                "--ready-fd", number, (char *)NULL);
    fprintf(stderr, "countersign run: cannot start the gateway: %s\n", strerror(errno));
    _exit(1);
}

/* One byte means ready; the end of the pipe means it gave up (and said why on stderr). */
static int ready_wait(int fd, struct err *e)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;
    int rc;

    do
        rc = poll(&p, 1, READY_WAIT_MS);
    while (rc < 0 && errno == EINTR);
    if (rc == 0)
        return err_set(e, "the gateway was not ready within %d seconds", READY_WAIT_MS / 1000);
    if (rc < 0 || read(fd, &byte, 1) != 1)
        return err_set(e, "the gateway did not start; its words stand above");
    return 0;
}

/* Its exit status, or -1. */
static int gateway_stop(struct gateway *g)
{
    int pidfd, status = -1;

    if (g->own <= 0)
        return -1;
    (void)kill(g->own, SIGTERM);
    pidfd = pidfd_open(g->own, 0);
    if (pidfd >= 0) {
        struct pollfd p = {.fd = pidfd, .events = POLLIN};
        if (poll(&p, 1, END_WAIT_MS) == 0)
            (void)kill(g->own, SIGKILL);
        close(pidfd);
    }
    if (waitpid(g->own, &status, 0) != g->own || !WIFEXITED(status))
        status = -1;
    g->own = 0;
    return status < 0 ? -1 : WEXITSTATUS(status);
}

static int gateway_start(struct gateway *g, const char *policy, struct err *e)
{
    char real[PATH_MAX];
    int pipe_fd[2], rc, status;

    if (!realpath(policy, real)) {
        (void)err_errno(e, "the policy %s cannot be read", policy);
        return CLI_INVALID;
    }
    if (pipe2(pipe_fd, O_CLOEXEC) != 0) {
        (void)err_errno(e, "cannot start the gateway");
        return CLI_RUNTIME;
    }
    g->own = fork();
    if (g->own == 0)
        become_gateway(g, real, pipe_fd[1]);
    close(pipe_fd[1]);
    if (g->own < 0) {
        close(pipe_fd[0]);
        g->own = 0;
        (void)err_errno(e, "cannot start the gateway");
        return CLI_RUNTIME;
    }
    rc = ready_wait(pipe_fd[0], e);
    close(pipe_fd[0]);
    if (rc == 0)
        return CLI_OK;
    status = gateway_stop(g);
    return status == CLI_INVALID || status == CLI_STORE ? status : CLI_RUNTIME;
}

int gateway_find(struct gateway *g, const char *state_dir, struct err *e)
{
    return api_state_dir(state_dir, g->state_dir, e) != 0 ? -1 : api_socket(state_dir, g->sock, e);
}

int gateway_open(struct gateway *g, const char *policy, const char *const *with, size_t nwith, struct err *e)
{
    char shipped[PATH_MAX];
    int running;

    running = api_running(g->sock, e);
    if (running < 0)
        return CLI_STORE;
    if (running && policy) {
        (void)err_set(e,
                      "a gateway runs already (%s) and has its own policy: leave --policy out, or say another "
                      "--state-dir for a gateway of its own",
                      g->sock);
        return CLI_USAGE;
    }
    if (running)
        return CLI_OK;
    if (!policy && nwith == 1) {
        if (place_policy(with[0], shipped, e) != 0)
            return CLI_INVALID;
        policy = shipped;
    }
    if (!policy) {
        (void)err_set(e,
                      "no gateway runs (%s): start one with `countersign up`, or say --policy FILE to have one for "
                      "this command alone",
                      g->sock);
        return CLI_STORE;
    }
    return gateway_start(g, policy, e);
}

/* --- questions ------------------------------------------------------------ */

static int ask(struct gateway *g, const char *method, const char *path, struct span body, unsigned want,
               struct dynbuf *answer, struct err *e)
{
    unsigned status;

    if (api_call(g->sock, method, path, body, &status, answer, e) != 0)
        return -1;
    return status == want ? 0 : api_explain(status, dynbuf_span(answer), e);
}

static bool has_credential(const struct json *answer, const char *name)
{
    const struct json *list = json_get(answer, SPAN("credentials"));

    for (const struct json *c = list ? list->child : NULL; c; c = c->next) {
        const struct json *present = json_get(c, SPAN("present"));
        if (span_eq(json_text(c, SPAN("name")), span_str(name)))
            return present && present->type == JSON_BOOL && present->truth;
    }
    return false;
}

int gateway_check_with(struct gateway *g, const char *const *with, size_t nwith, struct err *e)
{
    struct dynbuf answer;
    struct arena a;
    int rc;

    if (nwith == 0)
        return 0;
    arena_init(&a, TREE_BYTES);
    rc = ask(g, "GET", "/api/v1/credentials", SPAN_NONE, 200, &answer, e);
    if (rc == 0) {
        const struct json *j = json_parse(dynbuf_span(&answer), &a);
        for (size_t i = 0; i < nwith && rc == 0; i++)
            if (!has_credential(j, with[i]))
                rc = err_set(e,
                             "the gateway holds no credential named `%s`: give it one with `countersign secret set "
                             "%s`, and name it in the policy",
                             with[i], with[i]);
    }
    dynbuf_free(&answer);
    arena_free(&a);
    return rc;
}

/* A string of the answer as a C string; paths must be absolute. */
static int take(const struct json *j, const char *key, char *dst, size_t room, bool path)
{
    struct span s = json_text(j, span_str(key));

    if (s.n == 0 || s.n >= room || memchr(s.p, '\0', s.n) || (path && s.p[0] != '/'))
        return -1;
    memcpy(dst, s.p, s.n);
    dst[s.n] = '\0';
    return 0;
}

static void sandbox_body(struct dynbuf *body, const char *name, const char *session, bool captured,
                         const char *const *with, size_t nwith)
{
    struct jsonw w;

    jsonw_begin(&w, body);
    jsonw_object(&w);
    if (name)
        jsonw_kv(&w, "name", span_str(name));
    jsonw_kv(&w, "session", span_str(session));
    jsonw_key(&w, "with");
    jsonw_array(&w);
    for (size_t i = 0; i < nwith; i++)
        jsonw_string(&w, span_str(with[i]));
    jsonw_end_array(&w);
    jsonw_kv(&w, "kind", SPAN("run"));
    if (captured) {
        jsonw_key(&w, "captured");
        jsonw_bool(&w, true);
    }
    jsonw_end_object(&w);
}

/* Two runs of one name would share one listener, and the first to end would take it from the other. A lock of ours,
 * not a mark of the gateway's: a run that is killed leaves none behind. */
static int only_run(struct gateway *g, const char *name, struct err *e)
{
    char path[PATH_MAX + GATEWAY_NAME_MAX + 16];

    if (strlen(name) >= GATEWAY_NAME_MAX || strchr(name, '/'))
        return 0; /* the gateway says what is wrong with it */
    (void)snprintf(path, sizeof(path), "%s/run/sb-%s.lock", g->state_dir, name);
    g->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (g->lock < 0)
        return err_errno(e, "cannot open %s", path);
    if (flock(g->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return err_set(e, "a run of the name %s is going on: wait for its end, or choose another --name", name);
}

int gateway_sandbox(struct gateway *g, const char *name, const char *session, bool captured, const char *const *with,
                    size_t nwith, struct err *e)
{
    struct dynbuf body, answer;
    struct arena a;
    int rc;

    if (name && only_run(g, name, e) != 0)
        return -1;
    dynbuf_init(&body, 16 * 1024);
    dynbuf_init(&answer, 0);
    arena_init(&a, TREE_BYTES);
    sandbox_body(&body, name, session, captured, with, nwith);
    rc = dynbuf_ok(&body) ? ask(g, "POST", "/api/v1/sandboxes", dynbuf_span(&body), 201, &answer, e)
                          : err_set(e, "the workspace's path is too long");
    if (rc == 0) {
        const struct json *j = json_parse(dynbuf_span(&answer), &a);
        if (take(j, "name", g->name, sizeof(g->name), false) != 0 ||
            take(j, "listener", g->listener, sizeof(g->listener), true) != 0 ||
            take(j, "ca", g->ca, sizeof(g->ca), true) != 0 ||
            take(j, "bundle", g->bundle, sizeof(g->bundle), true) != 0 ||
            take(j, "truststore", g->truststore, sizeof(g->truststore), true) != 0)
            rc = err_set(e, "the gateway's answer lacks the sandbox's name, listener or certificates");
    }
    dynbuf_free(&body);
    dynbuf_free(&answer);
    arena_free(&a);
    return rc;
}

static void sandbox_end(struct gateway *g)
{
    char path[GATEWAY_NAME_MAX + 32];
    struct dynbuf answer;
    struct err e;

    if (g->name[0] == '\0')
        return;
    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%s", g->name);
    if (ask(g, "DELETE", path, SPAN_NONE, 204, &answer, &e) != 0)
        fprintf(stderr, "countersign run: the sandbox %s could not be given back: %s\n", g->name, e.text);
    dynbuf_free(&answer);
    g->name[0] = '\0';
    if (g->lock > 0)
        close(g->lock);
    g->lock = 0;
}

void gateway_close(struct gateway *g)
{
    sandbox_end(g);
    (void)gateway_stop(g);
}
