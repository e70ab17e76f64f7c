/* budgets: of broker: of the configuration: how much models may be asked for a tenant in a day or a month. */
#include <stdio.h>

#include "policy/load/read/scalar.h"
#include "proxy/parent/config/config_in.h"

/* As broker/budgets.h has them. */
enum { ROWS_MAX = 64, TENANT_MAX = 63 };
#define MOST   (UINT64_C(1) << 43)
#define OTHERS "*"

enum per { PER_DAY = 0, PER_MONTH };
struct row_budget {
    const struct node *at;
    struct item tenant;
    struct number tokens, cost, per;
};

static void read_cost(struct loader *l, const struct node *n, void *field)
{
    struct number *out = field;
    const char *why = n->kind == NODE_TEXT ? scalar_money(n->text, MOST, &out->v) : "is a number";
    out->at = n;
    if (why != NULL)
        load_problem(l, n, "C028", "cost %s, at most %llu", why, (unsigned long long)(MOST / 1000000));
}

static const struct choice pers[] = {{"day", PER_DAY}, {"month", PER_MONTH}, {NULL, 0}};
static const struct key budget_keys[] = {
    {"tenant", KEY_TEXT, AT(row_budget, tenant), KEY_NEEDED,
     .help = "whose; \"*\": each that no other row names, by itself"},
    {"tokens", KEY_COUNT, AT(row_budget, tokens), 0, .lo = 0, .hi = MOST,
     .help = "that go to models and come back, those of their caches too; 0: no model may be asked"},
    {"cost", KEY_CALL, AT(row_budget, cost), 0, .call = read_cost, .pattern = "^(0|[1-9][0-9]*)([.][0-9]{1,6})?$",
     .help = "by the prices of the table of models, such as 12.50; 0: no model may be asked"},
    {"per", KEY_ONE_OF, AT(row_budget, per), KEY_NEEDED, .choices = pers, .help = "of UTC, by the store's clock"},
    {.type = KEY_END}};
const struct table config_budget_table = {"a budget", sizeof(struct row_budget), budget_keys};

static void amount(char out[24], const struct number *n)
{
    (void)snprintf(out, 24, n->at != NULL ? "%llu" : "-", (unsigned long long)n->v);
}

static void check(struct loader *l, const struct row_budget *all, size_t i)
{
    const struct row_budget *b = &all[i];
    struct span tenant = b->tenant.text;
    if (!span_eq(tenant, SPAN(OTHERS)) && (tenant.n > TENANT_MAX || !config_sandbox_ok(tenant)))
        load_problem(l, b->tenant.at, "C028",
                     "a tenant's name is 1 to %d of a-z 0-9 . _ -, or \"*\" for each that no other row names",
                     TENANT_MAX);
    if (b->tokens.at == NULL && b->cost.at == NULL)
        load_problem(l, b->at, "C028", "one of tokens: and cost: is wanted");
    for (size_t k = 0; k < i; k++)
        if (span_eq(all[k].tenant.text, tenant) && all[k].per.v == b->per.v)
            load_problem(l, b->at, "C028", "this tenant has a budget for a %s already", pers[b->per.v].name);
}

void config_take_budgets(struct loader *l, const struct list *rows, struct config *c)
{
    const struct row_budget *all = rows->v;
    char *to = c->broker.budgets, tokens[24], cost[24];
    size_t n = 0;
    if (rows->n > ROWS_MAX) {
        load_problem(l, rows->at, "C028", "at most %d budgets", ROWS_MAX);
        return;
    }
    for (size_t i = 0; i < rows->n; i++)
        check(l, all, i);
    for (size_t i = 0; i < rows->n && !l->failed; i++) {
        amount(tokens, &all[i].tokens);
        amount(cost, &all[i].cost);
        n += (size_t)snprintf(to + n, sizeof(c->broker.budgets) - n, "%.*s %s %s %s\n", SPAN_FMT(all[i].tenant.text),
                              pers[all[i].per.v].name, tokens, cost);
    }
}
