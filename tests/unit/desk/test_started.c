/* Sandboxes that are started by API: what the desk asks whom, in which order, and what it says of their commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/api/api.h"
#include "web-approval/route.h"

static struct dynbuf sent, noted; /* the last message, but for notes */
static unsigned sent_type, noted_n;
static uint64_t sent_id;
static bool of_note;

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    of_note = type == M_NOTE;
    dynbuf_reset(of_note ? &noted : &sent);
    if (of_note)
        return &noted;
    sent_type = type;
    sent_id = id;
    return &sent;
}

int chan_commit(struct chan *c)
{
    noted_n += of_note;
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

static struct desk desk;
static struct exchange x;
static struct ask waits; /* of another exchange, while the next one is run */
static char path[] = "/tmp/test_started.XXXXXX", db_path[64];

static void answered(struct exchange *done)
{
}

static int group_setup(void **state)
{
    sqlite3 *db;
    const char *src = getenv("srcdir");
    char name[512], text[64 * 1024];
    if (!mkdtemp(path))
        return -1;
    (void)snprintf(db_path, sizeof(db_path), "%s/l.db", path);
    (void)snprintf(name, sizeof(name), "%s/proxy/ledger/store/schema.sql", src ? src : ".");
    FILE *f = fopen(name, "re");
    if (!f || sqlite3_open(db_path, &db) != SQLITE_OK)
        return -1;
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    (void)fclose(f);
    int rc = sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK ||
             sqlite3_exec(db,
                          "INSERT INTO sandbox VALUES ('box','box','uid 0','default','started',4,NULL,'{}',1,1),"
                          "('ci','ci','uid 0','default','token',1,NULL,'{}',1,1),"
                          "('old','old','uid 0','default','ended',7,NULL,'{}',1,1)",
                          NULL, NULL, NULL) != SQLITE_OK;
    (void)sqlite3_close(db);
    desk.store = desk_store_new(db_path);
    desk.ledger = desk.parent = desk.warden = (struct chan *)&desk;
    dynbuf_init(&sent, 1 << 20);
    dynbuf_init(&noted, 1 << 20);
    exchange_answered = answered;
    return rc;
}

static void end(void)
{
    dynbuf_free(&x.raw);
    dynbuf_free(&x.out);
    arena_free(&x.arena);
}

static int group_teardown(void **state)
{
    end();
    desk_store_free(&desk.store);
    dynbuf_free(&sent);
    dynbuf_free(&noted);
    (void)unlink(db_path);
    return rmdir(path);
}

static unsigned control(const char *line, const char *body)
{
    struct http_err e;
    size_t seen = 0, used;
    end();
    memset(desk.asks, 0, sizeof(desk.asks));
    desk.asks[DESK_ASKS - 1] = waits;
    x = (struct exchange){.desk = &desk, .place = PLACE_CONTROL, .file = -1, .now_ms = 10000, .wall_ms = 1000};
    (void)snprintf(x.operator, sizeof(x.operator), "uid 0");
    dynbuf_init(&x.raw, 1 << 20);
    dynbuf_init(&x.out, 1 << 20);
    arena_init(&x.arena, 1 << 22);
    (void)dynbuf_addf(
        &x.raw, "%s HTTP/1.1\r\nHost: countersign\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        line, strlen(body), body);
    assert_int_equal(http_parse_request(dynbuf_span(&x.raw), HTTP_ORIGIN_SERVER, &seen, &x.head, &used, &e), HTTP_OK);
    x.body = span_from(dynbuf_span(&x.raw), used);
    sent_type = noted_n = 0;
    route_run(&x);
    return x.status;
}

static bool says(const char *needle)
{
    return span_find(dynbuf_span(&x.out), span_str(needle)) < x.out.n;
}

static void answer(enum ask_whom whom, uint16_t type, struct span payload)
{
    struct frame f = {.type = type, .id = sent_id, .payload = payload};
    assert_true(ask_answer(&desk, whom, &f));
}

/* --- */

static void what_makes_no_sense_is_asked_of_nobody(void **state)
{
    static const char *const bad[] = {
        "{\"name\":\"A\"}",     "{\"name\":\"../x\"}", "{\"name\":\"\"}",       "{\"limits\":\"none\"}",
        "{\"memory\":0}",       "{\"memory\":1024}",   "{\"memory\":-1}",       "{\"memory\":1.5e30}",
        "{\"pids\":1}",         "{\"disk\":0}",        "{\"files\":1}",         "{\"cpu_percent\":0}",
        "{\"timeout\":604801}", "{\"timeout\":0}",     "{\"network\":\"all\"}", "{\"memory\":\"1G\"}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (control("POST /api/v1/sandboxes/start", bad[i]) != 400 || sent_type != 0)
            fail_msg("%s: %u", bad[i], x.status);
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"ci\"}"), 409); /* somebody else's */
    assert_int_equal(sent_type, 0);
    static const char *const wrong[] = {"{}",
                                        "{\"argv\":\"ls\"}",
                                        "{\"argv\":[1]}",
                                        "{\"argv\":[\"ls\"],\"timeout\":0}",
                                        "{\"argv\":[\"ls\"],\"timeout\":86401}",
                                        "{\"argv\":[\"ls\"],\"env\":{}}",
                                        "{\"argv\":[\"ls\"],\"output\":1073741825}"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (control("POST /api/v1/sandboxes/box/exec", wrong[i]) != 400 || sent_type != 0)
            fail_msg("%s: %u", wrong[i], x.status);
    assert_int_equal(control("POST /api/v1/sandboxes/A/exec", "{\"argv\":[\"ls\"]}"), 404);
    desk.warden = NULL;
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"ls\"]}"), 503);
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{}"), 503);
    desk.warden = (struct chan *)&desk;
}

/* Who repeats a refused command has it run once. */
static void a_command_that_nobody_can_follow_does_not_begin(void **state)
{
    desk.follows = DESK_FOLLOWS;
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"ls\"]}"), 503);
    assert_true(says("Too many") && !x.stream && sent_type == 0 && noted_n == 0);
    desk.follows = DESK_FOLLOWS - 1;
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"ls\"]}"), 200);
    assert_int_equal(sent_type, M_SB_EXEC);
    desk.follows = 0;
}

/* The warden knows who runs; the ledger raises the generation; and only then it is started, of that one. */
static void a_start_is_of_the_generation_that_the_ledger_gave(void **state)
{
    struct wire_box b;
    assert_int_equal(
        control("POST /api/v1/sandboxes/start", "{\"name\":\"box\",\"timeout\":60,\"memory\":134217728}"), 0);
    assert_int_equal(sent_type, M_SB_LIST);
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    assert_int_equal(sent_type, M_SANDBOX_PUT);
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    assert_int_equal(sent_type, M_SB_START);
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_box(&m, &b, false), 0);
    assert_true(span_eq(b.name, SPAN("box")));
    assert_int_equal(b.memory, 134217728);
    assert_int_equal(msg_get_u64(&m), 4);
    assert_int_equal(msg_get_u64(&m), 100);
    assert_int_equal(msg_get_u64(&m), 60000);
    assert_true(msg_get_bool(&m)); /* strict: the gateway is root's (owner_uid) */
    assert_int_equal(msg_end(&m), 0);
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    assert_int_equal(x.status, 201);
    assert_true(says("\"generation\":4") && says("\"limits\":\"strict\"") && says("cgroup v1"));
    assert_int_equal(noted_n, 1);
}

/* The second one would raise the generation of the first, which runs. */
static void two_starts_of_a_name_at_once_are_one(void **state)
{
    static const uint16_t answers[] = {M_SB_LISTED, M_SANDBOX_DONE, M_SB_STARTED};
    static const struct span said[] = {SPAN("\0\0"), SPAN("\1\0\0\0\0"), SPAN("\1\0\0\0\0\1")};
    static struct exchange first;
    for (int step = 0; step < 3; step++) {
        assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 0);
        for (int i = 0; i < step; i++)
            answer(i == 1 ? ASK_LEDGER : ASK_WARDEN, answers[i], said[i]);
        struct ask asked = desk.asks[0];
        assert_true(asked.id != 0);
        first = x;
        asked.x = &first;
        x = (struct exchange){0};
        waits = asked;
        assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 409);
        assert_true(says("is being started") && sent_type == 0);
        assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"two\"}"), 0);
        waits = (struct ask){0};
        end();
        x = first;
    }
}

static void a_start_that_fails_at_any_step_is_said(void **state)
{
    struct dynbuf list;
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 0);
    dynbuf_init(&list, 1024);
    msg_put_u16(&list, 1);
    wire_put_box(&list, &(struct wire_box){SPAN("box"), 64 << 20, 8, 1 << 20, 64});
    for (int i = 0; i < 3; i++)
        msg_put_u64(&list, 1);
    msg_put_u8(&list, 1);
    msg_put_u16(&list, 0);
    answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&list));
    assert_int_equal(x.status, 409); /* and its generation stays */
    assert_int_equal(sent_type, M_SB_LIST);
    assert_int_equal(control("GET /api/v1/sandboxes/started", ""), 0);
    answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&list));
    assert_true(x.status == 200 && says("\"name\":\"box\"") && says("\"pids\":8"));
    assert_int_equal(control("GET /api/v1/sandboxes/started", ""), 0);
    answer(ASK_WARDEN, M_SB_LISTED, span_first(dynbuf_span(&list), list.n - 1));
    assert_int_equal(x.status, 503);
    dynbuf_free(&list);
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 0);
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\0\0\0\0\4full"));
    assert_true(x.status == 503 && says("full"));
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 0);
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\0\0\0\0\3why\0"));
    assert_true(x.status == 503 && says("not started: why"));
    assert_int_equal(noted_n, 0);
    assert_int_equal(sent_type, M_SANDBOX_ENDED); /* that generation is nobody's */
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_true(span_eq(msg_get_span(&m, 63), SPAN("box")));
    assert_int_equal(msg_get_u64(&m), 4);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 0);
    ask_gone(&desk, ASK_WARDEN);
    assert_int_equal(x.status, 503);
}

static void a_command_is_followed_as_events(void **state)
{
    struct dynbuf event;
    struct span bytes;
    unsigned which;
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec",
                             "{\"argv\":[\"sh\",\"-c\",\"ls\"],\"env\":[\"A=b\"],\"dir\":\"/tmp\",\"timeout\":2}"),
                     200);
    assert_int_equal(sent_type, M_SB_EXEC);
    assert_true(x.stream && x.follow == sent_id && noted_n == 1);
    assert_true(span_find(dynbuf_span(&noted), SPAN("[\"sh\",\"-c\",\"ls\"]")) < noted.n);
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_true(span_eq(msg_get_span(&m, 63), SPAN("box")));
    assert_int_equal(msg_get_u64(&m), 2000);
    assert_int_equal(msg_get_u64(&m), 16 << 20);
    assert_int_equal(msg_get_u16(&m), 3);
    assert_int_equal(msg_get_u16(&m), 1);
    for (const char *const *w = (const char *const[]){"sh", "-c", "ls", "A=b", "/tmp", NULL}; *w; w++)
        assert_true(span_eq(msg_get_span(&m, 10), span_str(*w)));
    assert_int_equal(msg_end(&m), 0);
    struct frame f = {.type = M_SB_OUTPUT, .id = x.follow, .payload = SPAN("\2err\n")};
    dynbuf_init(&event, 4096);
    assert_int_equal(api_started_heard(&f, &which, &bytes, &event), 0);
    assert_true(which == 2 && span_eq(bytes, SPAN("err\n")) && event.n == 0);
    api_started_output(&event, which, bytes);
    assert_true(span_eq(dynbuf_span(&event), SPAN("event: stderr\ndata: ZXJyCg==\n\n")));
    for (const char *const *bad = (const char *const[]){"\3x", "\1", "", NULL}; *bad; bad++) {
        f.payload = span_str(*bad);
        dynbuf_reset(&event);
        assert_int_equal(api_started_heard(&f, &which, &bytes, &event), -1);
    }
    static const uint8_t exited[] = {1, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                     0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    f = (struct frame){.type = M_SB_EXIT, .id = x.follow, .payload = span_of(exited, sizeof(exited))};
    dynbuf_reset(&event);
    assert_int_equal(api_started_heard(&f, &which, &bytes, &event), 0);
    assert_int_equal(which, 0);
    assert_true(span_find(dynbuf_span(&event), SPAN("\"how\":\"exited\",\"status\":3,\"said\":4,")) < event.n);
    dynbuf_free(&event);
    api_started_unfollow(&desk, 77);
    assert_true(sent_type == M_SB_KILL && sent_id == 77);
}

/* Its row says whose it is, as long as it runs. */
static void one_that_runs_keeps_its_row(void **state)
{
    assert_int_equal(control("DELETE /api/v1/sandboxes/box", ""), 409);
    assert_true(sent_type == 0 && says("sandbox destroy box"));
    assert_int_equal(control("DELETE /api/v1/sandboxes/old", ""), 0);
    assert_int_equal(sent_type, M_SANDBOX_RM);
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    assert_int_equal(x.status, 204);
}

/* Answered when nothing of it is left, and the ledger has ended its generation: also when the warden knows of none.
 */
static void the_end_of_a_sandbox_is_the_end_of_its_generation(void **state)
{
    static const struct {
        struct span warden, ledger;
        unsigned status, notes;
    } cases[] = {{SPAN("\0"), SPAN("\1\0\0\0\0"), 404, 0},
                 {SPAN("\1"), SPAN("\1\0\0\0\0"), 204, 1},
                 {SPAN("\1"), SPAN("\0\0\0\0\4full"), 503, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(control("POST /api/v1/sandboxes/box/destroy", ""), 0);
        assert_int_equal(sent_type, M_SB_DESTROY);
        answer(ASK_WARDEN, M_SB_DESTROYED, cases[i].warden);
        assert_int_equal(x.status, 0);
        assert_int_equal(sent_type, M_SANDBOX_ENDED);
        struct msg_in m = msg_in(dynbuf_span(&sent));
        assert_true(span_eq(msg_get_span(&m, 63), SPAN("box")));
        assert_int_equal(msg_get_u64(&m), 4);
        assert_int_equal(msg_end(&m), 0);
        answer(ASK_LEDGER, M_SANDBOX_DONE, cases[i].ledger);
        assert_int_equal(x.status, cases[i].status);
        assert_int_equal(noted_n, cases[i].notes);
    }
    assert_int_equal(control("POST /api/v1/sandboxes/old/destroy", ""), 0);
    answer(ASK_WARDEN, M_SB_DESTROYED, SPAN("\0"));
    assert_int_equal(x.status, 404);
    assert_int_equal(sent_type, M_SB_DESTROY); /* that of the ledger's is over */
    assert_int_equal(control("POST /api/v1/sandboxes/box/destroy", ""), 0);
    ask_gone(&desk, ASK_WARDEN);
    assert_int_equal(x.status, 503);
}

/* Whoever chooses the command does not choose whether it is recorded, nor hides the rest of it. */
static void every_command_is_in_the_audit(void **state)
{
    struct dynbuf body;
    dynbuf_init(&body, 64 * 1024);
    (void)dynbuf_add(&body, SPAN("{\"argv\":[\"sh\""));
    for (int i = 0; i < 1020; i++)
        (void)dynbuf_add(&body, SPAN(",\"\\u0001\""));
    (void)dynbuf_add(&body, SPAN("]}\0"));
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", (const char *)body.p), 200);
    assert_int_equal(noted_n, 1);
    assert_true(span_find(dynbuf_span(&noted), SPAN("[\"sh\",\"\\u0001\",")) < noted.n);
    assert_int_equal(span_find(dynbuf_span(&noted), SPAN("\"cut\"")), noted.n);
    dynbuf_reset(&body);
    (void)dynbuf_addf(&body, "{\"argv\":[\"sh\",\"-c\",\"%2000s\",\"and more\"]}", "; evil");
    (void)dynbuf_add_byte(&body, 0);
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", (const char *)body.p), 200);
    assert_int_equal(noted_n, 1);
    assert_true(span_find(dynbuf_span(&noted), SPAN("\"cut\":988}")) < noted.n); /* 2 + 2 + 2000 + 8 - 1024 */
    dynbuf_free(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_makes_no_sense_is_asked_of_nobody),
        cmocka_unit_test(a_command_that_nobody_can_follow_does_not_begin),
        cmocka_unit_test(a_start_is_of_the_generation_that_the_ledger_gave),
        cmocka_unit_test(two_starts_of_a_name_at_once_are_one),
        cmocka_unit_test(a_start_that_fails_at_any_step_is_said),
        cmocka_unit_test(a_command_is_followed_as_events),
        cmocka_unit_test(the_end_of_a_sandbox_is_the_end_of_its_generation),
        cmocka_unit_test(one_that_runs_keeps_its_row),
        cmocka_unit_test(every_command_is_in_the_audit),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
