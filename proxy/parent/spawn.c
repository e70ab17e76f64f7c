/* Start one role: a socketpair, a fork, an exec, its settings, its peers. Or a job. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/msg.h"
#include "proxy/parent/parent.h"

extern char **environ;

struct child *parent_child_new(struct parent *p, enum role_id role, const char *info)
{
    struct child *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->role = role;
    c->parent = p;
    c->instance = role == ROLE_FRONT ? p->next_instance++ : 0;
    snprintf(c->info, sizeof(c->info), "%s", info);
    c->next = p->children;
    p->children = c;
    return c;
}

void parent_child_free(struct parent *p, struct child **c)
{
    for (struct child **at = &p->children; *at != NULL; at = &(*at)->next)
        if (*at == *c) {
            *at = (*c)->next;
            break;
        }
    chan_free(&(*c)->chan);
    timer_free(&(*c)->again);
    timer_free(&(*c)->end);
    free(*c);
    *c = NULL;
}

/* Ledger and desk share a group, so that the desk may read the store the ledger writes. */
static unsigned role_gid(const struct parent *p, enum role_id r)
{
    return (unsigned)p->uid_base + (r == ROLE_DESK ? ROLE_LEDGER : r);
}

/* In the child, between fork and exec: only async-signal-safe calls. */
static void become(int fd, const char *path, char *const argv[], char *const envp[])
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Of a terminal: they reach its whole group, and are the parent's to act on. */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (dup2(fd, 3) != 3 || fcntl(3, F_SETFD, 0) != 0)
        _exit(126);
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        _exit(126);
    close_range(4, ~0u, 0);
    execve(path, argv, envp);
    _exit(127);
}

/* Ours and what the role is told; a variable of the same name that we were given is behind and loses. */
static char **with_environment(char *const own[], size_t n)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char **all = calloc(n + count + 1, sizeof(*all));
    if (all == NULL)
        return NULL;
    memcpy(all, own, n * sizeof(*all));
    memcpy(all + n, environ, count * sizeof(*all));
    return all;
}

/* A program beside ours, with fd as its descriptor 3 and only this environment. Its pid, or -1. */
static int execute(struct parent *p, const char *name, int fd, char *const envp[])
{
    char path[640];
    snprintf(path, sizeof(path), "%s/countersign-%s", p->exe_dir, name);
    char *argv[] = {path, NULL};
    if (access(path, X_OK) != 0)
        return -1;
    int pid = fork();
    if (pid == 0)
        become(fd, path, argv, envp);
    return pid;
}

static int start(struct parent *p, struct child *c, int fd)
{
    char uid[64], gid[64];
    char *envp[8] = {NULL};
    size_t n = 0;
    if (p->uid_base > 0) {
        snprintf(uid, sizeof(uid), "COUNTERSIGN_UID=%u", (unsigned)p->uid_base + c->role);
        snprintf(gid, sizeof(gid), "COUNTERSIGN_GID=%u", role_gid(p, c->role));
        envp[n++] = uid;
        envp[n++] = gid;
    }
    /* The keeper alone sees our environment: a credential's source may be a variable. */
    char **env = c->role == ROLE_KEEPER ? with_environment(envp, n) : envp;
    if (env == NULL)
        return -1;
    int pid = execute(p, role_name(c->role), fd, env);
    if (pid > 0)
        c->pid = pid;
    if (env != envp)
        free(env);
    return pid > 0 ? 0 : -1;
}

static void gone(void *arg, struct chan *ch)
{
    struct child *c = arg;
    chan_free(&c->chan); /* the process itself is reaped by SIGCHLD */
}

int parent_spawn(struct parent *p, struct child *c)
{
    static const struct chan_ops ops = {parent_frame, gone};
    int fds[2], bad = -1;
    if (c->role == ROLE_KEEPER && !parent_master_ready(p, c))
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
        return -1;
    if (start(p, c, fds[1]) != 0) {
        close(fds[0]);
        goto out;
    }
    c->started_ms = loop_now(p->loop);
    c->ready = false;
    if ((c->chan = chan_new(p->loop, fds[0], &ops, c)) == NULL) {
        kill(c->pid, SIGKILL);
        goto out;
    }
    parent_configure(p, c);
    if (c->role == ROLE_KEEPER)
        parent_master_drop(p);
    parent_log_tell(p, c);
    parent_send_image(p, c);
    if (c->role == ROLE_LEDGER)
        parent_say_sandboxes(p, c);
    parent_link_all(p, c);
    parent_give_listeners(p, c);
    bad = 0;
out:
    close(fds[1]);
    return bad;
}

/* ---- the programs that the fetcher has started, for it may not start any itself: those of enum job_kind and no
 * others; each has a process group of its own, which ends with it ---- */

enum { JOB_USERS = 60 /* above the roles': a program that runs for us is no role's user */ };

static const char *const programs[JOB_KINDS] = {[JOB_PROGRAM] = "fetch-program", [JOB_HTTP] = "fetch-http"};

static int start_job(struct parent *p, unsigned kind, int fd)
{
    char uid[64], gid[64];
    char *envp[3] = {NULL};
    if (p->uid_base > 0) {
        snprintf(uid, sizeof(uid), "COUNTERSIGN_UID=%u", (unsigned)p->uid_base + JOB_USERS + kind);
        snprintf(gid, sizeof(gid), "COUNTERSIGN_GID=%u", (unsigned)p->uid_base + JOB_USERS + kind);
        envp[0] = uid;
        envp[1] = gid;
    }
    int pid = execute(p, programs[kind], fd, envp);
    if (pid > 0)
        (void)setpgid(pid, pid); /* it does so itself as well: whoever comes first */
    return pid;
}

void parent_job_start(struct parent *p, struct child *fetcher, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    unsigned kind = msg_get_u8(&m);
    struct running_job *free_one = NULL;
    int fd = frame_take_fd(f, 0), pid = -1;
    for (size_t i = 0; i < JOBS_MAX; i++)
        if (p->jobs[i].pid == 0)
            free_one = &p->jobs[i];
    if (msg_end(&m) == 0 && fd >= 0 && kind > JOB_NONE && kind < JOB_KINDS && free_one != NULL && !p->stopping)
        pid = start_job(p, kind, fd);
    if (pid > 0)
        *free_one = (struct running_job){pid, f->id};
    else
        (void)chan_send(fetcher->chan, M_JOB_NONE, f->id, SPAN_NONE);
    if (fd >= 0)
        close(fd);
}

static void end_job(const struct running_job *j)
{
    if (j->pid > 0 && kill(-j->pid, SIGKILL) != 0)
        (void)kill(j->pid, SIGKILL); /* it has no group of its own yet */
}

void parent_job_end(struct parent *p, struct frame *f)
{
    for (size_t i = 0; i < JOBS_MAX; i++)
        if (p->jobs[i].pid > 0 && p->jobs[i].id == f->id)
            end_job(&p->jobs[i]);
}

bool parent_job_died(struct parent *p, int pid)
{
    for (size_t i = 0; i < JOBS_MAX; i++)
        if (p->jobs[i].pid == pid) {
            (void)kill(-pid, SIGKILL); /* what it left behind */
            p->jobs[i] = (struct running_job){0};
            return true;
        }
    return false;
}

void parent_jobs_end(struct parent *p)
{
    for (size_t i = 0; i < JOBS_MAX; i++)
        end_job(&p->jobs[i]);
}
