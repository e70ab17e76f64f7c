/* What comes as if from Slack, as far as the desk: a keeper that is played. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"
#include "web-approval/ask.h"
#include "web-approval/deciding/slack.h"
#include "web-approval/route.h"

#define SIGNED "X-Slack-Request-Timestamp: 1531420618\r\nX-Slack-Signature: v0=aa\r\n"
#define TICKET "0123456789abcdefghjkmnpqrs"

/* --- the other side of the channels: what was said last --------------------- */

static struct dynbuf sent;
static unsigned sent_type;
static uint64_t sent_id;

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    dynbuf_reset(&sent);
    sent_type = type;
    sent_id = id;
    return &sent;
}

int chan_commit(struct chan *c)
{
    return 0;
}

int frame_take_fd(struct frame *f, unsigned i)
{
    return -1;
}

uint64_t loop_now(const struct loop *l)
{
    return 0;
}

uint64_t loop_wall(const struct loop *l)
{
    return 0;
}

/* --- the desk ------------------------------------------------------------- */

static struct desk desk;
static char dir[] = "/tmp/test_slack_page.XXXXXX", db_path[64];

/* Those that nobody waits for are freed, as the server does. */
static void answered(struct exchange *x)
{
    if (!x->slack)
        return;
    dynbuf_free(&x->out);
    arena_free(&x->arena);
    free(x);
}

static int group_setup(void **state)
{
    sqlite3 *db;
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(db_path, sizeof(db_path), "%s/l.db", dir);
    if (sqlite3_open(db_path, &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "CREATE TABLE operator (name TEXT PRIMARY KEY, uid TEXT, groups TEXT, password TEXT, generation "
                     "INTEGER, created_ms INTEGER); INSERT INTO operator VALUES ('alice', NULL, '', '', 1, 1)",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_close(db) != SQLITE_OK)
        return -1;
    dynbuf_init(&sent, 1 << 20);
    exchange_answered = answered;
    return 0;
}

static int group_teardown(void **state)
{
    dynbuf_free(&sent);
    (void)unlink(db_path);
    return rmdir(dir);
}

static int setup(void **state)
{
    desk = (struct desk){.ledger = (struct chan *)&desk, .keeper = (struct chan *)&desk};
    desk.store = desk_store_new(db_path);
    (void)snprintf(desk.notify, sizeof(desk.notify), "ops webhook\nother slack\nteam slack signing\n");
    (void)snprintf(desk.desk_url, sizeof(desk.desk_url), "https://desk.example");
    sent_type = 0;
    return desk.store ? guard_init(&desk.guard, span_str(desk.desk_url)) : -1;
}

static int teardown(void **state)
{
    desk_store_free(&desk.store);
    return 0;
}

static struct exchange *ask(const char *method, const char *path, const char *host, const char *fields,
                            struct span body)
{
    struct exchange *x = calloc(1, sizeof(*x));
    struct http_err e;
    size_t seen = 0, used;
    assert_non_null(x);
    *x = (struct exchange){.desk = &desk, .place = PLACE_PAGE, .file = -1, .now_ms = 1, .wall_ms = 1000};
    dynbuf_init(&x->raw, 1 << 20);
    dynbuf_init(&x->out, 1 << 20);
    arena_init(&x->arena, 1 << 22);
    (void)dynbuf_addf(&x->raw, "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %zu\r\n\r\n", method, path, host,
                      fields, body.n);
    assert_int_equal(http_parse_request(dynbuf_span(&x->raw), HTTP_ORIGIN_SERVER, &seen, &x->head, &used, &e),
                     HTTP_OK);
    x->body = body;
    route_run(x);
    return x;
}

static unsigned end(struct exchange *x)
{
    unsigned status = x->status;
    dynbuf_free(&x->raw);
    dynbuf_free(&x->out);
    arena_free(&x->arena);
    free(x);
    return status;
}

static struct exchange *press(void)
{
    struct exchange *x = ask("POST", "/slack/team", "desk.example", SIGNED, SPAN("payload=%7b%7d"));
    assert_int_equal(x->status, 0);
    assert_int_equal(sent_type, M_SLACK);
    return x;
}

/* What the keeper finds. */
static void found(enum slack_said what, const char *name)
{
    struct frame f = {.type = M_SLACK_SAID, .id = sent_id};
    struct dynbuf b;
    dynbuf_init(&b, 1024);
    msg_put_u8(&b, (uint8_t)what);
    msg_put_u64(&b, 77);
    msg_put_span(&b, span_str(name));
    msg_put_span(&b, SPAN(TICKET));
    msg_put_span(&b, SPAN("a secret of the keeper's log"));
    f.payload = dynbuf_span(&b);
    assert_true(ask_answer(&desk, ASK_KEEPER, &f));
    dynbuf_free(&b);
}

static void what_is_no_press_is_not_looked_at(void **state)
{
    static uint8_t long_body[SLACK_BODY_MAX + 1];
    static const struct {
        const char *method, *path, *host, *fields;
        size_t body;
        unsigned status;
    } rows[] = {
        {"POST", "/slack/team", "desk.example", "", 9, 403},
        {"POST", "/slack/team", "desk.example", "X-Slack-Signature: v0=aa\r\n", 9, 403},
        {"POST", "/slack/team", "desk.example", SIGNED, 0, 403},
        {"POST", "/slack/team", "desk.example", SIGNED, SLACK_BODY_MAX + 1, 403},
        {"POST", "/slack/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "desk.example", SIGNED,
         9, 404},
        {"POST", "/slack/ops", "desk.example", SIGNED, 9, 404},
        {"POST", "/slack/other", "desk.example", SIGNED, 9, 404},
        {"POST", "/slack/team", "evil.example", SIGNED, 9, 403},
        {"GET", "/slack/team", "desk.example", SIGNED, 9, 403},
        {"POST", "/slack/team/approve", "desk.example", SIGNED, 9, 403},
        {"POST", "/slack/", "desk.example", SIGNED, 9, 403},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned status =
            end(ask(rows[i].method, rows[i].path, rows[i].host, rows[i].fields, span_of(long_body, rows[i].body)));
        if (status != rows[i].status || sent_type != 0)
            fail_msg("%zu: %u", i, status);
    }
}

/* Strangers take four places of the many that the desk has for its questions. */
static void few_are_looked_at_at_once(void **state)
{
    struct exchange *x[SLACK_AT_ONCE + 1];
    for (size_t i = 0; i < SLACK_AT_ONCE; i++)
        x[i] = press();
    assert_int_equal(end(ask("POST", "/slack/team", "desk.example", SIGNED, SPAN("x"))), 503);
    found(SLACK_REFUSED, "");
    assert_int_equal(x[SLACK_AT_ONCE - 1]->status, 403);
    assert_int_equal(span_find(dynbuf_span(&x[SLACK_AT_ONCE - 1]->out), SPAN("keeper's log")),
                     x[SLACK_AT_ONCE - 1]->out.n);
    x[SLACK_AT_ONCE] = press();
    for (size_t i = 0; i <= SLACK_AT_ONCE; i++)
        (void)end(x[i]);
}

/* Slack has its answer, and who pressed it is told why nothing was done: nothing is asked of the ledger. */
static void who_is_nobody_here_decides_nothing(void **state)
{
    static const struct {
        enum slack_said what;
        const char *name, *words;
    } rows[] = {{SLACK_NOTHING, "alice", NULL},
                {SLACK_DENY, "", "names nobody"},
                {SLACK_DENY, "mallory", "is not there"},
                {SLACK_DENY, "uid 0", "is not there"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct exchange *x = press();
        found(rows[i].what, rows[i].name);
        assert_int_equal(end(x), 200);
        assert_int_equal(sent_type, rows[i].words ? M_SLACK_ANSWER : M_SLACK);
        if (rows[i].words == NULL)
            continue;
        struct msg_in m = msg_in(dynbuf_span(&sent));
        assert_int_equal(msg_get_u64(&m), 77);
        assert_false(msg_get_bool(&m)); /* not in place of the message, which others still act on */
        struct span words = msg_get_span(&m, SLACK_WORDS_MAX);
        assert_true(msg_end(&m) == 0 && span_find(words, span_str(rows[i].words)) < words.n);
    }
    static const struct {
        enum slack_said what;
        unsigned status;
    } refused[] = {{SLACK_REFUSED, 403}, {SLACK_UNKNOWN, 400}, {SLACK_NOT_NOW, 503}, {SLACK_SAIDS, 403}};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct exchange *x = press();
        found(refused[i].what, "alice");
        assert_int_equal(sent_type, M_SLACK);
        assert_int_equal(end(x), refused[i].status);
    }
}

/* Those that the ledger is asked about count, too: while it stands still, no more come than so many. */
static void a_ledger_that_stands_still_holds_few(void **state)
{
    static struct exchange behind[SLACK_ASKS];
    for (size_t i = 0; i < SLACK_ASKS; i++) {
        behind[i].slack = true;
        desk.asks[DESK_ASKS - 1 - i] = (struct ask){.id = 900 + i, .x = &behind[i]};
    }
    assert_int_equal(end(ask("POST", "/slack/team", "desk.example", SIGNED, SPAN("x"))), 503);
    desk.asks[DESK_ASKS - 1].id = 0;
    struct exchange *x = press();
    found(SLACK_NOTHING, "");
    assert_int_equal(end(x), 200);
}

#define FRESH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {FRESH(what_is_no_press_is_not_looked_at), FRESH(few_are_looked_at_at_once),
                                       FRESH(who_is_nobody_here_decides_nothing),
                                       FRESH(a_ledger_that_stands_still_holds_few)};
    return cmocka_run_group_tests_name("slack page", tests, group_setup, group_teardown);
}
