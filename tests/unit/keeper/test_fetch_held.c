/* What a source says to be told the next time, and what of its values is to be ended after another one took their
 * place. */
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

static const struct credential program = {.name = SPAN("c"), .source = SOURCE_EXEC, .settings = MANY};

static int setup(void **state)
{
    static const struct fetch_ops ops = {tell_time, tell_date, send_it, NULL};
    now = 1000;
    nsent = 0;
    sources = sources_new(0);
    fetches = fetches_new(sources, &ops, NULL);
    fetches_policy(fetches, &table);
    return 0;
}

static int teardown(void **state)
{
    fetches_free(&fetches);
    sources_free(&sources);
    return 0;
}

static enum fetch_found need(uint64_t refused)
{
    uint64_t wait = 0;
    return fetch_need(fetches, &program, refused, &wait, &e);
}

static void used_after(uint64_t ms, uint64_t questions)
{
    now += ms;
    assert_int_equal(need(0), FETCH_HERE);
    assert_int_equal(nsent, questions);
}

/* The last question's setting; empty: it had none of that name. */
static struct span told(const char *key)
{
    static struct wire_fetch w;
    struct msg_in m = msg_in(span_of(sent, nbytes));
    assert_int_equal(wire_get_fetch(&m, &w), 0);
    return wire_setting(&w, span_str(key), 0);
}

static void answer(struct wire_fetched w)
{
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024);
    wire_put_fetched(&b, &w);
    assert_int_equal(fetch_answered(fetches, sent_id, dynbuf_span(&b)), 0);
    dynbuf_free(&b);
}

static void holds(const char *value, uint64_t life_ms, const char *held)
{
    answer(
        (struct wire_fetched){.ok = true, .value = span_str(value), .lifetime_ms = life_ms, .keep = span_str(held)});
}

static void what_a_source_holds_is_told_with_the_next_question(void **state)
{
    assert_int_equal(need(0), FETCH_LATER);
    assert_int_equal(told("held").n, 0);
    holds("value-canary-1", 100000, "h1");
    used_after(79999, 1); /* a first value replaces nothing */
    used_after(1, 2);
    assert_true(span_eq(told("held"), SPAN("h1")) && told("anew").n == 0);
    answer((struct wire_fetched){.why = SPAN("a failure")}); /* keeps it */
    used_after(FETCH_FAILED_MS, 3);
    assert_true(span_eq(told("held"), SPAN("h1")));
    holds("value-canary-2", 100000, "");
    used_after(80000, 4);
    assert_int_equal(told("held").n, 0);
}

static void what_was_replaced_is_ended_soon(void **state)
{
    assert_int_equal(need(0), FETCH_LATER);
    holds("value-canary-1", 100000, "h1");
    used_after(80000, 2);
    holds("value-canary-2", 100000, "h2");
    used_after(FETCH_BACK_MS - 1, 2);
    used_after(1, 3);
    assert_true(span_eq(told("held"), SPAN("h2")));
    holds("value-canary-2", 95000, "h3");
    used_after(75999, 3); /* the same value again replaced nothing */
    used_after(1, 4);
    holds("value-canary-3", 100000, "");
    used_after(FETCH_BACK_MS, 4); /* nothing is held: nothing to be ended */
}

/* Who looks whether the source works, and whose value the upstream would not take, is not served by the same again.
 */
static void another_one_is_asked_for_where_the_same_is_of_no_use(void **state)
{
    uint64_t wait;
    assert_int_equal(need(0), FETCH_LATER);
    holds("value-canary-1", 100000, "h1");
    assert_int_equal(fetch_again(fetches, &program, &wait, &e), FETCH_LATER);
    assert_true(span_eq(told("held"), SPAN("h1")) && told("anew").n > 0);
    holds("value-canary-2", 100000, "h2");
    assert_int_equal(need(fetch_version(fetches, &program)), FETCH_LATER);
    assert_true(span_eq(told("held"), SPAN("h2")) && told("anew").n > 0);
}

#define FRESH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static enum fetch_found reaches(void)
{
    static const struct credential c = {.name = SPAN("c"), .source = SOURCE_EXEC, .settings = REACHING};
    uint64_t wait = 0;
    return fetch_need(fetches, &c, 0, &wait, &e);
}

/* A program is told where it may go; what proves a server is its own affair. Another address is another source. */
static void what_a_program_may_reach(void **state)
{
    static const struct span range[] = {SPAN("127.0.0.1/32")};
    static struct wire_fetch w;
    server = (struct upstream){.address = SPAN("192.0.2.7"),
                               .crl_pem = SPAN("lists"),
                               .ca_pem = SPAN("a certificate"),
                               .pin = range,
                               .npins = 1,
                               .allow_private = range,
                               .nallow_private = 1};
    assert_int_equal(reaches(), FETCH_LATER);
    struct msg_in m = msg_in(span_of(sent, nbytes));
    assert_int_equal(wire_get_fetch(&m, &w), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(w.to.host.n, 0);
    assert_int_equal(w.nhosts, 2);
    assert_true(span_eq(w.host[0].host, SPAN("vault.example")) && w.host[0].port == 443 && w.host[0].ncidrs == 0);
    assert_true(span_eq(w.host[1].host, SPAN("login.example")) && w.host[1].port == 8443);
    assert_true(span_eq(w.host[1].address, SPAN("192.0.2.7")));
    assert_true(w.host[1].ncidrs == 1 && span_eq(w.host[1].cidr[0], range[0]));
    assert_true(w.host[1].ca_pem.n == 0 && w.host[1].crl_pem.n == 0 && w.host[1].npins == 0);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-1"), .lifetime_ms = 60000});
    assert_int_equal(reaches(), FETCH_HERE);
    server.address = SPAN("192.0.2.8");
    assert_int_equal(reaches(), FETCH_LATER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(what_a_source_holds_is_told_with_the_next_question),
        FRESH(what_was_replaced_is_ended_soon),
        FRESH(another_one_is_asked_for_where_the_same_is_of_no_use),
        FRESH(what_a_program_may_reach),
    };
    return cmocka_run_group_tests_name("fetch-held", tests, NULL, NULL);
}
