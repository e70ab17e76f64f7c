/* Whose yes to a ticket counts: of who is named, of who is asked as well by now, and of who decides in their place.
 * Covers E26. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/net/chan.h"
#include "common/net/loop.h"
#include "tests/kit.h"
#include "tests/unit/policy/policy_kit.h"
#include "web-approval/people/people.h"

static struct desk desk;
static struct exchange x;
static struct kit kit;
static sqlite3 *db;
static char path[] = "/tmp/test_may.XXXXXX", db_path[64];

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    return NULL;
}

int chan_commit(struct chan *c)
{
    return -1;
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

static void sql(const char *text)
{
    char *why = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
}

static int group_setup(void **state)
{
    if (!kit_load(&kit,
                  "version: 1\napprovers:\n  desk: { operators: [ann, \"uid 7\"] }\n  leads: { groups: [leads] }\n"
                  "rules:\n  - { id: r, match: { host: a.example }, decide: hold, approve: { by: desk } }\n",
                  NULL) ||
        !mkdtemp(path))
        return -1;
    (void)snprintf(db_path, sizeof(db_path), "%s/l.db", path);
    if (sqlite3_open(db_path, &db) != SQLITE_OK)
        return -1;
    sql("CREATE TABLE escalation (ticket, entry, after_ms, due_ms, since_ms);"
        "CREATE TABLE operator (name, uid, groups);"
        "CREATE TABLE deputy (instead_of, deputy, since_ms, until_ms);"
        "INSERT INTO escalation VALUES ('due', 'leads', 1, 5, 9), ('due', 'nobody', 1, 5, 9),"
        " ('not-due', 'leads', 1, 5, 0);"
        "INSERT INTO operator VALUES ('ann', 'uid 7', ''), ('ben', NULL, 'leads'), ('cat', NULL, ''), ('dan', NULL, "
        "'');"
        "INSERT INTO deputy VALUES ('ann', 'cat', 1, 1000), ('ben', 'cat', 1, 1000), ('dan', 'ben', 1, 1000),"
        " ('cat', 'dan', 1, 1000)");
    desk.store = desk_store_new(db_path);
    desk.policy = kit.p;
    return 0;
}

static int group_teardown(void **state)
{
    arena_free(&x.arena);
    desk_store_free(&desk.store);
    (void)sqlite3_close(db);
    kit_free(&kit);
    (void)unlink(db_path);
    return rmdir(path);
}

static void somebody(const char *name, const char *uid, const char *groups, uint64_t now_ms)
{
    arena_free(&x.arena);
    x = (struct exchange){.desk = &desk, .wall_ms = now_ms, .who = {.known = true, .person = name[0] != 'u'}};
    (void)snprintf(x.operator, sizeof(x.operator), "%s", name);
    (void)snprintf(x.who.uid, sizeof(x.who.uid), "%s", uid);
    (void)snprintf(x.who.groups, sizeof(x.who.groups), "%s", groups);
    arena_init(&x.arena, 1 << 20);
}

static struct ticket held(const char *id, const char *by)
{
    return (struct ticket){.id = span_str(id), .approve_by = span_str(by), .escalated_ms = id[0] == 'd' ? 9 : 0};
}

static void who_may_and_in_whose_name(void **state)
{
    static const struct {
        const char *name, *uid, *groups, *ticket, *by, *said;
        uint64_t now_ms;
        const char *then; /* NULL: they may not; "": in their own name */
    } rows[] = {
        {"ann", "", "", "not-due", "desk", "", 10, ""},
        {"uid 7", "uid 7", "", "not-due", "desk", "", 10, ""},
        {"uid 8", "uid 8", "", "not-due", "desk", "", 10, NULL},
        {"uid 8", "uid 8", "", "not-due", "", "", 10, ""}, /* any operator may */
        {"ben", "", "leads", "not-due", "desk", "", 10, NULL},
        {"ben", "", "leads", "due", "desk", "", 10, ""}, /* it has escalated to them */
        {"ann", "", "", "due", "desk", "", 10, ""},      /* who could still can */
        {"dan", "", "", "due", "desk", "", 10, NULL},    /* a deputy of a deputy is none */
        {"cat", "", "", "not-due", "desk", "", 10, "ann"},
        {"cat", "", "", "not-due", "desk", "ann", 10, "ann"},
        {"cat", "", "", "not-due", "desk", "ben", 10, NULL}, /* who may not yet */
        {"cat", "", "", "due", "desk", "ben", 10, "ben"},
        {"cat", "", "", "due", "desk", "", 10, "ann"},
        {"cat", "", "", "due", "desk", "dan", 10, NULL},
        {"cat", "", "", "due", "desk", "", 1000, NULL}, /* its time is over */
        {"ann", "", "", "due", "desk", "ben", 10, NULL},
        {"ben", "", "", "due", "desk", "dan", 10, NULL}, /* dan may not either */
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ticket t = held(rows[i].ticket, rows[i].by);
        somebody(rows[i].name, rows[i].uid, rows[i].groups, rows[i].now_ms);
        bool may = api_may_approve(&x, &t, span_str(rows[i].said));
        if (may != (rows[i].then != NULL) || (may && !span_eq(x.instead_of, span_str(rows[i].then))))
            fail_msg("row %u: %d as %.*s", i, may, SPAN_FMT(x.instead_of));
    }
}

/* What cannot be known lets nobody in. */
static void what_cannot_be_read_widens_nothing(void **state)
{
    struct ticket t = held("due", "desk");
    somebody("ben", "", "leads", 10);
    x.who.known = false;
    assert_false(api_may_approve(&x, &t, SPAN_NONE));
    sql("ALTER TABLE escalation RENAME TO elsewhere");
    somebody("ben", "", "leads", 10);
    assert_false(api_may_approve(&x, &t, SPAN_NONE));
    sql("ALTER TABLE elsewhere RENAME TO escalation");
    assert_true(api_may_approve(&x, &t, SPAN_NONE));
    desk.policy = NULL;
    assert_false(api_may_approve(&x, &t, SPAN_NONE));
    desk.policy = kit.p;
}

/* A session that a provider vouched for names nobody: who has the provider would have the deputy. */
static void a_session_from_a_provider_names_no_deputy(void **state)
{
    static const struct {
        enum guard_how how;
        unsigned status;
    } rows[] = {{HOW_PASSWORD, 503}, {HOW_PASSKEY, 503}, {HOW_OIDC, 403}};
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct session s = {.how = rows[i].how};
        char mark[GUARD_MARK_TEXT + 1], body[256];
        somebody("ann", "", "", 10);
        guard_mark(&s, "name", SPAN("me"), SPAN_NONE, 1000, mark);
        (void)snprintf(body, sizeof(body), "act=name&mark=%s&whose=&deputy=cat&hours=1", mark);
        x.session = &s;
        x.now_ms = 5000;
        x.body = span_str(body);
        x.head.nfields = 1;
        x.head.field[0] =
            (struct http_field){.name = SPAN("content-type"), .value = SPAN("application/x-www-form-urlencoded")};
        dynbuf_init(&x.out, 1 << 16);
        page_me_deputy(&x);
        if (x.status != rows[i].status)
            fail_msg("row %u: %u", i, x.status);
        dynbuf_free(&x.out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_and_in_whose_name),
        cmocka_unit_test(what_cannot_be_read_widens_nothing),
        cmocka_unit_test(a_session_from_a_provider_names_no_deputy),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
