/* The keeper's own control socket: HTTP/1.1 over a Unix socket of mode 0600, for
 * the daemon's owner and root alone (SO_PEERCRED). A value goes in and never out.
 *
 *   PUT /v1/secrets/NAME   the raw value as the body      204
 *     ?keep=SECONDS        how long those before it are looked for in answers
 *   GET /v1/secrets        names and dates                200 {"secrets":[...]}
 *   DELETE /v1/secrets/NAME                               204 or 404
 *     ?earlier             only those that were before it
 *   GET /v1/secrets/NAME/jwk   the public half of a key   200 a JWK (RFC 7517)
 *   POST /v1/credentials/NAME/check                       200 {"ok":...,"why":...}, when it is known
 *   GET /v1/ca             the CA's certificate           200 PEM
 *   POST /v1/passkeys/NAME     a code with which this person adds one   200 {"code":...}
 *   DELETE /v1/passkeys/NAME   all of theirs                            204
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/crypto/jws.h"
#include "common/json/json.h"
#include "common/log.h"
#include "common/net/conn.h"
#include "proxy/keeper/sources/parked.h"
#include "proxy/keeper/value.h"

enum { KEEP_SECONDS_MAX = 366 * 86400 };
enum { CALLERS_MAX = 16, INPUT_MAX = HTTP_HEAD_MAX + 2 * VALUE_MAX, CALL_MS = 10 * 1000, CHECK_MS = 30 * 1000 };

struct caller {
    struct keeper *keeper;
    struct conn *conn;
    size_t seen;
    unsigned uid;
    char check[VAULT_NAME_MAX + 1]; /* the credential it waits for; empty: none */
};

static int listener = -1;
static struct watch *watching;
static size_t ncallers;

static void caller_end(struct caller *c, bool finish)
{
    if (c->check[0] != '\0')
        parked_drop(c->keeper, c);
    if (finish)
        conn_finish(&c->conn);
    else
        conn_free(&c->conn);
    if (ncallers-- == CALLERS_MAX)
        watch_set(watching, WATCH_READ);
    free(c);
}

static void answer_as(struct caller *c, unsigned status, const char *reason, struct span type, struct span body)
{
    struct dynbuf out;
    dynbuf_init(&out, 256 * 1024);
    int bad = http_write_status_line(&out, status, span_str(reason)) != 0 ||
              http_write_field(&out, SPAN("Content-Type"), type) != 0 ||
              http_write_field(&out, SPAN("Connection"), SPAN("close")) != 0 ||
              http_write_end(&out, status == 204 ? HTTP_NO_BODY : HTTP_LENGTH, body.n) != 0 ||
              dynbuf_add(&out, body) != 0 || conn_write(c->conn, dynbuf_span(&out)) != 0;
    dynbuf_free(&out);
    caller_end(c, !bad);
}

static void answer(struct caller *c, unsigned status, const char *reason, struct span body)
{
    answer_as(c, status, reason, SPAN("application/json"), body);
}

static void refuse(struct caller *c, unsigned status, const char *reason, const char *why)
{
    struct dynbuf body;
    struct jsonw w;
    dynbuf_init(&body, 8 * 1024);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "title", span_str(reason));
    jsonw_kv(&w, "detail", span_str(why));
    jsonw_end_object(&w);
    answer_as(c, status, reason, SPAN("application/problem+json"), dynbuf_span(&body));
    dynbuf_free(&body);
}

static void ca(struct caller *c)
{
    struct dynbuf pem;
    dynbuf_init(&pem, CA_PEM_MAX);
    if (ca_pem(c->keeper->keep.ca, &pem) == 0)
        answer_as(c, 200, "OK", SPAN("application/x-pem-file"), dynbuf_span(&pem));
    else
        refuse(c, 500, "Internal Server Error", "out of memory");
    dynbuf_free(&pem);
}

/* To be called before earlier values are looked at. */
void keeper_expire(struct keeper *k)
{
    struct err e = {{0}};
    if (vault_expire(k->keep.vault, loop_wall(k->loop), &e) != 0)
        log_warn("earlier values whose time is over are still in the store: %s", e.text);
    tokens_expire(k->tokens, loop_wall(k->loop));
}

static void list(struct caller *c)
{
    struct dynbuf body;
    struct jsonw w;
    struct span name;
    uint64_t created, changed, until;
    keeper_expire(c->keeper);
    dynbuf_init(&body, 128 * 1024);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv_array(&w, "secrets");
    for (size_t i = 0; vault_at(c->keeper->keep.vault, i, &name, &created, &changed); i++) {
        jsonw_object(&w);
        jsonw_kv(&w, "name", name);
        jsonw_kv_u64(&w, "created_ms", created);
        jsonw_kv_u64(&w, "changed_ms", changed);
        jsonw_kv_u64(&w, "used_ms", vault_used(c->keeper->keep.vault, name));
        jsonw_kv_u64(&w, "earlier", vault_earlier(c->keeper->keep.vault, name, &until));
        jsonw_kv_u64(&w, "earlier_until_ms", until);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    answer(c, 200, "OK", dynbuf_span(&body));
    dynbuf_free(&body);
}

/* What a credential of the policy in force could not use is refused now, not at its first request. */
static int fits_policy(const struct policy *p, struct span name, struct span value, struct err *e)
{
    struct credential c;
    for (size_t i = 0; p != NULL && policy_credential(p, i, &c); i++)
        if (c.source == SOURCE_STORE && span_eq(c.source_arg, name) && value_fits(&c, value, e) != 0)
            return -1;
    return 0;
}

/* ?keep=SECONDS; 0: not said. */
static int keep_of(const struct http_head *h, uint64_t *seconds)
{
    static const struct span key = SPAN("keep=");
    *seconds = 0;
    if (!h->has_query)
        return 0;
    return span_starts(h->query, key) && span_u64(span_from(h->query, key.n), KEEP_SECONDS_MAX, seconds) == 0 &&
                   *seconds > 0
               ? 0
               : -1;
}

static int store(struct keeper *k, struct span name, struct span value, uint64_t keep_s, struct err *e)
{
    uint64_t now = loop_wall(k->loop), until = keep_s > 0 ? now + keep_s * 1000 : 0;
    struct secret *s = secret_new(value);
    int bad = s == NULL ? err_set(e, "out of memory") : vault_set(k->keep.vault, name, s, until, now, e);
    secret_free(&s);
    return bad;
}

static void put(struct caller *c, struct span name, struct span raw, uint64_t keep_s)
{
    struct err e = {{0}};
    struct span value = value_trim(raw);
    if (!vault_name_ok(name) || value_check(value, &e) != 0 || fits_policy(c->keeper->policy, name, value, &e) != 0) {
        refuse(c, 400, "Bad Request", e.text[0] ? e.text : "a secret's name is A-Z a-z 0-9 . _ -");
        return;
    }
    if (store(c->keeper, name, value, keep_s, &e) != 0) {
        refuse(c, 500, "Internal Server Error", e.text);
        return;
    }
    log_info("secret %.*s was set", SPAN_FMT(name));
    keeper_note(c->keeper, "set", name, c->uid);
    keeper_tell_secrets(c->keeper);
    answer(c, 204, "No Content", SPAN_NONE);
}

static void drop(struct caller *c, struct span name, bool earlier)
{
    struct err e = {{0}};
    uint64_t now = loop_wall(c->keeper->loop);
    int r = !vault_name_ok(name) ? 0
            : earlier            ? vault_earlier_until(c->keeper->keep.vault, name, now, now, &e)
                                 : vault_remove(c->keeper->keep.vault, name, &e);
    if (r < 0) {
        refuse(c, 500, "Internal Server Error", e.text);
    } else if (r == 0) {
        refuse(c, 404, "Not Found", "there is no secret of that name; see `countersign secret list`");
    } else {
        const char *act = earlier ? "earlier values removed" : "removed";
        log_info("%s%.*s %s removed", earlier ? "earlier values of secret " : "secret ", SPAN_FMT(name),
                 earlier ? "were" : "was");
        keeper_note(c->keeper, act, name, c->uid);
        keeper_tell_secrets(c->keeper);
        answer(c, 204, "No Content", SPAN_NONE);
    }
}

/* For those who trust what the key signs. */
static void public_key(struct caller *c, struct span name)
{
    struct err e = {{0}};
    struct dynbuf jwk;
    struct secret *s = vault_name_ok(name) ? vault_get(c->keeper->keep.vault, name) : NULL;
    struct jws_key *key = s != NULL ? jws_key_new(secret_bytes(s), &e) : NULL;
    dynbuf_init(&jwk, JWS_MAX);
    if (s == NULL)
        refuse(c, 404, "Not Found", "there is no secret of that name; see `countersign secret list`");
    else if (key == NULL)
        refuse(c, 400, "Bad Request", e.text);
    else if (jws_public(key, &jwk) == 0)
        answer(c, 200, "OK", dynbuf_span(&jwk));
    else
        refuse(c, 500, "Internal Server Error", "out of memory");
    jws_key_free(&key);
    secret_free(&s);
    dynbuf_free(&jwk);
}

/* ---- would it work? ---- */

static bool credential_named(const struct policy *p, struct span name, struct credential *c)
{
    for (size_t i = 0; p != NULL && policy_credential(p, i, c); i++)
        if (span_eq(c->name, name))
            return true;
    return false;
}

static void verdict(struct caller *c, const struct credential *cred)
{
    struct dynbuf body;
    struct jsonw w;
    struct err e = {{0}};
    struct keeper *k = c->keeper;
    bool ok = !policy_source_is_asked(cred->source) || fetch_outcome(k->fetches, cred, &e) == 0;
    struct secret *v = ok && cred->source != SOURCE_ANSWER ? sources_value(k->sources, cred, &e) : NULL;
    bool signs = cred->sign != SIGN_NONE; /* its value goes into no request */
    struct secret *field = v != NULL && !signs ? value_render(cred, secret_bytes(v), &e) : NULL;
    bool fits = cred->source == SOURCE_ANSWER || field != NULL ||
                (v != NULL && signs && value_fits(cred, secret_bytes(v), &e) == 0);
    dynbuf_init(&body, 8 * 1024);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "credential", cred->name);
    jsonw_kv(&w, "source", span_str(policy_source_name(cred->source)));
    jsonw_key(&w, "ok");
    jsonw_bool(&w, fits);
    if (!fits)
        jsonw_kv(&w, "why", span_str(e.text));
    jsonw_end_object(&w);
    secret_free(&v);
    secret_free(&field);
    answer(c, 200, "OK", dynbuf_span(&body));
    dynbuf_free(&body);
}

static void gone_by_now(struct caller *c)
{
    refuse(c, 404, "Not Found", "the policy in force names no such credential");
}

void keeper_caller_told(struct caller *c)
{
    struct credential cred;
    struct err unused;
    uint64_t wait;
    bool known = credential_named(c->keeper->policy, span_str(c->check), &cred);
    if (known && fetch_go_on(c->keeper->fetches, &cred, &wait, &unused) == FETCH_LATER &&
        parked_add_caller(c->keeper, wait, c) == 0)
        return;
    c->check[0] = '\0';
    if (known)
        verdict(c, &cred);
    else
        gone_by_now(c);
}

static void check(struct caller *c, struct span name)
{
    struct credential cred;
    struct err unused;
    uint64_t wait = 0;
    if (!vault_name_ok(name) || !credential_named(c->keeper->policy, name, &cred)) {
        gone_by_now(c);
        return;
    }
    if (!policy_source_is_asked(cred.source) ||
        fetch_again(c->keeper->fetches, &cred, &wait, &unused) != FETCH_LATER) {
        verdict(c, &cred);
        return;
    }
    memcpy(c->check, name.p, name.n);
    c->check[name.n] = '\0';
    conn_deadline(c->conn, CHECK_MS);
    if (parked_add_caller(c->keeper, wait, c) != 0)
        refuse(c, 503, "Service Unavailable", "too many wait for credentials; try again shortly");
}

/* ---- who may add a passkey ---- */

static void passkey(struct caller *c, struct span name, bool removes)
{
    struct err e = {{0}};
    char code[ID_TEXT + 1] = "";
    struct keeper *k = c->keeper;
    int got = removes ? passkeys_remove(k->passkeys, name, &e)
                      : passkeys_code(k->passkeys, name, loop_wall(k->loop), code, &e);
    if (got < 0) {
        refuse(c, removes ? 500 : 409, removes ? "Internal Server Error" : "Conflict", e.text);
        return;
    }
    keeper_note(k, removes ? "passkeys removed" : "passkey code given", name, c->uid);
    if (removes) {
        keeper_tell_passkeys(k);
        answer(c, 204, "No Content", SPAN_NONE);
        return;
    }
    char json[ID_TEXT + 16];
    int n = snprintf(json, sizeof(json), "{\"code\":\"%s\"}", code);
    answer(c, 200, "OK", span_of(json, (size_t)n));
    explicit_bzero(json, sizeof(json));
    explicit_bzero(code, sizeof(code));
}

static void serve(struct caller *c, const struct http_head *h, struct span body)
{
    static const struct span one = SPAN("/v1/secrets/");
    static const struct span of = SPAN("/v1/credentials/"), asks = SPAN("/check"), shown = SPAN("/jwk");
    static const struct span keys = SPAN("/v1/passkeys/");
    struct span person = span_starts(h->path, keys) ? span_from(h->path, keys.n) : SPAN_NONE;
    bool removes = span_eq(h->method, SPAN("DELETE"));
    struct span name = span_starts(h->path, one) ? span_from(h->path, one.n) : SPAN_NONE;
    struct span cred = span_starts(h->path, of) ? span_from(h->path, of.n) : SPAN_NONE;
    bool checks = cred.n > asks.n && span_eq(span_from(cred, cred.n - asks.n), asks);
    bool sets = span_eq(h->method, SPAN("PUT")) && name.n, drops = span_eq(h->method, SPAN("DELETE")) && name.n;
    bool earlier = drops && h->has_query && span_eq(h->query, SPAN("earlier"));
    uint64_t keep_s = 0;
    if ((sets && keep_of(h, &keep_s) != 0) || (!sets && !earlier && h->has_query))
        refuse(c, 400, "Bad Request", "this query is not taken here");
    else if (person.n && (removes || span_eq(h->method, SPAN("POST"))))
        passkey(c, person, removes);
    else if (span_eq(h->method, SPAN("GET")) && span_eq(h->path, SPAN("/v1/secrets")))
        list(c);
    else if (span_eq(h->method, SPAN("GET")) && span_eq(h->path, SPAN("/v1/ca")))
        ca(c);
    else if (span_eq(h->method, SPAN("GET")) && name.n > shown.n && span_ends(name, shown))
        public_key(c, span_first(name, name.n - shown.n));
    else if (span_eq(h->method, SPAN("POST")) && checks)
        check(c, span_first(cred, cred.n - asks.n));
    else if (sets)
        put(c, name, body, keep_s);
    else if (drops)
        drop(c, name, earlier);
    else
        refuse(c, 404, "Not Found",
               "PUT or DELETE /v1/secrets/NAME, GET /v1/secrets or /v1/secrets/NAME/jwk, POST "
               "/v1/credentials/NAME/check, GET /v1/ca");
}

static void read_call(struct caller *c)
{
    struct http_head h;
    struct http_err e;
    size_t used;
    struct span in = conn_input(c->conn);
    enum http_result r = http_parse_request(in, HTTP_ORIGIN_SERVER, &c->seen, &h, &used, &e);
    if (r == HTTP_MORE)
        return;
    if (r == HTTP_BAD || h.framing == HTTP_CHUNKED || (h.framing == HTTP_LENGTH && h.length > 2 * VALUE_MAX)) {
        refuse(c, 400, "Bad Request", r == HTTP_BAD ? e.why : "a body of known length, at most 16 KiB, is wanted");
        return;
    }
    size_t length = h.framing == HTTP_LENGTH ? (size_t)h.length : 0;
    if (in.n - used >= length)
        serve(c, &h, span_of(in.p + used, length));
    else
        c->seen = 0; /* the head is parsed again when the body is there */
}

static void on_event(void *arg, struct conn *conn, enum conn_event ev)
{
    if (ev == CONN_DATA && ((struct caller *)arg)->check[0] == '\0')
        read_call(arg);
    else if (ev == CONN_DATA)
        return; /* one question at a time */
    else if (ev != CONN_DRAINED && ev != CONN_CONNECTED)
        caller_end(arg, false);
}

static void on_knock(void *arg, unsigned ready)
{
    struct keeper *k = arg;
    int fd = listen_accept(listener);
    struct caller *c = fd < 0 ? NULL : calloc(1, sizeof(*c));
    if (c == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    c->keeper = k;
    if ((c->conn = conn_new(k->loop, fd, INPUT_MAX, on_event, c)) == NULL) {
        free(c);
        return;
    }
    if (++ncallers == CALLERS_MAX)
        watch_set(watching, 0);
    conn_deadline(c->conn, CALL_MS);
    if (conn_peer_pid(c->conn, &c->uid) < 0 || (c->uid != 0 && c->uid != k->owner)) {
        log_warn("uid %u was refused at the secrets' socket", c->uid);
        caller_end(c, false);
    }
}

void keeper_door_open(struct keeper *k, int fd)
{
    if (watching != NULL) {
        close(fd);
        return;
    }
    listener = fd;
    if ((watching = watch_new(k->loop, fd, WATCH_READ, on_knock, k)) == NULL)
        log_die("out of memory");
}
