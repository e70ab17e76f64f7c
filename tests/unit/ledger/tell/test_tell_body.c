/* What a message says, in each of its forms, when everything in it is hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "common/arena.h"
#include "common/json/json.h"
#include "proxy/ledger/store/tell/tell_body.h"

static struct dynbuf title, body;
static bool buttons; /* what comes back from Slack is signed */
static struct arena arena;

static int setup(void **state)
{
    arena_init(&arena, 1024 * 1024);
    return 0;
}

static int teardown(void **state)
{
    arena_free(&arena);
    dynbuf_free(&title);
    dynbuf_free(&body);
    return 0;
}

static struct tell_facts some(struct span foreign)
{
    return (struct tell_facts){.event = "ticket.waiting",
                               .words = "A request waits for a decision",
                               .desk = SPAN("https://gate.example"),
                               .at_ms = 1800000000000,
                               .ticket = SPAN("0123456789abcdefghjkmnpqrs"),
                               .state = SPAN("pending"),
                               .sandbox = SPAN("ci-7"),
                               .op = foreign,
                               .effect = SPAN("write"),
                               .method = foreign,
                               .host = SPAN("api.example"),
                               .resource = foreign,
                               .by = foreign,
                               .port = 443,
                               .since_ms = 1800000000000,
                               .expires_ms = 1800000060000};
}

static bool has(const char *what)
{
    return span_find(dynbuf_span(&body), span_str(what)) < body.n;
}

static void wrote(enum tell_kind k, const struct tell_facts *f)
{
    dynbuf_free(&title);
    dynbuf_free(&body);
    assert_int_equal(tell_write(k, buttons, f, &title, &body), 0);
    assert_true(body.n > 0 && body.n <= TELL_BODY_MAX && title.n <= TELL_TITLE_MAX);
    for (size_t i = 0; i < title.n; i++)
        assert_true(title.p[i] >= 0x20 && title.p[i] < 0x7f);
    if (k != TELL_MAIL)
        assert_non_null(json_parse(dynbuf_span(&body), &arena));
}

static void hostile_text_is_shown_and_kept_apart(void **state)
{
    struct tell_facts f = some(SPAN("a\r\nBcc: x@y\xe2\x80\xae"
                                    "<!channel> *b* <https://evil.example|Approve>\x1b[2J"));
    wrote(TELL_WEBHOOK, &f);
    const struct json *data = json_get(json_parse(dynbuf_span(&body), &arena), SPAN("data"));
    const struct json *untrusted = json_get(data, SPAN("untrusted"));
    assert_true(span_starts(json_text(untrusted, SPAN("operation")), SPAN("a\\r\\nBcc: x@y\\u{202e}<!channel>")));
    assert_int_equal(json_text(data, SPAN("operation")).n, 0);
    assert_true(
        span_eq(json_text(data, SPAN("link")), SPAN("https://gate.example/tickets/0123456789abcdefghjkmnpqrs")));
    assert_true(span_eq(json_text(data, SPAN("since")), SPAN("2027-01-15T08:00:00Z")));
    wrote(TELL_SLACK, &f);
    assert_false(has("<!channel>") || has("<https://") || has("mrkdwn") || has("\"value\"") || has("action_id"));
    assert_true(has("&lt;!channel&gt;") && has("Not to be trusted"));
    wrote(TELL_MAIL, &f);
    assert_false(has("\nBcc:") || has("\r") || has("\x1b"));
    assert_true(has("a\\r\\nBcc: x@y\\u{202e}"));
}

/* A no alone, of what waits alone, and where it is known who says it alone. */
static void slack_has_a_button_that_denies_and_none_that_approves(void **state)
{
    static const struct {
        bool buttons, waits, ticket, deny;
    } rows[] = {
        {true, true, true, true}, {false, true, true, false}, {true, false, true, false}, {true, true, false, false}};
    struct tell_facts f = some(SPAN("x"));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        f.waits = rows[i].waits;
        f.ticket = rows[i].ticket ? SPAN("0123456789abcdefghjkmnpqrs") : SPAN_NONE;
        buttons = rows[i].buttons;
        wrote(TELL_SLACK, &f);
        assert_int_equal(has("\"action_id\":\"deny\",\"style\":\"danger\",\"value\":\"0123456789abcdefghjkmnpqrs\""),
                         rows[i].deny);
        assert_int_equal(has("action_id"), rows[i].deny);
        assert_false(has("pprove"));
    }
    buttons = false;
}

static void everything_long_still_fits(void **state)
{
    buttons = true;
    static uint8_t bytes[3][4096];
    for (size_t i = 0; i < sizeof(bytes[0]); i++) {
        bytes[0][i] = '\\';
        bytes[1][i] = 0xff;
        bytes[2][i] = (uint8_t) "\xe2\x80\xae"[i % 3];
    }
    for (int i = 0; i < 3; i++)
        for (int k = TELL_WEBHOOK; k < TELL_KINDS; k++) {
            struct tell_facts f = some(span_of(bytes[i], sizeof(bytes[i])));
            f.sandbox =
                span_of("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 63);
            f.waits = true;
            wrote((enum tell_kind)k, &f);
        }
    buttons = false;
}

static void many_say_who(void **state)
{
    struct tell_facts f = {.event = "tickets.many",
                           .words = "Many requests at once",
                           .desk = SPAN("http://localhost:8088"),
                           .count = 120,
                           .waiting = 97,
                           .nwhose = 2};
    f.whose[0].sandbox = SPAN("noisy");
    f.whose[0].n = 90;
    f.whose[1].sandbox = SPAN("calm");
    f.whose[1].n = 7;
    wrote(TELL_WEBHOOK, &f);
    assert_true(has("\"waiting_by_sandbox\":{\"noisy\":90,\"calm\":7}") &&
                has("\"link\":\"http://localhost:8088/\""));
    wrote(TELL_MAIL, &f);
    assert_true(has("  90 of noisy\n") && has("Messages in one: 120"));
    assert_true(span_eq(dynbuf_span(&title), SPAN("Countersign: Many requests at once (97 wait)")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hostile_text_is_shown_and_kept_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(slack_has_a_button_that_denies_and_none_that_approves, setup, teardown),
        cmocka_unit_test_setup_teardown(everything_long_still_fits, setup, teardown),
        cmocka_unit_test_setup_teardown(many_say_who, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
