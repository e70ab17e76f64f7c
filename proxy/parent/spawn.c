/* Start one role: a socketpair, a fork, an exec, its settings, its peers. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/msg.h"
#include "common/role/cgroup.h"
#include "proxy/duty/duty.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/secrets/places.h"

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
static void become(int dir, int fd, const char *path, char *const argv[], char *const envp[],
                   const struct cgroup *into)
{
    sigset_t none;
    if (into != NULL && cgroup_join(into) != 0)
        _exit(126);
    /* What begins there may become the sandbox's: the terminal that the gateway runs at is not to be had in there. */
    if (dir >= 0 && (fchdir(dir) != 0 || setsid() < 0))
        _exit(126);
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

/* only: behind --only among its words; NULL: it has none. */
static int execute(struct parent *p, int dir, const char *name, const char *only, int fd, char *const envp[],
                   const struct cgroup *into)
{
    char path[640], option[] = "--only", word[32];
    snprintf(path, sizeof(path), "%s/countersign-%s", p->exe_dir, name);
    snprintf(word, sizeof(word), "%s", only != NULL ? only : "");
    char *argv[] = {path, only != NULL ? option : NULL, word, NULL};
    if (access(path, X_OK) != 0)
        return -1;
    int pid = fork();
    if (pid == 0)
        become(dir, fd, path, argv, envp, into);
    return pid;
}

int parent_execute_in(struct parent *p, int dir, const char *name, int fd, char *const envp[],
                      const struct cgroup *into)
{
    return execute(p, dir, name, NULL, fd, envp, into);
}

int parent_execute(struct parent *p, const char *name, int fd, char *const envp[], const struct cgroup *into)
{
    return parent_execute_in(p, -1, name, fd, envp, into);
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
    const char *only = c->role == ROLE_BROKER ? duty_words(duty_of(c->instance)) : NULL;
    int pid = execute(p, -1, role_name(c->role), only, fd, env, NULL);
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
    c->ready = c->welcomed = false;
    if ((c->chan = chan_new(p->loop, fds[0], &ops, c)) == NULL) {
        kill(c->pid, SIGKILL);
        goto out;
    }
    parent_configure(p, c);
    if (c->role == ROLE_KEEPER) {
        parent_master_drop(p);
        parent_give_places(p, c);
    }
    parent_log_tell(p, c);
    parent_send_image(p, c);
    if (c->role == ROLE_LEDGER)
        parent_say_sandboxes(p, c);
    if (c->role == ROLE_DESK)
        parent_give_tasks(p, c);
    if (c->role == ROLE_BROKER)
        parent_give_ca(p, c);
    if (c->role == ROLE_WARDEN)
        parent_give_pool(p, c);
    parent_link_all(p, c);
    parent_give_listeners(p, c);
    bad = 0;
out:
    close(fds[1]);
    return bad;
}
