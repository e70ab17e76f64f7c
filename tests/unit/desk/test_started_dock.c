/* What callers of the dock may ask the desk: their tenant's own, and nothing of it that is an operator's; and the
 * keys that operators issue them. */
#include "tests/unit/desk/started_world.h"

#include <string.h>

#include "web-approval/dock.h"

#define ACCESS "0000000000000000000000000000000000000000000000000000000000000001"

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
    static const char *const lines[][2] = {
        {"POST", "destroy"},     {"POST", "pause"},       {"POST", "resume"},
        {"POST", "timeout"},     {"POST", "exec"},        {"POST", "access"},
        {"GET", "files?path=x"}, {"PUT", "files?path=x"}, {"GET", "files/stat?path=x"}};
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
    static const char *const keys[] = {"destroy", "pause", "resume", "timeout", "access"};
    char line[128];
    for (size_t i = 0; i < 5; i++) {
        (void)snprintf(line, sizeof(line), "POST /api/v1/sandboxes/abox/%s", keys[i]);
        assert_int_equal(docked("acme", "abox", line, "{}"), 403);
        assert_int_equal(sent_type, 0);
    }
    assert_int_equal(docked("acme", "abox", "POST /api/v1/sandboxes/start", "{}"), 403);
    assert_int_equal(docked("acme", "abox", "POST /api/v1/streams/1/input", "x"), 404);
    assert_int_equal(docked("acme", "", "POST /api/v1/streams/x/signal", "{\"signal\":9}"), 404);
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
                                      "{\"name\":\"sb-1\",\"access\":\"" ACCESS "\",\"note\":\"{\"}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(docked("acme", "", "POST /api/v1/sandboxes/start", bad[i]), 400);
    assert_int_equal(control("POST /api/v1/sandboxes/start", "{\"access\":\"" ACCESS "\"}"), 400);
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
        cmocka_unit_test(another_tenants_is_as_if_it_were_not_there),
        cmocka_unit_test(what_opens_one_sandbox_opens_that_one_alone),
        cmocka_unit_test(a_list_has_the_tenants_own_and_what_its_start_left),
        cmocka_unit_test(a_start_says_what_it_is_opened_with),
        cmocka_unit_test(of_a_tenant_so_many_run),
        cmocka_unit_test(a_key_is_shown_once_and_kept_as_a_hash),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
