/* policy/policy.h by a few words of text: see play.h. */
#include <stdio.h>
#include <stdlib.h>

#include "policy/grant.h"
#include "policy/manifest.h"
#include "policy/identity.h"
#include "policy/limit.h"
#include "policy/near_change.h"
#include "policy/next_change.h"
#include "policy/pattern.h"
#include "policy/slot.h"
#include "policy/ambiguity.h"
#include "tests/play/judge/play.h"

uint64_t play_spent_us;

struct policy {
    struct span digest, text;
};

struct policy *policy_open(struct span image, struct err *e)
{
    if (image.n < 32) {
        err_set(e, "not a policy");
        return NULL;
    }
    struct policy *p = calloc(1, sizeof(*p));
    p->digest = span_first(image, 32);
    p->text = span_from(image, 32);
    return p;
}

void policy_close(struct policy *p)
{
    free(p);
}

struct span policy_name(const struct policy *p)
{
    return SPAN("fake");
}

struct span policy_digest(const struct policy *p)
{
    return p->digest;
}

static struct span word(struct span *line)
{
    struct span w;
    span_cut(*line, ' ', &w, line);
    return w;
}

static bool option(struct span line, const char *key, struct span *value)
{
    while (line.n) {
        struct span w = word(&line);
        if (!span_starts(w, span_str(key)))
            continue;
        *value = span_from(w, strlen(key));
        return true;
    }
    return false;
}

static uint64_t number(struct span line, const char *key, uint64_t otherwise)
{
    struct span v;
    uint64_t n;
    return option(line, key, &v) && span_u64(v, UINT64_MAX, &n) == 0 ? n : otherwise;
}

static struct limit limit_of(struct span rule, struct span measure, struct span bound, uint64_t amount)
{
    struct span max, window;
    struct limit l = {.rule = rule, .measure = measure, .amount = amount, .uncountable = amount == UINT64_MAX};
    span_cut(bound, '/', &max, &window);
    if (span_u64(max, UINT64_MAX, &l.max) != 0 || span_u64(window, UINT64_MAX, &l.window_ms) != 0)
        abort(); /* a play that is misspelt */
    return l;
}

static void limits(struct span line, struct arena *a, struct decision *d)
{
    struct limit *l = arena_alloc(a, 2 * sizeof(*l));
    struct span v;
    d->nlimits = 0;
    if ((d->limits = l) == NULL)
        return;
    if (option(line, "limit=", &v))
        l[d->nlimits++] = limit_of(d->rule.id, SPAN("requests"), v, 1);
    if (option(line, "sum=", &v))
        l[d->nlimits++] = limit_of(d->rule.id, SPAN("json:/amount"), v, number(line, "amount=", UINT64_MAX));
}

static void decide(struct span line, const struct request *r, struct arena *a, struct decision *d)
{
    struct span v;
    d->dialect = (enum dialect)number(line, "dialect=", DIALECT_UNSAID);
    d->body_max = number(line, "bodymax=", 0);
    d->inline_wait_ms = number(line, "wait=", UINT64_MAX);
    d->credential = (int)number(line, "cred=", UINT32_MAX);
    if (option(line, "need", &v) && !r->body_complete) {
        d->verdict = VERDICT_DENY;
        d->need_body = true;
        return;
    }
    play_spent_us += number(line, "cost=", 0);
    if (option(line, "rule=", &v))
        d->rule = (struct rule_ref){v, SPAN("policy.yaml"), 3};
    limits(line, a, d);
    if (option(line, "by=", &v))
        d->approve_by = v;
    d->reason_required = option(line, "reasoned", &v);
    d->op = option(line, "op=", &v) ? v : SPAN("op");
    d->approve_by = option(line, "by=", &v) ? v : SPAN_NONE;
    d->reason_required = option(line, "reason", &v);
    d->grants = (struct grant_terms){(uint32_t)number(line, "grants=", 0), 1u << EFFECT_WRITE, false, 3600 * 1000};
    d->requests = 1;
    d->within_ms = number(line, "stands=", 0);
    d->summary = option(line, "wordless", &v) ? SPAN_NONE : SPAN("Do the thing");
    d->code = option(line, "unclear", &v) ? "unclassified" : "rule";
    if (option(line, "say=", &v)) {
        struct span own = arena_copy(a, v);
        for (size_t i = 0; i < own.n; i++)
            if (own.p[i] == '_')
                ((uint8_t *)own.p)[i] = ' ';
        d->say = own;
    }
    d->messages = (struct ws_terms){(uint32_t)number(line, "send=", 0), number(line, "max=", 1024),
                                    number(line, "total=", 4096), number(line, "within=", 60000)};
    if (number(line, "bulk=", 0) > 0 && arena_alloc(a, number(line, "bulk=", 0)) == NULL)
        return;
    if (option(line, "join=", &v))
        d->join_body = span_first(r->body, number(line, "join=", 0));
    if (d->dialect == DIALECT_GIT_RECEIVE_PACK) {
        struct git_ref *ref = arena_alloc(a, sizeof(*ref));
        struct git_push *push = arena_alloc(a, sizeof(*push));
        struct span name = option(line, "refs=", &v) ? span_first(r->body, number(line, "refs=", 0)) : SPAN_NONE;
        *ref = (struct git_ref){name.n ? name : SPAN("refs/heads/main"), SPAN("a1"), SPAN("b2")};
        *push = (struct git_push){.refs = ref, .nrefs = 1, .report_status = true, .side_band = true};
        d->push = push;
    }
}

void policy_judge(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                  struct arena *a, struct decision *d)
{
    struct span rest = p->text;
    *d = (struct decision){.credential = -1, .inline_wait_ms = UINT64_MAX, .code = "no-rule"};
    while (rest.n) {
        struct span line;
        span_cut(rest, '\n', &line, &rest);
        struct span verdict = word(&line), effect = word(&line), method = word(&line), path = word(&line);
        if (!span_eq(method, r->method) || !span_starts(r->path, path))
            continue;
        struct span ws = SPAN_NONE;
        d->upgrade = r->nfields > 0 && span_eq(r->fields[0].name, SPAN("Upgrade"));
        if (option(line, "ws", &ws) != d->upgrade)
            continue;
        d->verdict = span_eq(verdict, SPAN("allow"))  ? VERDICT_ALLOW
                     : span_eq(verdict, SPAN("hold")) ? VERDICT_HOLD
                                                      : VERDICT_DENY;
        d->effect = span_eq(effect, SPAN("read"))     ? EFFECT_READ
                    : span_eq(effect, SPAN("delete")) ? EFFECT_DELETE
                                                      : EFFECT_WRITE;
        decide(line, r, a, d);
        return;
    }
}

/* As decided; a query with "_method" overrides, and a path with "//" is also the one without. */
bool policy_each_judged(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                        struct arena *a, bool (*fn)(const struct judged *j, void *arg), void *arg)
{
    struct decision d;
    policy_judge(p, s, r, now_ms, a, &d);
    struct judged as = {r->method, r->path, d.op, d.effect, false}, over = as;
    size_t at = span_find(r->path, SPAN("//"));
    if (!fn(&as, arg))
        return false;
    over.op = SPAN("http.override");
    over.overridden = true;
    if (span_find(r->query, SPAN("_method")) < r->query.n && !fn(&over, arg))
        return false;
    uint8_t *merged = arena_alloc(a, r->path.n);
    if (at == r->path.n || merged == NULL)
        return merged != NULL;
    memcpy(merged, r->path.p, at);
    memcpy(merged + at, r->path.p + at + 1, r->path.n - at - 1);
    as.path = span_of(merged, r->path.n - 1);
    return fn(&as, arg);
}

/* The line of a rule, past its verdict, effect, method and path. */
static bool line_of(const struct policy *p, struct span id, struct span *verdict, struct span *line)
{
    struct span rest = p->text, v;
    while (rest.n) {
        span_cut(rest, '\n', line, &rest);
        *verdict = word(line);
        for (int i = 0; i < 3; i++)
            (void)word(line);
        if (option(*line, "rule=", &v) && span_eq(v, id))
            return true;
    }
    return false;
}

void policy_past_limits(const struct policy *p, const struct request *r, const bool *past, uint64_t now_ms,
                        struct arena *a, struct decision *d)
{
    struct span verdict, line, id;
    size_t i = 0;
    while (i < d->nlimits && !past[i])
        i++;
    if (i == d->nlimits)
        return;
    bool held = d->verdict == VERDICT_ALLOW && line_of(p, d->rule.id, &verdict, &line) &&
                option(line, "over=", &id) && line_of(p, id, &verdict, &line);
    d->verdict = held ? VERDICT_HOLD : VERDICT_DENY;
    if (held)
        decide(line, r, a, d);
    d->code = "over-limit";
}

bool policy_names_host(const struct policy *p, const struct subject *s, struct span scheme, struct span host,
                       uint16_t port, uint64_t now_ms)
{
    return span_eq(host, SPAN("api.example")) ||
           (span_eq(scheme, SPAN("http")) && span_eq(host, SPAN("plain.example")));
}

bool policy_upstream(const struct policy *p, struct span host, uint16_t port, struct arena *a, struct upstream *u)
{
    *u = (struct upstream){.address = SPAN("127.0.0.1")};
    return true;
}

static bool says(const struct policy *p, const char *word)
{
    return span_find(p->text, span_str(word)) < p->text.n;
}

bool policy_setting(const struct policy *p, const struct credential *c, size_t i, struct setting *out)
{
    static const struct setting rows[] = {{SPAN("to"), SOURCE_NONE, SPAN("cred1")},
                                          {SPAN("token"), SOURCE_NONE, SPAN("/token")},
                                          {SPAN("expires_in"), SOURCE_NONE, SPAN("/expires_in")},
                                          {SPAN("expires_at"), SOURCE_NONE, SPAN("/at")},
                                          {SPAN("challenge"), SOURCE_NONE, SPAN("Bearer realm=\"there\"")}};
    if (c->source != SOURCE_ANSWER || i >= sizeof(rows) / sizeof(rows[0]))
        return false;
    *out = rows[i];
    return true;
}

size_t policy_credentials(const struct policy *p)
{
    return 5;
}

static const char *template_of(const struct policy *p)
{
    return says(p, "signs-parts")  ? "{method}\n{sorted_query}\n{header.x-a}\n{body_sha256}"
           : says(p, "signs-body") ? "{time}.{body}"
           : says(p, "signs-head") ? "{time}.{target}"
                                   : NULL;
}

size_t policy_escalations(const struct policy *p, const struct decision *d, struct escalation out[ESCALATE_MAX])
{
    return 0;
}

bool policy_gate(const struct policy *p, size_t i, struct gate *out)
{
    return false;
}

void policy_put_gate(const struct policy *p, const struct gate *g, struct dynbuf *out)
{
    msg_put_span(out, g->name);
}

bool policy_credential(const struct policy *p, size_t i, struct credential *c)
{
    static const char *const names[] = {"cred0", "cred1", "cred2", "cred3", "leased"};
    if (i >= 5)
        return false;
    *c = (struct credential){.name = span_str(names[i]), .slot = i == 3 ? SLOT_QUERY : SLOT_HEADER};
    if (i == 4 && says(p, "renamed-credential"))
        c->name = SPAN("another");
    if (i == 4 || (i == 1 && says(p, "asks-leased"))) {
        c->header = SPAN("Authorization");
        c->format = SPAN("Bearer {}");
        c->lease = LEASE_GITHUB;
        c->require_lease = says(p, "lease-required");
        c->freeze_on_leak = says(p, "leak-freezes");
    }
    if (i == 2 && says(p, "asks-beside"))
        c->beside = SPAN("cred1");
    if (i == 4 && says(p, "of-answers"))
        c->source = SOURCE_ANSWER;
    if (i == 4 && says(p, "lease-signs")) {
        c->lease = LEASE_AWS;
        c->sign = SIGN_AWS4;
        c->region = SPAN("us-east-1");
        c->service = SPAN("s3");
    }
    const char *sign = template_of(p);
    if (i == 4 && sign != NULL) {
        c->sign = SIGN_HMAC;
        c->header = SPAN("X-Signature");
        c->format = SPAN_NONE;
        c->hmac = (struct signed_as){.sign = span_str(sign), .encoding = SIGN_HEX, .nfields = 2};
    }
    return true;
}

enum stub_kind policy_stub(const struct policy *p, const struct subject *s, const struct request *r,
                           const struct decision *d, size_t *credential)
{
    *credential = 4;
    if (d->verdict != VERDICT_DENY || strcmp(d->code, "no-rule") != 0 || !policy_stub_host(p, r->scheme, r->host, 0))
        return STUB_NONE;
    return says(p, "stub-aws")         ? STUB_AWS
           : says(p, "stub-container") ? STUB_AWS_CONTAINER
           : says(p, "stub-google")    ? STUB_GOOGLE
           : says(p, "stub-oauth")     ? STUB_OAUTH
                                       : STUB_NONE;
}

bool policy_stub_host(const struct policy *p, struct span scheme, struct span host, uint16_t port)
{
    return span_eq(host, SPAN("stub.example"));
}

bool policy_signed_field(const struct policy *p, const struct credential *c, size_t i, struct span *name,
                         struct span *format)
{
    *name = i == 0 ? SPAN("X-Signature") : SPAN("X-Time");
    *format = i == 0 ? SPAN("sha256={signature}") : SPAN("{time}");
    return i < c->hmac.nfields;
}

/* All of the query is the client's own, and "none" has no place for it. */
int slot_find(const struct credential *c, const struct request *r, struct arena *a, struct slotted *out)
{
    *out =
        (struct slotted){.path = r->path, .query = SPAN("key=~cred3~"), .body = r->body, .has_query = true, .at = 4};
    out->own = span_eq(r->query, out->query) ? SPAN_NONE : r->query;
    out->nown = out->own.n > 0;
    if (!span_eq(r->query, SPAN("none")))
        return 0;
    out->why = "there is none";
    return -1;
}

bool policy_credential_may_go(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port,
                              struct span path)
{
    return policy_credential_bound(p, i, scheme, host, port) && !span_starts(path, SPAN("/outside"));
}

bool policy_credential_bound(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port)
{
    struct span place = i == 4 && says(p, "moved-elsewhere") ? SPAN("elsewhere.example")
                        : says(p, "at-an-address")           ? SPAN("[2001:db8::1]")
                                                             : SPAN("api.example");
    return i < 5 && span_eq(host, place) && port == 443;
}

bool policy_pattern_fits(struct span pattern, struct span s, uint8_t sep)
{
    if (span_eq(pattern, SPAN("/p/*/m"))) /* anything but a slash, nothing too */
        return span_starts(s, SPAN("/p/")) && span_ends(s, SPAN("/m")) && s.n >= 5 &&
               span_index(span_of(s.p + 3, s.n - 5), '/') == s.n - 5;
    return span_ends(pattern, SPAN("**")) ? span_starts(s, span_first(pattern, pattern.n - 2)) : span_eq(pattern, s);
}

void policy_put_credential(const struct policy *p, size_t i, struct dynbuf *out)
{
    struct credential c;
    if (policy_credential(p, i, &c))
        msg_put_span(out, c.name);
    if (says(p, "redefined") || says(p, "moved-elsewhere"))
        msg_put_u8(out, 1);
}

bool policy_host_bound(const struct policy *p, struct span scheme, struct span host, uint16_t port)
{
    return span_find(p->text, SPAN("cred=")) < p->text.n;
}

void policy_put_place(const struct policy *p, struct span scheme, struct span host, uint16_t port, struct dynbuf *out)
{
    if (policy_host_bound(p, scheme, host, port))
        msg_put_span(out, host);
}

void policy_put_terms(const struct policy *p, const struct decision *d, struct dynbuf *out)
{
    msg_put_span(out, d->rule.id);
    msg_put_span(out, d->op);
    msg_put_u32(out, (uint32_t)d->credential);
    msg_put_span(out, d->approve_by);
    msg_put_u8(out, d->reason_required);
}

int policy_grant_rule(const struct policy *p, struct span id)
{
    return 0;
}

enum grant_fix policy_grant_fixes(const struct policy *p, int rule, enum grant_at at, struct span name)
{
    return span_eq(name, SPAN("fixed")) ? GRANT_FIXES : GRANT_OPEN;
}

bool policy_grant_alike(struct span name, struct span want)
{
    return span_ieq(name, want);
}

bool git_id_is_zero(struct span id)
{
    return span_starts(id, SPAN("0000000000"));
}

const char *verdict_name(enum verdict v)
{
    return v == VERDICT_ALLOW ? "allow" : v == VERDICT_HOLD ? "hold" : "deny";
}

const char *effect_name(enum effect e)
{
    return e == EFFECT_READ ? "read" : e == EFFECT_DELETE ? "delete" : "write";
}

size_t policy_manifest(const struct policy *p, const struct manifest_want *want, struct jsonw *w)
{
    jsonw_array(w);
    jsonw_string(w, want->host.n ? want->host : SPAN("all"));
    jsonw_string(w, want->subject->sandbox);
    jsonw_end_array(w);
    return span_eq(want->host, SPAN("full.example")) ? 7 : 0;
}

size_t policy_typescript(const struct policy *p, const struct manifest_want *want, struct dynbuf *out)
{
    (void)dynbuf_addf(out, "// %.*s %.*s\n", SPAN_FMT(want->subject->sandbox),
                      SPAN_FMT(want->host.n ? want->host : SPAN("all")));
    return 0;
}

size_t policy_openapi(const struct policy *p, const struct manifest_want *want, struct jsonw *w)
{
    jsonw_object(w);
    jsonw_kv(w, "openapi", want->host.n ? want->host : SPAN("all"));
    jsonw_end_object(w);
    return 0;
}

size_t policy_allowed_here(const struct policy *p, const struct subject *s, const struct request *r, struct arena *a,
                           struct span *out, size_t max)
{
    if (max == 0 || !span_eq(r->host, SPAN("api.example")))
        return 0;
    out[0] = SPAN("GET /r: allowed");
    return 1;
}

struct span policy_near_change(const struct policy *p, const struct subject *s, const struct request *r,
                               const struct decision *d, uint64_t now_ms, struct arena *a)
{
    struct span verdict, line;
    if (d->rule.id.n == 0 || !line_of(p, d->rule.id, &verdict, &line) || number(line, "near=", 0) == 0)
        return SPAN_NONE;
    return SPAN("To refs/heads/agent/* it is allowed.");
}

bool policy_next_change(const struct policy *p, const struct subject *s, const struct request *r,
                        const struct decision *d, uint64_t now_ms, struct arena *a, struct next_change *out)
{
    struct span verdict, line;
    *out = (struct next_change){.hours = SPAN("mon-fri 09:00-17:00 UTC"), .at = SPAN("2026-11-23T09:00:00Z")};
    if (d->rule.id.n == 0 || !line_of(p, d->rule.id, &verdict, &line))
        return false;
    uint64_t wait = number(line, "opens=", 0);
    out->at_ms = now_ms + wait;
    out->decision.verdict = VERDICT_HOLD;
    return wait > 0;
}

struct ambiguity policy_ambiguity(const struct policy *p, const struct subject *s, const struct request *r,
                                  const struct decision *d, uint64_t now_ms, struct arena *a)
{
    return (struct ambiguity){.cause = AMBIGUITY_QUERY,
                              .word = "in-query",
                              .words = SPAN("secret"),
                              .asked = SPAN("secret"),
                              .told = "ambiguous",
                              .told_words = SPAN("it may mean two things")};
}
