/* Sandboxes of the warden's that stand still and go on: frozen by their cgroup where it freezes, so that what runs in
 * one cannot know of it; else each of its processes is stopped by a signal, until none is seen that runs. */
#include "common/log.h"
#include "common/msg.h"
#include "common/role/family.h"
#include "proxy/parent/parent.h"
#include "proxy/parent/programs/cells.h"

enum {
    LOOK_MS = 20,
    LOOKS = 500, /* for ten seconds: while one looks at all of them nobody may end */
};

static void tell(struct parent *p, const struct running_box *b, const char *why)
{
    struct child *warden = parent_child(p, ROLE_WARDEN, 0);
    struct dynbuf *m = warden && warden->chan ? chan_begin(warden->chan, M_BOX_PAUSED, b->id) : NULL;
    if (m == NULL)
        return;
    msg_put_u8(m, (uint8_t)b->way);
    msg_put_span(m, why ? span_str(why) : SPAN_NONE);
    (void)chan_commit(warden->chan);
}

static int go_on(struct running_box *b)
{
    int rc = b->way == PAUSE_SIGNALS ? family_continue(b->pid) : cgroup_freeze(&b->cgroup, false);
    if (rc == 0)
        b->way = PAUSE_NONE;
    b->looks = 0;
    return rc;
}

/* 1 all of it stands still, 0 not yet, -1 that cannot be known. */
static int stands(struct running_box *b)
{
    if (b->way != PAUSE_SIGNALS)
        return cgroup_frozen(&b->cgroup);
    return family_stop(b->pid);
}

/* False: it is not yet known, and looked at again. */
static bool look(struct parent *p, struct running_box *b)
{
    int rc = stands(b);
    if (rc == 0 && --b->looks > 0)
        return false;
    b->looks = 0;
    if (rc == 1) {
        tell(p, b, NULL);
        return true;
    }
    if (go_on(b) != 0)
        log_error("sandbox %s can neither be paused nor go on", b->name);
    tell(p, b,
         rc == 0 ? "a process in it did not stop in time" : "it cannot be seen here whether its processes stop");
    return true;
}

static void look_again(void *arg)
{
    struct parent *p = arg;
    bool left = false;
    for (size_t i = 0; i < BOXES_MAX; i++)
        if (p->boxes[i].looks > 0)
            left |= !look(p, &p->boxes[i]);
    if (!left)
        return;
    if (p->boxes_look == NULL && (p->boxes_look = timer_new(p->loop, look_again, p)) == NULL)
        log_die("out of memory");
    timer_set(p->boxes_look, LOOK_MS);
}

/* What has walls of its own in it comes from us and not from its first process: a cgroup alone stops that with it. */
static void pause_begin(struct parent *p, struct running_box *b)
{
    bool frozen = cgroup_freeze(&b->cgroup, true) == 0;
    if (!frozen && parent_cells_left(p, b)) {
        tell(p, b,
             "a command with a lane of its own runs in it, which cannot be stopped with the others here; it can "
             "be paused when that has ended");
        return;
    }
    b->way = !frozen ? PAUSE_SIGNALS : cgroup_freezer(&b->cgroup) == 1 ? PAUSE_CGROUP_1 : PAUSE_CGROUP_2;
    b->looks = LOOKS;
    look_again(p);
}

void parent_box_pause(struct parent *p, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool on = msg_get_bool(&m);
    struct running_box *b = NULL;
    for (size_t i = 0; i < BOXES_MAX && b == NULL; i++)
        if (p->boxes[i].id == f->id && f->id != 0 && p->boxes[i].pid > 0)
            b = &p->boxes[i];
    if (msg_end(&m) != 0)
        log_error("the warden pauses what cannot be read");
    else if (b == NULL)
        log_debug("sandbox %llu ends, and does not pause", (unsigned long long)f->id);
    else if (!on)
        tell(p, b, go_on(b) == 0 ? NULL : "its processes cannot be told to go on");
    else {
        pause_begin(p, b);
    }
}
