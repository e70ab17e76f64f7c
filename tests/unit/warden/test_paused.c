/* A sandbox that stands still: nothing is begun in it, its time goes on, and it goes on itself as another generation.
 */
#include "tests/unit/warden/warden_world.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"

static void ask_pause_for(uint64_t desk, const char *name, bool moment)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    msg_put_u8(&b, moment);
    say(DESK, M_SB_PAUSE, desk, &b);
}

static void ask_pause(uint64_t desk, const char *name)
{
    ask_pause_for(desk, name, false);
}

static void ask_resume(uint64_t desk, const char *name, uint64_t generation)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    msg_put_u64(&b, generation);
    say(DESK, M_SB_RESUME, desk, &b);
}

static void parent_asked(uint64_t id, bool on)
{
    assert_int_equal(heard(PARENT, M_BOX_PAUSE), id);
    assert_true(span_eq(got.payload, on ? SPAN("\1") : SPAN("\0")));
}

static void parent_says(uint64_t id, enum pause_way way, const char *why)
{
    struct dynbuf b = fresh();
    msg_put_u8(&b, (uint8_t)way);
    msg_put_span(&b, span_str(why));
    say(PARENT, M_BOX_PAUSED, id, &b);
}

static void desk_hears(uint64_t desk, enum sb_paused what, enum pause_way way, uint64_t generation, const char *why)
{
    assert_int_equal(heard(DESK, M_SB_PAUSED), desk);
    struct msg_in m = msg_in(got.payload);
    assert_int_equal(msg_get_u8(&m), what);
    assert_int_equal(msg_get_u8(&m), way);
    assert_int_equal(msg_get_u64(&m), generation);
    struct span said = msg_get_span(&m, 400);
    assert_int_equal(msg_end(&m), 0);
    assert_true(*why ? span_find(said, span_str(why)) < said.n : said.n == 0);
}

static void noted(const char *kind)
{
    (void)heard(LEDGER, M_RUN_LIFE);
    assert_true(span_find(got.payload, span_str(kind)) < got.payload.n);
}

static void pause_it(uint64_t id)
{
    ask_pause(20, "box");
    parent_asked(id, true);
    parent_says(id, PAUSE_CGROUP_1, "");
    desk_hears(20, SB_PAUSE_DONE, PAUSE_CGROUP_1, 7, "");
    noted("sandbox-paused");
}

static void resume_it(uint64_t id)
{
    ask_resume(21, "box", 8);
    parent_asked(id, false);
    parent_says(id, PAUSE_NONE, "");
    desk_hears(21, SB_PAUSE_DONE, PAUSE_NONE, 8, "");
    noted("sandbox-resumed");
}

/* Nobody says anything for so long. */
static void quiet(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, ms), 0);
}

static void list_ends_with(unsigned way)
{
    say(DESK, M_SB_LIST, 30, NULL);
    assert_int_equal(heard(DESK, M_SB_LISTED), 30);
    assert_true(got.payload.n > 2 && got.payload.p[1] == 1); /* one */
    assert_int_equal(got.payload.p[got.payload.n - 5], way); /* behind it: why it is not idle, nothing */
}

static void nothing_is_begun_in_one_that_stands_still(void **state)
{
    int fd;
    uint64_t id = runs("box", 60000, &fd);
    execute(2, "box", 60000, 100);
    uint32_t run = told_type(fd, TALK_RUN, SPAN_NONE);
    list_ends_with(PAUSE_NONE);
    pause_it(id);
    list_ends_with(PAUSE_CGROUP_1);
    execute(3, "box", 60000, 100);
    exit_heard(3, SB_NOT_STARTED, 0);
    assert_true(span_find(got.payload, SPAN("`countersign sandbox resume` lets it go on")) < got.payload.n);
    struct dynbuf b = fresh();
    msg_put_span(&b, SPAN("box"));
    msg_put_u64(&b, 7);
    msg_put_u32(&b, run);
    msg_put_u8(&b, SIGTERM);
    say(DESK, M_SB_SIGNAL, 4, &b);
    assert_int_equal(heard(DESK, M_SB_SIGNALLED), 4);
    assert_int_equal(got.payload.p[0], 3);
    quiet(fd, 100);
    frame_of(fd, TALK_OUT, run, SPAN("said before")); /* and read now */
    (void)heard(DESK, M_SB_OUTPUT);
    ask_pause(5, "box"); /* once more is the same */
    desk_hears(5, SB_PAUSE_DONE, PAUSE_CGROUP_1, 7, "");
    resume_it(id);
    list_ends_with(PAUSE_NONE);
    execute(6, "box", 60000, 100);
    (void)told_type(fd, TALK_RUN, SPAN_NONE);
    destroy("box");
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    (void)heard(LEDGER, M_SANDBOX_ENDED); /* as what it is now */
    assert_true(span_eq(got.payload, SPAN("\0\0\0\3box\0\0\0\0\0\0\0\10")));
    close(fd);
}

/* How many are; *next: when not yet. */
static unsigned due(uint64_t *next)
{
    say(DESK, M_SB_IDLE, 40, NULL);
    assert_int_equal(heard(DESK, M_SB_IDLE), 40);
    struct msg_in m = msg_in(got.payload);
    *next = msg_get_u64(&m);
    return msg_get_u16(&m);
}

static void idle_end(uint64_t generation)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, SPAN("box"));
    msg_put_u64(&b, generation);
    say(DESK, M_SB_IDLE_END, 41, &b);
}

/* From when it stands still for good; what fails is due again later, and who comes back is not kept waiting. */
static void one_that_stands_still_for_long_is_due(void **state)
{
    int fd;
    uint64_t next;
    idle_ms = 30;
    uint64_t id = runs("box", 60000, &fd);
    idle_ms = 0;
    assert_int_equal(due(&next), 0);
    assert_int_equal(next, 0);
    ask_pause(20, "box");
    parent_asked(id, true);
    assert_int_equal(due(&next), 0); /* whoever asked for that may be gone by when it stands still */
    assert_int_equal(next, 1000);
    parent_says(id, PAUSE_CGROUP_1, "");
    desk_hears(20, SB_PAUSE_DONE, PAUSE_CGROUP_1, 7, "");
    noted("sandbox-paused");
    while (due(&next) == 0) /* which is asked again then */
        assert_true(next > 0 && next <= 30 && poll(NULL, 0, (int)next) == 0);
    struct dynbuf b = fresh();
    msg_put_span(&b, SPAN("box"));
    msg_put_u64(&b, 7);
    msg_put_span(&b, SPAN("no room"));
    say(DESK, M_SB_IDLE_NOT, 42, &b);
    say(DESK, M_SB_LIST, 30, NULL);
    assert_int_equal(heard(DESK, M_SB_LISTED), 30);
    assert_true(span_find(got.payload, SPAN("no room")) < got.payload.n);
    idle_end(6); /* it is another one by now */
    assert_int_equal(heard(DESK, M_SB_DESTROYED), 41);
    assert_int_equal(got.payload.p[0], 0);
    idle_end(7);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    end_heard("box");
    say(PARENT, M_BOX_GONE, id, NULL);
    assert_int_equal(heard(DESK, M_SB_DESTROYED), 41);
    assert_int_equal(got.payload.p[0], 1);
    close(fd);
}

/* More than are told at once: others each time, so that those of one tenant do not hide the others'. */
static void those_that_are_due_come_by_turns(void **state)
{
    enum { BOXES = 33 };
    char name[BOXES][16];
    int fd[BOXES], told_n[BOXES] = {0};
    uint64_t next;
    idle_ms = 1;
    for (int i = 0; i < BOXES; i++) {
        (void)snprintf(name[i], sizeof(name[i]), "box%d", i);
        uint64_t id = runs(name[i], 60000, &fd[i]);
        ask_pause(20, name[i]);
        parent_asked(id, true);
        parent_says(id, PAUSE_CGROUP_1, "");
        desk_hears(20, SB_PAUSE_DONE, PAUSE_CGROUP_1, 7, "");
        noted("sandbox-paused");
    }
    idle_ms = 0;
    assert_int_equal(poll(NULL, 0, 2), 0);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(due(&next), BOXES - 1);
        struct msg_in m = msg_in(span_from(got.payload, 10));
        for (int i = 0; i < BOXES - 1; i++) {
            struct wire_box x;
            assert_int_equal(wire_get_box(&m, &x, false), 0);
            for (int k = 0; k < BOXES; k++)
                told_n[k] += span_eq(x.name, span_str(name[k]));
            for (int k = 0; k < 4; k++)
                (void)msg_get_u64(&m);
            (void)msg_get_u8(&m);
            (void)msg_get_u16(&m);
            (void)msg_get_u8(&m);
            (void)msg_get_span(&m, 64);
            (void)msg_get_u64(&m);
            (void)msg_get_u8(&m);
        }
        assert_int_equal(msg_end(&m), 0);
    }
    for (int i = 0; i < BOXES; i++) {
        assert_true(told_n[i] > 0);
        close(fd[i]);
    }
}

static void still_for_a_moment(struct span names)
{
    say(DESK, M_SB_MOMENT, 31, NULL);
    assert_int_equal(heard(DESK, M_SB_MOMENT), 31);
    assert_true(span_eq(got.payload, names));
}

/* Whoever asks: only those that somebody had stand still for a moment, and who were not paused for longer since. */
static void those_that_stand_still_for_a_moment_are_told(void **state)
{
    static const struct span none = SPAN("\0\0"), it = SPAN("\0\1\0\0\0\3box");
    int fd;
    uint64_t id = runs("box", 60000, &fd);
    still_for_a_moment(none);
    pause_it(id);
    ask_pause_for(5, "box", true);
    desk_hears(5, SB_PAUSE_DONE, PAUSE_CGROUP_1, 7, "");
    still_for_a_moment(none); /* it was paused before */
    resume_it(id);
    ask_pause_for(6, "box", true);
    parent_asked(id, true);
    still_for_a_moment(it); /* who asked may have gone by now */
    parent_says(id, PAUSE_CGROUP_1, "");
    desk_hears(6, SB_PAUSE_DONE, PAUSE_CGROUP_1, 8, "");
    noted("sandbox-paused");
    still_for_a_moment(it);
    ask_resume(7, "box", 9);
    parent_asked(id, false);
    still_for_a_moment(none);
    parent_says(id, PAUSE_NONE, "");
    desk_hears(7, SB_PAUSE_DONE, PAUSE_NONE, 9, "");
    noted("sandbox-resumed");
    still_for_a_moment(none);
    ask_pause_for(8, "box", true);
    parent_asked(id, true);
    parent_says(id, PAUSE_CGROUP_1, "");
    desk_hears(8, SB_PAUSE_DONE, PAUSE_CGROUP_1, 9, "");
    noted("sandbox-paused");
    ask_pause(9, "box"); /* by an operator, meanwhile */
    desk_hears(9, SB_PAUSE_DONE, PAUSE_CGROUP_1, 9, "");
    still_for_a_moment(none);
    destroy("box");
    close(fd);
}

static void it_goes_on_as_a_newer_generation_or_not(void **state)
{
    int fd;
    uint64_t id = runs("box", 60000, &fd);
    ask_resume(1, "box", 8);
    desk_hears(1, SB_PAUSE_NOT, PAUSE_NONE, 7, "not paused");
    ask_resume(2, "none", 8);
    desk_hears(2, SB_PAUSE_NOBODY, PAUSE_NONE, 0, "");
    ask_pause(3, "none");
    desk_hears(3, SB_PAUSE_NOBODY, PAUSE_NONE, 0, "");
    ask_pause(4, "box");
    parent_asked(id, true);
    ask_pause(5, "box");
    desk_hears(5, SB_PAUSE_NOT, PAUSE_NONE, 7, "just now");
    ask_resume(6, "box", 8);
    desk_hears(6, SB_PAUSE_NOT, PAUSE_NONE, 7, "just now");
    parent_says(id, PAUSE_NONE, "it does not stop");
    desk_hears(4, SB_PAUSE_NOT, PAUSE_NONE, 7, "it does not stop");
    execute(7, "box", 60000, 100); /* as before */
    (void)told_type(fd, TALK_RUN, SPAN_NONE);
    pause_it(id);
    ask_resume(8, "box", 7);
    desk_hears(8, SB_PAUSE_NOT, PAUSE_CGROUP_1, 7, "what it was before");
    ask_resume(9, "box", 8);
    parent_asked(id, false);
    parent_says(id, PAUSE_CGROUP_1, "it cannot");
    desk_hears(9, SB_PAUSE_NOT, PAUSE_CGROUP_1, 8, "it cannot");
    ask_resume(10, "box", 9);
    parent_asked(id, false);
    parent_says(id, PAUSE_NONE, "");
    desk_hears(10, SB_PAUSE_DONE, PAUSE_NONE, 9, "");
    id = ask_for("other", 11, 60000, &fd);
    ask_pause(12, "other");
    desk_hears(12, SB_PAUSE_NOT, PAUSE_NONE, 7, "does not run yet");
}

/* The time of a command, and that which a killed one has to end, is over when it goes on and not before. */
static void what_is_due_meanwhile_is_done_then(void **state)
{
    int fd;
    uint64_t id = runs("box", 60000, &fd);
    execute(2, "box", 150, 10);
    uint32_t late = told_type(fd, TALK_RUN, SPAN_NONE);
    execute(3, "box", 60000, 10);
    uint32_t left = told_type(fd, TALK_RUN, SPAN_NONE);
    pause_it(id);
    assert_int_equal(chan_write_one(side[DESK], M_SB_KILL, 3, SPAN_NONE), 0); /* nobody waits for it any more */
    assert_int_equal(told_type(fd, TALK_SIGNAL, SPAN("\11")), left);
    quiet(side[PARENT], RUN_KILL_MS + 1000);
    quiet(fd, 0);
    resume_it(id);
    assert_int_equal(told_type(fd, TALK_SIGNAL, SPAN("\11")), late);
    quiet(side[PARENT], 500);
    ends_with(fd, left, TALK_SIGNALLED, SIGKILL);
    ends_with(fd, late, TALK_SIGNALLED, SIGKILL);
    exit_heard(2, SB_TIMED_OUT, SIGKILL);
    execute(4, "box", 60000, 10);
    (void)told_type(fd, TALK_RUN, SPAN_NONE);
    close(fd);
}

static void time_answered(const char *name, uint64_t ms, unsigned is_so)
{
    struct dynbuf b = fresh();
    msg_put_span(&b, span_str(name));
    msg_put_u64(&b, ms);
    say(DESK, M_SB_TIMEOUT, 40, &b);
    if (is_so > 1)
        return;
    assert_int_equal(heard(DESK, M_SB_TIMEOUT), 40);
    assert_true(got.payload.n == 1 && got.payload.p[0] == is_so);
}

static void its_time_is_set_anew(void **state)
{
    int fd, other;
    uint64_t id = runs("box", 600, &fd);
    time_answered("box", 60000, 1);
    time_answered("nobody", 60000, 0);
    time_answered("box", 0, 2); /* not at all */
    time_answered("box", (uint64_t)BOX_TIMEOUT_MAX_MS + 1, 2);
    (void)ask_for("other", 3, 60000, &other);
    time_answered("other", 60000, 0); /* its time begins when it is up */
    pause_it(id);
    quiet(side[PARENT], 1000);
    time_answered("box", 100, 1); /* also of one that stands still */
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    end_heard("box");
    assert_true(span_find(got.payload, SPAN("its time was over")) < got.payload.n);
    close(fd);
    close(other);
}

static void its_time_ends_it(void **state)
{
    int fd;
    uint64_t id = runs("box", 700, &fd);
    pause_it(id);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    end_heard("box");
    assert_true(span_find(got.payload, SPAN("its time was over")) < got.payload.n);
    say(PARENT, M_BOX_GONE, id, NULL);
    close(fd);
    id = runs("box", 60000, &fd);
    ask_pause(5, "box"); /* and ends before it stands still */
    parent_asked(id, true);
    close(fd);
    assert_int_equal(heard(PARENT, M_BOX_END), id);
    desk_hears(5, SB_PAUSE_NOBODY, PAUSE_NONE, 7, "");
    end_heard("box");
    parent_says(id, PAUSE_CGROUP_1, "");
    say(PARENT, M_BOX_GONE, id, NULL);
    (void)runs("box", 60000, &fd);
    list_ends_with(PAUSE_NONE);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_stands_still_for_long_is_due, begin_known, finish),
        cmocka_unit_test_setup_teardown(those_that_are_due_come_by_turns, begin_known, finish),
        cmocka_unit_test_setup_teardown(nothing_is_begun_in_one_that_stands_still, begin_known, finish),
        cmocka_unit_test_setup_teardown(those_that_stand_still_for_a_moment_are_told, begin_known, finish),
        cmocka_unit_test_setup_teardown(it_goes_on_as_a_newer_generation_or_not, begin_known, finish),
        cmocka_unit_test_setup_teardown(what_is_due_meanwhile_is_done_then, begin_known, finish),
        cmocka_unit_test_setup_teardown(its_time_ends_it, begin_known, finish),
        cmocka_unit_test_setup_teardown(its_time_is_set_anew, begin_known, finish),
    };
    signal(SIGPIPE, SIG_IGN);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    dynbuf_free(&got_bytes);
    return rc;
}
