/* What tests of tasks share: the desk is asked for one, and whoever it asks answers. */
#ifndef TESTS_TASKS_WORLD_H
#define TESTS_TASKS_WORLD_H

#include "tests/unit/desk/started_world.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

#include "common/net/chan.h"
#include "proxy/wire_ticket.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "web-approval/route.h"
#include "web-approval/tasks/task.h"

#define CANARY "canary-in-a-result"
#define INPUT  "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}"
#define OUTPUT                                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"words\":{\"type\":\"integer\"}},\"additionalProperties\":false}"
#define ASKED   "{\"kind\":\"count\",\"input\":{\"text\":\"a b\"}}"
#define ANY     "{}"
#define DONE_OK SPAN("\1\0\0\0\0")
#define WRITTEN                                                                                                      \
    SPAN("\1"                                                                                                        \
         "0123456789abcdef") /* and the id of its run */

static inline bool was_sent(struct span what)
{
    return span_find(dynbuf_span(&all_sent), what) < all_sent.n;
}

static inline void say_kind(const char *kind, const char *input, const char *output)
{
    struct wire_task t = {.kind = span_str(kind),
                          .memory = UINT64_C(256) << 20,
                          .timeout_ms = 30000,
                          .word = {SPAN("wc"), SPAN("-w")},
                          .nwords = 2,
                          .input = span_str(input),
                          .output = span_str(output)};
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    wire_put_task(&b, &t);
    assert_int_equal(kinds_hear(&desk.kinds, M_TASK, dynbuf_span(&b)), 0);
    dynbuf_free(&b);
}

static inline void only_kind(const char *output)
{
    assert_int_equal(kinds_hear(&desk.kinds, M_TASKS, SPAN("\0\1")), 0);
    say_kind("count", INPUT, output);
}

static inline void say_task(const struct wire_task *t)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    wire_put_task(&b, t);
    assert_int_equal(kinds_hear(&desk.kinds, M_TASK, dynbuf_span(&b)), 0);
    dynbuf_free(&b);
}

static inline int no_kinds(void **state)
{
    assert_int_equal(kinds_hear(&desk.kinds, M_TASKS, SPAN("\0\0")), 0);
    return group_teardown(state);
}

static inline void hear(uint16_t type, struct span payload)
{
    const struct frame f = {.type = type, .id = sent_id, .payload = payload};
    assert_true(chore_hear(&desk, &f));
}

static inline void exits(enum sb_end how, unsigned code)
{
    struct dynbuf b;
    dynbuf_init(&b, 256);
    msg_put_u8(&b, (uint8_t)how);
    msg_put_u8(&b, (uint8_t)code);
    for (int i = 0; i < 5; i++)
        msg_put_u64(&b, 0);
    msg_put_span(&b, SPAN(CANARY));
    hear(M_SB_EXIT, dynbuf_span(&b));
    dynbuf_free(&b);
}

static inline void says_output(unsigned which, struct span bytes)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 22);
    msg_put_u8(&b, (uint8_t)which);
    (void)dynbuf_add(&b, bytes);
    hear(M_SB_OUTPUT, dynbuf_span(&b));
    dynbuf_free(&b);
}

static inline void begin(const char *body)
{
    struct wire_sandbox row;
    assert_int_equal(control("POST /api/v1/tasks", body), 0);
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_sandbox(&m, &row), 0);
    row_of(row.name);
    answer(ASK_LEDGER, M_SANDBOX_DONE, DONE_OK);
    assert_int_equal(sent_type, M_SB_START);
}

static inline void to_its_command(const char *body)
{
    begin(body);
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    assert_true(sent_type == M_SB_INPUT && sent.n == 0);
    exits(SB_EXITED, 0);
    assert_int_equal(sent_type, M_SB_EXEC);
}

static inline void to_its_result(void)
{
    to_its_command(ASKED);
    exits(SB_EXITED, 0);
    assert_int_equal(sent_type, M_SB_FILES);
}

static inline void over(void)
{
    answer(ASK_WARDEN, M_SB_DESTROYED, SPAN("\1"));
    answer(ASK_LEDGER, M_SANDBOX_DONE, DONE_OK);
    answer(ASK_LEDGER, M_TASK_WRITTEN, WRITTEN);
}

/* Nothing is answered before nothing of it is left. */
static inline void is_destroyed(void)
{
    assert_true(sent_type == M_SB_DESTROY && x.status == 0 && desk.chores == NULL);
    answer(ASK_WARDEN, M_SB_DESTROYED, SPAN("\1"));
    assert_true(sent_type == M_SANDBOX_ENDED && x.status == 0);
    answer(ASK_LEDGER, M_SANDBOX_DONE, DONE_OK);
    assert_true(sent_type == M_TASK_OVER && x.status == 0);
    answer(ASK_LEDGER, M_TASK_WRITTEN, WRITTEN);
    assert_true(x.status != 0 && !says(CANARY));
    assert_false(was_sent(SPAN(CANARY)));
    assert_true(desk.held[SHARE_FOLLOW] == 1);
    end();
    assert_true(desk.held[SHARE_FOLLOW] == 0 && desk.shares == NULL);
    assert_int_equal(sent_type, M_TASK_OVER); /* and nothing else is to be ended */
}

#define RUN "0123456789abcdefghjkmnpqrs"

static inline void a_run(const char *what, const char *record)
{
    char sql[4096];
    sqlite3 *db;
    assert_int_equal(sqlite3_open(world_db(), &db), SQLITE_OK);
    (void)snprintf(sql, sizeof(sql),
                   "DELETE FROM run; DELETE FROM audit; INSERT INTO audit(seq,time_ms,kind,json,hash) VALUES(1,1,"
                   "'note','{\"what\":%s}',zeroblob(32)); INSERT INTO run(id,what,sandbox,nth,tenant,generation,"
                   "command,state,began_ms,ended_ms,begin_seq,end_seq) VALUES('" RUN "','%s','sb-1',1,'default',1,"
                   "'','ended',1,1,1,1)",
                   record, what);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
}

static inline void gives(struct span bytes)
{
    struct dynbuf b;
    assert_int_equal(sent_type, M_BLOB_GET);
    dynbuf_init(&b, 1 << 20);
    msg_put_u8(&b, true);
    msg_put_span(&b, bytes);
    answer(ASK_LEDGER, M_BLOB_IS, dynbuf_span(&b));
    dynbuf_free(&b);
}

#endif
