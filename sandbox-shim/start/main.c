/* countersign-start-sandbox: becomes one sandbox of the warden's.
 *
 * The parent starts it, in the sandbox's cgroup; it is the sandbox's own user from its first line on, reads one order
 * of the warden's from descriptor 3, and becomes bubblewrap. From then on descriptor 3 is the socket of the first
 * process inside. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "common/net/chan.h"
#include "common/role/role.h"
#include "proxy/msgs.h"
#include "sandbox-shim/plan/bwrap.h"
#include "sandbox-shim/start/mounts.h"
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
        found = mounts_open(&p, &e);
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
