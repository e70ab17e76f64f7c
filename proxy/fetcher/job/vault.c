/* HashiCorp Vault and OpenBao over their HTTP API: log in (a token that is there, AppRole, a JWT as Kubernetes gives
 * one), read one path, give back the token that was got for it.
 *
 * What was leased is renewed with the token that it hangs on, by the next question. Where that is refused, or gives
 * less than half of the life it had at first (it is near the end of what the vault allows), another one is read, and
 * the one before it is given back by the question after that, which the keeper asks soon: requests are still on their
 * way with it. What is to be known then the keeper is told to say again (`held`, struct held). */
#include "common/arena.h"
#include "common/json/json.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/time/clock.h"
#include "proxy/fetcher/job/sources.h"

#include <stdio.h>

enum { JSON_MEMORY = 8 * 1024 * 1024, LOGIN_MAX = 32 * 1024, PATH_MAX_BYTES = 1024, FIELD_MAX = 9 * 1024 };
enum { BACK_SHARE = 4 /* of the question's time that giving something back may take */ };

struct held {
    struct span token, lease, value; /* token: one that was logged in for; empty: the operator's own */
    uint64_t life_ms, until_ms;      /* its life at first; its end, Unix time */
    /* What it replaced and is to be given back: a token with all that is leased by it, or one lease. */
    struct span old_token, old_lease;
};

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

/* Empty when there is nothing that can be read. */
static void held_get(struct span told, struct held *h)
{
    struct msg_in m = msg_in(told);
    h->token = msg_get_span(&m, FETCH_VALUE_MAX);
    h->lease = msg_get_span(&m, FETCH_VALUE_MAX);
    h->value = msg_get_span(&m, FETCH_VALUE_MAX);
    h->life_ms = msg_get_u64(&m);
    h->until_ms = msg_get_u64(&m);
    h->old_token = msg_get_span(&m, FETCH_VALUE_MAX);
    h->old_lease = msg_get_span(&m, FETCH_VALUE_MAX);
    if (msg_end(&m) != 0 || h->lease.n == 0 || h->value.n == 0)
        *h = (struct held){.life_ms = 0};
}

/* Empty: nothing was leased, or it is more than can be told. */
static struct span held_put(const struct held *h, struct dynbuf *b)
{
    dynbuf_init(b, FETCH_VALUE_MAX);
    if (h->lease.n == 0)
        return SPAN_NONE;
    msg_put_span(b, h->token);
    msg_put_span(b, h->lease);
    msg_put_span(b, h->value);
    msg_put_u64(b, h->life_ms);
    msg_put_u64(b, h->until_ms);
    msg_put_span(b, h->old_token);
    msg_put_span(b, h->old_lease);
    return dynbuf_ok(b) ? dynbuf_span(b) : SPAN_NONE;
}

/* what: its fields are put in here. */
static int ask(const struct job *j, struct http *h, struct http_ask what, struct span token, unsigned *status,
               struct span *answer, struct err *e)
{
    struct dynbuf with, space;
    what.fields[0] = SPAN("X-Vault-Request: true");
    what.fields[1] = field(&with, "X-Vault-Token", token);
    what.fields[2] = field(&space, "X-Vault-Namespace", setting(j, "namespace"));
    int rc = http_ask(h, &what, status, answer, e);
    dynbuf_wipe(&with);
    dynbuf_free(&space);
    return rc;
}

static struct http_ask get(const char *path)
{
    return (struct http_ask){.method = "GET", .path = span_str(path)};
}

static struct http_ask post(const char *path, struct span body)
{
    return (struct http_ask){.method = "POST", .path = span_str(path), .body = body};
}

/* {"lease_id": ...}, or {} without one. */
static struct span about_lease(struct dynbuf *b, struct span lease)
{
    struct jsonw w;
    dynbuf_init(b, LOGIN_MAX);
    jsonw_begin(&w, b);
    jsonw_object(&w);
    if (lease.n)
        jsonw_kv(&w, "lease_id", lease);
    jsonw_end_object(&w);
    return dynbuf_ok(b) ? dynbuf_span(b) : SPAN_NONE;
}

/* The shorter of two lives, of which 0 is one without end. */
static uint64_t shorter(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

int vault_renewed(struct span json, bool of_token, struct arena *a, uint64_t *life_ms)
{
    const struct json *all = json_parse(json, a), *of = all && of_token ? json_get(all, SPAN("auth")) : all;
    uint64_t seconds;
    if (of == NULL || of->type != JSON_OBJECT || json_u64(of, SPAN("lease_duration"), &seconds) != 0)
        return -1;
    *life_ms = (seconds < UINT32_MAX ? seconds : UINT32_MAX) * 1000;
    return of_token || seconds > 0 ? 0 : -1; /* a lease without life is at its end, a token without has none */
}

static bool renew_one(const struct job *j, struct http *h, struct arena *a, const struct held *was, bool of_token,
                      uint64_t *life_ms)
{
    struct span token = was->token.n ? was->token : setting(j, "token"), answer;
    struct dynbuf body;
    struct err e;
    unsigned status = 0;
    const char *path = of_token ? "/v1/auth/token/renew-self" : "/v1/sys/leases/renew";
    struct span about = about_lease(&body, of_token ? SPAN_NONE : was->lease);
    bool ok = about.n && ask(j, h, post(path, about), token, &status, &answer, &e) == 0;
    dynbuf_free(&body);
    return ok && status == 200 && vault_renewed(answer, of_token, a, life_ms) == 0;
}

/* A token of the operator's own is his to renew. Where the policy says how long a value is used, none is used for
 * longer. */
static bool renew(const struct job *j, struct http *h, struct arena *a, const struct held *was, uint64_t *life_ms)
{
    uint64_t token_ms = 0, lease_ms = 0;
    if (setting(j, "lifetime").n || (was->token.n && !renew_one(j, h, a, was, true, &token_ms)) ||
        !renew_one(j, h, a, was, false, &lease_ms))
        return false;
    *life_ms = shorter(lease_ms, token_ms);
    return *life_ms >= was->life_ms / 2;
}

/* May what was given before be given once more, and for how long? If it replaced something, that is what this
 * question is about. */
static bool again(const struct job *j, struct http *h, struct arena *a, const struct held *was, uint64_t *life_ms)
{
    uint64_t now = clock_ms(CLOCK_REALTIME);
    if (was->lease.n == 0 || setting(j, "anew").n) /* somebody wants to know whether another one can be had */
        return false;
    if (was->old_token.n == 0 && was->old_lease.n == 0)
        return renew(j, h, a, was, life_ms);
    *life_ms = was->until_ms > now ? was->until_ms - now : 0;
    return *life_ms > 0;
}

/* Best effort: what is not given back ends by itself. */
static void give_back(const struct job *j, struct http *h, struct span token, struct span lease)
{
    struct dynbuf body;
    struct err e = {{0}};
    struct span unread;
    unsigned status = 0;
    const char *what = token.n ? "token" : "lease";
    if (token.n == 0 && lease.n == 0)
        return;
    struct http_ask q = post(token.n ? "/v1/auth/token/revoke-self" : "/v1/sys/leases/revoke",
                             about_lease(&body, token.n ? SPAN_NONE : lease));
    q.ms = (uint32_t)(j->ask.timeout_ms / BACK_SHARE);
    if (ask(j, h, q, token.n ? token : setting(j, "token"), &status, &unread, &e) != 0)
        log_warn("the vault, to revoke a %s that is not used any more: %s", what, e.text);
    else if (status != 200 && status != 204)
        log_warn("the vault answered %u when it was to revoke a %s that is not used any more; it ends by itself",
                 status, what);
    dynbuf_free(&body);
}

/* The token that the rest is asked with; got: it was made for this job alone, and lives for so long (0: without end).
 */
static struct span log_in(const struct job *j, struct http *h, struct arena *a, bool *got, uint64_t *life_ms)
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
    if (ask(j, h, post(path, dynbuf_span(&body)), SPAN_NONE, &status, &answer, &e) != 0)
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
    if (vault_renewed(answer, true, a, life_ms) != 0)
        *life_ms = 0; /* it does not say */
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

/* Another one: logged in for, if need be, and read. */
static void read_new(const struct job *j, struct http *h, struct arena *a, struct held *now, struct wire_fetched *got)
{
    struct err e = {{0}};
    struct span answer;
    unsigned status = 0;
    bool logged_in = false;
    uint64_t token_ms = 0;
    char path[PATH_MAX_BYTES];
    struct span token = log_in(j, h, a, &logged_in, &token_ms), read = setting(j, "read");
    int n = snprintf(path, sizeof(path), "/v1/%.*s", SPAN_FMT(read));
    if (n < 0 || (size_t)n >= sizeof(path))
        job_failed(j, "read: is too long");
    if (ask(j, h, get(path), token, &status, &answer, &e) != 0)
        job_failed(j, "the vault, to read %.*s: %s", SPAN_FMT(read), e.text);
    if (status != 200)
        job_failed(j, "the vault answered %u when %.*s was read", status, SPAN_FMT(read));
    if (vault_answer(answer, setting(j, "value"), a, got, &e) != 0)
        job_failed(j, "%s", e.text);
    /* With the token would end what was leased by it; without a lease it is of no more use. */
    if (logged_in && got->keep.n == 0)
        give_back(j, h, token, SPAN_NONE);
    if (logged_in && got->keep.n)
        got->lifetime_ms = shorter(got->lifetime_ms, token_ms);
    *now = (struct held){.token = logged_in ? token : SPAN_NONE,
                         .lease = got->lifetime_ms ? got->keep : SPAN_NONE,
                         .value = got->value,
                         .life_ms = got->lifetime_ms};
}

void source_vault(const struct job *j, struct http *h)
{
    struct wire_fetched got = {.ok = false};
    struct held was, now;
    struct dynbuf told;
    struct arena a;
    arena_init(&a, JSON_MEMORY);
    held_get(setting(j, "held"), &was);
    bool kept = again(j, h, &a, &was, &got.lifetime_ms);
    if (kept)
        now = was;
    else
        read_new(j, h, &a, &now, &got);
    give_back(j, h, was.old_token, was.old_lease);
    now.old_token = kept ? SPAN_NONE : was.token;
    now.old_lease = kept || was.token.n ? SPAN_NONE : was.lease;
    uint64_t most = wire_setting_u64(&j->ask, SPAN("lifetime"), 0);
    now.until_ms = clock_ms(CLOCK_REALTIME) + shorter(got.lifetime_ms, most);
    job_done(j, now.value, got.lifetime_ms, held_put(&now, &told));
}
