#include "tests/unit/desk/started_world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/net/chan.h"
#include "common/net/loop.h"
#include "web-approval/route.h"

struct dynbuf sent, noted, all_sent, all_noted;
unsigned sent_type, noted_n;
uint64_t sent_id;
static bool of_note;

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    of_note = type == M_NOTE;
    dynbuf_reset(of_note ? &noted : &sent);
    if (of_note)
        return &noted;
    sent_type = type;
    sent_id = id;
    return &sent;
}

int chan_commit(struct chan *c)
{
    noted_n += of_note;
    if (of_note)
        (void)dynbuf_add(&all_noted, dynbuf_span(&noted));
    if (!of_note) {
        (void)dynbuf_add_byte(&all_sent, (uint8_t)sent_type);
        (void)dynbuf_add(&all_sent, dynbuf_span(&sent));
    }
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

struct desk desk;
struct exchange x;
struct ask waits, wait_too[WAIT_TOO];
static char path[] = "/tmp/test_started.XXXXXX", db_path[64];

/* What the desk asked for itself is over with its answer, as in the server. */
static void answered(struct exchange *done)
{
    if (done == &x || !span_eq(span_str(done->operator), SPAN("the gateway")))
        return;
    if (done->over)
        done->over(done);
    dynbuf_free(&done->raw);
    dynbuf_free(&done->out);
    arena_free(&done->arena);
    free(done);
}

static int run_file(sqlite3 *db, const char *file)
{
    const char *src = getenv("srcdir");
    char name[512], text[64 * 1024];
    (void)snprintf(name, sizeof(name), "%s/proxy/ledger/store/%s", src ? src : ".", file);
    FILE *f = fopen(name, "re");
    if (!f)
        return -1;
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    (void)fclose(f);
    return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

int group_setup(void **state)
{
    sqlite3 *db;
    if (!mkdtemp(path))
        return -1;
    (void)snprintf(db_path, sizeof(db_path), "%s/l.db", path);
    if (sqlite3_open(db_path, &db) != SQLITE_OK)
        return -1;
    int rc = run_file(db, "schema.sql") || run_file(db, "tokens/schema_5.sql") || run_file(db, "runs/schema_6.sql") ||
             run_file(db, "runs/schema_7.sql") || run_file(db, "grants/schema_8.sql") ||
             run_file(db, "askers/schema_9.sql") || run_file(db, "people/schema_10.sql") ||
             run_file(db, "gates/schema_12.sql") || run_file(db, "runs/schema_11.sql") ||
             run_file(db, "askers/schema_13.sql") || run_file(db, "tell/schema_14.sql") ||
             sqlite3_exec(db,
                          "INSERT INTO "
                          "sandbox(name,session,owner,tenant,kind,generation,token_hash,labels_json,created_ms,"
                          "changed_ms) VALUES ('box','box','uid 0','default','started',4,NULL,'{}',1,1),"
                          "('ci','ci','uid 0','default','token',1,NULL,'{}',1,1),"
                          "('old','old','uid 0','default','ended',7,NULL,'{}',1,1),"
                          "('abox','abox','key one','acme','started',1,NULL,'{}',1,1);"
                          "INSERT INTO token VALUES ('key','','one','acme',zeroblob(32),'',1),"
                          "('access','abox','one','acme',randomblob(32),'{\"template\":\"base\"}',1)",
                          NULL, NULL, NULL) != SQLITE_OK ||
             run_file(db, "egress/schema_15.sql") || run_file(db, "people/schema_16.sql") ||
             run_file(db, "people/schema_17.sql") || run_file(db, "people/schema_18.sql") ||
             run_file(db, "egress/schema_19.sql") || run_file(db, "idle/schema_20.sql");
    (void)sqlite3_close(db);
    desk.store = desk_store_new(db_path);
    desk.ledger = desk.parent = desk.warden = (struct chan *)&desk;
    dynbuf_init(&sent, 1 << 20);
    dynbuf_init(&noted, 1 << 20);
    dynbuf_init(&all_sent, 1 << 24);
    dynbuf_init(&all_noted, 1 << 20);
    exchange_answered = answered;
    return rc;
}

const char *world_db(void)
{
    return db_path;
}

void end(void)
{
    if (x.over)
        x.over(&x);
    x.over = NULL;
    dynbuf_free(&x.raw);
    dynbuf_free(&x.out);
    arena_free(&x.arena);
}

int group_teardown(void **state)
{
    end();
    desk_store_free(&desk.store);
    dynbuf_free(&sent);
    dynbuf_free(&noted);
    dynbuf_free(&all_sent);
    dynbuf_free(&all_noted);
    (void)unlink(db_path);
    return rmdir(path);
}

static const char *lane = "";

static unsigned asked(enum desk_place place, const struct caller *caller, const char *line, const char *body)
{
    struct http_err e;
    size_t seen = 0, used;
    end();
    memset(desk.asks, 0, sizeof(desk.asks));
    desk.asks[DESK_ASKS - 1] = waits;
    memcpy(desk.asks + DESK_ASKS - 1 - WAIT_TOO, wait_too, sizeof(wait_too));
    x = (struct exchange){
        .desk = &desk, .place = place, .caller = *caller, .file = -1, .now_ms = 10000, .wall_ms = 1000};
    (void)snprintf(x.operator, sizeof(x.operator), "uid 0");
    dynbuf_init(&x.raw, 1 << 20);
    dynbuf_init(&x.out, 1 << 20);
    arena_init(&x.arena, 1 << 22);
    (void)dynbuf_addf(
        &x.raw,
        "%s HTTP/1.1\r\nHost: countersign\r\n%s%s%sContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        line, *lane ? "Countersign-Lane: " : "", lane, *lane ? "\r\n" : "", strlen(body), body);
    assert_int_equal(http_parse_request(dynbuf_span(&x.raw), HTTP_ORIGIN_SERVER, &seen, &x.head, &used, &e), HTTP_OK);
    x.body = span_from(dynbuf_span(&x.raw), used);
    sent_type = noted_n = 0;
    dynbuf_reset(&all_sent);
    dynbuf_reset(&all_noted);
    route_run(&x);
    return x.status;
}

unsigned control(const char *line, const char *body)
{
    return asked(PLACE_CONTROL, &(struct caller){.key = ""}, line, body);
}

unsigned docked(const char *tenant, const char *box, const char *line, const char *body)
{
    struct caller c = {.key = "one"};
    (void)snprintf(c.tenant, sizeof(c.tenant), "%s", tenant);
    (void)snprintf(c.box, sizeof(c.box), "%s", box);
    return asked(PLACE_DOCK, &c, line, body);
}

unsigned brokered(const char *tenant, const char *with, const char *line, const char *body)
{
    struct caller c = {.broker = true};
    (void)snprintf(c.tenant, sizeof(c.tenant), "%s", tenant);
    lane = with;
    unsigned status = asked(PLACE_DOCK, &c, line, body);
    lane = "";
    return status;
}

bool says(const char *needle)
{
    return span_find(dynbuf_span(&x.out), span_str(needle)) < x.out.n;
}

void answer(enum ask_whom whom, uint16_t type, struct span payload)
{
    struct frame f = {.type = type, .id = sent_id, .payload = payload};
    assert_true(ask_answer(&desk, whom, &f));
}

struct dynbuf list_of_one(enum pause_way way)
{
    struct dynbuf list;
    dynbuf_init(&list, 1024);
    msg_put_u16(&list, 1);
    wire_put_box(&list, &(struct wire_box){.name = SPAN("box"),
                                           .memory = 64 << 20,
                                           .pids = 8,
                                           .disk = 1 << 20,
                                           .files = 64,
                                           .image = SPAN("debian"),
                                           .digest = SPAN(A_DIGEST)});
    for (int i = 0; i < 4; i++)
        msg_put_u64(&list, 1);
    msg_put_u8(&list, 1);
    msg_put_u16(&list, 0);
    msg_put_u8(&list, (uint8_t)way);
    msg_put_span(&list, SPAN_NONE);
    return list;
}

void head_said(const char *reach)
{
    struct dynbuf head, b;
    dynbuf_init(&head, FORM_HEAD_MAX);
    dynbuf_init(&b, 2 * FORM_HEAD_MAX);
    form_put_head(&head, &(struct form_head){.id = SPAN("ck-10000000000000000000000000"),
                                             .tenant = SPAN("default"),
                                             .owner = SPAN("root"),
                                             .sandbox = SPAN("box"),
                                             .reach = span_str(reach)});
    msg_put_u8(&b, STORE_DONE);
    msg_put_span(&b, SPAN_NONE);
    msg_put_span(&b, dynbuf_span(&head));
    answer(ASK_WARDEN, M_SB_CHECKPOINT, dynbuf_span(&b));
    dynbuf_free(&head);
    dynbuf_free(&b);
}

void looked(const char *reach)
{
    assert_int_equal(sent_type, M_SB_CHECKPOINTS);
    head_said(reach);
}

static void run_on(const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
}

void row_reaches(const char *reach)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql), "UPDATE sandbox SET reach='%s' WHERE name='box'", reach);
    run_on(sql);
}

void box_has_note(const char *note)
{
    char sql[512];
    run_on("DELETE FROM token WHERE scope='box'");
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO token(kind,scope,name,tenant,hash,note,created_ms) VALUES "
                   "('access','box','one','default',NULL,'%s',1)",
                   note);
    if (*note)
        run_on(sql);
}

void row_of(struct span name)
{
    char sql[256];
    (void)snprintf(
        sql, sizeof(sql),
        "INSERT INTO sandbox(name,session,owner,tenant,kind,generation,token_hash,labels_json,created_ms,changed_ms) "
        "VALUES ('%.*s','x','uid 0','default','started',1,NULL,'{}',1,1)",
        SPAN_FMT(name));
    run_on(sql);
}

void row_is_gone(struct span name)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql), "UPDATE sandbox SET name = 'gone' WHERE name = '%.*s'", SPAN_FMT(name));
    run_on(sql);
}

void row_is_back(struct span name)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql), "UPDATE sandbox SET name = '%.*s' WHERE name = 'gone'", SPAN_FMT(name));
    run_on(sql);
}
