/* HashiCorp Vault and OpenBao over their HTTP API: log in (a token that is there, AppRole, a JWT as Kubernetes gives
 * one), read one path, give back the token that was got for it. */
#include "common/arena.h"
#include "common/json/json.h"
#include "proxy/fetcher/job/sources.h"

#include <stdio.h>

enum { JSON_MEMORY = 8 * 1024 * 1024, LOGIN_MAX = 32 * 1024, PATH_MAX_BYTES = 1024, FIELD_MAX = 9 * 1024 };

static struct span setting(const struct job *j, const char *key)
{
    return wire_setting(&j->ask, span_str(key), 0);
}

static struct span field(struct dynbuf *b, const char *name, struct span value)
{
    dynbuf_init(b, FIELD_MAX);
    if (value.n)
        (void)dynbuf_addf(b, "%s: %.*s", name, SPAN_FMT(value));
    return dynbuf_ok(b) ? dynbuf_span(b) : SPAN_NONE;
}

static int ask(const struct job *j, struct http *h, const char *method, const char *path, struct span token,
               struct span body, unsigned *status, struct span *answer, struct err *e)
{
    struct dynbuf with, space;
    struct http_ask q = {.method = method, .path = span_str(path), .body = body};
    q.fields[0] = SPAN("X-Vault-Request: true");
    q.fields[1] = field(&with, "X-Vault-Token", token);
    q.fields[2] = field(&space, "X-Vault-Namespace", setting(j, "namespace"));
    int rc = http_ask(h, &q, status, answer, e);
    dynbuf_wipe(&with);
    dynbuf_free(&space);
    return rc;
}

/* The token that the rest is asked with; got: it was made for this job alone. */
static struct span log_in(const struct job *j, struct http *h, struct arena *a, bool *got)
{
    struct span token = setting(j, "token"), jwt = setting(j, "jwt"), mount = setting(j, "auth"), answer;
    struct dynbuf body;
    struct jsonw w;
    struct err e = {{0}};
    unsigned status = 0;
    char path[PATH_MAX_BYTES];
    if (token.n)
        return token;
    *got = true;
    dynbuf_init(&body, LOGIN_MAX);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, jwt.n ? "role" : "role_id", setting(j, jwt.n ? "role" : "role_id"));
    jsonw_kv(&w, jwt.n ? "jwt" : "secret_id", jwt.n ? jwt : setting(j, "secret_id"));
    jsonw_end_object(&w);
    mount = mount.n ? mount : jwt.n ? SPAN("kubernetes") : SPAN("approle");
    int n = snprintf(path, sizeof(path), "/v1/auth/%.*s/login", SPAN_FMT(mount));
    if (!dynbuf_ok(&body) || n < 0 || (size_t)n >= sizeof(path))
        job_failed(j, "what the vault is asked with is too long");
    if (ask(j, h, "POST", path, SPAN_NONE, dynbuf_span(&body), &status, &answer, &e) != 0)
        job_failed(j, "the vault, to log in: %s", e.text);
    dynbuf_wipe(&body);
    if (status != 200)
        job_failed(j, "the vault answered %u when it was asked to log in at auth/%.*s", status, SPAN_FMT(mount));
    const struct json *all = json_parse(answer, a), *t = all ? json_pointer(all, SPAN("/auth/client_token")) : NULL;
    if (t == NULL || t->type != JSON_STRING || t->text.n == 0)
        job_failed(j, "the vault's answer to a login has no /auth/client_token");
    for (size_t i = 0; i < t->text.n; i++)
        if (t->text.p[i] <= 0x20 || t->text.p[i] >= 0x7f)
            job_failed(j, "the vault's token has bytes that no field can carry");
    return t->text;
}

int vault_answer(struct span json, struct span where, struct arena *a, struct wire_fetched *out, struct err *e)
{
    const struct json *all = json_parse(json, a), *v = all ? json_pointer(all, where) : NULL;
    uint64_t seconds = 0;
    *out = (struct wire_fetched){.ok = false};
    if (all == NULL || all->type != JSON_OBJECT)
        return err_set(e, "the vault's answer is not a JSON object");
    if (v == NULL || v->type != JSON_STRING)
        return err_set(e, "the vault's answer has no text at %.*s", SPAN_FMT(where));
    if (json_get(all, SPAN("lease_duration")) != NULL && json_u64(all, SPAN("lease_duration"), &seconds) != 0)
        return err_set(e, "lease_duration of the vault's answer is no number of seconds");
    out->value = v->text;
    out->lifetime_ms = (seconds < UINT32_MAX ? seconds : UINT32_MAX) * 1000; /* 0: what a KV store says of all */
    out->keep = json_text(all, SPAN("lease_id"));
    return 0;
}

void source_vault(const struct job *j, struct http *h)
{
    struct wire_fetched got;
    struct arena a;
    struct err e = {{0}};
    struct span answer, unread;
    unsigned status = 0, ignored;
    bool logged_in = false;
    char path[PATH_MAX_BYTES];
    arena_init(&a, JSON_MEMORY);
    struct span token = log_in(j, h, &a, &logged_in), read = setting(j, "read");
    int n = snprintf(path, sizeof(path), "/v1/%.*s", SPAN_FMT(read));
    if (n < 0 || (size_t)n >= sizeof(path))
        job_failed(j, "read: is too long");
    if (ask(j, h, "GET", path, token, SPAN_NONE, &status, &answer, &e) != 0)
        job_failed(j, "the vault, to read %.*s: %s", SPAN_FMT(read), e.text);
    if (status != 200)
        job_failed(j, "the vault answered %u when %.*s was read", status, SPAN_FMT(read));
    if (vault_answer(answer, setting(j, "value"), &a, &got, &e) != 0)
        job_failed(j, "%s", e.text);
    /* With the token would end what was leased by it; without a lease it is of no more use. */
    if (logged_in && got.keep.n == 0)
        (void)!ask(j, h, "POST", "/v1/auth/token/revoke-self", token, SPAN_NONE, &ignored, &unread, &e);
    job_done(j, got.value, got.lifetime_ms, SPAN_NONE);
}
