/* How fast the output of commands goes, and in how many frames. What is over is counted in turns, which the tests let
 * be over or not: no time is measured. Attacks G20, F36. */
#include "tests/unit/warden/warden_world.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/msg.h"
#include "common/net/loop.h"

enum { PIECES = FLOW_TURN / TALK_PIECE_MAX, HEAD = 9 };

static bool held; /* no turn is over */
void __real_timer_set(struct timer *t, uint64_t ms);
void __wrap_timer_set(struct timer *t, uint64_t ms);
void __wrap_timer_set(struct timer *t, uint64_t ms)
{
    if (ms != FLOW_TURN_MS || !held)
        __real_timer_set(t, ms);
}

static int begin_held(void **state)
{
    held = true;
    return begin_known(state);
}

static int begin_free(void **state)
{
    held = false;
    return begin_known(state);
}

/* One whose output nobody reads: detached, or past what it may say. */
static uint32_t loud(int fd, bool detached)
{
    ask_exec(50, "loud", 60000, 0, TALK_NO_INPUT, detached);
    if (detached)
        assert_int_equal(heard(DESK, M_SB_DETACHED), 50);
    return told_type(fd, TALK_RUN, SPAN_NONE);
}

static void says(int fd, uint32_t run, int pieces)
{
    static uint8_t much[TALK_PIECE_MAX];
    for (int i = 0; i < pieces; i++)
        frame_of(fd, i % 2 ? TALK_ERR : TALK_OUT, run, span_of(much, sizeof(much)));
}

static void credited(int fd, size_t bytes)
{
    unsigned type;
    uint32_t run;
    for (size_t sum = 0; sum < bytes;) {
        struct dynbuf b = told(fd, &type, &run);
        assert_int_equal(type, TALK_CREDIT);
        struct msg_in m = msg_in(dynbuf_span(&b));
        sum += msg_get_u32(&m);
        assert_true(sum <= bytes);
        dynbuf_free(&b);
    }
}

/* The warden has read all that was said, and answers what it was asked after that. */
static void all_is_heard(int fd)
{
    int left = 1;
    struct dynbuf b = fresh();
    while (left > 0) {
        assert_int_equal(ioctl(fd, SIOCOUTQ, &left), 0);
        (void)sched_yield();
    }
    msg_put_span(&b, SPAN("loud"));
    say(DESK, M_SB_COMMANDS, 60, &b);
    assert_int_equal(heard(DESK, M_SB_COMMANDS_ARE), 60);
}

static void what_nobody_reads_has_a_turn_of_its_sandbox(void **state)
{
    for (int detached = 0; detached < 2; detached++) {
        int fd, near;
        uint8_t byte;
        uint64_t box = runs("loud", 60000, &fd);
        uint32_t run = loud(fd, detached);
        says(fd, run, PIECES);
        credited(fd, FLOW_TURN);
        says(fd, run, PIECES);
        all_is_heard(fd);
        assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1); /* no turn was over */
        assert_int_equal(errno, EAGAIN);
        uint64_t other = runs("near", 60000, &near);
        for (uint64_t desk = 2; desk < 5; desk++) { /* while a neighbour's is told at once */
            execute(desk, "near", 60000, 100);
            uint32_t its = told_type(near, TALK_RUN, SPAN_NONE);
            frame_of(near, TALK_OUT, its, SPAN("said"));
            assert_int_equal(heard(DESK, M_SB_OUTPUT), desk);
            ends_with(near, its, TALK_EXITED, 0);
            exit_heard(desk, SB_EXITED, 0);
        }
        assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
        for (int i = 0; i < 2; i++) {
            destroy(i ? "near" : "loud");
            assert_int_equal(heard(PARENT, M_BOX_END), i ? other : box);
            if (i == 0 && !detached)
                exit_heard(50, SB_LOST, 0);
            end_heard(i ? "near" : "loud");
            say(PARENT, M_BOX_GONE, i ? other : box, NULL);
            (void)heard(DESK, M_SB_DESTROYED);
        }
        close(fd);
        close(near);
    }
}

static void turn_after_turn_all_of_it_is_taken(void **state)
{
    int fd;
    (void)runs("loud", 60000, &fd);
    uint32_t run = loud(fd, true), other = loud(fd, true);
    for (int i = 0; i < 3; i++) {
        says(fd, run, PIECES / 2);
        says(fd, other, PIECES); /* neither waits for the other */
        credited(fd, FLOW_TURN + FLOW_TURN / 2);
    }
    close(fd);
}

/* One frame of one byte, so many times, in few writes. */
static void byte_by_byte(int fd, uint32_t run, size_t n)
{
    static uint8_t text[64 * 1024];
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t frame[HEAD + 1] = {0, 0, 0, 1, TALK_OUT, 0, 0, (uint8_t)(run >> 8), (uint8_t)run, 'x'};
        memcpy(text + at, frame, sizeof(frame));
        at += sizeof(frame);
        if (i + 1 == n || at + sizeof(frame) > sizeof(text)) {
            assert_int_equal(send(fd, text, at, MSG_NOSIGNAL), at);
            at = 0;
        }
    }
}

/* One that is followed as number 50. */
static uint32_t followed(int fd, uint64_t most, bool detached)
{
    struct dynbuf b = fresh();
    ask_exec(50, "loud", 60000, most, TALK_NO_INPUT, detached);
    if (detached)
        assert_int_equal(heard(DESK, M_SB_DETACHED), 50);
    uint32_t run = told_type(fd, TALK_RUN, SPAN_NONE);
    msg_put_span(&b, SPAN("loud"));
    msg_put_u64(&b, 7);
    msg_put_u32(&b, run);
    if (detached)
        say(DESK, M_SB_ATTACH, 50, &b);
    else
        dynbuf_free(&b);
    return run;
}

static void over(uint64_t box, int fd)
{
    destroy("loud");
    assert_int_equal(heard(PARENT, M_BOX_END), box);
    end_heard("loud");
    say(PARENT, M_BOX_GONE, box, NULL);
    (void)heard(DESK, M_SB_DESTROYED);
    close(fd);
}

/* However it is written, the desk is told of it in few frames, and misses nothing. */
static void what_is_written_byte_by_byte_is_told_as_pieces(void **state)
{
    enum { BYTES = 50000 };
    for (int detached = 0; detached < 2; detached++) {
        int fd;
        uint64_t box = runs("loud", 60000, &fd);
        uint32_t run = followed(fd, BYTES, detached);
        byte_by_byte(fd, run, BYTES);
        ends_with(fd, run, TALK_EXITED, 0);
        size_t frames = 0;
        for (size_t bytes = 0; bytes < BYTES; frames++) {
            assert_int_equal(heard(DESK, M_SB_OUTPUT), 50);
            assert_int_equal(got.payload.p[0], 1);
            bytes += got.payload.n - 1;
        }
        assert_true(frames <= 1 + FLOW_FRAMES + BYTES / FLOW_SMALL + 2);
        exit_heard(50, SB_EXITED, 0);
        over(box, fd);
    }
}

/* What waits for more of its kind is told when all that was told before is taken. */
static void what_is_small_waits_no_longer_than_for_what_was_told(void **state)
{
    for (int detached = 0; detached < 2; detached++) {
        int fd;
        struct dynbuf b = fresh();
        uint64_t box = runs("loud", 60000, &fd);
        uint32_t run = followed(fd, 1000, detached);
        for (int i = 0; i < FLOW_FRAMES; i++) {
            frame_of(fd, TALK_OUT, run, SPAN("a"));
            assert_int_equal(heard(DESK, M_SB_OUTPUT), 50);
        }
        frame_of(fd, TALK_OUT, run, SPAN("b"));
        frame_of(fd, TALK_OUT, run, SPAN("c"));
        all_is_heard(fd); /* and nothing was told */
        msg_put_u32(&b, FLOW_FRAMES);
        say(DESK, M_SB_TAKEN, 50, &b);
        assert_int_equal(heard(DESK, M_SB_OUTPUT), 50);
        assert_true(span_eq(got.payload, SPAN("\1bc")));
        ends_with(fd, run, TALK_EXITED, 0);
        exit_heard(50, SB_EXITED, 0);
        over(box, fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_nobody_reads_has_a_turn_of_its_sandbox, begin_held, finish),
        cmocka_unit_test_setup_teardown(turn_after_turn_all_of_it_is_taken, begin_free, finish),
        cmocka_unit_test_setup_teardown(what_is_written_byte_by_byte_is_told_as_pieces, begin_free, finish),
        cmocka_unit_test_setup_teardown(what_is_small_waits_no_longer_than_for_what_was_told, begin_free, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
