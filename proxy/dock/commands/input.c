/* What commands are given: in the order in which it came, and no more than they take. */
#include "proxy/dock/ask.h"
#include "proxy/dock/commands/process.h"

/* What was refused it was not given, and has room as before. */
static void not_given(struct proc *p, const struct feeder *f)
{
    p->unfed -= f->now < p->unfed ? f->now : p->unfed;
}

/* It is none of those who give any more, and the next one goes on. */
static void leave(struct call *x)
{
    struct proc *p = x->proc;

    x->proc = NULL;
    if (!p)
        return;
    for (struct feeder **at = &p->feeders; *at; at = &(*at)->next)
        if ((*at)->call == x) {
            *at = (*at)->next;
            break;
        }
    input_go(p);
}

static void feeder_gone(struct call *x)
{
    const struct feeder *f = x->step;

    if (x->proc && f->asking && !x->errand) /* nobody could be asked */
        not_given(x->proc, f);
    leave(x);
}

static void given(struct call *x, unsigned status, struct span body)
{
    struct feeder *f = x->step;
    struct proc *p = x->proc;
    struct jsonw w;

    f->asking = false;
    if (status == 204 && f->rest.n > 0) {
        if (p)
            input_go(p);
        else
            reply_no(x, 404, "the command has ended");
        return;
    }
    if (status != 204 && p)
        not_given(p, f);
    leave(x); /* before it is answered: who does not read that is asked for nothing more, and keeps nobody waiting */
    if (status != 204) {
        reply_desk(x, status, body);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_end_object(&w);
    call_answer(x);
}

void input_go(struct proc *p)
{
    struct feeder *f = p->feeders;
    size_t room = p->window > p->unfed ? p->window - p->unfed : 0;

    if (!f || f->asking || (room == 0 && f->rest.n > 0))
        return;
    struct span now = span_first(f->rest, room);
    struct span target = arena_printf(&f->call->arena, "/api/v1/streams/%llu/input", (unsigned long long)p->stream);
    f->rest = span_from(f->rest, now.n);
    f->asking = true;
    f->now = (uint32_t)now.n;
    p->unfed += f->now; /* before it is sent: that it was taken may be heard before this is answered */
    ask_desk(f->call, "POST", target, now.n ? now : SPAN(""), given);
}

void input_give(struct proc *p, struct call *x, struct span bytes, bool ends)
{
    struct feeder *f = arena_alloc(&x->arena, sizeof(*f)), **at = &p->feeders;
    struct jsonw w;

    if (!f) {
        reply_no(x, 503, "no memory");
        return;
    }
    if (p->window == 0) {
        reply_no(x, 409, "this command has no input: start it with `stdin: true`");
        return;
    }
    if (bytes.n == 0 && !ends) {
        reply_json(x, 200, &w);
        jsonw_object(&w);
        jsonw_end_object(&w);
        call_answer(x);
        return;
    }
    *f = (struct feeder){.call = x, .rest = bytes, .ends = ends};
    while (*at)
        at = &(*at)->next;
    *at = f;
    x->step = f;
    x->proc = p;
    x->gone = feeder_gone;
    if (p->feeders == f)
        input_go(p);
}

void input_over(struct proc *p)
{
    while (p->feeders) {
        struct feeder *f = p->feeders;
        p->feeders = f->next;
        f->call->proc = NULL;
        if (!f->asking) /* else it is answered by the desk */
            reply_no(f->call, 404, "the command has ended");
    }
}
