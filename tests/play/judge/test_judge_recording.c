/* What is recorded of an exchange is played again by a judge alone, and shows what it would say otherwise. */
#include "tests/play/judge/play_lease.h"

#include <stdlib.h>

#include "proxy/judge/recording/replay.h"

static struct dynbuf file;

static size_t room = SIZE_MAX;

static int sink(void *arg, struct span bytes)
{
    (void)arg;
    if (bytes.n > room - file.n)
        return -1;
    assert_int_equal(dynbuf_add(&file, bytes), 0);
    return 0;
}

static struct recorder recorder;

/* One held write, from its request to its outcome, of two that come; a third comes when nothing is recorded any more.
 */
static void record(struct play *p)
{
    struct span body;
    dynbuf_init(&file, 1 << 20);
    play_all(p, "hold write POST /w rule=writes cred=1\nallow read GET / rule=reads\n");
    recorder = (struct recorder){.judge = p->j, .sink = sink};
    p->recorder = &recorder;
    give_request(p, XID(1), GET("/before"));
    expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(p, ROLE_KEEPER, M_RELEASE, XID(1));
    (void)expect_forward(p, XID(1), &body);
    recorder_set(&recorder, XID(0), XID(1000));
    give_request(p, XID(2), POST("/w", "hello"));
    struct digest d = expect_ticket_open(p, XID(2)).record.request;
    give_ticket(p, XID(2), 1, TICKET_PENDING);
    play_time(p, 10000);
    give_changed(p, 1, TICKET_APPROVED, "ada", "");
    expect(p, ROLE_LEDGER, M_CLAIM, XID(2));
    give_claimed(p, XID(2), POST("/w", "hello"), &d);
    expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(p, ROLE_KEEPER, M_RELEASE, XID(2));
    (void)expect_forward(p, XID(2), &body);
    give_result(p, XID(2), OUTCOME_ANSWERED, 201, true, "");
    assert_int_equal(expect_outcome(p, XID(2), true), OUTCOME_ANSWERED);
    recorder_set(&recorder, 0, 0);
    give_result(p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    assert_int_equal(expect_outcome(p, XID(1), false), OUTCOME_ANSWERED);
    play_close(p);
}

static int play_again(uint64_t xid, struct replay_result *r, char *said, size_t cap, struct err *e)
{
    FILE *out = fmemopen(said, cap, "w");
    assert_non_null(out);
    int rc = replay_run(dynbuf_span(&file), xid, out, r, e);
    fclose(out);
    return rc;
}

static void what_is_recorded_is_said_again(void **state)
{
    static struct play p;
    static char said[8192];
    struct replay_result r;
    struct err e = {{0}};
    (void)state;
    record(&p);
    if (play_again(XID(2), &r, said, sizeof(said), &e) != 0)
        fail_msg("%s", e.text);
    if (r.differs != 0)
        fail_msg("%s", said);
    assert_true(r.heard == 5 && r.said == 6);
    assert_string_equal(play_again(XID(1), &r, said, sizeof(said), &e) != 0 ? e.text : "",
                        "the exchange is not in it");
    assert_int_equal(play_again(XID(3), &r, said, sizeof(said), &e), -1);
    dynbuf_free(&file);
}

static void another_policy_says_something_else(void **state)
{
    static struct play p;
    static char said[8192];
    struct replay_result r;
    struct err e = {{0}};
    (void)state;
    record(&p);
    size_t at = span_find(dynbuf_span(&file), SPAN("hold write"));
    assert_true(at < file.n);
    memcpy(file.p + at, "deny", 4);
    assert_int_equal(play_again(XID(2), &r, said, sizeof(said), &e), 0);
    assert_true(r.differs > 0);
    assert_non_null(strstr(said, "! front     39 REPLY"));
    assert_non_null(strstr(said, "? ledger    80 TICKET_OPEN"));
    dynbuf_free(&file);
}

/* One byte of what was said then: only that message is another one. */
static void a_message_with_another_byte_is_shown(void **state)
{
    static struct play p;
    static char said[8192];
    struct replay_result r;
    struct err e = {{0}};
    size_t last = 0;
    (void)state;
    record(&p);
    for (size_t at = 0; at + 5 <= file.n; at++)
        if (memcmp(file.p + at, "hello", 5) == 0)
            last = at;
    file.p[last] = 'j'; /* as it was forwarded */
    assert_int_equal(play_again(XID(2), &r, said, sizeof(said), &e), 0);
    assert_int_equal(r.differs, 1);
    assert_non_null(strstr(said, "! carrier   51 FORWARD"));
    assert_non_null(strstr(said, "says something else now"));
    dynbuf_free(&file);
}

/* Cut anywhere, or with any byte another one, it is played as far as it goes, or refused. */
static void a_broken_file_is_refused(void **state)
{
    static struct play p;
    static char said[8192];
    struct replay_result r;
    struct err e;
    (void)state;
    record(&p);
    size_t whole = file.n;
    for (file.n = 0; file.n < whole; file.n += 1 + file.n / 64)
        (void)play_again(XID(2), &r, said, sizeof(said), &e);
    file.n = whole - 1;
    assert_int_equal(play_again(XID(2), &r, said, sizeof(said), &e), -1);
    assert_non_null(strstr(e.text, "its end is missing"));
    file.n = whole;
    for (size_t i = 0; i < whole; i += 7) {
        file.p[i] ^= 0x55;
        (void)play_again(XID(2), &r, said, sizeof(said), &e);
        file.p[i] ^= 0x55;
    }
    assert_int_equal(play_again(XID(2), &r, said, sizeof(said), &e), 0);
    dynbuf_free(&file);
}

/* A recording with a hole in it would be played as if nothing were missing. */
static void what_does_not_fit_ends_the_recording(void **state)
{
    static struct play p;
    static uint8_t all[1u << 20];
    (void)state;
    record(&p);
    size_t whole = file.n;
    memcpy(all, file.p, whole);
    dynbuf_free(&file);
    for (room = 100; room < whole; room += 100) {
        record(&p);
        assert_true(file.n > 0 && file.n <= room);
        assert_memory_equal(file.p, all, file.n);
        dynbuf_free(&file);
    }
    room = SIZE_MAX;
}

/* As one is that has begun anew: its leases are of that generation. */
static void begin_anew(struct play *p, uint64_t generation)
{
    const struct wire_sandbox s = {.name = SPAN("sb"), .session = SPAN("ses"), .generation = generation};
    struct dynbuf *b = from(p);
    wire_put_sandbox(b, &s);
    msg_put_u8(b, false);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
}

static void bring(struct play *p, unsigned n, const char *text)
{
    char value[LEASE_TEXT_MAX + 16];
    snprintf(value, sizeof(value), "Bearer %s", text);
    struct ask a = {.method = "GET", .path = "/x", .header = "Authorization", .value = value};
    give_request(p, XID(n), &a);
}

/* Leases that were there before, and one that ends meanwhile: own, bounded, another sandbox's. */
static void requests_with_leases_are_played_again(void **state)
{
    static struct play p;
    static char said[8192];
    struct wire_lease l[4];
    struct replay_result r;
    struct err e = {{0}};
    (void)state;
    dynbuf_init(&file, 1 << 20);
    play_all(&p, "allow read GET / cred=4\nlease-required\n");
    begin_anew(&p, 3);
    for (uint8_t i = 1; i < 4; i++) {
        l[i] = lease_of(i);
        l[i].generation = 3;
        if (i == 2)
            l[i].layer[l[i].nlayers++] = (struct wire_layer){.methods = {1, {SPAN("PUT")}}};
        if (i == 3)
            l[i].sandbox = SPAN("another");
        tell_lease(&p, &l[i]);
    }
    recorder = (struct recorder){.judge = p.j, .sink = sink};
    p.recorder = &recorder;
    recorder_set(&recorder, XID(0), XID(1000));
    bring(&p, 1, text_of(1));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_passes(&p, 1);
    bring(&p, 2, text_of(2));
    expect_refused(&p, 2, "lease-not-for-this");
    l[1].state = LEASE_REVOKED;
    l[1].ended_ms = 1;
    tell_lease(&p, &l[1]);
    bring(&p, 3, text_of(1));
    expect_refused(&p, 3, "lease-ended");
    bring(&p, 4, text_of(3));
    (void)expect(&p, ROLE_LEDGER, M_LEASE_LEAK, XID(4));
    expect_refused(&p, 4, "lease-leaked");
    play_close(&p);
    for (unsigned n = 1; n <= 4; n++)
        if (play_again(XID(n), &r, said, sizeof(said), &e) != 0 || r.differs != 0 || r.said == 0)
            fail_msg("%u: %s%s", n, e.text, said);
    dynbuf_free(&file);
}

/* A front of one command is that in a recording too: it has its lane. */
static void a_lane_of_its_own_is_recorded(void **state)
{
    static struct play p;
    static char said[8192];
    struct replay_result r;
    struct err e = {{0}};
    (void)state;
    dynbuf_init(&file, 1 << 20);
    play_all(&p, "");
    play_peer(&p, ROLE_FRONT, FRONT, "sb web 2.7");
    recorder = (struct recorder){.judge = p.j, .sink = sink};
    p.recorder = &recorder;
    recorder_set(&recorder, XID(0), XID(1000));
    give_request(&p, XID(1), &(struct ask){.host = "countersign.internal", .method = "GET", .path = "/v1/whoami"});
    expect_reply(&p, XID(1), 200, "{\"key\":\"lane\",\"value\":\"web\"}");
    play_close(&p);
    if (play_again(XID(1), &r, said, sizeof(said), &e) != 0 || r.differs != 0 || r.said == 0)
        fail_msg("%s%s", e.text, said);
    dynbuf_free(&file);
}

/* What its creator said that it may reach, it may reach in a recording too, and no more. */
static void a_narrowing_is_recorded(void **state)
{
    static const struct wire_sandbox s = {
        .name = SPAN("sb"), .session = SPAN("ses"), .generation = 3, .reach = SPAN("+n other.example\n")};
    static struct play p;
    static char said[8192];
    struct replay_result r;
    struct err e = {{0}};
    (void)state;
    dynbuf_init(&file, 1 << 20);
    play_all(&p, "allow read GET / rule=reads\n");
    struct dynbuf *b = from(&p);
    wire_put_sandbox(b, &s);
    msg_put_u8(b, false);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
    recorder = (struct recorder){.judge = p.j, .sink = sink};
    p.recorder = &recorder;
    recorder_set(&recorder, XID(0), XID(1000));
    give_request(&p, XID(1), GET("/x"));
    expect_reply(&p, XID(1), 403, "network-denied");
    expect_audit(&p, XID(1), "allow", "network-denied");
    play_close(&p);
    if (play_again(XID(1), &r, said, sizeof(said), &e) != 0 || r.differs != 0 || r.said == 0)
        fail_msg("%s%s", e.text, said);
    dynbuf_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_narrowing_is_recorded),
                                       cmocka_unit_test(a_lane_of_its_own_is_recorded),
                                       cmocka_unit_test(what_is_recorded_is_said_again),
                                       cmocka_unit_test(another_policy_says_something_else),
                                       cmocka_unit_test(a_message_with_another_byte_is_shown),
                                       cmocka_unit_test(a_broken_file_is_refused),
                                       cmocka_unit_test(what_does_not_fit_ends_the_recording),
                                       cmocka_unit_test(requests_with_leases_are_played_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
