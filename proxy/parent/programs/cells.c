/* A command with a lane of its own, for the warden, which may start nothing itself: a program that enters the sandbox
 * and becomes its walls (sandbox-shim/cell/), with a listener of the gateway that is of this one command. Whoever
 * comes by it is served by a front of its own, of which the judge is told here in which lane and of which command it
 * is: what the sandbox says of that counts for nothing. */
#include "proxy/parent/programs/cells.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"
#include "proxy/parent/programs/stores.h"

enum { VARIABLES = 7, LIMITS_ROOM = 96, LINK_ROOM = 32 };
#define FILES_MOST (UINT64_C(1) << 20)

/* What is asked for. */
struct asked {
    uint64_t box, born, files, pids, memory;
    uint32_t number;
    struct span lane;
};

static struct running_box *box_of(struct parent *p, uint64_t id)
{
    for (size_t i = 0; i < BOXES_MAX; i++)
        if (id != 0 && p->boxes[i].id == id && p->boxes[i].pid > 0)
            return &p->boxes[i];
    return NULL;
}

static unsigned left_of(const struct parent *p, const struct running_box *b)
{
    unsigned n = 0;
    for (size_t i = 0; i < CELLS_MAX; i++)
        n += p->cells[i].pid > 0 && p->cells[i].place == (unsigned)(b - p->boxes);
    return n;
}

bool parent_cells_left(const struct parent *p, const struct running_box *b)
{
    return left_of(p, b) > 0;
}

static void tell_none(struct parent *p, uint64_t id, const char *why)
{
    struct child *warden = parent_child(p, ROLE_WARDEN, 0);
    struct dynbuf *b = warden && warden->chan ? chan_begin(warden->chan, M_CELL_NONE, id) : NULL;
    if (b == NULL)
        return;
    msg_put_span(b, span_str(why));
    (void)chan_commit(warden->chan);
}

/* Its number, and nothing that a sandbox may be called. */
static int path_of(const struct parent *p, const struct running_cell *c, char *path, size_t room)
{
    int n = snprintf(path, room, "%s/run/cell-%u.sock", p->config->state_dir, (unsigned)(c - p->cells));
    return n > 0 && (size_t)n < room && n <= 107 ? 0 : -1;
}

/* Its folder, as the variable that says where it is; -1: it cannot be told. */
static int image_of(const struct running_box *b, char *image, size_t room)
{
    char link[LINK_ROOM];
    int at = snprintf(image, room, "COUNTERSIGN_IMAGE=");
    snprintf(link, sizeof(link), "/proc/self/fd/%d", b->image - 1);
    ssize_t n = readlink(link, image + at, room - (size_t)at - 1);
    if (n <= 0 || (size_t)n >= room - (size_t)at - 1)
        return -1;
    image[at + n] = '\0';
    return 0;
}

static int start(struct parent *p, const struct running_box *b, const struct asked *a, const char *path, int fd)
{
    unsigned user = (unsigned)p->uid_base + BOX_USERS + (unsigned)(b - p->boxes);
    char uid[64], gid[64], image[CONFIG_PATH + 256], lane[CONFIG_PATH + 32], trust[CONFIG_PATH + 32],
        limits[LIMITS_ROOM];
    char *envp[VARIABLES] = {lane, trust, limits, NULL};
    size_t n = 3;
    if (b->image > 0 && image_of(b, image, sizeof(image)) != 0)
        return -1;
    int dir = parent_first_open(b->pid);
    if (dir < 0)
        return -1;
    if (b->image > 0)
        envp[n++] = image;
    snprintf(lane, sizeof(lane), "COUNTERSIGN_LANE=%s", path);
    snprintf(trust, sizeof(trust), "COUNTERSIGN_TRUST=%s", p->config->state_dir);
    snprintf(limits, sizeof(limits), "COUNTERSIGN_CELL=%llu %llu %llu %d", (unsigned long long)a->files,
             (unsigned long long)a->pids, (unsigned long long)a->memory, b->cgroup.n > 0 ? 1 : CELLS_EACH);
    if (p->uid_base > 0) {
        snprintf(uid, sizeof(uid), "COUNTERSIGN_UID=%u", user);
        snprintf(gid, sizeof(gid), "COUNTERSIGN_GID=%u", user);
        envp[n++] = uid;
        envp[n++] = gid;
    }
    int pid = parent_execute_in(p, dir, "start-cell", fd, envp, b->cgroup.n > 0 ? &b->cgroup : NULL);
    close(dir);
    return pid;
}

static void end(struct parent *p, struct running_cell *c)
{
    if (c->pid > 0 && kill(-c->pid, SIGKILL) != 0)
        (void)kill(c->pid, SIGKILL); /* it has no group of its own yet */
    parent_cell_close(p, c);
    c->id = 0;
    if (c->pid == 0)
        *c = (struct running_cell){.id = 0};
}

static const char *begin(struct parent *p, struct running_cell *c, const struct asked *a, int fd)
{
    static struct err e; /* until it is told */
    const struct running_box *b = box_of(p, a->box);
    unsigned user = b != NULL && p->uid_base > 0 ? (unsigned)p->uid_base + BOX_USERS + (unsigned)(b - p->boxes) : 0;
    char path[CONFIG_PATH];
    if (b == NULL)
        return "the sandbox does not run any more";
    if (b->way == PAUSE_SIGNALS)
        return "the sandbox stands still, and this would not";
    if (left_of(p, b) >= CELLS_EACH)
        return "as many commands with a lane of their own run in it as may at once";
    c->place = (unsigned)(b - p->boxes);
    snprintf(c->name, sizeof(c->name), "%s", b->name);
    snprintf(c->own, sizeof(c->own), " %.*s %llu.%u", SPAN_FMT(a->lane), (unsigned long long)a->born,
             (unsigned)a->number);
    if (path_of(p, c, path, sizeof(path)) != 0)
        return "the state directory's path is too long for a Unix socket; choose a shorter one";
    if (parent_cell_bind(p, c, path, &e) != 0)
        return e.text;
    if (user == 0 || chown(path, user, user) == 0) /* nobody else gets to it: the folder is ours alone */
        c->pid = start(p, b, a, path, fd);
    if (c->pid > 0)
        return NULL;
    c->pid = 0;
    return "no process can be started for it in its sandbox; is the installation complete?";
}

void parent_cell_start(struct parent *p, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct asked a = {.box = msg_get_u64(&m)};
    a.lane = msg_get_span(&m, CONFIG_NAME - 1);
    a.born = msg_get_u64(&m);
    a.number = msg_get_u32(&m);
    a.files = msg_get_u64(&m);
    a.pids = msg_get_u64(&m);
    a.memory = msg_get_u64(&m);
    struct running_cell *c = NULL;
    const char *why = "it cannot be understood";
    int fd = frame_take_fd(f, 0);
    for (size_t i = 0; i < CELLS_MAX && c == NULL; i++)
        if (p->cells[i].id == 0 && p->cells[i].pid == 0)
            c = &p->cells[i];
    if (msg_end(&m) == 0 && fd >= 0 && f->id != 0 && config_sandbox_ok(a.lane) && a.born != 0 && a.number != 0 &&
        a.files > 0 && a.files <= FILES_MOST && !p->stopping) {
        why = "as many commands with a lane of their own run as may at once";
        if (c != NULL) {
            *c = (struct running_cell){.id = f->id, .box = a.box};
            why = begin(p, c, &a, fd);
        }
    }
    if (why != NULL && c != NULL)
        end(p, c);
    if (why != NULL)
        tell_none(p, f->id, why);
    if (fd >= 0)
        close(fd);
}

void parent_cell_end(struct parent *p, struct frame *f)
{
    for (size_t i = 0; i < CELLS_MAX; i++)
        if (p->cells[i].id == f->id && f->id != 0)
            end(p, &p->cells[i]);
}

/* Its walls are gone, and with them all in there; its way out ends as well, whoever hears of it first. */
bool parent_cell_died(struct parent *p, int pid)
{
    for (size_t i = 0; i < CELLS_MAX; i++) {
        struct running_cell *c = &p->cells[i];
        if (c->pid != pid)
            continue;
        (void)kill(-pid, SIGKILL); /* what it left behind */
        c->pid = 0;
        end(p, c);
        return true;
    }
    return false;
}

void parent_cells_end(struct parent *p, uint64_t box)
{
    for (size_t i = 0; i < CELLS_MAX; i++)
        if (p->cells[i].id != 0 && (box == 0 || p->cells[i].box == box))
            end(p, &p->cells[i]);
}
