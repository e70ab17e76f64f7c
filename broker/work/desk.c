/* Questions to the desk: for the turn's tenant, and with its lane where it has one. */
#include <stdlib.h>

#include "broker/work/work.h"
#include "common/json/json.h"

enum { TARGET_MAX = 16 * 1024 };

struct wish {
    struct task *task;
    struct errand *errand;
    told_fn *fn;
    uint64_t arg;
    struct wish *next;
};

static void over(struct wish *w)
{
    struct task *t = w->task;
    for (struct wish **at = &t->wishes; *at != NULL; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            t->nwishes--;
            break;
        }
    errand_free(&w->errand);
    free(w);
}

static void heard(void *arg, struct errand *e, enum errand_event ev)
{
    struct wish *w = arg;
    struct wish is = *w;
    if (ev == ERRAND_ROOM)
        return;
    unsigned status = e->status;
    struct span body = ev == ERRAND_DATA ? arena_copy(&w->task->step_arena, e->data) : SPAN_NONE;
    if (ev != ERRAND_DATA && e->why != NULL)
        body = arena_printf(&w->task->step_arena, "{\"detail\":\"%s\"}", e->why);
    over(w);
    if (!is.task->over)
        is.fn(is.task, is.arg, status != 0 ? status : 503, body);
}

static struct wish *ask(struct task *t, const struct errand_ask *a, told_fn *fn, uint64_t arg)
{
    struct wish *w = t->nwishes < WORK_WISHES_MAX && a->target.p != NULL ? calloc(1, sizeof(*w)) : NULL;
    if (w != NULL) {
        *w = (struct wish){.task = t, .fn = fn, .arg = arg, .next = t->wishes};
        w->errand = errand_new(&t->w->errands, a, heard, w);
    }
    if (w == NULL || w->errand == NULL) {
        free(w);
        fn(t, arg, 503, SPAN("{\"detail\":\"the gateway cannot be asked at the moment\"}"));
        return NULL;
    }
    t->wishes = w;
    t->nwishes++;
    return w;
}

void desk_ask(struct task *t, const char *method, struct span target, struct span json, told_fn *fn, uint64_t arg)
{
    const struct errand_ask a = {.tenant = span_of(t->claim.tenant, t->claim.tenant_n),
                                 .lane = span_str(t->lane),
                                 .method = method,
                                 .target = target,
                                 .json = json,
                                 .whole = true};
    (void)ask(t, &a, fn, arg);
}

void desk_put(struct task *t, struct span target, struct span body, told_fn *fn, uint64_t arg)
{
    const struct errand_ask a = {.tenant = span_of(t->claim.tenant, t->claim.tenant_n),
                                 .lane = span_str(t->lane),
                                 .method = "PUT",
                                 .target = target,
                                 .upload = true,
                                 .whole = true};
    struct wish *w = ask(t, &a, fn, arg);
    if (w != NULL && ((body.n > 0 && errand_write(w->errand, body) != 0) || errand_write_end(w->errand) != 0)) {
        over(w);
        fn(t, arg, 413, SPAN("{\"detail\":\"this is more than can be written at once\"}"));
    }
}

void desk_forget(struct task *t)
{
    while (t->wishes != NULL)
        over(t->wishes);
}

struct span desk_box(struct task *t, const char *rest, struct span path)
{
    struct dynbuf b;
    dynbuf_init(&b, TARGET_MAX);
    (void)dynbuf_addf(&b, "/api/v1/sandboxes/%s%s", t->box, rest);
    if (path.p != NULL) {
        (void)dynbuf_addf(&b, "%cpath=", span_index(dynbuf_span(&b), '?') == b.n ? '?' : '&');
        dynbuf_add_percent(&b, path, "-._/");
    }
    return arena_keep(&t->step_arena, &b);
}

struct span desk_words(struct task *t, unsigned status, struct span body)
{
    struct span words = json_text(json_parse(body, &t->step_arena), SPAN("detail"));
    return words.n > 0 ? words : arena_printf(&t->step_arena, "the gateway answered %u", status);
}
