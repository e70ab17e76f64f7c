/* A role that does not answer any more is ended and started anew. Now and then each is asked for a sign of life; how
 * long it owes that is counted in looks of ours, so that no time counts in which this process did not run, and by
 * what the role did meanwhile: */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "proxy/parent/parent.h"

enum { LOOK_MS = 1000, ASK_EVERY = 5, PATIENCE_MS = 60 * 1000, STAT_MAX = 1024 };
#define LIFE (UINT64_C(1) << 63) /* in the id of M_SYNC; reloads count from 1 */

/* Its state (proc_pid_stat(5)) and the time it ran; 0: not known. */
static char state_of(int pid, uint64_t *cpu_ms)
{
    char path[64], text[STAT_MAX], state = 0;
    unsigned long long user = 0, sys = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    if (f != NULL)
        fclose(f);
    text[n] = '\0';
    const char *behind = strrchr(text, ')'); /* of the name */
    if (behind == NULL ||
        sscanf(behind + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user, &sys) != 3)
        return 0;
    *cpu_ms = (user + sys) * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK);
    return state;
}

/* Asleep or stopped, the whole time; running or waiting for a processor, as long as it ran; waiting for a disk, none.
 */
static void count(struct child *c)
{
    uint64_t cpu = c->cpu_ms;
    char state = state_of(c->pid, &cpu);
    c->silent_ms += state == 'D' ? 0 : state == 'R' ? cpu - c->cpu_ms : LOOK_MS;
    c->cpu_ms = cpu;
    if (c->silent_ms < PATIENCE_MS)
        return;
    log_error("the %s (pid %d) does not answer; it is ended", role_name(c->role), c->pid);
    c->silent_ms = 0;
    kill(c->pid, SIGKILL);
}

static void look(void *arg)
{
    struct parent *p = arg;
    bool ask = p->looks++ % ASK_EVERY == 0;
    for (struct child *c = p->children; c != NULL && !p->stopping; c = c->next) {
        if (c->pid <= 0 || !c->ready)
            continue;
        if (c->asked || c->chan == NULL) {
            count(c);
        } else if (ask) {
            c->asked = chan_send(c->chan, M_SYNC, LIFE, SPAN_NONE) == 0;
            c->silent_ms = 0;
            (void)state_of(c->pid, &c->cpu_ms);
        }
    }
    timer_set(p->look, LOOK_MS); /* from the end of this turn */
}

int parent_look_after(struct parent *p)
{
    if ((p->look = timer_new(p->loop, look, p)) == NULL)
        return -1;
    timer_set(p->look, LOOK_MS);
    return 0;
}

bool parent_sign_of_life(struct child *c, uint64_t sync)
{
    if (!(sync & LIFE))
        return false;
    c->asked = false;
    c->silent_ms = 0;
    return true;
}
