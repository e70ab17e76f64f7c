/* /api/v1/operators: people, for `countersign operator`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/people/people.h"
#include "web-approval/people/who.h"
#include "web-approval/route.h"

enum { WHY_MAX = 512, GROUPS_GIVEN = 16, NAME_MOST = 40 };

void people_act(struct exchange *x, const struct person_act *a, ask_fn *fn)
{
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_OPERATOR_PUT, M_SANDBOX_DONE, fn);

    if (!b)
        return;
    msg_put_u8(b, a->what);
    msg_put_span(b, span_str(x->operator));
    msg_put_span(b, a->name);
    msg_put_span(b, a->uid);
    msg_put_span(b, a->groups);
    msg_put_span(b, a->password);
    ask_send(x);
}

bool people_acted(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not written",
                      "the ledger did not answer: `countersign operator list` says what there is");
    else if (!ok)
        reply_problem(x, 409, "Not written", "%.*s", SPAN_FMT(why));
    return x->status == 0;
}

static int by_text(const void *a, const void *b)
{
    return span_cmp(*(const struct span *)a, *(const struct span *)b);
}

/* A list of names as the ledger takes it: in order, each once. -1, answered. */
static int groups_take(struct exchange *x, const struct json *list, struct span *out)
{
    struct span g[GROUPS_GIVEN];
    struct dynbuf b;
    size_t n = 0;

    for (const struct json *e = list ? list->child : NULL; e; e = e->next) {
        if (e->type != JSON_STRING || n == GROUPS_GIVEN) {
            reply_problem(x, 400, "Bad request", "`groups` is a list of at most %d names", GROUPS_GIVEN);
            return -1;
        }
        g[n++] = e->text;
    }
    qsort(g, n, sizeof(g[0]), by_text);
    dynbuf_init(&b, WHO_GROUPS);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !span_eq(g[i], g[i - 1]))
            (void)dynbuf_addf(&b, "%s%.*s", b.n ? " " : "", SPAN_FMT(g[i]));
    *out = arena_keep(&x->arena, &b);
    if (n == 0 || out->n)
        return 0;
    reply_problem(x, 400, "Bad request", "the names of groups are together at most %d bytes", WHO_GROUPS);
    return -1;
}

/* A link with which this person comes in for the first time, or again. */
static void answer_link(struct exchange *x, unsigned status, struct span name)
{
    char token[ID_TEXT + 1], url[DESK_TEXT + 64], who[GUARD_OPERATOR];
    struct jsonw w;

    (void)snprintf(who, sizeof(who), "%.*s", SPAN_FMT(name));
    if (guard_link_for(&x->desk->guard, who, x->now_ms, GUARD_INVITE_MS, token) != 0) {
        reply_problem(x, 503, "Not possible now", "the system has no randomness to give");
        return;
    }
    (void)snprintf(url, sizeof(url), "%s/sign-in?t=%s", x->desk->desk_url, token);
    reply_json(x, status, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "name", name);
    jsonw_kv(&w, "url", span_str(url));
    jsonw_kv_u64(&w, "expires_ms", x->wall_ms + GUARD_INVITE_MS);
    jsonw_end_object(&w);
}

static void added(struct exchange *x, struct frame *f)
{
    const struct person_act *a = x->step;

    if (people_acted(x, f))
        answer_link(x, 201, a->name);
}

static void forgotten(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);

    if (msg_get_bool(&m))
        people_act(x, x->step, added);
    else
        reply_problem(x, 503, "Not added",
                      "the keeper may still know passkeys of somebody else of that name: ask again");
}

/* Whoever had the name before may have had passkeys: who comes in with one of these is not this person. */
static void add_anew(struct exchange *x, const struct person_act *a)
{
    struct person_row r;
    struct err e;
    int got = desk_store_person(x->desk->store, a->name, false, &x->arena, &r, &e);

    if (got < 0) {
        reply_unable(x, &e);
    } else if (got > 0 || a->name.n > NAME_MOST) { /* nobody is added; why not, the ledger says */
        people_act(x, a, added);
    } else {
        struct dynbuf *b = ask_begin(x, ASK_KEEPER, M_PASSKEYS_FORGET, M_PASSKEY_SAID, forgotten);
        if (!b)
            return;
        msg_put_span(b, a->name);
        ask_send(x);
    }
}

void api_operator_add(struct exchange *x)
{
    struct member m[] = {
        {"name", JSON_STRING, true, NULL}, {"groups", JSON_ARRAY, false, NULL}, {"uid", JSON_NUMBER, false, NULL}};
    struct person_act *a = arena_alloc(&x->arena, sizeof(*a));
    uint64_t uid = 0;

    if (body_members(x, m, 3) != 0 || api_number(x, &m[2], &uid, 0, UINT32_MAX - 1) != 0)
        return;
    if (!a) {
        reply_problem(x, 503, "Not possible now", "there is no memory for this");
        return;
    }
    *a = (struct person_act){.what = ACT_ADD, .name = m[0].value->text};
    if (m[2].value)
        a->uid = arena_printf(&x->arena, "uid %llu", (unsigned long long)uid);
    if (groups_take(x, m[1].value, &a->groups) != 0)
        return;
    x->step = a;
    add_anew(x, a);
}

static void done(struct exchange *x, struct frame *f)
{
    if (people_acted(x, f))
        reply_empty(x, 204);
}

void api_operator_groups(struct exchange *x)
{
    struct member m[] = {{"groups", JSON_ARRAY, true, NULL}};
    struct person_act a = {.what = ACT_GROUPS, .name = x->arg};

    if (body_members(x, m, 1) == 0 && groups_take(x, m[0].value, &a.groups) == 0)
        people_act(x, &a, done);
}

void api_operator_link(struct exchange *x)
{
    struct member none[1];
    struct person_row r;
    struct err e;

    if (body_members(x, none, 0) != 0)
        return;
    int got = desk_store_person(x->desk->store, x->arg, false, &x->arena, &r, &e);
    if (got < 0) {
        reply_unable(x, &e);
    } else if (got == 0) {
        reply_problem(x, 404, "Not found", "nobody has this name; see `countersign operator list`");
    } else {
        answer_link(x, 201, r.name);
        ask_note_operator(x, "operator-link");
    }
}

static void removed(struct exchange *x, struct frame *f)
{
    char who[GUARD_OPERATOR];

    /* Whatever the ledger said, or did not: at worst somebody signs in once more. */
    (void)snprintf(who, sizeof(who), "%.*s", SPAN_FMT(x->arg));
    guard_forget(&x->desk->guard, who);
    if (people_acted(x, f))
        reply_empty(x, 204);
}

void api_operator_remove(struct exchange *x)
{
    people_act(x, &(struct person_act){.what = ACT_REMOVE, .name = x->arg}, removed);
}

static void put_groups(struct jsonw *w, struct span groups)
{
    struct span one;

    jsonw_kv_array(w, "groups");
    while (groups.n > 0) {
        (void)span_cut(groups, ' ', &one, &groups);
        jsonw_string(w, one);
    }
    jsonw_end_array(w);
}

static int list_row(void *ctx, const struct person_row *r)
{
    struct jsonw *w = ctx;

    jsonw_object(w);
    jsonw_kv(w, "name", r->name);
    put_groups(w, r->groups);
    if (r->uid.n)
        jsonw_kv(w, "uid", r->uid);
    jsonw_kv_bool(w, "password", r->password.n > 0);
    jsonw_kv_u64(w, "created_ms", r->created_ms);
    jsonw_end_object(w);
    return 0;
}

void api_operators(struct exchange *x)
{
    struct jsonw w;
    struct err e;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "operators");
    int rc = desk_store_people(x->desk->store, &x->arena, list_row, &w, &e);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (rc != 0)
        reply_unable(x, &e);
}

void api_whoami(struct exchange *x)
{
    struct jsonw w;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "operator", span_str(x->operator));
    jsonw_kv_bool(&w, "person", x->who.person);
    put_groups(&w, span_str(x->who.groups));
    if (x->who.uid[0])
        jsonw_kv(&w, "uid", span_str(x->who.uid));
    jsonw_kv(&w, "how", span_str(who_how(x)));
    jsonw_end_object(&w);
}
