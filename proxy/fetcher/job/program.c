#include "proxy/fetcher/job/program.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/json/json.h"
#include "common/memfd.h"
#include "common/time/instant.h"
#include "proxy/fetcher/job/own_net.h"

/* ---- its walls ---- */

static int refuse(scmp_filter_ctx ctx, int nr, int code)
{
    int rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)code), nr, 0);
    return rc == -EDOM ? 0 : rc; /* this machine has no such call */
}

/* All families but these: netlink, packets, sockets to virtual machines; not all of them stay within a namespace. */
static int refuse_sockets(scmp_filter_ctx ctx, bool own_network)
{
    const uint64_t low = 0xffffffff, last = own_network ? AF_INET6 : AF_UNIX;
    int rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, last));
    for (uint64_t family = 0; family <= last; family++)
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
            rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 1,
                                   SCMP_A0(SCMP_CMP_MASKED_EQ, low, family));
    return rc;
}

/* Of an int argument the kernel reads the low 32 bits. clone3 takes its flags in memory, where no filter looks: libc
 * does without it. */
static int refuse_some(scmp_filter_ctx ctx, bool own_network)
{
    const uint64_t namespaces = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID;
    int rc = refuse_sockets(ctx, own_network);
    for (uint64_t bit = 1; bit <= namespaces; bit <<= 1)
        if (bit & namespaces)
            rc |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                   SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
    return rc;
}

int program_filter(bool own_network, struct err *e)
{
    static const int no[] = {SCMP_SYS(setsid),
                             SCMP_SYS(setpgid),
                             SCMP_SYS(unshare),
                             SCMP_SYS(setns),
                             SCMP_SYS(mount),
                             SCMP_SYS(ptrace),
                             SCMP_SYS(bpf),
                             SCMP_SYS(process_vm_readv),
                             SCMP_SYS(process_vm_writev),
                             SCMP_SYS(keyctl),
                             SCMP_SYS(add_key),
                             SCMP_SYS(request_key),
                             SCMP_SYS(pidfd_getfd)};
    static const int missing[] = {SCMP_SYS(clone3), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter),
                                  SCMP_SYS(io_uring_register)};
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int rc = ctx == NULL ? -ENOMEM : seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    for (size_t i = 0; rc == 0 && i < sizeof(no) / sizeof(no[0]); i++)
        rc = refuse(ctx, no[i], EPERM);
    for (size_t i = 0; rc == 0 && i < sizeof(missing) / sizeof(missing[0]); i++)
        rc = refuse(ctx, missing[i], ENOSYS);
    if (rc == 0)
        rc = refuse_some(ctx, own_network);
    if (rc == 0)
        rc = seccomp_load(ctx);
    if (ctx != NULL)
        seccomp_release(ctx);
    errno = rc < 0 ? -rc : EINVAL;
    return rc == 0 ? 0 : err_errno(e, "the program cannot be confined");
}

/* ---- its start ---- */

#define ENV SPAN("env.")

struct start {
    int by; /* the process that waits for it, and without which it ends */
    char *argv[PROGRAM_ARGS_MAX + 1], *envp[FETCH_SETTINGS_MAX + 16]; /* beside those of the policy the usual ones */
    size_t argc, envc;
};

/* NAME=VALUE, or without a name the value alone. NULL: a NUL would end it early, or there is no memory. */
static char *text(struct span name, struct span value)
{
    size_t n = name.n ? name.n + 1 : 0;
    bool whole = span_index(name, '\0') == name.n && span_index(value, '\0') == value.n;
    char *out = whole ? malloc(n + value.n + 1) : NULL;
    if (out == NULL)
        return NULL;
    if (name.n) {
        memcpy(out, name.p, name.n);
        out[name.n] = '=';
    }
    if (value.n)
        memcpy(out + n, value.p, value.n);
    out[n + value.n] = '\0';
    return out;
}

static bool has_setting(const struct wire_fetch *f, struct span key)
{
    for (size_t i = 0; i < f->nsettings; i++)
        if (span_eq(f->setting[i].key, key))
            return true;
    return false;
}

/* But for those that the policy says itself: of two of a name some programs take the first, shells the last. */
static int add_those(const struct wire_fetch *f, const struct wire_setting *v, size_t n, struct start *s)
{
    for (size_t i = 0; i < n; i++)
        if (!has_setting(f, v[i].key) && (s->envp[s->envc++] = text(span_from(v[i].key, ENV.n), v[i].value)) == NULL)
            return -1;
    return 0;
}

static int add_usual(const struct wire_fetch *f, struct start *s)
{
    static const struct wire_setting usual[] = {{SPAN("env.PATH"), SPAN("/usr/local/bin:/usr/bin:/bin")},
                                                {SPAN("env.LANG"), SPAN("C.UTF-8")},
                                                {SPAN("env.TZ"), SPAN("UTC0")}},
                                     relayed[] = {{SPAN("env.HTTPS_PROXY"), SPAN("http://" OWN_NET_PROXY)},
                                                  {SPAN("env.https_proxy"), SPAN("http://" OWN_NET_PROXY)},
                                                  {SPAN("env.HTTP_PROXY"), SPAN("http://" OWN_NET_PROXY)},
                                                  {SPAN("env.http_proxy"), SPAN("http://" OWN_NET_PROXY)},
                                                  {SPAN("env.ALL_PROXY"), SPAN("http://" OWN_NET_PROXY)},
                                                  {SPAN("env.all_proxy"), SPAN("http://" OWN_NET_PROXY)}};
    int rc = add_those(f, usual, sizeof(usual) / sizeof(usual[0]), s);
    return rc == 0 && f->nhosts > 0 ? add_those(f, relayed, sizeof(relayed) / sizeof(relayed[0]), s) : rc;
}

static void wipe(char **words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (words[i] != NULL)
            explicit_bzero(words[i], strlen(words[i]));
        free(words[i]);
    }
}

/* The program has its own; secrets are among them. */
static void forget(struct start *s)
{
    wipe(s->argv, s->argc);
    wipe(s->envp, s->envc);
    *s = (struct start){.argc = 0};
}

static int prepare(const struct wire_fetch *f, struct start *s, struct err *e)
{
    for (size_t i = 0; i < f->nsettings; i++) {
        struct span key = f->setting[i].key, name = SPAN_NONE;
        char **to = NULL;
        if (span_eq(key, SPAN("argv")) && s->argc < PROGRAM_ARGS_MAX) {
            to = &s->argv[s->argc++];
        } else if (span_starts(key, ENV) && s->envc < FETCH_SETTINGS_MAX) {
            name = span_from(key, ENV.n);
            to = &s->envp[s->envc++];
        }
        if (to != NULL && (*to = text(name, f->setting[i].value)) == NULL)
            return err_set(e, "an argument or variable of the program has a NUL in it, or there is no memory");
    }
    if (add_usual(f, s) != 0)
        return err_set(e, "out of memory");
    return s->argc > 0 && s->argv[0][0] == '/' ? 0 : err_set(e, "no program is named by its full path");
}

/* What could not be done, and errno of it. */
enum step { STEP_NETWORK = 1, STEP_START };
struct failure {
    enum step step;
    int code;
};

static void become(struct start *s, int relay, int in, int out, int report) __attribute__((noreturn));
static void become(struct start *s, int relay, int in, int out, int report)
{
    struct failure failed = {.step = STEP_NETWORK};
    const struct rlimit files = {1024, 1024}, size = {1 << 30, 1 << 30};
    struct err unused;
    if (relay >= 0 && own_net_enter(relay) != 0)
        goto say;
    failed.step = STEP_START;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    signal(SIGPIPE, SIG_DFL);
    umask(077);
    if (null >= 0 && dup2(in >= 0 ? in : null, 0) == 0 && dup2(out, 1) == 1 && dup2(null, 2) == 2 &&
        chdir("/") == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0 && setrlimit(RLIMIT_FSIZE, &size) == 0 &&
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == s->by &&
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && close_range(4, ~0u, CLOSE_RANGE_CLOEXEC) == 0 &&
        program_filter(relay >= 0, &unused) == 0)
        execve(s->argv[0], s->argv, s->envp);
say:
    failed.code = errno;
    if (write(report, &failed, sizeof(failed)) < 0)
        _exit(126);
    _exit(127);
}

static int explain(const struct failure *failed, const char *program, struct err *e)
{
    if (failed->step == STEP_NETWORK)
        return err_set(
            e, "%s has hosts:, and this system gives it no network of its own, a user namespace: %s", program,
            failed->code == ENOSPC ? "sysctl user.max_user_namespaces allows no more" : strerror(failed->code));
    errno = failed->code;
    return err_errno(e, "%s cannot be run", program);
}

int program_start(const struct wire_fetch *f, int relay, int *pid, int *out, struct err *e)
{
    static struct start s;
    int printed[2] = {-1, -1}, report[2] = {-1, -1}, in = -1, rc = -1;
    struct failure failed;
    s.by = getpid();
    if (prepare(f, &s, e) != 0)
        goto out;
    if (f->input.n > 0 && ((in = memfd_of(f->input)) < 0 ||
                           lseek(in, 0, SEEK_SET) != 0)) { /* a pipe would have to be fed while it prints */
        err_set(e, "there is no memory for what the program is to read");
        goto out;
    }
    if (pipe2(printed, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0 || (*pid = fork()) < 0) {
        err_errno(e, "the program cannot be started");
        goto out;
    }
    if (*pid == 0)
        become(&s, relay, in, printed[1], report[1]);
    close(report[1]);
    report[1] = -1;
    if (read(report[0], &failed, sizeof(failed)) == (ssize_t)sizeof(failed)) {
        explain(&failed, s.argv[0], e);
        goto out;
    }
    *out = printed[0];
    printed[0] = -1;
    rc = 0;
out:
    forget(&s);
    if (in >= 0)
        close(in);
    for (int i = 0; i < 2; i++) {
        if (printed[i] >= 0)
            close(printed[i]);
        if (report[i] >= 0)
            close(report[i]);
    }
    return rc;
}

/* ---- what it printed ---- */

int program_value(const struct wire_fetch *f, struct span printed, struct arena *a, struct span *value,
                  uint64_t *lifetime_ms, struct err *e)
{
    struct span where = wire_setting(f, SPAN("value"), 0), expires = wire_setting(f, SPAN("expires_in"), 0);
    *lifetime_ms = 0;
    *value = printed;
    if (where.n == 0)
        return 0;
    const struct json *all = json_parse(printed, a);
    const struct json *v = all ? json_pointer(all, where) : NULL,
                      *x = all && expires.n ? json_pointer(all, expires) : NULL;
    if (all == NULL)
        return err_set(e, "what the program printed is not JSON, and value: says it is");
    if (v == NULL || v->type != JSON_STRING)
        return err_set(e, "the JSON that the program printed has no text at %.*s", SPAN_FMT(where));
    if (expires.n && (x == NULL || x->type != JSON_NUMBER || instant_seconds(x->text, lifetime_ms) != 0))
        return err_set(e, "the JSON that the program printed has no number of seconds at %.*s", SPAN_FMT(expires));
    *value = v->text;
    *lifetime_ms += expires.n > 0 && *lifetime_ms == 0; /* 0 would mean that it was not said */
    return 0;
}
