/* Forks: sandboxes that begin with the files another one has now. Its files are kept once, as a snapshot that nobody
 * else is told of, and each fork is started from that; then it is removed, also when the caller does not wait. */
#include <stdio.h>
#include <stdlib.h>

#include "proxy/dock/control.h"
#include "proxy/errand/errand.h"
#include "proxy/dock/record.h"
#include "proxy/dock/routes.h"

enum { SWEEP_ARENA_MAX = 64 * 1024 };

struct forking {
    struct start start; /* the next */
    struct record is;
    struct span template;
    uint64_t count, n;
    bool snaps;     /* the snapshot is being made */
    struct jsonw w; /* into x->out */
};

/* --- what nobody waits for ---------------------------------------------------------------- */

/* The snapshot of a caller who has gone. */
struct sweep {
    struct dock *dock;
    struct digest token;
    struct errand *errand;
    bool removes;
};

static void swept(void *arg, struct errand *e, enum errand_event ev);

static void sweep_ask(struct sweep *s, struct dock *d, struct span id)
{
    char target[128];
    struct errand_ask ask = {.token = &s->token, .method = "DELETE", .whole = true};

    (void)snprintf(target, sizeof(target), "/api/v1/checkpoints/%.*s", SPAN_FMT(id));
    ask.target = span_str(target);
    s->removes = true;
    s->dock = d;
    s->errand = dock_name_ok(id) ? errand_new(&d->errands, &ask, swept, s) : NULL;
    if (!s->errand) /* it is listed, and can be removed */
        free(s);
}

static void swept(void *arg, struct errand *e, enum errand_event ev)
{
    struct sweep *s = arg;
    struct dock *d = s->dock;
    struct arena a;

    if (ev == ERRAND_ROOM)
        return;
    arena_init(&a, SWEEP_ARENA_MAX);
    bool is_made = !s->removes && ev == ERRAND_DATA && e->status == 201;
    struct span id = json_text(is_made ? json_parse(e->data, &a) : NULL, SPAN("id"));
    errand_free(&s->errand);
    if (id.n > 0)
        sweep_ask(s, d, id);
    else
        free(s);
    arena_free(&a);
}

static void fork_gone(struct call *x)
{
    struct forking *f = x->step;
    struct sweep *s = f->snaps || f->start.from.n > 0 ? calloc(1, sizeof(*s)) : NULL;

    if (!s)
        return;
    s->token = x->token;
    s->dock = x->dock;
    if (f->start.from.n > 0) {
        sweep_ask(s, x->dock, f->start.from);
    } else if (x->errand) { /* what it says is of use to us alone */
        s->errand = x->errand;
        s->errand->fn = swept;
        s->errand->arg = s;
        x->errand = NULL;
    } else {
        free(s);
    }
}

/* --- forks ---------------------------------------------------------------------------------- */

static void fork_next(struct call *x);

static void over(struct call *x, unsigned status, struct span body)
{
    call_answer(x);
}

static void started(struct call *x, unsigned status, struct span body)
{
    struct forking *f = x->step;
    const struct json *j = json_parse(body, &x->arena);
    struct span name = json_text(status == 201 ? j : NULL, SPAN("name")), why = json_text(j, SPAN("detail"));

    jsonw_object(&f->w);
    if (name.n > 0) {
        jsonw_key(&f->w, "sandbox");
        box_put_open(x, &f->w, &(struct box_open){.name = name, .template = f->template});
    } else {
        jsonw_kv_object(&f->w, "error");
        jsonw_kv_u64(&f->w, "code", status < 400 ? 503 : status);
        jsonw_kv(&f->w, "message", why.n ? why : SPAN("the gateway did not say why"));
        jsonw_end_object(&f->w);
    }
    jsonw_end_object(&f->w);
    if (++f->n < f->count) {
        fork_next(x);
        return;
    }
    jsonw_end_array(&f->w);
    struct span target = arena_printf(&x->arena, "/api/v1/checkpoints/%.*s", SPAN_FMT(f->start.from));
    f->start.from = SPAN_NONE; /* from here on nobody else removes it */
    ask_desk(x, "DELETE", target, SPAN_NONE, over);
}

static void fork_next(struct call *x)
{
    struct forking *f = x->step;

    f->start.name = control_name(x);
    control_start(x, &f->start, started);
}

static void snapped(struct call *x, unsigned status, struct span body)
{
    struct forking *f = x->step;

    f->snaps = false;
    f->start.from = json_text(status == 201 ? json_parse(body, &x->arena) : NULL, SPAN("id"));
    if (f->start.from.n == 0) {
        reply_desk(x, status, body);
        return;
    }
    reply_json(x, 201, &f->w);
    jsonw_array(&f->w);
    fork_next(x);
}

/* What was said of it when it was created holds for its forks. */
static void found(struct call *x, unsigned status, struct span body)
{
    struct forking *f = x->step;
    const struct json *j;
    struct record r;
    struct box b;

    if (!box_find(x, status, body, "started", &j))
        return;
    box_read(x, j, &b);
    record_of(b.note, &r);
    f->template = r.template;
    f->is = r;
    f->start.is = &f->is;
    f->start.alone = r.alone;
    f->start.note = record_text(x, &r);
    f->snaps = true;
    ask_desk(x, "POST", ask_box(x, x->arg, "/snapshot"), SPAN("{}"), snapped);
}

void fork_make(struct call *x)
{
    struct forking *f = arena_alloc(&x->arena, sizeof(*f));
    const struct json *j = control_body(x), *count;

    if (!j)
        return;
    if (!f) {
        reply_no(x, 503, "no memory");
        return;
    }
    *f = (struct forking){.count = 1};
    count = json_get(j, SPAN("count"));
    if (control_timeout_take(x, j, false, &f->start.timeout_s) != 0)
        return;
    if (count && (json_u64(j, SPAN("count"), &f->count) != 0 || f->count == 0 || f->count > DOCK_FORKS_MAX)) {
        reply_no(x, 400, "`count` is a whole number from 1 to %d", DOCK_FORKS_MAX);
        return;
    }
    x->step = f;
    x->gone = fork_gone;
    ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, found);
}
