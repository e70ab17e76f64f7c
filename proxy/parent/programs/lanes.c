/* The way out of a sandbox that the warden has started: a listener of the gateway that is its own, and by which it is
 * known, as long as it lives. The first process inside is given the socket as a descriptor (sandbox-shim/start/). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proxy/parent/parent.h"

static struct listener *lane_of(struct parent *p, const char *name)
{
    for (size_t i = 0; i < p->nlisteners; i++)
        if (p->listeners[i].fd >= 0 && p->listeners[i].role == ROLE_FRONT && p->listeners[i].own[0] == '\0' &&
            strcmp(p->listeners[i].name, name) == 0)
            return &p->listeners[i];
    return NULL;
}

int parent_lane_open(struct parent *p, struct running_box *b, unsigned user, char *path, size_t room, struct err *e)
{
    size_t lanes = 0;

    for (size_t i = 0; i < p->nlisteners; i++)
        lanes += p->listeners[i].fd >= 0 && p->listeners[i].lane;
    if (lanes >= LANES_MAX)
        return err_set(e, "as many sandboxes have a network as may at once");
    int n = snprintf(path, room, "%s/run/sb-%s.sock", p->config->state_dir, b->name);
    if (n < 0 || (size_t)n >= room || n > 107)
        return err_set(e, "the state directory's path is too long for a Unix socket; choose a shorter one");
    if (parent_sandbox_bind(p, b->name, path, LISTEN_STEPS, NULL, e) != 0)
        return -1;
    lane_of(p, b->name)->lane = true;
    if (user == 0 || chown(path, user, user) == 0) /* nobody else gets to it: the folder is ours alone */
        return 0;
    (void)err_errno(e, "its own listener %s cannot be made its user's", path);
    parent_lane_close(p, b);
    return -1;
}

void parent_lane_close(struct parent *p, struct running_box *b)
{
    if (b->lane)
        parent_sandbox_close(p, span_str(b->name));
    b->lane = 0;
}
