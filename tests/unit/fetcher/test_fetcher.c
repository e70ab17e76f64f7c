/* The fetcher, with this test as its parent, its keeper and its resolver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_paths_of_trust_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_question_that_cannot_be_read_is_answered, setup, teardown),
    };
    return cmocka_run_group_tests_name("fetcher", tests, NULL, NULL);
}
