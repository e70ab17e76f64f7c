/* What a yes needs, whoever brings it; a group; the history. Covers E13, E19, E25, E27. */
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
#include "tests/kit.h"
#include "web-approval/ask.h"
#include "web-approval/deciding/deciding.h"
#include "web-approval/route.h"

#define DIGEST "1111111111111111111111111111111111111111111111111111111111111111"
#define FIELDS                                                                                                       \
    "Host: localhost:8088\r\nOrigin: http://localhost:8088\r\nSec-Fetch-Site: same-origin\r\nCookie: "               \
    "countersign=%s\r\n"

static struct desk desk;
static struct exchange x;
static char path[] = "/tmp/test_deciding.XXXXXX", db_path[64], cookie[GUARD_COOKIE_TEXT + 1];
static struct dynbuf sent;
static unsigned sent_type, nsent;
static uint64_t sent_id, clock_now = 10000;

/* --- the other side of the channels --------------------------------------- */

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

static void answered(struct exchange *done)
{
}

/* --- a store of tickets ---------------------------------------------------- */

static sqlite3 *db;

static void sql(const char *text)
{
    char *why = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
}

static void schema(const char *file)
{
    const char *src = getenv("srcdir");
    char name[512], text[64 * 1024];
    (void)snprintf(name, sizeof(name), "%s/proxy/ledger/store/%s", src ? src : ".", file);
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    (void)fclose(f);
    sql(text);
}

struct row {
    const char *id, *state, *effect, *resource, *path, *facts, *fields;
    unsigned size, created;
};

static void ticket(const struct row *r)
{
    char *text = sqlite3_mprintf(
        "INSERT INTO ticket (id,state,sandbox,session,tenant,method,scheme,host,port,path,fields_json,head,body_size,"
        "body_sha256,digest,join_key,op,effect,resource,credential,code,rule_id,rule_file,rule_line,policy,summary,"
        "facts_json,agent_reason,approve_by,dialect,reason_required,created_ms,expires_ms,expires_boot_ms) VALUES "
        "(%Q,%Q,'sb','s','t','POST','https','h.example',443,%Q,%Q,x'',%u,zeroblob(32),x'" DIGEST "',randomblob(32),"
        "'op',%Q,%Q,'','rule','r','p.yaml',1,zeroblob(32),'Do it',%Q,'','','problem',0,%u,9000000,9)",
        r->id, r->state, r->path ? r->path : "/v1/things/42", r->fields ? r->fields : "[]", r->size, r->effect,
        r->resource ? r->resource : "", r->facts ? r->facts : "[]", r->created ? r->created : 1);
    sql(text);
    sqlite3_free(text);
}

#define REPO  "aaaa0000000000000000000000"
#define CODED "bbbb0000000000000000000000"

static int group_setup(void **state)
{
    static const char *const files[] = {"schema.sql",           "schema_2.sql",         "schema_3.sql",
                                        "askers/schema_9.sql",  "people/schema_10.sql", "gates/schema_12.sql",
                                        "askers/schema_13.sql", "tell/schema_14.sql",   "egress/schema_15.sql",
                                        "people/schema_16.sql", "people/schema_17.sql", "people/schema_18.sql",
                                        "egress/schema_19.sql", "idle/schema_20.sql"};
    static const struct row rows[] = {
        {REPO, "pending", "delete", "github:acme/app", NULL, NULL, NULL, 0, 5},
        {CODED, "pending", "write", NULL, NULL, NULL, "[[\"content-encoding\",\"gzip\"]]", 5, 6},
    };
    char token[ID_TEXT + 1];

    if (!mkdtemp(path))
        return -1;
    (void)snprintf(db_path, sizeof(db_path), "%s/l.db", path);
    if (sqlite3_open(db_path, &db) != SQLITE_OK)
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        schema(files[i]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ticket(&rows[i]);
    desk.store = desk_store_new(db_path);
    desk.ledger = desk.parent = (struct chan *)&desk;
    dynbuf_init(&sent, 1 << 16);
    dynbuf_init(&desk.secrets, 1024);
    dynbuf_init(&desk.notice, 1024);
    (void)snprintf(desk.desk_url, sizeof(desk.desk_url), "http://localhost:8088");
    exchange_answered = answered;
    if (guard_init(&desk.guard, span_str(desk.desk_url)) != 0 || guard_link_new(&desk.guard, "uid 0", 1, token) != 0)
        return -1;
    return guard_sign_in(&desk.guard, span_str(token), 2, cookie) ? 0 : -1;
}

static void end(void)
{
    dynbuf_free(&x.raw);
    dynbuf_free(&x.out);
    arena_free(&x.arena);
    memset(desk.asks, 0, sizeof(desk.asks));
}

static int group_teardown(void **state)
{
    end();
    desk_store_free(&desk.store);
    (void)sqlite3_close(db);
    dynbuf_free(&sent);
    dynbuf_free(&desk.secrets);
    dynbuf_free(&desk.notice);
    (void)unlink(db_path);
    return rmdir(path);
}

/* One request; its status, 0 when another role was asked. */
static unsigned ask(enum desk_place place, const char *line, const char *type, struct span body)
{
    struct http_err e;
    size_t seen = 0, used;

    end();
    x = (struct exchange){.desk = &desk, .place = place, .file = -1, .now_ms = clock_now, .wall_ms = 60000};
    (void)snprintf(x.operator, sizeof(x.operator), "uid 0");
    dynbuf_init(&x.raw, 1 << 20);
    dynbuf_init(&x.out, 1 << 20);
    arena_init(&x.arena, DESK_ARENA_MAX);
    (void)dynbuf_addf(&x.raw, "%s HTTP/1.1\r\n", line);
    if (place == PLACE_CONTROL)
        (void)dynbuf_addf(&x.raw, "Host: countersign\r\n");
    else
        (void)dynbuf_addf(&x.raw, FIELDS, cookie);
    if (body.n)
        (void)dynbuf_addf(&x.raw, "Content-Type: %s\r\nContent-Length: %zu\r\n", type, body.n);
    (void)dynbuf_addf(&x.raw, "\r\n");
    (void)dynbuf_add(&x.raw, body);
    assert_int_equal(http_parse_request(dynbuf_span(&x.raw), HTTP_ORIGIN_SERVER, &seen, &x.head, &used, &e), HTTP_OK);
    x.body = span_from(dynbuf_span(&x.raw), used);
    nsent = 0;
    route_run(&x);
    return x.status;
}

static unsigned control(const char *line, const char *body)
{
    return ask(PLACE_CONTROL, line, "application/json", span_str(body));
}

static unsigned get(const char *target)
{
    char line[512];
    (void)snprintf(line, sizeof(line), "GET %s", target);
    return ask(PLACE_PAGE, line, "", SPAN_NONE);
}

static bool says(const char *needle)
{
    return span_find(dynbuf_span(&x.out), span_str(needle)) < x.out.n;
}

static void answer(uint16_t type, struct span payload)
{
    struct frame f = {.type = type, .id = sent_id, .payload = payload};
    assert_true(ask_answer(&desk, ASK_LEDGER, &f));
}

static void answer_body(struct span body)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 16);
    assert_int_equal(sent_type, M_BODY_GET);
    msg_put_u8(&b, true);
    msg_put_u64(&b, body.n);
    msg_put_span(&b, body);
    answer(M_BODY_IS, dynbuf_span(&b));
    dynbuf_free(&b);
}

static void answer_decided(enum ticket_state state)
{
    const uint8_t done[] = {1, (uint8_t)state};
    assert_int_equal(sent_type, M_DECIDE);
    answer(M_DECIDED, span_of(done, 2));
}

/* --- names ------------------------------------------------------------------ */

static void the_name_is_of_what_it_is_about(void **state)
{
    static const struct {
        const char *effect, *resource, *path, *facts, *name;
    } rows[] = {
        {"write", "github:acme/app", "/x", "[]", ""},
        {"read", "github:acme/app", "/x", "[]", ""},
        {"exec", "github:acme/app", "/x", "[]", ""},
        {"delete", "github:acme/app", "/x", "[]", "acme/app"},
        {"admin", "bucket", "/x", "[]", "bucket"},
        {"delete", "npm:-", "/a/things/42/", "[]", "42"},
        {"delete", "", "/a/b%20c", "[]", "b%20c"},
        {"delete", "", "/", "[]", "h.example"},
        {"delete", "x:\xc3\xa4", "/\xc3\xa4", "[]", "h.example"}, /* nobody knows how to type that */
        {"delete", "x: b", "/p", "[]", "p"},
        {"spend", "pay:acme", "/x", "[{\"label\":\"Amount\",\"value\":\"250 EUR\"}]", "250 EUR"},
        {"spend", "pay:acme", "/x", "[{\"label\":\"amount\",\"value\":\"1\"},{\"label\":\"Amount\",\"value\":\"2\"}]",
         "acme"},
        {"spend", "pay:acme", "/x", "[]", "acme"},
        {"delete", "pay:acme", "/x", "[{\"label\":\"Amount\",\"value\":\"250 EUR\"}]", "acme"},
    };
    struct arena a;
    arena_init(&a, READING_ARENA);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct view v;
        v = (struct view){.t = {.method = SPAN("POST"), .host = SPAN("h.example")}, .there = true};
        v.t.effect = span_str(rows[i].effect);
        v.t.resource = span_str(rows[i].resource);
        v.t.path = span_str(rows[i].path);
        v.t.facts_json = span_str(rows[i].facts);
        x.desk = &desk;
        page_read(&x, &v, &a);
        if (!span_eq(deciding_name(&v), span_str(rows[i].name)))
            fail_msg("%zu: %.*s", i, SPAN_FMT(deciding_name(&v)));
    }
    arena_free(&a);
}

static void the_amount_of_a_body_is_the_name_of_what_spends(void **state)
{
    static struct view v;
    struct arena a;
    arena_init(&a, READING_ARENA);
    v = (struct view){
        .t = {.method = SPAN("POST"), .host = SPAN("h.example"), .path = SPAN("/refunds"), .effect = SPAN("spend")},
        .there = true};
    v.t.fields_json = SPAN("[[\"content-type\",\"application/json\"]]");
    v.bytes = SPAN("{\"charge\":\"ch_1\",\"amount\":4200}");
    v.t.body_size = v.bytes.n;
    page_read(&x, &v, &a);
    assert_true(span_eq(deciding_name(&v), SPAN("4200")));
    v.bytes = SPAN("{\"items\":{\"a\":{\"amount\":1},\"b\":{\"amount\":2}}}"); /* two amounts: neither is the name */
    v.t.body_size = v.bytes.n;
    page_read(&x, &v, &a);
    assert_true(span_eq(deciding_name(&v), SPAN("refunds")));
    arena_free(&a);
}

static void without_its_name_nothing_grave_is_approved(void **state)
{
    static const char *const bad[] = {"{\"digest\":\"" DIGEST "\"}", "{\"digest\":\"" DIGEST "\",\"name\":\"\"}",
                                      "{\"digest\":\"" DIGEST "\",\"name\":\"acme\"}",
                                      "{\"digest\":\"" DIGEST "\",\"name\":\"ACME/APP\"}"};
    const char *line = "POST /api/v1/tickets/" REPO "/approve";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(control(line, bad[i]), 422);
        assert_int_equal(nsent, 0);
        assert_true(says("\\\"acme/app\\\""));
    }
    assert_int_equal(control(line, "{\"digest\":\"" DIGEST "\",\"name\":\" acme/app \"}"), 0);
    answer_decided(TICKET_APPROVED);
    assert_int_equal(x.status, 200);
    assert_int_equal(control("POST /api/v1/tickets/" REPO "/deny", "{\"digest\":\"" DIGEST "\"}"),
                     0); /* a no needs none */
    answer_decided(TICKET_DENIED);
    assert_int_equal(control("POST /api/v1/tickets/" REPO "/deny", "{\"digest\":\"" DIGEST "\",\"name\":\"x\"}"),
                     400);
    covers("E27");
}

/* A yes that covers more needs no less, and nothing that a person should look at is among what it covers. */
static void a_grant_is_no_way_round(void **state)
{
    const struct row row = {"cccc0000000000000000000000", "pending", "write", NULL, "/v1/a%2Fb", NULL, NULL, 0, 7};
    const char *line = "POST /api/v1/tickets/cccc0000000000000000000000/approve";
    assert_int_equal(
        control("POST /api/v1/tickets/" REPO "/approve", "{\"digest\":\"" DIGEST "\",\"uses\":3,\"for_ms\":60000}"),
        422);
    assert_int_equal(nsent, 0);
    ticket(&row);
    assert_int_equal(control(line, "{\"digest\":\"" DIGEST "\",\"uses\":3,\"for_ms\":60000}"), 409);
    assert_true(says("one by one"));
    assert_int_equal(nsent, 0);
    assert_int_equal(control(line, "{\"digest\":\"" DIGEST "\",\"uses\":3}"), 400);
    assert_int_equal(control(line, "{\"digest\":\"" DIGEST "\"}"), 0);
    answer_decided(TICKET_APPROVED);
    assert_int_equal(x.status, 200);
    sql("DELETE FROM ticket WHERE id LIKE 'cccc%'");
}

/* --- what blocks -------------------------------------------------------------- */

static void what_blocks_the_page_blocks_the_api(void **state)
{
    const char *line = "POST /api/v1/tickets/" CODED "/approve", *body = "{\"digest\":\"" DIGEST "\"}";

    assert_int_equal(control(line, body), 0);
    answer_body(SPAN("\x1f\x8b"
                     "bad")); /* it says gzip, and is none that can be opened */
    assert_int_equal(x.status, 409);
    assert_true(says("cannot be shown"));
    assert_int_equal(nsent, 1); /* the body alone was asked for */
    assert_int_equal(control(line, body), 0);
    answer(M_BODY_IS, SPAN("\0\0\0\0\0\0\0\0\0\0\0\0\0")); /* it is not kept any more */
    assert_int_equal(x.status, 410);
    assert_int_equal(control(line, body), 0);
    ask_gone(&desk, ASK_LEDGER);
    assert_int_equal(x.status, 410);
    assert_int_equal(control("GET /api/v1/tickets/" CODED "?reading=1", ""), 0);
    answer_body(SPAN("\x1f\x8b"
                     "bad"));
    assert_int_equal(x.status, 200);
    assert_true(says("\"reading\":{\"blocks\":true,\"flags\":[{"));
    covers("E19");
}

/* --- a group -------------------------------------------------------------- */

static void burst(void)
{
    static bool there;
    char id[ID_TEXT + 1];
    for (unsigned i = 0; i < 4 && !there; i++) {
        (void)snprintf(id, sizeof(id), "ggg%u0000000000000000000000", i);
        ticket(&(struct row){id, "pending", "write", NULL, "/v1/invitations", NULL,
                             "[[\"content-type\",\"application/json\"]]", 13, 10 + i});
    }
    there = true;
}

/* The group's page; its form's fields. */
static void group_page(char rows[1024], char mark[128])
{
    static const char *const bodies[] = {"{\"role\":\"mm\"}", "{\"role\":\"mm\"}", "{\"role\":\"ow\"}",
                                         "{\"role\":\"mm\"}"};
    burst();
    assert_int_equal(get("/groups/ggg00000000000000000000000"), 0);
    for (size_t i = 0; i < 4; i++)
        answer_body(span_str(bodies[i]));
    assert_int_equal(x.status, 200);
    struct span out = dynbuf_span(&x.out);
    const struct span names[] = {SPAN("name=\"rows\" value=\""), SPAN("name=\"mark\" value=\"")};
    for (size_t i = 0; i < 2; i++) {
        struct span v = span_from(out, span_find(out, names[i]) + names[i].n);
        (void)snprintf(i ? mark : rows, i ? 128 : 1024, "%.*s", SPAN_FMT(span_first(v, span_index(v, '"'))));
    }
}

static unsigned group_post(const char *rows, const char *mark, const char *rest)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 16);
    (void)dynbuf_addf(&b, "rows=%s&mark=%s&%s", rows, mark, rest);
    unsigned status = ask(PLACE_PAGE, "POST /groups/ggg00000000000000000000000", "application/x-www-form-urlencoded",
                          dynbuf_span(&b));
    dynbuf_free(&b);
    return status;
}

static void a_group_is_decided_each_by_its_own_digest(void **state)
{
    static const uint8_t late[] = {2, TICKET_DENIED};
    char rows[1024], mark[128];
    group_page(rows, mark);
    assert_true(says("4 requests alike") && says("<tr class=\"odd\"") && says("odd one"));
    assert_true(says("name=\"r1\" value=\"1\" checked") && !says("name=\"r2\" value=\"1\" checked"));
    assert_int_equal(group_post(rows, mark, "verdict=approve&r0=1&r1=1"), 409); /* at once: nobody has looked */
    clock_now += GUARD_ARM_MS;
    assert_int_equal(group_post(rows, mark, "verdict=approve"), 422); /* none is picked */
    assert_int_equal(group_post(rows, mark, "verdict=burn&r0=1"), 400);
    assert_int_equal(group_post("ggg00000000000000000000000." DIGEST, mark, "verdict=approve&r0=1"),
                     403); /* other rows */
    assert_int_equal(group_post(rows, mark, "verdict=approve&r0=1&r3=1&reason=fine"), 0);
    answer_body(SPAN("{\"role\":\"mm\"}"));
    struct msg_in m = msg_in(dynbuf_span(&sent));
    struct id id, want;
    struct digest shown;
    msg_get_id(&m, &id);
    assert_int_equal(id_parse(SPAN("ggg00000000000000000000000"), &want), 0);
    assert_true(id_eq(&id, &want));
    assert_int_equal(msg_get_u8(&m), 1);
    (void)msg_get_span(&m, 64);
    assert_true(span_eq(msg_get_span(&m, 64), SPAN("page")) && span_eq(msg_get_span(&m, 64), SPAN("link")));
    assert_true(span_eq(msg_get_span(&m, 64), SPAN("fine")));
    msg_get_digest(&m, &shown);
    assert_int_equal(shown.b[0], 0x11);
    answer(M_DECIDED, span_of(late, 2)); /* it changed meanwhile; the other is decided all the same */
    answer_body(SPAN("{\"role\":\"mm\"}"));
    answer_decided(TICKET_APPROVED);
    assert_int_equal(x.status, 200);
    assert_true(says("<h1>1 of 2 approved</h1>") && says("not pending any more"));
    covers("E3");
}

static void a_no_to_a_group_needs_no_body(void **state)
{
    char rows[1024], mark[128];
    group_page(rows, mark);
    clock_now += GUARD_ARM_MS;
    assert_int_equal(group_post(rows, mark, "verdict=deny&r1=1&r2=1"), 0);
    answer_decided(TICKET_DENIED);
    answer_decided(TICKET_DENIED);
    assert_int_equal(x.status, 200);
    assert_true(says("<h1>2 of 2 denied</h1>"));
}

/* Every row is told, and none twice, whoever is not there. */
static void without_a_ledger_a_group_stays(void **state)
{
    static const char *const verdicts[] = {"verdict=approve&r0=1&r1=1&r3=1", "verdict=deny&r0=1&r1=1&r2=1&r3=1"};
    struct chan *ledger = desk.ledger;
    char rows[1024], mark[128];
    for (size_t i = 0; i < 2; i++) {
        group_page(rows, mark);
        clock_now += GUARD_ARM_MS;
        desk.ledger = NULL;
        assert_int_equal(group_post(rows, mark, verdicts[i]), 200);
        desk.ledger = ledger;
        assert_int_equal(nsent, 0);
        assert_true(says(i ? "<h1>0 of 4 denied</h1>" : "<h1>0 of 3 approved</h1>"));
        assert_true(says(i ? "does not answer" : "cannot be had"));
    }
    group_page(rows, mark);
    clock_now += GUARD_ARM_MS;
    assert_int_equal(group_post(rows, mark, verdicts[1]), 0);
    for (size_t i = 0; i < 4; i++) /* it goes while each is asked for */
        ask_gone(&desk, ASK_LEDGER);
    assert_int_equal(x.status, 200);
    assert_true(says("<h1>0 of 4 denied</h1>"));
}

/* --- the history ------------------------------------------------------------ */

static void the_history_is_searched(void **state)
{
    ticket(&(struct row){"hhh00000000000000000000000", "denied", "write", "crm:Bigco", "/hist/1", NULL, NULL, 0, 20});
    ticket(&(struct row){"hhh10000000000000000000000", "done", "write", NULL, "/hist/2", NULL, NULL, 0, 21});
    sql("UPDATE ticket SET decided_by='uid 77', decided_reason='<b>No</b> on Fridays', sandbox='ci-7' WHERE id LIKE "
        "'hhh0%'");
    static const struct {
        const char *query;
        bool first, second;
    } rows[] = {
        {"", true, true},
        {"?q=HIST%2F", true, true},
        {"?q=fridays", true, false},
        {"?q=bigco", true, false},
        {"?q=50%25", false, false},
        {"?state=done", false, true},
        {"?sandbox=CI-", true, false},
        {"?by=77&host=h.ex", true, false},
        {"?by=77&state=done", false, false},
        {"?after=hhh10000000000000000000000", true, false},
        {"?after=hhh00000000000000000000000", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char target[128];
        (void)snprintf(target, sizeof(target), "/history%s", rows[i].query);
        assert_int_equal(get(target), 200);
        if (says("/tickets/hhh0") != rows[i].first || says("/tickets/hhh1") != rows[i].second)
            fail_msg("%s", rows[i].query);
        assert_false(says("<b>No</b>"));
        (void)snprintf(target, sizeof(target), "/history/export%s", rows[i].query);
        assert_int_equal(get(target), 200);
        assert_true(x.download[0] && strcmp(x.type, "application/x-ndjson") == 0);
        if (says("\"id\":\"hhh0") != rows[i].first || says("\"id\":\"hhh1") != rows[i].second)
            fail_msg("export%s", rows[i].query);
    }
    /* What the sandbox's own client said stands as such, and what an operator of that name said does not. */
    static const char label[] = "untrusted: written by whoever asks";
    static const char *const channel[] = {"''", "'page'"};
    for (size_t i = 0; i < 2; i++) {
        char change[160];
        (void)snprintf(change, sizeof(change),
                       "UPDATE ticket SET decided_by='client', decided_channel=%s WHERE id LIKE 'hhh0%%'",
                       channel[i]);
        sql(change);
        assert_int_equal(get("/history?q=fridays"), 200);
        assert_true(says("on Fridays") && says(label) == (i == 0));
        assert_int_equal(get("/tickets/hhh00000000000000000000000"), 200);
        assert_true(says("on Fridays") && says(label) == (i == 0));
    }
    assert_int_equal(get("/history?q=a&q=b"), 400);
    assert_int_equal(get("/history?after=x"), 400);
    assert_int_equal(get("/history?q=%00"), 400);
}

static void a_page_of_the_history_is_bounded(void **state)
{
    char id[ID_TEXT + 1];
    for (unsigned i = 0; i < 60; i++) {
        (void)snprintf(id, sizeof(id), "kkk%02u000000000000000000000", i);
        ticket(&(struct row){id, "expired", "write", NULL, "/many", NULL, NULL, 0, 100 + i});
    }
    assert_int_equal(get("/history?q=%2Fmany"), 200);
    assert_true(says("/tickets/kkk59") && says("/tickets/kkk10") && !says("/tickets/kkk09"));
    assert_true(says("href=\"/history?q=%2Fmany&amp;after=kkk10000000000000000000000\">Older"));
    assert_int_equal(get("/history?q=%2Fmany&after=kkk10000000000000000000000"), 200);
    assert_true(says("/tickets/kkk09") && says("/tickets/kkk00") && !says("Older") && says(">Newest<"));
}

static void gate(const char *ticket, const char *name, const char *state, const char *words)
{
    char *text = sqlite3_mprintf("INSERT INTO gate (ticket,name,state,words,at_ms,of,tries,next_ms) VALUES "
                                 "(%Q,%Q,%Q,%Q,1,zeroblob(32),0,0)",
                                 ticket, name, state, words);
    sql(text);
    sqlite3_free(text);
}

/* The page of a ticket: its body is asked for first. */
static void shown(const char *target)
{
    assert_int_equal(get(target), 0);
    answer_body(SPAN(""));
    assert_int_equal(x.status, 200);
}

#define OVER "cccc0000000000000000000000"
static void what_gates_said_is_told_as_the_ticket_stands(void **state)
{
    ticket(&(struct row){OVER, "denied", "write", NULL, NULL, NULL, NULL, 0, 5});
    gate(OVER, "one", "due", "");
    gate(OVER, "two", "failed", "it crashed");
    gate(REPO, "one", "due", "");
    gate(REPO, "two", "failed", "it crashed");
    shown("/tickets/" OVER);
    assert_true(says("was not asked before this ended") && says("did not answer. Why: "));
    assert_false(says("nobody can approve") || says("you decide") || says("It says"));
    shown("/tickets/" REPO);
    assert_true(says("nobody can approve before it has answered") && says("you decide without it. Why: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_of_what_it_is_about),
        cmocka_unit_test(the_amount_of_a_body_is_the_name_of_what_spends),
        cmocka_unit_test(without_its_name_nothing_grave_is_approved),
        cmocka_unit_test(a_grant_is_no_way_round),
        cmocka_unit_test(what_blocks_the_page_blocks_the_api),
        cmocka_unit_test(a_group_is_decided_each_by_its_own_digest),
        cmocka_unit_test(a_no_to_a_group_needs_no_body),
        cmocka_unit_test(without_a_ledger_a_group_stays),
        cmocka_unit_test(the_history_is_searched),
        cmocka_unit_test(a_page_of_the_history_is_bounded),
        cmocka_unit_test(what_gates_said_is_told_as_the_ticket_stands),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
