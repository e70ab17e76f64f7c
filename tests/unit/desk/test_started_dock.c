/* What callers of the dock may ask the desk: their tenant's own, and nothing of it that is an operator's; and the
 * keys that operators issue them. */
#include "tests/unit/desk/started_world.h"

#include <string.h>

#include "proxy/wire_ticket.h"
#include "web-approval/api/steps.h"
#include "web-approval/dock.h"
#include "web-approval/streams/share.h"

#define CHECKPOINT "ck-00000000000000000000000000"
#define ACCESS     "0000000000000000000000000000000000000000000000000000000000000001"
#define OPENED     "{\"name\":\"sb-1\",\"access\":\"" ACCESS "\",\"note\":\"{}\""

static void what_is_an_operators_is_not_there(void **state)
{
    static const char *const lines[] = {"GET /api/v1/tickets",
                                        "GET /api/v1/sandboxes",
                                        "POST /api/v1/sandboxes",
                                        "GET /api/v1/keys",
                                        "POST /api/v1/keys",
                                        "DELETE /api/v1/keys/one",
                                        "GET /api/v1/audit",
                                        "GET /api/v1/status",
                                        "POST /api/v1/leases",
                                        "POST /api/v1/freeze",
                                        "GET /api/v1/sandboxes/abox/log",
                                        "GET /api/v1/events",
                                        "POST /api/v1/sandboxes/abox/attach",
                                        "POST /api/v1/sandboxes/abox/fork",
                                        "GET /",
                                        "GET /api/v1/sandboxes/abox/commands"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        unsigned status = docked("acme", "", lines[i], "");
        if (status != 404 && status != 405)
            fail_msg("%s is answered with %u", lines[i], status);
        assert_int_equal(sent_type, 0);
    }
}

static void another_tenants_is_as_if_it_were_not_there(void **state)
{
    static const char *const lines[][2] = {{"POST", "destroy"},
                                           {"POST", "pause"},
                                           {"POST", "resume"},
                                           {"POST", "timeout"},
                                           {"POST", "exec"},
                                           {"POST", "access"},
                                           {"GET", "files?path=x"},
                                           {"PUT", "files?path=x"},
                                           {"GET", "files/stat?path=x"},
                                           {"POST", "snapshot"},
                                           {"GET", "files/watch?path=x"}};
    char line[128];
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        for (int k = 0; k < 4; k++) {
            static const char *const names[] = {"abox", "box", "none", "ci"};
            (void)snprintf(line, sizeof(line), "%s /api/v1/sandboxes/%s/%s", lines[i][0], names[k], lines[i][1]);
            assert_int_equal(docked("globex", "", line, "{}"), 404);
            assert_true(says("no sandbox of this name runs"));
            assert_int_equal(sent_type, 0);
        }
    assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/abox/destroy", ""), 0);
    assert_int_equal(sent_type, M_SB_DESTROY);
}

static void what_opens_one_sandbox_opens_that_one_alone(void **state)
{
    assert_int_equal(docked("acme", "abox", "GET /api/v1/sandboxes/abox/files/stat?path=x", ""), 0);
    assert_int_equal(sent_type, M_SB_FILES);
    assert_int_equal(docked("acme", "other", "GET /api/v1/sandboxes/abox/files/stat?path=x", ""), 404);
    static const char *const keys[] = {"destroy", "pause", "resume", "timeout", "access", "snapshot"};
    char line[128];
    for (size_t i = 0; i < 6; i++) {
        (void)snprintf(line, sizeof(line), "POST /api/v1/sandboxes/abox/%s", keys[i]);
        assert_int_equal(docked("acme", "abox", line, "{}"), 403);
        assert_int_equal(sent_type, 0);
    }
    assert_int_equal(docked("acme", "abox", "POST /api/v1/sandboxes/start", "{}"), 403);
    assert_int_equal(docked("acme", "abox", "GET /api/v1/checkpoints", ""), 403);
    assert_int_equal(docked("acme", "abox", "DELETE /api/v1/checkpoints/" CHECKPOINT, ""), 403);
    assert_int_equal(sent_type, 0);
    assert_int_equal(docked("acme", "abox", "GET /api/v1/sandboxes/abox/files/watch?path=x", ""), 0);
    assert_int_equal(sent_type, M_SB_FILES);
    assert_int_equal(
        docked("acme", "abox", "POST /api/v1/sandboxes/abox/exec", "{\"argv\":[\"ls\"],\"lane\":\"web\"}"), 400);
    assert_true(says("the operator's to give"));
    assert_int_equal(control("GET /api/v1/sandboxes/box/files/watch?path=x", ""), 404);
    assert_int_equal(docked("acme", "abox", "POST /api/v1/streams/1/input", "x"), 404);
    assert_int_equal(docked("acme", "", "POST /api/v1/streams/x/signal", "{\"signal\":9}"), 404);
}

/* Its tenant's lane, or none; which one, no caller says. */
static void what_it_starts_has_its_tenants_lane(void **state)
{
    static const char access[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        const char *tenant, *more, *lane; /* lane NULL: refused */
    } cases[] = {
        {"acme", "", "web"},      {"acme", ",\"network\":true", "web"},  {"acme", ",\"network\":false", ""},
        {"globex", "", ""},       {"globex", ",\"network\":true", ""},   {"acm", "", ""},
        {"umbrella", "", "docs"}, {"globex", ",\"lane\":\"web\"", NULL}, {"acme", ",\"lane\":\"web\"", NULL}};
    char body[512];
    (void)snprintf(desk.dock_lanes, sizeof(desk.dock_lanes), "acme web\numbrella docs\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wire_sandbox row;
        (void)snprintf(body, sizeof(body), "{\"name\":\"new\",\"access\":\"%s\",\"note\":\"{}\"%s}", access,
                       cases[i].more);
        assert_int_equal(docked(cases[i].tenant, "", "POST /api/v1/sandboxes/start", body), cases[i].lane ? 0 : 400);
        if (!cases[i].lane)
            continue;
        answer(ASK_WARDEN, M_SB_IMAGE, SPAN("\1\0\0\0\0\0\0\0\0"));
        answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
        assert_int_equal(sent_type, M_SANDBOX_PUT);
        struct msg_in m = msg_in(dynbuf_span(&sent));
        assert_int_equal(wire_get_sandbox(&m, &row), 0);
        assert_int_equal(row.nlabels, cases[i].lane[0] ? 1 : 0);
        assert_true(row.nlabels == 0 || span_eq(row.label[0].value, span_str(cases[i].lane)));
        assert_true(span_eq(row.tenant, span_str(cases[i].tenant)));
    }
    desk.dock_lanes[0] = '\0';
}

/* What the ledger is told of the one that starts. */
static void row_put(struct wire_sandbox *row)
{
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN("\1\0\0\0\0\0\0\0\0"));
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    assert_int_equal(sent_type, M_SANDBOX_PUT);
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_sandbox(&m, row), 0);
}

/* What it may reach is written with its row, in one spelling; what is none is refused, and no operator says it. */
static void what_it_may_reach_is_written_down(void **state)
{
    static const struct {
        const char *reach, *text; /* text NULL: refused */
    } cases[] = {
        {"{\"allowOut\":[\"API.test.\",\"*.b.test\"]}", "+n api.test\n+n *.b.test\n"},
        {"{\"allowOut\":[\"a.test\"],\"denyOut\":[\"0.0.0.0/0\"]}", "+n a.test\n"},
        {"{\"allowOut\":[\"a.test\"],\"denyOut\":[\"0.0.0.0/0\",\"::/0\"]}", "+n a.test\n"},
        {"{\"allowOut\":[\"a.test\"],\"denyOut\":[\"::ffff:0:0/96\"]}", "+n a.test\n"},
        {"{\"denyOut\":[\"1.2.3.4\",\"a.test\"]}", "-a 1.2.3.4/32\n-n a.test\n"},
        /* Neither family's all is the other's. */
        {"{\"allowOut\":[\"0.0.0.0/0\"],\"denyOut\":[\"::/0\"]}", "+a 0.0.0.0/0\n-a 0:0:0:0:0:0:0:0/0\n"},
        /* IPv4 in IPv6 is IPv4, and no name was allowed that could be either. */
        {"{\"allowOut\":[\"::/0\"],\"denyOut\":[\"0.0.0.0/0\"]}", "+a 0:0:0:0:0:0:0:0/0\n-a 0.0.0.0/0\n"},
        {"{\"allowOut\":[\"2001:db8::1\"],\"denyOut\":[\"::/0\",\"0.0.0.0/0\"]}",
         "+a 2001:db8:0:0:0:0:0:1/128\n-a 0.0.0.0/0\n"},
        {"{\"allowOut\":[\"::/0\",\"a.test\"],\"denyOut\":[\"0.0.0.0/0\"]}", "+a 0:0:0:0:0:0:0:0/0\n+n a.test\n"},
        {"{\"denyOut\":[\"::/0\"]}", "-a 0:0:0:0:0:0:0:0/0\n"},
        {"{\"allowOut\":[\"a.test\"],\"denyOut\":[\"::/0\"]}", "+n a.test\n-a 0:0:0:0:0:0:0:0/0\n"},
        {"{\"allowOut\":[\"a.test\",\"0.0.0.0/0\"],\"denyOut\":[\"10.0.0.0/8\"]}",
         "+n a.test\n+a 0.0.0.0/0\n-a 10.0.0.0/8\n"},
        {"{\"denyOut\":[\"0.0.0.0/0\"]}", "0\n"},
        {"{\"allowOut\":[],\"denyOut\":[\"x.test\",\"::ffff:0:0/96\"]}", "0\n"},
        {"{}", ""},
        {"{\"allowOut\":[\"0.0.0.0/0\"],\"denyOut\":[\"0.0.0.0/0\"]}", NULL},
        {"{\"allowOut\":[\"::/0\"],\"denyOut\":[\"0.0.0.0/0\",\"::/0\"]}", NULL},
        {"{\"allowOut\":\"a\"}", NULL},
        {"{\"allowOut\":[1]}", NULL},
        {"{\"allowOut\":[\"a\\n+n b\"]}", NULL},
        {"{\"denyOut\":[\"10.0.0.1/8\"]}", NULL},
        {"{\"denyOut\":[\"0x7f.1\"]}", NULL},
        {"{\"denyOut\":[\"\"]}", NULL},
    };
    char body[512];
    (void)snprintf(desk.dock_lanes, sizeof(desk.dock_lanes), "acme web\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wire_sandbox row;
        (void)snprintf(body, sizeof(body), OPENED ",\"reach\":%s}", cases[i].reach);
        if (docked("acme", "", "POST /api/v1/sandboxes/start", body) != (cases[i].text ? 0 : 400))
            fail_msg("%s is %u", cases[i].reach, x.status);
        if (!cases[i].text)
            continue;
        row_put(&row);
        if (!span_eq(row.reach, span_str(cases[i].text)))
            fail_msg("%s is %.*s", cases[i].reach, SPAN_FMT(row.reach));
        assert_int_equal(row.nlabels, span_eq(row.reach, REACH_NOTHING) ? 0 : 1); /* then it has no lane either */
    }
    assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start", OPENED ",\"network\":false}"), 0);
    struct wire_sandbox row;
    row_put(&row);
    assert_true(span_eq(row.reach, REACH_NOTHING));
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"name\":\"new\",\"reach\":{}}"), 400);
    desk.dock_lanes[0] = '\0';
}

/* Whoever begins with the files of one may reach no more than that one might, whatever is said for it. */
static void what_begins_with_files_reaches_no_more(void **state)
{
    static const struct {
        const char *said, *kept, *text;
    } cases[] = {
        {"", "", ""},
        {"", "+n a.test\n", "+n a.test\n"},
        {",\"reach\":{\"allowOut\":[\"b.test\"]}", "", "+n b.test\n"},
        {",\"reach\":{\"allowOut\":[\"b.test\"]}", "+n a.test\n", "+n b.test\n&\n+n a.test\n"},
        {",\"reach\":{\"allowOut\":[\"a.test\"]}", "+n a.test\n", "+n a.test\n"},
        {",\"reach\":{\"allowOut\":[\"0.0.0.0/0\"]}", "0\n", "0\n"},
        {",\"network\":false", "+n a.test\n", "0\n"},
    };
    char body[512];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wire_sandbox row;
        (void)snprintf(body, sizeof(body), OPENED ",\"from\":\"built\"%s}", cases[i].said);
        assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start", body), 0);
        looked(cases[i].kept);
        row_put(&row);
        if (!span_eq(row.reach, span_str(cases[i].text)))
            fail_msg("%zu is %.*s", i, SPAN_FMT(row.reach));
        assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start", body), 0);
        assert_int_equal(sent_type, M_SB_CHECKPOINTS);
        answer(ASK_WARDEN, M_SB_CHECKPOINT, SPAN("\0\0\0\0\4none\0\0\0\0")); /* without that, it is not started */
        assert_int_equal(x.status, 503);
    }
    /* An operator's as well. */
    struct wire_sandbox row;
    assert_int_equal(
        control("POST /api/v1/sandboxes/start", "{\"name\":\"new\",\"from\":\"built\",\"lane\":\"web\"}"), 0);
    looked("-a 10.0.0.0/8\n");
    row_put(&row);
    assert_true(span_eq(row.reach, SPAN("-a 10.0.0.0/8\n")));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
}

/* A row of M_SB_LISTED. */
static void put_row(struct dynbuf *list, const char *name)
{
    wire_put_box(list, &(struct wire_box){
                           .name = span_str(name), .memory = 64 << 20, .pids = 8, .disk = 1 << 20, .files = 64});
    for (int i = 0; i < 4; i++)
        msg_put_u64(list, 1);
    msg_put_u8(list, 1);
    msg_put_u16(list, 0);
    msg_put_u8(list, PAUSE_NONE);
    msg_put_span(list, SPAN_NONE);
}

static void a_list_has_the_tenants_own_and_what_its_start_left(void **state)
{
    struct dynbuf list;
    for (int acme = 0; acme < 2; acme++) {
        dynbuf_init(&list, 4096);
        msg_put_u16(&list, 2);
        put_row(&list, "box");
        put_row(&list, "abox");
        assert_int_equal(docked(acme ? "acme" : "globex", "", "GET /api/v1/sandboxes/started", ""), 0);
        answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&list));
        assert_int_equal(x.status, 200);
        assert_false(says("\"box\""));
        assert_int_equal(says("\"abox\""), acme);
        assert_int_equal(says("\"note\":{\"template\":\"base\"}"), acme);
        dynbuf_free(&list);
    }
}

static void a_start_says_what_it_is_opened_with(void **state)
{
    static const char *const bad[] = {"{}",
                                      "{\"name\":\"sb-1\",\"access\":\"" ACCESS "\"}",
                                      "{\"name\":\"sb-1\",\"note\":\"{}\"}",
                                      "{\"access\":\"" ACCESS "\",\"note\":\"{}\"}",
                                      "{\"name\":\"sb-1\",\"access\":\"00\",\"note\":\"{}\"}",
                                      "{\"name\":\"sb-1\",\"access\":\"" ACCESS "\",\"note\":\"{\"}",
                                      OPENED ",\"session\":\"box\"}",
                                      OPENED ",\"limits\":\"approximate\"}",
                                      OPENED ",\"memory\":1125899906842624}",
                                      OPENED ",\"pids\":4194304}",
                                      OPENED ",\"cpu_percent\":100}",
                                      OPENED ",\"disk\":1073741824}",
                                      OPENED ",\"files\":65536}",
                                      OPENED ",\"image\":\"debian\"}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start", bad[i]), 400);
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"access\":\"" ACCESS "\"}"), 400);
    /* Of another tenant nothing is taken over by a name: its session would be, with the tickets that it has. */
    static const char *const theirs[] = {"old", "box", "abox"};
    char body[256];
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(body, sizeof(body), "{\"name\":\"%s\",\"access\":\"" ACCESS "\",\"note\":\"{}\"}", theirs[i]);
        assert_int_equal(docked(i == 2 ? "globex" : "acme", "", "POST /api/v1/sandboxes/start", body), 409);
        assert_int_equal(sent_type, 0);
    }
    assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start",
                            "{\"name\":\"abox\",\"access\":\"" ACCESS "\",\"note\":\"{}\"}"),
                     0);
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
    assert_int_equal(sent_type, M_SB_LIST);
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    assert_int_equal(sent_type, M_SANDBOX_PUT);
    assert_true(span_find(dynbuf_span(&sent), SPAN("acme")) < sent.n);
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    assert_int_equal(sent_type, M_TOKEN_PUT); /* before it runs: nobody could open it else */
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    assert_int_equal(sent_type, M_SB_START);
    /* What cannot be written is not started, and is over. */
    assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start",
                            "{\"name\":\"abox\",\"access\":\"" ACCESS "\",\"note\":\"{}\"}"),
                     0);
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\0\0\0\0\2no"));
    assert_int_equal(x.status, 503);
    assert_int_equal(sent_type, M_SANDBOX_ENDED);
}

/* It is looked for among its own, whatever it asks for. */
static void a_tenants_checkpoints_are_asked_for_as_its_own(void **state)
{
    static const struct {
        const char *tenant, *line, *body;
        unsigned type;
        bool listed; /* the warden says first what runs */
    } rows[] = {
        {"acme", "GET /api/v1/checkpoints", "", M_SB_CHECKPOINTS, false},
        {"globex", "GET /api/v1/checkpoints", "", M_SB_CHECKPOINTS, false},
        {"acme", "DELETE /api/v1/checkpoints/" CHECKPOINT, "", M_SB_CHECKPOINTS, false},
        {"globex", "DELETE /api/v1/checkpoints/built", "", M_SB_CHECKPOINTS, false},
        {"acme", "POST /api/v1/sandboxes/start",
         "{\"name\":\"abox\",\"from\":\"built\",\"access\":\"" ACCESS "\",\"note\":\"{}\"}", M_SB_START_FROM, true},
        {"globex", "GET /api/v1/checkpoints?tenant=acme", "", M_SB_CHECKPOINTS, false},
        {"globex", "DELETE /api/v1/checkpoints/built?tenant=acme", "", M_SB_CHECKPOINTS, false},
        {"", "GET /api/v1/checkpoints", "", M_SB_CHECKPOINTS, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *tenant = rows[i].tenant[0] ? rows[i].tenant : "default";
        unsigned status = rows[i].tenant[0] ? docked(rows[i].tenant, "", rows[i].line, rows[i].body)
                                            : control(rows[i].line, rows[i].body);
        assert_int_equal(status, 0);
        if (rows[i].listed) {
            looked("");
            answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
            answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
            answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
            answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
        }
        assert_int_equal(sent_type, rows[i].type);
        struct msg_in m = msg_in(dynbuf_span(&sent));
        if (!rows[i].listed)
            (void)msg_get_u8(&m);
        assert_true(span_eq(msg_get_span(&m, 64), span_str(tenant)));
    }
    /* An operator says whose, or means those of nobody's key. */
    static const char *const lines[] = {"GET /api/v1/checkpoints?tenant=acme",
                                        "DELETE /api/v1/checkpoints/built?tenant=acme"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(control(lines[i], ""), 0);
        assert_true(span_find(dynbuf_span(&sent), SPAN("acme")) < sent.n);
    }
    assert_int_equal(control("GET /api/v1/checkpoints?tenant="
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                             ""),
                     400);
}

/* A tenant that asks for much leaves places to others, and all of them together some to operators. */
static void so_much_is_done_with_checkpoints_at_once(void **state)
{
    static struct exchange others[DOCK_STORES];
    static const char *const lines[] = {"GET /api/v1/checkpoints", "DELETE /api/v1/checkpoints/built",
                                        "POST /api/v1/sandboxes/abox/snapshot"};
    for (int one = 0; one < 2; one++)
        for (int past = 0; past < 2; past++) {
            size_t n = (size_t)(one ? DOCK_TENANT_STORES : DOCK_STORES) - 1 + (size_t)past;
            memset(wait_too, 0, sizeof(wait_too));
            for (size_t i = 0; i < n; i++) {
                others[i] = (struct exchange){.desk = &desk, .place = PLACE_DOCK, .keeps = true};
                (void)snprintf(others[i].caller.tenant, sizeof(others[i].caller.tenant), "%s",
                               one ? "acme" : "globex");
                wait_too[i] = (struct ask){.id = 1000 + i, .x = &others[i]};
            }
            for (size_t i = 0; i < 3; i++)
                assert_int_equal(docked("acme", "", lines[i], i == 2 ? "{}" : ""), past ? 429 : 0);
            assert_int_equal(docked("globex", "", lines[0], ""), one ? 0 : 429);
            assert_int_equal(control(lines[0], ""), 0); /* operators have places of their own */
        }
    memset(wait_too, 0, sizeof(wait_too));
}

/* F36: in however many sandboxes: what one tenant's commands hold for a day, others' are not refused for. */
static void so_much_is_followed_of_one_tenant(void **state)
{
    static struct share others[DESK_DOCK_FOLLOWS];
    static const size_t most = DESK_DOCK_FOLLOWS - DESK_DOCK_FOLLOWS / 6;
    for (size_t i = 0; i < most; i++) {
        others[i] = (struct share){.next = desk.shares, .desk = &desk, .of = SHARE_DOCK_FOLLOW};
        (void)snprintf(others[i].box, sizeof(others[i].box), "b%zu", i);
        (void)snprintf(others[i].tenant, sizeof(others[i].tenant), "acme");
        desk.shares = &others[i];
        desk.held[SHARE_DOCK_FOLLOW]++;
        assert_int_equal(docked("acme", "", "GET /api/v1/checkpoints", ""), 0);
        x.arg = SPAN("abox");
        assert_int_equal(share_is_free(&x, SHARE_FOLLOW), i + 1 < most);
        assert_int_equal(x.status, i + 1 < most ? 0 : 503);
        assert_int_equal(docked("globex", "", "GET /api/v1/checkpoints", ""), 0);
        x.arg = SPAN("other");
        assert_true(share_is_free(&x, SHARE_FOLLOW));
    }
    desk.shares = NULL;
    desk.held[SHARE_DOCK_FOLLOW] = 0;
}

static void of_a_tenant_so_many_run(void **state)
{
    struct dynbuf list;
    for (int past = 0; past < 2; past++) {
        dynbuf_init(&list, 64 * 1024);
        msg_put_u16(&list, (uint16_t)(DOCK_TENANT_BOXES - 1 + past));
        for (int i = 0; i < DOCK_TENANT_BOXES - 1 + past; i++)
            put_row(&list, "abox"); /* it stands for all of them */
        assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start",
                                "{\"name\":\"sb-2\",\"access\":\"" ACCESS "\",\"note\":\"{}\"}"),
                         0);
        answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
        answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&list));
        assert_int_equal(x.status, past ? 429 : 0);
        /* Another tenant does not notice. */
        assert_int_equal(docked("globex", "", "POST /api/v1/sandboxes/start",
                                "{\"name\":\"sb-3\",\"access\":\"" ACCESS "\",\"note\":\"{}\"}"),
                         0);
        answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
        answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&list));
        assert_int_equal(x.status, 0);
        assert_int_equal(sent_type, M_SANDBOX_PUT);
        dynbuf_free(&list);
    }
}

/* F36: those that were let through and are not up yet count: who asks for all of them at once has no more. */
static void of_a_tenant_so_many_start(void **state)
{
    static struct exchange others[2];
    static struct starting being = {.name = "sb-other"};
    struct dynbuf list;
    assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start", OPENED "}"), 0);
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
    for (int stage = 0; stage < 3; stage++) {
        if (stage == 0)
            answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
        else {
            assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start",
                                    "{\"name\":\"abox\",\"access\":\"" ACCESS "\",\"note\":\"{}\"}"),
                             0);
            answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
            answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
            for (int i = 0; i < stage; i++)
                answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
        }
        ask_fn *fn = NULL;
        for (size_t i = 0; i < DESK_ASKS; i++)
            fn = desk.asks[i].id == sent_id ? desk.asks[i].fn : fn;
        assert_non_null(fn);
        for (int past = 0; past < 2; past++) {
            for (int i = 0; i < 2; i++) {
                others[i] = (struct exchange){.desk = &desk, .place = PLACE_DOCK, .step = &being};
                (void)snprintf(others[i].caller.tenant, sizeof(others[i].caller.tenant), "acme");
                wait_too[i] = (struct ask){.id = 1000 + (uint64_t)i, .fn = fn, .x = &others[i]};
            }
            dynbuf_init(&list, 64 * 1024);
            msg_put_u16(&list, (uint16_t)(DOCK_TENANT_BOXES - 3 + past));
            for (int i = 0; i < DOCK_TENANT_BOXES - 3 + past; i++)
                put_row(&list, "abox");
            assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start", OPENED "}"), 0);
            answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
            answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&list));
            assert_int_equal(x.status, past ? 429 : 0);
            assert_int_equal(docked("globex", "", "POST /api/v1/sandboxes/start", OPENED "}"), 0);
            answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
            answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&list));
            assert_int_equal(x.status, 0);
            dynbuf_free(&list);
        }
        memset(wait_too, 0, sizeof(wait_too));
    }
}

/* E22, F36: what one tenant asks keeps neither another one nor an operator from being answered. */
static void of_a_tenant_so_much_is_asked_at_once(void **state)
{
    static struct exchange others[DESK_DOCK_ASKS];
    static const char line[] = "GET /api/v1/sandboxes/started";
    for (int one = 0; one < 2; one++)
        for (int past = 0; past < 2; past++) {
            size_t n = (size_t)(one ? DESK_TENANT_ASKS : DESK_DOCK_ASKS) - 1 + (size_t)past;
            memset(wait_too, 0, sizeof(wait_too));
            for (size_t i = 0; i < n; i++) {
                others[i] = (struct exchange){.desk = &desk, .place = PLACE_DOCK};
                (void)snprintf(others[i].caller.tenant, sizeof(others[i].caller.tenant), one ? "acme" : "t%zu", i);
                wait_too[i] = (struct ask){.id = 1000 + i, .x = &others[i]};
            }
            assert_int_equal(docked("acme", "", line, ""), past ? 503 : 0);
            assert_int_equal(docked("globex", "", line, ""), past && !one ? 503 : 0);
            assert_int_equal(control("POST /api/v1/reload", ""), 0);
        }
    memset(wait_too, 0, sizeof(wait_too));
}

static void a_key_is_shown_once_and_kept_as_a_hash(void **state)
{
    struct digest hash;
    assert_int_equal(control("POST /api/v1/keys", "{\"name\":\"two\",\"tenant\":\"acme\"}"), 0);
    assert_int_equal(sent_type, M_TOKEN_PUT);
    assert_true(span_find(dynbuf_span(&sent), SPAN("e2b_")) == sent.n);
    struct dynbuf asked;
    dynbuf_init(&asked, 4096);
    assert_int_equal(dynbuf_add(&asked, dynbuf_span(&sent)), 0);
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    assert_int_equal(x.status, 201);
    size_t at = span_find(dynbuf_span(&x.out), SPAN("\"e2b_"));
    assert_true(at + 46 < x.out.n);
    digest_of(span_of(x.out.p + at + 1, 44), &hash);
    assert_true(span_find(dynbuf_span(&asked), span_of(hash.b, sizeof(hash.b))) < asked.n);
    dynbuf_free(&asked);
    assert_int_equal(noted_n, 1);
    assert_true(span_find(dynbuf_span(&noted), SPAN("e2b_")) == noted.n);
    assert_int_equal(control("POST /api/v1/keys", "{\"name\":\"Two\"}"), 400);
    assert_int_equal(control("POST /api/v1/keys", "{\"name\":\"two\",\"tenant\":\"a b\"}"), 400);
    assert_int_equal(control("GET /api/v1/keys", ""), 200);
    assert_true(says("\"name\":\"one\",\"tenant\":\"acme\""));
    assert_false(says("hash"));
    assert_int_equal(control("DELETE /api/v1/keys/one", ""), 0);
    assert_int_equal(sent_type, M_KEY_RM);
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    assert_int_equal(x.status, 204);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_an_operators_is_not_there),
        cmocka_unit_test(so_much_is_followed_of_one_tenant),
        cmocka_unit_test(another_tenants_is_as_if_it_were_not_there),
        cmocka_unit_test(what_opens_one_sandbox_opens_that_one_alone),
        cmocka_unit_test(a_list_has_the_tenants_own_and_what_its_start_left),
        cmocka_unit_test(a_start_says_what_it_is_opened_with),
        cmocka_unit_test(a_tenants_checkpoints_are_asked_for_as_its_own),
        cmocka_unit_test(so_much_is_done_with_checkpoints_at_once),
        cmocka_unit_test(of_a_tenant_so_many_run),
        cmocka_unit_test(of_a_tenant_so_many_start),
        cmocka_unit_test(of_a_tenant_so_much_is_asked_at_once),
        cmocka_unit_test(a_key_is_shown_once_and_kept_as_a_hash),
        cmocka_unit_test(what_it_starts_has_its_tenants_lane),
        cmocka_unit_test(what_it_may_reach_is_written_down),
        cmocka_unit_test(what_begins_with_files_reaches_no_more),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
