/* Budgets of tenants, by what the meter has. What a question may come to stands in its step's kind while it is asked:
 * "WORD TOKENS MILLIONTHS", with the word that it was begun with; who asks nothing, or waits, has the word alone
 * there. Who decides has the tenant's row locked, so that of two at once the second one finds what the first one
 * wrote. */
#include "broker/store/sql/usage.h"

#include <stdio.h>

#define DAY_MS UINT64_C(86400000)
enum { NUMBERS_MAX = 64 };

/* A clock that once ran ahead has metered on days that are yet to come: these count then, but for a day, by which the
 * clocks of those who ask may differ. */
static enum bstore_result spent_of(struct sq *l, struct span tenant, enum budget_per per, struct used *out)
{
    struct sq_stmt *q = sq_stmt(l, SQL_BUDGET_SPENT, tenant, NULL);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 2, budget_since(per, l->now / DAY_MS));
    sq_int(q, 3, l->now / DAY_MS + 1);
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW)
        *out = (struct used){.tokens = sq_col_int(q, 0), .cost_micro = sq_col_int(q, 1)};
    sq_reset(q);
    return got == SQ_ROW ? BS_OK : BS_FAIL;
}

enum bstore_result sq_in_budget(struct sq *l, struct span tenant, struct budgets_stand *out)
{
    const struct tenant_budget *of[BUDGET_PERS];
    enum bstore_result r = BS_OK;
    *out = (struct budgets_stand){.n = budgets_of(l->face.budgets, tenant, of), .day = l->now / DAY_MS};
    for (size_t i = 0; i < out->n; i++) {
        out->row[i].of = of[i];
        if (spent_of(l, tenant, of[i]->per, &out->row[i].spent) != BS_OK)
            return BS_FAIL;
        if (budget_is_spent(of[i], &out->row[i].spent))
            r = BS_SPENT;
    }
    return r;
}

enum bstore_result sq_budgets(struct bstore *s, struct span tenant, struct budgets_stand *out)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_begin_read(l) != 0 ? BS_FAIL : sq_in_budget(l, tenant, out);
        r = sq_end(l, r == BS_SPENT ? BS_OK : r);
    } while (sq_again(l));
    return r;
}

/* --- a question ----------------------------------------------------------------------------------- */

/* A step that has not asked yet will have to: it is none. */
static void add_beside(struct budget_beside *b, struct span kind)
{
    struct used one;
    struct span word, tokens, cost;
    if (!span_cut(kind, ' ', &word, &cost) || !span_cut(cost, ' ', &tokens, &cost))
        return;
    if (span_u64(tokens, BUDGET_MOST, &one.tokens) != 0 || span_u64(cost, BUDGET_MOST, &one.cost_micro) != 0)
        one = (struct used){.tokens = BUDGET_MOST, .cost_micro = BUDGET_MOST};
    b->n++;
    b->most.tokens += one.tokens;
    b->most.cost_micro += one.cost_micro;
}

static enum bstore_result beside(struct sq *l, const struct claim *c, struct budget_beside *out)
{
    struct sq_id turn = sq_id(&c->turn);
    struct sq_stmt *q = sq_stmt(l, SQL_ASKED_BESIDE, claim_tenant(c), &turn);
    enum sq_result got;
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, l->now);
    *out = (struct budget_beside){.n = 0};
    while ((got = sq_step(q)) == SQ_ROW)
        add_beside(out, sq_col(q, 0));
    sq_reset(q);
    return got == SQ_DONE ? BS_OK : BS_FAIL;
}

/* most: NULL, nothing is asked. */
static enum bstore_result write_down(struct sq *l, const struct claim *c, uint64_t n, struct span word,
                                     const struct used *most)
{
    struct sq_id turn = sq_id(&c->turn);
    struct sq_stmt *q = sq_stmt(l, SQL_STEP_ASKS, claim_tenant(c), &turn);
    char kind[BSTORE_NAME_MAX + NUMBERS_MAX];
    if (q == NULL)
        return BS_FAIL;
    int at = snprintf(kind, sizeof(kind), "%.*s", SPAN_FMT(span_first(word, BSTORE_NAME_MAX)));
    if (most != NULL)
        (void)snprintf(kind + at, sizeof(kind) - (size_t)at, " %llu %llu", (unsigned long long)most->tokens,
                       (unsigned long long)most->cost_micro);
    sq_int(q, 3, n);
    sq_bytes(q, 4, span_str(kind));
    return sq_change(l, q, BS_CONFLICT);
}

/* What is asked is read before what was spent: one that ends in between counts twice, and never not at all. */
static enum bstore_result may_ask(struct sq *l, const struct claim *c, const struct used *most)
{
    struct budget_beside others;
    struct budgets_stand all;
    enum bstore_result r = beside(l, c, &others);
    if (r == BS_OK)
        r = sq_in_budget(l, claim_tenant(c), &all);
    for (size_t i = 0; r == BS_OK && i < all.n; i++)
        if (budget_may(all.row[i].of, &all.row[i].spent, &others, most) != BUDGET_MAY)
            r = BS_FULL;
    return r;
}

/* One that waits may have asked before, in this claim: two that did would wait for each other. */
enum bstore_result sq_ask(struct bstore *s, const struct claim *c, uint64_t n, struct span word,
                          const struct used *most)
{
    struct sq *l = sq_of(s);
    bool cancelled, waits;
    enum bstore_result r;
    do {
        r = sq_begin(l) != 0 ? BS_FAIL : sq_lock_tenant(l, SQL_TENANT_LOCK, claim_tenant(c));
        if (r == BS_OK)
            r = sq_fence(l, c, &cancelled);
        if (r == BS_OK && most != NULL)
            r = may_ask(l, c, most);
        waits = r == BS_FULL;
        r = sq_end(l, r == BS_OK || waits ? write_down(l, c, n, word, waits ? NULL : most) : r);
    } while (sq_again(l));
    return r == BS_OK && waits ? BS_FULL : r;
}
