/* The rooms beside requests: what they say of a store, and what they say when it was tampered with. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"
#include "tests/kit.h"
#include "tests/unit/policy/policy_kit.h"
#include "web-approval/ask.h"
#include "web-approval/broker/tally.h"
#include "web-approval/rooms/habits.h"
#include "web-approval/rooms/rooms.h"
#include "web-approval/route.h"

#define FIELDS                                                                                                       \
    "Host: localhost:8088\r\nOrigin: http://localhost:8088\r\nSec-Fetch-Site: same-origin\r\nCookie: "               \
    "countersign=%s\r\n"

static struct desk desk;
static struct exchange x;
static char path[] = "/tmp/test_rooms.XXXXXX", db_path[64], cookie[GUARD_COOKIE_TEXT + 1];
static struct dynbuf sent;
static unsigned sent_type, nsent;
static uint64_t sent_id, clock_now = 10000;
static struct kit kit;

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

/* --- its audit --------------------------------------------------------------- */

static struct digest last;

static void record(unsigned seq, const char *json)
{
    struct digest_ctx *d = digest_begin();
    char hex[2 * DIGEST_BYTES + 1];

    digest_add(d, span_of(last.b, DIGEST_BYTES));
    digest_add(d, span_str(json));
    digest_end(d, &last);
    hex_text(span_of(last.b, DIGEST_BYTES), hex);
    char *text = sqlite3_mprintf("INSERT INTO audit VALUES (%u,%u,'start',NULL,NULL,%Q,x'%s')", seq, seq, json, hex);
    sql(text);
    sqlite3_free(text);
}

static int group_setup(void **state)
{
    static const char *const files[] = {"schema.sql",           "schema_2.sql",         "schema_3.sql",
                                        "schema_4.sql",         "askers/schema_9.sql",  "people/schema_10.sql",
                                        "gates/schema_12.sql",  "askers/schema_13.sql", "tell/schema_14.sql",
                                        "egress/schema_15.sql", "people/schema_16.sql", "people/schema_17.sql",
                                        "people/schema_18.sql", "egress/schema_19.sql", "idle/schema_20.sql"};
    static const char yaml[] = "version: 1\nname: shown\nscopes:\n  ours: { labels: { team: a } }\n"
                               "credentials:\n  pay:\n    source: { store: pay }\n"
                               "    inject: { header: Authorization, format: \"Bearer {}\" }\n"
                               "    only: [{ host: api.test, path: \"/v1/**\" }]\nrules:\n"
                               "  - id: look\n    match: { host: api.test, effect: read }\n    decide: allow\n"
                               "  - id: change\n    scope: ours\n"
                               "    match: { host: api.test, effect: [write, delete] }\n"
                               "    decide: hold\n    use: pay\n";
    char token[ID_TEXT + 1], json[80];

    if (!mkdtemp(path) || !kit_load(&kit, yaml, NULL)) {
        print_error("%s\n", kit.problems[0]);
        return -1;
    }
    (void)snprintf(db_path, sizeof(db_path), "%s/l.db", path);
    if (sqlite3_open(db_path, &db) != SQLITE_OK)
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        schema(files[i]);
    for (unsigned i = 1; i <= 130; i++) {
        (void)snprintf(json, sizeof(json), "{\"seq\":%u,\"kind\":\"start\",\"sandbox\":\"<b>sb%u</b>\"}", i, i);
        record(i, json);
    }
    sql("INSERT INTO sandbox(name,session,owner,tenant,kind,generation,token_hash,labels_json,created_ms,changed_ms) "
        "VALUES ('sb','s','<i>kim</i>','t','external',3,NULL,'{\"team\":\"a\"}',1,1)");
    desk.store = desk_store_new(db_path);
    desk.policy = kit.p;
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
    kit_free(&kit);
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

static void answer(uint16_t type, const char *json)
{
    struct dynbuf b;

    dynbuf_init(&b, 1 << 16);
    msg_put_span(&b, span_str(json));
    struct frame f = {.type = type, .id = sent_id, .payload = dynbuf_span(&b)};
    assert_int_equal(sent_type, type);
    assert_true(ask_answer(&desk, ASK_PARENT, &f));
    dynbuf_free(&b);
}

/* The form of a page, sent back: its mark, and these fields behind it. */
static unsigned post(const char *line, const char *more)
{
    static char form[4096];
    struct span out = dynbuf_span(&x.out), mark = span_from(out, span_find(out, SPAN("name=\"mark\" value=\"")) + 19);

    (void)snprintf(form, sizeof(form), "mark=%.*s&%s", (int)span_index(mark, '"'), mark.p, more);
    clock_now += GUARD_ARM_MS;
    return ask(PLACE_PAGE, line, "application/x-www-form-urlencoded", span_str(form));
}

/* --- a request that is pasted ---------------------------------------------------- */

static void a_pasted_request_is_read_as_the_gateway_would(void **state)
{
    static const struct {
        const char *text, *scheme, *host, *path, *query, *body;
        unsigned port;
        size_t fields;
    } rows[] = {
        {"GET https://API.test", "https", "api.test", "/", "", "", 443, 0},
        {"\r\n POST http://api.test:8080/%61?b=%63#d\r\nA: b\r\n\r\nx\r\ny", "http", "api.test", "/a", "b=c",
         "x\r\ny", 8080, 1},
        {"GET https://api.test?q=1", "https", "api.test", "/", "q=1", "", 443, 0},
        {"PUT https://api.test/x\nA: b\nC:d", "https", "api.test", "/x", "", "", 443, 2},
    };
    static const char *const bad[] = {"",
                                      "GET",
                                      "GET /x",
                                      "GET ftp://h/",
                                      "G<T https://h/",
                                      "GET https://u@h/",
                                      "GET https:///x",
                                      "GET https://h/../x",
                                      "GET https://h/%",
                                      "GET https://h/\nno field\n",
                                      "GET https://\xc3\xa4/"};
    struct pasted p;
    struct arena a;

    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_null(pasted_read(span_str(rows[i].text), &a, &p));
        assert_true(span_eq(p.request.scheme, span_str(rows[i].scheme)));
        assert_true(span_eq(p.request.host, span_str(rows[i].host)));
        assert_true(span_eq(p.request.path, span_str(rows[i].path)));
        assert_true(span_eq(p.request.query, span_str(rows[i].query)));
        assert_true(span_eq(p.request.body, span_str(rows[i].body)));
        assert_int_equal(p.request.port, rows[i].port);
        assert_int_equal(p.request.nfields, rows[i].fields);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_non_null(pasted_read(span_str(bad[i]), &a, &p));
    arena_free(&a);
}

static void the_policy_says_what_it_would_do(void **state)
{
    assert_int_equal(get("/policy"), 0);
    answer(M_VERSIONS,
           "{\"versions\":[{\"digest\":\"abc<\",\"name\":\"old\",\"rules\":7,\"in_force_ms\":5,\"current\":true}]}");
    assert_int_equal(x.status, 200);
    assert_true(says("shown") && says("<dt>Rules</dt><dd>2</dd>") && says("abc&lt;") && says("in force"));
    assert_int_equal(post("POST /policy", "sandbox=sb&request=POST+https%3A%2F%2Fapi.test%2Fv1%2Fx%0D%0A%0D%0Ahello"),
                     200);
    assert_true(says("held for a person") && says("<b>change</b>") && says("<dt>Credential</dt><dd>pay</dd>"));
    assert_int_equal(nsent, 0); /* nobody is asked for anything */
    assert_int_equal(get("/policy"), 0);
    answer(M_VERSIONS, "{}");
    assert_int_equal(post("POST /policy", "sandbox=other&request=POST+https%3A%2F%2Fapi.test%2Fv1%2Fx"), 200);
    assert_true(says("denied") && says("fit but for one thing") && says("<b>change</b>") &&
                !says("held for a person"));
    assert_int_equal(get("/policy"), 0);
    answer(M_VERSIONS, "{}");
    assert_int_equal(post("POST /policy", "sandbox=sb&request=%3C%2Ftextarea%3E%3Cscript%3E"), 200);
    assert_true(says("first line is a method") && says("&lt;/textarea&gt;&lt;script&gt;") && !says("<script>"));
    assert_int_equal(
        ask(PLACE_PAGE, "POST /policy", "application/x-www-form-urlencoded", SPAN("mark=1&sandbox=sb&request=x")),
        403);
}

static void credentials_are_shown_without_a_value(void **state)
{
    assert_int_equal(get("/credentials"), 200);
    assert_true(says("pay") && says("not set") && says("https://api.test/v1/**") && says("None. A lease is"));
    msg_put_u16(&desk.secrets, 1);
    msg_put_span(&desk.secrets, SPAN("pay"));
    assert_int_equal(get("/credentials"), 200);
    assert_false(says("not set"));
}

static void sandboxes_are_listed_and_opened(void **state)
{
    assert_int_equal(get("/sandboxes"), 200);
    assert_true(says("href=\"/sandboxes?name=sb\"") && says("&lt;i&gt;kim&lt;/i&gt;") && !says("<i>kim"));
    assert_int_equal(get("/sandboxes?name=sb"), 200);
    assert_true(says("team=a") && says("Nothing that was held"));
    assert_int_equal(get("/sandboxes?name=%3Cb%3E"), 200);
    assert_true(says("There is none of this name now") && says("&lt;b&gt;") && !says("<h1 class=\"name\"><b>"));
}

static void the_audit_says_whether_it_holds(void **state)
{
    assert_int_equal(get("/audit"), 200);
    assert_true(says("unbroken") && says("records 71 to 130") && says("href=\"/audit?before=71\"") && !says("<b>sb"));
    assert_int_equal(get("/audit?before=71"), 200);
    assert_true(says("records 11 to 70") && says(">Newest<"));
    assert_int_equal(get("/audit?before=11"), 200);
    assert_true(says("records 1 to 10") && says("unbroken") && !says(">Older<"));
    assert_int_equal(get("/audit?before=x"), 400);
    sql("UPDATE audit SET json = replace(json, 'sb5<', 'sb6<') WHERE seq = 5");
    assert_int_equal(get("/audit?before=11"), 200);
    assert_true(says("broken</span> at record 5") && !says("unbroken"));
    sql("UPDATE audit SET json = replace(json, 'sb6<', 'sb5<') WHERE seq = 5");
    sql("DELETE FROM audit WHERE seq = 100");
    assert_int_equal(get("/audit"), 200);
    assert_true(says("broken</span> at record 101"));
    /* a signature that nobody made */
    sql("INSERT INTO checkpoint VALUES (8, 1, randomblob(32), randomblob(64))");
    assert_int_equal(get("/audit?before=11"), 200);
    assert_true(says("broken</span> at record 8"));
}

static void health_says_what_runs(void **state)
{
    assert_int_equal(get("/health"), 0);
    answer(M_STATUS, "{\"version\":\"1.2\",\"mode\":\"enforce\",\"roles\":[{\"role\":\"judge\",\"pid\":7,\"ready\":"
                     "true,\"fails\":2},"
                     "{\"role\":\"<k>\",\"pid\":8,\"ready\":false,\"fails\":0}],\"listeners\":[],\"refused\":[]}");
    assert_int_equal(x.status, 200);
    assert_true(says("judge") && says("2 times") && says("starts") && says("&lt;k&gt;") && says("never"));
    assert_int_equal(get("/health"), 0);
    answer(M_STATUS, "[");
    assert_true(says("did not answer") && says("At this moment") && !says("runs turns"));
}

static void health_says_that_nobody_runs_turns_and_what_each_broker_does(void **state)
{
    struct dynbuf b;
    struct frame f = {.type = M_BROKER_WAITS};
    dynbuf_init(&b, 64);
    msg_put_u64(&b, 2);
    msg_put_u64(&b, x.wall_ms > 60000 ? x.wall_ms - 60000 : 0);
    f.payload = dynbuf_span(&b);
    broker_tally_frame(&desk, &f);
    dynbuf_free(&b);
    assert_int_equal(get("/health"), 0);
    answer(M_STATUS, "{\"roles\":[{\"role\":\"broker\",\"does\":\"turn\",\"pid\":7,\"ready\":true,\"fails\":0}]}");
    assert_true(says("no process runs turns") && says("2 turns waiting, the first for") && says("broker: turn"));
    /* A broker that serves nobody has numbers, and no conversations; without one there are neither. */
    assert_true(says("href=\"/models\"") && !says("href=\"/conversations\""));
    broker_tally_free(&desk.tally);
    assert_int_equal(get("/freeze"), 200);
    assert_true(!says("href=\"/models\"") && !says("href=\"/conversations\""));
}

static void writes_are_frozen_by_its_own_form_alone(void **state)
{
    assert_int_equal(get("/freeze"), 200);
    assert_true(says("Freeze all writes"));
    assert_int_equal(post("POST /thaw", "reason=x"), 403); /* a mark is for one thing */
    assert_int_equal(get("/freeze"), 200);
    assert_int_equal(post("POST /freeze", "reason=an+incident"), 0);
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(sent_type, M_FREEZE);
    assert_true(msg_get_bool(&m) && span_eq(msg_get_span(&m, 99), SPAN("uid 0")) &&
                span_eq(msg_get_span(&m, 99), SPAN("an incident")));
    sql("INSERT INTO meta(key,value) VALUES('frozen','{\"by\":\"uid 0\",\"reason\":\"<u>\",\"since_ms\":5}')");
    assert_int_equal(get("/freeze"), 200);
    assert_true(says("Let writes leave again") && says("&lt;u&gt;") && says("action=\"/thaw\""));
    /* a person who decides is not whose machine it is */
    sql("INSERT INTO operator VALUES ('alice', NULL, '', '', 1, 1, 1)");
    struct session *s = &desk.guard.session[0];
    const struct session was = *s;
    (void)snprintf(s->operator, sizeof(s->operator), "alice");
    s->generation = 1;
    assert_int_equal(get("/freeze"), 200);
    assert_true(says("lifted by an operator of the machine") && !says("Let writes leave again"));
    assert_int_equal(post("POST /thaw", "reason=x"), 403);
    assert_true(says("Not yours to lift") && nsent == 0);
    *s = was;
    sql("DELETE FROM meta WHERE key='frozen'");
}

/* --- what waits ------------------------------------------------------------------- */

static void waits(const char *sandbox, unsigned i)
{
    char *text = sqlite3_mprintf(
        "INSERT INTO ticket (id,state,sandbox,session,tenant,method,scheme,host,port,path,fields_json,head,body_size,"
        "body_sha256,digest,join_key,op,effect,resource,credential,code,rule_id,rule_file,rule_line,policy,summary,"
        "facts_json,agent_reason,approve_by,dialect,reason_required,created_ms,expires_ms,expires_boot_ms) VALUES "
        "('%s%022u','pending','sb-%s','s','t','POST','https','h.example',443,'/p/%u','[]',x'',0,zeroblob(32),"
        "randomblob(32),randomblob(32),'op','write','','','rule','r','p.yaml',1,zeroblob(32),'Number %u of "
        "%s','[]','','',"
        "'problem',0,%u,9000000,9)",
        sandbox, i, sandbox, i, i, sandbox, 1000 + i);
    sql(text);
    sqlite3_free(text);
}

/* One sandbox that asks for much hides nothing of another, and it is said. */
static void a_flood_hides_nobody(void **state)
{
    for (unsigned i = 0; i < 3 * PAGE_WAITING; i++)
        waits("mmmm", i);
    waits("aaaa", 1);
    waits("zzzz", 1);
    assert_int_equal(get("/"), 200);
    assert_true(says("Number 1 of aaaa") && says("Number 1 of zzzz"));
    assert_true(says("600 waiting</small>") && says("The first 40 of 600 stand here") && says("1 waiting</small>"));
    sql("DELETE FROM ticket");
    for (unsigned i = 0; i < 16 * 60; i++) { /* many that ask for much take as much of the page each */
        char name[8];
        (void)snprintf(name, sizeof(name), "box%02u", i / 60);
        waits(name, i);
    }
    waits("zzzz", 1);
    assert_int_equal(get("/"), 200);
    assert_true(says("Number 0 of box00") && says("Number 900 of box15") && says("Number 1 of zzzz"));
    assert_true(says("The first 12 of 60 stand here") && says("193 of 961 are shown"));
    sql("DELETE FROM ticket");
    assert_int_equal(get("/"), 200);
    assert_true(says("Nothing waits.") && !says("A flood"));
}

#include "tests/unit/desk/deciding/lately.h"

/* --- how people decide ------------------------------------------------------------- */

static void seen(struct habits *h, struct arena *a, const char *where, const char *state, const char *channel,
                 uint64_t ms)
{
    const struct ticket t = {.state = span_str(state),
                             .method = SPAN("POST"),
                             .scheme = SPAN("https"),
                             .port = 443,
                             .host = SPAN("api.test"),
                             .path = span_str(where),
                             .op = SPAN("op"),
                             .effect = SPAN("write"),
                             .credential = SPAN("pay"),
                             .code = SPAN("rule"),
                             .rule_id = SPAN("change"),
                             .rule_file = SPAN("p.yaml"),
                             .rule_line = 9,
                             .decided_channel = span_str(channel),
                             .created_ms = 1000,
                             .decided_ms = 1000 + ms};
    habits_add(h, &t, a);
}

/* The change that is proposed, made: what was held is let through, and nothing else is. */
static void a_rule_is_proposed_that_says_the_same(void **state)
{
    static struct habits h;
    char yaml[4096], path_of[64];
    struct dynbuf rule;
    struct kit k;
    struct arena a;

    arena_init(&a, 1 << 20);
    dynbuf_init(&rule, 1 << 16);
    h = (struct habits){.n = 0};
    for (unsigned i = 0; i < HABIT_LEAST; i++) {
        assert_false(h.n && habit_rule(&h.v[0], &rule));
        (void)snprintf(path_of, sizeof(path_of), "/v1/x/%u/y", i);
        seen(&h, &a, (const char *)arena_copy(&a, span_of((const uint8_t *)path_of, strlen(path_of) + 1)).p, "done",
             "page", i < 5 ? 100 : 9000);
    }
    seen(&h, &a, "/v1/x/1/y", "done", "grant", 5); /* nobody looked at that one */
    seen(&h, &a, "/v1/x/1/y", "expired", "", 5);
    habits_end(&h);
    assert_int_equal(h.n, 1);
    assert_int_equal(h.v[0].approved, HABIT_LEAST);
    assert_int_equal(h.v[0].fast, 5);
    assert_int_equal(h.v[0].median_ms, 9000);
    assert_int_equal(habits_median(&h), 9000);
    assert_true(habit_rule(&h.v[0], &rule));
    struct span text = dynbuf_span(&rule);
    size_t at = span_find(text, SPAN("except:")), end = span_find(text, SPAN("\n\n  # and")),
           next = span_find(text, SPAN("  - id: "));
    assert_true(at < text.n && end < text.n && next < text.n);
    (void)snprintf(
        yaml, sizeof(yaml),
        "version: 1\nname: proposed\ncredentials:\n  pay:\n    source: { store: pay }\n"
        "    inject: { header: Authorization, format: \"Bearer {}\" }\n    only: [{ host: api.test }]\nrules:\n"
        "  - id: change\n    match: { host: api.test, effect: write }\n    decide: hold\n    use: pay\n    "
        "%.*s\n%.*s",
        (int)(end - at), text.p + at, (int)(text.n - next), text.p + next);
    if (!kit_load(&k, yaml, NULL))
        fail_msg("%s\n%s", k.problems[0], yaml);
    kit_expect(kit_judge(&k, "sb", "POST", "https://api.test/v1/x/77/y", NULL, "x", 1, true), VERDICT_ALLOW, "rule",
               "change-as-always");
    kit_expect(kit_judge(&k, "sb", "POST", "https://api.test/v1/x/77/z", NULL, "x", 1, true), VERDICT_HOLD, "rule",
               "change");
    kit_expect(kit_judge(&k, "sb", "PUT", "https://api.test/v1/x/77/y", NULL, "x", 1, true), VERDICT_HOLD, "rule",
               "change");
    kit_free(&k);
    seen(&h, &a, "/v1/x/5/y", "denied", "page", 5);
    assert_false(habit_rule(&h.v[0], &rule));
    dynbuf_free(&rule);
    arena_free(&a);
}

static void no_rule_is_proposed_of_what_is_grave_or_no_pattern(void **state)
{
    static const struct {
        const char *effect, *path, *code, *rule;
        bool wanted;
    } rows[] = {{"write", "/v1/a", "rule", "r", true},       {"delete", "/v1/a", "rule", "r", false},
                {"spend", "/v1/a", "rule", "r", false},      {"admin", "/v1/a", "rule", "r", false},
                {"write", "/v1/*", "rule", "r", false},      {"write", "/v1/\"x", "rule", "r", false},
                {"write", "/v1/{a}", "rule", "r", false},    {"write", "/v1/a", "learning", "r", false},
                {"write", "/v1/a", "rule", "r: [x]", false}, {"write", "/v1/a", "rule", "", false}};
    struct dynbuf rule;

    dynbuf_init(&rule, 1 << 16);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct habit h = {.t = {.effect = span_str(rows[i].effect),
                                      .path = span_str(rows[i].path),
                                      .code = span_str(rows[i].code),
                                      .rule_id = span_str(rows[i].rule),
                                      .method = SPAN("POST"),
                                      .host = SPAN("h.test"),
                                      .scheme = SPAN("https"),
                                      .port = 443},
                                .path = span_str(rows[i].path),
                                .approved = HABIT_LEAST};
        assert_true(habit_rule(&h, &rule) == rows[i].wanted);
    }
    dynbuf_free(&rule);
    assert_int_equal(get("/decisions"), 200);
    assert_true(says("Nobody has decided anything yet"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pasted_request_is_read_as_the_gateway_would),
        cmocka_unit_test(the_policy_says_what_it_would_do),
        cmocka_unit_test(credentials_are_shown_without_a_value),
        cmocka_unit_test(sandboxes_are_listed_and_opened),
        cmocka_unit_test(the_audit_says_whether_it_holds),
        cmocka_unit_test(health_says_what_runs),
        cmocka_unit_test(health_says_that_nobody_runs_turns_and_what_each_broker_does),
        cmocka_unit_test(writes_are_frozen_by_its_own_form_alone),
        cmocka_unit_test(a_flood_hides_nobody),
        cmocka_unit_test(what_was_decided_lately_is_of_any_state),
        cmocka_unit_test(a_rule_is_proposed_that_says_the_same),
        cmocka_unit_test(no_rule_is_proposed_of_what_is_grave_or_no_pattern),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
