/* /api/v1/conversations/ID: what the broker asks for a conversation. */
#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "proxy/wire_ticket.h"
#include "proxy/words.h"
#include "web-approval/api/api.h"
#include "web-approval/broker/broker.h"
#include "web-approval/route.h"

enum { WHY_MAX = 512, WORKERS = 1024, TOKEN_TEXT = 4 + 2 * ID_TEXT, NAME_TEXT = 2 + ID_TEXT };

struct making {
    char name[NAME_TEXT + 1], session[NAME_TEXT + 1], token[TOKEN_TEXT + 1];
    struct wire_sandbox sandbox;
};

static void name_of(const struct exchange *x, char kind, char out[NAME_TEXT + 1])
{
    (void)snprintf(out, NAME_TEXT + 1, "%c-%.*s", kind, ID_TEXT, (const char *)x->arg.p);
}

static void made(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);
    const struct making *k = x->step;
    struct jsonw w;

    if (msg_end(&m) != 0 || !ok) {
        reply_problem(x, 503, "Not written", "the ledger did not take the identity: %.*s", SPAN_FMT(why));
        return;
    }
    reply_json(x, 201, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "name", span_str(k->name));
    jsonw_kv(&w, "token", span_str(k->token));
    jsonw_kv(&w, "proxy", span_str(x->desk->proxy_url));
    jsonw_end_object(&w);
}

int broker_name_free(struct exchange *x, struct span name)
{
    if (!span_starts(name, SPAN(SPANS_NAME)))
        return 0;
    reply_problem(x, 400, "Bad request", "names with %s are the broker's own, for spans: choose another", SPANS_NAME);
    return -1;
}

/* Made here: labels are given when a sandbox is made, and stay. */
static bool is_ours(struct exchange *x, const struct making *k, const struct sandbox_row *old)
{
    const struct json *labels = json_parse(old->labels_json, &x->arena);
    const struct wire_sandbox *s = &k->sandbox;

    for (const struct json *l = labels ? labels->child : NULL; l; l = l->next)
        if (span_eq(l->key, s->label[0].key) && span_eq(l->text, s->label[0].value))
            return span_eq(old->kind, SPAN("token")) && span_eq(old->session, span_str(k->session)) &&
                   span_eq(old->tenant, span_str(x->caller.tenant));
    return false;
}

/* What was there of this name is of this conversation, or it is none of ours: 0; -1, answered. */
static int earlier(struct exchange *x, struct making *k)
{
    struct sandbox_row old;
    struct err e;
    int rc = desk_store_sandbox(x->desk->store, span_str(k->name), &x->arena, &old, &e);

    if (rc < 0)
        reply_unable(x, &e);
    else if (rc == 1 && !is_ours(x, k, &old))
        reply_problem(x, 409, "Name taken",
                      "a sandbox \"%s\" exists that the broker has not made: `countersign sandbox rm %s` ends it",
                      k->name, k->name);
    k->sandbox.generation = rc == 1 ? old.generation + 1 : 1;
    return x->status != 0 ? -1 : 0;
}

static int token_make(struct making *k)
{
    char a[ID_TEXT + 1], b[ID_TEXT + 1];
    struct id one, two;

    if (id_new(&one) != 0 || id_new(&two) != 0)
        return -1;
    id_text(&one, a);
    id_text(&two, b);
    (void)snprintf(k->token, sizeof(k->token), "cst_%s%s", a, b);
    digest_of(span_of(k->token, TOKEN_TEXT), &k->sandbox.token_hash);
    k->sandbox.has_token = true;
    return 0;
}

/* With its names in it; what an earlier one of this name was given ends with it. */
static void make(struct exchange *x, struct making *k, struct span owner, struct span label, struct span value)
{
    struct dynbuf *b;

    if (x->desk->proxy_url[0] == '\0') {
        reply_problem(x, 409, "No way out",
                      "the broker sends through the gateway's proxy, and it has no HTTP listener with "
                      "`identity: token`");
        return;
    }
    x->step = k;
    k->sandbox.name = span_str(k->name);
    k->sandbox.session = span_str(k->session);
    k->sandbox.kind = SPAN("token");
    k->sandbox.owner = owner; /* whose yes is one to their own */
    k->sandbox.tenant = span_str(x->caller.tenant);
    k->sandbox.label[0].key = label;
    k->sandbox.label[0].value = value;
    k->sandbox.nlabels = 1;
    if (earlier(x, k) != 0 || !(b = ask_begin(x, ASK_LEDGER, M_SANDBOX_PUT, M_SANDBOX_DONE, made)))
        return;
    wire_put_sandbox(b, &k->sandbox);
    ask_send(x);
}

static struct making *making_new(struct exchange *x)
{
    struct making *k = arena_alloc(&x->arena, sizeof(*k));

    if (k && token_make(k) == 0)
        return k;
    reply_problem(x, 503, "Not possible now", "no memory, or the system has no randomness to give");
    return NULL;
}

/* Anew each time: what an earlier worker was given, its token and the leases of that generation, ends with it. */
void api_broker_identity(struct exchange *x)
{
    struct member m[] = {{"owner", JSON_STRING, false, NULL}};
    struct making *k = making_new(x);

    if (!k || broker_conversation(x) != 0 || body_members(x, m, 1) != 0)
        return;
    if (m[0].value && (m[0].value->text.n == 0 || m[0].value->text.n >= GUARD_OPERATOR)) {
        reply_problem(x, 400, "Bad request", "`owner` is the name of the operator who asked for the turn");
        return;
    }
    name_of(x, 'm', k->name);
    name_of(x, 'c', k->session);
    make(x, k, m[0].value ? m[0].value->text : span_str(x->operator), SPAN("conversation"), x->arg);
}

/* Of no conversation, and of no tenant but the operator's: spans of all tenants go to the operator's collector. A
 * sandbox that somebody made by this name has another session, and stays theirs. */
void api_broker_telemetry(struct exchange *x)
{
    struct making *k = making_new(x);
    uint64_t worker;

    if (!k)
        return;
    if (span_u64(x->arg, WORKERS, &worker) != 0 || worker == 0 ||
        !span_eq(span_str(x->caller.tenant), SPAN("default"))) {
        reply_problem(x, 404, "No such worker", "the broker has no worker of this number that may ask");
        return;
    }
    (void)snprintf(k->name, sizeof(k->name), SPANS_NAME "%llu", (unsigned long long)worker);
    (void)snprintf(k->session, sizeof(k->session), SPANS_SESSION);
    make(x, k, span_str(x->operator), span_str(SPANS_LABEL), span_str(SPANS_VALUE));
}

static void removed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) == 0 && ok)
        reply_empty(x, 204);
    else
        reply_problem(x, 503, "Not removed", "the ledger did not end the identity: %.*s", SPAN_FMT(why));
}

/* The turn is over. Its tickets stay: they are the session's; with `end_session=1` that ends as well, and what waits.
 */
void api_broker_identity_end(struct exchange *x)
{
    char *name = arena_alloc(&x->arena, NAME_TEXT + 1);
    struct span session;
    struct dynbuf *b;

    if (!name) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    if (broker_conversation(x) != 0 || query_field(x, "end_session", &session) != 0)
        return;
    if (session.n > 0 && !span_eq(session, SPAN("1"))) {
        reply_problem(x, 400, "Bad request", "`end_session` is `1`, or not there");
        return;
    }
    name_of(x, 'c', name);
    if (!broker_lane(x, span_str(name)))
        return;
    name_of(x, 'm', name);
    if (!(b = ask_begin(x, ASK_LEDGER, M_SANDBOX_RM, M_SANDBOX_DONE, removed)))
        return;
    msg_put_span(b, span_str(name));
    msg_put_u8(b, session.n > 0);
    ask_send(x);
}

/* For the conversation's identity, or inside, for what runs in its sandbox. */
void api_broker_lease(struct exchange *x)
{
    struct member m[] = {{"credential", JSON_STRING, true, NULL},
                         {"expires_s", JSON_NUMBER, false, NULL},
                         {"inside", JSON_BOOL, false, NULL}};
    char *name = arena_alloc(&x->arena, NAME_TEXT + 1);
    uint64_t life_s = 3600;

    if (!name) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    if (broker_conversation(x) != 0 || body_members(x, m, 3) != 0 || api_number(x, &m[1], &life_s, 1, 86400) != 0)
        return;
    name_of(x, 'c', name);
    if (!broker_lane(x, span_str(name)))
        return;
    if (m[2].value == NULL || !m[2].value->truth)
        name_of(x, 'm', name);
    api_lease_for(x, m[0].value->text, span_str(name), x->wall_ms + life_s * 1000);
}

/* What ran in its sandbox, the newest first, also when that has ended: what a worker that takes over goes by. */
void api_broker_runs(struct exchange *x)
{
    char name[NAME_TEXT + 1];
    struct sandbox_row row;
    struct err e;

    if (broker_conversation(x) != 0)
        return;
    name_of(x, 'c', name);
    int rc = desk_store_sandbox(x->desk->store, span_str(name), &x->arena, &row, &e);
    if (rc < 0)
        reply_unable(x, &e);
    else if (rc == 1 && !span_eq(row.tenant, span_str(x->caller.tenant)))
        reply_problem(x, 404, "No such conversation", "it has no sandbox, and had none");
    else
        api_runs_of(x, arena_copy(&x->arena, span_str(name)));
}
