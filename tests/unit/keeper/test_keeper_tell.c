/* What is told outside the page: signed as Standard Webhooks has it, and sent where the parent said, by the name and
 * the digest it is known by. */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include "proxy/keeper/tell/tell.h"
#include "tests/unit/keeper/keeper_world.h"

/* The vector of the specification's own libraries. */
static void a_signature_is_that_of_the_specification(void **state)
{
    struct err e = {{0}};
    struct dynbuf out;
    dynbuf_init(&out, 128);
    assert_int_equal(tell_sign(SPAN("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), SPAN("msg_p5jXN8AQM9LWM0D4loKWxJek"),
                               1614265330, SPAN("{\"test\": 2432232314}"), &out, &e),
                     0);
    assert_true(span_eq(dynbuf_span(&out), SPAN("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")));
    dynbuf_free(&out);
}

static void what_is_no_key_signs_nothing(void **state)
{
    static const struct span bad[] = {
        SPAN(""),
        SPAN("whsec_"),
        SPAN("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        SPAN("ghp_abMfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        SPAN("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS"),
        SPAN("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!"),
        SPAN("whsec_c2hvcnQ="),
        SPAN("whsec_"
             "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
             "AAAAAAAA")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = {{0}};
        struct dynbuf out;
        dynbuf_init(&out, 128);
        assert_int_equal(tell_sign(bad[i], SPAN("msg_1"), 1, SPAN("x"), &out, &e), -1);
        assert_true(e.text[0] != '\0' && strstr(e.text, "MfKQ") == NULL && out.n == 0);
        dynbuf_free(&out);
    }
}

static const struct digest mails = {{1}}, hooks = {{2}};

static void give(const struct wire_tell_place *p)
{
    struct dynbuf *b = chan_begin(parent, M_TELL_PLACE, 0);
    wire_put_tell_place(b, p);
    assert_int_equal(chan_commit(parent), 0);
}

static void give_places(void)
{
    give(&(struct wire_tell_place){.name = SPAN("mail"),
                                   .kind = TELL_MAIL,
                                   .of = mails,
                                   .url = SPAN("smtp://relay.example:587"),
                                   .from = SPAN("gate@corp.example"),
                                   .tls_required = true,
                                   .nto = 1,
                                   .to = {SPAN("a@corp.example")}});
    give(&(struct wire_tell_place){.name = SPAN("ops"),
                                   .kind = TELL_WEBHOOK,
                                   .of = hooks,
                                   .url = SPAN("https://hooks.example/x"),
                                   .secret = SPAN("unset")});
}

static void tell(uint64_t number, struct span name, const struct digest *of, struct span id)
{
    struct dynbuf *b = chan_begin(ledger, M_TELL, number);
    msg_put_span(b, name);
    msg_put_digest(b, of);
    msg_put_span(b, id);
    msg_put_span(b, SPAN("the title"));
    msg_put_span(b, SPAN("the body"));
    assert_int_equal(chan_commit(ledger), 0);
}

static enum tell_outcome told(size_t i, uint64_t number, struct span id, const char *words)
{
    struct msg_in m = msg_in(payload(i));
    assert_int_equal(got[i].type, M_TOLD);
    assert_int_equal(got[i].id, number);
    assert_true(span_eq(msg_get_span(&m, TELL_ID_MAX), id));
    enum tell_outcome what = (enum tell_outcome)msg_get_u8(&m);
    assert_true(span_find(msg_get_span(&m, TELL_WORDS_MAX), span_str(words)) < got[i].n);
    assert_int_equal(msg_end(&m), 0);
    return what;
}

static void it_goes_where_the_parent_said_and_nowhere_else(void **state)
{
    const struct digest other = {{9}};
    give_places();
    tell(1, SPAN("mail"), &mails, SPAN("msg_1"));
    await(1);
    assert_int_equal(told(0, 1, SPAN("msg_1"), "does not run"), TELL_NOT_NOW);
    fetcher = introduce(ROLE_FETCHER);
    settle();
    tell(2, SPAN("mail"), &other, SPAN("msg_2")); /* another of that name */
    await(1);
    assert_int_equal(told(0, 2, SPAN("msg_2"), "nobody of that name"), TELL_NOT_NOW);
    tell(3, SPAN("ops"), &hooks, SPAN("msg_3"));
    await(1);
    assert_int_equal(told(0, 3, SPAN("msg_3"), "no stored secret unset"), TELL_NOT_NOW);
    tell(4, SPAN("mail"), &mails, SPAN("msg_4"));
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
    assert_true(says(0, SPAN("smtp://relay.example:587")) && says(0, SPAN("a@corp.example")) &&
                says(0, SPAN("required")) && says(0, SPAN("the title")) && says(0, SPAN("the body")));
    assert_false(says(0, SPAN("hooks.example")));
    fetched(got[0].id, SPAN("its relay took it"), SPAN_NONE);
    await(1);
    assert_int_equal(told(0, 4, SPAN("msg_4"), "its relay took it"), TELL_TOLD);
}

static void what_became_of_it_is_of_the_one_that_was_meant(void **state)
{
    give_places();
    fetcher = introduce(ROLE_FETCHER);
    settle();
    tell(1, SPAN("mail"), &mails, SPAN("msg_1"));
    await(1);
    uint64_t first = got[0].id;
    chan_free(&ledger);
    await(1); /* the parent hears that it is lost */
    ledger = introduce(ROLE_LEDGER);
    await(1);
    assert_int_equal(got[0].type, M_DATA_KEY);
    tell(1, SPAN("mail"), &mails, SPAN("msg_2")); /* as each ledger numbers its first */
    await(1);
    uint64_t second = got[0].id;
    assert_int_not_equal(first, second);
    fetched(first, SPAN("its relay took it"), SPAN_NONE); /* nobody there asked it */
    fetched(second, SPAN("never: it answered 410"), SPAN_NONE);
    await(1);
    assert_int_equal(told(0, 1, SPAN("msg_2"), "it answered 410"), TELL_NEVER);
    tell(2, SPAN("mail"), &mails, SPAN("msg_3"));
    await(1);
    fetched(got[0].id, SPAN_NONE, SPAN("its relay answered 451"));
    await(1);
    assert_int_equal(told(0, 2, SPAN("msg_3"), "451"), TELL_NOT_NOW);
}

/* ---- what comes back from Slack ---- */

#define KEY "0123456789abcdef0123456789abcdef"
static struct chan *desk;

static void keep_secret(const char *name, const char *value)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char ask[512];
    int n = snprintf(ask, sizeof(ask), "PUT /v1/secrets/%s HTTP/1.1\r\nHost: keeper\r\nContent-Length: %zu\r\n\r\n%s",
                     name, strlen(value), value);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", sock);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(write(fd, ask, (size_t)n), n);
    await(2); /* the note for the audit, and the list to the parent */
    close(fd);
}

static enum slack_said press(const char *row, const char *who, unsigned nth, uint64_t *number)
{
    char body[1024], stamp[24], base[1200], hex[2 * DIGEST_BYTES + 1], signature[80];
    struct digest mac;
    unsigned n;
    (void)snprintf(stamp, sizeof(stamp), "%lld", (long long)time(NULL));
    (void)snprintf(body, sizeof(body),
                   "payload={\"type\":\"block_actions\",\"trigger_id\":\"%u\",\"team\":{\"id\":\"T1\"},\"user\":"
                   "{\"id\":\"%s\"},\"actions\":[{\"type\":\"button\",\"action_id\":\"deny\",\"value\":"
                   "\"00000000000000000000000000\"}],\"response_url\":\"https://hooks.slack.com/x\"}",
                   nth, who);
    int nbase = snprintf(base, sizeof(base), "v0:%s:%s", stamp, body);
    assert_non_null(HMAC(EVP_sha256(), KEY, sizeof(KEY) - 1, (uint8_t *)base, (size_t)nbase, mac.b, &n));
    hex_text(span_of(mac.b, DIGEST_BYTES), hex);
    (void)snprintf(signature, sizeof(signature), "v0=%s", hex);
    struct dynbuf *b = chan_begin(desk, M_SLACK, nth);
    msg_put_span(b, span_str(row));
    msg_put_span(b, span_str(stamp));
    msg_put_span(b, span_str(signature));
    msg_put_span(b, span_str(body));
    assert_int_equal(chan_commit(desk), 0);
    await(1);
    struct msg_in m = msg_in(payload(0));
    assert_int_equal(got[0].type, M_SLACK_SAID);
    enum slack_said said = (enum slack_said)msg_get_u8(&m);
    *number = msg_get_u64(&m);
    assert_true(msg_get_span(&m, 64).n == (said == SLACK_DENY && strcmp(who, "U1") == 0 ? 5 : 0) ||
                said == SLACK_NOT_NOW);
    return said;
}

/* Eight that are not told yet, and then none is decided; others take none of those places, and no row another's. */
static void who_presses_takes_from_nobody_else(void **state)
{
    uint64_t number;
    const char *const names[] = {"one", "two"};
    keep_secret("url", "https://hooks.slack.com/services/x");
    for (size_t i = 0; i < 2; i++)
        give(&(struct wire_tell_place){.name = span_str(names[i]),
                                       .kind = TELL_SLACK,
                                       .of = {{(uint8_t)i}},
                                       .secret = SPAN("url"),
                                       .signing = SPAN("key"),
                                       .npeople = 1,
                                       .people = {{SPAN("T1/U1"), SPAN("alice")}}});
    desk = introduce(ROLE_DESK);
    settle();
    assert_int_equal(press("one", "U1", 1, &number), SLACK_NOT_NOW); /* its key is not stored */
    keep_secret("key", KEY);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(press("one", "U2", 10 + i, &number), SLACK_DENY);
        assert_int_equal(number != 0, i < 2);
    }
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(press("one", "U1", 20 + i, &number), SLACK_DENY);
        assert_true(number != 0);
    }
    assert_int_equal(press("one", "U1", 30, &number), SLACK_NOT_NOW);
    assert_int_equal(press("two", "U1", 40, &number), SLACK_DENY);
    assert_true(number != 0);
    chan_free(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_is_that_of_the_specification), cmocka_unit_test(what_is_no_key_signs_nothing),
        FRESH(it_goes_where_the_parent_said_and_nowhere_else), FRESH(what_became_of_it_is_of_the_one_that_was_meant),
        FRESH(who_presses_takes_from_nobody_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
