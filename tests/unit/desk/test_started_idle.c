/* Started sandboxes that are idle: what the desk asks whom, in which order, until what was asked for can be done. */
#include "tests/unit/desk/started_world.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "proxy/wire_ticket.h"
#include "web-approval/ask.h"
#include "web-approval/dock.h"
#include "web-approval/idle/idle.h"

#define OK      SPAN("\1\0\0\0\0")
#define ANOTHER "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define REACH   "+n a.test\n&\n-a 10.0.0.0/8\n"

static void run_on(const char *sql, struct span blob)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open(world_db(), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    if (blob.n)
        assert_int_equal(sqlite3_bind_blob(q, 1, blob.p, (int)blob.n, SQLITE_STATIC), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_DONE);
    (void)sqlite3_finalize(q);
    (void)sqlite3_close(db);
}

/* The sandbox box is idle; kind: idle, or started, as a desk before this one left it. */
static int idle(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 1024);
    wire_put_box(&b, &(struct wire_box){.name = SPAN("box"),
                                        .memory = 64 << 20,
                                        .pids = 8,
                                        .disk = 1 << 20,
                                        .files = 64,
                                        .idle_ms = 1000,
                                        .image = SPAN("debian"),
                                        .digest = SPAN(A_DIGEST),
                                        .lane = SPAN("web")});
    run_on("DELETE FROM idle", SPAN_NONE);
    run_on("INSERT INTO idle VALUES ('box','default','ck-0',x'00',50,1,5000,1)", SPAN_NONE);
    run_on("UPDATE idle SET box=?1", dynbuf_span(&b));
    run_on("UPDATE sandbox SET kind='idle',generation=5,session='work',owner='uid 7' WHERE name='box'", SPAN_NONE);
    row_reaches(REACH);
    dynbuf_free(&b);
    desk.idle_none = false;
    return 0;
}

static int awake(void **state)
{
    run_on("DELETE FROM idle", SPAN_NONE);
    run_on("UPDATE sandbox SET kind='started',generation=4,tenant='default',restored=0 WHERE name='box'", SPAN_NONE);
    row_reaches("");
    return 0;
}

/* What was said to the ledger before is written down, before anything ends. */
static void fence(void)
{
    assert_int_equal(sent_type, M_SANDBOX_AWAKE);
    assert_true(span_eq(dynbuf_span(&sent), SPAN("\0\0\0\0\0\0\0\0\0\0\0\0")));
    answer(ASK_LEDGER, M_SANDBOX_DONE, OK);
}

/* The one that it had is asked for: is it there, or what does its name mean now? */
static void its_image_is(const char *digest)
{
    struct dynbuf b;
    dynbuf_init(&b, 256);
    assert_int_equal(sent_type, M_SB_IMAGE);
    assert_true(span_ends(dynbuf_span(&sent), SPAN(A_DIGEST)));
    msg_put_u8(&b, *digest != '\0');
    msg_put_span(&b, span_str(digest));
    msg_put_span(&b, SPAN_NONE);
    answer(ASK_WARDEN, M_SB_IMAGE, dynbuf_span(&b));
    dynbuf_free(&b);
}

static void to_its_image(void)
{
    fence();
    assert_int_equal(sent_type, M_SB_IDLE_END);
    assert_true(span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\0\0\0\0\0\0\0\5")));
    answer(ASK_WARDEN, M_SB_DESTROYED, SPAN("\0"));
}

static void to_its_start_with(const char *image)
{
    to_its_image();
    its_image_is(image);
    assert_int_equal(sent_type, M_SB_LIST);
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    assert_int_equal(sent_type, M_SANDBOX_WAKE);
    struct msg_in m = msg_in(dynbuf_span(&sent));
    struct wire_sandbox b;
    assert_int_equal(wire_get_sandbox(&m, &b), 0);
    assert_true(span_eq(b.session, SPAN("work")) && span_eq(b.owner, SPAN("uid 7")) && b.egress_epoch == 1);
    assert_true(span_eq(b.reach, SPAN(REACH)));
    answer(ASK_LEDGER, M_SANDBOX_DONE, OK);
    assert_int_equal(sent_type, M_SB_START_FROM);
    assert_true(span_find(dynbuf_span(&sent), SPAN("ck-0")) < sent.n &&
                span_find(dynbuf_span(&sent), SPAN("web")) < sent.n);
    assert_true(span_find(dynbuf_span(&sent), span_str(image)) < sent.n);
}

static void to_its_start(void)
{
    to_its_start_with(A_DIGEST);
}

static void it_is_restored_before_it_is_said_to_go_on(void **state)
{
    assert_int_equal(control("POST /api/v1/sandboxes/box/resume", ""), 0);
    to_its_start();
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    assert_int_equal(sent_type, M_SANDBOX_AWAKE);
    assert_int_equal(x.status, 0);
    run_on("DELETE FROM idle", SPAN_NONE);
    run_on("UPDATE sandbox SET kind='started',restored=3 WHERE name='box'", SPAN_NONE);
    answer(ASK_LEDGER, M_SANDBOX_DONE, OK);
    assert_int_equal(x.status, 200);
    assert_true(says("\"state\":\"running\"") && says("\"restored\":3") && x.woke != 0);
    assert_int_equal(sent_type, M_SB_CHECKPOINTS); /* nobody needs its checkpoint */
    assert_null(desk.idlers);
}

static void is_awake(void)
{
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    assert_int_equal(sent_type, M_SANDBOX_AWAKE);
    run_on("DELETE FROM idle", SPAN_NONE);
    run_on("UPDATE sandbox SET kind='started',restored=3 WHERE name='box'", SPAN_NONE);
    answer(ASK_LEDGER, M_SANDBOX_DONE, OK);
}

/* Its image was imported anew meanwhile, and the one it had is swept away: it has what the name means now, and that
 * is said. With none of this name it is idle still. */
static void whose_image_is_gone_has_what_its_name_means_now(void **state)
{
    assert_int_equal(control("POST /api/v1/sandboxes/box/resume", ""), 0);
    to_its_image();
    its_image_is("");
    assert_true(x.status == 503 && says("idle still") && says("image import"));
    end();
    assert_int_equal(control("POST /api/v1/sandboxes/box/resume", ""), 0);
    to_its_start_with(ANOTHER);
    is_awake();
    assert_true(x.status == 200 && says("\"another_image\":true") && x.another);
    const struct span note = dynbuf_span(&all_noted);
    assert_true(span_find(note, SPAN("sandbox-another-image")) < note.n && span_find(note, SPAN(ANOTHER)) < note.n &&
                span_find(note, SPAN("\"was\":\"" A_DIGEST)) < note.n);
}

/* At whichever step, it is idle still, and the next one begins anew. */
static void what_fails_leaves_it_idle(void **state)
{
    for (int step = -1; step < 3; step++) {
        assert_int_equal(control("GET /api/v1/sandboxes/box/files?path=a", ""), 0);
        if (step < 0)
            answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN_NONE);
        if (step == 0) {
            fence();
            answer(ASK_WARDEN, M_SB_DESTROYED, SPAN_NONE);
        }
        if (step > 0)
            to_its_start();
        if (step == 1)
            answer(ASK_WARDEN, M_SB_STARTED, SPAN("\0\0\0\0\3why\0"));
        if (step == 2) {
            answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
            answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN_NONE);
        }
        assert_int_equal(x.status, 503);
        assert_true(sent_type != M_SB_CHECKPOINTS);
        desk.idle_sweep_at = 0;
        end();
        assert_true((desk.idle_sweep_at != 0) == (step > 0)); /* only of what was begun there may be something left */
        assert_null(desk.idlers);
    }
    assert_int_equal(control("GET /api/v1/sandboxes/box/files?path=a", ""), 0);
    to_its_start();
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    run_on("DELETE FROM idle", SPAN_NONE);
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\0\0\0\0\3why")); /* it was destroyed meanwhile: what was started goes */
    assert_true(x.status == 404 && sent_type == M_SB_IDLE_END);
}

/* A desk before this one was killed while it restored it: what came of that ends first. */
static void one_that_was_half_restored_begins_anew(void **state)
{
    run_on("UPDATE sandbox SET kind='started' WHERE name='box'", SPAN_NONE);
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"true\"]}"), 0);
    fence();
    assert_int_equal(sent_type, M_SB_IDLE_END);
    answer(ASK_WARDEN, M_SB_DESTROYED, SPAN("\1"));
    assert_int_equal(sent_type, M_SANDBOX_ENDED);
    run_on("UPDATE sandbox SET kind='idle',generation=6 WHERE name='box'", SPAN_NONE);
    answer(ASK_LEDGER, M_SANDBOX_DONE, OK);
    its_image_is(A_DIGEST);
    assert_int_equal(sent_type, M_SB_LIST);
    answer(ASK_WARDEN, M_SB_LISTED, SPAN_NONE);
    assert_int_equal(x.status, 503);
}

/* A desk before this one had it restored, and that was on its way to the store: it is not ended for a row of before.
 */
static void one_that_has_its_files_by_then_goes_on(void **state)
{
    run_on("UPDATE sandbox SET kind='started' WHERE name='box'", SPAN_NONE);
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"true\"]}"), 0);
    run_on("DELETE FROM idle", SPAN_NONE);
    fence();
    assert_true(sent_type == M_SB_EXEC && x.status == 200 && x.woke == 0);
    assert_null(desk.idlers);
}

/* The name is another tenant's by the time that it could go on. */
static void who_waited_is_asked_for_the_right_again(void **state)
{
    assert_int_equal(docked("default", "", "POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"true\"]}"), 0);
    to_its_start();
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    run_on("DELETE FROM idle", SPAN_NONE);
    run_on("UPDATE sandbox SET kind='started',tenant='other' WHERE name='box'", SPAN_NONE);
    answer(ASK_LEDGER, M_SANDBOX_DONE, OK);
    assert_int_equal(x.status, 404);
}

static void what_needs_what_ran_in_it_is_refused(void **state)
{
    static const char *const lines[] = {"GET /api/v1/sandboxes/box/commands", "POST /api/v1/sandboxes/box/pause",
                                        "POST /api/v1/sandboxes/box/timeout", "POST /api/v1/sandboxes/box/signal",
                                        "POST /api/v1/sandboxes/box/attach",  "GET /api/v1/sandboxes/box/log"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_true(control(lines[i], "{}") == 409 && says("is idle"));
        end();
    }
    assert_int_equal(control("DELETE /api/v1/sandboxes/box", ""), 409);
    assert_int_equal(docked("default", "box", "POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"true\"]}"), 404);
}

static void a_list_has_it_and_its_end_removes_its_checkpoint(void **state)
{
    assert_int_equal(control("GET /api/v1/sandboxes/started", ""), 0);
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    assert_true(x.status == 200 && says("\"state\":\"idle\"") && says("\"left_ms\":5000"));
    end();
    for (int way = PAUSE_NONE; way <= PAUSE_CGROUP_1; way++) { /* it runs again, and is idle until that is written */
        struct dynbuf list = list_of_one((enum pause_way)way); /* or has not ended yet */
        assert_int_equal(control("GET /api/v1/sandboxes/started", ""), 0);
        answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&list));
        assert_true(x.status == 200 && says("\"state\":\"idle\"") && !says("\"state\":\"paused\"") &&
                    !says("\"state\":\"running\""));
        end();
        dynbuf_free(&list);
    }
    assert_int_equal(control("POST /api/v1/sandboxes/box/destroy", ""), 0);
    answer(ASK_WARDEN, M_SB_DESTROYED, SPAN("\0"));
    assert_int_equal(sent_type, M_SANDBOX_IDLE_OVER);
    answer(ASK_LEDGER, M_SANDBOX_DONE, OK);
    assert_true(x.status == 204 && sent_type == M_SB_CHECKPOINTS);
}

/* What opened it before it was idle is not made good again by who looked at it then. */
static void what_opens_it_is_of_as_often_as_it_was_restored(void **state)
{
    static const char line[] = "POST /api/v1/sandboxes/box/access";
    char now[128], before[128];
    (void)awake(state);
    run_on("UPDATE sandbox SET restored=2 WHERE name='box'", SPAN_NONE);
    (void)snprintf(before, sizeof(before), "{\"access\":\"%s\",\"restored\":1}", A_DIGEST + strlen("sha256:"));
    (void)snprintf(now, sizeof(now), "{\"access\":\"%s\",\"restored\":2}", A_DIGEST + strlen("sha256:"));
    assert_true(docked("default", "", line, before) == 409 && sent_type == 0);
    assert_true(docked("default", "", line, now) == 0 && sent_type == M_TOKEN_PUT);
}

/* Longer than a frame may be. */
static void a_list_may_come_in_parts(void **state)
{
    (void)awake(state);
    struct dynbuf list = list_of_one(PAUSE_CGROUP_1);
    assert_int_equal(control("GET /api/v1/sandboxes/started", ""), 0);
    answer(ASK_WARDEN, M_SB_PART, span_first(dynbuf_span(&list), 10));
    answer(ASK_WARDEN, M_SB_PART, span_first(span_from(dynbuf_span(&list), 10), 30));
    assert_int_equal(x.status, 0);
    answer(ASK_WARDEN, M_SB_LISTED, span_from(dynbuf_span(&list), 40));
    assert_true(x.status == 200 && says("\"state\":\"paused\""));
    dynbuf_free(&list);
    end();
    static uint8_t many[256 * 1024];
    assert_int_equal(control("GET /api/v1/sandboxes/started", ""), 0);
    for (int i = 0; i < 5; i++) /* and not without end */
        if (x.status == 0)
            answer(ASK_WARDEN, M_SB_PART, span_of(many, sizeof(many)));
    assert_int_equal(x.status, 503);
}

/* Another one of its tenant's is restored, and there is no place for one more: it waits for that. */
static void who_finds_no_place_waits_for_one(void **state)
{
    static const char run[] = "POST /api/v1/sandboxes/box/exec", words[] = "{\"argv\":[\"true\"]}";
    static struct exchange other = {.desk = &desk, .place = PLACE_DOCK, .keeps = true};
    struct idler at = {.name = SPAN("other"), .tenant = SPAN("default"), .waits = true};
    (void)snprintf(other.caller.tenant, sizeof(other.caller.tenant), "default");
    for (size_t i = 0; i < DOCK_TENANT_STORES; i++)
        wait_too[i] = (struct ask){.id = 1000 + i, .x = &other};
    assert_int_equal(docked("default", "", run, words), 429);
    for (int refused = 0; refused < 2; refused++) {
        idler_begin(&desk, &at);
        assert_true(docked("default", "", run, words) == 0 && sent_type == 0);
        memset(desk.asks, 0, sizeof(desk.asks));
        idler_over(&desk, &at, refused);
        assert_int_equal(x.status, 0);
        fence();
        assert_true(sent_type == M_SB_IDLE_END && x.woke == 0);
        end();
        assert_null(desk.idlers);
    }
    memset(wait_too, 0, sizeof(wait_too));
}

static char order[3];

static void first(struct exchange *one)
{
    order[strlen(order)] = one->operator[0];
    one->status = 204;
}

static void who_waits_longest_is_first(void **state)
{
    struct exchange *two[2];
    struct idler at = {.name = SPAN("box"), .waits = true};
    (void)awake(state);
    idler_begin(&desk, &at);
    for (int i = 0; i < 2; i++) {
        two[i] = calloc(1, sizeof(*two[i]));
        *two[i] = (struct exchange){.desk = &desk, .place = PLACE_CONTROL, .arg = SPAN("box")};
        two[i]->operator[0] =(char)('1' + i);
        arena_init(&two[i]->arena, 1 << 16);
        idler_park(&at, two[i], first, false);
    }
    idler_over(&desk, &at, false);
    assert_string_equal(order, "12");
    for (int i = 0; i < 2; i++) {
        arena_free(&two[i]->arena);
        free(two[i]);
    }
}

static void kept_are(struct span heads)
{
    struct dynbuf b;
    dynbuf_init(&b, 256);
    msg_put_u8(&b, STORE_DONE);
    msg_put_span(&b, SPAN_NONE);
    msg_put_span(&b, heads);
    assert_int_equal(sent_type, M_SB_CHECKPOINTS);
    answer(ASK_WARDEN, M_SB_CHECKPOINT, dynbuf_span(&b));
    dynbuf_free(&b);
}

/* One look at a time for what nobody needs; and once the ledger has said all, nothing is unsure any more. */
static void what_nobody_needs_is_looked_for_once_at_a_time(void **state)
{
    for (unsigned lost = 0; lost < 2; lost++) {
        desk.idle_unsure = true;
        desk.idle_at = 0;
        desk.idle_sweep_at = 1;
        idle_due(&desk, 1);
        assert_int_equal(sent_type, M_SANDBOX_AWAKE);
        sent_type = 0;
        desk.idle_sweep_at = 1;
        idle_due(&desk, 1);
        assert_int_equal(sent_type, 0);
        desk.idle_lost += lost;
        answer(ASK_LEDGER, M_SANDBOX_DONE, OK);
        assert_true(desk.idle_unsure == (lost == 1));
        kept_are(SPAN("\0"));
        assert_false(desk.idle_sweeps);
    }
    desk.idle_fenced = desk.idle_lost = 0;
    desk.idle_unsure = false;
    desk.idle_sweep_at = 0;
}

/* It is due: what is asked then. */
static void is_due(void)
{
    memset(desk.asks, 0, sizeof(desk.asks));
    struct dynbuf row = list_of_one(PAUSE_CGROUP_1), b;
    dynbuf_init(&b, 2048);
    msg_put_u64(&b, 0);
    (void)dynbuf_add(&b, dynbuf_span(&row));
    msg_put_u64(&b, 50);
    msg_put_u8(&b, 1);
    desk.idle_at = 1;
    desk.idle_sweep_at = 0;
    idle_due(&desk, 1);
    assert_int_equal(sent_type, M_SB_IDLE);
    answer(ASK_WARDEN, M_SB_IDLE, dynbuf_span(&b));
    dynbuf_free(&row);
    dynbuf_free(&b);
}

/* Two of them are, of two tenants; which is first? */
static bool is_first_of_two(const char *name)
{
    struct dynbuf list = list_of_one(PAUSE_CGROUP_1), b;
    const struct span row = span_from(dynbuf_span(&list), 2);
    dynbuf_init(&b, 2048);
    msg_put_u64(&b, 0);
    msg_put_u16(&b, 2);
    (void)dynbuf_add(&b, row);
    msg_put_u64(&b, 50);
    msg_put_u8(&b, 1);
    msg_put_span(&b, SPAN("abox"));
    (void)dynbuf_add(&b, span_from(row, 4 + strlen("box")));
    msg_put_u64(&b, 50);
    msg_put_u8(&b, 1);
    desk.idle_at = 1;
    desk.idle_sweep_at = 0;
    idle_due(&desk, 1);
    answer(ASK_WARDEN, M_SB_IDLE, dynbuf_span(&b));
    assert_int_equal(sent_type, M_SB_SNAPSHOT);
    struct msg_in m = msg_in(dynbuf_span(&sent));
    bool is = span_eq(msg_get_span(&m, BOX_NAME_MAX), span_str(name));
    answer(ASK_WARDEN, M_SB_CHECKPOINT, SPAN_NONE);
    dynbuf_free(&list);
    dynbuf_free(&b);
    return is;
}

static void nothing_is_due(void)
{
    assert_null(desk.idlers);
    desk.idle_at = desk.idle_sweep_at = 0;
}

/* What it may reach is said of its files as well, to whoever begins with them. */
static void what_is_kept_of_one_says_what_it_may_reach(void **state)
{
    (void)awake(state);
    row_reaches(REACH);
    is_due();
    assert_int_equal(sent_type, M_SB_SNAPSHOT);
    assert_true(span_ends(dynbuf_span(&sent), SPAN(REACH)));
    answer(ASK_WARDEN, M_SB_CHECKPOINT, SPAN_NONE);
    assert_int_equal(sent_type, M_SB_IDLE_NOT);
    nothing_is_due();
}

/* Who asked before it is to be waited for is not answered by what becomes of it. */
static void one_that_somebody_asks_for_stays_paused(void **state)
{
    static struct exchange other = {.desk = &desk, .place = PLACE_CONTROL, .arg = SPAN("box")};
    (void)awake(state);
    is_due();
    assert_int_equal(sent_type, M_SB_SNAPSHOT);
    desk.asks[7] = (struct ask){.id = 1000, .x = &other};
    head_said(REACH);
    assert_int_equal(sent_type, M_SB_IDLE_NOT);
    assert_true(span_find(dynbuf_span(&sent), SPAN("asked for it meanwhile")) < sent.n);
    memset(desk.asks, 0, sizeof(desk.asks));
    nothing_is_due();
}

/* All of a tenant's are one answer, with what it knows of each. */
static void a_list_that_is_long_has_no_more(void **state)
{
    (void)awake(state);
    run_on("INSERT INTO idle VALUES ('long','default','ck-1',zeroblob(1047000),50,1,5000,1)", SPAN_NONE);
    is_due();
    assert_int_equal(sent_type, M_SB_SNAPSHOT);
    answer(ASK_WARDEN, M_SB_CHECKPOINT, SPAN_NONE);
    run_on("INSERT INTO token(kind,scope,name,tenant,hash,note,created_ms) VALUES "
           "('access','long','two','default',NULL,CAST(zeroblob(2200) AS TEXT),1)",
           SPAN_NONE);
    is_due();
    assert_int_equal(sent_type, M_SB_IDLE_NOT);
    assert_true(span_find(dynbuf_span(&sent), SPAN("as many sandboxes of its tenant")) < sent.n);
    run_on("DELETE FROM token WHERE scope='long'", SPAN_NONE);
    nothing_is_due();
}

/* It is asked for while the ledger writes down that it is idle; then the ledger says ok. */
static void while_it_is_written_down(const char *box, const char *line, struct span ok)
{
    (void)awake(NULL);
    is_due();
    head_said(REACH);
    assert_int_equal(sent_type, M_SANDBOX_IDLE);
    const uint64_t id = sent_id;
    for (size_t i = 0; i < DESK_ASKS; i++)
        waits = desk.asks[i].id == id ? desk.asks[i] : waits;
    assert_int_equal(docked("default", box, line, box[0] ? "{\"argv\":[\"true\"]}" : ""), 0);
    waits = (struct ask){0};
    assert_int_equal(sent_type, 0);
    if (span_eq(ok, OK))
        run_on("UPDATE sandbox SET kind='idle',generation=5 WHERE name='box'", SPAN_NONE);
    sent_id = id;
    answer(ASK_LEDGER, M_SANDBOX_DONE, ok);
}

static void none_is_always_first(void **state)
{
    (void)awake(state);
    desk.idle_turn = 0;
    assert_true(is_first_of_two("box"));
    assert_true(is_first_of_two("abox"));
    assert_true(is_first_of_two("box"));
    nothing_is_due();
}

/* Who waited is refused what is not there any more, and nothing else. */
static void who_asks_while_it_is_put_aside_waits(void **state)
{
    static const char run[] = "POST /api/v1/sandboxes/box/exec", pause[] = "POST /api/v1/sandboxes/box/pause";
    const struct span not_written = SPAN("\0\0\0\0\3why");
    while_it_is_written_down("box", run, not_written); /* what opens it still does */
    assert_true(x.status == 200 && sent_type == M_SB_EXEC);
    nothing_is_due();
    while_it_is_written_down("", pause, not_written);
    assert_true(x.status == 0 && sent_type == M_SB_PAUSE);
    nothing_is_due();
    while_it_is_written_down("box", run, OK); /* it opens it no more */
    assert_int_equal(sent_type, M_SB_IDLE_END);
    answer(ASK_WARDEN, M_SB_DESTROYED, SPAN("\1"));
    assert_int_equal(x.status, 404);
    nothing_is_due();
}

static void what_opened_it_before_opens_it_no_more(void **state)
{
    static const char run[] = "POST /api/v1/sandboxes/box/exec", words[] = "{\"argv\":[\"true\"]}";
    (void)awake(state);
    assert_int_equal(docked("default", "box", run, words), 200);
    run_on("UPDATE sandbox SET restored=1 WHERE name='box'", SPAN_NONE);
    assert_int_equal(docked("default", "box", run, words), 404);
    assert_int_equal(docked("default", "", run, words), 200);
}

#define IDLE(name) cmocka_unit_test_setup_teardown(name, idle, awake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IDLE(it_is_restored_before_it_is_said_to_go_on),
        IDLE(whose_image_is_gone_has_what_its_name_means_now),
        IDLE(what_fails_leaves_it_idle),
        IDLE(one_that_has_its_files_by_then_goes_on),
        IDLE(who_waited_is_asked_for_the_right_again),
        IDLE(one_that_was_half_restored_begins_anew),
        IDLE(what_needs_what_ran_in_it_is_refused),
        IDLE(a_list_has_it_and_its_end_removes_its_checkpoint),
        IDLE(what_opens_it_is_of_as_often_as_it_was_restored),
        IDLE(a_list_may_come_in_parts),
        IDLE(who_finds_no_place_waits_for_one),
        IDLE(who_waits_longest_is_first),
        IDLE(what_nobody_needs_is_looked_for_once_at_a_time),
        IDLE(one_that_somebody_asks_for_stays_paused),
        IDLE(what_is_kept_of_one_says_what_it_may_reach),
        IDLE(a_list_that_is_long_has_no_more),
        IDLE(none_is_always_first),
        IDLE(who_asks_while_it_is_put_aside_waits),
        IDLE(what_opened_it_before_opens_it_no_more),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
