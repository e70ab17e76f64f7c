/* A value that is asked for in two steps: the second is asked with what the first one gave, which goes nowhere else.
 */
#include "tests/kit.h"

#include "proxy/fetcher/wire_fetch.h"
#include "proxy/keeper/sources/fetch.h"
#include "tests/unit/keeper/fetch_fakes.h"

struct policy {
    int unused;
};
static struct policy table;
static uint64_t now, sent_id, nsent;
static uint8_t sent[8192];
static size_t nbytes;
static struct sources *sources;
static struct fetches *fetches;
static struct err e;

static uint64_t tell_time(void *arg)
{
    return now;
}

static int64_t tell_date(void *arg)
{
    return 1795424400; /* 2026-11-23T09:00:00Z */
}

static int send_it(void *arg, uint64_t id, struct span payload)
{
    sent_id = id;
    nsent++;
    nbytes = payload.n;
    assert_true(nbytes <= sizeof(sent));
    memcpy(sent, payload.p, nbytes);
    return 0;
}

static struct credential cred(unsigned i)
{
    return (struct credential){.name = SPAN("c"), .source = SOURCE_EXEC, .settings = i};
}

static int setup(void **state)
{
    static const struct fetch_ops ops = {tell_time, tell_date, send_it, NULL};
    static char variable[] = "TOKEN=token-canary-1";
    char *env[] = {variable, NULL};
    memcpy(variable, "TOKEN=token-canary-1", sizeof(variable)); /* it was wiped */
    now = 1000;
    nsent = 0;
    sources = sources_new(0);
    assert_int_equal(sources_take_env(sources, env, &e), 0);
    fetches = fetches_new(sources, &ops, NULL);
    fetches_policy(fetches, &table);
    sources_fetches(sources, fetches);
    return 0;
}

static int teardown(void **state)
{
    fetches_free(&fetches);
    sources_free(&sources);
    return 0;
}

static void answer(struct wire_fetched w)
{
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024);
    wire_put_fetched(&b, &w);
    assert_int_equal(fetch_answered(fetches, sent_id, dynbuf_span(&b)), 0);
    dynbuf_free(&b);
}

static void gives(const char *value, uint64_t life_ms)
{
    answer((struct wire_fetched){.ok = true, .value = span_str(value), .lifetime_ms = life_ms});
}

static void fails(const char *why)
{
    answer((struct wire_fetched){.why = span_str(why)});
}

static enum fetch_found need_after(unsigned i, uint64_t refused)
{
    struct credential c = cred(i);
    uint64_t wait = 0;
    enum fetch_found found = fetch_need(fetches, &c, refused, &wait, &e);
    assert_true(found != FETCH_LATER || wait == sent_id);
    return found;
}

static void waits_for(unsigned i, uint64_t questions)
{
    assert_int_equal(need_after(i, 0), FETCH_LATER);
    assert_int_equal(nsent, questions);
}

static void is(unsigned i, const char *value, uint64_t questions)
{
    struct credential c = cred(i);
    assert_int_equal(need_after(i, 0), FETCH_HERE);
    struct secret *s = sources_value(sources, &c, &e);
    assert_true(s != NULL && span_eq(secret_bytes(s), span_str(value)));
    secret_free(&s);
    assert_int_equal(nsent, questions);
}

static void refused_with(unsigned i, const char *why, uint64_t questions)
{
    assert_int_equal(need_after(i, 0), FETCH_REFUSED);
    assert_string_equal(e.text, why);
    assert_int_equal(nsent, questions);
}

/* The last question. */
static const struct wire_fetch *asked(void)
{
    static struct wire_fetch w;
    struct msg_in m = msg_in(span_of(sent, nbytes));
    assert_int_equal(wire_get_fetch(&m, &w), 0);
    assert_int_equal(w.timeout_ms, 2000);
    return &w;
}

static void is_first(void)
{
    assert_true(span_eq(asked()->to.host, SPAN("login.example")) && asked()->to.port == 8443);
    assert_true(span_eq(wire_setting(asked(), SPAN("assertion"), 0), SPAN("token-canary-1")));
    assert_int_equal(asked()->nsettings, 3);
}

static void is_second(const char *token, const char *options)
{
    assert_true(span_eq(asked()->to.host, SPAN("sts.example")) && asked()->to.port == 443);
    assert_true(span_eq(wire_setting(asked(), SPAN("subject_token"), 0), span_str(token)));
    assert_true(span_eq(wire_setting(asked(), SPAN("options"), 0), span_str(options)));
    assert_int_equal(asked()->nsettings, 4); /* these, url and timeout: nothing that the first was asked with */
}

static void both(unsigned i, uint64_t life_ms)
{
    waits_for(i, nsent + 1);
    is_first();
    gives("wide-canary-1", life_ms);
    waits_for(i, nsent + 1);
    is_second("wide-canary-1", "{}");
    gives("narrow-canary-1", 0);
}

static void the_second_is_asked_with_the_first(void **state)
{
    for (int k = 0; k < 3; k++)
        waits_for(NARROW, 1);
    is_first();
    gives("wide-canary-1", 100000);
    for (int k = 0; k < 3; k++)
        waits_for(NARROW, 2);
    is_second("wide-canary-1", "{}");
    gives("narrow-canary-1", 50000);
    is(NARROW, "narrow-canary-1", 2);
    now += 40000; /* the second alone is near its end */
    is(NARROW, "narrow-canary-1", 3);
    is_second("wide-canary-1", "{}");
    gives("narrow-canary-2", 50000);
    is(NARROW, "narrow-canary-2", 3);
}

static void who_asks_the_same_first_shares_it(void **state)
{
    both(NARROW, 100000);
    waits_for(NARROWER, 3);
    is_second("wide-canary-1", "{1}");
    gives("narrower-canary-1", 0);
    is(NARROWER, "narrower-canary-1", 3);
    is(NARROW, "narrow-canary-1", 3);
    is(WIDE, "wide-canary-1", 3);
}

static void it_ends_with_what_it_was_asked_with(void **state)
{
    both(NARROW, 600000); /* longer than a value that says nothing is used */
    now += 599999;
    is(NARROW, "narrow-canary-1", 3);
    is_first(); /* anew, and used meanwhile */
    now += 1;
    waits_for(NARROW, 3);
    gives("wide-canary-2", 10000);
    waits_for(NARROW, 4);
    is_second("wide-canary-2", "{}");
    gives("narrow-canary-2", 3600000); /* which is not so */
    now += 9999;
    is(NARROW, "narrow-canary-2", 5);
    now += 1;
    waits_for(NARROW, 5);
}

static void what_fails_is_named(void **state)
{
    waits_for(NARROW, 1);
    fails("no");
    refused_with(NARROW, "no", 1);
    now += FETCH_FAILED_MS;
    waits_for(NARROW, 2);
    gives("wide-canary-1", 100000);
    waits_for(NARROW, 3);
    fails("no");
    refused_with(NARROW, "downscope: no", 3);
    assert_int_equal(need_after(WIDE, 0), FETCH_HERE);
    now += FETCH_FAILED_MS; /* perhaps it was no good: that one is asked for anew */
    waits_for(NARROW, 4);
    is_first();
    gives("wide-canary-2", 100000);
    waits_for(NARROW, 5);
    is_second("wide-canary-2", "{}");
    gives("a\nb", 0);
    assert_int_equal(need_after(NARROW, 0), FETCH_REFUSED);
    assert_int_equal(strncmp(e.text, "downscope: ", 11), 0);
    now += FETCH_FAILED_MS;
    waits_for(NARROW, 6); /* but not each time */
    is_second("wide-canary-2", "{}");
    gives("narrow-canary-1", 0);
    is(NARROW, "narrow-canary-1", 6);
}

static void what_lives_is_used_while_the_first_fails(void **state)
{
    both(NARROW, 100000);
    now += 80000;
    is(NARROW, "narrow-canary-1", 3);
    fails("no");
    is(NARROW, "narrow-canary-1", 3);
    now += 20000;
    waits_for(NARROW, 4);
    fails("no");
    refused_with(NARROW, "no", 4);
}

static void one_that_an_upstream_refuses_is_asked_for_again(void **state)
{
    struct credential c = cred(NARROW);
    both(NARROW, 100000);
    uint64_t version = fetch_version(fetches, &c);
    assert_int_not_equal(version, 0);
    assert_int_equal(need_after(NARROW, version), FETCH_LATER);
    is_second("wide-canary-1", "{}");
    is(NARROW, "narrow-canary-1", 3);
    gives("narrow-canary-2", 0);
    is(NARROW, "narrow-canary-2", 3);
    assert_int_not_equal(fetch_version(fetches, &c), version);
}

static void who_looks_sees_both(void **state)
{
    struct credential c = cred(NARROW);
    uint64_t wait = 0;
    both(NARROW, 100000);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(fetch_again(fetches, &c, &wait, &e), FETCH_LATER);
        is_first();
        is(NARROW, "narrow-canary-1", nsent); /* meanwhile */
        gives("wide-canary-2", 100000);
        assert_int_equal(fetch_go_on(fetches, &c, &wait, &e), FETCH_LATER);
        assert_int_equal(wait, sent_id);
        is_second("wide-canary-2", "{}");
        assert_int_equal(fetch_go_on(fetches, &c, &wait, &e), FETCH_LATER);
        assert_int_equal(nsent, 4 + 2 * (uint64_t)k);
        if (k == 0)
            gives("narrow-canary-1", 0);
        else
            fails("no");
        assert_int_equal(fetch_go_on(fetches, &c, &wait, &e), FETCH_HERE);
        assert_int_equal(fetch_outcome(fetches, &c, &e), -k);
    }
    assert_string_equal(e.text, "downscope: no");
    assert_int_equal(fetch_again(fetches, &c, &wait, &e), FETCH_LATER);
    fails("none");
    assert_int_not_equal(fetch_go_on(fetches, &c, &wait, &e), FETCH_LATER);
    assert_int_equal(fetch_outcome(fetches, &c, &e), -1);
    struct credential one = cred(WIDE);
    assert_int_equal(fetch_go_on(fetches, &one, &wait, &e), FETCH_HERE); /* it has no second step */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_second_is_asked_with_the_first),
        TEST(who_asks_the_same_first_shares_it),
        TEST(it_ends_with_what_it_was_asked_with),
        TEST(what_fails_is_named),
        TEST(what_lives_is_used_while_the_first_fails),
        TEST(one_that_an_upstream_refuses_is_asked_for_again),
        TEST(who_looks_sees_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
