/* Folders that are watched: for a caller who is told as it comes (WatchDir), or for those who ask for what has come
 * (CreateWatcher). Each is an errand of its own, whose answer does not end; one that is read too slowly is held up as
 * far as the sandbox, whose kernel keeps so much of it, and what is more than that is said to be missing. */
#include <stdio.h>
#include <stdlib.h>

#include "common/net/loop.h"
#include "proxy/dock/ask.h"
#include "proxy/errand/errand.h"
#include "proxy/dock/parse/changes.h"
#include "proxy/dock/paths.h"
#include "proxy/dock/routes.h"

enum {
    WAITS = 32 * 1024,      /* bytes of changes that nobody asks for: then no more are read */
    HEARD_MAX = 256 * 1024, /* with what an errand says at once */
    WHY_ROOM = 256,
    LONG_S = 86400,
};

struct watcher {
    struct watcher *next;
    struct dock *dock;
    struct call *caller;   /* who is told; of one that is asked for who began it, until it has begun */
    struct errand *errand; /* NULL: it is over */
    char box[DOCK_BOX_MAX + 1], id[ID_TEXT + 1]; /* id: of one that is asked for; else "" */
    uint64_t until_ms;
    bool begun;
    struct dynbuf heard; /* changes that were not told, and perhaps the beginning of one */
    size_t whole;        /* bytes of those that are there whole */
    unsigned status;     /* of one that is over: why */
    char why[WHY_ROOM];
};

/* --- its life -------------------------------------------------------------------------- */

static void watcher_free(struct watcher **at)
{
    struct watcher *w = *at;

    *at = NULL;
    for (struct watcher **p = &w->dock->watchers; *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            break;
        }
    if (w->caller)
        w->caller->watcher = NULL;
    errand_free(&w->errand);
    dynbuf_free(&w->heard);
    free(w);
}

/* So many there are, of this sandbox or (tenant) of this one's; *ended: one that is over, which nobody asked for yet.
 */
static size_t watchers(const struct dock *d, struct span box, const char *tenant, struct watcher **ended)
{
    size_t n = 0;

    for (struct watcher *w = d->watchers; w; w = w->next) {
        bool of_box = box.n == 0 || span_eq(span_str(w->box), box);
        bool of_tenant = !tenant || (w->errand && strcmp(w->errand->tenant, tenant) == 0);
        n += of_box && of_tenant;
        if (ended && of_box && !w->errand)
            *ended = w;
    }
    return n;
}

/* NULL: as many are watched as may be. */
static struct watcher *watcher_new(struct call *x)
{
    struct dock *d = x->dock;
    struct watcher *ended = NULL, *w;

    if (watchers(d, x->arg, NULL, &ended) >= DOCK_BOX_WATCHERS ||
        watchers(d, SPAN_NONE, NULL, &ended) >= DOCK_WATCHERS) {
        if (!ended)
            return NULL;
        watcher_free(&ended);
    }
    if (!(w = calloc(1, sizeof(*w))))
        return NULL;
    w->dock = d;
    w->caller = x;
    w->next = d->watchers;
    (void)snprintf(w->box, sizeof(w->box), "%.*s", SPAN_FMT(x->arg));
    dynbuf_init(&w->heard, HEARD_MAX);
    x->watcher = w;
    d->watchers = w;
    return w;
}

/* status 0: there is nothing to be watched any more. w is gone, unless somebody may ask for it yet. */
static void over(struct watcher *w, unsigned status, struct span words)
{
    struct call *x = w->caller;
    bool cut = status == 502;

    (void)snprintf(w->why, sizeof(w->why), "%.*s", SPAN_FMT(span_first(words, WHY_ROOM - 1)));
    w->status = status ? status : 404;
    errand_free(&w->errand); /* and with it, perhaps, what words are in */
    if (x)
        x->watcher = NULL;
    w->caller = NULL;
    if (!w->begun)
        reply_no_span(x, w->status, span_str(w->why));
    else if (x && status == 0)
        call_frame_end(x);
    else if (x)
        call_frame_no(x, status, span_str(w->why));
    if (!w->begun || !w->id[0] || cut) /* and with a sandbox that is gone nobody asks */
        watcher_free(&w);
}

/* --- what is said ------------------------------------------------------------------------ */

static void caller_gone(struct call *x)
{
    if (x->watcher)
        watcher_free(&x->watcher);
}

static void caller_drained(struct call *x)
{
    if (x->watcher && x->watcher->errand)
        errand_pause(x->watcher->errand, false);
}

static void watch_ping(struct call *x)
{
    (void)call_frame(x, 0, SPAN("{\"keepalive\":{}}"));
}

/* -1: w is gone. */
static int begin(struct watcher *w)
{
    struct call *x = w->caller;
    struct jsonw j;

    if (watchers(w->dock, SPAN_NONE, w->errand->tenant, NULL) > DOCK_TENANT_WATCHERS) {
        over(w, 429, SPAN("as many folders are watched as may be"));
        return -1;
    }
    w->begun = true;
    if (!w->id[0]) {
        x->drained = caller_drained;
        x->ping = watch_ping;
        return call_stream(x, 200, "application/connect+json") == 0 ? call_frame(x, 0, SPAN("{\"start\":{}}")) : -1;
    }
    w->caller = NULL;
    x->watcher = NULL;
    reply_json(x, 200, &j);
    jsonw_object(&j);
    jsonw_kv(&j, "watcherId", span_str(w->id));
    jsonw_end_object(&j);
    call_answer(x);
    return 0;
}

static void put_change(struct jsonw *j, const struct change *c)
{
    jsonw_object(j);
    jsonw_kv(j, "name", span_of(c->path, c->n));
    jsonw_kv(j, "type", span_str(change_type(c->what)));
    jsonw_end_object(j);
}

/* -1: the caller has gone, and w with it. */
static int tell(struct watcher *w, const struct change *c)
{
    struct dynbuf text;
    struct jsonw j;

    dynbuf_init(&text, HEARD_MAX);
    jsonw_begin(&j, &text);
    jsonw_object(&j);
    jsonw_key(&j, "filesystem");
    put_change(&j, c);
    jsonw_end_object(&j);
    int rc = call_frame(w->caller, 0, dynbuf_span(&text));
    dynbuf_free(&text);
    return rc;
}

/* One change. -1: w is over. */
static int take(struct watcher *w, const struct change *c, size_t bytes)
{
    bool asked = w->id[0] != '\0', begins = c->what == CHANGE_WATCHES;

    if (begins == w->begun) {
        over(w, 502, SPAN("what the sandbox said cannot be read"));
        return -1;
    }
    if (c->what == CHANGE_MISSED) {
        over(w, 507, SPAN("more changed than could be told: list the folder again, and watch it anew"));
        return -1;
    }
    if ((begins && begin(w) != 0) || (!begins && !asked && tell(w, c) != 0))
        return -1;
    if (!begins && asked)
        w->whole += bytes;
    else
        dynbuf_drop(&w->heard, bytes);
    return 0;
}

static void hear(struct watcher *w, struct span data)
{
    enum change_got got;
    struct change c;
    size_t used;

    if (dynbuf_add(&w->heard, data) != 0) {
        over(w, 502, SPAN("there is no memory for what changes"));
        return;
    }
    while ((got = change_take(span_from(dynbuf_span(&w->heard), w->whole), &c, &used)) == CHANGE_TAKEN)
        if (take(w, &c, used) != 0)
            return;
    if (got == CHANGE_BAD)
        over(w, 502, SPAN("what the sandbox said cannot be read"));
    else if (w->caller ? w->begun && !call_reads(w->caller) : w->whole > WAITS)
        errand_pause(w->errand, true);
}

/* In the desk's words. */
static void refused(struct watcher *w, const struct errand *e)
{
    struct arena a;

    arena_init(&a, DOCK_ARENA_MAX);
    struct span words = json_text(json_parse(e->data, &a), SPAN("detail"));
    over(w, e->status, words.n ? words : SPAN("the gateway did not say why"));
    arena_free(&a);
}

static void event(void *arg, struct errand *e, enum errand_event ev)
{
    struct watcher *w = arg;
    bool late = loop_now(w->dock->loop) >= w->until_ms;

    switch (ev) {
    case ERRAND_HEAD: e->whole = e->status != 200; break; /* then: words, to be handed on */
    case ERRAND_DATA:
        if (e->status != 200)
            refused(w, e);
        else
            hear(w, e->data);
        break;
    case ERRAND_END: over(w, w->begun ? 0 : 503, SPAN("the folder is not there any more")); break;
    case ERRAND_NONE:
        if (w->begun && late)
            over(w, 408, SPAN("its time was over"));
        else if (w->begun)
            over(w, 502, SPAN("the sandbox ended, or the gateway cut it off"));
        else if (e->status == 401)
            over(w, 502, SPAN("the sandbox does not run, or this token does not open it"));
        else
            over(w, e->status, span_str(e->why));
        break;
    default: break;
    }
}

/* --- what callers say --------------------------------------------------------------------- */

static bool is_true(const struct json *j, struct span key)
{
    const struct json *m = json_get(j, key);

    return m && m->type == JSON_BOOL && m->truth;
}

static struct span target_of(struct call *x, struct span path, bool deep, uint64_t timeout_s)
{
    struct span target = ask_path(x, ask_box(x, x->arg, "/files/watch"), "path", path);

    if (target.p && deep)
        target = ask_path(x, target, "recursive", SPAN("true"));
    return target.p ? ask_path(x, target, "timeout", arena_printf(&x->arena, "%llu", (unsigned long long)timeout_s))
                    : target;
}

/* What is asked for, until the desk has said that the token opens the sandbox: no place is taken before. */
struct watching {
    struct span path;
    uint64_t timeout_s;
    bool asked, deep;
};

static void watch_now(struct call *x, unsigned status, struct span body)
{
    const struct watching *g = x->step;
    struct errand_ask ask = {.token = &x->token, .box = x->arg, .method = "GET"};
    struct watcher *w;
    struct id id;

    if (!ask_own(x, status, body))
        return;
    if (!(w = watcher_new(x))) {
        reply_no(x, 429, "as many folders are watched as may be");
        return;
    }
    x->gone = caller_gone;
    if (g->asked && id_new(&id) == 0)
        id_text(&id, w->id);
    w->until_ms = loop_now(x->dock->loop) + g->timeout_s * 1000;
    ask.target = target_of(x, g->path, g->deep, g->timeout_s);
    w->errand = ask.target.p && (w->id[0] != '\0') == g->asked ? errand_new(&x->dock->errands, &ask, event, w) : NULL;
    if (!w->errand)
        over(w, 503, SPAN("the gateway cannot be asked at the moment; try again"));
}

static void watch(struct call *x, bool asked)
{
    const struct json *j = call_message(x);
    struct watching *g = j ? arena_alloc(&x->arena, sizeof(*g)) : NULL;
    struct span path;

    if (!j || path_take(x, json_text(j, SPAN("path")), &path) != 0)
        return;
    if (is_true(j, SPAN("includeEntry"))) {
        reply_no(x, 501, "changes are told by their names alone: leave `includeEntry` out");
        return;
    }
    if (!g) {
        reply_no(x, 503, "no memory");
        return;
    }
    *g = (struct watching){path, asked ? LONG_S : call_timeout_s(x), asked, is_true(j, SPAN("recursive"))};
    x->step = g;
    ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, watch_now);
}

void watch_dir(struct call *x)
{
    watch(x, false);
}

void watch_create(struct call *x)
{
    watch(x, true);
}

/* --- those that are asked for --------------------------------------------------------------- */

/* Of the sandbox whose token was shown. NULL: answered. */
static struct watcher *named(struct call *x, unsigned status, struct span body)
{
    struct span id = json_text(x->json, SPAN("watcherId"));
    struct watcher *w = x->dock->watchers;

    if (!ask_own(x, status, body))
        return NULL;
    while (w && (id.n == 0 || !w->begun || !span_eq(span_str(w->id), id) || !span_eq(span_str(w->box), x->arg)))
        w = w->next;
    if (!w)
        reply_no(x, 404, "there is no watcher of this id");
    return w;
}

static void events_now(struct call *x, unsigned status, struct span body)
{
    struct watcher *w = named(x, status, body);
    struct change c;
    struct jsonw j;
    size_t used;

    if (!w)
        return;
    if (!w->errand && w->whole == 0) {
        reply_no(x, w->status, "%s", w->why);
        watcher_free(&w);
        return;
    }
    reply_json(x, 200, &j);
    jsonw_object(&j);
    jsonw_kv_array(&j, "events");
    for (struct span all = span_first(dynbuf_span(&w->heard), w->whole); all.n > 0; all = span_from(all, used)) {
        if (change_take(all, &c, &used) != CHANGE_TAKEN)
            break;
        put_change(&j, &c);
    }
    jsonw_end_array(&j);
    jsonw_end_object(&j);
    dynbuf_drop(&w->heard, w->whole);
    w->whole = 0;
    if (w->errand)
        errand_pause(w->errand, false);
    call_answer(x);
}

void watch_events(struct call *x)
{
    if (call_message(x))
        ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, events_now);
}

static void remove_now(struct call *x, unsigned status, struct span body)
{
    struct watcher *w = named(x, status, body);
    struct jsonw j;

    if (!w)
        return;
    watcher_free(&w);
    reply_json(x, 200, &j);
    jsonw_object(&j);
    jsonw_end_object(&j);
    call_answer(x);
}

void watch_remove(struct call *x)
{
    if (call_message(x))
        ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, remove_now);
}
