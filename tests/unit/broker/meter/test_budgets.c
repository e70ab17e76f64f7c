/* Budgets of tenants: no question begins past one, whoever of several brokers asks; at its end one is asked at a
 * time. */
#include "tests/unit/broker/store_fix.h"

#include "broker/budgets.h"
#include "broker/usage.h"

#define DAY_MS UINT64_C(86400000)
#define DAY    UINT64_C(20787) /* 2026-11-30, the last of its month */
#define LINES  "acme day 100 -\nacme month - 5000\nnone day 0 -\n* day - 7\n"

static struct budgets budgets;

static void given(const char *lines)
{
    assert_int_equal(budgets_read(span_str(lines), &budgets), 0);
    fix->budgets = &budgets;
}

/* --- pure --------------------------------------------------------------------------------------- */

static void lines_are_read(void **state)
{
    static const char *const wrong[] = {"acme day 1 -",
                                        "acme day 1\n",
                                        "acme week 1 -\n",
                                        " day 1 -\n",
                                        "acme day - -\n",
                                        "acme day 01 -\n",
                                        "acme day 1 -1\n",
                                        "acme day 1 2 3\n",
                                        "acme day x -\n",
                                        "acme day 1 1.5\n",
                                        "\n",
                                        "acme day 8796093022209 -\n"};
    static char many[BUDGETS_MAX + 1][16], all[sizeof(many) + 1];
    const struct tenant_budget *of[BUDGET_PERS];
    struct budgets b;
    assert_int_equal(budgets_read(SPAN(""), &b), 0);
    assert_int_equal(budgets_of(&b, SPAN("acme"), of), 0);
    assert_int_equal(budgets_of(NULL, SPAN("acme"), of), 0);
    assert_int_equal(budgets_read(SPAN(LINES "big month 8796093022208 0\n"), &b), 0);
    assert_int_equal(budgets_of(&b, SPAN("acme"), of), 2);
    assert_true(of[0]->per == BUDGET_DAY && of[0]->tokens && !of[0]->cost && of[0]->most.tokens == 100);
    assert_true(of[1]->per == BUDGET_MONTH && !of[1]->tokens && of[1]->cost && of[1]->most.cost_micro == 5000);
    assert_int_equal(budgets_of(&b, SPAN("other"), of), 1); /* who has rows has no part in that of the others */
    assert_true(of[0]->cost && of[0]->most.cost_micro == 7);
    assert_int_equal(budgets_of(&b, SPAN("big"), of), 1);
    assert_true(of[0]->tokens && of[0]->cost && of[0]->most.tokens == BUDGET_MOST && of[0]->most.cost_micro == 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (budgets_read(span_str(wrong[i]), &b) == 0)
            fail_msg("%s", wrong[i]);
    for (size_t i = 0, n = 0; i <= BUDGETS_MAX; i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "t%zu day 1 -\n", i);
    assert_int_equal(budgets_read(span_str(all), &b), -1);
    *strrchr(all, 't') = '\0';
    assert_int_equal(budgets_read(span_str(all), &b), 0);
    assert_int_equal(b.n, BUDGETS_MAX);
}

static void days_and_months_begin_anew(void **state)
{
    static const struct {
        const char *day, *since, *anew;
    } months[] = {{"2026-11-30", "2026-11-01", "2026-12-01"}, {"2026-12-01", "2026-12-01", "2027-01-01"},
                  {"2026-12-31", "2026-12-01", "2027-01-01"}, {"2028-02-29", "2028-02-01", "2028-03-01"},
                  {"2027-02-28", "2027-02-01", "2027-03-01"}, {"2027-01-31", "2027-01-01", "2027-02-01"}};
    for (size_t i = 0; i < sizeof(months) / sizeof(months[0]); i++) {
        uint64_t day, since, anew;
        assert_int_equal(usage_day_of(span_str(months[i].day), &day), 0);
        assert_int_equal(usage_day_of(span_str(months[i].since), &since), 0);
        assert_int_equal(usage_day_of(span_str(months[i].anew), &anew), 0);
        assert_int_equal(budget_since(BUDGET_MONTH, day), since);
        assert_int_equal(budget_anew(BUDGET_MONTH, day), anew);
        assert_int_equal(budget_since(BUDGET_DAY, day), day);
        assert_int_equal(budget_anew(BUDGET_DAY, day), day + 1);
    }
}

static void what_is_left_is_exact(void **state)
{
    const struct tenant_budget tokens = {.tokens = true, .most = {.tokens = 100}},
                               both = {.tokens = true, .cost = true, .most = {.tokens = 100, .cost_micro = 10}},
                               none = {.cost = true};
    const struct budget_beside alone = {.n = 0}, one = {.n = 1, .most = {.tokens = 40, .cost_micro = 4}},
                               huge = {.n = 1, .most = {.tokens = UINT64_MAX}};
    static const struct used most = {.tokens = 30, .cost_micro = 3};
    const struct used last = {.tokens = 99}, all = {.tokens = 100}, over = {.tokens = 101}, nothing = {0};
    assert_int_equal(budget_may(&tokens, &last, &alone, &most), BUDGET_MAY); /* it may end past it */
    assert_int_equal(budget_may(&tokens, &all, &alone, &most), BUDGET_SPENT);
    assert_int_equal(budget_may(&tokens, &over, &alone, &most), BUDGET_SPENT);
    assert_int_equal(budget_may(&none, &nothing, &alone, &nothing), BUDGET_SPENT);
    assert_int_equal(budget_may(&both, &(struct used){.cost_micro = 10}, &alone, &most), BUDGET_SPENT);
    assert_int_equal(budget_may(&both, &(struct used){.cost_micro = 9}, &alone, &most), BUDGET_MAY);
    /* beside another one it has to have room: 30 + 40 + 30, 31 + 40 + 30 */
    assert_int_equal(budget_may(&tokens, &(struct used){.tokens = 30}, &one, &most), BUDGET_MAY);
    assert_int_equal(budget_may(&tokens, &(struct used){.tokens = 31}, &one, &most), BUDGET_WAITS);
    assert_int_equal(budget_may(&both, &(struct used){.cost_micro = 3}, &one, &most), BUDGET_MAY);
    assert_int_equal(budget_may(&both, &(struct used){.cost_micro = 4}, &one, &most), BUDGET_WAITS);
    assert_int_equal(budget_may(&tokens, &nothing, &huge, &most), BUDGET_WAITS);
    assert_int_equal(budget_may(&tokens, &(struct used){.tokens = 1, .cost_micro = UINT64_MAX}, &one, &most),
                     BUDGET_MAY);
}

static void words(const struct tenant_budget *b, uint64_t tokens, uint64_t cost, const char *want)
{
    char is[BUDGET_WORDS_MAX];
    const struct budgets_stand all = {
        .row = {{.of = b, .spent = {.tokens = tokens, .cost_micro = cost}}}, .n = 1, .day = DAY};
    assert_true(budget_words(&all, SPAN("acme"), is));
    assert_string_equal(is, want);
}

static void it_is_said_which_and_how_much(void **state)
{
    static const struct {
        uint64_t micro;
        const char *text;
    } costs[] = {{0, "0.00"},
                 {1, "0.000001"},
                 {12500000, "12.50"},
                 {600, "0.0006"},
                 {1230000, "1.23"},
                 {BUDGET_MOST, "8796093.022208"},
                 {UINT64_MAX, "18446744073709.551615"}};
    char is[BUDGET_AMOUNT_MAX];
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
        budget_cost_text(costs[i].micro, is);
        assert_string_equal(is, costs[i].text);
    }
    words(&(struct tenant_budget){.tokens = true, .most = {.tokens = 100}}, 120, 1,
          "tenant acme has used up its budget for this day: tokens 120 of 100; it begins anew on 2026-12-01 at 00:00 "
          "UTC");
    words(
        &(struct tenant_budget){
            .per = BUDGET_MONTH, .tokens = true, .cost = true, .most = {.tokens = 9, .cost_micro = 12500000}},
        8, 12500600,
        "tenant acme has used up its budget for this month: cost 12.5006 of 12.50; it begins anew on 2026-12-01 at "
        "00:00 UTC");
    words(&(struct tenant_budget){.cost = true}, 0, 0,
          "tenant acme may ask no model: its cost for a day is set to 0");
}

/* --- by the store's own sums ---------------------------------------------------------------------- */

static enum bstore_result asks(const struct claim *c, uint64_t tokens)
{
    return bstore_ask(fix, c, 1, SPAN("model"), &(struct used){.tokens = tokens, .cost_micro = 1});
}

static struct claim turn_of(const char *tenant, unsigned worker)
{
    uint64_t attempts;
    (void)fix_chat(tenant, NULL);
    struct claim c = fix_claim(worker);
    fix_ok(bstore_step(fix, &c, 1, SPAN("model"), &attempts));
    return c;
}

static void spend(const struct claim *c, uint64_t tokens, uint64_t cost)
{
    const struct bstore_asked asked = {SPAN("m"), SPAN("t"), tokens / 2, tokens - tokens / 2, 0, 0};
    fix_ok(bstore_spent(fix, c, &(struct used){.tokens = tokens, .cost_micro = cost}, &asked));
}

static enum bstore_result says(const char *tenant, const char *key)
{
    const struct bstore_chat in = {.tenant = span_str(tenant), .body = SPAN("{}"), .key = span_str(key)};
    struct bstore_chatted out;
    return bstore_chat(fix, &in, &out);
}

/* Taken up again then. */
static struct claim at(const struct claim *c, uint64_t now)
{
    fix_ok(bstore_release(fix, c, 0));
    fix_now = now;
    return fix_claim(1);
}

static void no_question_begins_past_it(void **state)
{
    struct budgets_stand b;
    given(LINES);
    fix_now = DAY * DAY_MS;
    struct claim c = turn_of("acme", 1);
    fix_ok(asks(&c, 1000)); /* more than there is: one that is asked may end */
    spend(&c, 99, 1);
    fix_ok(asks(&c, 1000));
    spend(&c, 1, 1);
    assert_int_equal(asks(&c, 1), BS_SPENT); /* exactly at it */
    fix_ok(bstore_budgets(fix, SPAN("acme"), &b));
    assert_true(b.n == 2 && b.day == DAY && b.row[0].spent.tokens == 100 && b.row[1].spent.cost_micro == 2);
    c = at(&c, (DAY + 1) * DAY_MS - 1); /* the last moment of the day */
    assert_int_equal(asks(&c, 1), BS_SPENT);
    fix_now++; /* another day, and another month */
    fix_ok(asks(&c, 1));
    spend(&c, 1, 4999);
    fix_ok(asks(&c, 1));
    spend(&c, 1, 1);
    c = at(&c, fix_now + DAY_MS); /* that of the month is used up, whatever the day has */
    assert_int_equal(asks(&c, 1), BS_SPENT);
    fix_ok(bstore_budgets(fix, SPAN("acme"), &b));
    assert_true(b.row[0].spent.tokens == 0 && b.row[1].spent.cost_micro == 5000);
    c = at(&c, fix_now + 31 * DAY_MS);
    fix_ok(asks(&c, 1));
}

/* What a clock that ran ahead has metered is for its own days, but for one. */
static void days_to_come_are_not_charged(void **state)
{
    struct budgets_stand b;
    given("acme day 100 -\nacme month 1000 -\n");
    fix_now = (DAY + 40) * DAY_MS;
    struct claim c = turn_of("acme", 1);
    spend(&c, 5000, 1);
    assert_int_equal(asks(&c, 1), BS_SPENT);
    fix_now = (DAY + 1) * DAY_MS;
    spend(&c, 7, 1);
    fix_now = DAY * DAY_MS;
    fix_ok(asks(&c, 1));
    fix_ok(bstore_budgets(fix, SPAN("acme"), &b));
    assert_true(b.n == 2 && b.row[0].spent.tokens == 7 && b.row[1].spent.tokens == 7);
    fix_now = (DAY + 39) * DAY_MS;
    assert_int_equal(says("acme", ""), BS_SPENT);
}

static void who_has_none_is_not_limited(void **state)
{
    struct budgets_stand b;
    given("acme day 1 -\n");
    struct claim c = turn_of("free", 1);
    spend(&c, INT64_MAX >> 11, INT64_MAX >> 11);
    fix_ok(asks(&c, UINT64_MAX));
    fix_ok(bstore_budgets(fix, SPAN("free"), &b));
    assert_int_equal(b.n, 0);
    fix->budgets = NULL;
    fix_ok(asks(&c, UINT64_MAX));
}

static void zero_is_no(void **state)
{
    given(LINES);
    assert_int_equal(says("none", ""), BS_SPENT);
    fix->budgets = NULL; /* who was taken before that was said */
    struct claim c = turn_of("none", 1);
    given(LINES);
    assert_int_equal(asks(&c, 0), BS_SPENT);
}

static void nothing_new_is_taken(void **state)
{
    struct bstore_chatted out;
    given(LINES);
    fix_now = DAY * DAY_MS;
    assert_int_equal(says("acme", "one"), BS_OK);
    struct claim c = fix_claim(1);
    spend(&c, 100, 1);
    assert_int_equal(says("acme", "two"), BS_SPENT);
    assert_int_equal(says("acme", "one"), BS_AGAIN); /* that was taken */
    assert_int_equal(says("other", ""), BS_OK);
    fix_ok(bstore_finish(fix, &c, END_BUDGET, SPAN("words")));
    assert_int_equal(fix_row("acme", &c.turn)->end, END_BUDGET);
    assert_int_equal(bstore_replay(fix, SPAN("acme"), &c.turn, &out), BS_SPENT);
    fix_now += DAY_MS;
    assert_int_equal(says("acme", "two"), BS_OK);
}

/* What is metered past all bounds is a sum like any. */
static void what_cannot_be_counted_is_too_much(void **state)
{
    given(LINES);
    struct claim c = turn_of("acme", 1);
    const struct bstore_asked most = {SPAN("m"), SPAN("t"), INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    const struct bstore_plan plan = {SPAN("a"), {0, INT64_MAX, INT64_MAX}, NULL, 0, most};
    fix_ok(bstore_plan(fix, &c, 1, &plan));
    struct bstore_asked other = most;
    other.model = SPAN("n");
    fix_ok(bstore_spent(fix, &c, &(struct used){.tokens = 1}, &other));
    assert_int_equal(says("acme", ""), BS_SPENT);
}

/* --- several at once -------------------------------------------------------------------------------- */

static void at_its_end_one_is_asked_at_a_time(void **state)
{
    uint64_t attempts;
    given("acme day 100 -\n* day 100 -\n");
    fix_now = DAY * DAY_MS;
    struct claim a = turn_of("acme", 1), b = turn_of("acme", 2), c = turn_of("acme", 3),
                 foreign = turn_of("other", 4);
    fix_ok(asks(&foreign, 100)); /* another tenant's takes nothing of it */
    fix_ok(asks(&a, 40));
    fix_ok(asks(&a, 40)); /* the same once more is one */
    fix_ok(bstore_ask(fix, &b, 1, SPAN("summary"), &(struct used){.tokens = 60, .cost_micro = 1})); /* as any */
    assert_int_equal(asks(&c, 1), BS_FULL);
    fix_ok(bstore_plan(fix, &b, 1,
                       &(struct bstore_plan){SPAN("a"), {0, 20, 1}, NULL, 0, {SPAN("m"), SPAN("t"), 20, 0, 0, 0}}));
    fix_ok(asks(&c, 40)); /* 20 + 40 + 40: what b had not used is there again */
    fix_ok(bstore_settle(fix, &b, 1, &(struct bstore_settle){.messages = 0}));
    fix_ok(bstore_step(fix, &b, 2, SPAN("model"), &attempts));
    assert_int_equal(bstore_ask(fix, &b, 2, SPAN("model"), &(struct used){.tokens = 1}), BS_FULL);
    fix_ok(bstore_release(fix, &c, 1000)); /* it is given back: it asks nothing */
    fix_ok(bstore_ask(fix, &b, 2, SPAN("model"), &(struct used){.tokens = 1}));
    fix_now += CLAIM_MS / 2;
    fix_ok(bstore_extend(fix, &b));
    fix_now += CLAIM_MS / 2; /* a's worker is lost, and with it what it asked */
    assert_int_equal(asks(&a, 1), BS_FENCED);
    fix_ok(bstore_ask(fix, &b, 2, SPAN("model"), &(struct used){.tokens = 80}));
}

/* The last one may end past it, and no other one begins beside it. */
static void past_it_by_one_question(void **state)
{
    given("acme day 100 -\n");
    fix_now = DAY * DAY_MS;
    struct claim a = turn_of("acme", 1), b = turn_of("acme", 2);
    spend(&a, 99, 1);
    fix_ok(asks(&a, 5000));
    assert_int_equal(asks(&b, 1), BS_FULL);
    spend(&a, 5000, 1);
    assert_int_equal(asks(&b, 1), BS_SPENT);
    assert_int_equal(asks(&a, 1), BS_SPENT);
}

/* Two that failed, and ask something else now: what they asked before keeps neither of them. */
static void who_waits_keeps_nobody_waiting(void **state)
{
    uint64_t attempts;
    given("acme day 100 -\n");
    fix_now = DAY * DAY_MS;
    struct claim a = turn_of("acme", 1), b = turn_of("acme", 2);
    fix_ok(asks(&a, 50));
    fix_ok(asks(&b, 50));
    assert_int_equal(asks(&a, 60), BS_FULL);
    fix_ok(asks(&b, 60)); /* a asks nothing any more */
    assert_int_equal(asks(&a, 60), BS_FULL);
    fix_ok(bstore_release(fix, &b, 0)); /* b is given back while it asks, and taken again */
    fix_ok(asks(&a, 60));
    b = fix_claim(3);
    assert_int_equal(bstore_step(fix, &b, 1, SPAN("model"), &attempts), BS_AGAIN);
    assert_int_equal(attempts, 2);
    fix_ok(asks(&a, 100));
    assert_int_equal(asks(&b, 60), BS_FULL);
    fix_ok(asks(&a, 100));
    assert_int_equal(bstore_ask(fix, &b, 2, SPAN("model"), &(struct used){.tokens = 60}), BS_CONFLICT);
}

static void a_step_that_is_not_open_asks_nothing(void **state)
{
    given("acme day 100 -\n");
    struct claim a = turn_of("acme", 1);
    assert_int_equal(bstore_ask(fix, &a, 2, SPAN("model"), &(struct used){.tokens = 1}), BS_CONFLICT);
    fix_ok(bstore_plan(fix, &a, 1, &(struct bstore_plan){SPAN("a"), {0, 1, 1}, NULL, 0, fix_asked}));
    assert_int_equal(asks(&a, 1), BS_CONFLICT);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_are_read),
                                       cmocka_unit_test(days_and_months_begin_anew),
                                       cmocka_unit_test(what_is_left_is_exact),
                                       cmocka_unit_test(it_is_said_which_and_how_much),
                                       T(no_question_begins_past_it),
                                       T(days_to_come_are_not_charged),
                                       T(who_has_none_is_not_limited),
                                       T(zero_is_no),
                                       T(nothing_new_is_taken),
                                       T(what_cannot_be_counted_is_too_much),
                                       T(at_its_end_one_is_asked_at_a_time),
                                       T(past_it_by_one_question),
                                       T(who_waits_keeps_nobody_waiting),
                                       T(a_step_that_is_not_open_asks_nothing)};
    return FIX_MAIN(tests);
}
