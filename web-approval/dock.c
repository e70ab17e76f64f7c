#include "web-approval/dock.h"

#include "web-approval/ask.h"
#include "web-approval/broker/broker.h"
#include "web-approval/streams/follow.h"

void (*dock_drop)(struct server *s, struct span key);

/* --- what it opens ------------------------------------------------------------- */

static int first_note(void *ctx, const struct token_row *r)
{
    struct span *note = ctx;

    if (note->n == 0)
        *note = r->note;
    return 0;
}

int dock_note(struct exchange *x, struct span sandbox, struct span *note, struct err *e)
{
    *note = SPAN_NONE;
    return desk_store_tokens(x->desk->store, "access", sandbox, &x->arena, first_note, note, e);
}

/* What opened one before it was idle opens it no more: a key does. */
static bool is_there(const struct caller *c, const struct sandbox_row *r)
{
    bool key = c->box[0] == '\0';

    return span_eq(r->kind, SPAN("started")) ? key || r->restored == c->restored
                                             : key && span_eq(r->kind, SPAN("idle"));
}

int dock_owns(struct exchange *x, struct span sandbox, struct dock_own *o)
{
    const struct caller *c = &x->caller;
    struct sandbox_row row;
    struct err e;
    int rc = 0;

    if (o)
        *o = (struct dock_own){.restored = 0};
    if (c->box[0] && !span_eq(sandbox, span_str(c->box)))
        return 0;
    rc = desk_store_sandbox(x->desk->store, sandbox, &x->arena, &row, &e);
    bool own = rc == 1 && is_there(c, &row) && span_eq(row.tenant, span_str(c->tenant));
    if (own && o) {
        o->restored = row.restored;
        rc = dock_note(x, sandbox, &o->note, &e) == 0 ? 1 : -1;
    }
    if (rc < 0)
        reply_unable(x, &e);
    return rc < 0 ? -1 : own;
}

struct span dock_lane(const struct desk *d, const struct caller *c)
{
    struct span rest = span_str(c->broker ? d->broker_lanes : d->dock_lanes), line, whose, lane;
    struct span tenant = span_str(c->tenant);

    while (span_cut(rest, '\n', &line, &rest))
        if (span_cut(line, ' ', &whose, &lane) && span_eq(whose, tenant))
            return lane;
    return SPAN_NONE;
}

static struct span sandbox_of_stream(const struct desk *d, struct span number)
{
    const struct follow *f = d->following;
    uint64_t id;

    if (span_u64(number, UINT64_MAX, &id) != 0 || id == 0)
        return SPAN_NONE;
    while (f && f->id != id)
        f = f->next;
    return f ? span_str(f->share.box) : SPAN_NONE;
}

/* With the lane of its conversation, as all that is done there. */
static bool ends(const struct exchange *x)
{
    const struct span last = SPAN("/destroy");

    return x->head.path.n > last.n && span_eq(span_from(x->head.path, x->head.path.n - last.n), last);
}

bool dock_admits(struct exchange *x, bool keys)
{
    bool stream = span_starts(x->head.path, SPAN("/api/v1/streams/"));
    struct span box = stream ? sandbox_of_stream(x->desk, x->arg) : x->arg;

    if (keys && x->caller.box[0]) {
        reply_problem(x, 403, "Not permitted", "what opens one sandbox does not do this: an API key is asked for");
        return false;
    }
    if (keys && x->caller.broker && x->arg.n > 0 && !ends(x)) {
        reply_problem(x, 403, "Not permitted",
                      "the broker starts sandboxes, works in them and ends them: nothing else");
        return false;
    }
    bool kept = span_starts(x->head.path, SPAN("/api/v1/checkpoints/")) || /* looked for among its tenant's alone */
                span_starts(x->head.path, SPAN("/api/v1/conversations/")) ||
                span_starts(x->head.path, SPAN("/api/v1/telemetry/"));
    if (x->arg.n == 0 || kept) /* of no sandbox: what it answers, or begins, is the caller's */
        return true;
    int own = box.n > 0 ? dock_owns(x, box, NULL) : 0;
    if (own == 0)
        reply_problem(x, 404, "No such sandbox", "no sandbox of this name runs");
    return own == 1 && (!x->caller.broker || span_eq(x->head.method, SPAN("GET")) || broker_lane(x, box));
}
