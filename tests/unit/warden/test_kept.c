/* Detached commands: they live on without anybody, and the last that they said is kept, so much of it and so many. */
#include "tests/unit/warden/warden_world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"

/* It was begun, with this number; 0: it was not, and these words say why. */
static uint32_t detached(uint64_t desk, const char *why)
{
    assert_int_equal(heard(DESK, M_SB_DETACHED), desk);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u64(&m), why ? 0 : 7);
    uint32_t number = msg_get_u32(&m);
    struct span said = msg_get_span(&m, 400);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(number == 0, said.n > 0);
    if (why)
        assert_true(span_find(said, span_str(why)) < said.n);
    return number;
}

static uint32_t detach(int fd, uint64_t timeout_ms)
{
    ask_exec(50, "box", timeout_ms, 0, TALK_NO_INPUT, true);
    uint32_t number = detached(50, NULL);
    assert_true(number > 0);
    assert_int_equal(told_type(fd, TALK_RUN, SPAN_NONE), number);
    return number;
}

static void ask_of(uint64_t generation, uint16_t type, uint64_t desk, const char *name, uint32_t number,
                   unsigned signo)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    msg_put_u64(&b, generation);
    msg_put_u32(&b, number);
    if (type == M_SB_SIGNAL)
        msg_put_u8(&b, (uint8_t)signo);
    say(DESK, type, desk, &b);
}

static void ask_number(uint16_t type, uint64_t desk, const char *name, uint32_t number, unsigned signo)
{
    ask_of(7, type, desk, name, number, signo);
}

static void output_heard(uint64_t desk, struct span bytes)
{
    assert_int_equal(heard(DESK, M_SB_OUTPUT), desk);
    assert_true(span_eq(got.payload, bytes));
}

/* All that a sandbox lists, as text. */
static const char *listing(const char *name)
{
    static char text[4096];
    size_t n = 0;
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    say(DESK, M_SB_COMMANDS, 60, &b);
    assert_int_equal(heard(DESK, M_SB_COMMANDS_ARE), 60);
    struct msg_in m = msg_in(got.payload);
    bool there = msg_get_bool(&m);
    assert_int_equal(msg_get_u64(&m), there ? 7 : 0);
    text[0] = '\0';
    for (unsigned rows = msg_get_u16(&m); rows > 0; rows--) {
        unsigned number = msg_get_u32(&m);
        assert_true(msg_get_u64(&m) < 60000);
        bool kept = msg_get_bool(&m), followed = msg_get_bool(&m), live = msg_get_bool(&m);
        unsigned how = msg_get_u8(&m), code = msg_get_u8(&m);
        bool more = msg_get_bool(&m);
        struct span words = msg_get_span(&m, RUN_WORDS_MAX);
        assert_true(!more && span_eq(words, SPAN("true\0")));
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%u%s%s%s ", number, kept ? "d" : "", followed ? "f" : "",
                              live                            ? ""
                              : how == SB_EXITED && code == 3 ? "x"
                              : how == SB_TIMED_OUT           ? "t"
                                                              : "?");
    }
    assert_int_equal(msg_end(&m), 0);
    return there ? text : NULL;
}

/* The sandbox and the desk are heard in any order: wait until this was. */
static void listed(const char *words)
{
    while (!strstr(listing("box"), words))
        ;
}

/* Nobody waits for it, and it goes on; the last it said is there for who follows it, at any time, from the first. */
static void a_detached_command_lives_on_without_anybody(void **state)
{
    int fd;
    (void)runs("box", 60000, &fd);
    uint32_t run = detach(fd, 60000);
    frame_of(fd, TALK_OUT, run, SPAN("one"));
    (void)told_type(fd, TALK_CREDIT, SPAN("\0\0\0\3")); /* at once */
    frame_of(fd, TALK_ERR, run, SPAN("two"));
    (void)told_type(fd, TALK_CREDIT, SPAN_NONE);
    execute(9, "box", 60000, 10);
    (void)told_type(fd, TALK_RUN, SPAN_NONE);
    assert_string_equal(listing("box"), "2f 1d ");
    assert_null(listing("nobody"));
    for (uint64_t desk = 10; desk < 12; desk++) {
        ask_number(M_SB_ATTACH, desk, "box", run, 0);
        output_heard(desk, SPAN("\1one"));
        output_heard(desk, SPAN("\2two"));
        assert_string_equal(listing("box"), "2f 1df ");
        ask_number(M_SB_ATTACH, 20, "box", run, 0); /* another one may not */
        exit_heard(20, SB_LOST, 0);
        say(DESK, M_SB_KILL, desk, NULL); /* who followed it goes */
        assert_string_equal(listing("box"), "2f 1d ");
    }
    ask_number(M_SB_ATTACH, 12, "box", run, 0);
    output_heard(12, SPAN("\1one"));
    output_heard(12, SPAN("\2two"));
    frame_of(fd, TALK_OUT, run, SPAN("three"));
    (void)told_type(fd, TALK_CREDIT, SPAN_NONE);
    output_heard(12, SPAN("\1three"));
    ends_with(fd, run, TALK_EXITED, 3);
    exit_heard(12, SB_EXITED, 3);
    struct msg_in m = msg_in(span_from(got.payload, 2));
    assert_int_equal(msg_get_u64(&m), 11);
    assert_int_equal(msg_get_u64(&m), 0);
    assert_string_equal(listing("box"), "2f 1dx ");
    ask_number(M_SB_ATTACH, 13, "box", run, 0); /* also of one that has ended */
    output_heard(13, SPAN("\1onethree"));
    output_heard(13, SPAN("\2two"));
    exit_heard(13, SB_EXITED, 3);
    for (uint32_t number = 2; number < 4; number++) { /* followed by who runs it; of no such number */
        ask_number(M_SB_ATTACH, 14, "box", number, 0);
        exit_heard(14, SB_LOST, 0);
    }
    close(fd);
}

/* What its follower does not read holds it up not at all; of what is gone it is told. */
static void who_follows_a_detached_command_holds_it_up_not_at_all(void **state)
{
    enum { PIECES = 2 * SB_WINDOW / TALK_PIECE_MAX, ALL = PIECES * TALK_PIECE_MAX };
    static uint8_t much[TALK_PIECE_MAX];
    int fd;
    (void)runs("box", 60000, &fd);
    uint32_t run = detach(fd, 60000);
    ask_number(M_SB_ATTACH, 10, "box", run, 0);
    for (int i = 0; i < PIECES; i++) {
        frame_of(fd, TALK_OUT, run, span_of(much, sizeof(much)));
        (void)told_type(fd, TALK_CREDIT, SPAN("\0\0\x80\0"));
    }
    for (int i = 0; i < SB_WINDOW / TALK_PIECE_MAX; i++)
        assert_int_equal(heard(DESK, M_SB_OUTPUT), 10);
    assert_string_equal(listing("box"), "1df "); /* and no more was told */
    ends_with(fd, run, TALK_EXITED, 3);
    struct dynbuf b = fresh();
    msg_put_u32(&b, UINT32_MAX); /* more than it was told: no more is open for that */
    say(DESK, M_SB_TAKEN, 10, &b);
    assert_int_equal(heard(DESK, M_SB_CUT), 10);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u8(&m), 1);
    assert_int_equal(msg_get_u64(&m), ALL - SB_WINDOW - RING_MAX);
    assert_int_equal(msg_end(&m), 0);
    for (int i = 0; i < RING_MAX / TALK_PIECE_MAX; i++)
        assert_int_equal(heard(DESK, M_SB_OUTPUT), 10);
    exit_heard(10, SB_EXITED, 3);
    m = msg_in(span_from(got.payload, 2));
    assert_int_equal(msg_get_u64(&m), SB_WINDOW + RING_MAX);
    assert_int_equal(msg_get_u64(&m), ALL - SB_WINDOW - RING_MAX);
    close(fd);
}

static void taken(uint64_t desk, uint32_t bytes)
{
    struct dynbuf b = fresh();
    msg_put_u32(&b, bytes);
    say(DESK, M_SB_TAKEN, desk, &b);
}

static void cut_heard(uint64_t desk, unsigned which, uint64_t bytes)
{
    assert_int_equal(heard(DESK, M_SB_CUT), desk);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u8(&m), which);
    assert_int_equal(msg_get_u64(&m), bytes);
    assert_int_equal(msg_end(&m), 0);
}

/* A gap is told when nothing told before waits at the desk: two of them never meet there, so each keeps its place. */
static void a_gap_is_told_behind_what_was_taken(void **state)
{
    enum { PIECES = SB_WINDOW / TALK_PIECE_MAX };
    static uint8_t much[TALK_PIECE_MAX];
    int fd;
    (void)runs("box", 60000, &fd);
    uint32_t run = detach(fd, 60000);
    ask_number(M_SB_ATTACH, 10, "box", run, 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2 * PIECES; i++) {
            frame_of(fd, TALK_OUT, run, span_of(much, sizeof(much)));
            (void)told_type(fd, TALK_CREDIT, SPAN_NONE);
        }
        frame_of(fd, TALK_ERR, run, SPAN("e"));
        (void)told_type(fd, TALK_CREDIT, SPAN_NONE);
        for (int i = 0; i < PIECES; i++)
            assert_int_equal(heard(DESK, M_SB_OUTPUT), 10);
        taken(10, TALK_PIECE_MAX);
        assert_string_equal(listing("box"), "1df "); /* and nothing was told */
        taken(10, SB_WINDOW - TALK_PIECE_MAX);
        cut_heard(10, 1, SB_WINDOW - RING_MAX);
        for (int i = 0; i < 1 + RING_MAX / TALK_PIECE_MAX; i++)
            assert_int_equal(heard(DESK, M_SB_OUTPUT), 10);
        assert_string_equal(listing("box"), "1df ");
        taken(10, RING_MAX + 1);
    }
    close(fd);
}

/* Those that have ended make room, the first of them first; who is followed stays; and its time ends one, too. */
static void so_many_detached_commands_are_kept(void **state)
{
    int fd;
    (void)runs("box", 60000, &fd);
    for (uint32_t i = 1; i <= RUNS_KEPT_MAX; i++)
        assert_int_equal(detach(fd, 60000), i);
    ask_exec(51, "box", 60000, 0, TALK_NO_INPUT, true);
    assert_int_equal(detached(51, "as many detached commands"), 0);
    execute(9, "box", 60000, 10); /* others do not count */
    (void)told_type(fd, TALK_RUN, SPAN_NONE);
    ends_with(fd, 3, TALK_EXITED, 3);
    ends_with(fd, 2, TALK_EXITED, 3);
    listed(" 2dx ");
    (void)detach(fd, 60000);
    assert_string_equal(listing("box"), "18d 17f 16d 15d 14d 13d 12d 11d 10d 9d 8d 7d 6d 5d 4d 3dx 1d ");
    (void)detach(fd, 60000);
    ask_exec(51, "nobody", 60000, 0, TALK_NO_INPUT, true);
    assert_int_equal(detached(51, "no sandbox of this name"), 0);
    ask_exec(51, "box", 60000, 0, TALK_PIPE, true); /* makes no sense, and is not answered */
    ends_with(fd, 1, TALK_EXITED, 3);
    listed(" 1dx ");
    uint32_t run = detach(fd, 50);
    (void)told_type(fd, TALK_SIGNAL, SPAN("\11"));
    ends_with(fd, run, TALK_SIGNALLED, SIGKILL);
    listed("20dt ");
    ask_number(M_SB_ATTACH, 10, "box", run, 0);
    exit_heard(10, SB_TIMED_OUT, SIGKILL);
    frame_of(fd, TALK_OUT, run, SPAN("x")); /* of one that has ended: it may not */
    (void)heard(PARENT, M_BOX_END);
    exit_heard(9, SB_LOST, 0);
    assert_null(listing("box"));
    close(fd);
}

enum { FULL = WARDEN_KEPT_MAX / RUNS_KEPT_MAX };

/* So many sandboxes have as many as they may, which have ended or not. */
static void fill(int fd[FULL], bool ended)
{
    char name[32];
    for (int i = 0; i < FULL; i++) {
        (void)snprintf(name, sizeof(name), "full-%d", i);
        (void)runs(name, 60000, &fd[i]);
        for (int k = 0; k < RUNS_KEPT_MAX; k++) {
            ask_exec(50, name, 60000, 0, TALK_NO_INPUT, true);
            uint32_t run = detached(50, NULL);
            assert_int_equal(told_type(fd[i], TALK_RUN, SPAN_NONE), run);
            if (ended)
                ends_with(fd[i], run, TALK_EXITED, 3);
        }
        while (ended && strstr(listing(name), "d "))
            ; /* the sandbox and the desk are heard in any order */
    }
}

/* What has ended makes room for any sandbox, and where the most are kept; what runs keeps none from its first. */
static void one_sandbox_keeps_no_other_from_its_first(void **state)
{
    for (int ended = 1; ended >= 0; ended--) {
        int fd[FULL], box, left = 0;
        fill(fd, ended);
        (void)runs("box", 60000, &box);
        assert_int_equal(detach(box, 60000), 1);
        ask_exec(50, "box", 60000, 0, TALK_NO_INPUT, true);
        assert_int_equal(detached(50, ended ? NULL : "in all sandboxes") > 0, ended);
        for (int i = 0; i < FULL; i++) {
            char name[32];
            (void)snprintf(name, sizeof(name), "full-%d", i);
            left += strstr(listing(name), " 1d") != NULL;
            assert_non_null(strstr(listing(name), " 2d"));
            close(fd[i]);
        }
        assert_int_equal(left, ended ? FULL - 2 : FULL);
        close(box);
        (void)finish(state);
        assert_int_equal(begin_known(state), 0);
    }
}

static void signal_answered(uint32_t number, unsigned what)
{
    assert_int_equal(heard(DESK, M_SB_SIGNALLED), 30);
    assert_true(got.payload.n == 1 && got.payload.p[0] == what);
}

static void any_command_can_be_sent_a_signal(void **state)
{
    int fd;
    (void)runs("box", 60000, &fd);
    uint32_t run = detach(fd, 60000);
    execute(9, "box", 60000, 10);
    uint32_t other = told_type(fd, TALK_RUN, SPAN_NONE);
    ask_number(M_SB_SIGNAL, 30, "box", run, SIGTERM);
    assert_int_equal(told_type(fd, TALK_SIGNAL, SPAN("\17")), run);
    signal_answered(run, 1);
    ask_number(M_SB_SIGNAL, 30, "box", other, SIGINT);
    assert_int_equal(told_type(fd, TALK_SIGNAL, SPAN("\2")), other);
    signal_answered(other, 1);
    ask_number(M_SB_SIGNAL, 30, "box", 77, SIGTERM);
    signal_answered(77, 0);
    ask_number(M_SB_SIGNAL, 30, "nobody", run, SIGTERM);
    signal_answered(run, SB_FOUND_NOWHERE);
    ask_number(M_SB_SIGNAL, 30, "box", run, 0); /* none are these */
    ask_number(M_SB_SIGNAL, 30, "box", run, 65);
    ends_with(fd, run, TALK_SIGNALLED, SIGTERM);
    ends_with(fd, other, TALK_EXITED, 0);
    exit_heard(9, SB_EXITED, 0);
    ask_number(M_SB_SIGNAL, 30, "box", run, SIGTERM);
    signal_answered(run, 2);
    ask_number(M_SB_SIGNAL, 30, "box", other, SIGTERM);
    signal_answered(other, 0);
    close(fd);
}

/* What was called so before the sandbox was started anew is another command. */
static void a_command_is_of_one_start_of_its_sandbox(void **state)
{
    int fd;
    (void)runs("box", 60000, &fd);
    uint32_t run = detach(fd, 60000);
    for (uint64_t generation = 6; generation < 9; generation += 2) {
        ask_of(generation, M_SB_SIGNAL, 30, "box", run, SIGKILL);
        signal_answered(run, SB_FOUND_OTHER);
        ask_of(generation, M_SB_ATTACH, 31, "box", run, 0);
        exit_heard(31, SB_LOST, 0);
        assert_true(span_find(got.payload, SPAN("another start of this sandbox")) < got.payload.n);
        ask_of(generation, M_SB_LOG, 70, "box", run, 0);
        assert_int_equal(heard(DESK, M_SB_LOG), 70);
        assert_int_equal(got.payload.p[0], SB_FOUND_OTHER);
        assert_int_equal(got.payload.n, 4); /* and nothing of what it said */
    }
    assert_string_equal(listing("box"), "1d ");
    close(fd);
}

/* The desk's answer of what is kept of one; NULL: there is none. */
static const char *kept_of(uint32_t number, uint64_t cut[2], struct span bytes[2])
{
    static char state[32];
    ask_number(M_SB_LOG, 70, "box", number, 0);
    assert_int_equal(heard(DESK, M_SB_LOG), 70);
    struct msg_in m = msg_in(got.payload);
    bool there = msg_get_u8(&m) == SB_FOUND, live = msg_get_bool(&m);
    unsigned how = msg_get_u8(&m), code = msg_get_u8(&m);
    (void)snprintf(state, sizeof(state), "%u %u %s", how, code, live ? "runs" : "ended");
    for (int i = 0; i < 2 && there; i++) {
        cut[i] = msg_get_u64(&m);
        bytes[i] = msg_get_span(&m, RING_MAX);
    }
    assert_int_equal(msg_end(&m), 0);
    return there ? state : NULL;
}

/* Whoever follows it, and as often as it is asked for; of more than is kept the last, over the end of the ring. */
static void the_last_is_read_by_anybody(void **state)
{
    static uint8_t much[TALK_PIECE_MAX], whole[RING_MAX];
    struct span bytes[2];
    uint64_t cut[2];
    int fd;
    (void)runs("box", 60000, &fd);
    uint32_t run = detach(fd, 60000);
    assert_string_equal(kept_of(run, cut, bytes), "0 0 runs");
    assert_true(cut[0] == 0 && bytes[0].n == 0 && bytes[1].n == 0);
    frame_of(fd, TALK_OUT, run, SPAN("first"));
    (void)told_type(fd, TALK_CREDIT, SPAN_NONE);
    frame_of(fd, TALK_ERR, run, SPAN("wrong"));
    (void)told_type(fd, TALK_CREDIT, SPAN_NONE);
    ask_number(M_SB_ATTACH, 10, "box", run, 0);
    output_heard(10, SPAN("\1first"));
    output_heard(10, SPAN("\2wrong"));
    for (int i = 0; i < 2; i++) {
        assert_string_equal(kept_of(run, cut, bytes), "0 0 runs");
        assert_true(span_eq(bytes[0], SPAN("first")) && span_eq(bytes[1], SPAN("wrong")) && cut[0] == 0);
    }
    say(DESK, M_SB_KILL, 10, NULL);
    for (int i = 0; i < RING_MAX / TALK_PIECE_MAX; i++) {
        memset(much, 'a' + i, sizeof(much));
        memcpy(whole + (size_t)i * sizeof(much), much, sizeof(much));
        frame_of(fd, TALK_OUT, run, span_of(much, sizeof(much)));
        (void)told_type(fd, TALK_CREDIT, SPAN_NONE);
    }
    ends_with(fd, run, TALK_EXITED, 3);
    listed("1dx");
    assert_string_equal(kept_of(run, cut, bytes), "1 3 ended");
    assert_true(cut[0] == 5 && cut[1] == 0 && span_eq(bytes[0], span_of(whole, sizeof(whole))));
    execute(11, "box", 60000, 10);
    uint32_t plain = told_type(fd, TALK_RUN, SPAN_NONE);
    assert_null(kept_of(plain, cut, bytes)); /* nothing is kept of it */
    assert_null(kept_of(77, cut, bytes));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_detached_command_lives_on_without_anybody, begin_known, finish),
        cmocka_unit_test_setup_teardown(who_follows_a_detached_command_holds_it_up_not_at_all, begin_known, finish),
        cmocka_unit_test_setup_teardown(a_gap_is_told_behind_what_was_taken, begin_known, finish),
        cmocka_unit_test_setup_teardown(so_many_detached_commands_are_kept, begin_known, finish),
        cmocka_unit_test_setup_teardown(one_sandbox_keeps_no_other_from_its_first, begin_known, finish),
        cmocka_unit_test_setup_teardown(any_command_can_be_sent_a_signal, begin_known, finish),
        cmocka_unit_test_setup_teardown(a_command_is_of_one_start_of_its_sandbox, begin_known, finish),
        cmocka_unit_test_setup_teardown(the_last_is_read_by_anybody, begin_known, finish),
    };
    signal(SIGPIPE, SIG_IGN);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    dynbuf_free(&got_bytes);
    return rc;
}
