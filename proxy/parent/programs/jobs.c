/* The programs that fetcher and desk have started, for they may not start any themselves: those of enum job_kind and
 * no others, each for the role that it is for; each has a process group of its own, which ends with it. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/msg.h"
#include "proxy/parent/parent.h"

enum { JOB_USERS = 60 /* above the roles': a program that runs for us is no role's user */ };
/* Twice what the desk has at work at once: one that it has ended may not be gone yet when it asks for the next. */
enum { VIEWS_MAX = 6 };

static const struct {
    const char *name;
    enum role_id whose;
    size_t most; /* at once: a role that was taken over takes none from another */
} programs[JOB_KINDS] = {[JOB_PROGRAM] = {"fetch-program", ROLE_FETCHER, JOBS_MAX - VIEWS_MAX},
                         [JOB_HTTP] = {"fetch-http", ROLE_FETCHER, JOBS_MAX - VIEWS_MAX},
                         [JOB_VIEW] = {"view-picture", ROLE_DESK, VIEWS_MAX},
                         [JOB_GATE] = {"fetch-program", ROLE_FETCHER, JOBS_MAX - VIEWS_MAX},
                         [JOB_TELL] = {"fetch-http", ROLE_FETCHER, JOBS_MAX - VIEWS_MAX},
                         [JOB_ASK] = {"fetch-http", ROLE_FETCHER, JOBS_MAX - VIEWS_MAX}};

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
    int pid = parent_execute(p, programs[kind].name, fd, envp, NULL);
    if (pid > 0)
        (void)setpgid(pid, pid); /* it does so itself as well: whoever comes first */
    return pid;
}

/* A place for one more of these, or NULL. */
static struct running_job *place_for(struct parent *p, unsigned kind)
{
    struct running_job *free_one = NULL;
    size_t n = 0;
    for (size_t i = 0; i < JOBS_MAX; i++) {
        if (p->jobs[i].pid == 0)
            free_one = &p->jobs[i];
        n += p->jobs[i].pid > 0 && p->jobs[i].whose == programs[kind].whose;
    }
    return n < programs[kind].most ? free_one : NULL;
}

void parent_job_start(struct parent *p, struct child *of, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    unsigned kind = msg_get_u8(&m);
    struct running_job *free_one = NULL;
    int fd = frame_take_fd(f, 0), pid = -1;
    bool may = msg_end(&m) == 0 && fd >= 0 && kind > JOB_NONE && kind < JOB_KINDS && programs[kind].whose == of->role;
    if (may && !p->stopping && (free_one = place_for(p, kind)) != NULL)
        pid = start_job(p, kind, fd);
    if (pid > 0)
        *free_one = (struct running_job){pid, of->role, f->id};
    else
        (void)chan_send(of->chan, M_JOB_NONE, f->id, SPAN_NONE);
    if (fd >= 0)
        close(fd);
}

static void end_job(const struct running_job *j)
{
    if (j->pid > 0 && kill(-j->pid, SIGKILL) != 0)
        (void)kill(j->pid, SIGKILL); /* it has no group of its own yet */
}

void parent_job_end(struct parent *p, const struct child *of, struct frame *f)
{
    for (size_t i = 0; i < JOBS_MAX; i++)
        if (p->jobs[i].pid > 0 && p->jobs[i].whose == of->role && p->jobs[i].id == f->id)
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

void parent_jobs_end(struct parent *p, enum role_id whose)
{
    for (size_t i = 0; i < JOBS_MAX; i++)
        if (whose == ROLE_NONE || p->jobs[i].whose == whose)
            end_job(&p->jobs[i]);
}
