/* The life of a sandbox as the warden keeps it: the test is its parent, its desk, its ledger and the first process
 * inside; the warden runs in a process of its own. Attacks G16, G24. */
#include "tests/unit/warden/warden_world.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/msg.h"

static void a_command_goes_from_the_desk_to_the_sandbox_and_back(void **state)
{
    int fd;
    unsigned type;
    uint32_t run;
    uint64_t id = runs("box", 60000, &fd);
    execute(2, "box", 60000, 6);
    struct dynbuf b = told(fd, &type, &run);
    assert_int_equal(type, TALK_RUN);
    dynbuf_free(&b);
    frame_of(fd, TALK_OUT, run, SPAN("four"));
    assert_int_equal(heard(DESK, M_SB_OUTPUT), 2);
    assert_true(span_eq(got.payload, SPAN("\1four")));
    frame_of(fd, TALK_ERR, run, SPAN("more")); /* past the most it may say */
    assert_int_equal(heard(DESK, M_SB_OUTPUT), 2);
    assert_true(span_eq(got.payload, SPAN("\2mo")));
    b = told(fd, &type, &run); /* what is dropped is taken at once */
    assert_int_equal(type, TALK_CREDIT);
    assert_true(span_eq(dynbuf_span(&b), SPAN("\0\0\0\2")));
    dynbuf_free(&b);
    b = fresh();
    msg_put_u32(&b, 1000000); /* more than is open: no more is given than was taken */
    say(DESK, M_SB_TAKEN, 2, &b);
    b = told(fd, &type, &run);
    assert_true(span_eq(dynbuf_span(&b), SPAN("\0\0\0\6")));
    dynbuf_free(&b);
    ends_with(fd, run, TALK_EXITED, 3);
    exit_heard(2, SB_EXITED, 3);
    execute(3, "nobody", 60000, 6);
    exit_heard(3, SB_LOST, 0);
    destroy("box");
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    end_heard("box");
    say(PARENT, M_BOX_GONE, id, NULL);
    (void)heard(DESK, M_SB_DESTROYED);
    close(fd);
    (void)runs("box", 60000, &fd); /* the name is free again */
    close(fd);
}

static void who_says_what_it_may_not_ends(void **state)
{
    static uint8_t much[TALK_PIECE_MAX];
    int fd;
    unsigned type;
    uint32_t run;
    for (int way = 0; way < 6; way++) {
        uint64_t id = runs("box", 60000, &fd);
        execute(2, "box", 60000, 1 << 20);
        struct dynbuf b = told(fd, &type, &run);
        dynbuf_free(&b);
        switch (way) {
        case 0: hello(fd); break;                                  /* twice */
        case 1: frame_of(fd, TALK_OUT, run + 1, SPAN("x")); break; /* of none that runs */
        case 2: frame_of(fd, TALK_RUN, run, SPAN("x")); break;     /* ours to say */
        case 3: ends_with(fd, run, TALK_LOST, 0); break;           /* the same */
        case 4: frame_of(fd, 200, run, SPAN("x")); break;          /* nobody's */
        case 5:                                                    /* more than was taken */
            for (int i = 0; i < SB_WINDOW / TALK_PIECE_MAX; i++) {
                frame_of(fd, TALK_OUT, run, span_of(much, sizeof(much)));
                (void)heard(DESK, M_SB_OUTPUT);
            }
            frame_of(fd, TALK_OUT, run, SPAN("x"));
        }
        assert_int_equal(heard(PARENT, M_BOX_END), id);
        exit_heard(2, SB_LOST, 0);
        end_heard("box");
        assert_non_null(memmem(got.payload.p, got.payload.n, "said what it may not", 20));
        say(PARENT, M_BOX_GONE, id, NULL);
        close(fd);
    }
}

static void what_is_late_is_killed_and_then_its_sandbox(void **state)
{
    int fd;
    unsigned type;
    uint32_t run;
    uint64_t id = runs("box", 60000, &fd);
    execute(2, "box", 50, 10);
    struct dynbuf b = told(fd, &type, &run);
    dynbuf_free(&b);
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_SIGNAL);
    assert_int_equal(b.p[0], SIGKILL);
    dynbuf_free(&b);
    ends_with(fd, run, TALK_SIGNALLED, SIGKILL);
    exit_heard(2, SB_TIMED_OUT, SIGKILL);
    execute(4, "box", 50, 10); /* had ended before, and what it said was not read until now */
    b = told(fd, &type, &run);
    dynbuf_free(&b);
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_SIGNAL);
    dynbuf_free(&b);
    ends_with(fd, run, TALK_EXITED, 3);
    exit_heard(4, SB_EXITED, 3);
    execute(3, "box", 50, 10); /* this one is said to live on */
    exit_heard(3, SB_LOST, 0);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    close(fd);
    end_heard("box");
    id = runs("short", 50, &fd);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    close(fd);
}

/* Its end waits in the sandbox behind output that nobody takes: that is dropped, and the sandbox stays. */
static void who_does_not_read_ends_no_sandbox(void **state)
{
    static uint8_t much[TALK_PIECE_MAX];
    int fd;
    unsigned type;
    uint32_t run;
    (void)runs("box", 60000, &fd);
    execute(2, "box", 50, 1 << 20);
    struct dynbuf b = told(fd, &type, &run);
    dynbuf_free(&b);
    for (int i = 0; i < SB_WINDOW / TALK_PIECE_MAX; i++) {
        frame_of(fd, TALK_OUT, run, span_of(much, sizeof(much)));
        (void)heard(DESK, M_SB_OUTPUT);
    }
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_SIGNAL);
    dynbuf_free(&b);
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_CREDIT);
    assert_true(span_eq(dynbuf_span(&b), SPAN("\0\4\0\0")));
    dynbuf_free(&b);
    frame_of(fd, TALK_OUT, run, SPAN("late"));
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_CREDIT);
    dynbuf_free(&b);
    ends_with(fd, run, TALK_SIGNALLED, SIGKILL);
    exit_heard(2, SB_TIMED_OUT, SIGKILL);
    struct msg_in m = msg_in(span_from(got.payload, 2));
    assert_int_equal(msg_get_u64(&m), SB_WINDOW);
    assert_int_equal(msg_get_u64(&m), 4); /* cut */
    execute(3, "box", 60000, 10);
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_RUN);
    dynbuf_free(&b);
    close(fd);
}

static void what_is_not_up_yet_ends_too(void **state)
{
    int fd;
    uint64_t id = ask_for("box", 1, 60000, &fd);
    destroy("box");
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    assert_int_equal(heard(DESK, M_SB_STARTED), 1);
    assert_int_equal(got.payload.p[0], 0);
    parent_says_started(id, 1); /* it was on its way */
    say(PARENT, M_BOX_GONE, id, NULL);
    (void)heard(DESK, M_SB_DESTROYED);
    close(fd);
    id = ask_for("box", 2, 60000, &fd);
    struct dynbuf b = fresh();
    msg_put_span(&b, SPAN("no room"));
    say(PARENT, M_BOX_NONE, id, &b);
    assert_int_equal(heard(DESK, M_SB_STARTED), 2);
    assert_non_null(memmem(got.payload.p, got.payload.n, "no room", 7));
    close(fd);
    id = ask_for("box", 3, 60000, &fd);
    parent_says_started(id, 0);
    close(fd); /* it dies before it says a word */
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    assert_int_equal(heard(DESK, M_SB_STARTED), 3);
    assert_int_equal(got.payload.p[0], 0);
}

static void with_the_desk_go_its_commands_and_what_it_waited_for(void **state)
{
    int fd, other;
    unsigned type;
    uint32_t run;
    uint64_t id;
    (void)runs("box", 60000, &fd);
    execute(2, "box", 60000, 10);
    struct dynbuf b = told(fd, &type, &run);
    dynbuf_free(&b);
    id = ask_for("other", 3, 60000, &other);
    close(side[DESK]);
    side[DESK] = -1;
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_SIGNAL);
    dynbuf_free(&b);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    frame_of(fd, TALK_OUT, run, SPAN("nobody hears it"));
    b = told(fd, &type, &run);
    assert_int_equal(type, TALK_CREDIT);
    dynbuf_free(&b);
    close(fd);
    close(other);
}

/* What was started for a request of the desk's own is nobody's after it; any other goes on. */
static void with_the_desk_goes_what_is_bound_to_it(void **state)
{
    int fd, other;
    bound = true;
    uint64_t id = runs("box", 60000, &fd);
    bound = false;
    (void)runs("other", 60000, &other);
    close(side[DESK]);
    side[DESK] = -1;
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    end_heard("box");
    close(fd);
    close(other);
}

/* Whoever asks, and whoever ended it, is answered when nothing is left: one that was ended may run code still. */
static void its_end_is_said_when_nothing_is_left(void **state)
{
    int fd, other;
    uint64_t id = runs("box", 60000, &fd);
    close(fd); /* its first process dies: it ends by itself */
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    end_heard("box");
    destroy("box");
    destroy("none");
    assert_int_equal(heard(DESK, M_SB_DESTROYED), 99); /* and not of the first one */
    assert_int_equal(got.payload.p[0], 0);
    uint64_t next = runs("box", 60000, &other); /* another one of the name is nobody's answer */
    destroy("box");
    assert_int_equal(heard(PARENT, M_BOX_END), next);
    say(PARENT, M_BOX_GONE, next, NULL);
    execute(3, "box", 1000, 1);
    exit_heard(3, SB_LOST, 0); /* nothing was said of their end before */
    say(PARENT, M_BOX_GONE, id, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(heard(DESK, M_SB_DESTROYED), 99);
        assert_int_equal(got.payload.p[0], 1);
    }
    close(other);
}

/* A new ledger hears which there are, so that none of the others has a living lease; and until the first one has
 * answered, nobody can start one. */
static void a_ledger_hears_first_which_there_are(void **state)
{
    int fd;
    struct dynbuf b = fresh();
    execute(2, "box", 60000, 6);
    (void)heard(LEDGER, M_SANDBOX_RUN);
    struct pollfd p = {.fd = side[DESK], .events = POLLIN};
    assert_int_equal(poll(&p, 1, 200), 0);
    msg_put_u8(&b, true);
    msg_put_span(&b, SPAN_NONE);
    say(LEDGER, M_SANDBOX_DONE, 0, &b);
    exit_heard(2, SB_LOST, 0);
    (void)runs("box", 60000, &fd);
    close(fd);
}

/* As much of it as may wait in the sandbox; past its end, past that much, and for a command without one: nothing. And
 * a sandbox does not take more than it was given. */
static void input_goes_as_far_as_it_may(void **state)
{
    static uint8_t large[TALK_IN_WINDOW + 1];
    int fd;
    uint64_t id = runs("box", 60000, &fd);
    execute_with(2, "box", 60000, 10, TALK_PIPE);
    uint32_t run = told_type(fd, TALK_RUN, SPAN_NONE);
    input(2, SPAN("in"));
    assert_int_equal(told_type(fd, TALK_IN, SPAN("in")), run);
    frame_of(fd, TALK_FED, run, SPAN("\0\0\0\2"));
    assert_int_equal(heard(DESK, M_SB_FED), 2);
    assert_true(span_eq(got.payload, SPAN("\0\0\0\2")));
    input(2, span_of(large, sizeof(large)));
    input(2, span_of(large, TALK_IN_WINDOW));
    input(2, SPAN("x"));
    execute(3, "box", 60000, 10);
    assert_int_equal(told_type(fd, TALK_IN, span_of(large, TALK_IN_WINDOW)), run);
    (void)told_type(fd, TALK_RUN, SPAN_NONE);
    frame_of(fd, TALK_FED, run, SPAN("\0\0\0\1"));
    (void)heard(DESK, M_SB_FED);
    input(2, SPAN("y"));
    input(2, SPAN_NONE);
    input(2, SPAN("z"));
    input(3, SPAN("x"));
    execute(4, "box", 60000, 10);
    assert_int_equal(told_type(fd, TALK_IN, SPAN("y")), run);
    (void)told_type(fd, TALK_IN_END, SPAN(""));
    run = told_type(fd, TALK_RUN, SPAN_NONE);
    frame_of(fd, TALK_FED, run, SPAN("\0\0\0\1"));
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    close(fd);
}

static void resize(uint64_t desk, uint16_t rows, uint16_t columns)
{
    struct dynbuf b = fresh();
    msg_put_u16(&b, rows);
    msg_put_u16(&b, columns);
    say(DESK, M_SB_RESIZE, desk, &b);
}

/* Its size is told to a command that has a terminal, and to no other; its input has no end. */
static void a_terminal_has_a_size(void **state)
{
    int fd;
    (void)runs("box", 60000, &fd);
    execute_with(2, "box", 60000, 10, TALK_TERMINAL);
    uint32_t run = told_type(fd, TALK_RUN, SPAN("\2\0\41\0\143\0\1\0\1\0\0\0\4true\0\0\0\3A=b\0\0\0\4/tmp"));
    resize(2, 44, 77);
    assert_int_equal(told_type(fd, TALK_SIZE, SPAN("\0\54\0\115")), run);
    resize(2, 0, 77);
    resize(2, 44, 0);
    resize(9, 44, 77);
    input(2, SPAN_NONE);
    execute(3, "box", 60000, 10);
    (void)told_type(fd, TALK_RUN, SPAN_NONE);
    resize(3, 44, 77);
    execute_with(4, "box", 60000, 10, (enum talk_input)3);
    input(2, SPAN("\4"));
    assert_int_equal(told_type(fd, TALK_IN, SPAN("\4")), run);
    close(fd);
}

static void ask_files_of(uint64_t desk, const char *name, enum talk_file what, struct span path)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    msg_put_u64(&b, 60000);
    msg_put_u8(&b, (uint8_t)what);
    msg_put_u16(&b, 0644);
    msg_put_u8(&b, true);
    msg_put_u64(&b, 5);
    msg_put_u64(&b, 6);
    msg_put_span(&b, path);
    msg_put_span(&b, SPAN_NONE);
    say(DESK, M_SB_FILES, desk, &b);
}

static void ask_files(uint64_t desk, const char *name, struct span path)
{
    ask_files_of(desk, name, TALK_FILE_WRITE, path);
}

/* A first process that says more than was asked for lies, and who asked is not told that it has all of it. */
static void of_files_no_more_comes_than_was_asked_for(void **state)
{
    static uint8_t piece[TALK_PIECE_MAX];
    static const struct {
        enum talk_file what;
        unsigned type;
        uint64_t may;
    } rows[] = {
        {TALK_FILE_READ, TALK_OUT, 6},
        {TALK_FILE_PACK, TALK_OUT, 6},
        {TALK_FILE_LIST, TALK_OUT, FILES_ANSWER_MAX},
        {TALK_FILE_READ, TALK_ERR, FILES_WORDS_MAX},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fd;
        uint64_t left = rows[i].may, box = runs("box", 60000, &fd);
        ask_files_of(7, "box", rows[i].what, SPAN("a"));
        uint32_t run = told_type(fd, TALK_FILE, SPAN_NONE);
        while (left > 0) {
            uint32_t n = left < sizeof(piece) ? (uint32_t)left : (uint32_t)sizeof(piece);
            struct dynbuf b = fresh();
            frame_of(fd, rows[i].type, run, span_of(piece, n));
            assert_int_equal(heard(DESK, M_SB_OUTPUT), 7);
            assert_int_equal(got.payload.n, 1 + n);
            msg_put_u32(&b, n);
            say(DESK, M_SB_TAKEN, 7, &b);
            (void)told_type(fd, TALK_CREDIT, SPAN_NONE);
            left -= n;
        }
        frame_of(fd, rows[i].type, run, SPAN("x"));
        assert_int_equal(heard(PARENT, M_BOX_END), box);
        exit_heard(7, SB_LOST, 0);
        close(fd);
        say(PARENT, M_BOX_GONE, box, NULL);
        end_heard("box");
    }
}

static void what_is_done_with_files_is_said_as_it_is_asked(void **state)
{
    static const char order[] = "\2\1\244\1\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\6\0\0\0\3a/b\0\0\0\0";
    int fd;
    (void)runs("box", 60000, &fd);
    ask_files(7, "box", SPAN("a/b"));
    uint32_t run = told_type(fd, TALK_FILE, span_of(order, sizeof(order) - 1));
    input(7, SPAN("bytes"));
    assert_int_equal(told_type(fd, TALK_IN, SPAN("bytes")), run);
    input(7, SPAN_NONE);
    ask_files(10, "box", SPAN("a"));
    (void)told_type(fd, TALK_IN_END, SPAN(""));
    uint32_t other = told_type(fd, TALK_FILE, SPAN_NONE);
    frame_of(fd, TALK_ERR, run, SPAN("words"));
    assert_int_equal(heard(DESK, M_SB_OUTPUT), 7);
    ends_with(fd, run, TALK_EXITED, 28);
    exit_heard(7, SB_EXITED, 28);
    ask_files(8, "nobody", SPAN("a"));
    exit_heard(8, SB_LOST, 0);
    ask_files(9, "box", SPAN("a\0b"));
    exit_heard(9, SB_NOT_STARTED, 0);
    assert_int_equal(chan_write_one(side[DESK], M_SB_KILL, 10, SPAN_NONE), 0);
    assert_int_equal(told_type(fd, TALK_SIGNAL, SPAN("\11")), other);
    close(fd);
}

/* What the parent counted goes to the desk beside what each is, of those that are up. */
static void what_they_use_is_counted_by_the_parent(void **state)
{
    int fd, other;
    struct wire_box x;
    uint64_t id = runs("box", 60000, &fd), up = ask_for("other", 3, 60000, &other);
    say(DESK, M_SB_METER, 80, NULL);
    assert_int_equal(heard(PARENT, M_BOX_METER), 80);
    struct dynbuf b = fresh();
    msg_put_u16(&b, 3);
    for (uint64_t n = 0; n < 3; n++) {
        msg_put_u64(&b, n == 0 ? up : n == 1 ? id : 999);
        msg_put_span(&b, n == 1 ? SPAN("what it uses") : SPAN("of no interest"));
    }
    say(PARENT, M_BOX_METER, 80, &b);
    assert_int_equal(heard(DESK, M_SB_METER), 80);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(wire_get_box(&m, &x, false), 0);
    assert_true(span_eq(x.name, SPAN("box")));
    for (int i = 0; i < 4; i++)
        (void)msg_get_u64(&m);
    (void)msg_get_u8(&m);
    (void)msg_get_u16(&m);
    assert_int_equal(msg_get_u8(&m), PAUSE_NONE);
    assert_int_equal(msg_get_span(&m, 64).n, 0);
    assert_true(span_eq(msg_get_span(&m, 64), SPAN("what it uses")));
    assert_int_equal(msg_end(&m), 0);
    close(fd);
    close(other);
}

/* More of them than one frame takes: in parts, of which the last one has the type. */
static void a_list_that_is_long_comes_in_parts(void **state)
{
    enum { BOXES = 40 };
    struct dynbuf all;
    struct started {
        char name[64];
        int fd;
    } box[BOXES];
    dynbuf_init(&all, 1 << 20);
    for (unsigned i = 0; i < BOXES; i++) {
        (void)snprintf(box[i].name, sizeof(box[i].name), "box-%059u", i);
        (void)runs(box[i].name, 60000, &box[i].fd);
    }
    say(DESK, M_SB_LIST, 90, NULL);
    assert_int_equal(heard(DESK, M_SB_PART), 90);
    assert_int_equal(got.payload.n, 8192);
    (void)dynbuf_add(&all, got.payload);
    assert_int_equal(heard(DESK, M_SB_LISTED), 90);
    (void)dynbuf_add(&all, got.payload);
    struct msg_in m = msg_in(dynbuf_span(&all));
    assert_int_equal(msg_get_u16(&m), BOXES);
    for (unsigned i = BOXES; i > 0; i--) {
        struct wire_box x;
        assert_int_equal(wire_get_box(&m, &x, false), 0); /* the last one first */
        assert_true(span_eq(x.name, span_str(box[i - 1].name)));
        for (int k = 0; k < 4; k++)
            (void)msg_get_u64(&m);
        (void)msg_get_u8(&m);
        (void)msg_get_u16(&m);
        (void)msg_get_u8(&m);
        assert_int_equal(msg_get_span(&m, 64).n, 0);
        close(box[i - 1].fd);
    }
    assert_int_equal(msg_end(&m), 0);
    dynbuf_free(&all);
}

/* Who becomes it is told, the parent that opens it, and whoever lists it; of another one there is none. */
static void a_lane_is_told_to_who_makes_it(void **state)
{
    struct wire_box x;
    struct dynbuf b = fresh();
    int fd[2];
    (void)runs("laned", 60000, &fd[0]);
    (void)runs("other", 60000, &fd[1]);
    say(DESK, M_SB_LIST, 90, NULL);
    assert_int_equal(heard(DESK, M_SB_LISTED), 90);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u16(&m), 2);
    assert_int_equal(wire_get_box(&m, &x, false), 0); /* the last one first */
    assert_true(span_eq(x.name, SPAN("other")) && x.lane.n == 0);
    wire_put_box(&b, &(struct wire_box){.name = SPAN("box"),
                                        .memory = 512 << 20,
                                        .pids = 100,
                                        .disk = 64 << 20,
                                        .files = 256,
                                        .lane = SPAN("a lane")});
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_box(&m, &x, false), -1);
    dynbuf_free(&b);
    close(fd[0]);
    close(fd[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_goes_from_the_desk_to_the_sandbox_and_back, begin_known, finish),
        cmocka_unit_test_setup_teardown(who_says_what_it_may_not_ends, begin_known, finish),
        cmocka_unit_test_setup_teardown(what_is_late_is_killed_and_then_its_sandbox, begin_known, finish),
        cmocka_unit_test_setup_teardown(who_does_not_read_ends_no_sandbox, begin_known, finish),
        cmocka_unit_test_setup_teardown(what_is_not_up_yet_ends_too, begin_known, finish),
        cmocka_unit_test_setup_teardown(with_the_desk_go_its_commands_and_what_it_waited_for, begin_known, finish),
        cmocka_unit_test_setup_teardown(with_the_desk_goes_what_is_bound_to_it, begin_known, finish),
        cmocka_unit_test_setup_teardown(its_end_is_said_when_nothing_is_left, begin_known, finish),
        cmocka_unit_test_setup_teardown(a_terminal_has_a_size, begin_known, finish),
        cmocka_unit_test_setup_teardown(input_goes_as_far_as_it_may, begin_known, finish),
        cmocka_unit_test_setup_teardown(what_is_done_with_files_is_said_as_it_is_asked, begin_known, finish),
        cmocka_unit_test_setup_teardown(of_files_no_more_comes_than_was_asked_for, begin_known, finish),
        cmocka_unit_test_setup_teardown(what_they_use_is_counted_by_the_parent, begin_known, finish),
        cmocka_unit_test_setup_teardown(a_lane_is_told_to_who_makes_it, begin_known, finish),
        cmocka_unit_test_setup_teardown(a_list_that_is_long_comes_in_parts, begin_known, finish),
        cmocka_unit_test_setup_teardown(a_ledger_hears_first_which_there_are, begin, finish),
    };
    signal(SIGPIPE, SIG_IGN);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    dynbuf_free(&got_bytes);
    return rc;
}
