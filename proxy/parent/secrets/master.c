/* The keeper's master key, where master_key: says that it is kept elsewhere than in the keeper's folder: before each
 * start of a keeper a file is opened, or a program started and its end waited for. What is in the file, or what the
 * program left in its pipe, is handed to that keeper unread. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "proxy/parent/parent.h"

extern char **environ;

enum { PROGRAM_MS = 30 * 1000 };

void parent_master_drop(struct parent *p)
{
    if (p->master.fd >= 0)
        close(p->master.fd);
    p->master.fd = -1;
}

void parent_master_end(struct parent *p)
{
    int pid = p->master.pid;
    if (pid > 0 && kill(-pid, SIGKILL) != 0)
        (void)kill(pid, SIGKILL); /* it has no group of its own yet */
}

/* A gateway that was never up does not come up; one that was tries again, as with a keeper that ended. */
static void failed(struct parent *p, struct child *keeper, const struct err *e)
{
    log_error("master_key: %s", e->text);
    parent_master_drop(p);
    keeper->started_ms = loop_now(p->loop);
    parent_restart_later(p, keeper);
}

/* In the child, between fork and exec. The operator's own program, as who started the gateway and with that
 * environment: it may have to ask over the network, or a device. What it says beside the key is shown to nobody. */
static void __attribute__((noreturn)) become(const struct config_master *m, int out)
{
    char *argv[CONFIG_ARGS + 1] = {NULL};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    umask(077);
    for (size_t i = 0; i < CONFIG_ARGS && m->argv[i][0] != '\0'; i++)
        argv[i] = (char *)m->argv[i];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(null, 2) == 2 && chdir("/") == 0 &&
        setsid() >= 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && close_range(3, ~0u, 0) == 0)
        execve(argv[0], argv, environ);
    _exit(127);
}

static void too_slow(void *arg)
{
    struct parent *p = arg;
    p->master.late = true;
    parent_master_end(p);
}

static int start_program(struct parent *p, struct err *e)
{
    struct master *m = &p->master;
    const char *program = p->config->master.argv[0];
    int out[2] = {-1, -1};
    if (access(program, X_OK) != 0)
        return err_errno(e, "%s cannot be run", program);
    if (m->patience == NULL && (m->patience = timer_new(p->loop, too_slow, p)) == NULL)
        return err_set(e, "out of memory");
    /* The keeper reads what is there and waits for nobody who may still hold the other end. */
    if (pipe2(out, O_CLOEXEC) != 0 || fcntl(out[0], F_SETFL, O_NONBLOCK) != 0 || (m->pid = fork()) < 0) {
        m->pid = 0;
        err_errno(e, "%s cannot be started", program);
        goto out;
    }
    if (m->pid == 0)
        become(&p->config->master, out[1]);
    m->late = false;
    m->fd = out[0];
    out[0] = -1;
    timer_set(m->patience, PROGRAM_MS);
out:
    for (int i = 0; i < 2; i++)
        if (out[i] >= 0)
            close(out[i]);
    return m->pid > 0 ? 0 : -1;
}

bool parent_master_ready(struct parent *p, struct child *keeper)
{
    const struct config_master *c = &p->config->master;
    struct err e = {{0}};
    if (c->from == SOURCE_NONE || (p->master.pid == 0 && p->master.fd >= 0))
        return true;
    if (p->master.pid > 0)
        return false;
    int bad = 0;
    if (c->from == SOURCE_EXEC)
        bad = start_program(p, &e);
    else if ((p->master.fd = parent_open_secret(c->from, span_str(c->where), &e)) < 0)
        bad = -1;
    if (bad)
        failed(p, keeper, &e);
    return p->master.fd >= 0 && p->master.pid == 0;
}

/* 0: it ended well. Its words are not shown, for the key may be among them. */
static int judge_end(const struct parent *p, int status, struct err *e)
{
    const char *program = p->config->master.argv[0];
    if (p->master.late)
        return err_set(e, "%s did not end within %d s, or prints without end", program, PROGRAM_MS / 1000);
    if (WIFSIGNALED(status))
        return err_set(e, "%s was ended by signal %d", program, WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return err_set(e, "%s ended with status %d; run it by hand to see why (what it says is not shown)", program,
                       WEXITSTATUS(status));
    return 0;
}

bool parent_master_died(struct parent *p, int pid, int status)
{
    struct child *keeper = parent_child(p, ROLE_KEEPER, 0);
    struct err e = {{0}};
    if (pid != p->master.pid)
        return false;
    (void)kill(-pid, SIGKILL); /* what it left behind */
    timer_clear(p->master.patience);
    p->master.pid = 0;
    if (p->stopping || keeper == NULL)
        parent_master_drop(p);
    else if (judge_end(p, status, &e) != 0)
        failed(p, keeper, &e);
    else if (parent_spawn(p, keeper) != 0)
        parent_restart_later(p, keeper);
    return true;
}
