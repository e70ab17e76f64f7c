/* What models were asked is metered with what a turn has used, once, by tenant, conversation, day, model and task;
 * and summed up by what somebody wants to see it. */
#include "tests/unit/broker/store_fix.h"

#include "broker/usage.h"

#define DAY_MS UINT64_C(86400000)
#define DAY    UINT64_C(20787) /* 2026-11-30 */

static struct bstore_usage read_of(const char *tenant, const struct bstore_usage_ask *ask)
{
    struct bstore_usage u;
    fix_ok(bstore_usage(fix, span_str(tenant), ask, &fix_arena, &u));
    return u;
}

static struct bstore_usage read_all(const char *tenant)
{
    return read_of(tenant, &(struct bstore_usage_ask){.to = BSTORE_DAY_MAX});
}

static void spend(const struct claim *c, const char *model, const char *task, uint64_t tokens, uint64_t cost)
{
    const struct used used = {.tokens = tokens, .cost_micro = cost};
    const struct bstore_asked asked = {span_str(model), span_str(task), tokens, 0, 0, 0};
    fix_ok(bstore_spent(fix, c, &used, &asked));
}

static void what_a_turn_uses_is_metered_once(void **state)
{
    fix_now = DAY * DAY_MS + 7;
    struct bstore_chatted t = fix_chat("acme", NULL), other = fix_chat("other", NULL);
    struct claim c = fix_claim(1), late;
    fix_plan(&c, 1, CALL_READ);
    const struct bstore_call call = {SPAN("shell"), SPAN("{\"command\":\"make\"}"), CALL_READ};
    const struct bstore_plan same = {SPAN("[\"answer\"]"), {0, 10, 3}, &call, 1, fix_asked};
    assert_int_equal(bstore_plan(fix, &c, 1, &same), BS_AGAIN);
    struct bstore_usage u = read_all("acme");
    assert_int_equal(u.n, 1);
    assert_true(u.row[0].day == DAY && id_eq(&u.row[0].conversation, &t.conversation));
    assert_true(span_eq(u.row[0].asked.model, SPAN("small")) && span_eq(u.row[0].asked.task, SPAN("code")));
    assert_true(u.row[0].times == 1 && u.row[0].cost_micro == 3 && u.row[0].asked.input == 5);
    assert_true(u.row[0].asked.output == 3 && u.row[0].asked.cache_read == 1 && u.row[0].asked.cache_write == 1);
    /* an attempt of which nothing is kept counts as well, and what a late worker says does not */
    fix_ok(bstore_spent(fix, &c, &(struct used){.tokens = 10, .cost_micro = 4}, &fix_asked));
    spend(&c, "large", "code", 7, 2);
    late = c;
    fix_now += CLAIM_MS;
    assert_int_equal(bstore_spent(fix, &late, &(struct used){.tokens = 1}, &fix_asked), BS_FENCED);
    u = read_all("acme");
    assert_int_equal(u.n, 2);
    assert_true(span_eq(u.row[0].asked.model, SPAN("large")) && u.row[0].cost_micro == 2);
    assert_true(u.row[1].times == 2 && u.row[1].asked.input == 10 && u.row[1].cost_micro == 7);
    const struct bstore_turn_row *row = fix_row("acme", &t.turn);
    assert_int_equal(row->used.cost_micro, 3 + 4 + 2);
    assert_int_equal(row->used.tokens, 10 + 10 + 7);
    /* nobody sees another's */
    assert_int_equal(read_all("other").n, 0);
    const struct bstore_usage_ask foreign = {.to = BSTORE_DAY_MAX, .conversation = t.conversation};
    assert_int_equal(read_of("other", &foreign).n, 0);
    assert_int_equal(read_of("acme", &foreign).n, 2);
    (void)other;
}

static void sums_stand_still_and_names_are_cut(void **state)
{
    static char name[2 * BSTORE_NAME_MAX + 1];
    fix_now = DAY * DAY_MS;
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct claim c = fix_claim(1);
    uint64_t n;
    const struct bstore_asked most = {SPAN("m"), SPAN("t"), UINT64_MAX, INT64_MAX, 1, 0};
    const struct bstore_plan plan = {SPAN("a"), {0, INT64_MAX, INT64_MAX}, NULL, 0, most};
    const struct bstore_settle settle = {.messages = 0};
    for (uint64_t step = 1; step <= 2; step++) { /* what cannot be counted costs the most, and the turn goes on */
        fix_ok(bstore_step(fix, &c, step, SPAN("model"), &n));
        fix_ok(bstore_plan(fix, &c, step, &plan));
        fix_ok(bstore_settle(fix, &c, step, &settle));
    }
    struct bstore_usage u = read_all("acme");
    assert_int_equal(u.n, 1);
    assert_int_equal(u.row[0].times, 2);
    assert_int_equal(u.row[0].cost_micro, INT64_MAX);
    assert_true(u.row[0].asked.input == INT64_MAX && u.row[0].asked.output == INT64_MAX);
    assert_int_equal(u.row[0].asked.cache_read, 2);
    assert_int_equal(fix_row("acme", &t.turn)->used.cost_micro, INT64_MAX);
    memset(name, 'n', sizeof(name) - 1);
    spend(&c, name, "", 1, 1);
    u = read_all("acme");
    assert_int_equal(u.n, 2);
    assert_true(u.row[1].asked.model.n == BSTORE_NAME_MAX && span_eq(u.row[1].asked.task, SPAN("unknown")));
}

static void days_and_pages(void **state)
{
    struct bstore_usage_ask ask = {.from = DAY + 1, .to = DAY + 2};
    struct bstore_usage u;
    char model[16];
    fix_now = DAY * DAY_MS;
    struct bstore_chatted t = fix_chat("acme", NULL);
    unsigned n = 0, seen = 0;
    for (uint64_t day = 0; day < 4; day++) {
        fix_now = (DAY + day) * DAY_MS + 7;
        struct claim c = fix_claim(1);
        for (n = 0; n < BSTORE_READ_MAX; n++) {
            snprintf(model, sizeof(model), "m%04u", n);
            spend(&c, model, "t", 1, 1);
        }
        fix_ok(bstore_release(fix, &c, 0));
    }
    for (unsigned which = 0; which < 2; which++, seen = 0) { /* of all, and of one conversation */
        ask.conversation = which ? t.conversation : (struct id){{0}};
        ask.after = NULL;
        do {
            u = read_of("acme", &ask);
            for (size_t i = 0; i < u.n; i++, seen++) {
                snprintf(model, sizeof(model), "m%04u", seen % BSTORE_READ_MAX);
                assert_true(span_eq(u.row[i].asked.model, span_str(model)));
                assert_int_equal(u.row[i].day, DAY + 1 + seen / BSTORE_READ_MAX);
            }
            ask.after = u.n ? &u.row[u.n - 1] : NULL;
        } while (u.n == BSTORE_READ_MAX);
        assert_int_equal(seen, 2 * BSTORE_READ_MAX);
    }
    ask = (struct bstore_usage_ask){.from = BSTORE_DAY_MAX + 1};
    assert_int_equal(bstore_usage(fix, SPAN("acme"), &ask, &fix_arena, &u), BS_CONFLICT);
}

static void tenants_follow_each_other(void **state)
{
    struct span next = SPAN_NONE;
    (void)fix_chat("b", NULL);
    (void)fix_chat("a", NULL);
    fix_ok(bstore_tenant(fix, next, &fix_arena, &next));
    assert_true(span_eq(next, SPAN("a")));
    fix_ok(bstore_tenant(fix, next, &fix_arena, &next));
    assert_true(span_eq(next, SPAN("b")));
    assert_int_equal(bstore_tenant(fix, next, &fix_arena, &next), BS_NONE);
}

/* --- summed up -------------------------------------------------------------------------------- */

static struct usage_row one_of(const char *model, const char *day, uint64_t cost)
{
    return (struct usage_row){.key = {[USAGE_TENANT] = SPAN("acme"),
                                      [USAGE_MODEL] = span_str(model),
                                      [USAGE_TASK] = SPAN("code"),
                                      [USAGE_DAY] = span_str(day)},
                              .sum = {[USAGE_TIMES] = 1, [USAGE_COST] = cost}};
}

static void sums_are_by_what_is_asked(void **state)
{
    struct usage_row room[2];
    struct usage u = {.row = room, .room = 2};
    const struct usage_row a = one_of("large", "2026-11-29", 3), b = one_of("small", "2026-11-30", 4),
                           c = one_of("large", "2026-11-30", 5), d = one_of("third", "2026-11-30", UINT64_MAX);
    assert_int_equal(usage_by(SPAN("model"), &u.by), 0);
    assert_int_equal(usage_add(&u, &b), 0);
    assert_int_equal(usage_add(&u, &a), 0);
    assert_int_equal(usage_add(&u, &c), 0);
    assert_int_equal(usage_add(&u, &d), -1); /* there is no room, and nothing of it is anywhere */
    usage_sort(&u);
    assert_true(u.n == 2 && span_eq(room[0].key[USAGE_MODEL], SPAN("large")) && room[0].sum[USAGE_COST] == 8);
    assert_true(room[0].key[USAGE_DAY].n == 0 && room[0].key[USAGE_TENANT].n == 0);
    assert_true(room[1].sum[USAGE_COST] == 4 && room[1].sum[USAGE_TIMES] == 1 && room[0].sum[USAGE_TIMES] == 2);
    u = (struct usage){.row = room, .room = 2};
    assert_int_equal(usage_by(SPAN("tenant,task"), &u.by), 0);
    assert_int_equal(usage_add(&u, &a), 0);
    assert_int_equal(usage_add(&u, &d), 0);
    assert_int_equal(usage_add(&u, &d), 0);
    assert_true(u.n == 1 && room[0].sum[USAGE_COST] == INT64_MAX && room[0].sum[USAGE_TIMES] == 3);
    static const char *const wrong[] = {"", "model,", "model,model", "models", "model day", "MODEL"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(usage_by(span_str(wrong[i]), &u.by), -1);
}

static void days_are_read_and_written(void **state)
{
    static const char *const wrong[] = {"",           "2026-11-31", "2026-13-01",  "2026-00-01", "2026-1-01",
                                        "1969-12-31", "2070-01-01", "2026-11-30-", "20261130",   "2026-11-3x"};
    char text[USAGE_DAY_TEXT + 1];
    uint64_t day;
    assert_int_equal(usage_day_of(SPAN("2026-11-30"), &day), 0);
    assert_int_equal(day, DAY);
    for (day = 0; day < BSTORE_DAY_MAX - 100; day += 13) {
        uint64_t back;
        usage_day_text(day, text);
        assert_int_equal(usage_day_of(span_str(text), &back), 0);
        assert_int_equal(back, day);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(usage_day_of(span_str(wrong[i]), &day), -1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(what_a_turn_uses_is_metered_once),
                                       T(sums_stand_still_and_names_are_cut),
                                       T(days_and_pages),
                                       T(tenants_follow_each_other),
                                       cmocka_unit_test(sums_are_by_what_is_asked),
                                       cmocka_unit_test(days_are_read_and_written)};
    return FIX_MAIN(tests);
}
