/* What the ledger hears of commands: of each before it is ordered, and once when it has ended. */
#include "tests/unit/warden/warden_world.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/runs/wire_run.h"

static const struct id RUN = {{9, 8, 7}};

static uint64_t asked(struct wire_run *r)
{
    uint64_t number = heard(LEDGER, M_RUN_BEGIN);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(wire_get_run(&m, r), 0);
    assert_int_equal(msg_end(&m), 0);
    return number;
}

static void answer(uint64_t number, bool ok)
{
    struct dynbuf b = fresh();
    msg_put_u8(&b, ok);
    msg_put_id(&b, &RUN);
    say(LEDGER, M_RUN_BEGUN, number, &b);
}

static void end_told(struct wire_run_end *e)
{
    struct id run;
    (void)heard(LEDGER, M_RUN_END);
    struct msg_in m = msg_in(got.payload);
    msg_get_id(&m, &run);
    assert_true(id_eq(&run, &RUN));
    assert_int_equal(wire_get_run_end(&m, e), 0);
    assert_int_equal(msg_end(&m), 0);
}

/* What comes at once would be there. */
static void nothing_is_told(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    say(DESK, M_SB_LIST, 77, NULL);
    assert_int_equal(heard(DESK, M_SB_LISTED), 77);
    assert_int_equal(poll(&p, 1, 0), 0);
}

static void nothing_is_ordered_before_it_is_written_down(void **state)
{
    int fd;
    struct wire_run r;
    struct wire_run_end e;
    struct digest want;
    (void)runs("box", 60000, &fd);
    execute(2, "box", 60000, 6);
    uint64_t number = asked(&r);
    assert_true(span_eq(r.sandbox, SPAN("box")));
    assert_true(span_eq(r.packages, SPAN(A_DIGEST)));
    assert_int_equal(r.generation, 7);
    assert_int_equal(r.number, 1);
    assert_true(span_eq(r.argv.word[0], SPAN("true")));
    assert_true(span_eq(r.env.word[0], SPAN("A"))); /* never its value */
    assert_true(span_eq(r.dir, SPAN("/tmp")));
    assert_null(memmem(got.payload.p, got.payload.n, "A=b", 3));
    nothing_is_told(fd);
    frame_of(fd, TALK_FED, 2, SPAN("\0\0\0\1")); /* of another, which ends it: this one's is told as lost */
    close(fd);
    exit_heard(2, SB_NOT_STARTED, 0);
    answer(number, true);
    (void)heard(LEDGER, M_SANDBOX_ENDED);
    (void)heard(LEDGER, M_RUN_LIFE);
    end_told(&e); /* was written down, and never ordered */
    assert_int_equal(e.how, SB_NOT_STARTED);
    digest_of(SPAN_NONE, &want);
    assert_memory_equal(&e.out[0].digest, &want, sizeof(want));
}

static void its_end_is_told_once_with_what_was_delivered(void **state)
{
    int fd;
    struct wire_run r;
    struct wire_run_end e;
    struct digest want;
    (void)runs("box", 60000, &fd);
    execute(2, "box", 60000, 6);
    answer(asked(&r), true);
    uint32_t run = told_type(fd, TALK_RUN, SPAN_NONE);
    frame_of(fd, TALK_OUT, run, SPAN("four"));
    (void)heard(DESK, M_SB_OUTPUT);
    frame_of(fd, TALK_ERR, run, SPAN("more")); /* past the most it may say */
    (void)heard(DESK, M_SB_OUTPUT);
    ends_with(fd, run, TALK_EXITED, 3);
    exit_heard(2, SB_EXITED, 3);
    end_told(&e);
    assert_int_equal(e.how, SB_EXITED);
    assert_int_equal(e.code, 3);
    assert_int_equal(e.user_us, 5);
    assert_int_equal(e.cut, 2);
    assert_int_equal(e.out[0].bytes, 4);
    digest_of(SPAN("four"), &want);
    assert_memory_equal(&e.out[0].digest, &want, sizeof(want));
    assert_int_equal(e.out[1].bytes, 2);
    digest_of(SPAN("mo"), &want);
    assert_memory_equal(&e.out[1].digest, &want, sizeof(want));
    execute(3, "box", 60000, 6); /* ends with its sandbox */
    answer(asked(&r), true);
    (void)told_type(fd, TALK_CREDIT, SPAN_NONE);
    (void)told_type(fd, TALK_RUN, SPAN_NONE);
    destroy("box");
    exit_heard(3, SB_LOST, 0);
    end_told(&e);
    assert_int_equal(e.how, SB_LOST);
    assert_true(span_eq(e.why, SPAN("it was destroyed")));
    end_heard("box");
    close(fd);
}

static void what_is_not_written_down_is_not_run(void **state)
{
    int fd;
    struct wire_run r;
    (void)runs("box", 60000, &fd);
    execute(2, "box", 60000, 6);
    answer(asked(&r), false);
    exit_heard(2, SB_NOT_STARTED, 0);
    assert_true(span_find(got.payload, SPAN("did not write it down")) < got.payload.n);
    ask_exec(3, "box", 60000, 6, TALK_NO_INPUT, true);
    answer(asked(&r), false);
    assert_int_equal(heard(DESK, M_SB_DETACHED), 3);
    assert_true(span_find(got.payload, SPAN("did not write it down")) < got.payload.n);
    execute(4, "box", 60000, 6);
    (void)asked(&r);
    close(side[LEDGER]); /* it ends between */
    side[LEDGER] = -1;
    exit_heard(4, SB_NOT_STARTED, 0);
    execute(5, "box", 60000, 6); /* and there is none */
    exit_heard(5, SB_NOT_STARTED, 0);
    assert_true(span_find(got.payload, SPAN("the ledger does not run")) < got.payload.n);
    nothing_is_told(fd);
    close(fd);
}

static void who_waits_no_more_has_nothing_run(void **state)
{
    int fd;
    struct wire_run r;
    struct wire_run_end e;
    (void)runs("box", 60000, &fd);
    execute(2, "box", 60000, 6);
    uint64_t number = asked(&r);
    say(DESK, M_SB_KILL, 2, NULL);
    nothing_is_told(fd);
    answer(number, true);
    end_told(&e);
    assert_int_equal(e.how, SB_NOT_STARTED);
    nothing_is_told(fd);
    answer(number, true); /* said twice, of nobody */
    end_told(&e);
    nothing_is_told(fd);
    close(fd);
}

static void what_stands_still_meanwhile_has_nothing_ordered(void **state)
{
    int fd;
    struct wire_run r;
    struct wire_run_end e;
    struct dynbuf b = fresh();
    uint64_t id = runs("box", 60000, &fd);
    execute(2, "box", 60000, 6);
    uint64_t number = asked(&r);
    msg_put_span(&b, SPAN("box"));
    msg_put_u8(&b, 1);
    say(DESK, M_SB_PAUSE, 20, &b);
    assert_int_equal(heard(PARENT, M_BOX_PAUSE), id);
    b = fresh();
    msg_put_u8(&b, PAUSE_CGROUP_1);
    msg_put_span(&b, SPAN(""));
    say(PARENT, M_BOX_PAUSED, id, &b);
    assert_int_equal(heard(DESK, M_SB_PAUSED), 20);
    (void)heard(LEDGER, M_RUN_LIFE);
    answer(number, true);
    exit_heard(2, SB_NOT_STARTED, 0);
    end_told(&e);
    assert_int_equal(e.how, SB_NOT_STARTED);
    nothing_is_told(fd);
    close(fd);
}

static void what_is_said_to_it_meanwhile_waits_behind_its_order(void **state)
{
    int fd;
    struct wire_run r;
    struct dynbuf b = fresh();
    (void)runs("box", 60000, &fd);
    execute_with(2, "box", 60000, 6, TALK_PIPE);
    uint64_t number = asked(&r);
    input(2, SPAN("in"));
    msg_put_u8(&b, 15);
    say(DESK, M_SB_TELL, 2, &b);
    nothing_is_told(fd);
    answer(number, true);
    uint32_t run = told_type(fd, TALK_RUN, SPAN_NONE);
    assert_int_equal(told_type(fd, TALK_IN, SPAN("in")), run);
    assert_int_equal(told_type(fd, TALK_SIGNAL, SPAN_NONE), run);
    close(fd);
}

static void of_a_detached_one_what_it_said_is_told(void **state)
{
    int fd;
    struct wire_run r;
    struct wire_run_end e;
    struct digest want;
    (void)runs("box", 60000, &fd);
    ask_exec(3, "box", 60000, 0, TALK_NO_INPUT, true);
    uint64_t number = asked(&r);
    assert_true(r.detached);
    nothing_is_told(fd);
    answer(number, true);
    assert_int_equal(heard(DESK, M_SB_DETACHED), 3);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u64(&m), 7);
    assert_int_equal(msg_get_u32(&m), 1);
    uint32_t run = told_type(fd, TALK_RUN, SPAN_NONE);
    frame_of(fd, TALK_OUT, run, SPAN("heard by nobody"));
    ends_with(fd, run, TALK_EXITED, 0);
    end_told(&e);
    assert_int_equal(e.out[0].bytes, 15);
    digest_of(SPAN("heard by nobody"), &want);
    assert_memory_equal(&e.out[0].digest, &want, sizeof(want));
    assert_int_equal(e.cut, 0);
    close(fd);
}

#define ALONE(f) cmocka_unit_test_setup_teardown(f, begin_alone, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALONE(nothing_is_ordered_before_it_is_written_down),
        ALONE(its_end_is_told_once_with_what_was_delivered),
        ALONE(what_is_not_written_down_is_not_run),
        ALONE(who_waits_no_more_has_nothing_run),
        ALONE(what_stands_still_meanwhile_has_nothing_ordered),
        ALONE(what_is_said_to_it_meanwhile_waits_behind_its_order),
        ALONE(of_a_detached_one_what_it_said_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
