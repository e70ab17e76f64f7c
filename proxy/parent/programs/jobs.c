/* The programs that the fetcher has started, for it may not start any itself: those of enum job_kind and no others;
 * each has a process group of its own, which ends with it. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/msg.h"
#include "proxy/parent/parent.h"

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
    int pid = parent_execute(p, programs[kind], fd, envp, NULL);
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
