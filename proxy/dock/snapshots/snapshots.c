/* Snapshots: a sandbox's files at one moment, which the gateway keeps as a checkpoint of its tenant's. A sandbox that
 * is created with one as its template begins with them. */
#include <stdio.h>

#include "proxy/dock/control.h"
#include "proxy/dock/routes.h"

enum { PAGES_MAX = 64 /* of the desk's, for one of ours */ };

static void put_snapshot(struct jsonw *w, struct span id, struct span name)
{
    jsonw_object(w);
    jsonw_kv(w, "snapshotID", id);
    jsonw_kv_array(w, "names");
    if (name.n > 0)
        jsonw_string(w, name);
    jsonw_end_array(w);
    jsonw_end_object(w);
}

/* --- one is made --------------------------------------------------------------------- */

static void made(struct call *x, unsigned status, struct span body)
{
    const struct json *j = status == 201 ? json_parse(body, &x->arena) : NULL;
    struct span id = json_text(j, SPAN("id"));
    struct jsonw w;

    if (id.n == 0) {
        reply_desk(x, status, body);
        return;
    }
    reply_json(x, 201, &w);
    put_snapshot(&w, id, json_text(j, SPAN("name")));
    call_answer(x);
}

void snapshot_make(struct call *x)
{
    const struct json *j = control_body(x), *name = json_get(j, SPAN("name"));
    struct ask_json a;

    if (!j)
        return;
    if (name && (name->type != JSON_STRING || span_eq(name->text, SPAN("base")))) {
        reply_no(x, 400, "`name` is a text, and not `base`, which is what this machine's own programs are");
        return;
    }
    ask_json_begin(&a);
    if (name)
        jsonw_kv(&a.w, "name", name->text);
    struct span json = ask_json_end(x, &a);
    ask_desk(x, "POST", ask_box(x, x->arg, "/snapshot"), json, made);
}

/* --- those there are ------------------------------------------------------------------ */

struct page {
    struct span sandbox, name; /* of those that are wanted; empty: any */
    struct span after;         /* the last that was looked at */
    uint64_t limit, n;
    unsigned pages;
    struct jsonw w; /* into x->out */
};

static void page_next(struct call *x);

static bool is_wanted(const struct page *p, const struct json *e)
{
    struct span id = json_text(e, SPAN("id")), name = json_text(e, SPAN("name"));

    return (p->sandbox.n == 0 || span_eq(p->sandbox, json_text(e, SPAN("sandbox")))) &&
           (p->name.n == 0 || span_eq(p->name, id) || span_eq(p->name, name));
}

static void paged(struct call *x, unsigned status, struct span body)
{
    struct page *p = x->step;
    const struct json *j = status == 200 ? json_parse(body, &x->arena) : NULL;
    const struct json *all = json_get(j, SPAN("checkpoints")), *more = json_get(j, SPAN("more")), *e;

    if (!all) {
        reply_desk(x, status, body);
        return;
    }
    for (e = all->child; e && p->n < p->limit; e = e->next) {
        p->after = json_text(e, SPAN("id"));
        if (!is_wanted(p, e))
            continue;
        put_snapshot(&p->w, p->after, json_text(e, SPAN("name")));
        p->n++;
    }
    bool rest = e || (all->count > 0 && more && more->truth);
    if (rest && p->n < p->limit) {
        page_next(x);
        return;
    }
    if (rest)
        (void)snprintf(x->next, sizeof(x->next), "%.*s", SPAN_FMT(p->after));
    jsonw_end_array(&p->w);
    call_answer(x);
}

static void page_next(struct call *x)
{
    struct page *p = x->step;
    struct span target = SPAN("/api/v1/checkpoints");

    if (p->after.n > 0)
        target = ask_path(x, target, "after", p->after);
    if (++p->pages > PAGES_MAX)
        reply_no(x, 503, "there are more snapshots than are looked at for one page");
    else
        ask_desk(x, "GET", target, SPAN_NONE, paged);
}

void snapshot_list(struct call *x)
{
    struct page *p = arena_alloc(&x->arena, sizeof(*p));
    struct span limit;

    if (!p) {
        reply_no(x, 503, "no memory");
        return;
    }
    *p = (struct page){.limit = CONTROL_PAGE};
    x->step = p;
    if (call_query(x, "sandboxID", &p->sandbox) != 0 || call_query(x, "name", &p->name) != 0 ||
        call_query(x, "nextToken", &p->after) != 0 || call_query(x, "limit", &limit) != 0 ||
        (p->after.n > 0 && !dock_name_ok(p->after)) ||
        (limit.n && (span_u64(limit, CONTROL_LIST_MAX, &p->limit) != 0 || p->limit == 0))) {
        reply_no(x, 400, "the query cannot be read: a page has 1 to %d rows, and `nextToken` is one that a page gave",
                 CONTROL_LIST_MAX);
        return;
    }
    reply_json(x, 200, &p->w);
    jsonw_array(&p->w);
    page_next(x);
}

/* --- one is no more --------------------------------------------------------------------- */

static void removed(struct call *x, unsigned status, struct span body)
{
    if (status == 204)
        reply_empty(x, 204);
    else
        reply_desk(x, status, body);
}

void snapshot_remove(struct call *x)
{
    ask_desk(x, "DELETE", arena_printf(&x->arena, "/api/v1/checkpoints/%.*s", SPAN_FMT(x->arg)), SPAN_NONE, removed);
}
