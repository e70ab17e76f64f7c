#include "broker/budgets.h"

#include <stdio.h>

#include "broker/usage.h"

enum { DAYS_OF_ANY_MONTH = 31, TENANT_SHOWN = 63, MILLION = 1000000, ZEROS_CUT = 4 /* two decimals stay */ };

static const char *const pers[BUDGET_PERS] = {[BUDGET_DAY] = "day", [BUDGET_MONTH] = "month"};

const char *budget_per_name(enum budget_per per)
{
    return pers[(unsigned)per < BUDGET_PERS ? per : BUDGET_DAY];
}

/* "-": it is not bounded. */
static int amount(struct span text, bool *bounded, uint64_t *out)
{
    *out = 0;
    *bounded = !span_eq(text, SPAN("-"));
    return *bounded ? span_u64(text, BUDGET_MOST, out) : 0;
}

static int read_row(struct span line, struct tenant_budget *b)
{
    struct span per, tokens, cost;
    *b = (struct tenant_budget){.tokens = false};
    if (!span_cut(line, ' ', &b->tenant, &per) || !span_cut(per, ' ', &per, &tokens) ||
        !span_cut(tokens, ' ', &tokens, &cost) || b->tenant.n == 0)
        return -1;
    b->per = span_eq(per, SPAN("month")) ? BUDGET_MONTH : BUDGET_DAY;
    if (!span_eq(per, span_str(budget_per_name(b->per))) || amount(tokens, &b->tokens, &b->most.tokens) != 0 ||
        amount(cost, &b->cost, &b->most.cost_micro) != 0)
        return -1;
    return b->tokens || b->cost ? 0 : -1;
}

int budgets_read(struct span lines, struct budgets *out)
{
    struct span line;
    out->n = 0;
    while (lines.n > 0) {
        if (!span_cut(lines, '\n', &line, &lines) || out->n == BUDGETS_MAX || read_row(line, &out->row[out->n]) != 0)
            return -1;
        out->n++;
    }
    return 0;
}

size_t budgets_of(const struct budgets *b, struct span tenant, const struct tenant_budget *out[BUDGET_PERS])
{
    struct span names[] = {tenant, SPAN(BUDGET_OTHERS)};
    size_t n = 0;
    for (size_t k = 0; b != NULL && k < 2 && n == 0; k++)
        for (size_t i = 0; i < b->n && n < BUDGET_PERS; i++)
            if (span_eq(b->row[i].tenant, names[k]))
                out[n++] = &b->row[i];
    return n;
}

/* --- its time ------------------------------------------------------------------------------------- */

uint64_t budget_since(enum budget_per per, uint64_t day)
{
    char text[USAGE_DAY_TEXT + 1];
    uint64_t first = day;
    if (per != BUDGET_MONTH)
        return day;
    usage_day_text(day, text);
    text[USAGE_DAY_TEXT - 2] = '0';
    text[USAGE_DAY_TEXT - 1] = '1';
    return usage_day_of(span_of(text, USAGE_DAY_TEXT), &first) == 0 ? first
                                                                    : 0; /* past what can be said: all of it */
}

uint64_t budget_anew(enum budget_per per, uint64_t day)
{
    return per == BUDGET_MONTH ? budget_since(per, budget_since(per, day) + DAYS_OF_ANY_MONTH) : day + 1;
}

/* --- what is left --------------------------------------------------------------------------------- */

bool budget_is_spent(const struct tenant_budget *b, const struct used *spent)
{
    return (b->tokens && spent->tokens >= b->most.tokens) || (b->cost && spent->cost_micro >= b->most.cost_micro);
}

/* One that would be more than can be counted has no room. */
static bool has_room(uint64_t most, uint64_t spent, uint64_t beside, uint64_t more)
{
    uint64_t sum;
    return !__builtin_add_overflow(spent, beside, &sum) && !__builtin_add_overflow(sum, more, &sum) && sum <= most;
}

enum budget_may budget_may(const struct tenant_budget *b, const struct used *spent,
                           const struct budget_beside *beside, const struct used *most)
{
    if (budget_is_spent(b, spent))
        return BUDGET_SPENT;
    if (beside->n == 0)
        return BUDGET_MAY;
    bool room =
        (!b->tokens || has_room(b->most.tokens, spent->tokens, beside->most.tokens, most->tokens)) &&
        (!b->cost || has_room(b->most.cost_micro, spent->cost_micro, beside->most.cost_micro, most->cost_micro));
    return room ? BUDGET_MAY : BUDGET_WAITS;
}

/* --- in words ------------------------------------------------------------------------------------- */

void budget_cost_text(uint64_t micro, char out[BUDGET_AMOUNT_MAX])
{
    int n = snprintf(out, BUDGET_AMOUNT_MAX, "%llu.%06llu", (unsigned long long)(micro / MILLION),
                     (unsigned long long)(micro % MILLION));
    for (unsigned zeros = 0; zeros < ZEROS_CUT && out[n - 1] == '0'; zeros++)
        out[--n] = '\0';
}

static void words_of(const struct tenant_budget *b, struct span tenant, const struct used *spent, uint64_t day,
                     char out[BUDGET_WORDS_MAX])
{
    char anew[USAGE_DAY_TEXT + 1], is[BUDGET_AMOUNT_MAX], most[BUDGET_AMOUNT_MAX];
    bool tokens = b->tokens && spent->tokens >= b->most.tokens;
    const char *of = tokens ? "tokens" : "cost";
    tenant = span_first(tenant, TENANT_SHOWN);
    if ((tokens ? b->most.tokens : b->most.cost_micro) == 0) {
        (void)snprintf(out, BUDGET_WORDS_MAX, "tenant %.*s may ask no model: its %s for a %s is set to 0",
                       SPAN_FMT(tenant), of, budget_per_name(b->per));
        return;
    }
    usage_day_text(budget_anew(b->per, day), anew);
    budget_cost_text(spent->cost_micro, is);
    budget_cost_text(b->most.cost_micro, most);
    if (tokens) {
        (void)snprintf(is, sizeof(is), "%llu", (unsigned long long)spent->tokens);
        (void)snprintf(most, sizeof(most), "%llu", (unsigned long long)b->most.tokens);
    }
    (void)snprintf(out, BUDGET_WORDS_MAX,
                   "tenant %.*s has used up its budget for this %s: %s %s of %s; it begins anew on %s at 00:00 UTC",
                   SPAN_FMT(tenant), budget_per_name(b->per), of, is, most, anew);
}

bool budget_words(const struct budgets_stand *all, struct span tenant, char out[BUDGET_WORDS_MAX])
{
    bool any = false;
    for (size_t i = 0; i < all->n; i++)
        if (budget_is_spent(all->row[i].of, &all->row[i].spent)) {
            words_of(all->row[i].of, tenant, &all->row[i].spent, all->day, out);
            any = true;
        }
    return any;
}
