#include "tests/unit/desk/deciding/desk_world.h"

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
#include "web-approval/route.h"

#define FIELDS                                                                                                       \
    "Host: localhost:8088\r\nOrigin: http://localhost:8088\r\nSec-Fetch-Site: same-origin\r\nCookie: "               \
    "countersign=%s\r\n"

struct desk desk;
struct exchange x;
char cookie[GUARD_COOKIE_TEXT + 1];
struct dynbuf sent;
unsigned sent_type, nsent;
uint64_t clock_now = 10000;
static char path[] = "/tmp/desk_world.XXXXXX", db_path[64];
static uint64_t sent_id;

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

void sql(const char *text)
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

void ticket(const struct row *r)
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

int world_setup(void **state)
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

int world_teardown(void **state)
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
unsigned ask(enum desk_place place, const char *line, const char *type, struct span body)
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

unsigned control(const char *line, const char *body)
{
    return ask(PLACE_CONTROL, line, "application/json", span_str(body));
}

unsigned get(const char *target)
{
    char line[512];
    (void)snprintf(line, sizeof(line), "GET %s", target);
    return ask(PLACE_PAGE, line, "", SPAN_NONE);
}

bool says(const char *needle)
{
    return span_find(dynbuf_span(&x.out), span_str(needle)) < x.out.n;
}

void answer(uint16_t type, struct span payload)
{
    struct frame f = {.type = type, .id = sent_id, .payload = payload};
    assert_true(ask_answer(&desk, ASK_LEDGER, &f));
}

void answer_body(struct span body)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 17);
    assert_int_equal(sent_type, M_BODY_GET);
    msg_put_u8(&b, true);
    msg_put_u64(&b, body.n);
    msg_put_span(&b, body);
    answer(M_BODY_IS, dynbuf_span(&b));
    dynbuf_free(&b);
}

void answer_decided(enum ticket_state state)
{
    const uint8_t done[] = {1, (uint8_t)state};
    assert_int_equal(sent_type, M_DECIDE);
    answer(M_DECIDED, span_of(done, 2));
}

void no_answer(void)
{
    ask_gone(&desk, ASK_LEDGER);
}
