/* What a replay says: counts, then every kind of change with an example, widened first. */
#include <stdio.h>
#include <time.h>

#include "common/id.h"
#include "common/time/clock.h"
#include "common/json/json.h"
#include "cli/policy/replay/replay.h"
#include "cli/policy/show.h"

void replay_moment(uint64_t ms, char out[32])
{
    if (!utc_text(ms, false, out))
        memcpy(out, "?", 2);
}

static void print_rule(const char *before, const struct rule_ref *r)
{
    if (r->id.n == 0)
        return;
    printf("%s%.*s (%.*s:%u)", before, SPAN_FMT(r->id), SPAN_FMT(r->file), r->line);
}

static void print_group(const struct group *g)
{
    char what[80], host[256], was[200], when[32];
    replay_plain(g->what, what, sizeof(what));
    replay_plain(g->host, host, sizeof(host));
    replay_plain(g->rule_was, was, sizeof(was));
    replay_moment(g->example_ms, when);
    if (g->change == CHANGE_UNKNOWN)
        printf("%9llu  %s %s  not recorded: %s", (unsigned long long)g->count, what, host,
               bench_unknown_words(g->unknown));
    else
        printf("%9llu  %s -> %s  %s %s", (unsigned long long)g->count, verdict_name(g->was), verdict_name(g->is),
               what, host);
    print_rule(g->change == CHANGE_UNKNOWN ? ", asked for by rule " : "  by rule ", &g->rule);
    if (g->change != CHANGE_UNKNOWN && g->rule.id.n == 0)
        printf("  no rule");
    if (*was)
        printf(", was by %s", was);
    printf("%s\n           e.g. %s (%s, %s)\n", g->limited ? ", within its limits" : "", g->example, g->sandbox,
           when);
}

void replay_print(const struct replayed *t)
{
    static const char *const head[] = {"WIDENED", "NARROWED", "CANNOT TELL"};
    const struct source_seen *s = source_seen(t->source);
    char first[32], last[32];
    int above = -1;
    replay_moment(s->first_ms, first);
    replay_moment(s->last_ms, last);
    if (s->requests)
        printf("%llu requests from %s to %s: %llu the same, %llu now allowed, %llu now held, %llu now denied, %llu "
               "cannot be told\n",
               (unsigned long long)s->requests, first, last, (unsigned long long)t->same,
               (unsigned long long)t->now[VERDICT_ALLOW], (unsigned long long)t->now[VERDICT_HOLD],
               (unsigned long long)t->now[VERDICT_DENY], (unsigned long long)t->unknown);
    else
        printf("no request is recorded in that time (%llu records read)\n", (unsigned long long)s->records);
    for (size_t i = 0; i < t->ngroups; i++) {
        if ((int)t->groups[i].change != above)
            printf("\n%s\n", head[t->groups[i].change]);
        above = (int)t->groups[i].change;
        print_group(&t->groups[i]);
    }
    if (t->ungrouped)
        printf("\n%llu more changed, in kinds beyond the %d that are told apart\n", (unsigned long long)t->ungrouped,
               GROUPS_MAX);
}

static void json_group(struct jsonw *w, const struct group *g)
{
    static const char *const names[] = {"widened", "narrowed", "cannot-tell"};
    char when[32];
    replay_moment(g->example_ms, when);
    jsonw_object(w);
    jsonw_kv(w, "change", span_str(names[g->change]));
    jsonw_kv_u64(w, "count", g->count);
    jsonw_kv(w, "was", span_str(verdict_name(g->was)));
    if (g->change == CHANGE_UNKNOWN)
        jsonw_kv(w, "not_recorded", span_str(bench_unknown_words(g->unknown)));
    else
        jsonw_kv(w, "now", span_str(verdict_name(g->is)));
    jsonw_kv(w, "what", g->what);
    jsonw_kv(w, "host", g->host);
    jsonw_kv(w, "rule_was", g->rule_was);
    if (g->rule.id.n) {
        jsonw_kv_object(w, "rule");
        jsonw_kv(w, "id", g->rule.id);
        jsonw_kv(w, "file", g->rule.file);
        jsonw_kv_u64(w, "line", g->rule.line);
        jsonw_end_object(w);
    }
    jsonw_kv_bool(w, "limits_not_counted", g->limited);
    jsonw_kv(w, "example", span_str(g->example));
    jsonw_kv(w, "sandbox", span_str(g->sandbox));
    jsonw_kv(w, "time", span_str(when));
    jsonw_end_object(w);
}

int replay_json(const struct replayed *t)
{
    const struct source_seen *s = source_seen(t->source);
    struct dynbuf out;
    struct jsonw w;
    dynbuf_init(&out, 64 << 20);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_kv_u64(&w, "records", s->records);
    jsonw_kv_u64(&w, "requests", s->requests);
    jsonw_kv_u64(&w, "damaged", s->damaged);
    jsonw_kv_u64(&w, "not_judged", s->unjudged);
    jsonw_kv_u64(&w, "same", t->same);
    jsonw_kv_u64(&w, "now_allowed", t->now[VERDICT_ALLOW]);
    jsonw_kv_u64(&w, "now_held", t->now[VERDICT_HOLD]);
    jsonw_kv_u64(&w, "now_denied", t->now[VERDICT_DENY]);
    jsonw_kv_u64(&w, "widened", t->widened);
    jsonw_kv_u64(&w, "narrowed", t->narrowed);
    jsonw_kv_u64(&w, "cannot_tell", t->unknown);
    jsonw_kv_array(&w, "groups");
    for (size_t i = 0; i < t->ngroups; i++)
        json_group(&w, &t->groups[i]);
    jsonw_end_array(&w);
    jsonw_kv_u64(&w, "ungrouped", t->ungrouped);
    jsonw_end_object(&w);
    return show_json(&out);
}
