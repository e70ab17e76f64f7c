/* Which rules decided in some case, and which entries of except: took something out: what no case reached is as good
 * as untested. */
#include "cli/policy/test/cover.h"

#include <stdio.h>

enum { COVER_MEMORY_MAX = 256 * 1024 * 1024, COVER_ROWS_MAX = 1000 * 1000 };

void cover_init(struct cover *c)
{
    *c = (struct cover){0};
    arena_init(&c->a, COVER_MEMORY_MAX);
    dynbuf_init(&c->rows, COVER_ROWS_MAX * sizeof(struct cover_row));
    dynbuf_init(&c->at, COVER_ROWS_MAX * sizeof(size_t));
}

void cover_free(struct cover *c)
{
    arena_free(&c->a);
    dynbuf_free(&c->rows);
    dynbuf_free(&c->at);
}

static struct cover_row *rows_of(const struct cover *c, size_t *n)
{
    *n = c->rows.n / sizeof(struct cover_row);
    return (void *)c->rows.p;
}

static bool same_rule(const struct cover_row *row, const struct rule_ref *r)
{
    return row->entry < 0 && row->line == r->line && span_eq(row->id, r->id) && span_eq(row->file, r->file);
}

/* The row of a rule; its entries of except: follow it. The same policy comes in the same order: *hint is where the
 * next one should be. */
static size_t row_of(struct cover *c, const struct rule_ref *r, size_t excepts, size_t *hint)
{
    size_t n;
    const struct cover_row *v = rows_of(c, &n);
    for (size_t i = 0; i < n; i++) {
        size_t at = (*hint + i) % n;
        if (same_rule(&v[at], r)) {
            *hint = at + 1 + excepts;
            return at;
        }
    }
    struct cover_row row = {.file = arena_copy(&c->a, r->file), .id = arena_copy(&c->a, r->id), .line = r->line};
    for (row.entry = -1; row.entry < (int)excepts; row.entry++)
        (void)dynbuf_add(&c->rows, span_of(&row, sizeof(row)));
    *hint = n + 1 + excepts;
    return n;
}

void cover_policy(struct cover *c, const struct policy *p)
{
    size_t hint = 0;
    dynbuf_reset(&c->at);
    for (size_t i = 0; i < policy_rules(p); i++) {
        struct rule_ref r = policy_rule(p, i);
        size_t at = row_of(c, &r, policy_rule_excepts(p, i), &hint);
        (void)dynbuf_add(&c->at, span_of(&at, sizeof(at)));
    }
}

static void hit(void *arg, size_t rule, int except)
{
    struct cover *c = arg;
    size_t n, *at = (void *)c->at.p;
    struct cover_row *v = rows_of(c, &n);
    if (rule < c->at.n / sizeof(*at) && at[rule] + (size_t)(except + 1) < n)
        v[at[rule] + (size_t)(except + 1)].hit = true;
}

void cover_case(struct cover *c, const struct policy *p, struct asked *q)
{
    policy_cover(p, &q->subject, &q->request, &q->decision, q->now_ms, &q->a, hit, c);
}

/* How many rules and exceptions there are, and how many of them were reached. */
static size_t cover_count(const struct cover *c, size_t *hits)
{
    size_t n;
    const struct cover_row *v = rows_of(c, &n);
    *hits = 0;
    for (size_t i = 0; i < n; i++)
        *hits += v[i].hit;
    return n;
}

bool cover_is_under(const struct cover *c, unsigned percent)
{
    size_t hits, n = cover_count(c, &hits);
    return !dynbuf_ok(&c->rows) || !dynbuf_ok(&c->at) || hits * 100 < n * percent;
}

void cover_print(const struct cover *c)
{
    size_t n, hits, all = cover_count(c, &hits);
    const struct cover_row *v = rows_of(c, &n);
    for (size_t i = 0; i < n; i++) {
        if (v[i].hit)
            continue;
        printf("not reached: %.*s:%u %.*s", SPAN_FMT(v[i].file), v[i].line, SPAN_FMT(v[i].id));
        if (v[i].entry >= 0)
            printf(", entry %d of its except:", v[i].entry + 1);
        putchar('\n');
    }
    printf("coverage: %zu of %zu rules and exceptions, %zu%%\n", hits, all, all ? hits * 100 / all : 0);
}

void cover_json(const struct cover *c, struct jsonw *w)
{
    size_t n, hits, all = cover_count(c, &hits);
    const struct cover_row *v = rows_of(c, &n);
    jsonw_kv_object(w, "coverage");
    jsonw_kv_u64(w, "reached", hits);
    jsonw_kv_u64(w, "all", all);
    jsonw_kv_u64(w, "percent", all ? hits * 100 / all : 0);
    jsonw_kv_array(w, "not_reached");
    for (size_t i = 0; i < n; i++) {
        if (v[i].hit)
            continue;
        jsonw_object(w);
        jsonw_kv(w, "file", v[i].file);
        jsonw_kv_u64(w, "line", v[i].line);
        jsonw_kv(w, "rule", v[i].id);
        if (v[i].entry >= 0)
            jsonw_kv_u64(w, "except", (uint64_t)v[i].entry + 1);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_end_object(w);
}
