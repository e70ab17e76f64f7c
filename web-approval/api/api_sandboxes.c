/* /api/v1/sandboxes */
#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "proxy/wire_ticket.h"
#include "web-approval/api/api.h"
#include "web-approval/broker/broker.h"
#include "web-approval/route.h"

enum { NAME_MAX_BYTES = 63, SESSION_MAX = 256, TOKEN_TEXT = 4 + 2 * ID_TEXT, LABELS = 16 };

/* A sandbox being made: put into the ledger, then its listener is opened. */
struct making {
    char name[NAME_MAX_BYTES + 1];
    char token[TOKEN_TEXT + 1]; /* empty: none */
    struct wire_sandbox sandbox;
    bool captured; /* its listener also takes connections that were on their way elsewhere */
};

static int list_row(void *ctx, const struct sandbox_row *r)
{
    struct jsonw *w = ctx;

    jsonw_object(w);
    jsonw_kv(w, "name", r->name);
    jsonw_kv(w, "session", r->session);
    jsonw_kv(w, "owner", r->owner);
    jsonw_kv(w, "tenant", r->tenant);
    jsonw_kv(w, "kind", r->kind);
    jsonw_kv_raw(w, "labels", r->labels_json.n ? r->labels_json : SPAN("{}"));
    jsonw_kv_u64(w, "generation", r->generation);
    jsonw_kv_u64(w, "created_ms", r->created_ms);
    jsonw_kv_u64(w, "changed_ms", r->changed_ms);
    jsonw_kv_u64(w, "pending", r->pending);
    jsonw_kv_bool(w, "token", r->has_token);
    if (r->reach.n > 0) /* as proxy/reach/reach.h has it */
        jsonw_kv(w, "reach", r->reach);
    jsonw_end_object(w);
    return 0;
}

/* What a sandbox needs to know of us, but for its token. */
static void put_ours(struct jsonw *w, const struct desk *d)
{
    jsonw_kv(w, "ca", span_str(d->ca));
    jsonw_kv(w, "bundle", span_str(d->bundle));
    jsonw_kv(w, "truststore", span_str(d->truststore));
    jsonw_kv(w, "proxy", span_str(d->proxy_url));
    jsonw_kv(w, "socks", span_str(d->socks_url));
}

void api_sandboxes(struct exchange *x)
{
    struct jsonw w;
    struct err e;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "sandboxes");
    int rc = desk_store_sandboxes(x->desk->store, &x->arena, list_row, &w, &e);
    jsonw_end_array(&w);
    put_ours(&w, x->desk);
    jsonw_end_object(&w);
    if (rc != 0)
        reply_unable(x, &e);
}

/* Lower-case letters, digits and -._ within: it becomes part of a path and of a URL. */
static bool name_ok(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || (c != '-' && c != '.' && c != '_')))
            return false;
    }
    return s.n > 0 && s.n <= NAME_MAX_BYTES;
}

static int name_choose(struct exchange *x, const struct json *given, char out[NAME_MAX_BYTES + 1])
{
    char text[ID_TEXT + 1];
    struct id id;

    if (given && !name_ok(given->text)) {
        reply_problem(x, 400, "Bad request",
                      "a sandbox's name has 1 to %d of a-z 0-9 - . _ and begins with a letter or digit",
                      NAME_MAX_BYTES);
        return -1;
    }
    if (given && broker_name_free(x, given->text) != 0)
        return -1;
    if (given) {
        (void)snprintf(out, NAME_MAX_BYTES + 1, "%.*s", SPAN_FMT(given->text));
        return 0;
    }
    if (id_new(&id) != 0) {
        reply_problem(x, 503, "Not possible now", "the system has no randomness to give");
        return -1;
    }
    id_text(&id, text);
    (void)snprintf(out, NAME_MAX_BYTES + 1, "sb-%.10s", text);
    return 0;
}

static int token_make(struct making *m)
{
    char a[ID_TEXT + 1], b[ID_TEXT + 1];
    struct id one, two;

    if (id_new(&one) != 0 || id_new(&two) != 0)
        return -1;
    id_text(&one, a);
    id_text(&two, b);
    (void)snprintf(m->token, sizeof(m->token), "cst_%s%s", a, b);
    digest_of(span_of(m->token, TOKEN_TEXT), &m->sandbox.token_hash);
    m->sandbox.has_token = true;
    return 0;
}

static int labels_take(struct exchange *x, const struct json *labels, struct wire_sandbox *s)
{
    for (const struct json *l = labels ? labels->child : NULL; l; l = l->next) {
        if (s->nlabels == LABELS || l->type != JSON_STRING || l->key.n > 64 || l->text.n > 256) {
            reply_problem(x, 400, "Bad request", "labels are at most %d texts of at most 256 bytes", LABELS);
            return -1;
        }
        s->label[s->nlabels].key = l->key;
        s->label[s->nlabels++].value = l->text;
    }
    return 0;
}

/* `run --with` names credentials: each must be there, or the command would run into a wall later. */
static int with_check(struct exchange *x, const struct json *with)
{
    for (const struct json *c = with ? with->child : NULL; c; c = c->next) {
        if (c->type == JSON_STRING && api_secret_present(x->desk, c->text))
            continue;
        reply_problem(x, 409, "No such credential",
                      "a credential that was asked for is not there: see "
                      "`countersign secret set`");
        return -1;
    }
    return 0;
}

static void made(struct exchange *x, const char *listener, size_t n)
{
    const struct making *m = x->step;
    struct jsonw w;

    reply_json(x, 201, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "name", span_str(m->name));
    jsonw_kv(&w, "session", m->sandbox.session);
    if (m->sandbox.has_token)
        jsonw_kv(&w, "token", span_str(m->token));
    if (n)
        jsonw_kv(&w, "listener", span_of(listener, n));
    put_ours(&w, x->desk);
    jsonw_end_object(&w);
}

static void opened(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span text = msg_get_span(&m, 4096);

    if (msg_end(&m) == 0 && ok)
        made(x, (const char *)text.p, text.n);
    else
        reply_problem(x, 503, "No listener", "the sandbox's own listener could not be made%s%.*s", text.n ? ": " : "",
                      (int)(text.n < 300 ? text.n : 300), (const char *)text.p);
}

static void put_done(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, 4096);
    const struct making *k = x->step;

    if (msg_end(&m) != 0 || !ok) {
        reply_problem(x, 503, "Not written", "the ledger did not take the sandbox%s%.*s", why.n ? ": " : "",
                      (int)(why.n < 300 ? why.n : 300), (const char *)why.p);
        return;
    }
    if (k->sandbox.has_token) {
        made(x, NULL, 0);
        return;
    }
    struct dynbuf *b = ask_begin(x, ASK_PARENT, M_SANDBOX_OPEN, M_SANDBOX_OPENED, opened);
    if (!b)
        return;
    msg_put_span(b, span_str(k->name));
    msg_put_u8(b, k->captured);
    ask_send(x);
}

/* An earlier one of that name: a run's may come back (its generation goes up), others stay as they are. */
static int earlier(struct exchange *x, struct making *m)
{
    struct sandbox_row old;
    struct err e;
    int rc = desk_store_sandbox(x->desk->store, span_str(m->name), &x->arena, &old, &e);

    m->sandbox.generation = 1;
    if (rc < 0) {
        reply_unable(x, &e);
        return -1;
    }
    if (rc == 0)
        return 0;
    m->sandbox.generation = old.generation + 1;
    if (span_eq(old.kind, SPAN("run")) && span_eq(m->sandbox.kind, SPAN("run")))
        return 0;
    reply_problem(
        x, 409, "Name taken",
        "a sandbox of this name exists: `countersign env %s` prints its variables with a token of their own; else "
        "remove it first or choose another name",
        m->name);
    return -1;
}

/* A token is of no use to who cannot be told where to bring it. */
static bool no_address(struct exchange *x)
{
    if (x->desk->proxy_why[0] == '\0')
        return false;
    reply_problem(x, 409, "No address to give", "%s", x->desk->proxy_why);
    return true;
}

void api_sandbox_create(struct exchange *x)
{
    struct member f[] = {{"name", JSON_STRING, false, NULL}, {"session", JSON_STRING, false, NULL},
                         {"kind", JSON_STRING, true, NULL},  {"labels", JSON_OBJECT, false, NULL},
                         {"with", JSON_ARRAY, false, NULL},  {"captured", JSON_BOOL, false, NULL}};
    struct making *m = arena_alloc(&x->arena, sizeof(*m));

    if (body_members(x, f, 6) != 0)
        return;
    if (!m || name_choose(x, f[0].value, m->name) != 0 || labels_take(x, f[3].value, &m->sandbox) != 0 ||
        with_check(x, f[4].value) != 0)
        return;
    x->step = m;
    m->captured = f[5].value && f[5].value->truth;
    m->sandbox.kind = f[2].value->text;
    m->sandbox.name = span_str(m->name);
    m->sandbox.session = f[1].value && f[1].value->text.n ? f[1].value->text : m->sandbox.name;
    m->sandbox.owner = span_str(x->operator);
    m->sandbox.tenant = SPAN("default");
    bool token = span_eq(m->sandbox.kind, SPAN("token"));
    if (m->sandbox.session.n > SESSION_MAX || (!token && !span_eq(m->sandbox.kind, SPAN("run")))) {
        reply_problem(x, 400, "Bad request", "kind is `run` or `token`, and a session's name at most %d bytes",
                      SESSION_MAX);
        return;
    }
    if (token && m->captured) {
        reply_problem(x, 400, "Bad request",
                      "a sandbox of kind `token` has no listener of its own: name a `transparent` listener in "
                      "countersign.yaml to capture its connections");
        return;
    }
    if (token && no_address(x))
        return;
    if (earlier(x, m) != 0)
        return;
    if (token && token_make(m) != 0) {
        reply_problem(x, 503, "Not possible now", "the system has no randomness to give");
        return;
    }
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_SANDBOX_PUT, M_SANDBOX_DONE, put_done);
    if (!b)
        return;
    wire_put_sandbox(b, &m->sandbox);
    ask_send(x);
}

/* A fresh token for one that has a token: what is stored are hashes, so nobody can be told the earlier one again. */
void api_sandbox_token(struct exchange *x)
{
    struct member f[] = {{"revoke_others", JSON_BOOL, false, NULL}};
    struct making *m = arena_alloc(&x->arena, sizeof(*m));
    struct sandbox_row r;
    struct err e;
    int rc = 0;

    if (body_members(x, f, 1) != 0)
        return;
    if (!m)
        rc = err_set(&e, "no memory");
    else if (name_ok(x->arg))
        rc = desk_store_sandbox(x->desk->store, x->arg, &x->arena, &r, &e);
    if (rc < 0) {
        reply_unable(x, &e);
        return;
    }
    if (rc == 0 || !r.has_token) {
        reply_problem(x, rc ? 409 : 404, rc ? "No token" : "No such sandbox", "%s",
                      rc ? "this sandbox is known by its own listener and has no token"
                         : "no sandbox has this name: `countersign sandbox create NAME` makes one");
        return;
    }
    if (no_address(x))
        return;
    x->step = m;
    (void)snprintf(m->name, sizeof(m->name), "%.*s", SPAN_FMT(x->arg));
    m->sandbox.name = span_str(m->name);
    m->sandbox.session = r.session;
    if (token_make(m) != 0) {
        reply_problem(x, 503, "Not possible now", "the system has no randomness to give");
        return;
    }
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_SANDBOX_TOKEN, M_SANDBOX_DONE, put_done);
    if (!b)
        return;
    msg_put_span(b, m->sandbox.name);
    msg_put_digest(b, &m->sandbox.token_hash);
    msg_put_u8(b, f[0].value && f[0].value->truth);
    ask_send(x);
}

static void removed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, 4096);

    if (msg_end(&m) == 0 && ok)
        reply_empty(x, 204);
    else
        reply_problem(x, 503, "Not removed", "the ledger did not remove the sandbox%s%.*s", why.n ? ": " : "",
                      (int)(why.n < 300 ? why.n : 300), (const char *)why.p);
}

void api_sandbox_remove(struct exchange *x)
{
    struct sandbox_row r;
    struct span end;
    struct err e;
    struct dynbuf *b;

    if (query_field(x, "end_session", &end) != 0)
        return;
    int rc = name_ok(x->arg) ? desk_store_sandbox(x->desk->store, x->arg, &x->arena, &r, &e) : 0;
    if (rc <= 0) {
        rc < 0 ? reply_unable(x, &e) : reply_problem(x, 404, "No such sandbox", "no sandbox has this name");
        return;
    }
    if (span_eq(r.kind, SPAN("started")) ||
        span_eq(r.kind, SPAN("idle"))) { /* it would run on, and nobody would know whose it is */
        reply_problem(x, 409, "It runs", "this sandbox runs, or is idle: `countersign sandbox destroy %.*s` ends it",
                      SPAN_FMT(x->arg));
        return;
    }
    if (span_eq(x->arg, SPAN(STORE_SANDBOX))) { /* without it no checkpoint is kept or read, not even here */
        reply_problem(
            x, 409, "The gateway's own",
            "checkpoints reach their store as this one, as long as `checkpoints:` of countersign.yaml has `s3:`");
        return;
    }
    /* Its door first: nothing of it comes in while its row goes. */
    b = x->desk->parent ? chan_begin(x->desk->parent, M_SANDBOX_CLOSE, ++x->desk->last_id) : NULL;
    if (b) {
        msg_put_span(b, x->arg);
        (void)chan_commit(x->desk->parent);
    }
    b = ask_begin(x, ASK_LEDGER, M_SANDBOX_RM, M_SANDBOX_DONE, removed);
    if (!b)
        return;
    msg_put_span(b, x->arg);
    msg_put_u8(b, span_eq(end, SPAN("1")));
    ask_send(x);
}
