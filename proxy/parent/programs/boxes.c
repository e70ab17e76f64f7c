/* The sandboxes that the warden has started, for it may not start any itself: one program, of a user of its own where
 * there are users to give, in a cgroup of its own where one can be had. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json/json.h"
#include "common/log.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/programs/cells.h"
#include "proxy/parent/programs/extras.h"
#include "proxy/parent/programs/stores.h"

enum {
    BOX_OURS = 3 /* processes: bubblewrap twice, and the first one inside */,
    BOX_REST_MS = 20,
    CPU_PERCENT_MAX = 102400,
    BOX_NAME_MAX = 63,
    DIGEST_TEXT_MAX = 71
};
#define BOX_OF_NONE UINT64_MAX /* the number of one whose warden has ended: the next one counts from 1 again */

enum { PREFIX = 128, LEAF = 256, IMAGE_PATH = 700, VARIABLES = 9 };

static unsigned user_of(const struct parent *p, const struct running_box *b)
{
    return p->uid_base > 0 ? (unsigned)p->uid_base + BOX_USERS + (unsigned)(b - p->boxes) : 0;
}

/* Of this gateway alone: others have state directories of their own. */
static void prefix_of(const struct parent *p, char out[PREFIX])
{
    struct digest d;
    char hex[2 * DIGEST_BYTES + 1];
    digest_of(span_str(p->config->state_dir), &d);
    hex_text(span_of(d.b, 6), hex);
    snprintf(out, PREFIX, "countersign-%s-", hex);
}

void parent_boxes_sweep(const struct parent *p)
{
    char prefix[PREFIX];
    prefix_of(p, prefix);
    cgroup_sweep("/proc/self", prefix);
}

static void tell(struct parent *p, uint16_t type, uint64_t id, unsigned version, const char *why)
{
    struct child *warden = parent_child(p, ROLE_WARDEN, 0);
    struct dynbuf *b = warden && warden->chan ? chan_begin(warden->chan, type, id) : NULL;
    if (b == NULL)
        return;
    if (type == M_BOX_STARTED)
        msg_put_u8(b, (uint8_t)version);
    if (type == M_BOX_NONE)
        msg_put_span(b, span_str(why));
    (void)chan_commit(warden->chan);
}

/* lane: where its listener is, if it has one. */
static int start_box(struct parent *p, const struct running_box *b, char *image, const char *lane,
                     struct box_gives *g, int fd)
{
    unsigned user = user_of(p, b);
    char uid[64], gid[64], listener[CONFIG_PATH + 32], trust[CONFIG_PATH + 32], places[CONFIG_PATH + 32];
    char *envp[VARIABLES] = {NULL};
    size_t n = 0;
    if (p->uid_base > 0) {
        snprintf(uid, sizeof(uid), "COUNTERSIGN_UID=%u", user);
        snprintf(gid, sizeof(gid), "COUNTERSIGN_GID=%u", user);
        envp[n++] = uid;
        envp[n++] = gid;
    }
    if (b->image > 0)
        envp[n++] = image;
    if (b->lane) {
        snprintf(listener, sizeof(listener), "COUNTERSIGN_LANE=%s", lane);
        snprintf(trust, sizeof(trust), "COUNTERSIGN_TRUST=%s", p->config->state_dir);
        envp[n++] = listener;
        envp[n++] = trust;
    }
    if (g->mounts[0])
        envp[n++] = g->mounts;
    if (g->mounts[0] && p->uid_base > 0) {
        snprintf(places, sizeof(places), "COUNTERSIGN_PLACES=%s/places", p->config->state_dir);
        envp[n++] = places;
    }
    if (g->devices[0])
        envp[n++] = g->devices;
    int pid = parent_execute(p, "start-sandbox", fd, envp, b->cgroup.n > 0 ? &b->cgroup : NULL);
    if (pid > 0)
        (void)setpgid(pid, pid); /* it does so itself as well: whoever comes first */
    return pid;
}

static void let_go(struct running_box *b)
{
    if (b->image > 0)
        close(b->image - 1);
    b->image = 0;
    parent_extras_end(b);
}

static const char *begin(struct parent *p, struct running_box *b, const struct cgroup_amounts *a, bool strict,
                         struct span digest, struct span extras, int fd)
{
    static struct err e; /* until it is told */
    static struct box_gives gives;
    char prefix[PREFIX], leaf[LEAF], lane[CONFIG_PATH], image[IMAGE_PATH] = "COUNTERSIGN_IMAGE=";
    const size_t at = sizeof("COUNTERSIGN_IMAGE=") - 1;
    const char *why = parent_image_hold(p, digest, &b->image, image + at, sizeof(image) - at);
    if (why == NULL)
        why = parent_extras_give(p, b, extras, strict, &gives);
    if (why != NULL)
        return why;
    prefix_of(p, prefix);
    snprintf(leaf, sizeof(leaf), "%s%u-%s", prefix, (unsigned)(b - p->boxes), p->boot); /* free once it is gone */
    bool held = cgroup_make(&b->cgroup, "/proc/self", leaf, a);
    if (!held && strict)
        return "its limits cannot be held here: no cgroup can be made that holds memory, processes and CPU; `limits: "
               "approximate` holds less, each process for itself";
    if (!held && geteuid() == 0 && p->uid_base == 0)
        return "the number of its processes cannot be held here: no cgroup can be made, there is no other user to "
               "run it as, and root's processes are counted by nothing else";
    if (b->lane && parent_lane_open(p, b, user_of(p, b), lane, sizeof(lane), &e) != 0) {
        b->lane = 0;
        cgroup_end(&b->cgroup);
        return e.text;
    }
    if ((b->pid = start_box(p, b, image, lane, &gives, fd)) > 0)
        return NULL;
    b->pid = 0;
    parent_lane_close(p, b);
    cgroup_end(&b->cgroup);
    return "no process can be started for it; is the installation complete?";
}

void parent_box_start(struct parent *p, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    uint64_t generation = msg_get_u64(&m);
    struct cgroup_amounts a = {.memory = msg_get_u64(&m),
                               .pids = msg_get_u64(&m),
                               .cpu_percent = msg_get_u64(&m),
                               .freezes = true,
                               .counts = true};
    bool strict = msg_get_bool(&m);
    struct span digest = msg_get_span(&m, DIGEST_TEXT_MAX);
    bool lane = msg_get_bool(&m);
    struct span extras = msg_get_span(&m, EXTRAS_BYTES_MAX);
    struct running_box *b = NULL;
    const char *why = "it cannot be understood";
    int fd = frame_take_fd(f, 0);
    for (size_t i = 0; i < BOXES_MAX && b == NULL; i++)
        if (p->boxes[i].id == 0)
            b = &p->boxes[i];
    if (msg_end(&m) == 0 && fd >= 0 && f->id != 0 && a.memory > 0 && a.pids > 0 && a.pids <= INT32_MAX &&
        a.cpu_percent > 0 && a.cpu_percent <= CPU_PERCENT_MAX && !p->stopping) {
        a.pids += BOX_OURS;
        if (b != NULL) {
            *b = (struct running_box){.id = f->id, .generation = generation, .lane = lane};
            snprintf(b->name, sizeof(b->name), "%.*s", SPAN_FMT(name));
        }
        why = b ? begin(p, b, &a, strict, digest, extras, fd) : "too many sandboxes run";
    }
    if (why != NULL && b != NULL) {
        let_go(b);
        b->lane = 0;
        b->id = 0;
    }
    tell(p, why ? M_BOX_NONE : M_BOX_STARTED, f->id, b ? cgroup_version(&b->cgroup) : 0, why);
    if (fd >= 0)
        close(fd);
}

/* One that waited is somebody's: what the warden cannot write down any more goes by this. */
void parent_box_claimed(struct parent *p, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    uint64_t generation = msg_get_u64(&m);
    if (msg_end(&m) != 0 || name.n == 0) {
        log_error("the warden gives away what cannot be read");
        return;
    }
    for (size_t i = 0; i < BOXES_MAX; i++)
        if (p->boxes[i].id == f->id && f->id != 0) {
            snprintf(p->boxes[i].name, sizeof(p->boxes[i].name), "%.*s", SPAN_FMT(name));
            p->boxes[i].generation = generation;
        }
}

static void end_box(struct parent *p, struct running_box *b)
{
    if (b->id != 0 && b->id != BOX_OF_NONE) {
        parent_stores_end(p, b->id);
        parent_cells_end(p, b->id);
    }
    parent_lane_close(p, b);
    if (b->pid > 0 && kill(-b->pid, SIGKILL) != 0)
        (void)kill(b->pid, SIGKILL); /* it has no group of its own yet */
    if (b->way != PAUSE_NONE)
        (void)!cgroup_try_end(&b->cgroup); /* else what is frozen would not hear of it */
    b->way = PAUSE_NONE;
    b->looks = 0;
}

static void rest(void *arg);

void parent_box_end(struct parent *p, struct frame *f)
{
    for (size_t i = 0; i < BOXES_MAX; i++) {
        struct running_box *b = &p->boxes[i];
        if (b->id != f->id || f->id == 0)
            continue;
        b->ordered = 1;
        end_box(p, b);
        if (b->gone)
            rest(p);
    }
}

/* Each that ends is ordered to by a warden that lives, also when its process ended by itself: until then it may be
 * that nobody has written that down. Its user is given to the next one when nothing of it is left: what the kernel
 * still ends is counted in the cgroup; of its commands with walls of their own the outer processes are ours to wait
 * for, which is all that is waited for where there is none: the kernel may still be ending what was inside. */
static void rest(void *arg)
{
    struct parent *p = arg;
    bool left = false;
    for (size_t i = 0; i < BOXES_MAX; i++) {
        struct running_box *b = &p->boxes[i];
        if (b->id == 0 || b->pid > 0)
            continue;
        if (!b->gone && (parent_cells_left(p, b) || !cgroup_try_end(&b->cgroup))) {
            left = true;
            continue;
        }
        if (!b->gone) {
            tell(p, M_BOX_GONE, b->id, 0, NULL);
            let_go(b);
            b->gone = 1;
        }
        if (b->ordered || b->name[0] == '\0')
            *b = (struct running_box){0};
    }
    if (!left)
        return;
    if (p->boxes_rest == NULL && (p->boxes_rest = timer_new(p->loop, rest, p)) == NULL)
        log_die("out of memory");
    timer_set(p->boxes_rest, BOX_REST_MS);
}

bool parent_box_died(struct parent *p, int pid)
{
    for (size_t i = 0; i < BOXES_MAX; i++)
        if (p->boxes[i].pid == pid) {
            (void)kill(-pid, SIGKILL); /* what it left behind */
            parent_stores_end(p, p->boxes[i].id);
            parent_cells_end(p, p->boxes[i].id);
            parent_lane_close(p, &p->boxes[i]);
            p->boxes[i].pid = 0;
            p->boxes[i].looks = 0;
            rest(p);
            return true;
        }
    return false;
}

/* What the warden cannot write down any more. */
static void note_end(struct parent *p, const struct running_box *b, const char *why)
{
    struct dynbuf json;
    struct jsonw w;
    dynbuf_init(&json, 1024);
    jsonw_begin(&w, &json);
    jsonw_object(&w);
    jsonw_kv(&w, "sandbox", span_str(b->name));
    jsonw_kv_u64(&w, "generation", b->generation);
    jsonw_kv(&w, "why", span_str(why));
    jsonw_end_object(&w);
    parent_note(p, "sandbox-ended", &json);
    dynbuf_free(&json);
}

void parent_boxes_end(struct parent *p, const char *why)
{
    parent_stores_end(p, 0);
    parent_cells_end(p, 0);
    for (size_t i = 0; i < BOXES_MAX; i++) {
        struct running_box *b = &p->boxes[i];
        if (b->id == 0)
            continue;                          /* a free place, and mostly memory that was never touched */
        if (!b->ordered && b->name[0] != '\0') /* nobody's is nobody's loss */
            note_end(p, b, why);
        b->ordered = 1; /* that is written down now */
        end_box(p, b);
        b->id = BOX_OF_NONE;
        if (b->gone)
            *b = (struct running_box){0};
    }
}
