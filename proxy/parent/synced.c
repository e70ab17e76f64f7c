/* A reload is answered when every role has acted on it: who was told that a policy is in force is not judged by the
 * one before it any more. A role that is gone or slow holds the answer up for a few seconds, no longer. */
#include <stdio.h>

#include "common/log.h"
#include "proxy/parent/parent.h"

enum { PATIENCE_MS = 5000 };

static void say(struct parent *p)
{
    struct reloading *r = &p->reloading;
    struct child *desk = parent_child(p, ROLE_DESK, 0);
    struct dynbuf *b = r->desk_id && desk && desk->chan ? chan_begin(desk->chan, M_RELOADED, r->desk_id) : NULL;
    if (b != NULL) {
        msg_put_u8(b, true);
        msg_put_span(b, span_str(r->said));
        (void)chan_commit(desk->chan);
    }
    r->desk_id = 0;
    r->left = 0;
}

static void too_slow(void *arg)
{
    struct parent *p = arg;
    if (p->reloading.desk_id == 0)
        return;
    log_warn("a role has not said that it has the new policy; it is told all the same");
    say(p);
}

void parent_await(struct parent *p, uint64_t desk_id, const char *said)
{
    struct reloading *r = &p->reloading;
    say(p); /* to whoever asked before, and waits still: this one is newer */
    if (r->patience == NULL)
        r->patience = timer_new(p->loop, too_slow, p);
    r->sync++;
    r->desk_id = desk_id;
    snprintf(r->said, sizeof(r->said), "%s", said);
    for (struct child *c = p->children; c != NULL; c = c->next)
        if (c->ready && c->chan != NULL && chan_send(c->chan, M_SYNC, r->sync, SPAN_NONE) == 0)
            r->left++;
    if (r->left == 0 || r->patience == NULL)
        say(p);
    else
        timer_set(r->patience, PATIENCE_MS);
}

void parent_synced(struct parent *p, uint64_t sync)
{
    struct reloading *r = &p->reloading;
    if (sync == r->sync && r->left > 0 && --r->left == 0)
        say(p);
}
