/* A connection to a sandbox: one that is paused goes on for it, one that is idle is restored. */
#include "proxy/dock/ask.h"
#include "proxy/dock/control.h"
#include "proxy/dock/routes.h"

struct connecting {
    struct span template;
    uint64_t timeout_s, left_ms, restored;
    bool was_paused, again; /* again: it was idle */
    bool looked;            /* once more, for it could not be resumed */
};

static void opened(struct call *x, unsigned status, struct span body)
{
    const struct connecting *c = x->step;

    if (status != 204)
        reply_desk(x, status, body);
    else
        control_reply_open(x, c->was_paused ? 201 : 200,
                           &(struct box_open){x->arg, c->template, c->restored, c->again});
}

static void extended(struct call *x, unsigned status, struct span body)
{
    const struct connecting *c = x->step;
    struct ask_json a;

    if (status != 204) {
        reply_desk(x, status, body);
        return;
    }
    ask_json_begin(&a);
    control_put_access(x, &a.w, x->arg, c->restored);
    jsonw_kv_u64(&a.w, "restored", c->restored);
    struct span json = ask_json_end(x, &a);
    ask_desk(x, "POST", ask_box(x, x->arg, "/access"), json, opened);
}

/* How often it was, if it was idle until just now. */
static uint64_t restored_of(struct call *x, struct span body)
{
    uint64_t n = 0;

    return body.n > 0 && json_u64(json_parse(body, &x->arena), SPAN("restored"), &n) == 0 ? n : 0;
}

static void runs_by_now(struct call *x, unsigned status, struct span body);

static void goes_on(struct call *x, unsigned status, struct span body)
{
    struct connecting *c = x->step;
    struct ask_json a;

    if (status == 409 && !c->looked) { /* somebody else had it go on meanwhile? */
        c->looked = true;
        ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, runs_by_now);
        return;
    }
    if (status != 200) {
        reply_desk(x, status, body);
        return;
    }
    uint64_t restored = restored_of(x, body);
    c->again |= restored != 0;
    c->restored = restored ? restored : c->restored;
    if (c->timeout_s * 1000 <= c->left_ms) { /* a connection shortens no life */
        extended(x, 204, SPAN_NONE);
        return;
    }
    ask_json_begin(&a);
    jsonw_kv_u64(&a.w, "timeout", c->timeout_s);
    struct span json = ask_json_end(x, &a);
    ask_desk(x, "POST", ask_box(x, x->arg, "/timeout"), json, extended);
}

static void connecting(struct call *x, unsigned status, struct span body)
{
    struct connecting *c = x->step;
    const struct json *j;
    struct box b;

    if (!box_find(x, status, body, "started", &j))
        return;
    box_read(x, j, &b);
    c->template = json_text(b.note, SPAN("template"));
    c->left_ms = b.left_ms;
    c->was_paused = b.paused;
    c->restored = b.restored;
    if (b.paused)
        ask_desk(x, "POST", ask_box(x, x->arg, "/resume"), SPAN_NONE, goes_on);
    else
        goes_on(x, 200, SPAN_NONE);
}

static void runs_by_now(struct call *x, unsigned status, struct span body)
{
    struct connecting *c = x->step;
    const struct json *j;
    struct box b;

    if (!box_find(x, status, body, "started", &j))
        return;
    box_read(x, j, &b);
    if (b.paused) {
        reply_no(x, 409,
                 "the sandbox is paused still: somebody else pauses it, or has it go on; ask again in a moment");
        return;
    }
    c->again = b.restored != c->restored;
    c->restored = b.restored;
    c->left_ms = b.left_ms;
    goes_on(x, 200, SPAN_NONE);
}

void control_connect(struct call *x)
{
    struct connecting *c = arena_alloc(&x->arena, sizeof(*c));
    const struct json *j = control_body(x);

    if (!j)
        return;
    if (c)
        *c = (struct connecting){.looked = false};
    if (!c)
        reply_no(x, 503, "no memory");
    else if (control_without_memory(j))
        reply_no(x, 501, "a sandbox goes on with its processes here: `onResume: reboot` is not had");
    else if (control_timeout_take(x, j, false, &c->timeout_s) == 0) {
        x->step = c;
        ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, connecting);
    }
}
