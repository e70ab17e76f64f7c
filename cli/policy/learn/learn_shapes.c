/* Recorded requests to shapes: exact in everything but the values of a query that are too many. */
#include <stdio.h>

#include "common/http/uri.h"
#include "cli/policy/learn/learn.h"
#include "cli/policy/record/once.h"
#include "policy/image/glob.h"
#include "policy/image/image.h"
#include "policy/load/read/scalar.h"

enum { TOKEN_LEAST = 20, TEXT_MOST = 200 };

/* Long, with digits and letters mixed and no words in it: it may open something, so it is not written down. */
static bool like_a_token(struct span s)
{
    size_t digits = 0, letters = 0, changes = 0;
    for (size_t i = 0; i < s.n; i++) {
        bool digit = s.p[i] >= '0' && s.p[i] <= '9', letter = (s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z';
        bool before = i && s.p[i - 1] >= '0' && s.p[i - 1] <= '9';
        digits += digit;
        letters += letter;
        changes += i && digit != before;
    }
    return s.n >= TOKEN_LEAST && digits + letters >= TOKEN_LEAST && (digits >= 4 || letters == s.n) &&
           (changes >= 4 || letters == s.n);
}

/* What a pattern takes for itself: no wildcard, no capture, nothing escaped or outside of ASCII. */
static bool writable(struct span s, const char * not )
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || strchr(not, s.p[i]) != NULL)
            return false;
    return s.n <= TEXT_MOST;
}

static bool plain_method(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 'A' || s.p[i] > 'Z')
            return false;
    return s.n > 0 && s.n <= 16;
}

static bool plain_host(struct span s)
{
    char name[HTTP_HOST_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
            memchr("-_.", s.p[i], 3) == NULL)
            return false;
    return s.n > 0 && s.n <= 253 && http_canonical_host(s, name, &n) == 0 && span_eq(span_of(name, n), s);
}

/* In the one spelling that every server takes for the same, and that a rule may have. */
static bool plain_path(struct span s)
{
    struct dynbuf b;
    dynbuf_init(&b, 2 * RECORD_CUT);
    bool same = s.n && s.p[0] == '/' && writable(s, "*{};\\") && span_find(s, SPAN("//")) == s.n &&
                span_find(s, SPAN("%2")) == s.n && span_find(s, SPAN("%5")) == s.n && scalar_path(s) == NULL &&
                http_canonical_path(s, false, &b) == 0 && span_eq(dynbuf_span(&b), s);
    dynbuf_free(&b);
    return same;
}

static bool known_effect(struct span s)
{
    for (enum effect e = EFFECT_READ; e <= EFFECT_EXEC; e++)
        if (span_eq(s, span_str(effect_name(e))))
            return true;
    return false;
}

static enum left why_not(const struct record *r)
{
    struct span path, query, segment;
    bool has = span_cut(r->path, '?', &path, &query);
    if (!known_effect(r->effect))
        return LEFT_EFFECT;
    if (r->upgrade)
        return LEFT_WEBSOCKET;
    if (r->path.n >= RECORD_CUT - 1)
        return LEFT_CUT;
    if (!plain_host(r->host) || !plain_method(r->method) ||
        (!span_eq(r->scheme, SPAN("https")) && !span_eq(r->scheme, SPAN("http"))))
        return LEFT_PLACE;
    if (!plain_path(path) || (has && query.n == 0))
        return LEFT_PATH;
    for (struct span rest = span_from(path, 1); rest.n;) {
        (void)span_cut(rest, '/', &segment, &rest);
        if (like_a_token(segment))
            return LEFT_PATH_SECRET;
    }
    return LEFT_NOT;
}

static struct shape *find(struct learnt *t, struct span key, bool only)
{
    for (size_t i = 0; i < t->n; i++)
        if (span_eq(t->shape[i]->key, key))
            return t->shape[i];
    if (only || t->n == SHAPES_MAX)
        return NULL;
    struct shape *s = arena_alloc(&t->a, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->key = arena_copy(&t->a, key);
    if (s->key.p)
        t->shape[t->n++] = s;
    return s->key.p ? s : NULL;
}

static void add_value(struct learnt *t, struct learnt_name *n, struct span value)
{
    for (size_t i = 0; i < n->n && i < VALUES_MOST; i++)
        if (span_eq(n->value[i], value))
            return;
    if (n->n < VALUES_MOST)
        n->value[n->n] = arena_copy(&t->a, value);
    if (n->n <= VALUES_MOST)
        n->n++;
}

/* The names in the order they come; one twice, or anything that is not plain, is left to a person. */
static void add_query(struct learnt *t, struct shape *s, struct span query)
{
    size_t i = 0;
    for (struct span rest = query, one; rest.n; i++) {
        struct span name, value;
        (void)span_cut(rest, '&', &one, &rest);
        bool plain =
            span_cut(one, '=', &name, &value) && name.n && writable(name, "%+;*[]") && writable(value, "%+;*");
        for (size_t k = 0; k < i && k < NAMES_MOST; k++)
            plain = plain && (i != k && !span_eq(s->names[k].name, name));
        if (!plain || i == NAMES_MOST || value.n == 0) {
            s->left = LEFT_QUERY;
            return;
        }
        if (like_a_token(value)) {
            s->left = LEFT_QUERY_SECRET;
            return;
        }
        if (i == s->nnames)
            s->names[s->nnames++].name = arena_copy(&t->a, name);
        add_value(t, &s->names[i], value);
    }
}

static void add_refs(struct learnt *t, struct shape *s, struct span refs)
{
    if (refs.n == 0)
        s->left = LEFT_REFS_UNKNOWN;
    while (refs.n) {
        struct span line, what, name;
        size_t i = 0;
        (void)span_cut(refs, '\n', &line, &refs);
        if (!span_cut(line, ' ', &what, &name) || !writable(name, "*{}") || s->nrefs == REFS_MOST) {
            s->left = LEFT_REFS;
            return;
        }
        s->deletes |= span_eq(what, SPAN("delete"));
        while (i < s->nrefs && !span_eq(s->refs[i], name))
            i++;
        if (i == s->nrefs)
            s->refs[s->nrefs++] = arena_copy(&t->a, name);
    }
}

static void put(struct dynbuf *b, struct span s)
{
    (void)dynbuf_add(b, s);
    (void)dynbuf_add_byte(b, 0);
}

/* What must be the same for one rule: place, method, path, the names of the query; of git the repository. */
static void put_key(struct dynbuf *b, const struct record *r, bool git, struct span op)
{
    struct span path, query;
    (void)span_cut(r->path, '?', &path, &query);
    const struct span parts[] = {r->scheme, r->host,   git ? SPAN_NONE : r->method,       git ? r->resource : path,
                                 op,        r->effect, r->upgrade ? SPAN("u") : SPAN_NONE};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        put(b, parts[i]);
    (void)dynbuf_addf(b, "%llu", (unsigned long long)r->port);
    while (!git && query.n) {
        struct span one, name, value;
        (void)span_cut(query, '&', &one, &query);
        (void)span_cut(one, '=', &name, &value);
        put(b, name);
    }
}

/* The same for the same requests, and no name that the policy there is has: a proposal that was taken and narrowed
 * keeps its id there. */
static void name_rule(const struct learnt *t, struct shape *s)
{
    unsigned long long hash = once_hash(7, s->key);
    (void)snprintf(s->id, sizeof(s->id), "learned-%016llx", hash);
    for (unsigned n = 2; t->policy && img_rule_named(t->policy, span_str(s->id)) >= 0; n++)
        (void)snprintf(s->id, sizeof(s->id), "learned-%016llx-%u", hash, n);
}

static void begin(struct learnt *t, struct shape *s, const struct record *r, uint64_t ms, struct span op)
{
    struct span *const texts[] = {&s->sample.sandbox, &s->sample.method, &s->sample.scheme, &s->sample.host,
                                  &s->sample.path,    &s->sample.op,     &s->sample.effect, &s->sample.resource,
                                  &s->sample.type,    &s->sample.refs};
    struct span query;
    s->sample = *r;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = arena_copy(&t->a, *texts[i]);
    s->scheme = s->sample.scheme;
    s->host = s->sample.host;
    s->method = s->sample.method;
    (void)span_cut(s->sample.path, '?', &s->path, &query);
    s->op = arena_copy(&t->a, op);
    s->effect = s->sample.effect;
    s->resource = s->sample.resource;
    s->port = r->port;
    s->first_ms = s->sample_ms = ms;
    s->read = span_eq(r->effect, SPAN("read"));
    s->left = why_not(r);
    name_rule(t, s);
}

static void add_sandbox(struct learnt *t, struct shape *s, struct span sandbox)
{
    for (size_t i = 0; i < s->nsandboxes; i++)
        if (span_eq(s->sandbox[i], sandbox))
            return;
    s->more_sandboxes |= s->nsandboxes == SANDBOXES_MOST;
    if (s->nsandboxes < SANDBOXES_MOST)
        s->sandbox[s->nsandboxes++] = arena_copy(&t->a, sandbox);
}

/* Does the policy there is have a rule for it already? One that denies is not answered with one that allows. *o: what
 * it says. While it learns, it lets through what it has no rule for. */
static bool has_rule(struct learnt *t, const struct record *r, uint64_t ms, struct opinion *o)
{
    *o = (struct opinion){.op = r->op};
    if (t->present == NULL)
        return false;
    bench_judge(t->present, r, ms, o);
    bool through = o->unknown == UNKNOWN_NOTHING && o->verdict != VERDICT_DENY && strcmp(o->code, "learning") != 0;
    t->allowed += through;
    t->denied += !through && o->rule.id.n;
    t->unlabelled += o->unknown == UNKNOWN_LABELS;
    return through || o->rule.id.n || o->unknown == UNKNOWN_LABELS;
}

bool learn_is_git(const struct shape *s)
{
    return s->resource.n && (span_eq(s->op, SPAN("git.fetch")) || span_eq(s->op, SPAN("git.push")));
}

static enum covers covers(const struct learnt *t, const struct record *r)
{
    struct glob as = glob_of(t->as, 0);
    if (t->as.n && !glob_match(&as, r->sandbox, 0, false))
        return COVERS_NOT;
    return t->scope.n ? bench_covers(t->present, t->scope_at, r->sandbox) : COVERS_IT;
}

/* Is it of a sandbox that was asked about? */
static bool is_of(struct learnt *t, const struct record *r)
{
    enum covers scope = covers(t, r);
    t->unlabelled += scope == COVERS_MAYBE;
    t->others += scope == COVERS_NOT;
    return scope == COVERS_IT;
}

/* only: if it is there already. */
static struct shape *shape_of(struct learnt *t, const struct record *r, bool git, struct span op, bool only)
{
    struct dynbuf key;
    dynbuf_init(&key, 8 * RECORD_BYTES_MAX);
    put_key(&key, r, git, op);
    if (t->scope.n)
        put(&key, t->scope);
    struct shape *s = dynbuf_ok(&key) ? find(t, dynbuf_span(&key), only) : NULL;
    dynbuf_free(&key);
    return s;
}

/* What came of it where somebody was asked. A read that an operator denied is not proposed as one that nobody is
 * asked about; everything else would wait again. */
static void take_end(struct shape *s, const struct record *r)
{
    bool refused = r->again ? span_eq(r->state, SPAN("denied")) : span_eq(r->code, SPAN("ticket-denied"));
    s->doubt[DOUBT_REFUSED] |= refused;
    s->doubt[DOUBT_EXPIRED] |= span_eq(r->again ? r->kind : r->code, SPAN("ticket-expired"));
    if (refused && s->read)
        s->left = LEFT_REFUSED;
}

int learn_take(void *arg, const struct record *r, uint64_t ms)
{
    struct learnt *t = arg;
    struct shape *s;
    struct span path, query, op = r->op;
    struct opinion o;
    if (span_eq(op, SPAN("git.fetch.refs")))
        op = SPAN("git.fetch");
    bool git = (span_eq(op, SPAN("git.fetch")) || span_eq(op, SPAN("git.push"))) && r->resource.n;
    if (r->again) {
        s = r->method.n && covers(t, r) == COVERS_IT ? shape_of(t, r, git, op, true) : NULL;
        if (s != NULL)
            take_end(s, r);
        return 0;
    }
    if (r->method.n == 0 || !is_of(t, r) || has_rule(t, r, ms, &o))
        return 0;
    s = shape_of(t, r, git, op, false);
    t->beyond += s == NULL;
    if (s == NULL)
        return 0;
    if (s->count++ == 0)
        begin(t, s, r, ms, op);
    s->last_ms = ms;
    add_sandbox(t, s, r->sandbox);
    learn_take_credential(t, s, r);
    take_end(s, r);
    if (git && (!writable(r->resource, "*{}\"\\") || !span_starts(r->resource, SPAN("git:"))))
        s->left = LEFT_REPOSITORY;
    if (!git && s->left == LEFT_NOT && span_cut(r->path, '?', &path, &query))
        add_query(t, s, query);
    if (span_eq(op, SPAN("git.push")) && s->left == LEFT_NOT)
        add_refs(t, s, r->refs);
    if (git && s->left == LEFT_NOT && !span_eq(o.op, r->op))
        s->left = LEFT_PACK;
    return 0;
}
