/* What the warden's sandboxes use: as their cgroups count it, else as each of their processes shows it. */
#include "common/msg.h"
#include "common/role/family.h"
#include "proxy/parent/parent.h"
#include "proxy/wire.h"

static struct wire_usage by_cgroup(const struct cgroup *c)
{
    struct cgroup_usage u;
    cgroup_usage(c, &u);
    return (struct wire_usage){(uint8_t)cgroup_version(c), u.memory, u.peak, u.files, u.pids, u.cpu_us};
}

/* Those without a cgroup, in one look at all processes. */
static void by_process(const struct parent *p, struct family_usage u[BOXES_MAX])
{
    static pid_t from[BOXES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < BOXES_MAX; i++)
        if (p->boxes[i].pid > 0 && p->boxes[i].cgroup.n == 0)
            from[n++] = p->boxes[i].pid;
    if (n > 0)
        family_usage(from, n, u);
}

void parent_boxes_meter(struct parent *p, struct frame *f)
{
    static struct family_usage seen[BOXES_MAX];
    struct child *warden = parent_child(p, ROLE_WARDEN, 0);
    struct dynbuf *b = warden && warden->chan ? chan_begin(warden->chan, M_BOX_METER, f->id) : NULL;
    struct dynbuf bytes;
    uint16_t n = 0;
    size_t next = 0;
    if (b == NULL)
        return;
    dynbuf_init(&bytes, WIRE_USAGE);
    for (size_t i = 0; i < BOXES_MAX; i++)
        n += p->boxes[i].pid > 0;
    msg_put_u16(b, n);
    by_process(p, seen);
    for (size_t i = 0; i < BOXES_MAX; i++) {
        const struct running_box *box = &p->boxes[i];
        if (box->pid <= 0)
            continue;
        struct wire_usage u = {0, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
        if (box->cgroup.n > 0)
            u = by_cgroup(&box->cgroup);
        else {
            const struct family_usage *s = &seen[next++];
            u.memory = s->memory;
            u.cpu_us = s->cpu_us;
            u.pids = s->pids;
        }
        dynbuf_reset(&bytes);
        wire_put_usage(&bytes, &u);
        msg_put_u64(b, box->id);
        msg_put_span(b, dynbuf_span(&bytes));
    }
    dynbuf_free(&bytes);
    (void)chan_commit(warden->chan);
}
