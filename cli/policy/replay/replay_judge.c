#include "cli/policy/replay/replay_judge.h"

#include <stdlib.h>

#include "cli/policy/record/once.h"
#include "policy/ambiguity.h"
#include "policy/test/asked.h"

/* Answers kept: a slot for each hash, with the facts they hold for. Past the memory all are forgotten. */
enum { ANSWERS = 1 << 16, ANSWERS_MEMORY = 64 * 1024 * 1024, JUDGE_MEMORY = 64 * 1024 * 1024, LABELS_KEPT = 1024 };
enum { TICK_HOURS = 60 * 1000, TICK_MOMENT = 1 };

struct answer {
    uint64_t hash;
    struct span facts;
    struct opinion opinion;
};

struct who {
    struct subject subject;
    struct span name; /* what the answers tell it by: its own, or nothing where its scopes say it all */
    uint64_t scopes;
    bool known;
};

struct bench {
    const struct policy *p;
    struct source *source;
    uint64_t tick; /* times that differ by less are one to this policy; 0: it does not ask */
    struct arena kept, judging, people;
    struct answer *answers;
    struct who *who;
    uint8_t facts[9 * RECORD_BYTES_MAX];
    struct decision decision;
};

const char *bench_unknown_words(enum unknown u)
{
    static const char *const words[UNKNOWN_KINDS] = {[UNKNOWN_NOTHING] = "",
                                                     [UNKNOWN_PATH] = "its path, which was too long for the record",
                                                     [UNKNOWN_TUNNEL] = "what would have been asked in the tunnel",
                                                     [UNKNOWN_BODY] = "its body",
                                                     [UNKNOWN_HEADER] = "its header",
                                                     [UNKNOWN_REFS] = "the refs of a push",
                                                     [UNKNOWN_LABELS] = "the sandbox's labels",
                                                     [UNKNOWN_LIMIT] = "what a limit had counted by then",
                                                     [UNKNOWN_SUBPROTOCOL] = "the subprotocols it offered"};
    return words[u];
}

/* The commands as they were; ids stand for some. False: the list is not whole, or there is no memory. */
static bool put_push(struct span refs, struct arena *a, struct span *body)
{
    struct git_ref *v = arena_alloc(a, RECORD_REFS_MOST * sizeof(*v));
    struct span line;
    size_t n = 0;
    for (; v && refs.n; n++) {
        (void)span_cut(refs, '\n', &line, &refs);
        if (n == RECORD_REFS_MOST || !asked_ref(line, &v[n]))
            return false;
    }
    return v && asked_refs(a, v, n, body) == 0;
}

static bool is_push(const struct record *r)
{
    return r->refs.n && span_ends(r->path, SPAN("/git-receive-pack"));
}

/* What can have none: with anything else a body is as good as there, since not every record says. */
static bool may_be_bare(struct span method)
{
    return span_eq(method, SPAN("GET")) || span_eq(method, SPAN("HEAD")) || span_eq(method, SPAN("OPTIONS"));
}

static struct span wrote(const struct record *r)
{
    return span_eq(r->effect, SPAN("write")) ? r->op : SPAN_NONE;
}

static bool overridden(const struct record *r)
{
    return !r->upgrade && asked_overrides(r->method, r->body, r->op, wrote(r));
}

/* The request of a record, for policy_judge; its memory is the arena's and the record's. False: out of memory. */
static bool recorded_request(const struct record *r, bool override, struct arena *a, struct request *q)
{
    struct http_field *f = arena_alloc(a, 4 * sizeof(*f));
    if (f == NULL)
        return false;
    *q = (struct request){.scheme = r->scheme,
                          .host = r->host,
                          .method = r->method,
                          .port = (uint16_t)r->port,
                          .fields = f,
                          .fields_unknown = true,
                          .has_body = r->body || !may_be_bare(r->method)};
    q->has_query = span_cut(r->path, '?', &q->path, &q->query);
    if (r->upgrade)
        f[q->nfields++] = (struct http_field){SPAN("Upgrade"), SPAN("websocket")};
    if (override)
        f[q->nfields++] = (struct http_field){SPAN("X-HTTP-Method-Override"), SPAN("POST")};
    if (is_push(r))
        f[q->nfields++] = (struct http_field){SPAN("Content-Type"), SPAN("application/x-git-receive-pack-request")};
    else if (r->type.n)
        f[q->nfields++] = (struct http_field){SPAN("Content-Type"), r->type};
    if (!is_push(r))
        return true;
    q->body_complete = put_push(r->refs, a, &q->body);
    q->has_body = true;
    return true;
}

struct bench *bench_new(const struct policy *p, struct source *s)
{
    struct bench *b = calloc(1, sizeof(*b));
    if (b == NULL)
        return NULL;
    b->p = p;
    b->source = s;
    b->tick = policy_asks_moment(p) ? TICK_MOMENT : policy_asks_hours(p) ? TICK_HOURS : 0;
    arena_init(&b->kept, ANSWERS_MEMORY);
    arena_init(&b->judging, JUDGE_MEMORY);
    arena_init(&b->people, JUDGE_MEMORY);
    b->answers = calloc(ANSWERS, sizeof(*b->answers));
    b->who = calloc(LABELS_KEPT, sizeof(*b->who));
    if (b->answers == NULL || b->who == NULL)
        bench_free(&b);
    return b;
}

void bench_free(struct bench **b)
{
    if (*b == NULL)
        return;
    arena_free(&(*b)->kept);
    arena_free(&(*b)->judging);
    arena_free(&(*b)->people);
    free((*b)->answers);
    free((*b)->who);
    free(*b);
    *b = NULL;
}

static const struct who *who_is(struct bench *b, struct span sandbox)
{
    struct who *w = &b->who[once_hash(2, sandbox) % LABELS_KEPT];
    if (w->subject.sandbox.p && span_eq(w->subject.sandbox, sandbox))
        return w;
    if (b->people.used > JUDGE_MEMORY / 2) {
        memset(b->who, 0, LABELS_KEPT * sizeof(*b->who));
        arena_free(&b->people);
    }
    *w = (struct who){0};
    w->subject.sandbox = arena_copy(&b->people, sandbox);
    w->known =
        source_labels(b->source, w->subject.sandbox, &b->people, &w->subject) || !policy_asks_labels(b->p, sandbox);
    if (!w->known || !policy_scopes_of(b->p, &w->subject, &w->scopes))
        w->name = w->subject.sandbox;
    return w;
}

enum covers bench_covers(struct bench *b, int scope, struct span sandbox)
{
    const struct who *w = who_is(b, sandbox);
    return policy_scope_covers(b->p, scope, &w->subject, w->known);
}

static void cannot_tell(struct opinion *o, enum unknown why, struct rule_ref rule)
{
    o->verdict = VERDICT_DENY;
    o->unknown = why;
    o->rule = rule;
}

static void open_question(struct bench *b, const struct subject *s, const struct request *q, uint64_t time_ms,
                          struct opinion *o)
{
    struct ambiguity why = policy_ambiguity(b->p, s, q, &b->decision, time_ms, &b->judging);
    bool push = span_starts(b->decision.op, SPAN("git.push"));
    cannot_tell(o,
                why.cause == AMBIGUITY_OFFERS   ? UNKNOWN_SUBPROTOCOL
                : why.cause == AMBIGUITY_HEADER ? UNKNOWN_HEADER
                : push                          ? UNKNOWN_REFS
                                                : UNKNOWN_BODY,
                why.rule);
}

static void judge_tunnel(struct bench *b, const struct record *r, uint64_t time_ms, const struct subject *s,
                         struct opinion *o)
{
    uint16_t port = r->port && r->port <= UINT16_MAX ? (uint16_t)r->port : 443;
    o->code = "host-not-named";
    o->verdict = VERDICT_DENY;
    if (policy_names_host(b->p, s, r->scheme, r->host, port, time_ms))
        cannot_tell(o, UNKNOWN_TUNNEL, (struct rule_ref){0});
}

static void decide(struct bench *b, const struct record *r, uint64_t time_ms, struct opinion *o)
{
    const struct who *w = who_is(b, r->sandbox);
    struct decision *d = &b->decision;
    struct request q;
    *o = (struct opinion){.code = "internal"};
    *d = (struct decision){.code = "internal", .credential = -1};
    if (b->judging.used > JUDGE_MEMORY / 256)
        arena_free(&b->judging);
    if (!w->known) {
        cannot_tell(o, UNKNOWN_LABELS, (struct rule_ref){0});
    } else if (r->method.n == 0) {
        judge_tunnel(b, r, time_ms, &w->subject, o);
    } else if (r->path.n >= RECORD_CUT - 1) {
        cannot_tell(o, UNKNOWN_PATH, (struct rule_ref){0});
    } else if (recorded_request(r, overridden(r), &b->judging, &q)) {
        policy_judge(b->p, &w->subject, &q, time_ms, &b->judging, d);
        if (asked_overrode(d, wrote(r)) && recorded_request(r, true, &b->judging, &q))
            policy_judge(b->p, &w->subject, &q, time_ms, &b->judging, d);
        bool limited = d->nlimits > 0 && d->verdict != VERDICT_DENY;
        asked_past_limits(b->p, &q, time_ms, NULL, 0, &b->judging, d);
        *o = (struct opinion){
            .verdict = d->verdict, .code = d->code, .rule = d->rule, .op = d->op, .limited = limited};
        struct credential c;
        if (d->credential >= 0 && policy_credential(b->p, (size_t)d->credential, &c))
            o->credential = c.name;
        if (d->need_body)
            open_question(b, &w->subject, &q, time_ms, o);
    }
}

/* Everything the decision can depend on, exact. */
static struct span facts_of(struct bench *b, const struct record *r, uint64_t time_ms)
{
    const struct who *w = who_is(b, r->sandbox);
    const struct {
        uint64_t tick, port, scopes;
        bool body, upgrade, override, spare[5];
    } rest = {.tick = b->tick ? time_ms / b->tick : 0,
              .port = r->port,
              .scopes = w->scopes,
              .body = r->body,
              .upgrade = r->upgrade,
              .override = overridden(r)};
    const struct span texts[] = {w->name, r->scheme, r->host, r->method, r->path, r->type, r->refs, wrote(r)};
    uint8_t *to = b->facts;
    memcpy(to, &rest, sizeof(rest));
    to += sizeof(rest);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint32_t n = (uint32_t)texts[i].n;
        if (n > RECORD_BYTES_MAX)
            return SPAN_NONE;
        memcpy(to, &n, sizeof(n));
        to += sizeof(n);
        if (n)
            memcpy(to, texts[i].p, n);
        to += n;
    }
    return span_of(b->facts, (size_t)(to - b->facts));
}

void bench_judge(struct bench *b, const struct record *r, uint64_t time_ms, struct opinion *o)
{
    struct span facts = facts_of(b, r, time_ms);
    uint64_t hash = once_hash(3, facts);
    struct answer *a = &b->answers[hash % ANSWERS];
    if (facts.n && a->hash == hash && span_eq(a->facts, facts)) {
        *o = a->opinion;
    } else {
        decide(b, r, time_ms, o);
        if (b->kept.used > ANSWERS_MEMORY - 4 * RECORD_BYTES_MAX) {
            memset(b->answers, 0, ANSWERS * sizeof(*b->answers));
            arena_free(&b->kept);
        }
        *a = (struct answer){hash, arena_copy(&b->kept, facts), *o};
        if (a->facts.p == NULL)
            a->facts = SPAN_NONE;
    }
    if (span_eq(r->code, SPAN("over-limit")))
        cannot_tell(o, UNKNOWN_LIMIT, o->rule);
}
