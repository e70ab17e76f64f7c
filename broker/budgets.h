/* Budgets of tenants: how much models may be asked for one in a day or a month of UTC, by all its turns together.
 * Pure.
 */
#ifndef BROKER_BUDGETS_H
#define BROKER_BUDGETS_H

#include "broker/turn.h"
#include "common/span.h"

enum budget_per { BUDGET_DAY = 0, BUDGET_MONTH, BUDGET_PERS };
enum {
    BUDGETS_MAX = 64,
    BUDGETS_TEXT_MAX = 8192,
    BUDGET_WORDS_MAX = 256,
    BUDGET_AMOUNT_MAX = 48 /* of an amount as text */
};
/* Tokens, and millionths, that one may say. What is metered of one question counts as that at most, so that no sum
 * overflows. */
#define BUDGET_MOST (UINT64_C(1) << 43)
/* In place of a tenant: each that no other row names, by itself. */
#define BUDGET_OTHERS "*"

struct tenant_budget {
    struct span tenant;
    enum budget_per per;
    bool tokens, cost; /* which of them is bounded */
    struct used most;  /* steps is not looked at, here and below; 0: nothing may be asked */
};
struct budgets {
    struct tenant_budget row[BUDGETS_MAX];
    size_t n;
};

/* Lines "TENANT day|month TOKENS|- COST|-\n", as the configuration gives them: the rows refer to them. -1: they are
 * not that. */
int budgets_read(struct span lines, struct budgets *out) MUSTCHECK;
/* Those of a tenant, at most one for a day and one for a month; NULL has none. */
size_t budgets_of(const struct budgets *b, struct span tenant, const struct tenant_budget *out[BUDGET_PERS]);
/* "day", "month" */
const char *budget_per_name(enum budget_per per);
/* Of a day, counted from 1970-01-01: the first one of its day or month; the one on which it begins anew. */
uint64_t budget_since(enum budget_per per, uint64_t day);
uint64_t budget_anew(enum budget_per per, uint64_t day);
/* So much of it was spent: is it used up? */
bool budget_is_spent(const struct tenant_budget *b, const struct used *spent);

/* What stands of a tenant's budgets, on a day of the store's clock. */
struct budgets_stand {
    struct {
        const struct tenant_budget *of;
        struct used spent; /* in its day or month, by the meter */
    } row[BUDGET_PERS];
    size_t n;
    uint64_t day;
};

/* What is asked for the tenant at this moment, by others. */
struct budget_beside {
    uint64_t n;       /* questions */
    struct used most; /* that they may come to */
};
enum budget_may { BUDGET_SPENT = 0, BUDGET_WAITS, BUDGET_MAY };
/* May one more question be asked, that may come to so much? One that has room beside the others does at once. Without
 * that it waits for their end, and then it may if anything is left: what is past a budget is past it by one question.
 */
enum budget_may budget_may(const struct tenant_budget *b, const struct used *spent,
                           const struct budget_beside *beside, const struct used *most);

/* "12.50", "0.000001": exact. */
void budget_cost_text(uint64_t micro, char out[BUDGET_AMOUNT_MAX]);
/* Of those of the tenant that are used up, the last one: which, how much, when it begins anew. For a person, half a
 * sentence; false: none is. */
bool budget_words(const struct budgets_stand *all, struct span tenant, char out[BUDGET_WORDS_MAX]);

#endif
