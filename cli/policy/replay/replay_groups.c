/* What changed, counted by kind. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/policy/record/once.h"
#include "cli/policy/replay/replay.h"

enum { PROGRESS_RECORDS = 50000 };

void replay_plain(struct span s, char *out, size_t cap)
{
    size_t n = 0;
    if (cap == 0)
        return;
    for (size_t i = 0; i < s.n && n + 4 < cap; i++)
        out[n++] = s.p[i] >= 0x20 && s.p[i] < 0x7f ? (char)s.p[i] : '?';
    for (size_t i = 0; n < s.n && i < 3 && n + 1 < cap; i++)
        out[n++] = '.';
    out[n] = '\0';
}

static bool verdict_of(struct span s, enum verdict *v)
{
    for (*v = VERDICT_DENY; *v <= VERDICT_ALLOW; (*v)++)
        if (span_eq(s, span_str(verdict_name(*v))))
            return true;
    return false;
}

static void add(char *out, size_t cap, struct span s)
{
    size_t n = strlen(out);
    replay_plain(s, out + n, cap - n);
}

static void example(struct group *g, const struct record *r, uint64_t time_ms)
{
    char port[24] = "";
    if (r->port != (span_eq(r->scheme, SPAN("https")) ? 443 : 80))
        (void)snprintf(port, sizeof(port), ":%llu", (unsigned long long)r->port);
    const struct span parts[] = {r->method.n ? r->method : SPAN("CONNECT"), SPAN(" "),      r->scheme, SPAN("://"),
                                 span_first(r->host, EXAMPLE_MAX / 2),      span_str(port), r->path};
    g->example[0] = '\0';
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        add(g->example, sizeof(g->example), parts[i]);
    replay_plain(r->sandbox, g->sandbox, sizeof(g->sandbox));
    g->example_ms = time_ms;
}

static bool same_group(const struct group *g, const struct group *want)
{
    return g->hash == want->hash && g->change == want->change && g->was == want->was && g->is == want->is &&
           g->unknown == want->unknown && span_eq(g->what, want->what) && span_eq(g->host, want->host) &&
           span_eq(g->rule_was, want->rule_was) && span_eq(g->rule.id, want->rule.id);
}

static uint64_t group_hash(const struct group *g)
{
    uint64_t h = once_hash((uint64_t)g->change * 64 + (uint64_t)g->unknown, g->what);
    h = once_hash(h ^ (uint64_t)(g->was * 3 + g->is), g->host);
    return once_hash(once_hash(h, g->rule_was), g->rule.id);
}

/* The table is twice as large as what it may hold. */
static void count(struct replayed *t, struct group *g, const struct record *r, uint64_t time_ms)
{
    g->hash = group_hash(g);
    size_t i = g->hash % (2 * GROUPS_MAX);
    while (t->groups[i].count && !same_group(&t->groups[i], g))
        i = (i + 1) % (2 * GROUPS_MAX);
    if (t->groups[i].count == 0) {
        if (t->ngroups == GROUPS_MAX) {
            t->ungrouped++;
            return;
        }
        t->ngroups++;
        g->what = arena_copy(&t->a, g->what);
        g->host = arena_copy(&t->a, g->host);
        g->rule_was = arena_copy(&t->a, g->rule_was);
        example(g, r, time_ms);
        t->groups[i] = *g;
    }
    t->groups[i].count++;
}

static void progress(struct replayed *t)
{
    const struct source_seen *s = source_seen(t->source);
    if (!t->tell || s->records < t->said_at + PROGRESS_RECORDS)
        return;
    t->said_at = s->records;
    fprintf(stderr, "\r%llu records read, %llu requests judged", (unsigned long long)s->records,
            (unsigned long long)s->requests);
    fflush(stderr);
}

int replay_take(void *arg, const struct record *r, uint64_t time_ms)
{
    struct replayed *t = arg;
    struct opinion o;
    enum verdict was;
    if (r->again)
        return 0;
    progress(t);
    if (!verdict_of(r->verdict, &was))
        return 0;
    bench_judge(t->bench, r, time_ms, &o);
    if (o.unknown == UNKNOWN_NOTHING && o.verdict == was) {
        t->same++;
        return 0;
    }
    struct group g = {.change = o.unknown         ? CHANGE_UNKNOWN
                                : o.verdict > was ? CHANGE_WIDENED
                                                  : CHANGE_NARROWED,
                      .was = was,
                      .is = o.verdict,
                      .unknown = o.unknown,
                      .what = r->method.n == 0                    ? SPAN("CONNECT")
                              : span_starts(r->op, SPAN("http.")) ? r->method
                                                                  : r->op,
                      .host = r->host,
                      .rule_was = r->rule,
                      .rule = o.rule,
                      .limited = o.limited};
    t->unknown += g.change == CHANGE_UNKNOWN;
    t->widened += g.change == CHANGE_WIDENED;
    t->narrowed += g.change == CHANGE_NARROWED;
    if (g.change != CHANGE_UNKNOWN)
        t->now[o.verdict]++;
    count(t, &g, r, time_ms);
    return 0;
}

static int heavier(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->change != y->change)
        return x->change < y->change ? -1 : 1;
    if (x->is != y->is)
        return x->is > y->is ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

void replay_sort(struct replayed *t)
{
    size_t n = 0;
    for (size_t i = 0; i < 2 * GROUPS_MAX; i++)
        if (t->groups[i].count)
            t->groups[n++] = t->groups[i];
    qsort(t->groups, n, sizeof(*t->groups), heavier);
}
