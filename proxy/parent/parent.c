/* countersignd: the parent's main, start and end of the whole. */
#include "proxy/parent/parent.h"
#include "proxy/parent/programs/cells.h"
#include "proxy/parent/programs/stores.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "proxy/duty/duty.h"

static const enum role_id standing[] = {ROLE_LEDGER,  ROLE_KEEPER, ROLE_RESOLVER, ROLE_FETCHER, ROLE_JUDGE,
                                        ROLE_CARRIER, ROLE_LOBBY,  ROLE_WARDEN,   ROLE_DESK,    ROLE_DOCK};
enum { STANDING = sizeof(standing) / sizeof(standing[0]), STANDING_SECRETS = 2 /* of them, with --secrets-only */ };

struct child *parent_child(struct parent *p, enum role_id role, uint64_t instance)
{
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->role == role && c->instance == instance)
            return c;
    return NULL;
}

static void kill_all(struct parent *p)
{
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->pid > 0)
            kill(c->pid, SIGKILL);
    parent_jobs_end(p, ROLE_NONE);
    parent_boxes_end(p, "the gateway ended");
    parent_master_end(p);
}

/* The judge ends first: it tells who waits. Then who relays its words. The keeper ends when no source is asked with a
 * token that can be used once only, since the next one is in the answer, and only then who asks for it; the ledger
 * last: it writes down what was. */
enum { STAGES = 5, STAGE_MS = 1000, STAGE_KEEPER_MS = 11 * 1000 };
static int stage_of(enum role_id r)
{
    switch (r) {
    case ROLE_JUDGE: return 0;
    case ROLE_KEEPER: return 2;
    case ROLE_FETCHER: return 3;
    case ROLE_LEDGER: return 4;
    default: return 1;
    }
}

static bool any_left(const struct parent *p, int stage)
{
    for (const struct child *c = p->children; c != NULL; c = c->next)
        if (c->pid > 0 && stage_of(c->role) <= stage)
            return true;
    return false;
}

/* Go on to the next stage that has somebody left. */
static void stop_next(struct parent *p)
{
    while (!any_left(p, p->stage))
        if (++p->stage >= STAGES) {
            loop_stop(p->loop);
            return;
        }
    if (p->told == p->stage + 1)
        return;
    p->told = p->stage + 1;
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->chan != NULL && stage_of(c->role) == p->stage)
            chan_send(c->chan, M_STOP, 0, SPAN_NONE);
    timer_set(p->grace, p->stage == stage_of(ROLE_KEEPER) ? STAGE_KEEPER_MS : STAGE_MS);
}

static void too_slow(void *arg)
{
    struct parent *p = arg;
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->pid > 0 && stage_of(c->role) <= p->stage)
            kill(c->pid, SIGKILL);
}

/* Ask every role to end, stage by stage; who has not ended after a second is killed; the
 * keeper has the time of one question more. */
void parent_stop(struct parent *p)
{
    if (p->stopping)
        return;
    p->stopping = true;
    parent_master_end(p);
    p->grace = timer_new(p->loop, too_slow, p);
    if (p->grace != NULL) {
        stop_next(p);
        return;
    }
    kill_all(p);
    loop_stop(p->loop);
}

static void again(void *arg)
{
    struct child *c = arg;
    if (!c->parent->stopping && parent_spawn(c->parent, c) != 0)
        timer_set(c->again, 5000);
}

/* How often a start is tried that never was a success. A master key that does not fit fits no better the next time,
 * and its program may ask a person for it. */
static unsigned most_fails(const struct parent *p, enum role_id r)
{
    return r == ROLE_KEEPER && p->config->master.from != SOURCE_NONE ? 0 : 5;
}

void parent_restart_later(struct parent *p, struct child *c)
{
    bool lived = loop_now(p->loop) - c->started_ms > 30000;
    c->fails = lived ? 0 : c->fails + 1;
    uint64_t wait = c->fails == 0 ? 0 : 50u << (c->fails < 7 ? c->fails : 7);
    if (c->fails > most_fails(p, c->role) && !p->announced) {
        log_error("the %s does not come up; giving up", role_name(c->role));
        p->exit_status = c->role == ROLE_LEDGER ? 4 : 1; /* as the commands say it: 4, the store is unreachable */
        parent_stop(p);
        return;
    }
    if (c->again == NULL && (c->again = timer_new(p->loop, again, c)) == NULL)
        log_die("out of memory");
    timer_set(c->again, wait);
}

/* One that was told to end may still end as it was not told to: by a fault of its own. */
static bool is_wanted(const struct parent *p, const struct child *c, int status)
{
    int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    bool fault = signo ? signo != SIGKILL && signo != SIGTERM && signo != SIGINT : WEXITSTATUS(status) != 0;
    return (p->stopping || c->leaving) && !fault;
}

static void child_died(struct parent *p, struct child *c, int status)
{
    if (!is_wanted(p, c, status))
        log_warn("the %s (pid %d) ended by %s %d; %s", role_name(c->role), c->pid,
                 WIFSIGNALED(status) ? "signal" : "exit",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                 c->role == ROLE_FRONT ? "its connections are closed"
                 : p->stopping         ? "it was to end"
                                       : "restarting it");
    c->pid = 0;
    c->ready = c->welcomed = c->asked = false;
    chan_free(&c->chan);
    parent_sync_gone(p, c);
    if (c->role == ROLE_FETCHER || c->role == ROLE_DESK)
        parent_jobs_end(p, c->role);
    if (c->role == ROLE_WARDEN)
        parent_boxes_end(p, p->stopping ? "the gateway ended" : "the warden ended");
    if (c->role == ROLE_FRONT)
        parent_front_died(p, c);
    else if (!p->stopping)
        parent_restart_later(p, c);
}

static bool role_died(struct parent *p, int pid, int status)
{
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->pid == pid) {
            child_died(p, c, status);
            return true;
        }
    return false;
}

/* Roles first: what ends with the warden ends because of it, and is written down so. */
static void on_child(void *arg, int signo)
{
    struct parent *p = arg;
    struct {
        int pid, status;
    } others[64];
    int status, pid;
    size_t n;
    do {
        n = 0;
        while (n < sizeof(others) / sizeof(others[0]) && (pid = waitpid(-1, &status, WNOHANG)) > 0)
            if (!role_died(p, pid, status)) {
                others[n].pid = pid;
                others[n++].status = status;
            }
        for (size_t i = 0; i < n; i++)
            if (!parent_job_died(p, others[i].pid) && !parent_box_died(p, others[i].pid) &&
                !parent_store_died(p, others[i].pid) && !parent_cell_died(p, others[i].pid))
                (void)parent_master_died(p, others[i].pid, others[i].status);
    } while (n > 0);
    if (p->stopping)
        stop_next(p);
}

static void on_end(void *arg, int signo)
{
    parent_stop(arg);
}

static void on_reload(void *arg, int signo)
{
    struct parent *p = arg;
    struct err e = {{0}};
    char said[512];
    if (p->args.secrets_only)
        return;
    int bad = parent_reload(p, SPAN("SIGHUP"), said, sizeof(said), &e);
    if (bad)
        log_error("reload refused, the old policy stays: %s", e.text);
    else
        log_info("reloaded: %s", said);
    if (!bad)
        parent_await(p, 0, said); /* a question that still waits is not about what is in force now */
}

/* From the files, or from the version that a rollback has pinned. */
static int first_policy(struct parent *p, struct err *e)
{
    struct compiled made;
    struct err why = {{0}};
    const char *state = p->config->state_dir;
    if (pin_read(state, &p->pin, e) != 0)
        return -1;
    const char *pinned = p->pin.hex[0] ? p->pin.hex : NULL;
    if (parent_compile(p->config, pinned, &made, &why) != 0)
        return err_set(e, "%s%s%s%s", pinned ? "the policy is pinned by a rollback: " : "", why.text,
                       pinned ? "; to go back to the policy files, remove " : "",
                       pinned ? "the file policies/pin of the state directory" : "");
    parent_take(p, &made);
    return 0;
}

/* The one that serves, and those that run turns, each a process of its own: one bad turn takes one of them. Of a
 * gateway that does one of both alone, those of the other are at another gateway. */
static int start_brokers(struct parent *p, struct err *e)
{
    if (p->config->broker.models[0] == '\0' || p->args.secrets_only || p->args.private)
        return 0;
    for (uint64_t i = p->config->broker.duties & DUTY_STREAM ? 0 : 1; i <= p->config->broker.workers && !p->stopping;
         i++) {
        struct child *c = parent_child_new(p, ROLE_BROKER, "");
        if (c != NULL)
            c->instance = i;
        if (c == NULL || parent_spawn(p, c) != 0)
            return err_set(e, "cannot start the broker from %s; is the installation complete?", p->exe_dir);
    }
    return 0;
}

static int run(struct parent *p, struct err *e)
{
    if ((p->loop = loop_new()) == NULL)
        return err_set(e, "no event loop: out of memory or descriptors");
    if (loop_on_signal(p->loop, SIGCHLD, on_child, p) != 0 || loop_on_signal(p->loop, SIGTERM, on_end, p) != 0 ||
        loop_on_signal(p->loop, SIGINT, on_end, p) != 0 || loop_on_signal(p->loop, SIGHUP, on_reload, p) != 0)
        return err_set(e, "cannot watch signals");
    p->started_ms = loop_wall(p->loop);
    signal(SIGPIPE, SIG_IGN);
    if ((!p->args.secrets_only && first_policy(p, e) != 0) || parent_prepare(p, e) != 0)
        return -1;
    parent_log_configured(p);
    if (!p->args.secrets_only) {
        versions_last(p->config->state_dir, p->from);
        parent_switched(p, "start", SPAN_NONE);
    }
    for (size_t i = 0; i < (p->args.secrets_only ? STANDING_SECRETS : STANDING) && !p->stopping; i++) {
        if (standing[i] == ROLE_WARDEN && p->args.private) /* for one command, which is in a sandbox already */
            continue;
        if (standing[i] == ROLE_DOCK && p->config->dock_address[0] == '\0')
            continue;
        struct child *c = parent_child_new(p, standing[i], "");
        if (c == NULL || parent_spawn(p, c) != 0)
            return err_set(e, "cannot start the %s from %s; is the installation complete?", role_name(standing[i]),
                           p->exe_dir);
    }
    if (start_brokers(p, e) != 0)
        return -1;
    if (parent_look_after(p) != 0)
        return err_set(e, "no timer: out of memory");
    return loop_run(p->loop) != 0 ? err_set(e, "the event loop failed") : 0;
}

static int options(int argc, char **argv, struct parent *p, struct config_args *a)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'},   {"state-dir", required_argument, NULL, 's'},
        {"policy", required_argument, NULL, 'p'},   {"ready-fd", required_argument, NULL, 'r'},
        {"quiet", no_argument, NULL, 'q'},          {"check-config", no_argument, NULL, 'n'},
        {"data-dir", required_argument, NULL, 'd'}, {"private", no_argument, NULL, 'P'},
        {"secrets-only", no_argument, NULL, 'S'},   {NULL, 0, NULL, 0}};
    int o;
    while ((o = getopt_long(argc, argv, "", longs, NULL)) != -1)
        switch (o) {
        case 'c': a->config = optarg; break;
        case 's': a->state_dir = optarg; break;
        case 'p': a->policy = optarg; break;
        case 'd': a->data_dir = optarg; break;
        case 'r': p->ready_fd = atoi(optarg); break;
        case 'q': p->quiet = true; break;
        case 'P': a->private = true; break;
        case 'S': a->secrets_only = true; break;
        case 'n': a->check_only = true; break;
        default: return -1;
        }
    return optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    static struct parent p = {.policy = {.image = -1, .bundle = -1},
                              .keeper_dir = -1,
                              .master = {.fd = -1},
                              .ready_fd = -1,
                              .next_instance = 1};
    struct config_args args = {0};
    struct err e = {{0}};
    log_init("parent", LOG_INFO);
    if (options(argc, argv, &p, &args) != 0) {
        fprintf(stderr, "usage: countersignd [--config FILE] [--state-dir DIR] [--policy FILE] [--data-dir DIR] "
                        "[--ready-fd N] [--quiet] [--private] [--secrets-only] [--check-config]\n");
        return 2;
    }
    dynbuf_init(&p.secrets, 64 * 1024);
    dynbuf_init(&p.ca, 16 * 1024);
    dynbuf_init(&p.notes, 64 * 1024);
    /* Ours to say to roles, nobody's to say to us. */
    unsetenv("COUNTERSIGN_UID");
    unsetenv("COUNTERSIGN_GID");
    /* Descriptors are handed over by sendmsg; nothing is inherited by accident. */
    prctl(PR_SET_DUMPABLE, 0);
    /* What the programs that we start leave behind when they are killed comes to us, who wait for it. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    p.args = args;
    if ((p.config = config_load(&args, &e)) == NULL) {
        fprintf(stderr, "countersign: %s\n", e.text);
        return 3;
    }
    log_form(p.config->log_form);
    if (args.check_only) {
        struct compiled made;
        int bad = parent_compile(p.config, NULL, &made, &e);
        fprintf(stderr, "%s\n", bad ? e.text : "configuration and policy are in order");
        return bad ? 3 : 0;
    }
    if (run(&p, &e) != 0) {
        fprintf(stderr, "countersign: %s\n", e.text);
        kill_all(&p);
        parent_sweep(&p);
        return 3;
    }
    parent_sweep(&p);
    return p.exit_status ? p.exit_status : p.announced ? 0 : 1;
}
