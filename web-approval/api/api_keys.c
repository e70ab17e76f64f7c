/* Keys of those who speak to the dock and to the broker: /api/v1/keys; and what such a key opens a sandbox with,
 * /api/v1/sandboxes/NAME/access. */
#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/errand/broker_key.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"
#include "web-approval/dock.h"
#include "web-approval/route.h"

enum { WHY_MAX = 512, KEY_BYTES = 20, SCOPES_TEXT = 64 };

/* "e2b_" and 40 hexadecimal digits: what E2B's own SDK takes for a key; of the broker "csb_" and as many. */
struct key_made {
    char text[4 + 2 * KEY_BYTES + 1];
    struct span name, tenant;
    bool broker;
    char scopes[SCOPES_TEXT]; /* of the broker's, as JSON */
};

static bool word_ok(struct span s, size_t most)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || (c != '-' && c != '.' && c != '_')))
            return false;
    }
    return s.n > 0 && s.n <= most;
}

/* Of M_SANDBOX_DONE. False: answered. */
static bool written(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not written", "the ledger did not answer: `countersign key list` says what there is");
    else if (!ok)
        reply_problem(x, 409, "Not written", "%.*s", SPAN_FMT(why));
    return x->status == 0;
}

static void note(struct exchange *x, const char *kind, struct span name, struct span tenant)
{
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, 1024);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "operator", span_str(x->operator));
    jsonw_kv(&w, "key", name);
    if (tenant.n)
        jsonw_kv(&w, "tenant", tenant);
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        ask_note(x->desk, kind, dynbuf_span(&b));
    dynbuf_free(&b);
}

static void created(struct exchange *x, struct frame *f)
{
    const struct key_made *k = x->step;
    struct jsonw w;

    if (!written(x, f))
        return;
    note(x, "key-create", k->name, k->tenant);
    reply_json(x, 201, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "name", k->name);
    jsonw_kv(&w, "tenant", k->tenant);
    if (k->broker)
        jsonw_kv_raw(&w, "scopes", span_str(k->scopes));
    jsonw_kv(&w, "key", span_str(k->text)); /* the only time that anybody sees it */
    jsonw_end_object(&w);
}

static int key_make(struct key_made *k)
{
    struct id part[2];

    if (id_new(&part[0]) != 0 || id_new(&part[1]) != 0)
        return -1;
    memcpy(k->text, k->broker ? "csb_" : "e2b_", 4);
    hex_text(span_of(part, KEY_BYTES), k->text + 4);
    return 0;
}

void api_token_put(struct exchange *x, const struct token_asked *t, ask_fn *fn)
{
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_TOKEN_PUT, M_SANDBOX_DONE, fn);

    if (!b)
        return;
    msg_put_span(b, t->sandbox.n ? SPAN("access") : SPAN("key"));
    msg_put_span(b, t->sandbox);
    msg_put_span(b, t->name);
    msg_put_span(b, t->tenant);
    msg_put_u8(b, true);
    msg_put_digest(b, &t->hash);
    msg_put_span(b, t->note);
    ask_send(x);
}

/* What a key of the broker's is good for: to talk, to read along, or both, which is what nothing said means. -1,
 * answered. */
static int scopes_take(struct exchange *x, const struct json *broker, const struct json *scopes, struct key_made *k)
{
    bool chat = !scopes, read = !scopes, other = scopes && !scopes->child;

    k->broker = broker && broker->truth;
    for (const struct json *s = scopes ? scopes->child : NULL; s; s = s->next) {
        bool c = s->type == JSON_STRING && span_eq(s->text, SPAN("chat"));
        bool r = s->type == JSON_STRING && span_eq(s->text, SPAN("read"));
        other |= !c && !r;
        chat |= c;
        read |= r;
    }
    if (other || (scopes && !k->broker)) {
        reply_problem(x, 400, "Bad request",
                      "`scopes` are of a key for the broker (`broker`), some of chat and read");
        return -1;
    }
    (void)snprintf(k->scopes, sizeof(k->scopes), "[%s%s%s]", chat ? "\"chat\"" : "", chat && read ? "," : "",
                   read ? "\"read\"" : "");
    return 0;
}

void api_key_create(struct exchange *x)
{
    struct member f[] = {{"name", JSON_STRING, true, NULL},
                         {"tenant", JSON_STRING, false, NULL},
                         {"broker", JSON_BOOL, false, NULL},
                         {"scopes", JSON_ARRAY, false, NULL}};
    struct key_made *k = arena_alloc(&x->arena, sizeof(*k));
    struct token_asked t = {.name = SPAN_NONE};

    if (body_members(x, f, 4) != 0 || (k && scopes_take(x, f[2].value, f[3].value, k) != 0))
        return;
    if (!k || key_make(k) != 0) {
        reply_problem(x, 503, "Not possible now", "no memory, or the system has no randomness to give");
        return;
    }
    t.name = k->name = f[0].value->text;
    t.tenant = k->tenant = f[1].value ? f[1].value->text : SPAN("default");
    if (!word_ok(t.name, CALLER_KEY) || !word_ok(t.tenant, CALLER_TENANT)) {
        reply_problem(x, 400, "Bad request",
                      "a key's name (at most %d) and its tenant (at most %d) are of a-z 0-9 - . _ and begin with a "
                      "letter or digit",
                      CALLER_KEY, CALLER_TENANT);
        return;
    }
    if (k->broker) {
        broker_key_digest(span_str(k->text), &t.hash);
        t.note = arena_printf(&x->arena, "{\"scopes\":%s}", k->scopes);
    } else {
        digest_of(span_str(k->text), &t.hash);
    }
    x->step = k;
    api_token_put(x, &t, created);
}

static int list_row(void *ctx, const struct token_row *r)
{
    struct jsonw *w = ctx;
    bool broker = r->note.n > 0; /* its scopes */

    jsonw_object(w);
    jsonw_kv(w, "name", r->name);
    jsonw_kv(w, "tenant", r->tenant);
    jsonw_kv(w, "for", broker ? SPAN("broker") : SPAN("sandboxes"));
    if (broker)
        jsonw_kv_raw(w, "broker", r->note);
    jsonw_kv_u64(w, "created_ms", r->created_ms);
    jsonw_end_object(w);
    return 0;
}

void api_keys(struct exchange *x)
{
    struct jsonw w;
    struct err e;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "keys");
    int rc = desk_store_tokens(x->desk->store, "key", SPAN_NONE, &x->arena, list_row, &w, &e);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (rc != 0)
        reply_unable(x, &e);
}

static void removed(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) != 0 || !ok) {
        reply_problem(x, m.bad ? 503 : 404, "Not removed", "%.*s",
                      SPAN_FMT(m.bad ? SPAN("the ledger did not answer; ask again") : why));
        return;
    }
    if (dock_drop)
        dock_drop(x->desk->server, x->arg);
    note(x, "key-remove", x->arg, SPAN_NONE);
    reply_empty(x, 204);
}

void api_key_remove(struct exchange *x)
{
    struct dynbuf *b;

    if (!word_ok(x->arg, CALLER_KEY)) {
        reply_problem(x, 404, "Not removed", "there is no such key");
        return;
    }
    if (!(b = ask_begin(x, ASK_LEDGER, M_KEY_RM, M_SANDBOX_DONE, removed)))
        return;
    msg_put_span(b, x->arg);
    ask_send(x);
}

/* --- of one sandbox ----------------------------------------------------------- */

static void opened(struct exchange *x, struct frame *f)
{
    if (written(x, f))
        reply_empty(x, 204);
}

int api_access_take(struct exchange *x, const struct json *given, struct digest *hash)
{
    if (given && hex_parse(given->text, hash->b, DIGEST_BYTES) == 0)
        return 0;
    reply_problem(x, 400, "Bad request", "`access` is the SHA-256 of a token, in hexadecimal");
    return -1;
}

void api_started_access(struct exchange *x)
{
    struct member f[] = {{"access", JSON_STRING, true, NULL}, {"restored", JSON_NUMBER, true, NULL}};
    struct token_asked t = {.sandbox = x->arg, .name = span_str(x->caller.key), .tenant = span_str(x->caller.tenant)};
    struct sandbox_row row;
    struct err e;
    uint64_t restored;

    if (body_members(x, f, 2) != 0 || api_access_take(x, f[0].value, &t.hash) != 0 ||
        api_number(x, &f[1], &restored, 0, INT64_MAX) != 0)
        return;
    if (desk_store_sandbox(x->desk->store, x->arg, &x->arena, &row, &e) != 1)
        reply_problem(x, 503, "Not possible now", "the ledger's row of the sandbox cannot be read");
    else if (row.restored != restored)
        reply_problem(x, 409, "It was restored",
                      "the sandbox was idle meanwhile, and what opened it before opens it no more; ask again");
    else
        api_token_put(x, &t, opened);
}
