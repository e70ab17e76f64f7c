/* Sandboxes that the warden runs, as a list: /api/v1/sandboxes/started, and those that are idle with them. */
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"
#include "web-approval/api/steps.h"
#include "web-approval/dock.h"
#include "sandbox-shim/warden/idle/idle.h"
#include "web-approval/route.h"
#include "web-approval/store/idle.h"

static const char *held_by(unsigned version)
{
    return version == 0 ? "each process for itself (rlimits)" : version == 1 ? "cgroup v1" : "cgroup v2";
}

void api_started_get(struct msg_in *m, struct started *s)
{
    (void)!wire_get_box(m, &s->box, false);
    s->generation = msg_get_u64(m);
    s->age_ms = msg_get_u64(m);
    s->left_ms = msg_get_u64(m);
    s->idle_ms = msg_get_u64(m);
    s->version = msg_get_u8(m);
    s->commands = msg_get_u16(m);
    s->way = msg_get_u8(m);
    s->not_idle = msg_get_span(m, BOX_IDLE_WHY);
}

const char *api_paused_by(unsigned way)
{
    return way == PAUSE_CGROUP_1   ? "cgroup v1"
           : way == PAUSE_CGROUP_2 ? "cgroup v2"
                                   : "signals to each process (approximate)";
}

void api_box_put(struct jsonw *w, const struct wire_box *b, uint64_t generation, unsigned version)
{
    jsonw_kv(w, "name", b->name);
    jsonw_kv_u64(w, "generation", generation);
    jsonw_kv(w, "limits", version ? SPAN("strict") : SPAN("approximate"));
    jsonw_kv(w, "held_by", span_str(held_by(version)));
    jsonw_kv_u64(w, "memory", b->memory);
    jsonw_kv_u64(w, "pids", b->pids);
    jsonw_kv_u64(w, "disk", b->disk);
    jsonw_kv_u64(w, "files", b->files);
    jsonw_kv(w, "image", b->image.n ? b->image : SPAN("host"));
    jsonw_kv(w, "digest", b->digest.n ? b->digest : SPAN("unknown"));
    if (b->lane.n)
        jsonw_kv(w, "lane", b->lane);
    if (b->idle_ms)
        jsonw_kv_u64(w, "idle_after", b->idle_ms / 1000);
    api_extras_put(w, b);
}

void api_started_put(struct jsonw *w, const struct started *s)
{
    api_box_put(w, &s->box, s->generation, s->version);
    jsonw_kv(w, "state", s->way == PAUSE_NONE ? SPAN("running") : SPAN("paused"));
    if (s->way != PAUSE_NONE)
        jsonw_kv(w, "paused_by", span_str(api_paused_by(s->way)));
    if (s->not_idle.n)
        jsonw_kv(w, "not_idle", s->not_idle); /* why */
    jsonw_kv_u64(w, "age_ms", s->age_ms);
    jsonw_kv_u64(w, "left_ms", s->left_ms);
    jsonw_kv_u64(w, "idle_ms", s->idle_ms);
    jsonw_kv_u64(w, "commands", s->commands);
}

/* Those that wait for who comes back to them. One that the warden runs still, or already, is idle all the same as
 * long as it has a row: what it is given then is to be good for what it is next. */
struct idles {
    struct exchange *x;
    struct jsonw *w;
    struct idle *first, **last;
    bool failed;
};
struct idle {
    struct idle *next;
    struct idle_row is;
};

static bool is_idle(const struct idles *all, struct span name)
{
    const struct idle *i = all->first;

    while (i && !span_eq(i->is.name, name))
        i = i->next;
    return i != NULL;
}

static void put_own(struct exchange *x, struct jsonw *w, const struct wire_box *b, const struct dock_own *own)
{
    api_egress_put(x, w, b);
    if (own->note.n)
        jsonw_kv_raw(w, "note", own->note);
    if (own->restored)
        jsonw_kv_u64(w, "restored", own->restored);
}

static int take_idle(void *ctx, const struct idle_row *r)
{
    struct idles *all = ctx;
    struct idle *i = arena_alloc(&all->x->arena, sizeof(*i));

    all->failed |= !i;
    if (!i)
        return 1;
    *i = (struct idle){.is = *r};
    *all->last = i;
    all->last = &i->next;
    return 0;
}

/* -1: answered. */
static int take_idles(struct idles *all)
{
    struct exchange *x = all->x;
    struct span tenant = x->place == PLACE_DOCK ? span_str(x->caller.tenant) : SPAN_NONE;
    struct err e;

    if (desk_store_idles(x->desk->store, tenant, &x->arena, take_idle, all, &e) == 0 && !all->failed)
        return 0;
    if (all->failed)
        (void)err_set(&e, "no memory");
    reply_unable(x, &e);
    return -1;
}

/* -1: answered. */
static int put_idle(const struct idles *all, const struct idle_row *r)
{
    struct msg_in m = msg_in(r->box);
    struct dock_own o = {.restored = 0};
    struct wire_box b;
    int own = all->x->place == PLACE_DOCK ? dock_owns(all->x, r->name, &o) : 1;

    if (own != 1 || wire_get_box(&m, &b, false) != 0)
        return own < 0 ? -1 : 0;
    jsonw_object(all->w);
    api_box_put(all->w, &b, r->generation, r->strict);
    jsonw_kv(all->w, "state", SPAN("idle"));
    jsonw_kv_u64(all->w, "idle_since_ms", r->since_ms);
    jsonw_kv_u64(all->w, "left_ms", r->left_ms);
    put_own(all->x, all->w, &b, &o);
    jsonw_end_object(all->w);
    return 0;
}

/* -1: answered. */
static int put_idles(const struct idles *all)
{
    int rc = 0;

    for (const struct idle *i = all->first; i && rc == 0; i = i->next)
        rc = put_idle(all, &i->is);
    return rc;
}

/* -1: answered. */
static int put_running(const struct idles *all, struct msg_in *m, unsigned n)
{
    struct exchange *x = all->x;
    struct started s;

    for (unsigned i = 0; i < n && !m->bad; i++) {
        struct dock_own o = {.restored = 0};
        api_started_get(m, &s);
        if (m->bad)
            break;
        int own = is_idle(all, s.box.name) ? 0 : x->place == PLACE_DOCK ? dock_owns(x, s.box.name, &o) : 1;
        if (own < 0)
            return -1;
        if (own == 0)
            continue;
        jsonw_object(all->w);
        api_started_put(all->w, &s);
        put_own(x, all->w, &s.box, &o);
        jsonw_end_object(all->w);
    }
    return 0;
}

static void listed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned n = msg_get_u16(&m);
    struct jsonw w;
    struct idles all = {.x = x, .w = &w, .last = &all.first};

    if (take_idles(&all) != 0)
        return;
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "started");
    if (put_running(&all, &m, n) != 0 || put_idles(&all) != 0)
        return;
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now",
                      "the warden did not say which sandboxes run; try again in a moment");
}

void api_started(struct exchange *x)
{
    if (ask_begin(x, ASK_WARDEN, M_SB_LIST, M_SB_LISTED, listed))
        ask_send(x);
}
