/* A command with a lane of its own: its walls are asked for when it is written down, it is told there alone, and they
 * end with it. */
#include "tests/unit/warden/warden_world.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static bool cgroup_counts; /* what the sandbox uses */

static int begin_counted(void **state)
{
    cgroup_counts = true;
    return begin_known(state);
}

static void execute_apart(uint64_t desk, const char *name, uint64_t timeout_ms, const char *lane, bool detached)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    msg_put_u64(&b, timeout_ms);
    msg_put_u64(&b, 1000);
    msg_put_u8(&b, TALK_NO_INPUT);
    msg_put_u16(&b, 0);
    msg_put_u16(&b, 0);
    msg_put_u8(&b, detached);
    msg_put_u16(&b, 1);
    msg_put_u16(&b, 0);
    msg_put_span(&b, SPAN("true"));
    msg_put_span(&b, SPAN("/tmp"));
    msg_put_span(&b, span_str(lane));
    say(DESK, M_SB_EXEC, desk, &b);
}

/* The parent is asked for the walls of the n-th command of a sandbox; *fd is where its first process would be. */
static uint64_t walls_asked(uint64_t box, uint32_t n, int *fd)
{
    uint64_t id = heard(PARENT, M_CELL);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u64(&m), box);
    assert_true(span_eq(msg_get_span(&m, 63), SPAN("own")));
    assert_int_equal(msg_get_u64(&m), 7);
    assert_int_equal(msg_get_u32(&m), n);
    assert_int_equal(msg_get_u64(&m), 256);
    assert_int_equal(msg_get_u64(&m), cgroup_counts ? 0 : 100);                 /* processes */
    assert_int_equal(msg_get_u64(&m), cgroup_counts ? 0 : UINT64_C(512) << 20); /* memory of each */
    assert_int_equal(msg_end(&m), 0);
    *fd = frame_take_fd(&got, 0);
    assert_true(*fd >= 0);
    assert_int_equal(fcntl(*fd, F_SETFL, 0), 0);
    const struct timeval patience = {.tv_sec = 20};
    assert_int_equal(setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    return id;
}

static void told_all(int fd, uint32_t n)
{
    (void)told_type(fd, TALK_NAME, SPAN_NONE);
    (void)told_type(fd, TALK_BORN, SPAN("\0\0\0\0\0\0\0\7"));
    assert_int_equal(told_type(fd, TALK_RUN, SPAN_NONE), n);
}

static void walls_end(uint64_t id)
{
    assert_int_equal(heard(PARENT, M_CELL_END), id);
    assert_int_equal(got.payload.n, 0);
}

/* What comes at once would be there. */
static void nothing_is_told(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    say(DESK, M_SB_LIST, 77, NULL);
    assert_int_equal(heard(DESK, M_SB_LISTED), 77);
    assert_int_equal(poll(&p, 1, 0), 0);
}

static void it_is_told_behind_its_walls_alone(void **state)
{
    int box, own;
    uint64_t id = runs("box", 60000, &box);
    execute_apart(2, "box", 60000, "own", false);
    uint64_t walls = walls_asked(id, 1, &own);
    told_all(own, 1);
    hello(own);
    frame_of(own, TALK_OUT, 1, SPAN("four"));
    assert_int_equal(heard(DESK, M_SB_OUTPUT), 2);
    nothing_is_told(box);
    ends_with(own, 1, TALK_EXITED, 3);
    exit_heard(2, SB_EXITED, 3);
    struct pollfd parent = {.fd = side[PARENT], .events = POLLIN};
    assert_int_equal(poll(&parent, 1, 0), 1); /* by then it was told to take them down */
    walls_end(walls);
    execute(3, "box", 60000, 100); /* and the next one is the sandbox's own again */
    assert_int_equal(told_type(box, TALK_RUN, SPAN_NONE), 2);
    close(own);
    close(box);
}

static void a_detached_one_ends_with_its_walls(void **state)
{
    int box, own;
    uint64_t id = runs("box", 60000, &box);
    execute_apart(2, "box", 60000, "own", true);
    assert_int_equal(heard(DESK, M_SB_DETACHED), 2);
    uint64_t walls = walls_asked(id, 1, &own);
    told_all(own, 1);
    hello(own);
    ends_with(own, 1, TALK_EXITED, 0);
    walls_end(walls);
    nothing_is_told(box);
    close(own);
    close(box);
}

static void without_walls_it_is_not_run(void **state)
{
    int box, own;
    uint64_t id = runs("box", 60000, &box);
    execute_apart(2, "box", 60000, "own", false);
    uint64_t walls = walls_asked(id, 1, &own);
    struct dynbuf why = fresh();
    msg_put_span(&why, SPAN("there is no room"));
    say(PARENT, M_CELL_NONE, walls, &why);
    exit_heard(2, SB_NOT_STARTED, 0);
    assert_true(span_find(got.payload, SPAN("there is no room")) < got.payload.n);
    walls_end(walls);
    close(own);
    execute_apart(3, "box", 60000, "own", false);
    walls = walls_asked(id, 2, &own);
    close(own); /* before its first word */
    exit_heard(3, SB_NOT_STARTED, 0);
    walls_end(walls);
    nothing_is_told(box);
    close(box);
}

/* What lies, or goes away, ends this command, and nobody else's. */
static void what_it_says_is_not_believed(void **state)
{
    int box, own;
    uint64_t id = runs("box", 60000, &box);
    for (uint32_t n = 1; n <= 4; n++) {
        execute_apart(10 + n, "box", 60000, "own", false);
        uint64_t walls = walls_asked(id, n, &own);
        told_all(own, n);
        if (n > 1)
            hello(own);
        if (n == 1 || n == 2)
            frame_of(own, TALK_OUT, n == 1 ? 1 : 99, SPAN("of nobody's, or too early"));
        if (n == 3)
            hello(own); /* again */
        if (n == 4) {
            frame_of(own, TALK_OUT, n, SPAN("heard"));
            assert_int_equal(heard(DESK, M_SB_OUTPUT), 10 + n);
            close(own);
        }
        exit_heard(10 + n, SB_LOST, 0);
        walls_end(walls);
        if (n != 4)
            close(own);
    }
    execute(20, "box", 60000, 100);
    assert_int_equal(told_type(box, TALK_RUN, SPAN_NONE), 5);
    close(box);
}

static void its_sandbox_does_not_speak_for_it(void **state)
{
    int box, own;
    uint64_t id = runs("box", 60000, &box);
    execute_apart(2, "box", 60000, "own", false);
    uint64_t walls = walls_asked(id, 1, &own);
    told_all(own, 1);
    hello(own);
    ends_with(box, 1, TALK_EXITED, 0);
    exit_heard(2, SB_LOST, 0);
    walls_end(walls);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    close(own);
    close(box);
}

static void they_end_with_their_sandbox(void **state)
{
    int box, own;
    uint64_t id = runs("box", 60000, &box);
    execute_apart(2, "box", 60000, "own", false);
    uint64_t walls = walls_asked(id, 1, &own);
    told_all(own, 1);
    destroy("box");
    exit_heard(2, SB_LOST, 0);
    walls_end(walls);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    close(own);
    close(box);
}

/* One that is killed has as long to end as any other; then its walls are taken down, and the sandbox runs on. */
static void what_does_not_end_loses_its_walls(void **state)
{
    int box, own;
    uint64_t id = runs("box", 60000, &box);
    execute_apart(2, "box", 50, "own", false);
    uint64_t walls = walls_asked(id, 1, &own);
    told_all(own, 1);
    hello(own);
    (void)told_type(own, TALK_SIGNAL, SPAN("\x09"));
    exit_heard(2, SB_TIMED_OUT, 0);
    walls_end(walls);
    nothing_is_told(box);
    close(own);
    close(box);
}

/* Each of its processes is held as those of the sandbox are. */
static void without_a_cgroup_its_limits_are_said(void **state)
{
    int box, own;
    cgroup_counts = false;
    uint64_t id = ask_for("box", 1, 60000, &box);
    parent_says_started(id, 0);
    unsigned type;
    uint32_t run;
    struct frame f;
    struct dynbuf bytes = fresh();
    assert_int_equal(chan_read_one(box, &f, &bytes), 0);
    dynbuf_free(&bytes);
    hello(box);
    is_named(box, "box");
    assert_int_equal(heard(DESK, M_SB_STARTED), 1);
    execute_apart(2, "box", 60000, "own", false);
    uint64_t walls = walls_asked(id, 1, &own);
    bytes = told(own, &type, &run);
    dynbuf_free(&bytes);
    destroy("box");
    exit_heard(2, SB_LOST, 0);
    walls_end(walls);
    close(own);
    close(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_told_behind_its_walls_alone, begin_counted, finish),
        cmocka_unit_test_setup_teardown(a_detached_one_ends_with_its_walls, begin_counted, finish),
        cmocka_unit_test_setup_teardown(without_walls_it_is_not_run, begin_counted, finish),
        cmocka_unit_test_setup_teardown(what_it_says_is_not_believed, begin_counted, finish),
        cmocka_unit_test_setup_teardown(its_sandbox_does_not_speak_for_it, begin_counted, finish),
        cmocka_unit_test_setup_teardown(they_end_with_their_sandbox, begin_counted, finish),
        cmocka_unit_test_setup_teardown(what_does_not_end_loses_its_walls, begin_counted, finish),
        cmocka_unit_test_setup_teardown(without_a_cgroup_its_limits_are_said, begin_known, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
