/* What one sandbox spends is its own: at its limit and past it, another one is answered as ever. */
#include <stdio.h>

#include "proxy/judge/state.h"
#include "tests/play/play.h"

#define READS "allow read GET /r rule=reads\n"

static void with_a_neighbour(struct play *p, const char *policy)
{
    play_all(p, policy);
    play_sandbox(p, "other", "its", "token-of-other", false);
    play_peer(p, ROLE_FRONT, OTHER_FRONT, "other");
}

/* One read from its arrival to its record. The number the carrier is to use; *told: it was given it just now. */
static uint32_t reads(struct play *p, uint64_t xid, const char *host, bool *told)
{
    struct ask a = {.host = host, .method = "GET", .path = "/r"};
    struct wire_upstream u = {.number = 0};
    give_request(p, xid, &a);
    *told = p->first < p->n && p->out[p->first].type == M_UPSTREAM;
    if (*told) {
        struct msg_in m = expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
        assert_int_equal(wire_get_upstream(&m, &u), 0);
    }
    struct wire_forward f = expect_forward(p, xid, NULL);
    assert_true(!*told || f.upstream == u.number);
    give_result(p, xid, OUTCOME_ANSWERED, 200, true, "");
    expect(p, ROLE_LEDGER, M_OUTCOME, xid);
    return f.upstream;
}

/* F32 F36: more names than the carrier has places for, under one wildcard. */
static void names_without_end(void **state)
{
    struct play p;
    char host[64];
    bool told;
    with_a_neighbour(&p, READS);
    uint32_t mine = reads(&p, XID(1), "mine.example", &told);
    uint32_t others = reads(&p, OTHER(1), "its.example", &told);
    assert_true(told);
    for (unsigned i = 0; i < 9000; i++) {
        snprintf(host, sizeof(host), "n%u.wide.example", i);
        uint32_t n = reads(&p, XID(2 + i), host, &told);
        assert_true(told && n % WIRE_UPSTREAMS_MAX != others % WIRE_UPSTREAMS_MAX); /* its place is not taken */
        assert_true(n != mine);                                                     /* no number means two places */
    }
    assert_int_equal(reads(&p, OTHER(2), "its.example", &told), others);
    assert_false(told);
    assert_true(reads(&p, XID(9999), "mine.example", &told) != mine); /* told anew, and goes on */
    assert_true(told);
    play_close(&p);
    covers("F32 F36");
}

/* F32: every place of the table is taken, by sandboxes that each keep to their share. */
static void a_full_table_takes_from_the_largest(void **state)
{
    enum { MANY = WIRE_UPSTREAMS_MAX / UPSTREAMS_EACH };
    struct play p;
    char host[64], name[16];
    bool told;
    with_a_neighbour(&p, READS);
    uint32_t others = reads(&p, OTHER(1), "its.example", &told);
    for (unsigned s = 0; s < MANY; s++) {
        uint64_t front = 100 + s;
        snprintf(name, sizeof(name), "many%u", s);
        play_sandbox(&p, name, name, name, false);
        play_peer(&p, ROLE_FRONT, front, name);
        for (unsigned i = 0; i < UPSTREAMS_EACH; i++) {
            snprintf(host, sizeof(host), "n%u.%s.example", i, name);
            reads(&p, front << 40 | (i + 1), host, &told);
        }
    }
    assert_int_equal(reads(&p, OTHER(2), "its.example", &told), others);
    assert_false(told);
    reads(&p, OTHER(3), "more.example", &told); /* there is always room for one who has little */
    assert_int_equal(reads(&p, OTHER(4), "its.example", &told), others);
    assert_false(told);
    play_close(&p);
    covers("F32 F36");
}

/* F32: nothing of an earlier policy stays behind, whatever is still under way. */
static void reloads_without_end(void **state)
{
    struct play p;
    bool told;
    with_a_neighbour(&p, READS);
    give_request(&p, XID(1), &(struct ask){.host = "slow.example", .method = "GET", .path = "/r"});
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(1), NULL);
    for (unsigned i = 0; i < 9000; i++) {
        play_policy(&p, READS);
        uint32_t n = reads(&p, OTHER(i + 1), "its.example", &told);
        assert_true(told && n % WIRE_UPSTREAMS_MAX < 4);
    }
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    expect(&p, ROLE_LEDGER, M_OUTCOME, XID(1));
    play_close(&p);
    covers("F32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_without_end),
        cmocka_unit_test(a_full_table_takes_from_the_largest),
        cmocka_unit_test(reloads_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
