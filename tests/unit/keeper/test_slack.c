/* What Slack sends back: taken with its signature alone, near its time, once; and what is read of it. */
#include "tests/kit.h"

#include "common/dynbuf.h"
#include "proxy/keeper/tell/slack.h"

/* The example of Slack's own documentation. */
#define KEY SPAN("8f742231b10e8888abcd99yyyzzz85a5")
#define AT  1531420618
#define BODY                                                                                                         \
    "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&"                 \
    "channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&"                   \
    "response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&"   \
    "trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
#define SIGNATURE "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"

/* Over "x", by a key of as many bytes as there may be, and by one more. */
static const char long_key[] = "v0=8235e2f0d2a1ad5ad9dfccd5fb22eb6d70ec530f09f21f340877677090b656e9";
static const char longer_key[] = "v0=ce5e9e1bc61f4b79ea3b04576f5f2cf48436d11bb170037aafe879eddc49172d";

static struct slack_seen seen;

static int take_at(struct span key, const char *stamp, const char *signature, const char *body, uint64_t now)
{
    struct err e = {{0}};
    struct slack_mark mark;
    enum slack_said why;
    int bad = slack_signed(key, span_str(stamp), span_str(signature), span_str(body), now, &mark, &e);
    bad = bad == 0 ? slack_once(&seen, &mark, now, &why, &e) : bad;
    assert_true(bad == 0 || (e.text[0] != '\0' && strstr(e.text, "a2114d57") == NULL));
    return bad;
}

static void a_signature_is_that_of_the_documentation(void **state)
{
    static const struct {
        const char *stamp, *signature, *body;
        uint64_t now;
    } bad[] = {
        {"1531420618", SIGNATURE, BODY " ", AT},
        {"1531420618", SIGNATURE, "", AT},
        {"1531420619", SIGNATURE, BODY, AT},
        {"01531420618", SIGNATURE, BODY, AT},
        {"", SIGNATURE, BODY, AT},
        {"1531420618", "v0=b2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", BODY, AT},
        {"1531420618", "v1=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", BODY, AT},
        {"1531420618", "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", BODY, AT},
        {"1531420618", "v0=", BODY, AT},
        {"1531420618", SIGNATURE "00", BODY, AT},
        {"1531420618", SIGNATURE, BODY, AT + SLACK_SKEW_S + 1},
        {"1531420618", SIGNATURE, BODY, AT - SLACK_SKEW_S - 1},
    };
    uint8_t key[SLACK_KEY_MAX + 1];
    memset(key, 'k', sizeof(key));
    seen = (struct slack_seen){0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (take_at(KEY, bad[i].stamp, bad[i].signature, bad[i].body, bad[i].now) == 0)
            fail_msg("%zu was taken", i);
    assert_int_equal(take_at(SPAN("8f742231b10e8888abcd99yyyzzz85a6"), "1531420618", SIGNATURE, BODY, AT), -1);
    assert_int_equal(take_at(SPAN_NONE, "1531420618", SIGNATURE, BODY, AT), -1);
    assert_int_equal(take_at(span_of(key, SLACK_KEY_MAX), "1531420618", long_key, "x", AT), 0);
    assert_int_equal(take_at(span_of(key, SLACK_KEY_MAX + 1), "1531420618", longer_key, "x", AT), -1);
    assert_int_equal(take_at(KEY, "1531420618", SIGNATURE, BODY, AT + SLACK_SKEW_S), 0);
    /* once, as long as its time is near */
    assert_int_equal(take_at(KEY, "1531420618", SIGNATURE, BODY, AT), -1);
    assert_int_equal(
        take_at(KEY, "1531420618", "v0=A2114D57B48EAC39B9AD189DD8316235A7B4A8D21A10BD27519666489C69B503", BODY, AT),
        -1);
}

/* Of so many each is remembered until it is too old, and of more none is taken. */
static void what_cannot_be_remembered_is_not_taken(void **state)
{
    seen = (struct slack_seen){0};
    for (size_t i = 0; i < SLACK_SEEN_MAX; i++) {
        seen.row[i].stamp = AT + 1;
        seen.row[i].mac.b[0] = (uint8_t)i;
    }
    assert_int_equal(take_at(KEY, "1531420618", SIGNATURE, BODY, AT), -1);
    seen.row[7].stamp = AT - SLACK_SKEW_S - 1;
    assert_int_equal(take_at(KEY, "1531420618", SIGNATURE, BODY, AT), 0);
    assert_int_equal(take_at(KEY, "1531420618", SIGNATURE, BODY, AT), -1);
}

static char *form(const char *json)
{
    static char out[16 * 1024];
    size_t n = (size_t)snprintf(out, sizeof(out), "payload=");
    for (const char *p = json; *p != '\0'; p++)
        n += (size_t)snprintf(out + n, sizeof(out) - n, "%%%02x", (unsigned char)*p);
    return out;
}

#define PRESS(team, action)                                                                                          \
    "{\"type\":\"block_actions\"," team "\"actions\":[" action "],\"response_url\":\"https://x/y\"}"
#define ALICE            "\"team\":{\"id\":\"T012AB3C4\"},\"user\":{\"id\":\"U9ZX8Y7\",\"name\":\"bob\"},"
#define TEAM(team, home) "\"team\":" team ",\"user\":{\"id\":\"U9ZX8Y7\"" home "},"
#define DENY(id)         "{\"type\":\"button\",\"action_id\":\"deny\",\"value\":\"" id "\"}"

static int read_of(const char *body, struct slack_press *p, struct arena *a)
{
    struct err e = {{0}};
    arena_init(a, 256 * 1024);
    return slack_read(span_str(body), a, p, &e);
}

static void who_pressed_what_is_read_strictly(void **state)
{
    static const struct {
        const char *json;
        int rc;
        bool deny;
    } rows[] = {
        {PRESS(ALICE, DENY("%s")), 0, true},
        {PRESS(ALICE, "{\"type\":\"button\",\"action_id\":\"open\",\"value\":\"%s\"}"), 0, false},
        {PRESS(ALICE, "{\"type\":\"button\",\"action_id\":\"approve\",\"value\":\"%s\"}"), 0, false},
        {PRESS(ALICE, DENY("%s") "," DENY("%s")), 0, false},
        {PRESS(ALICE, ""), 0, false},
        {"{\"type\":\"view_submission\"}", 0, false},
        {PRESS(ALICE, DENY("x%s")), -1, false},
        {PRESS(ALICE, DENY("")), -1, false},
        {PRESS("\"user\":{\"id\":\"U9ZX8Y7\"},", DENY("%s")), -1, false},
        {PRESS("\"team\":{\"id\":\"T012AB3C4\"},", DENY("%s")), -1, false},
        {PRESS("\"team\":{\"id\":7},\"user\":{\"id\":\"U9ZX8Y7\"},", DENY("%s")), -1, false},
        {PRESS("\"team\":{\"id\":\"T0/U1\"},\"user\":{\"id\":\"U9ZX8Y7\"},", DENY("%s")), -1, false},
        {PRESS("\"team\":{\"id\":\"T012AB3C4\"},\"user\":{\"id\":\"alice\"},", DENY("%s")), -1, false},
        {PRESS(ALICE "\"user\":{\"id\":\"U1111111\"},", DENY("%s")), -1, false},
        {PRESS(TEAM("{\"id\":\"T012AB3C4\"}", ",\"team_id\":\"T012AB3C4\""), DENY("%s")), 0, true},
        {PRESS(TEAM("null", ",\"team_id\":\"T012AB3C4\""), DENY("%s")), 0, true},
        {PRESS(TEAM("null", ""), DENY("%s")), -1, false},
        {PRESS(TEAM("null", ",\"team_id\":null"), DENY("%s")), -1, false},
        {PRESS(TEAM("{\"id\":\"T012AB3C4\"}", ",\"team_id\":\"T0OTHER\""), DENY("%s")), -1, false},
        {PRESS(TEAM("{\"id\":\"T012AB3C4\"}", ",\"team_id\":7"), DENY("%s")), -1, false},
        {"[1]", -1, false},
        {"{\"type\":", -1, false},
    };
    char json[1024], id[ID_TEXT + 1];
    struct slack_press p;
    struct arena a;
    struct id one;
    assert_int_equal(id_new(&one), 0);
    id_text(&one, id);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *from = rows[i].json, *at;
        size_t n = 0;
        while ((at = strstr(from, "%s")) != NULL) {
            n += (size_t)snprintf(json + n, sizeof(json) - n, "%.*s%s", (int)(at - from), from, id);
            from = at + 2;
        }
        (void)snprintf(json + n, sizeof(json) - n, "%s", from);
        int rc = read_of(form(json), &p, &a);
        if (rc != rows[i].rc || p.deny != rows[i].deny)
            fail_msg("%s: %d %d", json, rc, p.deny);
        if (p.deny)
            assert_true(span_eq(p.who, SPAN("T012AB3C4/U9ZX8Y7")) && span_eq(p.ticket, span_str(id)) &&
                        span_eq(p.answer, SPAN("https://x/y")));
        arena_free(&a);
    }
}

static void what_is_no_form_of_slacks_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "payload",
                                      "payload=",
                                      "payload=%7",
                                      "payload=%zz",
                                      "payload={}&payload={}",
                                      "x=1&payload={}",
                                      "{\"type\":\"block_actions\"}"};
    struct slack_press p;
    struct arena a;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (read_of(bad[i], &p, &a) == 0)
            fail_msg("%s", bad[i]);
        arena_free(&a);
    }
}

static void words_go_to_slack_or_where_its_messages_go(void **state)
{
    static const struct {
        struct span url, notify;
        bool ok;
    } rows[] = {
        {SPAN("https://hooks.slack.com/actions/T/1/x"), SPAN("https://hooks.slack.com/services/x"), true},
        {SPAN("https://hooks.slack.com/actions/T/1/x"), SPAN("https://slack.corp.example/x"), true},
        {SPAN("https://slack.corp.example/y"), SPAN("https://slack.corp.example/x"), true},
        {SPAN("http://127.0.0.1:81/y"), SPAN("http://127.0.0.1:81/x"), true},
        {SPAN("http://127.0.0.1:82/y"), SPAN("http://127.0.0.1:81/x"), false},
        {SPAN("http://slack.corp.example/y"), SPAN("http://slack.corp.example/x"), false},
        {SPAN("http://hooks.slack.com/x"), SPAN("https://hooks.slack.com/x"), false},
        {SPAN("https://hooks.slack.com:444/x"), SPAN("https://hooks.slack.com/x"), false},
        {SPAN("https://hooks.slack.com.evil.example/x"), SPAN("https://hooks.slack.com/x"), false},
        {SPAN("https://hooks.slack.com@evil.example/x"), SPAN("https://hooks.slack.com/x"), false},
        {SPAN("https://evil.example/hooks.slack.com"), SPAN("https://hooks.slack.com/x"), false},
        {SPAN("file:///etc/passwd"), SPAN("https://hooks.slack.com/x"), false},
        {SPAN(""), SPAN("https://hooks.slack.com/x"), false},
    };
    struct dynbuf b;
    char url[SLACK_URL_MAX + 2];
    memset(url, 'x', sizeof(url));
    memcpy(url, "https://hooks.slack.com/", 24);
    assert_true(slack_answer_ok(span_of(url, SLACK_URL_MAX), SPAN_NONE));
    assert_false(slack_answer_ok(span_of(url, SLACK_URL_MAX + 1), SPAN_NONE));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (slack_answer_ok(rows[i].url, rows[i].notify) != rows[i].ok)
            fail_msg("%.*s", SPAN_FMT(rows[i].url));
    dynbuf_init(&b, 1024);
    slack_answer(SPAN("a <!channel> & \"b\""), true, &b);
    assert_true(span_eq(dynbuf_span(&b),
                        SPAN("{\"replace_original\":true,\"text\":\"a &lt;!channel&gt; &amp; \\\"b\\\"\"}")));
    dynbuf_free(&b);
    dynbuf_init(&b, 1024);
    slack_answer(SPAN("no"), false, &b);
    assert_true(span_eq(dynbuf_span(&b),
                        SPAN("{\"response_type\":\"ephemeral\",\"replace_original\":false,\"text\":\"no\"}")));
    dynbuf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_is_that_of_the_documentation),
        cmocka_unit_test(what_cannot_be_remembered_is_not_taken),
        cmocka_unit_test(who_pressed_what_is_read_strictly),
        cmocka_unit_test(what_is_no_form_of_slacks_is_refused),
        cmocka_unit_test(words_go_to_slack_or_where_its_messages_go),
    };
    return cmocka_run_group_tests_name("slack", tests, NULL, NULL);
}
