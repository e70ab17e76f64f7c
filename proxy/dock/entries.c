/* Files as envd's Filesystem service has them: what there is of them, where, and away with them. */
#include "proxy/dock/ask.h"
#include "proxy/dock/paths.h"
#include "proxy/dock/routes.h"

static int path_of(struct call *x, const char *name, struct span *path)
{
    const struct json *j = call_message(x);

    return j ? path_take(x, json_text(j, span_str(name)), path) : -1;
}

/* --- of one ------------------------------------------------------------------------- */

struct one {
    struct span path, other;
};

static struct one *one_new(struct call *x)
{
    struct one *o = x->step = arena_alloc(&x->arena, sizeof(*o));

    if (!o)
        reply_no(x, 503, "no memory");
    return o;
}

static void told(struct call *x, unsigned status, struct span body)
{
    const struct one *o = x->step;
    const struct json *e = status == 200 ? json_parse(body, &x->arena) : NULL;
    struct jsonw w;

    if (!e) {
        reply_desk(x, status, body);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_key(&w, "entry");
    path_put_entry(&w, o->path, e);
    jsonw_end_object(&w);
    call_answer(x);
}

static void tell(struct call *x)
{
    const struct one *o = x->step;

    ask_desk(x, "GET", ask_path(x, ask_box(x, x->arg, "/files/stat"), "path", o->path), SPAN_NONE, told);
}

void entries_stat(struct call *x)
{
    struct one *o = one_new(x);

    if (o && path_of(x, "path", &o->path) == 0)
        tell(x);
}

/* Made, moved: what it is now, or why not. */
static void changed(struct call *x, unsigned status, struct span body)
{
    if (status == 204)
        tell(x);
    else
        reply_desk(x, status, body);
}

static void made(struct call *x, unsigned status, struct span body)
{
    const struct one *o = x->step;

    if (status != 200) { /* not there: it, and those above it */
        struct span target = ask_path(x, ask_box(x, x->arg, "/files/mkdir"), "path", o->path);
        if (target.p)
            target = ask_path(x, target, "parents", SPAN("true"));
        ask_desk(x, "POST", target, SPAN_NONE, changed);
        return;
    }
    bool folder = span_eq(json_text(json_parse(body, &x->arena), SPAN("kind")), SPAN("folder"));
    reply_code_no(x, 409, folder ? "already_exists" : "invalid_argument",
                  folder ? SPAN("the folder is there already") : SPAN("there is a file of that name"));
}

void entries_mkdir(struct call *x)
{
    struct one *o = one_new(x);

    if (o && path_of(x, "path", &o->path) == 0)
        ask_desk(x, "GET", ask_path(x, ask_box(x, x->arg, "/files/stat"), "path", o->path), SPAN_NONE, made);
}

static void move_now(struct call *x, unsigned status, struct span body)
{
    const struct one *o = x->step;

    if (status != 204) {
        reply_desk(x, status, body);
        return;
    }
    struct span target = ask_path(x, ask_box(x, x->arg, "/files/move"), "path", o->other);
    if (target.p)
        target = ask_path(x, target, "to", o->path);
    if (target.p)
        target = ask_path(x, target, "replace", SPAN("true"));
    ask_desk(x, "POST", target, SPAN_NONE, changed);
}

void entries_move(struct call *x)
{
    struct one *o = one_new(x);
    struct span folder;

    if (!o || path_of(x, "source", &o->other) != 0 ||
        path_take(x, json_text(x->json, SPAN("destination")), &o->path) != 0)
        return;
    folder = path_folder(o->path);
    if (folder.n == 0) {
        move_now(x, 204, SPAN_NONE);
        return;
    }
    struct span target = ask_path(x, ask_box(x, x->arg, "/files/mkdir"), "path", folder);
    if (target.p)
        target = ask_path(x, target, "parents", SPAN("true"));
    ask_desk(x, "POST", target, SPAN_NONE, move_now);
}

static void removed(struct call *x, unsigned status, struct span body)
{
    struct jsonw w;

    if (status != 204 && status != 404) { /* what is not there is removed, as envd has it */
        reply_desk(x, status, body);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_end_object(&w);
    call_answer(x);
}

void entries_remove(struct call *x)
{
    struct one *o = one_new(x);

    if (!o || path_of(x, "path", &o->path) != 0)
        return;
    struct span target = ask_path(x, ask_box(x, x->arg, "/files"), "path", o->path);
    if (target.p)
        target = ask_path(x, target, "recursive", SPAN("true"));
    ask_desk(x, "DELETE", target, SPAN_NONE, removed);
}

/* --- of a folder --------------------------------------------------------------------- */

struct far {
    struct span path;
    uint64_t depth; /* so far below the first one */
};
struct listing {
    uint64_t depth; /* 1: what is in it alone */
    struct far folder[DOCK_FAR_MAX];
    size_t now, n;
    struct span after; /* the last of this folder that was told of */
    struct dynbuf told;
    struct jsonw w;
};

static void list_next(struct call *x);

static void list_gone(struct call *x)
{
    struct listing *l = x->step;

    dynbuf_free(&l->told);
}

/* A name may be any bytes; what is no text is said a second time as it is. */
static struct span name_of(struct call *x, const struct json *e)
{
    struct span raw = json_text(e, SPAN("name_base64"));
    uint8_t *p = raw.n ? arena_alloc(&x->arena, raw.n) : NULL;
    size_t n = 0;

    if (raw.n == 0)
        return json_text(e, SPAN("name"));
    return p && base64_decode(raw, p, &n) == 0 ? span_of(p, n) : SPAN_NONE;
}

static void list_over(struct call *x)
{
    struct listing *l = x->step;
    struct jsonw w;

    jsonw_end_array(&l->w);
    jsonw_end_object(&l->w);
    if (!dynbuf_ok(&l->told)) {
        reply_no(x, 413, "the folder has more than is told at once");
        return;
    }
    reply_json(x, 200, &w);
    (void)dynbuf_add(&x->out, dynbuf_span(&l->told));
    call_answer(x);
}

/* -1: more folders than are looked at. */
static int entry_take(struct call *x, const struct json *e)
{
    struct listing *l = x->step;
    const struct far *in = &l->folder[l->now];
    struct span name = name_of(x, e), path = arena_join(&x->arena, in->path, SPAN("/"));

    l->after = name;
    if (path.p)
        path = arena_join(&x->arena, span_eq(in->path, SPAN("/")) ? in->path : path, name);
    if (!path.p)
        return -1;
    path_put_entry(&l->w, path, e);
    if (!span_eq(json_text(e, SPAN("kind")), SPAN("folder")) || in->depth + 1 >= l->depth)
        return 0;
    if (l->n == DOCK_FAR_MAX)
        return -1;
    l->folder[l->n++] = (struct far){path, in->depth + 1};
    return 0;
}

static void listed(struct call *x, unsigned status, struct span body)
{
    struct listing *l = x->step;
    const struct json *j = status == 200 ? json_parse(body, &x->arena) : NULL, *all = json_get(j, SPAN("entries"));
    const struct json *more = json_get(j, SPAN("more"));

    if (!all) {
        reply_desk(x, status, body);
        return;
    }
    for (const struct json *e = all->child; e; e = e->next)
        if (entry_take(x, e) != 0) {
            reply_no(x, 413, "more than %d folders lie in it: ask for less depth", DOCK_FAR_MAX);
            return;
        }
    if (!more || !more->truth || all->count == 0) {
        l->now++;
        l->after = SPAN_NONE;
    }
    if (l->now < l->n)
        list_next(x);
    else
        list_over(x);
}

static void list_next(struct call *x)
{
    const struct listing *l = x->step;
    struct span target = ask_path(x, ask_box(x, x->arg, "/files/list"), "path", l->folder[l->now].path);

    if (target.p && l->after.n)
        target = ask_path(x, target, "after", l->after);
    ask_desk(x, "GET", target, SPAN_NONE, listed);
}

void entries_list(struct call *x)
{
    struct listing *l = arena_alloc(&x->arena, sizeof(*l));

    if (!l) {
        reply_no(x, 503, "no memory");
        return;
    }
    dynbuf_init(&l->told, DOCK_ANSWER_MAX);
    jsonw_begin(&l->w, &l->told);
    jsonw_object(&l->w);
    jsonw_kv_array(&l->w, "entries");
    x->step = l;
    x->gone = list_gone;
    if (path_of(x, "path", &l->folder[0].path) != 0)
        return;
    l->n = 1;
    if (json_u64(x->json, SPAN("depth"), &l->depth) != 0 || l->depth == 0)
        l->depth = 1;
    list_next(x);
}
