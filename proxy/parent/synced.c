/* A reload is answered when every role has acted on it: who was told that a policy is in force is not judged by the
 * one before it any more. A role that dies begins anew with what is in force and is waited for no longer; one that
 * stays silent is named, and the answer is then no: nobody may rely on what was not confirmed. */
#include <stdio.h>

#include "common/log.h"
#include "proxy/parent/parent.h"

enum { PATIENCE_MS = 5000 };

static void say(struct parent *p, bool ok)
{
    struct reloading *r = &p->reloading;
    struct child *desk = parent_child(p, ROLE_DESK, 0);
    struct dynbuf *b = r->desk_id && desk && desk->chan ? chan_begin(desk->chan, M_RELOADED, r->desk_id) : NULL;
    if (b != NULL) {
        msg_put_u8(b, ok);
        msg_put_span(b, span_str(r->said));
        (void)chan_commit(desk->chan);
    }
    r->desk_id = 0;
}

static struct child *silent(struct parent *p)
{
    struct child *c = p->children;
    while (c != NULL && !c->awaited)
        c = c->next;
    return c;
}

static void unless_awaited(struct parent *p)
{
    if (p->reloading.desk_id && silent(p) == NULL)
        say(p, true);
}

static void too_slow(void *arg)
{
    struct parent *p = arg;
    struct child *c = silent(p);
    if (c == NULL)
        return;
    bool of = c->role == ROLE_FRONT; /* there are many of them */
    log_warn("the %s%s%s has not said that it has the new policy", role_name(c->role), of ? " of " : "",
             of ? c->info : "");
    snprintf(p->reloading.said, sizeof(p->reloading.said),
             "the new policy was sent, but the %s%s%s has not said that it acts on it and may still go by the one "
             "before: see 'countersign status' and the log, then reload again",
             role_name(c->role), of ? " of " : "", of ? c->info : "");
    say(p, false);
}

void parent_await(struct parent *p, uint64_t desk_id, const char *said)
{
    struct reloading *r = &p->reloading;
    if (r->desk_id) { /* whoever asked before, and waits still: this one is newer */
        snprintf(r->said, sizeof(r->said),
                 "another change of the policy came before every role had confirmed this one");
        say(p, false);
    }
    if (r->patience == NULL && (r->patience = timer_new(p->loop, too_slow, p)) == NULL)
        log_die("out of memory");
    r->sync++;
    r->desk_id = desk_id;
    snprintf(r->said, sizeof(r->said), "%s", said);
    for (struct child *c = p->children; c != NULL; c = c->next)
        c->awaited = c->ready && c->chan != NULL && chan_send(c->chan, M_SYNC, r->sync, SPAN_NONE) == 0;
    timer_set(r->patience, PATIENCE_MS);
    unless_awaited(p);
}

void parent_synced(struct parent *p, struct child *c, uint64_t sync)
{
    if (sync != p->reloading.sync)
        return;
    c->awaited = false;
    unless_awaited(p);
}

void parent_sync_gone(struct parent *p, struct child *c)
{
    c->awaited = false;
    if (c->role == ROLE_DESK)
        p->reloading.desk_id = 0; /* the question went with it */
    unless_awaited(p);
}
