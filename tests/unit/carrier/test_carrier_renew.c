/* An upstream that refuses a value which was fetched: once more with another one, or its word as it came. */
#include "tests/unit/carrier/carrier_world.h"

#include <stdio.h>

static void credentialed(struct world *w, uint64_t n, size_t up, const char *answer)
{
    char path[32], line[48];
    snprintf(path, sizeof(path), "/%llu", (unsigned long long)n);
    snprintf(line, sizeof(line), "GET /%llu HTTP/1.1\r\n", (unsigned long long)n);
    world_credential(w, XID(n), 0, "up.test", "c", "Bearer " TOKEN);
    world_forward(w, XID(n), (struct request){.path = path, .credential = "c", .release = RELEASE_COMES});
    world_wait_up(w, up, line);
    world_answer(w, up, answer);
}

#define UNAUTHORIZED "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 4\r\n\r\nno 1"
#define RENEWED      "ghp_renewed0renewed0renewed0renewed0"

static void expect_status(struct world *w, uint64_t xid, uint16_t status)
{
    struct result r = world_result(w, xid);
    assert_int_equal(r.outcome, OUTCOME_ANSWERED);
    assert_int_equal(r.status, status);
}

/* The upstream refuses a fetched value: once more with another one, and then its word is handed on. */
static void a_refused_credential_is_renewed_once(void **state)
{
    struct world *w = world_new();
    struct request once = {.path = "/7", .credential = "c", .release = RELEASE_COMES, .once = true};
    w->version = 5;
    credentialed(w, 1, 0, UNAUTHORIZED);
    struct seen *s = world_wait(w, ROLE_JUDGE, M_NEED_RELEASE, XID(1));
    struct msg_in m = msg_in(dynbuf_span(&s->payload));
    assert_int_equal(msg_get_u64(&m), 5);
    assert_int_equal(msg_end(&m), 0);
    w->version = 6;
    world_credential(w, XID(1), 60000, "up.test", "c", "Bearer " RENEWED);
    world_wait_up(w, 1, "Authorization: Bearer " RENEWED);
    assert_true(world_up_has(w, 1, "GET /1 HTTP/1.1\r\n"));
    world_answer(w, 1, OK5);
    expect_status(w, XID(1), 200);
    credentialed(w, 2, 1, UNAUTHORIZED);
    (void)world_wait(w, ROLE_JUDGE, M_NEED_RELEASE, XID(2));
    w->version = 7;
    world_credential(w, XID(2), 60000, "up.test", "c", "Bearer " TOKEN);
    world_wait_up(w, 2, "GET /2 HTTP/1.1\r\n");
    world_answer(w, 2, UNAUTHORIZED);
    expect_status(w, XID(2), 401);
    assert_int_equal(world_count(w, ROLE_JUDGE, M_NEED_RELEASE, XID(2)), 1);
    world_credential(w, XID(7), 0, "up.test", "c", "Bearer " TOKEN); /* what is sent once stays so */
    world_forward(w, XID(7), once);
    world_wait_up(w, 3, "GET /7 HTTP/1.1\r\n");
    world_answer(w, 3, UNAUTHORIZED);
    expect_status(w, XID(7), 401);
    w->version = 0; /* of the store: nobody has another one */
    credentialed(w, 8, 4, UNAUTHORIZED);
    expect_status(w, XID(8), 401);
    assert_int_equal(world_count(w, ROLE_JUDGE, M_NEED_RELEASE, XID(7)), 0);
    assert_int_equal(world_count(w, ROLE_JUDGE, M_NEED_RELEASE, XID(8)), 0);
    world_free(&w);
}

/* Where the source has no other value, or says nothing, nothing is sent again: the answer that came is handed on. */
static void a_refusal_is_handed_on_where_there_is_no_other(void **state)
{
    struct world *w = world_new();
    w->version = 5;
    credentialed(w, 1, 0, UNAUTHORIZED);
    (void)world_wait(w, ROLE_JUDGE, M_NEED_RELEASE, XID(1));
    assert_int_equal(world_count(w, ROLE_JUDGE, M_RESULT, XID(1)), 0);
    world_credential(w, XID(1), 60000, "up.test", "c", "Bearer " TOKEN);
    expect_status(w, XID(1), 401);
    expect_answer(w, XID(1), "no 1", true);
    credentialed(w, 2, 1, UNAUTHORIZED);
    (void)world_wait(w, ROLE_JUDGE, M_NEED_RELEASE, XID(2));
    chan_free(&w->peer[ROLE_KEEPER]);
    expect_status(w, XID(2), 401);
    assert_int_equal(w->nups, 2);
    world_free(&w);
    w = world_new();
    w->version = 5;
    world_say(w, ROLE_JUDGE, M_NEED_RELEASE, XID(1), SPAN_NONE); /* of nothing that is there */
    credentialed(w, 1, 0, UNAUTHORIZED);
    (void)world_wait(w, ROLE_JUDGE, M_NEED_RELEASE, XID(1));
    assert_int_equal(world_count(w, ROLE_JUDGE, M_RESULT, XID(1)), 0);
    world_say(w, ROLE_JUDGE, M_NEED_RELEASE, XID(1), SPAN_NONE); /* its source says nothing */
    expect_status(w, XID(1), 401);
    expect_answer(w, XID(1), "no 1", true);
    assert_int_equal(w->nups, 1);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_credential_is_renewed_once),
        cmocka_unit_test(a_refusal_is_handed_on_where_there_is_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
