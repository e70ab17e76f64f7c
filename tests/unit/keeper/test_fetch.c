/* Values that are asked for elsewhere: when, how often, for how long, and what stays of them. D24 D36. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include <openssl/ec.h>
#include <openssl/pem.h>

#include "proxy/keeper/sources/fetch.h"
#include "proxy/keeper/sources/minted.h"
#include "proxy/keeper/value.h"
#include "tests/unit/keeper/fetch_fakes.h"
#include "proxy/fetcher/wire_fetch.h"

struct policy {
    int unused;
};
static struct policy table;
struct vault {
    int unused;
};
static struct vault store;

static uint64_t now, sent_id, nsent;
static bool deaf;
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
    if (deaf)
        return -1;
    sent_id = id;
    nsent++;
    nbytes = payload.n;
    assert_true(nbytes <= sizeof(sent));
    memcpy(sent, payload.p, nbytes);
    return 0;
}

static bool full;
static char kept[64];
static int keep_it(void *arg, struct span name, struct span value, struct err *why)
{
    if (full)
        return err_set(why, "no room");
    snprintf(kept, sizeof(kept), "%.*s=%.*s", SPAN_FMT(name), SPAN_FMT(value));
    return span_eq(value, SPAN("refresh-bad")) ? err_set(why, "no room") : 0;
}

static struct credential cred(unsigned i)
{
    return (struct credential){.name = SPAN("c"), .source = SOURCE_EXEC, .settings = i};
}

static int setup(void **state)
{
    static const struct fetch_ops ops = {tell_time, tell_date, send_it, keep_it};
    static char variable[] = "TOKEN=token-canary-1";
    char *env[] = {variable, NULL};
    memcpy(variable, "TOKEN=token-canary-1", sizeof(variable)); /* it was wiped */
    server = (struct upstream){.address = SPAN("192.0.2.7"), .crl_pem = SPAN("lists")};
    now = 1000;
    nsent = 0;
    deaf = false;
    sources = sources_new(0);
    assert_int_equal(sources_take_env(sources, env, &e), 0);
    sources_store(sources, &store);
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

/* The upstream said 401 to that version. */
static enum fetch_found need_after(unsigned i, uint64_t refused)
{
    struct credential c = cred(i);
    uint64_t wait = 0;
    enum fetch_found found = fetch_need(fetches, &c, refused, &wait, &e);
    assert_true(found != FETCH_LATER || wait == sent_id);
    assert_null(strstr(e.text, "canary"));
    return found;
}

static enum fetch_found need(unsigned i)
{
    return need_after(i, 0);
}

static uint64_t version(unsigned i)
{
    struct credential c = cred(i);
    return fetch_version(fetches, &c);
}

static void answer(struct wire_fetched w)
{
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024);
    wire_put_fetched(&b, &w);
    assert_int_equal(fetch_answered(fetches, sent_id, dynbuf_span(&b)), 0);
    dynbuf_free(&b);
}

static void value_is(unsigned i, struct span value)
{
    struct credential c = cred(i);
    struct secret *s = sources_value(sources, &c, &e);
    if (value.n == 0)
        assert_null(s);
    else
        assert_true(s != NULL && span_eq(secret_bytes(s), value));
    secret_free(&s);
}

static void previous_is(unsigned i, size_t k, struct span value)
{
    struct credential c = cred(i);
    struct secret *s = sources_previous(sources, &c, k);
    if (value.n == 0)
        assert_null(s);
    else
        assert_true(s != NULL && span_eq(secret_bytes(s), value));
    secret_free(&s);
}

static void what_an_upstream_refuses_is_asked_for_once_by_all(void **state)
{
    assert_int_equal(version(PROGRAM), 0);
    assert_int_equal(need_after(PROGRAM, 7), FETCH_LATER);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-1"), .lifetime_ms = 100000});
    uint64_t first = version(PROGRAM);
    assert_int_not_equal(first, 0);
    assert_int_equal(need_after(PROGRAM, first + 1), FETCH_HERE); /* which is none of it */
    assert_int_equal(nsent, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(need_after(PROGRAM, first), FETCH_LATER);
    assert_int_equal(need(PROGRAM), FETCH_HERE); /* whom nobody has refused yet */
    assert_int_equal(nsent, 2);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-2"), .lifetime_ms = 100000});
    uint64_t second = version(PROGRAM);
    assert_true(second != first && second != 0);
    assert_int_equal(need_after(PROGRAM, first), FETCH_HERE);
    value_is(PROGRAM, SPAN("value-canary-2"));
    previous_is(PROGRAM, 0, SPAN("value-canary-1"));
    now += FETCH_RENEW_MS - 1;
    assert_int_equal(need_after(PROGRAM, second), FETCH_HERE); /* one that refuses all does not wear out the source */
    assert_int_equal(nsent, 2);
    now += 1;
    assert_int_equal(need_after(PROGRAM, second), FETCH_LATER);
    assert_int_equal(nsent, 3);
    answer((struct wire_fetched){.why = SPAN("a failure")});
    assert_int_equal(need_after(PROGRAM, second), FETCH_HERE); /* there is no other: its answer is handed on */
    assert_int_equal(version(PROGRAM), second);
    assert_int_equal(nsent, 3);
    now += FETCH_RENEW_MS;
    assert_int_equal(need_after(PROGRAM, second), FETCH_LATER);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-2"), .lifetime_ms = 100000});
    assert_int_equal(need_after(PROGRAM, second), FETCH_HERE);
    assert_int_equal(version(PROGRAM), second); /* the same once more is no other one */
}

static void asked_once_used_while_it_lives_and_refreshed_late(void **state)
{
    value_is(PROGRAM, SPAN_NONE);
    assert_int_equal(nsent, 0); /* to look is not to use */
    for (int i = 0; i < 5; i++)
        assert_int_equal(need(PROGRAM), FETCH_LATER);
    assert_int_equal(nsent, 1);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-1\n"), .lifetime_ms = 10000});
    assert_int_equal(need(PROGRAM), FETCH_HERE);
    value_is(PROGRAM, SPAN("value-canary-1"));
    now += 7999;
    assert_int_equal(need(PROGRAM), FETCH_HERE);
    assert_int_equal(nsent, 1);
    now += 1;
    for (int i = 0; i < 5; i++) /* past 80 % it is asked for, once, and used meanwhile */
        assert_int_equal(need(PROGRAM), FETCH_HERE);
    assert_int_equal(nsent, 2);
    answer((struct wire_fetched){.why = SPAN("a failure")}); /* which does not end what lives */
    for (int i = 0; i < 5; i++)
        assert_int_equal(need(PROGRAM), FETCH_HERE);
    assert_int_equal(nsent, 2); /* and is remembered meanwhile */
    now += 2000;
    value_is(PROGRAM, SPAN_NONE);
    previous_is(PROGRAM, 0, SPAN("value-canary-1"));
    assert_int_equal(need(PROGRAM), FETCH_REFUSED);
    now += FETCH_FAILED_MS - 2000;
    assert_int_equal(need(PROGRAM), FETCH_LATER);
    assert_int_equal(nsent, 3);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-2")});
    value_is(PROGRAM, SPAN("value-canary-2"));
    previous_is(PROGRAM, 0, SPAN("value-canary-1"));
    previous_is(PROGRAM, 1, SPAN_NONE);
    now += FETCH_LIFE_MS - 1;
    value_is(PROGRAM, SPAN("value-canary-2"));
    now += 1;
    value_is(PROGRAM, SPAN_NONE);
}

static void a_failure_is_remembered_in_words_and_for_a_while(void **state)
{
    assert_int_equal(need(PROGRAM), FETCH_LATER);
    answer((struct wire_fetched){.why = SPAN("the program ended with status 1")});
    for (int i = 0; i < 5; i++) {
        assert_int_equal(need(PROGRAM), FETCH_REFUSED);
        assert_string_equal(e.text, "the program ended with status 1");
    }
    assert_int_equal(nsent, 1);
    struct credential c = cred(PROGRAM);
    uint64_t wait;
    assert_int_equal(fetch_again(fetches, &c, &wait, &e), FETCH_LATER); /* somebody looks */
    answer((struct wire_fetched){.why = SPAN("status 2")});
    assert_int_equal(fetch_outcome(fetches, &c, &e), -1);
    now += FETCH_FAILED_MS;
    assert_int_equal(need(PROGRAM), FETCH_LATER);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-1"), .lifetime_ms = 1});
    assert_int_equal(need(PROGRAM), FETCH_HERE); /* those that waited can use it, however short it lives */
    assert_int_equal(fetch_outcome(fetches, &c, &e), 0);
}

/* A job that was taken over drives no terminal. */
static void its_words_are_shown_as_text(void **state)
{
    assert_int_equal(need(PROGRAM), FETCH_LATER);
    answer((struct wire_fetched){.why = SPAN("no\33[2J\nc: gives a value that fits\xe2\x80\xae")});
    assert_int_equal(need(PROGRAM), FETCH_REFUSED);
    assert_string_equal(e.text, "no\\u{1b}[2J\\nc: gives a value that fits\\u{202e}");
}

static void what_no_field_can_carry_is_a_failure(void **state)
{
    static const struct span bad[] = {SPAN("value-canary\r\nX: y"), SPAN("short"), SPAN(" value-canary"),
                                      SPAN("value-canary\n\n")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(need(PROGRAM), FETCH_LATER);
        answer((struct wire_fetched){.ok = true, .value = bad[i]});
        assert_int_equal(need(PROGRAM), FETCH_REFUSED);
        now += FETCH_FAILED_MS;
    }
    assert_int_equal(need(PROGRAM), FETCH_LATER);
    assert_int_equal(fetch_answered(fetches, sent_id, SPAN("\1nonsense")), 0);
    assert_int_equal(need(PROGRAM), FETCH_REFUSED);
    assert_int_equal(fetch_answered(fetches, sent_id, SPAN_NONE), -1);
    assert_int_equal(fetch_answered(fetches, 0, SPAN_NONE), -1);
}

static void what_it_is_told(void **state)
{
    struct wire_fetch w;
    assert_int_equal(need(PROGRAM), FETCH_LATER);
    struct msg_in m = msg_in(span_of(sent, nbytes));
    assert_int_equal(wire_get_fetch(&m, &w), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(w.timeout_ms, FETCH_TIMEOUT_MS);
    assert_int_equal(w.to.host.n, 0);
    assert_true(span_eq(wire_setting(&w, SPAN("env.T"), 0), SPAN("token-canary-1")));
    assert_int_equal(need(SERVER), FETCH_LATER);
    m = msg_in(span_of(sent, nbytes));
    assert_int_equal(wire_get_fetch(&m, &w), 0);
    assert_true(span_eq(w.to.host, SPAN("login.example")) && w.to.port == 8443);
    assert_true(span_eq(w.to.address, SPAN("192.0.2.7")) && span_eq(w.to.crl_pem, SPAN("lists")));
    assert_int_equal(w.timeout_ms, 2000);
    assert_int_equal(need(CLEARTEXT), FETCH_REFUSED);
    assert_int_equal(need(WITHOUT), FETCH_REFUSED);
    assert_non_null(strstr(e.text, "env.T"));
}

/* What was used up is replaced in the store before what was got for it is used; what cannot be kept is a failure. */
static void a_refresh_token_is_written_back(void **state)
{
    kept[0] = '\0';
    assert_int_equal(need(PROGRAM), FETCH_LATER);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-1"), .keep = SPAN("refresh-token-2")});
    assert_string_equal(kept, ""); /* nobody asked for that */
    struct secret *s = secret_new(SPAN("refresh-token-1"));
    stored = s;
    assert_int_equal(need(ROTATING), FETCH_LATER);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-2"), .keep = SPAN("refresh-token-2")});
    assert_string_equal(kept, "next=refresh-token-2");
    assert_int_equal(need(ROTATING), FETCH_HERE);
    now += FETCH_LIFE_MS;
    assert_int_equal(need(ROTATING), FETCH_LATER);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-3"), .keep = SPAN("refresh-bad")});
    assert_int_equal(need(ROTATING), FETCH_REFUSED);
    assert_non_null(strstr(e.text, "cannot be kept: no room"));
    secret_free(&s);
    stored = NULL;
}

/* Who takes the secret away, or puts another one there, while it is asked with, has the last word. */
static void what_was_changed_meanwhile_stays(void **state)
{
    struct secret *one = secret_new(SPAN("refresh-token-1")), *other = secret_new(SPAN("refresh-of-another"));
    for (int removed = 0; removed < 2; removed++) {
        kept[0] = '\0';
        stored = one;
        assert_int_equal(need(ROTATING), FETCH_LATER);
        stored = removed ? NULL : other;
        answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-1"), .keep = SPAN("refresh-token-2")});
        assert_string_equal(kept, "");
        value_is(ROTATING, SPAN_NONE);
        assert_int_equal(need(ROTATING), FETCH_REFUSED);
        now += FETCH_FAILED_MS;
    }
    assert_int_equal(need(ROTATING), FETCH_REFUSED);
    assert_non_null(strstr(e.text, "refresh_token, which it is asked with"));
    secret_free(&one);
    secret_free(&other);
    stored = NULL;
}

static void is_asked_with(const char *token)
{
    struct wire_fetch w;
    struct msg_in m = msg_in(span_of(sent, nbytes));
    assert_int_equal(wire_get_fetch(&m, &w), 0);
    assert_true(span_eq(wire_setting(&w, SPAN("refresh_token"), 0), span_str(token)));
}

/* What was asked with is used up, whatever else is wrong with the answer, and with the disk. */
static void the_next_token_is_not_lost(void **state)
{
    struct secret *one = secret_new(SPAN("refresh-token-1")), *two = secret_new(SPAN("refresh-token-2"));
    kept[0] = '\0';
    stored = one;
    assert_int_equal(need(ROTATING), FETCH_LATER);
    answer((struct wire_fetched){.why = SPAN("no number of seconds"), .keep = SPAN("refresh-token-2")});
    assert_string_equal(kept, "next=refresh-token-2");
    assert_int_equal(need(ROTATING), FETCH_REFUSED);
    assert_string_equal(e.text, "no number of seconds");
    kept[0] = '\0';
    now += FETCH_FAILED_MS;
    assert_int_equal(need(ROTATING), FETCH_LATER);
    full = true;
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-1"), .keep = SPAN("refresh-token-2")});
    assert_int_equal(need(ROTATING), FETCH_REFUSED);
    now += FETCH_FAILED_MS;
    assert_int_equal(need(ROTATING), FETCH_REFUSED); /* not with what is used up */
    assert_non_null(strstr(e.text, "cannot be kept: no room"));
    assert_int_equal(nsent, 2);
    full = false;
    assert_int_equal(need(ROTATING_TOO), FETCH_LATER); /* whoever asks with it next */
    assert_string_equal(kept, "next=refresh-token-2");
    stored = two;
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-2")});
    kept[0] = '\0';
    assert_int_equal(need(ROTATING), FETCH_LATER);
    is_asked_with("refresh-token-2");
    assert_string_equal(kept, ""); /* once */
    secret_free(&one);
    secret_free(&two);
    stored = NULL;
}

/* A token that is shown twice ends its grant: the second question waits for what the first one brings. */
static void one_question_for_what_is_used_up(void **state)
{
    struct secret *one = secret_new(SPAN("refresh-token-1")), *two = secret_new(SPAN("refresh-token-2"));
    struct credential c = cred(ROTATING_TOO);
    uint64_t wait;
    stored = one;
    assert_int_equal(need(ROTATING), FETCH_LATER);
    assert_int_equal(need(ROTATING_TOO), FETCH_LATER);
    assert_int_equal(nsent, 1);
    assert_int_equal(fetch_again(fetches, &c, &wait, &e), FETCH_REFUSED);
    assert_non_null(strstr(e.text, "another credential"));
    assert_int_equal(fetch_outcome(fetches, &c, &e), -1);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-1"), .keep = SPAN("refresh-token-2")});
    stored = two;
    assert_int_equal(need(ROTATING), FETCH_HERE);
    assert_int_equal(need(ROTATING_TOO), FETCH_LATER);
    assert_int_equal(nsent, 2);
    is_asked_with("refresh-token-2");
    now += FETCH_LIFE_MS / 10 * 9; /* the other's is refreshed later, and used meanwhile */
    assert_int_equal(need(ROTATING), FETCH_HERE);
    assert_int_equal(nsent, 2);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-2")});
    assert_int_equal(need(ROTATING_TOO), FETCH_HERE);
    assert_int_equal(fetch_outcome(fetches, &c, &e), 0);
    secret_free(&one);
    secret_free(&two);
    stored = NULL;
}

/* D44: what a reload says of the server is part of what a value is known by. */
static void a_value_is_of_the_server_that_gave_it(void **state)
{
    static const struct span pin = SPAN("0123456789abcdef0123456789abcdef"), net = SPAN("10.0.0.0/8");
    const struct upstream was = server, others[] = {
                                            {.address = SPAN("192.0.2.8"), .crl_pem = was.crl_pem},
                                            {.address = was.address},
                                            {.address = was.address, .crl_pem = was.crl_pem, .ca_pem = SPAN("ca")},
                                            {.address = was.address, .crl_pem = was.crl_pem, .only_tls13 = true},
                                            {.address = was.address, .crl_pem = was.crl_pem, .pin = &pin, .npins = 1},
                                            {.address = was.address,
                                             .crl_pem = was.crl_pem,
                                             .allow_private = &net,
                                             .nallow_private = 1},
                                        };
    assert_int_equal(need(SERVER), FETCH_LATER);
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-1"), .lifetime_ms = 100000});
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        server = others[i];
        value_is(SERVER, SPAN_NONE);
        assert_int_equal(need(SERVER), FETCH_LATER);
        assert_int_equal(nsent, i + 2);
        server = was;
        value_is(SERVER, SPAN("value-canary-1"));
        assert_int_equal(need(SERVER), FETCH_HERE);
    }
}

static void without_a_fetcher_nothing_waits(void **state)
{
    deaf = true;
    assert_int_equal(need(PROGRAM), FETCH_REFUSED);
    deaf = false;
    assert_int_equal(need(PROGRAM), FETCH_LATER);
    fetches_lost(fetches);
    deaf = true;
    assert_int_equal(need(PROGRAM), FETCH_REFUSED);
    assert_non_null(strstr(e.text, "repeat the request"));
}

static void the_table_is_full_of_questions_and_no_more(void **state)
{
    uint64_t first = 0;
    for (unsigned i = 0; i < FETCHES_MAX; i++) {
        assert_int_equal(need(MANY + i), FETCH_LATER);
        first = i == 0 ? sent_id : first;
    }
    assert_int_equal(need(MANY + FETCHES_MAX), FETCH_REFUSED);
    sent_id = first; /* one is answered: its place can be had */
    answer((struct wire_fetched){.ok = true, .value = SPAN("value-canary-1")});
    assert_int_equal(need(MANY), FETCH_HERE);
    assert_int_equal(need(MANY + FETCHES_MAX), FETCH_LATER);
}

#define FRESH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- what is signed here ---- */

static void store_key(void)
{
    char *pem;
    BIO *b = BIO_new(BIO_s_mem());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(b, key, NULL, NULL, 0, NULL, NULL), 1);
    size_t n = (size_t)BIO_get_mem_data(b, &pem);
    secret_free(&stored);
    stored = secret_new(span_of(pem, n));
    BIO_free(b);
    EVP_PKEY_free(key);
}

static void a_key_stays_and_what_it_signed_goes(void **state)
{
    static struct wire_fetch w;
    struct span head, claims, rest;
    char text[2048];
    uint8_t raw[1024];
    size_t n;
    store_key();
    assert_int_equal(need(SIGNING), FETCH_LATER);
    assert_true(span_find(span_of(sent, nbytes), span_of(secret_bytes(stored).p + 60, 40)) == nbytes);
    struct msg_in m = msg_in(span_of(sent, nbytes));
    assert_int_equal(wire_get_fetch(&m, &w), 0);
    assert_int_equal(w.nsettings, 2); /* the program, and what was signed */
    assert_true(span_cut(wire_setting(&w, SPAN("assertion"), 0), '.', &head, &rest) &&
                span_cut(rest, '.', &claims, &rest));
    for (n = 0; n < claims.n; n++)
        text[n] = claims.p[n] == '-' ? '+' : claims.p[n] == '_' ? '/' : (char)claims.p[n];
    while (n % 4)
        text[n++] = '=';
    assert_int_equal(base64_decode(span_of(text, n), raw, &n), 0);
    assert_true(span_starts(span_of(raw, n), SPAN("{\"iss\":\"app \\\"12\\\"\",\"aud\":\"them\",\"iat\":1795424340,"
                                                  "\"exp\":1795424700,\"jti\":\"")));
    secret_free(&stored);
    stored = secret_new(SPAN("a canary that is no key"));
    now += FETCH_FAILED_MS;
    fetches_lost(fetches);
    assert_int_equal(need(SIGNING), FETCH_REFUSED); /* in words without it: need() looks */
    assert_int_equal(nsent, 1);
    secret_free(&stored);
}

/* One that is the value itself is there at once; past 80 % of its life another one is. */
static void a_value_that_is_signed_here(void **state)
{
    struct credential c = cred(SIGNING);
    uint64_t wait;
    c.source = SOURCE_JWT;
    store_key();
    assert_int_equal(fetch_need(fetches, &c, 0, &wait, &e), FETCH_HERE);
    struct secret *first = fetch_value(fetches, &c, &e);
    assert_non_null(first);
    now += MINTED_MS / 10 * 8 - 1;
    assert_int_equal(fetch_need(fetches, &c, 0, &wait, &e), FETCH_HERE);
    struct secret *same = fetch_value(fetches, &c, &e);
    assert_true(span_eq(secret_bytes(first), secret_bytes(same)));
    now++;
    assert_int_equal(fetch_need(fetches, &c, 0, &wait, &e), FETCH_HERE);
    struct secret *other = fetch_value(fetches, &c, &e);
    assert_false(span_eq(secret_bytes(first), secret_bytes(other)));
    secret_free(&stored);
    now += MINTED_MS; /* without its key there is no other */
    assert_int_equal(fetch_need(fetches, &c, 0, &wait, &e), FETCH_REFUSED);
    assert_int_equal(nsent, 0);
    secret_free(&first);
    secret_free(&same);
    secret_free(&other);
}

static void a_question_that_is_signed_here(void **state)
{
    static struct wire_fetch w;
    struct credential c = cred(ROLE);
    uint64_t wait;
    c.source = SOURCE_AWS;
    secret_free(&stored);
    stored = secret_new(SPAN("AKIA1:canary-key-of-aws"));
    assert_int_equal(fetch_need(fetches, &c, 0, &wait, &e), FETCH_LATER);
    assert_true(span_find(span_of(sent, nbytes), SPAN("canary-key-of-aws")) == nbytes);
    struct msg_in m = msg_in(span_of(sent, nbytes));
    assert_int_equal(wire_get_fetch(&m, &w), 0);
    assert_true(span_eq(wire_setting(&w, SPAN("body"), 0),
                        SPAN("Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa")));
    assert_true(span_eq(wire_setting(&w, SPAN("field.X-Amz-Date"), 0), SPAN("20261123T090000Z")));
    assert_true(span_starts(wire_setting(&w, SPAN("field.Authorization"), 0),
                            SPAN("AWS4-HMAC-SHA256 Credential=AKIA1/20261123/eu-central-1/sts/aws4_request, "
                                 "SignedHeaders=content-type;host;x-amz-date, Signature=")));
    assert_int_equal(w.nsettings, 5); /* with url and Content-Type */
    secret_free(&stored);
}

static void a_secret_with_lines_is_told_to_no_server(void **state)
{
    struct credential c = cred(ROTATING);
    uint64_t wait;
    store_key();
    c.source = SOURCE_VAULT;
    assert_int_equal(fetch_need(fetches, &c, 0, &wait, &e), FETCH_REFUSED);
    assert_true(nsent == 0 && strstr(e.text, "more than one line") != NULL);
    assert_int_equal(need(ROTATING), FETCH_LATER); /* a program may have it */
    secret_free(&stored);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(asked_once_used_while_it_lives_and_refreshed_late),
        FRESH(what_an_upstream_refuses_is_asked_for_once_by_all),
        FRESH(a_failure_is_remembered_in_words_and_for_a_while),
        FRESH(its_words_are_shown_as_text),
        FRESH(what_no_field_can_carry_is_a_failure),
        FRESH(what_it_is_told),
        FRESH(a_refresh_token_is_written_back),
        FRESH(what_was_changed_meanwhile_stays),
        FRESH(one_question_for_what_is_used_up),
        FRESH(the_next_token_is_not_lost),
        FRESH(a_value_is_of_the_server_that_gave_it),
        FRESH(without_a_fetcher_nothing_waits),
        FRESH(the_table_is_full_of_questions_and_no_more),
        FRESH(a_key_stays_and_what_it_signed_goes),
        FRESH(a_value_that_is_signed_here),
        FRESH(a_question_that_is_signed_here),
        FRESH(a_secret_with_lines_is_told_to_no_server),
    };
    return cmocka_run_group_tests_name("fetch", tests, NULL, NULL);
}
