#include "proxy/dock/ask.h"

#include "proxy/errand/errand.h"

struct asking {
    struct call *x;
    ask_fn *fn;
};

struct span ask_box(struct call *x, struct span box, const char *rest)
{
    return arena_printf(&x->arena, "/api/v1/sandboxes/%.*s%s", SPAN_FMT(box), rest);
}

struct span ask_path(struct call *x, struct span target, const char *key, struct span value)
{
    struct dynbuf b;
    bool first = span_index(target, '?') == target.n;

    dynbuf_init(&b, HTTP_TARGET_MAX);
    (void)dynbuf_add(&b, target);
    (void)dynbuf_addf(&b, "%c%s=", first ? '?' : '&', key);
    dynbuf_add_percent(&b, value, "-._/");
    return arena_keep(&x->arena, &b);
}

void ask_json_begin(struct ask_json *j)
{
    dynbuf_init(&j->b, DOCK_BODY_MAX);
    jsonw_begin(&j->w, &j->b);
    jsonw_object(&j->w);
}

struct span ask_json_end(struct call *x, struct ask_json *j)
{
    jsonw_end_object(&j->w);
    return arena_keep(&x->arena, &j->b);
}

static void heard(void *arg, struct errand *e, enum errand_event ev)
{
    const struct asking *a = arg;
    struct call *x = a->x;
    unsigned status = e->status;
    struct span body = SPAN_NONE;

    if (ev == ERRAND_ROOM)
        return;
    if (e->opened)
        call_holder(x, e->tenant);
    if (ev == ERRAND_DATA)
        body = arena_copy(&x->arena, e->data);
    else
        body = arena_printf(&x->arena, "{\"detail\":\"%s\"}", e->why);
    errand_free(&x->errand);
    if (status == 401 &&
        x->form != CALL_CONTROL) { /* a token goes with its sandbox: which of the two it is, is not said */
        status = 502;
        body = SPAN("{\"detail\":\"the sandbox does not run, or this token does not open it\"}");
    }
    a->fn(x, status, body);
}

void ask_desk(struct call *x, const char *method, struct span target, struct span json, ask_fn *fn)
{
    struct asking *a = arena_alloc(&x->arena, sizeof(*a));
    const struct errand_ask ask = {.token = &x->token,
                                   .box = x->form == CALL_CONTROL ? SPAN_NONE : x->arg,
                                   .method = method,
                                   .target = target,
                                   .json = json,
                                   .whole = true};

    if (a)
        *a = (struct asking){x, fn};
    x->errand = a && target.p ? errand_new(&x->dock->errands, &ask, heard, a) : NULL;
    if (!x->errand)
        reply_no(x, 503, "the gateway cannot be asked at the moment; try again");
}

const struct json *ask_own(struct call *x, unsigned status, struct span body)
{
    const struct json *all = status == 200 ? json_get(json_parse(body, &x->arena), SPAN("started")) : NULL;

    if (!all || !all->child)
        reply_desk(x, status, body);
    return all ? all->child : NULL;
}
