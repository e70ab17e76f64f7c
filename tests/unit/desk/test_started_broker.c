/* What the broker may ask the desk: for a tenant, of its conversations alone, and what changes anything only with the
 * lane of now; and whose keys are for it. */
#include "tests/unit/desk/started_world.h"

#include <sqlite3.h>
#include <string.h>

#include "proxy/errand/broker_key.h"
#include "proxy/wire_ticket.h"
#include "web-approval/broker/broker.h"
#include "web-approval/dock.h"

#define TALK     "7x1ty26jfm9f13samk3zfxg86r"
#define OTHER    "93t9bt2jpn74eegrqy2nspcem4"
#define BOX      "/api/v1/sandboxes/c-" TALK
#define LANE     "cst_now"
#define OF(PATH) "/api/v1/conversations/" TALK PATH

static void put(sqlite3 *db, const char *sql, const struct digest *d)
{
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_bind_blob(q, 1, d->b, DIGEST_BYTES, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_DONE);
    (void)sqlite3_finalize(q);
}

/* acme's conversation has its identity and its sandbox; acme has a key that may chat and read, and one for sandboxes.
 */
static int setup(void **state)
{
    struct digest lane, key, plain;
    sqlite3 *db;
    int rc = group_setup(state);
    if (rc != 0 || sqlite3_open(world_db(), &db) != SQLITE_OK)
        return -1;
    digest_of(SPAN(LANE), &lane);
    broker_key_digest(SPAN("csb_one"), &key);
    digest_of(SPAN("csb_one"), &plain);
    put(db,
        "INSERT INTO sandbox(name,session,owner,tenant,kind,generation,token_hash,labels_json,created_ms,changed_ms) "
        "VALUES ('m-" TALK "','c-" TALK "','broker','acme','token',3,?1,'{\"conversation\":\"" TALK "\"}',1,1),"
        "('c-" TALK "','c-" TALK "','broker','acme','started',2,NULL,'{}',1,1),"
        "('otlp-2','otlp-2','somebody','default','token',1,NULL,'{}',1,1),"
        "('otlp-3','otlp','broker','default','token',7,NULL,'{\"telemetry\":\"spans\"}',1,1),"
        "('otlp-4','otlp','somebody','default','token',7,NULL,'{\"telemetry\":\"no\"}',1,1)",
        &lane);
    put(db, "INSERT INTO token VALUES ('key','','talks','acme',?1,'{\"scopes\":[\"chat\",\"read\"]}',1)", &key);
    put(db, "INSERT INTO token VALUES ('key','','boxes','globex',?1,'',1)", &plain);
    (void)sqlite3_close(db);
    return 0;
}

static void what_changes_anything_needs_the_lane_of_now(void **state)
{
    static const char *const lines[][2] = {{"POST " BOX "/exec", "{\"argv\":[\"true\"],\"detach\":true}"},
                                           {"POST " BOX "/attach", "{\"command\":\"2.1\"}"},
                                           {"POST " BOX "/signal", "{\"command\":\"2.1\"}"},
                                           {"DELETE " BOX "/files?path=x", ""},
                                           {"POST /api/v1/sandboxes/start", "{\"name\":\"c-" TALK "\"}"},
                                           {"POST " OF("/leases"), "{\"credential\":\"api\"}"},
                                           {"DELETE " OF("/identity"), ""},
                                           {"DELETE " OF("/identity?end_session=1"), ""},
                                           {"POST " BOX "/destroy", "{}"}};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        static const char *const bad[] = {"", "cst_before", "cst_now2", "cst_no"};
        for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
            unsigned status = brokered("acme", bad[k], lines[i][0], lines[i][1]);
            if (status != 409 || sent_type != 0)
                fail_msg("%s with the lane '%s' is answered with %u", lines[i][0], bad[k], status);
        }
        assert_true(says("Its lane has ended"));
    }
    assert_int_equal(brokered("acme", LANE, lines[0][0], lines[0][1]), 0);
    assert_int_equal(sent_type, M_SB_EXEC);
    assert_int_equal(brokered("acme", LANE, lines[3][0], lines[3][1]), 0);
    assert_int_equal(sent_type, M_SB_FILES);
    assert_int_equal(brokered("acme", LANE, "DELETE " OF("/identity"), ""), 0);
    assert_int_equal(sent_type, M_SANDBOX_RM);
    assert_int_equal(sent.p[sent.n - 1], 0); /* its session, and what waits there, stays */
    assert_int_equal(brokered("acme", LANE, "DELETE " OF("/identity?end_session=1"), ""), 0);
    assert_true(sent_type == M_SANDBOX_RM && sent.p[sent.n - 1] == 1);
    assert_int_equal(brokered("acme", LANE, "DELETE " OF("/identity?end_session=true"), ""), 400);
    assert_int_equal(brokered("acme", LANE, "POST " BOX "/destroy", "{}"), 0);
    assert_int_equal(sent_type, M_SB_DESTROY);
    /* What it only looks at needs none: who takes over has to know what there is. */
    assert_int_equal(brokered("acme", "", "GET " BOX "/commands", ""), 0);
    assert_int_equal(sent_type, M_SB_COMMANDS);
    assert_int_equal(brokered("acme", "", "GET " OF("/runs"), ""), 200);
}

static void another_tenants_conversation_is_none(void **state)
{
    static const char *const lines[] = {"POST " BOX "/exec", "GET " BOX "/commands", "GET " BOX "/files?path=x",
                                        "PUT " BOX "/files?path=x"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_int_equal(brokered("globex", LANE, lines[i], "{}"), 404);
        assert_int_equal(sent_type, 0);
    }
    assert_int_equal(brokered("globex", LANE, "POST " OF("/leases"), "{\"credential\":\"api\"}"), 409);
    assert_int_equal(brokered("globex", LANE, "DELETE " OF("/identity"), ""), 409);
    assert_int_equal(brokered("globex", LANE, "POST /api/v1/sandboxes/start", "{\"name\":\"c-" TALK "\"}"), 409);
    assert_int_equal(brokered("globex", "", "GET " OF("/runs"), ""), 404);
    (void)snprintf(desk.proxy_url, sizeof(desk.proxy_url), "http://127.0.0.1:1");
    assert_int_equal(brokered("globex", "", "POST " OF("/identity"), "{}"), 409);
    assert_int_equal(sent_type, 0);
    assert_int_equal(brokered("acme", "", "POST " OF("/identity"), "{}"), 0);
    assert_int_equal(sent_type, M_SANDBOX_PUT);
    struct wire_sandbox row;
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_sandbox(&m, &row), 0);
    assert_true(row.generation == 4 && row.has_token && span_eq(row.tenant, SPAN("acme")));
    desk.proxy_url[0] = '\0';
}

/* By an identity of the operator's own tenant, whichever tenant's turns they are of; a sandbox that somebody made by
 * such a name stays theirs. */
static void spans_are_sent_for_the_operator(void **state)
{
    static const char *const none[] = {"0", "1025", "x", "-1", "1%2f"};
    static const struct {
        const char *worker;
        uint64_t generation;
    } made[] = {{"1", 1}, {"3", 8}};
    char line[128];
    (void)snprintf(desk.proxy_url, sizeof(desk.proxy_url), "http://127.0.0.1:1");
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        (void)snprintf(line, sizeof(line), "POST /api/v1/telemetry/%s/identity", none[i]);
        assert_int_equal(brokered("default", "", line, "{}"), 404);
        assert_int_equal(sent_type, 0);
    }
    assert_int_equal(brokered("acme", "", "POST /api/v1/telemetry/1/identity", "{}"), 404);
    assert_int_equal(brokered("default", "", "POST /api/v1/telemetry/2/identity", "{}"), 409);
    assert_int_equal(brokered("default", "", "POST /api/v1/telemetry/4/identity", "{}"), 409); /* not made by us */
    assert_int_equal(sent_type, 0);
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        struct wire_sandbox row;
        (void)snprintf(line, sizeof(line), "POST /api/v1/telemetry/%s/identity", made[i].worker);
        assert_int_equal(brokered("default", "", line, "{}"), 0);
        assert_int_equal(sent_type, M_SANDBOX_PUT);
        struct msg_in m = msg_in(dynbuf_span(&sent));
        assert_int_equal(wire_get_sandbox(&m, &row), 0);
        assert_true(row.generation == made[i].generation && row.has_token && span_eq(row.tenant, SPAN("default")));
        assert_true(span_starts(row.name, SPAN("otlp-")) && span_eq(row.session, SPAN("otlp")));
        answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
        assert_int_equal(x.status, 201);
        assert_true(says("\"token\":\"cst_"));
    }
    desk.proxy_url[0] = '\0';
}

static void its_other_sandboxes_are_only_looked_at(void **state)
{
    assert_int_equal(brokered("acme", LANE, "POST /api/v1/sandboxes/abox/exec", "{\"argv\":[\"true\"]}"), 409);
    assert_int_equal(brokered("acme", LANE, "DELETE /api/v1/sandboxes/abox/files?path=x", ""), 409);
    assert_int_equal(brokered("acme", LANE, "POST /api/v1/sandboxes/abox/destroy", "{}"), 409);
    assert_int_equal(brokered("acme", LANE, "POST /api/v1/sandboxes/start", "{\"name\":\"more\"}"), 409);
    assert_int_equal(brokered("acme", LANE, "POST /api/v1/sandboxes/start", "{\"name\":\"c-" OTHER "\"}"), 409);
    assert_int_equal(brokered("acme", LANE, "POST /api/v1/sandboxes/start", "{}"), 400);
    assert_int_equal(
        brokered("acme", LANE, "POST /api/v1/sandboxes/start", "{\"name\":\"c-" TALK "\",\"lane\":\"web\"}"), 400);
    assert_int_equal(sent_type, 0);
}

/* It works in sandboxes, and ends the one of its lane: what else becomes of them, and of what is kept of them, is not
 * the broker's. */
static void what_becomes_of_a_sandbox_is_not_its_to_say(void **state)
{
    static const char *const lines[] = {
        "POST " BOX "/pause",    "POST " BOX "/resume", "POST " BOX "/timeout",
        "POST " BOX "/snapshot", "POST " BOX "/access", "DELETE /api/v1/checkpoints/ck-00000000000000000000000000"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_int_equal(brokered("acme", LANE, lines[i], "{}"), 403);
        assert_int_equal(sent_type, 0);
    }
}

/* Nor are the broker's routes a key's of the dock. */
static void what_is_an_operators_or_the_docks_is_not_there(void **state)
{
    static const char *const lines[] = {"GET /api/v1/tickets",
                                        "POST /api/v1/tickets/x/approve",
                                        "GET /api/v1/keys",
                                        "POST /api/v1/leases",
                                        "GET /api/v1/audit",
                                        "POST /api/v1/freeze",
                                        "GET /",
                                        "GET " BOX "/log"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        unsigned status = brokered("acme", LANE, lines[i], "{}");
        if (status != 404 && status != 405)
            fail_msg("%s is answered with %u", lines[i], status);
    }
    assert_int_equal(docked("acme", "", "POST " OF("/identity"), "{}"), 404);
    assert_int_equal(docked("acme", "", "POST " OF("/leases"), "{\"credential\":\"api\"}"), 404);
    assert_int_equal(docked("acme", "", "GET " OF("/runs"), ""), 404);
    assert_int_equal(control("POST " OF("/identity"), "{}"), 404);
    assert_int_equal(sent_type, 0);
}

static unsigned who(const char *key, bool dock, char tenant[80], char note[256])
{
    struct digest d;
    struct dynbuf b;
    dock ? digest_of(span_str(key), &d) : broker_key_digest(span_str(key), &d);
    dynbuf_init(&b, 4096);
    broker_who(&desk, &d, &b);
    struct msg_in m = msg_in(dynbuf_span(&b));
    unsigned is = msg_get_u8(&m);
    (void)msg_get_span(&m, 80);
    struct span t = msg_get_span(&m, 80), n = msg_get_span(&m, 256);
    (void)snprintf(tenant, 80, "%.*s", SPAN_FMT(t));
    (void)snprintf(note, 256, "%.*s", SPAN_FMT(n));
    assert_int_equal(msg_end(&m), 0);
    dynbuf_free(&b);
    return is;
}

/* A key for sandboxes of the same text is another: the broker hears of neither what the dock takes, nor the dock. */
static void a_key_is_for_one_of_both(void **state)
{
    char tenant[80], note[256];
    struct caller c;
    assert_int_equal(who("csb_one", false, tenant, note), DOCK_OPEN);
    assert_string_equal(tenant, "acme");
    assert_string_equal(note, "{\"scopes\":[\"chat\",\"read\"]}");
    assert_int_equal(who("csb_one", true, tenant, note), DOCK_UNKNOWN);
    assert_int_equal(who("csb_two", false, tenant, note), DOCK_UNKNOWN);
    assert_int_equal(broker_tenant(&desk, SPAN("acme"), &c), DOCK_OPEN);
    assert_true(c.broker && strcmp(c.tenant, "acme") == 0 && c.key[0] == '\0');
    assert_int_equal(broker_tenant(&desk, SPAN("default"), &c), DOCK_OPEN);
    assert_int_equal(broker_tenant(&desk, SPAN("globex"), &c), DOCK_UNKNOWN); /* its key is for sandboxes */
    assert_int_equal(broker_tenant(&desk, SPAN("acm"), &c), DOCK_UNKNOWN);
    assert_int_equal(broker_tenant(&desk, SPAN_NONE, &c), DOCK_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_anything_needs_the_lane_of_now),
        cmocka_unit_test(another_tenants_conversation_is_none),
        cmocka_unit_test(spans_are_sent_for_the_operator),
        cmocka_unit_test(its_other_sandboxes_are_only_looked_at),
        cmocka_unit_test(what_becomes_of_a_sandbox_is_not_its_to_say),
        cmocka_unit_test(what_is_an_operators_or_the_docks_is_not_there),
        cmocka_unit_test(a_key_is_for_one_of_both),
    };
    return cmocka_run_group_tests(tests, setup, group_teardown);
}
