/* Which model is asked and what it costs: a table of models, questions to it, and sums. */
#include "tests/kit.h"

#include "broker/models/route/table.h"
#include "common/dynbuf.h"

/* ---- the table ---- */

#define MODEL(name, rest)                                                                                            \
    "  " name ": { protocol: chat, provider: p, model: m-" name ", endpoint: \"https://x.test/v1\", " rest " }\n"
#define FILE_OF(models, tasks) "version: 1\nmodels:\n" models "tasks:\n" tasks

static const char three[] =
    FILE_OF("  big:\n    protocol: anthropic\n    provider: anthropic\n    model: claude-x\n    endpoint: "
            "https://api.anthropic.test/v1\n"
            "    context: 200000\n    output: 32000\n    reasoning: true\n"
            "    price: { input: 15, output: 75, cache_read: 1.5, cache_write: 18.75 }\n" MODEL(
                "small", "context: 10000, output: 4000, old_limit: true, price: { input: 0.075, output: 0.3 }")
                MODEL("ours", "context: 50000, output: 4000, price: { input: 0, output: 0 }"),
            "  code: { models: [big, small, ours] }\n  summary: { models: [big, small], by: price }\n  plan: { "
            "models: big }\n");

static struct route_table table;
static struct arena arena;

static int setup(void **state)
{
    struct err e = {""};
    arena_init(&arena, TABLE_ARENA_MAX);
    if (table_read("models.yaml", span_str(three), &arena, &table, &e) != 0)
        print_error("%s\n", e.text);
    return table.n == 3 ? 0 : -1;
}

static int teardown(void **state)
{
    arena_free(&arena);
    return 0;
}

static void as_it_was_written(void **state)
{
    const struct route_model *big = &table.model[0], *small = &table.model[1];
    assert_true(span_eq(big->target.name, SPAN("big")) && big->target.protocol == MODEL_ANTHROPIC &&
                big->target.reasoning);
    assert_true(span_eq(big->target.origin.endpoint, SPAN("https://api.anthropic.test/v1")));
    assert_true(big->context == 200000 && big->output == 32000);
    assert_true(big->price.input == 15000000 && big->price.output == 75000000 && big->price.cache_read == 1500000 &&
                big->price.cache_write == 18750000);
    assert_true(small->target.old_limit && !small->target.reasoning && small->price.input == 75000 &&
                small->price.cache_read == 75000);
    assert_int_equal(table.ntasks, 3);
    assert_true(table.task[1].by_price && !table.task[0].by_price && table.task[0].n == 3 && table.task[2].n == 1);
}

static void what_is_no_table(void **state)
{
#define GOOD MODEL("a", "context: 2000, output: 10, price: { input: 1, output: 1 }")
#define TASK "  t: { models: [a] }\n"
    static const char *const rows[][2] = {
        {"", "models.yaml"},
        {FILE_OF("", TASK), "models"},
        {FILE_OF(GOOD, "  t: { models: [b] }\n"), "there is no model \"b\""},
        {FILE_OF(GOOD, "  t: { models: [a, a] }\n"), "named twice"},
        {FILE_OF(GOOD, "  t: { models: [] }\n"), "t"},
        {FILE_OF(MODEL("a", "context: 2000, output: 10, price: { input: 1.0000001, output: 1 }"), TASK),
         "at most six decimals"},
        {FILE_OF(MODEL("a", "context: 2000, output: 10, price: { input: -1, output: 1 }"), TASK),
         "at most six decimals"},
        {FILE_OF(MODEL("a", "context: 2000, output: 10, price: { input: 1e3, output: 1 }"), TASK),
         "at most six decimals"},
        {FILE_OF(MODEL("a", "context: 2000, output: 10, price: { input: 1000001, output: 1 }"), TASK),
         "at most six decimals"},
        {FILE_OF(MODEL("a", "context: 2000, output: 10, price: { input: 1 }"), TASK), "output"},
        {FILE_OF(MODEL("a", "context: 2000, output: 10, key: sk-1, price: { input: 1, output: 1 }"), TASK),
         "has no key \"key\""},
        {FILE_OF("  a: { protocol: chat, provider: p, model: m, endpoint: x.test, context: 2000, output: 1, price: { "
                 "input: 1, output: 1 } }\n",
                 TASK),
         "an endpoint is the URL"},
        {FILE_OF("  a: { protocol: chat, provider: p, model: m, endpoint: \"https://u@x.test\", context: 2000, "
                 "output: 1, price: { input: 1, output: 1 } }\n",
                 TASK),
         "an endpoint is the URL"},
        {FILE_OF("  a: { protocol: soap, provider: p, model: m, endpoint: \"https://x.test\", context: 2000, output: "
                 "1, price: { input: 1, output: 1 } }\n",
                 TASK),
         "soap"},
        {FILE_OF("  a: { protocol: chat, provider: \"p q\", model: m, endpoint: \"https://x.test\", context: 2000, "
                 "output: 1, price: { input: 1, output: 1 } }\n",
                 TASK),
         "without blanks"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena a;
        struct route_table t;
        struct err e = {""};
        arena_init(&a, TABLE_ARENA_MAX);
        int rc = table_read("models.yaml", span_str(rows[i][0]), &a, &t, &e);
        if (rc != -1 || strstr(e.text, rows[i][1]) == NULL)
            print_error("row %zu said \"%s\"\n", i, e.text);
        assert_true(rc == -1 && t.n == 0 && strstr(e.text, rows[i][1]) != NULL);
        arena_free(&a);
    }
}

static void a_full_table(void **state)
{
    for (unsigned n = ROUTE_MODELS_MAX; n <= ROUTE_MODELS_MAX + 1; n++) {
        struct dynbuf b;
        struct arena a;
        struct route_table t;
        struct err e = {""};
        dynbuf_init(&b, TABLE_TEXT_MAX);
        arena_init(&a, TABLE_ARENA_MAX);
        (void)dynbuf_add(&b, SPAN("version: 1\nmodels:\n"));
        for (unsigned i = 0; i < n; i++)
            (void)dynbuf_addf(&b,
                              "  m%u: { protocol: chat, provider: p, model: m, endpoint: \"https://x.test\", "
                              "context: 2000, output: 1, "
                              "price: { input: 1, output: 1 } }\n",
                              i);
        (void)dynbuf_add(&b, SPAN("tasks:\n  t: { models: [m0] }\n"));
        assert_int_equal(table_read("f", dynbuf_span(&b), &a, &t, &e), n == ROUTE_MODELS_MAX ? 0 : -1);
        assert_int_equal(t.n, n == ROUTE_MODELS_MAX ? n : 0);
        dynbuf_free(&b);
        arena_free(&a);
    }
}

/* ---- the question ---- */

static const struct model_privacy all = {.who = WHO_ALL};
enum { BIG = 0, SMALL, OURS };

static struct route_ask ask(const char *task)
{
    return (struct route_ask){
        .task = span_str(task), .privacy = &all, .input = 1000, .output = 2000, .limit = UINT64_MAX, .now_ms = 5};
}

static void finds(const struct route_ask *q, size_t model, bool other)
{
    struct route_found f = route_pick(&table, q);
    assert_int_equal(f.why, ROUTE_FOUND);
    assert_int_equal(f.model, model);
    assert_int_equal(f.other, other);
}

static void by_task_and_price(void **state)
{
    struct route_ask q = ask("code");
    struct route_found f = route_pick(&table, &q);
    assert_true(f.why == ROUTE_FOUND && f.model == BIG && f.other && f.max_tokens == 2000);
    assert_int_equal(f.most, 18750 + 2000 * 75); /* as if all of it were written to a cache */
    q.task = SPAN("summary");
    finds(&q, SMALL, true);
    q.task = SPAN("plan");
    finds(&q, BIG, false);
    q.task = SPAN("paint");
    assert_int_equal(route_pick(&table, &q).why, ROUTE_NO_TASK);
    q.task = SPAN_NONE;
    assert_int_equal(route_pick(&table, &q).why, ROUTE_NO_TASK);
}

static void by_length(void **state)
{
    struct route_ask q = ask("summary");
    q.input = 9000; /* a thousand are left in the small one */
    struct route_found f = route_pick(&table, &q);
    assert_true(f.model == SMALL && f.max_tokens == 1000);
    q.input = 9800;
    finds(&q, BIG, false);
    q.input = 199900;
    assert_int_equal(route_pick(&table, &q).why, ROUTE_TOO_LONG);
    q.input = UINT64_MAX;
    assert_int_equal(route_pick(&table, &q).why, ROUTE_TOO_LONG);
    q = ask("summary");
    q.output = 0;
    assert_int_equal(route_pick(&table, &q).why, ROUTE_TOO_LONG);
}

static void by_who_is_there(void **state)
{
    uint64_t down[3] = {10, 0, 0};
    struct route_ask q = ask("code");
    q.down = down;
    finds(&q, SMALL, true);
    q.tried = 1u << SMALL;
    finds(&q, OURS, false);
    q.tried |= 1u << OURS;
    struct route_found f = route_pick(&table, &q);
    assert_true(f.why == ROUTE_DOWN && f.until_ms == 10);
    q.now_ms = 10;
    finds(&q, BIG, false);
    q.tried |= 1u << BIG;
    assert_int_equal(route_pick(&table, &q).why, ROUTE_TRIED);
}

static void by_budget(void **state)
{
    struct route_ask q = ask("code");
    q.limit = 1000000;
    q.spent = 1000000 - 18750 - 2000 * 75;
    finds(&q, BIG, true);
    q.spent++;
    finds(&q, SMALL, true);
    q.spent = q.limit; /* what costs nothing is still there */
    finds(&q, OURS, false);
    q.task = SPAN("summary");
    assert_int_equal(route_pick(&table, &q).why, ROUTE_DEAR);
    q.limit = UINT64_MAX;
    q.spent = UINT64_MAX; /* past what can be counted */
    assert_int_equal(route_pick(&table, &q).why, ROUTE_DEAR);
}

/* Whatever is down, tried, dear or too long: a private conversation gets a model of its list, or none; for a summary
 * too. */
static void private_stays_private(void **state)
{
    const struct span mine = SPAN("ours"), none = SPAN("nobody");
    const struct model_privacy listed = {WHO_LISTED, &mine, 1}, empty = {WHO_LISTED, &none, 1}, unsaid = {0};
    static const char *const tasks[] = {"code", "summary", "plan"};
    uint64_t down[3];
    for (unsigned i = 0; i < 3u * 8 * 8 * 4; i++) {
        struct route_ask q = ask(tasks[i % 3]);
        q.tried = i / 3 % 8;
        for (unsigned k = 0; k < 3; k++)
            down[k] = i / 24 >> k & 1 ? 10 : 0;
        q.down = down;
        q.input = i / 192 & 1 ? 9900 : 1000;
        q.limit = i / 384 & 1 ? 100 : UINT64_MAX;
        q.privacy = &listed;
        struct route_found f = route_pick(&table, &q);
        bool free = i % 3 == 0 && !(q.tried >> OURS & 1) && down[OURS] == 0;
        assert_int_equal(f.why == ROUTE_FOUND, free);
        assert_true(!free || (f.model == OURS && !f.other));
        q.privacy = &empty;
        assert_int_equal(route_pick(&table, &q).why, ROUTE_PRIVATE);
        q.privacy = &unsaid;
        assert_int_equal(route_pick(&table, &q).why, ROUTE_PRIVATE);
        q.privacy = NULL;
        assert_int_equal(route_pick(&table, &q).why, ROUTE_PRIVATE);
    }
}

/* With an eighth of the window free for the answer, or for all of it. */
static void roomy(void **state)
{
    struct route_ask q = ask("summary");
    q.output = 4000;
    q.input = 200000 - 4000 + 1;
    assert_int_equal(route_pick(&table, &q).why, ROUTE_FOUND);
    q.roomy = true;
    assert_int_equal(route_pick(&table, &q).why, ROUTE_TOO_LONG);
    q.input = 200000 - 4000;
    assert_int_equal(route_pick(&table, &q).why, ROUTE_FOUND);
    q.output = 32000;
    assert_int_equal(route_pick(&table, &q).why, ROUTE_TOO_LONG);
    q.input = 200000 - 25000;
    assert_int_equal(route_pick(&table, &q).why, ROUTE_FOUND);
}

static void windows(void **state)
{
    const struct span listed[] = {SPAN("small"), SPAN("ours")};
    const struct model_privacy two = {WHO_LISTED, listed, 2}, nobody = {.who = WHO_NOBODY};
    struct route_ask q = ask("code");
    assert_int_equal(route_window(&table, &q), 200000);
    q.privacy = &two;
    assert_int_equal(route_window(&table, &q), 50000);
    q.task = SPAN("summary");
    assert_int_equal(route_window(&table, &q), 10000);
    q.task = SPAN("plan");
    assert_int_equal(route_window(&table, &q), 0);
    q.privacy = &nobody;
    q.task = SPAN("code");
    assert_int_equal(route_window(&table, &q), 0);
}

static void words(void **state)
{
    for (enum route_why a = ROUTE_NO_TASK; a <= ROUTE_DOWN; a++)
        for (enum route_why b = ROUTE_NO_TASK; b < a; b++)
            assert_string_not_equal(route_words(a), route_words(b));
}

/* ---- sums ---- */

static void costs(void **state)
{
    const struct model_price p = {15000000, 1500000, 18750000, 75000000}, tiny = {.input = 1};
    struct model_usage u = {true, 25, 7, 3, 15, 5};
    uint64_t c;
    assert_int_equal(meter_cost(&p, &u, &c), 0);
    assert_int_equal(c, 25 * 15 + 11 /* 10.5 */ + 57 /* 56.25: together 66.75 */ + 15 * 75 - 1);
    u = (struct model_usage){.input = 1};
    assert_int_equal(meter_cost(&tiny, &u, &c), 0);
    assert_int_equal(c, 1); /* never nothing for something */
    u.input = 1000001;
    assert_int_equal(meter_cost(&tiny, &u, &c), 0);
    assert_int_equal(c, 2);
    u = (struct model_usage){0};
    assert_int_equal(meter_cost(&p, &u, &c), 0);
    assert_int_equal(c, 0);
}

/* What is past counting costs everything, and stays so. */
static void sums_do_not_wrap(void **state)
{
    const struct model_price most = {PRICE_MAX, PRICE_MAX, PRICE_MAX, PRICE_MAX}, more = {.input = PRICE_MAX + 1};
    struct model_usage u = {.input = 999999, .cache_read = 999999, .cache_write = 999999, .output = 999999};
    struct meter m = {0};
    uint64_t c = 0;
    assert_int_equal(meter_cost(&most, &u, &c), 0);
    assert_int_equal(c, UINT64_C(4) * 999999 * 1000000);
    u.input = TOKENS_MAX;
    assert_int_equal(meter_cost(&most, &u, &c), -1);
    assert_true(c == UINT64_MAX);
    u = (struct model_usage){.input = TOKENS_MAX + 1};
    assert_int_equal(meter_cost(&(struct model_price){.input = 1}, &u, &c), -1);
    u = (struct model_usage){.input = 1};
    assert_int_equal(meter_cost(&more, &u, &c), -1);
    assert_int_equal(meter_add(&m, &u, UINT64_MAX - 1), 0);
    assert_int_equal(meter_add(&m, &u, 2), -1);
    assert_true(m.cost == UINT64_MAX && m.answers == 2 && m.unknown == 2 && m.input == 2);
    assert_int_equal(meter_add(&m, &u, 1), -1);
    assert_true(m.cost == UINT64_MAX);
    assert_false(meter_allows(UINT64_MAX, m.cost, 0));
    assert_false(meter_allows(UINT64_MAX, 0, UINT64_MAX));
    assert_true(meter_allows(UINT64_MAX, UINT64_MAX - 1, 1));
    assert_false(meter_allows(5, 6, 0));
    assert_true(meter_allows(6, 6, 0));
    assert_false(meter_allows(6, 6, 1));
}

static void guesses(void **state)
{
    assert_int_equal(meter_guess(0), 0);
    assert_int_equal(meter_guess(1), 1);
    assert_int_equal(meter_guess(3), 1);
    assert_int_equal(meter_guess(4), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_it_was_written),
        cmocka_unit_test(what_is_no_table),
        cmocka_unit_test(a_full_table),
        cmocka_unit_test(by_task_and_price),
        cmocka_unit_test(by_length),
        cmocka_unit_test(by_who_is_there),
        cmocka_unit_test(by_budget),
        cmocka_unit_test(private_stays_private),
        cmocka_unit_test(roomy),
        cmocka_unit_test(windows),
        cmocka_unit_test(words),
        cmocka_unit_test(costs),
        cmocka_unit_test(sums_do_not_wrap),
        cmocka_unit_test(guesses),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
