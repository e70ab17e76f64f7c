/* The ledger between who asks for leases and who makes their texts. */
#include <sys/socket.h>

#include "proxy/ledger/ledger.h"
#include "tests/unit/ledger/ledger_fix.h"

static struct ledger l;
static struct chan *desk, *keeper, *judge;
static struct got {
    uint64_t id;
    struct id lease;
    bool ok;
    char text[LEASE_TEXT_MAX + 1];
} make, given, stubbed;
static unsigned ngiven, nmake, nstubbed, ntold;
static uint16_t wanted;

static void on_frame(void *arg, struct chan *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct id id;
    if (f->type == M_LEASE)
        ntold += msg_get_u16(&m);
    if (f->type == M_HEARD)
        assert_int_equal(chan_send(c, M_HEARD, f->id, SPAN_NONE), 0);
    if (f->type == M_LEASE_MAKE) {
        nmake++;
        make.id = f->id;
        msg_get_id(&m, &make.lease);
    }
    if (f->type == M_LEASE_STUBBED) {
        nstubbed++;
        stubbed.id = f->id;
        stubbed.ok = msg_get_bool(&m);
        (void)msg_get_span(&m, 512);
        msg_get_id(&m, &stubbed.lease);
    }
    if (f->type == M_LEASE_GIVEN) {
        ngiven++;
        given.id = f->id;
        assert_true(msg_get_bool(&m));
        (void)msg_get_span(&m, 512);
        msg_get_id(&m, &id);
        (void)msg_get_u64(&m);
        struct span text = msg_get_span(&m, LEASE_TEXT_MAX);
        memcpy(given.text, text.p, text.n);
        given.text[text.n] = '\0';
    }
    if (f->type == wanted)
        loop_stop(l.loop);
}

static void on_gone(void *arg, struct chan *c)
{
    fail_msg("the ledger closed a channel");
}

static struct chan *connect_as(unsigned role)
{
    static const struct chan_ops ops = {on_frame, on_gone};
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    ledger_peer(&l, role, fd[0]);
    return chan_new(l.loop, fd[1], &ops, NULL);
}

static void too_late(void *arg)
{
    if (arg != NULL)
        fail_msg("message %u did not come", wanted);
    loop_stop(l.loop);
}

/* Until that message comes; 0: a while. */
static void await(uint16_t type)
{
    struct timer *t = timer_new(l.loop, too_late, type ? &l : NULL);
    wanted = type;
    timer_set(t, type ? 60000 : 50);
    assert_int_equal(loop_run(l.loop), 0);
    timer_free(&t);
}

static int setup(void **state)
{
    struct wire_sandbox s = {.name = SPAN("vm1"), .session = SPAN("vm1"), .kind = SPAN("token")};
    assert_int_equal(fix_setup(state), 0);
    store_close(&fix);
    memset(&l, 0, sizeof(l));
    ngiven = nmake = nstubbed = ntold = 0;
    l.loop = loop_new();
    l.signer = signer_new();
    fix_config.changed = ledger_tell;
    fix_config.lease = ledger_lease_changed;
    fix_config.arg = &l;
    assert_int_equal(ledger_start(&l), 0);
    l.store = store_open(&fix_config, fix_wall, fix_boot, &fix_err);
    assert_non_null(l.store);
    store_data_key(l.store, secret_new(secret_bytes(fix_key)));
    desk = connect_as(ROLE_DESK);
    keeper = connect_as(ROLE_KEEPER);
    wire_put_sandbox(chan_begin(desk, M_SANDBOX_PUT, 5), &s);
    assert_int_equal(chan_commit(desk), 0);
    await(M_SANDBOX_DONE);
    return 0;
}

static int teardown(void **state)
{
    chan_free(&desk);
    chan_free(&keeper);
    ledger_stop(&l);
    loop_free(&l.loop);
    return fix_teardown(state);
}

static void ask_within(uint64_t id, const struct wire_layer *layer)
{
    struct wire_lease lease = {.sandbox = SPAN("vm1"),
                               .credential = SPAN("api"),
                               .by = SPAN("op"),
                               .format = LEASE_GITHUB,
                               .state = LEASE_LIVE};
    if (layer != NULL)
        lease.layer[lease.nlayers++] = *layer;
    wire_put_lease(chan_begin(desk, M_LEASE_ISSUE, id), &lease);
    assert_int_equal(chan_commit(desk), 0);
    await(M_LEASE_MAKE);
}

static void ask(uint64_t id)
{
    ask_within(id, NULL);
}

static void make_it(uint64_t number, const char *text)
{
    struct dynbuf *b = chan_begin(keeper, M_LEASE_MADE, number);
    msg_put_span(b, SPAN("ABCDEF"));
    msg_put_span(b, span_str(text));
    msg_put_span(b, SPAN_NONE);
    assert_int_equal(chan_commit(keeper), 0);
}

/* Both desks count their questions from one: the text of the one's lease is not for who asks the other. */
static void a_lease_whose_asker_has_gone_is_nobodys(void **state)
{
    for (unsigned told = 0; told < 2; told++) {
        ngiven = 0;
        ask(1);
        uint64_t number = make.id;
        chan_free(&desk);
        if (told)
            await(0); /* the ledger hears of its end before the answer comes, or the next desk */
        else
            desk = connect_as(ROLE_DESK);
        make_it(number, "ghp_of_the_first");
        await(0);
        assert_int_equal(fix_count("SELECT count(*) FROM lease"), told);
        if (told)
            desk = connect_as(ROLE_DESK);
        ask(1);
        make_it(make.id, told ? "ghp_of_the_third" : "ghp_of_the_second");
        await(M_LEASE_GIVEN);
        assert_int_equal(given.id, 1);
        assert_string_equal(given.text, told ? "ghp_of_the_third" : "ghp_of_the_second");
        assert_int_equal(ngiven, 1);
        assert_int_equal(fix_count("SELECT count(*) FROM lease"), told + 1);
    }
}

static void ask_stub(uint64_t xid)
{
    static const struct digest meaning = {{7}};
    struct dynbuf *b = chan_begin(judge, M_LEASE_STUB, xid);
    msg_put_span(b, SPAN("vm1"));
    msg_put_span(b, SPAN("api"));
    msg_put_digest(b, &meaning);
    msg_put_u8(b, LEASE_GITHUB);
    assert_int_equal(chan_commit(judge), 0);
}

/* As many as wait for the keeper may; then a sandbox is told so, and a person is still given one. */
static void sandboxes_do_not_stand_before_people(void **state)
{
    judge = connect_as(ROLE_JUDGE);
    for (unsigned n = 1; n <= STUBS_ASKED + 1; n++)
        ask_stub(n);
    await(M_LEASE_STUBBED);
    assert_true(stubbed.id == STUBS_ASKED + 1 && !stubbed.ok);
    while (nmake < STUBS_ASKED)
        await(M_LEASE_MAKE);
    ask(1);
    make_it(make.id, "ghp_of_a_person");
    await(M_LEASE_GIVEN);
    assert_string_equal(given.text, "ghp_of_a_person");
    chan_free(&keeper); /* who waited hears of it */
    keeper = connect_as(ROLE_KEEPER);
    while (nstubbed <= STUBS_ASKED)
        await(M_LEASE_STUBBED);
    assert_false(stubbed.ok);
    chan_free(&judge);
}

/* What is in the store is asked for anew, and has to come out as it was. */
static void a_stub_is_given_what_there_is(void **state)
{
    judge = connect_as(ROLE_JUDGE);
    ask_stub(1);
    await(M_LEASE_MAKE);
    struct id first = make.lease;
    make_it(make.id, "ghp_one");
    await(M_LEASE_STUBBED);
    assert_true(stubbed.id == 1 && stubbed.ok && id_eq(&stubbed.lease, &first));
    for (uint64_t n = 2; n <= 3; n++) {
        ask_stub(n);
        await(M_LEASE_MAKE);
        assert_true(id_eq(&make.lease, &first));
        make_it(make.id, n == 2 ? "ghp_one" : "ghp_of_another_key");
        await(M_LEASE_STUBBED);
        assert_true(stubbed.id == n && stubbed.ok == (n == 2));
    }
    assert_int_equal(fix_count("SELECT count(*) FROM lease"), 1);
    chan_free(&judge);
}

/* However long their bounds are. */
static void a_judge_is_told_of_all(void **state)
{
    static uint8_t bound[LEASE_BOUND_BYTES];
    static struct wire_layer layer;
    char text[] = "ghp_of_0";
    memset(bound, '/', sizeof(bound));
    for (unsigned n = 1; n <= 24; n++) {
        struct wire_list *lists[] = {&layer.hosts, &layer.methods, &layer.paths, &layer.ops};
        for (size_t i = 0; i < 4; i++)
            for (lists[i]->n = 0; lists[i]->n < LEASE_LIST_MAX; lists[i]->n++)
                lists[i]->v[lists[i]->n] = span_of(bound, n % 3 ? sizeof(bound) : 16 * n);
        ask_within(n, &layer);
        text[sizeof(text) - 2] = (char)('a' + n);
        make_it(make.id, text);
        await(M_LEASE_GIVEN);
    }
    judge = connect_as(ROLE_JUDGE);
    await(M_STORE);
    assert_int_equal(ntold, 24);
    chan_free(&judge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lease_whose_asker_has_gone_is_nobodys, setup, teardown),
        cmocka_unit_test_setup_teardown(sandboxes_do_not_stand_before_people, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stub_is_given_what_there_is, setup, teardown),
        cmocka_unit_test_setup_teardown(a_judge_is_told_of_all, setup, teardown),
    };
    return cmocka_run_group_tests_name("ledger leases", tests, NULL, NULL);
}
