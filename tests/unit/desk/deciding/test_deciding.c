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
#include "tests/kit.h"
#include "tests/unit/desk/deciding/desk_world.h"
#include "web-approval/deciding/deciding.h"
#include "web-approval/route.h"

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
    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
