/* Checkpoints, for the warden, which may start nothing itself: a program that keeps them, of a user of its own, and,
 * where files are to be read or written, one that does that in the workspace, as the sandbox's user, from outside:
 * what runs in there may stand still meanwhile. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/msg.h"
#include "proxy/parent/programs/stores.h"

enum { PATH_ROOM = 64, TEXT_MAX = 4096, DEEP = 4 };
#define STORE_OF_NONE UINT64_MAX /* the number of one that nobody asks about any more */

/* --- where a workspace is ------------------------------------------------------------- */

/* A file below a process's folder. -1: it cannot be read. */
static int text_of(int folder, const char *name, char text[TEXT_MAX])
{
    int fd = folder >= 0 ? openat(folder, name, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, text, TEXT_MAX - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? 0 : -1;
}

static int process_open(int pid)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof(path), "/proc/%d", pid);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The first process of a pid namespace of its own; folder: as /proc shows it. */
static bool is_first(int folder)
{
    char text[TEXT_MAX];
    const char *line = text_of(folder, "status", text) == 0 ? strstr(text, "\nNSpid:\t") : NULL;
    const char *end = line != NULL ? strchr(line + 1, '\n') : NULL;
    return end != NULL && end[-1] == '1' && end[-2] == '\t' && end - 2 > line + 7;
}

static bool is_child(int folder, int of)
{
    char text[TEXT_MAX];
    const char *parent = text_of(folder, "status", text) == 0 ? strstr(text, "\nPPid:\t") : NULL;
    return parent != NULL && atoi(parent + 7) == of;
}

/* Among this process, which folder is and stays, and those that came from it: the folder of the first one in a
 * namespace of its own, or -1. Takes folder over. */
static int first_open(int pid, int folder, unsigned deep)
{
    char text[TEXT_MAX], path[PATH_ROOM], *at = text;
    int found = -1;
    if (folder >= 0 && is_first(folder))
        return folder;
    snprintf(path, sizeof(path), "task/%d/children", pid);
    if (folder < 0 || deep == 0 || text_of(folder, path, text) != 0)
        at = NULL;
    while (at != NULL && found < 0) {
        int child = (int)strtol(at, &at, 10);
        if (child <= 0)
            break;
        int fd = process_open(child);
        if (fd >= 0 && is_child(fd, pid)) /* and nobody who took its number since */
            found = first_open(child, fd, deep - 1);
        else if (fd >= 0)
            close(fd);
    }
    if (folder >= 0)
        close(folder);
    return found;
}

int parent_first_open(int pid)
{
    return first_open(pid, process_open(pid), DEEP);
}

/* The first process in a sandbox comes from the one that we started, by way of bubblewrap's; its root is the
 * sandbox's, and its workspace a mount there that nothing in it can move. */
static int workspace_open(int from)
{
    struct stat root, work;
    int folder = parent_first_open(from), fd = -1;
    int in = folder >= 0 ? openat(folder, "root", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (in >= 0)
        fd = openat(in, "workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(in, &root) != 0 || fstat(fd, &work) != 0 || root.st_dev == work.st_dev)) {
        close(fd);
        fd = -1;
    }
    if (in >= 0)
        close(in);
    if (folder >= 0)
        close(folder);
    return fd;
}

/* --- who is started --------------------------------------------------------------------- */

enum { AWAY_PATH = CONFIG_PATH + 64, AWAY_VARIABLES = 7, VARIABLE_ROOM = AWAY_PATH + 64 };

static int away_path(const struct parent *p, char path[AWAY_PATH])
{
    int n = snprintf(path, AWAY_PATH, "%s/run/sb-" STORE_SANDBOX ".sock", p->config->state_dir);
    return n > 0 && n <= 107 ? 0 : -1;
}

int parent_away_bind(struct parent *p, struct err *e)
{
    unsigned user = (unsigned)p->uid_base + STORE_USER;
    char path[AWAY_PATH];
    if (away_path(p, path) != 0)
        return err_set(e, "the state directory's path is too long for a Unix socket; choose a shorter one");
    if (parent_sandbox_bind(p, STORE_SANDBOX, path, LISTEN_OWN, NULL, e) != 0)
        return -1;
    return p->uid_base == 0 || chown(path, user, user) == 0
               ? 0
               : err_errno(e, "the listener for the checkpoint store cannot be made its user's");
}

/* What the program is told that keeps them elsewhere as well. */
static size_t away_env(const struct parent *p, char room[AWAY_VARIABLES][VARIABLE_ROOM], char *envp[])
{
    const struct config_store *to = &p->config->away;
    char path[AWAY_PATH];
    (void)away_path(p, path); /* it was bound */
    snprintf(room[0], VARIABLE_ROOM, "COUNTERSIGN_STORE_ENDPOINT=%s", to->endpoint);
    snprintf(room[1], VARIABLE_ROOM, "COUNTERSIGN_STORE_HOST=%s", to->endpoint + sizeof("https://") - 1);
    snprintf(room[2], VARIABLE_ROOM, "COUNTERSIGN_STORE_BUCKET=%s", to->bucket);
    snprintf(room[3], VARIABLE_ROOM, "COUNTERSIGN_STORE_PREFIX=%s", to->prefix);
    snprintf(room[4], VARIABLE_ROOM, "COUNTERSIGN_STORE_CREDENTIAL=%s", to->credential);
    snprintf(room[5], VARIABLE_ROOM, "COUNTERSIGN_STORE_LISTENER=%s", path);
    snprintf(room[6], VARIABLE_ROOM, "COUNTERSIGN_STORE_CA=%s/ca.crt", p->config->state_dir);
    for (size_t i = 0; i < AWAY_VARIABLES; i++)
        envp[i] = room[i];
    return AWAY_VARIABLES;
}

static int start_keeper(struct parent *p, int fd)
{
    static char room[AWAY_VARIABLES][VARIABLE_ROOM];
    char uid[64], gid[64], dir[CONFIG_PATH + 64], most[64];
    char *envp[5 + AWAY_VARIABLES] = {dir, most, NULL};
    bool away = p->config->away.endpoint[0] != '\0';
    size_t n = 2 + (away ? away_env(p, room, envp + 2) : 0);
    snprintf(dir, sizeof(dir), "COUNTERSIGN_CHECKPOINTS=%s/checkpoints", p->config->state_dir);
    snprintf(most, sizeof(most), "COUNTERSIGN_CHECKPOINTS_MOST=%llu", (unsigned long long)p->config->checkpoints_max);
    if (p->uid_base > 0) {
        snprintf(uid, sizeof(uid), "COUNTERSIGN_UID=%u", (unsigned)p->uid_base + STORE_USER);
        snprintf(gid, sizeof(gid), "COUNTERSIGN_GID=%u", (unsigned)p->uid_base + STORE_USER);
        envp[n++] = uid;
        envp[n++] = gid;
    }
    int pid = parent_execute(p, away ? "checkpoint-s3" : "checkpoint", fd, envp, NULL);
    if (pid > 0)
        (void)setpgid(pid, pid); /* it does so itself as well: whoever comes first */
    return pid;
}

/* What is written is the sandbox's memory, and counted there; what is read is read while all in there stands still.
 */
static int start_user(struct parent *p, const struct running_box *b, bool writes, int fd)
{
    unsigned user = (unsigned)p->uid_base + BOX_USERS + (unsigned)(b - p->boxes);
    char uid[64], gid[64];
    char *envp[3] = {NULL};
    int dir = workspace_open(b->pid);
    if (dir < 0)
        return -1;
    if (p->uid_base > 0) {
        snprintf(uid, sizeof(uid), "COUNTERSIGN_UID=%u", user);
        snprintf(gid, sizeof(gid), "COUNTERSIGN_GID=%u", user);
        envp[0] = uid;
        envp[1] = gid;
    }
    int pid = parent_execute_in(p, dir, "workspace", fd, envp, writes && b->cgroup.n > 0 ? &b->cgroup : NULL);
    close(dir);
    return pid;
}

static void end_store(struct running_store *s)
{
    for (int i = 0; i < 2; i++)
        if (s->pid[i] > 0 && kill(-s->pid[i], SIGKILL) != 0)
            (void)kill(s->pid[i], SIGKILL); /* it has no group of its own yet */
}

static const struct running_box *box_of(const struct parent *p, uint64_t id)
{
    for (size_t i = 0; i < BOXES_MAX; i++)
        if (id != 0 && p->boxes[i].id == id && p->boxes[i].pid > 0)
            return &p->boxes[i];
    return NULL;
}

static const char *begin(struct parent *p, struct running_store *s, enum store_with with, const int fd[2])
{
    const struct running_box *b = box_of(p, s->box);
    if (with != STORE_ALONE && b == NULL)
        return "the sandbox does not run any more";
    if (with != STORE_ALONE && (s->pid[1] = start_user(p, b, with == STORE_WRITES, fd[1])) <= 0) {
        s->pid[1] = 0;
        return "its workspace cannot be reached from outside";
    }
    if ((s->pid[0] = start_keeper(p, fd[0])) > 0)
        return NULL;
    s->pid[0] = 0;
    end_store(s);
    return "no process can be started for it; is the installation complete?";
}

static void tell_none(struct parent *p, uint64_t id, const char *why)
{
    struct child *warden = parent_child(p, ROLE_WARDEN, 0);
    struct dynbuf *b = warden && warden->chan ? chan_begin(warden->chan, M_CHECKPOINT_NONE, id) : NULL;
    if (b == NULL)
        return;
    msg_put_span(b, span_str(why));
    (void)chan_commit(warden->chan);
}

void parent_store_start(struct parent *p, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    unsigned with = msg_get_u8(&m);
    uint64_t box = msg_get_u64(&m);
    struct running_store *s = NULL;
    const char *why = "it cannot be understood";
    int fd[2] = {frame_take_fd(f, 0), with != STORE_ALONE ? frame_take_fd(f, 1) : -1};
    for (size_t i = 0; i < STORES_MAX && s == NULL; i++)
        if (p->stores[i].id == 0)
            s = &p->stores[i];
    if (msg_end(&m) == 0 && with < STORE_WITHS && fd[0] >= 0 && (with == STORE_ALONE || fd[1] >= 0) && f->id != 0 &&
        !p->stopping) {
        why = "as many checkpoints are written or read as may be at once; ask again in a moment";
        if (s != NULL) {
            *s = (struct running_store){.id = f->id, .box = box};
            why = begin(p, s, (enum store_with)with, fd);
            if (why != NULL && s->pid[1] == 0)
                s->id = 0;
        }
    }
    if (why != NULL)
        tell_none(p, f->id, why);
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

void parent_store_end(struct parent *p, struct frame *f)
{
    for (size_t i = 0; i < STORES_MAX; i++)
        if (p->stores[i].id == f->id && f->id != 0)
            end_store(&p->stores[i]);
}

bool parent_store_died(struct parent *p, int pid)
{
    for (size_t i = 0; i < STORES_MAX; i++)
        for (int k = 0; k < 2; k++)
            if (p->stores[i].id != 0 && p->stores[i].pid[k] == pid) {
                p->stores[i].pid[k] = 0;
                if (p->stores[i].pid[1 - k] == 0)
                    p->stores[i] = (struct running_store){.id = 0};
                return true;
            }
    return false;
}

void parent_stores_end(struct parent *p, uint64_t box)
{
    for (size_t i = 0; i < STORES_MAX; i++)
        if (p->stores[i].id != 0 && (box == 0 || p->stores[i].box == box)) {
            end_store(&p->stores[i]);
            p->stores[i].id = STORE_OF_NONE;
        }
}
