/* The judge and leases that their holders narrowed by themselves: what stands in one bounds the request, and nothing
 * happens before the keeper has said that nobody changed it. */
#include "common/lease/narrowed.h"
#include "proxy/lease/wire_swap.h"
#include "tests/play/judge/play_lease.h"

#include <stdio.h>

#define POLICY                                                                                                       \
    "allow read GET / cred=4\nallow write PUT / cred=4 rule=w\nhold write POST / cred=4 rule=h\nlease-required\n"
#define NOW_MS 1767226600000ull /* when a play begins */

static const struct wire_layer reads = {.effects = 1u << EFFECT_READ}, inside = {.paths = {1, {SPAN("/in/**")}}};

/* What who has `from` makes of it. */
static struct span made(struct span from, const struct wire_layer *l, uint64_t until)
{
    static uint8_t room[8][LEASE_NARROWED_MAX + 2];
    static unsigned at;
    uint8_t *to = room[at++ % 8];
    struct dynbuf b;
    dynbuf_init(&b, LEASE_NARROWED_MAX + 1);
    assert_int_equal(lease_narrowed_make(from, l, until, &b), 0);
    memcpy(to, b.p, b.n);
    to[b.n] = '\0';
    struct span s = span_of(to, b.n);
    dynbuf_free(&b);
    return s;
}

static struct span of_lease(uint8_t n, const struct wire_layer *l)
{
    return made(span_str(text_of(n)), l, 0);
}

static struct ask *with(struct ask *a, struct span text)
{
    static char value[8][LEASE_NARROWED_MAX + 16];
    static unsigned at;
    char *to = value[at++ % 8];
    snprintf(to, sizeof(value[0]), "Bearer %.*s", SPAN_FMT(text));
    a->header = "Authorization";
    a->value = to;
    return a;
}

static void keeper_is_asked(struct play *p, unsigned n, struct span text, enum wire_verified found)
{
    struct lease_narrowed is;
    struct digest mac;
    struct id lease;
    struct msg_in m = expect(p, ROLE_KEEPER, M_LEASE_NARROWED, XID(n));
    assert_int_equal(lease_narrowed_read(text, &is), 0);
    msg_get_id(&m, &lease);
    assert_in_range(lease.b[0], 1, 2);
    assert_int_equal(msg_get_u8(&m), LEASE_GITHUB);
    assert_true(span_eq(msg_get_span(&m, LEASE_NARROWED_MAX), is.layers));
    msg_get_digest(&m, &mac);
    assert_int_equal(msg_end(&m), 0);
    assert_memory_equal(&mac, &is.mac, sizeof(mac));
    expect_nothing(p);
    msg_put_u8(from(p), (uint8_t)found);
    assert_int_equal(give(p, ROLE_KEEPER, 0, M_LEASE_VERIFIED, XID(n), -1), 0);
}

static void good_for_less(void **state)
{
    struct play p;
    struct wire_lease l;
    open_with(&p, POLICY, &l);
    struct span less = of_lease(1, &inside), least = made(less, &reads, NOW_MS + 60000);
    give_request(&p, XID(1), with(GET("/in/x"), less));
    keeper_is_asked(&p, 1, less, VERIFIED_RIGHT);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_passes(&p, 1);
    give_request(&p, XID(2), with(GET("/x"), less));
    expect_refused(&p, 2, "lease-not-for-this");
    give_request(&p, XID(3), with(&(struct ask){.method = "PUT", .path = "/in/x"}, least));
    expect_refused(&p, 3, "lease-not-for-this");
    give_request(&p, XID(4), with(GET("/x"), least));
    expect_refused(&p, 4, "lease-not-for-this");
    give_request(&p, XID(5), with(GET("/in/x"), least));
    keeper_is_asked(&p, 5, least, VERIFIED_RIGHT);
    expect_passes(&p, 5);
    give_request(&p, XID(6), with(GET("/in/x"), made(less, &reads, NOW_MS)));
    expect_refused(&p, 6, "lease-ended");
    l.state = LEASE_REVOKED;
    tell_lease(&p, &l);
    give_request(&p, XID(7), with(GET("/in/x"), less));
    expect_refused(&p, 7, "lease-ended");
    play_close(&p);
}

/* Of an IPv6 address the colons are its own. */
static void bound_to_an_address(void **state)
{
    struct play p;
    struct wire_lease l;
    static const char *const hosts[] = {"[2001:db8::1]:8443", "[2001:db8::2]:443", "[2001:db8::1]:",
                                        "[2001:db8::1",       "[2001:db8::1]",     "[2001:db8::1]:443"};
    open_with(&p, POLICY "at-an-address\n", &l);
    for (unsigned i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        const struct wire_layer there = {.hosts = {1, {span_str(hosts[i])}}};
        struct ask a = {.host = "[2001:db8::1]", .method = "GET", .path = "/x"};
        struct span less = of_lease(1, &there);
        give_request(&p, XID(i + 1), with(&a, less));
        if (i < 4) {
            expect_refused(&p, i + 1, "lease-not-for-this");
            continue;
        }
        keeper_is_asked(&p, i + 1, less, VERIFIED_RIGHT);
        if (i == 4) {
            expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
            expect(&p, ROLE_KEEPER, M_RELEASE, XID(i + 1));
        }
        expect_passes(&p, i + 1);
    }
    play_close(&p);
}

/* Who has it writes the patterns and the path, and the judge has others to serve. */
static void patterns_that_take_long(void **state)
{
    struct play p;
    struct wire_lease l;
    static char pattern[410], path[2][4000];
    open_with(&p, POLICY, &l);
    memset(pattern, 'a', sizeof(pattern));
    memcpy(pattern, "/in/*", 5);
    memcpy(pattern + sizeof(pattern) - 2, "**", 2);
    for (unsigned i = 0; i < 2; i++) { /* one below, one above */
        memset(path[i], 'a', 2500 + 100 * i);
        memcpy(path[i], "/in/*", 5);
    }
    const struct wire_layer slow = {.paths = {1, {span_of(pattern, sizeof(pattern))}}};
    struct span less = of_lease(1, &slow);
    give_request(&p, XID(1), with(GET(path[0]), less));
    keeper_is_asked(&p, 1, less, VERIFIED_RIGHT);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_passes(&p, 1);
    give_request(&p, XID(2), with(GET(path[1]), less));
    expect_refused(&p, 2, "lease-not-for-this");
    play_close(&p);
}

/* A write waits for a person, with a lease that its holder made good for a second, and two have passed. */
static void held_past_its_time(struct play *p, struct wire_lease *l)
{
    open_with(p, POLICY, l);
    struct span less = made(span_str(text_of(1)), &inside, NOW_MS + 1000);
    give_request(p, XID(1), with(&(struct ask){.method = "POST", .path = "/in/x", .body = "b"}, less));
    keeper_is_asked(p, 1, less, VERIFIED_RIGHT);
    expect_ticket_open(p, XID(1));
    give_ticket(p, XID(1), 1, TICKET_PENDING);
    play_time(p, 2000);
}

/* What its holder added is asked about again before it is sent: its time may be over by then. */
static void also_when_it_has_waited(void **state)
{
    struct play p;
    struct wire_lease l;
    held_past_its_time(&p, &l);
    l.nlayers = 1; /* and so it is asked about now */
    tell_lease(&p, &l);
    expect_refused(&p, 1, "lease-ended");
    play_close(&p);
}

/* An approval is not used up for one whose time is over. */
static void what_is_approved_too_late_stays_approved(void **state)
{
    struct play p;
    struct wire_lease l;
    held_past_its_time(&p, &l);
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_refused(&p, 1, "lease-ended");
    play_close(&p);
}

static void socket_is_closed(struct play *p, unsigned n)
{
    struct dynbuf *b = from(p);
    msg_put_u64(b, 0);
    msg_put_u64(b, 0);
    msg_put_u16(b, 1008);
    assert_int_equal(give(p, ROLE_CARRIER, 0, M_WS_ENDED, XID(n), -1), 0);
    give_result(p, XID(n), OUTCOME_ANSWERED, 101, true, "");
    (void)expect(p, ROLE_LEDGER, M_WEBSOCKET, XID(n));
}

/* As that of a whole lease does; what its holder gave no end goes on. */
static void its_end_ends_what_rides_on_it(void **state)
{
    struct play p;
    struct wire_lease l;
    open_with(&p, "allow read GET /in/s cred=4 ws send=1\n" POLICY, &l);
    struct span first = made(span_str(text_of(1)), &inside, NOW_MS + 3000);
    struct span next = made(first, &inside, NOW_MS + 9000), endless = of_lease(1, &inside);
    give_request(&p, XID(1), with(GET("/in/x"), made(next, &inside, NOW_MS + 1000)));
    keeper_is_asked(&p, 1, made(next, &inside, NOW_MS + 1000), VERIFIED_RIGHT);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), NULL);
    give_request(&p, XID(2), with(&(struct ask){.method = "GET", .path = "/in/s", .upgrade = true}, next));
    keeper_is_asked(&p, 2, next, VERIFIED_RIGHT);
    expect_forward(&p, XID(2), NULL);
    from(&p);
    assert_int_equal(give(&p, ROLE_CARRIER, 0, M_SWITCHED, XID(2), -1), 0);
    assert_int_equal(expect_outcome(&p, XID(2), false), OUTCOME_ANSWERED);
    give_request(&p, XID(3), with(GET("/in/y"), endless));
    keeper_is_asked(&p, 3, endless, VERIFIED_RIGHT);
    expect_forward(&p, XID(3), NULL);
    play_time(&p, 999);
    expect_nothing(&p);
    play_time(&p, 1);
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
    play_time(&p, 1999);
    expect_nothing(&p);
    give_result(&p, XID(1), OUTCOME_NOT_SENT, 0, false, "cancelled");
    expect_reply(&p, XID(1), 403, "lease-ended");
    expect_outcome(&p, XID(1), false);
    play_time(&p, 1);
    expect(&p, ROLE_CARRIER, M_WS_CLOSE, XID(2));
    play_time(&p, 20000);
    expect_nothing(&p);
    socket_is_closed(&p, 2);
    give_result(&p, XID(3), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(3), false);
    play_close(&p);
}

/* The lease of a token that it was asked for with ends with it, too. */
static void so_does_a_token_that_it_asked_for(void **state)
{
    struct play p;
    struct wire_lease asking, got, of_token = lease_of(1);
    struct dynbuf name;
    open_with(&p, "allow read GET /token cred=1\nof-answers asks-leased\n", &asking);
    asking = lease_of(2);
    asking.credential = SPAN("cred1");
    dynbuf_init(&name, 256);
    msg_put_span(&name, asking.credential);
    digest_of(dynbuf_span(&name), &asking.meaning);
    dynbuf_free(&name);
    tell_lease(&p, &asking);
    struct span less = made(span_str(text_of(2)), &reads, NOW_MS + 30000);
    give_request(&p, XID(1), with(GET("/token"), less));
    keeper_is_asked(&p, 1, less, VERIFIED_RIGHT);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    assert_true(expect_forward(&p, XID(1), NULL).swaps.n > 0);
    struct wire_swapped w = {.credential = SPAN("leased"),
                             .lease = {{3}},
                             .tag = of_token.tag,
                             .text = of_token.text,
                             .expires_ms = NOW_MS + 60000};
    struct dynbuf *b = from(&p);
    msg_put_u8(b, 1);
    wire_put_swapped(b, &w);
    assert_int_equal(give(&p, ROLE_CARRIER, 0, M_SWAP_TAKE, XID(1), -1), 0);
    struct msg_in m = expect(&p, ROLE_LEDGER, M_LEASE_TAKE, XID(1));
    assert_int_equal(msg_get_u8(&m), 1);
    assert_int_equal(wire_get_lease(&m, &got), 0);
    assert_true(id_eq(&got.parent, &asking.id) && got.expires_ms == NOW_MS + 30000);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(1), false);
    play_close(&p);
}

static void changed_it_is_refused(void **state)
{
    struct play p;
    struct wire_lease l;
    open_with(&p, POLICY, &l);
    struct span less = of_lease(1, &inside);
    give_request(&p, XID(1), with(GET("/in/x"), less));
    keeper_is_asked(&p, 1, less, VERIFIED_WRONG);
    struct wire_reply r = expect_reply(&p, XID(1), 403, "lease-unproven");
    assert_true(span_find(r.body, SPAN("narrowed")) < r.body.n);
    expect_recorded(&p, 1, "lease-unproven");
    give_request(&p, XID(2), with(GET("/in/x"), less));
    keeper_is_asked(&p, 2, less, VERIFIED_NOT);
    expect_reply(&p, XID(2), 503, "internal");
    expect_recorded(&p, 2, "internal");
    give_request(&p, XID(3), with(GET("/in/x"), of_lease(2, &inside))); /* of which nobody was told */
    expect_refused(&p, 3, "lease-unknown");
    struct ask twice = {.method = "GET", .path = "/in/x", .query = (const char *)less.p};
    give_request(&p, XID(4), with(&twice, less));
    expect_refused(&p, 4, "lease-misplaced");
    play_close(&p);
}

/* Its digest stands in each that was made of it, so it says nothing of who has what; once it is proved it does. */
static void another_sandboxs_has_leaked_if_it_is_right(void **state)
{
    struct play p;
    struct wire_lease l = lease_of(1);
    play_all(&p, POLICY);
    l.sandbox = SPAN("another");
    tell_lease(&p, &l);
    struct span less = of_lease(1, &inside);
    give_request(&p, XID(1), with(GET("/in/x"), less));
    keeper_is_asked(&p, 1, less, VERIFIED_WRONG);
    expect_refused(&p, 1, "lease-unproven");
    give_request(&p, XID(2), with(GET("/in/x"), less));
    keeper_is_asked(&p, 2, less, VERIFIED_RIGHT);
    (void)expect(&p, ROLE_LEDGER, M_LEASE_LEAK, XID(2));
    expect_refused(&p, 2, "lease-leaked");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_for_less),
        cmocka_unit_test(bound_to_an_address),
        cmocka_unit_test(patterns_that_take_long),
        cmocka_unit_test(also_when_it_has_waited),
        cmocka_unit_test(what_is_approved_too_late_stays_approved),
        cmocka_unit_test(its_end_ends_what_rides_on_it),
        cmocka_unit_test(so_does_a_token_that_it_asked_for),
        cmocka_unit_test(changed_it_is_refused),
        cmocka_unit_test(another_sandboxs_has_leaked_if_it_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
