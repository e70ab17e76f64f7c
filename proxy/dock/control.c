/* Sandboxes: E2B's control plane, as operations of the desk. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "proxy/dock/ask.h"
#include "proxy/dock/control.h"
#include "proxy/dock/record.h"
#include "proxy/dock/routes.h"
#include "proxy/dock/access/signed.h"

enum {
    LIFE_S = 300, /* unless another one is asked for */
    LIFE_MAX_S = 7 * 86400,
    MIB = 1024 * 1024,
};
#define ENVD_VERSION "0.5.6" /* the newest whose features are all here: a later one takes gzip, and tags of files */

/* --- one sandbox ------------------------------------------------------------------ */

static uint64_t number(const struct json *j, struct span key)
{
    uint64_t v = 0;

    return json_u64(j, key, &v) == 0 ? v : 0;
}

void box_read(const struct call *x, const struct json *j, struct box *b)
{
    *b = (struct box){.name = json_text(j, SPAN("name")),
                      .note = json_get(j, SPAN("note")),
                      .paused = !span_eq(json_text(j, SPAN("state")), SPAN("running")),
                      .restored = number(j, SPAN("restored")),
                      .started_ms = x->wall_ms - number(j, SPAN("age_ms")),
                      .left_ms = number(j, SPAN("left_ms")),
                      .memory = number(j, SPAN("memory")),
                      .disk = number(j, SPAN("disk"))};
    uint64_t said = number(b->note, SPAN("started_ms")); /* as it was told to its caller */
    b->started_ms = said ? said : b->started_ms;
}

static void put_time(struct jsonw *w, const char *key, uint64_t ms)
{
    time_t t = (time_t)(ms / 1000);
    char text[40], all[64];
    struct tm tm;

    if (!gmtime_r(&t, &tm) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return;
    (void)snprintf(all, sizeof(all), "%s.%03uZ", text, (unsigned)(ms % 1000));
    jsonw_kv(w, key, span_str(all));
}

static void put_box(const struct call *x, struct jsonw *w, const struct box *b)
{
    struct span template = json_text(b->note, SPAN("template"));
    struct record r;

    jsonw_kv(w, "sandboxID", b->name);
    jsonw_kv(w, "templateID", template.n ? template : SPAN("base"));
    jsonw_kv(w, "clientID", SPAN("countersign"));
    jsonw_kv(w, "envdVersion", SPAN(ENVD_VERSION));
    put_time(w, "startedAt", b->started_ms);
    put_time(w, "endAt", x->wall_ms + b->left_ms);
    jsonw_kv(w, "state", b->paused ? SPAN("paused") : SPAN("running"));
    jsonw_kv_u64(w, "cpuCount", 1);
    jsonw_kv_u64(w, "memoryMB", b->memory / MIB);
    jsonw_kv_u64(w, "diskSizeMB", b->disk / MIB);
    record_of(b->note, &r);
    record_put_reach(w, "network", &r);
    jsonw_kv_bool(w, "allowInternetAccess", !r.alone);
    jsonw_key(w, "metadata");
    record_put_texts(w, r.metadata);
}

bool box_find(struct call *x, unsigned status, struct span body, const char *list, const struct json **found)
{
    const struct json *all = status == 200 ? json_parse(body, &x->arena) : NULL, *j = json_get(all, span_str(list));

    if (!j) {
        reply_desk(x, status, body);
        return false;
    }
    for (j = j->child; j && !span_eq(json_text(j, SPAN("name")), x->arg);)
        j = j->next;
    *found = j;
    if (!j)
        reply_no(x, 404, "there is no such sandbox");
    return j != NULL;
}

void box_put_open(const struct call *x, struct jsonw *w, const struct box_open *o)
{
    char access[ACCESS_TEXT + 1];

    token_access(span_str(x->key), o->name, o->restored, access);
    signed_keep(x->dock, o->name, span_str(access), call_tenant(x));
    jsonw_object(w);
    jsonw_kv(w, "sandboxID", o->name);
    jsonw_kv(w, "templateID", o->template.n ? o->template : SPAN("base"));
    jsonw_kv(w, "clientID", SPAN("countersign"));
    jsonw_kv(w, "envdVersion", SPAN(ENVD_VERSION));
    jsonw_kv(w, "envdAccessToken", span_str(access));
    jsonw_key(w, "domain");
    jsonw_raw(w, SPAN("null"));
    if (o->again)
        jsonw_kv_bool(w, "restored", true);
    jsonw_end_object(w);
}

void control_reply_open(struct call *x, unsigned status, const struct box_open *o)
{
    struct jsonw w;

    reply_json(x, status, &w);
    box_put_open(x, &w, o);
    call_answer(x);
}

void control_put_access(const struct call *x, struct jsonw *w, struct span name, uint64_t restored)
{
    char access[ACCESS_TEXT + 1], hex[2 * DIGEST_BYTES + 1];
    struct digest hash;

    token_access(span_str(x->key), name, restored, access);
    token_hash(span_str(access), &hash);
    hex_text(span_of(hash.b, DIGEST_BYTES), hex);
    jsonw_kv(w, "access", span_str(hex));
}

const struct json *control_body(struct call *x)
{
    x->json = json_parse(x->body.n ? dynbuf_span(&x->body) : SPAN("{}"), &x->arena);
    if (!x->json || x->json->type != JSON_OBJECT) {
        reply_no(x, 400, "the body is not one JSON object without duplicate members");
        return NULL;
    }
    return x->json;
}

bool control_without_memory(const struct json *j)
{
    const struct json *m = json_get(j, SPAN("memory"));

    return m && m->type == JSON_BOOL && !m->truth;
}

static int seconds_take(struct call *x, const struct json *j, const char *name, bool needed, uint64_t *s)
{
    const struct json *t = json_get(j, span_str(name));

    *s = LIFE_S;
    if ((!t || t->type == JSON_NULL) && !needed)
        return 0;
    if (t && t->type == JSON_NUMBER && span_u64(t->text, LIFE_MAX_S, s) == 0) {
        *s += *s == 0; /* at once is as soon as can be */
        return 0;
    }
    reply_no(x, 400, "`%s` is a whole number of seconds, at most %d", name, LIFE_MAX_S);
    return -1;
}

int control_timeout_take(struct call *x, const struct json *j, bool needed, uint64_t *s)
{
    return seconds_take(x, j, "timeout", needed, s);
}

/* --- create ------------------------------------------------------------------------- */

struct creating {
    struct start start;
    struct span template;
};

static void created(struct call *x, unsigned status, struct span body)
{
    const struct creating *c = x->step;
    struct span name = json_text(status == 201 ? json_parse(body, &x->arena) : NULL, SPAN("name"));

    if (name.n > 0)
        control_reply_open(x, 201, &(struct box_open){.name = name, .template = c->template});
    else if (status == 404)
        reply_no(
            x, 404,
            "there is no such template: `base` is what this machine's own programs are, and else it is a snapshot");
    else
        reply_desk(x, status, body);
}

struct span control_name(struct call *x)
{
    char id[ID_TEXT + 1];
    struct id seed;

    if (id_new(&seed) != 0)
        return SPAN_NONE;
    id_text(&seed, id);
    return arena_printf(&x->arena, "sb-%s", id);
}

void control_start(struct call *x, const struct start *s, ask_fn *fn)
{
    struct ask_json a;

    ask_json_begin(&a);
    jsonw_kv(&a.w, "name", s->name);
    jsonw_kv_u64(&a.w, "timeout", s->timeout_s);
    control_put_access(x, &a.w, s->name, 0);
    jsonw_kv(&a.w, "note", s->note);
    if (s->from.n > 0)
        jsonw_kv(&a.w, "from", s->from);
    if (s->alone)
        jsonw_kv_bool(&a.w, "network", false);
    record_put_reach(&a.w, "reach", s->is);
    struct span json = ask_json_end(x, &a);
    if (!json.p || !s->note.p || !s->name.p)
        reply_no(x, 503, "no memory, or the system has no randomness to give");
    else
        ask_desk(x, "POST", SPAN("/api/v1/sandboxes/start"), json, fn);
}

void control_create(struct call *x)
{
    struct creating *c = arena_alloc(&x->arena, sizeof(*c));
    struct record *r = arena_alloc(&x->arena, sizeof(*r));
    const struct json *j = control_body(x);

    if (!j) /* answered, and x is gone */
        return;
    if (!c || !r) {
        reply_no(x, 503, "no memory");
        return;
    }
    x->step = c;
    if (control_timeout_take(x, j, false, &c->start.timeout_s) != 0 || record_take(x, j, r) != 0)
        return;
    c->template = r->template;
    c->start.from = r->from;
    c->start.alone = r->alone;
    c->start.is = r;
    c->start.note = record_text(x, r);
    c->start.name = control_name(x);
    control_start(x, &c->start, created);
}

/* --- those there are ------------------------------------------------------------------ */

struct listing {
    struct span metadata, state, template, after;
    uint64_t limit;
    bool oldest_first;
};

static int newest_first(const void *a, const void *b)
{
    const struct box *one = a, *other = b;

    if (one->started_ms != other->started_ms)
        return one->started_ms > other->started_ms ? -1 : 1;
    return span_cmp(one->name, other->name);
}

static int oldest_first(const void *a, const void *b)
{
    return -newest_first(a, b);
}

/* Where a row stands, as the next page is asked for. */
static void place_text(const struct box *b, char out[80])
{
    (void)snprintf(out, 80, "%013llu-%.*s", (unsigned long long)b->started_ms, SPAN_FMT(b->name));
}

static bool is_behind(const struct box *b, const struct listing *l)
{
    struct box at = {.name = SPAN_NONE};
    struct span ms = span_first(l->after, 13);

    if (l->after.n == 0)
        return true;
    for (size_t i = 0; i < ms.n; i++)
        at.started_ms = at.started_ms * 10 + (uint64_t)(ms.p[i] - '0');
    at.name = span_from(l->after, 14);
    return (l->oldest_first ? oldest_first(&at, b) : newest_first(&at, b)) < 0;
}

static bool is_wanted(struct call *x, const struct box *b, const struct listing *l)
{
    struct span state = b->paused ? SPAN("paused") : SPAN("running"), one, rest = l->state;
    struct span template = json_text(b->note, SPAN("template"));
    bool fits = rest.n == 0;

    while (rest.n > 0 && !fits) {
        (void)span_cut(rest, ',', &one, &rest);
        fits = span_eq(one, state);
    }
    return fits && (l->template.n == 0 || span_eq(l->template, template)) &&
           record_has(x, json_get(b->note, SPAN("metadata")), l->metadata) && is_behind(b, l);
}

static void listed(struct call *x, unsigned status, struct span body)
{
    const struct listing *l = x->step;
    const struct json *all = json_get(status == 200 ? json_parse(body, &x->arena) : NULL, SPAN("started"));
    struct box *b = all ? arena_alloc(&x->arena, (all->count + 1) * sizeof(*b)) : NULL;
    size_t n = 0;
    struct jsonw w;

    if (!b) {
        reply_desk(x, status, body);
        return;
    }
    for (const struct json *j = all->child; j; j = j->next) {
        box_read(x, j, &b[n]);
        n += is_wanted(x, &b[n], l);
    }
    qsort(b, n, sizeof(*b), l->oldest_first ? oldest_first : newest_first);
    if (n > l->limit) {
        n = l->limit;
        place_text(&b[n - 1], x->next);
    }
    reply_json(x, 200, &w);
    jsonw_array(&w);
    for (size_t i = 0; i < n; i++) {
        jsonw_object(&w);
        put_box(x, &w, &b[i]);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    call_answer(x);
}

static bool place_ok(struct span s)
{
    bool ok = s.n == 0 || (s.n > 14 && s.n < 80 && s.p[13] == '-');

    for (size_t i = 0; ok && i < 13 && i < s.n; i++)
        ok = s.p[i] >= '0' && s.p[i] <= '9';
    return ok;
}

void control_list(struct call *x)
{
    struct listing *l = arena_alloc(&x->arena, sizeof(*l));
    struct span limit, order;

    if (!l) {
        reply_no(x, 503, "no memory");
        return;
    }
    l->limit = CONTROL_PAGE;
    x->step = l;
    if (call_query(x, "metadata", &l->metadata) != 0 || call_query(x, "state", &l->state) != 0 ||
        call_query(x, "template", &l->template) != 0 || call_query(x, "nextToken", &l->after) != 0 ||
        call_query(x, "limit", &limit) != 0 || call_query(x, "order", &order) != 0 || !place_ok(l->after) ||
        (limit.n && (span_u64(limit, CONTROL_LIST_MAX, &l->limit) != 0 || l->limit == 0))) {
        reply_no(x, 400, "the query cannot be read: a page has 1 to %d rows, and `nextToken` is one that a page gave",
                 CONTROL_LIST_MAX);
        return;
    }
    l->oldest_first = span_eq(order, SPAN("asc"));
    ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, listed);
}

static void informed(struct call *x, unsigned status, struct span body)
{
    const struct json *j;
    struct jsonw w;
    struct box b;

    if (!box_find(x, status, body, "started", &j))
        return;
    box_read(x, j, &b);
    reply_json(x, 200, &w);
    jsonw_object(&w);
    put_box(x, &w, &b);
    jsonw_end_object(&w);
    call_answer(x);
}

void control_info(struct call *x)
{
    ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, informed);
}

/* The warden does not run it: it is idle, or is not there. */
static void metered_not(struct call *x, unsigned status, struct span body)
{
    const struct json *j;
    struct jsonw w;

    if (!box_find(x, status, body, "started", &j))
        return;
    reply_json(x, 200, &w);
    jsonw_array(&w);
    jsonw_end_array(&w);
    call_answer(x);
}

static void metered(struct call *x, unsigned status, struct span body)
{
    const struct json *j = status == 200 ? json_get(json_parse(body, &x->arena), SPAN("sandboxes")) : NULL;
    struct jsonw w;

    if (!j) {
        reply_desk(x, status, body);
        return;
    }
    for (j = j->child; j && !span_eq(json_text(j, SPAN("name")), x->arg);)
        j = j->next;
    if (!j) {
        ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, metered_not);
        return;
    }
    uint64_t age_ms = number(j, SPAN("age_ms")), cpu_us = number(j, SPAN("cpu_us"));
    reply_json(x, 200, &w);
    jsonw_array(&w);
    jsonw_object(&w);
    put_time(&w, "timestamp", x->wall_ms);
    jsonw_kv_u64(&w, "timestampUnix", x->wall_ms / 1000);
    jsonw_kv_u64(&w, "cpuCount", 1);
    jsonw_kv_u64(&w, "cpuUsedPct", age_ms ? cpu_us / (10 * age_ms) : 0); /* since its start */
    jsonw_kv_u64(&w, "memUsed", number(j, SPAN("memory_used")));
    jsonw_kv_u64(&w, "memTotal", number(j, SPAN("memory")));
    jsonw_kv_u64(&w, "memCache", 0);
    jsonw_kv_u64(&w, "diskUsed", number(j, SPAN("disk_used")));
    jsonw_kv_u64(&w, "diskTotal", number(j, SPAN("disk")));
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    call_answer(x);
}

void control_metrics(struct call *x)
{
    ask_desk(x, "GET", SPAN("/api/v1/sandboxes/metrics"), SPAN_NONE, metered);
}

/* --- changes ---------------------------------------------------------------------------- */

static void done(struct call *x, unsigned status, struct span body)
{
    if (status == 200 || status == 204)
        reply_empty(x, 204);
    else
        reply_desk(x, status, body);
}

static void timeout_set(struct call *x, uint64_t s)
{
    struct ask_json a;

    ask_json_begin(&a);
    jsonw_kv_u64(&a.w, "timeout", s);
    struct span json = ask_json_end(x, &a);
    ask_desk(x, "POST", ask_box(x, x->arg, "/timeout"), json, done);
}

void control_timeout(struct call *x)
{
    const struct json *j = control_body(x);
    uint64_t s;

    if (j && control_timeout_take(x, j, true, &s) == 0)
        timeout_set(x, s);
}

static void refreshing(struct call *x, unsigned status, struct span body)
{
    const uint64_t *s = x->step;
    const struct json *j;
    struct box b;

    if (!box_find(x, status, body, "started", &j))
        return;
    box_read(x, j, &b);
    if (*s * 1000 <= b.left_ms) /* it shortens no life */
        reply_empty(x, 204);
    else
        timeout_set(x, *s);
}

void control_refresh(struct call *x)
{
    uint64_t *s = arena_alloc(&x->arena, sizeof(*s));
    const struct json *j = control_body(x);

    if (!j)
        return;
    if (!s)
        reply_no(x, 503, "no memory");
    else if (seconds_take(x, j, "duration", false, s) == 0) {
        x->step = s;
        ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, refreshing);
    }
}

static void pausing(struct call *x, unsigned status, struct span body)
{
    const struct json *j;
    struct box b;

    if (!box_find(x, status, body, "started", &j))
        return;
    box_read(x, j, &b);
    if (b.paused)
        reply_no(x, 409, "the sandbox is paused already");
    else
        ask_desk(x, "POST", ask_box(x, x->arg, "/pause"), SPAN_NONE, done);
}

void control_pause(struct call *x)
{
    const struct json *j = control_body(x);

    if (j && control_without_memory(j))
        reply_no(x, 501,
                 "a sandbox is paused with its processes here: `keepMemory: false` is not had, a snapshot keeps "
                 "files alone");
    else if (j)
        ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, pausing);
}

void control_kill(struct call *x)
{
    ask_desk(x, "POST", ask_box(x, x->arg, "/destroy"), SPAN_NONE, done);
}
