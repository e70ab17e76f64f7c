/* Conversations on the page: whatever a broker says, and whatever was said there, is text; who may, and with which
 * form. The broker here is ours. */
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
#include "sandbox-shim/warden/wire_box.h"
#include "web-approval/ask.h"
#include "web-approval/route.h"
#include "web-approval/streams/transfer.h"
#include "web-approval/talks/talks.h"

#define ID   "abcdefghjkmnpqrstvwxyz0120"
#define TURN "zyxwvtsrqpnmkjhgfedcba0120"
#define HOSTILE                                                                                                      \
    "</pre></textarea>\\\"'><script>alert(1)</script><img src=x onerror=alert(2)>\\u202e\\u001b[7m\\u2028<!--"

static struct desk desk;
static struct exchange x;
static char path[] = "/tmp/test_talks.XXXXXX", db_path[64], cookie[GUARD_COOKIE_TEXT + 1];
static uint64_t clock_now = 10000;
static sqlite3 *db;
static struct dynbuf sent;
static unsigned sent_type;

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    dynbuf_reset(&sent);
    sent_type = type;
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

static void answered(struct exchange *done)
{
}

/* --- the broker --------------------------------------------------------------------------------- */

static talks_fn *waits;
static char asked[512], json[4096], once[64];
static unsigned nasked;

static bool asks(struct exchange *of, const struct talks_ask *q, talks_fn *fn, const char **why)
{
    nasked++;
    waits = fn;
    (void)snprintf(asked, sizeof(asked), "%s %.*s", q->method, SPAN_FMT(q->target));
    (void)snprintf(json, sizeof(json), "%.*s", SPAN_FMT(q->json));
    (void)snprintf(once, sizeof(once), "%.*s", SPAN_FMT(q->once));
    return true;
}

static void says(unsigned status, const char *body)
{
    talks_fn *fn = waits;
    assert_non_null(fn);
    waits = NULL;
    fn(&x, status, arena_copy(&x.arena, span_str(body)));
}

/* --- the page ------------------------------------------------------------------------------------ */

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

static int group_setup(void **state)
{
    static const char *const files[] = {"schema.sql",           "schema_2.sql",         "schema_3.sql",
                                        "schema_4.sql",         "askers/schema_9.sql",  "people/schema_10.sql",
                                        "gates/schema_12.sql",  "askers/schema_13.sql", "tell/schema_14.sql",
                                        "egress/schema_15.sql", "people/schema_16.sql", "people/schema_17.sql",
                                        "people/schema_18.sql", "egress/schema_19.sql", "idle/schema_20.sql"};
    char token[ID_TEXT + 1];

    if (!mkdtemp(path))
        return -1;
    (void)snprintf(db_path, sizeof(db_path), "%s/l.db", path);
    if (sqlite3_open(db_path, &db) != SQLITE_OK)
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        schema(files[i]);
    desk.store = desk_store_new(db_path);
    desk.warden = desk.ledger = desk.parent = (struct chan *)&desk;
    desk.talks = (struct talks *)&desk;
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

static int setup(void **state)
{
    talks_asks = asks;
    nasked = 0;
    waits = NULL;
    asked[0] = '\0';
    return 0;
}

/* One request; its status, 0 when the broker was asked. */
static unsigned ask(const char *line, const char *with, struct span body)
{
    struct http_err e;
    size_t seen = 0, used;

    end();
    x = (struct exchange){.desk = &desk, .place = PLACE_PAGE, .file = -1, .now_ms = clock_now, .wall_ms = 60000};
    dynbuf_init(&x.raw, 1 << 20);
    dynbuf_init(&x.out, DESK_ANSWER_MAX);
    arena_init(&x.arena, DESK_ARENA_MAX);
    (void)dynbuf_addf(&x.raw,
                      "%s HTTP/1.1\r\nHost: localhost:8088\r\nOrigin: http://localhost:8088\r\nSec-Fetch-Site: "
                      "same-origin\r\nCookie: countersign=%s\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                      "Content-Length: %zu\r\n\r\n",
                      line, with, body.n);
    (void)dynbuf_add(&x.raw, body);
    assert_int_equal(http_parse_request(dynbuf_span(&x.raw), HTTP_ORIGIN_SERVER, &seen, &x.head, &used, &e), HTTP_OK);
    x.body = span_from(dynbuf_span(&x.raw), used);
    route_run(&x);
    return x.status;
}

static unsigned get(const char *target)
{
    char line[512];
    (void)snprintf(line, sizeof(line), "GET %s", target);
    return ask(line, cookie, SPAN_NONE);
}

static bool shows(const char *needle)
{
    return span_find(dynbuf_span(&x.out), span_str(needle)) < x.out.n;
}

/* E14: nothing of what somebody else wrote is markup, or hides. */
static void is_text(void)
{
    static const char *const never[] = {"<script>alert", "<img", "</pre></textarea>", "\xe2\x80\xae", "\x1b",
                                        "\xe2\x80\xa8",  "<!--"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (shows(never[i]))
            fail_msg("%zu in: %.*s", i, SPAN_FMT(dynbuf_span(&x.out)));
}

static const char *talk(void)
{
    return "{\"conversation_id\":\"" ID "\",\"phase\":\"" HOSTILE "\",\"created_ms\":1,\"changed_ms\":2,\"turns\":2,"
           "\"messages\":4,\"busy\":true,\"private\":[\"" HOSTILE "\",\"two\",7],\"words\":\"" HOSTILE
           "\",\"older\":3,\"said\":["
           "{\"turn_id\":\"" TURN "\",\"role\":\"user\",\"by\":\"" HOSTILE "\",\"stopped\":\"\",\"blocks\":["
           "{\"type\":\"text\",\"text\":\"" HOSTILE "\",\"bytes\":90000}]},"
           "{\"turn_id\":\"" TURN "\",\"role\":\"assistant\",\"by\":\"\",\"stopped\":\"" HOSTILE "\",\"blocks\":["
           "{\"type\":\"text\",\"text\":\"" HOSTILE "\"},"
           "{\"type\":\"call\",\"id\":\"czyxwvtsrqpnm-1-0\",\"name\":\"" HOSTILE "\",\"arguments\":\"" HOSTILE "\"},"
           "{\"type\":\"call\",\"id\":\"" HOSTILE "\",\"name\":\"read_file\",\"arguments\":\"{}\"},"
           "{\"type\":\"" HOSTILE "\",\"text\":\"" HOSTILE "\"}]},"
           "{\"turn_id\":\"" TURN "\",\"role\":\"results\",\"by\":\"\",\"stopped\":\"\",\"blocks\":["
           "{\"type\":\"result\",\"id\":\"czyxwvtsrqpnm-1-0\",\"text\":\"" HOSTILE "\",\"failed\":false}]},"
           "{\"role\":\"" HOSTILE "\",\"blocks\":[{\"type\":\"text\",\"text\":\"told\"}]},7,null,[[]]],"
           "\"queued\":[{\"role\":\"user\",\"by\":\"uid 0\",\"blocks\":[{\"type\":\"text\",\"text\":\"" HOSTILE
           "\"}]}],"
           "\"open\":[{\"turn_id\":\"" TURN
           "\",\"state\":\"running\",\"end\":\"\",\"words\":\"\",\"why\":\"\",\"steps\":1,"
           "\"tokens\":120,\"cost_micro\":1500000},{\"turn_id\":\"" HOSTILE "\",\"state\":\"" HOSTILE
           "\",\"end\":\"" HOSTILE "\","
           "\"words\":\"" HOSTILE "\",\"why\":\"" HOSTILE "\",\"steps\":-1,\"tokens\":\"x\"}],"
           "\"calls\":[{\"step\":1,\"call\":0,\"live\":false,\"turn\":\"" TURN
           "\",\"tool\":\"a\",\"class\":\"reconcilable\"},"
           "{\"step\":1,\"call\":0,\"live\":false,\"turn\":\"" TURN "\",\"tool\":\"a\",\"end\":\"unknown\"},"
           "{\"step\":2,\"call\":0,\"live\":true,\"turn\":\"" TURN "\",\"tool\":\"" HOSTILE "\",\"class\":\"" HOSTILE
           "\","
           "\"arguments\":\"" HOSTILE "\"},"
           "{\"step\":2,\"call\":0,\"live\":true,\"turn\":\"" TURN "\",\"tool\":\"b\",\"end\":\"" HOSTILE
           "\",\"result\":\"" HOSTILE "\"}],"
           "\"begun_by\":\"uid 0\",\"last_event_id\":\"" HOSTILE "\",\"live\":\"" HOSTILE "\",\"waits\":\"" HOSTILE
           "\"}";
}

static void whatever_is_said_is_text(void **state)
{
    assert_int_equal(get("/conversations/" ID), 0);
    assert_string_equal(asked, "GET /conversations/" ID);
    says(200, talk());
    assert_int_equal(x.status, 200);
    is_text();
    assert_true(shows("&lt;script&gt;alert(1)") && shows("3 older messages are not shown"));
    assert_true(shows("no model is asked but ") && shows(", two, "));
    assert_true(shows(">reconcilable<") && shows("nobody knows what came of it")); /* of the log, by the call's id */
    assert_true(shows("of 87.") && shows("cost 1.500000") && shows("data-busy=\"1\""));
    assert_true(shows("action=\"/conversations/" ID "/cancel\"") && shows("It has no sandbox at the moment"));
    assert_int_equal(get("/conversations"), 0);
    says(200, "{\"conversations\":[{\"conversation_id\":\"" ID "\",\"phase\":\"" HOSTILE "\",\"words\":\"" HOSTILE
              "\",\"busy\":true},"
              "{\"conversation_id\":\"" HOSTILE "\",\"words\":\"no id\"},8],\"more\":true}");
    assert_int_equal(x.status, 200);
    is_text();
    assert_true(shows("href=\"/conversations/" ID "\"") && !shows("no id") && shows("These are the newest"));
}

static void a_broker_that_says_nothing_or_nonsense_has_its_words(void **state)
{
    static const struct {
        unsigned status, becomes;
        const char *body, *words;
    } rows[] = {{0, 503, "", "did not answer in time"},       {503, 503, "{\"detail\":\"" HOSTILE "\"}", "alert(1)"},
                {404, 404, "{}", "There is no conversation"}, {200, 503, "[]", "cannot be read"},
                {200, 503, "{\"busy\":", "cannot be read"},   {418, 400, "", "the broker refused it"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(get("/conversations/" ID), 0);
        says(rows[i].status, rows[i].body);
        assert_int_equal(x.status, rows[i].becomes);
        is_text();
        if (!shows(rows[i].words) && i != 5)
            fail_msg("%zu: %.*s", i, SPAN_FMT(dynbuf_span(&x.out)));
    }
    assert_int_equal(get("/conversations"), 0);
    says(200, "{\"conversations\":{}}");
    assert_int_equal(x.status, 503);
    talks_asks = NULL;
    assert_int_equal(get("/conversations/" ID), 503);
    assert_true(shows("There is no broker"));
}

static void what_waits_and_what_is_in_its_workspace_stand_in_it(void **state)
{
    struct dynbuf b;
    sql("INSERT INTO sandbox(name,session,owner,tenant,kind,generation,token_hash,labels_json,created_ms,changed_ms) "
        "VALUES ('c-" ID "','c-" ID "','uid 0','default','started',1,NULL,'{}',1,1)");
    assert_int_equal(get("/conversations/" ID), 0);
    says(200, talk());
    assert_int_equal(x.status, 0);
    assert_int_equal(sent_type, M_SB_FILES);
    assert_non_null(x.transfer);
    dynbuf_init(&b, 4096);
    const char *const names[] = {"<img src=x onerror=alert(2)>\x1b", "plain.txt"};
    for (size_t i = 0; i < 2; i++) {
        msg_put_u8(&b, 'f');
        msg_put_u16(&b, 0644);
        msg_put_u64(&b, 12);
        msg_put_u64(&b, 0);
        msg_put_span(&b, span_str(names[i]));
        msg_put_span(&b, SPAN_NONE);
    }
    msg_put_u8(&b, 0);
    msg_put_u8(&b, 1);
    x.transfer->done(&x, &(struct transfer_end){.how = SB_EXITED, .said = dynbuf_span(&b)});
    assert_int_equal(x.status, 200);
    is_text();
    assert_true(shows("/file?path=plain.txt\"") && shows("And more than these"));
    /* cut short, or not done: words, and no page that is half */
    for (size_t n = 0; n < b.n; n++) {
        assert_int_equal(get("/conversations/" ID), 0);
        says(200, talk());
        x.transfer->done(&x, &(struct transfer_end){.how = SB_EXITED, .said = span_first(dynbuf_span(&b), n)});
        assert_true(x.status == 200 && shows("What the sandbox said of its files cannot be read") &&
                    shows("</html>"));
    }
    dynbuf_free(&b);
    assert_int_equal(get("/conversations/" ID), 0);
    says(200, talk());
    x.transfer->done(&x, &(struct transfer_end){.how = SB_TIMED_OUT});
    assert_true(x.status == 200 && shows("They cannot be listed at the moment"));
    assert_int_equal(get("/conversations/" ID "?part=1"),
                     0); /* asked each time something happens: not of the sandbox */
    says(200, talk());
    assert_int_equal(x.status, 200);
    /* one of another tenant's is none of this conversation's */
    sql("UPDATE sandbox SET tenant='acme'");
    assert_int_equal(get("/conversations/" ID), 0);
    says(200, talk());
    assert_true(x.status == 200 && shows("It has no sandbox at the moment"));
    sql("DELETE FROM sandbox");
}

/* Of a sandbox that is this conversation's, of a conversation that may be seen. */
static void a_file_is_shown_of_its_own_sandbox_alone(void **state)
{
    sql("INSERT INTO sandbox(name,session,owner,tenant,kind,generation,token_hash,labels_json,created_ms,changed_ms) "
        "VALUES ('c-" ID "','c-" ID "','uid 0','acme','started',1,NULL,'{}',1,1)");
    assert_int_equal(get("/conversations/" ID "/file?path=plain.txt"), 0);
    assert_string_equal(asked, "GET /conversations/" ID "/turns");
    says(200, "{}");
    assert_int_equal(x.status, 404);
    sql("UPDATE sandbox SET tenant='default'");
    assert_int_equal(get("/conversations/" ID "/file?path=plain.txt"), 0);
    says(404, "{}"); /* nor is a file of one that is not there, whatever runs */
    assert_int_equal(x.status, 404);
    assert_int_equal(get("/conversations/" ID "/file?path=plain.txt"), 0);
    says(200, "{}");
    assert_non_null(x.transfer);
    x.transfer->done(&x,
                     &(struct transfer_end){.how = SB_EXITED, .said = SPAN("</pre><script>alert(1)</script>\x1b")});
    assert_int_equal(x.status, 200);
    is_text();
    sql("DELETE FROM sandbox");
}

/* --- forms ----------------------------------------------------------------------------------------- */

static char form[512];

static void field(const char *name, char *to, size_t room)
{
    char tag[64];
    struct span out = dynbuf_span(&x.out);
    (void)snprintf(tag, sizeof(tag), "name=\"%s\" value=\"", name);
    struct span v = span_from(out, span_find(out, span_str(tag)) + strlen(tag));
    (void)snprintf(to, room, "%.*s", (int)span_index(v, '"'), (const char *)v.p);
}

static void composer(void)
{
    char key[64], mark[128];
    assert_int_equal(get("/conversations"), 0);
    says(200, "{\"conversations\":[]}");
    field("key", key, sizeof(key));
    field("mark", mark, sizeof(mark));
    (void)snprintf(form, sizeof(form), "key=%s&mark=%s", key, mark);
    clock_now += GUARD_ARM_MS;
}

static unsigned post(const char *target, const char *more)
{
    char line[128], body[1024];
    (void)snprintf(line, sizeof(line), "POST %s", target);
    (void)snprintf(body, sizeof(body), "%s&%s", form, more);
    nasked = 0;
    return ask(line, cookie, span_str(body));
}

static void what_is_said_is_said_once_by_a_form_of_this_page(void **state)
{
    char key[64];
    composer();
    assert_int_equal(post("/conversations", "message=a%0D%0Ab%22%7D&steps=7"), 0);
    assert_string_equal(asked, "POST /chat");
    assert_string_equal(json, "{\"message\":\"a\\nb\\\"}\",\"budget\":{\"steps\":7}}");
    (void)snprintf(key, sizeof(key), "%s", once);
    assert_non_null(strstr(form, key)); /* the form's own: twice is once */
    says(202, "{\"conversation_id\":\"" ID "\",\"turn_id\":\"" TURN "\"}");
    assert_int_equal(x.status, 303);
    assert_int_equal(sent_type, M_NOTE); /* who said it, where, and the digest of it: not the text */
    assert_true(span_find(dynbuf_span(&sent), SPAN("conversation-said")) < sent.n &&
                span_find(dynbuf_span(&sent), SPAN("\"operator\":\"uid 0\",\"conversation\":\"" ID
                                                   "\",\"turn\":\"" TURN "\",\"text_sha256\":\"")) < sent.n);
    assert_string_equal(x.location, "/conversations/" ID);
    assert_int_equal(post("/conversations", "message=x"), 0);
    assert_string_equal(once, key);
    says(202, "{\"conversation_id\":\"//evil.test\"}"); /* it leads nowhere else */
    assert_int_equal(x.status, 503);
    for (unsigned status = 0; status <= 503;
         status += 503) { /* not taken: it is all there again, with the same key */
        assert_int_equal(post("/conversations", "message=a%3C%2Ftextarea%3E%3Cscript%3Ealert(1)&steps=7"), 0);
        says(status, "{\"detail\":\"" HOSTILE "\"}");
        assert_int_equal(x.status, 503);
        is_text();
        assert_true(shows("a&lt;/textarea&gt;&lt;script&gt;alert(1)</textarea>") && shows(key) &&
                    shows("value=\"7\""));
    }
    assert_int_equal(post("/conversations", "message=x&private=+a%2Cb%22%3E%3Cscript%3Ealert(1)%2C+c"), 0);
    assert_string_equal(
        json, "{\"message\":\"x\",\"budget\":{\"steps\":100},\"private\":[\"a\",\"b\\\"><script>alert(1)\",\"c\"]}");
    says(400, "{\"detail\":\"`private` has " HOSTILE "\"}"); /* it is not begun without, and what was said is there */
    is_text();
    assert_true(x.status == 400 && shows("value=\"a,b&quot;&gt;&lt;script&gt;alert(1), c\""));
    static const char *const bad[] = {
        "message=",          "message=x&private=%ff", "message=%20%0D%0A",  "message=%ff",         "message=a%00b",
        "message=x&steps=0", "message=x&steps=1001",  "message=x&steps=-1", "message=x&message=y", "message=%"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (post("/conversations", bad[i]) == 0 || nasked > 0)
            fail_msg("taken: %s", bad[i]);
    }
    /* a mark of another conversation, of another purpose, of another key, or none */
    assert_int_equal(post("/conversations/" ID "/say", "message=x"), 403);
    assert_int_equal(post("/conversations/" ID "/cancel", "turn=" TURN), 403);
    memset(form + 4, 'a', ID_TEXT);
    assert_int_equal(post("/conversations", "message=x"), 403);
    form[0] = '\0';
    assert_int_equal(post("/conversations", "message=x"), 403);
    assert_int_equal(nasked, 0);
}

static void a_turn_is_cancelled_by_its_own_form(void **state)
{
    char turn[64], mark[128];
    assert_int_equal(get("/conversations/" ID), 0);
    says(200, talk());
    field("turn", turn, sizeof(turn));
    struct span out = dynbuf_span(&x.out), rest = span_from(out, span_find(out, SPAN("name=\"turn\"")));
    struct span v = span_from(rest, span_find(rest, SPAN("name=\"mark\" value=\"")) + 19);
    (void)snprintf(mark, sizeof(mark), "%.*s", (int)span_index(v, '"'), (const char *)v.p);
    (void)snprintf(form, sizeof(form), "turn=%s&mark=%s", turn, mark);
    clock_now += GUARD_ARM_MS;
    assert_int_equal(post("/conversations/" ID "/cancel", ""), 0);
    assert_string_equal(asked, "POST /turns/" TURN "/cancel");
    sent_type = 0;
    says(202, "{}");
    assert_int_equal(x.status, 303);
    assert_true(sent_type == M_NOTE && span_find(dynbuf_span(&sent), SPAN("conversation-cancelled")) < sent.n);
    assert_string_equal(x.location, "/conversations/" ID);
    assert_int_equal(post("/conversations/" TURN "/cancel", ""), 403);
}

static void who_did_not_begin_it_reads(void **state)
{
    static const struct {
        const char *by;
        bool speaks;
        const char *words;
    } rows[] = {{"", false, "Begun by a key"},
                {"uid 00", false, "Begun by uid 00"},
                {"uid 0", true, "id=\"composer\""},
                {HOSTILE, false, "alert(1)"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[512];
        (void)snprintf(body, sizeof(body), "{\"begun_by\":\"%s\",\"open\":[{\"turn_id\":\"" TURN "\",\"end\":\"\"}]}",
                       rows[i].by);
        assert_int_equal(get("/conversations/" ID), 0);
        says(200, body);
        assert_int_equal(x.status, 200);
        is_text();
        assert_int_equal(shows("id=\"composer\""), rows[i].speaks);
        assert_int_equal(shows("/cancel\""), rows[i].speaks);
        assert_true(shows(rows[i].words));
    }
}

static void nobody_else_is_let_in(void **state)
{
    static const char *const lines[] = {"GET /conversations",
                                        "GET /conversations/" ID,
                                        "GET /conversations/" ID "/news?after=1.1",
                                        "GET /conversations/" ID "/file?path=a",
                                        "POST /conversations",
                                        "POST /conversations/" ID "/say",
                                        "POST /conversations/" ID "/cancel"};
    static const char *const ids[] = {"/conversations/x",
                                      "/conversations/..",
                                      "/conversations/" ID "0",
                                      "/conversations/" ID "/news?after=1",
                                      "/conversations/" ID "/news?after=1.1%20x",
                                      "/conversations/" ID "/news?after=0.1",
                                      "/conversations/" ID "/file",
                                      "/conversations/" ID "/file?path=a%00b"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_int_equal(ask(lines[i], "", SPAN_NONE), 403);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        assert_int_not_equal(get(ids[i]), 0);
    assert_int_equal(nasked, 0);
    assert_int_equal(get("/conversations/" ID "/news?after=1.17"), 0);
    assert_string_equal(asked, "GET /stream/" ID "?after=1.17");
    says(200, "");
    assert_int_equal(x.status, 204);
    static const unsigned rows[][2] = {{204, 202}, {0, 503}, {503, 503}}; /* 202: there is nothing to load */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(get("/conversations/" ID "/news?after=1.17"), 0);
        says(rows[i][0], "");
        assert_int_equal(x.status, rows[i][1]);
    }
}

/* Who is signed in is not for that reason somebody who has conversations: those whom countersign.yaml names are, and
 * who runs the gateway. */
static unsigned asks_as(const char *who, const char *line)
{
    char token[ID_TEXT + 1], theirs[GUARD_COOKIE_TEXT + 1];
    assert_int_equal(guard_link_new(&desk.guard, who, clock_now, token), 0);
    assert_non_null(guard_sign_in(&desk.guard, span_str(token), clock_now, theirs));
    return ask(line, theirs, SPAN_NONE);
}

static void only_those_who_are_named_have_conversations(void **state)
{
    static const char *const lines[] = {"GET /conversations",
                                        "GET /conversations/" ID,
                                        "GET /conversations/" ID "/news?after=1.1",
                                        "POST /conversations",
                                        "GET /conversations/" ID "/file?path=a",
                                        "POST /conversations/" ID "/say",
                                        "POST /conversations/" ID "/cancel"};
    static const struct {
        const char *named, *who;
        bool may;
    } rows[] = {{"", "uid 0", true},           {"", "uid 7", true},
                {"", "uid 70", false},         {"", "alice", false},
                {"alice\n", "alice", true},    {"leads\n", "alice", true},
                {"alice\n", "bob", false},     {"alic\nlead\n", "alice", false},
                {"uid 70\n", "uid 70", false}, {"", "carol", true}};
    sql("INSERT INTO operator VALUES ('alice',NULL,'devs leads','',0,1,1),('bob',NULL,'','',0,1,1),"
        "('carol','uid 7','','',0,1,1)");
    desk.owner_uid = 7;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(desk.broker_people, sizeof(desk.broker_people), "%s", rows[i].named);
        for (size_t n = 0; n < sizeof lines / sizeof lines[0]; n++) {
            unsigned before = nasked, status = asks_as(rows[i].who, lines[n]);
            if (!rows[i].may && (status != 403 || nasked != before))
                fail_msg("row %zu: %s: %u", i, lines[n], status);
            if (rows[i].may && n < 2 && nasked != before + 1)
                fail_msg("row %zu: %s: %u", i, lines[n], status);
        }
        assert_int_equal(asks_as(rows[i].who, "GET /"), 200);
        assert_int_equal(shows("href=\"/conversations\""), rows[i].may);
        assert_int_equal(shows("href=\"/models\""), rows[i].may);
        assert_int_equal(asks_as(rows[i].who, "GET /models"), rows[i].may ? 200 : 403);
    }
    desk.owner_uid = 0;
    desk.broker_people[0] = '\0';
    sql("DELETE FROM operator");
}

#define T(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(whatever_is_said_is_text),
        T(a_broker_that_says_nothing_or_nonsense_has_its_words),
        T(what_waits_and_what_is_in_its_workspace_stand_in_it),
        T(a_file_is_shown_of_its_own_sandbox_alone),
        T(what_is_said_is_said_once_by_a_form_of_this_page),
        T(a_turn_is_cancelled_by_its_own_form),
        T(who_did_not_begin_it_reads),
        T(nobody_else_is_let_in), /* the last signs in often, which ends older sessions */
        T(only_those_who_are_named_have_conversations)};
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
