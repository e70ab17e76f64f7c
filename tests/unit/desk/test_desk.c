/* The desk's handlers over a real store and a ledger that is played. Covers E8, E10, E11, E17, E24, E27, E32, E34. */
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
#include "tests/unit/policy/policy_kit.h"
#include "web-approval/ask.h"
#include "web-approval/events.h"
#include "web-approval/route.h"

#define DIGEST "1111111111111111111111111111111111111111111111111111111111111111"
#define TICKET "aaaa0000000000000000000000"
#define ORIGIN "Host: localhost:8088\r\nOrigin: http://localhost:8088\r\n"

/* --- the other side of the channels --------------------------------------- */

static struct dynbuf sent;
static unsigned sent_type, nsent;
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
    nsent++;
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
static struct exchange x;
static const struct session *session;
static char path[] = "/tmp/test_desk.XXXXXX", db_path[64];

static void answered(struct exchange *done)
{
}

static void sql(sqlite3 *db, const char *text)
{
    char *why = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
}

static void schema(sqlite3 *db, const char *file)
{
    const char *src = getenv("srcdir");
    char name[512], text[64 * 1024];
    (void)snprintf(name, sizeof(name), "%s/proxy/ledger/store/%s", src ? src : ".", file);
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    sql(db, text);
}

static void ticket(sqlite3 *db, const char *id, const char *state, unsigned size, unsigned reason, const char *by)
{
    char *text = sqlite3_mprintf(
        "INSERT INTO ticket (id,state,sandbox,session,tenant,method,scheme,host,port,path,fields_json,head,body_size,"
        "body_sha256,digest,join_key,op,effect,resource,credential,code,rule_id,rule_file,rule_line,policy,summary,"
        "facts_json,agent_reason,approve_by,dialect,reason_required,created_ms,expires_ms,expires_boot_ms) VALUES "
        "(%Q,%Q,'sb','s','t','POST','https','h.example',443,'/p','[]',x'',%u,zeroblob(32),x'" DIGEST
        "',randomblob(32),"
        "'op','write','','','rule','r','p.yaml',1,zeroblob(32),'<b>it</b>','[]','',%Q,'problem',%u,1,2,3)",
        id, state, size, by, reason);
    sql(db, text);
    sqlite3_free(text);
}

static int group_setup(void **state)
{
    sqlite3 *db;
    char token[ID_TEXT + 1], cookie[GUARD_COOKIE_TEXT + 1];
    if (!mkdtemp(path))
        return -1;
    (void)snprintf(db_path, sizeof(db_path), "%s/l.db", path);
    assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
    static const char *const files[] = {"schema.sql",           "schema_2.sql",         "schema_3.sql",
                                        "askers/schema_9.sql",  "people/schema_10.sql", "gates/schema_12.sql",
                                        "askers/schema_13.sql", "tell/schema_14.sql",   "egress/schema_15.sql",
                                        "people/schema_16.sql", "people/schema_17.sql", "people/schema_18.sql",
                                        "egress/schema_19.sql", "idle/schema_20.sql"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        schema(db, files[i]);
    ticket(db, TICKET, "pending", 0, 0, "");
    ticket(db, "aaab0000000000000000000000", "pending", 100000, 0, "");
    ticket(db, "bbbb0000000000000000000000", "pending", 0, 1, "");
    ticket(db, "cccc0000000000000000000000", "denied", 0, 0, "");
    ticket(db, "dddd0000000000000000000000", "pending", 0, 0, "leads");
    sql(db, "INSERT INTO audit VALUES (1, 5, 'ticket-opened', NULL, '" TICKET "', '{\"seq\":1}', zeroblob(32))");
    (void)sqlite3_close(db);
    desk.store = desk_store_new(db_path);
    desk.ledger = desk.parent = (struct chan *)&desk;
    dynbuf_init(&sent, 1 << 16);
    dynbuf_init(&desk.secrets, 1024);
    dynbuf_init(&desk.notice, 1024);
    (void)snprintf(desk.desk_url, sizeof(desk.desk_url), "http://localhost:8088");
    exchange_answered = answered;
    if (guard_init(&desk.guard, span_str(desk.desk_url)) != 0 || guard_link_new(&desk.guard, "uid 0", 1, token) != 0)
        return -1;
    session = guard_sign_in(&desk.guard, span_str(token), 2, cookie);
    (void)snprintf(desk.boot, sizeof(desk.boot), "%s", cookie); /* kept for the requests below */
    return session ? 0 : -1;
}

static int group_teardown(void **state)
{
    desk_store_free(&desk.store);
    dynbuf_free(&sent);
    dynbuf_free(&desk.secrets);
    dynbuf_free(&desk.notice);
    (void)unlink(db_path);
    return rmdir(path);
}

static void end(void)
{
    dynbuf_free(&x.raw);
    dynbuf_free(&x.out);
    arena_free(&x.arena);
    memset(desk.asks, 0, sizeof(desk.asks));
}

/* One request; its status, 0 when another role was asked. */
static unsigned ask(enum desk_place place, const char *line, const char *fields, const char *body)
{
    struct http_err e;
    size_t seen = 0, used;
    end();
    x = (struct exchange){.desk = &desk, .place = place, .file = -1, .now_ms = 10000, .wall_ms = 1000};
    (void)snprintf(x.operator, sizeof(x.operator), "uid 0");
    dynbuf_init(&x.raw, 1 << 20);
    dynbuf_init(&x.out, 1 << 20);
    arena_init(&x.arena, 1 << 22);
    (void)dynbuf_addf(&x.raw, "%s HTTP/1.1\r\n%s", line, fields);
    if (place == PLACE_CONTROL)
        (void)dynbuf_addf(&x.raw, "Host: countersign\r\n");
    if (body)
        (void)dynbuf_addf(&x.raw, "Content-Length: %zu\r\n", strlen(body));
    (void)dynbuf_addf(&x.raw, "\r\n%s", body ? body : "");
    assert_int_equal(http_parse_request(dynbuf_span(&x.raw), HTTP_ORIGIN_SERVER, &seen, &x.head, &used, &e), HTTP_OK);
    x.body = span_from(dynbuf_span(&x.raw), used);
    nsent = 0;
    route_run(&x);
    return x.status;
}

static unsigned control(const char *line, const char *body)
{
    return ask(PLACE_CONTROL, line, body ? "Content-Type: application/json\r\n" : "", body);
}

static bool says(const char *needle)
{
    return span_find(dynbuf_span(&x.out), span_str(needle)) < x.out.n;
}

/* Play the ledger: an answer to the last question. */
static void answer(uint16_t type, struct span payload)
{
    struct frame f = {.type = type, .id = sent_id, .payload = payload};
    assert_true(ask_answer(&desk, ASK_LEDGER, &f));
}

/* --- the API -------------------------------------------------------------- */

static void lists(void **state)
{
    assert_int_equal(control("GET /api/v1/tickets", NULL), 200);
    assert_true(says(TICKET) && says("cccc0000"));
    assert_int_equal(control("GET /api/v1/tickets?state=pending&prefix=aaa&limit=1", NULL), 200);
    assert_true(says("aaab") && !says(TICKET));
    assert_int_equal(control("GET /api/v1/tickets?limit=0", NULL), 400);
    assert_int_equal(control("GET /api/v1/tickets?limit=1001", NULL), 400);
    assert_int_equal(control("GET /api/v1/tickets?limit=1&limit=2", NULL), 400);
    assert_int_equal(control("GET /api/v1/tickets/" TICKET, NULL), 200);
    assert_int_equal(control("GET /api/v1/tickets/zzzz0000000000000000000000", NULL), 404);
    assert_int_equal(control("GET /api/v1/tickets/aaaa", NULL), 404);
    assert_int_equal(control("GET /api/v1/audit", NULL), 200);
    assert_true(says("\"json\":\"{\\\"seq\\\":1}\""));
    assert_int_equal(control("GET /api/v1/events?after=0", NULL), 200);
    assert_true(x.stream && says("id: 1\nevent: ticket\ndata: {"));
    events_write(&x.out, 0, SPAN("refused"), SPAN_NONE);
    assert_true(says("\n\nevent: refused\ndata: {"));
    assert_int_equal(control("GET /api/v1/nothing", NULL), 404);
    assert_int_equal(control("PUT /api/v1/tickets", NULL), 405);
    print_message("ok E8 unit\n");
}

/* E27: exactly the members that are known, once, of their type; the actor comes from the channel. */
static void strict(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"digest\":\"" DIGEST "\",\"approved_by\":\"root\"}",
        "{\"digest\":\"" DIGEST "\",\"digest\":\"" DIGEST "\"}",
        "{\"digest\":1}",
        "{\"digest\":\"11\"}",
        "{\"digest\":\"" DIGEST "\",\"reason\":null}",
        "[]",
        "{\"digest\":\"" DIGEST "\"}{}",
        "{\"digest\":\"" DIGEST "\",\"reason\":\"\\ud800\"}",
        "not json",
    };
    const char *line = "POST /api/v1/tickets/" TICKET "/approve";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (control(line, bad[i]) != 400 || nsent != 0)
            fail_msg("%s: %u", bad[i], x.status);
    }
    assert_int_equal(ask(PLACE_CONTROL, line, "Content-Type: text/plain\r\n", "{\"digest\":\"" DIGEST "\"}"), 415);
    assert_int_equal(ask(PLACE_CONTROL, line, "", "{\"digest\":\"" DIGEST "\"}"), 415);
    assert_int_equal(control(line, NULL), 400);
    assert_int_equal(control("GET /api/v1/tickets/" TICKET "/approve", NULL), 405);
    assert_int_equal(control("POST /api/v1/sandboxes", "{\"kind\":\"root\"}"), 400);
    assert_int_equal(control("POST /api/v1/sandboxes", "{\"kind\":\"run\",\"name\":\"../x\"}"), 400);
    assert_int_equal(control("POST /api/v1/sandboxes", "{\"kind\":\"run\",\"name\":\"A\"}"), 400);
    assert_int_equal(control("POST /api/v1/sandboxes", "{\"kind\":\"token\",\"name\":\"otlp-1\"}"), 400);
    assert_int_equal(control("POST /api/v1/sandboxes", "{\"kind\":\"run\",\"labels\":{\"a\":1}}"), 400);
    assert_int_equal(control("POST /api/v1/sandboxes", "{\"kind\":\"run\",\"with\":[\"nobody\"]}"), 409);
    assert_int_equal(nsent, 0);
    print_message("ok E27 unit\n");
}

static void decides(void **state)
{
    static const uint8_t ok[] = {1, TICKET_APPROVED}, late[] = {2, TICKET_DENIED}, other[] = {5, TICKET_PENDING};
    const char *line = "POST /api/v1/tickets/" TICKET "/approve",
               *body = "{\"digest\":\"" DIGEST "\",\"reason\":\"a\\nb\"}";
    struct digest shown, facts;
    struct id id;
    assert_int_equal(control(line, body), 0);
    assert_int_equal(sent_type, M_DECIDE);
    struct msg_in m = msg_in(dynbuf_span(&sent));
    msg_get_id(&m, &id);
    assert_int_equal(msg_get_u8(&m), 1);
    assert_true(span_eq(msg_get_span(&m, 64), SPAN("uid 0")) && span_eq(msg_get_span(&m, 64), SPAN("cli")) &&
                span_eq(msg_get_span(&m, 64), SPAN("socket")) &&
                span_eq(msg_get_span(&m, 600), SPAN("a b"))); /* E33 */
    msg_get_digest(&m, &shown);
    msg_get_digest(&m, &facts);
    assert_true(shown.b[0] == 0x11 && facts.b[0] != 0 && msg_get_span(&m, 600).n == 0); /* no passkey */
    assert_true(msg_get_u32(&m) == 0 && msg_get_u64(&m) == 0 && msg_get_span(&m, 64).n == 0 && msg_end(&m) == 0);
    answer(M_DECIDED, span_of(ok, 2));
    assert_int_equal(x.status, 200);
    assert_true(says("approved"));
    assert_int_equal(control(line, body), 0);
    answer(M_DECIDED, span_of(late, 2));
    assert_int_equal(x.status, 409);
    assert_int_equal(control(line, body), 0);
    answer(M_DECIDED, span_of(other, 2)); /* E24 */
    assert_int_equal(x.status, 409);
    assert_int_equal(control(line, body), 0);
    answer(M_DECIDED, span_of(ok, 1)); /* broken */
    assert_int_equal(x.status, 503);
    assert_int_equal(
        control("POST /api/v1/tickets/bbbb0000000000000000000000/approve", "{\"digest\":\"" DIGEST "\"}"), 422);
    assert_int_equal(control("POST /api/v1/tickets/dddd0000000000000000000000/approve", body), 403);
    print_message("ok E24 unit\n");
}

/* E32: without the ledger nothing is decided, and it is said. */
static void no_ledger(void **state)
{
    const char *line = "POST /api/v1/tickets/" TICKET "/approve", *body = "{\"digest\":\"" DIGEST "\"}";
    struct chan *ledger = desk.ledger;

    desk.ledger = NULL;
    assert_int_equal(control(line, body), 503);
    desk.ledger = ledger;
    assert_int_equal(control(line, body), 0);
    ask_gone(&desk, ASK_LEDGER);
    assert_int_equal(x.status, 503);
    assert_int_equal(control(line, body), 0);
    ask_expire(&desk, 10000 + DESK_ASK_MS);
    assert_int_equal(x.status, 503);
    print_message("ok E32 unit\n");
}

/* The log and an exchange's steps: of the control socket alone, asked of the parent, in its words. */
static void observes(void **state)
{
    static const char *const bad[] = {"{\"level\":\"loud\"}",     "{\"level\":1}",
                                      "{\"trace\":[]}",           "{\"for_ms\":-1}",
                                      "{\"for_ms\":99999999999}", "{\"loud\":true}"};
    const char *line = "POST /api/v1/log";
    struct frame f = {.type = M_LOG_SET};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (control(line, bad[i]) != 400 || nsent != 0)
            fail_msg("%s: %u", bad[i], x.status);
    assert_int_equal(control(line, "{\"level\":\"debug\",\"trace\":\"ci-7\",\"for_ms\":600000,\"record\":true}"), 0);
    assert_int_equal(sent_type, M_LOG_SET);
    assert_int_equal(nsent, 2); /* the audit has who did it */
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_true(msg_get_bool(&m));
    assert_int_equal(msg_get_u8(&m), 1);
    assert_true(msg_get_bool(&m));
    assert_true(span_eq(msg_get_span(&m, 100), SPAN("ci-7")));
    assert_true(msg_get_bool(&m));
    assert_int_equal(msg_get_u64(&m), 600000);
    assert_int_equal(msg_end(&m), 0);
    f.id = sent_id;
    f.payload = SPAN("\1\0\0\0\2{}");
    assert_true(ask_answer(&desk, ASK_PARENT, &f));
    assert_int_equal(x.status, 200);
    assert_int_equal(control("GET /api/v1/trace/1099511627777", NULL), 0);
    f = (struct frame){.type = M_TRACE_OF, .id = sent_id, .payload = SPAN("\0\0\0\0\4none")};
    assert_int_equal(sent_type, M_TRACE_OF);
    assert_true(ask_answer(&desk, ASK_PARENT, &f));
    assert_true(x.status == 422 && says("none"));
    assert_int_equal(control("GET /api/v1/trace/" TICKET, NULL), 404); /* the audit names no exchange of it */
    assert_int_equal(nsent, 0);
    assert_int_equal(control("GET /api/v1/log", NULL), 0);
    f = (struct frame){.type = M_LOG_SET, .id = sent_id, .payload = SPAN("\1\0\0\0\1{")};
    assert_true(ask_answer(&desk, ASK_PARENT, &f));
    assert_int_equal(x.status, 500);
}

/* E34: questions have a limit; the one past it is refused at once. */
static void full(void **state)
{
    const char *line = "POST /api/v1/tickets/" TICKET "/approve", *body = "{\"digest\":\"" DIGEST "\"}";

    assert_int_equal(control(line, body), 0);
    for (size_t i = 0; i < DESK_ASKS; i++)
        desk.asks[i] = (struct ask){i + 1000, 99999, ASK_LEDGER, M_DECIDED, &x, NULL};
    x.status = 0;
    x.now_ms = 10000;
    route_run(&x);
    assert_int_equal(x.status, 503);
    print_message("ok E34 unit\n");
}

/* E10: what a sandbox is given is a token for the proxy, and its hash is all that is stored. */
static void tokens(void **state)
{
    assert_int_equal(control("POST /api/v1/sandboxes", "{\"kind\":\"token\",\"name\":\"ci\"}"), 0);
    assert_int_equal(sent_type, M_SANDBOX_PUT);
    assert_true(span_find(dynbuf_span(&sent), SPAN("cst_")) == sent.n);
    answer(M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    assert_int_equal(x.status, 201);
    assert_true(says("\"token\":\"cst_"));
    assert_int_equal(control("POST /api/v1/sandboxes", "{\"kind\":\"token\",\"name\":\"ci\"}"), 0);
    answer(M_SANDBOX_DONE, SPAN("\0\0\0\0\4full"));
    assert_int_equal(x.status, 503);
    assert_false(says("cst_"));
    assert_int_equal(control("POST /api/v1/sandboxes/nobody/token", NULL), 404);
    assert_int_equal(control("POST /api/v1/sandboxes/nobody/token", "{\"revoke_others\":1}"), 400);
    print_message("ok E10 unit\n");
}

/* --- the page ------------------------------------------------------------- */

static unsigned page(const char *line, const char *fields, const char *body)
{
    char all[2048];
    (void)snprintf(all, sizeof(all), "Cookie: countersign=%s\r\n%s%s", desk.boot, fields,
                   body ? "Content-Type: application/x-www-form-urlencoded\r\n" : "");
    return ask(PLACE_PAGE, line, all, body);
}

static void strangers(void **state)
{
    static const char *const closed[] = {"GET /tickets/" TICKET, "GET /tickets/zzzz0000000000000000000000",
                                         "GET /api/v1/tickets", "GET /api/v1/events", "GET /nothing"};
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++)
        assert_int_equal(ask(PLACE_PAGE, closed[i], "Host: localhost:8088\r\n", NULL), 403);
    assert_int_equal(ask(PLACE_PAGE, "GET /", "Host: localhost:8088\r\n", NULL), 403);
    assert_int_equal(ask(PLACE_PAGE, "GET /sign-in", "Host: evil:8088\r\n", NULL), 403);
    assert_int_equal(ask(PLACE_PAGE, "GET /assets/style.css", "Host: localhost:8088\r\n", NULL), 200);
    assert_int_equal(ask(PLACE_PAGE, "GET /assets/..%2f", "Host: localhost:8088\r\n", NULL), 404);
    assert_int_equal(page("GET /", "Host: localhost:8088\r\n", NULL), 200);
    assert_true(says("&lt;b&gt;it&lt;/b&gt;") && !says("<b>it"));
    /* what changes something is not on the page's API at all */
    assert_int_equal(page("POST /api/v1/signin", ORIGIN, ""), 404);
    assert_int_equal(page("POST /api/v1/log", ORIGIN, ""), 404);
    assert_int_equal(page("GET /api/v1/log", ORIGIN, NULL), 404);
    assert_int_equal(page("GET /api/v1/trace/1099511627777", ORIGIN, NULL), 404);
    assert_int_equal(page("POST /api/v1/tickets/" TICKET "/approve", ORIGIN, ""), 404);
    assert_int_equal(page("GET /tickets/" TICKET "/approve", ORIGIN, NULL), 405);
    print_message("ok E9 unit\n");
}

static void forms(void **state)
{
    char mark[GUARD_MARK_TEXT + 1], body[1024], yes[] = "POST /tickets/" TICKET "/approve";
    const struct span id = SPAN(TICKET), digest = SPAN(DIGEST);

    guard_mark(session, "approve", id, digest, 9000, mark);
    (void)snprintf(body, sizeof(body), "digest=" DIGEST "&mark=%s&reason=fine", mark);
    assert_int_equal(page(yes, "Host: localhost:8088\r\n", body), 403); /* no Origin */
    assert_int_equal(page(yes, "Host: localhost:8088\r\nOrigin: http://evil\r\n", body), 403);
    assert_int_equal(nsent, 0);
    assert_int_equal(page(yes, ORIGIN, body), 0);
    assert_int_equal(sent_type, M_DECIDE);
    answer(M_DECIDED, SPAN("\1\2"));
    assert_int_equal(x.status, 303);
    assert_string_equal(x.location, "/tickets/" TICKET);
    (void)snprintf(body, sizeof(body), "digest=" DIGEST "&mark=%s&mark=%s&reason=fine", mark, mark);
    assert_int_equal(page(yes, ORIGIN, body), 400);
    guard_mark(session, "approve", id, digest, 9900, mark);
    (void)snprintf(body, sizeof(body), "digest=" DIGEST "&mark=%s", mark);
    assert_int_equal(page(yes, ORIGIN, body), 409); /* E13: too fast */
    assert_int_equal(page("POST /tickets/" TICKET "/deny", ORIGIN, body), 403);
    assert_int_equal(page("POST /tickets/bbbb0000000000000000000000/approve", ORIGIN, body), 403);
    assert_int_equal(nsent, 0);
    print_message("ok E11 unit\nok E13 unit\n");
}

/* E17: a body that the page cut is approved at the end of the whole one only. */
static void cut(void **state)
{
    char mark[GUARD_MARK_TEXT + 1], body[1024], yes[] = "POST /tickets/aaab0000000000000000000000/approve";
    const struct span id = SPAN("aaab0000000000000000000000"), digest = SPAN(DIGEST);

    guard_mark(session, "approve", id, digest, 9000, mark);
    (void)snprintf(body, sizeof(body), "digest=" DIGEST "&mark=%s", mark);
    assert_int_equal(page(yes, ORIGIN, body), 409);
    (void)snprintf(body, sizeof(body), "digest=" DIGEST "&mark=%s&whole=1&read=1", mark);
    assert_int_equal(page(yes, ORIGIN, body), 403); /* the mark of another page */
    guard_mark(session, "approve-whole", id, digest, 9000, mark);
    (void)snprintf(body, sizeof(body), "digest=" DIGEST "&mark=%s&whole=1", mark);
    assert_int_equal(page(yes, ORIGIN, body), 409); /* the box is not ticked */
    assert_int_equal(nsent, 0);
    (void)snprintf(body, sizeof(body), "digest=" DIGEST "&mark=%s&whole=1&read=1", mark);
    assert_int_equal(page(yes, ORIGIN, body), 0);
    assert_int_equal(sent_type, M_BODY_GET); /* it is read once more before it is decided: test_deciding.c */
    print_message("ok E17 unit\n");
}

/* The policy is rolled back on the control socket alone, by digits or by its end, never both; the page says so. */
static void rolls_back(void **state)
{
    static const char *const bad[] = {"{}",
                                      "[]",
                                      "{\"end\":false}",
                                      "{\"end\":1}",
                                      "{\"digest\":\"\"}",
                                      "{\"digest\":\"" DIGEST "1\"}",
                                      "{\"digest\":\"111111\",\"end\":true}"};
    const char *line = "POST /api/v1/policy/rollback", *versions = "{\"versions\":[]}";
    struct dynbuf said;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (control(line, bad[i]) != 400 || nsent != 0)
            fail_msg("%s: %u", bad[i], x.status);
    assert_int_equal(page("POST /api/v1/policy/rollback", ORIGIN, "digest=111111"), 404);
    assert_int_equal(nsent, 0);
    assert_int_equal(control(line, "{\"digest\":\"111111\"}"), 0);
    assert_int_equal(sent_type, M_ROLLBACK);
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_true(span_eq(msg_get_span(&m, 128), SPAN("uid 0")));
    assert_true(span_eq(msg_get_span(&m, 128), SPAN("111111")));
    assert_int_equal(msg_end(&m), 0);
    dynbuf_init(&said, 1024);
    msg_put_u8(&said, false);
    msg_put_span(&said, SPAN("no such version"));
    struct frame f = {.type = M_RELOADED, .id = sent_id, .payload = dynbuf_span(&said)};
    assert_true(ask_answer(&desk, ASK_PARENT, &f));
    assert_int_equal(x.status, 422);
    assert_true(says("no such version"));
    assert_int_equal(control("GET /api/v1/policy/versions", NULL), 0);
    dynbuf_reset(&said);
    msg_put_span(&said, span_str(versions));
    f = (struct frame){.type = M_VERSIONS, .id = sent_id, .payload = dynbuf_span(&said)};
    assert_true(ask_answer(&desk, ASK_PARENT, &f));
    assert_int_equal(x.status, 200);
    assert_true(says(versions));
    dynbuf_free(&said);
    msg_put_span(&desk.notice, SPAN_NONE);
    msg_put_span(&desk.notice, SPAN_NONE);
    msg_put_u64(&desk.notice, 0);
    msg_put_span(&desk.notice, SPAN("rollback-end"));
    msg_put_span(&desk.notice, SPAN("uid <i>0"));
    msg_put_u64(&desk.notice, 0);
    msg_put_span(&desk.notice, SPAN("refused: <b>\x1b"));
    assert_int_equal(page("GET /", "Host: localhost:8088\r\n", NULL), 200);
    assert_true(says("refused: &lt;b&gt;") && says("the end of a rollback by uid &lt;i&gt;0.") &&
                !says("earlier policy"));
    dynbuf_reset(&desk.notice);
}

static bool shows(const char *id, const char *words)
{
    char line[64];
    (void)snprintf(line, sizeof(line), "GET /tickets/%s", id);
    assert_int_equal(page(line, "Host: localhost:8088\r\n", NULL), 200);
    return says(words);
}

/* What the page says of a policy is true of the one that is there, or is not said. */
static void true_of_the_policy(void **state)
{
    static const char *const only[] = {"host: h.example", "host: h.example, path: /else/**"};
    const char *gone = "cccc0000000000000000000000", *waits = "dddd0000000000000000000000";
    const char *no = "that credential is not released", *held = "all else of it waits here";
    char yaml[1024];
    sqlite3 *db;
    struct kit k;

    assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
    sql(db,
        "UPDATE ticket SET credential='api' WHERE id='dddd0000000000000000000000';"
        "UPDATE ticket SET state='cancelled',decided_by='policy',decided_ms=1 WHERE id='cccc0000000000000000000000'");
    (void)sqlite3_close(db);
    assert_true(shows(gone, "(another policy, or the hours of a rule)") && says("<dd>the policy, "));
    assert_true(shows(waits, "Whether it will be released is not known") && !says(no) && !says("does not know it"));
    for (unsigned i = 0; i < 4; i++) {
        (void)snprintf(yaml, sizeof(yaml),
                       "version: 1\nlearning: until 2030-01-01T05:00:00Z\n"
                       "upstreams:\n  - { host: h.example }\ncredentials:\n  api:\n    source: { store: api }\n"
                       "    inject: { header: Authorization, format: \"Bearer {}\" }\n    only: [{ %s }]\n",
                       only[i & 1]);
        if (!kit_load_at(&k, yaml, NULL, 1893456000000u))
            fail_msg("%s %s", k.e.text, k.nproblems ? k.problems[0] : "");
        desk.policy = k.p;
        (void)snprintf(desk.mode, sizeof(desk.mode), i < 2 ? "enforce" : "shadow");
        assert_int_equal(shows(waits, no), i & 1);
        assert_true(says("The policy is learning") && says(held) == (i < 2));
        desk.policy = NULL;
        kit_free(&k);
    }
    desk.mode[0] = '\0';
}

/* Where a client sends what it has in a credential's place, for the settings of clients that ask for each place. */
static void places_of_credentials(void **state)
{
    struct kit k;
    if (!kit_load(
            &k,
            "version: 1\ncredentials:\n  api:\n    source: { store: api }\n    inject: { basic: { user: me } }\n"
            "    only:\n      - { host: h.example }\n      - { host: h.example, path: \"/acme/app*/**\" }\n"
            "      - { host: i.example, port: 8443, path: /a.git }\n"
            "      - { host: j.example, scheme: http, port: 80 }\n"
            "upstreams: [{ host: j.example, port: 80, cleartext_credentials: true }]\n",
            NULL))
        fail_msg("%s %s", k.e.text, k.nproblems ? k.problems[0] : "");
    desk.policy = k.p;
    assert_int_equal(control("GET /api/v1/credentials", NULL), 200);
    assert_true(says("\"basic\":true,\"user\":\"me\",\"places\":[\"https://h.example/\",\"https://h.example/acme/\","
                     "\"https://i.example:8443/a.git\",\"http://j.example/\"]"));
    desk.policy = NULL;
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_credentials),
        cmocka_unit_test(lists),
        cmocka_unit_test(strict),
        cmocka_unit_test(decides),
        cmocka_unit_test(no_ledger),
        cmocka_unit_test(full),
        cmocka_unit_test(observes),
        cmocka_unit_test(tokens),
        cmocka_unit_test(strangers),
        cmocka_unit_test(forms),
        cmocka_unit_test(cut),
        cmocka_unit_test(rolls_back),
        cmocka_unit_test(true_of_the_policy),
    };
    int failed = cmocka_run_group_tests(tests, group_setup, group_teardown);
    end();
    return failed;
}
