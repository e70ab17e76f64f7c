/* countersign-start-sandbox: becomes one sandbox of the warden's.
 *
 * The parent starts it, in the sandbox's cgroup; it is the sandbox's own user from its first line on, reads one order
 * of the warden's from descriptor 3, and becomes bubblewrap. From then on descriptor 3 is the socket of the first
 * process inside. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/log.h"
#include "common/net/chan.h"
#include "common/role/role.h"
#include "proxy/msgs.h"
#include "sandbox-shim/plan/bwrap.h"
#include "sandbox-shim/warden/wire_box.h"

enum { WARDEN_FD = 3, PLACES = 8 /* of a workspace's size: what each other place that is written has */ };

static void read_order(struct wire_box *x, struct dynbuf *payload)
{
    struct frame f;

    dynbuf_init(payload, CHAN_PAYLOAD_MAX);
    if (chan_read_one(WARDEN_FD, &f, payload) != 0)
        log_die("the warden has gone before it said what to start");
    struct msg_in m = msg_in(f.payload);
    if (f.nfds != 0 || f.type != M_BOX_ORDER || wire_get_box(&m, x, true) != 0 || msg_end(&m) != 0)
        log_die("the warden's order cannot be understood; is this the same version of countersignd?");
}

int main(void)
{
    static struct plan p;
    char name[BOX_NAME_MAX + 1];
    char *const nothing[] = {NULL};
    struct wire_box x;
    struct dynbuf payload;
    struct err e = {""};

    int found = plan_open_shim(&p, &e); /* it may lie where only who started us can look */
    role_job_start("start-sandbox");
    if (found != 0)
        log_die("%s", e.text);
    read_order(&x, &payload);
    (void)snprintf(name, sizeof(name), "%.*s", SPAN_FMT(x.name));
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
