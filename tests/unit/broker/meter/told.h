/* Budgets as callers are told of them: a part of test_serve.c, which has it behind its own desk and callers. */
#ifndef TESTS_UNIT_BROKER_METER_TOLD_H
#define TESTS_UNIT_BROKER_METER_TOLD_H

#include "broker/budgets.h"

enum { TOLD_TENANTS = 33, TOLD_MODELS = 256 };

static void has_budgets(const char *lines)
{
    static struct budgets all;
    assert_int_equal(budgets_read(span_str(lines), &all), 0);
    serve.store->budgets = &all;
    for (size_t i = 0; i < SERVE_LANES - 1; i++)
        if (serve.more[i] != NULL)
            serve.more[i]->budgets = &all;
}

/* POST /chat is for the caller's own tenant, whatever else is asked. */
static void a_refusal_says_whose_budget_it_is(void **state)
{
    struct asker *a = knocks(&own_door);
    has_budgets("default day 0 -\nacme month - 0\n");
    asks(a, "", "POST /chat?tenant=acme", "{\"message\":\"x\"}");
    until(a, "HTTP/1.1 403 ");
    until(a, "tenant default may ask no model: its tokens for a day is set to 0");
    leaves(a);
}

static size_t told(const struct asker *a, const char *what)
{
    struct span rest = dynbuf_span(&a->heard);
    size_t n = 0, at;
    for (; (at = span_find(rest, span_str(what))) < rest.n; n++)
        rest = span_from(rest, at + 1);
    return n;
}

/* One of which no sum has room in an answer is told in the next one, with its budgets. */
static void budgets_are_told_once_and_so_many_in_one_answer(void **state)
{
    char name[16];
    (void)fix_chat("a", NULL);
    struct claim c = fix_claim(1);
    for (unsigned i = 0; i < TOLD_MODELS; i++) {
        snprintf(name, sizeof(name), "m%u", i);
        const struct bstore_asked asked = {span_str(name), SPAN("t"), 1, 0, 0, 0};
        fix_ok(bstore_spent(fix, &c, &(struct used){.tokens = 1}, &asked));
    }
    (void)fix_chat("b", NULL);
    c = fix_claim(2);
    fix_ok(bstore_spent(fix, &c, &(struct used){.tokens = 1}, &fix_asked));
    has_budgets("* month 1000 -\n");
    struct asker *a = knocks(&own_door);
    asks(a, "", "GET /usage?tenant=*&by=tenant,model&from=1970-01-01", "");
    until(a, "\"next\":");
    assert_int_equal(told(a, "\"per\":"), 1);
    assert_true(heard(a, "\"tokens_left\":744"));
    leaves(a);
    for (unsigned i = 0; i < TOLD_TENANTS; i++) {
        snprintf(name, sizeof(name), "c%u", i);
        (void)fix_chat(name, NULL);
    }
    a = knocks(&own_door);
    asks(a, "", "GET /usage?tenant=*&by=tenant&from=1970-01-01", "");
    until(a, "\"next\":");
    assert_int_equal(told(a, "\"per\":"), 32);
    leaves(a);
}

#endif
