/* Sandboxes that are started by API: what the desk asks whom, in which order, and what it says of their commands. */
#include "tests/unit/desk/started_world.h"

#include "common/net/chan.h"
#include "proxy/wire_ticket.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "tests/unit/policy/policy_kit.h"

static void what_makes_no_sense_is_asked_of_nobody(void **state)
{
    static const char *const bad[] = {
        "{\"name\":\"A\"}",      "{\"name\":\"otlp-1\"}", "{\"name\":\"../x\"}",  "{\"name\":\"\"}",
        "{\"limits\":\"none\"}", "{\"memory\":0}",        "{\"memory\":1024}",    "{\"memory\":-1}",
        "{\"memory\":1.5e30}",   "{\"pids\":1}",          "{\"disk\":0}",         "{\"files\":1}",
        "{\"cpu_percent\":0}",   "{\"timeout\":604801}",  "{\"timeout\":0}",      "{\"network\":\"all\"}",
        "{\"memory\":\"1G\"}",   "{\"image\":\"A\"}",     "{\"image\":\"../x\"}", "{\"image\":\"\"}",
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
                                        "{\"argv\":[\"ls\"],\"output\":1073741825}",
                                        "{\"argv\":[\"ls\"],\"tty\":1}",
                                        "{\"argv\":[\"ls\"],\"lane\":1}",
                                        "{\"argv\":[\"ls\"],\"lane\":\"\"}",
                                        "{\"argv\":[\"ls\"],\"lane\":\"Web\"}",
                                        "{\"argv\":[\"ls\"],\"tty\":true,\"input\":false}",
                                        "{\"argv\":[\"ls\"],\"tty\":true,\"rows\":0}",
                                        "{\"argv\":[\"ls\"],\"tty\":true,\"columns\":65536}",
                                        "{\"argv\":[\"ls\"],\"input\":true,\"rows\":24,\"columns\":80}",
                                        "{\"argv\":[\"ls\"],\"detach\":true,\"input\":true}",
                                        "{\"argv\":[\"ls\"],\"detach\":true,\"tty\":true}",
                                        "{\"argv\":[\"ls\"],\"detach\":true,\"output\":9}"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (control("POST /api/v1/sandboxes/box/exec", wrong[i]) != 400 || sent_type != 0)
            fail_msg("%s: %u", wrong[i], x.status);
    assert_int_equal(control("POST /api/v1/sandboxes/A/exec", "{\"argv\":[\"ls\"]}"), 404);
    desk.warden = NULL;
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"ls\"]}"), 503);
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{}"), 503);
    desk.warden = (struct chan *)&desk;
}

/* A lane is what a scope of the policy asks for; without a policy nobody knows of one. */
static void a_command_has_a_lane_that_the_policy_knows(void **state)
{
    static struct kit k;
    static const char line[] = "POST /api/v1/sandboxes/box/exec", web[] = "{\"argv\":[\"ls\"],\"lane\":\"web\"}";
    assert_int_equal(control(line, web), 409);
    assert_true(kit_load(&k,
                         "version: 1\nscopes:\n  web: { sandboxes: [other], labels: { lane: [w*], team: [a] } }\n"
                         "  not: { labels: { team: [docs] } }\nupstreams:\n  - { host: h.example }\n",
                         NULL));
    desk.policy = k.p;
    assert_int_equal(control(line, "{\"argv\":[\"ls\"],\"lane\":\"docs\"}"), 409);
    assert_true(says("No such lane") && sent_type == 0);
    assert_int_equal(control(line, web), 200);
    assert_int_equal(sent_type, M_SB_EXEC);
    assert_true(span_ends(dynbuf_span(&sent), SPAN("\0\0\0\3web")));
    assert_int_equal(control(line, "{\"argv\":[\"ls\"]}"), 200);
    assert_true(span_ends(dynbuf_span(&sent), SPAN("\0\0\0\2ls\0\0\0\0"))); /* else it has none of its own */
    desk.policy = NULL;
    kit_free(&k);
}

/* Who repeats a refused command has it run once. */
static void a_command_that_nobody_can_follow_does_not_begin(void **state)
{
    desk.held[SHARE_FOLLOW] = DESK_FOLLOWS;
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"ls\"]}"), 503);
    assert_true(says("Too many") && !x.stream && sent_type == 0 && noted_n == 0);
    desk.held[SHARE_FOLLOW] = DESK_FOLLOWS - 1;
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"ls\"]}"), 200);
    assert_int_equal(sent_type, M_SB_EXEC);
    desk.held[SHARE_FOLLOW] = 0;
}

/* The warden knows who runs; the ledger raises the generation; and only then it is started, of that one. */
static void a_start_is_of_the_generation_that_the_ledger_gave(void **state)
{
    struct wire_box b;
    assert_int_equal(
        control("POST /api/v1/sandboxes/start", "{\"name\":\"box\",\"timeout\":60,\"memory\":134217728}"), 0);
    assert_int_equal(sent_type, M_SB_IMAGE);
    assert_true(span_eq(dynbuf_span(&sent), SPAN("\0\0\0\0"))); /* no name: the machine's own */
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
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
    assert_false(msg_get_bool(&m));
    assert_int_equal(msg_end(&m), 0);
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    assert_int_equal(x.status, 201);
    assert_true(says("\"generation\":4") && says("\"limits\":\"strict\"") && says("cgroup v1"));
    assert_int_equal(noted_n, 1);
}

/* By its digest it is started, written down and listed, whatever its name means by then. */
static void an_image_is_what_its_name_meant(void **state)
{
    static const uint8_t head[] = {1, 0, 0, 0, 71};
    struct wire_sandbox row;
    struct wire_box b;
    struct dynbuf found;
    dynbuf_init(&found, 256);
    (void)dynbuf_add(&found, span_of(head, sizeof(head)));
    (void)dynbuf_add(&found, SPAN(A_DIGEST "\0\0\0\0"));
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\",\"image\":\"debian\"}"), 0);
    assert_true(sent_type == M_SB_IMAGE && span_eq(dynbuf_span(&sent), SPAN("\0\0\0\6debian")));
    answer(ASK_WARDEN, M_SB_IMAGE, dynbuf_span(&found));
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_sandbox(&m, &row), 0);
    assert_int_equal(row.nlabels, 1);
    assert_true(span_eq(row.label[0].key, SPAN("image")) && span_eq(row.label[0].value, SPAN(A_DIGEST)));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_box(&m, &b, false), 0);
    assert_true(span_eq(b.image, SPAN("debian")) && span_eq(b.digest, SPAN(A_DIGEST)));
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    assert_true(x.status == 201 && says("\"image\":\"debian\",\"digest\":\"" A_DIGEST "\""));
    static const struct {
        struct span said;
        unsigned status;
    } not [] = {{SPAN("\0\0\0\0\0\0\0\0\0"), 404},       /* none of this name */
                {SPAN("\0\0\0\0\0\0\0\0\3why"), 503},    /* it cannot be told */
                {SPAN(UNKNOWN), 404},                    /* a name without a digest is none */
                {SPAN("\1\0\0\0\6sha256\0\0\0\0"), 503}, /* nor is this */
                {SPAN("\1"), 503}};
    for (size_t i = 0; i < sizeof(not ) / sizeof(not [0]); i++) {
        assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\",\"image\":\"debian\"}"), 0);
        answer(ASK_WARDEN, M_SB_IMAGE, not [i].said);
        assert_int_equal(x.status, not [i].status);
        assert_int_equal(sent_type, M_SB_IMAGE);
    }
    dynbuf_free(&found);
}

/* How much it may send goes with it, and where nothing is asked for it is as the configuration says. */
static void its_egress_goes_with_it(void **state)
{
    static const struct {
        const char *asked;
        uint64_t requests, bytes;
    } row[] = {{"", 50, 0},
               {",\"egress\":{\"bytes\":4096}", 50, 4096},
               {",\"egress\":{\"requests\":7,\"bytes\":1048576}", 7, 1048576}};
    static const char *const wrong[] = {"{\"requests\":0}", "{\"bytes\":1023}", "{\"hosts\":1}", "{\"bytes\":\"1\"}",
                                        "7"};
    struct wire_sandbox put;
    struct wire_box b;
    char body[160];
    desk.egress_requests = 50;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        (void)snprintf(body, sizeof(body), "{\"name\":\"box\"%s}", row[i].asked);
        assert_int_equal(control("POST /api/v1/sandboxes/start", body), 0);
        answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
        answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
        struct msg_in m = msg_in(dynbuf_span(&sent));
        assert_int_equal(wire_get_sandbox(&m, &put), 0);
        assert_true(put.egress[EGRESS_REQUESTS] == row[i].requests && put.egress[EGRESS_BYTES] == row[i].bytes);
        assert_int_equal(put.egress_epoch, 0);
        answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
        m = msg_in(dynbuf_span(&sent));
        assert_int_equal(wire_get_box(&m, &b, false), 0);
        assert_true(b.egress_requests == row[i].requests && b.egress_bytes == row[i].bytes);
        answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
        (void)snprintf(body, sizeof(body), "\"egress\":{\"requests\":%llu,", (unsigned long long)row[i].requests);
        assert_true(x.status == 201 && says(body));
    }
    desk.egress_requests = 0;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        (void)snprintf(body, sizeof(body), "{\"name\":\"box\",\"egress\":%s}", wrong[i]);
        (void)control("POST /api/v1/sandboxes/start", body);
        assert_int_equal(x.status, 400);
    }
}

/* Its lane is a label, which policies name, and so it stays when it goes on; a fork has one if it is given one. */
static void a_lane_is_a_label_of_it(void **state)
{
    static const char *const wrong[] = {"\"\"", "\"A\"", "\"-a\"", "\"a b\"", "1"};
    struct wire_sandbox row;
    struct wire_box b;
    char body[128];
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\",\"lane\":\"web\"}"), 0);
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_sandbox(&m, &row), 0);
    assert_int_equal(row.nlabels, 1);
    assert_true(span_eq(row.label[0].key, SPAN("lane")) && span_eq(row.label[0].value, SPAN("web")));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_box(&m, &b, false), 0);
    assert_true(span_eq(b.lane, SPAN("web")));
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    assert_true(x.status == 201 && says("\"lane\":\"web\""));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        (void)snprintf(body, sizeof(body), "{\"name\":\"new\",\"lane\":%s}", wrong[i]);
        assert_int_equal(control("POST /api/v1/sandboxes/start", body), 400);
        assert_int_equal(control("POST /api/v1/sandboxes/box/fork", body), 400);
    }
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"network\":true}"), 400); /* the dock's to say */
    assert_int_equal(sent_type, 0);
}

/* The second one would raise the generation of the first, which runs. */
static void two_starts_of_a_name_at_once_are_one(void **state)
{
    static const uint16_t answers[] = {M_SB_IMAGE, M_SB_LISTED, M_SANDBOX_DONE, M_SB_STARTED};
    static const struct span said[] = {SPAN(UNKNOWN), SPAN("\0\0"), SPAN("\1\0\0\0\0"), SPAN("\1\0\0\0\0\1")};
    static struct exchange first;
    for (int step = 0; step < 4; step++) {
        assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 0);
        for (int i = 0; i < step; i++)
            answer(i == 2 ? ASK_LEDGER : ASK_WARDEN, answers[i], said[i]);
        struct ask asked = desk.asks[0];
        assert_true(asked.id != 0);
        first = x;
        asked.x = &first;
        x = (struct exchange){0};
        waits = asked;
        assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 409);
        assert_true(says("is being started") && sent_type == 0);
        assert_int_equal(control("POST /api/v1/sandboxes/box/destroy", ""), 409); /* it would run on */
        assert_true(says("It starts") && sent_type == 0);
        assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"two\"}"), 0);
        waits = (struct ask){0};
        end();
        x = first;
    }
}

static void a_start_that_fails_at_any_step_is_said(void **state)
{
    struct dynbuf list = list_of_one(PAUSE_NONE);
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 0);
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
    answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&list));
    assert_int_equal(x.status, 409); /* and its generation stays */
    assert_int_equal(sent_type, M_SB_LIST);
    assert_int_equal(control("GET /api/v1/sandboxes/started", ""), 0);
    answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&list));
    assert_true(x.status == 200 && says("\"name\":\"box\"") && says("\"pids\":8") && says("\"state\":\"running\""));
    assert_int_equal(control("GET /api/v1/sandboxes/started", ""), 0);
    answer(ASK_WARDEN, M_SB_LISTED, span_first(dynbuf_span(&list), list.n - 1));
    assert_int_equal(x.status, 503);
    dynbuf_free(&list);
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 0);
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\0\0\0\0\4full"));
    assert_true(x.status == 503 && says("full"));
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"box\"}"), 0);
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
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
    assert_int_equal(msg_get_u8(&m), TALK_NO_INPUT);
    assert_int_equal(msg_get_u16(&m), 0);
    assert_int_equal(msg_get_u16(&m), 0);
    assert_int_equal(msg_get_u8(&m), false);
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

static void a_terminal_is_asked_for_with_its_size(void **state)
{
    static const struct {
        const char *body;
        unsigned input, rows, columns;
        uint64_t output;
    } rows[] = {{"{\"argv\":[\"sh\"],\"tty\":true}", TALK_TERMINAL, 24, 80, 1 << 30},
                {"{\"argv\":[\"sh\"],\"tty\":true,\"input\":true,\"rows\":1,\"columns\":65535,\"output\":9}",
                 TALK_TERMINAL, 1, 65535, 9},
                {"{\"argv\":[\"sh\"],\"tty\":false,\"input\":true}", TALK_PIPE, 0, 0, 16 << 20}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(control("POST /api/v1/sandboxes/box/exec", rows[i].body), 200);
        struct msg_in m = msg_in(dynbuf_span(&sent));
        (void)msg_get_span(&m, 63);
        (void)msg_get_u64(&m);
        assert_int_equal(msg_get_u64(&m), rows[i].output);
        assert_int_equal(msg_get_u8(&m), rows[i].input);
        assert_int_equal(msg_get_u16(&m), rows[i].rows);
        assert_int_equal(msg_get_u16(&m), rows[i].columns);
        assert_true(x.input && x.terminal == (rows[i].input == TALK_TERMINAL));
    }
}

/* Its number is the answer; whoever asked is waited for by nobody, and it lives a day. */
static void a_detached_command_is_a_number(void **state)
{
    static const struct {
        const char *body;
        uint64_t timeout_ms;
    } rows[] = {{"{\"argv\":[\"ls\"],\"detach\":true}", 86400 * 1000},
                {"{\"argv\":[\"ls\"],\"detach\":true,\"timeout\":2}", 2000}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(control("POST /api/v1/sandboxes/box/exec", rows[i].body), 0);
        assert_int_equal(sent_type, M_SB_EXEC);
        struct msg_in m = msg_in(dynbuf_span(&sent));
        (void)msg_get_span(&m, 63);
        assert_int_equal(msg_get_u64(&m), rows[i].timeout_ms);
        (void)msg_get_u64(&m);
        assert_int_equal(msg_get_u8(&m), TALK_NO_INPUT);
        (void)msg_get_u32(&m);
        assert_true(msg_get_bool(&m));
        assert_int_equal(noted_n, 0);
        answer(ASK_WARDEN, M_SB_DETACHED, SPAN("\0\0\0\0\0\0\0\3\0\0\0\7\0\0\0\0"));
        assert_true(x.status == 201 && says("{\"command\":\"3.7\"}") && !x.stream && noted_n == 1);
        assert_true(span_find(dynbuf_span(&noted), SPAN("[\"ls\"]")) < noted.n);
    }
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", rows[0].body), 0);
    answer(ASK_WARDEN, M_SB_DETACHED, SPAN("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\4full"));
    assert_true(x.status == 503 && says("full") && noted_n == 0);
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", rows[0].body), 0);
    ask_gone(&desk, ASK_WARDEN);
    assert_true(x.status == 503 && says("may run"));
    desk.held[SHARE_FOLLOW] = DESK_FOLLOWS; /* nobody follows it */
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", rows[0].body), 0);
    assert_int_equal(control("POST /api/v1/sandboxes/box/attach", "{\"command\":\"3.7\"}"), 503);
    assert_int_equal(sent_type, 0);
    desk.held[SHARE_FOLLOW] = 0;
    assert_int_equal(control("POST /api/v1/sandboxes/A/exec", rows[0].body), 404);
}

static void commands_are_listed_and_followed(void **state)
{
    struct dynbuf list;
    assert_int_equal(control("GET /api/v1/sandboxes/box/commands", ""), 0);
    assert_int_equal(sent_type, M_SB_COMMANDS);
    dynbuf_init(&list, 4096);
    msg_put_u8(&list, true);
    msg_put_u64(&list, 3);
    msg_put_u16(&list, 2);
    for (unsigned i = 0; i < 2; i++) {
        msg_put_u32(&list, 9 - i);
        msg_put_u64(&list, 1234);
        msg_put_u8(&list, i == 1);
        msg_put_u8(&list, i == 0);
        msg_put_u8(&list, i == 0);
        msg_put_u8(&list, i == 0 ? 0 : SB_SIGNALLED);
        msg_put_u8(&list, i == 0 ? 0 : 9);
        msg_put_u8(&list, i == 1);
        msg_put_span(&list, i == 0 ? SPAN("sh\0") : SPAN("sh\0\0\"\n\0"));
    }
    answer(ASK_WARDEN, M_SB_COMMANDS_ARE, dynbuf_span(&list));
    assert_int_equal(x.status, 200);
    assert_true(
        says("{\"command\":\"3.9\",\"age_ms\":1234,\"detached\":false,\"followed\":true,\"state\":\"running\","
             "\"argv\":[\"sh\"],\"cut\":false}"));
    assert_true(
        says("{\"command\":\"3.8\",\"age_ms\":1234,\"detached\":true,\"followed\":false,\"state\":\"signalled\","
             "\"signal\":9,\"argv\":[\"sh\",\"\",\"\\\"\\n\"],\"cut\":true}"));
    assert_int_equal(control("GET /api/v1/sandboxes/box/commands", ""), 0);
    answer(ASK_WARDEN, M_SB_COMMANDS_ARE, span_first(dynbuf_span(&list), list.n - 1));
    assert_int_equal(x.status, 503);
    dynbuf_free(&list);
    assert_int_equal(control("GET /api/v1/sandboxes/box/commands", ""), 0);
    answer(ASK_WARDEN, M_SB_COMMANDS_ARE, SPAN("\0\0\0\0\0\0\0\0\0\0\0"));
    assert_int_equal(x.status, 404);
    assert_int_equal(control("GET /api/v1/sandboxes/A/commands", ""), 404);
    assert_int_equal(control("POST /api/v1/sandboxes/box/attach", "{\"command\":\"3.7\"}"), 200);
    assert_true(sent_type == M_SB_ATTACH && x.stream && x.follow == sent_id && !x.input && noted_n == 1);
    assert_true(span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\0\0\0\0\0\0\0\3\0\0\0\7")));
    assert_true(span_find(dynbuf_span(&noted), SPAN("\"generation\":3,\"number\":7")) < noted.n);
    for (const char *const *bad =
             (const char *const[]){"{\"command\":7}", "{\"command\":\"7\"}", "{\"command\":\"3.0\"}",
                                   "{\"command\":\"3.7.1\"}", "{\"command\":\".7\"}", NULL};
         *bad; bad++)
        assert_int_equal(control("POST /api/v1/sandboxes/box/attach", *bad), 400);
    assert_int_equal(control("POST /api/v1/sandboxes/box/attach", "{}"), 400);
}

static void a_signal_is_sent_to_a_command_that_is_there(void **state)
{
    static const struct {
        struct span said;
        unsigned status, notes;
    } cases[] = {{SPAN("\1"), 204, 1}, {SPAN("\0"), 404, 0}, {SPAN("\2"), 409, 0}, {SPAN("\3"), 409, 0},
                 {SPAN("\4"), 404, 0}, {SPAN("\5"), 404, 0}, {SPAN("\6"), 503, 0}, {SPAN_NONE, 503, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(control("POST /api/v1/sandboxes/box/signal", "{\"command\":\"3.7\",\"signal\":9}"), 0);
        assert_int_equal(sent_type, M_SB_SIGNAL);
        assert_true(span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\0\0\0\0\0\0\0\3\0\0\0\7\11")));
        answer(ASK_WARDEN, M_SB_SIGNALLED, cases[i].said);
        assert_int_equal(x.status, cases[i].status);
        assert_int_equal(noted_n, cases[i].notes);
        assert_int_equal(says("of another start of the sandbox"), i == SB_FOUND_OTHER);
        if (cases[i].notes > 0)
            assert_true(span_find(dynbuf_span(&noted), SPAN("\"generation\":3,\"number\":7,\"signal\":9}")) <
                        noted.n);
    }
    assert_int_equal(control("POST /api/v1/sandboxes/box/signal", "{\"command\":\"3.7\"}"), 0);
    assert_true(span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\0\0\0\0\0\0\0\3\0\0\0\7\17")));
    for (const char *const *bad =
             (const char *const[]){"{\"command\":\"3.7\",\"signal\":0}", "{\"command\":\"3.7\",\"signal\":65}",
                                   "{\"signal\":9}", "{\"command\":\"3.4294967296\"}", NULL};
         *bad; bad++)
        assert_int_equal(control("POST /api/v1/sandboxes/box/signal", *bad), 400);
}

static bool notes(const char *needle)
{
    return span_find(dynbuf_span(&noted), span_str(needle)) < noted.n;
}

/* However long a name is, and whatever stands before it or in it. */
static void what_is_done_with_files_is_recorded_to_the_byte(void **state)
{
    char line[2048] = "PUT /api/v1/sandboxes/box/files?path=", *at = line + strlen(line);
    for (int i = 0; i < 600; i++, at += 2)
        memcpy(at, "./", 2);
    memcpy(at, "x", 2);
    assert_int_equal(control(line, ""), 0);
    assert_true(sent_type == M_SB_FILES && noted_n == 1);
    assert_true(notes("\"what\":\"write\",\"path\":\"./././") && notes("././x\"}"));
    assert_int_equal(control("POST /api/v1/sandboxes/box/files/move?path=a&to=b%ff", ""), 0);
    assert_true(sent_type == M_SB_FILES && noted_n == 1);
    assert_true(notes("\"what\":\"move\",\"path\":\"a\",\"to\":\"b\357\277\275\",\"to_base64\":\"Yv8=\"}"));
    (void)snprintf(line, sizeof(line), "PUT /api/v1/sandboxes/box/files?path=");
    at = line + strlen(line);
    for (int i = 0; i < 600; i++, at += 3)
        memcpy(at, "%01", 3); /* the longest way to say a byte */
    *at = '\0';
    assert_int_equal(control(line, ""), 0);
    assert_int_equal(noted_n, 1);
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
        cmocka_unit_test(a_command_has_a_lane_that_the_policy_knows),
        cmocka_unit_test(a_command_that_nobody_can_follow_does_not_begin),
        cmocka_unit_test(a_start_is_of_the_generation_that_the_ledger_gave),
        cmocka_unit_test(an_image_is_what_its_name_meant),
        cmocka_unit_test(its_egress_goes_with_it),
        cmocka_unit_test(a_lane_is_a_label_of_it),
        cmocka_unit_test(two_starts_of_a_name_at_once_are_one),
        cmocka_unit_test(a_start_that_fails_at_any_step_is_said),
        cmocka_unit_test(a_command_is_followed_as_events),
        cmocka_unit_test(a_terminal_is_asked_for_with_its_size),
        cmocka_unit_test(a_detached_command_is_a_number),
        cmocka_unit_test(commands_are_listed_and_followed),
        cmocka_unit_test(what_is_done_with_files_is_recorded_to_the_byte),
        cmocka_unit_test(a_signal_is_sent_to_a_command_that_is_there),
        cmocka_unit_test(the_end_of_a_sandbox_is_the_end_of_its_generation),
        cmocka_unit_test(one_that_runs_keeps_its_row),
        cmocka_unit_test(every_command_is_in_the_audit),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
