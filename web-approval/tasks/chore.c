#include "web-approval/tasks/chore.h"

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "web-approval/api/api.h"

enum { WHY_MAX = 512 };

struct dynbuf *chore_begin(struct chore *c, struct exchange *x, unsigned type)
{
    struct desk *d = x->desk;
    struct dynbuf *b = d->warden ? chan_begin(d->warden, (uint16_t)type, ++d->last_id) : NULL;

    *c = (struct chore){.id = d->last_id};
    if (!b)
        reply_problem(x, 503, "Not possible now", "the warden does not run at the moment");
    else
        c->x = x;
    return b;
}

static void unlink_chore(struct chore *c)
{
    struct chore **at = &c->x->desk->chores;

    while (*at && *at != c)
        at = &(*at)->next;
    if (*at)
        *at = c->next;
    c->x = NULL;
}

void chore_drop(struct chore *c)
{
    struct desk *d = c->x ? c->x->desk : NULL;

    if (!d)
        return;
    unlink_chore(c);
    dynbuf_free(&c->said);
    api_started_unfollow(d, c->id);
}

/* As much of the input as it may be told of at once. -1: the warden does not take it. */
static int feed(struct chore *c)
{
    struct chan *warden = c->x->desk->warden;

    while (c->takes && c->unfed < TALK_IN_WINDOW) {
        struct span part = span_first(c->input, TALK_IN_WINDOW - c->unfed); /* none is the end of it */
        struct dynbuf *b = warden ? chan_begin(warden, M_SB_INPUT, c->id) : NULL;
        if (!b)
            return -1;
        (void)dynbuf_add(b, part);
        if (chan_commit(warden) != 0)
            return -1;
        c->unfed += (uint32_t)part.n;
        c->takes = part.n > 0;
        c->input = span_from(c->input, part.n);
    }
    return 0;
}

void chore_go(struct chore *c, struct span input, size_t most, chore_fn *done)
{
    struct exchange *x = c->x;
    struct desk *d = x->desk;

    c->input = input;
    c->takes = input.p != NULL;
    c->done = done;
    dynbuf_init(&c->said, most);
    c->next = d->chores;
    d->chores = c;
    if (chan_commit(d->warden) == 0 && feed(c) == 0)
        return;
    chore_drop(c);
    reply_problem(x, 503, "Not possible now", "the warden does not take more");
}

static void over(struct chore *c, struct transfer_end *e)
{
    struct exchange *x = c->x;
    struct dynbuf said = c->said; /* the next one may begin in its place */

    unlink_chore(c);
    e->said = dynbuf_span(&said);
    c->done(x, e);
    dynbuf_free(&said);
    if (x->status != 0)
        exchange_answered(x);
}

static void lost(struct chore *c, const char *why)
{
    over(c, &(struct transfer_end){.how = SB_LOST, .why = span_str(why)});
}

static void hear_exit(struct chore *c, struct msg_in m)
{
    struct transfer_end e = {.how = msg_get_u8(&m)};

    e.code = msg_get_u8(&m);
    for (int i = 0; i < 5; i++) /* what it used */
        (void)msg_get_u64(&m);
    e.why = msg_get_span(&m, WHY_MAX);
    if (msg_end(&m) != 0 || e.how > SB_TIMED_OUT)
        lost(c, "its end cannot be read");
    else
        over(c, &e);
}

static void hear_output(struct chore *c, struct msg_in m)
{
    struct desk *d = c->x->desk;
    unsigned which = msg_get_u8(&m);
    bool fine = !m.bad && (which != 1 || dynbuf_add(&c->said, m.rest) == 0);

    if (fine) {
        api_started_taken(d, c->id, (uint32_t)m.rest.n);
        return;
    }
    api_started_unfollow(d, c->id);
    lost(c, "it says more than was asked for");
}

static void hear_fed(struct chore *c, struct msg_in m)
{
    uint32_t n = msg_get_u32(&m);

    c->unfed -= n < c->unfed ? n : c->unfed;
    if (feed(c) == 0)
        return;
    api_started_unfollow(c->x->desk, c->id);
    lost(c, "the warden does not take more");
}

bool chore_hear(struct desk *d, const struct frame *f)
{
    struct chore *c = d->chores;

    while (c && (c->id != f->id || f->id == 0))
        c = c->next;
    if (!c)
        return false;
    if (f->type == M_SB_FED)
        hear_fed(c, msg_in(f->payload));
    else if (f->type == M_SB_OUTPUT)
        hear_output(c, msg_in(f->payload));
    else if (f->type == M_SB_EXIT)
        hear_exit(c, msg_in(f->payload));
    return true;
}

void chore_gone(struct desk *d)
{
    while (d->chores)
        lost(d->chores, "the warden ended");
}

void chore_left(struct exchange *x)
{
    struct chore *c = x->desk->chores;

    while (c && c->x != x)
        c = c->next;
    if (!c)
        return;
    api_started_unfollow(x->desk, c->id);
    lost(c, "nobody waits for it any more");
}
