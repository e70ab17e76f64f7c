/* What a row of the list says of a body before it is opened. Covers E14, E17, E34. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/kit.h"
#include "tests/unit/desk/deciding/desk_world.h"
#include "web-approval/glance/glance.h"
#include "web-approval/streams/transfer.h"
#include "web-approval/talks/talks.h"

#define PAID "dddd0000000000000000000000"
#define JSON "[[\"content-type\",\"application/json\"]]"

static const char refund[] = "{\"order\":\"<4711>\",\"amount\":25e4,\"currency\":\"usd\",\"note\":\"\"}";

/* One that waits, with a body, and what has none. */
static int with_a_refund(void **state)
{
    glance_forget(&desk);
    sql("DELETE FROM ticket WHERE id != '" REPO "'");
    ticket(&(struct row){PAID, "pending", "write", NULL, NULL, NULL, JSON, sizeof refund - 1, 9});
    return 0;
}

static void a_row_has_what_matters_of_the_body(void **state)
{
    assert_int_equal(get("/"), 0);
    answer_body(span_str(refund));
    assert_int_equal(x.status, 200);
    assert_true(says("order <b>&lt;4711&gt;</b>") && says("amount <b>25e4</b>") && says("currency <b>usd</b>"));
    assert_true(says("<span>1 more</span>"));
    assert_true(says("look twice</span> <b class=\"mono\">/amount</b>: A number with an exponent. Written out, it is "
                     "<q class=\"mono\">250000</q></p>"));
    assert_false(says("<4711>") || says("is read when you open it"));
    covers("E14");
}

static void a_body_is_asked_for_once(void **state)
{
    assert_int_equal(get("/"), 0);
    answer_body(span_str(refund));
    assert_int_equal(get("/"), 200);
    assert_int_equal(nsent, 0);
    assert_true(says("amount <b>25e4</b>") && says("look twice</span> "));
    glance_forget(&desk); /* another policy knows other hosts */
    assert_int_equal(get("/"), 0);
    answer_body(span_str(refund));
    assert_int_equal(x.status, 200);
}

static void what_nobody_looked_at_is_said(void **state)
{
    assert_int_equal(get("/"), 0);
    no_answer();
    assert_int_equal(x.status, 200);
    assert_true(says("is read when you open it"));
    assert_false(says("look twice"));
    assert_int_equal(get("/"), 0); /* it is tried again */
    answer_body(SPAN("{}"));       /* that is not the body that the ticket has */
    assert_int_equal(x.status, 200);
    assert_true(says("is read when you open it"));
    desk.ledger = NULL;
    assert_int_equal(get("/"), 200);
    assert_true(says("is read when you open it"));
    desk.ledger = (struct chan *)&desk;
}

static void a_long_body_is_not_read_for_a_row(void **state)
{
    sql("UPDATE ticket SET body_size = 65537 WHERE id = '" PAID "'");
    assert_int_equal(get("/"), 200);
    assert_int_equal(nsent, 0);
    assert_true(says("is read when you open it"));
    covers("E17");
}

/* Many long ones are read for one page after the other: nobody waits for all of them. */
static void so_much_is_read_for_one_page(void **state)
{
    static uint8_t body[GLANCE_BODY];
    unsigned first = 0, second = 0;
    char id[ID_TEXT + 1];

    for (unsigned i = 0; i < 70; i++) {
        (void)snprintf(id, sizeof id, "eeee%021u0", i);
        ticket(&(struct row){id, "pending", "write", NULL, "/x", NULL, NULL, GLANCE_BODY, 10 + i});
    }
    sql("UPDATE ticket SET sandbox = 'sc', op = id WHERE id LIKE 'eeee%' AND rowid % 2");
    sql("DELETE FROM ticket WHERE id = '" PAID "'");
    memset(body, 'x', sizeof body);
    for (assert_int_equal(get("/"), 0); x.status == 0; first++)
        answer_body(span_of(body, sizeof body));
    assert_int_equal(first, GLANCE_BODIES / GLANCE_BODY);
    assert_true(says("is read when you open it"));
    for (assert_int_equal(get("/"), 0); x.status == 0; second++)
        answer_body(span_of(body, sizeof body));
    assert_int_equal(first + second, 70);
    assert_false(says("is read when you open it"));
    covers("E34");
}

/* Whoever goes to the yes at once is told there that something stands above it. */
static void it_stands_beside_the_yes(void **state)
{
    assert_int_equal(get("/tickets/" PAID), 0);
    answer_body(span_str(refund));
    assert_int_equal(x.status, 200);
    assert_true(says("#look\">Look twice</a>: "));
    sql("UPDATE ticket SET body_size = 2 WHERE id = '" PAID "'");
    assert_int_equal(get("/tickets/" PAID), 0);
    answer_body(SPAN("{}"));
    assert_int_equal(x.status, 200);
    assert_false(says("Look twice"));
}

#define TALK "ffff0000000000000000000000"

static talks_fn *came;

static bool asks_the_broker(struct exchange *of, const struct talks_ask *q, talks_fn *fn, const char **why)
{
    came = fn;
    return true;
}

/* What waits in a conversation has the same row there. */
static void it_stands_in_its_conversation(void **state)
{
    talks_asks = asks_the_broker;
    sql("UPDATE ticket SET session = 'c-" TALK "', tenant = 'default' WHERE id = '" PAID "'");
    for (unsigned times = 0; times < 2; times++) {
        assert_int_equal(get("/conversations/" TALK), 0);
        came(&x, 200, SPAN("{\"begun_by\":\"uid 0\",\"messages\":[],\"open\":[],\"last_event_id\":\"1.1\"}"));
        if (times == 0)
            answer_body(span_str(refund)); /* asked for once */
        assert_int_equal(x.status, 200);
        assert_true(says("Waits for a decision") && says("/tickets/" PAID "\""));
        assert_true(says("amount <b>25e4</b>") && says("look twice</span> "));
        assert_false(says("is read when you open it"));
    }
    /* its files are asked for behind the body, for what a transfer ends with is answered at once */
    sql("INSERT INTO sandbox(name,session,owner,tenant,kind,generation,token_hash,labels_json,created_ms,changed_ms) "
        "VALUES ('c-" TALK "','c-" TALK "','uid 0','default','started',1,NULL,'{}',1,1)");
    glance_forget(&desk);
    desk.warden = (struct chan *)&desk;
    assert_int_equal(get("/conversations/" TALK), 0);
    came(&x, 200, SPAN("{\"begun_by\":\"uid 0\",\"messages\":[],\"open\":[],\"last_event_id\":\"1.1\"}"));
    assert_true(x.status == 0 && !x.transfer);
    answer_body(span_str(refund));
    assert_true(x.status == 0 && x.transfer);
    x.transfer->done(&x, &(struct transfer_end){.how = SB_EXITED, .said = SPAN("\0\0")});
    assert_int_equal(x.status, 200);
    assert_true(says("amount <b>25e4</b>") && says("There is nothing in it"));
    desk.warden = NULL;
    sql("DELETE FROM sandbox");
    talks_asks = NULL;
    covers("E14");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_row_has_what_matters_of_the_body, with_a_refund),
        cmocka_unit_test_setup(a_body_is_asked_for_once, with_a_refund),
        cmocka_unit_test_setup(what_nobody_looked_at_is_said, with_a_refund),
        cmocka_unit_test_setup(a_long_body_is_not_read_for_a_row, with_a_refund),
        cmocka_unit_test_setup(it_stands_beside_the_yes, with_a_refund),
        cmocka_unit_test_setup(it_stands_in_its_conversation, with_a_refund),
        cmocka_unit_test_setup(so_much_is_read_for_one_page, with_a_refund),
    };
    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
