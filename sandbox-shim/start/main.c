/* countersign-start-sandbox: becomes one sandbox of the warden's.
 *
 * The parent starts it, in the sandbox's cgroup; it is the sandbox's own user from its first line on, reads one order
 * of the warden's from descriptor 3, and becomes bubblewrap. From then on descriptor 3 is the socket of the first
 * process inside. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "common/net/chan.h"
#include "common/role/role.h"
#include "proxy/msgs.h"
#include "sandbox-shim/plan/bwrap.h"
#include "sandbox-shim/warden/wire_box.h"

enum {
    WARDEN_FD = 3,
    PLACES = 8,                /* of a workspace's size: what each other place that is written has */
    VARIABLES_MAX = 64 * 1024, /* as whoever imported it has let it have */
    PLACE = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
};

static void read_order(struct wire_box *x, struct dynbuf *payload)
{
    struct frame f;

    role_job_order(&f, payload);
    struct msg_in m = msg_in(f.payload);
    if (f.nfds != 0 || f.type != M_BOX_ORDER || wire_get_box(&m, x, true) != 0 || msg_end(&m) != 0)
        log_die("the warden's order cannot be understood; is this the same version of countersignd?");
}

/* Images lie where only their owner may look, and bubblewrap, which is somebody else by then, goes by paths: in
 * mounts of its own, the root is where anybody may go. To others this place is an empty folder. */
static int image_show(int dir, struct plan *p)
{
    char from[32], to[32];
    int place = mkdirat(dir, "../../mount", 0755) == 0 || errno == EEXIST ? openat(dir, "../../mount", PLACE) : -1;

    if (place < 0)
        return -1;
    (void)snprintf(from, sizeof(from), "/proc/self/fd/%d", p->image);
    (void)snprintf(to, sizeof(to), "/proc/self/fd/%d", place);
    int rc = mount(from, to, NULL, MS_BIND, NULL);
    close(place);
    close(p->image);
    p->image = rc == 0 ? openat(dir, "../../mount", PLACE) : -1; /* what lies on it now */
    return p->image >= 0 ? 0 : -1;
}

static int variables_read(int dir, struct plan *p)
{
    int fd = openat(dir, "env", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd >= 0 ? file_read_fd(fd, &p->variables_of_image) : -1;

    if (fd >= 0)
        close(fd);
    if (rc == 0 && p->variables_of_image.n > 0 && p->variables_of_image.p[p->variables_of_image.n - 1] != '\0') {
        errno = EBADMSG;
        rc = -1;
    }
    return rc;
}

/* What is mounted here nobody else sees, and it ends with the last process that does. */
static int own_mounts(struct err *e)
{
    if (!getenv("COUNTERSIGN_UID") || (!getenv("COUNTERSIGN_IMAGE") && !getenv("COUNTERSIGN_MOUNTS")))
        return 0;
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0
               ? 0
               : err_errno(e, "it can have no mounts of its own, which what it is to see needs");
}

/* The folder of an image that the parent found for it, and holds. */
static int image_open(struct plan *p, struct err *e)
{
    const char *where = getenv("COUNTERSIGN_IMAGE");
    bool shown = getenv("COUNTERSIGN_UID") != NULL; /* it will be another user's */
    int rc = -1;

    if (!where)
        return 0;
    dynbuf_init(&p->variables_of_image, VARIABLES_MAX);
    int dir = open(where, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    p->image = dir < 0 ? -1 : openat(dir, "root", PLACE);
    if (p->image >= 0 && (!shown || image_show(dir, p) == 0))
        rc = variables_read(dir, p);
    if (rc != 0)
        (void)err_errno(e, "its image cannot be read");
    if (dir >= 0)
        close(dir);
    return rc;
}

static int trust_open(const char *name, int *fd, struct err *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", getenv("COUNTERSIGN_TRUST"), name);

    *fd = n > 0 && (size_t)n < sizeof(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return *fd >= 0 ? 0 : err_errno(e, "its way out cannot be had: %s", name);
}

/* The listener that the parent has opened for it, and whom to trust. */
static int lane_open(struct plan *p, struct err *e)
{
    const char *where = getenv("COUNTERSIGN_LANE");

    if (!where)
        return 0;
    p->variables = true;
    p->lane.listener = getenv("COUNTERSIGN_TRUST") ? open(where, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (p->lane.listener < 0)
        return err_errno(e, "its way out cannot be had");
    return trust_open("ca.crt", &p->lane.ca, e) || trust_open("bundle.crt", &p->lane.bundle, e) ||
                   trust_open("truststore.p12", &p->lane.truststore, e)
               ? -1
               : 0;
}

/* The next line of *at, without its end; NULL: there is none. */
static char *line_of(char **at)
{
    char *line = *at, *end = line ? strchr(line, '\n') : NULL;

    if (!end)
        return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

/* As an image: a place of its own in mounts of its own, which all of its mounts are seen at by who it will be. */
static int place_show(struct plan_dir *d, const char *places, size_t i, struct err *e)
{
    char from[32], to[PATH_MAX];
    int n = snprintf(to, sizeof(to), "%s/%zu", places, i), rc = -1;

    (void)snprintf(from, sizeof(from), "/proc/self/fd/%d", d->fd);
    if (n > 0 && (size_t)n < sizeof(to) && mkdir(to, 0755) == 0)
        rc = mount(from, to, NULL, MS_BIND | MS_REC, NULL);
    close(d->fd);
    d->fd = rc == 0 ? open(to, PLACE) : -1; /* what lies on it now */
    return d->fd >= 0 ? 0 : err_errno(e, "its mount %s cannot be shown to it", d->path);
}

static int places_make(const char *places, struct err *e)
{
    return (mkdir(places, 0755) == 0 || errno == EEXIST) &&
                   mount("places", places, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,mode=755") == 0
               ? 0
               : err_errno(e, "there is no place for its mounts");
}

/* "r PLACE DIRECTORY": what lies at that path itself, with no link on the way. */
static int mount_open(struct plan *p, char *line, struct err *e)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    char *at = strncmp(line, "r /", 3) == 0 ? line + 2 : NULL, *path = at ? strchr(at, ' ') : NULL;

    if (!path || p->nread == PLAN_READ_MAX)
        return err_set(e, "its mounts cannot be understood");
    *path++ = '\0';
    struct plan_dir *d = &p->read[p->nread++];
    (void)snprintf(d->path, sizeof(d->path), "%s", at);
    d->fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    return d->fd >= 0 ? 0 : err_errno(e, "its mount %s cannot be had: %s", at, path);
}

/* What the parent gives it beside its limits. */
static int extras_open(struct plan *p, struct err *e)
{
    char *mounts = getenv("COUNTERSIGN_MOUNTS"), *devices = getenv("COUNTERSIGN_DEVICES"), *line;
    const char *places = getenv("COUNTERSIGN_PLACES"); /* of who will be another user */
    int rc = mounts && places ? places_make(places, e) : 0;

    while (rc == 0 && (line = line_of(&mounts)))
        rc = mount_open(p, line, e) || (places && place_show(&p->read[p->nread - 1], places, p->nread - 1, e) != 0) ? -1
                                                                                                                     : 0;
    while (rc == 0 && p->ndevices < PLAN_DEVICES_MAX && (line = line_of(&devices)))
        p->device[p->ndevices++] = line;
    return rc;
}

int main(void)
{
    static struct plan p;
    char name[BOX_NAME_MAX + 1];
    char *const nothing[] = {NULL};
    struct wire_box x;
    struct dynbuf payload;
    struct err e = {""};

    int found = plan_open_shim(&p, &e); /* this as well */
    if (found == 0)
        found = own_mounts(&e);
    if (found == 0)
        found = image_open(&p, &e);
    if (found == 0)
        found = lane_open(&p, &e);
    if (found == 0)
        found = extras_open(&p, &e);
    role_job_start("start-sandbox");
    if (found != 0)
        log_die("%s", e.text);
    read_order(&x, &payload);
    (void)snprintf(name, sizeof(name), "%.*s", SPAN_FMT(x.name));
    if ((x.lane.n > 0) != (p.lane.listener > 0))
        log_die("sandbox %s: the warden and the parent differ on whether it has a network", name);
    p.name = name;
    p.disk = x.disk;
    p.scratch = x.disk / PLACES;
    p.limits.memory = x.memory;
    p.limits.pids = x.pids;
    const struct rlimit files = {.rlim_cur = x.files, .rlim_max = x.files};
    const char *bwrap = bwrap_find(NULL, &e);
    if (!bwrap || plan_build(&p, nothing, &e) != 0)
        log_die("sandbox %s: %s", name, e.text);
    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        log_die("sandbox %s: its descriptors cannot be limited", name);
    bwrap_become(&(struct bwrap){bwrap, "countersign-start-sandbox", -1, WARDEN_FD, false}, &p);
}
