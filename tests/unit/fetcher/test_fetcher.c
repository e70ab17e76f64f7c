/* The fetcher, with this test as its parent, its keeper and its resolver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "policy/policy.h"
#include "proxy/fetcher/fetcher.h"
#include "proxy/msgs.h"

static struct fetcher f;
static struct chan *keeper;
static struct {
    uint64_t id;
    char why[FETCH_WHY_MAX + 1];
} told;

static void on_told(void *arg, struct chan *c, struct frame *frame)
{
    struct msg_in m = msg_in(frame->payload);
    struct wire_fetched w;
    assert_int_equal(frame->type, M_FETCHED);
    assert_int_equal(wire_get_fetched(&m, &w), 0);
    told.id = frame->id;
    memcpy(told.why, w.why.p, w.why.n);
    told.why[w.why.n] = '\0';
    loop_stop(f.loop);
}

static void on_gone(void *arg, struct chan *c)
{
    fail_msg("the fetcher hung up");
}

static int setup(void **state)
{
    static const struct chan_ops ops = {on_told, on_gone};
    int fd[2];
    f = (struct fetcher){.loop = loop_new()};
    if (f.loop == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) != 0)
        return -1;
    fetcher_keeper(&f, fd[0]);
    keeper = chan_new(f.loop, fd[1], &ops, NULL);
    return keeper != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    chan_free(&keeper);
    chan_free(&f.keeper);
    loop_free(&f.loop);
    return 0;
}

static void too_late(void *arg)
{
    fail_msg("nobody was told anything");
}

static void is_told(uint64_t id, const char *why)
{
    struct timer *t = timer_new(f.loop, too_late, NULL);
    timer_set(t, 60000);
    assert_int_equal(loop_run(f.loop), 0);
    timer_free(&t);
    assert_int_equal(told.id, id);
    assert_non_null(strstr(told.why, why));
}

/* Who changes one of the two says the other again, from where it stands. */
static void the_paths_of_trust_are_kept(void **state)
{
    assert_int_equal(fetcher_trust(&f, SPAN("/etc/roots.pem"), span_str(f.crl)), 0);
    assert_int_equal(fetcher_trust(&f, span_str(f.roots), SPAN("/etc/lists.pem")), 0);
    assert_string_equal(f.roots, "/etc/roots.pem");
    assert_string_equal(f.crl, "/etc/lists.pem");
    assert_int_equal(fetcher_trust(&f, SPAN("/roots"), span_str(f.crl)), 0);
    assert_string_equal(f.roots, "/roots");
    assert_string_equal(f.crl, "/etc/lists.pem");
    assert_int_equal(fetcher_trust(&f, span_str(f.roots), SPAN_NONE), 0);
    assert_string_equal(f.roots, "/roots");
    assert_string_equal(f.crl, "");
    assert_int_equal(fetcher_trust(&f, span_of(f.roots, sizeof(f.roots)), SPAN_NONE), -1);
}

/* The keeper asks a source once, and all wait for that answer. */
static void a_question_that_cannot_be_read_is_answered(void **state)
{
    struct wire_fetch w = {.kind = SOURCE_OAUTH2, .timeout_ms = 1000, .to = {.host = SPAN("login.example")}};
    struct dynbuf *b;
    assert_int_equal(chan_send(keeper, M_FETCH, 7, SPAN("none")), 0);
    is_told(7, "cannot be read");
    b = chan_begin(keeper, M_FETCH, 8);
    wire_put_fetch(b, &w);
    assert_int_equal(chan_commit(keeper), 0);
    is_told(8, "resolver");
    w.timeout_ms = FETCH_TIMEOUT_MAX_MS + 1;
    b = chan_begin(keeper, M_FETCH, 9);
    wire_put_fetch(b, &w);
    assert_int_equal(chan_commit(keeper), 0);
    is_told(9, "cannot be read");
}

/* ---- what is looked up for a job ---- */

static struct chan *resolver, *parent;
static struct {
    unsigned n, jobs;
    uint64_t id;
    char host[64];
    enum job_kind kind;
    int fd;
} seen;

static void on_question(void *arg, struct chan *c, struct frame *frame)
{
    struct msg_in m = msg_in(frame->payload);
    assert_int_equal(frame->type, M_RESOLVE);
    struct span host = msg_get_span(&m, sizeof(seen.host) - 1);
    memcpy(seen.host, host.p, host.n);
    seen.host[host.n] = '\0';
    seen.id = frame->id;
    seen.n++;
    loop_stop(f.loop);
}

static void on_job(void *arg, struct chan *c, struct frame *frame)
{
    struct msg_in m = msg_in(frame->payload);
    if (frame->type != M_JOB)
        return; /* M_JOB_END */
    seen.kind = (enum job_kind)msg_get_u8(&m);
    seen.jobs++;
    seen.fd = frame_take_fd(frame, 0);
    loop_stop(f.loop);
}

static int setup_with_peers(void **state)
{
    static const struct chan_ops of_resolver = {on_question, on_gone}, of_parent = {on_job, on_gone},
                                 of_fetcher = {on_told, on_gone};
    int fd[2], other[2];
    memset(&seen, 0, sizeof(seen));
    if (setup(state) != 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, other) != 0)
        return -1;
    fetcher_resolver(&f, fd[0]);
    resolver = chan_new(f.loop, fd[1], &of_resolver, NULL);
    f.parent = chan_new(f.loop, other[0], &of_fetcher, NULL);
    parent = chan_new(f.loop, other[1], &of_parent, NULL);
    return resolver != NULL && f.parent != NULL && parent != NULL ? 0 : -1;
}

static int teardown_with_peers(void **state)
{
    fetcher_keeper(&f, -1); /* ends its errands */
    chan_free(&f.resolver);
    chan_free(&resolver);
    chan_free(&f.parent);
    chan_free(&parent);
    return teardown(state);
}

static void run(void)
{
    struct timer *t = timer_new(f.loop, too_late, NULL);
    timer_set(t, 60000);
    assert_int_equal(loop_run(f.loop), 0);
    timer_free(&t);
}

static void asks(uint64_t id, const struct wire_fetch *w)
{
    struct dynbuf *b = chan_begin(keeper, M_FETCH, id);
    wire_put_fetch(b, w);
    assert_int_equal(chan_commit(keeper), 0);
    run();
}

/* So many addresses of documentation; 0: a refusal. */
static void resolves(unsigned n)
{
    struct dynbuf *b = chan_begin(resolver, M_ADDRESSES, seen.id);
    msg_put_u8(b, (uint8_t)n);
    for (unsigned i = 0; i < n; i++) {
        const uint8_t address[] = {192, 0, 2, (uint8_t)(seen.n * 10 + i)};
        msg_put_u8(b, 4);
        msg_put_span(b, span_of(address, sizeof(address)));
    }
    if (n == 0) {
        msg_put_span(b, SPAN("private-address"));
        msg_put_span(b, SPAN("it is private"));
    }
    assert_int_equal(chan_commit(resolver), 0);
}

static const struct wire_fetch program = {
    .kind = SOURCE_EXEC,
    .timeout_ms = 9000,
    .nhosts = 2,
    .host = {{.host = SPAN("one.example"), .port = 443}, {.host = SPAN("two.example"), .port = 8443}}};

/* One after the other, and the job has the addresses of both in the order of the policy. */
static void the_hosts_of_a_program_are_looked_up_before_it_starts(void **state)
{
    static const uint8_t want[] = {2, 1, 4,   0, 0, 0,  4, 192, 0, 2, 10, 2,   4, 0, 0,
                                   0, 4, 192, 0, 2, 20, 4, 0,   0, 0, 4,  192, 0, 2, 21};
    struct frame frame;
    struct dynbuf got;
    asks(1, &program);
    assert_string_equal(seen.host, "one.example");
    resolves(1);
    run();
    assert_string_equal(seen.host, "two.example");
    assert_int_equal(seen.jobs, 0);
    resolves(2);
    run();
    assert_int_equal(seen.jobs, 1);
    assert_int_equal(seen.kind, JOB_PROGRAM);
    dynbuf_init(&got, CHAN_PAYLOAD_MAX);
    assert_int_equal(fcntl(seen.fd, F_SETFL, 0), 0);
    assert_int_equal(chan_read_one(seen.fd, &frame, &got), 0);
    assert_true(got.n > sizeof(want));
    assert_memory_equal(got.p, want, sizeof(want));
    dynbuf_free(&got);
    close(seen.fd);
}

static void a_host_that_may_not_be_dialled_is_named_and_nothing_starts(void **state)
{
    asks(1, &program);
    resolves(1);
    run();
    resolves(0);
    is_told(1, "two.example, which its program may reach, cannot be: it is private");
    assert_int_equal(seen.jobs, 0);
}

static void a_program_without_hosts_starts_at_once(void **state)
{
    asks(1, &(struct wire_fetch){.kind = SOURCE_EXEC, .timeout_ms = 9000});
    assert_true(seen.n == 0 && seen.jobs == 1 && seen.kind == JOB_PROGRAM);
    close(seen.fd);
}

/* People who sign in and credentials that are fetched wait for none of the other. */
static void each_has_places_of_its_own(void **state)
{
    const struct wire_fetch sign_in = {
        .kind = FETCH_OIDC, .timeout_ms = 9000, .to = {.host = SPAN("login.example"), .port = 443}};
    const struct wire_fetch source = {
        .kind = SOURCE_OAUTH2, .timeout_ms = 9000, .to = {.host = SPAN("token.example"), .port = 443}};
    uint64_t id = 1;
    for (unsigned i = 0; i < ERRANDS_SIGN_IN; i++)
        asks(id++, &sign_in);
    struct dynbuf *b = chan_begin(keeper, M_FETCH, id);
    wire_put_fetch(b, &sign_in);
    assert_int_equal(chan_commit(keeper), 0);
    is_told(id++, "too many values are being fetched; try again shortly");
    for (unsigned i = 0; i < ERRANDS_MAX - ERRANDS_SIGN_IN; i++) {
        asks(id++, &source);
        assert_string_equal(seen.host, "token.example");
    }
    b = chan_begin(keeper, M_FETCH, id);
    wire_put_fetch(b, &source);
    assert_int_equal(chan_commit(keeper), 0);
    is_told(id, "too many values are being fetched; try again shortly");
    assert_int_equal(f.nsign_in, ERRANDS_SIGN_IN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_has_places_of_its_own, setup_with_peers, teardown_with_peers),
        cmocka_unit_test_setup_teardown(the_paths_of_trust_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_question_that_cannot_be_read_is_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(the_hosts_of_a_program_are_looked_up_before_it_starts, setup_with_peers,
                                        teardown_with_peers),
        cmocka_unit_test_setup_teardown(a_host_that_may_not_be_dialled_is_named_and_nothing_starts, setup_with_peers,
                                        teardown_with_peers),
        cmocka_unit_test_setup_teardown(a_program_without_hosts_starts_at_once, setup_with_peers,
                                        teardown_with_peers),
    };
    return cmocka_run_group_tests_name("fetcher", tests, NULL, NULL);
}
